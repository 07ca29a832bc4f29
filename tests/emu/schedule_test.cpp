// SPDX-License-Identifier: MIT
//
// What a program does does not depend on who runs when: divergence, barriers, atomics, copies, calls and
// clusters, each in every order and on one and two workers.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/emu/launch_ptx.h"

namespace {

using emu_test::Buffer;
using emu_test::Config;
using emu_test::config_of;
using emu_test::kernel;
using emu_test::Program;
using gg::emu::Fault;
using Words = std::vector<uint32_t>;

int threads_of(const Config& s) {
  return s.grid[0] * s.grid[1] * s.grid[2] * s.block[0] * s.block[1] * s.block[2];
}

// What the words of `out` are after the launch; they are 0xEEEEEEEE before.
Words run(Program& program, const Config& config, size_t words, const Words& in = {}) {
  std::vector<Buffer> buffers = {emu_test::buffer_of(Words(words, 0xEEEEEEEE)), emu_test::buffer_of(in)};
  program.run(buffers, config);
  return emu_test::values_of<uint32_t>(buffers[0]);
}

// In every order, on one and two workers, word i of `out` is expected(i).
template <class Expected>
void expect_always(const std::string& text, Config config, size_t words, Expected expected,
                   const Words& in = {}) {
  Program program(text);
  for (const gg::emu::Order& order : emu_test::orders()) {
    for (int workers = 1; workers <= 2; ++workers) {
      SCOPED_TRACE("order " + emu_test::name_of(order) + ", workers " + std::to_string(workers));
      config.options.order = order;
      config.options.workers = workers;
      Words out;
      try {
        out = run(program, config, words, in);
      } catch (const Fault& fault) {
        FAIL() << fault.what();
      }
      for (size_t i = 0; i < words; ++i) ASSERT_EQ(out[i], uint32_t(expected(uint32_t(i)))) << "word " << i;
    }
  }
}
// One word for each thread.
template <class Expected>
void expect_always(const std::string& text, const Config& config, Expected expected, const Words& in = {}) {
  expect_always(text, config, size_t(threads_of(config)), expected, in);
}

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
    return lane < 16 ? (lane % 2 ? 11u : 21u)
                     : (lane > 27 ? 42u : 2u);  // 1000 more if the warp were still apart
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

// The halves come to one instruction from different branches: one group is complete before the first lane's
// is.
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
    )" + between + R"(
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

// Without a barrier of the warp some lane reads the number before, or nothing yet: in a skewed order.
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

// ---- barriers of a block ----

TEST(Barriers, ReverseABlockOf40) {
  const std::string body = R"(
    .shared .align 4 .b32 cells[40];
    mov.u32 %r10, cells;
    shl.b32 %r11, %r0, 2;
    add.u32 %r11, %r10, %r11;
    st.shared.u32 [%r11], %r5;
    bar.sync 0;
    mov.u32 %r12, 39;
    sub.u32 %r12, %r12, %r0;
    shl.b32 %r12, %r12, 2;
    add.u32 %r12, %r10, %r12;
    ld.shared.u32 %r13, [%r12];
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(3, 40),
                [](uint32_t thread) { return thread / 40 * 40 + 39 - thread % 40; });
}

TEST(Barriers, ReductionsOfPredicates) {
  const std::string body = R"(
    setp.lt.u32 %p0, %r0, 37;
    setp.lt.u32 %p1, %r0, 40;
    setp.ge.u32 %p2, %r0, 40;
    barrier.cta.red.popc.aligned.u32 %r10, 0, %p0;
    bar.red.popc.u32 %r11, 1, !%p0;
    bar.red.and.pred %p3, 0, %p1;
    bar.red.and.pred %p4, 0, %p0;
    bar.red.or.pred %p5, 0, %p2;
    bar.red.or.pred %p6, 0, !%p0;
    selp.u32 %r12, 1, 0, %p3;
    selp.u32 %r13, 2, 0, %p4;
    selp.u32 %r14, 4, 0, %p5;
    selp.u32 %r15, 8, 0, %p6;
    mad.lo.u32 %r10, %r10, 100, %r11;
    add.u32 %r12, %r12, %r13;
    add.u32 %r14, %r14, %r15;
    add.u32 %r12, %r12, %r14;
    mad.lo.u32 %r10, %r10, 100, %r12;
    st.global.u32 [%rd2], %r10;)";
  expect_always(kernel(body), config_of(2, 40), [](uint32_t) { return (37 * 100 + 3) * 100 + 1 + 8; });
}

