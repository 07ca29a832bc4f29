// SPDX-License-Identifier: MIT
//
// Chapter 06a: TMA loads the slices, and mbarriers count their bytes.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: one thread orders a whole slice, and an mbarrier says when all of it has landed.

#pragma once

#include <type_traits>

#include "common/kernel/check.h"
#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;     // depth of a slice of A and B: 128 bytes of each row of A
constexpr int STAGES = 3;  // slices of a team in shared memory: 96 KB at most, 192 KB for two teams
constexpr int WARPS_M = 2, WARPS_N = 2, THREADS = WARPS_M * WARPS_N * 32;  // of a team
constexpr int TEAMS = 2, WORKER_THREADS = TEAMS * THREADS;
constexpr int BOX_COLS = 64;  // columns of B in one box: 128 bytes, the most that TMA swizzles
constexpr int B_BOX_BYTES = BK * BOX_COLS * 2;
static_assert(STAGES >= 2, "while one slice is multiplied, the next one is on its way");
static_assert(BK / 16 % 2 == 0, "two sets of fragments take turns, and every slice begins with set 0");
static_assert(BK * 2 == 128 && BOX_COLS * 2 == 128, "boxes have rows of 128 bytes: swizzle knows no others");

// [find]
// Where a team is in the list of all tiles: group after group, in a group column after column.
struct Walk {
  int tile;                                 // index in the whole list
  int first_group = 0, tiles_m_before = 0;  // lane 0's; rows of tiles of all groups before it
  int64_t row_begin = 0;                    // of the group found
  int group = 0, group_rows = 0, tiles_m = 0, tile_in_group = 0;

  // Finds the group that owns `tile`, every warp for itself: lane l looks at group first_group + l.
  // `tile` may only grow from call to call: groups before first_group are not looked at again.
  // False: there is no such tile. All 32 lanes must call it: its shuffles wait for all of them.
  template <class Offset>
  __device__ __forceinline__ bool find(const Offset* offsets, int groups, int bm, int tiles_n) {
    const int lane = int(threadIdx.x) % 32;
    for (; first_group < groups; first_group += 32) {
      const int mine = min(first_group + lane, groups - 1);
      const int64_t my_begin = offsets[mine];
      const int my_rows = first_group + lane < groups ? int(offsets[mine + 1] - my_begin) : 0;
      const int my_tiles_m = (my_rows + bm - 1) / bm;
      int end = my_tiles_m;  // becomes the rows of tiles up to and with this lane's group
      for (int step = 1; step < 32; step *= 2) {
        const int below = __shfl_up_sync(~0u, end, step);
        if (lane >= step) end += below;
      }
      end += tiles_m_before;
      const unsigned after = __ballot_sync(~0u, tile < int64_t(end) * tiles_n);  // groups that end later
      if (after != 0) {
        const int owner = __ffs(after) - 1;
        group = first_group + owner;
        row_begin = __shfl_sync(~0u, my_begin, owner);
        group_rows = __shfl_sync(~0u, my_rows, owner);
        tiles_m = __shfl_sync(~0u, my_tiles_m, owner);
        tile_in_group = tile - (__shfl_sync(~0u, end, owner) - tiles_m) * tiles_n;
        return true;
      }
      tiles_m_before = __shfl_sync(~0u, end, 31);
    }
    return false;
  }
};
// [/find]

// [swizzle]
// Byte offset, in a box with rows of 128 bytes, of the chunk with element c of row r. TMA swizzles as
// chapter 03 did, with r % 8 from bits 7 to 9 of the address: so boxes begin at multiples of 1024.
__device__ int swizzle(int r, int c) { return r * 128 + (c / 8 ^ r % 8) * 16; }
// [/swizzle]

struct Stage {
  uint32_t a_addr, b_addr;  // its [BM][BK] of A and its boxes of B
  uint32_t full_addr;       // its mbarrier, which counts the bytes of both
};

