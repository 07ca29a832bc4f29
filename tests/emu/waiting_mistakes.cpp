// SPDX-License-Identifier: MIT
//
// Planted mistakes with barriers, flags, locks and mbarriers.

#include "tests/emu/mistakes.h"

namespace emu_test {

std::vector<Mistake> barrier_mistakes() {
  std::vector<Mistake> all;
  const Config block = config_of(1, 128);
  const auto add = [&](const char* name, FaultKind kind, const std::string& bug, const std::string& right,
                       const Config& config) {
    all.push_back({name, kind, kernel(bug), kernel(right), config});
  };
  add("diverged_barrier_in_a_branch", FaultKind::diverged,
      "setp.ge.u32 %p0, %r0, 40;\n@%p0 bra SKIP;\nst.global.u32 [%rd2], %r0;\nbar.sync 0;\nSKIP:\nbar.sync "
      "1;\n",
      "setp.ge.u32 %p0, %r0, 40;\n@%p0 bra SKIP;\nst.global.u32 [%rd2], %r0;\nSKIP:\nbar.sync 0;\nbar.sync "
      "1;\n",
      block);
  add("diverged_guarded_barrier", FaultKind::diverged, "setp.lt.u32 %p0, %r3, 16;\n@%p0 bar.sync 0;\n",
      "setp.lt.u32 %p0, %r3, 32;\n@%p0 bar.sync 0;\n", block);
  add("deadlock_barrier_in_a_branch", FaultKind::deadlock,
      "setp.ge.u32 %p0, %r4, 2;\n@%p0 bra ELSE;\nbar.sync 0;\nbra END;\nELSE:\nbar.sync 1;\nEND:\n",
      "setp.ge.u32 %p0, %r4, 2;\n@%p0 bra ELSE;\nbar.sync 0, 64;\nbra END;\nELSE:\nbar.sync 1, 64;\nEND:\n",
      block);
  add("deadlock_count_too_large", FaultKind::deadlock, "bar.sync 1, 160;\n", "bar.sync 1, 128;\n", block);
  add("barrier_count_differs", FaultKind::barrier_count,
      "setp.eq.u32 %p0, %r4, 0;\n@%p0 bar.arrive 1, 128;\n@!%p0 bar.sync 1, 96;\n",
      "setp.eq.u32 %p0, %r4, 0;\n@%p0 bar.arrive 1, 128;\n@!%p0 bar.sync 1, 128;\n", block);
  all.back().every_order = false;  // in some the count of 96 is full before the other comes
  add("barrier_count_of_40", FaultKind::barrier_count, "bar.sync 1, 40;\n", "bar.sync 1, 64;\n",
      config_of(1, 40));
  add("barrier_number_16", FaultKind::barrier, "add.u32 %r10, %r4, 13;\nbar.sync %r10, 32;\n",
      "add.u32 %r10, %r4, 12;\nbar.sync %r10, 32;\n", block);
  add("barrier_early_return_of_warps", FaultKind::barrier,
      "setp.ge.u32 %p0, %r0, 64;\n@%p0 ret;\nst.global.u32 [%rd2], %r0;\nbar.sync 0;\n",
      "setp.ge.u32 %p0, %r0, 64;\n@!%p0 st.global.u32 [%rd2], %r0;\nbar.sync 0;\n", block);
  add("barrier_early_return_of_lanes", FaultKind::barrier,
      "setp.ge.u32 %p0, %r0, 100;\n@%p0 ret;\nst.global.u32 [%rd2], %r0;\nbar.sync 0;\n",
      "setp.ge.u32 %p0, %r0, 100;\n@!%p0 st.global.u32 [%rd2], %r0;\nbar.sync 0;\n", block);
  add("barrier_count_two_kinds", FaultKind::barrier_count,
      "setp.eq.u32 %p0, %r4, 0;\n@%p0 bar.red.popc.u32 %r10, 0, %p0;\n@!%p0 bar.sync 0;\n",
      "setp.eq.u32 %p0, %r4, 0;\nbar.red.popc.u32 %r10, 0, %p0;\n", block);
  add("diverged_mask_without_this_lane", FaultKind::diverged,
      "shfl.sync.bfly.b32 %r10, %r0, 1, 31, 0x0000FFFF;\n",
      "shfl.sync.bfly.b32 %r10, %r0, 1, 31, 0xFFFFFFFF;\n", config_of(1, 32));
  add("diverged_masks_differ", FaultKind::diverged,
      "setp.lt.u32 %p0, %r3, 16;\nselp.b32 %r11, 0xFFFFFFFF, 0xFFFF0000, %p0;\nshfl.sync.bfly.b32 %r10, %r0, "
      "1, 31, %r11;\n",
      "setp.lt.u32 %p0, %r3, 16;\nselp.b32 %r11, 0x0000FFFF, 0xFFFF0000, %p0;\nshfl.sync.bfly.b32 %r10, %r0, "
      "1, 31, %r11;\n",
      config_of(1, 32));
  add("diverged_shuffle_in_a_branch", FaultKind::diverged,
      "setp.lt.u32 %p0, %r3, 16;\n@!%p0 bra SKIP;\nshfl.sync.idx.b32 %r10, %r0, 0, 31, "
      "0xFFFFFFFF;\nSKIP:\nbar.warp.sync 0xFFFFFFFF;\n",
      "setp.lt.u32 %p0, %r3, 16;\n@!%p0 bra SKIP;\nshfl.sync.idx.b32 %r10, %r0, 0, 31, "
      "0x0000FFFF;\nSKIP:\nbar.warp.sync 0xFFFFFFFF;\n",
      config_of(1, 32));
  add("barrier_count_cluster_arrives_twice", FaultKind::barrier_count,
      "barrier.cluster.arrive;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
      "barrier.cluster.arrive;\nbarrier.cluster.wait;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
      config_of(4, 64, 2));
  add("deadlock_cluster_barrier_in_a_branch", FaultKind::deadlock,
      "mov.u32 %r10, %cluster_ctarank;\nsetp.eq.u32 %p0, %r10, 0;\n@%p0 barrier.cluster.arrive;\n@%p0 "
      "barrier.cluster.wait;\n@!%p0 bar.sync 3, 96;\n",
      "mov.u32 %r10, %cluster_ctarank;\nsetp.eq.u32 %p0, %r10, "
      "0;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n@!%p0 bar.sync 3, 64;\n",
      config_of(4, 64, 2));
  return all;
}

std::vector<Mistake> lock_mistakes() {
  std::vector<Mistake> all;
  const auto flag = [](const char* set) {
    return kernel(std::string("setp.eq.u32 %p0, %r5, 127;\n") + set + R"(
    SPIN:
    ld.acquire.gpu.global.u32 %r10, [%rd1];
    setp.eq.u32 %p1, %r10, 0;
    @%p1 bra SPIN;)");
  };
  all.push_back({"deadlock_flag_that_nobody_sets",
                 FaultKind::deadlock,
                 flag(""),
                 flag("@%p0 st.release.gpu.global.u32 [%rd1], 1;"),
                 config_of(2, 64),
                 {0}});
  // Each of two warps takes two locks; in opposite order, each gets one and waits for the other.
  const auto locks = [](const char* second) {
    return kernel(std::string(R"(
    .shared .align 4 .b32 locks[2];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 st.shared.u32 [locks], 0;
    @%p0 st.shared.u32 [locks+4], 0;
    bar.sync 0;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra END;
    and.b32 %r10, %r4, )") +
                  second + R"(;
    mad.lo.u32 %r11, %r10, 4, locks;
    xor.b32 %r12, %r10, 1;
    mad.lo.u32 %r12, %r12, 4, locks;
    FIRST:
    atom.acquire.cta.shared.cas.b32 %r13, [%r11], 0, 1;
    setp.ne.u32 %p2, %r13, 0;
    @%p2 bra FIRST;
    mov.u32 %r20, 0;
    SLOW:
    add.u32 %r20, %r20, 1;
    setp.lt.u32 %p3, %r20, 2000;
    @%p3 bra SLOW;
    SECOND:
    atom.acquire.cta.shared.cas.b32 %r14, [%r12], 0, 1;
    setp.ne.u32 %p2, %r14, 0;
    @%p2 bra SECOND;
    atom.release.cta.shared.exch.b32 %r14, [%r12], 0;
    atom.release.cta.shared.exch.b32 %r13, [%r11], 0;
    END:
    bar.sync 0;)");
  };
  all.push_back({"deadlock_two_locks", FaultKind::deadlock, locks("1"), locks("0"), config_of(1, 64)});
  return all;
}

namespace {

// A block of two full barriers, the first of which `init` arrivals complete, and a stage.
std::string mbarrier(const std::string& body, const std::string& init = "1") {
  return kernel(R"(
    .shared .align 8 .b64 full[2];
    .shared .align 128 .b8 stage[1024];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [full], )" +
                init + R"(;
    bar.sync 0;
    )" + body);
}

// All wait for the first phase of the first barrier.
const std::string kWait = R"(
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra WAIT;
    )";