// Two pairs of warps reduce at barriers of their own, many times. Then one pair reduces at barrier 4, and as
// soon as its first warp has gone on the other pair reduces there too: what the second learns is not
// overwritten.
TEST(Barriers, NamedBarriersWithCounts) {
  const std::string body = R"(
    .shared .align 4 .u32 flag;
    shr.u32 %r10, %r4, 1;
    add.u32 %r11, %r10, 1;
    and.b32 %r12, %r0, 63;
    setp.lt.u32 %p0, %r12, 5;
    setp.ge.u32 %p3, %r0, 64;
    @%p3 setp.lt.u32 %p0, %r12, 64;
    mov.u32 %r20, 0;
    LOOP:
    bar.red.popc.u32 %r13, %r11, 64, %p0;
    bar.red.and.pred %p1, %r11, 64, %p0;
    add.u32 %r20, %r20, 1;
    setp.lt.u32 %p4, %r20, 20;
    @%p4 bra LOOP;
    selp.u32 %r14, 1, 0, %p1;
    setp.eq.u32 %p5, %r10, 0;
    setp.eq.u32 %p6, %r0, 0;
    @%p6 st.shared.u32 [flag], 0;
    bar.sync 3, 128;
    @%p5 bra MEET;
    SPIN:
    ld.volatile.shared.u32 %r16, [flag];
    setp.eq.u32 %p7, %r16, 0;
    @%p7 bra SPIN;
    MEET:
    bar.red.popc.u32 %r15, 4, 64, %p5;
    @%p5 st.volatile.shared.u32 [flag], 1;
    mad.lo.u32 %r13, %r13, 10, %r14;
    mad.lo.u32 %r13, %r13, 100, %r15;
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(1, 128), [](uint32_t thread) {
    return thread < 64 ? (5 * 10 + 0) * 100 + 64 : (64 * 10 + 1) * 100 + 0;
  });
}

// Warp 0 produces into two buffers, warps 1 and 2 consume: full barriers 1 and 2, empty barriers 3 and 4.
TEST(Barriers, ProducerAndConsumers) {
  const std::string body = R"(
    .shared .align 4 .b32 stages[64];
    mov.u32 %r10, stages;
    shl.b32 %r11, %r3, 2;
    add.u32 %r10, %r10, %r11;
    mov.u32 %r12, 0;
    mov.u32 %r13, 0;
    setp.eq.u32 %p0, %r4, 0;
    LOOP:
    and.b32 %r14, %r12, 1;
    shl.b32 %r15, %r14, 7;
    add.u32 %r15, %r10, %r15;
    add.u32 %r16, %r14, 1;
    add.u32 %r17, %r14, 3;
    @!%p0 bra CONSUME;
    setp.lt.u32 %p1, %r12, 2;
    @!%p1 bar.sync %r17, 96;
    mad.lo.u32 %r18, %r12, 100, %r3;
    st.shared.u32 [%r15], %r18;
    bar.arrive %r16, 96;
    bra NEXT;
    CONSUME:
    bar.sync %r16, 96;
    ld.shared.u32 %r18, [%r15];
    add.u32 %r13, %r13, %r18;
    setp.lt.u32 %p1, %r12, 8;
    @%p1 bar.arrive %r17, 96;
    NEXT:
    add.u32 %r12, %r12, 1;
    setp.lt.u32 %p2, %r12, 10;
    @%p2 bra LOOP;
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(2, 96),
                [](uint32_t thread) { return thread % 96 < 32 ? 0 : 4500 + 10 * (thread % 32); });
}

// ---- where threads are ----

TEST(Threads, DimensionsOfBlocksAndGrid) {
  const std::string body = R"(
    mov.u32 %r10, %tid.x;
    mov.u32 %r11, %tid.y;
    mov.u32 %r12, %tid.z;
    mov.u32 %r13, %ctaid.x;
    mov.u32 %r14, %ctaid.y;
    mov.u32 %r15, %ctaid.z;
    mov.u32 %r16, %ntid.x;
    mov.u32 %r17, %ntid.y;
    mov.u32 %r18, %ntid.z;
    mov.u32 %r19, %nctaid.x;
    mov.u32 %r20, %nctaid.y;
    mad.lo.u32 %r21, %r15, %r20, %r14;
    mad.lo.u32 %r21, %r21, %r19, %r13;
    mul.lo.u32 %r22, %r16, %r17;
    mul.lo.u32 %r22, %r22, %r18;
    mad.lo.u32 %r23, %r12, %r17, %r11;
    mad.lo.u32 %r23, %r23, %r16, %r10;
    mad.lo.u32 %r24, %r21, %r22, %r23;
    mov.u32 %r25, %laneid;
    mov.u32 %r26, %warpid;
    mad.lo.u32 %r26, %r26, 32, %r25;
    sub.u32 %r26, %r26, %r23;
    mad.lo.u32 %r27, %r12, 10, %r11;
    mad.lo.u32 %r27, %r27, 10, %r10;
    mad.lo.u32 %r27, %r27, 10, %r15;
    mad.lo.u32 %r27, %r27, 10, %r14;
    mad.lo.u32 %r27, %r27, 10, %r13;
    mad.lo.u32 %r27, %r26, 0x1000000, %r27;
    mad.wide.u32 %rd3, %r24, 4, %rd0;
    st.global.u32 [%rd3], %r27;)";
  Config config;
  const int grid[3] = {3, 2, 2}, block[3] = {5, 3, 4};
  for (int i = 0; i < 3; ++i) config.grid[i] = grid[i], config.block[i] = block[i];
  expect_always(kernel(body), config, [](uint32_t i) {
    const uint32_t b = i / 60, t = i % 60;
    const uint32_t digits[6] = {t / 15, t / 5 % 3, t % 5, b / 6, b / 3 % 2, b % 3};
    uint32_t number = 0;
    for (const uint32_t d : digits) number = number * 10 + d;
    return number;
  });
}