// [copy]
// One thread orders a slice: A's from (k0, a_row), B's from (col, k0, group) on, dimension 0 first. It
// announces all bytes, zeros outside a tensor too, with the only arrival of the phase. A box of A may
// go on into rows that are not the group's: they are multiplied, but their sums are not stored.
// Before the call all warps of the team have read the stage's old slice, and this thread has waited
// for it: the old slice's phase has ended, and the announcement counts in the new one's.
template <int BM, int BN>
__device__ __forceinline__ void load_slice(Stage stage, const CUtensorMap& a_map, const CUtensorMap& b_map,
                                           int k0, int a_row, int col, int group) {
  static_assert(BN % BOX_COLS == 0, "B's part of a slice is whole boxes");
  static_assert(BM * BK * 2 % 1024 == 0 && B_BOX_BYTES % 1024 == 0, "boxes begin at multiples of 1024 bytes");
  static_assert(BM * BK * 2 + BN / BOX_COLS * B_BOX_BYTES == (BM + BN) * BK * 2, "all boxes are announced");
  gg::ptx::mbarrier_arrive_expect_tx(stage.full_addr, (BM + BN) * BK * 2);
  gg::ptx::tma_load_2d(stage.a_addr, &a_map, k0, a_row, stage.full_addr);
#pragma unroll
  for (int box = 0; box < BN / BOX_COLS; ++box) {
    gg::ptx::tma_load_3d(stage.b_addr + box * B_BOX_BYTES, &b_map, col + box * BOX_COLS, k0, group,
                         stage.full_addr);
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
  static_assert(BOX_COLS % WN == 0, "a warp's columns of B lie in one box");
  const int lane = int(threadIdx.x) % 32;
  const int a_off = swizzle(warp_row + lane % 16, lane / 16 * 8);
  const int b_off =
      warp_col / BOX_COLS * B_BOX_BYTES + swizzle(lane % 16, warp_col % BOX_COLS + lane / 16 * 8);
#pragma unroll
  for (int i = 0; i < WM / 16; ++i) {
    gg::ptx::ldmatrix_x4(fragments.a[i].reg, stage.a_addr + (a_off ^ (kk * 2)) + i * 16 * BK * 2);
  }
#pragma unroll
  for (int j = 0; j < WN / 16; ++j) {  // 16 columns: acc's 2 j and 2 j + 1
    gg::ptx::ldmatrix_x4_trans(fragments.b[j].reg, stage.b_addr + (b_off ^ (j * 32)) + kk * BOX_COLS * 2);
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

// A worker is a block of two teams, each with a tile of its own: while one waits or stores its tile, the
// other may compute. Eight warps, two for each scheduler: up to 255 registers per thread.
template <class T, class Offset, int BM, int BN>
__global__ void __launch_bounds__(WORKER_THREADS, 1)
    grouped_gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, T* d,
                 const Offset* offsets, int groups, int n, int k) {
  constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part of the tile
  // The bytes that load_slice announces, and launch's team_bytes for each stage, are the sum of these.
  constexpr int A_STAGE_BYTES = BM * BK * 2, B_STAGE_BYTES = BK * BN * 2;
  static_assert(sizeof(T) == 2, "bytes of an element are 2 here, and sizeof(T) in launch's maps");
  static_assert(TEAMS * STAGES * (A_STAGE_BYTES + B_STAGE_BYTES) <= 226 * 1024,
                "a block of an H100 may have 227 KB, of which `full` and the alignment of `shared` take one");
  const int team = int(threadIdx.x) / THREADS, thread = int(threadIdx.x) % THREADS;
  const int warp = thread / 32;  // of the team
  // Where the warp's part of the tile begins.
  const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;

  // All stages. `full` and the gap from there to this multiple of 1024 are static shared memory: ptxas
  // counts both, so launch requests the stages alone, and the assertion above leaves 1 KB for the two.
  extern __shared__ __align__(1024) unsigned char shared[];
  const int team_off = team * STAGES * (A_STAGE_BYTES + B_STAGE_BYTES);  // the second team's come after
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared) + team_off;  // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_STAGE_BYTES;  // [STAGES][BN / 64][BK][64], swizzled
  // [barriers]
  // Each stage of each team has one. A phase ends when a slice has landed; thread 0 alone arrives.
  __shared__ uint64_t full[TEAMS][STAGES];
  const uint32_t team_full_addr = gg::ptx::shared_addr(full[team]);
  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s) gg::ptx::mbarrier_init(team_full_addr + s * 8, 1);
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::bar_sync(1 + team, THREADS);  // the team's mbarriers are there for all its threads
  // [/barriers]

  // [tile]
  // Tiles are counted in int: 2^31 of them, each of 64 columns, in 4096 groups (the harness's most) of
  // one row each would take 256 GiB of D.
  // All warps of a team find the same tiles, so all come to the team's barriers equally often.
  // bar_sync relies on it: it counts threads, and does not know in which of its calls they are.
  const int workers = int(gridDim.x), tiles_n = (n + BN - 1) / BN, k_tiles = (k + BK - 1) / BK;
  // Slices of this team's tiles before this one: they say which stage comes next, and which phase of
  // its mbarrier. 2^31 of them, each of 16 KB or more, would be 35 TB that one team loads.
  int slices_before = 0;
  Walk walk = {int(blockIdx.x) + team * workers};  // starts: 0 to stride - 1, one for each team
  for (; walk.find(offsets, groups, BM, tiles_n); walk.tile += TEAMS * workers) {
    const int row0 = walk.tile_in_group % walk.tiles_m * BM, col0 = walk.tile_in_group / walk.tiles_m * BN;
    // The group's rows and D's columns from the tile's corner on: fewer than the tile has, or more.
    const int rows_left = walk.group_rows - row0, cols_left = n - col0;
    T* d_tile = d + (walk.row_begin + row0) * n + col0;
    // [/tile]

    // [load]
    // Where slice k_tile of this tile is put. A team uses its stages in turn, from tile to tile.
    auto stage_of = [&](int k_tile) {
      const int index = (slices_before + k_tile) % STAGES;
      return Stage{a_tile_addr + index * A_STAGE_BYTES, b_tile_addr + index * B_STAGE_BYTES,
                   team_full_addr + index * 8};
    };
    // Orders slice k_tile; thread 0 alone calls this. The harness allows under 2^31 rows: int will do.
    auto load = [&](int k_tile) {
      load_slice<BM, BN>(stage_of(k_tile), a_map, b_map, k_tile * BK, int(walk.row_begin) + row0, col0,
                         walk.group);
    };
    // [/load]

    // [compute]
    // A stage's slices are the phases 0, 1, 2 .. of its mbarrier. Each slice of a tile is ordered once, and
    // every thread waits for it once, in sequence: `slices_before += k_tiles` below relies on that.
    auto wait = [&](int k_tile) {
      const int phase = (slices_before + k_tile) / STAGES;
      gg::ptx::mbarrier_wait_parity(stage_of(k_tile).full_addr, phase % 2);
    };
    Fragments<T, WM, WN> sets[2];  // one is multiplied while the next 16 of k are loaded into the other
    float acc[WM / 16][WN / 8][4] = {};
    auto compute = [&](int k_tile) {
#pragma unroll
      for (int kk = 0; kk < BK; kk += 16) {
        const int set = kk / 16 % 2;
        if (kk + 16 < BK) {
          load_fragments(sets[1 - set], stage_of(k_tile), warp_row, warp_col, kk + 16);
        } else if (k_tile + 1 < k_tiles) {  // this slice's last fragments are in registers: on to the next
          wait(k_tile + 1);                 // both parts of slice k_tile + 1 have landed
          gg::ptx::bar_sync(1 + team, THREADS);  // nobody in the team reads slice k_tile any more
          load_fragments(sets[1 - set], stage_of(k_tile + 1), warp_row, warp_col, 0);
          if (thread == 0 && k_tile + STAGES < k_tiles) load(k_tile + STAGES);
        }
        multiply(acc, sets[set]);
      }
    };
    // [/compute]

    // [body]
    if (thread == 0) {
#pragma unroll 1  // load's code is long: unrolled, it would stand here three times
      for (int k_tile = 0; k_tile < min(STAGES, k_tiles); ++k_tile) load(k_tile);
    }
    wait(0);  // both parts of slice 0 have landed; it exists, as make_tensor_map refuses a K of 0
    load_fragments(sets[0], stage_of(0), warp_row, warp_col, 0);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) compute(k_tile);
    gg::ptx::bar_sync(1 + team, THREADS);  // nobody in the team reads: all stages are free
    slices_before += k_tiles;  // after the tile's last wait: stage_of, load and wait count from it
    store<WM, WN>(acc, d_tile, n, warp_row, warp_col, rows_left, cols_left);
    // [/body]
  }
}

