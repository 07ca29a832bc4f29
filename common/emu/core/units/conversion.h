// SPDX-License-Identifier: MIT
//
// A conversion between numbers of any two types, and the common ones as vector code: cvt.cpp
// decodes cvt to these.

#pragma once

#include "common/emu/core/units/alu.h"

namespace gg::emu {

struct Layout {  // of a float
  int exponent_bits = 0, mantissa_bits = 0;
  uint64_t nan = 0;  // the code of a NaN result
  // e4m3 has none: its last code is NaN, the one before it the largest number.
  bool infinities = true;
  int shift = 0;  // tf32 sits in the upper 19 bits of a word
};
struct Kind {  // of source or destination
  bool real = false, is_signed = false;
  int bits = 0;
  Layout layout;
};

// Throws Unsupported for a type that cvt does not know.
Kind kind_of(const TypeInfo& type);

inline uint64_t mask_of(int bits) { return bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1; }

// .rn, .rz, .rm and .rp, in this order, then .rna.
enum Rounding : uint8_t { to_even, to_zero, down, up, ties_away };

struct Conversion {
  Kind to, from;
  size_t to_bytes = 0, from_bytes = 0;  // of the registers
  Rounding rounding = to_even;
  bool whole = false;  // .rni .rzi .rmi .rpi
  bool sat = false, ftz = false, relu = false, satfinite = false;
};

// The bits of the converted number, and more above them where the number is negative.
uint64_t convert_one(const Conversion& conversion, uint64_t bits);

// conversion_fast.cpp: vector code for a conversion, null if there is none. It says the same as
// convert_one, and the tests compare them. `modes` is the rounding: "", "rn", "rzi".
Handler fast_conversion(const std::string& modes, const TypeInfo& to, const TypeInfo& from);
// The same for pairs of 8-bit floats, `type` .e4m3x2 or .e5m2x2: to .f16x2, and from two of .f32.
Handler widening_of_fp8(const TypeInfo& type);
Handler narrowing_to_fp8(const TypeInfo& type, bool relu);
Next round_away_to_tf32(Warp& warp, const Instr& instr, Mask mask);

}  // namespace gg::emu
