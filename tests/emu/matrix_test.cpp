// SPDX-License-Identifier: MIT
//
// ldmatrix, stmatrix, movmatrix and mma.sync in small PTX kernels: which element goes where, the
// bits of the sums, and what the emulator says when they are misused.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "common/emu/core/units/fused_sum.h"
#include "tests/emu/matrix_kernel.h"
#include "tests/emu/report_says.h"

namespace {

using namespace matrix_test;
using report::says;

// ---- ldmatrix, stmatrix, movmatrix ----

using Matrices = Machine;

TEST_F(Matrices, LdmatrixGivesEachLaneItsPairs) {
  // Row r of matrix i is 16 bytes of the buffer, at 16 * (8 * i + r); lanes give them in reverse,
  // so that matrix i is 3 - i upside down.
  const std::string address =
      copy_in(512, 32) + "bar.sync 0;\n sub.u32 %r10, 31, %r0;\n mad.lo.u32 %r10, %r10, 16, %r2;\n";
  for (const bool transposed : {false, true}) {
    const auto d = run(address + std::string("ldmatrix.sync.aligned.m8n8.x4") + (transposed ? ".trans" : "") +
                           ".shared.b16 {%r20, %r21, %r22, %r23}, [%r10];\n" + store("%r20", 0, 32) +
                           store("%r21", 1, 32) + store("%r22", 2, 32) + store("%r23", 3, 32),
                       32, 128);
    const auto* halves = reinterpret_cast<const uint16_t*>(words(in));
    const auto element = [&](int matrix, int row, int column) {
      return uint32_t(halves[(31 - 8 * matrix - row) * 8 + column]);
    };
    for (int i = 0; i < 4; ++i) {
      for (int lane = 0; lane < 32; ++lane) {
        const int g = lane / 4, t = lane % 4 * 2;
        const uint32_t want = transposed ? element(i, t + 1, g) << 16 | element(i, t, g)
                                         : element(i, g, t + 1) << 16 | element(i, g, t);
        ASSERT_EQ(d[size_t(i * 32 + lane)], want)
            << "matrix " << i << " lane " << lane << " transposed " << transposed;
      }
    }
  }
}

TEST_F(Matrices, StmatrixUndoesLdmatrix) {
  for (const char* transposed : {"", ".trans"}) {
    for (const int count : {1, 2, 4}) {
      const std::string list = registers("r", 20, count);
      const auto d = run(copy_in(512, 32) + "bar.sync 0;\n mad.lo.u32 %r10, %r0, 16, %r2;\n" +
                             format("ldmatrix.sync.aligned.m8n8.x%d%s.shared::cta.b16 %s, [%%r10];\n", count,
                                    transposed, list.c_str()) +
                             format("stmatrix.sync.aligned.m8n8.x%d%s.shared.b16 [%%r10+1024], %s;\n", count,
                                    transposed, list.c_str()) +
                             format("bar.sync 0;\n setp.lt.u32 %%p11, %%r0, %d;\n mad.lo.u32 %%r11, %%r0, "
                                    "16, 1024;\n add.u32 %%r11, %%r11, %%r2;\n",
                                    8 * count) +
                             "mov.u32 %r30, 7;\n @%p11 ld.shared.u32 %r30, [%r11];\n" + store("%r30", 0, 32),
                         32, 32);
      for (int lane = 0; lane < 32; ++lane) {
        ASSERT_EQ(d[size_t(lane)], lane < 8 * count ? words(in)[lane * 4] : 7)
            << "x" << count << transposed << " row " << lane;
      }
    }
  }
}

TEST_F(Matrices, MovmatrixTransposes) {
  const auto d = run(
      "shl.b32 %r10, %r0, 1;\n add.u32 %r11, %r10, 1;\n shl.b32 %r11, %r11, 16;\n or.b32 %r10, %r10, %r11;\n"
      "movmatrix.sync.aligned.m8n8.trans.b16 %r12, %r10;\n" +
          store("%r12", 0, 32),
      32, 32);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    // Place in the result: element (row, column) was (column, row).
    const uint32_t row = lane / 4, column = lane % 4 * 2;
    EXPECT_EQ(d[lane], ((column + 1) * 8 + row) << 16 | (column * 8 + row));
  }
}

