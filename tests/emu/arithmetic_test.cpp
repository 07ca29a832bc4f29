// SPDX-License-Identifier: MIT
//
// The emulator's tensor-core sums against what an H200 answered, bit for bit; and the fast form of
// the sums against the plain one.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "common/emu/core/units/block_scaled.h"
#include "common/emu/core/units/fused_sum.h"
#include "common/harness/base/npy.h"

namespace {

using gg::emu::Cpus;
using gg::emu::Cut;
using gg::emu::Factors;
using gg::emu::Narrow;
using gg::emu::Term;

// Code for CPUs that this one is not like is never used here.
bool runs_here(Cpus kind) { return kind <= gg::emu::last_that_runs_here(); }

struct Form {
  const char* type;
  int k;
};

class MmaSync : public testing::TestWithParam<Form> {};

uint32_t code_at(const gg::NpyArray& array, size_t index) {
  const size_t bytes = size_t(array.type[2] - '0');
  uint32_t code = 0;
  std::memcpy(&code, array.data.data() + index * bytes, bytes);
  return code;
}

TEST_P(MmaSync, GivesTheBitsOfAnH200) {
  const auto [type, k] = GetParam();
  const std::string stem = gg::format("%s/tests/isa/h200/mma_%s_k%d_", GG_SOURCE_DIR, type, k);
  const gg::NpyArray a = gg::read_npy(stem + "a.npy"), b = gg::read_npy(stem + "b.npy"),
                     c = gg::read_npy(stem + "c.npy"), d = gg::read_npy(stem + "d.npy");
  const Narrow format = gg::emu::narrow(type);
  int compared = 0;
  for (int trial = 0; trial < int(a.shape[0]); ++trial) {
    for (int row = 0; row < 16; ++row) {
      for (int col = 0; col < 8; ++col) {
        Term a_terms[32], b_terms[32];
        for (int kk = 0; kk < k; ++kk) {
          a_terms[kk] = term_of(format, code_at(a, size_t((trial * 16 + row) * k + kk)));
          b_terms[kk] = term_of(format, code_at(b, size_t((trial * k + kk) * 8 + col)));
        }
        const size_t at = size_t((trial * 16 + row) * 8 + col);
        const float accumulator = std::bit_cast<float>(code_at(c, at));
        const float ours = mma_sync_sum(format, a_terms, b_terms, k, accumulator);
        const float silicon = std::bit_cast<float>(code_at(d, at));
        ++compared;
        if (std::isnan(silicon)) {
          EXPECT_TRUE(std::isnan(ours));
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(ours), std::bit_cast<uint32_t>(silicon))
              << "trial " << trial << " row " << row << " column " << col << ": " << ours << " for "
              << silicon;
        }
      }
    }
  }
  EXPECT_GE(compared, 3000);
}

INSTANTIATE_TEST_SUITE_P(H200, MmaSync,
                         testing::Values(Form{"bf16", 16}, Form{"bf16", 8}, Form{"f16", 16}, Form{"f16", 8},
                                         Form{"tf32", 8}, Form{"e4m3", 32}, Form{"e5m2", 32}),
                         [](const auto& info) {
                           return gg::format("%s_k%d", info.param.type, info.param.k);
                         });

