// SPDX-License-Identifier: MIT
//
// Matrix instructions in small PTX kernels: which element goes where, the bits of the sums, and what the
// emulator says when they are misused.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "common/check.h"
#include "common/emu/isa/arithmetic.h"
#include "common/emu/state/grid.h"
#include "tests/emu/report.h"

namespace {

using report::says;

using gg::format;
using gg::emu::Fault;
using gg::emu::FaultKind;

// "{%r0, %r1}"
std::string registers(const std::string& prefix, int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", %" : "%") + prefix + std::to_string(first + i);
  return text + "}";
}

// A kernel `k` of two pointers, out (%rd0) and in (%rd1). %r0 is the thread, %r1 the warp, %r2 the address of
// 64 KB of shared memory `buffer`, %r3 that of 4 mbarriers `bars`; %p1 to %p4 are true in warps 0 to 3, %p0
// in thread 0.
std::string kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .shared .align 1024 .b8 buffer[65536];
  .shared .align 8 .b64 bars[4];
  .reg .pred %p<20>; .reg .b32 %r<300>; .reg .f32 %f<300>; .reg .b64 %rd<40>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.u32 %r0, %tid.x;
  shr.u32 %r1, %r0, 5;
  mov.u32 %r2, buffer;
  mov.u32 %r3, bars;
  setp.eq.u32 %p0, %r0, 0;
  setp.eq.u32 %p1, %r1, 0;
  setp.eq.u32 %p2, %r1, 1;
  setp.eq.u32 %p3, %r1, 2;
  setp.eq.u32 %p4, %r1, 3;
)" + body +
         "\n  ret;\n}\n";
}

class Machine : public testing::Test {
 protected:
  static constexpr size_t kWords = 1 << 15;

  void SetUp() override {
    out = memory.allocate(kWords * 4);
    in = memory.allocate(kWords * 4);
    for (size_t i = 0; i < kWords; ++i) words(out)[i] = 0xEEEEEEEE, words(in)[i] = uint32_t(i * 2654435761u);
  }
  uint32_t* words(uint64_t address) { return reinterpret_cast<uint32_t*>(memory.unchecked(address)); }

  gg::emu::Counts run_with(const std::string& body, int threads, const gg::emu::Order& order,
                           uint32_t allowed = 0) {
    const auto module = gg::emu::parse_ptx(kernel(body));
    const auto code = gg::emu::decode(*module, *module->find("k"));
    gg::emu::Launch launch;
    launch.code = code.get();
    launch.block[0] = threads;
    launch.params.resize(16);
    std::memcpy(launch.params.data(), &out, 8);
    std::memcpy(launch.params.data() + 8, &in, 8);
    gg::emu::RunOptions options;
    options.order = order;
    options.workers = 1;
    options.allowed = allowed;
    gg::emu::Counts counts;
    gg::emu::run_launch(launch, memory, options, &counts);
    gg::emu::Counts sums;  // the code is gone: a null key
    sums[nullptr] = counts[code.get()];
    return sums;
  }

  // Runs in both policies of effects and in skewed orders; the output must be the same words each time.
  std::vector<uint32_t> run(const std::string& body, int threads, size_t count) {
    std::vector<uint32_t> first;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      std::fill_n(words(out), kWords, 0xEEEEEEEE);
      try {
        run_with(body, threads, {seed, seed > 1});
      } catch (const Fault& fault) {
        ADD_FAILURE() << fault.what();
        return std::vector<uint32_t>(count);
      }
      const std::vector<uint32_t> now(words(out), words(out) + count);
      if (first.empty()) first = now;
      EXPECT_EQ(now, first) << "order " << seed;
    }
    return first;
  }

  // The report of the fault that both policies must raise.
  std::string fault(FaultKind kind, const std::string& body, int threads = 128) {
    std::string report;
    for (uint64_t seed = 0; seed < 2; ++seed) {
      try {
        run_with(body, threads, {seed, false});
        ADD_FAILURE() << "no fault in order " << seed << ", expected " << fault_name(kind);
      } catch (const Fault& fault) {
        EXPECT_EQ(fault_name(fault.kind), std::string(fault_name(kind))) << fault.what();
        report = fault.what();
      }
    }
    return report;
  }

  gg::emu::GlobalMemory memory;
  uint64_t out = 0, in = 0;
};

