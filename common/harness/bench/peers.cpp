// SPDX-License-Identifier: MIT
//
// Loading a peer, and the check that its launch has to pass before it is timed.

#include "common/harness/bench/peers.h"

#include "common/harness/bench/cublas.h"
#include "common/harness/bench/peer_names.h"
#include "common/harness/verify/right_outputs.h"

namespace gg {

std::unique_ptr<Peer> load_peer(const std::string& peer, bool sustained) {
  if (!library_peer_name(peer).empty()) return load_library_peer(peer, sustained);
  return cublas_peer(peer, sustained);
}

PeerLaunches prepare_and_check(Peer& peer, const BufferSets& sets, Machine& machine, uint64_t seed) {
  const auto step = [&](const PeerWork::Step& work) {
    if (work) machine.run(work);
  };
  std::vector<PeerWork> works;
  for (const auto& set : sets) {
    works.push_back(peer.prepare(*set, machine));
    step(works.back().stage);
  }
  const auto fill = [&](size_t set, uint64_t add) {
    sets[set]->fill_operands({Fill::Kind::normal, 0, seed + set + add, 0});
    step(works[set].stage);
  };
  const auto check = [&](size_t set, const std::function<void()>& launch, const char* otherwise) {
    // Not what preparation saw: what was computed there must not pass for a launch's work.
    fill(set, 1000);
    const bool right = right_on_random_data(machine, *sets[set], seed, [&] {
      launch();
      step(works[set].finish);
    });
    fill(set, 0);
    if (!right) throw Error(Exit::check_failed, otherwise);
  };
  const auto launched = [&] { machine.run(works[0].launch); };
  check(0, launched, "its result fails our check, so it is not timed");
  const size_t last = sets.size() - 1;
  machine.run(works[last].launch);  // modules are loaded before a capture
  check(last, machine.captured(works[last].launch),
        "its result in a replayed graph fails our check, so it is not timed");
  return {[works](int set, cudaStream_t stream) { works[size_t(set)].launch(stream); },
          [works, &machine](int set) {
            if (works[size_t(set)].finish) machine.run(works[size_t(set)].finish);
          }};
}

}  // namespace gg
