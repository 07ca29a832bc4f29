// SPDX-License-Identifier: MIT
//
// Loads and stores of a whole warp. The common ones are checked and moved all at once, the others
// lane by lane.

#include "common/emu/core/state/access.h"

#include <algorithm>

#include "common/emu/core/state/lanes.h"
#include "common/emu/core/state/unwritten.h"

namespace gg::emu {
namespace {

// The address of the block's first byte of shared memory.
uint64_t own_shared(const Warp& w) { return (uint64_t(w.block->rank) << 24) + uint64_t(kSharedStart); }

// All lanes of the mask inside this block's shared memory and aligned: the common case, without a
// look at each.
bool all_in_own_shared(const Warp& w, Mask m, const uint64_t (&address)[kLanes], int width) {
  const uint64_t begin = own_shared(w), bytes = w.block->shared.bytes.size(),
                 some = address[__builtin_ctz(m)];
  uint64_t beyond = 0, odd = 0;  // their bits above the 31st and below the width's
  uint32_t last = 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t at = m >> l & 1 ? address[l] : some, offset = at - begin;
    beyond |= offset >> 31;
    last = std::max(last, uint32_t(offset));
    odd |= at;
  }
  return beyond == 0 && (odd & uint64_t(width - 1)) == 0 && (width & (width - 1)) == 0 &&
         last + uint64_t(width) <= bytes;
}

// The same for one allocation of global memory, which is the cluster's last_buffer then.
bool all_in_one_buffer(const Warp& w, Mask m, const uint64_t (&address)[kLanes], int width, bool reads) {
  uint64_t low = ~0ull, high = 0, odd = 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t at = m >> l & 1 ? address[l] : address[__builtin_ctz(m)];
    low = std::min(low, at);
    high = std::max(high, at);
    odd |= at;
  }
  if ((odd & uint64_t(width - 1)) != 0 || (width & (width - 1)) != 0) return false;
  const Allocation*& last = w.block->cluster->last_buffer;
  if (!last || last->freed || !last->holds(low, 1)) last = w.block->grid->memory->below(low);
  return last && !last->freed && last->holds(low, 1) && last->holds(high, uint64_t(width)) &&
         (!reads || !last->readable || last->readable->holds(low, high - low + uint64_t(width)));
}

// A store that changes nothing lets nobody go on who waits for a change.
template <class Width>
void put_bytes(Warp& w, uint8_t* to, const uint8_t* from, Width width) {
  if (std::memcmp(to, from, width) == 0) return;
  std::memcpy(to, from, width);
  ++w.block->cluster->changes;
}

size_t runs_at(const Pattern& p, size_t start, ByteRun (&runs)[kLanes]) {
  for (int i = 0; i < p.run_count; ++i) runs[i] = {start + size_t(int64_t(p.runs[i].begin)), p.runs[i].bytes};
  return size_t(p.run_count);
}

// An access of the own shared memory, its runs all at once. False: not all is well, and looking at
// each lane says what.
bool clean_read(Warp& w, const Instr& in, const Pattern& p, const uint64_t (&address)[kLanes],
                Access access) {
  SharedMemory& shared = w.block->shared;
  if (!shared.checked) return true;
  ByteRun runs[kLanes];
  const size_t count = runs_at(p, size_t(address[__builtin_ctz(p.mask)] - own_shared(w)), runs);
  for (size_t i = 0; i < count; ++i) {
    if (!all_readable(shared, runs[i].offset, runs[i].bytes)) return false;
  }
  return !shared.races.on() || shared.races.read_runs(w, in, p.mask, runs, count, access);
}
bool clean_write(Warp& w, const Instr& in, const Pattern& p, const uint64_t (&address)[kLanes],
                 Access access) {
  SharedMemory& shared = w.block->shared;
  if (!shared.checked) return true;
  ByteRun runs[kLanes];
  const size_t count = runs_at(p, size_t(address[__builtin_ctz(p.mask)] - own_shared(w)), runs);
  for (size_t i = 0; i < count; ++i) {
    if (!all_writable(shared, runs[i].offset, runs[i].bytes)) return false;
  }
  if (shared.races.on() && !shared.races.write_runs(w, in, p.mask, runs, count, access)) return false;
  for (size_t i = 0; i < count; ++i)
    std::fill_n(&shared.shadow[runs[i].offset], runs[i].bytes, uint8_t(SharedMemory::kWritten));
  return true;
}

}  // namespace

