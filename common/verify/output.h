// SPDX-License-Identifier: MIT
//
// Is D right? A launch's output against the reference, and how far random data may be off.

#pragma once

#include <functional>
#include <vector>

#include "common/machine/buffers.h"

namespace gg {

// Every output element of these groups. Up to 2^23 products are judged by the CPU; of more, the machine's own
// reference judges all and the CPU some rows, drawn by `seed`. `buffers` hold operands and output.
Comparison compare_groups(Machine& machine, const Buffers& buffers, const std::vector<Group>& groups,
                          const Limit& limit, uint64_t seed);

// How far D may be off on random data.
Limit random_limit(const Setup& setup);

// Is D right after `run`, which finds it poisoned? On the random operands that are there.
bool right_on_random_data(Machine& machine, const Buffers& buffers, uint64_t seed,
                          const std::function<void()>& run);

// Is D right in each of the first `count` sets after `run`, which finds them all poisoned? On the random
// operands that are there, by the machine's own reference.
bool right_in_sets(Machine& machine, const BufferSets& sets, int count, const std::function<void()>& run);

// Elements of D that the CPU's reference rejects: up to 64 per group, spread over its rows. Large groups show
// a few rows, from that of element `first` on. All matrices are in host memory.
std::vector<int64_t> failing_elements(const Matrices& matrices, const std::vector<Group>& groups,
                                      const Limit& limit, int64_t first);

std::vector<char> downloaded(Machine& machine, const void* memory, size_t bytes);
// B as near_layout has it.
std::vector<char> downloaded_b(Machine& machine, const Buffers& buffers);

}  // namespace gg
