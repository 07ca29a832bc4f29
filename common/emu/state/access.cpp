// SPDX-License-Identifier: MIT
//
// The checks behind every load and store.

#include "common/emu/state/access.h"

#include <algorithm>

namespace gg::emu {
namespace {

// ---- places in words ----

std::string bytes_text(uint64_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

std::string ordinal(size_t number) {
  const char* const endings[] = {"th", "st", "nd", "rd"};
  return std::to_string(number) + endings[number % 10 < 4 && number / 10 % 10 != 1 ? number % 10 : 0];
}

// The kernel's argument that points into an allocation, counted from 1; 0 if none does.
size_t argument_of(const Launch& launch, const Allocation& a) {
  const std::vector<Variable>& params = launch.code->function->params;
  for (size_t i = 0; i < params.size(); ++i) {
    for (int64_t at = 0; at + 8 <= params[i].bytes; at += 8) {
      uint64_t value = 0;
      std::memcpy(&value, launch.params.data() + params[i].offset + at, 8);
      if (a.holds(value, 1)) return i + 1;
    }
  }
  return 0;
}

// "a buffer of 4096 bytes (the kernel's 2nd argument)"
std::string buffer_text(const Warp& w, const Allocation& a) {
  const Grid& grid = *w.block->grid;
  if (a.begin == grid.params_address) return "the kernel's parameters";
  for (const auto& [name, address] : grid.launch.code->global_symbols) {
    if (address == a.begin) return "the variable " + plain_name(name) + " (" + bytes_text(a.bytes) + ")";
  }
  const size_t argument = argument_of(grid.launch, a);
  return "a buffer of " + bytes_text(a.bytes) +
         (argument ? " (the kernel's " + ordinal(argument) + " argument)" : "");
}

constexpr const char* kTooFar =
    "an index that is too large, often by one row or one tile at the edge, or a buffer that is too small";

[[noreturn]] void raise_global(Warp& w, const Instr& in, int lane, uint64_t address, int width) {
  const GlobalMemory& memory = *w.block->grid->memory;
  const std::string bytes = bytes_text(uint64_t(width));
  const Allocation *below = memory.below(address), *above = memory.above(address);
  if (!memory.reserved(address) || (!below && !above)) {
    constexpr uint64_t kNull = 1 << 20;
    raise_final(FaultKind::bounds, w, in, lane,
                bytes + " at address " + hex(address) + ", which is in no buffer of this device",
                address < kNull ? "a null pointer, or a parameter that was not passed"
                                : "a pointer to host memory, or a number that is no pointer");
  }
  const uint64_t into = below ? address - below->begin : 0;
  if (below && below->freed && into < below->bytes) {
    raise_final(FaultKind::use_after_free, w, in, lane,
                bytes + " at byte " + std::to_string(into) + " of " + buffer_text(w, *below) +
                    ", which was freed before this launch",
                "cudaFree came before the kernel that still uses the buffer, or the pointer is an old one");
  }
  if (!below || (above && above->begin - address < into - std::min(into, below->bytes))) {
    raise_final(
        FaultKind::bounds, w, in, lane,
        bytes + " that start " + bytes_text(above->begin - address) + " before " + buffer_text(w, *above),
        "an index that is negative, perhaps an unsigned subtraction that went below zero");
  }
  raise_final(FaultKind::bounds, w, in, lane,
              bytes + " at byte " + std::to_string(into) + " of " + buffer_text(w, *below) + " end " +
                  bytes_text(into + uint64_t(width) - below->bytes) + " past its end",
              kTooFar);
}

// ---- finding memory ----

// Bits 24 and up of a shared address are the block's rank in its cluster.
Place locate_shared(Warp& w, const Instr& in, int lane, uint64_t address, int width, bool any_rank) {
  const uint64_t rank = address >> 24, blocks = w.block->cluster->blocks.size();
  if (rank != uint64_t(w.block->rank) && (!any_rank || rank >= blocks)) {
    raise_final(
        FaultKind::bounds, w, in, lane,
        "shared address " + hex(address) + " is of cluster rank " + std::to_string(rank) + ", " +
            (any_rank ? "the cluster has " + std::to_string(blocks) + (blocks == 1 ? " block" : " blocks")
                      : "this block has rank " + std::to_string(w.block->rank)),
        any_rank ? "a rank that this launch's clusters do not have, or a number that is no shared address"
                 : "memory of another block of the cluster wants .shared::cluster");
  }
  Block* block = w.block->cluster->blocks[rank].get();
  if (block->live_warps == 0) {
    raise_final(FaultKind::use_after_free, w, in, lane,
                "shared address " + hex(address) + " belongs to the block of rank " + std::to_string(rank) +
                    ", which has ended",
                "a cluster barrier before the end of the kernel keeps every block alive until its peers are "
                "done with its memory");
  }
  const uint64_t at = address & 0xFFFFFF;
  const size_t size = block->shared.bytes.size();
  if (at < uint64_t(kSharedStart)) {
    raise_final(FaultKind::bounds, w, in, lane,
                bytes_text(uint64_t(width)) + " at shared address " + hex(address) +
                    ", and a block's shared memory begins at " + hex(uint64_t(kSharedStart)),
                "an index that is negative, or a number that is no shared address");
  }
  const size_t offset = size_t(at) - kSharedStart;
  if (offset + size_t(width) > size) {
    raise_final(FaultKind::bounds, w, in, lane,
                bytes_text(uint64_t(width)) + " at " + shared_text(*block, offset) + " end " +
                    bytes_text(offset + size_t(width) - size) + " past the block's shared memory, " +
                    bytes_text(size) + " in all",
                size == 0 ? "the launch gives no dynamic shared memory"
                          : "an index past the end of the last shared array, or too little dynamic shared "
                            "memory in the launch");
  }
  return {block->shared.bytes.data() + offset, block, offset};
}

Place locate_local(Warp& w, const Instr& in, int lane, uint64_t address, int width) {
  const uint64_t bytes = uint64_t(w.block->grid->launch.code->local_bytes);
  if (!Allocation{0, bytes, false}.holds(address, uint64_t(width))) {
    raise_final(FaultKind::bounds, w, in, lane,
                bytes_text(uint64_t(width)) + " at byte " + std::to_string(int64_t(address)) +
                    " of the thread's local memory, which is " + bytes_text(bytes),
                "an index past the end of a local array, or a negative one");
  }
  return {w.local.data() + size_t(lane) * bytes + address, nullptr, 0};
}

// A global address that the last one's allocation holds is found at once; the map is asked for the others.
inline uint8_t* locate_global(Warp& w, const Instr& in, int lane, uint64_t address, int width,
                              const Allocation*& last) {
  if (!last || !last->holds(address, uint64_t(width))) {
    const Allocation* found = w.block->grid->memory->below(address);
    if (!found || found->freed || !found->holds(address, uint64_t(width)))
      raise_global(w, in, lane, address, width);
    last = found;
  }
  return w.block->grid->memory->unchecked(address);
}

bool in_window(uint64_t address, uint64_t window, uint64_t bytes) { return address - window < bytes; }

[[noreturn]] void raise_alignment(Warp& w, const Instr& in, int lane, Space space, uint64_t address,
                                  int width, int alignment) {
  std::string where = "address " + hex(address);
  const uint64_t in_block = address & 0xFFFFFF;
  const Allocation* below = w.block->grid->memory->below(address);
  if (space == Space::shared && in_block >= uint64_t(kSharedStart)) {
    where = shared_text(*w.block, size_t(in_block) - kSharedStart);
  } else if ((space == Space::global || space == Space::generic) && below && below->holds(address, 1)) {
    where = "byte " + std::to_string(address - below->begin) + " of " + buffer_text(w, *below);
  }
  raise_final(
      FaultKind::alignment, w, in, lane,
      bytes_text(uint64_t(width)) + " at " + where + ", which is no multiple of " + std::to_string(alignment),
      width > 8 ? "a vector access wants its address to be a multiple of its size: check the row length, the "
                  "column and the declared alignment"
                : "an access wants its address to be a multiple of its size");
}

// ---- refusals ----

bool is_copy(const Instr& in, bool bulk) {
  return in.statement->opcode == "cp" && in.statement->has("bulk") == bulk;
}

std::vector<Party> owner_of(const SharedMemory& shared, size_t offset) {
  const Window* window = shared.owner(offset);
  if (!window) return {};
  return {{window->warp, window->instr, window->lane, "started the operation"}};
}

// How one waits for the operation that owns these bytes.
std::string how_to_wait(const std::vector<Party>& owner) {
  if (owner.empty()) return "wait for the operation first";
  const Instr& in = *owner[0].instr;
  if (is_copy(in, false)) {
    return "cp.async.wait_group is missing, or its number is too large: it lets that many of the thread's "
           "newest groups be "
           "unfinished. A barrier behind it tells the other threads";
  }
  if (in.statement->opcode == "wgmma")
    return "wgmma.wait_group comes before the tiles are used for something else";
  return owner[0].instr->statement->has("bulk_group")
             ? "the thread that started it waits with cp.async.bulk.wait_group"
             : "wait for the phase of the mbarrier that counts these bytes";
}

[[gnu::noinline]] void refuse_read(Warp& w, const Instr& in, int lane, const Block& block, size_t offset) {
  const SharedMemory& shared = block.shared;
  const uint8_t state = shared.shadow[offset];
  const std::string where = shared_text(block, offset);
  if (state & SharedMemory::kMbarrier) {
    raise(FaultKind::mbarrier, w, in, lane, where + " belongs to an mbarrier and is read as ordinary memory",
          "an array overlaps the mbarrier, or mbarrier.inval is missing before its memory is used again");
  } else if (state & SharedMemory::kArriving) {
    const std::vector<Party> owner = owner_of(shared, offset);
    raise(FaultKind::async_window, w, in, lane,
          where + " is read while an asynchronous copy is still to write it", how_to_wait(owner), owner);
  } else {
    raise(FaultKind::uninit_shared, w, in, lane, where + " is read and nobody has written it",
          "a barrier is missing before the read, or what fills the array covers less than what is read");
  }
}

[[gnu::noinline]] void refuse_write(Warp& w, const Instr& in, int lane, const Block& block, size_t offset) {
  const SharedMemory& shared = block.shared;
  const uint8_t state = shared.shadow[offset];
  const std::string where = shared_text(block, offset);
  if (state & SharedMemory::kMbarrier) {
    raise(FaultKind::mbarrier, w, in, lane,
          where + " belongs to an mbarrier and is overwritten as ordinary memory",
          "an array overlaps the mbarrier, or mbarrier.inval is missing before its memory is used again");
  } else {
    const std::vector<Party> owner = owner_of(shared, offset);
    raise(FaultKind::async_window, w, in, lane,
          where + " is written while an asynchronous operation still " +
              (state & SharedMemory::kArriving ? "writes" : "reads") + " it",
          how_to_wait(owner), owner);
  }
}

// Every byte, masked, is the same: eight at a time.
bool all_are(const uint8_t* bytes, size_t count, uint8_t mask, uint8_t value) {
  constexpr uint64_t kEach = 0x0101010101010101u;
  uint64_t different = 0;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes + i, 8);
    different |= (eight & (mask * kEach)) ^ (value * kEach);
  }
  for (; i < count; ++i) different |= (bytes[i] & mask) ^ value;
  return different == 0;
}
bool all_readable(const SharedMemory& shared, size_t offset, size_t bytes) {
  return all_are(&shared.shadow[offset], bytes, uint8_t(~SharedMemory::kBeingRead), SharedMemory::kWritten);
}
bool all_writable(const SharedMemory& shared, size_t offset, size_t bytes) {
  return all_are(&shared.shadow[offset], bytes, uint8_t(~SharedMemory::kWritten), 0);
}

}  // namespace

