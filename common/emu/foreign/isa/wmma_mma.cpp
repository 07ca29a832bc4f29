// SPDX-License-Identifier: MIT
//
// wmma.mma: D = A * B + C of fragments. PTX ISA: "Warp-level Matrix Multiply-and-Accumulate
// Instruction: wmma.mma". Sums are those of the instructions that ptxas makes of it for sm_90a:
// products of f16 and bf16 are one HMMA.16816 for 16 k, those of tf32 two HMMA.1684 for 4 k each,
// in order. f16 results of f32 accumulators are rounded once, at the end. Products of f64 are added
// in order of k, each with one rounding, which we have not measured.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/emu/core/units/fused_sum.h"
#include "common/emu/core/units/warp_matrix.h"
#include "common/emu/foreign/isa/foreign_forms.h"
#include "common/emu/foreign/units/wmma_fragment.h"

namespace gg::emu {
namespace {

constexpr int kTall = 32, kShort = 16;  // lines of the first factor and of the second, at most

enum class BitProduct : uint8_t { none, both, different };  // of b1: and, xor

struct WmmaProduct {
  WmmaShape shape;
  WmmaFragment first, second, sums;  // the first factor is A, or B where the shape is transposed
  Narrow format;
  bool is_signed = false, saturates = false, c_half = false, d_half = false;
  BitProduct bits = BitProduct::none;
  const uint32_t *d_slots = nullptr, *first_slots = nullptr, *second_slots = nullptr, *c_slots = nullptr;
};

// use(line, index within the line, lane, element of the run) for all that a place has.
template <class Use>
void each_element(const WmmaFragment& f, const WmmaFragment::Place& place, Use use) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int e = 0; e < f.run; ++e) use(place.across + lane / 4, place.along + lane % 4 * f.run + e, lane, e);
  }
}

// ---- floating point: as mma.sync has it ----

constexpr int kStep = 4;  // k of one instruction of tf32

void unpack(Warp& w, const WmmaProduct& form, const WmmaFragment& f, const uint32_t* slots,
            Factors (&steps)[2][2]) {
  const bool two = form.format.bits == 32;
  const int depth = two ? kStep : f.length;
  const uint32_t mask = f.bits == 32 ? ~0u : (1u << f.bits) - 1;
  for (int i = 0; i <= two; ++i) steps[i][0].resize(f.lines, depth);
  for (size_t p = 0; p < f.places.size(); ++p) {
    const uint32_t* registers = w.at<uint32_t>(slots[p]);
    each_element(f, f.places[p], [&](int line, int k, int lane, int e) {
      steps[k / depth][0].code(line, k % depth) = registers[lane] >> (e * f.bits) & mask;
    });
  }
  for (int i = 0; i <= two; ++i) steps[i][0].decode(form.format);
}

Next multiply_floats(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  const WmmaProduct& form = *static_cast<const WmmaProduct*>(in.extra);
  // By step; mma_sync_sums looks at one of each here.
  thread_local Factors first[2][2], second[2][2];
  unpack(w, form, form.first, form.first_slots, first);
  unpack(w, form, form.second, form.second_slots, second);
  alignas(64) float sums[kShort][kTall];
  const auto each_sum = [&](bool half, const uint32_t* slots, auto use) {
    for (size_t p = 0; p < form.sums.places.size(); ++p) {
      each_element(form.sums, form.sums.places[p], [&](int line, int at, int lane, int e) {
        use(sums[at][line], w.at<uint8_t>(slots[half ? p : 2 * p + size_t(e)]), half ? 2 * lane + e : lane);
      });
    }
  };
  each_sum(form.c_half, form.c_slots, [&](float& sum, const uint8_t* from, int at) {
    sum = form.c_half ? half_to_float(reinterpret_cast<const uint16_t*>(from)[at])
                      : reinterpret_cast<const float*>(from)[at];
  });
  const int steps = form.format.bits == 32 ? 2 : 1;
  for (int i = 0; i < steps; ++i)
    mma_sync_sums(second[i], first[i], &sums[0][0], kTall, form.c_half && form.d_half);
  each_sum(form.d_half, form.d_slots, [&](const float& sum, uint8_t* to, int at) {
    if (form.d_half)
      reinterpret_cast<uint16_t*>(to)[at] = float_to_half(sum);
    else
      reinterpret_cast<float*>(to)[at] = sum;
  });
  product_issued(w, in);
  counts_of(in).multiply_adds += uint64_t(form.shape.m * form.shape.n * form.shape.k);
  return Next::go_on;
}

// ---- integers, bits and f64 ----

template <class T>
void unpack_whole(Warp& w, const WmmaProduct& form, const WmmaFragment& f, const uint32_t* slots,
                  std::vector<T>& values) {
  values.resize(size_t(f.lines * f.length));
  for (size_t p = 0; p < f.places.size(); ++p) {
    each_element(f, f.places[p], [&](int line, int k, int lane, int e) {
      T& value = values[size_t(line * f.length + k)];
      if constexpr (sizeof(T) == 8) {
        value = w.at<double>(slots[p])[lane];
      } else {
        const uint32_t above = w.at<uint32_t>(slots[p])[lane] << (32 - f.bits * (e + 1));
        value = form.is_signed ? int32_t(above) >> (32 - f.bits) : int32_t(above >> (32 - f.bits));
      }
    });
  }
}

