// SPDX-License-Identifier: MIT
//
// The list of tensors: which operator has which, their places in buffers, and what of them
// belongs to groups.

#include "common/harness/problem/tensors.h"

#include <cmath>

namespace gg {
namespace {

constexpr int kBlock = 32;  // values that share a scale of an output
constexpr int64_t kHadamardSide = 16;
constexpr int64_t kGuardBytes = 256;        // around small tensors; addresses stay aligned
constexpr int64_t kScaleGuardBytes = 4096;  // eight atoms

int64_t round_up(int64_t bytes) { return (bytes + 255) / 256 * 256; }

std::vector<int64_t> atoms(const ScaleLayout& scales) {
  return {scales.row_atoms(), scales.block_atoms(), 32, 4, 4};
}
// So many atoms, one a row of the region, from `first_byte` of the buffer on.
Region atoms_from(int64_t first_byte, int64_t count) {
  return {first_byte, int(count), int(ScaleLayout::kAtomBytes), ScaleLayout::kAtomBytes};
}
Region all_scales(int64_t first_byte, const ScaleLayout& scales) {
  return atoms_from(first_byte, scales.row_atoms() * scales.block_atoms());
}

// Makes the specs of one problem with packed rows.
class Specs {
 public:
  Specs(const Formats& formats, const Epilogue& epilogue, const Layout& layout)
      : formats_(formats),
        epilogue_(epilogue),
        layout_(layout),
        groups_(int(layout.groups.size())),
        n_(layout.groups[0].n),
        owned_rows_(int(layout.offsets.back())) {}

  // Packed rows of so many columns.
  TensorSpec matrix(Tensor name, int64_t elems, int64_t start, int64_t cols,
                    const std::vector<Region>& owned) const {
    return {name, format_of_tensor(name, formats_, epilogue_), elems, start, {layout_.rows, cols}, owned};
  }

  TensorSpec b() const {
    if (is_gradient()) return matrix(Tensor::b, layout_.b_elems, layout_.b_start, n_, layout_.b_regions());
    const Region& first = layout_.groups[0].b;
    TensorSpec spec{Tensor::b, formats_.b, layout_.b_elems, 0, {first.rows, first.cols}, layout_.b_regions()};
    return for_each_group(spec);
  }
  TensorSpec d() const {
    const Group& first = layout_.groups[0];
    TensorSpec spec = matrix(Tensor::d, layout_.d_elems, layout_.d_start, first.d.cols, layout_.d_regions());
    if (is_gradient()) spec.extents = {groups_, first.m, n_};
    return spec;
  }
  TensorSpec sfa() const {
    const Group& first = layout_.groups[0];
    const ScaleLayout all{layout_.rows, first.sfa.layout.blocks};
    return {Tensor::sfa,       formats_.scaling().scale,
            layout_.sfa_bytes, layout_.sfa_start,
            atoms(all),        {all_scales(layout_.sfa_start, first.sfa.layout)}};
  }
  TensorSpec sfb() const {
    const ScaleLayout& of_one = layout_.groups[0].sfb.layout;
    TensorSpec spec{Tensor::sfb, formats_.scaling().scale, layout_.sfb_bytes, 0, atoms(of_one), {}};
    for (const Group& group : layout_.groups) {
      if (spec.owned.empty() || !shares_b()) spec.owned.push_back(all_scales(group.sfb.offset, of_one));
    }
    return for_each_group(spec);
  }

