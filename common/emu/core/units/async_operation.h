// SPDX-License-Identifier: MIT
//
// The code that the asynchronous instructions share: several addresses in one instruction, and
// effects that happen some time after the instruction that asked for them. PTX ISA: "Asynchronous
// Operations", "Async Proxy".

#pragma once

#include <functional>
#include <vector>

#include "common/emu/core/decode/decode.h"
#include "common/emu/core/state/access.h"

namespace gg::emu {

// An address operand of an instruction that has several. instr.s[3] and take_address serve those
// that have one.
struct AddressOperand {
  uint32_t slot = 0;
  int base_bits = 64;
  int64_t offset = 0;
  Space space = Space::none;
  bool any_rank = false;  // .shared::cluster

  uint64_t of(Warp& warp, int lane) const;
};
AddressOperand take_address_operand(Decoder& decoder, const Operand& operand, Space space,
                                    bool any_rank = false);
// .shared::cluster operands, and generic ones, may be of any block; those of .shared::cta only of
// the lane's own.
Place locate_operand(Warp& warp, const Instr& instr, int lane, const AddressOperand& operand, int bytes,
                     int alignment);
// The same for the lane's own block's shared memory, whatever block a generic address could name.
Place own_block(Warp& warp, const Instr& instr, int lane, const Place& place);

// The lane that asked for an asynchronous operation, and what its warp knew of then: the
// operation's writes and signals tell no more than that.
struct Issuer {
  Warp* warp = nullptr;
  const Instr* instr = nullptr;
  int lane = 0;
  Clock clock;
};
// To be called after the operation's reads and writes were announced (check_async_read, _write).
Issuer issue(Warp& warp, const Instr& instr, int lane);

// Runs `complete` some rounds of the scheduler later. Fair order: an even seed makes it late, so
// that what does not wait for it goes wrong; an odd one at once. Skewed: as it comes, or when
// nobody can go on without.
void later(Warp& warp, std::function<void()> complete);

// Whether the operation comes too late for a block. Its own block: a fault, which may be
// allowed, and then the operation changes nothing that anybody sees. Another block of the
// cluster: hardware stops.
bool comes_too_late(const Issuer& issuer, const Block& block, const std::string& was_to,
                    const std::string& cause);

// [begin, end) of a block's shared memory that an operation reads or writes.
struct Range {
  size_t begin = 0, end = 0;
};
// While it lives nobody else may touch the bytes; closed when the operation is done with them.
class Windows {
 public:
  // `reduces`: other reductions, and atomic operations, may touch them all the same. `group`: that
  // the lane waits for, of a bulk store.
  Windows(Block& block, const Issuer& issuer, const std::vector<Range>& ranges, bool writes,
          bool reduces = false, const BulkGroup* group = nullptr);
  // Faults if the block has ended meanwhile, see comes_too_late.
  void close();

 private:
  [[gnu::noinline]] void too_late() const;

  Block* block_;
  Issuer issuer_;
  bool writes_;
  std::vector<SharedMemory::Handle> handles_;
};

}  // namespace gg::emu
