// SPDX-License-Identifier: MIT
//
// The host checks limits, makes tensor maps and launches.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/launch.h"
#include "kernel.cuh"
#include "maps.cuh"

namespace chapter {

// A [rows,K], B [G,N,K], of E2M1 two elements to a byte, the even one low; ends[G] without a 0 in
// front; scales in atoms of 128 rows by four scale blocks of V k, SFA [rows/128][K/4V][512], SFB
// [G][N/128][K/4V][512], rounded up. N is a multiple of 2 * PART, K of 32, as main.cu has it for TMA.
// An atom's bytes past K must not be NaN, 0xff in UE8M0 and 0x7f in UE4M3: zeros times NaN are NaN.
template <class Scale, int V, class T>
void launch(const T* a, const uint8_t* sfa, const Weights<T>& weights, const Operands& operands,
            const int* ends, int64_t rows, int groups, int n, int k, gg::ClusterTileShape tile, bool dynamic,
            cudaStream_t stream) {
  using C = Config<T, Scale, V>;
  GG_REQUIRE(groups <= MAX_GROUPS, "G=%d: the schedule has room for %d groups", groups, MAX_GROUPS);
  // Otherwise a read may begin with ups, and store.cuh would take them for gates.
  GG_REQUIRE(n % (2 * PART) == 0, "N=%d: %d gates and their ups are %d columns", n, PART, 2 * PART);
  if (rows == 0) return;  // there is no tensor to map
  const int c_bits = gg::format_info(operands.c_format).bits;
  const int d_bits = gg::format_info(operands.d_format).bits;
  GG_REQUIRE(c_bits == d_bits, "C of %d bits, D of %d: both are stored through the same boxes", c_bits,
             d_bits);
  GG_REQUIRE(tile.m == BM && tile.n == BN && tile.cluster == CTA_GROUP, "--tile %dx%d: tiles are 256x256",
             tile.m, tile.n);
  // B and SFB may come by address (Weights): then this also launches the kernel that makes their maps.
  Maps maps = make_maps<C>(a, sfa, weights, rows, groups, n, k, stream);
  maps.c = output_map(operands.c_format, operands.c, rows, n);
  maps.d = output_map(operands.d_format, operands.d, rows, n / 2);
  auto* kernel = grouped_gemm<C>;
  const int multiprocessors = gg::multiprocessors();
  const int planners = groups < PLANNERS ? (groups + 31) / 32 * 32 : PLANNERS;
  GG_REQUIRE(multiprocessors >= CTA_GROUP, "a pair of blocks wants 2 multiprocessors, here is %d",
             multiprocessors);
  // [dependent]
  // An ordinary launch: when `plan` begins, all earlier work on the stream has ended. grouped_gemm
  // relies on that for all that `plan` does not write. Put no kernel between the two: grouped_gemm
  // overlaps with the one directly before it, and waits for that one alone.
  plan<<<1, planners, 0, stream>>>(ends, n, groups, BM, BN);
  GG_CHECK(cudaGetLastError());
  // x: the rank in the pair (`__cluster_dims__` in kernel.cuh), y: which pair. All roles rely on it.
  const dim3 grid(CTA_GROUP, unsigned(multiprocessors / CTA_GROUP));
  gg::launch_kernel({.grid = grid,
                     .threads = THREADS,
                     .shared_bytes = SHARED_BYTES,
                     .stream = stream,
                     .dependent = true},  // on `plan`
                    kernel, maps, operands, ends, groups, n, k, dynamic);
  // [/dependent]
}

}  // namespace chapter
