// SPDX-License-Identifier: MIT
//
// A grouped GEMM in tiles of eight rows. A row past the end of its group has the routing weight 0
// and the token 0 of the group: what it adds there is meant to be nothing.

#pragma once

#include "exhibit.h"

namespace museum::rows_past_the_last_offset {

// A [rows,K], B [G,K,N], D [rows,N]: a block has one group, a thread one column.
template <bool RIGHT>
__global__ void grouped_gemm(const bf16* a, const bf16* b, bf16* d, const int32_t* offsets, int n, int k) {
  constexpr int BM = 8;
  const int group = int(blockIdx.x), col = int(threadIdx.x);
  const int begin = offsets[group], end = offsets[group + 1];
  for (int row = begin; row < begin + (end - begin + BM - 1) / BM * BM; ++row) {
    const int token = row < end ? row : begin;
    const float routing = row < end ? 1 : 0, before = row < end ? 0 : __bfloat162float(d[token * n + col]);
    float sum = 0;
    for (int i = 0; i < k; ++i)
      sum += __bfloat162float(a[row * k + i]) * __bfloat162float(b[(group * k + i) * n + col]);
    // [mistake]
    const float product = RIGHT && row >= end ? 0 : routing * sum;  // 0 * NaN is NaN
    // [/mistake]
    d[token * n + col] = __float2bfloat16(before + product);
  }
}

template <bool RIGHT>
Verdict run() {
  gg::Setup setup;
  setup.host_offsets = false;
  const gg::Launch launch = [](const gg::Problem& p, cudaStream_t stream) {
    grouped_gemm<RIGHT><<<unsigned(p.groups()), unsigned(p.n()), 0, stream>>>(
        p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), p.offsets().as<int32_t>(), p.n(), p.k());
    GG_CHECK(cudaGetLastError());
  };
  return judged(setup, launch, {{5, 0, 8, 13}, {32}, {64}});
}

}  // namespace museum::rows_past_the_last_offset
