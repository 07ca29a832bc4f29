// SPDX-License-Identifier: MIT
//
// Files of an epilogue.

#include "common/verify/epilogue_files.h"

#include <algorithm>
#include <cstring>

#include "common/base/files.h"
#include "common/verify/output.h"

namespace gg {
namespace {

using Extents = std::vector<int64_t>;

NpyArray read_shaped(const std::string& path, Format format, const Extents& wanted, const char* what) {
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
  const std::vector<Format>& types = chapter.epilogue.bias_types;
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

}  // namespace

std::string numbered_file(const char* name, int group) { return format("%s_%05d.npy", name, group); }

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

NpyArray read_weights(const std::string& dir, const char* name, Format type, size_t rank, bool discrete,
                      bool shared, int groups, const TypeHint& or_else) {
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

EpilogueOperands read_epilogue(const std::string& dir, const Chapter& chapter, const Formats& formats,
                               const Shape& shape, Epilogue& epilogue) {
  EpilogueOperands operands;
  if (!epilogue.has_operands()) return operands;
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
    require_norm_const(norm + ":", value);
    const bool given = epilogue.sfd_row;
    GG_REQUIRE(!given || value == epilogue.norm_const,
               "%s: is %.9g, --norm-const is %.9g: they must agree: leave --norm-const out", norm.c_str(),
               double(value), double(epilogue.norm_const));
    epilogue.norm_const = value;
    epilogue.sfd_row = chapter.epilogue.sfd_row;
    epilogue.sfd_col = chapter.epilogue.sfd_col;
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
  require_epilogue(epilogue, formats);
  return operands;
}

void write_epilogue(Machine& machine, const Buffers& buffers, const std::string& dir, NewFiles& files) {
  const Problem& p = buffers.problem();
  const Epilogue& e = p.epilogue();
  const Formats& f = p.formats();
  const auto write = [&](const std::string& name, const char* type, const Extents& extents,
                         const std::vector<char>& data) {
    files.add(dir + "/" + name + ".npy", npy_content(type, extents, data.data(), data.size()));
  };
  const auto tensor = [&](const char* name, const void* memory, Format format, const Extents& extents) {
    if (!memory) return;
    int64_t elems = 1;
    for (const int64_t extent : extents) elems *= extent;
    write(name, format_info(format).npy, extents, downloaded(machine, memory, bytes_of(format, elems)));
  };
  const auto scales = [&](const char* name, const uint8_t* memory, const ScaleLayout& layout) {
    tensor(name, memory, Format::ue8m0, {layout.row_atoms(), layout.block_atoms(), 32, 4, 4});
  };
  const int64_t groups = p.groups(), rows = p.rows(), n = p.n();
  tensor("d", p.d<void>(), f.d, {rows, n / e.columns_of_b_per_d()});
  tensor("d_col", p.d_col<void>(), f.d, {rows, n});
  tensor("c", p.c<void>(), f.c, {rows, n});
  tensor("alpha", p.alpha(), Format::f32, {groups});
  tensor("prob", p.prob(), Format::f32, {rows});
  tensor("bias", p.bias<void>(), p.bias_format(), {groups, n});
  tensor("norm_const", p.norm_const(), Format::f32, {1});
  tensor("amax", p.amax(), Format::f32, {groups});
  tensor("hadamard", p.hadamard(), Format::bf16, {16, 16});
  scales("sfd_row", p.sfd_row(), {rows, scale_blocks(n, 32)});
  scales("sfd_col", p.sfd_col(), {n, scale_blocks(rows, 32)});
}

}  // namespace gg
