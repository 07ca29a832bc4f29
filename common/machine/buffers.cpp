// SPDX-License-Identifier: MIT
//
// Allocation and filling of a problem's buffers.

#include "common/machine/buffers.h"

#include <algorithm>

namespace gg {

Layout layout_for(const Setup& setup, const Shape& shape) {
  if (!shape.own_sizes) {
    return packed_layout(shape, setup.b_layout, setup.formats.scaled, setup.epilogue.columns_of_b_per_d());
  }
  GG_REQUIRE(!setup.formats.has_scales(), "%s: groups of their own sizes have no block scales here",
             setup.formats.name().c_str());
  return scattered_layout(shape, setup.b_layout);
}

Layout near_layout(const Setup& setup, const Shape& shape) {
  Shape near = shape;
  near.b_stride = 0;
  return layout_for(setup, near);
}
bool has_far_b(const Layout& layout) {
  return !layout.groups.empty() && layout.b_group_stride > int64_t(layout.groups[0].n) * layout.groups[0].k;
}

Buffers::Memory Buffers::allocate(size_t bytes, const char* what) {
  return Memory(machine_.allocate(bytes, what),
                [&machine = machine_](void* memory) { machine.release(memory); });
}

Buffers::Memory Buffers::reserve(size_t bytes, const char* what) {
  return Memory(machine_.reserve(bytes, what),
                [&machine = machine_](void* memory) { machine.release(memory); });
}

// At least this much, in double, where no product overflows.
static double least_bytes(const Setup& setup, const Shape& shape) {
  double bytes = 0;
  for (int g = 0; g < shape.groups(); ++g) {
    const double m = shape.m[size_t(g)], n = shape.n_of(g), k = shape.k_of(g);
    bytes += (m * k * format_info(setup.formats.a).bits + m * n * format_info(setup.formats.d).bits) / 8;
    if (!shape.shared_b || g == 0) bytes += k * n * format_info(setup.formats.b).bits / 8;
  }
  return bytes;
}

Buffers::Buffers(Machine& machine, const Setup& setup, const Shape& shape, const Shape* other)
    : machine_(machine), setup_(setup) {
  constexpr double kCountable = 1e18;  // below this all sizes fit int64_t, guard rows included
  for (const Format each : {setup.formats.a, setup.formats.b}) {  // rows of A and B are whole bytes
    GG_REQUIRE(format_info(each).bits >= 8 || (shape.k_of(0) % 2 == 0 && setup.b_layout == BLayout::nk),
               "K=%d: %s packs two elements along K into a byte: K must be even and B [G,N,K]", shape.k_of(0),
               format_info(each).name);
  }
  double needed = std::max(least_bytes(setup, shape), other ? least_bytes(setup, *other) : 0);
  for (const Shape* each : {&shape, other}) {
    if (!each || needed > kCountable) continue;
    const Layout layout = layout_for(setup, *each);
    a_bytes_ = std::max(a_bytes_, bytes_of(setup.formats.a, layout.a_elems));
    b_bytes_ = std::max(b_bytes_, bytes_of(setup.formats.b, layout.b_elems));
    d_bytes_ = std::max(d_bytes_, bytes_of(setup.formats.d, layout.d_elems));
    sfa_bytes_ = std::max(sfa_bytes_, size_t(layout.sfa_bytes));
    sfb_bytes_ = std::max(sfb_bytes_, size_t(layout.sfb_bytes));
  }
  const bool far = needed <= kCountable && machine.reserves() && has_far_b(layout_for(setup, shape));
  needed = std::max(needed, double(bytes() - (far ? b_bytes_ : 0)));
  if (const size_t free = machine_.free_bytes(); needed > double(free)) {
    throw Error(
        Exit::no_memory,
        format("%s needs %.0f bytes for A, B and D, %zu are free: use fewer rows, or a smaller N or K",
               shape.describe().c_str(), needed, free));
  }
  a_ = allocate(a_bytes_, "A");
  b_ = far ? reserve(b_bytes_, "B") : allocate(b_bytes_, "B");
  d_ = allocate(d_bytes_, "D");
  if (setup.formats.has_scales()) {
    sfa_ = allocate(sfa_bytes_, "the scales of A");
    sfb_ = allocate(sfb_bytes_, "the scales of B");
  }
  const size_t groups = size_t(shape.groups());
  offsets_ = allocate((groups + 1) * (setup.wide_offsets ? 8 : 4), "the offsets");
  pointers_ = allocate(3 * groups * sizeof(void*), "the pointer arrays");
  sizes_ = allocate(6 * groups * sizeof(int), "the size arrays");
  epilogue_ = std::make_unique<EpilogueBuffers>(machine_, setup_, shape);
  set_shape(shape);
}

void Buffers::set_shape(const Shape& shape) {
  shape_ = shape;
  layout_ = layout_for(setup_, shape);
  const size_t groups = size_t(shape.groups());
  host_offsets_.assign(layout_.offsets.begin(), layout_.offsets.end());
  if (setup_.wide_offsets) {
    machine_.upload(offsets_.get(), layout_.offsets.data(), (groups + 1) * sizeof(int64_t));
  } else {
    machine_.upload(offsets_.get(), host_offsets_.data(), (groups + 1) * sizeof(int32_t));
  }
  std::vector<char*> pointers(3 * groups);
  std::vector<int> sizes(6 * groups);
  for (size_t g = 0; g < groups; ++g) {
    const Group& group = layout_.groups[g];
    pointers[g] = static_cast<char*>(a()) + bytes_of(setup_.formats.a, group.a.offset);
    pointers[groups + g] = static_cast<char*>(b()) + bytes_of(setup_.formats.b, group.b.offset);
    pointers[2 * groups + g] = static_cast<char*>(d()) + bytes_of(setup_.formats.d, group.d.offset);
    const int values[6] = {group.m, group.n, group.k, int(group.a.ld), int(group.b.ld), int(group.d.ld)};
    std::copy(values, values + 3, &sizes[3 * g]);
    std::copy(values + 3, values + 6, &sizes[3 * groups + 3 * g]);
  }
  machine_.upload(pointers_.get(), pointers.data(), pointers.size() * sizeof(char*));
  machine_.upload(sizes_.get(), sizes.data(), sizes.size() * sizeof(int));

  Problem& p = problem_;
  p.a_ = static_cast<char*>(a()) + bytes_of(setup_.formats.a, layout_.a_start);
  p.b_ = b();
  p.d_ = static_cast<char*>(d()) + bytes_of(setup_.formats.d, layout_.d_start);
  if (sfa_) p.sfa_ = sfa() + layout_.sfa_start;
  p.sfb_ = sfb();
  p.offsets_ = offsets_.get();
  p.a_ptrs_ = pointers_.get();
  p.b_ptrs_ = static_cast<char**>(pointers_.get()) + groups;
  p.d_ptrs_ = static_cast<char**>(pointers_.get()) + 2 * groups;
  p.sizes_ = static_cast<int*>(sizes_.get());
  p.leading_dims_ = static_cast<int*>(sizes_.get()) + 3 * groups;
  p.host_offsets_ = setup_.host_offsets ? host_offsets_.data() : nullptr;
  p.layout_ = &layout_;
  p.groups_ = int(groups);
  p.n_ = shape.n_of(0);
  p.k_ = shape.k_of(0);
  p.blocks_ = setup_.blocks;
  p.tile_ = setup_.tile;
  p.tile_k_ = setup_.tile_k;
  p.b_layout_ = setup_.b_layout;
  p.own_sizes_ = shape.own_sizes;
  p.ideas_off_ = &setup_.ideas_off;
  p.b_group_stride_ = layout_.b_group_stride;
  p.wide_offsets_ = setup_.wide_offsets;
  p.formats_ = setup_.formats;
  epilogue_->set_layout(shape_, layout_, p);
}

Problem Buffers::reading(const Buffers& from) const {
  Problem problem = problem_;
  problem.a_ = from.problem_.d_;
  return problem;
}

void Buffers::fill_operands(const Fill& fill, const std::vector<bool>& nan_groups, int unowned) {
  machine_.fill_bytes(a(), unowned, a_bytes_);
  fill_unowned_b(unowned);
  const auto keep = [&](std::vector<Region> regions) {
    if (nan_groups.empty() || regions.size() != nan_groups.size()) return regions;
    std::vector<Region> kept;
    for (size_t g = 0; g < regions.size(); ++g) {
      if (!nan_groups[g]) kept.push_back(regions[g]);
    }
    return kept;
  };
  Fill a_fill = fill, b_fill = fill;
  a_fill.stream = 1;
  b_fill.stream = 2;
  a_fill.range = std::min(fill.range, whole_numbers(setup_.formats.a));
  b_fill.range = std::min(fill.range, whole_numbers(setup_.formats.b));
  machine_.fill(a(), setup_.formats.a, keep(layout_.a_regions()), a_fill);
  machine_.fill(b(), setup_.formats.b, keep(layout_.b_regions()), b_fill);
  if (setup_.formats.has_scales()) fill_scales(a_fill, b_fill, nan_groups, unowned);
  fill_epilogue(random_operands(setup_, shape_, fill, nan_groups), unowned);
}

// Memory between far groups is touched by nobody.
void Buffers::fill_unowned_b(int unowned) {
  if (!has_far_b(layout_)) return machine_.fill_bytes(b(), unowned, b_bytes_);
  for (const Region& region : layout_.b_regions()) {
    machine_.fill_bytes(static_cast<char*>(b()) + bytes_of(setup_.formats.b, region.offset), unowned,
                        bytes_of(setup_.formats.b, (region.rows + kGuardRows) * region.ld));
  }
}

void Buffers::fill_epilogue(const EpilogueOperands& operands, int unowned) const {
  epilogue_->fill(operands, b(), sfb(), unowned);
}

void Buffers::poison(int byte) const {
  machine_.fill_bytes(d(), byte, d_bytes_);
  epilogue_->poison(byte);
}

// On the host: there is one scale to 16 or 32 elements.
void Buffers::fill_scales(const Fill& a_fill, const Fill& b_fill, const std::vector<bool>& nan_groups,
                          int unowned) {
  const Format format = setup_.formats.scaling().scale;
  const ScaleSpans spans = scale_spans(shape_.k_of(0), a_fill.range, b_fill.range);
  const std::vector<Group>& groups = layout_.groups;
  std::vector<uint8_t> a_image(sfa_bytes_, uint8_t(unowned)), b_image(sfb_bytes_, uint8_t(unowned));
  const auto fill = [&](std::vector<uint8_t>& image, const ScaleRegion& region, int rows, Fill with,
                        int span) {
    for (int row = 0; row < rows; ++row) {
      for (int64_t block = 0; block < region.layout.blocks; ++block) {
        const int64_t at = region.at(row, block);
        image[size_t(at)] = uint8_t(random_scale(with, format, span, uint64_t(at)));
      }
    }
  };
  const auto clear = [](std::vector<uint8_t>& image, const ScaleRegion& region) {  // padding of owned rows
    std::fill_n(image.begin() + region.offset, region.layout.bytes(), uint8_t(0));
  };
  if (!groups.empty()) clear(a_image, groups[0].sfa);
  for (size_t g = 0; g < groups.size(); ++g) {
    const bool is_nan = g < nan_groups.size() && nan_groups[g];
    Fill a_with = a_fill, b_with = b_fill;
    a_with.stream = 3;
    b_with.stream = 4;
    if (is_nan) a_with.kind = b_with.kind = Fill::Kind::nan;
    fill(a_image, groups[g].sfa, groups[g].m, a_with, spans.a);
    if (g > 0 && shape_.shared_b) continue;
    clear(b_image, groups[g].sfb);
    fill(b_image, groups[g].sfb, groups[g].n, b_with, spans.b);
  }
  machine_.upload(sfa(), a_image.data(), sfa_bytes_);
  machine_.upload(sfb(), b_image.data(), sfb_bytes_);
}

int whole_numbers(Format format) {
  constexpr int kMost = 16;
  if (format == Format::e2m1) return 6;  // what would be 5 becomes 4
  return std::min(kMost, 1 << (format_info(format).mantissa_bits + 1));
}

ScaleSpans scale_spans(int k, int range_a, int range_b) {
  constexpr int kMostBits = 4;  // more would leave the range of an f16 output
  const int used = exponent_of(double(k) * range_a * range_b) + 1;  // the sum of magnitudes is below 2^used
  const int free = std::clamp(23 - used, 0, kMostBits);
  return {free / 2, free - free / 2};
}

}  // namespace gg
