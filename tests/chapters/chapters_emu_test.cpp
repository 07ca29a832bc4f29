// SPDX-License-Identifier: MIT
//
// Every chapter on the emulator: the same bits in three orders, right on drawn problems in all
// its forms, counts in place of times, and one sentence where there is no emulator. check_test.py
// runs its check.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>

#include "common/harness/base/paths.h"
#include "common/harness/base/text.h"
#include "common/harness/problem/shapes.h"
#include "common/harness/run/device.h"
#include "tests/chapters/run_chapter.h"

namespace testing_gg {
namespace {

// While this lives, the emulated GPU has so many multiprocessors. A block that gets no tile costs
// time too: most tests do with 16, and with the 2 of the small device that a check plays besides.
class Multiprocessors {
 public:
  explicit Multiprocessors(int count) { setenv("GG_EMU_MULTIPROCESSORS", std::to_string(count).c_str(), 1); }
  Multiprocessors(const Multiprocessors&) = delete;
  ~Multiprocessors() { unsetenv("GG_EMU_MULTIPROCESSORS"); }
};

class ChapterOnEmulator : public testing::TestWithParam<std::string> {};

// Words for the emulator; what was counted of the set that the words choose, by counter.
std::map<std::string, uint64_t> counted(const std::string& id, const Folder& folder, const Words& more) {
  const Outcome outcome =
      run_chapter(id, with({"--device", "emu", "--bench", "--counts-csv", folder.at("x.csv")}, more));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out.find("TFLOP/s"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("count  "), std::string::npos) << outcome.out;
  std::map<std::string, uint64_t> counts;
  std::istringstream lines(text_of(folder.at("x.csv")));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "chapter,set,order,counter,value");
  while (std::getline(lines, line)) {
    const size_t value = line.rfind(',') + 1, counter = line.rfind(',', value - 2) + 1;
    counts[line.substr(0, counter) + line.substr(counter, value - 1 - counter)] =
        std::stoull(line.substr(value));
  }
  return counts;
}

TEST_P(ChapterOnEmulator, GivesTheSameBitsInEveryOrder) {
  const int multiple = limit_of(GetParam(), "m_multiple");
  const std::string rows = wants_equal_groups(GetParam()) ? "128"
                           : multiple > 1                 ? std::to_string(multiple)
                                                          : "70";
  const Words problem = {"--groups", "3", "--m", rows, "--n", std::to_string(n_from(GetParam(), 136)),
                         "--k",      "96"};
  const Folder fair, skew, other;
  write_tensors(GetParam(), fair, with(problem, {"--device", "emu"}));
  write_counted_tensors(GetParam(), skew, with(problem, {"--order", "1:skew"}));
  write_counted_tensors(GetParam(), other, with(problem, {"--order", "2:skew"}));
  expect_same_files(fair, skew);
  expect_same_files(fair, other);
}

// Where --help names the values of an option, "i32|i64", all but the first; else that it is given.
std::vector<Words> wanted_of(const std::string& id, const std::string& option) {
  std::istringstream help(run_chapter(id, {"--help"}).out);
  std::vector<Words> wanted;
  for (std::string line; std::getline(help, line);) {
    std::istringstream words(line);
    std::string name, values;
    words >> name >> values;
    if (name != "--" + option) continue;
    const Words each = gg::split(values, '|');
    for (size_t i = 1; i < each.size(); ++i) wanted.push_back({name, each[i]});
    if (each.size() == 1) wanted.push_back({name});
  }
  EXPECT_FALSE(wanted.empty()) << id << " --help says nothing of --" << option;
  return wanted;
}

// A check without options runs the forms; here --help says what must be among them. What a schedule
// is printed with has tests of its own, and --tune needs a GPU.
TEST_P(ChapterOnEmulator, HasNoOptionThatIsNeverRun) {
  const std::vector<Words> run = forms_of(GetParam());
  for (const std::string& option : listed(GetParam(), "options")) {
    if (option == "print-schedule" || option == "tune") continue;
    if ((option == "tile" || option == "cluster") && listed(GetParam(), option + "s").size() == 1) continue;
    for (const Words& wanted : wanted_of(GetParam(), option)) {
      const bool found = std::any_of(run.begin(), run.end(), [&](const Words& words) {
        return std::search(words.begin(), words.end(), wanted.begin(), wanted.end()) != words.end();
      });
      EXPECT_TRUE(found) << wanted[0] << " " << wanted.back();
    }
  }
}

TEST_P(ChapterOnEmulator, WritesWholeFilesThatItReadsBackAndWritesAgain) {
  expect_whole_files(GetParam(), "emu");
}

TEST_P(ChapterOnEmulator, CountsInPlaceOfTimes) {
  const Folder folder;
  const gg::Shape set = gg::shape_set(wants_equal_groups(GetParam()) ? "smoke_uniform" : "smoke", {})[0];
  const std::string smoke = GetParam() + "," + set.set + ",0:fair,", own = GetParam() + ",own,3:skew,";
  const uint64_t m = uint64_t(set.m_total()), n = uint64_t(set.n[0]), k = uint64_t(set.k[0]),
                 not_empty = uint64_t(set.groups() - std::count(set.m.begin(), set.m.end(), 0));
  auto counts = counted(GetParam(), folder, {});
  EXPECT_EQ(counts[smoke + "useful_multiply_adds"], m * n * k);
  EXPECT_GE(counts[smoke + "multiply_adds"], counts[smoke + "useful_multiply_adds"]);
  EXPECT_GT(counts[smoke + "instructions"], 0u);
  // Every element of D, and of C, is stored once, each of A and B loaded at least once.
  const uint64_t d_n = is_described(GetParam(), "\"[M,N/2]\"") ? n / 2 : n,
                 c_n = has_tensor(GetParam(), "c") ? n : 0;
  const bool gradient = is_gradient(GetParam());  // B has rows, D an f32 matrix for each group
  EXPECT_GE(counts[smoke + "global_store_bytes"],
            gradient ? 4 * uint64_t(set.groups()) * k * n : 2 * m * (d_n + c_n));
  EXPECT_GE(counts[smoke + "global_load_bytes"], gradient ? 2 * m * (n + k) : 2 * (m + not_empty * n) * k);
  // A for two columns of tiles, B once; two offsets for each thread.
  if (GetParam() == "03_tensor_cores") {
    EXPECT_EQ(counts[smoke + "global_load_bytes"],
              uint64_t(2 * (2 * 86 * 128 + 3 * 128 * 256) + 8 * 128 * 2 * 4));
  }
  const size_t rows = counts.size();

  const SmallProblem problem = small_problem(GetParam());
  counts = counted(GetParam(), folder, with(problem.words(), {"--order", "3:skew"}));
  EXPECT_EQ(counts[own + "useful_multiply_adds"],
            uint64_t(problem.m_total) * uint64_t(problem.n * problem.k));
  EXPECT_EQ(counts.size(), 2 * rows) << "the rows before are kept";
  EXPECT_EQ(counted(GetParam(), folder, {}).size(), 2 * rows);
}

// The first line that a program writes to stderr, which is then ended: what it was asked
// for takes hours.
std::string first_complaint(const Words& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]), close(ends[1]);
    if (!std::freopen("/dev/null", "w", stdout)) _exit(126);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ends[1]);
  std::string line;
  for (char c = 0; c != '\n' && read(ends[0], &c, 1) == 1;) line += c;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  return line;
}

