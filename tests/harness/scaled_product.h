// SPDX-License-Identifier: MIT
//
// A block-scaled product as a plain function on host memory, in which tests plant their bugs.

#pragma once

#include <functional>
#include <vector>

#include "common/harness/problem/layout.h"
#include "common/kernel/block_scales.h"

namespace gg::scaled {

struct View {  // what a planted product sees
  const Problem& p;
  BlockScaling scaling;
  ScaleLayout of_a, of_b;

  explicit View(const Problem& p)
      : p(p),
        scaling(p.formats().scaling()),
        of_a{p.rows(), scale_blocks(p.k(), scaling.block)},
        of_b{p.n(), of_a.blocks} {}
  int weights(int group) const { return p.b_group_stride() ? group : 0; }  // of which group
  int last_row() const { return p.offsets().ends()[p.groups() - 1] - 1; }  // of all groups
};

// Where the product takes the scale of A's row (counted over all groups; `r` inside its group), of
// B's column, and an element of A: the right places unless a bug says otherwise.
struct Product {
  std::function<const uint8_t*(const View&, int row, int r, int64_t block)> sfa =
      [](const View& v, int row, int, int64_t block) { return v.p.scaled().sfa + v.of_a.offset(row, block); };
  std::function<const uint8_t*(const View&, int group, int col, int64_t block)> sfb =
      [](const View& v, int group, int col, int64_t block) {
        return v.p.scaled().sfb + v.weights(group) * v.of_b.bytes() + v.of_b.offset(col, block);
      };
  std::function<int64_t(int64_t element)> a_element = [](int64_t element) { return element; };
  std::function<int64_t(int64_t element)> b_element = [](int64_t element) { return element; };
  // Added to every sum of a group: what a masked lane multiplied by zero.
  std::function<float(const View&, int group)> masked = [](const View&, int) { return 0.0f; };

  void operator()(const Problem& p, cudaStream_t) const {
    const View v(p);
    const auto value = [&](const uint8_t* codes, int64_t element, const uint8_t* scale) {
      return float(dequantised(v.scaling, load_code(codes, v.scaling.element, element), *scale));
    };
    const int n = p.n(), k = p.k();
    std::vector<float> a(static_cast<size_t>(k)), b(size_t(n) * size_t(k));
    for (int g = 0; g < p.groups(); ++g) {
      const int first = g ? p.offsets().ends()[g - 1] : 0, m = p.offsets().ends()[g] - first;
      for (int64_t i = 0; m > 0 && i < int64_t(n) * k; ++i) {
        const uint8_t* scale = sfb(v, g, int(i / k), i % k / v.scaling.block);
        b[size_t(i)] = value(p.b<uint8_t>(), b_element(v.weights(g) * int64_t(n) * k + i), scale);
      }
      const float start = m > 0 ? masked(v, g) : 0;
      for (int r = 0; r < m; ++r) {
        const int64_t row = first + r;
        for (int kk = 0; kk < k; ++kk) {
          const uint8_t* scale = sfa(v, int(row), r, kk / v.scaling.block);
          a[size_t(kk)] = value(p.a<uint8_t>(), a_element(row * k + kk), scale);
        }
        for (int col = 0; col < n; ++col) {
          float sum = start;
          for (int kk = 0; kk < k; ++kk) sum += a[size_t(kk)] * b[size_t(col) * size_t(k) + size_t(kk)];
          store_code(p.d<char>(), p.formats().d, row * n + col, encode(p.formats().d, sum));
        }
      }
    }
  }
};

}  // namespace gg::scaled
