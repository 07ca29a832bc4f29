// SPDX-License-Identifier: MIT
//
// The functions that libcuda.so.1 has of its own; the others are those of the emulator's runtime,
// which it links.
//
// Programs that compile with NVRTC for a real architecture (sm_90) ask it for machine code. Where
// gg-emu puts these functions before NVRTC's, they get the PTX that it made on the way, which is
// what the emulator loads. NVRTC, "Compilation".

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

namespace {

constexpr int kInternalError = 11;  // NVRTC_ERROR_INTERNAL_ERROR

// NVRTC's own function of that name, called with a program and where its answer goes.
template <class Answer>
int ask_nvrtc(const char* name, void* program, Answer* answer) {
  const auto function = reinterpret_cast<int (*)(void*, Answer*)>(dlsym(RTLD_NEXT, name));
  return function ? function(program, answer) : kInternalError;
}

// NVIDIA's runtime opens libcuda.so.1, and finds this one where a program, or a library of its, has
// a DT_RPATH that goes before the LD_LIBRARY_PATH of gg-emu. It then says that its driver is too
// old, or crashes.
[[gnu::constructor]] void name_another_runtime() {
  Dl_info runtime{};
  void* const function = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
  if (dlsym(RTLD_DEFAULT, "gg_emu_interface") || !function || !dladdr(function, &runtime)) return;
  std::fprintf(
      stderr,
      "gg-emu: the CUDA runtime of this program is %s and not the emulator's: a DT_RPATH goes before "
      "LD_LIBRARY_PATH. Link what has it with -Wl,--enable-new-dtags, or name the emulator's "
      "libcudart.so.13 in LD_PRELOAD\n",
      runtime.dli_fname);
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
