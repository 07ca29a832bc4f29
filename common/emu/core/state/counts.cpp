// SPDX-License-Identifier: MIT
//
// Where a thread counts.

#include "common/emu/core/state/counts.h"

namespace gg::emu {

constinit thread_local InstrCounts* current_counts = nullptr;

}  // namespace gg::emu
