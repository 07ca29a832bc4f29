// SPDX-License-Identifier: MIT
//
// A grouped GEMM under programmatic dependent launch. The kernel before it, a router,
// writes the offsets.

#pragma once

#include "common/harness/verify/chain.h"
#include "common/kernel/launch.h"
#include "common/kernel/ptx/warpgroup.cuh"
#include "exhibit.h"

namespace museum::offsets_before_the_wait {

// A [rows,K], B [G,K,N], D [rows,N]: a block has one row, a thread one column.
template <bool RIGHT>
__global__ void grouped_gemm(const bf16* a, const bf16* b, bf16* d, const int32_t* offsets, int n, int k) {
  gg::ptx::griddepcontrol_launch_dependents();
  // [mistake]
  if (RIGHT) gg::ptx::griddepcontrol_wait();  // before the first read of what another kernel wrote
  // [/mistake]
  const int row = int(blockIdx.x), col = int(threadIdx.x);
  int group = 0;
  while (row >= offsets[group + 1]) ++group;
  if (!RIGHT) gg::ptx::griddepcontrol_wait();
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    sum +=
        __bfloat162float(a[int64_t(row) * k + i]) * __bfloat162float(b[(int64_t(group) * k + i) * n + col]);
  }
  d[int64_t(row) * n + col] = __float2bfloat16(sum);
}

template <bool RIGHT>
Verdict run() {
  const gg::Launch launch = [](const gg::Problem& p, cudaStream_t stream) {
    gg::launch_kernel({.grid = dim3(unsigned(p.m_total())),
                       .threads = p.n(),
                       .shared_bytes = 0,
                       .stream = stream,
                       .dependent = true},
                      grouped_gemm<RIGHT>, p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), p.offsets().as<int32_t>(),
                      p.n(), p.k());
  };
  const gg::Shape shape = {{5, 0, 33}, {32}, {32}};
  return verdict_of(gg::check_chain(*gg::emulator_machine(), gg::Setup{}, launch, shape, 1, false));
}

}  // namespace museum::offsets_before_the_wait
