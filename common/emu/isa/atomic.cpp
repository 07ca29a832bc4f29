// SPDX-License-Identifier: MIT
//
// Atomic operations and reductions in global and shared memory. PTX ISA: "Parallel Synchronization and
// Communication Instructions: atom, red". Lanes go in their order; blocks on other threads see each as one
// step.

#include <algorithm>

#include "common/base/formats.h"
#include "common/emu/isa/forms.h"
#include "common/emu/state/access.h"
#include "common/emu/state/unwritten.h"

namespace gg::emu {
namespace {

enum class Op : uint8_t { bit_and, bit_or, bit_xor, exch, cas, add, inc, dec, min, max };

struct AtomicForm {
  Op op = Op::add;
  TypeInfo type;
  bool acquire = false, release = false;
};

template <class T>
T combine(Op op, T old, T b) {
  switch (op) {
    case Op::add:
      return T(old + b);
    case Op::min:
      return std::min(old, b);
    case Op::max:
      return std::max(old, b);
    default:
      return b;
  }
}

// f32 and f64 add rounds to nearest even.
template <class T, class Bits>
Bits combine_float(Op op, Bits old, Bits b) {
  return __builtin_bit_cast(Bits, combine<T>(op, __builtin_bit_cast(T, old), __builtin_bit_cast(T, b)));
}

uint16_t combine_half(Op op, Format format, uint16_t old, uint16_t b) {
  const float x = decode(format, old), y = decode(format, b);
  if (op == Op::add) return uint16_t(encode(format, double(x) + double(y)));
  if (x != x) return b;
  if (y != y) return old;
  return op == Op::min ? (x < y || (x == y && old & 0x8000) ? old : b)
                       : (x > y || (x == y && !(old & 0x8000)) ? old : b);
}

uint64_t combined(const AtomicForm& f, uint64_t old, uint64_t b, uint64_t c) {
  const std::string& t = f.type.name;
  switch (f.op) {
    case Op::bit_and:
      return old & b;
    case Op::bit_or:
      return old | b;
    case Op::bit_xor:
      return old ^ b;
    case Op::exch:
      return b;
    case Op::cas:
      return old == b ? c : old;
    case Op::inc:
      return old >= b ? 0 : old + 1;
    case Op::dec:
      return old == 0 || old > b ? b : old - 1;
    default:
      break;
  }
  if (t == "f32") return combine_float<float>(f.op, uint32_t(old), uint32_t(b));
  if (t == "f64") return combine_float<double>(f.op, old, b);
  if (t == "f16" || t == "bf16")
    return combine_half(f.op, t == "f16" ? Format::f16 : Format::bf16, uint16_t(old), uint16_t(b));
  if (t == "f16x2" || t == "bf16x2") {
    const Format half = t == "f16x2" ? Format::f16 : Format::bf16;
    return combine_half(f.op, half, uint16_t(old), uint16_t(b)) |
           uint32_t(combine_half(f.op, half, uint16_t(old >> 16), uint16_t(b >> 16))) << 16;
  }
  if (t == "s32")
    return uint32_t(combine<int32_t>(f.op == Op::add ? Op::exch : f.op, int32_t(old),
                                     f.op == Op::add ? int32_t(uint32_t(old) + uint32_t(b)) : int32_t(b)));
  if (t == "s64")
    return uint64_t(combine<int64_t>(f.op == Op::add ? Op::exch : f.op, int64_t(old),
                                     f.op == Op::add ? int64_t(old + b) : int64_t(b)));
  return f.type.bits == 32 ? combine<uint32_t>(f.op, uint32_t(old), uint32_t(b))
                           : combine<uint64_t>(f.op, old, b);
}

template <class Bits>
uint64_t exchange(const AtomicForm& f, uint8_t* at, uint64_t b, uint64_t c) {
  Bits* const p = reinterpret_cast<Bits*>(at);
  Bits old = __atomic_load_n(p, __ATOMIC_SEQ_CST);
  for (;;) {
    const Bits now = Bits(combined(f, old, b, c));
    // Spinning blocks on several threads would pull the line to and fro if they wrote what is there.
    if (now == old) return old;
    if (__atomic_compare_exchange_n(p, &old, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return old;
  }
}

uint64_t bits_at(const uint8_t* slot, int lane, int bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, slot + lane * bytes, size_t(bytes));
  return bits;
}

// d = [a]; [a] = op(d, b): d is 0 for red. A vector is one operation per element.
Next atomic(Warp& w, const Instr& in, Mask m) {
  const AtomicForm& form = *static_cast<const AtomicForm*>(in.extra);
  const int bytes = in.bytes, width = bytes * in.count;
  uint64_t address[kLanes];
  addresses(w, in, address);
  if (form.release) release(w, w.block->cluster->fences);
  bool shared = false;
  for (Lanes l(m); l; ++l) {
    const Place place = locate(w, in, *l, in.space, address[*l], width, width);
    if (place.block) {
      shared = true;
      check_shared_read(w, in, *l, place, width, Access::strong);
      check_shared_write(w, in, *l, place, width, Access::strong);
    }
    check_global_read(w, in, *l, place.buffer, address[*l], uint64_t(width));
    for (int i = 0; i < in.count; ++i) {
      const uint64_t b = bits_at(w.at<uint8_t>(in.list[in.count + i]), *l, bytes);
      const uint64_t c = in.s[1] ? bits_at(w.at<uint8_t>(in.s[1]), *l, bytes) : 0;
      uint8_t* at = place.bytes + i * bytes;
      const uint64_t old = bytes == 2   ? exchange<uint16_t>(form, at, b, c)
                           : bytes == 4 ? exchange<uint32_t>(form, at, b, c)
                                        : exchange<uint64_t>(form, at, b, c);
      if (combined(form, old, b, c) != old) ++w.block->cluster->changes;
      if (in.list[i]) std::memcpy(w.at<uint8_t>(in.list[i]) + *l * bytes, &old, size_t(bytes));
    }
  }
  shared ? count_shared(in, m, address, width) : count_global(in, m, address, width);
  if (form.acquire) acquire(w, w.block->cluster->fences);
  return Next::go_on;
}

bool legal(Op op, const TypeInfo& t) {
  const bool narrow = t.bits == 16 && t.kind != 'f' && t.kind != 'x';
  if (op == Op::exch) return t.name == "b32" || t.name == "b64";
  if (op == Op::cas) return t.name == "b16" || t.name == "b32" || t.name == "b64";
  if (op <= Op::bit_xor) return t.name == "b32" || t.name == "b64";
  if (op == Op::inc || op == Op::dec) return t.name == "u32";
  if (t.kind == 'b' || narrow) return false;
  if (op == Op::add) return true;
  return t.name == "u32" || t.name == "u64" || t.name == "s32" || t.name == "s64" || t.name == "f16" ||
         t.name == "bf16" || t.name == "f16x2" || t.name == "bf16x2";
}

void decode_atomic(Decoder& d) {
  const bool red = d.statement().opcode == "red";
  if (d.statement().has("async")) throw Unsupported{"red.async"};
  AtomicForm form;
  const int order = d.take_one({"relaxed", "acquire", "release", "acq_rel"});
  form.acquire = order == 1 || order == 3;
  form.release = order == 2 || order == 3;
  d.take_one({"cta", "cluster", "gpu", "sys"});
  const int space = d.take_one({"global", "shared", "shared::cta", "shared::cluster"});
  d.instr.space = space < 0 ? Space::generic : space == 0 ? Space::global : Space::shared;
  d.instr.any_rank = space == 3;
  const int op = d.take_one({"and", "or", "xor", "exch", "cas", "add", "inc", "dec", "min", "max"});
  if (op < 0) throw Unsupported{"this operation"};
  form.op = Op(op);
  const bool noftz = d.take("noftz"), hint = d.take("L2::cache_hint");
  const int vector = d.take_one({"v2", "v4", "v8"});
  d.instr.count = uint16_t(vector < 0 ? 1 : 2 << vector);
  form.type = d.take_type();
  d.done();
  const bool half = form.type.name.find("f16") != std::string::npos;
  if (!legal(form.op, form.type) || noftz != half ||
      (vector >= 0 && (space > 0 || (!half && form.type.name != "f32")))) {
    throw Unsupported{"this operation on ." + form.type.name};
  }
  d.instr.bytes = uint16_t(form.type.bits / 8);
  size_t next = 0;
  std::vector<uint32_t> slots(d.instr.count, 0);
  const auto vector_of = [&](const Operand& o) {
    const auto all = Decoder::elements(o);
    if (all.size() != d.instr.count) throw Unsupported{"a vector of another length"};
    return all;
  };
  if (!red) {
    const auto all = vector_of(d.operand(next++));
    for (size_t i = 0; i < all.size(); ++i) slots[i] = d.destination(*all[i], form.type);
  }
  take_address(d, d.operand(next++));
  for (const Operand* o : vector_of(d.operand(next++))) slots.push_back(d.source(*o, form.type));
  if (form.op == Op::cas) d.instr.s[1] = d.source(next++, form.type);
  if (hint) d.source(next++, type_info("b64"));
  d.instr.list = d.list(slots);
  d.extra(form);
  d.instr.run = atomic;
}

}  // namespace

std::vector<Form> atomic_forms() {
  return {{"atom", decode_atomic, Family::atomic}, {"red", decode_atomic, Family::atomic}};
}

}  // namespace gg::emu
