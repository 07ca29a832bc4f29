// SPDX-License-Identifier: MIT
//
// gg-ptx as its users see it: buffers, arguments, launches, and the machine.

#include "tests/emu/gg_ptx.h"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace testing_gg;

// ---- buffers, arguments, launches ----

TEST(GgPtx, ShortFormWithUnnamedBuffers) {
  const Files files;
  const std::string x = files.npy("x.npy", counting(64)), y = files.npy("y.npy", std::vector<float>(64, -1));
  const Outcome outcome =
      gg_ptx({files.ptx(kScale), "--entry", "scale", "--grid", "2,1,1", "--block", "32,1,1", "--arg",
              "in:" + x, "--arg", "out:" + y, "--arg", "f32:0.5", "--arg", "f32:-3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out + outcome.err, "");
  const gg::NpyArray result = gg::read_npy(y);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(reinterpret_cast<const float*>(result.data.data())[i], float(i) * 0.5f - 3);
  EXPECT_EQ(gg::read_npy(x).data, gg::read_npy(files.npy("again.npy", counting(64))).data);
  EXPECT_FALSE(std::filesystem::exists(y + ".new"));
}

TEST(GgPtx, LaunchesShareMemoryAndRunInOrder) {
  const Files files;
  PtxRun run(files.ptx(kScale));
  run.in("x", counting(64)).out("z", std::vector<float>(64, -1)).add({"--buf", "between=zero:256"});
  run.add({"--launch", "scale", "--grid", "1,1,2", "--block", "64"})
      .arg("x")
      .arg("between")
      .arg("f32:2")
      .arg("f32:1");
  run.add({"--launch", "nothing", "--grid", "1", "--block", "1"});
  run.add({"--launch", "scale", "--grid", "1", "--block", "32"})
      .arg("between+128")
      .arg("z")
      .arg("f32:3")
      .arg("f32:0");
  run.add({"--launch", "scale", "--grid", "2", "--block", "16"})
      .arg("between")
      .arg("z+128")
      .arg("f32:1")
      .arg("f32:0");
  run.run_in_every_order();
  const std::vector<float> z = run.result<float>("z");
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(z[i], (float(32 + i) * 2 + 1) * 3);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(z[32 + i], float(i) * 2 + 1);
}

const std::string kArguments = header() + R"(
.visible .entry all(.param .u64 out, .param .b32 a, .param .b64 b, .param .b32 c, .param .f32 d,
                    .param .f64 e, .param .u64 f, .param .u64 g, .param .b8 h, .param .b16 i, .param .b16 j, .param .b64 k)
{
  .reg .b16 %h<4>; .reg .b32 %r<5>; .reg .b64 %rd<9>;
  ld.param.u64 %rd0, [out];
  ld.param.b32 %r1, [a]; st.global.b32 [%rd0], %r1;
  ld.param.b64 %rd1, [b]; st.global.b64 [%rd0+8], %rd1;
  ld.param.b32 %r1, [c]; st.global.b32 [%rd0+16], %r1;
  ld.param.b32 %r1, [d]; st.global.b32 [%rd0+20], %r1;
  ld.param.b64 %rd1, [e]; st.global.b64 [%rd0+24], %rd1;
  ld.param.b64 %rd1, [f]; st.global.b64 [%rd0+32], %rd1;
  ld.param.b64 %rd1, [g]; sub.s64 %rd2, %rd1, %rd0; st.global.b64 [%rd0+40], %rd2;
  ld.param.b8 %h1, [h]; st.global.b8 [%rd0+48], %h1;
  ld.param.b16 %h1, [i]; st.global.b16 [%rd0+50], %h1;
  ld.param.b16 %h1, [j]; st.global.b16 [%rd0+52], %h1;
  ld.param.b64 %rd1, [k]; st.global.b64 [%rd0+56], %rd1;
  ret;
}
)";

TEST(GgPtx, EveryKindOfNumber) {
  const Files files;
  PtxRun run(files.ptx(kArguments));
  run.out("o", std::vector<uint8_t>(64, 0xAA)).add({"--entry", "all", "--grid", "1", "--block", "1"});
  for (const char* value : {"o", "i32:-5", "i64:-1234567890123", "u32:0xFFFFFFFE", "f32:0.1", "f64:1e300",
                            "null", "o+24", "u8:200", "i16:-2", "bf16:3.0", "u64:18446744073709551615"}) {
    run.arg(value);
  }
  const Outcome outcome = run.run();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<uint8_t> bytes = run.result<uint8_t>("o");
  const auto at = [&](size_t offset, auto wanted) {
    auto got = wanted;
    std::memcpy(&got, bytes.data() + offset, sizeof got);
    EXPECT_EQ(got, wanted) << "byte " << offset;
  };
  at(0, int32_t(-5));
  at(8, int64_t(-1234567890123));
  at(16, uint32_t(0xFFFFFFFE));
  at(20, 0.1f);
  at(24, 1e300);
  at(32, uint64_t(0));
  at(40, uint64_t(24));
  at(48, uint8_t(200));
  at(50, int16_t(-2));
  at(52, uint16_t(0x4040));
  at(56, uint64_t(-1));
  at(49, uint8_t(0xAA));
}

// Adds the words that the pointers of a table lead to.
const std::string kFollow = header() + R"(
.visible .entry follow(.param .u64 table, .param .u64 sum, .param .u32 n)
{
  .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [table]; ld.param.u64 %rd2, [sum]; ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
LOOP:
  ld.global.u64 %rd3, [%rd1];
  ld.global.u32 %r3, [%rd3];
  add.u32 %r2, %r2, %r3;
  add.s64 %rd1, %rd1, 8;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra LOOP;
  st.global.u32 [%rd2], %r2;
  ret;
}
)";