class ChapterOfEachKind : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Built, ChapterOfEachKind, testing::ValuesIn(one_of_each_kind()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ChapterOfEachKind);

TEST_P(ChapterOfEachKind, DoesNotCallFilesRandom) {
  const Folder folder;
  write_counted_tensors(GetParam(), folder, problem_of(GetParam()));
  const Outcome outcome = run_chapter(GetParam(), {"--device", "emu", "--check", "--in", folder.path});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("operands from files: "), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("random"), std::string::npos) << outcome.out;
}

TEST_P(ChapterOfEachKind, LeavesOutWhatNeedsAGpu) {
  const Folder folder;
  const Words words = with(problem_of(GetParam()), {"--device", "emu", "--csv", folder.at("x.csv")});
  const Outcome peers = run_chapter(GetParam(), with(words, {"--peer", "cublas_loop"}));
  std::string without_peers = GetParam() + ": --peer left out: libraries run on a GPU only\n";
  if (has_epilogue(GetParam())) {  // there is nothing to compare with
    EXPECT_EQ(peers.code, int(gg::Exit::bad_input)) << peers.out << peers.err;
    EXPECT_TRUE(one_line_with(peers.err, "--peer cublas_loop"));
    without_peers = "";
  }
  const Outcome outcome = has_epilogue(GetParam()) ? run_chapter(GetParam(), words) : peers;
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, without_peers + GetParam() +
                             ": --csv left out: the emulator counts (--counts-csv), it takes no times\n");
  EXPECT_EQ(outcome.out.find("TFLOP/s"), std::string::npos) << outcome.out;
  EXPECT_EQ(files_in(folder), Words{});
}

