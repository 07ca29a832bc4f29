// SPDX-License-Identifier: MIT
//
// A program does the same whoever runs when: barriers of a block, where threads are, cp.async.

#include <gtest/gtest.h>

#include "tests/emu/every_order.h"

namespace {

using namespace emu_test;

// ---- barriers of a block ----

TEST(Barriers, ReverseABlockOf40) {
  const std::string body = R"(
    .shared .align 4 .b32 cells[40];
    mov.u32 %r10, cells;
    shl.b32 %r11, %r0, 2;
    add.u32 %r11, %r10, %r11;
    st.shared.u32 [%r11], %r5;
    bar.sync 0;
    mov.u32 %r12, 39;
    sub.u32 %r12, %r12, %r0;
    shl.b32 %r12, %r12, 2;
    add.u32 %r12, %r10, %r12;
    ld.shared.u32 %r13, [%r12];
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(3, 40),
                [](uint32_t thread) { return thread / 40 * 40 + 39 - thread % 40; });
}

TEST(Barriers, ReductionsOfPredicates) {
  const std::string body = R"(
    setp.lt.u32 %p0, %r0, 37;
    setp.lt.u32 %p1, %r0, 40;
    setp.ge.u32 %p2, %r0, 40;
    barrier.cta.red.popc.aligned.u32 %r10, 0, %p0;
    bar.red.popc.u32 %r11, 1, !%p0;
    bar.red.and.pred %p3, 0, %p1;
    bar.red.and.pred %p4, 0, %p0;
    bar.red.or.pred %p5, 0, %p2;
    bar.red.or.pred %p6, 0, !%p0;
    selp.u32 %r12, 1, 0, %p3;
    selp.u32 %r13, 2, 0, %p4;
    selp.u32 %r14, 4, 0, %p5;
    selp.u32 %r15, 8, 0, %p6;
    mad.lo.u32 %r10, %r10, 100, %r11;
    add.u32 %r12, %r12, %r13;
    add.u32 %r14, %r14, %r15;
    add.u32 %r12, %r12, %r14;
    mad.lo.u32 %r10, %r10, 100, %r12;
    st.global.u32 [%rd2], %r10;)";
  expect_always(kernel(body), config_of(2, 40), [](uint32_t) { return (37 * 100 + 3) * 100 + 1 + 8; });
}

// Two pairs of warps reduce at barriers of their own, many times. Then one pair reduces at barrier
// 4, and as soon as its first warp has gone on the other pair reduces there too: what the second
// learns is not overwritten.
TEST(Barriers, NamedBarriersWithCounts) {
  const std::string body = R"(
    .shared .align 4 .u32 flag;
    shr.u32 %r10, %r4, 1;
    add.u32 %r11, %r10, 1;
    and.b32 %r12, %r0, 63;
    setp.lt.u32 %p0, %r12, 5;
    setp.ge.u32 %p3, %r0, 64;
    @%p3 setp.lt.u32 %p0, %r12, 64;
    mov.u32 %r20, 0;
    LOOP:
    bar.red.popc.u32 %r13, %r11, 64, %p0;
    bar.red.and.pred %p1, %r11, 64, %p0;
    add.u32 %r20, %r20, 1;
    setp.lt.u32 %p4, %r20, 20;
    @%p4 bra LOOP;
    selp.u32 %r14, 1, 0, %p1;
    setp.eq.u32 %p5, %r10, 0;
    setp.eq.u32 %p6, %r0, 0;
    @%p6 st.shared.u32 [flag], 0;
    bar.sync 3, 128;
    @%p5 bra MEET;
    SPIN:
    ld.volatile.shared.u32 %r16, [flag];
    setp.eq.u32 %p7, %r16, 0;
    @%p7 bra SPIN;
    MEET:
    bar.red.popc.u32 %r15, 4, 64, %p5;
    @%p5 st.volatile.shared.u32 [flag], 1;
    mad.lo.u32 %r13, %r13, 10, %r14;
    mad.lo.u32 %r13, %r13, 100, %r15;
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(1, 128), [](uint32_t thread) {
    return thread < 64 ? (5 * 10 + 0) * 100 + 64 : (64 * 10 + 1) * 100 + 0;
  });
}

