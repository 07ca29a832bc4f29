// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "kernel.cuh"
#include "maps.cuh"

namespace chapter {

// A [rows,K], B [G,N,K], of E2M1 two elements to a byte, the even one low; D [rows,N], ends[G] without a 0 in
// front; scales in atoms of 128 rows by four scale blocks of V k, SFA [rows/128][K/4V][512], SFB
// [G][N/128][K/4V][512], rounded up. Rows of A and of D are multiples of 16 bytes.
// An atom's bytes past K must not be NaN, 0xff in UE8M0 and 0x7f in UE4M3: zeros times NaN are NaN.
template <class Scale, int V, class T>
void launch(const T* a, const uint8_t* sfa, const Weights<T>& weights, const Operands& operands,
            const int* ends, int64_t rows, int groups, int n, int k, gg::ClusterTileShape tile,
            cudaStream_t stream) {
  using C = Config<T, Scale, V>;
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  if (rows == 0) return;  // there is no tensor to map
  const int d_bits = gg::format_info(operands.d_format).bits;
  GG_REQUIRE(n * d_bits % 128 == 0 && k % (16 * C::IN_BYTE) == 0,
             "N=%d, K=%d: TMA wants multiples of %d for K, D's stores of %d for N", n, k, 16 * C::IN_BYTE,
             128 / d_bits);
  GG_REQUIRE(tile.m == BM && tile.n == BN && tile.cluster == CTA_GROUP, "--tile %dx%d: tiles are 256x256",
             tile.m, tile.n);
  // B and SFB may come by address (Weights): then this also launches the kernel that makes their maps.
  const Maps maps = make_maps<C>(a, sfa, weights, rows, groups, n, k, stream);
  auto* kernel = grouped_gemm<C>;
  const int multiprocessors = gg::multiprocessors();
  const int planners = groups < PLANNERS ? (groups + 31) / 32 * 32 : PLANNERS;
  GG_REQUIRE(multiprocessors >= CTA_GROUP, "a pair of blocks wants 2 multiprocessors, here is %d",
             multiprocessors);
  plan<<<1, planners, 0, stream>>>(ends, n, groups, BM, BN);
  GG_CHECK(cudaGetLastError());
  // x: the rank in the pair (`__cluster_dims__` in kernel.cuh), y: which pair. All roles rely on it.
  const dim3 grid(CTA_GROUP, unsigned(multiprocessors / CTA_GROUP));
  gg::launch_kernel({.grid = grid, .threads = THREADS, .shared_bytes = SHARED_BYTES, .stream = stream},
                    kernel, maps, operands, ends, groups, n, k);
}

}  // namespace chapter
