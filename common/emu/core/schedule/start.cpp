// SPDX-License-Identifier: MIT
//
// Starting a cluster: its blocks and warps, registers and special registers.
// PTX ISA: "Special Registers".

#include <algorithm>

#include "common/emu/core/schedule/schedule.h"

namespace gg::emu {
namespace {

// Shared memory of a block behind its own, that cooperative groups keep the barriers of tiles of
// several warps in. The system has zeros there when the block begins.
constexpr size_t kReservedBytes = 288;
size_t own_shared_bytes(const Launch& launch) {
  return size_t(launch.code->shared_bytes + launch.dynamic_shared);
}
size_t reserved_offset(const Launch& launch) { return (own_shared_bytes(launch) + 15) / 16 * 16; }
bool uses_reserved(const Code& code) {
  return std::any_of(code.specials.begin(), code.specials.end(),
                     [](const Code::Special& s) { return s.name == "%reserved_smem_offset_1"; });
}

uint64_t special_value(const Warp& w, int lane, const Code::Special& s) {
  const Block& b = *w.block;
  const Launch& launch = b.grid->launch;
  const int thread = w.thread_of(lane), c = s.component, x = launch.block[0], y = launch.block[1];
  const int tid[3] = {thread % x, thread / x % y, thread / x / y};
  const std::string& n = s.name;
  if (n == "%shared") return uint64_t(b.rank) << 24 | uint64_t(c);
  // 32 bits: see cvta.
  if (n == "%param") return (s.bits == 64 ? b.grid->params_address : 0) + uint64_t(c);
  if (n == "%tid") return uint64_t(tid[c]);
  if (n == "%ntid") return uint64_t(launch.block[c]);
  if (n == "%ctaid") return uint64_t(b.id[c]);
  if (n == "%nctaid") return uint64_t(launch.grid[c]);
  if (n == "%laneid") return uint64_t(lane);
  if (n == "%warpid") return uint64_t(w.index);
  if (n == "%nwarpid") return b.warps.size();
  if (n == "%smid") return uint64_t(b.linear % b.grid->multiprocessors);
  if (n == "%nsmid") return uint64_t(b.grid->multiprocessors);
  if (n == "%lanemask_eq") return 1ull << lane;
  if (n == "%lanemask_lt") return (1ull << lane) - 1;
  if (n == "%lanemask_le") return (2ull << lane) - 1;
  if (n == "%lanemask_gt") return uint32_t(~((2ull << lane) - 1));
  if (n == "%lanemask_ge") return uint32_t(~((1ull << lane) - 1));
  if (n == "%clusterid") return uint64_t(b.cluster->id[c]);
  if (n == "%nclusterid") return uint64_t(launch.grid[c] / launch.cluster[c]);
  if (n == "%cluster_ctaid") return uint64_t(b.id[c] % launch.cluster[c]);
  if (n == "%cluster_nctaid") return uint64_t(launch.cluster[c]);
  if (n == "%cluster_ctarank") return uint64_t(b.rank);
  if (n == "%cluster_nctarank") return b.cluster->blocks.size();
  if (n == "%dynamic_smem_size") return uint64_t(launch.dynamic_shared);
  if (n == "%total_smem_size") return own_shared_bytes(launch);
  if (n == "%reserved_smem_offset_1") return uint64_t(kSharedStart) + reserved_offset(launch);
  if (n == "%envreg1") return b.grid->workspace >> 32;
  if (n == "%envreg2") return b.grid->workspace & 0xFFFFFFFF;
  if (n == "%is_explicit_cluster") return b.cluster->blocks.size() > 1;
  return 0;  // %gridid; clocks are read where the instruction stands, see isa/mov.cpp
}

void start_warp(Warp& w, const Code& code) {
  w.registers.bytes.assign(code.initial);
  w.registers.written.assign(code.registers.size(), 0);
  w.local.assign(size_t(code.local_bytes) * kLanes, 0);
  w.flow.live = 0;
  for (int l = 0; l < kLanes; ++l) w.flow.live |= Mask(w.thread_of(l) < w.block->threads) << l;
  w.flow.fragments = {Fragment{w.flow.live, code.entry, false, {}, 0, {}}};
  for (const Code::Special& s : code.specials) {
    const bool differs = s.name == "%tid" || s.name.starts_with("%lane");  // from lane to lane
    uint64_t value = special_value(w, 0, s);
    for (int l = 0; l < kLanes; ++l) {
      if (differs) value = special_value(w, l, s);
      std::memcpy(w.at<uint8_t>(s.slot) + size_t(l) * size_t(s.bits) / 8, &value, size_t(s.bits) / 8);
    }
  }
}
}  // namespace

std::unique_ptr<Cluster> start_cluster(Grid& grid, int64_t index) {
  const Launch& launch = grid.launch;
  auto cluster = std::make_unique<Cluster>();
  cluster->grid = &grid;
  cluster->turns = Random(grid.order.seed, index, Random::Stream::turns);
  cluster->lanes = Random(grid.order.seed, index, Random::Stream::lanes);
  cluster->delays = Random(grid.order.seed, index, Random::Stream::delays);
  int count[3];
  for (int i = 0; i < 3; ++i) count[i] = launch.grid[i] / launch.cluster[i];
  cluster->id[0] = int(index % count[0]);
  cluster->id[1] = int(index / count[0] % count[1]);
  cluster->id[2] = int(index / count[0] / count[1]);
  const int blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  for (int rank = 0; rank < blocks; ++rank) {
    auto block = std::make_unique<Block>();
    block->grid = &grid;
    block->cluster = cluster.get();
    block->rank = rank;
    const int in_cluster[3] = {rank % launch.cluster[0], rank / launch.cluster[0] % launch.cluster[1],
                               rank / launch.cluster[0] / launch.cluster[1]};
    for (int i = 0; i < 3; ++i) block->id[i] = cluster->id[i] * launch.cluster[i] + in_cluster[i];
    block->linear = (int64_t(block->id[2]) * launch.grid[1] + block->id[1]) * launch.grid[0] + block->id[0];
    block->threads = launch.block[0] * launch.block[1] * launch.block[2];
    const int warps = (block->threads + kLanes - 1) / kLanes;
    const bool reserved = uses_reserved(*launch.code);
    const size_t bytes = reserved ? reserved_offset(launch) + kReservedBytes : own_shared_bytes(launch);
    block->shared.resize(bytes);
    if (reserved) {
      std::fill_n(block->shared.bytes.end() - kReservedBytes, kReservedBytes, uint8_t(0));
      std::fill_n(block->shared.shadow.end() - kReservedBytes, kReservedBytes,
                  uint8_t(SharedMemory::kWritten));
    }
    block->shared.checked = grid.checks;
    const size_t agents = size_t(warps) * size_t(blocks) * (grid.tensor_cores ? 2 : 1);
    block->shared.races.resize(bytes, grid.races ? agents : 0, *block);
    block->live_warps = warps;
    for (int i = 0; i < warps; ++i) {
      auto warp = std::make_unique<Warp>();
      warp->block = block.get();
      warp->index = i;
      warp->registers.per_thread = launch.registers;
      warp->race.agent = size_t(rank) * size_t(warps) + size_t(i);
      warp->race.clock.set(warp->race.agent, 1);
      block->warps.push_back(std::move(warp));
    }
    cluster->blocks.push_back(std::move(block));
  }
  for (const auto& block : cluster->blocks) {  // special registers tell of the whole cluster
    for (const auto& warp : block->warps) start_warp(*warp, *launch.code);
  }
  return cluster;
}
}  // namespace gg::emu
