// SPDX-License-Identifier: MIT
//
// Hopper's tensor copies and the maps that kernels change, in small PTX kernels: what they do, in
// every order, and what the emulator says when they are misused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "common/emu/core/units/reduction.h"
#include "common/harness/base/npy.h"
#include "tests/emu/async_kernel.h"
#include "tests/emu/report_says.h"

namespace {

using namespace async_test;
using report::says;

// ---- tensor copies ----

// 256 threads copy buffer (4 KB) to out, words nobody wrote as they are: the test fills
// the buffer first.
std::string tensor_load(const std::string& box, int bytes) {
  return R"(
    mov.u32 %r20, 0xABABABAB;
    shl.b32 %r6, %r0, 2;
    add.u32 %r7, %r2, %r6;
    st.shared.u32 [%r7], %r20;
    st.shared.u32 [%r7+1024], %r20;
    st.shared.u32 [%r7+2048], %r20;
    st.shared.u32 [%r7+3072], %r20;
  )" + init(0, 1) +
         "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], " + std::to_string(bytes) + ";\n" +
         "@%p0 prefetch.tensormap [%rd2];\n@%p0 cp.async.bulk.tensor." + box + ", [bars];\n" + wait(0, "0") +
         R"(
    cvt.u64.u32 %rd3, %r6;
    add.u64 %rd3, %rd0, %rd3;
    ld.shared.u32 %r8, [%r7];
    st.global.u32 [%rd3], %r8;
    ld.shared.u32 %r8, [%r7+1024];
    st.global.u32 [%rd3+1024], %r8;
    ld.shared.u32 %r8, [%r7+2048];
    st.global.u32 [%rd3+2048], %r8;
    ld.shared.u32 %r8, [%r7+3072];
    st.global.u32 [%rd3+3072], %r8;
  )";
}
const char kLoad2d[] = "2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [buffer+128], [%rd2, {";

TEST_F(Async, TensorLoadsAreSwizzledAndFilled) {
  struct Case {
    int swizzle, box0, box1, stride1, x, y;
  };
  const Case cases[] = {{0, 16, 8, 1, 4, 3},  {0, 12, 8, 1, 52, 15}, {1, 8, 8, 1, -4, -2},
                        {2, 16, 8, 1, 8, 17}, {3, 32, 8, 1, 40, 1},  {3, 16, 8, 1, 48, 16},
                        {2, 8, 8, 1, 0, 0},   {0, 16, 16, 3, 0, 2},  {3, 32, 7, 2, 0, -3},
                        {0, 16, 4, 1, 64, 2}};
  for (const Case& c : cases) {
    SCOPED_TRACE("swizzle " + std::to_string(c.swizzle) + " box " + std::to_string(c.box0) + " at " +
                 std::to_string(c.x) + "," + std::to_string(c.y));
    prepare = [&] {
      map.swizzle = c.swizzle;
      map.box[0] = c.box0;
      map.box[1] = c.box1;
      map.element_strides[1] = c.stride1;
    };
    const int rows = (c.box1 + c.stride1 - 1) / c.stride1;
    run(tensor_load(kLoad2d + std::to_string(c.x) + "," + std::to_string(c.y) + "}]", rows * c.box0 * 4),
        {1, 256, 1}, [&] {
          std::vector<uint32_t> expected(1024, 0xABABABAB);
          const int pitch = c.swizzle ? 16 << c.swizzle : c.box0 * 4;
          for (int r = 0; r < rows; ++r) {
            for (int e = 0; e < c.box0; ++e) {
              const int at = 128 + r * pitch + e * 4;
              const int unit = (at >> 4) ^ ((at >> 7) & ((1 << c.swizzle) - 1));
              const int x = c.x + e, y = c.y + r * c.stride1;
              const bool inside = x >= 0 && x < 60 && y >= 0 && y < 20;
              expected[size_t(unit * 16 + at % 16) / 4] = inside ? words(in)[y * 64 + x] : 0;
            }
          }
          for (size_t i = 0; i < 1024; ++i) ASSERT_EQ(words(out)[i], expected[i]) << i;
        });
  }
}

