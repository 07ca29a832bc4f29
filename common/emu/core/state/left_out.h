// SPDX-License-Identifier: MIT
//
// The sentence with which a build without common/emu/foreign refuses what is there.

#pragma once

#include <string>

namespace gg::emu {

inline std::string left_out(const std::string& what) {
  return what + " is in common/emu/foreign, which this build leaves out: configure with -DGG_FOREIGN=ON";
}

}  // namespace gg::emu
