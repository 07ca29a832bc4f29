// SPDX-License-Identifier: MIT
//
// Where an expert's weights begin: its index times K * N, of 64 experts with K = 4096 and
// N = 14336. From expert 37 on that is more than 2^31 elements.

#pragma once

#include "exhibit.h"

namespace museum::offset_of_32_bits {

constexpr int EXPERTS = 64, K = 4096, N = 14336, TOKENS = 4;
constexpr int USED_K = 64;  // of each row of B, the others are 0 in A

// One token to a block, of the expert that the router has chosen; the first column of D.
template <bool RIGHT>
__global__ void grouped_gemm(const bf16* a, const bf16* b, float* d, const int* chosen) {
  const int expert = chosen[blockIdx.x];
  // [mistake]
  // The wrong one wraps as Triton's int32 does.
  const int64_t offset = RIGHT ? int64_t(expert) * (K * N) : int(unsigned(expert) * unsigned(K * N));
  // [/mistake]
  float sum = 0;
  for (int i = 0; i < USED_K; ++i)
    sum += __bfloat162float(a[blockIdx.x * USED_K + i]) * __bfloat162float(b[offset + i]);
  d[blockIdx.x] = sum;
}

template <bool RIGHT>
Verdict run() {
  const std::vector<int> chosen = {0, 36, 37, 63};
  const std::vector<bf16> a = whole_numbers<bf16>(TOKENS * USED_K);
  // Pages come where they are touched: 64 experts' weights are 7.5 GB.
  auto* const b = static_cast<bf16*>(gg::emulator()->reserve(size_t(EXPERTS) * K * N * sizeof(bf16)));
  GG_REQUIRE(b, "there is no room for %d experts", EXPERTS);
  std::vector<float> expected(TOKENS);
  for (int t = 0; t < TOKENS; ++t) {
    std::vector<bf16> row(USED_K);
    for (int i = 0; i < USED_K; ++i) {
      row[size_t(i)] = bf16(whole_number(i + chosen[size_t(t)]));
      expected[size_t(t)] += float(a[size_t(t * USED_K + i)]) * float(row[size_t(i)]);
    }
    GG_CHECK(cudaMemcpy(b + int64_t(chosen[size_t(t)]) * K * N, row.data(), USED_K * sizeof(bf16),
                        cudaMemcpyHostToDevice));
  }
  const Array<bf16> a_device(a);
  const Array<int> chosen_device(chosen);
  const Array<float> d{std::vector<float>(TOKENS)};
  grouped_gemm<RIGHT><<<TOKENS, 1>>>(a_device.get(), b, d.get(), chosen_device.get());
  const Verdict verdict = compare(d.read(), expected);
  GG_CHECK(cudaFree(b));
  return verdict;
}

}  // namespace museum::offset_of_32_bits
