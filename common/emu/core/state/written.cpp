// SPDX-License-Identifier: MIT
//
// Bits of written bytes, read and changed by the word.

#include "common/emu/core/state/written.h"

#include <sys/mman.h>
#include <unistd.h>

namespace gg::emu {
namespace {

// The whole pages among the bits of these bytes, by the place of a bit's byte.
struct Pages {
  uint64_t begin = 0, end = 0;
};
Pages pages_in(uint64_t at, uint64_t bytes) {
  static const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  return {(at / 8 + page - 1) / page * page, (at + bytes) / 8 / page * page};
}

}  // namespace

WrittenBytes::~WrittenBytes() { close(); }

bool WrittenBytes::open(uint64_t bytes) {
  const uint64_t map_bytes = bytes / 8 + sizeof *words_;
  void* const map =
      mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return false;
  words_ = static_cast<uint64_t*>(map);
  map_bytes_ = map_bytes;
  return true;
}

void WrittenBytes::close() {
  if (words_) munmap(words_, map_bytes_);
  words_ = nullptr;
}

uint64_t WrittenBytes::get(uint64_t at, uint64_t count) const {
  const uint64_t word = at / kWord, shift = at % kWord;
  uint64_t bits = __atomic_load_n(words_ + word, __ATOMIC_RELAXED) >> shift;
  if (shift + count > kWord) bits |= __atomic_load_n(words_ + word + 1, __ATOMIC_RELAXED) << (kWord - shift);
  return bits & ones(count);
}

void WrittenBytes::put_word(uint64_t word, uint64_t mask, uint64_t bits) {
  const uint64_t old = __atomic_load_n(words_ + word, __ATOMIC_RELAXED);
  if (bits & ~old) __atomic_fetch_or(words_ + word, bits, __ATOMIC_RELAXED);
  if (mask & ~bits & old) __atomic_fetch_and(words_ + word, ~(mask & ~bits), __ATOMIC_RELAXED);
}

void WrittenBytes::put(uint64_t at, uint64_t count, uint64_t written) {
  const uint64_t word = at / kWord, shift = at % kWord, mask = ones(count);
  put_word(word, mask << shift, written << shift);
  if (shift + count > kWord) put_word(word + 1, mask >> (kWord - shift), written >> (kWord - shift));
}

bool WrittenBytes::all(uint64_t at, uint64_t bytes) const {
  for (uint64_t done = 0; done < bytes; done += kWord) {
    const uint64_t count = std::min(kWord, bytes - done);
    if (get(at + done, count) != ones(count)) return false;
  }
  return true;
}

void WrittenBytes::mark(uint64_t at, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += kWord) {
    const uint64_t count = std::min(kWord, bytes - done);
    put(at + done, count, ones(count));
  }
}

void WrittenBytes::clear(uint64_t at, uint64_t bytes) {
  const auto put_zeros = [this](uint64_t begin, uint64_t end) {
    for (; begin < end; begin += kWord) put(begin, std::min(kWord, end - begin), 0);
  };
  const Pages pages = pages_in(at, bytes);
  if (pages.begin >= pages.end) return put_zeros(at, at + bytes);
  put_zeros(at, pages.begin * 8);
  give_back(at, bytes);
  put_zeros(pages.end * 8, at + bytes);
}

void WrittenBytes::give_back(uint64_t at, uint64_t bytes) {
  const Pages pages = pages_in(at, bytes);
  if (pages.begin >= pages.end) return;
  madvise(reinterpret_cast<char*>(words_) + pages.begin, pages.end - pages.begin, MADV_DONTNEED);
}

void WrittenBytes::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += kWord) {
    const uint64_t count = std::min(kWord, bytes - done);
    put(to + done, count, get(from + done, count));
  }
}

}  // namespace gg::emu
