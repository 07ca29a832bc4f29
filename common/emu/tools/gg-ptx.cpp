// SPDX-License-Identifier: MIT
//
// gg-ptx runs kernels of a PTX file by themselves: the file, buffers from .npy files, launches. All
// that may be wrong with any launch is said before the first one runs.

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <string>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/report/count_report.h"
#include "common/emu/core/report/trace.h"
#include "common/emu/core/state/host_memory.h"
#include "common/emu/core/state/module.h"
#include "common/emu/core/state/progress.h"
#include "common/emu/cudart/encode_map.h"
#include "common/emu/cudart/played_device.h"
#include "common/emu/tools/gg_ptx_buffers.h"
#include "common/emu/tools/gg_ptx_command.h"
#include "common/emu/tools/gg_ptx_values.h"
#include "common/harness/base/files.h"
#include "common/kernel/error.h"

namespace gg::emu {
namespace {

std::string text(const Dimensions& d) { return gg::format("%d,%d,%d", d.x[0], d.x[1], d.x[2]); }
int64_t product(const int (&x)[3]) { return int64_t(x[0]) * x[1] * x[2]; }

// ---- the file, and the device it runs on ----

std::unique_ptr<Module> read_module(const std::string& path) {
  std::string source;
  if (!read_file(path, source))
    refuse(path, "cannot be read: " + std::string(std::strerror(errno ? errno : EIO)));
  try {
    std::unique_ptr<Module> module = parse_ptx(source);
    module->origin = path;
    return module;
  } catch (const SyntaxError& error) {
    refuse(path + ":" + std::to_string(error.line), error.what);
  }
}

// "sm_90a" -> 90 and 'a'.
int capability_of(const std::string& target, char* suffix) {
  int capability = 0, used = 0;
  *suffix = 0;
  const int fields = std::sscanf(target.c_str(), "sm_%d%n", &capability, &used);
  if (fields == 1 && size_t(used) < target.size()) *suffix = target[size_t(used)];
  return fields == 1 ? capability : 0;
}

// PTX runs on later devices too; that with a suffix on its own kind only, with f also on later ones
// of its family.
bool runs_on(const std::string& target, int capability) {
  char suffix;
  const int of = capability_of(target, &suffix);
  if (of == 0 || suffix == 'a') return of == capability;
  if (suffix == 'f') return of / 10 == capability / 10 && of <= capability;
  return of <= capability;
}

std::string choose_arch(const Command& command, const Module& module) {
  if (!command.arch.empty()) return command.arch;
  for (const char* arch : {"80", "90a", "100a"}) {
    if (runs_on(module.target, std::atoi(arch))) return arch;
  }
  refuse(command.file, "its .target " + module.target +
                           " is none that sm_80, sm_90a or sm_100a devices run; --arch overrides it");
}

const Device& choose_device(const Command& command, const Module& module) {
  const std::string arch = choose_arch(command, module);
  const Device& device = *find_device(!command.like.empty() ? command.like
                                      : arch == "100a"      ? "b200"
                                                            : "h200");
  if (!runs_on("sm_" + arch, device.capability())) {
    refuse("--like " + command.like, "is a device of compute capability " + std::to_string(device.major) +
                                         "." + std::to_string(device.minor) +
                                         " and does not run PTX for sm_" + arch);
  }
  return device;
}
// ---- launches ----

class Launches {
 public:
  Launches(const Command& command, const Module& module, const Device& device, GlobalMemory& memory,
           const Buffers& buffers)
      : command_(command), module_(module), device_(device), memory_(memory), buffers_(buffers) {}

  void prepare(const std::map<std::string, uint64_t>& symbols, Trace* trace) {
    trace_ = trace;
    for (const LaunchSpec& spec : command_.launches) {
      const Function& kernel = find(spec.entry);
      std::unique_ptr<Code>& code = codes_[&kernel];
      if (!code) {
        code = decode(module_, kernel, all_forms(), symbols);
        if (trace) trace->attach(*code);
      }
      Launch launch;
      launch.code = code.get();
      launch.dynamic_shared = spec.shared_bytes;
      const Dimensions cluster = cluster_of(spec, kernel);
      std::copy(spec.grid->x, spec.grid->x + 3, launch.grid);
      std::copy(spec.block->x, spec.block->x + 3, launch.block);
      std::copy(cluster.x, cluster.x + 3, launch.cluster);
      check_block(spec, kernel);
      check_grid(spec, cluster);
      check_shared(spec, *code);
      launch.params = parameters(spec, kernel);
      launches_.push_back(launch);
    }
  }

