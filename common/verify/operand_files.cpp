// SPDX-License-Identifier: MIT
//
// Operands from files and results to files.

#include "common/verify/operand_files.h"

#include <algorithm>
#include <cstring>

#include "common/base/files.h"
#include "common/base/npy.h"
#include "common/problem/limits.h"
#include "common/verify/epilogue_files.h"
#include "common/verify/output.h"

namespace gg {
namespace {

// Row offsets as a file gives them: [G+1], from 0, never decreasing, within int32 and within A's rows.
// `not_in_file` of them were put before what the file holds, and are not counted where one is named.
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

// Row offsets of block-scaled problems: [G] int32, where each group ends. As above with a 0 before them.
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
      if (type == format_info(each.*operand).npy) return "--in-dtype " + each.name();
    }
    return "";
  };
}

// [G+1] offsets where the ends of G groups are wanted look like ends behind an empty group: B tells them
// apart.
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
  const Formats& formats = setup.formats;
  const size_t k_at = setup.b_layout == BLayout::nk ? 1 : 0, n_at = 1 - k_at;  // in the shape of B
  auto given = std::make_unique<GivenOperands>();
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
    given->a.push_back(std::move(a.data));
    given->b.push_back(std::move(b.data));
  }
  return given;
}

// The matrices of all regions one after the other, as a file holds them.
std::vector<char> gathered(const std::vector<char>& buffer, const std::vector<Region>& regions,
                           Format format) {
  std::vector<char> dense;
  for (const Region& region : regions) {
    for (int64_t row = 0; row < region.rows; ++row) {
      const char* from = buffer.data() + bytes_of(format, region.offset + row * region.ld);
      dense.insert(dense.end(), from, from + bytes_of(format, region.cols));
    }
  }
  return dense;
}

std::unique_ptr<GivenOperands> read_packed(const std::string& dir, const Setup& setup, const Chapter& chapter,
                                           bool shared_b, const std::vector<Formats>& types) {
  const Formats& formats = setup.formats;
  auto given = std::make_unique<GivenOperands>();
  const bool discrete = setup.epilogue.discrete;
  const std::string a_path = dir + "/a.npy", b_path = dir + (discrete ? "/b_00000.npy .." : "/b.npy"),
                    offsets_path = dir + "/offsets.npy";
  const NpyArray a = read_npy(a_path, formats.a, 2, hint_of(types, &Formats::a)),
                 offsets = read_npy(offsets_path);
  given->rows_of_a = a.shape[0];
  given->shape.set = kFromFiles;
  const int most = most_groups(chapter);
  given->shape.m = formats.has_scales() ? rows_from_ends(offsets_path, offsets, a.shape[0], most)
                                        : rows_from_offsets(offsets_path, offsets, a.shape[0], most);
  // Either type is read; a launch that knows only int32 gets int32, which holds every accepted offset.
  given->wide_offsets = offsets.type == "<i8" && !chapter.reads_offsets_on_host;
  given->shape.shared_b = shared_b;
  const int64_t groups = given->shape.groups();
  if (chapter.epilogue.discrete) require_one_kind_of_weights(dir, discrete);
  const TypeHint hint = hint_of(types, &Formats::b);
  if (formats.has_scales() && groups > 1 && given->shape.m[0] == 0)
    refuse_starts(offsets_path, discrete ? "" : b_path, dir, int(groups), formats.b, chapter);
  const NpyArray b = read_weights(dir, "b", formats.b, 2, discrete, shared_b, int(groups), hint);
  GG_REQUIRE(shared_b || b.shape[0] == groups,
             "%s: has shape %s, the offsets name %lld groups: give one matrix for each", b_path.c_str(),
             shape_text(b.shape).c_str(), static_cast<long long>(groups));
  const size_t first = shared_b ? 0 : 1;  // of the two extents after G
  const size_t k_at = first + (setup.b_layout == BLayout::nk ? 1 : 0), n_at = 2 * first + 1 - k_at;
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
  if (setup.epilogue.has_operands()) {
    given->shape.rows = given->rows_of_a;
    require_no_sign(dir + "/sfa.npy", formats.scaling(), given->sfa);
    require_no_sign(dir + (discrete ? "/sfb_00000.npy .." : "/sfb.npy"), formats.scaling(), given->sfb);
  }
  given->epilogue = setup.epilogue;
  given->of_epilogue = read_epilogue(dir, chapter, formats, given->shape, given->epilogue);
  const auto row_bytes = int64_t(bytes_of(formats.a, k));
  int64_t row = 0;
  for (int m : given->shape.m) {
    given->a.emplace_back(a.data.begin() + row * row_bytes, a.data.begin() + (row + m) * row_bytes);
    row += m;
  }
  const int64_t b_bytes = int64_t(b.data.size()) / (shared_b ? 1 : groups);
  for (int64_t g = 0; g < (shared_b ? 1 : groups); ++g) {
    given->b.emplace_back(b.data.begin() + g * b_bytes, b.data.begin() + (g + 1) * b_bytes);
  }
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
  refuse_unsupported(given->shape, chapter, setup.tile_k, steps_of(chapter, setup.formats, setup.b_layout));
  return given;
}

