// SPDX-License-Identifier: MIT
// The lines in the report of other_mistakes.cpp's source_lines point here; nobody compiles it.
__device__ void put(uint32_t* tile) {
  tile[threadIdx.x] = threadIdx.x;
}

template <class A, class B, class D, int BM, int BN, int BK, int STAGES>
__global__ void grouped_gemm(const A* a, const B* b) {
  __shared__ uint32_t a_tile[64];
  put(a_tile);
  // no __syncthreads()
  use(load_shared(&a_tile[threadIdx.x ^ 32]));
}
