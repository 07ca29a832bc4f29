// SPDX-License-Identifier: MIT
//
// Images and the options that the driver takes with them. CUDA Driver API,
// "Module Management": CUjit_option.

#pragma once

#include <string>

#include "common/emu/foreign/cudart/context.h"

namespace gg::emu {

// The options that a program gives with an image. Those about code change nothing in an emulator.
struct JitOptions {
  unsigned count = 0;
  CUjit_option* options = nullptr;
  void** values = nullptr;

  size_t number(CUjit_option wanted) const;
  void set(CUjit_option wanted, size_t value) const;
  // Writes a log where the program wants it, and how long it is.
  void write(CUjit_option buffer, CUjit_option size, const std::string& text) const;
};

// Programs::load_image, with logs where the options want them.
CUresult load_image(Runtime& rt, const void* image, const JitOptions& jit, Program** program);
// A file's bytes with zeros behind them, as text in memory has; false if it cannot be read.
bool read_image_file(const char* path, std::string* bytes);

}  // namespace gg::emu
