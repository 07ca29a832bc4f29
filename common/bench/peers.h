// SPDX-License-Identifier: MIT
//
// The libraries we time beside a chapter, on the same data. All are loaded at run time: no chapter needs one
// to build or to start.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/machine/buffers.h"

namespace gg {

// A peer's work on one set of buffers; what it needs lives as long as these functions, which throw gg::Error.
struct PeerWork {
  using Step = std::function<void(cudaStream_t)>;
  Step stage;   // not timed, may be empty: copies operands that have changed to where launch reads them
  Step launch;  // timed, and captured in graphs
  Step finish;  // not timed, may be empty: brings the result to D
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;     // in results
  virtual std::string version() const = 0;  // "cuBLAS 13.0.2"
  // Not timed. Throws gg::Error with the end of a sentence that says why it cannot take this problem.
  virtual PeerWork prepare(const Buffers& buffers, Machine& machine) = 0;
};

// Of --peer: one of cuBLAS's names, or the path of a library (peer_library.h). Throws gg::Error with one
// sentence where it cannot be loaded.
std::unique_ptr<Peer> load_peer(const std::string& peer);
std::unique_ptr<Peer> load_library_peer(const std::string& path);

// The names by which cuBLAS is asked for, and the NAME of a path that ends in libgg_peer_NAME.so, or nothing.
const std::vector<const char*>& cublas_names();
std::string library_peer_name(const std::string& path);

using BufferSets = std::vector<std::unique_ptr<Buffers>>;

// The peer's launch on each set of buffers (its first argument), prepared and checked: D within the bound
// that ours keeps, from a launch and from a replayed graph, on other random operands. Throws gg::Error where
// it is not, so that it is not timed. Set i holds the random operands of seed + i, before and after.
std::function<void(int, cudaStream_t)> prepare_and_check(Peer& peer, const BufferSets& sets, Machine& machine,
                                                         uint64_t seed);

// Why cuBLAS cannot take a problem by this name, as far as sizes and element types tell: the end of a
// sentence, or nothing.
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
