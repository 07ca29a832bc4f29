// SPDX-License-Identifier: MIT
//
// Cluster launch control on the emulator: every tile of a grid is worked on once, whoever takes it;
// what misuse is told; and what a module for sm_100a has of sm_90's instructions.

#include <gtest/gtest.h>

#include <numeric>

#include "tests/emu/launch_ptx.h"
#include "tests/emu/report_says.h"

namespace {

using namespace emu_test;
using gg::emu::Fault;
using gg::emu::FaultKind;
using report::says;

std::string blackwell(const std::string& body, const std::string& before) {
  std::string text = kernel(body, before);
  text.replace(text.find("sm_90"), 5, "sm_100a");
  return text;
}

// Each block works on tile (x, y, z) of a grid of 6 by 4 by 2: thread 0 adds 1 to out[tile], and
// 65536 if the tile was taken over. Then thread 0 of the cluster's first block asks for another
// cluster; all blocks of the cluster get the answer and go on with it, or end.
const char* const kShared = ".shared .align 16 .b8 answer[16];\n.shared .align 8 .b64 bar;\n";
std::string persistent(bool cluster, const std::string& after = "") {
  const std::string request =
      cluster ? "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                ".multicast::cluster::all.b128 [answer], [bar];\n"
              : "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%rd20], [%rd21];\n";
  const std::string meet =
      cluster ? "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n" : "bar.sync 0;\n";
  return blackwell(
      ".reg .b128 %q;\n.reg .pred %more;\n"
      "setp.eq.u32 %p0, %r0, 0;\nmov.u32 %r40, %cluster_ctarank;\n"
      "setp.eq.and.u32 %p1, %r40, 0, %p0;\n"
      "cvta.shared.u64 %rd20, answer;\ncvta.shared.u64 %rd21, bar;\n"
      "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n"
      "@%p0 fence.mbarrier_init.release.cluster;\n" +
          meet +
          "mov.u32 %r10, %ctaid.x;\nmov.u32 %r11, %ctaid.y;\nmov.u32 %r12, %ctaid.z;\n"
          "mov.u32 %r20, %cluster_ctaid.x;\nmov.u32 %r21, %cluster_ctaid.y;\n"
          "mov.u32 %r13, 0;\nmov.u32 %r14, 1;\n"
          "TILE:\nmad.lo.u32 %r15, %r12, 4, %r11;\nmad.lo.u32 %r15, %r15, 6, %r10;\n"
          "mad.wide.u32 %rd4, %r15, 4, %rd0;\n@%p0 red.global.add.u32 [%rd4], %r14;\n"
          "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n" +
          meet + "@%p1 " + request +
          "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], %r13;\n@!%p2 bra WAIT;\n"
          "xor.b32 %r13, %r13, 1;\nld.shared.b128 %q, [answer];\n"
          "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %more, %q;\n"
          "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r10, %r11, _, _}, %q;\n"
          "clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r12, %q;\n"
          "add.u32 %r10, %r10, %r20;\nadd.u32 %r11, %r11, %r21;\nmov.u32 %r14, 65537;\n"
          "fence.proxy.async.shared::cta;\n" +
          meet + "@%more bra TILE;\n" + after,
      kShared);
}

void run_persistent(bool cluster, int workers, int multiprocessors, const gg::emu::Order& order, int* taken) {
  Program program(persistent(cluster));
  Config config = config_of(6, 64);
  config.grid[1] = 4, config.grid[2] = 2;
  if (cluster) config.cluster[0] = 2, config.cluster[1] = 2;
  config.options.order = order;
  config.options.workers = workers;
  config.options.multiprocessors = multiprocessors;
  std::vector<Buffer> buffers = {Buffer(48 * 4), Buffer(4)};
  program.run(buffers, config);
  *taken = 0;
  for (const uint32_t tile : values_of<uint32_t>(buffers[0])) {
    EXPECT_EQ(tile & 0xFFFF, 1u);
    *taken += int(tile >> 16);
  }
}

TEST(ClusterLaunch, EveryTileOnce) {
  for (const bool cluster : {false, true}) {
    for (const int workers : {1, 3}) {
      for (const int multiprocessors : {8, 148}) {
        for (const gg::emu::Order& order : orders()) {
          SCOPED_TRACE(name_of(order) + " workers " + std::to_string(workers));
          int taken = 0;
          run_persistent(cluster, workers, multiprocessors, order, &taken);
          // Clusters of the first wave are never cancelled.
          const int blocks = cluster ? 4 : 1, wave = std::min(multiprocessors / blocks, 24 / blocks);
          if (!order.skew) {
            EXPECT_LE(taken, 48 - wave * blocks);
          }
          if (workers == 1) {
            EXPECT_GT(taken, 0);
          }
        }
      }
    }
  }
}

std::string fault_of(const std::string& text, FaultKind kind) {
  Program program(text);
  Config config = config_of(1, 32);
  std::vector<Buffer> buffers = {Buffer(4096), Buffer(4)};
  try {
    program.run(buffers, config);
  } catch (const Fault& fault) {
    EXPECT_EQ(fault_name(fault.kind), std::string(fault_name(kind))) << fault.what();
    return fault.what();
  }
  ADD_FAILURE() << "no fault";
  return "";
}

TEST(ClusterLaunch, NoRequestAfterARefusal) {
  const std::string report = fault_of(
      persistent(false,
                 "@%p1 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
                 "[answer], [bar];\n"),
      FaultKind::launch);
  EXPECT_TRUE(says(report, "no thread of the cluster may ask again")) << report;
}

TEST(ClusterLaunch, OnlyAnswersCanBeAsked) {
  const std::string text = blackwell(
      ".reg .b128 %q;\nmov.u64 %rd3, 5;\nmov.b128 %q, {%rd3, %rd3};\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q;\n",
      kShared);
  EXPECT_TRUE(says(fault_of(text, FaultKind::launch), "no answer to clusterlaunchcontrol.try_cancel"));
}

TEST(ClusterLaunch, TheAnswerMustHaveCome) {
  const std::string text = blackwell(
      ".reg .b128 %q;\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\nbar.sync 0;\n"
      "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n"
      "@%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], "
      "[bar];\n"
      "ld.shared.b128 %q, [answer];\n",
      kShared);
  fault_of(text, FaultKind::async_window);
}

TEST(ClusterLaunch, AnswersAreAligned) {
  const std::string text = blackwell(
      "setp.eq.u32 %p0, %r0, 0;\n@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\nbar.sync 0;\n"
      "@%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer+8], "
      "[bar];\n",
      ".shared .align 16 .b8 answer[32];\n.shared .align 8 .b64 bar;\n");
  fault_of(text, FaultKind::alignment);
}

// ---- instructions of sm_90 ----

TEST(Blackwell, HasNoWgmma) {
  EXPECT_TRUE(
      says(fault_of(blackwell("wgmma.fence.sync.aligned;\n", ""), FaultKind::unsupported), "tcgen05"));
}

TEST(Blackwell, HasWhatHopperHas) {
  const std::string text = blackwell(
      "setmaxnreg.inc.sync.aligned.u32 120;\nelect.sync _|%p3, 0xFFFFFFFF;\ngriddepcontrol.wait;\n"
      "mov.u32 %r10, s;\nmad.lo.u32 %r11, %r0, 16, %r10;\nst.shared.v4.b32 [%r11], {%r0, %r0, %r0, %r0};\n"
      "bar.sync 0;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r11];\n"
      "mov.f32 %f0, 0f00000000;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f0, %f0, %f0}, {%r20, %r21, %r22, %r23}, "
      "{%r20, %r21}, {%f0, %f0, %f0, %f0};\n"
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r11], {%r20, %r21, %r22, %r23};\n"
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
      "mov.u32 %r30, %nsmid;\nst.global.u32 [%rd2], %r30;\n",
      ".shared .align 128 .b8 s[2048];\n");
  Program program(text);
  Config config = config_of(1, 128);
  config.options.multiprocessors = 148;
  std::vector<Buffer> buffers = {Buffer(512), Buffer(4)};
  program.run(buffers, config);
  EXPECT_EQ(values_of<uint32_t>(buffers[0])[7], 148u);
}

}  // namespace
