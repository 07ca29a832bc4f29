// SPDX-License-Identifier: MIT
//
// The names of peers.

#include "common/harness/bench/peer_names.h"

namespace gg {

const List<const char*>& cublas_names() {
  static const List<const char*> names = {"cublas_loop", "cublas_grouped", "cublas_strided", "cublas_plain"};
  return names;
}

std::string library_peer_name(const std::string& path) {
  constexpr char kPrefix[] = "libgg_peer_", kSuffix[] = ".so";
  const std::string file = path.substr(path.rfind('/') + 1);  // all of it where there is no slash
  const size_t prefix = sizeof kPrefix - 1, suffix = sizeof kSuffix - 1;
  if (file.size() <= prefix + suffix || file.compare(0, prefix, kPrefix) != 0 ||
      file.compare(file.size() - suffix, suffix, kSuffix) != 0) {
    return "";
  }
  return file.substr(prefix, file.size() - prefix - suffix);
}

}  // namespace gg
