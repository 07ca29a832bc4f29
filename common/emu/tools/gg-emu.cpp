// SPDX-License-Identifier: MIT
//
// gg-emu PROGRAM ARGS...: runs a program that links the CUDA runtime as a shared library on the emulator. It
// only puts the emulator's libcudart.so.13 before the real one and its options into the environment.

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/emu/runtime/settings.h"
#include "common/emu/state/faults.h"

namespace {

constexpr char kRuntime[] = "libcudart.so.13";

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void print_help() {
  std::printf(
      "gg-emu [options] PROGRAM ARGS...\n"
      "Runs a program that was linked with the shared CUDA runtime (nvcc -cudart shared) without a GPU: its "
      "PTX is\n"
      "executed by the emulator, which checks every step.\n\n"
      "  --like a100|h100|h200|b200  the device it plays; default h200, or b200 for a program that holds "
      "only sm_100a PTX\n"
      "  --order S[:fair|skew]       order of warps and of asynchronous effects, default 0:fair\n"
      "  --report                    counts of each kernel on stderr when the program ends\n"
      "  --allow KIND[,KIND]         warn about these faults and go on, as hardware does: kinds with a * "
      "below\n"
      "  --trace FILE                what each warp did, for chrome://tracing and Perfetto: load, mma, wait, "
      "epilogue,\n"
      "                              other. The axis is issue order, 1 us for each warp instruction, not "
      "time\n"
      "  --line-counts FILE          how often warps executed each line of PTX, as CSV\n"
      "  --multiprocessors N         the device has N of them and not its own number: programs that fill a "
      "device end sooner\n"
      "  --help                      this text\n\n"
      "A fault ends the program with code 3. The kinds, with a * those that can be allowed:\n");
  std::fputs(gg::emu::fault_kinds_help().c_str(), stdout);
}

// The options before PROGRAM, into the environment; the index of PROGRAM.
int take_options(int argc, char** argv) {
  int at = 1;
  std::string allowed;  // by all --allow together
  const auto value = [&](const std::string& option) -> std::string {
    if (at + 1 >= argc) throw UsageError(option + " wants a value");
    if (argv[++at][0] == '\0') throw UsageError(option + " wants a value, and \"\" is none");
    return argv[at];
  };
  for (; at < argc && argv[at][0] == '-'; ++at) {
    const std::string option = argv[at];
    if (option == "--help") {
      print_help();
      std::exit(0);
    } else if (option == "--like") {
      const std::string device = value(option);
      gg::emu::check_like(option, device);
      setenv("GG_EMU_LIKE", device.c_str(), 1);
    } else if (option == "--order") {
      const std::string order = value(option);
      gg::emu::parse_order(option, order);
      setenv("GG_EMU_ORDER", order.c_str(), 1);
    } else if (option == "--allow") {
      const std::string kinds = value(option);
      gg::emu::parse_allowed(option, kinds);
      allowed += (allowed.empty() ? "" : ",") + kinds;
      setenv("GG_EMU_ALLOW", allowed.c_str(), 1);
    } else if (option == "--multiprocessors") {
      const std::string count = value(option);
      gg::emu::parse_multiprocessors(option, count);
      setenv("GG_EMU_MULTIPROCESSORS", count.c_str(), 1);
    } else if (option == "--report") {
      setenv("GG_EMU_REPORT", "1", 1);
    } else if (option == "--trace") {
      const std::string file = value(option);
      gg::require_writable(file);
      setenv("GG_EMU_TRACE", std::filesystem::absolute(file).c_str(), 1);
    } else if (option == "--line-counts") {
      const std::string file = value(option);
      gg::require_writable(file);
      setenv("GG_EMU_LINE_COUNTS", std::filesystem::absolute(file).c_str(), 1);
    } else {
      throw UsageError("there is no option " + option + ": gg-emu --help lists them");
    }
  }
  if (at >= argc) throw UsageError("no program is named: gg-emu [options] PROGRAM ARGS...");
  return at;
}

// A program's file, looked for as execvp does; empty if there is none.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), R_OK) == 0 ? name : "";
  const char* const path = std::getenv("PATH");
  const std::string folders = path ? path : "";
  for (size_t at = 0; at <= folders.size();) {
    const size_t colon = std::min(folders.find(':', at), folders.size());
    const std::string file = folders.substr(at, colon - at) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
    at = colon + 1;
  }
  return "";
}