  void run(Counts* counts) {
    RunOptions options = command_.run;
    options.multiprocessors = device_.multiprocessors;
    for (size_t i = 0; i < launches_.size(); ++i) {
      const Trace::Recording recording(trace_, launches_[i]);
      const ProgressPart part(format("launch %zu of %zu", i + 1, launches_.size()));
      run_launch(launches_[i], memory_, options, counts);
    }
  }

 private:
  const Function& find(const std::string& entry) const {
    std::string kernels;
    for (const auto& function : module_.functions) {
      if (!function->entry || function->declared_only) continue;
      if (function->name == entry) return *function;
      kernels += (kernels.empty() ? "" : ", ") + function->name;
    }
    refuse("launch of " + entry,
           command_.file + " has " + (kernels.empty() ? "no kernels" : "the kernels " + kernels));
  }

  static std::string what(const LaunchSpec& spec) { return "launch of " + spec.entry; }

  Dimensions cluster_of(const LaunchSpec& spec, const Function& kernel) const {
    Dimensions required;
    const bool fixed = kernel.required_cluster[0] > 0;
    if (fixed) std::copy(kernel.required_cluster, kernel.required_cluster + 3, required.x);
    const Dimensions cluster = spec.cluster.value_or(required);
    if (fixed && !std::equal(cluster.x, cluster.x + 3, required.x)) {
      refuse(what(spec), "--cluster " + text(cluster) + " differs from the kernel's .reqnctapercluster " +
                             text(required));
    }
    if (kernel.explicit_cluster && !fixed && !spec.cluster) {
      refuse(what(spec), "the kernel is .explicitcluster: --cluster X,Y,Z is missing");
    }
    if (kernel.blocks_are_clusters)
      refuse(what(spec), "the kernel is .blocksareclusters, which the emulator does not know");
    const int64_t blocks = product(cluster.x);
    if (blocks > 1 && !device_.clusters) refuse(what(spec), std::string(device_.name) + " has no clusters");
    const int64_t most = kernel.max_cluster > 0 ? kernel.max_cluster : kLargestCluster;
    if (blocks > most) {
      refuse(what(spec), "--cluster " + text(cluster) + " is " + std::to_string(blocks) + " blocks, " +
                             std::to_string(most) + " at most");
    }
    return cluster;
  }

  // Refuses a dimension above its limit: `attributes` has an attribute for each dimension.
  void check_limits(const LaunchSpec& spec, const char* option, const Dimensions& d,
                    const cudaDeviceAttr (&attributes)[3]) const {
    for (int i = 0; i < 3; ++i) {
      int most = 0;
      device_attribute(device_, attributes[i], &most);
      if (d.x[i] > most) {
        refuse(what(spec),
               std::string(option) + " " + text(d) + ": " + "xyz"[i] + " is at most " + std::to_string(most));
      }
    }
  }

  void check_block(const LaunchSpec& spec, const Function& kernel) const {
    const Dimensions& block = *spec.block;
    check_limits(spec, "--block", block,
                 {cudaDevAttrMaxBlockDimX, cudaDevAttrMaxBlockDimY, cudaDevAttrMaxBlockDimZ});
    const int64_t threads = product(block.x);
    const auto exceeds = [&](int64_t most, const std::string& whose) {
      if (threads > most) {
        refuse(what(spec), "--block " + text(block) + " is " + std::to_string(threads) + " threads, " +
                               whose + " " + std::to_string(most) + " at most");
      }
    };
    exceeds(kThreadsPerBlock, "a block has");
    if (kernel.max_threads[0] > 0) exceeds(product(kernel.max_threads), "the kernel's .maxntid allows");
    if (kernel.required_threads[0] > 0 && !std::equal(block.x, block.x + 3, kernel.required_threads)) {
      Dimensions required;
      std::copy(kernel.required_threads, kernel.required_threads + 3, required.x);
      refuse(what(spec), "--block " + text(block) + " differs from the kernel's .reqntid " + text(required));
    }
  }

