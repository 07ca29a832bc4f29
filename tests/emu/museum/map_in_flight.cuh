// SPDX-License-Identifier: MIT
//
// Every group has a matrix of its own. One tensor map in global memory is changed for each group,
// while the copy for the group before may still read it.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tensormap.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/tensor_map.h"
#include "exhibit.h"

namespace museum::map_in_flight {

constexpr int GROUPS = 4, ROWS = 8, COLUMNS = 32, STAGES = 2;

// D[g] = the matrix at b[g], by TMA into a ring of two stages. One warp.
template <bool RIGHT>
__global__ void __launch_bounds__(32)
    copy(const __grid_constant__ CUtensorMap pattern, const float* const* b, CUtensorMap* map, float* d) {
  __shared__ __align__(128) CUtensorMap next_map;
  __shared__ __align__(128) float tile[STAGES][ROWS * COLUMNS];
  __shared__ uint64_t full[STAGES];
  const int lane = int(threadIdx.x);
  const uint32_t next_addr = gg::ptx::shared_addr(&next_map), full_addr = gg::ptx::shared_addr(full);
  if (lane == 0) {
    next_map = pattern;
    for (int stage = 0; stage < STAGES; ++stage) gg::ptx::mbarrier_init(full_addr + stage * 8, 1);
    gg::ptx::fence_mbarrier_init();
  }
  __syncwarp();
  for (int g = 0; g <= GROUPS; ++g) {
    const int before = g - 1, stage = g % STAGES;
    // [mistake]
    if (RIGHT && g > 0)  // the copy has ended, and with it its use of the map
      gg::ptx::mbarrier_wait_parity(full_addr + before % STAGES * 8, before / STAGES & 1);
    // [/mistake]
    if (g < GROUPS) {
      if (lane == 0) gg::ptx::tensormap_replace_global_address(next_addr, b[g]);
      __syncwarp();
      gg::ptx::tensormap_cp_fenceproxy(map, next_addr);
      if (lane == 0) {
        gg::ptx::fence_tensormap_acquire(map);
        gg::ptx::mbarrier_arrive_expect_tx(full_addr + stage * 8, int(sizeof tile[0]));
        gg::ptx::tma_load_2d(gg::ptx::shared_addr(tile[stage]), map, 0, 0, full_addr + stage * 8);
      }
      __syncwarp();
    }
    if (g == 0) continue;
    gg::ptx::mbarrier_wait_parity(full_addr + before % STAGES * 8, before / STAGES & 1);
    for (int i = lane; i < ROWS * COLUMNS; i += 32) d[before * ROWS * COLUMNS + i] = tile[before % STAGES][i];
    __syncwarp();  // the stage has been read
  }
}

template <bool RIGHT>
Verdict run() {
  constexpr int ELEMS = ROWS * COLUMNS;
  const std::vector<float> numbers = whole_numbers<float>(GROUPS * ELEMS);
  const Array<float> matrices(numbers), d{std::vector<float>(GROUPS * ELEMS)};
  std::vector<const float*> b;
  for (int g = 0; g < GROUPS; ++g) b.push_back(matrices.get() + g * ELEMS);
  const Array<const float*> b_device(b);
  const Array<CUtensorMap> map{std::vector<CUtensorMap>(1)};
  const CUtensorMap pattern = gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                                                   .data = b[0],
                                                   .dims = {COLUMNS, ROWS},
                                                   .stride_bytes = {COLUMNS * 4},
                                                   .box = {COLUMNS, ROWS}});
  copy<RIGHT><<<1, 32>>>(pattern, b_device.get(), map.get(), d.get());
  return compare(d.read(), numbers);
}

}  // namespace museum::map_in_flight
