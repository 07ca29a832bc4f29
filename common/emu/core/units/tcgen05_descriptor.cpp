// SPDX-License-Identifier: MIT
//
// Decodes the descriptors of tcgen05 and says what is wrong with them.

#include "common/emu/core/units/tcgen05_descriptor.h"

#include <algorithm>

#include "common/emu/core/state/faults.h"

namespace gg::emu {
namespace {

// PTX ISA, "Shared Memory Descriptor": bits 61-63.
enum Swizzle : uint32_t { kNone = 0, k128WithAtom32 = 1, k128 = 2, k64 = 4, k32 = 6 };
constexpr uint64_t kReservedOfMatrix = 0x1FE0'0000'C000'C000ull;        // bits 14-15, 30-31, 53-60
constexpr uint64_t kConstantBits = 7ull << 46, kConstant = 1ull << 46;  // bits 46-48 are 0b001
constexpr uint64_t kAbsoluteLeading = 1ull << 52;                       // sm_103a only

constexpr uint32_t field(uint32_t bits, int first, int count) { return bits >> first & ((1u << count) - 1); }

}  // namespace

// ---- the matrix descriptor ----

Tcgen05Layout::Tcgen05Layout(uint64_t descriptor, const Tcgen05Operand& operand) : operand_(operand) {
  const auto bytes = [&](int first_bit) {
    return uint32_t(descriptor >> first_bit & 0x3FFF) * kTcgen05UnitBytes;
  };
  start_ = bytes(0);
  leading_ = bytes(16);
  stride_ = bytes(32);
  base_offset_ = uint32_t(descriptor >> 49 & 7);
  take_swizzle(uint32_t(descriptor >> 61));
  check(descriptor);
}

void Tcgen05Layout::take_swizzle(uint32_t code) {
  switch (code) {
    case k128WithAtom32:  // address bits 5-6 are mixed with bits 7-8
      span_ = 128, mixed_rows_ = 3, atom_shift_ = 5, group_ = 4;
      break;
    case k128:  // bits 4-6 with bits 7-9
      span_ = 128, mixed_rows_ = 7;
      break;
    case k64:  // bits 4-5 with bits 7-8
      span_ = 64, mixed_rows_ = 3;
      break;
    case k32:  // bit 4 with bit 7
      span_ = 32, mixed_rows_ = 1;
      break;
    default:
      break;
  }
}

std::string Tcgen05Layout::swizzle_problem(uint32_t code) const {
  const std::string is = "has swizzle code " + std::to_string(code) + " in bits 61-63";
  constexpr const char* kCodes =
      "sm_100a: 0 none, 1 128 bytes with 32-byte atoms, 2 128 bytes, 4 64 bytes, "
      "6 32 bytes; Hopper's codes were 1 for 128, 2 for 64, 3 for 32 bytes";
  if (code == 3 || code == 5 || code == 7) return is + ", which means nothing (" + kCodes + ")";
  // PTX ISA, "Canonical Layouts" and Table "Major-ness": MN-major tf32 has this mode and no other.
  const bool tf32_lines = operand_.line_major && operand_.bits == 32;
  if (code == k128WithAtom32 && !tf32_lines)
    return is + ", 128 bytes with 32-byte atoms, which only an MN-major tf32 operand has (" + kCodes + ")";
  if (code != k128WithAtom32 && tf32_lines)
    return is + ", but an MN-major tf32 operand must have code 1, 128 bytes with 32-byte atoms";
  return "";
}

std::string Tcgen05Layout::offsets_problem() const {
  const uint32_t lines_bytes = uint32_t(operand_.lines * operand_.bits / 8),
                 along = operand_.line_major ? std::min(lines_bytes, span_) : uint32_t(operand_.line_bytes());
  bool uses_leading, uses_stride;
  if (operand_.line_major) {
    uses_leading = span_ ? lines_bytes > span_ : operand_.k > 8;
    uses_stride = span_ ? uint32_t(operand_.k) > group_ : lines_bytes > kTcgen05UnitBytes;
  } else {
    uses_leading = !span_ && along > kTcgen05UnitBytes;
    uses_stride = operand_.lines > 8;
  }
  if (!span_ && base_offset_)
    return "has a base offset of " + std::to_string(base_offset_) + " without a swizzle mode";
  if (span_ && start_ % span_ + along > span_)
    return "starts at byte " + std::to_string(start_ % span_) + " of a span of " + std::to_string(span_) +
           " bytes and reads " + std::to_string(along) + " of it";
  if (((start_ >> 7) - base_offset_) & mixed_rows_)
    return "starts at " + hex(start_) + ", 128-byte row " + std::to_string((start_ >> 7) & mixed_rows_) +
           " of a swizzle pattern of " + std::to_string(mixed_rows_ + 1) + ", and its base offset is " +
           std::to_string(base_offset_);
  if (uses_leading && leading_ == 0) return "has a leading byte offset of 0, which this operand uses";
  if (uses_stride && stride_ == 0) return "has a stride byte offset of 0, which this operand uses";
  return "";
}

void Tcgen05Layout::check(uint64_t descriptor) {
  if ((descriptor & kConstantBits) != kConstant) {
    problem_ = "has " + std::to_string((descriptor & kConstantBits) >> 46) +
               " in bits 46-48, where descriptors of sm_100a have the constant 0b001 and those of wgmma "
               "have 0";
    return;
  }
  const uint64_t reserved = descriptor & kReservedOfMatrix;
  if (reserved) {
    problem_ = "has reserved bits set: " + hex(reserved);
  } else if (descriptor & kAbsoluteLeading) {
    problem_ = "has bit 52 set: an absolute leading address exists on sm_103a only";
  } else if (problem_ = swizzle_problem(uint32_t(descriptor >> 61)); problem_.empty()) {
    problem_ = offsets_problem();
  }
}

// ---- the instruction descriptor ----

const char* kind_name(MmaKind kind) {
  constexpr const char* kNames[] = {"f16", "tf32", "f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4"};
  return kNames[size_t(kind)];
}

namespace {

// PTX ISA, "Instruction descriptor", the tables of the three groups of kinds: bits 7-9 and 10-12.
// Null: no type has the code.
const char* type_name(MmaKind kind, uint32_t code) {
  constexpr const char* kHalves[8] = {"f16", "bf16"};
  constexpr const char* kTf32[8] = {nullptr, nullptr, "tf32"};
  constexpr const char* kNarrow[8] = {"e4m3", "e5m2", nullptr, "e2m3", "e3m2", "e2m1"};
  constexpr const char* kPacked[8] = {nullptr, "e2m1"};
  if (kind == MmaKind::f16) return kHalves[code];
  if (kind == MmaKind::tf32) return kTf32[code];
  return is_packed_fp4(kind) ? kPacked[code] : kNarrow[code];
}

int k_of(MmaKind kind) {  // one instruction takes 32 bytes of k, and 32 of the narrow elements
  if (kind == MmaKind::f16) return 16;
  if (kind == MmaKind::tf32) return 8;
  return is_packed_fp4(kind) ? 64 : 32;
}

}  // namespace

InstructionDescriptor::InstructionDescriptor(uint32_t bits, const MmaModifiers& modifiers)
    : modifiers_(modifiers) {
  m = int(field(bits, 24, 5)) * 16;
  n = int(field(bits, 17, 6)) * 8;
  k = k_of(modifiers.kind);
  take_types(bits);
  negate_a = field(bits, 13, 1);
  negate_b = field(bits, 14, 1);
  a_line_major = field(bits, 15, 1);
  b_line_major = field(bits, 16, 1);
  if (is_block_scaled(modifiers.kind)) {
    b_scale_id = int(field(bits, 4, 2));
    a_scale_id = int(field(bits, 29, 2));
    ue4m3_scales = !field(bits, 23, 1);
  }
  problem_ = bits_problem(bits);
  if (problem_.empty()) problem_ = types_problem(bits);
  if (problem_.empty()) problem_ = shape_problem();
  if (problem_.empty()) problem_ = major_problem();
  if (problem_.empty() && is_block_scaled(modifiers.kind)) problem_ = scales_problem();
}

void InstructionDescriptor::take_types(uint32_t bits) {
  a = type_name(modifiers_.kind, field(bits, 7, 3));
  b = type_name(modifiers_.kind, field(bits, 10, 3));
  half_sums = !is_block_scaled(modifiers_.kind) && field(bits, 4, 2) == 0;
}

std::string InstructionDescriptor::bits_problem(uint32_t bits) const {
  if (field(bits, 2, 1)) return "has bit 2 set, sparse A, and the instruction is dense";
  if (field(bits, 0, 2)) return "has a sparsity selector in bits 0-1, and the instruction is dense";
  const bool scaled = is_block_scaled(modifiers_.kind);
  if (field(bits, 3, 1)) return "has bit 3 set, which only the saturating sums of kind::i8 have";
  if (scaled && field(bits, 31, 1)) return "has bit 31 set: K = 96 exists on sm_103a only";
  if (!scaled && field(bits, 30, 2)) return "has a shift of B in bits 30-31, which only tcgen05.mma.ws has";
  const uint32_t reserved = bits & (scaled ? 1u << 6 : 1u << 6 | 1u << 23 | 1u << 29);
  return reserved ? "has reserved bits set: " + hex(reserved) : "";
}

std::string InstructionDescriptor::types_problem(uint32_t bits) const {
  const std::string kind = std::string("kind::") + kind_name(modifiers_.kind);
  for (const bool of_a : {true, false}) {
    if (of_a ? a : b) continue;
    const uint32_t code = field(bits, of_a ? 7 : 10, 3);
    std::string text = "has type code " + std::to_string(code) + " for " + (of_a ? "A" : "B") + ", which " +
                       kind + " does not know";
    if (is_packed_fp4(modifiers_.kind) && code == 5)
      text += ": e2m1 is code 1 here, and code 5 in kind::f8f6f4 and kind::mxf8f6f4";
    if (is_packed_fp4(modifiers_.kind) && code == 0) text += ": e2m1 is code 1 here";
    if (modifiers_.kind == MmaKind::tf32) text += ": tf32 is code 2";
    return text;
  }
  if (is_block_scaled(modifiers_.kind)) return "";
  if (modifiers_.kind == MmaKind::f16 && a != b)
    return std::string("gives A the type ") + a + " and B the type " + b + ": in " + kind + " both have one";
  const uint32_t d = field(bits, 4, 2);
  if (d > 1)
    return "has type code " + std::to_string(d) + " for D, which " + kind + " does not know (0 f16, 1 f32)";
  const bool half_allowed = modifiers_.kind == MmaKind::f8f6f4 || (a && std::string(a) == "f16");
  if (d == 0 && !half_allowed) return std::string("asks for f16 sums, and ") + a + " has f32 sums only";
  return "";
}

// PTX ISA, "Matrix and Data Movement Shape" of the family: M and N by kind and cta_group.
std::string InstructionDescriptor::shape_problem() const {
  const bool pair = modifiers_.cta_group == 2;
  const int least_m = is_block_scaled(modifiers_.kind) && !pair ? 128
                      : pair                                    ? 128
                                                                : 64,
            most_m = pair ? 256 : 128;
  const bool m_legal = (m == 64 || m == 128 || m == 256) && m >= least_m && m <= most_m;
  const std::string form =
      std::string("kind::") + kind_name(modifiers_.kind) + " with cta_group::" + (pair ? "2" : "1");
  if (!m_legal) {
    std::string text = "has M = " + std::to_string(m) + " in bits 24-28, and " + form + " wants " +
                       (least_m == most_m ? "" : std::to_string(least_m) + " or ") + std::to_string(most_m);
    if (pair) text += ": M and N are those of the pair, not of one CTA";
    return text;
  }
  const int step = pair ? 16 : 8;
  if (n < step || n > 256 || n % step)
    return "has N = " + std::to_string(n) + " in bits 17-22, and " + form + " wants a multiple of " +
           std::to_string(step) + " from " + std::to_string(step) + " to 256" +
           (pair ? ": M and N are those of the pair, not of one CTA" : "");
  return "";
}

// PTX ISA, tables "Major-ness supported" and "N shape restrictions for MN-major B".
std::string InstructionDescriptor::major_problem() const {
  if (is_packed_fp4(modifiers_.kind) && (a_line_major || b_line_major))
    return std::string("makes ") + (a_line_major ? "A" : "B") +
           " MN-major: kind::" + kind_name(modifiers_.kind) + " has K-major operands only";
  const bool bytes = modifiers_.kind == MmaKind::f8f6f4 || modifiers_.kind == MmaKind::mxf8f6f4;
  const int step = 16 * modifiers_.cta_group;
  if (bytes && b_line_major && n % step)
    return "has N = " + std::to_string(n) + ", and an MN-major B of this kind wants a multiple of " +
           std::to_string(step);
  return "";
}

// PTX ISA, "Block scaling": scale types of a kind, and which byte of a TMEM column may be first.
std::string InstructionDescriptor::scales_problem() const {
  const int vector = modifiers_.scale_vector;
  const std::string form =
      std::string("kind::") + kind_name(modifiers_.kind) + ".scale_vec::" + std::to_string(vector) + "X";
  if (ue4m3_scales && vector != 4)
    return "has bit 23 clear, UE4M3 scales, and " + form + " has UE8M0 scales, bit 23 set";
  for (const bool of_a : {true, false}) {
    const int id = of_a ? a_scale_id : b_scale_id;
    if (id % vector == 0) continue;
    return std::string("has scale id ") + std::to_string(id) + " for " + (of_a ? "A" : "B") + ", and " +
           form + " takes " + (vector == 4 ? "0 only" : "0 or 2");
  }
  return "";
}

}  // namespace gg::emu
