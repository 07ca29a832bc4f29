// SPDX-License-Identifier: MIT
//
// Any 128 bytes taken for a tensor map: decoding and encoding keep the bytes unless they mean
// nothing known, and what may be used has a box of a sensible size.

#include <cstring>

#include "common/emu/core/units/tensor_map_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gg::emu;
  uint8_t bytes[kTensorMapBytes] = {}, again[kTensorMapBytes];
  std::memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
  const TensorMap map = decode_tensor_map(bytes);
  encode_tensor_map(map, again);
  if (!map.unknown && std::memcmp(bytes, again, sizeof bytes) != 0) __builtin_trap();
  if (describe_tensor_map(map).empty()) __builtin_trap();
  if (map.interleave || map_type_bits(map.type) < 8) return 0;  // no copy takes these
  for (const int capability : {90, 100}) {
    // A driver leaves out of its reckoning what element strides thin out, so shared memory is
    // no limit here.
    constexpr int64_t kLeast = 16, kMost = 8ll << 40;
    const bool usable = tensor_map_problem(map, capability).empty();
    if (usable && (map.box_bytes() < kLeast || map.box_bytes() > kMost)) __builtin_trap();
  }
  return 0;
}
