// SPDX-License-Identifier: MIT
//
// The host makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

struct Swiglu {
  __device__ gg::epilogue::GluGradient operator()(float gate, float up, float y, float prob) const {
    return gg::epilogue::swiglu_gradient(gate, up, y, prob);
  }
};
struct Geglu {
  __device__ gg::epilogue::GluGradient operator()(float gate, float up, float y, float prob) const {
    return gg::epilogue::geglu_gradient(gate, up, y, prob);
  }
};

struct Tensors {      // on the device
  const bf16 *a, *b;  // [rows,K], [G,K,N]
  const bf16* c;      // [rows,2N]
  Operands operands;
  bf16* d;               // [rows,2N]
  float *dprob, *dbias;  // [rows], [G,2N]
  void* workspace;       // of Parts::bytes
};
struct Sizes {
  int64_t rows;  // in memory: the last offset or more
  int groups, n, k;
};

// C or D [rows,columns], as chapter 10a's A and B. Element (c, r, s) is column c of row s + r - BOX:
// each s has a window, the BOX rows before row s, and r counts rows in it. What a box has past the
// window's end is outside the map: TMA loads zeros for it, and does not store it. For s < BOX a
// window begins before `data`, and so does the map. These rows are neither read nor written: all
// rows that a box has inside its window are its tile's.
// [map]
inline CUtensorMap token_map(const bf16* data, int64_t rows, int columns) {
  const int64_t row_bytes = int64_t(columns) * int64_t(sizeof(bf16));
  const auto begin = reinterpret_cast<uintptr_t>(data) - uintptr_t(BOX * row_bytes);
  return gg::make_tensor_map({.data = reinterpret_cast<const void*>(begin),
                              .dims = {columns, BOX, rows + 1},
                              .stride_bytes = {row_bytes, row_bytes},
                              .box = {BOX, BOX, 1},
                              .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}
// [/map]

template <class C, class Activation>
void launch_as(const Tensors& t, const gg::Offsets& offsets, const Sizes& sizes, cudaStream_t stream) {
  const auto [rows, groups, n, k] = sizes;
  // B has three dimensions: after a group's last k TMA reads zeros, and not the
  // next group's weights.
  const Maps maps = {.a = gg::make_swizzled_map(t.a, {k, rows}, {BK, C::SHARE}),
                     .b = gg::make_swizzled_map(t.b, {n, k, groups}, {BOX, BK, 1}),
                     .c = token_map(t.c, rows, 2 * n),
                     .d = token_map(t.d, rows, 2 * n)};
  gg::launch_kernel({.grid = dim3(unsigned(gg::multiprocessors() / C::CLUSTER * C::CLUSTER)),
                     .threads = C::THREADS,
                     .shared_bytes = C::SHARED_BYTES,
                     .stream = stream,
                     .cluster = C::CLUSTER,
                     .dependent = true},
                    glu_gradient<C, Activation>, maps, t.operands, Parts::in(t.workspace, rows, n), offsets,
                    groups, int(rows), n, k, next_counter());
}

// dprob and dbias of their parts.
inline void add(const Tensors& t, const gg::Offsets& offsets, const Sizes& sizes, cudaStream_t stream) {
  const auto [rows, groups, n, k] = sizes;
  gg::launch_kernel({.grid = dim3(unsigned(groups * blocks_for(2 * n) + blocks_for(rows))),
                     .threads = ADDING_THREADS,
                     .shared_bytes = 0,
                     .stream = stream,
                     .dependent = true},
                    add_parts, Parts::in(t.workspace, rows, n), t.dprob, t.dbias, offsets, groups, int(rows),
                    n);
}

// In pairs of blocks, where the device has room for one.
inline void launch(const Tensors& t, const gg::Offsets& offsets, const Sizes& sizes, bool geglu,
                   cudaStream_t stream) {
  if (sizes.rows > 0) {  // else there is no tensor to map
    const bool pairs_of_blocks = gg::multiprocessors() > 1;
    auto* const of_swiglu =
        pairs_of_blocks ? launch_as<Config<5, 2>, Swiglu> : launch_as<Config<5, 1>, Swiglu>;
    auto* const of_geglu = pairs_of_blocks ? launch_as<Config<5, 2>, Geglu> : launch_as<Config<5, 1>, Geglu>;
    (geglu ? of_geglu : of_swiglu)(t, offsets, sizes, stream);
  }
  add(t, offsets, sizes, stream);
}

}  // namespace chapter
