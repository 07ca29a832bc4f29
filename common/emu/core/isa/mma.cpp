// SPDX-License-Identifier: MIT
//
// mma.sync, and movmatrix, which transposes a matrix in registers. PTX ISA: "Matrix
// multiply-accumulate operation using mma instruction", "Warp-level matrix transpose instruction:
// movmatrix". Sums are those of the hardware, see units/fused_sum.h.

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/fused_sum.h"
#include "common/emu/core/units/warp_matrix.h"

namespace gg::emu {
namespace {

// The one 8x8 matrix that the lanes hold, transposed.
Next movmatrix(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  const uint32_t* s = w.at<uint32_t>(in.s[0]);
  Matrix matrix;
  for (int lane = 0; lane < kLanes; ++lane) {
    element_of(matrix, lane, 0, false) = uint16_t(s[lane]);
    element_of(matrix, lane, 1, false) = uint16_t(s[lane] >> 16);
  }
  uint32_t* d = w.at<uint32_t>(in.d);
  for (int lane = 0; lane < kLanes; ++lane) d[lane] = pack(matrix, lane, true);
  return Next::go_on;
}
void decode_movmatrix(Decoder& d) {
  take_sync_aligned(d);
  const bool known = d.take("m8n8") && d.take("trans") && d.take("b16");
  d.done();
  require_operands(d, 2);
  if (!known) throw Unsupported{"a movmatrix other than .m8n8.trans.b16"};
  d.instr.d = d.destination(0, type_info("b32"));
  d.instr.s[0] = d.source(1, type_info("b32"));
  d.instr.run = movmatrix;
}

struct MmaForm {
  int k = 0;
  Narrow a, b;
  bool half = false;  // C and D are f16, two to a register, else f32
  int a_registers = 0, b_registers = 0;
  const uint32_t *d_slots = nullptr, *a_slots = nullptr, *b_slots = nullptr, *c_slots = nullptr;
};

// With g = lane / 4 and t = lane % 4, a lane holds of A rows g and g + 8, of B column g. A register
// holds neighbours along k, four lanes side by side; A's registers alternate between the two rows,
// then step along k.
void unpack(Warp& w, const MmaForm& form, Factors (&a)[2], Factors (&b)[2]) {
  const int each = 32 / form.a.bits, bits = form.a.bits, steps = bits == 8 ? 2 : 1;
  const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
  for (int i = 0; i < steps; ++i) {
    a[i].resize(16, form.k / steps);
    b[i].resize(8, form.k / steps);
  }
  const auto spread = [&](const uint32_t* registers, Factors(&to)[2], int first_line, int first_k) {
    for (int e = 0; e < each; ++e) {
      for (int t = 0; t < 4; ++t) {
        const Step step = mma_sync_step(form.a, first_k + t * each + e);
        uint32_t* codes = &to[step.index].code(first_line, step.k);  // eight lines are side by side
        for (int g = 0; g < 8; ++g) codes[g] = registers[g * 4 + t] >> (e * bits) & mask;
      }
    }
  };
  for (int r = 0; r < form.a_registers; ++r)
    spread(w.at<uint32_t>(form.a_slots[r]), a, r % 2 * 8, r / 2 * 4 * each);
  for (int r = 0; r < form.b_registers; ++r) spread(w.at<uint32_t>(form.b_slots[r]), b, 0, r * 4 * each);
  for (int i = 0; i < steps; ++i) {
    a[i].decode(form.a);
    b[i].decode(form.b);
  }
}

// D[16,8] = A[16,k] * B[k,8] + C[16,8]. Of C and D a lane holds columns 2t and 2t + 1 of row g,
// then of row g + 8.
Next mma(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  const MmaForm& form = *static_cast<const MmaForm*>(in.extra);
  thread_local Factors a[2], b[2];
  unpack(w, form, a, b);
  alignas(64) float sums[8][Factors::kSide];  // transposed: A's 16 rows make the longer vectors
  for (int i = 0; i < 2; ++i) {               // rows g, rows g + 8
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane / 4 + 8 * i, column = 2 * (lane % 4);
      if (form.half) {
        const uint32_t pair = w.at<uint32_t>(form.c_slots[i])[lane];
        sums[column][row] = half_to_float(uint16_t(pair));
        sums[column + 1][row] = half_to_float(uint16_t(pair >> 16));
      } else {
        sums[column][row] = w.at<float>(form.c_slots[2 * i])[lane];
        sums[column + 1][row] = w.at<float>(form.c_slots[2 * i + 1])[lane];
      }
    }
  }
  mma_sync_sums(b, a, &sums[0][0], Factors::kSide, form.half);
  for (int i = 0; i < 2; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane / 4 + 8 * i, column = 2 * (lane % 4);
      if (form.half) {
        w.at<uint32_t>(form.d_slots[i])[lane] =
            uint32_t(float_to_half(sums[column + 1][row])) << 16 | float_to_half(sums[column][row]);
      } else {
        w.at<float>(form.d_slots[2 * i])[lane] = sums[column][row];
        w.at<float>(form.d_slots[2 * i + 1])[lane] = sums[column + 1][row];
      }
    }
  }
  product_issued(w, in);
  counts_of(in).multiply_adds += uint64_t(16 * 8 * form.k);
  return Next::go_on;
}

