// SPDX-License-Identifier: MIT
//
// Tensor copies: boxes of a tensor in global memory to and from shared memory, tiled mode.
// PTX ISA: "Data Movement and Conversion Instructions: cp.async.bulk.tensor,
// cp.reduce.async.bulk.tensor, cp.async.bulk.prefetch.tensor", "Tensors: Tiled Mode, Out of Bound
// Access, Swizzling Modes". A box is a list of rows along dimension 0; in shared memory rows
// follow each other, with a swizzle at its span, and 16-byte units change places within 128 bytes.
// Modes .tile::gather4 and .tile::scatter4 name four rows of a tensor of two dimensions, "Tensors:
// Tile::scatter4 and Tile::gather4 modes". Elements of 4 or 6 bits with padding: "Tensors: Packing
// formats of sub-byte types".

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/unwritten.h"
#include "common/emu/core/units/bulk_copy.h"
#include "common/emu/core/units/tensor_map_use.h"

namespace gg::emu {
namespace {

constexpr int kUnit = 16;  // bytes that stay together

struct TensorCopy {
  AddressOperand shared, map, barrier;
  uint32_t coordinates[kTensorMapRank] = {};  // slots
  int rank = 0;
  // .tile::gather4 and scatter4: coordinates {column, row0, row1, row2, row3}.
  bool four_rows = false;
  uint32_t mask = 0;  // slot; 0: no multicast
  bool pair = false;  // .cta_group::2: where the mbarrier may be, see landings()
  bool reduces = false;
  ReduceOp op = ReduceOp::add;
};
const TensorCopy& tensor_form(const Instr& in) { return *static_cast<const TensorCopy*>(in.extra); }

// The part of a row that lies in the tensor: bytes [first, first + bytes) of it are at `address`.
struct Row {
  uint64_t address = 0;
  int first = 0, bytes = 0;
};

struct Box {
  TensorMap map;
  bool stores = false, four_rows = false;
  int64_t start[kTensorMapRank] = {};  // coordinates of its first element, or as four_rows has them
  int row = 0;                         // bytes: of a row in global memory
  int spread_row = 0, pitch = 0;       // of a row in shared memory, and from row to row there
  int filled = kUnit;                  // of each unit in shared memory that hold data
  std::vector<Row> rows;

