// SPDX-License-Identifier: MIT
//
// A program for gg_emu_test that links a library named as cuBLAS and the driver's interface: it
// calls neither, unless it gets an argument.

#include <cuda_runtime.h>

#include <cstdio>

extern "C" int cuMadeUpForATest(int);
extern "C" int cublasMadeUpForATest(int);

int main(int argc, char**) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  std::printf("%s, %d devices\n", cudaGetErrorName(error), devices);
  return argc > 1 ? cuMadeUpForATest(argc) + cublasMadeUpForATest(argc) : 0;
}