// ---- ldmatrix, stmatrix, movmatrix ----

using Matrices = Machine;

// Copies `bytes` of in to the buffer, 16 by each thread in turn.
std::string copy_in(int bytes, int threads) {
  std::string text;
  for (int at = 0; at < bytes; at += 16 * threads) {
    text += format(R"(
  shl.b32 %%r290, %%r0, 4;
  add.u32 %%r290, %%r290, %d;
  setp.lt.u32 %%p10, %%r290, %d;
  cvt.u64.u32 %%rd30, %%r290;
  add.u64 %%rd30, %%rd30, %%rd1;
  @%%p10 ld.global.v4.u32 {%%r291, %%r292, %%r293, %%r294}, [%%rd30];
  add.u32 %%r290, %%r290, %%r2;
  @%%p10 st.shared.v4.u32 [%%r290], {%%r291, %%r292, %%r293, %%r294};
)",
                   at, bytes);
  }
  return text;
}
// Register `name` of each thread to out[row * threads + thread].
std::string store(const std::string& name, int row, int threads) {
  return format(R"(
  mad.lo.u32 %%r295, %%r0, 4, %d;
  cvt.u64.u32 %%rd31, %%r295;
  add.u64 %%rd31, %%rd31, %%rd0;
  st.global.b32 [%%rd31], %s;
)",
                4 * row * threads, name.c_str());
}

