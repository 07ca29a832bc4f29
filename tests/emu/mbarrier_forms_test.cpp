// SPDX-License-Identifier: MIT
//
// Every instruction that names an mbarrier, with every check of mbarriers that applies to it: a
// planted mistake, which must be reported at the right line, and its clean twin.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emu/memory_acts.h"

namespace {

using namespace memory_test;
using std::string;

// One instruction. Its mbarrier's address is %r24, or %rd24 as a generic one.
struct Form {
  string text;
  string before;  // at the same mbarrier: the token that it wants
  string after;   // until the phase is over, where a copy would outlive the kernel
  Who who = Who::lane;
  bool initialises = false, ends = false;  // init, inval
  bool sm100 = false;
  bool async = false;  // it completes the phase of an mbarrier for one arrival
};

const string kCompleted =
    "COMPLETED:\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [%r24], 0;\n@!%p8 bra COMPLETED;\n";
string address(const string& space) { return space.empty() ? "[%rd24]" : "[%r24]"; }

void add(std::vector<Form>& all, const string& head, const string& space, const string& operands) {
  Form form;
  const size_t at = operands.find("A");
  form.text = "mbarrier." + head + space + ".b64 " + operands.substr(0, at) + address(space) +
              operands.substr(at + 1) + ";";
  all.push_back(form);
}

std::vector<Form> mbarrier_forms() {
  std::vector<Form> all;
  for (const string space : {".shared", ".shared::cta", ""}) {
    add(all, "init", space, "A, 8");
    all.back().initialises = true;
    add(all, "inval", space, "A");
    all.back().ends = true;
    for (const string drop : {"arrive", "arrive_drop"}) {
      for (const string order :
           {"", ".release.cta", ".release.cluster", ".relaxed.cta", ".relaxed.cluster"}) {
        add(all, drop + order, space, "%rd50, A");
        add(all, drop + order, space, "_, A, 2");
        add(all, drop + ".expect_tx" + order, space, "%rd50, A, 0");
      }
      add(all, drop + ".noComplete", space, "%rd50, A, 1");
    }
    for (const string wait : {"test_wait", "try_wait"}) {
      for (const string order :
           {"", ".acquire.cta", ".acquire.cluster", ".relaxed.cta", ".relaxed.cluster"}) {
        add(all, wait + order, space, "%p8, A, %rd51");
        all.back().before = "mbarrier.arrive.shared::cta.b64 %rd51, [%r24];\n";
        add(all, wait + ".parity" + order, space, "%p8, A, 1");
        if (wait == "try_wait") add(all, wait + ".parity" + order, space, "%p8, A, 1, %r40");
      }
    }
    for (const string noinc : {"", ".noinc"}) {
      add(all, "arrive" + noinc, space, "A");
      all.back().text = "cp.async." + all.back().text;
    }
  }
  for (const string space : {".shared::cta", ".shared::cluster"}) {
    add(all, "expect_tx.relaxed.cta", space, "A, 0");
    add(all, "complete_tx.relaxed.cluster", space, "A, 0");
  }
  for (const string drop : {"arrive", "arrive_drop"}) {
    add(all, drop + ".release.cluster", ".shared::cluster", "_, A");
    add(all, drop + ".expect_tx.relaxed.cluster", ".shared::cluster", "_, A, 0");
  }
  for (const string pair : {"", ".shared::cluster"}) {
    Form form;
    form.text = "tcgen05.commit.cta_group::1.mbarrier::arrive::one" + pair + ".b64 " + address(pair) + ";";
    form.sm100 = form.async = true;
    form.after = kCompleted;
    all.push_back(form);
  }
  return all;
}

// Copies and stores that count their bytes at an mbarrier.
std::vector<Form> counting_forms() {
  std::vector<Form> all;
  for (const Act& act : async_acts()) {
    const auto use = [&](string text) {
      for (const string from : {"[%r22]", "[%rd22]"}) {
        const size_t at = text.find(from);
        if (at != string::npos) text.replace(at, from.size(), from == "[%r22]" ? "[%r24]" : "[%rd24]");
      }
      return text;
    };
    Form form;
    form.text = use(act.instruction);
    if (form.text == act.instruction || act.rank != 2) continue;
    const size_t expectation = act.before.find("mbarrier.arrive.expect_tx");
    form.before = use(act.before.substr(expectation));
    form.after = kCompleted;
    form.sm100 = act.sm100;
    form.async = true;
    all.push_back(form);
  }
  return all;
}
std::vector<Form> all_forms() {
  std::vector<Form> all = mbarrier_forms();
  for (const Form& form : counting_forms()) all.push_back(form);
  return all;
}

string at(const string& variable, int byte) {
  return "mov.u32 %r24, " + variable + ";\nadd.u32 %r24, %r24, " + std::to_string(byte) +
         ";\ncvt.u64.u32 %rd24, %r24;\ncvta.shared.u64 %rd24, %rd24;\nmov.b64 %rd51, 0;\n";
}
// bars+64 is nobody's until the test initialises it.
string at_bar(int byte = 64) { return at("bars", byte); }
string init(const Form& form) {
  return string("mbarrier.init.shared::cta.b64 [%r24], ") + (form.async ? "1" : "8") + ";\n";
}
const string kInval = "mbarrier.inval.shared::cta.b64 [%r24];\n";
string here(const Form& form) { return form.text + kHere + "\n"; }
string used(const Form& form) { return form.before + here(form) + form.after; }
string by_one(const string& body) { return "@!%p3 bra DONE;\n" + body + "DONE:\n"; }

class MbarrierForms : public testing::Test {
 protected:
  void expect(const string& kind, const Form& form, const string& body, const string& says = "") {
    Act like;
    like.sm100 = form.sm100;
    const string ptx = kernel(like, body);
    ++cases;
    string wrong = differs(ptx, {}, kind);
    if (wrong.empty() && !says.empty() && run(ptx, {}).report.find(says) == string::npos)
      wrong = "does not say: " + says + "\n" + run(ptx, {}).report;
    if (wrong.empty() || ++failures > 5) return;
    ADD_FAILURE() << form.text << ": " << wrong << body;
  }
  void TearDown() override {
    if (failures > 0) ADD_FAILURE() << failures << " of " << cases << " cases failed";
    EXPECT_GT(cases, 100);
  }
  int cases = 0, failures = 0;
};

TEST_F(MbarrierForms, UsedAsItShouldBe) {
  for (const Form& form : all_forms())
    expect("", form, at_bar() + by_one((form.initialises ? "" : init(form)) + used(form)));
}

// The code that comes before the instruction would be the fault itself, and is left out.
TEST_F(MbarrierForms, NotInitialised) {
  for (const Form& form : all_forms()) {
    if (form.initialises) continue;
    expect("mbarrier-state", form, at_bar() + by_one(here(form)), "is not initialised");
    expect("mbarrier-state", form, at("tile", 0) + by_one(here(form)), "is not initialised");
    expect("mbarrier-state", form, at_bar() + by_one(init(form) + kInval + here(form)), "was invalidated");
    expect("", form, at_bar() + by_one(init(form) + kInval + init(form) + used(form)));
  }
}

TEST_F(MbarrierForms, InitialisedTwice) {
  for (const Form& form : all_forms()) {
    if (!form.initialises) continue;
    for (const Form& other : all_forms()) {
      if (other.initialises || other.ends) continue;
      Form both = form;
      both.sm100 = other.sm100;
      const string use = init(other) + other.before + other.text + "\n" + other.after;
      expect("mbarrier", both, at_bar() + by_one(use + here(form)), "a second time");
    }
    expect("", form, at_bar() + by_one(init(form) + kInval + here(form)));
  }
}

TEST_F(MbarrierForms, Places) {
  for (const Form& form : all_forms()) {
    expect("alignment", form, at_bar(4) + by_one(here(form)));
    expect("bounds", form, at_bar(0x30000) + by_one(here(form)));
  }
}

// Another warp has initialised it, and no barrier stands between.
TEST_F(MbarrierForms, InitialisedByAnotherWarp) {
  const string hear = "SPIN:\nld.global.u32 %r70, [%rd0];\nsetp.eq.u32 %p10, %r70, 0;\n@%p10 bra SPIN;\n";
  for (const Form& form : all_forms()) {
    if (form.initialises) continue;
    const auto body = [&](const string& tell, const string& wait) {
      return at_bar() + "@!%p2 bra SECOND;\n@!%p3 bra FIRST;\n" + init(form) + "FIRST:\n" + tell +
             "bra JOIN;\nSECOND:\n" + wait + "@!%p0 bra JOIN;\n" + used(form) + "JOIN:\n";
    };
    if (form.before.empty()) expect("race", form, body("@%p3 st.global.u32 [%rd0], 1;\n", hear));
    expect("", form, body("bar.sync 1, 256;\n", "bar.sync 1, 256;\n"));
  }
}

}  // namespace
