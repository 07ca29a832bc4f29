// SPDX-License-Identifier: MIT
//
// Arithmetic of f32 and f64 as handlers: an operation, its rounding, .ftz and .sat.
// isa/floating.cpp decodes it.

#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>

#include "common/emu/core/units/alu.h"
#include "common/emu/core/units/halves.h"

namespace gg::emu {

enum : uint8_t { kFtz = 1, kSat = 2 };                // of arithmetic
enum : uint8_t { kNaN = 2, kXorSign = 4, kMax = 8 };  // of min and max, beside kFtz

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
constexpr T kLeastNormal = sizeof(T) == 4 ? T(0x1p-126) : T(0x1p-1022);

template <class T>
T flush(T x) {  // .ftz: subnormal numbers become zeros of their sign
  return std::fabs(x) < kLeastNormal<T> ? std::copysign(T(0), x) : x;
}

// x, unless it is a NaN: then the one that it becomes as the result of an operation on these.
inline float canonical(float x, float = 0, float = 0, float = 0) {
  return x != x ? std::bit_cast<float>(0x7FFFFFFFu) : x;
}
inline double quiet(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) | uint64_t(1) << 51);
}
inline double canonical(double x, double a = 0, double b = 0, double c = 0) {
  const double nan = b != b ? b : c != c ? c : a != a ? a : std::bit_cast<double>(0xFFF8000000000000u);
  return x != x ? quiet(nan) : x;
}

template <uint8_t kFlags, class T>
T start(T x) {
  return kFlags & kFtz ? flush(x) : x;
}
// .ftz flushes what would round to less than 2^-126 if exponents had no end: of the results that
// were rounded up to 2^-126, those which 24 bits hold below it, too.
template <class Op, bool kNearest>
bool tiny(double a, double b, double c) {
  if (kNearest) return Op::excess(a, b, c, 0x1p-126 - 0x1p-151) < 0;
  return Op::excess(a, b, c, 0x1p-126 - 0x1p-150) <= 0;  // rounded away from zero
}
template <uint8_t kFlags, class Op, class T>
T finish(T x, T a, T b, T c) {
  if (kFlags & kFtz) x = flush(x);
  if (kFlags & kSat) return x > 0 ? (x < 1 ? x : T(1)) : T(0);  // a NaN, too, becomes +0
  return Op::kFirstNaN ? canonical(x, b, a) : canonical(x, a, b, c);
}
template <class T>
struct Sources {
  T a[kLanes] = {}, b[kLanes] = {}, c[kLanes] = {};
};
template <uint8_t kFlags, size_t kSources, class T>
Sources<T> sources_of(Warp& w, const Instr& in) {
  Sources<T> s;
  const T *a = w.at<T>(in.s[0]), *b = w.at<T>(in.s[1]), *c = w.at<T>(in.s[2]);
  for (int l = 0; l < kLanes; ++l) {
    s.a[l] = start<kFlags>(a[l]);
    if (kSources > 1) s.b[l] = start<kFlags>(b[l]);
    if (kSources > 2) s.c[l] = start<kFlags>(c[l]);
  }
  return s;
}
template <class Op, size_t kSources, class T>
T apply(T a, T b, T c) {
  if constexpr (kSources == 1) return Op::template of<T>(a);
  if constexpr (kSources == 2) return Op::template of<T>(a, b);
  if constexpr (kSources == 3) return Op::template of<T>(a, b, c);
}
// From rounded results to what is written.
template <uint8_t kFlags, class Op, bool kNearest, class T>
Next finish_all(Warp& w, const Instr& in, Mask m, const Sources<T>& s, const T (&rounded)[kLanes]) {
  T values[kLanes];
  bool edge = false;
  for (int l = 0; l < kLanes; ++l) {
    values[l] = finish<kFlags, Op>(rounded[l], s.a[l], s.b[l], s.c[l]);
    edge |= std::fabs(rounded[l]) == kLeastNormal<T>;
  }
  if ((kFlags & kFtz) && edge) {  // rare
    for (int l = 0; l < kLanes; ++l) {
      const bool rounded_up =
          std::fabs(rounded[l]) == kLeastNormal<T> && tiny<Op, kNearest>(s.a[l], s.b[l], s.c[l]);
      if (rounded_up) values[l] = kFlags & kSat ? T(0) : std::copysign(T(0), rounded[l]);
    }
  }
  put(w, in.d, m, values);
  return Next::go_on;
}

