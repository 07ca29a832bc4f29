// SPDX-License-Identifier: MIT
//
// Images that a program loads while it runs: PTX text or a fatbin, by the driver's modules and
// libraries. CUDA Driver API, "Module Management", "Library Management".

#include "common/emu/foreign/cudart/image.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>

namespace gg::emu {
namespace {

constexpr char kElf[] = "\177ELF";

// The structure before a fatbin that nvcc embeds in C++ code.
struct Wrapper {
  int magic, version;
  const uint8_t* data;
};
constexpr int kWrapperMagic = 0x466243B1;

// The PTX's .target as an entry's architecture; false for text that has none.
bool read_target(const std::string& text, FatbinEntry* entry) {
  const char* const word = ".target";
  size_t at = text.find(word);
  while (at != std::string::npos && at > 0 && text[at - 1] != '\n') at = text.find(word, at + 1);
  if (at == std::string::npos) return false;
  at = text.find_first_not_of(" \t", at + std::strlen(word));
  if (at == std::string::npos || text.compare(at, 3, "sm_") != 0) return false;
  for (at += 3; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at) {
    entry->arch = entry->arch % 1000 * 10 + (text[at] - '0');
  }
  entry->specific = at < text.size() && text[at] == 'a';
  entry->family = at < text.size() && text[at] == 'f';
  return entry->arch > 0;
}

// The image behind the wrapper, if it has one.
const uint8_t* unwrapped(const void* image) {
  Wrapper wrapper;
  if (std::memcmp(image, &kWrapperMagic, sizeof kWrapperMagic) != 0)
    return static_cast<const uint8_t*>(image);
  std::memcpy(&wrapper, image, sizeof wrapper);
  return wrapper.data;
}

// Copies the image and lists what it holds. Throws FatbinError for bytes that are no image.
void read_image(const uint8_t* data, Program* program) {
  if (const size_t bytes = fatbin_bytes(data)) {
    program->image.assign(reinterpret_cast<const char*>(data), bytes);
    program->entries = read_fatbin(reinterpret_cast<const uint8_t*>(program->image.data()), bytes);
    return;
  }
  program->image = reinterpret_cast<const char*>(data);
  FatbinEntry ptx;
  ptx.kind = FatbinEntry::Kind::ptx;
  if (!read_target(program->image, &ptx)) throw FatbinError("an image to load is neither PTX nor a fatbin");
  ptx.payload = reinterpret_cast<const uint8_t*>(program->image.data());
  ptx.bytes = ptx.unpacked = program->image.size();
  program->entries = {ptx};
}

// Never destroyed, as Runtime.
std::set<const void*>& all_loaded() {
  static auto* all = new std::set<const void*>;
  return *all;
}

}  // namespace

cudaError_t load_image(Runtime& runtime, const void* image, Program** into, std::string* log) {
  auto program = std::make_unique<Program>();
  const uint8_t* const data = unwrapped(image);
  program->log = log;
  if (std::memcmp(data, kElf, std::strlen(kElf)) == 0) {
    *log =
        "an image to load is a cubin, machine code without the PTX that the emulator runs: load PTX, which "
        "nvcc -ptx makes, or NVRTC for --gpu-architecture=compute_XX (nvrtcGetPTX)";
    return refuse(cudaErrorNoKernelImageForDevice, *log);
  }
  try {
    read_image(data, program.get());
  } catch (const FatbinError& error) {
    *log = error.what();
    return refuse(cudaErrorInvalidKernelImage, error.what());
  }
  if (const cudaError_t error = runtime.programs.load(runtime, *program)) {
    // A text for a later device is no fatbin that lacks something: an H100 says so too.
    const bool is_text = !program->image.empty();
    return is_text && error == cudaErrorNoKernelImageForDevice ? cudaErrorInvalidPtx : error;
  }
  program->log = nullptr;
  *into = runtime.programs.adopt(std::move(program));
  all_loaded().insert(*into);
  return cudaSuccess;
}

Program* loaded(const void* handle) {
  return all_loaded().count(handle) ? static_cast<Program*>(const_cast<void*>(handle)) : nullptr;
}

void unload(Runtime& runtime, Program& program) {
  runtime.programs.drop_handles(program);
  for (const auto& [name, address] : program.symbols) runtime.release(address);
  program.symbols.clear();
  program.entries.clear();
  program.image = {};
  const bool ran = std::any_of(program.kernels.begin(), program.kernels.end(),
                               [](const auto& kernel) { return kernel->code != nullptr; });
  if (!ran) program.module.reset();
  all_loaded().erase(&program);
}

}  // namespace gg::emu
