// SPDX-License-Identifier: MIT
//
// Chapter 06b: a warpgroup multiplies from shared memory, four products for each slice that TMA loads.
//
// G equal groups of M rows: A [G*M,K] and D [G*M,N] have the rows of all groups, B [G*K,N] those of all B[g]:
//     D[g*M + row, col] = sum over k of A[g*M + row, k] * B[g*K + k, col]

#pragma once

#include <type_traits>

#include "common/kernel/check.h"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/wgmma.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

using gg::ptx::Major, gg::ptx::Swizzle;

constexpr int BM = 64;        // rows of D that a WGMMA computes
constexpr int MMA_K = 16;     // values of k that it takes
constexpr int THREADS = 128;  // a warpgroup: four warps that issue each WGMMA together

// TMA's and WGMMA's swizzle for rows of so many bytes; 16 have none, others are refused below.
template <int ROW_BYTES>
constexpr CUtensorMapSwizzle MAP_SWIZZLE = ROW_BYTES == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                           : ROW_BYTES == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                           : ROW_BYTES == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                             : CU_TENSOR_MAP_SWIZZLE_NONE;
template <int ROW_BYTES>
constexpr Swizzle DESC_SWIZZLE = ROW_BYTES == 128  ? Swizzle::b128
                                 : ROW_BYTES == 64 ? Swizzle::b64
                                 : ROW_BYTES == 32 ? Swizzle::b32
                                                   : Swizzle::none;

template <class D>
__device__ uint32_t pack(float left, float right) {  // two neighbours of 16 bits
  const D pair[2] = {gg::from_float<D>(left), gg::from_float<D>(right)};
  uint32_t bits;
  memcpy(&bits, pair, 4);
  return bits;
}

// Room for at least 8 blocks, 64 registers per thread: some multiply while others wait for slices.
template <class T, class D, int BN, int BK>
__global__ void __launch_bounds__(THREADS, 8)
    grouped_gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, D* d,
                 int m, int n, int k) {
  static_assert(BM == 64 && MMA_K == 16 && THREADS == 128, "fixed by WGMMA");
  static_assert(sizeof(T) == 2, "each `* 2` below is the size of an element of A or B");
  static_assert(BK == 64 || BK == 32 || BK == 16, "rows of A's box: 128, 64 or 32 bytes, swizzled");
  static_assert(BN == 64 || BN == 32 || BN == 16 || BN == 8, "rows of B's box: 128, 64, 32 or 16 bytes");
  constexpr int A_TILE_BYTES = BM * BK * 2, B_TILE_BYTES = BK * BN * 2;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const int group = int(blockIdx.z), k_tiles = k / BK;
  // No overflow: A has fewer than 2^31 rows (the harness), and B (most_b_rows in main.cu).
  const int row0 = gg::ptx::keep(group * m + int(blockIdx.y) * BM);  // the tile's first row, in A and in D
  const int b_row0 = gg::ptx::keep(group * k);                       // the group's first row in B
  const int col0 = gg::ptx::keep(int(blockIdx.x) * BN);

  // 1024, the longest pattern: TMA swizzles by address, and no descriptor has a base offset.
  __shared__ __align__(1024) unsigned char a_tile[A_TILE_BYTES];  // [BM][BK], 8 KB at most, swizzled
  __shared__ __align__(1024) unsigned char b_tile[B_TILE_BYTES];  // [BK][BN], 8 KB at most, swizzled
  __shared__ uint64_t full;                                       // both parts of a slice have landed
  const uint32_t a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(a_tile));
  const uint32_t b_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(b_tile));
  const uint32_t full_addr = gg::ptx::keep(gg::ptx::shared_addr(&full));

  // [load]
  // One thread orders a slice. The maps know nothing of groups: only the coordinates do.
  auto load = [&](int k_tile) {
    const int k0 = k_tile * BK;
    gg::ptx::mbarrier_arrive_expect_tx(full_addr, A_TILE_BYTES + B_TILE_BYTES);
    gg::ptx::tma_load_2d(a_tile_addr, &a_map, k0, row0, full_addr);
    gg::ptx::tma_load_2d(b_tile_addr, &b_map, col0, b_row0 + k0, full_addr);
  };
  if (warp == 0 && gg::ptx::elect()) {
    gg::ptx::prefetch_tensormap(&a_map);
    gg::ptx::prefetch_tensormap(&b_map);
    gg::ptx::mbarrier_init(full_addr, 1);
    gg::ptx::fence_mbarrier_init();
    load(0);
  }
  __syncthreads();  // the mbarrier is there for all threads
  // [/load]

  // [descriptors]
  // Rows of A's part run along k, rows of B's along n. stride_bytes: from eight rows, a pattern, to
  // the eight below. For rows of 16 bytes (BN = 8), unswizzled, PTX calls that leading_bytes.
  constexpr gg::ptx::TileLayout A_LAYOUT = {.swizzle = DESC_SWIZZLE<BK * 2>, .stride_bytes = 8 * BK * 2};
  constexpr gg::ptx::TileLayout B_LAYOUT = {.swizzle = DESC_SWIZZLE<BN * 2>,
                                            .leading_bytes = BN == 8 ? 8 * BN * 2 : 0,
                                            .stride_bytes = BN == 8 ? 0 : 8 * BN * 2};
  const gg::ptx::WgmmaDesc a_desc = gg::ptx::wgmma_desc(a_tile_addr, A_LAYOUT);
  const gg::ptx::WgmmaDesc b_desc = gg::ptx::wgmma_desc(b_tile_addr, B_LAYOUT);
  // [/descriptors]

  // [compute]
  float acc[BN / 2];  // 64 x BN sums over 128 threads; the first WGMMA sets them
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    gg::ptx::mbarrier_wait_parity(full_addr, k_tile % 2);  // this slice has landed
    gg::ptx::wgmma_fence(acc);
