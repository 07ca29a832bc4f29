// SPDX-License-Identifier: MIT
//
// The table's instructions in global and local memory, and in the shared memory of another block of
// the cluster: every check that applies there, with a planted mistake and its clean twin.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emu/memory_acts.h"

namespace {

using namespace memory_test;
using std::string;

string replaced(string text, const string& from, const string& to) {
  for (size_t at = text.find(from); at != string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}
bool begins(const string& text, const std::vector<string>& starts) {
  return std::any_of(starts.begin(), starts.end(), [&](const string& s) { return text.rfind(s, 0) == 0; });
}

class MemorySpaces : public testing::Test {
 protected:
  void expect(const string& kind, const Act& like, const string& body, Conditions conditions = {},
              bool other = false) {
    conditions.rank = like.rank;
    const string ptx = kernel(like, body);
    for (int seed = 0; seed < (kind.empty() ? 3 : 1); ++seed) {
      ++cases;
      conditions.seed = uint64_t(seed);
      conditions.skew = seed == 2;
      const string wrong = differs(ptx, conditions, kind, other);
      if (wrong.empty() || ++failures > kShown) continue;
      ADD_FAILURE() << like.name << ": " << wrong << body;
    }
  }
  // Nothing is planted in too few instructions, should a filter here drop them by mistake.
  void expect_cases(int least) {
    if (failures > 0) ADD_FAILURE() << failures << " of " << cases << " cases failed";
    EXPECT_GE(cases, least);
  }

  static constexpr int kShown = 5;
  int cases = 0, failures = 0;
};

// ---- global memory ----

// Instructions with a global address, which is in %rd24: loads, stores and atomics with .global and
// with a generic address, and what copies from or to global memory.
std::vector<Act> global_acts() {
  std::vector<Act> all;
  for (Act act : generic_acts()) {
    if (!begins(act.name, {"ld", "st", "atom", "red"}) || begins(act.name, {"ldmatrix", "stmatrix"}))
      continue;
    if (act.instruction.find(".shared::") != string::npos) continue;
    act.instruction = replaced(act.instruction, ".shared", ".global");
    act.instruction = replaced(replaced(act.instruction, "[%r20]", "[%rd24]"), "[%rd20]", "[%rd24]");
    act.name = act.instruction;
    all.push_back(act);
  }
  Act uniform;
  uniform.name = uniform.instruction = "ldu.global.u32 %r50, [%rd24];";
  uniform.alignment = uniform.reads = 4;
  all.push_back(uniform);
  for (Act act : async_acts()) {
    const string before = act.instruction;
    act.instruction = replaced(replaced(act.instruction, "[%rd1]", "[%rd24]"), "[%rd3]", "[%rd24]");
    if (act.instruction != before) all.push_back(act);
  }
  return all;
}
bool copies_nothing(const Act& act) { return act.name.find(", 0;") != string::npos; }
bool may_copy_nothing(const Act& act) {
  return copies_nothing(act) || act.name.find(", %p3;") != string::npos;
}

string at_global(const string& address, const Act& act, const char* mark = kHere) {
  return "add.u64 %rd24, " + address + ";\n@!%p2 bra END;\n" + only(act.who, done(act, mark)) + "END:\n";
}

TEST_F(MemorySpaces, GlobalAddresses) {
  for (const Act& act : global_acts()) {
    expect("", act, at_global("%rd1, 256", act));
    if (may_copy_nothing(act)) continue;
    expect("bounds", act, at_global("%rd1, 16384", act));
    expect("bounds", act, at_global("%rd1, -1024", act));
    expect("bounds", act, "mov.b64 %rd25, 0;\n" + at_global("%rd25, 0", act));
    if (act.alignment > 1)
      expect("alignment", act, at_global("%rd1, " + std::to_string(act.alignment / 2), act));
  }
  expect_cases(1000);
}

TEST_F(MemorySpaces, GlobalMemoryThatWasFreed) {
  std::vector<Act> all = global_acts();
  for (const Act& act : async_acts()) {
    if (act.instruction.find("[%rd2, {") != string::npos) all.push_back(act);  // by the tensor map
  }
  for (const Act& act : all) {
    if (!may_copy_nothing(act)) expect("use-after-free", act, at_global("%rd1, 256", act), {.freed = true});
    expect("", act, at_global("%rd1, 256", act));
  }
  expect_cases(600);
}

// An instruction that reads global memory, and one that only writes there, from `in` on.
bool reads_global(const Act& act) {
  if (begins(act.name, {"ld", "atom", "red", "cp.reduce"})) return true;
  return begins(act.name, {"cp.async"}) && act.name.find("bulk_group") == string::npos;
}
// So many bytes of it.
int global_bytes(const Act& act) {
  if (act.name.find(", 8, 4;") != string::npos) return 4;              // cp.async, the rest is 0
  if (act.name.find("cp_mask") != string::npos) return act.reads - 8;  // the low 8 of each 16
  return std::max(act.reads, act.writes);
}
string byte_of_in(const char* instruction, int at, const char* mark = "") {
  const bool loads = instruction[0] == 'l';
  return string("@%p3 ") + instruction + (loads ? " %h7, [%rd1+" : " [%rd1+") + std::to_string(at) +
         (loads ? "];" : "], %h7;") + mark + "\n";
}
string written(int bytes) {
  string text = "mov.u16 %h7, 0;\n";
  for (int i = 0; i < bytes; ++i) text += byte_of_in("st.global.u8", i);
  return text + "bar.sync 0;\n";
}

TEST_F(MemorySpaces, GlobalBytesThatNobodyWrote) {
  const Conditions unwritten = {.unwritten = true};
  std::vector<Act> all = global_acts();
  for (const Act& act : async_acts()) {
    if (act.instruction.find("[%rd2, {") != string::npos) all.push_back(act);  // by the tensor map
  }
  for (Act act : all) {
    if (begins(act.name, {"tensormap"})) continue;  // writes a map, and elsewhere
    if (act.name.find("bulk_group") != string::npos) act.wait = "cp.async.bulk.wait_group 0;\n";
    const int last = global_bytes(act) - 1;
    const string use = at_global("%rd1, 0", act);
    if (may_copy_nothing(act)) {
      expect("", act, use, unwritten);
    } else if (reads_global(act)) {
      expect("uninit-global", act, use, unwritten);
      expect("uninit-global", act, written(last) + use, unwritten);
      expect("", act, written(last + 1) + use, unwritten);
    } else {
      const string write = at_global("%rd1, 0", act, "");
      expect("", act, write + byte_of_in("ld.global.u8", last, kHere), unwritten);
      expect("uninit-global", act, write + byte_of_in("ld.global.u8", last + 1, kHere), unwritten);
    }
  }
  expect_cases(500);
}

// ---- local memory ----

TEST_F(MemorySpaces, LocalAddresses) {
  for (Act act : generic_acts()) {
    if (!begins(act.name, {"ld.shared.", "st.shared.", "ld.weak.shared.", "st.weak.shared.", "ld.u32 ",
                           "st.u32 ", "ld.v4.u32 ", "st.v4.u32 "}))
      continue;
    const bool generic = act.instruction.find(".shared") == string::npos;
    act.instruction = replaced(act.instruction, ".shared", ".local");
    act.instruction = replaced(replaced(act.instruction, "[%r20]", "[%rd24]"), "[%rd20]", "[%rd24]");
    act.name = act.instruction;
    const auto at = [&](const string& offset) {
      return "{\n.local .align 16 .b8 mine[64];\nmov.u64 %rd24, mine;\n" +
             string(generic ? "cvta.local.u64 %rd24, %rd24;\n" : "") +
             "st.local.v4.u32 [mine], {%r10, %r10, %r10, %r10};\nadd.u64 %rd24, %rd24, " + offset + ";\n" +
             done(act, kHere) + "}\n";
    };
    expect("", act, at("0"));
    expect("bounds", act, at("65536"));
    if (act.alignment > 1) expect("alignment", act, at(std::to_string(act.alignment / 2)));
  }
  expect_cases(100);
}

// ---- shared memory of another block ----

// Instructions that take an address of any block of the cluster.
std::vector<Act> peer_acts() {
  std::vector<Act> all;
  for (const Act& act : generic_acts()) {
    if (!begins(act.name, {"ld", "st", "atom", "red"}) || begins(act.name, {"ldmatrix", "stmatrix"}))
      continue;
    const bool generic = act.name.find(".shared") == string::npos;
    if (generic || act.name.find(".shared::cluster") != string::npos) all.push_back(act);
  }
  return all;
}
std::vector<Act> peer_async_acts() {
  std::vector<Act> all;
  for (const Act& act : async_acts()) {
    if (begins(act.name, {"st.async", "red.async"}) ||
        (act.name.find(".shared::cluster.shared::cta") != string::npos &&
         act.name.find("[%r20], [%r21]") != string::npos))
      all.push_back(act);
  }
  return all;
}

// Both blocks have filled their tiles. Block 1 means block 0's with %r20 and %rd20, and its
// mbarrier with %r22, and stores other values: equal ones do not race.
string two_blocks(const string& block0, const string& block1) {
  return "mov.u32 %r22, bars;\nmov.u32 %r7, %cluster_ctarank;\nsetp.eq.u32 %p6, %r7, "
         "0;\nbarrier.cluster.arrive;\n"
         "barrier.cluster.wait;\n@!%p6 bra BLOCK1;\n" +
         block0 +
         "bra JOIN;\nBLOCK1:\nmapa.shared::cluster.u32 %r20, %r20, 0;\nmapa.shared::cluster.u32 %r22, %r22, "
         "0;\n"
         "mapa.u64 %rd20, %rd20, 0;\nnot.b32 %r40, %r40;\nnot.b16 %h0, %h0;\nnot.b64 %rd40, %rd40;\n"
         "not.b64 %rd41, %rd41;\n" +
         block1 + "JOIN:\n";
}
const string kMeet = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
const string kTell = "@%p3 st.global.u32 [%rd0], 1;\n";
string hear() { return "SPIN:\nld.global.u32 %r70, [%rd0];\nsetp.eq.u32 %p10, %r70, 0;\n@%p10 bra SPIN;\n"; }
string by_first_thread(const Act& act, const char* mark, const string& name) {
  return "@!%p3 bra " + name + ";\n" + done(act, mark) + name + ":\n";
}

std::vector<Act> own_acts() {
  std::vector<Act> some;
  for (const Act& act : generic_acts()) {
    if (begins(act.name, {"ld.shared.u32 ", "st.shared.u32 ", "ld.volatile.shared.u32 ",
                          "atom.shared.add.u32 ", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 "}))
      some.push_back(act);
  }
  EXPECT_EQ(some.size(), 5u);
  return some;
}
string by_first_warp_of(const Act& act, const char* mark, const string& name) {
  if (act.who == Who::lane) return by_first_thread(act, mark, name);
  return "@!%p5 bra " + name + ";\n" + done(act, mark) + name + ":\n";
}

TEST_F(MemorySpaces, RacesWithAnotherBlock) {
  const Conditions two = {.blocks = 2};
  for (const Act& peer : peer_acts()) {
    for (const Act& own : own_acts()) {
      const bool conflict = peer.writes || own.writes;
      const string kind = conflict && !(peer.strong && own.strong) ? "race" : "";
      Act like = peer;
      like.name += " and " + own.name;
      const string own_first = by_first_warp_of(own, kOther, "OWN"),
                   own_second = by_first_warp_of(own, kHere, "OWN");
      const string peer_first = by_first_thread(peer, kOther, "PEER"),
                   peer_second = by_first_thread(peer, kHere, "PEER");
      expect(kind, like, two_blocks(own_first + kTell + kMeet, hear() + peer_second + kMeet), two,
             !kind.empty());
      expect(kind, like, two_blocks(hear() + own_second + kMeet, peer_first + kTell + kMeet), two,
             !kind.empty());
      expect("", like, two_blocks(own_first + kMeet + kMeet, kMeet + peer_second + kMeet), two);
      expect("", like, two_blocks(kMeet + own_second + kMeet, peer_first + kMeet + kMeet), two);
    }
  }
  expect_cases(500);
}

TEST_F(MemorySpaces, CopiesToAnotherBlock) {
  const Conditions two = {.blocks = 2};
  for (const Act& act : peer_async_acts()) {
    Act expectation, send = act;
    expectation.instruction = act.before;
    send.before = send.wait = "";
    for (const Act& own : own_acts()) {
      if (own.strong && act.strong) continue;
      Act like = act;
      like.name += " and " + own.name;
      const string expected = by_first_thread(expectation, "", "EXPECT");
      const string sent = kMeet + by_first_thread(send, kOther, "SEND") + kMeet + kMeet;
      const string use = by_first_warp_of(own, kHere, "OWN");
      expect("async-window", like,
             two_blocks(expected + kMeet + kMeet + use + wait_at_mbarrier() + kMeet, sent), two, true);
      expect("", like, two_blocks(expected + kMeet + wait_at_mbarrier() + use + kMeet + kMeet, sent), two);
    }
  }
  expect_cases(100);
}

TEST_F(MemorySpaces, PlacesOfAnotherBlock) {
  const Conditions two = {.blocks = 2};
  for (const Act& act : peer_acts()) {
    const auto at = [&](const string& offset) {
      return two_blocks(kMeet, "add.u32 %r20, %r20, " + offset + ";\nadd.u64 %rd20, %rd20, " + offset +
                                   ";\n" + by_first_thread(act, kHere, "PEER") + kMeet);
    };
    expect("bounds", act, at("0x30000"), two);
    if (act.alignment > 1) expect("alignment", act, at(std::to_string(act.alignment / 2)), two);
    expect("mbarrier", act, at("16384"), two);
    expect("", act, at("1024"), two);
  }
  expect_cases(60);
}

// Block 0 has left when block 1 comes, which first counts to 20,000.
TEST_F(MemorySpaces, ABlockThatHasEnded) {
  const Conditions two = {.blocks = 2};
  const string later =
      "mov.u32 %r70, 0;\nLATER:\nadd.u32 %r70, %r70, 1;\nsetp.lt.u32 %p10, %r70, 20000;\n@%p10 bra LATER;\n";
  std::vector<Act> all = peer_acts();
  for (Act act : peer_async_acts()) {
    act.before = act.wait = "";
    all.push_back(act);
  }
  for (const Act& act : all) {
    const string use = "@!%p3 bra PEER;\n" + later + done(act, kHere) + "PEER:\n";
    expect("use-after-free", act, two_blocks("", use), two);
    if (!act.async) expect("", act, two_blocks(kMeet, use + kMeet), two);
  }
  expect_cases(60);
}

}  // namespace
