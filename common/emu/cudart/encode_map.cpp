// SPDX-License-Identifier: MIT
//
// The checks of cuTensorMapEncodeTiled. CUDA Driver API, "Tensor Map Object Management"; what a
// driver (13.0) on an H200 answered to thousands of arguments decides where the text is silent.

#include "common/emu/cudart/encode_map.h"

#include <algorithm>

namespace gg::emu {
namespace {

constexpr MapType kTypes[] = {
    MapType::u8,       MapType::u16,   MapType::u32,       MapType::s32,
    MapType::u64,      MapType::s64,   MapType::f16,       MapType::f32,
    MapType::f64,      MapType::bf16,  MapType::f32_ftz,   MapType::tf32,
    MapType::tf32_ftz, MapType::b4x16, MapType::b4x16_p64, MapType::b6x16_p32,
};
constexpr uint64_t kUserRange = 1ull << 57;  // of virtual addresses

uint64_t span_of(const TensorMap& map) {
  uint64_t bits = uint64_t(map_type_bits(map.type)) * map.dims[0];
  if (map.rank == 1) return (bits + 7) / 8;
  return map.strides[map.rank - 1] * map.dims[map.rank - 1];
}

uint64_t noted_bytes(const TensorMap& map) {
  uint64_t bits = uint64_t(map_type_bits(map.type));
  for (int i = 0; i < map.rank; ++i) {
    bits *= uint64_t(map.box[i] / map.element_strides[i]);
  }
  return bits / 8;
}

}  // namespace

CUresult encode_tiled(const TiledArguments& a, int capability, TensorMap* map, std::string* why) {
  const auto refuse = [why](const std::string& text) {
    *why = text;
    return CUDA_ERROR_INVALID_VALUE;
  };
  if (a.type >= sizeof kTypes / sizeof kTypes[0]) return refuse("there is no such data type");
  if (a.rank < 1 || a.rank > uint32_t(kTensorMapRank)) return refuse("its rank is not 1 to 5");
  if (!a.dims || !a.box || !a.element_strides || (a.rank > 1 && !a.strides))
    return refuse("an array is missing");
  if (unsigned(a.interleave) > 2 || unsigned(a.swizzle) > 6 || unsigned(a.promotion) > 3 ||
      unsigned(a.fill) > 1) {
    return refuse("interleave, swizzle, L2 promotion or fill has no such value");
  }
  TensorMap m;
  m.address = reinterpret_cast<uint64_t>(a.address);
  m.rank = int(a.rank);
  m.type = kTypes[a.type];
  m.interleave = int(a.interleave);
  // From 4 on, 128 bytes in units of 32, of 32 with 8 of every other row flipped, of 64.
  m.swizzle = std::min(int(a.swizzle), 3);
  m.atomicity = std::max(int(a.swizzle) - 3, 0);
  m.promotion = int(a.promotion);
  m.nan_fill = a.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  for (int i = 0; i < m.rank; ++i) {
    if (a.box[i] > 256 || a.element_strides[i] > 256)
      return refuse("box or element stride " + std::to_string(i) + " is too large");
    m.dims[i] = a.dims[i];
    m.box[i] = int(a.box[i]);
    m.element_strides[i] = int(a.element_strides[i]);
    if (i > 0) m.strides[i] = a.strides[i - 1];
  }
  if (a.swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B && capability >= 100) {
    *why = "the emulator does not know swizzles that flip 8 bytes";
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  *why = tensor_map_problem(m, capability);
  if (!why->empty()) return CUDA_ERROR_INVALID_VALUE;
  if (m.address >= kUserRange) return refuse("the address is no program's");
  m.sm100 = capability >= 100;
  m.sm100_wide = m.sm100 && span_of(m) > 131071;
  m.noted_bytes = noted_bytes(m);
  m.noted_alignment = m.swizzle ? 128u << m.swizzle : 16;
  *map = m;
  return CUDA_SUCCESS;
}

}  // namespace gg::emu
