// SPDX-License-Identifier: MIT
//
// Reads of global memory that nobody wrote. Where they are allowed, who touches such bytes first
// gives them values, so that no value of another thread is lost.

#include "common/emu/core/state/unwritten.h"

#include "common/emu/core/state/place.h"

namespace gg::emu {
namespace {

bool is_allowed(const Warp& w) { return w.block->grid->allowed >> int(FaultKind::uninit_global) & 1; }

void settle(const Warp& w, uint64_t address, uint64_t bytes) {
  w.block->grid->memory->settle(address, bytes, w.block->grid->order.seed);
}

[[gnu::noinline]] void refuse(Warp& w, const Instr& in, int lane, uint64_t address, uint64_t bytes) {
  if (was_told(FaultKind::uninit_global, w, in)) return;
  const GlobalMemory& memory = *w.block->grid->memory;
  uint64_t first = address;
  while (memory.is_written(first, 1)) ++first;
  raise(FaultKind::uninit_global, w, in, lane,
        std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + " at " + global_text(w, address) +
            " are read, and neither the host nor a kernel has written " +
            (first == address ? "the first of them" : "byte " + std::to_string(first - address) + " of them"),
        "a cudaMemset or a copy to the device is missing, or covers less than is read; memory of cudaMalloc "
        "begins as garbage");
}

}  // namespace

void look_for_writes(Warp& w, const Instr& in, int lane, uint64_t address, uint64_t bytes) {
  if (!w.block->grid->checks || w.block->grid->memory->is_written(address, bytes)) return;
  refuse(w, in, lane, address, bytes);
  settle(w, address, bytes);
}

void note_write(const Warp& w, uint64_t address, uint64_t bytes) {
  if (is_allowed(w) && !w.block->grid->memory->is_written(address, bytes)) settle(w, address, bytes);
  w.block->grid->memory->mark_written(address, bytes);
}

}  // namespace gg::emu
