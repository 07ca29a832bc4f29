// SPDX-License-Identifier: MIT
// The code that the peers of this folder share: errors as sentences, memory that frees itself,
// copies of B, and, in common/harness/bench/contest.h, the choice of the fastest of several ways to
// run a problem.
#pragma once

#include <cuda_runtime.h>

#include "common/harness/bench/contest.h"
#include "common/harness/bench/peer_library.h"

namespace peers {

// Runs the body of an exported function: null, or the sentence that it threw. The text lives until
// the next one.
template <class Body>
const char* sentence_of(Body&& body) {
  static thread_local std::string text;
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
    return text.c_str();
  }
}

struct DeviceFree {
  void operator()(void* memory) const { cudaFree(memory); }
};
template <class T>
using Device = std::unique_ptr<T, DeviceFree>;

template <class T>
Device<T> device_array(size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, std::max<size_t>(count, 1) * sizeof(T)), "cudaMalloc");
  return Device<T>(static_cast<T*>(memory));
}

template <class T>
Device<T> on_device(const std::vector<T>& values) {
  Device<T> array = device_array<T>(values.size());
  check(cudaMemcpy(array.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  return array;
}

// A copy of B whose rows are dealt by eights: 8 gates and then their 8 ups, or 8 ups and then their
// gates. In B they are 32 and 32.
inline void deal_gates(const GgPeerProblem& p, void* to, bool ups_first, cudaStream_t stream) {
  const size_t eight_bytes = 8 * size_t(p.k) * 2, pair_bytes = 8 * eight_bytes;
  const size_t pairs = size_t(p.groups) * size_t(p.n) / 64;
  for (size_t i = 0; i < 8; ++i) {  // i of B's eights of a pair: 4 of gates, then 4 of ups
    const bool is_up = i >= 4;
    const size_t place = i % 4 * 2 + (is_up != ups_first ? 1 : 0);
    check(cudaMemcpy2DAsync(static_cast<char*>(to) + place * eight_bytes, pair_bytes,
                            static_cast<const char*>(p.b) + i * eight_bytes, pair_bytes, eight_bytes, pairs,
                            cudaMemcpyDeviceToDevice, stream),
          "cudaMemcpy2DAsync");
  }
}

// A copy of B that has all gates of a group before its ups.
inline void part_gates(const GgPeerProblem& p, void* to, cudaStream_t stream) {
  const size_t half_bytes = 32 * size_t(p.k) * 2, pairs = size_t(p.n) / 64;
  for (size_t g = 0; g < size_t(p.groups); ++g) {
    for (size_t is_up = 0; is_up < 2; ++is_up) {
      const size_t group_bytes = g * pairs * 2 * half_bytes;
      check(cudaMemcpy2DAsync(static_cast<char*>(to) + group_bytes + is_up * pairs * half_bytes, half_bytes,
                              static_cast<const char*>(p.b) + group_bytes + is_up * half_bytes,
                              2 * half_bytes, half_bytes, pairs, cudaMemcpyDeviceToDevice, stream),
            "cudaMemcpy2DAsync");
    }
  }
}

// GG_PEER_CHOICE=TEXT in the environment: only ways whose name contains TEXT.
inline bool wanted(const std::string& name) {
  const char* choice = std::getenv("GG_PEER_CHOICE");
  return !choice || name.find(choice) != std::string::npos;
}

}  // namespace peers
