// SPDX-License-Identifier: MIT
//
// One instruction, many operands: a kernel in which each thread executes the instruction once, and
// a host function that says what it must give. The threads of a warp have different operands.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <functional>
#include <random>

#include "common/kernel/error.h"
#include "run_ptx.h"

namespace emu_test {

using Operands = std::array<uint64_t, 4>;  // a, b, c, e
using Reference = std::function<uint64_t(const Operands&)>;

// Bits of %d and of %a, %b, %c, %e; 1 is a predicate, 0 is not there. %q is a second
// destination, a predicate.
struct Sizes {
  int d = 32, a = 32, b = 0, c = 0, e = 0;
  bool q = false;
};

inline std::string declare(const char* name, int bits) {
  if (bits == 0) return "";
  return ".reg " + (bits == 1 ? std::string(".pred") : ".b" + std::to_string(bits)) + " " + name + ";\n";
}
inline std::string load(const char* name, int bits, int index) {
  if (bits == 0) return "";
  const std::string address = "[%in+" + std::to_string(8 * index) + "];\n";
  if (bits == 1) return "ld.global.u32 %word, " + address + "setp.ne.u32 " + name + ", %word, 0;\n";
  return "ld.global.b" + std::to_string(bits) + " " + name + ", " + address;
}
inline std::string store(const char* name, int bits, int index) {
  const std::string address = "[%out+" + std::to_string(8 * index) + "], ";
  if (bits == 1)
    return std::string("selp.u32 %word, 1, 0, ") + name + ";\nst.global.u32 " + address + "%word;\n";
  return "st.global.b" + std::to_string(bits) + " " + address + name + ";\n";
}

inline std::string kernel_of(const std::string& instruction, const Sizes& sizes) {
  std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry f(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b64 %in, %out, %far;\n.reg .b32 %i, %n, %t, %word;\n";
  text += declare("%d", sizes.d) + declare("%a", sizes.a) + declare("%b", sizes.b) + declare("%c", sizes.c) +
          declare("%e", sizes.e) + (sizes.q ? declare("%q", 1) : "");
  text +=
      "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
      "mov.u32 %i, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %t, %tid.x;\nmad.lo.u32 %i, %i, %n, %t;\n"
      "mul.wide.u32 %far, %i, 32;\nadd.u64 %in, %in, %far;\n"
      "mul.wide.u32 %far, %i, 16;\nadd.u64 %out, %out, %far;\n";
  text += load("%a", sizes.a, 0) + load("%b", sizes.b, 1) + load("%c", sizes.c, 2) + load("%e", sizes.e, 3);
  text += "{\n" + instruction + "\n}\n" + store("%d", sizes.d, 0) + (sizes.q ? store("%q", 1, 1) : "");
  return text + "ret;\n}\n";
}

struct Result {
  uint64_t d = 0, q = 0;
};
inline std::vector<Result> results_of(const std::string& instruction, const Sizes& sizes,
                                      std::vector<Operands> operands) {
  constexpr size_t kThreads = 128;
  const size_t count = operands.size(), blocks = (count + kThreads - 1) / kThreads;
  for (size_t i = 0; operands.size() < blocks * kThreads; ++i) operands.push_back(operands[i]);
  std::vector<Buffer> buffers = {buffer_of(operands), Buffer(operands.size() * sizeof(Result))};
  run_ptx(kernel_of(instruction, sizes), buffers, {int(blocks), int(kThreads)});
  std::vector<Result> results = values_of<Result>(buffers[1]);
  results.resize(count);
  return results;
}

inline uint64_t low_bits(uint64_t x, int bits) {
  return bits == 1 ? (uint32_t(x) != 0) : bits >= 64 ? x : x & ((uint64_t(1) << bits) - 1);
}

// Executes the instruction for all operands and compares %d, and %q with the other reference.
inline void check(const std::string& instruction, const Sizes& sizes, const std::vector<Operands>& operands,
                  const Reference& d, const Reference& q = nullptr) {
  SCOPED_TRACE(instruction);
  std::vector<Result> results;
  try {
    results = results_of(instruction, sizes, operands);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
    return;
  }
  int wrong = 0;
  for (size_t i = 0; i < operands.size() && wrong < 4; ++i) {
    const Operands o = {low_bits(operands[i][0], sizes.a), low_bits(operands[i][1], sizes.b),
                        low_bits(operands[i][2], sizes.c), low_bits(operands[i][3], sizes.e)};
    const uint64_t want = low_bits(d(o), sizes.d), want_q = q ? low_bits(q(o), 1) : 0;
    if (results[i].d == want && (!q || results[i].q == want_q)) continue;
    ++wrong;
    ADD_FAILURE() << gg::format("a=%" PRIx64 " b=%" PRIx64 " c=%" PRIx64 " e=%" PRIx64 ": got %" PRIx64
                                ", expected %" PRIx64,
                                o[0], o[1], o[2], o[3], results[i].d, want)
                  << (q ? gg::format("; second got %d, expected %d", int(results[i].q), int(want_q)) : "");
  }
}

// ---- operands: special values in all combinations (as many as fit), and random ones ----

enum class Kind { integer, f16, bf16, f32, f64, small, predicate };

// clang-format off
inline const std::vector<uint64_t> kIntegers = {
    0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7FFE, 0x7FFF,
    0x8000, 0x8001, 0xFFFF, 0x10000, 0x7FFFFF, 0x800000, 0xFFFFFF, 0x7FFF8000, 0x7FFFFFFF, 0x80000000,
    0x80000001, 0x80008000, 0xFFFFFFFE, 0xFFFFFFFF, 0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000,
    0x8000000000000001, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF};
inline const std::vector<uint64_t> kF16Numbers = {
    0, 0x8000, 1, 0x8001, 0x3FF, 0x83FF, 0x400, 0x8400, 0x401, 0x3BFF, 0x3C00, 0xBC00, 0x3C01, 0x3800,
    0xB800, 0x3801, 0x4000, 0x4200, 0x4100, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7FFF,
    0xFFFF, 0x7C01, 0xFD23, 0x7FF7, 0xFFF7, 0x1400, 0x0C00, 0x5BFF, 0x6400};
inline const std::vector<uint64_t> kBF16Numbers = {
    0, 0x8000, 1, 0x8001, 0x7F, 0x807F, 0x80, 0x8080, 0x81, 0x3F7F, 0x3F80, 0xBF80, 0x3F81, 0x3F00,
    0xBF00, 0x4000, 0x4040, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x7FFF, 0xFFFF, 0x7F81,
    0xFF93, 0x7FF7, 0xFFF7, 0x1F80, 0x0D80, 0x5F80, 0x4300};
inline const std::vector<uint64_t> kF32Numbers = {
    0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x807FFFFF, 0x800000, 0x80800000, 0x800001, 0x3F7FFFFF,
    0x3F800000, 0xBF800000, 0x3F800001, 0x3F000000, 0xBF000000, 0x3FC00000, 0x40200000, 0xC0200000,
    0x4B000001, 0x4F000000, 0x4EFFFFFF, 0x5F000000, 0xCF000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
    0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFABCDEF, 0x7FFFFFFF, 0x7E800000, 0x7F000000,
    0x20000000, 0x33800000};
inline const std::vector<uint64_t> kF64Numbers = {
    0, 0x8000000000000000, 1, 0x8000000000000001, 0xFFFFFFFFFFFFF, 0x10000000000000, 0x8010000000000000,
    0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FF0000000000001, 0x3FE0000000000000,
    0x4004000000000000, 0xC004000000000000, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0x43E0000000000000,
    0xC3E0000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
    0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0xFFF4567812345678, 0x47EFFFFFF0000000,
    0x36A0000000000000, 0x3810000000000000, 0x380FFFFFFFFFFFFF, 0xB80FFFFFF0000001, 0x3F10000000000000,
    0x3F0FFFFFFFFFFFFF, 0x7FF8ABCDEF012345};
inline const std::vector<uint64_t> kSmall = {
    0, 1, 2, 7, 8, 15, 16, 17, 23, 24, 30, 31, 32, 33, 47, 48, 62, 63, 64, 65, 127, 128, 255, 256, 257,
    0x80000000, ~0u, 0x120};
inline const std::vector<uint64_t> kPredicates = {
    0, 1};
// clang-format on

inline const std::vector<uint64_t>& specials(Kind kind) {
  switch (kind) {
    case Kind::integer:
      return kIntegers;
    case Kind::f16:
      return kF16Numbers;
    case Kind::bf16:
      return kBF16Numbers;
    case Kind::f32:
      return kF32Numbers;
    case Kind::f64:
      return kF64Numbers;
    case Kind::small:
      return kSmall;
    case Kind::predicate:
      return kPredicates;
  }
  return kIntegers;
}

inline uint64_t random_value(Kind kind, std::mt19937_64& random) {
  const uint64_t x = random();
  const auto near_one = [&](int mantissa_bits, int exponent_bits, uint64_t spread) {
    // Exponents near that of one, so that sums and products of random numbers meet.
    const uint64_t bias = (uint64_t(1) << (exponent_bits - 1)) - 1,
                   field = bias - spread / 2 + (x >> 52) % spread;
    const uint64_t fraction = x & ((uint64_t(1) << mantissa_bits) - 1);
    return (x >> 63) << (mantissa_bits + exponent_bits) | field << mantissa_bits | fraction;
  };
  const bool wild = x >> 40 & 1;
  switch (kind) {
    case Kind::integer:
      return random() >> (x & 63);
    case Kind::f16:
      return wild ? x & 0xFFFF : near_one(10, 5, 12);
    case Kind::bf16:
      return wild ? x & 0xFFFF : near_one(7, 8, 16);
    case Kind::f32:
      return wild ? x & 0xFFFFFFFF : near_one(23, 8, 30);
    case Kind::f64:
      return wild ? x : near_one(52, 11, 40);
    case Kind::small:
      return x % 70;
    case Kind::predicate:
      return x & 1;
  }
  return x;
}

inline std::vector<Operands> operands_of(const std::vector<Kind>& kinds, int random_count = 3000) {
  std::mt19937_64 random(20240607);
  std::vector<Operands> all;
  size_t combinations = 1;
  for (const Kind kind : kinds) combinations *= specials(kind).size();
  constexpr size_t kMost = 4000;
  const bool every = combinations <= kMost;
  for (size_t i = 0; i < std::min(combinations, kMost); ++i) {
    Operands o{};
    size_t rest = every ? i : random() % combinations;
    for (size_t k = 0; k < kinds.size(); ++k) {
      o[k] = specials(kinds[k])[rest % specials(kinds[k]).size()];
      rest /= specials(kinds[k]).size();
    }
    all.push_back(o);
  }
  for (int i = 0; i < random_count; ++i) {
    Operands o{};
    for (size_t k = 0; k < kinds.size(); ++k) o[k] = random_value(kinds[k], random);
    if (kinds.size() > 1 && i % 16 == 0) o[1] = o[0];  // equal operands
    all.push_back(o);
  }
  return all;
}

// setp and set: the ordered comparisons, the same ones or unordered, and the two of NaN alone.
inline bool compares(const std::string& how, double a, double b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if (how == "num") return !unordered;
  if (how == "nan") return unordered;
  if (unordered) return how.size() == 3;
  const std::string ordered = how.substr(0, 2);
  if (ordered == "eq") return a == b;
  if (ordered == "ne") return a != b;
  if (ordered == "lt") return a < b;
  if (ordered == "le") return a <= b;
  if (ordered == "gt") return a > b;
  return a >= b;
}
inline const char* const kComparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                           "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

// Two halves in a word.
inline std::vector<Operands> paired(const std::vector<Operands>& low) {
  std::vector<Operands> all = low;
  for (size_t i = 0; i < all.size(); ++i) {
    const Operands& high = low[(i * 7 + 11) % low.size()];
    for (size_t k = 0; k < 4; ++k) all[i][k] = (low[i][k] & 0xFFFF) | (high[k] & 0xFFFF) << 16;
  }
  return all;
}
// Returns the reference of a pair, made from that of a half.
inline Reference by_halves(const Reference& half) {
  return [half](const Operands& o) {
    Operands low, high;
    for (size_t k = 0; k < 4; ++k) low[k] = o[k] & 0xFFFF, high[k] = o[k] >> 16 & 0xFFFF;
    return (half(low) & 0xFFFF) | (half(high) & 0xFFFF) << 16;
  };
}

}  // namespace emu_test