// ---- cp.async ----

TEST(Copies, GroupsZerosAndSizes) {
  // Three groups: 16 bytes; 4 bytes of which 3 are read and 8 of which none; 16 bytes if a predicate allows.
  // The first may be used while the other two are under way.
  const std::string body = R"(
    .shared .align 16 .b8 cells[2048];
    mov.u32 %r10, cells;
    mad.lo.u32 %r10, %r0, 48, %r10;
    mad.wide.u32 %rd3, %r0, 16, %rd1;
    cp.async.cg.shared.global [%r10], [%rd3], 16;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r10+16], [%rd3+4], 4, 3;
    cp.async.ca.shared.global [%r10+24], [%rd3+8], 8, 0;
    cp.async.commit_group;
    and.b32 %r11, %r0, 1;
    setp.eq.u32 %p0, %r11, 1;
    cp.async.cg.shared.global [%r10+32], [%rd3], 16, %p0;
    cp.async.commit_group;
    cp.async.wait_group 2;
    ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%r10];
    cp.async.wait_group 1;
    ld.shared.u32 %r16, [%r10+16];
    ld.shared.v2.u32 {%r17, %r18}, [%r10+24];
    cp.async.wait_all;
    ld.shared.v4.u32 {%r19, %r20, %r21, %r22}, [%r10+32];
    mad.wide.u32 %rd4, %r0, 44, %rd0;
    st.global.u32 [%rd4], %r12;
    st.global.u32 [%rd4+4], %r13;
    st.global.u32 [%rd4+8], %r14;
    st.global.u32 [%rd4+12], %r15;
    st.global.u32 [%rd4+16], %r16;
    st.global.u32 [%rd4+20], %r17;
    st.global.u32 [%rd4+24], %r18;
    st.global.u32 [%rd4+28], %r19;
    st.global.u32 [%rd4+32], %r20;
    st.global.u32 [%rd4+36], %r21;
    st.global.u32 [%rd4+40], %r22;)";
  Words in(40 * 4);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i + 1) * 2654435761u;
  expect_always(
      kernel(body), config_of(1, 40), 40 * 11,
      [&](uint32_t i) {
        const uint32_t thread = i / 11, word = i % 11, *mine = &in[thread * 4];
        if (word < 4) return mine[word];
        if (word == 4) return mine[1] & 0xFFFFFF;
        if (word < 7) return 0u;
        return thread % 2 ? 0u : mine[word - 7];  // the predicate says: ignore the source
      },
      in);
}

TEST(Copies, ATileThatAllRead) {
  const std::string body = R"(
    .shared .align 16 .b8 tile[2048];
    mov.u32 %r10, tile;
    mad.lo.u32 %r11, %r0, 16, %r10;
    mad.wide.u32 %rd3, %r0, 16, %rd1;
    cp.async.ca.shared.global [%r11], [%rd3], 16;
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    xor.b32 %r12, %r0, 100;
    mad.lo.u32 %r12, %r12, 16, %r10;
    ld.shared.u32 %r13, [%r12+8];
    st.global.u32 [%rd2], %r13;)";
  Words in(128 * 4);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i);
  expect_always(
      kernel(body), config_of(2, 128), [](uint32_t thread) { return (thread % 128 ^ 100) * 4 + 2; }, in);
}

// ---- atomics and locks ----

