// SPDX-License-Identifier: MIT
//
// What others need to know of cp.async: when the copies of a lane have landed.

#pragma once

#include <functional>

#include "common/emu/state/grid.h"

namespace gg::emu {

// Calls `then` once all copies that this lane has started by now have landed; at once if there are none under
// way. cp.async.mbarrier.arrive is made of it.
void when_copies_land(Warp& warp, int lane, std::function<void()> then);

}  // namespace gg::emu
