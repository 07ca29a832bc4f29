// SPDX-License-Identifier: MIT
//
// A kernel that Triton compiled, run by gg-ptx: its launch, its matrices of whole numbers, its exact
// products.

#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "common/base/formats.h"
#include "tests/emu/foreign/ptx_run.h"

namespace testing_gg {

using gg::Format;

inline std::string file_of(const std::string& name) {
  return GG_SOURCE_DIR "/tests/emu/foreign/triton/" + name + ".ptx";
}

// A launch of the kernel in a file, whose third line says "// shared 1024 scratch 384".
inline PtxRun start(const std::string& name, const std::string& entry, const std::string& grid, int threads,
                    int blocks = 1) {
  int shared = -1, scratch = -1;
  const std::string text = testing_gg::text_of(file_of(name));
  const size_t line = text.find("// shared ");
  EXPECT_NE(line, std::string::npos) << file_of(name);
  if (line != std::string::npos)
    std::sscanf(text.c_str() + line, "// shared %d scratch %d", &shared, &scratch);
  PtxRun run(file_of(name));
  run.add({"--entry", entry, "--grid", grid, "--block", std::to_string(threads), "--smem",
           std::to_string(shared)});
  run.add({"--buf", "scratch=zero:" + std::to_string(scratch * blocks)});
  return run;
}
// The two parameters that follow the kernel's own: scratch memory, and that of a profiler.
inline void finish(PtxRun& run) { run.arg("scratch").arg("null"); }

inline std::vector<int> whole_numbers(size_t count, int most, int seed) {
  std::mt19937 random{uint32_t(seed)};
  std::vector<int> values(count);
  for (int& v : values) v = int(random() % uint32_t(2 * most + 1)) - most;
  return values;
}

// ---- 8-bit formats ----

inline double narrow_value(int code, bool e4m3) {  // of a finite code
  const int mantissa = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, field = (code & 0x7F) >> mantissa;
  const double fraction = double(code & ((1 << mantissa) - 1)) / (1 << mantissa);
  const double magnitude = field ? std::ldexp(1 + fraction, field - bias) : std::ldexp(fraction, 1 - bias);
  return code & 0x80 ? -magnitude : magnitude;
}
// The nearest code, of two the even one; beyond the largest finite value, that.
inline uint8_t narrow_code(double x, bool e4m3) {
  const int codes = e4m3 ? 0x7F : 0x7C;
  int best = 0;
  for (int code = 0; code < codes; ++code) {
    const double was = std::abs(narrow_value(best, e4m3) - std::abs(x)),
                 is = std::abs(narrow_value(code, e4m3) - std::abs(x));
    if (is < was || (is == was && code % 2 == 0)) best = code;
  }
  return uint8_t(best | (std::signbit(x) ? 0x80 : 0));
}

// ---- matrix products ----

enum class Element { bf16, f16, f32, e4m3, e5m2 };

inline void put_matrix(PtxRun& run, const std::string& name, const std::vector<int>& values,
                       Element element) {
  std::vector<uint16_t> halves;
  std::vector<uint8_t> bytes;
  for (const int v : values) {
    if (element == Element::bf16 || element == Element::f16)
      halves.push_back(uint16_t(gg::encode(element == Element::f16 ? Format::f16 : Format::bf16, v)));
    if (element == Element::e4m3 || element == Element::e5m2)
      bytes.push_back(narrow_code(v, element == Element::e4m3));
  }
  if (!halves.empty()) {
    run.in(name, halves);
  } else if (!bytes.empty()) {
    run.in(name, bytes);
  } else {
    run.in(name, std::vector<float>(values.begin(), values.end()));
  }
}

// a[m,k] b[n,k]^T, or a[m,k] b[k,n].
inline std::vector<int> product(const std::vector<int>& a, const std::vector<int>& b, int m, int n, int k,
                                bool b_is_kn = false) {
  std::vector<int> d(size_t(m) * size_t(n));
  for (int row = 0; row < m; ++row) {
    for (int col = 0; col < n; ++col) {
      int sum = 0;
      for (int i = 0; i < k; ++i)
        sum += a[size_t(row * k + i)] * b[size_t(b_is_kn ? i * n + col : col * k + i)];
      d[size_t(row * n + col)] = sum;
    }
  }
  return d;
}

inline std::string whole(int number) { return "i32:" + std::to_string(number); }

inline std::vector<uint16_t> rounded(const std::vector<int>& sums, Format format) {
  std::vector<uint16_t> codes;
  for (const int sum : sums) codes.push_back(uint16_t(gg::encode(format, sum)));
  return codes;
}

inline std::string map_of(const std::string& name, const std::string& type, int rows, int cols,
                          const std::string& box) {
  return "tmap:" + name + ",type=" + type + ",dims=" + std::to_string(cols) + "x" + std::to_string(rows) +
         ",strides=" + std::to_string(cols * 2) + ",box=" + box + ",swizzle=128B";
}
// A tensor map by value comes with the tensor's shape and strides.
inline void map_argument(PtxRun& run, const std::string& name, const std::string& type, int rows, int cols,
                         const std::string& box = "64x64") {
  run.arg(map_of(name, type, rows, cols, box)).arg(whole(rows)).arg(whole(cols));
  run.arg("i64:" + std::to_string(cols)).arg("i64:1");
}

}  // namespace testing_gg