TEST(Atomics, SharedAndGlobalFromManyThreads) {
  const std::string body = R"(
    .shared .align 8 .b64 total;
    setp.eq.u32 %p0, %r0, 0;
    mov.u64 %rd3, 0;
    @%p0 st.shared.u64 [total], %rd3;
    bar.sync 0;
    cvt.u64.u32 %rd4, %r5;
    atom.shared.add.u64 %rd5, [total], %rd4;
    red.global.add.u32 [%rd0], 1;
    red.global.max.u32 [%rd0+4], %r5;
    atom.global.inc.u32 %r10, [%rd0+8], 6;
    red.global.or.b32 [%rd0+12], %r5;
    and.b32 %r11, %r0, 31;
    mov.u32 %r12, 1;
    shl.b32 %r12, %r12, %r11;
    atom.global.xor.b32 %r13, [%rd0+16], %r12;
    bar.sync 0;
    @!%p0 bra END;
    ld.shared.u64 %rd6, [total];
    red.global.add.u64 [%rd0+24], %rd6;
    END:)";
  const uint32_t threads = 50 * 96;
  Program program(kernel(body));
  for (const gg::emu::Order& order : emu_test::orders()) {
    Config config = config_of(50, 96);
    config.options.order = order;
    config.options.workers = 2;
    std::vector<Buffer> buffers = {Buffer(32), Buffer(4)};
    program.run(buffers, config);
    const Words out = emu_test::values_of<uint32_t>(buffers[0]);
    EXPECT_EQ(out[0], threads);
    EXPECT_EQ(out[1], threads - 1);
    EXPECT_EQ(out[2], threads % 7);
    EXPECT_EQ(out[3], 0x1FFFu);
    EXPECT_EQ(out[4], 0u);  // 150 warps, an even number
    EXPECT_EQ(emu_test::values_of<uint64_t>(buffers[0])[3], uint64_t(threads) * (threads - 1) / 2);
  }
}

// One lane of each warp takes a lock in shared memory, adds to an ordinary word and hands the lock on.
TEST(Locks, BetweenTheWarpsOfABlock) {
  const std::string body = R"(
    .shared .align 4 .u32 lock;
    .shared .align 4 .u32 sum;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 st.shared.u32 [lock], 0;
    @%p0 st.shared.u32 [sum], 0;
    bar.sync 0;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra END;
    TAKE:
    atom.shared.cas.b32 %r10, [lock], 0, 1;
    setp.ne.u32 %p2, %r10, 0;
    @%p2 bra TAKE;
    membar.cta;
    ld.shared.u32 %r11, [sum];
    add.u32 %r11, %r11, %r4;
    st.shared.u32 [sum], %r11;
    membar.cta;
    atom.shared.exch.b32 %r12, [lock], 0;
    END:
    bar.sync 0;
    ld.shared.u32 %r13, [sum];
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(2, 256), [](uint32_t) { return 28; });
}

// The lanes of one warp contend too: who holds the lock must go on although others of its warp spin at a
// lower place.
TEST(Locks, BetweenTheLanesOfAWarp) {
  const std::string body = R"(
    .shared .align 4 .u32 lock;
    .shared .align 4 .u32 sum;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 st.shared.u32 [lock], 0;
    @%p0 st.shared.u32 [sum], 0;
    bar.sync 0;
    TAKE:
    atom.shared.cas.b32 %r10, [lock], 0, 1;
    setp.ne.u32 %p2, %r10, 0;
    @%p2 bra TAKE;
    membar.cta;
    ld.shared.u32 %r11, [sum];
    add.u32 %r11, %r11, %r0;
    st.shared.u32 [sum], %r11;
    membar.cta;
    atom.shared.exch.b32 %r12, [lock], 0;
    bar.sync 0;
    ld.shared.u32 %r13, [sum];
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(1, 64), [](uint32_t) { return 2016; });
}

// A lock in global memory between blocks, with nanosleep as back-off, while the other warps of the block wait
// at a barrier.
TEST(Locks, BetweenBlocksWhileOthersWait) {
  const std::string body = R"(
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra WAIT;
    mov.u32 %r20, 8;
    TAKE:
    atom.acquire.gpu.global.cas.b32 %r10, [%rd0], 0, 1;
    setp.eq.u32 %p1, %r10, 0;
    @%p1 bra TAKEN;
    nanosleep.u32 %r20;
    min.u32 %r20, %r20, 128;
    shl.b32 %r20, %r20, 1;
    bra TAKE;
    TAKEN:
    ld.global.u32 %r11, [%rd0+4];
    mov.u32 %r12, 0;
    SLOW:
    add.u32 %r12, %r12, 1;
    setp.lt.u32 %p2, %r12, 500;
    @%p2 bra SLOW;
    add.u32 %r11, %r11, 1;
    st.global.u32 [%rd0+4], %r11;
    atom.release.gpu.global.exch.b32 %r13, [%rd0], 0;
    WAIT:
    bar.sync 0;
    red.global.add.u32 [%rd0+8], 1;)";
  Program program(kernel(body));
  for (const gg::emu::Order& order : emu_test::orders()) {
    for (int workers = 1; workers <= 2; ++workers) {
      Config config = config_of(20, 96);
      config.options.order = order;
      config.options.workers = workers;
      std::vector<Buffer> buffers = {Buffer(12), Buffer(4)};
      program.run(buffers, config);
      EXPECT_EQ(emu_test::values_of<uint32_t>(buffers[0]), (Words{0, 20, 20 * 96}));
    }
  }
}

