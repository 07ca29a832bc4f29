// SPDX-License-Identifier: MIT
//
// The launches of a step, each beside the operands that it found in memory.

#include <algorithm>
#include <cstdio>

#include "common/harness/layer/layer_check.h"
#include "common/harness/layer/reference.h"

namespace gg {
namespace {

constexpr int kLooks = 8;       // rows that are checked, from the first to the last; and tokens
constexpr int kColumns = 64;    // of dbias
constexpr int kWeights = 4096;  // at the beginning and at the end of W1 and of W2
constexpr float kRate = 1;

Region region(int64_t offset, int rows, int cols) { return {offset, rows, cols, cols}; }

// The same place among `all` as look `i` has among the looks.
int spread(int i, int all) { return int(int64_t(i) * (all - 1) / (kLooks - 1)); }

// A device's numbers, which are what they are: without variance.
template <class Value>
std::vector<Rounded> exact(const std::vector<Value>& values) {
  std::vector<Rounded> all;
  for (const Value& value : values) all.emplace_back(double(to_float(value)));
  return all;
}

// Numbers that a device made, and what they should be.
template <class Value>
struct Found {
  std::vector<Value> got;
  std::vector<Rounded> want;
  void add(const std::vector<Value>& some, const std::vector<Rounded>& wanted) {
    got.insert(got.end(), some.begin(), some.end());
    want.insert(want.end(), wanted.begin(), wanted.end());
  }
};

}  // namespace

void LayerChecks::products() {
  const std::vector<int32_t>& offsets = layer_.routes().offsets;
  // `group` makes one of an expert, its first row and its number of rows; `factor` says of a group
  // what a sum may lose, as a part of the sum of all magnitudes.
  const auto check = [&](const char* name, const void* a, const void* b, const void* d, Format of_d,
                         auto&& group, auto&& factor) {
    const Matrices matrices = {.a = a, .b = b, .d = d, .formats = {Format::bf16, Format::bf16, of_d}};
    Comparison found;
    for (size_t g = 0; g < size_t(s_.experts); ++g) {
      const Group of_expert = group(int64_t(g), offsets[g], offsets[g + 1] - offsets[g]);
      found.merge(layer_.machine().compare(matrices, {of_expert}, {of_d, false, factor(of_expert)}));
    }
    const auto failures = static_cast<long long>(found.failures), all = static_cast<long long>(found.checked);
    expect(failures == 0 && all > 0,
           failures ? format("%-8s %lld of %lld numbers are off by more than rounding", name, failures, all)
                    : format("%-8s all %lld numbers, off by at most %.0f %% of what rounding may do", name,
                             all, 100 * double(found.worst_ratio)));
  };
  // Rows of [rows,k] times an expert's weights, [n,k] or [k,n].
  const auto forward = [](int n, int k, BLayout layout) {
    return [=](int64_t expert, int64_t first, int rows) {
      const bool nk = layout == BLayout::nk;
      return Group{.m = rows,
                   .n = n,
                   .k = k,
                   .a = region(first * k, rows, k),
                   .b = region(expert * n * k, nk ? n : k, nk ? k : n),
                   .d = region(first * n, rows, n),
                   .b_layout = layout};
    };
  };
  // An expert's rows of A [rows,m] and B [rows,n]: A^T B.
  const auto gradient = [](int m, int n) {
    return [=](int64_t expert, int64_t first, int rows) {
      return Group{.m = m,
                   .n = n,
                   .k = rows,
                   .a = region(first * m, rows, m),
                   .b = region(first * n, rows, n),
                   .d = region(expert * m * n, m, n),
                   .a_transposed = true};
    };
  };
  const int hidden = s_.hidden, inner = s_.inner;
  // Weights are normal numbers, so terms come in both signs and the sum stays small, as in the
  // problems that this factor was chosen for (verify/product.cpp).
  const auto usual = [](const Group&) { return format_info(Format::bf16).sum_factor; };
  check("c", t_.x, t_.w1, t_.c, Format::bf16, forward(2 * inner, hidden, BLayout::nk), usual);
  check("y", t_.unit, t_.w2, t_.y, Format::bf16, forward(hidden, inner, BLayout::nk), usual);
  check("dx", t_.dc, t_.w1, t_.dx, Format::bf16, forward(hidden, 2 * inner, BLayout::kn), usual);
  // One row may outweigh all others, and the sum be as large as all magnitudes from there on. A
  // tensor core cuts off up to 2^-23 of it at each step of 16 rows: more than usual above 256 rows.
  const auto most = [&](const Group& of) { return std::max(usual(of), 0x1p-23 * ((of.k + 15) / 16)); };
  check("dW1", t_.dc, t_.x, t_.dw1, Format::f32, gradient(2 * inner, hidden), most);
  check("dW2", t_.dy, t_.unit, t_.dw2, Format::f32, gradient(hidden, inner), most);
}

void LayerChecks::rows() {
  const int64_t hidden = s_.hidden, inner = s_.inner;
  const Routes& routes = layer_.routes();
  Found<bf16> x, unit, dc;
  Found<float> dprob, dbias;
  for (int look = 0; look < kLooks; ++look) {
    const int64_t row = spread(look, s_.rows());
    const auto above = std::upper_bound(routes.offsets.begin(), routes.offsets.end(), int32_t(row));
    const int64_t expert = above - routes.offsets.begin() - 1;
    x.add(layer_.download(t_.x + row * hidden, hidden),
          exact(layer_.download(t_.tokens + routes.token_of[size_t(row)] * hidden, hidden)));

    const std::vector<Rounded> dy = exact(layer_.download(t_.dy + row * hidden, hidden)),
                               c = exact(layer_.download(t_.c + row * 2 * inner, 2 * inner));
    const std::vector<bf16> w2 = layer_.download(t_.w2 + expert * hidden * inner, hidden * inner);
    std::vector<Sum<Rounded>> sums(static_cast<size_t>(inner));
    for (size_t i = 0; i < w2.size(); ++i)
      sums[i % sums.size()].add(dy[i / sums.size()] * Rounded(double(to_float(w2[i]))));
    const Rounded prob = double(routes.prob[size_t(row)]);
    std::vector<Rounded> units, by_c(c.size());
    Sum<Rounded> by_prob;
    double deviations = 0;
    for (int j = 0; j < inner; ++j) {
      const size_t gate = size_t(epilogue::gate_column(j)), up = size_t(epilogue::up_column(j));
      const GluDerivative<Rounded> by(c[gate], c[up], prob, sums[size_t(j)].in_f32());
      units.push_back(unit_of(c[gate], c[up], prob));
      by_c[gate] = rounded(by.gate);
      by_c[up] = rounded(by.up);
      by_prob.add(by.prob);
      deviations += std::sqrt(by.prob.variance);
    }
    unit.add(layer_.download(t_.unit + row * inner, inner), units);
    dc.add(layer_.download(t_.dc + row * 2 * inner, 2 * inner), by_c);
    // A tensor core cuts all sums towards zero. Where the terms of all columns have one sign, so
    // have their errors, and their deviations add up.
    dprob.add(layer_.download(t_.dprob + row, 1), {{by_prob.in_f32().value, square(deviations)}});

    // The expert's last columns of dbias: the device adds up dc before it rounds that.
    const int64_t column = 2 * inner - kColumns, first = routes.offsets[size_t(expert)];
    const int rows = routes.offsets[size_t(expert) + 1] - int32_t(first);
    std::vector<bf16> of_rows(size_t(rows) * kColumns);
    layer_.machine().download_rows(of_rows.data(), t_.dc + first * 2 * inner + column,
                                   kColumns * sizeof(bf16), 2 * size_t(inner) * sizeof(bf16), rows);
    std::vector<Sum<Rounded>> biases(kColumns);
    for (size_t i = 0; i < of_rows.size(); ++i)
      biases[i % kColumns].add(rounded(Rounded(double(to_float(of_rows[i])))));
    std::vector<Rounded> wanted;
    for (const Sum<Rounded>& bias : biases) wanted.push_back(bias.in_f32());
    dbias.add(layer_.download(t_.dbias + expert * 2 * inner + column, kColumns), wanted);
  }
  compare("x", x.got, x.want);
  compare("unit", unit.got, unit.want);
  compare("dc", dc.got, dc.want);
  compare("dprob", dprob.got, dprob.want);
  compare("dbias", dbias.got, dbias.want);
}

void LayerChecks::tokens() {
  const int64_t hidden = s_.hidden;
  Found<float> loss;
  Found<bf16> dy, dtokens;
  for (int look = 0; look < kLooks; ++look) {
    const int64_t token = spread(look, s_.tokens);
    const int32_t* const row_of = &layer_.routes().row_of[size_t(token) * size_t(s_.top_k)];
    const auto sum_of_rows = [&](const bf16* from) {
      std::vector<Sum<Rounded>> sums(static_cast<size_t>(hidden));
      for (int choice = 0; choice < s_.top_k; ++choice) {
        const std::vector<Rounded> row = exact(layer_.download(from + row_of[choice] * hidden, hidden));
        for (size_t h = 0; h < row.size(); ++h) sums[h].add(row[h]);
      }
      return sums;
    };
    const std::vector<Sum<Rounded>> y = sum_of_rows(t_.y), dx = sum_of_rows(t_.dx);
    const std::vector<Rounded> target = exact(layer_.download(t_.target + token * hidden, hidden));
    const Rounded scale = double(layer_.scale());
    Sum<Rounded> squares;
    std::vector<Rounded> by_y, by_token;
    for (size_t h = 0; h < target.size(); ++h) {
      const Rounded error = y[h].in_f32() - target[h];
      squares.add(scale * Rounded(0.5) * square(error));
      by_y.push_back(rounded(scale * error));
      by_token.push_back(rounded(dx[h].in_f32()));
    }
    loss.add(layer_.download(t_.loss + token, 1), {squares.in_f32()});
    for (int choice = 0; choice < s_.top_k; ++choice)
      dy.add(layer_.download(t_.dy + row_of[choice] * hidden, hidden), by_y);
    dtokens.add(layer_.download(t_.dtokens + token * hidden, hidden), by_token);
  }
  compare("loss", loss.got, loss.want);
  compare("dy", dy.got, dy.want);
  compare("dtokens", dtokens.got, dtokens.want);
}

void LayerChecks::update() {
  const std::vector<LayerLaunch> step = layer_.step(kRate);
  const std::ptrdiff_t before = std::ptrdiff_t(layer_.forward_and_backward().size());
  struct Weights {
    const char* name;
    const float *weights, *gradient;
    const bf16* copy;
    int64_t count;
  };
  const auto looks = [](const Weights& of) {
    return std::vector<int64_t>{0, std::max<int64_t>(0, of.count - kWeights)};
  };
  const Weights both[] = {{"W1", t_.f32_w1, t_.dw1, t_.w1, s_.w1()},
                          {"W2", t_.f32_w2, t_.dw2, t_.w2, s_.w2()}};
  std::vector<std::vector<float>> old;
  for (const Weights& of : both) {
    for (const int64_t at : looks(of))
      old.push_back(layer_.download(of.weights + at, std::min<int64_t>(of.count, kWeights)));
  }
  layer_.run({step.begin() + before, step.end()});
  auto were = old.begin();
  for (const Weights& of : both) {
    Found<float> weights;
    Found<bf16> copy;
    for (const int64_t at : looks(of)) {
      const int64_t count = int64_t(were->size());
      const std::vector<float> by = layer_.download(of.gradient + at, count),
                               now = layer_.download(of.weights + at, count);
      std::vector<Rounded> wanted, in_bf16;
      for (size_t i = 0; i < by.size(); ++i) {
        Sum<Rounded> next;
        next.add(double((*were)[i]));
        next.add(double(-kRate * by[i]));
        wanted.push_back(next.in_f32());
        in_bf16.emplace_back(double(to_float(__float2bfloat16_rn(now[i]))));
      }
      weights.add(now, wanted);
      copy.add(layer_.download(of.copy + at, count), in_bf16);
      ++were;
    }
    compare(of.name, weights.got, weights.want);
    compare("in bf16", copy.got, copy.want);
  }
}

void LayerChecks::launches() {
  std::printf("each launch beside the operands that it found\n");
  layer_.poison();
  layer_.run(layer_.forward_and_backward());
  products();
  rows();
  tokens();
  update();
}

}  // namespace gg
