// SPDX-License-Identifier: MIT
//
// tcgen05.ld and tcgen05.st: registers of a warp from and to its quarter of tensor memory. PTX ISA:
// "TensorCore 5th Generation Family Instructions: tcgen05.ld, tcgen05.st", "Data Movement Shape",
// "Access restrictions". What is loaded is in the registers at once, what is stored in tensor
// memory; until tcgen05.wait nobody may count on that, and the checks see to it.

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/tensor_core.h"

namespace gg::emu {
namespace {

enum class Shape : uint8_t { s32x32b, s16x64b, s16x128b, s16x256b, s16x32bx2 };

// By Shape. Registers and columns are those of .x1, columns are of 32 bits.
struct ShapeSize {
  const char* name;
  int lanes, registers, columns, most;
};
constexpr ShapeSize kSizes[] = {{"32x32b", 32, 1, 1, 128},
                                {"16x64b", 16, 1, 2, 128},
                                {"16x128b", 16, 2, 4, 64},
                                {"16x256b", 16, 4, 8, 32},
                                {"16x32bx2", 16, 1, 1, 128}};

struct Move {
  Shape shape = Shape::s32x32b;
  int count = 1;        // N of .xN
  bool packed = false;  // .pack::16b, .unpack::16b
  AddressOperand address;
  uint32_t second = 0;  // of 16x32bx2: lanes 16 to 31 begin so much later
  std::vector<uint32_t> slots;
  std::vector<int32_t> registers;  // indices
  const ShapeSize& size() const { return kSizes[size_t(shape)]; }
  int columns() const { return size().columns * count * (packed ? 2 : 1); }
};

const Move& move_form(const Instr& in) { return *static_cast<const Move*>(in.extra); }

struct Cell {
  int lane = 0, column = 0;  // relative to the address
};

// Where register i of thread t lies. The figures of "Data Movement Shape".
Cell cell_of(Shape shape, int t, int i) {
  switch (shape) {
    case Shape::s32x32b:
      return {t, i};
    case Shape::s16x64b:
      return {t / 4 + 8 * (t & 1), (t >> 1 & 1) + 2 * i};
    case Shape::s16x128b:
      return {t / 4 + 8 * (i & 1), t % 4 + 4 * (i / 2)};
    case Shape::s16x256b:
      return {t / 4 + 8 * (i >> 1 & 1), 8 * (i / 4) + 2 * (t % 4) + (i & 1)};
    case Shape::s16x32bx2:
      return {t % 16, i};
  }
  return {};
}

// ---- addresses ----

// Lane and column of an address, the lane within the warp's own quarter. Lane 0 stands for the
// first lane of the own quarter too: kernels leave the field 0 in all warps.
TmemAddress own_address(Warp& w, const Instr& in, uint32_t bits) {
  TmemAddress address(bits);
  const bool second = w.block->cluster->blocks.size() > 1 && w.block->rank % 2 == 1;
  if (second && address.lane >= kTmemLanes && address.lane < 2 * kTmemLanes) {
    if (!was_told(FaultKind::tmem_lane, w, in)) {
      raise(FaultKind::tmem_lane, w, in, -1,
            "address " + hex(bits) + " names lane " + std::to_string(address.lane) +
                " of tensor memory, and each block has its own 128",
            "the second block of a pair counts its lanes from 0, as the first one does");
    }
    address.lane -= kTmemLanes;  // allowed: bits of the lane beyond its seven do not count
  }
  const int quarter = w.index % kTmemQuarters, named = address.lane / kLanes, within = address.lane % kLanes;
  const int step = move_form(in).size().lanes;
  if (named != 0 && named != quarter) {
    raise_final(FaultKind::bounds, w, in, -1,
                "address " + hex(bits) + " names lane " + std::to_string(address.lane) +
                    " of tensor memory; this warp reaches lanes " + std::to_string(quarter * kLanes) + "-" +
                    std::to_string(quarter * kLanes + kLanes - 1),
                "warp w of a block reaches the 32 lanes from 32 * (w % 4) on");
  }
  if (within % step != 0) {
    raise_final(FaultKind::bounds, w, in, -1,
                "address " + hex(bits) + " names lane " + std::to_string(address.lane) +
                    ", and this shape begins at a multiple of " + std::to_string(step),
                "lanes are in bits 16 and up of the address, columns below");
  }
  address.lane = quarter * kLanes + within;
  return address;
}

// The lowest lane's address counts. Lanes may add their own number to the field of lanes, as
// NVIDIA's compilers make them do; other differences are mistakes.
uint32_t address_bits(Warp& w, const Instr& in) {
  constexpr uint32_t kLaneInWarp = 0x1F0000;
  const AddressOperand& operand = move_form(in).address;
  const uint32_t bits = uint32_t(operand.of(w, 0));
  for (int lane = 1; lane < kLanes; ++lane) {
    const uint32_t other = uint32_t(operand.of(w, lane));
    if (((other ^ bits) & ~kLaneInWarp) == 0) continue;
    raise_final(FaultKind::diverged, w, in, lane,
                "the address is " + hex(other) + " here and " + hex(bits) + " in lane 0",
                "all lanes of the warp name the same address of tensor memory");
  }
  return bits;
}

struct Span {                 // what the instruction touches
  TmemAddress first, second;  // of threads 0 to 15 and 16 to 31; the same but for 16x32bx2
};

Span span_of(Warp& w, const Instr& in, TmemUse use) {
  const Move& f = move_form(in);
  const uint32_t bits = address_bits(w, in);
  const Span span{own_address(w, in, bits), own_address(w, in, bits + f.second)};
  Tmem& tmem = tmem_of(*w.block);
  const auto touch = [&](const TmemAddress& at) {
    tmem.touch(w, in, -1, tmem_region(at.lane, f.size().lanes, at.column, f.columns()), use, true);
  };
  touch(span.first);
  const bool apart = span.second.lane != span.first.lane || span.second.column != span.first.column;
  if (f.shape == Shape::s16x32bx2 && apart) touch(span.second);
  return span;
}

// use(thread, value in the register, first of its cells) for all threads and registers.
template <class Use>
void for_cells(Warp& w, const Instr& in, const Span& span, Use use) {
  const Move& f = move_form(in);
  Tmem& tmem = tmem_of(*w.block);
  for (int i = 0; i < int(f.slots.size()); ++i) {
    uint32_t* values = w.at<uint32_t>(f.slots[size_t(i)]);
    for (int t = 0; t < kLanes; ++t) {
      const Cell cell = cell_of(f.shape, t, i);
      const TmemAddress& at = t < kLanes / 2 ? span.first : span.second;
      const int column = at.column + cell.column * (f.packed ? 2 : 1);
      use(values[t], tmem.at<uint32_t>(column) + at.lane + cell.lane);
    }
  }
}

// ---- instructions ----

// .pack::16b: the low halves of two neighbouring columns make one register.
Next load(Warp& w, const Instr& in, Mask m) {
  require_whole_warp(w, in, m);
  const Move& f = move_form(in);
  const Span span = span_of(w, in, TmemUse::read);
  tmem_loaded(tmem_of(*w.block).tmem_loads, w, in);
  for_cells(w, in, span, [&](uint32_t& value, const uint32_t* cell) {
    value = f.packed ? (cell[0] & 0xFFFF) | cell[kTmemLanes] << 16 : cell[0];
  });
  if (w.registers.in_flight.empty()) w.registers.in_flight.assign(w.registers.written.size(), 0);
  for (const int32_t r : f.registers) w.registers.in_flight[size_t(r)] = kAllLanes;
  w.registers.in_flight_by = &in;
  return Next::go_on;
}

// .unpack::16b: the halves of one register go to the low halves of two neighbouring columns. PTX
// leaves the upper halves open; they are 0 here.
Next store(Warp& w, const Instr& in, Mask m) {
  require_whole_warp(w, in, m);
  const Move& f = move_form(in);
  const Span span = span_of(w, in, TmemUse::write);
  for_cells(w, in, span, [&](const uint32_t& value, uint32_t* cell) {
    cell[0] = f.packed ? value & 0xFFFF : value;
    if (f.packed) cell[kTmemLanes] = value >> 16;
  });
  ++w.block->cluster->changes;
  return Next::go_on;
}

// ---- decoding ----

void take_shape(Decoder& d, Move& f) {
  const int shape = d.take_one({"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"});
  if (shape < 0) throw Unsupported{"this shape"};
  f.shape = Shape(shape);
  const int power = d.take_one({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  if (power < 0) throw Unsupported{"a shape without .xN"};
  f.count = 1 << power;
  if (f.count > f.size().most)
    throw Unsupported{"." + std::string(f.size().name) + ".x" + std::to_string(f.count)};
}

void take_registers(Decoder& d, const Operand& operand, Move& f, bool written) {
  const size_t count = size_t(f.size().registers * f.count);
  if (operand.kind != Operand::Kind::vector || operand.elements.size() != count)
    throw Unsupported{"a vector other than of " + std::to_string(count) + " registers"};
  for (const Operand& each : operand.elements) {
    if (each.kind != Operand::Kind::reg) throw Unsupported{"an element that is no register"};
    f.slots.push_back(written ? d.destination(each, type_info("b32")) : d.source(each, type_info("b32")));
    f.registers.push_back(d.frame().first_register + each.reg);
  }
}

void finish(Decoder& d, Move& f, size_t address, Handler run) {
  f.address = take_tmem_operand(d, d.operand(address));
  if (f.shape == Shape::s16x32bx2) f.second = uint32_t(d.immediate(address + 1));
  if (d.operands() != (f.shape == Shape::s16x32bx2 ? 3 : 2)) throw Unsupported{"this number of operands"};
  d.extra(f);
  d.instr.converged = true;
  d.instr.run = run;
}

void take_words(Decoder& d, Move& f, const char* packing) {
  if (!d.take("sync") || !d.take("aligned")) throw Unsupported{"this form of tcgen05"};
  take_shape(d, f);
  f.packed = d.take(packing);
  if (!d.take("b32")) throw Unsupported{"a type other than .b32"};
  d.done();
}

}  // namespace

// tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32 r, [taddr]{, immHalfSplitoff};
void decode_tcgen05_load(Decoder& d) {
  Move f;
  take_words(d, f, "pack::16b");
  take_registers(d, d.operand(0), f, true);
  finish(d, f, 1, load);
}

// tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [taddr]{, immHalfSplitoff}, r;
void decode_tcgen05_store(Decoder& d) {
  Move f;
  take_words(d, f, "unpack::16b");
  take_registers(d, d.operand(f.shape == Shape::s16x32bx2 ? 2 : 1), f, false);
  finish(d, f, 0, store);
}

}  // namespace gg::emu
