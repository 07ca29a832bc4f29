// SPDX-License-Identifier: MIT
//
// Names of failures, and places of elements.

#include "common/harness/verify/failure.h"

#include <algorithm>
#include <iterator>

#include "common/harness/base/random.h"

namespace gg {

const char* symptom_name(Symptom symptom) {
  static constexpr const char* kNames[] = {
      // in the order of the enumerators
      "unknown",
      "NaN",
      "unwritten element",
      "previous output left in place",
      "write out of bounds",
      "padding read",
      "neighbouring group read",
      "nondeterministic",
      "overlapping launches",
      "swapped expert",
      "right only for group 0",
      "offset by one",
      "transposed tile",
      "right only when square",
      "missing K slice",
      "slice of another stage",
      "other columns or rows",
      "missing swizzle",
      "next group overwritten",
      "truncation instead of rounding",
      "accumulator in half precision",
      "wrong scale",
      "halves of a byte exchanged",
      "wrong epilogue",
  };
  static_assert(std::size(kNames) == size_t(Symptom::wrong_epilogue) + 1);
  return kNames[size_t(symptom)];
}

size_t sample_at(size_t i, size_t stride, size_t count) {
  const size_t jitter = i == 0 ? 0 : hash(0, 8, i) % stride;
  return std::min(i * stride + jitter, count - 1);
}

Place place_of(const Layout& layout, int64_t element) {
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    const Region& d = layout.groups[g].d;
    const int64_t inside = element - d.offset;
    if (inside >= 0 && inside < d.rows * d.ld && inside % d.ld < d.cols) {
      return {int(g), int(inside / d.ld), int(inside % d.ld)};
    }
  }
  return {};
}

}  // namespace gg
