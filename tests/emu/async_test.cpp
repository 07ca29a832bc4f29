// SPDX-License-Identifier: MIT
//
// The asynchronous instructions of Hopper in small PTX kernels: what they compute, in every order, and what
// the emulator says when they are misused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "common/base/npy.h"
#include "common/emu/isa/reduction.h"
#include "common/emu/isa/tensormap.h"
#include "common/emu/state/grid.h"
#include "tests/emu/report.h"

namespace {

using report::says;

using gg::emu::Fault;
using gg::emu::FaultKind;
using gg::emu::MapType;
using gg::emu::TensorMap;

struct Shape {
  int blocks = 1, threads = 32, cluster = 1;
};

// A kernel `k` of two pointers, out (%rd0) and in (%rd1), and a tensor map of two dimensions (%rd2).
// Registers are there to be used; %r0 is the thread, %r1 the block's rank, %r2 the address of 8 KB of shared
// memory `buffer`, %r3 that of 8 mbarriers, %p0 is true in thread 0, %p1 in the threads of warp 0.
std::string kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128])
{
  .shared .align 1024 .b8 buffer[8192];
  .shared .align 8 .b64 bars[8];
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.b64 %rd2, map;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, buffer;
  mov.u32 %r3, bars;
  setp.eq.u32 %p0, %r0, 0;
  setp.lt.u32 %p1, %r0, 32;
)" + body +
         "\n  ret;\n}\n";
}

// mbarrier `bar` of bars, for `count` arrivals, ready for everybody.
std::string init(int bar, int count) {
  return "@%p0 mbarrier.init.shared::cta.b64 [bars+" + std::to_string(8 * bar) + "], " +
         std::to_string(count) + ";\n@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
}
std::string wait(int bar, const std::string& parity) {
  static int label = 0;
  const std::string name = "WAIT" + std::to_string(label++);
  return name + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [bars+" + std::to_string(8 * bar) + "], " +
         parity + ";\n@!%p8 bra " + name + ";\n";
}

class Async : public testing::Test {
 protected:
  static constexpr size_t kWords = 1 << 14;

  void SetUp() override {
    out = memory.allocate(kWords * 4);
    in = memory.allocate(kWords * 4);
    for (size_t i = 0; i < kWords; ++i) words(out)[i] = 0xEEEEEEEE, words(in)[i] = uint32_t(i * 2654435761u);
    map.type = MapType::u32;
    map.address = in;
    map.rank = 2;
    map.dims[0] = 60;
    map.dims[1] = 20;
    map.strides[1] = 256;
    map.box[0] = 16;
    map.box[1] = 8;
  }
  uint32_t* words(uint64_t address) { return reinterpret_cast<uint32_t*>(memory.unchecked(address)); }

  void run_with(const std::string& body, const Shape& shape, const gg::emu::Order& order) {
    const auto module = gg::emu::parse_ptx(kernel(body));
    const auto code = gg::emu::decode(*module, *module->find("k"));
    gg::emu::Launch launch;
    launch.code = code.get();
    launch.grid[0] = shape.blocks;
    launch.block[0] = shape.threads;
    launch.cluster[0] = shape.cluster;
    launch.params.resize(192);
    std::memcpy(launch.params.data(), &out, 8);
    std::memcpy(launch.params.data() + 8, &in, 8);
    gg::emu::encode_tensor_map(map, launch.params.data() + 64);
    gg::emu::RunOptions options;
    options.order = order;
    options.workers = 1;
    gg::emu::run_launch(launch, memory, options, nullptr);
  }

  // In every order the same; `check` looks at the result.
  template <class Check>
  void run(const std::string& body, const Shape& shape, Check check) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE("order " + std::to_string(seed) + (seed > 1 ? ":skew" : ":fair"));
      SetUp();
      prepare();
      ASSERT_NO_THROW(
          try {
            run_with(body, shape, {seed, seed > 1});
          } catch (const Fault& fault) {
            ADD_FAILURE() << fault.what();
            throw;
          });
      check();
    }
  }
  // The fault of the fair order.
  std::string fault(FaultKind kind, const std::string& body, const Shape& shape = {}, uint64_t seed = 0) {
    try {
      run_with(body, shape, {seed, false});
    } catch (const Fault& fault) {
      EXPECT_EQ(fault_name(fault.kind), std::string(fault_name(kind))) << fault.what();
      return fault.what();
    }
    ADD_FAILURE() << "no fault; expected " << fault_name(kind);
    return "";
  }

  gg::emu::GlobalMemory memory;
  uint64_t out = 0, in = 0;
  TensorMap map;
  std::function<void()> prepare = [] {};
};

