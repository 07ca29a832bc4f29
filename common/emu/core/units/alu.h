// SPDX-License-Identifier: MIT
//
// The code that the arithmetic families share: strict operand lists, handlers chosen by type, and
// what a comparison does with its outcomes.

#pragma once

#include <type_traits>

#include "common/emu/core/decode/decode.h"

namespace gg::emu {

// Exactly `count` operands; d|p as the first only if `pair`, ! only before a predicate register.
void want_operands(const Decoder& d, size_t count, bool pair = false);
// The next type, which must be one of these.
TypeInfo take_type_of(Decoder& d, std::initializer_list<const char*> names);
// Operands 1 .. `sources` as sources and operand 0 as the destination, all of `type`.
void same_operands(Decoder& d, size_t sources, const TypeInfo& type);

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// The handler Family<Op, T>::run for an integer type. T is signed only for .s types.
template <template <class, class> class Family, class Op>
Handler handler_of(const TypeInfo& type) {
  const bool is_signed = type.kind == 's';
  switch (type.bits) {
    case 16:
      return is_signed ? Family<Op, int16_t>::run : Family<Op, uint16_t>::run;
    case 32:
      return is_signed ? Family<Op, int32_t>::run : Family<Op, uint32_t>::run;
    case 64:
      return is_signed ? Family<Op, int64_t>::run : Family<Op, uint64_t>::run;
  }
  throw Unsupported{"type ." + type.name};
}
template <class Op, class T>
struct Unary {
  static Next run(Warp& w, const Instr& in, Mask m) {
    return map1<T, T>(w, in, m, [](T a) { return Op::template of<T>(a); });
  }
};
template <class Op, class T>
struct Binary {
  static Next run(Warp& w, const Instr& in, Mask m) {
    return map2<T, T, T>(w, in, m, [](T a, T b) { return Op::template of<T>(a, b); });
  }
};
template <class Op, class T>
struct Ternary {
  static Next run(Warp& w, const Instr& in, Mask m) {
    return map3<T, T, T, T>(w, in, m, [](T a, T b, T c) { return Op::template of<T>(a, b, c); });
  }
};

// Predicates are one byte a lane, 0 or 1. `setp` and `set` compare first and then do this with
// the 32 outcomes.
using Outcomes = uint8_t[kLanes];

// The modifiers .and, .or, .xor of setp and set; call it before the types are taken.
void take_boolean(Decoder& d);
// Operands of setp: p or p|q, a, b and, with a boolean operator, c; of set the same with a
// destination of `result`.
void setp_operands(Decoder& d, const TypeInfo& type);
void set_operands(Decoder& d, const TypeInfo& type, const TypeInfo& result);
// The value that set writes for true: all ones, or one.
uint64_t true_bits(const TypeInfo& result);

// yes = yes bool c, for the instruction's boolean operator if it has one.
void combine(Warp& w, const Instr& in, Outcomes& yes);
Next store_combined(Warp& w, const Instr& in, Mask m, Outcomes& yes);

// setp: p = yes bool c, and q = !yes bool c. set: d = yes bool c ? true_bits : 0.
inline Next store_outcomes(Warp& w, const Instr& in, Mask m, Outcomes& yes) {
  if (in.variant2 || in.d2 || in.bytes) return store_combined(w, in, m, yes);
  put(w, in.d, m, yes);
  return Next::go_on;
}

// The fourteen comparisons of floats: six that are false on a NaN, .ne included, and six true.
enum FloatComparison : uint8_t {
  f_eq,
  f_ne,
  f_lt,
  f_le,
  f_gt,
  f_ge,
  f_equ,
  f_neu,
  f_ltu,
  f_leu,
  f_gtu,
  f_geu,
  f_num,
  f_nan
};
constexpr int kFloatComparisons = 14;
int take_float_comparison(Decoder& d);  // -1: none
template <int kHow, class T>
inline bool compare_floats(T a, T b) {
  const bool unordered = a != a || b != b;
  switch (kHow) {
    case f_eq:
      return a == b;
    case f_ne:
      return a < b || a > b;
    case f_lt:
      return a < b;
    case f_le:
      return a <= b;
    case f_gt:
      return a > b;
    case f_ge:
      return a >= b;
    case f_equ:
      return unordered || a == b;
    case f_neu:
      return !(a == b);
    case f_ltu:
      return !(a >= b);
    case f_leu:
      return !(a > b);
    case f_gtu:
      return !(a <= b);
    case f_geu:
      return !(a < b);
    case f_num:
      return !unordered;
    default:
      return unordered;
  }
}

// The handler of add, sub, mul or fma of f32. Rounding: 0 .rn, 1 .rz, 2 .rm, 3 .rp; all but the
// first want it in instr.variant2 too.
Handler f32_arithmetic(const std::string& opcode, int rounding, bool ftz);

}  // namespace gg::emu