// How a trial's operands are made.
enum class Data { near_one, any_finite, any_code, tiny, sparse, nearly_two };
constexpr Data kData[] = {Data::near_one, Data::any_finite, Data::any_code,
                          Data::tiny,     Data::sparse,     Data::nearly_two};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int below(int n) { return int(engine_() % uint64_t(n)); }

  uint32_t code(const Narrow& f, Data data) {
    if (data == Data::sparse && below(4)) return 0;
    // The largest sums of products that there are, for their exponent.
    if (data == Data::nearly_two) {
      const uint32_t one = uint32_t((1 << (f.exponent_bits - 1)) - 1) << f.mantissa_bits;
      return ((one | ((1u << f.mantissa_bits) - 1)) - uint32_t(below(8) == 0)) << f.shift;
    }
    const int bias = (1 << (f.exponent_bits - 1)) - 1, fields = 1 << f.exponent_bits;
    int field = below(fields);
    if (data == Data::near_one) field = bias - 2 + below(5);
    if (data == Data::tiny) field = f.exponent_bits == 8 ? 50 + below(20) : below(3);
    if (data == Data::sparse) field = below(2) ? bias : below(fields - 1);
    if (data == Data::any_finite) field = below(fields - 1);
    const uint32_t code = uint32_t(below(2)) << (f.mantissa_bits + f.exponent_bits) |
                          uint32_t(field) << f.mantissa_bits | uint32_t(below(1 << f.mantissa_bits));
    return code << f.shift | uint32_t(below(1 << f.shift));  // what tf32 cuts off
  }

  // Mostly near one; any_code has NaN, and the ends of the range.
  uint8_t scale_code(Data data, bool ue4m3) {
    if (data == Data::any_code && below(3) == 0) return uint8_t(below(256));
    if (ue4m3) return uint8_t(data == Data::tiny ? below(12) : 0x28 + below(0x20));
    if (data == Data::tiny) return uint8_t(40 + below(24));
    return uint8_t(127 + (data == Data::near_one ? below(3) - 1 : below(41) - 20));
  }

  float accumulator(Data data, bool half) {
    if (below(2)) return below(2) ? 0.0f : -0.0f;
    if (data == Data::nearly_two) return 2 - 0x1p-10f;
    const uint32_t random = uint32_t(engine_());
    if (half)
      return gg::emu::half_to_float(data == Data::any_code ? uint16_t(random) : uint16_t(random & 0xBFFF));
    const int field = data == Data::near_one ? 125 + below(5) : data == Data::tiny ? below(8) : below(255);
    if (data == Data::any_code && below(8) == 0) {  // infinity, or NaN
      return std::bit_cast<float>(below(3) ? random | 0x7F800000u : (random & 0x80000000u) | 0x7F800000u);
    }
    return std::bit_cast<float>((random & 0x807FFFFFu) | uint32_t(field) << 23);
  }

 private:
  std::mt19937_64 engine_;
};

struct Product {
  const char *a, *b;
  int k, fraction_bits, kept_bits;
  bool to_half, scaled = false;
};

class ManySums : public testing::TestWithParam<Product> {};

void expect_one_by_one(const Product& p, const gg::emu::ManySums& many) {
  const Narrow a_format = gg::emu::narrow(p.a), b_format = gg::emu::narrow(p.b);
  const Cut cut = {a_format.mantissa_bits + b_format.mantissa_bits, p.fraction_bits, p.kept_bits, p.to_half};
  constexpr int kRows = 16, kColumns = 56, kPitch = 64;  // whole vectors and parts of one
  Random random(7);
  Factors a, b;
  int finite = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Data data = kData[trial % std::size(kData)];
    a.resize(kRows, p.k);
    b.resize(kColumns, p.k);
    for (int k = 0; k < p.k; ++k) {
      for (int l = 0; l < kRows; ++l) a.code(l, k) = random.code(a_format, data);
      for (int l = 0; l < kColumns; ++l) b.code(l, k) = random.code(b_format, data);
    }
    float c[kRows][kPitch], d[kRows][kPitch];
    for (auto& row : c) {
      for (float& each : row) each = random.accumulator(data, p.to_half);
    }
    std::memcpy(d, c, sizeof c);
    a.format = a_format;
    b.format = b_format;
    many.decode(a);
    many.decode(b);
    uint8_t a_scales[kRows] = {}, b_scales[kColumns] = {};
    for (uint8_t& each : a_scales) each = random.scale_code(data, false);
    for (uint8_t& each : b_scales) each = random.scale_code(data, false);
    if (p.scaled) {
      a.scale(a_scales);
      b.scale(b_scales);
    }
    many.sums(a, b, &d[0][0], kPitch, cut);
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        Term a_terms[32], b_terms[32];
        for (int k = 0; k < p.k; ++k) {
          a_terms[k] = term_of(a_format, a.code(row, k));
          b_terms[k] = term_of(b_format, b.code(column, k));
        }
        const Term a_scale = gg::emu::scale_of(false, a_scales[row]),
                   b_scale = gg::emu::scale_of(false, b_scales[column]);
        const int scale = p.scaled ? a_scale.exponent + b_scale.exponent : 0;
        float one = fused_sum(a_terms, b_terms, p.k, c[row][column], cut, scale);
        if (p.scaled && (a_scale.special || b_scale.special)) one = std::bit_cast<float>(0x7FFFFFFFu);
        finite += std::isfinite(one);
        ASSERT_EQ(std::bit_cast<uint32_t>(d[row][column]), std::bit_cast<uint32_t>(one))
            << "trial " << trial << " row " << row << " column " << column << ": " << d[row][column]
            << " for " << one;
      }
    }
  }
  EXPECT_GE(finite, 200 * kRows * kColumns / 4);
}

