// SPDX-License-Identifier: MIT
//
// Questions of the runtime to common/emu/foreign. hooks.cpp has the answers of a build that leaves
// it out: they are weak, and foreign's functions of the same names go before them.

#pragma once

#include <memory>
#include <span>

#include "common/emu/cudart/launch_kernel.h"

namespace gg::emu {

// The parameters that a node of a captured graph tells of; null: nobody can ask for them.
std::shared_ptr<const NodeParams> params_of(const void* function, const LaunchRequest& request,
                                            const Launch& launch);

// A function of the driver's interface, from the CUDA version on in which its name began to mean
// it. Null: it is not here.
struct DriverEntry {
  const char* name;
  void* function;
  unsigned since;
};
template <class F>
DriverEntry driver_entry(const char* name, F* function, unsigned since) {
  return {name, reinterpret_cast<void*>(function), since};
}
// By name; of one name the oldest first.
std::span<const DriverEntry> foreign_driver_entries();

}  // namespace gg::emu
