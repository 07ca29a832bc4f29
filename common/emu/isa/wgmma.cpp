// SPDX-License-Identifier: MIT
//
// wgmma: four warps multiply matrices in shared memory (A also from registers) while they go on. PTX ISA:
// "Asynchronous Warpgroup Level Matrix Instructions". Each warp has 16 of the 64 rows. The sums are there
// when the first of the four waits for their group (an even seed of the order) or at once (an odd one); until
// a warp's own wait its registers are in flight, and nobody may write the shared memory that is read.

#include "common/emu/isa/wgmma.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <tuple>

#include "common/emu/isa/arithmetic.h"
#include "common/emu/state/access.h"

namespace gg::emu {

constexpr int kWarps = 4, kRows = 16;  // of a warpgroup; of a warp

// ---- layouts ----

OperandLayout::OperandLayout(uint64_t descriptor, const OperandShape& shape) : shape_(shape) {
  const auto bytes = [&](int first_bit) { return uint32_t(descriptor >> first_bit & 0x3FFF) * kUnitBytes; };
  start_ = bytes(0);
  leading_ = bytes(16);
  stride_ = bytes(32);
  base_offset_ = uint32_t(descriptor >> 49 & 7);
  constexpr uint32_t kSpans[4] = {0, 128, 64, 32};
  span_ = kSpans[descriptor >> 62];
  places_ = span_ ? span_ / kUnitBytes - 1 : 0;
  check(descriptor);
}

void OperandLayout::check(uint64_t descriptor) {
  constexpr uint64_t kReserved = 0x3FF1C000C000C000ull;
  const uint32_t along = shape_.line_major ? std::min(uint32_t(shape_.lines) * 2, span_) : 32;
  const bool many_spans = shape_.line_major && span_ && uint32_t(shape_.lines) * 2 > span_;
  const bool uses_leading = span_ ? many_spans : true;
  const bool uses_stride = span_ && shape_.line_major ? true : shape_.lines > 8;
  if (descriptor & kReserved) {
    problem_ = "has reserved bits set: " + hex(descriptor & kReserved);
  } else if (!span_ && base_offset_) {
    problem_ = "has a base offset of " + std::to_string(base_offset_) + " without a swizzle mode";
  } else if (span_ && start_ % span_ + along > span_) {
    problem_ = "starts at byte " + std::to_string(start_ % span_) + " of a span of " + std::to_string(span_) +
               " bytes and reads " + std::to_string(along) + " of it";
  } else if (((start_ >> 7) - base_offset_) & places_) {
    problem_ = "starts at " + hex(start_) + ", line " + std::to_string((start_ >> 7) & places_) +
               " of the pattern of " + std::to_string(8 * span_) + " bytes, and its base offset is " +
               std::to_string(base_offset_);
  } else if ((uses_leading && leading_ == 0) || (uses_stride && stride_ == 0)) {
    problem_ = std::string("has a ") + (uses_leading && leading_ == 0 ? "leading" : "stride") +
               " byte offset of 0, which this operand uses";
  }
}

// ---- what is under way ----

namespace {

struct WgmmaForm {
  int n = 0, k = 0;
  Narrow a, b;
  Cut cut;
  bool a_in_registers = false, negate_a = false, negate_b = false;
  OperandShape a_shape, b_shape;
  std::vector<uint32_t> d_slots, a_slots;
  std::vector<int32_t> d_registers, a_registers;  // indices, ascending
  std::vector<int32_t> others;                    // of descriptors and scale-d
};

const WgmmaForm& form_of(const Instr& in) { return *static_cast<const WgmmaForm*>(in.extra); }

struct Operation {
  const Instr* instr = nullptr;
  uint64_t a = 0, b = 0;  // descriptors
  bool accumulates = false;

