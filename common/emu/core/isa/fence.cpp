// SPDX-License-Identifier: MIT
//
// Fences and hints. PTX ISA: "Parallel Synchronization and Communication Instructions: membar,
// fence", "Miscellaneous Instructions: nanosleep, pmevent", "createpolicy", "applypriority",
// "discard". Memory here is never weaker than the order of execution, but between clusters, which
// run on threads of the host: a fence is one of the host too. It moves no bytes, and tells the race
// and proxy checks what is ordered.

#include <atomic>

#include "common/emu/core/isa/forms.h"

namespace gg::emu {
namespace {

Next nothing(Warp&, const Instr&, Mask) { return Next::go_on; }

enum : uint8_t { kAcquire = 1, kRelease = 2 };

// membar and fence: the warp learns what others published by fences and what its relaxed waits
// have seen; it publishes what it knows, through relaxed arrivals that follow too. PTX ISA,
// "Release and Acquire Patterns".
Next fence(Warp& w, const Instr& in, Mask) {
  Cluster& c = *w.block->cluster;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (in.variant & kAcquire) {
    acquire(w, c.fences);
    acquire(w, w.race.observed);
  }
  if (in.variant & kRelease) {
    w.race.released = w.race.clock;
    release(w, c.fences);
  }
  return Next::go_on;
}
Next proxy_fence(Warp& w, const Instr&, Mask) {
  fence_proxy(w);
  return Next::go_on;
}

void decode_membar(Decoder& d) {
  if (d.take("proxy")) throw Unsupported{"this membar"};
  if (d.take_one({"cta", "gl", "sys"}) < 0) throw Unsupported{"this membar"};
  d.done();
  d.instr.variant = kAcquire | kRelease;
  d.instr.run = fence;
}
void decode_fence(Decoder& d) {
  d.instr.run = fence;
  if (d.take("proxy")) {
    const int kind = d.take_one({"async", "alias", "async::generic"});
    if (kind < 0) throw Unsupported{"this proxy fence"};
    if (kind == 0) {
      const int space = d.take_one({"shared::cta", "shared::cluster", "global"});
      d.instr.run = space == 2 ? nothing : proxy_fence;
    } else if (kind == 2) {
      d.take_one({"acquire", "release"});
      d.take_one({"sync_restrict::shared::cluster", "sync_restrict::shared::cta"});
      d.take("cluster");
      d.instr.run = proxy_fence;
    }
    return d.done();
  }
  d.instr.variant = kAcquire | kRelease;
  if (d.take("mbarrier_init")) {
    if (!d.take("release") || !d.take("cluster")) throw Unsupported{"this fence"};
    return d.done();
  }
  const int order = d.take_one({"sc", "acq_rel", "acquire", "release"});
  if (order < 0) throw Unsupported{"this fence"};
  if (order >= 2) d.instr.variant = order == 2 ? kAcquire : kRelease;
  d.take_one({"sync_restrict::shared::cluster", "sync_restrict::shared::cta"});
  if (d.take_one({"cta", "cluster", "gpu", "sys"}) < 0) throw Unsupported{"this fence"};
  d.done();
}

// createpolicy: what a cache policy says has no effect here; its value is any number.
Next make_policy(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) w.at<uint64_t>(in.d)[*l] = 0;
  return Next::go_on;
}
void decode_createpolicy(Decoder& d) {
  if (d.take_one({"fractional", "cvt", "range"}) < 0) throw Unsupported{"this createpolicy"};
  while (d.take_one({"L2", "L2::evict_first", "L2::evict_last", "L2::evict_normal", "L2::evict_unchanged",
                     "global"}) >= 0) {
  }
  if (!d.take("b64")) throw Unsupported{"this createpolicy"};
  d.done();
  d.instr.d = d.destination(0, type_info("b64"));
  for (size_t i = 1; i < d.operands(); ++i) {
    if (d.operand(i).kind == Operand::Kind::reg)
      d.source(d.operand(i), type_info(d.register_bits(d.operand(i)) == 64 ? "b64" : "b32"));
  }
  d.instr.run = make_policy;
}

// nanosleep: the others of the block get their turn.
Next sleep(Warp& w, const Instr&, Mask) {
  const uint64_t round = w.block->cluster->round;
  w.flow.running->ready = [&w, round] { return w.block->cluster->round > round; };
  w.flow.running->waits_for = [] { return std::string("sleeps"); };
  return Next::wait;
}
void decode_nanosleep(Decoder& d) {
  if (!d.take("u32")) throw Unsupported{"this nanosleep"};
  d.done();
  d.source(0, type_info("u32"));
  d.instr.run = sleep;
}

void decode_hint(Decoder& d) {
  while (d.take_one({"global", "L2", "L2::evict_normal"}) >= 0) {
  }
  d.done();
  d.instr.run = nothing;
}

}  // namespace

std::vector<Form> fence_forms() {
  return {{"membar", decode_membar, Family::fence},
          {"fence", decode_fence, Family::fence},
          {"createpolicy", decode_createpolicy, Family::move},
          {"nanosleep", decode_nanosleep, Family::control},
          {"applypriority", decode_hint, Family::ldst},
          {"discard", decode_hint, Family::ldst},
          {"pmevent", decode_hint, Family::control}};
}

}  // namespace gg::emu