TEST_F(Async, NanFillAndTf32) {
  prepare = [&] {
    map.type = MapType::tf32;
    map.nan_fill = true;
    const uint32_t values[] = {0x3F801000, 0x3F803000, 0x3F801001, 0x7F800001,
                               0xFF800000, 0x80000FFF, 0x7F7FFFFF};
    std::memcpy(words(in), values, sizeof values);
  };
  run(tensor_load(std::string(kLoad2d) + "-4,0}]", 512), {1, 256, 1}, [&] {
    const uint32_t expected[] = {0x7FF77FF7, 0x7FF77FF7, 0x7FF77FF7, 0x7FF77FF7, 0x3F800000, 0x3F804000,
                                 0x3F802000, 0x7FFFE000, 0xFF800000, 0x80000000, 0x7F800000};
    for (size_t i = 0; i < 11; ++i) EXPECT_EQ(words(out)[32 + i], expected[i]) << i;
  });
}

// Rows of 58 words end inside a unit of 16 bytes: stores write all of it.
TEST_F(Async, TensorStoresLeaveOutWhatIsOutside) {
  for (const bool adds : {false, true}) {
    prepare = [&] {
      map.address = out;
      map.swizzle = 2;
      map.dims[0] = 58;
      for (size_t i = 0; i < kWords; ++i) words(out)[i] = uint32_t(i);
    };
    const std::string instruction =
        adds ? "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
             : "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group";
    const std::string fill =
        "shl.b32 %r6, %r0, 2;\nadd.u32 %r7, %r2, %r6;\nadd.u32 %r8, %r0, 100000;\nst.shared.u32 [%r7+1024], "
        "%r8;\n";
    run(fill + kFence + "@%p0 " + instruction +
            " [%rd2, {48, 15}], [buffer+1024];\n@%p0 cp.async.bulk.commit_group;\n@%p0 "
            "cp.async.bulk.wait_group 0;\n",
        {1, 128, 1}, [&] {
          for (int y = 0; y < 24; ++y) {
            for (int x = 0; x < 64; ++x) {
              const bool inside = x >= 48 && x < 60 && y >= 15 && y < 20;
              const int at = (y - 15) * 64 + (x - 48) * 4, unit = (at >> 4) ^ ((at >> 7) & 3);
              const uint32_t stored = uint32_t(100000 + (unit * 16 + at % 16) / 4),
                             before = uint32_t(y * 64 + x);
              ASSERT_EQ(words(out)[y * 64 + x], inside ? stored + (adds ? before : 0) : before)
                  << x << "," << y;
            }
          }
        });
    for (const char* place : {"{-4, 0}", "{0, -1}"}) {
      const std::string report = fault(
          FaultKind::bounds,
          fill + kFence + "@%p0 " + instruction + " [%rd2, " + place + "], [buffer+1024];\n", {1, 128, 1});
      EXPECT_TRUE(says(report, "begins before the tensor"));
    }
  }
}

