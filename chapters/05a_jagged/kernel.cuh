// SPDX-License-Identifier: MIT
//
// Chapter 05a: packed rows, and nothing but offsets to find them by.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: the grid does not depend on the offsets, so the host launches without knowing them.

#pragma once

#include <type_traits>

#include "common/kernel/check.h"
#include "common/kernel/ptx/cp_async.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;     // depth of a slice of A and B: 128 bytes of each row of A
constexpr int STAGES = 3;  // slices in shared memory: 96 KB at most, which every GPU from 8.0 on has
constexpr int VEC = 8;     // elements of a chunk: 16 bytes, the most that one cp.async copies
constexpr int WARPS_N = 2;
// A multiprocessor has 65536 registers: 256 threads may have 255 each, the most that a thread can have.
constexpr int RESIDENT_THREADS = 256;
// Bytes of shared memory for tiles of bm x bn. All operands have 16 bits.
constexpr int shared_bytes_for(int bm, int bn) { return STAGES * (bm + bn) * BK * 2; }
static_assert(STAGES >= 2, "while one slice is multiplied, the next one is on its way");
static_assert(BK / 16 % 2 == 0, "two sets of fragments take turns, and every slice begins with set 0");

// [types]
// Threads of a block for tiles of bm rows. Operands of different types are converted in registers,
// and 255 registers in each of 128 threads would not do, so 256 threads share the sums of 128x128.
// `bm < 128` stands for tiles with fewer sums: types that differ have none yet (asserted below).
template <class A, class B>
constexpr int threads_for(int bm) {
  return std::is_same_v<A, B> || bm < 128 ? 128 : 256;
}
// [/types]

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
template <int THREADS, int ROWS, int COLS, class T>
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
template <class A, class B, int WM, int WN>
struct Fragments {
  static_assert(WM % 16 == 0 && WN % 16 == 0, "a warp's part of the tile is whole fragments");
  gg::ptx::FragmentA<A> a[WM / 16];
  gg::ptx::FragmentB<B> b[WN / 16];
};

