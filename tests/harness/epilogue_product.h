// SPDX-License-Identifier: MIT
//
// A product with an epilogue, block-scaled or not, as a plain function on host memory, in f32 as a
// kernel does it, with one bug by its name.

#pragma once

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <string>
#include <vector>

#include "common/harness/problem/layout.h"
#include "common/kernel/block_scales.h"

namespace gg::planted {

class Product {
 public:
  explicit Product(std::string bug = "") : bug_(std::move(bug)) {}

  void operator()(const Problem& problem, cudaStream_t) {
    p_ = &problem;
    n_ = problem.n();
    for (int g = 0; g < problem.groups(); ++g) {
      group_ = g;
      first_ = g ? problem.offsets().ends()[g - 1] : 0;
      end_ = problem.offsets().ends()[g];
      if (first_ == end_) continue;
      load_weights();
      amax_ = 0;
      v_.assign(size_t(end_ - first_) * size_t(n_), 0);
      for (int row = first_; row < end_; ++row) products(row);
      problem.request().epilogue.op == Operator::quant ? quantise() : gate();
      wrong_places();
      if (problem.epilogue().amax && !is("NoAmax")) problem.epilogue().amax[g] = amax_;
    }
  }

 private:
  bool is(const char* bug) const { return bug_ == bug; }
  bool has_scales() const { return p_->formats().has_scales(); }
  ScaleLayout scales_of(int64_t rows) const {
    return has_scales() ? ScaleLayout{rows, scale_blocks(p_->k(), p_->formats().scaling().block)}
                        : ScaleLayout{};
  }
  float& v(int row, int col) { return v_[size_t(row - first_) * size_t(n_) + size_t(col)]; }

  // Writes where no group owns anything, and what is left unwritten.
  void wrong_places() {
    const Problem& p = *p_;
    const int64_t ends = p.offsets().ends()[p.groups() - 1];
    if (is("WritesRowBehind")) store(p.d<void>(), p.formats().d, ends * n_ + 3, 1);
    if (is("WritesColumnBehind")) store(p.epilogue().d_col, p.formats().d, ends * n_, 1);
    if (is("WritesScaleBehind")) p.epilogue().sfd_row[ScaleLayout{ends, (n_ + 31) / 32}.bytes() + 5] = 0;
    if (is("WritesColumnScaleBehind")) p.epilogue().sfd_col[ScaleLayout{n_, ends / 32}.bytes()] = 0;
    if (is("WritesAmaxBehind")) p.epilogue().amax[p.groups()] = 1;
    if (is("WritesCBehind")) store(p.epilogue().c, p.formats().c, ends * n_ + 70, 1);
    if (is("ChangesEachTime")) store(p.d<void>(), p.formats().d, int64_t(first_) * n_, float(++launches_));
    if (is("TileMatters") && p.tile().m == 128) amax_ += 1;
  }

  void load_weights() {
    const Problem& p = *p_;
    const BlockScaling scaling = p.formats().scaling();
    const Format type = p.formats().b;
    const ScaleLayout layout = scales_of(n_);
    const int g = is("ExpertAfter") ? (group_ + 1) % p.groups() : group_;
    const size_t each = bytes_of(type, int64_t(n_) * p.k());
    const uint8_t* b = p.discrete().b ? p.discrete().b_ptrs<uint8_t>()[g] : p.b<uint8_t>() + size_t(g) * each;
    const uint8_t* sfb = p.discrete().b ? p.discrete().sfb_ptrs[g]
                         : has_scales() ? p.scaled().sfb + g * layout.bytes()
                                        : nullptr;
    if (is("ScaleStrideTooShort"))  // N is not rounded up to 128
      sfb =
          p.scaled().sfb + g * (n_ / ScaleLayout::kAtomRows) * layout.block_atoms() * ScaleLayout::kAtomBytes;
    if (p.discrete().b && is("DiscreteInOrder")) b = p.discrete().b_ptrs<uint8_t>()[0] + size_t(g) * each;
    const int64_t row = p.b_layout() == BLayout::nk ? p.k() : 1, step = p.b_layout() == BLayout::nk ? 1 : n_;
    b_.resize(size_t(n_) * size_t(p.k()));
    for (int col = 0; col < n_; ++col) {
      for (int k = 0; k < p.k(); ++k) {
        const uint32_t code = load_code(b, type, col * row + k * step);
        b_[size_t(k) * size_t(n_) + size_t(col)] =
            sfb ? float(dequantised(scaling, code, sfb[layout.offset(col, k / scaling.block)]))
                : decode(type, code);
      }
    }
  }

