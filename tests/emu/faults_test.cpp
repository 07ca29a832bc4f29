// SPDX-License-Identifier: MIT
//
// Planted mistakes, each with the program as it should be. The reports are kept word by word in golden/, and
// are to be read: GG_UPDATE_GOLDEN=1 in the environment writes them anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "common/emu/isa/map_format.h"
#include "common/emu/state/names.h"
#include "tests/emu/launch_ptx.h"

namespace {

using emu_test::Buffer;
using emu_test::Config;
using emu_test::config_of;
using emu_test::kernel;
using emu_test::Program;
using gg::emu::Fault;
using gg::emu::FaultKind;
using gg::emu::Order;
using Words = std::vector<uint32_t>;

constexpr const char* kLicence = "SPDX-License-Identifier: MIT";

struct Mistake {
  std::string name;
  FaultKind kind = FaultKind::bounds;
  std::string bug, right;  // PTX
  Config config = {};
  Words in = {};
  std::optional<Config> right_config = {};  // where it is the launch that is wrong
  std::optional<Words> right_in = {};
  bool every_order = true;  // it shows in
};

// The report of a launch; empty if all went well.
std::string report_of(const std::string& text, Config config, const Words& in, const Order& order,
                      int workers, FaultKind* kind = nullptr) {
  config.options.order = order;
  config.options.workers = workers;
  std::vector<Buffer> buffers = {Buffer(4096), emu_test::buffer_of(in)};
  try {
    Program program(text);
    program.run(buffers, config);
  } catch (const Fault& fault) {
    if (kind) *kind = fault.kind;
    return fault.what();
  }
  return "";
}

// Addresses of global memory differ from run to run.
std::string without_addresses(const std::string& report) {
  return std::regex_replace(report, std::regex("0x[0-9a-f]{9,16}"), "0x...");
}

std::string golden_of(const std::string& name, const std::string& report) {
  const std::filesystem::path path =
      std::filesystem::path(GG_SOURCE_DIR) / "tests/emu/golden" / (name + ".txt");
  const char* const update = std::getenv("GG_UPDATE_GOLDEN");
  if (update && *update) std::ofstream(path) << kLicence << "\n" << report;
  std::ifstream file(path);
  std::string licence;
  std::getline(file, licence);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// ---- the mistakes ----

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

// Each thread writes its element, and reads that of its neighbour in the next warp; `before` and `after`
// stand around the read, and then the next elements are written.
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

// Four stages of 16 bytes a thread are asked for; then one that another thread (or the thread itself) filled
// is read.
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

// Warp 0 writes (`first`: st) or reads (ld) a row, meets in a shuffle, and its lane 0 arrives. Warp 1 waits
// and reads or writes each word of it.
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

std::vector<Mistake> order_mistakes() {
  const std::string sync = "bar.sync 0;";
  std::vector<Mistake> all;
  const Config block = config_of(1, 64);
  const Words in(256);
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
  // All warps store to one word, which is no race if they store the same.
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
  const std::string load = "ld.shared.u32 %r11, [%r10];", store = "st.shared.u32 [%r10], %r11;";
  const char* const meet = "bar.warp.sync -1;";
  all.push_back({"race_written_by_lanes_told_by_one", FaultKind::race, told_by_one_lane(store, load, ""),
                 told_by_one_lane(store, load, meet), block});
  all.push_back({"race_read_by_lanes_told_by_one", FaultKind::race,
                 told_by_one_lane(load, "mov.u32 %r11, 9;\n" + store, ""),
                 told_by_one_lane(load, "mov.u32 %r11, 9;\n" + store, meet), block});
  all.push_back({"uninit_register_in_a_branch", FaultKind::uninit_register,
                 kernel("setp.lt.u32 %p0, %r3, 16;\n@%p0 mov.u32 %r10, 1;\nst.global.u32 [%rd2], %r10;\n"),
                 kernel("mov.u32 %r10, 0;\nsetp.lt.u32 %p0, %r3, 16;\n@%p0 mov.u32 %r10, 1;\nst.global.u32 "
                        "[%rd2], %r10;\n")});
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

std::vector<Mistake> waiting_mistakes() {
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
  const auto mbarrier = [](const std::string& body, const std::string& init = "1") {
    return kernel(R"(
    .shared .align 8 .b64 full[2];
    .shared .align 128 .b8 stage[1024];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared::cta.b64 [full], )" +
                  init + R"(;
    bar.sync 0;
    )" + body);
  };
  const std::string wait = R"(
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra WAIT;
    )";
  const Config block = config_of(1, 64);
  all.push_back({"deadlock_nobody_arrives", FaultKind::deadlock, mbarrier(wait),
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n" + wait), block});
  const std::string poll = R"(
    WAIT:
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra WAIT;
    )";
  all.push_back({"deadlock_polled_barrier", FaultKind::deadlock,
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n" + poll, "2"),
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n" + poll, "1"), block});
  // A word from thread 0 to the other warp. Relaxed arrivals and waits order it only with a fence.
  const auto handed = [&](const std::string& arrive, const std::string& polled, const std::string& fence) {
    return mbarrier("@%p0 st.shared.u32 [stage], 5;\n" + arrive + "WAIT:\nmbarrier.try_wait.parity." +
                    polled + "shared::cta.b64 %p1, [full], 0;\n@!%p1 bra WAIT;\n" + fence +
                    "ld.shared.u32 %r10, [stage];\n");
  };
  const std::string relaxed = "@%p0 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [full];\n",
                    ordered = "@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n",
                    fence = "fence.acq_rel.cta;\n";
  all.push_back({"race_relaxed_arrival", FaultKind::race, handed(relaxed, "", ""),
                 handed(fence + relaxed, "", ""), block});
  all.push_back({"race_fence_behind_the_relaxed_arrival", FaultKind::race,
                 handed(relaxed + "@%p0 " + fence, "", ""), handed("fence.release.cta;\n" + relaxed, "", ""),
                 block});
  all.push_back({"race_relaxed_wait", FaultKind::race, handed(ordered, "relaxed.cta.", ""),
                 handed(ordered, "relaxed.cta.", fence), block});
  all.push_back({"race_relaxed_wait_and_a_release", FaultKind::race,
                 handed(ordered, "relaxed.cta.", "fence.release.cta;\n"),
                 handed(ordered, "relaxed.cta.", "fence.acquire.cta;\n"), block});
  const auto load = [&](const char* bytes, const std::string& then) {
    return mbarrier(std::string("@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], ") + bytes +
                    ";\n@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%rd1], "
                    "256, [full];\n" +
                    then);
  };
  const Words in(256);
  all.push_back({"deadlock_bytes_that_never_come", FaultKind::deadlock, load("1024", wait), load("256", wait),
                 block, in});
  all.push_back(
      {"exit_before_the_copy_is_there", FaultKind::exit, load("256", ""), load("256", wait), block, in});
  all.back().every_order = false;  // in some the copy is quick
  const auto second = [&](const char* between) {
    return mbarrier(std::string(between) + "@%p0 mbarrier.init.shared::cta.b64 [full], 2;\n");
  };
  all.push_back({"mbarrier_initialised_twice", FaultKind::mbarrier, second(""),
                 second("@%p0 mbarrier.inval.shared::cta.b64 [full];\n"), block});
  all.push_back({"mbarrier_state_not_initialised", FaultKind::mbarrier_state,
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full+8];\n"),
                 mbarrier("@%p0 mbarrier.arrive.shared::cta.b64 _, [full];\n"), block});
  all.push_back({"mbarrier_state_too_many_arrivals", FaultKind::mbarrier_state,
                 mbarrier("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], "
                          "16;\nmbarrier.arrive.shared::cta.b64 _, [full];\n",
                          "32"),
                 mbarrier("mbarrier.arrive.shared::cta.b64 _, [full];\n", "64"), block});
  const auto store = [&](const char* fence) {
    return mbarrier(std::string("mad.lo.u32 %r10, %r0, 4, stage;\nst.shared.u32 [%r10], %r0;\n") + fence +
                    "\nbar.sync 0;\n@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [stage], "
                    "256;\n@%p0 cp.async.bulk.commit_group;\n"
                    "@%p0 cp.async.bulk.wait_group 0;\n");
  };
  all.push_back(
      {"proxy_no_fence", FaultKind::proxy, store(""), store("fence.proxy.async.shared::cta;"), block});
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
                 emu_test::read_and_tell("add.u32 %r12, %r12, 1;"),
                 emu_test::read_and_tell("setp.eq.u32 %p4, %r12, 0x80000000;\n@%p4 bra SKIP;"),
                 config_of(2, 32, 2)});
  return all;
}

// A wgmma over tiles of zeros: 16 columns of K, rows of 32 bytes, with this in place of the descriptor of B.
std::string wgmma(const std::string& change_b) {
  return kernel(R"(
    .shared .align 1024 .b8 tile[4096];
    mad.lo.u32 %r10, %r0, 32, tile;
    mov.u32 %r11, 0;
    st.shared.v4.u32 [%r10], {%r11, %r11, %r11, %r11};
    st.shared.v4.u32 [%r10+16], {%r11, %r11, %r11, %r11};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %r10, tile;
    shr.u32 %r10, %r10, 4;
    cvt.u64.u32 %rd10, %r10;
    or.b64 %rd10, %rd10, 0xC000001000010000;
    mov.b64 %rd11, %rd10;
    )" + change_b +
                R"(
    setp.ne.u32 %p1, %r2, 128;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, %p1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.f32 [%rd2], %f0;)");
}

