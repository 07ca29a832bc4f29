// SPDX-License-Identifier: MIT
//
// Tensor maps as kernels use and change them. PTX ISA: "Tensor Maps", "tensormap.replace", "Memory
// Consistency Model: Proxies": what ordinary instructions wrote into a map counts for copies only
// behind a fence of the tensormap proxy.

#pragma once

#include <memory>

#include "common/emu/core/units/async_operation.h"
#include "common/emu/core/units/tensor_map_format.h"

namespace gg::emu {

// The map at a generic address for a copy of a box of `rank` dimensions. Faults
// if it cannot be used for that, or if it was changed and this block has not
// run fence.proxy.tensormap.acquire since.
TensorMap use_tensor_map(Warp& warp, const Instr& instr, int lane, uint64_t address, int rank);

constexpr int kTensorMapAlignment = 64;  // of its address, in bytes
// The 128 bytes at a global or generic address in global memory. Faults if it is elsewhere.
uint8_t* tensor_map_bytes(Warp& warp, const Instr& instr, int lane, uint64_t address);

// While it lives, a copy with the map at an address is under way.
using TensorMapUse = std::shared_ptr<const Party>;
TensorMapUse tensor_map_in_use(Warp& warp, const Instr& instr, int lane, uint64_t address);

// A kernel changes the map at an address; `released`: and hands the change to the tensormap proxy.
// Faults if a copy with the map is under way.
void tensor_map_changed(Warp& warp, const Instr& instr, int lane, uint64_t address, bool released);
// fence.proxy.tensormap::generic.release: all changes so far are handed to the tensormap proxy.
void release_tensor_maps(Warp& warp);
// fence.proxy.tensormap::generic.acquire: the warp's block may use the map at the address as
// it was released.
void acquire_tensor_map(Warp& warp, uint64_t address);

// Whether a module is for compute capability 10.0 or later, by its .target: that has more
// modes and types.
bool targets_sm100(const Module& module);

}  // namespace gg::emu
