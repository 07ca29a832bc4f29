// SPDX-License-Identifier: MIT
//
// The names of an epilogue's activations; outputs in blocks, and the check that norm_const is
// finite and above 0.

#include "common/harness/problem/epilogue.h"

#include <cmath>

#include "common/kernel/check.h"

namespace gg {

const char* activation_name(Activation activation) {
  return activation == Activation::swiglu ? "swiglu" : "geglu";
}

void scale_outputs(const EpilogueChoices& choices, float norm_const, Epilogue& epilogue) {
  epilogue.norm_const = norm_const;
  epilogue.sfd_row = choices.sfd_row;
  epilogue.sfd_col = choices.sfd_col;
}

void require_norm_const(const char* source, float value) {
  GG_REQUIRE(std::isfinite(value) && value > 0,
             "%s %g: a finite number above 0 is wanted, of others no scale has a meaning", source,
             double(value));
}

}  // namespace gg
