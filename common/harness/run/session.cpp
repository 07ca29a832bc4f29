// SPDX-License-Identifier: MIT
//
// Setting a session up.

#include "common/harness/run/session.h"

#include "common/harness/verify/right_outputs.h"

namespace gg {

Setup setup_of(const Chapter& chapter, const Options& options) {
  Setup setup{.request = options.request};
  setup.product = chapter.product;
  setup.host_offsets = chapter.reads_offsets_on_host;
  setup.m_multiple = chapter.m_multiple;
  setup.workspace_bytes = chapter.workspace_bytes;
  setup.equal_groups = chapter.equal_groups;
  setup.same_bits = {chapter.discrete_weights, chapter.dynamic_schedule, chapter.tiles};
  // It may split K with some tiles or on some devices: split sums round otherwise.
  if (chapter.chooses_tile) {
    setup.same_bits.tiles.clear();
    setup.same_bits.fewer_multiprocessors = false;
  }
  if (!setup.request.tile.m && !chapter.tiles.empty() && !chapter.chooses_tile)
    setup.request.tile = chapter.tiles[0];
  return setup;
}

bool correct(Session& session, Buffers& buffers, const std::function<void(cudaStream_t)>& launch) {
  return right_on_random_data(*session.machine, buffers, session.options.seed,
                              [&] { session.machine->run(launch); });
}

Failure why_wrong(Session& session, const Buffers& buffers) {
  return why_wrong_on_random_data(*session.machine, buffers, session.options.seed);
}

}  // namespace gg
