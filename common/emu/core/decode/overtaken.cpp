// SPDX-License-Identifier: MIT
//
// A walk forward from each load, with the registers that its value has gone into.

#include "common/emu/core/decode/overtaken.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "common/emu/core/decode/liveness.h"
#include "common/emu/core/state/lanes.h"
#include "common/emu/core/state/place.h"

namespace gg::emu {
namespace {

// In ascending order: few, and copied at each step.
using Registers = std::vector<int32_t>;

bool holds(const Registers& registers, int32_t one) {
  return std::binary_search(registers.begin(), registers.end(), one);
}
void insert(Registers& registers, int32_t one) {
  const auto at = std::lower_bound(registers.begin(), registers.end(), one);
  if (at == registers.end() || *at != one) registers.insert(at, one);
}
void erase(Registers& registers, int32_t one) {
  const auto at = std::lower_bound(registers.begin(), registers.end(), one);
  if (at != registers.end() && *at == one) registers.erase(at);
}

bool loads(const Instr& in) {
  return in.statement->opcode == "ld" && in.space == Space::shared && !in.any_rank;
}

// Done for more than values in registers, and only when what it reads has come, its guard too.
bool acts(const Instr& in) {
  static const std::set<std::string_view> opcodes = {"ld",      "ldu", "ldmatrix", "st",        "stmatrix",
                                                     "atom",    "red", "mbarrier", "cp",        "wgmma",
                                                     "tcgen05", "bra", "brx",      "nanosleep", "wmma"};
  return opcodes.count(in.statement->opcode) != 0;
}
// Whether all that came before the instruction in its lane has been done. A barrier orders that for
// its own block only, but arrivals of other warps behind one are not looked at.
bool orders(const Instr& in) {
  const Statement& s = *in.statement;
  if (s.opcode == "bar" || s.opcode == "barrier") return !s.has("warp");
  if (s.opcode == "membar") return !s.has("cta");
  return s.opcode == "fence" && !s.has("proxy") && !s.has("mbarrier_init") && !s.has("cta");
}

// So many instructions are looked at for all loads of a kernel; the chapters' kernels take 700.
// Loads that are left over then are not watched.
constexpr size_t kMostSteps = size_t(1) << 20;

// The arrivals that the load may come behind. Takes its steps from those that are left.
std::set<int32_t> arrivals_before(const Code& code, int32_t load, size_t& steps) {
  std::set<int32_t> found;
  std::map<int32_t, Registers> seen;  // what has its value, at the places to go on from
  std::vector<int32_t> places;
  const auto go_on = [&](int32_t from, const Registers& has_value) {
    for (const int32_t to : next_of(code, from)) {
      if (to >= int32_t(code.instrs.size())) continue;
      Registers& known = seen[to];
      const size_t before = known.size();
      for (const int32_t r : has_value) insert(known, r);
      if (known.size() != before) places.push_back(to);
    }
  };
  Registers value;
  for (const int32_t* r = code.instrs[size_t(load)].writes; *r >= 0; ++r) insert(value, *r);
  go_on(load, value);
  for (; !places.empty() && steps > 0; --steps) {
    const int32_t at = places.back();
    places.pop_back();
    const Instr& in = code.instrs[size_t(at)];
    Registers has_value = seen[at];
    bool reads = false;
    for (const int32_t* r = in.reads; *r >= 0; ++r) reads |= holds(has_value, *r);
    if (at == load || (reads && acts(in)) || orders(in)) continue;
    if (in.overtaking.arrives_elsewhere) found.insert(at);
    for (const int32_t* r = in.writes; *r >= 0; ++r) {
      if (reads) {
        insert(has_value, *r);
      } else if (in.guard.slot == 0) {
        erase(has_value, *r);
      }
    }
    if (!has_value.empty()) go_on(at, has_value);
  }
  return found;
}

}  // namespace

void find_overtaken(Code& code) {
  const auto elsewhere = [](const Instr& in) { return in.overtaking.arrives_elsewhere; };
  if (std::none_of(code.instrs.begin(), code.instrs.end(), elsewhere)) return;
  std::map<int32_t, std::vector<int32_t>> overtakes;  // by arrival
  size_t steps = kMostSteps;
  for (Instr& in : code.instrs) {
    if (!loads(in)) continue;
    for (const int32_t arrival : arrivals_before(code, in.index, steps)) {
      overtakes[arrival].push_back(in.index);
      in.overtaking.overtaken = true;
    }
  }
  for (auto& [arrival, list] : overtakes) {
    list.push_back(-1);
    code.register_lists.push_back(std::make_unique<int32_t[]>(list.size()));
    std::copy(list.begin(), list.end(), code.register_lists.back().get());
    code.instrs[size_t(arrival)].overtaking.overtakes = code.register_lists.back().get();
  }
}

void load_late(Warp& w, const Instr& load, Mask lanes, const uint64_t (&address)[kLanes]) {
  if (!w.block->shared.races.on()) return;
  auto late = std::find_if(w.race.late.begin(), w.race.late.end(),
                           [&](const SharedLoad& l) { return l.instr == &load; });
  if (late == w.race.late.end()) late = w.race.late.insert(late, SharedLoad{&load, 0, {}});
  late->lanes |= lanes;
  for (Lanes l(lanes); l; ++l) {
    late->offsets[*l] =
        locate(w, load, *l, load.space, address[*l], load.bytes * load.count, load.bytes).offset;
  }
}

void make_late_loads(Warp& w, const Instr& arrival, bool elsewhere) {
  for (const SharedLoad& late : w.race.late) {
    const int32_t* load = arrival.overtaking.overtakes;
    if (!elsewhere || !load) break;
    while (*load >= 0 && *load != late.instr->index) ++load;
    if (*load < 0) continue;
    for (Lanes l(late.lanes); l; ++l) {
      w.block->shared.races.read(w, *late.instr, *l, late.offsets[*l], late.instr->bytes * late.instr->count);
    }
  }
  w.race.late.clear();
}

}  // namespace gg::emu
