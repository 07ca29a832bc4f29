// SPDX-License-Identifier: MIT
//
// Setting a session up.

#include "common/run/session.h"

#include "common/verify/output.h"
#include "common/verify/why_wrong.h"

namespace gg {

Setup setup_of(const Chapter& chapter, const Options& options) {
  Setup setup;
  setup.formats = options.formats;
  setup.host_offsets = chapter.reads_offsets_on_host;
  setup.m_multiple = chapter.m_multiple;
  setup.equal_groups = chapter.equal_groups;
  setup.b_layout = options.b_layout;
  setup.tile_k = options.tile_k;
  for (const Idea& idea : chapter.ideas) setup.ideas_off[idea.name] = false;
  for (const std::string& idea : options.off) setup.ideas_off[idea] = true;
  setup.epilogue = options.epilogue;
  if (setup.epilogue.has_operands())
    setup.same_bits = {chapter.epilogue.discrete, chapter.epilogue.dynamic, chapter.tiles};
  setup.wide_offsets = options.wide_offsets;
  setup.blocks = options.blocks;
  const bool has_default = !chapter.tiles.empty() && !chapter.chooses_tile;
  setup.tile = options.tile.m || !has_default ? options.tile : chapter.tiles[0];
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
