// SPDX-License-Identifier: MIT
//
// Rows of bf16 as the kernels of gg-fused read and write them, 16 bytes of a thread at a time, and
// on the host.

#pragma once

#include <cstring>
#include <vector>

#include "common/harness/problem/layout.h"
#include "common/kernel/epilogue.cuh"

namespace rows {

constexpr int kAtOnce = 8;  // values in 16 bytes

__device__ inline void unpack(const uint4& words, float (&v)[kAtOnce]) {
  const uint32_t all[] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < kAtOnce; ++i)
    v[i] = gg::epilogue::float_of(i % 2 ? all[i / 2] & 0xFFFF0000 : all[i / 2] << 16);
}

// Who: a whole warp, for a row that one of the groups has. Returns its group.
__device__ inline int group_of(int64_t row, const gg::Offsets& offsets, int groups) {
  const int lane = int(threadIdx.x) % 32;
  int group = 0;  // groups that end at or before this row
  for (int g = lane; g < (groups + 31) / 32 * 32; g += 32)
    group += __popc(__ballot_sync(~0u, g < groups && offsets[g + 1] <= row));
  return group;
}

// Value i of some bf16.
inline float value(const std::vector<char>& codes, size_t i) {
  uint16_t code;
  std::memcpy(&code, codes.data() + i * sizeof code, sizeof code);
  return gg::epilogue::float_of(uint32_t(code) << 16);
}

}  // namespace rows
