// SPDX-License-Identifier: MIT
//
// The driver's functions by name, for programs that look them up. CUDA Runtime API,
// "Driver Entry Point Access".

#include "common/emu/cudart/entry_points.h"

#include <cuda.h>

#include <cstring>
#include <span>
#include <string>

#include "common/emu/cudart/hooks.h"

using gg::emu::api_beside_launches;
using gg::emu::Runtime;

// stubs.cmake writes it: the functions of common/emu/foreign, and a null.
extern "C" const char* const gg_emu_foreign_names[];

namespace gg::emu {
namespace {

// By name, as foreign's.
const DriverEntry kEntries[] = {
    driver_entry("cuTensorMapEncodeTiled", &cuTensorMapEncodeTiled, 12000),
    driver_entry("cuTensorMapReplaceAddress", &cuTensorMapReplaceAddress, 12000),
};

// Whether foreign has it, where it is built. cuMemAlloc is there by the name cuMemAlloc_v2.
bool is_foreign(const std::string& name) {
  for (const char* const* each = gg_emu_foreign_names; *each; ++each) {
    if (*each == name || std::string(*each).rfind(name + "_v", 0) == 0) return true;
  }
  return false;
}

cudaError_t refuse_entry(const std::string& name) {
  if (foreign_driver_entries().empty() && is_foreign(name)) return unsupported_here(name);
  return unsupported("the driver's " + name);
}

}  // namespace

cudaDriverEntryPointQueryResult find_driver_entry(const char* name, void** function, unsigned version) {
  *function = nullptr;
  bool known = false, old_enough = false;
  for (const std::span<const DriverEntry> entries :
       {std::span<const DriverEntry>(kEntries), foreign_driver_entries()}) {
    for (const DriverEntry& e : entries) {
      if (std::strcmp(name, e.name) != 0) continue;
      known = true;
      if (version < e.since) continue;
      old_enough = true;
      *function = e.function;
    }
  }
  if (known && !old_enough) return cudaDriverEntryPointVersionNotSufficent;
  if (*function) return cudaDriverEntryPointSuccess;
  refuse_entry(name);
  return cudaDriverEntryPointSymbolNotFound;
}

}  // namespace gg::emu

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult* status) {
  return api_beside_launches([&](Runtime&) {
    constexpr unsigned kVersion = 13000;
    if (version > kVersion) {
      if (status) *status = cudaDriverEntryPointVersionNotSufficent;
      return cudaErrorInvalidValue;
    }
    if (!name || !function) return cudaErrorInvalidValue;
    const cudaDriverEntryPointQueryResult found = gg::emu::find_driver_entry(name, function, version);
    if (status) *status = found;
    return cudaSuccess;
  });
}

// Deprecated, and declared so where it is: by another name here.
cudaError_t gg_emu_entry_point(const char* name, void** function, unsigned long long flags,
                               cudaDriverEntryPointQueryResult* status) __asm__("cudaGetDriverEntryPoint");
cudaError_t gg_emu_entry_point(const char* name, void** function, unsigned long long flags,
                               cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, function, 13000, flags, status);
}

}  // extern "C"