// Warp 0 produces into two buffers, warps 1 and 2 consume: full barriers 1 and 2, empty barriers
// 3 and 4.
TEST(Barriers, ProducerAndConsumers) {
  const std::string body = R"(
    .shared .align 4 .b32 stages[64];
    mov.u32 %r10, stages;
    shl.b32 %r11, %r3, 2;
    add.u32 %r10, %r10, %r11;
    mov.u32 %r12, 0;
    mov.u32 %r13, 0;
    setp.eq.u32 %p0, %r4, 0;
    LOOP:
    and.b32 %r14, %r12, 1;
    shl.b32 %r15, %r14, 7;
    add.u32 %r15, %r10, %r15;
    add.u32 %r16, %r14, 1;
    add.u32 %r17, %r14, 3;
    @!%p0 bra CONSUME;
    setp.lt.u32 %p1, %r12, 2;
    @!%p1 bar.sync %r17, 96;
    mad.lo.u32 %r18, %r12, 100, %r3;
    st.shared.u32 [%r15], %r18;
    bar.arrive %r16, 96;
    bra NEXT;
    CONSUME:
    bar.sync %r16, 96;
    ld.shared.u32 %r18, [%r15];
    add.u32 %r13, %r13, %r18;
    setp.lt.u32 %p1, %r12, 8;
    @%p1 bar.arrive %r17, 96;
    NEXT:
    add.u32 %r12, %r12, 1;
    setp.lt.u32 %p2, %r12, 10;
    @%p2 bra LOOP;
    st.global.u32 [%rd2], %r13;)";
  expect_always(kernel(body), config_of(2, 96),
                [](uint32_t thread) { return thread % 96 < 32 ? 0 : 4500 + 10 * (thread % 32); });
}

// ---- where threads are ----

TEST(Threads, DimensionsOfBlocksAndGrid) {
  const std::string body = R"(
    mov.u32 %r10, %tid.x;
    mov.u32 %r11, %tid.y;
    mov.u32 %r12, %tid.z;
    mov.u32 %r13, %ctaid.x;
    mov.u32 %r14, %ctaid.y;
    mov.u32 %r15, %ctaid.z;
    mov.u32 %r16, %ntid.x;
    mov.u32 %r17, %ntid.y;
    mov.u32 %r18, %ntid.z;
    mov.u32 %r19, %nctaid.x;
    mov.u32 %r20, %nctaid.y;
    mad.lo.u32 %r21, %r15, %r20, %r14;
    mad.lo.u32 %r21, %r21, %r19, %r13;
    mul.lo.u32 %r22, %r16, %r17;
    mul.lo.u32 %r22, %r22, %r18;
    mad.lo.u32 %r23, %r12, %r17, %r11;
    mad.lo.u32 %r23, %r23, %r16, %r10;
    mad.lo.u32 %r24, %r21, %r22, %r23;
    mov.u32 %r25, %laneid;
    mov.u32 %r26, %warpid;
    mad.lo.u32 %r26, %r26, 32, %r25;
    sub.u32 %r26, %r26, %r23;
    mad.lo.u32 %r27, %r12, 10, %r11;
    mad.lo.u32 %r27, %r27, 10, %r10;
    mad.lo.u32 %r27, %r27, 10, %r15;
    mad.lo.u32 %r27, %r27, 10, %r14;
    mad.lo.u32 %r27, %r27, 10, %r13;
    mad.lo.u32 %r27, %r26, 0x1000000, %r27;
    mad.wide.u32 %rd3, %r24, 4, %rd0;
    st.global.u32 [%rd3], %r27;)";
  Config config;
  const int grid[3] = {3, 2, 2}, block[3] = {5, 3, 4};
  for (int i = 0; i < 3; ++i) config.grid[i] = grid[i], config.block[i] = block[i];
  expect_always(kernel(body), config, [](uint32_t i) {
    const uint32_t b = i / 60, t = i % 60;
    const uint32_t digits[6] = {t / 15, t / 5 % 3, t % 5, b / 6, b / 3 % 2, b % 3};
    uint32_t number = 0;
    for (const uint32_t d : digits) number = number * 10 + d;
    return number;
  });
}

