// SPDX-License-Identifier: MIT
//
// The device memory that gg-ptx's --buf options ask for.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/emu/core/state/memory.h"
#include "common/emu/tools/gg_ptx_command.h"
#include "common/harness/base/npy.h"

namespace gg::emu {

struct Buffer {
  const BufferSpec* spec = nullptr;
  NpyArray array;  // of a file: type, shape, and the bytes to begin with
  uint64_t address = 0, bytes = 0;
};

// Its functions throw gg::Error with one sentence that names what is wrong.
class Buffers {
 public:
  explicit Buffers(GlobalMemory& memory) : memory_(memory) {}

  // Reads the files, allocates the buffers and fills them.
  void make(const std::vector<BufferSpec>& specs);
  // The address of a place in a buffer. `what` is the option that names it.
  uint64_t address_of(const std::string& what, const Pointer& pointer) const;
  // Writes the files of out: buffers.
  void write_outputs() const;

 private:
  static void read(Buffer& buffer);
  // A file that is not there yet: what the kernels do not write stays 0xFF bytes.
  static void make_output(Buffer& buffer);
  void fill(Buffer& buffer);
  void point(const BufferSpec& spec);

  GlobalMemory& memory_;
  std::map<std::string, Buffer> buffers_;
};

}  // namespace gg::emu
