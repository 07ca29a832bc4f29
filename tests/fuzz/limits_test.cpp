// SPDX-License-Identifier: MIT
//
// PTX that asks for more than a machine has is refused before anything is allocated for it: sizes,
// nesting, calls that grow without end.

#include <gtest/gtest.h>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/grid.h"

namespace {

using namespace gg::emu;

constexpr char kHeader[] = ".version 8.8\n.target sm_90a\n.address_size 64\n";

std::string refusal(const std::string& text) {
  try {
    parse_ptx(kHeader + text);
  } catch (const SyntaxError& error) {
    return error.what;
  }
  return "";
}
std::string in_kernel(const std::string& body) { return ".entry f()\n{\n" + body + "\n}\n"; }
std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

struct Refused {
  const char* name;
  std::string text, because;
};
void PrintTo(const Refused& each, std::ostream* out) { *out << each.name; }

class TooMuch : public testing::TestWithParam<Refused> {};

TEST_P(TooMuch, IsRefused) {
  const std::string what = refusal(GetParam().text);
  EXPECT_NE(what.find(GetParam().because), std::string::npos) << '"' << what << '"';
}

INSTANTIATE_TEST_SUITE_P(
    Ptx, TooMuch,
    testing::Values(
        Refused{"Registers", in_kernel(".reg .b32 %r<2000000000>;"), "registers are more"},
        Refused{"RegisterNumber", in_kernel(".reg .b32 %r<4000000000>;"),
                "is wanted where 4000000000 stands"},
        Refused{"RegistersInAll", repeated(in_kernel(".reg .b32 %r<50000>;"), 9), "registers are more"},
        Refused{"SharedBytes", ".shared .b8 a[1152921504606846976];",
                "is wanted where 1152921504606846976 stands"},
        Refused{"SharedRows", ".shared .b8 a[1099511627776][1099511627776];", "at most 16777216 fit"},
        Refused{"SharedInAll", repeated(".shared .b8 a[9000000];", 2), "at most 16777216 fit"},
        Refused{"GlobalBytes", ".global .b64 a[1099511627776];", "at most 1099511627776 fit"},
        Refused{"LocalBytes", in_kernel(".local .b8 a[524289];"), "at most 524288 fit"},
        Refused{"ParamBytes", ".entry f(.param .b8 a[20000000]) { ret; }", "at most 16777216 fit"},
        Refused{"NegativeBytes", ".shared .b8 a[-1];", "is wanted where -1 stands"},
        Refused{"OddAlignment", ".shared .align 24 .b8 a[4];", "no power of two"},
        Refused{"NoAlignment", ".shared .align 0 .b8 a[4];", "is wanted where 0 stands"},
        Refused{"InitialValues", ".global .b8 a[2] = {1, 2, 3};", "more initial values"},
        Refused{"Threads", ".entry f() .maxntid 4294967296 { ret; }", "is wanted where 4294967296 stands"},
        Refused{"Offset", in_kernel(".reg .b64 %rd<2>; ld.u32 _, [%rd1+9223372036854775807];"),
                "is wanted where"},
        Refused{"Component", in_kernel(".reg .b32 %r<2>; mov.u32 %r1, %tid.w;"), "components"},
        Refused{"Scopes", in_kernel(repeated("{", 100000)), "nested too deep"},
        Refused{"Vectors", in_kernel("mov.b32 " + repeated("{", 100000) + ";"), "nested too deep"},
        Refused{"Addresses", in_kernel("ld.b32 " + repeated("[x, ", 100000) + ";"), "nested too deep"},
        Refused{"Negations", in_kernel("mov.pred " + repeated("!", 100000) + ";"), "nested too deep"},
        Refused{"Targets", in_kernel("T: .branchtargets A" + repeated(", A", 65535) + ";"),
                "too many branch targets"}),
    [](const auto& info) { return info.param.name; });

TEST(Limits, LeaveRoomForWhatIsReal) {
  const auto module =
      parse_ptx(kHeader + std::string(".global .b8 big[8589934592] = {1};\n") +
                in_kernel(".reg .b32 %r<60000>; .local .b8 a[524288]; .shared .align 1024 .b8 s[233472];"));
  EXPECT_EQ(module->variables[0].bytes, int64_t(8) << 30);
  EXPECT_EQ(module->variables[0].init.size(), 1u) << "zeros are not kept";
  EXPECT_EQ(decode(*module, *module->functions[0], gg::emu::all_forms())->registers.size(), 60000u);
}

std::string reason(const Instr& instr) { return *static_cast<const std::string*>(instr.extra); }

TEST(Limits, EndCallsThatDoubleAgainAndAgain) {
  std::string text = ".func f0() { }\n";
  for (int i = 1; i <= 30; ++i) {
    const std::string callee = "f" + std::to_string(i - 1);
    text += ".func f" + std::to_string(i) + "() { call " + callee + "; call " + callee + "; }\n";
  }
  const auto module = parse_ptx(kHeader + text + in_kernel("call f30;"));
  const auto code = decode(*module, *module->find("f"), gg::emu::all_forms());
  ASSERT_GT(code->instrs.size(), 1u);
  EXPECT_LT(code->instrs.size(), 1u << 19);
  EXPECT_EQ(reason(code->instrs[code->instrs.size() - 2]),
            "not supported: calls that make the kernel this long");
}

TEST(Limits, CodeOfFunctionsThatCallEachOtherIsThereOnce) {
  const auto module = parse_ptx(kHeader + std::string(".func g() { call h; }\n.func h() { call g; }\n") +
                                in_kernel("call g;"));
  const auto code = decode(*module, *module->find("f"), gg::emu::all_forms());
  EXPECT_EQ(code->called.size(), 2u);
  EXPECT_EQ(code->instrs.size(), 6u);  // of each a call and its end
}

TEST(Limits, EndCallsOfKernels) {
  const auto module = parse_ptx(kHeader + std::string(".entry g() { ret; }\n") + in_kernel("call g;"));
  const auto code = decode(*module, *module->find("f"), gg::emu::all_forms());
  EXPECT_EQ(reason(code->instrs[0]), "not supported: calls of a kernel");
}

}  // namespace
