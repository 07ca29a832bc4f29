// SPDX-License-Identifier: MIT
//
// Files that are read whole, and replaced whole or not at all.

#pragma once

#include <string>

#include "common/check.h"

namespace gg {

// Replaces `path` by `content` in one step: written beside and renamed. Throws gg::Error (cannot write).
void write_file(const std::string& path, const std::string& content);
// Throws what write_file would for a folder that is missing or may not be written, before any work is done.
void require_writable(const std::string& path);
bool read_file(const std::string& path, std::string& content);  // false if there is none or it can't be read

bool exists(const std::string& path);
// Throws gg::Error (bad input) where there is no such folder.
void require_directory(const std::string& dir);

}  // namespace gg
