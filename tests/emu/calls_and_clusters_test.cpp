// SPDX-License-Identifier: MIT
//
// A program does the same whoever runs when: calls, printing, local memory, clusters, registers.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/emu/every_order.h"

namespace {

using namespace emu_test;

// ---- functions, printing, local memory ----

TEST(Functions, CallsWithArgumentsAndResults) {
  const std::string functions = R"(
.func (.param .b32 result) triangle(.param .b32 n)
{
.reg .pred %p<2>;
.reg .b32 %r<4>;
ld.param.u32 %r0, [n];
mov.u32 %r1, 0;
LOOP:
setp.eq.u32 %p0, %r0, 0;
@%p0 bra DONE;
add.u32 %r1, %r1, %r0;
sub.u32 %r0, %r0, 1;
bra LOOP;
DONE:
st.param.b32 [result], %r1;
ret;
}
.func (.param .b32 result) twice(.param .b32 a, .param .b64 b)
{
.reg .pred %p<2>;
.reg .b32 %r<8>;
.reg .b64 %rd<2>;
ld.param.u32 %r0, [a];
ld.param.u64 %rd0, [b];
cvt.u32.u64 %r1, %rd0;
setp.gt.u32 %p0, %r0, 20;
@%p0 bra BIG;
{
.param .b32 arg;
.param .b32 ret0;
st.param.b32 [arg], %r0;
call.uni (ret0), triangle, (arg);
ld.param.b32 %r2, [ret0];
}
{
.param .b32 arg;
.param .b32 ret0;
st.param.b32 [arg], %r1;
call.uni (ret0), triangle, (arg);
ld.param.b32 %r3, [ret0];
}
mad.lo.u32 %r2, %r2, 1000, %r3;
st.param.b32 [result], %r2;
ret;
BIG:
st.param.b32 [result], 5;
ret;
}
)";
  const std::string body = R"(
    and.b32 %r10, %r0, 3;
    cvt.u64.u32 %rd3, %r10;
    mov.u32 %r11, 9;
    setp.ne.u32 %p0, %r10, 0;
    @!%p0 bra SKIP;
    {
    .param .b32 a;
    .param .b64 b;
    .param .b32 back;
    st.param.b32 [a], %r3;
    st.param.b64 [b], %rd3;
    call.uni (back), twice, (a, b);
    ld.param.b32 %r11, [back];
    }
    SKIP:
    vote.sync.ballot.b32 %r12, %p0, 0xFFFFFFFF;
    setp.ne.u32 %p1, %r12, 0xEEEEEEEE;
    @%p1 mov.u32 %r11, 0;
    st.global.u32 [%rd2], %r11;)";
  expect_always(kernel(body, functions), config_of(1, 64), [](uint32_t thread) {
    const uint32_t lane = thread % 32, n = thread % 4;
    return n == 0 ? 9 : lane > 20 ? 5 : lane * (lane + 1) / 2 * 1000 + n * (n + 1) / 2;
  });
}

