// SPDX-License-Identifier: MIT
//
// mbarrier: phases that end when all arrivals and all bytes are there. PTX ISA: "Parallel
// Synchronization and Communication Instructions: mbarrier.init, .inval, .expect_tx, .complete_tx,
// .arrive, .arrive_drop, .test_wait, .try_wait, .pending_count", "cp.async.mbarrier.arrive". Every
// lane acts for itself, in order of lanes. The eight bytes in shared memory only mark the place;
// what they would hold is in struct Mbarrier.

#include <algorithm>

#include "common/emu/core/decode/overtaken.h"
#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/copy_groups.h"
#include "common/emu/core/units/mbarrier_state.h"

namespace gg::emu {
namespace {

enum : uint8_t { kExpect = 1, kDrop = 2, kNoComplete = 4, kRelaxed = 8 };  // forms of arrive

Place place_of_barrier(Warp& w, const Instr& in, int lane, uint64_t address) {
  return own_block(w, in, lane, locate_mbarrier(w, in, lane, in.space, address));
}

// The barrier is no more, and its memory holds nothing that somebody wrote. Lanes that sleep there
// wake, and ask anew: whatever barrier is then in its place begins with phase 0.
void forget(Mbarriers& all, const BarrierAt& at) {
  all.live.erase(at.offset);
  uint8_t* shadow = at.block->shared.shadow.data() + at.offset;
  for (int i = 0; i < kMbarrierBytes; ++i)
    shadow[i] &= uint8_t(~(SharedMemory::kMbarrier | SharedMemory::kWritten | SharedMemory::kUndefined));
  for (Mbarriers::Wait& wait : all.waits) {
    if (!wait.on || wait.offset != at.offset) continue;
    wait.on = false;
    ++all.given_up;
  }
}

Next init(Warp& w, const Instr& in, Mask m) {
  uint64_t address[kLanes];
  addresses(w, in, address);
  for (Lanes l(m); l; ++l) {
    const Place place = place_of_barrier(w, in, *l, address[*l]);
    const BarrierAt at{place.block, place.offset};
    const int64_t count = w.at<uint32_t>(in.s[0])[*l];
    if (count < 1 || count > kMbarrierMost) {
      raise_final(FaultKind::mbarrier_state, w, in, *l,
                  mbarrier_name(at) + " is initialised for " + std::to_string(count) + " arrivals",
                  "a phase wants 1 to " + std::to_string(kMbarrierMost) + " arrivals");
    }
    Mbarriers& all = mbarriers_of(*at.block);
    const auto live = all.live.find(at.offset);
    if (live != all.live.end()) {
      raise(FaultKind::mbarrier, w, in, *l, mbarrier_name(at) + " is initialised a second time",
            "one thread initialises it, once; before its memory is used again, mbarrier.inval",
            {live->second.initialised});
      forget(all, at);  // allowed: a new barrier begins
    }
    check_shared_write(w, in, *l, place, kMbarrierBytes, Access::strong);
    for (int i = 0; i < kMbarrierBytes; ++i)
      at.block->shared.shadow[at.offset + size_t(i)] |= SharedMemory::kMbarrier;
    Mbarrier& b = all.live[at.offset];
    b.count = b.pending = count;
    b.initialised = {&w, &in, *l, "initialised it"};
    b.initialised_at = w.race.clock[agent_of(w)];
    b.seen.assign(at.block->warps.size(), 0);
  }
  return Next::go_on;
}

// The memory may be used again; what it holds is nobody's.
Next inval(Warp& w, const Instr& in, Mask m) {
  uint64_t address[kLanes];
  addresses(w, in, address);
  for (Lanes l(m); l; ++l) {
    const Place place = place_of_barrier(w, in, *l, address[*l]);
    const BarrierAt at{place.block, place.offset};
    use_mbarrier(w, in, *l, at);
    forget(mbarriers_of(*at.block), at);
    mbarriers_of(*at.block).invalidated[at.offset] = {&w, &in, *l, "invalidated it"};
  }
  return Next::go_on;
}

// The token of an arrival: the phase, whose barrier, and the arrivals pending before it.
uint64_t token_of(const BarrierAt& at, const Mbarrier& b) {
  return b.phase << 36 | uint64_t(at.offset / kMbarrierBytes & 0xFFFF) << 20 | uint64_t(b.pending);
}
Next arrive(Warp& w, const Instr& in, Mask m) {
  uint64_t* token = w.at<uint64_t>(in.d);
  bool elsewhere = false;
  for (Lanes l(m); l; ++l) {
    const BarrierAt at = use_mbarrier(w, in, *l, barrier_operand(in));
    Issuer who{&w, &in, *l, {}};
    Mbarrier& b = find_mbarrier(*who.warp, *who.instr, who.lane, at);
    const int64_t operand = in.s[0] ? w.at<uint32_t>(in.s[0])[*l] : 1;
    const int64_t arrivals = in.variant & kExpect ? 1 : operand;
    if (in.d) token[*l] = token_of(at, b);
    if (in.variant & kExpect) mbarrier_expect(who, at, operand);
    if (in.variant & kNoComplete && arrivals >= b.pending && b.tx == 0) {
      // Allowed: it ends the phase all the same.
      raise(FaultKind::mbarrier, w, in, *l,
            mbarrier_name(at) + ": " + std::to_string(arrivals) + " arrivals end its phase, " +
                mbarrier_lacks(b),
            "an arrival with .noComplete may not be the last");
    }
    if (in.variant & kDrop) b.count -= std::min(arrivals, b.count);
    if (!(in.variant & kRelaxed)) release(w, m, who.clock);
    mbarrier_arrive(who, at, arrivals, in.variant & kRelaxed ? &w.race.released : &who.clock);
    elsewhere |= at.block != w.block;
  }
  if (in.overtaking.arrives_elsewhere) make_late_loads(w, in, elsewhere);
  return Next::go_on;
}

Next expect_tx(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    const BarrierAt at = use_mbarrier(w, in, *l, barrier_operand(in));
    mbarrier_expect({&w, &in, *l, {}}, at, w.at<uint32_t>(in.s[0])[*l]);
  }
  return Next::go_on;
}

// The simulated end of a copy: no bytes move, and .relaxed tells nothing of what came before.
Next complete_tx(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    const BarrierAt at = use_mbarrier(w, in, *l, barrier_operand(in));
    mbarrier_complete({&w, &in, *l, {}}, at, w.at<uint32_t>(in.s[0])[*l]);
  }
  return Next::go_on;
}

