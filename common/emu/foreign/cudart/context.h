// SPDX-License-Identifier: MIT
//
// Contexts of the driver's interface. All see one device and one memory: which is current
// matters only where a call wants one and there is none. CUDA Driver API, "Context Management",
// "Primary Context Management".

#pragma once

#include <cuda.h>

#include "common/emu/cudart/driver_call.h"

// The name is CUDA's, whose CUcontext points here.
struct CUctx_st {
  bool primary = false, live = false;
  unsigned flags = 0;
  unsigned retained = 0;  // of the primary one
  unsigned long long id = 0;
};

namespace gg::emu {

// CUDA_SUCCESS after cuInit, or once the runtime did as much; else CUDA_ERROR_NOT_INITIALIZED.
CUresult initialised();
// CUDA_SUCCESS if the calling thread has a live current context; else the driver's error.
CUresult have_context();

// As driver(), for one that wants a context.
template <class Body>
CUresult in_context(Body body) {
  return driver([&body](Runtime& rt) {
    const CUresult missing = have_context();
    return missing == CUDA_SUCCESS ? body(rt) : missing;
  });
}

// Does what a call of the runtime does. Errors have the same numbers.
template <class Call>
CUresult as_runtime(Call call) {
  if (const CUresult missing = have_context()) return missing;
  const cudaError_t before = last_error();
  const cudaError_t error = call();
  last_error() = before;
  return CUresult(error);
}

}  // namespace gg::emu
