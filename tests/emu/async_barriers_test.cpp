// SPDX-License-Identifier: MIT
//
// Hopper's mbarriers in small PTX kernels: what they order, in every order, and what the emulator
// says when they are misused.

#include <gtest/gtest.h>

#include "tests/emu/async_kernel.h"
#include "tests/emu/report_says.h"

namespace {

using namespace async_test;
using report::says;

// ---- mbarrier ----

// Stores %p2 .. as numbers at successive words of out, from thread 0.
std::string record(int at, const std::string& predicate) {
  return "selp.b32 %r30, 1, 0, " + predicate + ";\nst.global.u32 [%rd0+" + std::to_string(4 * at) +
         "], %r30;\n";
}
std::string test(int at, int parity) {
  return "mbarrier.test_wait.parity.shared::cta.b64 %p2, [bars], " + std::to_string(parity) + ";\n" +
         record(at, "%p2");
}

TEST_F(Async, PhasesAndParities) {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 %rd3, [bars];\n";
  const std::string body = init(0, 2) + "@!%p0 bra END;\n" + test(0, 0) + test(1, 1) + arrive + test(2, 0) +
                           arrive + test(3, 0) + test(4, 1) +
                           "mbarrier.pending_count.b64 %r4, %rd3;\nst.global.u32 [%rd0+20], %r4;\n" +
                           "mbarrier.test_wait.shared::cta.b64 %p3, [bars], %rd3;\n" + record(6, "%p3") +
                           "mbarrier.arrive.shared::cta.b64 %rd4, [bars], 2;\n" + test(7, 1) +
                           "mbarrier.arrive.noComplete.shared::cta.b64 %rd4, [bars], 1;\n"
                           "mbarrier.test_wait.acquire.cta.shared::cta.b64 %p3, [bars], %rd4;\n" +
                           record(8, "%p3") + "END:\n";
  run(body, {}, [&] {
    const uint32_t expected[] = {0, 1, 0, 1, 0, 1, 1, 1, 0};
    for (int i = 0; i < 9; ++i) EXPECT_EQ(words(out)[i], expected[i]) << i;
  });
}

TEST_F(Async, BytesMayComeBeforeTheyAreExpected) {
  const std::string body =
      init(0, 1) + "@!%p0 bra END;\nmbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bars], 48;\n" +
      test(0, 0) + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 16;\n" + test(1, 0) +
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 32;\n" + test(2, 0) + test(3, 1) +
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;\n" + test(4, 1) +
      "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bars], 64;\n" + test(5, 1) + "END:\n";
  run(body, {}, [&] {
    const uint32_t expected[] = {0, 0, 1, 0, 0, 1};
    for (int i = 0; i < 6; ++i) EXPECT_EQ(words(out)[i], expected[i]) << i;
  });
}

// Two warps hand 32 numbers to and fro, each adds its own: a full and an empty barrier, 40 rounds.
std::string ping_pong(const std::string& arrive) {
  return init(0, 32) + init(1, 32) + R"(
  mov.u32 %r4, 0;
  and.b32 %r5, %r0, 31;
  shl.b32 %r6, %r5, 2;
  add.u32 %r6, %r6, %r2;
  @!%p1 bra CONSUMER;
PRODUCER:
  and.b32 %r7, %r4, 1;
  xor.b32 %r8, %r7, 1;
)" + wait(1, "%r8") +
         R"(
  mul.lo.u32 %r9, %r4, 100;
  add.u32 %r9, %r9, %r5;
  st.shared.u32 [%r6], %r9;
)" + arrive +
         R"(
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p3, %r4, 40;
  @%p3 bra PRODUCER;
  bra END;
CONSUMER:
  mov.u32 %r10, 0;
LOOP:
  and.b32 %r7, %r4, 1;
)" + wait(0, "%r7") +
         R"(
  ld.shared.u32 %r9, [%r6];
  add.u32 %r10, %r10, %r9;
  mbarrier.arrive.shared::cta.b64 _, [bars+8];
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p3, %r4, 40;
  @%p3 bra LOOP;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd3, %rd3, %rd0;
  st.global.u32 [%rd3], %r10;
