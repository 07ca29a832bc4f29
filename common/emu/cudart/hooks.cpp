// SPDX-License-Identifier: MIT
//
// The runtime without common/emu/foreign: it has no driver to initialise, no contexts and no nodes
// that tell of themselves.

#include "common/emu/cudart/hooks.h"

namespace gg::emu {

[[gnu::weak]] void initialise() {}
[[gnu::weak]] void want_context() {}

[[gnu::weak]] std::shared_ptr<const NodeParams> params_of(const void*, const LaunchRequest&, const Launch&) {
  return nullptr;
}

[[gnu::weak]] std::span<const DriverEntry> foreign_driver_entries() { return {}; }

}  // namespace gg::emu
