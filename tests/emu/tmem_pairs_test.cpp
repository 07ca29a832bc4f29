// SPDX-License-Identifier: MIT
//
// Every instruction that reads or writes tensor memory, before and after every other, with every
// check of their order: a planted mistake, which must be reported at the second one's line, and
// its clean twin.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emu/tmem_kernel.h"

namespace {

using namespace tmem_test;
using std::string;

// Instructions that tell that it is over: wait::ld, wait::st, tcgen05.commit.
enum class Waits { load, store, commit };

struct Access {
  string text;  // touches lanes 0 to 3 of column %r6, and more
  bool reads = false, writes = false;
  Waits waits = Waits::commit;
};

// Each warp has a destination of its own at %r80, in columns 64 to 95.
std::vector<Access> accesses() {
  std::vector<Access> all;
  const struct {
    const char* shape;
    int registers;
  } kShapes[] = {{"32x32b.x1", 1},  {"32x32b.x8", 8},           {"16x64b.x1", 1}, {"16x128b.x1", 2},
                 {"16x256b.x1", 4}, {"32x32b.x2.pack::16b", 2}, {"16x64b.x2", 2}, {"16x256b.x2", 8}};
  for (const auto& form : kShapes) {
    const string shape = form.shape;
    all.push_back({"tcgen05.ld.sync.aligned." + shape + ".b32 " + registers(form.registers) + ", [%r6];",
                   true, false, Waits::load});
    const size_t packed = shape.find(".pack");
    const string stored = packed == string::npos ? shape : shape.substr(0, packed) + ".unpack::16b";
    all.push_back(
        {"tcgen05.st.sync.aligned." + stored + ".b32 [%r6], " + registers(form.registers, 200) + ";", false,
         true, Waits::store});
  }
  all.push_back({"tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r100}, [%r6], 2;", true, false, Waits::load});
  all.push_back({"tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r6], 2, {%r200};", false, true, Waits::store});
  for (const string shape : {"128x256b", "128x128b", "4x256b", "64x128b.warpx2::02_13",
                             "64x128b.warpx2::01_23", "32x128b.warpx4", "128x256b.b8x16.b4x16_p64"})
    all.push_back({"tcgen05.cp.cta_group::1." + shape + " [%r6], %rd8;", false, true});
  all.push_back({"tcgen05.shift.cta_group::1.down [%r6];", true, true});
  const string mma = "tcgen05.mma.cta_group::1.kind::";
  for (const string kind : {"f16 ", "tf32 ", "f8f6f4 "}) {
    const string idesc = kind == "f16 " ? "0x08040490" : kind == "tf32 " ? "0x08040910" : "0x08040010";
    all.push_back({mma + kind + "[%r6], %rd8, %rd8, " + idesc + ", %p7;", false, true});
    all.push_back({mma + kind + "[%r6], %rd8, %rd8, " + idesc + ", %p0;", true, true});
    all.push_back({mma + kind + "[%r80], [%r6], %rd8, " + idesc + ", %p7;", true, false});
  }
  for (const string place : {"[%r6], [%r81]", "[%r81], [%r6]"})
    all.push_back(
        {mma + "mxf8f6f4.block_scale [%r80], %rd8, %rd8, 0x08840000, " + place + ", %p7;", true, false});
  return all;
}
bool by_tensor_core(const Access& a) { return a.waits == Waits::commit; }

// 128 columns of 7, and so is shared memory: scales must be the same in every quarter of the lanes.
string begin(bool filled) {
  string text = alloc(128) + init(0, 1) + init(1, 1);
  for (int i = 0; i < 32; ++i) text += "mov.u32 %r" + number(200 + i) + ", 0x07070707;\n";
  text += "mad.lo.u32 %r94, %r0, 16, %r2;\n";
  for (int i = 0; i < 8; ++i)
    text += "st.shared.v4.u32 [%r94+" + number(4096 * i) + "], " + registers(4, 200) + ";\n";
  text +=
      "fence.proxy.async.shared::cta;\nshl.b32 %r90, %r5, 21;\nand.b32 %r90, %r90, 0x600000;\nadd.u32 %r90, "
      "%r90, %r6;\n";
  for (int column = 0; filled && column < 128; column += 32)
    text += "setp.lt.u32 %p9, %r5, 4;\n@%p9 tcgen05.st.sync.aligned.32x32b.x32.b32 [%r90], " +
            registers(32, 200) + ";\nadd.u32 %r90, %r90, 32;\n";
  return text + kWaitStore + kSync +
         "setp.ne.u32 %p7, %r0, %r0;\nsetp.eq.u32 %p0, %r0, %r0;\nadd.u32 %r80, %r6, 64;\n"
         "add.u32 %r81, %r6, 32;\n" +
         make_descriptor(descriptor(1024, 128));
}

struct Parts {  // of one side
  string begun, waited;
};
Parts parts(const Access& a, int bar, const string& mark) {
  const string line = a.text + mark + "\n";
  if (a.waits == Waits::load) return {line, kWaitLoad};
  if (a.waits == Waits::store) return {line, kWaitStore};
  const string skip = "ISSUED" + number(bar);
  return {"setp.ne.u32 %p6, %r4, 0;\n@%p6 bra " + skip + ";\n" + line + commit(bar, "") + skip +
              ":\nbar.warp.sync -1;\n",
          wait(bar)};
}

// Warp 0 does the first access, warp 4 the second: both reach lanes 0 to 31.
string pair(const string& first, const string& tell, const string& hear, const string& second) {
  return begin(true) +
         "setp.eq.u32 %p4, %r5, 0;\nsetp.eq.u32 %p5, %r5, 4;\n@%p5 bra SECOND;\n@!%p4 bra JOIN;\n" + first +
         tell + "bra JOIN;\nSECOND:\nadd.u32 %r80, %r80, 16;\n" + hear + second + "JOIN:\n" + dealloc(128);
}
const string kTell = "setp.eq.u32 %p6, %r4, 0;\n@%p6 st.global.u32 [%rd0], 1;\n", kMeet = "bar.sync 1, 64;\n";
string hear() { return "SPIN:\nld.global.u32 %r70, [%rd0];\nsetp.ne.u32 %p6, %r70, 1;\n@%p6 bra SPIN;\n"; }

class TmemPairs : public testing::Test {
 protected:
  void expect(const string& kind, const string& what, const string& body) {
    const string ptx = kernel(body);
    for (const Order& order : kind.empty() ? kOrders : std::vector<Order>{{0, false}}) {
      ++cases;
      string found, report;
      try {
        run(ptx, config_of(1, 256), order, 1024);
      } catch (const Fault& fault) {
        found = fault_name(fault.kind);
        report = fault.what();
      }
      const size_t here = ptx.find("// HERE");
      const long line =
          here == string::npos ? 0 : 1 + std::count(ptx.begin(), ptx.begin() + long(here), '\n');
      if (found == kind && (kind.empty() || report.find("PTX line " + number(line) + ":") != string::npos))
        continue;
      if (++failures > 4) continue;
      ADD_FAILURE() << what << ": expected '" << kind << "' at line " << line << ", found '" << found << "'\n"
                    << report;
    }
  }
  void TearDown() override {
    if (failures > 0) ADD_FAILURE() << failures << " of " << cases << " cases failed";
    EXPECT_GT(cases, 30);
  }
  int cases = 0, failures = 0;
};

// Against which every access is tried, before and after it.
std::vector<Access> partners() {
  std::vector<Access> some;
  for (const Access& a : accesses()) {
    for (const string name : {"tcgen05.ld.sync.aligned.32x32b.x8", "tcgen05.st.sync.aligned.32x32b.x8",
                              "tcgen05.cp.cta_group::1.128x256b [", "tcgen05.shift",
                              "tcgen05.mma.cta_group::1.kind::f16 [%r6], %rd8, %rd8, 0x08040490, %p7",
                              "tcgen05.mma.cta_group::1.kind::f16 [%r80], [%r6]"}) {
      if (a.text.rfind(name, 0) == 0) some.push_back(a);
    }
  }
  EXPECT_EQ(some.size(), 6u);
  return some;
}

TEST_F(TmemPairs, TwoWarps) {
  for (const Access& access : accesses()) {
    for (const Access& partner : partners()) {
      for (const bool is_first : {true, false}) {
        const Access &a = is_first ? access : partner, &b = is_first ? partner : access;
        const string what = a.text + " then " + b.text;
        const bool conflict = (a.writes && (b.reads || b.writes)) || (a.reads && b.writes);
        const auto kind = [&](const char* fault) { return conflict ? fault : ""; };
        const Parts first = parts(a, 0, ""), second = parts(b, 1, "  // HERE");
        const string whole = first.begun + first.waited, next = second.begun + second.waited;
        expect("", what, pair(whole + kBefore, kMeet, kMeet, kAfter + next));
        expect(kind(by_tensor_core(a) ? "async-window" : "race"), what,
               pair(whole + kBefore, kTell, hear(), kAfter + next));
        expect(kind("tcgen05-fence"), what, pair(whole + kBefore, kMeet, kMeet, next));
        // tcgen05.commit is the first of the two fences.
        expect(by_tensor_core(a) ? "" : kind("tcgen05-fence"), what,
               pair(whole, kMeet, kMeet, kAfter + next));
        if (conflict)
          expect("async-window", what,
                 pair(first.begun + kBefore, kMeet, kMeet, kAfter + next + first.waited));
      }
    }
  }
}

TEST_F(TmemPairs, Places) {
  for (const Access& a : accesses()) {
    const Parts part = parts(a, 0, "  // HERE");
    const auto by_warp_0 = [&](bool filled, const string& before) {
      return begin(filled) + before + "setp.eq.u32 %p4, %r5, 0;\n@!%p4 bra JOIN;\n" + part.begun +
             part.waited + "JOIN:\nsub.u32 %r6, %r81, 32;\n" + dealloc(128);
    };
    if (a.reads) expect("uninit-tmem", a.text, by_warp_0(false, ""));
    expect("bounds", a.text, by_warp_0(true, "add.u32 %r6, %r6, 128;\n"));
    expect("bounds", a.text, by_warp_0(true, "mov.u32 %r6, 512;\n"));
    expect("", a.text, by_warp_0(true, ""));
  }
}

}  // namespace