  bool operator==(const Operation& other) const = default;
};

struct Footprint {              // what an operand reads
  std::vector<uint64_t> units;  // of shared memory, a bit each
  std::vector<ByteRun> runs;    // of bytes
  std::string problem;          // with the descriptor
};

struct Group {  // between two commits
  std::vector<Operation> operations[kWarps];
  std::vector<uint64_t> units;    // of shared memory that they read, a bit each
  const Instr* reader = nullptr;  // one of them
  std::vector<SharedMemory::Handle> windows;
  Clock clock;  // of the warps that have committed it
};

}  // namespace

// Of a warpgroup; its four warps share it.
struct WgmmaState {
  struct Of {
    Warp* warp = nullptr;
    uint64_t commits = 0;   // groups it has committed
    uint64_t released = 0;  // groups it has waited for
    size_t waits = 0;       // wait_group instructions it has come to
    bool waiting = false;
    bool fenced = false;  // a wgmma.fence since its last commit
  };
  Of of[kWarps];
  std::deque<Group> groups;      // the first is number `first`
  uint64_t first = 0, done = 0;  // `done` groups have their sums
  std::vector<uint64_t> commits_at_wait;
  // By descriptor, shape (lines, k, bytes, line-major) and first line: a kernel uses the same few again and
  // again.
  std::map<std::tuple<uint64_t, int, int, int, bool, int, int>, Footprint> footprints;

