// SPDX-License-Identifier: MIT
//
// Counting what an access costs.

#include "common/emu/core/state/banks.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/emu/core/state/lanes.h"

namespace gg::emu {
namespace {

// A warp moves at most 128 bytes of shared memory at once: its lanes are served in groups of
// 128 / width, and a bank gives one 4-byte word a time.
void count_wavefronts(Pattern& p, const uint64_t (&address)[kLanes]) {
  const int lanes_at_once = std::max(1, std::min(kLanes, 128 / std::max(p.width, 4)));
  p.wavefronts = p.least = 0;
  for (int first = 0; first < kLanes; first += lanes_at_once) {
    uint32_t words[32][kLanes * 4];
    int count[32] = {}, most = 0;
    for (int l = first; l < first + lanes_at_once; ++l) {
      if (!(p.mask >> l & 1)) continue;
      for (int b = 0; b < p.width; b += 4) {
        const uint32_t word = uint32_t(address[l] + uint64_t(b)) / 4, bank = word % 32;
        const uint32_t* end = words[bank] + count[bank];
        if (std::find(words[bank] + 0, const_cast<uint32_t*>(end), word) != end) continue;
        words[bank][count[bank]++] = word;
        most = std::max(most, count[bank]);
      }
    }
    p.wavefronts += uint64_t(most);
    p.least += most > 0;
  }
}

void find_runs(Pattern& p) {
  int32_t begins[kLanes];
  int count = 0;
  for (Lanes l(p.leaders); l; ++l) begins[count++] = int32_t(p.relative[*l]);
  std::sort(begins, begins + count);
  p.run_count = 0;
  for (int i = 0; i < count; ++i) {
    Pattern::Piece* last = p.run_count ? &p.runs[p.run_count - 1] : nullptr;
    if (last && begins[i] <= last->begin + int32_t(last->bytes)) {
      last->bytes = std::max(last->bytes, uint32_t(begins[i] - last->begin + p.width));
    } else {
      p.runs[p.run_count++] = {begins[i], uint32_t(p.width)};
    }
  }
}
}  // namespace

const Pattern& pattern_of(const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width) {
  constexpr size_t kKept = 1024;  // patterns, found by a hash: warps differ, but in few ways
  thread_local std::vector<Pattern> patterns(kKept);
  const uint32_t start = uint32_t(address[__builtin_ctz(m)]);
  uint32_t relative[kLanes], sum = uint32_t(in.index) * 37 + start % 128 / 4;
  if (m == kAllLanes) {
    for (int l = 0; l < kLanes; ++l) relative[l] = uint32_t(address[l]) - start;
  } else {
    for (int l = 0; l < kLanes; ++l) relative[l] = m >> l & 1 ? uint32_t(address[l]) - start : 0;
  }
  for (int l = 0; l < kLanes; ++l) sum += relative[l] * uint32_t(2 * l + 1);
  Pattern& p = patterns[(sum ^ sum >> 8 ^ sum >> 16) % kKept];
  if (p.mask == m && p.width == width && p.start == start % 128) {
    uint32_t different = 0;
    for (int l = 0; l < kLanes; ++l) different |= p.relative[l] ^ relative[l];
    if (different == 0) return p;
  }
  std::memcpy(p.relative, relative, sizeof relative);
  p.mask = m;
  p.width = width;
  p.start = start % 128;
  p.leaders = 0;
  for (Lanes l(m); l; ++l) {
    bool is_new = true;
    for (Lanes k(p.leaders); k && is_new; ++k) is_new = relative[*k] != relative[*l];
    if (is_new) p.leaders |= Mask(1) << *l;
  }
  find_runs(p);
  count_wavefronts(p, address);
  return p;
}

void count_pattern(const Instr& in, const Pattern& p) {
  InstrCounts& counts = counts_of(in);
  counts.shared_bytes += uint64_t(p.width) * uint64_t(__builtin_popcount(p.mask));
  counts.wavefronts += p.wavefronts;
  counts.least_wavefronts += p.least;
}
void count_shared(const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width) {
  count_pattern(in, pattern_of(in, m, address, width));
}

void count_global(const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width) {
  uint64_t sectors[kLanes * 2];
  int count = 0;
  bool sorted = true;
  for (Lanes l(m); l; ++l) {
    for (uint64_t s = address[*l] / 32; s <= (address[*l] + uint64_t(width) - 1) / 32; ++s) {
      if (count > 0 && sectors[count - 1] == s) continue;
      if (count > 0 && sectors[count - 1] > s) sorted = false;
      sectors[count++] = s;
    }
  }
  if (!sorted) std::sort(sectors, sectors + count);
  InstrCounts& counts = counts_of(in);
  counts.global_bytes += uint64_t(width) * uint64_t(__builtin_popcount(m));
  counts.sectors += uint64_t(std::unique(sectors, sectors + count) - sectors);
}

void count_access(const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width) {
  Mask shared = in.space == Space::shared ? m : 0, local = in.space == Space::local ? m : 0;
  for (Lanes l(in.space == Space::generic ? m : 0); l; ++l) {
    if (address[*l] - kSharedWindow < kSharedWindowBytes) shared |= Mask(1) << *l;
    if (address[*l] - kLocalWindow < kLocalWindowBytes) local |= Mask(1) << *l;
  }
  if (shared) count_shared(in, shared, address, width);
  if (m & ~shared & ~local) count_global(in, m & ~shared & ~local, address, width);
}

}  // namespace gg::emu