TEST_F(Matrices, LdmatrixGivesEachLaneItsPairs) {
  // Row r of matrix i is 16 bytes of the buffer, at 16 * (8 * i + r); lanes give them in reverse, so that
  // matrix i is 3 - i upside down.
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
    const uint32_t row = lane / 4,
                   column = lane % 4 * 2;  // of the result: element (row, column) was (column, row)
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

TEST_P(MmaForms, GiveTheSumsOneByOne) {
  const MmaForm& form = GetParam();
  const gg::emu::Narrow a_format = gg::emu::narrow(form.a), b_format = gg::emu::narrow(form.b);
  const int bits = a_format.bits, each = 32 / bits, b_registers = form.k / (4 * each),
            a_registers = 2 * b_registers;
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
        gg::emu::Term at[32], bt[32];
        for (int k = 0; k < form.k; ++k)
          at[k] = term_of(a_format, a[size_t(row)][size_t(k)]),
          bt[k] = term_of(b_format, b[size_t(column)][size_t(k)]);
        const float accumulator =
            half ? gg::emu::half_to_float(uint16_t(c[row][column])) : std::bit_cast<float>(c[row][column]);
        gg::emu::Cut cut;
        cut.mantissa_bits = a_format.mantissa_bits + b_format.mantissa_bits;
        cut.to_half = half;
        float want;
        if (bits == 8) {  // two steps of f16, then the accumulator
          gg::emu::Term as[2][16], bs[2][16];
          for (int k = 0; k < form.k; ++k)
            as[k / 2 % 2][k / 4 * 2 + k % 2] = at[k], bs[k / 2 % 2][k / 4 * 2 + k % 2] = bt[k];
          want = accumulator +
                 fused_sum(as[1], bs[1], form.k / 2, fused_sum(as[0], bs[0], form.k / 2, 0, cut), cut);
        } else {
          want = fused_sum(at, bt, form.k, accumulator, cut);
        }
        const int lane = row % 8 * 4 + column / 2;
        const uint32_t got = half ? d[size_t(row / 8 * 32 + lane)] >> (column % 2 * 16) & 0xFFFF
                                  : d[size_t((row / 8 * 2 + column % 2) * 32 + lane)];
        const uint32_t bits_wanted = half               ? gg::emu::float_to_half(want)
                                     : std::isnan(want) ? 0x7FFFFFFF
                                                        : std::bit_cast<uint32_t>(want);
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

// ---- wgmma ----

// Whole numbers in bf16, K-major tiles of 64 x 64 (A, at 0) and 32 x 64 (B, at 8192), 128-byte swizzle, C in
// f32.
class Wgmma : public Machine {
 protected:
  static constexpr int kN = 32, kK = 64, kB = 8192;

  void SetUp() override {
    Machine::SetUp();
    std::mt19937 random(5);
    const auto fill = [&](int8_t(&numbers)[64][kK], int lines, int start) {
      for (int line = 0; line < lines; ++line) {
        for (int k = 0; k < kK; ++k) {
          numbers[line][k] = int8_t(int(random() % 15) - 7);
          const uint32_t byte = uint32_t(start + line * 128 + 2 * k), at = byte ^ (byte >> 7 & 7) << 4;
          reinterpret_cast<uint16_t*>(words(in))[at / 2] =
              uint16_t(std::bit_cast<uint32_t>(float(numbers[line][k])) >> 16);
        }
      }
    };
    fill(a, 64, 0);
    fill(b, kN, kB);
  }

  // Tiles in shared memory, the accumulators set to row * 100 + column; descriptors in %rd10 (A) and %rd11
  // (B).
  static std::string prologue(const std::string& fence_proxy = "fence.proxy.async.shared::cta;\n",
                              int threads = 128) {
    std::string text = copy_in(8192 + kN * 128, threads) + fence_proxy + "bar.sync 0;\n";
    text +=
        "shr.u32 %r280, %r2, 4;\n cvt.u64.u32 %rd10, %r280;\n or.b64 %rd10, %rd10, 0x4000004000000000;\n";  // 128B, stride 1024
    text += format("add.u64 %%rd11, %%rd10, %d;\n", kB / 16);
    // row = 16 * warp + lane / 4 (+ 8), column = 2 * (lane % 4) (+ 1 + 8 * i)
    text +=
        "and.b32 %r281, %r0, 31;\n shr.u32 %r282, %r281, 2;\n and.b32 %r283, %r281, 3;\n mad.lo.u32 %r282, "
        "%r1, 16, %r282;\n"
        "mul.lo.u32 %r282, %r282, 100;\n mad.lo.u32 %r282, %r283, 2, %r282;\n";
    for (int i = 0; i < kN / 2; ++i) {
      text += format("add.u32 %%r283, %%r282, %d;\n cvt.rn.f32.u32 %%f%d, %%r283;\n",
                     i / 2 % 2 * 800 + i / 4 * 8 + i % 2, i);
    }
    return text + "setp.ne.u32 %p12, %r0, 100000;\n setp.eq.u32 %p13, %r0, 100000;\n";  // true, false
  }
  static std::string operation(const std::string& predicate = "%p12", const std::string& a_desc = "%rd10",
                               const std::string& b_desc = "%rd11", int first_register = 0) {
    return "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " + registers("f", first_register, kN / 2) +
           ", " + a_desc + ", " + b_desc + ", " + predicate + ", 1, 1, 0, 0;\n";
  }
  // Four steps along k.
  static std::string steps(const std::string& first_predicate = "%p12", int count = 4) {
    std::string text;
    for (int step = 0; step < count; ++step) {
      text += format("add.u64 %%rd12, %%rd10, %d;\n add.u64 %%rd13, %%rd11, %d;\n", 2 * step, 2 * step) +
              operation(step ? "%p12" : first_predicate, "%rd12", "%rd13");
    }
    return text;
  }
  static std::string store_all() {
    std::string text;
    for (int i = 0; i < kN / 2; ++i) text += store("%f" + std::to_string(i), i, 128);
    return text;
  }
  static std::string fence() { return "wgmma.fence.sync.aligned;\n"; }
  static std::string commit() { return "wgmma.commit_group.sync.aligned;\n"; }
  static std::string wait(int n = 0) { return format("wgmma.wait_group.sync.aligned %d;\n", n); }

  void expect_product(const std::vector<uint32_t>& d, bool accumulate, int first_thread_rows = 64,
                      int k_end = kK) {
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < kN / 2; ++i) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8,
                  column = i / 4 * 8 + thread % 4 * 2 + i % 2;
        if (row >= first_thread_rows) continue;
        int sum = accumulate ? row * 100 + column : 0;
        for (int k = 0; k < k_end; ++k) sum += a[row][k] * b[column][k];
        ASSERT_EQ(std::bit_cast<float>(d[size_t(i * 128 + thread)]), float(sum))
            << "thread " << thread << " register " << i;
      }
    }
  }

  int8_t a[64][kK], b[64][kK];
};