// All blocks meet at a counter: the first ones started cannot go on until the last one has begun. `pause`
// stands in the loop.
std::string grid_barrier(const std::string& pause) {
  return kernel(R"(
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra JOIN;
    mov.u32 %r11, %nctaid.x;
    mov.u32 %r12, 0;
    atom.global.add.u32 %r10, [%rd1], 1;
    SPIN:
    )" + pause + R"(
    ld.acquire.gpu.global.u32 %r10, [%rd1];
    setp.lt.u32 %p1, %r10, %r11;
    @%p1 bra SPIN;
    JOIN:
    bar.sync 0;
    ld.volatile.global.u32 %r10, [%rd1];
    st.global.u32 [%rd2], %r10;)");
}

TEST(Locks, BlocksThatAllWaitForEachOther) {
  for (const std::string pause : {"", "nanosleep.u32 100;", "add.u32 %r12, %r12, 1;"}) {
    SCOPED_TRACE(pause);
    const bool counts = pause.rfind("add", 0) == 0;  // never the same state twice: the slowest to tell
    expect_always(grid_barrier(pause), config_of(counts ? 4 : 40, 64),
                  [&](uint32_t) { return counts ? 4 : 40; }, {0});
  }
}

// Three blocks count in turn, each waiting for the one with the next higher number: those started first are
// the last to end.
TEST(Locks, EarlierBlocksWaitForLaterOnes) {
  const std::string body = R"(
    mov.u32 %r11, %nctaid.x;
    sub.u32 %r11, %r11, 1;
    sub.u32 %r11, %r11, %r1;
    SPIN:
    ld.volatile.global.u32 %r10, [%rd1];
    setp.ne.u32 %p1, %r10, %r11;
    @%p1 bra SPIN;
    bar.sync 0;
    st.global.u32 [%rd2], %r11;
    membar.gl;
    bar.sync 0;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 red.global.add.u32 [%rd1], 1;)";
  expect_always(kernel(body), config_of(12, 64), [](uint32_t thread) { return 11 - thread / 64; }, {0});
}

// ---- functions, printing, local memory ----

TEST(Functions, CallsWithArgumentsAndResults) {
  const std::string functions = R"(
.func (.param .b32 result) triangle(.param .b32 n)
{
.reg .pred %p<2>;
.reg .b32 %r<4>;
ld.param.u32 %r0, [n];
mov.u32 %r1, 0;
LOOP:
setp.eq.u32 %p0, %r0, 0;
@%p0 bra DONE;
add.u32 %r1, %r1, %r0;
sub.u32 %r0, %r0, 1;
bra LOOP;
DONE:
st.param.b32 [result], %r1;
ret;
}
.func (.param .b32 result) twice(.param .b32 a, .param .b64 b)
{
.reg .pred %p<2>;
.reg .b32 %r<8>;
.reg .b64 %rd<2>;
ld.param.u32 %r0, [a];
ld.param.u64 %rd0, [b];
cvt.u32.u64 %r1, %rd0;
setp.gt.u32 %p0, %r0, 20;
@%p0 bra BIG;
{
.param .b32 arg;
.param .b32 ret0;
st.param.b32 [arg], %r0;
call.uni (ret0), triangle, (arg);
ld.param.b32 %r2, [ret0];
}
{
.param .b32 arg;
.param .b32 ret0;
st.param.b32 [arg], %r1;
call.uni (ret0), triangle, (arg);
ld.param.b32 %r3, [ret0];
}
mad.lo.u32 %r2, %r2, 1000, %r3;
st.param.b32 [result], %r2;
ret;
BIG:
st.param.b32 [result], 5;
ret;
}
)";
  const std::string body = R"(
    and.b32 %r10, %r0, 3;
    cvt.u64.u32 %rd3, %r10;
    mov.u32 %r11, 9;
    setp.ne.u32 %p0, %r10, 0;
    @!%p0 bra SKIP;
    {
    .param .b32 a;
    .param .b64 b;
    .param .b32 back;
    st.param.b32 [a], %r3;
    st.param.b64 [b], %rd3;
    call.uni (back), twice, (a, b);
    ld.param.b32 %r11, [back];
    }
    SKIP:
    vote.sync.ballot.b32 %r12, %p0, 0xFFFFFFFF;
    setp.ne.u32 %p1, %r12, 0xEEEEEEEE;
    @%p1 mov.u32 %r11, 0;
    st.global.u32 [%rd2], %r11;)";
  expect_always(kernel(body, functions), config_of(1, 64), [](uint32_t thread) {
    const uint32_t lane = thread % 32, n = thread % 4;
    return n == 0 ? 9 : lane > 20 ? 5 : lane * (lane + 1) / 2 * 1000 + n * (n + 1) / 2;
  });
}

