// SPDX-License-Identifier: MIT
//
// Why a problem is neither timed nor counted: what its one wrong launch on random data looks like.

#pragma once

#include "common/verify/diagnose.h"

namespace gg {

// After a launch over outputs of 0xFF bytes that right_on_random_data refused: its outputs are still there.
Failure why_wrong_on_random_data(Machine& machine, const Buffers& buffers, uint64_t seed);

}  // namespace gg
