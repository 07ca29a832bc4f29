// SPDX-License-Identifier: MIT
//
// Atomic operations and reductions in global and shared memory. PTX ISA: "Parallel Synchronization
// and Communication Instructions: atom, red". Lanes go in their order; blocks on other threads see
// each as one step.

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/access.h"
#include "common/emu/core/state/unwritten.h"
#include "common/emu/core/units/reduction.h"

namespace gg::emu {
namespace {

enum class Op : uint8_t { bit_and, bit_or, bit_xor, exch, cas, add, inc, dec, min, max };

struct AtomicForm {
  Op op = Op::add;
  Reduction reduction;  // unless it exchanges
  bool pair = false;    // of halves in one word
  bool acquire = false, release = false;
};

ReduceOp reduce_op(Op op) {
  constexpr ReduceOp kOps[] = {
      ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor, {},           {}, ReduceOp::add,
      ReduceOp::inc,     ReduceOp::dec,    ReduceOp::min,     ReduceOp::max};
  return kOps[int(op)];
}

// Sums of f32 in global memory flush, the ISA says of current devices; in shared memory
// they do not.
Reduction reduction_at(const AtomicForm& f, const Place& place) {
  Reduction reduction = f.reduction;
  reduction.flush = !place.block && reduction.kind == 'f' && reduction.bytes == 4;
  return reduction;
}

uint64_t combined(const AtomicForm& f, const Reduction& r, uint64_t old, uint64_t b, uint64_t c) {
  if (f.op == Op::exch) return b;
  if (f.op == Op::cas) return old == b ? c : old;
  if (!f.pair) return reduce_element(r, old, b);
  return reduce_element(r, old & 0xFFFF, b & 0xFFFF) | reduce_element(r, old >> 16, b >> 16) << 16;
}

template <class Bits>
uint64_t exchange(const AtomicForm& f, const Reduction& r, uint8_t* at, uint64_t b, uint64_t c) {
  Bits* const p = reinterpret_cast<Bits*>(at);
  Bits old = __atomic_load_n(p, __ATOMIC_SEQ_CST);
  for (;;) {
    const Bits now = Bits(combined(f, r, old, b, c));
    // Spinning blocks on several threads would pull the line to and fro if they wrote
    // what is there.
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
  for (Lanes l(m); l; ++l) {
    const Place place = locate(w, in, *l, in.space, address[*l], width, width);
    if (place.block) {
      check_shared_read(w, in, *l, place, width, Access::strong);
      check_shared_write(w, in, *l, place, width, Access::strong);
    }
    check_global_read(w, in, *l, place.buffer, address[*l], uint64_t(width));
    const Reduction reduction = reduction_at(form, place);
    for (int i = 0; i < in.count; ++i) {
      const uint64_t b = bits_at(w.at<uint8_t>(in.list[in.count + i]), *l, bytes);
      const uint64_t c = in.s[1] ? bits_at(w.at<uint8_t>(in.s[1]), *l, bytes) : 0;
      uint8_t* at = place.bytes + i * bytes;
      const uint64_t old = bytes == 2   ? exchange<uint16_t>(form, reduction, at, b, c)
                           : bytes == 4 ? exchange<uint32_t>(form, reduction, at, b, c)
                                        : exchange<uint64_t>(form, reduction, at, b, c);
      if (combined(form, reduction, old, b, c) != old) ++w.block->cluster->changes;
      if (in.list[i]) std::memcpy(w.at<uint8_t>(in.list[i]) + *l * bytes, &old, size_t(bytes));
    }
  }
  count_access(in, m, address, width);
  if (form.acquire) acquire(w, w.block->cluster->fences);
  return Next::go_on;
}

// Extremes of halves are there as vectors only.
bool legal(Op op, const TypeInfo& t, bool vector) {
  if (op == Op::exch) return t.name == "b32" || t.name == "b64";
  if (op == Op::cas) return t.name == "b16" || t.name == "b32" || t.name == "b64";
  if (op <= Op::bit_xor) return t.name == "b32" || t.name == "b64";
  if (op == Op::inc || op == Op::dec) return t.name == "u32";
  const bool half = t.name == "f16" || t.name == "bf16" || t.name == "f16x2" || t.name == "bf16x2";
  const bool whole = t.name == "u32" || t.name == "u64" || t.name == "s32" || t.name == "s64";
  return op == Op::add ? half || whole || t.name == "f32" || t.name == "f64" : whole || (half && vector);
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
  const TypeInfo type = d.take_type();
  d.done();
  const bool half = type.name.find("f16") != std::string::npos;
  if (!legal(form.op, type, vector >= 0) || noftz != half ||
      (vector >= 0 && (space > 0 || (!half && type.name != "f32"))) || type.bits * d.instr.count > 128) {
    throw Unsupported{"this operation on ." + type.name};
  }
  form.pair = half && type.bits == 32;
  reduction_of(reduce_op(form.op), form.pair ? type.name.substr(0, type.name.size() - 2) : type.name, false,
               &form.reduction);
  d.instr.bytes = uint16_t(type.bits / 8);
  size_t next = 0;
  std::vector<uint32_t> slots(d.instr.count, 0);
  const auto vector_of = [&](const Operand& o) {
    const auto all = Decoder::elements(o);
    if (all.size() != d.instr.count) throw Unsupported{"a vector of another length"};
    return all;
  };
  if (!red) {
    const auto all = vector_of(d.operand(next++));
    for (size_t i = 0; i < all.size(); ++i) slots[i] = d.destination(*all[i], type);
  }
  take_address(d, d.operand(next++));
  for (const Operand* o : vector_of(d.operand(next++))) slots.push_back(d.source(*o, type));
  if (form.op == Op::cas) d.instr.s[1] = d.source(next++, type);
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
