// SPDX-License-Identifier: MIT
//
// Operands from files: what is accepted, and the sentences that refuse the rest.

#include <algorithm>
#include <cstring>

#include "common/harness/base/files.h"
#include "common/harness/base/npy.h"
#include "common/harness/problem/limits.h"
#include "common/harness/verify/problem_files.h"

namespace gg {
namespace {

// Row offsets as a file gives them: [G+1], from 0, never decreasing, within int32 and within
// A's rows. `not_in_file` of them were put before what the file holds, and are not counted
// where one is named.
std::vector<int> rows_from_offsets(const std::string& path, const NpyArray& array, int64_t rows_of_a,
                                   int most, int not_in_file = 0) {
  GG_REQUIRE(array.type == "<i4" || array.type == "<i8",
             "%s: has type '%s', offsets are '<i4' or '<i8': convert it", path.c_str(), array.type.c_str());
  GG_REQUIRE(
      array.shape.size() == 1 && array.shape[0] >= 2,
      "%s: has shape %s, [G+1] with at least one group is wanted: give each group's first row, and the "
      "number of rows",
      path.c_str(), shape_text(array.shape).c_str());
  GG_REQUIRE(array.shape[0] - 1 <= most,
             "%s: %lld groups: at most %d are accepted: split the problem into several", path.c_str(),
             static_cast<long long>(array.shape[0] - 1), most);
  std::vector<int> rows;
  int64_t previous = 0;
  for (int64_t i = 0; i < array.shape[0]; ++i) {
    int64_t offset = 0;
    if (array.type == "<i4") {
      int32_t narrow = 0;
      std::memcpy(&narrow, array.data.data() + i * 4, 4);
      offset = narrow;
    } else {
      std::memcpy(&offset, array.data.data() + i * 8, 8);
    }
    const long long shown = offset, before = previous, index = i - not_in_file;
    GG_REQUIRE(
        i > 0 || offset == 0,
        "%s: offset 0 is %lld, it must be 0: give [G+1], each group's first row and the number of rows",
        path.c_str(), shown);
    GG_REQUIRE(offset >= 0, "%s: offset %lld is %lld, negative: give rows counted from 0", path.c_str(),
               index, shown);
    GG_REQUIRE(offset >= previous,
               "%s: offset %lld is %lld, less than the %lld before it: give rows that never decrease",
               path.c_str(), index, shown, before);
    GG_REQUIRE(
        offset <= INT32_MAX,
        "%s: offset %lld is %lld, rows are counted in int32 (at most %d): split the problem into several",
        path.c_str(), index, shown, INT32_MAX);
    GG_REQUIRE(offset <= rows_of_a,
               "%s: offset %lld is %lld, but A has only %lld rows: give A more, or the offsets less",
               path.c_str(), index, shown, static_cast<long long>(rows_of_a));
    if (i > 0) rows.push_back(int(offset - previous));
    previous = offset;
  }
  return rows;
}

int extent(const std::string& path, const NpyArray& array, size_t dimension) {
  const int64_t value = array.shape[dimension];
  GG_REQUIRE(value <= INT32_MAX, "%s: has shape %s, extents are at most %d: split the problem", path.c_str(),
             shape_text(array.shape).c_str(), INT32_MAX);
  return int(value);
}

// Row offsets of block-scaled problems: [G] int32, where each group ends. As above with a
// 0 before them.
std::vector<int> rows_from_ends(const std::string& path, NpyArray ends, int64_t rows_of_a, int most) {
  GG_REQUIRE(ends.type == "<i4" && ends.shape.size() == 1 && ends.shape[0] >= 1,
             "%s: has type '%s' and shape %s, '<i4' [G] is wanted: give the end of each group", path.c_str(),
             ends.type.c_str(), shape_text(ends.shape).c_str());
  ++ends.shape[0];
  ends.data.insert(ends.data.begin(), sizeof(int32_t), 0);
  return rows_from_offsets(path, ends, rows_of_a, most, 1);
}

// The bytes of a file of scales. Padding must not be NaN: a kernel multiplies it by zeros.
std::vector<char> checked_scales(const std::string& path, const BlockScaling& scaling, int64_t matrices,
                                 bool one_matrix, const ScaleLayout& layout, NpyArray scales) {
  std::vector<int64_t> wanted = {layout.row_atoms(), layout.block_atoms(), 32, 4, 4};
  if (!one_matrix) wanted.insert(wanted.begin(), matrices);
  GG_REQUIRE(scales.shape == wanted, "%s: has shape %s, %s is wanted: lay the scales out in atoms",
             path.c_str(), shape_text(scales.shape).c_str(), shape_text(wanted).c_str());
  for (int64_t at = 0; at < int64_t(scales.data.size()); ++at) {
    const ScaleLayout::Slot slot = layout.slot(at % layout.bytes());
    GG_REQUIRE(!layout.is_padding(slot) || !is_nan(scaling.scale, uint8_t(scales.data[size_t(at)])),
               "%s: byte %lld is NaN, but it is padding (row %lld, block %lld), which is multiplied by "
               "zeros: make it 0",
               path.c_str(), static_cast<long long>(at), static_cast<long long>(slot.row),
               static_cast<long long>(slot.block));
  }
  return std::move(scales.data);
}

// The operators leave open what a UE4M3 scale with its sign bit set means.
void require_no_sign(const std::string& path, const BlockScaling& scaling, const std::vector<char>& scales) {
  if (scaling.scale != Format::ue4m3) return;
  for (size_t at = 0; at < scales.size(); ++at) {
    const auto code = uint8_t(scales[at]);
    GG_REQUIRE(!(code & 0x80) || is_nan(scaling.scale, code),
               "%s: byte %zu is 0x%02X: a UE4M3 scale has no sign: clear its upper bit", path.c_str(), at,
               code);
  }
}

// Elements of a row whose stored extent is that of the file: 4-bit elements lie two to a byte.
int elements_of(const std::string& path, Format format, int stored) {
  const int64_t elements = int64_t(stored) * (format_info(format).bits < 8 ? 2 : 1);
  GG_REQUIRE(elements <= INT32_MAX,
             "%s: %d bytes to a row, extents are at most %d elements: split the problem", path.c_str(),
             stored, INT32_MAX);
  return int(elements);
}

// The option that takes a file of this type, of those that the chapter has.
TypeHint hint_of(const std::vector<Formats>& types, Format Formats::*operand) {
  return [=](const std::string& type) -> std::string {
    for (const Formats& each : types) {
      if (type == format_info(each.*operand).npy) return std::string("--in-dtype ") + each.name();
    }
    return "";
  };
}

// [G+1] offsets where the ends of G groups are wanted look like ends behind an empty group: B
// tells them apart.
void refuse_starts(const std::string& offsets, const std::string& dense_b, const std::string& dir, int groups,
                   Format type, const Chapter& chapter) {
  const int of_b = dense_b.empty() ? int(exists(dir + "/" + numbered_file("b", groups - 2)) &&
                                         !exists(dir + "/" + numbered_file("b", groups - 1))) *
                                         (groups - 1)
                                   : int(read_npy(dense_b, type, 3).shape[0]);
  GG_REQUIRE(of_b != groups - 1,
             "%s: has %d numbers, the first of them 0, and B has %d groups: %s wants [G], the end of each "
             "group: leave the 0 out",
             offsets.c_str(), groups, of_b, chapter.id);
}

std::unique_ptr<GivenOperands> read_per_group(const std::string& dir, const Setup& setup,
                                              const std::vector<Formats>& types) {
  const Formats& formats = setup.request.formats;
  // In the shape of B.
  const size_t k_at = setup.request.b_layout == BLayout::nk ? 1 : 0, n_at = 1 - k_at;
  auto given = std::make_unique<GivenOperands>();
  given->request = setup.request;
  given->request.wide_offsets = false;
  given->shape.set = kFromFiles;
  given->shape.own_sizes = true;
  for (int g = 0; g <= kMostGroups; ++g) {
    const std::string a_path = dir + "/" + numbered_file("a", g), b_path = dir + "/" + numbered_file("b", g);
    if (g > 0 && !exists(a_path) && !exists(b_path)) break;
    NpyArray a = read_npy(a_path, formats.a, 2, hint_of(types, &Formats::a)),
             b = read_npy(b_path, formats.b, 2, hint_of(types, &Formats::b));
    GG_REQUIRE(a.shape[1] == b.shape[k_at], "%s has shape %s, %s has %s: give both the same K",
               a_path.c_str(), shape_text(a.shape).c_str(), b_path.c_str(), shape_text(b.shape).c_str());
    given->shape.m.push_back(extent(a_path, a, 0));
    given->shape.k.push_back(extent(a_path, a, 1));
    given->shape.n.push_back(extent(b_path, b, n_at));
    given->a.insert(given->a.end(), a.data.begin(), a.data.end());
    given->b.insert(given->b.end(), b.data.begin(), b.data.end());
  }
  return given;
}

NpyArray read_shaped(const std::string& path, Format format, const std::vector<int64_t>& wanted,
                     const char* what) {
  NpyArray array = read_npy(path, format, wanted.size());
  GG_REQUIRE(array.shape == wanted, "%s: has shape %s, %s is wanted: give %s", path.c_str(),
             shape_text(array.shape).c_str(), shape_text(wanted).c_str(), what);
  return array;
}

std::vector<float> floats(const NpyArray& array) {
  std::vector<float> values(array.data.size() / sizeof(float));
  std::memcpy(values.data(), array.data.data(), values.size() * sizeof(float));
  return values;
}

void read_bias(const std::string& path, const Chapter& chapter, const Shape& shape, Epilogue& epilogue,
               EpilogueOperands& operands) {
  const std::string type = read_npy(path).type;
  const List<Format>& types = chapter.epilogue.bias_types;
  GG_REQUIRE(!types.empty(), "%s: %s has no bias: remove the file", path.c_str(), chapter.id);
  const auto found =
      std::find_if(types.begin(), types.end(), [&](Format each) { return type == format_info(each).npy; });
  std::string accepted;
  for (const Format each : types)
    accepted +=
        format("%s'%s' (%s)", accepted.empty() ? "" : ", ", format_info(each).npy, format_info(each).name);
  GG_REQUIRE(found != types.end(), "%s: has type '%s', %s has %s: convert it", path.c_str(), type.c_str(),
             chapter.id, accepted.c_str());
  epilogue.bias = true;
  epilogue.bias_format = *found;
  operands.bias = read_shaped(path, *found, {shape.groups(), shape.n_of(0)}, "one per group and column").data;
}

// Refuses B or its scales in the files of the other choice: dense ones with --weights discrete,
// numbered ones without.
void require_one_kind_of_weights(const std::string& dir, bool discrete) {
  for (const char* name : {"b", "sfb"}) {
    const std::string dense = dir + "/" + name + ".npy", first = dir + "/" + numbered_file(name, 0);
    GG_REQUIRE(!discrete || !exists(dense),
               "%s: --weights discrete reads %s and so on: remove the file, or leave the option out",
               dense.c_str(), first.c_str());
    GG_REQUIRE(discrete || !exists(first),
               "%s: weights of one expert each want --weights discrete: remove the file, or give the option",
               first.c_str());
  }
}

// The weights of all groups as one tensor [G,..], from b.npy or, where they are discrete,
// b_00000.npy and so on. `type` gives the type, `rank` the dimensions of one group's.
NpyArray read_weights(const std::string& dir, const char* name, Format type, size_t rank, bool discrete,
                      bool shared, int groups, const TypeHint& or_else = {}) {
  if (!discrete) return read_npy(dir + "/" + name + ".npy", type, shared ? rank : rank + 1, or_else);
  NpyArray all;
  for (int g = 0; g < groups; ++g) {
    const std::string path = dir + "/" + numbered_file(name, g);
    NpyArray one = read_npy(path, type, rank);
    if (g == 0) {
      all.shape = one.shape;
    } else {
      GG_REQUIRE(one.shape == all.shape, "%s: has shape %s, group 0 has %s: give all groups one N and one K",
                 path.c_str(), shape_text(one.shape).c_str(), shape_text(all.shape).c_str());
    }
    all.type = one.type;
    all.data.insert(all.data.end(), one.data.begin(), one.data.end());
  }
  const std::string next = dir + "/" + numbered_file(name, groups);
  GG_REQUIRE(!exists(next), "%s: the offsets name %d groups: remove the file, or give more offsets",
             next.c_str(), groups);
  all.shape.insert(all.shape.begin(), groups);
  return all;
}

// alpha, prob, bias, norm_const, hadamard. What the folder says of the bias and of block-scaled
// outputs goes to `epilogue`; with what the options say it must agree.
EpilogueOperands read_epilogue(const std::string& dir, const Chapter& chapter, const Shape& shape,
                               Request& request) {
  const Formats& formats = request.formats;
  Epilogue& epilogue = request.epilogue;
  EpilogueOperands operands;
  if (!has_tensor(Tensor::alpha, formats, epilogue)) return operands;
  operands.alpha = floats(read_shaped(dir + "/alpha.npy", Format::f32, {shape.groups()}, "one per group"));
  operands.prob = floats(read_shaped(dir + "/prob.npy", Format::f32, {shape.rows}, "one per row of A"));
  const std::string bias = dir + "/bias.npy", norm = dir + "/norm_const.npy", matrix = dir + "/hadamard.npy";
  GG_REQUIRE(exists(bias) || !epilogue.bias, "--bias: %s has no bias.npy: put it there, or leave --bias out",
             dir.c_str());
  if (exists(bias)) read_bias(bias, chapter, shape, epilogue, operands);
  if (exists(norm)) {
    GG_REQUIRE(chapter.epilogue.sfd_row, "%s: %s has no block-scaled outputs: remove the file", norm.c_str(),
               chapter.id);
    const float value = floats(read_shaped(norm, Format::f32, {1}, "one number"))[0];
    require_norm_const((norm + ":").c_str(), value);
    const bool given = epilogue.sfd_row;
    GG_REQUIRE(!given || value == epilogue.norm_const,
               "%s: is %.9g, --norm-const is %.9g: they must agree: leave --norm-const out", norm.c_str(),
               double(value), double(epilogue.norm_const));
    scale_outputs(chapter.epilogue, value, epilogue);
  } else if (chapter.epilogue.norm_const > 0 && !epilogue.sfd_row) {
    scale_outputs(chapter.epilogue, chapter.epilogue.norm_const, epilogue);
  }
  GG_REQUIRE(epilogue.op == Operator::glu_hadamard || !exists(matrix),
             "%s: %s has no transform: remove the file", matrix.c_str(), chapter.id);
  if (epilogue.op == Operator::glu_hadamard) {
    operands.hadamard = sylvester_matrix();
    if (exists(matrix)) {
      const NpyArray array = read_shaped(matrix, Format::bf16, {16, 16}, "the transform by rows");
      std::vector<uint16_t> codes(array.data.size() / 2);
      std::memcpy(codes.data(), array.data.data(), array.data.size());
      GG_REQUIRE(!epilogue.butterfly || codes == operands.hadamard,
                 "%s: is not the Sylvester matrix, and --transform butterfly computes no other: leave the "
                 "option out",
                 matrix.c_str());
      operands.hadamard = codes;
    }
  }
  if (has_tensor(Tensor::saved_c, formats, epilogue)) {
    const std::vector<char> codes =
        read_shaped(dir + "/c.npy", formats.c, {shape.rows, 2 * int64_t(shape.n_of(0))},
                    "as many rows as A, and twice the columns of B")
            .data;
    operands.saved_c.resize(codes.size() / 2);
    std::memcpy(operands.saved_c.data(), codes.data(), codes.size());
  }
  require_consistent(request);
  return operands;
}

std::unique_ptr<GivenOperands> read_packed(const std::string& dir, const Setup& setup, const Chapter& chapter,
                                           bool shared_b, const std::vector<Formats>& types) {
  const Formats& formats = setup.request.formats;
  auto given = std::make_unique<GivenOperands>();
  const bool discrete = setup.request.weights == Weights::discrete;
  const std::string a_path = dir + "/a.npy", b_path = dir + (discrete ? "/b_00000.npy .." : "/b.npy"),
                    offsets_path = dir + "/offsets.npy";
  NpyArray a = read_npy(a_path, formats.a, 2, hint_of(types, &Formats::a));
  const NpyArray offsets = read_npy(offsets_path);
  given->rows_of_a = a.shape[0];
  given->shape.set = kFromFiles;
  const int most = most_groups(chapter);
  given->shape.m = formats.has_scales() ? rows_from_ends(offsets_path, offsets, a.shape[0], most)
                                        : rows_from_offsets(offsets_path, offsets, a.shape[0], most);
  // Either type is read; a launch that knows only int32 gets int32, which holds every accepted one.
  given->request = setup.request;
  given->request.wide_offsets = offsets.type == "<i8" && !chapter.reads_offsets_on_host;
  given->shape.shared_b = shared_b;
  const int64_t groups = given->shape.groups();
  if (chapter.discrete_weights) require_one_kind_of_weights(dir, discrete);
  const TypeHint hint = hint_of(types, &Formats::b);
  if (formats.has_scales() && groups > 1 && given->shape.m[0] == 0)
    refuse_starts(offsets_path, discrete ? "" : b_path, dir, int(groups), formats.b, chapter);
  if (setup.product == Product::weight_gradient) {
    NpyArray b = read_npy(b_path, formats.b, 2, hint);
    GG_REQUIRE(b.shape[0] == a.shape[0], "%s has shape %s, %s has %s: give both as many rows", a_path.c_str(),
               shape_text(a.shape).c_str(), b_path.c_str(), shape_text(b.shape).c_str());
    given->shape.k = {extent(a_path, a, 1)};
    given->shape.n = {extent(b_path, b, 1)};
    given->a = std::move(a.data);
    given->b = std::move(b.data);
    return given;
  }
  NpyArray b = read_weights(dir, "b", formats.b, 2, discrete, shared_b, int(groups), hint);
  GG_REQUIRE(shared_b || b.shape[0] == groups,
             "%s: has shape %s, the offsets name %lld groups: give one matrix for each", b_path.c_str(),
             shape_text(b.shape).c_str(), static_cast<long long>(groups));
  const size_t first = shared_b ? 0 : 1;  // of the two extents after G
  const size_t k_at = first + (setup.request.b_layout == BLayout::nk ? 1 : 0), n_at = 2 * first + 1 - k_at;
  GG_REQUIRE(b.shape[k_at] == a.shape[1], "%s has shape %s, %s has %s: give both the same K", a_path.c_str(),
             shape_text(a.shape).c_str(), b_path.c_str(), shape_text(b.shape).c_str());
  given->shape.k = {elements_of(a_path, formats.a, extent(a_path, a, 1))};
  given->shape.n = {extent(b_path, b, n_at)};
  const int k = given->shape.k[0];
  if (formats.has_scales()) {
    const BlockScaling scaling = formats.scaling();
    const int64_t scales = scale_blocks(k, scaling.block);
    const std::string sfa = dir + "/sfa.npy", sfb = dir + (discrete ? "/sfb_00000.npy .." : "/sfb.npy");
    given->sfa =
        checked_scales(sfa, scaling, 1, true, {given->rows_of_a, scales}, read_npy(sfa, scaling.scale, 5));
    given->sfb = checked_scales(sfb, scaling, groups, shared_b, {given->shape.n[0], scales},
                                read_weights(dir, "sfb", scaling.scale, 5, discrete, shared_b, int(groups)));
  }
  if (has_tensor(Tensor::prob, formats, setup.request.epilogue)) {
    given->shape.rows = given->rows_of_a;
    require_no_sign(dir + "/sfa.npy", formats.scaling(), given->sfa);
    require_no_sign(dir + (discrete ? "/sfb_00000.npy .." : "/sfb.npy"), formats.scaling(), given->sfb);
  }
  given->of_epilogue = read_epilogue(dir, chapter, given->shape, given->request);
  given->a = std::move(a.data);
  given->b = std::move(b.data);
  return given;
}

}  // namespace

std::unique_ptr<GivenOperands> read_operands(const std::string& dir, const Setup& setup,
                                             const Chapter& chapter, bool shared_b,
                                             const std::vector<Formats>& types) {
  require_directory(dir, "name the folder that holds the operands");
  std::unique_ptr<GivenOperands> given;
  const bool packed = exists(dir + "/a.npy"), numbered_too = exists(dir + "/" + numbered_file("a", 0));
  GG_REQUIRE(chapter.own_sizes != OwnSizes::when_listed || !packed || !numbered_too,
             "%s: holds a.npy, for packed rows, and a_00000.npy, for groups of their own sizes: remove one",
             dir.c_str());
  if (chapter.own_sizes == OwnSizes::always || (chapter.own_sizes == OwnSizes::when_listed && numbered_too)) {
    given = read_per_group(dir, setup, types);
  } else {
    given = read_packed(dir, setup, chapter, shared_b, types);
  }
  refuse_unsupported(given->shape, chapter, steps_of(chapter, setup.request));
  return given;
}

void GivenOperands::fill(Buffers& buffers, int unowned) const {
  buffers.put(Tensor::a, a.data(), unowned);
  buffers.put(Tensor::b, b.data(), unowned);
  buffers.put(Tensor::sfa, sfa.data(), unowned);  // whole atoms of owned rows; the file may go on
  buffers.put(Tensor::sfb, sfb.data(), unowned);
  buffers.fill_epilogue(of_epilogue, unowned);
}

}  // namespace gg
