// SPDX-License-Identifier: MIT
//
// cvt between f16 and bf16 without a rounding modifier, as Triton writes it where fp8 becomes bf16.
// The PTX ISA asks for a modifier here; ptxas takes the instruction without one and makes of it
// what it makes of .rn: the nearest number, of two equally near ones the even one. All 65536 codes,
// each in a lane of its own.

#include <cmath>
#include <cstdio>

#include "common/kernel/formats.h"
#include "probe.cuh"

namespace probe {
namespace cvt_halves {

constexpr int kThreads = 256, kCodes = 1 << 16;

// [probe]
// Thread t converts codes[t], codes[t + 256], ...: as f16 numbers into out, as bf16 ones into
// its second half.
__global__ void convert(const uint16_t* codes, uint16_t* out) {
  for (int i = threadIdx.x; i < kCodes; i += kThreads) {
    const uint16_t code = codes[i];
    asm("cvt.bf16.f16 %0, %1;" : "=h"(out[i]) : "h"(code));
    asm("cvt.f16.bf16 %0, %1;" : "=h"(out[kCodes + i]) : "h"(code));
  }
}
// [/probe]

class ConvertHalves : public Probe {
 protected:
  ConvertHalves() : Probe(gg::Arch::sm_90a) {}
};

// ---- the host's model ----

constexpr const char* kRoundings[] = {"to nearest even", "toward zero", "down", "up", "ties away from zero"};
constexpr int kCount = 5;

// The two codes of `to` around x, the one nearer to zero first; the same one twice if x is a number
// of `to`. Codes of one sign follow each other as their magnitudes do, up to infinity.
struct Around {
  uint32_t inner, outer;
};
Around around(gg::Format to, double x) {
  const uint32_t nearest = gg::encode(to, x);
  const double value = gg::decode(to, nearest);
  if (value == x) return {nearest, nearest};
  return std::fabs(value) < std::fabs(x) ? Around{nearest, nearest + 1} : Around{nearest - 1, nearest};
}
uint32_t rounded(gg::Format to, double x, int rounding) {
  constexpr uint32_t kNaN = 0x7FFF;
  if (x != x) return kNaN;
  const auto [inner, outer] = around(to, x);
  if (rounding == 0 || inner == outer) return gg::encode(to, x);
  if (rounding == 1) return inner;
  if (rounding == 2) return x < 0 ? outer : inner;
  if (rounding == 3) return x < 0 ? inner : outer;
  const uint32_t nearest = gg::encode(to, x);
  const double below = gg::decode(to, inner), above = gg::decode(to, outer);
  const bool tie = std::isfinite(above) && x - below == above - x;
  return tie ? outer : nearest;
}

std::string hex(uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%04x", code);
  return text;
}

// Compares all results with the model; says of the first wrong ones which rounding would give them.
void compare(gg::Format to, gg::Format from, const std::vector<uint16_t>& codes, const uint16_t* got) {
  int wrong = 0, differs[kCount] = {};
  for (size_t i = 0; i < codes.size(); ++i) {
    const double x = gg::decode(from, codes[i]);
    const uint32_t want = rounded(to, x, 0);
    for (int r = 1; r < kCount; ++r) differs[r] += rounded(to, x, r) != want;
    if (got[i] == want || ++wrong > 8) continue;
    std::string others;
    for (int r = 1; r < kCount; ++r) {
      if (rounded(to, x, r) == got[i]) others += std::string(", as ") + kRoundings[r] + " would";
    }
    ADD_FAILURE() << gg::format_info(from).name << " " << hex(codes[i]) << " (" << x << ") gives "
                  << gg::format_info(to).name << " " << hex(got[i]) << others << "; rounded " << kRoundings[0]
                  << " it is " << hex(want);
  }
  EXPECT_EQ(wrong, 0) << "of " << codes.size() << " codes";
  for (int r = 1; r < kCount; ++r) EXPECT_GT(differs[r], 0) << kRoundings[r] << " cannot be told apart";
}

TEST_F(ConvertHalves, RoundsToNearestEvenWithoutAModifier) {
  std::vector<uint16_t> codes(kCodes);
  // An odd factor: every code once, neighbours apart.
  for (size_t i = 0; i < kCodes; ++i) codes[i] = uint16_t(i * 40503);
  const Array<uint16_t> codes_array(codes), out(std::vector<uint16_t>(2 * kCodes));
  convert<<<1, kThreads>>>(codes_array.get(), out.get());
  const std::vector<uint16_t> got = out.read();
  compare(gg::Format::bf16, gg::Format::f16, codes, got.data());
  compare(gg::Format::f16, gg::Format::bf16, codes, got.data() + kCodes);
}

}  // namespace cvt_halves
}  // namespace probe
