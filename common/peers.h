// SPDX-License-Identifier: MIT
//
// The libraries we time beside a chapter, on the same data. cuBLAS is loaded at run time: no chapter needs it
// to build or to start.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/buffers.h"

namespace gg {

const std::vector<const char*>& peer_names();

// Why a peer cannot take a problem, as far as sizes and element types tell: the end of a sentence, or
// nothing.
std::string unfit(const std::string& peer, const Formats& formats, const Shape& shape);

class Cublas {
 public:
  // Throws gg::Error (no device) with one sentence on what to install where the library cannot be loaded.
  Cublas();
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  std::string version() const;  // "13.0.2"

  // A launch of the named peer on these buffers, which must not be unfit for it. Preparation happens here,
  // not in it. The launch throws gg::Error where the library does not have these element types.
  std::function<void(cudaStream_t)> launch(const std::string& peer, const Buffers& buffers, Machine& machine);

  // D[n,n] = A[n,n] * B[n,n], column-major or row-major alike; what gg-roof times.
  void square_product(Format format, const void* a, const void* b, void* d, int n, cudaStream_t stream);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace gg