TEST(Functions, PrintInTheOrderOfLanes) {
  const std::string before = R"(
.extern .func (.param .b32 func_retval0) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[24] = {98, 61, 37, 100, 32, 116, 61, 37, 48, 51, 117, 32, 120, 61, 37, 46, 49, 102, 32, 37, 115, 37, 37, 0};
.global .align 1 .b8 word[4] = {111, 107, 10, 0};
.global .align 1 .b8 line[6] = {98, 61, 37, 100, 10, 0};
)";
  const std::string body = R"(
    .local .align 8 .b8 depot[24];
    .reg .b64 %SP, %SPL;
    mov.u64 %SPL, depot;
    cvta.local.u64 %SP, %SPL;
    setp.gt.u32 %p0, %r3, 2;
    @%p0 bra END;
    cvt.rn.f64.u32 %rd3, %r3;
    neg.s32 %r10, %r1;
    st.local.v2.u32 [%SPL], {%r10, %r0};
    st.local.f64 [%SPL+8], %rd3;
    mov.u64 %rd4, word;
    cvta.global.u64 %rd4, %rd4;
    st.local.u64 [%SPL+16], %rd4;
    mov.u64 %rd5, format;
    cvta.global.u64 %rd5, %rd5;
    {
    .param .b64 param0;
    .param .b64 param1;
    .param .b32 retval0;
    st.param.b64 [param0], %rd5;
    st.param.b64 [param1], %SP;
    call.uni (retval0), vprintf, (param0, param1);
    ld.param.b32 %r11, [retval0];
    }
    END:)";
  Program program(kernel(body, before));
  std::vector<Buffer> buffers = {Buffer(4), Buffer(4)};
  Config config = config_of(2, 32);
  config.options.workers = 1;
  testing::internal::CaptureStdout();
  program.run(buffers, config);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "b=0 t=000 x=0.0 ok\n%b=0 t=001 x=1.0 ok\n%b=0 t=002 x=2.0 ok\n%"
            "b=-1 t=000 x=0.0 ok\n%b=-1 t=001 x=1.0 ok\n%b=-1 t=002 x=2.0 ok\n%");
}

TEST(Local, ArraysOfAThread) {
  const std::string body = R"(
    .local .align 16 .b8 array[64];
    .reg .b64 %SP, %SPL;
    mov.u64 %SPL, array;
    cvta.local.u64 %SP, %SPL;
    mov.u32 %r10, 0;
    FILL:
    mad.lo.u32 %r11, %r10, 1000, %r5;
    mad.wide.u32 %rd3, %r10, 4, %SPL;
    st.local.u32 [%rd3], %r11;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p0, %r10, 16;
    @%p0 bra FILL;
    and.b32 %r12, %r3, 15;
    mad.wide.u32 %rd4, %r12, 4, %SP;
    ld.u32 %r13, [%rd4];
    ld.local.v4.u32 {%r14, %r15, %r16, %r17}, [%SPL+16];
    add.u32 %r13, %r13, %r17;
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(2, 40),
                [](uint32_t thread) { return thread % 40 % 32 % 16 * 1000 + thread + 7000 + thread; });
}

// ---- clusters ----

TEST(Clusters, EachBlockReadsItsNeighbour) {
  const std::string body = R"(
    .shared .align 4 .b32 cells[64];
    mov.u32 %r10, cells;
    shl.b32 %r11, %r0, 2;
    add.u32 %r10, %r10, %r11;
    st.shared.u32 [%r10], %r5;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    mov.u32 %r12, %cluster_ctarank;
    mov.u32 %r13, %cluster_nctarank;
    add.u32 %r14, %r12, 1;
    rem.u32 %r14, %r14, %r13;
    mapa.shared::cluster.u32 %r15, %r10, %r14;
    ld.shared::cluster.u32 %r16, [%r15];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    add.u32 %r17, %r12, 2;
    rem.u32 %r17, %r17, %r13;
    mapa.shared::cluster.u32 %r18, %r10, %r17;
    add.u32 %r19, %r5, 10000;
    st.shared::cluster.u32 [%r18], %r19;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared.u32 %r20, [%r10];
    mad.lo.u32 %r20, %r20, 100000, %r16;
    st.global.u32 [%rd2], %r20;)";
  expect_always(kernel(body), config_of(12, 64, 4), [](uint32_t thread) {
    const uint32_t block = thread / 64, first = block / 4 * 4, rank = block % 4, t = thread % 64;
    return ((first + (rank + 2) % 4) * 64 + t + 10000) * 100000 + (first + (rank + 1) % 4) * 64 + t;
  });
}

