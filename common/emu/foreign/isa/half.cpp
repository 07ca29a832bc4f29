// SPDX-License-Identifier: MIT
//
// Arithmetic and comparison of f16, bf16 and their pairs. PTX ISA: "Half Precision Floating Point
// Instructions", "Half Precision Comparison Instructions", and of "Floating Point Instructions"
// tanh and ex2. A NaN result is 0x7FFF.
//
// Results are computed in double and rounded once. A sum, difference or product is exact in double
// or so much longer than a half that rounding twice cannot differ: 53 >= 2 * 11 + 2. A fused sum is
// rounded to odd first.

#include "common/emu/core/units/alu.h"
#include "common/emu/core/units/halves.h"
#include "common/emu/foreign/isa/foreign_forms.h"

namespace gg::emu {
namespace {

enum : uint8_t { kFtz = 1, kSat = 2, kRelu = 4, kOob = 8 };  // of arithmetic
enum : uint8_t { kNaN = 2, kXorSign = 4, kMax = 8 };         // of min and max, beside kFtz
// A tile filled with NaN outside the tensor holds this one; fma.oob gives 0 where a factor is it,
// of either sign.
constexpr uint16_t kOutOfBounds = 0x7FF7;

// A pair is two lanes more: element 2 * lane is the low half.
template <bool kPair>
constexpr int kElements = kPair ? 2 * kLanes : kLanes;
template <bool kPair>
Next put_halves(Warp& w, const Instr& in, Mask m, const uint16_t (&values)[kElements<kPair>]) {
  if constexpr (kPair) {
    uint32_t words[kLanes];
    std::memcpy(words, values, sizeof words);
    put(w, in.d, m, words);
  } else {
    put(w, in.d, m, values);
  }
  return Next::go_on;
}

template <class F>
uint16_t flush(uint16_t code) {
  return (code & 0x7FFF) < (1 << F::kMantissaBits) ? code & 0x8000 : code;
}

struct Add {
  template <class F>
  static double of(double a, double b, double) {
    return a + b;
  }
};
struct Sub {
  template <class F>
  static double of(double a, double b, double) {
    return a - b;
  }
};
struct Mul {
  template <class F>
  static double of(double a, double b, double) {
    return a * b;
  }
};
// The product is exact. Of f16 numbers the sum is, too, or else so much larger than the
// product, 2^5 against 2^-14, that c is the result; of bf16 numbers a tiny c may decide a tie
// of the product.
struct Fma {
  template <class F>
  static double of(double a, double b, double c) {
    return F::kSumsFit ? a * b + c : sum_to_odd(a * b, c);
  }
};

template <class F, class Op, size_t kSources, bool kPair, bool kPlain>
Next arithmetic(Warp& w, const Instr& in, Mask m) {
  const uint8_t flags = kPlain ? 0 : in.variant;
  const uint16_t *a = w.at<uint16_t>(in.s[0]), *b = w.at<uint16_t>(in.s[1]), *c = w.at<uint16_t>(in.s[2]);
  uint16_t values[kElements<kPair>];
  for (int i = 0; i < kElements<kPair>; ++i) {
    const auto value = [&](uint16_t code) {
      return double(half_value<F>(flags & kFtz ? flush<F>(code) : code));
    };
    // .ftz flushes what would round to less than the least normal number if exponents had no end.
    constexpr double kTiny = F::kLeastNormal * (1 - 0.5 / (2 << F::kMantissaBits));
    const double exact = Op::template of<F>(value(a[i]), value(b[i]), kSources == 3 ? value(c[i]) : 0);
    uint16_t r = nearest_code<F>(exact);
    if (!kPlain) {
      if ((flags & kFtz) && std::fabs(exact) < kTiny) r &= 0x8000;
      if (flags & kSat) r = exact > 0 ? (exact < 1 ? r : nearest_code<F>(1)) : 0;
      if (flags & kRelu) r = r > 0x8000 || r == 0x8000 ? 0 : r;
      const bool absent = (a[i] & 0x7FFF) == kOutOfBounds || (b[i] & 0x7FFF) == kOutOfBounds;
      if ((flags & kOob) && absent) r = 0;
    }
    values[i] = r;
  }
  return put_halves<kPair>(w, in, m, values);
}
template <class F, class Op, size_t kSources>
Handler arithmetic_of(bool pair, bool plain) {
  if (pair) return plain ? arithmetic<F, Op, kSources, true, true> : arithmetic<F, Op, kSources, true, false>;
  return plain ? arithmetic<F, Op, kSources, false, true> : arithmetic<F, Op, kSources, false, false>;
}

struct HalfType {
  TypeInfo info;
  bool bf16 = false, pair = false;
};
HalfType take_half(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"f16", "f16x2", "bf16", "bf16x2"});
  return {type, type.name[0] == 'b', type.bits == 32};
}

