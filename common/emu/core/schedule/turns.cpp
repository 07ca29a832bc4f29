// SPDX-License-Identifier: MIT
//
// The turns of a cluster's warps, and when its asynchronous effects happen. A cluster whose warps
// only spin is recognised, so that another can go on.

#include <algorithm>
#include <atomic>

#include "common/emu/core/schedule/schedule.h"
#include "common/emu/core/state/progress.h"

namespace gg::emu {
namespace {

constexpr int kLongestTurn = 256;        // instructions, in the skewed order
constexpr uint64_t kSpinRounds = 20000;  // of a cluster without a change: other clusters get a turn

// Lets effects happen whose time has come; with `force`, at least one. True if any did.
bool complete_effects(Cluster& c, bool force) {
  bool any = false;
  const bool drawn = force && c.grid->order.skew && !c.effects.empty();
  const size_t forced = drawn ? c.delays.below(c.effects.size()) : 0;
  size_t kept = 0;  // in their order; there may be thousands, and some add others
  for (size_t i = 0; i < c.effects.size(); ++i) {
    if (c.effects[i].due <= c.round || (force && !any && i >= forced)) {
      const auto complete = std::move(c.effects[i].complete);
      ++c.changes;
      complete();
      any = true;
    } else {
      if (kept < i) c.effects[kept] = std::move(c.effects[i]);
      ++kept;
    }
  }
  c.effects.erase(c.effects.begin() + long(kept), c.effects.end());
  return any;
}

// Where a warp's lanes are, and what its registers hold, as numbers.
uint64_t place_of(const Warp& w) {
  uint64_t hash = 0;
  for (const Fragment& f : w.flow.fragments)
    hash = mixed(hash, uint64_t(f.mask) << 32 | uint32_t(f.pc) << 2 | uint32_t(f.parked) << 1 |
                           uint32_t(f.ready != nullptr));
  return hash;
}
uint64_t registers_of(Warp& w, const Code& code) {
  uint64_t hash = 0;
  const uint64_t* file = w.at<uint64_t>(0);
  for (size_t i = 0; i < code.file_bytes / 8; ++i) hash = mixed(hash, file[i]);
  return hash;
}

// Spinning: a warp that comes back to the registers it had at a place, while memory stays as it is,
// goes round for ever, unless another cluster changes memory. A cluster without a change
// (Cluster::changes) is watched for that from time to time, the longer the later.
class Watch {
 public:
  // Asked after every round. `quiet`: rounds without a change. True: all warps go round or wait.
  bool all_repeat(uint64_t quiet, const std::vector<Warp*>& warps, const Code& code) {
    if (quiet == 0) begin_ = kFirst, on_ = false;
    if (quiet < begin_) return false;
    if (!on_) {
      begin(warps, code);
      return false;
    }
    if (++rounds_ < least_) return false;
    bool all = true;
    for (size_t i = 0; i < warps.size(); ++i) {
      State& s = first_[i];
      s.repeats = s.repeats || warps[i]->flow.live == 0 ||
                  (place_of(*warps[i]) == s.place && registers_of(*warps[i], code) == s.registers);
      all = all && s.repeats;
    }
    if (rounds_ > least_ + begin_) {  // perhaps the loop has begun since
      begin_ = quiet * 4;
      on_ = false;
    }
    return all;
  }

 private:
  static constexpr uint64_t kFirst = 64;
  struct State {
    uint64_t place = 0, registers = 0;
    bool repeats = false;
  };
  void begin(const std::vector<Warp*>& warps, const Code& code) {
    on_ = true;
    rounds_ = 0;
    first_.clear();
    size_t fragments = 1;
    for (Warp* w : warps) {
      first_.push_back({place_of(*w), registers_of(*w, code), false});
      fragments = std::max(fragments, w->flow.fragments.size());
    }
    // So that each fragment of a warp has had its turn.
    least_ = 8 + fragments * (kFragmentTurn / kTurn);
  }

  bool on_ = false;
  uint64_t begin_ = kFirst, rounds_ = 0, least_ = 0;
  std::vector<State> first_;
};

// Decides which warps may do how many instructions in a round. The skewed order leaves out some
// warps, and one for as long as the others change anything: what comes too late for them shows.
class Turns {
 public:
  Turns(Cluster& c, const std::vector<Warp*>& warps) : c_(c), order_(warps) {}

  // Returns the warps in the order of the next round. `idle`, `quiet`: rounds in which nobody
  // moved, in which nothing changed.
  const std::vector<Warp*>& order(uint64_t idle, uint64_t quiet) {
    constexpr uint64_t kPatience = 4;
    all_move_ = idle > 0;
    c_.nobody_is_late = idle > 0 || quiet > kPatience;
    if (!c_.grid->order.skew) return order_;
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[c_.turns.below(i)]);
    if (!last_ || last_->flow.live == 0 || c_.nobody_is_late) last_ = order_[0];
    return order_;
  }
  int of(const Warp& w) {
    if (!c_.grid->order.skew) return kTurn;
    if (!all_move_ && (&w == last_ || c_.turns.below(4) == 0)) return 0;
    return 1 + int(c_.turns.below(kLongestTurn));
  }

 private:
  Cluster& c_;
  std::vector<Warp*> order_;
  const Warp* last_ = nullptr;
  bool all_move_ = false;
};

}  // namespace

Progress run_cluster(Cluster& c, const Code& code) {
  std::vector<Warp*> warps;
  for (const auto& block : c.blocks) {
    for (const auto& warp : block->warps) warps.push_back(warp.get());
  }
  Turns turns(c, warps);
  uint64_t idle = 0, quiet = 0, changes = c.changes;
  Watch watch;
  constexpr int64_t kRoundsAtOnce = 256;  // counted together
  LaunchProgress* const progress = c.grid->progress;
  for (;;) {
    if ((++c.round & (kRoundsAtOnce - 1)) == 0 && progress)
      progress->rounds.fetch_add(kRoundsAtOnce, std::memory_order_relaxed);
    bool any = complete_effects(c, false), live = false;
    for (Warp* w : turns.order(idle, quiet)) {
      if (w->flow.live == 0) continue;
      any = run_warp(*w, code, turns.of(*w)) > 0 || any;
      live = live || w->flow.live != 0;
    }
    if (!live) break;
    any = any || complete_effects(c, true);
    idle = any ? 0 : idle + 1;
    if (idle > 3) {  // a sleeper wakes in the round after
      if (!c.grid->before_ended) return Progress::stuck;
      deadlock(c, code, "nobody can go on");
    }
    quiet = c.changes == changes ? quiet + 1 : 0;
    changes = c.changes;
    if (watch.all_repeat(quiet, warps, code) && !complete_effects(c, true)) return Progress::stuck;
    if (quiet > kSpinRounds) return Progress::spinning;
  }
  while (complete_effects(c, true)) {
  }
  return Progress::done;
}

}  // namespace gg::emu
