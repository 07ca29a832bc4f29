// SPDX-License-Identifier: MIT
//
// Diagnosis of wrong values of D.

#pragma once

#include <vector>

#include "common/harness/verify/failure.h"
#include "common/harness/verify/host_copy.h"

namespace gg {

// Explains finite wrong values; `failing` lists elements of D.
Failure explain_values(const HostCopy& copy, const Setup& setup, const Layout& layout, const Limit& limit,
                       const std::vector<int64_t>& failing);

}  // namespace gg
