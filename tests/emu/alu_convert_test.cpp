// SPDX-License-Identifier: MIT
//
// Conversions on the emulator: every pair of types in every rounding over special and random
// numbers, all 2^16 codes of 16-bit sources and all 2^8 of fp8, and a sweep over f32 for each
// narrow float. Expected values are computed in long double, which holds every source exactly, from
// the definition of each format.

#include <cmath>

#include "alu_cases.h"

namespace {

using namespace emu_test;
using Exact = long double;

struct Float {
  std::string name;
  int bits, exponent_bits, mantissa_bits;
  Kind kind;
  bool infinities = true;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int least() const { return 1 - bias(); }
  uint64_t sign() const { return uint64_t(1) << (exponent_bits + mantissa_bits); }
  uint64_t infinity() const { return ((uint64_t(1) << exponent_bits) - 1) << mantissa_bits; }
  uint64_t largest() const { return infinities ? infinity() - 1 : sign() - 2; }
  uint64_t nan() const { return sign() - 1; }
};
const Float kF16 = {"f16", 16, 5, 10, Kind::f16}, kBF16 = {"bf16", 16, 8, 7, Kind::bf16},
            kF32 = {"f32", 32, 8, 23, Kind::f32}, kF64 = {"f64", 64, 11, 52, Kind::f64},
            kTF32 = {"tf32", 32, 8, 10, Kind::f32}, kE5M2 = {"e5m2", 8, 5, 2, Kind::integer},
            kE4M3 = {"e4m3", 8, 4, 3, Kind::integer, false};

Exact value_of(const Float& f, uint64_t code) {
  const int field = int(code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1));
  const uint64_t fraction = code & ((uint64_t(1) << f.mantissa_bits) - 1);
  const Exact sign = code & f.sign() ? -1 : 1;
  if ((code & (f.sign() - 1)) > f.largest())
    return f.infinities && fraction == 0 ? sign * Exact(INFINITY) : Exact(NAN);
  const Exact significand = Exact(fraction) + (field ? Exact(uint64_t(1) << f.mantissa_bits) : 0);
  return sign * ldexpl(significand, std::max(field, 1) - f.bias() - f.mantissa_bits);
}

enum Rounding { rn, rz, rm, rp, rna };
const char* const kRoundings[] = {".rn", ".rz", ".rm", ".rp", ".rna"};
const char* const kWholeRoundings[] = {".rni", ".rzi", ".rmi", ".rpi"};

Exact whole(Exact x, Rounding rounding) {
  if (std::isnan(x) || std::isinf(x)) return x;
  const Exact below = floorl(x), rest = x - below;
  Exact r;
  switch (rounding) {
    case rz:
      r = truncl(x);
      break;
    case rm:
      r = below;
      break;
    case rp:
      r = ceill(x);
      break;
    case rna:
      r = roundl(x);
      break;
    default:
      r = rest > 0.5L || (rest == 0.5L && fmodl(below, 2) != 0) ? below + 1 : below;
  }
  return copysignl(r, x);
}

// Returns what a NaN becomes: the format's own; to and from f64 it keeps sign and payload, and
// is made quiet.
uint64_t nan_of(const Float& to, const Float& from, uint64_t code) {
  if (to.bits != 64 && from.bits != 64) return to.nan();
  const uint64_t fraction = code & ((uint64_t(1) << from.mantissa_bits) - 1);
  const int more = to.mantissa_bits - from.mantissa_bits;
  const uint64_t payload = more > 0 ? fraction << more : fraction >> -more, quiet = uint64_t(1)
                                                                                    << (to.mantissa_bits - 1);
  return (code & from.sign() ? to.sign() : 0) | to.infinity() | quiet | payload;
}

