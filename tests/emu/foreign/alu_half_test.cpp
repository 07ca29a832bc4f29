// SPDX-License-Identifier: MIT
//
// f16 and bf16 on the emulator, one or two, against common/kernel/formats.h and exact arithmetic.

#include <cmath>

#include "common/kernel/formats.h"
#include "tests/emu/alu_cases.h"

namespace {

using namespace emu_test;
using gg::Format;

struct Half {
  std::string name;
  Format format;
  Kind kind;
  uint32_t infinity, least_normal, one;
};
const Half kF16 = {"f16", Format::f16, Kind::f16, 0x7C00, 0x400, 0x3C00};
const Half kBF16 = {"bf16", Format::bf16, Kind::bf16, 0x7F80, 0x80, 0x3F80};
constexpr uint32_t kNaN = 0x7FFF;

double value(const Half& h, uint64_t code) { return double(gg::decode(h.format, uint32_t(code) & 0xFFFF)); }
bool nan(const Half& h, uint64_t code) { return (code & 0x7FFF) > h.infinity; }
uint32_t flushed(const Half& h, uint32_t code) {
  return (code & 0x7FFF) < h.least_normal ? code & 0x8000 : code;
}

// The code nearest to high + low, the sum being exact and low far smaller.
uint32_t nearest(const Half& h, double high, double low) {
  if (std::isnan(high)) return kNaN;
  uint32_t code = gg::encode(h.format, high);
  if (low == 0 || std::isinf(high)) return code;
  // Ties of `high` that `low` breaks: the two candidates and the value between them.
  const uint32_t inner = gg::encode(h.format, high, gg::Rounding::toward_zero) & 0x7FFF, outer = inner + 1;
  const double largest = value(h, h.infinity - 1),
               beyond = outer == h.infinity ? 2 * largest - value(h, h.infinity - 2) : value(h, outer);
  const double middle = (value(h, inner) + beyond) / 2;
  if (inner >= h.infinity || std::fabs(high) != middle) return code;
  return (high < 0 ? 0x8000 : 0) | ((low > 0) == (high > 0) ? outer : inner);
}

// Checks the instruction on single numbers, and as its x2 on pairs. The type's name goes
// where "T" stands.
void check_half(std::string instruction, const Half& h, int sources, const Reference& want) {
  const std::vector<Operands> operands = operands_of(std::vector<Kind>(size_t(sources), h.kind), 6000);
  const size_t at = instruction.find(".T ");
  const auto with = [&](const std::string& type) {
    return std::string(instruction).replace(at, 3, "." + type + " ");
  };
  const auto sizes = [&](int n) { return Sizes{n, n, sources > 1 ? n : 0, sources > 2 ? n : 0}; };
  check(with(h.name), sizes(16), operands, want);
  check(with(h.name + "x2"), sizes(32), paired(operands), by_halves(want));
}

struct Flags {
  bool ftz = false, sat = false, relu = false, oob = false;
};
uint32_t finished(const Half& h, uint32_t code, const Flags& f, bool tiny) {
  if (f.ftz && tiny) code &= 0x8000;
  const double x = value(h, code);
  if (f.sat) return x > 0 ? (x < 1 ? code : h.one) : 0;
  if (f.relu && !(x > 0) && x == x) return 0;
  return code;
}
std::string suffix(const Flags& f) {
  return std::string(f.ftz ? ".ftz" : "") + (f.sat ? ".sat" : "") + (f.relu ? ".relu" : "") +
         (f.oob ? ".oob" : "");
}
// high + low of op(a, b, c)
using Exact = std::function<std::pair<double, double>(double, double, double)>;
void check_arithmetic(const std::string& opcode, const Half& h, int sources, const Flags& f,
                      const Exact& exact) {
  const char* const operands[] = {"", " %d, %a;", " %d, %a, %b;", " %d, %a, %b, %c;"};
  check_half(opcode + suffix(f) + ".T" + operands[sources], h, sources, [=](const Operands& o) {
    double x[3];
    for (size_t i = 0; i < 3; ++i) {
      const uint32_t code = uint32_t(o[i]) & 0xFFFF;
      if (f.oob && i < 2 && (code & 0x7FFF) == 0x7FF7) return uint32_t(0);
      x[i] = value(h, f.ftz ? flushed(h, code) : code);
    }
    const auto [high, low] = exact(x[0], x[1], x[2]);
    // .ftz looks at the sum before it is rounded.
    const double least = value(h, h.least_normal);
    const bool tiny =
        std::fabs(high) < least || (std::fabs(high) == least && low != 0 && (low < 0) == (high > 0));
    return finished(h, nearest(h, high, low), f, tiny);
  });
}

std::pair<double, double> sum(double a, double b) {
  const double s = a + b, part = s - a;
  return {s, (a - (s - part)) + (b - part)};
}
const Exact kAdd = [](double a, double b, double) { return sum(a, b); };
const Exact kSub = [](double a, double b, double) { return sum(a, -b); };
const Exact kMul = [](double a, double b, double) { return std::pair(a * b, 0.0); };
const Exact kFma = [](double a, double b, double c) { return sum(a * b, c); };

TEST(Half, SumsAndProducts) {
  for (const std::string rounding : {"", ".rn"}) {
    for (const bool ftz : {false, true}) {
      for (const bool sat : {false, true}) {
        const Flags f = {ftz, sat, false, false};
        check_arithmetic("add" + rounding, kF16, 2, f, kAdd);
        check_arithmetic("sub" + rounding, kF16, 2, f, kSub);
        check_arithmetic("mul" + rounding, kF16, 2, f, kMul);
      }
    }
    check_arithmetic("add" + rounding, kBF16, 2, {}, kAdd);
    check_arithmetic("sub" + rounding, kBF16, 2, {}, kSub);
    check_arithmetic("mul" + rounding, kBF16, 2, {}, kMul);
  }
}
TEST(Half, FusedProducts) {
  for (const Flags f :
       {Flags{}, Flags{true, false, false, false}, Flags{false, true, false, false},
        Flags{true, true, false, false}, Flags{false, false, true, false}, Flags{true, false, true, false},
        Flags{false, false, false, true}, Flags{false, false, true, true}}) {
    check_arithmetic("fma.rn", kF16, 3, f, kFma);
    if (!f.ftz && !f.sat) check_arithmetic("fma.rn", kBF16, 3, f, kFma);
  }
}
// A product halfway between two bf16 numbers and a c far below it, which decides: double alone
// would not see it.
TEST(Half, FusedProductsAreRoundedOnce) {
  const auto want = [](const Operands& o) { return o[2] & 0x8000 ? 0x3F90 : 0x3F91; };
  std::vector<Operands> operands;
  for (const uint64_t c : {0x0080, 0x8080, 0x0001, 0x8001, 0x1000, 0x9000}) {
    // 1.0625^2 = 1.12890625, one bit more than bf16 has.
    operands.push_back({0x3F88, 0x3F88, c, 0});
  }
  check("fma.rn.bf16 %d, %a, %b, %c;", {16, 16, 16, 16}, operands, want);
}

TEST(Half, Signs) {
  for (const Half& h : {kF16, kBF16}) {
    check_half("neg.T %d, %a;", h, 1,
               [=](const Operands& o) { return nan(h, o[0]) ? kNaN : uint32_t(o[0]) ^ 0x8000; });
    check_half("abs.T %d, %a;", h, 1,
               [=](const Operands& o) { return nan(h, o[0]) ? kNaN : uint32_t(o[0]) & 0x7FFF; });
  }
  const auto flushed_or_nan = [](const Operands& o) {
    return nan(kF16, o[0]) ? kNaN : flushed(kF16, uint32_t(o[0]));
  };
  check_half("neg.ftz.T %d, %a;", kF16, 1,
             [=](const Operands& o) { return nan(kF16, o[0]) ? kNaN : flushed_or_nan(o) ^ 0x8000; });
  check_half("abs.ftz.T %d, %a;", kF16, 1, [=](const Operands& o) { return flushed_or_nan(o) & 0x7FFF; });
}

TEST(Half, Extremes) {
  for (const Half& h : {kF16, kBF16}) {
    for (const bool max : {false, true}) {
      for (int flags = 0; flags < 8; ++flags) {
        const bool ftz = flags & 1, with_nan = flags & 2, xorsign = flags & 4;
        if (ftz && h.name == "bf16") continue;
        const std::string name = std::string(max ? "max" : "min") + (ftz ? ".ftz" : "") +
                                 (with_nan ? ".NaN" : "") + (xorsign ? ".xorsign.abs" : "") +
                                 ".T %d, %a, %b;";
        check_half(name, h, 2, [=](const Operands& o) {
          uint32_t a = uint32_t(o[0]), b = uint32_t(o[1]);
          if (ftz) a = flushed(h, a), b = flushed(h, b);
          const uint32_t sign = (a ^ b) & 0x8000;
          if (xorsign) a &= 0x7FFF, b &= 0x7FFF;
          uint32_t r;
          if (nan(h, a) || nan(h, b)) {
            if (with_nan || (nan(h, a) && nan(h, b))) return kNaN;
            r = nan(h, a) ? b : a;
          } else if (value(h, a) == value(h, b)) {
            r = bool(a & 0x8000) == max ? b : a;
          } else {
            r = (value(h, a) > value(h, b)) == max ? a : b;
          }
          return xorsign ? r | sign : r;
        });
      }
    }
  }
}

// Every f16 and bf16 number; within the error that the ISA allows.
TEST(Half, Approximations) {
  std::vector<Operands> every;
  for (uint64_t code = 0; code < 0x10000; ++code) every.push_back({code, 0, 0, 0});
  struct Function {
    std::string name;
    Half half;
    double (*f)(double);
    double relative;
    bool ftz;
  };
  const Function functions[] = {{"tanh.approx.f16", kF16, std::tanh, 0x1p-10, false},
                                {"tanh.approx.bf16", kBF16, std::tanh, 0x1p-7, false},
                                {"ex2.approx.f16", kF16, std::exp2, 0x1.2p-10, false},
                                {"ex2.approx.ftz.bf16", kBF16, std::exp2, 0x1p-7, true}};
  for (const Function& f : functions) {
    SCOPED_TRACE(f.name);
    const std::vector<Result> got = results_of(f.name + " %d, %a;", {16, 16}, every);
    int wrong = 0;
    for (uint32_t code = 0; code < 0x10000 && wrong < 4; ++code) {
      const double x = value(f.half, f.ftz ? flushed(f.half, code) : code), exact = f.f(x);
      uint32_t want = gg::encode(f.half.format, exact);
      if (f.ftz) want = flushed(f.half, want);
      const double y = value(f.half, got[code].d), wanted = value(f.half, want);
      const double step = gg::ulp(f.half.format, exact);
      const bool right = std::isnan(wanted) ? got[code].d == kNaN
                         : std::isinf(wanted) || want == 0
                             ? y == wanted
                             : std::fabs(y - exact) <= std::max(f.relative * std::fabs(exact), step);
      if (right) continue;
      ++wrong;
      ADD_FAILURE() << x << ": got " << y << ", expected " << exact;
    }
  }
}

TEST(Half, Comparisons) {
  for (const Half& h : {kF16, kBF16}) {
    const std::vector<Operands> operands = operands_of({h.kind, h.kind, Kind::predicate}, 2000);
    for (const std::string how : kComparisons) {
      for (const bool ftz : {false, true}) {
        if (ftz && h.name == "bf16") continue;
        const auto yes = [=](const Operands& o) {
          const auto x = [&](uint64_t code) { return value(h, ftz ? flushed(h, uint32_t(code)) : code); };
          return compares(how, x(o[0]), x(o[1]));
        };
        const std::string flush = ftz ? ".ftz" : "", type = flush + "." + h.name;
        check("setp." + how + type + " %d, %a, %b;", {1, 16, 16}, operands, yes);
        check("setp." + how + ".or" + type + " %d, %a, %b, !%c;", {1, 16, 16, 1}, operands,
              [=](const Operands& o) { return yes(o) || !o[2]; });
        check("set." + how + flush + ".u16." + h.name + " %d, %a, %b;", {16, 16, 16}, operands,
              [=](const Operands& o) { return yes(o) ? 0xFFFF : 0; });
        check("set." + how + ".and" + flush + ".s32." + h.name + " %d, %a, %b, %c;", {32, 16, 16, 1},
              operands, [=](const Operands& o) { return yes(o) && o[2] ? 0xFFFFFFFF : 0; });
        check("set." + how + flush + "." + h.name + "." + h.name + " %d, %a, %b;", {16, 16, 16}, operands,
              [=](const Operands& o) { return yes(o) ? h.one : 0; });
      }
    }
  }
}
// p is of the low halves, q of the high ones.
TEST(Half, ComparisonsOfPairs) {
  for (const Half& h : {kF16, kBF16}) {
    std::vector<Operands> operands = paired(operands_of({h.kind, h.kind}, 3000));
    for (size_t i = 0; i < operands.size(); ++i) operands[i][2] = i % 2;
    for (const std::string how : {"eq", "ne", "lt", "ge", "gtu", "num"}) {
      const auto low = [=](const Operands& o) { return compares(how, value(h, o[0]), value(h, o[1])); };
      const auto high = [=](const Operands& o) {
        return compares(how, value(h, o[0] >> 16), value(h, o[1] >> 16));
      };
      const std::string type = "." + h.name + "x2 %d|%q, %a, %b";
      check("setp." + how + type + ";", {1, 32, 32, 1, 0, true}, operands, low, high);
      check(
          "setp." + how + ".and" + type + ", %c;", {1, 32, 32, 1, 0, true}, operands,
          [=](const Operands& o) { return low(o) && o[2]; },
          [=](const Operands& o) { return high(o) && o[2]; });
      check(
          "setp." + how + ".xor" + type + ", !%c;", {1, 32, 32, 1, 0, true}, operands,
          [=](const Operands& o) { return low(o) != !o[2]; },
          [=](const Operands& o) { return high(o) != !o[2]; });
      const auto both = [=](uint64_t yes) {
        return [=](const Operands& o) { return (low(o) ? yes : 0) | (high(o) ? yes << 16 : 0); };
      };
      check("set." + how + "." + h.name + "x2." + h.name + "x2 %d, %a, %b;", {32, 32, 32}, operands,
            both(h.one));
      check("set." + how + ".u32." + h.name + "x2 %d, %a, %b;", {32, 32, 32}, operands, both(0xFFFF));
    }
  }
}

}  // namespace
