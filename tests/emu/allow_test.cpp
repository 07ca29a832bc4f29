// SPDX-License-Identifier: MIT
//
// `gg-ptx --allow KIND`. For each kind that can be allowed: programs that stop at such a fault, and
// that end with the output of hardware when it is allowed. For each other kind: the sentence that
// refuses it. What an H200 does was measured with one program for each case.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/emu/foreign/ptx_run.h"
#include "tests/emu/launch_ptx.h"
#include "tests/emu/report_says.h"

namespace {

using namespace emu_test;
using report::says;
using testing_gg::Outcome;

constexpr size_t kWords = 256;
constexpr uint32_t kBefore = 0xEEEEEEEE;  // what out holds before the launch

struct Case {
  std::string name;
  FaultKind kind = FaultKind::race;
  std::string body;
  int threads = 32;
  Words want = {};             // the first words of out
  std::string what = {};       // a part of the report
  int blocks = 1;              // one cluster
  std::string allow_too = "";  // another kind, behind a comma
  std::vector<std::string> orders = {"0:fair", "1:fair", "2:skew"};
};

// begin, begin + 1, ...
Words counting(size_t count, uint32_t begin = 0) {
  Words words(count);
  std::iota(words.begin(), words.end(), begin);
  return words;
}

// out[at] = 1 or 0, by one thread.
std::string put(int at, const std::string& predicate) {
  return "selp.u32 %r40, 1, 0, " + predicate + ";\nst.global.u32 [%rd0+" + std::to_string(4 * at) +
         "], %r40;\n";
}

// ---- memory and registers ----

// The word of each thread is at %r10.
const std::string kTile = ".shared .align 16 .b32 tile[64];\nmad.lo.u32 %r10, %r0, 4, tile;\n";

std::vector<Case> memory_cases() {
  std::vector<Case> all;
  all.push_back({"UninitShared", FaultKind::uninit_shared,
                 kernel(kTile + "ld.shared.u32 %r11, [%r10];\nand.b32 %r11, %r11, 0;\nadd.u32 %r11, %r11, "
                                "%r0;\nst.global.u32 [%rd2], %r11;\n"),
                 32, counting(32)});
  all.push_back({"UninitGlobal", FaultKind::uninit_global,
                 kernel(R"(
    {
    .param .b64 size; .param .b64 back;
    mov.u64 %rd3, 4;
    st.param.b64 [size], %rd3;
    call.uni (back), malloc, (size);
    ld.param.b64 %rd3, [back];
    }
    ld.global.u32 %r11, [%rd3];
    and.b32 %r11, %r11, 0;
    add.u32 %r11, %r11, %r0;
    st.global.u32 [%rd2], %r11;)",
                        ".extern .func (.param .b64 func_retval0) malloc(.param .b64 a);\n"),
                 32, counting(32), "of a block of 4 bytes of the kernels' heap are read"});
  all.push_back({"UninitRegister", FaultKind::uninit_register,
                 kernel("sub.u32 %r11, %r41, %r41;\nadd.u32 %r11, %r11, %r0;\nst.global.u32 [%rd2], %r11;\n"),
                 32, counting(32)});
  // Not measured: ThunderKittens' kernels for a B200 rely on it.
  all.push_back({"AddressSpace", FaultKind::address_space, kernel(kTile + R"(
    cvt.u64.u32 %rd3, %r10;
    cvta.shared.u64 %rd3, %rd3;
    st.shared.u32 [%rd3], %r0;
    ld.shared.u32 %r11, [%r10];
    st.global.u32 [%rd2], %r11;)"),
                 32, counting(32), "is the generic one of shared address 0x400"});
  // ptxas makes the same machine code of both forms of an mbarrier's address, generic and
  // of shared memory.
  all.push_back({"SharedAddressOfAnMbarrier", FaultKind::address_space, kernel(R"(
    .shared .align 8 .b64 bar;
    mov.u32 %r10, bar;
    cvt.u64.u32 %rd3, %r10;
    setp.ne.u32 %p0, %r0, 0;
    @!%p0 mbarrier.init.b64 [%rd3], 1;
    bar.sync 0;
    @!%p0 mbarrier.arrive.b64 %rd4, [%rd3];
    WAIT:
    mbarrier.try_wait.parity.b64 %p1, [%rd3], 0;
    @!%p1 bra WAIT;
    st.global.u32 [%rd2], %r0;)"),
                 32, counting(32), "is one of shared memory, and the instruction wants a generic one"});
  all.push_back({"Race", FaultKind::race, kernel(kTile + R"(
    st.shared.u32 [tile], %r4;
    bar.sync 0;
    ld.shared.u32 %r11, [tile];
    setp.lt.u32 %p0, %r11, 2;
    selp.u32 %r11, %r0, 99, %p0;
    st.global.u32 [%rd2], %r11;)"),
                 64, counting(64)});
  return all;
}

