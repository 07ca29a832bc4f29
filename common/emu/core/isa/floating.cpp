// SPDX-License-Identifier: MIT
//
// Arithmetic and comparison of f32 and f64. PTX ISA: "Floating Point Instructions", "Comparison and
// Selection Instructions". Where the ISA leaves a NaN open, an H200's is given: 0x7FFFFFFF for f32;
// for f64 an operand that is one, made quiet, or 0xFFF8000000000000.
//
// The .approx instructions, and div.full, are computed as exactly as double allows. Hardware
// differs in the last bits; each instruction's section in the ISA says how far it may. An H200 was
// seen to stay within these relative errors, which tests/emu/alu_float_test.cpp asks of the
// emulator: 2^-23 for rcp and sqrt, 2^-22.9 for rsqrt, 2^-22 for div, ex2 and lg2 (of lg2 the
// absolute error where that is larger), 2^-11 for tanh; for sin and cos an absolute one of 2^-20.4
// within a turn. Where a result is a zero, an infinity or a NaN, they agree.

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/float_arithmetic.h"

namespace gg::emu {
namespace {

// ---- decoding of arithmetic ----

struct Mode {
  TypeInfo type;
  uint8_t flags = 0;
};
// .ftz, .sat where `may_saturate`, and the type: both are for f32 only.
Mode take_mode(Decoder& d, bool may_saturate) {
  Mode mode;
  mode.flags = uint8_t((d.take("ftz") ? kFtz : 0) | (may_saturate && d.take("sat") ? kSat : 0));
  mode.type = take_type_of(d, {"f32", "f64"});
  d.done();
  if (mode.flags && mode.type.bits == 64) throw Unsupported{"modifier .ftz or .sat of ." + mode.type.name};
  return mode;
}
int take_rounding(Decoder& d) { return d.take_one({"rn", "rz", "rm", "rp"}); }

template <class Op, size_t kSources>
void decode_arithmetic(Decoder& d) {  // add, sub, mul, fma, mad
  int rounding = take_rounding(d);
  if (rounding < 0 && kSources == 3) throw Unsupported{"no rounding"};
  rounding = std::max(rounding, 0);
  const Mode mode = take_mode(d, true);
  d.instr.run = arithmetic_of<Op, kSources>(mode.type, rounding, mode.flags);
  d.instr.variant2 = uint8_t(rounding);
  same_operands(d, kSources, mode.type);
}

// ---- approximations ----

// div.approx is a * (1 / b): beyond 2^126 that reciprocal is subnormal and taken for zero.
struct DivApprox : Div {
  template <class T>
  static T of(T a, T b) {
    if (std::fabs(b) > T(0x1p126) && std::fabs(b) < INFINITY) return a * std::copysign(T(0), b);
    return a / b;
  }
};
struct Rsqrt : FloatOperation {
  template <class T>
  static T of(T a) {
    return T(1 / std::sqrt(double(a)));
  }
};
struct Sin : FloatOperation {
  template <class T>
  static T of(T a) {
    return T(std::sin(double(a)));
  }
};
struct Cos : FloatOperation {
  template <class T>
  static T of(T a) {
    return T(std::cos(double(a)));
  }
};
struct Lg2 : FloatOperation {
  template <class T>
  static T of(T a) {
    return T(std::log2(double(a)));
  }
};
struct Ex2 : FloatOperation {
  template <class T>
  static T of(T a) {
    return T(std::exp2(double(a)));
  }
};
struct Tanh : FloatOperation {
  template <class T>
  static T of(T a) {
    return T(std::tanh(double(a)));
  }
};

// rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: of the upper words only, the lower word of the
// result being zero.
template <class Op>
Next upper_word(Warp& w, const Instr& in, Mask m) {
  return map1<double, double>(w, in, m, [](double a) {
    constexpr uint64_t kUpper = 0xFFFFFFFF00000000u;
    const double x = flush(std::bit_cast<double>(std::bit_cast<uint64_t>(a) & kUpper));
    const double y = flush(Op::template of<double>(a != a ? a : x));
    return std::bit_cast<double>(std::bit_cast<uint64_t>(canonical(y, a)) & kUpper);
  });
}

// div, rcp, sqrt with a rounding; or .approx, for div .full as well.
template <class Op, class Approximate, size_t kSources>
void decode_quotient(Decoder& d) {
  const int approximate = d.take_one({"approx", "full"});
  int rounding = approximate < 0 ? take_rounding(d) : 0;
  if (rounding < 0) throw Unsupported{"no rounding"};
  const std::string& opcode = d.statement().opcode;
  if (approximate == 1 && opcode != "div") throw Unsupported{"modifier .full"};
  if (approximate == 0 && opcode == "rcp" && d.statement().has("f64")) {
    if (!d.take("ftz")) throw Unsupported{"rcp.approx.f64 without .ftz"};
    d.instr.run = upper_word<Rcp>;
    same_operands(d, 1, take_type_of(d, {"f64"}));
    return d.done();
  }
  const Mode mode = take_mode(d, false);
  if (approximate >= 0 && mode.type.bits == 64) throw Unsupported{"an approximation of ." + mode.type.name};
  d.instr.run = approximate == 0 ? arithmetic_of<Approximate, kSources>(mode.type, 0, mode.flags)
                                 : arithmetic_of<Op, kSources>(mode.type, rounding, mode.flags);
  d.instr.variant2 = uint8_t(rounding);
  same_operands(d, kSources, mode.type);
}
void decode_rsqrt(Decoder& d) {
  if (!d.take("approx")) throw Unsupported{"no .approx"};
  const bool ftz = d.take("ftz");
  const TypeInfo type = take_type_of(d, {"f32", "f64"});
  d.done();
  if (type.bits == 32) {
    d.instr.run = ftz ? nearest<Rsqrt, 1, float, kFtz> : nearest<Rsqrt, 1, float, 0>;
  } else {
    d.instr.run = ftz ? upper_word<Rsqrt> : nearest<Rsqrt, 1, double, 0>;
  }
  same_operands(d, 1, type);
}
template <class Op, bool kMayFlush>
void decode_function(Decoder& d) {  // sin, cos, lg2, ex2, tanh
  if (!d.take("approx")) throw Unsupported{"no .approx"};
  const bool ftz = kMayFlush && d.take("ftz");
  const TypeInfo type = take_type_of(d, {"f32"});
  d.done();
  d.instr.run = ftz ? nearest<Op, 1, float, kFtz> : nearest<Op, 1, float, 0>;
  same_operands(d, 1, type);
}

// ---- signs, extremes ----

template <class T, bool kNegates, bool kFlushes>
Next sign(Warp& w, const Instr& in, Mask m) {
  return map1<T, T>(w, in, m, [](T a) {
    if (kFlushes) a = flush(a);
    return a != a ? canonical(a, a) : kNegates ? -a : std::fabs(a);
  });
}
template <bool kNegates>
void decode_sign(Decoder& d) {  // abs, neg
  const Mode mode = take_mode(d, false);
  d.instr.run = mode.type.bits == 64 ? sign<double, kNegates, false>
                : mode.flags         ? sign<float, kNegates, true>
                                     : sign<float, kNegates, false>;
  same_operands(d, 1, mode.type);
}

// A NaN loses against a number, unless .NaN: then it wins. -0 is less than +0. .xorsign.abs: of the
// magnitudes, and the sign is that of the product.
template <class T, uint8_t kFlags>
T extreme(T a, T b) {
  a = start<kFlags>(a), b = start<kFlags>(b);
  const Bits<T> sign = (std::bit_cast<Bits<T>>(a) ^ std::bit_cast<Bits<T>>(b)) & ~(~Bits<T>(0) >> 1);
  if (kFlags & kXorSign) a = std::fabs(a), b = std::fabs(b);
  const Bits<T> a_bits = std::bit_cast<Bits<T>>(a), b_bits = std::bit_cast<Bits<T>>(b);
  const T equal = std::bit_cast<T>(kFlags & kMax ? a_bits & b_bits : a_bits | b_bits);
  T r = (kFlags & kMax ? a > b : a < b) ? a : b;
  r = a == b ? equal : r;
  r = b != b ? (kFlags & kNaN ? b : a) : r;
  r = a != a ? (kFlags & kNaN ? a : b) : r;
  if (kFlags & kXorSign) r = r != r ? r : std::bit_cast<T>(std::bit_cast<Bits<T>>(r) | sign);
  return canonical(r, r);
}
template <class T, uint8_t kFlags>
Next extremes(Warp& w, const Instr& in, Mask m) {
  return map2<T, T, T>(w, in, m, [](T a, T b) { return extreme<T, kFlags>(a, b); });
}
template <uint8_t kWhich>
void decode_extreme(Decoder& d) {  // min, max
  const bool ftz = d.take("ftz"), nan = d.take("NaN"), xorsign = d.take("xorsign");
  if (xorsign != d.take("abs")) throw Unsupported{".xorsign without .abs"};
  const TypeInfo type = take_type_of(d, {"f32", "f64"});
  d.done();
  const uint8_t flags = uint8_t((ftz ? kFtz : 0) | (nan ? kNaN : 0) | (xorsign ? kXorSign : 0));
  if (flags && type.bits == 64) throw Unsupported{"a modifier of ." + type.name};
  static constexpr Handler table[] = {extremes<float, kWhich>,     extremes<float, kWhich | 1>,
                                      extremes<float, kWhich | 2>, extremes<float, kWhich | 3>,
                                      extremes<float, kWhich | 4>, extremes<float, kWhich | 5>,
                                      extremes<float, kWhich | 6>, extremes<float, kWhich | 7>};
  d.instr.run = type.bits == 64 ? extremes<double, kWhich> : table[flags];
  same_operands(d, 2, type);
}

template <class B>
Next copysign(Warp& w, const Instr& in, Mask m) {  // a's sign, b's magnitude
  constexpr B kMagnitude = ~B(0) >> 1;
  return map2<B, B, B>(w, in, m, [](B a, B b) { return (a & ~kMagnitude) | (b & kMagnitude); });
}
void decode_copysign(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"f32", "f64"});
  d.done();
  d.instr.run = type.bits == 32 ? copysign<uint32_t> : copysign<uint64_t>;
  same_operands(d, 2, type);
}

