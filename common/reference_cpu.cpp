// SPDX-License-Identifier: MIT
//
// The reference everything else is judged by: sums in double, one row of D at a time, on all cores.

#include <cmath>

#include "common/machine.h"
#include "common/parallel.h"

namespace gg {

void reference_rows(const Matrices& matrices, const Group& group, int first, int last, double* reference,
                    double* magnitude) {
  const int n = group.n, k = group.k;
  std::vector<float> b(size_t(k) * size_t(n));
  parallel_for(k, 16, [&](int64_t k_first, int64_t k_last) {
    for (int64_t row = k_first; row < k_last; ++row) {
      for (int col = 0; col < n; ++col) {
        const int64_t element = group.b.offset + row * group.b_k_step() + col * group.b_n_step();
        b[size_t(row * n + col)] =
            decode(matrices.formats.b, load_code(matrices.b, matrices.formats.b, element));
      }
    }
  });
  parallel_for(last - first, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double* sum = reference + i * n;
      double* size = magnitude + i * n;
      std::fill(sum, sum + n, 0.0);
      std::fill(size, size + n, 0.0);
      for (int kk = 0; kk < k; ++kk) {
        const int64_t element = group.a.offset + (first + i) * group.a.ld + kk;
        const double a = decode(matrices.formats.a, load_code(matrices.a, matrices.formats.a, element));
        const float* row = b.data() + size_t(kk) * size_t(n);
        for (int col = 0; col < n; ++col) {
          const double product = a * double(row[col]);
          sum[col] += product;
          size[col] += std::fabs(product);
        }
      }
    }
  });
}

}  // namespace gg
