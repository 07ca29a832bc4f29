// SPDX-License-Identifier: MIT
//
// One grouped GEMM problem: D_g[M_g,N_g] = A_g[M_g,K_g] * B_g[K_g,N_g] for every group g. `Shape` is what a
// reader types, `Layout` says where each group's matrices lie in the buffers, `Problem` is what a chapter's
// launch sees.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/block_scales.h"
#include "common/base/formats.h"
#include "common/problem/request.h"
#include "common/types.cuh"

namespace gg {

struct Shape {
  std::vector<int> m;           // rows of each group
  std::vector<int> n;           // one for all groups, or one per group
  std::vector<int> k;           // likewise
  std::string set{};            // the shape set it comes from, for tables and CSV
  bool shared_b = false;        // one B for all groups
  bool own_sizes = false;       // matrices of each group's own, by pointer and size arrays
  std::vector<int> unpadded{};  // where a set's groups were padded: the rows of each group before that
  int64_t rows = -1;            // rows of A and D in memory; -1: no more than the groups have
  int64_t b_stride = 0;         // elements from one group's B to the next; 0: one lies behind the other

  int groups() const { return int(m.size()); }
  int n_of(int group) const { return n[n.size() == 1 ? 0 : size_t(group)]; }
  int k_of(int group) const { return k[k.size() == 1 ? 0 : size_t(group)]; }
  int64_t m_total() const;
  int m_max() const;
  double flops() const;          // 2 * sum of M_g * N_g * K_g: useful rows only, padding left out
  std::string describe() const;  // "G=4 M=86 (0..64) N=256 K=128"
};

// Does a chapter take groups of their own M, N and K, in matrices of their own: in every problem, or where
// --n or --k lists one number per group or --in holds a_00000.npy, and else packed rows?
enum class OwnSizes { never, always, when_listed };

struct Region {  // a matrix inside a buffer, in elements
  int64_t offset = 0;
  int rows = 0, cols = 0;
  int64_t ld = 0;
};

// The scales of one group's rows of A or columns of B, inside the scales of a matrix, inside a buffer.
struct ScaleRegion {
  int64_t offset = 0;  // bytes from the buffer's start to the matrix's scales
  ScaleLayout layout;  // of the whole matrix: A of all groups, B of one
  int64_t first_row = 0;

  GG_HD int64_t at(int64_t row, int64_t block) const {
    return offset + layout.offset(first_row + row, block);
  }
};

struct Group {
  int m = 0, n = 0, k = 0;
  Region a, b, d;  // [m,k], [k,n] or [n,k], [m,n]
  BLayout b_layout = BLayout::kn;
  int scale_block = 0;       // elements along K that share a scale; 0: no scales
  ScaleRegion sfa{}, sfb{};  // by row of A and by column of D

  // From an element of B to that of the next k, and of the next column of D.
  GG_HD int64_t b_k_step() const { return b_layout == BLayout::kn ? b.ld : 1; }
  GG_HD int64_t b_n_step() const { return b_layout == BLayout::kn ? 1 : b.ld; }
};

// Guard rows before and after every output, and rows of A that no group owns: what is there must not matter.
constexpr int kGuardRows = 128;

struct Layout {
  std::vector<Group> groups;
  int64_t a_elems = 0, b_elems = 0, d_elems = 0;  // whole buffers, guards included
  int64_t a_start = 0, d_start = 0;               // first element of packed A and D
  int64_t b_group_stride = 0;                     // 0: one B for all groups
  int64_t sfa_bytes = 0, sfb_bytes = 0;           // whole buffers of scales, guards included
  int64_t sfa_start = 0;                          // byte of packed A's first scale
  int64_t rows = 0;                               // of packed A, as a launch sees it
  std::vector<int64_t> offsets;                   // [G+1]

  std::vector<Region> a_regions() const;
  std::vector<Region> b_regions() const;
  std::vector<Region> d_regions() const;
};

// Packed rows: A is [sum M_g, K] and D [sum M_g, N] without gaps, B is [G,K,N] or [G,N,K], without G if
// shared. With block scales: SFA holds the scales of A's rows, SFB those of each group's N columns, group
// after group, both as ScaleLayout says; guard atoms of 128 rows surround SFA and follow SFB. So many
// neighbouring columns of B make one of D.
Layout packed_layout(const Shape& shape, BLayout b_layout = BLayout::kn,
                     BlockFormat scaled = BlockFormat::none, int columns_of_b_per_d = 1);
// Every group has matrices of its own with leading dimensions larger than its columns (chapters 04 and 07b).
Layout scattered_layout(const Shape& shape, BLayout b_layout = BLayout::kn);

// Views of a problem: what only some chapters read. All pointers are in the memory of the machine that runs
// the launch, and null where the problem has no such tensor.
struct OwnGroups {  // groups of their own M, N and K, in matrices of their own: an entry per group
  const void *a = nullptr, *b = nullptr, *d = nullptr;  // arrays of addresses
  const int* sizes = nullptr;                           // [G,3]: M, N, K; null: rows are packed
  const int* leading_dims = nullptr;                    // [G,3]: lda, ldb, ldd

