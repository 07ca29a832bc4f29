// SPDX-License-Identifier: MIT
//
// Cooperative groups that want more than a warp: grids whose blocks wait for each other,
// tiles of several warps and clusters. The same tests run with NVIDIA's runtime on a GPU and
// with the emulator's.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "tests/emu/runtime.cuh"

namespace cooperative {

using namespace runtime_test;
namespace cg = cooperative_groups;

// Each block writes its number, and after the barrier adds those of the blocks around it, twice.
__global__ void neighbours(int* values) {
  const cg::grid_group grid = cg::this_grid();
  const unsigned blocks = gridDim.x, block = blockIdx.x;
  int* const numbers = values;
  int* const sums = values + blocks;
  if (threadIdx.x == 0) numbers[block] = int(block) + 1;
  grid.sync();
  if (threadIdx.x == 0) sums[block] = numbers[(block + 1) % blocks] + numbers[(block + blocks - 1) % blocks];
  grid.sync();
  if (threadIdx.x == 0) numbers[block] = sums[(block + 1) % blocks];
}

__global__ void tells_of_the_grid(int* values) {
  const cg::grid_group grid = cg::this_grid();
  if (grid.thread_rank() == grid.size() - 1) {
    values[0] = int(grid.size());
    values[1] = int(grid.num_blocks());
    values[2] = grid.is_valid();
  }
}

// Warps of a tile wait for those of their tile alone: tiles do unequally many rounds.
__global__ void sums_of_tiles(int* values) {
  __shared__ int shared[128];
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<64>(block);
  shared[threadIdx.x] = int(threadIdx.x);
  tile.sync();
  for (unsigned round = 0; round <= tile.meta_group_rank(); ++round) {
    const unsigned other = tile.meta_group_rank() * 64 + (tile.thread_rank() + 32) % 64;
    const int seen = shared[other];
    tile.sync();
    shared[threadIdx.x] = seen + 1;
    tile.sync();
  }
  const int sum = cg::reduce(tile, shared[threadIdx.x], cg::plus<int>());
  if (tile.thread_rank() == 0) values[tile.meta_group_rank()] = sum;
}

__global__ void __cluster_dims__(2) exchanges_in_a_cluster(int* values) {
  __shared__ int number;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) number = 10 + int(cluster.block_rank());
  cluster.sync();
  if (threadIdx.x == 0) values[blockIdx.x] = *cluster.map_shared_rank(&number, cluster.block_rank() ^ 1);
  cluster.sync();
}

class Cooperative : public Runtime {
 protected:
  cudaError_t together(const void* kernel, dim3 grid, dim3 block, size_t shared = 0) {
    void* args[] = {&values_};
    return cudaLaunchCooperativeKernel(kernel, grid, block, args, shared, stream_);
  }
};

TEST_F(Cooperative, BlocksOfAGridWaitForEachOther) {
  const auto* kernel = reinterpret_cast<const void*>(&neighbours);
  ASSERT_EQ(together(kernel, 8, 64), cudaSuccess);
  EXPECT_EQ(read(16), (std::vector<int>{4, 6, 8, 10, 12, 14, 8, 10, 10, 4, 6, 8, 10, 12, 14, 8}));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 4;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* args[] = {&values_};
  ASSERT_EQ(cudaLaunchKernelExC(&config, kernel, args), cudaSuccess);
  EXPECT_EQ(read(8), (std::vector<int>{4, 6, 4, 6, 6, 4, 6, 4}));
}

TEST_F(Cooperative, GridsKnowWhetherTheyMayWait) {
  const auto* kernel = reinterpret_cast<const void*>(&tells_of_the_grid);
  ASSERT_EQ(together(kernel, dim3(3, 2), dim3(16, 2)), cudaSuccess);
  EXPECT_EQ(read(3), (std::vector<int>{192, 6, 1}));
  ASSERT_EQ(launch(kernel, 2, 32), cudaSuccess);
  // An H100 says here too that they may; the emulator does not.
  EXPECT_EQ(read(2), (std::vector<int>{64, 2}));
}

TEST_F(Cooperative, RefusesAGridThatDoesNotFit) {
  int fit = 0, multiprocessors = 0, supported = 0;
  const auto* kernel = reinterpret_cast<const void*>(&neighbours);
  ASSERT_EQ(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0), cudaSuccess);
  EXPECT_EQ(supported, 1);
  ASSERT_EQ(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, kernel, 1024, 0), cudaSuccess);
  EXPECT_EQ(together(kernel, unsigned(fit * multiprocessors + 1), 1024), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
}

TEST_F(Cooperative, TilesAreLargerThanAWarp) {
  sums_of_tiles<<<1, 128>>>(values_);
  EXPECT_EQ(read(2), (std::vector<int>{63 * 64 / 2 + 64, 63 * 64 / 2 + 64 * 64 + 2 * 64}));
}

TEST_F(Cooperative, BlocksOfAClusterWaitForEachOther) {
  exchanges_in_a_cluster<<<4, 32>>>(values_);
  EXPECT_EQ(read(4), (std::vector<int>{11, 10, 11, 10}));
}

}  // namespace cooperative
