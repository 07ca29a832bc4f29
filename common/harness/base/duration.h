// SPDX-License-Identifier: MIT
//
// A duration as a reader wants it.

#pragma once

#include <cstdio>
#include <string>

namespace gg {

// "40 seconds", "12 minutes", "3.4 hours": two digits or three, in the unit that has them.
inline std::string duration_text(double seconds) {
  char text[40];
  if (seconds < 100) {
    std::snprintf(text, sizeof text, "%.0f second%s", seconds, seconds >= 0.5 && seconds < 1.5 ? "" : "s");
  } else if (seconds < 6000) {
    std::snprintf(text, sizeof text, "%.0f minutes", seconds / 60);
  } else {
    std::snprintf(text, sizeof text, "%.1f hours", seconds / 3600);
  }
  return text;
}

}  // namespace gg