TEST_P(ChapterOfEachKind, NamesTheBytesItNeedsAndThoseThatAreFree) {
  const Outcome outcome = run_chapter(GetParam(), {"--device", "emu", "--check", "--groups", "512", "--m",
                                                   "4000000", "--n", "8192", "--k", "8192"});
  EXPECT_EQ(outcome.code, int(gg::Exit::no_memory)) << outcome.out << outcome.err;
  EXPECT_TRUE(one_line_with(outcome.err, " bytes"));
  EXPECT_TRUE(one_line_with(outcome.err, " are free"));
}

TEST_P(ChapterOfEachKind, SaysBeforehandThatABigProblemTakesLong) {
  // A check launches four times, one of an epilogue eight times.
  const bool eight = has_epilogue(GetParam());
  for (const auto& [half, size] :
       {std::pair{"--check", eight ? "92359.0" : "46179.5"}, std::pair{"--bench", "11544.9"}}) {
    const std::string line = first_complaint({program(GetParam()), "--device", "emu", half, "--groups", "8",
                                              "--m", "12288", "--n", "8192", "--k", "14336"});
    EXPECT_EQ(line.rfind(GetParam() + ": emulating " + size + " billion useful multiply-adds takes ", 0), 0u)
        << line;
    EXPECT_NE(line.find("; --set smoke"), std::string::npos) << line;
  }
}

// Problems of the set `random`, as many of the first ones as are small enough: empty groups and
// ragged ones, N and K that fill no tile. Forms take turns with the problems.
struct Drawn {
  std::string chapter;
  uint64_t seed;
};
void PrintTo(const Drawn& drawn, std::ostream* out) { *out << drawn.chapter << " " << drawn.seed; }

std::vector<gg::Shape> drawn_problems(const Drawn& drawn) {
  // An epilogue's check launches twice as often. Multiply-adds: groups rounded up to 256 rows.
  const bool twice = has_epilogue(drawn.chapter);
  const size_t problems = twice ? 3 : 6;
  const int64_t most = twice ? 50'000'000 : 100'000'000;
  gg::ShapeLimits limits;
  limits.n_multiple = limit_of(drawn.chapter, "n_multiple");
  limits.k_multiple = limit_of(drawn.chapter, "k_multiple");
  limits.pad_rows_to = limit_of(drawn.chapter, "m_multiple");
  limits.seed = drawn.seed;
  std::vector<gg::Shape> found;
  for (const gg::Shape& shape : gg::shape_set("random", limits)) {
    int64_t rows = 0;
    for (const int m : shape.m) rows += (m + 255) / 256 * 256;
    const bool mixed = std::count(shape.m.begin(), shape.m.end(), 0) > 0 && shape.groups() > 2 && rows > 256;
    if (mixed && rows * shape.n[0] * shape.k[0] <= most) found.push_back(shape);
    if (found.size() == problems) break;
  }
  EXPECT_EQ(found.size(), problems);
  return found;
}

class ChapterOnDrawnProblems : public testing::TestWithParam<Drawn> {};

TEST_P(ChapterOnDrawnProblems, IsRight) {
  const Multiprocessors few(16);
  const auto& [id, seed] = GetParam();
  const std::vector<Words> forms = forms_of(id);
  size_t turn = seed;
  for (const gg::Shape& shape : drawn_problems(GetParam())) {
    std::string m;
    for (const int rows : shape.m) m += (m.empty() ? "" : ",") + std::to_string(rows);
    const Words words = with({"--device", "emu", "--check", "--m", m, "--n", std::to_string(shape.n[0]),
                              "--k", std::to_string(shape.k[0]), "--seed", std::to_string(seed), "--order",
                              std::to_string(seed) + ":skew"},
                             forms[turn++ % forms.size()]);
    const Outcome outcome = run_chapter(id, words);
    EXPECT_EQ(outcome.code, 0) << shape.describe() << "\n" << outcome.out << outcome.err;
  }
}