std::string shared_text(const Block& block, size_t offset) {
  const int64_t at = kSharedStart + int64_t(offset);
  const std::pair<const std::string, int64_t>* array = nullptr;  // the last that begins here or before
  for (const auto& symbol : block.grid->launch.code->shared_symbols) {
    if (symbol.second <= at && (!array || symbol.second > array->second)) array = &symbol;
  }
  std::string text = "shared address " + hex(uint64_t(block.rank) << 24 | uint64_t(at));
  if (array) text += " (byte " + std::to_string(at - array->second) + " of " + plain_name(array->first) + ")";
  return text;
}

void take_address(Decoder& d, const Operand& operand) {
  const Decoder::Address a = d.address(operand, d.instr.space);
  d.instr.s[3] = a.slot;
  d.instr.address_bits = uint8_t(a.base_bits);
  d.instr.offset = a.offset;
}

void addresses(Warp& w, const Instr& in, uint64_t (&out)[kLanes]) {
  if (in.address_bits == 32) {
    const uint32_t* base = w.at<uint32_t>(in.s[3]);
    for (int l = 0; l < kLanes; ++l) out[l] = uint32_t(base[l] + uint32_t(in.offset));
  } else {
    const uint64_t* base = w.at<uint64_t>(in.s[3]);
    for (int l = 0; l < kLanes; ++l) out[l] = base[l] + uint64_t(in.offset);
  }
}