  // An operand or an output of an epilogue.
  TensorSpec of_epilogue(Tensor name) const {
    const ScaleLayout by_row{layout_.rows, scale_blocks(n_, kBlock)},
        by_column{n_, scale_blocks(layout_.rows, kBlock)};
    switch (name) {
      case Tensor::prob:
      case Tensor::dprob:
        return guarded(name, {layout_.rows}, 1, owned_rows_, kGuardRows * 4);
      case Tensor::dbias:
        return guarded(name, {groups_, 2 * n_}, groups_, 2 * n_, kGuardBytes);
      case Tensor::bias:
        return guarded(name, {groups_, n_}, groups_, n_, kGuardBytes);
      case Tensor::norm_const:
        return guarded(name, {1}, 1, 1, kGuardBytes);
      case Tensor::hadamard:
        return guarded(name, {kHadamardSide, kHadamardSide}, int(kHadamardSide), int(kHadamardSide),
                       kGuardBytes);
      case Tensor::saved_c:
      case Tensor::c:
      case Tensor::d_col: {
        const Format format = format_of_tensor(name, formats_, epilogue_);
        const int columns = name == Tensor::saved_c ? 2 * n_ : n_;
        return guarded(name, {layout_.rows, columns}, owned_rows_, columns,
                       round_up(int64_t(bytes_of(format, int64_t(kGuardRows) * columns))));
      }
      case Tensor::sfd_row: {
        TensorSpec spec = guarded(name, atoms(by_row), 0, 0, kScaleGuardBytes);
        spec.owned = {all_scales(spec.start, {owned_rows_, by_row.blocks})};
        return spec;
      }
      case Tensor::sfd_col: {
        TensorSpec spec = guarded(name, atoms(by_column), 0, 0, kScaleGuardBytes);
        spec.owned = owned_column_scales(spec.start, by_column);
        return spec;
      }
      case Tensor::amax: {
        TensorSpec spec = guarded(name, {groups_}, 1, groups_, kGuardBytes);
        spec.start_value = -INFINITY;
        return spec;
      }
      default:  // alpha
        return guarded(name, {groups_}, 1, groups_, kGuardBytes);
    }
  }

 private:
  bool is_gradient() const { return layout_.product == Product::weight_gradient; }
  bool shares_b() const { return layout_.b_group_stride == 0; }
  TensorSpec for_each_group(TensorSpec spec) const {
    if (!shares_b()) spec.extents.insert(spec.extents.begin(), groups_);
    return spec;
  }

  // One region of `rows` by `cols` elements at the tensor's start; guards of so many bytes
  // around whole 256.
  TensorSpec guarded(Tensor name, std::vector<int64_t> extents, int rows, int cols,
                     int64_t guard_bytes) const {
    TensorSpec spec{name, format_of_tensor(name, formats_, epilogue_), 0, 0, std::move(extents), {}};
    const int64_t elem_bytes = int64_t(bytes_of(spec.format, 1));
    spec.start = guard_bytes / elem_bytes;
    spec.elems = (2 * guard_bytes + round_up(spec.size() * elem_bytes)) / elem_bytes;
    spec.owned = {{spec.start, rows, cols, cols}};
    return spec;
  }

  // SFD_col expert by expert is dense; over all rows, each 128 columns have atoms of spare rows
  // at their end.
  std::vector<Region> owned_column_scales(int64_t start, const ScaleLayout& all) const {
    const ScaleLayout owned{n_, scale_blocks(owned_rows_, kBlock)};
    if (epilogue_.discrete_col_sfd) return {all_scales(start, owned)};
    std::vector<Region> regions;
    for (int64_t i = 0; i < all.row_atoms(); ++i)
      regions.push_back(
          atoms_from(start + i * all.block_atoms() * ScaleLayout::kAtomBytes, owned.block_atoms()));
    return regions;
  }

