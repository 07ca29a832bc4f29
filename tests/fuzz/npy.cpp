// SPDX-License-Identifier: MIT
//
// A .npy file as anybody may write it: what is read has the bytes that its shape says, all
// else is refused.

#include "common/harness/base/npy.h"

#include <sys/mman.h>
#include <unistd.h>

static void read_as(gg::NpyArray (*read)(const std::string&), const std::string& path) {
  try {
    const gg::NpyArray array = read(path);
    const int64_t elements = array.elements();
    if (elements < 0 || (elements > 0 && array.data.size() % size_t(elements) != 0)) __builtin_trap();
  } catch (const gg::Error&) {
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("input", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != ssize_t(size)) __builtin_trap();
  read_as([](const std::string& p) { return gg::read_npy(p); }, path);
  read_as([](const std::string& p) { return gg::read_npy(p, gg::Format::bf16, 2); }, path);
  read_as(gg::read_npy_of_any_type, path);
  return 0;
}
