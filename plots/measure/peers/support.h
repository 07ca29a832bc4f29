// SPDX-License-Identifier: MIT
// The code that the peers of this folder share: errors as sentences, memory that frees itself, and, in
// common/bench/contest.h, the choice of the fastest of several ways to run a problem.
#pragma once

#include <cuda_runtime.h>

#include "common/bench/contest.h"

namespace peers {

// Runs the body of an exported function: null, or the sentence that it threw. The text lives until the next
// one.
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

// GG_PEER_CHOICE=TEXT in the environment: only ways whose name contains TEXT.
inline bool wanted(const std::string& name) {
  const char* choice = std::getenv("GG_PEER_CHOICE");
  return !choice || name.find(choice) != std::string::npos;
}

}  // namespace peers
