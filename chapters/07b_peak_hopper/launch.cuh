// SPDX-License-Identifier: MIT
//
// Chapter 07b: which tile, how many stages, which maps: all that the host decides. It knows how many groups
// and rows there are, not whose rows they are.

#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>
#include <vector>

#include "common/check.h"
#include "common/harness.cuh"
#include "common/tensor_map.h"
#include "kernel.cuh"

namespace chapter {

inline const std::vector<gg::Idea> IDEAS = {
    {"multicast", "pairs of blocks load a slice of A once for both"},
    {"overlap", "half of a tall tile is stored under the next one's products"},
    {"stagger", "the two consumers of a tall tile begin and end it one after the other"},
    {"tail", "the last round of tiles is filled; where groups differ the last tiles are halved"},
    {"shares", "a group's rows are shared out equally over its tiles"},
    {"bands", "tiles in bands of 8 rows, for the L2"},
    {"narrow", "tiles with few rows multiply and load only those"},
    {"hints", "D, and an A that is read once, leave the L2 first"},
    {"pdl", "a launch begins while the one before ends"},
    {"claims", "who is done first has the next tile, not who is next in turn"},
    {"guess", "the first slices are asked for as if groups were equal, before the offsets are there"},
    {"split", "where tiles are few, two or four blocks have one together, each a part of K"},
    {"sizes", "tiles smaller than 256x128 where they are quicker"},
};

inline Ideas ideas_of(const gg::Problem& p) {
  const auto on = [&](const char* idea) { return !p.is_off(idea); };
  return {on("multicast"), on("overlap"), on("stagger"), on("tail"),  on("shares"), on("bands"), on("narrow"),
          on("hints"),     on("pdl"),     on("claims"),  on("guess"), on("split"),  on("sizes")};
}

// Clocks, roughly: what a tile costs, times the rounds of tiles, as if all groups had the average's rows.
template <class C>
double estimate(const Problem& problem, int64_t m_total, int multiprocessors) {
  const double average = std::max(1.0, double(m_total) / problem.groups), k = double(problem.k) / C::SPLIT;
  const double rows = std::min(C::BM, round_up(int(std::min(average, 1e6)), STEP));
  const double tiles =
      problem.groups * std::ceil(average / C::BM) * std::ceil(problem.n / double(C::BN * C::CLUSTER));
  // Multiprocessors come in groups of up to 18, clusters within one: of four, 30 fit on an H200's 132.
  const int room = C::BLOCKS > 2 ? multiprocessors * 10 / 11 : multiprocessors;
  const double rounds = std::ceil(tiles / (room / C::BLOCKS));
  const double multiply = rows * C::BN * k * 2 / 4096;        // FLOP per clock of a multiprocessor
  const double fetch = (rows + C::BN) * k * 2 / 64;           // bytes per clock from the L2
  const bool half_empty = C::BM > STEP && rows <= C::BM / 2;  // stages: too little is on its way
  if (half_empty && C::SPLIT == 1) return INFINITY;  // parts are for so few tiles that it is still better
  // Measured: around a tile; before the first one; to store the last, if tall in two parts.
  const double around = C::SPLIT > 2 ? 2800 : C::CLUSTER > 1 ? 700 : 1000, start = C::BLOCKS > 1 ? 2000 : 0;
  const double end = rows > HALF ? 2000 : 300;
  return start + rounds * (std::max(multiply, fetch) + around) + end;
}

inline int next_counter() {
  static std::atomic<unsigned> launches = 0;
  return int(launches++ % COUNTERS);
}

template <class T>
constexpr CUtensorMapDataType MAP_TYPE =
    std::is_same_v<T, bf16> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

template <class T, class D, class C, Major B_MAJOR>
void launch_as(const T* a, const T* b, D* d, int64_t rows, Problem problem, int multiprocessors,
               cudaStream_t stream) {
  auto* kernel = grouped_gemm<T, D, C, B_MAJOR>;
  const int64_t element = sizeof(T), n = problem.n, k = problem.k;
  Maps<C::BM> maps = {};
  for (int height = STEP; height <= C::BM; height += STEP) {
    maps.a[height / STEP - 1] = gg::make_tensor_map({.type = MAP_TYPE<T>,
                                                     .data = a,
                                                     .dims = {k, rows},
                                                     .stride_bytes = {k * element},
                                                     .box = {BK, height / C::CLUSTER},
                                                     .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  }
  // Three dimensions, so that what lies behind K is zeros and not the next group's rows: 0 times NaN is NaN.
  const bool nk = B_MAJOR == Major::k;
  int columns = C::BN;
  for (CUtensorMap& map : maps.b) {
    map = gg::make_tensor_map(
        {.type = MAP_TYPE<T>,
         .data = b,
         .dims = nk ? std::vector<int64_t>{k, n, problem.groups} : std::vector<int64_t>{n, k, problem.groups},
         .stride_bytes = {(nk ? k : n) * element, n * k * element},
         .box = nk ? std::vector<int>{BK, columns, 1} : std::vector<int>{64, BK, 1},
         .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
    columns = 64;
  }
  if constexpr (sizeof(D) == 2) {
    maps.d = gg::make_tensor_map({.type = MAP_TYPE<D>,
                                  .data = d,
                                  .dims = {n, rows},
                                  .stride_bytes = {n * int64_t(sizeof(D))},
                                  .box = {64, CHUNK},
                                  .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  }
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SHARED_BYTES));
  if (problem.rows_each > 0) {
    const int steps = (problem.rows_each + STEP - 1) / STEP;
    const int tiles_m = (problem.rows_each + C::BM - 1) / C::BM;
    problem.share_each = {C::BM};
    if (problem.ideas.shares) problem.share_each = {steps / tiles_m * STEP, steps % tiles_m};
  }
  problem.counter = next_counter();
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {unsigned(C::BLOCKS), 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = unsigned(multiprocessors / C::BLOCKS * C::BLOCKS);
  config.blockDim = unsigned(C::THREADS);
  config.dynamicSmemBytes = C::SHARED_BYTES;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = problem.ideas.pdl ? 2 : 1;
  GG_CHECK(cudaLaunchKernelEx(&config, kernel, maps, d, problem));
}

// `rows`: of A in memory, at least the last offset. `m_total`: the last offset. `tile` 0x0: as estimated, the
// later one of equals; 256x128: in pairs, 64x64: K in four parts.
template <Major B_MAJOR, class T, class D>
void launch(const T* a, const T* b, D* d, int64_t rows, int64_t m_total, const Problem& problem,
            gg::Tile tile, cudaStream_t stream) {
  GG_REQUIRE(problem.k % 8 == 0, "K=%d: rows of A are %d bytes, TMA wants multiples of 16; pad K to %d",
             problem.k, problem.k * 2, round_up(problem.k, 8));
  GG_REQUIRE(problem.n % 8 == 0, "N=%d: rows of D are %d bytes, TMA wants multiples of 16; pad N to %d",
             problem.n, problem.n * 2, round_up(problem.n, 8));
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  decltype(&launch_as<T, D, Config<2, 256, 4, 1>, B_MAJOR>) best = nullptr;
  double least = INFINITY;
  const auto consider = [&]<class C>(C) {
    const bool wanted = tile.m ? tile.m == C::BM && tile.n == C::BN : problem.ideas.sizes || C::BM == 256;
    if (!wanted || multiprocessors < C::BLOCKS) return;
    if ((C::CLUSTER > 1 && !problem.ideas.multicast) || (C::SPLIT > 1 && !problem.ideas.split)) return;
    const double clocks = tile.m ? 0 : estimate<C>(problem, m_total, multiprocessors);
    if (clocks > least) return;  // equal: the later one
    least = clocks;
    best = launch_as<T, D, C, B_MAJOR>;
  };
  consider(Config<2, 256, 4, 1>());
  consider(Config<2, 256, 4, 2>());
  consider(Config<2, 128, 6, 1>());
  consider(Config<2, 64, 8, 1>());
  consider(Config<2, 32, 9, 1>());
  consider(Config<1, 128, 8, 1>());
  consider(Config<1, 32, 9, 1>());
  consider(Config<1, 64, 7, 1, 2>());
  consider(Config<1, 64, 6, 1, 4>());
  GG_REQUIRE(best, "--tile %dx%d: its blocks want what --off names, or more than %d multiprocessors", tile.m,
             tile.n, multiprocessors);
  best(a, b, d, rows, problem, multiprocessors, stream);
}

template <class T, class D>
void launch(const gg::Problem& p, cudaStream_t stream) {
  p.with_offsets([&](const auto* offsets) {
    const auto call = p.b_layout() == gg::BLayout::nk ? launch<Major::k, T, D> : launch<Major::mn, T, D>;
    const Ideas ideas = ideas_of(p);
    const int64_t m_total = p.layout().offsets.back();
    const int rows_each = ideas.guess && m_total % p.groups() == 0 ? int(m_total / p.groups()) : 0;
    call(p.a<T>(), p.b<T>(), p.d<D>(), p.rows(), m_total,
         {offsets, sizeof(*offsets) == 8, p.groups(), p.n(), p.k(), ideas, rows_each}, p.tile(), stream);
  });
}

}  // namespace chapter
