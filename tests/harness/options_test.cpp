// SPDX-License-Identifier: MIT
//
// The command line of chapters that no build needs: what their limits refuse, which sets they take,
// and the options that come with values of their own.

#include "common/harness/run/options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/harness/bench/cublas.h"
#include "common/harness/bench/peer_names.h"
#include "common/harness/problem/shapes.h"
#include "common/harness/run/help.h"
#include "common/harness/run/report.h"
#include "tests/process.h"

namespace gg {
namespace {

using testing_gg::error_of;

const std::vector<Formats> kFormats = {{Format::bf16, Format::bf16, Format::f32},
                                       {Format::f16, Format::f16, Format::f32},
                                       {Format::bf16, Format::bf16, Format::bf16}};

// Equal groups in steps, as 06b takes them, with every option that has values.
Chapter uniform() {
  return {.id = "x_uniform",
          .k_multiple = 16,
          .n_multiple = 8,
          .m_multiple = 64,
          .multiple_reason = "tiles are whole",
          .equal_groups = true,
          .sets = {"smoke_uniform", "edges_uniform", "prefill", "peers"},
          .numbers = {{"tile-k", {16, 64}, "columns of A that a tile holds at a time", true}},
          .ideas = {{"multicast", "one load for two blocks"}, {"overlap", "stores under the next tile"}},
          .b_layouts = {BLayout::nk, BLayout::kn}};
}
Chapter jagged() { return {.id = "x_jagged", .sets = {"smoke", "edges", "decode", "peers"}}; }

Options parsed(std::vector<std::string> words, const Chapter& chapter = uniform()) {
  words.insert(words.begin(), chapter.id);
  static std::vector<char*> argv;
  argv.clear();
  for (std::string& word : words) argv.push_back(word.data());
  return parse_options(int(argv.size()), argv.data(), chapter, kFormats);
}

std::string refusal(const std::vector<std::string>& words, const Chapter& chapter = uniform()) {
  const auto error = error_of([&] {
    const Options options = parsed(words, chapter);
    std::vector<std::string> left_out;
    shapes_for(options, chapter, options.sets, left_out);
  });
  EXPECT_TRUE(!error || error->code == Exit::bad_input);
  return error ? error->what() : "accepted";
}

std::vector<std::string> problem(const char* m, const char* n, const char* k,
                                 std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--m", m, "--n", n, "--k", k});
  return more;
}

TEST(Limits, EachIsRefusedWithItsNumber) {
  EXPECT_EQ(refusal(problem("64,64", "8", "16")), "accepted");
  EXPECT_EQ(refusal(problem("64,64,70", "8", "16")),
            "M=70 of group 2: x_uniform wants multiples of 64 (tiles are whole): round up to 128");
  EXPECT_EQ(refusal(problem("128,64", "8", "16")),
            "group 1 has 64 rows, group 0 has 128: x_uniform wants equal groups: pad each to 128");
  EXPECT_EQ(refusal(problem("64", "12", "16")),
            "N=12: x_uniform wants multiples of 8 (tiles are whole): pad to 16");
  EXPECT_EQ(refusal(problem("64", "8", "24")),
            "K=24: x_uniform wants multiples of 16 (tiles are whole): pad to 32");
  EXPECT_EQ(refusal(problem("64", "8", "80", {"--tile-k", "64"})),
            "K=80: x_uniform wants multiples of 64 here (--tile-k 64): pad to 128");
  EXPECT_EQ(refusal(problem("64", "8", "80", {"--tile-k", "16"})), "accepted");
}

// Sizes beyond a grid or a tensor map, and sizes that no multiple within int32 follows.
TEST(Limits, OfLargeSizesAreRefusedWithWhatToDo) {
  Chapter chapter = uniform();
  chapter.most_n = 800;
  chapter.most_m = 640;
  chapter.most_b_rows = 100;
  EXPECT_EQ(refusal(problem("640", "800", "96"), chapter), "accepted");
  EXPECT_EQ(refusal(problem("640", "808", "96"), chapter),
            "N=808: the grid of x_uniform covers at most 800 columns: split N");
  EXPECT_EQ(refusal(problem("704", "800", "96"), chapter),
            "M=704 of group 0: the grid of x_uniform covers at most 640 rows: split the group");
  EXPECT_EQ(
      refusal(problem("64,64", "800", "64"), chapter),
      "2 groups of K=64: the tensor map of x_uniform counts at most 100 rows of B: split the problem into "
      "several");
  EXPECT_EQ(refusal(problem("64", "2147483646", "16")),
            "N=2147483646: x_uniform wants multiples of 8 (tiles are whole): give 2147483640");
  const std::string about = describe_text(chapter, kFormats);
  for (const char* limit : {"\"n\": 800", "\"rows_of_a_group\": 640", "\"groups_times_k\": 100"})
    EXPECT_NE(about.find(limit), std::string::npos) << about;
}

TEST(Sets, OfAMixedOneWhatDoesNotFitIsLeftOutAloud) {
  std::vector<std::string> said;
  const std::vector<Shape> shapes = shapes_for({}, uniform(), {"peers"}, said);
  EXPECT_EQ(shapes.size(), 7u);
  for (const Shape& shape : shapes) EXPECT_EQ(shape.m.front(), shape.m.back());
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[1].rfind("G=8 M=16384 (491..4097) N=14336 K=4096 of set peers left out: M=", 0), 0u)
      << said[1];
  EXPECT_EQ(
      said[2],
      "G=32 M=640 (20) N=6144 K=7168 of set peers left out: M=20 of group 0: x_uniform wants multiples of "
      "64 (tiles are whole): round up to 64");
  said.clear();
  EXPECT_EQ(shapes_for({}, jagged(), {"peers"}, said).size(), 10u);
  EXPECT_TRUE(said.empty());

