// SPDX-License-Identifier: MIT
//
// Long loops without a change of memory: computing has an end of its own, polling for what nobody
// will change is a deadlock.

#include <gtest/gtest.h>

#include "tests/emu/launch_ptx.h"
#include "tests/emu/report_says.h"

namespace {

using namespace emu_test;

constexpr int kWords = 600'000;  // of `in`, all of them 1

// The words that threads write, or the report of the fault.
struct Outcome {
  Words words;
  std::string report;
};
Outcome outcome(const std::string& body, bool skew, int patience = 1) {
  Program program(kernel(body));
  std::vector<Buffer> buffers = {buffer_of(Words(128, 0)), buffer_of(Words(kWords, 1))};
  Config config = config_of(2, 64);
  config.options.workers = 1;
  config.options.patience = patience;
  config.options.order = {3, skew};
  try {
    program.run(buffers, config);
  } catch (const gg::emu::Fault& fault) {
    EXPECT_EQ(fault_name(fault.kind), std::string("deadlock"));
    return {{}, fault.what()};
  }
  return {values_of<uint32_t>(buffers[0]), ""};
}

// Warp 0 goes round `times` times, while warp 1 waits for it at a barrier.
std::string counted(const std::string& step, int times) {
  return R"(
    mov.u32 %r10, 0;
    mov.u32 %r11, 0;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra DONE;
    LOOP:
    add.u32 %r10, %r10, 1;
    )" + step +
         "\nsetp.lt.u32 %p0, %r10, " + std::to_string(times) + R"(;
    @%p0 bra LOOP;
    DONE:
    bar.sync 0;
    st.global.u32 [%rd2], %r10;)";
}

TEST(Polling, AWarpThatComputesIsNotStuck) {
  constexpr int kTimes = 600'000;  // more than patience allows
  const char* const steps[] = {
      "",                                                             // arithmetic only
      "mul.lo.u32 %r11, %r11, %r10;",                                 //
      "ld.param.u64 %rd5, [in];",                                     // nobody can change it
      "setp.eq.u32 %p2, %r11, 1;\n@%p2 ld.global.u32 %r11, [%rd1];",  // a load that never happens
  };
  for (const char* step : steps) {
    for (const bool skew : {false, true}) {
      SCOPED_TRACE(step);
      const Outcome o = outcome(counted(step, kTimes), skew);
      ASSERT_EQ(o.report, "");
      EXPECT_EQ(o.words[0], uint32_t(kTimes));
      EXPECT_EQ(o.words[32], 0u);
    }
  }
}

// A walk through memory asks another question each time, and so does an operand that changes.
TEST(Polling, AWarpThatReadsOnIsNotStuck) {
  for (const char* step : {"mad.wide.u32 %rd5, %r10, 4, %rd1;\nld.volatile.global.u32 %r11, [%rd5];",
                           "add.u32 %r12, %r10, 1;\natom.global.cas.b32 %r11, [%rd1], %r12, %r10;"}) {
    SCOPED_TRACE(step);
    const Outcome o = outcome(counted(step, kWords - 1), false);
    ASSERT_EQ(o.report, "");
    EXPECT_EQ(o.words[0], uint32_t(kWords - 1));
  }
}

TEST(Polling, AWarpThatAsksInVainIsStuck) {
  const char* const steps[] = {
      "ld.volatile.global.u32 %r11, [%rd1];",
      "atom.global.or.b32 %r11, [%rd1], 0;",
      "and.b32 %r12, %r10, 15;\nmul.wide.u32 %rd5, %r12, 4;\nadd.u64 %rd5, %rd5, %rd1;\n"
      "ld.volatile.global.u32 %r11, [%rd5];",  // sixteen flags in turn
      "nanosleep.u32 20;\nld.volatile.global.u32 %r11, [%rd1];",
  };
  for (const char* step : steps) {
    for (const bool skew : {false, true}) {
      SCOPED_TRACE(step);
      const Outcome o = outcome(counted(step, 2'000'000'000), skew);
      EXPECT_TRUE(report::says(o.report, "asks here again and again and always gets the same answer"));
    }
  }
}

// It comes back to the registers it had: no patience is needed.
TEST(Polling, ALoopThatChangesNothingIsStuck) {
  for (const bool skew : {false, true}) {
    const Outcome o = outcome("LOOP:\nbra LOOP;\n", skew, 1'000'000);
    EXPECT_TRUE(report::says(o.report, "runs without end"));
    EXPECT_TRUE(report::says(o.report, "its condition never changes"));
  }
}

}  // namespace
