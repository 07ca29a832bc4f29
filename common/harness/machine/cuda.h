// SPDX-License-Identifier: MIT
//
// The common part of the machines behind a CUDA runtime, a GPU and the emulator: memory,
// copies, launches, graphs.

#pragma once

#include "common/harness/machine/machine.h"

namespace gg {

class CudaMachine : public Machine {
 public:
  CudaMachine();
  ~CudaMachine() override;

  size_t free_bytes() override;
  void* allocate(size_t bytes, const char* what) override;
  void release(void* memory) override;
  void fill_bytes(void* memory, int byte, size_t bytes) override;
  void upload(void* to, const void* from_host, size_t bytes) override { transfer(to, from_host, bytes); }
  void download(void* to_host, const void* from, size_t bytes) override { transfer(to_host, from, bytes); }
  void download_rows(void* to_host, const void* from, size_t row_bytes, size_t step, int rows) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void copy_late(void* to, const void* from, size_t bytes, cudaStream_t stream) override;
  void run(const Work& work) override;
  std::function<void()> captured(const Work& work) override;

 protected:
  void wait();
  void wait_unless_deferred();
  void transfer(void* to, const void* from, size_t bytes);  // from the host or to it
  cudaStream_t stream_ = nullptr;
  bool deferred_ = false;
};

}  // namespace gg
