// SPDX-License-Identifier: MIT
//
// A layer in plain loops on the host, in double precision. With Number = double its gradients are
// the derivatives of its loss. With Number = Rounded each number has a variance too, of the same
// number on a device, which rounds to bf16 and sums in f32.

#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/harness/layer/routes.h"
#include "common/kernel/epilogue_glu.cuh"

namespace gg {

// Numbers with the variance of their errors, as if all errors were independent: also those of the
// factors of `*`. Both factors of a square have the same error.
// [rounded]
struct Rounded {
  double value = 0, variance = 0;  // of the device's number, which is about `value`
  Rounded() = default;
  Rounded(double value, double variance = 0) : value(value), variance(variance) {}
  friend Rounded operator+(Rounded a, Rounded b) { return {a.value + b.value, a.variance + b.variance}; }
  friend Rounded operator-(Rounded a, Rounded b) { return {a.value - b.value, a.variance + b.variance}; }
  friend Rounded operator*(Rounded a, Rounded b) {
    return {a.value * b.value, a.value * a.value * b.variance + a.variance * b.value * b.value};
  }
  friend Rounded square(Rounded a) { return {a.value * a.value, 4 * a.value * a.value * a.variance}; }
  Rounded off_by(double relative) const { return {value, variance + relative * relative * value * value}; }
};
// [/rounded]

inline double square(double x) { return x * x; }

// The device rounds this to bf16, to the nearest of 8 significant bits. It is off by up to 2^-8 of
// itself then, and by any part of that as likely.
inline double rounded(double x) { return x; }
inline Rounded rounded(Rounded x) { return x.off_by(0x1p-8 / std::sqrt(3.0)); }

// The logistic function, whose slope is at most 1/4; in f32 it is approximate (epilogue_glu.cuh).
inline double sigma(double x) { return 1 / (1 + std::exp(-x)); }
inline Rounded sigma(Rounded x) { return Rounded(sigma(x.value), x.variance / 16).off_by(0x1p-20); }

// A sum of products in f32. Its error is at most about 2^-19 of the sum of their magnitudes; a
// quarter of that is its deviation here.
inline double sum_of(double sum, double) { return sum; }
inline Rounded sum_of(Rounded sum, double magnitudes) {
  return {sum.value, sum.variance + magnitudes * magnitudes * 0x1p-42};
}
inline double magnitude(double x) { return std::fabs(x); }
inline double magnitude(Rounded x) { return std::fabs(x.value); }

template <class Number>
class Sum {
 public:
  void add(Number term) {
    sum_ = sum_ + term;
    magnitudes_ += magnitude(term);
  }
  Number in_f32() const { return sum_of(sum_, magnitudes_); }

 private:
  Number sum_ = 0;
  double magnitudes_ = 0;
};

// The unit's output of a gate, its up and prob; and the gradients of all three, from that of unit.
template <class Number>
Number unit_of(Number gate, Number up, Number prob) {
  return rounded(gate * sigma(gate) * up * prob);
}
template <class Number>
struct GluDerivative {
  Number gate, up, prob;
  GluDerivative(Number of_gate, Number of_up, Number of_prob, Number by_unit) {
    const Number s = sigma(of_gate), a = of_gate * s, with_prob = by_unit * of_prob;
    gate = with_prob * of_up * (s + a * (Number(1) - s));
    up = with_prob * a;
    prob = by_unit * a * of_up;
  }
};

// A step depends on these, and each has a gradient. Their layouts are those of LayerTensors. BIAS
// [experts, 2 inner] is added to c: zeros, as the layer has none.
enum Of { TOKENS, W1, W2, PROB, BIAS, ALL };
template <class Number>
using Parameters = std::array<std::vector<Number>, ALL>;
template <class Number>
struct Gradients {
  Number loss;
  Parameters<Number> by;
};

template <class Number>
class Reference {
 public:
  Reference(const LayerSizes& sizes, const Routes& routes, const Parameters<Number>& parameters)
      : hidden_(sizes.hidden),
        inner_(sizes.inner),
        top_k_(sizes.top_k),
        rows_(sizes.rows()),
        routes_(routes),
        p_(parameters),
        c_(size_t(rows_) * 2 * size_t(inner_)),
        unit_(size_t(rows_) * size_t(inner_)),
        y_(size_t(rows_) * size_t(hidden_)),
        dy_(y_.size()) {
    for (int g = 0; g < sizes.experts; ++g)
      expert_of_.resize(size_t(routes.offsets[size_t(g) + 1]), g);  // rows up to the next expert's
    for (int row = 0; row < rows_; ++row) forward(row);
  }