TEST(Clusters, ShapesAndRanks) {
  const std::string body = R"(
    mov.u32 %r10, %cluster_ctarank;
    mov.u32 %r11, %cluster_ctaid.x;
    mov.u32 %r12, %cluster_ctaid.y;
    mov.u32 %r13, %clusterid.x;
    mov.u32 %r14, %clusterid.y;
    mov.u32 %r15, %cluster_nctarank;
    mov.u32 %r16, %ctaid.y;
    mov.u32 %r17, %nctaid.x;
    mad.lo.u32 %r18, %r16, %r17, %r1;
    mad.lo.u32 %r19, %r15, 10, %r10;
    mad.lo.u32 %r19, %r19, 10, %r11;
    mad.lo.u32 %r19, %r19, 10, %r12;
    mad.lo.u32 %r19, %r19, 10, %r13;
    mad.lo.u32 %r19, %r19, 10, %r14;
    mad.wide.u32 %rd3, %r18, 4, %rd0;
    st.global.u32 [%rd3], %r19;)";
  Config config = config_of(6, 1, 2);
  config.grid[1] = 4;
  config.cluster[1] = 2;
  expect_always(kernel(body), config, [](uint32_t block) {
    const uint32_t x = block % 6, y = block / 6;
    const uint32_t digits[] = {4, x % 2 + y % 2 * 2, x % 2, y % 2, x / 2, y / 2};
    uint32_t number = 0;
    for (const uint32_t d : digits) number = number * 10 + d;
    return number;
  });
}

// A block whose work is done ends; the others' cluster barriers no longer count it.
TEST(Clusters, BarriersDoNotWaitForWarpsThatHaveEnded) {
  const std::string body = R"(
    st.global.u32 [%rd2], 1;
    setp.eq.u32 %p0, %r4, 1;
    @%p0 ret;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r10, %cluster_ctarank;
    setp.eq.u32 %p0, %r10, 1;
    @%p0 ret;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    st.global.u32 [%rd2], 2;)";
  expect_always(kernel(body), config_of(4, 64, 2),
                [](uint32_t thread) { return thread % 64 < 32 && thread / 64 % 2 == 0 ? 2 : 1; });
}

TEST(Clusters, AtomicsInAnotherBlock) {
  const std::string body = R"(
    .shared .align 4 .u32 sum;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 st.shared.u32 [sum], 0;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r10, sum;
    mapa.shared::cluster.u32 %r11, %r10, 0;
    atom.shared::cluster.add.u32 %r12, [%r11], %r0;
    mov.u64 %rd3, 0;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared.u32 %r13, [sum];
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(8, 64, 4),
                [](uint32_t thread) { return thread / 64 % 4 == 0 ? 4 * 2016 : 0; });
}

// ---- registers ----

// Two warps that each began with 128 registers for a thread; one keeps 40, the other wants so many.
std::string registers_moved(int wanted) {
  return kernel("setp.eq.u32 %p0, %r4, 0;\n@%p0 bra FEW;\nsetmaxnreg.inc.sync.aligned.u32 " +
                std::to_string(wanted) + ";\nbra END;\nFEW:\nsetmaxnreg.dec.sync.aligned.u32 40;\n" +
                "END:\nst.global.u32 [%rd2], 1;\n");
}
std::string waits_for_registers(int wanted, int registers) {
  Program program(registers_moved(wanted));
  Config config = config_of(1, 64);
  config.registers = registers;
  std::vector<Buffer> buffers = {Buffer(4096), Buffer(4096)};
  try {
    program.run(buffers, config);
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.kind, gg::emu::FaultKind::deadlock);
    return fault.what();
  }
  return "";
}
TEST(Registers, WaitUntilOthersHaveGivenThemBack) {
  EXPECT_EQ(waits_for_registers(216, 128), "") << "128 - 40 = 216 - 128";
  const std::string report = waits_for_registers(224, 128);
  EXPECT_NE(report.find("96 registers more for each thread"), std::string::npos) << report;
  EXPECT_NE(report.find("given 88"), std::string::npos) << report;
  EXPECT_EQ(waits_for_registers(224, 0), "") << "without machine code nobody knows how many there were";
}

