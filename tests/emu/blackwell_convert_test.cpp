// SPDX-License-Identifier: MIT
//
// Conversions of compute capability 10.0 on the emulator: e2m1, e2m3, e3m2 and ue8m0, and fp8
// beside them. Every code is widened. Every code's value, every midpoint and the neighbours of both
// are narrowed, the two numbers of a pair being different. Expected values come from a search over
// the values of all codes, and once more from the functions that cuda_fp4.h, cuda_fp6.h and
// cuda_fp8.h have for the host.

#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <cmath>

#include "alu_cases.h"

namespace {

using namespace emu_test;

struct Tiny {
  std::string name;
  int bits, mantissa_bits, bias, pitch;  // pitch: from one number of a pair to the other
  int codes;                             // finite magnitudes: 0 .. codes - 1
  bool nan;                              // code 0x7F
  int most() const { return codes - 1; }
  uint32_t sign() const { return 1u << (bits - 1); }
};
const Tiny kE2M1 = {"e2m1x2", 4, 1, 1, 4, 8, false}, kE2M3 = {"e2m3x2", 6, 3, 1, 8, 32, false},
           kE3M2 = {"e3m2x2", 6, 2, 3, 8, 32, false}, kE4M3 = {"e4m3x2", 8, 3, 7, 8, 127, true},
           kE5M2 = {"e5m2x2", 8, 2, 15, 8, 124, true};
const Tiny kAll[] = {kE2M1, kE2M3, kE3M2, kE4M3, kE5M2};

double value_of(const Tiny& f, int magnitude) {
  const int field = magnitude >> f.mantissa_bits, fraction = magnitude & ((1 << f.mantissa_bits) - 1);
  const int significand = field ? fraction + (1 << f.mantissa_bits) : fraction;
  return std::ldexp(double(significand), std::max(field, 1) - f.bias - f.mantissa_bits);
}

// The code whose value is nearest; of two as near, the even one. Beyond the largest: that one.
uint32_t nearest(const Tiny& f, double x, bool relu) {
  if (std::isnan(x)) return f.nan ? 0x7F : uint32_t(f.most());
  if (relu && (x < 0 || x == 0)) return 0;
  const double magnitude = std::fmin(std::fabs(x), value_of(f, f.most()));
  int best = 0;
  for (int code = 1; code < f.codes; ++code) {
    const double near = std::fabs(value_of(f, code) - magnitude),
                 nearest_yet = std::fabs(value_of(f, best) - magnitude);
    if (near < nearest_yet || (near == nearest_yet && code % 2 == 0)) best = code;
  }
  return uint32_t(best) | (std::signbit(x) ? f.sign() : 0);
}

float f32(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
uint64_t bits_of(double x) { return std::bit_cast<uint32_t>(float(x)); }
double f16(uint64_t code) {
  const uint64_t field = code >> 10 & 31, fraction = code & 1023;
  if (field == 31) return fraction ? NAN : code >> 15 & 1 ? -INFINITY : INFINITY;
  const double magnitude = std::ldexp(double(fraction + (field ? 1024 : 0)), std::max(int(field), 1) - 25);
  return code >> 15 & 1 ? -magnitude : magnitude;
}

// Numbers at which the result changes, and what is beside them.
std::vector<uint64_t> interesting(const Tiny& f) {
  std::vector<float> numbers = {0, INFINITY, NAN, 1e-45f, 1e-30f, 3.4e38f};
  for (int code = 0; code < f.codes; ++code) {
    const double here = value_of(f, code);
    const double next = code < f.most() ? value_of(f, code + 1) : 2 * here - value_of(f, code - 1);
    for (const float at : {float(here), float((here + next) / 2), float(next)}) {
      numbers.push_back(at);
      numbers.push_back(std::nextafter(at, 0.0f));
      numbers.push_back(std::nextafter(at, INFINITY));
    }
  }
  std::vector<uint64_t> result;
  for (const float x : numbers) {
    result.push_back(bits_of(x));
    result.push_back(bits_of(x) | 0x80000000);
  }
  return result;
}
// Each as the first of a pair and as the second, beside different others.
std::vector<Operands> pairs_of(const std::vector<uint64_t>& numbers) {
  std::vector<Operands> all;
  for (size_t i = 0; i < numbers.size(); ++i) {
    all.push_back({numbers[i], numbers[(i * 7 + 3) % numbers.size()], 0, 0});
    all.push_back({numbers[(i * 5 + 1) % numbers.size()], numbers[i], 0, 0});
  }
  return all;
}
uint64_t joined(const Tiny& f, uint32_t upper, uint32_t lower) { return upper << f.pitch | lower; }

std::string narrowing(const Tiny& f, bool relu, const char* from, const char* sources) {
  return std::string("cvt.rn.satfinite") + (relu ? ".relu." : ".") + f.name + "." + from + " %d, " + sources +
         ";";
}

TEST(BlackwellConvert, NarrowsFloats) {
  for (const Tiny& f : kAll) {
    for (const bool relu : {false, true}) {
      check(narrowing(f, relu, "f32", "%a, %b"), {2 * f.pitch, 32, 32}, pairs_of(interesting(f)),
            [&](const Operands& o) {
              return joined(f, nearest(f, f32(o[0]), relu), nearest(f, f32(o[1]), relu));
            });
    }
  }
}

TEST(BlackwellConvert, NarrowsAllHalves) {
  for (const Tiny& f : {kE2M1, kE4M3, kE5M2}) {  // ptxas 13.0 has no such form of fp6
    for (const bool relu : {false, true}) {
      std::vector<Operands> all;
      for (uint64_t code = 0; code < 0x10000; ++code) all.push_back({code << 16 | (code * 40503 & 0xFFFF)});
      check(narrowing(f, relu, "f16x2", "%a"), {2 * f.pitch, 32}, all, [&](const Operands& o) {
        return joined(f, nearest(f, f16(o[0] >> 16), relu), nearest(f, f16(o[0] & 0xFFFF), relu));
      });
    }
  }
}

TEST(BlackwellConvert, WidensAllCodes) {
  for (const Tiny& f : kAll) {
    const auto half = [&](uint32_t code, bool relu) -> uint64_t {
      const uint32_t magnitude = code & (f.sign() - 1), negative = code / f.sign();
      if (f.name == "e5m2x2" && magnitude == 0x7C) return relu && negative ? 0 : 0x7C00 | negative << 15;
      if (int(magnitude) >= f.codes) return 0x7FFF;
      if (relu && negative) return 0;
      for (uint32_t h = 0; h < 0x7C00; ++h) {
        if (f16(h) == value_of(f, int(magnitude))) return h | negative << 15;
      }
      return ~0ull;  // no f16 has this value
    };
    for (const bool relu : {false, true}) {
      std::vector<uint64_t> halves;
      for (uint32_t code = 0; code < 2 * f.sign(); ++code) halves.push_back(half(code, relu));
      std::vector<Operands> all;
      for (uint32_t upper = 0; upper < 2 * f.sign(); ++upper) {
        for (uint32_t lower = 0; lower < 2 * f.sign(); lower += f.bits == 8 ? 5 : 1)
          all.push_back({joined(f, upper, lower)});
      }
      check(std::string("cvt.rn") + (relu ? ".relu" : "") + ".f16x2." + f.name + " %d, %a;",
            {32, 2 * f.pitch}, all, [&](const Operands& o) {
              return halves[o[0] >> f.pitch] << 16 | halves[o[0] & ((1u << f.pitch) - 1)];
            });
    }
  }
}

// ---- ue8m0 ----

// The least or the largest e with 2^(e - 127) on the right side of the magnitude.
uint32_t scale(double x, bool up, bool satfinite) {
  if (std::isnan(x)) return 0xFF;
  const double magnitude = std::fabs(x);
  uint32_t code = 0;
  if (up) {
    while (code < 255 && std::ldexp(1.0, int(code) - 127) < magnitude) ++code;
  } else {
    while (code < 255 && std::ldexp(1.0, int(code) + 1 - 127) <= magnitude) ++code;
  }
  return satfinite && code == 255 ? 254 : code;
}

struct ScaleForm {
  bool up, satfinite;
  std::string text() const {
    return std::string(up ? "cvt.rp" : "cvt.rz") + (satfinite ? ".satfinite" : "") + ".ue8m0x2.";
  }
};
const ScaleForm kScaleForms[] = {{false, false}, {false, true}, {true, false}, {true, true}};

std::vector<uint64_t> scale_numbers() {
  std::vector<uint64_t> numbers;
  for (uint64_t field = 0; field < 256; ++field) {
    for (const uint64_t fraction :
         {0x0, 0x1, 0x1000, 0x3FFFFF, 0x400000, 0x400001, 0x410000, 0x7F0000, 0x7FFFFF}) {
      numbers.push_back(field << 23 | fraction);
      numbers.push_back(1ull << 31 | field << 23 | fraction);
    }
  }
  return numbers;
}

TEST(BlackwellConvert, ScalesOfFloats) {
  for (const ScaleForm& form : kScaleForms) {
    check(form.text() + "f32 %d, %a, %b;", {16, 32, 32}, pairs_of(scale_numbers()), [&](const Operands& o) {
      return uint64_t(scale(f32(o[0]), form.up, form.satfinite) << 8 |
                      scale(f32(o[1]), form.up, form.satfinite));
    });
  }
}

TEST(BlackwellConvert, ScalesOfAllBf16) {
  std::vector<Operands> all;
  for (uint64_t code = 0; code < 0x10000; ++code) all.push_back({code << 16 | (code * 40503 & 0xFFFF)});
  for (const ScaleForm& form : kScaleForms) {
    check(form.text() + "bf16x2 %d, %a;", {16, 32}, all, [&](const Operands& o) {
      return uint64_t(scale(f32(o[0] & 0xFFFF0000), form.up, form.satfinite) << 8 |
                      scale(f32(o[0] << 16), form.up, form.satfinite));
    });
  }
}

TEST(BlackwellConvert, ScalesToBf16) {
  std::vector<Operands> all;
  for (uint64_t code = 0; code < 0x10000; ++code) all.push_back({code});
  const auto half = [](uint64_t code) -> uint64_t {
    return code == 255 ? 0x7FFF : bits_of(std::ldexp(1.0, int(code) - 127)) >> 16;
  };
  check("cvt.rn.bf16x2.ue8m0x2 %d, %a;", {32, 16}, all,
        [&](const Operands& o) { return half(o[0] >> 8) << 16 | half(o[0] & 255); });
}

// ---- against the functions for the host ----

TEST(BlackwellConvert, AgreesWithTheHeaders) {
  const auto e2m1 = [](uint64_t a) -> uint64_t {
    return __nv_cvt_float_to_fp4(f32(a), __NV_E2M1, cudaRoundNearest) & 0xF;
  };
  check("cvt.rn.satfinite.e2m1x2.f32 %d, %a, %b;", {8, 32, 32}, pairs_of(interesting(kE2M1)),
        [&](const Operands& o) { return e2m1(o[0]) << 4 | e2m1(o[1]); });
  for (const auto& [f, kind] : {std::pair(kE2M3, __NV_E2M3), std::pair(kE3M2, __NV_E3M2)}) {
    const auto one = [kind = kind](uint64_t a) -> uint64_t {
      return __nv_cvt_float_to_fp6(f32(a), kind, cudaRoundNearest);
    };
    check("cvt.rn.satfinite." + f.name + ".f32 %d, %a, %b;", {16, 32, 32}, pairs_of(interesting(f)),
          [&](const Operands& o) { return one(o[0]) << 8 | one(o[1]); });
  }
  for (const auto& [f, kind] : {std::pair(kE4M3, __NV_E4M3), std::pair(kE5M2, __NV_E5M2)}) {
    // The host's function keeps the sign of a NaN, and a device does not.
    const auto one = [kind = kind](uint64_t a) -> uint64_t {
      const uint64_t code = __nv_cvt_float_to_fp8(f32(a), __NV_SATFINITE, kind);
      return std::isnan(f32(a)) ? 0x7F : code;
    };
    check("cvt.rn.satfinite." + f.name + ".f32 %d, %a, %b;", {16, 32, 32}, pairs_of(interesting(f)),
          [&](const Operands& o) { return one(o[0]) << 8 | one(o[1]); });
  }
  for (const ScaleForm& form : kScaleForms) {
    const auto one = [&](uint64_t a) -> uint64_t {
      return __nv_cvt_float_to_e8m0(f32(a), form.satfinite ? __NV_SATFINITE : __NV_NOSAT,
                                    form.up ? cudaRoundPosInf : cudaRoundZero);
    };
    check(form.text() + "f32 %d, %a, %b;", {16, 32, 32}, pairs_of(scale_numbers()),
          [&](const Operands& o) { return one(o[0]) << 8 | one(o[1]); });
  }
}

// ---- registers of 8 bits ----

TEST(BlackwellConvert, JoinsBytes) {
  std::vector<Operands> all;
  for (uint64_t i = 0; i < 200; ++i) {
    const auto number = [&](uint64_t salt) { return bits_of(double((i * 37 + salt * 101) % 29) / 2 - 7); };
    all.push_back({number(0), number(1), number(2), number(3)});
  }
  check(
      ".reg .b8 %b0, %b1, %b2, %b3;\n"
      "cvt.rn.satfinite.e2m1x2.f32 %b0, %b, %a;\ncvt.rn.satfinite.e2m1x2.f32 %b1, %e, %c;\n"
      "cvt.rn.satfinite.e2m1x2.f32 %b2, %c, %a;\ncvt.rn.satfinite.e2m1x2.f32 %b3, %e, %b;\n"
      "mov.b32 %d, {%b0, %b1, %b2, %b3};",
      {32, 32, 32, 32, 32}, all, [](const Operands& o) {
        const int order[] = {0, 1, 2, 3, 0, 2, 1, 3};  // from the lowest nibble up
        uint64_t word = 0;
        for (int i = 0; i < 8; ++i)
          word |= uint64_t(nearest(kE2M1, f32(o[size_t(order[i])]), false)) << (4 * i);
        return word;
      });
  check(
      ".reg .b8 %b0, %b1, %b2, %b3;\nmov.b32 {%b0, %b1, %b2, %b3}, %a;\n"
      "cvt.rn.f16x2.e2m1x2 %d, %b2;",
      {32, 32}, {{0x00000000}, {0x00210000}, {0xFF7AFFFF}, {0x12F83456}}, [](const Operands& o) {
        const uint64_t halves[] = {0,      0x3800, 0x3C00, 0x3E00, 0x4000, 0x4200, 0x4400, 0x4600,
                                   0x8000, 0xB800, 0xBC00, 0xBE00, 0xC000, 0xC200, 0xC400, 0xC600};
        return halves[o[0] >> 20 & 15] << 16 | halves[o[0] >> 16 & 15];
      });
}

// ---- what is refused ----

std::string refusal(const std::string& instruction, const Sizes& sizes, const Operands& operands = {}) {
  try {
    results_of(instruction, sizes, {operands});
  } catch (const gg::emu::Fault& fault) {
    EXPECT_EQ(fault.kind, gg::emu::FaultKind::unsupported) << instruction;
    return fault.what();
  }
  return "";
}

TEST(BlackwellConvert, Refuses) {
  const Sizes two = {16, 32, 32};
  EXPECT_NE(refusal("cvt.rs.satfinite.e2m1x4.f32 %d, {%a, %b, %a, %b}, %a;", two).find("stochastic"),
            std::string::npos);
  for (const char* text :
       {"cvt.rn.e2m3x2.f32 %d, %a, %b;", "cvt.rz.satfinite.e2m3x2.f32 %d, %a, %b;",
        "cvt.rn.ue8m0x2.f32 %d, %a, %b;", "cvt.rz.relu.ue8m0x2.f32 %d, %a, %b;",
        "cvt.rn.satfinite.e2m1x2.f32 %d, %a, %b;", "cvt.rn.satfinite.e2m3x2.f16x2 %d, %a;"}) {
    EXPECT_NE(refusal(text, two), "") << text;
  }
  const Sizes up = {32, 16};
  EXPECT_NE(refusal("cvt.rn.satfinite.f16x2.e2m3x2 %d, %a;", up), "");
  EXPECT_NE(refusal("cvt.rn.f16x2.e3m2x2 %d, %a;", up, {0x0140}), "");  // a bit above the lower 6
  EXPECT_EQ(refusal("cvt.rn.f16x2.e3m2x2 %d, %a;", up, {0x013F}), "");
}

}  // namespace
