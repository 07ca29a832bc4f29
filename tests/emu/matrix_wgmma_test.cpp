// SPDX-License-Identifier: MIT
//
// wgmma in small PTX kernels: which element goes where, the bits of the sums, and what the emulator
// says when it is misused.

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "tests/emu/matrix_kernel.h"
#include "tests/emu/report_says.h"

namespace {

using namespace matrix_test;
using report::says;

// Whole numbers in bf16, K-major tiles of 64 x 64 (A, at 0) and 32 x 64 (B, at 8192), 128-byte
// swizzle, C in f32.
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

  // Tiles in shared memory, the accumulators set to row * 100 + column; descriptors in %rd10 (A)
  // and %rd11 (B).
  static std::string prologue(const std::string& fence_proxy = "fence.proxy.async.shared::cta;\n",
                              int threads = 128) {
    std::string text = copy_in(8192 + kN * 128, threads) + fence_proxy + "bar.sync 0;\n";
    // Swizzle of 128 bytes, stride 1024.
    text += "shr.u32 %r280, %r2, 4;\n cvt.u64.u32 %rd10, %r280;\n or.b64 %rd10, %rd10, 0x4000004000000000;\n";
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
    // Predicates that are true, and false.
    return text + "setp.ne.u32 %p12, %r0, 100000;\n setp.eq.u32 %p13, %r0, 100000;\n";
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

  void expect_product(const std::vector<uint32_t>& d, bool accumulate) {
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < kN / 2; ++i) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8,
                  column = i / 4 * 8 + thread % 4 * 2 + i % 2;
        int sum = accumulate ? row * 100 + column : 0;
        for (int k = 0; k < kK; ++k) sum += a[row][k] * b[column][k];
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
  // One group per step, the accumulators under way all the time; then more steps on registers
  // that nobody touched.
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
    if (each.multiply_adds) bytes += each.shared_bytes;
  }
  EXPECT_EQ(sum, uint64_t(64 * kN * kK));
  EXPECT_EQ(bytes, uint64_t((64 + kN) * kK * 2));
}

// One warp's arrival is enough to hand tiles back: who has waited knows that all four are
// done with them.
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
  // Without a commit.
  fault(FaultKind::async_window, prologue() + fence() + steps() + wait() + store_all());
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
  // The shared memory that wgmma reads must have been written.
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
  // The fourth step leaves the span.
  EXPECT_TRUE(says(fault(FaultKind::descriptor, with("add.u64 %rd10, %rd10, 1;\n")), "span"));
  // 128 bytes on.
  EXPECT_TRUE(says(fault(FaultKind::descriptor, with("add.u64 %rd10, %rd10, 8;\n")), "base offset is 0"));
  EXPECT_TRUE(says(fault(FaultKind::descriptor, with("or.b64 %rd10, %rd10, 0x2000000000000;\n")),
                   "base offset is 1"));
  // Without a stride.
  EXPECT_TRUE(
      says(fault(FaultKind::descriptor, with("and.b64 %rd10, %rd10, 0xC000000000003FFF;\n")), "offset of 0"));
  EXPECT_TRUE(says(fault(FaultKind::bounds, with("add.u64 %rd11, %rd11, 4096;\n")), "B, column"));
  EXPECT_TRUE(
      says(fault(FaultKind::diverged, with("cvt.u64.u32 %rd14, %r0;\n add.u64 %rd10, %rd10, %rd14;\n")),
           "same in all threads"));
  // Data written by absolute addresses is read right from any line with base offset 0, as on
  // hardware, for who allows it: 16 rows down, A's rows but those of the last warp are where the
  // tile's rows 16 to 63 are.
  const uint32_t allowed = 1u << int(FaultKind::descriptor);
  run_with(prologue() + "add.u64 %rd11, %rd11, 8;\n" + fence() +
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " + registers("f", 0, 4) +
               ", %rd10, %rd11, %p13, 1, 1, 0, 0;\n" + commit() + wait() + store("%f0", 0, 128),
           128, {}, allowed);
  for (int thread = 0; thread < 128; ++thread) {
    // One row of B further.
    const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2 + 1;
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
