// SPDX-License-Identifier: MIT
//
// Where things lie in the build tree of the running program.

#pragma once

#include <string>

namespace gg {

// A name in the build tree, which is the folder above that of the running program.
std::string in_build_tree(const std::string& name);

// The build tree that CMake was configured for, as its path was then.
const char* configured_tree();
// A sentence if the running program lies in a copy of a build tree, `configured`, that is still
// there: building in the copy builds the sources of the original. Else "".
std::string copied_tree_problem(const std::string& configured);

}  // namespace gg
