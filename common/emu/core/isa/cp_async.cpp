// SPDX-License-Identifier: MIT
//
// cp.async: copies from global to shared memory that a thread starts and later waits for, by
// groups. PTX ISA: "Data Movement and Conversion Instructions: Asynchronous copy: Non-bulk copy".
// The bytes land when the thread waits for their group (an even seed of the order) or at once (an
// odd one); until the wait they are arriving, and nobody may touch them.

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/access.h"
#include "common/emu/core/state/unwritten.h"
#include "common/emu/core/units/copy_groups.h"

namespace gg::emu {

namespace {

// cp.async.{ca,cg}.shared.global [dst], [src], bytes {, bytes to read | predicate: read none};
Next copy(Warp& w, const Instr& in, Mask m) {
  CopyGroups& g = copy_groups_of(w);
  const uint32_t* to = w.at<uint32_t>(in.s[0]);
  uint64_t from[kLanes], written[kLanes] = {};
  addresses(w, in, from);
  Mask reads = 0;
  uint64_t read_bytes = 0;
  for (Lanes l(m); l; ++l) {
    int read = in.bytes;
    if (in.variant == 1) read = int(std::min<uint32_t>(w.at<uint32_t>(in.s[1])[*l], in.bytes));
    if (in.variant == 1 && w.at<uint32_t>(in.s[1])[*l] > in.bytes) {
      raise_final(FaultKind::bounds, w, in, *l,
                  std::to_string(w.at<uint32_t>(in.s[1])[*l]) + " bytes to read of a copy of " +
                      std::to_string(in.bytes),
                  "the source size may not exceed the copy's size");
    }
    if (in.variant == 2 && w.at<uint8_t>(in.s[1])[*l] == in.variant2) read = 0;
    written[*l] = in.list[0] == 32 ? uint32_t(to[*l] + uint32_t(in.target))
                                   : w.at<uint64_t>(in.s[0])[*l] + uint64_t(in.target);
    const Place place = locate(w, in, *l, Space::shared, written[*l], in.bytes, in.bytes);
    if (from[*l] % in.bytes != 0) {
      raise_final(FaultKind::alignment, w, in, *l,
                  std::to_string(in.bytes) + " bytes from " + hex(from[*l]) + ", which is no multiple of " +
                      std::to_string(in.bytes),
                  "cp.async wants source and destination aligned to its size, also where it reads nothing");
    }
    if (read) {
      const Place source = locate(w, in, *l, Space::global, from[*l], read, 1);
      check_global_read(w, in, *l, source.buffer, from[*l], uint64_t(read));
      check_guards(w, in, *l, from[*l], uint64_t(read));
      reads |= Mask(1) << *l;
      read_bytes += uint64_t(read);
    }
    check_async_write(w, in, *l, *place.block, place.offset, in.bytes, Access::plain);
    CopyGroups::Copy c{g.group[*l], *l,           from[*l], read, in.bytes,
                       place.block, place.offset, &in,      {},   w.products.issued};
    if (!w.block->grid->order.late) copy_bytes(w, c);
    c.window = place.block->shared.open({place.offset, place.offset + in.bytes, true, false, &w, &in, *l});
    g.under_way.push_back(c);
  }
  // A copy's bytes are those that it reads of global memory; writing them costs wavefronts only.
  InstrCounts& counts = counts_of(in);
  const uint64_t shared_bytes = counts.shared_bytes, global_bytes = counts.global_bytes + read_bytes;
  count_shared(in, m, written, in.bytes);
  count_global(in, reads, from, 1);  // aligned to its size, a copy lies in one sector
  counts.shared_bytes = shared_bytes;
  counts.global_bytes = global_bytes;
  return Next::go_on;
}

Next commit(Warp& w, const Instr&, Mask m) {
  CopyGroups& g = copy_groups_of(w);
  for (Lanes l(m); l; ++l) ++g.group[*l];
  return Next::go_on;
}
Next wait_group(Warp& w, const Instr& in, Mask m) {
  copies_awaited(w, in, products_before(w, m, uint32_t(in.offset), in.variant));
  land_copies(w, m, uint32_t(in.offset), in.variant);
  return Next::go_on;
}

void decode_copy(Decoder& d) {
  const bool ca = d.take("ca");
  if (!ca && !d.take("cg")) throw Unsupported{"this cp.async"};
  if (!d.take("shared") && !d.take("shared::cta")) throw Unsupported{"a destination that is not .shared"};
  if (!d.take("global")) throw Unsupported{"a source that is not .global"};
  while (d.take_one({"L2::64B", "L2::128B", "L2::256B"}) >= 0) {
  }
  const bool hint = d.take("L2::cache_hint");
  d.done();
  const int64_t bytes = d.immediate(2);
  if (bytes != 16 && (!ca || (bytes != 4 && bytes != 8)))
    throw Unsupported{"a copy of " + std::to_string(bytes) + " bytes"};
  d.instr.bytes = uint16_t(bytes);
  const Decoder::Address to = d.address(d.operand(0), Space::shared);
  d.instr.s[0] = to.slot;
  d.instr.target = int32_t(to.offset);
  d.instr.list = d.list({uint32_t(to.base_bits)});
  d.instr.space = Space::global;
  take_address(d, d.operand(1));
  const size_t extra = d.operands() - (hint ? 1 : 0);
  if (extra > 3) {
    const Operand& o = d.operand(3);
    if (o.kind == Operand::Kind::reg && d.register_bits(o) == 0) {
      bool negated = false;
      d.instr.s[1] = d.predicate(o, &negated);
      d.instr.variant = 2;
      d.instr.variant2 = !negated;  // true: the lane reads nothing
    } else {
      d.instr.s[1] = d.source(o, type_info("u32"));
      d.instr.variant = 1;
    }
  }
  if (hint) d.source(extra, type_info("b64"));
  d.instr.run = copy;
}

void decode_cp(Decoder& d) {
  if (!d.take("async")) throw Unsupported{"this copy"};
  if (d.statement().has("bulk") || d.statement().has("mbarrier")) throw Unsupported{"this cp.async"};
  if (d.take("commit_group")) {
    d.done();
    d.instr.run = commit;
  } else if (d.take("wait_group")) {
    d.done();
    d.instr.offset = d.immediate(0);
    d.instr.run = wait_group;
  } else if (d.take("wait_all")) {
    d.done();
    d.instr.variant = 1;
    d.instr.run = wait_group;
  } else {
    decode_copy(d);
  }
}

}  // namespace

std::vector<Form> cp_async_forms() { return {{"cp", decode_cp, Family::cp_async}}; }

}  // namespace gg::emu
