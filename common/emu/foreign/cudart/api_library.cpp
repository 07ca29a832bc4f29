// SPDX-License-Identifier: MIT
//
// Libraries that a program loads while it runs, and kernels as the driver has them. The
// driver's functions do it, whose errors have the same numbers. CUDA Runtime API, "Library
// Management", "Execution Control".

#include "common/emu/foreign/cudart/context.h"

using gg::emu::api;
using gg::emu::Runtime;

namespace {

// Does what a function of the driver does. Its error is the thread's last one.
template <class Call>
cudaError_t as_driver(Call call) {
  const cudaError_t wanted = api([](Runtime&) {
    gg::emu::want_context();
    return cudaSuccess;
  });
  const cudaError_t error = wanted == cudaSuccess ? cudaError_t(call()) : wanted;
  if (error != cudaSuccess) gg::emu::last_error() = error;
  return error;
}

CUdeviceptr* address(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* options,
                                void** values, unsigned count, cudaLibraryOption*, void**, unsigned) {
  return as_driver([&] {
    return cuLibraryLoadData(library, code, reinterpret_cast<CUjit_option*>(options), values, count, nullptr,
                             nullptr, 0);
  });
}
cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* options,
                                    void** values, unsigned count, cudaLibraryOption*, void**, unsigned) {
  return as_driver([&] {
    return cuLibraryLoadFromFile(library, path, reinterpret_cast<CUjit_option*>(options), values, count,
                                 nullptr, nullptr, 0);
  });
}
cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return as_driver([&] { return cuLibraryUnload(library); });
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return as_driver([&] { return cuLibraryGetKernel(kernel, library, name); });
}
cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return as_driver([&] { return cuLibraryGetKernelCount(count, library); });
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return as_driver([&] { return cuLibraryEnumerateKernels(kernels, count, library); });
}
cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* bytes, cudaLibrary_t library, const char* name) {
  return as_driver([&] { return cuLibraryGetGlobal(address(pointer), bytes, library, name); });
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                            int device) {
  if (device != 0) return api([](Runtime&) { return cudaErrorInvalidDevice; });
  return cudaFuncSetAttribute(kernel, attribute, value);
}

// A function of the driver is the kernel's handle.
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return api([&](Runtime& rt) {
    CUkern_st* const kernel = rt.programs.kernel(symbol);
    if (!function) return cudaErrorInvalidValue;
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    *function = reinterpret_cast<cudaFunction_t>(kernel);
    return cudaSuccess;
  });
}
cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* bytes) {
  cudaKernel_t kernel = nullptr;
  if (const cudaError_t error = cudaGetKernel(&kernel, function)) return error;
  return as_driver([&] { return cuKernelGetParamInfo(kernel, index, offset, bytes); });
}

}  // extern "C"
