// SPDX-License-Identifier: MIT
//
// Logic and shifts. PTX ISA: "Logic and Shift Instructions". bits_fields.cpp has bits counted,
// found and moved.

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/alu.h"

namespace gg::emu {
namespace {

constexpr auto kBitTypes = {"b16", "b32", "b64"};

struct And {
  template <class T>
  static T of(T a, T b) {
    return T(a & b);
  }
};
struct Or {
  template <class T>
  static T of(T a, T b) {
    return T(a | b);
  }
};
struct Xor {
  template <class T>
  static T of(T a, T b) {
    return T(a ^ b);
  }
};
struct Not {
  template <class T>
  static T of(T a) {
    return T(~a);
  }
};
struct Cnot {
  template <class T>
  static T of(T a) {
    return T(a == 0);
  }
};

// and.pred, or.pred, xor.pred: operands may be negated.
template <class Op>
Next logic_pred(Warp& w, const Instr& in, Mask m) {
  const uint8_t flip_a = in.variant & 1, flip_b = in.variant >> 1 & 1;
  return map2<uint8_t, uint8_t, uint8_t>(w, in, m, [=](uint8_t a, uint8_t b) {
    return uint8_t(Op::of(uint8_t(a ^ flip_a), uint8_t(b ^ flip_b)) & 1);
  });
}
Next not_pred(Warp& w, const Instr& in, Mask m) {
  const uint8_t flip = in.variant;
  return map1<uint8_t, uint8_t>(w, in, m, [=](uint8_t a) { return uint8_t(a ^ flip); });
}

// 0 and anything is 0, all ones or anything are all ones: what decides needs no other value.
template <class T, class Op>
Mask logic_without(Warp& w, const Instr& in, Mask m, const Mask* without) {
  const T *a = w.at<T>(in.s[0]), *b = w.at<T>(in.s[1]);
  const T flip_a = T(in.variant & 1), flip_b = T(in.variant >> 1 & 1),
          all = std::is_same_v<T, uint8_t> ? 1 : T(~T(0));
  const auto decides = [&](T x) {
    return (std::is_same_v<Op, And> && x == 0) || (std::is_same_v<Op, Or> && x == all);
  };
  Mask lanes = m & (without[0] | without[1]);
  for (Lanes l(lanes); l; ++l) {
    const Mask lane = Mask(1) << *l;
    const bool decided = (!(without[0] & lane) && decides(T(a[*l] ^ flip_a))) ||
                         (!(without[1] & lane) && decides(T(b[*l] ^ flip_b)));
    if (decided) lanes &= ~lane;
  }
  return lanes;
}
template <class Op>
void decode_logic(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"pred", "b16", "b32", "b64"});
  d.done();
  want_operands(d, 3);
  const Operand &a = d.operand(1), &b = d.operand(2);
  d.instr.s[0] = d.carried(a, type);
  d.instr.s[1] = d.carried(b, type);
  d.instr.d = d.destination(0, type);
  if (type.kind == 'p') {
    d.instr.variant = uint8_t(a.negated | b.negated << 1);
    d.instr.run = logic_pred<Op>;
  } else {
    d.instr.run = handler_of<Binary, Op>(type);
  }
  d.carries({&d.operand(0)}, type.kind == 'p'  ? logic_without<uint8_t, Op>
                             : type.bits == 16 ? logic_without<uint16_t, Op>
                             : type.bits == 32 ? logic_without<uint32_t, Op>
                                               : logic_without<uint64_t, Op>);
}
void decode_not(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"pred", "b16", "b32", "b64"});
  d.done();
  if (type.kind != 'p') {
    d.instr.run = handler_of<Unary, Not>(type);
    return same_operands(d, 1, type);
  }
  want_operands(d, 2);
  bool flip = false;
  d.instr.s[0] = d.predicate(d.operand(1), &flip);
  d.instr.variant = !flip;
  d.instr.d = d.predicate_destination(d.operand(0));
  d.instr.run = not_pred;
}
void decode_cnot(Decoder& d) {
  const TypeInfo type = take_type_of(d, kBitTypes);
  d.done();
  d.instr.run = handler_of<Unary, Cnot>(type);
  same_operands(d, 1, type);
}

// ---- shifts: amounts beyond the width count as the width ----