TEST_P(ManySums, AreTheBitsOfOneByOneOnAnyCpu) {
  expect_one_by_one(GetParam(), *gg::emu::many_sums(Cpus::any));
}
TEST_P(ManySums, AreTheBitsOfOneByOne) {
  if (runs_here(Cpus::avx2)) expect_one_by_one(GetParam(), *gg::emu::many_sums(Cpus::avx2));
}
TEST_P(ManySums, AreTheBitsOfOneByOneOnLaterCpus) {
  if (runs_here(Cpus::avx512)) expect_one_by_one(GetParam(), *gg::emu::many_sums(Cpus::avx512));
}

// A row of zeros, and factors that meet none: the accumulator stays as it is.
TEST(FusedSums, KnowSumsWithoutProducts) {
  for (const Cpus kind : {Cpus::any, Cpus::avx2, Cpus::avx512}) {
    if (!runs_here(kind)) continue;
    const gg::emu::ManySums* many = gg::emu::many_sums(kind);
    Factors a, b;
    a.resize(8, 16);
    b.resize(8, 16);
    for (int k = 0; k < 16; ++k) {
      for (int l = 0; l < 8; ++l) {
        a.code(l, k) = l == 1 && k < 8 ? 0x3F80 : 0;   // row 1: ones in the first half
        b.code(l, k) = l != 2 && k >= 8 ? 0xC000 : 0;  // columns but 2: -2 in the second
      }
    }
    a.format = b.format = gg::emu::narrow("bf16");
    many->decode(a);
    many->decode(b);
    float sums[8][Factors::kSide];
    for (auto& row : sums) {
      for (int column = 0; column < 8; ++column) row[column] = std::ldexp(3.0f, -10 * column);
    }
    sums[1][3] = -0.0f;
    many->sums(a, b, &sums[0][0], Factors::kSide, {14, 25, 24, false});
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 8; ++column) {
        const float expected = row == 1 && column == 3 ? 0.0f : std::ldexp(3.0f, -10 * column);
        EXPECT_EQ(std::bit_cast<uint32_t>(sums[row][column]), std::bit_cast<uint32_t>(expected))
            << "row " << row << " column " << column;
      }
    }
  }
}

