// SPDX-License-Identifier: MIT
//
// Allocation and filling of a problem's buffers.

#include "common/harness/machine/buffers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gg {

Layout layout_for(const Setup& setup, const Shape& shape) {
  if (setup.product == Product::weight_gradient) return weight_gradient_layout(shape);
  if (!shape.own_sizes) {
    return packed_layout(shape, setup.request.b_layout, setup.request.formats.scaled,
                         setup.request.epilogue.columns_of_d(shape.n_of(0)));
  }
  GG_REQUIRE(!setup.request.formats.has_scales(), "%s: groups of their own sizes have no block scales here",
             setup.request.formats.name());
  return scattered_layout(shape, setup.request.b_layout);
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
    const Formats& formats = setup.request.formats;
    const bool is_gradient = setup.product == Product::weight_gradient;
    const Format of_rows = is_gradient ? formats.b : formats.d,
                 of_group = is_gradient ? formats.d : formats.b;
    bytes += (m * k * format_info(formats.a).bits + m * n * format_info(of_rows).bits) / 8;
    if (!shape.shared_b || g == 0) bytes += k * n * format_info(of_group).bits / 8;
  }
  return bytes;
}

// Throws where A, B, D and their scales do not fit; `untouched` bytes of them need no memory.
void Buffers::require_room(const Shape& shape, const Shape* other, size_t untouched) {
  size_t sum = 0;
  for (const TensorMemory& tensor : tensors_) {
    if (has_tensor(tensor.spec.name, setup_.request.formats, Epilogue())) sum += tensor.bytes;
  }
  double needed = std::max(least_bytes(setup_, shape), other ? least_bytes(setup_, *other) : 0);
  needed = std::max(needed, double(sum - untouched));
  if (const size_t free = machine_.free_bytes(); needed > double(free)) {
    throw Error(
        Exit::no_memory,
        format("%s needs %.0f bytes for A, B and D, %zu are free: use fewer rows, or a smaller N or K",
               shape.describe().c_str(), needed, free));
  }
}

std::vector<TensorSpec> Buffers::specs_of(const Layout& layout) const {
  std::vector<TensorSpec> specs = tensors_of(setup_.request.formats, setup_.request.epilogue, layout);
  for (TensorSpec& spec : specs) {
    if (spec.name == Tensor::d && setup_.request.accumulate) spec.start_fill = start_of_d();
  }
  return specs;
}

void Buffers::measure(const Shape& shape) {
  for (const TensorSpec& spec : specs_of(layout_for(setup_, shape))) {
    TensorMemory& tensor = tensors_[size_t(spec.name)];
    tensor.spec = spec;
    tensor.bytes = std::max(tensor.bytes, spec.bytes());
  }
}

Buffers::Buffers(Machine& machine, const Setup& setup, const Shape& shape, const Shape* other)
    : machine_(machine), setup_(setup) {
  constexpr double kCountable = 1e18;  // below this all sizes fit int64_t, guard rows included
  for (const Format each :
       {setup.request.formats.a, setup.request.formats.b}) {  // rows of A and B are whole bytes
    GG_REQUIRE(
        format_info(each).bits >= 8 || (shape.k_of(0) % 2 == 0 && setup.request.b_layout == BLayout::nk),
        "K=%d: %s packs two elements along K into a byte: K must be even and B [G,N,K]", shape.k_of(0),
        format_info(each).name);
  }
  const bool countable =
      least_bytes(setup, shape) <= kCountable && (!other || least_bytes(setup, *other) <= kCountable);
  if (countable && other) measure(*other);
  if (countable) measure(shape);
  const bool far = countable && machine.reserves() && has_far_b(layout_for(setup, shape));
  require_room(shape, other, far ? b_bytes() : 0);
  for (TensorMemory& tensor : tensors_) {
    if (tensor.bytes == 0) continue;
    const Tensor name = tensor.spec.name;
    tensor.memory = far && name == Tensor::b ? reserve(tensor.bytes, tensor_name(name))
                                             : allocate(tensor.bytes, tensor_name(name));
    if (is_output(name)) outputs_.push_back(name);
  }
  const size_t groups = size_t(shape.groups());
  offsets_ = allocate((groups + 1) * (setup.request.wide_offsets ? 8 : 4), "the offsets");
  pointers_ = allocate(3 * groups * sizeof(void*), "the pointer arrays");
  sizes_ = allocate(6 * groups * sizeof(int), "the size arrays");
  workspace_bytes_ = std::max(workspace_bytes(shape), other ? workspace_bytes(*other) : 0);
  if (workspace_bytes_ > 0) workspace_ = allocate(workspace_bytes_, "the workspace");
  if (setup.request.weights == Weights::discrete)
    discrete_ = std::make_unique<DiscreteWeights>(machine_, setup.request.formats, layout_for(setup, shape));
  set_shape(shape);
}

size_t Buffers::workspace_bytes(const Shape& shape) const {
  if (!setup_.workspace_bytes) return 0;
  return setup_.workspace_bytes(layout_for(setup_, shape).rows, shape.groups(), shape.n_of(0));
}

