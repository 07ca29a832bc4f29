// SPDX-License-Identifier: MIT
//
// Where an operand of a matrix instruction lies in shared memory, as its descriptor says. PTX ISA:
// "Asynchronous warpgroup level matrix shared memory layout", "Matrix descriptor format",
// "Strides". Everything moves in units of 16 bytes, which are eight 16-bit elements, for example.

#pragma once

#include <cstdint>
#include <string>

namespace gg::emu {

constexpr int kUnitBytes = 16;

// In A, `lines` are rows; in B, columns. One instruction takes 32 bytes of k from each line.
struct OperandShape {
  int lines = 0, k = 0, bytes = 2;  // of an element
  // Neighbours in memory are lines (MN-major), not k; 16-bit elements only.
  bool line_major = false;
  int per_unit() const { return kUnitBytes / bytes; }
};

class OperandLayout {
 public:
  // The fields of a descriptor. `problem` says what is wrong for this operand; empty: nothing.
  OperandLayout(uint64_t descriptor, const OperandShape& shape);
  const std::string& problem() const { return problem_; }

  // The shared address of the unit that starts at an element.
  uint32_t unit(int line, int k) const {
    const uint32_t l = uint32_t(line), byte = uint32_t(k * shape_.bytes), row = uint32_t(k);
    uint32_t at = start_;
    if (!shape_.line_major && span_) {
      at += l / 8 * stride_ + l % 8 * span_ + byte;
    } else if (!shape_.line_major) {
      at += l / 8 * stride_ + l % 8 * kUnitBytes + byte / kUnitBytes * leading_;
    } else if (span_) {
      const uint32_t line_byte = l * 2, mask = span_ - 1;
      at += (line_byte & ~mask) / span_ * leading_ + row / 8 * stride_ + row % 8 * span_ + (line_byte & mask);
    } else {
      at += l / 8 * stride_ + row / 8 * leading_ + row % 8 * kUnitBytes;
    }
    // The unit's place in its span is mixed with the number of the 128-byte line: the pattern
    // repeats every 8 spans.
    return at ^ (((at >> 7) - base_offset_) & places_) * kUnitBytes;
  }

  // All units of the lines [first, first + count): use(address, line, k of its first element).
  template <class Use>
  void units(int first, int count, Use use) const {
    const int line_step = shape_.line_major ? shape_.per_unit() : 1,
              k_step = shape_.line_major ? 1 : shape_.per_unit();
    for (int line = first; line < first + count; line += line_step) {
      for (int k = 0; k < shape_.k; k += k_step) use(unit(line, k), line, k);
    }
  }

 private:
  void check(uint64_t descriptor);

  OperandShape shape_;
  uint32_t start_ = 0;
  // "leading dimension byte offset", "stride dimension byte offset"
  uint32_t leading_ = 0, stride_ = 0;
  uint32_t base_offset_ = 0;
  // Bytes within which units trade places: 32, 64 or 128; 0 without swizzling.
  uint32_t span_ = 0;
  uint32_t places_ = 0;  // units of a span, less one
  std::string problem_;
};

}  // namespace gg::emu
