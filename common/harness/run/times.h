// SPDX-License-Identifier: MIT
//
// Timing on a GPU: the chapter and its peers on each problem, cold and warm.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/harness/bench/peers.h"
#include "common/harness/bench/roof.h"
#include "common/harness/bench/timer.h"
#include "common/harness/run/session.h"

namespace gg {

class Times {
 public:
  // Loads the peers; a sentence on stderr for each that cannot be.
  Times(Session& session, std::unique_ptr<Stopwatch> stopwatch, const Roof& roof);

  // Times the chapter and its peers on one problem, prints and writes the rows. With --off
  // the chapter with all ideas is a contestant too: cards and days differ by more than an
  // idea is worth.
  void time(const Shape& shape);
  // The chapter with each of its tiles, and as it chooses itself, in the same rounds, warm; prints
  // the best first.
  void tune(const Shape& shape);

 private:
  Session& session_;
  const std::unique_ptr<Stopwatch> stopwatch_;
  const Roof roof_;
  std::vector<std::unique_ptr<Peer>> peers_;  // those that could be loaded
};

}  // namespace gg