// 2^-126 - 2^-150 lies half a step below the least normal number: it is cut, not rounded up to it.
TEST(FusedSums, CutWhatLiesBelowTheLeastNormalNumber) {
  for (const Cpus kind : {Cpus::any, Cpus::avx2, Cpus::avx512}) {
    if (!runs_here(kind)) continue;
    const gg::emu::ManySums* many = gg::emu::many_sums(kind);
    Factors a, b;
    a.resize(1, 16);
    b.resize(1, 16);
    for (int k = 0; k < 16; ++k) a.code(0, k) = b.code(0, k) = 0;
    a.code(0, 3) = uint32_t(127 - 75) << 7;           // 2^-75 in bf16
    b.code(0, 3) = 0x8000 | uint32_t(127 - 75) << 7;  // and -2^-75
    a.format = b.format = gg::emu::narrow("bf16");
    many->decode(a);
    many->decode(b);
    float sums[Factors::kSide] = {0x1p-126f};
    many->sums(a, b, sums, Factors::kSide, {14, 25, 24, false});
    EXPECT_EQ(std::bit_cast<uint32_t>(sums[0]), 0x007FFFFFu);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Emu, ManySums,
    testing::Values(Product{"bf16", "bf16", 16, 25, 24, false}, Product{"bf16", "bf16", 8, 25, 24, false},
                    Product{"f16", "f16", 16, 25, 24, false}, Product{"f16", "f16", 16, 25, 24, true},
                    Product{"tf32", "tf32", 8, 25, 24, false}, Product{"tf32", "tf32", 4, 25, 24, false},
                    Product{"e4m3", "e4m3", 32, 13, 14, false}, Product{"e5m2", "e4m3", 32, 13, 14, false},
                    Product{"e4m3", "e5m2", 32, 13, 14, true}, Product{"e5m2", "e5m2", 16, 25, 24, false},
                    Product{"e4m3", "e4m3", 32, 25, 24, false}, Product{"e4m3", "e5m2", 32, 25, 24, true},
                    Product{"e2m3", "e2m3", 32, 25, 24, false}, Product{"e3m2", "e2m1", 32, 25, 24, false},
                    Product{"e4m3", "e4m3", 32, 25, 24, false, true},
                    Product{"e5m2", "e2m1", 32, 25, 24, false, true},
                    Product{"e2m3", "e3m2", 32, 25, 24, false, true}),
    [](const auto& info) {
      const Product& p = info.param;
      return gg::format("%s_%s_k%d_%dbits_%s%s", p.a, p.b, p.k, p.fraction_bits, p.to_half ? "f16" : "f32",
                        p.scaled ? "_scaled" : "");
    });

// ---- packed fp4 with block scales ----

using gg::emu::kPackedBytes;
using gg::emu::kPackedGroups;
using gg::emu::kPackedK;
using gg::emu::PackedFactors;

uint8_t& packed_byte(PackedFactors& factors, int line, int byte) { return factors.codes(line)[byte]; }

struct PackedTerms {
  Term terms[kPackedK], scales[kPackedGroups];
};
PackedTerms terms_of(const PackedFactors& factors, int line, bool ue4m3) {
  PackedTerms all;
  for (int k = 0; k < kPackedK; ++k)
    all.terms[k] =
        term_of(gg::emu::narrow("e2m1"), uint32_t(factors.codes(line)[k / 2] >> (k % 2 ? 4 : 0)) & 15u);
  for (int g = 0; g < kPackedGroups; ++g) all.scales[g] = gg::emu::scale_of(ue4m3, factors.scale(line, g));
  return all;
}

class PackedSums : public testing::TestWithParam<bool> {};

void fill_packed(Random& random, Data data, bool ue4m3, PackedFactors& factors) {
  for (int line = 0; line < factors.lines(); ++line) {
    for (int byte = 0; byte < kPackedBytes; ++byte) {
      int code = random.below(256);
      if (data == Data::sparse && random.below(12)) code = 0;
      if (data == Data::sparse && line % 3 == 0 && byte < 16) code = 0;  // whole groups of zeros
      if (data == Data::nearly_two) code = 0x77;
      packed_byte(factors, line, byte) = uint8_t(code);
    }
    for (int g = 0; g < kPackedGroups; ++g) factors.scale(line, g) = random.scale_code(data, ue4m3);
  }
}

void expect_packed_one_by_one(bool ue4m3, gg::emu::BlockScaledSums many) {
  constexpr int kRows = 18, kColumns = 56, kPitch = 64;
  Random random(11);
  PackedFactors a, b;
  a.resize(kRows);
  b.resize(kColumns);
  int finite = 0;
  for (int trial = 0; trial < 150; ++trial) {
    const Data data = kData[trial % std::size(kData)];
    fill_packed(random, data, ue4m3, a);
    fill_packed(random, data, ue4m3, b);
    float c[kRows][kPitch], d[kRows][kPitch];
    for (auto& row : c) {
      for (float& each : row) each = random.accumulator(data, false);
    }
    std::memcpy(d, c, sizeof c);
    a.decode(ue4m3);
    b.decode(ue4m3);
    many(a, b, &d[0][0], kPitch);
    for (int row = 0; row < kRows; ++row) {
      const PackedTerms of_a = terms_of(a, row, ue4m3);
      for (int column = 0; column < kColumns; ++column) {
        const PackedTerms of_b = terms_of(b, column, ue4m3);
        const float one =
            gg::emu::block_scaled_sum(of_a.terms, of_b.terms, of_a.scales, of_b.scales, c[row][column]);
        finite += std::isfinite(one);
        ASSERT_EQ(std::bit_cast<uint32_t>(d[row][column]), std::bit_cast<uint32_t>(one))
            << "trial " << trial << " row " << row << " column " << column << ": " << d[row][column]
            << " for " << one;
      }
    }
  }
  EXPECT_GE(finite, 150 * kRows * kColumns / 2);
}

TEST_P(PackedSums, AreTheBitsOfOneByOneOnAnyCpu) {
  expect_packed_one_by_one(GetParam(), gg::emu::block_scaled_sums(Cpus::any));
}
TEST_P(PackedSums, AreTheBitsOfOneByOne) {
  if (runs_here(Cpus::avx2)) expect_packed_one_by_one(GetParam(), gg::emu::block_scaled_sums(Cpus::avx2));
}
TEST_P(PackedSums, AreTheBitsOfOneByOneOnLaterCpus) {
  if (runs_here(Cpus::avx512)) expect_packed_one_by_one(GetParam(), gg::emu::block_scaled_sums(Cpus::avx512));
}
INSTANTIATE_TEST_SUITE_P(Emu, PackedSums, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "ue4m3" : "ue8m0"; });

