// SPDX-License-Identifier: MIT
//
// The list of all groups' tiles, as in chapter 07a, and the warp of each pair of blocks that takes tiles from
// it. A mailbox in each block hands their numbers to the other warps, which find the tiles for themselves.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/warpgroup.cuh"
#include "config.cuh"
#include "ring.cuh"

namespace chapter {

constexpr int MAX_GROUPS = 4096, PLANNERS = 1024;

// At a fixed address: a launch allocates nothing, and a graph can hold it. One launch at a time may use it.
__device__ struct {
  int first[MAX_GROUPS + 1];  // number of each group's first tile; [groups]: of all tiles; [0] stays 0
  int next;                   // the first number that nobody has claimed
} schedule;

// One block writes the schedule. A thread counts the tiles of a group of the batch; then all make
// prefix sums, in steps of 1, 2, 4 .. groups.
__global__ void __launch_bounds__(PLANNERS, 1) plan(const int* ends, int n, int groups, int bm, int bn) {
  // When all blocks of `plan` are here, grouped_gemm's may start where there is room: so it stands
  // first. It orders no memory: the wait in kernel.cuh keeps them from reading an old schedule.
  gg::ptx::griddepcontrol_launch_dependents();
  const int thread = int(threadIdx.x), threads = int(blockDim.x);
  __shared__ int counts[PLANNERS];
  if (thread == 0) schedule.next = 0;
  for (int batch = 0, earlier = 0; batch < groups; batch += threads) {
    const int g = batch + thread, rows = g < groups ? ends[g] - (g > 0 ? ends[g - 1] : 0) : 0;
    if (rows < 0 || rows % PAD_ROWS != 0) __trap();  // else rows have no tile, or wrong scales
    counts[thread] = rows / bm * ((n + bn - 1) / bn);
    for (int step = 1; step < threads; step *= 2) {
      __syncthreads();  // sums of up to `step` groups are written
      const int below = thread >= step ? counts[thread - step] : 0;
      __syncthreads();  // and read, before they are overwritten
      counts[thread] += below;
    }
    if (g < groups) schedule.first[g + 1] = earlier + counts[thread];
    __syncthreads();  // the sum of the whole batch is written
    earlier += counts[threads - 1];
    __syncthreads();  // and read by all, before the next batch overwrites it
  }
}

struct Tile {
  int group;
  int row0;  // its first row, as A and D count
  int col0;
};

// How tiles get to the warps that work on them: a ring in each block.
struct Mailbox {
  static constexpr int AHEAD = 2;  // slots: tiles that are known before they are begun; 1 or more
  uint64_t full[AHEAD];            // barriers: a number has come
  uint64_t empty[AHEAD];           // barriers: all readers of the pair have read it; rank 0's is used
  int number[AHEAD];               // of a tile; one that is not below the count of tiles ends the work

  __device__ void init(int readers) {  // by one thread; `readers`: the warps that call Tiles::next
    for (int i = 0; i < AHEAD; ++i) {
      gg::ptx::mbarrier_init(gg::ptx::shared_addr(&full[i]), 1);
      gg::ptx::mbarrier_init(gg::ptx::shared_addr(&empty[i]), readers);
    }
  }

  // Who: a whole warp. What was sent to this place of the ring.
  __device__ int read(const Ring<AHEAD>& ring) {
    // [read]
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&full[ring.stage]), ring.phase);
    const int received = number[ring.stage];
    __syncwarp();  // all lanes have left the wait and begun to load
    // The arrival must not overtake a load: a later number could overwrite this one. `has_come` is
    // true for each number, as none is negative, but unknown until this lane's load has returned.
    // The machine code (CUDA 13.0) loads for all lanes at once: then the others' have, too.
    if (gg::ptx::elect() && gg::ptx::has_come(received)) {
      gg::ptx::mbarrier_arrive(gg::ptx::mapa(gg::ptx::shared_addr(&empty[ring.stage]), 0));
    }
    // [/read]
    return received;
  }
};

// The scheduling warp, of rank 0: hands out tile after tile until there is none.
// It waits for the mailbox's `empty` and signals `full` of both blocks.
// `tiles` must be the readers' count_: so all end with the same number.
__device__ inline void schedule_tiles(Mailbox& mailbox, int tiles, bool dynamic) {
  const int lane = int(threadIdx.x) % 32;
  int number = -1, in_turn = int(blockIdx.y);  // sent last; to send next without claims
  for (Ring<Mailbox::AHEAD> ring; number < tiles; ring.next()) {
    // [claim]
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&mailbox.empty[ring.stage]), ring.phase ^ 1);
    __syncwarp();  // all lanes have left the wait before the sends: a late one might miss a phase
    number = in_turn;
    in_turn += int(gridDim.y);
    if (dynamic) {
      if (lane == 0) number = atomicAdd(&schedule.next, 1);
      number = __shfl_sync(~0u, number, 0);
    }
    if (lane < CTA_GROUP) {  // each lane to the block of this rank
      const auto full = gg::ptx::mapa(gg::ptx::shared_addr(&mailbox.full[ring.stage]), lane);
      gg::ptx::mbarrier_arrive_expect_tx(full, sizeof(int));
      gg::ptx::st_async(gg::ptx::mapa(gg::ptx::shared_addr(&mailbox.number[ring.stage]), lane),
                        uint32_t(number), full);
    }
    // [/claim]
  }
}

// This pair's tiles, for a warp that walks through them.
template <class C>
class Tiles {
 public:
  __device__ Tiles(Mailbox& mailbox, const int* ends, int groups)
      : mailbox_(mailbox), ends_(ends), groups_(groups), count_(schedule.first[groups]) {}

  // Who: a whole warp. False: there is no other tile. Tiles of a group go column after column.
  __device__ bool next(Tile& tile) {
    // [next]
    __syncwarp();  // where one lane does the work, the others wait for it here and not at the mailbox
    const int number = mailbox_.read(ring_);
    ring_.next();
    if (number >= count_) return false;
    // [/next]
    const int lane = int(threadIdx.x) % 32;
    // Each lane looks at one of 32 groups: does it end after this tile? The last group always does.
    unsigned after;
    while (!(after = __ballot_sync(~0u, number < schedule.first[min(batch_ + lane + 1, groups_)]))) {
      batch_ += 32;  // never back: the numbers that a walk gets only grow
    }
    const int group = batch_ + __ffs(after) - 1, in_group = number - schedule.first[group];
    const int begin = group > 0 ? ends_[group - 1] : 0, tiles_m = (ends_[group] - begin) / BM;
    tile = {group, begin + in_group % tiles_m * BM, in_group / tiles_m * BN};
    return true;
  }

 private:
  Mailbox& mailbox_;
  const int* ends_;
  int groups_, count_;  // how many groups, and tiles of all groups
  Ring<Mailbox::AHEAD> ring_;
  int batch_ = 0;  // the first of the 32 groups that are looked at
};

}  // namespace chapter