TEST_F(Wgmma, MultipliesAndAdds) {
  expect_product(run(prologue() + fence() + steps() + commit() + wait() + store_all(), 128, 128 * kN / 2),
                 true);
  expect_product(
      run(prologue() + fence() + steps("%p13") + commit() + wait() + store_all(), 128, 128 * kN / 2), false);
  expect_product(
      run(prologue() + fence() + steps("!%p12") + commit() + wait() + store_all(), 128, 128 * kN / 2), false);
}

TEST_F(Wgmma, ChainsOverGroupsAndWaitsWithoutAnotherFence) {
  // One group per step, the accumulators under way all the time; then more steps on registers that nobody
  // touched.
  std::string chained = prologue() + fence();
  for (int step = 0; step < 4; ++step) {
    chained += format("add.u64 %%rd12, %%rd10, %d;\n add.u64 %%rd13, %%rd11, %d;\n", 2 * step, 2 * step) +
               operation("%p12", "%rd12", "%rd13") + commit() + wait(step == 1 ? 0 : 1);
  }
  expect_product(run(chained + wait() + store_all(), 128, 128 * kN / 2), true);
}

TEST_F(Wgmma, ReadsAFromRegisters) {
  std::string body = prologue();
  for (int step = 0; step < 4; ++step) {  // a0 to a3 of the step: row g (+ 8), bytes of k 4t (+ 16)
    for (int i = 0; i < 4; ++i) {
      body += format(R"(
  and.b32 %%r284, %%r0, 31;
  shr.u32 %%r285, %%r284, 2;
  and.b32 %%r284, %%r284, 3;
  mad.lo.u32 %%r285, %%r1, 16, %%r285;
  add.u32 %%r285, %%r285, %d;
  mul.lo.u32 %%r286, %%r285, 128;
  mad.lo.u32 %%r286, %%r284, 4, %%r286;
  add.u32 %%r286, %%r286, %d;
  and.b32 %%r285, %%r285, 7;
  shl.b32 %%r285, %%r285, 4;
  xor.b32 %%r286, %%r286, %%r285;
  add.u32 %%r286, %%r286, %%r2;
  ld.shared.b32 %%r%d, [%%r286];
)",
                     i % 2 * 8, step * 32 + i / 2 * 16, 20 + step * 4 + i);
    }
  }
  body += fence();
  for (int step = 0; step < 4; ++step) {
    body += format("add.u64 %%rd13, %%rd11, %d;\n", 2 * step) +
            "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " + registers("f", 0, kN / 2) + ", " +
            registers("r", 20 + step * 4, 4) + ", %rd13, %p12, 1, 1, 0;\n";
  }
  expect_product(run(body + commit() + wait() + store_all(), 128, 128 * kN / 2), true);
  EXPECT_TRUE(says(fault(FaultKind::async_window, body + commit() + "mov.b32 %r21, 0;\n" + wait()), "%r21"));
  EXPECT_TRUE(
      says(fault(FaultKind::uninit_register,
                 prologue() + fence() + "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " +
                     registers("f", 0, kN / 2) + ", {%r20, %r21, %r22, %r23}, %rd11, %p12, 1, 1, 0;\n"),
           "%r20"));
}

TEST_F(Wgmma, NegatesEitherOperand) {
  std::string body = prologue() + fence();
  for (const char* scales : {"-1, 1", "1, -1", "-1, -1"}) {
    body += "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 " + registers("f", 0, kN / 2) +
            ", %rd10, %rd11, %p12, " + scales + ", 0, 0;\n";
  }
  const auto d = run(body + commit() + wait() + store_all(), 128, 128 * kN / 2);
  for (int thread = 0; thread < 128; ++thread) {  // the first step's product, taken away once
    const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
    int sum = row * 100 + column;
    for (int k = 0; k < 16; ++k) sum -= a[row][k] * b[column][k];
    ASSERT_EQ(std::bit_cast<float>(d[size_t(thread)]), float(sum));
  }
}

