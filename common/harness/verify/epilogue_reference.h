// SPDX-License-Identifier: MIT
//
// The outputs that an epilogue must give, written from its formulas and sharing nothing with the
// kernels: a product in double, each f32 rounding spelled out, codes by common/kernel/formats.h.
// Where an fp32 accumulator may lose something, or overflow in some orders, a value is a range,
// which every later step maps.
//
// Quantising (Operator::quant), fl() being one rounding to f32:
//   v = fl(fl(alpha * acc) * prob), or with a bias fma(alpha, acc, fl(prob * bias));
//     any contraction passes
//   blocks of 32 along a row (D, SFD_row) or along a column (D_col, SFD_col), if norm_const is set:
//   raw = fl(fl(max|v| * RCP) * norm), code = raw rounded up to UE8M0, S = the code's value,
//   q = min(fl(norm * rcp(S)), FLT_MAX), D = fl(v * q) rounded and saturated;
//   RCP 1/448 (E4M3), 1/128 (E5M2)
// Gated (Operator::glu, glu_hadamard), for 0 <= i < 32: gate in column 64b + i, up in 64b + 32 + i:
//   c = fl(alpha * acc) or fma(alpha, acc, bias); C = c rounded, what follows uses c
//   swiglu: x = fl(fl(fl(gate * sigma(gate)) * up) * prob)
//   geglu: gate' = min(gate, 7), up' = max(min(up, 7), -7),
//     x likewise of gate' * sigma(fl(1.702 * gate')) and fl(up' + 1)
//   glu: D = x rounded
//   glu_gradient, with the product in place of c: y = fl(alpha * acc), h = fl(y * prob), of gate
//     and up as C has them, s = sigma(gate), a = fl(gate * s), u = up, f = 1; or of geglu those of
//     gate' and up', with s = sigma(fl(1.702 * gate')), u = fl(up' + 1), f = 1.702:
//     D in the gate's column: fl(fl(h * u) * slope) rounded, slope = s + fl(f * a) * (1 - s)
//     D in the up's column: fl(h * a) rounded; of geglu 0 where a clamp acts on the gate, or the up
//     dprob = sum over columns of fl(y * fl(a * u)); dbias = sum over a group's rows of D before
//     it is rounded: any order of f32 sums passes
//   glu_hadamard: X = x rounded to bf16, in each 16 columns Y_j = sum over i of X_i W_ji in f32,
//     D = Y rounded

#pragma once

#include <string>
#include <vector>

#include "common/harness/machine/overflow.h"
#include "common/harness/problem/layout.h"
#include "common/harness/problem/tensors.h"
#include "common/harness/verify/range.h"

namespace gg {

// One mistake that the reference can make on purpose: it is named where the outputs agree then.
enum class Mistake {
  none,
  // alpha, prob and bias
  no_alpha,
  alpha_before,
  alpha_after,
  no_prob,
  prob_above,
  prob_below,
  prob_of_group_row,
  no_bias,
  bias_before,
  bias_after,
  bias_of_first,
  bias_left,
  bias_right,
  prob_on_sum,
  prob_on_product,
  factors_first,
  // scales
  scale_down,
  scale_nearest,
  scale_from_d,
  unrounded_scale,
  column_from_d,
  norm_last,
  no_norm,
  rcp_of_largest,
  no_cap,
  column_layout,
  row_layout,
  // amax
  amax_of_d,
  amax_signed,
  amax_of_x,
  // activations
  c_clamped,
  c_gated,
  gate_and_up,
  from_rounded_c,
  no_plus_one,
  gate_clamped_below,
  no_clamps,
  no_factor,
  other_activation,
  pairs_of_neighbours,
  pairs_of_halves,
  // the transform
  quarter,
  x_not_rounded,
  x_as_d,
  transposed,
  // gradients
  no_slope,
  prob_in_dprob,
  clamps_passed,
  dbias_of_rounded,
  c_of_group_row,
};
struct MistakeInfo {
  Mistake mistake;
  const char* what;  // ends "looks like .."
};
// Those that could have been made in this epilogue, in the order in which they are tried.
std::vector<MistakeInfo> mistakes_of(const Epilogue& epilogue, const Formats& formats);

// The sum of products of one element of D: exact where every product is a multiple of
// 2^least_bit and they are few enough, else within 2^-19 of the sum of magnitudes, as
// compare.h's limit for random data. And the infinities that its partial sums may reach, or NaN
// where they may reach both.
Range product_range(double sum, double magnitude, int least_bit, Overflow overflow = {});

// The codes of a scale that are right.
struct Codes {
  uint32_t least = 256, most = 0;  // of finite values
  bool infinite = false, nan = false;

  bool has(uint32_t code) const;
  uint32_t any() const;  // one of them
  bool is_one() const { return least == most && !infinite && !nan; }
};
// The arithmetic for one problem. Rows are counted over all groups.
class EpilogueReference {
 public:
  EpilogueReference(const Epilogue& epilogue, const Formats& formats, const EpilogueOperands& operands,
                    const Layout& layout, Mistake mistake = Mistake::none)
      : e_(epilogue), formats_(formats), operands_(operands), layout_(layout), mistake_(mistake) {}

  // v of quant, c of the others, from the product at a row and column of B.
  Range value(const Range& product, int group, int64_t row, int col) const;
  // Before C is rounded.
  Range stored_c(const Range& c, bool is_gate, int group, int64_t row) const;
  // Columns of B whose products make column `col` of D.
  int gate_column(int col, int n) const;
  int up_column(int col, int n) const;
  Range activated(const Range& gate, const Range& up, int group, int64_t row) const;
  // The way back, of the product y: what is rounded to D in the gate's column and in the up's, and
  // the part of dprob. `gate` and `up` are those of C.
  struct Gradient {
    Range gate, up, prob;
  };
  Gradient gradient(const Range& product, const Range& gate, const Range& up, int group, int64_t row) const;
  // An element of C that the forward pass made; columns: 2N.
  Range saved_c(int group, int64_t row, int col, int columns) const;
  // 16 neighbours. A tensor core adds 16 products at once. The butterfly adds two X, then two such
  // sums, and so on: where one of these leaves the range of f32, Y may also be what becomes of it.
  void transformed(const Range* x, Range* y) const;

  // For block-scaled outputs, `largest` is the range of max|v|.
  Range largest(const Range* values, int64_t step, int count) const;
  Codes codes(const Range& largest) const;
  // The factor of a scale, and v times it, what is rounded to D.
  float factor(uint32_t code, const Range& largest) const;
  Range scaled(const Range& v, uint32_t code, float factor) const;
  float norm() const;
  Mistake mistake() const { return mistake_; }

 private:
  float alpha(int group) const;
  float prob(int group, int64_t row) const;
  float bias(int group, int col) const;
  Range sigma(const Range& t) const;
  Range gated(const Range& gate, float factor) const;
  void add_overflows(const Range* x, Range* y) const;
  float reciprocal() const;
  float raw(float largest) const;

  const Epilogue& e_;
  const Formats& formats_;
  const EpilogueOperands& operands_;
  const Layout& layout_;
  Mistake mistake_;
};

Range rounded(const Range& x, Format format);
// Is a code right for a value in this range? Zero has either sign where the value may be zero.
bool fits(uint32_t code, Format format, const Range& value);

}  // namespace gg