// ---- cp.async ----

TEST(Copies, GroupsZerosAndSizes) {
  // Three groups: 16 bytes; 4 bytes of which 3 are read and 8 of which none; 16 bytes if a
  // predicate allows. The first may be used while the other two are under way.
  const std::string body = R"(
    .shared .align 16 .b8 cells[2048];
    mov.u32 %r10, cells;
    mad.lo.u32 %r10, %r0, 48, %r10;
    mad.wide.u32 %rd3, %r0, 16, %rd1;
    cp.async.cg.shared.global [%r10], [%rd3], 16;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r10+16], [%rd3+4], 4, 3;
    cp.async.ca.shared.global [%r10+24], [%rd3+8], 8, 0;
    cp.async.commit_group;
    and.b32 %r11, %r0, 1;
    setp.eq.u32 %p0, %r11, 1;
    cp.async.cg.shared.global [%r10+32], [%rd3], 16, %p0;
    cp.async.commit_group;
    cp.async.wait_group 2;
    ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%r10];
    cp.async.wait_group 1;
    ld.shared.u32 %r16, [%r10+16];
    ld.shared.v2.u32 {%r17, %r18}, [%r10+24];
    cp.async.wait_all;
    ld.shared.v4.u32 {%r19, %r20, %r21, %r22}, [%r10+32];
    mad.wide.u32 %rd4, %r0, 44, %rd0;
    st.global.u32 [%rd4], %r12;
    st.global.u32 [%rd4+4], %r13;
    st.global.u32 [%rd4+8], %r14;
    st.global.u32 [%rd4+12], %r15;
    st.global.u32 [%rd4+16], %r16;
    st.global.u32 [%rd4+20], %r17;
    st.global.u32 [%rd4+24], %r18;
    st.global.u32 [%rd4+28], %r19;
    st.global.u32 [%rd4+32], %r20;
    st.global.u32 [%rd4+36], %r21;
    st.global.u32 [%rd4+40], %r22;)";
  Words in(40 * 4);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i + 1) * 2654435761u;
  expect_always(
      kernel(body), config_of(1, 40), 40 * 11,
      [&](uint32_t i) {
        const uint32_t thread = i / 11, word = i % 11, *mine = &in[thread * 4];
        if (word < 4) return mine[word];
        if (word == 4) return mine[1] & 0xFFFFFF;
        if (word < 7) return 0u;
        return thread % 2 ? 0u : mine[word - 7];  // the predicate says: ignore the source
      },
      in);
}

TEST(Copies, ATileThatAllRead) {
  const std::string body = R"(
    .shared .align 16 .b8 tile[2048];
    mov.u32 %r10, tile;
    mad.lo.u32 %r11, %r0, 16, %r10;
    mad.wide.u32 %rd3, %r0, 16, %rd1;
    cp.async.ca.shared.global [%r11], [%rd3], 16;
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    xor.b32 %r12, %r0, 100;
    mad.lo.u32 %r12, %r12, 16, %r10;
    ld.shared.u32 %r13, [%r12+8];
    st.global.u32 [%rd2], %r13;)";
  Words in(128 * 4);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i);
  expect_always(
      kernel(body), config_of(2, 128), [](uint32_t thread) { return (thread % 128 ^ 100) * 4 + 2; }, in);
}

}  // namespace