// ---- what is under way ----

std::vector<Case> copy_cases() {
  std::vector<Case> all;
  // Before the wait a thread reads the old word or the new one, behind it the new one.
  all.push_back({"AsyncWindow", FaultKind::async_window, kernel(kTile + R"(
    st.shared.u32 [%r10], %r0;
    mad.wide.u32 %rd3, %r0, 4, %rd1;
    cp.async.ca.shared.global [%r10], [%rd3], 4;
    ld.shared.u32 %r11, [%r10];
    setp.lt.u32 %p0, %r11, 32;
    ld.global.u32 %r12, [%rd3];
    setp.eq.or.u32 %p0, %r11, %r12, %p0;
    cp.async.wait_all;
    ld.shared.u32 %r13, [%r10];
    selp.u32 %r13, %r13, 0, %p0;
    st.global.u32 [%rd2], %r13;)"),
                 32, counting(32, 1000)});
  all.push_back({"Proxy", FaultKind::proxy, kernel(kTile + R"(
    st.shared.u32 [%r10], %r0;
    bar.sync 0;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    END:)"),
                 64, counting(64)});
  // The copy lands when nobody is there any more.
  all.push_back({"Exit",
                 FaultKind::exit,
                 kernel(R"(
    .shared .align 16 .b8 stage[1024];
    .shared .align 8 .b64 full;
    st.global.u32 [%rd2], %r0;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra END;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 1024;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%rd1], 1024, [full];
    END:)"),
                 32,
                 counting(32),
                 "still to write its shared memory",
                 1,
                 "",
                 {"0:fair"}});
  // All ones, and B begins inside a pattern of the swizzle, at a base offset of 0: each sum is 16.
  all.push_back({"Descriptor", FaultKind::descriptor, kernel(R"(
    .shared .align 1024 .b8 tile[4096];
    mad.lo.u32 %r10, %r0, 32, tile;
    mov.u32 %r11, 0x3F803F80;
    st.shared.v4.u32 [%r10], {%r11, %r11, %r11, %r11};
    st.shared.v4.u32 [%r10+16], {%r11, %r11, %r11, %r11};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %r10, tile;
    shr.u32 %r10, %r10, 4;
    cvt.u64.u32 %rd10, %r10;
    or.b64 %rd10, %rd10, 0xC000001000010000;
    add.u64 %rd11, %rd10, 8;
    setp.ne.u32 %p1, %r2, 128;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, %p1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.f32 [%rd2], %f0;)"),
                 128, Words(128, 0x41800000), "base offset is 0"});
  return all;
}

// ---- barriers ----

std::vector<Case> barrier_cases() {
  std::vector<Case> all;
  all.push_back({"BarrierEarlyReturnOfWarps", FaultKind::barrier,
                 kernel("setp.ge.u32 %p0, %r0, 64;\n@%p0 ret;\nbar.sync 0;\nst.global.u32 [%rd2], %r0;\n"),
                 128, counting(64), "have ended"});
  all.push_back({"BarrierEarlyReturnOfLanes", FaultKind::barrier,
                 kernel("setp.ge.u32 %p0, %r0, 40;\n@%p0 ret;\nbar.sync 0;\nst.global.u32 [%rd2], %r0;\n"),
                 64, counting(40), "ended before"});
  // Two warps meet at barrier 1, which one of them calls 17.
  all.push_back({"BarrierNumber17", FaultKind::barrier, kernel(R"(
    .shared .align 4 .b32 tile[64];
    mad.lo.u32 %r10, %r0, 4, tile;
    st.shared.u32 [%r10], %r0;
    mad.lo.u32 %r11, %r4, 16, 1;
    bar.sync %r11, 64;
    xor.b32 %r12, %r0, 32;
    mad.lo.u32 %r12, %r12, 4, tile;
    ld.shared.u32 %r13, [%r12];
    xor.b32 %r13, %r13, 32;
    st.global.u32 [%rd2], %r13;)"),
                 64, counting(64), "there is no barrier 17"});
  all.push_back({"BarrierClusterWaitWithoutArrival", FaultKind::barrier,
                 kernel("barrier.cluster.wait;\nst.global.u32 [%rd2], %r0;\n"), 32, counting(32),
                 "without having arrived"});
  return all;
}

