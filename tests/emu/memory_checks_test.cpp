// SPDX-License-Identifier: MIT
//
// Every instruction of the table in memory_acts.h with every check of shared memory that
// applies to it: a planted mistake, which must be reported at the right line, and its clean
// twin, which must pass.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emu/memory_acts.h"

namespace {

using namespace memory_test;
using std::string;

class MemoryChecks : public testing::Test {
 protected:
  // `kind`: of the fault at the line marked HERE, "": none. `other`: it names the line OTHER too.
  void expect(const string& kind, const Act& like, const string& body, bool other = false, bool fill = true) {
    const std::vector<std::pair<uint64_t, bool>> orders =
        kind.empty() ? std::vector<std::pair<uint64_t, bool>>{{0, false}, {1, false}}
                     : std::vector<std::pair<uint64_t, bool>>{{0, false}};
    const string ptx = kernel(like, body, fill);
    for (const auto& [seed, skew] : orders) {
      ++cases;
      const string wrong = differs(ptx, {.rank = like.rank, .seed = seed, .skew = skew}, kind, other);
      if (wrong.empty() || ++failures > kShown) continue;
      ADD_FAILURE() << what << ": " << wrong << body;
    }
  }
  void TearDown() override {
    if (failures > 0) ADD_FAILURE() << failures << " of " << cases << " cases failed";
    EXPECT_GT(cases, 20);
  }

  static constexpr int kShown = 5;
  int cases = 0, failures = 0;
  string what;
};

// The kernel that both acts can stand in.
Act both(const Act& first, const Act& second) {
  Act like = first;
  like.sm100 |= second.sm100;
  like.tensor |= second.tensor;
  like.rank = second.rank != 2 ? second.rank : first.rank;
  return like;
}
bool one_kernel(const Act& first, const Act& second) {
  return !(both(first, second).sm100 && (first.who == Who::warpgroup || second.who == Who::warpgroup)) &&
         (first.rank == 2 || second.rank == 2);
}

// The first four warps do `first`, then the others `second`. `between`: at the end of the first.
string in_turn(const string& first, const string& between, const string& meeting, const string& second) {
  return "@!%p2 bra SECOND;\n" + first + "bar.sync 1, 128;\n" + between + "bra JOIN;\nSECOND:\n" + meeting +
         second + "JOIN:\n";
}
const string kSpin = "SPIN:\nld.global.u32 %r70, [%rd0];\nsetp.eq.u32 %p10, %r70, 0;\n@%p10 bra SPIN;\n";
// The order of execution is the same, and nothing tells the second: a plain word of global memory.
string unordered(const Act& first, const string& begun_first, const Act& second, const string& all_second) {
  return in_turn(only(first.who, begun_first), "@%p0 st.global.u32 [%rd0], 1;\n", kSpin,
                 only(second.who, all_second));
}
string ordered(const Act& first, const string& begun_first, const Act& second, const string& all_second,
               const string& fences) {
  return in_turn(only(first.who, begun_first), fences + "bar.sync 2, 256;\n", "bar.sync 2, 256;\n",
                 only(second.who, all_second));
}

bool conflict(const Act& first, const Act& second) {
  return (first.writes && (second.reads || second.writes)) || (first.reads && second.writes);
}
bool reads_by_proxy(const Act& act) { return act.async && act.reads && !act.strong; }

// Against which every act is tried.
std::vector<Act> partners() {
  std::vector<Act> some;
  std::set<string> names = {
      "ld.shared.u32 %r50, [%r20];",
      "st.shared.u32 [%r20], %r40;",
      "ld.volatile.shared.u32 %r50, [%r20];",
      "st.volatile.shared.u32 [%r20], %r40;",
      "atom.shared.add.u32 %r50, [%r20], %r40;",
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r20], [%rd1], 64, [%r22];",
      "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r20], 64;"};
  for (const Act& act : all_acts()) {
    if (names.erase(act.name)) some.push_back(act);
  }
  EXPECT_TRUE(names.empty()) << *names.begin();
  return some;
}