  template <class T>
  const T* const* a_ptrs() const {
    return static_cast<const T* const*>(a);
  }
  template <class T>
  const T* const* b_ptrs() const {
    return static_cast<const T* const*>(b);
  }
  template <class T>
  T* const* d_ptrs() const {
    return static_cast<T* const*>(d);
  }
};
struct Scales {  // bytes, as ScaleLayout says: of A's rows() rows, and of the N columns of each group
  const uint8_t *sfa = nullptr, *sfb = nullptr;
};
// Discrete weights: b() and scaled().sfb are null, and here are arrays of G addresses, each a multiple of 16.
// Another launch may find other addresses there.
struct DiscreteB {
  const void* b = nullptr;
  const uint8_t* const* sfb_ptrs = nullptr;

  template <class T>
  const T* const* b_ptrs() const {  // each B_g [N,K] or [K,N]
    return static_cast<const T* const*>(b);
  }
};
// D of glu and glu_hadamard has n() / 2 columns.
struct EpilogueTensors {
  const float *alpha = nullptr, *prob = nullptr;  // [G], [rows()]
  const void* bias = nullptr;                     // [G,N] of bias_format
  const float* norm_const = nullptr;              // [1]; null: D is not block-scaled
  const bf16* hadamard = nullptr;                 // [16,16], row-major
  float* amax = nullptr;                          // [G], starts as -inf
  void* d_col = nullptr;                          // [rows(),N], of D's type
  uint8_t* sfd_row = nullptr;                     // ScaleLayout{rows(), ceil(N/32)}
  uint8_t* sfd_col = nullptr;                     // ScaleLayout{N, ceil(rows()/32)}, or expert by expert
  void* c = nullptr;                              // [rows(),N] of formats().c
  Format bias_format = Format::bf16;
  bool discrete_col_sfd = false;
  Activation activation = Activation::swiglu;
  bool butterfly = false;
};

// A problem as a launch sees it. All pointers but host_offsets are in the memory of the machine that runs it.
class Problem {
 public:
  template <class T>
  const T* a() const {
    return static_cast<const T*>(a_);
  }
  template <class T>
  const T* b() const {
    return static_cast<const T*>(b_);
  }
  template <class T>
  T* d() const {
    return static_cast<T*>(d_);
  }
  Offsets offsets() const { return {offsets_, request_->wide_offsets}; }  // [G+1]
  const int32_t* host_offsets() const { return host_offsets_; }           // null from chapter 05a on
  int groups() const { return int(layout_->groups.size()); }
  int n() const { return n_; }
  int k() const { return k_; }
  int64_t b_group_stride() const { return layout_->b_group_stride; }
  // Rows of packed A in memory: the last offset or more.
  int64_t rows() const { return layout_->rows; }
  // Known to a caller beforehand: the rows of every group where all have as many, else 0. A recorded
  // launch may be replayed with other offsets, so a kernel looks for itself.
  int rows_each() const;
  const Layout& layout() const { return *layout_; }

  const OwnGroups& own() const { return own_; }
  const Scales& scaled() const { return scales_; }
  const DiscreteB& discrete() const { return discrete_; }
  const EpilogueTensors& epilogue() const { return epilogue_; }

  // The reader's request.
  const Request& request() const { return *request_; }
  const Formats& formats() const { return request_->formats; }
  BLayout b_layout() const { return request_->b_layout; }
  ClusterTileShape tile() const { return tile_; }
  int tile_k() const { return request_->tile_k; }
  int blocks() const { return request_->blocks; }
  bool dynamic_schedule() const { return request_->scheduler == Scheduler::dynamic; }
  // Did the reader switch this idea off? The chapter lists it among its ideas.
  bool is_off(const char* idea) const;
  Problem with_tile(const ClusterTileShape& tile) const;
  Problem with_ideas(const std::map<std::string, bool>& off) const;  // instead; lives no longer than `off`

 private:
  friend class Buffers;  // buffers.h fills these in
  const void *a_ = nullptr, *b_ = nullptr, *offsets_ = nullptr;
  void* d_ = nullptr;
  const int32_t* host_offsets_ = nullptr;
  const Layout* layout_ = nullptr;
  const Request* request_ = nullptr;
  const std::map<std::string, bool>* ideas_off_ = nullptr;
  ClusterTileShape tile_;
  int n_ = 0, k_ = 0;
  OwnGroups own_;
  Scales scales_;
  DiscreteB discrete_;
  EpilogueTensors epilogue_;
};

using Launch = std::function<void(const Problem&, cudaStream_t)>;

}  // namespace gg
