// SPDX-License-Identifier: MIT
//
// Planted mistakes with tensor memory, each with the program as it should be. A mistake is found in
// every order, whether the order makes its effect visible or not.

#include <gtest/gtest.h>

#include <optional>

#include "tests/emu/report_says.h"
#include "tests/emu/tmem_kernel.h"

namespace {

using namespace tmem_test;
using report::says;

struct Planted {
  std::string name;
  FaultKind kind = FaultKind::bounds;
  std::string bug, right;          // bodies
  std::vector<std::string> parts;  // of the report
  Config config = config_of(1, 128);
  std::optional<Config> right_config = {};
  std::vector<Order> orders = emu_test::orders();  // that it shows in
};

class Checks : public testing::TestWithParam<Planted> {};

TEST_P(Checks, IsReportedInEveryOrder) {
  const Planted& p = GetParam();
  for (const Order& order : p.orders) {
    SCOPED_TRACE(name_of(order));
    try {
      run(kernel(p.bug), p.config, order, 4096);
      ADD_FAILURE() << "no fault";
    } catch (const Fault& fault) {
      EXPECT_STREQ(fault_name(fault.kind), fault_name(p.kind)) << fault.what();
      for (const std::string& part : p.parts) EXPECT_TRUE(says(fault.what(), part));
    }
  }
}

TEST_P(Checks, ItsCorrectionIsNot) {
  const Planted& p = GetParam();
  for (const Order& order : emu_test::orders()) {
    SCOPED_TRACE(name_of(order));
    try {
      run(kernel(p.right), p.right_config.value_or(p.config), order, 4096);
    } catch (const Fault& fault) {
      ADD_FAILURE() << fault.what();
    }
  }
}

// ---- pieces ----

const std::string kCopy = "@%p2 tcgen05.cp.cta_group::1.128x256b [%r6], %rd8;\n",
                  kLoad = "tcgen05.ld.sync.aligned.32x32b.x8.b32 " + registers(8) + ", [%r6];\n",
                  kLoadTwo = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r20, %r21}, [%r6];\n",
                  kStoreTwo = "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r6], {%r0, %r0};\n";
const std::string kUse = "st.global.u32 [%rd2], %r100;\n", kUseTwo = "st.global.u32 [%rd2], %r21;\n";

// 32 columns, an mbarrier for one arrival, 64 words of shared memory of each thread, the
// descriptor in %rd8.
std::string prepared() {
  return alloc(32) + init(0, 1) + fill_shared(64) + "bar.sync 0;\n" +
         make_descriptor(descriptor(1024 * 8, 160));
}
std::string commit_by_32() { return commit(0, "@%p2"); }

// ---- what is not waited for ----

