// SPDX-License-Identifier: MIT
//
// TMA with .cta_group::2: each block of a pair loads a box of its own, and the even block's
// mbarrier counts the bytes of both. With .multicast::cluster one block loads for others too.

#include <array>

#include "blackwell.cuh"
#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/tensor_map.h"

namespace probe {
namespace tma_pair {

constexpr int kThreads = 128, kRows = 8, kColumns = 32, kBoxBytes = kRows * kColumns * 4;

// [probe]
// Block b loads rows 8b to 8b + 7 of the matrix twice: through a map of two dimensions,
// then through one of three. The even block waits and the other block learns of it from
// the cluster barrier.
__global__ void __cluster_dims__(2) load_in_pairs(const __grid_constant__ CUtensorMap map_2d,
                                                  const __grid_constant__ CUtensorMap map_3d, uint32_t* out) {
  __shared__ __align__(1024) uint32_t words[2][kRows * kColumns];
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  const bool even = gg::ptx::cluster_ctarank() == 0;
  if (threadIdx.x == 0 && even) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
    gg::ptx::mbarrier_arrive_expect_tx(bar_addr, 2 * 2 * kBoxBytes);
  }
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the even block's mbarrier is there
  if (threadIdx.x == 0) {
    const int row = kRows * int(blockIdx.x);
    gg::ptx::tma_load_2d_pair(gg::ptx::shared_addr(words[0]), &map_2d, 0, row, bar_addr);
    gg::ptx::tma_load_3d_pair(gg::ptx::shared_addr(words[1]), &map_3d, 0, row % 16, row / 16, bar_addr);
  }
  if (even) gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // both boxes of both blocks have landed
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the odd block knows that too
  for (int i = int(threadIdx.x); i < kRows * kColumns; i += kThreads) {
    out[(blockIdx.x * 2 + 0) * kRows * kColumns + i] = words[0][i];
    out[(blockIdx.x * 2 + 1) * kRows * kColumns + i] = words[1][i];
  }
}
// [/probe]

class TmaPair : public BlackwellProbe {};

TEST_F(TmaPair, EvenBlockCountsTheBytesOfBoth) {
  constexpr int kBlocks = 8, kAll = kBlocks * kRows;
  std::vector<uint32_t> matrix(size_t(kAll * kColumns));
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = uint32_t(i) * 2654435761u;
  const Array<uint32_t> in(matrix);
  const Array<uint32_t> out(std::vector<uint32_t>(2 * matrix.size()));
  gg::TensorBox box;
  box.type = CU_TENSOR_MAP_DATA_TYPE_UINT32;
  box.data = in.get();
  box.dims = {kColumns, kAll};
  box.stride_bytes = {kColumns * 4};
  box.box = {kColumns, kRows};
  const CUtensorMap map_2d = gg::make_tensor_map(box);
  box.dims = {kColumns, 16, kAll / 16};
  box.stride_bytes = {kColumns * 4, kColumns * 4 * 16};
  box.box = {kColumns, kRows, 1};
  const CUtensorMap map_3d = gg::make_tensor_map(box);
  load_in_pairs<<<kBlocks, kThreads>>>(map_2d, map_3d, out.get());
  const std::vector<uint32_t> got = out.read();
  constexpr size_t kBox = kRows * kColumns;
  for (size_t i = 0; i < matrix.size(); ++i) {
    const size_t block = i / kBox, at = i % kBox;
    ASSERT_EQ(got[2 * block * kBox + at], matrix[i]) << "2d, word " << i;
    ASSERT_EQ(got[(2 * block + 1) * kBox + at], matrix[i]) << "3d, word " << i;
  }
}

// [multicast]
// In clusters of four, ranks 0 and 1, 2 and 3 are pairs. Block r loads one box for the blocks whose
// bits are set in masks[r], to place r of each. The even block of each pair waits for the bytes of
// both, and the other one learns of it from the cluster barrier.
__global__ void __cluster_dims__(4)
    load_for_others(const __grid_constant__ CUtensorMap map, uint64_t masks, uint32_t* out) {
  __shared__ __align__(1024) uint32_t words[4][kRows * kColumns];
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  const int rank = int(gg::ptx::cluster_ctarank()), pair = rank / 2;
  const auto mask_of = [masks](int block) { return uint16_t(masks >> (16 * block)); };
  for (int i = int(threadIdx.x); i < 4 * kRows * kColumns; i += kThreads) words[0][i] = 0;
  if (threadIdx.x == 0 && rank % 2 == 0) {
    int boxes = 0;  // that come to this pair
    for (int block = 0; block < 4; ++block) boxes += __popc(mask_of(block) >> (2 * pair) & 3);
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
    gg::ptx::mbarrier_arrive_expect_tx(bar_addr, boxes * kBoxBytes);
  }
  gg::ptx::fence_proxy_async();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the even blocks' mbarriers are there, and all words are 0
  if (threadIdx.x == 0) {
    const int row = kRows * int(blockIdx.x);
    gg::ptx::tma_load_3d_pair_multicast(gg::ptx::shared_addr(words[rank]), &map, 0, row % 16, row / 16,
                                        bar_addr, mask_of(rank));
  }
  if (rank % 2 == 0) gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // both boxes have landed
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the odd blocks know that too
  for (int i = int(threadIdx.x); i < 4 * kRows * kColumns; i += kThreads) {
    out[blockIdx.x * 4 * kRows * kColumns + i] = words[0][i];
  }
}
// [/multicast]

TEST_F(TmaPair, MulticastCountsAtTheEvenBlockOfEachDestination) {
  constexpr int kBlocks = 8, kAll = kBlocks * kRows;
  constexpr size_t kBox = kRows * kColumns;
  std::vector<uint32_t> matrix(size_t(kAll * kColumns));
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = 1 + uint32_t(i) * 2654435761u;
  const Array<uint32_t> in(matrix);
  gg::TensorBox box;
  box.type = CU_TENSOR_MAP_DATA_TYPE_UINT32;
  box.data = in.get();
  box.dims = {kColumns, 16, kAll / 16};
  box.stride_bytes = {kColumns * 4, kColumns * 4 * 16};
  box.box = {kColumns, kRows, 1};
  const CUtensorMap map = gg::make_tensor_map(box);
  // To its pair; to all; to the odd blocks; each to another one.
  for (const std::array<uint64_t, 4> masks : {std::array<uint64_t, 4>{0b0011, 0b0011, 0b1100, 0b1100},
                                              {0b1111, 0b1111, 0b1111, 0b1111},
                                              {0b1010, 0b1010, 0b1010, 0b1010},
                                              {0b0010, 0b0100, 0b1000, 0b0001}}) {
    const Array<uint32_t> out(std::vector<uint32_t>(4 * matrix.size()));
    load_for_others<<<kBlocks, kThreads>>>(map, masks[0] | masks[1] << 16 | masks[2] << 32 | masks[3] << 48,
                                           out.get());
    const std::vector<uint32_t> got = out.read();
    for (size_t block = 0; block < kBlocks; ++block) {
      for (size_t from = 0; from < 4; ++from) {
        const bool sent = masks[from] >> (block % 4) & 1;
        for (size_t i = 0; i < kBox; ++i) {
          const uint32_t want = sent ? matrix[(block / 4 * 4 + from) * kBox + i] : 0;
          ASSERT_EQ(got[(block * 4 + from) * kBox + i], want)
              << "mask " << masks[from] << ", block " << block << ", from " << from << ", word " << i;
        }
      }
    }
  }
}

}  // namespace tma_pair
}  // namespace probe
