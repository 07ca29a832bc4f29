// SPDX-License-Identifier: MIT
// Each instruction that goes to memory or multiplies moves its counters and no others. The numbers
// are reckoned by hand from "What moves which counter" in common/emu/COUNTS.md. An instruction of
// common/emu/core/isa/forms.h that stands neither in the tables nor in the list of those that move
// no more than `instructions` and their family's makes a test fail.

#include <gtest/gtest.h>

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/report/count_report.h"
#include "tests/emu/launch_ptx.h"
#include "tests/emu/memory_acts.h"

namespace {

using namespace memory_test;
using std::string;
using std::to_string;
using Moved = std::map<string, uint64_t>;

// An instruction of a family that warps execute so many times, and what it moves.
struct Row {
  Act act;
  string family;
  Moved moved;
  uint64_t times = 1;
};

Moved global(const string& way, uint64_t bytes, uint64_t sectors) {
  return {{"global_" + way + "_bytes", bytes}, {"global_" + way + "_sectors", sectors}};
}
Moved shared(const string& way, uint64_t bytes, uint64_t wavefronts, uint64_t conflicts) {
  return {{"shared_" + way + "_bytes", bytes},
          {"shared_wavefronts", wavefronts},
          {"shared_bank_conflicts", conflicts}};
}

// An instruction of the block's first warp. %rd20 and %rd24 are in global memory and %r20 and %r24
// in shared, 128 bytes from lane to lane at 24, and side by side at 20, which is `width` bytes.
Row warp_row(const string& instruction, const string& family, int width, const Moved& moved) {
  Act act;
  act.name = act.instruction = instruction;
  act.before =
      "mad.wide.u32 %rd20, %r4, " + to_string(width) + ", %rd1;\nmad.lo.u32 %r24, %r4, 128, %r20;\n" +
      "mad.lo.u32 %r20, %r4, " + to_string(width) + ", %r20;\n" +
      "mad.wide.u32 %rd24, %r4, 128, %rd1;\ncvt.u64.u32 %rd30, %r20;\ncvta.shared.u64 %rd30, %rd30;\n";
  return {act, family, moved};
}

// ---- plain loads and stores, atomics ----

// A warp's access of so many bytes a lane: bytes; sectors and wavefronts where lanes lie side by
// side; and the conflicts where they lie 128 bytes apart, in 32 sectors and 32 wavefronts.
struct Width {
  int lane;
  uint64_t warp, sectors, wavefronts, conflicts;
};
constexpr Width kWidths[] = {{1, 32, 1, 1, 31},  {2, 64, 2, 1, 31},    {4, 128, 4, 1, 31},
                             {8, 256, 8, 2, 30}, {16, 512, 16, 4, 28}, {32, 1024, 32, 0, 0}};
const Width& width_of(int lane) {
  return *std::find_if(std::begin(kWidths), std::end(kWidths),
                       [&](const Width& w) { return w.lane == lane; });
}

struct Form {
  const char *type, *registers;
  int lane;  // bytes
  bool sm100 = false;
};
constexpr Form kAccesses[] = {{"u8", "%r40", 1},
                              {"v2.u8", "{%r40, %r41}", 2},
                              {"v4.s8", "{%r40, %r41, %r42, %r43}", 4},
                              {"b16", "%h0", 2},
                              {"v2.u16", "{%h0, %h1}", 4},
                              {"v4.b16", "{%h0, %h1, %h2, %h3}", 8},
                              {"u32", "%r40", 4},
                              {"v2.f32", "{%f8, %f9}", 8},
                              {"v4.u32", "{%r40, %r41, %r42, %r43}", 16},
                              {"b64", "%rd40", 8},
                              {"v2.u64", "{%rd40, %rd41}", 16},
                              {"v8.b32", "{%r40, %r41, %r42, %r43, %r50, %r51, %r52, %r53}", 32, true},
                              {"v4.b64", "{%rd40, %rd41, %rd42, %rd43}", 32, true}};

// `head` of an instruction before its space, `tail` behind it; %AT stands for the address.
void add_everywhere(std::vector<Row>& all, const string& head, const string& tail, const string& family,
                    const string& way, const Width& width, bool sm100) {
  const auto add = [&](const string& space, const string& at, const Moved& moved) {
    string text = head + space + tail;
    text.replace(text.find("%AT"), 3, "[" + at + "]");
    all.push_back(warp_row(text + ";", family, width.lane, moved));
    all.back().act.sm100 = sm100;
    all.back().act.before +=
        "mov.u32 %r50, 0;\nmov.u32 %r51, 0;\nmov.u32 %r52, 0;\nmov.u32 %r53, 0;\n"
        "mov.u64 %rd42, 0;\nmov.u64 %rd43, 0;\n";
  };
  for (const char* space : {".global", ""}) {
    add(space, "%rd20", global(way, width.warp, width.sectors));
    add(space, "%rd24", global(way, width.warp, 32));
    add(space, "%rd1", global(way, width.warp, 1));
  }
  if (width.wavefronts == 0) return;
  for (const char* space : {".shared", ".shared::cta", ".shared::cluster"}) {
    add(space, "%r20", shared(way, width.warp, width.wavefronts, 0));
    add(space, "%r24", shared(way, width.warp, 32, width.conflicts));
  }
  add("", "%rd30", shared(way, width.warp, width.wavefronts, 0));
}

void add_accesses(std::vector<Row>& all) {
  for (const Form& f : kAccesses) {
    const string type = string(".") + f.type + " ", registers = f.registers;
    add_everywhere(all, "ld", type + registers + ", %AT", "ldst", "load", width_of(f.lane), f.sm100);
    add_everywhere(all, "st", type + "%AT, " + registers, "ldst", "store", width_of(f.lane), f.sm100);
  }
  all.push_back(warp_row("ldu.global.v2.u32 {%r40, %r41}, [%rd20];", "ldst", 8, global("load", 256, 8)));
  all.push_back(
      warp_row("ld.global.nc.L1::no_allocate.u32 %r40, [%rd20];", "ldst", 4, global("load", 128, 4)));
  all.push_back(warp_row("ld.volatile.shared.u64 %rd40, [%r24];", "ldst", 8, shared("load", 256, 32, 30)));
  all.push_back(warp_row("st.release.gpu.global.u32 [%rd24], %r40;", "ldst", 4, global("store", 128, 32)));
  // 8 bytes, 16 and 64 apart: of 16 lanes two and eight share a bank. Five lanes: one wavefront.
  all.push_back(warp_row("ld.shared.u64 %rd40, [%r20];", "ldst", 16, shared("load", 256, 4, 2)));
  all.push_back(warp_row("st.shared.v2.u32 [%r20], {%r40, %r41};", "ldst", 64, shared("store", 256, 16, 14)));
  all.push_back(warp_row("@%p6 ld.shared.u64 %rd40, [%r20];", "ldst", 8, shared("load", 40, 1, 0)));
  all.push_back(warp_row("@%p6 st.global.u64 [%rd20], %rd40;", "ldst", 8, global("store", 40, 2)));
  all.push_back(warp_row("@%p6 red.shared.add.u64 [%r24], %rd40;", "atomic", 8, shared("atomic", 40, 5, 4)));
  // Lanes that share a word share a wavefront.
  all.push_back(warp_row("ld.shared.u64 %rd40, [tile];", "ldst", 8, shared("load", 256, 2, 0)));
  all.push_back(
      warp_row("ld.shared.v4.u32 {%r40, %r41, %r42, %r43}, [tile];", "ldst", 8, shared("load", 512, 4, 0)));
  // Sectors that lanes share, and that a lane of 16 bytes does not reach.
  all.push_back(warp_row("ld.global.u32 %r40, [%rd20];", "ldst", 12, global("load", 128, 12)));
  all.push_back(
      warp_row("ld.global.v4.u32 {%r40, %r41, %r42, %r43}, [%rd20];", "ldst", 48, global("load", 512, 32)));
}

// Lanes in another order: what is counted does not change.
void add_orders(std::vector<Row>& all) {
  for (const auto& [text, moved] : {std::pair{"ld.global.u32 %r50, [%rd31];", global("load", 128, 4)},
                                    std::pair{"red.global.add.u32 [%rd31], %r40;", global("atomic", 128, 4)},
                                    std::pair{"st.global.u32 [%rd31], %r40;", global("store", 128, 4)}}) {
    all.push_back(warp_row(text, text[0] == 'r' ? "atomic" : "ldst", 4, moved));
    all.back().act.before +=
        "mul.lo.u32 %r62, %r4, 5;\nand.b32 %r62, %r62, 31;\nmad.wide.u32 %rd31, %r62, 4, %rd1;\n";
  }
}

void add_atomics(std::vector<Row>& all) {
  const auto add = [&](const string& operation, const char* registers, int lane, const char* third = "") {
    const string from = string("%AT, ") + registers + third, what = "." + operation + " ";
    add_everywhere(all, "atom", what + registers + ", " + from, "atomic", "atomic", width_of(lane), false);
    if (operation.rfind("exch", 0) == 0 || operation.rfind("cas", 0) == 0) return;
    add_everywhere(all, "red", what + from, "atomic", "atomic", width_of(lane), false);
  };
  for (const char* op : {"and.b32", "or.b32", "xor.b32", "exch.b32", "add.u32", "add.s32", "inc.u32",
                         "dec.u32", "min.s32", "max.u32", "add.noftz.f16x2", "add.noftz.bf16x2"})
    add(op, "%r40", 4);
  for (const char* op : {"and.b64", "or.b64", "xor.b64", "exch.b64", "add.u64", "min.s64", "max.u64"})
    add(op, "%rd40", 8);
  for (const char* op : {"add.noftz.f16", "add.noftz.bf16"}) add(op, "%h0", 2);
  add("add.f32", "%f8", 4);
  add("add.f64", "%d0", 8);
  add("cas.b16", "%h0", 2, ", %h0");
  add("cas.b32", "%r40", 4, ", %r40");
  add("cas.b64", "%rd40", 8, ", %rd40");
  const struct {
    const char *vector, *registers;
    uint64_t bytes, sectors;
    int lane;
  } kVectors[] = {{"add.noftz.v2.f16", "{%h0, %h1}", 128, 4, 4},
                  {"min.noftz.v4.bf16", "{%h0, %h1, %h2, %h3}", 256, 8, 8},
                  {"max.noftz.v8.f16", "{%h0, %h1, %h2, %h3, %h0, %h1, %h2, %h3}", 512, 16, 16},
                  {"add.noftz.v2.bf16x2", "{%r40, %r41}", 256, 8, 8},
                  {"min.noftz.v4.f16x2", "{%r40, %r41, %r42, %r43}", 512, 16, 16},
                  {"add.v2.f32", "{%f8, %f9}", 256, 8, 8},
                  {"add.v4.f32", "{%f8, %f9, %f10, %f11}", 512, 16, 16}};
  for (const auto& v : kVectors) {
    for (const string head : {"red.global.", "atom.global."}) {
      const string to = head[0] == 'a'
                            ? (v.lane == 16 && v.registers[2] == 'h' ? "{%h8, %h9, %h10, %h11, %h12, "
                                                                       "%h13, %h14, %h15}"
                                                                     : string(v.registers)) +
                                  ", "
                            : "";
      all.push_back(warp_row(head + v.vector + " " + to + "[%rd20], " + v.registers + ";", "atomic", v.lane,
                             global("atomic", v.bytes, v.sectors)));
    }
  }
}

// ---- copies by lanes, matrices ----

Moved both(Moved a, const Moved& b) {
  a.insert(b.begin(), b.end());
  return a;
}
Moved wavefronts(uint64_t taken, uint64_t conflicts) {
  return {{"shared_wavefronts", taken}, {"shared_bank_conflicts", conflicts}};
}

void add_copies(std::vector<Row>& all) {
  const auto add = [&](const string& what, int width, const string& more, const Moved& moved) {
    for (const string to : {"[%r20]", "[%r24]"}) {
      Row row = warp_row(
          "cp.async." + what + ".shared.global " + to + ", [%rd20], " + to_string(width) + more + ";",
          "cp_async", width,
          both(moved, to == "[%r20]" ? wavefronts(width_of(width).wavefronts, 0)
                                     : wavefronts(32, width_of(width).conflicts)));
      row.act.wait = "cp.async.wait_all;\n";
      all.push_back(row);
    }
  };
  add("ca", 4, "", global("load", 128, 4));
  add("ca", 8, "", global("load", 256, 8));
  add("ca", 16, "", global("load", 512, 16));
  add("cg", 16, "", global("load", 512, 16));
  add("cg", 16, ", 4", global("load", 128, 16));  // four bytes of each lane, the others are zeros
  add("ca", 8, ", 0", {});
  add("ca", 8, ", %p7", global("load", 27 * 8, 7));  // five lanes read nothing
}

void add_matrices(std::vector<Row>& all) {
  for (const string head : {"ldmatrix.sync.aligned.m8n8.", "stmatrix.sync.aligned.m8n8."}) {
    const string way = head[0] == 'l' ? "load" : "store";
    const char* const lists[] = {"", "{%r50}", "{%r50, %r51}", "", "{%r50, %r51, %r52, %r53}"};
    for (const uint64_t count : {1u, 2u, 4u}) {
      for (const string at : {"[%r20]", "[%r24]"}) {
        const string list = lists[count];
        all.push_back(warp_row(head + "x" + to_string(count) + ".shared.b16 " +
                                   (way == "load" ? list + ", " + at : at + ", " + list) + ";",
                               "ldmatrix", 16,
                               at == "[%r20]" ? shared(way, 128 * count, count, 0)
                                              : shared(way, 128 * count, 8 * count, 7 * count)));
        all.back().act.before += "mov.u32 %r50, 0;\nmov.u32 %r51, 0;\nmov.u32 %r52, 0;\nmov.u32 %r53, 0;\n";
      }
    }
  }
  const auto add = [&](const string& text, uint64_t rows, const string& way) {
    all.push_back(warp_row(text, "ldmatrix", 16, shared(way, 16 * rows, rows / 8, 0)));
    all.back().act.sm100 = true;
  };
  add("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r50, %r51}, [%r20];", 16, "load");
  add("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b6x16_p32 {%r50, %r51, %r52, %r53}, [%r20];", 32,
      "load");
  add("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64 {%r50, %r51, %r52, %r53}, [%r20];", 32, "load");
  add("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r20], {%r40, %r41};", 16, "store");
  all.push_back(warp_row("movmatrix.sync.aligned.m8n8.trans.b16 %r50, %r40;", "ldmatrix", 16, {}));
}

// A lane takes 4 or 8 bytes of each 8 x 8 part. Of eight rows of 32 bytes two share a bank each
// time, and of the four rows of 64 bytes that 16 lanes reach.
void add_wmma(std::vector<Row>& all) {
  const string eight = "{%r50, %r51, %r52, %r53, %r54, %r55, %r56, %r57}", four = "{%r40, %r41, %r42, %r43}",
               sums = "{%f0, %f1, %f2, %f3, %f8, %f9, %f10, %f11}";
  const auto add = [&](const string& text, const string& family, const Moved& moved) {
    all.push_back(warp_row("wmma." + text + ";", family, 0, moved));
    for (int i = 50; i < 58; ++i) all.back().act.before += "mov.u32 %r" + to_string(i) + ", 0;\n";
    for (int i = 0; i < 4; ++i) all.back().act.before += "mov.f32 %f" + to_string(i) + ", 0f00000000;\n";
  };
  const string load = "load.a.sync.aligned.row.m16n16k16", store = "store.d.sync.aligned.row.m16n16k16";
  add(load + ".global.f16 " + eight + ", [%rd1]", "ldmatrix", global("load", 512, 32));
  add(load + ".shared.f16 " + eight + ", [%r20]", "ldmatrix", shared("load", 512, 8, 4));
  add(store + ".global.f16 [%rd1], " + four, "ldmatrix", global("store", 512, 32));
  add(store + ".shared.f16 [%r20], " + four, "ldmatrix", shared("store", 512, 8, 4));
  add(store + ".global.f32 [%rd1], " + sums, "ldmatrix", global("store", 1024, 32));
  add(store + ".shared.f32 [%r20], " + sums, "ldmatrix", shared("store", 1024, 16, 8));
  const auto multiply = [&](const string& text, uint64_t multiply_adds) {
    add("mma" + text, "mma", {{"multiply_adds", multiply_adds}, {"products", 1}});
  };
  multiply(".sync.aligned.row.col.m16n16k16.f16.f16 " + four + ", " + eight + ", " + eight + ", " + four,
           4096);
  multiply(".sync.aligned.row.col.m8n32k16.f16.f16 " + four + ", " + eight + ", " + eight + ", " + four,
           4096);
  multiply(".sync.aligned.row.col.m8n8k4.f64.f64.f64.f64 {%d0, %d1}, {%d0}, {%d0}, {%d0, %d0}", 256);
  multiply(".sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r50, %r51}, {%r52}, {%r53}, {%r54, %r55}", 2048);
  multiply(".xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r50, %r51}, {%r52}, {%r53}, {%r54, %r55}",
           8192);
}

// ---- products ----

void add_products(std::vector<Row>& all) {
  const auto add = [&](const string& text, uint64_t products, bool sm100 = false) {
    const bool tensor = text.rfind("mma", 0) == 0;
    all.push_back(warp_row(text + ";", tensor ? "mma" : "floating", 0,
                           {{"multiply_adds", products}, {"products", tensor ? 1 : 0}}));
    all.back().act.before += "mov.f32 %f0, 0f00000000;\nmov.u64 %rd42, 0;\n";
    all.back().act.sm100 = sm100;
  };
  add("fma.rn.f32 %f0, %f8, %f9, %f10", 32);
  add("fma.rn.f64 %d1, %d0, %d0, %d0", 32);
  add("mad.rn.f32 %f0, %f8, %f9, %f10", 32);
  add("fma.rn.f16 %h4, %h0, %h1, %h2", 32);
  add("fma.rn.relu.bf16 %h4, %h0, %h1, %h2", 32);
  add("fma.rn.f16x2 %r50, %r40, %r41, %r42", 64);
  add("fma.rn.ftz.relu.f16x2 %r50, %r40, %r41, %r42", 64);
  add("fma.rn.bf16x2 %r50, %r40, %r41, %r42", 64);
  add("fma.rn.f32x2 %rd50, %rd40, %rd41, %rd42", 64, true);
  add("@%p6 fma.rn.f32 %f0, %f8, %f9, %f10", 5);
  add("@%p6 fma.rn.bf16x2 %r50, %r40, %r41, %r42", 10);
  const string c = "{%f8, %f9, %f10, %f11}", d = "{%f0, %f1, %f2, %f3}", head = "mma.sync.aligned.m16n8k";
  add(head + "8.row.col.f32.bf16.bf16.f32 " + d + ", {%r40, %r41}, {%r42}, " + c, 1024);
  add(head + "16.row.col.f32.f16.f16.f32 " + d + ", {%r40, %r41, %r42, %r43}, {%r40, %r41}, " + c, 2048);
  add(head + "16.row.col.f16.f16.f16.f16 {%r50, %r51}, {%r40, %r41, %r42, %r43}, {%r40, %r41}, {%r42, %r43}",
      2048);
  add(head + "4.row.col.f32.tf32.tf32.f32 " + d + ", {%r40, %r41}, {%r42}, " + c, 512);
  add(head + "32.row.col.f32.e4m3.e5m2.f32 " + d + ", {%r40, %r41, %r42, %r43}, {%r40, %r41}, " + c, 4096);
}

// These are no multiply-adds: integers, and sums and products alone.
void add_no_products(std::vector<Row>& all) {
  for (const char* text :
       {"mad.lo.s32 %r50, %r40, %r41, %r42;", "mad.lo.cc.u32 %r50, %r40, %r41, %r42;",
        "mul.lo.u32 %r50, %r40, %r41;", "add.u32 %r50, %r40, %r41;", "dp4a.u32.u32 %r50, %r40, %r41, %r42;"})
    all.push_back(warp_row(text, "integer", 0, {}));
  for (const char* text : {"mul.rn.f32 %f0, %f8, %f9;", "add.rn.f16x2 %r50, %r40, %r41;",
                           "mul.rn.bf16x2 %r50, %r40, %r41;", "sub.rn.f64 %d1, %d0, %d0;"})
    all.push_back(warp_row(text, "floating", 0, {}));
}

// Local memory and parameters are counted nowhere.
void add_other_spaces(std::vector<Row>& all) {
  const string own =
      ".local .align 16 .b8 own[64];\ncvta.local.u64 %rd31, own;\nst.local.v4.u32 [own], "
      "{%r40, %r41, %r42, %r43};\n";
  for (const char* text :
       {"ld.local.v2.u32 {%r50, %r51}, [own];", "st.local.u64 [own], %rd40;", "ld.u64 %rd50, [%rd31];",
        "st.v4.u32 [%rd31], {%r40, %r41, %r42, %r43};", "ld.param.u64 %rd50, [out];"}) {
    all.push_back(warp_row(text, "ldst", 4, {}));
    all.back().act.before += own;
  }
  // A generic access counts each lane where it goes: 16 in shared memory and 16 in global.
  Row mixed =
      warp_row("ld.u32 %r50, [%rd31];", "ldst", 4, both(shared("load", 64, 1, 0), global("load", 64, 2)));
  mixed.act.before += "setp.lt.u32 %p7, %r4, 16;\nselp.b64 %rd31, %rd30, %rd20, %p7;\n";
  all.push_back(mixed);
  mixed.act.name = mixed.act.instruction = "red.add.u32 [%rd31], %r40;";
  mixed.family = "atomic";
  mixed.moved = both(shared("atomic", 64, 1, 0), global("atomic", 64, 2));
  all.push_back(mixed);
}

std::vector<Row> warp_rows() {
  std::vector<Row> all;
  add_accesses(all);
  add_orders(all);
  add_atomics(all);
  add_copies(all);
  add_matrices(all);
  add_wmma(all);
  add_products(all);
  add_no_products(all);
  add_other_spaces(all);
  return all;
}

// ---- operations of the asynchronous proxy: those of memory_acts.cpp ----

// The counters that an act moves, by how its instruction begins and a word that is in it. Copies
// have 64 bytes, or four times as many.
struct Async {
  const char *begin, *word, *family;
  Moved moved;
};
const std::vector<Async>& async_table() {
  const auto products = [](uint64_t count, uint64_t bytes, uint64_t warps = 1) {
    return Moved{{"multiply_adds", count}, {"shared_load_bytes", bytes}, {"products", warps}};
  };
  static const std::vector<Async> table = {
      {"st.async", "", "ldst", {}},
      {"red.async", "", "atomic", {}},
      {"clusterlaunchcontrol", "", "control", {}},
      {"cp.async.bulk", "gather4", "bulk", global("load", 256, 8)},
      {"cp.async.bulk", "scatter4", "bulk", global("store", 256, 8)},
      {"cp.async.bulk", ".shared::cluster.shared::cta", "bulk", {}},
      {"cp.async.bulk", ".global.shared::cta", "bulk", global("store", 64, 2)},
      {"cp.async.bulk", ".global", "bulk", global("load", 64, 2)},
      {"cp.reduce.async.bulk", ".shared::cluster.shared::cta", "bulk", {}},
      {"cp.reduce.async.bulk", ".global.shared::cta", "bulk", global("atomic", 64, 2)},
      // Four warps: of A 64 rows of 32 bytes, of B 8 columns of 32 bytes.
      {"wgmma", "m64n8k16", "wgmma", products(64 * 8 * 16, 2048 + 256, 4)},
      // A of 128 rows, B of 16 columns, 32 bytes each.
      {"tcgen05.mma", "kind::f16", "tcgen05", products(128 * 16 * 16, 4096 + 512)},
      {"tcgen05.mma", "kind::tf32", "tcgen05", products(128 * 16 * 8, 4096 + 512)},
      {"tcgen05.mma", "kind::f8f6f4", "tcgen05", products(128 * 16 * 32, 4096 + 512)},
      {"tcgen05.cp", "128x256b", "tcgen05", {{"shared_load_bytes", 4096}}},
      {"tcgen05.cp", "128x128b", "tcgen05", {{"shared_load_bytes", 2048}}},
      {"tcgen05.cp", "4x256b", "tcgen05", {{"shared_load_bytes", 128}}},
      {"tcgen05.cp", "64x128b", "tcgen05", {{"shared_load_bytes", 1024}}},
      {"tcgen05.cp", "32x128b", "tcgen05", {{"shared_load_bytes", 512}}}};
  return table;
}

// Some acts of the table come at other places: beside a sector's begin, partly outside the tensor,
// with A in registers.
void add_places(std::vector<Row>& all) {
  const auto add = [&](const string& of, const string& from, const string& to, const Moved& moved) {
    for (const Act& act : async_acts()) {
      const size_t at = act.instruction.find(from);
      if (act.name.rfind(of, 0) != 0 || at == string::npos) continue;
      const bool four_warps = act.who == Who::warpgroup;
      all.push_back({act, four_warps ? "wgmma" : "bulk", moved, four_warps ? 4u : 1u});
      Act& changed = all.back().act;
      changed.name = changed.instruction.replace(at, from.size(), to);
      return;
    }
    ADD_FAILURE() << "there is no " << of << " with " << from;
  };
  add("cp.async.bulk.shared::cta.global", "[%rd1]", "[%rd1+16]", global("load", 64, 3));
  add("cp.async.bulk.global.shared::cta", "[%rd3]", "[%rd3+16]", global("store", 64, 3));
  add("cp.reduce.async.bulk.global.shared::cta", "[%rd3]", "[%rd3+16]", global("atomic", 64, 3));
  add("cp.async.bulk.tensor.2d.shared::cta", "{0, 0}", "{8, 0}", global("load", 32, 1));
  add("cp.async.bulk.tensor.2d.shared::cta", "{0, 0}", "{0, 9}", {});
  add("cp.async.bulk.tensor.2d.global", "{0, 0}", "{12, 0}", global("store", 16, 1));
  add("wgmma", "%rd30, %rd31, %p4, 1, 1, 0, 0", "{%r40, %r41, %r42, %r43}, %rd31, %p4, 1, 1, 0",
      {{"multiply_adds", 64 * 8 * 16}, {"shared_load_bytes", 256}, {"products", 4}});
}

// Each act is one thread's, or all of the block's first four warps.
std::vector<Row> async_rows() {
  std::vector<Row> all;
  add_places(all);
  for (const Act& act : async_acts()) {
    if (act.lands_by_wait) continue;  // cp.async: above
    const auto known = std::find_if(async_table().begin(), async_table().end(), [&](const Async& each) {
      return act.instruction.rfind(each.begin, 0) == 0 && act.instruction.find(each.word) != string::npos;
    });
    if (known == async_table().end()) {
      ADD_FAILURE() << act.instruction << ": say in async_table() what it counts";
      continue;
    }
    Row row = {act, known->family, known->moved, act.who == Who::warpgroup ? 4u : 1u};
    all.push_back(row);
  }
  return all;
}

// ---- the tests ----

string text_of(const Moved& moved) {
  string text;
  for (const auto& [name, value] : moved) text += "  " + name + " " + to_string(value) + "\n";
  return text;
}

// Adds what was executed.
void expect_row(const Row& row, const string& body, std::set<std::pair<string, string>>& executed) {
  Moved wanted = row.moved;
  std::erase_if(wanted, [](const auto& counter) { return counter.second == 0; });
  wanted["instructions"] = wanted["instructions_" + row.family] = row.times;
  try {
    const Counted got = counted(kernel(row.act, body), {.rank = row.act.rank});
    EXPECT_EQ(text_of(got.moved), text_of(wanted)) << row.act.name;
    executed.insert({got.opcode, got.family});
  } catch (const gg::emu::SyntaxError& error) {
    ADD_FAILURE() << row.act.name << ": " << error.what << " in line " << error.line;
  } catch (const gg::emu::Fault& fault) {
    ADD_FAILURE() << row.act.name << ": " << fault.what();
  }
}

std::set<std::pair<string, string>> expect_all() {
  std::set<std::pair<string, string>> executed;
  const string lanes = "setp.lt.u32 %p6, %r4, 5;\nsetp.ge.u32 %p7, %r4, 27;\n";
  for (const Row& row : warp_rows()) {
    expect_row(row, lanes + "@!%p5 bra OTHERS;\n" + done(row.act, kHere) + "OTHERS:\n", executed);
  }
  for (const Row& row : async_rows())
    expect_row(row, "@!%p2 bra OTHERS;\n" + only(row.act.who, done(row.act, kHere)) + "OTHERS:\n", executed);
  return executed;
}

// Forms that count as instructions of their family and move nothing else, whatever their operands
// are. Waits are counted where a warp waits: `barrier_waits`, below.
const std::map<string, std::set<string>> kNothingElse = {
    {"integer", {"add",      "addc",      "sub",       "subc",  "mad",   "madc",  "mul",  "mul24", "mad24",
                 "sad",      "div",       "rem",       "abs",   "neg",   "min",   "max",  "dp4a",  "dp2a",
                 "and",      "or",        "xor",       "not",   "cnot",  "lop3",  "shl",  "shr",   "shf",
                 "popc",     "clz",       "bfind",     "fns",   "brev",  "bfe",   "bfi",  "bmsk",  "szext",
                 "setp",     "set",       "slct",      "vadd",  "vadd2", "vadd4", "vsub", "vsub2", "vsub4",
                 "vabsdiff", "vabsdiff2", "vabsdiff4", "vmin",  "vmin2", "vmin4", "vmax", "vmax2", "vmax4",
                 "vavrg2",   "vavrg4",    "vset",      "vset2", "vset4", "vshl",  "vshr"}},
    {"floating", {"add", "sub",  "mul", "div", "rcp", "sqrt", "rsqrt",    "sin",   "cos",  "lg2",
                  "ex2", "tanh", "abs", "neg", "min", "max",  "copysign", "testp", "setp", "set"}},
    {"convert", {"cvt", "cvta", "isspacep"}},
    {"move", {"mov", "mapa", "getctarank", "createpolicy", "prmt", "selp"}},
    {"control", {"bra", "brx", "call", "ret", "exit", "trap", "brkpt", "nanosleep", "pmevent", "pragma"}},
    {"ldst", {"prefetch", "prefetchu", "applypriority", "discard"}},
    {"warp", {"shfl", "vote", "match", "redux", "elect", "activemask"}},
    {"barrier", {"bar", "barrier"}},
    {"mbarrier", {"mbarrier", "cp"}},
    {"fence", {"membar", "fence", "griddepcontrol", "setmaxnreg"}},
    {"bulk", {"tensormap"}}};

TEST(Counters, OfEveryFormThatGoesToMemoryOrMultiplies) {
  const auto executed = expect_all();
  std::set<std::pair<string, string>> forms;
  for (const string& opcode : gg::emu::all_forms().opcodes()) {
    for (const gg::emu::Form& form : gg::emu::all_forms().of(opcode)) {
      const string family = family_name(form.family);
      const auto nothing = kNothingElse.find(family);
      const bool listed = nothing != kNothingElse.end() && nothing->second.count(opcode);
      forms.insert({opcode, family});
      EXPECT_TRUE(executed.count({opcode, family}) || listed)
          << opcode << " of the family " << family << ": give it a row above, or list it in kNothingElse";
    }
  }
  for (const auto& [family, opcodes] : kNothingElse) {
    for (const string& opcode : opcodes)
      EXPECT_TRUE(forms.count({opcode, family}))
          << opcode << " of the family " << family << " is listed in vain";
  }
}

// The last of eight warps to come to the barrier does not wait. Nobody waits for a cp.async here:
// it lands at its wait. A bulk store has not been done when its thread waits for it.
TEST(Counters, OfWaits) {
  const auto waits = [](const string& instruction, const string& before = "", const string& after = "") {
    Act act;
    const string marked = instruction + kHere + string("\n"),
                 skip = after.empty() ? "" : "@!%p3 bra OTHERS;\n";
    return counted(kernel(act, skip + before + marked + after + "OTHERS:\n"), {}).moved["barrier_waits"];
  };
  EXPECT_EQ(waits("bar.sync 1;"), 7u);
  EXPECT_EQ(waits("bar.arrive 1, 512;"), 0u);
  EXPECT_EQ(waits("cp.async.wait_all;", "cp.async.ca.shared.global [%r12], [%rd1], 4;\n"), 0u);
  const string store =
      "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r20], 64;\n"
      "cp.async.bulk.commit_group;\n";
  const string all = "cp.async.bulk.wait_group 0;\n";
  EXPECT_EQ(waits("cp.async.bulk.wait_group 0;", store, all), 1u);
  EXPECT_EQ(waits("cp.async.bulk.wait_group 1;", store, all), 0u);
}

// Blocks on several workers, and an instruction that is executed again and again.
TEST(Counters, AddUpOverBlocksWorkersAndTurns) {
  const string text = emu_test::kernel(R"(
    .shared .align 16 .b8 tile[4096];
    mad.lo.u32 %r10, %r3, 128, tile;
    mov.u32 %r11, 0;
    TURN:
    ld.global.u32 %r12, [%rd1];
    st.shared.u32 [%r10], %r12;
    red.global.add.u32 [%rd2], %r12;
    fma.rn.bf16x2 %r13, %r12, %r12, %r12;
    add.u32 %r11, %r11, 1;
    setp.lt.u32 %p0, %r11, 3;
    @%p0 bra TURN;
    bar.sync 0;)");
  emu_test::Program program(text);
  for (const int workers : {1, 3}) {
    emu_test::Config config = emu_test::config_of(5, 32);
    config.options.workers = workers;
    std::vector<emu_test::Buffer> buffers = {emu_test::Buffer(5 * 128), emu_test::Buffer(4)};
    gg::emu::Counts counts;
    program.run(buffers, config, &counts);
    Moved got;
    for (const gg::emu::Counter& counter : gg::emu::summarise(counts)) got[counter.name] = counter.value;
    EXPECT_EQ(got["instructions_ldst"], 5 * (2 + 3 * 2));  // two parameters before
    EXPECT_EQ(got["global_load_bytes"], 5 * 3 * 128);
    EXPECT_EQ(got["global_load_sectors"], 5 * 3 * 1);
    EXPECT_EQ(got["global_atomic_bytes"], 5 * 3 * 128);
    EXPECT_EQ(got["global_atomic_sectors"], 5 * 3 * 4);
    EXPECT_EQ(got["shared_store_bytes"], 5 * 3 * 128);
    EXPECT_EQ(got["shared_wavefronts"], 5 * 3 * 32);
    EXPECT_EQ(got["shared_bank_conflicts"], 5 * 3 * 31);
    EXPECT_EQ(got["multiply_adds"], 5 * 3 * 64);
    EXPECT_EQ(got["barrier_waits"], 0u);
  }
}

// Twenty lanes live, and all of them execute.
TEST(Counters, OfAWarpThatIsNotWhole) {
  emu_test::Program program(emu_test::kernel(R"(
    .shared .align 16 .b8 tile[512];
    mad.lo.u32 %r10, %r3, 8, tile;
    ld.global.u32 %r12, [%rd2];
    fma.rn.f16x2 %r13, %r12, %r12, %r12;
    mov.b64 %rd5, {%r12, %r13};
    st.shared.u64 [%r10], %rd5;
    red.shared.add.u32 [%r10], %r12;)"));
  std::vector<emu_test::Buffer> buffers = {emu_test::Buffer(128), emu_test::Buffer(4)};
  gg::emu::Counts counts;
  program.run(buffers, emu_test::config_of(1, 20), &counts);
  Moved got;
  for (const gg::emu::Counter& counter : gg::emu::summarise(counts)) got[counter.name] = counter.value;
  EXPECT_EQ(got["global_load_bytes"], 80u);
  EXPECT_EQ(got["global_load_sectors"], 3u);
  EXPECT_EQ(got["multiply_adds"], 40u);
  EXPECT_EQ(got["shared_store_bytes"], 160u);
  EXPECT_EQ(got["shared_atomic_bytes"], 80u);
  EXPECT_EQ(got["shared_wavefronts"], 2u + 2u);  // the words of red lie 8 bytes apart, over 160
  EXPECT_EQ(got["shared_bank_conflicts"], 0u + 1u);
}

}  // namespace