size_t Buffers::bytes() const {
  size_t sum = (discrete_ ? discrete_->bytes() : 0) + workspace_bytes_;
  for (const TensorMemory& tensor : tensors_) sum += tensor.bytes;
  return sum;
}

void Buffers::set_shape(const Shape& shape) {
  shape_ = shape;
  layout_ = layout_for(setup_, shape);
  for (const TensorSpec& spec : specs_of(layout_)) tensors_[size_t(spec.name)].spec = spec;
  for (const TensorMemory& tensor : tensors_) {
    if (tensor.memory)
      machine_.set_readable(tensor.memory.get(), tensor_name(tensor.spec.name), tensor.spec.readable());
  }
  upload_arrays();
  if (discrete_) discrete_->move();
  show();
}

// Offsets, and each group's addresses and sizes.
void Buffers::upload_arrays() {
  const size_t groups = layout_.groups.size();
  host_offsets_.assign(layout_.offsets.begin(), layout_.offsets.end());
  if (setup_.request.wide_offsets) {
    machine_.upload(offsets_.get(), layout_.offsets.data(), (groups + 1) * sizeof(int64_t));
  } else {
    machine_.upload(offsets_.get(), host_offsets_.data(), (groups + 1) * sizeof(int32_t));
  }
  std::vector<char*> pointers(3 * groups);
  std::vector<int> sizes(6 * groups);
  for (size_t g = 0; g < groups; ++g) {
    const Group& group = layout_.groups[g];
    pointers[g] = static_cast<char*>(a()) + bytes_of(setup_.request.formats.a, group.a.offset);
    pointers[groups + g] = static_cast<char*>(b()) + bytes_of(setup_.request.formats.b, group.b.offset);
    pointers[2 * groups + g] = static_cast<char*>(d()) + bytes_of(setup_.request.formats.d, group.d.offset);
    const int values[6] = {group.m, group.n, group.k, int(group.a.ld), int(group.b.ld), int(group.d.ld)};
    std::copy(values, values + 3, &sizes[3 * g]);
    std::copy(values + 3, values + 6, &sizes[3 * groups + 3 * g]);
  }
  machine_.upload(pointers_.get(), pointers.data(), pointers.size() * sizeof(char*));
  machine_.upload(sizes_.get(), sizes.data(), sizes.size() * sizeof(int));
}

// The rows of every group where all have as many, else 0.
static int rows_each(const std::vector<Group>& groups) {
  const auto rows = [](const Group& group) { return group.a.rows; };
  const bool equal = std::all_of(groups.begin(), groups.end(),
                                 [&](const Group& group) { return rows(group) == rows(groups.front()); });
  return equal && !groups.empty() ? rows(groups.front()) : 0;
}

// Fills in the problem that a launch sees.
void Buffers::show() {
  const size_t groups = layout_.groups.size();
  const auto floats = [this](Tensor tensor) { return static_cast<float*>(of(tensor).first()); };
  const auto codes = [this](Tensor tensor) { return static_cast<uint8_t*>(of(tensor).first()); };
  ProblemParts p;
  p.a = of(Tensor::a).first();
  p.b = discrete_ ? nullptr : of(Tensor::b).first();
  p.d = of(Tensor::d).first();
  p.offsets = {offsets_.get(), setup_.request.wide_offsets};
  p.host_offsets = setup_.host_offsets ? host_offsets_.data() : nullptr;
  p.layout = &layout_;
  p.request = &setup_.request;
  p.groups = int(groups);
  p.rows_each = rows_each(layout_.groups);
  p.b_group_stride = layout_.b_group_stride;
  p.rows = layout_.rows;
  p.m_total = layout_.offsets.back();
  p.formats = setup_.request.formats;
  p.b_layout = setup_.request.b_layout;
  p.blocks = setup_.request.blocks;
  p.accumulates = setup_.request.accumulate;
  p.dynamic_schedule = setup_.request.scheduler == Scheduler::dynamic;
  p.ideas_off = &setup_.request.ideas_off;
  p.tile = setup_.request.tile;
  p.n = shape_.n_of(0);
  p.k = shape_.k_of(0);
  p.workspace = workspace_.get();
  const char* const* pointers = static_cast<char**>(pointers_.get());
  const int* const sizes = static_cast<int*>(sizes_.get());
  p.own = shape_.own_sizes ? OwnGroups{.a = pointers,
                                       .b = pointers + groups,
                                       .d = pointers + 2 * groups,
                                       .sizes = sizes,
                                       .leading_dims = sizes + 3 * groups}
                           : OwnGroups{};
  p.scaled = {.sfa = codes(Tensor::sfa), .sfb = discrete_ ? nullptr : codes(Tensor::sfb)};
  if (discrete_) {
    p.discrete = {.b = discrete_->b_addresses(),
                  .sfb_ptrs = static_cast<const uint8_t* const*>(discrete_->sfb_addresses())};
  }
  p.epilogue = {.alpha = floats(Tensor::alpha),
                .prob = floats(Tensor::prob),
                .bias = of(Tensor::bias).first(),
                .norm_const = floats(Tensor::norm_const),
                .hadamard = static_cast<const bf16*>(of(Tensor::hadamard).first()),
                .amax = floats(Tensor::amax),
                .d_col = of(Tensor::d_col).first(),
                .sfd_row = codes(Tensor::sfd_row),
                .sfd_col = codes(Tensor::sfd_col),
                .c = of(Tensor::c).first(),
                .saved_c = of(Tensor::saved_c).first(),
                .dprob = floats(Tensor::dprob),
                .dbias = floats(Tensor::dbias),
                .bias_format = setup_.request.epilogue.bias_format,
                .discrete_col_sfd = setup_.request.epilogue.discrete_col_sfd,
                .activation = setup_.request.epilogue.activation,
                .butterfly = setup_.request.epilogue.butterfly};
  problem_ = Problem(p);
}

