// SPDX-License-Identifier: MIT
//
// Errors, and the macros that raise them. Every failure a program can end with is a gg::Error that carries
// its exit code (1 check failed, 2 bad input, 3 device error, 4 cannot write, 5 no memory, 77 no
// device); gg::run prints its sentence and returns its code.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string>

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

class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& sentence) : std::runtime_error(sentence), code(code) {}
  Exit code;
};

// printf into a std::string.
[[gnu::format(printf, 1, 2)]] inline std::string format(const char* text, ...) {
  va_list args, again;
  va_start(args, text);
  va_copy(again, args);
  std::string out(size_t(std::vsnprintf(nullptr, 0, text, args)), '\0');
  std::vsnprintf(out.data(), out.size() + 1, text, again);
  va_end(again);
  va_end(args);
  return out;
}

// One hint for the errors a learner meets; empty for the rest.
std::string cuda_hint(cudaError_t error, const std::string& call);

inline void check_cuda(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  const std::string hint = cuda_hint(error, call);
  throw Error(error == cudaErrorMemoryAllocation ? Exit::no_memory : Exit::device_error,
              format("%s:%d: %s failed: %s (%s)%s%s", file, line, call, cudaGetErrorName(error),
                     cudaGetErrorString(error), hint.empty() ? "" : "; ", hint.c_str()));
}

}  // namespace gg

#define GG_CHECK(call) ::gg::check_cuda((call), #call, __FILE__, __LINE__)

// A limit of a chapter or of the harness: GG_REQUIRE(k % 8 == 0, "K=%d: ...", k) ends with exit code 2.
#define GG_REQUIRE(condition, ...)                                                         \
  do {                                                                                     \
    if (!(condition)) throw ::gg::Error(::gg::Exit::bad_input, ::gg::format(__VA_ARGS__)); \
  } while (0)

// On in debug builds only; a failing thread stops the kernel with file and line.
#ifdef NDEBUG
#define GG_DEVICE_ASSERT(condition) ((void)0)
#else
#include <cassert>
#define GG_DEVICE_ASSERT(condition) assert(condition)
#endif
