// SPDX-License-Identifier: MIT
//
// gg-fused times each chapter with a fused epilogue, and the ways to the same outputs beside
// it. turns.cu has the turns, a chapter's file its comparison, and launch_ID.cu the launch
// of chapter ID.

#pragma once

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/harness/base/parallel.h"
#include "common/harness/base/text.h"
#include "common/harness/machine/buffers.h"
#include "common/kernel/check.h"
#include "common/kernel/types.cuh"

// `product` is memory for [rows,N]: where a way stores chapter 07l's product.
using Launch = void (*)(const gg::Problem& problem, bf16* product, cudaStream_t stream);

// As they lie in memory, from the first element on.
using Outputs = std::map<gg::Tensor, std::vector<char>>;

struct Comparison {
  const char* option;  // of --chapter
  const char* chapter;
  gg::Setup setup;
  const char* sets;  // without --set
  Launch fused, unfused;
  std::map<std::string, Launch> others{};  // fused too, by the option or chapter that makes them so
  // Throws gg::Error where the two ways' outputs differ by more than the rounding of the product
  // may change. The product is there.
  void (*require_equal)(gg::Machine& machine, const gg::Buffers& buffers, const bf16* product,
                        const Outputs& unfused, const Outputs& fused);
};

// An element's name in what `differ` says.
inline std::string place(int64_t row, int col) {
  return gg::format("row %lld column %d", static_cast<long long>(row), col);
}
// Throws that an element, `what`, is of another value than the unfused way's.
[[noreturn]] inline void differ(const gg::Buffers& buffers, const std::string& what, double is, double want) {
  throw gg::Error(
      gg::Exit::check_failed,
      gg::format("%s: %s: fused %g, unfused %g", buffers.shape().describe().c_str(), what.c_str(), is, want));
}
// Calls body(group, row) for all rows, on all cores. It throws what a call has thrown, if one has.
template <class Body>
void for_each_row(const gg::Problem& problem, Body body) {
  const auto& offsets = problem.layout().offsets;
  std::exception_ptr thrown;
  std::mutex mutex;
  gg::parallel_for(offsets.back(), 16, [&](int64_t begin, int64_t end) {
    try {
      for (int64_t row = begin; row < end; ++row) {
        const auto after = std::upper_bound(offsets.begin(), offsets.end(), row);
        body(size_t(after - offsets.begin()) - 1, row);
      }
    } catch (const gg::Error&) {
      const std::lock_guard lock(mutex);
      thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
}

// All that are in this program. Each chapter's file adds its own.
std::vector<Comparison>& comparisons();
inline bool add(const Comparison& comparison) {
  comparisons().push_back(comparison);
  return true;
}

// Each stores the chapter's outputs but the first, which stores its product.
void launch_07l(const gg::Problem& problem, bf16* product, cudaStream_t stream);
void launch_07m(const gg::Problem& problem, bf16* product, cudaStream_t stream);
void launch_07n(const gg::Problem& problem, bf16* product, cudaStream_t stream);
void launch_07n_butterfly(const gg::Problem& problem, bf16* product, cudaStream_t stream);
void launch_07o(const gg::Problem& problem, bf16* product, cudaStream_t stream);
void launch_07p(const gg::Problem& problem, bf16* product, cudaStream_t stream);
void launch_07q(const gg::Problem& problem, bf16* product, cudaStream_t stream);
void launch_07r(const gg::Problem& problem, bf16* product, cudaStream_t stream);
void launch_10b(const gg::Problem& problem, bf16* product, cudaStream_t stream);
// Chapter 10b's outputs the unfused way, and its workspace.
void launch_glu_gradient(const gg::Problem& problem, bf16* product, cudaStream_t stream);
size_t workspace_of_10b(int64_t rows, int groups, int n);
// Chapter 07m's output the unfused way: the product, and D by a kernel that reads it.
void launch_glu(const gg::Problem& problem, bf16* product, cudaStream_t stream);
// A chapter with the operator of chapter 07m, 07n or 07o beside the unfused way.
Comparison glu_comparison(const char* option, const char* chapter, Launch fused);
Comparison hadamard_comparison(const char* option, const char* chapter, Launch fused);
Comparison quant_comparison(const char* option, const char* chapter, Launch fused);