  Chapter steps = uniform();
  steps.sets.push_back("step");
  EXPECT_EQ(shapes_for({}, steps, {"step"}, said).front().m, std::vector<int>(8, 64));
  EXPECT_EQ(said.size(), 6u);  // 1, 2 .. 32 rows
}

TEST(Sets, OthersMustFitAndBeListed) {
  Chapter chapter = uniform();
  chapter.sets = {"smoke", "smoke_uniform"};
  EXPECT_EQ(refusal({"--set", "smoke"}, chapter),
            "M=5 of group 0: x_uniform wants multiples of 64 (tiles are whole): round up to 64");
  EXPECT_EQ(refusal({"--set", "smoke_uniform"}, chapter), "accepted");
  EXPECT_EQ(refusal({"--set", "edges_uniform"}, chapter),
            "--set edges_uniform: x_uniform cannot take this set; --help lists its sets");
}

TEST(Sets, TheUniformOnesFitWithEveryTileOfK) {
  for (const char* tile_k : {"16", "64"}) {
    EXPECT_EQ(refusal({"--set", "smoke_uniform,edges_uniform,prefill", "--tile-k", tile_k}), "accepted");
  }
}

TEST(Sets, EdgesHaveColumnsWhereATileIsOneStepWide) {
  for (const Shape& shape : shape_set("edges", {.n_multiple = 64, .k_multiple = 8, .tile = {64, 64}}))
    EXPECT_GE(shape.n_of(0), 64) << shape.describe();
}

TEST(Sets, DefaultsAreThoseOfTheChapter) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(default_check_sets(uniform()), (Names{"smoke_uniform", "edges_uniform"}));
  EXPECT_EQ(default_bench_sets(uniform()), Names{"prefill"});
  EXPECT_EQ(default_count_sets(uniform()), Names{"smoke_uniform"});
  EXPECT_EQ(default_check_sets(jagged()), (Names{"smoke", "edges"}));
  EXPECT_EQ(default_bench_sets(jagged()), Names{"decode"});
  EXPECT_EQ(default_count_sets(jagged()), Names{"smoke"});
  Chapter chapter = jagged();
  chapter.sets = {"smoke", "smoke_uniform", "peers"};
  EXPECT_EQ(default_check_sets(chapter), (Names{"smoke", "smoke_uniform"}));
  EXPECT_EQ(default_bench_sets(chapter), Names{"peers"});
}

