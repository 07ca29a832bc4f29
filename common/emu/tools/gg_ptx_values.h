// SPDX-License-Identifier: MIT
//
// The values of gg-ptx's options: numbers, places in buffers, tensor maps. Where a value is wrong,
// the functions throw gg::Error (bad input) with one sentence that begins with `what`, the option
// and its value.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/emu/tools/gg_ptx_command.h"

namespace gg::emu {

[[noreturn]] void refuse(const std::string& what, const std::string& why);

std::vector<std::string> split(const std::string& text, char separator);
bool starts_with(const std::string& text, const char* start);

// A whole number from `least` to `most`, decimal or 0x...
uint64_t count(const std::string& what, const std::string& text, uint64_t least, uint64_t most);
// NAME[+BYTES]
Pointer pointer(const std::string& what, const std::string& text);
// The index of a value among the choices.
int choice(const std::string& what, const std::string& value, const std::vector<std::string>& choices);
// tmap:NAME[+BYTES],KEY=VALUE,...
MapSpec map_spec(const std::string& option, const std::string& text);
// A number after i8: .. u64:, or f16: bf16: f32: f64:. False if `type` is another.
bool integer_argument(Argument& argument, const std::string& type, const std::string& value);
bool float_argument(Argument& argument, const std::string& type, const std::string& value);
// out:FILE[,TYPE,SHAPE]: the tail counts as one only if it reads as a type and a shape.
void output_file(BufferSpec& buffer, const std::string& text);
// NAME=in:FILE.npy and the like, of --buf.
BufferSpec buffer_spec(const std::string& text);

}  // namespace gg::emu
