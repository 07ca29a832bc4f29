// SPDX-License-Identifier: MIT
//
// tcgen05.mma: the tensor core multiplies A and B and adds the product to D in tensor memory.
// PTX ISA: "TensorCore 5th Generation Family Instructions: tcgen05.mma". One thread issues it. The
// operands are announced when it is issued; the sums are made when the tensor core comes to them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/tcgen05_operands.h"

namespace gg::emu {
namespace {

struct MmaForm {
  MmaModifiers modifiers;
  AddressOperand d, a, a_scales, b_scales;
  bool a_in_tmem = false, masked = false, negated = false;
  uint32_t a_descriptor = 0, b_descriptor = 0, shape = 0, accumulates = 0;  // slots
  uint32_t masks[2 * kTmemQuarters] = {};                                   // slots
  int scale_d = 0;
};

const MmaForm& mma_form(const Instr& in) { return *static_cast<const MmaForm*>(in.extra); }

// ---- what it computes ----

// The model of microsoft/MMA-Sim, arXiv 2511.10909, for kinds f16, tf32, f8f6f4 and mxf8f6f4: 25
// fraction bits, and kZeroExponent, -133. Kinds mxf4 and mxf4nvf4: see units/block_scaled.h.
constexpr int kFractionBits = 25, kKeptBits = 24;

void add_products(const MmaOperation& o, const Factors& rows, const Factors& columns, float* sums,
                  int pitch) {
  const int bits = narrow(o.shape.a).mantissa_bits + narrow(o.shape.b).mantissa_bits;
  fused_sums(columns, rows, sums, pitch, {bits, kFractionBits, kKeptBits, o.shape.half_sums});
}
void add_products(const MmaOperation&, const PackedFactors& rows, const PackedFactors& columns, float* sums,
                  int pitch) {
  block_scaled_sums(columns, rows, sums, pitch);
}

void decode_factors(const MmaOperation&, const char* type, const std::vector<uint8_t>& scales,
                    Factors& factors) {
  factors.decode(narrow(type));
  if (!scales.empty()) factors.scale(scales.data());
}
void decode_factors(const MmaOperation& o, const char*, const std::vector<uint8_t>& scales,
                    PackedFactors& factors) {
  for (int line = 0; line < factors.lines(); ++line) {
    for (int g = 0; g < kPackedGroups; ++g) factors.scale(line, g) = scales[size_t(line * kPackedGroups + g)];
  }
  factors.decode(o.shape.ue4m3_scales);
}

// D of one block and one part of B, as floats: column by column, `pitch` lanes each.
struct Sums {
  float* first = nullptr;
  int pitch = 0;
};

bool in_place(const MmaOperation& o, int block) {
  const Mask* disabled = &o.disabled[size_t(block) * kTmemQuarters];
  return !o.shape.half_sums && !o.sixteen_of_32() &&
         std::all_of(disabled, disabled + kTmemQuarters, [](Mask m) { return m == 0; });
}

// f16 sums lie in the lower half of a column.
float read_cell(const uint32_t* cell, bool half) {
  if (half) return half_to_float(uint16_t(*cell));
  return std::bit_cast<float>(*cell);
}
void write_cell(uint32_t* cell, float value, bool half) {
  *cell = half ? (*cell & 0xFFFF0000u) | float_to_half(value) : std::bit_cast<uint32_t>(value);
}

Sums copied_sums(const MmaOperation& o, int block, int part, std::vector<float>& copy) {
  const int pitch = (o.rows() + Factors::kSide - 1) / Factors::kSide * Factors::kSide;
  copy.assign(size_t(pitch * o.columns()), 0.0f);
  Tmem& tmem = tmem_of(*o.blocks[size_t(block)]);
  for (int column = 0; o.accumulates && column < o.columns(); ++column) {
    const uint32_t* cells = tmem.at<uint32_t>(o.column_of(part) + column);
    for (int row = 0; row < o.rows(); ++row)
      copy[size_t(column * pitch + row)] = read_cell(cells + o.lane_of(row, part), o.shape.half_sums);
  }
  return {copy.data(), pitch};
}

void put_back(const MmaOperation& o, int block, int part, const Sums& sums) {
  Tmem& tmem = tmem_of(*o.blocks[size_t(block)]);
  for (int column = 0; column < o.columns(); ++column) {
    uint32_t* cells = tmem.at<uint32_t>(o.column_of(part) + column);
    for (int row = 0; row < o.rows(); ++row) {
      const int lane = o.lane_of(row, part), word = block * kTmemQuarters + lane / kLanes;
      if (o.disabled[size_t(word)] >> (lane % kLanes) & 1) continue;
      write_cell(cells + lane, sums.first[column * sums.pitch + row], o.shape.half_sums);
    }
  }
}

// PTX says no more of scale-d than that D is multiplied by 2^-scale_d; here that product is rounded
// to the nearest f32 where it is subnormal, which nobody has measured.
void prepare(const MmaOperation& o, const Sums& sums) {
  const float scale = std::ldexp(1.0f, -o.scale_d);
  for (int column = 0; column < o.columns(); ++column) {
    float* lanes = sums.first + column * sums.pitch;
    if (!o.accumulates) {
      std::fill(lanes, lanes + o.rows(), 0.0f);
    } else if (o.scale_d) {
      for (int row = 0; row < o.rows(); ++row) lanes[row] *= scale;
    }
  }
}

template <class Kind>
void add_part(const MmaOperation& o, int block, int part, const Kind& rows, const Kind& columns) {
  thread_local std::vector<float> copy;
  const bool direct = in_place(o, block);
  Sums sums;
  if (direct) {
    Tmem& tmem = tmem_of(*o.blocks[size_t(block)]);
    sums = {tmem.at<float>(o.column_of(part)) + o.lane_of(0, part), kTmemLanes};
  } else {
    sums = copied_sums(o, block, part, copy);
  }
  prepare(o, sums);
  add_products(o, rows, columns, sums.first, sums.pitch);
  if (!direct) put_back(o, block, part, sums);
}

void report(const TensorIssue& issue, const MmaOperation& o, const ScaleClash& clash) {
  if (!clash.found) return;
  const std::string block = o.blocks.size() == 1
                                ? std::string()
                                : " of rank " + std::to_string(o.blocks[size_t(clash.block)]->rank);
  raise_final(FaultKind::tcgen05, *issue.warp, *issue.instr, issue.lane,
              std::string("the scales of ") + (clash.of_a ? "A, row " : "B, column ") +
                  std::to_string(clash.line) + ", are " + hex(clash.values[0]) + " in lane " +
                  std::to_string(clash.lanes[0]) + " and " + hex(clash.values[1]) + " in lane " +
                  std::to_string(clash.lanes[1]) + " of column " + std::to_string(clash.column) +
                  " of tensor memory" + block,
              "every quarter of the lanes wants its own copy of the scales: tcgen05.cp with "
              ".32x128b.warpx4 makes all four");
}

// Kind: Factors, or PackedFactors for the kinds of packed fp4.
template <class Kind>
void multiply(const TensorIssue& issue, const MmaOperation& o) {
  thread_local Kind rows, columns[2];
  thread_local std::vector<uint8_t> scales;
  const bool scaled = is_block_scaled(o.modifiers.kind);
  ScaleClash clash;
  scales.clear();
  for (int part = 0; part < o.parts(); ++part) gather_b(o, part, columns[part]);
  for (int block = 0; block < o.parts(); ++block) {
    for (int part = 0; part < o.parts(); ++part) {
      if (part == 0 || (o.a_in_tmem && o.two_by_two())) {
        gather_a(o, block, part, rows);
        if (scaled) scales_of_a(o, block, scales, clash);
        decode_factors(o, o.shape.a, scales, rows);
      }
      if (scaled) scales_of_b(o, block, part, scales, clash);
      if (scaled || block == 0) decode_factors(o, o.shape.b, scales, columns[part]);
      report(issue, o, clash);
      add_part(o, block, part, rows, columns[part]);
    }
  }
}

// ---- what it announces ----

// The runs of bytes that an operand has in a block's shared memory, the same in both of a pair.
struct Footprint {
  std::string problem, outside;
  std::vector<ByteRun> runs;
};

Footprint footprint_of(uint64_t descriptor, const Tcgen05Operand& operand, int unit_bytes,
                       size_t shared_bytes) {
  const Tcgen05Layout layout(descriptor, operand);
  Footprint footprint;
  footprint.problem = layout.problem();
  std::vector<size_t> offsets;
  layout.units(0, operand.lines, [&](uint32_t address, int line, int k) {
    const int64_t at = int64_t(address) - kSharedStart;
    if (at >= 0 && size_t(at) + kTcgen05UnitBytes <= shared_bytes) {
      offsets.push_back(size_t(at));
    } else if (footprint.outside.empty()) {
      footprint.outside =
          std::to_string(line) + ", k " + std::to_string(k) + " is at shared address " + hex(address);
    }
  });
  std::sort(offsets.begin(), offsets.end());
  for (const size_t at : offsets) {
    if (!footprint.runs.empty() && footprint.runs.back().offset + footprint.runs.back().bytes >= at) {
      footprint.runs.back().bytes = at + size_t(unit_bytes) - footprint.runs.back().offset;
    } else {
      footprint.runs.push_back({at, size_t(unit_bytes)});
    }
  }
  return footprint;
}

// A kernel uses the same few descriptors again and again.
const Footprint& known_footprint(uint64_t descriptor, const Tcgen05Operand& operand, int unit_bytes,
                                 size_t shared_bytes) {
  using Key = std::tuple<uint64_t, int, int, int, bool, int, size_t>;
  thread_local std::map<Key, Footprint> known;
  constexpr size_t kMost = 4096;
  if (known.size() > kMost) known.clear();
  const auto [at, is_new] = known.try_emplace(
      {descriptor, operand.lines, operand.k, operand.bits, operand.line_major, unit_bytes, shared_bytes});
  if (is_new) at->second = footprint_of(descriptor, operand, unit_bytes, shared_bytes);
  return at->second;
}

void announce_shared(const TensorIssue& issue, const MmaOperation& o, bool of_a) {
  const uint64_t descriptor = of_a ? o.a : o.b;
  const Tcgen05Operand operand = of_a ? shared_a(o) : shared_b(o);
  const size_t shared_bytes = issue.warp->block->shared.bytes.size();
  const Footprint& footprint =
      known_footprint(descriptor, operand, bytes_of_unit(o, of_a ? o.shape.a : o.shape.b), shared_bytes);
  const std::string name = of_a ? "A" : "B";
  if (!footprint.problem.empty()) {
    raise(
        FaultKind::descriptor, *issue.warp, *issue.instr, issue.lane,
        "the descriptor of " + name + ", " + hex(descriptor) + ", " + footprint.problem,
        "start address, byte offsets, base offset and swizzle mode are in units, and at bits, of their own");
  }
  if (!footprint.outside.empty()) {
    raise_final(FaultKind::bounds, *issue.warp, *issue.instr, issue.lane,
                name + (of_a ? ", row " : ", column ") + footprint.outside + "; the block has " +
                    std::to_string(shared_bytes) + " bytes from " + hex(uint64_t(kSharedStart)),
                "a wrong start address or byte offset in the descriptor " + hex(descriptor));
  }
  for (Block* block : o.blocks) reads_shared(issue, *block, footprint.runs);
  counts_of(*issue.instr).shared_bytes += o.blocks.size() * size_t(operand.lines * operand.line_bytes());
}

void announce(const TensorIssue& issue, const MmaOperation& o) {
  note_product(*issue.core, d_region(o, 0));
  if (!o.a_in_tmem) announce_shared(issue, o, true);
  announce_shared(issue, o, false);
  for (int i = 0; i < o.parts(); ++i) {
    Block& block = *o.blocks[size_t(i)];
    if (o.a_in_tmem) reads_tmem(issue, block, a_region(o));
    if (is_block_scaled(o.modifiers.kind)) {
      reads_tmem(issue, block, a_scales_region(o));
      reads_tmem(issue, block, b_scales_region(o));
    }
    const TmemRegion d = d_region(o, i);
    if (o.accumulates) reads_tmem(issue, block, d);
    writes_tmem(issue, block, d);
  }
}

// ---- the instruction ----

[[noreturn]] void refuse(const TensorIssue& issue, const std::string& what, const std::string& cause) {
  raise_final(FaultKind::tcgen05, *issue.warp, *issue.instr, issue.lane, what, cause);
}

void check_shape(const TensorIssue& issue, const InstructionDescriptor& shape, uint32_t bits) {
  if (shape.problem().empty()) return;
  refuse(issue, "the instruction descriptor " + hex(bits) + " " + shape.problem(),
         "its fields are in the tables of \"Instruction descriptor\", and differ by kind");
}

void check_lanes(const TensorIssue& issue, const MmaOperation& o) {
  const auto check = [&](const char* name, const TmemAddress& address, bool may_be_16) {
    if (address.lane == 0 || (may_be_16 && address.lane == 16)) return;
    refuse(issue,
           std::string("the address of ") + name + " names lane " + std::to_string(address.lane) +
               " of tensor memory, and this form wants lane 0" + (may_be_16 ? " or 16" : ""),
           "lanes are in bits 16 and up of the address, columns below");
  };
  check("D", o.d, o.sixteen_of_32());
  if (o.a_in_tmem) check("A", o.a_tmem, o.sixteen_of_32());
  if (o.a_in_tmem && o.a_tmem.lane != o.d.lane)
    refuse(issue,
           "A begins in lane " + std::to_string(o.a_tmem.lane) + " of tensor memory, and D in lane " +
               std::to_string(o.d.lane),
           "rows of A lie in the lanes of the same rows of D");
  if (!is_block_scaled(o.modifiers.kind)) return;
  check("the scales of A", o.a_scales, false);
  check("the scales of B", o.b_scales, false);
}

// Faults if the operation is legal, but not known well enough to be done.
void check_supported(const TensorIssue& issue, const MmaOperation& o) {
  const auto unsupported = [&](const std::string& what) {
    raise_final(FaultKind::unsupported, *issue.warp, *issue.instr, issue.lane, what,
                "common/emu/SUPPORTED.md lists what it knows");
  };
  if (o.a_in_tmem && o.shape.a_line_major)
    refuse(issue, "A in tensor memory is MN-major by bit 15 of the instruction descriptor",
           "A in tensor memory is K-major: its rows are lanes");
  if (o.a_in_tmem && narrow(o.shape.a).bits == 6)
    unsupported("6-bit elements of A in tensor memory: sources disagree on which bits of the byte they take");
  if (is_block_scaled(o.modifiers.kind) && o.two_by_two() && o.columns() % kLanes != 0)
    unsupported("M = 128 of a pair with N = " + std::to_string(o.shape.n) +
                " and block scales: the place of the scales is known for multiples of 64 only");
}

MmaOperation operation_of(Warp& w, const TensorIssue& issue, const MmaForm& form) {
  const int lane = issue.lane;
  const auto address = [&](const AddressOperand& operand) {
    return TmemAddress(operand.slot ? uint32_t(operand.of(w, lane)) : 0);
  };
  const uint32_t bits = w.at<uint32_t>(form.shape)[lane];
  MmaOperation o{.shape = InstructionDescriptor(bits, form.modifiers),
                 .modifiers = form.modifiers,
                 .a_in_tmem = form.a_in_tmem,
                 .accumulates = (w.at<uint8_t>(form.accumulates)[lane] != 0) != form.negated,
                 .scale_d = form.scale_d,
                 .a = form.a_in_tmem ? 0 : w.at<uint64_t>(form.a_descriptor)[lane],
                 .b = w.at<uint64_t>(form.b_descriptor)[lane],
                 .d = address(form.d),
                 .a_tmem = address(form.a),
                 .a_scales = address(form.a_scales),
                 .b_scales = address(form.b_scales),
                 .blocks = issue.blocks};
  check_shape(issue, o.shape, bits);
  for (int i = 0; form.masked && i < kTmemQuarters * o.parts(); ++i)
    o.disabled[size_t(i)] = w.at<uint32_t>(form.masks[i])[lane];
  return o;
}

Next mma(Warp& w, const Instr& in, Mask m) {
  const MmaForm& form = mma_form(in);
  product_issued(w, in);
  const TensorIssue issue = begin_issue(w, in, m, form.modifiers.cta_group);
  const MmaOperation operation = operation_of(w, issue, form);
  check_lanes(issue, operation);
  check_supported(issue, operation);
  announce(issue, operation);
  for (Block* block : issue.blocks) product_into(tmem_of(*block).tmem_loads, *issue.core);
  const InstructionDescriptor& shape = operation.shape;
  counts_of(in).multiply_adds += uint64_t(shape.m) * uint64_t(shape.n) * uint64_t(shape.k);
  tcgen05_issue(issue, [issue, operation] {
    if (is_packed_fp4(operation.modifiers.kind)) {
      multiply<PackedFactors>(issue, operation);
    } else {
      multiply<Factors>(issue, operation);
    }
  });
  return Next::go_on;
}

// ---- decoding ----

MmaKind take_kind(Decoder& d) {
  const int kind = d.take_one(
      {"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"});
  if (kind < 0)
    throw Unsupported{
        "a kind of tcgen05.mma other than f16, tf32, f8f6f4, mxf8f6f4, mxf4, "
        "mxf4nvf4"};
  return MmaKind(kind);
}

// Scales of one row in one instruction. PTX ISA, "Block scaling": what may be said, and what is
// meant if nothing is.
int take_scale_vector(Decoder& d, MmaKind kind) {
  if (!is_block_scaled(kind)) return 0;
  if (!d.take("block_scale")) throw Unsupported{"this kind without .block_scale"};
  const int spelling = d.take_one({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"});
  const std::string of_kind = "this scale vector size for this kind";
  if (spelling < 0) {
    if (kind == MmaKind::mxf4nvf4) throw Unsupported{of_kind};
    return kind == MmaKind::mxf4 ? 2 : 1;
  }
  const int vector = spelling < 3 ? 1 << spelling : spelling == 3 ? 4 : kind == MmaKind::mxf8f6f4 ? 1 : 2;
  const bool legal = kind == MmaKind::mxf8f6f4 ? vector == 1
                     : kind == MmaKind::mxf4   ? vector == 2
                                               : vector == 2 || vector == 4;
  if (!legal) throw Unsupported{of_kind};
  return vector;
}

// Hints of what stays in the collector of A: they change no result. Whether the A of a `use` is the
// A of the last `fill` is not looked at.
void take_collector(Decoder& d) {
  d.take_one({"collector::a::fill", "collector::a::use", "collector::a::lastuse", "collector::a::discard"});
}

// ..., {mask}, enable-input-d {, scale-d}: from operand 4 on.
void take_plain_operands(Decoder& d, MmaForm& form) {
  size_t next = 4;
  if (next < d.operands() && d.operand(next).kind == Operand::Kind::vector) {
    const auto masks = Decoder::elements(d.operand(next++));
    if (masks.size() != size_t(kTmemQuarters * form.modifiers.cta_group))
      throw Unsupported{"a mask of lanes of another size than 4 registers for each block"};
    form.masked = true;
    for (size_t i = 0; i < masks.size(); ++i) form.masks[i] = d.source(*masks[i], type_info("b32"));
  }
  if (next >= d.operands()) throw Unsupported{"this number of operands"};
  form.accumulates = d.predicate(d.operand(next++), &form.negated);
  if (next < d.operands()) {
    const MmaKind kind = form.modifiers.kind;
    if (kind != MmaKind::f16 && kind != MmaKind::tf32) throw Unsupported{"scale-d with this kind"};
    const int64_t scale = d.immediate(next++);
    if (scale < 0 || scale > 15) throw Unsupported{"a scale-d outside 0 to 15"};
    form.scale_d = int(scale);
  }
  if (next != d.operands()) throw Unsupported{"this number of operands"};
}

// tcgen05.mma.cta_group.kind{.block_scale{.scale_vectorsize}}{.collector_usage} [d], a-desc | [a],
// b-desc, idesc, ...
void decode_tcgen05_mma(Decoder& d) {
  if (!d.take("mma")) throw Unsupported{"no tcgen05.mma"};
  for (const char* modifier : {"sp", "ws", "ashift"}) {
    if (d.take(modifier)) throw Unsupported{std::string("tcgen05.mma with .") + modifier};
  }
  if (d.statement().has("kind::i8")) throw Unsupported{"kind::i8 of tcgen05.mma"};
  MmaForm form;
  form.modifiers.cta_group = take_cta_group(d);
  form.modifiers.kind = take_kind(d);
  form.modifiers.scale_vector = take_scale_vector(d, form.modifiers.kind);
  take_collector(d);
  d.done();
  if (d.operands() < 5) throw Unsupported{"this number of operands"};
  form.d = take_tmem_operand(d, d.operand(0));
  form.a_in_tmem = d.operand(1).kind == Operand::Kind::address;
  if (form.a_in_tmem) {
    form.a = take_tmem_operand(d, d.operand(1));
  } else {
    form.a_descriptor = d.source(1, type_info("b64"));
  }
  form.b_descriptor = d.source(2, type_info("b64"));
  form.shape = d.source(3, type_info("b32"));
  if (is_block_scaled(form.modifiers.kind)) {
    if (d.operands() != 7) throw Unsupported{"this number of operands"};
    form.a_scales = take_tmem_operand(d, d.operand(4));
    form.b_scales = take_tmem_operand(d, d.operand(5));
    form.accumulates = d.predicate(d.operand(6), &form.negated);
  } else {
    take_plain_operands(d, form);
  }
  d.extra(form);
  d.instr.run = mma;
}

}  // namespace

std::vector<Form> tcgen05_mma_forms() { return {{"tcgen05", decode_tcgen05_mma, Family::tcgen05}}; }

}  // namespace gg::emu