// Element by element against tests/isa/h200/reductions.npy: what was in memory, what came, what
// was there then.
TEST(Reductions, GiveTheBitsOfAnH200) {
  const struct {
    const char *type, *op;
  } rows[] = {{"u32", "add"},     {"u32", "min"},  {"u32", "max"},      {"u32", "inc"}, {"u32", "dec"},
              {"u32", "and"},     {"u32", "or"},   {"u32", "xor"},      {"s32", "add"}, {"s32", "min"},
              {"s32", "max"},     {"u64", "add"},  {"u64", "min"},      {"u64", "max"}, {"u64", "and"},
              {"u64", "or"},      {"u64", "xor"},  {"u64", "add"},      {"u64", "min"}, {"u64", "max"},
              {"s64", "min"},     {"s64", "max"},  {"s64", "min"},      {"s64", "max"}, {"f32", "add"},
              {"f32.ftz", "add"}, {"tf32", "add"}, {"tf32.ftz", "add"}, {"f64", "add"}, {"f64", "add"},
              {"f16", "add"},     {"bf16", "add"}, {"f16", "min"},      {"f16", "max"}, {"bf16", "min"},
              {"bf16", "max"}};
  const gg::NpyArray array = gg::read_npy(std::string(GG_SOURCE_DIR) + "/tests/isa/h200/reductions.npy");
  ASSERT_EQ(array.shape, (std::vector<int64_t>{int64_t(std::size(rows)), 3, 256}));
  constexpr size_t kBytes = 1024;
  const char* const ops[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  const uint8_t* data = reinterpret_cast<const uint8_t*>(array.data.data());
  for (const auto& row : rows) {
    const auto op = gg::emu::ReduceOp(std::find_if(std::begin(ops), std::end(ops),
                                                   [&](const char* each) { return !strcmp(each, row.op); }) -
                                      ops);
    std::string type = row.type;
    const bool flush = type.find(".ftz") != std::string::npos;
    if (type.find("f32") != std::string::npos) type = "f32";
    if (op >= gg::emu::ReduceOp::bit_and) type[0] = 'b';
    gg::emu::Reduction reduction;
    ASSERT_TRUE(reduction_of(op, type, false, &reduction)) << row.type << " " << row.op;
    reduction.flush = flush;
    std::vector<uint64_t> memory(kBytes / 8);  // aligned
    uint8_t* const ours = reinterpret_cast<uint8_t*>(memory.data());
    std::memcpy(ours, data, kBytes);
    reduce_elements(reduction, ours, data + kBytes, kBytes / size_t(reduction.bytes));
    for (size_t i = 0; i < kBytes; i += size_t(reduction.bytes)) {
      EXPECT_EQ(std::memcmp(ours + i, data + 2 * kBytes + i, size_t(reduction.bytes)), 0)
          << row.type << " " << row.op << " element " << i / size_t(reduction.bytes);
    }
    data += 3 * kBytes;
  }
}

// Each block loads half of the box for both.
TEST_F(Async, MulticastGoesToBothBlocks) {
  prepare = [&] { map.box[1] = 4; };
  const std::string body = init(0, 1) + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 512;\n" +
                           kClusterSync + R"(
    shl.b32 %r10, %r1, 2;
    shl.b32 %r11, %r1, 8;
    add.u32 %r11, %r2, %r11;
    mov.b16 %h0, 3;
    @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r11], [%rd2, {16, %r10}], [bars], %h0;
    )" + wait(0, "0") + R"(
    shl.b32 %r6, %r0, 2;
    add.u32 %r7, %r2, %r6;
    mad.lo.u32 %r15, %r1, 128, %r0;
    mul.wide.u32 %rd3, %r15, 4;
    add.u64 %rd3, %rd0, %rd3;
    ld.shared.u32 %r8, [%r7];
    st.global.u32 [%rd3], %r8;
    )" + kClusterSync;
  run(body, {4, 128, 2}, [&] {
    for (size_t i = 0; i < 256; ++i)
      ASSERT_EQ(words(out)[i], words(in)[i % 128 / 16 * 64 + 16 + i % 16]) << i;
  });
}