  // Row `row` of v, or of c.
  void products(int row) {
    const Problem& p = *p_;
    const BlockScaling scaling = p.formats().scaling();
    const ScaleLayout layout = scales_of(p.rows());
    std::vector<float> a(size_t(p.k()));
    for (int k = 0; k < p.k(); ++k) {
      const uint32_t code = load_code(p.a<uint8_t>(), p.formats().a, int64_t(row) * p.k() + k);
      a[size_t(k)] =
          has_scales()
              ? float(dequantised(scaling, code, p.scaled().sfa[layout.offset(row, k / scaling.block)]))
              : decode(p.formats().a, code);
    }
    const int last = p.offsets().ends()[p.groups() - 1] - 1;
    const int ag = is("AlphaBefore") ? (group_ + p.groups() - 1) % p.groups() : group_;
    const float alpha = is("NoAlpha") ? 1 : p.epilogue().alpha[ag];
    const int pr = is("ProbBelow") ? std::min(row + 1, last) : is("ProbOfGroupRow") ? row - first_ : row;
    const float prob = is("NoProb") ? 1 : p.epilogue().prob[pr];
    float first = 0;
    if (is("ReadsProbBehind")) first = 0 * p.epilogue().prob[last + 1];
    if (is("ReadsNextBias"))
      first = 0 * decode(p.epilogue().bias_format, load_code(p.epilogue().bias, p.epilogue().bias_format,
                                                             (group_ + 1) % p.groups() * n_));
    const int slice = is("MissingSlice") ? p.k() - 32 : p.k();
    // A sum waits for the one before it: those of all columns take turns.
    std::vector<float> sums(size_t(n_), first);
    for (int k = 0; k < slice; ++k) {
      const float factor = a[size_t(k)], *weights = &b_[size_t(k) * size_t(n_)];
      for (int col = 0; col < n_; ++col) sums[size_t(col)] += factor * weights[col];
    }
    for (int col = 0; col < n_; ++col) {
      const float acc = sums[size_t(col)];
      v(row, col) = p.request().epilogue.op == Operator::quant ? gated_sum(acc, alpha, prob, bias(col))
                    : p.epilogue().bias                        ? std::fma(alpha, acc, bias(col))
                                                               : alpha * acc;
    }
  }

  float bias(int col) const {
    if (!p_->epilogue().bias || is("NoBias")) return 0;
    const int g = is("BiasOfFirst") ? 0 : group_,
              c = is("BiasOfNextColumn") ? std::min(col + 1, n_ - 1) : col;
    const Format type = p_->epilogue().bias_format;
    return decode(type, load_code(p_->epilogue().bias, type, int64_t(g) * n_ + c));
  }

  float gated_sum(float acc, float alpha, float prob, float bias) const {
    if (!p_->epilogue().bias) {
      if (is("FactorsFirst")) return acc * (alpha * prob);
      return is("NotFused") ? prob * (acc * alpha) : (alpha * acc) * prob;
    }
    if (is("ProbOnSum")) return prob * std::fma(alpha, acc, bias);
    if (is("ProbOnProduct")) return std::fma(prob, alpha * acc, bias);
    if (is("NoProb")) return std::fma(alpha, acc, bias);
    if (is("NotFused")) return alpha * acc + prob * bias;  // a twin: any contraction passes
    return std::fma(alpha, acc, prob * bias);
  }

  void store(void* tensor, Format type, int64_t at, float value) const {
    store_code(tensor, type, at, encode(type, double(value)));
  }

  // ---- quantising ----

