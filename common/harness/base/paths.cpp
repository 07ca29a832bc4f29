// SPDX-License-Identifier: MIT
//
// The build tree, found by the path of the running program.

#include "common/harness/base/paths.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>

namespace gg {

std::string in_build_tree(const std::string& name) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::string program(path, length > 0 ? size_t(length) : 0);
  for (int level = 0; level < 2; ++level) program.resize(std::min(program.size(), program.find_last_of('/')));
  return program + "/" + name;
}

std::string copied_tree_problem(const std::string& configured) {
  std::string own = in_build_tree("");
  own.pop_back();
  const auto is_tree = [](const std::string& folder) {
    std::error_code error;
    return std::filesystem::exists(folder + "/CMakeCache.txt", error);
  };
  std::error_code error;
  if (!is_tree(own) || !is_tree(configured) || std::filesystem::equivalent(own, configured, error)) return "";
  return "not run: it lies in " + own + ", a copy of the build tree " + configured +
         ", and is made of the sources there, also when it is built again: remove the copy and configure "
         "anew";
}

}  // namespace gg
