// SPDX-License-Identifier: MIT
//
// Bookkeeping of a comparison.

#include "common/harness/machine/element_check.h"

#include <algorithm>

namespace gg {

void Comparison::add(int64_t element, const Verdict& verdict, double reference, const Limit& limit) {
  ++checked;
  const double size = std::fabs(reference);
  beyond_exact += size > two_to_the(format_info(limit.format).mantissa_bits + 1);
  beyond_2048 += size > 2048;
  worst_ratio = std::max(worst_ratio, verdict.ratio);
  worst_factor = std::max(worst_factor, verdict.factor);
  if (verdict.ok) return;
  ++failures;
  if (first < 0 || element < first) first = element;
}

void Comparison::merge(const Comparison& other) {
  checked += other.checked;
  failures += other.failures;
  if (other.first >= 0 && (first < 0 || other.first < first)) first = other.first;
  worst_ratio = std::max(worst_ratio, other.worst_ratio);
  worst_factor = std::max(worst_factor, other.worst_factor);
  beyond_exact += other.beyond_exact;
  beyond_2048 += other.beyond_2048;
}

}  // namespace gg