// A tensor map of 64 x 64 words.
Words tensor_map() {
  gg::emu::TensorMap map;
  map.type = gg::emu::MapType::u32;
  map.address = 0x1000;
  map.rank = 2;
  map.dims[0] = map.dims[1] = 64;
  map.strides[1] = 256;
  map.box[0] = map.box[1] = 8;
  Words words(32);
  gg::emu::encode_tensor_map(map, reinterpret_cast<uint8_t*>(words.data()));
  return words;
}

std::vector<Mistake> other_mistakes() {
  std::vector<Mistake> all;
  const Config warp = config_of(1, 32);
  all.push_back({"trap", FaultKind::trap, kernel("setp.eq.u32 %p0, %r0, 7;\n@%p0 trap;\n"),
                 kernel("setp.eq.u32 %p0, %r0, 70;\n@%p0 trap;\n"), warp});
  const auto text = [](const std::string& name, const std::string& content) {
    std::string bytes;
    for (const char c : content) bytes += std::to_string(int(c)) + ", ";
    return ".global .align 1 .b8 " + name + "[" + std::to_string(content.size() + 1) + "] = {" + bytes +
           "0};\n";
  };
  const std::string before =
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 "
      "e);\n" +
      text("condition", "row < rows") + text("file", "kernel.cu") + text("function", "void k(float *, int)");
  const auto asserted = [&](const char* limit) {
    return kernel(std::string("setp.lt.u32 %p0, %r0, ") + limit + R"(;
    @%p0 bra FINE;
    {
    .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    mov.u64 %rd3, condition;
    mov.u64 %rd4, file;
    mov.u64 %rd5, function;
    mov.u64 %rd6, 1;
    st.param.b64 [a], %rd3;
    st.param.b64 [b], %rd4;
    st.param.b32 [c], 57;
    st.param.b64 [d], %rd5;
    st.param.b64 [e], %rd6;
    call.uni __assertfail, (a, b, c, d, e);
    }
    FINE:)",
                  before);
  };
  all.push_back({"trap_assertion", FaultKind::trap, asserted("20"), asserted("32"), warp});
  const auto unknown = [](const char* when) {
    return kernel(std::string("setp.eq.u32 %p0, %r2, ") + when + ";\n@%p0 txq.width.b32 %r10, [%rd1];\n");
  };
  all.push_back({"unsupported", FaultKind::unsupported, unknown("32"), unknown("64"), warp});
  const auto modifier = [](const char* when) {
    return kernel(std::string("setp.eq.u32 %p0, %r2, ") + when + ";\n@%p0 add.rn.u32 %r10, %r0, %r0;\n");
  };
  all.push_back({"unsupported_modifier", FaultKind::unsupported, modifier("32"), modifier("64"), warp});
  const std::string plain = kernel("st.global.u32 [%rd2], %r0;\n");
  all.push_back({"launch_too_many_threads",
                 FaultKind::launch,
                 plain,
                 plain,
                 config_of(1, 1056),
                 {},
                 config_of(1, 1024)});
  all.push_back({"launch_grid_and_cluster",
                 FaultKind::launch,
                 plain,
                 plain,
                 config_of(6, 32, 4),
                 {},
                 config_of(8, 32, 4)});
  all.push_back({"descriptor_reserved_bits", FaultKind::descriptor, wgmma("or.b64 %rd11, %rd11, 0x4000;\n"),
                 wgmma(""), config_of(1, 128)});
  // A box that lies outside, so that nothing is read.
  const std::string load = kernel(R"(
    .shared .align 128 .b8 tile[256];
    .shared .align 8 .b64 full;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra END;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
    mov.u32 %r10, 64;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r10, %r10}], [full];
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra WAIT;
    END:)");
  Mistake map{"tensor_map_that_is_none", FaultKind::tensor_map, load, load, warp, Words(32, 0xFFFFFFFF)};
  map.right_in = tensor_map();
  all.push_back(map);
  return all;
}

