// SPDX-License-Identifier: MIT
//
// The list of all groups and their tiles and, where groups have sizes of their own, two tensor maps for
// each group. `plan` writes all this. In the product's kernel block b of W takes tiles b, b + W,
// b + 2W .., which its loading warp finds.

#pragma once

#include "common/kernel/check.h"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tensormap.cuh"
#include "config.cuh"
#include "group.cuh"

namespace chapter {

constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;  // PLANNERS: threads of a block of `plan`, at most

// At a fixed address: a launch allocates nothing, and a graph can hold it. Launches overwrite each
// other's, so only one may run at a time.
__device__ struct {
  Group groups[MAX_GROUPS];
  int first[MAX_GROUPS + 1];  // each group's first tile; [groups]: number of all tiles; [0] stays 0
  Maps maps[MAX_GROUPS];      // each group's; not written where groups are packed
} schedule;

// Makes group g's maps of A and B. Each is a copy of a blank map, which has type, box and swizzle. Both
// are released: threads that load with them must acquire them. Who: a whole warp; lane 0 makes A's, lane
// 1 B's. mnk: the group's M, N, K. ld: its lda, ldb, ldd. `shared`: for this warp alone.
template <class T>
__device__ void make_maps(const Maps& blanks, int g, const T* a, const T* b, const int* mnk, const int* ld,
                          Maps& shared) {
  // [maps]
  // A map's limits. TMA would take a K that is no multiple of 8 too, but that is not tested.
  GG_DEVICE_ASSERT(mnk[2] > 0 && mnk[2] % 8 == 0 && uintptr_t(a) % 16 == 0 && uintptr_t(b) % 16 == 0);
  GG_DEVICE_ASSERT(ld[0] % 8 == 0 && ld[1] % 8 == 0);
  const int lane = int(threadIdx.x) % 32;
  const uint32_t a_addr = gg::ptx::shared_addr(&shared.a), b_addr = a_addr + sizeof(CUtensorMap);
  if (lane < 2) {
    const uint32_t map_addr = lane == 0 ? a_addr : b_addr;
    (lane == 0 ? shared.a : shared.b) = lane == 0 ? blanks.a : blanks.b;
    gg::ptx::tensormap_replace_global_address(map_addr, lane == 0 ? a : b);
    // Lane 0 makes A's map: dimension 1, the rows, is M = mnk[0], and the row stride lda = ld[0].
    // Lane 1 makes B's map: there they are N = mnk[1] and ldb = ld[1]. Dimension 0 is K in both.
    gg::ptx::tensormap_replace_global_dim<0>(map_addr, mnk[2]);  // TMA brings zeros for k from K on
    gg::ptx::tensormap_replace_global_dim<1>(map_addr, max(mnk[lane], 1));
    gg::ptx::tensormap_replace_global_stride<1>(map_addr, ld[lane] * int64_t(sizeof(T)));
  }
  __syncwarp();  // both maps are in shared memory
  gg::ptx::tensormap_cp_fenceproxy(&schedule.maps[g].a, a_addr);
  gg::ptx::tensormap_cp_fenceproxy(&schedule.maps[g].b, b_addr);
  // [/maps]
}

// The number of blocks of `plan`, with `warps` warps each. Block 0 writes groups and first. If groups
// have maps of their own, each warp of the blocks after it makes those of one group: too few blocks
// would leave the last groups the maps of an earlier launch.
inline int plan_blocks(int groups, int warps, bool own_maps) {
  return own_maps ? 1 + (groups + warps - 1) / warps : 1;
}

// Writes the schedule. `sizes` not null: groups have sizes of their own, and d, offsets, n and k are not
// read. Null: they are packed, and blanks, the pointers and leading_dims are not read. bm, bn: BM and
// BN of the Config that the product's kernel has. Blocks: plan_blocks, each of whole warps.
template <class T, class Offset>
__global__ void __launch_bounds__(PLANNERS, 1)
    plan(const __grid_constant__ Maps blanks, const T* const* a_ptrs, const T* const* b_ptrs,
         T* const* d_ptrs, const int* sizes, const int* leading_dims, T* d, const Offset* offsets, int n,
         int k, int groups, int bm, int bn) {
  const int thread = int(threadIdx.x), threads = int(blockDim.x), warp = thread / 32;
  __shared__ Maps of_warp[PLANNERS / 32];  // where a warp makes its group's maps
  GG_DEVICE_ASSERT(!sizes || (int(gridDim.x) - 1) * threads / 32 >= groups);  // as plan_blocks has it
  if (blockIdx.x > 0) {
    const int g = (int(blockIdx.x) - 1) * threads / 32 + warp;
    if (g >= groups) return;
    make_maps(blanks, g, a_ptrs[g], b_ptrs[g], sizes + 3 * g, leading_dims + 3 * g, of_warp[warp]);
    return;
  }
  // A thread describes one group of a batch; then all make prefix sums of their tiles, in steps of
  // 1, 2, 4 .. groups. `earlier`: tiles of the batches before.
  __shared__ int counts[PLANNERS];
  for (int batch = 0, earlier = 0; batch < groups; batch += threads) {
    // [describe]
    const int g = batch + thread, *mnk = sizes + 3 * g;  // not read if packed
    Group group = {};                                    // no rows, no tiles
    if (g < groups && sizes) {
      group = {.d = d_ptrs[g],
               .row0 = 0,
               .rows = mnk[0],
               .n = mnk[1],
               .k = mnk[2],
               .ldd = leading_dims[3 * g + 2]};
    }
    if (g < groups && !sizes) {
      group = {.d = d + int64_t(offsets[g]) * n,
               .row0 = int(offsets[g]),
               .rows = int(offsets[g + 1] - offsets[g]),
               .n = n,
               .k = k,
               .ldd = n};
    }
    GG_DEVICE_ASSERT(uintptr_t(group.d) % 4 == 0 && group.n % 8 == 0 && group.ldd % 8 == 0);
    counts[thread] = group.tiles(bm, bn);
    // [/describe]
    for (int step = 1; step < threads; step *= 2) {
      __syncthreads();  // sums of up to `step` groups are written
      const int below = thread >= step ? counts[thread - step] : 0;
      __syncthreads();  // and read, before they are overwritten
      counts[thread] += below;
    }
    if (g < groups) {
      schedule.groups[g] = group;
      schedule.first[g + 1] = earlier + counts[thread];
    }
    __syncthreads();  // the sum of the whole batch is written
    earlier += counts[threads - 1];
    __syncthreads();  // and read by all, before the next batch overwrites it
  }
}

// This block's tiles, for the loading warp. multiply.cuh goes through the same numbers on its own.
template <class C, class T>
class Tiles {
 public:
  __device__ explicit Tiles(int groups) : groups_(groups), count_(schedule.first[groups]) {}