std::vector<Planted> order_mistakes() {
  std::vector<Planted> all;
  const std::string copied = prepared() + kCopy + commit_by_32();
  all.push_back(
      {"load_before_the_commits_wait",
       FaultKind::async_window,
       copied + "bar.sync 0;\n" + kLoad + kWaitLoad + kUse + wait(0) + dealloc(32),
       copied + wait(0) + kAfter + kLoad + kWaitLoad + kUse + dealloc(32),
       {"columns 0-7) is read here while the tensor core may still write it",
        "other the tensor core, driven by warp 1, lane 0 (thread 32): wrote tensor memory (lanes 0-127, "
        "columns 0-7)",
        "tcgen05.cp.cta_group::1.128x256b [%r6], %rd8"}});
  // A wait for an earlier commit tells nothing of what came behind it.
  const std::string again = copied + kCopy;
  all.push_back(
      {"load_behind_the_wait_for_an_earlier_commit",
       FaultKind::async_window,
       again + wait(0) + "bar.sync 0;\n" + kAfter + kLoad + kWaitLoad + kUse + commit_by_32() + wait(0, 1) +
           dealloc(32),
       again + wait(0) + "bar.sync 0;\n" + commit_by_32() + wait(0, 1) + kAfter + kLoad + kWaitLoad + kUse +
           dealloc(32),
       {"is read here while the tensor core may still write it",
        "where the sums of a tile before are read here, it starts too early: its warp waits first until "
        "columns 0-7 have been read"}});
  // The epilogue's loads, and the next tile that the tensor core writes over them.
  const std::string tile = copied + wait(0) + kAfter + kLoad;
  const std::string next = kCopy + commit_by_32() + wait(0, 1) + kAfter + dealloc(32);
  all.push_back(
      {"accumulator_overwritten_while_it_is_loaded",
       FaultKind::async_window,
       tile + kBefore + "bar.sync 0;\n" + kAfter + next + kWaitLoad,
       tile + kWaitLoad + kBefore + "bar.sync 0;\n" + kAfter + next,
       {"is written here while a tcgen05.ld may still read it", "the other runs tcgen05.wait::ld first"}});
  all.push_back({"accumulator_overwritten_with_no_barrier",
                 FaultKind::race,
                 tile + kWaitLoad + kAfter + next,
                 tile + kWaitLoad + kSync + next,
                 {"by another warp, with no barrier between the two"}});
  // In other orders a load meets the copy, see tmem_pipeline_test.cpp.
  all.back().orders = {{0, false}, {1, false}};
  const std::string filled = alloc(32) + kStoreTwo + kWaitStore;
  all.push_back({"registers_used_before_the_wait",
                 FaultKind::async_window,
                 filled + kLoadTwo + kUseTwo + kWaitLoad + dealloc(32),
                 filled + kLoadTwo + kWaitLoad + kUseTwo + dealloc(32),
                 {"register %r21 is read while an asynchronous operation still owns it",
                  "tcgen05.wait::ld comes between tcgen05.ld and what uses its registers"}});
  all.push_back({"registers_overwritten_before_the_wait",
                 FaultKind::async_window,
                 filled + kLoadTwo + "mov.u32 %r20, 5;\n" + kWaitLoad + dealloc(32),
                 filled + kLoadTwo + kWaitLoad + "mov.u32 %r20, 5;\n" + dealloc(32),
                 {"register %r20 is written while an asynchronous operation still owns it"}});
  const std::string stored = alloc(32) + fill(32, true);
  const std::string shift =
      "@%p2 tcgen05.shift.cta_group::1.down [%r6];\n" + commit_by_32() + wait(0) + kAfter + dealloc(32);
  all.push_back({"operation_behind_a_store_that_is_not_waited_for",
                 FaultKind::async_window,
                 stored + init(0, 1) + kStoreTwo + kSync + shift + kWaitStore,
                 stored + init(0, 1) + kStoreTwo + kWaitStore + kSync + shift,
                 {"while a tcgen05.st may still write it", "the other runs tcgen05.wait::st first"}});
  all.push_back({"load_behind_a_store_that_is_not_waited_for",
                 FaultKind::async_window,
                 alloc(32) + kStoreTwo + kLoadTwo + kWaitLoad + kUseTwo + dealloc(32),
                 alloc(32) + kStoreTwo + kWaitStore + kLoadTwo + kWaitLoad + kUseTwo + dealloc(32),
                 {"is read here while a tcgen05.st may still write it"}});
  all.push_back({"columns_given_back_while_the_tensor_core_writes",
                 FaultKind::async_window,
                 copied + dealloc(32) + wait(0),
                 copied + wait(0) + dealloc(32),
                 {"is written here while the tensor core may still write it"}});
  all.push_back({"two_warps_drive_it_to_the_same_columns",
                 FaultKind::async_window,
                 copied + kSync + "@%p0 tcgen05.cp.cta_group::1.128x256b [%r6], %rd8;\n" + wait(0) +
                     commit() + wait(0, 1) + dealloc(32),
                 copied + wait(0) + kSync + "@%p0 tcgen05.cp.cta_group::1.128x256b [%r6], %rd8;\n" +
                     commit() + wait(0, 1) + dealloc(32),
                 {"is written here while the tensor core may still write it"}});
  return all;
}

// ---- shared memory that the tensor core reads ----