// Values that can be said by hand.
class BlockScaledSum : public testing::Test {
 protected:
  void SetUp() override {
    for (auto& each : a_scales) each = gg::emu::scale_of(false, 127);
    for (auto& each : b_scales) each = gg::emu::scale_of(false, 127);
  }
  float sum(float c) { return gg::emu::block_scaled_sum(a, b, a_scales, b_scales, c); }
  static Term e2m1(uint32_t code) { return term_of(gg::emu::narrow("e2m1"), code); }

  Term a[kPackedK], b[kPackedK], a_scales[kPackedGroups], b_scales[kPackedGroups];
};

TEST_F(BlockScaledSum, MultipliesValuesAndScales) {
  const float values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint32_t code = 0; code < 16; ++code) {
    for (int k = 0; k < kPackedK; ++k) a[k] = b[k] = e2m1(0);
    a[37] = e2m1(code);
    b[37] = e2m1(3);
    EXPECT_EQ(sum(10), 10 + (code & 8 ? -1.5f : 1.5f) * values[code & 7]);
  }
  // A one in every group.
  for (int k = 0; k < kPackedK; ++k) a[k] = b[k] = e2m1(k % 16 == 5 ? 2 : 0);
  for (int g = 0; g < kPackedGroups; ++g) a_scales[g] = gg::emu::scale_of(false, uint8_t(120 + g));
  EXPECT_EQ(sum(0), 0x1p-7f + 0x1p-6f + 0x1p-5f + 0x1p-4f);
  b_scales[0] = gg::emu::scale_of(true, 0x7E);  // 448
  b_scales[1] = gg::emu::scale_of(true, 0x01);  // 2^-9
  b_scales[2] = gg::emu::scale_of(true, 0x00);
  EXPECT_EQ(sum(0), 448 * 0x1p-7f + 0x1p-15f + 0x1p-4f);
  b_scales[2] = gg::emu::scale_of(true, 0x7F);
  EXPECT_TRUE(std::isnan(sum(0)));
}

// 2^-36 beside a scale of 2^0 is cut away; beside a group that cancels to nothing too,
// not beside zeros.
TEST_F(BlockScaledSum, CutsAtTheLargestScales) {
  const float tiny = 0x1.8p-35f;
  for (int k = 0; k < kPackedK; ++k) a[k] = b[k] = e2m1(0);
  EXPECT_EQ(sum(tiny), tiny);
  a[0] = b[0] = b[1] = e2m1(2);
  a[1] = e2m1(10);  // 1 - 1
  EXPECT_EQ(sum(tiny), 0x1p-35f);
  EXPECT_EQ(sum(0x1p-36f), 0.0f);
  a_scales[0] = gg::emu::scale_of(true, 0);
  EXPECT_EQ(sum(tiny), tiny);
}

// Sums whose exact value and rounding can be said by hand.
TEST(FusedSum, CutsEveryTermAtTheLargest) {
  const Narrow f16 = gg::emu::narrow("f16");
  const auto term = [&](float x) { return term_of(f16, gg::emu::float_to_half(x)); };
  const Cut cut = {20, 25, 24, false};
  // 1 + 2^-24 - 2^-24 is exact with 25 fraction bits; 2^-26 beside 1 is cut away, twice.
  const Term a[3] = {term(1), term(0x1p-12f), term(-0x1p-12f)},
             b[3] = {term(1), term(0x1p-12f), term(0x1p-12f)};
  EXPECT_EQ(fused_sum(a, b, 3, 0, cut), 1.0f);
  const Term small[2] = {term(0x1p-13f), term(0x1p-13f)};
  EXPECT_EQ(fused_sum(small, small, 2, 1, cut), 1.0f);
  EXPECT_EQ(fused_sum(small, small, 2, 0, cut), 0x1p-25f);
  // Toward zero: 1 - 2^-25 keeps 24 bits, the next lower float of 1.
  const Term minus[1] = {term(-0x1p-12f)}, plus[1] = {term(0x1p-13f)};
  EXPECT_EQ(fused_sum(minus, plus, 1, 1, cut), 1 - 0x1p-24f);
  // To f16: a tie goes to even.
  const Cut to_half = {20, 25, 24, true};
  const Term eleven[1] = {term(0x1p-11f)}, one[1] = {term(1)};
  EXPECT_EQ(fused_sum(eleven, one, 1, 1, to_half), 1.0f);
  EXPECT_EQ(fused_sum(eleven, one, 1, 1 + 0x1p-10f, to_half), 1 + 0x1p-9f);
}

