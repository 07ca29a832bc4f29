// SPDX-License-Identifier: MIT
//
// Chapter 07r, whose consumers take turns, beside chapter 07n, the product and the unfused way.

#include "ways.h"

namespace {

Comparison comparison() {
  Comparison all = hadamard_comparison("07r", "07r_hadamard_turns", launch_07r);
  all.others = {{"07n", launch_07n}};
  return all;
}

const bool known = add(comparison());

}  // namespace
