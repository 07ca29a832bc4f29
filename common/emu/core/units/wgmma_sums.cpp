// SPDX-License-Identifier: MIT
//
// The sums of wgmma: operands are gathered from shared memory or registers, multiplied, and added
// up in the accumulators. PTX ISA: "Register Fragments and Shared Memory Matrix Layouts".

#include "common/emu/core/units/wgmma_operation.h"

namespace gg::emu {
namespace {

// Lines [first, first + count), as codes of type T.
template <class T>
void gather_as(const OperandLayout& layout, const OperandShape& shape, int first, int count,
               const uint8_t* shared, uint32_t sign, Factors& to) {
  constexpr int kElements = kUnitBytes / int(sizeof(T));
  layout.units(first, count, [&](uint32_t address, int line, int k) {
    T unit[kElements];
    std::memcpy(unit, shared + address, kUnitBytes);
    Factors::Slice* slices = to.slices(line - first) + k;
    const int l = (line - first) % Factors::kSide;
    for (int i = 0; i < kElements; ++i)
      (shape.line_major ? slices->codes[l + i] : slices[i].codes[l]) = unit[i] ^ sign;
  });
}

void gather(uint64_t descriptor, const OperandShape& shape, int first, int count, SharedMemory& shared,
            bool negate, Factors& to) {
  const OperandLayout layout(descriptor, shape);
  const uint8_t* address_0 = shared.bytes.data() - kSharedStart;
  const uint32_t sign = negate ? 1u << (8 * shape.bytes - 1) : 0;
  to.resize(count, shape.k);
  if (shape.bytes == 1) gather_as<uint8_t>(layout, shape, first, count, address_0, sign, to);
  if (shape.bytes == 2) gather_as<uint16_t>(layout, shape, first, count, address_0, sign, to);
  if (shape.bytes == 4) gather_as<uint32_t>(layout, shape, first, count, address_0, sign, to);
}

// A in registers: with g = lane / 4 and t = lane % 4, rows g and g + 8 take turns, then 16 more
// bytes of k; a register has bytes 4t to 4t + 3 of them.
void gather_registers(Warp& w, const WgmmaForm& form, Factors& to) {
  const int bits = form.a.bits, each = 32 / bits;
  const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1, sign = form.negate_a ? 1u << (bits - 1) : 0;
  to.resize(kWarpRows, form.k);
  for (size_t r = 0; r < form.a_slots.size(); ++r) {
    const uint32_t* registers = w.at<uint32_t>(form.a_slots[r]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane / 4 + int(r % 2) * 8, k = int(r / 2) * 4 * each + lane % 4 * each;
      for (int e = 0; e < each; ++e) to.code(row, k + e) = (registers[lane] >> (e * bits) & mask) ^ sign;
    }
  }
}

// ---- the sums ----

// The pitch of the sums: floats from one row to the next.
int pitch_of(const WgmmaForm& form) {
  return (form.n + Factors::kSide - 1) / Factors::kSide * Factors::kSide;
}

// A lane's registers of D come in pairs of f32, or are pairs of f16: two neighbours of a row. With
// g = lane / 4 and t = lane % 4, pair number i is columns 8 * (i / 2) + 2t and the next of row g,
// for odd i of row g +
// 8. This is where pair i of lane 4g starts.
float* pairs_at(float* sums, const WgmmaForm& form, int pair, int g) {
  return sums + (g + pair % 2 * 8) * pitch_of(form) + pair / 2 * 8;
}

using Four [[gnu::vector_size(16)]] = float;  // lanes 4g to 4g + 3
Four four_at(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}
void put_four(float* to, Four four) { std::memcpy(to, &four, sizeof four); }

void read_accumulators(Warp& w, const WgmmaForm& form, float* sums) {
  for (int pair = 0; pair < form.n / 4; ++pair) {
    const size_t at = size_t(form.cut.to_half ? pair : 2 * pair);
    const auto* halves = w.at<uint16_t>(form.d_slots[at]);
    const float* first = w.at<float>(form.d_slots[at]);
    const float* second = form.cut.to_half ? nullptr : w.at<float>(form.d_slots[at + 1]);
    for (int g = 0; g < 8; ++g) {
      float* to = pairs_at(sums, form, pair, g);
      if (form.cut.to_half) {
        for (int i = 0; i < 8; ++i) to[i] = half_to_float(halves[8 * g + i]);
      } else {
        const Four x = four_at(first + 4 * g), y = four_at(second + 4 * g);
        put_four(to, __builtin_shufflevector(x, y, 0, 4, 1, 5));
        put_four(to + 4, __builtin_shufflevector(x, y, 2, 6, 3, 7));
      }
    }
  }
}

void write_accumulators(Warp& w, const WgmmaForm& form, float* sums) {
  for (int pair = 0; pair < form.n / 4; ++pair) {
    const size_t at = size_t(form.cut.to_half ? pair : 2 * pair);
    auto* halves = w.at<uint16_t>(form.d_slots[at]);
    float* first = w.at<float>(form.d_slots[at]);
    float* second = form.cut.to_half ? nullptr : w.at<float>(form.d_slots[at + 1]);
    for (int g = 0; g < 8; ++g) {
      const float* from = pairs_at(sums, form, pair, g);
      if (form.cut.to_half) {
        for (int i = 0; i < 8; ++i) halves[8 * g + i] = float_to_half(from[i]);
      } else {
        const Four x = four_at(from), y = four_at(from + 4);
        put_four(first + 4 * g, __builtin_shufflevector(x, y, 0, 2, 4, 6));
        put_four(second + 4 * g, __builtin_shufflevector(x, y, 1, 3, 5, 7));
      }
    }
  }
}

}  // namespace

void multiply(WgmmaState& state, const WgmmaOperation& operation, int first_part, int parts) {
  const WgmmaForm& form = form_of(*operation.instr);
  SharedMemory& shared = state.of[0].warp->block->shared;
  thread_local Factors a, b;
  thread_local std::vector<float> sums;
  gather(operation.b, form.b_shape, 0, form.n, shared, form.negate_b, b);
  b.decode(form.b);
  for (int part = first_part; part < first_part + parts; ++part) {
    Warp& w = *state.of[part].warp;
    if (form.a_in_registers) {
      gather_registers(w, form, a);
    } else {
      gather(operation.a, form.a_shape, part * kWarpRows, kWarpRows, shared, form.negate_a, a);
    }
    a.decode(form.a);
    sums.resize(size_t(kWarpRows * pitch_of(form)));
    if (operation.accumulates) {
      read_accumulators(w, form, sums.data());
    } else {
      std::fill(sums.begin(), sums.end(), 0.0f);
    }
    fused_sums(a, b, sums.data(), pitch_of(form), form.cut);
    write_accumulators(w, form, sums.data());
  }
}

}  // namespace gg::emu
