// SPDX-License-Identifier: MIT
//
// Tensor maps in memory: which were changed, and the checks behind every use. PTX ISA: "Memory
// Consistency Model: Proxies".

#include "common/emu/core/units/tensor_map_use.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "common/emu/core/state/place.h"
#include "common/emu/core/state/unwritten.h"

namespace gg::emu {

// Maps that kernels changed, this one or those before it: the end of a kernel is no
// fence between proxies.
struct TensorMapChanges {
  struct Change {
    // Numbers of its last change, and of the last one handed to the tensormap proxy.
    uint64_t version = 0, released = 0;
    std::string by;
  };
  std::map<uint64_t, Change> changes;                                // by address
  std::map<uint64_t, std::vector<std::weak_ptr<const Party>>> uses;  // by copies under way
};

namespace {

// Clusters run on several threads: held while the grid's changes are looked at.
std::mutex changes_mutex;

TensorMapChanges& changes_of(Warp& w) {
  auto& changes = w.block->grid->memory->tensor_maps;
  if (!changes) changes = std::make_shared<TensorMapChanges>();
  return *changes;
}

int capability_of(const Warp& w) { return targets_sm100(*w.block->grid->launch.code->module) ? 100 : 90; }

// A map that was changed must have been released behind the change, and acquired by the block
// that uses it.
void check_proxy(Warp& w, const Instr& in, int lane, uint64_t address) {
  const std::lock_guard lock(changes_mutex);
  TensorMapChanges& all = changes_of(w);
  const auto change = all.changes.find(address);
  if (change == all.changes.end()) return;
  const auto& mine = w.block->grid->tensor_maps_acquired;
  const auto acquired = mine.find({w.block->linear, address});
  if (acquired != mine.end() && acquired->second >= change->second.version) return;
  const bool released = change->second.released >= change->second.version;
  raise(FaultKind::proxy, w, in, lane,
        "the tensor map at " + hex(address) + " was changed (" + change->second.by + ") and " +
            (released ? "this block has not acquired it since" : "not released since"),
        "tensormap.cp_fenceproxy, or fence.proxy.tensormap::generic.release, by who changed it; then "
        "fence.proxy.tensormap::generic.acquire on the map by who uses it");
}

}  // namespace

uint8_t* tensor_map_bytes(Warp& w, const Instr& in, int lane, uint64_t address) {
  if (address - kSharedWindow < kSharedWindowBytes || address - kLocalWindow < kLocalWindowBytes) {
    raise_final(FaultKind::tensor_map, w, in, lane,
                "the tensor map at " + hex(address) + " is in shared or local memory",
                "a copy reads its map from a kernel parameter (const __grid_constant__ CUtensorMap), "
                "constant or global memory");
  }
  return locate(w, in, lane, Space::global, address, int(kTensorMapBytes), kTensorMapAlignment).bytes;
}

TensorMapUse tensor_map_in_use(Warp& w, const Instr& in, int lane, uint64_t address) {
  const std::lock_guard lock(changes_mutex);
  auto& uses = changes_of(w).uses[address];
  uses.erase(std::remove_if(uses.begin(), uses.end(), [](const auto& use) { return use.expired(); }),
             uses.end());
  const auto use = std::make_shared<const Party>(Party{&w, &in, lane, "issued the copy"});
  uses.push_back(use);
  return use;
}

void tensor_map_changed(Warp& w, const Instr& in, int lane, uint64_t address, bool released) {
  const std::lock_guard lock(changes_mutex);
  TensorMapChanges& all = changes_of(w);
  for (const auto& each : all.uses[address]) {
    const TensorMapUse use = each.lock();
    if (!use) continue;
    raise(FaultKind::async_window, w, in, lane,
          "the tensor map at " + hex(address) + " is changed here, and a copy with it is under way",
          "wait for the copies that use the map, at their mbarrier or for their group, before it is changed",
          {*use});
  }
  TensorMapChanges::Change& change = all.changes[address];
  ++change.version;
  if (released) change.released = change.version;
  change.by = place_of(in);
}

void release_tensor_maps(Warp& w) {
  const std::lock_guard lock(changes_mutex);
  for (auto& [address, change] : changes_of(w).changes) change.released = change.version;
}

void acquire_tensor_map(Warp& w, uint64_t address) {
  const std::lock_guard lock(changes_mutex);
  TensorMapChanges& all = changes_of(w);
  const auto change = all.changes.find(address);
  if (change != all.changes.end())
    w.block->grid->tensor_maps_acquired[{w.block->linear, address}] = change->second.released;
}

bool targets_sm100(const Module& module) { return module.target.rfind("sm_1", 0) == 0; }

TensorMap use_tensor_map(Warp& w, const Instr& in, int lane, uint64_t address, int rank) {
  const uint8_t* const bytes = tensor_map_bytes(w, in, lane, address);
  check_global_read(w, in, lane, w.block->grid->memory->below(address), address, kTensorMapBytes);
  const TensorMap map = decode_tensor_map(bytes);
  check_proxy(w, in, lane, address);
  const std::string problem = tensor_map_problem(map, capability_of(w));
  if (!problem.empty()) {
    raise_final(
        FaultKind::tensor_map, w, in, lane,
        "the 128 bytes at " + hex(address) + " are no tensor map to be used: " + problem,
        "the map was not made by cuTensorMapEncodeTiled, was overwritten, or the address is not the map's");
  }
  if (map.rank != rank) {
    raise_final(
        FaultKind::tensor_map, w, in, lane,
        "a copy of " + std::to_string(rank) + " dimensions with a tensor map of " + std::to_string(map.rank),
        "the instruction and its map must have the same number of dimensions");
  }
  if (map.interleave) {
    raise_final(FaultKind::unsupported, w, in, lane,
                "a tensor map with interleave: " + describe_tensor_map(map),
                "the emulator does not know these; common/emu/SUPPORTED.md lists what it knows");
  }
  return map;
}

}  // namespace gg::emu
