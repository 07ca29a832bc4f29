// SPDX-License-Identifier: MIT
//
// A chapter refuses bad input with exit code 2 and one sentence that names the offending number or
// file, before any device is touched. A machine without a GPU gets the same answers.

#include "tests/chapters/bad_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "common/harness/base/npy.h"
#include "common/harness/run/device.h"

namespace testing_gg {
namespace {

// The first chapter of this build that takes packed rows only; the chapters without differences are
// represented by it.
std::string packed_chapter() {
  for (const std::string& id : built_chapters()) {
    const Words tensors = texts_of(id, "name");
    if (tensors[0] == "a" && !wants_equal_groups(id) && !has_block_scales(id)) return id;
  }
  return "";
}

template <class T>
void write_tensor(const std::string& path, const char* type, const std::vector<int64_t>& shape,
                  const std::vector<T>& values) {
  gg::write_npy(path, type, shape, values.data(), values.size() * sizeof(T));
}
// A tensor of bf16 ones.
void write_ones(const std::string& path, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  write_tensor(path, "<u2", shape, std::vector<uint16_t>(size_t(count), 0x3F80));
}
void write_offsets(const Folder& folder, const std::vector<int32_t>& offsets) {
  write_tensor(folder.at("offsets.npy"), "<i4", {int64_t(offsets.size())}, offsets);
}
void write_wide_offsets(const Folder& folder, const std::vector<int64_t>& offsets) {
  write_tensor(folder.at("offsets.npy"), "<i8", {int64_t(offsets.size())}, offsets);
}

// Two groups of 2 and 3 rows, or of 64 where they must be equal, N = 8, K = 16.
void write_operands(const Folder& folder, const std::string& chapter) {
  if (chapter == "04_persistent") {
    write_ones(folder.at("a_00000.npy"), {2, 16});
    write_ones(folder.at("b_00000.npy"), {16, 8});
    write_ones(folder.at("a_00001.npy"), {3, 16});
    write_ones(folder.at("b_00001.npy"), {16, 8});
  } else {
    const Words layouts = listed(chapter, "b_layouts");
    const bool nk = !layouts.empty() && layouts[0] == "nk", equal = wants_equal_groups(chapter);
    write_ones(folder.at("a.npy"), {equal ? 128 : 5, 16});
    write_ones(folder.at("b.npy"), is_gradient(chapter) ? std::vector<int64_t>{5, 8}
                                   : nk                 ? std::vector<int64_t>{2, 8, 16}
                                                        : std::vector<int64_t>{2, 16, 8});
    write_offsets(folder, equal ? std::vector<int32_t>{0, 64, 128} : std::vector<int32_t>{0, 2, 5});
  }
}

std::vector<Bad> of_command_line() {
  const std::string id = packed_chapter();
  return {
      {"UnknownOption", id, {"--frobnicate"}, "--frobnicate"},
      {"NoOption", id, {"smoke"}, "smoke"},
      {"OptionOfAnotherChapter", id, {"--epilogue", "glu"}, "--epilogue"},
      {"UnknownSet", id, {"--set", "smoke,nope"}, "--set nope"},
      {"EmptySet", id, {"--set", ""}, "no such shape set"},
      {"MissingValue", id, {"--check", "--n"}, "--n"},
      {"NotANumber", id, {"--m", "5", "--n", "12x", "--k", "8"}, "--n 12x"},
      {"NotAWholeNumber", id, {"--m", "5", "--n", "8", "--k", "1e3"}, "--k 1e3"},
      {"EmptyListEntry", id, {"--m", "5,,6", "--n", "8", "--k", "8"}, "--m"},
      {"TrailingComma", id, {"--m", "5,", "--n", "8", "--k", "8"}, "--m"},
      {"NegativeRows", id, {"--m", "8,-3", "--n", "8", "--k", "8"}, "--m -3"},
      {"ZeroN", id, {"--m", "8", "--n", "0", "--k", "8"}, "--n 0"},
      {"ZeroK", id, {"--m", "8", "--n", "8", "--k", "0"}, "--k 0"},
      {"BeyondInt32", id, {"--m", "8", "--n", "2147483648", "--k", "8"}, "2147483648"},
      {"BeyondInt64", id, {"--m", "99999999999999999999", "--n", "8", "--k", "8"}, "99999999999999999999"},
      {"TooManyRows", id, {"--m", "2147483647,2147483647", "--n", "8", "--k", "8"}, "4294967294 rows"},
      {"TooManyGroupsListed", id, {"--m", many("1", 5000), "--n", "8", "--k", "8"}, "5000 groups"},
      {"TooManyGroups", id, {"--groups", "5000", "--m", "1", "--n", "8", "--k", "8"}, "--groups 5000"},
      {"NoGroups", id, {"--groups", "0", "--m", "1", "--n", "8", "--k", "8"}, "--groups 0"},
      {"GroupsWithAList", id, {"--groups", "3", "--m", "1,2", "--n", "8", "--k", "8"}, "not 2"},
      {"GroupsAlone", id, {"--groups", "3"}, "--m, --n and --k"},
      {"RowsAlone", id, {"--m", "3"}, "--m, --n and --k"},
      {"SetAndSizes", id, {"--set", "smoke", "--m", "1", "--n", "8", "--k", "8"}, "--set"},
      {"ListOfN", id, {"--m", "1,2", "--n", "8,16", "--k", "8"}, "one N and one K"},
      {"UnknownDevice", id, {"--device", "tpu"}, "--device tpu"},
      {"UnknownType", id, {"--in-dtype", "e4m3"}, "e4m3"},
      {"UnknownOutputType", id, {"--d-dtype", "e4m3"}, "e4m3"},
      {"UnknownPeer", id, {"--peer", "cublas_loop,cublas_magic"}, "cublas_magic"},
      {"NegativeSeed", id, {"--seed", "-1"}, "--seed -1"},
      {"UnknownOrder", id, {"--order", "1:slow"}, "--order 1:slow"},
      {"OrderWithoutASeed", id, {"--order", "fair"}, "--order fair"},
      {"OutOfManyProblems", id, {"--out", "{}"}, "--out wants exactly one problem"},
      {"OutToAMissingFolder",
       id,
       {"--m", "1", "--n", "8", "--k", "8", "--out", "{}/none"},
       "/none: there is no such folder"},
      {"InFromAMissingFolder",
       id,
       {"--in", "{}/none"},
       "/none: there is no such folder: name the folder that holds the operands"},
      {"InFromAFile", id, {"--in", "{}/a.npy"}, "a.npy: is a file, a folder is wanted"},
      {"InWithSizes", id, {"--in", "{}", "--m", "1", "--n", "8", "--k", "8"}, "--in"},
      {"InWithASet", id, {"--in", "{}", "--set", "smoke"}, "--in"},
  };
}

std::vector<Bad> of_files(const std::string& id) {
  const auto with = [&](const char* name, const char* says, std::function<void(const Folder&)> spoil) {
    return Bad{name, id, {"--in", "{}", "--check"}, says, std::move(spoil)};
  };
  const auto offsets = [&](const char* name, const std::vector<int32_t>& values, const char* says) {
    return with(name, says, [values](const Folder& folder) { write_offsets(folder, values); });
  };
  const auto shape = [&](const char* name, const char* file, const std::vector<int64_t>& extents,
                         const char* says) {
    return with(name, says, [=](const Folder& folder) { write_ones(folder.at(file), extents); });
  };
  const auto missing = [&](const char* name, const char* file) {
    return with(name, file, [=](const Folder& folder) { std::filesystem::remove(folder.at(file)); });
  };
  return {
      missing("MissingA", "a.npy"),
      missing("MissingB", "b.npy"),
      missing("MissingOffsets", "offsets.npy"),
      with("Malformed", "a.npy: is not a .npy file",
           [](const Folder& folder) { write_text(folder.at("a.npy"), "rows and columns"); }),
      with("Truncated", "b.npy: holds 511 bytes",
           [](const Folder& folder) {
             const std::string whole = text_of(folder.at("b.npy"));
             write_text(folder.at("b.npy"), whole.substr(0, whole.size() - 1));
           }),
      with("WrongType", "b.npy: has type '<f4'",
           [](const Folder& folder) {
             write_tensor(folder.at("b.npy"), "<f4", {2, 16, 8}, std::vector<float>(256));
           }),
      with("OffsetsOfFloats", "offsets.npy: has type '<f4'",
           [](const Folder& folder) {
             write_tensor(folder.at("offsets.npy"), "<f4", {3}, std::vector<float>{0, 2, 5});
           }),
      shape("FlatA", "a.npy", {80}, "a.npy: has shape [80]"),
      shape("FlatB", "b.npy", {32, 8}, "b.npy: has shape [32, 8]"),
      shape("OtherK", "b.npy", {2, 24, 8}, "[2, 24, 8]"),
      shape("OtherGroups", "b.npy", {3, 16, 8}, "b.npy: has shape [3, 16, 8]"),
      shape("ZeroNInB", "b.npy", {2, 16, 0}, "N=0"),
      with("ZeroKInBoth", "K=0",
           [](const Folder& folder) {
             write_ones(folder.at("a.npy"), {5, 0});
             write_ones(folder.at("b.npy"), {2, 0, 8});
           }),
      with("OffsetsOfTwoDimensions", "offsets.npy: has shape [1, 3]",
           [](const Folder& folder) {
             write_tensor(folder.at("offsets.npy"), "<i4", {1, 3}, std::vector<int32_t>{0, 2, 5});
           }),
      offsets("OffsetsOfNoGroup", {0}, "offsets.npy: has shape [1]"),
      offsets("OffsetsStartLate", {1, 2, 5}, "offset 0 is 1"),
      offsets("OffsetsNegative", {0, -2, 5}, "offset 1 is -2"),
      offsets("OffsetsDecrease", {0, 4, 3}, "offset 2 is 3"),
      offsets("OffsetsBeyondA", {0, 2, 6}, "offset 2 is 6"),
      offsets("OffsetsOf5000Groups", std::vector<int32_t>(5001), "5000 groups"),
      with("OffsetsBeyondInt32", "offset 1 is 4294967298",
           [](const Folder& folder) {
             write_wide_offsets(folder, {0, 4294967298, 4294967301});
           }),
      with("WideOffsetsNegative", "offset 2 is -9223372036854775808",
           [](const Folder& folder) {
             write_wide_offsets(folder, {0, 2, INT64_MIN});
           }),
  };
}

std::vector<Bad> of_single_chapters() {
  const auto equal = [](const char* m, const char* k, const Words& more = {}) {
    return with({"--groups", "2", "--m", m, "--n", "64", "--k", k}, more);
  };
  std::vector<Bad> all = {
      {"TheSetIsTooLarge", "01_naive", {"--set", "huge"}, "--set huge"},
      {"NoTileToChoose", "01_naive", {"--tile", "64x64"}, "--tile"},
      {"NoTileOfKToChoose", "01_naive", {"--tile-k", "16"}, "--tile-k: 01_naive has no such option"},
      {"NoIdeaToSwitchOff", "02_tiled", {"--off", "all"}, "--off: 02_tiled has no such option"},
      {"NoLayoutOfBToChoose", "03_tensor_cores", {"--b-layout", "nk"}, "--b-layout: 03_tensor_cores has no"},
      {"KIsNoMultiple", "03_tensor_cores", {"--m", "5", "--n", "64", "--k", "100"}, "pad to 104"},
      {"NIsNoMultiple", "03_tensor_cores", {"--m", "5", "--n", "12", "--k", "64"}, "pad to 16"},
      {"KOfAFileIsNoMultiple",
       "03_tensor_cores",
       {"--in", "{}"},
       "K=12",
       [](const Folder& folder) {
         write_ones(folder.at("a.npy"), {5, 12});
         write_ones(folder.at("b.npy"), {2, 12, 8});
       }},
      {"NoFloats", "03_tensor_cores", {"--in-dtype", "f32"}, "f32"},
      {"ListsDiffer", "04_persistent", {"--m", "8,16", "--n", "8,16,24", "--k", "8"}, "3"},
      {"ZeroNInAList", "04_persistent", {"--m", "8,16", "--n", "8,0", "--k", "8"}, "--n 0"},
      {"UnknownTile", "04_persistent", {"--tile", "7x9"}, "7x9"},
      {"ZeroBlocks", "04_persistent", {"--blocks", "0"}, "--blocks 0"},
      {"NoFirstGroup",
       "04_persistent",
       {"--in", "{}"},
       "a_00000.npy",
       [](const Folder& folder) { std::filesystem::remove(folder.at("a_00000.npy")); }},
      {"HalfAGroup",
       "04_persistent",
       {"--in", "{}"},
       "b_00001.npy",
       [](const Folder& folder) { std::filesystem::remove(folder.at("b_00001.npy")); }},
      {"OtherKInOneGroup",
       "04_persistent",
       {"--in", "{}"},
       "b_00001.npy has [24, 8]",
       [](const Folder& folder) {
         write_ones(folder.at("b_00001.npy"), {24, 8});
       }},
      {"TuneOnTheEmulator", "05b_jagged_persistent", {"--tune", "--device", "emu"}, "--tune"},
      {"MIsNoMultiple", "06b_wgmma_multi_k", equal("70", "64"),
       "M=70 of group 0: 06b_wgmma_multi_k wants multiples of 64 (one WGMMA computes 64 rows and multiples "
       "of 8 columns, 16 steps of k at a time): round up to 128"},
      {"RowsDiffer", "06b_wgmma_multi_k", {"--m", "64,128", "--n", "8", "--k", "16"}, "group 1 has 128 rows"},
      {"KIsNoMultipleOfItsTile", "06b_wgmma_multi_k", equal("64", "80", {"--tile-k", "64"}), "K=80"},
      {"UnknownTileOfK",
       "06b_wgmma_multi_k",
       {"--tile-k", "32"},
       "--tile-k 32: 06b_wgmma_multi_k has 16, 64"},
      {"SetOfJaggedGroups", "06b_wgmma_multi_k", {"--set", "smoke"}, "--set smoke"},
      {"UnknownIdea", "07l_peak_hopper", {"--off", "magic"}, "--off magic: 07l_peak_hopper has "},
      {"UnknownLayoutOfB",
       "07l_peak_hopper",
       {"--b-layout", "mn"},
       "--b-layout mn: 07l_peak_hopper has nk, kn"},
      {"UnknownOffsets", "05a_jagged", {"--offsets", "i16"}, "--offsets i16"},
      {"SharedBWithOnePerGroup", "05a_jagged", {"--in", "{}", "--shared-b"}, "b.npy: has shape [2, 16, 8]"},
  };
  all.erase(std::remove_if(all.begin(), all.end(), [](const Bad& bad) { return !is_built(bad.chapter); }),
            all.end());
  return all;
}

class BadInput : public testing::TestWithParam<Bad> {};

TEST_P(BadInput, IsRefusedInOneSentence) {
  const Folder folder;
  write_operands(folder, GetParam().chapter);
  expect_refused(GetParam(), folder);
}

std::vector<Bad> all_bad() {
  std::vector<Bad> all = of_single_chapters();
  const auto add = [&](std::vector<Bad> more) { all.insert(all.end(), more.begin(), more.end()); };
  const std::string packed = packed_chapter(), jagged = "05a_jagged";
  if (packed.empty()) return all;
  add(of_command_line());
  add(of_files(packed));
  if (is_built(jagged) && packed != jagged) add(of_files(jagged));
  return all;
}
INSTANTIATE_TEST_SUITE_P(Chapter, BadInput, testing::ValuesIn(all_bad()),
                         [](const auto& info) { return info.param.chapter + "_" + info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BadInput);  // of chapters that are all left out

// The operands above are spoilt in one thing each; whole, no chapter refuses them.
class GoodInput : public testing::TestWithParam<std::string> {};

TEST_P(GoodInput, IsNotRefused) {
  const Folder folder;
  // Tensors besides A, B and offsets.
  const bool has_more = has_block_scales(GetParam()) || has_epilogue(GetParam());
  if (has_more) {  // its own program makes them
    run_in(folder, GetParam(), with(problem_of(GetParam()), {"--check", "--out", "{}"}));
  } else {
    write_operands(folder, GetParam());
  }
  const auto accepted = [&] { expect_accepted(GetParam(), folder, {"--in", "{}", "--check"}); };
  accepted();
  if (GetParam() == "04_persistent" || has_more) return;
  const int32_t rows = wants_equal_groups(GetParam()) ? 64 : 2;
  write_wide_offsets(folder, {0, rows, 2 * rows});
  accepted();
  write_offsets(folder, {0, 0, rows == 64 ? 0 : 3});  // A may have more rows than the groups
  accepted();
}
INSTANTIATE_TEST_SUITE_P(Built, GoodInput, testing::ValuesIn(built_chapters()),
                         [](const auto& info) { return info.param; });

TEST(Csv, AnotherHeaderIsRefusedBeforeAnyWork) {
  const Folder folder;
  write_text(folder.at("x.csv"), "chapter,speed\n01,fast\n");
  for (const std::string option : {"--csv", "--counts-csv"}) {
    const Outcome outcome = run_in(folder, built_chapters()[0], {"--check", option, "{}/x.csv"});
    EXPECT_EQ(outcome.code, int(gg::Exit::bad_input));
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(one_line_with(outcome.err, folder.at("x.csv")));
    EXPECT_EQ(text_of(folder.at("x.csv")), "chapter,speed\n01,fast\n");
  }
}

TEST(Csv, AnUnwritablePlaceIsNamedBeforeAnyWork) {
  const Folder folder;
  for (const std::string place : {"{}/none/x.csv", "{}", "/dev/null"}) {
    for (const std::string option : {"--csv", "--counts-csv"}) {
      const Outcome outcome = run_in(folder, built_chapters()[0], {"--check", option, place});
      EXPECT_EQ(outcome.code, int(gg::Exit::cannot_write));
      EXPECT_EQ(outcome.out, "");
      EXPECT_TRUE(one_line_with(outcome.err, ""));
    }
  }
}

class WithoutAGpu : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (gg::why_not_on_gpu({}).empty()) GTEST_SKIP() << "here is a GPU";
  }
};

TEST_P(WithoutAGpu, SaysSoInOneLineAndEndsWith77) {
  std::vector<std::vector<std::string>> all = {{}};
  if (GetParam() != "gg-roof") all = {{"--device", "gpu"}, {"--device", "gpu", "--bench"}};
  for (const std::vector<std::string>& arguments : all) {
    const Folder folder;
    const Outcome outcome = run_in(folder, GetParam(), arguments);
    EXPECT_EQ(outcome.code, int(gg::Exit::no_device));
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(one_line_with(outcome.err, GetParam() + ": not run, no usable GPU"));
  }
}

std::vector<std::string> programs() {
  std::vector<std::string> all = built_chapters();
  all.push_back("gg-roof");
  return all;
}
INSTANTIATE_TEST_SUITE_P(Built, WithoutAGpu, testing::ValuesIn(programs()),
                         [](const auto& info) { return info.param == "gg-roof" ? "gg_roof" : info.param; });

}  // namespace
}  // namespace testing_gg