// ---- mbarriers, by thread 0 of each block ----

std::string mbarriers(const std::string& body) {
  return kernel(R"(
    .shared .align 8 .b64 bars[2];
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra END;
    mbarrier.init.shared::cta.b64 [bars], 2;
    )" + body + "\nEND:\n");
}
std::string arrive(const std::string& more = "") {
  return "mbarrier.arrive.shared::cta.b64 %rd3, [bars]" + more + ";\n";
}
std::string test(int at, int parity) {
  return "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bars], " + std::to_string(parity) + ";\n" +
         put(at, "%p1");
}

std::vector<Case> mbarrier_cases() {
  std::vector<Case> all;
  const auto add = [&](const char* name, const std::string& body, const Words& want, const char* what) {
    all.push_back({std::string("Mbarrier") + name, FaultKind::mbarrier, body, 32, want, what});
  };
  const std::string again = "mbarrier.init.shared::cta.b64 [bars], 1;\n";
  // Arrivals and bytes of the old barrier count for nothing.
  add("InitialisedAgainInAPhase",
      mbarriers(arrive() + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bars], 64;\n" + again +
                test(0, 0) + arrive() + test(1, 0)),
      {0, 1}, "is initialised a second time");
  add("InitialisedAgainBetweenPhases",
      mbarriers(arrive() + arrive() + test(0, 0) + again + test(1, 0) + arrive() + test(2, 0) + test(3, 1)),
      {1, 0, 1, 0}, "is initialised a second time");
  // The second warp sleeps at the old barrier and wakes when a phase of the new one ends. Nothing
  // orders the two, which is a race.
  all.push_back({"MbarrierInitialisedAgainWhileAnotherWaits",
                 FaultKind::mbarrier,
                 kernel(R"(
    .shared .align 8 .b64 bars[2];
    .shared .align 4 .b32 word;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [bars], 2;
    bar.sync 0;
    setp.eq.u32 %p2, %r4, 1;
    @%p2 bra WAIT;
    mov.u32 %r10, 0;
    SLOW:
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p3, %r10, 500;
    @%p3 bra SLOW;
    @!%p0 bra END;
    )" + again + R"(
    st.shared.u32 [word], 5;
    mbarrier.arrive.shared::cta.b64 _, [bars];
    bra END;
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [bars], 0;
    @!%p1 bra WAIT;
    ld.shared.u32 %r11, [word];
    st.global.u32 [%rd0], %r11;
    END:)"),
                 64,
                 {5},
                 "is initialised a second time",
                 1,
                 ",race"});
  add("NoCompleteIsTheLast",
      mbarriers(arrive() + "mbarrier.arrive.noComplete.shared::cta.b64 %rd3, [bars], 1;\n" + test(0, 0)), {1},
      "end its phase");
  add("NoArrivals",
      mbarriers("mov.u32 %r10, 0;\n" + arrive(", %r10") + arrive() + test(0, 0) + arrive() + test(1, 0)),
      {0, 1}, "gets 0 arrivals");
  add("ParityOfTwo", mbarriers(arrive() + arrive() + test(0, 2) + test(1, 3)), {1, 0}, "parity 2");
  // A token is worth the parity of its phase, whatever barrier it is of and however old.
  const std::string by_token = "mbarrier.test_wait.shared::cta.b64 %p1, [bars+8], %rd3;\n" + put(0, "%p1") +
                               "mbarrier.arrive.shared::cta.b64 _, [bars+8];\n" +
                               "mbarrier.test_wait.shared::cta.b64 %p1, [bars+8], %rd3;\n" + put(1, "%p1");
  add("TokenOfAnother", mbarriers("mbarrier.init.shared::cta.b64 [bars+8], 1;\n" + arrive() + by_token),
      {0, 1}, "is not from an arrival at");
  const std::string more = "mbarrier.arrive.shared::cta.b64 _, [bars], 2;\n";
  add("TokenOfLongAgo",
      mbarriers(arrive() + arrive() + more + "mbarrier.test_wait.shared::cta.b64 %p1, [bars], %rd3;\n" +
                put(0, "%p1") + more + "mbarrier.test_wait.shared::cta.b64 %p1, [bars], %rd3;\n" +
                put(1, "%p1")),
      {0, 1}, "the token is of phase 0");
  // Ordinary accesses see ordinary bytes, and the barrier goes on beside them.
  add("ItsBytesAsMemory",
      mbarriers(arrive() +
                "st.shared.u32 [bars], 5;\nld.shared.u32 %r10, [bars];\nst.global.u32 [%rd0], %r10;\n" +
                test(1, 0) + arrive() + test(2, 0)),
      {5, 0, 1}, "belongs to an mbarrier");
  return all;
}

