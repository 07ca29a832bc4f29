// SPDX-License-Identifier: MIT
//
// Base of every probe: a machine that can run it, a GPU or the emulator that the test was started
// on, and arrays that both sides read. A probe is one block; each lane and each warp has data of
// its own, so that results in the wrong place don't look right.

#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"
#include "common/kernel/check.h"

namespace probe {

class Probe : public testing::Test {
 protected:
  explicit Probe(gg::Arch arch = gg::Arch::sm_80) : arch_(arch) {}
  void SetUp() override {
    try {
      gg::choose_device(gg::emulator() ? gg::Options::Device::emulator : gg::Options::Device::gpu,
                        {.id = "probe", .arch = arch_});
    } catch (const gg::Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

 private:
  gg::Arch arch_;
};

template <class T>
class Array {  // a copy on the device, for the length of a test
 public:
  explicit Array(const std::vector<T>& values) : size_(values.size()) {
    GG_CHECK(cudaMalloc(&data_, size_ * sizeof(T)));
    GG_CHECK(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  Array(const Array&) = delete;
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

}  // namespace probe
