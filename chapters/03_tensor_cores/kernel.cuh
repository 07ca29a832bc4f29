// SPDX-License-Identifier: MIT
//
// Chapter 03: ldmatrix, mma.sync and cp.async in stages.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: tensor cores multiply a slice while copies of the next STAGES - 1 are under way.

#pragma once

#include <algorithm>

#include "common/kernel/check.h"
#include "common/kernel/ptx/cp_async.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BM = 128, BN = 128;  // a block's tile of D: multiplies an element of A BN times, of B BM times
constexpr int BK = 64;             // depth of a slice of A and B: 128 bytes of each row of A
constexpr int STAGES = 3;          // slices in shared memory: 96 KB, which every GPU from 8.0 on has
constexpr int VEC = 8;             // elements of a chunk: 16 bytes, the most that one cp.async copies
// A block has a warp for each of a multiprocessor's four schedulers, which have a tensor core each.
constexpr int WARPS_M = 2, WARPS_N = 2, THREADS = 32 * WARPS_M * WARPS_N;
constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part of the tile: 128 sums per thread
constexpr int A_STAGE_BYTES = BM * BK * 2, B_STAGE_BYTES = BK * BN * 2;
constexpr int SHARED_BYTES = STAGES * (A_STAGE_BYTES + B_STAGE_BYTES);  // CUDA adds 1 KB to a block
static_assert(STAGES >= 2, "while one slice is multiplied, the next one is on its way");
static_assert(2 * (SHARED_BYTES + 1024) <= 228 * 1024, "an H100's multiprocessor has room for two blocks");
static_assert(BK / 16 % 2 == 0, "two sets of fragments take turns, and every slice begins with set 0");

// [swizzle]
// Byte offset, in a slice with CHUNKS chunks to the row, of the chunk that has element c of row r.
// Chunk x of row r lies in slot x ^ r % 8 of its row. So the same chunk of 8 rows, which ldmatrix
// reads at once, lies in 8 different slots, which are 8 different groups of 4 banks.
template <int CHUNKS>
__device__ int swizzle(int r, int c) {
  static_assert(CHUNKS % 8 == 0,
                "rows of slots are multiples of 128 bytes: slot x is in the same banks in all");
  return (r * CHUNKS + (c / VEC ^ r % 8)) * 16;
}
// [/swizzle]

struct Stage {
  uint32_t a_addr, b_addr;  // its [BM][BK] of A and [BK][BN] of B
};

// [copy]
// Starts this thread's copies of a slice, ROWS x COLS of A or B, to the stage at `slice_addr`. The
// slice begins at `first + off`. From there the matrix has `rows_left` rows, `stride` apart, and
// `cols_left` columns, a multiple of 8; none if negative. Chunks outside it are not read and become
// zeros: their source is `first`, where slice 0 begins, as `first + off` may be outside too.
template <int ROWS, int COLS, class T>
__device__ __forceinline__ void copy_slice(uint32_t slice_addr, const T* first, int64_t off, int stride,
                                           int rows_left, int cols_left) {
  constexpr int CHUNKS = COLS / VEC, PASS = THREADS / CHUNKS;  // of a row; rows copied at a time
  static_assert(VEC * sizeof(T) == 16, "a chunk is 16 bytes");
  static_assert(THREADS % CHUNKS == 0 && ROWS % PASS == 0, "a slice is copied in passes of whole rows");
  static_assert(PASS % 8 == 0, "a thread's chunks lie in the same slot of their rows");
  const int thread = int(threadIdx.x), r0 = thread / CHUNKS, c = thread % CHUNKS * VEC;
  const uint32_t dst_addr = slice_addr + swizzle<CHUNKS>(r0, c);
  const T* src = first + (int64_t(r0) * stride + c) + off;
#pragma unroll
  for (int r = 0; r < ROWS; r += PASS) {
    const bool inside = r0 + r < rows_left && c < cols_left;  // all 8 elements of the chunk, or none
    gg::ptx::cp_async_cg_16(dst_addr + r * COLS * 2, inside ? src : first, inside ? 16 : 0);
    src += int64_t(PASS) * stride;
  }
}
// [/copy]

// A warp multiplies 16 of k at a time, from these registers.
template <class T>
struct Fragments {
  static_assert(WM % 16 == 0 && WN % 16 == 0, "a warp's part of the tile is whole fragments");
  gg::ptx::FragmentA<T> a[WM / 16];
  gg::ptx::FragmentB<T> b[WN / 16];
};

