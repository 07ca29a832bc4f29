// SPDX-License-Identifier: MIT
//
// Shared memory of other blocks of the cluster: its addresses, and stores and reductions that an
// mbarrier there counts. PTX ISA: "Data Movement and Conversion Instructions: mapa, getctarank,
// st.async", "red.async". A shared address holds the block's rank in its bits 24 and up.

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/mbarrier.h"
#include "common/emu/core/units/reduction.h"

namespace gg::emu {
namespace {

constexpr int kRankShift = 24;
constexpr uint64_t kInBlock = (1ull << kRankShift) - 1;

uint64_t operand_value(Warp& w, uint32_t slot, int bits, int lane) {
  return bits == 32 ? w.at<uint32_t>(slot)[lane] : w.at<uint64_t>(slot)[lane];
}

// ---- mapa, getctarank: bytes is the width of the address, variant true for generic addresses ----

// The address as one of the shared window; faults if it is none.
uint64_t in_shared(Warp& w, const Instr& in, int lane, uint64_t address) {
  const uint64_t base = in.variant ? kSharedWindow : 0;
  if (address - base >= kSharedWindowBytes) {
    raise_final(FaultKind::bounds, w, in, lane, hex(address) + " is not an address of shared memory",
                "without .shared::cluster the operand is a generic address, with it a shared one");
  }
  return address - base;
}

Next map_address(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    const uint64_t from = in_shared(w, in, *l, operand_value(w, in.s[0], in.bytes * 8, *l));
    // A rank too large for the cluster is found when it is used.
    const uint64_t rank = w.at<uint32_t>(in.s[1])[*l];
    const uint64_t to = (in.variant ? kSharedWindow : 0) + (rank << kRankShift | (from & kInBlock));
    if (in.bytes == 4) {
      w.at<uint32_t>(in.d)[*l] = uint32_t(to);
    } else {
      w.at<uint64_t>(in.d)[*l] = to;
    }
  }
  return Next::go_on;
}

Next rank_of_address(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    w.at<uint32_t>(in.d)[*l] =
        uint32_t(in_shared(w, in, *l, operand_value(w, in.s[0], in.bytes * 8, *l)) >> kRankShift);
  }
  return Next::go_on;
}

// A 32-bit number is no generic address.
TypeInfo take_address_type(Decoder& d) {
  d.instr.variant = !d.take("shared::cluster");
  const TypeInfo type = d.take_type();
  d.done();
  if (type.name != "u32" && type.name != "u64") throw Unsupported{"a type other than .u32 and .u64"};
  if (type.bits == 32 && d.instr.variant) throw Unsupported{"a generic address of 32 bits"};
  d.instr.bytes = uint16_t(type.bits / 8);
  return type;
}

void decode_mapa(Decoder& d) {
  const TypeInfo type = take_address_type(d);
  if (d.instr.variant && d.operand(1).kind == Operand::Kind::symbol)
    throw Unsupported{"a variable as a generic address"};
  d.instr.d = d.destination(0, type);
  d.instr.s[0] = d.source(1, type);
  d.instr.s[1] = d.source(2, type_info("u32"));
  if (d.operands() != 3) throw Unsupported{"this number of operands"};
  d.instr.run = map_address;
}

void decode_getctarank(Decoder& d) {
  const TypeInfo type = take_address_type(d);
  d.instr.d = d.destination(0, type_info("u32"));
  d.instr.s[0] = d.source(1, type);
  if (d.operands() != 2) throw Unsupported{"this number of operands"};
  d.instr.run = rank_of_address;
}

// ---- st.async, red.async: list holds the registers, count and bytes are of their elements ----

struct Remote {
  AddressOperand to, barrier;
  Reduction reduction;
};

// The mbarrier that counts what goes to a place, which must be in shared memory.
BarrierAt remote_barrier(Warp& w, const Instr& in, int lane, const Remote& form, const Place& to) {
  if (!to.block) own_block(w, in, lane, to);  // faults
  return barrier_beside(w, in, lane, *to.block, use_mbarrier(w, in, lane, form.barrier));
}

