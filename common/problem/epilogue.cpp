// SPDX-License-Identifier: MIT
//
// What an epilogue must not be.

#include "common/problem/epilogue.h"

#include <cmath>

#include "common/problem/problem.h"

namespace gg {

const char* activation_name(Activation activation) {
  return activation == Activation::swiglu ? "swiglu" : "geglu";
}

void require_norm_const(const std::string& source, float value) {
  GG_REQUIRE(std::isfinite(value) && value > 0,
             "%s %g: a finite number above 0 is wanted, of others no scale has a meaning", source.c_str(),
             double(value));
}

void require_epilogue(const Epilogue& epilogue, const Formats& formats) {
  const bool eight_bits = formats.d == Format::e4m3 || formats.d == Format::e5m2;
  GG_REQUIRE(!epilogue.sfd_row || eight_bits,
             "norm_const %g: scales are made for D of e4m3 or e5m2, it is %s: give --d-dtype, or leave "
             "norm_const out",
             double(epilogue.norm_const), format_info(formats.d).name);
  GG_REQUIRE(!epilogue.discrete || !epilogue.bias || epilogue.bias_format != Format::f32,
             "--weights discrete: a bias of f32 goes with dense weights only: bf16 and f16 are accepted");
}

}  // namespace gg