// Block 0 names an mbarrier of block 1 for bytes that come to itself: that of its own at the same
// place counts them.
std::vector<Case> neighbour_cases() {
  const auto copies = [](const std::string& copy) {
    return kernel(R"(
    .shared .align 16 .b32 cell[4];
    .shared .align 8 .b64 full;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra SYNC;
    mbarrier.init.shared::cta.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    SYNC:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r10, %cluster_ctarank;
    or.b32 %r10, %r10, %r0;
    setp.ne.u32 %p0, %r10, 0;
    @%p0 bra LAST;
    mov.u32 %r11, cell;
    mov.u32 %r12, full;
    mapa.shared::cluster.u32 %r12, %r12, 1;
    )" + copy + R"(
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra WAIT;
    ld.shared.u32 %r13, [cell+12];
    st.global.u32 [%rd0], %r13;
    LAST:
    barrier.cluster.arrive;
    barrier.cluster.wait;)");
  };
  const char* const what = "the mbarrier that counts them is in that of rank 1";
  return {
      {"MbarrierOfAnotherBlockForAStore",
       FaultKind::mbarrier,
       copies("mov.u32 %r14, 1003;\nst.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r11], "
              "{%r14, %r14, "
              "%r14, %r14}, [%r12];"),
       32,
       {1003},
       what,
       2},
      {"MbarrierOfAnotherBlockForACopy",
       FaultKind::mbarrier,
       copies(
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%rd1], 16, [%r12];"),
       32,
       {1003},
       what,
       2}};
}

// No chip with tensor memory was at hand: the fences of tcgen05 are no machine instructions in what
// ptxas makes for sm_100a, so that nothing but their absence can follow.
std::vector<Case> tensor_memory_cases() {
  const auto loads = [](const std::string& body) {
    return with_tensor_memory(body + R"(
    tcgen05.wait::ld.sync.aligned;
    st.global.u32 [%rd2], %r11;
    bar.sync 0;
    @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;
    )");
  };
  Words shifted = counting(64);  // by warp 1: lanes 0 to 30 have what the next one had
  for (uint32_t lane = 0; lane < 31; ++lane) shifted[lane] = lane + 1;
  Words pair = counting(64);
  pair.insert(pair.end(), pair.begin(), pair.begin() + 64);
  return {{"UninitTmem", FaultKind::uninit_tmem, loads(R"(
    tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r11, %r12}, [%r10+7];
    )"),
           64, counting(64), "is read, and nobody has written lane"},
          {"SharedAddressInACommit", FaultKind::address_space, loads(R"(
    mov.u32 %r12, done;
    cvt.u64.u32 %rd3, %r12;
    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd3];
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra WAIT;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r10];
    )"),
           64, counting(64), "is one of shared memory, and the instruction wants a generic one"},
          {"TmemLane", FaultKind::tmem_lane, loads(R"(
    mov.u32 %r13, %cluster_ctarank;
    shl.b32 %r13, %r13, 23;
    add.u32 %r13, %r13, %r10;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r13];
    )"),
           64, pair, "names lane 128 of tensor memory, and each block has its own 128", 2},
          {"Tcgen05Fence", FaultKind::tcgen05_fence, loads(R"(
    bar.sync 0;
    mov.u32 %r12, done;
    @%p2 tcgen05.shift.cta_group::1.down [%r10];
    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r12];
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra WAIT;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r10];
    )"),
           64, shifted, "that warp ran no tcgen05.fence::before_thread_sync"}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& some : {memory_cases(), copy_cases(), barrier_cases(), mbarrier_cases(), neighbour_cases(),
                           tensor_memory_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

// ---- the tests ----

class Allow : public testing::TestWithParam<Case> {
 protected:
  // The words of `in` are 1000, 1001, ...
  Outcome run(const std::vector<std::string>& options, Words* out = nullptr) {
    const Case& c = GetParam();
    const testing_gg::Folder folder;
    testing_gg::write_text(folder.at("k.ptx"), c.body);
    testing_gg::PtxRun run(folder.at("k.ptx"));
    run.out("out", Words(kWords, kBefore)).in("in", counting(kWords, 1000));
    const std::string blocks = std::to_string(c.blocks);
    run.add({"--launch", "k", "--grid", blocks, "--cluster", blocks, "--block", std::to_string(c.threads)});
    run.arg("out").arg("in");
    const Outcome outcome = run.run(options);
    if (out) *out = run.result<uint32_t>("out");
    return outcome;
  }
};

TEST_P(Allow, StopsWithoutIt) {
  const std::string name = fault_name(GetParam().kind);
  for (const std::string& order : GetParam().orders) {
    const Outcome outcome = run({"--order", order});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.err.rfind("fault " + name + " in k\n", 0), 0u) << order << "\n" << outcome.err;
    EXPECT_TRUE(says(outcome.err, GetParam().what));
  }
}

