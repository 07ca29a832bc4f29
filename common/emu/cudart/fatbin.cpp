// SPDX-License-Identifier: MIT
//
// Reading the container. Its layout is not documented; this is what nvcc 13.0 writes.

#include "common/emu/cudart/fatbin.h"

#include <dlfcn.h>

#include <cstring>

namespace gg::emu {
namespace {

constexpr uint32_t kMagic = 0xBA55ED50;
constexpr size_t kContainerHeader = 16, kEntryHeader = 64;
constexpr size_t kMostText = size_t(1) << 28;  // a size beyond this is no code but a broken header

enum Flags : uint64_t { kLz4 = 0x2000, kZstd = 0x8000, kSpecific = 0x100000, kFamily = 0x200000 };

template <class T>
T read(const uint8_t* data, size_t at) {
  T value;
  std::memcpy(&value, data + at, sizeof value);
  return value;
}

FatbinEntry read_entry(const uint8_t* data, size_t header) {
  FatbinEntry entry;
  const uint16_t kind = read<uint16_t>(data, 0);
  entry.kind = kind == 1   ? FatbinEntry::Kind::ptx
               : kind == 2 ? FatbinEntry::Kind::machine_code
                           : FatbinEntry::Kind::other;
  const uint64_t padded = read<uint64_t>(data, 8), flags = read<uint64_t>(data, 40),
                 unpacked = read<uint64_t>(data, 56);
  const uint32_t packed = read<uint32_t>(data, 16);
  entry.arch = int(read<uint32_t>(data, 28));
  entry.specific = flags & kSpecific;
  entry.family = flags & kFamily;
  entry.payload = data + header;
  entry.bytes = entry.unpacked = padded;
  if (flags & (kZstd | kLz4)) {
    entry.packing = flags & kZstd ? FatbinEntry::Packing::zstd : FatbinEntry::Packing::lz4;
    if (packed > padded)
      throw FatbinError("an entry of the fatbin says it has more compressed bytes than bytes");
    entry.bytes = packed;
    entry.unpacked = unpacked;
  }
  return entry;
}

void* library_function(const char* library, const char* function) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const address = handle ? dlsym(handle, function) : nullptr;
  if (!address) {
    throw FatbinError(
        std::string("this program's code is compressed and ") + library +
        " is not here to unpack it: install it, or build the program with nvcc --compress-mode=none");
  }
  return address;
}

std::string unpack_zstd(const FatbinEntry& entry) {
  using Decompress = size_t (*)(void*, size_t, const void*, size_t);
  const auto decompress = reinterpret_cast<Decompress>(library_function("libzstd.so.1", "ZSTD_decompress"));
  std::string text(entry.unpacked, '\0');
  if (decompress(text.data(), text.size(), entry.payload, entry.bytes) != text.size()) {
    throw FatbinError("the fatbin does not decompress (zstd)");
  }
  return text;
}

std::string unpack_lz4(const FatbinEntry& entry) {
  using Decompress = int (*)(const char*, char*, int, int);
  const auto decompress =
      reinterpret_cast<Decompress>(library_function("liblz4.so.1", "LZ4_decompress_safe"));
  std::string text(entry.unpacked, '\0');
  const auto* from = reinterpret_cast<const char*>(entry.payload);
  if (entry.bytes > kMostText ||
      decompress(from, text.data(), int(entry.bytes), int(text.size())) != int(text.size())) {
    throw FatbinError("the fatbin does not decompress (LZ4)");
  }
  return text;
}

}  // namespace

std::string FatbinEntry::target() const {
  const char* prefix = kind == Kind::ptx ? "compute_" : kind == Kind::machine_code ? "sm_" : "other_";
  return prefix + std::to_string(arch) + (specific ? "a" : family ? "f" : "");
}

bool FatbinEntry::fits(int capability) const {
  if (specific) return arch == capability;
  if (family) return arch / 10 == capability / 10 && arch <= capability;
  return arch <= capability;
}

size_t fatbin_bytes(const uint8_t* data) {
  if (read<uint32_t>(data, 0) != kMagic) return 0;
  const uint64_t header = read<uint16_t>(data, 6), bytes = read<uint64_t>(data, 8);
  return header > SIZE_MAX - bytes ? 0 : size_t(header + bytes);
}

std::vector<FatbinEntry> read_fatbin(const uint8_t* data, size_t bytes) {
  if (bytes < kContainerHeader || read<uint32_t>(data, 0) != kMagic) throw FatbinError("this is no fatbin");
  if (read<uint16_t>(data, 4) != 1)
    throw FatbinError("a fatbin of version " + std::to_string(read<uint16_t>(data, 4)));
  const size_t end = fatbin_bytes(data);
  size_t at = read<uint16_t>(data, 6);
  if (at < kContainerHeader || end > bytes || end < at)
    throw FatbinError("the fatbin's header names sizes it does not have");
  std::vector<FatbinEntry> entries;
  while (at < end) {
    if (end - at < kEntryHeader) throw FatbinError("the fatbin ends inside the header of an entry");
    const size_t header = read<uint32_t>(data, at + 4), payload = read<uint64_t>(data, at + 8);
    if (header < kEntryHeader || header > end - at || payload > end - at - header) {
      throw FatbinError("an entry of the fatbin reaches past its end");
    }
    entries.push_back(read_entry(data + at, header));
    at += header + payload;
  }
  return entries;
}

const FatbinEntry* choose_ptx(const std::vector<FatbinEntry>& entries, int capability) {
  const FatbinEntry* best = nullptr;
  const auto rank = [](const FatbinEntry& entry) {
    return (entry.specific ? 2000 : entry.family ? 1000 : 0) + entry.arch;
  };
  for (const FatbinEntry& entry : entries) {
    if (entry.kind != FatbinEntry::Kind::ptx || !entry.fits(capability)) continue;
    if (!best || rank(entry) > rank(*best)) best = &entry;
  }
  return best;
}

const FatbinEntry* choose_machine_code(const std::vector<FatbinEntry>& entries, int capability) {
  const FatbinEntry* best = nullptr;
  for (const FatbinEntry& entry : entries) {
    if (entry.kind != FatbinEntry::Kind::machine_code || !entry.fits(capability)) continue;
    if (entry.arch / 10 == capability / 10 && (!best || entry.arch >= best->arch)) best = &entry;
  }
  return best;
}

std::string contents(const FatbinEntry& entry) {
  if (entry.unpacked > kMostText) throw FatbinError("the fatbin names a size that cannot be");
  switch (entry.packing) {
    case FatbinEntry::Packing::zstd:
      return unpack_zstd(entry);
    case FatbinEntry::Packing::lz4:
      return unpack_lz4(entry);
    default:
      return std::string(reinterpret_cast<const char*>(entry.payload), entry.bytes);
  }
}

std::string ptx_text(const FatbinEntry& entry) {
  std::string text = contents(entry);
  text.resize(std::strlen(text.c_str()));
  return text;
}

}  // namespace gg::emu