TEST_F(Matrices, FaultsAreSeen) {
  const std::string load = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r20, %r21}, [%r10];\n";
  const std::string rows = "mad.lo.u32 %r10, %r0, 16, %r2;\n";
  EXPECT_TRUE(says(fault(FaultKind::uninit_shared, rows + load, 32), "nobody has written"));
  EXPECT_TRUE(
      says(fault(FaultKind::alignment, copy_in(512, 32) + "mad.lo.u32 %r10, %r0, 8, %r2;\n" + load, 32),
           "lane 1"));
  fault(FaultKind::bounds, copy_in(512, 32) + rows + "add.u32 %r10, %r10, 65568;\n" + load, 32);
  fault(FaultKind::bounds, "ldmatrix.sync.aligned.m8n8.x1.b16 {%r20}, [%rd0];\n", 32);
  fault(FaultKind::diverged, copy_in(512, 24) + rows + load, 24);
  // Rows that another warp wrote, with no barrier between.
  EXPECT_TRUE(says(
      fault(FaultKind::race,
            copy_in(1024, 64) + "@%p1 bra END;\n and.b32 %r11, %r0, 31;\n mad.lo.u32 %r10, %r11, 16, %r2;\n" +
                load + "END:\n",
            64),
      "no barrier"));
  for (const char* unknown : {"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r20, %r21, %r22}, [%r10];",
                              "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r20}, [%r10];",
                              "ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r20}, [%r10];",
                              "ldmatrix.sync.m8n8.x1.shared.b16 {%r20}, [%r10];",
                              "ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r20}, [%r10];",
                              "movmatrix.sync.aligned.m8n8.b16 %r20, %r10;",
                              "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%r10], {%r20};"}) {
    fault(FaultKind::unsupported, std::string("mov.u32 %r20, 0;\n") + rows + unknown + "\n", 32);
  }
}

TEST_F(Matrices, ConflictsAreCounted) {
  // Rows 128 bytes apart are all in the same banks; 16 bytes apart in all banks.
  const auto wavefronts = [&](int pitch) {
    const auto counts =
        run_with(copy_in(4096, 32) + format("mad.lo.u32 %%r10, %%r0, %d, %%r2;\n", pitch) +
                     "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r10];\n",
                 32, {});
    const auto& last = counts.at(nullptr)[counts.at(nullptr).size() - 3];
    return std::pair{last.wavefronts, last.least_wavefronts};
  };
  EXPECT_EQ(wavefronts(16), std::pair(uint64_t(4), uint64_t(4)));
  EXPECT_EQ(wavefronts(128), std::pair(uint64_t(32), uint64_t(4)));
}

// ---- mma.sync ----

struct MmaForm {
  const char *shape, *d, *a, *b;
  int k;
};
class MmaForms : public Machine, public testing::WithParamInterface<MmaForm> {};

uint32_t random_code(std::mt19937& random, const gg::emu::Narrow& f, int trial) {
  const uint32_t bits = random();
  const uint32_t all = f.bits == 32 ? bits : bits & ((1u << f.bits) - 1);
  if (trial % 3 == 2) return all;  // anything
  const uint32_t bias = (1u << (f.exponent_bits - 1)) - 1, field = bias - 4 + random() % 8;
  const uint32_t mantissa = (bits & ((1u << f.mantissa_bits) - 1)) << f.shift;
  const int at = f.mantissa_bits + f.shift;
  return (random() & 1) << (at + f.exponent_bits) |
         (trial % 3 == 1 && random() % 3 == 0 ? 0 : field << at | mantissa);
}

// Loads a, b and c from one row of `in` to a register, multiplies, and stores d so.
std::string mma_body(const MmaForm& form, int a_registers, int b_registers) {
  const bool half = std::string(form.d) == "f16";
  const int accumulators = half ? 2 : 4;
  std::string body;
  for (int i = 0; i < a_registers + b_registers + accumulators; ++i) {
    body += format(
        "mad.lo.u32 %%r200, %%r0, 4, %d;\n cvt.u64.u32 %%rd9, %%r200;\n add.u64 %%rd9, %%rd9, %%rd1;\n "
        "ld.global.b32 %%r%d, [%%rd9];\n",
        128 * i, 10 + i);
  }
  const int c0 = 10 + a_registers + b_registers;
  std::string d_list = registers("r", 40, accumulators), c_list = registers("r", c0, accumulators);
  if (!half) {
    for (int i = 0; i < 4; ++i) body += format("mov.b32 %%f%d, %%r%d;\n", i, c0 + i);
    c_list = registers("f", 0, 4);
    d_list = registers("f", 10, 4);
  }
  body += format("mma.sync.aligned.%sk%d.row.col.%s.%s.%s.%s %s, %s, %s, %s;\n", form.shape, form.k, form.d,
                 form.a, form.b, form.d, d_list.c_str(), registers("r", 10, a_registers).c_str(),
                 registers("r", 10 + a_registers, b_registers).c_str(), c_list.c_str());
  for (int i = 0; i < accumulators; ++i)
    body += store(format(half ? "%%r%d" : "%%f%d", (half ? 40 : 10) + i), i, 32);
  return body;
}