template <class T>
std::optional<T> read(const std::vector<char>& bytes, uint64_t at) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The file offset of a virtual address; 0 if no segment holds it.
uint64_t offset_of(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
      return address - s.p_vaddr + s.p_offset;
  }
  return 0;
}

// Names of the libraries that an ELF file asks for; nothing if it is no 64-bit ELF file.
std::optional<std::vector<std::string>> needed_libraries(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const auto header = read<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    return std::nullopt;
  std::vector<Elf64_Phdr> segments;
  for (int i = 0; i < header->e_phnum; ++i) {
    if (const auto segment = read<Elf64_Phdr>(bytes, header->e_phoff + uint64_t(i) * sizeof(Elf64_Phdr)))
      segments.push_back(*segment);
  }
  std::vector<uint64_t> names;
  uint64_t strings = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = segment.p_offset; at - segment.p_offset < segment.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = read<Elf64_Dyn>(bytes, at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) names.push_back(entry->d_un.d_val);
      if (entry->d_tag == DT_STRTAB) strings = offset_of(segments, entry->d_un.d_ptr);
    }
  }
  std::vector<std::string> libraries;
  for (const uint64_t name : names) {
    const uint64_t at = strings + name;
    const size_t end = at < bytes.size()
                           ? size_t(std::find(bytes.begin() + long(at), bytes.end(), '\0') - bytes.begin())
                           : 0;
    if (end > at) libraries.emplace_back(bytes.data() + at, end - at);
  }
  return libraries;
}

// Programs that load what uses CUDA later, or through a library of their own, are let through: only what
// can't work is not.
void check_program(const std::string& path) {
  const auto libraries = needed_libraries(path);
  if (!libraries) return;  // a script: what it starts may well link the runtime
  constexpr const char* kOfTheCompiler[] = {"libc.so", "libstdc++", "libm.so",  "libgcc_s", "libpthread",
                                            "libdl",   "librt",     "ld-linux", "libasan",  "libubsan"};
  bool uses_libraries = false;
  for (const std::string& library : *libraries) {
    if (library == kRuntime) return;
    if (library.rfind("libcudart.so.", 0) == 0) {
      throw UsageError(path + " wants " + library + ", the emulator is " + kRuntime +
                       ": build it with CUDA 13");
    }
    // Anything beyond the C and C++ libraries and the sanitizers' may bring the runtime along.
    uses_libraries =
        uses_libraries || std::none_of(std::begin(kOfTheCompiler), std::end(kOfTheCompiler),
                                       [&](const char* name) { return library.rfind(name, 0) == 0; });
  }
  if (!uses_libraries)
    throw UsageError(path + " does not link " + kRuntime + ": build it with nvcc -cudart shared");
  std::fprintf(stderr,
               "gg-emu: %s does not itself link %s; it runs on the emulator only if a library of its does\n",
               path.c_str(), kRuntime);
}

void put_runtime_first() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path folder = self.parent_path().parent_path() / "lib" / "emu";
  if (!std::filesystem::exists(folder / kRuntime))
    throw UsageError((folder / kRuntime).string() + " is missing: build the target gg_emu_cudart");
  const char* const others = std::getenv("LD_LIBRARY_PATH");
  const std::string path = folder.string() + (others && *others ? ":" + std::string(others) : "");
  setenv("LD_LIBRARY_PATH", path.c_str(), 1);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int at = take_options(argc, argv);
    const std::string program = find_program(argv[at]);
    if (program.empty()) throw UsageError(std::string("there is no program ") + argv[at]);
    check_program(program);
    put_runtime_first();
    execv(program.c_str(), argv + at);
    throw UsageError(program + " could not be started: " + std::strerror(errno));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gg-emu: %s\n", error.what());
    return 2;
  }
}
