// SPDX-License-Identifier: MIT
//
// A loop spread over the cores of the host.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace gg {

// Calls body(first, last) on pieces of [0, count) of about `grain` each, on all cores; body
// must not throw.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body body) {
  const int64_t pieces = (count + grain - 1) / grain;
  const int64_t workers = std::min<int64_t>(std::max(1u, std::thread::hardware_concurrency()), pieces);
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t piece = next++; piece < pieces; piece = next++) {
      body(piece * grain, std::min(count, (piece + 1) * grain));
    }
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace gg
