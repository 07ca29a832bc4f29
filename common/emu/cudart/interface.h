// SPDX-License-Identifier: MIT
//
// The functions that a program that runs under the emulator may call beyond the CUDA runtime. The
// emulator's libcudart.so.13 exports gg_emu_interface; the harness looks it up with dlsym, and its
// absence means that a real runtime is loaded.

#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct GgEmuRange {  // of bytes of a buffer
  size_t begin, end;
};

struct GgEmuInterface {
  int version;  // kGgEmuInterface
  // Host memory behind [device, device + bytes); null unless one live allocation holds it all.
  // Nobody sees what is written there, so from now on all of the allocation counts as written.
  void* (*host)(const void* device, size_t bytes);
  void (*set_order)(uint64_t seed, int skew);
  // The order of the launches that follow: what the user has set, or set_order since.
  void (*order)(uint64_t* seed, int* skew);
  // The device to play, by a word of gg-emu --like, whatever the user has set. Before the program
  // has asked for anything of the device.
  void (*play)(const char* like);
  // Counts of all launches since the last reset: calls `each` per counter, in a fixed order.
  void (*counts)(void (*each)(void* context, const char* counter, uint64_t value), void* context);
  void (*reset_counts)();
  // The launches that follow find a device with so many multiprocessors, at least 1: as its
  // properties, as %nsmid, and as what a cluster's blocks fit on. All other limits stay.
  void (*set_multiprocessors)(int count);
  // As cudaMalloc, but of addresses: pages come where they are touched, so no memory needs to be
  // free. Null: there are not that many addresses. cudaFree takes it back.
  void* (*reserve)(size_t bytes);
  // For somebody who waits at a terminal: `what` begins, as a part of what has begun before
  // and not ended.
  // Null: what began last has ended.
  void (*doing)(const char* what);
  // A kernel that reads bytes of this buffer outside the ranges, which ascend, is a fault (bounds),
  // until the next call for the buffer. `name` is what reports call the bytes in them: "the bias".
  void (*set_readable)(const void* device, const char* name, const GgEmuRange* ranges, size_t count);
};
constexpr int kGgEmuInterface = 6;

const GgEmuInterface* gg_emu_interface();
}
