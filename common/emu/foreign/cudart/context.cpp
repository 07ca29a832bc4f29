// SPDX-License-Identifier: MIT
//
// cuInit and contexts: a stack of them for each thread. The runtime makes the primary one current
// where it wants a context and the thread has none.

#include "common/emu/foreign/cudart/context.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

namespace gg::emu {
namespace {

std::atomic<bool> is_initialised{false}, runtime_holds_primary{false};

// Never destroyed, as Runtime: programs call us until they end. The first is the primary one. A
// context that was destroyed stays here, so that its handle is told apart.
std::deque<CUctx_st>& contexts() {
  static auto* all = new std::deque<CUctx_st>{{true, false, 0, 0, 1}};
  return *all;
}
CUctx_st& primary() { return contexts().front(); }

// None is destroyed with its thread: destructors of a program's static objects call CUDA
// later than that.
std::vector<CUctx_st*>& stack() {
  static std::mutex alone;
  static auto& of_all_threads = *new std::deque<std::vector<CUctx_st*>>;
  thread_local std::vector<CUctx_st*>& current = []() -> auto& {
    const std::lock_guard lock(alone);
    return of_all_threads.emplace_back();
  }
  ();
  return current;
}

bool known(CUcontext context) {
  for (const CUctx_st& each : contexts()) {
    if (&each == context) return true;
  }
  return false;
}

CUresult create(CUcontext* context, unsigned flags, CUdevice device) {
  return driver([&](Runtime&) {
    if (const CUresult missing = initialised()) return missing;
    if (!context || flags & ~unsigned(CU_CTX_FLAGS_MASK)) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    contexts().push_back({false, true, flags, 0, contexts().size() + 1});
    *context = &contexts().back();
    stack().push_back(*context);
    return CUDA_SUCCESS;
  });
}

// Runs the body with the live context of a handle; null stands for the current one.
template <class Body>
CUresult with_context(CUcontext context, Body body) {
  return driver([&](Runtime&) {
    if (const CUresult missing = context ? initialised() : have_context()) return missing;
    CUctx_st* const chosen = context ? context : stack().back();
    if (!known(chosen)) return CUDA_ERROR_INVALID_CONTEXT;
    return chosen->live ? body(*chosen) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  });
}

// Runs the body with the primary context, if the device is the one there is.
template <class Body>
CUresult with_primary(CUdevice device, Body body) {
  return driver([&](Runtime&) {
    if (const CUresult missing = initialised()) return missing;
    return device == 0 ? body(primary()) : CUDA_ERROR_INVALID_DEVICE;
  });
}

}  // namespace

CUresult initialised() { return is_initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED; }

CUresult have_context() {
  if (const CUresult missing = initialised()) return missing;
  if (stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  return stack().back()->live ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void initialise() { is_initialised = true; }

void want_context() {
  if (!stack().empty() && (stack().back()->live || !stack().back()->primary)) return;
  runtime_holds_primary = primary().live = true;
  if (stack().empty()) stack().push_back(&primary());
}

}  // namespace gg::emu

using gg::emu::driver;
using gg::emu::stack;

extern "C" {

CUresult cuInit(unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  gg::emu::initialise();
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return gg::emu::create(context, flags, device);
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned flags, CUdevice device) {
  if (params && (params->execAffinityParams || params->cigParams)) {
    return driver([](gg::emu::Runtime&) {
      return CUresult(gg::emu::unsupported("a context with an execution affinity or for graphics"));
    });
  }
  return gg::emu::create(context, flags, device);
}
CUresult cuCtxDestroy(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  return gg::emu::with_context(context, [](CUctx_st& chosen) {
    if (chosen.primary) return CUDA_ERROR_INVALID_CONTEXT;
    chosen.live = false;
    if (!stack().empty() && stack().back() == &chosen) stack().pop_back();
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxPushCurrent(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  return gg::emu::with_context(context, [](CUctx_st& chosen) {
    stack().push_back(&chosen);
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  return driver([&](gg::emu::Runtime&) {
    if (const CUresult missing = gg::emu::initialised()) return missing;
    if (stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context) *context = stack().back();
    stack().pop_back();
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxSetCurrent(CUcontext context) {
  if (context) {
    return gg::emu::with_context(context, [](CUctx_st& chosen) {
      if (!stack().empty()) stack().pop_back();
      stack().push_back(&chosen);
      return CUDA_SUCCESS;
    });
  }
  if (const CUresult missing = gg::emu::initialised()) return missing;
  if (!stack().empty()) stack().pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  if (const CUresult missing = gg::emu::initialised()) return missing;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = stack().empty() ? nullptr : stack().back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  if (const CUresult missing = gg::emu::have_context()) return missing;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetFlags(unsigned* flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  return gg::emu::with_context(nullptr, [flags](CUctx_st& context) {
    *flags = context.flags;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  return gg::emu::with_context(context, [id](CUctx_st& chosen) {
    *id = chosen.id;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  return gg::emu::with_context(context, [version](CUctx_st&) {
    *version = 3020;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  return gg::emu::with_context(context, [device](CUctx_st&) {
    *device = 0;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxSynchronize() {
  return gg::emu::as_runtime([] { return cudaDeviceSynchronize(); });
}
CUresult cuCtxSynchronize_v2(CUcontext context) {
  if (const CUresult missing = gg::emu::with_context(context, [](CUctx_st&) { return CUDA_SUCCESS; }))
    return missing;
  return CUresult(cudaDeviceSynchronize());
}
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return gg::emu::as_runtime([&] { return cudaDeviceGetLimit(value, cudaLimit(limit)); });
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return gg::emu::as_runtime([&] { return cudaDeviceSetLimit(cudaLimit(limit), value); });
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return gg::emu::as_runtime(
      [&] { return cudaDeviceGetCacheConfig(reinterpret_cast<cudaFuncCache*>(config)); });
}
CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return gg::emu::as_runtime([&] { return cudaDeviceSetCacheConfig(cudaFuncCache(config)); });
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return gg::emu::as_runtime([&] { return cudaDeviceGetStreamPriorityRange(least, greatest); });
}
CUresult cuCtxResetPersistingL2Cache() {
  return gg::emu::as_runtime([] { return cudaCtxResetPersistingL2Cache(); });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  return gg::emu::with_primary(device, [context](CUctx_st& primary) {
    primary.live = true;
    ++primary.retained;
    *context = &primary;
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return gg::emu::with_primary(device, [](CUctx_st& primary) {
    if (primary.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --primary.retained;
    primary.live = primary.retained > 0 || gg::emu::runtime_holds_primary;
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return gg::emu::with_primary(device, [](CUctx_st&) { return CUDA_SUCCESS; });
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return gg::emu::with_primary(device, [flags](CUctx_st& primary) {
    if (flags & ~unsigned(CU_CTX_FLAGS_MASK)) return CUDA_ERROR_INVALID_VALUE;
    primary.flags = flags;
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return gg::emu::with_primary(device, [=](CUctx_st& primary) {
    if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
    *flags = primary.flags;
    *active = primary.live;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