  size_t shared_bytes() const { return rows.size() * size_t(pitch); }
  int64_t bytes(int64_t elements) const { return elements * map_type_bits(map.type) / 8; }
  // The bytes that an mbarrier is told of: those of global memory, in bounds or not.
  int64_t transaction_bytes() const { return int64_t(rows.size()) * row; }
};

Row row_at(const Box& b, int64_t index) {
  uint64_t address = b.map.address;
  bool inside = true;
  for (int d = 1; d < b.map.rank; ++d) {
    const int64_t at = b.four_rows ? b.start[1 + index]
                                   : b.start[d] + index % b.map.box_elements(d) * b.map.element_strides[d];
    if (!b.four_rows) index /= b.map.box_elements(d);
    inside = inside && at >= 0 && uint64_t(at) < b.map.dims[d];
    address += uint64_t(at) * b.map.strides[d];
  }
  const int64_t start = b.bytes(b.start[0]), first = std::max<int64_t>(0, -start);
  int64_t end = b.bytes(int64_t(b.map.dims[0])) - start;
  // Measured: stores leave out whole units only.
  if (b.stores) end = (end + kUnit - 1) / kUnit * kUnit;
  end = std::min<int64_t>(end, b.row);
  if (!inside || end <= first) return {};
  return {address + uint64_t(start + first), int(first), int(end - first)};
}

size_t unit_at(const Box& b, size_t base, size_t row, int unit) {
  return b.map.swizzled(base + row * size_t(b.pitch) + size_t(unit) * kUnit);
}

// The part of shared memory that a copy of the box touches. Rows shorter than the span of their
// swizzle leave gaps, and a store does not read what it leaves out of the tensor.
std::vector<Range> ranges_of(const Box& b, size_t base) {
  const auto whole = [&](const Row& row) { return !b.stores || row.bytes == b.row; };
  if (b.pitch == b.spread_row && std::all_of(b.rows.begin(), b.rows.end(), whole))
    return {{base, base + b.shared_bytes()}};
  std::vector<size_t> units;
  for (size_t r = 0; r < b.rows.size(); ++r) {
    const int count = whole(b.rows[r]) ? b.spread_row / kUnit : (b.rows[r].bytes + b.filled - 1) / b.filled;
    for (int u = 0; u < count; ++u) units.push_back(unit_at(b, base, r, u));
  }
  std::sort(units.begin(), units.end());
  std::vector<Range> ranges;
  for (const size_t at : units) {
    if (ranges.empty() || ranges.back().end != at) ranges.push_back({at, at});
    ranges.back().end = at + kUnit;
  }
  return ranges;
}

// ---- at issue ----

std::string coordinates_text(const Box& b) {
  std::string text;
  const int count = b.four_rows ? kTensorMapRank : b.map.rank;
  for (int d = 0; d < count; ++d) text += (d ? ", " : "(") + std::to_string(b.start[d]);
  return text + ")";
}

// The live allocation that holds every byte of the tensor; null if none does.
const Allocation* allocation_of(const GlobalMemory& memory, const Box& b) {
  double last = double(b.bytes(int64_t(b.map.dims[0]))) + (b.stores ? kUnit : 0);
  for (int d = 1; d < b.map.rank; ++d) last += double(b.map.dims[d] - 1) * double(b.map.strides[d]);
  constexpr double kMost = double(1ull << 42);
  return last < kMost && memory.host(b.map.address, uint64_t(last)) ? memory.below(b.map.address) : nullptr;
}

// From the tensor's first byte to its last one, if that is less than all addresses.
uint64_t tensor_bytes(const Box& b) {
  double last = double(b.bytes(int64_t(b.map.dims[0]))) + (b.stores ? kUnit : 0);
  for (int d = 1; d < b.map.rank; ++d) last += double(b.map.dims[d] - 1) * double(b.map.strides[d]);
  constexpr uint64_t kMost = 1ull << 42;
  return last < double(kMost) ? uint64_t(last) : kMost;
}

// True if kernels may read every byte of the tensor.
bool is_readable(const GlobalMemory& memory, const Box& b) {
  const Allocation* const a = memory.below(b.map.address);
  return !a || !a->readable || a->readable->holds(b.map.address, tensor_bytes(b));
}

// A load reads its rows, and so does a reduction.
void check_rows(Warp& w, const Instr& in, int lane, const Box& b, bool reads) {
  const GlobalMemory& memory = *w.block->grid->memory;
  const Allocation* const whole = allocation_of(memory, b);
  const bool guards = !b.stores && !is_readable(memory, b);
  for (const Row& row : b.rows) {
    if (row.bytes == 0) continue;
    if (!whole && !memory.host(row.address, uint64_t(row.bytes))) {
      const std::string bytes = "the box at " + coordinates_text(b) + " has " + std::to_string(row.bytes) +
                                " bytes at " + hex(row.address) + " that are inside the tensor and ";
      const std::string map = "; the map: " + describe_tensor_map(b.map);
      if (memory.freed(row.address)) {
        raise_final(
            FaultKind::use_after_free, w, in, lane,
            bytes + "in a buffer that was freed before this launch" + map,
            "cudaFree came before the kernel that still uses the tensor map, or the map is an old one");
      }
      raise_final(FaultKind::bounds, w, in, lane, bytes + "outside every buffer" + map,
                  "the tensor map gives an address, dimensions or strides that the buffer does not have");
    }
    if (guards) check_guards(w, in, lane, row.address, uint64_t(row.bytes));
    count_run(in, row.address, uint64_t(row.bytes));
    if (!reads) continue;
    const Allocation* const buffer = whole ? whole : memory.below(row.address);
    check_global_read(w, in, lane, buffer, row.address, uint64_t(row.bytes));
  }
}

// Where a box may begin, and which maps each mode and direction takes.
void check_form(Warp& w, const Instr& in, int lane, const Box& b) {
  const int64_t whole = b.map.spread() ? 128 : 16 * 8 / map_type_bits(b.map.type);  // elements
  if (b.start[0] % whole != 0) {
    const std::string where =
        b.map.spread()
            ? "at element " + std::to_string(b.start[0]) + " of its rows, which is no multiple of 128"
            : std::to_string(b.bytes(b.start[0])) + " bytes into its rows, which is no multiple of 16";
    raise_final(FaultKind::alignment, w, in, lane, "the box at " + coordinates_text(b) + " begins " + where,
                b.map.spread() ? "boxes of elements that are spread in shared memory begin at every 128 only"
                               : "along dimension 0 a box may begin at every 16 bytes only; the hardware "
                                 "takes this for an illegal instruction");
  }
  if (b.stores && b.map.type == MapType::b4x16_p64) {
    raise_final(FaultKind::tensor_map, w, in, lane, "a store with a tensor map of type b4x16_p64",
                "boxes of this type can be loaded only; b4x16, without padding, can be stored");
  }
  if (b.four_rows && (b.map.box[1] != 1 || b.map.element_strides[1] != 1)) {
    raise_final(FaultKind::unsupported, w, in, lane,
                "not supported: four rows with a tensor map whose box is " + std::to_string(b.map.box[1]) +
                    " rows high, or has an element stride",
                "make the map for .tile::gather4 and .tile::scatter4 with a box of one row");
  }
}

Box box_of(Warp& w, const Instr& in, int lane, bool stores) {
  const TensorCopy& f = tensor_form(in);
  Box b;
  b.stores = stores;
  b.map = use_tensor_map(w, in, lane, f.map.of(w, lane), f.rank);
  b.four_rows = f.four_rows;
  const int coordinates = f.four_rows ? kTensorMapRank : f.rank;
  for (int d = 0; d < coordinates; ++d) b.start[d] = w.at<int32_t>(f.coordinates[d])[lane];
  b.row = int(b.bytes(b.map.box[0]));
  b.filled = b.map.spread() ? 2 * map_type_bits(b.map.type) : kUnit;  // 16 elements to a unit
  b.spread_row = b.row / b.filled * kUnit;
  b.pitch = std::max(b.spread_row, b.map.span_bytes());
  check_form(w, in, lane, b);
  const bool negative = std::any_of(b.start, b.start + coordinates, [](int64_t at) { return at < 0; });
  if (stores && negative) {
    raise_final(
        FaultKind::bounds, w, in, lane,
        "a store of a box at " + coordinates_text(b) + ", which begins before the tensor",
        "loads may begin at negative coordinates, stores may not; the hardware takes this for an illegal "
        "instruction");
  }
  constexpr int64_t kMost = 1 << 20;  // more than any shared memory
  const int64_t rows = b.four_rows ? 4 : b.map.box_bytes() / b.row;
  if (rows * b.pitch > kMost) {
    raise_final(FaultKind::bounds, w, in, lane,
                "a box of " + std::to_string(rows) + " rows of " + std::to_string(b.pitch) + " bytes",
                "no block has that much shared memory: the box of the tensor map is too large");
  }
  for (int64_t r = 0; r < rows; ++r) b.rows.push_back(row_at(b, r));
  return b;
}

// ---- when it happens ----

// tf32 has 10 bits of fraction: loads round to the nearest, halfway to even.
uint32_t round_tf32(uint32_t bits) {
  constexpr uint32_t kInfinity = 0x7F800000, kNan = 0x7FFFE000;
  if ((bits & 0x7FFFFFFF) > kInfinity) return kNan;
  return (bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFFu;
}

void load_row(const GlobalMemory& memory, const Box& b, const Row& row, uint8_t* to) {
  constexpr uint16_t kFill = 0x7FF7;
  if (row.bytes < b.row) {
    for (int i = 0; i < b.row; i += 2) {
      const uint16_t fill = b.map.nan_fill ? kFill : 0;
      std::memcpy(to + i, &fill, 2);
    }
  }
  if (row.bytes == 0) return;
  uint8_t* const first = to + row.first;
  std::memcpy(first, memory.unchecked(row.address), size_t(row.bytes));
  if (b.map.type != MapType::tf32 && b.map.type != MapType::tf32_ftz) return;
  for (int i = 0; i < row.bytes; i += 4) {
    uint32_t bits;
    std::memcpy(&bits, first + i, 4);
    bits = round_tf32(bits);
    std::memcpy(first + i, &bits, 4);
  }
}

// The bytes of a unit behind its data are undefined: here each is this byte, so that nobody takes
// them for zeros.
constexpr int kPadding = 0xEE;

void land(const Box& b, const GlobalMemory& memory, Block& block, size_t base) {
  std::vector<uint8_t> row(size_t(b.row));
  for (size_t r = 0; r < b.rows.size(); ++r) {
    load_row(memory, b, b.rows[r], row.data());
    for (int u = 0; u < b.spread_row / kUnit; ++u) {
      uint8_t* const unit = block.shared.bytes.data() + unit_at(b, base, r, u);
      std::memcpy(unit, row.data() + u * b.filled, size_t(b.filled));
      std::memset(unit + b.filled, kPadding, size_t(kUnit - b.filled));
    }
  }
}

// The rows one after the other, as the plain layout has them.
std::vector<uint8_t> gather(const Box& b, const Block& block, size_t base) {
  std::vector<uint8_t> data(b.rows.size() * size_t(b.row));
  for (size_t r = 0; r < b.rows.size(); ++r) {
    for (int u = 0; u < b.spread_row / kUnit; ++u) {
      std::memcpy(data.data() + r * size_t(b.row) + size_t(u) * size_t(b.filled),
                  block.shared.bytes.data() + unit_at(b, base, r, u), size_t(b.filled));
    }
  }
  return data;
}

void scatter(const Warp& w, const Box& b, const std::vector<uint8_t>& data, const Reduction* reduction) {
  const GlobalMemory& memory = *w.block->grid->memory;
  const Allocation* const whole = allocation_of(memory, b);
  for (size_t r = 0; r < b.rows.size(); ++r) {
    const Row& row = b.rows[r];
    if (row.bytes == 0) continue;
    const uint8_t* from = data.data() + r * size_t(b.row) + row.first;
    uint8_t* to = memory.unchecked(row.address);
    will_write_global(w, whole ? whole : memory.below(row.address), row.address, uint64_t(row.bytes));
    if (reduction) {
      reduce_elements(*reduction, to, from, size_t(row.bytes) / size_t(b.bytes(1)));
    } else {
      std::memcpy(to, from, size_t(row.bytes));
    }
  }
}

// ---- instructions ----

constexpr int kSharedAlignment = 128;

Next load(Warp& w, const Instr& in, Mask m) {
  const TensorCopy& f = tensor_form(in);
  const GlobalMemory& memory = *w.block->grid->memory;
  for (Lanes l(m); l; ++l) {
    const auto box = std::make_shared<const Box>(box_of(w, in, *l, false));
    check_rows(w, in, *l, *box, true);
    const std::vector<Landing> all = landings(w, in, *l, f.shared, f.barrier, f.mask,
                                              int64_t(box->shared_bytes()), kSharedAlignment, f.pair);
    const std::vector<Range> ranges = ranges_of(*box, all[0].offset);
    for (const Landing& to : all) {
      for (const Range& r : ranges) check_async_write(w, in, *l, *to.block, r.begin, r.end - r.begin);
    }
    const Issuer who = issue(w, in, *l);
    TensorMapUse use = tensor_map_in_use(w, in, *l, f.map.of(w, *l));
    for (const Landing& to : all) {
      later(w, [who, to, box, use, &memory, windows = Windows(*to.block, who, ranges, true)]() mutable {
        use.reset();
        windows.close();
        land(*box, memory, *to.block, to.offset);
        mbarrier_complete(who, to.barrier, box->transaction_bytes());
      });
    }
  }
  return Next::go_on;
}

// The reduction for the map's type of element; a type without one is an illegal instruction.
Reduction reduction_for(Warp& w, const Instr& in, int lane, const TensorMap& map) {
  const ReduceOp op = tensor_form(in).op;
  const bool bitwise = op == ReduceOp::bit_and || op == ReduceOp::bit_or || op == ReduceOp::bit_xor;
  const bool tf32 = map.type == MapType::tf32 || map.type == MapType::tf32_ftz;
  const bool flush = map.type == MapType::f32_ftz || map.type == MapType::tf32_ftz;
  Reduction reduction;
  std::string type = tf32 || flush ? "f32" : map_type_name(map.type);
  if (bitwise && (type == "u32" || type == "s32")) type = "b32";
  if (bitwise && type == "u64") type = "b64";
  if (!reduction_of(op, type, false, &reduction)) {
    raise_final(FaultKind::tensor_map, w, in, lane,
                std::string(".") + reduce_op_name(op) + " of elements of type " + map_type_name(map.type),
                "the tensor map's type has no such reduction");
  }
  reduction.flush = flush;
  return reduction;
}

Next store(Warp& w, const Instr& in, Mask m) {
  const TensorCopy& f = tensor_form(in);
  const auto operands = [&](int l) {
    std::vector<uint64_t> all = {f.map.of(w, l), f.shared.of(w, l)};
    for (const uint32_t slot : f.coordinates) all.push_back(slot ? w.at<uint32_t>(slot)[l] : 0);
    return all;
  };
  for (Mask left = m, like = 0; left; left &= ~like) {
    const Lanes l(left);
    like = f.reduces ? left & -left : like_the_first(left, operands);
    const auto box = std::make_shared<const Box>(box_of(w, in, *l, true));
    check_rows(w, in, *l, *box, f.reduces);
    const Place from = locate_operand(w, in, *l, f.shared, int(box->shared_bytes()), kSharedAlignment);
    const std::vector<Range> ranges = ranges_of(*box, from.offset);
    for (const Range& r : ranges) check_async_read(w, in, *l, *from.block, r.begin, r.end - r.begin);
    Reduction reduction;
    if (f.reduces) reduction = reduction_for(w, in, *l, box->map);
    const auto read = [box, from, use = tensor_map_in_use(w, in, *l, f.map.of(w, *l))] {
      return gather(*box, *from.block, from.offset);
    };
    const auto write = [&w, box, reduction, reduces = f.reduces](const std::vector<uint8_t>& data) {
      scatter(w, *box, data, reduces ? &reduction : nullptr);
    };
    store_later(issue(w, in, *l), *from.block, ranges, join_groups(w, like), read, write);
  }
  return Next::go_on;
}

// Into L2: nothing to see, and memory that is not there is harmless; but the map and the
// coordinates must be right.
Next prefetch(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) box_of(w, in, *l, false);
  return Next::go_on;
}

// ---- decoding ----

// .tile, which may be left out, or the mode of four rows.
void take_mode(Decoder& d, const char* four_rows, TensorCopy* f) {
  f->four_rows = d.take(four_rows);
  if (!f->four_rows) d.take("tile");
  if (f->four_rows && !targets_sm100(*d.code().module)) throw Unsupported{"four rows before sm_100"};
  if (f->four_rows && f->rank != 2) throw Unsupported{"four rows of a tensor that has not two dimensions"};
}

// [map, {c0, c1, ...}]
void take_map(Decoder& d, const Operand& operand, TensorCopy* f) {
  if (operand.elements.size() != 1) throw Unsupported{"a tensor map without coordinates"};
  f->map = take_address_operand(d, operand, Space::generic);
  if (f->map.base_bits != 64) throw Unsupported{"a generic address of 32 bits"};
  const std::vector<const Operand*> all = Decoder::elements(operand.elements[0]);
  const int count = f->four_rows ? kTensorMapRank : f->rank;
  if (int(all.size()) != count) throw Unsupported{"a number of coordinates that is not the rank"};
  for (int i = 0; i < count; ++i) f->coordinates[i] = d.source(*all[size_t(i)], type_info("s32"));
}

void decode_load(Decoder& d, TensorCopy f) {
  const bool cluster = d.take("shared::cluster");
  if ((!cluster && !d.take("shared::cta")) || !d.take("global")) throw Unsupported{"this direction"};
  take_mode(d, "tile::gather4", &f);
  // Before the destination or behind all else.
  const int group = d.take_one({"cta_group::1", "cta_group::2"});
  if (group >= 0 && !targets_sm100(*d.code().module)) throw Unsupported{"modifier .cta_group before sm_100"};
  f.pair = group == 1;
  if (!d.take("mbarrier::complete_tx::bytes")) throw Unsupported{"this completion mechanism"};
  const bool multicast = cluster && d.take("multicast::cluster"), hint = d.take("L2::cache_hint");
  d.done();
  f.shared = take_address_operand(d, d.operand(0), Space::shared, cluster);
  take_map(d, d.operand(1), &f);
  f.barrier = take_address_operand(d, d.operand(2), Space::shared, cluster);
  size_t next = 3;
  if (multicast) f.mask = d.source(next++, type_info("b16"));
  if (hint) d.source(next++, type_info("b64"));
  if (d.operands() != next) throw Unsupported{"this number of operands"};
  d.extra(f);
  d.instr.run = load;
}

void decode_store(Decoder& d, TensorCopy f) {
  if (!d.take("global") || !d.take("shared::cta")) throw Unsupported{"this direction"};
  if (f.reduces) f.op = take_reduce_op(d);
  take_mode(d, "tile::scatter4", &f);
  if (!d.take("bulk_group")) throw Unsupported{"this completion mechanism"};
  const bool hint = d.take("L2::cache_hint");
  d.done();
  take_map(d, d.operand(0), &f);
  f.shared = take_address_operand(d, d.operand(1), Space::shared);
  if (hint) d.source(2, type_info("b64"));
  if (d.operands() != (hint ? 3 : 2)) throw Unsupported{"this number of operands"};
  d.extra(f);
  d.instr.run = store;
}

void decode_prefetch(Decoder& d, TensorCopy f) {
  if (!d.take("L2") || !d.take("global")) throw Unsupported{"this prefetch"};
  take_mode(d, "tile::gather4", &f);
  const bool hint = d.take("L2::cache_hint");
  d.done();
  take_map(d, d.operand(0), &f);
  if (hint) d.source(1, type_info("b64"));
  if (d.operands() != (hint ? 2 : 1)) throw Unsupported{"this number of operands"};
  d.extra(f);
  d.instr.run = prefetch;
}

}  // namespace

void decode_tensor_copy(Decoder& d, bool reduces) {
  TensorCopy f;
  f.reduces = reduces;
  const bool prefetches = !reduces && d.take("prefetch");
  if (!d.take("tensor")) throw Unsupported{"this bulk copy"};
  f.rank = d.take_one({"1d", "2d", "3d", "4d", "5d"}) + 1;
  if (f.rank == 0) throw Unsupported{"this number of dimensions"};
  if (prefetches) return decode_prefetch(d, f);
  const std::vector<std::string>& words = d.statement().modifiers;
  const auto at = [&](const char* word) { return std::find(words.begin(), words.end(), word); };
  const bool loads = at("shared::cluster") < at("global") || at("shared::cta") < at("global");
  if (loads && !reduces) return decode_load(d, f);
  decode_store(d, f);
}

}  // namespace gg::emu
