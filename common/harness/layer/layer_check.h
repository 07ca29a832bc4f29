// SPDX-License-Identifier: MIT
//
// The checks of a layer, each of which prints what it found.

#pragma once

#include <string>
#include <vector>

#include "common/harness/layer/layer_data.h"

namespace gg {

extern const std::vector<std::string> kDifferenceColumns;  // of --differences

class LayerChecks {
 public:
  explicit LayerChecks(Layer& layer) : layer_(layer), s_(layer.sizes()), t_(layer.tensors()) {}
  bool passed() const { return passed_; }

  // The loss and the gradients of a step, beside those of a step in double (reference.h).
  void gradients();
  // The same launches as a graph, over NaN, give the same bits; and so once more. Then the router
  // sends tokens to other experts, and the same graph's loss and gradients are right for these.
  void replays();
  // The derivatives in double beside central differences. With `file`: those of many steps h go
  // into this table.
  void differences(const std::string& file);
  // So many steps down the slope, beside the same steps in double.
  void training(int steps, float rate);
  // Each launch of a step beside the operands that it found: every number of five products, and of
  // all else some rows, tokens and weights. For a layer that is too large for a step in double.
  // The update moves the weights.
  void launches();
  // More steps, of a layer too large for that: a graph each.
  void long_training(int steps, float rate);

 private:
  void products();
  void rows();
  void tokens();
  void update();
  void expect(bool right, const std::string& what);
  // The loss and the gradients that are there, beside those of the layer in double.
  void compare_gradients();
  // The number that is furthest off, in standard deviations.
  template <class Value>
  void compare(const char* name, const std::vector<Value>& got, const std::vector<struct Rounded>& want);

  Layer& layer_;
  const LayerSizes& s_;
  const LayerTensors& t_;
  bool passed_ = true;
};

}  // namespace gg
