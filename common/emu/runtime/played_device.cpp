// SPDX-License-Identifier: MIT
//
// Properties and attributes. What the emulator has nothing of (textures, peers, managed memory beyond what
// the host sees) is 0, whatever the device played has.

#include "common/emu/runtime/played_device.h"

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

// Limits of textures and surfaces, which there are none of.
bool is_texture_limit(int attribute) {
  return (attribute >= cudaDevAttrMaxTexture1DWidth && attribute < cudaDevAttrSurfaceAlignment) ||
         (attribute >= cudaDevAttrMaxTexture1DLayeredWidth && attribute < cudaDevAttrPciDomainId) ||
         (attribute > cudaDevAttrTexturePitchAlignment && attribute < cudaDevAttrComputeCapabilityMajor) ||
         attribute == cudaDevAttrMaxTexture1DMipmappedWidth;
}

// Values that are the same for all devices, by attribute.
struct Fixed {
  cudaDeviceAttr attribute;
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
    {cudaDevAttrGpuOverlap, 0},
    {cudaDevAttrKernelExecTimeout, 0},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrComputeMode, 0},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrEccEnabled, 0},
    {cudaDevAttrPciBusId, 0},
    {cudaDevAttrPciDeviceId, 0},
    {cudaDevAttrTccDriver, 0},
    {cudaDevAttrMaxThreadsPerMultiProcessor, kThreadsPerMultiprocessor},
    {cudaDevAttrAsyncEngineCount, 0},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrPciDomainId, 0},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrMaxRegistersPerMultiprocessor, kRegistersPerMultiprocessor},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrIsMultiGpuBoard, 0},
    {cudaDevAttrMultiGpuBoardGroupID, 0},
    {cudaDevAttrHostNativeAtomicSupported, 0},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrPageableMemoryAccess, 0},
    {cudaDevAttrConcurrentManagedAccess, 0},
    {cudaDevAttrComputePreemptionSupported, 0},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 0},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0},
    {cudaDevAttrDirectManagedMemAccessFromHost, 0},
    {cudaDevAttrMaxBlocksPerMultiprocessor, kBlocksPerMultiprocessor},
    {cudaDevAttrReservedSharedMemoryPerBlock, kReservedShared},
    {cudaDevAttrSparseCudaArraySupported, 0},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrGPUDirectRDMASupported, 0},
    {cudaDevAttrMemoryPoolSupportedHandleTypes, 0},
    {cudaDevAttrIpcEventSupport, 0},
    {cudaDevAttrMemSyncDomainCount, 1},
    {cudaDevAttrMpsEnabled, 0},
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

bool device_attribute(const Device& device, cudaDeviceAttr attribute, int* value) {
  *value = 0;
  if (is_texture_limit(attribute)) return true;
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
  };
  for (const Fixed& f : own) {
    if (f.attribute == attribute) {
      *value = f.value;
      return true;
    }
  }
  for (const Fixed& f : kFixed) {
    if (f.attribute == attribute) {
      *value = f.value;
      return true;
    }
  }
  return false;
}

}  // namespace gg::emu