template <class Op, size_t kSources>
void decode_arithmetic(Decoder& d) {  // add, sub, mul, fma
  const bool rounded = d.take("rn"), ftz = d.take("ftz"), sat = d.take("sat");
  const bool relu = kSources == 3 && d.take("relu"), oob = kSources == 3 && d.take("oob");
  const HalfType type = take_half(d);
  d.done();
  if (kSources == 3 && !rounded) throw Unsupported{"no .rn"};
  if ((type.bf16 && (ftz || sat)) || (sat && relu) || (oob && ftz))
    throw Unsupported{"these modifiers together"};
  d.instr.variant = uint8_t((ftz ? kFtz : 0) | (sat ? kSat : 0) | (relu ? kRelu : 0) | (oob ? kOob : 0));
  const bool plain = d.instr.variant == 0;
  d.instr.run = type.bf16 ? arithmetic_of<BF16, Op, kSources>(type.pair, plain)
                          : arithmetic_of<F16, Op, kSources>(type.pair, plain);
  same_operands(d, kSources, type.info);
}

// ---- one operand ----

template <class F>
bool is_nan(uint16_t code) {
  return (code & 0x7FFF) > F::kInfinity;
}
struct Negative {
  template <class F>
  static uint16_t of(uint16_t a) {
    return is_nan<F>(a) ? F::kNaN : a ^ 0x8000;
  }
};
struct Magnitude {
  template <class F>
  static uint16_t of(uint16_t a) {
    return is_nan<F>(a) ? F::kNaN : a & 0x7FFF;
  }
};
// Computed as exactly as double allows. Over all operands an H200's relative error is at most
// 2^-9.8 for f16 and 2^-7 for bf16, or one unit in the last place.
struct Tanh {
  template <class F>
  static uint16_t of(uint16_t a) {
    return nearest_code<F>(std::tanh(double(half_value<F>(a))));
  }
};
struct Ex2 {
  template <class F>
  static uint16_t of(uint16_t a) {
    return nearest_code<F>(std::exp2(double(half_value<F>(a))));
  }
};
template <class F, class Op, bool kPair>
Next unary(Warp& w, const Instr& in, Mask m) {
  const bool ftz = in.variant & kFtz;
  const uint16_t* a = w.at<uint16_t>(in.s[0]);
  uint16_t values[kElements<kPair>];
  for (int i = 0; i < kElements<kPair>; ++i) {
    const uint16_t r = Op::template of<F>(ftz ? flush<F>(a[i]) : a[i]);
    values[i] = ftz ? flush<F>(r) : r;
  }
  return put_halves<kPair>(w, in, m, values);
}
template <class Op>
Handler unary_of(const HalfType& type) {
  if (type.bf16) return type.pair ? unary<BF16, Op, true> : unary<BF16, Op, false>;
  return type.pair ? unary<F16, Op, true> : unary<F16, Op, false>;
}
template <class Op>
void decode_unary(Decoder& d) {  // neg, abs, tanh, ex2
  const std::string& opcode = d.statement().opcode;
  const bool function = opcode == "tanh" || opcode == "ex2";
  if (function && !d.take("approx")) throw Unsupported{"no .approx"};
  const bool ftz = d.take("ftz");
  const HalfType type = take_half(d);
  d.done();
  // ex2 flushes bf16 and must say so; the others may flush f16 only, tanh nothing.
  const bool must = opcode == "ex2" && type.bf16, may = must || (!function && !type.bf16);
  if (ftz ? !may : must) throw Unsupported{"modifier .ftz"};
  d.instr.variant = ftz ? kFtz : 0;
  d.instr.run = unary_of<Op>(type);
  same_operands(d, 1, type.info);
}

// ---- extremes: as of f32, see floating.cpp ----

template <class F>
uint16_t extreme(uint16_t a, uint16_t b, uint8_t flags) {
  if (flags & kFtz) a = flush<F>(a), b = flush<F>(b);
  const uint16_t sign = (a ^ b) & 0x8000;
  if (flags & kXorSign) a &= 0x7FFF, b &= 0x7FFF;
  // The order of the codes, negative ones turned round, is that of the numbers, -0 before +0.
  const auto order = [](uint16_t code) { return int16_t(code & 0x8000 ? code ^ 0x7FFF : code); };
  const bool a_nan = is_nan<F>(a), b_nan = is_nan<F>(b);
  uint16_t r = (flags & kMax ? order(a) > order(b) : order(a) < order(b)) ? a : b;
  r = b_nan ? a : r;
  r = a_nan ? b : r;
  if (flags & kXorSign) r |= sign;
  return (a_nan && b_nan) || ((flags & kNaN) && (a_nan || b_nan)) ? F::kNaN : r;
}
template <class F, bool kPair>
Next extremes(Warp& w, const Instr& in, Mask m) {
  const uint16_t *a = w.at<uint16_t>(in.s[0]), *b = w.at<uint16_t>(in.s[1]);
  const uint8_t flags = in.variant;
  uint16_t values[kElements<kPair>];
  for (int i = 0; i < kElements<kPair>; ++i) values[i] = extreme<F>(a[i], b[i], flags);
  return put_halves<kPair>(w, in, m, values);
}
template <uint8_t kWhich>
void decode_extreme(Decoder& d) {  // min, max
  const bool ftz = d.take("ftz"), nan = d.take("NaN"), xorsign = d.take("xorsign");
  if (xorsign != d.take("abs")) throw Unsupported{".xorsign without .abs"};
  const HalfType type = take_half(d);
  d.done();
  if (ftz && type.bf16) throw Unsupported{"modifier .ftz"};
  d.instr.variant = uint8_t(kWhich | (ftz ? kFtz : 0) | (nan ? kNaN : 0) | (xorsign ? kXorSign : 0));
  d.instr.run = type.bf16 ? (type.pair ? extremes<BF16, true> : extremes<BF16, false>)
                          : (type.pair ? extremes<F16, true> : extremes<F16, false>);
  same_operands(d, 2, type.info);
}

