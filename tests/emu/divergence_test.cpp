// SPDX-License-Identifier: MIT
//
// A program does the same whoever runs when: branches of a warp, and lanes of a warp together.

#include <gtest/gtest.h>

#include "tests/emu/every_order.h"

namespace {

using namespace emu_test;

// ---- divergence ----

TEST(Divergence, NestedIfsMeetAgain) {
  const std::string body = R"(
    mov.u32 %r10, 0;
    setp.lt.u32 %p0, %r3, 16;
    @!%p0 bra ELSE;
    add.u32 %r10, %r10, 1;
    and.b32 %r11, %r3, 1;
    setp.eq.u32 %p1, %r11, 1;
    @!%p1 bra EVEN;
    add.u32 %r10, %r10, 10;
    bra JOIN;
    EVEN:
    add.u32 %r10, %r10, 20;
    bra JOIN;
    ELSE:
    add.u32 %r10, %r10, 2;
    setp.gt.u32 %p2, %r3, 27;
    @%p2 add.u32 %r10, %r10, 40;
    JOIN:
    activemask.b32 %r12;
    mad.lo.u32 %r10, %r12, 0, %r10;
    setp.ne.u32 %p3, %r12, 0xFFFFFFFF;
    @%p3 add.u32 %r10, %r10, 1000;
    st.global.u32 [%rd2], %r10;)";
  expect_always(kernel(body), config_of(2, 64), [](uint32_t thread) {
    const uint32_t lane = thread % 32;
    // 1000 more if the warp were still apart.
    return lane < 16 ? (lane % 2 ? 11u : 21u) : (lane > 27 ? 42u : 2u);
  });
}

TEST(Divergence, LoopsOfDifferentLength) {
  const std::string body = R"(
    mov.u32 %r10, 0;
    mov.u32 %r11, 0;
    LOOP:
    add.u32 %r11, %r11, %r10;
    mov.u32 %r12, 0;
    INNER:
    add.u32 %r11, %r11, 1;
    add.u32 %r12, %r12, 1;
    and.b32 %r13, %r3, 3;
    setp.le.u32 %p1, %r12, %r13;
    @%p1 bra INNER;
    add.u32 %r10, %r10, 1;
    setp.le.u32 %p0, %r10, %r5;
    @%p0 bra LOOP;
    shfl.sync.bfly.b32 %r14, %r11, 1, 31, 0xFFFFFFFF;
    st.global.u32 [%rd2], %r14;)";
  expect_always(kernel(body), config_of(2, 40),
                [](uint32_t thread) {
                  const uint32_t block = thread / 40, other = block * 40 + (thread % 40 ^ 1);
                  const uint32_t trips = other + 1, lane = other % 40 % 32;
                  return trips * (trips - 1) / 2 + trips * (lane % 4 + 1);
                },
                {});
}

TEST(Divergence, SwitchByIndex) {
  const std::string body = R"(
    and.b32 %r10, %r0, 3;
    TABLE: .branchtargets CASE0, CASE1, CASE2, CASE3;
    brx.idx %r10, TABLE;
    CASE0: mov.u32 %r11, 100; bra END;
    CASE1: mov.u32 %r11, 101; bra END;
    CASE2: add.u32 %r11, %r3, 1000; bra END;
    CASE3: mov.u32 %r11, 103;
    END:
    vote.sync.ballot.b32 %r12, 1, 0xFFFFFFFF;
    setp.ne.u32 %p1, %r12, 0xFFFFFFFF;
    @%p1 mov.u32 %r11, 0;
    st.global.u32 [%rd2], %r11;)";
  expect_always(kernel(body), config_of(1, 64),
                [](uint32_t thread) { return thread % 4 == 2 ? 1000 + thread % 32 : 100 + thread % 4; });
}

// Lanes that return are waited for no longer, by votes nor by shuffles whose mask names them.
TEST(Divergence, LanesThatReturnEarly) {
  const std::string body = R"(
    st.global.u32 [%rd2], 7;
    and.b32 %r10, %r3, 5;
    setp.eq.u32 %p0, %r10, 5;
    @%p0 ret;
    vote.sync.ballot.b32 %r11, 1, 0xFFFFFFFF;
    st.global.u32 [%rd2], %r11;)";
  uint32_t left = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) left |= uint32_t((lane & 5) != 5) << lane;
  expect_always(kernel(body), config_of(1, 64),
                [&](uint32_t thread) { return left >> thread % 32 & 1 ? left : 7; });
}

