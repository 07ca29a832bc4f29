// SPDX-License-Identifier: MIT
//
// Reductions in memory, element by element: of atomic instructions, copies and asynchronous stores.
// PTX ISA: "atom", "red", "cp.reduce.async.bulk", "cp.reduce.async.bulk.tensor", "red.async".

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/emu/core/decode/decode.h"

namespace gg::emu {

enum class ReduceOp : uint8_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

struct Reduction {
  ReduceOp op = ReduceOp::add;
  char kind = 'u';     // 'u', 's', 'f'; 'h' f16, 'b' bf16
  int bytes = 4;       // of an element
  bool flush = false;  // denormal operands and results count as zeros
};

// The op among the modifiers; Unsupported if there is none.
ReduceOp take_reduce_op(Decoder& decoder);
const char* reduce_op_name(ReduceOp op);

// Whether the op exists for elements of a type, in global memory. In shared memory (`shared`)
// there are fewer.
bool reduction_of(ReduceOp op, const std::string& type, bool shared, Reduction* reduction);

// op(old, b) of one element's bits.
uint64_t reduce_element(const Reduction& reduction, uint64_t old, uint64_t b);
// to[i] = op(to[i], from[i]): each element by itself is one atomic step.
void reduce_elements(const Reduction& reduction, uint8_t* to, const uint8_t* from, size_t elements);

}  // namespace gg::emu
