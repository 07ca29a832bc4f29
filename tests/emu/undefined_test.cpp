// SPDX-License-Identifier: MIT
//
// A register without a value may be computed with, shuffled and parked in shared or local memory,
// as compilers and libraries do in lanes beyond an edge. It is a fault where it matters, and the
// report says where it came from. Each way that hands it on stands beside a use of what must not be
// used and of what may.

#include <gtest/gtest.h>

#include "common/emu/core/state/faults.h"
#include "tests/emu/launch_ptx.h"
#include "tests/emu/report_says.h"

namespace {

using namespace emu_test;
using report::says;

// One block of 64 threads; %r3 is the lane. %r20 has a value in lanes 0 to 15 only.
std::string report_of(const std::string& body, bool checks = true, int threads = 64) {
  const std::string start =
      ".local .align 16 .b8 own[16];\nsetp.lt.u32 %p1, %r3, 16;\n@%p1 mov.u32 %r20, %r3;\n";
  Program program(kernel(start + body, ".shared .align 16 .b8 tile[1024];\n"));
  std::vector<Buffer> buffers = {Buffer(4096), Buffer(4096)};
  Config config = config_of(1, threads);
  config.options.workers = 1;
  config.options.checks = checks;
  try {
    program.run(buffers, config);
  } catch (const gg::emu::Fault& fault) {
    return fault.what();
  }
  return "";
}

const char* const kUse = "st.global.u32 [%rd2], %r21;\n";
const char* const kUseBelow16 = "@%p1 st.global.u32 [%rd2], %r21;\n";

struct Way {
  const char* name;
  std::string makes;  // %r21 of %r20, lane by lane
};

class Undefined : public testing::TestWithParam<Way> {};

TEST_P(Undefined, IsHandedOnAndFoundWhereItIsUsed) {
  const std::string& makes = GetParam().makes;
  for (const bool checks : {true, false}) {
    // Then nobody looks at its bytes.
    if (!checks && makes.find(".shared") != std::string::npos) continue;
    EXPECT_EQ(report_of(makes, checks), "");
    EXPECT_EQ(report_of(makes + kUseBelow16, checks), "");
    const std::string report = report_of(makes + kUse, checks);
    EXPECT_TRUE(says(report, "fault uninit-register"));
    EXPECT_TRUE(says(report, "lanes 16-31 read register %r21, which was made of one without a value"));
    EXPECT_TRUE(says(report, "lanes 16-31: each read register %r20, which had no value"));
  }
}

const std::string kAt = "mov.u32 %r30, tile;\nmad.lo.u32 %r31, %r0, 16, %r30;\n";
const std::string kGeneric = "cvt.u64.u32 %rd20, %r31;\ncvta.shared.u64 %rd20, %rd20;\n";

std::vector<Way> ways() {
  return {
      {"Mov", "mov.u32 %r21, %r20;\n"},
      {"Add", "add.u32 %r21, %r20, 1;\n"},
      {"Chain", "mul.lo.u32 %r22, %r20, 3;\nxor.b32 %r23, %r3, %r22;\nmov.u32 %r21, %r23;\n"},
      {"Float", "mov.b32 %f1, %r20;\nfma.rn.f32 %f2, %f1, %f1, %f1;\nmov.b32 %r21, %f2;\n"},
      {"Cvt", "cvt.u64.u32 %rd20, %r20;\ncvt.u32.u64 %r21, %rd20;\n"},
      {"Halves", "mov.b32 {%h1, %h2}, %r20;\nmov.b32 %r21, {%h2, %h1};\n"},
      {"Shuffle", "mov.u32 %r22, -1;\nshfl.sync.bfly.b32 %r23, %r20, 1, 31, %r22;\nmov.u32 %r21, %r23;\n"},
      {"Select", "setp.eq.u32 %p2, %r3, 99;\nselp.b32 %r21, %r3, %r20, %p2;\n"},
      {"SelectBy", "setp.eq.u32 %p2, %r20, 99;\nselp.b32 %r21, %r3, 7, %p2;\n"},
      {"Permute", "prmt.b32 %r21, %r20, %r3, 0x3210;\n"},
      {"Comparison",
       "setp.lt.u32 %p2, %r20, 8;\nsetp.lt.u32 %p3, %r3, 50;\nand.pred %p4, %p2, %p3;\n"
       "selp.b32 %r21, 1, 0, %p4;\n"},
      {"Shared", kAt + "st.shared.u32 [%r31], %r20;\nld.shared.u32 %r21, [%r31];\n"},
      {"SharedVector", kAt + "st.shared.v4.u32 [%r31], {%r3, %r3, %r20, %r3};\n"
                             "ld.shared.v2.u32 {%r21, _}, [%r31 + 8];\n"},
      {"SharedByte", kAt + "st.shared.u32 [%r31], %r3;\nst.shared.u8 [%r31 + 2], %r20;\n"
                           "ld.shared.u32 %r21, [%r31];\n"},
      {"Generic", kAt + kGeneric + "st.u32 [%rd20], %r20;\nld.u32 %r21, [%rd20];\n"},
      {"OfAnotherWarp", kAt + "st.shared.u32 [%r31], %r20;\nbar.sync 0;\nxor.b32 %r31, %r31, 512;\n"
                              "ld.shared.u32 %r21, [%r31];\n"},
      {"Local", "st.local.u32 [own], %r20;\nld.local.u32 %r21, [own];\n"},
  };
}
INSTANTIATE_TEST_SUITE_P(Ways, Undefined, testing::ValuesIn(ways()),
                         [](const auto& info) { return std::string(info.param.name); });

// Nothing that these make of %r20 depends on it.
TEST(Undefined, IsGoneWhereAnotherValueDecides) {
  const std::string decided[] = {
      "setp.lt.u32 %p2, %r3, 16;\nselp.b32 %r21, %r20, 7, %p2;\n",
      "prmt.b32 %r21, %r20, %r3, 0x7654;\n",
      "and.b32 %r21, %r20, 0;\n",
      "or.b32 %r21, %r20, -1;\n",
      "setp.lt.u32 %p2, %r20, 8;\nand.pred %p3, %p2, %p1;\nselp.b32 %r21, 1, 0, %p3;\n",
      "setp.lt.and.u32 %p3, %r20, 8, %p1;\nselp.b32 %r21, 1, 0, %p3;\n",
      "setp.lt.or.u32 %p3, %r20, 8, !%p1;\nselp.b32 %r21, 1, 0, %p3;\n",
      "mov.u32 %r22, -1;\nshfl.sync.idx.b32 %r21, %r20, 3, 31, %r22;\n",
      "mov.u32 %r21, %r20;\nmov.u32 %r21, 4;\n",
      "mov.b64 %rd20, {%r3, %r20};\nmov.b64 {%r21, _}, %rd20;\n",
      kAt + "st.shared.u32 [%r31], %r20;\nst.shared.u32 [%r31], %r3;\nld.shared.u32 %r21, [%r31];\n",
      kAt + "st.shared.v2.u32 [%r31], {%r20, %r3};\nld.shared.u32 %r21, [%r31 + 4];\n",
      "st.local.u32 [own], %r20;\nst.local.u32 [own], %r3;\nld.local.u32 %r21, [own];\n",
  };
  for (const std::string& makes : decided) EXPECT_EQ(report_of(makes + kUse), "") << makes;
}

TEST(Undefined, IsAFaultWhereItMatters) {
  const std::string copy = "add.u32 %r21, %r20, 0;\n", predicate = "setp.eq.u32 %p2, %r20, 99;\n";
  const std::string uses[] = {
      copy + "st.global.u32 [%rd2], %r21;\n",
      copy + "cvt.u64.u32 %rd20, %r21;\nadd.u64 %rd20, %rd2, %rd20;\nst.global.u32 [%rd20], %r3;\n",
      copy +
          "and.b32 %r21, %r21, 12;\nmov.u32 %r22, tile;\nadd.u32 %r22, %r22, %r21;\n"
          "st.shared.u32 [%r22], %r3;\n",
      predicate + "@%p2 bra L;\nmov.u32 %r22, 1;\nL:\n",
      predicate + "@%p2 mov.u32 %r22, 1;\n",
      predicate + "mov.u32 %r23, -1;\nvote.sync.ballot.b32 %r22, %p2, %r23;\n",
      copy + "red.global.add.u32 [%rd2], %r21;\n",
      copy + "atom.shared.add.u32 %r22, [tile], %r21;\n",
      copy + "mov.u32 %r23, -1;\nredux.sync.add.s32 %r22, %r21, %r23;\n",
      copy + "mov.u32 %r23, -1;\nshfl.sync.idx.b32 %r22, %r3, %r21, 31, %r23;\n",
      copy + "cvta.to.global.u64 %rd20, %rd2;\nst.u32 [%rd20], %r21;\n",
  };
  for (const std::string& body : uses) EXPECT_TRUE(says(report_of(body), "fault uninit-register")) << body;
}

// A shuffle that takes from a lane which takes no part. No register is unwritten on any way here.
struct Absent {
  const char* name;
  std::string shuffle;  // into %r21
  int threads;
  const char *without, *of;  // lanes
};
class UndefinedShuffle : public testing::TestWithParam<Absent> {};

TEST_P(UndefinedShuffle, IsAsARegisterThatNobodyWrote) {
  const Absent& a = GetParam();
  const std::string add = a.shuffle + "add.u32 %r22, %r21, 1;\nxor.b32 %r21, %r22, %r3;\n";
  const std::string shared = "mov.u32 %r30, tile;\nmad.lo.u32 %r31, %r3, 16, %r30;\n";
  const std::string parked = shared + "st.shared.u32 [%r31], %r22;\nld.shared.u32 %r21, [%r31];\n";
  EXPECT_EQ(report_of(add, true, a.threads), "");
  EXPECT_EQ(report_of(add + "mov.u32 %r21, 5;\n" + kUse, true, a.threads), "");
  EXPECT_EQ(report_of(add + parked + "setp.lt.u32 %p2, %r3, 8;\n@%p2 " + kUse, true, a.threads), "");
  for (const std::string& makes : {a.shuffle, add, add + parked}) {
    const std::string report = report_of(makes + kUse, true, a.threads);
    EXPECT_TRUE(says(report, "fault uninit-register")) << makes;
    EXPECT_TRUE(
        says(report, a.without + std::string(" register %r21, which was made of one without a value")));
    EXPECT_TRUE(
        says(report, "took the value of a lane that takes no part in the shuffle, the first of lane " +
                         std::string(a.of)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, UndefinedShuffle,
    testing::Values(
        Absent{"NoThread", "shfl.sync.down.b32 %r21, %r3, 4, 31, -1;\n", 17, "lanes 13-16 read", "17"},
        Absent{"NoThreadByIndex", "or.b32 %r24, %r3, 16;\nshfl.sync.idx.b32 %r21|%p5, %r0, %r24, 31, -1;\n",
               31, "lane 15 reads", "31"},
        Absent{"NotNamed",
               "mov.u32 %r21, 1;\nsetp.ge.u32 %p3, %r3, 16;\n@%p3 bra SKIP;\n"
               "shfl.sync.down.b32 %r21, %r3, 4, 31, 0xFFFF;\nSKIP:\n",
               32, "lanes 12-15 read", "16"},
        Absent{"Ended",
               "setp.ge.u32 %p3, %r3, 14;\n@%p3 exit;\nshfl.sync.up.b32 %r21, %r3, 0, 0, -1;\n"
               "shfl.sync.down.b32 %r21, %r3, 2, 31, -1;\n",
               32, "lanes 12-13 read", "14"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(UndefinedShuffle, IsNoneWithinTheLanesThatTakePart) {
  const std::string within[] = {
      "shfl.sync.down.b32 %r21, %r3, 4, 16, -1;\n",
      "shfl.sync.idx.b32 %r21, %r3, 16, 31, -1;\n",
      "shfl.sync.up.b32 %r21, %r3, 31, 0, -1;\n",
  };
  for (const std::string& shuffle : within) EXPECT_EQ(report_of(shuffle + kUse, true, 17), "") << shuffle;
}

// They read shared memory in more ways than a register can hold.
TEST(Undefined, IsAFaultWhereMatricesAreMadeOfIt) {
  const std::string report =
      report_of(kAt +
                "st.shared.v4.u32 [%r31], {%r20, %r20, %r20, %r20};\nadd.u32 %r31, %r30, 256;\n"
                "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r22}, [%r31];\n");
  EXPECT_TRUE(says(report, "fault uninit-shared"));
  EXPECT_TRUE(says(report, "is read, and what was written there is a value that nobody gave"));
  EXPECT_TRUE(says(report, "each read register %r20, which had no value"));
}

}  // namespace