TEST_F(MemoryChecks, Races) {
  const std::vector<Act> others = partners();
  for (const Act& act : all_acts()) {
    for (const Act& partner : others) {
      for (const bool act_is_first : {true, false}) {
        const Act &first = act_is_first ? act : partner, &second = act_is_first ? partner : act;
        if (!one_kernel(first, second)) continue;
        what = first.name + " then " + second.name;
        const bool race = conflict(first, second) && !(first.strong && second.strong);
        const string kind = !race ? "" : first.tensor ? "async-window" : "race";
        expect(kind, both(first, second),
               unordered(first, done(first, kOther) + "fence.proxy.async;\n", second, done(second, kHere)),
               race);
      }
    }
  }
}

TEST_F(MemoryChecks, NoRaceBehindABarrier) {
  const std::vector<Act> others = partners();
  for (const Act& act : all_acts()) {
    for (const Act& partner : others) {
      for (const bool act_is_first : {true, false}) {
        const Act &first = act_is_first ? act : partner, &second = act_is_first ? partner : act;
        if (!one_kernel(first, second)) continue;
        const bool no_map = second.name.rfind("tensormap", 0) == 0 && first.writes == 64;
        if (no_map) continue;  // a copy fills the place of the map with what is none
        what = first.name + " then " + second.name;
        expect("", both(first, second),
               ordered(first, done(first, kOther), second, done(second, kHere), "fence.proxy.async;\n"));
      }
    }
  }
}

TEST_F(MemoryChecks, Proxies) {
  const std::vector<Act> others = partners();
  const string enough[] = {"fence.proxy.async;\n", "fence.proxy.async.shared::cta;\n",
                           "fence.proxy.async.shared::cluster;\n"};
  const string wanting[] = {"",
                            "fence.proxy.async.global;\n",
                            "fence.acq_rel.cta;\n",
                            "membar.gl;\n",
                            "fence.proxy.alias;\n",
                            "fence.proxy.tensormap::generic.release.gpu;\n"};
  for (const Act& act : all_acts()) {
    for (const Act& partner : others) {
      const bool writes = act.writes && !act.async;
      if (!writes && !reads_by_proxy(act)) continue;
      const Act &first = writes ? act : partner, &second = writes ? partner : act;
      if (!one_kernel(first, second) || !first.writes || first.async || !reads_by_proxy(second)) continue;
      what = first.name + " then " + second.name;
      const Act like = both(first, second);
      for (const string& fence : wanting)
        expect("proxy", like, ordered(first, done(first, kOther), second, done(second, kHere), fence), true);
      expect("proxy", like,
             ordered(first, "fence.proxy.async;\n" + done(first, kOther), second, done(second, kHere), ""),
             true);
      for (const string& fence : enough)
        expect("", like, ordered(first, done(first, kOther), second, done(second, kHere), fence));
    }
  }
}

TEST_F(MemoryChecks, AsyncWindows) {
  const std::vector<Act> others = partners();
  for (const Act& act : all_acts()) {
    for (const Act& partner : others) {
      if (!act.window || !conflict(act, partner) || !one_kernel(act, partner)) continue;
      if (act.strong && partner.strong) continue;
      what = act.name + " under way, then " + partner.name;
      const Act like = both(act, partner);
      const string start = begun(act, kOther), use = done(partner, kHere);
      expect("async-window", like, ordered(act, start, partner, use, "fence.proxy.async;\n"), true);
      if (!act.weak.empty())
        expect("async-window", like, ordered(act, start + act.weak, partner, use, "fence.proxy.async;\n"),
               true);
      const string alone = begun(act, kOther) + (act.who == Who::lane ? "" : "bar.warp.sync -1;\n");
      // The same thread; the partner's mbarrier is another one.
      const string mine = alone + "add.u32 %r22, %r22, 16;\n" + use;
      const string body =
          act.who == Who::lane ? mine : alone + only(Who::lane, "add.u32 %r22, %r22, 16;\n" + use);
      expect("async-window", like, "@!%p2 bra END;\n" + only(act.who, body) + "END:\n", true);
    }
  }
}

