// SPDX-License-Identifier: MIT
//
// From a registered fatbin to a module with its variables in place.

#include "common/emu/cudart/program.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/module.h"
#include "common/emu/cudart/machine_code.h"
#include "common/emu/cudart/runtime.h"

namespace gg::emu {
namespace {

// The structure that nvcc puts in .nvFatBinSegment.
struct Wrapper {
  int magic, version;
  const uint8_t* data;
  const void* more;
};
constexpr int kWrapperMagic = 0x466243B1, kWrapperVersion = 1;

std::string targets(const std::vector<FatbinEntry>& entries) {
  std::string list;
  for (const FatbinEntry& entry : entries) list += (list.empty() ? "" : ", ") + entry.target();
  return list.empty() ? "nothing" : list;
}

// Says why a program cannot be used, to the user and to who loads it; returns the error.
cudaError_t fail(const Program& program, cudaError_t error, const std::string& why) {
  if (program.log) *program.log = why;
  return refuse(error, why);
}

cudaError_t no_ptx(const Device& device, const Program& program) {
  bool ptx = false;
  for (const FatbinEntry& entry : program.entries) ptx = ptx || entry.kind == FatbinEntry::Kind::ptx;
  const std::string holds = "the program holds " + targets(program.entries);
  return fail(program, cudaErrorNoKernelImageForDevice,
              ptx ? holds + " and the emulator plays sm_" + std::to_string(device.capability()) +
                        ": choose another device with --like, or build with PTX for this one"
                  : holds +
                        " and no PTX, which is what the emulator runs: build with -gencode "
                        "arch=compute_XX,code=compute_XX");
}

void place_variables(Runtime& runtime, Program& program) {
  const auto is_managed = [&program](const std::string& name) {
    for (const DeviceVariable& registered : program.variables) {
      if (registered.managed && registered.name == name) return true;
    }
    return false;
  };
  const auto allocate = [&](const Variable& v, size_t bytes) {
    return is_managed(v.name) ? runtime.allocate_visible(bytes, cudaMemoryTypeManaged, cudaMemAttachGlobal)
                              : runtime.allocate(bytes);
  };
  program.symbols = place_variables(*program.module, runtime.memory, allocate);
  for (const DeviceVariable& registered : program.variables) {
    const auto symbol = program.symbols.find(registered.name);
    if (registered.managed && symbol != program.symbols.end())
      *registered.managed = reinterpret_cast<void*>(symbol->second);
  }
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::invalid_argument("GG_EMU_PTX=" + path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// The module of a program, or the one that the settings give in place of it, if that has a kernel
// of its own in common with it: a program has modules of the harness too.
std::string module_text(const Settings& settings, const FatbinEntry& entry) {
  std::string own = ptx_text(entry);
  if (settings.ptx.empty()) return own;
  std::string other = text_of_file(settings.ptx);
  const size_t kernel = std::min(other.find(".entry"), other.size());
  const bool same = own.find(other.substr(kernel, other.find('(', kernel) - kernel)) != std::string::npos;
  return same ? other : own;
}

// The file that holds a registered program, an executable or a library. An executable's name here
// is its argv[0], which need not lead to it.
std::string file_of(const Program& program) {
  Dl_info info{};
  if (program.entries.empty() || !dladdr(program.entries[0].payload, &info)) return "";
  const bool found = std::strchr(info.dli_fname, '/') && std::filesystem::exists(info.dli_fname);
  return found ? info.dli_fname : "/proc/self/exe";
}

cudaError_t invalid_ptx(const Device& device, const Program& program, const SyntaxError& error) {
  return fail(program, cudaErrorInvalidPtx,
              "PTX line " + std::to_string(error.line) + " of the program's " +
                  choose_ptx(program.entries, device.capability())->target() + ": " + error.what);
}

cudaError_t load_now(Runtime& runtime, Program& program) {
  const Device& device = runtime.device();
  const FatbinEntry* entry = choose_ptx(program.entries, device.capability());
  if (!entry) return no_ptx(device, program);
  program.ptx_arch = entry->arch;
  const FatbinEntry* code = choose_machine_code(program.entries, device.capability());
  try {
    if (code) program.registers = register_counts(contents(*code));
    program.module =
        parse_ptx(module_text(runtime.settings, *entry), program.image.empty() ? Bodies::later : Bodies::now);
    program.module->origin = runtime.settings.ptx.empty() ? file_of(program) : runtime.settings.ptx;
    place_variables(runtime, program);
  } catch (const FatbinError& error) {
    return fail(program, cudaErrorInvalidKernelImage, error.what());
  } catch (const SyntaxError& error) {
    return invalid_ptx(device, program, error);
  } catch (const std::invalid_argument& error) {
    return fail(program, cudaErrorInvalidPtx, error.what());
  }
  return cudaSuccess;
}

}  // namespace

Program* Programs::add(const void* pointer) {
  auto program = std::make_unique<Program>();
  Wrapper wrapper;
  std::memcpy(&wrapper, pointer, sizeof wrapper);
  try {
    if (wrapper.magic != kWrapperMagic) throw FatbinError("a fatbin with an unknown wrapper was registered");
    if (wrapper.version != kWrapperVersion) {
      throw FatbinError(
          "the program was linked with -rdc=true, so it holds machine code only: build it without");
    }
    program->entries = read_fatbin(wrapper.data, fatbin_bytes(wrapper.data));
  } catch (const FatbinError& error) {
    program->state = Program::State::failed;
    program->failure = cudaErrorInvalidKernelImage;
    program->why = error.what();
  }
  programs_.push_back(std::move(program));
  return programs_.back().get();
}

void Programs::add_kernel(Program* program, const void* host, const std::string& name) {
  auto kernel = std::make_unique<CUkern_st>();
  kernel->program = program;
  kernel->name = name;
  kernels_[host] = kernels_[kernel.get()] = kernel.get();
  program->kernels.push_back(std::move(kernel));
}

void Programs::add_variable(Program* program, const void* host, const DeviceVariable& variable) {
  variables_[host] = {program, program->variables.size()};
  program->variables.push_back(variable);
}

Program* Programs::adopt(std::unique_ptr<Program> program) {
  for (const auto& function : program->module->functions) {
    auto kernel = std::make_unique<CUkern_st>();
    if (!function->entry) continue;
    kernel->program = program.get();
    kernel->name = function->name;
    kernels_[kernel.get()] = kernel.get();
    program->kernels.push_back(std::move(kernel));
  }
  programs_.push_back(std::move(program));
  return programs_.back().get();
}

void Programs::drop_handles(const Program& program) {
  for (const auto& kernel : program.kernels) kernels_.erase(kernel.get());
}

CUkern_st* Programs::kernel(const void* function) const {
  const auto found = kernels_.find(function);
  return found == kernels_.end() ? nullptr : found->second;
}

cudaError_t Programs::load(Runtime& runtime, Program& program) {
  if (!program.why.empty()) return refuse(program.failure, program.why);
  if (program.state == Program::State::registered) {
    program.failure = load_now(runtime, program);
    program.state = program.failure == cudaSuccess ? Program::State::loaded : Program::State::failed;
    // Host code names a managed variable by where it lies.
    for (size_t i = 0; i < program.variables.size() && program.failure == cudaSuccess; ++i) {
      if (program.variables[i].managed) variables_[*program.variables[i].managed] = {&program, i};
    }
  }
  return program.failure;
}

// Registers of a thread where no machine code tells. ptxas gives the threads of a kernel with
// setmaxnreg as many as its largest block allows, in eights. Of other kernels nobody knows: 0.
static int registers_to_move(const Function& function) {
  const bool moves = std::any_of(function.body.begin(), function.body.end(),
                                 [](const Statement& s) { return s.opcode == "setmaxnreg"; });
  const int* const threads = function.max_threads[0] ? function.max_threads : function.required_threads;
  const int count = threads[0] * std::max(1, threads[1]) * std::max(1, threads[2]);
  return moves && count > 0 ? std::min(kRegistersPerMultiprocessor / count / 8 * 8, 255) : 0;
}

cudaError_t Programs::ready(Runtime& runtime, CUkern_st& kernel) {
  if (kernel.code) return cudaSuccess;
  if (const cudaError_t error = load(runtime, *kernel.program)) return error;
  try {
    parse_body(*kernel.program->module, kernel.name);
  } catch (const SyntaxError& error) {
    return invalid_ptx(runtime.device(), *kernel.program, error);
  }
  const Function* function = kernel.program->module->find(kernel.name);
  if (!function || !function->entry) {
    return refuse(cudaErrorInvalidDeviceFunction, "the program's PTX has no kernel " + kernel.name);
  }
  kernel.code = decode(*kernel.program->module, *function, all_forms(), kernel.program->symbols);
  if (runtime.trace) runtime.trace->attach(*kernel.code);
  kernel.function = function;
  const auto registers = kernel.program->registers.find(kernel.name);
  kernel.registers =
      registers != kernel.program->registers.end() ? registers->second : registers_to_move(*function);
  return cudaSuccess;
}

cudaError_t Programs::variable(Runtime& runtime, const void* host, uint64_t* address, size_t* bytes) {
  const auto found = variables_.find(host);
  if (found == variables_.end()) return cudaErrorInvalidSymbol;
  auto [program, index] = found->second;
  if (const cudaError_t error = load(runtime, *program)) return error;
  const DeviceVariable& variable = program->variables[index];
  const auto symbol = program->symbols.find(variable.name);
  if (symbol == program->symbols.end()) return cudaErrorInvalidSymbol;
  *address = symbol->second;
  *bytes = variable.bytes;
  return cudaSuccess;
}

bool Programs::all_fit(int capability) const {
  for (const auto& program : programs_) {
    bool any = false;
    for (const FatbinEntry& entry : program->entries) any = any || entry.kind == FatbinEntry::Kind::ptx;
    if (any && !choose_ptx(program->entries, capability)) return false;
  }
  return true;
}

}  // namespace gg::emu
