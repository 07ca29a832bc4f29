// SPDX-License-Identifier: MIT
//
// Chapter 05b: one worker per multiprocessor, every W-th tile of all groups.
//
// Group g owns rows offsets[g] .. offsets[g+1]-1 of A [M,K] and D [M,N], and B[g] is [K,N], N contiguous:
//     D[row, col] = sum over k of A[row, k] * B[g][k, col]
// New here: tiles are counted through all groups, so a worker's share does not depend on whose rows they are.

#pragma once

#include <algorithm>
#include <type_traits>

#include "common/kernel/check.h"
#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/cp_async.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int BK = 64;     // depth of a slice of A and B: 128 bytes of each row of A
constexpr int STAGES = 3;  // slices of a team in shared memory: 96 KB at most, 192 KB for two teams
constexpr int VEC = 8;     // elements of a chunk: 16 bytes, the most that one cp.async copies
constexpr int WARPS_N = 2;
static_assert(STAGES >= 2, "while one slice is multiplied, the next one is on its way");
static_assert(BK / 16 % 2 == 0, "two sets of fragments take turns, and every slice begins with set 0");
static_assert(2 * STAGES * (128 + 128) * BK * 2 <= 227 * 1024, "launch gives a worker two teams on Hopper");
static_assert(BK > 32, "load_b at kk == 16 closes a copy group before the slice's wait and next load_a");

// Threads of a team for tiles of bm rows. Operands of different types are converted in registers,
// and 255 registers in each of 128 threads would not do, so 256 threads share the sums of 128x128.
// `bm < 128` stands for tiles with fewer sums: types that differ have none yet (HAS_ALL_TILES).
template <class A, class B>
constexpr int threads_for(int bm) {
  return std::is_same_v<A, B> || bm < 128 ? 128 : 256;
}

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
// Byte offset, in a slice with CHUNKS chunks to the row, of the chunk that has element c of row r.
// Chunk x of row r lies in slot x ^ r % 8 of its row. With 4 chunks to the row two rows fill 128
// bytes, all 32 banks, and it is slot x ^ r / 2 % 4. So the same chunk of 8 rows, which ldmatrix
// reads at once, lies in 8 different groups of 4 banks.
template <int CHUNKS>
__device__ int swizzle(int r, int c) {
  static_assert(CHUNKS % 8 == 0 || CHUNKS == 4,
                "slot x is in the same banks in all rows, or in every second");
  constexpr int ROWS = std::max(1, 8 / CHUNKS);  // whose chunks have the same xor
  return (r * CHUNKS + (c / VEC ^ r / ROWS % (8 / ROWS))) * 16;
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
  const int thread = int(threadIdx.x) % THREADS, r0 = thread / CHUNKS, c = thread % CHUNKS * VEC;
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
// So x + y = x ^ y, slot x ^ y ^ bits of r is the old slot ^ y, and the offset takes ^ 16 y.
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

// A worker is a block of one or two teams, each with a tile of its own, so that one may compute while the
// other waits at its barrier or stores its tile. The bounds: 256 threads at most, of 255 registers.
template <class A, class B, class D, class Offset, int BM, int BN>
__global__ void __launch_bounds__(256, 1) grouped_gemm(const A* a, const B* b, D* d, const Offset* offsets,
                                                       int groups, int n, int k, int64_t b_group_stride) {
  constexpr int THREADS = threads_for<A, B>(BM), WARPS_M = THREADS / 32 / WARPS_N;
  constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N;  // a warp's part of the tile
  static_assert(THREADS == 128 || THREADS == 256, "two teams of 128 or one of 256: as launch bounds allow");
  // launch's team_bytes are STAGES times the sum of these.
  constexpr int A_STAGE_BYTES = BM * BK * 2, B_STAGE_BYTES = BK * BN * 2;
  static_assert(A_STAGE_BYTES % 128 == 0 && B_STAGE_BYTES % 128 == 0, "every stage begins in bank 0");
  // [team]
  const int team = int(threadIdx.x) / THREADS, teams = int(blockDim.x) / THREADS;
  const int warp = int(threadIdx.x) % THREADS / 32;  // of the team
  // Where the warp's part of the tile begins.
  const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;

  // From a multiple of 128 bytes on, 8 slots lie in all 32 banks.
  extern __shared__ __align__(128) unsigned char shared[];
  const int team_off = team * STAGES * (A_STAGE_BYTES + B_STAGE_BYTES);  // the second team's come after
  const uint32_t a_tile_addr = gg::ptx::shared_addr(shared) + team_off;  // [STAGES][BM][BK], swizzled
  const uint32_t b_tile_addr = a_tile_addr + STAGES * A_STAGE_BYTES;     // [STAGES][BK][BN], swizzled
  auto stage = [&](int k_tile) {                                         // where slice k_tile is put
    const int index = k_tile % STAGES;
    return Stage{a_tile_addr + index * A_STAGE_BYTES, b_tile_addr + index * B_STAGE_BYTES};
  };
  // [/team]

  // [tile]
  // All warps of a team find the same tiles, so all come to the team's barriers equally often.
  // bar_sync relies on it: it counts threads, and does not know in which of its calls they are.
  // int is enough for tiles: in 4096 groups, the harness's most, 2^31 tiles have 128 GiB of D or
  // more, nearly all of an H200's memory: least if each group has one row, in tiles of 32 columns.
  const int workers = int(gridDim.x), tiles_n = (n + BN - 1) / BN;
  Walk walk = {int(blockIdx.x) + team * workers};  // starts: 0 to stride - 1, one for each team
  for (; walk.find(offsets, groups, BM, tiles_n); walk.tile += teams * workers) {
    const int row0 = walk.tile_in_group % walk.tiles_m * BM, col0 = walk.tile_in_group / walk.tiles_m * BN;
    // The group's rows and D's columns from the tile's corner on: fewer than the tile has, or more.
    const int rows_left = walk.group_rows - row0, cols_left = n - col0;
    const A* a_first = a + (walk.row_begin + row0) * k;
    const B* b_first = b + walk.group * b_group_stride + col0;
    D* d_tile = d + (walk.row_begin + row0) * n + col0;
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
          gg::ptx::bar_sync(1 + team, THREADS);  // so have the team's, and nobody reads slice k_tile any more
          load_fragments(sets[1 - set], stage(k_tile + 1), warp_row, warp_col, 0);
          load_a(k_tile + STAGES);
        }
        if (kk == 16) load_b(k_tile + STAGES - 1);  // one commit for a slice, before the wait that counts it
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
    gg::ptx::bar_sync(1 + team, THREADS);        // so have the team's
    load_fragments(sets[0], stage(0), warp_row, warp_col, 0);
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) compute(k_tile);
    // Copies of slices past the last one may be under way: zeros, some of them in no copy group. All
    // must have landed before the next tile's copies start, which begin with stage 0 again.
    gg::ptx::cp_async_wait_all();          // none of this thread's copies is under way
    gg::ptx::bar_sync(1 + team, THREADS);  // nor the team's, and nobody reads: all stages are free
    store<WM, WN>(acc, d_tile, n, warp_row, warp_col, rows_left, cols_left);
    // [/body]
  }
}