Place locate(Warp& w, const Instr& in, int lane, Space space, uint64_t address, int width, int alignment) {
  if (address % uint64_t(alignment) != 0) raise_alignment(w, in, lane, space, address, width, alignment);
  if (space == Space::generic) {
    if (in_window(address, kSharedWindow, kSharedWindowBytes))
      return locate_shared(w, in, lane, address - kSharedWindow, width, true);
    if (in_window(address, kLocalWindow, kLocalWindowBytes))
      return locate_local(w, in, lane, address - kLocalWindow, width);
  }
  if (space == Space::shared) return locate_shared(w, in, lane, address, width, in.any_rank);
  if (space == Space::local) return locate_local(w, in, lane, address, width);
  const Allocation* last = nullptr;
  return {locate_global(w, in, lane, address, width, last), nullptr, 0};
}

void check_shared_read(Warp& w, const Instr& in, int lane, const Place& place, int width, Access access) {
  SharedMemory& shared = place.block->shared;
  if (!shared.checked) return;
  const uint8_t* state = shared.shadow.data() + place.offset;
  if (!all_readable(shared, place.offset, size_t(width))) {
    for (int i = 0; i < width; ++i) {
      if ((state[i] & ~SharedMemory::kBeingRead) == SharedMemory::kWritten) continue;
      refuse_read(w, in, lane, *place.block, place.offset + size_t(i));
      break;
    }
  }
  if (shared.races.on()) shared.races.read(w, in, lane, place.offset, width, access);
}

