// SPDX-License-Identifier: MIT
//
// The table's instructions of the asynchronous proxy, and cp.async: what starts them, and what
// waits for them.

#include "tests/emu/memory_acts.h"

namespace memory_test {
namespace {

using std::string;
using std::to_string;

constexpr int kBytes = 64;  // of a copy: also a box of 16 words

string expect(int bytes) {
  return "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r22], " + to_string(bytes) + ";\n";
}
Act counted(const string& instruction, int writes, int alignment) {
  Act act;
  act.name = act.instruction = instruction;
  act.before = expect(writes);
  act.writes = writes;
  act.alignment = alignment;
  act.wait = wait_at_mbarrier();
  act.async = act.window = true;
  return act;
}
Act by_group(const string& instruction, int reads, int alignment) {
  Act act;
  act.name = act.instruction = instruction;
  act.issued = "cp.async.bulk.commit_group;\n";
  act.weak = "cp.async.bulk.wait_group.read 1;\n";
  act.wait = "cp.async.bulk.wait_group.read 0;\n";
  act.reads = reads;
  act.alignment = alignment;
  act.async = act.window = true;
  return act;
}

// ---- cp.async ----

void add_copies(std::vector<Act>& all) {
  const struct {
    const char* what;
    int bytes;
    const char* more;
  } kForms[] = {{"ca.shared.global", 4, ""},       {"ca.shared.global", 8, ""},
                {"ca.shared.global", 16, ""},      {"cg.shared.global", 16, ""},
                {"cg.shared::cta.global", 16, ""}, {"cg.shared.global.L2::128B", 16, ""},
                {"ca.shared.global", 8, ", 4"},    {"cg.shared.global", 16, ", 0"},
                {"cg.shared.global", 16, ", %p3"}};
  for (const auto& form : kForms) {
    Act act;
    act.instruction =
        "cp.async." + string(form.what) + " [%r20], [%rd1], " + to_string(form.bytes) + form.more + ";";
    act.writes = act.alignment = form.bytes;
    act.window = act.lands_by_wait = true;
    act.issued = "cp.async.commit_group;\n";
    act.weak = "cp.async.wait_group 1;\n";
    for (const char* wait : {"cp.async.wait_group 0;\n", "cp.async.wait_all;\n"}) {
      act.wait = wait;
      act.name = act.instruction + " " + wait;
      all.push_back(act);
    }
    act.issued = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r22];\n";
    act.weak = "";
    act.wait = wait_at_mbarrier();
    act.name = act.instruction + " mbarrier";
    all.push_back(act);
  }
}

// ---- bulk copies and their kin ----

void add_bulk(std::vector<Act>& all) {
  const string size = to_string(kBytes);
  const string counts = ".mbarrier::complete_tx::bytes";
  for (const string space : {".shared::cluster", ".shared::cta"})
    all.push_back(counted(
        "cp.async.bulk" + space + ".global" + counts + " [%r20], [%rd1], " + size + ", [%r22];", kBytes, 16));
  all.push_back(counted("cp.async.bulk.shared::cluster.global" + counts +
                            ".multicast::cluster [%r20], [%rd1], " + size + ", [%r22], 1;",
                        kBytes, 16));
  all.push_back(
      counted("cp.async.bulk.shared::cluster.shared::cta" + counts + " [%r20], [%r21], " + size + ", [%r22];",
              kBytes, 16));
  Act reader =
      counted("cp.async.bulk.shared::cluster.shared::cta" + counts + " [%r21], [%r20], " + size + ", [%r22];",
              kBytes, 16);
  reader.reads = kBytes;
  reader.writes = 0;
  all.push_back(reader);
  const string sum = "cp.reduce.async.bulk.shared::cluster.shared::cta" + counts + ".add.u32 ";
  Act reduction = counted(sum + "[%r20], [%r21], " + size + ", [%r22];", kBytes, 16);
  reduction.reads = kBytes;
  reduction.strong = true;
  all.push_back(reduction);
  reader.name = reader.instruction = sum + "[%r21], [%r20], " + size + ", [%r22];";
  all.push_back(reader);
  all.push_back(
      by_group("cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r20], " + size + ";", kBytes, 16));
  Act masked = by_group(
      "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd3], [%r20], " + size + ", 255;", kBytes, 16);
  masked.sm100 = true;
  all.push_back(masked);
  for (const string form : {"add.u32", "min.s32", "and.b32", "add.f32", "add.noftz.f16", "inc.u32"})
    all.push_back(by_group(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group." + form + " [%rd3], [%r20], " + size + ";",
        kBytes, 16));
  Act whole =
      by_group("cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r20], " + size + ";", kBytes, 16);
  whole.weak = "cp.async.bulk.wait_group 1;\n";
  whole.wait = "cp.async.bulk.wait_group 0;\n";
  whole.name += " waited for to the end";
  all.push_back(whole);
}

void add_tensor(std::vector<Act>& all) {
  const string counts = ".mbarrier::complete_tx::bytes";
  string coordinates = "{0";
  for (int rank = 1; rank <= 5; ++rank, coordinates += ", 0") {
    const string dims = to_string(rank) + "d", at = "[%rd2, " + coordinates + "}]";
    std::vector<Act> some;
    for (const string space : {".shared::cluster", ".shared::cta"})
      some.push_back(counted(
          "cp.async.bulk.tensor." + dims + space + ".global.tile" + counts + " [%r20], " + at + ", [%r22];",
          kBytes, 128));
    some.push_back(counted("cp.async.bulk.tensor." + dims + ".shared::cluster.global" + counts +
                               ".multicast::cluster [%r20], " + at + ", [%r22], 1;",
                           kBytes, 128));
    some.push_back(
        by_group("cp.async.bulk.tensor." + dims + ".global.shared::cta.tile.bulk_group " + at + ", [%r20];",
                 kBytes, 128));
    for (const string op : {"add", "min", "max", "inc", "dec", "and", "or", "xor"}) {
      if (rank != 2 && op != "add") continue;
      some.push_back(by_group("cp.reduce.async.bulk.tensor." + dims + ".global.shared::cta." + op +
                                  ".tile.bulk_group " + at + ", [%r20];",
                              kBytes, 128));
    }
    for (Act& act : some) {
      act.rank = rank;
      all.push_back(act);
    }
  }
  std::vector<Act> rows = {counted("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4" + counts +
                                       " [%r20], [%rd2, {0, 0, 1, 2, 3}], [%r22];",
                                   4 * kBytes, 128),
                           by_group("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
                                    "[%rd2, {0, 0, 1, 2, 3}], [%r20];",
                                    4 * kBytes, 128),
                           counted("cp.async.bulk.tensor.2d.shared::cluster.global.tile" + counts +
                                       ".cta_group::1 [%r20], [%rd2, {0, 0}], [%r22];",
                                   kBytes, 128)};
  for (Act& act : rows) {
    act.sm100 = true;
    all.push_back(act);
  }
}

void add_remote(std::vector<Act>& all) {
  const string counts = ".mbarrier::complete_tx::bytes";
  const struct {
    const char *type, *values;
    int bytes;
  } kStores[] = {{".u32", "%r40", 4},
                 {".v2.u32", "{%r40, %r41}", 8},
                 {".v4.u32", "{%r40, %r41, %r42, %r43}", 16},
                 {".u64", "%rd40", 8},
                 {".v2.u64", "{%rd40, %rd41}", 16}};
  for (const auto& form : kStores) {
    for (const string weak : {"", ".weak"})
      all.push_back(counted("st.async" + weak + ".shared::cluster" + counts + form.type + " [%r20], " +
                                form.values + ", [%r22];",
                            form.bytes, form.bytes));
  }
  for (const string form : {"add.u32", "add.s32", "min.u32", "max.s32", "inc.u32", "dec.u32", "and.b32",
                            "or.b32", "xor.b32", "add.u64"}) {
    const bool wide = form == "add.u64";
    Act act = counted("red.async.relaxed.cluster.shared::cluster" + counts + "." + form + " [%r20], " +
                          (wide ? "%rd40" : "%r40") + ", [%r22];",
                      wide ? 8 : 4, wide ? 8 : 4);
    act.reads = act.writes;
    act.strong = true;
    all.push_back(act);
  }
  for (const string form : {".shared::cta.async", ".async", "multicast"}) {
    const bool all_blocks = form == "multicast";
    Act act = counted("clusterlaunchcontrol.try_cancel" + (all_blocks ? ".async" : form) + counts +
                          (all_blocks ? ".multicast::cluster::all" : "") + ".b128 " +
                          (form[1] != 's' ? "[%rd20], [%rd22];" : "[%r20], [%r22];"),
                      16, 16);
    act.before = "cvt.u64.u32 %rd22, %r22;\ncvta.shared.u64 %rd22, %rd22;\n" + act.before;
    act.sm100 = true;
    all.push_back(act);
  }
}

// ---- operands of the tensor cores ----

// A descriptor without a swizzle of what a register's address points to; bit 46 is set for tcgen05.
string descriptor(const string& to, const string& address, bool tcgen05) {
  return "and.b32 %r61, " + address + ", 0x3FFFF;\nshr.u32 %r61, %r61, 4;\ncvt.u64.u32 " + to +
         ", %r61;\nor.b64 " + to + ", " + to +
         (tcgen05 ? ", 0x0000401000080000;\n" : ", 0x0000001000080000;\n");
}

void add_wgmma(std::vector<Act>& all) {
  for (const bool is_a : {true, false}) {
    Act act;
    act.before = descriptor("%rd30", is_a ? "%r20" : "%r21", false) +
                 descriptor("%rd31", is_a ? "%r21" : "%r20", false) + "wgmma.fence.sync.aligned;\n";
    act.instruction =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f8, %f9, %f10, %f11}, %rd30, %rd31, %p4, 1, "
        "1, 0, "
        "0;";
    act.name = act.instruction + (is_a ? " A" : " B");
    act.issued = "wgmma.commit_group.sync.aligned;\n";
    act.weak = "wgmma.wait_group.sync.aligned 1;\n";
    act.wait = "wgmma.wait_group.sync.aligned 0;\n";
    act.reads = 128;  // at least: the first 8 rows of 16 bytes
    act.alignment = 16;
    act.who = Who::warpgroup;
    act.async = act.window = true;
    all.push_back(act);
  }
}

