// SPDX-License-Identifier: MIT
//
// The values of --peer: names of cuBLAS's ways, and paths of libraries.

#pragma once

#include <string>

#include "common/kernel/list.h"

namespace gg {

// The names by which cuBLAS is asked for, and the NAME of a path that ends in
// libgg_peer_NAME.so, or nothing.
const List<const char*>& cublas_names();
std::string library_peer_name(const std::string& path);

}  // namespace gg
