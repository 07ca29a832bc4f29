// SPDX-License-Identifier: MIT
//
// The buffers of one problem on one machine: operands surrounded by NaN, outputs surrounded by
// guards, offsets or pointer arrays. Makes the gg::Problem that a launch sees.

#pragma once

#include <array>
#include <memory>
#include <vector>

#include "common/harness/machine/discrete_weights.h"
#include "common/harness/machine/machine.h"
#include "common/harness/machine/random_operands.h"
#include "common/harness/problem/request.h"
#include "common/harness/problem/tensors.h"

namespace gg {

// These a reader may choose, as far as a chapter offers them, without changing a bit of an output.
struct SameBits {
  bool weights = false, schedule = false;
  List<ClusterTileShape> tiles{};
  bool fewer_multiprocessors = true;
};

struct Setup {  // what the reader asked for, and how the chapter wants its problems
  Request request{};
  Product product = Product::forward;
  bool host_offsets = true;  // may the launch read offsets on the host?
  SameBits same_bits{};      // checked with an epilogue
  WorkspaceBytes workspace_bytes = nullptr;
  int m_multiple = 1;         // what other row counts a check may try must keep to:
  bool equal_groups = false;  // multiples, or none but those given
};

struct TensorMemory {  // one tensor of the shape that is installed
  TensorSpec spec{};
  std::shared_ptr<void> memory{};
  size_t bytes = 0;  // of the buffer, which has room for every shape

  void* first() const {  // null where the problem has no such tensor
    return memory ? static_cast<char*>(memory.get()) + spec.start_byte() : nullptr;
  }
};

class Buffers {
 public:
  // Room for `shape` and, if given, for `other`, which set_shape may install later. Throws
  // gg::Error (no memory, or bad input where 4-bit elements do not fill bytes).
  Buffers(Machine& machine, const Setup& setup, const Shape& shape, const Shape* other = nullptr);
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Writes sizes, offsets and pointers into the same device arrays, so a recorded graph sees them.
  void set_shape(const Shape& shape);

  // Random operands in every group but those in `nan_groups` (one flag per group; empty: none), the
  // byte `unowned` (0xFF is NaN in every float format but E2M1, whose scales are NaN instead)
  // everywhere else. The padding of the scales of owned rows and columns is 0: the products that it
  // scales are 0 too.
  void fill_operands(const Fill& fill, const std::vector<bool>& nan_groups = {}, int unowned = 0xFF);
  // The epilogue's operands alone, once B and its scales are there.
  void fill_epilogue(const EpilogueOperands& operands, int unowned = 0xFF);
  // One operand: its owned elements one behind the other, as in a file, `unowned` everywhere else.
  void put(Tensor operand, const void* dense, int unowned);
  // Every output, and the workspace, filled with a byte, but outputs that have a value
  // to start from.
  void poison(int byte) const;
  void set_start_values() const;  // of the latter alone

  const Problem& problem() const { return problem_; }
  // The same with the packed D of other buffers in place of A: same shape and type, and N = K.
  Problem reading(const Buffers& from) const;
  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return layout_; }
  const Setup& setup() const { return setup_; }
  Matrices matrices() const {
    return {a(), b(), d(), setup_.request.formats, sfa(), sfb(), setup_.request.accumulate};
  }
  const TensorMemory& of(Tensor tensor) const { return tensors_[size_t(tensor)]; }
  const std::vector<Tensor>& outputs() const { return outputs_; }  // those that the problem has
  // Those that are there.
  const EpilogueOperands& epilogue_operands() const { return epilogue_operands_; }
  void* a() const { return of(Tensor::a).memory.get(); }
  void* b() const { return of(Tensor::b).memory.get(); }
  void* d() const { return of(Tensor::d).memory.get(); }
  // Null without scales.
  uint8_t* sfa() const { return static_cast<uint8_t*>(of(Tensor::sfa).memory.get()); }
  uint8_t* sfb() const { return static_cast<uint8_t*>(of(Tensor::sfb).memory.get()); }
  void* offsets() const { return offsets_.get(); }
  size_t a_bytes() const { return of(Tensor::a).bytes; }
  size_t b_bytes() const { return of(Tensor::b).bytes; }
  size_t d_bytes() const { return of(Tensor::d).bytes; }
  size_t sfa_bytes() const { return of(Tensor::sfa).bytes; }
  size_t sfb_bytes() const { return of(Tensor::sfb).bytes; }
  size_t bytes() const;  // of all tensors

 private:
  using Memory = std::shared_ptr<void>;
  Memory allocate(size_t bytes, const char* what);
  Memory reserve(size_t bytes, const char* what);
  std::vector<TensorSpec> specs_of(const Layout& layout) const;
  void measure(const Shape& shape);
  size_t workspace_bytes(const Shape& shape) const;
  void require_room(const Shape& shape, const Shape* other, size_t untouched);
  void upload_arrays();
  void show();
  void fill_unowned_b(int unowned);

  Machine& machine_;
  Setup setup_;
  Shape shape_;
  Layout layout_;
  std::array<TensorMemory, kTensors> tensors_;
  std::vector<Tensor> outputs_;
  Memory offsets_, pointers_, sizes_, workspace_;
  size_t workspace_bytes_ = 0;
  std::unique_ptr<DiscreteWeights> discrete_;  // null where weights are dense
  EpilogueOperands epilogue_operands_;
  std::vector<int32_t> host_offsets_;
  Problem problem_;
};

// Sets for one problem, each with operands of its own.
using BufferSets = std::vector<std::unique_ptr<Buffers>>;

Layout layout_for(const Setup& setup, const Shape& shape);
// The same without what lies between the groups' B, if anything does.
Layout near_layout(const Setup& setup, const Shape& shape);
bool has_far_b(const Layout& layout);

}  // namespace gg