TEST(OwnSizes, FollowTheLists) {
  Chapter chapter = jagged();
  const auto own = [&](OwnSizes own_sizes, const char* n, const char* k) {
    chapter.own_sizes = own_sizes;
    std::vector<std::string> left_out;
    return shapes_for(parsed(problem("5,6", n, k), chapter), chapter, {}, left_out)[0].own_sizes;
  };
  EXPECT_FALSE(own(OwnSizes::never, "8", "16"));
  EXPECT_FALSE(own(OwnSizes::when_listed, "8", "16"));
  EXPECT_TRUE(own(OwnSizes::when_listed, "8,9", "16"));
  EXPECT_TRUE(own(OwnSizes::when_listed, "8", "16,17"));
  EXPECT_TRUE(own(OwnSizes::always, "8", "16"));
  chapter.own_sizes = OwnSizes::never;
  EXPECT_EQ(refusal(problem("5,6", "8,9", "16"), chapter),
            "x_jagged takes one N and one K for all groups: give one number for each");
  chapter.own_sizes = OwnSizes::when_listed;
  std::vector<std::string> left_out;
  const std::vector<Shape> edges = shapes_for({}, chapter, {"edges"}, left_out);
  EXPECT_EQ(std::count_if(edges.begin(), edges.end(), [](const Shape& s) { return s.own_sizes; }), 3);
}

TEST(Types, AreChosenByInputAndOutput) {
  const auto chosen = [](const std::vector<std::string>& words) {
    const Options options = parsed(words);
    return std::string(options.request.formats.name()) + " " + format_info(options.request.formats.d).name +
           (options.other_d ? " told" : "");
  };
  EXPECT_EQ(chosen({}), "bf16 f32");
  EXPECT_EQ(chosen({"--in-dtype", "f16"}), "f16 f32");
  EXPECT_EQ(chosen({"--d-dtype", "bf16"}), "bf16 bf16 told");
  EXPECT_EQ(chosen({"--d-dtype", "f32", "--in-dtype", "f16"}), "f16 f32");
  EXPECT_EQ(refusal({"--d-dtype", "f16"}),
            "--d-dtype f16: x_uniform has bf16 -> f32, f16 -> f32, bf16 -> bf16");
  EXPECT_NE(help_text(uniform(), kFormats).find("Element types: bf16 -> f32; f16 -> f32; bf16 -> bf16."),
            std::string::npos);
}

TEST(Peers, SayWhatTheyCannotTake) {
  const Formats bf16 = {Format::bf16, Format::bf16, Format::bf16}, f32 = kFormats[0],
                f16_out = {Format::bf16, Format::bf16, Format::f16},
                mixed = {Format::bf16, Format::f16, Format::f32};
  const Shape equal{{64, 64}, {8}, {16}}, jagged{{64, 65}, {8}, {16}}, empty{{0, 0}, {8}, {16}},
      other_n{{64, 64}, {8, 16}, {16}}, single{{5}, {8}, {16}};
  Shape shared = jagged, own = single;
  shared.shared_b = own.own_sizes = true;
  for (const char* peer : {"cublas_loop", "cublas_grouped"}) {
    for (const Shape& shape : {equal, jagged, other_n}) {
      EXPECT_EQ(unfit(peer, bf16, shape), "");
      EXPECT_EQ(unfit(peer, f32, shape), "");
      EXPECT_NE(unfit(peer, f16_out, shape), "");
      EXPECT_NE(unfit(peer, mixed, shape), "");
    }
  }
  for (const Shape& shape : {jagged, empty, other_n}) {
    EXPECT_EQ(unfit("cublas_strided", bf16, shape), "wants equal groups");
  }
  EXPECT_EQ(unfit("cublas_strided", f32, equal), "");
  for (const Shape& shape : {equal, own}) {
    EXPECT_EQ(unfit("cublas_plain", bf16, shape), "wants one B for all groups (--shared-b)");
  }
  for (const Shape& shape : {shared, single}) EXPECT_EQ(unfit("cublas_plain", bf16, shape), "");
}

TEST(Peers, AreNamesOfCublasAndPathsOfLibraries) {
  EXPECT_EQ(parsed({"--peer", "cublas_loop,dir/libgg_peer_x.so,cublas_grouped"}).peers,
            (std::vector<std::string>{"cublas_loop", "dir/libgg_peer_x.so", "cublas_grouped"}));
  for (const char* unknown : {"cublas_magic", "libmagic.so", "libgg_peer_magic", ""}) {
    EXPECT_EQ(refusal({"--peer", unknown}), std::string("--peer ") + unknown +
                                                ": cublas_loop, cublas_grouped, cublas_strided and "
                                                "cublas_plain are known, and paths of libraries "
                                                "called libgg_peer_NAME.so");
  }
}

