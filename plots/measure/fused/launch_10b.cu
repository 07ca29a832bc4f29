// SPDX-License-Identifier: MIT
//
// Chapter 10b's launch, from the folder that CMake names, and the unfused way: a kernel that reads
// the product and stores the same parts of sums, which the chapter's own kernel adds.

#include "common/kernel/types.cuh"
#include "rows.cuh"
#include "ways.h"
#define chapter chapter_10b  // all chapters have a namespace of this name
#include "launch.cuh"

namespace {

namespace ep = gg::epilogue;
using chapter_10b::BM, chapter_10b::BN, chapter_10b::Parts;
using rows::kAtOnce, rows::unpack;

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kChunks = BN / kAtOnce;      // of a row of a tile; a lane has one
constexpr int kRowsAtOnce = 32 / kChunks;  // of a warp
constexpr int kColumns = 2 * kAtOnce;      // of D: a lane's gates, then its ups

// The tile of D with this row of parts: rows of one group, or none.
struct TileRows {
  int group, row0, rows;
  __device__ TileRows(int slot, const gg::Offsets& offsets, int groups) {
    const int lane = int(threadIdx.x) % 32;
    int before = 0;  // groups whose first such row is this one or before
    for (int g = lane; g < (groups + 31) / 32 * 32; g += 32)
      before += __popc(__ballot_sync(~0u, g < groups && Parts::row(offsets[g], g) <= slot));
    group = before - 1;
    row0 = offsets[group] + (slot - Parts::row(offsets[group], group)) * BM;
    rows = min(BM, offsets[group + 1] - row0);
  }
};

// C and D [rows,2N] of the product y [rows,N], a tile of BM rows and BN columns of y a block. Each
// byte is read and written once.
__global__ void __launch_bounds__(kThreads)
    gradient(const uint4* y, const uint4* c, const float* alpha, const float* prob, Parts parts,
             gg::Offsets offsets, int groups, int all_rows, int n, uint4* d) {
  __shared__ float sums[kWarps][kRowsAtOnce][kChunks][kColumns];
  gg::ptx::griddepcontrol_launch_dependents();
  gg::ptx::griddepcontrol_wait();  // the product is there
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const TileRows tile(int(blockIdx.y), offsets, groups);
  if (tile.rows <= 0) return;
  const int chunk = lane % kChunks, column = int(blockIdx.x) * BN + chunk * kAtOnce;
  const int gate_at = ep::gate_column(column), up_at = ep::up_column(column);
  const bool inside = column < n;
  const float factor = alpha[tile.group];
  float dbias[kColumns] = {};
#pragma unroll 4
  for (int row = warp * kRowsAtOnce + lane / kChunks; row < BM; row += kWarps * kRowsAtOnce) {
    const int64_t at = tile.row0 + row;
    const bool is_ours = inside && row < tile.rows;
    float dprob = 0;
    if (is_ours) {
      float of_y[kAtOnce], gate[kAtOnce], up[kAtOnce];
      unpack(y[(at * n + column) / kAtOnce], of_y);
      unpack(c[(at * 2 * n + gate_at) / kAtOnce], gate);
      unpack(c[(at * 2 * n + up_at) / kAtOnce], up);
      const float of_row = prob[at];
      uint32_t gates[kAtOnce / 2], ups[kAtOnce / 2];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const ep::GluGradient all = ep::swiglu_gradient(gate[j], up[j], ep::scaled(of_y[j], factor), of_row);
        gate[j] = all.gate;
        up[j] = all.up;
        dprob += all.prob;
        dbias[j] += all.gate;
        dbias[kAtOnce + j] += all.up;
      }
#pragma unroll
      for (int j = 0; j < kAtOnce / 2; ++j) {
        gates[j] = ep::word_of<gg::Format::bf16>(gate + 2 * j);
        ups[j] = ep::word_of<gg::Format::bf16>(up + 2 * j);
      }
      d[(at * 2 * n + gate_at) / kAtOnce] = {gates[0], gates[1], gates[2], gates[3]};
      d[(at * 2 * n + up_at) / kAtOnce] = {ups[0], ups[1], ups[2], ups[3]};
    }
    for (int bit = 1; bit < kChunks; bit *= 2) dprob += __shfl_xor_sync(~0u, dprob, bit);
    if (chunk == 0 && row < tile.rows) parts.prob[int64_t(blockIdx.x) * all_rows + at] = dprob;
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) sums[warp][lane / kChunks][chunk][j] = dbias[j];
  __syncthreads();
  // A thread adds up a column of D.
  const int of_chunk = thread / kColumns, of_column = thread % kColumns;
  const int at = int(blockIdx.x) * BN + of_chunk * kAtOnce + of_column % kAtOnce;  // of y
  if (at >= n) return;
  float sum = 0;
  for (int i = 0; i < kWarps * kRowsAtOnce; ++i)
    sum += sums[i / kRowsAtOnce][i % kRowsAtOnce][of_chunk][of_column];
  parts.bias[int64_t(blockIdx.y) * 2 * n + (of_column < kAtOnce ? ep::gate_column(at) : ep::up_column(at))] =
      sum;
}
static_assert(kChunks * kColumns == kThreads);

chapter_10b::Tensors tensors_of(const gg::Problem& p) {
  const gg::EpilogueTensors& e = p.epilogue();
  return {p.a<bf16>(),       p.b<bf16>(),  static_cast<const bf16*>(e.saved_c),
          {e.alpha, e.prob}, p.d<bf16>(),  e.dprob,
          e.dbias,           p.workspace()};
}
chapter_10b::Sizes sizes_of(const gg::Problem& p) { return {p.rows(), p.groups(), p.n(), p.k()}; }

}  // namespace

size_t workspace_of_10b(int64_t rows, int groups, int n) { return Parts::bytes(rows, groups, n); }

void launch_10b(const gg::Problem& p, bf16*, cudaStream_t stream) {
  chapter_10b::launch(tensors_of(p), p.offsets(), sizes_of(p), false, stream);
}

void launch_glu_gradient(const gg::Problem& p, bf16* product, cudaStream_t stream) {
  launch_07l(p, product, stream);
  const chapter_10b::Tensors t = tensors_of(p);
  const int64_t slots = Parts::rows_of_bias(p.rows(), p.groups());
  gg::launch_kernel({.grid = dim3(unsigned(chapter_10b::columns_of_tiles(p.n())), unsigned(slots)),
                     .threads = kThreads,
                     .shared_bytes = 0,
                     .stream = stream,
                     .dependent = true},
                    gradient, reinterpret_cast<const uint4*>(product), reinterpret_cast<const uint4*>(t.c),
                    t.operands.alpha, t.operands.prob, Parts::in(t.workspace, p.rows(), p.n()), p.offsets(),
                    p.groups(), int(p.rows()), p.n(), reinterpret_cast<uint4*>(t.d));
  chapter_10b::add(t, p.offsets(), sizes_of(p), stream);
}
