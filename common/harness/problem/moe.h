// SPDX-License-Identifier: MIT
//
// The set `moe`, which has more numbers than the other sets together.

#pragma once

#include <vector>

#include "common/harness/problem/layout.h"

namespace gg {

std::vector<Shape> moe();

}  // namespace gg