void GivenOperands::fill(Machine& machine, const Buffers& buffers, int unowned) const {
  const auto put = [&](void* tensor, size_t bytes, Format format, const std::vector<Region>& regions,
                       const std::vector<std::vector<char>>& matrices) {
    std::vector<char> image(bytes, char(unowned));
    for (size_t g = 0; g < regions.size(); ++g) {
      const Region& region = regions[g];
      const size_t row_bytes = bytes_of(format, region.cols);
      for (int64_t row = 0; row < region.rows; ++row) {
        std::memcpy(image.data() + bytes_of(format, region.offset + row * region.ld),
                    matrices[g].data() + size_t(row) * row_bytes, row_bytes);
      }
    }
    machine.upload(tensor, image.data(), bytes);
  };
  const Formats& formats = buffers.setup().formats;
  const Layout& layout = buffers.layout();
  put(buffers.a(), buffers.a_bytes(), formats.a, layout.a_regions(), a);
  put(buffers.b(), buffers.b_bytes(), formats.b, layout.b_regions(), b);
  if (!formats.has_scales()) return;
  std::vector<char> a_scales(buffers.sfa_bytes(), char(unowned)),
      b_scales(buffers.sfb_bytes(), char(unowned));
  const int64_t owned = layout.groups[0].sfa.layout.bytes();  // whole atoms; the file may go on
  std::copy_n(sfa.begin(), owned, a_scales.begin() + layout.sfa_start);
  std::copy(sfb.begin(), sfb.end(), b_scales.begin());
  machine.upload(buffers.sfa(), a_scales.data(), a_scales.size());
  machine.upload(buffers.sfb(), b_scales.data(), b_scales.size());
  buffers.fill_epilogue(of_epilogue, unowned);
}

// sfa.npy, with 0xFF for rows behind the last group, and sfb.npy.
static void write_scales(Machine& machine, const Buffers& buffers, int64_t rows, const std::string& dir,
                         NewFiles& files) {
  const Layout& layout = buffers.layout();
  const ScaleLayout of_a{rows, layout.groups[0].sfa.layout.blocks}, of_b = layout.groups[0].sfb.layout;
  const char* const type = format_info(buffers.setup().formats.scaling().scale).npy;
  std::vector<char> sfa(size_t(layout.groups[0].sfa.layout.bytes())),
      sfb(size_t(of_b.bytes() * (buffers.shape().shared_b ? 1 : buffers.shape().groups())));
  machine.download(sfa.data(), buffers.sfa() + layout.sfa_start, sfa.size());
  machine.download(sfb.data(), buffers.sfb(), sfb.size());
  for (int64_t at = int64_t(sfa.size()); at < of_a.bytes(); ++at) {
    sfa.push_back(of_a.is_padding(of_a.slot(at)) ? 0 : char(0xFF));
  }
  const auto write = [&](const std::string& name, const ScaleLayout& one, const std::vector<char>& scales,
                         bool several) {
    std::vector<int64_t> extents = {one.row_atoms(), one.block_atoms(), 32, 4, 4};
    if (several) extents.insert(extents.begin(), buffers.shape().groups());
    files.add(dir + "/" + name, npy_content(type, extents, scales.data(), scales.size()));
  };
  write("sfa.npy", of_a, sfa, false);
  if (!buffers.setup().epilogue.discrete) return write("sfb.npy", of_b, sfb, !buffers.shape().shared_b);
  for (int g = 0; g < buffers.shape().groups(); ++g) {
    const auto first = sfb.begin() + g * of_b.bytes();
    write(numbered_file("sfb", g), of_b, {first, first + of_b.bytes()}, false);
  }
}

