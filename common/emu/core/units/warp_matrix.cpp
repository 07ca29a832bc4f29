// SPDX-License-Identifier: MIT
//
// Checks what ldmatrix, stmatrix, movmatrix and mma ask of a warp and of a statement.

#include "common/emu/core/units/warp_matrix.h"

#include "common/emu/core/state/access.h"

namespace gg::emu {

void require_warp(Warp& w, const Instr& in, Mask m) {
  if (m == kAllLanes) return;
  raise_final(
      FaultKind::diverged, w, in, __builtin_ctz(~m),
      "lanes " + hex(m) + " execute an instruction that takes all 32 lanes of a warp",
      "the number of threads in a block must be a multiple of 32 here, and none of them may have ended");
}
Mask row_addresses(Warp& w, const Instr& in, int rows, uint64_t (&address)[kLanes]) {
  addresses(w, in, address);
  const Mask givers = rows == kLanes ? kAllLanes : (Mask(1) << rows) - 1;
  if (in.space != Space::generic) return givers;
  for (Lanes l(givers); l; ++l) {
    const Place place = locate(w, in, *l, in.space, address[*l], 16, 16);
    if (place.block == w.block) continue;
    raise_final(FaultKind::bounds, w, in, *l,
                "generic address " + hex(address[*l]) + " is not in the block's shared memory",
                "matrices are loaded from and stored to the own block's shared memory only");
  }
  return givers;
}
void take_sync_aligned(Decoder& d) {
  if (!d.take("sync") || !d.take("aligned")) throw Unsupported{"a matrix instruction without .sync.aligned"};
  d.instr.converged = true;
}
void take_matrices(Decoder& d) {
  take_sync_aligned(d);
  const bool shape = d.take("m8n8");
  const int count = d.take_one({"x1", "x2", "x4"});
  d.instr.variant = d.take("trans");
  d.instr.space = d.take("shared") || d.take("shared::cta") ? Space::shared : Space::generic;
  const TypeInfo type = d.take_type();
  d.done();
  if (!shape || count < 0 || type.name != "b16") throw Unsupported{"matrices other than m8n8 of .b16"};
  d.instr.count = uint16_t(1 << count);
}
void take_registers(Decoder& d, const Operand& operand, int count, bool written, std::vector<uint32_t>& slots,
                    const char* type) {
  const std::vector<const Operand*> all = Decoder::elements(operand);
  if (int(all.size()) != count) {
    throw Unsupported{std::to_string(all.size()) + " registers where " + std::to_string(count) + " belong"};
  }
  for (const Operand* each : all) {
    slots.push_back(written ? d.destination(*each, type_info(type)) : d.source(*each, type_info(type)));
  }
}

void require_operands(Decoder& d, size_t count) {
  if (d.operands() != count)
    throw Unsupported{std::to_string(d.operands()) + " operands where " + std::to_string(count) + " belong"};
}

}  // namespace gg::emu
