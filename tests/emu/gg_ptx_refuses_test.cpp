// SPDX-License-Identifier: MIT
//
// The refusals of gg-ptx, and their exit codes.

#include <gtest/gtest.h>

#include "tests/emu/gg_ptx.h"

namespace {

using namespace testing_gg;

// ---- what is refused ----

struct Refusal {
  const char* name;
  std::vector<std::string> words;  // behind the file; "@" begins a file name in the test's folder
  const char* says;
};
void PrintTo(const Refusal& r, std::ostream* out) { *out << r.name; }

class GgPtxRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(GgPtxRefuses, WithOneSentence) {
  const Files files;
  files.npy("x.npy", counting(64));
  files.npy("bits.npy", counting(16));
  files.npy("big.npy", counting(64), ">f4");
  write_text(files.at("block"), std::string(24, '\0'));
  write_text(files.at("text.npy"), "no array");
  const std::string limits =
      header("sm_90a") +
      ".visible .entry most(.param .u32 n) .maxntid 64, 2\n{ ret; }\n"
      ".visible .entry exactly() .reqntid 96\n{ ret; }\n"
      ".visible .entry pairs() .explicitcluster .reqnctapercluster 2\n{ ret; }\n"
      ".visible .entry few() .maxclusterrank 2\n{ ret; }\n"
      ".visible .entry any() .explicitcluster\n{ ret; }\n"
      ".visible .entry map(.param .align 64 .b8 m[128])\n{ ret; }\n"
      ".visible .entry room()\n{ .shared .b8 a[1000]; .reg .b32 %r; mov.u32 %r, a; ret; }\n";
  files.ptx(limits, "limits.ptx");
  files.ptx(kScale, "scale.ptx");
  files.ptx(".version 8.0\n.target sm_120a\n.address_size 64\n.visible .entry f() { ret; }\n", "later.ptx");
  files.ptx(
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f() { .reg .b32 %r<4>; add.u32 %r1, "
      "%r2 %r3; }\n",
      "broken.ptx");
  std::vector<std::string> words;
  for (std::string word : GetParam().words) {
    const size_t at = word.find('@');
    words.push_back(at == std::string::npos ? word : word.substr(0, at) + files.at(word.substr(at + 1)));
  }
  const Outcome outcome = gg_ptx(words);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(one_line_with(outcome.err, GetParam().says)) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

// The file, buffers, and the rest.
std::vector<std::string> scale(const std::vector<std::string>& rest) {
  std::vector<std::string> words = {"@scale.ptx", "--buf", "x=in:@x.npy", "--buf", "y=zero:256"};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}
// A launch of scale, all but its arguments.
std::vector<std::string> launch(const std::vector<std::string>& rest) {
  std::vector<std::string> words = scale({"--entry", "scale", "--grid", "1", "--block", "64"});
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}
std::vector<std::string> arguments(const std::vector<std::string>& values) {
  std::vector<std::string> words = launch({});
  for (const std::string& value : values) words.insert(words.end(), {"--arg", value});
  return words;
}
std::vector<std::string> limited(const std::string& kernel, const std::string& grid, const std::string& block,
                                 const std::vector<std::string>& rest = {}) {
  std::vector<std::string> words = {"@limits.ptx", "--entry", kernel, "--grid", grid, "--block", block};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}
std::vector<std::string> map(const std::string& spec) {
  return limited("map", "1", "32", {"--buf", "b=zero:65536", "--arg", spec});
}

INSTANTIATE_TEST_SUITE_P(
    Words, GgPtxRefuses,
    testing::ValuesIn(std::vector<Refusal>{
        {"NoFile", {}, "no PTX file"},
        {"TwoFiles", scale({"@limits.ptx"}), "is a second file"},
        {"NoSuchFile",
         {"@none.ptx", "--entry", "f", "--grid", "1", "--block", "1"},
         "none.ptx: cannot be read"},
        {"NoLaunch", {"@scale.ptx"}, "nothing to launch"},
        {"Syntax", {"@broken.ptx", "--entry", "f", "--grid", "1", "--block", "1"}, "broken.ptx:4: "},
        {"UnknownOption", scale({"--frobnicate"}), "--frobnicate: is no option"},
        {"NoValue", scale({"--entry"}), "--entry: wants a value"},
        {"NoSuchKernel", scale({"--entry", "skale", "--grid", "1", "--block", "1"}),
         "has the kernels scale, nothing"},
        {"NoGrid", scale({"--entry", "nothing", "--block", "1"}),
         "launch of nothing: --grid X,Y,Z is missing"},
        {"NoBlock", scale({"--launch", "nothing", "--grid", "1"}),
         "launch of nothing: --block X,Y,Z is missing"},
        {"FirstLaunchHasNoBlock", scale({"--launch", "nothing", "--grid", "1", "--launch", "nothing"}),
         "launch of nothing: --block"},
        {"EntryAndLaunch",
         scale({"--launch", "nothing", "--grid", "1", "--block", "1", "--entry", "nothing"}),
         "--entry: --launch is given too"},
        {"LaunchAndEntry",
         scale({"--entry", "nothing", "--grid", "1", "--block", "1", "--launch", "nothing"}),
         "short form for one launch"},
        {"TwoEntries", scale({"--entry", "nothing", "--grid", "1", "--block", "1", "--entry", "scale"}),
         "nothing is given before it"},
        {"OptionBeforeLaunch", scale({"--grid", "1", "--launch", "nothing"}), "--grid: belongs to no launch"},
        {"TwoGrids", launch({"--grid", "2"}), "--grid 2: is given twice"},
        {"GridOfFour", scale({"--entry", "nothing", "--grid", "1,1,1,1"}), "has 4 extents"},
        {"GridOfZero", scale({"--entry", "nothing", "--grid", "1,0"}), "\"0\" is no whole number from 1"},
        {"GridOfWords", scale({"--entry", "nothing", "--grid", "two"}), "\"two\" is no whole number"},
        {"GridTooLarge", scale({"--entry", "nothing", "--grid", "1,65536", "--block", "1"}),
         "--grid 1,65536,1: y is at most 65535"},
        {"BlockTooLarge", scale({"--entry", "nothing", "--grid", "1", "--block", "2048"}),
         "--block 2048,1,1: x is at most 1024"},
        {"TooManyThreads", scale({"--entry", "nothing", "--grid", "1", "--block", "512,3"}),
         "1536 threads, a block has 1024"},
        {"Arch", launch({"--arch", "75"}), "--arch: \"75\" is none of 80, 90a, 100a"},
        {"TargetOfNone",
         {"@later.ptx", "--entry", "f", "--grid", "1", "--block", "1"},
         "its .target sm_120a"},
        {"LikeForTooLittle",
         {"@limits.ptx", "--like", "a100", "--entry", "exactly", "--grid", "1", "--block", "96"},
         "does not run PTX for sm_90a"},
        {"LikeUnknown", launch({"--like", "v100"}), "--like v100"},
        {"Order", launch({"--order", "fast"}), "--order fast"},
        {"Allow", launch({"--allow", "race,hurry"}), "\"hurry\" is no kind of fault"},
        {"AllowWhatStops", launch({"--allow", "race,bounds"}),
         "nobody can go on behind a fault of kind \"bounds\", these kinds can be allowed: uninit-shared, "},
        {"BufferWithoutName", scale({"--buf", "=zero:4"}), "a buffer's name"},
        {"BufferWithoutValue", scale({"--buf", "z"}), "wants NAME=in:FILE.npy"},
        {"BufferOfNothing", scale({"--buf", "z=ones:4"}), "\"ones:4\" is none of"},
        {"BufferCalledNull", scale({"--buf", "null=zero:4"}), "is not null"},
        {"BufferTwice", scale({"--buf", "x=zero:4"}), "--buf x: is the name of two buffers"},
        {"BufferOfNegativeSize", scale({"--buf", "z=zero:-4"}), "\"-4\" is no whole number"},
        {"BufferWithoutFile", scale({"--buf", "z=in:"}), "names no file"},
        {"FileIsNoNpy", launch({"--buf", "z=in:@text.npy"}), "text.npy: is not a .npy file"},
        {"FileIsMissing", launch({"--buf", "z=in:@none.npy"}), "none.npy: cannot be read"},
        {"FileIsBigEndian", launch({"--buf", "z=in:@big.npy"}),
         "big.npy: has type '>f4', which is big-endian"},
        {"OutputIsBigEndian", launch({"--buf", "z=out:@big.npy"}), "big.npy: has type '>f4'"},
        {"OutputTwice", scale({"--buf", "a=out:@x.npy", "--buf", "b=out:@x.npy"}),
         "two buffers would be written to this file"},
        {"PointerToNothing", arguments({"x", "z", "f32:1", "f32:1"}), "--arg z: there is no buffer z"},
        {"PointerOutside", arguments({"x", "y+257", "f32:1", "f32:1"}),
         "--arg y+257: y has 256 bytes, 257 is outside"},
        {"PointerTableOutside", launch({"--buf", "t=ptrs:x,y+300"}), "--buf t: y has 256 bytes"},
        {"TooFewArguments", arguments({"x", "y", "f32:1"}),
         "the kernel has 4 parameters (8, 8, 4, 4 bytes), 3 --arg are given"},
        {"TooManyArguments", arguments({"x", "y", "f32:1", "f32:1", "null"}), "5 --arg are given"},
        {"ArgumentTooLong", arguments({"x", "y", "f64:1", "f32:1"}),
         "--arg f64:1 is 8 bytes, parameter 2 (factor) has 4"},
        {"ArgumentTooShort", arguments({"i32:1", "y", "f32:1", "f32:1"}),
         "--arg i32:1 is 4 bytes, parameter 0 (x) has 8"},
        {"ArgumentOfNoKind", arguments({"x", "y", "f33:1", "f32:1"}), "\"f33:\" is no kind of argument"},
        {"NumberTooLarge", arguments({"i32:2147483648"}), "\"2147483648\" is no whole number of 32 bits"},
        {"NumberTooSmall", arguments({"i32:-2147483649"}), "\"-2147483649\" is no whole number of 32 bits"},
        {"NumberWithSign", arguments({"u32:-1"}), "without a sign"},
        {"NumberWithTail", arguments({"i32:5x"}), "\"5x\""},
        {"FloatOfWords", arguments({"f32:half"}), "\"half\" is no number"},
        {"HalfTooLarge", arguments({"f16:65520"}), "\"65520\" is no number that fits"},
        {"FloatTooLarge", arguments({"f32:1e39"}), "\"1e39\" is no number that fits"},
        {"ArgAndArgs", launch({"--args", "@block", "--arg", "x"}), "--arg and --args exclude each other"},
        {"PatchWithoutArgs", launch({"--patch", "0=x"}), "--patch wants --args"},
        {"ArgsTooShort", launch({"--args", "@none"}), "none: cannot be read"},
        {"ArgsOfWrongSize",
         {"@scale.ptx", "--entry", "nothing", "--grid", "1", "--block", "1", "--args", "@block"},
         "has 24 bytes, the parameters are 0"},
        {"PatchOutside", launch({"--args", "@block", "--patch", "20=x"}),
         "--patch 20=x: ends at byte 28 of 24"},
        {"PatchWithoutValue", launch({"--args", "@block", "--patch", "20"}), "wants OFFSET=NAME"},
        {"PatchWithNumber", launch({"--args", "@block", "--patch", "x=0"}), "\"x\" is no whole number"},
        {"MoreThanMaxntid", limited("most", "1", "129", {"--arg", "u32:1"}),
         "--block 129,1,1 is 129 threads, the kernel's .maxntid allows 128"},
        {"OtherThanReqntid", limited("exactly", "1", "32,3"),
         "--block 32,3,1 differs from the kernel's .reqntid 96,1,1"},
        {"OtherThanReqncta", limited("pairs", "4", "32", {"--cluster", "4"}),
         "--cluster 4,1,1 differs from the kernel's .reqnctapercluster 2,1,1"},
        {"GridOfHalfClusters", limited("pairs", "3", "32"),
         "--grid 3,1,1 is no whole number of clusters of 2,1,1"},
        {"ExplicitCluster", limited("any", "2", "32"), "--cluster X,Y,Z is missing"},
        {"MoreThanMaxclusterrank", limited("few", "4", "32", {"--cluster", "4"}), "is 4 blocks, 2 at most"},
        {"ClusterTooLarge", limited("any", "32", "32", {"--cluster", "32"}), "is 32 blocks, 16 at most"},
        {"ClusterOnA100",
         {"@scale.ptx", "--like", "a100", "--entry", "nothing", "--grid", "2", "--block", "1", "--cluster",
          "2"},
         "has no clusters"},
        {"SharedTooLarge", limited("room", "1", "32", {"--smem", "231449"}),
         "1000 bytes of shared memory and --smem 231449"},
        {"MapWithoutType", map("tmap:b,dims=64,box=64"), "type is missing"},
        {"MapOfNoType", map("tmap:b,type=f8,dims=64,box=64"), "\"f8\" is none of u8, u16"},
        {"MapWithoutStrides", map("tmap:b,type=u8,dims=64x4,box=64x4"),
         "strides has 0 extents, with 2 dimensions it needs 1"},
        {"MapWithBoxOfThree", map("tmap:b,type=u8,dims=64x4,strides=64,box=64x4x1"), "box has 3 extents"},
        {"MapOfSix", map("tmap:b,type=u8,dims=1x1x1x1x1x1,box=1"), "has 6 dimensions"},
        {"MapWithUnknownField", map("tmap:b,type=u8,dims=64,box=64,colour=red"), "\"colour\" is no field"},
        {"MapFieldTwice", map("tmap:b,type=u8,dims=64,box=64,box=32"), "box is given twice"},
        {"MapWithoutEquals", map("tmap:b,type=u8,dims=64,box"), "\"box\" is no KEY=VALUE"},
        {"MapSwizzle", map("tmap:b,type=u8,dims=64,box=64,swizzle=16B"),
         "\"16B\" is none of none, 32B, 64B, 128B"},
        {"MapThatTheDriverRefuses", map("tmap:b,type=u8,dims=64x4,strides=72,box=64x4"),
         "72 bytes, not a multiple of 16"},
        {"MapOfHalfABuffer", map("tmap:c,type=u8,dims=64,box=64"), "there is no buffer c"},
        {"MapAddress", map("tmap:b+8,type=u8,dims=64,box=64"), "its address is not a multiple of 16"},
        {"MapTooLong", arguments({"x", "y", "tmap:x,type=f32,dims=64,box=64", "f32:1"}),
         "is 128 bytes, parameter 2 (factor) has 4"},
    }),
    [](const auto& info) { return std::string(info.param.name); });

TEST(GgPtx, FilesThatCannotBeWrittenAreCode4) {
  const Files files;
  const std::string missing = files.at("no/such/folder/y.npy");
  const Outcome outcome = gg_ptx({files.ptx(kScale), "--buf", "y=out:" + missing + ",f4,64", "--entry",
                                  "nothing", "--grid", "1", "--block", "1"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(one_line_with(outcome.err, missing)) << outcome.err;
}

TEST(GgPtx, TracesThatCannotBeWrittenAreCode4) {
  const Files files;
  const std::string missing = files.at("no/such/folder/t.json");
  const Outcome outcome =
      gg_ptx({files.ptx(kScale), "--trace", missing, "--entry", "nothing", "--grid", "1", "--block", "1"});
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(one_line_with(outcome.err, missing)) << outcome.err;
}

TEST(GgPtx, TooLittleMemoryIsCode5) {
  const Files files;
  const Outcome outcome = gg_ptx({files.ptx(kScale), "--buf", "y=zero:123456789012345", "--entry", "nothing",
                                  "--grid", "1", "--block", "1"});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_TRUE(one_line_with(outcome.err, "123456789012345 bytes")) << outcome.err;
  EXPECT_TRUE(one_line_with(outcome.err, "are free")) << outcome.err;
}

TEST(GgPtx, ArchitecturesFollowTheTarget) {
  const Files files;
  const auto code_of = [&](const std::string& target, const std::vector<std::string>& more) {
    std::vector<std::string> words = {files.ptx(header(target) + ".visible .entry f() { ret; }\n"),
                                      "--entry",
                                      "f",
                                      "--grid",
                                      "1",
                                      "--block",
                                      "1"};
    words.insert(words.end(), more.begin(), more.end());
    return gg_ptx(words).code;
  };
  for (const char* target : {"sm_52", "sm_75", "sm_80", "sm_80, debug", "sm_86", "sm_89", "sm_90", "sm_90a",
                             "sm_100", "sm_100a", "sm_100f"}) {
    EXPECT_EQ(code_of(target, {}), 0) << target;
  }
  EXPECT_EQ(code_of("sm_103a", {}), 2);
  EXPECT_EQ(code_of("sm_103a", {"--arch", "100a"}), 0);
  EXPECT_EQ(code_of("sm_80", {"--like", "a100"}), 0);
  EXPECT_EQ(code_of("sm_80", {"--like", "b200"}), 0);
  EXPECT_EQ(code_of("sm_90a", {"--like", "b200"}), 2);
  EXPECT_EQ(code_of("sm_100a", {"--like", "h200"}), 2);
}

}  // namespace