// An element of d: the bits of a row of a times a column of b, on top of c.
uint32_t mma_sum(const MmaForm& form, const std::vector<uint32_t>& a, const std::vector<uint32_t>& b,
                 uint32_t c) {
  const gg::emu::Narrow a_format = gg::emu::narrow(form.a), b_format = gg::emu::narrow(form.b);
  const bool half = std::string(form.d) == "f16";
  gg::emu::Term at[32], bt[32];
  for (int k = 0; k < form.k; ++k) {
    at[k] = term_of(a_format, a[size_t(k)]);
    bt[k] = term_of(b_format, b[size_t(k)]);
  }
  const float accumulator = half ? gg::emu::half_to_float(uint16_t(c)) : std::bit_cast<float>(c);
  gg::emu::Cut cut;
  cut.mantissa_bits = a_format.mantissa_bits + b_format.mantissa_bits;
  cut.to_half = half;
  float want;
  if (a_format.bits == 8) {  // two steps of f16, then the accumulator
    gg::emu::Term as[2][16], bs[2][16];
    for (int k = 0; k < form.k; ++k) {
      as[k / 2 % 2][k / 4 * 2 + k % 2] = at[k];
      bs[k / 2 % 2][k / 4 * 2 + k % 2] = bt[k];
    }
    want =
        accumulator + fused_sum(as[1], bs[1], form.k / 2, fused_sum(as[0], bs[0], form.k / 2, 0, cut), cut);
  } else {
    want = fused_sum(at, bt, form.k, accumulator, cut);
  }
  if (half) return gg::emu::float_to_half(want);
  return std::isnan(want) ? 0x7FFFFFFF : std::bit_cast<uint32_t>(want);
}

