// SPDX-License-Identifier: MIT
//
// Sizes and layouts of grouped GEMM problems.

#include "common/harness/problem/layout.h"

#include <algorithm>
#include <numeric>

namespace gg {

int64_t Shape::m_total() const {
  int64_t total = 0;
  for (int rows : m) total += rows;
  return total;
}

int Shape::m_max() const { return m.empty() ? 0 : *std::max_element(m.begin(), m.end()); }

double Shape::flops() const {
  double sum = 0;
  const std::vector<int>& useful = unpadded.empty() ? m : unpadded;
  for (int g = 0; g < groups(); ++g) sum += 2.0 * useful[size_t(g)] * n_of(g) * k_of(g);
  return sum;
}

static std::string range_of(const std::vector<int>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *low == *high ? format("%d", *low) : format("%d..%d", *low, *high);
}

std::string Shape::describe() const {
  const int64_t before = std::accumulate(unpadded.begin(), unpadded.end(), int64_t(0));
  const std::string padded =
      unpadded.empty() ? "" : format(" padded from M=%lld", static_cast<long long>(before));
  return format("G=%d M=%lld (%s)%s N=%s K=%s%s", groups(), static_cast<long long>(m_total()),
                range_of(m).c_str(), padded.c_str(), range_of(n).c_str(), range_of(k).c_str(),
                shared_b ? " shared B" : "") +
         (b_stride
              ? format(", B of each %lld elements after the one before", static_cast<long long>(b_stride))
              : "");
}

static std::vector<Region> regions(const std::vector<Group>& groups, Region Group::*matrix) {
  std::vector<Region> all;
  for (const Group& group : groups) all.push_back(group.*matrix);
  return all;
}
std::vector<Region> Layout::a_regions() const { return regions(groups, &Group::a); }
std::vector<Region> Layout::d_regions() const { return regions(groups, &Group::d); }
int Layout::longest_sum() const {
  int longest = 0;
  for (const Group& group : groups) longest = std::max(longest, group.k);
  return longest;
}
std::vector<Region> Layout::b_regions() const {
  if (product == Product::forward && b_group_stride == 0 && groups.size() > 1 &&
      groups[0].b.offset == groups[1].b.offset)
    return {groups[0].b};
  return regions(groups, &Group::b);
}

static Layout offsets_only(const Shape& shape) {
  Layout layout;
  layout.offsets = {0};
  for (int rows : shape.m) layout.offsets.push_back(layout.offsets.back() + rows);
  return layout;
}

// Returns the region of one group's B, dense but for `pad` elements at the end of each row.
static Region region_of_b(int64_t offset, int n, int k, BLayout layout, int pad = 0) {
  if (layout == BLayout::nk) return {offset, n, k, k + pad};
  return {offset, k, n, n + pad};
}

// Puts the scales behind a packed layout whose matrices are there.
static void add_scales(Layout& layout, const Shape& shape, int block) {
  const int64_t blocks = scale_blocks(shape.k_of(0), block);
  const ScaleLayout of_a{shape.m_total(), blocks}, of_b{shape.n_of(0), blocks};
  const ScaleLayout with_spare{std::max(shape.m_total(), shape.rows), blocks};
  const int64_t guard_bytes = ScaleLayout{kGuardRows, blocks}.bytes();
  layout.sfa_start = guard_bytes;
  layout.sfa_bytes = with_spare.bytes() + 2 * guard_bytes;
  layout.sfb_bytes = (shape.shared_b ? 1 : shape.groups()) * of_b.bytes() + guard_bytes;
  for (int g = 0; g < shape.groups(); ++g) {
    Group& group = layout.groups[size_t(g)];
    group.scale_block = block;
    group.sfa = {layout.sfa_start, of_a, layout.offsets[size_t(g)]};
    group.sfb = {shape.shared_b ? 0 : g * of_b.bytes(), of_b, 0};
  }
}

Layout packed_layout(const Shape& shape, BLayout b_layout, BlockFormat scaled, int d_columns) {
  Layout layout = offsets_only(shape);
  const int n = shape.n_of(0), k = shape.k_of(0), d_n = d_columns > 0 ? d_columns : n;
  layout.a_start = int64_t(kGuardRows) * k;
  layout.d_start = int64_t(kGuardRows) * d_n;
  layout.b_group_stride = shape.shared_b ? 0 : std::max(shape.b_stride, int64_t(k) * n);
  for (int g = 0; g < shape.groups(); ++g) {
    const int m = shape.m[size_t(g)];
    const int64_t first_row = kGuardRows + layout.offsets[size_t(g)];
    layout.groups.push_back({m,
                             n,
                             k,
                             {first_row * k, m, k, k},
                             region_of_b(g * layout.b_group_stride, n, k, b_layout),
                             {first_row * d_n, m, d_n, d_n},
                             b_layout});
  }
  // Where nothing is said of the rows in memory, a launch may count the guard rows behind
  // the last group.
  layout.rows = shape.rows < 0 ? shape.m_total() + kGuardRows : shape.rows;
  const int64_t in_memory = std::max(shape.m_total(), shape.rows) + 2 * kGuardRows;
  layout.a_elems = in_memory * k;
  layout.d_elems = in_memory * d_n;
  layout.b_elems = std::max(0, shape.groups() - 1) * layout.b_group_stride + int64_t(k) * n +
                   kGuardRows * region_of_b(0, n, k, b_layout).ld;
  if (scaled != BlockFormat::none) add_scales(layout, shape, block_scaling(scaled).block);
  return layout;
}

Layout weight_gradient_layout(const Shape& shape) {
  Layout layout = offsets_only(shape);
  const int n = shape.n_of(0), k = shape.k_of(0);
  layout.product = Product::weight_gradient;
  layout.a_start = int64_t(kGuardRows) * k;
  layout.b_start = layout.d_start = int64_t(kGuardRows) * n;
  for (int g = 0; g < shape.groups(); ++g) {
    const int rows = shape.m[size_t(g)];
    const int64_t first_row = kGuardRows + layout.offsets[size_t(g)];
    layout.groups.push_back({k,
                             n,
                             rows,
                             {first_row * k, rows, k, k},
                             {first_row * n, rows, n, n},
                             {layout.d_start + int64_t(g) * k * n, k, n, n},
                             BLayout::kn,
                             true});
  }
  layout.rows = shape.rows < 0 ? shape.m_total() + kGuardRows : shape.rows;
  const int64_t in_memory = std::max(shape.m_total(), shape.rows) + 2 * kGuardRows;
  layout.a_elems = in_memory * k;
  layout.b_elems = in_memory * n;
  layout.d_elems = 2 * layout.d_start + int64_t(shape.groups()) * k * n;
  return layout;
}

Layout scattered_layout(const Shape& shape, BLayout b_layout) {
  // 16 bytes: rows stay aligned, and a kernel that takes N for the leading dimension fails.
  constexpr int kPad = 8;
  Layout layout = offsets_only(shape);
  int64_t a = 0, b = 0, d = 0;
  for (int g = 0; g < shape.groups(); ++g) {
    const int m = shape.m[size_t(g)], n = shape.n_of(g), k = shape.k_of(g);
    const int64_t lda = k + kPad, ldd = n + kPad;
    const Region b_region = region_of_b(b, n, k, b_layout, 2 * kPad);
    d += kGuardRows * ldd;
    layout.groups.push_back({m, n, k, {a, m, k, lda}, b_region, {d, m, n, ldd}, b_layout});
    // Each matrix starts at a multiple of 128 elements, so at the alignment that cudaMalloc gives.
    const auto round_up = [](int64_t elems) { return (elems + 127) / 128 * 128; };
    a = round_up(a + (m + 1) * lda);
    b = round_up(b + (b_region.rows + 1) * b_region.ld);
    d = round_up(d + (m + kGuardRows) * ldd);
  }
  layout.a_elems = a;
  layout.b_elems = b;
  layout.d_elems = d;
  return layout;
}

}  // namespace gg
