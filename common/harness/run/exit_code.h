// SPDX-License-Identifier: MIT
//
// The way from a chapter's work to its exit code.

#pragma once

#include <functional>

#include "common/kernel/error.h"

namespace gg {

// Does the work and returns its exit code. An error becomes a sentence on stderr, behind the
// chapter's id, and that error's exit code; and so do results that could not be written to stdout,
// memory that ran out, and a program in a copied build tree.
int exit_code_of(const char* id, const std::function<Exit()>& work);

}  // namespace gg
