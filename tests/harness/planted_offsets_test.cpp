// SPDX-License-Identifier: MIT
//
// Planted bugs in where things begin: the scales of later experts, atoms of scales in another
// order, an output that is written in part. Each must be named. And how many elements of a large
// problem are said to be wrong.

#include <gtest/gtest.h>

#include "common/harness/harness.cuh"
#include "common/harness/verify/product.h"
#include "common/harness/verify/right_outputs.h"
#include "common/harness/verify/trials.h"
#include "epilogue_product.h"
#include "scaled_product.h"

namespace gg {
namespace {

using scaled::Product;
using scaled::View;

const CheckOptions kOptions{.seed = 3, .graph_replay = true, .neighbours = true};

Setup scaled_setup(BlockFormat format = BlockFormat::mxfp8) {
  gg::Setup setup;
  const Format element = block_scaling(format).element;
  setup.request.formats = {element, element, Format::bf16, format};
  setup.request.b_layout = BLayout::nk;
  setup.host_offsets = false;
  return setup;
}

void expect_named(const Setup& setup, const Launch& launch, const Shape& shape, const char* words) {
  const CheckResult result = check_problem(*host_machine(), setup, launch, shape, kOptions);
  ASSERT_TRUE(result.failure) << "passed";
  EXPECT_EQ(result.failure->symptom, Symptom::wrong_scale) << result.failure->sentence;
  EXPECT_NE(result.failure->sentence.find(words), std::string::npos) << result.failure->sentence;
}

// K of 160 has five blocks of 32, in two atoms: later experts begin in the middle of earlier ones.
TEST(ScaleOffsets, OfLaterExpertsInBAreNamed) {
  Product product;
  product.sfb = [](const View& v, int group, int col, int64_t block) {
    const int64_t stride = v.of_b.row_atoms() * (v.of_b.blocks / 4) * ScaleLayout::kAtomBytes;
    return v.p.scaled().sfb + group * stride + v.of_b.offset(col, block);
  };
  expect_named(
      scaled_setup(), product, {{40, 33, 50}, {72}, {160}},
      "B scaled from a wrong offset: group 1 has what lies 512 bytes before its own scales, and other "
      "groups are off too");
}

TEST(ScaleOffsets, OfLaterGroupsInAAreNamed) {
  Product product;
  product.sfa = [](const View& v, int row, int r, int64_t block) {
    return v.p.scaled().sfa + v.of_a.offset(r < row ? row - 128 : row, block);
  };
  expect_named(scaled_setup(), product, {{300, 200}, {72}, {160}},
               "A scaled from a wrong offset: group 1 has what lies 1024 bytes before its own scales");
}

// Tiles of 256 columns, whose scales are stored in one order and taken in the other: the Break of
// 08c takes them so. Blocks beyond K are zeros there.
TEST(ScaleOffsets, OfAtomsInMemorysOrderAreNamed) {
  for (const auto& [format, depth] : {std::pair{BlockFormat::mxfp4, 2}, {BlockFormat::nvfp4, 4}}) {
    for (const bool taken : {true, false}) {
      for (const int k : {96, 128, 640}) {
        Product product;
        product.sfb = [depth = depth, taken](const View& v, int group, int col, int64_t block) {
          static const uint8_t zero = 0;
          std::vector<std::pair<int64_t, int64_t>> stored, order;  // (atom of rows, atom along K)
          for (int64_t i = 0; i < 2; ++i) {
            for (int64_t atom = 0; atom < depth; ++atom) stored.emplace_back(i, atom);
          }
          for (int64_t atom = 0; atom < depth; ++atom) {
            for (int64_t i = 0; i < 2; ++i) order.emplace_back(i, atom);
          }
          if (!taken) stored.swap(order);
          const int64_t slice = block / 4 / depth * depth, tile = col / 256 * 256;
          const std::pair<int64_t, int64_t> wanted{(col - tile) / 128, block / 4 - slice};
          const auto [i, atom] =
              stored[size_t(std::find(order.begin(), order.end(), wanted) - order.begin())];
          const int64_t row = tile + i * 128 + col % 128, from = (slice + atom) * 4 + block % 4;
          const int64_t place = group * v.of_b.bytes() + v.of_b.offset(row, from);
          const bool is_there = from < v.of_b.block_atoms() * 4 && place < v.p.groups() * v.of_b.bytes();
          return is_there ? v.p.scaled().sfb + place : &zero;
        };
        expect_named(scaled_setup(format), product, {{40, 0, 33}, {272}, {k}},
                     "atoms of SFB in the order of memory");
      }
    }
  }
}

TEST(ScaleOffsets, OfLaterExpertsAreNamedBeforeAnEpilogue) {
  gg::Setup setup = scaled_setup();
  setup.m_multiple = 256;
  setup.request.epilogue = {.op = Operator::quant, .amax = true};
  Shape shape{{256, 256, 256}, {144}, {96}};
  shape.rows = 904;
  expect_named(
      setup, planted::Product("ScaleStrideTooShort"), shape,
      "the scales of B of each expert 512 bytes behind those of the one before, 1024 are right: N is "
      "not rounded up to 128");
}

// As --bench finds it, which launches once: what it says of an output that is written in part.
Failure said_of_part(const Setup& setup, const Shape& shape, const Launch& product, const char* poison) {
  const std::unique_ptr<Machine> machine = host_machine();
  Buffers buffers(*machine, setup, shape);
  buffers.fill_operands({Fill::Kind::normal, 0, 7, 0});
  const auto in_part = [&] {
    product(buffers.problem(), nullptr);
    const Region& d = buffers.layout().groups[0].d;
    for (int64_t row = 100; row < d.rows; ++row) {
      char* const at =
          static_cast<char*>(buffers.d()) + bytes_of(setup.request.formats.d, d.offset + row * d.ld);
      std::fill_n(at, bytes_of(setup.request.formats.d, d.cols), *poison);
    }
  };
  EXPECT_FALSE(right_on_random_data(*machine, buffers, 7, in_part));
  return why_wrong_on_random_data(*machine, buffers, 7);
}

TEST(AnOutputWrittenInPart, IsNamedWhereAProblemIsTimed) {
  const Failure product = said_of_part(scaled_setup(), {{256, 40}, {72}, {160}}, Product(), "\xFF");
  EXPECT_EQ(product.symptom, Symptom::unwritten);
  EXPECT_EQ(
      product.sentence,
      "11232 of 21312 elements are wrong; 11232 were never written, the first of them in group 0 row 100 "
      "column 0");
  gg::Setup setup = scaled_setup();
  setup.request.epilogue = {.op = Operator::quant, .amax = true};
  Shape shape{{256, 256}, {80}, {96}};
  shape.rows = 512;
  const Failure epilogue = said_of_part(setup, shape, planted::Product(""), "\xFF");
  EXPECT_EQ(epilogue.symptom, Symptom::unwritten);
  EXPECT_EQ(epilogue.sentence,
            "D: 12480 of 40960 values are wrong; the first: group 0 row 100 column 0: it was never written");
}

TEST(AnOutputWrittenInPart, IsNoPartOfOtherMistakes) {
  const Failure zeros = said_of_part(scaled_setup(), {{256, 40}, {72}, {160}}, Product(), "\x00");
  EXPECT_NE(zeros.symptom, Symptom::unwritten) << zeros.sentence;
}

// A large problem has two witnesses, and both reject what is wrong.
TEST(WrongElements, AreNeverMoreThanThereAre) {
  const std::unique_ptr<Machine> machine = host_machine();
  gg::Setup setup;
  const Shape shape{{1, 129}, {1024}, {72}};
  Buffers buffers(*machine, setup, shape);
  buffers.fill_operands({Fill::Kind::integers, 16, 1, 0});
  buffers.poison(0xFF);
  const Limit exact{Format::bf16, true, 0, false};
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Comparison seen = compare_groups(*machine, buffers, buffers.layout().groups, exact, seed);
    EXPECT_EQ(seen.checked, 130 * 1024);
    EXPECT_EQ(seen.failures, 130 * 1024) << seed;
  }
}

}  // namespace
}  // namespace gg
