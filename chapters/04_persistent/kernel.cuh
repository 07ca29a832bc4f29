// SPDX-License-Identifier: MIT
//
// Chapter 04: a fixed number of blocks walks all groups' tiles.
//
// Group g has matrices and sizes of its own, A [M,K], B [K,N] and D [M,N], found through arrays:
//     D[row, col] = sum over k of A[row, k] * B[k, col]
// New here: block b computes the tiles b, b + gridDim.x, b + 2 * gridDim.x .. of one list that runs
// through all groups.

#pragma once

#include <cstdio>

#include "common/kernel/check.h"
#include "common/kernel/ptx/cp_async.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;     // depth of a slice of A and B: 128 bytes of each row of A
constexpr int STAGES = 3;  // slices in shared memory: 96 KB at most, which every GPU from 8.0 on has
constexpr int VEC = 8;     // elements of a chunk: 16 bytes, the most that one cp.async copies
// A block has a warp for each of a multiprocessor's four schedulers, which have a tensor core each.
constexpr int WARPS_M = 2, WARPS_N = 2, THREADS = 32 * WARPS_M * WARPS_N;
// Bytes of shared memory for tiles of bm x bn.
template <class T>
constexpr int shared_bytes_for(int bm, int bn) {
  return STAGES * (bm + bn) * BK * int(sizeof(T));
}
static_assert(STAGES >= 2, "while one slice is multiplied, the next one is on its way");
static_assert(BK / 16 % 2 == 0, "two sets of fragments take turns, and every slice begins with set 0");

// [walk]
// Where a block is in the list of all groups' tiles, ordered by group, then tile_m, then tile_n.
struct Walk {
  int64_t tile;            // index in the whole list
  int64_t first_tile = 0;  // index of the first tile of `group`
  int group = 0;
  int tile_m = 0, tile_n = 0;  // row and column of tiles in `group`