// [fragments]
// Loads 16 of k, from kk on, for the warp whose part of the tile begins at (warp_row, warp_col).
// a_off and b_off are where this lane's chunk x lies if i = j = kk = 0. 16 rows down (i in A, kk in
// B) the slot stays, so the rows' bytes are added. Further right (kk in A, j in B) the chunk is
// x + y, y = kk / 8 or 2 j, whose bits are 0 in x: x is 0 or 1 in A, in B WN divides `warp_col`.
// So x + y = x ^ y, slot x ^ y ^ r % 8 is the old slot ^ y, and the offset takes ^ 16 y.
template <class A, class B, int WM, int WN>
__device__ __forceinline__ void load_fragments(Fragments<A, B, WM, WN>& fragments, Stage stage, int warp_row,
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
template <class A, class B, int WM, int WN>
__device__ __forceinline__ void multiply(float (&acc)[WM / 16][WN / 8][4],
                                         const Fragments<A, B, WM, WN>& fragments) {
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

// The launch bounds make the compiler use so few registers that RESIDENT_THREADS fit on a
// multiprocessor: two blocks of 128 threads, or one of 256. More may fit if each takes less shared
// memory and fewer registers, as 64x64 may; `launch` asks CUDA how many do. Another shape of tile
// needs the changes that `launch` names, and an entry in main.cu's `tiles`.
template <class A, class B, class D, class Offset, int BM, int BN>
__global__ void __launch_bounds__(threads_for<A, B>(BM), RESIDENT_THREADS / threads_for<A, B>(BM))
    grouped_gemm(const A* a, const B* b, D* d, const Offset* offsets, int n, int k, int64_t b_group_stride) {
  constexpr int THREADS = threads_for<A, B>(BM), WARPS_M = THREADS / 32 / WARPS_N;
  // CUDA reserves 1 KB of shared memory more for each block. If fewer blocks fitted, `launch` would
  // start fewer, and nothing would fail. A GPU with less shared memory than an H100 may hold fewer.
  static_assert(RESIDENT_THREADS / THREADS * (shared_bytes_for(BM, BN) + 1024) <= 228 * 1024,
                "an H100's multiprocessor has room for as many blocks as the launch bounds count");
  constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part of the tile
  constexpr int A_STAGE_BYTES = BM * BK * int(sizeof(A)), B_STAGE_BYTES = BK * BN * int(sizeof(B));
  static_assert(BM == 128 || (BM == 64 && std::is_same_v<A, B>), "tiles that threads_for is made for");
  static_assert(STAGES * (A_STAGE_BYTES + B_STAGE_BYTES) == shared_bytes_for(BM, BN), "launch passes it");
  static_assert(A_STAGE_BYTES % 128 == 0 && B_STAGE_BYTES % 128 == 0, "every stage begins in bank 0");
  static_assert(RESIDENT_THREADS % THREADS == 0, "the launch bounds count whole blocks, and at least one");
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
  // All threads of a block compute the same tile, so all are in the same one at each barrier. A
  // group without rows has no tiles, so the loop ends before it divides by `tiles_m`. Any order of
  // tiles and any gridDim.x give the same D. This order is down each column of tiles: blocks in the
  // same turn then need few panels of A and B, if the group has fewer rows of tiles than columns.
  const int group = int(blockIdx.y);
  const int64_t row_begin = offsets[group];  // 64 bits for any Offset: row_begin * k needs them
  const int group_rows = int(offsets[group + 1] - row_begin);
  const int tiles_m = (group_rows + BM - 1) / BM, tiles_n = (n + BN - 1) / BN;
  for (int64_t tile = blockIdx.x; tile < int64_t(tiles_m) * tiles_n; tile += gridDim.x) {
    const int row0 = int(tile % tiles_m) * BM, col0 = int(tile / tiles_m) * BN;
    // The group's rows and D's columns from the tile's corner on: fewer than the tile has, or more.
    const int rows_left = group_rows - row0, cols_left = n - col0;
    const A* a_first = a + (row_begin + row0) * k;
    const B* b_first = b + group * b_group_stride + col0;
    D* d_tile = d + (row_begin + row0) * n + col0;
    const int k_tiles = (k + BK - 1) / BK;
    // [/tile]

    // [load]
    // Start copying a slice. Slices past the last one are all zeros, so compute has no special case
    // for the end. Both are called for a tile's slices 0, 1, 2 .., load_a first, and load_b commits: so
    // the tile's copy group s is this thread's copies of slice s. Both wait_group<STAGES - 2> rely on
    // that. The last load_a of a tile has no load_b: only cp_async_wait_all waits for its copies.
    auto load_a = [&](int k_tile) {
      const int k0 = k_tile * BK;
      copy_slice<THREADS, BM, BK>(stage(k_tile).a_addr, a_first, k0, k, rows_left, k - k0);
    };
    auto load_b = [&](int k_tile) {
      const int k0 = k_tile * BK;
      copy_slice<THREADS, BK, BN>(stage(k_tile).b_addr, b_first, int64_t(k0) * n, n, k - k0, cols_left);
      gg::ptx::cp_async_commit_group();
    };
    // [/load]

    // [compute]
    Fragments<A, B, WM, WN> sets[2];  // one is multiplied while the next 16 of k are loaded into the other
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
    store<WM, WN>(acc, d_tile, n, warp_row, warp_col, rows_left, cols_left);
    // [/body]
  }
}

// All groups get equally many blocks, whatever their rows: those that fit on the device at once,
// over the groups, rounded up. The host reads no offsets. The kernel does when it runs: so an
// earlier kernel of the stream may write them, and a graph may be replayed with others.
// Relies on 1 to 65535 groups, as the grid's y counts them (the harness allows 4096), of at most
// 2^31 - 128 rows; on multiples of 8 for n and k; on A and B that start at multiples of 16 bytes, D at
// a multiple of two of its elements; on a `b_group_stride` of 0 (one B for all) or a multiple of 8.
template <class A, class B, class D, class Offset>
void launch(const A* a, const B* b, D* d, const Offset* offsets, int groups, int n, int k,
            int64_t b_group_stride, gg::TileShape tile, cudaStream_t stream) {
  if (tile.m == 0) tile = {128, 128};
  GG_REQUIRE(tile.m == tile.n && (tile.m == 128 || tile.m == 64), "--tile %dx%d: tiles are 128x128 or 64x64",
             tile.m, tile.n);
  auto* kernel = grouped_gemm<A, B, D, Offset, 128, 128>;
  // Only bf16 with int32_t has 64x64 (one_tile_for_others in main.cu): fewer kernels to compile.
  // Tiles are square, so tile.m names the kernel. If the check above lets another shape pass,
  // choose its kernel here. Else another's runs: for 64x128 that of 64x64, and as D is right, no
  // check finds it. The refusal below reads tile.m alone, so it would let 128x64 pass.
  if constexpr (std::is_same_v<A, bf16> && std::is_same_v<B, bf16> && std::is_same_v<Offset, int32_t>) {
    if (tile.m == 64) kernel = grouped_gemm<A, B, D, Offset, 64, 64>;
  } else {
    GG_REQUIRE(tile.m == 128, "--tile %dx%d: these types have tiles of 128x128", tile.m, tile.n);
  }
  // Both must be those of `kernel`, which computes them from its BM and BN: here `tile`.
  const int threads = threads_for<A, B>(tile.m);
  const int shared_bytes = shared_bytes_for(tile.m, tile.n);
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  // [launch]
  int device = 0, multiprocessors = 0, per_multiprocessor = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, threads,
                                                         size_t(shared_bytes)));
  const int blocks_per_group = (multiprocessors * per_multiprocessor + groups - 1) / groups;
  kernel<<<dim3(blocks_per_group, groups), threads, shared_bytes, stream>>>(a, b, d, offsets, n, k,
                                                                            b_group_stride);
  // [/launch]
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
