// SPDX-License-Identifier: MIT
//
// The buffers of one problem on one machine: operands surrounded by NaN, their block scales likewise, the
// output surrounded by guard rows, offsets or pointer arrays. Makes the gg::Problem that a launch sees.

#pragma once

#include <memory>
#include <vector>

#include "common/machine/epilogue_buffers.h"
#include "common/machine/machine.h"

namespace gg {

struct SameBits {  // what a reader may choose without changing a bit of an output, as far as a chapter offers
                   // it
  bool weights = false, schedule = false;
  std::vector<ClusterTileShape> tiles{};
};

struct Setup {  // how a chapter wants its problems
  Formats formats;
  bool host_offsets = true;   // may the launch read offsets on the host?
  bool wide_offsets = false;  // int64_t offsets
  ClusterTileShape tile;
  int tile_k = 0;
  int blocks = 0;
  BLayout b_layout = BLayout::kn;
  Epilogue epilogue{};                      // whose shapes say how many rows are in memory
  SameBits same_bits{};                     // checked with an epilogue
  std::map<std::string, bool> ideas_off{};  // every idea that can be switched off: is it?
  int m_multiple = 1;                       // what other row counts a check may try must keep to:
  bool equal_groups = false;                // multiples, or none but those given
};

class Buffers {
 public:
  // Room for `shape` and, if given, for `other`, which set_shape may install later.
  Buffers(Machine& machine, const Setup& setup, const Shape& shape, const Shape* other = nullptr);
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Writes sizes, offsets and pointers into the same device arrays, so that a recorded graph sees them.
  void set_shape(const Shape& shape);

  // Random operands in every group but those in `nan_groups` (one flag per group; empty: none), the byte
  // `unowned` (0xFF is NaN in every float format but E2M1, whose scales are NaN instead) everywhere else. The
  // padding of the scales of owned rows and columns is 0: the products that it scales are 0 too.
  void fill_operands(const Fill& fill, const std::vector<bool>& nan_groups = {}, int unowned = 0xFF);
  // The epilogue's operands alone, once B and its scales are there.
  void fill_epilogue(const EpilogueOperands& operands, int unowned = 0xFF) const;
  // Every output filled with a byte, but amax, which starts as -inf.
  void poison(int byte) const;

  const Problem& problem() const { return problem_; }
  // The same with the packed D of other buffers in place of A: of the same shape and type, and N = K.
  Problem reading(const Buffers& from) const;
  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return layout_; }
  const Setup& setup() const { return setup_; }
  Matrices matrices() const { return {a_.get(), b_.get(), d_.get(), setup_.formats, sfa(), sfb()}; }
  void* a() const { return a_.get(); }
  void* b() const { return b_.get(); }
  void* d() const { return d_.get(); }
  uint8_t* sfa() const { return static_cast<uint8_t*>(sfa_.get()); }  // null without block scales
  uint8_t* sfb() const { return static_cast<uint8_t*>(sfb_.get()); }
  void* offsets() const { return offsets_.get(); }
  size_t a_bytes() const { return a_bytes_; }
  size_t b_bytes() const { return b_bytes_; }
  size_t d_bytes() const { return d_bytes_; }
  size_t sfa_bytes() const { return sfa_bytes_; }
  size_t sfb_bytes() const { return sfb_bytes_; }
  size_t bytes() const {
    return a_bytes_ + b_bytes_ + d_bytes_ + sfa_bytes_ + sfb_bytes_ + (epilogue_ ? epilogue_->bytes() : 0);
  }
  EpilogueBuffers& epilogue() const { return *epilogue_; }

 private:
  using Memory = std::shared_ptr<void>;
  Memory allocate(size_t bytes, const char* what);
  Memory reserve(size_t bytes, const char* what);
  void fill_unowned_b(int unowned);
  void fill_scales(const Fill& a_fill, const Fill& b_fill, const std::vector<bool>& nan_groups, int unowned);

  Machine& machine_;
  Setup setup_;
  Shape shape_;
  Layout layout_;
  size_t a_bytes_ = 0, b_bytes_ = 0, d_bytes_ = 0, sfa_bytes_ = 0, sfb_bytes_ = 0;
  Memory a_, b_, d_, sfa_, sfb_, offsets_, pointers_, sizes_;
  std::unique_ptr<EpilogueBuffers> epilogue_;
  std::vector<int32_t> host_offsets_;
  Problem problem_;
};

using BufferSets = std::vector<std::unique_ptr<Buffers>>;  // of one problem, each with operands of its own

Layout layout_for(const Setup& setup, const Shape& shape);
// The same without what lies between the groups' B, if anything does.
Layout near_layout(const Setup& setup, const Shape& shape);
bool has_far_b(const Layout& layout);

// The largest whole number up to which the format has every one, 6 for E2M1, which lacks 5; 16 at most.
int whole_numbers(Format format);
// Whole numbers up to range_a and range_b with scales of 1 to 2^a and 1 to 2^b: how far the scales may reach
// so that every sum of k products is an exact fp32, with a bit to spare.
struct ScaleSpans {
  int a = 0, b = 0;
};
ScaleSpans scale_spans(int k, int range_a, int range_b);

}  // namespace gg
