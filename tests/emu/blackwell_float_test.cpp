// SPDX-License-Identifier: MIT
//
// Arithmetic of compute capability 10.0 on the emulator: .f32x2 against the f32 instructions of the
// host, min and max of three, redux.sync of f32, and loads and stores of 32 bytes.

#include <cfenv>
#include <cmath>
#include <limits>

#include "alu_cases.h"
#include "launch_ptx.h"

namespace {

using namespace emu_test;

float f32(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
uint64_t bits_of(float x) { return x != x ? 0x7FFFFFFF : std::bit_cast<uint32_t>(x); }

// ---- .f32x2 ----

constexpr int kHostModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
const char* const kRoundings[] = {".rn", ".rz", ".rm", ".rp"};

float flushed(float x, bool ftz) { return ftz && std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// In a rounding mode of the host. `volatile` keeps the operation where the mode is on.
float rounded(const std::string& opcode, int mode, float a, float b, float c) {
  const volatile float x = a, y = b, z = c;
  std::fesetround(kHostModes[mode]);
  volatile float result = opcode == "add"   ? x + y
                          : opcode == "sub" ? x - y
                          : opcode == "mul" ? x * y
                                            : std::fma(float(x), float(y), float(z));
  std::fesetround(FE_TONEAREST);
  return result;
}
// .ftz flushes what would be below 2^-126 if exponents had no end: the operation is done
// 2^40 times larger.
float computed(const std::string& opcode, int mode, bool ftz, float a, float b, float c) {
  a = flushed(a, ftz), b = flushed(b, ftz), c = flushed(c, ftz);
  const float result = rounded(opcode, mode, a, b, c);
  if (!ftz || std::fabs(result) > 0x1p-126f || result != result) return flushed(result, ftz);
  const float up = 0x1p40f, a_up = std::fabs(a) < 1 ? up : 1, b_up = a_up > 1 ? 1 : up;
  const bool sum = opcode == "add" || opcode == "sub";
  const float larger = rounded(opcode, mode, a * (sum ? up : a_up), b * (sum ? up : b_up), c * up);
  return std::fabs(larger) < 0x1p-86f ? std::copysign(0.0f, result) : result;
}

// Different numbers in the two halves.
std::vector<Operands> pair_operands(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto& special = kF32Numbers;
  const auto number = [&](int i) -> uint64_t {
    if (i % 3) return special[random() % special.size()];
    return (random() & 0x807FFFFF) | (100 + random() % 54) << 23;  // of magnitudes that meet
  };
  std::vector<Operands> all;
  for (int i = 0; i < 3000; ++i) {
    Operands o = {};
    for (int k = 0; k < 3; ++k) o[size_t(k)] = number(i) << 32 | number(i / 2);
    all.push_back(o);
  }
  return all;
}

TEST(BlackwellFloat, Pairs) {
  for (const std::string opcode : {"add", "sub", "mul", "fma"}) {
    for (int mode = -1; mode < 4; ++mode) {
      const bool three = opcode == "fma";
      if (three && mode < 0) continue;
      for (const bool ftz : {false, true}) {
        const std::string text = opcode + (mode < 0 ? "" : kRoundings[mode]) + (ftz ? ".ftz" : "") +
                                 ".f32x2 %d, %a, %b" + (three ? ", %c;" : ";");
        const auto half = [&](const Operands& o, int shift) {
          return bits_of(computed(opcode, std::max(mode, 0), ftz, f32(o[0] >> shift), f32(o[1] >> shift),
                                  f32(o[2] >> shift)));
        };
        check(text, {64, 64, 64, three ? 64 : 0}, pair_operands(17),
              [&](const Operands& o) { return half(o, 32) << 32 | half(o, 0); });
      }
    }
  }
}

TEST(BlackwellFloat, PairsIntoTheirSource) {
  check("mov.b64 %d, %a;\nfma.rn.f32x2 %d, %d, %b, %d;", {64, 64, 64}, pair_operands(3),
        [](const Operands& o) {
          const auto half = [&](int shift) {
            return bits_of(std::fma(f32(o[0] >> shift), f32(o[1] >> shift), f32(o[0] >> shift)));
          };
          return half(32) << 32 | half(0);
        });
}

TEST(BlackwellFloat, PairsUnderAGuard) {  // lanes whose guard is false keep what they had
  check(
      ".reg .pred %guard;\nmov.b64 %d, %b;\nand.b32 %word, %t, 1;\nsetp.ne.u32 %guard, %word, 0;\n"
      "@%guard add.rn.f32x2 %d, %a, %a;\nselp.b64 %d, %d, %a, %guard;",
      {64, 64, 64}, {{0x3F80000040000000, 1}, {0x4040000040800000, 2}}, [](const Operands& o) {
        // Operands alternate between even threads, which copy a, and odd ones, which double it.
        return o[1] == 1 ? o[0] : 0x40C0000041000000;
      });
}

// ---- extremes ----

uint64_t extreme(bool max, bool nan_wins, const std::vector<float>& numbers) {
  float best = NAN;
  for (const float x : numbers) {
    if (x != x) {
      if (nan_wins) return 0x7FFFFFFF;
      continue;
    }
    const bool first = best != best;
    const bool less = x < best || (x == best && std::signbit(x) && !std::signbit(best)),
               more = x > best || (x == best && !std::signbit(x) && std::signbit(best));
    if (first || (max ? more : less)) best = x;
  }
  return bits_of(best);
}

TEST(BlackwellFloat, ExtremesOfThree) {
  std::mt19937_64 random(5);
  std::vector<Operands> all;
  for (const uint64_t a : kF32Numbers) {
    for (const uint64_t b : kF32Numbers) {
      for (const uint64_t c : kF32Numbers) all.push_back({a, b, c, 0});
    }
  }
  for (const bool max : {false, true}) {
    for (int flags = 0; flags < 8; ++flags) {
      const bool ftz = flags & 1, nan = flags & 2, abs = flags & 4;
      const std::string text = std::string(max ? "max" : "min") + (ftz ? ".ftz" : "") + (nan ? ".NaN" : "") +
                               (abs ? ".abs" : "") + ".f32 %d, %a, %b, %c;";
      check(text, {32, 32, 32, 32}, all, [&](const Operands& o) {
        std::vector<float> numbers;
        for (int i = 0; i < 3; ++i) {
          const float x = flushed(f32(o[size_t(i)]), ftz);
          numbers.push_back(abs ? std::fabs(x) : x);
        }
        return extreme(max, nan, numbers);
      });
    }
  }
}

TEST(BlackwellFloat, Redux) {
  for (const bool max : {false, true}) {
    for (int flags = 0; flags < 4; ++flags) {
      const bool nan = flags & 1, abs = flags & 2;
      const std::string op = std::string("redux.sync.") + (max ? "max" : "min") + (abs ? ".abs" : "") +
                             (nan ? ".NaN" : "") + ".f32";
      // Lanes 4 to 19 take part, then all.
      const std::string text = kernel(
          "mad.wide.u32 %rd3, %r5, 4, %rd1;\nld.global.f32 %f0, [%rd3];\n"
          "mov.f32 %f1, 0f00000000;\nsetp.ge.u32 %p0, %r3, 4;\n"
          "setp.lt.and.u32 %p0, %r3, 20, %p0;\n@%p0 " +
          op + " %f1, %f0, 0x000FFFF0;\n" + op +
          " %f2, %f0, 0xFFFFFFFF;\nmad.wide.u32 %rd4, %r5, 8, %rd0;\n"
          "st.global.v2.f32 [%rd4], {%f1, %f2};\n");
      Program program(text);
      std::mt19937_64 random(uint64_t(flags) + 9);
      for (int round = 0; round < 24; ++round) {
        std::vector<float> in;
        for (int lane = 0; lane < 64; ++lane) {
          const float x = f32(kF32Numbers[random() % kF32Numbers.size()]);
          in.push_back(round < 2 ? f32(0x7FC00001) : round % 2 && x != x ? 1.0f : x);
        }
        std::vector<Buffer> buffers = {Buffer(64 * 8), buffer_of(in)};
        program.run(buffers, config_of(1, 64));
        const std::vector<uint32_t> out = values_of<uint32_t>(buffers[0]);
        for (size_t t = 0; t < 64; ++t) {
          const size_t warp = t / 32 * 32, lane = t % 32;
          const auto of = [&](size_t begin, size_t end) {
            std::vector<float> numbers;
            for (size_t i = begin; i < end; ++i)
              numbers.push_back(abs ? std::fabs(in[warp + i]) : in[warp + i]);
            return extreme(max, nan, numbers);
          };
          EXPECT_EQ(out[2 * t], lane >= 4 && lane < 20 ? of(4, 20) : 0) << op << " thread " << t;
          EXPECT_EQ(out[2 * t + 1], of(0, 32)) << op << " thread " << t;
        }
      }
    }
  }
}

// ---- 32 bytes ----

const char* const kMove8 =
    "mul.wide.u32 %rd3, %r5, 32;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd0, %rd3;\n"
    "ld.global.v8.b32 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%rd4];\n"
    "st.global.v8.b32 [%rd5], {%r17, %r16, %r15, %r14, %r13, %r12, %r11, %r10};\n";
const char* const kMove4 =
    "mul.wide.u32 %rd3, %r5, 32;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd0, %rd3;\n"
    "ld.global.v4.b64 {%rd10, %rd11, %rd12, %rd13}, [%rd4];\n"
    "st.global.v4.b64 [%rd5], {%rd13, %rd12, %rd11, %rd10};\n";

TEST(BlackwellFloat, Moves32Bytes) {
  std::vector<uint64_t> in;
  for (uint64_t i = 0; i < 64 * 4; ++i) in.push_back(i * 0x9E3779B97F4A7C15);
  for (const bool words : {true, false}) {
    Program program(kernel(words ? kMove8 : kMove4));
    std::vector<Buffer> buffers = {Buffer(64 * 32), buffer_of(in)};
    program.run(buffers, config_of(1, 64));
    const std::vector<uint64_t> out = values_of<uint64_t>(buffers[0]);
    for (size_t i = 0; i < in.size(); ++i) {
      const uint64_t x = in[i / 4 * 4 + 3 - i % 4];
      EXPECT_EQ(out[i], words ? x << 32 | x >> 32 : x) << i;
    }
  }
}

TEST(BlackwellFloat, Wants32ByteAlignment) {
  std::string text = kMove8;
  text.replace(text.find("[%rd4]"), 6, "[%rd4+16]");
  Program program(kernel(text));
  std::vector<Buffer> buffers = {Buffer(64 * 32), Buffer(65 * 32)};
  try {
    program.run(buffers, config_of(1, 64));
    ADD_FAILURE() << "no fault";
  } catch (const gg::emu::Fault& fault) {
    EXPECT_EQ(fault.kind, gg::emu::FaultKind::alignment);
  }
}

TEST(BlackwellFloat, SharedMemoryHasNo32Bytes) {
  Program program(
      kernel("mov.u32 %r20, s;\n"
             "ld.shared.v8.b32 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%r20];\n",
             ".shared .align 32 .b8 s[64];"));
  std::vector<Buffer> buffers = {Buffer(32), Buffer(32)};
  try {
    program.run(buffers, config_of(1, 32));
    ADD_FAILURE() << "no fault";
  } catch (const gg::emu::Fault& fault) {
    EXPECT_EQ(fault.kind, gg::emu::FaultKind::unsupported);
  }
}

}  // namespace
