// SPDX-License-Identifier: MIT
//
// Operands from files and results to files.

#include "common/verify/operand_files.h"

#include <algorithm>
#include <cstring>

#include "common/base/files.h"
#include "common/base/npy.h"
#include "common/problem/limits.h"

namespace gg {
namespace {

// Row offsets as a file gives them: [G+1], from 0, never decreasing, within int32 and within A's rows.
std::vector<int> rows_from_offsets(const std::string& path, const NpyArray& array, int64_t rows_of_a) {
  GG_REQUIRE(array.type == "<i4" || array.type == "<i8", "%s: has type '%s', offsets are '<i4' or '<i8'",
             path.c_str(), array.type.c_str());
  GG_REQUIRE(array.shape.size() == 1 && array.shape[0] >= 2,
             "%s: has shape %s, [G+1] with at least one group is wanted", path.c_str(),
             shape_text(array.shape).c_str());
  GG_REQUIRE(array.shape[0] - 1 <= kMostGroups, "%s: %lld groups: at most %d are accepted", path.c_str(),
             static_cast<long long>(array.shape[0] - 1), kMostGroups);
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
    const long long shown = offset, before = previous;
    GG_REQUIRE(i > 0 || offset == 0, "%s: offset 0 is %lld, it must be 0", path.c_str(), shown);
    GG_REQUIRE(offset >= 0, "%s: offset %lld is %lld, negative", path.c_str(), static_cast<long long>(i),
               shown);
    GG_REQUIRE(offset >= previous, "%s: offset %lld is %lld, less than the %lld before it", path.c_str(),
               static_cast<long long>(i), shown, before);
    GG_REQUIRE(offset <= INT32_MAX, "%s: offset %lld is %lld, rows are counted in int32 (at most %d)",
               path.c_str(), static_cast<long long>(i), shown, INT32_MAX);
    GG_REQUIRE(offset <= rows_of_a, "%s: offset %lld is %lld, but A has only %lld rows", path.c_str(),
               static_cast<long long>(i), shown, static_cast<long long>(rows_of_a));
    if (i > 0) rows.push_back(int(offset - previous));
    previous = offset;
  }
  return rows;
}

int extent(const std::string& path, const NpyArray& array, size_t dimension) {
  const int64_t value = array.shape[dimension];
  GG_REQUIRE(value <= INT32_MAX, "%s: has shape %s, extents are at most %d", path.c_str(),
             shape_text(array.shape).c_str(), INT32_MAX);
  return int(value);
}

std::string numbered(const char* name, int group) { return format("%s_%05d.npy", name, group); }

std::unique_ptr<GivenOperands> read_per_group(const std::string& dir, const Setup& setup) {
  const Formats& formats = setup.formats;
  const size_t k_at = setup.b_layout == BLayout::nk ? 1 : 0, n_at = 1 - k_at;  // in the shape of B
  auto given = std::make_unique<GivenOperands>();
  given->shape.set = "files";
  given->shape.own_sizes = true;
  for (int g = 0; g <= kMostGroups; ++g) {
    const std::string a_path = dir + "/" + numbered("a", g), b_path = dir + "/" + numbered("b", g);
    if (g > 0 && !exists(a_path) && !exists(b_path)) break;
    NpyArray a = read_npy(a_path, formats.a, 2), b = read_npy(b_path, formats.b, 2);
    GG_REQUIRE(a.shape[1] == b.shape[k_at], "%s has shape %s, %s has %s: the K of both must agree",
               a_path.c_str(), shape_text(a.shape).c_str(), b_path.c_str(), shape_text(b.shape).c_str());
    given->shape.m.push_back(extent(a_path, a, 0));
    given->shape.k.push_back(extent(a_path, a, 1));
    given->shape.n.push_back(extent(b_path, b, n_at));
    given->a.push_back(std::move(a.data));
    given->b.push_back(std::move(b.data));
  }
  return given;
}

// The matrices of all regions one after the other, as a file holds them.
std::vector<char> gathered(const std::vector<char>& buffer, const std::vector<Region>& regions, int bytes) {
  std::vector<char> dense;
  for (const Region& region : regions) {
    for (int64_t row = 0; row < region.rows; ++row) {
      const char* from = buffer.data() + (region.offset + row * region.ld) * bytes;
      dense.insert(dense.end(), from, from + int64_t(region.cols) * bytes);
    }
  }
  return dense;
}

}  // namespace