TEST(FusedSum, CutsAllAtTheExponentOfZero) {
  const Narrow bf16 = gg::emu::narrow("bf16");
  const auto term = [&](float x) { return term_of(bf16, std::bit_cast<uint32_t>(x) >> 16); };
  const Cut cut = {14, 25, 24, false};
  // Exactly it is 2^-140 - 2^-160 or - 2^-158; the first, below 2^-133-25, does not count.
  const Term a[2] = {term(0x1p-70f), term(-0x1p-80f)}, b[2] = {term(0x1p-70f), term(0x1p-80f)};
  EXPECT_EQ(fused_sum(a, b, 2, 0, cut), 0x1p-140f);
  const Term c[2] = {term(0x1p-70f), term(-0x1p-79f)}, d[2] = {term(0x1p-70f), term(0x1p-79f)};
  EXPECT_EQ(fused_sum(c, d, 2, 0, cut), 0x1p-140f - 0x1p-149f);
}

TEST(FusedSum, KnowsInfinitiesAndNaN) {
  const Narrow bf16 = gg::emu::narrow("bf16");
  const auto term = [&](float x) { return term_of(bf16, std::bit_cast<uint32_t>(x) >> 16); };
  const Cut cut = {14, 25, 24, false};
  const uint32_t kNaN = 0x7FFFFFFFu;
  const auto bits = [&](float a, float b, float c) {
    const Term a_term[1] = {term(a)}, b_term[1] = {term(b)};
    return std::bit_cast<uint32_t>(fused_sum(a_term, b_term, 1, c, cut));
  };
  EXPECT_EQ(bits(INFINITY, 2, 1), std::bit_cast<uint32_t>(INFINITY));
  EXPECT_EQ(bits(INFINITY, -2, 1), std::bit_cast<uint32_t>(-INFINITY));
  EXPECT_EQ(bits(INFINITY, 0, 1), kNaN);
  EXPECT_EQ(bits(INFINITY, -2, INFINITY), kNaN);
  EXPECT_EQ(bits(1, 2, -INFINITY), std::bit_cast<uint32_t>(-INFINITY));
  EXPECT_EQ(bits(1, 2, NAN), kNaN);
  EXPECT_EQ(bits(NAN, 0, 1), kNaN);
  EXPECT_EQ(bits(0x1p127f, 2, 0), std::bit_cast<uint32_t>(INFINITY));
  EXPECT_EQ(bits(-0x1p127f, 2, 0), std::bit_cast<uint32_t>(-INFINITY));
  EXPECT_EQ(bits(-1, 0, -0.0f), 0u);  // no sum is -0
  // e4m3 has no infinity: its greatest code but NaN is 448.
  const Narrow e4m3 = gg::emu::narrow("e4m3");
  EXPECT_EQ(term_of(e4m3, 0x7E).special, 0);
  EXPECT_EQ(term_of(e4m3, 0x7F).special, 2);
}

TEST(Half, ConvertsBothWays) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const float value = gg::emu::half_to_float(uint16_t(code));
    if ((code & 0x7FFF) > 0x7C00) {
      EXPECT_TRUE(std::isnan(value));
    } else {
      ASSERT_EQ(gg::emu::float_to_half(value), code);
    }
  }
  EXPECT_EQ(gg::emu::float_to_half(65519.99f), 0x7BFF);
  EXPECT_EQ(gg::emu::float_to_half(65520.0f), 0x7C00);
  EXPECT_EQ(gg::emu::float_to_half(0x1p-25f), 0);
  EXPECT_EQ(gg::emu::float_to_half(0x1.8p-25f), 1);
  EXPECT_EQ(gg::emu::float_to_half(NAN), 0x7FFF);
}

}  // namespace
