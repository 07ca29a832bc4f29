// SPDX-License-Identifier: MIT
//
// A kernel that Triton compiled, run by gg-ptx: its launch, its matrices of whole numbers, its exact
// products.

#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "common/kernel/formats.h"
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

struct Sizes {
  int m, n, k;
};

// Puts whole numbers from -most to most as a[m,k] and b[n,k], or b[k,n], and a d[m,n] that nobody has
// written, of f32 or of 16 bits. Returns what d is to be.
inline std::vector<int> put_product(PtxRun& run, const Sizes& s, Element element, int most, int seed,
                                    Format d, bool b_is_kn = false) {
  const std::vector<int> a = whole_numbers(size_t(s.m) * size_t(s.k), most, seed),
                         b = whole_numbers(size_t(s.n) * size_t(s.k), most, seed + 1);
  put_matrix(run, "a", a, element);
  put_matrix(run, "b", b, element);
  const size_t count = size_t(s.m) * size_t(s.n);
  if (d == Format::f32) {
    run.out("d", std::vector<float>(count, NAN));
  } else {
    run.out("d", std::vector<uint16_t>(count, 0xFFFF));
  }
  return product(a, b, s.m, s.n, s.k, b_is_kn);
}
inline void expect_product(const PtxRun& run, const std::vector<int>& wanted, Format d) {
  if (d == Format::f32) {
    EXPECT_EQ(run.result<float>("d"), std::vector<float>(wanted.begin(), wanted.end()));
  } else {
    EXPECT_EQ(run.result<uint16_t>("d"), rounded(wanted, d));
  }
}
// The parameters of a kernel that takes pointers.
inline void pointers_and_sizes(PtxRun& run, const Sizes& s) {
  run.arg("a").arg("b").arg("d").arg(whole(s.m)).arg(whole(s.n)).arg(whole(s.k));
  finish(run);
}

// How a test runs what is ready.
using Runs = std::function<void(PtxRun&)>;

struct Matmul {
  const char* name;
  Element element;
  int most;  // of an element: every sum is exact
  int tile_m, tile_n, threads;
};
inline void PrintTo(const Matmul& m, std::ostream* out) { *out << m.name; }

inline void expect_exact_sums(const Matmul& p, int m, const Runs& runs) {
  const Sizes s{m, 72, 176};
  const std::string grid =
      std::to_string((s.m + p.tile_m - 1) / p.tile_m) + "," + std::to_string((s.n + p.tile_n - 1) / p.tile_n);
  PtxRun run = start(p.name, "matmul", grid, p.threads);
  const std::vector<int> wanted = put_product(run, s, p.element, p.most, 1, Format::f32);
  pointers_and_sizes(run, s);
  runs(run);
  expect_product(run, wanted, Format::f32);
}

// Blocks that take tile after tile, in a grid of four at most.
inline void expect_persistent_matmul(const char* name, const char* entry, const char* grid, int threads,
                                     const Runs& runs) {
  const Sizes s{200, 136, 168};
  PtxRun run = start(name, entry, grid, threads, 4);
  const std::vector<int> wanted = put_product(run, s, Element::bf16, 8, 5, Format::bf16);
  pointers_and_sizes(run, s);
  runs(run);
  expect_product(run, wanted, Format::bf16);
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