template <class T>
constexpr CUtensorMapDataType MAP_TYPE =
    std::is_same_v<T, bf16> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;

// `rows`: of A in memory, at least 1 and no fewer than the last offset, which the host need not know: the
// capacity of the buffer will do. `blocks` 0: one worker per multiprocessor.
template <class T, class Offset>
void launch(const T* a, const T* b, T* d, const Offset* offsets, int64_t rows, int groups, int n, int k,
            gg::TileShape tile, int blocks, cudaStream_t stream) {
  if (tile.m == 0) tile = {128, 128};
  const auto legal = [](int extent) { return extent == 64 || extent == 128; };
  GG_REQUIRE(legal(tile.m) && legal(tile.n), "--tile %dx%d: tiles have 64 or 128 rows and columns", tile.m,
             tile.n);
  auto* kernel = grouped_gemm<T, Offset, 128, 128>;
  // Every tile of every type would be 16 kernels to compile.
  if constexpr (std::is_same_v<T, bf16> && std::is_same_v<Offset, int32_t>) {
    if (tile.m == 128 && tile.n == 64) kernel = grouped_gemm<T, Offset, 128, 64>;
    if (tile.m == 64 && tile.n == 128) kernel = grouped_gemm<T, Offset, 64, 128>;
    if (tile.m == 64 && tile.n == 64) kernel = grouped_gemm<T, Offset, 64, 64>;
  } else {
    GG_REQUIRE(tile.m == 128 && tile.n == 128, "--tile %dx%d: these types have tiles of 128x128", tile.m,
               tile.n);
  }
  // A's boxes have tile.m rows, and load_slice announces the kernel's BM.
  GG_REQUIRE((kernel == grouped_gemm<T, Offset, 128, 128>) == (tile.m == 128 && tile.n == 128),
             "--tile %dx%d: launch has no kernel for it", tile.m, tile.n);
  // [maps]
  const int64_t element = sizeof(T), wide_n = n, wide_k = k;
  const CUtensorMap a_map = gg::make_tensor_map({.type = MAP_TYPE<T>,
                                                 .data = a,
                                                 .dims = {wide_k, rows},
                                                 .stride_bytes = {wide_k * element},
                                                 .box = {BK, tile.m},
                                                 .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  // Three dimensions: after K are zeros, not the next group's rows, which may hold NaN.
  const CUtensorMap b_map =
      gg::make_tensor_map({.type = MAP_TYPE<T>,
                           .data = b,
                           .dims = {wide_n, wide_k, groups},
                           .stride_bytes = {wide_n * element, wide_n * wide_k * element},
                           .box = {BOX_COLS, BK, 1},
                           .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  // [/maps]
  const int team_bytes = STAGES * (tile.m + tile.n) * BK * 2;
  int device = 0, multiprocessors = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TEAMS * team_bytes));
  kernel<<<blocks ? blocks : multiprocessors, WORKER_THREADS, TEAMS * team_bytes, stream>>>(
      a_map, b_map, d, offsets, groups, n, k);
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