TEST(Divergence, GuardsOnEveryKindOfInstruction) {
  const std::string body = R"(
    .shared .align 16 .b8 cells[512];
    .shared .align 4 .u32 sum;
    and.b32 %r10, %r3, 1;
    setp.eq.u32 %p0, %r10, 1;
    setp.ge.u32 %p1, %r2, 32;
    mov.u32 %r11, 1;
    @%p0 add.u32 %r11, %r11, 4;
    @!%p0 mul.lo.u32 %r11, %r11, 3;
    @%p0 cvt.rn.f32.u32 %f0, %r11;
    @!%p0 mov.f32 %f0, 0f40000000;
    fma.rn.f32 %f0, %f0, %f0, %f0;
    cvt.rzi.u32.f32 %r12, %f0;
    mov.u32 %r13, cells;
    shl.b32 %r14, %r0, 2;
    add.u32 %r13, %r13, %r14;
    @%p0 st.shared.u32 [%r13], %r12;
    @!%p0 st.shared.u32 [%r13], 50;
    ld.shared.u32 %r15, [%r13];
    mov.u32 %r16, 0;
    @%p0 ld.shared.u32 %r16, [%r13];
    setp.eq.u32 %p2, %r0, 0;
    @%p2 st.shared.u32 [sum], 0;
    @%p1 bar.sync 0;
    @!%p0 atom.shared.add.u32 %r17, [sum], 1;
    @%p0 red.shared.add.u32 [sum], 100;
    @%p1 bar.sync 0;
    ld.shared.u32 %r18, [sum];
    mov.u32 %r19, 0;
    @%p1 shfl.sync.idx.b32 %r19, %r15, 1, 31, 0xFFFFFFFF;
    mov.u32 %r20, 9;
    @%p0 selp.u32 %r20, 1, 2, %p1;
    @%p0 ld.global.u32 %r20, [%rd1];
    add.u32 %r15, %r15, %r16;
    add.u32 %r15, %r15, %r18;
    add.u32 %r15, %r15, %r19;
    add.u32 %r15, %r15, %r20;
    @%p0 st.global.u32 [%rd2], %r15;
    @%p0 exit;
    st.global.u32 [%rd2], %r15;)";
  expect_always(kernel(body), config_of(2, 64),
                [](uint32_t thread) {
                  const uint32_t sum = 32 * 1 + 32 * 100;
                  return thread % 2 ? 30 + 30 + sum + 30 + 77 : 50 + 0 + sum + 30 + 9;
                },
                {77});
}

// ---- lanes of a warp together ----

TEST(Warps, TwoHalvesWithDifferentMasksAtOneInstruction) {
  const std::string body = R"(
    setp.lt.u32 %p0, %r3, 16;
    selp.b32 %r10, 0x0000FFFF, 0xFFFF0000, %p0;
    shfl.sync.bfly.b32 %r11, %r3, 3, 31, %r10;
    vote.sync.ballot.b32 %r12, %p0, %r10;
    mad.lo.u32 %r11, %r11, 0x10000, %r12;
    st.global.u32 [%rd2], %r11;)";
  expect_always(kernel(body), config_of(1, 64), [](uint32_t thread) {
    const uint32_t lane = thread % 32;
    return (lane ^ 3) * 0x10000 + (lane < 16 ? 0xFFFF : 0);
  });
}

// The halves come to one instruction from different branches: one group is complete before the
// first lane's is.
TEST(Warps, AGroupDoesNotWaitForAnother) {
  const std::string body = R"(
    .shared .align 4 .u32 flag;
    mov.u32 %r20, 0;
    setp.eq.u32 %p3, %r3, 0;
    @%p3 st.volatile.shared.u32 [flag], %r20;
    bar.warp.sync 0xFFFFFFFF;
    setp.lt.u32 %p0, %r3, 16;
    selp.b32 %r10, 0x0000FFFF, 0xFFFF0000, %p0;
    setp.eq.u32 %p1, %r3, 1;
    @!%p1 bra MEET;
    WAIT:
    ld.volatile.shared.u32 %r11, [flag];
    setp.eq.u32 %p2, %r11, 0;
    @%p2 bra WAIT;
    MEET:
    shfl.sync.idx.b32 %r12, %r3, 2, 0x1F, %r10;
    @%p0 bra END;
    st.volatile.shared.u32 [flag], 1;
    END:
    st.global.u32 [%rd2], %r10;)";
  expect_always(kernel(body), config_of(1, 32),
                [](uint32_t lane) { return lane < 16 ? 0xFFFFu : 0xFFFF0000u; });
}

