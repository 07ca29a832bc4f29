// SPDX-License-Identifier: MIT
//
// stmatrix of compute capability 10.0: elements of 8 bits. PTX ISA: "Warp-level matrix store
// instruction: stmatrix". Which lane and byte hold which element is taken from CUTLASS
// (SM100_U8x4_STSM_T), see ldmatrix_bytes.cpp. With g = lane / 4 and t = lane % 4:
//   .m16n8.trans   byte b: memory row 2t + b % 2, byte g + 8 (b / 2)

#include "common/emu/core/state/access.h"
#include "common/emu/core/units/warp_matrix.h"
#include "common/emu/foreign/isa/foreign_forms.h"

namespace gg::emu {
namespace {

constexpr int kRowBytes = 16;

// Rows of bytes, as many as four matrices of 8 have.
using Rows = uint8_t[kLanes][kRowBytes];

Next store_16x8(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  uint64_t address[kLanes];
  const Mask givers = row_addresses(w, in, 8 * in.count, address);
  Rows rows;
  for (int i = 0; i < in.count; ++i) {
    const uint32_t* s = w.at<uint32_t>(in.list[i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4, t = lane % 4;
      for (int b = 0; b < 4; ++b) rows[8 * i + 2 * t + b % 2][g + 8 * (b / 2)] = uint8_t(s[lane] >> (8 * b));
    }
  }
  write_memory(w, in, givers, address, kRowBytes, &rows[0][0], kRowBytes);
  return Next::go_on;
}

void decode_stmatrix_bytes(Decoder& d) {
  take_sync_aligned(d);
  const bool shape = d.take("m16n8");
  const int count = d.take_one({"x1", "x2", "x4"});
  if (!shape || count < 0) throw Unsupported{"no shape of bytes"};
  const bool trans = d.take("trans");
  d.instr.space = d.take("shared") || d.take("shared::cta") ? Space::shared : Space::generic;
  const bool bytes = d.take("b8");
  d.done();
  if (!trans || !bytes || d.operands() != 2) throw Unsupported{"this stmatrix of bytes"};
  d.instr.count = uint16_t(1 << count);
  std::vector<uint32_t> slots;
  take_address(d, d.operand(0));
  take_registers(d, d.operand(1), d.instr.count, false, slots);
  d.instr.list = d.list(slots);
  d.instr.run = store_16x8;
}

}  // namespace

std::vector<Form> stmatrix_bytes_forms() { return {{"stmatrix", decode_stmatrix_bytes, Family::ldmatrix}}; }

}  // namespace gg::emu
