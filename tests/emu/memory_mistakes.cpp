// SPDX-License-Identifier: MIT
//
// Planted mistakes with memory: what is outside, what is not aligned, and who reads before it may.

#include "tests/emu/mistakes.h"

namespace emu_test {

namespace {

const FaultKind bounds = FaultKind::bounds;

// A row of 32 words for each warp of 4, from rows of `in`.
std::string rows(const std::string& guard) {
  return kernel(R"(
    mad.lo.u32 %r10, %r1, 4, %r4;
    add.u32 %r10, %r10, 1;
    mov.u32 %r12, 0;
    )" + guard + R"(
    mad.lo.u32 %r11, %r10, 32, %r3;
    mad.wide.u32 %rd3, %r11, 4, %rd1;
    ld.global.u32 %r12, [%rd3];
    END:
    st.global.u32 [%rd2], %r12;)");
}

}  // namespace

std::vector<Mistake> memory_mistakes() {
  std::vector<Mistake> all;
  all.push_back({"bounds_row_of_a_matrix", bounds, rows(""), rows("setp.ge.u32 %p0, %r10, 8;\n@%p0 bra END;"),
                 config_of(2, 128), Words(8 * 32)});
  const auto tile = [](const char* guard) {
    return kernel(std::string(R"(
    .shared .align 16 .b8 tile[1024];
    mov.u32 %r10, tile;
    add.u32 %r11, %r0, 32;
    mad.lo.u32 %r11, %r11, 4, %r10;
    )") + guard + R"( st.shared.u32 [%r11], %r0;)");
  };
  all.push_back({"bounds_row_of_a_tile", bounds, tile(""), tile("setp.lt.u32 %p0, %r0, 224;\n@%p0"),
                 config_of(1, 256)});
  const auto left = [](const char* first) {
    return kernel(std::string("sub.u32 %r10, %r0, 1;\n") + first + R"(
    cvt.s64.s32 %rd3, %r10;
    shl.b64 %rd3, %rd3, 2;
    add.s64 %rd3, %rd1, %rd3;
    ld.global.u32 %r11, [%rd3];
    st.global.u32 [%rd2], %r11;)");
  };
  all.push_back({"bounds_before_the_start", bounds, left(""),
                 left("setp.eq.u32 %p0, %r0, 0;\n@%p0 mov.u32 %r10, 0;"), config_of(1, 32), Words(32)});
  const auto pointer = [](const char* made) {
    return kernel(std::string(made) + "\nld.global.v2.u32 {%r10, %r11}, [%rd3+16];\n");
  };
  all.push_back(
      {"bounds_null", bounds, pointer("mov.u64 %rd3, 0;"), pointer("mov.u64 %rd3, %rd1;"), {}, Words(8)});
  const auto local = [](const char* count) {
    return kernel(std::string(R"(
    .local .align 4 .b8 array[32];
    .reg .b64 %SPL;
    mov.u64 %SPL, array;
    mov.u32 %r10, 0;
    LOOP:
    mad.wide.u32 %rd3, %r10, 4, %SPL;
    st.local.u32 [%rd3], %r10;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p0, %r10, )") +
                  count + ";\n@%p0 bra LOOP;\n");
  };
  all.push_back({"bounds_local_array", bounds, local("9"), local("8")});
  const std::string dynamic =
      kernel("mad.lo.u32 %r10, %r0, 16, stage;\nst.shared.v4.u32 [%r10], {%r0, %r0, %r0, %r0};\n",
             ".extern .shared .align 16 .b8 stage[];\n");
  Config half = config_of(1, 64), whole = half;
  half.dynamic_shared = 512;
  whole.dynamic_shared = 1024;
  all.push_back({"bounds_dynamic_shared", bounds, dynamic, dynamic, half, {}, whole});
  const std::string reads = kernel("ld.global.u32 %r10, [%rd1+64];\nst.global.u32 [%rd2], %r10;\n");
  Config freed;
  freed.freed = 1;
  all.push_back(
      {"use_after_free", FaultKind::use_after_free, reads, reads, freed, Words(32), config_of(1, 32)});
  const auto vectors = [](const char* row) {
    return kernel(std::string("mad.wide.u32 %rd3, %r0, ") + row +
                  ", %rd1;\nld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd3];\n");
  };
  all.push_back(
      {"alignment_of_a_vector", FaultKind::alignment, vectors("20"), vectors("32"), {}, Words(256)});
  const auto copies = [](const char* first) {
    return kernel(std::string(".shared .align 16 .b8 tile[1024];\nmad.lo.u32 %r10, %r0, 16, "
                              "tile;\nmad.wide.u32 %rd3, %r0, 16, %rd1;\n") +
                  "cp.async.cg.shared.global [%r10" + first + "], [%rd3], 16;\ncp.async.wait_all;\n");
  };
  const auto one_word = [](const char* address) {
    return kernel(
        std::string(".shared .align 4 .b32 word;\nmov.u64 %rd3, word;\ncvta.shared.u64 %rd4, %rd3;\n") +
        "setp.eq.u32 %p0, %r0, 0;\n@%p0 st.shared.u32 [" + address + "], %r0;\n");
  };
  all.push_back({"address_space_of_a_pointer", FaultKind::address_space, one_word("%rd4"), one_word("%rd3")});
  all.push_back({"alignment_of_a_copy", FaultKind::alignment, copies("+8"), copies("+16"), {}, Words(256)});
  return all;
}

std::vector<Mistake> uninit_mistakes() {
  std::vector<Mistake> all;
  const std::string reads = kernel("ld.global.u32 %r10, [%rd1+64];\nst.global.u32 [%rd2], %r10;\n");
  Config unwritten;
  unwritten.unwritten = 1;
  all.push_back({"uninit_global", FaultKind::uninit_global, reads, reads, unwritten, Words(32), Config()});
  const std::string adds = "red.global.add.u32 [%rd1], 1;\n";
  all.push_back({"uninit_global_of_a_counter", FaultKind::uninit_global, kernel(adds),
                 kernel("setp.eq.u32 %p0, %r0, 0;\n@%p0 st.global.u32 [%rd1], 0;\nbar.sync 0;\n" + adds),
                 unwritten, Words(1)});
  all.push_back({"uninit_register_in_a_branch", FaultKind::uninit_register,
                 kernel("setp.lt.u32 %p0, %r3, 16;\n@%p0 mov.u32 %r10, 1;\nst.global.u32 [%rd2], %r10;\n"),
                 kernel("mov.u32 %r10, 0;\nsetp.lt.u32 %p0, %r3, 16;\n@%p0 mov.u32 %r10, 1;\nst.global.u32 "
                        "[%rd2], %r10;\n")});
  return all;
}

namespace {

// Each thread writes its element, and reads that of its neighbour in the next warp; `before` and
// `after` stand around the read, and then the next elements are written.
std::string neighbours(const std::string& before, const std::string& after, const std::string& prefix = "") {
  return kernel(R"(
    .shared .align 4 .b32 tile[128];
    mov.u32 %r10, tile;
    mad.lo.u32 %r11, %r0, 4, %r10;
    xor.b32 %r12, %r0, 32;
    mad.lo.u32 %r12, %r12, 4, %r10;
    )" + prefix +
                R"(
    st.shared.u32 [%r11], %r0;
    )" + before +
                R"(
    ld.shared.u32 %r13, [%r12];
    )" + after + R"(
    st.shared.u32 [%r11], %r13;)");
}

// Warp 0 writes (`first`: st) or reads (ld) a row, meets in a shuffle, and its lane 0 arrives. Warp
// 1 waits and reads or writes each word of it.
std::string told_by_one_lane(const std::string& first, const std::string& then, const char* meet) {
  return kernel(R"(
    .shared .align 4 .b32 row[32];
    .shared .align 8 .b64 told;
    mad.lo.u32 %r10, %r3, 4, row;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [told], 1;
    setp.eq.u32 %p1, %r4, 1;
    @%p1 st.shared.u32 [%r10], 5;
    bar.sync 0;
    @%p1 bra SECOND;
    mov.u32 %r11, 7;
    )" + first + R"(
    shfl.sync.idx.b32 %r11, %r11, 0, 31, -1;
    )" + meet + R"(
    @%p0 mbarrier.arrive.shared::cta.b64 _, [told];
    bra END;
    SECOND:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [told], 0;
    @!%p2 bra SECOND;
    )" + then + R"(
    END:)");
}

}  // namespace

