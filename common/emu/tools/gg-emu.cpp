// SPDX-License-Identifier: MIT
//
// gg-emu PROGRAM ARGS...: runs a program that links the CUDA runtime as a shared library on the
// emulator. It only puts the emulator's libcudart.so.13 before the real one and its options
// into the environment.

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/emu/core/state/faults.h"
#include "common/emu/core/state/left_out.h"
#include "common/emu/cudart/settings.h"
#include "common/emu/tools/elf.h"
#include "common/harness/base/files.h"

namespace {

using gg::emu::Elf;
using gg::emu::read_elf;
using gg::emu::Setting;
using Takes = Setting::Takes;

constexpr char kRuntime[] = "libcudart.so.13", kDriver[] = "libcuda.so.1";

struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An option of the help: what is said of it begins in column 30, on every line.
void print_option(const std::string& option, const std::string& what) {
  constexpr int kColumn = 30;
  std::printf("  %-*s", kColumn - 2, option.c_str());
  for (const char c : what) {
    std::putchar(c);
    if (c == '\n') std::printf("%*s", kColumn, "");
  }
  std::putchar('\n');
}

void print_help() {
  std::printf(
      "gg-emu [options] PROGRAM ARGS...\n"
      "Runs a program that was linked with the shared CUDA runtime (nvcc -cudart shared) without a GPU: its "
      "PTX is\n"
      "executed by the emulator, which checks every step.\n\n");
  for (const Setting& setting : gg::emu::user_settings())
    print_option(std::string(setting.option) + (*setting.value ? " " : "") + setting.value, setting.what);
  print_option("--help", "this text");
  std::printf(
      "\nThe options reach the program in variables of its environment. A program that finds the emulator "
      "without "
      "gg-emu,\n"
      "such as a chapter with --device emu, takes them from there too:\n");
  for (const Setting& setting : gg::emu::user_settings())
    print_option(setting.variable, setting.takes == Takes::nothing ? "1" : setting.value);
  std::printf("\nA fault ends the program with code 3. The kinds, with a * those that can be allowed:\n");
  std::fputs(gg::emu::fault_kinds_help().c_str(), stdout);
}

// The value for the variable of a setting: the option's value, a file's name made absolute.
// `before`: the values of the same option so far, with commas.
std::string variable_of(const Setting& setting, const std::string& value, const std::string& before) {
  gg::emu::Settings unused;
  if (setting.takes == Takes::nothing) return "1";
  if (setting.takes == Takes::new_file) gg::require_writable(value);
  if (setting.takes == Takes::file && access(value.c_str(), R_OK) != 0)
    throw UsageError(value + ": cannot be read");
  setting.take(unused, setting.option, value);
  if (setting.takes == Takes::list) return before + (before.empty() ? "" : ",") + value;
  if (setting.takes == Takes::value) return value;
  return std::filesystem::absolute(value);
}

// The options before PROGRAM, into the environment; the index of PROGRAM.
int take_options(int argc, char** argv) {
  int at = 1;
  std::map<std::string, std::string> taken;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    const std::string option = argv[at];
    if (option == "--help") {
      print_help();
      std::exit(0);
    }
    const auto settings = gg::emu::user_settings();
    const auto setting = std::find_if(settings.begin(), settings.end(),
                                      [&](const Setting& each) { return option == each.option; });
    if (setting == settings.end())
      throw UsageError("there is no option " + option + ": gg-emu --help lists them");
    std::string value;
    if (setting->takes != Takes::nothing) {
      if (at + 1 >= argc) throw UsageError(option + " wants a value");
      value = argv[++at];
      if (value.empty()) throw UsageError(option + " wants a value, and \"\" is none");
    }
    std::string& variable = taken[option];
    variable = variable_of(*setting, value, variable);
    setenv(setting->variable, variable.c_str(), 1);
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

std::filesystem::path emulator_folder() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return self.parent_path().parent_path() / "lib" / "emu";
}

// common/emu/foreign has the driver's library.
bool has_driver() { return std::filesystem::exists(emulator_folder() / kDriver); }

bool starts_with_one_of(const std::string& name, std::initializer_list<const char*> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](const char* start) { return name.rfind(start, 0) == 0; });
}