std::vector<Drawn> drawn_for_blackwell() {
  std::vector<Drawn> all;
  for (const std::string& id : built_chapters()) {
    if (arch_of(id) == gg::Arch::sm_100a) all.push_back({id, all.size() % 3 + 1});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Blackwell, ChapterOnDrawnProblems, testing::ValuesIn(drawn_for_blackwell()),
                         [](const auto& info) {
                           return info.param.chapter + "_" + std::to_string(info.param.seed);
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ChapterOnDrawnProblems);

// The words for D in FP8 with block scales.
Words scaled_d(const std::string& id) {
  const Words words = {"--d-dtype", "e4m3", "--norm-const", "0.01"};
  return has_option(id, "format") ? with({"--format", "mxfp8"}, words) : words;
}

// Tiles are independent, a maximum has no order, and weights are the same wherever they lie.
TEST(ChaptersWithAnEpilogue, GiveTheSameBitsWhateverIsChosen) {
  const Multiprocessors few(16);
  for (const std::string& id : built_chapters()) {
    if (!has_epilogue(id)) continue;
    SCOPED_TRACE(id);
    const std::string n = std::to_string(n_from(id, 272));
    Words problem = {"--m", "512,0,256", "--n", n, "--k", "96"};
    if (has_option(id, "bias")) problem.push_back("--bias");
    const bool scales = has_option(id, "norm-const"), columns = has_option(id, "discrete-col-sfd");
    const bool gated = has_option(id, "act");
    Words same = with(problem, scales  ? scaled_d(id)
                               : gated ? Words{"--act", "geglu"}
                                       : Words{"--format", "mxfp8", "--d-dtype", "e4m3"});
    const bool chooses_tile = is_described(id, "\"chooses_tile\": true");
    const Words tiles = listed(id, "tiles");
    if (chooses_tile) same = with(same, {"--tile", tiles[0]});  // another choice may split K
    Words outputs = {"d.npy"};
    for (const std::string name : {"amax", "c", "dprob", "dbias"}) {
      if (has_tensor(id, name)) outputs.push_back(name + ".npy");
    }
    if (scales) outputs.push_back("sfd_row.npy");
    if (columns) outputs = with(outputs, {"d_col.npy", "sfd_col.npy"});
    const Folder pairs;
    write_tensors(id, pairs, with(same, {"--device", "emu"}));
    std::vector<Words> others = {{"--order", "1:skew"}};
    const bool narrow = std::find(tiles.begin(), tiles.end(), "128x64") != tiles.end();
    if (chooses_tile) others.push_back({"--tile", narrow ? "128x64" : tiles.back()});
    const bool other_tiles = std::find(tiles.begin(), tiles.end(), "128x256") != tiles.end() && !chooses_tile;
    if (other_tiles) others.push_back({"--tile", "128x256", "--cluster", "1x1"});
    if (has_option(id, "weights")) others.push_back({"--weights", "discrete"});
    if (has_option(id, "schedule")) {
      others.push_back({"--schedule", "dynamic", "--order", "2:skew"});
      if (other_tiles) others.push_back({"--schedule", "dynamic", "--tile", "128x256", "--cluster", "2x1"});
    }
    for (const Words& other : others) {
      const Folder folder;
      write_counted_tensors(id, folder, with(same, other));
      for (const std::string& name : outputs)
        EXPECT_EQ(text_of(pairs.at(name)), text_of(folder.at(name)))
            << name << " with " << other[0] << " " << other[1];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Built, ChapterOnEmulator, testing::ValuesIn(built_chapters()),
                         [](const auto& info) { return info.param; });

// A copy of a chapter in a build tree of its own, beside which lib/emu is as a test wants it.
class EmulatorLookup : public testing::Test {
 protected:
  EmulatorLookup() {
    for (const char* below : {"bin", "lib/emu"}) std::filesystem::create_directories(folder_.at(below));
    std::filesystem::copy_file(program(built_chapters()[0]), copy_);
  }
  const Folder folder_;
  const std::string tree_ = std::filesystem::canonical(folder_.path), copy_ = tree_ + "/bin/copy",
                    runtime_ = tree_ + "/lib/emu/libcudart.so.13";
  const Words words_ = with({copy_, "--device", "emu", "--check"}, problem_of(built_chapters()[0]));
};

TEST_F(EmulatorLookup, NamesAMissingOne) {
  const Outcome outcome = run(words_);
  EXPECT_EQ(outcome.code, int(gg::Exit::no_device)) << outcome.out;
  EXPECT_TRUE(one_line_with(outcome.err, "there is no " + runtime_));
}

TEST_F(EmulatorLookup, StartsOnceWhereAnotherRuntimeIsThere) {
  std::filesystem::copy_file(GG_CUDART, runtime_);
  const Outcome outcome = run(words_);
  EXPECT_EQ(outcome.code, int(gg::Exit::device_error)) << outcome.out;
  EXPECT_TRUE(one_line_with(outcome.err, "its CUDA runtime is " + runtime_ + ", which is not"));
}

TEST_F(EmulatorLookup, NeedsNothingButTheLibrary) {
  std::filesystem::copy_file(GG_BINARY_DIR "/lib/emu/libcudart.so.13", runtime_);
  const Outcome outcome = run(words_);
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

// A program that was linked with a DT_RPATH finds its own runtime before the emulator's.
TEST_F(EmulatorLookup, NamesTheRuntimeThatCameFirst) {
  const Outcome outcome = run(with({"/usr/bin/env", "GG_EMU_RESTARTED=1"}, words_));
  EXPECT_EQ(outcome.code, int(gg::Exit::device_error)) << outcome.out;
  EXPECT_TRUE(one_line_with(outcome.err, "DT_RPATH"));
}

// `cmake --build build` in a copy of a built clone builds the sources of the original, and a
// mistake in the copy's own would pass. What is no build tree, or is the same one by another name,
// is not refused.
TEST_F(EmulatorLookup, RefusesToRunInACopyOfTheBuildTree) {
  std::filesystem::copy_file(GG_BINARY_DIR "/lib/emu/libcudart.so.13", runtime_);
  testing_gg::write_text(folder_.at("CMakeCache.txt"), "");
  const Outcome outcome = run(words_);
  EXPECT_EQ(outcome.code, int(gg::Exit::bad_input)) << outcome.out;
  EXPECT_TRUE(one_line_with(outcome.err, "not run: it lies in " + tree_ + ", a copy of the build tree "));
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(gg::copied_tree_problem(folder_.at("moved_away")), "") << "the original is gone";
  std::filesystem::create_directory_symlink(GG_BINARY_DIR, folder_.at("link"));
  EXPECT_EQ(gg::copied_tree_problem(folder_.at("link")), "") << "the same tree";
  EXPECT_NE(gg::copied_tree_problem(folder_.path), "");
}

TEST_F(EmulatorLookup, TakesTheOrderOfGgEmu) {
  const Words emulated =
      with({program(built_chapters()[0]), "--device", "emu", "--check"}, problem_of(built_chapters()[0]));
  const Words in_order = with({"/usr/bin/env", "GG_EMU_ORDER=3:skew"}, emulated);
  EXPECT_NE(run(in_order).out.find("order 3:skew"), std::string::npos);
  EXPECT_NE(run(with(in_order, {"--order", "4"})).out.find("order 4:fair"), std::string::npos);
}

TEST_F(EmulatorLookup, PlaysASmallDeviceInTheCheckAlone) {
  const Words emulated =
      with({program(built_chapters()[0]), "--device", "emu"}, problem_of(built_chapters()[0]));
  const auto first_line = [](const Words& words) {
    const std::string out = run(words).out;
    return out.substr(0, out.find('\n'));
  };
  EXPECT_NE(first_line(with(emulated, {"--check"})).find(") with 132, 16 and 2 multiprocessors, order"),
            std::string::npos);
  EXPECT_EQ(first_line(with(emulated, {"--bench"})).find("multiprocessors"), std::string::npos);
  const Words on_two = with({"/usr/bin/env", "GG_EMU_MULTIPROCESSORS=2"}, emulated);
  EXPECT_NE(first_line(with(on_two, {"--check"})).find(") with 2 multiprocessors, order"), std::string::npos);
}

TEST_F(EmulatorLookup, IsNoGpu) {
  const Outcome outcome = run({"/usr/bin/env", "LD_LIBRARY_PATH=" GG_BINARY_DIR "/lib/emu",
                               program(built_chapters()[0]), "--device", "gpu"});
  EXPECT_EQ(outcome.code, int(gg::Exit::no_device)) << outcome.out;
  EXPECT_TRUE(one_line_with(outcome.err, "started on the emulator"));
}

}  // namespace
}  // namespace testing_gg
