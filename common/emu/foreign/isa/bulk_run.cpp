// SPDX-License-Identifier: MIT
//
// Bulk copies of a run of bytes; core/isa/bulk.cpp has their groups. PTX ISA: "Data Movement and
// Conversion Instructions: cp.async.bulk, cp.reduce.async.bulk, cp.async.bulk.prefetch". Each lane
// starts a copy of its own.

#include <algorithm>
#include <array>

#include "common/emu/core/state/unwritten.h"
#include "common/emu/core/units/bulk_copy.h"
#include "common/emu/core/units/tensor_map_use.h"
#include "common/emu/foreign/isa/foreign_forms.h"

namespace gg::emu {
namespace {

constexpr int kUnit = 16;  // bytes: what addresses and sizes are multiples of

struct BulkCopy {
  AddressOperand to, from, barrier;
  uint32_t size = 0, mask = 0;  // slots; no mask: 0
  uint32_t byte_mask = 0;       // slot of .cp_mask: which of each 16 bytes a store copies; 0: all
  bool reduces = false;
  Reduction reduction;
};

const BulkCopy& bulk_form(const Instr& in) { return *static_cast<const BulkCopy*>(in.extra); }

int64_t size_of(Warp& w, const Instr& in, int lane) {
  const int64_t bytes = w.at<uint32_t>(bulk_form(in).size)[lane];
  if (bytes % kUnit != 0) {
    raise_final(FaultKind::alignment, w, in, lane,
                "a bulk copy of " + std::to_string(bytes) + " bytes, which is no multiple of 16",
                "bulk copies move units of 16 bytes");
  }
  if (bytes > int64_t(1) << 30) {
    raise_final(FaultKind::bounds, w, in, lane, "a bulk copy of " + std::to_string(bytes) + " bytes",
                "the size is negative or overflowed");
  }
  return bytes;
}

Place global_run(Warp& w, const Instr& in, int lane, const AddressOperand& operand, int64_t bytes,
                 bool reads) {
  const uint64_t address = operand.of(w, lane);
  if (bytes > 0) count_run(in, address, uint64_t(bytes));
  const Place place = locate_operand(w, in, lane, operand, int(bytes), kUnit);
  if (reads) check_global_read(w, in, lane, place.buffer, address, uint64_t(bytes));
  return place;
}

Next load_run(Warp& w, const Instr& in, Mask m) {
  const BulkCopy& f = bulk_form(in);
  for (Lanes l(m); l; ++l) {
    const int64_t bytes = size_of(w, in, *l);
    const uint8_t* from = global_run(w, in, *l, f.from, bytes, true).bytes;
    check_guards(w, in, *l, f.from.of(w, *l), uint64_t(bytes));
    const std::vector<Landing> all = landings(w, in, *l, f.to, f.barrier, f.mask, bytes, kUnit);
    for (const Landing& to : all) check_async_write(w, in, *l, *to.block, to.offset, size_t(bytes));
    const Issuer who = issue(w, in, *l);
    for (const Landing& to : all) {
      later(w, [who, to, from, bytes,
                windows = Windows(*to.block, who, {{to.offset, to.offset + size_t(bytes)}}, true)]() mutable {
        windows.close();
        std::copy_n(from, bytes, to.block->shared.bytes.begin() + long(to.offset));
        mbarrier_complete(who, to.barrier, bytes);
      });
    }
  }
  return Next::go_on;
}

// From the block's own shared memory to that of any block of the cluster.
Next move_run(Warp& w, const Instr& in, Mask m) {
  const BulkCopy& f = bulk_form(in);
  for (Lanes l(m); l; ++l) {
    const int64_t bytes = size_of(w, in, *l);
    const Place from = locate_operand(w, in, *l, f.from, int(bytes), kUnit);
    const Landing to = landings(w, in, *l, f.to, f.barrier, 0, bytes, kUnit)[0];
    check_async_read(w, in, *l, *from.block, from.offset, size_t(bytes));
    if (f.reduces) {  // atomic: others may be on their way to the same place
      const Place place{to.block->shared.bytes.data() + to.offset, to.block, to.offset};
      check_shared_read(w, in, *l, place, int(bytes), Access::strong);
      check_shared_write(w, in, *l, place, int(bytes), Access::strong);
    } else {
      check_async_write(w, in, *l, *to.block, to.offset, size_t(bytes));
    }
    const Issuer who = issue(w, in, *l);
    const std::vector<Range> read = {{from.offset, from.offset + size_t(bytes)}};
    const std::vector<Range> written = {{to.offset, to.offset + size_t(bytes)}};
    later(w, [who, to, from, bytes, &f, reads = Windows(*from.block, who, read, false),
              writes = Windows(*to.block, who, written, true, f.reduces)]() mutable {
      reads.close();
      writes.close();
      uint8_t* at = to.block->shared.bytes.data() + to.offset;
      if (f.reduces) {
        reduce_elements(f.reduction, at, from.bytes, size_t(bytes) / size_t(f.reduction.bytes));
      } else {
        std::copy_n(from.bytes, bytes, at);
      }
      mbarrier_complete(who, to.barrier, bytes);
    });
  }
  return Next::go_on;
}

Next store_run(Warp& w, const Instr& in, Mask m) {
  const BulkCopy& f = bulk_form(in);
  const auto operands = [&](int l) {
    return std::array<uint64_t, 4>{f.from.of(w, l), f.to.of(w, l), w.at<uint32_t>(f.size)[l],
                                   f.byte_mask ? w.at<uint16_t>(f.byte_mask)[l] : 0u};
  };
  for (Mask left = m, like = 0; left; left &= ~like) {
    const Lanes l(left);
    like = f.reduces ? left & -left : like_the_first(left, operands);
    const int64_t bytes = size_of(w, in, *l);
    const Place from = locate_operand(w, in, *l, f.from, int(bytes), kUnit);
    const Place place = global_run(w, in, *l, f.to, bytes, f.reduces);
    check_async_read(w, in, *l, *from.block, from.offset, size_t(bytes));
    const auto read = [from, bytes] { return std::vector<uint8_t>(from.bytes, from.bytes + bytes); };
    const uint32_t kept = f.byte_mask ? w.at<uint16_t>(f.byte_mask)[*l] : 0xFFFFu;
    const auto write = [&w, &f, place, address = f.to.of(w, *l), kept](const std::vector<uint8_t>& data) {
      uint8_t* const to = place.bytes;
      for (size_t i = 0; f.byte_mask && i < data.size(); ++i) {
        if (kept >> (i % kUnit) & 1) will_write_global(w, place.buffer, address + i, 1);
      }
      if (!f.byte_mask) will_write_global(w, place.buffer, address, data.size());
      if (f.byte_mask) {
        for (size_t i = 0; i < data.size(); ++i) to[i] = kept >> (i % kUnit) & 1 ? data[i] : to[i];
      } else if (f.reduces) {
        reduce_elements(f.reduction, to, data.data(), data.size() / size_t(f.reduction.bytes));
      } else {
        std::copy(data.begin(), data.end(), to);
      }
    };
    store_later(issue(w, in, *l), *from.block, {{from.offset, from.offset + size_t(bytes)}},
                join_groups(w, like), read, write);
  }
  return Next::go_on;
}

// Memory that is not there is harmless.
Next prefetch(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    size_of(w, in, *l);
    const uint64_t address = bulk_form(in).from.of(w, *l);
    if (address % kUnit == 0) continue;
    raise_final(FaultKind::alignment, w, in, *l,
                "a bulk prefetch from " + hex(address) + ", which is no multiple of 16",
                "bulk copies move units of 16 bytes");
  }
  return Next::go_on;
}

// ---- decoding ----

enum class From : uint8_t { global, shared };
enum class To : uint8_t { shared_cta, shared_cluster, global };

void decode_prefetch(Decoder& d) {
  if (!d.take("L2") || !d.take("global")) throw Unsupported{"this prefetch"};
  const bool hint = d.take("L2::cache_hint");
  d.done();
  BulkCopy f;
  f.from = take_address_operand(d, d.operand(0), Space::global);
  f.size = d.source(1, type_info("u32"));
  if (hint) d.source(2, type_info("b64"));
  if (d.operands() != (hint ? 3 : 2)) throw Unsupported{"this number of operands"};
  d.extra(f);
  d.instr.run = prefetch;
}

// The first space named is the destination's: .global and .shared::cta stand for either.
void take_direction(Decoder& d, From* from, To* to) {
  const std::vector<std::string>& words = d.statement().modifiers;
  const auto at = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) - words.begin();
  };
  const bool cluster = d.take("shared::cluster"), cta = d.take("shared::cta"), global = d.take("global");
  if (int(cluster) + int(cta) + int(global) != 2) throw Unsupported{"this direction"};
  if (cluster) {
    *to = To::shared_cluster;
    *from = global ? From::global : From::shared;
  } else {
    const bool loads = at("shared::cta") < at("global");
    *to = loads ? To::shared_cta : To::global;
    *from = loads ? From::global : From::shared;
  }
}

