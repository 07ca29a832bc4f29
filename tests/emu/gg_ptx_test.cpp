// SPDX-License-Identifier: MIT
//
// gg-ptx as its users see it: what goes in, what comes out, and what it says when something is wrong.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/emu/foreign/ptx_run.h"
#include "tests/emu/trace_file.h"

namespace {

using testing_gg::one_line_with;
using testing_gg::Outcome;
using testing_gg::PtxRun;
using testing_gg::reports;
using testing_gg::text_of;
using testing_gg::write_text;

constexpr char kProgram[] = GG_BINARY_DIR "/bin/gg-ptx";

std::string header(const std::string& target = "sm_80") {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n";
}

// y[i] = x[i] * factor + add for 64 floats.
const std::string kScale = header() + R"(
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 factor, .param .f32 add)
{
  .reg .b32 %r<5>; .reg .f32 %f<5>; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [factor]; ld.param.f32 %f2, [add];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.s32 %rd3, %r4, 4;
  add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
  ld.global.f32 %f3, [%rd1];
  fma.rn.f32 %f4, %f3, %f1, %f2;
  st.global.f32 [%rd2], %f4;
  ret;
}
.visible .entry nothing() { ret; }
)";

class Files {
 public:
  std::string ptx(const std::string& text, const std::string& name = "kernel.ptx") const {
    write_text(folder_.at(name), text);
    return folder_.at(name);
  }
  template <class T>
  std::string npy(const std::string& name, const std::vector<T>& values,
                  const std::string& type = testing_gg::npy_type<T>()) const {
    testing_gg::write_vector(folder_.at(name), type, values.size() * sizeof(T) / size_t(type.back() - '0'),
                             values.data(), values.size() * sizeof(T));
    return folder_.at(name);
  }
  std::string at(const std::string& name) const { return folder_.at(name); }

 private:
  testing_gg::Folder folder_;
};

Outcome gg_ptx(std::vector<std::string> words) {
  words.insert(words.begin(), kProgram);
  return testing_gg::run(words);
}

std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

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