#pragma unroll
    for (int kk = 0; kk < BK; kk += MMA_K) {  // along a row of A, down the rows of B
      gg::ptx::wgmma<T, T, Major::k, Major::mn>(acc, gg::ptx::wgmma_advance(a_desc, kk * 2),
                                                gg::ptx::wgmma_advance(b_desc, kk * BN * 2),
                                                k_tile > 0 || kk > 0);
    }
    gg::ptx::wgmma_commit_group();
    gg::ptx::wgmma_wait_group<0>(acc);
    // No __syncthreads: a product is not done before all four warps have started it, and then it is
    // done for all (our conclusion, not PTX's). So the slice has been read, and all warps are past
    // this phase's wait. If anything but WGMMA read the slice, a __syncthreads would have to stand
    // here. Lanes that skip `load` wait for the elected one at the next wgmma_fence (.sync).
    if (k_tile + 1 < k_tiles && warp == 0 && gg::ptx::elect()) load(k_tile + 1);
  }
  // [/compute]

  // [store]
  // A lane has two neighbours of every 8 columns, in its upper row and in the row 8 below. In 16 bits
  // two lanes trade: the even one then stores four neighbours of the upper row, the odd one of the lower.
  D* d_first = d + int64_t(row0 + warp * 16 + lane / 4) * n + col0;
#pragma unroll
  for (int j = 0; j < BN / 8; ++j) {
    const float* sums = acc + j * 4;
    if constexpr (sizeof(D) == 4) {
      D* here = d_first + j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(here) = {sums[0], sums[1]};
      *reinterpret_cast<float2*>(here + int64_t(8) * n) = {sums[2], sums[3]};
    } else {
      const bool odd = lane % 2;
      const uint32_t upper = pack<D>(sums[0], sums[1]), lower = pack<D>(sums[2], sums[3]);
      const uint32_t other = __shfl_xor_sync(~0u, odd ? upper : lower, 1);
      D* here = d_first + (odd ? int64_t(8) * n : 0) + j * 8 + lane % 4 / 2 * 4;
      *reinterpret_cast<uint2*>(here) = odd ? uint2{other, lower} : uint2{upper, other};
    }
  }
  // [/store]
}

template <class T>
constexpr CUtensorMapDataType MAP_TYPE =
    std::is_same_v<T, bf16> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

template <class T, class D, int BN, int BK>
void launch_tiles(const T* a, const T* b, D* d, int groups, int m, int n, int k, cudaStream_t stream) {
  // [maps]
  const int64_t wide_groups = groups, wide_n = n, wide_k = k;
  const CUtensorMap a_map = gg::make_tensor_map({.type = MAP_TYPE<T>,
                                                 .data = a,
                                                 .dims = {wide_k, wide_groups * m},
                                                 .stride_bytes = {wide_k * 2},
                                                 .box = {BK, BM},
                                                 .swizzle = MAP_SWIZZLE<BK * 2>});
  const CUtensorMap b_map = gg::make_tensor_map({.type = MAP_TYPE<T>,
                                                 .data = b,
                                                 .dims = {wide_n, wide_groups * k},
                                                 .stride_bytes = {wide_n * 2},
                                                 .box = {BN, BK},
                                                 .swizzle = MAP_SWIZZLE<BN * 2>});
  grouped_gemm<T, D, BN, BK><<<dim3(n / BN, m / BM, groups), THREADS, 0, stream>>>(a_map, b_map, d, m, n, k);
  GG_CHECK(cudaGetLastError());
  // [/maps]
}

// `m`: a group's rows. main.cu refuses rests of `m` / 64 and `n` / 8. `bk` 0: 64 if it divides `k`.
template <class T, class D>
void launch(const T* a, const T* b, D* d, int groups, int m, int n, int k, int bk, cudaStream_t stream) {
  if (bk == 0) bk = k % 64 == 0 ? 64 : 16;
  GG_REQUIRE((bk == 64 || bk == 16) && k % bk == 0, "--tile-k %d: 64 or 16, and K=%d a multiple of it", bk,
             k);
  if (m == 0) return;  // a grid of no blocks is an error, not an empty launch
  // A new BN is one more case here; a new BK too, and a value above and in main.cu's tile-k.
  auto* launch_bn = n % 64 == 0   ? bk == 64 ? launch_tiles<T, D, 64, 64> : launch_tiles<T, D, 64, 16>
                      : n % 32 == 0 ? bk == 64 ? launch_tiles<T, D, 32, 64> : launch_tiles<T, D, 32, 16>
                      : n % 16 == 0 ? bk == 64 ? launch_tiles<T, D, 16, 64> : launch_tiles<T, D, 16, 16>
                      : bk == 64 ? launch_tiles<T, D, 8, 64>
                                  : launch_tiles<T, D, 8, 16>;
  launch_bn(a, b, d, groups, m, n, k, stream);
}

}  // namespace chapter