  // The loss of these outputs. `target` [tokens, hidden]; `scale`: as LayerProgram takes it.
  Number loss(const std::vector<double>& target, double scale) {
    Sum<Number> loss;
    for (size_t i = 0; i < target.size(); ++i) {
      const int32_t* const row_of = &routes_.row_of[i / size_t(hidden_) * size_t(top_k_)];
      const size_t h = i % size_t(hidden_);
      Sum<Number> out;
      for (int choice = 0; choice < top_k_; ++choice) out.add(y_[at(row_of[choice], hidden_) + h]);
      const Number error = out.in_f32() - Number(target[i]);
      loss.add(Number(scale / 2) * square(error));
      for (int choice = 0; choice < top_k_; ++choice)
        dy_[at(row_of[choice], hidden_) + h] = rounded(Number(scale) * error);
    }
    return loss.in_f32();
  }

  // After `loss`: the gradients of all parameters.
  Parameters<Number> gradients() {
    for (int of = 0; of < ALL; ++of) sums_[size_t(of)].resize(p_[size_t(of)].size());
    for (int row = 0; row < rows_; ++row) backward(row);
    Parameters<Number> all;
    for (int of = 0; of < ALL; ++of) {
      for (const Sum<Number>& sum : sums_[size_t(of)])
        all[size_t(of)].push_back(of == TOKENS ? rounded(sum.in_f32()) : sum.in_f32());
    }
    return all;
  }

 private:
  // The first element of a row of a matrix.
  static size_t at(int64_t row, int columns) { return size_t(row * columns); }
  size_t w1_at(int row, int col) const {
    return at(int64_t(expert_of_[size_t(row)]) * 2 * inner_ + col, hidden_);
  }
  size_t w2_at(int row, int col) const {
    return at(int64_t(expert_of_[size_t(row)]) * hidden_ + col, inner_);
  }
  size_t bias_at(int row) const { return at(expert_of_[size_t(row)], 2 * inner_); }
  size_t token_at(int row) const { return at(routes_.token_of[size_t(row)], hidden_); }

  void forward(int row) {
    Number *const c = &c_[at(row, 2 * inner_)], *const unit = &unit_[at(row, inner_)];
    for (int j = 0; j < 2 * inner_; ++j) {
      Sum<Number> sum;
      for (int h = 0; h < hidden_; ++h)
        sum.add(p_[TOKENS][token_at(row) + size_t(h)] * p_[W1][w1_at(row, j) + size_t(h)]);
      c[j] = rounded(sum.in_f32() + p_[BIAS][bias_at(row) + size_t(j)]);
    }
    for (int i = 0; i < inner_; ++i) {
      unit[i] = unit_of(c[epilogue::gate_column(i)], c[epilogue::up_column(i)], p_[PROB][size_t(row)]);
    }
    for (int h = 0; h < hidden_; ++h) {
      Sum<Number> sum;
      for (int i = 0; i < inner_; ++i) sum.add(unit[i] * p_[W2][w2_at(row, h) + size_t(i)]);
      y_[at(row, hidden_) + size_t(h)] = rounded(sum.in_f32());
    }
  }

  // Adds a row to the sums. First comes its row of dc, from which its token's gradient follows.
  void backward(int row) {
    const Number *const dy = &dy_[at(row, hidden_)], *const c = &c_[at(row, 2 * inner_)];
    std::vector<Number> dc(2 * size_t(inner_));
    for (int i = 0; i < inner_; ++i) {
      Sum<Number> dunit;
      for (int h = 0; h < hidden_; ++h) {
        const size_t w = w2_at(row, h) + size_t(i);
        dunit.add(dy[h] * p_[W2][w]);
        sums_[W2][w].add(dy[h] * unit_[at(row, inner_) + size_t(i)]);
      }
      const size_t gate_at = size_t(epilogue::gate_column(i)), up_at = size_t(epilogue::up_column(i));
      const GluDerivative<Number> by(c[gate_at], c[up_at], p_[PROB][size_t(row)], dunit.in_f32());
      sums_[PROB][size_t(row)].add(by.prob);
      sums_[BIAS][bias_at(row) + gate_at].add(by.gate);
      sums_[BIAS][bias_at(row) + up_at].add(by.up);
      dc[gate_at] = rounded(by.gate);
      dc[up_at] = rounded(by.up);
    }
    for (int h = 0; h < hidden_; ++h) {
      const size_t token = token_at(row) + size_t(h);
      Sum<Number> dx;
      for (int j = 0; j < 2 * inner_; ++j) {
        const size_t w = w1_at(row, j) + size_t(h);
        dx.add(dc[size_t(j)] * p_[W1][w]);
        sums_[W1][w].add(dc[size_t(j)] * p_[TOKENS][token]);
      }
      sums_[TOKENS][token].add(rounded(dx.in_f32()));
    }
  }

  int hidden_, inner_, top_k_, rows_;
  const Routes& routes_;
  const Parameters<Number>& p_;
  std::vector<int> expert_of_;
  std::vector<Number> c_, unit_, y_, dy_;
  std::array<std::vector<Sum<Number>>, ALL> sums_;
};

}  // namespace gg