Next pending_count(Warp& w, const Instr& in, Mask m) {
  const uint64_t* token = w.at<uint64_t>(in.s[0]);
  for (Lanes l(m); l; ++l) w.at<uint32_t>(in.d)[*l] = uint32_t(token[*l]) & uint32_t(kMbarrierMost);
  return Next::go_on;
}

// cp.async.mbarrier.arrive: one arrival when the copies that the lane has started by now have
// landed. Without .noinc the phase is made to want one more, so that the arrival changes nothing
// in the end.
Next copies_arrive(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    const BarrierAt at = use_mbarrier(w, in, *l, barrier_operand(in));
    if (in.variant == 0) {
      Mbarrier& b = find_mbarrier(w, in, *l, at);
      if (++b.pending > kMbarrierMost) {
        raise_final(
            FaultKind::mbarrier_state, w, in, *l,
            mbarrier_name(at) + " would wait for more than " + std::to_string(kMbarrierMost) + " arrivals",
            "cp.async.mbarrier.arrive adds an arrival to the phase; .noinc does not");
      }
    }
    when_copies_land(w, *l, [&w, &in, lane = *l, at] {  // the bytes count as written when they land
      const Issuer who = issue(w, in, lane);
      mbarrier_arrive(who, at, 1, &who.clock);
    });
  }
  return Next::go_on;
}
// ---- decoding ----

void take_space(Decoder& d, bool cluster_too) {
  const int space = d.take_one({"shared", "shared::cta", "shared::cluster"});
  if (space == 2 && !cluster_too) throw Unsupported{"modifier .shared::cluster"};
  d.instr.space = space < 0 ? Space::generic : Space::shared;
  d.instr.any_rank = space == 2;
}

// .sem.scope, both or neither: of the block if neither.
struct Order {
  bool relaxed, cluster;
};
Order take_order(Decoder& d, const char* strong) {
  const bool relaxed = d.take("relaxed"), ordered = !relaxed && strong && d.take(strong);
  const int scope = d.take_one({"cta", "cluster"});
  if ((scope >= 0) != (relaxed || ordered))
    throw Unsupported{"an order of memory without a scope, or the other way round"};
  return {relaxed, scope == 1};
}

void finish(Decoder& d) {
  if (!d.take("b64")) throw Unsupported{"a type other than .b64"};
  d.done();
}