// The bytes land, then the mbarrier beside them counts them.
Next store_async(Warp& w, const Instr& in, Mask m) {
  const Remote& form = *static_cast<const Remote*>(in.extra);
  const int width = in.bytes * in.count;
  for (Lanes l(m); l; ++l) {
    const Place to = locate_operand(w, in, *l, form.to, width, width);
    const BarrierAt at = remote_barrier(w, in, *l, form, to);
    std::vector<uint8_t> data;
    for (int i = 0; i < in.count; ++i) {
      const uint8_t* from = w.at<uint8_t>(in.list[i]) + *l * in.bytes;
      data.insert(data.end(), from, from + in.bytes);
    }
    check_async_write(w, in, *l, *to.block, to.offset, data.size());
    const Issuer who = issue(w, in, *l);
    later(w, [who, at, to, data,
              windows = Windows(*to.block, who, {{to.offset, to.offset + data.size()}}, true)]() mutable {
      windows.close();
      std::copy(data.begin(), data.end(), to.bytes);
      mbarrier_complete(who, at, int64_t(data.size()));
    });
  }
  return Next::go_on;
}

// One atomic step; several may be on their way to the same place.
Next reduce_async(Warp& w, const Instr& in, Mask m) {
  const Remote& form = *static_cast<const Remote*>(in.extra);
  for (Lanes l(m); l; ++l) {
    const Place to = locate_operand(w, in, *l, form.to, in.bytes, in.bytes);
    const BarrierAt at = remote_barrier(w, in, *l, form, to);
    uint64_t value = 0;
    std::memcpy(&value, w.at<uint8_t>(in.list[0]) + *l * in.bytes, in.bytes);
    check_shared_read(w, in, *l, to, in.bytes, Access::strong);
    check_shared_write(w, in, *l, to, in.bytes, Access::strong);
    const Issuer who = issue(w, in, *l);
    later(w, [who, at, to, value, &form, bytes = in.bytes,
              windows = Windows(*to.block, who, {{to.offset, to.offset + in.bytes}}, true, true)]() mutable {
      windows.close();
      reduce_elements(form.reduction, to.bytes, reinterpret_cast<const uint8_t*>(&value), 1);
      mbarrier_complete(who, at, bytes);
    });
  }
  return Next::go_on;
}

// Behind `async`: .shared::cluster, or none for generic addresses.
void take_remote(Decoder& d, Remote* form) {
  const bool cluster = d.take("shared::cluster");
  if (!d.take("mbarrier::complete_tx::bytes")) throw Unsupported{"a store that no mbarrier counts"};
  const Space space = cluster ? Space::shared : Space::generic;
  form->to = take_address_operand(d, d.operand(0), space, true);
  form->barrier = take_address_operand(d, d.operand(2), space, true);
  if (d.operands() != 3) throw Unsupported{"this number of operands"};
}

void decode_store_async(Decoder& d) {
  if (!d.take("async")) throw Unsupported{"this form of st"};
  d.take("weak");
  Remote form;
  take_remote(d, &form);
  const int vector = d.take_one({"v2", "v4"});
  const TypeInfo type = d.take_type();
  d.done();
  const std::vector<const Operand*> all = Decoder::elements(d.operand(1));
  d.instr.count = uint16_t(vector < 0 ? 1 : 2 << vector);
  if (all.size() != d.instr.count) throw Unsupported{"a vector of another length"};
  if ((type.bits != 32 && type.bits != 64) || type.bits * d.instr.count > 128)
    throw Unsupported{"a store of this size"};
  d.instr.bytes = uint16_t(type.bits / 8);
  std::vector<uint32_t> slots;
  for (const Operand* o : all) slots.push_back(d.source(*o, type));
  d.instr.list = d.list(slots);
  d.extra(form);
  d.instr.run = store_async;
}

void decode_reduce_async(Decoder& d) {
  if (!d.take("async") || !d.take("relaxed") || !d.take("cluster")) throw Unsupported{"this form of red"};
  Remote form;
  take_remote(d, &form);
  const ReduceOp op = take_reduce_op(d);
  const TypeInfo type = d.take_type();
  d.done();
  const bool signed_sum = op == ReduceOp::add && type.name == "s64";  // the same bits as .u64
  if (!reduction_of(op, signed_sum ? "u64" : type.name, true, &form.reduction))
    throw Unsupported{"this reduction of this type"};
  d.instr.bytes = uint16_t(type.bits / 8);
  d.instr.list = d.list({d.source(1, type)});
  d.extra(form);
  d.instr.run = reduce_async;
}

}  // namespace

std::vector<Form> cluster_forms() {
  return {{"mapa", decode_mapa, Family::move},
          {"getctarank", decode_getctarank, Family::move},
          {"st", decode_store_async, Family::ldst},
          {"red", decode_reduce_async, Family::atomic}};
}

}  // namespace gg::emu
