// SPDX-License-Identifier: MIT
//
// Clusters: loads and stores in the shared memory of other blocks, barriers that blocks share, and
// copies that several of them receive.

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/tensor_map.h"
#include "hopper.cuh"

namespace probe {
namespace cluster {

constexpr int kBlocks = 4, kThreads = 64;

__device__ void cluster_sync() {
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();
}

// [probe]
// Every thread stores a number of its own in the next block's shared memory, for another thread
// there; then it loads what the block after that one has received.
__global__ void __cluster_dims__(kBlocks) store_and_load(uint32_t* received, uint32_t* seen) {
  __shared__ uint32_t inbox[kThreads];
  const int rank = gg::ptx::cluster_ctarank(), thread = int(threadIdx.x);
  const auto at = [&](int index, int block) {
    return gg::ptx::mapa(gg::ptx::shared_addr(&inbox[index % kThreads]), block % kBlocks);
  };
  cluster_sync();  // all blocks have started
  gg::ptx::st_shared_cluster(at(thread * 3 + 1, rank + 1), uint32_t(blockIdx.x * 1000 + thread));
  cluster_sync();  // all numbers are there
  received[blockIdx.x * kThreads + thread] = inbox[thread];
  seen[blockIdx.x * kThreads + thread] = gg::ptx::ld_shared_cluster(at(thread, rank + 2));
  cluster_sync();  // nobody reads a block that has ended
}

// The same store, asynchronous: the receiving block waits on its own mbarrier, for the bytes. Who
// says how many come: that block, or, FROM_THERE, the one that stores.
template <class Number, bool FROM_THERE>
__global__ void __cluster_dims__(kBlocks) store_async(Number* received) {
  __shared__ Number inbox[kThreads];
  __shared__ uint64_t bar;
  const int rank = gg::ptx::cluster_ctarank(), thread = int(threadIdx.x), next = (rank + 1) % kBlocks;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  if (thread == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
    if (!FROM_THERE) gg::ptx::mbarrier_arrive_expect_tx(bar_addr, int(sizeof inbox));
  }
  cluster_sync();  // every block's barrier is there
  if (FROM_THERE && thread == kThreads / 2) {
    gg::ptx::mbarrier_arrive_expect_tx(gg::ptx::mapa(bar_addr, next), int(sizeof inbox));
  }
  gg::ptx::st_async(gg::ptx::mapa(gg::ptx::shared_addr(&inbox[(thread * 3 + 1) % kThreads]), next),
                    Number(blockIdx.x * 1000 + thread), gg::ptx::mapa(bar_addr, next));
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // all numbers have come
  received[blockIdx.x * kThreads + thread] = inbox[thread];
  cluster_sync();  // no bytes are on their way to a block that has ended
}

// All threads of the cluster arrive at rank 0's barrier, round by round; rank 0 hands the round's
// sum on to all.
__global__ void __cluster_dims__(kBlocks) gather(int rounds, uint32_t* sums) {
  __shared__ uint32_t inbox[kBlocks * kThreads], sum;
  __shared__ uint64_t full, ready;
  const int rank = gg::ptx::cluster_ctarank(), thread = int(threadIdx.x);
  const uint32_t full_addr = gg::ptx::shared_addr(&full), ready_addr = gg::ptx::shared_addr(&ready);
  if (thread == 0) {
    gg::ptx::mbarrier_init(full_addr, kBlocks * kThreads);
    gg::ptx::mbarrier_init(ready_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  cluster_sync();
  uint32_t number = blockIdx.x * 100 + thread;
  for (int round = 0; round < rounds; ++round) {
    gg::ptx::st_shared_cluster(gg::ptx::mapa(gg::ptx::shared_addr(&inbox[rank * kThreads + thread]), 0),
                               number);
    gg::ptx::mbarrier_arrive_cluster(gg::ptx::mapa(full_addr, 0));
    if (rank == 0 && thread == 0) {
      gg::ptx::mbarrier_wait_parity_cluster(full_addr, round % 2);  // the round's numbers are there
      uint32_t total = 0;
      for (const uint32_t each : inbox) total += each;
      for (int block = 0; block < kBlocks; ++block) {
        gg::ptx::st_shared_cluster(gg::ptx::mapa(gg::ptx::shared_addr(&sum), block), total);
        gg::ptx::mbarrier_arrive_cluster(gg::ptx::mapa(ready_addr, block));
      }
    }
    gg::ptx::mbarrier_wait_parity_cluster(ready_addr, round % 2);  // the round's sum is there
    number = number * 3 + sum;
  }
  sums[blockIdx.x * kThreads + thread] = number;
  cluster_sync();
}

// [multicast]
// Each of two blocks loads one half of a box, for both; box after box into the same place. DIMS: of
// the map; of a map of matrices, the second one.
template <int DIMS>
__global__ void __cluster_dims__(2)
    multicast(const __grid_constant__ CUtensorMap map, int boxes, uint32_t* out) {
  __shared__ __align__(1024) uint32_t box[2][4][32];
  __shared__ uint64_t full, empty;
  const int rank = gg::ptx::cluster_ctarank(), thread = int(threadIdx.x);
  const uint32_t full_addr = gg::ptx::shared_addr(&full), empty_addr = gg::ptx::shared_addr(&empty);
  if (thread == 0) {
    gg::ptx::mbarrier_init(full_addr, 1);
    gg::ptx::mbarrier_init(empty_addr, 2 * kThreads);
    gg::ptx::fence_mbarrier_init();
  }
  cluster_sync();  // the barriers of both blocks are there
  for (int i = 0; i < boxes; ++i) {
    if (thread == 0) {
      gg::ptx::mbarrier_wait_parity(empty_addr, i % 2 ^ 1);            // all threads have read it
      gg::ptx::mbarrier_arrive_expect_tx(full_addr, int(sizeof box));  // both halves, whoever asks
      const uint32_t dst_addr = gg::ptx::shared_addr(box[rank]);
      const int c0 = int(blockIdx.x / 2) * 32, c1 = i * 8 + rank * 4;
      if constexpr (DIMS == 2) gg::ptx::tma_load_2d_multicast(dst_addr, &map, c0, c1, full_addr, 0b11);
      if constexpr (DIMS == 3) gg::ptx::tma_load_3d_multicast(dst_addr, &map, c0, c1, 1, full_addr, 0b11);
    }
    gg::ptx::mbarrier_wait_parity(full_addr, i % 2);  // both halves have landed here
    for (int at = thread; at < 256; at += kThreads) {
      out[(blockIdx.x * boxes + i) * 256 + at] = (&box[0][0][0])[at];
    }
    for (int block = 0; block < 2; ++block) gg::ptx::mbarrier_arrive(gg::ptx::mapa(empty_addr, block));
  }
  cluster_sync();  // nobody arrives at a block that has ended
}
// [/multicast]

// The first block sends a word to each lane of the other one's warps, and the next words as soon as
// these have said that they read the ones before. Stores keep their loads waiting. An arrival
// before the load would let words be lost.
__global__ void __cluster_dims__(2) read_and_tell(int words, uint32_t* out, uint32_t* read) {
  __shared__ uint32_t cell[32];
  __shared__ uint64_t full, empty;
  const int thread = int(threadIdx.x), lane = thread % 32;
  const uint32_t full_addr = gg::ptx::shared_addr(&full), empty_addr = gg::ptx::shared_addr(&empty);
  if (thread == 0) {
    gg::ptx::mbarrier_init(full_addr, 1);
    gg::ptx::mbarrier_init(empty_addr, kThreads / 32);
    gg::ptx::fence_mbarrier_init();
  }
  cluster_sync();
  for (int i = 0; i < words; ++i) {
    if (gg::ptx::cluster_ctarank() == 1) {
      for (int line = 0; line < 16; ++line) out[((blockIdx.x * 16 + line) * kThreads + thread) * 8] = i;
      gg::ptx::mbarrier_wait_parity(full_addr, i % 2);  // all lanes' words have come
      const uint32_t word = cell[lane];
      __syncwarp();
      if (lane == 0 && gg::ptx::has_come(word)) gg::ptx::mbarrier_arrive(gg::ptx::mapa(empty_addr, 0));
      read[(blockIdx.x / 2 * words + i) * kThreads + thread] = word;
    } else if (thread < 32) {
      gg::ptx::mbarrier_wait_parity(empty_addr, i % 2 ^ 1);  // all warps there have read
      __syncwarp();
      const auto bar = gg::ptx::mapa(full_addr, 1);
      if (lane == 0) gg::ptx::mbarrier_arrive_expect_tx(bar, int(sizeof cell));
      gg::ptx::st_async(gg::ptx::mapa(gg::ptx::shared_addr(&cell[lane]), 1),
                        uint32_t((blockIdx.x * 100000 + i) * 32 + lane), bar);
    }
  }
  cluster_sync();  // nobody arrives at a block that has ended
}
// [/probe]

// Runs of bytes from the own to the next block's shared memory, and sums there.
__global__ void __cluster_dims__(kBlocks) copy_across(uint32_t* out) {
  __shared__ __align__(16) uint32_t own[kThreads], inbox[kThreads], sums[kThreads];
  __shared__ uint64_t bar;
  const int rank = gg::ptx::cluster_ctarank(), thread = int(threadIdx.x), next = (rank + 1) % kBlocks;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  own[thread] = blockIdx.x * 1000 + thread;
  sums[thread] = 7;
  if (thread == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
    gg::ptx::mbarrier_arrive_expect_tx(bar_addr, (1 + kBlocks) * int(sizeof own));
  }
  gg::ptx::fence_proxy_async();
  cluster_sync();
  if (thread == 0) {
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            gg::ptx::mapa(gg::ptx::shared_addr(inbox), next).value),
        "r"(gg::ptx::shared_addr(own)), "r"(int(sizeof own)), "r"(gg::ptx::mapa(bar_addr, next).value)
        : "memory");
    for (int block = 0; block < kBlocks; ++block) {
      asm volatile(
          "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], "
          "%2, "
          "[%3];" ::"r"(gg::ptx::mapa(gg::ptx::shared_addr(sums), block).value),
          "r"(gg::ptx::shared_addr(own)), "r"(int(sizeof own)), "r"(gg::ptx::mapa(bar_addr, block).value)
          : "memory");
    }
  }
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);
  out[blockIdx.x * 2 * kThreads + thread] = inbox[thread];
  out[blockIdx.x * 2 * kThreads + kThreads + thread] = sums[thread];
  cluster_sync();
}

class ClusterOf4 : public HopperProbe {
 protected:
  static constexpr int kClusters = 2, kAll = kClusters * kBlocks * kThreads;
  // Returns what block `block` finds in its inbox for thread `thread` when the block before
  // it sent numbers.
  static uint32_t sent(int block, int thread) {
    const int from = block / kBlocks * kBlocks + (block + kBlocks - 1) % kBlocks;
    for (int t = 0; t < kThreads; ++t) {
      if ((t * 3 + 1) % kThreads == thread) return uint32_t(from * 1000 + t);
    }
    return 0;
  }
};

TEST_F(ClusterOf4, StoresAndLoadsReachOtherBlocks) {
  const Array<uint32_t> received(std::vector<uint32_t>(kAll, 0)), seen(std::vector<uint32_t>(kAll, 0));
  store_and_load<<<kClusters * kBlocks, kThreads>>>(received.get(), seen.get());
  const std::vector<uint32_t> got = received.read(), got_seen = seen.read();
  for (int i = 0; i < kAll; ++i) {
    const int block = i / kThreads, thread = i % kThreads;
    EXPECT_EQ(got[size_t(i)], sent(block, thread)) << "block " << block << " thread " << thread;
    EXPECT_EQ(got_seen[size_t(i)], sent(block / kBlocks * kBlocks + (block + 2) % kBlocks, thread))
        << "block " << block << " thread " << thread;
  }
}

template <class Number>
class AsynchronousStores : public ClusterOf4 {};
using Numbers = testing::Types<uint32_t, float>;
TYPED_TEST_SUITE(AsynchronousStores, Numbers);

TYPED_TEST(AsynchronousStores, AreCounted) {
  for (const auto kernel : {store_async<TypeParam, false>, store_async<TypeParam, true>}) {
    const Array<TypeParam> received(std::vector<TypeParam>(this->kAll, 0));
    kernel<<<this->kClusters * kBlocks, kThreads>>>(received.get());
    const std::vector<TypeParam> got = received.read();
    for (int i = 0; i < this->kAll; ++i) {
      EXPECT_EQ(got[size_t(i)], TypeParam(this->sent(i / kThreads, i % kThreads)))
          << "block " << i / kThreads << " thread " << i % kThreads
          << (kernel == store_async<TypeParam, true> ? ", its bytes announced from there" : "");
    }
  }
}

TEST_F(ClusterOf4, ArrivesAtOneBlocksBarrier) {
  constexpr int kRounds = 7;
  const Array<uint32_t> sums(std::vector<uint32_t>(kAll, 0));
  gather<<<kClusters * kBlocks, kThreads>>>(kRounds, sums.get());
  const std::vector<uint32_t> got = sums.read();
  std::vector<uint32_t> numbers(kAll);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = uint32_t(i / kThreads * 100 + i % kThreads);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t cluster = 0; cluster < kClusters; ++cluster) {
      uint32_t sum = 0;
      const size_t first = cluster * kBlocks * kThreads;
      for (size_t i = 0; i < kBlocks * kThreads; ++i) sum += numbers[first + i];
      for (size_t i = 0; i < kBlocks * kThreads; ++i) numbers[first + i] = numbers[first + i] * 3 + sum;
    }
  }
  EXPECT_EQ(got, numbers);
}

