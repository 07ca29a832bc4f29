// SPDX-License-Identifier: MIT
//
// The functions that a shared library exports to be timed beside a chapter:
// `--peer PATH/libgg_peer_NAME.so` loads it, and NAME is the peer's name in results. Plain C, so
// that any compiler and any CUDA 13 can build one: plots/measure/peers has some. The harness calls
// prepare, changes the operands, then calls stage, launch and finish, and compares D with our own
// reference; a library whose D is wrong is not timed.

#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// D_g[M_g,N] = A_g[M_g,K] * B_g[K,N] for every group g.
struct GgPeerProblem {
  const void* a;  // device, [rows of all groups, k], row major
  const void* b;  // device, [groups, n, k]; [groups, k, n] if b_is_kn
  // On the device, [rows of all groups, n]; group g owns rows offsets[g] .. offsets[g+1]-1.
  void* d;
  const int32_t* offsets;       // device, groups + 1
  const int64_t* host_offsets;  // host, the same numbers; valid only during gg_peer_prepare
  int32_t groups, n, k, b_is_kn;
  const char* format;  // of A, B and D: "bf16" or "f16"
  // 1: it is timed in long rounds, each library at the clock that its own power allows.
  int32_t sustained;
};

// Sentences end without a full stop and live until the next call.

const char* gg_peer_version();  // "CUTLASS 4.3.0"

// A gated linear unit, which gg-fused (plots/measure/fused) times beside ours. B's columns
// are 32 gates, then their 32 ups, then the next gates; D is [rows of all groups, n / 2] of
// bf16. Its column j is swiglu of gate and up j: (x sigma(x)) y prob, where x and y are alpha
// times their sums.
struct GgPeerGlu {
  const float* alpha;  // device, groups
  const float* prob;   // device, rows of all groups
};

// A weight gradient: D_g = A_g^T B_g, where A [rows of all groups, k] and B [rows of all groups, n]
// are of `format` and D is [groups, k, n] of `d_format`; 0 for a group without rows.
struct GgPeerGradient {
  const char* d_format;  // "f32", or that of A and B
  int32_t accumulate;    // 1: D_g is added to what is there
};

// Not timed: tensor maps, workspaces, autotuning, which may write D. Called once per set of
// buffers: these are of the same sizes, so what autotuning found for a problem serves its other
// sets. Returns null, or one sentence why it cannot ("M=20: groups want multiples of 128 rows"),
// and then there is no state to release. A library may lack some of these functions, and is then
// not asked for what that computes.
const char* gg_peer_prepare(const struct GgPeerProblem* problem, void** state);
const char* gg_peer_prepare_glu(const struct GgPeerProblem* problem, const struct GgPeerGlu* glu,
                                void** state);
const char* gg_peer_prepare_gradient(const struct GgPeerProblem* problem,
                                     const struct GgPeerGradient* gradient, void** state);

// May be missing. Not timed: copies operands to where launch reads them, as with padded rows.
// Called after prepare, and whenever the operands have changed.
const char* gg_peer_stage(void* state, cudaStream_t stream);

// Timed, and captured in CUDA graphs: everything on this stream, no allocation, no synchronisation.
// A stream's first launch of a problem is never in a capture. Returns null, or what failed.
const char* gg_peer_launch(void* state, cudaStream_t stream);

// May be missing. Not timed: moves the result to D where launch leaves it elsewhere.
const char* gg_peer_finish(void* state, cudaStream_t stream);

void gg_peer_release(void* state);

#ifdef __cplusplus
}
#endif
