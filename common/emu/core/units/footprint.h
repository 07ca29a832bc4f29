// SPDX-License-Identifier: MIT
//
// The bytes of shared memory that an operand of a matrix instruction reads, found once and kept: a
// kernel uses the same few descriptors again and again.

#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/emu/core/state/grid.h"
#include "common/emu/core/units/operand_layout.h"

namespace gg::emu {

struct Footprint {
  std::vector<uint64_t> units;  // of shared memory, a bit each: see kUnitBytes
  std::vector<ByteRun> runs;    // the same as runs of bytes
  std::string problem;          // with the descriptor
};

class Footprints {
 public:
  // The units that the lines [first, first + count) of an operand read in the warp's block. Faults
  // if the descriptor has a problem, or if a unit is outside shared memory. `name` is "A" or "B".
  const Footprint& of(Warp& warp, const Instr& instr, const char* name, uint64_t descriptor,
                      const OperandShape& shape, int first, int count);

 private:
  // By descriptor, shape (lines, k, bytes, line-major), first line and count.
  std::map<std::tuple<uint64_t, int, int, int, bool, int, int>, Footprint> found_;
};

// The first unit from `at` on that is set, or is not; 64 * units.size() if there is none.
inline size_t next_unit(const std::vector<uint64_t>& units, size_t at, bool set) {
  for (; at < units.size() * 64; at = (at / 64 + 1) * 64) {
    const uint64_t word = (set ? units[at / 64] : ~units[at / 64]) >> (at % 64);
    if (word) return at + size_t(std::countr_zero(word));
  }
  return units.size() * 64;
}

// use(offset, bytes) for every run of units.
template <class Use>
void for_runs(const std::vector<uint64_t>& units, Use use) {
  for (size_t begin = next_unit(units, 0, true); begin < units.size() * 64;) {
    const size_t end = next_unit(units, begin, false);
    use(begin * kUnitBytes, (end - begin) * kUnitBytes);
    begin = next_unit(units, end, true);
  }
}

// Adds the units of `more` to `all`.
inline void unite(std::vector<uint64_t>& all, const std::vector<uint64_t>& more) {
  if (all.size() < more.size()) all.resize(more.size());
  for (size_t i = 0; i < more.size(); ++i) all[i] |= more[i];
}

}  // namespace gg::emu
