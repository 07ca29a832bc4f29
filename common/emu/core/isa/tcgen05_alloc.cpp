// SPDX-License-Identifier: MIT
//
// Allocation of tensor memory: who may use which columns. PTX ISA: "TensorCore
// 5th Generation Family
// Instructions: tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit". With cta_group::2
// one warp of each block of the pair executes the same instruction, and they meet there.

#include <cstring>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/tensor_core.h"

namespace gg::emu {
namespace {

struct Rights {
  AddressOperand to;     // of alloc: where the address goes, in shared memory
  uint32_t columns = 0;  // slot
  TmemRights what = TmemRights::alloc;
  int cta_group = 1;
};

const Rights& alloc_form(const Instr& in) { return *static_cast<const Rights*>(in.extra); }

const char* name_of(const Instr& in) {
  constexpr const char* kNames[] = {"alloc", "dealloc", "relinquish_alloc_permit"};
  return kNames[size_t(alloc_form(in).what)];
}

// How many columns the instruction names: a power of two from 32 to 512.
int columns_of(Warp& w, const Instr& in) {
  const uint32_t columns = uniform_value(w, in, alloc_form(in).columns, "the number of columns");
  if (columns >= kTmemUnit && columns <= kTmemColumns && (columns & (columns - 1)) == 0) return int(columns);
  raise_final(FaultKind::tcgen05, w, in, -1, std::to_string(columns) + " columns of tensor memory",
              "columns come as a power of two from 32 to 512");
}

// ---- the pair ----

bool same_instruction(const Tmem::Meeting& a, const Tmem::Meeting& b) {
  const Rights &x = alloc_form(*a.instr), &y = alloc_form(*b.instr);
  return x.what == y.what && a.columns == b.columns;
}

// Both have come. False: there are no columns for them yet.
bool settle(Tmem& own, Tmem& theirs) {
  Tmem::Meeting &mine = *own.meeting, &other = *theirs.meeting;
  if (alloc_form(*mine.instr).what == TmemRights::alloc) {
    mine.result = own.find(mine.columns);
    other.result = theirs.find(other.columns);
    if (mine.result < 0 || other.result < 0) return false;
    own.allocate(mine.result, mine.columns, *mine.warp, *mine.instr);
    theirs.allocate(other.result, other.columns, *other.warp, *other.instr);
  }
  mine.met = other.met = true;
  return true;
}

std::string waits_text(const Tmem& own, const Instr& in, int columns, bool alone) {
  std::string text = std::string("waits in tcgen05.") + name_of(in);
  if (columns) text += " of " + std::to_string(columns) + " columns; " + own.allocations_text();
  return text + (alone ? "; no warp of the other block of its pair has come" : "");
}

// A warp comes to its pair's instruction. The meeting's result if both are there; null: wait.
const Tmem::Meeting* meet(Warp& w, const Instr& in, int columns) {
  Tmem &own = tmem_of(*w.block), &theirs = tmem_of(peer_of(w, in, 0));
  if (!own.meeting) own.meeting = Tmem::Meeting{&w, &in, columns};
  const bool turn = own.meeting->warp == &w;
  if (turn && own.meeting->met) return &*own.meeting;
  if (turn && theirs.meeting && !theirs.meeting->met) {
    if (!same_instruction(*own.meeting, *theirs.meeting)) {
      raise_final(FaultKind::tcgen05, w, in, -1,
                  std::string("tcgen05.") + name_of(in) + " of " + std::to_string(columns) +
                      " columns, and the other block of the pair executes another instruction, or names "
                      "other columns",
                  "with cta_group::2 one warp of each block of the pair executes the same instruction",
                  {{theirs.meeting->warp, theirs.meeting->instr, -1, "waits for its pair here"}});
    }
    if (settle(own, theirs)) return &*own.meeting;
  }
  w.flow.running->ready = [&w, &own, &theirs] {
    if (!own.meeting || own.meeting->warp != &w) return !own.meeting;
    const Tmem::Meeting& mine = *own.meeting;
    if (mine.met) return true;
    if (!theirs.meeting || theirs.meeting->met) return false;
    return alloc_form(*mine.instr).what != TmemRights::alloc ||
           (own.find(mine.columns) >= 0 && theirs.find(mine.columns) >= 0);
  };
  w.flow.running->waits_for = [&own, &theirs, &in, columns] {
    return waits_text(own, in, columns, !theirs.meeting);
  };
  return nullptr;
}

// ---- instructions ----

// The first column of the allocation, or -1 and the warp must wait.
int take_columns(Warp& w, const Instr& in, int columns) {
  Tmem& tmem = tmem_of(*w.block);
  if (alloc_form(in).cta_group == 2) {
    const Tmem::Meeting* meeting = meet(w, in, columns);
    if (!meeting) return -1;
    const int column = meeting->result;
    tmem.meeting.reset();
    return column;
  }
  const int column = tmem.find(columns);
  if (column >= 0) {
    tmem.allocate(column, columns, w, in);
  } else {
    w.flow.running->ready = [&tmem, columns] { return tmem.find(columns) >= 0; };
    w.flow.running->waits_for = [&tmem, &in, columns] { return waits_text(tmem, in, columns, false); };
  }
  return column;
}

// Writes the address, lane 0 of the first column, to shared memory, as an ordinary store of lane 0.
Next alloc(Warp& w, const Instr& in, Mask m) {
  require_whole_warp(w, in, m);
  use_cta_group(w, in, 0, alloc_form(in).cta_group);
  const int columns = columns_of(w, in);
  if (tmem_of(*w.block).relinquished) {
    raise_final(FaultKind::tcgen05, w, in, -1, "an allocation behind tcgen05.relinquish_alloc_permit",
                "a block that has given up its permit may not allocate again");
  }
  const Place place = own_block(w, in, 0, locate_operand(w, in, 0, alloc_form(in).to, 4, 4));
  const int column = take_columns(w, in, columns);
  if (column < 0) return Next::retry;
  const uint32_t address = uint32_t(column);
  uint8_t bytes[4];
  std::memcpy(bytes, &address, sizeof bytes);
  check_shared_write(w, in, 0, place, 4, Access::plain, bytes);
  std::memcpy(place.bytes, bytes, sizeof bytes);
  ++w.block->cluster->changes;
  return Next::go_on;
}

// Gives back exactly what an alloc gave.
Next dealloc(Warp& w, const Instr& in, Mask m) {
  require_whole_warp(w, in, m);
  const Rights& f = alloc_form(in);
  use_cta_group(w, in, 0, f.cta_group);
  const uint32_t bits = uniform_value(w, in, in.s[0], "the address");
  const TmemAddress address(bits);
  const int columns = columns_of(w, in);
  Tmem& tmem = tmem_of(*w.block);
  if (address.lane != 0 || tmem.allocated_at(address.column) != columns) {
    raise_final(FaultKind::tcgen05, w, in, -1,
                std::to_string(columns) + " columns at address " + hex(bits) + " of tensor memory, and " +
                    tmem.allocations_text(),
                "dealloc gives back one allocation as a whole: the address that tcgen05.alloc wrote and the "
                "same number of columns",
                tmem.allocations());
  }
  if (f.cta_group == 2) {
    if (!meet(w, in, columns)) return Next::retry;
    tmem.meeting.reset();
  }
  tmem.release(w, in, address.column);
  ++w.block->cluster->changes;
  return Next::go_on;
}

Next relinquish(Warp& w, const Instr& in, Mask m) {
  require_whole_warp(w, in, m);
  use_cta_group(w, in, 0, alloc_form(in).cta_group);
  Tmem& tmem = tmem_of(*w.block);
  if (alloc_form(in).cta_group == 2) {
    if (!meet(w, in, 0)) return Next::retry;
    tmem.meeting.reset();
  }
  tmem.relinquished = true;
  return Next::go_on;
}

}  // namespace

// tcgen05.alloc.cta_group.sync.aligned{.shared::cta}.b32 [dst], nCols;
// tcgen05.dealloc.cta_group.sync.aligned.b32 taddr, nCols;
// tcgen05.relinquish_alloc_permit.cta_group.sync.aligned;
void decode_tcgen05_rights(Decoder& d, TmemRights what) {
  Rights f;
  f.what = what;
  f.cta_group = take_cta_group(d);
  if (!d.take("sync") || !d.take("aligned")) throw Unsupported{"this form of tcgen05"};
  const Space space = what == TmemRights::alloc && d.take("shared::cta") ? Space::shared : Space::generic;
  if (what != TmemRights::relinquish && !d.take("b32")) throw Unsupported{"a type other than .b32"};
  d.done();
  if (d.operands() != (what == TmemRights::relinquish ? 0 : 2)) throw Unsupported{"this number of operands"};
  if (what == TmemRights::alloc) f.to = take_address_operand(d, d.operand(0), space);
  if (what == TmemRights::dealloc) d.instr.s[0] = d.source(0, type_info("b32"));
  if (what != TmemRights::relinquish) f.columns = d.source(1, type_info("b32"));
  d.extra(f);
  d.instr.converged = true;
  constexpr Handler kRun[] = {alloc, dealloc, relinquish};
  d.instr.run = kRun[size_t(what)];
}

}  // namespace gg::emu
