// SPDX-License-Identifier: MIT
//
// Programs whose main returns, with code 5, while another thread still works on the device: in one
// long kernel, or in launches without end. What runs then ends with the process.

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

#include "common/kernel/check.h"

namespace {

__global__ void small(int* value) { *value = 7; }

__global__ void slow(int* value, volatile int* started, int rounds) {
  *started = 1;
  unsigned x = threadIdx.x;
  for (int i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u + (x >> 16);
  *value = int(x);
}

std::atomic<int> launches = 0;

void work(bool many, int* value, int* started) {
  if (!many) slow<<<1, 32>>>(value, started, 1 << 30);
  while (many) {
    int* more = nullptr;
    GG_CHECK(cudaMalloc(&more, 4096));
    small<<<2, 32>>>(more);
    GG_CHECK(cudaFree(more));
    if (++launches == 20) *started = 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int *value = nullptr, *started = nullptr;
  GG_CHECK(cudaMalloc(&value, sizeof *value));
  GG_CHECK(cudaMallocHost(&started, sizeof *started));
  *started = 0;
  small<<<1, 32>>>(value);
  std::thread(work, argc > 1 && std::strcmp(argv[1], "many") == 0, value, started).detach();
  while (*static_cast<volatile int*>(started) == 0) std::this_thread::yield();
  std::puts("main returns");
  return 5;
}