void add_tcgen05(std::vector<Act>& all) {
  Act act;
  act.reads = 128;
  act.alignment = 16;
  act.async = act.window = act.tensor = act.sm100 = true;
  act.issued = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r22];\n";
  act.wait = wait_at_mbarrier() + "tcgen05.fence::after_thread_sync;\n";
  for (const bool is_a : {true, false}) {
    act.before = descriptor("%rd30", is_a ? "%r20" : "%r21", true) +
                 descriptor("%rd31", is_a ? "%r21" : "%r20", true) +
                 "add.u32 %r62, %r6, 0;\n@!%p2 add.u32 %r62, %r6, 16;\n";
    for (const string kind : {"f16 [%r62], %rd30, %rd31, 0x08040490", "tf32 [%r62], %rd30, %rd31, 0x08040910",
                              "f8f6f4 [%r62], %rd30, %rd31, 0x08040010"}) {
      act.instruction = "tcgen05.mma.cta_group::1.kind::" + kind + ", %p4;";
      act.name = act.instruction + (is_a ? " A" : " B");
      all.push_back(act);
    }
  }
  const struct {
    const char* shape;
    int bytes;
  } kShapes[] = {{"128x256b", 128},
                 {"128x128b", 128},
                 {"4x256b", 32},
                 {"64x128b.warpx2::02_13", 128},
                 {"64x128b.warpx2::01_23", 128},
                 {"32x128b.warpx4", 128},
                 {"128x256b.b8x16.b4x16_p64", 8}};
  for (const auto& form : kShapes) {
    act.before = descriptor("%rd30", "%r20", true) + "add.u32 %r62, %r6, 0;\n@!%p2 add.u32 %r62, %r6, 32;\n";
    act.reads = form.bytes;
    act.name = act.instruction = "tcgen05.cp.cta_group::1." + string(form.shape) + " [%r62], %rd30;";
    all.push_back(act);
  }
}

}  // namespace

std::vector<Act> async_acts() {
  std::vector<Act> all;
  add_copies(all);
  add_bulk(all);
  add_tensor(all);
  add_remote(all);
  add_wgmma(all);
  add_tcgen05(all);
  return all;
}

}  // namespace memory_test