// ---- comparisons ----

enum { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };

template <class T>
Next testp(Warp& w, const Instr& in, Mask m) {
  const int what = in.variant;
  return map1<uint8_t, T>(w, in, m, [=](T a) {
    const int is = std::fpclassify(a);
    switch (what) {
      case kFinite:
        return uint8_t(is != FP_NAN && is != FP_INFINITE);
      case kInfinite:
        return uint8_t(is == FP_INFINITE);
      case kNumber:
        return uint8_t(is != FP_NAN);
      case kNotANumber:
        return uint8_t(is == FP_NAN);
      case kNormal:
        return uint8_t(is == FP_NORMAL || is == FP_ZERO);
      default:
        return uint8_t(is == FP_SUBNORMAL);
    }
  });
}
void decode_testp(Decoder& d) {
  const int what = d.take_one({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  const TypeInfo type = take_type_of(d, {"f32", "f64"});
  d.done();
  if (what < 0) throw Unsupported{"this test"};
  want_operands(d, 2);
  d.instr.variant = uint8_t(what);
  d.instr.run = type.bits == 32 ? testp<float> : testp<double>;
  d.instr.s[0] = d.source(1, type);
  d.instr.d = d.predicate_destination(d.operand(0));
}

template <class T, uint8_t kFlags, int kHow>
Next compare(Warp& w, const Instr& in, Mask m) {
  const T *a = w.at<T>(in.s[0]), *b = w.at<T>(in.s[1]);
  Outcomes yes;
  for (int l = 0; l < kLanes; ++l) yes[l] = compare_floats<kHow>(start<kFlags>(a[l]), start<kFlags>(b[l]));
  return store_outcomes(w, in, m, yes);
}
template <class T, uint8_t kFlags, int... kHow>
Handler comparison_of(int how, std::integer_sequence<int, kHow...>) {
  static constexpr Handler table[] = {compare<T, kFlags, kHow>...};
  return table[how];
}
void decode_compare(Decoder& d) {  // setp, set
  const bool set = d.statement().opcode == "set";
  const int how = take_float_comparison(d);
  if (how < 0) throw Unsupported{"this comparison"};
  take_boolean(d);
  const bool ftz = d.take("ftz");
  TypeInfo result;
  if (set) result = take_type_of(d, {"u32", "s32", "f32", "f16", "bf16"});
  const TypeInfo type = take_type_of(d, {"f32", "f64"});
  d.done();
  if (ftz && (type.bits == 64 || result.name == "bf16")) throw Unsupported{"modifier .ftz"};
  constexpr std::make_integer_sequence<int, kFloatComparisons> kAll;
  d.instr.run = type.bits == 64 ? comparison_of<double, 0>(how, kAll)
                : ftz           ? comparison_of<float, kFtz>(how, kAll)
                                : comparison_of<float, 0>(how, kAll);
  if (set) {
    set_operands(d, type, result);
  } else {
    setp_operands(d, type);
  }
}

}  // namespace

std::vector<Form> floating_forms() {
  return computing(Family::floating, {{"add", decode_arithmetic<Add, 2>},
                                      {"sub", decode_arithmetic<Sub, 2>},
                                      {"mul", decode_arithmetic<Mul, 2>},
                                      {"fma", decode_arithmetic<Fma, 3>},
                                      {"mad", decode_arithmetic<Fma, 3>},
                                      {"div", decode_quotient<Div, DivApprox, 2>},
                                      {"rcp", decode_quotient<Rcp, Rcp, 1>},
                                      {"sqrt", decode_quotient<Sqrt, Sqrt, 1>},
                                      {"rsqrt", decode_rsqrt},
                                      {"sin", decode_function<Sin, true>},
                                      {"cos", decode_function<Cos, true>},
                                      {"lg2", decode_function<Lg2, true>},
                                      {"ex2", decode_function<Ex2, true>},
                                      {"tanh", decode_function<Tanh, false>},
                                      {"abs", decode_sign<false>},
                                      {"neg", decode_sign<true>},
                                      {"min", decode_extreme<0>},
                                      {"max", decode_extreme<kMax>},
                                      {"copysign", decode_copysign},
                                      {"testp", decode_testp},
                                      {"setp", decode_compare},
                                      {"set", decode_compare}});
}

}  // namespace gg::emu
