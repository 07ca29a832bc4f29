// SPDX-License-Identifier: MIT
//
// stmatrix: a warp stores up to four 8x8 matrices of 16-bit elements, each lane giving the address
// of one row. PTX ISA: "Warp-level matrix store instruction: stmatrix".

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/access.h"
#include "common/emu/core/units/warp_matrix.h"

namespace gg::emu {
namespace {

Next stmatrix(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  uint64_t address[kLanes];
  const Mask givers = row_addresses(w, in, 8 * in.count, address);
  Matrix matrices[4];
  for (int i = 0; i < in.count; ++i) {
    const uint32_t* s = w.at<uint32_t>(in.list[i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      element_of(matrices[i], lane, 0, in.variant) = uint16_t(s[lane]);
      element_of(matrices[i], lane, 1, in.variant) = uint16_t(s[lane] >> 16);
    }
  }
  write_memory(w, in, givers, address, 16, reinterpret_cast<const uint8_t*>(matrices), 16);
  return Next::go_on;
}
void decode_stmatrix(Decoder& d) {
  take_matrices(d);
  require_operands(d, 2);
  std::vector<uint32_t> slots;
  take_address(d, d.operand(0));
  take_registers(d, d.operand(1), d.instr.count, false, slots);
  d.instr.list = d.list(slots);
  d.instr.run = stmatrix;
}
}  // namespace

std::vector<Form> stmatrix_forms() { return {{"stmatrix", decode_stmatrix, Family::ldmatrix}}; }

}  // namespace gg::emu