// Two of them read the same bytes, and the wait is for the first.
TEST_F(MemoryChecks, OneOfTwoIsStillReading) {
  const Act store = partners()[1];
  for (const Act& act : all_acts()) {
    // By then the second has read too.
    const bool to_the_end = act.weak == "cp.async.bulk.wait_group 1;\n";
    if (!act.reads || act.weak.empty() || to_the_end) continue;
    what = act.name;
    const string two = begun(act, "") + begun(act, kOther);
    const string use = done(store, kHere);
    expect("async-window", act, ordered(act, two + act.weak, store, use, ""), true);
    expect("", act, ordered(act, two + act.wait, store, use, ""));
  }
}

// cp.async writes when its thread waits: a barrier before that tells of nothing.
TEST_F(MemoryChecks, CopiesThatAreWaitedForBehindTheBarrier) {
  for (const Act& act : all_acts()) {
    if (!act.lands_by_wait || act.weak.empty()) continue;
    for (const Act& partner : partners()) {
      what = act.name + " then " + partner.name;
      const string early =
          in_turn(only(act.who, begun(act, kOther)) + "bar.sync 2, 256;\n" + only(act.who, act.wait),
                  "@%p0 st.global.u32 [%rd0], 1;\n", "bar.sync 2, 256;\n" + kSpin,
                  only(Who::lane, done(partner, kHere)));
      expect("race", both(act, partner), early, true);
    }
  }
}

TEST_F(MemoryChecks, UninitialisedBytes) {
  for (const Act& act : all_acts()) {
    if (!act.reads) continue;
    what = act.name;
    const string body = "@!%p2 bra END;\n" + only(act.who, done(act, kHere)) + "END:\n";
    expect("uninit-shared", act, body, false, false);
    expect("", act, body);
  }
}

string moved(const string& by) {
  return "add.u32 %r20, %r20, " + by + ";\nadd.u32 %r23, %r23, " + by + ";\nadd.u64 %rd20, %rd20, " + by +
         ";\nadd.u64 %rd23, %rd23, " + by + ";\n";
}

TEST_F(MemoryChecks, Places) {
  for (const Act& act : all_acts()) {
    what = act.name;
    const string use = "@!%p2 bra END;\n" + only(act.who, done(act, kHere)) + "END:\n";
    expect("bounds", act, moved("0x30000") + use);
    const bool by_descriptor = act.who == Who::warpgroup || act.tensor;
    if (act.alignment > 1 && !by_descriptor)
      expect("alignment", act, moved(std::to_string(act.alignment / 2)) + use);
    expect("mbarrier", act, moved("16384") + use);
    expect("", act, moved("1024") + use);
  }
}

TEST_F(MemoryChecks, TheBlockEnds) {
  for (const Act& act : all_acts()) {
    if (!act.window || act.lands_by_wait || act.who == Who::warpgroup || act.tensor) continue;
    what = act.name;
    expect("exit", act, "@!%p2 bra END;\n" + only(act.who, begun(act, kHere)) + "END:\n");
  }
}

// Lane 0 arrives for its warp, whose lanes have not met.
TEST_F(MemoryChecks, LanesThatHaveNotMet) {
  for (const Act& act : generic_acts()) {
    if (act.name.find("tcgen05") != string::npos || act.name.find("tensormap") != string::npos) continue;
    what = act.name;
    // Bytes of another lane than the first: its rows have 16 bytes, its runs of wmma 8 at most.
    const int place = act.name.rfind("wmma", 0) == 0 ? 12 : act.who == Who::warp ? 16 : 0;
    for (const bool met : {false, true}) {
      const string body =
          "@!%p2 bra SECOND;\n@!%p1 bra JOIN;\n" + marked(act, kOther) + (met ? "bar.warp.sync -1;\n" : "") +
          "@%p0 mbarrier.arrive.shared::cta.b64 _, [bars+24];\nbra JOIN;\nSECOND:\nmov.u32 %r22, bars;\n"
          "add.u32 %r22, %r22, 24;\n" +
          wait_at_mbarrier() +
          only(Who::lane, "st.shared.u32 [%r20+" + std::to_string(place) + "], 99;" + kHere + "\n") +
          "JOIN:\n";
      expect(met ? "" : "race", act, body, !met);
    }
  }
}

}  // namespace
