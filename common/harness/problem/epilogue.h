// SPDX-License-Identifier: MIT
//
// The operators that a chapter computes behind the product, beyond rounding it to D: they quantise
// D or pass it through a gated activation, as a chapter offers them and as a reader chose. Formulas
// and layouts: common/harness/verify/epilogue_reference.h.

#pragma once

#include <cstdint>

#include "common/kernel/formats.h"
#include "common/kernel/list.h"

namespace gg {

enum class Operator : uint8_t {
  gemm,          // D is the rounded product
  quant,         // scaled by alpha and prob, with a bias; D rounded, or quantised in blocks of 32
  glu,           // columns in pairs of gate and up: C before, D = GLU(C)
  glu_hadamard,  // and each 16 neighbours of it transformed
  // The way back through glu: the product is the gradient of GLU(C), C is an operand, and D the
  // gradient of C. Beside it those of prob and of the bias.
  glu_gradient,
};
enum class Activation : uint8_t { swiglu, geglu };
const char* activation_name(Activation activation);

// The epilogue that a chapter offers; the harness allocates, fills, checks and describes just that.
struct EpilogueChoices {
  Operator op = Operator::gemm;
  // Values of --d-dtype; the first that the input format allows is the default.
  List<Format> d_types{};
  List<Format> c_types{};          // of --c-dtype; the first is the default. None: C is not stored
  List<Format> bias_types{};       // of --bias-dtype; none: no --bias
  bool amax = true;                // the largest |v| of each group is computed
  bool sfd_row = false;            // --norm-const: D in blocks of 32 along rows, with SFD_row
  bool sfd_col = false;            // and D_col in blocks of 32 along columns, with SFD_col
  float norm_const = 0;            // where nobody gives one; 0: D is not in blocks then
  List<Activation> activations{};  // of --act; the first is the default
  bool butterfly = false;          // --transform butterfly
};

// The epilogue of one problem, chosen from what its chapter offers.
struct Epilogue {
  Operator op = Operator::gemm;
  bool amax = false, bias = false, sfd_row = false, sfd_col = false;
  bool stores_c = true;  // where the operator has a C
  Format bias_format = Format::bf16;
  float norm_const = 0;  // of block-scaled D
  bool discrete_col_sfd = false;
  bool butterfly = false;  // the transform in registers
  Activation activation = Activation::swiglu;

  bool is_gated() const { return op == Operator::glu || op == Operator::glu_hadamard; }
  bool has_c() const { return is_gated() && stores_c; }
  bool is_glu_gradient() const { return op == Operator::glu_gradient; }
  // Returns the columns of D, where the product has n.
  int columns_of_d(int n) const { return is_gated() ? n / 2 : is_glu_gradient() ? 2 * n : n; }
};

// D in blocks, as far as the chapter has them, with this factor.
void scale_outputs(const EpilogueChoices& choices, float norm_const, Epilogue& epilogue);

// Throws gg::Error (bad input) where the factor is no positive number; `source`: "--norm-const",
// or a file.
void require_norm_const(const char* source, float value);

}  // namespace gg
