// SPDX-License-Identifier: MIT
//
// The products that outputs are made of.

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/harness/base/parallel.h"
#include "common/harness/verify/epilogue_check.h"

namespace gg {
namespace {

constexpr int kBlock = 32;  // values that share a scale

// The lowest bits of the rows of A or of the columns of B, each with its scale.
std::vector<int> lowest_bits(const Matrices& matrices, const Group& group, bool of_b, int first, int count) {
  const Formats& f = matrices.formats;
  const Format type = of_b ? f.b : f.a, scale_type = f.scaling().scale;
  const void* const tensor = of_b ? matrices.b : matrices.a;
  const uint8_t* const scales = of_b ? matrices.sfb : matrices.sfa;
  std::vector<int> lowest(static_cast<size_t>(count));
  parallel_for(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int least = 1 << 20;
      for (int k = 0; k < group.k; ++k) {
        const int64_t at = of_b ? group.b.offset + (first + i) * group.b_n_step() + k * group.b_k_step()
                                : group.a.offset + (first + i) * group.a.ld + k;
        double value = decode(type, load_code(tensor, type, at));
        if (f.has_scales() && value != 0) {
          const ScaleRegion& region = of_b ? group.sfb : group.sfa;
          value *= double(decode(scale_type, scales[region.at(first + i, k / group.scale_block)]));
        }
        least = std::min(least, lowest_bit(value));
      }
      lowest[size_t(i)] = least;
    }
  });
  return lowest;
}

void add_products(const Matrices& matrices, const Group& group, Band& band) {
  const size_t count = size_t(band.rows) * size_t(group.n);
  std::vector<double> sums(count), magnitudes(count);
  reference_rows(matrices, group, band.first, band.first + band.rows, sums.data(), magnitudes.data());
  const std::vector<int> a = lowest_bits(matrices, group, false, band.first, band.rows),
                         b = lowest_bits(matrices, group, true, 0, group.n);
  band.products.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t row = i / size_t(group.n), col = i % size_t(group.n);
    const int lowest = std::clamp(a[row] + b[col], -(1 << 20), 1 << 20);
    band.products[i] =
        product_range(sums[i], magnitudes[i], lowest,
                      overflow_at(magnitudes[i], matrices, group, band.first + int(row), int(col)));
  }
}

}  // namespace

std::vector<Band> products_of(const Matrices& matrices, const Layout& layout, const Products& products) {
  constexpr int64_t kMostProducts = int64_t(1) << 28;
  constexpr uint64_t kSampledGroups = 3;
  int64_t all = 0;
  std::vector<Band> bands;
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    const Group& group = layout.groups[g];
    const bool skipped = g < products.skipped.size() && products.skipped[g];
    if (group.m == 0 || skipped) continue;
    all += int64_t(group.m) * group.n * group.k;
    bands.push_back({int(g), 0, group.m, {}});
  }
  if (all > kMostProducts) {
    std::vector<Band> sampled;
    for (uint64_t i = 0; i < kSampledGroups; ++i) {
      Band band = bands[hash(products.seed, 5, i) % bands.size()];
      const int blocks = (band.rows + kBlock - 1) / kBlock;  // the last one may have fewer rows
      band.first = int(hash(products.seed, 6, i) % uint64_t(blocks)) * kBlock;
      band.rows = std::min(kBlock, band.rows - band.first);
      sampled.push_back(band);
    }
    bands = sampled;
  }
  for (Band& band : bands) add_products(matrices, products.groups[size_t(band.group)], band);
  return bands;
}

// The least float in (1, 2] whose block has another code than that of 1.
static float boundary(const EpilogueReference& reference) {
  const auto code_of = [&](uint32_t bits) {
    const auto x = std::bit_cast<float>(bits);
    return reference.codes(Range(x)).least;
  };
  uint32_t same = std::bit_cast<uint32_t>(1.0f), other = std::bit_cast<uint32_t>(2.0f);
  const uint32_t code = code_of(same);
  while (other - same > 1) {
    const uint32_t middle = (same + other) / 2;
    (code_of(middle) == code ? same : other) = middle;
  }
  return std::bit_cast<float>(other);
}

void aim_at_boundaries(const Buffers& buffers, const std::vector<Band>& bands, EpilogueOperands& operands,
                       uint64_t seed) {
  const Setup& setup = buffers.setup();
  if (!setup.request.epilogue.sfd_row || setup.request.epilogue.bias) return;
  const Layout& layout = buffers.layout();
  const EpilogueReference reference(setup.request.epilogue, setup.request.formats, operands, layout);
  const float change = boundary(reference);
  const int n = layout.groups[0].n;
  for (const Band& band : bands) {
    const float alpha = operands.alpha[size_t(band.group)];
    for (int r = 0; r < band.rows; ++r) {
      const int64_t row = layout.offsets[size_t(band.group)] + band.first + r;
      const uint64_t drawn = hash(seed, 0, uint64_t(row));
      const int block = int(drawn % uint64_t(scale_blocks(n, kBlock)));
      float largest = 0;
      for (int col = block * kBlock; col < std::min(n, (block + 1) * kBlock); ++col)
        largest = std::max(largest, std::fabs(alpha * band.products[size_t(r) * size_t(n) + size_t(col)].lo));
      if (!(largest > 0) || !std::isfinite(largest)) continue;
      float target = change * float(two_to_the(exponent_of(double(largest))));
      const int side = int(drawn >> 32 & 3);  // 0: below, 1: above, else onto it
      if (side < 2) target = std::nextafter(target, side == 0 ? 0 : INFINITY);
      // The neighbour of the quotient that brings the product nearest to the target.
      float best = target / largest;
      for (const float to : {0.0f, INFINITY}) {
        const float other = std::nextafter(target / largest, to);
        if (std::fabs(largest * other - target) < std::fabs(largest * best - target)) best = other;
      }
      operands.prob[size_t(row)] = drawn >> 63 ? -best : best;
    }
  }
}

}  // namespace gg
