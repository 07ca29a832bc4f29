// SPDX-License-Identifier: MIT
//
// The libraries we time beside a chapter, on the same data. All are loaded at run time: no chapter
// needs one to build or to start.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/machine/buffers.h"

namespace gg {

// A peer's work on one set of buffers; what it needs lives as long as these functions,
// which throw gg::Error.
struct PeerWork {
  using Step = std::function<void(cudaStream_t)>;
  // Not timed, may be empty: copies operands that have changed to where launch reads them.
  Step stage;
  Step launch;  // timed, and captured in graphs
  Step finish;  // not timed, may be empty: brings the result to D
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;     // in results
  virtual std::string version() const = 0;  // "cuBLAS 13.0.2"
  // Not timed. Throws gg::Error with the end of a sentence: why it cannot take this problem.
  virtual PeerWork prepare(const Buffers& buffers, Machine& machine) = 0;
};

// Returns the peer that --peer names: one of cuBLAS's names, or the path of a library
// (peer_library.h). `sustained`: a peer that chooses among several ways does so in rounds of that
// kind (timer.h). Throws gg::Error with one sentence where it cannot be loaded.
std::unique_ptr<Peer> load_peer(const std::string& peer, bool sustained);
std::unique_ptr<Peer> load_library_peer(const std::string& path, bool sustained);

struct PeerLaunches {
  std::function<void(int set, cudaStream_t)> launch;  // one launch on these buffers: what is timed
  std::function<void(int set)> finish;                // waits, and brings the result to D
};

// The peer's launch on each set of buffers, prepared and checked: D within the bound that ours
// keeps, from a launch and from a replayed graph, on other random operands. Throws gg::Error
// where it is not, so that it is not timed. Set i holds the random operands of seed + i,
// before and after.
PeerLaunches prepare_and_check(Peer& peer, const BufferSets& sets, Machine& machine, uint64_t seed);

}  // namespace gg
