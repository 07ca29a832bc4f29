// SPDX-License-Identifier: MIT
//
// Operands of epilogues and block scales, drawn element by element.

#include "common/harness/machine/random_operands.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/harness/base/parallel.h"
#include "common/harness/problem/tensors.h"

namespace gg {

std::vector<uint16_t> sylvester_matrix() {
  constexpr unsigned kSide = 16;
  std::vector<uint16_t> codes;
  for (unsigned i = 0; i < kSide; ++i) {
    for (unsigned j = 0; j < kSide; ++j) {
      codes.push_back(uint16_t(encode(Format::bf16, std::popcount(i & j) % 2 ? -1.0 : 1.0)));
    }
  }
  return codes;
}

// About the standard deviation of the products, as a power of two.
static float unit_of_products(const Formats& formats, const Shape& shape, bool integers) {
  const int range = std::min({16, whole_numbers(formats.a), whole_numbers(formats.b)});
  const double of_one = integers ? range * range / 3.0 : 3;
  return float(two_to_the(exponent_of(of_one * std::sqrt(double(shape.k_of(0))))));
}

EpilogueOperands random_operands(const Formats& formats, const Epilogue& epilogue, const Shape& shape,
                                 const Fill& fill, const std::vector<bool>& nan_groups) {
  const Epilogue& e = epilogue;
  const auto has = [&](Tensor tensor) { return has_tensor(tensor, formats, e); };
  EpilogueOperands operands;
  const bool integers = fill.kind == Fill::Kind::integers;
  const auto value = [&](uint64_t stream, Format format, size_t group, size_t i) {
    if (group < nan_groups.size() && nan_groups[group]) return NAN;
    if (integers) return float(int(hash(fill.seed, stream, i) % 4) - 2);
    return decode(format, random_code({fill.kind, 0, fill.seed, stream}, format, i, normal_quantiles()));
  };
  // Neighbours differ, and of four groups only one has alpha 0.
  const uint64_t turn = hash(fill.seed, 5, 0);
  // A bias weighs as much as the products; a gated epilogue has a few units,
  // where activations bend.
  const float unit = unit_of_products(formats, shape, integers);
  const bool bends = e.is_gated() || e.is_glu_gradient();
  const float of_alpha = bends ? 2 / unit : 1, of_bias = bends ? 1 : unit;
  for (size_t g = 0; has(Tensor::alpha) && g < size_t(shape.groups()); ++g) {
    const float whole = float(int((turn + g) % 4) - 2), any = value(5, Format::f32, g, g);
    operands.alpha.push_back((integers && any == any ? whole : any) * of_alpha);
    for (int r = 0; r < shape.m[g]; ++r)
      operands.prob.push_back(value(6, Format::f32, g, operands.prob.size()));
  }
  if (has(Tensor::bias)) {
    const size_t n = size_t(shape.n_of(0)), count = size_t(shape.groups()) * n;
    operands.bias.resize(bytes_of(e.bias_format, int64_t(count)));
    for (size_t i = 0; i < count; ++i) {
      store_code(operands.bias.data(), e.bias_format, int64_t(i),
                 encode(e.bias_format, double(value(7, e.bias_format, i / n, i) * of_bias)));
    }
  }
  if (has(Tensor::saved_c)) {
    const int64_t columns = 2 * int64_t(shape.n_of(0));
    operands.saved_c.assign(size_t(shape.m_total() * columns), 0xFFFF);  // NaN
    const Fill with{fill.kind, std::min(fill.range, whole_numbers(formats.c)), fill.seed, 8};
    int64_t first = 0;  // the group's first element
    for (size_t g = 0; g < size_t(shape.groups()); ++g) {
      const int64_t count = shape.m[g] * columns;
      const bool is_nan = g < nan_groups.size() && nan_groups[g];
      parallel_for(is_nan ? 0 : count, 1 << 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = first + begin; i < first + end; ++i)
          operands.saved_c[size_t(i)] =
              uint16_t(random_code(with, formats.c, uint64_t(i), normal_quantiles()));
      });
      first += count;
    }
  }
  if (has(Tensor::hadamard)) {
    operands.hadamard = sylvester_matrix();
    for (size_t i = 0; i < operands.hadamard.size() && !integers && !e.butterfly; ++i)
      operands.hadamard[i] =
          uint16_t(random_code({fill.kind, 0, fill.seed, 0}, Format::bf16, i, normal_quantiles()));
  }
  return operands;
}

ScaleImages random_scales(const Formats& formats, const Layout& layout, const Fill& a_fill,
                          const Fill& b_fill, const std::vector<bool>& nan_groups, int unowned) {
  const Format format = formats.scaling().scale;
  const std::vector<Group>& groups = layout.groups;
  const ScaleSpans spans = scale_spans(groups.empty() ? 0 : groups[0].k, a_fill.range, b_fill.range);
  ScaleImages images{std::vector<uint8_t>(size_t(layout.sfa_bytes), uint8_t(unowned)),
                     std::vector<uint8_t>(size_t(layout.sfb_bytes), uint8_t(unowned))};
  const auto fill = [&](std::vector<uint8_t>& image, const ScaleRegion& region, int rows, Fill with,
                        int span) {
    for (int row = 0; row < rows; ++row) {
      for (int64_t block = 0; block < region.layout.blocks; ++block) {
        const int64_t at = region.at(row, block);
        image[size_t(at)] = uint8_t(random_scale(with, format, span, uint64_t(at)));
      }
    }
  };
  // Clears the padding of owned rows.
  const auto clear = [](std::vector<uint8_t>& image, const ScaleRegion& region) {
    std::fill_n(image.begin() + region.offset, region.layout.bytes(), uint8_t(0));
  };
  if (!groups.empty()) clear(images.a, groups[0].sfa);
  for (size_t g = 0; g < groups.size(); ++g) {
    const bool is_nan = g < nan_groups.size() && nan_groups[g];
    Fill a_with = a_fill, b_with = b_fill;
    a_with.stream = 3;
    b_with.stream = 4;
    if (is_nan) a_with.kind = b_with.kind = Fill::Kind::nan;
    fill(images.a, groups[g].sfa, groups[g].m, a_with, spans.a);
    if (g > 0 && layout.b_group_stride == 0) continue;  // one B for all groups
    clear(images.b, groups[g].sfb);
    fill(images.b, groups[g].sfb, groups[g].n, b_with, spans.b);
  }
  return images;
}

int whole_numbers(Format format) {
  constexpr int kMost = 16;
  if (format == Format::e2m1) return 6;  // what would be 5 becomes 4
  return std::min(kMost, 1 << (format_info(format).mantissa_bits + 1));
}

ScaleSpans scale_spans(int k, int range_a, int range_b) {
  constexpr int kMostBits = 4;  // more would leave the range of an f16 output
  // The sum of magnitudes is below 2^used.
  const int used = exponent_of(double(k) * range_a * range_b) + 1;
  const int free = std::clamp(23 - used, 0, kMostBits);
  return {free / 2, free - free / 2};
}

}  // namespace gg
