// SPDX-License-Identifier: MIT
//
// gg-fused times each chapter with a fused epilogue, and the ways to the same outputs beside it. turns.cu has
// the turns, a chapter's file its comparison, and launch_ID.cu the launch of chapter ID.

#pragma once

#include <map>
#include <vector>

#include "common/machine/buffers.h"
#include "common/types.cuh"

// `product` is memory for [rows,N]: where a way stores chapter 07l's product.
using Launch = void (*)(const gg::Problem& problem, bf16* product, cudaStream_t stream);

using Outputs = std::map<gg::Tensor, std::vector<char>>;  // as they lie in memory, from the first element on

struct Comparison {
  const char* option;  // of --chapter
  const char* chapter;
  gg::Setup setup;
  const char* sets;  // without --set
  Launch fused, unfused;
  // Throws gg::Error where the two ways' outputs differ by more than the rounding of the product may change.
  // The product is there.
  void (*require_equal)(gg::Machine& machine, const gg::Buffers& buffers, const bf16* product,
                        const Outputs& unfused, const Outputs& fused);
};

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
void launch_07o(const gg::Problem& problem, bf16* product, cudaStream_t stream);
// Chapter 07m's output the unfused way: the product, and D by a kernel that reads it.
void launch_glu(const gg::Problem& problem, bf16* product, cudaStream_t stream);