TEST(OwnOptions, AreParsedOrAnsweredWithWhatThereIs) {
  EXPECT_TRUE(parsed({}).request.numbers.empty());
  EXPECT_EQ(parsed({"--tile-k", "64"}).request.numbers.at("tile-k"), 64);
  EXPECT_EQ(refusal({"--tile-k", "32"}), "--tile-k 32: x_uniform has 16, 64");
  EXPECT_TRUE(parsed({}).off.empty());
  EXPECT_EQ(parsed({"--off", "overlap,multicast,overlap"}).off,
            (std::vector<std::string>{"multicast", "overlap"}));
  EXPECT_EQ(refusal({"--off", "multicast,magic"}), "--off magic: x_uniform has multicast, overlap");
  EXPECT_EQ(refusal({"--off", ""}), "--off : x_uniform has multicast, overlap");
  EXPECT_EQ(parsed({}).request.b_layout, BLayout::nk);
  EXPECT_EQ(parsed({"--b-layout", "kn"}).request.b_layout, BLayout::kn);
  EXPECT_EQ(refusal({"--b-layout", "mn"}), "--b-layout mn: x_uniform has nk, kn");
  EXPECT_EQ(parsed({}, jagged()).request.b_layout, BLayout::kn);
  for (const char* option : {"--tile-k", "--off", "--b-layout"}) {
    EXPECT_EQ(refusal({option, "x"}, jagged()),
              std::string(option) + ": x_jagged has no such option; --help lists them");
  }
}

TEST(OwnOptions, ATileAndItsClusterDecideTogether) {
  Chapter chapter = jagged();
  chapter.options = {"tile", "offsets"};
  chapter.tiles = {{256, 256, 2}, {128, 256}, {128, 256, 2}};
  const auto chosen = [&](const std::vector<std::string>& words) {
    const ClusterTileShape tile = parsed(words, chapter).request.tile;
    return format("%dx%d %d", tile.m, tile.n, tile.cluster);
  };
  EXPECT_EQ(chosen({}), "0x0 1") << "the chapter's first";
  EXPECT_EQ(chosen({"--tile", "256x256"}), "256x256 2");
  EXPECT_EQ(chosen({"--tile", "128x256"}), "128x256 1");
  EXPECT_EQ(chosen({"--cluster", "1x1"}), "128x256 1");
  EXPECT_EQ(chosen({"--cluster", "2x1"}), "256x256 2");
  EXPECT_EQ(chosen({"--tile", "128x256", "--cluster", "2x1"}), "128x256 2");
  EXPECT_EQ(chosen({"--cluster", "1x1", "--tile", "128x256"}), "128x256 1");
  EXPECT_EQ(
      refusal({"--tile", "256x256", "--cluster", "1x1"}, chapter),
      "--tile 256x256 --cluster 1x1: x_jagged has 256x256 with 2x1, 128x256 with 1x1, 128x256 with 2x1");
  EXPECT_EQ(refusal({"--cluster", "4x1"}, chapter), "--cluster 4x1: x_jagged has 2x1, 1x1");
  EXPECT_EQ(refusal({"--tile", "64x64"}, chapter), "--tile 64x64: x_jagged has 256x256, 128x256");
  EXPECT_NE(help_text(chapter, kFormats)
                .find("Tiles and clusters: 256x256 with 2x1, 128x256 with 1x1, 128x256 with 2x1."),
            std::string::npos);
  EXPECT_NE(describe_text(chapter, kFormats).find("\"clusters\": [\"2x1\", \"1x1\"]"), std::string::npos);
  chapter.one_tile_for_others = true;
  EXPECT_EQ(chosen({"--offsets", "i64", "--tile", "256x256"}), "256x256 2") << "its block's size";
  EXPECT_EQ(refusal({"--offsets", "i64", "--tile", "256x256", "--cluster", "2x1"}, chapter),
            "--cluster 2x1: with other types, offsets or layouts of B than its first, x_jagged has tiles of "
            "256x256 alone");
  chapter.tiles = {{128, 128}, {128, 256}};
  EXPECT_EQ(refusal({"--cluster", "1x1"}, chapter),
            "--cluster: x_jagged has no such option; --help lists them");
}