uint64_t code_of(const Float& f, Exact x, Rounding rounding, bool finite = false) {
  if (std::isnan(x)) return f.nan();
  const uint64_t sign = std::signbit(x) ? f.sign() : 0;
  uint64_t magnitude = f.largest() + 1;
  if (x == 0) return sign;
  bool beyond = std::isinf(x), to_largest = finite;
  if (!beyond) {
    const int exponent = std::max(ilogbl(x), f.least());
    const Exact unit = ldexpl(1, exponent - f.mantissa_bits), steps = fabsl(whole(x / unit, rounding));
    beyond = steps * unit > fabsl(value_of(f, f.largest()));
    if (!beyond) magnitude = uint64_t(steps) + (uint64_t(exponent - f.least()) << f.mantissa_bits);
    to_largest = finite || rounding == rz || rounding == (x < 0 ? rp : rm);
  }
  return sign | (beyond && to_largest ? f.largest() : magnitude);
}

struct Whole {
  std::string name;
  int bits;
  bool is_signed;
};
const Whole kWholes[] = {{"u8", 8, false}, {"u16", 16, false}, {"u32", 32, false}, {"u64", 64, false},
                         {"s8", 8, true},  {"s16", 16, true},  {"s32", 32, true},  {"s64", 64, true}};
int register_bits(int bits) { return std::max(bits, 16); }

Exact number(const Whole& t, uint64_t bits) {
  bits = t.bits < 64 ? bits & ((uint64_t(1) << t.bits) - 1) : bits;
  if (!t.is_signed || !(bits >> (t.bits - 1))) return Exact(bits);
  return Exact(int64_t(bits << (64 - t.bits)) >> (64 - t.bits));
}
// Returns what the register holds: a narrower signed number is sign-extended.
uint64_t clamped(const Whole& t, Exact x) {
  const Exact most = ldexpl(1, t.is_signed ? t.bits - 1 : t.bits) - 1, least = t.is_signed ? -most - 1 : 0;
  if (x >= most)
    return t.bits == 64 && !t.is_signed ? ~uint64_t(0)
                                        : (uint64_t(1) << (t.is_signed ? t.bits - 1 : t.bits)) - 1;
  return x <= least ? uint64_t(int64_t(least)) : x < 0 ? uint64_t(int64_t(x)) : uint64_t(x);
}