TEST_P(MmaForms, GiveTheSumsOneByOne) {
  const MmaForm& form = GetParam();
  const gg::emu::Narrow a_format = gg::emu::narrow(form.a), b_format = gg::emu::narrow(form.b);
  const int bits = a_format.bits, each = 32 / bits, b_registers = form.k / (4 * each),
            a_registers = 2 * b_registers;
  const bool half = std::string(form.d) == "f16";
  const int accumulators = half ? 2 : 4;
  const std::string body = mma_body(form, a_registers, b_registers);
  std::mt19937 random(3);
  for (int trial = 0; trial < 9; ++trial) {
    std::vector<std::vector<uint32_t>> a(16, std::vector<uint32_t>(size_t(form.k))), b(8, a[0]);
    for (auto& row : a)
      for (uint32_t& code : row) code = random_code(random, a_format, trial);
    for (auto& column : b)
      for (uint32_t& code : column) code = random_code(random, b_format, trial);
    const gg::emu::Narrow c_format = half ? gg::emu::narrow("f16") : gg::emu::Narrow{32, 8, 23, 0, false};
    uint32_t c[16][8];
    for (auto& row : c)
      for (uint32_t& code : row) code = random_code(random, c_format, trial);
    std::fill_n(words(in), kWords, 0);
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4;
      for (int r = 0; r < a_registers; ++r) {
        for (int e = 0; e < each; ++e)
          words(in)[r * 32 + lane] |= a[size_t(g + r % 2 * 8)][size_t(r / 2 * 4 * each + t * each + e)]
                                      << (e * bits);
      }
      for (int r = 0; r < b_registers; ++r) {
        for (int e = 0; e < each; ++e)
          words(in)[(a_registers + r) * 32 + lane] |= b[size_t(g)][size_t(r * 4 * each + t * each + e)]
                                                      << (e * bits);
      }
      for (int i = 0; i < accumulators; ++i) {
        const int row = half ? g + 8 * i : g + i / 2 * 8;
        words(in)[(a_registers + b_registers + i) * 32 + lane] =
            half ? c[row][2 * t] | c[row][2 * t + 1] << 16 : c[row][2 * t + i % 2];
      }
    }
    const auto d = run(body, 32, size_t(32 * accumulators));
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        const int lane = row % 8 * 4 + column / 2;
        const uint32_t got = half ? d[size_t(row / 8 * 32 + lane)] >> (column % 2 * 16) & 0xFFFF
                                  : d[size_t((row / 8 * 2 + column % 2) * 32 + lane)];
        const uint32_t bits_wanted = mma_sum(form, a[size_t(row)], b[size_t(column)], c[row][column]);
        ASSERT_EQ(got, bits_wanted) << "trial " << trial << " row " << row << " column " << column;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Emu, MmaForms,
    testing::Values(MmaForm{"m16n8", "f32", "bf16", "bf16", 8}, MmaForm{"m16n8", "f32", "bf16", "bf16", 16},
                    MmaForm{"m16n8", "f32", "f16", "f16", 8}, MmaForm{"m16n8", "f16", "f16", "f16", 8},
                    MmaForm{"m16n8", "f16", "f16", "f16", 16}, MmaForm{"m16n8", "f32", "tf32", "tf32", 4},
                    MmaForm{"m16n8", "f32", "tf32", "tf32", 8}, MmaForm{"m16n8", "f32", "e4m3", "e5m2", 16},
                    MmaForm{"m16n8", "f32", "e5m2", "e4m3", 32}, MmaForm{"m16n8", "f16", "e4m3", "e4m3", 32}),
    [](const auto& info) {
      return format("%s_%s_%s_k%d", info.param.d, info.param.a, info.param.b, info.param.k);
    });

TEST_F(Matrices, UnknownFormsOfMmaAreRefused) {
  const std::string f4 = "{%f0, %f1, %f2, %f3}", r4 = "{%r10, %r11, %r12, %r13}", r2 = "{%r20, %r21}";
  for (const std::string& unknown :
       {"mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16 " + r2 + ", " + r4 + ", " + r2 + ", " + r2,
        "mma.sync.aligned.m16n8k16.row.row.f32.bf16.bf16.f32 " + f4 + ", " + r4 + ", " + r2 + ", " + f4,
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32 " + f4 + ", " + r4 + ", " + r2 + ", " + f4,
        "mma.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 " + f4 + ", " + r4 + ", " + r2 + ", " + f4,
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " + f4 + ", " + r2 + ", " + r2 + ", " + f4,
        "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.bf16.bf16.f32 " + f4 + ", " + r4 + ", " + r2 + ", " +
            f4,
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 " + r4 + ", " + r4 + ", " + r2 + ", " + r4,
        "mma.sync.m16n8k16.row.col.f32.bf16.bf16.f32 " + f4 + ", " + r4 + ", " + r2 + ", " + f4}) {
    std::string set;
    for (int i = 0; i < 30; ++i) set += format("mov.b32 %%r%d, 0;\n", 10 + i);
    for (int i = 0; i < 4; ++i) set += format("mov.f32 %%f%d, 0f00000000;\n", i);
    fault(FaultKind::unsupported, set + unknown + ";\n", 32);
  }
}

TEST_F(Matrices, MultiplyAddsAreCounted) {
  std::string body;
  for (int i = 0; i < 6; ++i) body += format("mov.b32 %%r%d, 0;\n", 10 + i);
  for (int i = 0; i < 4; ++i) body += format("mov.f32 %%f%d, 0f00000000;\n", i);
  for (int i = 0; i < 3; ++i) {
    body +=
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1, %f2, %f3}, {%r10, %r11, %r12, %r13}, "
        "{%r14, %r15}, {%f0, %f1, %f2, %f3};\n";
  }
  const gg::emu::Counts counts = run_with(body, 64, {});  // the loop would not keep it
  uint64_t sum = 0;
  for (const auto& each : counts.at(nullptr)) sum += each.multiply_adds;
  EXPECT_EQ(sum, uint64_t(2 * 3 * 16 * 8 * 16));
}

}  // namespace
