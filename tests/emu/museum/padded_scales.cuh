// SPDX-License-Identifier: MIT
//
// A grouped GEMM of MXFP8. The scales of A lie one group behind the other without gaps, row by row
// of A; the kernel takes each group's to begin at a multiple of 128 rows.

#pragma once

#include "exhibit.h"

namespace museum::padded_scales {

// A [rows,K], B [G,N,K] in E4M3 with a scale for 32 elements of K, D [rows,N]: a block has a group,
// a thread a column.
template <bool RIGHT>
__global__ void grouped_gemm(const uint8_t* a, const uint8_t* b, const uint8_t* sfa, const uint8_t* sfb,
                             bf16* d, const int32_t* offsets, int groups, int n, int k) {
  const int group = int(blockIdx.x), col = int(threadIdx.x);
  int padded = 0;
  for (int g = 0; g < group; ++g) padded += (offsets[g + 1] - offsets[g] + 127) / 128 * 128;
  // [mistake]
  const int first_scale = RIGHT ? offsets[group] : padded;
  // [/mistake]
  const gg::ScaleLayout of_a = {offsets[groups], k / 32}, of_b = {n, k / 32};
  for (int r = 0; r < offsets[group + 1] - offsets[group]; ++r) {
    const int64_t row = offsets[group] + r;
    float sum = 0;
    for (int i = 0; i < k; ++i) {
      const uint8_t scale_a = sfa[of_a.offset(first_scale + r, i / 32)];
      const uint8_t scale_b = sfb[group * of_b.bytes() + of_b.offset(col, i / 32)];
      const float x = gg::decode(gg::Format::e4m3, a[row * k + i]) * gg::decode(gg::Format::ue8m0, scale_a);
      sum += x * gg::decode(gg::Format::e4m3, b[(int64_t(group) * n + col) * k + i]) *
             gg::decode(gg::Format::ue8m0, scale_b);
    }
    d[row * n + col] = __float2bfloat16(sum);
  }
}

template <bool RIGHT>
Verdict run() {
  gg::Setup setup;
  setup.request.formats = {gg::Format::e4m3, gg::Format::e4m3, gg::Format::bf16, gg::BlockFormat::mxfp8};
  setup.request.b_layout = gg::BLayout::nk;
  setup.host_offsets = false;
  const gg::Launch launch = [](const gg::Problem& p, cudaStream_t stream) {
    grouped_gemm<RIGHT><<<unsigned(p.groups()), unsigned(p.n()), 0, stream>>>(
        p.a<uint8_t>(), p.b<uint8_t>(), p.scaled().sfa, p.scaled().sfb, p.d<bf16>(),
        p.offsets().as<int32_t>(), p.groups(), p.n(), p.k());
    GG_CHECK(cudaGetLastError());
  };
  return judged(setup, launch, {{40, 8, 130}, {32}, {64}});
}

}  // namespace museum::padded_scales
