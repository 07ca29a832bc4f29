// SPDX-License-Identifier: MIT
//
// The reports of gg-ptx: counts, traces, help and faults.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <regex>

#include "tests/emu/gg_ptx.h"
#include "tests/emu/trace_file.h"

namespace {

using namespace testing_gg;

// Line 17 of kScale stores 64 floats, by two blocks of a warp each: eight sectors. Nobody runs the
// kernel beside it.
TEST(GgPtx, CountsEachLineOfPtx) {
  const Files files;
  const std::string lines = files.at("lines.csv");
  const Outcome outcome =
      gg_ptx({files.ptx(kScale), "--line-counts", lines, "--entry", "scale", "--grid", "2", "--block", "32",
              "--arg", "in:" + files.npy("x.npy", counting(64)), "--arg",
              "out:" + files.npy("y.npy", counting(64)), "--arg", "f32:1", "--arg", "f32:0"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = text_of(lines);
  EXPECT_EQ(text.rfind("kernel,ptx_line,warps,sectors\nscale,", 0), 0u) << text;
  EXPECT_NE(text.find("\nscale,15,2,8\n"), text.npos) << text;
  EXPECT_EQ(text.find("nothing"), text.npos) << text;
}

TEST(GgPtx, ReportsCounts) {
  const Files files;
  const Outcome outcome =
      gg_ptx({files.ptx(kScale), "--report", "--buf", "b=zero:256", "--entry", "scale", "--grid", "2",
              "--block", "32", "--arg", "b", "--arg", "b", "--arg", "f32:0", "--arg", "f32:0"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("scale"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("global_load_bytes"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("256"), std::string::npos) << outcome.err;
}

// A load, a barrier, a product, a store, with a few other instructions between.
const std::string kEachKind = header() + R"(
.visible .entry each(.param .u64 x)
{
  .reg .b32 %r<9>; .reg .f32 %f<5>; .reg .b64 %rd<5>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r2, [%rd1];
  add.u32 %r2, %r2, 1;
  ld.global.u32 %r3, [%rd1];
  bar.sync 0;
  mov.f32 %f1, 0f00000000;
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3}, {%r2}, {%f1, %f1, %f1, %f1};
  st.global.f32 [%rd1], %f1;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bar.sync 1, 64;
  ret;
}
)";

Outcome trace_each(const Files& files, const std::string& file, const std::string& grid,
                   const std::string& block) {
  return gg_ptx({files.ptx(kEachKind), "--report", "--trace", file, "--buf", "x=zero:256", "--launch", "each",
                 "--grid", grid, "--block", block, "--arg", "x"});
}

TEST(GgPtx, TracesWhatWarpsDo) {
  const Files files;
  const std::string file = files.at("trace.json");
  const std::string early = kEachKind.substr(0, kEachKind.find("setp")) + "ret;\n}\n";
  std::vector<std::string> words = {files.ptx(early), "--report", "--trace", file, "--buf", "x=zero:256"};
  for (const char* grid : {"3", "20"})
    words.insert(words.end(), {"--launch", "each", "--grid", grid, "--block", "64", "--arg", "x"});
  const Outcome outcome = gg_ptx(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("launches: 2, blocks: 19; left out, "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("in all: blocks: 4\n"), std::string::npos) << outcome.err;
  EXPECT_NE(text_of(file).find("in all: blocks: 4\""), std::string::npos) << "the file says it too";
  const TraceFile trace = read_trace(file);
  EXPECT_EQ(trace.blocks.size(), 19u);
  EXPECT_EQ(trace.blocks.at(1), "launch 0: each, block 0");
  EXPECT_EQ(trace.blocks.at(19), "launch 1: each, block 15");
  EXPECT_EQ(trace.warps.size(), 2 * 19u);
  for (const auto& [where, row] : trace.warps) {
    EXPECT_EQ(kinds_of(row, true),
              (std::vector<std::string>{"other", "load", "wait", "other", "mma", "epilogue", "other"}));
    EXPECT_EQ(row[1].instructions, 3);  // the addition between two loads is theirs
    EXPECT_NE(row[2].first.find("bar.sync 0"), std::string::npos) << row[2].first;
  }
  // Warp 0 comes to the barrier first and waits until warp 1 has come too.
  EXPECT_GE(trace.warps.at({1, 0})[2].end, trace.warps.at({1, 1})[2].begin);
  EXPECT_EQ(trace.instructions, 2 * 19 * 12);
  EXPECT_NE(outcome.err.find("instructions                          " + std::to_string(2 * 23 * 12)),
            std::string::npos)
      << outcome.err;

  const std::string first = text_of(file);
  EXPECT_EQ(gg_ptx(words).code, 0);
  EXPECT_EQ(text_of(file), first) << "another trace of the same run";
}

// 60,000 events in one launch and four launches in all are more than a trace keeps.
TEST(GgPtx, LongTracesAreCutAndSaySo) {
  const Files files;
  const std::string file = files.at("trace.json");
  const std::string text = header() + R"(
.visible .entry turns(.param .u64 x)
{
  .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, 0;
LOOP:
  ld.global.u32 %r2, [%rd1];
  bar.sync 0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 30000;
  @%p1 bra LOOP;
  ret;
}
)";
  std::vector<std::string> words = {files.ptx(text), "--trace", file, "--buf", "x=zero:256"};
  for (int i = 0; i < 5; ++i)
    words.insert(words.end(), {"--launch", "turns", "--grid", "1", "--block", "32", "--arg", "x"});
  const Outcome outcome = gg_ptx(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("in all: blocks: 1; cut short, for their many events: blocks: 4\n"),
            std::string::npos)
      << outcome.err;
  const std::string all = text_of(file);
  size_t events = 0;
  for (size_t at = 0; (at = all.find("\"ph\":\"X\"", at)) != all.npos; ++at) ++events;
  EXPECT_GE(events, 200'000u);
  EXPECT_LT(events, 200'050u);
  EXPECT_EQ(all.find("launch 4: turns"), all.npos) << "the others fill the trace";
}

// A trace also holds what led to a fault.
TEST(GgPtx, TracesUpToAFault) {
  const Files files;
  const std::string file = files.at("trace.json");
  const Outcome outcome = trace_each(files, file, "1", "64");
  EXPECT_TRUE(reports(outcome, {"deadlock"}));
  const TraceFile trace = read_trace(file);
  const TraceEvent &last = trace.warps.at({1, 0}).back(), &other = trace.warps.at({1, 1}).back();
  EXPECT_EQ(last.kind, "wait");
  EXPECT_FALSE(last.ended);
  EXPECT_GE(last.end, other.end);
  EXPECT_TRUE(other.ended);
}

// Warp 0 arrives three times with a load before each, and warp 1 waits for each phase.
TEST(GgPtx, TracesPhasesOfMbarriers) {
  const Files files;
  const std::string file = files.at("trace.json");
  const std::string text = header() + R"(
.visible .entry turns(.param .u64 x)
{
  .reg .b32 %r<6>; .reg .b64 %rd<3>; .reg .pred %p<5>;
  .shared .align 8 .b64 barrier;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  mov.u32 %r3, 0;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [barrier], 32;
  bar.sync 0;
  setp.ge.u32 %p2, %r1, 32;
  @%p2 bra WAITS;
ARRIVES:
  ld.global.u32 %r2, [%rd1];
  mbarrier.arrive.shared.b64 %rd2, [barrier];
  bar.sync 1, 64;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p3, %r3, 3;
  @%p3 bra ARRIVES;
  ret;
WAITS:
  and.b32 %r4, %r3, 1;
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p4, [barrier], %r4;
  @!%p4 bra AGAIN;
  bar.sync 1, 64;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p3, %r3, 3;
  @%p3 bra WAITS;
  ret;
}
)";
  const Outcome outcome = gg_ptx({files.ptx(text), "--report", "--trace", file, "--buf", "x=zero:256",
                                  "--launch", "turns", "--grid", "2", "--block", "64", "--arg", "x"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const TraceFile trace = read_trace(file);
  ASSERT_EQ(trace.phases.size(), 2u) << "an mbarrier for each of two blocks";
  for (const auto& [mbarrier, phases] : trace.phases) {
    ASSERT_EQ(phases.size(), 3u);
    EXPECT_EQ(phases[0].number, 0);
    int asked = 0;
    for (const auto& event : trace.warps.at({mbarrier.first, 1})) {
      if (event.mbarrier.empty()) continue;
      EXPECT_EQ(event.mbarrier, mbarrier.second);
      EXPECT_GE(event.end, phases[size_t(asked)].end) << "it goes on before the phase has ended";
      ++asked;
    }
    EXPECT_EQ(asked, 3);
  }
  const std::string executed = std::to_string(trace.instructions - trace.again);
  const auto printed = [&](const char* counter, const std::string& value) {
    return std::regex_search(outcome.err, std::regex(std::string(counter) + " +" + value + "\n"));
  };
  EXPECT_TRUE(printed("  instructions", executed)) << executed << "\n" << outcome.err;
  EXPECT_TRUE(printed("barrier_waits", std::to_string(trace.waits))) << trace.waits << "\n" << outcome.err;
  EXPECT_GT(trace.waits, 0);
}

// The line of a source that was changed since the PTX was made is not what stood there then.
TEST(GgPtx, QuotesNoSourceThatIsNewerThanThePtx) {
  const Files files;
  const std::string source = files.at("kernel.cu"), quote = "kernel.cu:2   out = never_written;";
  write_text(source, "first line\nout = never_written;\n");
  const std::string ptx = files.ptx(header() +
                                    ".visible .entry reads(.param .u64 x)\n{\n"
                                    "  .reg .b32 %r<2>; .shared .b32 s;\n  .loc 1 2 3\n"
                                    "  ld.shared.u32 %r1, [s];\n  ret;\n}\n.file 1 \"" +
                                    source + "\"\n");
  const auto made = std::filesystem::last_write_time(ptx);
  for (const int seconds : {-1, 0, 1}) {
    std::filesystem::last_write_time(source, made + std::chrono::seconds(seconds));
    const Outcome outcome = gg_ptx({ptx, "--entry", "reads", "--grid", "1", "--block", "1", "--arg", "null"});
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    EXPECT_EQ(outcome.err.find(quote) != std::string::npos, seconds <= 0) << outcome.err;
    EXPECT_EQ(
        outcome.err.find("kernel.cu:2   (the file is newer than this code: build again to see the line)") !=
            std::string::npos,
        seconds > 0)
        << outcome.err;
  }
}

// A toolkit may lie in the build tree: its headers have the same names there as anywhere.
TEST(GgPtx, NamesCudasHeadersAlikeWhereverTheyLie) {
  const Files files;
  const std::string here = std::filesystem::current_path().string() + "/";
  for (const std::string& folder : {here + "nvidia/cu13/include", std::string("/elsewhere/include")}) {
    const std::string ptx = files.ptx(header() +
                                      ".visible .entry reads(.param .u64 x)\n{\n"
                                      "  .reg .b32 %r<2>; .shared .b32 s;\n  .loc 1 2 3\n"
                                      "  .loc 2 7 3, function_name $L__f, inlined_at 1 2 3\n"
                                      "  ld.shared.u32 %r1, [s];\n  ret;\n}\n.file 1 \"" +
                                      here + "kernel.cu\"\n.file 2 \"" + folder + "/intrinsics.hpp\"\n");
    const Outcome outcome = gg_ptx({ptx, "--entry", "reads", "--grid", "1", "--block", "1", "--arg", "null"});
    EXPECT_NE(outcome.err.find("  kernel.cu:2"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("through include/intrinsics.hpp:7"), std::string::npos) << outcome.err;
  }
}

TEST(GgPtx, HelpListsOptionsAndFaults) {
  const Outcome outcome = gg_ptx({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* word : {"--arch 80|90a|100a",
                           "--buf NAME=in:FILE.npy",
                           "ptrs:",
                           "--launch",
                           "--entry",
                           "--grid X,Y,Z",
                           "--cluster",
                           "--smem",
                           "--arg",
                           "--args",
                           "--patch",
                           "tmap:",
                           "type is one of u8 u16 u32 s32",
                           "b6x16_p32\n",
                           "--order S[:fair|skew]",
                           "--allow KIND",
                           "--report",
                           "--like",
                           "uninit-shared",
                           "deadlock",
                           "race",
                           "proxy",
                           "async-window"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
}

// ---- faults ----

// Two warps write different values to one word of shared memory.
const std::string kRace = header() + R"(
.visible .entry clash(.param .u64 out)
{
  .shared .align 4 .b32 word;
  .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;
  st.shared.u32 [word], %r2;
  bar.sync 0;
  ld.shared.u32 %r3, [word];
  setp.lt.u32 %p1, %r3, 2;
  selp.u32 %r3, 1, 0, %p1;
  st.global.u32 [%rd1], %r3;
  ret;
}
)";

TEST(GgPtx, FaultsStopAndChangeNoFile) {
  const Files files;
  const std::string o = files.npy("o.npy", std::vector<uint32_t>{77});
  const std::string before = text_of(o);
  std::vector<std::string> words = {files.ptx(kRace), "--entry",  "clash",   "--grid", "1", "--block", "64",
                                    "--arg",          "out:" + o, "--order", "5:skew"};
  EXPECT_TRUE(
      reports(gg_ptx(words), {"race in clash", "st.shared.u32 [word]", "PTX line", "warp ", "5:skew"}));
  EXPECT_EQ(text_of(o), before);
  words.insert(words.end(), {"--allow", "proxy,race"});
  const Outcome outcome = gg_ptx(words);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err.rfind("allowed: ", 0), 0u) << outcome.err;
  EXPECT_NE(outcome.err.find("race in clash"), std::string::npos) << outcome.err;
  EXPECT_EQ(gg::read_npy(o).data, std::vector<char>({1, 0, 0, 0}));
}

TEST(GgPtx, UnknownInstructionsFailWhenExecutedOnly) {
  const Files files;
  const std::string text = header() +
                           ".visible .entry f(.param .u32 n)\n{\n.reg .b32 %r<2>; .reg .pred "
                           "%p<2>;\nld.param.u32 %r1, [n];\nsetp.ne.u32 %p1, %r1, 0;\n"
                           "@%p1 frobnicate.sync.b32 %r1, %r1;\nret;\n}\n";
  const std::vector<std::string> words = {files.ptx(text), "--entry", "f",    "--grid", "1",
                                          "--block",       "32",      "--arg"};
  for (const int n : {0, 1}) {
    std::vector<std::string> all = words;
    all.push_back("u32:" + std::to_string(n));
    const Outcome outcome = gg_ptx(all);
    EXPECT_EQ(outcome.code, n ? 3 : 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("frobnicate.sync.b32") != std::string::npos, n == 1) << outcome.err;
  }
}

}  // namespace
