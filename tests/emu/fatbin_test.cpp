// SPDX-License-Identifier: MIT
//
// The container of PTX: entries, the choice among them, compressed text, and bytes that lie.

#include "common/emu/cudart/fatbin.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "common/emu/cudart/machine_code.h"

namespace {

using gg::emu::choose_ptx;
using gg::emu::FatbinEntry;
using gg::emu::FatbinError;
using gg::emu::ptx_text;
using gg::emu::read_fatbin;
using Bytes = std::vector<uint8_t>;

template <class T>
void put(Bytes& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

constexpr uint64_t kSpecific = 0x100000, kFamily = 0x200000, kZstd = 0x8000, kLz4 = 0x2000;
constexpr uint16_t kPtx = 1, kMachineCode = 2;

Bytes entry(uint16_t kind, uint32_t arch, uint64_t flags, const std::string& payload, uint64_t unpacked = 0) {
  constexpr size_t kHeader = 80;
  const size_t padded = (payload.size() + 7) / 8 * 8;
  Bytes bytes(kHeader + padded, 0);
  put<uint16_t>(bytes, 0, kind);
  put<uint16_t>(bytes, 2, 0x0101);
  put<uint32_t>(bytes, 4, kHeader);
  put<uint64_t>(bytes, 8, padded);
  put<uint32_t>(bytes, 16, unpacked ? uint32_t(payload.size()) : 0);
  put<uint32_t>(bytes, 28, arch);
  put<uint64_t>(bytes, 40, flags);
  put<uint64_t>(bytes, 56, unpacked);
  std::memcpy(bytes.data() + kHeader, payload.data(), payload.size());
  return bytes;
}

Bytes container(const std::vector<Bytes>& entries) {
  Bytes bytes(16, 0);
  for (const Bytes& each : entries) bytes.insert(bytes.end(), each.begin(), each.end());
  put<uint32_t>(bytes, 0, 0xBA55ED50);
  put<uint16_t>(bytes, 4, 1);
  put<uint16_t>(bytes, 6, 16);
  put<uint64_t>(bytes, 8, bytes.size() - 16);
  return bytes;
}

std::vector<FatbinEntry> entries_of(const Bytes& bytes) { return read_fatbin(bytes.data(), bytes.size()); }

std::string error_of(const Bytes& bytes) {
  try {
    for (const FatbinEntry& each : entries_of(bytes)) ptx_text(each);
  } catch (const FatbinError& error) {
    return error.what();
  }
  return "";
}

TEST(Fatbin, ReadsEntriesInOrder) {
  const Bytes bytes =
      container({entry(kMachineCode, 90, kSpecific,
                       "\x7f"
                       "ELF"),
                 entry(kPtx, 90, kSpecific, ".version 9.0\n"), entry(kPtx, 80, 0, ".version 8.0\n")});
  const auto entries = entries_of(bytes);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].target(), "sm_90a");
  EXPECT_EQ(entries[1].target(), "compute_90a");
  EXPECT_EQ(ptx_text(entries[1]), ".version 9.0\n");
  EXPECT_EQ(entries[2].target(), "compute_80");
  EXPECT_EQ(gg::emu::fatbin_bytes(bytes.data()), bytes.size());
}

TEST(Fatbin, ChoosesThePtxOfTheDeviceItself) {
  const Bytes bytes =
      container({entry(kPtx, 90, 0, "base"), entry(kPtx, 80, 0, "old"), entry(kPtx, 90, kSpecific, "hopper"),
                 entry(kPtx, 100, kSpecific, "blackwell"), entry(kPtx, 100, kFamily, "family")});
  const auto entries = entries_of(bytes);
  const auto chosen = [&](int capability) {
    const FatbinEntry* entry = choose_ptx(entries, capability);
    return entry ? ptx_text(*entry) : "none";
  };
  EXPECT_EQ(chosen(90), "hopper");
  EXPECT_EQ(chosen(100), "blackwell");
  EXPECT_EQ(chosen(103), "family");
  EXPECT_EQ(chosen(80), "old");
  EXPECT_EQ(chosen(120), "base");  // not a PTX for 90a or 100a alone
  EXPECT_EQ(chosen(75), "none");
}

TEST(Fatbin, NeverTakesMachineCodeForPtx) {
  const Bytes bytes = container({entry(kMachineCode, 90, 0, "code")});
  EXPECT_EQ(choose_ptx(entries_of(bytes), 90), nullptr);
}

// Compresses with a library's function if the library is here.
template <class Function>
Function* library(const char* name, const char* function) {
  void* const handle = dlopen(name, RTLD_NOW);
  return handle ? reinterpret_cast<Function*>(dlsym(handle, function)) : nullptr;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "add.s32 %r" + std::to_string(i) + ", %r1, %r2;\n";
  return text;
}

