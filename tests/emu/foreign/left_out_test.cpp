// SPDX-License-Identifier: MIT
//
// A build without common/emu/foreign lists the forms that are there and refuses each in a sentence.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/module.h"
#include "tests/emu/run_ptx.h"

namespace {

using gg::emu::Form;

std::set<std::string> opcodes(const std::vector<Form>& forms) {
  std::set<std::string> all;
  for (const Form& form : forms) all.insert(form.opcode);
  return all;
}

// Why such a build refuses a statement; "" if it takes it.
std::string refusal(const std::string& statement) {
  const auto module = gg::emu::parse_ptx(
      ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n.reg .pred %p;\n.reg .b16 "
      "%h<4>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<4>;\n.reg .f32 %f<4>;\n" +
      statement + "\nret;\n}\n");
  const gg::emu::FormTable table({gg::emu::core_forms(), gg::emu::left_out_forms()});
  const auto code = gg::emu::decode(*module, *module->find("k"), table);
  const gg::emu::Instr& instr = code->instrs[0];
  const auto returns = gg::emu::decode(*module, *module->find("k"), gg::emu::FormTable({}));
  // Without any form all are refused by the same handler.
  return instr.run == returns->instrs[0].run ? *static_cast<const std::string*>(instr.extra) : "";
}

TEST(LeftOut, IsEveryOpcodeOfForeign) {
  EXPECT_EQ(opcodes(gg::emu::left_out_forms()), opcodes(gg::emu::foreign_forms()));
}

TEST(LeftOut, IsRefusedInASentence) {
  const std::string option =
      " is in common/emu/foreign, which this build leaves out: configure with -DGG_FOREIGN=ON";
  for (const char* statement :
       {"add.rn.f16x2 %r1, %r2, %r3", "max.NaN.bf16 %h1, %h2, %h3", "fma.rn.relu.bf16x2 %r1, %r2, %r3, %r4",
        "setp.lt.f16 %p, %h1, %h2",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2]",
        "vadd4.u32.u32.u32 %r1, %r2, %r3, %r4",
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %rd1",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3]",
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r3], {%r1}",
        "wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%rd1], {%r1}"}) {
    const std::string text = statement;
    EXPECT_EQ(refusal(text + ";"), "not supported: " + text.substr(0, text.find(' ')) + option);
  }
}

TEST(LeftOut, IsNothingElse) {
  for (const char* statement :
       {"add.s32 %r1, %r2, %r3;", "max.NaN.f32 %f1, %f2, %f3;", "setp.lt.f32 %p, %f1, %f2;",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r3];"}) {
    EXPECT_EQ(refusal(statement), "");
  }
  EXPECT_EQ(refusal("add.wide.s32 %r1, %r2, %r3;"), "not supported: modifier .wide");
  EXPECT_EQ(refusal("frobnicate.f16 %h1, %h2;"), "not supported: instruction frobnicate");
}

}  // namespace
