// SPDX-License-Identifier: MIT
//
// The reference everything else is judged by: sums in double, a piece of a row of D at a time,
// on all cores.

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/harness/base/parallel.h"
#include "common/harness/machine/machine.h"

namespace gg {

namespace {

// An element of a matrix with its scale, if it has one: exact in double.
double value_of(const void* tensor, Format format, int64_t element, const uint8_t* scales, Format scale,
                int64_t scale_at) {
  const double value = decode(format, load_code(tensor, format, element));
  return scales ? value * double(decode(scale, scales[scale_at])) : value;
}

// Value is a type that holds every element of B with its scale: float where there are none,
// half the memory.
template <class Value>
void sums(const Matrices& matrices, const Group& group, int first, int last, double* reference,
          double* magnitude) {
  constexpr int kPiece = 1 << 16;  // multiply-adds that are worth a thread
  // Columns of D that a thread has at a time: a single row is work for several.
  constexpr int kColumns = 512;
  const int n = group.n, k = group.k, block = std::max(1, group.scale_block);
  const Formats& formats = matrices.formats;
  const Format scale = formats.scaling().scale;
  const uint8_t* const sfa = formats.has_scales() ? matrices.sfa : nullptr;
  const uint8_t* const sfb = formats.has_scales() ? matrices.sfb : nullptr;
  const auto b = std::make_unique_for_overwrite<Value[]>(size_t(k) * size_t(n));
  parallel_for(k, std::max(1, kPiece / n), [&](int64_t k_first, int64_t k_last) {
    for (int64_t row = k_first; row < k_last; ++row) {
      for (int col = 0; col < n; ++col) {
        const int64_t element = group.b.offset + row * group.b_k_step() + col * group.b_n_step();
        const int64_t scale_at = sfb ? group.sfb.at(col, row / block) : 0;
        b[size_t(row * n + col)] = Value(value_of(matrices.b, formats.b, element, sfb, scale, scale_at));
      }
    }
  });
  const int strips = (n + kColumns - 1) / kColumns;
  const int64_t at_once = std::max<int64_t>(1, kPiece / (int64_t(std::max(1, k)) * std::min(n, kColumns)));
  parallel_for(int64_t(last - first) * strips, at_once, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / strips;
      const int col0 = int(i % strips) * kColumns, cols = std::min(kColumns, n - col0);
      double* sum = reference + row * n + col0;
      double* size = magnitude + row * n + col0;
      for (int col = 0; col < cols; ++col) {
        sum[col] = matrices.before(group.d.offset + (first + row) * group.d.ld + col0 + col);
        size[col] = std::fabs(sum[col]);
      }
      for (int kk = 0; kk < k; ++kk) {
        const int64_t element = group.a.offset + (first + row) * group.a_m_step() + kk * group.a_k_step();
        const int64_t scale_at = sfa ? group.sfa.at(first + row, kk / block) : 0;
        const double a = value_of(matrices.a, formats.a, element, sfa, scale, scale_at);
        const Value* b_row = b.get() + size_t(kk) * size_t(n) + col0;
        for (int col = 0; col < cols; ++col) {
          const double product = a * double(b_row[col]);
          sum[col] += product;
          size[col] += std::fabs(product);
        }
      }
    }
  });
}

}  // namespace

void reference_rows(const Matrices& matrices, const Group& group, int first, int last, double* reference,
                    double* magnitude) {
  const auto of_this_width = matrices.formats.has_scales() ? sums<double> : sums<float>;
  of_this_width(matrices, group, first, last, reference, magnitude);
}

}  // namespace gg