TEST_F(Wgmma, CountsMultiplyAdds) {
  const auto counts = run_with(prologue() + fence() + steps() + commit() + wait() + store_all(), 128, {});
  uint64_t sum = 0, bytes = 0;
  for (const auto& each : counts.at(nullptr)) {
    sum += each.multiply_adds;
    if (each.multiply_adds) bytes += each.bytes;
  }
  EXPECT_EQ(sum, uint64_t(64 * kN * kK));
  EXPECT_EQ(bytes, uint64_t((64 + kN) * kK * 2));
}

// One warp's arrival is enough to hand tiles back: who has waited knows that all four are done with them.
TEST_F(Wgmma, OneWarpHandsTheTilesBack) {
  const std::string consume = "@%p5 bra PRODUCER;\n" + fence() + steps() + commit() + wait() +
                              "@%p0 mbarrier.arrive.shared::cta.b64 _, [bars];\n" + store_all() +
                              "bra END;\n";
  const std::string produce =
      "PRODUCER:\nW:\nmbarrier.try_wait.parity.shared::cta.b64 %p14, [bars], 0;\n@!%p14 bra W;\n"
      "and.b32 %r40, %r0, 31;\n mad.lo.u32 %r40, %r40, 16, %r2;\n mov.u32 %r41, 0;\n";
  std::string overwrite;
  for (int at = 0; at < 8192 + kN * 128; at += 512)
    overwrite += format("st.shared.v4.u32 [%%r40+%d], {%%r41, %%r41, %%r41, %%r41};\n", at);
  const std::string setup = "setp.ge.u32 %p5, %r0, 128;\n@%p0 mbarrier.init.shared::cta.b64 [bars], 1;\n";
  expect_product(run(setup + prologue("fence.proxy.async.shared::cta;\n", 160) + consume + produce +
                         overwrite + "END:\n",
                     160, 128 * kN / 2),
                 true);
  // Without the wait for the consumers it is a fault, whoever comes first.
  for (uint64_t seed = 0; seed < 8; ++seed) {
    try {
      run_with(
          setup + prologue("fence.proxy.async.shared::cta;\n", 160) + consume +
              "PRODUCER:\nand.b32 %r40, %r0, 31;\n mad.lo.u32 %r40, %r40, 16, %r2;\n mov.u32 %r41, 0;\n" +
              overwrite + "END:\n",
          160, {seed, seed > 1});
      ADD_FAILURE() << "no fault in order " << seed;
    } catch (const Fault& fault) {
      EXPECT_TRUE(fault.kind == FaultKind::async_window || fault.kind == FaultKind::race ||
                  fault.kind == FaultKind::proxy)
          << fault.what();
    }
  }
}

TEST_F(Wgmma, MissingFencesAreSeen) {
  EXPECT_TRUE(
      says(fault(FaultKind::proxy, prologue() + steps() + commit() + wait()), "no wgmma.fence has followed"));
  EXPECT_TRUE(says(fault(FaultKind::proxy, prologue("") + fence() + steps() + commit() + wait()),
                   "fence.proxy.async"));
  // Accumulators touched between two groups.
  const std::string again = prologue() + fence() + steps() + commit() + wait() + "add.f32 %f3, %f3, %f3;\n";
  EXPECT_TRUE(says(fault(FaultKind::proxy, again + steps() + commit() + wait()), "%f3"));
  run_with(again + fence() + steps() + commit() + wait(), 128, {});
  // Behind the fence, but before the group's commit: a compiler may have put it there.
  run_with(again + fence() + "mov.f32 %f3, 0f00000000;\n" + steps() + commit() + wait(), 128, {});
  fault(FaultKind::proxy,
        again + fence() + commit() + "mov.f32 %f3, 0f00000000;\n" + steps() + commit() + wait());
}

