// SPDX-License-Identifier: MIT
//
// Chapter 07b: groups have an N and a K of their own, and matrices of their own.
//
// Group g has its own rows of A and D, and its own B[g], [N,K] with K contiguous. N and K may be its own:
//     D[row, col] = sum over k of A[row, k] * B[g][col, k]
// New here: the device makes the tensor maps of such groups, as the host does not know their addresses.

#pragma once

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "common/kernel/ptx/warpgroup.cuh"
#include "config.cuh"
#include "load.cuh"
#include "multiply.cuh"
#include "schedule.cuh"

namespace chapter {

// One block per multiprocessor: each of 384 threads has C::START_REGISTERS until setmaxnreg.
template <class C, class T>
__global__ void __launch_bounds__(C::THREADS, 1)
    grouped_gemm(const __grid_constant__ Maps packed, bool own_maps, int groups) {
  constexpr int STAGES = C::STAGES;
  const int thread = int(threadIdx.x), warp = gg::ptx::uniform(thread / 32);
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ uint64_t bars[2 * STAGES];
  __shared__ Tile headers[STAGES];
  // `bars` and `headers` come first, `shared` begins at the next multiple of 1024.
  static_assert(sizeof(bars) + sizeof(headers) <= 1024);
  static_assert(C::SHARED_BYTES + 1024 <= 227 * 1024);  // a block's limit
  Memory memory;
  memory.a_tile_addr = gg::ptx::keep(gg::ptx::shared_addr(shared));
  memory.b_tile_addr = memory.a_tile_addr + STAGES * C::A_BYTES;
  memory.full_addr = gg::ptx::keep(gg::ptx::shared_addr(bars));
  memory.empty_addr = memory.full_addr + STAGES * 8;
  memory.headers = headers;
  if (thread == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      gg::ptx::mbarrier_init(memory.full_addr + stage * 8, 1);
      gg::ptx::mbarrier_init(memory.empty_addr + stage * 8, 4 * C::CONSUMERS);
    }
    gg::ptx::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there for all threads and for TMA
  // [roles]
  if (warp < C::LOADER) {
    gg::ptx::setmaxnreg_inc<C::CONSUMER_REGISTERS>();
    multiply_tiles<C, T>(memory, schedule.first[groups]);
  } else {
    gg::ptx::setmaxnreg_dec<C::OTHER_REGISTERS>();
    if (warp == C::LOADER) load_tiles(packed, own_maps, memory, Tiles<C, T>(groups));
  }
  // [/roles]
}

}  // namespace chapter
