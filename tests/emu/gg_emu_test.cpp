// SPDX-License-Identifier: MIT
//
// gg-emu: its options, what it refuses, and programs that run under it.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "tests/emu/trace_file.h"
#include "tests/process.h"

namespace {

using testing_gg::Outcome;

const std::string kPrograms = std::string(GG_BINARY_DIR) + "/bin/";
const std::string kTests = std::string(GG_BINARY_DIR) + "/tests/";
const std::string kEndsEarly = kTests + "ends_early";
const std::string kRuntimeTest = kTests + "runtime_test";

Outcome gg_emu(const std::vector<std::string>& words) {
  std::vector<std::string> command = {kPrograms + "gg-emu"};
  command.insert(command.end(), words.begin(), words.end());
  return testing_gg::run(command);
}

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

TEST(GgEmu, HelpListsOptionsAndFaults) {
  const Outcome outcome = gg_emu({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* word :
       {"--like", "--order", "--report", "--allow", "--trace", "--multiprocessors", "--line-counts", "--ptx",
        "--launches", "--progress-after", "deadlock", "uninit-shared", "race"}) {
    EXPECT_TRUE(says(outcome.out, word)) << word;
  }
  for (const char* variable : {"LIKE", "ORDER", "REPORT", "ALLOW", "TRACE", "LINE_COUNTS", "MULTIPROCESSORS",
                               "PTX", "LAUNCHES", "PROGRESS_AFTER"}) {
    EXPECT_TRUE(says(outcome.out, std::string("\n  GG_EMU_") + variable + " ")) << variable;
  }
}

TEST(GgEmu, RefusesInOneSentence) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "no program is named"},
      {{"--fast", "x"}, "there is no option --fast"},
      {{"--like"}, "--like wants a value"},
      {{"--like", "v100", "x"}, "--like v100"},
      {{"--order", "1:slow", "x"}, "--order 1:slow"},
      {{"--order", "-1", "x"}, "--order -1"},
      {{"--allow", "race,rain", "x"}, "\"rain\" is no kind of fault"},
      {{"--allow", "", "x"}, "--allow wants a value, and \"\" is none"},
      {{"--allow", "race,trap", "x"}, "\"trap\", these kinds can be allowed: uninit-shared, "},
      {{"--multiprocessors", "0", "x"}, "--multiprocessors 0: a device has 1 to 1024 multiprocessors"},
      {{"--multiprocessors", "1025", "x"}, "--multiprocessors 1025"},
      {{"--multiprocessors", "4x", "x"}, "--multiprocessors 4x"},
      {{"--trace"}, "--trace wants a value"},
      {{"--trace", "/no/such/folder/t.json", "x"}, "/no/such/folder/t.json"},
      {{"--line-counts"}, "--line-counts wants a value"},
      {{"--ptx", "/no/such/file.ptx", "x"}, "/no/such/file.ptx: cannot be read"},
      {{"--launches", "/no/such/folder/names", "x"}, "/no/such/folder/names"},
      {{"--trace", "/dev/null", "x"}, "/dev/null: is there and is no plain file"},
      {{"no-such-program"}, "there is no program no-such-program"},
      {{"/no/such/program"}, "there is no program /no/such/program"},
      {{kPrograms + "gg-emu"}, "does not link libcudart.so.13"},
  };
  for (const auto& [words, sentence] : cases) {
    const Outcome outcome = gg_emu(words);
    EXPECT_EQ(outcome.code, 2) << sentence;
    EXPECT_TRUE(says(outcome.err, sentence)) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(GgEmu, SaysWhatItDoesNotHave) {
  const std::string driver =
      "calls cuMadeUpForATest of the driver's interface, which the emulator does not have. Load and launch "
      "kernels through the runtime (<<<>>>, cudaLaunchKernel), or give their PTX to gg-ptx";
  const std::string library =
      "links libcublas.so.1, whose kernels are machine code of a GPU: its calls fail here.";
  if (!std::filesystem::exists(kTests + "calls_others_lazy")) GTEST_SKIP() << "a program with a sanitizer";
  const Outcome starts = gg_emu({kTests + "calls_others_lazy"});
  EXPECT_EQ(starts.code, 0) << starts.err;
  EXPECT_EQ(starts.out, "cudaSuccess, 1 devices\n");
  EXPECT_TRUE(says(starts.err, driver)) << starts.err;
  EXPECT_TRUE(says(starts.err, library)) << starts.err;
  const Outcome cannot = gg_emu({kTests + "calls_others_now"});
  EXPECT_EQ(cannot.code, 2) << cannot.out;
  EXPECT_TRUE(says(cannot.err, driver)) << cannot.err;
  const Outcome needs_nothing = gg_emu({kRuntimeTest, "--gtest_list_tests"});
  EXPECT_EQ(needs_nothing.err, "");
}

TEST(GgEmu, SurvivesAnyProgramFile) {
  const testing_gg::Folder folder;
  const std::string good = testing_gg::text_of(kPrograms + "gg-emu"), file = folder.at("program");
  uint64_t state = 7;
  const auto random = [&state] {
    return (state = state * 6364136223846793005ull + 1442695040888963407ull) >> 33;
  };
  for (int trial = 0; trial < 60; ++trial) {
    std::string bytes = good.substr(0, trial % 2 ? random() % 3000 : good.size());
    for (int i = 0; i < 20 && !bytes.empty(); ++i)
      bytes[random() % std::min<size_t>(bytes.size(), 800)] = char(random());
    testing_gg::write_text(file, bytes);  // not executable: it can't start, whatever is in it
    const Outcome outcome = gg_emu({file});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
  }
}

std::string filter(const char* test) { return std::string("--gtest_filter=") + test; }

TEST(GgEmu, RunsAProgram) {
  const Outcome outcome = gg_emu({kRuntimeTest, filter("Runtime.ReplaysWhatWasCaptured")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(says(outcome.out, "[  PASSED  ] 1 test.")) << outcome.out;
}

// One that links the driver's library alone, and one that asks NVRTC for machine code, where that
// is here. NVRTC opens a library of its own by name, which the loader finds only where the toolkit
// is among its folders.
TEST(GgEmu, RunsProgramsOfTheDriver) {
  for (const char* name : {"links_driver", "links_nvrtc"}) {
    if (!std::filesystem::exists(kTests + name)) continue;
    const Outcome outcome = testing_gg::run(
        {"/usr/bin/env", "LD_LIBRARY_PATH=" GG_TOOLKIT_LIBRARIES, kPrograms + "gg-emu", kTests + name});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "105\n");
    EXPECT_EQ(outcome.err, "");
  }
}

// A build without common/emu/foreign runs what chapters need, and refuses the rest in a sentence.
TEST(GgEmu, NamesTheOptionThatWasLeftOut) {
  const std::string option =
      "common/emu/foreign, which this build leaves out: configure with -DGG_FOREIGN=ON";
  const auto alone = [](const std::vector<std::string>& words) {
    std::vector<std::string> command = {"/usr/bin/env", "LD_LIBRARY_PATH=" GG_TOOLKIT_LIBRARIES,
                                        kTests + "without_foreign/bin/gg-emu"};
    command.insert(command.end(), words.begin(), words.end());
    return testing_gg::run(command);
  };
  const Outcome runs = alone({kRuntimeTest, filter("Runtime.PassesArgumentsByTheirLayout")});
  EXPECT_EQ(runs.code, 0) << runs.out;
  EXPECT_TRUE(says(runs.out, "[  PASSED  ] 1 test.")) << runs.out;
  const Outcome function = alone({kRuntimeTest, filter("Graphs.HoldCopiesOfOthers")});
  EXPECT_EQ(function.code, 1) << function.out;
  EXPECT_TRUE(says(function.err, "gg-emu: cudaGraphCreate is in " + option + "\n")) << function.err;
  const Outcome entry = alone({kRuntimeTest, filter("Runtime.FindsFunctionsOfTheDriver")});
  EXPECT_EQ(entry.code, 1) << entry.out;
  EXPECT_TRUE(says(entry.err, "gg-emu: cuMemAlloc is in " + option + "\n")) << entry.err;
  const Outcome instruction = alone({kTests + "isa_80_test", filter("Wmma.Tf32")});
  EXPECT_EQ(instruction.code, 3) << instruction.out;
  EXPECT_TRUE(says(instruction.err, "not supported: wmma.load")) << instruction.err;
  EXPECT_TRUE(says(instruction.err, "configure with -DGG_FOREIGN=ON\n")) << instruction.err;
  const Outcome driver = alone({kTests + "links_driver"});
  EXPECT_EQ(driver.code, 2) << driver.out;
  EXPECT_TRUE(says(driver.err, "links libcuda.so.1: the driver's interface is in " + option + "\n"))
      << driver.err;
}

// CUDA's folder comes first, and gg-emu's own before that. Where a script starts such a program,
// gg-emu sees none of it; the driver's library says what came first.
TEST(GgEmu, RunsAProgramWithAnRpath) {
  const std::string program = kTests + "has_rpath";
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "a program with a sanitizer";
  const Outcome outcome = gg_emu({program});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "cudaSuccess, 1 devices\n");
  EXPECT_EQ(outcome.err, "");
  const Outcome beside =
      testing_gg::run({"/usr/bin/env", "LD_PRELOAD=libm.so.6", kPrograms + "gg-emu", program});
  EXPECT_EQ(beside.out, "cudaSuccess, 1 devices\n");
  EXPECT_EQ(beside.err, "");
  const testing_gg::Folder folder;
  testing_gg::write_text(folder.at("script"), "#!/bin/sh\n" + program + "\nexit 0\n");
  std::filesystem::permissions(folder.at("script"), std::filesystem::perms::owner_all);
  const Outcome child = gg_emu({folder.at("script")});
  EXPECT_TRUE(says(child.err, "and not the emulator's: a DT_RPATH goes before LD_LIBRARY_PATH."))
      << child.err;
  EXPECT_TRUE(says(child.err, "the CUDA runtime of this program is " GG_TOOLKIT_LIBRARIES "/libcudart.so.13"))
      << child.err;
}

// LD_PRELOAD divides at spaces, so it cannot be used there.
TEST(GgEmu, SaysWhereAnRpathCannotBeMended) {
  const std::string program = kTests + "has_rpath";
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "a program with a sanitizer";
  const testing_gg::Folder folder;
  const std::string root = folder.at("with a space");
  std::filesystem::create_directories(root + "/bin");
  std::filesystem::create_directories(root + "/lib");
  std::filesystem::copy_file(kPrograms + "gg-emu", root + "/bin/gg-emu");
  std::filesystem::create_directory_symlink(std::string(GG_BINARY_DIR) + "/lib/emu", root + "/lib/emu");
  const Outcome outcome = testing_gg::run({root + "/bin/gg-emu", program});
  EXPECT_TRUE(says(outcome.err, "has a DT_RPATH, which goes before LD_LIBRARY_PATH: link it with"))
      << outcome.err;
}

TEST(GgEmu, PlaysAnotherDevice) {
  const Outcome outcome = gg_emu({"--like", "a100", kRuntimeTest, filter("Runtime.NamesErrors")});
  EXPECT_TRUE(says(outcome.out, "no device like an H200")) << outcome.out;
}

TEST(GgEmu, GivesTheDeviceAsManyMultiprocessors) {
  const Outcome outcome =
      gg_emu({"--multiprocessors", "3", kRuntimeTest, filter("*DISABLED_HasThreeMultiprocessors"),
              "--gtest_also_run_disabled_tests"});
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  EXPECT_TRUE(says(outcome.out, "[  PASSED  ] 1 test.")) << outcome.out;
}

TEST(GgEmu, ReportsCounts) {
  const Outcome outcome =
      gg_emu({"--report", "--order", "3:skew", kRuntimeTest, filter("Runtime.LaunchesClusters")});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(says(outcome.err, "counts of ")) << outcome.err;
  EXPECT_TRUE(says(outcome.err, "instructions_move")) << outcome.err;
  EXPECT_FALSE(says(outcome.out, "instructions")) << outcome.out;
}

// Job schedulers limit the address space. The emulator takes what is there; where that is too
// little it says how much it wants. The sizes are in KiB, as ulimit has them.
TEST(GgEmu, TakesTheAddressSpaceThatALimitLeaves) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer wants more address space than the limits here";
#endif
  const auto under = [](const char* limit) {
    return testing_gg::run({"/bin/sh", "-c", std::string("ulimit -v ") + limit + " && exec \"$@\"", "sh",
                            kPrograms + "gg-emu", kRuntimeTest, filter("Runtime.LaunchesClusters")});
  };
  for (const char* limit : {"67108864", "4194304", "1048576"}) {
    const Outcome outcome = under(limit);
    EXPECT_EQ(outcome.code, 0) << limit << "\n" << outcome.err;
  }
  const Outcome outcome = under("200000");
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_TRUE(says(outcome.err, "the emulator wants 268435456 bytes of address space or more"))
      << outcome.err;
  EXPECT_TRUE(says(outcome.err, "raise the limit (ulimit -v")) << outcome.err;
}