TEST_F(Wgmma, RegistersUnderWayAreNotTouched) {
  const std::string begun = prologue() + fence() + steps() + commit();
  EXPECT_TRUE(says(fault(FaultKind::async_window, begun + store_all() + wait()), "%f0"));
  EXPECT_TRUE(says(fault(FaultKind::async_window, begun + "mov.f32 %f5, 0f00000000;\n" + wait()), "%f5"));
  fault(FaultKind::async_window, begun + wait(1) + store_all());
  fault(FaultKind::async_window, prologue() + fence() + steps() + wait() + store_all());  // no commit
  // Another shape on the same accumulators.
  EXPECT_TRUE(
      says(fault(FaultKind::async_window, begun + "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " +
                                              registers("f", 0, 8) + ", %rd10, %rd11, %p12, 1, 1, 0, 0;\n"),
           "same shape"));
  const std::string zeros =
      "mov.b32 %r20, 0; mov.b32 %r21, 0; mov.b32 %r22, 0; mov.b32 %r23, 0; mov.b32 %r24, 0; mov.b32 %r25, 0; "
      "mov.b32 %r26, 0; mov.b32 %r27, 0;\n";
  fault(FaultKind::async_window, prologue() + zeros + fence() +
                                     "wgmma.mma_async.sync.aligned.m64n32k16.f16.f16.f16 " +
                                     registers("r", 20, 8) + ", %rd10, %rd11, %p12, 1, 1, 0, 0;\n" +
                                     "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 " +
                                     registers("r", 20, 8) + ", %rd10, %rd11, %p12, 1, 1, 0, 0;\n");
  EXPECT_TRUE(
      says(fault(FaultKind::uninit_register, prologue() + fence() + operation("%p12", "%rd10", "%rd11", 100)),
           "%f100"));
  run_with(prologue() + fence() + operation("%p13", "%rd10", "%rd11", 100) + commit() + wait(), 128, {});
}

TEST_F(Wgmma, TilesUnderWayAreNotOverwritten) {
  const std::string overwrite = "@%p0 st.shared.u32 [%r2+8192], %r0;\n";
  EXPECT_TRUE(
      says(fault(FaultKind::async_window, prologue() + fence() + steps() + commit() + overwrite + wait()),
           "wgmma.mma_async"));
  // Bytes beside the tiles, and the tiles after the wait, are free.
  run_with(prologue() + fence() + steps() + commit() + "@%p0 st.shared.u32 [%r2+12288], %r0;\n" + wait() +
               overwrite,
           128, {});
  // A part of a tile that no step reads is free too: of one step's 32 bytes the next 16 are none.
  run_with(
      prologue() + fence() + steps("%p12", 1) + commit() + "@%p0 st.shared.u32 [%r2+32], %r0;\n" + wait(),
      128, {});
  fault(FaultKind::async_window,
        prologue() + fence() + steps("%p12", 1) + commit() + "@%p0 st.shared.u32 [%r2+16], %r0;\n" + wait());
  // What is read must have been written.
  EXPECT_TRUE(
      says(fault(FaultKind::uninit_shared, prologue() + "add.u64 %rd11, %rd11, 256;\n" + fence() + steps()),
           "nobody has written"));
}

TEST_F(Wgmma, DescriptorsAreChecked) {
  const auto with = [&](const std::string& change) {
    return prologue() + change + fence() + steps() + commit() + wait();
  };
  EXPECT_TRUE(says(fault(FaultKind::descriptor, with("or.b64 %rd11, %rd11, 0x4000;\n")), "reserved bits"));
  EXPECT_TRUE(
      says(fault(FaultKind::descriptor, with("or.b64 %rd10, %rd10, 0x10000000000000;\n")), "reserved bits"));
  EXPECT_TRUE(says(fault(FaultKind::descriptor, with("add.u64 %rd10, %rd10, 1;\n")),
                   "span"));  // the fourth step leaves the span
  EXPECT_TRUE(says(fault(FaultKind::descriptor, with("add.u64 %rd10, %rd10, 8;\n")),
                   "base offset is 0"));  // 128 bytes on
  EXPECT_TRUE(says(fault(FaultKind::descriptor, with("or.b64 %rd10, %rd10, 0x2000000000000;\n")),
                   "base offset is 1"));
  EXPECT_TRUE(says(fault(FaultKind::descriptor, with("and.b64 %rd10, %rd10, 0xC000000000003FFF;\n")),
                   "offset of 0"));  // no stride
  EXPECT_TRUE(says(fault(FaultKind::bounds, with("add.u64 %rd11, %rd11, 4096;\n")), "B, column"));
  EXPECT_TRUE(
      says(fault(FaultKind::diverged, with("cvt.u64.u32 %rd14, %r0;\n add.u64 %rd10, %rd10, %rd14;\n")),
           "same in all threads"));
  // Data written by absolute addresses is read right from any line with base offset 0, as on hardware, for
  // who allows it: 16 rows down, A's rows but those of the last warp are where the tile's rows 16 to 63 are.
  const uint32_t allowed = 1u << int(FaultKind::descriptor);
  run_with(prologue() + "add.u64 %rd11, %rd11, 8;\n" + fence() +
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " + registers("f", 0, 4) +
               ", %rd10, %rd11, %p13, 1, 1, 0, 0;\n" + commit() + wait() + store("%f0", 0, 128),
           128, {}, allowed);
  for (int thread = 0; thread < 128; ++thread) {
    const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2 + 1;  // one row of B further
    int sum = 0;
    for (int k = 0; k < 16; ++k) sum += a[row][k] * b[column][k];
    ASSERT_EQ(std::bit_cast<float>(words(out)[thread]), float(sum));
  }
}

