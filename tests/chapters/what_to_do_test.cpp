// SPDX-License-Identifier: MIT
//
// A refusal of a size or a file ends with what to do: behind its last colon stands an order.

#include <regex>

#include "common/harness/base/npy.h"
#include "tests/chapters/bad_input.h"

namespace testing_gg {
namespace {

template <class T>
void write_tensor(const Folder& folder, const char* file, const char* type,
                  const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const std::vector<T> zeros(size_t(count), T(0));
  gg::write_npy(folder.at(file), type, shape, zeros.data(), zeros.size() * sizeof(T));
}

void write_offsets(const Folder& folder, const std::vector<int32_t>& offsets) {
  gg::write_npy(folder.at("offsets.npy"), "<i4", {int64_t(offsets.size())}, offsets.data(),
                offsets.size() * 4);
}

// Rows of the table: the chapter, words, what the sentence ends with, and what is wrong with the
// folder. The folder holds what the chapter's own small problem has.
std::vector<Bad> of_sizes() {
  const auto sizes = [](const char* m, const char* n, const char* k, const Words& more = {}) {
    return with({"--m", m, "--n", n, "--k", k}, more);
  };
  return {
      {"Columns", "03_tensor_cores", sizes("5", "500", "64"), "pad to 504"},
      {"Depth", "07a_warp_specialized", sizes("5", "64", "113"), "pad to 120"},
      {"RowsOfAGroup", "08b_mxfp8", sizes("256,578", "64", "64"), "round up to 768"},
      {"DepthOfFp8", "08d_two_cta", sizes("256", "64", "170", {"--format", "mxfp8"}), "pad to 176"},
      {"DepthOfFp4", "08d_two_cta", sizes("256", "64", "176"), "pad to 192"},
      {"ColumnsOfD", "08e_epilogue", sizes("256", "72", "64", {"--format", "mxfp8", "--d-dtype", "e4m3"}),
       "pad to 80"},
      {"Pairs", "09b_glu", sizes("256", "96", "64"), "pad to 128"},
      {"EqualRows", "06b_wgmma_multi_k", sizes("64,192", "64", "64"), "pad each to 192"},
      {"TileOfK", "06b_wgmma_multi_k", sizes("64", "64", "80", {"--tile-k", "64"}), "pad to 128"},
      {"GridOfColumns", "01_naive", sizes("5", "2097152", "1"), "split N"},
      {"GroupsOfOne", "01_naive", with({"--m", many("1", 5000)}, {"--n", "8", "--k", "8"}),
       "split the problem into several"},
      {"NoNumber", "01_naive", sizes("5", "many", "8"), "give one"},
      {"NoSuchFolder", "01_naive", {"--in", "{}/none"}, "name the folder that holds the operands"},
      {"NoSuchFolderToWrite", "01_naive", sizes("5", "8", "8", {"--out", "{}/none"}), "create it first"},
  };
}

std::vector<Bad> of_files() {
  const auto in = [](const char* name, const char* chapter, const char* says,
                     std::function<void(const Folder&)> spoil, const Words& more = {}) {
    return Bad{name, chapter, with({"--in", "{}"}, more), says, std::move(spoil)};
  };
  const auto without = [](const char* file) {
    return [=](const Folder& folder) { std::filesystem::remove(folder.at(file)); };
  };
  return {
      in("HalfPrecision", "03_tensor_cores", "convert it, or give --in-dtype f16",
         [](const Folder& f) {
           write_tensor<uint16_t>(f, "a.npy", "<f2", {38, 40});
         }),
      in("HalfPrecisionOfB", "07l_peak_hopper", "convert it, or give --in-dtype f16",
         [](const Folder& f) {
           write_tensor<uint16_t>(f, "b.npy", "<f2", {3, 72, 40});
         }),
      in("SinglePrecision", "01_naive", "convert it, or give --in-dtype f32",
         [](const Folder& f) {
           write_tensor<float>(f, "a.npy", "<f4", {38, 40});
         }),
      in("SinglePrecisionIsNotTaken", "03_tensor_cores", "has type '<f4', bf16 travels as '<u2': convert it",
         [](const Folder& f) {
           write_tensor<float>(f, "a.npy", "<f4", {38, 40});
         }),
      in("DoublePrecision", "01_naive", "convert it",
         [](const Folder& f) {
           write_tensor<double>(f, "a.npy", "<f8", {38, 40});
         }),
      in("StartsForEnds", "08h_dynamic",
         "offsets.npy: has 4 numbers, the first of them 0, and B has 3 groups: 08h_dynamic wants [G], the "
         "end "
         "of each group: leave the 0 out",
         [](const Folder& f) {
           write_offsets(f, {0, 256, 256, 768});
         }),
      in("EndsForStarts", "07a_warp_specialized", "give [G+1], each group's first row and the number of rows",
         [](const Folder& f) {
           write_offsets(f, {5, 5, 38});
         }),
      in("WideEnds", "08b_mxfp8", "give the end of each group",
         [](const Folder& f) { write_tensor<int64_t>(f, "offsets.npy", "<i8", {3}); }),
      in("OtherGroups", "05a_jagged", "give one matrix for each",
         [](const Folder& f) {
           write_tensor<uint16_t>(f, "b.npy", "<u2", {2, 40, 72});
         }),
      in("OtherDepth", "05a_jagged", "give both the same K",
         [](const Folder& f) {
           write_tensor<uint16_t>(f, "b.npy", "<u2", {3, 48, 72});
         }),
      in("FlatB", "05a_jagged", "reshape it",
         [](const Folder& f) {
           write_tensor<uint16_t>(f, "b.npy", "<u2", {120, 72});
         }),
      in("NoB", "05a_jagged", "name a file that can", without("b.npy")),
      in("NoOffsets", "05a_jagged", "name a file that can", without("offsets.npy")),
      in("RowsOfAFile", "08c_fp4", "round up to 256",
         [](const Folder& f) {
           write_offsets(f, {100, 256, 768});
         }),
      in("Scales", "08b_mxfp8", "lay the scales out in atoms",
         [](const Folder& f) {
           write_tensor<uint8_t>(f, "sfa.npy", "|u1", {1, 1, 32, 4, 4});
         }),
      in("Alpha", "08e_epilogue", "give one per group",
         [](const Folder& f) { write_tensor<float>(f, "alpha.npy", "<f4", {7}); }),
      in("NoBias", "08e_epilogue", "put it there, or leave --bias out", [](const Folder&) {}, {"--bias"}),
  };
}

class WhatToDo : public testing::TestWithParam<Bad> {};

TEST_P(WhatToDo, EndsTheRefusal) {
  const Folder folder;
  const std::string& id = GetParam().chapter;
  const Words& words = GetParam().arguments;
  if (std::find(words.begin(), words.end(), "--in") != words.end())
    write_tensors(id, folder, with(problem_of(id), {"--device", "emu"}));
  GetParam().spoil(folder);
  const Outcome outcome = run_in(folder, id, words);
  EXPECT_EQ(outcome.code, int(gg::Exit::bad_input)) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(one_line_with(outcome.err, GetParam().says));
  EXPECT_EQ(outcome.err.substr(outcome.err.size() - GetParam().says.size() - 1), GetParam().says + "\n");
}

std::vector<Bad> of_built_chapters() {
  std::vector<Bad> all;
  for (const std::vector<Bad>& each : {of_sizes(), of_files()}) {
    for (const Bad& bad : each) {
      if (is_built(bad.chapter)) all.push_back(bad);
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Of, WhatToDo, testing::ValuesIn(of_built_chapters()),
                         [](const auto& info) { return info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WhatToDo);  // of chapters that are all left out

// In the sources too: no sentence about a size or a file ends before it has said that.
TEST(Refusals, InTheSourcesEndWithAnOrder) {
  const std::regex order(
      "(: |, or |, and "
      ")(pad|round|give|split|convert|reshape|name|leave|remove|put|make|clear|lay|write|save|"
      "create|%s)[^:]*\"$");
  int seen = 0;
  for (const char* file : {"problem/limits.cpp", "verify/read_files.cpp"}) {
    const std::string text = text_of(GG_SOURCE_DIR "/common/harness/" + std::string(file));
    const std::regex refusal("GG_REQUIRE\\(");
    for (std::sregex_iterator i(text.begin(), text.end(), refusal), end; i != end; ++i) {
      const size_t from = size_t(i->position()), to = text.find(";\n", from);
      std::string sentence;
      const std::string call = text.substr(from, to - from);
      const std::regex literal("\"(?:[^\"\\\\]|\\\\.)*\"\\s*");
      for (std::sregex_iterator word(call.begin(), call.end(), literal); word != end; ++word) {
        std::string piece = word->str();
        piece = piece.substr(0, piece.rfind('"') + 1);
        if (piece.find(' ') != std::string::npos) sentence += piece.substr(1, piece.size() - 2);
      }
      if (sentence.empty()) continue;
      ++seen;
      EXPECT_TRUE(std::regex_search(sentence + "\"", order)) << file << ": " << sentence;
    }
  }
  EXPECT_GT(seen, 40);
}

}  // namespace
}  // namespace testing_gg