std::vector<Planted> source_mistakes() {
  std::vector<Planted> all;
  const std::string copied = prepared() + kCopy + commit_by_32();
  const std::string refill = "@%p2 st.shared.u32 [buffer], %r0;\n";
  all.push_back({"source_refilled_by_stores",
                 FaultKind::async_window,
                 copied + refill + wait(0) + dealloc(32),
                 copied + wait(0) + refill + dealloc(32),
                 {"(byte 0 of buffer) is written here while the tensor core may still read it",
                  "the tensor core, driven by warp 1: read it"}});
  const std::string load = R"(
    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+8], 64;
    @%p2 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd1], 64, [bars+8];
    )";
  const std::string loaded = prepared() + init(1, 1) + kCopy + commit_by_32();
  all.push_back({"source_refilled_by_a_copy",
                 FaultKind::async_window,
                 loaded + load + wait(0) + wait(1) + dealloc(32),
                 loaded + wait(0) + load + wait(1) + dealloc(32),
                 {"(byte 0 of buffer) is written here while the tensor core may still read it"}});
  const auto stored = [](const std::string& fence) {
    return alloc(32) + init(0, 1) + fill_shared(64) +
           "mad.lo.u32 %r10, %r0, 4, %r2;\nst.shared.u32 [%r10], %r0;\n" + fence + "bar.sync 0;\n" +
           make_descriptor(descriptor(1024 * 8, 160)) + kCopy + commit_by_32() + wait(0) + dealloc(32);
  };
  all.push_back({"source_without_a_proxy_fence",
                 FaultKind::proxy,
                 stored(""),
                 stored("fence.proxy.async.shared::cta;\n"),
                 {"no fence.proxy.async has handed them on"}});
  const auto described = [](uint64_t bits) {
    return alloc(32) + init(0, 1) + fill_shared(64) + "bar.sync 0;\n" + make_descriptor(bits) + kCopy +
           commit_by_32() + wait(0) + dealloc(32);
  };
  const uint64_t right = descriptor(1024 * 8, 160);
  all.push_back({"descriptor_without_its_constant",
                 FaultKind::descriptor,
                 described(right & ~(1ull << 46)),
                 described(right),
                 {"has 0 in bits 46-48"}});
  all.push_back({"source_past_the_end",
                 FaultKind::bounds,
                 described(descriptor(1024 * 8, 8192)),
                 described(right),
                 {"row 61 of the source is at shared address"}});
  all.push_back({"source_that_nobody_wrote",
                 FaultKind::uninit_shared,
                 described(descriptor(32768, 160)),
                 described(right),
                 {"is read and nobody has written it"}});
  return all;
}

// ---- the fences of tcgen05 ----

std::vector<Planted> fence_mistakes() {
  std::vector<Planted> all;
  const std::string copied = prepared() + kCopy + commit_by_32();
  const std::string rest = kLoad + kWaitLoad + kUse + dealloc(32);
  all.push_back({"no_fence_behind_the_commits_wait",
                 FaultKind::tcgen05_fence,
                 copied + wait(0) + rest,
                 copied + wait(0) + kAfter + rest,
                 {"this warp ran no tcgen05.fence::after_thread_sync behind the barrier between the two",
                  "the tensor core, driven by warp 1: wrote it"}});
  const std::string stored = alloc(32) + init(0, 1) + fill(32, true);
  const std::string shift =
      "@%p2 tcgen05.shift.cta_group::1.down [%r6];\n" + commit_by_32() + wait(0) + dealloc(32);
  all.push_back({"no_fence_before_the_barrier",
                 FaultKind::tcgen05_fence,
                 stored + "bar.sync 0;\n" + kAfter + shift,
                 stored + kBefore + "bar.sync 0;\n" + kAfter + shift,
                 {"that warp ran no tcgen05.fence::before_thread_sync between its use and the barrier"}});
  all.push_back({"the_fence_comes_too_soon",
                 FaultKind::tcgen05_fence,
                 stored + kBefore + kStoreTwo + kWaitStore + "bar.sync 0;\n" + kAfter + shift,
                 stored + kStoreTwo + kWaitStore + kBefore + "bar.sync 0;\n" + kAfter + shift,
                 {"columns 0-1) is", "that warp ran no tcgen05.fence::before_thread_sync"}});
  all.push_back({"the_fence_behind_comes_too_soon",
                 FaultKind::tcgen05_fence,
                 stored + kAfter + kBefore + "bar.sync 0;\n" + shift,
                 stored + kBefore + "bar.sync 0;\n" + kAfter + shift,
                 {"this warp ran no tcgen05.fence::after_thread_sync"}});
  return all;
}

