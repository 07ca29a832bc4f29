// SPDX-License-Identifier: MIT
//
// The table of normal quantiles behind random.h.

#include "common/harness/base/random.h"

#include <array>
#include <cmath>

namespace gg {

const int32_t* normal_quantiles() {
  static const std::array<int32_t, kQuantileBins + 1> table = [] {
    std::array<int32_t, kQuantileBins + 1> quantiles{};
    for (int i = 0; i < kQuantileBins; ++i) {
      double low = 0, high = 5;  // bisection on P(|z| < x) = erf(x / sqrt 2)
      for (int step = 0; step < 50; ++step) {
        const double middle = (low + high) / 2;
        (std::erf(middle / std::sqrt(2.0)) < double(i) / kQuantileBins ? low : high) = middle;
      }
      quantiles[size_t(i)] = int32_t(std::lround(low * 65536));
    }
    quantiles[kQuantileBins] = int32_t(4.25 * 65536);
    return quantiles;
  }();
  return table.data();
}

}  // namespace gg
