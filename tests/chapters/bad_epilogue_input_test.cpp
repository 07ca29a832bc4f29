// SPDX-License-Identifier: MIT
//
// The inputs that the chapters with an epilogue refuse, as their operators do (cudnn-frontend,
// check_support of "Grouped GEMM + Quant" and of "Grouped GEMM + GLU + Hadamard"), and what these
// leave unchecked: types of offsets, alpha, prob and norm_const, and how many experts B has.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "common/harness/base/npy.h"
#include "tests/chapters/bad_input.h"

namespace testing_gg {
namespace {

using Extents = std::vector<int64_t>;
using Spoil = std::function<void(const Folder&)>;

const std::vector<std::string> kFp4Names = {"mxfp4", "nvfp4", "fp4_ue8m0_16"};

std::vector<std::string> chapters_with_an_epilogue(bool scaled) {
  std::vector<std::string> ids;
  for (const std::string& id : built_chapters()) {
    if (has_epilogue(id) && has_block_scales(id) == scaled && !is_glu_gradient(id)) ids.push_back(id);
  }
  return ids;
}
bool is_gated(const std::string& id) { return has_option(id, "act"); }

// A file of one value.
template <class T>
Spoil put(const char* file, const char* type, const Extents& shape, T value) {
  return [=](const Folder& folder) {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    const std::vector<T> values(size_t(count), value);
    gg::write_npy(folder.at(file), type, shape, values.data(), values.size() * sizeof(T));
  };
}
Spoil bytes(const char* file, const Extents& shape) { return put(file, "|u1", shape, uint8_t(0x7F)); }
Spoil floats(const char* file, const Extents& shape, float value = 1) {
  return put(file, "<f4", shape, value);
}
Spoil halves(const char* file, const Extents& shape) { return put(file, "<u2", shape, uint16_t(0x3F80)); }
Spoil ends(const std::vector<int32_t>& offsets) {
  return [=](const Folder& folder) {
    gg::write_npy(folder.at("offsets.npy"), "<i4", {int64_t(offsets.size())}, offsets.data(),
                  offsets.size() * 4);
  };
}
Spoil without(const char* file) {
  return [=](const Folder& folder) { std::filesystem::remove(folder.at(file)); };
}
Spoil both(const std::vector<Spoil>& all) {
  return [=](const Folder& folder) {
    for (const Spoil& each : all) each(folder);
  };
}

// Two experts of 256 rows, N = 64. A row is 64 bytes: K = 64 in MXFP8, 128 in MXFP4. One atom holds
// the scales of 128 rows in either.
void write_operands(const Folder& folder) {
  both({bytes("a.npy", {512, 64}), bytes("b.npy", {2, 64, 64}), bytes("sfa.npy", {4, 1, 32, 4, 4}),
        bytes("sfb.npy", {2, 1, 1, 32, 4, 4}), ends({256, 512}), floats("alpha.npy", {2}),
        floats("prob.npy", {512})})(folder);
}
// B and its scales once more, in a file for each expert.
const Spoil kApart =
    both({bytes("b_00000.npy", {64, 64}), bytes("b_00001.npy", {64, 64}),
          bytes("sfb_00000.npy", {1, 1, 32, 4, 4}), bytes("sfb_00001.npy", {1, 1, 32, 4, 4})});
const Spoil kOnlyApart = both({without("b.npy"), without("sfb.npy"), kApart});

Words problem(const char* m, const char* n, const char* k, const Words& more) {
  return with({"--m", m, "--n", n, "--k", k}, more);
}

std::vector<Bad> of_command_line(const std::string& id) {
  const auto has = [&](const std::string& what) { return id + " has " + what; };
  const Words fp4 = {"--format", "mxfp4"};
  std::vector<Bad> all = {
      {"RowsOfAGroup", id, problem("256,100", "64", "128", fp4), "M=100 of group 1: " + id + " wants"},
      {"TooManyExperts", id, problem("0", "64", "128", {"--groups", "1025"}), "between 1 and 1024"},
      {"ManyTooManyExperts", id, problem("0", "64", "128", {"--groups", "5000"}), "between 1 and 1024"},
      {"TooManyExpertsListed", id, problem(many("0", 1025).c_str(), "64", "128", fp4),
       "1025 groups: at most 1024"},
      {"NForEachGroup", id, problem("256,256", "64,128", "128", fp4), "one N and one K"},
      {"KInFp4", id, problem("256", "64", "48", fp4), "K=48: " + id + " wants multiples of 32"},
      {"N", id, problem("256", "68", "128", fp4),
       "N=68: " + id + " wants multiples of " + (is_gated(id) ? "64" : "8")},
      {"Tile", id, {"--tile", "128x128"}, "--tile 128x128: " + has("256x256")},
      {"Cluster", id, {"--cluster", "2x2"}, "--cluster 2x2: " + has("2x1")},
      {"Fp8InBlocksOf16", id, {"--format", "mxfp8_16"}, "--format mxfp8_16: " + has("nvfp4 -> bf16")},
      {"Ue4m3InBlocksOf32", id, {"--format", "nvfp4_32"}, "--format nvfp4_32: " + has("nvfp4 -> bf16")},
      {"Bf16", id, {"--in-dtype", "bf16"}, "--in-dtype bf16: " + has("nvfp4 -> bf16")},
      {"DInFp4", id, {"--d-dtype", "e2m1"}, "--d-dtype e2m1: " + has("nvfp4 -> bf16")},
      {"BiasInFp8", id, {"--bias", "--bias-dtype", "e4m3"}, "e4m3: " + has("bf16, f16, f32")},
      {"TypeOfNoBias", id, {"--bias-dtype", "f16"}, "--bias-dtype f16: there is no bias: add --bias"},
      {"SharedB", id, {"--shared-b"}, "--shared-b: " + id + " has no such option"},
      {"ALibrary", id, {"--peer", "cublas_loop"}, "--peer cublas_loop: " + id + " computes more"},
  };
  for (const std::string& format : kFp4Names) {
    for (const std::string d : {"f32", "e4m3", "e5m2"}) {
      if (d == "f32" && format == "mxfp4" && !is_gated(id)) continue;  // the pair that is taken
      const std::string named = "--format " + format + " --d-dtype " + d + ": ";
      all.push_back({format + "To" + d, id, {"--format", format, "--d-dtype", d}, named + has("nvfp4")});
    }
  }
  if (is_gated(id)) {
    all.push_back({"Fp8", id, {"--format", "mxfp8"}, "--format mxfp8: " + has("nvfp4 -> bf16")});
    all.push_back({"Act", id, {"--act", "relu"}, "--act relu: " + has("swiglu, geglu")});
    all.push_back({"CInFp8", id, {"--c-dtype", "e4m3"}, "--c-dtype e4m3: " + has("bf16, f16")});
    return all;
  }
  const Words fp8 = {"--format", "mxfp8", "--d-dtype", "e4m3"};
  all.push_back({"Fp8ToF32", id, {"--format", "mxfp8", "--d-dtype", "f32"}, "f32: " + has("nvfp4 -> bf16")});
  all.push_back({"KInFp8", id, problem("256", "64", "40", fp8), "K=40: " + id + " wants multiples of 16"});
  all.push_back({"NOfDInFp8", id, problem("256", "72", "64", fp8), "N=72: " + id + " wants multiples of 16"});
  return all;
}

std::vector<Bad> of_choices(const std::string& id) {
  const Words fp8 = {"--format", "mxfp8", "--d-dtype", "e4m3"};
  std::vector<Bad> all;
  const auto add = [&](const std::string& option, const std::vector<Bad>& where_offered) {
    std::string name = "No-" + option;
    std::replace(name.begin(), name.end(), '-', '_');
    const Bad lacking = {name, id, {"--" + option}, "--" + option + ": " + id + " has no such option"};
    const std::vector<Bad> of_it = has_option(id, option.c_str()) ? where_offered : std::vector{lacking};
    all.insert(all.end(), of_it.begin(), of_it.end());
  };
  const auto norm = [&](const char* name, const char* value, const char* says, const Words& types) {
    return Bad{name, id, with(types, {"--norm-const", value}), std::string(value) + ": " + says};
  };
  const std::string discrete = "--weights discrete: a bias of f32 goes with dense weights only";
  add("norm-const",
      {norm("NormOfZero", "0", "a finite number above 0", fp8),
       norm("NormNegative", "-2", "a finite number above 0", fp8),
       norm("NormInfinite", "inf", "a finite number above 0", fp8),
       norm("NormNoNumber", "one", "not a number", fp8),
       norm("NormOfBf16", "0.5", "scales are made for D of e4m3 or e5m2, it is bf16", {"--format", "mxfp8"}),
       norm("NormOfFp4", "0.5", "scales are made for D of e4m3 or e5m2, it is f16", {"--d-dtype", "f16"})});
  add("discrete-col-sfd", {});
  add("weights",
      {{"Weights", id, {"--weights", "sparse"}, "--weights sparse: dense or discrete are accepted"},
       {"WideBias", id, {"--weights", "discrete", "--bias", "--bias-dtype", "f32"}, discrete}});
  add("schedule", {{"Schedule", id, {"--schedule", "fair"}, "fair: static or dynamic are accepted"}});
  add("b-layout",
      {{"Fp4AlongN", id, {"--format", "nvfp4", "--b-layout", "kn"}, "--b-layout kn: nvfp4 packs two"},
       {"NOfB", id, problem("256", "72", "64", {"--format", "mxfp8", "--b-layout", "kn"}),
        "N=72: " + id + " wants multiples of 16"}});
  add("act", {});
  add("c-dtype", {});
  add("transform", {{"Transform", id, {"--transform", "fast"}, "fast: tensor or butterfly are accepted"}});
  const Words tiles = listed(id, "tiles");
  if (tiles.size() == 1) {
    all.push_back({"TileOfABlock", id, {"--tile", "128x256"}, "--tile 128x256: " + id + " has 256x256"});
    all.push_back({"ClusterOfOne", id, {"--cluster", "1x1"}, "--cluster 1x1: " + id + " has 2x1"});
  } else {
    all.push_back({"PairOfOneBlock",
                   id,
                   {"--tile", "256x256", "--cluster", "1x1"},
                   "--tile 256x256 --cluster 1x1: " + id + " has 256x256 with 2x1, 128x256 with 1x1"});
  }
  return all;
}

// Each operand of a folder absent, of another type or shape, or with other contents.
std::vector<Bad> of_files(const std::string& id) {
  const auto row = [&](const std::string& name, const std::string& says, const Spoil& spoil,
                       const Words& more = {}) {
    return Bad{name, id, with({"--in", "{}", "--check", "--format", "mxfp4"}, more), says, spoil};
  };
  std::vector<Bad> all = {
      row("AOfHalves", "a.npy: has type '<u2'", halves("a.npy", {512, 64})),
      row("FlatA", "a.npy: has shape [32768], 2 dimensions", bytes("a.npy", {32768})),
      row("BOfHalves", "b.npy: has type '<u2'", halves("b.npy", {2, 64, 64})),
      row("BOfThree", "b.npy: has shape [3, 64, 64], the offsets name 2", bytes("b.npy", {3, 64, 64})),
      row("OtherK", "b.npy has [2, 64, 32]: give both the same K", bytes("b.npy", {2, 64, 32})),
      row("KOfFiles", "K=80: ", both({bytes("a.npy", {512, 40}), bytes("b.npy", {2, 64, 40})})),
      row("SfaOfTwoAtoms", "[4, 1, 32, 4, 4] is wanted", bytes("sfa.npy", {4, 2, 32, 4, 4})),
      row("SfaOfFloats", "sfa.npy: has type '<f4'", floats("sfa.npy", {4, 1, 32, 4, 4})),
      row("SfbOfOne", "[2, 1, 1, 32, 4, 4] is wanted", bytes("sfb.npy", {1, 1, 1, 32, 4, 4})),
      row("WideOffsets", "offsets.npy: has type '<i8'", put("offsets.npy", "<i8", {2}, int64_t(256))),
      row("OffsetsOfFloats", "offsets.npy: has type '<f4'", floats("offsets.npy", {2}, 256)),
      row("OffsetsInAColumn", "and shape [2, 1]", put("offsets.npy", "<i4", {2, 1}, int32_t(256))),
      row("NoOffsets", "and shape [0]", ends({})),
      row("OneOffset", "b.npy: has shape [2, 64, 64], the offsets name 1 groups", ends({512})),
      row("OffsetsDecrease", "offset 1 is 256, less than the 512 before it", ends({512, 256})),
      row("OffsetNegative", "offset 0 is -256, negative", ends({-256, 512})),
      row("OffsetBeyondA", "offset 1 is 768, but A has only 512 rows", ends({256, 768})),
      row("RowsOfAGroupOfFiles", "M=100 of group 0: " + id + " wants multiples of 256", ends({100, 512})),
      row("TooManyExpertsOfFiles", "1025 groups: at most 1024", ends(std::vector<int32_t>(1025))),
      row("AlphaOfThree", "alpha.npy: has shape [3], [2] is wanted", floats("alpha.npy", {3})),
      row("AlphaInAColumn", "alpha.npy: has shape [2, 1], 1 dimensions", floats("alpha.npy", {2, 1})),
      row("AlphaOfHalves", "alpha.npy: has type '<u2'", halves("alpha.npy", {2})),
      row("ProbOfTooFew", "prob.npy: has shape [256], [512] is wanted", floats("prob.npy", {256})),
      row("ProbInAColumn", "prob.npy: has shape [512, 1], 1 dim", floats("prob.npy", {512, 1})),
      row("ProbOfDoubles", "prob.npy: has type '<f8'", put("prob.npy", "<f8", {512}, 1.0)),
      row("NoBias", "--bias: ", [](const Folder&) {}, {"--bias"}),
      row("TypeOfBias", "--bias-dtype f16: with --in", halves("bias.npy", {2, 64}), {"--bias-dtype", "f16"}),
      row("BiasOfIntegers", "bias.npy: has type '<i4', " + id, put("bias.npy", "<i4", {2, 64}, int32_t(1))),
      row("BiasOfOne", "bias.npy: has shape [1, 64], [2, 64] is wanted", halves("bias.npy", {1, 64})),
      row("BiasTurned", "bias.npy: has shape [64, 2], [2, 64] is wanted", floats("bias.npy", {64, 2})),
      row("FlatBias", "bias.npy: has shape [128], 2 dimensions", halves("bias.npy", {128})),
      row("ASign", "sfa.npy: byte 0 is 0xB8: a UE4M3 scale has no sign",
          both({put("sfa.npy", "|u1", {4, 2, 32, 4, 4}, uint8_t(0xB8)),
                put("sfb.npy", "|u1", {2, 1, 2, 32, 4, 4}, uint8_t(0x38))}),
          {"--format", "nvfp4"}),
  };
  for (const char* file : {"a", "b", "sfa", "sfb", "offsets", "alpha", "prob"}) {
    const std::string name = std::string(file) + ".npy";
    all.push_back(row(std::string("Without_") + file, name + ": cannot be read",
                      [=](const Folder& folder) { std::filesystem::remove(folder.at(name)); }));
  }
  return all;
}

std::vector<Bad> of_files_of_choices(const std::string& id) {
  const Words in = {"--in", "{}", "--check", "--format"}, fp4 = with(in, {"mxfp4"}),
              fp8 = with(in, {"mxfp8", "--d-dtype", "e4m3"}), discrete = with(fp4, {"--weights", "discrete"});
  std::vector<Bad> all;
  const auto row = [&](const char* name, const Words& words, const std::string& says, const Spoil& spoil) {
    all.push_back({name, id, words, says, spoil});
  };
  const Spoil one = floats("norm_const.npy", {1});
  if (has_option(id, "norm-const")) {
    row("NormDisagrees", with(fp8, {"--norm-const", "2"}), "is 1, --norm-const is 2: they must agree", one);
    row("NormOfBf16InAFile", with(in, {"mxfp8"}), "it is bf16: give --d-dtype", one);
    row("NormOfTwo", fp8, "norm_const.npy: has shape [2], [1] is wanted", floats("norm_const.npy", {2}));
    row("NormOfDouble", fp8, "norm_const.npy: has type '<f8'", put("norm_const.npy", "<f8", {1}, 1.0));
    row("NormOfZeroInAFile", fp8, "norm_const.npy: 0: a finite number", floats("norm_const.npy", {1}, 0));
  } else {
    row("NormInAFile", fp4, "norm_const.npy: " + id + " has no block-scaled outputs: remove the file", one);
  }
  if (has_option(id, "weights")) {
    const std::string dense_too = ".npy: --weights discrete reads ", apart_too = "_00000.npy: weights of one";
    row("OnlyDense", discrete, "/b" + dense_too, [](const Folder&) {});
    row("DenseToo", discrete, "/b" + dense_too, kApart);
    row("DenseScalesToo", discrete, "/sfb" + dense_too, both({kApart, without("b.npy")}));
    row("OnlyApart", fp4, "/b" + apart_too, kOnlyApart);
    row("ApartToo", fp4, "/b" + apart_too, kApart);
    row("ScalesApartToo", fp4, "/sfb" + apart_too, bytes("sfb_00000.npy", {1, 1, 32, 4, 4}));
    row("WithoutScales", discrete, "sfb_00000.npy: cannot be read",
        both({kOnlyApart, without("sfb_00000.npy")}));
    row("AnotherNOfAnExpert", discrete, "b_00001.npy: has shape [32, 64], group 0 has [64, 64]",
        both({kOnlyApart, bytes("b_00001.npy", {32, 64})}));
    row("AnotherKOfExperts", discrete, "b_00000.npy .. has [2, 64, 32]: give both the same K",
        both({kOnlyApart, bytes("b_00000.npy", {64, 32}), bytes("b_00001.npy", {64, 32})}));
    row("BOfHalvesOfAnExpert", discrete, "b_00001.npy: has type '<u2'",
        both({kOnlyApart, halves("b_00001.npy", {64, 64})}));
    row("WithoutAnExpert", discrete, "b_00001.npy: cannot be read",
        both({kOnlyApart, without("b_00001.npy")}));
    row("OneExpertTooMany", discrete, "b_00002.npy: the offsets name 2 groups",
        both({kOnlyApart, bytes("b_00002.npy", {64, 64})}));
    row("WideBiasInAFile", discrete, "a bias of f32 goes with dense weights only",
        both({kOnlyApart, floats("bias.npy", {2, 64})}));
  } else {
    row("OnlyApart", fp4, "b.npy: cannot be read", kOnlyApart);
  }
  const Spoil transform = halves("hadamard.npy", {16, 16});
  if (has_option(id, "transform")) {
    row("TransformTooSmall", fp4, "hadamard.npy: has shape [16, 8], [16, 16] is wanted",
        halves("hadamard.npy", {16, 8}));
    row("TransformOfFloats", fp4, "hadamard.npy: has type '<f4'", floats("hadamard.npy", {16, 16}));
    row("ButterflyOfAnother", with(fp4, {"--transform", "butterfly"}),
        "hadamard.npy: is not the Sylvester matrix, and --transform butterfly computes no other", transform);
  } else {
    row("Transform", fp4, "hadamard.npy: " + id + " has no transform: remove the file", transform);
  }
  return all;
}

class BadEpilogueInput : public testing::TestWithParam<std::string> {};

void expect_each_refused(const std::vector<Bad>& table, const Spoil& write) {
  for (const Bad& bad : table) {
    SCOPED_TRACE(bad.name);
    const Folder folder;
    write(folder);
    expect_refused(bad, folder);
  }
}

TEST_P(BadEpilogueInput, IsRefusedInOneSentence) {
  expect_each_refused(of_command_line(GetParam()), write_operands);
  expect_each_refused(of_choices(GetParam()), write_operands);
  expect_each_refused(of_files(GetParam()), write_operands);
  expect_each_refused(of_files_of_choices(GetParam()), write_operands);
}
INSTANTIATE_TEST_SUITE_P(Built, BadEpilogueInput, testing::ValuesIn(chapters_with_an_epilogue(true)),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BadEpilogueInput);

// The operands above are spoilt in one thing each; whole, no chapter refuses them.
class GoodEpilogueInput : public testing::TestWithParam<std::string> {};

TEST_P(GoodEpilogueInput, IsNotRefused) {
  const Folder dense, apart;
  write_operands(dense);
  const Words fp4 = {"--in", "{}", "--check", "--format", "mxfp4"},
              fp8 = {"--in", "{}", "--check", "--format", "mxfp8", "--d-dtype", "e4m3"};
  expect_accepted(GetParam(), dense, fp4);
  floats("bias.npy", {2, 64})(dense);
  expect_accepted(GetParam(), dense, with(fp4, {"--bias"}));
  if (!is_gated(GetParam())) expect_accepted(GetParam(), dense, fp8);  // saturated, without scales
  if (has_option(GetParam(), "norm-const")) {
    floats("norm_const.npy", {1})(dense);
    expect_accepted(GetParam(), dense, with(fp8, {"--norm-const", "1"}));
  }
  if (!has_option(GetParam(), "weights")) return;
  both({write_operands, kOnlyApart, halves("bias.npy", {2, 64})})(apart);
  expect_accepted(GetParam(), apart, with(fp4, {"--weights", "discrete"}));
}
INSTANTIATE_TEST_SUITE_P(Built, GoodEpilogueInput, testing::ValuesIn(chapters_with_an_epilogue(true)),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoodEpilogueInput);

// ---- A and B of bf16, without scales ----

// Two experts, of 3 and of 4 rows, or of as many times what a group's rows must be multiples of.
int unscaled_rows(const std::string& id, int rows) { return rows * limit_of(id, "m_multiple"); }

void write_unscaled(const std::string& id, const Folder& folder) {
  const int first = unscaled_rows(id, 3), all = unscaled_rows(id, 7);
  both({halves("a.npy", {all, 64}), halves("b.npy", {2, 64, 64}), ends({0, first, all}),
        floats("alpha.npy", {2}), floats("prob.npy", {all})})(folder);
}

std::vector<Bad> of_unscaled_command_line(const std::string& id) {
  const auto has = [&](const std::string& what) { return id + " has " + what; };
  const std::string n = "N=72: " + id + " wants multiples of " + std::to_string(limit_of(id, "n_multiple")),
                    formats = "bf16 -> " + texts_of(id, "d").at(0);
  std::vector<Bad> all = {
      {"TooManyExperts", id, problem("0", "64", "128", {"--groups", "1025"}), "between 1 and 1024"},
      {"TooManyExpertsListed", id, problem(many("0", 1025).c_str(), "64", "128", {}),
       "1025 groups: at most 1024"},
      {"NForEachGroup", id, problem("5,3", "64,128", "128", {}), "one N and one K"},
      {"N", id, problem("0", "72", "64", {}), n},
      {"K", id, problem("0", "64", "60", {}), "K=60: " + id + " wants multiples of 8"},
      {"Tile", id, {"--tile", "96x128"}, "--tile 96x128: " + has(listed(id, "tiles")[0])},
      {"F16", id, {"--in-dtype", "f16"}, "--in-dtype f16: " + has(formats)},
      {"DInF32", id, {"--d-dtype", "f32"}, "--d-dtype f32: " + has(formats)},
      {"BiasInFp8", id, {"--bias", "--bias-dtype", "e4m3"}, "e4m3: " + has("bf16, f16, f32")},
      {"TypeOfNoBias", id, {"--bias-dtype", "f16"}, "--bias-dtype f16: there is no bias: add --bias"},
      {"ALibrary", id, {"--peer", "cublas_loop"}, "--peer cublas_loop: " + id + " computes more"},
  };
  for (const std::string option :
       {"format", "c-dtype", "act", "norm-const", "discrete-col-sfd", "weights", "transform", "b-layout"}) {
    if (has_option(id, option.c_str())) continue;
    all.push_back({"No_" + option, id, {"--" + option}, "--" + option + ": " + id + " has no such option"});
  }
  if (is_gated(id)) all.push_back({"Act", id, {"--act", "relu"}, "--act relu: " + has("swiglu, geglu")});
  if (has_option(id, "norm-const")) {
    all.push_back({"RowsOfAGroup", id, problem("128,100", "64", "64", {}),
                   "M=100 of group 1: " + id + " wants multiples of 128"});
    all.push_back({"NormOfZero", id, {"--norm-const", "0"}, "0: a finite number above 0"});
    all.push_back({"NormNoNumber", id, {"--norm-const", "one"}, "one: not a number"});
  }
  if (has_option(id, "transform"))
    all.push_back({"Transform", id, {"--transform", "fast"}, "--transform fast: tensor or butterfly"});
  return all;
}

std::vector<Bad> of_unscaled_files(const std::string& id) {
  const auto row = [&](const std::string& name, const std::string& says, const Spoil& spoil,
                       const Words& more = {}) {
    return Bad{name, id, with({"--in", "{}", "--check"}, more), says, spoil};
  };
  const int first = unscaled_rows(id, 3), rows = unscaled_rows(id, 7), multiple = limit_of(id, "n_multiple");
  const auto text = [](int number) { return std::to_string(number); };
  std::vector<Bad> all = {
      row("AOfFloats", "a.npy: has type '<f4'", floats("a.npy", {rows, 64})),
      row("BOfThree", "b.npy: has shape [3, 64, 64], the offsets name 2", halves("b.npy", {3, 64, 64})),
      row("OtherK", "b.npy has [2, 64, 32]: give both the same K", halves("b.npy", {2, 64, 32})),
      row("HalfTheColumns", "N=" + text(multiple / 2) + ": " + id + " wants multiples of " + text(multiple),
          halves("b.npy", {2, multiple / 2, 64})),
      row("EndsInPlaceOfOffsets", "offset 0 is " + text(first) + ", it must be 0", ends({first, rows})),
      row("OffsetBeyondA", "offset 2 is " + text(rows + 128) + ", but A has only " + text(rows) + " rows",
          ends({0, first, rows + 128})),
      row("AlphaOfThree", "alpha.npy: has shape [3], [2] is wanted", floats("alpha.npy", {3})),
      row("ProbOfTooFew", "prob.npy: has shape [" + text(rows - 1) + "], [" + text(rows) + "] is wanted",
          floats("prob.npy", {rows - 1})),
      row("NoBias", "--bias: ", [](const Folder&) {}, {"--bias"}),
      row("BiasOfOne", "bias.npy: has shape [1, 64], [2, 64] is wanted", halves("bias.npy", {1, 64})),
  };
  const Spoil one = floats("norm_const.npy", {1});
  if (has_option(id, "norm-const")) {
    all.push_back(
        row("NormDisagrees", "is 1, --norm-const is 2: they must agree", one, {"--norm-const", "2"}));
    all.push_back(
        row("NormOfTwo", "norm_const.npy: has shape [2], [1] is wanted", floats("norm_const.npy", {2})));
    all.push_back(row("RowsOfAGroupOfFiles", "M=100 of group 0: " + id + " wants multiples of 128",
                      ends({0, 100, rows})));
  } else {
    all.push_back(row("NormInAFile", "has no block-scaled outputs: remove the file", one));
  }
  for (const char* file : {"a", "b", "offsets", "alpha", "prob"}) {
    const std::string name = std::string(file) + ".npy";
    all.push_back(row(std::string("Without_") + file, name + ": cannot be read",
                      [=](const Folder& folder) { std::filesystem::remove(folder.at(name)); }));
  }
  const Spoil transform = halves("hadamard.npy", {16, 16});
  if (has_tensor(id, "hadamard")) {
    all.push_back(row("TransformTooSmall", "hadamard.npy: has shape [16, 8], [16, 16] is wanted",
                      halves("hadamard.npy", {16, 8})));
  } else {
    all.push_back(row("Transform", "has no transform: remove the file", transform));
  }
  if (has_option(id, "transform")) {
    all.push_back(row("ButterflyOfAnother", "hadamard.npy: is not the Sylvester matrix", transform,
                      {"--transform", "butterfly"}));
  }
  return all;
}

class UnscaledEpilogueInput : public testing::TestWithParam<std::string> {};

TEST_P(UnscaledEpilogueInput, IsRefusedInOneSentence) {
  const std::string& id = GetParam();
  for (const std::vector<Bad>& table : {of_unscaled_command_line(id), of_unscaled_files(id)})
    expect_each_refused(table, [&](const Folder& folder) { write_unscaled(id, folder); });
}
TEST_P(UnscaledEpilogueInput, IsNotRefusedWhole) {
  const Folder folder;
  write_unscaled(GetParam(), folder);
  expect_accepted(GetParam(), folder, {"--in", "{}", "--check"});
  floats("bias.npy", {2, 64})(folder);
  expect_accepted(GetParam(), folder, {"--in", "{}", "--check", "--bias"});
  if (!has_option(GetParam(), "norm-const")) return;
  floats("norm_const.npy", {1}, 0.25f)(folder);
  expect_accepted(GetParam(), folder, {"--in", "{}", "--check"});
  expect_accepted(GetParam(), folder, {"--in", "{}", "--check", "--norm-const", "0.25"});
}
INSTANTIATE_TEST_SUITE_P(Built, UnscaledEpilogueInput, testing::ValuesIn(chapters_with_an_epilogue(false)),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(UnscaledEpilogueInput);

// ---- gradients of a gated unit ----

void write_gradient(const Folder& folder) {
  both({halves("a.npy", {7, 64}), halves("b.npy", {2, 64, 32}), halves("c.npy", {7, 64}), ends({0, 3, 7}),
        floats("alpha.npy", {2}), floats("prob.npy", {7})})(folder);
}

class GluGradientInput : public testing::TestWithParam<std::string> {};

TEST_P(GluGradientInput, IsRefusedInOneSentence) {
  const std::string& id = GetParam();
  const auto row = [&](const std::string& name, const std::string& says, const Spoil& spoil) {
    return Bad{name, id, {"--in", "{}", "--check"}, says, spoil};
  };
  const std::vector<Bad> all = {
      row("COfN", "c.npy: has shape [7, 32], [7, 64] is wanted", halves("c.npy", {7, 32})),
      row("COfTooFewRows", "c.npy: has shape [6, 64], [7, 64] is wanted", halves("c.npy", {6, 64})),
      row("COfFloats", "c.npy: has type '<f4'", floats("c.npy", {7, 64})),
      row("NoC", "c.npy", [](const Folder& folder) { std::filesystem::remove(folder.at("c.npy")); }),
      row("ABias", "has no bias: remove the file", halves("bias.npy", {2, 64})),
      {"N", id, problem("5", "48", "64", {}), "N=48: " + id + " wants multiples of 32"},
      {"TooManyExperts", id, problem("0", "64", "128", {"--groups", "1025"}), "between 1 and 1024"},
      {"ALibrary", id, {"--peer", "cublas_loop"}, "--peer cublas_loop: " + id + " computes more"},
  };
  expect_each_refused(all, write_gradient);
}
TEST_P(GluGradientInput, IsNotRefusedWhole) {
  const Folder folder;
  write_gradient(folder);
  expect_accepted(GetParam(), folder, {"--in", "{}", "--check"});
  expect_accepted(GetParam(), folder, {"--in", "{}", "--check", "--act", "geglu"});
}

std::vector<std::string> glu_gradients() {
  std::vector<std::string> ids;
  for (const std::string& id : built_chapters()) {
    if (is_glu_gradient(id)) ids.push_back(id);
  }
  return ids;
}
INSTANTIATE_TEST_SUITE_P(Built, GluGradientInput, testing::ValuesIn(glu_gradients()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GluGradientInput);

}  // namespace
}  // namespace testing_gg
