// SPDX-License-Identifier: MIT
//
// Operands for the probes of matrix instructions: formats, whole numbers whose sums are exact, and
// numbers of every size with the same bits on every machine. What a machine answered to the latter
// is kept in tests/isa/h200.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "common/harness/base/npy.h"

namespace matrix {

struct Format {
  const char* name;
  int bits, exponent_bits, mantissa_bits;
  int shift = 0;             // tf32: the low bits of a float that don't count
  bool finite_only = false;  // e4m3: no infinity, one NaN
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
constexpr Format kBf16{"bf16", 16, 8, 7}, kF16{"f16", 16, 5, 10}, kTf32{"tf32", 32, 8, 10, 13},
    kE4m3{"e4m3", 8, 4, 3, 0, true}, kE5m2{"e5m2", 8, 5, 2}, kF32{"f32", 32, 8, 23};

// The code of a whole number that the format holds exactly.
inline uint32_t whole(const Format& f, int number) {
  if (number == 0) return 0;
  const int magnitude = std::abs(number), exponent = 31 - __builtin_clz(unsigned(magnitude));
  const uint32_t fraction = uint32_t(magnitude - (1 << exponent)) << f.mantissa_bits >> exponent;
  const uint32_t code = uint32_t(exponent + f.bias()) << f.mantissa_bits | fraction;
  return (code | uint32_t(number < 0) << (f.mantissa_bits + f.exponent_bits)) << f.shift;
}

// A matrix of codes, or of whole numbers.
struct Matrix {
  int rows = 0, columns = 0;
  std::vector<uint32_t> data;
  Matrix() = default;
  Matrix(int r, int c) : rows(r), columns(c), data(size_t(r) * size_t(c)) {}
  uint32_t& at(int row, int column) { return data[size_t(row) * size_t(columns) + size_t(column)]; }
  uint32_t at(int row, int column) const { return data[size_t(row) * size_t(columns) + size_t(column)]; }
  int number(int row, int column) const { return int(at(row, column)); }
};

// Whole numbers from -most to most, all over the place.
inline Matrix whole_numbers(int rows, int columns, int most, uint32_t salt) {
  Matrix m(rows, columns);
  std::mt19937 random(salt);
  for (uint32_t& each : m.data) each = uint32_t(int(random() % uint32_t(2 * most + 1)) - most);
  return m;
}
inline Matrix codes_of(const Format& f, const Matrix& numbers) {
  Matrix m = numbers;
  for (uint32_t& each : m.data) each = whole(f, int(each));
  return m;
}

// The sizes of the numbers in a trial of bits; trials take turns.
enum class Sizes { near_one, spread, finite, tiny, any, sparse };
constexpr int kSizes = 6;

// The code of a random number; a code where all depends on the seed alone.
class Bits {
 public:
  explicit Bits(uint32_t seed) : random_(seed) {}

  uint32_t code(const Format& f, Sizes sizes) {
    const int fields = 1 << f.exponent_bits, least = f.exponent_bits == 8 && f.mantissa_bits < 23 ? 60 : 0;
    int field = below(fields - 1);  // of any finite number, and zeros
    if (sizes == Sizes::near_one) field = f.bias() - 3 + below(6);
    if (sizes == Sizes::spread) field = std::max(0, std::min(fields - 2, f.bias() - 12 + below(24)));
    // Products near the least normal float.
    if (sizes == Sizes::tiny) field = least + below(f.exponent_bits == 8 ? 12 : 3);
    if (sizes == Sizes::any) field = below(8) ? field : fields - 1;  // infinities and NaN too
    if (sizes == Sizes::sparse && below(3)) field = 0;
    uint32_t fraction = random_() & ((1u << f.mantissa_bits) - 1);
    if (sizes == Sizes::any && below(2)) fraction = 0;
    if (sizes == Sizes::sparse && field == 0) fraction = 0;
    const uint32_t sign = random_() & 1;
    const uint32_t cut_off = f.shift ? random_() & ((1u << f.shift) - 1) : 0;
    return (sign << (f.mantissa_bits + f.exponent_bits) | uint32_t(field) << f.mantissa_bits | fraction)
               << f.shift |
           cut_off;
  }
  Matrix matrix(int rows, int columns, const Format& f, Sizes sizes) {
    Matrix m(rows, columns);
    for (uint32_t& each : m.data) each = code(f, sizes);
    return m;
  }
  // Accumulators: of every second one the sign is all there is.
  Matrix accumulators(int rows, int columns, const Format& f, Sizes sizes) {
    Matrix m = matrix(rows, columns, f, sizes);
    for (uint32_t& each : m.data) {
      if (random_() & 1) each &= 1u << (f.mantissa_bits + f.exponent_bits);
    }
    return m;
  }

 private:
  int below(int n) { return int(random_() % uint32_t(n)); }
  std::mt19937 random_;
};

// How many trials to make, so many of each kind. GG_TRIALS=N makes N times as many, to be recorded
// on two machines and compared.
inline int trials(int of_each) {
  const char* times = std::getenv("GG_TRIALS");
  return of_each * kSizes * (times ? std::atoi(times) : 1);
}

// Compares with what an H200 answered, bit for bit. GG_RECORD=DIR writes the answers there instead.
inline void expect_h200(const std::string& name, const std::vector<uint32_t>& answers) {
  const std::vector<int64_t> shape = {int64_t(answers.size())};
  if (const char* folder = std::getenv("GG_RECORD")) {
    gg::write_npy(std::string(folder) + "/" + name + ".npy", "<u4", shape, answers.data(),
                  answers.size() * 4);
    return;
  }
  const std::string path = std::string(GG_SOURCE_DIR) + "/tests/isa/h200/" + name + ".npy";
  ASSERT_TRUE(std::filesystem::exists(path))
      << "no answers of an H200 are kept in " << path << ": record them there";
  const gg::NpyArray kept = gg::read_npy(path);
  ASSERT_EQ(kept.shape, shape);
  int wrong = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    uint32_t silicon;
    std::memcpy(&silicon, kept.data.data() + 4 * i, 4);
    if (silicon == answers[i]) continue;
    if (++wrong <= 5)
      ADD_FAILURE() << name << " [" << i << "]: " << std::hex << answers[i] << " for " << silicon;
  }
  EXPECT_EQ(wrong, 0) << "of " << answers.size() << " answers";
}

}  // namespace matrix
