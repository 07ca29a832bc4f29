// SPDX-License-Identifier: MIT
//
// Weights wherever they are: copies of each group's B and of its scales at addresses of their own,
// surrounded by NaN, and the arrays of these addresses that a launch reads.

#pragma once

#include <memory>
#include <vector>

#include "common/harness/machine/machine.h"

namespace gg {

class DiscreteWeights {
 public:
  // Room for the weights of all groups of a packed layout. Throws gg::Error (no memory).
  DiscreteWeights(Machine& machine, const Formats& formats, const Layout& layout);

  // Gives every group's weights another place, in no order of the groups, and writes the addresses.
  // They are multiples of 16 and of nothing more.
  void move();
  // Copies the dense ones there, with `unowned` in every byte between them.
  void fill(const void* b, const uint8_t* sfb, int unowned) const;

  const void* b_addresses() const { return b_.addresses.get(); }      // [G] in the machine's memory
  const void* sfb_addresses() const { return sfb_.addresses.get(); }  // likewise
  size_t bytes() const { return b_.bytes + sfb_.bytes; }

 private:
  struct Copies {  // of one matrix of each group
    std::shared_ptr<void> memory{}, addresses{};
    const char* what = "";         // "discrete weights"
    size_t bytes = 0;              // of the memory
    size_t each = 0;               // bytes of one group's
    std::vector<size_t> places{};  // of each group's, in bytes from the start of the memory
  };
  Copies room(size_t each, const char* what, const char* what_addresses);
  void move(Copies& copies) const;
  void fill(const Copies& copies, const void* dense, int unowned) const;

  Machine& machine_;
  int64_t groups_ = 0;
  int moves_ = 0;  // so far
  Copies b_, sfb_;
};

}  // namespace gg