// Reports are wrapped: a line break with its indent counts as one space.
// ---- mbarrier ----

// Stores %p2 .. as numbers at successive words of out, from thread 0.
std::string record(int at, const std::string& predicate) {
  return "selp.b32 %r30, 1, 0, " + predicate + ";\nst.global.u32 [%rd0+" + std::to_string(4 * at) +
         "], %r30;\n";
}
std::string test(int at, int parity) {
  return "mbarrier.test_wait.parity.shared::cta.b64 %p2, [bars], " + std::to_string(parity) + ";\n" +
         record(at, "%p2");
}

TEST_F(Async, PhasesAndParities) {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 %rd3, [bars];\n";
  const std::string body = init(0, 2) + "@!%p0 bra END;\n" + test(0, 0) + test(1, 1) + arrive + test(2, 0) +
                           arrive + test(3, 0) + test(4, 1) +
                           "mbarrier.pending_count.b64 %r4, %rd3;\nst.global.u32 [%rd0+20], %r4;\n" +
                           "mbarrier.test_wait.shared::cta.b64 %p3, [bars], %rd3;\n" + record(6, "%p3") +
                           "mbarrier.arrive.shared::cta.b64 %rd4, [bars], 2;\n" + test(7, 1) +
                           "mbarrier.arrive.noComplete.shared::cta.b64 %rd4, [bars], 1;\n"
                           "mbarrier.test_wait.acquire.cta.shared::cta.b64 %p3, [bars], %rd4;\n" +
                           record(8, "%p3") + "END:\n";
  run(body, {}, [&] {
    const uint32_t expected[] = {0, 1, 0, 1, 0, 1, 1, 1, 0};
    for (int i = 0; i < 9; ++i) EXPECT_EQ(words(out)[i], expected[i]) << i;
  });
}

TEST_F(Async, BytesMayComeBeforeTheyAreExpected) {
  const std::string body =
      init(0, 1) + "@!%p0 bra END;\nmbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bars], 48;\n" +
      test(0, 0) + "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 16;\n" + test(1, 0) +
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 32;\n" + test(2, 0) + test(3, 1) +
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 64;\n" + test(4, 1) +
      "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bars], 64;\n" + test(5, 1) + "END:\n";
  run(body, {}, [&] {
    const uint32_t expected[] = {0, 0, 1, 0, 0, 1};
    for (int i = 0; i < 6; ++i) EXPECT_EQ(words(out)[i], expected[i]) << i;
  });
}

// Two warps hand 32 numbers to and fro, each adds its own: a full and an empty barrier, 40 rounds.
std::string ping_pong(const std::string& arrive) {
  return init(0, 32) + init(1, 32) + R"(
  mov.u32 %r4, 0;
  and.b32 %r5, %r0, 31;
  shl.b32 %r6, %r5, 2;
  add.u32 %r6, %r6, %r2;
  @!%p1 bra CONSUMER;
PRODUCER:
  and.b32 %r7, %r4, 1;
  xor.b32 %r8, %r7, 1;
)" + wait(1, "%r8") +
         R"(
  mul.lo.u32 %r9, %r4, 100;
  add.u32 %r9, %r9, %r5;
  st.shared.u32 [%r6], %r9;
)" + arrive +
         R"(
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p3, %r4, 40;
  @%p3 bra PRODUCER;
  bra END;
CONSUMER:
  mov.u32 %r10, 0;
LOOP:
  and.b32 %r7, %r4, 1;
)" + wait(0, "%r7") +
         R"(
  ld.shared.u32 %r9, [%r6];
  add.u32 %r10, %r10, %r9;
  mbarrier.arrive.shared::cta.b64 _, [bars+8];
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p3, %r4, 40;
  @%p3 bra LOOP;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd3, %rd3, %rd0;
  st.global.u32 [%rd3], %r10;
END:
)";
}

TEST_F(Async, BarriersOrderTwoWarps) {
  run(ping_pong("mbarrier.arrive.shared::cta.b64 _, [bars];\n"), {1, 64, 1}, [&] {
    for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(words(out)[lane], 78000 + 40 * lane);
  });
}

