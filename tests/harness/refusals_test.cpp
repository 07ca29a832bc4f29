// SPDX-License-Identifier: MIT
//
// Refusals that no chapter's tables reach, each with its whole sentence and exit code 2; and
// limits at the last number that is accepted and the first that is not, products of two
// numbers among them.

#include <gtest/gtest.h>

#include "common/harness/base/npy.h"
#include "common/harness/run/options.h"
#include "common/harness/verify/problem_files.h"
#include "tests/process.h"

namespace gg {
namespace {

using testing_gg::error_of;
using testing_gg::Folder;

const std::vector<Formats> kBf16 = {{Format::bf16, Format::bf16, Format::bf16}};

Chapter limited() {
  return {.id = "x_limited",
          .most_n = 96,
          .most_m = 50,
          .most_b_rows = 1000,
          .sets = {"smoke"},
          .options = {"offsets"},
          .own_sizes = OwnSizes::when_listed};
}

// The sentence that refuses a call, or "accepted".
template <class Call>
std::string refusal_of(const Call& call) {
  const auto error = error_of(call);
  if (!error) return "accepted";
  EXPECT_EQ(error->code, Exit::bad_input) << error->what();
  return error->what();
}
std::string refusal_of_shape(const Shape& shape, const Chapter& chapter = limited()) {
  return refusal_of([&] { refuse_unsupported(shape, chapter); });
}
std::string refusal_of_words(std::vector<std::string> words) {
  words.insert(words.begin(), "x_limited");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return refusal_of([&] { parse_options(int(argv.size()), argv.data(), limited(), kBf16); });
}

TEST(LimitsOfAProblem, AreTheLastNumbersThatAreAccepted) {
  EXPECT_EQ(refusal_of_shape({{}, {8}, {8}}), "no groups: at least one is wanted: give the rows of one");
  EXPECT_EQ(refusal_of_shape({{50}, {96}, {8}}), "accepted");
  EXPECT_EQ(refusal_of_shape({{50}, {97}, {8}}),
            "N=97: the grid of x_limited covers at most 96 columns: split N");
  EXPECT_EQ(refusal_of_shape({{1, 51}, {96}, {8}}),
            "M=51 of group 1: the grid of x_limited covers at most 50 rows: split the group");
  EXPECT_EQ(refusal_of_shape({{1}, {0}, {8}}), "N=0: at least 1 is wanted: give 1 or more");
  EXPECT_EQ(refusal_of_shape({{1}, {8}, {0}}), "K=0: at least 1 is wanted: give 1 or more");
}

// The rows of B are groups times K: each number alone is small.
TEST(LimitsOfAProblem, CountGroupsTimesK) {
  const auto of = [](int groups, int k) {
    return refusal_of_shape({std::vector<int>(size_t(groups), 1), {8}, {k}});
  };
  EXPECT_EQ(of(1, 1000), "accepted");
  EXPECT_EQ(of(8, 125), "accepted");
  EXPECT_EQ(of(1000, 1), "accepted");
  EXPECT_EQ(of(8, 126),
            "8 groups of K=126: the tensor map of x_limited counts at most 1000 rows of B: split the problem "
            "into several");
  EXPECT_EQ(
      of(1, 1001),
      "1 groups of K=1001: the tensor map of x_limited counts at most 1000 rows of B: split the problem "
      "into several");
  Chapter far = limited();
  far.most_b_rows = INT32_MAX;
  EXPECT_EQ(refusal_of_shape({std::vector<int>(4096, 1), {8}, {524287}}, far), "accepted");
  EXPECT_EQ(refusal_of_shape({std::vector<int>(4096, 1), {8}, {524288}}, far),
            "4096 groups of K=524288: the tensor map of x_limited counts at most 2147483647 rows of B: split "
            "the problem into several");
}

TEST(LimitsOfAProblem, CountGroupsAndTheRowsOfAllOfThem) {
  const Chapter plain = {.id = "x_plain"};
  Chapter quant = plain;
  quant.epilogue.op = Operator::quant;
  const auto groups = [](const Chapter& chapter, int count) {
    return refusal_of_shape({std::vector<int>(size_t(count), 1), {8}, {8}}, chapter);
  };
  EXPECT_EQ(groups(plain, 4096), "accepted");
  EXPECT_EQ(groups(plain, 4097), "4097 groups: at most 4096 are accepted: split the problem into several");
  EXPECT_EQ(groups(quant, 1024), "accepted");
  EXPECT_EQ(groups(quant, 1025), "1025 groups: at most 1024 are accepted: split the problem into several");
  EXPECT_EQ(refusal_of_shape({{2147483000, 391}, {8}, {8}}, plain), "accepted");
  EXPECT_EQ(refusal_of_shape({{2147483000, 392}, {8}, {8}}, plain),
            "2147483392 rows in all: at most 2147483391 are accepted (rows are counted in int32): split the "
            "problem into several");
}

// Each with its whole sentence: a chapter's tables ask only for a part of it.
TEST(CommandLine, IsRefusedInWholeSentences) {
  const auto sizes = [](const char* m, const char* n, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--m", m, "--n", n, "--k", "8"});
    return more;
  };
  const std::pair<std::vector<std::string>, const char*> all[] = {
      {{"--frobnicate"}, "--frobnicate: x_limited has no such option; --help lists them"},
      {{"smoke"}, "smoke: x_limited has no such option; --help lists them"},
      {{"--m"}, "--m wants a value: LIST"},
      {sizes("1e3", "8"), "--m 1e3: not a whole number: give one"},
      {sizes("1", "0"), "--n 0: must lie between 1 and 2147483647: give one of these"},
      {{"--device", "tpu"}, "--device tpu: auto, gpu or emu are accepted"},
      {{"--order", "1:slow"}, "--order 1:slow: S, S:fair or S:skew are accepted"},
      {{"--offsets", "i16"}, "--offsets i16: i32 or i64 are accepted"},
      {sizes("1", "8", {"--set", "smoke"}),
       "--set and --m/--n/--k/--groups exclude each other: give one or the other"},
      {sizes("1", "8", {"--in", "."}), "--in brings its own sizes: leave out --m, --n, --k and --groups"},
      {{"--in", ".", "--set", "smoke"}, "--in is one problem of its own: leave out --set"},
      {{"--m", "1"}, "one problem wants all of --m, --n and --k: give all three"},
      {sizes("1,2", "8", {"--groups", "3"}), "--groups 3 wants one number for --m, not 2: give one"},
      {sizes("1,2", "8,16,24"),
       "--m lists 2 groups but --n or --k lists 3: give one number, or one for each group"},
  };
  for (const auto& [words, sentence] : all) EXPECT_EQ(refusal_of_words(words), sentence);
}

TEST(CommandLine, WantsNamesOfFilesAndFolders) {
  for (const char* option : {"--csv", "--counts-csv", "--in", "--out"}) {
    EXPECT_EQ(refusal_of_words({option, ""}),
              "\"\" is no name: --csv, --counts-csv, --in and --out want that of a file or a folder")
        << option;
  }
}

TEST(CommandLine, TakesNoTimesOfOperandsFromFiles) {
  EXPECT_EQ(refusal_of_words({"--in", ".", "--bench"}),
            "--in is checked, not timed: leave out --bench and --tune");
  EXPECT_EQ(refusal_of_words({"--in", ".", "--check"}), "accepted");
}

// ---- files ----

void put(const Folder& folder, const char* name, const char* type, const std::vector<int64_t>& shape) {
  int64_t bytes = type[2] - '0';
  for (const int64_t extent : shape) bytes *= extent;
  const std::vector<char> zeros(static_cast<size_t>(bytes));
  write_npy(folder.at(name), type, shape, zeros.data(), zeros.size());
}
std::string refusal_of_files(const Folder& folder, const Setup& setup = {},
                             const Chapter& chapter = limited()) {
  return refusal_of([&] { read_operands(folder.path, setup, chapter, false); });
}

// A matrix without rows has any number of columns, and no data.
TEST(FilesOfOperands, HaveExtentsOf32Bits) {
  const Folder folder;
  put(folder, "a.npy", "<u2", {0, int64_t(1) << 31});
  put(folder, "b.npy", "<u2", {1, int64_t(1) << 31, 0});
  put(folder, "offsets.npy", "<i4", {2});
  EXPECT_EQ(
      refusal_of_files(folder),
      folder.at("a.npy") + ": has shape [0, 2147483648], extents are at most 2147483647: split the problem");
  gg::Setup fp4;
  fp4.request.formats = {Format::e2m1, Format::e2m1, Format::bf16, BlockFormat::mxfp4};
  fp4.request.b_layout = BLayout::nk;
  put(folder, "a.npy", "|u1", {0, int64_t(1) << 30});
  put(folder, "b.npy", "|u1", {1, 0, int64_t(1) << 30});
  put(folder, "offsets.npy", "<i4", {1});
  EXPECT_EQ(refusal_of_files(folder, fp4),
            folder.at("a.npy") +
                ": 1073741824 bytes to a row, extents are at most 2147483647 elements: split the "
                "problem");
}

TEST(FilesOfOperands, HaveOffsetsOfTheRowsOfA) {
  const Folder folder;
  put(folder, "a.npy", "<u2", {5, 8});
  put(folder, "b.npy", "<u2", {2, 8, 8});
  const std::string file = folder.at("offsets.npy");
  const auto with = [&](const std::vector<int64_t>& offsets) {
    write_npy(file, "<i8", {int64_t(offsets.size())}, offsets.data(), offsets.size() * sizeof(int64_t));
    const std::string said = refusal_of_files(folder);
    return said.rfind(file, 0) == 0 ? said.substr(file.size()) : said;
  };
  EXPECT_EQ(with({0, 2, 5}), "accepted");
  EXPECT_EQ(
      with({0}),
      ": has shape [1], [G+1] with at least one group is wanted: give each group's first row, and the number "
      "of rows");
  EXPECT_EQ(with(std::vector<int64_t>(4098)),
            ": 4097 groups: at most 4096 are accepted: split the problem into several");
  EXPECT_EQ(with({1, 2, 5}),
            ": offset 0 is 1, it must be 0: give [G+1], each group's first row and the number of rows");
  EXPECT_EQ(with({0, -2, 5}), ": offset 1 is -2, negative: give rows counted from 0");
  EXPECT_EQ(with({0, 4, 3}), ": offset 2 is 3, less than the 4 before it: give rows that never decrease");
  EXPECT_EQ(
      with({0, 4294967298, 4294967301}),
      ": offset 1 is 4294967298, rows are counted in int32 (at most 2147483647): split the problem into "
      "several");
  EXPECT_EQ(with({0, 2, 6}), ": offset 2 is 6, but A has only 5 rows: give A more, or the offsets less");
  put(folder, "offsets.npy", "<f4", {3});
  EXPECT_EQ(refusal_of_files(folder), file + ": has type '<f4', offsets are '<i4' or '<i8': convert it");
}

TEST(FilesOfOperands, AreInAFolderThatIsThere) {
  const Folder folder;
  put(folder, "a.npy", "<u2", {5, 8});
  const auto in = [](const std::string& path) {
    return refusal_of([&] { read_operands(path, {}, limited(), false); });
  };
  EXPECT_EQ(in(folder.at("a.npy")),
            folder.at("a.npy") + ": is a file, a folder is wanted: name the folder that holds the operands");
  EXPECT_EQ(in(folder.at("none")),
            folder.at("none") + ": there is no such folder: name the folder that holds the operands");
}

TEST(FilesOfOperands, OfTwoKindsExcludeEachOther) {
  const Folder folder;
  put(folder, "a.npy", "<u2", {4, 8});
  put(folder, "a_00000.npy", "<u2", {4, 8});
  EXPECT_EQ(refusal_of_files(folder),
            folder.path +
                ": holds a.npy, for packed rows, and a_00000.npy, for groups of their own sizes: "
                "remove one");
}

TEST(FilesOfOperands, HoldABiasOnlyWhereTheChapterAddsOne) {
  const Folder folder;
  put(folder, "a.npy", "<u2", {4, 8});
  put(folder, "b.npy", "<u2", {1, 8, 8});
  put(folder, "alpha.npy", "<f4", {1});
  put(folder, "prob.npy", "<f4", {4});
  put(folder, "bias.npy", "<u2", {1, 8});
  const int32_t offsets[] = {0, 4};
  write_npy(folder.at("offsets.npy"), "<i4", {2}, offsets, sizeof offsets);
  Chapter chapter = {.id = "x_limited", .epilogue = {.op = Operator::quant, .d_types = {Format::bf16}}};
  gg::Setup setup;
  setup.request.epilogue.op = Operator::quant;
  EXPECT_EQ(refusal_of_files(folder, setup, chapter),
            folder.at("bias.npy") + ": x_limited has no bias: remove the file");
}

}  // namespace
}  // namespace gg
