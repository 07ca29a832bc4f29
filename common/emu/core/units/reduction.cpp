// SPDX-License-Identifier: MIT
//
// The arithmetic of reductions in memory, bit for bit as an H200 does it. Sums of floating-point
// numbers round to nearest even.

#include "common/emu/core/units/reduction.h"

#include <algorithm>

#include "common/kernel/formats.h"

namespace gg::emu {
namespace {

constexpr const char* kNames[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

template <class T>
T whole(ReduceOp op, T old, T b) {
  switch (op) {
    case ReduceOp::add:
      return T(old + b);
    case ReduceOp::min:
      return std::min(old, b);
    case ReduceOp::max:
      return std::max(old, b);
    case ReduceOp::inc:
      return old >= b ? 0 : T(old + 1);
    case ReduceOp::dec:
      return old == 0 || old > b ? b : T(old - 1);
    case ReduceOp::bit_and:
      return old & b;
    case ReduceOp::bit_or:
      return old | b;
    case ReduceOp::bit_xor:
      return old ^ b;
  }
  return old;
}

uint32_t flushed(uint32_t bits) { return bits & 0x7F800000 ? bits : bits & 0x80000000; }

uint32_t add_f32(uint32_t old, uint32_t b, bool flush) {
  if (flush) old = flushed(old), b = flushed(b);
  const float sum = __builtin_bit_cast(float, old) + __builtin_bit_cast(float, b);
  if (sum != sum) return 0x7FFFFFFF;
  const uint32_t bits = __builtin_bit_cast(uint32_t, sum);
  return flush ? flushed(bits) : bits;
}

// A NaN comes through as it is, that of memory only if the other is none. That of infinities with
// other signs is the same on every host.
uint64_t add_f64(uint64_t old, uint64_t b) {
  const double x = __builtin_bit_cast(double, old), y = __builtin_bit_cast(double, b);
  if (y != y) return b;
  if (x != x) return old;
  const double sum = x + y;
  return sum != sum ? 0xFFF8000000000000u : __builtin_bit_cast(uint64_t, sum);
}

// f16 and bf16. min and max: a NaN gives way to a number, and -0 is less than +0.
uint16_t narrow(const Reduction& r, uint16_t old, uint16_t b) {
  const Format format = r.kind == 'h' ? Format::f16 : Format::bf16;
  constexpr uint16_t kNan = 0x7FFF;
  if (r.op == ReduceOp::add) {
    const double sum = double(decode(format, old)) + double(decode(format, b));
    return sum != sum ? kNan : uint16_t(encode(format, sum));
  }
  if (is_nan(format, old)) return is_nan(format, b) ? kNan : b;
  if (is_nan(format, b)) return old;
  const auto rank = [](uint16_t code) { return code & 0x8000 ? -int(code & 0x7FFF) - 1 : int(code); };
  return (rank(old) < rank(b)) == (r.op == ReduceOp::min) ? old : b;
}

template <class Bits>
void reduce_as(const Reduction& r, uint8_t* to, const uint8_t* from, size_t elements) {
  for (size_t i = 0; i < elements; ++i) {
    Bits* const at = reinterpret_cast<Bits*>(to) + i;
    Bits b;
    std::memcpy(&b, from + i * sizeof b, sizeof b);
    Bits old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, Bits(reduce_element(r, old, b)), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
    }
  }
}

bool one_of(const std::string& type, std::initializer_list<const char*> types) {
  return std::any_of(types.begin(), types.end(), [&](const char* each) { return type == each; });
}

}  // namespace

ReduceOp take_reduce_op(Decoder& d) {
  const int op = d.take_one({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  if (op < 0) throw Unsupported{"this reduction"};
  return ReduceOp(op);
}
const char* reduce_op_name(ReduceOp op) { return kNames[int(op)]; }

bool reduction_of(ReduceOp op, const std::string& type, bool shared, Reduction* r) {
  bool exists = false;
  switch (op) {
    case ReduceOp::add:
      exists =
          one_of(type, {"u32", "s32", "u64"}) || (!shared && one_of(type, {"f32", "f64", "f16", "bf16"}));
      break;
    case ReduceOp::min:
    case ReduceOp::max:
      exists = one_of(type, {"u32", "s32"}) || (!shared && one_of(type, {"u64", "s64", "f16", "bf16"}));
      break;
    case ReduceOp::inc:
    case ReduceOp::dec:
      exists = type == "u32";
      break;
    default:
      exists = type == "b32" || (!shared && type == "b64");
      break;
  }
  const TypeInfo info = type_info(type);
  r->op = op;
  r->kind = type == "f16" ? 'h' : type == "bf16" ? 'b' : info.kind == 'b' ? 'u' : info.kind;
  r->bytes = info.bits / 8;
  return exists;
}

uint64_t reduce_element(const Reduction& r, uint64_t old, uint64_t b) {
  switch (r.kind) {
    case 'f':
      return r.bytes == 4 ? add_f32(uint32_t(old), uint32_t(b), r.flush) : add_f64(old, b);
    case 'h':
    case 'b':
      return narrow(r, uint16_t(old), uint16_t(b));
    case 's':
      if (r.op == ReduceOp::min || r.op == ReduceOp::max) {
        return r.bytes == 4 ? uint32_t(whole<int32_t>(r.op, int32_t(old), int32_t(b)))
                            : uint64_t(whole<int64_t>(r.op, int64_t(old), int64_t(b)));
      }
      [[fallthrough]];
    default:
      return r.bytes == 4 ? whole<uint32_t>(r.op, uint32_t(old), uint32_t(b)) : whole<uint64_t>(r.op, old, b);
  }
}

void reduce_elements(const Reduction& r, uint8_t* to, const uint8_t* from, size_t elements) {
  if (r.bytes == 2) return reduce_as<uint16_t>(r, to, from, elements);
  if (r.bytes == 4) return reduce_as<uint32_t>(r, to, from, elements);
  reduce_as<uint64_t>(r, to, from, elements);
}

}  // namespace gg::emu
