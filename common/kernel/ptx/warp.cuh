// SPDX-License-Identifier: MIT
//
// One lane of a warp is chosen. PTX ISA, "Parallel synchronization and communication instructions:
// elect.sync"; probe: tests/isa/alu_hopper_test.cu. Needs sm_90.

#pragma once

#include <cstdint>
#include <cstring>

namespace gg::ptx {

// Who: a whole warp.
// Does: true in one lane, always the same one. All lanes meet here.
//   The compiler knows that no other lane goes on: TMA takes its operands from registers that a
//   warp has once, and after `if (lane == 0)` each such instruction becomes a loop over the lanes
//   that might differ.
__device__ inline bool elect() {
  uint32_t elected;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xFFFFFFFF; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
  return elected != 0;
}

// Who: a whole warp, every lane with the same value, of whole words.
// Does: returns lane 0's value, by shuffles. All lanes meet here.
//   The compiler then knows that all lanes have the same, and keeps what is made of it in
//   uniform registers, where wgmma and TMA take their operands from. From other registers each
//   operand has to be brought there, and a loop that depends on one is no longer the warp's but
//   each lane's own.
template <class Value>
__device__ inline Value uniform(Value value) {
  constexpr int WORDS = sizeof(Value) / 4;
  static_assert(sizeof(Value) % 4 == 0);
  uint32_t words[WORDS];
  memcpy(words, &value, sizeof(Value));
#pragma unroll
  for (int i = 0; i < WORDS; ++i) words[i] = __shfl_sync(0xFFFFFFFF, words[i], 0);
  memcpy(&value, words, sizeof(Value));
  return value;
}

// Nothing for the machine: the value as one that the compiler can't trace, so it keeps it in a
// register. Worth it for what it would make again at each use from special registers, shared
// addresses and block indices.
template <class Integer>
__device__ inline Integer keep(Integer value) {
  static_assert(sizeof(Integer) == 4);
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace gg::ptx
