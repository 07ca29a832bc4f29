// SPDX-License-Identifier: MIT
//
// A product on tensor cores by CUTLASS, matrices of ones: common/emu/README.md shows how it is run.

#include <cutlass/gemm/device/gemm.h>

#include <cstdio>

using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Gemm = cutlass::gemm::device::Gemm<Half, Row, Half, Row, Half, Row, float,
                                         cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80>;
int main() {
  constexpr int n = 256;
  Half *a = nullptr, *b = nullptr, *d = nullptr;
  for (Half** x : {&a, &b, &d}) cudaMallocManaged(x, n * n * sizeof(Half));
  for (int i = 0; i < n * n; ++i) a[i] = b[i] = Half(1);
  const cutlass::Status status = Gemm()({{n, n, n}, {a, n}, {b, n}, {d, n}, {d, n}, {1, 0}});
  cudaDeviceSynchronize();
  std::printf("%s: d[0] = %g\n", cutlassGetStatusString(status), float(d[0]));
}
