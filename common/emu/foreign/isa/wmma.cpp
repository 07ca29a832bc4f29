// SPDX-License-Identifier: MIT
//
// wmma.load and wmma.store: a warp moves a matrix between memory and a fragment. PTX ISA:
// "Warp-level Matrix Load Instruction: wmma.load", "Warp-level Matrix Store Instruction:
// wmma.store". The ISA does not say which lane gets which element: units/wmma_fragment.h does. Each
// lane reads and writes memory as machine code of sm_90a has it: neighbours at once where the
// layout puts them side by side, pairs of 16-bit elements of the other direction through an 8x8
// matrix that is transposed in registers, and all others one by one.

#include <algorithm>
#include <cstring>

#include "common/emu/core/state/access.h"
#include "common/emu/core/units/warp_matrix.h"
#include "common/emu/foreign/isa/foreign_forms.h"
#include "common/emu/foreign/units/wmma_fragment.h"

namespace gg::emu {
namespace {

constexpr int kRunBytes = 16;  // of a lane at one place, at most
using Runs = uint8_t[kLanes][kRunBytes];

struct WmmaMove {
  WmmaFragment fragment;
  bool side_by_side = false;  // neighbours of a line are neighbours in memory
};

// The matrix's address and the elements from one line of memory to the next, which all lanes
// must agree on.
struct Matrix2D {
  uint64_t base = 0, stride = 0;
};

template <class T>
void require_same(Warp& w, const Instr& in, const T* values, const char* name) {
  for (int lane = 1; lane < kLanes; ++lane) {
    if (values[lane] == values[0]) continue;
    raise_final(FaultKind::diverged, w, in, lane,
                std::string(name) + " is " + hex(values[lane]) + " here and " + hex(values[0]) + " in lane 0",
                "this operand must be the same in all lanes of the warp");
  }
}

// Lines begin at multiples of the fragment's size in a lane, by the ISA; CUDA's guide takes strides
// of 16 bytes too.
void require_aligned(Warp& w, const Instr& in, const WmmaFragment& f, const Matrix2D& matrix) {
  const uint64_t unit = uint64_t(std::min(f.bytes(), 16)), stride_bits = matrix.stride * uint64_t(f.bits);
  if (matrix.base % unit != 0) {
    raise_final(
        FaultKind::alignment, w, in, 0,
        "a matrix at address " + hex(matrix.base) + ", which is no multiple of " + std::to_string(unit),
        "wmma wants every row or column to begin at a multiple of the fragment's size");
  }
  if (stride_bits % (8 * unit) != 0) {
    raise_final(FaultKind::alignment, w, in, 0,
                "a stride of " + std::to_string(matrix.stride) + " elements, and " + std::to_string(unit) +
                    " bytes must divide it",
                "wmma wants every row or column to begin at a multiple of the fragment's size: pad rows by "
                "that much");
  }
}

Matrix2D matrix_of(Warp& w, const Instr& in, Mask m, const WmmaFragment& f) {
  require_warp(w, in, m);
  uint64_t address[kLanes];
  addresses(w, in, address);
  require_same(w, in, address, "the matrix's address");
  const uint32_t* stride = w.at<uint32_t>(in.s[0]);
  require_same(w, in, stride, "the stride");
  const Matrix2D matrix = {address[0], stride[0]};
  require_aligned(w, in, f, matrix);
  return matrix;
}

// The addresses of what the lanes move for one place, and how.
struct PlaceAccess {
  uint64_t address[kLanes];
  int width = 0;
  bool transposes = false;
};
PlaceAccess access_at(const WmmaMove& move, const Matrix2D& matrix, const WmmaFragment::Place& place,
                      int element) {
  const WmmaFragment& f = move.fragment;
  PlaceAccess access;
  access.transposes = !move.side_by_side && f.bits == 16;
  access.width = move.side_by_side || access.transposes ? f.run * f.bits / 8 : f.bits / 8;
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t g = uint64_t(lane / 4), t = uint64_t(lane % 4 * f.run + element);
    const uint64_t across = uint64_t(place.across), along = uint64_t(place.along);
    const uint64_t line = move.side_by_side ? across + g : access.transposes ? along + g : along + t;
    const uint64_t within = move.side_by_side ? along + t : access.transposes ? across + t : across + g;
    access.address[lane] = matrix.base + (line * matrix.stride + within) * uint64_t(f.bits) / 8;
  }
  return access;
}

int accesses_at(const WmmaMove& move) {
  return move.side_by_side || move.fragment.bits == 16 ? 1 : move.fragment.run;
}

// The pairs of the lanes are an 8x8 matrix, which changes rows and columns.
void transpose(Runs& runs) {
  Matrix matrix;
  for (int lane = 0; lane < kLanes; ++lane) {
    uint16_t pair[2];
    std::memcpy(pair, runs[lane], sizeof pair);
    element_of(matrix, lane, 0, false) = pair[0];
    element_of(matrix, lane, 1, false) = pair[1];
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t pair = pack(matrix, lane, true);
    std::memcpy(runs[lane], &pair, sizeof pair);
  }
}

size_t register_bytes(const WmmaFragment& f) { return f.bits == 64 ? 8 : 4; }

Next load(Warp& w, const Instr& in, Mask m) {
  const WmmaMove& move = *static_cast<const WmmaMove*>(in.extra);
  const WmmaFragment& f = move.fragment;
  const Matrix2D matrix = matrix_of(w, in, m, f);
  const size_t bytes = register_bytes(f);
  for (size_t p = 0; p < f.places.size(); ++p) {
    Runs runs;
    for (int e = 0; e < accesses_at(move); ++e) {
      const PlaceAccess access = access_at(move, matrix, f.places[p], e);
      read_memory(w, in, m, access.address, access.width, &runs[0][0] + e * access.width, kRunBytes);
      if (access.transposes) transpose(runs);
    }
    for (size_t i = p * size_t(f.registers); i < (p + 1) * size_t(f.registers); ++i) {
      for (int repeat = 0; repeat < f.repeats; ++repeat) {
        uint8_t* to = w.at<uint8_t>(in.list[i + size_t(repeat * f.distinct())]);
        const size_t from = (i - p * size_t(f.registers)) * bytes;
        for (size_t lane = 0; lane < kLanes; ++lane) std::memcpy(to + lane * bytes, runs[lane] + from, bytes);
      }
    }
  }
  return Next::go_on;
}

Next store(Warp& w, const Instr& in, Mask m) {
  const WmmaMove& move = *static_cast<const WmmaMove*>(in.extra);
  const WmmaFragment& f = move.fragment;
  const Matrix2D matrix = matrix_of(w, in, m, f);
  const size_t bytes = register_bytes(f);
  for (size_t p = 0; p < f.places.size(); ++p) {
    Runs runs;
    for (size_t i = 0; i < size_t(f.registers); ++i) {
      const uint8_t* from = w.at<uint8_t>(in.list[p * size_t(f.registers) + i]);
      for (size_t lane = 0; lane < kLanes; ++lane)
        std::memcpy(runs[lane] + i * bytes, from + lane * bytes, bytes);
    }
    if (!move.side_by_side && f.bits == 16) transpose(runs);
    for (int e = 0; e < accesses_at(move); ++e) {
      const PlaceAccess access = access_at(move, matrix, f.places[p], e);
      write_memory(w, in, m, access.address, access.width, &runs[0][0] + e * access.width, kRunBytes);
    }
  }
  return Next::go_on;
}

void decode_move(Decoder& d, bool loads) {
  const int which = loads ? d.take_one({"a", "b", "c"}) : d.take("d") ? 2 : -1;
  if (which < 0) throw Unsupported{"a wmma." + std::string(loads ? "load" : "store") + " of no matrix"};
  take_sync_aligned(d);
  const int layout = d.take_one({"row", "col"});
  if (layout < 0) throw Unsupported{"a wmma without .row or .col"};
  const WmmaShape shape = take_wmma_shape(d);
  const int space = d.take_one({"global", "shared", "shared::cta"});
  d.instr.space = space < 0 ? Space::generic : space == 0 ? Space::global : Space::shared;
  const std::vector<std::string> types = take_wmma_types(d);
  d.done();
  if (types.size() != 1) throw Unsupported{"a wmma without one type"};
  const std::string& type = types[0];
  WmmaMove move;
  move.fragment = wmma_fragment(shape, "abc"[which], type);
  const WmmaFragment& f = move.fragment;
  move.side_by_side = f.by_row == (layout == 0);
  if (which < 2 && f.bits < 8 && !move.side_by_side) throw Unsupported{"this layout of ." + type};
  if (d.operands() != 3) require_operands(d, 2);
  std::vector<uint32_t> slots;
  const size_t registers = loads ? 0 : 1;
  const int count = f.all_registers();
  take_registers(d, d.operand(registers), count, loads, slots, f.register_type);
  d.instr.list = d.list(slots);
  take_address(d, d.operand(1 - registers));
  const int packed = move.side_by_side ? f.length : f.lines;
  d.instr.s[0] = d.operands() == 3 ? d.source(2, type_info("u32")) : d.constant(uint64_t(packed), 32);
  d.extra(move);
  d.instr.run = loads ? load : store;
}

void decode_wmma(Decoder& d) {
  const int what = d.take_one({"load", "store", "mma"});
  if (what < 0) throw Unsupported{"a wmma other than load, store and mma"};
  if (what == 2) return decode_wmma_mma(d);
  d.instr.family = Family::ldmatrix;
  decode_move(d, what == 0);
}

}  // namespace

std::vector<Form> wmma_forms() { return {{"wmma", decode_wmma, Family::mma}}; }

}  // namespace gg::emu