// Throws if the types do not have this shape; types of A and B may differ only if both have 8 bits.
void require_known(const std::string& a, const std::string& b, int k, bool half) {
  const int bits = narrow(a).bits;
  const bool shape = bits == 32 ? k == 4 || k == 8 : bits == 16 ? k == 8 || k == 16 : k == 16 || k == 32;
  const bool types = a == b || (bits == 8 && narrow(b).bits == 8);
  const bool accumulator = !half || a == "f16" || bits == 8;
  if (!shape || !types || !accumulator) throw Unsupported{"these types in this shape"};
}

void decode_mma(Decoder& d) {
  take_sync_aligned(d);
  const int shape = d.take_one({"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32"});
  if (shape < 0 || !d.take("row") || !d.take("col")) throw Unsupported{"this shape or layout of mma"};
  const TypeInfo to = d.take_type(), a = d.take_type(), b = d.take_type(), c = d.take_type();
  d.done();
  require_operands(d, 4);
  MmaForm form;
  form.k = 4 << shape;
  form.half = to.name == "f16";
  if (to.name != c.name || (!form.half && to.name != "f32")) throw Unsupported{"these types of C and D"};
  try {
    require_known(a.name, b.name, form.k, form.half);
  } catch (const std::invalid_argument& unknown) {
    throw Unsupported{unknown.what()};
  }
  form.a = narrow(a.name);
  form.b = narrow(b.name);
  form.b_registers = form.k * form.a.bits / (4 * 32);
  form.a_registers = 2 * form.b_registers;
  const int accumulators = form.half ? 2 : 4;
  const char* type = form.half ? "b32" : "f32";
  std::vector<uint32_t> slots;
  take_registers(d, d.operand(0), accumulators, true, slots, type);
  take_registers(d, d.operand(1), form.a_registers, false, slots);
  take_registers(d, d.operand(2), form.b_registers, false, slots);
  take_registers(d, d.operand(3), accumulators, false, slots, type);
  form.d_slots = d.list(slots);
  form.a_slots = form.d_slots + accumulators;
  form.b_slots = form.a_slots + form.a_registers;
  form.c_slots = form.b_slots + form.b_registers;
  d.extra(form);
  d.instr.run = mma;
}

}  // namespace

std::vector<Form> mma_forms() {
  return {{"movmatrix", decode_movmatrix, Family::ldmatrix}, {"mma", decode_mma, Family::mma}};
}

}  // namespace gg::emu
