// SPDX-License-Identifier: MIT
//
// Integer arithmetic. PTX ISA: "Integer Arithmetic Instructions", "Extended-Precision Integer
// Arithmetic Instructions". Results wrap around unless .sat says otherwise.

#include <algorithm>
#include <limits>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/alu.h"

namespace gg::emu {
namespace {

constexpr auto kIntegerTypes = {"u16", "u32", "u64", "s16", "s32", "s64"};

// At least 32 bits of the same signedness, for C++ would compute 16 bits in int; and twice these.
template <class T>
using Wrap = std::common_type_t<Unsigned<T>, uint32_t>;
template <class T, class Signed, class Other>
using Like = std::conditional_t<std::is_signed_v<T>, Signed, Other>;
template <class T>
using Wide = std::conditional_t<
    sizeof(T) == 2, Like<T, int32_t, uint32_t>,
    std::conditional_t<sizeof(T) == 4, Like<T, int64_t, uint64_t>, Like<T, __int128, unsigned __int128>>>;

struct Add {
  template <class T>
  static T of(T a, T b) {
    return T(Wrap<T>(a) + Wrap<T>(b));
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    return T(Wrap<T>(a) - Wrap<T>(b));
  }
};
struct MulLo {
  template <class T>
  static T of(T a, T b) {
    return T(Wrap<T>(a) * Wrap<T>(b));
  }
};
struct MulHi {
  template <class T>
  static T of(T a, T b) {
    return T((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T)));
  }
};
struct MadLo {
  template <class T>
  static T of(T a, T b, T c) {
    return T(Wrap<T>(a) * Wrap<T>(b) + Wrap<T>(c));
  }
};
struct MadHi {
  template <class T>
  static T of(T a, T b, T c) {
    return Add::of<T>(MulHi::of<T>(a, b), c);
  }
};
// Division by zero is left open by the ISA. An H200 gives all ones, for the remainder, too.
struct Div {
  template <class T>
  static T of(T a, T b) {
    if (b == 0) return T(-1);
    // The least number has no counterpart.
    if (std::is_signed_v<T> && b == T(-1)) return T(0 - Wrap<T>(a));
    return T(a / b);
  }
};
struct Rem {
  template <class T>
  static T of(T a, T b) {
    if (b == 0) return T(-1);
    if (std::is_signed_v<T> && b == T(-1)) return 0;
    return T(a % b);
  }
};
struct Min {
  template <class T>
  static T of(T a, T b) {
    return std::min(a, b);
  }
};
struct Max {
  template <class T>
  static T of(T a, T b) {
    return std::max(a, b);
  }
};
struct MinRelu {
  template <class T>
  static T of(T a, T b) {
    return std::max(std::min(a, b), T(0));
  }
};
struct MaxRelu {
  template <class T>
  static T of(T a, T b) {
    return std::max(std::max(a, b), T(0));
  }
};
struct Abs {
  template <class T>
  static T of(T a) {
    return a < 0 ? T(0 - Wrap<T>(a)) : a;
  }
};
struct Neg {
  template <class T>
  static T of(T a) {
    return T(0 - Wrap<T>(a));
  }
};
struct Sad {
  template <class T>
  static T of(T a, T b, T c) {
    return T(Wrap<T>(c) + (a < b ? Wrap<T>(b) - Wrap<T>(a) : Wrap<T>(a) - Wrap<T>(b)));
  }
};

int32_t saturated(int64_t x) {
  return int32_t(
      std::clamp<int64_t>(x, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}
struct AddSat {
  static int32_t of(int32_t a, int32_t b) { return saturated(int64_t(a) + b); }
};
struct SubSat {
  static int32_t of(int32_t a, int32_t b) { return saturated(int64_t(a) - b); }
};
template <class Op>
Next saturating(Warp& w, const Instr& in, Mask m) {
  return map2<int32_t, int32_t, int32_t>(w, in, m, [](int32_t a, int32_t b) { return Op::of(a, b); });
}
Next mad_hi_saturating(Warp& w, const Instr& in, Mask m) {
  return map3<int32_t, int32_t, int32_t, int32_t>(
      w, in, m, [](int32_t a, int32_t b, int32_t c) { return saturated((int64_t(a) * b >> 32) + c); });
}

// Two 16-bit numbers in a word.
template <class Op, class T>
Next pairs(Warp& w, const Instr& in, Mask m) {
  const T *a = w.at<T>(in.s[0]), *b = w.at<T>(in.s[1]);
  T values[2 * kLanes];
  for (int i = 0; i < 2 * kLanes; ++i) values[i] = Op::template of<T>(a[i], b[i]);
  uint32_t words[kLanes];
  std::memcpy(words, values, sizeof words);
  put(w, in.d, m, words);
  return Next::go_on;
}

template <class T>
Next mul_wide(Warp& w, const Instr& in, Mask m) {
  return map2<Wide<T>, T, T>(w, in, m, [](T a, T b) { return Wide<T>(Wide<T>(a) * Wide<T>(b)); });
}
template <class T>
Next mad_wide(Warp& w, const Instr& in, Mask m) {
  using W = Wide<T>;
  return map3<W, T, T, W>(w, in, m,
                          [](T a, T b, W c) { return W(Unsigned<W>(W(a) * W(b)) + Unsigned<W>(c)); });
}

// mul24, mad24: the low 24 bits of each factor; .lo and .hi are bits 0-31 and 16-47 of
// the 48-bit product.
template <class T>
int64_t product24(T a, T b) {
  const auto low24 = [](T x) { return int64_t(T(uint32_t(x) << 8) >> 8); };
  return low24(a) * low24(b);
}
template <class T, int kShift>
Next mul24(Warp& w, const Instr& in, Mask m) {
  return map2<T, T, T>(w, in, m, [](T a, T b) { return T(product24(a, b) >> kShift); });
}
template <class T, int kShift>
Next mad24(Warp& w, const Instr& in, Mask m) {
  return map3<T, T, T, T>(w, in, m,
                          [](T a, T b, T c) { return Add::of<T>(T(product24(a, b) >> kShift), c); });
}
Next mad24_hi_saturating(Warp& w, const Instr& in, Mask m) {
  return map3<int32_t, int32_t, int32_t, int32_t>(w, in, m, [](int32_t a, int32_t b, int32_t c) {
    return saturated((product24(a, b) >> 16) + int64_t(c));
  });
}

// ---- carries: CC.CF is a byte per lane, 0 at the start ----

uint32_t carry_slot(Decoder& d) {
  // Not PTX's name: there it has none. Read as a special register it is 0.
  constexpr char kName[] = "%carry";
  for (const Code::Special& each : d.code().specials) {
    if (each.name == kName) return each.slot;
  }
  const uint32_t slot = d.scratch(8);
  d.code().specials.push_back({kName, 0, slot, 8});
  return slot;
}

enum : uint8_t { kReadsCarry = 1, kWritesCarry = 2, kSubtracts = 4 };
enum class Addend { first, low, high };  // what is added to: a itself, or a part of a * b

// d = x + y + CC.CF or x - y - CC.CF; the carry or borrow goes back to CC.CF. The sum is the same
// for both signs.
template <class T, Addend kAddend>
Next chain(Warp& w, const Instr& in, Mask m) {
  using U = Unsigned<T>;
  using Sum = Wide<U>;
  const T *a = w.at<T>(in.s[0]), *b = w.at<T>(in.s[1]);
  const T* y = w.at<T>(in.s[kAddend == Addend::first ? 1 : 2]);
  const uint8_t* carry = w.at<uint8_t>(in.d2);
  T values[kLanes];
  uint8_t carries[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    const T x = kAddend == Addend::first ? a[l]
                : kAddend == Addend::low ? MulLo::of<T>(a[l], b[l])
                                     : MulHi::of<T>(a[l], b[l]);
    const Sum before = in.variant & kReadsCarry ? carry[l] : 0;
    const Sum sum = in.variant & kSubtracts ? Sum(U(x)) - U(y[l]) - before : Sum(U(x)) + U(y[l]) + before;
    values[l] = T(sum);
    carries[l] = uint8_t(sum >> (8 * sizeof(T)) & 1);
  }
  put(w, in.d, m, values);
  if (in.variant & kWritesCarry) put(w, in.d2, m, carries);
  return Next::go_on;
}
template <Addend kAddend>
Handler chain_of(const TypeInfo& type) {
  if (type.bits == 32) return type.kind == 's' ? chain<int32_t, kAddend> : chain<uint32_t, kAddend>;
  return type.kind == 's' ? chain<int64_t, kAddend> : chain<uint64_t, kAddend>;
}

// add.cc, addc{.cc}, sub.cc, subc{.cc}, mad.{lo,hi}.cc, madc.{lo,hi}{.cc}
template <uint8_t kFlags>
void decode_chain(Decoder& d) {
  const bool mad = d.statement().opcode.starts_with("mad");
  const int part = mad ? d.take_one({"lo", "hi"}) : 0;
  const bool writes = d.take("cc");
  if (part < 0) throw Unsupported{"no .lo or .hi"};
  if (!writes && !(kFlags & kReadsCarry)) throw Unsupported{"no .cc"};
  const TypeInfo type = take_type_of(d, {"u32", "s32", "u64", "s64"});
  d.done();
  d.instr.variant = uint8_t(kFlags | (writes ? kWritesCarry : 0));
  d.instr.run = !mad        ? chain_of<Addend::first>(type)
                : part == 0 ? chain_of<Addend::low>(type)
                            : chain_of<Addend::high>(type);
  d.instr.d2 = carry_slot(d);
  same_operands(d, mad ? 3 : 2, type);
}

// ---- dot products of small integers ----

// dp4a: c + sum of a.byte[i] * b.byte[i]. dp2a: c + sum of a.half[i] * b.byte[i], b's bytes 2 and
// 3 with .hi.
template <class A, class B, int kTerms>
Next dot(Warp& w, const Instr& in, Mask m) {
  const int first = in.variant;
  return map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, in, m, [=](uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < kTerms; ++i) {
      c += uint32_t(int32_t(A(a >> (32 / kTerms * i))) * int32_t(B(b >> (8 * (i + first)))));
    }
    return c;
  });
}
template <int kTerms>
void decode_dot(Decoder& d) {
  using S = std::conditional_t<kTerms == 4, int8_t, int16_t>;
  using U = Unsigned<S>;
  const int half = kTerms == 2 ? d.take_one({"lo", "hi"}) : 0;
  if (half < 0) throw Unsupported{"no .lo or .hi"};
  d.instr.variant = uint8_t(2 * half);
  const bool a_signed = take_type_of(d, {"u32", "s32"}).kind == 's';
  const bool b_signed = take_type_of(d, {"u32", "s32"}).kind == 's';
  d.done();
  d.instr.run = a_signed ? (b_signed ? dot<S, int8_t, kTerms> : dot<S, uint8_t, kTerms>)
                         : (b_signed ? dot<U, int8_t, kTerms> : dot<U, uint8_t, kTerms>);
  same_operands(d, 3, type_info("b32"));
}

// ---- decoding ----

template <template <class, class> class Family, class Op, size_t kSources>
void decode_plain(Decoder& d) {
  const TypeInfo type = take_type_of(d, kIntegerTypes);
  d.done();
  d.instr.run = handler_of<Family, Op>(type);
  same_operands(d, kSources, type);
}
template <class Op>
void decode_signed(Decoder& d) {  // abs, neg
  const TypeInfo type = take_type_of(d, {"s16", "s32", "s64"});
  d.done();
  d.instr.run = handler_of<Unary, Op>(type);
  same_operands(d, 1, type);
}
template <class Op, class Saturating>
void decode_sum(Decoder& d) {  // add, sub
  const bool sat = d.take("sat");
  const bool add = std::is_same_v<Op, Add>;
  const TypeInfo type = d.take_type();
  d.done();
  if (add && !sat && (type.name == "u16x2" || type.name == "s16x2")) {
    d.instr.run = pairs<Op, uint16_t>;
  } else if (sat && type.name == "s32") {
    d.instr.run = saturating<Saturating>;
  } else if (!sat && (type.kind == 'u' || type.kind == 's')) {
    d.instr.run = handler_of<Binary, Op>(type);
  } else {
    throw Unsupported{"type ." + type.name};
  }
  same_operands(d, 2, type);
}
template <class Op, class Relu>
void decode_extreme(Decoder& d) {  // min, max
  const bool relu = d.take("relu");
  const TypeInfo type = d.take_type();
  d.done();
  if (type.name == "s16x2") {
    d.instr.run = relu ? pairs<Relu, int16_t> : pairs<Op, int16_t>;
  } else if (relu && type.name == "s32") {
    d.instr.run = Binary<Relu, int32_t>::run;
  } else if (!relu && type.name == "u16x2") {
    d.instr.run = pairs<Op, uint16_t>;
  } else if (!relu && (type.kind == 'u' || type.kind == 's')) {
    d.instr.run = handler_of<Binary, Op>(type);
  } else {
    throw Unsupported{"type ." + type.name};
  }
  same_operands(d, 2, type);
}

Handler wide_of(const TypeInfo& t, bool mad) {
  if (t.name == "u16") return mad ? mad_wide<uint16_t> : mul_wide<uint16_t>;
  if (t.name == "s16") return mad ? mad_wide<int16_t> : mul_wide<int16_t>;
  if (t.name == "u32") return mad ? mad_wide<uint32_t> : mul_wide<uint32_t>;
  if (t.name == "s32") return mad ? mad_wide<int32_t> : mul_wide<int32_t>;
  throw Unsupported{".wide of 64 bits"};
}
void decode_mul(Decoder& d) {
  const bool mad = d.statement().opcode == "mad";
  const int part = d.take_one({"lo", "hi", "wide"});
  const bool sat = d.take("sat");
  const TypeInfo type = take_type_of(d, kIntegerTypes);
  d.done();
  if (part < 0) throw Unsupported{"no .lo, .hi or .wide"};
  if (sat && (!mad || part != 1 || type.name != "s32")) throw Unsupported{"modifier .sat"};
  TypeInfo result = type;
  if (part == 2) {
    d.instr.run = wide_of(type, mad);
    result = type_info(std::string(1, type.kind) + std::to_string(2 * type.bits));
  } else if (mad) {
    d.instr.run = sat         ? mad_hi_saturating
                  : part == 0 ? handler_of<Ternary, MadLo>(type)
                              : handler_of<Ternary, MadHi>(type);
  } else {
    d.instr.run = part == 0 ? handler_of<Binary, MulLo>(type) : handler_of<Binary, MulHi>(type);
  }
  want_operands(d, mad ? 4 : 3);
  d.instr.s[0] = d.source(1, type);
  d.instr.s[1] = d.source(2, type);
  if (mad) d.instr.s[2] = d.source(3, result);
  d.instr.d = d.destination(0, result);
}
void decode_mul24(Decoder& d) {
  const bool mad = d.statement().opcode == "mad24";
  const int part = d.take_one({"lo", "hi"});
  const bool sat = d.take("sat");
  const TypeInfo type = take_type_of(d, {"u32", "s32"});
  d.done();
  if (part < 0) throw Unsupported{"no .lo or .hi"};
  const bool is_signed = type.kind == 's';
  if (sat && !(mad && part == 1 && is_signed)) throw Unsupported{"modifier .sat"};
  if (mad && part == 0) {
    d.instr.run = is_signed ? mad24<int32_t, 0> : mad24<uint32_t, 0>;
  } else if (mad) {
    d.instr.run = sat ? mad24_hi_saturating : is_signed ? mad24<int32_t, 16> : mad24<uint32_t, 16>;
  } else if (part == 0) {
    d.instr.run = is_signed ? mul24<int32_t, 0> : mul24<uint32_t, 0>;
  } else {
    d.instr.run = is_signed ? mul24<int32_t, 16> : mul24<uint32_t, 16>;
  }
  same_operands(d, mad ? 3 : 2, type);
}

}  // namespace

std::vector<Form> integer_forms() {
  return computing(Family::integer, {{"add", decode_sum<Add, AddSat>},
                                     {"sub", decode_sum<Sub, SubSat>},
                                     {"add", decode_chain<0>},
                                     {"addc", decode_chain<kReadsCarry>},
                                     {"sub", decode_chain<kSubtracts>},
                                     {"subc", decode_chain<kSubtracts | kReadsCarry>},
                                     {"mad", decode_chain<0>},
                                     {"madc", decode_chain<kReadsCarry>},
                                     {"mul", decode_mul},
                                     {"mad", decode_mul},
                                     {"mul24", decode_mul24},
                                     {"mad24", decode_mul24},
                                     {"sad", decode_plain<Ternary, Sad, 3>},
                                     {"div", decode_plain<Binary, Div, 2>},
                                     {"rem", decode_plain<Binary, Rem, 2>},
                                     {"abs", decode_signed<Abs>},
                                     {"neg", decode_signed<Neg>},
                                     {"min", decode_extreme<Min, MinRelu>},
                                     {"max", decode_extreme<Max, MaxRelu>},
                                     {"dp4a", decode_dot<4>},
                                     {"dp2a", decode_dot<2>}});
}

}  // namespace gg::emu
