// SPDX-License-Identifier: MIT
//
// The kernels and peers that are timed on a problem, and the buffers on which they run.

#include "common/harness/run/times.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "common/harness/bench/timer.h"
#include "common/harness/run/choices.h"
#include "common/harness/run/report.h"
#include "common/harness/verify/right_outputs.h"

namespace gg {
namespace {

// Enough copies of the problem that none is found in the L2, as far as memory goes; one where that
// takes too many.
BufferSets make_sets(Session& session, const Shape& shape) {
  const size_t l2_bytes = session.device.l2_bytes;
  BufferSets sets;
  const auto add = [&] {
    const uint64_t seed = session.bench_seed() + sets.size();
    sets.push_back(std::make_unique<Buffers>(*session.machine, session.setup, shape));
    sets.back()->fill_operands({Fill::Kind::normal, 0, seed, 0});
  };
  add();
  const size_t bytes = sets[0]->bytes(), wanted = size_t(cold_sets(bytes, l2_bytes));
  while (sets.size() < wanted) {
    if (bytes > 2 * l2_bytes && 2 * bytes > session.machine->free_bytes()) break;
    add();
  }
  return sets;
}

// Microseconds that the host takes to write a launch's pointer and size arrays, and to send them.
double preparation_us(Buffers& buffers, const Shape& shape) {
  constexpr int kRounds = 9;
  if (!shape.own_sizes) return 0;
  std::vector<double> us;
  for (int r = 0; r < kRounds; ++r) {
    const auto start = std::chrono::steady_clock::now();
    buffers.set_shape(shape);
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(us.begin(), us.begin() + kRounds / 2, us.end());
  return us[kRounds / 2];
}

// Those who are timed on one problem, in the same rounds: whoever has a right output.
class Field {
 public:
  struct Entrant {
    std::string peer, version;  // of the chapter both are empty
    ClusterTileShape tile;
    Contestant contestant;
    double us = 0;  // the median of the last rounds; 0: the check failed

    bool ours() const { return peer.empty() || peer == kAllIdeas; }
  };

  Field(Session& session, const Shape& shape, Stopwatch& stopwatch)
      : session_(session),
        shape_(shape),
        stopwatch_(stopwatch),
        sets_(make_sets(session, shape)),
        preparation_us_(preparation_us(*sets_[0], shape)) {}
  Field(const Field&) = delete;  // the launches hold references to the buffers
  Field& operator=(const Field&) = delete;

  void enter_chapter() {
    const auto ours = [](const Problem& problem) { return problem; };
    for (const auto& [idea, off] : session_.setup.request.ideas_off.by_name) none_off_.by_name[idea] = false;
    const auto all_ideas = [this](const Problem& problem) { return problem.with_ideas(none_off_); };
    bool right = enter("", session_.setup.request.tile, ours);
    if (!session_.options.off.empty())
      right = enter(kAllIdeas, session_.setup.request.tile, all_ideas) && right;
    tally(right);
  }

  // The chapter with this tile; 0x0: with the one that it chooses.
  void enter_tile(const ClusterTileShape& tile) {
    tally(enter("", tile, [tile](const Problem& problem) { return problem.with_tile(tile); }));
  }

  void enter_peer(Peer& peer) {
    try {
      const std::string version = peer.version();
      const PeerLaunches launches = prepare_and_check(peer, sets_, *session_.machine, session_.bench_seed());
      const auto right = [this, launches](int sets, const std::function<void()>& replay) {
        return right_in_sets(*session_.machine, sets_, sets, [&] {
          replay();
          for (int set = 0; set < sets; ++set) launches.finish(set);
        });
      };
      entrants_.push_back(
          {peer.name(), version, session_.setup.request.tile, {peer.name(), launches.launch, right, adds()}});
    } catch (const Error& error) {
      cudaGetLastError();  // if there is one, it was the peer's
      std::fprintf(stderr, "--peer %s left out on %s: %s\n", peer.name().c_str(), shape_.describe().c_str(),
                   error.what());
    }
  }

  // Adds a row for each entrant, and has its median.
  void time(bool warm, const Roof& roof) {
    std::vector<Contestant> contestants;
    for (const Entrant& entrant : entrants_) contestants.push_back(entrant.contestant);
    if (contestants.empty()) return;
    if (!warm && cold_sets(sets_[0]->bytes(), session_.device.l2_bytes) == 0) {
      std::printf(
          "time   cold inputs left out: more than 4096 copies of %zu bytes fit into twice the L2: %s\n",
          sets_[0]->bytes(), shape_.describe().c_str());
      return;
    }
    const std::vector<Timing> timings =
        time_contestants(contestants, warm ? 1 : int(sets_.size()),
                         session_.options.sustained ? Rounds::sustained : Rounds::brief, stopwatch_);
    for (size_t i = 0; i < timings.size(); ++i) {
      Entrant& entrant = entrants_[i];
      Row row = row_of(entrant);
      if (!timings[i].right) {
        print_wrong_replay(row, shape_);
        row["ok"] = "0";
        if (entrant.ours()) ++session_.tally.failed;
      } else {
        add_timing(row, shape_, session_.setup, timings[i], warm, roof);
        if (entrant.peer.empty() && preparation_us_ > 0) row["prep_us"] = number_text(preparation_us_);
        print_times(row, shape_);
      }
      entrant.us = timings[i].right ? timings[i].median : 0;
      rows_.push_back(std::move(row));
    }
  }

  const std::vector<Entrant>& entrants() const { return entrants_; }
  const std::vector<Row>& rows() const { return rows_; }

 private:
  bool adds() const { return session_.setup.request.accumulate; }
  Row row_of(const Entrant& entrant) const {
    return result_row(session_, shape_, entrant.tile, entrant.peer, entrant.version);
  }
  void tally(bool right) {
    ++session_.tally.checked;
    if (!right) ++session_.tally.failed;
  }

  // `variant`: the problem as it is to be launched. Whether it may be timed.
  template <class Variant>
  bool enter(const char* name, const ClusterTileShape& tile, const Variant& variant) {
    const auto launch = [this, variant](int set, cudaStream_t stream) {
      session_.launch(variant(sets_[size_t(set)]->problem()), stream);
    };
    const auto right = [this](int sets, const std::function<void()>& replay) {
      return right_in_sets(*session_.machine, sets_, sets, replay);
    };
    Entrant entrant = {name, "", tile, {name, launch, right, adds()}};
    if (correct(session_, *sets_[0], [&](cudaStream_t stream) { launch(0, stream); })) {
      entrants_.push_back(std::move(entrant));
      return true;
    }
    print_failed("time", shape_, "timed", why_wrong(session_, *sets_[0]));
    rows_.push_back(row_of(entrant));
    rows_.back()["ok"] = "0";
    return false;
  }

  Session& session_;
  const Shape& shape_;
  Stopwatch& stopwatch_;
  const BufferSets sets_;
  const double preparation_us_;
  IdeasOff none_off_;
  std::vector<Entrant> entrants_;
  std::vector<Row> rows_;
};

}  // namespace

Times::Times(Session& session, std::unique_ptr<Stopwatch> stopwatch, const Roof& roof)
    : session_(session), stopwatch_(std::move(stopwatch)), roof_(roof) {
  for (const std::string& peer : session.options.peers) {
    try {
      peers_.push_back(load_peer(peer, session.options.sustained));
    } catch (const Error& error) {
      std::fprintf(stderr, "--peer %s left out: %s\n", peer.c_str(), error.what());
    }
  }
}

void Times::time(const Shape& shape) {
  if (shape.flops() == 0) return;
  Field field(session_, shape, *stopwatch_);
  field.enter_chapter();
  for (const auto& peer : peers_) field.enter_peer(*peer);
  for (const bool warm : {false, true}) field.time(warm, roof_);
  if (!session_.options.csv.empty()) append_csv(session_.options.csv, kResultColumns, field.rows());
}

void Times::tune(const Shape& shape) {
  if (shape.flops() == 0) return;
  Field field(session_, shape, *stopwatch_);
  if (session_.chapter.chooses_tile) field.enter_tile({});
  for (const ClusterTileShape& tile : session_.chapter.tiles) field.enter_tile(tile);
  for (const auto& peer : peers_) field.enter_peer(*peer);
  field.time(true, roof_);
  if (!session_.options.csv.empty()) append_csv(session_.options.csv, kResultColumns, field.rows());

  std::vector<std::pair<double, std::string>> table;
  for (const auto& [peer, version, tile, contestant, us] : field.entrants()) {
    if (us == 0) continue;
    std::string name = !peer.empty() ? peer : tile.m ? tile_name(tile) : "as chosen";
    if (peer.empty() && tile.m && !cluster_names(session_.chapter).empty()) name += " " + cluster_name(tile);
    table.push_back({us, name});
  }
  std::sort(table.begin(), table.end());
  std::printf("tune   %s\n  tile               us   TFLOP/s   longer\n", shape.describe().c_str());
  for (const auto& [us, name] : table) {
    std::printf("  %-12s %9.1f  %8.1f   %5.1f %%\n", name.c_str(), us, shape.flops() / us * 1e-6,
                100 * (us / table.front().first - 1));
  }
}

}  // namespace gg