Problem Buffers::reading(const Buffers& from) const {
  ProblemParts parts = problem_.parts();
  parts.a = from.problem_.d<void>();
  return Problem(parts);
}

void Buffers::fill_operands(const Fill& fill, const std::vector<bool>& nan_groups, int unowned) {
  machine_.fill_bytes(a(), unowned, a_bytes());
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
  a_fill.range = std::min(fill.range, whole_numbers(setup_.request.formats.a));
  b_fill.range = std::min(fill.range, whole_numbers(setup_.request.formats.b));
  machine_.fill(a(), setup_.request.formats.a, keep(of(Tensor::a).spec.owned), a_fill);
  machine_.fill(b(), setup_.request.formats.b, keep(of(Tensor::b).spec.owned), b_fill);
  if (sfa()) {  // on the host: there is one scale to 16 or 32 elements
    ScaleImages scales = random_scales(setup_.request.formats, layout_, a_fill, b_fill, nan_groups, unowned);
    scales.a.resize(sfa_bytes(), uint8_t(unowned));
    scales.b.resize(sfb_bytes(), uint8_t(unowned));
    machine_.upload(sfa(), scales.a.data(), scales.a.size());
    machine_.upload(sfb(), scales.b.data(), scales.b.size());
  }
  fill_epilogue(random_operands(setup_.request.formats, setup_.request.epilogue, shape_, fill, nan_groups),
                unowned);
}

// Memory between far groups is touched by nobody.
void Buffers::fill_unowned_b(int unowned) {
  if (!has_far_b(layout_)) return machine_.fill_bytes(b(), unowned, b_bytes());
  for (const Region& region : layout_.b_regions()) {
    machine_.fill_bytes(static_cast<char*>(b()) + bytes_of(setup_.request.formats.b, region.offset), unowned,
                        bytes_of(setup_.request.formats.b, (region.rows + kGuardRows) * region.ld));
  }
}

void Buffers::fill_epilogue(const EpilogueOperands& operands, int unowned) {
  epilogue_operands_ = operands;
  put(Tensor::alpha, operands.alpha.data(), unowned);
  put(Tensor::prob, operands.prob.data(), unowned);
  put(Tensor::bias, operands.bias.data(), unowned);
  put(Tensor::hadamard, operands.hadamard.data(), unowned);
  put(Tensor::saved_c, operands.saved_c.data(), unowned);
  put(Tensor::norm_const, &setup_.request.epilogue.norm_const, unowned);
  if (discrete_) discrete_->fill(b(), sfb(), unowned);
}

void Buffers::put(Tensor operand, const void* dense, int unowned) {
  const TensorMemory& tensor = of(operand);
  if (!tensor.memory) return;
  std::vector<char> image(tensor.bytes, char(unowned));
  const char* from = static_cast<const char*>(dense);
  for (const Region& region : tensor.spec.owned) {
    const size_t row_bytes = bytes_of(tensor.spec.format, region.cols);
    for (int64_t row = 0; row < region.rows; ++row) {
      if (row_bytes)
        std::memcpy(&image[bytes_of(tensor.spec.format, region.offset + row * region.ld)], from, row_bytes);
      from += row_bytes;
    }
  }
  machine_.upload(tensor.memory.get(), image.data(), image.size());
}

void Buffers::poison(int byte) const {
  for (const Tensor output : outputs_) machine_.fill_bytes(of(output).memory.get(), byte, of(output).bytes);
  if (workspace_) machine_.fill_bytes(workspace_.get(), byte, workspace_bytes_);
  set_start_values();
}

void Buffers::set_start_values() const {
  for (const Tensor output : outputs_) {
    const TensorSpec& spec = of(output).spec;
    if (spec.start_fill) machine_.fill(of(output).memory.get(), spec.format, spec.owned, *spec.start_fill);
    if (!spec.start_value) continue;
    const std::vector<float> start(size_t(spec.size()), *spec.start_value);
    machine_.upload(of(output).first(), start.data(), start.size() * sizeof(float));
  }
}

}  // namespace gg
