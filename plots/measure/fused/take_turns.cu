// SPDX-License-Identifier: MIT
//
// Chapter 07p, whose consumers take turns, beside chapter 07m, the product and the unfused way.

#include "ways.h"

namespace {

Comparison comparison() {
  Comparison all = glu_comparison("07p", "07p_take_turns", launch_07p);
  all.others = {{"07m_fused_glu", launch_07m}};
  return all;
}

const bool known = add(comparison());

}  // namespace
