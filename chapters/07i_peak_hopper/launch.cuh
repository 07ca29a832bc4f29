// SPDX-License-Identifier: MIT
//
// What the host does: it chooses a configuration, makes tensor maps and launches. It knows how many groups
// and rows there are, not whose rows they are.

#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/check.h"
#include "common/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// Cycles, roughly: what a tile costs, times the rounds of tiles, as if all groups had the average's rows.
template <class C>
double estimate(const Problem& problem, int64_t m_total, int multiprocessors) {
  const double average = std::max(1.0, double(m_total) / problem.groups), k = double(problem.k) / C::SPLIT;
  const double rows = std::min(C::BM, round_up(int(std::min(average, 1e6)), STEP));
  const double tiles =
      problem.groups * std::ceil(average / C::BM) * std::ceil(problem.n / double(C::BN * C::CLUSTER));
  // Multiprocessors come in groups of up to 18, clusters within one: of four, 30 fit on an H200's 132.
  const int room = C::BLOCKS > 2 ? multiprocessors * 10 / 11 : multiprocessors;
  const double rounds = std::ceil(tiles / (room / C::BLOCKS));
  const double multiply = rows * C::BN * k * 2 / 4096;        // FLOP per cycle of a multiprocessor
  const double fetch = (rows + C::BN) * k * 2 / 64;           // bytes per cycle from the L2
  const bool half_empty = C::BM > STEP && rows <= C::BM / 2;  // stages: too little is on its way
  if (half_empty && C::SPLIT == 1) return INFINITY;  // split-K is for so few tiles that it is still better
  // Measured: around a tile; before the first one; to store the last, if it is stored in two halves.
  const double around = C::SPLIT > 2 ? 2800 : C::CLUSTER > 1 ? 700 : 1000, start = C::BLOCKS > 1 ? 2000 : 0;
  const double end = rows > HALF ? 2000 : 300;
  return start + rounds * (std::max(multiply, fetch) + around) + end;
}

// A [rows,K], B [G,N,K] or [G,K,N], D [rows,N] and offsets [G+1] on the device.
template <class T, class D, class C, Major B_MAJOR>
void launch_as(const T* a, const T* b, D* d, int64_t rows, Problem problem, int multiprocessors,
               bool dependent, cudaStream_t stream) {
  const int64_t n = problem.n, k = problem.k, row_bytes = k * 2;
  GG_REQUIRE(n % 8 == 0 && k % 8 == 0, "N=%d, K=%d: TMA and D's rows want multiples of 8", int(n), int(k));
  const auto map = [](const void* data, std::vector<int64_t> dims, std::vector<int64_t> strides,
                      std::vector<int> box) {
    return gg::make_tensor_map({.data = data,  // of 16 bits, whatever they mean
                                .dims = dims,
                                .stride_bytes = strides,
                                .box = box,
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  // B has three dimensions: behind a group's last column come zeros, and not the next group's weights.
  Maps<C::BM> maps = {};
  maps.b = B_MAJOR == Major::k ? map(b, {k, n, problem.groups}, {row_bytes, n * row_bytes}, {BK, C::BN, 1})
                               : map(b, {n, k, problem.groups}, {n * 2, n * row_bytes}, {64, BK, 1});
  if constexpr (sizeof(D) == 2) maps.d = map(d, {n, rows}, {n * 2}, {64, STEP});
  for (int height = STEP; height <= C::BM; height += STEP) {
    maps.a[height / STEP - 1] = map(a, {k, rows}, {row_bytes}, {BK, height / C::CLUSTER});
  }
  auto* kernel = grouped_gemm<T, D, C, B_MAJOR>;
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SHARED_BYTES));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = dependent;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {C::BLOCKS, 1, 1};
  const int blocks = multiprocessors / C::BLOCKS * C::BLOCKS;
  const cudaLaunchConfig_t config = {dim3(blocks), dim3(C::THREADS), C::SHARED_BYTES, stream, attributes, 2};
  if (problem.rows_each > 0) {
    const int steps = round_up(problem.rows_each, STEP) / STEP,
              tiles_m = round_up(problem.rows_each, C::BM) / C::BM;
    problem.share_each = {steps / tiles_m, steps % tiles_m};
  }
  problem.counter = next_counter();
  GG_CHECK(cudaLaunchKernelEx(&config, kernel, maps, d, problem));
}

// `m_total`: the last offset. `tile` 0x0: as estimated, the later one of equals. 256x128 in pairs, where
// there is room for one: smaller tiles lose more at a cluster's start than it saves. 64x64: K in four shares.
// `nk`: the layout of B. `dependent`: the launch may begin under the one before.
template <class T, class D>
void launch(const T* a, const T* b, D* d, int64_t rows, int64_t m_total, const Problem& problem, bool nk,
            gg::Tile tile, bool dependent, cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  decltype(&launch_as<T, D, Config<2, 256, 4>, Major::k>) best = nullptr;
  double least = INFINITY;
  // [choose]
  const auto consider = [&]<class C>(C) {
    if (multiprocessors < C::BLOCKS || (tile.m && !(tile.m == C::BM && tile.n == C::BN))) return;
    const double cycles = tile.m ? 0 : estimate<C>(problem, m_total, multiprocessors);
    if (cycles > least) return;  // equal: the later one
    least = cycles;
    best = nk ? launch_as<T, D, C, Major::k> : launch_as<T, D, C, Major::mn>;
  };
  consider(Config<2, 256, 4>());
  consider(Config<2, 256, 4, 2>());
  consider(Config<2, 128, 6>());
  consider(Config<2, 64, 8>());
  consider(Config<2, 32, 9>());
  consider(Config<1, 128, 8>());
  consider(Config<1, 32, 9>());
  consider(Config<1, 64, 7, 1, 2>());
  consider(Config<1, 64, 6, 1, 4>());
  // [/choose]
  GG_REQUIRE(best, "--tile %dx%d: its blocks want more than %d multiprocessors", tile.m, tile.n,
             multiprocessors);
  best(a, b, d, rows, problem, multiprocessors, dependent, stream);
}

}  // namespace chapter
