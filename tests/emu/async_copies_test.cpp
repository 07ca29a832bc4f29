// SPDX-License-Identifier: MIT
//
// Hopper's bulk copies and what one block of a cluster sends another, in small PTX kernels: what
// they do, in every order, and what the emulator says when they are misused.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emu/async_kernel.h"
#include "tests/emu/report_says.h"

namespace {

using namespace async_test;
using report::says;

// ---- bulk copies ----

constexpr char kBulkLoad[] = R"(
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 256;
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 128, [bars];
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [buffer+128], [%rd1+1024], 128, [bars], %rd1;
)";
TEST_F(Async, BulkLoad) {
  run(init(0, 1) + kBulkLoad + wait(0, "0") + kCopyOut, {1, 64, 1}, [&] {
    for (size_t i = 0; i < 64; ++i) ASSERT_EQ(words(out)[i], words(in)[i < 32 ? i : 224 + i]);
  });
}

TEST_F(Async, BytesUnderWayMayNotBeTouched) {
  const std::string read =
      fault(FaultKind::async_window, init(0, 1) + kBulkLoad + "bar.sync 0;\n" + kCopyOut, {1, 64, 1});
  EXPECT_TRUE(says(read, "cp.async.bulk.shared::cluster.global"));
  EXPECT_TRUE(
      says(fault(FaultKind::async_window, init(0, 1) + kBulkLoad + "@%p0 st.shared.u32 [buffer+64], 1;\n"),
           "still writes"));
  EXPECT_TRUE(says(fault(FaultKind::exit, init(0, 1) + kBulkLoad), "still to write"));
}

const std::string kFill =
    "shl.b32 %r6, %r0, 2;\nadd.u32 %r7, %r2, %r6;\nadd.u32 %r8, %r0, 1000;\nst.shared.u32 [%r7], %r8;\n";
const std::string kBulkStore =
    "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [buffer], 256;\n@%p0 "
    "cp.async.bulk.commit_group;\n";

TEST_F(Async, BulkStore) {
  run(kFill + kFence + kBulkStore +
          "@%p0 cp.async.bulk.wait_group.read 0;\nbar.sync 0;\nst.shared.u32 [%r7], 0;\n@%p0 "
          "cp.async.bulk.wait_group 0;\n",
      {1, 64, 1}, [&] {
        for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(words(out)[i], 1000 + i);
        EXPECT_EQ(words(out)[64], 0xEEEEEEEE);
      });
}

TEST_F(Async, AStoreWithoutItsFencesAndWaitsIsAFault) {
  const Shape two_warps{1, 64, 1};
  fault(FaultKind::proxy, kFill + "bar.sync 0;\n" + kBulkStore + "@%p0 cp.async.bulk.wait_group 0;\n",
        two_warps);
  fault(FaultKind::race,
        kFill + "bar.sync 0;\nst.shared.u32 [%r7], 5;\nfence.proxy.async.shared::cta;\n" + kBulkStore +
            "@%p0 cp.async.bulk.wait_group 0;\n",
        two_warps);
  EXPECT_TRUE(says(fault(FaultKind::async_window,
                         kFill + kFence + kBulkStore + "bar.sync 0;\nst.shared.u32 [%r7], 0;\n", two_warps),
                   "still reads"));
  EXPECT_TRUE(says(fault(FaultKind::exit, kFill + kFence + kBulkStore, two_warps),
                   "ended while this operation was still to read"));
  fault(FaultKind::uninit_shared, kFence + kBulkStore + "@%p0 cp.async.bulk.wait_group 0;\n");
}

