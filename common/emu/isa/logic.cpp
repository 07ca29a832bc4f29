// SPDX-License-Identifier: MIT
//
// Logic, shifts and bit fields. PTX ISA: "Logic and Shift Instructions", and of "Integer Arithmetic
// Instructions" popc, clz, bfind, fns, brev, bfe, bfi, bmsk, szext; of "Data Movement and Conversion
// Instructions" prmt.

#include <algorithm>
#include <cstdlib>

#include "common/emu/isa/alu.h"

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

// ---- counting and finding bits ----

struct Brev {
  template <class T>
  static T of(T a) {
    uint64_t x = uint64_t(a);
    x = (x & 0x5555555555555555) << 1 | (x >> 1 & 0x5555555555555555);
    x = (x & 0x3333333333333333) << 2 | (x >> 2 & 0x3333333333333333);
    x = (x & 0x0F0F0F0F0F0F0F0F) << 4 | (x >> 4 & 0x0F0F0F0F0F0F0F0F);
    return T(__builtin_bswap64(x) >> (64 - 8 * sizeof(T)));
  }
};
template <class T>
Next popc(Warp& w, const Instr& in, Mask m) {
  return map1<uint32_t, T>(w, in, m, [](T a) { return uint32_t(__builtin_popcountll(a)); });
}
template <class T>
Next clz(Warp& w, const Instr& in, Mask m) {
  return map1<uint32_t, T>(w, in, m, [](T a) {
    constexpr int kWidth = 8 * sizeof(T);
    return a == 0 ? uint32_t(kWidth) : uint32_t(__builtin_clzll(a) - (64 - kWidth));
  });
}
// The highest one; of a signed number, the highest bit unlike its sign. .shiftamt: how far it is from the
// top.
template <class T>
Next bfind(Warp& w, const Instr& in, Mask m) {
  const bool shift_amount = in.variant;
  return map1<uint32_t, T>(w, in, m, [=](T a) {
    const uint64_t bits = Unsigned<T>(a < 0 ? ~a : a);
    if (bits == 0) return ~0u;
    const uint32_t at = uint32_t(63 - __builtin_clzll(bits));
    return shift_amount ? uint32_t(8 * sizeof(T) - 1) - at : at;
  });
}
// The n-th one of the mask from `base` upward (offset n > 0) or downward (-n); offset 0: base, if its bit is
// set.
uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset) {
  if (offset == 0) return base < 32 && mask >> base & 1 ? base : ~0u;
  int64_t left = std::abs(int64_t(offset));
  for (int64_t at = base; at >= 0 && at<32; at += offset> 0 ? 1 : -1) {
    if (mask >> at & 1 && --left == 0) return uint32_t(at);
  }
  return ~0u;
}
Next fns(Warp& w, const Instr& in, Mask m) {
  return map3<uint32_t, uint32_t, uint32_t, int32_t>(w, in, m, find_nth_set);
}

void decode_count(Decoder& d, Handler of32, Handler of64) {
  const TypeInfo type = take_type_of(d, {"b32", "b64"});
  d.done();
  want_operands(d, 2);
  d.instr.run = type.bits == 32 ? of32 : of64;
  d.instr.s[0] = d.source(1, type);
  d.instr.d = d.destination(0, type_info("u32"));
}
void decode_popc(Decoder& d) { decode_count(d, popc<uint32_t>, popc<uint64_t>); }
void decode_clz(Decoder& d) { decode_count(d, clz<uint32_t>, clz<uint64_t>); }
void decode_brev(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"b32", "b64"});
  d.done();
  d.instr.run = handler_of<Unary, Brev>(type);
  same_operands(d, 1, type);
}
void decode_bfind(Decoder& d) {
  d.instr.variant = d.take("shiftamt");
  const TypeInfo type = take_type_of(d, {"u32", "u64", "s32", "s64"});
  d.done();
  want_operands(d, 2);
  const bool is_signed = type.kind == 's';
  d.instr.run = type.bits == 32 ? (is_signed ? bfind<int32_t> : bfind<uint32_t>)
                                : (is_signed ? bfind<int64_t> : bfind<uint64_t>);
  d.instr.s[0] = d.source(1, type);
  d.instr.d = d.destination(0, type_info("u32"));
}
void decode_fns(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"b32"});
  d.done();
  d.instr.run = fns;
  same_operands(d, 3, type);
}

