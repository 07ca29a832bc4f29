// SPDX-License-Identifier: MIT
//
// Planted bugs of epilogues, as functions on host memory. The harness must fail each and say what
// it looks like; the same functions without a bug must pass.

#include <gtest/gtest.h>

#include <cstdio>

#include "common/harness/harness.cuh"
#include "common/harness/verify/problem_files.h"
#include "common/harness/verify/trials.h"
#include "epilogue_product.h"

namespace gg {
namespace {

using planted::Product;

const CheckOptions kOptions{.seed = 3, .graph_replay = true, .neighbours = true};

struct Kind {  // of problems
  BlockFormat format = BlockFormat::mxfp8;
  Format d = Format::e4m3;
  Epilogue epilogue{};
  Format c = Format::bf16;
  Shape shape{{256, 0, 512}, {80}, {96}};
  BLayout layout = BLayout::nk;
  Weights weights = Weights::dense;
  bool odd_norm = false;  // see norm_from
};

// Returns a norm from this one on for which largest * norm * RCP and largest * RCP * norm have
// different codes for some float. To find one takes longer than many a test here, which begins with
// the list of all bugs.
float norm_from(float norm) {
  const auto differ = [&] {
    for (uint32_t bits = std::bit_cast<uint32_t>(1.0f); bits < std::bit_cast<uint32_t>(2.0f); ++bits) {
      const auto x = std::bit_cast<float>(bits);
      const float right = x * (1.0f / 448) * norm, wrong = x * norm * (1.0f / 448);
      if (encode(Format::ue8m0, double(right)) != encode(Format::ue8m0, double(wrong))) return true;
    }
    return false;
  };
  while (!differ()) norm += 0.01f;
  return norm;
}

Setup setup_of(const Kind& kind) {
  Setup setup;
  const bool has_scales = kind.format != BlockFormat::none;
  const Format element = has_scales ? block_scaling(kind.format).element : Format::bf16;
  setup.request.formats = {element, element, kind.d, kind.format, kind.c};
  setup.request.b_layout = kind.layout;
  setup.host_offsets = false;
  setup.m_multiple = has_scales ? 256 : 1;
  setup.request.epilogue = kind.epilogue;
  if (kind.odd_norm) setup.request.epilogue.norm_const = norm_from(setup.request.epilogue.norm_const);
  setup.request.weights = kind.weights;
  return setup;
}

Kind quant(bool scaled, bool bias) {
  Kind kind;
  kind.epilogue = {.op = Operator::quant, .amax = true, .bias = bias};
  kind.d = scaled ? Format::e4m3 : Format::bf16;
  if (scaled) kind.epilogue.sfd_row = kind.epilogue.sfd_col = true;
  kind.epilogue.norm_const = scaled ? 0.37f : 0;
  kind.shape.rows = 904;
  return kind;
}
Kind quant_e5m2() {
  Kind kind = quant(true, false);
  kind.d = Format::e5m2;
  kind.format = BlockFormat::mxfp8_e5m2;
  return kind;
}
Kind neighbours() {  // no group is empty
  Kind kind = quant(false, true);
  kind.shape.m = {256, 256, 256};
  return kind;
}
Kind wide() {  // more than an atom of columns
  Kind kind = quant(true, false);
  kind.shape.n = {144};
  return kind;
}
Kind odd_norm() {
  Kind kind = quant(true, false);
  kind.odd_norm = true;
  return kind;
}
Kind gated(Operator op, Activation activation, bool bias = false) {
  Kind kind;
  kind.epilogue = {.op = op, .amax = true, .bias = bias, .activation = activation};
  kind.format = BlockFormat::nvfp4;
  kind.d = Format::f16;
  kind.shape = {{256, 0, 512}, {128}, {96}};
  kind.shape.rows = 904;
  return kind;
}
Kind swiglu() { return gated(Operator::glu, Activation::swiglu); }
Kind geglu() { return gated(Operator::glu, Activation::geglu, true); }
Kind hadamard() { return gated(Operator::glu_hadamard, Activation::swiglu); }

// A and B of bf16 without scales, ragged groups, and neither C nor amax.
Kind unscaled(Activation activation) {
  Kind kind;
  kind.epilogue = {.op = Operator::glu, .bias = true, .stores_c = false, .activation = activation};
  kind.format = BlockFormat::none;
  kind.d = Format::bf16;
  kind.shape = {{70, 0, 33, 5}, {128}, {96}};
  kind.shape.rows = 244;
  return kind;
}
Kind unscaled_swiglu() { return unscaled(Activation::swiglu); }
Kind unscaled_geglu() { return unscaled(Activation::geglu); }

CheckResult checked(const Kind& kind, const std::string& bug) {
  const Setup setup = setup_of(kind);
  return check_problem(*host_machine(), setup, Product(bug), kind.shape, kOptions);
}

struct Planted {
  const char* bug;
  Kind kind;
  const char* sentence;  // a part of it
  Symptom symptom = Symptom::wrong_epilogue;
};
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.bug; }

std::vector<Planted> bugs() {
  return {
      {"NoAlpha", quant(false, false), "alpha left out"},
      {"NoProb", quant(true, false), "prob left out"},
      {"NoBias", quant(true, true), "the bias left out"},
      {"ProbOnSum", quant(true, true), "prob applied to the product and the bias"},
      {"ProbOnProduct", quant(false, true), "prob applied to the product: "},
      {"NoProb", quant(false, true), "prob left out"},
      {"AlphaBefore", quant(false, false), "alpha of the expert before"},
      {"ProbBelow", quant(true, false), "prob of the row below"},
      {"ProbOfGroupRow", quant(false, false), "prob of rows counted from the start of the group"},
      {"BiasOfFirst", quant(false, true), "the bias of expert 0"},
      {"BiasOfNextColumn", quant(true, true), "the bias of the column after"},
      {"FactorsFirst", quant(true, false), "multiplied with each other first"},
      {"ScaleDown", quant(true, false), "scales rounded down"},
      {"ScaleNearest", quant(true, false), "scales rounded to the nearest power of two"},
      {"ScaleFromD", quant(true, false), "scales of values that were rounded to D's type"},
      {"UnroundedScale", quant(true, false), "D scaled by the scale before it was rounded"},
      {"NoNorm", quant(true, false), "norm_const left out"},
      {"NormLast", odd_norm(), "norm_const multiplied first"},
      {"RcpOfLargest", quant_e5m2(), "1/57344 for E5M2"},
      {"ColumnsFromD", quant(true, false), "D_col and SFD_col made from D"},
      {"FactorNotCapped", quant(true, false), "zeros become NaN"},
      {"ColumnLayout", wide(), "SFD_col in the other layout"},
      {"RowLayout", quant(true, false), "SFD_row as [M,N/32]"},
      {"AmaxOfD", quant(false, false), "amax of D"},
      {"AmaxSigned", quant(false, false), "amax of the values with their signs"},
      {"NoAmax", quant(true, false), "amax: 2 of 3 values are wrong", Symptom::unwritten},
      {"NoPaddingOfRows", quant(true, false), "never written", Symptom::unwritten},
      {"NoPaddingOfColumns", quant(true, false), "never written", Symptom::unwritten},
      {"ExpertAfter", quant(true, false), "the weights of the expert after", Symptom::swapped_expert},
      {"MissingSlice", quant(true, false), "the last 32 products", Symptom::missing_k_slice},
      {"NoColumns", quant(true, false), "SFD_col: 3072 of 3072 values are wrong", Symptom::unwritten},
      {"WritesRowBehind", quant(false, false), "D: a write outside what the groups own: row 768, column 3",
       Symptom::out_of_bounds},
      {"WritesColumnBehind", quant(true, false),
       "D_col: a write outside what the groups own: row 768, column 0", Symptom::out_of_bounds},
      {"WritesScaleBehind", quant(true, false), "SFD_row: a write outside what the groups own: byte 3077",
       Symptom::out_of_bounds},
      {"WritesColumnScaleBehind", quant(true, false),
       "SFD_col: a write outside what the groups own: byte 3072", Symptom::out_of_bounds},
      {"WritesAmaxBehind", quant(true, false), "amax: a write outside", Symptom::out_of_bounds},
      {"WritesCBehind", swiglu(), "C: a write outside what the groups own: row 768, column 70",
       Symptom::out_of_bounds},
      {"ReadsProbBehind", quant(false, false), "no group owns are NaN: they are read", Symptom::padding_read},
      {"ReadsNextBias", neighbours(),
       "NaN in the neighbouring groups' operands: D: ", Symptom::neighbour_read},
      {"ChangesEachTime", quant(false, false), "two launches on the same data differ, first in D at byte 0",
       Symptom::nondeterministic},
      {"CClamped", geglu(), "C stored after the clamps"},
      {"CGated", swiglu(), "C multiplied with prob"},
      {"GateAndUp", swiglu(), "gate and up exchanged"},
      {"Neighbours", swiglu(), "taken from neighbouring columns"},
      {"Halves", swiglu(), "taken from the halves of N"},
      {"NoPlusOne", geglu(), "the + 1 of geglu left out"},
      {"NoClamps", geglu(), "the clamps of geglu left out"},
      {"GateClampedBelow", geglu(), "the gate clamped from below"},
      {"NoFactor", geglu(), "the 1.702 of geglu left out"},
      {"OtherActivation", geglu(), "the other activation"},
      {"FromRoundedC", swiglu(), "computed from the rounded C"},
      {"NoProb", hadamard(), "prob left out"},
      {"Quarter", hadamard(), "normalised by 1/4"},
      {"Transposed", hadamard(), "X * W instead of X * W^T"},
      {"XNotRounded", hadamard(), "X not rounded to bf16"},
      {"XAsD", hadamard(), "X rounded to D's type"},
      {"AmaxOfX", hadamard(), "amax taken before the transform"},
      {"NoBias", unscaled_swiglu(), "the bias left out"},
      {"BiasOfNextColumn", unscaled_swiglu(), "the bias of the column after"},
      {"ProbBelow", unscaled_swiglu(), "prob of the row below"},
      {"ProbOfGroupRow", unscaled_swiglu(), "prob of rows counted from the start of the group"},
      {"GateAndUp", unscaled_swiglu(), "gate and up exchanged"},
      {"Halves", unscaled_swiglu(), "taken from the halves of N"},
      {"FromRoundedC", unscaled_swiglu(), "computed from the rounded C"},
      {"GateClampedBelow", unscaled_geglu(), "the gate clamped from below"},
      {"ExpertAfter", unscaled_geglu(), "the weights of the expert after", Symptom::swapped_expert},
      {"MissingSlice", unscaled_geglu(), "the last 32 products", Symptom::missing_k_slice},
      {"WritesRowBehind", unscaled_geglu(), "D: a write outside", Symptom::out_of_bounds},
      {"ReadsProbBehind", unscaled_geglu(), "no group owns are NaN: they are read", Symptom::padding_read},
  };
}

class PlantedEpilogues : public testing::TestWithParam<Planted> {};

TEST_P(PlantedEpilogues, AreFailedAndNamed) {
  const CheckResult result = checked(GetParam().kind, GetParam().bug);
  ASSERT_TRUE(result.failure) << "passed";
  EXPECT_STREQ(symptom_name(result.failure->symptom), symptom_name(GetParam().symptom))
      << result.failure->sentence;
  EXPECT_NE(result.failure->sentence.find(GetParam().sentence), std::string::npos)
      << result.failure->sentence;
  std::printf("%s: %s\n", symptom_name(result.failure->symptom), result.failure->sentence.c_str());
}
INSTANTIATE_TEST_SUITE_P(Host, PlantedEpilogues, testing::ValuesIn(bugs()),
                         [](const testing::TestParamInfo<Planted>& info) {
                           return format("%d_%s", int(info.index), info.param.bug);
                         });

void passes(const Kind& kind, const std::string& twin = "") {
  const CheckResult result = checked(kind, twin);
  EXPECT_FALSE(result.failure) << result.failure->sentence;
  std::printf("%s\n", result.note.c_str());
}

// In these planted bugs a choice of the reader changes a bit, though it may not.
TEST(PlantedEpilogues, InOneChoiceAloneAreFound) {
  Kind kind = quant(true, false);
  gg::Setup setup = setup_of(kind);
  setup.request.tile = {256, 256, 2};
  setup.same_bits = {true, true, {{256, 256, 2}, {128, 256, 1}}};
  const CheckOptions options{.seed = 3, .graph_replay = true};
  const auto found = [&](const char* bug) {
    const CheckResult result = check_problem(*host_machine(), setup, Product(bug), kind.shape, options);
    return result.failure ? result.failure->sentence : "passed";
  };
  EXPECT_EQ(found(""), "passed");
  EXPECT_NE(found("DiscreteInOrder").find("random data with discrete weights: the outputs differ"),
            std::string::npos);
  EXPECT_NE(found("TileMatters")
                .find("random data with tile 128x256 in a cluster of 1: the outputs differ from those "
                      "without, first in amax"),
            std::string::npos);
}

TEST(CleanEpilogues, OfQuantPass) {
  for (const Format d : {Format::bf16, Format::f16, Format::e4m3, Format::e5m2}) {
    for (const bool bias : {false, true}) {
      Kind kind = quant(d == Format::e4m3 || d == Format::e5m2, bias);
      kind.d = d;
      passes(kind);
      kind.epilogue.bias_format = Format::f32;
      kind.epilogue.discrete_col_sfd = true;
      kind.weights = Weights::discrete;
      kind.layout = bias ? BLayout::nk : BLayout::kn;
      passes(kind, "NotFused");
    }
  }
}

TEST(CleanEpilogues, OfFp4Pass) {
  for (const BlockFormat format : {BlockFormat::mxfp4, BlockFormat::nvfp4, BlockFormat::fp4_ue8m0_16}) {
    Kind kind = quant(false, true);
    kind.format = format;
    if (format == BlockFormat::mxfp4) kind.d = Format::f32;
    kind.epilogue.bias_format = Format::f16;
    kind.weights = Weights::discrete;
    passes(kind);
  }
}

TEST(CleanEpilogues, OfGatedPass) {
  for (const Operator op : {Operator::glu, Operator::glu_hadamard}) {
    for (const Activation activation : {Activation::swiglu, Activation::geglu}) {
      for (const Format d : {Format::f16, Format::bf16}) {
        Kind kind = gated(op, activation, activation == Activation::geglu);
        kind.d = d;
        kind.c = d == Format::f16 ? Format::bf16 : Format::f16;
        passes(kind);
      }
    }
  }
}

TEST(CleanEpilogues, WithoutScalesPass) {
  for (const Activation activation : {Activation::swiglu, Activation::geglu}) {
    Kind kind = unscaled(activation);
    passes(kind);
    kind.epilogue.bias = false;
    passes(kind);
  }
}

// Large products are judged by up to 32 rows of three groups: here no group has as many.
TEST(CleanEpilogues, OfManyProductsInGroupsOfFewRowsPass) {
  Kind kind = unscaled_swiglu();
  kind.shape = {std::vector<int>(10, 30), {1792}, {544}};
  passes(kind);
}

// A gate of -88 has a sigma that may be 0, so times an up of infinity it is NaN or -infinity,
// and no other.
TEST(CleanEpilogues, WhoseGateVanishesBeforeAnInfiniteUpPass) {
  Kind kind = unscaled_swiglu();
  kind.epilogue.bias = false;
  kind.shape = {{2}, {64}, {8}};
  GivenOperands given;
  given.shape = kind.shape;
  given.rows_of_a = 2;
  given.of_epilogue = {{1}, {1, 1}, {}, {}};
  given.a.resize(2 * 8 * 2);
  given.b.resize(64 * 8 * 2);
  store_code(given.a.data(), Format::bf16, 0, encode(Format::bf16, 1));
  for (int64_t col = 0; col < 64; ++col)
    store_code(given.b.data(), Format::bf16, col * 8, encode(Format::bf16, col < 32 ? -88 : INFINITY));
  const auto result = [&](float d) {
    const Launch launch = [d](const Problem& p, cudaStream_t stream) {
      Product()(p, stream);
      for (int64_t col = 0; col < 32; ++col)
        store_code(p.d<void>(), Format::bf16, col, encode(Format::bf16, double(d)));
    };
    return check_given(*host_machine(), setup_of(kind), launch, given);
  };
  for (const float right : {NAN, -INFINITY})
    EXPECT_FALSE(result(right).failure) << result(right).failure->sentence;
  for (const float wrong : {INFINITY, 0.0f, -1e38f}) {
    ASSERT_TRUE(result(wrong).failure) << wrong;
    EXPECT_NE(result(wrong).failure->sentence.find("expected -inf (0xFF80) or nan (0x7FC0), got"),
              std::string::npos)
        << result(wrong).failure->sentence;
  }
}

}  // namespace
}  // namespace gg
