// SPDX-License-Identifier: MIT
//
// The host makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "common/kernel/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

template <class C, class T, class D>
void launch_as(const T* a, const T* b, D* d, const gg::Offsets& offsets, int64_t rows, int groups, int n,
               int k, bool accumulate, cudaStream_t stream) {
  // The maps know nothing of groups: past the last row of all come zeros.
  const Maps maps = {gg::make_swizzled_map(a, {k, rows}, {BOX, BK}),
                     gg::make_swizzled_map(b, {n, rows}, {BOX, BK})};
  gg::launch_kernel({.grid = dim3(unsigned(gg::multiprocessors() / C::CLUSTER * C::CLUSTER)),
                     .threads = C::THREADS,
                     .shared_bytes = C::SHARED_BYTES,
                     .stream = stream,
                     .cluster = C::CLUSTER,
                     .dependent = true},
                    weight_gradient<C, T, D>, maps, d, offsets, groups, n, k, accumulate, next_counter());
}

// A [rows,K], B [rows,N], D [G,K,N] and offsets [G+1] on the device. `accumulate`: adds to D. In pairs,
// where there is room for one.
template <class T, class D>
void launch(const T* a, const T* b, D* d, const gg::Offsets& offsets, int64_t rows, int groups, int n, int k,
            bool accumulate, cudaStream_t stream) {
  auto* const launch_pairs =
      gg::multiprocessors() > 1 ? launch_as<Config<7, 2>, T, D> : launch_as<Config<7, 1>, T, D>;
  launch_pairs(a, b, d, offsets, rows, groups, n, k, accumulate, stream);
}

}  // namespace chapter
