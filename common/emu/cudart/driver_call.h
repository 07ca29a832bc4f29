// SPDX-License-Identifier: MIT
//
// How a function of the driver's interface runs.

#pragma once

#include <cuda.h>

#include "common/emu/cudart/runtime.h"

namespace gg::emu {

// Runs a function of the driver: alone, a fault reported and the program ended. Its error is not
// the runtime's last one.
template <class Body>
CUresult driver(Body body) {
  struct Call {
    Body& body;
    CUresult result;
  } call{body, CUDA_SUCCESS};
  const cudaError_t before = last_error();
  const cudaError_t error = run_locked(
      [](void* pointer) {
        Call& call = *static_cast<Call*>(pointer);
        call.result = call.body(Runtime::get());
        return cudaSuccess;
      },
      &call, false);
  last_error() = before;
  return error == cudaSuccess ? call.result : CUresult(error);
}

}  // namespace gg::emu