TEST(GgPtx, PointersToPlacesInBuffersOfAnyOrder) {
  const Files files;
  PtxRun run(files.ptx(kFollow));
  run.add({"--buf", "table=ptrs:a+4,b,a,b+8"})
      .in("a", std::vector<uint32_t>{1, 20, 300})
      .in("b", std::vector<uint32_t>{4000, 50000, 600000});
  run.out("sum", std::vector<uint32_t>{0}).add({"--entry", "follow", "--grid", "1", "--block", "1"});
  run.arg("table").arg("sum").arg("u32:4");
  const Outcome outcome = run.run();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(run.result<uint32_t>("sum"), std::vector<uint32_t>{20 + 4000 + 1 + 600000});
}

TEST(GgPtx, FilesOfAnyTypeKeepIt) {
  const Files files;
  const std::string before = files.npy("y.npy", counting(64), "<c8");
  const std::string head = text_of(before).substr(0, 128);
  const std::string x = files.npy("x.npy", counting(64), "|V4");
  const Outcome outcome =
      gg_ptx({files.ptx(kScale), "--entry", "scale", "--grid", "1", "--block", "64", "--arg", "in:" + x,
              "--arg", "out:" + before, "--arg", "f32:1", "--arg", "f32:1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(text_of(before).substr(0, 128), head);
  EXPECT_EQ(text_of(before).substr(128, 4), std::string("\0\0\x80\x3F", 4));
}

TEST(GgPtx, OutputsThatAreNotThereYet) {
  const Files files;
  const std::string x = files.npy("x.npy", counting(64)), y = files.at("new.npy");
  const std::vector<std::string> rest = {"--grid", "1", "--block", "32",    "--arg", "x",
                                         "--arg",  "y", "--arg",   "f32:1", "--arg", "f32:0"};
  std::vector<std::string> words = {files.ptx(kScale), "--buf",   "x=in:" + x, "--buf",
                                    "y=out:" + y,      "--entry", "scale"};
  words.insert(words.end(), rest.begin(), rest.end());
  Outcome outcome = gg_ptx(words);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(one_line_with(outcome.err, "out:" + y + ": there is no such file")) << outcome.err;
  words[4] = "y=out:" + y + ",f4,4x16";
  outcome = gg_ptx(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const gg::NpyArray array = gg::read_npy(y);
  EXPECT_EQ(array.type, "<f4");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{4, 16}));
  const float* values = reinterpret_cast<const float*>(array.data.data());
  EXPECT_EQ(values[31], 31.0f);
  EXPECT_TRUE(std::isnan(values[32]));  // 0xFF bytes: nobody wrote them
  words[4] = "y=out:" + y + ",f4,64";
  outcome = gg_ptx(words);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(one_line_with(outcome.err, "holds [4, 16] of '<f4', not [64] of '<f4'")) << outcome.err;
}

// ---- the machine ----

// Block ranks, and a word that each block reads from its neighbour's dynamic shared memory.
const std::string kCluster = header("sm_90a") + R"(
.extern .shared .align 16 .b8 room[];
.visible .entry ring(.param .u64 out) REQUIRED
{
  .reg .b32 %r<9>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %cluster_nctarank; mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, room;
  st.shared.u32 [%r4+96], %r3;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  add.u32 %r5, %r1, 1; rem.u32 %r5, %r5, %r2;
  mapa.shared::cluster.u32 %r6, %r4, %r5;
  ld.shared::cluster.u32 %r7, [%r6+96];
  mul.wide.u32 %rd2, %r3, 4; add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r7;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ret;
}
)";
std::string cluster_kernel(const std::string& required) {
  std::string text = kCluster;
  return text.replace(text.find("REQUIRED"), 8, required);
}

