// SPDX-License-Identifier: MIT
//
// Block-scaled problems from the command line to their files: the names of their formats, padded
// groups, what --describe says, exact sums, scales in .npy files. That wrong launches fail is the
// subject of planted_scales.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "common/harness/base/npy.h"
#include "common/harness/bench/cublas.h"
#include "common/harness/harness.cuh"
#include "common/harness/problem/shapes.h"
#include "common/harness/run/help.h"
#include "common/harness/run/options.h"
#include "common/harness/run/report.h"
#include "common/harness/verify/problem_files.h"
#include "common/harness/verify/product.h"
#include "common/harness/verify/right_outputs.h"
#include "common/harness/verify/trials.h"
#include "scaled_product.h"
#include "tests/process.h"

namespace gg {
namespace {

using testing_gg::error_of;
using testing_gg::Folder;
using Extents = std::vector<int64_t>;

const std::vector<Formats> kFormats = {
    formats_of(BlockScaled<e4m3, 32, ue8m0, bf16>{}), formats_of(BlockScaled<e4m3, 32, ue8m0, float>{}),
    formats_of(BlockScaled<e2m1, 32, ue8m0, bf16>{}), formats_of(BlockScaled<e2m1, 16, ue4m3, f16>{})};

Chapter padded() {
  return {.id = "x_padded",
          .k_multiple = 32,
          .n_multiple = 8,
          .m_multiple = 256,
          .pads_groups = true,
          .multiple_reason = "groups are padded",
          .sets = {"smoke", "edges", "decode", "step"},
          .options = {"format"},
          .tiles = {{256, 256}},
          .b_layouts = {BLayout::nk}};
}

Options parsed(std::vector<std::string> words) {
  const Chapter chapter = padded();
  words.insert(words.begin(), chapter.id);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_options(int(argv.size()), argv.data(), chapter, kFormats);
}
std::vector<Shape> shapes_of(const std::vector<std::string>& words) {
  const Options options = parsed(words);
  std::vector<std::string> left_out;
  const std::vector<Shape> shapes = shapes_for(options, padded(), options.sets, left_out);
  EXPECT_TRUE(left_out.empty());
  return shapes;
}

TEST(Formats, HaveTheNamesOfTheirElementsScalesAndBlocks) {
  EXPECT_EQ(formats_of(BlockScaled<e4m3, 32, ue8m0, bf16>{}).name(), "mxfp8");
  EXPECT_EQ(formats_of(BlockScaled<e5m2, 32, ue8m0, bf16>{}).name(), "mxfp8_e5m2");
  EXPECT_EQ(formats_of(BlockScaled<e2m1, 32, ue8m0, bf16>{}).name(), "mxfp4");
  EXPECT_EQ(formats_of(BlockScaled<e2m1, 16, ue4m3, bf16>{}).name(), "nvfp4");
  EXPECT_EQ(formats_of(BlockScaled<e2m1, 16, ue8m0, bf16>{}).name(), "fp4_ue8m0_16");
  EXPECT_EQ(block_format(Format::e2m1, 32, Format::ue4m3), BlockFormat::none);
  EXPECT_EQ(block_format(Format::e4m3, 16, Format::ue8m0), BlockFormat::none);
}

TEST(Formats, AreChosenByName) {
  EXPECT_EQ(parsed({}).request.formats, kFormats[0]);
  EXPECT_EQ(parsed({"--format", "mxfp8", "--d-dtype", "f32"}).request.formats, kFormats[1]);
  EXPECT_EQ(parsed({"--format", "nvfp4"}).request.formats, kFormats[3]);
  const auto error = error_of([] { parsed({"--format", "nvfp5"}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Exit::bad_input);
  EXPECT_STREQ(error->what(),
               "--format nvfp5: x_padded has mxfp8 -> bf16, mxfp8 -> f32, mxfp4 -> bf16, nvfp4 -> f16");
  EXPECT_EQ(kernel_name(padded(), parsed({"--format", "mxfp8", "--d-dtype", "f32"}), {}, ""),
            "grouped_gemm d=f32");
  EXPECT_EQ(kernel_name(padded(), parsed({"--format", "nvfp4"}), {}, ""), "grouped_gemm");
}

// The spelling of a chapter's main.cu, without running it.
TEST(Launch, GetsTheTagOfTheFormatsInUse) {
  const auto lambda = []<class Element, int BLOCK, class Scale, class D>(
                          BlockScaled<Element, BLOCK, Scale, D>) { return int(sizeof(D)) * 100 + BLOCK; };
  EXPECT_EQ(lambda(BlockScaled<e2m1, 16, ue4m3, float>{}), 416);
}

TEST(PaddedGroups, OfASetAreRoundedUpAndOfAReaderRefused) {
  const Shape smoke = shapes_of({"--set", "smoke"})[0];
  EXPECT_EQ(smoke.m, (std::vector<int>{256, 0, 256, 256}));
  EXPECT_EQ(smoke.describe(), "G=4 M=768 (0..256) padded from M=86 N=256 K=128");
  EXPECT_EQ(smoke.flops(), 2.0 * 86 * 256 * 128);
  const auto error = error_of([] { shapes_of({"--m", "256,100", "--n", "256", "--k", "128"}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Exit::bad_input);
  EXPECT_STREQ(error->what(),
               "M=100 of group 1: x_padded wants multiples of 256 (groups are padded): round up to 256");
  EXPECT_EQ(shapes_of({"--m", "256,512", "--n", "256", "--k", "128"})[0].describe(),
            "G=2 M=768 (256..512) N=256 K=128");
}

TEST(PaddedGroups, OfEverySetFitTheChapter) {
  for (const char* set : {"smoke", "edges", "decode", "step"}) {
    const std::vector<Shape> shapes = shapes_of({"--set", set});
    EXPECT_FALSE(shapes.empty());
    for (size_t i = 0; i < shapes.size(); ++i) {
      for (const int rows : shapes[i].m) EXPECT_EQ(rows % 256, 0) << shapes[i].describe();
      for (size_t j = 0; j < i && is_edges(set); ++j) {
        EXPECT_FALSE(shapes[i].m == shapes[j].m && shapes[i].n == shapes[j].n && shapes[i].k == shapes[j].k)
            << shapes[i].describe();
      }
    }
  }
  EXPECT_EQ(shapes_of({"--set", "step"}).size(), 14u);  // as many measurements as before padding
}

TEST(PaddedGroups, KeepToTheirMultipleUnderOtherOffsets) {
  const Shape other = other_offsets(shapes_of({"--set", "smoke"})[0], 256);
  for (const int rows : other.m) EXPECT_EQ(rows % 256, 0);
  EXPECT_TRUE(other.unpadded.empty());
}

TEST(Description, ListsScalesAndEnds) {
  const std::string about = describe_text(padded(), kFormats);
  for (const char* part :
       {"{\"in\": \"mxfp8\", \"d\": \"bf16\", \"element\": \"e4m3\", \"scale\": \"ue8m0\", \"block\": 32, "
        "\"k_multiple\": 32, \"n_multiple\": {\"nk\": 8}}",
        "\"name\": \"sfa\", \"shape\": \"[ceil(M/128),ceil(K/block/4),32,4,4]\"",
        "\"name\": \"sfb\", \"shape\": \"[G,ceil(N/128),ceil(K/block/4),32,4,4]\"",
        "\"name\": \"offsets\", \"shape\": \"[G]\", \"type\": \"i32\"", "the even one low",
        "\"options\": [\"format\"]"}) {
    EXPECT_NE(about.find(part), std::string::npos) << part << "\n" << about;
  }
  EXPECT_NE(help_text(padded(), kFormats).find("--format NAME"), std::string::npos);
}

TEST(Peers, AreNotCalledWithBlockScales) {
  EXPECT_NE(unfit("cublas_loop", kFormats[0], {{256}, {256}, {128}}), "");
}

Setup setup_of(BlockFormat format) {
  const Format element = block_scaling(format).element;
  Setup setup;
  setup.request.formats = {element, element, Format::bf16, format};
  setup.request.b_layout = BLayout::nk;
  setup.host_offsets = false;
  return setup;
}

// Stores as D what the host's reference finds.
void store_reference(const Buffers& buffers) {
  const Format d = buffers.setup().request.formats.d;
  for (const Group& group : buffers.layout().groups) {
    std::vector<double> sums(size_t(group.m) * size_t(group.n)), sizes(sums.size());
    reference_rows(buffers.matrices(), group, 0, group.m, sums.data(), sizes.data());
    for (int64_t i = 0; i < int64_t(sums.size()); ++i) {
      const int64_t element = group.d.offset + i / group.n * group.d.ld + i % group.n;
      store_code(buffers.d(), d, element, encode(d, sums[size_t(i)]));
    }
  }
}

// The second witness takes strips of columns; these groups have three, the last one narrow.
TEST(LargeProblems, HaveASecondWitnessThatAgrees) {
  const std::unique_ptr<Machine> host = host_machine();
  std::vector<gg::Setup> setups(2);
  setups[1].request.b_layout = BLayout::nk;
  for (const BlockFormat format : kBlockFormats) setups.push_back(setup_of(format));
  for (const gg::Setup& setup : setups) {
    Buffers buffers(*host, setup, {{256, 0, 256}, {1088}, {64}});
    buffers.fill_operands({Fill::Kind::normal, 0, 1, 0});
    store_reference(buffers);
    const std::vector<Group>& groups = buffers.layout().groups;
    const Limit limit = random_limit(setup);
    for (uint64_t seed = 0; seed < 8; ++seed) {
      EXPECT_EQ(compare_groups(*host, buffers, groups, limit, seed).failures, 0) << seed;
    }
    buffers.poison(0xFF);
    const Comparison wrong = compare_groups(*host, buffers, groups, limit, 0);
    EXPECT_EQ(wrong.failures, wrong.checked) << "what both reject counts once";
  }
}

// Timed launches are judged in every set of buffers that they went through.
TEST(Sets, ThatAReplayLeavesOutAreSeen) {
  const std::unique_ptr<Machine> host = host_machine();
  BufferSets sets;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    sets.push_back(std::make_unique<Buffers>(*host, gg::Setup{}, Shape{{33, 0, 5}, {40}, {48}}));
    sets.back()->fill_operands({Fill::Kind::normal, 0, seed, 0});
  }
  const auto replay = [&](int left_out) {
    for (int set = 0; set < 3; ++set) {
      if (set != left_out) store_reference(*sets[size_t(set)]);
    }
  };
  EXPECT_TRUE(right_in_sets(*host, sets, 3, [&] { replay(-1); }));
  for (int set = 0; set < 3; ++set) {
    EXPECT_FALSE(right_in_sets(*host, sets, 3, [&] { replay(set); })) << set;
  }
  EXPECT_TRUE(right_in_sets(*host, sets, 2, [&] { replay(2); })) << "a set that was not timed";
}

// The sum of magnitudes of a row times a column stays below 2^24 of the smallest product, so no
// order of adding can round.
TEST(WholeNumbers, HaveExactSumsWithTheirScales) {
  for (const BlockFormat format : kBlockFormats) {
    const int range = whole_numbers(block_scaling(format).element);
    for (const int k : {16, 128, 1000, 8192, 8224, 32768, 1 << 20}) {
      const int used = std::min(range, integer_range(k));
      const ScaleSpans spans = scale_spans(k, used, used);
      EXPECT_GE(spans.a, 0);
      EXPECT_LE(double(k) * used * used * std::ldexp(1, spans.a + spans.b), 0x1p24) << k;
      if (k <= 1000) {
        EXPECT_GE(spans.a, 1) << "scales that are all 1 show nothing";
      }
    }
  }
}

TEST(Fill, MakesWholeNumbersAndPowersOfTwoThenAnyScale) {
  const std::unique_ptr<Machine> host = host_machine();
  for (const BlockFormat format : kBlockFormats) {
    const BlockScaling scaling = block_scaling(format);
    Buffers buffers(*host, setup_of(format), {{40, 0, 200}, {136}, {160}});
    for (const Fill::Kind kind : {Fill::Kind::integers, Fill::Kind::normal}) {
      buffers.fill_operands({kind, 16, 3, 0});
      std::set<float> elements, scales;
      const Layout& layout = buffers.layout();
      for (const Group& group : layout.groups) {
        for (int64_t i = 0; i < int64_t(group.m) * group.k; ++i) {
          const uint32_t code = load_code(buffers.a(), scaling.element, group.a.offset + i);
          elements.insert(decode(scaling.element, code));
        }
        for (int row = 0; row < group.m; ++row) {
          for (int64_t block = 0; block < group.sfa.layout.blocks; ++block) {
            scales.insert(decode(scaling.scale, buffers.sfa()[group.sfa.at(row, block)]));
          }
        }
      }
      int exponent = 0;
      for (const float scale : scales) {
        EXPECT_TRUE(scale > 0) << scaling.name;
        if (kind == Fill::Kind::integers || scaling.scale == Format::ue8m0) {
          EXPECT_EQ(std::frexp(scale, &exponent), 0.5f) << scaling.name;
        }
      }
      EXPECT_GE(scales.size(), kind == Fill::Kind::integers ? 2u : 5u) << scaling.name;
      EXPECT_GE(elements.size(), 11u) << scaling.name;
      for (const float element : elements) {
        EXPECT_FALSE(std::isnan(element)) << scaling.name;
        if (kind == Fill::Kind::integers) {
          EXPECT_EQ(element, std::floor(element)) << scaling.name;
        }
      }
    }
  }
}

TEST(Fill, LeavesNanWhereNobodyOwnsAndZeroInThePadding) {
  const std::unique_ptr<Machine> host = host_machine();
  Buffers buffers(*host, setup_of(BlockFormat::mxfp8), {{40, 100}, {72}, {160}});
  buffers.fill_operands({Fill::Kind::normal, 0, 3, 0});
  const Layout& layout = buffers.layout();
  const ScaleLayout of_a = layout.groups[0].sfa.layout, of_b = layout.groups[0].sfb.layout;
  ASSERT_EQ(of_a.bytes(), 2 * 2 * 512);
  ASSERT_EQ(layout.sfa_start, 2 * 512);
  for (int64_t at = 0; at < layout.sfa_bytes; ++at) {
    const int64_t inside = at - layout.sfa_start;
    const uint8_t code = buffers.sfa()[at];
    if (inside < 0 || inside >= of_a.bytes()) {
      ASSERT_EQ(code, 0xFF);
    } else {
      ASSERT_EQ(code == 0, of_a.is_padding(of_a.slot(inside))) << at;
    }
  }
  for (int64_t at = 0; at < layout.sfb_bytes; ++at) {
    if (at >= 2 * of_b.bytes()) {
      ASSERT_EQ(buffers.sfb()[at], 0xFF);
    } else {
      ASSERT_EQ(buffers.sfb()[at] == 0, of_b.is_padding(of_b.slot(at % of_b.bytes()))) << at;
    }
  }
  buffers.fill_operands({Fill::Kind::normal, 0, 3, 0}, {true, false});
  EXPECT_EQ(buffers.sfa()[layout.groups[0].sfa.at(39, 4)], 0xFF);
  EXPECT_NE(buffers.sfa()[layout.groups[1].sfa.at(0, 4)], 0xFF);
  EXPECT_EQ(buffers.sfb()[layout.groups[0].sfb.at(71, 4)], 0xFF);
  EXPECT_NE(buffers.sfb()[layout.groups[1].sfb.at(0, 4)], 0xFF);
}

TEST(Buffers, RefuseHalvesOfBytesAndGroupsOfTheirOwnSizes) {
  const std::unique_ptr<Machine> host = host_machine();
  const auto refused = [&](const Shape& shape, const char* words) {
    const auto error = error_of([&] { Buffers(*host, setup_of(BlockFormat::nvfp4), shape); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Exit::bad_input);
    EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
  };
  refused({{4}, {8}, {33}}, "K=33: e2m1 packs two elements");
  Shape own{{4}, {8}, {32}};
  own.own_sizes = true;
  refused(own, "no block scales");
}

// More than 2^28 products: all of it by the machine's own reference, some rows by the CPU's.
TEST(Sample, OfALargeProblemSeesItsScales) {
  const std::unique_ptr<Machine> host = host_machine();
  const Shape shape{{600, 500}, {512}, {512}};
  Buffers buffers(*host, setup_of(BlockFormat::nvfp4), shape);
  buffers.fill_operands({Fill::Kind::normal, 0, 3, 0});
  scaled::Product()(buffers.problem(), nullptr);
  const Limit limit = random_limit(buffers.setup());
  const std::vector<Group>& groups = buffers.layout().groups;
  EXPECT_EQ(compare_groups(*host, buffers, groups, limit, 1).failures, 0);
  buffers.sfb()[groups[1].sfb.at(100, 5)] ^= 8;
  EXPECT_GT(compare_groups(*host, buffers, groups, limit, 1).failures, 0);
}

class ScaledFiles : public testing::TestWithParam<BlockFormat> {};

TEST_P(ScaledFiles, HaveTheirShapesAndComeBack) {
  const BlockScaling scaling = block_scaling(GetParam());
  const gg::Setup setup = setup_of(GetParam());
  const Folder first, second;
  const std::unique_ptr<Machine> machine = host_machine();
  const Shape shape{{130, 0, 20}, {72}, {96}, "files"};
  const scaled::Product product;
  write_problem(*machine, setup, product, shape, nullptr, 1, first.path);
  const int64_t row_bytes = int64_t(bytes_of(scaling.element, 96)), atoms = 96 / scaling.block > 4 ? 2 : 1;
  EXPECT_EQ(read_npy(first.at("a.npy")).shape, (Extents{150, row_bytes}));
  EXPECT_EQ(read_npy(first.at("a.npy")).type, "|u1");
  EXPECT_EQ(read_npy(first.at("b.npy")).shape, (Extents{3, 72, row_bytes}));
  EXPECT_EQ(read_npy(first.at("sfa.npy")).shape, (Extents{2, atoms, 32, 4, 4}));
  EXPECT_EQ(read_npy(first.at("sfb.npy")).shape, (Extents{3, 1, atoms, 32, 4, 4}));
  const NpyArray ends = read_npy(first.at("offsets.npy"));
  EXPECT_EQ(ends.shape, Extents{3});
  int32_t values[3];
  std::memcpy(values, ends.data.data(), sizeof values);
  EXPECT_EQ(values[0], 130);
  EXPECT_EQ(values[1], 130);
  EXPECT_EQ(values[2], 150);

  const auto given = read_operands(first.path, setup, {}, false);
  EXPECT_EQ(given->shape.describe(), shape.describe());
  const CheckResult result = check_given(*machine, setup, product, *given);
  EXPECT_FALSE(result.failure) << result.failure->sentence;
  write_problem(*machine, setup, product, given->shape, given.get(), 2, second.path);
  for (const auto& entry : std::filesystem::directory_iterator(first.path)) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(testing_gg::text_of(first.at(name)), testing_gg::text_of(second.at(name))) << name;
  }
}
INSTANTIATE_TEST_SUITE_P(Format, ScaledFiles, testing::ValuesIn(kBlockFormats),
                         [](const auto& info) { return std::string(block_scaling(info.param).name); });

// Writes a .npy again, changed.
void change(const std::string& path, const std::function<void(NpyArray&)>& how) {
  NpyArray array = read_npy(path);
  how(array);
  write_npy(path, array.type, array.shape, array.data.data(), array.data.size());
}

TEST(ScaledFolders, MayHaveRowsBehindTheLastGroup) {
  const gg::Setup setup = setup_of(BlockFormat::mxfp4);
  const Folder folder, again;
  const std::unique_ptr<Machine> machine = host_machine();
  write_problem(*machine, setup, scaled::Product(), {{128, 128}, {72}, {96}, "files"}, nullptr, 1,
                folder.path);
  change(folder.at("offsets.npy"),
         [](NpyArray& ends) { std::memset(ends.data.data() + 4, 0, 4), ends.data[4] = char(128); });
  change(folder.at("sfa.npy"), [](NpyArray& scales) {  // rows 128 and on: NaN must not matter
    const ScaleLayout layout{256, 3};
    for (int64_t at = 512; at < 1024; ++at) {
      if (!layout.is_padding(layout.slot(at))) scales.data[size_t(at)] = char(0xFF);
    }
  });
  const auto given = read_operands(folder.path, setup, {}, false);
  EXPECT_EQ(given->shape.m, (std::vector<int>{128, 0}));
  EXPECT_EQ(given->rows_of_a, 256);
  const CheckResult result = check_given(*machine, setup, scaled::Product(), *given);
  EXPECT_FALSE(result.failure) << result.failure->sentence;
  write_problem(*machine, setup, scaled::Product(), given->shape, given.get(), 2, again.path);
  EXPECT_EQ(testing_gg::text_of(folder.at("sfa.npy")), testing_gg::text_of(again.at("sfa.npy")));
}

TEST(ScaledFolders, NanPassesOnlyWhereAScaleIsNan) {
  const gg::Setup setup = setup_of(BlockFormat::mxfp8);
  const Folder folder;
  const std::unique_ptr<Machine> machine = host_machine();
  write_problem(*machine, setup, scaled::Product(), {{40}, {72}, {96}, "files"}, nullptr, 1, folder.path);
  change(folder.at("sfa.npy"), [](NpyArray& scales) {
    scales.data[size_t(ScaleLayout{40, 3}.offset(7, 1))] = char(0xFF);
  });
  const auto given = read_operands(folder.path, setup, {}, false);
  EXPECT_FALSE(check_given(*machine, setup, scaled::Product(), *given).failure);
  scaled::Product deaf;  // takes the row above for the one with NaN
  deaf.sfa = [](const scaled::View& v, int row, int, int64_t block) {
    return v.p.scaled().sfa + v.of_a.offset(row == 7 ? 6 : row, block);
  };
  EXPECT_TRUE(check_given(*machine, setup, deaf, *given).failure);
}

TEST(ScaledFolders, OfTheWrongKindAreRefusedWithASentence) {
  const gg::Setup setup = setup_of(BlockFormat::nvfp4);
  const std::unique_ptr<Machine> machine = host_machine();
  const auto refusal = [&](const char* file, const std::function<void(NpyArray&)>& how,
                           Chapter chapter = {}) {
    const Folder folder;
    write_problem(*machine, setup, scaled::Product(), {{40, 5}, {72}, {96}, "files"}, nullptr, 1,
                  folder.path);
    change(folder.at(file), how);
    const auto error = error_of([&] { read_operands(folder.path, setup, chapter, false); });
    EXPECT_TRUE(!error || error->code == Exit::bad_input);
    return error ? std::string(error->what()) : "accepted";
  };
  const auto says = [](const std::string& text, const char* words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  says(refusal("sfa.npy", [](NpyArray& x) { std::swap(x.shape[0], x.shape[1]); }),
       "sfa.npy: has shape [2, 1, 32, 4, 4], [1, 2, 32, 4, 4] is wanted");
  says(refusal("sfb.npy", [](NpyArray& x) { x.shape[0] = 1, x.data.resize(x.data.size() / 2); }),
       "sfb.npy: has shape [1, 1, 2, 32, 4, 4], [2, 1, 2, 32, 4, 4] is wanted");
  says(refusal("sfa.npy", [](NpyArray& x) { x.type = "|i1"; }), "sfa.npy");
  says(refusal("sfb.npy", [](NpyArray& x) { x.data.back() = char(0x7F); }), "is NaN, but it is padding");
  says(refusal("a.npy", [](NpyArray& x) { x.type = "|i1"; }), "a.npy");
  says(refusal("offsets.npy", [](NpyArray& x) { x.data[4] = 30; }),
       "offset 1 is 30, less than the 40 before it");
  says(refusal("offsets.npy", [](NpyArray& x) { x.shape[0] = 1, x.data.resize(4); }),
       "the offsets name 1 groups");
  Chapter chapter = padded();
  chapter.n_multiple = chapter.k_multiple = 1;
  says(refusal(
           "a.npy", [](NpyArray&) {}, chapter),
       "M=40 of group 0: x_padded wants multiples of 256");
}

}  // namespace
}  // namespace gg