struct Shl {
  template <class T>
  static T of(T a, uint32_t b) {
    return b >= 8 * sizeof(T) ? T(0) : T(Unsigned<T>(a) << b);
  }
};
struct Shr {
  template <class T>
  static T of(T a, uint32_t b) {
    return T(a >> std::min<uint32_t>(b, 8 * sizeof(T) - 1)) & (b >= 8 * sizeof(T) && a >= 0 ? T(0) : T(-1));
  }
};
template <class Op, class T>
struct Shift {
  static Next run(Warp& w, const Instr& in, Mask m) {
    return map2<T, T, uint32_t>(w, in, m, [](T a, uint32_t b) { return Op::template of<T>(a, b); });
  }
};
template <class Op>
void decode_shift(Decoder& d) {
  const bool left = std::is_same_v<Op, Shl>;
  const TypeInfo type =
      left ? take_type_of(d, kBitTypes)
           : take_type_of(d, {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"});
  d.done();
  want_operands(d, 3);
  d.instr.run = handler_of<Shift, Op>(type);
  d.instr.s[0] = d.source(1, type);
  d.instr.s[1] = d.source(2, type_info("u32"));
  d.instr.d = d.destination(0, type);
}

// shf: 32 bits out of {b, a}. .l: the upper half of {b, a} << c; .r: the lower half of {b, a} >> c.
Next shf(Warp& w, const Instr& in, Mask m) {
  const bool left = in.variant & 1, wrap = in.variant & 2;
  return map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, in, m, [=](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = wrap ? c & 31 : std::min(c, 32u);
    const uint64_t both = uint64_t(b) << 32 | a;
    return left ? uint32_t(both << n >> 32) : uint32_t(both >> n);
  });
}
void decode_shf(Decoder& d) {
  const int direction = d.take_one({"r", "l"}), mode = d.take_one({"clamp", "wrap"});
  const TypeInfo type = take_type_of(d, {"b32"});
  d.done();
  if (direction < 0 || mode < 0) throw Unsupported{"no direction or mode"};
  d.instr.variant = uint8_t(direction | mode << 1);
  d.instr.run = shf;
  same_operands(d, 3, type);
}

// ---- lop3: the bit of the table that a, b, c name ----

uint32_t lookup(uint8_t table, uint32_t a, uint32_t b, uint32_t c) {
  const auto select = [](uint32_t s, uint32_t one, uint32_t zero) { return (s & one) | (~s & zero); };
  const auto entry = [&](int i) { return table >> i & 1 ? ~0u : 0u; };
  return select(a, select(b, select(c, entry(7), entry(6)), select(c, entry(5), entry(4))),
                select(b, select(c, entry(3), entry(2)), select(c, entry(1), entry(0))));
}
Next lop3(Warp& w, const Instr& in, Mask m) {
  const uint8_t table = uint8_t(in.offset);
  return map3<uint32_t, uint32_t, uint32_t, uint32_t>(
      w, in, m, [=](uint32_t a, uint32_t b, uint32_t c) { return lookup(table, a, b, c); });
}
// lop3.and, lop3.or: p = (d != 0) bool q as well.
Next lop3_pred(Warp& w, const Instr& in, Mask m) {
  const uint32_t *a = w.at<uint32_t>(in.s[0]), *b = w.at<uint32_t>(in.s[1]), *c = w.at<uint32_t>(in.s[2]);
  uint32_t values[kLanes];
  Outcomes nonzero;
  for (int l = 0; l < kLanes; ++l) {
    values[l] = lookup(uint8_t(in.offset), a[l], b[l], c[l]);
    nonzero[l] = values[l] != 0;
  }
  Instr boolean = in;  // combine() takes the other predicate in s[2]
  boolean.s[2] = in.s[3];
  combine(w, boolean, nonzero);
  put(w, in.d, m, values);
  put(w, in.d2, m, nonzero);
  return Next::go_on;
}
void decode_lop3(Decoder& d) {
  const bool with_predicate = d.statement().has("and") || d.statement().has("or");
  if (with_predicate) take_boolean(d);
  const TypeInfo type = take_type_of(d, {"b32"});
  d.done();
  want_operands(d, with_predicate ? 6 : 5, with_predicate);
  for (size_t i = 0; i < 3; ++i) d.instr.s[i] = d.source(i + 1, type);
  d.instr.offset = d.immediate(4);
  if (d.instr.offset < 0 || d.instr.offset > 255) throw Unsupported{"a table of more than 8 bits"};
  d.instr.d = d.destination(0, type);
  d.instr.run = lop3;
  if (!with_predicate) return;
  if (!d.operand(0).second) throw Unsupported{"no |p"};
  bool negated = false;
  d.instr.s[3] = d.predicate(d.operand(5), &negated);
  if (negated) d.instr.variant2 |= 4;
  d.instr.d2 = d.predicate_destination(*d.operand(0).second);
  d.instr.run = lop3_pred;
}

}  // namespace

std::vector<Form> bits_forms() {
  return computing(Family::integer, {{"and", decode_logic<And>},
                                     {"or", decode_logic<Or>},
                                     {"xor", decode_logic<Xor>},
                                     {"not", decode_not},
                                     {"cnot", decode_cnot},
                                     {"shl", decode_shift<Shl>},
                                     {"shr", decode_shift<Shr>},
                                     {"shf", decode_shf},
                                     {"lop3", decode_lop3}});
}

}  // namespace gg::emu