std::unique_ptr<GivenOperands> read_operands(const std::string& dir, const Setup& setup,
                                             const Chapter& chapter, bool shared_b) {
  require_directory(dir);
  const Formats& formats = setup.formats;
  std::unique_ptr<GivenOperands> given;
  const bool packed = exists(dir + "/a.npy"), numbered_too = exists(dir + "/" + numbered("a", 0));
  GG_REQUIRE(chapter.own_sizes != OwnSizes::when_listed || !packed || !numbered_too,
             "%s: holds a.npy, for packed rows, and a_00000.npy, for groups of their own sizes: remove one",
             dir.c_str());
  if (chapter.own_sizes == OwnSizes::always || (chapter.own_sizes == OwnSizes::when_listed && numbered_too)) {
    given = read_per_group(dir, setup);
  } else {
    given = std::make_unique<GivenOperands>();
    const std::string a_path = dir + "/a.npy", b_path = dir + "/b.npy", offsets_path = dir + "/offsets.npy";
    const NpyArray a = read_npy(a_path, formats.a, 2), b = read_npy(b_path, formats.b, shared_b ? 2 : 3);
    const NpyArray offsets = read_npy(offsets_path);
    given->rows_of_a = a.shape[0];
    given->shape.set = "files";
    given->shape.m = rows_from_offsets(offsets_path, offsets, a.shape[0]);
    // Either type is read; a launch that knows only int32 gets int32, which holds every accepted offset.
    given->wide_offsets = offsets.type == "<i8" && !chapter.reads_offsets_on_host;
    given->shape.shared_b = shared_b;
    const int64_t groups = given->shape.groups();
    GG_REQUIRE(shared_b || b.shape[0] == groups, "%s: has shape %s, the offsets name %lld groups",
               b_path.c_str(), shape_text(b.shape).c_str(), static_cast<long long>(groups));
    const size_t first = shared_b ? 0 : 1;  // of the two extents after G
    const size_t k_at = first + (setup.b_layout == BLayout::nk ? 1 : 0), n_at = 2 * first + 1 - k_at;
    GG_REQUIRE(b.shape[k_at] == a.shape[1], "%s has shape %s, %s has %s: the K of both must agree",
               a_path.c_str(), shape_text(a.shape).c_str(), b_path.c_str(), shape_text(b.shape).c_str());
    given->shape.k = {extent(a_path, a, 1)};
    given->shape.n = {extent(b_path, b, n_at)};
    const int64_t row_bytes = a.shape[1] * format_info(formats.a).bytes;
    int64_t row = 0;
    for (int m : given->shape.m) {
      given->a.emplace_back(a.data.begin() + row * row_bytes, a.data.begin() + (row + m) * row_bytes);
      row += m;
    }
    const int64_t b_bytes = int64_t(b.data.size()) / (shared_b ? 1 : groups);
    for (int64_t g = 0; g < (shared_b ? 1 : groups); ++g) {
      given->b.emplace_back(b.data.begin() + g * b_bytes, b.data.begin() + (g + 1) * b_bytes);
    }
  }
  refuse_unsupported(given->shape, chapter, setup.tile_k);
  return given;
}

