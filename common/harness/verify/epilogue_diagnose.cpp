// SPDX-License-Identifier: MIT
//
// Each mistake is made on purpose: in the arithmetic of the reference, or in the operands
// of its product.

#include "common/harness/verify/epilogue_diagnose.h"

#include <algorithm>
#include <functional>

namespace gg {

namespace {

struct Known {
  MistakeInfo info;
  std::function<bool(const Epilogue&, const Formats&)> possible;
};

bool quantises(const Epilogue& e, const Formats&) { return e.op == Operator::quant; }
bool quantises_with_bias(const Epilogue& e, const Formats&) { return e.op == Operator::quant && e.bias; }
bool has_bias(const Epilogue& e, const Formats&) { return e.bias; }
bool has_scales(const Epilogue& e, const Formats&) { return e.sfd_row; }
bool has_column_scales(const Epilogue& e, const Formats&) { return e.sfd_col; }
bool has_amax(const Epilogue& e, const Formats&) { return e.amax; }
bool is_gated(const Epilogue& e, const Formats&) { return e.is_gated(); }
bool is_gradient(const Epilogue& e, const Formats&) { return e.is_glu_gradient(); }
bool activates(const Epilogue& e, const Formats&) { return e.is_gated() || e.is_glu_gradient(); }
bool is_geglu(const Epilogue& e, const Formats& f) {
  return activates(e, f) && e.activation == Activation::geglu;
}
bool is_geglu_gradient(const Epilogue& e, const Formats& f) { return is_gradient(e, f) && is_geglu(e, f); }
bool stores_c(const Epilogue& e, const Formats&) { return e.has_c(); }
bool clamps_c(const Epilogue& e, const Formats& f) { return e.has_c() && is_geglu(e, f); }
bool transforms(const Epilogue& e, const Formats&) { return e.op == Operator::glu_hadamard; }
bool always(const Epilogue&, const Formats&) { return true; }

const std::vector<Known>& known() {
  using enum Mistake;
  static const std::vector<Known> all = {
      {{no_alpha, "alpha left out"}, always},
      {{no_prob, "prob left out"}, always},
      {{prob_on_sum, "prob applied to the product and the bias: with a bias it gates the bias alone"},
       quantises_with_bias},
      {{prob_on_product, "prob applied to the product: with a bias it gates the bias alone"},
       quantises_with_bias},
      {{no_bias, "the bias left out"}, has_bias},
      {{alpha_before, "alpha of the expert before"}, always},
      {{alpha_after, "alpha of the expert after"}, always},
      {{prob_above, "prob of the row above"}, always},
      {{prob_below, "prob of the row below"}, always},
      {{prob_of_group_row,
        "prob of rows counted from the start of the group instead of from the first row of A"},
       always},
      {{bias_of_first, "the bias of expert 0 in every group"}, has_bias},
      {{bias_before, "the bias of the expert before"}, has_bias},
      {{bias_after, "the bias of the expert after"}, has_bias},
      {{bias_left, "the bias of the column before"}, has_bias},
      {{bias_right, "the bias of the column after"}, has_bias},
      {{factors_first,
        "alpha and prob multiplied with each other first: alpha * acc is rounded, then times prob"},
       quantises},
      {{scale_down, "scales rounded down to a power of two: they are rounded up"}, has_scales},
      {{scale_nearest, "scales rounded to the nearest power of two: they are rounded up"}, has_scales},
      {{scale_from_d, "scales of values that were rounded to D's type before"}, has_scales},
      {{unrounded_scale, "D scaled by the scale before it was rounded to UE8M0"}, has_scales},
      {{no_norm, "norm_const left out"}, has_scales},
      {{norm_last, "norm_const multiplied first: the order is largest * RCP, rounded, * norm_const"},
       has_scales},
      {{rcp_of_largest, "1/57344 for E5M2, the reciprocal of its largest value: the operator has 1/128"},
       [](const Epilogue& e, const Formats& f) { return e.sfd_row && f.d == Format::e5m2; }},
      {{no_cap, "norm_const / scale not capped at the largest float: zeros become NaN"}, has_scales},
      {{column_from_d, "D_col and SFD_col made from D: both are made from the same f32 values"},
       has_column_scales},
      {{column_layout, "SFD_col in the other layout: expert by expert instead of all rows, or the reverse"},
       has_column_scales},
      {{row_layout, "SFD_row as [M,N/32] instead of in the 128x4 layout"}, has_scales},
      {{amax_of_d, "amax of D: it is that of the f32 values before they are rounded"}, has_amax},
      {{amax_signed, "amax of the values with their signs"}, has_amax},
      {{c_clamped, "C stored after the clamps: it is stored before them"}, clamps_c},
      {{c_gated, "C multiplied with prob"}, stores_c},
      {{gate_and_up, "gate and up exchanged"}, activates},
      {{pairs_of_neighbours, "gate and up taken from neighbouring columns: they are 32 columns apart"},
       activates},
      {{pairs_of_halves, "gate and up taken from the halves of N: they are 32 columns apart"}, activates},
      {{no_plus_one, "the + 1 of geglu left out"}, is_geglu},
      {{no_clamps, "the clamps of geglu left out"}, is_geglu},
      {{gate_clamped_below, "the gate clamped from below: it has no lower clamp"}, is_geglu},
      {{no_factor, "the 1.702 of geglu left out"}, is_geglu},
      {{other_activation, "the other activation"}, activates},
      {{no_slope, "sigma in place of the derivative of gate * sigma"}, is_gradient},
      {{clamps_passed, "a gradient beyond the clamps of geglu: it is 0 there"}, is_geglu_gradient},
      {{prob_in_dprob, "prob in the terms of dprob: they have all factors but it"}, is_gradient},
      {{dbias_of_rounded, "dbias summed from D: its terms are not rounded"}, is_gradient},
      {{c_of_group_row, "C of rows counted from the start of the group instead of from the first row of A"},
       is_gradient},
      {{from_rounded_c, "the activation computed from the rounded C: it continues from the f32 value"},
       is_gated},
      {{quarter, "a transform normalised by 1/4: it has no such factor"}, transforms},
      {{transposed, "X * W instead of X * W^T"}, transforms},
      {{x_not_rounded, "X not rounded to bf16 before the transform"}, transforms},
      {{x_as_d, "X rounded to D's type before the transform: it is always bf16"}, transforms},
      {{amax_of_x, "amax taken before the transform: it is taken behind it"}, transforms},
  };
  return all;
}

// A mistake in the product: what its operands are taken for.
struct WrongProduct {
  Symptom symptom;
  std::string what;
  std::function<void(Group& group, int index)> make;
};

// Scales of later experts at a wrong distance from those of the first: a factor of it left out or
// not rounded up.
void add_wrong_strides(const Layout& layout, std::vector<WrongProduct>& all) {
  const Group& first = layout.groups[0];
  const ScaleLayout of_b = first.sfb.layout;
  const int64_t right = of_b.bytes(), along_k = of_b.block_atoms() * ScaleLayout::kAtomBytes,
                unpadded = of_b.rows * of_b.blocks;
  const int64_t whole = of_b.rows / ScaleLayout::kAtomRows * along_k,
                shallow =
                    of_b.row_atoms() * (of_b.blocks / ScaleLayout::kAtomBlocks) * ScaleLayout::kAtomBytes;
  const std::pair<int64_t, const char*> strides[] = {
      {whole, "N is not rounded up to 128"},
      {shallow, "the blocks of K are not rounded up to 4"},
      {unpadded, "N times the blocks of K, without the padding of atoms"},
      {along_k, "the atoms along N are left out"},
      {of_b.row_atoms() * ScaleLayout::kAtomBytes, "the atoms along K are left out"},
      {(of_b.row_atoms() + 1) / 2 * 2 * along_k, "N is rounded up to 256"},
      {right - ScaleLayout::kAtomBytes, "an atom too few"},
      {right + ScaleLayout::kAtomBytes, "an atom too many"}};
  for (const auto& [stride, why] : strides) {
    // The reference must find each scale inside the buffer.
    const int64_t last = int64_t(layout.groups.size() - 1) * stride + right;
    if (stride == right || last > layout.sfb_bytes) continue;
    all.push_back(
        {Symptom::wrong_scale,
         format("the scales of B of each expert %lld bytes behind those of the one before, %lld are "
                "right: %s",
                static_cast<long long>(stride), static_cast<long long>(right), why),
         [stride = stride](Group& group, int index) { group.sfb.offset = index * stride; }});
  }
  const int64_t of_rows = first.sfa.layout.block_atoms();
  if (of_rows < 2) return;
  all.push_back({Symptom::wrong_scale,
                 "the scales of A of each group counted in atoms of rows: the atoms along K are left out",
                 [of_rows](Group& group, int) {
                   group.sfa.offset -=
                       group.sfa.first_row / ScaleLayout::kAtomRows * (of_rows - 1) * ScaleLayout::kAtomBytes;
                 }});
}

std::vector<WrongProduct> wrong_products(const Layout& layout) {
  std::vector<WrongProduct> all;
  const int groups = int(layout.groups.size());
  const bool has_scales = layout.sfb_bytes > 0;
  for (const int shift : {1, groups - 1}) {
    if (groups < 2) break;
    all.push_back({Symptom::swapped_expert,
                   format("the weights of the expert %s", shift == 1 ? "after" : "before"),
                   [&layout, groups, shift](Group& group, int index) {
                     const Group& other = layout.groups[size_t((index + shift) % groups)];
                     group.b = other.b;
                     group.sfb = other.sfb;
                   }});
    if (!has_scales) continue;
    all.push_back({Symptom::wrong_scale,
                   format("B scaled by the scales of the expert %s", shift == 1 ? "after" : "before"),
                   [&layout, groups, shift](Group& group, int index) {
                     group.sfb = layout.groups[size_t((index + shift) % groups)].sfb;
                   }});
  }
  all.push_back({Symptom::first_group_only,
                 "the weights of expert 0 in every group: the group never enters B's address",
                 [&layout](Group& group, int) {
                   group.b = layout.groups[0].b;
                   group.sfb = layout.groups[0].sfb;
                 }});
  if (has_scales) {
    all.push_back({Symptom::wrong_scale, "scales of A counted from the start of the group",
                   [](Group& group, int) { group.sfa.first_row = 0; }});
    add_wrong_strides(layout, all);
  }
  for (const int missing : {32, 64, 128, 256}) {
    all.push_back({Symptom::missing_k_slice,
                   format("a missing K slice: the last %d products are not in the sum", missing),
                   [missing](Group& group, int) { group.k = std::max(1, group.k - missing); }});
  }
  return all;
}

}  // namespace

std::vector<MistakeInfo> mistakes_of(const Epilogue& epilogue, const Formats& formats) {
  std::vector<MistakeInfo> possible;
  for (const Known& each : known()) {
    if (each.possible(epilogue, formats)) possible.push_back(each.info);
  }
  return possible;
}

Failure explain_epilogue(const Buffers& buffers, const HostCopy& copy, const std::vector<bool>& skipped,
                         const Findings& found, uint64_t seed) {
  const Setup& setup = buffers.setup();
  const Layout& layout = buffers.layout();
  const Matrices matrices = copy.matrices(setup.request.formats);
  const auto explains = [&](const Findings& with) { return with.failures() * 10 <= found.failures(); };
  // True for a mistake that was made for some outputs only, as for rows and not for columns.
  const auto explains_wrong_ones = [&](const Findings& with) {
    for (const Tensor output : buffers.outputs()) {
      const int64_t wrong = found.of[size_t(output)].failures;
      if (wrong && wrong < with.of[size_t(output)].failures * 10) return false;
    }
    return true;
  };
  Products products{layout.groups, skipped, seed};
  const std::vector<Band> bands = products_of(matrices, layout, products);
  const char* of_some = nullptr;
  for (const MistakeInfo& each : mistakes_of(setup.request.epilogue, setup.request.formats)) {
    const Findings with = compare_outputs(buffers, bands, skipped, copy.outputs, each.mistake);
    if (explains(with)) return {Symptom::wrong_epilogue, std::string("looks like ") + each.what};
    if (!of_some && explains_wrong_ones(with)) of_some = each.what;
  }
  if (of_some) return {Symptom::wrong_epilogue, std::string("looks like ") + of_some};
  for (const WrongProduct& each : wrong_products(layout)) {
    products.groups = layout.groups;
    for (size_t g = 0; g < products.groups.size(); ++g) each.make(products.groups[g], int(g));
    if (explains(compare_outputs(buffers, products_of(matrices, layout, products), skipped, copy.outputs)))
      return {each.symptom, "looks like " + each.what};
  }
  for (const auto& [output, along] : {std::pair{Tensor::dbias, "rows past the group's end in the sum"},
                                      std::pair{Tensor::dprob, "columns past N in the sum"}}) {
    const int64_t failures = found.of[size_t(output)].failures;
    if (failures == 0 || failures < found.failures()) continue;
    return {
        Symptom::wrong_epilogue,
        format("all else is right: looks like %s, or a tile's part that is missing or added twice", along)};
  }
  return {Symptom::unknown, "no known mistake explains it"};
}

}  // namespace gg
