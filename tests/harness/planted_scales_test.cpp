// SPDX-License-Identifier: MIT
//
// Planted bugs of block-scaled products, as functions on host memory: each takes a scale or half a
// byte from where a kernel might take it by mistake. The harness must fail and name them, beside
// clean twins that it must pass.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "common/harness/verify/trials.h"
#include "scaled_product.h"

namespace gg {
namespace {

using scaled::Product;
using scaled::View;

struct Planted {
  const char* name;
  Symptom symptom;
  bool only_4_bits;
  Product product;
  const char* trial = "";  // that finds it; empty: any
  bool only_ue4m3 = false, only_block_32 = false;
};
void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

using SfaBug = decltype(Product::sfa);
using SfbBug = decltype(Product::sfb);
Planted of_a(const char* name, SfaBug bug) {
  Planted planted{name, Symptom::wrong_scale, false, {}};
  planted.product.sfa = std::move(bug);
  return planted;
}
Planted of_b(const char* name, SfbBug bug) {
  Planted planted{name, Symptom::wrong_scale, false, {}};
  planted.product.sfb = std::move(bug);
  return planted;
}

const uint8_t* sfb_at(const View& v, int group, int col, int64_t block) {
  return Product().sfb(v, group, col, block);
}
const uint8_t* sfa_at(const View& v, int64_t row, int64_t block) {
  return v.p.scaled().sfa + v.of_a.offset(row, block);
}

std::vector<Planted> bugs() {
  std::vector<Planted> all = {
      of_a("NextBlockOfA", [](const View& v, int row, int,
                              int64_t block) { return sfa_at(v, row, (block + 1) % v.of_a.blocks); }),
      of_b("BlockBeforeOfB",
           [](const View& v, int group, int col, int64_t block) {
             return sfb_at(v, group, col, block ? block - 1 : v.of_b.blocks - 1);
           }),
      of_a("FirstOfFourBlocksOfA",
           [](const View& v, int row, int, int64_t block) { return sfa_at(v, row, block / 4 * 4); }),
      of_b("FirstOfFourBlocksOfB", [](const View& v, int group, int col,
                                      int64_t block) { return sfb_at(v, group, col, block / 4 * 4); }),
      of_a("RowBelow", [](const View& v, int row, int,
                          int64_t block) { return sfa_at(v, std::min(row + 1, v.last_row()), block); }),
      of_b("ColumnBefore", [](const View& v, int group, int col,
                              int64_t block) { return sfb_at(v, group, std::max(col - 1, 0), block); }),
      of_a("RowInsideTheGroup", [](const View& v, int, int r, int64_t block) { return sfa_at(v, r, block); }),
      of_b("NextExpertsScales",
           [](const View& v, int group, int col, int64_t block) {
             return sfb_at(v, (group + 1) % v.p.groups(), col, block);
           }),
      of_b("FirstExpertsScales",
           [](const View& v, int, int col, int64_t block) { return sfb_at(v, 0, col, block); }),
      of_a("RowsOfScalesOneAfterTheOther",
           [](const View& v, int row, int, int64_t block) {
             return v.p.scaled().sfa + row * v.of_a.blocks + block;
           }),
  };
  // tcgen05.mma with a scale id that stays 0: the first of a column's four blocks, two of E2M1.
  const auto stuck = [](const View& v, int64_t block) {
    return block / 4 * 4 + block % (v.scaling.element == Format::e2m1 ? 2 : 1);
  };
  const SfaBug stuck_a = [=](const View& v, int row, int, int64_t block) {
    return sfa_at(v, row, stuck(v, block));
  };
  const SfbBug stuck_b = [=](const View& v, int group, int col, int64_t block) {
    return sfb_at(v, group, col, stuck(v, block));
  };
  Planted both{"BothScaleIdsStuckAtZero", Symptom::wrong_scale, false, {}, "both scale ids are stuck at 0"};
  both.product.sfa = stuck_a;
  both.product.sfb = stuck_b;
  all.push_back(both);
  all.push_back(of_a("ScaleIdOfAStuckAtZero", stuck_a));
  all.push_back(of_b("ScaleIdOfBStuckAtZero", stuck_b));
  for (size_t i = all.size() - 3; i < all.size(); ++i) all[i].only_block_32 = true;
  Planted swapped{"SwappedScales", Symptom::wrong_scale, false, {}};
  swapped.product.sfa = [](const View& v, int row, int, int64_t block) {
    return v.p.scaled().sfb + v.of_b.offset(row % v.p.n(), block);
  };
  swapped.product.sfb = [](const View& v, int, int col, int64_t block) {
    return sfa_at(v, std::min(col, v.last_row()), block);
  };
  all.push_back(swapped);
  Planted a_halves{"SwappedHalvesOfA", Symptom::swapped_halves, true, {}};
  a_halves.product.a_element = [](int64_t element) { return element ^ 1; };
  all.push_back(a_halves);
  Planted b_halves{"SwappedHalvesOfB", Symptom::swapped_halves, true, {}};
  b_halves.product.b_element = a_halves.product.a_element;
  all.push_back(b_halves);
  Planted past{"ScaleOfARowPastTheEnd", Symptom::padding_read, false, {}};
  past.product.masked = [](const View& v, int) {
    return 0.0f * decode(v.scaling.scale, *sfa_at(v, v.last_row() + 1 + 127, 0));
  };
  all.push_back(past);
  Planted neighbour{"ScaleOfTheNextExpert", Symptom::neighbour_read, false, {}};
  neighbour.product.masked = [](const View& v, int group) {
    return 0.0f * decode(v.scaling.scale, *sfb_at(v, std::min(group + 1, v.p.groups() - 1), 0, 0));
  };
  all.push_back(neighbour);
  // A scale taken for a power of two: random data find it, whole numbers have no other scales.
  Planted cut{"ScaleCutToAPowerOfTwo", Symptom::unknown, true, {}, "random data", true};
  cut.product.sfa = [](const View& v, int row, int, int64_t block) {
    static uint8_t codes[128];
    const uint8_t code = *sfa_at(v, row, block) & 0x78;
    codes[code] = code;
    return static_cast<const uint8_t*>(&codes[code]);
  };
  all.push_back(cut);
  return all;
}

std::vector<Planted> twins() {
  // The same products in another order.
  Planted halves{"BothHalvesSwapped", Symptom::unknown, true, {}};
  halves.product.a_element = halves.product.b_element = [](int64_t element) { return element ^ 1; };
  // As the zero-filled end of a tile does.
  Planted padding{"PaddingTimesZero", Symptom::unknown, false, {}};
  padding.product.masked = [](const View& v, int group) {
    float sum = 0;
    for (int64_t block = v.of_a.blocks; block < v.of_a.block_atoms() * 4; ++block) {
      const int row = group ? v.p.offsets().ends()[group - 1] : 0;
      sum += 0.0f * decode(v.scaling.scale, *sfa_at(v, row, block));
    }
    for (int col = v.p.n(); col < v.of_b.row_atoms() * 128; ++col) {
      sum += 0.0f * decode(v.scaling.scale, *sfb_at(v, group, col, 0));
    }
    return sum;
  };
  return {{"Clean", Symptom::unknown, false, {}}, halves, padding};
}

// A ragged problem, and one whose scales fill several atoms of rows, columns and blocks.
const std::vector<Shape> kShapes = {{{40, 0, 33, 5}, {72}, {160}}, {{131, 9}, {136}, {160}}};

Shape one_b() {
  Shape shape = kShapes[0];
  shape.shared_b = true;
  return shape;
}

template <class Body>
void for_each_problem(const Planted& planted, const std::vector<Format>& outputs, Body body) {
  for (const BlockFormat format : kBlockFormats) {
    const BlockScaling scaling = block_scaling(format);
    if (planted.only_4_bits && scaling.element != Format::e2m1) continue;
    if (planted.only_block_32 && scaling.block != 32) continue;
    if (planted.only_ue4m3 && scaling.scale != Format::ue4m3) continue;
    for (const Format d : outputs) {
      Setup setup;
      setup.request.formats = {scaling.element, scaling.element, d, format};
      setup.request.b_layout = BLayout::nk;
      setup.host_offsets = false;
      for (const Shape& shape : kShapes) body(setup, shape);
      if (planted.symptom == Symptom::unknown && !*planted.trial) body(setup, one_b());  // a twin
    }
  }
}
const CheckOptions kOptions{.seed = 3, .graph_replay = true, .neighbours = true};

class PlantedScales : public testing::TestWithParam<Planted> {};
class CleanScales : public testing::TestWithParam<Planted> {};

TEST_P(PlantedScales, AreFailedAndNamed) {
  for_each_problem(GetParam(), {Format::bf16}, [](const gg::Setup& setup, const Shape& shape) {
    const std::string formats = setup.request.formats.name();
    const CheckResult result = check_problem(*host_machine(), setup, GetParam().product, shape, kOptions);
    ASSERT_TRUE(result.failure) << formats << " passed on " << shape.describe();
    EXPECT_STREQ(symptom_name(result.failure->symptom), symptom_name(GetParam().symptom))
        << formats << ": " << result.failure->sentence;
    EXPECT_NE(result.failure->sentence.find(GetParam().trial), std::string::npos) << result.failure->sentence;
    std::printf("%s %s: %s\n", formats.c_str(), symptom_name(result.failure->symptom),
                result.failure->sentence.c_str());
  });
}
TEST_P(CleanScales, Pass) {
  for_each_problem(
      GetParam(), {Format::bf16, Format::f16, Format::f32}, [](const gg::Setup& setup, const Shape& shape) {
        const CheckResult result = check_problem(*host_machine(), setup, GetParam().product, shape, kOptions);
        EXPECT_FALSE(result.failure) << setup.request.formats.name() << ": " << result.failure->sentence;
        EXPECT_LT(result.worst_ratio, 1);
      });
}
const auto name_of = [](const testing::TestParamInfo<Planted>& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Host, PlantedScales, testing::ValuesIn(bugs()), name_of);
INSTANTIATE_TEST_SUITE_P(Host, CleanScales, testing::ValuesIn(twins()), name_of);

}  // namespace
}  // namespace gg
