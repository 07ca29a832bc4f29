// SPDX-License-Identifier: MIT
//
// The judge of a plain product, whose one output is D, and how far D may be off.

#pragma once

#include <memory>
#include <vector>

#include "common/harness/verify/judge.h"

namespace gg {

// Every element of D of these groups. Up to 2^23 products are judged by the CPU; of more, the
// machine's own reference judges all and the CPU some rows, drawn by `seed`. `buffers` hold
// operands and output.
Comparison compare_groups(Machine& machine, const Buffers& buffers, const std::vector<Group>& groups,
                          const Limit& limit, uint64_t seed);

// How far D may be off on random data.
Limit random_limit(const Setup& setup);

std::unique_ptr<Judge> product_judge(Machine& machine, const Buffers& buffers, uint64_t seed);

}  // namespace gg