// ---- time ----

// Instructions of warps until the fault, those that only found out that they must wait included: work that no
// sanitizer and no busy machine makes more of.
uint64_t instructions_until(gg::emu::FaultKind kind, const std::string& text, const Config& config) {
  Program program(text);
  std::vector<Buffer> buffers = {Buffer(4 * 4096), emu_test::buffer_of(Words{0})};
  gg::emu::Counts counts;
  try {
    program.run(buffers, config, &counts);
    ADD_FAILURE() << "no fault";
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.kind, kind) << fault.what();
  }
  uint64_t instructions = 0;
  for (const auto& [code, each] : counts) {
    for (const gg::emu::InstrCounts& c : each) instructions += c.warps + c.waits;
  }
  return instructions;
}

TEST(Time, ADeadlockIsFoundAtOnce) {
  // Of 128 warps in all: half a second of one core. The slowest, by all threads out of order, takes
  // 1,381,600.
  constexpr uint64_t kMost = 2'000'000;
  const std::string barrier = kernel("setp.lt.u32 %p0, %r4, 1;\n@%p0 bar.sync 1, 64;\nbar.sync 2;\n");
  // A flag that nobody sets, by one thread while the others wait at a barrier; with and without sleep; by all
  // threads.
  const std::string one = grid_barrier("mov.u32 %r11, 1000000;");
  const std::string asleep = grid_barrier("mov.u32 %r11, 1000000;\nnanosleep.u32 20;");
  const std::string all =
      kernel("SPIN:\natom.global.cas.b32 %r10, [%rd1], 5, 1;\nsetp.ne.u32 %p0, %r10, 5;\n@%p0 bra SPIN;\n");
  const std::string together = kernel(
      "SPIN:\nbar.sync 0;\nld.volatile.global.u32 %r10, [%rd1];\nsetp.ne.u32 %p0, %r10, 5;\n@%p0 bra "
      "SPIN;\n");
  for (const std::string& text : {barrier, one, asleep, all, together}) {
    for (const gg::emu::Order& order : {gg::emu::Order{0, false}, gg::emu::Order{3, true}}) {
      for (int workers = 1; workers <= 2; ++workers) {
        Config config = config_of(4, 1024);
        config.options.order = order;
        config.options.workers = workers;
        EXPECT_LT(instructions_until(gg::emu::FaultKind::deadlock, text, config), kMost)
            << emu_test::name_of(order) << text;
      }
    }
  }
}

// Seven warps count for long, the last one looks once: in some skewed order when they are done.
TEST(Time, AWarpMayBeAsLateAsTheOthersAllow) {
  const std::string body = R"(
    setp.eq.u32 %p0, %r4, 7;
    @%p0 bra LOOK;
    mov.u32 %r10, 0;
    COUNT:
    add.u32 %r10, %r10, 1;
    atom.global.max.u32 %r11, [%rd1], %r10;
    setp.lt.u32 %p1, %r10, 3000;
    @%p1 bra COUNT;
    LOOK:
    ld.volatile.global.u32 %r12, [%rd1];
    st.global.u32 [%rd2], %r12;)";
  Program program(kernel(body));
  int late = 0;
  constexpr int kOrders = 16;
  for (int seed = 1; seed <= kOrders; ++seed) {
    Config config = config_of(1, 256);
    config.options.order = {uint64_t(seed), true};
    late += run(program, config, 256, {0})[255] == 3000;
  }
  EXPECT_GT(late, 0);
  EXPECT_LT(late, kOrders);
}

// Block 0 computes for long without touching memory, the others wait for its flag: this ends.
TEST(Time, WaitingForSlowWorkIsNoDeadlock) {
  const std::string body = R"(
    setp.ne.u32 %p0, %r1, 0;
    @%p0 bra SPIN;
    mov.u32 %r10, 0;
    SLOW:
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p1, %r10, 1500000;
    @%p1 bra SLOW;
    st.volatile.global.u32 [%rd1], %r10;
    SPIN:
    ld.volatile.global.u32 %r11, [%rd1];
    setp.eq.u32 %p2, %r11, 0;
    @%p2 bra SPIN;
    st.global.u32 [%rd2], %r11;)";
  Program program(kernel(body));
  for (int workers = 1; workers <= 2; ++workers) {
    for (const bool skew : {false, true}) {
      Config config = config_of(3, 32);
      config.options.workers = workers;
      config.options.order = {3, skew};
      EXPECT_EQ(run(program, config, 96, {0}), Words(96, 1500000));
    }
  }
}

}  // namespace
