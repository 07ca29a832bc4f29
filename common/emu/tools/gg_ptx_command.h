// SPDX-License-Identifier: MIT
//
// The command line of gg-ptx: which file, which buffers, which launches. Nothing is read
// or allocated here.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/emu/core/schedule/launches.h"

namespace gg::emu {

// NAME[+BYTES]: a place in a buffer.
struct Pointer {
  std::string text, buffer;
  uint64_t add = 0;
};

// tmap:NAME[+BYTES],type=..,dims=..: arguments of cuTensorMapEncodeTiled. Numbers as in cuda.h.
struct MapSpec {
  std::string text;
  Pointer base;
  int type = 0, interleave = 0, swizzle = 0, promotion = 0;
  bool nan_fill = false;
  std::vector<uint64_t> dims, strides;  // strides of dimensions 1 and up, in bytes
  std::vector<uint32_t> box, element_strides;
};

struct Argument {
  enum class Kind { number, null, pointer, map };
  std::string text;
  Kind kind = Kind::null;
  uint64_t bits = 0;  // of a number,
  int bytes = 8;      // and how many of them count
  Pointer pointer;
  MapSpec map;
};

struct Patch {
  uint64_t offset = 0;
  Argument value;  // a pointer or a map
};

struct BufferSpec {
  enum class Kind { in, out, zero, pointers };
  std::string name;  // of an unnamed one: its --arg
  Kind kind = Kind::zero;
  std::string file;
  uint64_t bytes = 0;  // of zero
  std::vector<Pointer> pointers;
  std::string type;  // out:FILE,TYPE,SHAPE: of the file if it is new; empty: not given
  std::vector<int64_t> shape;
};

struct Dimensions {
  int x[3] = {1, 1, 1};
};

struct LaunchSpec {
  std::string entry;
  std::optional<Dimensions> grid, block, cluster;
  int64_t shared_bytes = 0;
  std::vector<Argument> arguments;
  std::string argument_file;  // --args
  std::vector<Patch> patches;
};

struct Command {
  std::string file;
  std::string arch, like;  // empty: not given
  RunOptions run;
  bool report = false, help = false;
  std::string trace;          // FILE; empty: none
  std::string line_counts;    // FILE; empty: none
  double progress_after = 5;  // seconds: Settings
  std::vector<BufferSpec> buffers;
  std::vector<LaunchSpec> launches;
};

// Throws gg::Error (bad input) with one sentence that names what is wrong.
Command parse_command(int argc, char** argv);
std::string gg_ptx_help();

}  // namespace gg::emu
