// SPDX-License-Identifier: MIT
//
// Explains the wrong outputs of an epilogue.

#pragma once

#include "common/harness/verify/epilogue_check.h"

namespace gg {

// The first known mistake, in the product or behind it, with which the reference gives nearly all
// the outputs that were found.
Failure explain_epilogue(const Buffers& buffers, const HostCopy& copy, const std::vector<bool>& skipped,
                         const Findings& found, uint64_t seed);

}  // namespace gg