// The report of a source that is overwritten tells what the thread that stored has committed
// and waited for.
TEST_F(Async, ASourceThatIsOverwrittenSaysWhichWaitItLacks) {
  const auto why = [&](const std::string& stores) {
    return fault(FaultKind::async_window,
                 kFill + kFence + stores + "bar.sync 0;\n@%p0 st.shared.u32 [buffer], 5;\n", {1, 64, 1});
  };
  const std::string start = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [buffer], 32;\n",
                    second = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0+32], [buffer+32], 32;\n",
                    commit = "@%p0 cp.async.bulk.commit_group;\n";
  EXPECT_TRUE(says(why(start + "@%p0 cp.async.bulk.wait_group.read 0;\n"),
                   "likely cp.async.bulk.commit_group is missing: lane 0 of warp 0 has not committed"));
  EXPECT_TRUE(
      says(why(start + commit + "@%p0 cp.async.bulk.wait_group.read 1;\n"),
           "in lane 0 of warp 0 1 group was pending, and wait_group 1 lets the newest 1 be unfinished. "
           "wait_group.read 0 waits for this store too"));
  EXPECT_TRUE(says(why(start + commit + second + commit + "@%p0 cp.async.bulk.wait_group 3;\n"),
                   "2 groups were pending, and wait_group 3 lets the newest 3 be unfinished. "
                   "wait_group.read 1 waits for this store too"));
  const std::string alone = why(start + commit);
  EXPECT_TRUE(says(alone,
                   "lane 0 of warp 0 has not waited since it committed the group of this store: "
                   "cp.async.bulk.wait_group.read 0 in that lane order"));
  EXPECT_TRUE(says(why("@%p0 cp.async.bulk.wait_group 0;\n" + start + commit),
                   "lane 0 of warp 0 has not waited since it committed the group of this store"));
  EXPECT_TRUE(says(why(start + commit + "@!%p1 cp.async.bulk.wait_group.read 0;\n"),
                   "wait_group.read 0 in that lane. The wait_group of lane 0 of warp 1 waits for nothing: "
                   "groups belong to the thread that commits them"));
}

TEST_F(Async, ABlockThatEndsBeforeItsStoreSaysWhichWaitItLacks) {
  const std::string start =
      kFill + kFence + "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [buffer], 32;\n";
  const Shape two_warps{1, 64, 1};
  EXPECT_TRUE(says(fault(FaultKind::exit, start + "@%p0 cp.async.bulk.wait_group.read 0;\n", two_warps),
                   "cp.async.bulk.commit_group is missing"));
  EXPECT_TRUE(says(fault(FaultKind::exit, start + "@%p0 cp.async.bulk.commit_group;\n", two_warps),
                   "has not waited since it committed the group"));
}

// The fence may stand anywhere between the writes and the store: on the way, not beside it.
TEST_F(Async, AStoreIsFencedByTheWritersOrByTheIssuer) {
  const std::string fence = "fence.proxy.async.shared::cta;\n", barrier = "bar.sync 0;\n",
                    done = "@%p0 cp.async.bulk.wait_group 0;\n";
  for (const std::string& between : {fence + barrier, barrier + "@%p0 " + fence}) {
    run(kFill + between + kBulkStore + done, {1, 64, 1}, [&] {
      for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(words(out)[i], 1000 + i);
    });
  }
  for (const std::string& between : {barrier + "@!%p1 " + fence, "@%p1 " + fence + barrier}) {
    const std::string report = fault(FaultKind::proxy, kFill + between + kBulkStore + done, {1, 64, 1});
    EXPECT_TRUE(says(report, "or the issuer runs it behind that barrier"));
  }
}

// wait_group N leaves the newest N groups: the third store's source may not be touched yet.
TEST_F(Async, GroupsAreWaitedForInTheirOrder) {
  const std::string store =
      "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [buffer], 32;\n@%p0 "
      "cp.async.bulk.commit_group;\n"
      "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0+32], [buffer+32], 32;\n@%p0 "
      "cp.async.bulk.commit_group;\n"
      "@%p0 cp.async.bulk.wait_group.read 1;\nbar.sync 0;\n";
  run(kFill + kFence + store + "@%p0 st.shared.u32 [buffer], 5;\n@%p0 cp.async.bulk.wait_group 0;\n",
      {1, 64, 1}, [&] {
        for (uint32_t i = 0; i < 16; ++i) ASSERT_EQ(words(out)[i], 1000 + i);
      });
}