  Group& group(uint64_t number) {
    while (number - first >= groups.size()) groups.emplace_back();
    return groups[size_t(number - first)];
  }
  uint64_t committed_by_all() const {
    uint64_t least = of[0].commits;
    for (const Of& each : of) least = std::min(least, each.commits);
    return least;
  }
};

namespace {

int part_of(const Warp& w) { return w.index % kWarps; }

bool late(const Warp& w) { return w.block->grid->order.seed % 2 == 0; }

WgmmaState& state_of(Warp& w, const Instr& in, Mask m) {
  if (m != kAllLanes) {
    raise_final(
        FaultKind::diverged, w, in, __builtin_ctz(~m),
        "lanes " + hex(m) + " execute an instruction of a whole warpgroup",
        "the number of threads in a block must be a multiple of 128 here, and none of them may have ended");
  }
  if (w.wgmma) return *w.wgmma;
  const size_t first = size_t(w.index - part_of(w));
  if (first + kWarps > w.block->warps.size()) {
    raise_final(FaultKind::diverged, w, in, -1,
                "warps " + std::to_string(first) + " to " + std::to_string(first + kWarps - 1) +
                    " make a warpgroup, the block has " + std::to_string(w.block->warps.size()) + " warps",
                "wgmma wants four warps, the first a multiple of four");
  }
  auto state = std::make_shared<WgmmaState>();
  for (size_t i = 0; i < kWarps; ++i) {
    state->of[i].warp = w.block->warps[first + i].get();
    state->of[i].warp->wgmma = state;
  }
  return *state;
}

// ---- the operands ----

// Lines [first, first + count), as codes of type T.
template <class T>
void gather_as(const OperandLayout& layout, const OperandShape& shape, int first, int count,
               const uint8_t* shared, uint32_t sign, Factors& to) {
  constexpr int kElements = kUnitBytes / int(sizeof(T));
  layout.units(first, count, [&](uint32_t address, int line, int k) {
    T unit[kElements];
    std::memcpy(unit, shared + address, kUnitBytes);
    Factors::Slice* slices = to.slices(line - first) + k;
    const int l = (line - first) % Factors::kSide;
    for (int i = 0; i < kElements; ++i)
      (shape.line_major ? slices->codes[l + i] : slices[i].codes[l]) = unit[i] ^ sign;
  });
}

void gather(uint64_t descriptor, const OperandShape& shape, int first, int count, SharedMemory& shared,
            bool negate, Factors& to) {
  const OperandLayout layout(descriptor, shape);
  const uint8_t* address_0 = shared.bytes.data() - kSharedStart;
  const uint32_t sign = negate ? 1u << (8 * shape.bytes - 1) : 0;
  to.resize(count, shape.k);
  if (shape.bytes == 1) gather_as<uint8_t>(layout, shape, first, count, address_0, sign, to);
  if (shape.bytes == 2) gather_as<uint16_t>(layout, shape, first, count, address_0, sign, to);
  if (shape.bytes == 4) gather_as<uint32_t>(layout, shape, first, count, address_0, sign, to);
}

// A in registers: with g = lane / 4 and t = lane % 4, rows g and g + 8 take turns, then 16 more bytes of k; a
// register has bytes 4t to 4t + 3 of them.
void gather_registers(Warp& w, const WgmmaForm& form, Factors& to) {
  const int bits = form.a.bits, each = 32 / bits;
  const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1, sign = form.negate_a ? 1u << (bits - 1) : 0;
  to.resize(kRows, form.k);
  for (size_t r = 0; r < form.a_slots.size(); ++r) {
    const uint32_t* registers = w.at<uint32_t>(form.a_slots[r]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane / 4 + int(r % 2) * 8, k = int(r / 2) * 4 * each + lane % 4 * each;
      for (int e = 0; e < each; ++e) to.code(row, k + e) = (registers[lane] >> (e * bits) & mask) ^ sign;
    }
  }
}

// ---- the sums ----

// Of the sums: floats from one row to the next.
int pitch_of(const WgmmaForm& form) {
  return (form.n + Factors::kSide - 1) / Factors::kSide * Factors::kSide;
}

// Of D a lane's registers come in pairs of f32, or are pairs of f16: two neighbours of a row. With g = lane /
// 4 and t = lane % 4, pair number i is columns 8 * (i / 2) + 2t and the next of row g, for odd i of row g
// + 8. This is where pair i of lane 4g starts.
float* pairs_at(float* sums, const WgmmaForm& form, int pair, int g) {
  return sums + (g + pair % 2 * 8) * pitch_of(form) + pair / 2 * 8;
}

using Four [[gnu::vector_size(16)]] = float;  // lanes 4g to 4g + 3
Four four_at(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}
void put_four(float* to, Four four) { std::memcpy(to, &four, sizeof four); }

void read_accumulators(Warp& w, const WgmmaForm& form, float* sums) {
  for (int pair = 0; pair < form.n / 4; ++pair) {
    const size_t at = size_t(form.cut.to_half ? pair : 2 * pair);
    const auto* halves = w.at<uint16_t>(form.d_slots[at]);
    const float* first = w.at<float>(form.d_slots[at]);
    const float* second = form.cut.to_half ? nullptr : w.at<float>(form.d_slots[at + 1]);
    for (int g = 0; g < 8; ++g) {
      float* to = pairs_at(sums, form, pair, g);
      if (form.cut.to_half) {
        for (int i = 0; i < 8; ++i) to[i] = half_to_float(halves[8 * g + i]);
      } else {
        const Four x = four_at(first + 4 * g), y = four_at(second + 4 * g);
        put_four(to, __builtin_shufflevector(x, y, 0, 4, 1, 5));
        put_four(to + 4, __builtin_shufflevector(x, y, 2, 6, 3, 7));
      }
    }
  }
}

void write_accumulators(Warp& w, const WgmmaForm& form, float* sums) {
  for (int pair = 0; pair < form.n / 4; ++pair) {
    const size_t at = size_t(form.cut.to_half ? pair : 2 * pair);
    auto* halves = w.at<uint16_t>(form.d_slots[at]);
    float* first = w.at<float>(form.d_slots[at]);
    float* second = form.cut.to_half ? nullptr : w.at<float>(form.d_slots[at + 1]);
    for (int g = 0; g < 8; ++g) {
      const float* from = pairs_at(sums, form, pair, g);
      if (form.cut.to_half) {
        for (int i = 0; i < 8; ++i) halves[8 * g + i] = float_to_half(from[i]);
      } else {
        const Four x = four_at(from), y = four_at(from + 4);
        put_four(first + 4 * g, __builtin_shufflevector(x, y, 0, 2, 4, 6));
        put_four(second + 4 * g, __builtin_shufflevector(x, y, 1, 3, 5, 7));
      }
    }
  }
}

// D = A * B + D, or A * B, for some of the four warps.
void multiply(WgmmaState& state, const Operation& operation, int first_part, int parts) {
  const WgmmaForm& form = form_of(*operation.instr);
  SharedMemory& shared = state.of[0].warp->block->shared;
  thread_local Factors a, b;
  thread_local std::vector<float> sums;
  gather(operation.b, form.b_shape, 0, form.n, shared, form.negate_b, b);
  b.decode(form.b);
  for (int part = first_part; part < first_part + parts; ++part) {
    Warp& w = *state.of[part].warp;
    if (form.a_in_registers) {
      gather_registers(w, form, a);
    } else {
      gather(operation.a, form.a_shape, part * kRows, kRows, shared, form.negate_a, a);
    }
    a.decode(form.a);
    sums.resize(size_t(kRows * pitch_of(form)));
    if (operation.accumulates) {
      read_accumulators(w, form, sums.data());
    } else {
      std::fill(sums.begin(), sums.end(), 0.0f);
    }
    fused_sums(a, b, sums.data(), pitch_of(form), form.cut);
    write_accumulators(w, form, sums.data());
  }
}

// ---- checks when an operation is issued ----

std::string register_name(const Warp& w, int32_t index) {
  return w.block->grid->launch.code->registers[size_t(index)].name;
}

void require_written(Warp& w, const Instr& in, int32_t index, const char* cause) {
  Mask& written = w.written[size_t(index)];
  if (written == kAllLanes) return;
  raise(FaultKind::uninit_register, w, in, __builtin_ctz(~written),
        "register " + register_name(w, index) + " is read and was never written", cause);
  written = kAllLanes;  // allowed: say it once
}

bool share(const std::vector<int32_t>& x, const std::vector<int32_t>& y) {  // both ascending
  for (auto i = x.begin(), j = y.begin(); i != x.end() && j != y.end();) {
    if (*i == *j) return true;
    ++(*i < *j ? i : j);
  }
  return false;
}

// Registers under way may only be the accumulator of the same shape, or A again.
void check_in_flight(Warp& w, WgmmaState& state, const Instr& in) {
  const WgmmaForm& form = form_of(in);
  const WgmmaState::Of& own = state.of[part_of(w)];
  for (uint64_t number = own.released; number <= own.commits; ++number) {
    for (const Operation& earlier : state.group(number).operations[part_of(w)]) {
      const WgmmaForm& other = form_of(*earlier.instr);
      const bool chained = other.n == form.n && other.k == form.k && other.d_slots == form.d_slots;
      if ((!chained && share(other.d_registers, form.d_registers)) ||
          share(other.d_registers, form.a_registers) || share(other.a_registers, form.d_registers)) {
        raise(FaultKind::async_window, w, in, -1,
              "its registers are those of another wgmma that is under way, and not as the accumulator of the "
              "same shape",
              "wait for that one's group first (wgmma.wait_group)", {{&w, earlier.instr, -1, "issued it"}});
        return;
      }
    }
  }
}

// Registers that are not under way: ordinary instructions may have touched them, so a fence must have
// followed. PTX is what a compiler made of a program, and it moves the initialisation of registers, so a
// fence anywhere since the last commit is taken for it. It is a proxy fault as the fence is to registers what
// fence.proxy.async is to shared memory.
void check_registers(Warp& w, WgmmaState& state, const Instr& in, bool accumulates) {
  const WgmmaForm& form = form_of(in);
  constexpr const char* kCause =
      "an accumulator must be set before it is added to, or scale-d be false for the first product";
  bool in_flight = false, unfenced = false;
  int32_t example = -1;
  const auto look = [&](const std::vector<int32_t>& registers, bool read) {
    for (const int32_t r : registers) {
      const size_t index = size_t(r);
      if (read) require_written(w, in, r, kCause);
      if (!w.in_flight.empty() && w.in_flight[index]) {
        in_flight = true;
      } else if (!state.of[part_of(w)].fenced && (w.touched.empty() || w.touched[index])) {
        unfenced = true;
        example = r;
      }
    }
  };
  look(form.d_registers, accumulates);
  look(form.a_registers, true);
  if (in_flight) check_in_flight(w, state, in);
  if (unfenced) {
    raise(FaultKind::proxy, w, in, -1,
          "register " + register_name(w, example) +
              " was touched by ordinary instructions and no wgmma.fence has followed",
          "wgmma.fence comes before the first wgmma, and again whenever accumulators or fragments of A were "
          "touched since");
  }
}

// The first unit from `at` on that is set, or is not.
size_t next_unit(const std::vector<uint64_t>& units, size_t at, bool set) {
  for (; at < units.size() * 64; at = (at / 64 + 1) * 64) {
    const uint64_t word = (set ? units[at / 64] : ~units[at / 64]) >> (at % 64);
    if (word) return at + size_t(std::countr_zero(word));
  }
  return units.size() * 64;
}

// use(offset, bytes) for every run of units.
template <class Use>
void for_runs(const std::vector<uint64_t>& units, Use use) {
  for (size_t begin = next_unit(units, 0, true); begin < units.size() * 64;) {
    const size_t end = next_unit(units, begin, false);
    use(begin * kUnitBytes, (end - begin) * kUnitBytes);
    begin = next_unit(units, end, true);
  }
}

void unite(std::vector<uint64_t>& all, const std::vector<uint64_t>& more) {
  if (all.size() < more.size()) all.resize(more.size());
  for (size_t i = 0; i < more.size(); ++i) all[i] |= more[i];
}

// What [first, first + count) lines of an operand read. It must be inside shared memory.
const Footprint& footprint_of(Warp& w, WgmmaState& state, const Instr& in, const char* name,
                              uint64_t descriptor, const OperandShape& shape, int first, int count) {
  Footprint& footprint =
      state.footprints[{descriptor, shape.lines, shape.k, shape.bytes, shape.line_major, first, count}];
  const bool known = !footprint.units.empty();
  if (known && footprint.problem.empty()) return footprint;
  const OperandLayout layout(descriptor, shape);
  footprint.problem = layout.problem();
  if (!footprint.problem.empty()) {
    raise(FaultKind::descriptor, w, in, -1,
          std::string("the descriptor of ") + name + ", " + hex(descriptor) + ", " + footprint.problem,
          "start address, leading and stride byte offsets and base offset are in units, and at bits, of "
          "their own");
  }
  if (known) return footprint;
  const size_t bytes = w.block->shared.bytes.size();
  std::vector<uint64_t> seen(bytes / kUnitBytes / 64 + 1);
  layout.units(first, count, [&](uint32_t address, int line, int k) {
    const int64_t at = int64_t(address) - kSharedStart;
    if (at < 0 || size_t(at) + kUnitBytes > bytes) {
      raise_final(FaultKind::bounds, w, in, -1,
                  std::string(name) + (name[0] == 'A' ? ", row " : ", column ") + std::to_string(line) +
                      ", k " + std::to_string(k) + " is at shared address " + hex(address) +
                      "; the block has " + std::to_string(bytes) + " bytes from " +
                      hex(uint64_t(kSharedStart)),
                  "a wrong start address or byte offset in the descriptor " + hex(descriptor));
    }
    seen[size_t(at) / kUnitBytes / 64] |= 1ull << (size_t(at) / kUnitBytes % 64);
  });
  for_runs(seen, [&](size_t offset, size_t length) { footprint.runs.push_back({offset, length}); });
  footprint.units = std::move(seen);
  return footprint;
}

// Each warp answers for its rows of A and for all of B: written, and handed on to the asynchronous proxy.
// What the whole warpgroup reads goes to the group, once.
void check_operands(Warp& w, WgmmaState& state, Group& group, const Operation& operation) {
  const Instr& in = *operation.instr;
  const WgmmaForm& form = form_of(in);
  const int part = part_of(w);
  const Footprint& b = footprint_of(w, state, in, "B", operation.b, form.b_shape, 0, form.n);
  const auto a_of = [&](int first, int count) -> const Footprint& {
    return footprint_of(w, state, in, "A", operation.a, form.a_shape, first, count);
  };
  const bool a_in_memory = !form.a_in_registers;
  std::vector<uint64_t> own = b.units;
  if (a_in_memory) unite(own, a_of(part * kRows, kRows).units);
  if (!all_async_readable(w, in, *w.block, b.runs) ||
      (a_in_memory && !all_async_readable(w, in, *w.block, a_of(part * kRows, kRows).runs)))
    for_runs(own, [&](size_t offset, size_t bytes) { check_async_read(w, in, 0, *w.block, offset, bytes); });
  const size_t number = group.operations[part].size();
  const bool first = std::none_of(state.of, state.of + kWarps, [&](const WgmmaState::Of& each) {
    return each.warp != &w && group.operations[part_of(*each.warp)].size() > number;
  });
  if (!first) return;
  if (a_in_memory) unite(own, a_of(0, kWarps * kRows).units);
  group.reader = &in;
  unite(group.units, own);
}

// ---- instructions ----

// The value that all lanes must have.
template <class T>
T uniform(Warp& w, const Instr& in, uint32_t slot, const char* name) {
  const T* values = w.at<T>(slot);
  for (int lane = 1; lane < kLanes; ++lane) {
    if (values[lane] == values[0]) continue;
    raise_final(FaultKind::diverged, w, in, lane,
                std::string(name) + " is " + hex(values[lane]) + " here and " + hex(values[0]) + " in lane 0",
                "descriptors and scale-d must be the same in all threads");
  }
  return values[0];
}

void mark_in_flight(Warp& w, const Instr& in) {
  const WgmmaForm& form = form_of(in);
  if (w.in_flight.empty()) w.in_flight.assign(w.written.size(), 0);
  for (const int32_t r : form.d_registers) w.in_flight[size_t(r)] = w.written[size_t(r)] = kAllLanes;
  for (const int32_t r : form.a_registers) w.in_flight[size_t(r)] = kAllLanes;
  w.in_flight_by = &in;
}

Next mma_async(Warp& w, const Instr& in, Mask m) {
  WgmmaState& state = state_of(w, in, m);
  WgmmaState::Of& own = state.of[part_of(w)];
  const WgmmaForm& form = form_of(in);
  for (const int32_t r : form.others)
    require_written(w, in, r, "a variable is used before it has a value on this path");
  Operation operation{&in, 0, uniform<uint64_t>(w, in, in.s[1], "the descriptor of B"), false};
  if (!form.a_in_registers) operation.a = uniform<uint64_t>(w, in, in.s[0], "the descriptor of A");
  operation.accumulates = uniform<uint8_t>(w, in, in.s[2], "scale-d") != in.variant;
  Group& group = state.group(own.commits);
  check_registers(w, state, in, operation.accumulates);
  check_operands(w, state, group, operation);
  group.operations[part_of(w)].push_back(operation);
  if (!late(w)) multiply(state, operation, part_of(w), 1);
  mark_in_flight(w, in);
  InstrCounts& counts = counts_of(in);
  counts.multiply_adds += uint64_t(kRows * form.n * form.k);
  counts.bytes +=
      uint64_t((form.a_in_registers ? 0 : kRows * 32) + form.n * 32 / kWarps);  // B is read once for all four
  return Next::go_on;
}

Next fence(Warp& w, const Instr& in, Mask m) {
  WgmmaState& state = state_of(w, in, m);
  state.of[part_of(w)].fenced = true;
  w.touched.assign(w.written.size(), 0);
  return Next::go_on;
}

Next commit_group(Warp& w, const Instr& in, Mask m) {
  WgmmaState& state = state_of(w, in, m);
  WgmmaState::Of& own = state.of[part_of(w)];
  Group& group = state.group(own.commits);
  if (group.windows.empty()) {
    for_runs(group.units, [&](size_t offset, size_t bytes) {
      group.windows.push_back(w.block->shared.open({offset, offset + bytes, false, &w, group.reader, 0}));
    });
  }
  release(w, group.clock);
  ++own.commits;
  own.fenced = false;
  return Next::go_on;
}

void require_same(const WgmmaState& state, const Group& group, Warp& w, const Instr& in) {
  const auto& mine = group.operations[part_of(w)];
  for (const WgmmaState::Of& each : state.of) {
    const auto& theirs = group.operations[part_of(*each.warp)];
    if (mine == theirs) continue;
    const bool count = mine.size() != theirs.size();
    const size_t at = size_t(
        std::mismatch(mine.begin(), mine.begin() + long(std::min(mine.size(), theirs.size())), theirs.begin())
            .first -
        mine.begin());
    std::vector<Party> others;
    if (at < theirs.size()) others.push_back({each.warp, theirs[at].instr, -1, "issued this one"});
    raise_final(
        FaultKind::diverged, w, in, -1,
        count ? "this warp committed a group of " + std::to_string(mine.size()) + " wgmma, warp " +
                    std::to_string(each.warp->index) + " one of " + std::to_string(theirs.size())
              : "wgmma number " + std::to_string(at) +
                    " of the group is not the same, with the same descriptors and scale-d, as that of warp " +
                    std::to_string(each.warp->index),
        "all four warps of a warpgroup must execute the same wgmma instructions", others);
  }
}

// The groups below `target` are complete: all four warps have committed them.
void complete(WgmmaState& state, uint64_t target, Warp& w, const Instr& in) {
  for (; state.done < target; ++state.done) {
    Group& group = state.group(state.done);
    require_same(state, group, w, in);
    if (late(w)) {
      for (const Operation& operation : group.operations[part_of(w)]) multiply(state, operation, 0, kWarps);
    }
    for (const SharedMemory::Handle window : group.windows) w.block->shared.close(window);
    group.windows.clear();
  }
}

// The warp has its registers back, but for those of groups at `target` or later. Hardware reads an operand
// for the four warps together: whoever has waited knows that the others were past their commits too.
void hand_back(WgmmaState& state, uint64_t target, Warp& w) {
  WgmmaState::Of& own = state.of[part_of(w)];
  for (; own.released < target; ++own.released) acquire(w, state.group(own.released).clock);
  w.in_flight.clear();
  w.in_flight_by = nullptr;
  for (uint64_t number = own.released; number - state.first < state.groups.size(); ++number) {
    for (const Operation& operation : state.group(number).operations[part_of(w)])
      mark_in_flight(w, *operation.instr);
  }
  uint64_t least = own.released;
  for (const WgmmaState::Of& each : state.of) least = std::min(least, each.released);
  for (; state.first < least; ++state.first) state.groups.pop_front();
}

// Each warp's waits must find the same number of groups committed.
void require_same_wait(WgmmaState& state, Warp& w, const Instr& in) {
  WgmmaState::Of& own = state.of[part_of(w)];
  if (own.waiting) return;  // it is back after waiting
  own.waiting = true;
  const size_t number = own.waits++;
  if (number == state.commits_at_wait.size()) {
    state.commits_at_wait.push_back(own.commits);
  } else if (state.commits_at_wait[number] != own.commits) {
    raise_final(FaultKind::diverged, w, in, -1,
                "this warp has committed " + std::to_string(own.commits) +
                    " groups of wgmma at its wait number " + std::to_string(number + 1) +
                    ", another of the warpgroup had committed " +
                    std::to_string(state.commits_at_wait[number]),
                "all four warps of a warpgroup must execute the same wgmma instructions");
  }
}

Next wait_group(Warp& w, const Instr& in, Mask m) {
  WgmmaState& state = state_of(w, in, m);
  WgmmaState::Of& own = state.of[part_of(w)];
  require_same_wait(state, w, in);
  const uint64_t pending = uint64_t(in.offset),
                 target = std::max(own.released, own.commits - std::min(own.commits, pending));
  if (state.committed_by_all() < target) {
    w.running->ready = [&state, target] { return state.committed_by_all() >= target; };
    w.running->waits_for = [&state, target] {
      std::string text = "waits for the wgmma of its warpgroup;";
      for (const WgmmaState::Of& each : state.of) {
        if (each.commits < target)
          text += " warp " + std::to_string(each.warp->index) + " has committed " +
                  std::to_string(each.commits) + " of " + std::to_string(target) + " groups";
      }
      return text;
    };
    return Next::retry;
  }
  own.waiting = false;
  complete(state, target, w, in);
  hand_back(state, target, w);
  return Next::go_on;
}

// ---- decoding ----

// What may touch registers of A and D, and when, is this file's business: see check_registers.
void take_registers(Decoder& d, const Operand& operand, size_t count, bool written,
                    std::vector<uint32_t>& slots, std::vector<int32_t>& registers) {
  if (operand.kind != Operand::Kind::vector || operand.elements.size() != count) {
    throw Unsupported{"a vector other than of " + std::to_string(count) + " registers"};
  }
  for (const Operand& each : operand.elements) {
    if (each.kind != Operand::Kind::reg) throw Unsupported{"an element that is no register"};
    slots.push_back(d.source(each, type_info("b32")));
    if (written) d.destination(each, type_info("b32"));
    registers.push_back(d.frame().first_register + each.reg);
  }
  std::sort(registers.begin(), registers.end());
  if (written && std::adjacent_find(registers.begin(), registers.end()) != registers.end()) {
    throw Unsupported{"an accumulator named twice"};
  }
}

int take_n(Decoder& d, int k) {
  for (int n = 8; n <= 256; n += 8) {
    if (d.take(("m64n" + std::to_string(n) + "k" + std::to_string(k)).c_str())) return n;
  }
  throw Unsupported{"this shape of wgmma for these types"};
}

// +1 or -1: whether the operand is negated.
bool take_scale(Decoder& d, size_t index) {
  const int64_t scale = d.immediate(index);
  if (scale != 1 && scale != -1) throw Unsupported{"a scale other than 1 and -1"};
  return scale == -1;
}
bool take_transpose(Decoder& d, size_t index) {
  const int64_t transpose = d.immediate(index);
  if (transpose != 0 && transpose != 1) throw Unsupported{"a transpose other than 0 and 1"};
  return transpose == 1;
}

void require_types(const std::string& to, const std::string& a, const std::string& b) {
  const bool narrow_type = a == "e4m3" || a == "e5m2";
  const bool inputs =
      narrow_type ? b == "e4m3" || b == "e5m2" : a == b && (a == "bf16" || a == "f16" || a == "tf32");
  const bool output = to == "f32" || (to == "f16" && (narrow_type || a == "f16"));
  if (!inputs || !output) throw Unsupported{"these types of wgmma"};
}

// wgmma.mma_async.sync.aligned.shape.dtype.atype.btype d, a, b-desc, scale-d, scale-a, scale-b {, {trans-a,}
// trans-b};
void decode_mma_async(Decoder& d) {
  const TypeInfo to = d.take_type(), a = d.take_type(), b = d.take_type();
  require_types(to.name, a.name, b.name);
  WgmmaForm form;
  form.a = narrow(a.name);
  form.b = narrow(b.name);
  form.k = 256 / form.a.bits;
  form.n = take_n(d, form.k);
  d.done();
  const bool eight_bits = form.a.bits == 8, sixteen_bits = form.a.bits == 16;
  form.cut = {form.a.mantissa_bits + form.b.mantissa_bits, eight_bits ? 13 : 25, eight_bits ? 14 : 24,
              to.name == "f16"};
  form.a_in_registers = d.operand(1).kind == Operand::Kind::vector;
  const size_t transposes = sixteen_bits ? (form.a_in_registers ? 1 : 2) : 0;
  if (d.operands() != 6 + transposes) {
    throw Unsupported{std::to_string(d.operands()) + " operands where " + std::to_string(6 + transposes) +
                      " belong"};
  }
  take_registers(d, d.operand(0), size_t(form.cut.to_half ? form.n / 4 : form.n / 2), true, form.d_slots,
                 form.d_registers);
  if (form.a_in_registers) {
    take_registers(d, d.operand(1), 4, false, form.a_slots, form.a_registers);
  } else {
    d.instr.s[0] = d.source(1, type_info("b64"));
  }
  d.instr.s[1] = d.source(2, type_info("b64"));
  bool negated = false;
  d.instr.s[2] = d.predicate(d.operand(3), &negated);
  d.instr.variant = negated;
  for (size_t i = 1; i < 4; ++i) {
    if (d.operand(i).kind != Operand::Kind::reg) continue;
    form.others.push_back(d.frame().first_register + d.operand(i).reg);
  }
  form.negate_a = take_scale(d, 4);
  form.negate_b = take_scale(d, 5);
  form.a_shape = {kWarps * kRows, form.k, form.a.bits / 8, transposes == 2 && take_transpose(d, 6)};
  form.b_shape = {form.n, form.k, form.b.bits / 8, transposes > 0 && take_transpose(d, 5 + transposes)};
  d.extra(form);
  d.instr.own_checks = true;
  d.instr.run = mma_async;
}

void decode_wgmma(Decoder& d) {
  const int kind = d.take_one({"mma_async", "fence", "commit_group", "wait_group"});
  if (kind < 0 || !d.take("sync") || !d.take("aligned")) throw Unsupported{"this form of wgmma"};
  d.instr.converged = true;
  if (kind == 0) return decode_mma_async(d);
  d.done();
  if (d.operands() != (kind == 3 ? 1u : 0u)) throw Unsupported{"operands of " + d.statement().text};
  if (kind == 3) d.instr.offset = d.immediate(0);
  if (d.instr.offset < 0) throw Unsupported{"a negative number of groups"};
  constexpr Handler kRun[] = {nullptr, fence, commit_group, wait_group};
  d.instr.run = kRun[kind];
}

}  // namespace

std::vector<Form> wgmma_forms() { return {{"wgmma", decode_wgmma}}; }

}  // namespace gg::emu
