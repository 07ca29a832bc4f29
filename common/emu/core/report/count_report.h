// SPDX-License-Identifier: MIT
//
// Counts what kernels did, in numbers that a machine's speed has no part in.

#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

struct Counter {
  std::string name;  // "instructions_mma", "global_load_bytes"
  uint64_t value = 0;
};

// Always the same counters in the same order, whatever ran: warp-wide instructions, in all and by
// family; bytes that lanes asked for, by space and direction, and the 32-byte sectors of global
// memory they touched (a copy counts as the load or store of global memory that it is); wavefronts
// of shared memory, and those beyond the fewest possible, which bank conflicts cost; how often a
// warp had to wait at a barrier or for its copies; products, and what overlaps; multiply-adds.
// COUNTS.md says what moves which.
std::vector<Counter> summarise(const Counts& counts);

// "chapter::grouped_gemm<__nv_bfloat16, int>" of a mangled name.
std::string kernel_title(const std::string& mangled);

// The counters that are not zero, for each kernel and, with several, for all.
void print_report(std::FILE* file, const Counts& counts);

// How often warps executed each line of PTX, as CSV: "kernel,ptx_line,warps,sectors". The kernel
// has its mangled name, `sectors` are the 32-byte sectors of global memory that the line touched. A
// line that was not executed has no row. Machine code names the same lines, so what a loop costs
// there can be weighed with these counts.
std::string line_counts_csv(const Counts& counts);

}  // namespace gg::emu