TEST(Fatbin, UnpacksZstd) {
  auto* const compress =
      library<size_t(void*, size_t, const void*, size_t, int)>("libzstd.so.1", "ZSTD_compress");
  if (!compress) GTEST_SKIP() << "libzstd.so.1 is not here";
  const std::string text = long_text();
  std::string packed(text.size() + 1000, '\0');
  packed.resize(compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  EXPECT_EQ(ptx_text(entries_of(container({entry(kPtx, 80, kZstd, packed, text.size())}))[0]), text);
  // A size that is not the text's, and bytes that are no zstd.
  EXPECT_NE(error_of(container({entry(kPtx, 80, kZstd, packed, text.size() + 1)})), "");
  EXPECT_NE(error_of(container({entry(kPtx, 80, kZstd, "no zstd at all", 100)})), "");
}

TEST(Fatbin, UnpacksLz4) {
  auto* const compress = library<int(const char*, char*, int, int)>("liblz4.so.1", "LZ4_compress_default");
  if (!compress) GTEST_SKIP() << "liblz4.so.1 is not here";
  const std::string text = long_text();
  std::string packed(text.size() + 1000, '\0');
  packed.resize(size_t(compress(text.data(), packed.data(), int(text.size()), int(packed.size()))));
  EXPECT_EQ(ptx_text(entries_of(container({entry(kPtx, 80, kLz4, packed, text.size())}))[0]), text);
  EXPECT_NE(error_of(container({entry(kPtx, 80, kLz4, packed, text.size() + 1)})), "");
}

TEST(Fatbin, RefusesWhatReachesPastItsEnd) {
  const Bytes good = container({entry(kPtx, 80, 0, "text")});
  EXPECT_EQ(error_of(good), "");
  const auto broken = [&](size_t at, auto value) {
    Bytes bytes = good;
    put(bytes, at, value);
    return error_of(bytes);
  };
  EXPECT_NE(broken(0, uint32_t(0)), "");     // no magic
  EXPECT_NE(broken(4, uint16_t(2)), "");     // another version
  EXPECT_NE(broken(6, uint16_t(8)), "");     // a header smaller than it is
  EXPECT_NE(broken(8, uint64_t(1000)), "");  // more bytes than there are
  EXPECT_NE(broken(8, ~uint64_t(0)), "");
  EXPECT_NE(broken(16 + 4, uint32_t(4)), "");  // an entry's header
  EXPECT_NE(broken(16 + 4, uint32_t(1000)), "");
  EXPECT_NE(broken(16 + 8, uint64_t(1000)), "");  // its payload
  EXPECT_NE(broken(16 + 8, ~uint64_t(0) - 64), "");
  EXPECT_NE(error_of(Bytes(good.begin(), good.end() - 1)), "");
  EXPECT_NE(error_of(Bytes(8, 0)), "");
}

TEST(Fatbin, SurvivesAnyBytes) {
  const Bytes good = container({entry(kPtx, 90, kSpecific, "first"), entry(kPtx, 80, kZstd, "packed", 100),
                                entry(kPtx, 80, kLz4, "packed", 100), entry(kMachineCode, 80, 0, "code")});
  uint64_t state = 1;
  const auto random = [&state] {
    return (state = state * 6364136223846793005ull + 1442695040888963407ull) >> 33;
  };
  int refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    Bytes bytes = good;
    for (uint64_t i = random() % 4; i > 0; --i) bytes[random() % bytes.size()] = uint8_t(random());
    if (trial % 3 == 0) bytes.erase(bytes.end() - long(random() % bytes.size()), bytes.end());
    bytes.shrink_to_fit();  // so that a sanitizer sees what is read past the end
    refused += error_of(bytes) != "";
  }
  EXPECT_GT(refused, 1000);
}

// Containers in a program's file: each starts with the magic number, aligned to 8 bytes.
std::vector<std::vector<FatbinEntry>> containers_of(const std::string& program) {
  std::vector<std::vector<FatbinEntry>> found;
  const auto* bytes = reinterpret_cast<const uint8_t*>(program.data());
  for (size_t at = 0; at + 16 < program.size(); at += 8) {
    const size_t size = gg::emu::fatbin_bytes(bytes + at);
    if (size > 64 && size <= program.size() - at)
      found.push_back(read_fatbin(bytes + at, program.size() - at));
  }
  return found;
}

std::string contents_of_file(const std::string& path) {
  std::stringstream program;
  program << std::ifstream(std::string(GG_BINARY_DIR) + "/" + path, std::ios::binary).rdbuf();
  return program.str();
}

TEST(Fatbin, ReadsEveryChapter) {
  std::istringstream chapters(GG_CHAPTERS);
  for (std::string id; chapters >> id;) {
    const std::string program = contents_of_file("bin/" + id);
    const auto containers = containers_of(program);
    EXPECT_GE(containers.size(), 2u) << id;  // the chapter's and the harness's
    bool kernel = false;
    for (const auto& entries : containers) {
      const FatbinEntry* const ptx = choose_ptx(entries, choose_ptx(entries, 90) ? 90 : 100);
      const std::string text = ptx ? ptx_text(*ptx) : "";
      for (const char* name : {"grouped_gemm", "weight_gradient", "glu_gradient"})
        kernel = kernel || text.find(name) != std::string::npos;
    }
    EXPECT_TRUE(kernel) << id;
  }
}

TEST(Fatbin, ReadsTheRegistersOfMachineCode) {
  uint64_t state = 3;
  const auto random = [&state] {
    return (state = state * 6364136223846793005ull + 1442695040888963407ull) >> 33;
  };
  bool kernel = false;
  const std::string program = contents_of_file("tests/runtime_test");
  for (const auto& entries : containers_of(program)) {
    const FatbinEntry *const ptx = choose_ptx(entries, 90), *const code =
                                                                gg::emu::choose_machine_code(entries, 90);
    if (!ptx || !code) continue;
    const std::string cubin = gg::emu::contents(*code);
    for (const auto& [name, registers] : gg::emu::register_counts(cubin)) {
      kernel = kernel || name.find("reverse") != std::string::npos;
      EXPECT_TRUE(0 < registers && registers <= 255) << name;
      EXPECT_NE(ptx_text(*ptx).find(name), std::string::npos) << name;
    }
    for (int trial = 0; trial < 200; ++trial) {  // whatever is in them, reading them ends
      std::string broken = cubin.substr(0, trial % 2 ? random() % cubin.size() : cubin.size());
      for (int i = 0; i < 30 && !broken.empty(); ++i) broken[random() % broken.size()] = char(random());
      gg::emu::register_counts(broken);
    }
  }
  EXPECT_TRUE(kernel);
}

}  // namespace
