// SPDX-License-Identifier: MIT
//
// The sizes of a problem and where its matrices lie: `Shape` is what a reader types, `Layout` says
// where each group's matrices lie in the buffers.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/problem/operands.h"
#include "common/kernel/block_scales.h"
#include "common/kernel/error.h"
#include "common/kernel/types.cuh"

namespace gg {

struct Shape {
  std::vector<int> m;      // rows of each group
  std::vector<int> n;      // one for all groups, or one per group
  std::vector<int> k;      // likewise
  std::string set{};       // the shape set it comes from, for tables and CSV
  bool shared_b = false;   // one B for all groups
  bool own_sizes = false;  // matrices of each group's own, by pointer and size arrays
  // Where a set's groups were padded: the rows of each group before that.
  std::vector<int> unpadded{};
  int64_t rows = -1;     // rows of A and D in memory; -1: no more than the groups have
  int64_t b_stride = 0;  // elements from one group's B to the next; 0: one lies behind the other

  int groups() const { return int(m.size()); }
  int n_of(int group) const { return n[n.size() == 1 ? 0 : size_t(group)]; }
  int k_of(int group) const { return k[k.size() == 1 ? 0 : size_t(group)]; }
  int64_t m_total() const;
  int m_max() const;
  double flops() const;          // 2 * sum of M_g * N_g * K_g: useful rows only, padding left out
  std::string describe() const;  // "G=4 M=86 (0..64) N=256 K=128"
};

struct Region {  // a matrix inside a buffer, in elements
  int64_t offset = 0;
  int rows = 0, cols = 0;
  int64_t ld = 0;
};

// The scales of one group's rows of A or columns of B, inside a matrix's scales, inside a buffer.
struct ScaleRegion {
  int64_t offset = 0;  // bytes from the buffer's start to the matrix's scales
  ScaleLayout layout;  // of the whole matrix: A of all groups, B of one
  int64_t first_row = 0;

  GG_HD int64_t at(int64_t row, int64_t block) const {
    return offset + layout.offset(first_row + row, block);
  }
};

// A product D [m,n] = A * B, the sum over k. In a weight gradient m is the problem's K, and k
// counts the group's rows.
struct Group {
  int m = 0, n = 0, k = 0;
  Region a, b, d;  // [m,k] or [k,m], [k,n] or [n,k], [m,n]
  BLayout b_layout = BLayout::kn;
  bool a_transposed = false;  // A is [k,m]
  int scale_block = 0;        // elements along K that share a scale; 0: no scales
  ScaleRegion sfa{}, sfb{};   // by row of A and by column of D

  // From an element of A to that of the next row of D, and of the next k.
  GG_HD int64_t a_m_step() const { return a_transposed ? 1 : a.ld; }
  GG_HD int64_t a_k_step() const { return a_transposed ? a.ld : 1; }
  // From an element of B to that of the next k, and of the next column of D.
  GG_HD int64_t b_k_step() const { return b_layout == BLayout::kn ? b.ld : 1; }
  GG_HD int64_t b_n_step() const { return b_layout == BLayout::kn ? 1 : b.ld; }
};

// Guard rows before and after every output, and rows of A that no group owns: what is there
// must not matter.
constexpr int kGuardRows = 128;

struct Layout {
  Product product = Product::forward;
  std::vector<Group> groups;
  int64_t a_elems = 0, b_elems = 0, d_elems = 0;  // whole buffers, guards included
  int64_t a_start = 0, b_start = 0, d_start = 0;  // first element of packed A, B and D
  int64_t b_group_stride = 0;                     // 0: one B for all groups, or rows of B
  int64_t sfa_bytes = 0, sfb_bytes = 0;           // whole buffers of scales, guards included
  int64_t sfa_start = 0;                          // byte of packed A's first scale
  int64_t rows = 0;                               // of packed A, as a launch sees it
  std::vector<int64_t> offsets;                   // [G+1]

  int longest_sum() const;  // the largest k
  std::vector<Region> a_regions() const;
  std::vector<Region> b_regions() const;
  std::vector<Region> d_regions() const;
};

// Packed rows: A is [sum M_g, K] and D [sum M_g, N] without gaps, B is [G,K,N] or [G,N,K], without
// G if shared. With block scales: SFA holds the scales of A's rows, SFB those of each group's N
// columns, group after group, both as ScaleLayout says; guard atoms of 128 rows surround SFA and
// follow SFB. D has `d_columns` in place of N where an epilogue makes more or fewer.
Layout packed_layout(const Shape& shape, BLayout b_layout = BLayout::kn,
                     BlockFormat scaled = BlockFormat::none, int d_columns = 0);
// Packed rows of A [sum M_g, K] and B [sum M_g, N]; D is [G,K,N].
Layout weight_gradient_layout(const Shape& shape);
// Every group has matrices of its own with leading dimensions larger than its columns (chapters
// 04 and 07b).
Layout scattered_layout(const Shape& shape, BLayout b_layout = BLayout::kn);

}  // namespace gg