TEST_F(Async, TensorCopiesAreChecked) {
  const auto load = [&](FaultKind kind, const std::string& operands) {
    return fault(kind, init(0, 1) +
                           "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes " +
                           operands + ";\n");
  };
  EXPECT_TRUE(
      says(load(FaultKind::alignment, "[buffer], [%rd2, {1, 0}], [bars]"), "begins 4 bytes into its rows"));
  load(FaultKind::alignment, "[buffer+64], [%rd2, {0, 0}], [bars]");
  load(FaultKind::bounds, "[buffer+7808], [%rd2, {0, 0}], [bars]");
  load(FaultKind::mbarrier_state, "[buffer], [%rd2, {0, 0}], [bars+8]");
  load(FaultKind::bounds, "[buffer], [%rd1+65536, {0, 0}], [bars]");
  load(FaultKind::tensor_map, "[buffer], [%rd1, {0, 0}], [bars]");
  map.rank = 3;
  EXPECT_TRUE(says(load(FaultKind::tensor_map, "[buffer], [%rd2, {0, 0}], [bars]"),
                   "2 dimensions with a tensor map of 3"));
  map.rank = 2;
  map.dims[1] = 1000;
  EXPECT_TRUE(says(load(FaultKind::bounds, "[buffer], [%rd2, {0, 250}], [bars]"), "outside every buffer"));
  map.box[0] = 15;
  EXPECT_TRUE(says(load(FaultKind::tensor_map, "[buffer], [%rd2, {0, 0}], [bars]"), "box 0 is 60 bytes"));
}

// ---- tensor maps that kernels change ----

// A map in shared memory, from zeros, copied to global memory at out + 4096 and used there.
const std::string kMakeMap = R"(
  shl.b32 %r6, %r0, 2;
  add.u32 %r7, %r2, %r6;
  mov.u32 %r20, 0;
  st.shared.u32 [%r7+2048], %r20;
  bar.warp.sync -1;
  @!%p0 bra MADE;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [buffer+2048], %rd1;
  tensormap.replace.tile.rank.shared::cta.b1024.b32 [buffer+2048], 1;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [buffer+2048], 0, 16;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [buffer+2048], 1, 8;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [buffer+2048], 0, 60;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [buffer+2048], 1, 20;
  mov.u64 %rd6, 256;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [buffer+2048], 0, %rd6;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [buffer+2048], 0, 1;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [buffer+2048], 1, 1;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [buffer+2048], 2;
  tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [buffer+2048], 0;
  tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [buffer+2048], 0;
  tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [buffer+2048], 0;
MADE:
  bar.warp.sync -1;
  add.u64 %rd7, %rd0, 4096;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd7], [buffer+2048], 128;
)";
std::string use_made_map(const std::string& fence) {
  return init(0, 1) + kMakeMap + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 512;\n" + fence +
         "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd7, {16, "
         "2}], [bars];\n" +
         wait(0, "0") + kCopyOut;
}

TEST_F(Async, KernelsMakeTensorMaps) {
  run(use_made_map("@%p0 fence.proxy.tensormap::generic.acquire.gpu [%rd7], 128;\n"), {}, [&] {
    for (size_t i = 0; i < 32; ++i) ASSERT_EQ(words(out)[i], words(in)[(2 + i / 16) * 64 + 16 + i % 16]);
    uint8_t expected[128];
    map.type = MapType::u32;
    encode_tensor_map(map, expected);
    EXPECT_EQ(std::memcmp(expected, memory.unchecked(out + 4096), 128), 0);
  });
}

TEST_F(Async, AChangedMapWantsItsFences) {
  EXPECT_TRUE(says(fault(FaultKind::proxy, use_made_map("")), "has not acquired it"));
  // Nor does it reach the next kernel: the map made at out + 4096 is still there.
  const std::string use_kept = init(0, 1) + "add.u64 %rd7, %rd0, 4096;\n";
  const std::string use_again = "@%p0 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd7, {0, 0}];\n";
  EXPECT_TRUE(says(fault(FaultKind::proxy, use_kept + use_again), "has not acquired it"));
  const std::string acquire = "@%p0 fence.proxy.tensormap::generic.acquire.gpu [%rd7], 128;\n";
  EXPECT_NO_THROW(run_with(use_kept + acquire + use_again, {}, {}));
  EXPECT_NO_THROW(run_with("mov.u64 %rd7, 0;\n" + acquire, {}, {}));
  EXPECT_TRUE(says(fault(FaultKind::bounds, "mov.u64 %rd7, 128;\n" + acquire), "128"));
  const std::string replace = R"(
    @!%p0 bra MADE;
    ld.global.b64 %rd8, [%rd2];
    add.u64 %rd8, %rd8, 256;
    tensormap.replace.tile.global_address.b1024.b64 [%rd2], %rd8;
    MADE:
    )";
  const std::string use = "@%p0 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd2, {0, 0}];\n";
  EXPECT_TRUE(says(fault(FaultKind::proxy, replace + use), "not released since"));
  run(replace +
          "@%p0 fence.proxy.tensormap::generic.release.gpu;\n@%p0 fence.proxy.tensormap::generic.acquire.gpu "
          "[%rd2], 128;\n" +
          use,
      {}, [] {});
}