std::vector<Mistake> race_mistakes() {
  const std::string sync = "bar.sync 0;";
  std::vector<Mistake> all;
  const Config block = config_of(1, 64);
  all.push_back({"uninit_shared_no_barrier", FaultKind::uninit_shared, neighbours("", sync),
                 neighbours(sync, sync), block});
  all.push_back({"race_no_barrier", FaultKind::race,
                 neighbours("", sync, "st.shared.u32 [%r11], 0;\n" + sync),
                 neighbours(sync, sync, "st.shared.u32 [%r11], 0;\n" + sync), block});
  all.push_back(
      {"race_no_second_barrier", FaultKind::race, neighbours(sync, ""), neighbours(sync, sync), block});
  const auto same_place = [](const char* index) {
    return kernel(std::string(".shared .align 4 .b32 sums[32];\nmad.lo.u32 %r10, ") + index +
                  ", 4, sums;\nst.shared.u32 [%r10], %r0;\n");
  };
  all.push_back({"race_two_writers", FaultKind::race, same_place("%r3"), same_place("%r4"), block});
  const std::string load = "ld.shared.u32 %r11, [%r10];", store = "st.shared.u32 [%r10], %r11;";
  const char* const meet = "bar.warp.sync -1;";
  all.push_back({"race_written_by_lanes_told_by_one", FaultKind::race, told_by_one_lane(store, load, ""),
                 told_by_one_lane(store, load, meet), block});
  all.push_back({"race_read_by_lanes_told_by_one", FaultKind::race,
                 told_by_one_lane(load, "mov.u32 %r11, 9;\n" + store, ""),
                 told_by_one_lane(load, "mov.u32 %r11, 9;\n" + store, meet), block});
  return all;
}

