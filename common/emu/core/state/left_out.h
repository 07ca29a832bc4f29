// SPDX-License-Identifier: MIT
//
// The sentence with which a build without common/emu/foreign refuses what is there.

#pragma once

#include <string>

namespace gg::emu {

inline constexpr char kLeftOut[] =
    " is in common/emu/foreign, which this build leaves out: configure with -DGG_FOREIGN=ON";

inline std::string left_out(const std::string& what) { return what + kLeftOut; }
inline bool is_left_out(const std::string& refusal) { return refusal.find(kLeftOut) != std::string::npos; }

}  // namespace gg::emu
