// SPDX-License-Identifier: MIT
//
// The PTX parser on small texts, on broken ones, and on the PTX inside every chapter's program.

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "common/emu/core/text/ptx.h"

namespace {

using gg::emu::Bodies;
using gg::emu::Function;
using gg::emu::Module;
using gg::emu::Operand;
using gg::emu::parse_body;
using gg::emu::parse_ptx;
using gg::emu::SyntaxError;

constexpr char kHeader[] = ".version 8.8\n.target sm_90a\n.address_size 64\n";

std::unique_ptr<Module> with_body(const std::string& body) {
  return parse_ptx(
      kHeader +
      (".visible .entry f(.param .u64 a, .param .align 64 .b8 m[128], .param .u32 n)\n{\n" + body + "\n}\n"));
}
int failing_line(const std::string& text) {
  try {
    parse_ptx(text);
  } catch (const SyntaxError& error) {
    return error.line;
  }
  return 0;
}

TEST(Parse, LaysOutParametersByAlignment) {
  const auto module = with_body("ret;");
  const Function& f = *module->find("f");
  ASSERT_EQ(f.params.size(), 3u);
  EXPECT_EQ(f.params[0].offset, 0);
  EXPECT_EQ(f.params[1].offset, 64);
  EXPECT_EQ(f.params[2].offset, 192);
  EXPECT_EQ(f.param_bytes, 196);
  EXPECT_EQ(module->target, "sm_90a");
}

TEST(Parse, KeepsModifiersGuardsAndOperands) {
  const auto module = with_body(
      ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<2>;\n"
      "@!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, "
      "%r3}], [%r4+8];\n"
      "setp.lt.s32 %p1|%p2, %r1, -5;\n"
      "mov.f32 %r1, 0f3F800000;\n");
  const auto& body = module->find("f")->body;
  ASSERT_EQ(body.size(), 3u);
  EXPECT_EQ(body[0].opcode, "cp");
  EXPECT_TRUE(body[0].has("shared::cluster") && body[0].has("mbarrier::complete_tx::bytes"));
  EXPECT_TRUE(body[0].guard_negated);
  ASSERT_EQ(body[0].operands.size(), 3u);
  EXPECT_EQ(body[0].operands[1].elements[0].elements.size(), 2u) << "the coordinates";
  EXPECT_EQ(body[0].operands[2].offset, 8);
  ASSERT_TRUE(body[1].operands[0].second);
  EXPECT_EQ(int64_t(body[1].operands[2].bits), -5);
  double one = 0;
  memcpy(&one, &body[2].operands[1].bits, sizeof one);
  EXPECT_EQ(one, 1.0);
}

TEST(Parse, InnerScopesHideOuterRegistersAndLabels) {
  const auto module = with_body(
      ".reg .pred %p<2>; .reg .b32 %r<2>;\n"
      "{ .reg .pred %p1; W: @%p1 bra W; }\n"
      "{ .reg .pred %p1; W: @%p1 bra W; }\n"
      "@%p1 bra END;\nEND: ret;\n");
  const auto& body = module->find("f")->body;
  ASSERT_EQ(body.size(), 4u);
  const std::set<int> guards = {body[0].guard, body[1].guard, body[2].guard};
  EXPECT_EQ(guards.size(), 3u) << "three registers of the same name";
  EXPECT_EQ(body[0].operands[0].offset, 0);
  EXPECT_EQ(body[1].operands[0].offset, 1);
  EXPECT_EQ(body[2].operands[0].offset, 3);
}

TEST(Parse, PlacesVariablesAndReadsInitialisers) {
  const auto module = parse_ptx(std::string(kHeader) +
                                ".extern .shared .align 128 .b8 dynamic[];\n"
                                ".global .align 4 .u32 table[3] = {1, 0x20, -1};\n"
                                ".global .align 8 .u64 where = generic(table)+4;\n");
  ASSERT_EQ(module->variables.size(), 3u);
  EXPECT_TRUE(module->variables[0].external);
  EXPECT_EQ(module->variables[1].init,
            (std::vector<uint8_t>{1, 0, 0, 0, 0x20, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}));
  ASSERT_EQ(module->variables[2].addresses.size(), 1u);
  EXPECT_EQ(module->variables[2].addresses[0].add, 4);
  EXPECT_EQ(module->variables[2].offset, 16) << "behind the table, at a multiple of 8";
}

TEST(Parse, NamesTheLineOfWhatItCannotRead) {
  EXPECT_EQ(failing_line(std::string(kHeader) + "nonsense\n"), 4);
  EXPECT_EQ(failing_line(".version 8.8\n/* never closed\n"), 2);
  EXPECT_EQ(failing_line(std::string(kHeader) + ".entry f()\n{\nadd.s32 %r1, %r2, %r3\n}\n"), 7);
  EXPECT_EQ(failing_line(std::string(kHeader) + ".entry f()\n{\n@%p1 ret;\n}\n"), 6) << "no such register";
  EXPECT_EQ(failing_line(std::string(kHeader) + ".entry f()\n{\n"), 6);
}

TEST(Parse, LeavesBodiesOfKernelsForLater) {
  const std::string text =
      std::string(kHeader) +
      ".entry declared();\n"
      ".func g()\n{\nret;\n}\n"
      ".entry f(.param .u32 n)\n.maxntid 64\n{ // }\n/* }\n*/ { .pragma \"}\"; }\nret;\n}\n"
      ".entry wrong()\n{\nret;\n@%p1 ret;\n}\n"
      ".global .u32 x;\n";
  const auto module = parse_ptx(text, Bodies::later);
  EXPECT_EQ(module->variables.size(), 1u);
  EXPECT_EQ(module->find("g")->body.size(), 1u);
  const Function& f = *module->find("f");
  EXPECT_EQ(f.params.size(), 1u);
  EXPECT_EQ(f.max_threads[0], 64);
  EXPECT_TRUE(f.body.empty());
  for (int time = 0; time < 2; ++time) {
    parse_body(*module, "f");
    ASSERT_EQ(f.body.size(), 1u);
    EXPECT_EQ(f.body[0].line, 14);
    try {
      parse_body(*module, "wrong");
      ADD_FAILURE() << "there is no %p1";
    } catch (const SyntaxError& error) {
      EXPECT_EQ(error.line, 19);
    }
  }
  try {
    parse_ptx(std::string(kHeader) + ".entry f()\n{\nret;\n{\n}\n", Bodies::later);
    ADD_FAILURE() << "a body without an end";
  } catch (const SyntaxError& error) {
    EXPECT_EQ(error.line, 9);
  }
}

// PTX lies in a program as plain text: the build asks for no compression.
std::vector<std::string> ptx_of(const std::string& program) {
  std::ifstream file(program, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  const std::string all = bytes.str();
  std::vector<std::string> found;
  for (size_t at = all.find("\n.version "); at != std::string::npos; at = all.find("\n.version ", at + 1)) {
    found.push_back(all.substr(at, all.find('\0', at) - at));
  }
  return found;
}

void expect_same(const Function& now, const Function& later) {
  EXPECT_EQ(now.registers.size(), later.registers.size());
  EXPECT_EQ(now.locals.size(), later.locals.size());
  EXPECT_EQ(now.locations.size(), later.locations.size());
  ASSERT_EQ(now.body.size(), later.body.size());
  for (size_t i = 0; i < now.body.size(); ++i) {
    const auto &a = now.body[i], &b = later.body[i];
    ASSERT_TRUE(a.line == b.line && a.loc == b.loc && a.text == b.text) << "PTX line " << a.line;
  }
}

TEST(Parse, ReadsThePtxOfEveryChapter) {
  std::istringstream chapters(GG_CHAPTERS);
  for (std::string chapter; chapters >> chapter;) {
    const std::vector<std::string> texts = ptx_of(std::string(GG_BINARY_DIR) + "/bin/" + chapter);
    ASSERT_FALSE(texts.empty()) << chapter << " holds no PTX";
    int kernels = 0;
    for (const std::string& text : texts) {
      try {
        const auto module = parse_ptx(text), later = parse_ptx(text, Bodies::later);
        for (const auto& function : module->functions) {
          parse_body(*later, function->name);
          expect_same(*function, *later->find(function->name));
          const auto is_named = [&](const char* name) {
            return function->name.find(name) != std::string::npos;
          };
          if (!is_named("grouped_gemm") && !is_named("weight_gradient") && !is_named("glu_gradient"))
            continue;
          ++kernels;
          EXPECT_TRUE(function->entry);
          EXPECT_GT(function->body.size(), 50u);
          EXPECT_FALSE(function->locations.empty()) << "source lines for reports";
          EXPECT_GT(function->max_threads[0], 0) << "from __launch_bounds__";
        }
      } catch (const SyntaxError& error) {
        ADD_FAILURE() << chapter << ", PTX line " << error.line << ": " << error.what;
      }
    }
    EXPECT_GT(kernels, 0) << chapter;
  }
}

}  // namespace
