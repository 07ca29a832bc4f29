// SPDX-License-Identifier: MIT
//
// Tensors in .npy files (format 1.0, C order). Formats that NumPy lacks travel as raw bits (bf16 as
// uint16). The file format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/kernel/error.h"
#include "common/kernel/formats.h"

namespace gg {

struct NpyArray {
  std::string type;  // "<f4", "<u2", ...
  std::vector<int64_t> shape;
  std::vector<char> data;

  int64_t elements() const;
};

// Throws gg::Error (bad input) with one sentence that names the file and what is wrong with it.
NpyArray read_npy(const std::string& path);
// Names the option that takes a file of this type, or nothing.
using TypeHint = std::function<std::string(const std::string& type)>;
// The same, and the type must be that of `format` and the number of dimensions `rank`.
NpyArray read_npy(const std::string& path, Format format, size_t rank, const TypeHint& or_else = {});
// For who only moves bytes: elements of any type that has a size. Devices are little-endian, so the
// file is too.
NpyArray read_npy_of_any_type(const std::string& path);

// The bytes of a file: its header, then `bytes` of data.
std::string npy_content(const std::string& type, const std::vector<int64_t>& shape, const void* data,
                        size_t bytes);
// Written beside and renamed, so that an earlier file stays whole. Throws gg::Error (cannot write).
void write_npy(const std::string& path, const std::string& type, const std::vector<int64_t>& shape,
               const void* data, size_t bytes);

std::string shape_text(const std::vector<int64_t>& shape);  // "[16, 4]"

}  // namespace gg