TEST_F(Async, BulkReductions) {
  prepare = [&] {
    for (uint32_t i = 0; i < 64; ++i) words(out)[i] = i * 10;
  };
  run(kFill + kFence + R"(
    @%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [buffer], 128;
    @%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%rd0+128], [buffer+128], 128;
    @%p0 cp.async.bulk.commit_group;
    @%p0 cp.async.bulk.wait_group 0;
    )",
      {1, 64, 1}, [&] {
        for (uint32_t i = 0; i < 32; ++i) ASSERT_EQ(words(out)[i], 1000 + i * 11);
        for (uint32_t i = 32; i < 64; ++i) ASSERT_EQ(words(out)[i], std::min(i * 10, 1000 + i));
      });
}

TEST_F(Async, BulkOperandsAreChecked) {
  const auto bulk = [&](FaultKind kind, const std::string& operands) {
    return fault(kind, init(0, 1) + "@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes " +
                           operands + ";\n");
  };
  bulk(FaultKind::alignment, "[buffer], [%rd1], 24, [bars]");
  bulk(FaultKind::alignment, "[buffer+8], [%rd1], 16, [bars]");
  bulk(FaultKind::alignment, "[buffer], [%rd1+8], 16, [bars]");
  bulk(FaultKind::bounds, "[buffer+8192], [%rd1], 128, [bars]");
  bulk(FaultKind::bounds, "[buffer], [%rd1+65536], 16, [bars]");
  bulk(FaultKind::bounds, "[buffer], [%rd1+65520], 32, [bars]");
  bulk(FaultKind::mbarrier_state, "[buffer], [%rd1], 16, [bars+8]");
}

// Only bytes 128 to 255 of the input's buffer are a tensor. The others may be written, but no kind
// of load reads them.
TEST_F(Async, GuardsAreReadByNobody) {
  const auto load = [&](const std::string& what, int at) {
    SetUp();
    memory.set_readable(in, {"the input", {{in + 128, in + 256}}});
    const std::string address = "[%rd1+" + std::to_string(at) + "]";
    if (what == "ld.global") return "@%p0 ld.global.v4.u32 {%r10, %r11, %r12, %r13}, " + address + ";\n";
    if (what == "cp.async")
      return "@%p0 cp.async.cg.shared.global [buffer], " + address + ", 16;\ncp.async.wait_all;\n";
    if (what == "atom") return "@%p0 atom.global.add.u32 %r10, " + address + ", 1;\n";
    if (what == "st.global") return "@%p0 st.global.u32 " + address + ", 1;\n";
    return init(0, 1) +
           "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 16;\n"
           "@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer], " +
           address + ", 16, [bars];\n" + wait(0, "0");
  };
  for (const char* what : {"ld.global", "cp.async", "cp.async.bulk"}) {
    SCOPED_TRACE(what);
    for (const int fine : {128, 240}) EXPECT_NO_THROW(run_with(load(what, fine), {}, {}));
    EXPECT_TRUE(
        says(fault(FaultKind::bounds, load(what, 64)),
             "16 bytes that start 64 bytes before the input (the kernel's 2nd argument) are read from the "
             "guard beside it"));
    EXPECT_TRUE(
        says(fault(FaultKind::bounds, load(what, 256)), "16 bytes that end 16 bytes past the end of"));
  }
  for (const char* what : {"atom", "st.global"}) EXPECT_NO_THROW(run_with(load(what, 64), {}, {}));
  // The map's box begins at the buffer's first byte.
  load("", 0);
  EXPECT_TRUE(
      says(fault(FaultKind::bounds,
                 init(0, 1) + "mov.u32 %r10, 0;\n@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::"
                              "complete_tx::bytes [buffer], [%rd2, {%r10, %r10}], [bars];\n"),
           "64 bytes that start 128 bytes before the input"));
}

// ---- clusters ----

