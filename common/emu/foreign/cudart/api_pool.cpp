// SPDX-License-Identifier: MIT
//
// Pools that cudaMallocAsync takes from. They keep nothing that was freed, so what programs usually
// set, how much they should keep, makes no difference; it can be asked for again. CUDA Runtime API,
// "Stream Ordered Memory Allocator".

#include <cstdint>
#include <map>

#include "common/emu/cudart/runtime.h"

using gg::emu::api;
using gg::emu::Runtime;

namespace {

struct Pool {
  std::map<int, uint64_t> attributes;  // that were set, by cudaMemPoolAttr
};

// The device's own, never destroyed, and those that programs made.
Pool& default_pool() {
  static auto* const pool = new Pool;
  return *pool;
}
std::map<cudaMemPool_t, Pool*>& pools() {
  static auto* const all =
      new std::map<cudaMemPool_t, Pool*>{{reinterpret_cast<cudaMemPool_t>(&default_pool()), &default_pool()}};
  return *all;
}

template <class Body>
cudaError_t with_pool(cudaMemPool_t handle, Body body) {
  return api([&](Runtime&) {
    const auto found = pools().find(handle);
    return found == pools().end() ? cudaErrorInvalidValue : body(*found->second);
  });
}

// The attributes that say how memory is used again: flags that are on, and the bytes that are kept.
bool is_about_reuse(cudaMemPoolAttr attribute) {
  return attribute == cudaMemPoolReuseFollowEventDependencies ||
         attribute == cudaMemPoolReuseAllowOpportunistic ||
         attribute == cudaMemPoolReuseAllowInternalDependencies;
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return api([&](Runtime&) {
    if (!pool) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    *pool = reinterpret_cast<cudaMemPool_t>(&default_pool());
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return api([&](Runtime&) {
    if (!pool || !properties) return cudaErrorInvalidValue;
    if (properties->handleTypes) return gg::emu::unsupported("a memory pool shared between processes");
    auto* const made = new Pool;
    *pool = reinterpret_cast<cudaMemPool_t>(made);
    pools()[*pool] = made;
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  return with_pool(handle, [handle](Pool& pool) {
    if (&pool == &default_pool()) return cudaErrorInvalidValue;
    pools().erase(handle);
    delete &pool;
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return with_pool(handle, [=](Pool& pool) {
    if (!value) return cudaErrorInvalidValue;
    if (attribute == cudaMemPoolAttrReleaseThreshold) {
      pool.attributes[attribute] = *static_cast<uint64_t*>(value);
    } else if (is_about_reuse(attribute)) {
      pool.attributes[attribute] = uint64_t(*static_cast<int*>(value));
    } else {
      return gg::emu::unsupported("this attribute of a memory pool");
    }
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  return with_pool(handle, [=](Pool& pool) {
    if (!value) return cudaErrorInvalidValue;
    const auto set = pool.attributes.find(attribute);
    if (attribute == cudaMemPoolAttrReleaseThreshold) {
      *static_cast<uint64_t*>(value) = set == pool.attributes.end() ? 0 : set->second;
    } else if (is_about_reuse(attribute)) {
      *static_cast<int*>(value) = set == pool.attributes.end() ? 1 : int(set->second);
    } else {
      return gg::emu::unsupported("this attribute of a memory pool");
    }
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t) {
  return with_pool(handle, [](Pool&) { return cudaSuccess; });
}
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t handle, cudaStream_t stream) {
  const cudaError_t error = with_pool(handle, [](Pool&) { return cudaSuccess; });
  return error == cudaSuccess ? cudaMallocAsync(pointer, bytes, stream) : error;
}

}  // extern "C"
