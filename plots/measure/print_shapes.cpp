// SPDX-License-Identifier: MIT
//
// gg-shapes: the problems of each shape set as JSON, for the tools that draw and compare
// measurements. Left out are the sets whose problems depend on a chapter's limits.

#include <cstdio>

#include "common/harness/problem/shapes.h"

namespace {

// Returns numbers as a JSON list.
std::string list(const std::vector<int>& numbers) {
  std::string text;
  for (const int each : numbers) text += (text.empty() ? "" : ", ") + std::to_string(each);
  return "[" + text + "]";
}

void print(const gg::ShapeSet& set, bool first) {
  std::printf("%s\n\"%s\": [", first ? "" : ",", set.name);
  bool after = false;
  for (const gg::Shape& shape : set.make({})) {
    std::printf("%s\n  {\"m\": %s, \"n\": %s, \"k\": %s, \"shared_b\": %s}", after ? "," : "",
                list(shape.m).c_str(), list(shape.n).c_str(), list(shape.k).c_str(),
                shape.shared_b ? "true" : "false");
    after = true;
  }
  std::printf("]");
}

}  // namespace

int main() {
  bool first = true;
  std::printf("{");
  for (const gg::ShapeSet& set : gg::shape_sets()) {
    if (set.edges || std::string(set.name) == "random") continue;
    print(set, first);
    first = false;
  }
  std::printf("\n}\n");
}
