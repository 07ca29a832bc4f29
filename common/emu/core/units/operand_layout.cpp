// SPDX-License-Identifier: MIT
//
// The fields of a descriptor, and what may be wrong with them. PTX ISA: "Matrix descriptor format".

#include "common/emu/core/units/operand_layout.h"

#include <algorithm>

#include "common/emu/core/state/faults.h"

namespace gg::emu {

OperandLayout::OperandLayout(uint64_t descriptor, const OperandShape& shape) : shape_(shape) {
  const auto bytes = [&](int first_bit) { return uint32_t(descriptor >> first_bit & 0x3FFF) * kUnitBytes; };
  start_ = bytes(0);
  leading_ = bytes(16);
  stride_ = bytes(32);
  base_offset_ = uint32_t(descriptor >> 49 & 7);
  constexpr uint32_t kSpans[4] = {0, 128, 64, 32};
  span_ = kSpans[descriptor >> 62];
  places_ = span_ ? span_ / kUnitBytes - 1 : 0;
  check(descriptor);
}

void OperandLayout::check(uint64_t descriptor) {
  constexpr uint64_t kReserved = 0x3FF1C000C000C000ull;
  const uint32_t along = shape_.line_major ? std::min(uint32_t(shape_.lines) * 2, span_) : 32;
  const bool many_spans = shape_.line_major && span_ && uint32_t(shape_.lines) * 2 > span_;
  const bool uses_leading = span_ ? many_spans : true;
  const bool uses_stride = span_ && shape_.line_major ? true : shape_.lines > 8;
  if (descriptor & kReserved) {
    problem_ = "has reserved bits set: " + hex(descriptor & kReserved);
  } else if (!span_ && base_offset_) {
    problem_ = "has a base offset of " + std::to_string(base_offset_) + " without a swizzle mode";
  } else if (span_ && start_ % span_ + along > span_) {
    problem_ = "starts at byte " + std::to_string(start_ % span_) + " of a span of " + std::to_string(span_) +
               " bytes and reads " + std::to_string(along) + " of it";
  } else if (((start_ >> 7) - base_offset_) & places_) {
    problem_ = "starts at " + hex(start_) + ", line " + std::to_string((start_ >> 7) & places_) +
               " of the pattern of " + std::to_string(8 * span_) + " bytes, and its base offset is " +
               std::to_string(base_offset_);
  } else if ((uses_leading && leading_ == 0) || (uses_stride && stride_ == 0)) {
    problem_ = std::string("has a ") + (uses_leading && leading_ == 0 ? "leading" : "stride") +
               " byte offset of 0, which this operand uses";
  }
}

}  // namespace gg::emu
