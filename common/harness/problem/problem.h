// SPDX-License-Identifier: MIT
//
// One grouped GEMM problem as a launch sees it: D_g[M_g,N_g] = A_g[M_g,K_g] * B_g[K_g,N_g] for
// every group g. Every kernel is compiled with this header, so it reads no more of the standard
// library than it must.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "common/harness/problem/epilogue.h"
#include "common/harness/problem/operands.h"
#include "common/kernel/types.cuh"

namespace gg {

// For who reads more of a problem than a launch does.
struct Layout;    // layout.h
struct Request;   // request.h
struct IdeasOff;  // request.h

// Does a chapter take groups of their own M, N and K, in matrices of their own: in every problem,
// or where --n or --k lists one number per group or --in holds a_00000.npy, and else packed rows?
enum class OwnSizes { never, always, when_listed };

// Views of a problem: what only some chapters read. All pointers are in the memory of the machine
// that runs the launch, and null where the problem has no such tensor.
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
// Bytes, as ScaleLayout says: of A's rows() rows, and of the N columns of each group.
struct Scales {
  const uint8_t *sfa = nullptr, *sfb = nullptr;
};
// Discrete weights: b() and scaled().sfb are null, and here are arrays of G addresses, each a
// multiple of 16. Another launch may find other addresses there.
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
  uint8_t* sfd_col = nullptr;                     // ScaleLayout{N, ceil(rows()/32)}, or by expert
  void* c = nullptr;                              // [rows(),N] of formats().c
  Format bias_format = Format::bf16;
  bool discrete_col_sfd = false;
  Activation activation = Activation::swiglu;
  bool butterfly = false;
};

// All pointers but host_offsets are in the memory of the machine that runs the launch.
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
  const Offsets& offsets() const { return offsets_; }            // [G+1]
  const int32_t* host_offsets() const { return host_offsets_; }  // null from chapter 05a on
  int groups() const { return groups_; }
  int n() const { return n_; }
  int k() const { return k_; }
  int64_t b_group_stride() const { return b_group_stride_; }  // 0: one B for all groups
  // Rows of packed A in memory: the last offset or more.
  int64_t rows() const { return rows_; }
  // Rows of all groups: the last offset.
  int64_t m_total() const { return m_total_; }
  // Known to a caller beforehand: the rows of every group where all have as many, else 0. A
  // recorded launch may be replayed with other offsets, so a kernel looks for itself.
  int rows_each() const { return rows_each_; }

  const Layout& layout() const { return *layout_; }

  const OwnGroups& own() const { return own_; }
  const Scales& scaled() const { return scales_; }
  const DiscreteB& discrete() const { return discrete_; }
  const EpilogueTensors& epilogue() const { return epilogue_; }

  // The reader's request.
  const Request& request() const { return *request_; }
  const Formats& formats() const { return formats_; }
  BLayout b_layout() const { return b_layout_; }
  ClusterTileShape tile() const { return tile_; }
  int tile_k() const { return tile_k_; }  // 0: the chapter chooses
  int blocks() const { return blocks_; }  // of a persistent kernel; 0: the chapter chooses
  bool dynamic_schedule() const { return dynamic_schedule_; }
  // Did the reader switch this idea off? The chapter lists it among its ideas.
  bool is_off(const char* idea) const;
  Problem with_tile(const ClusterTileShape& tile) const;
  Problem with_ideas(const IdeasOff& off) const;  // instead; lives no longer than `off`

 private:
  friend class Buffers;  // buffers.h fills these in
  const void *a_ = nullptr, *b_ = nullptr;
  void* d_ = nullptr;
  Offsets offsets_{};
  const int32_t* host_offsets_ = nullptr;
  int groups_ = 0, n_ = 0, k_ = 0, rows_each_ = 0;
  int64_t b_group_stride_ = 0, rows_ = 0, m_total_ = 0;
  Formats formats_{};
  BLayout b_layout_ = BLayout::kn;
  ClusterTileShape tile_{};
  int tile_k_ = 0, blocks_ = 0;
  bool dynamic_schedule_ = false;
  const Layout* layout_ = nullptr;
  const Request* request_ = nullptr;
  const IdeasOff* ideas_off_ = nullptr;
  OwnGroups own_;
  Scales scales_;
  DiscreteB discrete_;
  EpilogueTensors epilogue_;
};

}  // namespace gg