  const Formats& formats_;
  const Epilogue& epilogue_;
  const Layout& layout_;
  int groups_, n_, owned_rows_;
};

using Has = bool (*)(const Formats&, const Epilogue&);
using FormatOf = Format (*)(const Formats&, const Epilogue&);
struct TensorRow {
  const char *in_sentences, *file;
  Has has;
  FormatOf format;
};

bool always(const Formats&, const Epilogue&) { return true; }
bool scaled(const Formats& f, const Epilogue&) { return f.has_scales(); }
bool has_factors(const Formats&, const Epilogue& e) { return e.op != Operator::gemm; }
bool has_c(const Formats&, const Epilogue& e) { return e.has_c(); }
bool has_bias(const Formats&, const Epilogue& e) { return e.op != Operator::gemm && e.bias; }
bool has_amax(const Formats&, const Epilogue& e) { return e.op != Operator::gemm && e.amax; }
bool row_scaled(const Formats&, const Epilogue& e) { return e.op != Operator::gemm && e.sfd_row; }
bool column_scaled(const Formats&, const Epilogue& e) { return e.op != Operator::gemm && e.sfd_col; }
bool either_scaled(const Formats& f, const Epilogue& e) { return row_scaled(f, e) || column_scaled(f, e); }
bool transformed(const Formats&, const Epilogue& e) { return e.op == Operator::glu_hadamard; }
bool gradient(const Formats&, const Epilogue& e) { return e.is_glu_gradient(); }

Format type_of_a(const Formats& f, const Epilogue&) { return f.a; }
Format type_of_b(const Formats& f, const Epilogue&) { return f.b; }
Format type_of_c(const Formats& f, const Epilogue&) { return f.c; }
Format type_of_d(const Formats& f, const Epilogue&) { return f.d; }
Format type_of_scales(const Formats& f, const Epilogue&) { return f.scaling().scale; }
Format type_of_bias(const Formats&, const Epilogue& e) { return e.bias_format; }
template <Format FORMAT>
Format always_of(const Formats&, const Epilogue&) {
  return FORMAT;
}

constexpr TensorRow kRows[kTensors] = {
    {"A", "a", always, type_of_a},
    {"B", "b", always, type_of_b},
    {"the scales of A", "sfa", scaled, type_of_scales},
    {"the scales of B", "sfb", scaled, type_of_scales},
    {"alpha", "alpha", has_factors, always_of<Format::f32>},
    {"prob", "prob", has_factors, always_of<Format::f32>},
    {"the bias", "bias", has_bias, type_of_bias},
    {"norm_const", "norm_const", either_scaled, always_of<Format::f32>},
    {"the Hadamard matrix", "hadamard", transformed, always_of<Format::bf16>},
    {"C", "c", gradient, type_of_c},
    {"D", "d", always, type_of_d},
    {"D_col", "d_col", column_scaled, type_of_d},
    {"SFD_row", "sfd_row", row_scaled, always_of<Format::ue8m0>},
    {"SFD_col", "sfd_col", column_scaled, always_of<Format::ue8m0>},
    {"C", "c", has_c, type_of_c},
    {"amax", "amax", has_amax, always_of<Format::f32>},
    {"dprob", "dprob", gradient, always_of<Format::f32>},
    {"dbias", "dbias", gradient, always_of<Format::f32>},
};

}  // namespace

const char* tensor_name(Tensor tensor) { return kRows[size_t(tensor)].in_sentences; }
const char* tensor_file(Tensor tensor) { return kRows[size_t(tensor)].file; }
bool has_tensor(Tensor tensor, const Formats& formats, const Epilogue& epilogue) {
  return kRows[size_t(tensor)].has(formats, epilogue);
}
Format format_of_tensor(Tensor tensor, const Formats& formats, const Epilogue& epilogue) {
  return kRows[size_t(tensor)].format(formats, epilogue);
}

int64_t TensorSpec::size() const {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

std::vector<ByteRange> TensorSpec::readable() const {
  if (start > 0) return {{start_byte(), start_byte() + bytes_of(format, size())}};
  std::vector<ByteRange> ranges;
  for (const Region& r : owned) {
    if (r.rows == 0 || r.cols == 0) continue;
    const ByteRange range{bytes_of(format, r.offset),
                          bytes_of(format, r.offset + (r.rows - 1) * r.ld + r.cols)};
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

std::vector<TensorSpec> tensors_of(const Formats& formats, const Epilogue& epilogue, const Layout& layout) {
  const Layout& l = layout;
  // Behind guard rows; matrices of each group's own have no such start.
  const bool packed = l.a_start > 0;
  if (!packed) {
    return {{Tensor::a, formats.a, l.a_elems, 0, {}, l.a_regions()},
            {Tensor::b, formats.b, l.b_elems, 0, {}, l.b_regions()},
            {Tensor::d, formats.d, l.d_elems, 0, {}, l.d_regions()}};
  }
  const Specs specs(formats, epilogue, layout);
  const Group& first = l.groups[0];
  std::vector<TensorSpec> all;
  for (int i = 0; i < kTensors; ++i) {
    const auto name = Tensor(i);
    if (!has_tensor(name, formats, epilogue)) continue;
    switch (name) {
      case Tensor::a:
        all.push_back(specs.matrix(name, l.a_elems, l.a_start, first.a.cols, l.a_regions()));
        break;
      case Tensor::b:
        all.push_back(specs.b());
        break;
      case Tensor::sfa:
        all.push_back(specs.sfa());
        break;
      case Tensor::sfb:
        all.push_back(specs.sfb());
        break;
      case Tensor::d:
        all.push_back(specs.d());
        break;
      default:
        all.push_back(specs.of_epilogue(name));
    }
  }
  return all;
}

}  // namespace gg
