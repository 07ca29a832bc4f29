// SPDX-License-Identifier: MIT
//
// The devices that the emulator plays: what their limits are and what they say about themselves.

#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace gg::emu {

struct Device {
  const char* like;  // --like
  const char* name;
  int major, minor;
  int multiprocessors;
  int shared_per_multiprocessor;
  int shared_per_block_optin;  // with cudaFuncAttributeMaxDynamicSharedMemorySize
  int l2_bytes;
  int persisting_l2_bytes;
  int bus_bits;
  int clock_khz, memory_clock_khz;
  bool clusters;

  int capability() const { return major * 10 + minor; }
};

constexpr int kSharedPerBlock = 48 * 1024;  // without opting in
constexpr int kReservedShared = 1024;       // of each block, the system's
constexpr int kThreadsPerBlock = 1024, kThreadsPerMultiprocessor = 2048, kBlocksPerMultiprocessor = 32;
constexpr int kRegistersPerMultiprocessor = 65536;
constexpr int kPortableCluster = 8, kLargestCluster = 16;

// By the word of --like; null if there is none such.
const Device* find_device(const std::string& like);

// The device's properties; `memory_bytes` is the host's memory, which is all that its global
// memory can be.
cudaDeviceProp device_properties(const Device& device, size_t memory_bytes);
// False for a number that is no attribute; 0 for every attribute that has no value here.
bool device_attribute(const Device& device, int attribute, int* value);
std::string no_such_attribute(int attribute);  // a sentence

}  // namespace gg::emu
