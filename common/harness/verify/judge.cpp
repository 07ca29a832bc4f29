// SPDX-License-Identifier: MIT
//
// Bookkeeping of what a comparison finds.

#include "common/harness/verify/judge.h"

#include <iterator>
#include <utility>

namespace gg {

uint32_t all_ones(Format format) { return uint32_t((uint64_t(1) << format_info(format).bits) - 1); }

int64_t Findings::checked() const {
  int64_t sum = 0;
  for (const OutputTally& each : of) sum += each.checked;
  return sum;
}
int64_t Findings::failures() const {
  int64_t sum = 0;
  for (const OutputTally& each : of) sum += each.failures;
  return sum;
}
int64_t Findings::loose() const {
  int64_t sum = 0;
  for (const OutputTally& each : of) sum += each.loose;
  return sum;
}
const OutputTally* Findings::first_failure(Tensor& output) const {
  constexpr Tensor kOrder[] = {Tensor::c,     Tensor::sfd_row, Tensor::d,     Tensor::sfd_col,
                               Tensor::d_col, Tensor::amax,    Tensor::dprob, Tensor::dbias};
  static_assert(std::size(kOrder) == kTensors - size_t(Tensor::d));  // every output
  for (const Tensor each : kOrder) {
    output = each;
    if (of[size_t(each)].failures) return &of[size_t(each)];
  }
  return nullptr;
}

void Findings::merge(const Findings& part) {
  products += part.products;
  exact += part.exact;
  for (size_t i = 0; i < of.size(); ++i) {
    OutputTally& tally = of[i];
    const OutputTally& other = part.of[i];
    OutputTally sum = tally;
    const auto place = [](const OutputTally& t) { return std::pair(t.group, std::pair(t.row, t.col)); };
    if (other.failures && (!tally.failures || place(other) < place(tally))) sum = other;
    sum.checked = tally.checked + other.checked;
    sum.failures = tally.failures + other.failures;
    sum.loose = tally.loose + other.loose;
    tally = std::move(sum);
  }
}

}  // namespace gg
