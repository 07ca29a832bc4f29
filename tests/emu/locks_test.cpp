// SPDX-License-Identifier: MIT
//
// A program does the same whoever runs when: atomics, locks, and how long waiting may last.

#include <gtest/gtest.h>

#include "tests/emu/every_order.h"

namespace {

using namespace emu_test;

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
  for (const Order& order : orders()) {
    Config config = config_of(50, 96);
    config.options.order = order;
    config.options.workers = 2;
    std::vector<Buffer> buffers = {Buffer(32), Buffer(4)};
    program.run(buffers, config);
    const Words out = values_of<uint32_t>(buffers[0]);
    EXPECT_EQ(out[0], threads);
    EXPECT_EQ(out[1], threads - 1);
    EXPECT_EQ(out[2], threads % 7);
    EXPECT_EQ(out[3], 0x1FFFu);
    EXPECT_EQ(out[4], 0u);  // 150 warps, an even number
    EXPECT_EQ(values_of<uint64_t>(buffers[0])[3], uint64_t(threads) * (threads - 1) / 2);
  }
}

// One lane of each warp takes a lock in shared memory, adds to an ordinary word, hands the lock on.
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

// The lanes of one warp contend too: who holds the lock must go on although others of its warp spin
// at a lower place.
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

// A lock in global memory between blocks, with nanosleep as back-off, while the other warps of the
// block wait at a barrier.
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
  for (const Order& order : orders()) {
    for (int workers = 1; workers <= 2; ++workers) {
      Config config = config_of(20, 96);
      config.options.order = order;
      config.options.workers = workers;
      std::vector<Buffer> buffers = {Buffer(12), Buffer(4)};
      program.run(buffers, config);
      EXPECT_EQ(values_of<uint32_t>(buffers[0]), (Words{0, 20, 20 * 96}));
    }
  }
}

TEST(Locks, BlocksThatAllWaitForEachOther) {
  for (const std::string pause : {"", "nanosleep.u32 100;", "add.u32 %r12, %r12, 1;"}) {
    SCOPED_TRACE(pause);
    // Never the same state twice: the slowest to tell.
    const bool counts = pause.rfind("add", 0) == 0;
    expect_always(grid_barrier(pause), config_of(counts ? 4 : 40, 64),
                  [&](uint32_t) { return counts ? 4 : 40; }, {0});
  }
}

// Three blocks count in turn, each waiting for the one with the next higher number: those started
// first are the last to end.
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

// ---- time ----

// Instructions of warps until the fault, those that only found out that they must wait included:
// work that no sanitizer and no busy machine makes more of.
uint64_t instructions_until(FaultKind kind, const std::string& text, const Config& config) {
  Program program(text);
  std::vector<Buffer> buffers = {Buffer(4 * 4096), buffer_of(Words{0})};
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
  // The limit on the instructions of 128 warps in all: half a second of one core. The slowest
  // program, by all threads out of order, takes 1,381,600.
  constexpr uint64_t kMost = 2'000'000;
  const std::string barrier = kernel("setp.lt.u32 %p0, %r4, 1;\n@%p0 bar.sync 1, 64;\nbar.sync 2;\n");
  // A flag that nobody sets, by one thread while the others wait at a barrier; with and without
  // sleep; by all threads.
  const std::string one = grid_barrier("mov.u32 %r11, 1000000;");
  const std::string asleep = grid_barrier("mov.u32 %r11, 1000000;\nnanosleep.u32 20;");
  const std::string all =
      kernel("SPIN:\natom.global.cas.b32 %r10, [%rd1], 5, 1;\nsetp.ne.u32 %p0, %r10, 5;\n@%p0 bra SPIN;\n");
  const std::string together = kernel(
      "SPIN:\nbar.sync 0;\nld.volatile.global.u32 %r10, [%rd1];\nsetp.ne.u32 %p0, %r10, 5;\n@%p0 bra "
      "SPIN;\n");
  for (const std::string& text : {barrier, one, asleep, all, together}) {
    for (const Order& order : {Order{0, false}, Order{3, true}}) {
      for (int workers = 1; workers <= 2; ++workers) {
        Config config = config_of(4, 1024);
        config.options.order = order;
        config.options.workers = workers;
        EXPECT_LT(instructions_until(FaultKind::deadlock, text, config), kMost) << name_of(order) << text;
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
