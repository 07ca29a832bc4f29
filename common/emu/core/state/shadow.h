// SPDX-License-Identifier: MIT
//
// An access of shared memory must find two things in its shadow: written bytes, none under way.

#pragma once

#include <cstring>
#include <vector>

#include "common/emu/core/state/place.h"

namespace gg::emu {

// Every byte, masked, is the same: eight at a time.
inline bool all_are(const uint8_t* bytes, size_t count, uint8_t mask, uint8_t value) {
  constexpr uint64_t kEach = 0x0101010101010101u;
  uint64_t different = 0;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes + i, 8);
    different |= (eight & (mask * kEach)) ^ (value * kEach);
  }
  for (; i < count; ++i) different |= (bytes[i] & mask) ^ value;
  return different == 0;
}
// All may be read, or written, as far as the shadow says.
inline bool all_readable(const SharedMemory& shared, size_t offset, size_t bytes) {
  return all_are(&shared.shadow[offset], bytes, uint8_t(~SharedMemory::kBeingRead), SharedMemory::kWritten);
}
inline bool all_writable(const SharedMemory& shared, size_t offset, size_t bytes) {
  return all_are(&shared.shadow[offset], bytes, uint8_t(~SharedMemory::kAtRest), 0);
}

// A lane's ordinary read or write of shared memory: somebody must have written it, no operation
// under way may touch it, no other warp may race for it.
void check_shared_read(Warp& warp, const Instr& instr, int lane, const Place& place, int width,
                       Access access = Access::plain);
// `values`: what an ordinary store writes; null if that is not known yet.
void check_shared_write(Warp& warp, const Instr& instr, int lane, const Place& place, int width,
                        Access access = Access::plain, const uint8_t* values = nullptr);
// The same for bytes that an asynchronous operation (bulk store, wgmma) will read, asked when
// it is issued: they must be written, not be arriving, and ordinary writes must have been
// handed on by fence.proxy.async.
void check_async_read(Warp& warp, const Instr& instr, int lane, Block& block, size_t offset, size_t bytes);
// Many such runs at once. False: not all is well, check_async_read says what.
bool all_async_readable(const Warp& warp, const Instr& instr, Block& block, const std::vector<ByteRun>& runs);
// For bytes that an asynchronous operation will write, asked when it is issued.
void check_async_write(Warp& warp, const Instr& instr, int lane, Block& block, size_t offset, size_t bytes,
                       Access access = Access::async);

}  // namespace gg::emu