// All warps store to one word, which is no race if they store the same.
std::vector<Mistake> one_word_mistakes() {
  const std::string sync = "bar.sync 0;";
  std::vector<Mistake> all;
  const Config block = config_of(1, 64);
  const auto clear = [](const char* value, const char* type) {
    return kernel(std::string(".shared .align 4 .b32 sum;\nst.shared.") + type + " [sum], " + value + ";\n" +
                  "bar.sync 0;\nld.shared." + type + " %r10, [sum];\n");
  };
  all.push_back({"race_two_values", FaultKind::race, clear("%r4", "u32"), clear("7", "u32"), block});
  all.push_back(
      {"race_two_values_of_a_byte", FaultKind::race, clear("%r4", "u8"), clear("%r1", "u8"), block});
  // Warp 0 stores one thing more, before or behind the other's: what lasts is uncertain then.
  const auto then = [&](const char* wait, const char* sync_all) {
    return kernel(std::string(R"(
    .shared .align 4 .b32 sum;
    mov.u32 %r20, 0;
    setp.eq.u32 %p1, %r4, )") +
                  wait + R"(;
    SLOW:
    add.u32 %r20, %r20, 1;
    setp.lt.and.u32 %p0, %r20, 1000, %p1;
    @%p0 bra SLOW;
    st.shared.u32 [sum], 7;
    )" + sync_all +
                  R"(
    mov.u32 %r20, 0;
    WAIT:
    add.u32 %r20, %r20, 1;
    setp.lt.u32 %p0, %r20, 3000;
    @%p0 bra WAIT;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 st.shared.u32 [sum], 8;
    )");
  };
  all.push_back({"race_another_value_after_the_first_store", FaultKind::race, then("1", ""),
                 then("1", sync.c_str()), block});
  all.push_back({"race_another_value_after_the_second_store", FaultKind::race, then("0", ""),
                 then("0", sync.c_str()), block});
  const auto read_by_some = [](const char* barrier) {
    return kernel(std::string(R"(
    .shared .align 4 .b32 sum;
    st.shared.u32 [sum], 7;
    setp.ge.u32 %p0, %r4, 1;
    )") + barrier +
                  R"(
    @%p0 ld.shared.u32 %r10, [sum];)");
  };
  all.push_back({"race_read_behind_some_who_store_a_value", FaultKind::race,
                 read_by_some("@%p0 bar.sync 1, 64;"), read_by_some("bar.sync 1, 96;"), config_of(1, 96)});
  const auto read_between = [&](const char* sync) {
    return kernel(std::string(".shared .align 4 .b32 sum;\nst.shared.u32 [sum], 7;\n") + sync +
                  "\nld.shared.u32 %r10, [sum];\n");
  };
  all.push_back({"race_read_of_a_value_that_all_store", FaultKind::race, read_between("bar.warp.sync -1;"),
                 read_between(sync.c_str()), block});
  return all;
}

namespace {

// Four stages of 16 bytes a thread are asked for; then one that another thread (or the thread
// itself) filled is read.
std::string stages(const std::string& wait, const std::string& whose, const std::string& then = "") {
  std::string text =
      ".shared .align 16 .b8 tile[4096];\nmad.lo.u32 %r10, %r0, 16, tile;\nmad.wide.u32 %rd3, %r0, 16, "
      "%rd1;\n";
  for (int stage = 0; stage < 4; ++stage) {
    text += "cp.async.cg.shared.global [%r10+" + std::to_string(stage * 1024) +
            "], [%rd3], 16;\ncp.async.commit_group;\n";
  }
  return kernel(text + wait + "\nxor.b32 %r11, %r0, " + whose +
                ";\nmad.lo.u32 %r11, %r11, 16, tile;\nld.shared.u32 %r12, [%r11+1024];\n" + then);
}

}  // namespace

std::vector<Mistake> copy_mistakes() {
  const std::string sync = "bar.sync 0;";
  std::vector<Mistake> all;
  const Config block = config_of(1, 64);
  const Words in(256);
  all.push_back({"async_window_no_wait", FaultKind::async_window, stages(sync, "0"),
                 stages("cp.async.wait_group 2;", "0"), block, in});
  all.push_back({"async_window_wait_for_too_few", FaultKind::async_window,
                 stages("cp.async.wait_group 3;\n" + sync, "32"),
                 stages("cp.async.wait_group 2;\n" + sync, "32"), block, in});
  all.push_back({"race_no_barrier_after_the_wait", FaultKind::race,
                 stages("cp.async.wait_all;\nmov.u32 %r20, 0;\nSLOW:\nadd.u32 %r20, %r20, 1;\n"
                        "setp.lt.u32 %p0, %r20, 100;\n@%p0 bra SLOW;",
                        "32"),
                 stages("cp.async.wait_all;\n" + sync, "32"), block, in});
  const std::string refill = "st.shared.u32 [%r10+2048], %r12;\n";
  all.push_back({"async_window_overwritten", FaultKind::async_window,
                 stages("cp.async.wait_group 2;", "0", refill), stages("cp.async.wait_group 1;", "0", refill),
                 block, in});
  return all;
}

}  // namespace emu_test