Exact saturated(Exact x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
Exact flushed(const Float& f, Exact x) {
  return f.bits == 32 && fabsl(x) < ldexpl(1, -126) ? copysignl(0, x) : x;
}

TEST(Convert, IntegersIntoIntegers) {
  for (const Whole& to : kWholes) {
    for (const Whole& from : kWholes) {
      for (const int to_register : {16, 32, 64}) {
        for (const int from_register : {16, 32, 64}) {
          if (to_register < to.bits || from_register < from.bits) continue;
          check("cvt." + to.name + "." + from.name + " %d, %a;", {to_register, from_register},
                operands_of({Kind::integer}, 500), [&](const Operands& o) {
                  const Exact x = number(from, o[0]);
                  const uint64_t bits = x < 0 ? uint64_t(int64_t(x)) : uint64_t(x);
                  const Exact kept = number(to, bits);
                  return kept < 0 ? uint64_t(int64_t(kept)) : uint64_t(kept);
                });
        }
      }
      const bool fits =
          to.is_signed == from.is_signed ? to.bits >= from.bits : to.is_signed && to.bits > from.bits;
      if (fits) continue;
      check("cvt.sat." + to.name + "." + from.name + " %d, %a;",
            {register_bits(to.bits), register_bits(from.bits)}, operands_of({Kind::integer}),
            [&](const Operands& o) { return clamped(to, number(from, o[0])); });
    }
  }
}

TEST(Convert, IntegersIntoFloats) {
  for (const Float& to : {kF16, kBF16, kF32, kF64}) {
    for (const Whole& from : kWholes) {
      if (from.bits == 8 && to.name == "bf16") continue;
      for (const Rounding r : {rn, rz, rm, rp}) {
        for (const bool sat : {false, true}) {
          if (sat && to.name == "bf16") continue;
          check(std::string("cvt") + kRoundings[r] + (sat ? ".sat." : ".") + to.name + "." + from.name +
                    " %d, %a;",
                {to.bits, register_bits(from.bits)}, operands_of({Kind::integer}), [&](const Operands& o) {
                  const Exact x = number(from, o[0]);
                  return code_of(to, sat ? saturated(x) : x, r);
                });
        }
      }
    }
  }
}

TEST(Convert, FloatsIntoIntegers) {
  for (const Whole& to : kWholes) {
    for (const Float& from : {kF16, kBF16, kF32, kF64}) {
      if (to.bits == 8 && from.name == "bf16") continue;
      for (const Rounding r : {rn, rz, rm, rp}) {
        for (const bool ftz : {false, true}) {
          if (ftz && from.bits != 32) continue;
          const std::string tail = to.name + "." + from.name + " %d, %a;";
          const Reference want = [&](const Operands& o) {
            const Exact x = value_of(from, o[0]);
            const uint64_t top = to.is_signed ? ~uint64_t(0) << (to.bits - 1) : uint64_t(1) << (to.bits - 1);
            if (std::isnan(x)) return from.bits == 64 || to.bits == 64 ? top : 0;
            return clamped(to, whole(ftz ? flushed(from, x) : x, r));
          };
          const std::string head = std::string("cvt") + kWholeRoundings[r] + (ftz ? ".ftz" : "");
          const Sizes sizes = {register_bits(to.bits), from.bits};
          check(head + "." + tail, sizes, operands_of({from.kind}), want);
          if (from.name != "bf16") check(head + ".sat." + tail, sizes, operands_of({from.kind}), want);
        }
      }
    }
  }
}

TEST(Convert, FloatsIntoWholeFloats) {
  for (const Float& f : {kF16, kBF16, kF32, kF64}) {
    for (const Rounding r : {rn, rz, rm, rp}) {
      for (const bool sat : {false, true}) {
        for (const bool ftz : {false, true}) {
          if ((ftz && f.bits != 32) || (sat && f.name == "bf16")) continue;
          check(std::string("cvt") + kWholeRoundings[r] + (ftz ? ".ftz" : "") + (sat ? ".sat." : ".") +
                    f.name + "." + f.name + " %d, %a;",
                {f.bits, f.bits}, operands_of({f.kind}), [&](const Operands& o) {
                  Exact x = value_of(f, o[0]);
                  if (std::isnan(x) && !sat) return nan_of(f, f, o[0]);
                  x = whole(ftz ? flushed(f, x) : x, r);
                  return code_of(f, sat ? saturated(x) : x, rn);
                });
        }
      }
    }
  }
}

TEST(Convert, FloatsIntoFloats) {
  for (const Float& to : {kF16, kBF16, kF32, kF64}) {
    for (const Float& from : {kF16, kBF16, kF32, kF64}) {
      if (to.name == from.name) continue;
      const bool narrows = to.bits <= from.bits;
      for (const Rounding r : {rn, rz, rm, rp}) {
        if (r != rn && !narrows) continue;
        for (const bool ftz : {false, true}) {
          for (const bool sat : {false, true}) {
            if (ftz && to.bits != 32 && from.bits != 32) continue;
            if (sat && (to.name == "bf16" || from.name == "bf16")) continue;
            check(std::string("cvt") + (narrows ? kRoundings[r] : "") + (ftz ? ".ftz" : "") +
                      (sat ? ".sat." : ".") + to.name + "." + from.name + " %d, %a;",
                  {to.bits, from.bits}, operands_of({from.kind}, 6000), [&](const Operands& o) {
                    Exact x = value_of(from, o[0]);
                    if (std::isnan(x) && !sat) {  // bf16 is f32 cut in the middle
                      const bool cut = from.name == "bf16" && to.bits == 32 && !ftz;
                      return cut ? o[0] << 16 : nan_of(to, from, ftz && from.bits == 32 ? 0x7FFFFFFF : o[0]);
                    }
                    if (ftz && to.name != "f16") x = flushed(from, x);
                    if (sat) x = saturated(x);
                    const uint64_t code = code_of(to, x, r);
                    return ftz && to.bits == 32 && (code & (to.sign() - 1)) < 0x800000 ? code & to.sign()
                                                                                       : code;
                  });
          }
        }
      }
    }
  }
  for (const Float& f : {kF16, kBF16, kF32, kF64}) {
    check("cvt." + f.name + "." + f.name + " %d, %a;", {f.bits, f.bits}, operands_of({f.kind}),
          [&](const Operands& o) {
            const Exact x = value_of(f, o[0]);
            if (!std::isnan(x)) return code_of(f, x, rn);
            return f.bits == 16 ? f.nan() : o[0];
          });
  }
  check("cvt.sat.f32.f32 %d, %a;", {32, 32}, operands_of({Kind::f32}),
        [](const Operands& o) { return code_of(kF32, saturated(value_of(kF32, o[0])), rn); });
  check("cvt.ftz.f32.f32 %d, %a;", {32, 32}, operands_of({Kind::f32}),
        [](const Operands& o) { return code_of(kF32, flushed(kF32, value_of(kF32, o[0])), rn); });
}

// ---- all codes of 16-bit sources, and f32 around every number and tie of the narrow formats ----

std::vector<Operands> all_codes() {
  std::vector<Operands> all;
  for (uint64_t code = 0; code < 0x10000; ++code) all.push_back({code, 0, 0, 0});
  return all;
}
// Every `step`th upper half of an f32, with lower halves at and beside the ties.
std::vector<Operands> sweep(uint64_t step) {
  std::vector<Operands> all;
  for (uint64_t upper = 0; upper < 0x10000; upper += step) {
    for (const uint64_t lower : {0x0000, 0x0001, 0x0FFF, 0x1000, 0x7FFF, 0x8000, 0xFFFF}) {
      all.push_back({upper << 16 | lower, (upper * 0x9E37 + 0x55) % 0x10000 << 16 | lower, 0, 0});
    }
  }
  return all;
}

TEST(Convert, EveryHalf) {
  const std::vector<Operands> every = all_codes();
  for (const Float& from : {kF16, kBF16}) {
    for (const Float& to : {kF32, kF64}) {
      check("cvt." + to.name + "." + from.name + " %d, %a;", {to.bits, 16}, every, [&](const Operands& o) {
        const Exact x = value_of(from, o[0]);
        if (!std::isnan(x)) return code_of(to, x, rn);
        return from.name == "bf16" && to.bits == 32 ? o[0] << 16 : nan_of(to, from, o[0]);
      });
    }
    const Float& other = from.name == "f16" ? kBF16 : kF16;
    check("cvt." + other.name + "." + from.name + " %d, %a;", {16, 16}, every,  // as .rn
          [&](const Operands& o) { return code_of(other, value_of(from, o[0]), rn); });
    for (const Rounding r : {rn, rz, rm, rp}) {
      check(std::string("cvt") + kRoundings[r] + "." + other.name + "." + from.name + " %d, %a;", {16, 16},
            every, [&](const Operands& o) { return code_of(other, value_of(from, o[0]), r); });
      check(std::string("cvt") + kWholeRoundings[r] + ".s32." + from.name + " %d, %a;", {32, 16}, every,
            [&](const Operands& o) {
              const Exact x = value_of(from, o[0]);
              return std::isnan(x) ? 0 : clamped(kWholes[6], whole(x, r));
            });
    }
  }
}

// cvt.T.f32, alone and in pairs: %a goes to the upper half.
TEST(Convert, SweepIntoHalves) {
  const std::vector<Operands> every = sweep(1), some = sweep(11);
  for (const Float& to : {kF16, kBF16}) {
    for (const Rounding r : {rn, rz}) {
      for (const bool relu : {false, true}) {
        for (const bool finite : {false, true}) {
          const auto one = [&](uint64_t code) {
            Exact x = value_of(kF32, code);
            if (relu && !(x > 0) && !std::isnan(x)) x = 0;
            return code_of(to, x, r, finite);
          };
          const std::vector<Operands>& numbers = r == rn && !relu && !finite ? every : some;
          const std::string head = std::string("cvt") + kRoundings[r] + (relu ? ".relu" : "") +
                                   (finite ? ".satfinite." : ".") + to.name;
          check(head + ".f32 %d, %a;", {16, 32}, numbers, [&](const Operands& o) { return one(o[0]); });
          check(head + "x2.f32 %d, %a, %b;", {32, 32, 32}, numbers,
                [&](const Operands& o) { return one(o[0]) << 16 | one(o[1]); });
        }
      }
    }
    for (const Rounding r : {rm, rp}) {
      check(std::string("cvt") + kRoundings[r] + "." + to.name + ".f32 %d, %a;", {16, 32}, some,
            [&](const Operands& o) { return code_of(to, value_of(kF32, o[0]), r); });
    }
  }
}

// An H200's .rna does not look at NaN: it is cut, and .satfinite takes a unit off what has the
// exponent of infinity.
TEST(Convert, SweepIntoTf32) {
  const auto tf32 = [](uint64_t code, Rounding r, bool relu, bool finite) {
    Exact x = value_of(kF32, code);
    if (relu && !(x > 0) && !std::isnan(x)) x = 0;
    return code_of(kTF32, x, r, finite) << 13;
  };
  const std::vector<Operands> numbers = sweep(3);
  for (const bool flag : {false, true}) {
    check(std::string("cvt.rna") + (flag ? ".satfinite" : "") + ".tf32.f32 %d, %a;", {32, 32}, numbers,
          [=](const Operands& o) {
            if (!std::isnan(value_of(kF32, o[0]))) return tf32(o[0], rna, false, flag);
            return (o[0] & ~uint64_t(0x1FFF)) - (flag ? 0x2000 : 0);
          });
    for (const Rounding r : {rn, rz}) {
      check(std::string("cvt") + kRoundings[r] + (flag ? ".relu" : "") + ".tf32.f32 %d, %a;", {32, 32},
            numbers, [=](const Operands& o) { return tf32(o[0], r, flag, false); });
    }
  }
}

TEST(Convert, SweepIntoFp8) {
  const std::vector<Operands> numbers = sweep(1), every = paired(all_codes());
  for (const Float& to : {kE4M3, kE5M2}) {
    for (const bool relu : {false, true}) {
      const auto one = [&](Exact x) {
        if (relu && !(x > 0) && !std::isnan(x)) x = 0;
        return code_of(to, x, rn, true);
      };
      const std::string head = std::string("cvt.rn.satfinite.") + (relu ? "relu." : "") + to.name + "x2.";
      check(head + "f32 %d, %a, %b;", {16, 32, 32}, numbers,
            [&](const Operands& o) { return one(value_of(kF32, o[0])) << 8 | one(value_of(kF32, o[1])); });
      check(head + "f16x2 %d, %a;", {16, 32}, every, [&](const Operands& o) {
        return one(value_of(kF16, o[0] >> 16)) << 8 | one(value_of(kF16, o[0] & 0xFFFF));
      });
    }
  }
}
TEST(Convert, EveryFp8) {
  for (const Float& from : {kE4M3, kE5M2}) {
    for (const bool relu : {false, true}) {
      const auto one = [&](uint64_t code) {
        Exact x = value_of(from, code & 0xFF);
        if (relu && !(x > 0) && !std::isnan(x)) x = 0;
        return code_of(kF16, x, rn);
      };
      check(std::string("cvt.rn.") + (relu ? "relu." : "") + "f16x2." + from.name + "x2 %d, %a;", {32, 16},
            all_codes(), [&](const Operands& o) { return one(o[0] >> 8) << 16 | one(o[0]); });
    }
  }
}

TEST(Convert, PacksClampedIntegers) {
  const std::vector<Operands> operands = operands_of({Kind::integer, Kind::integer, Kind::integer});
  for (const int bits : {16, 8, 4, 2}) {
    for (const bool is_signed : {false, true}) {
      const int64_t most = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1,
                    least = is_signed ? -most - 1 : 0;
      const auto one = [=](uint64_t x) {
        return uint64_t(std::clamp<int64_t>(int32_t(x), least, most)) & ((1u << bits) - 1);
      };
      const std::string type = (is_signed ? "s" : "u") + std::to_string(bits);
      check("cvt.pack.sat." + type + (bits == 16 ? ".s32 %d, %a, %b;" : ".s32.b32 %d, %a, %b, %c;"),
            {32, 32, 32, bits == 16 ? 0 : 32}, operands, [=](const Operands& o) {
              return (bits == 16 ? 0 : o[2] << 2 * bits) | one(o[0]) << bits | one(o[1]);
            });
    }
  }
}

// ---- addresses ----

TEST(Address, WindowsOfGenericAddresses) {
  const std::string text = R"(.version 9.0
.target sm_90a
.address_size 64
.global .align 8 .b64 g;
.const .align 8 .b64 k[2] = {5, 6};
.visible .entry f(.param .u64 out)
{
  .shared .align 8 .b64 s[64];
  .local .align 8 .b64 l[4];
  .reg .b64 %o, %t, %off, %v<8>, %x, %y;
  .reg .b32 %r, %m;
  .reg .pred %p;
  ld.param.u64 %o, [out];
  mov.u32 %r, %tid.x;
  mul.wide.u32 %off, %r, 8;
  mov.u64 %v0, g;
  cvta.global.u64 %v0, %v0;
  cvta.const.u64 %v1, k+8;
  mov.u64 %x, s;
  add.u64 %x, %x, %off;
  cvta.shared.u64 %v2, %x;
  mov.u64 %y, l;
  cvta.local.u64 %v3, %y;
  cvta.param.u64 %v4, out;
  st.u64 [%v0], 7;
  ld.u64 %x, [%v1];
  st.u64 [%v2], %off;
  st.u64 [%v3], %off;
  ld.u64 %y, [%v4];
  sub.u64 %y, %y, %o;
  add.u64 %x, %x, %y;
  cvta.to.shared.u64 %v5, %v2;
  ld.shared.u64 %y, [%v5];
  mul.lo.u64 %y, %y, 10;
  add.u64 %x, %x, %y;
  cvta.to.local.u64 %v5, %v3;
  ld.local.u64 %y, [%v5];
  mul.lo.u64 %y, %y, 100000;
  add.u64 %x, %x, %y;
  mad.lo.u64 %t, %off, 2, %o;
  st.global.u64 [%t], %x;
  mov.u32 %m, 0;
)";
  std::string body;
  const char* const spaces[] = {"global", "shared", "local", "const", "param", "shared::cluster"};
  int bit = 0;
  for (int v = 0; v < 5; ++v) {
    for (const char* space : spaces) {
      body += std::string("isspacep.") + space + " %p, %v" + std::to_string(v) + ";\n@%p or.b32 %m, %m, " +
              std::to_string(1u << bit++) + ";\n";
    }
  }
  std::vector<Buffer> buffers = {Buffer(64 * 16)};
  run_ptx(text + body + "st.global.u32 [%t+8], %m;\nret;\n}\n", buffers, {1, 64});
  const std::vector<uint64_t> got = values_of<uint64_t>(buffers[0]);
  // Rows: global, const, shared, local and parameter address; bits: the spaces above. Parameters
  // are global, too.
  const uint64_t want = 0b000001 | 0b001000 << 6 | 0b100010 << 12 | 0b000100 << 18 | 0b010001 << 24;
  for (uint64_t thread = 0; thread < 64; ++thread) {
    EXPECT_EQ(got[2 * thread], 6 + 80 * thread + 800000 * thread) << thread;
    EXPECT_EQ(got[2 * thread + 1], want) << thread;
  }
}

}  // namespace