  void check_grid(const LaunchSpec& spec, const Dimensions& cluster) const {
    check_limits(spec, "--grid", *spec.grid,
                 {cudaDevAttrMaxGridDimX, cudaDevAttrMaxGridDimY, cudaDevAttrMaxGridDimZ});
    for (int i = 0; i < 3; ++i) {
      if (spec.grid->x[i] % cluster.x[i] == 0) continue;
      refuse(what(spec),
             "--grid " + text(*spec.grid) + " is no whole number of clusters of " + text(cluster));
    }
  }

  void check_shared(const LaunchSpec& spec, const Code& code) const {
    const int64_t bytes = code.shared_bytes + spec.shared_bytes;
    if (bytes > device_.shared_per_block_optin) {
      refuse(what(spec), "a block needs " + std::to_string(code.shared_bytes) +
                             " bytes of shared memory and --smem " + std::to_string(spec.shared_bytes) +
                             ", " + device_.name + " has " + std::to_string(device_.shared_per_block_optin));
    }
  }

  std::vector<uint8_t> parameters(const LaunchSpec& spec, const Function& kernel) {
    return spec.argument_file.empty() ? from_arguments(spec, kernel) : from_file(spec, kernel);
  }

  std::vector<uint8_t> from_arguments(const LaunchSpec& spec, const Function& kernel) {
    if (spec.arguments.size() != kernel.params.size()) {
      refuse(what(spec), "the kernel has " + std::to_string(kernel.params.size()) + " parameters" +
                             signature(kernel) + ", " + std::to_string(spec.arguments.size()) +
                             " --arg are given");
    }
    std::vector<uint8_t> block(size_t(kernel.param_bytes), 0);
    for (size_t i = 0; i < kernel.params.size(); ++i) {
      const Variable& p = kernel.params[i];
      std::vector<uint8_t> bytes = bytes_of(spec.arguments[i]);
      const bool by_address = spec.arguments[i].kind == Argument::Kind::map && p.bytes == 8;
      if (by_address) bytes = in_memory(bytes);
      if (int64_t(bytes.size()) != p.bytes) {
        refuse(what(spec), spec.arguments[i].text + " is " + std::to_string(bytes.size()) +
                               " bytes, parameter " + std::to_string(i) + " (" + p.name + ") has " +
                               std::to_string(p.bytes));
      }
      std::memcpy(block.data() + p.offset, bytes.data(), bytes.size());
    }
    return block;
  }

  static std::string signature(const Function& kernel) {
    std::string list;
    for (const Variable& p : kernel.params) list += (list.empty() ? " (" : ", ") + std::to_string(p.bytes);
    return list.empty() ? "" : list + " bytes)";
  }

  // Hosts may pad the block to its alignment, which is 8 or the largest of a parameter's.
  std::vector<uint8_t> from_file(const LaunchSpec& spec, const Function& kernel) {
    std::string content;
    const std::string& path = spec.argument_file;
    if (!read_file(path, content))
      refuse(path, "cannot be read: " + std::string(std::strerror(errno ? errno : EIO)));
    int64_t align = 8;
    for (const Variable& p : kernel.params) align = std::max(align, p.align);
    const int64_t least = kernel.param_bytes, most = (least + align - 1) / align * align,
                  has = int64_t(content.size());
    if (has < least || has > most) {
      refuse(what(spec), path + " has " + std::to_string(has) + " bytes, the parameters" + signature(kernel) +
                             " are " + std::to_string(least));
    }
    std::vector<uint8_t> block(content.begin(), content.begin() + least);
    for (const Patch& patch : spec.patches) {
      const std::vector<uint8_t> bytes = bytes_of(patch.value);
      if (patch.offset + bytes.size() > block.size()) {
        refuse(patch.value.text, "ends at byte " + std::to_string(patch.offset + bytes.size()) + " of " +
                                     std::to_string(block.size()) + " of the parameters");
      }
      std::memcpy(block.data() + patch.offset, bytes.data(), bytes.size());
    }
    return block;
  }

  std::vector<uint8_t> bytes_of(const Argument& a) const {
    if (a.kind == Argument::Kind::map) return encode(a);
    const uint64_t bits = a.kind == Argument::Kind::pointer ? buffers_.address_of(a.text, a.pointer) : a.bits;
    std::vector<uint8_t> bytes(size_t(a.bytes), 0);
    std::memcpy(bytes.data(), &bits, bytes.size());
    return bytes;
  }

