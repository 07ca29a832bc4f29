// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "kernel.cuh"
#include "maps.cuh"

namespace chapter {

template <class C>
void launch_as(const typename C::T* a, const uint8_t* sfa, const Weights<typename C::T>& weights,
               const Operands& operands, const int* ends, int64_t rows, int groups, int n, int k,
               bool dynamic, cudaStream_t stream) {
  // B and SFB may come by address (Weights): then this also launches the kernel that makes their maps.
  Maps maps = make_maps<C>(a, sfa, weights, rows, groups, n, k, stream);
  maps.d = output_map(operands.d_format, operands.d, rows, n);  // make_maps leaves this one empty
  auto* kernel = grouped_gemm<C>;
  const int multiprocessors = gg::multiprocessors();
  const int planners = groups < PLANNERS ? (groups + 31) / 32 * 32 : PLANNERS;
  GG_REQUIRE(multiprocessors >= C::BLOCKS, "--cluster %dx1 wants 2 multiprocessors", C::BLOCKS);
  // [dependent]
  // An ordinary launch: when `plan` begins, all earlier work on the stream has ended. grouped_gemm
  // relies on that for all that `plan` does not write. Put no kernel between the two: grouped_gemm
  // overlaps with the one directly before it, and waits for that one alone.
  plan<<<1, planners, 0, stream>>>(ends, n, groups, C::BM, BN);
  GG_CHECK(cudaGetLastError());
  // x: the rank in the cluster, y: which cluster. All roles rely on it.
  const dim3 grid(C::BLOCKS, unsigned(multiprocessors / C::BLOCKS));
  gg::launch_kernel({.grid = grid,
                     .threads = THREADS,
                     .shared_bytes = SHARED_BYTES,
                     .stream = stream,
                     .dependent = true},  // on `plan`
                    kernel, maps, operands, ends, groups, n, k, dynamic);
  // [/dependent]
}

// A [rows,K], B [G,N,K] or [G,K,N], of E2M1 two elements to a byte, the even one low; D [rows,N], ends[G]
// without a 0 in front; scales in atoms of 128 rows by four scale blocks of V k, SFA [rows/128][K/4V][512],
// SFB [G][N/128][K/4V][512], rounded up. Rows of A and of D are multiples of 16 bytes.
// An atom's bytes past K must not be NaN, 0xff in UE8M0 and 0x7f in UE4M3: zeros times NaN are NaN.
template <class Scale, int V, class T>
void launch(const T* a, const uint8_t* sfa, const Weights<T>& weights, const Operands& operands,
            const int* ends, int64_t rows, int groups, int n, int k, gg::ClusterTileShape tile, bool dynamic,
            cudaStream_t stream) {
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  if (rows == 0) return;  // there is no tensor to map
  constexpr int IN_BYTE = Config<T, Scale, V, 1, 1>::IN_BYTE;
  const int d_bits = gg::format_info(operands.d_format).bits;
  GG_REQUIRE(n * d_bits % 128 == 0 && k % (16 * IN_BYTE) == 0,
             "N=%d, K=%d: TMA wants multiples of %d for K, of %d for N", n, k, 16 * IN_BYTE, 128 / d_bits);
  const int blocks = tile.cluster, cta_group = tile.m / BLOCK_ROWS;
  GG_REQUIRE((blocks == 1 || blocks == 2) && (cta_group == 1 || cta_group == blocks) &&
                 tile.m % BLOCK_ROWS == 0 && tile.n == BN,
             "--tile %dx%d --cluster %dx1: 256x256 with 2x1, 128x256 with 1x1 or 2x1", tile.m, tile.n,
             blocks);
  auto* launch_tile = cta_group == 2 ? launch_as<Config<T, Scale, V, 2, 2>>
                      : blocks == 2  ? launch_as<Config<T, Scale, V, 2, 1>>
                                     : launch_as<Config<T, Scale, V, 1, 1>>;
  launch_tile(a, sfa, weights, operands, ends, rows, groups, n, k, dynamic, stream);
}

}  // namespace chapter
