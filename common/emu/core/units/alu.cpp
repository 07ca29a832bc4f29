// SPDX-License-Identifier: MIT
//
// Operand lists of the arithmetic families, and what all comparisons do with their outcomes.
// PTX ISA: "Comparison and Selection Instructions".

#include "common/emu/core/units/alu.h"

namespace gg::emu {

void want_operands(const Decoder& d, size_t count, bool pair) {
  if (d.operands() != count) throw Unsupported{std::to_string(d.operands()) + " operands"};
  for (size_t i = 0; i < count; ++i) {
    const Operand& o = d.operand(i);
    if (o.second && !(pair && i == 0)) throw Unsupported{"an operand with |"};
    const bool predicate =
        o.kind == Operand::Kind::reg && d.frame().function->registers[size_t(o.reg)].type.kind == 'p';
    if (o.negated && (!predicate || i == 0)) throw Unsupported{"an operand with !"};
  }
}
TypeInfo take_type_of(Decoder& d, std::initializer_list<const char*> names) {
  const TypeInfo type = d.take_type();
  for (const char* name : names) {
    if (type.name == name) return type;
  }
  throw Unsupported{"type ." + type.name};
}
void same_operands(Decoder& d, size_t sources, const TypeInfo& type) {
  want_operands(d, sources + 1);
  for (size_t i = 0; i < sources; ++i) d.instr.s[i] = d.source(i + 1, type);
  d.instr.d = d.destination(0, type);
}

namespace {

// In instr.variant2: the boolean operator, 0 for none, and whether its predicate is negated.
enum : uint8_t { kAnd = 1, kOr = 2, kXor = 3, kBoolean = 3, kNegated = 4 };

// False and any comparison is false, true or any is true.
Mask compare_without(Warp& w, const Instr& in, Mask m, const Mask* without) {
  const int boolean = in.variant2 & kBoolean;
  const uint8_t *c = w.at<uint8_t>(in.s[2]), flip = in.variant2 & kNegated ? 1 : 0;
  Mask lanes = m & (without[0] | without[1] | without[2]);
  if (boolean != kAnd && boolean != kOr) return lanes;
  const uint8_t decides = boolean == kOr;
  for (Lanes l(lanes & ~without[2]); l; ++l) {
    if ((c[*l] ^ flip) == decides) lanes &= ~(Mask(1) << *l);
  }
  return lanes;
}

// a, b and, with a boolean operator, c.
void compared_operands(Decoder& d, const TypeInfo& type, bool pair) {
  const bool boolean = d.instr.variant2 != 0;
  want_operands(d, boolean ? 4 : 3, pair);
  d.instr.s[0] = d.carried(d.operand(1), type);
  d.instr.s[1] = d.carried(d.operand(2), type);
  if (boolean) {
    d.instr.s[2] = d.carried(d.operand(3), type_info("pred"));
    if (d.operand(3).negated) d.instr.variant2 |= kNegated;
  }
  std::vector<const Operand*> to = {&d.operand(0)};
  if (d.operand(0).second) to.push_back(&*d.operand(0).second);
  d.carries(to, compare_without);
}

}  // namespace

void take_boolean(Decoder& d) { d.instr.variant2 = uint8_t(1 + d.take_one({"and", "or", "xor"})); }

void setp_operands(Decoder& d, const TypeInfo& type) {
  compared_operands(d, type, true);
  d.instr.d = d.predicate_destination(d.operand(0));
  if (d.operand(0).second) d.instr.d2 = d.predicate_destination(*d.operand(0).second);
}
void set_operands(Decoder& d, const TypeInfo& type, const TypeInfo& result) {
  compared_operands(d, type, false);
  d.instr.d = d.destination(0, result);
  d.instr.bytes = uint16_t(result.bits / 8);
  d.instr.offset = int64_t(true_bits(result));
}

uint64_t true_bits(const TypeInfo& result) {
  if (result.name == "f32") return 0x3F800000;
  if (result.name == "f16") return 0x3C00;
  if (result.name == "bf16") return 0x3F80;
  if (result.name == "f16x2") return 0x3C003C00;
  if (result.name == "bf16x2") return 0x3F803F80;
  return result.bits == 16 ? 0xFFFF : 0xFFFFFFFF;
}

int take_float_comparison(Decoder& d) {
  return d.take_one(
      {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
}

void combine(Warp& w, const Instr& in, Outcomes& yes) {
  const int boolean = in.variant2 & kBoolean;
  if (boolean == 0) return;
  const uint8_t* c = w.at<uint8_t>(in.s[2]);
  const uint8_t flip = in.variant2 & kNegated ? 1 : 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint8_t other = c[l] ^ flip;
    yes[l] = boolean == kAnd ? yes[l] & other : boolean == kOr ? yes[l] | other : yes[l] ^ other;
  }
}

Next store_combined(Warp& w, const Instr& in, Mask m, Outcomes& yes) {
  Outcomes no;
  for (int l = 0; l < kLanes; ++l) no[l] = yes[l] ^ 1;
  combine(w, in, yes);
  if (in.d2) combine(w, in, no);  // before p is written, which may be c
  if (in.bytes == 0) {
    put(w, in.d, m, yes);
    if (in.d2) put(w, in.d2, m, no);
  } else if (in.bytes == 2) {
    uint16_t values[kLanes];
    for (int l = 0; l < kLanes; ++l) values[l] = yes[l] ? uint16_t(in.offset) : 0;
    put(w, in.d, m, values);
  } else {
    uint32_t values[kLanes];
    for (int l = 0; l < kLanes; ++l) values[l] = yes[l] ? uint32_t(in.offset) : 0;
    put(w, in.d, m, values);
  }
  return Next::go_on;
}

}  // namespace gg::emu
