// SPDX-License-Identifier: MIT
//
// A CUDA program of one file: common/emu/README.md quotes it.

// [example]
#include <cstdio>

__global__ void twice(float* x) { x[threadIdx.x] *= 2; }

int main() {
  float* x = nullptr;
  cudaMallocManaged(&x, 32 * sizeof(float));
  for (int i = 0; i < 32; ++i) x[i] = float(i);
  twice<<<1, 32>>>(x);
  cudaDeviceSynchronize();
  std::printf("x[31] = %g\n", x[31]);
}
// [/example]