TEST(GgPtx, ClustersAndDynamicSharedMemory) {
  const Files files;
  for (const bool required : {false, true}) {
    PtxRun run(files.ptx(cluster_kernel(required ? ".reqnctapercluster 4" : "")));
    run.out("o", std::vector<uint32_t>(8, 99))
        .add({"--entry", "ring", "--grid", "8", "--block", "32", "--smem", "100"})
        .arg("o");
    if (!required) run.add({"--cluster", "4,1,1"});
    run.run_in_every_order();
    EXPECT_EQ(run.result<uint32_t>("o"), (std::vector<uint32_t>{1, 2, 3, 0, 5, 6, 7, 4}));
  }
  PtxRun run(files.ptx(cluster_kernel("")));
  run.out("o", std::vector<uint32_t>(8, 99))
      .add({"--entry", "ring", "--grid", "8", "--block", "32", "--smem", "96"})
      .arg("o");
  EXPECT_TRUE(reports(run.run(), {"bounds in ring", "st.shared.u32 [%r4+96], %r3"}));
}

// A box of a matrix of 16-bit numbers to shared memory and on to `out`; the map is a parameter or
// lies in memory.
const std::string kMap = header("sm_90a") + R"(
.visible .entry box(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 pointer,
                    .param .u32 by_pointer, .param .u32 col, .param .u32 row)
{
  .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bar;
  .reg .b32 %r<9>; .reg .b64 %rd<6>; .reg .b16 %h<2>; .reg .pred %p<4>;
  mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1;
  ld.param.u32 %r1, [by_pointer]; setp.ne.u32 %p1, %r1, 0;
  ld.param.u64 %rd2, [pointer];
  @%p1 mov.b64 %rd1, %rd2;
  ld.param.u64 %rd3, [out]; ld.param.u32 %r2, [col]; ld.param.u32 %r3, [row];
  mov.u32 %r4, %tid.x; setp.eq.u32 %p2, %r4, 0;
  mov.u32 %r5, bar; mov.u32 %r6, tile;
  @%p2 mbarrier.init.shared.b64 [%r5], 1;
  bar.sync 0;
  @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 1024;
  @%p2 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r6], [%rd1, {%r2, %r3}], [%r5];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
  @!%p3 bra WAIT;
  shl.b32 %r7, %r4, 1; add.u32 %r8, %r6, %r7;
  ld.shared.b16 %h1, [%r8];
  cvt.u64.u32 %rd4, %r7; add.s64 %rd3, %rd3, %rd4;
  st.global.b16 [%rd3], %h1;
  ret;
}
)";

// 512 numbers of a box of 64 columns and 8 rows, at (col, row) of a matrix of 72 columns, 20 rows.
std::vector<uint16_t> box_of(int col, int row, bool swizzled) {
  std::vector<uint16_t> box(512);
  for (int r = 0; r < 8; ++r) {
    for (int c = 0; c < 64; ++c) {
      const bool inside = col + c < 72 && row + r < 20;
      const int place = r * 64 + (swizzled ? c ^ (r % 8 * 8) : c);
      box[size_t(place)] = inside ? uint16_t((row + r) * 72 + col + c) : uint16_t(0);
    }
  }
  return box;
}

PtxRun map_run(const Files& files, const std::string& map, const std::string& pointer, int col, int row) {
  std::vector<uint16_t> matrix(72 * 20 + 8);
  std::iota(matrix.begin() + 8, matrix.end(), uint16_t(0));
  PtxRun run(files.ptx(kMap));
  run.in("m", matrix)
      .out("o", std::vector<uint16_t>(512, 0xFFFF))
      .add({"--entry", "box", "--grid", "1", "--block", "512"});
  run.arg(map)
      .arg("o")
      .arg(pointer)
      .arg(pointer == "null" ? "u32:0" : "u32:1")
      .arg("i32:" + std::to_string(col))
      .arg("i32:" + std::to_string(row));
  return run;
}

constexpr char kPlainMap[] = "tmap:m+16,type=u16,dims=72x20,strides=144,box=64x8";

TEST(GgPtx, TensorMapsAsArguments) {
  const Files files;
  struct Case {
    const char* more;
    int col, row;
    bool swizzled;
  };
  for (const Case& c :
       {Case{"", 0, 3, false}, Case{",swizzle=128B,l2=256B", 0, 3, true},
        Case{",swizzle=none,interleave=none,estrides=1x1,fill=zero,l2=none", 32, 16, false}}) {
    PtxRun run = map_run(files, kPlainMap + std::string(c.more), "null", c.col, c.row);
    run.run_in_every_order();
    EXPECT_EQ(run.result<uint16_t>("o"), box_of(c.col, c.row, c.swizzled)) << c.more;
    PtxRun by_pointer =
        map_run(files, "tmap:m,type=u8,dims=64,box=64", kPlainMap + std::string(c.more), c.col, c.row);
    by_pointer.run_in_every_order();
    EXPECT_EQ(by_pointer.result<uint16_t>("o"), box_of(c.col, c.row, c.swizzled)) << c.more;
  }
}

