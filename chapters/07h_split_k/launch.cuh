// SPDX-License-Identifier: MIT
//
// The host chooses a configuration, makes tensor maps and launches.

#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/check.h"
#include "common/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

// Cycles, roughly: rounds of tiles, times what a tile takes. Whose rows they are, the host does not know: a
// third of the groups each is taken for 0.2, 0.6 and 2.2 times the average, about as routers deal rows out.
template <class C>
double estimate(const Problem& problem, int64_t m_total, int multiprocessors) {
  const double average = std::max(1.0, 1.0 * m_total / problem.groups),
               slices = std::ceil(problem.k / double(BK * C::SPLIT));
  const double around = C::SPLIT > 2 ? 2800 : C::CLUSTER > 1 ? 700 : 1000;       // measured: each tile's
  const double ends = (C::BLOCKS > 1 ? 2000 : 0) + (C::BM > HALF ? 3500 : 300);  // the launch's
  double tiles = 0, cycles = 0, longest = 0;  // of one column of tiles, three groups
  for (const double share : {0.2, 0.6, 2.2}) {
    const double group = share * average, tiles_m = std::ceil(group / C::BM);
    const int rows = round_up(int(std::ceil(group / tiles_m)), STEP);
    const int multiply = rows * C::BN / 32;                          // a slice's products, 4096 FLOP a cycle
    const int fetch = (rows / C::CLUSTER + C::BN) * ROW_BYTES / 56;  // bytes a cycle from the L2
    const double tile = slices * std::max({multiply, fetch, 2600 / C::STAGES}) + around;  // a load: 2600
    tiles += tiles_m, cycles += tiles_m * tile, longest = std::max(longest, tile);
  }
  // Multiprocessors come in groups of up to 18, clusters within one: of four, 30 fit on an H200's 132.
  const int workers = (C::BLOCKS > 2 ? multiprocessors * 10 / 11 : multiprocessors) / C::BLOCKS;
  const double rounds = tiles * problem.groups / 3 * ((problem.n - 1) / (C::BN * C::CLUSTER) + 1) / workers;
  return ends + (rounds <= 1 ? longest : (rounds + std::ceil(rounds)) / 2 * cycles / tiles);
}

// A [rows,K], B [G,N,K], D [rows,N] and offsets [G+1] on the device.
template <class T, class C>
void launch_as(const T* a, const T* b, T* d, int64_t rows, Problem problem, int multiprocessors,
               cudaStream_t stream) {
  const int64_t n = problem.n, k = problem.k, row_bytes = k * 2;
  GG_REQUIRE(n % 8 == 0 && k % 8 == 0, "N=%d, K=%d: TMA and D's rows want multiples of 8", int(n), int(k));
  const auto map = [](const T* data, std::vector<int64_t> dims, std::vector<int64_t> strides,
                      std::vector<int> box) {
    return gg::make_tensor_map({.data = data,  // of 16 bits, whatever they mean
                                .dims = dims,
                                .stride_bytes = strides,
                                .box = box,
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  };
  // B has three dimensions: behind a group's last column come zeros, and not the next group's weights.
  Maps<C::BM> maps = {};
  maps.b = map(b, {k, n, problem.groups}, {row_bytes, n * row_bytes}, {BK, C::BN, 1});
  maps.d = map(d, {n, rows}, {n * 2}, {64, STEP});
  for (int height = STEP; height <= C::BM; height += STEP) {
    maps.a[height / STEP - 1] = map(a, {k, rows}, {row_bytes}, {BK, height / C::CLUSTER});
  }
  auto* kernel = grouped_gemm<T, C>;
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SHARED_BYTES));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {C::BLOCKS, 1, 1};
  const int blocks = multiprocessors / C::BLOCKS * C::BLOCKS;
  const cudaLaunchConfig_t config = {dim3(blocks), dim3(C::THREADS), C::SHARED_BYTES, stream, attributes, 2};
  problem.counter = next_counter();
  GG_CHECK(cudaLaunchKernelEx(&config, kernel, maps, d, problem));
}

// `m_total`: the last offset. `tile` 0x0: as estimated, the later one of equals. 256x128 in pairs, where
// there is room for one: smaller tiles lose more at a cluster's start than it saves. 64x64: K in four shares.
template <class T>
void launch(const T* a, const T* b, T* d, int64_t rows, int64_t m_total, const Problem& problem,
            gg::Tile tile, cudaStream_t stream) {
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  decltype(&launch_as<T, Config<2, 256, 4>>) best = nullptr;
  double least = INFINITY;
  // [choose]
  const auto consider = [&]<class C>(C) {
    if (multiprocessors < C::BLOCKS || (tile.m && !(tile.m == C::BM && tile.n == C::BN))) return;
    const double cycles = tile.m ? 0 : estimate<C>(problem, m_total, multiprocessors);
    if (cycles > least) return;  // equal: the later one
    least = cycles;
    best = launch_as<T, C>;
  };
  consider(Config<2, 256, 4>());
  consider(Config<2, 256, 4, 2>());
  if (tile.m) consider(Config<2, 128, 6>()), consider(Config<2, 64, 8>()), consider(Config<2, 32, 9>());
  consider(Config<1, 64, 7, 1, 2>());
  consider(Config<1, 64, 6, 1, 4>());
  // [/choose]
  GG_REQUIRE(best, "--tile %dx%d: its blocks want more than %d multiprocessors", tile.m, tile.n,
             multiprocessors);
  best(a, b, d, rows, problem, multiprocessors, stream);
}

}  // namespace chapter
