// SPDX-License-Identifier: MIT
//
// Errors, and the macros that raise them. Every failure a program can end with is a gg::Error
// that carries its exit code (1 check failed, 2 bad input, 3 device error, 4 cannot write, 5 no
// memory, 77 no device); gg::run prints its sentence and returns its code. What it is made of
// is in common/kernel/error.h.

#pragma once

#include <cuda_runtime_api.h>

#ifdef __CUDACC__
#define GG_HD __host__ __device__
#else
#define GG_HD
#endif

namespace gg {

enum class Exit : int {
  ok = 0,
  check_failed = 1,
  bad_input = 2,
  device_error = 3,
  cannot_write = 4,
  no_memory = 5,
  no_device = 77,
};

// Throws a gg::Error for this exit code, with a sentence as printf makes it.
[[noreturn, gnu::format(printf, 2, 3)]] void fail(Exit code, const char* text, ...);

// Throws a gg::Error that names the call, its place and the error, with one hint for errors that
// a learner meets.
[[noreturn]] void fail_cuda(cudaError_t error, const char* call, const char* file, int line);

inline void check_cuda(cudaError_t error, const char* call, const char* file, int line) {
  if (error != cudaSuccess) fail_cuda(error, call, file, line);
}

}  // namespace gg

#define GG_CHECK(call) ::gg::check_cuda((call), #call, __FILE__, __LINE__)

// A limit of a chapter or of the harness: GG_REQUIRE(k % 8 == 0, "K=%d: ...", k) ends with
// exit code 2.
#define GG_REQUIRE(condition, ...)                                    \
  do {                                                                \
    if (!(condition)) ::gg::fail(::gg::Exit::bad_input, __VA_ARGS__); \
  } while (0)

// On in debug builds only; a failing thread stops the kernel with file and line.
#ifdef NDEBUG
#define GG_DEVICE_ASSERT(condition) ((void)0)
#else
#include <cassert>
#define GG_DEVICE_ASSERT(condition) assert(condition)
#endif
