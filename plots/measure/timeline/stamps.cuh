// SPDX-License-Identifier: MIT
//
// Stamps of time that timeline.py puts into a copy of a chapter: when a block's first consumer
// began and ended each tile, and how long it waited for slices. The last launch's stamps stay.

#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "common/kernel/check.h"

namespace chapter {

struct Stamp {  // of one tile, in nanoseconds of the device's global timer
  unsigned long long begin, end;
  unsigned waited;  // for slices of A and B
  unsigned sm;      // the multiprocessor
};

// The most blocks of a grid, tiles of a block.
constexpr int STAMPED_BLOCKS = 1024, STAMPED_TILES = 256;
__device__ Stamp all_stamps[STAMPED_BLOCKS][STAMPED_TILES];
__device__ int stamped[STAMPED_BLOCKS];  // tiles of each block

__device__ inline unsigned long long now() {
  unsigned long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
  return nanoseconds;
}

// Who: every consumer thread has one; thread 0 of the block writes.
class Stamps {
 public:
  __device__ ~Stamps() {
    if (writes()) stamped[blockIdx.x] = tile_;
  }
  __device__ void begin() {
    if (writes()) stamp_.begin = now();
    stamp_.waited = 0;
  }
  __device__ void wait_begins() {
    if (writes()) wait_began_ = now();
  }
  __device__ void wait_ends() {
    if (writes()) stamp_.waited += unsigned(now() - wait_began_);
  }
  __device__ void end() {
    if (!writes()) return;
    stamp_.end = now();
    asm volatile("mov.u32 %0, %%smid;" : "=r"(stamp_.sm));
    all_stamps[blockIdx.x][tile_++] = stamp_;
  }

 private:
  __device__ bool writes() const {
    return threadIdx.x == 0 && blockIdx.x < STAMPED_BLOCKS && tile_ < STAMPED_TILES;
  }

  Stamp stamp_{};
  unsigned long long wait_began_ = 0;
  int tile_ = 0;
};

// Writes the last launch's stamps to a CSV file: a row for each tile. Returns an exit code: 0, or 4
// where the file cannot be written.
inline int write_stamps(const char* path) {
  std::vector<Stamp> all(size_t(STAMPED_BLOCKS) * STAMPED_TILES);
  std::vector<int> tiles(STAMPED_BLOCKS);
  GG_CHECK(cudaDeviceSynchronize());
  GG_CHECK(cudaMemcpyFromSymbol(all.data(), all_stamps, all.size() * sizeof(Stamp)));
  GG_CHECK(cudaMemcpyFromSymbol(tiles.data(), stamped, tiles.size() * sizeof(int)));
  std::FILE* file = std::fopen(path, "w");
  if (!file) {
    std::fprintf(stderr, "%s: cannot be written\n", path);
    return 4;
  }
  std::fprintf(file, "sm,begin_ns,end_ns,waited_ns\n");
  for (size_t block = 0; block < tiles.size(); ++block) {
    for (size_t i = 0; i < size_t(tiles[block]); ++i) {
      const Stamp& stamp = all[block * STAMPED_TILES + i];
      std::fprintf(file, "%u,%llu,%llu,%u\n", stamp.sm, stamp.begin, stamp.end, stamp.waited);
    }
  }
  return std::fclose(file) == 0 ? 0 : 4;
}

}  // namespace chapter
