// SPDX-License-Identifier: MIT
//
// The reference everything else is judged by: sums in double, a piece of a row of D at a time, on all cores.

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/base/parallel.h"
#include "common/machine/machine.h"

namespace gg {

void reference_rows(const Matrices& matrices, const Group& group, int first, int last, double* reference,
                    double* magnitude) {
  constexpr int kPiece = 1 << 16;  // multiply-adds that are worth a thread
  constexpr int kColumns = 512;    // of D that a thread has at a time: a single row is work for several
  const int n = group.n, k = group.k;
  const auto b = std::make_unique_for_overwrite<float[]>(size_t(k) * size_t(n));
  parallel_for(k, std::max(1, kPiece / n), [&](int64_t k_first, int64_t k_last) {
    for (int64_t row = k_first; row < k_last; ++row) {
      for (int col = 0; col < n; ++col) {
        const int64_t element = group.b.offset + row * group.b_k_step() + col * group.b_n_step();
        b[size_t(row * n + col)] =
            decode(matrices.formats.b, load_code(matrices.b, matrices.formats.b, element));
      }
    }
  });
  const int strips = (n + kColumns - 1) / kColumns;
  const int64_t at_once = std::max<int64_t>(1, kPiece / (int64_t(k) * std::min(n, kColumns)));
  parallel_for(int64_t(last - first) * strips, at_once, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / strips;
      const int col0 = int(i % strips) * kColumns, cols = std::min(kColumns, n - col0);
      double* sum = reference + row * n + col0;
      double* size = magnitude + row * n + col0;
      std::fill(sum, sum + cols, 0.0);
      std::fill(size, size + cols, 0.0);
      for (int kk = 0; kk < k; ++kk) {
        const int64_t element = group.a.offset + (first + row) * group.a.ld + kk;
        const double a = decode(matrices.formats.a, load_code(matrices.a, matrices.formats.a, element));
        const float* b_row = b.get() + size_t(kk) * size_t(n) + col0;
        for (int col = 0; col < cols; ++col) {
          const double product = a * double(b_row[col]);
          sum[col] += product;
          size[col] += std::fabs(product);
        }
      }
    }
  });
}

}  // namespace gg
