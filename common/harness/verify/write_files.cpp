// SPDX-License-Identifier: MIT
//
// A problem to files: every tensor of its list, as a launch left it.

#include <algorithm>

#include "common/harness/base/files.h"
#include "common/harness/base/npy.h"
#include "common/harness/verify/host_copy.h"
#include "common/harness/verify/problem_files.h"

namespace gg {
namespace {

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

// Writes tensors of one problem into a folder; nothing is in place before `commit`.
class Folder {
 public:
  // `rows`: of packed A and D in their files.
  Folder(Machine& machine, const Buffers& buffers, const std::string& dir, int64_t rows)
      : machine_(machine), buffers_(buffers), dir_(dir), rows_(rows) {}

  void commit() { files_.commit(); }

  void add(const std::string& name, Format format, std::vector<int64_t> extents,
           const std::vector<char>& content) {
    if (format_info(format).bits < 8) extents.back() = int64_t(bytes_of(format, extents.back()));
    files_.add(dir_ + "/" + name,
               npy_content(format_info(format).npy, extents, content.data(), content.size()));
  }

  // A tensor of this list, at its start in its buffer; bytes that are not there are 0xFF.
  void add(const TensorSpec& spec) {
    std::vector<char> content = image(spec);
    const bool of_weights = spec.name == Tensor::b || spec.name == Tensor::sfb;
    if (!of_weights || buffers_.setup().request.weights == Weights::dense)
      return add(std::string(tensor_file(spec.name)) + ".npy", spec.format, spec.extents, content);
    const std::vector<int64_t> of_one(spec.extents.begin() + 1, spec.extents.end());
    const int64_t groups = spec.extents[0], bytes = int64_t(content.size()) / groups;
    for (int64_t g = 0; g < groups; ++g) {
      const auto first = content.begin() + g * bytes;
      add(numbered_file(tensor_file(spec.name), int(g)), spec.format, of_one, {first, first + bytes});
    }
  }

  // Matrices of each group's own.
  void add_groups(const Layout& layout) {
    const Formats& f = buffers_.setup().request.formats;
    const HostCopy copy = host_copy(machine_, buffers_);
    for (int g = 0; g < int(layout.groups.size()); ++g) {
      const Group& group = layout.groups[size_t(g)];
      add_matrix(Tensor::a, g, f.a, copy.a, group.a);
      add_matrix(Tensor::b, g, f.b, copy.b, group.b);
      add_matrix(Tensor::d, g, f.d, copy.d(), group.d);
    }
  }

  // [G+1], or the ends [G] where the formats have scales.
  void add_offsets(const std::vector<int64_t>& offsets) {
    const bool wide = buffers_.setup().request.wide_offsets;
    const int64_t left_out = buffers_.setup().request.formats.has_scales() ? 1 : 0,
                  count = int64_t(offsets.size());
    const std::vector<int32_t> narrow(offsets.begin(), offsets.end());
    const auto* bytes =
        wide ? reinterpret_cast<const char*>(offsets.data()) : reinterpret_cast<const char*>(narrow.data());
    const Format type = wide ? Format::i64 : Format::i32;
    add("offsets.npy", type, {count - left_out},
        {bytes + bytes_of(type, left_out), bytes + bytes_of(type, count)});
  }

 private:
  void add_matrix(Tensor name, int group, Format format, const std::vector<char>& buffer,
                  const Region& region) {
    add(numbered_file(tensor_file(name), group), format, {region.rows, region.cols},
        gathered(buffer, {region}, format));
  }

  std::vector<char> image(const TensorSpec& spec) {
    std::vector<char> content(bytes_of(spec.format, spec.size()), char(0xFF));
    // Without what lies between the groups' B.
    if (spec.name == Tensor::b && has_far_b(buffers_.layout())) {
      const std::vector<char> b = downloaded_b(machine_, buffers_);
      std::copy_n(b.begin(), content.size(), content.begin());
      return content;
    }
    const TensorMemory& tensor = buffers_.of(spec.name);
    const size_t there = std::min(content.size(), tensor.bytes - spec.start_byte());
    machine_.download(content.data(), tensor.first(), there);
    if (spec.name == Tensor::sfa) clear_padding(content);
    return content;
  }
  // Behind the rows that groups own no byte is anybody's, but padding in a file must not be NaN.
  void clear_padding(std::vector<char>& scales) const {
    const ScaleLayout& owned = buffers_.layout().groups[0].sfa.layout;
    const ScaleLayout all{rows_, owned.blocks};
    for (int64_t at = owned.bytes(); at < all.bytes(); ++at)
      scales[size_t(at)] = all.is_padding(all.slot(at)) ? 0 : char(0xFF);
  }

  Machine& machine_;
  const Buffers& buffers_;
  const std::string& dir_;
  int64_t rows_;
  NewFiles files_;  // a folder holds one problem: all of this one, or what was there
};

}  // namespace

std::string numbered_file(const char* name, int group) { return format("%s_%05d.npy", name, group); }

void write_problem(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                   const GivenOperands* given, uint64_t seed, const std::string& dir) {
  Buffers buffers(machine, setup, shape);
  if (given) {
    given->fill(buffers, 0xFF);
  } else {
    buffers.fill_operands({Fill::Kind::normal, 0, seed * 4 + 2, 0});
  }
  buffers.poison(0xFF);
  const TensorMemory& d = buffers.of(Tensor::d);
  std::vector<char> d_before;  // empty where the launch adds to nothing
  if (setup.request.accumulate) {
    d_before.resize(bytes_of(d.spec.format, d.spec.size()));
    machine.download(d_before.data(), d.first(), d_before.size());
  }
  machine.run([&](cudaStream_t stream) { launch(buffers.problem(), stream); });
  Layout layout = near_layout(setup, shape);
  layout.rows = given ? given->rows_of_a : std::max(shape.m_total(), shape.rows);
  Folder folder(machine, buffers, dir, layout.rows);
  if (shape.own_sizes) {
    folder.add_groups(layout);
    return folder.commit();
  }
  for (const TensorSpec& spec : tensors_of(setup.request.formats, setup.request.epilogue, layout))
    folder.add(spec);
  if (setup.request.accumulate) folder.add("d_before.npy", d.spec.format, d.spec.extents, d_before);
  folder.add_offsets(layout.offsets);
  folder.commit();
}

}  // namespace gg