// ---- comparisons ----

template <class F>
float compared(uint16_t code, bool ftz) {
  return half_value<F>(ftz ? flush<F>(code) : code);
}
template <class F, int kHow>
Next compare(Warp& w, const Instr& in, Mask m) {
  const uint16_t *a = w.at<uint16_t>(in.s[0]), *b = w.at<uint16_t>(in.s[1]);
  const bool ftz = in.variant & kFtz;
  Outcomes yes;
  for (int l = 0; l < kLanes; ++l)
    yes[l] = compare_floats<kHow>(compared<F>(a[l], ftz), compared<F>(b[l], ftz));
  return store_outcomes(w, in, m, yes);
}
// Pairs: setp writes p from the low halves, q from the high ones; set writes a word by halves.
template <class F, int kHow>
Next compare_pairs(Warp& w, const Instr& in, Mask m) {
  const uint16_t *a = w.at<uint16_t>(in.s[0]), *b = w.at<uint16_t>(in.s[1]);
  const bool ftz = in.variant & kFtz;
  Outcomes low, high;
  for (int l = 0; l < kLanes; ++l) {
    low[l] = compare_floats<kHow>(compared<F>(a[2 * l], ftz), compared<F>(b[2 * l], ftz));
    high[l] = compare_floats<kHow>(compared<F>(a[2 * l + 1], ftz), compared<F>(b[2 * l + 1], ftz));
  }
  combine(w, in, low);
  combine(w, in, high);
  if (in.bytes == 0) {
    put(w, in.d, m, low);
    if (in.d2) put(w, in.d2, m, high);
    return Next::go_on;
  }
  uint32_t values[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    const uint32_t yes = (low[l] ? 0xFFFFu : 0) | (high[l] ? 0xFFFF0000u : 0);
    values[l] = yes & uint32_t(in.offset);
  }
  put(w, in.d, m, values);
  return Next::go_on;
}
template <class F, int... kHow>
Handler comparison_of(int how, bool pair, std::integer_sequence<int, kHow...>) {
  static constexpr Handler single[] = {compare<F, kHow>...}, both[] = {compare_pairs<F, kHow>...};
  return pair ? both[how] : single[how];
}
void decode_compare(Decoder& d) {  // setp, set
  const bool set = d.statement().opcode == "set";
  const int how = take_float_comparison(d);
  if (how < 0) throw Unsupported{"this comparison"};
  take_boolean(d);
  d.instr.variant = d.take("ftz") ? kFtz : 0;
  TypeInfo result;
  if (set) result = take_type_of(d, {"u16", "s16", "u32", "s32", "f16", "bf16", "f16x2", "bf16x2"});
  const HalfType type = take_half(d);
  d.done();
  if (d.instr.variant && type.bf16) throw Unsupported{"modifier .ftz of .bf16"};
  const bool float_result = result.kind == 'f' || result.kind == 'x';
  if (float_result ? result.name != type.info.name : type.pair && result.bits == 16) {
    throw Unsupported{"a result of type ." + result.name};
  }
  constexpr std::make_integer_sequence<int, kFloatComparisons> kAll;
  d.instr.run =
      type.bf16 ? comparison_of<BF16>(how, type.pair, kAll) : comparison_of<F16>(how, type.pair, kAll);
  if (set) {
    set_operands(d, type.info, result);
  } else if (!type.pair && d.operand(0).second) {
    throw Unsupported{"two predicates from one comparison"};
  } else {
    setp_operands(d, type.info);
  }
}

}  // namespace

std::vector<Form> half_forms() {
  return computing(Family::floating, {{"add", decode_arithmetic<Add, 2>},
                                      {"sub", decode_arithmetic<Sub, 2>},
                                      {"mul", decode_arithmetic<Mul, 2>},
                                      {"fma", decode_arithmetic<Fma, 3>},
                                      {"neg", decode_unary<Negative>},
                                      {"abs", decode_unary<Magnitude>},
                                      {"tanh", decode_unary<Tanh>},
                                      {"ex2", decode_unary<Ex2>},
                                      {"min", decode_extreme<0>},
                                      {"max", decode_extreme<kMax>},
                                      {"setp", decode_compare},
                                      {"set", decode_compare}});
}

}  // namespace gg::emu
