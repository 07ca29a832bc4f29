// SPDX-License-Identifier: MIT
//
// An array that a kernel and a test both read: a copy on the device, for the length of a test.

#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "common/kernel/check.h"

namespace testing_gg {

template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : size_(values.size()) {
    GG_CHECK(cudaMalloc(&data_, size_ * sizeof(T)));
    GG_CHECK(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFree(data_); }
  T* get() const { return data_; }
  std::vector<T> read() const {  // waits for the kernel, and reports what went wrong in it
    std::vector<T> values(size_);
    GG_CHECK(cudaGetLastError());
    GG_CHECK(cudaDeviceSynchronize());
    GG_CHECK(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

}  // namespace testing_gg
