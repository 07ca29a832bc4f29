// SPDX-License-Identifier: MIT
//
// The random numbers of an order. A cluster has a stream for the turns of its warps, one for the
// delays of its asynchronous effects and one for lanes that fall behind, so that drawing from one
// leaves the others as they are. splitmix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom
// Number Generators", OOPSLA 2014.

#pragma once

#include <cstdint>

namespace gg::emu {

class Random {
 public:
  enum class Stream : uint64_t { turns, delays, lanes };

  Random() = default;
  Random(uint64_t seed, int64_t cluster, Stream stream)
      : state_(mixed(mixed(seed * kGolden) + 3 * uint64_t(cluster) + uint64_t(stream))) {}

  uint64_t next() { return mixed(state_ += kGolden); }
  uint64_t below(uint64_t limit) { return next() % limit; }

 private:
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;
  static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  uint64_t state_ = 0;
};

}  // namespace gg::emu
