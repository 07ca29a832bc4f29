// SPDX-License-Identifier: MIT
//
// Reads what a program's file says that it takes from other files: "ELF-64 Object File Format", and
// for the dynamic section the System V ABI, "Dynamic Linking".

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gg::emu {

struct Elf {
  std::vector<std::string> libraries;           // that it wants beside it: DT_NEEDED
  std::vector<std::string> undefined, defined;  // functions and variables, without versions
  // All that is undefined must be found before it starts.
  bool binds_now = false;
  // A DT_RPATH that counts, where libraries are looked for before LD_LIBRARY_PATH.
  bool rpath = false;
};
// Nothing if the file cannot be read or is no 64-bit ELF file. Wrong statements are left out.
std::optional<Elf> read_elf(const std::string& path);

}  // namespace gg::emu