TEST(OwnOptions, ALayoutWithoutAChoiceIsNone) {
  Chapter chapter = jagged();
  chapter.b_layouts = {BLayout::nk};
  EXPECT_EQ(parsed({}, chapter).request.b_layout, BLayout::nk);
  EXPECT_EQ(refusal({"--b-layout", "nk"}, chapter),
            "--b-layout: x_jagged has no such option; --help lists them");
  EXPECT_NE(describe_text(chapter, kFormats).find("\"shape\": \"[G,N,K]\""), std::string::npos);
}

TEST(KernelName, SaysWhatWasAskedForBeyondTheDefaults) {
  const auto name = [](const std::vector<std::string>& words, const char* peer = "",
                       ClusterTileShape tile = {}) {
    return kernel_name(uniform(), parsed(words), tile, peer);
  };
  const std::vector<std::string> all = {"--off", "overlap,multicast", "--tile-k", "16", "--d-dtype",
                                        "bf16",  "--b-layout",        "kn"};
  EXPECT_EQ(name({}), "grouped_gemm");
  EXPECT_EQ(name({}, "", {128, 64}), "grouped_gemm 128x64");
  EXPECT_EQ(name({"--off", "overlap"}), "grouped_gemm off=overlap");
  EXPECT_EQ(name(all, "", {128, 64}), "grouped_gemm 128x64 tile-k=16 off=multicast+overlap d=bf16 b=kn");
  EXPECT_EQ(name(all, "cublas_loop", {128, 64}), "cublas_loop b=kn");
  EXPECT_EQ(name({}, "cublas_loop"), "cublas_loop d=f32");
  EXPECT_EQ(name({"--off", "overlap"}, kAllIdeas, {128, 64}), "all_ideas 128x64 off=overlap");
  EXPECT_EQ(name({"--sustained"}), "grouped_gemm sustained");
  EXPECT_EQ(name({"--sustained"}, "cublas_loop"), "cublas_loop d=f32 sustained");
}

TEST(KernelName, SaysTheClusterWhereThereIsAChoice) {
  Chapter chapter = jagged();
  chapter.options = {"tile"};
  chapter.tiles = {{256, 256, 2}, {128, 256}, {128, 256, 2}};
  const auto name = [&](const ClusterTileShape& tile, const char* peer = "") {
    return kernel_name(chapter, parsed({}, chapter), tile, peer);
  };
  EXPECT_EQ(name(chapter.tiles[0]), "grouped_gemm 256x256 2x1");
  EXPECT_EQ(name(chapter.tiles[1]), "grouped_gemm 128x256 1x1");
  EXPECT_EQ(name(chapter.tiles[2]), "grouped_gemm 128x256 2x1");
  EXPECT_EQ(name({}), "grouped_gemm");
  EXPECT_EQ(name(chapter.tiles[0], "cublas_loop").find("2x1"), std::string::npos);
  chapter.tiles = {{128, 128}};
  EXPECT_EQ(name(chapter.tiles[0]), "grouped_gemm 128x128");
}

TEST(OwnOptions, AreInHelpAndDescription) {
  const std::string help = help_text(uniform(), kFormats), about = describe_text(uniform(), kFormats);
  for (const char* part :
       {"check the sets smoke_uniform, edges_uniform, then time prefill", "emulator count smoke_uniform",
        "--tile-k 16|64", "with --tile-k T, K a multiple of T", "--off", "multicast",
        "one load for two blocks", "--b-layout", "Layouts of B: nk, kn.",
        "M a multiple of 64: tiles are whole; equal groups,"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part << "\n" << help;
  }
  for (const char* part :
       {"\"m_multiple\": 64, \"equal_groups\": true", "\"options\": [\"tile-k\", \"off\", \"b-layout\"]",
        "\"numbers\": [{\"name\": \"tile-k\", \"values\": [16, 64], \"divides_k\": true}]",
        "\"ideas\": [\"multicast\", \"overlap\"]", "\"b_layouts\": [\"nk\", \"kn\"]"}) {
    EXPECT_NE(about.find(part), std::string::npos) << part << "\n" << about;
  }
  for (const char* option : {"--tile-k", "--off", "--b-layout"}) {
    EXPECT_EQ(help_text(jagged(), kFormats).find(option), std::string::npos) << option;
  }
}

}  // namespace
}  // namespace gg