TEST(Functions, PrintInTheOrderOfLanes) {
  const std::string before = R"(
.extern .func (.param .b32 func_retval0) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[24] = {98, 61, 37, 100, 32, 116, 61, 37, 48, 51, 117, 32, 120, 61, 37, 46, 49, 102, 32, 37, 115, 37, 37, 0};
.global .align 1 .b8 word[4] = {111, 107, 10, 0};
.global .align 1 .b8 line[6] = {98, 61, 37, 100, 10, 0};
)";
  const std::string body = R"(
    .local .align 8 .b8 depot[24];
    .reg .b64 %SP, %SPL;
    mov.u64 %SPL, depot;
    cvta.local.u64 %SP, %SPL;
    setp.gt.u32 %p0, %r3, 2;
    @%p0 bra END;
    cvt.rn.f64.u32 %rd3, %r3;
    neg.s32 %r10, %r1;
    st.local.v2.u32 [%SPL], {%r10, %r0};
    st.local.f64 [%SPL+8], %rd3;
    mov.u64 %rd4, word;
    cvta.global.u64 %rd4, %rd4;
    st.local.u64 [%SPL+16], %rd4;
    mov.u64 %rd5, format;
    cvta.global.u64 %rd5, %rd5;
    {
    .param .b64 param0;
    .param .b64 param1;
    .param .b32 retval0;
    st.param.b64 [param0], %rd5;
    st.param.b64 [param1], %SP;
    call.uni (retval0), vprintf, (param0, param1);
    ld.param.b32 %r11, [retval0];
    }
    END:)";
  Program program(kernel(body, before));
  std::vector<Buffer> buffers = {Buffer(4), Buffer(4)};
  Config config = config_of(2, 32);
  config.options.workers = 1;
  testing::internal::CaptureStdout();
  program.run(buffers, config);
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "b=0 t=000 x=0.0 ok\n%b=0 t=001 x=1.0 ok\n%b=0 t=002 x=2.0 ok\n%"
            "b=-1 t=000 x=0.0 ok\n%b=-1 t=001 x=1.0 ok\n%b=-1 t=002 x=2.0 ok\n%");
}

TEST(Local, ArraysOfAThread) {
  const std::string body = R"(
    .local .align 16 .b8 array[64];
    .reg .b64 %SP, %SPL;
    mov.u64 %SPL, array;
    cvta.local.u64 %SP, %SPL;
    mov.u32 %r10, 0;
    FILL:
    mad.lo.u32 %r11, %r10, 1000, %r5;
    mad.wide.u32 %rd3, %r10, 4, %SPL;
    st.local.u32 [%rd3], %r11;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p0, %r10, 16;
    @%p0 bra FILL;
    and.b32 %r12, %r3, 15;
    mad.wide.u32 %rd4, %r12, 4, %SP;
    ld.u32 %r13, [%rd4];
    ld.local.v4.u32 {%r14, %r15, %r16, %r17}, [%SPL+16];
    add.u32 %r13, %r13, %r17;
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(2, 40),
                [](uint32_t thread) { return thread % 40 % 32 % 16 * 1000 + thread + 7000 + thread; });
}

// ---- clusters ----

TEST(Clusters, EachBlockReadsItsNeighbour) {
  const std::string body = R"(
    .shared .align 4 .b32 cells[64];
    mov.u32 %r10, cells;
    shl.b32 %r11, %r0, 2;
    add.u32 %r10, %r10, %r11;
    st.shared.u32 [%r10], %r5;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    mov.u32 %r12, %cluster_ctarank;
    mov.u32 %r13, %cluster_nctarank;
    add.u32 %r14, %r12, 1;
    rem.u32 %r14, %r14, %r13;
    mapa.shared::cluster.u32 %r15, %r10, %r14;
    ld.shared::cluster.u32 %r16, [%r15];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    add.u32 %r17, %r12, 2;
    rem.u32 %r17, %r17, %r13;
    mapa.shared::cluster.u32 %r18, %r10, %r17;
    add.u32 %r19, %r5, 10000;
    st.shared::cluster.u32 [%r18], %r19;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared.u32 %r20, [%r10];
    mad.lo.u32 %r20, %r20, 100000, %r16;
    st.global.u32 [%rd2], %r20;)";
  expect_always(kernel(body), config_of(12, 64, 4), [](uint32_t thread) {
    const uint32_t block = thread / 64, first = block / 4 * 4, rank = block % 4, t = thread % 64;
    return ((first + (rank + 2) % 4) * 64 + t + 10000) * 100000 + (first + (rank + 1) % 4) * 64 + t;
  });
}

