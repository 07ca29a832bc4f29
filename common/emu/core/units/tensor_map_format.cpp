// SPDX-License-Identifier: MIT
//
// Where the fields of a tensor map lie, and which values of them a driver accepts. CUDA Driver API,
// "Tensor Map Object Management", cuTensorMapEncodeTiled.

#include "common/emu/core/units/tensor_map_format.h"

#include <cstring>

namespace gg::emu {
namespace {

struct TypeRow {
  const char* name;
  int bits;
  bool is_float;
  // Its code in the map; of the last two the emulator's own, as no driver's map of them was seen.
  int field;
  bool tf32;  // the bit beside it
};
constexpr TypeRow kTypes[] = {
    {"u8", 8, false, 0, false},         {"u16", 16, false, 1, false},   {"u32", 32, false, 2, false},
    {"s32", 32, false, 3, false},       {"u64", 64, false, 4, false},   {"s64", 64, false, 5, false},
    {"f16", 16, true, 6, false},        {"f32", 32, true, 7, false},    {"f32.ftz", 32, true, 8, false},
    {"f64", 64, true, 9, false},        {"bf16", 16, true, 10, false},  {"tf32", 32, true, 7, true},
    {"tf32.ftz", 32, true, 8, true},    {"b4x16", 4, false, 11, false}, {"b4x16_p64", 4, false, 12, false},
    {"b6x16_p32", 6, false, 13, false},
};

// A field of `bits` bits that begins at bit `at` of 64-bit word `word`.
struct Field {
  int word, at, bits;
};
constexpr Field kSm100{1, 1, 1}, kRank{1, 4, 3}, kType{1, 7, 4}, kInterleave{1, 11, 2}, kSwizzle{1, 13, 2},
    kFill{1, 15, 1}, kTf32{1, 16, 1}, kPromotion{1, 17, 2}, kWide{1, 21, 1};
// The emulator's own choice, as no driver's map with one was seen.
constexpr Field kAtomicity{1, 19, 2};
constexpr Field kStrideLow[] = {{}, {1, 32, 32}, {2, 0, 32}, {2, 32, 32}, {3, 0, 32}};
constexpr Field kStrideHigh[] = {{}, {3, 32, 4}, {3, 36, 4}, {3, 40, 4}, {3, 44, 4}};
constexpr Field kDim[] = {{4, 0, 32}, {4, 32, 32}, {5, 0, 32}, {5, 32, 32}, {6, 0, 32}};
constexpr Field kElementStride[] = {{6, 32, 3}, {6, 35, 3}, {6, 38, 3}, {6, 41, 3}, {6, 44, 3}};
constexpr Field kBox[] = {{6, 56, 8}, {7, 0, 8}, {7, 8, 8}, {7, 16, 8}, {7, 24, 8}};
constexpr uint64_t kMostTensorBytes = 233472;  // of a box
constexpr int kWords = int(kTensorMapBytes) / 8;

uint64_t mask_of(const Field& f) { return ((1ull << f.bits) - 1) << f.at; }
uint64_t get(const uint64_t* words, const Field& f) { return (words[f.word] & mask_of(f)) >> f.at; }
void put(uint64_t* words, const Field& f, uint64_t value) {
  words[f.word] = (words[f.word] & ~mask_of(f)) | ((value << f.at) & mask_of(f));
}

// As the driver reckons them; a copy moves a box's rest too, see box_elements.
uint64_t copy_bytes(const TensorMap& m) {
  uint64_t bits = uint64_t(map_type_bits(m.type));
  for (int i = 0; i < m.rank; ++i) bits *= uint64_t(m.box[i] / m.element_strides[i]);
  return bits / 8;
}

std::string text(uint64_t value) { return std::to_string(value); }

std::string dimension_problem(const TensorMap& m, int i) {
  const uint64_t unit = m.interleave == 2 || m.spread() ? 32 : 16;
  const std::string n = text(uint64_t(i));
  if (m.dims[i] < 1 || m.dims[i] > 1ull << 32)
    return "dimension " + n + " is " + text(m.dims[i]) + ", not 1 to 2^32";
  if (m.box[i] < 1 || m.box[i] > 256)
    return "box " + n + " is " + text(uint64_t(m.box[i])) + ", not 1 to 256";
  if (i > 0 && (m.strides[i] % unit || m.strides[i] >= 1ull << 40)) {
    return "the stride of dimension " + n + " is " + text(m.strides[i]) + " bytes, not a multiple of " +
           text(unit) + " below 2^40";
  }
  if (m.element_strides[i] < 1 || m.element_strides[i] > 8) {
    return "element stride " + n + " is " + text(uint64_t(m.element_strides[i])) + ", not 1 to 8";
  }
  return "";
}

std::string unit_problem(const TensorMap& m, int capability) {
  if (m.atomicity == 0) return "";
  if (capability < 100) return "a swizzle in units of more than 16 bytes wants compute capability 10.0";
  if (m.atomicity == 2) return "its swizzle flips 8 bytes, which the emulator does not know";
  if (m.swizzle == 3) return "";
  return "its swizzle of " + text(uint64_t(m.span_bytes())) +
         " bytes wants units of 16, only that of 128 has others";
}

std::string packed_problem(const TensorMap& m, int capability) {
  const bool spread = m.spread();
  if (!spread && m.type != MapType::b4x16) return "";
  const std::string name = map_type_name(m.type);
  if (capability < 100) return "elements of type " + name + " want compute capability 10.0";
  if (spread && (m.dims[0] % 128 || m.box[0] != 128)) {
    return name + " wants a dimension 0 of multiples of 128 and a box 0 of 128, these are " +
           text(m.dims[0]) + " and " + text(uint64_t(m.box[0]));
  }
  if (spread && m.interleave) return name + " wants no interleave";
  if (spread && m.swizzle != 0 && m.swizzle != 3) {
    return name + " wants no swizzle or that of 128 bytes, this is of " + text(uint64_t(m.span_bytes()));
  }
  if (m.type == MapType::b4x16 && m.dims[0] % 2)
    return name + " wants an even dimension 0, this is " + text(m.dims[0]);
  return "";
}

}  // namespace

const char* map_type_name(MapType type) { return kTypes[int(type)].name; }
int map_type_bits(MapType type) { return kTypes[int(type)].bits; }
bool map_type_is_float(MapType type) { return kTypes[int(type)].is_float; }

int TensorMap::box_elements(int dimension) const {
  const int stride = dimension > 0 || interleave ? element_strides[dimension] : 1;
  return (box[dimension] + stride - 1) / stride;
}

int64_t TensorMap::box_bytes() const {
  int64_t bits = map_type_bits(type);
  for (int i = 0; i < rank && i < kTensorMapRank; ++i) bits *= box_elements(i);
  return bits / 8;
}

int TensorMap::span_bytes() const { return swizzle ? 16 << swizzle : 0; }

size_t TensorMap::swizzled(size_t offset) const {
  const int wider = atomicity == 3 ? 2 : atomicity;  // units of 16 << wider bytes
  const size_t rows = ((size_t(1) << swizzle) - 1) >> wider;
  return offset ^ ((offset >> 7 & rows) << (4 + wider));
}

TensorMap decode_tensor_map(const uint8_t* bytes) {
  uint64_t words[kWords];
  std::memcpy(words, bytes, sizeof words);
  TensorMap m;
  m.address = words[0];
  m.rank = int(get(words, kRank)) + 1;
  const int type = int(get(words, kType));
  const bool tf32 = get(words, kTf32);
  m.unknown = true;
  for (int i = 0; i < int(sizeof kTypes / sizeof kTypes[0]); ++i) {
    if (kTypes[i].field == type && kTypes[i].tf32 == tf32) {
      m.type = MapType(i);
      m.unknown = false;
    }
  }
  m.interleave = int(get(words, kInterleave));
  m.swizzle = int(get(words, kSwizzle));
  m.atomicity = int(get(words, kAtomicity));
  m.promotion = int(get(words, kPromotion));
  m.nan_fill = get(words, kFill);
  m.sm100 = get(words, kSm100);
  m.sm100_wide = get(words, kWide);
  for (int i = 0; i < kTensorMapRank; ++i) {
    m.dims[i] = get(words, kDim[i]) + 1;
    m.box[i] = int(get(words, kBox[i])) + 1;
    m.element_strides[i] = int(get(words, kElementStride[i])) + 1;
    if (i > 0) m.strides[i] = (get(words, kStrideHigh[i]) << 32 | get(words, kStrideLow[i])) * 16;
  }
  m.noted_bytes = words[8];
  m.noted_alignment = words[9];
  uint64_t again[kWords];
  encode_tensor_map(m, reinterpret_cast<uint8_t*>(again));
  m.unknown = m.unknown || std::memcmp(words, again, sizeof words) != 0;
  return m;
}

void encode_tensor_map(const TensorMap& m, uint8_t* bytes) {
  uint64_t words[kWords] = {m.address};
  const TypeRow& type = kTypes[int(m.type)];
  put(words, kRank, uint64_t(m.rank - 1));
  put(words, kType, uint64_t(type.field));
  put(words, kTf32, type.tf32);
  put(words, kInterleave, uint64_t(m.interleave));
  put(words, kSwizzle, uint64_t(m.swizzle));
  put(words, kAtomicity, uint64_t(m.atomicity));
  put(words, kFill, m.nan_fill);
  put(words, kPromotion, uint64_t(m.promotion));
  put(words, kSm100, m.sm100);
  put(words, kWide, m.sm100_wide);
  for (int i = 0; i < kTensorMapRank; ++i) {
    put(words, kDim[i], m.dims[i] - 1);
    put(words, kBox[i], uint64_t(m.box[i] - 1));
    put(words, kElementStride[i], uint64_t(m.element_strides[i] - 1));
    if (i > 0) put(words, kStrideLow[i], m.strides[i] / 16);
    if (i > 0) put(words, kStrideHigh[i], m.strides[i] / 16 >> 32);
  }
  words[8] = m.noted_bytes;
  words[9] = m.noted_alignment;
  std::memcpy(bytes, words, sizeof words);
}

std::string tensor_map_problem(const TensorMap& m, int capability) {
  if (m.unknown) return "bits are set that mean nothing known";
  if (m.rank < 1 || m.rank > kTensorMapRank) return "its rank is " + text(uint64_t(m.rank)) + ", not 1 to 5";
  if (m.interleave > 2) return "its interleave is 3, not 0 to 2";
  if (m.interleave && m.rank < 3)
    return "interleave wants at least 3 dimensions, it has " + text(uint64_t(m.rank));
  const bool wide = m.interleave == 2 || m.spread();
  if (m.address % (wide ? 32 : 16))
    return "its address is not a multiple of " + text(wide ? 32 : 16) + " bytes";
  for (int i = 0; i < m.rank; ++i) {
    const std::string problem = dimension_problem(m, i);
    if (!problem.empty()) return problem;
  }
  const std::string unit = unit_problem(m, capability);
  if (!unit.empty()) return unit;
  const std::string packed = packed_problem(m, capability);
  if (!packed.empty()) return packed;
  if (copy_bytes(m) > kMostTensorBytes) {
    return "its box has " + text(copy_bytes(m)) + " bytes, more than the " + text(kMostTensorBytes) +
           " of shared memory";
  }
  const int inner_bits = m.box[0] * map_type_bits(m.type);
  if (!m.interleave && inner_bits % 128) {
    return "box 0 is " + text(uint64_t(inner_bits / 8)) + " bytes, not a multiple of 16";
  }
  if (m.swizzle && !m.interleave && !m.spread() && inner_bits > m.span_bytes() * 8) {
    return "box 0 is " + text(uint64_t(inner_bits / 8)) + " bytes, more than the " +
           text(uint64_t(m.span_bytes())) + " of its swizzle";
  }
  if (m.interleave == 2 && m.swizzle == 0) return "interleave of 32 bytes wants a swizzle";
  if (m.nan_fill && !map_type_is_float(m.type)) {
    return std::string("NaN fill wants a floating-point type, this is ") + map_type_name(m.type);
  }
  return "";
}

std::string describe_tensor_map(const TensorMap& m) {
  const int rank = m.rank < kTensorMapRank ? m.rank : kTensorMapRank;
  std::string dims, strides, box, element_strides;
  bool thinned = false;
  for (int i = 0; i < rank; ++i) {
    dims += (i ? " x " : "") + text(m.dims[i]);
    box += (i ? " x " : "") + text(uint64_t(m.box[i]));
    element_strides += (i ? " x " : "") + text(uint64_t(m.element_strides[i]));
    if (i > 0) strides += (i > 1 ? " x " : "") + text(m.strides[i]);
    thinned = thinned || m.element_strides[i] != 1;
  }
  std::string result = std::string(map_type_name(m.type)) + " " + dims;
  if (rank > 1) result += ", strides " + strides + " bytes";
  result += ", box " + box;
  if (thinned) result += ", element strides " + element_strides;
  if (m.interleave) result += ", interleave " + text(uint64_t(m.interleave) * 16) + "B";
  if (m.swizzle) result += ", swizzle " + text(uint64_t(m.span_bytes())) + "B";
  if (m.atomicity) result += m.atomicity == 3 ? " of 64B" : " of 32B";
  if (m.nan_fill) result += ", NaN fill";
  return result;
}

}  // namespace gg::emu