int32_t as_s32(int64_t sum, bool saturates) {
  if (!saturates) return int32_t(uint32_t(sum));
  return int32_t(
      std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

int32_t whole_sum(const WmmaProduct& form, const int32_t* a, const int32_t* b, int32_t c) {
  int64_t sum = c;
  for (int k = 0; k < form.shape.k; ++k) {
    sum += form.bits == BitProduct::none   ? int64_t(a[k]) * b[k]
           : form.bits == BitProduct::both ? a[k] & b[k]
                                           : a[k] ^ b[k];
  }
  return as_s32(sum, form.saturates);
}
double whole_sum(const WmmaProduct& form, const double* a, const double* b, double c) {
  for (int k = 0; k < form.shape.k; ++k) c = std::fma(a[k], b[k], c);
  return c;
}

template <class T>
Next multiply_whole(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  const WmmaProduct& form = *static_cast<const WmmaProduct*>(in.extra);
  thread_local std::vector<T> first, second, sums;
  unpack_whole(w, form, form.first, form.first_slots, first);
  unpack_whole(w, form, form.second, form.second_slots, second);
  const size_t depth = size_t(form.shape.k);
  sums.clear();
  for (size_t p = 0; p < form.sums.places.size(); ++p) {
    each_element(form.sums, form.sums.places[p], [&](int line, int at, int lane, int e) {
      sums.push_back(whole_sum(form, &first[size_t(line) * depth], &second[size_t(at) * depth],
                               w.at<T>(form.c_slots[2 * p + size_t(e)])[lane]));
    });
  }
  size_t next = 0;  // D may have C's registers: they are written when all sums are made
  for (size_t p = 0; p < form.sums.places.size(); ++p) {
    each_element(form.sums, form.sums.places[p], [&](int, int, int lane, int e) {
      w.at<T>(form.d_slots[2 * p + size_t(e)])[lane] = sums[next++];
    });
  }
  product_issued(w, in);
  counts_of(in).multiply_adds += uint64_t(form.shape.m * form.shape.n * form.shape.k);
  return Next::go_on;
}

// ---- decoding ----

struct Types {
  std::string d, a, b, c;
};

// Products of f16 name D and C alone, all others D, A, B and C.
Types take_types(Decoder& d) {
  const std::vector<std::string> names = take_wmma_types(d);
  if (names.size() == 2) return {names[0], "f16", "f16", names[1]};
  if (names.size() != 4) throw Unsupported{"a wmma.mma with " + std::to_string(names.size()) + " types"};
  return {names[0], names[1], names[2], names[3]};
}

bool fit_together(const Types& t) {
  if (t.a != t.b) return false;
  if (t.a == "f16") return (t.d == "f16" || t.d == "f32") && (t.c == "f16" || t.c == "f32");
  const bool real = t.a == "bf16" || t.a == "tf32";
  return t.d == t.c && t.d == (real ? "f32" : t.a == "f64" ? "f64" : "s32");
}

}  // namespace

void decode_wmma_mma(Decoder& d) {
  WmmaProduct form;
  const int bits = d.take_one({"and", "xor"});
  if (bits >= 0 && !d.take("popc")) throw Unsupported{"a product of bits without .popc"};
  if (bits >= 0) form.bits = bits == 0 ? BitProduct::both : BitProduct::different;
  take_sync_aligned(d);
  // Layouts change no result: a fragment has the same elements whatever its matrix's layout was.
  const int a_layout = d.take_one({"row", "col"}), b_layout = d.take_one({"col", "row"});
  if (a_layout < 0 || b_layout < 0) throw Unsupported{"a wmma.mma without the layouts of A and B"};
  form.shape = take_wmma_shape(d);
  const Types types = take_types(d);
  const bool whole = types.d == "s32";
  form.saturates = whole && d.take("satfinite");
  if (types.a == "f64") d.take("rn");
  d.done();
  require_operands(d, 4);
  if (!fit_together(types) || (types.a == "b1") != (form.bits != BitProduct::none))
    throw Unsupported{"these types of wmma.mma"};
  const WmmaFragment a = wmma_fragment(form.shape, 'a', types.a), b = wmma_fragment(form.shape, 'b', types.b);
  const WmmaFragment c = wmma_fragment(form.shape, 'c', types.c),
                     to = wmma_fragment(form.shape, 'c', types.d);
  form.first = form.shape.transposed() ? b : a;
  form.second = form.shape.transposed() ? a : b;
  form.sums = c;
  form.is_signed = types.a[0] == 's';
  form.c_half = types.c == "f16";
  form.d_half = types.d == "f16";
  std::vector<uint32_t> slots;
  take_registers(d, d.operand(0), to.all_registers(), true, slots, to.register_type);
  take_registers(d, d.operand(1), a.all_registers(), false, slots, a.register_type);
  take_registers(d, d.operand(2), b.all_registers(), false, slots, b.register_type);
  take_registers(d, d.operand(3), c.all_registers(), false, slots, c.register_type);
  form.d_slots = d.list(slots);
  const uint32_t* a_slots = form.d_slots + to.all_registers();
  const uint32_t* b_slots = a_slots + a.all_registers();
  form.first_slots = form.shape.transposed() ? b_slots : a_slots;
  form.second_slots = form.shape.transposed() ? a_slots : b_slots;
  form.c_slots = b_slots + b.all_registers();
  if (!whole && types.a != "f64") form.format = narrow(types.a);
  d.extra(form);
  d.instr.run = whole ? multiply_whole<int32_t> : types.a == "f64" ? multiply_whole<double> : multiply_floats;
}

}  // namespace gg::emu
