// SPDX-License-Identifier: MIT
//
// Operands of tcgen05.mma: from their places to factors.

#include "common/emu/core/units/tcgen05_operands.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace gg::emu {
namespace {

constexpr int kUnit = kTcgen05UnitBytes;

int container_bits(MmaKind kind) {
  if (kind == MmaKind::f16) return 16;
  if (kind == MmaKind::tf32) return 32;
  return is_packed_fp4(kind) ? 4 : 8;
}

// The elements of a unit of shared memory. PTX ISA, "Packing formats of elements": 16 elements of 4
// or 6 bits lie in the first 8 or 12 bytes, the first one in the lowest bits.
int unpack(const uint8_t* unit, int bits, uint32_t (&codes)[kUnit]) {
  const int count = bits <= 8 ? kUnit : 8 * kUnit / bits;
  for (int i = 0; i < count; ++i) {
    uint32_t word = 0;
    const int first = i * bits;
    std::memcpy(&word, unit + first / 8, size_t(std::min(4, kUnit - first / 8)));
    codes[i] = word >> (first % 8) & (bits == 32 ? ~0u : (1u << bits) - 1);
  }
  return count;
}

// Whole elements of 8, 16 or 32 bits.
template <class T>
int unpack_as(const uint8_t* unit, uint32_t (&codes)[kUnit]) {
  constexpr int kCount = kUnit / int(sizeof(T));
  T elements[kCount];
  std::memcpy(elements, unit, kUnit);
  for (int i = 0; i < kCount; ++i) codes[i] = elements[i];
  return kCount;
}

template <class Unpack>
void gather_units(const Tcgen05Layout& layout, const Tcgen05Operand& operand, const uint8_t* address_0,
                  uint32_t sign, Factors& to, Unpack unpack_unit) {
  layout.units(0, operand.lines, [&](uint32_t address, int line, int k) {
    uint32_t codes[kUnit] = {};
    const int count = unpack_unit(address_0 + address, codes);
    Factors::Slice* slices = to.slices(line) + k;
    const int l = line % Factors::kSide;
    for (int i = 0; i < count; ++i)
      (operand.line_major ? slices->codes[l + i] : slices[i].codes[l]) = codes[i] ^ sign;
  });
}

void gather_shared(Block& block, uint64_t descriptor, const Tcgen05Operand& operand, const Narrow& format,
                   bool negate, Factors& to) {
  const Tcgen05Layout layout(descriptor, operand);
  const uint8_t* address_0 = block.shared.bytes.data() - kSharedStart;
  const uint32_t sign = negate ? 1u << (format.bits - 1) : 0;
  to.resize(operand.lines, operand.k);
  const auto gather = [&](auto unpack_unit) {
    gather_units(layout, operand, address_0, sign, to, unpack_unit);
  };
  switch (format.bits) {
    case 8:
      return gather(unpack_as<uint8_t>);
    case 16:
      return gather(unpack_as<uint16_t>);
    case 32:
      return gather(unpack_as<uint32_t>);
    default:
      return gather(
          [&](const uint8_t* unit, uint32_t(&codes)[kUnit]) { return unpack(unit, format.bits, codes); });
  }
}

void gather_shared(Block& block, uint64_t descriptor, const Tcgen05Operand& operand, bool negate,
                   PackedFactors& to) {
  const Tcgen05Layout layout(descriptor, operand);
  const uint8_t* address_0 = block.shared.bytes.data() - kSharedStart;
  const uint8_t signs = negate ? 0x88 : 0;
  to.resize(operand.lines);
  layout.units(0, operand.lines, [&](uint32_t address, int line, int k) {
    uint8_t* codes = to.codes(line) + k / 2;
    std::memcpy(codes, address_0 + address, kUnit);
    for (int i = 0; i < kUnit; ++i) codes[i] ^= signs;
  });
}

// An element of a column of tensor memory: the lowest k in the lowest bits. 4-bit elements of kinds
// f8f6f4 and mxf8f6f4 have a byte each, in bits 2 to 5 (PTX ISA, "Optional Decompression").
uint32_t element_of(uint32_t word, int index, const Narrow& format) {
  if (format.bits == 4) return word >> (8 * index + 2) & 15;
  return word >> (format.bits * index) & (format.bits == 32 ? ~0u : (1u << format.bits) - 1);
}

}  // namespace

// ---- shared memory ----

Tcgen05Operand shared_a(const MmaOperation& o) {
  return {o.rows(), o.shape.k, container_bits(o.modifiers.kind), o.shape.a_line_major};
}
Tcgen05Operand shared_b(const MmaOperation& o) {
  return {o.columns(), o.shape.k, container_bits(o.modifiers.kind), o.shape.b_line_major};
}

int bytes_of_unit(const MmaOperation& o, const char* type) {
  return is_packed_fp4(o.modifiers.kind) ? kUnit : std::min(kUnit, 2 * narrow(type).bits);
}

void gather_b(const MmaOperation& o, int part, Factors& to) {
  gather_shared(*o.blocks[size_t(part)], o.b, shared_b(o), narrow(o.shape.b), o.shape.negate_b, to);
}
void gather_b(const MmaOperation& o, int part, PackedFactors& to) {
  gather_shared(*o.blocks[size_t(part)], o.b, shared_b(o), o.shape.negate_b, to);
}

