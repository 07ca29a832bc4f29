// SPDX-License-Identifier: MIT
//
// ldmatrix: a warp loads up to four 8x8 matrices of 16-bit elements, each lane giving the address
// of one row. PTX ISA: "Warp-level matrix load instruction: ldmatrix".

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/access.h"
#include "common/emu/core/units/warp_matrix.h"

namespace gg::emu {
namespace {

Next ldmatrix(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  uint64_t address[kLanes];
  const Mask givers = row_addresses(w, in, 8 * in.count, address);
  Matrix matrices[4];
  read_memory(w, in, givers, address, 16, reinterpret_cast<uint8_t*>(matrices), 16);
  for (int i = 0; i < in.count; ++i) {
    uint32_t* d = w.at<uint32_t>(in.list[i]);
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = pack(matrices[i], lane, in.variant);
  }
  return Next::go_on;
}
void decode_ldmatrix(Decoder& d) {
  take_matrices(d);
  require_operands(d, 2);
  std::vector<uint32_t> slots;
  take_registers(d, d.operand(0), d.instr.count, true, slots);
  d.instr.list = d.list(slots);
  take_address(d, d.operand(1));
  d.instr.run = ldmatrix;
}
}  // namespace

std::vector<Form> ldmatrix_forms() { return {{"ldmatrix", decode_ldmatrix, Family::ldmatrix}}; }

}  // namespace gg::emu
