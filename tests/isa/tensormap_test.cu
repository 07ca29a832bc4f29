// SPDX-License-Identifier: MIT
//
// Tensor maps that one kernel makes and the next one uses: every group has a matrix of its own,
// with its own place, rows, columns and stride.

#include <algorithm>

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tensormap.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/tensor_map.h"
#include "hopper.cuh"

namespace probe {
namespace tensormap {

constexpr int kGroups = 5, kBoxColumns = 32, kBoxRows = 8, kBox = kBoxColumns * kBoxRows;
constexpr int kColumn0 = 16, kRow0 = 4;

struct Matrix {
  const uint32_t* data;
  int columns, rows, stride;  // in elements
};

// [probe]
// Block g makes the map of matrix g from a pattern that has type and box.
__global__ void make(const __grid_constant__ CUtensorMap pattern, const Matrix* matrices, CUtensorMap* maps) {
  __shared__ __align__(128) CUtensorMap map;
  const uint32_t map_addr = gg::ptx::shared_addr(&map);
  const Matrix m = matrices[blockIdx.x];
  if (threadIdx.x == 0) {
    map = pattern;
    gg::ptx::tensormap_replace_global_address(map_addr, m.data);
    gg::ptx::tensormap_replace_global_dim<0>(map_addr, m.columns);
    gg::ptx::tensormap_replace_global_dim<1>(map_addr, m.rows);
    gg::ptx::tensormap_replace_global_stride<1>(map_addr, m.stride * int64_t(4));
  }
  __syncwarp();  // the map is in shared memory
  gg::ptx::tensormap_cp_fenceproxy(&maps[blockIdx.x], map_addr);
}

// Another kernel. Block g loads a box that reaches beyond the edges of matrix g.
__global__ void use(const CUtensorMap* maps, uint32_t* out) {
  __shared__ __align__(1024) uint32_t box[kBox];
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  const CUtensorMap* map = &maps[blockIdx.x];
  if (threadIdx.x == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
    gg::ptx::fence_tensormap_acquire(map);
    gg::ptx::fence_tensormap_acquire(nullptr);  // does nothing
    gg::ptx::mbarrier_arrive_expect_tx(bar_addr, int(sizeof box));
    gg::ptx::tma_load_2d(gg::ptx::shared_addr(box), map, kColumn0, kRow0, bar_addr);
  }
  __syncthreads();
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // the box has landed
  for (int i = int(threadIdx.x); i < kBox; i += 32) out[blockIdx.x * kBox + i] = box[i];
}
// [/probe]

class Tensormap : public HopperProbe {};

TEST_F(Tensormap, EveryGroupHasItsOwn) {
  // In one buffer, one behind the other; columns and rows end inside, behind and at the box's edge.
  const int columns[kGroups] = {40, 48, 17, 300, 20}, rows[kGroups] = {10, 5, 100, 12, 7};
  std::vector<uint32_t> numbers;
  std::vector<size_t> begins;
  for (int g = 0; g < kGroups; ++g) {
    begins.push_back(numbers.size());
    for (int i = 0; i < rows[g] * 304; ++i) numbers.push_back(uint32_t(g * 1000003 + i) * 2654435761u);
  }
  const Array<uint32_t> data(numbers), out(std::vector<uint32_t>(kGroups * kBox));
  std::vector<Matrix> matrices;
  const auto stride = [](int g) { return 304 - g % 3 * 4 + (g == 3 ? 4 : 0); };
  for (int g = 0; g < kGroups; ++g)
    matrices.push_back({data.get() + begins[size_t(g)], columns[g], rows[g], stride(g)});
  const Array<Matrix> matrix_array(matrices);
  const Array<CUtensorMap> maps(std::vector<CUtensorMap>(kGroups, CUtensorMap{}));
  const CUtensorMap pattern = gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                                   .data = matrix_array.get(),
                                                   .dims = {8, 8},
                                                   .stride_bytes = {32},
                                                   .box = {kBoxColumns, kBoxRows}});
  // The second time in reverse order: over maps that were used.
  for (int round = 0; round < 2; ++round) {
    if (round == 1) {
      std::reverse(matrices.begin(), matrices.end());
      GG_CHECK(
          cudaMemcpy(matrix_array.get(), matrices.data(), kGroups * sizeof(Matrix), cudaMemcpyHostToDevice));
    }
    make<<<kGroups, 32>>>(pattern, matrix_array.get(), maps.get());
    use<<<kGroups, 32>>>(maps.get(), out.get());
    const std::vector<uint32_t> got = out.read();
    for (int g = 0; g < kGroups; ++g) {
      const Matrix& m = matrices[size_t(g)];
      const size_t begin = size_t(m.data - data.get());
      for (int i = 0; i < kBox; ++i) {
        const int row = kRow0 + i / kBoxColumns, column = kColumn0 + i % kBoxColumns;
        const bool inside = row < m.rows && column < m.columns;
        const uint32_t expected = inside ? numbers[begin + size_t(row * m.stride + column)] : 0;
        ASSERT_EQ(got[size_t(g * kBox + i)], expected)
            << "round " << round << " group " << g << " " << row << "," << column;
      }
    }
  }
}

}  // namespace tensormap
}  // namespace probe
