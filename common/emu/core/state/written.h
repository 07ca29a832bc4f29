// SPDX-License-Identifier: MIT
//
// The bytes of global memory that were written: a bit for each byte of the reserve. The bits are
// zeros that cost no memory until one of their page is set, so what nobody touches is free.

#pragma once

#include <algorithm>
#include <cstdint>

namespace gg::emu {

// Offsets are those in the reserve. Kernels on several threads may ask and mark at once.
class WrittenBytes {
 public:
  WrittenBytes() = default;
  ~WrittenBytes();
  WrittenBytes(const WrittenBytes&) = delete;
  WrittenBytes& operator=(const WrittenBytes&) = delete;

  bool open(uint64_t bytes);  // false: there is no address space for the bits of so many
  void close();
  bool all(uint64_t at, uint64_t bytes) const;
  void mark(uint64_t at, uint64_t bytes);
  void clear(uint64_t at, uint64_t bytes);
  // The bytes at `to` are now as written as those at `from`.
  void copy(uint64_t to, uint64_t from, uint64_t bytes);
  void give_back(uint64_t at, uint64_t bytes);  // pages of bits that nobody will ask for any more

  // use(offset) for each byte that was not written.
  template <class Use>
  void each_unwritten(uint64_t at, uint64_t bytes, Use use) const {
    for (uint64_t done = 0; done < bytes; done += kWord) {
      const uint64_t count = std::min(kWord, bytes - done);
      for (uint64_t left = ~get(at + done, count) & ones(count); left; left &= left - 1)
        use(at + done + uint64_t(__builtin_ctzll(left)));
    }
  }

 private:
  static constexpr uint64_t kWord = 64;
  static uint64_t ones(uint64_t count) { return count < kWord ? (uint64_t(1) << count) - 1 : ~uint64_t(0); }
  uint64_t get(uint64_t at, uint64_t count) const;             // at most 64, the first lowest
  void put(uint64_t at, uint64_t count, uint64_t written);     // likewise
  void put_word(uint64_t word, uint64_t mask, uint64_t bits);  // those of the mask

  uint64_t* words_ = nullptr;
  uint64_t map_bytes_ = 0;
};

}  // namespace gg::emu
