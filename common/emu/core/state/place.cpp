// SPDX-License-Identifier: MIT
//
// Finding memory by address, and what is wrong with an address that lies nowhere.

#include "common/emu/core/state/place.h"

#include <algorithm>

namespace gg::emu {
namespace {

// ---- places in words ----

std::string bytes_text(uint64_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

std::string ordinal(size_t number) {
  const char* const endings[] = {"th", "st", "nd", "rd"};
  return std::to_string(number) + endings[number % 10 < 4 && number / 10 % 10 != 1 ? number % 10 : 0];
}

// The kernel's argument that points into an allocation, counted from 1; 0 if none does.
size_t argument_of(const Launch& launch, const Allocation& a) {
  const std::vector<Variable>& params = launch.code->function->params;
  for (size_t i = 0; i < params.size(); ++i) {
    for (int64_t at = 0; at + 8 <= params[i].bytes; at += 8) {
      uint64_t value = 0;
      std::memcpy(&value, launch.params.data() + params[i].offset + at, 8);
      if (a.holds(value, 1)) return i + 1;
    }
  }
  return 0;
}

// "a buffer of 4096 bytes (the kernel's 2nd argument)"
std::string buffer_text(const Warp& w, const Allocation& a) {
  const Grid& grid = *w.block->grid;
  if (a.begin == grid.params_address) return "the kernel's parameters";
  for (const auto& [name, address] : grid.launch.code->global_symbols) {
    if (address == a.begin) return "the variable " + plain_name(name) + " (" + bytes_text(a.bytes) + ")";
  }
  if (a.heap) return "a block of " + bytes_text(a.bytes) + " of the kernels' heap";
  const size_t argument = argument_of(grid.launch, a);
  return "a buffer of " + bytes_text(a.bytes) +
         (argument ? " (the kernel's " + ordinal(argument) + " argument)" : "");
}

constexpr const char* kTooLow =
    "an index that is negative, perhaps an unsigned subtraction that went below zero";
constexpr const char* kTooFar =
    "an index that is too large, often by one row or one tile at the edge, or a buffer that is too small";

[[noreturn]] void raise_global(Warp& w, const Instr& in, int lane, uint64_t address, int width) {
  const GlobalMemory& memory = *w.block->grid->memory;
  const std::string bytes = bytes_text(uint64_t(width));
  const Allocation *below = memory.below(address), *above = memory.above(address);
  if (!memory.reserved(address) || (!below && !above)) {
    constexpr uint64_t kNull = 1 << 20;
    raise_final(FaultKind::bounds, w, in, lane,
                bytes + " at address " + hex(address) + ", which is in no buffer of this device",
                address < kNull ? "a null pointer, or a parameter that was not passed"
                                : "a pointer to host memory, or a number that is no pointer");
  }
  const uint64_t into = below ? address - below->begin : 0;
  if (memory.freed(address)) {
    raise_final(FaultKind::use_after_free, w, in, lane,
                bytes + " at byte " + std::to_string(into) + " of " + buffer_text(w, *below) +
                    (below->heap ? ", which a kernel has freed" : ", which was freed before this launch"),
                below->heap ? "free or delete came before this access, perhaps in another thread"
                            : "cudaFree came before the kernel that still uses the buffer, or the pointer is "
                              "an old one");
  }
  if (!below || (above && above->begin - address < into - std::min(into, below->bytes))) {
    raise_final(
        FaultKind::bounds, w, in, lane,
        bytes + " that start " + bytes_text(above->begin - address) + " before " + buffer_text(w, *above),
        kTooLow);
  }
  raise_final(FaultKind::bounds, w, in, lane,
              bytes + " at byte " + std::to_string(into) + " of " + buffer_text(w, *below) + " end " +
                  bytes_text(into + uint64_t(width) - below->bytes) + " past its end",
              kTooFar);
}

[[noreturn]] void raise_guard(const Warp& w, const Instr& in, int lane, uint64_t address, uint64_t bytes,
                              const Allocation& a) {
  // Bytes to the nearest range behind the first one, and before the last.
  uint64_t before = ~0ull, past = ~0ull;
  for (const Readable::Range& r : a.readable->ranges) {
    if (r.begin > address) before = std::min(before, r.begin - address);
    if (r.begin <= address) past = std::min(past, address + bytes - r.end);
  }
  const size_t argument = argument_of(w.block->grid->launch, a);
  const std::string tensor =
      a.readable->name + (argument ? " (the kernel's " + ordinal(argument) + " argument)" : "");
  raise_final(FaultKind::bounds, w, in, lane,
              bytes_text(bytes) +
                  (before < past ? " that start " + bytes_text(before) + " before "
                                 : " that end " + bytes_text(past) + " past the end of ") +
                  tensor + " are read from the guard beside it, where nobody reads",
              before < past ? kTooLow : kTooFar);
}

// ---- finding memory ----

bool in_window(uint64_t address, uint64_t window, uint64_t bytes) { return address - window < bytes; }

// Bits 24 and up of a shared address are the block's rank in its cluster.
Place locate_shared(Warp& w, const Instr& in, int lane, uint64_t address, int width, bool any_rank) {
  if (in_window(address, kSharedWindow, kSharedWindowBytes)) {
    if (!was_told(FaultKind::address_space, w, in)) {
      raise(FaultKind::address_space, w, in, lane,
            "address " + hex(address) + " is the generic one of shared address " +
                hex(address - kSharedWindow) + ", and the instruction names the space",
            "cvta.to.shared (__cvta_generic_to_shared in CUDA C++) makes the address that such instructions "
            "want of a pointer");
    }
    address -= kSharedWindow;  // allowed: hardware looks at the low 32 bits
  }
  const uint64_t rank = address >> 24, blocks = w.block->cluster->blocks.size();
  if (rank != uint64_t(w.block->rank) && (!any_rank || rank >= blocks)) {
    raise_final(
        FaultKind::bounds, w, in, lane,
        "shared address " + hex(address) + " is of cluster rank " + std::to_string(rank) + ", " +
            (any_rank ? "the cluster has " + std::to_string(blocks) + (blocks == 1 ? " block" : " blocks")
                      : "this block has rank " + std::to_string(w.block->rank)),
        any_rank ? "a rank that this launch's clusters do not have, or a number that is no shared address"
                 : "memory of another block of the cluster wants .shared::cluster");
  }
  Block* block = w.block->cluster->blocks[rank].get();
  if (block->live_warps == 0) {
    raise_final(FaultKind::use_after_free, w, in, lane,
                "shared address " + hex(address) + " belongs to the block of rank " + std::to_string(rank) +
                    ", which has ended",
                "a cluster barrier before the end of the kernel keeps every block alive until its peers are "
                "done with its memory");
  }
  const uint64_t at = address & 0xFFFFFF;
  const size_t size = block->shared.bytes.size();
  if (at < uint64_t(kSharedStart)) {
    raise_final(FaultKind::bounds, w, in, lane,
                bytes_text(uint64_t(width)) + " at shared address " + hex(address) +
                    ", and a block's shared memory begins at " + hex(uint64_t(kSharedStart)),
                "an index that is negative, or a number that is no shared address");
  }
  const size_t offset = size_t(at) - kSharedStart;
  if (offset + size_t(width) > size) {
    raise_final(FaultKind::bounds, w, in, lane,
                bytes_text(uint64_t(width)) + " at " + shared_text(*block, offset) + " end " +
                    bytes_text(offset + size_t(width) - size) + " past the block's shared memory, " +
                    bytes_text(size) + " in all",
                size == 0 ? "the launch gives no dynamic shared memory"
                          : "an index past the end of the last shared array, or too little dynamic shared "
                            "memory in the launch");
  }
  return {block->shared.bytes.data() + offset, block, offset};
}

Place locate_local(Warp& w, const Instr& in, int lane, uint64_t address, int width) {
  const uint64_t bytes = w.local.size() / kLanes;
  if (!Allocation{0, bytes, false}.holds(address, uint64_t(width))) {
    raise_final(FaultKind::bounds, w, in, lane,
                bytes_text(uint64_t(width)) + " at byte " + std::to_string(int64_t(address)) +
                    " of the thread's local memory, which is " + bytes_text(bytes),
                "an index past the end of a local array, or a negative one");
  }
  return {w.local.data() + size_t(lane) * bytes + address, nullptr, 0};
}

Place locate_global(Warp& w, const Instr& in, int lane, uint64_t address, int width) {
  const GlobalMemory& memory = *w.block->grid->memory;
  const Allocation* found = memory.below(address);
  if (!found || found->freed || !found->holds(address, uint64_t(width)))
    raise_global(w, in, lane, address, width);
  return {memory.unchecked(address), nullptr, 0, found};
}

[[noreturn]] void raise_alignment(Warp& w, const Instr& in, int lane, Space space, uint64_t address,
                                  int width, int alignment) {
  std::string where = "address " + hex(address);
  const uint64_t in_block = address & 0xFFFFFF;
  const Allocation* below = w.block->grid->memory->below(address);
  if (space == Space::shared && in_block >= uint64_t(kSharedStart)) {
    where = shared_text(*w.block, size_t(in_block) - kSharedStart);
  } else if ((space == Space::global || space == Space::generic) && below && below->holds(address, 1)) {
    where = global_text(w, address);
  }
  raise_final(
      FaultKind::alignment, w, in, lane,
      bytes_text(uint64_t(width)) + " at " + where + ", which is no multiple of " + std::to_string(alignment),
      width > 8 ? "a vector access wants its address to be a multiple of its size: check the row length, the "
                  "column and the declared alignment"
                : "an access wants its address to be a multiple of its size");
}
}  // namespace

std::string global_text(const Warp& w, uint64_t address) {
  const Allocation& a = *w.block->grid->memory->below(address);
  return "byte " + std::to_string(address - a.begin) + " of " + buffer_text(w, a);
}
void check_guards(const Warp& w, const Instr& in, int lane, uint64_t address, uint64_t bytes) {
  const Allocation* const a = w.block->grid->memory->below(address);
  if (!a || !a->readable || !a->holds(address, 1) || a->readable->holds(address, bytes)) return;
  raise_guard(w, in, lane, address, bytes, *a);
}

std::string shared_text(const Block& block, size_t offset) {
  const int64_t at = kSharedStart + int64_t(offset);
  // The last that begins here or before.
  const std::pair<const std::string, int64_t>* array = nullptr;
  for (const auto& symbol : block.grid->launch.code->shared_symbols) {
    if (symbol.second <= at && (!array || symbol.second > array->second)) array = &symbol;
  }
  std::string text = "shared address " + hex(uint64_t(block.rank) << 24 | uint64_t(at));
  if (array) text += " (byte " + std::to_string(at - array->second) + " of " + plain_name(array->first) + ")";
  return text;
}
void addresses(Warp& w, const Instr& in, uint64_t (&out)[kLanes]) {
  if (in.address_bits == 32) {
    const uint32_t* base = w.at<uint32_t>(in.s[3]);
    for (int l = 0; l < kLanes; ++l) out[l] = uint32_t(base[l] + uint32_t(in.offset));
  } else {
    const uint64_t* base = w.at<uint64_t>(in.s[3]);
    for (int l = 0; l < kLanes; ++l) out[l] = base[l] + uint64_t(in.offset);
  }
}

Place locate(Warp& w, const Instr& in, int lane, Space space, uint64_t address, int width, int alignment) {
  if (address % uint64_t(alignment) != 0) raise_alignment(w, in, lane, space, address, width, alignment);
  if (space == Space::generic) {
    if (in_window(address, kSharedWindow, kSharedWindowBytes))
      return locate_shared(w, in, lane, address - kSharedWindow, width, true);
    if (in_window(address, kLocalWindow, kLocalWindowBytes))
      return locate_local(w, in, lane, address - kLocalWindow, width);
  }
  if (space == Space::shared) return locate_shared(w, in, lane, address, width, in.any_rank);
  if (space == Space::local) return locate_local(w, in, lane, address, width);
  return locate_global(w, in, lane, address, width);
}
}  // namespace gg::emu
