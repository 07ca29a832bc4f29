// SPDX-License-Identifier: MIT
//
// malloc, free, new and delete in kernels: blocks of a thread's own, lists that threads build for
// each other, blocks that one kernel hands to the next, and a heap that runs out.

#include <cstdint>

#include "probe.cuh"

namespace probe {
namespace heap {

constexpr int kThreads = 64;

// [probe]
// Every thread sums a block of its own, of its own length.
__global__ void own_blocks(int* out) {
  const int i = int(threadIdx.x), length = i % 5 * 3 + 1;
  int* block = static_cast<int*>(malloc(size_t(length) * sizeof(int)));
  if (!block) return;
  for (int k = 0; k < length; ++k) block[k] = i * k + 1;
  int sum = reinterpret_cast<uintptr_t>(block) % 16 == 0 ? 0 : 1 << 20;
  for (int k = 0; k < length; ++k) sum += block[k];
  free(block);
  free(nullptr);
  out[i] = sum;
}

struct Node {
  int value;
  Node* next;
};
__device__ Node* newest;

// Threads put nodes before each other's; then one walks along and deletes them.
__global__ void list(int* out) {
  const int i = int(threadIdx.x);
  if (i == 0) newest = nullptr;
  __syncthreads();
  Node* node = new Node{i * i, nullptr};
  node->next = newest;
  for (;;) {
    const auto before = reinterpret_cast<unsigned long long>(node->next);
    const auto mine = reinterpret_cast<unsigned long long>(node);
    const auto found = atomicCAS(reinterpret_cast<unsigned long long*>(&newest), before, mine);
    if (found == before) break;
    node->next = reinterpret_cast<Node*>(found);
  }
  __threadfence();
  __syncthreads();
  if (i != 0) return;
  int count = 0, sum = 0;
  for (Node* each = newest; each;) {
    Node* const next = each->next;
    ++count;
    sum += each->value;
    delete each;
    each = next;
  }
  out[0] = count;
  out[1] = sum;
}

// Objects with virtual functions and a destructor.
class Counter {
 public:
  __device__ explicit Counter(int* total) : total_(total) {}
  __device__ virtual int step() const { return 1; }
  __device__ virtual ~Counter() { atomicAdd(total_, step_at_end()); }

 protected:
  __device__ int step_at_end() const { return 100; }
  int* total_;
};
class Twice : public Counter {
 public:
  __device__ explicit Twice(int* total) : Counter(total) {}
  __device__ int step() const override { return 2; }
  __device__ ~Twice() override { atomicAdd(total_, 10); }
};
__global__ void objects(int* out) {
  const int i = int(threadIdx.x);
  Counter* counter = i % 4 ? new Counter(out) : new Twice(out);
  atomicAdd(out, counter->step());
  delete counter;
}

__device__ int* kept[kThreads];
__global__ void keep() {
  const int i = int(threadIdx.x);
  kept[i] = new int[size_t(i) + 1];
  for (int k = 0; k <= i; ++k) kept[i][k] = 1000 * i + k;
}
__global__ void give_back(int* out) {
  const int i = int(threadIdx.x), other = kThreads - 1 - i;
  out[i] = kept[other][other];
  delete[] kept[other];
}

__global__ void too_much(int* out) {
  void* block = malloc(size_t(1) << 40);
  out[threadIdx.x] = block == nullptr;
}
// [/probe]

class Heap : public Probe {
 protected:
  std::vector<int> run(void (*kernel)(int*)) {
    const Array<int> out(std::vector<int>(kThreads, 0));
    kernel<<<1, kThreads>>>(out.get());
    return out.read();
  }
};

TEST_F(Heap, BlocksOfAThread) {
  const std::vector<int> got = run(own_blocks);
  for (int i = 0; i < kThreads; ++i) {
    const int length = i % 5 * 3 + 1;
    EXPECT_EQ(got[size_t(i)], i * length * (length - 1) / 2 + length) << "thread " << i;
  }
}

TEST_F(Heap, NodesOfAList) {
  const std::vector<int> got = run(list);
  EXPECT_EQ(got[0], kThreads);
  EXPECT_EQ(got[1], (kThreads - 1) * kThreads * (2 * kThreads - 1) / 6);
}

TEST_F(Heap, ObjectsWithDestructors) {
  const int twice = kThreads / 4, once = kThreads - twice;
  EXPECT_EQ(run(objects)[0], once * (1 + 100) + twice * (2 + 10 + 100));
}

TEST_F(Heap, BlocksOutliveAKernel) {
  keep<<<1, kThreads>>>();
  const std::vector<int> got = run(give_back);
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(got[size_t(i)], 1001 * (kThreads - 1 - i));
}

TEST_F(Heap, WhatDoesNotFitIsNull) {
  for (const int null : run(too_much)) EXPECT_EQ(null, 1);
}

TEST_F(Heap, TheLimitIsFixedOnceAKernelHasUsedIt) {
  size_t bytes = 0;
  EXPECT_EQ(cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize), cudaSuccess);
  EXPECT_EQ(bytes, size_t(8) << 20);
  run(own_blocks);
  EXPECT_NE(cudaDeviceSetLimit(cudaLimitMallocHeapSize, size_t(16) << 20), cudaSuccess);
  cudaGetLastError();
}

}  // namespace heap
}  // namespace probe
