// SPDX-License-Identifier: MIT
//
// A kernel with more sums than its 64 registers hold.

__global__ void __launch_bounds__(1024) spills(float* x) {
  float sum[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) sum[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
  for (int k = 0; k < 100; ++k) {
#pragma unroll
    for (int i = 0; i < 96; ++i) sum[i] = sum[i] * sum[(i + 1) % 96] + x[k];
  }
#pragma unroll
  for (int i = 0; i < 96; ++i) x[i * 1024 + threadIdx.x] = sum[i];
}
