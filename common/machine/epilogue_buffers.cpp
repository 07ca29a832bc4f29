// SPDX-License-Identifier: MIT
//
// Allocation and filling of an epilogue's tensors.

#include "common/machine/epilogue_buffers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "common/machine/buffers.h"

namespace gg {
namespace {

constexpr size_t kGuardBytes = 256;        // around small tensors; addresses stay aligned
constexpr size_t kScaleGuardBytes = 4096;  // eight atoms
constexpr int kHadamardSide = 16;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

const char* output_name(Output output) {
  constexpr const char* kNames[kOutputs] = {"D", "D_col", "SFD_row", "SFD_col", "C", "amax"};
  return kNames[size_t(output)];
}

TensorMemory EpilogueBuffers::tensor(size_t size, size_t guard, const char* what) {
  TensorMemory tensor;
  tensor.bytes = guard + round_up(size, 256) + guard;
  tensor.start = guard;
  tensor.size = size;
  tensor.memory = {machine_.allocate(tensor.bytes, what),
                   [&machine = machine_](void* memory) { machine.release(memory); }};
  return tensor;
}

EpilogueBuffers::EpilogueBuffers(Machine& machine, const Setup& setup, const Shape& shape)
    : machine_(machine), setup_(setup) {
  const Epilogue& e = setup.epilogue;
  if (!e.has_operands()) return;
  const Layout layout = layout_for(setup, shape);
  groups_ = shape.groups();
  n_ = shape.n_of(0);
  const Group& first = layout.groups[0];
  const auto guard_of = [&](Format format) { return round_up(bytes_of(format, kGuardRows * n_), 256); };
  const Format d = setup.formats.d;
  alpha_ = tensor(size_t(groups_) * 4, kGuardBytes, "alpha");
  prob_ = tensor(size_t(layout.rows) * 4, kGuardRows * 4, "prob");
  if (e.bias) bias_ = tensor(bytes_of(e.bias_format, groups_ * n_), kGuardBytes, "the bias");
  if (e.amax) outputs_[size_t(Output::amax)] = tensor(size_t(groups_) * 4, kGuardBytes, "amax");
  if (e.has_c()) {
    outputs_[size_t(Output::c)] =
        tensor(bytes_of(setup.formats.c, layout.rows * n_), guard_of(setup.formats.c), "C");
  }
  if (e.op == Operator::glu_hadamard) hadamard_ = tensor(512, kGuardBytes, "the Hadamard matrix");
  if (e.sfd_row || e.sfd_col) norm_const_ = tensor(4, kGuardBytes, "norm_const");
  if (e.sfd_row) {
    const ScaleLayout scales{layout.rows, scale_blocks(n_, 32)};
    outputs_[size_t(Output::sfd_row)] = tensor(size_t(scales.bytes()), kScaleGuardBytes, "SFD_row");
  }
  if (e.sfd_col) {
    const ScaleLayout scales{n_, scale_blocks(layout.rows, 32)};
    outputs_[size_t(Output::sfd_col)] = tensor(size_t(scales.bytes()), kScaleGuardBytes, "SFD_col");
    outputs_[size_t(Output::d_col)] = tensor(bytes_of(d, layout.rows * n_), guard_of(d), "D_col");
  }
  if (!e.discrete) return;
  b_each_ = int64_t(bytes_of(setup.formats.b, int64_t(first.b.rows) * first.b.ld));
  sfb_each_ = first.sfb.layout.bytes();
  // Addresses are multiples of 16 and of nothing more.
  const auto places = [&](int64_t each) { return size_t(groups_) * (round_up(size_t(each), 16) + 16 + 256); };
  b_ = tensor(places(b_each_), kScaleGuardBytes, "discrete weights");
  sfb_ = tensor(places(sfb_each_), kScaleGuardBytes, "scales of discrete weights");
  b_pointers_ = tensor(size_t(groups_) * sizeof(void*), 0, "the addresses of weights");
  sfb_pointers_ = tensor(size_t(groups_) * sizeof(void*), 0, "the addresses of their scales");
}

void EpilogueBuffers::set_layout(const Shape& shape, const Layout& layout, Problem& problem) {
  const Epilogue& e = setup_.epilogue;
  problem.epilogue_ = e;
  if (!e.has_operands()) return;
  if (shape.groups() != groups_ || shape.n_of(0) != n_ || size_t(layout.rows) * 4 != prob_.size) {
    throw Error(Exit::device_error,
                "an epilogue's buffers were given a shape of other rows, groups or columns");
  }
  owned_rows_ = layout.offsets.back();
  const auto floats = [](const TensorMemory& tensor) { return static_cast<float*>(tensor.first()); };
  const auto bytes = [this](Output which) { return static_cast<uint8_t*>(output(which).first()); };
  problem.alpha_ = floats(alpha_);
  problem.prob_ = floats(prob_);
  problem.bias_ = bias_.first();
  problem.norm_const_ = floats(norm_const_);
  problem.hadamard_ = static_cast<const bf16*>(hadamard_.first());
  problem.amax_ = floats(output(Output::amax));
  problem.c_ = output(Output::c).first();
  problem.d_col_ = output(Output::d_col).first();
  problem.sfd_row_ = bytes(Output::sfd_row);
  problem.sfd_col_ = bytes(Output::sfd_col);
  if (!e.discrete) return;
  problem.b_ = nullptr;
  problem.sfb_ = nullptr;
  problem.b_ptrs_ = b_pointers_.first();
  problem.sfb_ptrs_ = sfb_pointers_.first();
  // In no order of the groups, and in another one each time.
  ++placed_;
  const auto place = [&](const TensorMemory& tensor, const TensorMemory& pointers, int64_t each,
                         std::vector<size_t>& places) {
    const size_t step = round_up(size_t(each), 16) + 16 + 256;
    std::vector<char*> addresses;
    places.clear();
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t place = (groups_ - 1 - g + placed_) % groups_;
      places.push_back(tensor.start + size_t(place) * step / 32 * 32 + 16);
      addresses.push_back(static_cast<char*>(tensor.memory.get()) + places.back());
    }
    machine_.upload(pointers.first(), addresses.data(), addresses.size() * sizeof(char*));
  };
  place(b_, b_pointers_, b_each_, b_places_);
  place(sfb_, sfb_pointers_, sfb_each_, sfb_places_);
}

void EpilogueBuffers::upload(const TensorMemory& tensor, const void* from, size_t size, int unowned) {
  if (!tensor.memory) return;
  machine_.fill_bytes(tensor.memory.get(), unowned, tensor.bytes);
  if (size) machine_.upload(tensor.first(), from, size);
}

void EpilogueBuffers::fill(const EpilogueOperands& operands, const void* b, const uint8_t* sfb, int unowned) {
  const Epilogue& e = setup_.epilogue;
  if (!e.has_operands()) return;
  operands_ = operands;
  upload(alpha_, operands.alpha.data(), operands.alpha.size() * 4, unowned);
  upload(prob_, operands.prob.data(), std::min(operands.prob.size(), size_t(owned_rows_)) * 4, unowned);
  upload(bias_, operands.bias.data(), operands.bias.size(), unowned);
  upload(hadamard_, operands.hadamard.data(), operands.hadamard.size() * 2, unowned);
  upload(norm_const_, &e.norm_const, 4, unowned);
  if (!e.discrete) return;
  machine_.fill_bytes(b_.memory.get(), unowned, b_.bytes);
  machine_.fill_bytes(sfb_.memory.get(), unowned, sfb_.bytes);
  for (int64_t g = 0; g < groups_; ++g) {
    machine_.copy(static_cast<char*>(b_.memory.get()) + b_places_[size_t(g)],
                  static_cast<const char*>(b) + g * b_each_, size_t(b_each_));
    machine_.copy(static_cast<char*>(sfb_.memory.get()) + sfb_places_[size_t(g)], sfb + g * sfb_each_,
                  size_t(sfb_each_));
  }
}

void EpilogueBuffers::poison(int byte) {
  for (const TensorMemory& tensor : outputs_) {
    if (tensor.memory) machine_.fill_bytes(tensor.memory.get(), byte, tensor.bytes);
  }
  reset_amax();
}

void EpilogueBuffers::reset_amax() {
  const TensorMemory& amax = output(Output::amax);
  if (!amax.memory) return;
  const std::vector<float> start(size_t(groups_), -INFINITY);
  machine_.upload(amax.first(), start.data(), amax.size);
}

size_t EpilogueBuffers::bytes() const {
  size_t sum = 0;
  for (const TensorMemory& each : outputs_) sum += each.bytes;
  for (const TensorMemory* each : {&alpha_, &prob_, &bias_, &norm_const_, &hadamard_, &b_, &sfb_})
    sum += each->bytes;
  return sum;
}

std::vector<uint16_t> sylvester_matrix() {
  std::vector<uint16_t> codes;
  for (unsigned i = 0; i < kHadamardSide; ++i) {
    for (unsigned j = 0; j < kHadamardSide; ++j) {
      codes.push_back(uint16_t(encode(Format::bf16, std::popcount(i & j) % 2 ? -1.0 : 1.0)));
    }
  }
  return codes;
}

// About the standard deviation of the products, as a power of two.
static float unit_of_products(const Setup& setup, const Shape& shape, bool integers) {
  const int range = std::min({16, whole_numbers(setup.formats.a), whole_numbers(setup.formats.b)});
  const double of_one = integers ? range * range / 3.0 : 3;
  return float(two_to_the(exponent_of(of_one * std::sqrt(double(shape.k_of(0))))));
}

EpilogueOperands random_operands(const Setup& setup, const Shape& shape, const Fill& fill,
                                 const std::vector<bool>& nan_groups) {
  const Epilogue& e = setup.epilogue;
  EpilogueOperands operands;
  if (!e.has_operands()) return operands;
  const bool integers = fill.kind == Fill::Kind::integers;
  const auto value = [&](uint64_t stream, Format format, size_t group, size_t i) {
    if (group < nan_groups.size() && nan_groups[group]) return NAN;
    if (integers) return float(int(hash(fill.seed, stream, i) % 4) - 2);
    return decode(format, random_code({fill.kind, 0, fill.seed, stream}, format, i, normal_quantiles()));
  };
  // Neighbours differ, and of four groups only one has alpha 0.
  const uint64_t turn = hash(fill.seed, 5, 0);
  // A bias weighs as much as the products; a gated epilogue has a few units, where activations bend.
  const float unit = unit_of_products(setup, shape, integers);
  const float of_alpha = e.has_c() ? 2 / unit : 1, of_bias = e.has_c() ? 1 : unit;
  for (size_t g = 0; g < size_t(shape.groups()); ++g) {
    const float whole = float(int((turn + g) % 4) - 2), any = value(5, Format::f32, g, g);
    operands.alpha.push_back((integers && any == any ? whole : any) * of_alpha);
    for (int r = 0; r < shape.m[g]; ++r)
      operands.prob.push_back(value(6, Format::f32, g, operands.prob.size()));
  }
  if (e.bias) {
    const size_t n = size_t(shape.n_of(0)), count = size_t(shape.groups()) * n;
    operands.bias.resize(bytes_of(e.bias_format, int64_t(count)));
    for (size_t i = 0; i < count; ++i) {
      store_code(operands.bias.data(), e.bias_format, int64_t(i),
                 encode(e.bias_format, double(value(7, e.bias_format, i / n, i) * of_bias)));
    }
  }
  if (e.op == Operator::glu_hadamard) {
    operands.hadamard = sylvester_matrix();
    for (size_t i = 0; i < operands.hadamard.size() && !integers && !e.butterfly; ++i)
      operands.hadamard[i] =
          uint16_t(random_code({fill.kind, 0, fill.seed, 0}, Format::bf16, i, normal_quantiles()));
  }
  return operands;
}

}  // namespace gg
