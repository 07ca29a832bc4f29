// SPDX-License-Identifier: MIT
//
// Programs that compile with NVRTC for a real architecture (sm_90) ask it for machine code. Where gg-emu puts
// these functions before NVRTC's, they get the PTX that it made on the way, which is what the emulator loads.
// NVRTC, "Compilation".

#include <dlfcn.h>

#include <cstddef>

namespace {

constexpr int kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR

// NVRTC's own function of that name, called with a program and where its answer goes.
template <class Answer>
int ask_nvrtc(const char* name, void* program, Answer* answer) {
  const auto function = reinterpret_cast<int (*)(void*, Answer*)>(dlsym(RTLD_NEXT, name));
  return function ? function(program, answer) : kInternalError;
}

}  // namespace

extern "C" {

// 0, as NVRTC says, for a virtual architecture (compute_90): there is no machine code then.
int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  const int result = ask_nvrtc("nvrtcGetCUBINSize", program, bytes);
  return result || !*bytes ? result : ask_nvrtc("nvrtcGetPTXSize", program, bytes);
}
int nvrtcGetCUBIN(void* program, char* code) { return ask_nvrtc("nvrtcGetPTX", program, code); }

}  // extern "C"