void decode_arrive(Decoder& d, bool drop) {
  d.instr.variant = drop ? kDrop : 0;
  if (d.take("expect_tx")) d.instr.variant |= kExpect;
  if (d.take("noComplete")) d.instr.variant |= kNoComplete;
  const Order order = take_order(d, "release");
  if (order.relaxed) d.instr.variant |= kRelaxed;
  take_space(d, true);
  d.instr.overtaking.arrives_elsewhere = d.instr.any_rank && (order.relaxed || !order.cluster);
  finish(d);
  const Operand& token = d.operand(0);
  if (d.instr.any_rank && token.kind != Operand::Kind::sink)
    throw Unsupported{"a token from .shared::cluster"};
  if (token.kind != Operand::Kind::sink) d.instr.d = d.destination(token, type_info("b64"));
  take_address(d, d.operand(1));
  if (d.operands() > 2) d.instr.s[0] = d.source(2, type_info("u32"));
  const bool wants_count = d.instr.variant & (kExpect | kNoComplete);
  if ((wants_count && d.operands() != 3) || d.operands() > 3) throw Unsupported{"this number of operands"};
  if (d.instr.variant & kNoComplete && (d.instr.any_rank || d.instr.variant & (kExpect | kRelaxed))) {
    throw Unsupported{"this form of .noComplete"};
  }
  d.instr.run = arrive;
}

void decode_wait(Decoder& d, bool suspends) {
  d.instr.variant = suspends ? kTry : 0;
  if (d.take("parity")) d.instr.variant |= kParity;
  d.instr.variant2 = take_order(d, "acquire").relaxed;
  take_space(d, false);
  finish(d);
  d.instr.d = d.predicate_destination(d.operand(0));
  take_address(d, d.operand(1));
  d.instr.s[0] = d.source(2, type_info(d.instr.variant & kParity ? "u32" : "b64"));
  if (d.operands() > (suspends ? 4 : 3)) throw Unsupported{"this number of operands"};
  if (d.operands() == 4) d.source(3, type_info("u32"));  // a hint how long to sleep
  d.instr.run = mbarrier_wait;
}

void decode_tx(Decoder& d, Handler run) {
  take_order(d, nullptr);
  take_space(d, true);
  finish(d);
  take_address(d, d.operand(0));
  d.instr.s[0] = d.source(1, type_info("u32"));
  if (d.operands() != 2) throw Unsupported{"this number of operands"};
  d.instr.run = run;
}

void decode_life(Decoder& d, Handler run) {
  take_space(d, false);
  finish(d);
  take_address(d, d.operand(0));
  if (run == Handler(init)) d.instr.s[0] = d.source(1, type_info("u32"));
  if (d.operands() != (run == Handler(init) ? 2 : 1)) throw Unsupported{"this number of operands"};
  d.instr.run = run;
}

void decode_pending_count(Decoder& d) {
  finish(d);
  d.instr.d = d.destination(0, type_info("u32"));
  d.instr.s[0] = d.source(1, type_info("b64"));
  if (d.operands() != 2) throw Unsupported{"this number of operands"};
  d.instr.run = pending_count;
}

void decode_mbarrier(Decoder& d) {
  // arrive.expect_tx names two of these: the first one counts.
  const int op = d.take_one({"arrive", "arrive_drop", "init", "inval", "test_wait", "try_wait", "expect_tx",
                             "complete_tx", "pending_count"});
  switch (op) {
    case 0:
    case 1:
      return decode_arrive(d, op == 1);
    case 2:
      return decode_life(d, init);
    case 3:
      return decode_life(d, inval);
    case 4:
    case 5:
      return decode_wait(d, op == 5);
    case 6:
      return decode_tx(d, expect_tx);
    case 7:
      return decode_tx(d, complete_tx);
    case 8:
      return decode_pending_count(d);
    default:
      throw Unsupported{"this mbarrier instruction"};
  }
}

void decode_copies_arrive(Decoder& d) {
  if (!d.take("async") || !d.take("mbarrier") || !d.take("arrive")) throw Unsupported{"this cp"};
  d.instr.variant = d.take("noinc");
  take_space(d, false);
  finish(d);
  take_address(d, d.operand(0));
  if (d.operands() != 1) throw Unsupported{"this number of operands"};
  d.instr.run = copies_arrive;
}

}  // namespace

std::vector<Form> mbarrier_forms() {
  return {{"mbarrier", decode_mbarrier, Family::mbarrier}, {"cp", decode_copies_arrive, Family::mbarrier}};
}

}  // namespace gg::emu
