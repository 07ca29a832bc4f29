// SPDX-License-Identifier: MIT
//
// A kernel with an unused variable: nvcc warns, and that is all.

__global__ void warns(float* x) {
  int unused;
  *x = 1;
}