END:
)";
}

TEST_F(Async, BarriersOrderTwoWarps) {
  run(ping_pong("mbarrier.arrive.shared::cta.b64 _, [bars];\n"), {1, 64, 1}, [&] {
    for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(words(out)[lane], 78000 + 40 * lane);
  });
}

TEST_F(Async, ARelaxedArrivalOrdersNothing) {
  const std::string report = fault(
      FaultKind::race, ping_pong("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bars];\n"), {1, 64, 1});
  EXPECT_TRUE(says(report, "with no barrier between"));
}

TEST_F(Async, ADeadlockNamesWhatIsMissing) {
  const std::string arrivals = fault(
      FaultKind::deadlock, init(1, 2) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [bars+8];\n" + wait(1, "0"));
  EXPECT_TRUE(says(arrivals, "waits at mbarrier 0x2408 for parity 0: phase 0 lacks 1 of 2 arrivals"));
  const std::string bytes = fault(FaultKind::deadlock, init(0, 1) + R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 96;
    @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 64, [bars];
    )" + wait(0, "0"));
  EXPECT_TRUE(says(bytes, "phase 0 lacks 32 of 96 bytes"));
  const std::string more = fault(FaultKind::deadlock, init(0, 1) + R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 32;
    @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 64, [bars];
    )" + wait(0, "0"));
  EXPECT_TRUE(says(more, "phase 0 has got 32 bytes more than the 32 expected"));
}

TEST_F(Async, ADeadlockTellsOfAnOvertakenWait) {
  const std::string report =
      fault(FaultKind::deadlock, init(0, 1) +
                                     "@%p0 mbarrier.arrive.shared::cta.b64 _, [bars];\n@%p0 "
                                     "mbarrier.arrive.shared::cta.b64 _, [bars];\nbar.sync 0;\n" +
                                     wait(0, "0"));
  EXPECT_TRUE(says(report, "2 phases have ended, this warp has waited for none of them"));
}

// A try_wait that nobody's progress depends on may say false; code that does other things goes on.
TEST_F(Async, TryWaitGivesUpWhenNobodyElseCanGoOn) {
  run(init(0, 1) + R"(
    @!%p0 bra END;
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bars], 0;
    mbarrier.arrive.shared::cta.b64 _, [bars];
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [bars], 0, 1000;
    )" + record(0, "%p2") +
          record(1, "%p3") + "END:\n",
      {1, 64, 1}, [&] {
        EXPECT_EQ(words(out)[0], 0u);
        EXPECT_EQ(words(out)[1], 1u);
      });
}

