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
// D of glu and glu_hadamard has n() / 2 columns, that of glu_gradient 2 n().
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
  // An operand of glu_gradient: C as the forward pass made it, [rows(),2N] of formats().c.
  const void* saved_c = nullptr;
  float *dprob = nullptr, *dbias = nullptr;  // [rows()], [G,2N]
  Format bias_format = Format::bf16;
  bool discrete_col_sfd = false;
  Activation activation = Activation::swiglu;
  bool butterfly = false;
};

// Returns the bytes of scratch memory that a launch wants for so many rows in memory, groups and
// columns of B. The launch may write them as it likes, and finds no zeros there.
using WorkspaceBytes = size_t (*)(int64_t rows, int groups, int n);

// The parts of a Problem. All pointers but host_offsets, layout, request and ideas_off are in
// the memory of the machine that runs the launch; those four outlive the Problem.
struct ProblemParts {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  Offsets offsets{};
  const int32_t* host_offsets = nullptr;
  int groups = 0, n = 0, k = 0, rows_each = 0;
  int64_t b_group_stride = 0, rows = 0, m_total = 0;
  Formats formats{};
  BLayout b_layout = BLayout::kn;
  ClusterTileShape tile{};
  int blocks = 0;
  bool dynamic_schedule = false;
  bool accumulates = false;
  const Layout* layout = nullptr;
  const Request* request = nullptr;
  const IdeasOff* ideas_off = nullptr;
  OwnGroups own{};
  Scales scaled{};
  DiscreteB discrete{};
  EpilogueTensors epilogue{};
  void* workspace = nullptr;
};

class Problem {
 public:
  Problem() = default;
  explicit Problem(const ProblemParts& parts) : parts_(parts) {}

  template <class T>
  const T* a() const {
    return static_cast<const T*>(parts_.a);
  }
  template <class T>
  const T* b() const {
    return static_cast<const T*>(parts_.b);
  }
  template <class T>
  T* d() const {
    return static_cast<T*>(parts_.d);
  }
  const Offsets& offsets() const { return parts_.offsets; }            // [G+1]
  const int32_t* host_offsets() const { return parts_.host_offsets; }  // null from chapter 05a on
  int groups() const { return parts_.groups; }
  int n() const { return parts_.n; }
  int k() const { return parts_.k; }
  int64_t b_group_stride() const { return parts_.b_group_stride; }  // 0: one B for all groups
  // Rows of packed A in memory: the last offset or more.
  int64_t rows() const { return parts_.rows; }
  // Rows of all groups: the last offset.
  int64_t m_total() const { return parts_.m_total; }
  // Known to a caller beforehand: the rows of every group where all have as many, else 0. A
  // recorded launch may be replayed with other offsets, so a kernel looks for itself.
  int rows_each() const { return parts_.rows_each; }

  const Layout& layout() const { return *parts_.layout; }

  const OwnGroups& own() const { return parts_.own; }
  const Scales& scaled() const { return parts_.scaled; }
  const DiscreteB& discrete() const { return parts_.discrete; }
  const EpilogueTensors& epilogue() const { return parts_.epilogue; }
  // Has as many bytes as the chapter's `workspace_bytes` says, at a multiple of 256;
  // null: has none.
  void* workspace() const { return parts_.workspace; }

  // The reader's request.
  const Request& request() const { return *parts_.request; }
  const Formats& formats() const { return parts_.formats; }
  BLayout b_layout() const { return parts_.b_layout; }
  ClusterTileShape tile() const { return parts_.tile; }
  // Returns what the reader gave for one of the chapter's own numbers; 0: nothing,
  // the chapter chooses.
  int number(const char* name) const;
  int blocks() const { return parts_.blocks; }  // of a persistent kernel; 0: the chapter chooses
  bool dynamic_schedule() const { return parts_.dynamic_schedule; }
  bool accumulates() const { return parts_.accumulates; }  // is D added to, or overwritten?
  // Did the reader switch this idea off? The chapter lists it among its ideas.
  bool is_off(const char* idea) const;
  const ProblemParts& parts() const { return parts_; }
  Problem with_tile(const ClusterTileShape& tile) const;
  Problem with_ideas(const IdeasOff& off) const;  // instead; lives no longer than `off`

 private:
  ProblemParts parts_{};
};

}  // namespace gg
