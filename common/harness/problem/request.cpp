// SPDX-License-Identifier: MIT
//
// Names of what can be asked, and what must not be asked together.

#include "common/harness/problem/request.h"

#include <mutex>
#include <utility>

namespace gg {

const char* layout_name(BLayout layout) { return layout == BLayout::nk ? "nk" : "kn"; }

const char* Formats::name() const {
  if (has_scales()) return scaling().name;
  if (a == b) return format_info(a).name;
  static std::mutex alone;
  static std::map<std::pair<Format, Format>, std::string> mixed;
  const std::lock_guard lock(alone);
  return mixed.try_emplace({a, b}, format("%s,%s", format_info(a).name, format_info(b).name))
      .first->second.c_str();
}

void require_consistent(const Request& request) {
  const Epilogue& epilogue = request.epilogue;
  const Format d = request.formats.d;
  GG_REQUIRE(!epilogue.sfd_row || d == Format::e4m3 || d == Format::e5m2,
             "norm_const %g: scales are made for D of e4m3 or e5m2, it is %s: give --d-dtype, or leave "
             "norm_const out",
             double(epilogue.norm_const), format_info(d).name);
  GG_REQUIRE(request.weights == Weights::dense || !epilogue.bias || epilogue.bias_format != Format::f32,
             "--weights discrete: a bias of f32 goes with dense weights only: bf16 and f16 are accepted");
}

}  // namespace gg