// The kernel for tiles of BM x bn; launch chooses BM. `bn` is 32, 64 or 128: launch has refused all others.
template <class A, class B, class D, class Offset, int BM>
auto* kernel_for(int bn) {
  return bn == 128  ? grouped_gemm<A, B, D, Offset, BM, 128>
         : bn == 64 ? grouped_gemm<A, B, D, Offset, BM, 64>
                    : grouped_gemm<A, B, D, Offset, BM, 32>;
}

// All others, f16 too, have 128x128 alone: all 72 kernels would take a minute to compile.
template <class A, class B, class Offset>
constexpr bool HAS_ALL_TILES =
    std::is_same_v<A, bf16>&& std::is_same_v<B, bf16>&& std::is_same_v<Offset, int32_t>;

// `blocks` 0: one worker per multiprocessor. Relies on under 2^31 tiles, and groups of at most
// 2^31 - 128 rows; on multiples of 8 for n and k; on A and B that start at multiples of 16 bytes, D at
// a multiple of two of its elements; on a `b_group_stride` of 0 (one B for all) or a multiple of 8.
template <class A, class B, class D, class Offset>
void launch(const A* a, const B* b, D* d, const Offset* offsets, int groups, int n, int k,
            int64_t b_group_stride, gg::TileShape tile, int blocks, cudaStream_t stream) {
  if (tile.m == 0) tile = {128, 128};
  // Each extent has a branch below and one in kernel_for. What none names would run as 32, the last.
  const auto legal = [](int extent) { return extent == 32 || extent == 64 || extent == 128; };
  GG_REQUIRE(legal(tile.m) && legal(tile.n), "--tile %dx%d: tiles have 32, 64 or 128 rows and columns",
             tile.m, tile.n);
  auto* kernel = grouped_gemm<A, B, D, Offset, 128, 128>;
  if constexpr (HAS_ALL_TILES<A, B, Offset>) {
    kernel = tile.m == 128  ? kernel_for<A, B, D, Offset, 128>(tile.n)
             : tile.m == 64 ? kernel_for<A, B, D, Offset, 64>(tile.n)
                            : kernel_for<A, B, D, Offset, 32>(tile.n);
  } else {
    GG_REQUIRE(tile.m == 128 && tile.n == 128, "--tile %dx%d: these types have tiles of 128x128", tile.m,
               tile.n);
  }
  const int team_threads = threads_for<A, B>(tile.m);  // the kernel's THREADS, as tile.m is its BM
  // [launch]
  const int team_bytes = STAGES * (tile.m + tile.n) * BK * 2;
  int device = 0, multiprocessors = 0, shared_limit = 0;
  GG_CHECK(cudaGetDevice(&device));
  GG_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  GG_CHECK(cudaDeviceGetAttribute(&shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const int teams = team_threads == 128 && 2 * team_bytes <= shared_limit ? 2 : 1;
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, teams * team_bytes));
  kernel<<<blocks ? blocks : multiprocessors, teams * team_threads, teams * team_bytes, stream>>>(
      a, b, d, offsets, groups, n, k, b_group_stride);
  // [/launch]
  GG_CHECK(cudaGetLastError());
}

}  // namespace chapter
