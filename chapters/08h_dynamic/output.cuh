// SPDX-License-Identifier: MIT
//
// How a part of a row of D gets from registers to memory.

#pragma once

#include "common/kernel/epilogue.cuh"

namespace chapter {

using gg::Format;

// Columns of a tile that a thread has in registers at a time: a part of its row. No other number will do:
// each lane has the bias of one of them, and amax leaves out 32 values where one is NaN.
constexpr int PART = 32;

// Who: any thread. Does: stores the first `cols` values of a part, 16 bytes at a time, from element `first`
//   of D on. Both are multiples of 16 bytes, as `launch` wants of N, and so must D's address be,
//   which nothing here checks.
template <Format D>
__device__ inline void store_part(void* d, int64_t first, const float (&v)[PART], int cols) {
  constexpr int IN_WORD = gg::epilogue::VALUES_IN_WORD<D>, WORDS = PART / IN_WORD;
  uint32_t words[WORDS];
#pragma unroll
  for (int i = 0; i < WORDS; ++i) words[i] = gg::epilogue::word_of<D>(v + i * IN_WORD);
  auto* to = reinterpret_cast<uint4*>(static_cast<uint32_t*>(d) + first / IN_WORD);
#pragma unroll
  for (int i = 0; i < WORDS; i += 4) {
    if (i * IN_WORD < cols) to[i / 4] = {words[i], words[i + 1], words[i + 2], words[i + 3]};
  }
}
// A format without an `if` here is not stored: main.cu lists those that have one.
__device__ inline void store_part(Format format, void* d, int64_t first, const float (&v)[PART], int cols) {
  if (format == Format::f32) store_part<Format::f32>(d, first, v, cols);
  if (format == Format::bf16) store_part<Format::bf16>(d, first, v, cols);
  if (format == Format::f16) store_part<Format::f16>(d, first, v, cols);
  if (format == Format::e4m3) store_part<Format::e4m3>(d, first, v, cols);
  if (format == Format::e5m2) store_part<Format::e5m2>(d, first, v, cols);
}

}  // namespace chapter