TEST(Clusters, ShapesAndRanks) {
  const std::string body = R"(
    mov.u32 %r10, %cluster_ctarank;
    mov.u32 %r11, %cluster_ctaid.x;
    mov.u32 %r12, %cluster_ctaid.y;
    mov.u32 %r13, %clusterid.x;
    mov.u32 %r14, %clusterid.y;
    mov.u32 %r15, %cluster_nctarank;
    mov.u32 %r16, %ctaid.y;
    mov.u32 %r17, %nctaid.x;
    mad.lo.u32 %r18, %r16, %r17, %r1;
    mad.lo.u32 %r19, %r15, 10, %r10;
    mad.lo.u32 %r19, %r19, 10, %r11;
    mad.lo.u32 %r19, %r19, 10, %r12;
    mad.lo.u32 %r19, %r19, 10, %r13;
    mad.lo.u32 %r19, %r19, 10, %r14;
    mad.wide.u32 %rd3, %r18, 4, %rd0;
    st.global.u32 [%rd3], %r19;)";
  Config config = config_of(6, 1, 2);
  config.grid[1] = 4;
  config.cluster[1] = 2;
  expect_always(kernel(body), config, [](uint32_t block) {
    const uint32_t x = block % 6, y = block / 6;
    const uint32_t digits[] = {4, x % 2 + y % 2 * 2, x % 2, y % 2, x / 2, y / 2};
    uint32_t number = 0;
    for (const uint32_t d : digits) number = number * 10 + d;
    return number;
  });
}

// A block whose work is done ends; the others' cluster barriers no longer count it.
TEST(Clusters, BarriersDoNotWaitForWarpsThatHaveEnded) {
  const std::string body = R"(
    st.global.u32 [%rd2], 1;
    setp.eq.u32 %p0, %r4, 1;
    @%p0 ret;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r10, %cluster_ctarank;
    setp.eq.u32 %p0, %r10, 1;
    @%p0 ret;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    st.global.u32 [%rd2], 2;)";
  expect_always(kernel(body), config_of(4, 64, 2),
                [](uint32_t thread) { return thread % 64 < 32 && thread / 64 % 2 == 0 ? 2 : 1; });
}

TEST(Clusters, AtomicsInAnotherBlock) {
  const std::string body = R"(
    .shared .align 4 .u32 sum;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 st.shared.u32 [sum], 0;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.u32 %r10, sum;
    mapa.shared::cluster.u32 %r11, %r10, 0;
    atom.shared::cluster.add.u32 %r12, [%r11], %r0;
    mov.u64 %rd3, 0;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ld.shared.u32 %r13, [sum];
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(8, 64, 4),
                [](uint32_t thread) { return thread / 64 % 4 == 0 ? 4 * 2016 : 0; });
}

// ---- registers ----

// Two warps that each began with 128 registers for a thread; one keeps 40, the other wants so many.
std::string registers_moved(int wanted) {
  return kernel("setp.eq.u32 %p0, %r4, 0;\n@%p0 bra FEW;\nsetmaxnreg.inc.sync.aligned.u32 " +
                std::to_string(wanted) + ";\nbra END;\nFEW:\nsetmaxnreg.dec.sync.aligned.u32 40;\n" +
                "END:\nst.global.u32 [%rd2], 1;\n");
}
std::string waits_for_registers(int wanted, int registers) {
  Program program(registers_moved(wanted));
  Config config = config_of(1, 64);
  config.registers = registers;
  std::vector<Buffer> buffers = {Buffer(4096), Buffer(4096)};
  try {
    program.run(buffers, config);
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.kind, FaultKind::deadlock);
    return fault.what();
  }
  return "";
}
TEST(Registers, WaitUntilOthersHaveGivenThemBack) {
  EXPECT_EQ(waits_for_registers(216, 128), "") << "128 - 40 = 216 - 128";
  const std::string report = waits_for_registers(224, 128);
  EXPECT_NE(report.find("96 registers more for each thread"), std::string::npos) << report;
  EXPECT_NE(report.find("given 88"), std::string::npos) << report;
  EXPECT_EQ(waits_for_registers(224, 0), "") << "without machine code nobody knows how many there were";
}

}  // namespace
