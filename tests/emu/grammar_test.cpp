// SPDX-License-Identifier: MIT
//
// PTX as people and other compilers write it. Each text stores one number, which is known, and
// ptxas must take the text too: else the table would ask for a language that is not PTX.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/process.h"

namespace {

using testing_gg::Outcome;

struct Text {
  const char* name;
  std::string body;                  // leaves a number in %r1
  uint32_t number;                   // which is this
  std::string before = {}, of = {};  // before the kernel, and between its name and its body
};

const char* const kHeader = ".version 8.6\n.target sm_90a\n.address_size 64\n";

std::string program(const Text& t) {
  return kHeader + t.before + ".visible .entry k(.param .u64 out)\n" + t.of +
         "{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<4>; .reg .pred %p<4>;\n"
         "ld.param.u64 %rd1, [out];\n" +
         t.body + "\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
}

std::vector<Text> texts() {
  const std::string two = ".global .u32 g[2] = {5, 6};\n";
  const uint32_t one = 0x3F800000;
  const auto of_float = [](const std::string& f) { return "mov.f32 %f1, " + f + ";\nmov.b32 %r1, %f1;"; };
  return {
      // Between tokens.
      {"Comments", "mov/*a*/.u32 /*b*/ %r1 /*c*/,/*d*/ 3 /**/; // e", 3},
      {"Spaces", "mov  .u32\n%r1\n,\n3\n;", 3},
      {"CarriageReturns", "mov.u32 %r1, 1;\r\nadd.u32 %r1, %r1, 2;\r", 3},
      {"LineMarkers", "mov.u32 %r1, 3;", 3, "# 1 \"x.cu\"\n#line 7 \"y.cu\"\n"},
      {"Guards", "setp.eq.u32 %p1, 1, 1;\nmov.u32 %r1, 3;\n@ ! %p1 mov.u32 %r1, 4;", 3},
      // Numbers.
      {"Hexadecimal", "mov.u32 %r1, 0X1FU;", 31},
      {"Octal", "mov.u32 %r1, 017;", 15},
      {"Binary", "mov.u32 %r1, 0B101U;", 5},
      {"Unsigned", "mov.u32 %r1, 4000000000U;", 4000000000u},
      {"Negative", "mov.s32 %r1, -17;", uint32_t(-17)},
      {"OfTheWarp", "mov.u32 %r1, WARP_SZ;", 32},
      {"OfTheWarpTwice", "mov.u32 %r1, WARP_SZ*2;", 64},
      {"Real", of_float("1.0"), one},
      {"RealFromThePoint", of_float(".5"), one - 0x800000},
      {"RealToThePoint", of_float("1."), one},
      {"RealWithExponent", of_float("10E-1"), one},
      {"RealInBits", of_float("0F3F800000"), one},
      // Expressions.
      {"Sum", "mov.u32 %r1, 1+2*3;", 7},
      {"Parentheses", "mov.u32 %r1, (1+2)*3;", 9},
      {"Shifts", "mov.u32 %r1, 1<<4|3;", 19},
      {"Arithmetic", "mov.u32 %r1, -8>>1;", uint32_t(-4)},
      {"Differences", "mov.u32 %r1, 9-3-2;", 4},
      {"Choice", "mov.u32 %r1, 0 ? 2 : 1 ? 3 : 4;", 3},
      {"Comparison", "mov.u32 %r1, 5 >= 4 && 3 != 3 || 1 < 2;", 1},
      {"Complement", "mov.u32 %r1, ~5;", ~5u},
      {"Not", "mov.u32 %r1, !5;", 0},
      {"Cast", "mov.u32 %r1, (.u64) 4;", 4},
      {"CastCompares", "mov.u32 %r1, (.u64) -1 > 1;", 1},
      {"SumOfReals", of_float("0.25+0.75"), one},
      {"OfAnInitialiser", "ld.global.u32 %r1, [g];", 13, ".global .u32 g = 3*4+1;\n"},
      {"OfAnOffset", "mov.u64 %rd2, g;\nld.global.u32 %r1, [%rd2+2*2];", 6, two},
      // Registers, labels, addresses.
      {"VectorRegister", ".reg .v2 .u32 v;\nmov.u32 v.x, 4;\nmov.u32 v.y, 5;\nadd.u32 %r1, v.x, v.y;", 9},
      {"VectorOperand", ".reg .v4 .u32 v;\nld.global.v4.u32 v, [g];\nmov.u32 %r1, v.w;", 8,
       ".global .align 16 .u32 g[4] = {5, 6, 7, 8};\n"},
      {"VectorStored",
       ".reg .v2 .u32 v;\nmov.u32 v.x, 4;\nmov.u32 v.y, 5;\nst.global.v2.u32 [%rd1], v;\n"
       "ld.global.u32 %r1, [%rd1+4];",
       5},
      {"ElementRead", "ld.global.u32 %r1, g[1];", 6, two},
      {"ElementWritten", "st.global.u32 g[1], 8;\nld.global.u32 %r1, [g+4];", 8, two},
      {"ElementsAddress", "mov.u64 %rd2, g[1];\nld.global.u32 %r1, [%rd2];", 6, two},
      {"NameWithPercent", "ld.global.u32 %r1, [%g];", 7, ".global .u32 %g = 7;\n"},
      {"NameWithDollar", "ld.global.u32 %r1, [$g$1];", 7, ".global .u32 $g$1 = 7;\n"},
      {"Labels", "bra %L;\n$M$1: N: mov.u32 %r1, 4;\n%L\n: mov.u32 %r1, 3;", 3},
      {"ScopesOfRegisters",
       "{ .reg .u32 a, q<3>, b; mov.u32 q2, 3; { .reg .u32 q2; mov.u32 q2, 4; }\n"
       "mov.u32 a, q2; mov.u32 %r1, a; }",
       3},
      {"AddressInBytes",
       "ld.global.u8 %r2, [p+1];\nmov.u64 %rd2, g;\nshr.u64 %rd2, %rd2, 8;\n"
       "cvt.u32.u64 %r3, %rd2;\nand.b32 %r3, %r3, 255;\nsub.u32 %r1, %r2, %r3;",
       0, two + ".global .u8 p[2] = {0xFF(g), 0xFF00(g)};\n"},
      // Directives.
      {"OfTheKernel", "mov.u32 %r1, 3;", 3, "", ".maxntid 64, 1, 1 .minnctapersm 1\n.pragma \"nounroll\";\n"},
      {"OfTheFile", ".loc 1 3 4\nmov.u32 %r1, 3;", 3, ".file 1 \"a.cu\", 12345, 678\n"},
      {"Prototypes",
       "P: .callprototype (.param .b32 _) _ (.param .b32 _);\nQ: .calltargets f;\nmov.u32 %r1, 3;", 3,
       ".func f() { ret; }\n"},
  };
}

class Grammar : public testing::TestWithParam<Text> {};

TEST_P(Grammar, IsPtxasGrammar) {
  const testing_gg::Folder folder;
  const std::string text = program(GetParam());
  testing_gg::write_text(folder.at("k.ptx"), text);
  const Outcome taken =
      testing_gg::run({GG_PTXAS, "-arch=sm_90a", folder.at("k.ptx"), "-o", folder.at("k.cubin")});
  EXPECT_EQ(taken.code, 0) << taken.err << text;
  const Outcome outcome = testing_gg::run({std::string(GG_BINARY_DIR) + "/bin/gg-ptx", folder.at("k.ptx"),
                                           "--entry", "k", "--grid", "1", "--block", "1", "--buf",
                                           "o=out:" + folder.at("o.npy") + ",u4,4", "--arg", "o"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << text;
  const std::string file = testing_gg::text_of(folder.at("o.npy"));
  uint32_t number = 0;
  ASSERT_GE(file.size(), 16u);
  std::memcpy(&number, file.data() + file.size() - 16, 4);
  EXPECT_EQ(number, GetParam().number) << text;
}

INSTANTIATE_TEST_SUITE_P(Ptx, Grammar, testing::ValuesIn(texts()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