// ---- bit fields: `position` and `length` are the low bytes of their operands ----

uint64_t low_ones(int n) { return n >= 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1; }

// The field at the bottom, its highest bit, or the number's if it reaches beyond, repeated above when signed.
template <class T>
Next bfe(Warp& w, const Instr& in, Mask m) {
  return map3<T, T, uint32_t, uint32_t>(w, in, m, [](T a, uint32_t b, uint32_t c) {
    constexpr int kWidth = 8 * sizeof(T);
    const int position = int(b & 0xFF), length = int(c & 0xFF);
    const int inside = std::max(0, std::min(length, kWidth - position));
    const uint64_t field = inside ? uint64_t(Unsigned<T>(a)) >> position & low_ones(inside) : 0;
    const bool sign = std::is_signed_v<T> && length > 0 &&
                      (uint64_t(Unsigned<T>(a)) >> std::min(position + length - 1, kWidth - 1) & 1);
    return T(sign ? field | ~low_ones(inside) : field);
  });
}
// b with its field replaced by the low bits of a.
template <class T>
Next bfi(Warp& w, const Instr& in, Mask m) {
  const T *a = w.at<T>(in.s[0]), *b = w.at<T>(in.s[1]);
  const uint32_t *c = w.at<uint32_t>(in.s[2]), *d = w.at<uint32_t>(in.s[3]);
  T values[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    const int position = int(c[l] & 0xFF), length = int(d[l] & 0xFF);
    const int inside = std::max(0, std::min(length, int(8 * sizeof(T)) - position));
    const uint64_t field = inside ? low_ones(inside) << position : 0;
    values[l] = T((b[l] & ~field) | (inside ? uint64_t(a[l]) << position & field : 0));
  }
  put(w, in.d, m, values);
  return Next::go_on;
}
// Ones from bit a on, b of them. .clamp: positions and lengths beyond 31 reach over the end; .wrap:
// modulo 32.
uint32_t bit_mask(uint32_t a, uint32_t b, bool wrap) {
  if (wrap) a &= 31, b &= 31;
  if (a > 31) return 0;
  return uint32_t(low_ones(int(std::min(b, 32u))) << a);
}
Next bmsk(Warp& w, const Instr& in, Mask m) {
  const bool wrap = in.variant;
  return map2<uint32_t, uint32_t, uint32_t>(w, in, m,
                                            [=](uint32_t a, uint32_t b) { return bit_mask(a, b, wrap); });
}
// The low b bits of a, extended with zeros or their sign. .clamp: all of a from 32 on; .wrap: b modulo 32.
template <class T>
Next szext(Warp& w, const Instr& in, Mask m) {
  const bool wrap = in.variant;
  return map2<T, T, uint32_t>(w, in, m, [=](T a, uint32_t b) {
    if (wrap) b &= 31;
    if (b >= 32) return a;
    if (b == 0) return T(0);
    return T(T(uint32_t(a) << (32 - b)) >> (32 - b));
  });
}

void decode_bfe(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"u32", "u64", "s32", "s64"});
  d.done();
  want_operands(d, 4);
  const bool is_signed = type.kind == 's';
  d.instr.run = type.bits == 32 ? (is_signed ? bfe<int32_t> : bfe<uint32_t>)
                                : (is_signed ? bfe<int64_t> : bfe<uint64_t>);
  d.instr.s[0] = d.source(1, type);
  d.instr.s[1] = d.source(2, type_info("u32"));
  d.instr.s[2] = d.source(3, type_info("u32"));
  d.instr.d = d.destination(0, type);
}
void decode_bfi(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"b32", "b64"});
  d.done();
  want_operands(d, 5);
  d.instr.run = type.bits == 32 ? bfi<uint32_t> : bfi<uint64_t>;
  d.instr.s[0] = d.source(1, type);
  d.instr.s[1] = d.source(2, type);
  d.instr.s[2] = d.source(3, type_info("u32"));
  d.instr.s[3] = d.source(4, type_info("u32"));
  d.instr.d = d.destination(0, type);
}
void decode_mode_of_two(Decoder& d) {  // bmsk, szext
  const bool mask = d.statement().opcode == "bmsk";
  const int mode = d.take_one({"clamp", "wrap"});
  const TypeInfo type = mask ? take_type_of(d, {"b32"}) : take_type_of(d, {"u32", "s32"});
  d.done();
  if (mode < 0) throw Unsupported{"no .clamp or .wrap"};
  d.instr.variant = uint8_t(mode);
  d.instr.run = mask ? bmsk : type.kind == 's' ? szext<int32_t> : szext<uint32_t>;
  same_operands(d, 2, type);
}