// Behind cp.async.bulk: direction, completion, multicast, hint; for reductions op and type.
void decode_copy(Decoder& d, bool reduces) {
  BulkCopy f;
  From from;
  To to;
  take_direction(d, &from, &to);
  const bool counted = to != To::global;
  if (!d.take(counted ? "mbarrier::complete_tx::bytes" : "bulk_group"))
    throw Unsupported{"this completion mechanism"};
  const bool multicast = from == From::global && to == To::shared_cluster && d.take("multicast::cluster");
  const bool hint = !(from == From::shared && counted) && d.take("L2::cache_hint");
  const bool masked = !counted && !reduces && d.take("cp_mask");
  if (masked && !targets_sm100(*d.code().module)) throw Unsupported{"modifier .cp_mask before sm_100"};
  f.reduces = reduces;
  if (reduces) {
    if (from == From::global) throw Unsupported{"a reduction from global memory"};
    const ReduceOp op = take_reduce_op(d);
    const bool noftz = d.take("noftz");
    const TypeInfo type = d.take_type();
    const bool narrow_sum = op == ReduceOp::add && type.bits == 16;
    if (!reduction_of(op, type.name, counted, &f.reduction) || noftz != narrow_sum)
      throw Unsupported{"this reduction of this type"};
  }
  d.done();
  f.to = take_address_operand(d, d.operand(0), counted ? Space::shared : Space::global,
                              to == To::shared_cluster);
  f.from = take_address_operand(d, d.operand(1), from == From::shared ? Space::shared : Space::global);
  f.size = d.source(2, type_info("u32"));
  size_t next = 3;
  if (counted)
    f.barrier = take_address_operand(d, d.operand(next++), Space::shared, to == To::shared_cluster);
  if (multicast) f.mask = d.source(next++, type_info("b16"));
  if (hint) d.source(next++, type_info("b64"));
  if (masked) f.byte_mask = d.source(next++, type_info("b16"));
  if (d.operands() != next) throw Unsupported{"this number of operands"};
  d.extra(f);
  d.instr.run = !counted ? store_run : from == From::global ? load_run : move_run;
}

void decode_cp(Decoder& d) {
  const bool reduces = d.take("reduce");
  if (!d.take("async") || !d.take("bulk")) throw Unsupported{"this form of cp.async"};
  const Statement& s = d.statement();
  if (s.has("tensor")) throw Unsupported{"no copy of a run of bytes"};
  if (!reduces && (s.has("commit_group") || s.has("wait_group"))) throw Unsupported{"no copy"};
  if (!reduces && d.take("prefetch")) return decode_prefetch(d);
  decode_copy(d, reduces);
}

}  // namespace

std::vector<Form> bulk_run_forms() { return {{"cp", decode_cp, Family::bulk}}; }

}  // namespace gg::emu
