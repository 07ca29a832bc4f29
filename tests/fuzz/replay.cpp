// SPDX-License-Identifier: MIT
//
// Stands in for libFuzzer where a compiler has none: runs the fuzzer once over each file of the
// folders named, in at most 1 GiB of memory.

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
#ifndef __SANITIZE_ADDRESS__  // its shadow counts as data
  constexpr rlimit kMemory{1 << 30, 1 << 30};
  if (setrlimit(RLIMIT_DATA, &kMemory) != 0) return 1;
#endif
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    for (const auto& file : std::filesystem::directory_iterator(argv[i])) files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::printf("%s\n", path.c_str());  // the last one named is the one that crashed
    std::fflush(stdout);
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty();
}