// 32 columns of tensor memory, 8 of which every thread has stored to; warp 1 has the tensor core shift lanes
// 0 to 31 of them.
std::vector<Mistake> tensor_memory_mistakes() {
  const auto blackwell = [](const std::string& body) {
    std::string text = kernel(R"(
    .shared .align 4 .b32 slot;
    .shared .align 8 .b64 done;
    setp.eq.u32 %p0, %r0, 0;
    setp.lt.u32 %p1, %r0, 32;
    setp.eq.u32 %p2, %r0, 32;
    @%p0 mbarrier.init.shared::cta.b64 [done], 1;
    @%p0 fence.mbarrier_init.release.cluster;
    @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    bar.sync 0;
    ld.shared.u32 %r10, [slot];
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r10], {%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0};
    tcgen05.wait::st.sync.aligned;
    )" + body);
    return text.replace(text.find("sm_90a"), 6, "sm_100a");
  };
  const std::string free = R"(
    bar.sync 0;
    @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;
    )";
  const auto load = [&](const char* columns) {
    return std::string("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r10+") + columns +
           "];\ntcgen05.wait::ld.sync.aligned;\nst.global.u32 [%rd2], %r11;\n" + free;
  };
  const std::string shift = R"(
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    mov.u32 %r12, done;
    @%p2 tcgen05.shift.cta_group::1.down [%r10];
    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r12];
    )",
                    wait = R"(
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra WAIT;
    )",
                    after = "tcgen05.fence::after_thread_sync;\n";
  const auto of_rank = [&](const char* shift_of_rank) {  // the lane is in bits 16 and up
    return blackwell(std::string("mov.u32 %r12, %cluster_ctarank;\nshl.b32 %r12, %r12, ") + shift_of_rank +
                     ";\nadd.u32 %r12, %r12, %r10;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r12];\n"
                     "tcgen05.wait::ld.sync.aligned;\nst.global.u32 [%rd2], %r11;\n" +
                     free);
  };
  return {{"tmem_lane_of_the_pair", FaultKind::tmem_lane, of_rank("23"), of_rank("1"), config_of(2, 64, 2)},
          {"uninit_tmem_a_column_too_far", FaultKind::uninit_tmem, blackwell(load("8")), blackwell(load("7")),
           config_of(1, 128)},
          {"tcgen05_columns_not_given_back", FaultKind::tcgen05, blackwell(""), blackwell(free),
           config_of(1, 128)},
          {"tcgen05_fence_behind_the_wait", FaultKind::tcgen05_fence, blackwell(shift + wait + load("0")),
           blackwell(shift + wait + after + load("0")), config_of(1, 64)},
          {"async_window_of_the_tensor_core", FaultKind::async_window,
           blackwell(shift + "bar.sync 0;\n" + after + load("0") + wait),
           blackwell(shift + wait + after + load("0")), config_of(1, 64)}};
}