TEST_F(Async, ARelaxedArrivalOrdersNothing) {
  const std::string report = fault(
      FaultKind::race, ping_pong("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [bars];\n"), {1, 64, 1});
  EXPECT_TRUE(says(report, "with no barrier between"));
}

TEST_F(Async, ADeadlockNamesWhatIsMissing) {
  const std::string arrivals = fault(
      FaultKind::deadlock, init(1, 2) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [bars+8];\n" + wait(1, "0"));
  EXPECT_TRUE(says(arrivals, "waits at mbarrier 0x2408 for parity 0: phase 0 lacks 1 of 2 arrivals"));
  const std::string bytes = fault(FaultKind::deadlock, init(0, 1) + R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 96;
    @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 64, [bars];
    )" + wait(0, "0"));
  EXPECT_TRUE(says(bytes, "phase 0 lacks 32 of 96 bytes"));
  const std::string more = fault(FaultKind::deadlock, init(0, 1) + R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 32;
    @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 64, [bars];
    )" + wait(0, "0"));
  EXPECT_TRUE(says(more, "phase 0 has got 32 bytes more than the 32 expected"));
}

TEST_F(Async, ADeadlockTellsOfAnOvertakenWait) {
  const std::string report =
      fault(FaultKind::deadlock, init(0, 1) +
                                     "@%p0 mbarrier.arrive.shared::cta.b64 _, [bars];\n@%p0 "
                                     "mbarrier.arrive.shared::cta.b64 _, [bars];\nbar.sync 0;\n" +
                                     wait(0, "0"));
  EXPECT_TRUE(says(report, "2 phases have ended, this warp has waited for none of them"));
}

// A try_wait that nobody's progress depends on may say false; code that does something else then goes on.
TEST_F(Async, TryWaitGivesUpWhenNobodyElseCanGoOn) {
  run(init(0, 1) + R"(
    @!%p0 bra END;
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bars], 0;
    mbarrier.arrive.shared::cta.b64 _, [bars];
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [bars], 0, 1000;
    )" + record(0, "%p2") +
          record(1, "%p3") + "END:\n",
      {1, 64, 1}, [&] {
        EXPECT_EQ(words(out)[0], 0u);
        EXPECT_EQ(words(out)[1], 1u);
      });
}

TEST_F(Async, MisusedBarriersAreFaults) {
  const auto misuse = [&](const std::string& body) { return fault(FaultKind::mbarrier, body); };
  const auto broken = [&](const std::string& body) { return fault(FaultKind::mbarrier_state, body); };
  EXPECT_TRUE(
      says(broken("mbarrier.arrive.shared::cta.b64 _, [bars];\n"), "mbarrier 0x2400 is not initialised"));
  EXPECT_TRUE(says(misuse("mbarrier.init.shared::cta.b64 [bars], 1;\n"), "is initialised a second time"))
      << "32 lanes";
  EXPECT_TRUE(says(broken("@%p0 mbarrier.init.shared::cta.b64 [bars], 0;\n"), "for 0 arrivals"));
  EXPECT_TRUE(says(broken("@%p0 mbarrier.init.shared::cta.b64 [bars], 1048576;\n"), "for 1048576 arrivals"));
  EXPECT_TRUE(says(broken(init(0, 2) + "@%p0 mbarrier.arrive.shared::cta.b64 _, [bars], 3;\n"),
                   "gets 3 arrivals where phase 0 lacks 2 of 2"));
  EXPECT_TRUE(says(misuse(init(0, 2) + "@%p0 mbarrier.arrive.noComplete.shared::cta.b64 %rd3, [bars], 2;\n"),
                   "end its phase"));
  EXPECT_TRUE(says(broken(init(0, 1) + "@%p0 mbarrier.expect_tx.shared::cta.b64 [bars], 1048576;\n"),
                   "would count 1048576 bytes"));
  EXPECT_TRUE(says(
      broken(
          init(0, 1) +
          "@%p0 mbarrier.inval.shared::cta.b64 [bars];\n@%p0 mbarrier.arrive.shared::cta.b64 _, [bars];\n"),
      "not initialised"));
  EXPECT_TRUE(says(misuse(init(0, 1) + "@%p0 st.shared.u32 [bars+4], 7;\n"), "belongs to an mbarrier"));
  EXPECT_TRUE(says(misuse(init(0, 2) + init(1, 2) +
                          "@!%p0 bra END;\nmbarrier.arrive.shared::cta.b64 %rd3, "
                          "[bars];\nmbarrier.test_wait.shared::cta.b64 %p2, [bars+8], %rd3;\nEND:\n"),
                   "is not from an arrival at mbarrier 0x2408"));
  EXPECT_TRUE(says(misuse(init(0, 1) + "@%p0 mbarrier.test_wait.parity.shared::cta.b64 %p2, [bars], 2;\n"),
                   "parity 2"));
  EXPECT_TRUE(says(fault(FaultKind::alignment, "@%p0 mbarrier.init.shared::cta.b64 [bars+4], 1;\n"),
                   "multiple of 8"));
  for (const std::string fence :
       {"", "@%p0 fence.mbarrier_init.release.cluster;\n"}) {  // orders nothing alone
    const std::string unordered =
        fault(FaultKind::race,
              "@%p0 mbarrier.init.shared::cta.b64 [bars], 1;\n" + fence +
                  "@%p1 bra END;\nmbarrier.test_wait.parity.shared::cta.b64 %p2, [bars], 0;\nEND:\n",
              {1, 64, 1});
    EXPECT_TRUE(says(unordered, "no barrier stands between its initialisation"));
  }
}

