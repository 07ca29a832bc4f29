// SPDX-License-Identifier: MIT
//
// Chapter 07q, whose consumers take turns, beside chapter 07o, the product and the unfused way.

#include "ways.h"

namespace {

Comparison comparison() {
  Comparison all = quant_comparison("07q", "07q_quantized_turns", launch_07q);
  all.others = {{"07o", launch_07o}};
  return all;
}

const bool known = add(comparison());

}  // namespace
