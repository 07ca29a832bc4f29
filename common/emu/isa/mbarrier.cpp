// SPDX-License-Identifier: MIT
//
// mbarrier: phases that end when all arrivals and all bytes are there. PTX ISA: "Parallel Synchronization and
// Communication Instructions: mbarrier.init, .inval, .expect_tx, .complete_tx, .arrive, .arrive_drop,
// .test_wait, .try_wait, .pending_count", "cp.async.mbarrier.arrive". Every lane acts for itself, in order of
// lanes. The eight bytes in shared memory only mark the place; what they would hold is in struct Mbarrier.

#include "common/emu/isa/mbarrier.h"

#include <algorithm>

#include "common/emu/isa/cp_async.h"

namespace gg::emu {
namespace {

enum : uint8_t { kExpect = 1, kDrop = 2, kNoComplete = 4, kRelaxed = 8 };  // forms of arrive
enum : uint8_t { kParity = 1, kTry = 2 };                                  // forms of wait

std::string name_of(const BarrierAt& at) {
  return "mbarrier " + hex(uint64_t(at.block->rank) << 24 | (uint64_t(kSharedStart) + at.offset));
}

Mbarriers& mbarriers_of(Block& block) {
  if (!block.mbarriers) {
    block.mbarriers = std::make_shared<Mbarriers>();
    block.mbarriers->waits.resize(block.warps.size() * kLanes);
  }
  return *block.mbarriers;
}

// What the current phase still lacks: "phase 2 lacks 1 of 2 arrivals and 4096 of 8192 bytes".
std::string lacks(const Mbarrier& b) {
  std::string text = "phase " + std::to_string(b.phase);
  const char* join = " lacks ";
  if (b.pending > 0) {
    text += join + std::to_string(b.pending) + " of " + std::to_string(b.count) + " arrivals";
    join = " and ";
  }
  if (b.tx > 0) text += join + std::to_string(b.tx) + " of " + std::to_string(b.expected) + " bytes";
  if (b.tx < 0) {
    text += b.pending > 0 ? ", and" : "";
    text += " has got " + std::to_string(-b.tx) + " bytes more than the " + std::to_string(b.expected) +
            " expected";
  }
  return text;
}

Mbarrier& find(Warp& w, const Instr& in, int lane, const BarrierAt& at) {
  Mbarriers& all = mbarriers_of(*at.block);
  const auto found = all.live.find(at.offset);
  if (at.block->live_warps == 0) {
    raise_final(FaultKind::use_after_free, w, in, lane, name_of(at) + " belongs to a block that has ended",
                "a cluster barrier at the end of the kernel keeps blocks alive until their peers are done");
  }
  if (found == all.live.end()) {
    raise_final(FaultKind::mbarrier_state, w, in, lane, name_of(at) + " is not initialised",
                "mbarrier.init, and a barrier behind it, come before the first use; or the address is wrong");
  }
  return found->second;
}

// A copy or an arrival of copies that is done only after the mbarrier's block has ended: nobody is there to
// be told.
bool nobody_is_there(const Issuer& who, const BarrierAt& at) {
  return comes_too_late(
      who, *at.block, "still to signal its " + name_of(at),
      "the mbarrier is not waited for, or a peer still signals it: a cluster barrier before "
      "the end keeps the block alive");
}

void end_phase_if_complete(Block& block, Mbarrier& b) {
  mbarriers_of(block).fruitless = 0;
  ++block.cluster->changes;
  if (b.pending != 0 || b.tx != 0) return;
  ++b.phase;
  b.pending = b.count;
  b.expected = 0;
  b.ended.join(b.arriving);
  b.arrivals.clear();
}

void change_tx(const Issuer& who, const BarrierAt& at, Mbarrier& b, int64_t bytes) {
  b.tx += bytes;
  if (b.tx > kMbarrierMost || b.tx < -kMbarrierMost) {
    raise_final(FaultKind::mbarrier_state, *who.warp, *who.instr, who.lane,
                name_of(at) + " would count " + std::to_string(b.tx) + " bytes; it can count to " +
                    std::to_string(kMbarrierMost) + " in either direction",
                "the bytes of one phase must fit in 20 bits, and be expected in the phase they arrive in");
  }
}

// ---- life and arrivals ----

Place place_of_barrier(Warp& w, const Instr& in, int lane, uint64_t address) {
  return own_block(w, in, lane, locate(w, in, lane, in.space, address, kMbarrierBytes, kMbarrierBytes));
}

// The barrier is no more, and its memory holds nothing that somebody wrote. Lanes that sleep there wake, and
// ask anew: whatever barrier is then in its place begins with phase 0.
void forget(Mbarriers& all, const BarrierAt& at) {
  all.live.erase(at.offset);
  uint8_t* shadow = at.block->shared.shadow.data() + at.offset;
  for (int i = 0; i < kMbarrierBytes; ++i)
    shadow[i] &= uint8_t(~(SharedMemory::kMbarrier | SharedMemory::kWritten));
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
                  name_of(at) + " is initialised for " + std::to_string(count) + " arrivals",
                  "a phase wants 1 to " + std::to_string(kMbarrierMost) + " arrivals");
    }
    Mbarriers& all = mbarriers_of(*at.block);
    const auto live = all.live.find(at.offset);
    if (live != all.live.end()) {
      raise(FaultKind::mbarrier, w, in, *l, name_of(at) + " is initialised a second time",
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
    b.initialised_at = w.clock[agent_of(w)];
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
    find(w, in, *l, at);
    forget(mbarriers_of(*at.block), at);
  }
  return Next::go_on;
}

// The token of an arrival: the phase, whose barrier, and the arrivals pending before it.
uint64_t token_of(const BarrierAt& at, const Mbarrier& b) {
  return b.phase << 36 | uint64_t(at.offset / kMbarrierBytes & 0xFFFF) << 20 | uint64_t(b.pending);
}

AddressOperand barrier_operand(const Instr& in) {
  return {in.s[3], in.address_bits, in.offset, in.space, in.any_rank};
}

Next arrive(Warp& w, const Instr& in, Mask m) {
  uint64_t* token = w.at<uint64_t>(in.d);
  for (Lanes l(m); l; ++l) {
    const BarrierAt at = use_mbarrier(w, in, *l, barrier_operand(in));
    Issuer who{&w, &in, *l, {}};
    Mbarrier& b = find(*who.warp, *who.instr, who.lane, at);
    const int64_t operand = in.s[0] ? w.at<uint32_t>(in.s[0])[*l] : 1;
    const int64_t arrivals = in.variant & kExpect ? 1 : operand;
    if (in.d) token[*l] = token_of(at, b);
    if (in.variant & kExpect) mbarrier_expect(who, at, operand);
    if (in.variant & kNoComplete && arrivals >= b.pending && b.tx == 0) {
      raise(FaultKind::mbarrier, w, in, *l,
            name_of(at) + ": " + std::to_string(arrivals) + " arrivals end its phase, " + lacks(b),
            "an arrival with .noComplete may not be the last");  // allowed: it ends the phase all the same
    }
    if (in.variant & kDrop) b.count -= std::min(arrivals, b.count);
    if (!(in.variant & kRelaxed)) release(w, who.clock);
    mbarrier_arrive(who, at, arrivals, in.variant & kRelaxed ? &w.released : &who.clock);
  }
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

// cp.async.mbarrier.arrive: one arrival when the copies that the lane has started by now have landed. Without
// .noinc the phase is made to want one more, so that the arrival changes nothing in the end.
Next copies_arrive(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    const BarrierAt at = use_mbarrier(w, in, *l, barrier_operand(in));
    if (in.variant == 0) {
      Mbarrier& b = find(w, in, *l, at);
      if (++b.pending > kMbarrierMost) {
        raise_final(FaultKind::mbarrier_state, w, in, *l,
                    name_of(at) + " would wait for more than " + std::to_string(kMbarrierMost) + " arrivals",
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

// ---- waiting ----

// The current phase, or the one before it.
uint64_t phase_of_parity(const Mbarrier& b, uint64_t parity) {
  return (b.phase & 1) == parity ? b.phase : b.phase - 1;
}

// The phase a lane asks about: by parity the current one or the one before; by a token that of the arrival.
// An allowed token of another barrier or of an older phase is worth its parity, which is all that an H200
// looks at.
uint64_t phase_asked(Warp& w, const Instr& in, int lane, const BarrierAt& at, const Mbarrier& b) {
  if (in.variant & kParity) {
    const uint32_t parity = w.at<uint32_t>(in.s[0])[lane];
    if (parity > 1) {
      raise(FaultKind::mbarrier, w, in, lane, "a wait for parity " + std::to_string(parity),
            "a parity is 0 or 1; hardware looks at the lowest bit only");
    }
    return phase_of_parity(b, parity & 1);
  }
  const uint64_t token = w.at<uint64_t>(in.s[0])[lane], bits = (1 << 28) - 1, phase = token >> 36;
  const uint64_t age = (b.phase - phase) & bits;
  if ((token >> 20 & 0xFFFF) != at.offset / kMbarrierBytes || age > bits / 2) {
    raise(FaultKind::mbarrier, w, in, lane,
          "the token " + hex(token) + " is not from an arrival at " + name_of(at),
          "a token belongs to the barrier whose mbarrier.arrive gave it");
    return phase_of_parity(b, phase & 1);
  }
  if (age > 1) {
    raise(FaultKind::mbarrier, w, in, lane,
          "the token is of phase " + std::to_string(b.phase - age) + ", " + name_of(at) + " is in phase " +
              std::to_string(b.phase),
          "a token can be asked about during its phase and the next one");
    return phase_of_parity(b, phase & 1);
  }
  return b.phase - age;
}

std::string asked_text(const Block& block, int warp, size_t offset, uint64_t phase) {
  const BarrierAt at{const_cast<Block*>(&block), offset};
  const auto found = block.mbarriers->live.find(offset);
  if (found == block.mbarriers->live.end()) return name_of(at) + ", which was invalidated";
  const Mbarrier& b = found->second;
  std::string text = name_of(at) + " for parity " + std::to_string(phase & 1) + ": " + lacks(b);
  const uint64_t seen = b.seen[size_t(warp)];
  if (phase > seen) {
    text += "; " + std::to_string(phase) + " phases have ended, this warp has waited for " +
            (seen ? "the first " + std::to_string(seen) : "none of them") +
            ": it may have been overtaken by a phase";
  }
  return text;
}

// Nobody can go on: the lanes suspended in try_wait are sent on with false, as they may be. A loop around the
// wait comes back at once, so this happens a few times only while no barrier changes; then the deadlock is
// real.
void give_up_when_stuck(Block& block) {
  constexpr int kMost = 8;
  constexpr uint64_t kNever = UINT64_MAX;
  Mbarriers& all = mbarriers_of(block);
  if (all.may_give_up) return;
  all.may_give_up = true;
  block.cluster->effects.push_back({[&block, &all] {
                                      all.may_give_up = false;
                                      auto& effects = block.cluster->effects;
                                      const bool more =
                                          std::any_of(effects.begin(), effects.end(),
                                                      [](const Effect& e) { return e.due != kNever; });
                                      if (more) return give_up_when_stuck(block);
                                      if (++all.fruitless <= kMost) ++all.given_up;
                                    },
                                    kNever});
}

// What the lanes of one wait ask, and what is known.
struct Asked {
  BarrierAt at[kLanes];
  uint64_t phase[kLanes];
  Mask ended = 0, given_up = 0;
};

// The phase asked about is settled when the wait begins: one that ends while the lane sleeps is never missed.
Asked ask(Warp& w, const Instr& in, Mask m, const Mbarriers& all) {
  Asked a;
  for (Lanes l(m); l; ++l) {
    a.at[*l] = use_mbarrier(w, in, *l, barrier_operand(in));
    const Mbarrier& b = find(w, in, *l, a.at[*l]);
    const Mbarriers::Wait& before = all.waits[size_t(w.thread_of(*l))];
    a.phase[*l] = before.on ? before.phase : phase_asked(w, in, *l, a.at[*l], b);
    if (int64_t(b.phase - a.phase[*l]) > 0) a.ended |= Mask(1) << *l;  // the one before the first is ~0
    if (before.on && before.given_up != all.given_up) a.given_up |= Mask(1) << *l;
  }
  return a;
}

// The lanes sleep until one of the phases they wait for has ended, or they are sent on.
void suspend(Warp& w, Mask m, const Asked& a, Mbarriers& all) {
  std::vector<std::pair<size_t, uint64_t>> awaited;  // barriers and phases, each once
  for (Lanes l(m); l; ++l) {
    const std::pair<size_t, uint64_t> one{a.at[*l].offset, a.phase[*l]};
    if (std::find(awaited.begin(), awaited.end(), one) == awaited.end()) awaited.push_back(one);
    all.waits[size_t(w.thread_of(*l))] = {true, a.phase[*l], all.given_up, a.at[*l].offset};
  }
  w.running->ready = [&all, awaited, given_up = all.given_up] {
    return all.given_up != given_up || std::any_of(awaited.begin(), awaited.end(), [&](const auto& one) {
             const auto b = all.live.find(one.first);
             return b == all.live.end() || b->second.phase > one.second;
           });
  };
  w.running->waits_for = [&w, one = awaited[0]] {
    return "waits at " + asked_text(*w.block, w.index, one.first, one.second);
  };
  give_up_when_stuck(*w.block);
}

// test_wait, try_wait: true for lanes whose phase has ended, which learn what its arrivals told. try_wait
// sleeps while that is so for none of them; the skewed order sometimes makes it say false at once, as
// hardware may.
Next wait(Warp& w, const Instr& in, Mask m) {
  Mbarriers& all = mbarriers_of(*w.block);
  const Asked a = ask(w, in, m, all);
  Cluster& c = *w.block->cluster;
  const bool sleeps =
      in.variant & kTry && !a.ended && !a.given_up && !(c.grid->order.skew && c.delays.below(16) == 0);
  if (sleeps) {
    suspend(w, m, a, all);
    return Next::retry;
  }
  for (Lanes l(m); l; ++l) {
    const bool ended = a.ended >> *l & 1;
    all.waits[size_t(w.thread_of(*l))] = {false, a.phase[*l], all.given_up, a.at[*l].offset};
    w.at<uint8_t>(in.d)[*l] = ended;
    if (!ended) continue;
    Mbarrier& b = all.live[a.at[*l].offset];
    if (in.variant2 == 0)
      acquire(w, b.ended);
    else
      w.observed.join(b.ended);  // .relaxed
    b.seen[size_t(w.index)] = std::max(b.seen[size_t(w.index)], a.phase[*l] + 1);
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

// .sem.scope, both or neither; true if .relaxed.
bool take_order(Decoder& d, const char* strong) {
  const bool relaxed = d.take("relaxed"), ordered = !relaxed && strong && d.take(strong);
  const bool scope = d.take_one({"cta", "cluster"}) >= 0;
  if (scope != (relaxed || ordered))
    throw Unsupported{"an order of memory without a scope, or the other way round"};
  return relaxed;
}

void finish(Decoder& d) {
  if (!d.take("b64")) throw Unsupported{"a type other than .b64"};
  d.done();
}

void decode_arrive(Decoder& d, bool drop) {
  d.instr.variant = drop ? kDrop : 0;
  if (d.take("expect_tx")) d.instr.variant |= kExpect;
  if (d.take("noComplete")) d.instr.variant |= kNoComplete;
  if (take_order(d, "release")) d.instr.variant |= kRelaxed;
  take_space(d, true);
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
  d.instr.variant2 = take_order(d, "acquire");
  take_space(d, false);
  finish(d);
  d.instr.d = d.predicate_destination(d.operand(0));
  take_address(d, d.operand(1));
  d.instr.s[0] = d.source(2, type_info(d.instr.variant & kParity ? "u32" : "b64"));
  if (d.operands() > (suspends ? 4 : 3)) throw Unsupported{"this number of operands"};
  if (d.operands() == 4) d.source(3, type_info("u32"));  // a hint how long to sleep
  d.instr.run = wait;
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

BarrierAt use_mbarrier(Warp& w, const Instr& in, int lane, const AddressOperand& operand) {
  Place place = locate(w, in, lane, operand.space, operand.of(w, lane), kMbarrierBytes, kMbarrierBytes);
  if (!operand.any_rank) place = own_block(w, in, lane, place);
  if (!place.block) own_block(w, in, lane, place);  // faults: not in shared memory
  const BarrierAt at{place.block, place.offset};
  use_mbarrier(w, in, lane, at);
  return at;
}

void use_mbarrier(Warp& w, const Instr& in, int lane, const BarrierAt& at) {
  const Mbarrier& b = find(w, in, lane, at);
  const size_t by = agent_of(*b.initialised.warp);
  // Fences alone order nothing here: the warp must have learnt of them through a barrier, if only a relaxed
  // one.
  if (w.block->cluster->grid->races && &w != b.initialised.warp && w.clock[by] < b.initialised_at) {
    raise(FaultKind::race, w, in, lane,
          name_of(at) + " is used here, and no barrier stands between its initialisation and this use",
          "after mbarrier.init: fence.mbarrier_init, then a barrier, before others use it", {b.initialised});
  }
}

BarrierAt barrier_beside(Warp& w, const Instr& in, int lane, const Block& data, const BarrierAt& named) {
  if (named.block == &data) return named;
  raise(FaultKind::mbarrier, w, in, lane,
        "the bytes go to the block of rank " + std::to_string(data.rank) +
            ", the mbarrier that counts them is in that of rank " + std::to_string(named.block->rank),
        "both must be of one block: mapa maps both to the same rank, or neither");
  const BarrierAt beside{w.block->cluster->blocks[size_t(data.rank)].get(), named.offset};
  use_mbarrier(w, in, lane, beside);
  return beside;
}

void mbarrier_expect(const Issuer& who, const BarrierAt& at, int64_t bytes) {
  Mbarrier& b = find(*who.warp, *who.instr, who.lane, at);
  b.expected += bytes;
  change_tx(who, at, b, bytes);
  end_phase_if_complete(*at.block, b);
}

void mbarrier_complete(const Issuer& who, const BarrierAt& at, int64_t bytes) {
  if (nobody_is_there(who, at)) return;
  Mbarrier& b = find(*who.warp, *who.instr, who.lane, at);
  b.arriving.join(who.clock);
  change_tx(who, at, b, -bytes);
  end_phase_if_complete(*at.block, b);
}

void mbarrier_arrive(const Issuer& who, const BarrierAt& at, int64_t arrivals, const Clock* clock) {
  if (nobody_is_there(who, at)) return;
  Mbarrier& b = find(*who.warp, *who.instr, who.lane, at);
  if (arrivals == 0) {
    raise(FaultKind::mbarrier, *who.warp, *who.instr, who.lane, name_of(at) + " gets 0 arrivals",
          "an arrival counts at least once", b.arrivals);
    return;  // allowed: nothing changes
  }
  if (arrivals > b.pending) {
    raise_final(FaultKind::mbarrier_state, *who.warp, *who.instr, who.lane,
                name_of(at) + " gets " + std::to_string(arrivals) +
                    (arrivals == 1 ? " arrival" : " arrivals") + " where phase " + std::to_string(b.phase) +
                    " lacks " + std::to_string(b.pending) + " of " + std::to_string(b.count),
                "more threads arrive than the barrier was initialised for, or one arrives twice in a phase",
                b.arrivals);
  }
  constexpr size_t kShown = 4;
  if (b.arrivals.size() == kShown) b.arrivals.erase(b.arrivals.begin());
  b.arrivals.push_back({who.warp, who.instr, who.lane, "arrived in this phase"});
  b.pending -= arrivals;
  if (clock) b.arriving.join(*clock);
  end_phase_if_complete(*at.block, b);
}

std::string asked_mbarrier(Warp& w, int lane) {
  const Mbarriers::Wait& asked = mbarriers_of(*w.block).waits[size_t(w.thread_of(lane))];
  return asked_text(*w.block, w.index, asked.offset, asked.phase);
}

std::vector<Form> mbarrier_forms() {
  std::vector<Form> forms = {{"mbarrier", decode_mbarrier}, {"cp", decode_copies_arrive}};
  for (const Form& form : cluster_forms()) forms.push_back(form);
  return forms;
}

}  // namespace gg::emu