void check_shared_write(Warp& w, const Instr& in, int lane, const Place& place, int width, Access access,
                        const uint8_t* values) {
  SharedMemory& shared = place.block->shared;
  if (!shared.checked) return;
  uint8_t* state = shared.shadow.data() + place.offset;
  if (!all_writable(shared, place.offset, size_t(width))) {
    for (int i = 0; i < width; ++i) {
      if (!(state[i] & ~SharedMemory::kWritten)) continue;
      refuse_write(w, in, lane, *place.block, place.offset + size_t(i));
      break;
    }
  }
  for (int i = 0; i < width; ++i) state[i] |= SharedMemory::kWritten;
  if (shared.races.on()) shared.races.write(w, in, lane, place.offset, width, access, values);
}

void check_async_read(Warp& w, const Instr& in, int lane, Block& block, size_t offset, size_t bytes) {
  check_shared_read(w, in, lane, {block.shared.bytes.data() + offset, &block, offset}, int(bytes),
                    Access::async);
}

bool all_async_readable(const Warp& w, const Instr& in, Block& block, const std::vector<ByteRun>& runs) {
  SharedMemory& shared = block.shared;
  if (!shared.checked) return true;
  for (const ByteRun& run : runs) {
    if (!all_readable(shared, run.offset, run.bytes)) return false;
  }
  return !shared.races.on() || shared.races.read_runs(w, in, runs.data(), runs.size(), Access::async);
}

void check_async_write(Warp& w, const Instr& in, int lane, Block& block, size_t offset, size_t bytes,
                       Access access) {
  ++w.block->cluster->changes;
  SharedMemory& shared = block.shared;
  if (!shared.checked) return;
  for (size_t i = offset; !all_writable(shared, offset, bytes) && i < offset + bytes; ++i) {
    if (shared.shadow[i] & ~SharedMemory::kWritten) {
      refuse_write(w, in, lane, block, i);
      break;
    }
  }
  if (shared.races.on()) shared.races.write(w, in, lane, offset, int(bytes), access);
}

