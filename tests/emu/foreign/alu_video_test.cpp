// SPDX-License-Identifier: MIT
//
// Video instructions on parts of words, for every mixture of signs, against plain arithmetic.

#include <cstdlib>

#include "tests/emu/alu_cases.h"

namespace {

using namespace emu_test;

int64_t part(uint64_t word, int first, int bits, bool is_signed) {
  const uint64_t above = word << (64 - first - bits);
  return is_signed ? int64_t(above) >> (64 - bits) : int64_t(above >> (64 - bits));
}
int64_t clamped(int64_t x, int bits, bool is_signed) {
  const int64_t least = is_signed ? -(int64_t(1) << (bits - 1)) : 0;
  return std::clamp(x, least, least + (int64_t(1) << bits) - 1);
}

struct Operation {
  const char* name;
  int64_t (*of)(int64_t a, int64_t b);
  bool alone = true;  // there is one for a single part
};
const Operation kOperations[] = {
    {"vadd", [](int64_t a, int64_t b) { return a + b; }},
    {"vsub", [](int64_t a, int64_t b) { return a - b; }},
    {"vabsdiff", [](int64_t a, int64_t b) { return std::abs(a - b); }},
    {"vmin", [](int64_t a, int64_t b) { return std::min(a, b); }},
    {"vmax", [](int64_t a, int64_t b) { return std::max(a, b); }},
    {"vavrg", [](int64_t a, int64_t b) { return (a + b + (a + b >= 0)) >> 1; }, false}};

struct Signs {
  bool d = false, a = false, b = false;
  std::string text() const {
    return std::string(d ? ".s32" : ".u32") + (a ? ".s32" : ".u32") + (b ? ".s32" : ".u32");
  }
};
const Signs kSigns[] = {{}, {true, true, true}, {true, false, true}, {false, true, false}};

const std::vector<Operands>& operands() {
  static const auto& all =
      *new const std::vector<Operands>(operands_of({Kind::integer, Kind::integer, Kind::integer}));
  return all;
}

TEST(VideoParts, AllAtOnce) {
  for (const Operation& op : kOperations) {
    for (const int count : {2, 4}) {
      for (const Signs& s : kSigns) {
        for (const bool saturates : {false, true}) {
          check(op.name + std::to_string(count) + s.text() + (saturates ? ".sat" : "") + " %d, %a, %b, %c;",
                {32, 32, 32, 32}, operands(), [=](const Operands& o) {
                  const int bits = 32 / count;
                  uint64_t result = 0;
                  for (int i = 0; i < count; ++i) {
                    int64_t x = op.of(part(o[0], i * bits, bits, s.a), part(o[1], i * bits, bits, s.b));
                    if (saturates) x = clamped(x, bits, s.d);
                    result |= (uint64_t(x) & ((1u << bits) - 1)) << (i * bits);
                  }
                  return result;
                });
        }
      }
    }
  }
}

TEST(VideoParts, One) {
  for (const Operation& op : kOperations) {
    if (!op.alone) continue;
    for (const Signs& s : kSigns) {
      const std::string name = op.name + s.text();
      const auto whole = [=](const Operands& o) {
        return op.of(part(o[0], 0, 32, s.a), part(o[1], 0, 32, s.b));
      };
      const auto parts = [=](const Operands& o) {
        return op.of(part(o[0], 8, 8, s.a), part(o[1], 16, 16, s.b));
      };
      check(name + " %d, %a, %b;", {32, 32, 32}, operands(),
            [=](const Operands& o) { return uint64_t(whole(o)); });
      check(name + ".sat %d, %a, %b;", {32, 32, 32}, operands(),
            [=](const Operands& o) { return uint64_t(clamped(whole(o), 32, s.d)); });
      check(name + ".add %d, %a.b1, %b.h1, %c;", {32, 32, 32, 32}, operands(),
            [=](const Operands& o) { return uint64_t(parts(o)) + o[2]; });
      check(name + ".sat.max %d, %a.b1, %b.h1, %c;", {32, 32, 32, 32}, operands(), [=](const Operands& o) {
        return uint64_t(std::max(clamped(parts(o), 32, s.d), part(o[2], 0, 32, s.d)));
      });
      check("mov.u32 %d, %c; " + name + ".sat %d.h1, %a.b1, %b.h1, %c;", {32, 32, 32, 32}, operands(),
            [=](const Operands& o) {
              const int64_t x = parts(o);  // an H100 takes one below 0 for a large one
              return (o[2] & 0xFFFF) | (uint64_t(clamped(x < 0 ? INT32_MAX : x, 16, s.d)) & 0xFFFF) << 16;
            });
    }
  }
}

TEST(VideoParts, AreChosen) {
  check("vadd4.u32.u32.u32 %d.b20, %a.b7120, %b.b4444, %c;", {32, 32, 32, 32}, operands(),
        [](const Operands& o) {
          const auto sum = [&](uint64_t a, uint64_t b) { return (a + b) & 0xFF; };
          const uint64_t b0 = o[1] & 0xFF;
          return (o[2] & 0xFF00FF00u) | sum(o[0] & 0xFF, b0) | sum(o[0] >> 8 & 0xFF, b0) << 16;
        });
  check("vset2.s32.s32.gt.add %d, %a.h02, %b, %c;", {32, 32, 32, 32}, operands(), [](const Operands& o) {
    const bool low = part(o[1], 0, 16, true) > part(o[1], 0, 16, true);
    const bool high = part(o[0], 0, 16, true) > part(o[1], 16, 16, true);
    return o[2] + low + high;
  });
}

TEST(VideoParts, WhatIsNotThereIsNamed) {
  const std::pair<const char*, const char*> unknown[] = {
      {"add.u32 %d, %a.b0, %b;", "a register with .b0"},
      {"vadd.u32.u32.u32 %d, %a.h2, %b;", "a register with .h2"},
      {"vadd4.u32.u32.u32 %d.b02, %a, %b, %c;", "a register with .b02"},
      {"vadd4.u32.u32.u32 %d, %a.h10, %b, %c;", "a register with .h10"},
      {"vadd4.u32.u32.u32.sat.add %d, %a, %b, %c;", ".sat together with .add"},
      {"vshl.u32.u32.u32 %d, %a, %b;", "no .clamp or .wrap"},
      {"vset4.u32.u32 %d, %a, %b, %c;", "no comparison"},
      {"vmad.u32.u32.u32 %d, %a, %b, %c;", "instruction vmad"},
      {"vadd.u64.u32.u32 %d, %a, %b;", "type .u64"}};
  for (const auto& [instruction, word] : unknown) {
    std::string report;
    try {
      results_of(instruction, {32, 32, 32, 32}, {operands()[0]});
    } catch (const std::exception& fault) {
      report = fault.what();
    }
    EXPECT_NE(report.find(word), std::string::npos) << instruction << "\n" << report;
  }
}

}  // namespace
