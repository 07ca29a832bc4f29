// SPDX-License-Identifier: MIT
//
// Chapter 07b: how tiles get from the warp that finds them to all warps of a cluster that load and multiply.
// Chapter 07a's table of tiles is made before the kernel; here each comes while the one before is under way.

#pragma once

#include <cstdint>

#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/warp.cuh"

namespace chapter {

struct Tile {
  int group = -1;  // -1: there is no further tile
  int row0 = 0;    // its first row in A and D
  int rows = 0, col0 = 0;

  bool operator==(const Tile&) const = default;
};

struct Mailbox {
  uint64_t full;   // of each block: a tile has come
  uint64_t empty;  // of the first block: all have read it
  int4 tile;

  __device__ void init(int readers) {  // by one thread; how many warps of the cluster read
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&full), 1);
    gg::ptx::mbarrier_init(gg::ptx::shared_addr(&empty), readers);
  }
};

// For a whole warp of the first of BLOCKS blocks.
template <int BLOCKS>
class Sender {
 public:
  __device__ explicit Sender(Mailbox& mailbox)
      : full_(gg::ptx::shared_addr(&mailbox.full)),
        empty_(gg::ptx::shared_addr(&mailbox.empty)),
        tile_(gg::ptx::shared_addr(&mailbox.tile)),
        mailbox_(mailbox) {}

  // Until all have read the tile before, if there is one.
  __device__ void wait() { gg::ptx::mbarrier_wait_parity(empty_, phase_ ^ 1); }

  __device__ void send(const Tile& tile) {
    if constexpr (BLOCKS > 1) {
      const int lane = int(threadIdx.x) % 32, rank = lane / 4, word = lane % 4;
      if (rank < BLOCKS) {
        const auto full = gg::ptx::mapa(full_, rank), to = gg::ptx::mapa(tile_ + word * 4, rank);
        const int value = word == 0 ? tile.group : word == 1 ? tile.row0 : word == 2 ? tile.rows : tile.col0;
        if (word == 0) gg::ptx::mbarrier_arrive_expect_tx(full, sizeof(Tile));
        gg::ptx::st_async(to, uint32_t(value), full);
      }
    } else if (gg::ptx::elect()) {
      mailbox_.tile = {tile.group, tile.row0, tile.rows, tile.col0};
      gg::ptx::mbarrier_arrive(full_);
    }
    __syncwarp();
    phase_ ^= 1;
  }

 private:
  uint32_t full_, empty_, tile_;
  Mailbox& mailbox_;
  int phase_ = 0;
};

// For a whole warp of any of them.
template <int BLOCKS>
class Reader {
 public:
  __device__ explicit Reader(Mailbox& mailbox) : mailbox_(mailbox) {}

  __device__ Tile read() {
    gg::ptx::mbarrier_wait_parity(gg::ptx::shared_addr(&mailbox_.full), phase_);
    phase_ ^= 1;
    Tile tile;
    if (threadIdx.x % 32 == 0) {  // who reads it says so
      const int4 words = mailbox_.tile;
      tile = {words.x, words.y, words.z, words.w};
      const uint32_t empty = gg::ptx::shared_addr(&mailbox_.empty);
      if constexpr (BLOCKS > 1) {
        gg::ptx::mbarrier_arrive(gg::ptx::mapa(empty, 0));
      } else {
        gg::ptx::mbarrier_arrive(empty);
      }
    }
    return gg::ptx::uniform(tile);
  }

 private:
  Mailbox& mailbox_;
  int phase_ = 0;
};

}  // namespace chapter
