// SPDX-License-Identifier: MIT
//
// cvt to and from the formats that compute capability 10.0 added: pairs of e2m1 (4 bits), e2m3
// and e3m2 (6 bits, a byte each) and ue8m0 (an exponent alone, for scales). PTX ISA: "Data
// Movement and Conversion
// Instructions: cvt", "Alternate Floating-Point Data Formats". The first source, or the upper half
// of a pair, goes to the upper part of the result. Pairs of e4m3 and e5m2, which older devices have
// too, are in cvt.cpp.

#include <algorithm>
#include <array>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/alu.h"
#include "common/emu/core/units/halves.h"

namespace gg::emu {
namespace {

// As halves.h describes formats. None has an infinity or a NaN: .satfinite makes the largest number
// of both, and of a NaN the positive one. kPitch: bits from one number of a pair to the other.
struct E2M1 {
  static constexpr int kMantissaBits = 1, kLeastExponent = 0, kSignBit = 3, kPitch = 4;
  static constexpr double kMost = 6;
  static constexpr uint16_t kNaN = 0x7;
  static constexpr float kScale = 0x1p-126f;
  static constexpr int kDrop = 22;
};
struct E2M3 {
  static constexpr int kMantissaBits = 3, kLeastExponent = 0, kSignBit = 5, kPitch = 8;
  static constexpr double kMost = 7.5;
  static constexpr uint16_t kNaN = 0x1F;
  static constexpr float kScale = 0x1p-126f;
  static constexpr int kDrop = 20;
};
struct E3M2 {
  static constexpr int kMantissaBits = 2, kLeastExponent = -2, kSignBit = 5, kPitch = 8;
  static constexpr double kMost = 28;
  static constexpr uint16_t kNaN = 0x1F;
  static constexpr float kScale = 0x1p-124f;
  static constexpr int kDrop = 21;
};

// ---- numbers to e2m1, e2m3, e3m2 ----

template <class F, bool kRelu>
uint32_t narrowed(float a) {
  if (kRelu) a = a < 0 || a == 0 ? 0 : a;
  return nearest_code<F>(double(a));
}
template <class F, class Pair, bool kRelu>
Next narrow_floats(Warp& w, const Instr& in, Mask m) {
  return map2<Pair, float, float>(w, in, m, [](float a, float b) {
    return Pair(narrowed<F, kRelu>(a) << F::kPitch | narrowed<F, kRelu>(b));
  });
}
template <bool kRelu>
Next narrow_halves(Warp& w, const Instr& in, Mask m) {  // f16x2 to e2m1x2
  return map1<uint8_t, uint32_t>(w, in, m, [](uint32_t pair) {
    const float upper = half_value<F16>(uint16_t(pair >> 16)), lower = half_value<F16>(uint16_t(pair));
    return uint8_t(narrowed<E2M1, kRelu>(upper) << E2M1::kPitch | narrowed<E2M1, kRelu>(lower));
  });
}

// ---- and back to f16x2, exactly ----

template <class F>
uint16_t widened(uint32_t code) {
  const uint32_t magnitude = code & ((1u << F::kSignBit) - 1);
  const float value = std::bit_cast<float>(magnitude << F::kDrop) * (1 / F::kScale);
  return uint16_t(nearest_code<F16>(double(value)) | (code >> F::kSignBit & 1) << 15);
}
template <class F>
const std::array<uint16_t, 256>& halves_of() {
  static const std::array<uint16_t, 256> table = [] {
    std::array<uint16_t, 256> t{};
    for (uint32_t code = 0; code < 2u << F::kSignBit; ++code) t[code] = widened<F>(code);
    return t;
  }();
  return table;
}
// The ISA says only what a byte with zeros above its 6 bits means.
template <class F, class Pair>
void require_zeros(Warp& w, const Instr& in, Mask m) {
  constexpr int kBits = F::kSignBit + 1;
  if (kBits == F::kPitch) return;
  const Pair* a = w.at<Pair>(in.s[0]);
  for (Lanes l(m); l; ++l) {
    if ((a[*l] & 0xC0C0) == 0) continue;
    raise_final(FaultKind::unsupported, w, in, *l,
                "not supported: the source is " + hex(a[*l]) + ", with bits set above a byte's lower 6",
                "the ISA says what numbers of 6 bits with zeros above them become, and nothing of others");
  }
}
template <class F, class Pair, bool kRelu>
Next widen_pair(Warp& w, const Instr& in, Mask m) {
  require_zeros<F, Pair>(w, in, m);
  const std::array<uint16_t, 256>& table = halves_of<F>();
  constexpr uint32_t kMask = (2u << F::kSignBit) - 1;
  return map1<uint32_t, Pair>(w, in, m, [&](Pair a) {
    const auto half = [&](uint32_t code) -> uint32_t {
      const uint16_t value = table[code & kMask];
      return kRelu && value & 0x8000 ? 0 : value;
    };
    return half(uint32_t(a) >> F::kPitch) << 16 | half(a);
  });
}

// ---- ue8m0: code e is 2^(e - 127), 0xFF a NaN; there is neither zero nor sign ----

struct ScaleMode {
  bool up = false, satfinite = false;
};
// The power of two next to the magnitude of an f32, below it (.rz) or above it (.rp). Less than the
// least power becomes that. Beyond the largest one is the NaN, or with .satfinite the largest. The
// ISA does not say what becomes of negative numbers; CUDA's functions for the host (cuda_fp8.h)
// take the magnitude.
uint32_t scale_code(float x, ScaleMode mode) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7FFFFFFF;
  constexpr uint32_t kInfinity = 0x7F800000, kLeast = 0x400000;  // 2^-127, a subnormal number
  if (magnitude > kInfinity) return 0xFF;
  uint32_t code = magnitude >> 23;
  const bool exact = (magnitude & 0x7FFFFF) == 0;
  if (mode.up && !exact && magnitude > kLeast) ++code;
  return mode.satfinite ? std::min(code, 0xFEu) : code;
}
Next floats_to_scales(Warp& w, const Instr& in, Mask m) {
  const ScaleMode mode{in.variant != 0, in.variant2 != 0};
  return map2<uint16_t, float, float>(
      w, in, m, [=](float a, float b) { return uint16_t(scale_code(a, mode) << 8 | scale_code(b, mode)); });
}
Next bf16s_to_scales(Warp& w, const Instr& in, Mask m) {
  const ScaleMode mode{in.variant != 0, in.variant2 != 0};
  return map1<uint16_t, uint32_t>(w, in, m, [=](uint32_t pair) {
    const float upper = std::bit_cast<float>(pair & 0xFFFF0000), lower = std::bit_cast<float>(pair << 16);
    return uint16_t(scale_code(upper, mode) << 8 | scale_code(lower, mode));
  });
}
uint32_t bf16_of_scale(uint32_t code) { return code == 0xFF ? 0x7FFF : code ? code << 7 : 0x40; }
Next scales_to_bf16s(Warp& w, const Instr& in, Mask m) {
  return map1<uint32_t, uint16_t>(
      w, in, m, [](uint16_t a) { return bf16_of_scale(a >> 8) << 16 | bf16_of_scale(a & 0xFF); });
}

// ---- decoding ----

void decode_scale(Decoder& d, const TypeInfo& to, const TypeInfo& from, int rounding, bool satfinite) {
  if (to.name == "bf16x2") {
    if (rounding != 0 || satfinite) throw Unsupported{"this rounding or modifier of .bf16x2.ue8m0x2"};
    d.instr.run = scales_to_bf16s;
  } else {
    if (rounding != 1 && rounding != 3) throw Unsupported{"this rounding to .ue8m0x2"};
    if (from.name != "f32" && from.name != "bf16x2") throw Unsupported{"these types"};
    d.instr.variant = rounding == 3;
    d.instr.variant2 = satfinite;
    d.instr.run = from.name == "f32" ? floats_to_scales : bf16s_to_scales;
  }
}

Handler narrowing(const TypeInfo& to, const TypeInfo& from, bool relu) {
  if (from.name == "f16x2" && to.name == "e2m1x2") return relu ? narrow_halves<true> : narrow_halves<false>;
  if (from.name != "f32") throw Unsupported{"these types"};
  if (to.name == "e2m1x2")
    return relu ? narrow_floats<E2M1, uint8_t, true> : narrow_floats<E2M1, uint8_t, false>;
  if (to.name == "e2m3x2")
    return relu ? narrow_floats<E2M3, uint16_t, true> : narrow_floats<E2M3, uint16_t, false>;
  return relu ? narrow_floats<E3M2, uint16_t, true> : narrow_floats<E3M2, uint16_t, false>;
}
Handler widening(const TypeInfo& to, const TypeInfo& from, bool relu) {
  if (to.name != "f16x2") throw Unsupported{"these types"};
  if (from.name == "e2m1x2") return relu ? widen_pair<E2M1, uint8_t, true> : widen_pair<E2M1, uint8_t, false>;
  if (from.name == "e2m3x2")
    return relu ? widen_pair<E2M3, uint16_t, true> : widen_pair<E2M3, uint16_t, false>;
  return relu ? widen_pair<E3M2, uint16_t, true> : widen_pair<E3M2, uint16_t, false>;
}

void decode_narrow(Decoder& d) {
  const bool stochastic = d.take("rs");
  const int rounding = d.take_one({"rn", "rz", "rm", "rp"});
  const bool relu = d.take("relu"), satfinite = d.take("satfinite");
  const TypeInfo to = d.take_type(), from = d.take_type();
  if (stochastic) {
    throw Unsupported{
        "stochastic rounding (.rs): where its random bits are added, the PTX ISA shows in figures only"};
  }
  d.done();
  const auto is_tiny = [](const TypeInfo& t) {
    return t.name == "e2m1x2" || t.name == "e2m3x2" || t.name == "e3m2x2";
  };
  if (to.name == "ue8m0x2" || from.name == "ue8m0x2") {
    if (relu) throw Unsupported{"modifier .relu of .ue8m0x2"};
    decode_scale(d, to, from, rounding, satfinite);
  } else if (is_tiny(to) || is_tiny(from)) {
    if (rounding != 0) throw Unsupported{"this rounding of a pair"};
    if (satfinite != is_tiny(to))
      throw Unsupported{"no .satfinite where it belongs, or one where it does not"};
    d.instr.run = is_tiny(to) ? narrowing(to, from, relu) : widening(to, from, relu);
  } else {
    throw Unsupported{"type ." + to.name + " or ." + from.name};
  }
  const size_t sources = from.name == "f32" ? 2 : 1;
  want_operands(d, sources + 1);
  for (size_t i = 0; i < sources; ++i) d.instr.s[i] = d.source(i + 1, from);
  d.instr.d = d.destination(0, to);
}

}  // namespace

std::vector<Form> cvt_narrow_forms() { return computing(Family::convert, {{"cvt", decode_narrow}}); }

}  // namespace gg::emu
