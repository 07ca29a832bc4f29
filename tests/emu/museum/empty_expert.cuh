// SPDX-License-Identifier: MIT
//
// Gradients of weights, one matrix for each expert, whose K is its number of tokens. An expert
// without tokens has the gradient 0, and somebody must write it.

#pragma once

#include <cmath>

#include "exhibit.h"

namespace museum::empty_expert {

constexpr int GROUPS = 3, M = 8, N = 32;
constexpr int OFFSETS[GROUPS + 1] = {0, 40, 40, 64};  // tokens; the second expert has none
constexpr int TOKENS = OFFSETS[GROUPS];

// D [GROUPS,M,N]: of group g A^T B over its tokens. A [TOKENS,M], B [TOKENS,N]; a block
// has one group.
template <bool RIGHT>
__global__ void gradients(const float* a, const float* b, float* d, const int* offsets) {
  const int group = int(blockIdx.x), begin = offsets[group], end = offsets[group + 1];
  // [mistake]
  if (!RIGHT && begin == end) return;  // no tokens, nothing to do
  // [/mistake]
  for (int i = int(threadIdx.x); i < M * N; i += int(blockDim.x)) {
    float sum = 0;
    for (int token = begin; token < end; ++token) sum += a[token * M + i / N] * b[token * N + i % N];
    d[group * M * N + i] = sum;
  }
}

template <bool RIGHT>
Verdict run() {
  const std::vector<float> a = whole_numbers<float>(TOKENS * M), b = whole_numbers<float>(TOKENS * N);
  const Array<float> a_device(a), b_device(b);
  const Array<float> d(std::vector<float>(GROUPS * M * N, NAN));  // as used memory may be
  const Array<int> offsets(std::vector<int>(OFFSETS, OFFSETS + GROUPS + 1));
  gradients<RIGHT><<<GROUPS, 128>>>(a_device.get(), b_device.get(), d.get(), offsets.get());
  std::vector<float> expected(GROUPS * M * N);
  for (int i = 0; i < int(expected.size()); ++i) {
    const int group = i / N / M;
    for (int token = OFFSETS[group]; token < OFFSETS[group + 1]; ++token)
      expected[size_t(i)] += a[size_t(token * M + i / N % M)] * b[size_t(token * N + i % N)];
  }
  return compare(d.read(), expected);
}

}  // namespace museum::empty_expert
