// SPDX-License-Identifier: MIT
//
// Refusing accesses of shared memory: nobody wrote it, or an asynchronous operation still owns it.

#include "common/emu/core/state/shadow.h"

#include "common/emu/core/state/bulk_groups.h"
#include "common/emu/core/state/undefined.h"

namespace gg::emu {
namespace {

bool is_copy(const Instr& in) {  // cp.async, not bulk
  return in.statement->opcode == "cp" && !in.statement->has("bulk");
}

std::vector<Party> party_of(const Window* owner) {
  if (!owner) return {};
  return {{owner->warp, owner->instr, owner->lane, "started the operation"}};
}

// How one waits for the operation that owns these bytes.
std::string how_to_wait(const Window* owner) {
  if (!owner) return "wait for the operation first";
  const Instr& in = *owner->instr;
  if (is_copy(in)) {
    return "cp.async.wait_group is missing, or its number is too large: it lets that many of the thread's "
           "newest groups be "
           "unfinished. A barrier behind it tells the other threads";
  }
  if (in.statement->opcode == "wgmma")
    return "wgmma.wait_group comes before the tiles are used for something else";
  return owner->group ? why_not_read(*owner) : "wait for the phase of the mbarrier that counts these bytes";
}

[[gnu::noinline]] void refuse_read(Warp& w, const Instr& in, int lane, const Block& block, size_t offset) {
  const SharedMemory& shared = block.shared;
  const uint8_t state = shared.shadow[offset];
  if (state & SharedMemory::kMbarrier   ? was_told(FaultKind::mbarrier, w, in)
      : state & SharedMemory::kArriving ? was_told(FaultKind::async_window, w, in)
                                        : was_told(FaultKind::uninit_shared, w, in))
    return;
  const std::string where = shared_text(block, offset);
  if (state & SharedMemory::kMbarrier) {
    raise(FaultKind::mbarrier, w, in, lane, where + " belongs to an mbarrier and is read as ordinary memory",
          "an array overlaps the mbarrier, or mbarrier.inval is missing before its memory is used again");
  } else if (state & (SharedMemory::kArriving | SharedMemory::kReducing)) {
    const Window* const owner = shared.owner(offset);
    raise(FaultKind::async_window, w, in, lane,
          where + " is read while an asynchronous copy is still to write it", how_to_wait(owner),
          party_of(owner));
  } else if (state & SharedMemory::kUndefined) {
    raise(FaultKind::uninit_shared, w, in, lane,
          where + " is read, and what was written there is a value that nobody gave",
          "a variable is used before it has a value, or what is written covers more than what is known",
          left_by(block, offset));
  } else {
    raise(FaultKind::uninit_shared, w, in, lane, where + " is read and nobody has written it",
          "a barrier is missing before the read, or what fills the array covers less than what is read");
  }
}

[[gnu::noinline]] void refuse_write(Warp& w, const Instr& in, int lane, const Block& block, size_t offset) {
  const SharedMemory& shared = block.shared;
  const uint8_t state = shared.shadow[offset];
  if (state & SharedMemory::kMbarrier ? was_told(FaultKind::mbarrier, w, in)
                                      : was_told(FaultKind::async_window, w, in))
    return;
  const std::string where = shared_text(block, offset);
  if (state & SharedMemory::kMbarrier) {
    raise(FaultKind::mbarrier, w, in, lane,
          where + " belongs to an mbarrier and is overwritten as ordinary memory",
          "an array overlaps the mbarrier, or mbarrier.inval is missing before its memory is used again");
  } else {
    const Window* const owner = shared.owner(offset);
    raise(FaultKind::async_window, w, in, lane,
          where + " is written while an asynchronous operation still " +
              (state & (SharedMemory::kArriving | SharedMemory::kReducing) ? "writes" : "reads") + " it",
          how_to_wait(owner), party_of(owner));
  }
}

// States in which an access of this kind may meet its bytes: atomic operations and reductions mix.
uint8_t meanwhile(Access access) { return access == Access::strong ? SharedMemory::kReducing : 0; }
}  // namespace

void check_shared_read(Warp& w, const Instr& in, int lane, const Place& place, int width, Access access) {
  SharedMemory& shared = place.block->shared;
  if (!shared.checked) return;
  const uint8_t* state = shared.shadow.data() + place.offset;
  if (!all_readable(shared, place.offset, size_t(width))) {
    const uint8_t carried = in.carry ? SharedMemory::kUndefined : 0;
    for (int i = 0; i < width; ++i) {
      if ((state[i] & ~(SharedMemory::kBeingRead | carried | meanwhile(access))) == SharedMemory::kWritten)
        continue;
      refuse_read(w, in, lane, *place.block, place.offset + size_t(i));
      break;
    }
  }
  if (shared.races.on()) shared.races.read(w, in, lane, place.offset, width, access);
}

void check_shared_write(Warp& w, const Instr& in, int lane, const Place& place, int width, Access access,
                        const uint8_t* values) {
  SharedMemory& shared = place.block->shared;
  if (!shared.checked) return;
  uint8_t* state = shared.shadow.data() + place.offset;
  if (!all_writable(shared, place.offset, size_t(width))) {
    for (int i = 0; i < width; ++i) {
      if (!(state[i] & ~(SharedMemory::kAtRest | meanwhile(access)))) continue;
      refuse_write(w, in, lane, *place.block, place.offset + size_t(i));
      break;
    }
  }
  for (int i = 0; i < width; ++i)
    state[i] = uint8_t((state[i] | SharedMemory::kWritten) & ~SharedMemory::kUndefined);
  if (shared.races.on()) shared.races.write(w, in, lane, place.offset, width, access, values);
}

void check_async_read(Warp& w, const Instr& in, int lane, Block& block, size_t offset, size_t bytes) {
  check_shared_read(w, in, lane, {block.shared.bytes.data() + offset, &block, offset}, int(bytes),
                    Access::async);
}

bool all_async_readable(const Warp& w, const Instr& in, Block& block, const std::vector<ByteRun>& runs) {
  SharedMemory& shared = block.shared;
  if (!shared.checked) return true;
  for (const ByteRun& run : runs) {
    if (!all_readable(shared, run.offset, run.bytes)) return false;
  }
  return !shared.races.on() || shared.races.read_runs(w, in, 0, runs.data(), runs.size(), Access::async);
}

void check_async_write(Warp& w, const Instr& in, int lane, Block& block, size_t offset, size_t bytes,
                       Access access) {
  ++w.block->cluster->changes;
  SharedMemory& shared = block.shared;
  if (!shared.checked) return;
  for (size_t i = offset; !all_writable(shared, offset, bytes) && i < offset + bytes; ++i) {
    if (shared.shadow[i] & ~SharedMemory::kAtRest) {
      refuse_write(w, in, lane, block, i);
      break;
    }
  }
  if (shared.races.on()) shared.races.write(w, in, lane, offset, int(bytes), access);
}
}  // namespace gg::emu