void gather_a(const MmaOperation& o, int block, int part, Factors& to) {
  Block& from = *o.blocks[size_t(block)];
  const Narrow format = narrow(o.shape.a);
  if (!o.a_in_tmem) return gather_shared(from, o.a, shared_a(o), format, o.shape.negate_a, to);
  const uint32_t sign = o.shape.negate_a ? 1u << (format.bits - 1) : 0;
  const int each = o.shape.k / kMmaTmemColumns;
  to.resize(o.rows(), o.shape.k);
  for (int column = 0; column < kMmaTmemColumns; ++column) {
    const uint32_t* lanes = tmem_of(from).at<uint32_t>(o.a_tmem.column + column);
    for (int row = 0; row < o.rows(); ++row) {
      const uint32_t word = lanes[o.lane_of(row, part)];
      for (int i = 0; i < each; ++i) to.code(row, column * each + i) = element_of(word, i, format) ^ sign;
    }
  }
}

void gather_a(const MmaOperation& o, int block, int part, PackedFactors& to) {
  Block& from = *o.blocks[size_t(block)];
  if (!o.a_in_tmem) return gather_shared(from, o.a, shared_a(o), o.shape.negate_a, to);
  const uint32_t signs = o.shape.negate_a ? 0x88888888u : 0;
  to.resize(o.rows());
  for (int column = 0; column < kMmaTmemColumns; ++column) {
    const uint32_t* lanes = tmem_of(from).at<uint32_t>(o.a_tmem.column + column);
    for (int row = 0; row < o.rows(); ++row) {
      const uint32_t word = lanes[o.lane_of(row, part)] ^ signs;
      std::memcpy(to.codes(row) + 4 * column, &word, 4);
    }
  }
}

// ---- tensor memory ----

static TmemRegion lanes_of(const MmaOperation& o, int column, int columns) {
  TmemRegion region = tmem_region(0, kTmemLanes, column, columns);
  if (o.sixteen_of_32()) region.lanes.fill(0xFFFFu << o.d.lane);
  return region;
}

TmemRegion a_region(const MmaOperation& o) { return lanes_of(o, o.a_tmem.column, kMmaTmemColumns); }

TmemRegion d_region(const MmaOperation& o, int block) {
  TmemRegion region = lanes_of(o, o.d.column, o.d_columns());
  for (size_t q = 0; q < kTmemQuarters; ++q)
    region.lanes[q] &= ~o.disabled[size_t(block) * kTmemQuarters + q];
  return region;
}

// PTX ISA, "Scale factor layout": the scale of line l is in lane l % 32 of column l / 32, and in
// the same lane of the other three quarters.
TmemRegion a_scales_region(const MmaOperation& o) {
  return tmem_region(0, kTmemLanes, o.a_scales.column, (o.rows() + kLanes - 1) / kLanes);
}
// M = 128 of a pair: lanes 0-63 have the scales of the first half of the columns, lanes 64-127
// those of the second.
TmemRegion b_scales_region(const MmaOperation& o) {
  return tmem_region(0, kTmemLanes, o.b_scales.column, (o.d_columns() + kLanes - 1) / kLanes);
}

namespace {

// The scales of `lines` lines, the first of them number `first` in the region; replicas are `step`
// quarters apart, from quarter `quarter` on.
struct ScaleLines {
  int block = 0, lines = 0, first = 0, quarter = 0, replicas = kTmemQuarters;
  TmemAddress at;
  int id = 0;
  bool of_a = false;
};

void scales_of(const MmaOperation& o, const ScaleLines& s, std::vector<uint8_t>& to, ScaleClash& clash) {
  const int vector = o.modifiers.scale_vector, groups = is_packed_fp4(o.modifiers.kind) ? kPackedGroups : 1;
  to.resize(size_t(s.lines * groups));
  for (int line = 0; line < s.lines; ++line) {
    const int column = s.at.column + (s.first + line) / kLanes;
    const uint32_t* words = tmem_of(*o.blocks[size_t(s.block)]).at<uint32_t>(column) +
                            (s.first + line) % kLanes + s.quarter * kLanes;
    const uint32_t mask = uint32_t((1ull << (8 * vector)) - 1);
    const uint32_t bytes = words[0] >> (8 * s.id) & mask;
    for (int g = 0; g < groups; ++g)
      to[size_t(line * groups + g)] = uint8_t(bytes >> (g * vector / groups * 8));
    for (int r = 1; r < s.replicas; ++r) {
      const uint32_t other = words[r * kLanes] >> (8 * s.id) & mask;
      if (other == bytes || clash.found) continue;
      const int lane = (s.first + line) % kLanes + s.quarter * kLanes;
      clash = {true, s.of_a, s.block, s.first + line, {lane, lane + r * kLanes}, column, {bytes, other}};
    }
  }
}

}  // namespace

void scales_of_a(const MmaOperation& o, int block, std::vector<uint8_t>& to, ScaleClash& clash) {
  scales_of(o, {block, o.rows(), 0, 0, kTmemQuarters, o.a_scales, o.shape.a_scale_id, true}, to, clash);
}

void scales_of_b(const MmaOperation& o, int block, int part, std::vector<uint8_t>& to, ScaleClash& clash) {
  ScaleLines lines = {block,         o.columns(), part * o.columns(), 0,
                      kTmemQuarters, o.b_scales,  o.shape.b_scale_id, false};
  if (o.two_by_two()) {
    lines.first = 0;
    lines.quarter = 2 * part;
    lines.replicas = 2;
  }
  scales_of(o, lines, to, clash);
}

}  // namespace gg::emu
