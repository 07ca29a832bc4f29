// SPDX-License-Identifier: MIT
//
// How a part of a row of C or D gets from registers to memory.

#pragma once

#include "common/epilogue.cuh"
#include "config.cuh"

namespace chapter {

using gg::Format;

// Who: any thread. Does: stores a part, 16 bytes at a time, from element `first` of C or D on.
template <Format D>
__device__ inline void store_part(void* d, int64_t first, const float (&v)[PART]) {
  constexpr int IN_WORD = gg::epilogue::VALUES_IN_WORD<D>, WORDS = PART / IN_WORD;
  uint32_t words[WORDS];
#pragma unroll
  for (int i = 0; i < WORDS; ++i) words[i] = gg::epilogue::word_of<D>(v + i * IN_WORD);
  auto* to = reinterpret_cast<uint4*>(static_cast<uint32_t*>(d) + first / IN_WORD);
#pragma unroll
  for (int i = 0; i < WORDS; i += 4) to[i / 4] = {words[i], words[i + 1], words[i + 2], words[i + 3]};
}
__device__ inline void store_part(Format format, void* d, int64_t first, const float (&v)[PART]) {
  if (format == Format::bf16) store_part<Format::bf16>(d, first, v);
  if (format == Format::f16) store_part<Format::f16>(d, first, v);
}

}  // namespace chapter
