// SPDX-License-Identifier: MIT
//
// Integer arithmetic, logic, comparison, selection and mov on the emulator against plain host
// arithmetic, bit by bit where the ISA speaks of bits.

#include <algorithm>
#include <cstdlib>

#include "alu_cases.h"

namespace {

using namespace emu_test;
using Wide = __int128;

const std::vector<Kind> kOne = {Kind::integer}, kTwo = {Kind::integer, Kind::integer},
                        kThree = {Kind::integer, Kind::integer, Kind::integer};

// A number of an integer type as a mathematician sees it.
Wide number(uint64_t bits, int width, bool is_signed) {
  Wide x = Wide(bits) & ((Wide(1) << width) - 1);
  if (is_signed && x >> (width - 1) & 1) x -= Wide(1) << width;
  return x;
}
Wide clamp_s32(Wide x) { return std::clamp<Wide>(x, -(Wide(1) << 31), (Wide(1) << 31) - 1); }

struct Type {
  std::string name;
  int width;
  bool is_signed;
};
const Type kTypes[] = {{"u16", 16, false}, {"u32", 32, false}, {"u64", 64, false},
                       {"s16", 16, true},  {"s32", 32, true},  {"s64", 64, true}};

using Whole = std::function<Wide(Wide, Wide, Wide)>;
Reference of_numbers(const Type& t, const Whole& f) {
  return [=](const Operands& o) {
    return uint64_t(f(number(o[0], t.width, t.is_signed), number(o[1], t.width, t.is_signed),
                      number(o[2], t.width, t.is_signed)));
  };
}
void check_integers(const std::string& opcode, int sources, const Whole& f, bool signed_only = false) {
  const char* const operands[] = {"", " %d, %a;", " %d, %a, %b;", " %d, %a, %b, %c;"};
  for (const Type& t : kTypes) {
    if (signed_only && !t.is_signed) continue;
    const Sizes sizes = {t.width, t.width, sources > 1 ? t.width : 0, sources > 2 ? t.width : 0};
    check(opcode + "." + t.name + operands[sources], sizes,
          operands_of(sources == 1   ? kOne
                      : sources == 2 ? kTwo
                                     : kThree),
          of_numbers(t, f));
  }
}

TEST(Integer, SumsAndProducts) {
  check_integers("add", 2, [](Wide a, Wide b, Wide) { return a + b; });
  check_integers("sub", 2, [](Wide a, Wide b, Wide) { return a - b; });
  check_integers("mul.lo", 2,
                 [](Wide a, Wide b, Wide) { return Wide((unsigned __int128)a * (unsigned __int128)b); });
  check_integers("mad.lo", 3, [](Wide a, Wide b, Wide c) {
    return Wide((unsigned __int128)a * (unsigned __int128)b + (unsigned __int128)c);
  });
  check_integers("sad", 3, [](Wide a, Wide b, Wide c) { return c + (a < b ? b - a : a - b); });
  check_integers(
      "abs", 1, [](Wide a, Wide, Wide) { return a < 0 ? -a : a; }, true);
  check_integers(
      "neg", 1, [](Wide a, Wide, Wide) { return -a; }, true);
}

TEST(Integer, HighAndWideProducts) {
  for (const Type& t : kTypes) {
    // The product of 64-bit numbers needs all 128 bits: signed and unsigned ones fit one way each.
    const auto high = [&](Wide a, Wide b) {
      if (t.width < 64 || t.is_signed) return a * b >> t.width;
      return Wide((unsigned __int128)a * (unsigned __int128)b >> 64);
    };
    check("mul.hi." + t.name + " %d, %a, %b;", {t.width, t.width, t.width}, operands_of(kTwo),
          of_numbers(t, [&](Wide a, Wide b, Wide) { return high(a, b); }));
    check("mad.hi." + t.name + " %d, %a, %b, %c;", {t.width, t.width, t.width, t.width}, operands_of(kThree),
          of_numbers(t, [&](Wide a, Wide b, Wide c) { return high(a, b) + c; }));
    if (t.width == 64) continue;
    check("mul.wide." + t.name + " %d, %a, %b;", {2 * t.width, t.width, t.width}, operands_of(kTwo),
          of_numbers(t, [](Wide a, Wide b, Wide) { return a * b; }));
    check("mad.wide." + t.name + " %d, %a, %b, %c;", {2 * t.width, t.width, t.width, 2 * t.width},
          operands_of(kThree), [&](const Operands& o) {
            return uint64_t(number(o[0], t.width, t.is_signed) * number(o[1], t.width, t.is_signed) +
                            Wide(o[2]));
          });
  }
}

TEST(Integer, Saturation) {
  const Type s32 = kTypes[4];
  check("add.sat.s32 %d, %a, %b;", {32, 32, 32}, operands_of(kTwo),
        of_numbers(s32, [](Wide a, Wide b, Wide) { return clamp_s32(a + b); }));
  check("sub.sat.s32 %d, %a, %b;", {32, 32, 32}, operands_of(kTwo),
        of_numbers(s32, [](Wide a, Wide b, Wide) { return clamp_s32(a - b); }));
  check("mad.hi.sat.s32 %d, %a, %b, %c;", {32, 32, 32, 32}, operands_of(kThree),
        of_numbers(s32, [](Wide a, Wide b, Wide c) { return clamp_s32((a * b >> 32) + c); }));
}

TEST(Integer, TwentyFourBits) {
  for (const bool is_signed : {false, true}) {
    const auto of24 = [&](const std::function<Wide(Wide, Wide)>& f) {
      return [=](const Operands& o) {
        return uint64_t(
            f(number(o[0], 24, is_signed) * number(o[1], 24, is_signed), number(o[2], 32, is_signed)));
      };
    };
    const std::string type = is_signed ? "s32" : "u32";
    check("mul24.lo." + type + " %d, %a, %b;", {32, 32, 32}, operands_of(kTwo),
          of24([](Wide p, Wide) { return p; }));
    check("mul24.hi." + type + " %d, %a, %b;", {32, 32, 32}, operands_of(kTwo),
          of24([](Wide p, Wide) { return p >> 16; }));
    check("mad24.lo." + type + " %d, %a, %b, %c;", {32, 32, 32, 32}, operands_of(kThree),
          of24([](Wide p, Wide c) { return p + c; }));
    check("mad24.hi." + type + " %d, %a, %b, %c;", {32, 32, 32, 32}, operands_of(kThree),
          of24([](Wide p, Wide c) { return (p >> 16) + c; }));
    if (!is_signed) continue;
    check("mad24.hi.sat.s32 %d, %a, %b, %c;", {32, 32, 32, 32}, operands_of(kThree),
          of24([](Wide p, Wide c) { return clamp_s32((p >> 16) + c); }));
  }
}

// The result of a division by zero is left open; an H200 gives all ones.
TEST(Integer, Quotients) {
  check_integers("div", 2, [](Wide a, Wide b, Wide) { return b == 0 ? -1 : a / b; });
  check_integers("rem", 2, [](Wide a, Wide b, Wide) { return b == 0 ? -1 : a % b; });
}

TEST(Integer, Extremes) {
  check_integers("min", 2, [](Wide a, Wide b, Wide) { return std::min(a, b); });
  check_integers("max", 2, [](Wide a, Wide b, Wide) { return std::max(a, b); });
  check("min.relu.s32 %d, %a, %b;", {32, 32, 32}, operands_of(kTwo),
        of_numbers(kTypes[4], [](Wide a, Wide b, Wide) { return std::max<Wide>(0, std::min(a, b)); }));
  check("max.relu.s32 %d, %a, %b;", {32, 32, 32}, operands_of(kTwo),
        of_numbers(kTypes[4], [](Wide a, Wide b, Wide) { return std::max<Wide>(0, std::max(a, b)); }));
}

TEST(Integer, PairsOfHalves) {
  const auto pair = [](const std::string& instruction, const Type& t, const Whole& f) {
    check(instruction + " %d, %a, %b;", {32, 32, 32}, paired(operands_of(kTwo)), by_halves(of_numbers(t, f)));
  };
  const Type u16 = kTypes[0], s16 = kTypes[3];
  pair("add.u16x2", u16, [](Wide a, Wide b, Wide) { return a + b; });
  pair("add.s16x2", s16, [](Wide a, Wide b, Wide) { return a + b; });
  pair("min.u16x2", u16, [](Wide a, Wide b, Wide) { return std::min(a, b); });
  pair("max.u16x2", u16, [](Wide a, Wide b, Wide) { return std::max(a, b); });
  pair("min.s16x2", s16, [](Wide a, Wide b, Wide) { return std::min(a, b); });
  pair("max.s16x2", s16, [](Wide a, Wide b, Wide) { return std::max(a, b); });
  pair("min.relu.s16x2", s16, [](Wide a, Wide b, Wide) { return std::max<Wide>(0, std::min(a, b)); });
  pair("max.relu.s16x2", s16, [](Wide a, Wide b, Wide) { return std::max<Wide>(0, std::max(a, b)); });
}

// The sum of two numbers of twice the width, by a carry; %d is the upper half, %q... is not needed.
TEST(Integer, Carries) {
  using U = unsigned __int128;
  for (const int width : {32, 64}) {
    for (const std::string sign : {"u", "s"}) {
      const std::string t = sign + std::to_string(width), reg = ".reg .b" + std::to_string(width) + " %low;";
      const Sizes sizes = {width, width, width, width, width};
      const std::vector<Operands> operands =
          operands_of({Kind::integer, Kind::integer, Kind::integer, Kind::integer});
      const auto sum = [=](const Operands& o, bool minus) {  // {b, a} +- {e, c}
        const U mask = (U(1) << width) - 1, a = o[0] & mask, c = o[2] & mask;
        return minus ? U(o[1]) - o[3] - (a < c) : U(o[1]) + o[3] + ((a + c) >> width);
      };
      check(reg + "add.cc." + t + " %low, %a, %c; addc." + t + " %d, %b, %e;", sizes, operands,
            [=](const Operands& o) { return uint64_t(sum(o, false)); });
      check(reg + "sub.cc." + t + " %low, %a, %c; subc." + t + " %d, %b, %e;", sizes, operands,
            [=](const Operands& o) { return uint64_t(sum(o, true)); });
      // A chain of three: the carry goes through the middle.
      check(reg + "add.cc." + t + " %low, %a, %c; addc.cc." + t + " %low, %b, %e; addc." + t + " %d, 0, 0;",
            sizes, operands, [=](const Operands& o) { return uint64_t((sum(o, false) >> width) & 1); });
      check(reg + "sub.cc." + t + " %low, %a, %c; subc.cc." + t + " %low, %b, %e; subc." + t + " %d, 7, 0;",
            sizes, operands, [=](const Operands& o) { return 7 - uint64_t((sum(o, true) >> width) & 1); });
    }
  }
  // a * b + {e, c} of 32 bits, its upper half.
  check(".reg .b32 %low; mad.lo.cc.u32 %low, %a, %b, %c; madc.hi.u32 %d, %a, %b, %e;", {32, 32, 32, 32, 32},
        operands_of({Kind::integer, Kind::integer, Kind::integer, Kind::integer}),
        [](const Operands& o) { return (o[0] * o[1] + (o[3] << 32 | o[2])) >> 32; });
  check(".reg .b32 %low; mad.lo.cc.s32 %low, %a, %b, %c; madc.hi.s32 %d, %a, %b, %e;", {32, 32, 32, 32, 32},
        operands_of({Kind::integer, Kind::integer, Kind::integer, Kind::integer}), [](const Operands& o) {
          return (uint64_t(int64_t(int32_t(o[0])) * int32_t(o[1])) + (o[3] << 32 | o[2])) >> 32;
        });
  check(".reg .b32 %low; mad.hi.cc.u32 %low, %a, %b, %c; madc.lo.cc.u32 %low, %a, %e, %c; addc.u32 %d, 0, 0;",
        {32, 32, 32, 32, 32}, operands_of({Kind::integer, Kind::integer, Kind::integer, Kind::integer}),
        [](const Operands& o) {
          const uint64_t first = (o[0] * o[1] >> 32) + o[2];
          return (uint64_t(uint32_t(o[0] * o[3])) + o[2] + (first >> 32)) >> 32;
        });
}

TEST(Integer, DotProducts) {
  for (const bool a_signed : {false, true}) {
    for (const bool b_signed : {false, true}) {
      const std::string types = std::string(a_signed ? ".s32" : ".u32") + (b_signed ? ".s32" : ".u32");
      check("dp4a" + types + " %d, %a, %b, %c;", {32, 32, 32, 32}, operands_of(kThree),
            [=](const Operands& o) {
              Wide sum = Wide(o[2]);
              for (int i = 0; i < 4; ++i)
                sum += number(o[0] >> 8 * i, 8, a_signed) * number(o[1] >> 8 * i, 8, b_signed);
              return uint64_t(sum);
            });
      for (const bool high : {false, true}) {
        check(std::string("dp2a") + (high ? ".hi" : ".lo") + types + " %d, %a, %b, %c;", {32, 32, 32, 32},
              operands_of(kThree), [=](const Operands& o) {
                Wide sum = Wide(o[2]);
                for (int i = 0; i < 2; ++i) {
                  sum += number(o[0] >> 16 * i, 16, a_signed) *
                         number(o[1] >> (8 * i + (high ? 16 : 0)), 8, b_signed);
                }
                return uint64_t(sum);
              });
      }
    }
  }
}

TEST(Logic, Bitwise) {
  for (const int width : {16, 32, 64}) {
    const std::string t = ".b" + std::to_string(width);
    const Sizes two = {width, width, width}, one = {width, width};
    check("and" + t + " %d, %a, %b;", two, operands_of(kTwo), [](const Operands& o) { return o[0] & o[1]; });
    check("or" + t + " %d, %a, %b;", two, operands_of(kTwo), [](const Operands& o) { return o[0] | o[1]; });
    check("xor" + t + " %d, %a, %b;", two, operands_of(kTwo), [](const Operands& o) { return o[0] ^ o[1]; });
    check("not" + t + " %d, %a;", one, operands_of(kOne), [](const Operands& o) { return ~o[0]; });
    check("cnot" + t + " %d, %a;", one, operands_of(kOne), [](const Operands& o) { return o[0] ? 0 : 1; });
  }
}

TEST(Logic, Predicates) {
  const std::vector<Operands> both = operands_of({Kind::predicate, Kind::predicate}, 100);
  const Sizes two = {1, 1, 1}, one = {1, 1};
  check("and.pred %d, %a, %b;", two, both, [](const Operands& o) { return o[0] & o[1]; });
  check("or.pred %d, !%a, %b;", two, both, [](const Operands& o) { return !o[0] || o[1]; });
  check("xor.pred %d, %a, !%b;", two, both, [](const Operands& o) { return o[0] ^ !o[1]; });
  check("and.pred %d, !%a, !%b;", two, both, [](const Operands& o) { return !o[0] && !o[1]; });
  check("not.pred %d, %a;", one, both, [](const Operands& o) { return !o[0]; });
  check("not.pred %d, !%a;", one, both, [](const Operands& o) { return o[0]; });
  check("mov.pred %d, %a;", one, both, [](const Operands& o) { return o[0]; });
  check("mov.pred %d, !%a;", one, both, [](const Operands& o) { return !o[0]; });
  check("mov.pred %d, 1;", one, both, [](const Operands&) { return 1; });
}

TEST(Logic, Shifts) {
  const std::vector<Operands> operands = operands_of({Kind::integer, Kind::small});
  for (const Type& t : kTypes) {
    const Sizes sizes = {t.width, t.width, 32};
    check("shr." + t.name + " %d, %a, %b;", sizes, operands, [=](const Operands& o) {
      return uint64_t(number(o[0], t.width, t.is_signed) >> std::min<uint64_t>(o[1], 100));
    });
    if (t.is_signed) continue;
    const std::string bits = ".b" + std::to_string(t.width) + " %d, %a, %b;";
    check("shl" + bits, sizes, operands,
          [=](const Operands& o) { return o[1] >= uint64_t(t.width) ? 0 : o[0] << o[1]; });
    check("shr" + bits, sizes, operands,
          [=](const Operands& o) { return o[1] >= uint64_t(t.width) ? 0 : o[0] >> o[1]; });
  }
  const std::vector<Operands> funnel = operands_of({Kind::integer, Kind::integer, Kind::small});
  for (const bool wrap : {false, true}) {
    const auto amount = [=](uint64_t c) { return wrap ? c & 31 : std::min<uint64_t>(c, 32); };
    const std::string mode = wrap ? ".wrap" : ".clamp";
    check("shf.l" + mode + ".b32 %d, %a, %b, %c;", {32, 32, 32, 32}, funnel, [=](const Operands& o) {
      const uint64_t n = amount(o[2]);
      return n == 0 ? o[1] : n == 32 ? o[0] : o[1] << n | o[0] >> (32 - n);
    });
    check("shf.r" + mode + ".b32 %d, %a, %b, %c;", {32, 32, 32, 32}, funnel, [=](const Operands& o) {
      const uint64_t n = amount(o[2]);
      return n == 0 ? o[0] : n == 32 ? o[1] : o[1] << (32 - n) | o[0] >> n;
    });
  }
}

TEST(Logic, Lop3) {
  for (const int table : {0, 1, 0x1E, 0x96, 0xE8, 0xC0, 0x3F, 0x80, 0xAC, 0xFF, 0x6A, 0x15}) {
    const Reference want = [=](const Operands& o) {
      uint64_t r = 0;
      for (int i = 0; i < 32; ++i) {
        const uint64_t at = (o[0] >> i & 1) << 2 | (o[1] >> i & 1) << 1 | (o[2] >> i & 1);
        r |= uint64_t(table >> at & 1) << i;
      }
      return r;
    };
    const std::string operands = ", %a, %b, %c, " + std::to_string(table);
    check("lop3.b32 %d" + operands + ";", {32, 32, 32, 32}, operands_of(kThree), want);
    const std::vector<Operands> with_predicate =
        operands_of({Kind::integer, Kind::integer, Kind::integer, Kind::predicate});
    check("lop3.or.b32 %d|%q" + operands + ", %e;", {32, 32, 32, 32, 1, true}, with_predicate, want,
          [=](const Operands& o) { return want(o) != 0 || o[3]; });
    check("lop3.and.b32 %d|%q" + operands + ", !%e;", {32, 32, 32, 32, 1, true}, with_predicate, want,
          [=](const Operands& o) { return want(o) != 0 && !o[3]; });
  }
}

TEST(Logic, CountingAndFinding) {
  for (const int width : {32, 64}) {
    const std::string bits = ".b" + std::to_string(width) + " %d, %a;";
    const auto bit = [](uint64_t x, int i) { return x >> i & 1; };
    check("popc" + bits, {32, width}, operands_of(kOne), [=](const Operands& o) {
      uint64_t n = 0;
      for (int i = 0; i < width; ++i) n += bit(o[0], i);
      return n;
    });
    check("clz" + bits, {32, width}, operands_of(kOne), [=](const Operands& o) {
      uint64_t n = 0;
      for (int i = width - 1; i >= 0 && !bit(o[0], i); --i) ++n;
      return n;
    });
    check("brev" + bits, {width, width}, operands_of(kOne), [=](const Operands& o) {
      uint64_t r = 0;
      for (int i = 0; i < width; ++i) r |= bit(o[0], i) << (width - 1 - i);
      return r;
    });
    for (const bool is_signed : {false, true}) {
      for (const bool shift : {false, true}) {
        const std::string t = std::string(is_signed ? ".s" : ".u") + std::to_string(width);
        check((shift ? "bfind.shiftamt" : "bfind") + t + " %d, %a;", {32, width}, operands_of(kOne),
              [=](const Operands& o) {
                const uint64_t sign = is_signed ? bit(o[0], width - 1) : 0;
                for (int i = width - 1; i >= 0; --i) {
                  if (bit(o[0], i) != sign) return uint64_t(shift ? width - 1 - i : i);
                }
                return ~uint64_t(0);
              });
      }
    }
  }
}

TEST(Logic, NthSetBit) {
  std::vector<Operands> operands;
  for (const Operands& o : operands_of({Kind::integer, Kind::small, Kind::small})) {
    operands.push_back({o[0], o[1] % 32, uint64_t(int64_t(o[2] % 80) - 40)});
  }
  check("fns.b32 %d, %a, %b, %c;", {32, 32, 32, 32}, operands, [](const Operands& o) {
    const int offset = int32_t(o[2]);
    std::vector<uint64_t> found;  // the ones from base on, in the direction asked for
    for (int i = int(o[1]); i >= 0 && i < 32; i += offset < 0 ? -1 : 1) {
      if (o[0] >> i & 1) found.push_back(uint64_t(i));
    }
    if (offset == 0) return o[0] >> o[1] & 1 ? o[1] : ~uint64_t(0);
    const size_t n = size_t(std::abs(offset)) - 1;
    return n < found.size() ? found[n] : ~uint64_t(0);
  });
}

// Written bit by bit, as the ISA writes them. Positions and lengths are limited to 0 .. 255: in 64
// bits, an H200 does not cut off what is more.
TEST(Logic, BitFields) {
  const auto limited = [](std::vector<Operands> all, size_t first, int width) {
    for (Operands& o : all) {
      if (width == 64) o[first] &= 0xFF, o[first + 1] &= 0xFF;
    }
    return all;
  };
  for (const int width : {32, 64}) {
    for (const bool is_signed : {false, true}) {
      const std::string t = std::string(is_signed ? ".s" : ".u") + std::to_string(width);
      check("bfe" + t + " %d, %a, %b, %c;", {width, width, 32, 32},
            limited(operands_of({Kind::integer, Kind::small, Kind::small}), 1, width),
            [=](const Operands& o) {
              const int pos = int(o[1] & 0xFF), len = int(o[2] & 0xFF), msb = width - 1;
              const uint64_t sign = is_signed && len ? o[0] >> std::min(pos + len - 1, msb) & 1 : 0;
              uint64_t d = 0;
              for (int i = 0; i <= msb; ++i)
                d |= (i < len && pos + i <= msb ? o[0] >> (pos + i) & 1 : sign) << i;
              return d;
            });
    }
    check("bfi.b" + std::to_string(width) + " %d, %a, %b, %c, %e;", {width, width, width, 32, 32},
          limited(operands_of({Kind::integer, Kind::integer, Kind::small, Kind::small}), 2, width),
          [=](const Operands& o) {
            const int pos = int(o[2] & 0xFF), len = int(o[3] & 0xFF);
            uint64_t d = o[1];
            for (int i = 0; i < len && pos + i < width; ++i) {
              d = (d & ~(uint64_t(1) << (pos + i))) | (o[0] >> i & 1) << (pos + i);
            }
            return d;
          });
  }
}

TEST(Logic, MasksAndExtensions) {
  const std::vector<Operands> small = operands_of({Kind::small, Kind::small});
  const std::vector<Operands> operands = operands_of({Kind::integer, Kind::small});
  for (const bool wrap : {false, true}) {
    const std::string mode = wrap ? ".wrap" : ".clamp";
    check("bmsk" + mode + ".b32 %d, %a, %b;", {32, 32, 32}, small, [=](const Operands& o) {
      const uint64_t first = wrap ? o[0] & 31 : o[0], count = wrap ? o[1] & 31 : o[1];
      uint64_t d = 0;
      for (uint64_t i = 0; i < 32; ++i) d |= uint64_t(i >= first && i - first < count) << i;
      return d;
    });
    for (const bool is_signed : {false, true}) {
      check("szext" + mode + (is_signed ? ".s32" : ".u32") + " %d, %a, %b;", {32, 32, 32}, operands,
            [=](const Operands& o) {
              const uint64_t n = wrap ? o[1] & 31 : std::min<uint64_t>(o[1], 32);
              return n == 0 ? 0 : uint64_t(number(o[0], int(n), is_signed));
            });
    }
  }
}

TEST(Logic, Permutations) {
  const std::vector<Operands> operands = operands_of(kThree);
  const auto byte = [](const Operands& o, uint64_t i) {
    return (i < 4 ? o[0] >> 8 * i : o[1] >> (8 * (i - 4))) & 0xFF;
  };
  check("prmt.b32 %d, %a, %b, %c;", {32, 32, 32, 32}, operands, [=](const Operands& o) {
    uint64_t d = 0;
    for (int i = 0; i < 4; ++i) {
      const uint64_t pick = o[2] >> 4 * i & 15, value = byte(o, pick & 7);
      d |= (pick & 8 ? (value & 0x80 ? 0xFF : 0) : value) << 8 * i;
    }
    return d;
  });
  // The ISA's tables, most significant byte first: what selectors 0 to 3 pick.
  const std::pair<const char*, std::array<const char*, 4>> modes[] = {
      {"f4e", {"3210", "4321", "5432", "6543"}}, {"b4e", {"5670", "6701", "7012", "0123"}},
      {"rc8", {"0000", "1111", "2222", "3333"}}, {"ecl", {"3210", "3211", "3222", "3333"}},
      {"ecr", {"0000", "1110", "2210", "3210"}}, {"rc16", {"1010", "3232", "1010", "3232"}}};
  for (const auto& [mode, picks] : modes) {
    check(std::string("prmt.b32.") + mode + " %d, %a, %b, %c;", {32, 32, 32, 32}, operands,
          [=, picks = picks](const Operands& o) {
            uint64_t d = 0;
            for (int i = 0; i < 4; ++i) d = d << 8 | byte(o, uint64_t(picks[o[2] & 3][i] - '0'));
            return d;
          });
  }
}

bool compares(const std::string& how, Wide a, Wide b) {
  if (how == "eq") return a == b;
  if (how == "ne") return a != b;
  if (how == "lt" || how == "lo") return a < b;
  if (how == "le" || how == "ls") return a <= b;
  if (how == "gt" || how == "hi") return a > b;
  return a >= b;
}

TEST(Compare, IntegersIntoPredicates) {
  const std::vector<Operands> operands = operands_of({Kind::integer, Kind::integer, Kind::predicate}, 1000);
  for (const Type& t : kTypes) {
    for (const std::string how : {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}) {
      if (t.is_signed && (how[0] == 'h' || (how[0] == 'l' && how[1] != 't' && how[1] != 'e'))) continue;
      const auto yes = [=](const Operands& o) {
        return compares(how, number(o[0], t.width, t.is_signed), number(o[1], t.width, t.is_signed));
      };
      const Sizes sizes = {1, t.width, t.width, 1, 0, true};
      const std::string tail = "." + t.name + " %d|%q, %a, %b";
      check("setp." + how + tail + ";", sizes, operands, yes, [=](const Operands& o) { return !yes(o); });
      check(
          "setp." + how + ".and" + tail + ", %c;", sizes, operands,
          [=](const Operands& o) { return yes(o) && o[2]; },
          [=](const Operands& o) { return !yes(o) && o[2]; });
      check(
          "setp." + how + ".or" + tail + ", !%c;", sizes, operands,
          [=](const Operands& o) { return yes(o) || !o[2]; },
          [=](const Operands& o) { return !yes(o) || !o[2]; });
      check(
          "setp." + how + ".xor" + tail + ", %c;", sizes, operands,
          [=](const Operands& o) { return yes(o) != bool(o[2]); },
          [=](const Operands& o) { return !yes(o) != bool(o[2]); });
      check("setp." + how + "." + t.name + " %d, %a, %b;", {1, t.width, t.width}, operands, yes);
    }
    check("setp.ne.b" + std::to_string(t.width) + " %d, %a, %b;", {1, t.width, t.width}, operands,
          [](const Operands& o) { return o[0] != o[1]; });
  }
  // The predicate that is combined may be the one that is written.
  check("setp.lt.and.s32 %c|%d, %a, %b, %c;", {1, 32, 32, 1}, operands,
        [](const Operands& o) { return !(int32_t(o[0]) < int32_t(o[1])) && o[2]; });
}

TEST(Compare, IntegersIntoValues) {
  const std::vector<Operands> operands = operands_of({Kind::integer, Kind::integer, Kind::predicate}, 1000);
  const std::tuple<const char*, int, uint64_t> results[] = {{"u32", 32, 0xFFFFFFFF},
                                                            {"s32", 32, 0xFFFFFFFF},
                                                            {"f32", 32, 0x3F800000},
                                                            {"f16", 16, 0x3C00},
                                                            {"bf16", 16, 0x3F80}};
  for (const auto& [result, width, one] : results) {
    for (const Type& t : kTypes) {
      const auto less = [=](const Operands& o) {
        return number(o[0], t.width, t.is_signed) < number(o[1], t.width, t.is_signed);
      };
      const std::string types = std::string(".") + result + "." + t.name + " %d, %a, %b";
      check("set.lt" + types + ";", {width, t.width, t.width}, operands,
            [=, one = one](const Operands& o) { return less(o) ? one : 0; });
      check("set.lt.xor" + types + ", !%c;", {width, t.width, t.width, 1}, operands,
            [=, one = one](const Operands& o) { return less(o) != !o[2] ? one : 0; });
    }
  }
}

TEST(Compare, Selection) {
  const std::vector<Operands> with_predicate =
      operands_of({Kind::integer, Kind::integer, Kind::predicate}, 1000);
  for (const int width : {16, 32, 64}) {
    for (const char kind : {'b', 'u', 's', 'f'}) {
      if (kind == 'f' && width == 16) continue;
      const std::string t = std::string(".") + kind + std::to_string(width);
      check("selp" + t + " %d, %a, %b, %c;", {width, width, width, 1}, with_predicate,
            [](const Operands& o) { return o[2] ? o[0] : o[1]; });
      check("selp" + t + " %d, %a, %b, !%c;", {width, width, width, 1}, with_predicate,
            [](const Operands& o) { return o[2] ? o[1] : o[0]; });
      check("slct" + t + ".s32 %d, %a, %b, %c;", {width, width, width, 32}, operands_of(kThree),
            [](const Operands& o) { return int32_t(o[2]) >= 0 ? o[0] : o[1]; });
      const std::vector<Operands> with_float = operands_of({Kind::integer, Kind::integer, Kind::f32});
      check("slct" + t + ".f32 %d, %a, %b, %c;", {width, width, width, 32}, with_float,
            [](const Operands& o) { return std::bit_cast<float>(uint32_t(o[2])) >= 0 ? o[0] : o[1]; });
      check("slct.ftz" + t + ".f32 %d, %a, %b, %c;", {width, width, width, 32}, with_float,
            [](const Operands& o) {
              const float c = std::bit_cast<float>(uint32_t(o[2]));
              return c >= 0 || (c > -0x1p-126f && c < 0) ? o[0] : o[1];
            });
    }
  }
}

TEST(Mov, RegistersAndImmediates) {
  for (const int width : {16, 32, 64}) {
    check("mov.b" + std::to_string(width) + " %d, %a;", {width, width}, operands_of(kOne),
          [](const Operands& o) { return o[0]; });
  }
  const std::vector<Operands> any = operands_of(kOne, 0);
  check("mov.s16 %d, -3;", {16, 32}, any, [](const Operands&) { return 0xFFFD; });
  check("mov.u64 %d, 0x123456789ABCDEF0;", {64, 32}, any, [](const Operands&) { return 0x123456789ABCDEF0; });
  check("mov.f32 %d, 0f7FC12345;", {32, 32}, any, [](const Operands&) { return 0x7FC12345; });
  check("mov.f32 %d, 1.5;", {32, 32}, any, [](const Operands&) { return 0x3FC00000; });
  check("mov.f64 %d, 0d7FF0000000000001;", {64, 32}, any, [](const Operands&) { return 0x7FF0000000000001; });
  check("mov.u32 %d, WARP_SZ;", {32, 32}, any, [](const Operands&) { return 32; });
  check("add.s32 %d, %a, -7;", {32, 32}, operands_of(kOne), [](const Operands& o) { return o[0] - 7; });
}

TEST(Mov, PacksAndUnpacks) {
  const std::vector<Operands> operands =
      operands_of({Kind::integer, Kind::integer, Kind::integer, Kind::integer});
  check("mov.b32 %d, {%a, %b};", {32, 16, 16}, operands, [](const Operands& o) { return o[1] << 16 | o[0]; });
  check("mov.b64 %d, {%a, %b};", {64, 32, 32}, operands, [](const Operands& o) { return o[1] << 32 | o[0]; });
  check("mov.b64 %d, {%a, %b, %c, %e};", {64, 16, 16, 16, 16}, operands,
        [](const Operands& o) { return o[3] << 48 | o[2] << 32 | o[1] << 16 | o[0]; });
  check(".reg .b16 %x; mov.b32 {%x, %d}, %a;", {16, 32}, operands,
        [](const Operands& o) { return o[0] >> 16; });
  check("mov.b32 {%d, _}, %a;", {16, 32}, operands, [](const Operands& o) { return o[0]; });
  check("mov.b64 {_, %d}, %a;", {32, 64}, operands, [](const Operands& o) { return o[0] >> 32; });
  check(".reg .b16 %x, %y, %z; mov.b64 {%x, %y, %d, %z}, %a;", {16, 64}, operands,
        [](const Operands& o) { return o[0] >> 32; });
  check(".reg .b128 %x, %z; .reg .b64 %y; mov.b128 %x, {%a, %b}; mov.b128 %z, %x; mov.b128 {%y, %d}, %z;",
        {64, 64, 64}, operands, [](const Operands& o) { return o[1]; });
  check(".reg .b128 %x; .reg .b64 %y; mov.b128 %x, {%a, %b, %c, %e}; mov.b128 {%d, %y}, %x;",
        {64, 32, 32, 32, 32}, operands, [](const Operands& o) { return o[1] << 32 | o[0]; });
  check(".reg .b8 %x<4>; mov.b32 {%x0, %x1, %x2, %x3}, %a; mov.b32 %d, {%x3, %x2, %x1, %x0};", {32, 32},
        operands, [](const Operands& o) { return __builtin_bswap32(uint32_t(o[0])); });
  check(".reg .b8 %x<2>; mov.b16 {%x0, %x1}, %a; mov.b16 %d, {%x1, %x0};", {16, 16}, operands,
        [](const Operands& o) { return __builtin_bswap16(uint16_t(o[0])); });
  check("mov.b64 {%a, %b}, %c; mov.b64 %d, {%b, %a};", {64, 32, 32, 64}, operands,
        [](const Operands& o) { return o[2] << 32 | o[2] >> 32; });
}

// Only lanes whose guard is true are written.
TEST(Mov, LeavesOtherLanesAlone) {
  const std::vector<Operands> operands = operands_of({Kind::integer, Kind::integer, Kind::predicate});
  check("mov.b32 %d, %b; @%c mov.b32 %d, %a;", {32, 32, 32, 1}, operands,
        [](const Operands& o) { return o[2] ? o[0] : o[1]; });
  check("mov.b32 %d, %b; @!%c add.u32 %d, %a, %b;", {32, 32, 32, 1}, operands,
        [](const Operands& o) { return o[2] ? o[1] : o[0] + o[1]; });
  check("setp.eq.u32 %d, %a, %a; @%c setp.lt.u32 %d, %a, %b;", {1, 32, 32, 1}, operands,
        [](const Operands& o) { return o[2] ? o[0] < o[1] : 1; });
  check(".reg .b16 %x; mov.b16 %x, 7; mov.b16 %d, 9; @%c mov.b32 {%x, %d}, %a;", {16, 32, 0, 1}, operands,
        [](const Operands& o) { return o[2] ? o[0] >> 16 : 9; });
}

}  // namespace
