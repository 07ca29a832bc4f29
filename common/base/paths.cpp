// SPDX-License-Identifier: MIT
//
// The build tree, found by the path of the running program.

#include "common/base/paths.h"

#include <unistd.h>

#include <algorithm>
#include <climits>

namespace gg {

std::string in_build_tree(const std::string& name) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::string program(path, length > 0 ? size_t(length) : 0);
  for (int level = 0; level < 2; ++level) program.resize(std::min(program.size(), program.find_last_of('/')));
  return program + "/" + name;
}

}  // namespace gg