  uint8_t scale_of(float largest) const {
    const Format d = p_->formats().d;
    const float rcp = d == Format::e4m3 ? 1.0f / 448 : is("RcpOfLargest") ? 1.0f / 57344 : 1.0f / 128;
    const float norm = is("NoNorm") ? 1 : *p_->epilogue().norm_const;
    const float raw = is("NormLast") ? largest * norm * rcp : largest * rcp * norm;
    if (is("ScaleDown")) return uint8_t(encode(Format::ue8m0, double(raw), Rounding::toward_zero));
    if (is("ScaleNearest")) return uint8_t((std::bit_cast<uint32_t>(raw) + 0x400000) >> 23);
    return uint8_t(encode(Format::ue8m0, double(raw)));
  }
  float factor_of(uint8_t code, float largest) const {
    const float norm = is("NoNorm") ? 1 : *p_->epilogue().norm_const;
    if (is("UnroundedScale") && largest > 0)
      return norm / (largest * (p_->formats().d == Format::e4m3 ? 1.0f / 448 : 1.0f / 128) * norm);
    const float scale = decode(Format::ue8m0, code);
    const float q = norm * reciprocal_ftz(scale);
    return q > FLT_MAX && !is("FactorNotCapped") ? FLT_MAX : q;
  }
  static float larger(float largest, float value) {
    const float magnitude = std::fabs(value);
    return magnitude > largest || magnitude != magnitude ? (largest != largest ? largest : magnitude)
                                                         : largest;
  }

  void quantise() {
    const Problem& p = *p_;
    const Format d = p.formats().d;
    for (int row = first_; row < end_; ++row) {
      for (int col = 0; col < n_; ++col) {
        float value = v(row, col);
        if (is("AmaxSigned") ? value > amax_ : std::fabs(value) > amax_)
          amax_ = is("AmaxSigned") ? value : std::fabs(value);
        if (!p.epilogue().sfd_row) store(p.d<void>(), d, int64_t(row) * n_ + col, value);
      }
    }
    if (is("AmaxOfD")) {
      amax_ = 0;
      for (int row = first_; row < end_; ++row)
        for (int col = 0; col < n_; ++col)
          amax_ = std::max(amax_, std::fabs(decode(d, load_code(p.d<void>(), d, int64_t(row) * n_ + col))));
    }
    if (!p.epilogue().sfd_row) return;
    const ScaleLayout layout{p.rows(), (n_ + 31) / 32};
    for (int row = first_; row < end_; ++row) {
      const int64_t blocks =
          is("NoPaddingOfRows") || is("RowLayout") ? layout.blocks : layout.block_atoms() * 4;
      for (int64_t block = 0; block < blocks; ++block) row_block(row, int(block) * 32, layout);
    }
    if (p.epilogue().sfd_col && !is("NoColumns")) columns();
  }

  void row_block(int row, int col0, const ScaleLayout& layout) {
    const Problem& p = *p_;
    const Format d = p.formats().d;
    float largest = 0;
    for (int col = col0; col < std::min(col0 + 32, n_); ++col) {
      const float value = v(row, col);
      largest = larger(largest, is("ScaleFromD") ? decode(d, encode(d, double(value))) : value);
    }
    const uint8_t code = scale_of(largest);
    const int64_t at =
        is("RowLayout") ? int64_t(row) * layout.blocks + col0 / 32 : layout.offset(row, col0 / 32);
    p.epilogue().sfd_row[at] = code;
    const float q = factor_of(code, largest);
    for (int col = col0; col < std::min(col0 + 32, n_); ++col) {
      store(p.d<void>(), d, int64_t(row) * n_ + col, v(row, col) * q);
      if (is("ColumnsFromD"))
        v(row, col) = decode(d, encode(d, double(v(row, col) * q))) * decode(Format::ue8m0, code) /
                      *p.epilogue().norm_const;
    }
  }

  void columns() {
    const Problem& p = *p_;
    const bool discrete = p.epilogue().discrete_col_sfd != is("ColumnLayout");
    const ScaleLayout all{n_, (p.rows() + 31) / 32}, one{n_, (end_ - first_) / 32};
    const int64_t before = ScaleLayout{n_, first_ / 32}.bytes();
    for (int row = first_; row < end_; row += 32) {
      for (int col = 0; col < (n_ + 127) / 128 * 128; ++col) {
        float largest = 0;
        for (int r = row; r < row + 32 && col < n_; ++r) largest = larger(largest, v(r, col));
        const uint8_t code = scale_of(largest);
        const int64_t at =
            discrete ? before + one.offset(col, (row - first_) / 32) : all.offset(col, row / 32);
        if (col < n_ || !is("NoPaddingOfColumns")) p.epilogue().sfd_col[at] = code;
        for (int r = row; r < row + 32 && col < n_; ++r)
          store(p.epilogue().d_col, p.formats().d, int64_t(r) * n_ + col,
                v(r, col) * factor_of(code, largest));
      }
    }
  }