// A load uses its map until it is done, a store until it has read its source.
TEST_F(Async, AMapInUseIsNotChanged) {
  const std::string replace = "@%p0 tensormap.replace.tile.global_address.b1024.b64 [%rd2], %rd1;\n";
  const std::string load = init(0, 1) + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 512;\n" +
                           "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes "
                           "[buffer], [%rd2, {16, 2}], [bars];\n";
  EXPECT_TRUE(says(fault(FaultKind::async_window, load + replace), "a copy with it is under way"));
  run(load + wait(0, "0") + replace, {}, [] {});
  const std::string store =
      "shl.b32 %r6, %r0, 4;\nadd.u32 %r7, %r2, %r6;\n"
      "st.shared.v4.u32 [%r7], {%r0, %r0, %r0, %r0};\n" +
      kFence +
      "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
      "[%rd2, {16, 2}], [buffer];\n@%p0 cp.async.bulk.commit_group;\n";
  const std::string read = "@%p0 cp.async.bulk.wait_group.read 0;\n",
                    done = "@%p0 cp.async.bulk.wait_group 0;\n";
  EXPECT_TRUE(says(fault(FaultKind::async_window, store + replace), "a copy with it is under way"));
  run(store + read + replace + done, {}, [] {});
}

// ---- what is not known ----

TEST_F(Async, UnknownFormsAreNotGuessed) {
  for (const char* form :
       {"mbarrier.arrive.acquire.cta.shared::cta.b64 _, [bars];",
        "mbarrier.arrive.release.shared::cta.b64 _, [bars];",
        "mbarrier.arrive.noComplete.shared::cta.b64 %rd3, [bars];",
        "mbarrier.arrive.shared::cluster.b64 %rd3, [%r3];",
        "mbarrier.init.shared::cluster.b64 [%r3], 1;",
        "mbarrier.arrive.shared::cta.b32 _, [bars];",
        "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bars], 0, 1, 2;",
        "mbarrier.test_wait.parity.shared::cta.b64 %p2, [bars], 0, 1;",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [buffer], [%rd1], "
        "16, [bars], %h0;",
        "cp.async.bulk.shared::cta.global.bulk_group [buffer], [%rd1], 16;",
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [buffer], 16, %h0;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd1], [buffer], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u64 [%rd1], [buffer], 16;",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%r2], "
        "[buffer], 16, [%r3];",
        "cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [buffer], [%rd2, "
        "{%r0, %r0}], [bars];",
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes.cta_group::2 [buffer], "
        "[%rd2, {%r0, %r0}], [bars];",
        "cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd2, {%r0, "
        "%r0}], [bars];",
        "cp.async.bulk.tensor.6d.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd2, {%r0, "
        "%r0}], [bars];",
        "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [buffer], 4;",
        "tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [buffer], 1;",
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [buffer], 13;",
        "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [buffer], 4, %rd1;",
        "mapa.u32 %r4, %r5, 0;",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%r2], {%rd1,%rd1,%rd1,%rd1}, [%r3];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r2], %r3, [%r3];",
        "fence.proxy.tensormap::generic.acquire.gpu [%rd2], 64;"}) {
    SCOPED_TRACE(form);
    fault(FaultKind::unsupported, std::string("mov.b16 %h0, 1;\nmov.u32 %r5, 0;\n") + form + "\n");
  }
}

}  // namespace
