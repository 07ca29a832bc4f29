// SPDX-License-Identifier: MIT
//
// Chapter 10b's gradient of a gated linear unit beside chapter 07l's product and then a kernel
// that reads it.

#include <cmath>

#include "rows.cuh"
#include "ways.h"

namespace {

using gg::Tensor;
using rows::value;

// A float of some bytes.
float number(const std::vector<char>& bytes, size_t i) {
  float value;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

// Rounding the product moves all that is made of it by up to 2^-8 of itself, and both
// outputs are rounded. A sum of values that are off by up to 2^-8 each is off by that of the
// sum of their magnitudes.
void require_equal(gg::Machine&, const gg::Buffers& buffers, const bf16*, const Outputs& unfused,
                   const Outputs& fused) {
  const gg::Problem& p = buffers.problem();
  const int64_t columns = 2 * int64_t(p.n());
  const std::vector<char>&expected = unfused.at(Tensor::d), &got = fused.at(Tensor::d);
  for_each_row(p, [&](size_t, int64_t row) {
    for (int col = 0; col < int(columns); ++col) {
      const size_t at = size_t(row * columns + col);
      const float want = value(expected, at), is = value(got, at);
      if (!(std::fabs(is - want) <= (3 * std::fabs(want) + 0x1p-100f) * 0x1p-8f))
        differ(buffers, place(row, col), is, want);
    }
  });
  // The first element of each group's dbias that is too far off; none: -1.
  const auto& offsets = p.layout().offsets;
  std::vector<int64_t> wrong(size_t(p.groups()), -1);
  gg::parallel_for(p.groups(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      std::vector<double> magnitudes(static_cast<size_t>(columns));
      for (int64_t row = offsets[size_t(group)]; row < offsets[size_t(group) + 1]; ++row) {
        for (int64_t col = 0; col < columns; ++col)
          magnitudes[size_t(col)] += double(std::fabs(value(expected, size_t(row * columns + col))));
      }
      for (int64_t col = columns - 1; col >= 0; --col) {
        const size_t at = size_t(group * columns + col);
        const double off =
            double(number(fused.at(Tensor::dbias), at)) - double(number(unfused.at(Tensor::dbias), at));
        if (!(std::fabs(off) <= magnitudes[size_t(col)] * 0x1p-8)) wrong[size_t(group)] = int64_t(at);
      }
    }
  });
  for (const int64_t at : wrong) {
    if (at < 0) continue;
    differ(buffers, gg::format("dbias of group %d column %d", int(at / columns), int(at % columns)),
           double(number(fused.at(Tensor::dbias), size_t(at))),
           double(number(unfused.at(Tensor::dbias), size_t(at))));
  }
}

gg::Setup setup() {
  gg::Setup setup;
  setup.request.b_layout = gg::BLayout::kn;
  setup.host_offsets = false;
  setup.request.epilogue = {.op = gg::Operator::glu_gradient};
  setup.workspace_bytes = workspace_of_10b;
  return setup;
}

const bool known = add({.option = "10b",
                        .chapter = "10b_glu_gradient",
                        .setup = setup(),
                        .sets = "prefill,skewed,decode,moe",
                        .fused = launch_10b,
                        .unfused = launch_glu_gradient,
                        .require_equal = require_equal});

}  // namespace