  // Goes on to the group that has `tile`, and sets all other members; sizes [G,3] are M, N, K.
  // False: the list is over. The search starts from the group found last, so `tile` may only grow.
  GG_HD bool find(const int* sizes, int groups, int bm, int bn) {
    for (; group < groups; ++group) {
      const int tiles_m = (sizes[3 * group] + bm - 1) / bm, tiles_n = (sizes[3 * group + 1] + bn - 1) / bn;
      const int64_t tile_in_group = tile - first_tile;
      if (tile_in_group < int64_t(tiles_m) * tiles_n) {
        tile_m = int(tile_in_group / tiles_n);
        tile_n = int(tile_in_group % tiles_n);
        return true;
      }
      first_tile += int64_t(tiles_m) * tiles_n;  // the count goes on from one group to the next
    }
    return false;
  }
};
// [/walk]

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
template <class T, int WM, int WN>
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
template <class T, int WM, int WN>
__device__ __forceinline__ void load_fragments(Fragments<T, WM, WN>& fragments, Stage stage, int warp_row,
                                               int warp_col, int kk) {
  static_assert((BK & (BK - 1)) == 0 && (WN & (WN - 1)) == 0, "so that 16 columns further right is an xor");
  constexpr int BN = WARPS_N * WN;
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
template <class T, int WM, int WN>
__device__ __forceinline__ void multiply(float (&acc)[WM / 16][WN / 8][4],
                                         const Fragments<T, WM, WN>& fragments) {
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
template <int WM, int WN, class T>
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

// Blocks for which a multiprocessor shall have room, so that some multiply while others wait. The
// launch bounds make the compiler use few enough of its 65536 registers: 128 for a thread with four
// blocks of 128 threads. With two it may use 255, the most there is. Another shape of tile needs its
// number here, its kernel and its check in `launch`, and an entry in main.cu's `tiles`.
constexpr int resident_blocks(int bm) { return bm == 128 ? 2 : 4; }

template <class T, int BM, int BN>
__global__ void __launch_bounds__(THREADS, resident_blocks(BM))
    grouped_gemm(const T* const* a_ptrs, const T* const* b_ptrs, T* const* d_ptrs, const int* sizes,
                 const int* leading_dims, int groups) {
  static_assert(BM == BN && (BM == 128 || BM == 64), "resident_blocks knows these two");
  // CUDA reserves 1 KB of shared memory more for each block. If fewer blocks fitted, `launch` would
  // start fewer, and nothing would fail. A GPU with less shared memory than an H100 may hold fewer.
  static_assert(resident_blocks(BM) * (shared_bytes_for<T>(BM, BN) + 1024) <= 228 * 1024,
                "an H100's multiprocessor has room for as many blocks as the launch bounds count");
  constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part of the tile
  constexpr int A_STAGE_BYTES = BM * BK * int(sizeof(T)), B_STAGE_BYTES = BK * BN * int(sizeof(T));
  static_assert(STAGES * (A_STAGE_BYTES + B_STAGE_BYTES) == shared_bytes_for<T>(BM, BN), "launch passes it");
  static_assert(A_STAGE_BYTES % 128 == 0 && B_STAGE_BYTES % 128 == 0, "every stage begins in bank 0");
  const int warp = int(threadIdx.x) / 32;
  // Where the warp's part of the tile begins.
  const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;

  // From a multiple of 128 bytes on, 8 slots lie in all 32 banks.
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared);          // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_STAGE_BYTES;  // [STAGES][BK][BN], swizzled
  auto stage = [&](int k_tile) {                                      // where slice k_tile is put
    const int index = k_tile % STAGES;
    return Stage{a_tile_addr + index * A_STAGE_BYTES, b_tile_addr + index * B_STAGE_BYTES};
  };

  // [tile]
  // All threads compute the same walk, so all are in the same tile at each barrier of this loop.
  // print_schedule repeats start and stride: change both. schedule_test sees only print_schedule's.
  for (Walk walk{int64_t(blockIdx.x)}; walk.find(sizes, groups, BM, BN); walk.tile += gridDim.x) {
    const int group = walk.group, row0 = walk.tile_m * BM, col0 = walk.tile_n * BN;
    const int n = sizes[3 * group + 1], k = sizes[3 * group + 2];
    // The group's rows and D's columns from the tile's corner on: fewer than the tile has, or more.
    const int rows_left = sizes[3 * group] - row0, cols_left = n - col0;
    const int lda = leading_dims[3 * group], ldb = leading_dims[3 * group + 1];
    const int ldd = leading_dims[3 * group + 2];
    GG_DEVICE_ASSERT(n % VEC == 0 && k % VEC == 0 && lda % VEC == 0 && ldb % VEC == 0 && ldd % VEC == 0);
    const T* a_first = a_ptrs[group] + int64_t(row0) * lda;
    const T* b_first = b_ptrs[group] + col0;
    T* d_tile = d_ptrs[group] + int64_t(row0) * ldd + col0;
    const int k_tiles = (k + BK - 1) / BK;
    // [/tile]

    // [load]
    // Start copying a slice. Slices past the last one are all zeros, so compute has no special case
    // for the end. Both are called for a tile's slices 0, 1, 2 .., load_a first, and load_b commits: so
    // the tile's copy group s is this thread's copies of slice s. Both wait_group<STAGES - 2> rely on
    // that. The last load_a of a tile has no load_b: only cp_async_wait_all waits for its copies.
    auto load_a = [&](int k_tile) {
      const int k0 = k_tile * BK;
      copy_slice<BM, BK>(stage(k_tile).a_addr, a_first, k0, lda, rows_left, k - k0);
    };
    auto load_b = [&](int k_tile) {
      const int k0 = k_tile * BK;
      copy_slice<BK, BN>(stage(k_tile).b_addr, b_first, int64_t(k0) * ldb, ldb, k - k0, cols_left);
      gg::ptx::cp_async_commit_group();
    };
    // [/load]

    // [compute]
    Fragments<T, WM, WN> sets[2];  // one is multiplied while the next 16 of k are loaded into the other
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
    // Copies of slices past the last one may be under way: zeros, some of them in no copy group. All
    // must have landed before the next tile's copies start, which begin with stage 0 again.
    gg::ptx::cp_async_wait_all();  // none of this thread's copies is under way
    __syncthreads();               // nor anyone's, and nobody reads: all stages are free for the next tile
    store<WM, WN>(acc, d_tile, ldd, warp_row, warp_col, rows_left, cols_left);
    // [/body]
  }
}

// [schedule]
// Prints each block's tiles as group(tile_m,tile_n), by the kernel's walk with `sizes` in host memory.
// Start and stride repeat the kernel's. Without --tile the harness passes a `shape` of 64x64, as its
// example is small; `launch` gets 128x128, the first of main.cu's `tiles`.
inline void print_schedule(const int* sizes, int groups, gg::TileShape shape, int blocks) {
  for (int block = 0; block < blocks; ++block) {
    std::printf("block %d:", block);
    for (Walk walk{block}; walk.find(sizes, groups, shape.m, shape.n); walk.tile += blocks) {
      std::printf(" %d(%d,%d)", walk.group, walk.tile_m, walk.tile_n);
    }
    std::printf("\n");
  }
}
// [/schedule]

// All arrays are on the device: G pointers to each matrix, sizes [G,3] as M, N, K, leading dimensions
// [G,3] of A, B and D. N, K and the leading dimensions are multiples of 8, and matrices start at
// multiples of 16 bytes. `blocks` 0: as many as the device holds at once.
template <class T>
void launch(const T* const* a_ptrs, const T* const* b_ptrs, T* const* d_ptrs, const int* sizes,
            const int* leading_dims, int groups, gg::TileShape shape, int blocks, cudaStream_t stream) {
  GG_REQUIRE(shape.m == shape.n && (shape.m == 128 || shape.m == 64),
             "--tile %dx%d: tiles are 128x128 or 64x64", shape.m, shape.n);
  auto* kernel = shape.m == 128 ? grouped_gemm<T, 128, 128> : grouped_gemm<T, 64, 64>;
  const int shared_bytes = shared_bytes_for<T>(shape.m, shape.n);
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  // [launch]
  if (blocks == 0) {
    int device = 0, multiprocessors = 0;
    GG_CHECK(cudaGetDevice(&device));
    GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    GG_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, THREADS, size_t(shared_bytes)));
    blocks *= multiprocessors;
  }
  kernel<<<blocks, THREADS, shared_bytes, stream>>>(a_ptrs, b_ptrs, d_ptrs, sizes, leading_dims, groups);
  // [/launch]
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
