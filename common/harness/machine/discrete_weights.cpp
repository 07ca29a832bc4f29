// SPDX-License-Identifier: MIT
//
// Places of discrete weights.

#include "common/harness/machine/discrete_weights.h"

#include <algorithm>

namespace gg {
namespace {

constexpr size_t kGuardBytes = 4096;
constexpr size_t kBetweenBytes = 16 + 256;

size_t step_of(size_t each) { return (each + 15) / 16 * 16 + kBetweenBytes; }

}  // namespace

DiscreteWeights::DiscreteWeights(Machine& machine, const Formats& formats, const Layout& layout)
    : machine_(machine), groups_(int64_t(layout.groups.size())) {
  const Group& first = layout.groups[0];
  b_ = room(bytes_of(formats.b, int64_t(first.b.rows) * first.b.ld), "discrete weights",
            "the addresses of weights");
  sfb_ =
      room(size_t(first.sfb.layout.bytes()), "scales of discrete weights", "the addresses of their scales");
}

DiscreteWeights::Copies DiscreteWeights::room(size_t each, const char* what, const char* what_addresses) {
  const auto allocate = [this](size_t bytes, const char* of) {
    return std::shared_ptr<void>(machine_.allocate(bytes, of),
                                 [&machine = machine_](void* memory) { machine.release(memory); });
  };
  Copies copies;
  copies.what = what;
  copies.each = each;
  copies.bytes = kGuardBytes + (size_t(groups_) * step_of(each) + 255) / 256 * 256 + kGuardBytes;
  copies.memory = allocate(copies.bytes, what);
  copies.addresses = allocate(size_t(groups_) * sizeof(void*), what_addresses);
  return copies;
}

void DiscreteWeights::move() {
  ++moves_;
  move(b_);
  move(sfb_);
}

void DiscreteWeights::move(Copies& copies) const {
  std::vector<char*> addresses;
  std::vector<ByteRange> readable;
  copies.places.clear();
  for (int64_t g = 0; g < groups_; ++g) {
    const int64_t place = (groups_ - 1 - g + moves_) % groups_;
    copies.places.push_back(kGuardBytes + size_t(place) * step_of(copies.each) / 32 * 32 + 16);
    addresses.push_back(static_cast<char*>(copies.memory.get()) + copies.places.back());
    readable.push_back({copies.places.back(), copies.places.back() + copies.each});
  }
  std::sort(readable.begin(), readable.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  machine_.set_readable(copies.memory.get(), copies.what, readable);
  machine_.upload(copies.addresses.get(), addresses.data(), addresses.size() * sizeof(char*));
}

void DiscreteWeights::fill(const void* b, const uint8_t* sfb, int unowned) const {
  fill(b_, b, unowned);
  fill(sfb_, sfb, unowned);
}

void DiscreteWeights::fill(const Copies& copies, const void* dense, int unowned) const {
  machine_.fill_bytes(copies.memory.get(), unowned, copies.bytes);
  for (size_t g = 0; g < size_t(groups_); ++g) {
    machine_.copy(static_cast<char*>(copies.memory.get()) + copies.places[g],
                  static_cast<const char*>(dense) + g * copies.each, copies.each);
  }
}

}  // namespace gg