const Config kTwoWarps = config_of(1, 64);

}  // namespace

std::vector<Mistake> mbarrier_mistakes() {
  std::vector<Mistake> all;
  all.push_back({"deadlock_nobody_arrives", FaultKind::deadlock, mbarrier(kWait),
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n" + kWait), kTwoWarps});
  const std::string poll = R"(
    WAIT:
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra WAIT;
    )";
  all.push_back({"deadlock_polled_barrier", FaultKind::deadlock,
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n" + poll, "2"),
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n" + poll, "1"), kTwoWarps});
  const auto second = [](const char* between) {
    return mbarrier(std::string(between) + "@%p0 mbarrier.init.shared::cta.b64 [full], 2;\n");
  };
  all.push_back({"mbarrier_initialised_twice", FaultKind::mbarrier, second(""),
                 second("@%p0 mbarrier.inval.shared::cta.b64 [full];\n"), kTwoWarps});
  all.push_back({"mbarrier_state_not_initialised", FaultKind::mbarrier_state,
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full+8];\n"),
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n"), kTwoWarps});
  all.push_back({"mbarrier_state_too_many_arrivals", FaultKind::mbarrier_state,
                 mbarrier("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], "
                          "16;\nmbarrier.arrive.shared::cta.b64 _, [full];\n",
                          "32"),
                 mbarrier("mbarrier.arrive.shared::cta.b64 _, [full];\n", "64"), kTwoWarps});
  return all;
}

// A word from thread 0 to the other warp. Relaxed arrivals and waits order it only with a fence.
std::vector<Mistake> relaxed_mistakes() {
  std::vector<Mistake> all;
  const auto handed = [](const std::string& arrive, const std::string& polled, const std::string& fence) {
    return mbarrier("@%p0 st.shared.u32 [stage], 5;\n" + arrive + "WAIT:\nmbarrier.try_wait.parity." +
                    polled + "shared::cta.b64 %p1, [full], 0;\n@!%p1 bra WAIT;\n" + fence +
                    "ld.shared.u32 %r10, [stage];\n");
  };
  const std::string relaxed = "@%p0 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [full];\n",
                    ordered = "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n",
                    fence = "fence.acq_rel.cta;\n";
  all.push_back({"race_relaxed_arrival", FaultKind::race, handed(relaxed, "", ""),
                 handed(fence + relaxed, "", ""), kTwoWarps});
  all.push_back({"race_fence_behind_the_relaxed_arrival", FaultKind::race,
                 handed(relaxed + "@%p0 " + fence, "", ""), handed("fence.release.cta;\n" + relaxed, "", ""),
                 kTwoWarps});
  all.push_back({"race_relaxed_wait", FaultKind::race, handed(ordered, "relaxed.cta.", ""),
                 handed(ordered, "relaxed.cta.", fence), kTwoWarps});
  all.push_back({"race_relaxed_wait_and_a_release", FaultKind::race,
                 handed(ordered, "relaxed.cta.", "fence.release.cta;\n"),
                 handed(ordered, "relaxed.cta.", "fence.acquire.cta;\n"), kTwoWarps});
  return all;
}

std::vector<Mistake> bulk_mistakes() {
  std::vector<Mistake> all;
  const auto load = [](const char* bytes, const std::string& then) {
    return mbarrier(std::string("@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], ") + bytes +
                    ";\n@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%rd1], "
                    "256, [full];\n" +
                    then);
  };
  const Words in(256);
  all.push_back({"deadlock_bytes_that_never_come", FaultKind::deadlock, load("1024", kWait),
                 load("256", kWait), kTwoWarps, in});
  all.push_back(
      {"exit_before_the_copy_is_there", FaultKind::exit, load("256", ""), load("256", kWait), kTwoWarps, in});
  all.back().every_order = false;  // in some the copy is quick
  const auto store = [](const char* fence) {
    return mbarrier(std::string("mad.lo.u32 %r10, %r0, 4, stage;\nst.shared.u32 [%r10], %r0;\n") + fence +
                    "\nbar.sync 0;\n@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [stage], "
                    "256;\n@%p0 cp.async.bulk.commit_group;\n"
                    "@%p0 cp.async.bulk.wait_group 0;\n");
  };
  all.push_back(
      {"proxy_no_fence", FaultKind::proxy, store(""), store("fence.proxy.async.shared::cta;"), kTwoWarps});
  return all;
}

std::vector<Mistake> neighbour_mistakes() {
  std::vector<Mistake> all;
  const auto peer = [](const char* last) {
    return kernel(std::string(R"(
    .shared .align 4 .u32 cell;
    st.shared.u32 [cell], %r1;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r10, %cluster_ctarank;
    setp.eq.u32 %p0, %r10, 1;
    @%p0 bra END;
    mov.u32 %r20, 0;
    SLOW:
    add.u32 %r20, %r20, 1;
    setp.lt.u32 %p3, %r20, 2000;
    @%p3 bra SLOW;
    mov.u32 %r11, cell;
    mapa.shared::cluster.u32 %r11, %r11, 1;
    ld.shared::cluster.u32 %r12, [%r11];
    END:
    )") + last);
  };
  all.push_back({"use_after_free_of_a_neighbour", FaultKind::use_after_free, peer(""),
                 peer("barrier.cluster.arrive;\nbarrier.cluster.wait;"), config_of(2, 32, 2)});
  const auto relaxed_peer = [](const std::string& before) {
    return kernel(R"(
    .shared .align 4 .u32 cell;
    st.shared.u32 [cell], %r1;
    )" + before + R"(
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
    mov.u32 %r10, %cluster_ctarank;
    xor.b32 %r10, %r10, 1;
    mov.u32 %r11, cell;
    mapa.shared::cluster.u32 %r11, %r11, %r10;
    ld.shared::cluster.u32 %r12, [%r11];
    barrier.cluster.arrive;
    barrier.cluster.wait;)");
  };
  all.push_back({"race_relaxed_arrival_of_a_cluster", FaultKind::race, relaxed_peer(""),
                 relaxed_peer("fence.acq_rel.cluster;"), config_of(2, 32, 2)});
  all.push_back({"race_load_overtaken_by_an_arrival", FaultKind::race,
                 read_and_tell("add.u32 %r12, %r12, 1;"),
                 read_and_tell("setp.eq.u32 %p4, %r12, 0x80000000;\n@%p4 bra SKIP;"), config_of(2, 32, 2)});
  return all;
}

}  // namespace emu_test
