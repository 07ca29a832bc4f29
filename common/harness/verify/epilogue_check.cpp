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

// A sum of terms that are within their ranges, each partial sum rounded to f32.
Range total_of(const RangeSum& terms) { return terms.total(terms.is_exact() ? 0 : 0x1p-19); }

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
        const Band& band, int first, int rows, std::vector<RangeSum>& dbias, Findings& result)
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
        dbias_(dbias),
        result_(result) {}

  // In which this chunk leaves the group's amax.
  Bounds run() {
    values_.resize(size_t(rows_) * size_t(n_));
    for (int r = 0; r < rows_; ++r) {
      for (int col = 0; col < n_; ++col) {
        const Range& product = band_.products[size_t(first_ - band_.first + r) * size_t(n_) + size_t(col)];
        result_.exact += product.is_point();
        value(r, col) =
            e_.is_glu_gradient() ? product : reference_.value(product, band_.group, start_ + first_ + r, col);
      }
    }
    result_.products += int64_t(rows_) * n_;
    if (e_.op == Operator::quant) {
      quantised();
    } else if (e_.is_glu_gradient()) {
      gradient();
    } else {
      gated();
    }
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
    if (got == middle && range.has_numbers()) {  // it fits: nearly all do
      ++result_.of[size_t(output)].checked;
      return;
    }
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
    const float factor = reference_.factor(code, largest);
    for (int i = 0; i < count; ++i) {
      const Range q = reference_.scaled(value(r, col + i), code, factor);
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
    const float factor = reference_.factor(code, largest);
    for (int r = 0; r < rows_; ++r)
      element(Tensor::d_col, formats_.d, n_, r, col, reference_.scaled(value(r, col), code, factor));
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

  void gradient() {
    const int columns = 2 * n_;
    for (int r = 0; r < rows_; ++r) {
      RangeSum dprob;
      for (int col = 0; col < n_; ++col) {
        const int gate = reference_.gate_column(col, columns), up = reference_.up_column(col, columns);
        const EpilogueReference::Gradient all = reference_.gradient(
            value(r, col), reference_.saved_c(band_.group, row_of(r), gate, columns),
            reference_.saved_c(band_.group, row_of(r), up, columns), band_.group, row_of(r));
        element(Tensor::d, formats_.d, columns, r, gate, all.gate);
        element(Tensor::d, formats_.d, columns, r, up, all.up);
        dprob.add(all.prob);
        const bool is_rounded = mistake() == Mistake::dbias_of_rounded;
        dbias_[size_t(gate)].add(is_rounded ? rounded(all.gate, formats_.d) : all.gate);
        dbias_[size_t(up)].add(is_rounded ? rounded(all.up, formats_.d) : all.up);
      }
      element(Tensor::dprob, Format::f32, 1, r, 0, total_of(dprob));
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
  int64_t start_;                 // the group's first row
  std::vector<RangeSum>& dbias_;  // [2N], of these rows
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

// A row of dbias. Where a band has not all rows of its group, the terms are those that D holds,
// each of which was rounded.
void compare_dbias(const OutputImages& images, const Formats& formats, const Layout& layout, int group,
                   const std::vector<RangeSum>* sums, Findings& result) {
  const int columns = 2 * layout.groups[size_t(group)].n;
  const OutputImage &image = images[size_t(Tensor::dbias)], &d = images[size_t(Tensor::d)];
  std::mutex lock;
  parallel_for(columns, 64, [&](int64_t begin, int64_t end) {
    Findings part;
    OutputTally& tally = part.of[size_t(Tensor::dbias)];
    for (int64_t col = begin; col < end; ++col) {
      RangeSum of_d;
      const int64_t first = layout.offsets[size_t(group)], last = layout.offsets[size_t(group) + 1];
      for (int64_t row = first; !sums && row < last; ++row) {
        const float value = decode(formats.d, load_code(d.first(), formats.d, row * columns + col));
        const float half = std::fabs(value) * 0x1p-8f;
        of_d.add(std::isfinite(value) ? Range(value - half, value + half) : Range(value));
      }
      const Range expected = total_of(sums ? (*sums)[size_t(col)] : of_d);
      const int64_t at = int64_t(group) * columns + col;
      const uint32_t got = load_code(image.first(), Format::f32, at);
      ++tally.checked;
      const bool ok = fits(got, Format::f32, expected);
      tally.loose += ok && !expected.is_point();
      if (ok || tally.failures++ > 0) continue;
      tally.group = group;
      tally.row = group;
      tally.col = int(col);
      tally.byte = image.start + size_t(at) * 4;
      tally.got = got;
      tally.expected = expected_text(Format::f32, expected);
    }
    const std::lock_guard<std::mutex> guard(lock);
    result.merge(part);
  });
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
  const bool has_dbias = setup.request.epilogue.is_glu_gradient();
  for (const Band& band : bands) {
    std::mutex lock;
    Bounds amax;
    const size_t columns = has_dbias ? 2 * size_t(layout.groups[size_t(band.group)].n) : 0;
    std::vector<RangeSum> dbias(columns);
    parallel_for((band.rows + kBlock - 1) / kBlock, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        Findings part;
        std::vector<RangeSum> part_of_dbias(columns);
        const int first = band.first + int(chunk) * kBlock,
                  rows = std::min(kBlock, band.first + band.rows - first);
        const Bounds seen = Chunk(buffers, images, reference, band, first, rows, part_of_dbias, part).run();
        const std::lock_guard<std::mutex> guard(lock);
        all.merge(part);
        amax.add(seen);
        for (size_t col = 0; col < columns; ++col) dbias[col].add(part_of_dbias[col]);
      }
    });
    if (has_dbias) {
      const bool is_whole = band.rows == layout.groups[size_t(band.group)].m;
      compare_dbias(images, setup.request.formats, layout, band.group, is_whole ? &dbias : nullptr, all);
    }
    if (amax_image.bytes.empty()) continue;
    if (band.rows < layout.groups[size_t(band.group)].m) amax.hi = INFINITY;
    compare_amax(amax_image, band.group, amax, all);
  }
  for (size_t g = 0; g < layout.groups.size() && !amax_image.bytes.empty(); ++g) {
    const bool skip = g < skipped.size() && skipped[g];
    if (layout.groups[g].m == 0 && !skip) compare_amax(amax_image, int(g), {-INFINITY, -INFINITY}, all);
  }
  for (size_t g = 0; g < layout.groups.size() && has_dbias; ++g) {
    const bool skip = g < skipped.size() && skipped[g];
    if (layout.groups[g].m > 0 || skip) continue;
    const std::vector<RangeSum> no_rows(2 * size_t(layout.groups[g].n));
    compare_dbias(images, setup.request.formats, layout, int(g), &no_rows, all);
  }
  return all;
}

}  // namespace gg
