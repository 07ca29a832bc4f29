// SPDX-License-Identifier: MIT
//
// Modules, libraries and what is in them. A module and a library are a program that was loaded, a
// function and a kernel are one handle. CUDA Driver API, "Module Management", "Library Management".

#include <algorithm>

#include "common/emu/foreign/cudart/image.h"
#include "common/emu/foreign/cudart/jit.h"

using gg::emu::driver;
using gg::emu::in_context;
using gg::emu::JitOptions;
using gg::emu::load_image;
using gg::emu::Program;
using gg::emu::read_image_file;
using gg::emu::Runtime;

namespace {

template <class Handle>
CUresult load_module(Handle* handle, const void* image, const JitOptions& jit) {
  return in_context([&](Runtime& rt) {
    Program* program = nullptr;
    if (!handle || !image) return CUDA_ERROR_INVALID_VALUE;
    if (jit.count && (!jit.options || !jit.values)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = load_image(rt, image, jit, &program);
    if (result == CUDA_SUCCESS) *handle = reinterpret_cast<Handle>(program);
    return result;
  });
}

template <class Handle, class Body>
CUresult with_program(Handle handle, Body body) {
  return driver([&](Runtime& rt) {
    if (const CUresult missing = gg::emu::initialised()) return missing;
    Program* const program = gg::emu::loaded(handle);
    return program ? body(rt, *program) : CUDA_ERROR_INVALID_HANDLE;
  });
}

template <class Handle, class Result>
CUresult find_kernel(Handle handle, const char* name, Result* result) {
  return with_program(handle, [&](Runtime& rt, Program& program) {
    if (!name || !result) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& kernel : program.kernels) {
      if (kernel->name != name) continue;
      *result = reinterpret_cast<Result>(kernel.get());
      return CUresult(rt.programs.ready(rt, *kernel));
    }
    return CUDA_ERROR_NOT_FOUND;
  });
}

template <class Handle>
CUresult find_variable(Handle handle, const char* name, CUdeviceptr* address, size_t* bytes) {
  return with_program(handle, [&](Runtime&, Program& program) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    const auto symbol = program.symbols.find(name);
    if (symbol == program.symbols.end()) return CUDA_ERROR_NOT_FOUND;
    if (address) *address = symbol->second;
    for (const gg::emu::Variable& variable : program.module->variables) {
      if (bytes && variable.name == name) *bytes = size_t(variable.bytes);
    }
    return CUDA_SUCCESS;
  });
}

template <class Handle, class Result>
CUresult list_kernels(Handle handle, Result* results, unsigned count) {
  return with_program(handle, [&](Runtime&, Program& program) {
    if (!results) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < std::min<size_t>(count, program.kernels.size()); ++i) {
      results[i] = reinterpret_cast<Result>(program.kernels[i].get());
    }
    return CUDA_SUCCESS;
  });
}

template <class Handle>
CUresult count_kernels(Handle handle, unsigned* count) {
  return with_program(handle, [count](Runtime&, Program& program) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = unsigned(program.kernels.size());
    return CUDA_SUCCESS;
  });
}

template <class Handle>
CUresult unload(Handle handle) {
  return with_program(handle, [](Runtime& rt, Program& program) {
    rt.finish_held();
    gg::emu::unload(rt, program);
    return CUDA_SUCCESS;
  });
}

template <class Handle, class Body>
CUresult with_kernel(Handle handle, Body body) {
  return driver([&](Runtime& rt) {
    if (const CUresult missing = gg::emu::initialised()) return missing;
    CUkern_st* const kernel = rt.programs.kernel(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    const cudaError_t error = rt.programs.ready(rt, *kernel);
    return error == cudaSuccess ? body(*kernel) : CUresult(error);
  });
}

template <class Handle>
CUresult give_name(const char** name, Handle handle) {
  return with_kernel(handle, [name](CUkern_st& kernel) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel.name.c_str();
    return CUDA_SUCCESS;
  });
}

template <class Handle>
CUresult give_parameter(Handle handle, size_t index, size_t* offset, size_t* bytes) {
  return with_kernel(handle, [=](CUkern_st& kernel) {
    const auto& params = kernel.function->params;
    if (!offset || index >= params.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = size_t(params[index].offset);
    if (bytes) *bytes = size_t(params[index].bytes);
    return CUDA_SUCCESS;
  });
}

// A program's handle as that of a module, or of a library.
template <class Handle, class Result>
CUresult give_program(Result* result, Handle handle) {
  return with_kernel(handle, [result](CUkern_st& kernel) {
    if (!result) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<Result>(kernel.program);
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load_module(module, image, {}); }
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                            void** values) {
  return load_module(module, image, {count, options, values});
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return load_module(module, image, {}); }
CUresult cuModuleLoad(CUmodule* module, const char* path) {
  std::string bytes;
  if (const CUresult missing = gg::emu::have_context()) return missing;
  if (!module || !path) return CUDA_ERROR_INVALID_VALUE;
  if (!read_image_file(path, &bytes)) return CUDA_ERROR_FILE_NOT_FOUND;
  return load_module(module, bytes.data(), {});
}
CUresult cuModuleUnload(CUmodule module) { return unload(module); }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return find_kernel(module, name, function);
}
CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) { return count_kernels(module, count); }
CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return list_kernels(module, functions, count);
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return find_variable(module, name, address, bytes);
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                           unsigned count, CUlibraryOption*, void**, unsigned) {
  return driver([&](Runtime& rt) {
    Program* program = nullptr;
    if (const CUresult missing = gg::emu::initialised()) return missing;
    if (!library || !code || (count && (!options || !values))) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = load_image(rt, code, {count, options, values}, &program);
    if (result == CUDA_SUCCESS) *library = reinterpret_cast<CUlibrary>(program);
    return result;
  });
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* options, void** values,
                               unsigned count, CUlibraryOption* library_options, void** library_values,
                               unsigned library_count) {
  std::string bytes;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  if (!read_image_file(path, &bytes)) return CUDA_ERROR_FILE_NOT_FOUND;
  return cuLibraryLoadData(library, bytes.data(), options, values, count, library_options, library_values,
                           library_count);
}
CUresult cuLibraryUnload(CUlibrary library) { return unload(library); }
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return find_kernel(library, name, kernel);
}
CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) { return count_kernels(library, count); }
CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return list_kernels(library, kernels, count);
}
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return with_program(library, [&](Runtime&, Program& program) {
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    *module = reinterpret_cast<CUmodule>(&program);
    return CUDA_SUCCESS;
  });
}
CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return find_variable(library, name, address, bytes);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return with_kernel(kernel, [function](CUkern_st& known) {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    *function = reinterpret_cast<CUfunction>(&known);
    return CUDA_SUCCESS;
  });
}
CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) { return give_program(library, kernel); }
CUresult cuFuncGetModule(CUmodule* module, CUfunction function) { return give_program(module, function); }
CUresult cuKernelGetName(const char** name, CUkernel kernel) { return give_name(name, kernel); }
CUresult cuFuncGetName(const char** name, CUfunction function) { return give_name(name, function); }
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return give_parameter(kernel, index, offset, bytes);
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return give_parameter(function, index, offset, bytes);
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return with_kernel(function, [state](CUkern_st&) {
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
  });
}
CUresult cuFuncLoad(CUfunction function) {
  return with_kernel(function, [](CUkern_st&) { return CUDA_SUCCESS; });
}

}  // extern "C"