namespace {

// How the lanes of an access of shared memory lie to each other. Most accesses of a kernel repeat one of a
// few patterns and differ only in where they start.
struct Pattern {
  uint32_t relative[kLanes];  // to the first lane's address
  struct Piece {              // bytes that lanes touch one behind the other
    int32_t begin = 0;        // relative, too
    uint32_t bytes = 0;
  };
  Piece runs[kLanes];
  int run_count = 0;
  Mask mask = 0, leaders = 0;  // leaders: the first lane of each address
  uint32_t start = 0;          // modulo 128
  int width = 0;
  uint64_t wavefronts = 0, least = 0;
};

// A warp moves at most 128 bytes of shared memory at once: its lanes are served in groups of 128 / width, and
// a bank gives one 4-byte word a time.
void count_wavefronts(Pattern& p, const uint64_t (&address)[kLanes]) {
  const int lanes_at_once = std::max(1, std::min(kLanes, 128 / std::max(p.width, 4)));
  p.wavefronts = p.least = 0;
  for (int first = 0; first < kLanes; first += lanes_at_once) {
    uint32_t words[32][kLanes * 4];
    int count[32] = {}, most = 0;
    for (int l = first; l < first + lanes_at_once; ++l) {
      if (!(p.mask >> l & 1)) continue;
      for (int b = 0; b < p.width; b += 4) {
        const uint32_t word = uint32_t(address[l] + uint64_t(b)) / 4, bank = word % 32;
        const uint32_t* end = words[bank] + count[bank];
        if (std::find(words[bank] + 0, const_cast<uint32_t*>(end), word) != end) continue;
        words[bank][count[bank]++] = word;
        most = std::max(most, count[bank]);
      }
    }
    p.wavefronts += uint64_t(most);
    p.least += most > 0;
  }
}

void find_runs(Pattern& p) {
  int32_t begins[kLanes];
  int count = 0;
  for (Lanes l(p.leaders); l; ++l) begins[count++] = int32_t(p.relative[*l]);
  std::sort(begins, begins + count);
  p.run_count = 0;
  for (int i = 0; i < count; ++i) {
    Pattern::Piece* last = p.run_count ? &p.runs[p.run_count - 1] : nullptr;
    if (last && begins[i] <= last->begin + int32_t(last->bytes)) {
      last->bytes = std::max(last->bytes, uint32_t(begins[i] - last->begin + p.width));
    } else {
      p.runs[p.run_count++] = {begins[i], uint32_t(p.width)};
    }
  }
}

const Pattern& pattern_of(const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width) {
  constexpr size_t kKept = 1024;  // patterns, found by a hash: warps differ, but in few ways
  thread_local std::vector<Pattern> patterns(kKept);
  const uint32_t start = uint32_t(address[__builtin_ctz(m)]);
  uint32_t relative[kLanes], sum = uint32_t(in.index) * 37 + start % 128 / 4;
  if (m == kAllLanes) {
    for (int l = 0; l < kLanes; ++l) relative[l] = uint32_t(address[l]) - start;
  } else {
    for (int l = 0; l < kLanes; ++l) relative[l] = m >> l & 1 ? uint32_t(address[l]) - start : 0;
  }
  for (int l = 0; l < kLanes; ++l) sum += relative[l] * uint32_t(2 * l + 1);
  Pattern& p = patterns[(sum ^ sum >> 8 ^ sum >> 16) % kKept];
  if (p.mask == m && p.width == width && p.start == start % 128) {
    uint32_t different = 0;
    for (int l = 0; l < kLanes; ++l) different |= p.relative[l] ^ relative[l];
    if (different == 0) return p;
  }
  std::memcpy(p.relative, relative, sizeof relative);
  p.mask = m;
  p.width = width;
  p.start = start % 128;
  p.leaders = 0;
  for (Lanes l(m); l; ++l) {
    bool is_new = true;
    for (Lanes k(p.leaders); k && is_new; ++k) is_new = relative[*k] != relative[*l];
    if (is_new) p.leaders |= Mask(1) << *l;
  }
  find_runs(p);
  count_wavefronts(p, address);
  return p;
}

void count_pattern(const Instr& in, const Pattern& p) {
  InstrCounts& counts = counts_of(in);
  counts.bytes += uint64_t(p.width) * uint64_t(__builtin_popcount(p.mask));
  counts.wavefronts += p.wavefronts;
  counts.least_wavefronts += p.least;
}

// The address of the block's first byte of shared memory.
uint64_t own_shared(const Warp& w) { return (uint64_t(w.block->rank) << 24) + uint64_t(kSharedStart); }

// All lanes of the mask inside this block's shared memory and aligned: the common case, without a look at
// each.
bool all_in_own_shared(const Warp& w, Mask m, const uint64_t (&address)[kLanes], int width) {
  const uint64_t begin = own_shared(w), bytes = w.block->shared.bytes.size(),
                 some = address[__builtin_ctz(m)];
  uint64_t beyond = 0, odd = 0;  // their bits above the 31st and below the width's
  uint32_t last = 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t at = m >> l & 1 ? address[l] : some, offset = at - begin;
    beyond |= offset >> 31;
    last = std::max(last, uint32_t(offset));
    odd |= at;
  }
  return beyond == 0 && (odd & uint64_t(width - 1)) == 0 && (width & (width - 1)) == 0 &&
         last + uint64_t(width) <= bytes;
}