// ---- allocation ----

std::vector<Planted> allocation_mistakes() {
  std::vector<Planted> all;
  const std::string alloc_32 = "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n",
                    load_slot = "bar.sync 0;\nld.shared.u32 %r6, [slot];\n",
                    relinquish = "@%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n",
                    free_32 = "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;\n";
  const auto tcgen05 = [&](const char* name, const std::string& bug, const std::string& right,
                           const std::string& part, const Config& config = config_of(1, 128)) {
    all.push_back({name, FaultKind::tcgen05, bug, right, {part}, config});
  };
  tcgen05("leaked", alloc_32 + load_slot, alloc_32 + load_slot + free_32,
          "the block ends, and of its tensor memory columns 0-31 are allocated");
  tcgen05("alloc_after_relinquish", relinquish + alloc_32 + load_slot + free_32,
          alloc_32 + relinquish + load_slot + free_32,
          "an allocation behind tcgen05.relinquish_alloc_permit");
  tcgen05(
      "dealloc_of_fewer_columns", alloc(64) + "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;\n",
      alloc(64) + dealloc(64), "32 columns at address 0x0 of tensor memory, and columns 0-63 are allocated");
  tcgen05("dealloc_of_another_address", alloc_32 + load_slot + "add.u32 %r6, %r6, 1;\n" + free_32,
          alloc_32 + load_slot + free_32, "32 columns at address 0x1");
  tcgen05("dealloc_twice", alloc_32 + load_slot + free_32 + free_32, alloc_32 + load_slot + free_32,
          "nothing is allocated");
  const auto sized = [&](const char* columns) {
    return std::string("mov.u32 %r10, ") + columns +
           ";\n@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], %r10;\n" + load_slot +
           "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, %r10;\n";
  };
  tcgen05("alloc_of_48_columns", sized("48"), sized("64"), "48 columns of tensor memory");
  tcgen05("alloc_of_1024_columns", sized("1024"), sized("512"), "1024 columns of tensor memory");
  const std::string pair_free = "@%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r6, 32;\n";
  tcgen05("two_cta_groups", alloc(32) + pair_free, alloc(32) + dealloc(32),
          "cta_group::2 where the block has used cta_group::1 before", config_of(2, 128, 2));
  tcgen05("pair_without_a_peer", alloc(32, 2) + pair_free, alloc(32, 1) + dealloc(32, 1),
          "cta_group::2 in the block of rank 0 of a cluster of 1 block");
  const std::string by_rank =
      "setp.eq.u32 %p3, %r1, 0;\nmov.u32 %r10, 32;\n@%p3 mov.u32 %r10, 64;\n"
      "@%p1 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], %r10;\n";
  tcgen05("pair_that_does_not_agree", by_rank, alloc(32, 2) + dealloc(32, 2),
          "the other block of the pair executes another instruction, or names other columns",
          config_of(2, 32, 2));
  const std::string copies = prepared();
  tcgen05("commit_by_32_lanes",
          copies + "@%p2 bra HERE;\nHERE:\n" + kCopy + commit(0, "@%p1") + wait(0) + dealloc(32),
          copies + kCopy + commit_by_32() + wait(0) + dealloc(32),
          "issued by 32 lanes: the tensor core would do it 32 times");
  tcgen05("copy_by_two_lanes",
          copies + "setp.lt.u32 %p3, %r0, 2;\n@%p3 tcgen05.cp.cta_group::1.128x256b [%r6], %rd8;\n" +
              commit() + wait(0) + dealloc(32),
          copies + "@%p0 tcgen05.cp.cta_group::1.128x256b [%r6], %rd8;\n" + commit() + wait(0) + dealloc(32),
          "issued by 2 lanes");
  return all;
}