void GivenOperands::fill(Machine& machine, const Buffers& buffers, int unowned) const {
  const auto put = [&](void* tensor, size_t bytes, int element, const std::vector<Region>& regions,
                       const std::vector<std::vector<char>>& matrices) {
    std::vector<char> image(bytes, char(unowned));
    for (size_t g = 0; g < regions.size(); ++g) {
      const Region& region = regions[g];
      const int64_t row_bytes = int64_t(region.cols) * element;
      for (int64_t row = 0; row < region.rows; ++row) {
        std::memcpy(image.data() + (region.offset + row * region.ld) * element,
                    matrices[g].data() + row * row_bytes, size_t(row_bytes));
      }
    }
    machine.upload(tensor, image.data(), bytes);
  };
  const Formats& formats = buffers.setup().formats;
  put(buffers.a(), buffers.a_bytes(), format_info(formats.a).bytes, buffers.layout().a_regions(), a);
  put(buffers.b(), buffers.b_bytes(), format_info(formats.b).bytes, buffers.layout().b_regions(), b);
}

void write_problem(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                   const GivenOperands* given, uint64_t seed, const std::string& dir) {
  Buffers buffers(machine, setup, shape);
  if (given) {
    given->fill(machine, buffers, 0xFF);
  } else {
    buffers.fill_operands({Fill::Kind::normal, 0, seed * 4 + 2, 0});
  }
  machine.fill_bytes(buffers.d(), 0xFF, buffers.d_bytes());
  machine.run([&](cudaStream_t stream) { launch(buffers.problem(), stream); });
  const auto download = [&](const void* tensor, size_t bytes) {
    std::vector<char> image(bytes);
    machine.download(image.data(), tensor, bytes);
    return image;
  };
  const std::vector<char> a = download(buffers.a(), buffers.a_bytes()),
                          b = download(buffers.b(), buffers.b_bytes()),
                          d = download(buffers.d(), buffers.d_bytes());
  const Layout& layout = buffers.layout();
  const auto write = [&](const std::string& name, Format format, const std::vector<int64_t>& extents,
                         const std::vector<char>& dense) {
    write_npy(dir + "/" + name, format_info(format).npy, extents, dense.data(), dense.size());
  };
  const auto dense = [](const std::vector<char>& buffer, Format format, const std::vector<Region>& regions) {
    return gathered(buffer, regions, format_info(format).bytes);
  };
  const Formats& f = setup.formats;
  if (shape.own_sizes) {
    for (int g = 0; g < shape.groups(); ++g) {
      const Group& group = layout.groups[size_t(g)];
      write(numbered("a", g), f.a, {group.m, group.k}, dense(a, f.a, {group.a}));
      write(numbered("b", g), f.b, {group.b.rows, group.b.cols}, dense(b, f.b, {group.b}));
      write(numbered("d", g), f.d, {group.m, group.n}, dense(d, f.d, {group.d}));
    }
    return;
  }
  const int64_t n = shape.n_of(0), k = shape.k_of(0), owned = shape.m_total();
  const Region& first_b = layout.groups[0].b;
  std::vector<int64_t> b_extents;
  if (!shape.shared_b) b_extents.push_back(shape.groups());
  for (const int64_t extent : {int64_t(first_b.rows), int64_t(first_b.cols)}) b_extents.push_back(extent);
  const int64_t rows = given ? given->rows_of_a : owned;
  std::vector<char> a_dense = dense(a, f.a, layout.a_regions()), d_dense = dense(d, f.d, layout.d_regions());
  a_dense.resize(size_t(rows * k * format_info(f.a).bytes), char(0xFF));  // rows no group owns
  d_dense.resize(size_t(rows * n * format_info(f.d).bytes), char(0xFF));
  write("a.npy", f.a, {rows, k}, a_dense);
  write("b.npy", f.b, b_extents, dense(b, f.b, layout.b_regions()));
  write("d.npy", f.d, {rows, n}, d_dense);
  const std::vector<int32_t> narrow(layout.offsets.begin(), layout.offsets.end());
  const auto* bytes = setup.wide_offsets ? reinterpret_cast<const char*>(layout.offsets.data())
                                         : reinterpret_cast<const char*>(narrow.data());
  const Format type = setup.wide_offsets ? Format::i64 : Format::i32;
  write("offsets.npy", type, {int64_t(narrow.size())},
        {bytes, bytes + narrow.size() * size_t(format_info(type).bytes)});
}

}  // namespace gg
