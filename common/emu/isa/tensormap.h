// SPDX-License-Identifier: MIT
//
// Tensor maps as kernels use and change them. PTX ISA: "Tensor Maps", "tensormap.replace", "Memory
// Consistency Model: Proxies": what ordinary instructions wrote into a map counts for copies only behind a
// fence of the tensormap proxy.

#pragma once

#include "common/emu/isa/async.h"
#include "common/emu/isa/map_format.h"

namespace gg::emu {

// The map at a generic address for a copy of a box of `rank` dimensions. Faults if it cannot be used for
// that, or if it was changed and this block has not run fence.proxy.tensormap.acquire since.
TensorMap use_tensor_map(Warp& warp, const Instr& instr, int lane, uint64_t address, int rank);

// Whether a module is for compute capability 10.0 or later, by its .target: that has more modes and types.
bool targets_sm100(const Module& module);

}  // namespace gg::emu