// [fragments]
// Loads 16 of k, from kk on, for the warp whose part of the tile begins at (warp_row, warp_col).
// a_off and b_off are where this lane's chunk x lies if i = j = kk = 0. 16 rows down (i in A, kk in
// B) the slot stays, so the rows' bytes are added. Further right (kk in A, j in B) the chunk is
// x + y, y = kk / 8 or 2 j, whose bits are 0 in x: x is 0 or 1 in A, in B WN divides `warp_col`.
// So x + y = x ^ y, slot x ^ y ^ r % 8 is the old slot ^ y, and the offset takes ^ 16 y.
template <class T>
__device__ __forceinline__ void load_fragments(Fragments<T>& fragments, Stage stage, int warp_row,
                                               int warp_col, int kk) {
  static_assert((BK & (BK - 1)) == 0 && (WN & (WN - 1)) == 0, "so that 16 columns further right is an xor");
  const int lane = int(threadIdx.x) % 32;
  const int a_off = swizzle<BK / VEC>(warp_row + lane % 16, lane / 16 * VEC);
  const int b_off = swizzle<BN / VEC>(lane % 16, warp_col + lane / 16 * VEC);
#pragma unroll
  for (int i = 0; i < WM / 16; ++i) {
    gg::ptx::ldmatrix_x4(fragments.a[i].reg, stage.a_addr + (a_off ^ (kk * 2)) + i * 16 * BK * 2);
  }
#pragma unroll
  for (int j = 0; j < WN / 16; ++j) {  // 16 columns: acc's 2 j and 2 j + 1
    gg::ptx::ldmatrix_x4_trans(fragments.b[j].reg, stage.b_addr + (b_off ^ (j * 32)) + kk * BN * 2);
  }
}
// [/fragments]

// [multiply]
// Adds the products of 16 of k to a warp's sums, 16 rows and 8 columns at a time. Odd rows go from
// right to left, so each product shares an operand with the one before. The gain was not measured.
template <class T>
__device__ __forceinline__ void multiply(float (&acc)[WM / 16][WN / 8][4], const Fragments<T>& fragments) {
#pragma unroll
  for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
    for (int count = 0; count < WN / 8; ++count) {
      const int j = i % 2 ? WN / 8 - 1 - count : count;
      gg::ptx::mma_m16n8k16(acc[i][j], fragments.a[i], fragments.b[j / 2], j % 2);
    }
  }
}
// [/multiply]

template <class T>
struct alignas(2 * sizeof(T)) Neighbours {  // two elements of a row of D, one store
  T left, right;
};

// [store]
// Stores a warp's sums. Of each 8 x 8 of them a lane has two neighbours of a row. `d_tile` is the
// tile's corner in D, whose rows are `stride` apart. Only the tile's rows and columns before
// `rows_left` and `cols_left` are the group's. Both neighbours are or neither: `cols_left` is even.
template <class T>
__device__ __forceinline__ void store(const float (&acc)[WM / 16][WN / 8][4], T* d_tile, int stride,
                                      int warp_row, int warp_col, int rows_left, int cols_left) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < WM / 8; ++i) {  // 8 rows, where acc's i is 16
    const int r = warp_row + i * 8 + lane / 4;
#pragma unroll
    for (int j = 0; j < WN / 8; ++j) {
      const int c = warp_col + j * 8 + lane % 4 * 2;
      const float* sums = &acc[i / 2][j][i % 2 * 2];  // an mma's rows 0 to 7 come first, then 8 to 15
      const Neighbours<T> two = {gg::from_float<T>(sums[0]), gg::from_float<T>(sums[1])};
      if (r < rows_left && c < cols_left) {
        *reinterpret_cast<Neighbours<T>*>(d_tile + int64_t(r) * stride + c) = two;
      }
    }
  }
}
// [/store]