TEST(Warps, MasksInDivergentCode) {
  const std::string body = R"(
    and.b32 %r10, %r3, 1;
    setp.eq.u32 %p0, %r10, 1;
    @%p0 bra ODD;
    shfl.sync.idx.b32 %r11, %r5, 6, 31, 0x55555555;
    vote.sync.any.pred %p1, %p0, 0x55555555;
    selp.u32 %r12, 1, 0, %p1;
    redux.sync.add.u32 %r13, %r3, 0x55555555;
    bra END;
    ODD:
    shfl.sync.idx.b32 %r11, %r5, 9, 31, 0xAAAAAAAA;
    vote.sync.all.pred %p1, %p0, 0xAAAAAAAA;
    selp.u32 %r12, 1, 0, %p1;
    redux.sync.max.u32 %r13, %r3, 0xAAAAAAAA;
    END:
    bar.warp.sync 0xFFFFFFFF;
    mad.lo.u32 %r11, %r11, 10, %r12;
    mad.lo.u32 %r11, %r11, 1000, %r13;
    st.global.u32 [%rd2], %r11;)";
  expect_always(kernel(body), config_of(1, 64), [](uint32_t thread) {
    const uint32_t warp = thread / 32 * 32, odd = thread % 2;
    return ((warp + (odd ? 9 : 6)) * 10 + odd) * 1000 + (odd ? 31 : 240);
  });
}

TEST(Warps, ElectFollowedByTheOthersWaiting) {
  const std::string body = R"(
    .shared .align 4 .b32 box[2];
    elect.sync %r10|%p0, 0xFFFFFFFF;
    mov.u32 %r11, box;
    shl.b32 %r12, %r4, 2;
    add.u32 %r11, %r11, %r12;
    @!%p0 bra OTHERS;
    mov.u32 %r13, 0;
    SLOW:
    add.u32 %r13, %r13, 1;
    setp.lt.u32 %p1, %r13, 3000;
    @%p1 bra SLOW;
    add.u32 %r13, %r13, %r4;
    st.shared.u32 [%r11], %r13;
    OTHERS:
    bar.warp.sync 0xFFFFFFFF;
    ld.shared.u32 %r14, [%r11];
    st.global.u32 [%rd2], %r14;)";
  expect_always(kernel(body), config_of(1, 64), [](uint32_t thread) { return 3000 + thread / 32; });
}

// Again and again, in four warps: the highest lane writes what all lanes read behind `between`.
std::string handed_on(const std::string& between) {
  return kernel(R"(
    .shared .align 4 .b32 box[4];
    mov.u32 %r11, box;
    shl.b32 %r12, %r4, 2;
    add.u32 %r11, %r11, %r12;
    setp.ne.u32 %p0, %r3, 31;
    mov.u32 %r13, 0;
    LOOP:
    @!%p0 st.shared.u32 [%r11], %r13;
    )" + between +
                R"(
    ld.shared.u32 %r14, [%r11];
    bar.warp.sync 0xFFFFFFFF;
    setp.ne.u32 %p1, %r14, %r13;
    @%p1 bra DONE;
    add.u32 %r13, %r13, 1;
    setp.lt.u32 %p2, %r13, 500;
    @%p2 bra LOOP;
    DONE:
    st.global.u32 [%rd2], %r13;)");
}

// Without a barrier of the warp some lane reads the number before, or nothing: in a skewed order.
TEST(Warps, LanesMayFallBehind) {
  Program program(handed_on(""));
  int wrong = 0;
  constexpr int kOrders = 16;
  for (int seed = 1; seed <= kOrders; ++seed) {
    Config config = config_of(1, 128);
    config.options.order = {uint64_t(seed), true};
    try {
      for (const uint32_t word : run(program, config, 128)) wrong += word != 500;
    } catch (const Fault& fault) {
      EXPECT_NE(std::string(fault.what()).find("nobody has written it"), std::string::npos) << fault.what();
      ++wrong;
    }
  }
  EXPECT_GT(wrong, 0);
}
TEST(Warps, ABarrierKeepsLanesInStep) {
  expect_always(handed_on("bar.warp.sync 0xFFFFFFFF;"), config_of(1, 128), [](uint32_t) { return 500; });
}

}  // namespace
