// SPDX-License-Identifier: MIT
//
// Images and their options, and the linker, which here takes one PTX and hands it on: what comes
// out is PTX, to be loaded. CUDA Driver API, "Module Management".

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "common/emu/foreign/cudart/image.h"
#include "common/emu/foreign/cudart/jit.h"

namespace gg::emu {

size_t JitOptions::number(CUjit_option wanted) const {
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == wanted) return reinterpret_cast<size_t>(values[i]);
  }
  return 0;
}
void JitOptions::set(CUjit_option wanted, size_t value) const {
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == wanted) values[i] = reinterpret_cast<void*>(value);
  }
}
void JitOptions::write(CUjit_option buffer, CUjit_option size, const std::string& text) const {
  char* const into = reinterpret_cast<char*>(number(buffer));
  const size_t room = number(size), bytes = into && room ? std::min(text.size(), room - 1) : 0;
  if (into && room) {
    std::memcpy(into, text.data(), bytes);
    into[bytes] = 0;
  }
  set(size, bytes);
}

CUresult load_image(Runtime& rt, const void* image, const JitOptions& jit, Program** program) {
  std::string log;
  const cudaError_t error = load_image(rt, image, program, &log);
  jit.write(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, log);
  jit.write(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
  jit.set(CU_JIT_WALL_TIME, 0);
  return CUresult(error);
}

bool read_image_file(const char* path, std::string* bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  bytes->assign(std::istreambuf_iterator<char>(file), {});
  bytes->append(16, '\0');  // what reads headers may look so far
  return true;
}

}  // namespace gg::emu

// The name is CUDA's, whose CUlinkState points here.
struct CUlinkState_st {
  gg::emu::JitOptions jit;
  std::vector<CUjit_option> options;  // a copy: those of cuLinkCreate may be gone when it ends
  std::string ptx;
};

using gg::emu::in_context;
using gg::emu::Runtime;

namespace {

CUresult add(CUlinkState state, CUjitInputType type, const std::string& image) {
  if (!state) return CUDA_ERROR_INVALID_HANDLE;
  if (type != CU_JIT_INPUT_PTX) {
    return CUresult(gg::emu::unsupported("linking what is no PTX (cuLinkAddData, cuLinkAddFile)"));
  }
  if (!state->ptx.empty()) return CUresult(gg::emu::unsupported("linking several PTX texts (cuLinkAddData)"));
  state->ptx = image.c_str();
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return in_context([&](Runtime&) {
    if (!state || (count && (!options || !values))) return CUDA_ERROR_INVALID_VALUE;
    auto* const made = new CUlinkState_st;
    made->options.assign(options, options + count);
    made->jit = {count, made->options.data(), values};
    *state = made;
    return CUDA_SUCCESS;
  });
}
CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t bytes, const char*,
                       unsigned, CUjit_option*, void**) {
  return in_context([&](Runtime&) {
    return data ? add(state, type, {static_cast<const char*>(data), bytes}) : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned, CUjit_option*,
                       void**) {
  return in_context([&](Runtime&) {
    std::string bytes;
    if (!path) return CUDA_ERROR_INVALID_VALUE;
    return gg::emu::read_image_file(path, &bytes) ? add(state, type, bytes) : CUDA_ERROR_FILE_NOT_FOUND;
  });
}
// Loads the PTX once, so that what is wrong with it is said here.
CUresult cuLinkComplete(CUlinkState state, void** image, size_t* bytes) {
  return in_context([&](Runtime& rt) {
    gg::emu::Program* program = nullptr;
    if (!state || !image || state->ptx.empty()) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = gg::emu::load_image(rt, state->ptx.c_str(), state->jit, &program);
    if (result != CUDA_SUCCESS) return result;
    gg::emu::unload(rt, *program);
    *image = state->ptx.data();
    if (bytes) *bytes = state->ptx.size() + 1;
    return CUDA_SUCCESS;
  });
}
CUresult cuLinkDestroy(CUlinkState state) {
  return in_context([&](Runtime&) {
    delete state;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
