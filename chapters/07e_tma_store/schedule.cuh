// SPDX-License-Identifier: MIT
//
// The tile scheduler. Tiles are counted through all groups. A warp finds its block's tiles in
// the offsets and sends each to the warps that load and multiply, while they have the tile before.

#pragma once

#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"
#include "common/types.cuh"

namespace chapter {

struct alignas(16) Tile {  // group -1: there is no further tile; row0: its first row in A and D
  int group, row0, rows, col0;
};

// In shared memory, a place for one tile. `phase`: parity of the number of tiles that went through before.
struct Mailbox {
  uint64_t full, empty;  // a tile has come; all warps that load or multiply have read it
  Tile tile;

  __device__ void send(const Tile& next, int phase) {                        // by a whole warp
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&empty), phase ^ 1);  // all have read the tile before
    __syncwarp();  // a slow lane could find `empty` two phases on
    if (gg::ptx::elect()) {
      tile = next;
      gg::ptx::mbarrier_arrive(gg::ptx::shared_addr(&full));
    }
  }
  // [read]
  __device__ Tile read(int phase) const {                               // by a whole warp
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&full), phase);  // a tile has come
    const Tile next = gg::ptx::uniform(tile);
    __syncwarp();  // all lanes have looked and read: a later one could find `full` two phases on
    if (threadIdx.x % 32 == 0) gg::ptx::mbarrier_arrive(gg::ptx::shared_addr(&empty));
    return next;
  }
  // [/read]
};
// Walks the tiles of all groups in order, for a whole warp: lane l looks at group first_group + l.
template <class C>
class Schedule {
  static constexpr int BM = C::BM, BN = C::BN;

 public:
  __device__ Schedule(const gg::Offsets& offsets, int groups, int n)
      : offsets_(offsets), groups_(groups), tiles_n_((n + BN - 1) / BN) {
    look();
  }
  // Returns a tile of group -1 where there is none. `index` only grows.
  __device__ Tile find(int index) {
    for (;;) {
      const unsigned after = __ballot_sync(~0u, index < end_ * tiles_n_);  // groups that end after it
      if (after != 0) return place(index, __ffs(after) - 1);
      first_group_ += 32;
      if (first_group_ >= groups_) return {-1, 0, 0, 0};
      tiles_before_ = __shfl_sync(~0u, end_, 31);
      look();
    }
  }

 private:
  __device__ static int lane() { return int(threadIdx.x) % 32; }

  // Reads the offsets of 32 groups. Of this lane's: its first row, rows and rows of tiles; end_: up to with
  // it.
  __device__ void look() {
    const int group = first_group_ + lane();
    begin_ = offsets_[min(group, groups_)];
    rows_ = offsets_[min(group + 1, groups_)] - begin_;
    end_ = tiles_m_ = (rows_ + BM - 1) / BM;
    for (int step = 1; step < 32; step *= 2) {
      const int below = __shfl_up_sync(~0u, end_, step);
      if (lane() >= step) end_ += below;
    }
    end_ += tiles_before_;
  }
  __device__ Tile place(int index, int owner) const {  // within a group column after column
    const int begin = __shfl_sync(~0u, begin_, owner), rows = __shfl_sync(~0u, rows_, owner);
    const int tiles_m = __shfl_sync(~0u, tiles_m_, owner), before = __shfl_sync(~0u, end_, owner) - tiles_m;
    const int in_group = index - before * tiles_n_, row0 = in_group % tiles_m * BM;
    return {first_group_ + owner, begin + row0, min(BM, rows - row0), in_group / tiles_m * BN};
  }
  const gg::Offsets& offsets_;
  int groups_, tiles_n_, first_group_ = 0, tiles_before_ = 0;
  int begin_, rows_, tiles_m_, end_;  // of this lane's group
};

}  // namespace chapter