// Each block stores into the other's buffer, by st.async and, for the second half, by red.async.
TEST_F(Async, StoresIntoTheOtherBlock) {
  run(kFill + init(0, 1) + "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 256;\n" + kClusterSync +
          R"(
    xor.b32 %r10, %r1, 1;
    mapa.shared::cluster.u32 %r11, %r7, %r10;
    mapa.shared::cluster.u32 %r12, %r3, %r10;
    getctarank.shared::cluster.u32 %r13, %r11;
    mad.lo.u32 %r14, %r13, 100000, %r0;
    @%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r11], %r14, [%r12];
    @!%p1 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r11], %r14, [%r12];
    )" + wait(0, "0") +
          R"(
    ld.shared.u32 %r8, [%r7];
    mad.lo.u32 %r15, %r1, 64, %r0;
    mul.wide.u32 %rd3, %r15, 4;
    add.u64 %rd3, %rd0, %rd3;
    st.global.u32 [%rd3], %r8;
    )" + kClusterSync,
      {2, 64, 2}, [&] {
        for (uint32_t rank = 0; rank < 2; ++rank) {
          for (uint32_t i = 0; i < 64; ++i)
            ASSERT_EQ(words(out)[rank * 64 + i], rank * 100000 + i + (i < 32 ? 0 : 1000 + i))
                << rank << " " << i;
        }
      });
}

TEST_F(Async, ArrivesAtTheOtherBlock) {
  const std::string body = init(0, 64) + kClusterSync + R"(
    xor.b32 %r10, %r1, 1;
    mapa.shared::cluster.u32 %r12, %r3, %r10;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
    )" + wait(0, "0");
  run(body + kClusterSync, {4, 64, 2}, [] {});
  // Behind fence.mbarrier_init a cluster barrier that publishes nothing is enough.
  std::string relaxed = body;
  relaxed.replace(relaxed.find("arrive.release.aligned"), 14, "arrive.relaxed");
  run(relaxed + kClusterSync, {4, 64, 2}, [] {});
  const std::string outside = fault(
      FaultKind::bounds,
      "mapa.shared::cluster.u32 %r12, %r3, 2;\nmbarrier.arrive.shared::cluster.b64 _, [%r12];\n", {2, 32, 2});
  EXPECT_TRUE(says(outside, "cluster rank 2, the cluster has 2 blocks"));
  const std::string late =
      "setp.eq.u32 %p2, %r1, 0;\n@!%p2 bra END;\n" + wait(1, "1") + wait(1, "1") +
      "mapa.shared::cluster.u32 %r12, %r3, 1;\nmbarrier.arrive.shared::cluster.b64 _, [%r12];\nEND:\n";
  fault(FaultKind::use_after_free,
        init(0, 1) + init(1, 1) + kClusterSync +
            "setp.eq.u32 %p2, %r1, 1;\n@%p2 bra END2;\nmov.u32 %r20, 0;\nSPIN: add.u32 %r20, %r20, "
            "1;\nsetp.lt.u32 %p3, %r20, 5000;\n@%p3 bra SPIN;\n" +
            late + "END2:\n",
        {2, 32, 2});
}

// From the own shared memory to the other block's.
TEST_F(Async, BulkCopyToTheOtherBlock) {
  run(kFill + init(0, 1) +
          "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 256;\nfence.proxy.async.shared::cta;\n" +
          kClusterSync + R"(
    xor.b32 %r10, %r1, 1;
    add.u32 %r16, %r2, 1024;
    mapa.shared::cluster.u32 %r11, %r16, %r10;
    mapa.shared::cluster.u32 %r12, %r3, %r10;
    @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11], [buffer], 256, [%r12];
    )" + wait(0, "0") +
          R"(
    ld.shared.u32 %r8, [%r7+1024];
    mad.lo.u32 %r15, %r1, 64, %r0;
    mul.wide.u32 %rd3, %r15, 4;
    add.u64 %rd3, %rd0, %rd3;
    st.global.u32 [%rd3], %r8;
    )" + kClusterSync,
      {2, 64, 2}, [&] {
        for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(words(out)[i], 1000 + i % 64);
      });
}

}  // namespace