TEST_P(Allow, GoesOnWithIt) {
  const std::string name = fault_name(GetParam().kind);
  Words want = GetParam().want;
  want.resize(kWords, kBefore);
  for (const std::string& order : GetParam().orders) {
    Words out;
    const Outcome outcome = run({"--order", order, "--allow", name + GetParam().allow_too}, &out);
    EXPECT_EQ(outcome.code, 0) << order << "\n" << outcome.err;
    EXPECT_EQ(outcome.err.rfind("allowed: " + name + " in k\n", 0), 0u) << order << "\n" << outcome.err;
    EXPECT_TRUE(says(outcome.err, GetParam().what));
    EXPECT_EQ(out, want) << order;
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, Allow, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Allowable, EveryKindThatCanBeAllowedHasACase) {
  std::set<FaultKind> planted;
  for (const Case& c : cases()) planted.insert(c.kind);
  for (int i = 0; i < gg::emu::kFaultKinds; ++i)
    EXPECT_EQ(planted.count(FaultKind(i)), size_t(can_be_allowed(FaultKind(i)))) << fault_name(FaultKind(i));
}

// By --help of both tools, and by --allow of both.
class Kinds : public testing::TestWithParam<FaultKind> {};

TEST_P(Kinds, HelpAndOptionsSayTheSame) {
  const bool can = can_be_allowed(GetParam());
  const std::string name = fault_name(GetParam()), tools = GG_BINARY_DIR "/bin/";
  for (const std::string tool : {"gg-emu", "gg-ptx"}) {
    const std::string help = testing_gg::run({tools + tool, "--help"}).out;
    EXPECT_EQ(help.find("\n  * " + name + " ") != std::string::npos, can) << help;
    EXPECT_EQ(help.find("\n    " + name + " ") != std::string::npos, !can) << help;
    const Outcome outcome = testing_gg::run({tools + tool, "no-such-file", "--allow", name});
    const Outcome before = testing_gg::run({tools + tool, "--allow", name, "no-such-file"});
    const Outcome& refused = tool == "gg-emu" ? before : outcome;
    EXPECT_EQ(refused.code, 2);
    const std::string sentence = "behind a fault of kind \"" + name +
                                 "\", these kinds can be allowed: " + gg::emu::allowable_kinds() + "\n";
    EXPECT_EQ(refused.err.find(sentence) != std::string::npos, !can) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
}

std::vector<FaultKind> all_kinds() {
  std::vector<FaultKind> all;
  for (int i = 0; i < gg::emu::kFaultKinds; ++i) all.push_back(FaultKind(i));
  return all;
}
INSTANTIATE_TEST_SUITE_P(Each, Kinds, testing::ValuesIn(all_kinds()), [](const auto& info) {
  std::string name = fault_name(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
