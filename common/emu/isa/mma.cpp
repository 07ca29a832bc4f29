// SPDX-License-Identifier: MIT
//
// Matrices of a warp: ldmatrix, stmatrix, movmatrix and mma.sync. PTX ISA: "Warp-level matrix load
// instruction: ldmatrix", "Warp-level matrix store instruction: stmatrix", "Warp-level matrix transpose
// instruction: movmatrix", "Matrix multiply-accumulate operation using mma instruction". Sums are those of
// the hardware, see arithmetic.h.

#include "common/emu/isa/arithmetic.h"
#include "common/emu/state/access.h"

namespace gg::emu {
namespace {

using Matrix = uint16_t[8][8];

// Element `half` (0 or 1) of lane l's register: of row l / 4, columns 2 * (l % 4) and the next; transposed,
// of column l / 4.
uint16_t& element_of(Matrix& matrix, int lane, int half, bool transposed) {
  const int major = lane / 4, minor = 2 * (lane % 4) + half;
  return transposed ? matrix[minor][major] : matrix[major][minor];
}

uint32_t pack(Matrix& matrix, int lane, bool transposed) {
  return uint32_t(element_of(matrix, lane, 1, transposed)) << 16 | element_of(matrix, lane, 0, transposed);
}

void require_warp(Warp& w, const Instr& in, Mask m) {
  if (m == kAllLanes) return;
  raise_final(
      FaultKind::diverged, w, in, __builtin_ctz(~m),
      "lanes " + hex(m) + " execute an instruction that takes all 32 lanes of a warp",
      "the number of threads in a block must be a multiple of 32 here, and none of them may have ended");
}

// The rows' addresses: lane 8 * i + r gives that of row r of matrix i. Returns the lanes that give one.
Mask row_addresses(Warp& w, const Instr& in, uint64_t (&address)[kLanes]) {
  addresses(w, in, address);
  const Mask givers = in.count == 4 ? kAllLanes : (Mask(1) << (8 * in.count)) - 1;
  if (in.space != Space::generic) return givers;
  for (Lanes l(givers); l; ++l) {
    const Place place = locate(w, in, *l, in.space, address[*l], 16, 16);
    if (place.block == w.block) continue;
    raise_final(FaultKind::bounds, w, in, *l,
                "generic address " + hex(address[*l]) + " is not in the block's shared memory",
                "matrices are loaded from and stored to the own block's shared memory only");
  }
  return givers;
}

Next ldmatrix(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  uint64_t address[kLanes];
  const Mask givers = row_addresses(w, in, address);
  Matrix matrices[4];
  read_memory(w, in, givers, address, 16, reinterpret_cast<uint8_t*>(matrices), 16);
  for (int i = 0; i < in.count; ++i) {
    uint32_t* d = w.at<uint32_t>(in.list[i]);
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = pack(matrices[i], lane, in.variant);
  }
  return Next::go_on;
}

Next stmatrix(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  uint64_t address[kLanes];
  const Mask givers = row_addresses(w, in, address);
  Matrix matrices[4];
  for (int i = 0; i < in.count; ++i) {
    const uint32_t* s = w.at<uint32_t>(in.list[i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      element_of(matrices[i], lane, 0, in.variant) = uint16_t(s[lane]);
      element_of(matrices[i], lane, 1, in.variant) = uint16_t(s[lane] >> 16);
    }
  }
  write_memory(w, in, givers, address, 16, reinterpret_cast<const uint8_t*>(matrices), 16);
  return Next::go_on;
}

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

void take_sync_aligned(Decoder& d) {
  if (!d.take("sync") || !d.take("aligned")) throw Unsupported{"a matrix instruction without .sync.aligned"};
  d.instr.converged = true;
}

// What ldmatrix and stmatrix share: everything but the order of operands.
void take_matrices(Decoder& d) {
  take_sync_aligned(d);
  const bool shape = d.take("m8n8");
  const int count = d.take_one({"x1", "x2", "x4"});
  d.instr.variant = d.take("trans");
  d.instr.space = d.take("shared") || d.take("shared::cta") ? Space::shared : Space::generic;
  const TypeInfo type = d.take_type();
  d.done();
  if (!shape || count < 0 || type.name != "b16") throw Unsupported{"matrices other than m8n8 of .b16"};
  d.instr.count = uint16_t(1 << count);
}

// The slots of `count` 32-bit registers, appended.
void take_registers(Decoder& d, const Operand& operand, int count, bool written, std::vector<uint32_t>& slots,
                    const char* type = "b32") {
  const std::vector<const Operand*> all = Decoder::elements(operand);
  if (int(all.size()) != count) {
    throw Unsupported{std::to_string(all.size()) + " registers where " + std::to_string(count) + " belong"};
  }
  for (const Operand* each : all) {
    slots.push_back(written ? d.destination(*each, type_info(type)) : d.source(*each, type_info(type)));
  }
}

void require_operands(Decoder& d, size_t count) {
  if (d.operands() != count)
    throw Unsupported{std::to_string(d.operands()) + " operands where " + std::to_string(count) + " belong"};
}

void decode_ldmatrix(Decoder& d) {
  take_matrices(d);
  require_operands(d, 2);
  std::vector<uint32_t> slots;
  take_registers(d, d.operand(0), d.instr.count, true, slots);
  d.instr.list = d.list(slots);
  take_address(d, d.operand(1));
  d.instr.run = ldmatrix;
}

void decode_stmatrix(Decoder& d) {
  take_matrices(d);
  require_operands(d, 2);
  std::vector<uint32_t> slots;
  take_address(d, d.operand(0));
  take_registers(d, d.operand(1), d.instr.count, false, slots);
  d.instr.list = d.list(slots);
  d.instr.run = stmatrix;
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

// With g = lane / 4 and t = lane % 4, a lane holds of A rows g and g + 8, of B column g. A register holds
// neighbours along k, four lanes side by side; A's registers alternate between the two rows, then step along
// k.
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

// D[16,8] = A[16,k] * B[k,8] + C[16,8]. Of C and D a lane holds columns 2t and 2t + 1 of row g, then of row g
// + 8.
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
  counts_of(in).multiply_adds += uint64_t(16 * 8 * form.k);
  return Next::go_on;
}

// Which shapes a type has; types of A and B may differ only if both have 8 bits.
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
  return {{"ldmatrix", decode_ldmatrix},
          {"stmatrix", decode_stmatrix},
          {"movmatrix", decode_movmatrix},
          {"mma", decode_mma}};
}

}  // namespace gg::emu
