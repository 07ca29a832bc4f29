// SPDX-License-Identifier: MIT
//
// Launches that follow each other: what a launch may start before the one before it has ended
// (programmatic dependent launch) shows only where they touch the same memory.

#pragma once

#include <optional>

#include "common/harness/machine/buffers.h"
#include "common/harness/verify/failure.h"

namespace gg {

// Do its launches read offsets, which others can write? Not where groups have sizes of their own.
bool has_chain(const Shape& shape);

// Can D be the next launch's A? Packed rows of one type, without scales and factors.
bool chains_d(const Setup& setup);

// Launches, each of which reads what the one before wrote: a router's, whose offsets replace
// others, then A to D and, where D can be A, D to E and E to D: there N = K in `shape`. With
// nothing between them they must give the same bits as when each waits for the one before. With
// `from_graph` they are recorded once and replayed. has_chain holds.
std::optional<Failure> check_chain(Machine& machine, const Setup& setup, const Launch& launch,
                                   const Shape& shape, uint64_t seed, bool from_graph);

}  // namespace gg