// The operations. excess: a number with the sign of |exact result| - limit, asked where the rounded
// result is 2^-126. kFirstNaN: of two NaN operands the first is handed on.
struct FloatOperation {
  static constexpr bool kFirstNaN = false;
  // Exact there, or no such result.
  static double excess(double, double, double, double) { return 1; }
};
struct Add : FloatOperation {  // a subnormal sum is exact
  template <class T>
  static T of(T a, T b) {
    return a + b;
  }
};
struct Sub : FloatOperation {
  template <class T>
  static T of(T a, T b) {
    return a - b;
  }
};
struct Mul : FloatOperation {
  template <class T>
  static T of(T a, T b) {
    return a * b;
  }
  static double excess(double a, double b, double, double limit) { return std::fabs(a * b) - limit; }
};
struct Div : FloatOperation {
  static constexpr bool kFirstNaN = true;
  template <class T>
  static T of(T a, T b) {
    return a / b;
  }
  static double excess(double a, double b, double, double limit) {
    return std::fabs(a) - std::fabs(b) * limit;
  }
};
struct Fma : FloatOperation {
  template <class T>
  static T of(T a, T b, T c) {
    return std::fma(a, b, c);
  }
  static double excess(double a, double b, double c, double limit) {
    return std::fabs(sum_to_odd(a * b, c)) - limit;
  }
};
struct Rcp : FloatOperation {
  template <class T>
  static T of(T a) {
    return T(1) / a;
  }
  static double excess(double a, double, double, double limit) { return 1 - std::fabs(a) * limit; }
};
struct Sqrt : FloatOperation {
  template <class T>
  static T of(T a) {
    return std::sqrt(a);
  }
};

// To nearest even: what the host's units do anyway, so the compiler may use vectors.
template <class Op, size_t kSources, class T, uint8_t kFlags>
Next nearest(Warp& w, const Instr& in, Mask m) {
  if constexpr (kFlags & kFtz) {
    const Sources<T> s = sources_of<kFlags, kSources, T>(w, in);
    T rounded[kLanes];
    for (int l = 0; l < kLanes; ++l) rounded[l] = apply<Op, kSources>(s.a[l], s.b[l], s.c[l]);
    return finish_all<kFlags, Op, true>(w, in, m, s, rounded);
  }
  const T zero = 0;
  if constexpr (kSources == 1) {
    return map1<T, T>(w, in, m,
                      [=](T a) { return finish<kFlags, Op>(Op::template of<T>(a), a, zero, zero); });
  } else if constexpr (kSources == 2) {
    return map2<T, T, T>(w, in, m,
                         [=](T a, T b) { return finish<kFlags, Op>(Op::template of<T>(a, b), a, b, zero); });
  } else {
    return map3<T, T, T, T>(
        w, in, m, [](T a, T b, T c) { return finish<kFlags, Op>(Op::template of<T>(a, b, c), a, b, c); });
  }
}

// Other roundings: the host's units set to them. `volatile` keeps operations where the mode is on.
class HostRounding {
 public:
  explicit HostRounding(int mode) : before_(std::fegetround()) {
    static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[mode]);
  }
  ~HostRounding() { std::fesetround(before_); }

 private:
  int before_;
};
template <class Op, size_t kSources, class T, uint8_t kFlags>
Next directed(Warp& w, const Instr& in, Mask m) {
  const Sources<T> s = sources_of<kFlags, kSources, T>(w, in);
  T rounded[kLanes];
  {
    const HostRounding mode(in.variant2);
    for (int l = 0; l < kLanes; ++l) {
      const volatile T a = s.a[l], b = s.b[l], c = s.c[l];
      volatile T result = apply<Op, kSources, T>(a, b, c);
      rounded[l] = result;
    }
  }
  return finish_all<kFlags, Op, false>(w, in, m, s, rounded);
}

template <class Op, size_t kSources>
Handler arithmetic_of(const TypeInfo& type, int rounding, uint8_t flags) {
  if (type.bits == 64) return rounding ? directed<Op, kSources, double, 0> : nearest<Op, kSources, double, 0>;
  static constexpr Handler kNearest[] = {nearest<Op, kSources, float, 0>, nearest<Op, kSources, float, 1>,
                                         nearest<Op, kSources, float, 2>, nearest<Op, kSources, float, 3>};
  static constexpr Handler kDirected[] = {directed<Op, kSources, float, 0>, directed<Op, kSources, float, 1>,
                                          directed<Op, kSources, float, 2>, directed<Op, kSources, float, 3>};
  return rounding ? kDirected[flags] : kNearest[flags];
}

}  // namespace gg::emu
