// SPDX-License-Identifier: MIT
//
// The common conversions as vector code. PTX ISA: "Data Movement and Conversion Instructions: cvt".

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>

#include "common/emu/core/units/conversion.h"
#include "common/emu/core/units/halves.h"

namespace gg::emu {
namespace {

// cvt.rn.f16x2.e4m3x2: 256 codes are soon converted once for all.
template <bool kE4M3>
Next widen_fp8(Warp& w, const Instr& in, Mask m) {
  static const std::array<uint16_t, 256> table = [] {
    Conversion c;
    c.to = kind_of(type_info("f16"));
    c.from = kind_of(type_info(kE4M3 ? "e4m3x2" : "e5m2x2"));
    std::array<uint16_t, 256> t;
    for (size_t code = 0; code < t.size(); ++code) t[code] = uint16_t(convert_one(c, code));
    return t;
  }();
  return map1<uint32_t, uint16_t>(w, in, m,
                                  [](uint16_t a) { return uint32_t(table[a >> 8]) << 16 | table[a & 0xFF]; });
}
template <class To, class From>
Next plain(Warp& w, const Instr& in, Mask m) {
  return map1<To, From>(w, in, m, [](From a) { return To(a); });
}
Next widen_f16(Warp& w, const Instr& in, Mask m) {
  return map1<float, uint16_t>(w, in, m, [](uint16_t a) {
    const float x = half_value<F16>(a);
    return x != x ? std::bit_cast<float>(0x7FFFFFFFu) : x;
  });
}
Next widen_bf16(Warp& w, const Instr& in, Mask m) {  // a NaN stays as it is
  return map1<uint32_t, uint16_t>(w, in, m, [](uint16_t a) { return uint32_t(a) << 16; });
}
template <class F>
Next narrow_float(Warp& w, const Instr& in, Mask m) {
  return map1<uint16_t, float>(w, in, m, [](float a) { return nearest_code<F>(double(a)); });
}
template <class F>
Next narrow_floats(Warp& w, const Instr& in, Mask m) {
  return map2<uint32_t, float, float>(w, in, m, [](float a, float b) {
    return uint32_t(nearest_code<F>(double(a))) << 16 | nearest_code<F>(double(b));
  });
}
template <class F, bool kRelu>
Next narrow_to_fp8(Warp& w, const Instr& in, Mask m) {
  return map2<uint16_t, float, float>(w, in, m, [](float a, float b) {
    if (kRelu) a = a < 0 || a == 0 ? 0 : a, b = b < 0 || b == 0 ? 0 : b;
    return uint16_t(nearest_code<F>(double(a)) << 8 | nearest_code<F>(double(b)));
  });
}
Next truncate_float(Warp& w, const Instr& in, Mask m) {  // cvt.rzi.s32.f32
  return map1<int32_t, float>(w, in, m, [](float a) {
    const int32_t inside = int32_t(std::clamp(a, -0x1p31f, 0x1.fffffep30f));
    return a != a ? 0 : a >= 0x1p31f ? std::numeric_limits<int32_t>::max() : inside;
  });
}

}  // namespace

// cvt.rna{.satfinite}.tf32.f32 as an H200 does it: half a unit is added to a number and the low
// bits are cut. A NaN is cut only, which may leave infinity; .satfinite takes one unit off whatever
// has infinity's exponent, a NaN as well.
Next round_away_to_tf32(Warp& w, const Instr& in, Mask m) {
  const bool satfinite = in.variant;
  return map1<uint32_t, uint32_t>(w, in, m, [=](uint32_t a) {
    constexpr uint32_t kUnit = 1u << 13, kInfinity = 0x7F800000;
    if ((a & kInfinity) != kInfinity) a += kUnit / 2;
    a &= ~(kUnit - 1);
    return satfinite && (a & kInfinity) == kInfinity ? a - kUnit : a;
  });
}

Handler fast_conversion(const std::string& modes, const TypeInfo& to, const TypeInfo& from) {
  static const auto& table =
      *new const std::map<std::string, Handler>{{" s64 s32", plain<int64_t, int32_t>},
                                                {" u64 s32", plain<uint64_t, int32_t>},
                                                {" s64 u32", plain<int64_t, uint32_t>},
                                                {" u64 u32", plain<uint64_t, uint32_t>},
                                                {" s32 s64", plain<int32_t, int64_t>},
                                                {" s32 u64", plain<int32_t, uint64_t>},
                                                {" u32 s64", plain<uint32_t, int64_t>},
                                                {" u32 u64", plain<uint32_t, uint64_t>},
                                                {" s32 s16", plain<int32_t, int16_t>},
                                                {" u32 s16", plain<uint32_t, int16_t>},
                                                {" s32 u16", plain<int32_t, uint16_t>},
                                                {" u32 u16", plain<uint32_t, uint16_t>},
                                                {" u16 u32", plain<uint16_t, uint32_t>},
                                                {" u16 s32", plain<uint16_t, int32_t>},
                                                {" s16 u32", plain<uint16_t, uint32_t>},
                                                {" s16 s32", plain<uint16_t, int32_t>},
                                                {" f32 f32", plain<uint32_t, uint32_t>},
                                                {" f64 f64", plain<uint64_t, uint64_t>},
                                                {"rn f32 s32", plain<float, int32_t>},
                                                {"rn f32 u32", plain<float, uint32_t>},
                                                {"rn f32 s64", plain<float, int64_t>},
                                                {"rn f32 u64", plain<float, uint64_t>},
                                                {"rn f64 s32", plain<double, int32_t>},
                                                {"rn f64 u32", plain<double, uint32_t>},
                                                {"rzi s32 f32", truncate_float},
                                                {"rn f16 f32", narrow_float<F16>},
                                                {"rn bf16 f32", narrow_float<BF16>},
                                                {" f32 f16", widen_f16},
                                                {" f32 bf16", widen_bf16},
                                                {"rn f16x2 f32", narrow_floats<F16>},
                                                {"rn bf16x2 f32", narrow_floats<BF16>}};
  const auto found = table.find(modes + " " + to.name + " " + from.name);
  return found == table.end() ? nullptr : found->second;
}
Handler widening_of_fp8(const TypeInfo& type) {
  return type.name == "e4m3x2" ? widen_fp8<true> : widen_fp8<false>;
}
Handler narrowing_to_fp8(const TypeInfo& type, bool relu) {
  if (type.name == "e4m3x2") return relu ? narrow_to_fp8<E4M3, true> : narrow_to_fp8<E4M3, false>;
  return relu ? narrow_to_fp8<E5M2, true> : narrow_to_fp8<E5M2, false>;
}

}  // namespace gg::emu
