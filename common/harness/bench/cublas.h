// SPDX-License-Identifier: MIT
//
// cuBLAS, the peer that every CUDA Toolkit brings along.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/harness/bench/peers.h"

namespace gg {

// Why cuBLAS cannot take a problem by this name, as far as sizes and element types tell: the end of
// a sentence, or nothing.
std::string unfit(const std::string& peer, const Formats& formats, const Shape& shape,
                  Product product = Product::forward);

// Returns the peer of this name, one of cublas_names(). `sustained`: as load_peer has it. Throws
// gg::Error as Cublas does.
std::unique_ptr<Peer> cublas_peer(const std::string& name, bool sustained);

class Cublas {
 public:
  // Throws gg::Error (no device), with what to install, where the library cannot be loaded.
  Cublas();
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  std::string version() const;  // "13.0.2"
  // cublasLt is there too: cublas_strided is the fastest of what it proposes.
  bool has_proposals() const;

  // A launch of the named peer on these buffers, which must not be unfit for it. Preparation
  // happens here, not in it; for cublas_strided it tries what may be chosen, in sustained rounds
  // or brief ones, and writes D. The launch throws gg::Error where the library does not have
  // these element types.
  std::function<void(cudaStream_t)> launch(const std::string& peer, const Buffers& buffers, Machine& machine,
                                           bool sustained);

  // D[n,n] = A[n,n] * B[n,n], column-major or row-major alike; what gg-roof times.
  void square_product(Format format, const void* a, const void* b, void* d, int n, cudaStream_t stream);
  // A launch of the same on elements with block scales along K, E4M3 with UE8M0 for 32 or E2M1 with
  // UE4M3 for 16, and with D in bf16: the first that cublasLt proposes. Throws gg::Error (no
  // device) where it has none.
  std::function<void(cudaStream_t)> scaled_square_product(Format format, const void* a, const void* sfa,
                                                          const void* b, const void* sfb, void* d,
                                                          int n) const;

 private:
  struct Library;
  struct Calls;
  std::unique_ptr<Library> library_;
};

}  // namespace gg