TEST_F(Wgmma, FourWarpsDoTheSame) {
  EXPECT_TRUE(says(fault(FaultKind::diverged, prologue("fence.proxy.async.shared::cta;\n", 96) + fence(), 96),
                   "four warps"));
  const auto by_warp = [&](const std::string& of_others) {  // warp 2 leaves something out
    return prologue() + fence() + operation() + "@%p3 bra OTHER;\n" + of_others + "OTHER:\n" + commit() +
           wait();
  };
  EXPECT_TRUE(says(fault(FaultKind::diverged, by_warp(operation())), "same wgmma instructions"));
  EXPECT_TRUE(says(fault(FaultKind::diverged, by_warp(commit())), "committed"));
  EXPECT_TRUE(says(fault(FaultKind::diverged, prologue() + "@%p3 add.u64 %rd11, %rd11, 2;\n" + fence() +
                                                  operation() + commit() + wait()),
                   "same descriptors"));
  // A warp that does not come at all.
  EXPECT_TRUE(says(fault(FaultKind::deadlock, prologue() + "@%p3 bra END;\n" + fence() + operation() +
                                                  commit() + wait() + "END:\n"),
                   "warp 2 has committed 0 of 1"));
}

TEST_F(Wgmma, UnknownFormsAreRefused) {
  const std::string f = registers("f", 0, 16), mma = "wgmma.mma_async.sync.aligned.";
  for (const std::string& unknown :
       {mma + "m64n32k16.f32.bf16.f16 " + f + ", %rd10, %rd11, %p12, 1, 1, 0, 0",
        mma + "m64n32k8.f32.bf16.bf16 " + f + ", %rd10, %rd11, %p12, 1, 1, 0, 0",
        mma + "m64n32k16.f16.bf16.bf16 " + registers("r", 20, 8) + ", %rd10, %rd11, %p12, 1, 1, 0, 0",
        mma + "m64n36k16.f32.bf16.bf16 " + f + ", %rd10, %rd11, %p12, 1, 1, 0, 0",
        mma + "m64n32k16.f32.bf16.bf16 " + f + ", %rd10, %rd11, %p12, 1, 1",
        mma + "m64n32k16.f32.bf16.bf16 " + f + ", %rd10, %rd11, %p12, 2, 1, 0, 0",
        mma + "m64n32k16.f32.bf16.bf16 " + registers("f", 0, 15) + ", %rd10, %rd11, %p12, 1, 1, 0, 0",
        mma + "m64n32k32.f32.e4m3.e4m3 " + f + ", %rd10, %rd11, %p12, 1, 1, 0, 0",
        mma + "m64n32k32.s32.s8.s8 " + registers("r", 20, 16) + ", %rd10, %rd11, %p12",
        "wgmma.mma_async.sp.sync.aligned.m64n32k32.f32.bf16.bf16 " + f +
            ", %rd10, %rd11, %r0, 0, %p12, 1, 1, 0, 0",
        mma + "m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f1}, %rd10, %rd11, %p12, 1, 1, 0, 0",
        std::string("wgmma.wait_group.sync.aligned %r0")}) {
    fault(FaultKind::unsupported, prologue() + fence() + unknown + ";\n");
  }
}

}  // namespace
