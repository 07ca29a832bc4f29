// SPDX-License-Identifier: MIT
//
// Properties and attributes. What the emulator has nothing of (textures, peers, managed memory
// beyond what the host sees) is 0, whatever the device played has.

#include "common/emu/cudart/played_device.h"

#include <cuda.h>

#include <climits>
#include <cstring>

namespace gg::emu {
namespace {

constexpr Device kDevices[] = {
    {"a100", "NVIDIA A100 (emulated)", 8, 0, 108, 167936, 166912, 41943040, 31457280, 5120, 1410000, 1593000,
     false},
    {"h100", "NVIDIA H100 (emulated)", 9, 0, 132, 233472, 232448, 52428800, 32768000, 5120, 1980000, 2619000,
     true},
    {"h200", "NVIDIA H200 (emulated)", 9, 0, 132, 233472, 232448, 62914560, 39321600, 6016, 1980000, 3201000,
     true},
    {"b200", "NVIDIA B200 (emulated)", 10, 0, 148, 233472, 232448, 132644864, 82903040, 7680, 1965000,
     3996000, true},
};
constexpr int kMostThreads[3] = {1024, 1024, 64}, kMostBlocks[3] = {INT_MAX, 65535, 65535};
constexpr int kConstantBytes = 65536;

// Values that are the same for all devices, by attribute.
struct Fixed {
  int attribute;
  int value;
};
constexpr Fixed kFixed[] = {
    {cudaDevAttrMaxThreadsPerBlock, kThreadsPerBlock},
    {cudaDevAttrMaxBlockDimX, kMostThreads[0]},
    {cudaDevAttrMaxBlockDimY, kMostThreads[1]},
    {cudaDevAttrMaxBlockDimZ, kMostThreads[2]},
    {cudaDevAttrMaxGridDimX, kMostBlocks[0]},
    {cudaDevAttrMaxGridDimY, kMostBlocks[1]},
    {cudaDevAttrMaxGridDimZ, kMostBlocks[2]},
    {cudaDevAttrMaxSharedMemoryPerBlock, kSharedPerBlock},
    {cudaDevAttrTotalConstantMemory, kConstantBytes},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxPitch, INT_MAX},
    {cudaDevAttrMaxRegistersPerBlock, kRegistersPerMultiprocessor},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrMaxThreadsPerMultiProcessor, kThreadsPerMultiprocessor},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrMaxRegistersPerMultiprocessor, kRegistersPerMultiprocessor},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrMaxBlocksPerMultiprocessor, kBlocksPerMultiprocessor},
    {cudaDevAttrReservedSharedMemoryPerBlock, kReservedShared},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrMemSyncDomainCount, 1},
    {cudaDevAttrNumaId, -1},
    {cudaDevAttrHostNumaId, -1},
};

}  // namespace

const Device* find_device(const std::string& like) {
  for (const Device& device : kDevices) {
    if (like == device.like) return &device;
  }
  return nullptr;
}

cudaDeviceProp device_properties(const Device& device, size_t memory_bytes) {
  cudaDeviceProp p{};
  std::strncpy(p.name, device.name, sizeof p.name - 1);
  std::memcpy(p.uuid.bytes, "gg-emu", 6);
  p.totalGlobalMem = memory_bytes;
  p.sharedMemPerBlock = kSharedPerBlock;
  p.regsPerBlock = p.regsPerMultiprocessor = kRegistersPerMultiprocessor;
  p.warpSize = 32;
  p.memPitch = INT_MAX;
  p.maxThreadsPerBlock = kThreadsPerBlock;
  std::memcpy(p.maxThreadsDim, kMostThreads, sizeof kMostThreads);
  std::memcpy(p.maxGridSize, kMostBlocks, sizeof kMostBlocks);
  p.totalConstMem = kConstantBytes;
  p.major = device.major;
  p.minor = device.minor;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = device.multiprocessors;
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = p.streamPrioritiesSupported = 1;
  p.cooperativeLaunch = p.hostRegisterSupported = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = p.managedMemory = p.memoryPoolsSupported = 1;
  p.memoryBusWidth = device.bus_bits;
  p.l2CacheSize = device.l2_bytes;
  p.persistingL2CacheMaxSize = device.persisting_l2_bytes;
  p.maxThreadsPerMultiProcessor = kThreadsPerMultiprocessor;
  p.sharedMemPerMultiprocessor = size_t(device.shared_per_multiprocessor);
  p.sharedMemPerBlockOptin = size_t(device.shared_per_block_optin);
  p.maxBlocksPerMultiProcessor = kBlocksPerMultiprocessor;
  p.accessPolicyMaxWindowSize = 128 << 20;
  p.reservedSharedMemPerBlock = kReservedShared;
  p.clusterLaunch = device.clusters;
  p.deviceNumaId = p.hostNumaId = -1;
  return p;
}

bool device_attribute(const Device& device, int attribute, int* value) {
  if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return false;
  const Fixed own[] = {
      {cudaDevAttrClockRate, device.clock_khz},
      {cudaDevAttrMultiProcessorCount, device.multiprocessors},
      {cudaDevAttrMemoryClockRate, device.memory_clock_khz},
      {cudaDevAttrGlobalMemoryBusWidth, device.bus_bits},
      {cudaDevAttrL2CacheSize, device.l2_bytes},
      {cudaDevAttrComputeCapabilityMajor, device.major},
      {cudaDevAttrComputeCapabilityMinor, device.minor},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, device.shared_per_multiprocessor},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, device.shared_per_block_optin},
      {cudaDevAttrMaxPersistingL2CacheSize, device.persisting_l2_bytes},
      {cudaDevAttrMaxAccessPolicyWindowSize, 128 << 20},
      {cudaDevAttrClusterLaunch, device.clusters},
      {CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, device.clusters},
  };
  *value = 0;
  for (const Fixed& f : own) {
    if (f.attribute == attribute) *value = f.value;
  }
  for (const Fixed& f : kFixed) {
    if (f.attribute == attribute) *value = f.value;
  }
  return true;
}

std::string no_such_attribute(int attribute) {
  return "a device has no attribute " + std::to_string(attribute) + ", they are 1 to " +
         std::to_string(CU_DEVICE_ATTRIBUTE_MAX - 1);
}

}  // namespace gg::emu
