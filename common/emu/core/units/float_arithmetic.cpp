// SPDX-License-Identifier: MIT
//
// Handlers of f32 for instructions that are made of others.

#include "common/emu/core/units/float_arithmetic.h"

namespace gg::emu {

Handler f32_arithmetic(const std::string& opcode, int rounding, bool ftz) {
  const TypeInfo type = type_info("f32");
  const uint8_t flags = ftz ? kFtz : 0;
  if (opcode == "add") return arithmetic_of<Add, 2>(type, rounding, flags);
  if (opcode == "sub") return arithmetic_of<Sub, 2>(type, rounding, flags);
  if (opcode == "mul") return arithmetic_of<Mul, 2>(type, rounding, flags);
  return arithmetic_of<Fma, 3>(type, rounding, flags);
}

}  // namespace gg::emu