TEST_F(Async, MisusedBarriersAreFaults) {
  const auto misuse = [&](const std::string& body) { return fault(FaultKind::mbarrier, body); };
  const auto broken = [&](const std::string& body) { return fault(FaultKind::mbarrier_state, body); };
  EXPECT_TRUE(
      says(broken("mbarrier.arrive.shared::cta.b64 _, [bars];\n"), "mbarrier 0x2400 is not initialised"));
  EXPECT_TRUE(says(misuse("mbarrier.init.shared::cta.b64 [bars], 1;\n"), "is initialised a second time"))
      << "32 lanes";
  EXPECT_TRUE(says(broken("@%p0 mbarrier.init.shared::cta.b64 [bars], 0;\n"), "for 0 arrivals"));
  EXPECT_TRUE(says(broken("@%p0 mbarrier.init.shared::cta.b64 [bars], 1048576;\n"), "for 1048576 arrivals"));
  EXPECT_TRUE(says(broken(init(0, 2) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [bars], 3;\n"),
                   "gets 3 arrivals where phase 0 lacks 2 of 2"));
  EXPECT_TRUE(says(misuse(init(0, 2) + "@%p0 mbarrier.arrive.noComplete.shared::cta.b64 %rd3, [bars], 2;\n"),
                   "end its phase"));
  EXPECT_TRUE(says(broken(init(0, 1) + "@%p0 mbarrier.expect_tx.shared::cta.b64 [bars], 1048576;\n"),
                   "would count 1048576 bytes"));
  EXPECT_TRUE(says(
      broken(
          init(0, 1) +
          "@%p0 mbarrier.inval.shared::cta.b64 [bars];\n@%p0 mbarrier.arrive.shared::cta.b64 _, [bars];\n"),
      "not initialised"));
  EXPECT_TRUE(says(misuse(init(0, 1) + "@%p0 st.shared.u32 [bars+4], 7;\n"), "belongs to an mbarrier"));
  EXPECT_TRUE(says(misuse(init(0, 2) + init(1, 2) +
                          "@!%p0 bra END;\nmbarrier.arrive.shared::cta.b64 %rd3, "
                          "[bars];\nmbarrier.test_wait.shared::cta.b64 %p2, [bars+8], %rd3;\nEND:\n"),
                   "is not from an arrival at mbarrier 0x2408"));
  EXPECT_TRUE(says(misuse(init(0, 1) + "@%p0 mbarrier.test_wait.parity.shared::cta.b64 %p2, [bars], 2;\n"),
                   "parity 2"));
  EXPECT_TRUE(says(fault(FaultKind::alignment, "@%p0 mbarrier.init.shared::cta.b64 [bars+4], 1;\n"),
                   "multiple of 8"));
  // Such a fence orders nothing alone.
  for (const std::string fence : {"", "@%p0 fence.mbarrier_init.release.cluster;\n"}) {
    const std::string unordered =
        fault(FaultKind::race,
              "@%p0 mbarrier.init.shared::cta.b64 [bars], 1;\n" + fence +
                  "@%p1 bra END;\nmbarrier.test_wait.parity.shared::cta.b64 %p2, [bars], 0;\nEND:\n",
              {1, 64, 1});
    EXPECT_TRUE(says(unordered, "no barrier stands between its initialisation"));
  }
}

TEST_F(Async, DroppedThreadsAreNotWaitedFor) {
  run(init(0, 2) + "@!%p0 bra END;\nmbarrier.arrive_drop.shared::cta.b64 _, [bars];\n" + test(0, 0) +
          "mbarrier.arrive.shared::cta.b64 _, [bars];\n" + test(1, 0) +
          "mbarrier.arrive.shared::cta.b64 _, [bars];\n" + test(2, 1) + "END:\n",
      {}, [&] {
        EXPECT_EQ(words(out)[0], 0u);
        EXPECT_EQ(words(out)[1], 1u);
        EXPECT_EQ(words(out)[2], 1u);
      });
}

// cp.async.mbarrier.arrive: each lane copies 16 bytes; the other warp reads all when they landed.
TEST_F(Async, CopiesOfThreadsArrive) {
  for (const bool noinc : {true, false}) {
    const std::string arrive = noinc ? "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bars];\n"
                                     : "cp.async.mbarrier.arrive.shared::cta.b64 "
                                       "[bars];\nmbarrier.arrive.shared::cta.b64 _, [bars];\n";
    run(init(0, 32) + R"(
      and.b32 %r5, %r0, 31;
      shl.b32 %r6, %r5, 4;
      cvt.u64.u32 %rd3, %r6;
      add.u64 %rd4, %rd1, %rd3;
      add.u64 %rd5, %rd0, %rd3;
      add.u32 %r7, %r2, %r6;
      @!%p1 bra READ;
      cp.async.cg.shared.global [%r7], [%rd4], 16;
      )" + arrive +
            "bra END;\nREAD:\n" + wait(0, "0") + R"(
      ld.shared.v4.u32 {%r8,%r9,%r10,%r11}, [%r7];
      st.global.v4.u32 [%rd5], {%r8,%r9,%r10,%r11};
      END:
      )",
        {1, 64, 1}, [&] {
          for (size_t i = 0; i < 128; ++i) ASSERT_EQ(words(out)[i], words(in)[i]);
        });
  }
}

}  // namespace