// Line 17 of kScale stores 64 floats, by two blocks of a warp each: eight sectors. Nobody runs the kernel
// beside it.
TEST(GgPtx, CountsEachLineOfPtx) {
  const Files files;
  const std::string lines = files.at("lines.csv");
  const Outcome outcome =
      gg_ptx({files.ptx(kScale), "--line-counts", lines, "--entry", "scale", "--grid", "2", "--block", "32",
              "--arg", "in:" + files.npy("x.npy", counting(64)), "--arg",
              "out:" + files.npy("y.npy", counting(64)), "--arg", "f32:1", "--arg", "f32:0"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string text = testing_gg::text_of(lines);
  EXPECT_EQ(text.rfind("kernel,ptx_line,warps,sectors\nscale,", 0), 0u) << text;
  EXPECT_NE(text.find("\nscale,15,2,8\n"), text.npos) << text;
  EXPECT_EQ(text.find("nothing"), text.npos) << text;
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

// A box of a matrix of 16-bit numbers to shared memory and on to `out`; the map is a parameter or lies in
// memory.
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

// 512 numbers of a box of 64 columns and 8 rows, at (col, row) of a matrix of 72 columns and 20 rows.
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
  write_text(files.at("block"), std::string(148, '\0') + std::string("\x08\0\0\0", 4) +
                                    std::string("\x02\0\0\0", 4));  // by_pointer is at 144
  PtxRun run(files.ptx(kMap));
  run.in("m", matrix)
      .out("o", std::vector<uint16_t>(512, 0xFFFF))
      .add({"--entry", "box", "--grid", "1", "--block", "512"});
  run.add({"--args", files.at("block"), "--patch", "128=o", "--patch",
           "0=tmap:m,type=bf16,dims=72x20,strides=144,box=64x8,fill=nan"});
  run.run_in_every_order();
  EXPECT_EQ(run.result<uint16_t>("o"), box_of(8, 2, false));
}

// .global variables with values, addresses of each other, and a table that .branchtargets lead from.
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

TEST(GgPtx, ReportsCounts) {
  const Files files;
  const Outcome outcome =
      gg_ptx({files.ptx(kScale), "--report", "--buf", "b=zero:256", "--entry", "scale", "--grid", "2",
              "--block", "32", "--arg", "b", "--arg", "b", "--arg", "f32:0", "--arg", "f32:0"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("scale"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("global_load_bytes"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("256"), std::string::npos) << outcome.err;
}

// A load, a barrier, a product, a store, with a few other instructions between.
const std::string kEachKind = header() + R"(
.visible .entry each(.param .u64 x)
{
  .reg .b32 %r<9>; .reg .f32 %f<5>; .reg .b64 %rd<5>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r2, [%rd1];
  add.u32 %r2, %r2, 1;
  ld.global.u32 %r3, [%rd1];
  bar.sync 0;
  mov.f32 %f1, 0f00000000;
  mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r3}, {%r2}, {%f1, %f1, %f1, %f1};
  st.global.f32 [%rd1], %f1;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bar.sync 1, 64;
  ret;
}
)";

Outcome trace_each(const Files& files, const std::string& file, const std::string& grid,
                   const std::string& block) {
  return gg_ptx({files.ptx(kEachKind), "--report", "--trace", file, "--buf", "x=zero:256", "--launch", "each",
                 "--grid", grid, "--block", block, "--arg", "x"});
}

TEST(GgPtx, TracesWhatWarpsDo) {
  const Files files;
  const std::string file = files.at("trace.json");
  const std::string early = kEachKind.substr(0, kEachKind.find("setp")) + "ret;\n}\n";
  std::vector<std::string> words = {files.ptx(early), "--report", "--trace", file, "--buf", "x=zero:256"};
  for (const char* grid : {"3", "20"})
    words.insert(words.end(), {"--launch", "each", "--grid", grid, "--block", "64", "--arg", "x"});
  const Outcome outcome = gg_ptx(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("launches: 2, blocks: 19; left out, "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("in all: blocks: 4\n"), std::string::npos) << outcome.err;
  EXPECT_NE(text_of(file).find("in all: blocks: 4\""), std::string::npos) << "the file says it too";
  const testing_gg::TraceFile trace = testing_gg::read_trace(file);
  EXPECT_EQ(trace.blocks.size(), 19u);
  EXPECT_EQ(trace.blocks.at(1), "launch 0: each, block 0");
  EXPECT_EQ(trace.blocks.at(19), "launch 1: each, block 15");
  EXPECT_EQ(trace.warps.size(), 2 * 19u);
  for (const auto& [where, row] : trace.warps) {
    EXPECT_EQ(testing_gg::kinds_of(row, true),
              (std::vector<std::string>{"other", "load", "wait", "other", "mma", "epilogue", "other"}));
    EXPECT_EQ(row[1].instructions, 3);  // the addition between two loads is theirs
    EXPECT_NE(row[2].first.find("bar.sync 0"), std::string::npos) << row[2].first;
  }
  // Warp 0 comes to the barrier first and waits until warp 1 has come too.
  EXPECT_GE(trace.warps.at({1, 0})[2].end, trace.warps.at({1, 1})[2].begin);
  EXPECT_EQ(trace.instructions, 2 * 19 * 12);
  EXPECT_NE(outcome.err.find("instructions                          " + std::to_string(2 * 23 * 12)),
            std::string::npos)
      << outcome.err;

  const std::string first = text_of(file);
  EXPECT_EQ(gg_ptx(words).code, 0);
  EXPECT_EQ(text_of(file), first) << "another trace of the same run";
}

// 60,000 events in one launch and four launches in all are more than a trace keeps.
TEST(GgPtx, LongTracesAreCutAndSaySo) {
  const Files files;
  const std::string file = files.at("trace.json");
  const std::string text = header() + R"(
.visible .entry turns(.param .u64 x)
{
  .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, 0;
LOOP:
  ld.global.u32 %r2, [%rd1];
  bar.sync 0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 30000;
  @%p1 bra LOOP;
  ret;
}
)";
  std::vector<std::string> words = {files.ptx(text), "--trace", file, "--buf", "x=zero:256"};
  for (int i = 0; i < 5; ++i)
    words.insert(words.end(), {"--launch", "turns", "--grid", "1", "--block", "32", "--arg", "x"});
  const Outcome outcome = gg_ptx(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("in all: blocks: 1; cut short, for their many events: blocks: 4\n"),
            std::string::npos)
      << outcome.err;
  const std::string all = text_of(file);
  size_t events = 0;
  for (size_t at = 0; (at = all.find("\"ph\":\"X\"", at)) != all.npos; ++at) ++events;
  EXPECT_GE(events, 200'000u);
  EXPECT_LT(events, 200'050u);
  EXPECT_EQ(all.find("launch 4: turns"), all.npos) << "the others fill the trace";
}

// What led to a fault is there too.
TEST(GgPtx, TracesUpToAFault) {
  const Files files;
  const std::string file = files.at("trace.json");
  const Outcome outcome = trace_each(files, file, "1", "64");
  EXPECT_TRUE(reports(outcome, {"deadlock"}));
  const testing_gg::TraceFile trace = testing_gg::read_trace(file);
  const testing_gg::TraceEvent &last = trace.warps.at({1, 0}).back(), &other = trace.warps.at({1, 1}).back();
  EXPECT_EQ(last.kind, "wait");
  EXPECT_FALSE(last.ended);
  EXPECT_GE(last.end, other.end);
  EXPECT_TRUE(other.ended);
}

TEST(GgPtx, HelpListsOptionsAndFaults) {
  const Outcome outcome = gg_ptx({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* word : {"--arch 80|90a|100a",
                           "--buf NAME=in:FILE.npy",
                           "ptrs:",
                           "--launch",
                           "--entry",
                           "--grid X,Y,Z",
                           "--cluster",
                           "--smem",
                           "--arg",
                           "--args",
                           "--patch",
                           "tmap:",
                           "type is one of u8 u16 u32 s32",
                           "b6x16_p32\n",
                           "--order S[:fair|skew]",
                           "--allow KIND",
                           "--report",
                           "--like",
                           "uninit-shared",
                           "deadlock",
                           "race",
                           "proxy",
                           "async-window"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
}

// ---- faults ----

// Two warps write different values to one word of shared memory.
const std::string kRace = header() + R"(
.visible .entry clash(.param .u64 out)
{
  .shared .align 4 .b32 word;
  .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5;
  st.shared.u32 [word], %r2;
  bar.sync 0;
  ld.shared.u32 %r3, [word];
  setp.lt.u32 %p1, %r3, 2;
  selp.u32 %r3, 1, 0, %p1;
  st.global.u32 [%rd1], %r3;
  ret;
}
)";

TEST(GgPtx, FaultsStopAndChangeNoFile) {
  const Files files;
  const std::string o = files.npy("o.npy", std::vector<uint32_t>{77});
  const std::string before = text_of(o);
  std::vector<std::string> words = {files.ptx(kRace), "--entry",  "clash",   "--grid", "1", "--block", "64",
                                    "--arg",          "out:" + o, "--order", "5:skew"};
  EXPECT_TRUE(
      reports(gg_ptx(words), {"race in clash", "st.shared.u32 [word]", "PTX line", "warp ", "5:skew"}));
  EXPECT_EQ(text_of(o), before);
  words.insert(words.end(), {"--allow", "proxy,race"});
  const Outcome outcome = gg_ptx(words);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err.rfind("allowed: ", 0), 0u) << outcome.err;
  EXPECT_NE(outcome.err.find("race in clash"), std::string::npos) << outcome.err;
  EXPECT_EQ(gg::read_npy(o).data, std::vector<char>({1, 0, 0, 0}));
}

TEST(GgPtx, UnknownInstructionsFailWhenExecutedOnly) {
  const Files files;
  const std::string text = header() +
                           ".visible .entry f(.param .u32 n)\n{\n.reg .b32 %r<2>; .reg .pred "
                           "%p<2>;\nld.param.u32 %r1, [n];\nsetp.ne.u32 %p1, %r1, 0;\n"
                           "@%p1 frobnicate.sync.b32 %r1, %r1;\nret;\n}\n";
  const std::vector<std::string> words = {files.ptx(text), "--entry", "f",    "--grid", "1",
                                          "--block",       "32",      "--arg"};
  for (const int n : {0, 1}) {
    std::vector<std::string> all = words;
    all.push_back("u32:" + std::to_string(n));
    const Outcome outcome = gg_ptx(all);
    EXPECT_EQ(outcome.code, n ? 3 : 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("frobnicate.sync.b32") != std::string::npos, n == 1) << outcome.err;
  }
}

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

std::vector<std::string> scale(const std::vector<std::string>& rest) {  // the file, buffers, and the rest
  std::vector<std::string> words = {"@scale.ptx", "--buf", "x=in:@x.npy", "--buf", "y=zero:256"};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}
std::vector<std::string> launch(
    const std::vector<std::string>& rest) {  // one of scale, all but its arguments
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
