// SPDX-License-Identifier: MIT
//
// The things that a program registers before main: fatbins, and the kernels and variables in them
// by the address of their host side. A fatbin is parsed when something in it is first used, a
// kernel's body parsed and decoded when it is first launched. Images that a program loads later are
// parsed at once, all of them.

#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/emu/core/state/grid.h"
#include "common/emu/cudart/fatbin.h"

namespace gg::emu {

class Runtime;
struct Program;

struct DeviceVariable {
  Program* program = nullptr;
  std::string name;
  size_t bytes = 0;
  void** managed = nullptr;  // a __managed__ variable: where the host keeps its address
};

struct Program {
  std::vector<FatbinEntry> entries;
  std::vector<std::unique_ptr<CUkern_st>> kernels;
  std::vector<DeviceVariable> variables;
  enum class State : uint8_t { registered, loaded, failed } state = State::registered;
  cudaError_t failure = cudaSuccess;
  std::string why;  // it failed when it was registered: said when something of it is first used
  int ptx_arch = 0;
  std::string image;           // of a program that was loaded: what the entries point into
  std::string* log = nullptr;  // while it is loaded: gets the reason why it cannot be
  std::unique_ptr<Module> module;
  // Registers of kernels on hardware, where the fatbin holds code for the device.
  std::map<std::string, int> registers;
  std::map<std::string, uint64_t> symbols;  // .global and .const variables -> device addresses
};

class Programs {
 public:
  Program* add(const void* wrapper);
  void add_kernel(Program* program, const void* host, const std::string& name);
  void add_variable(Program* program, const void* host, const DeviceVariable& variable);

  // Takes a program that was loaded while another one runs, and gives its kernels handles.
  Program* adopt(std::unique_ptr<Program> program);
  // The handles are none any more; counts and traces still name the kernels.
  void drop_handles(const Program& program);

  // By the address of the kernel's host function, or by its handle; null if it is neither.
  CUkern_st* kernel(const void* function) const;
  // Makes its code, and what it says of itself, ready.
  cudaError_t ready(Runtime& runtime, CUkern_st& kernel);
  cudaError_t variable(Runtime& runtime, const void* host, uint64_t* address, size_t* bytes);
  cudaError_t load(Runtime& runtime, Program& program);
  // Whether every fatbin that holds PTX holds some for a device of this capability.
  bool all_fit(int capability) const;

 private:
  std::vector<std::unique_ptr<Program>> programs_;
  std::map<const void*, CUkern_st*> kernels_;  // by host address and by handle
  std::map<const void*, std::pair<Program*, size_t>> variables_;
};

}  // namespace gg::emu

// A kernel; the name is CUDA's, whose cudaKernel_t points here.
struct CUkern_st {
  gg::emu::Program* program = nullptr;
  std::string name;
  const gg::emu::Function* function = nullptr;  // these two once it is ready
  std::unique_ptr<gg::emu::Code> code;
  int registers = 0;  // of a thread on hardware; 0: not known

  // The attributes that cudaFuncSetAttribute set.
  int max_dynamic_shared = -1;  // -1: nothing, so 48 KB less the static shared memory
  bool larger_cluster = false;  // more than 8 blocks
  int carveout = -1;
};
