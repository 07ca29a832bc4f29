// SPDX-License-Identifier: MIT
//
// The outputs that a band of products makes.

#include "common/harness/verify/epilogue_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>

#include "common/harness/base/parallel.h"
#include "common/harness/base/text.h"

namespace gg {
namespace {

constexpr int kBlock = 32;  // values that share a scale
constexpr int kRun = 16;    // columns that are transformed together

int64_t rounded_up_to(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

std::string code_text(Format type, uint32_t code) {
  return format("%.9g (0x%0*X)", double(decode(type, code)), (format_info(type).bits + 3) / 4, code);
}

// The text for what a range may be rounded to.
std::string expected_text(Format type, const Range& range) {
  std::vector<std::string> all;
  if (range.has_numbers()) {
    const uint32_t least = encode(type, double(range.lo)), most = encode(type, double(range.hi));
    all.push_back(code_text(type, least) + (least == most ? "" : " .. " + code_text(type, most)));
  }
  if (range.minus) all.push_back(code_text(type, encode(type, -INFINITY)));
  if (range.plus) all.push_back(code_text(type, encode(type, INFINITY)));
  if (range.nan) all.push_back(code_text(type, encode(type, NAN)));
  return join(all, " or ");
}

std::string expected_text(const Codes& codes) {
  std::vector<std::string> all;
  const auto text = [](uint32_t code) { return code_text(Format::ue8m0, code); };
  if (codes.least <= codes.most)
    all.push_back(text(codes.least) + (codes.least == codes.most ? "" : " .. " + text(codes.most)));
  if (codes.infinite) all.push_back(text(254));
  if (codes.nan) all.push_back(text(255));
  return join(all, " or ");
}

struct Bounds {  // of an amax
  float lo = 0, hi = 0;

  void add(const Bounds& other) {
    lo = std::max(lo, other.lo);
    hi = std::max(hi, other.hi);
  }
};

// One chunk of at most 32 rows of a band: its outputs.
class Chunk {
 public:
  Chunk(const Buffers& buffers, const OutputImages& images, const EpilogueReference& reference,
        const Band& band, int first, int rows, Findings& result)
      : e_(buffers.setup().request.epilogue),
        formats_(buffers.setup().request.formats),
        layout_(buffers.layout()),
        images_(images),
        reference_(reference),
        band_(band),
        n_(layout_.groups[0].n),
        first_(first),
        rows_(rows),
        start_(layout_.offsets[size_t(band.group)]),
        result_(result) {}

  // In which this chunk leaves the group's amax.
  Bounds run() {
    values_.resize(size_t(rows_) * size_t(n_));
    for (int r = 0; r < rows_; ++r) {
      for (int col = 0; col < n_; ++col) {
        const Range& product = band_.products[size_t(first_ - band_.first + r) * size_t(n_) + size_t(col)];
        result_.exact += product.is_point();
        value(r, col) = reference_.value(product, band_.group, start_ + first_ + r, col);
      }
    }
    result_.products += int64_t(rows_) * n_;
    e_.op == Operator::quant ? quantised() : gated();
    return amax_;
  }

 private:
  Range& value(int r, int col) { return values_[size_t(r) * size_t(n_) + size_t(col)]; }
  int64_t row_of(int r) const { return start_ + first_ + r; }  // over all groups
  Mistake mistake() const { return reference_.mistake(); }

  void count(Tensor output, size_t byte, int r, int col, bool ok, bool loose, uint32_t got,
             const std::function<std::string()>& expected) {
    OutputTally& tally = result_.of[size_t(output)];
    ++tally.checked;
    tally.loose += loose;
    if (ok) return;
    if (tally.failures++ > 0) return;
    tally.group = band_.group;
    tally.row = first_ + r;
    tally.col = col;
    tally.byte = byte;
    tally.got = got;
    tally.expected = expected();
  }

  // An element of D, D_col or C.
  void element(Tensor output, Format type, int columns, int r, int col, const Range& range) {
    const OutputImage& image = images_[size_t(output)];
    const int64_t at = row_of(r) * columns + col;
    const uint32_t got = load_code(image.first(), type, at);
    const uint32_t middle = encode(type, (double(range.lo) + double(range.hi)) / 2);
    const bool ok = fits(got, type, range);
    count(output, image.start + bytes_of(type, at), r, col, ok, ok && !range.is_point() && got != middle, got,
          [&] { return expected_text(type, range); });
  }

  // A byte of SFD_row or SFD_col, and what it is.
  uint32_t scale(Tensor output, int64_t at, int r, int col, const Codes& codes) {
    const OutputImage& image = images_[size_t(output)];
    const auto got = uint8_t(image.first()[at]);
    const bool ok = codes.has(got);
    count(output, image.start + size_t(at), r, col, ok, ok && !codes.is_one() && got != codes.any(), got,
          [&] { return expected_text(codes); });
    return ok ? got : codes.any();
  }

  void add_to_amax(const Range* values, int count) {
    Bounds segment;
    bool sure = true;
    for (int i = 0; i < count; ++i) {
      const Range v = mistake() == Mistake::amax_signed ? values[i] : magnitude_of(values[i]);
      sure = sure && !v.nan;
      if (!v.is_nan()) segment.add({v.least(), v.most()});
    }
    if (sure) amax_.lo = std::max(amax_.lo, segment.lo);
    amax_.hi = std::max(amax_.hi, segment.hi);
  }

  void quantised() {
    for (int r = 0; r < rows_; ++r) {
      for (int col = 0; col < n_; col += kBlock) {
        const int count = std::min(kBlock, n_ - col);
        if (e_.sfd_row) {
          row_block(r, col, count);
        } else {
          for (int i = 0; i < count; ++i) element(Tensor::d, formats_.d, n_, r, col + i, value(r, col + i));
        }
        if (e_.amax) amax_of_quantised(r, col, count);
      }
      // Blocks behind the last column, up to whole atoms.
      const int64_t blocks = scale_blocks(n_, kBlock);
      const bool has_atoms = e_.sfd_row && mistake() != Mistake::row_layout;
      for (int64_t block = blocks; has_atoms && block < rounded_up_to(blocks, 4); ++block)
        scale(Tensor::sfd_row, row_place(r, block), r, int(block) * kBlock, {0, 0});
    }
    if (!e_.sfd_col) return;
    for (int col = 0; col < n_; ++col) column_block(col);
    for (int64_t col = n_; col < rounded_up_to(n_, kAtomColumns); ++col)
      scale(Tensor::sfd_col, column_place(col), 0, int(col), {0, 0});
  }

  void amax_of_quantised(int r, int col, int count) {
    if (mistake() != Mistake::amax_of_d) return add_to_amax(&value(r, col), count);
    std::vector<Range> rounded;
    for (int i = 0; i < count; ++i) {
      const uint32_t got =
          load_code(images_[size_t(Tensor::d)].first(), formats_.d, row_of(r) * n_ + col + i);
      rounded.push_back(Range(decode(formats_.d, got)));
    }
    add_to_amax(rounded.data(), count);
  }

  int64_t row_place(int r, int64_t block) const {
    const ScaleLayout layout{layout_.rows, scale_blocks(n_, kBlock)};
    if (mistake() == Mistake::row_layout) return row_of(r) * layout.blocks + block;
    return layout.offset(row_of(r), block);
  }
  // The place in SFD_col of the scale of the chunk's block of rows in column `col`.
  int64_t column_place(int64_t col) const {
    const bool swapped = mistake() == Mistake::column_layout;
    if (e_.discrete_col_sfd == swapped)
      return ScaleLayout{n_, scale_blocks(layout_.rows, kBlock)}.offset(col, row_of(0) / kBlock);
    const ScaleLayout of_group{n_, layout_.groups[size_t(band_.group)].m / kBlock};
    const int64_t before = ScaleLayout{n_, start_ / kBlock}.bytes();
    return before + of_group.offset(col, first_ / kBlock);
  }

  void row_block(int r, int col, int count) {
    const Range largest = reference_.largest(&value(r, col), 1, count);
    const uint32_t code =
        scale(Tensor::sfd_row, row_place(r, col / kBlock), r, col, reference_.codes(largest));
    for (int i = 0; i < count; ++i) {
      const Range q = reference_.scaled(value(r, col + i), code, largest);
      element(Tensor::d, formats_.d, n_, r, col + i, q);
      if (mistake() != Mistake::column_from_d) continue;
      const float s = decode(Format::ue8m0, code) / reference_.norm();
      const float d = decode(formats_.d, encode(formats_.d, double(q.lo)));
      value(r, col + i) = Range(d * s);
    }
  }

  void column_block(int col) {
    const Range largest = reference_.largest(&value(0, col), n_, rows_);
    const uint32_t code = scale(Tensor::sfd_col, column_place(col), 0, col, reference_.codes(largest));
    for (int r = 0; r < rows_; ++r) {
      element(Tensor::d_col, formats_.d, n_, r, col, reference_.scaled(value(r, col), code, largest));
    }
  }

  void gated() {
    const int columns = n_ / 2;
    std::vector<Range> x(static_cast<size_t>(columns)), y(static_cast<size_t>(columns));
    for (int r = 0; r < rows_; ++r) {
      for (int col = 0; e_.has_c() && col < n_; ++col) {
        const bool is_gate = col / kBlock % 2 == 0;
        element(Tensor::c, formats_.c, n_, r, col,
                reference_.stored_c(value(r, col), is_gate, band_.group, row_of(r)));
      }
      for (int col = 0; col < columns; ++col) {
        x[size_t(col)] =
            reference_.activated(value(r, reference_.gate_column(col, n_)),
                                 value(r, reference_.up_column(col, n_)), band_.group, row_of(r));
      }
      y = x;
      for (int run = 0; e_.op == Operator::glu_hadamard && run < columns; run += kRun)
        reference_.transformed(&x[size_t(run)], &y[size_t(run)]);
      for (int col = 0; col < columns; ++col) element(Tensor::d, formats_.d, columns, r, col, y[size_t(col)]);
      if (!e_.amax) continue;
      std::vector<Range>& of_amax = mistake() == Mistake::amax_of_x ? x : y;
      if (mistake() == Mistake::amax_of_d) {
        for (Range& each : of_amax) {
          each = rounded(each, formats_.d);
        }
      }
      for (int col = 0; col < columns; col += kBlock)
        add_to_amax(&of_amax[size_t(col)], std::min(kBlock, columns - col));
    }
  }

  static constexpr int kAtomColumns = 128;
  const Epilogue& e_;
  const Formats& formats_;
  const Layout& layout_;
  const OutputImages& images_;
  const EpilogueReference& reference_;
  const Band& band_;
  int n_, first_, rows_;
  int64_t start_;  // the group's first row
  Findings& result_;
  std::vector<Range> values_;
  Bounds amax_;
};

void compare_amax(const OutputImage& image, int group, const Bounds& expected, Findings& result) {
  OutputTally& tally = result.of[size_t(Tensor::amax)];
  ++tally.checked;
  float got = 0;
  std::memcpy(&got, image.first() + group * 4, 4);
  if (expected.lo <= got && got <= expected.hi) return;
  if (tally.failures++) return;
  tally.group = group;
  tally.byte = image.start + size_t(group) * 4;
  std::memcpy(&tally.got, &got, 4);
  tally.expected = expected.lo == expected.hi
                       ? code_text(Format::f32, encode(Format::f32, double(expected.lo)))
                       : format("%.9g .. %.9g", double(expected.lo), double(expected.hi));
}

}  // namespace

Findings compare_outputs(const Buffers& buffers, const std::vector<Band>& bands,
                         const std::vector<bool>& skipped, const OutputImages& images, Mistake mistake) {
  const Setup& setup = buffers.setup();
  const Layout& layout = buffers.layout();
  const EpilogueReference reference(setup.request.epilogue, setup.request.formats,
                                    buffers.epilogue_operands(), layout, mistake);
  Findings all;
  const OutputImage& amax_image = images[size_t(Tensor::amax)];
  for (const Band& band : bands) {
    std::mutex lock;
    Bounds amax;
    parallel_for((band.rows + kBlock - 1) / kBlock, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        Findings part;
        const int first = band.first + int(chunk) * kBlock,
                  rows = std::min(kBlock, band.first + band.rows - first);
        const Bounds seen = Chunk(buffers, images, reference, band, first, rows, part).run();
        const std::lock_guard<std::mutex> guard(lock);
        all.merge(part);
        amax.add(seen);
      }
    });
    if (amax_image.bytes.empty()) continue;
    if (band.rows < layout.groups[size_t(band.group)].m) amax.hi = INFINITY;
    compare_amax(amax_image, band.group, amax, all);
  }
  for (size_t g = 0; g < layout.groups.size() && !amax_image.bytes.empty(); ++g) {
    const bool skip = g < skipped.size() && skipped[g];
    if (layout.groups[g].m == 0 && !skip) compare_amax(amax_image, int(g), {-INFINITY, -INFINITY}, all);
  }
  return all;
}

}  // namespace gg