// ---- addresses ----

std::vector<Planted> address_mistakes() {
  std::vector<Planted> all;
  const auto load_at = [](const std::string& offset) {
    return alloc(32) + fill(32, true) + "add.u32 %r80, %r6, " + offset +
           ";\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r100}, [%r80];\n" + kWaitLoad + kUse + dealloc(32);
  };
  const auto own = std::string("shl.b32 %r80, %r5, 21;\nadd.u32 %r80, %r80, %r6;\n");
  all.push_back({"lanes_of_another_warp",
                 FaultKind::bounds,
                 load_at(number(32 << 16)),
                 load_at("0"),
                 {"names lane 32 of tensor memory; this warp reaches lanes"}});
  all.push_back({"lane_that_no_shape_begins_at",
                 FaultKind::bounds,
                 load_at(number(16 << 16)),
                 load_at("0"),
                 {"names lane 16, and this shape begins at a multiple of 32"}});
  all.push_back({"columns_that_are_not_allocated",
                 FaultKind::bounds,
                 load_at("32"),
                 load_at("31"),
                 {"column 32) is touched, and columns 0-31 are allocated"}});
  all.push_back(
      {"columns_that_are_not", FaultKind::bounds, load_at("512"), load_at("31"), {"column 512) is touched"}});
  const auto partly = [](const std::string& columns) {
    return alloc(32) + "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r6+4], {%r0, %r0};\n" + kWaitStore +
           "tcgen05.ld.sync.aligned.32x32b." + columns + kWaitLoad + kUse + dealloc(32);
  };
  all.push_back({"read_of_cells_that_nobody_wrote",
                 FaultKind::uninit_tmem,
                 partly("x4.b32 " + registers(4) + ", [%r6+4];\n"),
                 partly("x2.b32 " + registers(2) + ", [%r6+4];\n"),
                 {"nobody has written lane", "of column 6"}});
  const auto differs = [](const std::string& shift) {
    return alloc(32) + fill(32, true) + "shl.b32 %r80, %r4, " + shift +
           ";\nadd.u32 %r80, %r80, %r6;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r100}, [%r80];\n" +
           kWaitLoad + kUse + dealloc(32);
  };
  all.push_back({"address_that_differs_from_lane_to_lane",
                 FaultKind::diverged,
                 differs("0"),
                 differs("16"),
                 {"the address is 0x1 here and 0x0 in lane 0"}});
  all.push_back(
      {"load_by_a_part_of_the_warp",
       FaultKind::diverged,
       alloc(32) + fill(32, true) + "setp.lt.u32 %p3, %r4, 16;\n@%p3 " + kLoadTwo + kWaitLoad + dealloc(32),
       alloc(32) + fill(32, true) + kLoadTwo + kWaitLoad + dealloc(32),
       {"and it wants all of them at once"}});
  return all;
}

std::vector<Planted> copy_mistakes() {
  std::vector<Planted> all;
  const auto copy_to = [](const std::string& offset) {
    return prepared() + "add.u32 %r80, %r6, " + offset +
           ";\n@%p2 tcgen05.cp.cta_group::1.128x128b [%r80], %rd8;\n" + commit_by_32() + wait(0) +
           dealloc(32);
  };
  all.push_back({"copy_to_a_lane",
                 FaultKind::bounds,
                 copy_to(number(32 << 16)),
                 copy_to("0"),
                 {"names lane 32 of tensor memory, and this form wants lane 0"}});
  all.push_back({"copy_past_the_columns",
                 FaultKind::bounds,
                 copy_to("29"),
                 copy_to("28"),
                 {"columns 29-32) is touched, and columns 0-31 are allocated"}});
  const auto shift_at = [](int lane) {
    return alloc(32) + init(0, 1) + fill(32, true) + kSync + "add.u32 %r80, %r6, " + number(lane << 16) +
           ";\n@%p2 tcgen05.shift.cta_group::1.down [%r80];\n" + commit_by_32() + wait(0) + dealloc(32);
  };
  all.push_back({"shift_from_a_lane_within",
                 FaultKind::bounds,
                 shift_at(8),
                 shift_at(96),
                 {"names lane 8 of tensor memory, and this form wants a multiple of 32"}});
  const auto unpacked = [](const std::string& format) {
    return prepared() + "@%p2 tcgen05.cp.cta_group::1.128x128b.b8x16." + format + " [%r6], %rd8;\n" +
           commit_by_32() + wait(0) + dealloc(32);
  };
  all.push_back({"six_bit_elements",
                 FaultKind::unsupported,
                 unpacked("b6x16_p32"),
                 unpacked("b4x16_p64"),
                 {"6-bit elements in tensor memory: sources disagree"}});
  return all;
}