// A kernel of CUDA C++: a template with a long name, arrays with mangled names, lines of a source file, a
// wrapper.
std::vector<Mistake> source_mistakes() {
  const auto with_lines = [](const char* sync) {
    return std::string(R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry _ZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iii(
  .param .u64 _ZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iii_param_0,
  .param .u64 _ZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iii_param_1)
{
.reg .b32 %r<8>;
.reg .b64 %rd<4>;
.shared .align 16 .b8 _ZZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iiiE6a_tile[256];
.loc 1 9 3
mov.u32 %r0, %tid.x;
mov.u32 %r1, _ZZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iiiE6a_tile;
mad.lo.u32 %r2, %r0, 4, %r1;
.loc 1 4 3, function_name $L__info_string0, inlined_at 1 10 3
st.shared.u32 [%r2], %r0;
.loc 1 11 3
)") + sync +
           R"(
xor.b32 %r3, %r0, 32;
mad.lo.u32 %r3, %r3, 4, %r1;
.loc 2 3 3, function_name $L__info_string1, inlined_at 1 12 5
ld.shared.u32 %r4, [%r3];
ret;
}
.file 1 "SOURCE/tests/emu/golden/kernel.cu"
.file 2 "SOURCE/tests/emu/golden/wrapper.cuh"
)";
  };
  const auto placed = [](std::string text) {
    for (size_t at; (at = text.find("SOURCE")) != std::string::npos;) text.replace(at, 6, GG_SOURCE_DIR);
    return text;
  };
  return {{"source_lines", FaultKind::uninit_shared, placed(with_lines("")),
           placed(with_lines("bar.sync 0;")), config_of(1, 64)}};
}

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  for (const auto& some : {memory_mistakes(), order_mistakes(), barrier_mistakes(), waiting_mistakes(),
                           other_mistakes(), tensor_memory_mistakes(), source_mistakes()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

class Mistakes : public testing::TestWithParam<Mistake> {
 protected:
  void SetUp() override {
    std::filesystem::current_path(GG_SOURCE_DIR);
  }  // which source lines are shown from
};

TEST_P(Mistakes, IsReported) {
  const Mistake& m = GetParam();
  FaultKind kind = FaultKind::unsupported;
  const std::string report = report_of(m.bug, m.config, m.in, {}, 1, &kind);
  ASSERT_NE(report, "") << "no fault";
  EXPECT_STREQ(fault_name(kind), fault_name(m.kind));
  const std::string shown = without_addresses(report), golden = golden_of(m.name, shown);
  EXPECT_EQ(shown, golden) << "GG_UPDATE_GOLDEN=1 writes golden/" << m.name << ".txt anew";
  EXPECT_EQ(without_addresses(report_of(m.bug, m.config, m.in, {}, 2)), shown) << "with two workers";
}

TEST_P(Mistakes, IsReportedInEveryOrder) {
  const Mistake& m = GetParam();
  for (const Order& order : emu_test::orders()) {
    if (!m.every_order && order.skew) continue;
    const std::string report = report_of(m.bug, m.config, m.in, order, 1);
    ASSERT_NE(report, "") << "no fault in order " << emu_test::name_of(order);
    EXPECT_EQ(without_addresses(report_of(m.bug, m.config, m.in, order, 2)), without_addresses(report))
        << "with two workers";
  }
}

TEST_P(Mistakes, ItsCorrectionIsNot) {
  const Mistake& m = GetParam();
  for (const Order& order : emu_test::orders()) {
    for (int workers = 1; workers <= 2; ++workers)
      EXPECT_EQ(
          report_of(m.right, m.right_config.value_or(m.config), m.right_in.value_or(m.in), order, workers),
          "");
  }
}

// Who allows everything gets a warning where hardware goes on, and the fault everywhere else.
TEST_P(Mistakes, IsAWarningWhereItCanBeAllowed) {
  const Mistake& m = GetParam();
  Config config = m.config;
  config.options.allowed = ~0u;
  FaultKind kind = m.kind;
  testing::internal::CaptureStderr();
  const std::string report = report_of(m.bug, config, m.in, {}, 1, &kind);
  const std::string warnings = testing::internal::GetCapturedStderr();
  if (can_be_allowed(m.kind)) {
    EXPECT_EQ(report, "");
    EXPECT_NE(warnings.find("allowed: " + std::string(fault_name(m.kind)) + " in "), std::string::npos)
        << warnings;
  } else {
    EXPECT_NE(report, "") << "no fault";
    EXPECT_STREQ(fault_name(kind), fault_name(m.kind)) << report;
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, Mistakes, testing::ValuesIn(mistakes()),
                         [](const auto& info) { return info.param.name; });

// Most opcodes have several forms, for integers, floats, copies: the report is of the one that was meant.
TEST(Faults, AnUnsupportedFormIsNamedByTheClosest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"add.rn.u32 %r10, %r0, %r0;", "modifier .rn"},
      {"add.cold.f32 %f0, %f0, %f0;", "modifier .cold"},
      {"fma.rn.relu.f32 %f0, %f0, %f0, %f0;", "modifier .relu"},
      {"mul.lo.u32 %rd3, %r0, %r0;", "register %rd3 has another size than .u32"},
      {"cvt.rn.satfinite.e2m1x2.f32 %h0, %f0, %f0;", "register %h0 has another size than .e2m1x2"},
      {"cvt.rn.satfinite.e2m2x2.f32 %h0, %f0, %f0;", "modifier .e2m2x2"},
      {"cp.async.cg.cold.shared.global [%r0], [%rd0], 16;", "modifier .cold"},
      {"cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r0, "
       "%r0, %r0}], [%r0];",
       "modifier .im2col"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.cold.f32 [%rd0], [%r0], %r0;",
       "modifier .cold"},
  };
  for (const auto& [statement, reason] : cases) {
    const std::string report = report_of(kernel(statement), config_of(1, 32), {}, {}, 1);
    EXPECT_NE(report.find("not supported: " + reason + "\n"), std::string::npos) << report;
  }
}

// nvcc's names of kernels with long template arguments are beyond the library's demangler; here a question
// mark is.
TEST(Faults, KernelsAreNamedAsInTheirSource) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"_Z5scalePfi", "scale(float*, int)"},
      {"_ZN7chapter5scaleIfEEvPT_i", "void chapter::scale<float>(float*, int)"},
      {"_ZN7chapter12_GLOBAL__N_15scaleEPfi", "chapter::scale(float*, int)"},
      {"_Z5scaleI?EvPT_", "scale<...>"},
      {"_Z5scale?", "scale"},
      {"_ZN7chapter5scaleI?EEvPT_", "chapter::scale<...>"},
      {"_ZN7chapter12_GLOBAL__N_15scaleI?EEvPT_", "chapter::scale<...>"},
      {"_Z9scale", "_Z9scale"},
      {"_Z?", "_Z?"},
      {"scale", "scale"},
  };
  for (const auto& [mangled, name] : cases) EXPECT_EQ(gg::emu::demangled(mangled), name);
}

