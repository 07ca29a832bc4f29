// SPDX-License-Identifier: MIT
//
// Launches that follow each other: what a launch may start before the one before it has ended (programmatic
// dependent launch) shows only where they touch the same memory.

#pragma once

#include <optional>

#include "common/machine/buffers.h"
#include "common/verify/failure.h"

namespace gg {

// Can D be the next launch's A? Packed rows of one type, without scales.
bool can_chain(const Setup& setup, const Shape& shape);

// Four launches, each of which reads what the one before wrote: a router's, whose offsets replace others,
// then A to D, D to E, E to D. With nothing between them they must give the same bits as when each waits for
// the one before. With `from_graph` they are recorded once and replayed. N = K in `shape`, and can_chain
// holds.
std::optional<Failure> check_chain(Machine& machine, const Setup& setup, const Launch& launch,
                                   const Shape& shape, uint64_t seed, bool from_graph);

}  // namespace gg
