// SPDX-License-Identifier: MIT
//
// A layer on a machine: its memory, its data, and what a step has written.

#pragma once

#include <memory>
#include <vector>

#include "common/harness/layer/routes.h"
#include "common/harness/machine/machine.h"
#include "common/kernel/layer.h"

namespace gg {

class Layer {
 public:
  // `idle`: as routes_of takes it.
  Layer(Machine& machine, const LayerProgram& program, const LayerSizes& sizes, uint64_t seed, bool idle);
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const LayerSizes& sizes() const { return sizes_; }
  const LayerTensors& tensors() const { return t_; }
  const Routes& routes() const { return routes_; }
  // Sends the tokens elsewhere: other numbers, at the same addresses.
  void set_routes(const Routes& routes);
  Machine& machine() const { return machine_; }
  float scale() const { return scale_; }  // of the loss

  // New weights, normal numbers of variance 1 / hidden in W1 and 1 / inner in W2: so c and y are of
  // about the size of the tokens.
  void draw_weights(uint64_t stream);
  // The target is what a layer of other weights makes of the tokens, and weights are drawn anew.
  // The loss is the sum of all squares of errors over that of all squares of the target. So it is 1
  // for a layer whose output is zero.
  void make_target();
  // A random target, where nothing is to be learnt.
  void draw_target();

  std::vector<LayerLaunch> forward() const { return program_.forward(sizes_, t_, scale_); }
  std::vector<LayerLaunch> forward_and_backward() const;
  std::vector<LayerLaunch> step(float rate) const;  // and the update
  void run(const std::vector<LayerLaunch>& launches) const;
  // The same as a graph. Each call of the result runs it.
  std::function<void()> captured(const std::vector<LayerLaunch>& launches) const;

  double loss() const;
  // The bytes of the loss and of all gradients.
  using Outputs = std::vector<std::vector<char>>;
  Outputs outputs() const;
  // Makes all that a step writes NaN but the weights, also what launches hand on to each other.
  void poison() const;
  template <class T>
  std::vector<T> download(const T* from, int64_t count) const {
    std::vector<T> all(static_cast<size_t>(count));
    machine_.download(all.data(), from, size_t(count) * sizeof(T));
    return all;
  }

 private:
  template <class T>
  T* allocate(int64_t count, const char* what);
  template <class T>
  void put(T* to, const std::vector<T>& values) const {
    machine_.upload(to, values.data(), values.size() * sizeof(T));
  }
  void fill(void* tensor, Format format, int64_t count, uint64_t stream);
  std::vector<std::pair<void*, size_t>> results() const;
  int64_t count_of_tokens() const { return int64_t(sizes_.tokens) * sizes_.hidden; }

  Machine& machine_;
  const LayerProgram& program_;
  LayerSizes sizes_;
  uint64_t seed_;
  Routes routes_;
  std::vector<std::shared_ptr<void>> memory_;
  LayerTensors t_{};
  int32_t *offsets_, *token_of_, *row_of_;  // of t_, to be written
  float *prob_, *ones_;
  bf16 *tokens_, *target_;
  size_t workspace_bytes_;
  float scale_ = 1;
};

}  // namespace gg
