// SPDX-License-Identifier: MIT
//
// Choices that a chapter looks up by name, and the same problem with others.

#include "common/harness/problem/problem.h"

#include "common/harness/problem/request.h"

namespace gg {

bool Problem::is_off(const char* idea) const {
  const auto found = parts_.ideas_off->by_name.find(idea);
  if (found == parts_.ideas_off->by_name.end()) {
    fail(Exit::device_error, "the launch asks whether '%s' is off, which main.cu does not list", idea);
  }
  return found->second;
}

int Problem::number(const char* name) const {
  const auto found = request().numbers.find(name);
  return found == request().numbers.end() ? 0 : found->second;
}

Problem Problem::with_tile(const ClusterTileShape& tile) const {
  Problem other = *this;
  other.parts_.tile = tile;
  return other;
}

Problem Problem::with_ideas(const IdeasOff& off) const {
  Problem other = *this;
  other.parts_.ideas_off = &off;
  return other;
}

}  // namespace gg