TEST(GgPtx, TensorMapsAsPatches) {
  const Files files;
  std::vector<uint16_t> matrix(72 * 20);
  std::iota(matrix.begin(), matrix.end(), uint16_t(0));
  // by_pointer is at 144.
  write_text(files.at("block"),
             std::string(148, '\0') + std::string("\x08\0\0\0", 4) + std::string("\x02\0\0\0", 4));
  PtxRun run(files.ptx(kMap));
  run.in("m", matrix)
      .out("o", std::vector<uint16_t>(512, 0xFFFF))
      .add({"--entry", "box", "--grid", "1", "--block", "512"});
  run.add({"--args", files.at("block"), "--patch", "128=o", "--patch",
           "0=tmap:m,type=bf16,dims=72x20,strides=144,box=64x8,fill=nan"});
  run.run_in_every_order();
  EXPECT_EQ(run.result<uint16_t>("o"), box_of(8, 2, false));
}

// .global variables with values, addresses of each other, and a table for .branchtargets.
const std::string kVariables = header() + R"(
.global .align 4 .u32 first[3] = {7, 8, 9};
.visible .global .align 8 .u64 where[2] = {first+4, generic(second)};
.const .align 4 .f32 second[2] = {0f3FC00000, 2.5};
.visible .entry look(.param .u64 out, .param .u32 n)
{
  .reg .b32 %r<9>; .reg .f32 %f<3>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n];
  mov.u64 %rd2, where;
  ld.global.u64 %rd3, [%rd2]; ld.global.u32 %r2, [%rd3];
  ld.global.u64 %rd3, [where+8]; ld.f32 %f1, [%rd3+4]; cvt.rni.s32.f32 %r3, %f1;
  TARGETS: .branchtargets ZERO, ONE, TWO;
  brx.idx %r1, TARGETS;
ZERO: mov.u32 %r4, 100; bra END;
ONE: mov.u32 %r4, 200; bra END;
TWO: mov.u32 %r4, 300;
END:
  add.u32 %r5, %r2, %r3; add.u32 %r5, %r5, %r4;
  st.global.u32 [%rd1], %r5;
  ret;
}
)";

TEST(GgPtx, MultiprocessorsAreTheDevices) {
  const std::string text = header() + R"(
.visible .entry which(.param .u64 x)
{
  .reg .b32 %r<4>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %nsmid; mov.u32 %r2, %smid; mov.u32 %r3, %ctaid.x;
  mul.wide.u32 %rd2, %r3, 8;
  add.s64 %rd1, %rd1, %rd2;
  st.global.v2.u32 [%rd1], {%r1, %r2};
  ret;
}
)";
  for (const auto& [device, count] :
       {std::pair{"a100", 108u}, std::pair{"h200", 132u}, std::pair{"b200", 148u}}) {
    const Files files;
    const std::string file = files.npy("x.npy", std::vector<uint32_t>(2 * 150, 9999));
    const Outcome outcome = gg_ptx({files.ptx(text), "--like", device, "--buf", "x=out:" + file, "--entry",
                                    "which", "--grid", "150", "--block", "1", "--arg", "x"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const gg::NpyArray array = gg::read_npy(file);
    std::vector<uint32_t> values(2 * 150);
    std::memcpy(values.data(), array.data.data(), array.data.size());
    for (size_t i = 0; i < values.size(); i += 2) {
      EXPECT_EQ(values[i], count) << device;
      EXPECT_LT(values[i + 1], count) << device;
    }
  }
}

TEST(GgPtx, VariablesOfTheModule) {
  const Files files;
  for (const int branch : {0, 1, 2}) {
    PtxRun run(files.ptx(kVariables));
    run.out("o", std::vector<uint32_t>{0})
        .add({"--entry", "look", "--grid", "1", "--block", "1"})
        .arg("o")
        .arg("u32:" + std::to_string(branch));
    const Outcome outcome = run.run();
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(run.result<uint32_t>("o"), std::vector<uint32_t>{8 + 2 + 100 * uint32_t(branch + 1)});
  }
  std::string broken = kVariables;
  broken.replace(broken.find("generic(second)"), 15, "generic(third) ");
  const Outcome outcome = gg_ptx({files.ptx(broken), "--entry", "look", "--grid", "1", "--block", "1",
                                  "--arg", "null", "--arg", "u32:0"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(one_line_with(outcome.err, "variable where holds the address of third")) << outcome.err;
}

}  // namespace