// Two blocks on a multiprocessor whose shared memory holds both (9.0 and 10.0): one computes while
// the other waits. The 65,536 registers are 256 for each of their threads, which can use 255.
template <class T, class Offset>
__global__ void __launch_bounds__(THREADS, 2)
    grouped_gemm(const T* a, const T* b, T* d, const Offset* offsets, int n, int k, int64_t b_group_stride) {
  const int warp = int(threadIdx.x) / 32;
  // Where the warp's part of the tile begins.
  const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;

  const int group = int(blockIdx.z), row0 = int(blockIdx.x) * BM, col0 = int(blockIdx.y) * BN;
  const int64_t row_begin = offsets[group];
  // The group's rows and D's columns from the tile's corner on: fewer than the tile has, or more.
  const int rows_left = int(offsets[group + 1] - row_begin) - row0, cols_left = n - col0;
  if (rows_left <= 0) return;  // the whole block: the grid has room for the largest group
  const T* a_first = a + (row_begin + row0) * k;
  const T* b_first = b + group * b_group_stride + col0;
  T* d_tile = d + (row_begin + row0) * n + col0;
  const int k_tiles = (k + BK - 1) / BK;

  // From a multiple of 128 bytes on, 8 slots lie in all 32 banks.
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared);          // [STAGES][BM][BK], 48 KB, swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_STAGE_BYTES;  // [STAGES][BK][BN], 48 KB, swizzled
  auto stage = [&](int k_tile) {                                      // where slice k_tile is put
    const int index = k_tile % STAGES;
    return Stage{a_tile_addr + index * A_STAGE_BYTES, b_tile_addr + index * B_STAGE_BYTES};
  };

  // [load]
  // Start copying a slice. Slices past the last one are all zeros, so compute has no special case
  // for the end. Called for slices 0, 1, 2 .., load_a first, and load_b commits: so copy group s is
  // this thread's copies of slice s. At the wait for slice s the youngest group is s + STAGES - 2.
  auto load_a = [&](int k_tile) {
    const int k0 = k_tile * BK;
    copy_slice<BM, BK>(stage(k_tile).a_addr, a_first, k0, k, rows_left, k - k0);
  };
  auto load_b = [&](int k_tile) {
    const int k0 = k_tile * BK;
    copy_slice<BK, BN>(stage(k_tile).b_addr, b_first, int64_t(k0) * n, n, k - k0, cols_left);
    gg::ptx::cp_async_commit_group();
  };
  // [/load]

  // [compute]
  Fragments<T> sets[2];  // one is multiplied while the next 16 of k are loaded into the other
  float acc[WM / 16][WN / 8][4] = {};
  auto compute = [&](int k_tile) {
#pragma unroll
    for (int kk = 0; kk < BK; kk += 16) {
      const int set = kk / 16 % 2;
      if (kk + 16 < BK) {
        load_fragments(sets[1 - set], stage(k_tile), warp_row, warp_col, kk + 16);
      } else {  // the last fragments of this slice are in registers: on to the next slice
        gg::ptx::cp_async_wait_group<STAGES - 2>();  // this thread's copies of slice k_tile + 1 have landed
        __syncthreads();  // so have everyone's, and nobody reads slice k_tile any more: its stage is free
        load_fragments(sets[1 - set], stage(k_tile + 1), warp_row, warp_col, 0);
        load_a(k_tile + STAGES);
      }
      if (kk == 0) load_b(k_tile + STAGES - 1);  // its stage is free since the last barrier
      multiply(acc, sets[set]);
    }
  };
  // [/compute]

  // [body]
  for (int k_tile = 0; k_tile < STAGES; ++k_tile) {
    load_a(k_tile);
    if (k_tile < STAGES - 1) load_b(k_tile);  // the last one's load_b is in compute(0)
  }
  gg::ptx::cp_async_wait_group<STAGES - 2>();  // this thread's copies of slice 0 have landed
  __syncthreads();                             // so have everyone's
  load_fragments(sets[0], stage(0), warp_row, warp_col, 0);
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) compute(k_tile);
  gg::ptx::cp_async_wait_all();  // nothing of this block is under way when it ends
  store(acc, d_tile, n, warp_row, warp_col, rows_left, cols_left);
  // [/body]
}

// Columns of D at most: a grid's y extent is at most 65535 blocks.
constexpr int MOST_N = 65535 * BN;

// The host's copy of the offsets gives the rows of the largest group; the blocks read the device's.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* offsets, const int32_t* host_offsets, int groups,
            int n, int k, int64_t b_group_stride, cudaStream_t stream) {
  const int blocks_n = (n + BN - 1) / BN;
  int rows_max = 0;
  for (int group = 0; group < groups; ++group) {
    rows_max = std::max(rows_max, host_offsets[group + 1] - host_offsets[group]);
  }
  if (rows_max == 0) return;  // a grid of no blocks is an error, not an empty launch
  auto* kernel = grouped_gemm<T, Offset>;
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES));
  const dim3 grid((rows_max + BM - 1) / BM, blocks_n, groups);
  kernel<<<grid, THREADS, SHARED_BYTES, stream>>>(a, b, d, offsets, n, k, b_group_stride);
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