// ---- prmt: each nibble of a selector picks one of the eight bytes of {b, a} ----

uint32_t permute(uint32_t a, uint32_t b, uint32_t nibbles) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t r = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t nibble = nibbles >> (4 * i) & 0xF;
    const uint32_t byte = uint32_t(bytes >> (8 * (nibble & 7))) & 0xFF;
    const uint32_t sign = byte & 0x80 ? 0xFF : 0;  // eight times
    r |= (nibble & 8 ? sign : byte) << (8 * i);
  }
  return r;
}
Next prmt(Warp& w, const Instr& in, Mask m) {
  return map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, in, m, permute);
}

enum PermuteMode { kForward4, kBackward4, kReplicate8, kEdgeLeft, kEdgeRight, kReplicate16 };

// The same selection from the lowest two bits of c.
uint32_t selector(int mode, uint32_t c) {
  uint32_t nibbles = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t byte = mode == kForward4     ? i + c
                          : mode == kBackward4  ? (c - i) & 7
                          : mode == kReplicate8 ? c
                          : mode == kEdgeLeft   ? std::max(i, c)
                          : mode == kEdgeRight  ? std::min(i, c)
                                                : 2 * (c & 1) + (i & 1);
    nibbles |= byte << (4 * i);
  }
  return nibbles;
}
Next prmt_mode(Warp& w, const Instr& in, Mask m) {
  uint32_t nibbles[4];
  for (uint32_t c = 0; c < 4; ++c) nibbles[c] = selector(in.variant, c);
  return map3<uint32_t, uint32_t, uint32_t, uint32_t>(
      w, in, m, [&](uint32_t a, uint32_t b, uint32_t c) { return permute(a, b, nibbles[c & 3]); });
}
// No byte that is picked has a value: as of a word that mov puts together, one that has is enough.
Mask prmt_without(Warp& w, const Instr& in, Mask m, const Mask* without) {
  const uint32_t* selectors = w.at<uint32_t>(in.s[2]);
  for (Lanes l(m); l; ++l) {
    const uint32_t c = selectors[*l], nibbles = in.run == prmt ? c : selector(in.variant, c & 3);
    bool none = true;
    for (int i = 0; i < 4; ++i) none = none && without[nibbles >> (4 * i + 2) & 1] >> *l & 1;
    if (!none && !(without[2] >> *l & 1)) m &= ~(Mask(1) << *l);
  }
  return m;
}
void decode_prmt(Decoder& d) {
  const int mode = d.take_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  const TypeInfo type = take_type_of(d, {"b32"});
  d.done();
  d.instr.variant = uint8_t(std::max(mode, 0));
  d.instr.run = mode < 0 ? prmt : prmt_mode;
  want_operands(d, 4);
  d.instr.s[0] = d.carried(d.operand(1), type);
  d.instr.s[1] = d.carried(d.operand(2), type);
  d.instr.s[2] = d.carried(d.operand(3), type);
  d.instr.d = d.destination(0, type);
  d.carries({&d.operand(0)}, prmt_without);
}

}  // namespace

std::vector<Form> logic_forms() {
  return {{"and", decode_logic<And>}, {"or", decode_logic<Or>},     {"xor", decode_logic<Xor>},
          {"not", decode_not},        {"cnot", decode_cnot},        {"shl", decode_shift<Shl>},
          {"shr", decode_shift<Shr>}, {"shf", decode_shf},          {"lop3", decode_lop3},
          {"popc", decode_popc},      {"clz", decode_clz},          {"brev", decode_brev},
          {"bfind", decode_bfind},    {"fns", decode_fns},          {"bfe", decode_bfe},
          {"bfi", decode_bfi},        {"bmsk", decode_mode_of_two}, {"szext", decode_mode_of_two},
          {"prmt", decode_prmt}};
}

}  // namespace gg::emu