// Programs that load what uses CUDA later, or through a library of their own, are let through: only
// what can't work is not.
void check_runtime(const std::string& path, const Elf& elf) {
  bool uses_libraries = false, uses_driver = false;
  for (const std::string& library : elf.libraries) {
    if (library == kRuntime) return;
    uses_driver = uses_driver || library == kDriver;
    if (library.rfind("libcudart.so.", 0) == 0) {
      throw UsageError(path + " wants " + library + ", the emulator is " + kRuntime +
                       ": build it with CUDA 13");
    }
    // Anything beyond the C and C++ libraries and the sanitizers' may bring the runtime along.
    uses_libraries =
        uses_libraries ||
        !starts_with_one_of(library, {"libc.so", "libstdc++", "libm.so", "libgcc_s", "libpthread", "libdl",
                                      "librt", "ld-linux", "libasan", "libubsan"});
  }
  if (uses_driver) return;  // the emulator's has all that the emulator has
  if (!uses_libraries)
    throw UsageError(path + " does not link " + kRuntime + ": build it with nvcc -cudart shared");
  std::fprintf(stderr,
               "gg-emu: %s does not itself link %s; it runs on the emulator only if a library of its does\n",
               path.c_str(), kRuntime);
}

// A program may link such a library and call it on some of its ways only.
void warn_of_libraries(const std::string& path, const Elf& elf) {
  for (const std::string& library : elf.libraries) {
    if (!starts_with_one_of(library, {"libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver",
                                      "libcusparse", "libcutensor", "libnccl", "libnpp", "libnvjpeg"}))
      continue;
    std::fprintf(
        stderr,
        "gg-emu: %s links %s, whose kernels are machine code of a GPU: its calls fail here. Run without "
        "them, or on a GPU\n",
        path.c_str(), library.c_str());
  }
}

// Functions of the driver's interface that the program calls and the emulator does not have. Where
// the linker looks for them at the first call, a program may never come to it.
void check_driver(const std::string& path, const Elf& elf) {
  if (std::find(elf.libraries.begin(), elf.libraries.end(), kDriver) == elf.libraries.end()) return;
  if (!has_driver())
    throw UsageError(path + " links " + kDriver + ": " + gg::emu::left_out("the driver's interface"));
  std::set<std::string> known;
  for (const char* const library : {kDriver, kRuntime}) {
    if (const auto ours = read_elf(emulator_folder() / library))
      known.insert(ours->defined.begin(), ours->defined.end());
  }
  std::string missing;
  for (const std::string& name : elf.undefined) {
    const bool drivers = name.size() > 2 && name.rfind("cu", 0) == 0 && std::isupper(name[2]);
    if (drivers && !known.count(name)) missing += (missing.empty() ? "" : ", ") + name;
  }
  if (missing.empty()) return;
  const std::string sentence =
      path + " calls " + missing +
      " of the driver's interface, which the emulator does not have. Load and launch "
      "kernels through the runtime (<<<>>>, cudaLaunchKernel), or give their PTX to "
      "gg-ptx";
  if (elf.binds_now) throw UsageError(sentence);
  std::fprintf(stderr, "gg-emu: %s\n", sentence.c_str());
}

// Loaded before all else that a program wants, a library is found where one of its name is looked
// for. A program with a DT_RPATH, which conda's compilers write, would look there before
// LD_LIBRARY_PATH. One that compiles with NVRTC finds the emulator's libcuda.so.1 before it, where
// it asks for machine code: see common/emu/foreign/cudart/nvrtc.cpp.
void preload(const std::string& path, const Elf& elf) {
  const bool compiles =
      std::any_of(elf.libraries.begin(), elf.libraries.end(),
                  [](const std::string& library) { return library.rfind("libnvrtc.so.", 0) == 0; });
  if (!elf.rpath && !compiles) return;
  if (compiles && !has_driver())
    throw UsageError(path + " links NVRTC: " + gg::emu::left_out("what gives it PTX for machine code"));
  const std::string folder = emulator_folder().string();
  if (folder.find_first_of(" :") != std::string::npos) {
    std::fprintf(stderr,
                 "gg-emu: LD_PRELOAD takes no folder with a space or a colon, such as %s, and %s %s: %s\n",
                 folder.c_str(), path.c_str(),
                 elf.rpath ? "has a DT_RPATH, which goes before LD_LIBRARY_PATH" : "links NVRTC",
                 elf.rpath ? "link it with -Wl,--enable-new-dtags" : "put the emulator elsewhere");
    return;
  }
  std::string first;
  for (const std::string& library : elf.libraries) {
    // It wants to be the first of all.
    if (library.rfind("libasan.so", 0) == 0) first += library + ":";
  }
  if (elf.rpath) first += folder + "/" + kRuntime + ":";
  if (has_driver()) first += folder + "/" + kDriver;
  const char* const others = std::getenv("LD_PRELOAD");
  setenv("LD_PRELOAD", (others && *others ? first + ":" + others : first).c_str(), 1);
}

void check_program(const std::string& path) {
  const auto elf = read_elf(path);
  if (!elf) return;  // a script: what it starts may well link the runtime
  check_runtime(path, *elf);
  preload(path, *elf);
  warn_of_libraries(path, *elf);
  check_driver(path, *elf);
}

void put_runtime_first() {
  const std::filesystem::path folder = emulator_folder();
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