// A report has room for eight others: who has ended comes last.
TEST(Faults, ADeadlockTellsFirstOfThoseWhoWait) {
  constexpr int kBlocks = 16;  // of a cluster: blocks 0 and 15 wait, those between end
  const std::string text = kernel(R"(
    mov.u32 %r10, %cluster_ctarank;
    setp.eq.u32 %p0, %r10, 0;
    setp.eq.u32 %p1, %r10, 15;
    or.pred %p0, %p0, %p1;
    @%p0 bar.sync 1, 64;
  )");
  FaultKind kind = {};
  const std::string report = report_of(text, config_of(kBlocks, 32, kBlocks), {}, {}, 1, &kind);
  EXPECT_EQ(kind, FaultKind::deadlock) << report;
  const size_t waits = report.find("other   block 15 "), ended = report.find("has ended");
  EXPECT_NE(waits, std::string::npos) << report;
  EXPECT_LT(waits, ended) << report;
}

TEST(Faults, EveryKindIsPlanted) {
  std::vector<Mistake> all = mistakes();
  for (int kind = 0; kind < gg::emu::kFaultKinds; ++kind) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Mistake& m) {
      return m.kind == FaultKind(kind);
    })) << gg::emu::fault_name(FaultKind(kind));
  }
}

TEST(Faults, APageExplainsEveryKind) {
  std::ifstream file(std::filesystem::path(GG_SOURCE_DIR) / "common/emu/FAULTS.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (int kind = 0; kind < gg::emu::kFaultKinds; ++kind) {
    EXPECT_NE(text.str().find("\n## " + std::string(gg::emu::fault_name(FaultKind(kind))) + "\n"),
              std::string::npos)
        << gg::emu::fault_name(FaultKind(kind));
  }
}

}  // namespace
