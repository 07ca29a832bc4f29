// SPDX-License-Identifier: MIT
//
// Comparison and selection: setp, set, selp and slct on integers and bits. PTX ISA: "Comparison
// and Selection Instructions".

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/alu.h"

namespace gg::emu {
namespace {

enum Comparison : uint8_t { eq, ne, lt, le, gt, ge };

template <int kHow, class T>
Next compare(Warp& w, const Instr& in, Mask m) {
  const T *a = w.at<T>(in.s[0]), *b = w.at<T>(in.s[1]);
  Outcomes yes;
  for (int l = 0; l < kLanes; ++l) {
    yes[l] = kHow == eq   ? a[l] == b[l]
             : kHow == ne ? a[l] != b[l]
             : kHow == lt ? a[l] < b[l]
             : kHow == le ? a[l] <= b[l]
             : kHow == gt ? a[l] > b[l]
                          : a[l] >= b[l];
  }
  return store_outcomes(w, in, m, yes);
}
template <class T>
Handler comparison_of(int how) {
  static constexpr Handler table[] = {compare<eq, T>, compare<ne, T>, compare<lt, T>,
                                      compare<le, T>, compare<gt, T>, compare<ge, T>};
  return table[how];
}
Handler comparison_of(int how, const TypeInfo& t) {
  const bool is_signed = t.kind == 's';
  if (t.bits == 16) return is_signed ? comparison_of<int16_t>(how) : comparison_of<uint16_t>(how);
  if (t.bits == 32) return is_signed ? comparison_of<int32_t>(how) : comparison_of<uint32_t>(how);
  return is_signed ? comparison_of<int64_t>(how) : comparison_of<uint64_t>(how);
}

bool is_float(const TypeInfo& type) { return type.kind == 'f' || type.kind == 'x'; }

// Bits know eq and ne only; lo, ls, hi, hs are lt, le, gt, ge of unsigned numbers.
void decode_compare(Decoder& d) {
  const bool set = d.statement().opcode == "set";
  int how = d.take_one({"eq", "ne", "lt", "le", "gt", "ge"});
  const int unsigned_how = how < 0 ? d.take_one({"lo", "ls", "hi", "hs"}) : -1;
  if (how < 0 && unsigned_how < 0) throw Unsupported{"this comparison"};
  take_boolean(d);
  TypeInfo result;
  if (set) result = take_type_of(d, {"u32", "s32", "f32", "f16", "bf16"});
  const TypeInfo type = take_type_of(d, {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"});
  d.done();
  if ((type.kind == 'b' && how > ne) || (unsigned_how >= 0 && type.kind != 'u'))
    throw Unsupported{"this comparison of ." + type.name};
  d.instr.run = comparison_of(how >= 0 ? how : lt + unsigned_how, type);
  if (set) {
    if (is_float(result)) d.instr.family = Family::floating;
    set_operands(d, type, result);
  } else {
    setp_operands(d, type);
  }
}

template <class T>
Next selp(Warp& w, const Instr& in, Mask m) {
  const bool flip = in.variant;
  return map3<T, T, T, uint8_t>(w, in, m, [=](T a, T b, uint8_t p) { return (p != 0) != flip ? a : b; });
}
Mask selp_without(Warp& w, const Instr& in, Mask m, const Mask* without) {
  const uint8_t* p = w.at<uint8_t>(in.s[2]);
  Mask first = 0;
  for (int l = 0; l < kLanes; ++l) first |= Mask((p[l] != 0) != (in.variant != 0)) << l;
  return m & (without[2] | (first & without[0]) | (~first & without[1]));
}
constexpr auto kSelected = {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"};
void decode_selp(Decoder& d) {
  const TypeInfo type = take_type_of(d, kSelected);
  d.done();
  want_operands(d, 4);
  d.instr.run = type.bits == 16 ? selp<uint16_t> : type.bits == 32 ? selp<uint32_t> : selp<uint64_t>;
  d.instr.s[0] = d.carried(d.operand(1), type);
  d.instr.s[1] = d.carried(d.operand(2), type);
  d.instr.s[2] = d.carried(d.operand(3), type_info("pred"));
  d.instr.variant = d.operand(3).negated;
  d.instr.d = d.destination(0, type);
  d.carries({&d.operand(0)}, selp_without);
}

// slct: a where c >= 0, else b. A NaN is not, -0 is; with .ftz negative subnormal numbers are too.
template <class T, class C>
Next slct(Warp& w, const Instr& in, Mask m) {
  const bool ftz = in.variant;
  return map3<T, T, T, C>(w, in, m, [=](T a, T b, C c) {
    if (std::is_same_v<C, float> && ftz && c < C(0) && c > C(-0x1p-126f)) c = 0;
    return c >= C(0) ? a : b;
  });
}
template <class C>
Handler slct_of(int bits) {
  return bits == 16 ? slct<uint16_t, C> : bits == 32 ? slct<uint32_t, C> : slct<uint64_t, C>;
}
void decode_slct(Decoder& d) {
  d.instr.variant = d.take("ftz");
  const TypeInfo type = take_type_of(d, kSelected);
  const TypeInfo selector = take_type_of(d, {"s32", "f32"});
  d.done();
  if (d.instr.variant && selector.kind == 's') throw Unsupported{"modifier .ftz"};
  want_operands(d, 4);
  if (is_float(type) || is_float(selector)) d.instr.family = Family::floating;
  d.instr.run = selector.kind == 's' ? slct_of<int32_t>(type.bits) : slct_of<float>(type.bits);
  d.instr.s[0] = d.source(1, type);
  d.instr.s[1] = d.source(2, type);
  d.instr.s[2] = d.source(3, selector);
  d.instr.d = d.destination(0, type);
}

}  // namespace

std::vector<Form> compare_forms() {
  return {{"setp", decode_compare, Family::integer, true},
          {"set", decode_compare, Family::integer, true},
          {"selp", decode_selp, Family::move, true},
          {"slct", decode_slct, Family::integer, true}};
}

}  // namespace gg::emu
