// SPDX-License-Identifier: MIT
//
// The container in which nvcc puts a program's PTX and machine code: what is in it, which PTX fits
// a device, and its text. Nothing here trusts the bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace gg::emu {

struct FatbinError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct FatbinEntry {
  enum class Kind : uint8_t { ptx, machine_code, other };
  enum class Packing : uint8_t { stored, zstd, lz4 };
  Kind kind = Kind::other;
  Packing packing = Packing::stored;
  int arch = 0;           // 80, 90, 100
  bool specific = false;  // an "a" target: for this architecture alone
  bool family = false;    // an "f" target: for later ones of the same major version too
  const uint8_t* payload = nullptr;
  size_t bytes = 0;     // of the payload as it lies there
  size_t unpacked = 0;  // bytes after decompression

  std::string target() const;  // "compute_90a", "sm_90"
  bool fits(int capability) const;
};

// How many bytes a container says it has; 0 if this is none. Reads 16 bytes.
size_t fatbin_bytes(const uint8_t* data);
// All entries of the container in [data, data + bytes). Throws FatbinError.
std::vector<FatbinEntry> read_fatbin(const uint8_t* data, size_t bytes);
// The PTX for a device of this compute capability: one for this architecture alone before one for
// its family, before the latest of those for any later device. Null if none fits.
const FatbinEntry* choose_ptx(const std::vector<FatbinEntry>& entries, int capability);
// The machine code that such a device runs; null if there is none.
const FatbinEntry* choose_machine_code(const std::vector<FatbinEntry>& entries, int capability);
// Returns what an entry holds, decompressed. Throws FatbinError, naming the library that this wants
// if it is not there.
std::string contents(const FatbinEntry& entry);
// The text of a PTX entry: without the zeros behind it.
std::string ptx_text(const FatbinEntry& entry);

}  // namespace gg::emu