// The same for one allocation of global memory: its host address less its device address, or 0.
bool all_in_one_buffer(const Warp& w, Mask m, const uint64_t (&address)[kLanes], int width) {
  uint64_t low = ~0ull, high = 0, odd = 0;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t at = m >> l & 1 ? address[l] : address[__builtin_ctz(m)];
    low = std::min(low, at);
    high = std::max(high, at);
    odd |= at;
  }
  if ((odd & uint64_t(width - 1)) != 0 || (width & (width - 1)) != 0) return false;
  const Allocation*& last = w.block->cluster->last_buffer;
  if (!last || last->freed || !last->holds(low, 1)) last = w.block->grid->memory->below(low);
  return last && !last->freed && last->holds(low, 1) && last->holds(high, uint64_t(width));
}

// A store that changes nothing lets nobody go on who waits for a change.
template <class Width>
void put_bytes(Warp& w, uint8_t* to, const uint8_t* from, Width width) {
  if (std::memcmp(to, from, width) == 0) return;
  std::memcpy(to, from, width);
  ++w.block->cluster->changes;
}

// use(width), as a constant where it is one of the usual: then a copy is an instruction or two.
template <class Use>
void with_width(int width, Use use) {
  if (width == 2) return use(std::integral_constant<size_t, 2>());
  if (width == 4) return use(std::integral_constant<size_t, 4>());
  if (width == 8) return use(std::integral_constant<size_t, 8>());
  if (width == 16) return use(std::integral_constant<size_t, 16>());
  use(size_t(width));
}

size_t runs_at(const Pattern& p, size_t start, ByteRun (&runs)[kLanes]) {
  for (int i = 0; i < p.run_count; ++i) runs[i] = {start + size_t(int64_t(p.runs[i].begin)), p.runs[i].bytes};
  return size_t(p.run_count);
}

// An access of the own shared memory, its runs all at once. False: not all is well, and looking at each lane
// says what.
bool clean_read(Warp& w, const Instr& in, const Pattern& p, const uint64_t (&address)[kLanes],
                Access access) {
  SharedMemory& shared = w.block->shared;
  if (!shared.checked) return true;
  ByteRun runs[kLanes];
  const size_t count = runs_at(p, size_t(address[__builtin_ctz(p.mask)] - own_shared(w)), runs);
  for (size_t i = 0; i < count; ++i) {
    if (!all_readable(shared, runs[i].offset, runs[i].bytes)) return false;
  }
  return !shared.races.on() || shared.races.read_runs(w, in, runs, count, access);
}
bool clean_write(Warp& w, const Instr& in, const Pattern& p, const uint64_t (&address)[kLanes],
                 Access access) {
  SharedMemory& shared = w.block->shared;
  if (!shared.checked) return true;
  ByteRun runs[kLanes];
  const size_t count = runs_at(p, size_t(address[__builtin_ctz(p.mask)] - own_shared(w)), runs);
  for (size_t i = 0; i < count; ++i) {
    if (!all_writable(shared, runs[i].offset, runs[i].bytes)) return false;
  }
  if (shared.races.on() && !shared.races.write_runs(w, in, runs, count, access)) return false;
  for (size_t i = 0; i < count; ++i)
    std::fill_n(&shared.shadow[runs[i].offset], runs[i].bytes, uint8_t(SharedMemory::kWritten));
  return true;
}

}  // namespace

