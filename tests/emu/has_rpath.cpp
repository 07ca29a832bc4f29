// SPDX-License-Identifier: MIT
//
// A program for gg_emu_test whose DT_RPATH names the folder of CUDA's own runtime.

#include <cuda_runtime.h>

#include <cstdio>

int main() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  std::printf("%s, %d devices\n", cudaGetErrorName(error), devices);
}