  // Who: a whole warp. False: this block has no other tile. Tiles of a group go column after column.
  __device__ bool next(Tile& tile) {
    if (index_ >= count_) return false;
    const int lane = int(threadIdx.x) % 32;
    unsigned after;  // bit l: group batch_ + l ends after this tile
    while (!(after = __ballot_sync(~0u, index_ < schedule.first[min(batch_ + lane + 1, groups_)]))) {
      batch_ += 32;  // never back: a block's numbers only grow
    }
    // [tile]
    const int g = batch_ + __ffs(after) - 1, in_group = index_ - schedule.first[g];
    const Group group = schedule.groups[g];
    const int r0 = group.tile_m(in_group, C::BM) * C::BM, col0 = group.tile_n(in_group, C::BM) * C::BN;
    T* const d = static_cast<T*>(group.d) + int64_t(r0) * group.ldd + col0;
    tile = {.group = g,
            .row0 = group.row0 + r0,
            .rows = min(C::BM, group.rows - r0),
            .col0 = col0,
            .cols = min(C::BN, group.n - col0),
            .k = group.k,
            .ldd = group.ldd,
            .d = d};
    // [/tile]
    index_ += int(gridDim.x);
    return true;
  }

 private:
  int groups_, count_;           // how many groups and tiles there are
  int index_ = int(blockIdx.x);  // number of the next tile
  int batch_ = 0;                // the first of the 32 groups that are looked at
};

}  // namespace chapter
