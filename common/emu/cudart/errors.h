// SPDX-License-Identifier: MIT
//
// Names and texts of errors, of the runtime and, having the same numbers, of the driver.

#pragma once

#include <string>

namespace gg::emu {

// Null for a code that is none.
const char* error_name(int code);  // "cudaErrorInvalidValue"
const char* error_text(int code);  // "invalid value"

}  // namespace gg::emu
