// SPDX-License-Identifier: MIT
//
// Where things lie in the build tree of the running program.

#pragma once

#include <string>

namespace gg {

// A name in the build tree, which is the folder above that of the running program.
std::string in_build_tree(const std::string& name);

}  // namespace gg