void count_shared(const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width) {
  count_pattern(in, pattern_of(in, m, address, width));
}

void count_global(const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width) {
  uint64_t sectors[kLanes * 2];
  int count = 0;
  bool sorted = true;
  for (Lanes l(m); l; ++l) {
    for (uint64_t s = address[*l] / 32; s <= (address[*l] + uint64_t(width) - 1) / 32; ++s) {
      if (count > 0 && sectors[count - 1] == s) continue;
      if (count > 0 && sectors[count - 1] > s) sorted = false;
      sectors[count++] = s;
    }
  }
  if (!sorted) std::sort(sectors, sectors + count);
  InstrCounts& counts = counts_of(in);
  counts.bytes += uint64_t(width) * uint64_t(__builtin_popcount(m));
  counts.sectors += uint64_t(std::unique(sectors, sectors + count) - sectors);
}

void read_memory(Warp& w, const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width,
                 uint8_t* data, int pitch, Access access) {
  if (in.space == Space::shared && all_in_own_shared(w, m, address, width)) {
    const Pattern& pattern = pattern_of(in, m, address, width);
    if (clean_read(w, in, pattern, address, access)) {
      const uint8_t* bytes = w.block->shared.bytes.data() - own_shared(w);
      with_width(width, [&](auto constant) {
        for (Lanes l(m); l; ++l) std::memcpy(data + *l * pitch, bytes + address[*l], constant);
      });
      return count_pattern(in, pattern);
    }
  }
  if (in.space == Space::global && all_in_one_buffer(w, m, address, width)) {
    const GlobalMemory& memory = *w.block->grid->memory;
    with_width(width, [&](auto constant) {
      for (Lanes l(m); l; ++l) std::memcpy(data + *l * pitch, memory.unchecked(address[*l]), constant);
    });
    return count_global(in, m, address, width);
  }
  Block* shared = nullptr;
  for (Lanes l(m); l; ++l) {
    const Place place = locate(w, in, *l, in.space, address[*l], width, width);
    if (place.block) check_shared_read(w, in, *l, place, width, access);
    shared = place.block;
    std::memcpy(data + *l * pitch, place.bytes, size_t(width));
  }
  if (shared)
    count_shared(in, m, address, width);
  else if (in.space != Space::local)
    count_global(in, m, address, width);
}

void write_memory(Warp& w, const Instr& in, Mask m, const uint64_t (&address)[kLanes], int width,
                  const uint8_t* data, int pitch, Access access) {
  if (in.space == Space::shared && all_in_own_shared(w, m, address, width)) {
    const Pattern& pattern = pattern_of(in, m, address, width);
    if (clean_write(w, in, pattern, address, access)) {
      uint8_t* bytes = w.block->shared.bytes.data() - own_shared(w);
      with_width(width, [&](auto constant) {
        for (Lanes l(m); l; ++l) put_bytes(w, bytes + address[*l], data + *l * pitch, constant);
      });
      return count_pattern(in, pattern);
    }
  }
  if (in.space == Space::global && all_in_one_buffer(w, m, address, width)) {
    for (Lanes l(m); l; ++l)
      put_bytes(w, w.block->grid->memory->unchecked(address[*l]), data + *l * pitch, size_t(width));
    return count_global(in, m, address, width);
  }
  Block* shared = nullptr;
  for (Lanes l(m); l; ++l) {
    const Place place = locate(w, in, *l, in.space, address[*l], width, width);
    if (place.block) check_shared_write(w, in, *l, place, width, access, data + *l * pitch);
    shared = place.block;
    put_bytes(w, place.bytes, data + *l * pitch, size_t(width));
  }
  if (shared)
    count_shared(in, m, address, width);
  else if (in.space != Space::local)
    count_global(in, m, address, width);
}

}  // namespace gg::emu