void read_memory(Warp& w, const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width,
                 uint8_t* data, int pitch, Access access) {
  if (in.space == Space::shared && all_in_own_shared(w, m, address, width)) {
    const Pattern& pattern = pattern_of(in, m, address, width);
    if (clean_read(w, in, pattern, address, access)) {
      const uint8_t* bytes = w.block->shared.bytes.data() - own_shared(w);
      with_width(width, [&](auto constant) {
        for (Lanes l(m); l; ++l) std::memcpy(data + *l * pitch, bytes + address[*l], constant);
      });
      return count_pattern(in, pattern);
    }
  }
  if (in.space == Space::global && all_in_one_buffer(w, m, address, width, true)) {
    const GlobalMemory& memory = *w.block->grid->memory;
    const Allocation* const buffer = w.block->cluster->last_buffer;
    for (Lanes l(buffer->all_written ? 0 : m); l; ++l)
      check_global_read(w, in, *l, buffer, address[*l], uint64_t(width));
    with_width(width, [&](auto constant) {
      for (Lanes l(m); l; ++l) std::memcpy(data + *l * pitch, memory.unchecked(address[*l]), constant);
    });
    return count_global(in, m, address, width);
  }
  for (Lanes l(m); l; ++l) {
    const Place place = locate(w, in, *l, in.space, address[*l], width, width);
    if (place.block) check_shared_read(w, in, *l, place, width, access);
    check_global_read(w, in, *l, place.buffer, address[*l], uint64_t(width));
    if (!place.block) check_guards(w, in, *l, address[*l], uint64_t(width));
    std::memcpy(data + *l * pitch, place.bytes, size_t(width));
  }
  count_access(in, m, address, width);
}

void write_memory(Warp& w, const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width,
                  const uint8_t* data, int pitch, Access access) {
  if (in.space == Space::shared && all_in_own_shared(w, m, address, width)) {
    const Pattern& pattern = pattern_of(in, m, address, width);
    if (clean_write(w, in, pattern, address, access)) {
      uint8_t* bytes = w.block->shared.bytes.data() - own_shared(w);
      with_width(width, [&](auto constant) {
        for (Lanes l(m); l; ++l) put_bytes(w, bytes + address[*l], data + *l * pitch, constant);
      });
      return count_pattern(in, pattern);
    }
  }
  if (in.space == Space::global && all_in_one_buffer(w, m, address, width, false)) {
    const GlobalMemory& memory = *w.block->grid->memory;
    const Allocation* const buffer = w.block->cluster->last_buffer;
    for (Lanes l(buffer->all_written ? 0 : m); l; ++l)
      will_write_global(w, buffer, address[*l], uint64_t(width));
    with_width(width, [&](auto constant) {
      for (Lanes l(m); l; ++l) put_bytes(w, memory.unchecked(address[*l]), data + *l * pitch, constant);
    });
    return count_global(in, m, address, width);
  }
  for (Lanes l(m); l; ++l) {
    const Place place = locate(w, in, *l, in.space, address[*l], width, width);
    if (place.block) check_shared_write(w, in, *l, place, width, access, data + *l * pitch);
    will_write_global(w, place.buffer, address[*l], uint64_t(width));
    put_bytes(w, place.bytes, data + *l * pitch, size_t(width));
  }
  count_access(in, m, address, width);
}

}  // namespace gg::emu