// The counts themselves are tested with gg-ptx.
TEST(GgEmu, CountsTheLinesOfPtx) {
  const testing_gg::Folder folder;
  const std::string file = folder.at("lines.csv");
  const Outcome outcome = gg_emu({"--line-counts", file, kRuntimeTest, filter("Runtime.LaunchesClusters")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string lines = testing_gg::text_of(file);
  EXPECT_EQ(lines.rfind("kernel,ptx_line,warps,sectors\n_Z", 0), 0u) << lines;
  EXPECT_GT(std::count(lines.begin(), lines.end(), '\n'), 5) << lines;
}

// Slices are loaded, waited for and multiplied, and the sums are stored behind the last of them.
TEST(GgEmu, TracesATensorCoreKernel) {
  const std::string id = "03_tensor_cores";
  if (!testing_gg::is_built(id)) GTEST_SKIP() << id << " is not in this build";
  const testing_gg::Folder folder;
  const std::string file = folder.at("trace.json");
  const Outcome outcome =
      gg_emu({"--trace", file, testing_gg::program(id), "--device", "emu", "--set", "smoke"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(says(outcome.err, "trace.json: events: ")) << outcome.err;
  const testing_gg::TraceFile trace = testing_gg::read_trace(file);
  ASSERT_FALSE(trace.warps.empty());
  int multiplying = 0;
  for (const auto& [where, row] : trace.warps) {
    // The harness's own kernel: it writes offsets.
    if (says(trace.blocks.at(where.first), "gg::late_copy")) continue;
    EXPECT_TRUE(says(trace.blocks.at(where.first), "chapter::grouped_gemm")) << trace.blocks.at(where.first);
    std::string order;
    for (const std::string& kind : testing_gg::kinds_of(row)) order += kind[0];
    const size_t first = order.find('m');
    if (first == order.npos) continue;  // a block without rows
    ++multiplying;
    EXPECT_LT(order.find('l'), order.find('w')) << order;
    EXPECT_LT(order.find('w'), first) << order;
    EXPECT_LT(order.find('w', first), order.rfind('m')) << "no wait between the slices: " << order;
    EXPECT_GT(order.find('e'), order.rfind('m')) << order;
    for (const testing_gg::TraceEvent& event : row) {
      EXPECT_TRUE(event.ended);
      EXPECT_EQ(event.kind == "mma", says(event.first, "mma.sync")) << event.first;
    }
  }
  EXPECT_GT(multiplying, 0);
}

// On a device the process ends, and the work with it. Here too, and what is left behind is whole.
TEST(GgEmu, MainMayReturnWhileAThreadLaunches) {
  const testing_gg::Folder folder;
  const std::string file = folder.at("trace.json");
  for (const char* what : {"one", "many"}) {
    for (int trial = 0; trial < 8; ++trial) {
      const Outcome outcome = gg_emu({"--report", "--trace", file, kEndsEarly, what});
      EXPECT_EQ(outcome.code, 5) << what << "\n" << outcome.err;
      EXPECT_EQ(outcome.out, "main returns\n");
      EXPECT_TRUE(says(outcome.err, "counts of small")) << outcome.err;
      EXPECT_FALSE(says(outcome.err, "counts of slow")) << outcome.err;  // it has not ended
      EXPECT_GE(testing_gg::read_trace(file).blocks.size(), 1u);
    }
  }
}

TEST(GgEmu, EndsAtAFaultUnlessItIsAllowed) {
  const std::vector<std::string> program = {kRuntimeTest, filter("*DISABLED_ReadsUnwrittenSharedMemory"),
                                            "--gtest_also_run_disabled_tests"};
  const Outcome stopped = gg_emu(program);
  EXPECT_EQ(stopped.code, 3);
  EXPECT_TRUE(says(stopped.err, "fault uninit-shared")) << stopped.err;
  std::vector<std::string> words = {"--allow", "race,uninit-shared", "--allow", "proxy"};
  words.insert(words.end(), program.begin(), program.end());
  const Outcome warned = gg_emu(words);
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_TRUE(says(warned.err, "allowed: ") && says(warned.err, "uninit-shared")) << warned.err;
}

// A program's file is as old as its code: a copy of it, made older or newer than the source
// of its kernel.
TEST(GgEmu, QuotesNoSourceThatIsNewerThanTheProgram) {
  const testing_gg::Folder folder;
  const std::string program = folder.at("program"), source = GG_SOURCE_DIR "/tests/emu/runtime_test.cu";
  std::filesystem::copy_file(kRuntimeTest, program);
  const auto changed = std::filesystem::last_write_time(source);
  for (const int seconds : {-1, 1}) {
    std::filesystem::last_write_time(program, changed + std::chrono::seconds(seconds));
    const Outcome outcome =
        gg_emu({program, filter("*DISABLED_ReadsUnwrittenSharedMemory"), "--gtest_also_run_disabled_tests"});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(says(outcome.err, "   out[threadIdx.x] = nobody_wrote[threadIdx.x];"), seconds > 0)
        << outcome.err;
    EXPECT_EQ(says(outcome.err, "   (the file is newer than this code: build again to see the line)"),
              seconds < 0)
        << outcome.err;
  }
}

TEST(GgEmu, GivesUnwrittenMemoryTheValuesOfTheOrder) {
  const auto found = [](const std::string& order) {
    const Outcome outcome = gg_emu({"--allow", "uninit-global", "--order", order, kRuntimeTest,
                                    filter("*DISABLED_IsReadAllTheSame"), "--gtest_also_run_disabled_tests"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(says(outcome.err, "allowed: uninit-global in ")) << outcome.err;
    const size_t at = outcome.out.find("found ");
    EXPECT_NE(at, std::string::npos) << outcome.out;
    return outcome.out.substr(at, outcome.out.find('\n', at) - at);
  };
  EXPECT_EQ(found("1"), found("1"));
  EXPECT_NE(found("1"), found("2"));
  EXPECT_NE(found("1"), found("0"));
}

}  // namespace