void write_problem(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                   const GivenOperands* given, uint64_t seed, const std::string& dir) {
  Buffers buffers(machine, setup, shape);
  if (given) {
    given->fill(machine, buffers, 0xFF);
  } else {
    buffers.fill_operands({Fill::Kind::normal, 0, seed * 4 + 2, 0});
  }
  buffers.poison(0xFF);
  machine.run([&](cudaStream_t stream) { launch(buffers.problem(), stream); });
  const auto download = [&](const void* tensor, size_t bytes) {
    std::vector<char> image(bytes);
    machine.download(image.data(), tensor, bytes);
    return image;
  };
  const std::vector<char> a = download(buffers.a(), buffers.a_bytes()), b = downloaded_b(machine, buffers),
                          d = download(buffers.d(), buffers.d_bytes());
  NewFiles files;  // a folder holds one problem: all of this one, or what was there
  const Layout layout = near_layout(setup, shape);
  const auto write = [&](const std::string& name, Format format, const std::vector<int64_t>& extents,
                         const std::vector<char>& dense) {
    files.add(dir + "/" + name, npy_content(format_info(format).npy, extents, dense.data(), dense.size()));
  };
  const auto dense = [](const std::vector<char>& buffer, Format format, const std::vector<Region>& regions) {
    return gathered(buffer, regions, format);
  };
  const Formats& f = setup.formats;
  if (shape.own_sizes) {
    for (int g = 0; g < shape.groups(); ++g) {
      const Group& group = layout.groups[size_t(g)];
      write(numbered_file("a", g), f.a, {group.m, group.k}, dense(a, f.a, {group.a}));
      write(numbered_file("b", g), f.b, {group.b.rows, group.b.cols}, dense(b, f.b, {group.b}));
      write(numbered_file("d", g), f.d, {group.m, group.n}, dense(d, f.d, {group.d}));
    }
    return files.commit();
  }
  const int64_t owned = shape.m_total(), spare_too = std::max(owned, shape.rows);
  const int64_t rows = given ? given->rows_of_a : spare_too, n = layout.groups[0].d.cols;
  const Region& first_b = layout.groups[0].b;
  const auto stored = [](Format format, int64_t elems) {  // the last extent of a file
    return format_info(format).bits < 8 ? int64_t(bytes_of(format, elems)) : elems;
  };
  std::vector<int64_t> b_extents;
  if (!shape.shared_b) b_extents.push_back(shape.groups());
  for (const int64_t extent : {int64_t(first_b.rows), stored(f.b, first_b.cols)}) b_extents.push_back(extent);
  std::vector<char> a_dense = dense(a, f.a, layout.a_regions()), d_dense = dense(d, f.d, layout.d_regions());
  a_dense.resize(bytes_of(f.a, rows * shape.k_of(0)), char(0xFF));  // rows no group owns
  d_dense.resize(bytes_of(f.d, rows * n), char(0xFF));
  write("a.npy", f.a, {rows, stored(f.a, shape.k_of(0))}, a_dense);
  if (!setup.epilogue.discrete) write("b.npy", f.b, b_extents, dense(b, f.b, layout.b_regions()));
  for (int g = 0; setup.epilogue.discrete && g < shape.groups(); ++g) {
    write(numbered_file("b", g), f.b, {b_extents[1], b_extents[2]},
          dense(b, f.b, {layout.groups[size_t(g)].b}));
  }
  write("d.npy", f.d, {rows, n}, d_dense);
  const std::vector<int32_t> narrow(layout.offsets.begin(), layout.offsets.end());
  const auto* bytes = setup.wide_offsets ? reinterpret_cast<const char*>(layout.offsets.data())
                                         : reinterpret_cast<const char*>(narrow.data());
  const Format type = setup.wide_offsets ? Format::i64 : Format::i32;
  const int64_t left_out = f.has_scales() ? 1 : 0, count = int64_t(narrow.size());  // the 0 before the ends
  write("offsets.npy", type, {count - left_out},
        {bytes + bytes_of(type, left_out), bytes + bytes_of(type, count)});
  if (f.has_scales()) write_scales(machine, buffers, rows, dir, files);
  if (setup.epilogue.has_operands()) write_epilogue(machine, buffers, dir, files);
  files.commit();
}

}  // namespace gg
