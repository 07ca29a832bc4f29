// SPDX-License-Identifier: MIT
//
// The 128 bytes of a tensor map as hardware lays them out: programs may build or change maps by
// plain stores, so cuTensorMapEncodeTiled, tensormap.replace and the bulk copies all go through
// these fields. PTX ISA 9.0, "Tensors", "tensormap.replace"; positions of bits read off maps that
// a driver encoded.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gg::emu {

constexpr size_t kTensorMapBytes = 128;
constexpr int kTensorMapRank = 5;  // at most

// By the numbers of tensormap.replace's .elemtype; cuda.h and the map itself have others.
enum class MapType : uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f32_ftz,
  f64,
  bf16,
  tf32,
  tf32_ftz,
  b4x16,
  b4x16_p64,
  b6x16_p32,
};
const char* map_type_name(MapType type);
int map_type_bits(MapType type);       // of one element in global memory
bool map_type_is_float(MapType type);  // may be filled with NaN

struct TensorMap {
  uint64_t address = 0;  // of the element at the origin
  int rank = 1;          // 1 to 5; bytes made by hand may say up to 8
  MapType type = MapType::u8;
  uint64_t dims[kTensorMapRank] = {1, 1, 1, 1, 1};  // elements, up to 2^32
  // Bytes, multiples of 16; [0] is not in the map and always 0.
  uint64_t strides[kTensorMapRank] = {0};
  // Elements before element_strides thin them out, up to 256.
  int box[kTensorMapRank] = {1, 1, 1, 1, 1};
  int element_strides[kTensorMapRank] = {1, 1, 1, 1, 1};
  int interleave = 0;  // 0 none, 1 16 bytes, 2 32 bytes
  int swizzle = 0;     // 0 none, 1 32 bytes, 2 64 bytes, 3 128 bytes
  // For swizzle 3, as in tensormap.replace: 0 units of 16 bytes move, 1 of 32, 3 of 64.
  int atomicity = 0;
  int promotion = 0;  // of L2: 0 none, 1 64 bytes, 2 128 bytes, 3 256 bytes
  bool nan_fill = false;
  // Bit 1 of word 1, which maps made for compute capability 10.0 have set.
  bool sm100 = false;
  bool sm100_wide = false;  // bit 21, set there if the tensor spans more than 131071 bytes
  // In words 8 and 9, which a driver fills in and no copy looks at: bytes of a copy, its box
  // divided by the element strides without the rest; alignment in shared memory.
  uint64_t noted_bytes = 0;
  uint64_t noted_alignment = 0;
  // Bits are set that we do not know: decoding keeps no more of them than this.
  bool unknown = false;

  // b4x16_p64 and b6x16_p32: in shared memory, every 16 elements have a slot of 16 bytes. They fill
  // its first 8 or 12.
  bool spread() const { return type == MapType::b4x16_p64 || type == MapType::b6x16_p32; }
  // Elements along a dimension that a copy of the whole box moves: the element stride of dimension
  // 0 counts only with interleave.
  int box_elements(int dimension) const;
  // Bytes of global memory that make the whole box, in bounds or not: what an mbarrier is told.
  int64_t box_bytes() const;
  int span_bytes() const;  // of a swizzled row in shared memory: 32, 64, 128; 0 without swizzle
  // Where the swizzle puts the byte that the plain layout has at this offset: bits that number the
  // row of 128 bytes are added (XOR) to those that number the unit within it. PTX ISA, "Swizzling
  // Modes"; cuda.h, CUtensorMapSwizzle. Offsets and addresses of shared memory agree in these bits.
  size_t swizzled(size_t offset) const;
};

// Any 128 bytes decode to something; encoding that gives the same bytes unless `unknown`.
TensorMap decode_tensor_map(const uint8_t* bytes);
void encode_tensor_map(const TensorMap& map, uint8_t* bytes);

// Why cuTensorMapEncodeTiled would not have made this map for a device of this compute
// capability (90, 100), and no copy may use it: a clause such as "box 0 is 24 bytes, not a
// multiple of 16". Empty: none.
std::string tensor_map_problem(const TensorMap& map, int capability);

// "bf16, 2 dimensions 4096 x 128, strides 8192, box 64 x 128, swizzle 128B": for reports.
std::string describe_tensor_map(const TensorMap& map);

}  // namespace gg::emu
