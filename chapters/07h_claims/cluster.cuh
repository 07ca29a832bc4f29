// SPDX-License-Identifier: MIT
//
// How a block tells any block of its cluster, its own or another, that it has read something. The
// instructions for clusters are in common/kernel/ptx/cluster.cuh.

#pragma once

#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"

namespace chapter {

// One arrival at the mbarrier that block `rank` of the cluster has where this block has the one at
// bar_addr; `rank` may be this block's own. Without mapa all arrivals would be at this block's own
// mbarrier: its phase could end before the other block has read, or the other block wait for ever.
// A plain arrival, without a fence that reaches the cluster, is enough: it says that something was
// read, and shows no write to anybody.
// Before: the read is over. wgmma that read has been waited for, the load's value is in a register
// (gg::ptx::has_come), or the threads that loaded have met in a bar_sync since.
template <int BLOCKS>
__device__ void arrive_in(int rank, uint32_t bar_addr) {
  if constexpr (BLOCKS > 1) {
    gg::ptx::mbarrier_arrive(gg::ptx::mapa(bar_addr, rank));
  } else {
    gg::ptx::mbarrier_arrive(bar_addr);
  }
}

}  // namespace chapter
