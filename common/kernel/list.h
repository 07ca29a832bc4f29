// SPDX-License-Identifier: MIT
//
// A few values that somebody lists in braces: {1, 2, 3}. It stands for std::vector in the
// headers that every kernel is compiled with, for nvcc reads <vector> and <string> as long as
// a small kernel.

#pragma once

#include <initializer_list>

#include "common/kernel/check.h"

namespace gg {

// At most MOST values, which are copied; one more throws gg::Error.
template <class T, int MOST = 24>
class List {
 public:
  List() = default;
  List(std::initializer_list<T> values) {
    for (const T& value : values) push_back(value);
  }

  void push_back(const T& value) {
    GG_REQUIRE(count_ < MOST, "a list of more than %d values: raise MOST in common/kernel/list.h", MOST);
    values_[count_++] = value;
  }
  void clear() { count_ = 0; }
  int size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const T* begin() const { return values_; }
  const T* end() const { return values_ + count_; }
  const T& operator[](int i) const { return values_[i]; }

 private:
  T values_[MOST] = {};
  int count_ = 0;
};

}  // namespace gg
