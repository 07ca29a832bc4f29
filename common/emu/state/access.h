// SPDX-License-Identifier: MIT
//
// Checked access to memory by address, for every instruction that loads or stores.

#pragma once

#include "common/emu/decode/decode.h"

namespace gg::emu {

// Decodes an address operand into s[3] (base), address_bits and offset.
void take_address(Decoder& decoder, const Operand& operand);

// The address of each lane, of instr.space: base + offset. A 32-bit base wraps around at 2^32 and is
// zero-extended.
void addresses(Warp& warp, const Instr& instr, uint64_t (&out)[kLanes]);

// Where `width` bytes at an address lie. Faults unless they are inside one live allocation (or the block's
// shared, or the thread's local memory) and aligned. Space::generic addresses choose by their window. Shared
// addresses of another block of the cluster want instr.any_rank, as .shared::cluster forms set it.
struct Place {
  uint8_t* bytes = nullptr;
  Block* block = nullptr;  // whose shared memory it is; null: global or local
  size_t offset = 0;       // in that shared memory
};
Place locate(Warp& warp, const Instr& instr, int lane, Space space, uint64_t address, int width,
             int alignment);

// "shared address 0xc10 (byte 2064 of tile)", for reports.
std::string shared_text(const Block& block, size_t offset);

// A lane's ordinary read or write of shared memory: somebody must have written it, no operation under way may
// touch it, no other warp may race for it.
void check_shared_read(Warp& warp, const Instr& instr, int lane, const Place& place, int width,
                       Access access = Access::plain);
// `values`: what an ordinary store writes; null if that is not known yet.
void check_shared_write(Warp& warp, const Instr& instr, int lane, const Place& place, int width,
                        Access access = Access::plain, const uint8_t* values = nullptr);
// The same for bytes that an asynchronous operation (bulk store, wgmma) will read, asked when it is issued:
// they must be written, not be arriving, and ordinary writes must have been handed on by fence.proxy.async.
void check_async_read(Warp& warp, const Instr& instr, int lane, Block& block, size_t offset, size_t bytes);
// Many such runs at once. False: not all is well, check_async_read says what.
bool all_async_readable(const Warp& warp, const Instr& instr, Block& block, const std::vector<ByteRun>& runs);
// For bytes that an asynchronous operation will write, asked when it is issued.
void check_async_write(Warp& warp, const Instr& instr, int lane, Block& block, size_t offset, size_t bytes,
                       Access access = Access::async);

// Lane l's bytes are at data + l * pitch. Checks, counts, moves.
void read_memory(Warp& warp, const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width,
                 uint8_t* data, int pitch, Access access = Access::plain);
void write_memory(Warp& warp, const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width,
                  const uint8_t* data, int pitch, Access access = Access::plain);

// Counts of a warp-wide access: shared addresses (wavefronts) or global ones (bytes and sectors).
void count_shared(const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width);
void count_global(const Instr& instr, Mask mask, const uint64_t (&address)[kLanes], int width);

}  // namespace gg::emu
