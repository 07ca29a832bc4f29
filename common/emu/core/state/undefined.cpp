// SPDX-License-Identifier: MIT
//
// Values that nobody gave: from register to register, through shared and local memory, and what is
// said when one is used.

#include "common/emu/core/state/undefined.h"

#include <algorithm>

#include "common/emu/core/state/lanes.h"

namespace gg::emu {
namespace {

const std::string& name_of(const Warp& w, int32_t reg) {
  return w.block->grid->launch.code->registers[size_t(reg)].name;
}

// Where the value of a register without one comes from: the first copy that handed it on, or this.
Origin origin_of(const Warp& w, const Instr& in, int32_t reg, Mask lanes) {
  const auto known = w.undefined.origins.find(reg);
  if (known != w.undefined.origins.end() && known->second.lanes & lanes) return known->second;
  return {&w, &in, reg, lanes};
}

std::vector<Party> party_of(const Origin& origin) {
  if (origin.absent >= 0) {
    return {{origin.warp, origin.instr, -1,
             "took the value of a lane that takes no part in the shuffle, the first of lane " +
                 std::to_string(origin.absent),
             origin.lanes}};
  }
  return {{origin.warp, origin.instr, -1,
           "read register " + name_of(*origin.warp, origin.reg) + ", which had no value", origin.lanes}};
}

[[gnu::noinline]] void unwritten(Warp& w, const Instr& in, int32_t reg, Mask lanes) {
  Mask& written = w.registers.written[size_t(reg)];
  if (!was_told(FaultKind::uninit_register, w, in)) {
    const auto known = w.undefined.origins.find(reg);
    const bool carried = known != w.undefined.origins.end() && known->second.lanes & lanes;
    const Mask others = written & ~lanes;
    const std::string read = lanes_do(lanes, "read") + " register " + name_of(w, reg) + ", ";
    if (carried) {
      raise(FaultKind::uninit_register, w, in, __builtin_ctz(lanes),
            read + "which was made of one without a value",
            "a variable is used before it has a value on this path, or a lane uses what another lane beyond "
            "an edge had",
            party_of(known->second));
    } else {
      raise(FaultKind::uninit_register, w, in, __builtin_ctz(lanes),
            read + "which " +
                (others ? "only " + lanes_text(others) + " of the warp wrote"
                        : "no lane of the warp has written"),
            others ? "a variable gets its value in a branch or a loop that these lanes did not take"
                   : "a variable is used before it has a value on this path");
    }
  }
  written |= lanes;  // allowed: say it once
}

void leave(Warp& w, const Instr& in, int32_t from, int32_t to, Mask lanes) {
  if (to < 0 || lanes == 0) return;
  Origin origin = from < 0 ? Origin{&w, &in, to, lanes} : origin_of(w, in, from, lanes);
  origin.lanes = lanes;
  w.undefined.left.push_back({to, origin});
}

// Returns who left the byte at this offset without a value: the nearest entry at or below it.
const Origin* origin_at(const std::map<size_t, Origin>& origins, size_t offset) {
  const auto above = origins.upper_bound(offset);
  return above == origins.begin() ? nullptr : &std::prev(above)->second;
}

// The bytes of an access that may be without a value: a shadow for each, where those that are come
// from, and their offset there. No shadow: they lie in global memory, or nothing in local memory
// is without one.
struct Bytes {
  uint8_t *shadow = nullptr, flag = 0;
  std::map<size_t, Origin>* origins = nullptr;
  size_t offset = 0;
};
Bytes bytes_at(Warp& w, const Instr& in, int lane, uint64_t address) {
  const int width = in.bytes * in.count;
  const Place place = locate(w, in, lane, in.space, address, width, width);
  if (place.block) {
    return {place.block->shared.shadow.data() + place.offset, SharedMemory::kUndefined,
            &place.block->undefined, place.offset};
  }
  if (w.undefined.local.empty() || place.bytes < w.local.data() ||
      place.bytes >= w.local.data() + w.local.size())
    return {};
  const size_t offset = size_t(place.bytes - w.local.data());
  return {w.undefined.local.data() + offset, 1, &w.undefined.local_origins, offset};
}

}  // namespace

void doubt_all(Warp& w) {
  if (w.undefined.anywhere) return;
  w.undefined.anywhere = w.block->cluster->doubted = true;
  // Registers that nobody recorded are written.
  for (const Instr& in : w.block->grid->launch.code->instrs) {
    for (const int32_t* r = in.writes; *r >= 0 && !in.checks.records; ++r)
      w.registers.written[size_t(*r)] = kAllLanes;
  }
}

void took_of_absent(Warp& w, const Instr& in, Mask lanes, int absent) {
  doubt_all(w);
  const int32_t to = in.carry->to[0];
  w.undefined.left.push_back({to, {&w, &in, to, lanes, absent}});
}

Mask without_some_value(Warp&, const Instr& in, Mask m, const Mask* without) {
  Mask some = 0;
  for (size_t i = 0; i < in.carry->from.size(); ++i) some |= without[i];
  return m & some;
}

void look_for_guard(Warp& w, const Instr& in, Mask m) {
  if (const Mask missing = m & ~w.registers.written[size_t(in.guard.reg)])
    unwritten(w, in, in.guard.reg, missing);
}

void look_for_values(Warp& w, const Instr& in, Mask m) {
  for (const int32_t* r = in.carry ? in.carry->wants : in.reads; *r >= 0; ++r) {
    if (const Mask missing = m & ~w.registers.written[size_t(*r)]) unwritten(w, in, *r, missing);
  }
  if (!in.carry || !in.carry->lanes) return;
  Mask without[8] = {}, any = 0;
  for (size_t i = 0; i < in.carry->from.size(); ++i) {
    const int32_t r = in.carry->from[i];
    without[i] = r < 0 ? 0 : m & ~w.registers.written[size_t(r)];
    any |= without[i];
  }
  if (any == 0) return;
  const Mask lanes = in.carry->lanes(w, in, m, without);
  size_t from = 0;
  while (without[from] == 0) ++from;
  for (const int32_t to : in.carry->to) leave(w, in, in.carry->from[from], to, lanes);
}

void leave_without(Warp& w) {
  for (const auto& [reg, origin] : w.undefined.left) {
    w.registers.written[size_t(reg)] &= ~origin.lanes;
    w.undefined.origins[reg] = origin;
  }
  w.undefined.left.clear();
}

void store_undefined(Warp& w, const Instr& in, Mask m, const uint64_t (&address)[kLanes]) {
  for (size_t i = 0; i < in.carry->from.size(); ++i) {
    const int32_t r = in.carry->from[i];
    const Mask missing = r < 0 ? 0 : m & ~w.registers.written[size_t(r)];
    if (missing) w.undefined.local.resize(w.local.size());
    for (Lanes l(missing); l; ++l) {
      const Bytes at = bytes_at(w, in, *l, address[*l]);
      if (!at.shadow) {
        unwritten(w, in, r, missing);
        break;
      }
      for (size_t b = i * in.bytes; b < (i + 1) * in.bytes; ++b) at.shadow[b] |= at.flag;
      (*at.origins)[at.offset + i * in.bytes] = origin_of(w, in, r, missing);
      w.block->cluster->undefined = true;
    }
  }
}

void load_undefined(Warp& w, const Instr& in, Mask m, const uint64_t (&address)[kLanes]) {
  if (!w.block->cluster->undefined) return;
  Origin origins[8];
  for (Lanes l(m); l; ++l) {
    const Bytes at = bytes_at(w, in, *l, address[*l]);
    if (!at.shadow) continue;
    for (size_t b = 0; b < size_t(in.bytes) * in.count; ++b) {
      if (!(at.shadow[b] & at.flag)) continue;
      Origin& origin = origins[b / in.bytes];
      const Origin* known = origin_at(*at.origins, at.offset + b);
      if (known && !origin.instr)
        origin = Origin{known->warp, known->instr, known->reg, origin.lanes, known->absent};
      origin.lanes |= Mask(1) << *l;
    }
  }
  for (size_t i = 0; i < in.carry->to.size(); ++i) {
    if (origins[i].lanes == 0 || in.carry->to[i] < 0) continue;
    if (!in.checks.asks) doubt_all(w);
    w.undefined.left.push_back({in.carry->to[i], origins[i]});
  }
}

void local_defined(Warp& w, const Instr& in, Mask m, const uint64_t (&address)[kLanes]) {
  if (w.undefined.local.empty()) return;
  for (Lanes l(m); l; ++l) {
    const Bytes at = bytes_at(w, in, *l, address[*l]);
    if (at.shadow && at.flag == 1) std::fill_n(at.shadow, in.bytes * in.count, uint8_t(0));
  }
}

void copy_undefined(Warp& w, int lane, uint64_t from, uint64_t to, uint64_t bytes) {
  std::vector<uint8_t>& shadow = w.undefined.local;
  if (shadow.empty()) return;
  const size_t begin = size_t(lane) * (w.local.size() / kLanes), source = begin + from, target = begin + to;
  for (size_t b = 0; b < bytes; ++b) {
    shadow[target + b] = shadow[source + b];
    const Origin* known = shadow[source + b] ? origin_at(w.undefined.local_origins, source + b) : nullptr;
    if (known) w.undefined.local_origins[target + b] = Origin(*known);
  }
}

void local_grown(Warp& w, size_t before, size_t bytes) {
  if (w.undefined.local.empty()) return;
  std::vector<uint8_t> shadow(bytes * kLanes);
  for (size_t lane = 0; lane < kLanes; ++lane)
    std::copy_n(w.undefined.local.begin() + long(lane * before), before, shadow.begin() + long(lane * bytes));
  w.undefined.local = std::move(shadow);
  std::map<size_t, Origin> origins;
  for (const auto& [offset, origin] : w.undefined.local_origins)
    origins[offset / before * bytes + offset % before] = origin;
  w.undefined.local_origins = std::move(origins);
}

std::vector<Party> left_by(const Block& block, size_t offset) {
  const Origin* known = origin_at(block.undefined, offset);
  return known ? party_of(*known) : std::vector<Party>();
}

}  // namespace gg::emu