  std::vector<uint8_t> encode(const Argument& a) const {
    const MapSpec& m = a.map;
    TiledArguments t{};
    t.type = CUtensorMapDataType(m.type);
    t.rank = cuuint32_t(m.dims.size());
    t.address = reinterpret_cast<const void*>(buffers_.address_of(a.text, m.base));
    const std::vector<cuuint64_t> dims(m.dims.begin(), m.dims.end()),
        strides(m.strides.begin(), m.strides.end());
    t.dims = dims.data();
    t.strides = strides.data();
    t.box = m.box.data();
    t.element_strides = m.element_strides.data();
    t.interleave = CUtensorMapInterleave(m.interleave);
    t.swizzle = CUtensorMapSwizzle(m.swizzle);
    t.promotion = CUtensorMapL2promotion(m.promotion);
    t.fill =
        m.nan_fill ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    TensorMap map;
    std::string why;
    if (encode_tiled(t, device_.capability(), &map, &why) != CUDA_SUCCESS) refuse(a.text, why);
    std::vector<uint8_t> bytes(kTensorMapBytes);
    encode_tensor_map(map, bytes.data());
    return bytes;
  }

  std::vector<uint8_t> in_memory(const std::vector<uint8_t>& bytes) {
    const uint64_t address = memory_.allocate(bytes.size());
    if (!address) throw std::bad_alloc();
    std::memcpy(memory_.unchecked(address), bytes.data(), bytes.size());
    std::vector<uint8_t> pointer(sizeof address);
    std::memcpy(pointer.data(), &address, sizeof address);
    return pointer;
  }

  const Command& command_;
  const Module& module_;
  const Device& device_;
  GlobalMemory& memory_;
  const Buffers& buffers_;
  Trace* trace_ = nullptr;
  std::map<const Function*, std::unique_ptr<Code>> codes_;
  std::vector<Launch> launches_;
};

void write_trace(const Command& command, const Trace& trace) {
  if (command.trace.empty()) return;
  std::fflush(stdout);
  write_file(command.trace, trace.json());
  std::fprintf(stderr, "gg-ptx: %s: %s\n", command.trace.c_str(), trace.summary().c_str());
}

void run(const Command& command) {
  if (!command.trace.empty()) require_writable(command.trace);
  if (!command.line_counts.empty()) require_writable(command.line_counts);
  const std::unique_ptr<Module> module = read_module(command.file);
  const Device& device = choose_device(command, *module);
  GlobalMemory memory;
  Buffers buffers(memory);
  buffers.make(command.buffers);
  std::map<std::string, uint64_t> symbols;
  try {
    symbols = place_variables(*module, memory);
  } catch (const std::invalid_argument& error) {
    refuse(command.file, error.what());
  }
  Launches launches(command, *module, device, memory, buffers);
  Trace trace;
  launches.prepare(symbols, command.trace.empty() ? nullptr : &trace);
  Counts counts;
  ProgressLine::get().set_patience(command.progress_after);
  try {
    launches.run(&counts);
  } catch (const Fault&) {  // what led to it
    write_trace(command, trace);
    throw;
  }
  std::fflush(stdout);
  buffers.write_outputs();
  write_trace(command, trace);
  if (command.report) print_report(stderr, counts);
  if (!command.line_counts.empty()) write_file(command.line_counts, line_counts_csv(counts));
}

int say(const char* what, Exit code) {
  std::fflush(stdout);
  std::fprintf(stderr, "gg-ptx: %s\n", what);
  return int(code);
}

}  // namespace
}  // namespace gg::emu

int main(int argc, char** argv) {
  using namespace gg::emu;
  try {
    const Command command = parse_command(argc, argv);
    if (command.help) {
      std::fputs(gg_ptx_help().c_str(), stdout);
    } else {
      run(command);
    }
  } catch (const gg::Error& error) {
    return say(error.what(), error.code);
  } catch (const Fault& fault) {
    std::fflush(stdout);
    std::fputs(fault.what(), stderr);
    return int(gg::Exit::device_error);
  } catch (const std::bad_alloc&) {
    return say(gg::format("not enough memory, %zu bytes are free", free_host_bytes()).c_str(),
               gg::Exit::no_memory);
  } catch (const std::exception& error) {
    return say(error.what(), gg::Exit::device_error);
  }
  return int(gg::Exit::ok);
}