TEST_F(Async, DroppedThreadsAreNotWaitedFor) {
  run(init(0, 2) + "@!%p0 bra END;\nmbarrier.arrive_drop.shared::cta.b64 _, [bars];\n" + test(0, 0) +
          "mbarrier.arrive.shared::cta.b64 _, [bars];\n" + test(1, 0) +
          "mbarrier.arrive.shared::cta.b64 _, [bars];\n" + test(2, 1) + "END:\n",
      {}, [&] {
        EXPECT_EQ(words(out)[0], 0u);
        EXPECT_EQ(words(out)[1], 1u);
        EXPECT_EQ(words(out)[2], 1u);
      });
}

// cp.async.mbarrier.arrive: each lane copies 16 bytes; the other warp reads them when all have landed.
TEST_F(Async, CopiesOfThreadsArrive) {
  for (const bool noinc : {true, false}) {
    const std::string arrive = noinc ? "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bars];\n"
                                     : "cp.async.mbarrier.arrive.shared::cta.b64 "
                                       "[bars];\nmbarrier.arrive.shared::cta.b64 _, [bars];\n";
    run(init(0, 32) + R"(
      and.b32 %r5, %r0, 31;
      shl.b32 %r6, %r5, 4;
      cvt.u64.u32 %rd3, %r6;
      add.u64 %rd4, %rd1, %rd3;
      add.u64 %rd5, %rd0, %rd3;
      add.u32 %r7, %r2, %r6;
      @!%p1 bra READ;
      cp.async.cg.shared.global [%r7], [%rd4], 16;
      )" + arrive +
            "bra END;\nREAD:\n" + wait(0, "0") + R"(
      ld.shared.v4.u32 {%r8,%r9,%r10,%r11}, [%r7];
      st.global.v4.u32 [%rd5], {%r8,%r9,%r10,%r11};
      END:
      )",
        {1, 64, 1}, [&] {
          for (size_t i = 0; i < 128; ++i) ASSERT_EQ(words(out)[i], words(in)[i]);
        });
  }
}

// ---- bulk copies ----

constexpr char kBulkLoad[] = R"(
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars], 256;
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 128, [bars];
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [buffer+128], [%rd1+1024], 128, [bars], %rd1;
)";
constexpr char kCopyOut[] = R"(
  shl.b32 %r6, %r0, 2;
  cvt.u64.u32 %rd3, %r6;
  add.u64 %rd3, %rd0, %rd3;
  add.u32 %r7, %r2, %r6;
  ld.shared.u32 %r8, [%r7];
  st.global.u32 [%rd3], %r8;
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
const std::string kFence = "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
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

// ---- clusters ----

constexpr char kClusterSync[] =
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";

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

// ---- tensor copies ----

// 256 threads copy buffer (4 KB) to out, words nobody wrote as they are: the test fills the buffer first.
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

// Element by element against tests/isa/h200/reductions.npy: what was in memory, what came, what was there
// then.
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
