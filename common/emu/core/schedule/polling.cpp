// SPDX-License-Identifier: MIT
//
// Polling told from computing: a warp that changes nothing for long may wait for somebody in a
// loop, or work.

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "common/emu/core/schedule/schedule.h"

namespace gg::emu {
namespace {

// The values of registers in some lanes, as a number.
uint64_t values_of(Warp& w, const Code& code, const int32_t* registers, Mask lanes, uint64_t hash) {
  for (const int32_t* r = registers; *r >= 0; ++r) {
    const TypeInfo& type = code.registers[size_t(*r)].type;
    const size_t bytes = type.kind == 'p' ? 1 : size_t(type.bits / 8);
    const uint8_t* from = w.at<uint8_t>(code.register_slots[size_t(*r)]);
    for (int l = 0; l < kLanes; ++l) {
      for (size_t i = 0; i < bytes && (lanes >> l & 1); i += 8) {
        uint64_t word = 0;
        std::memcpy(&word, from + size_t(l) * bytes + i, std::min<size_t>(8, bytes - i));
        hash = mixed(hash, word);
      }
    }
  }
  return hash;
}

// The lanes of a fragment that will execute the instruction.
Mask executing(Warp& w, const Fragment& f, const Instr& in) {
  if (!in.guard.slot) return f.mask;
  Mask lanes = 0;
  for (int l = 0; l < kLanes; ++l)
    lanes |= Mask((w.at<uint8_t>(in.guard.slot)[l] & 1) != in.guard.negated) << l;
  return f.mask & lanes;
}

// One warp for `steps` steps and as many again: every lane that does not wait has asked in the
// second half, and nothing that it had not asked, with the same answer, in the first.
bool warp_polls_in_vain(Warp& w, const Code& code, int64_t steps) {
  constexpr int kLongestSleep = 10000;  // rounds; who waits longer waits for somebody
  std::unordered_set<uint64_t> known;
  Mask asked = 0;
  int asleep = 0;
  for (int64_t i = 0; i < 2 * steps && w.flow.live && asleep < kLongestSleep; ++i) {
    const Fragment* f = choose(w);
    if (!f) {
      ++w.block->cluster->round;
      ++asleep;
      continue;
    }
    asleep = 0;
    const Instr& in = code.instrs[size_t(f->pc)];
    const Mask lanes = asks_others(in) ? executing(w, *f, in) : 0;
    const uint64_t question =
        lanes ? values_of(w, code, in.reads, lanes, mixed(uint64_t(in.index), lanes)) : 0;
    run_warp(w, code, 1);
    if (lanes == 0) continue;
    const uint64_t answer = values_of(w, code, in.writes, lanes, question);
    if (i < steps)
      known.insert(answer);
    else if (!known.contains(answer))
      return false;
    if (i >= steps) asked |= lanes;
  }
  for (const Fragment& f : w.flow.fragments) {
    if (f.ready || f.parked) asked |= f.mask;
  }
  return w.flow.live != 0 && (w.flow.live & ~asked) == 0;
}

}  // namespace

bool asks_others(const Instr& in) {
  const std::string& opcode = in.statement->opcode;
  const bool shared = in.space == Space::global || in.space == Space::shared || in.space == Space::generic;
  return (opcode == "ld" && shared) || opcode == "atom" || opcode == "mbarrier";
}

bool polls_in_vain(Cluster& c, const Code& code, int looks) {
  constexpr int64_t kSteps = 50'000;  // more than most loops take from one question to the next
  const uint64_t changes = c.changes;
  for (const auto& block : c.blocks) {
    for (const auto& warp : block->warps) {
      if (warp->flow.live && !warp_polls_in_vain(*warp, code, kSteps * looks)) return false;
    }
  }
  return c.changes == changes;
}

}  // namespace gg::emu