  // ---- gated ----

  float activated(float gate, float up, float prob) const {
    if (is("FromRoundedC")) {
      gate = decode(p_->formats().c, encode(p_->formats().c, double(gate)));
      up = decode(p_->formats().c, encode(p_->formats().c, double(up)));
    }
    float t = gate;
    if ((p_->epilogue().activation == Activation::geglu) != is("OtherActivation")) {
      if (!is("NoClamps")) {
        gate = gate > 7 ? 7 : gate;
        if (is("GateClampedBelow")) gate = gate < -7 ? -7 : gate;
        up = up > 7 ? 7 : up < -7 ? -7 : up;
      }
      t = is("NoFactor") ? gate : 1.702f * gate;
      if (!is("NoPlusOne")) up = up + 1;
    }
    const float sigma = 1 / (1 + std::exp2(t * -1.4426950408889634f));
    return gate * sigma * up * prob;
  }

  void gate() {
    const Problem& p = *p_;
    const int columns = n_ / 2;
    const Format c = p.formats().c, d = p.formats().d;
    std::vector<float> x(static_cast<size_t>(columns)), y;
    for (int row = first_; row < end_; ++row) {
      const int pr = is("ProbBelow")        ? std::min(row + 1, end_ - 1)
                     : is("ProbOfGroupRow") ? row - first_
                                            : row;
      const float prob = is("NoProb") ? 1 : p.epilogue().prob[pr];
      for (int col = 0; p.epilogue().c && col < n_; ++col) {
        float stored = v(row, col);
        if (is("CGated")) stored *= prob;
        if (is("CClamped")) stored = stored > 7 ? 7 : stored < -7 && col / 32 % 2 ? -7 : stored;
        store(p.epilogue().c, c, int64_t(row) * n_ + col, stored);
      }
      for (int j = 0; j < columns; ++j) {
        int g = 64 * (j / 32) + j % 32, u = g + 32;
        if (is("GateAndUp")) std::swap(g, u);
        if (is("Neighbours")) g = 2 * j, u = g + 1;
        if (is("Halves")) g = j, u = j + columns;
        x[size_t(j)] = activated(v(row, g), v(row, u), prob);
      }
      y = p.request().epilogue.op == Operator::glu_hadamard ? transformed(x) : x;
      for (int j = 0; j < columns; ++j) {
        const float value = y[size_t(j)];
        store(p.d<void>(), d, int64_t(row) * columns + j, value);
        const float of_amax = is("AmaxOfX")   ? x[size_t(j)]
                              : is("AmaxOfD") ? decode(d, encode(d, double(value)))
                                              : value;
        if (std::fabs(of_amax) > amax_) amax_ = std::fabs(of_amax);
      }
    }
  }

  std::vector<float> transformed(const std::vector<float>& x) const {
    std::vector<float> y(x.size(), 0);
    const auto* w = reinterpret_cast<const uint16_t*>(p_->epilogue().hadamard);
    const Format to = is("XAsD") ? p_->formats().d : Format::bf16;
    for (size_t j = 0; j < x.size(); ++j) {
      for (size_t i = 0; i < 16; ++i) {
        const float value = x[j / 16 * 16 + i];
        const float rounded = is("XNotRounded") ? value : decode(to, encode(to, double(value)));
        y[j] += rounded * decode(Format::bf16, w[is("Transposed") ? i * 16 + j % 16 : j % 16 * 16 + i]);
      }
      if (is("Quarter")) y[j] /= 4;
    }
    return y;
  }

  std::string bug_;
  const Problem* p_ = nullptr;
  int n_ = 0, group_ = 0, first_ = 0, end_ = 0;
  float amax_ = 0;
  int launches_ = 0;
  std::vector<float> b_, v_;
};

}  // namespace gg::planted