TEST_F(ClusterOf4, BulkCopiesReachOtherBlocks) {
  const Array<uint32_t> out(std::vector<uint32_t>(2 * kAll, 0));
  copy_across<<<kClusters * kBlocks, kThreads>>>(out.get());
  const std::vector<uint32_t> got = out.read();
  for (int block = 0; block < kClusters * kBlocks; ++block) {
    const int first = block / kBlocks * kBlocks, before = first + (block + kBlocks - 1) % kBlocks;
    for (int thread = 0; thread < kThreads; ++thread) {
      const size_t at = size_t(block * 2 * kThreads + thread);
      EXPECT_EQ(got[at], uint32_t(before * 1000 + thread)) << "block " << block;
      EXPECT_EQ(got[at + kThreads], uint32_t(7 + 4 * thread + (4 * first + 6) * 1000)) << "block " << block;
    }
  }
}

class ClusterOf2 : public HopperProbe {};

template <int DIMS>
void expect_multicast() {
  constexpr int kColumns = 96, kBoxes = 5, kRows = kBoxes * 8, kFirst = (DIMS - 2) * kColumns * kRows;
  std::vector<uint32_t> in(kFirst + kColumns * kRows);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i * 2654435761u);
  const Array<uint32_t> tensor(in), out(std::vector<uint32_t>(6 * kRows * 32));
  gg::TensorBox box = {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                       .data = tensor.get(),
                       .dims = {kColumns, kRows},
                       .stride_bytes = {kColumns * 4},
                       .box = {32, 4}};
  if (DIMS == 3)
    box.dims.push_back(2), box.stride_bytes.push_back(kColumns * kRows * 4), box.box.push_back(1);
  multicast<DIMS><<<6, kThreads>>>(gg::make_tensor_map(box), kBoxes, out.get());
  const std::vector<uint32_t> got = out.read();
  for (int block = 0; block < 6; ++block) {
    for (int row = 0; row < kRows; ++row) {
      for (int col = 0; col < 32; ++col) {
        EXPECT_EQ(got[size_t((block * kRows + row) * 32 + col)],
                  in[size_t(kFirst + row * kColumns + block / 2 * 32 + col)])
            << "block " << block << " row " << row << " col " << col;
      }
    }
  }
}
TEST_F(ClusterOf2, LosesNoWordOfWhatIsReadAndOverwritten) {
  constexpr int kPairs = 4;
  const int words = gg::emulator() ? 9 : 20000;
  const Array<uint32_t> out(std::vector<uint32_t>(kPairs * 2 * 16 * kThreads * 8)),
      read(std::vector<uint32_t>(size_t(kPairs) * size_t(words) * kThreads));
  read_and_tell<<<kPairs * 2, kThreads>>>(words, out.get(), read.get());
  const std::vector<uint32_t> got = read.read();
  for (size_t at = 0; at < got.size(); ++at) {
    const size_t thread = at % kThreads, word = at / kThreads % size_t(words),
                 block = at / kThreads / size_t(words) * 2;
    ASSERT_EQ(got[at], uint32_t((block * 100000 + word) * 32 + thread % 32))
        << "word " << word << " of block " << block << " in thread " << thread;
  }
}

TEST_F(ClusterOf2, MulticastReachesBothBlocks) {
  expect_multicast<2>();
  expect_multicast<3>();
}

}  // namespace cluster
}  // namespace probe
