// SPDX-License-Identifier: MIT
//
// The units that an operand of a matrix instruction reads: every one must be inside shared memory.

#include "common/emu/core/units/footprint.h"

namespace gg::emu {

const Footprint& Footprints::of(Warp& w, const Instr& in, const char* name, uint64_t descriptor,
                                const OperandShape& shape, int first, int count) {
  Footprint& footprint =
      found_[{descriptor, shape.lines, shape.k, shape.bytes, shape.line_major, first, count}];
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

}  // namespace gg::emu