// ---- barriers ----

std::vector<Planted> barrier_mistakes() {
  std::vector<Planted> all;
  const std::string copied = prepared() + kCopy;
  all.push_back({"commit_to_another_barrier",
                 FaultKind::deadlock,
                 copied + init(1, 1) + commit(1, "@%p2") + wait(0) + dealloc(32),
                 copied + init(1, 1) + commit(1, "@%p2") + wait(1) + dealloc(32),
                 {"phase 0 lacks 1 of 1 arrivals"}});
  all.push_back({"commit_without_a_barrier",
                 FaultKind::mbarrier_state,
                 copied + commit(1, "@%p2") + wait(0),
                 copied + commit_by_32() + wait(0) + dealloc(32),
                 {"is not initialised"}});
  const std::string mask =
      "mov.u16 %h0, 2;\nmov.u32 %r98, bars;\n@%p2 "
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%r98], %h0;\n";
  all.push_back({"commit_to_a_rank_that_is_not",
                 FaultKind::bounds,
                 copied + mask + wait(0),
                 copied + commit_by_32() + wait(0) + dealloc(32),
                 {"a multicast mask of 0x2 in a cluster of 1 blocks"}});
  // The tensor core is not done when the block ends.
  const std::string unmarked =
      alloc(32) + init(0, 1) + fill_shared(64) + "bar.sync 0;\n" + make_descriptor(descriptor(1024 * 8, 160));
  all.push_back({"block_ends_before_the_arrival",
                 FaultKind::exit,
                 unmarked + dealloc(32) + commit_by_32(),
                 unmarked + dealloc(32) + commit_by_32() + wait(0),
                 {"still to signal its mbarrier"}});
  all.back().orders = {{0, false}};  // in others it may be done in time

  return all;
}

std::vector<Planted> planted() {
  std::vector<Planted> all;
  for (const auto& some : {order_mistakes(), source_mistakes(), fence_mistakes(), allocation_mistakes(),
                           address_mistakes(), copy_mistakes(), barrier_mistakes()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(Planted, Checks, testing::ValuesIn(planted()),
                         [](const auto& info) { return info.param.name; });

// A program that relies on what hardware does beyond the letter goes on where that is allowed.
TEST(TmemAllow, FencesMayBeLeftOut) {
  const std::string body =
      prepared() + kCopy + commit_by_32() + wait(0) + kLoad + kWaitLoad + kUse + dealloc(32);
  Config config = config_of(1, 128);
  config.options.allowed = 1u << int(FaultKind::tcgen05_fence);
  testing::internal::CaptureStderr();
  const Words out = run(kernel(body), config, {0, false}, 128);
  const std::string warnings = testing::internal::GetCapturedStderr();
  EXPECT_EQ(warnings.rfind("allowed: tcgen05-fence in k\n", 0), 0u) << warnings;
  for (uint32_t thread = 0; thread < 128; ++thread)  // row t: 16 bytes at t / 8 * 160 + t % 8 * 16
    EXPECT_EQ(out[thread], value_at(thread / 8 * 40 + thread % 8 * 4));
}

}  // namespace
