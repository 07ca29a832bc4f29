// SPDX-License-Identifier: MIT
//
// Places and names in reports: the first line that is no wrapper's, with all callers, and mbarriers
// by the names that the source gives them, with who arrived and who did not.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/emu/launch_ptx.h"

namespace {

using namespace emu_test;

// The report of a launch; empty if all went well.
std::string report_of(const std::string& text) {
  std::filesystem::current_path(GG_SOURCE_DIR);  // which source lines are shown from
  std::vector<Buffer> buffers = {Buffer(4096), Buffer(4096)};
  Config config = config_of(1, 64);
  config.options.workers = 1;
  try {
    Program program(text);
    program.run(buffers, config);
  } catch (const gg::emu::Fault& fault) {
    return fault.what();
  }
  return "";
}

std::string squeezed(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || result.empty() || result.back() != ' ') result += blank ? ' ' : c;
  }
  return result;
}
testing::AssertionResult says(const std::string& report, const std::string& part) {
  if (squeezed(report).find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "without '" << part << "':\n" << report;
}

std::string with_files(const std::string& text,
                       const std::string& lines = GG_SOURCE_DIR "/tests/emu/golden/barriers.cu") {
  return text + ".file 1 \"" + lines + "\"\n.file 2 \"" GG_SOURCE_DIR "/common/kernel/ptx/mbarrier.cuh\"\n";
}

// Two barriers of two arrivals each from one line, one from another. Both warps arrive at the
// second one, which ends its phase 0; warp 0 arrives again. All wait for `waited`, a barrier
// and a parity.
std::string ring(const std::string& waited,
                 const std::string& lines = GG_SOURCE_DIR "/tests/emu/golden/barriers.cu") {
  return with_files(kernel(R"(
    .shared .align 8 .b64 bars[3];
    .loc 1 7 5
    setp.ne.u32 %p2, %r0, 0;
    @%p2 bra MADE;
    .loc 2 21 3, function_name $L__f, inlined_at 1 7 50
    mbarrier.init.shared::cta.b64 [bars], 2;
    mbarrier.init.shared::cta.b64 [bars+8], 2;
    .loc 1 8 3
    .loc 2 21 3, function_name $L__f, inlined_at 1 8 3
    mbarrier.init.shared::cta.b64 [bars+16], 1;
    MADE:
    bar.sync 0;
    and.b32 %r10, %r0, 31;
    setp.ne.u32 %p0, %r10, 0;
    .loc 1 9 3
    .loc 2 40 3, function_name $L__f, inlined_at 1 9 3
    @!%p0 mbarrier.arrive.shared::cta.b64 _, [bars+8];
    bar.sync 0;
    .loc 1 10 3
    .loc 2 40 3, function_name $L__f, inlined_at 1 10 3
    @!%p2 mbarrier.arrive.shared::cta.b64 _, [bars+8];
    .loc 1 11 3
    .loc 1 4 3, function_name $L__g, inlined_at 1 11 3
    .loc 2 113 3, function_name $L__h, inlined_at 1 4 3
    .loc 2 91 13, function_name $L__i, inlined_at 2 113 3
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, )" +
                           waited + R"(;
    @!%p1 bra WAIT;
  )"),
                    lines);
}

TEST(Places, AreTheFirstLinesOutsideWrappersWithAllCallers) {
  const std::string report = report_of(ring("[bars+8], 1"));
  EXPECT_TRUE(
      says(report,
           "where tests/emu/golden/barriers.cu:4 gg::ptx::mbarrier_wait_parity(full_addr + stage * 8, 0); "
           "through common/kernel/ptx/mbarrier.cuh:113, common/kernel/ptx/mbarrier.cuh:91 "
           "called at tests/emu/golden/barriers.cu:11 wait_for_stage(full_addr, 1); PTX line"));
}

TEST(Places, OfARecursionAreCounted) {
  std::string calls = ".loc 1 6 1\n";
  for (int depth = 0; depth < 3; ++depth)
    calls += ".loc 1 4 3, function_name $L__g, inlined_at 1 " + std::string(depth ? "4 3" : "6 1") + "\n";
  const std::string report = report_of(with_files(kernel(calls + "trap;\n")));
  EXPECT_TRUE(
      says(report, "called at tests/emu/golden/barriers.cu:4 (2 times), tests/emu/golden/barriers.cu:6 PTX"));
}

TEST(Places, OfACallThatNobodyNamedBeforeStandAlone) {
  const std::string report =
      report_of(with_files(kernel(".loc 1 4 3, function_name $L__g, inlined_at 1 11 3\ntrap;\n")));
  EXPECT_TRUE(says(report, "called at tests/emu/golden/barriers.cu:11 wait_for_stage(full_addr, 1);"));
}

TEST(Barriers, HaveTheirNamesWithWhoArrivedAndWhoDidNot) {
  const std::string report = report_of(ring("[bars+8], 1"));
  EXPECT_TRUE(says(report,
                   "waits at full[1] (mbarrier 0x408) for parity 1: phase 1 lacks 1 of 2 arrivals; "
                   "arrived: warp 0 at tests/emu/golden/barriers.cu:10; in the phase before and not "
                   "yet in this one: warp 1 at tests/emu/golden/barriers.cu:9; 1 phase has ended"));
}

TEST(Barriers, OfALineOfTheirOwnHaveNoIndex) {
  const std::string report = report_of(ring("[bars+16], 0"));
  EXPECT_TRUE(
      says(report,
           "waits at mailbox.empty (mbarrier 0x410) for parity 0: phase 0 lacks 1 of 1 arrivals; nobody has "
           "arrived in this phase"));
}

TEST(Barriers, HaveNoNameWhereTheSourceIsNotAtHand) {
  const std::string report = report_of(ring("[bars], 0", "/nowhere/barriers.cu"));
  EXPECT_TRUE(says(report, "waits at mbarrier 0x400 for parity 0"));
  EXPECT_TRUE(says(report, "nowhere/barriers.cu:4 through"));
}

// A second warp arrives behind the inval of the first one.
TEST(Barriers, ThatWereInvalidatedAreCalledSo) {
  const auto text = [](const std::string& again) {
    return with_files(kernel(R"(
      .shared .align 8 .b64 bar;
      setp.ne.u32 %p2, %r0, 0;
      .loc 1 8 3
      @!%p2 mbarrier.init.shared::cta.b64 [bar], 2;
      .loc 1 7 3
      @!%p2 mbarrier.inval.shared::cta.b64 [bar];
      )" + again + R"(
      bar.sync 0;
      .loc 1 9 3
      @!%p2 mbarrier.arrive.shared::cta.b64 _, [bar];)"));
  };
  const std::string report = report_of(text(""));
  EXPECT_TRUE(says(report, "fault mbarrier-state"));
  EXPECT_TRUE(
      says(report,
           "mbarrier 0x400 was invalidated, and not initialised again where tests/emu/golden/barriers.cu:9"));
  EXPECT_TRUE(says(report, "other the same thread invalidated it tests/emu/golden/barriers.cu:7"));
  EXPECT_EQ(report_of(text("@!%p2 mbarrier.init.shared::cta.b64 [bar], 2;")), "");
}

}  // namespace
