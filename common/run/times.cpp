// SPDX-License-Identifier: MIT
//
// Who is timed on a problem, and on which buffers.

#include "common/run/times.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "common/bench/timer.h"
#include "common/run/report.h"
#include "common/verify/output.h"

namespace gg {
namespace {

// Enough copies of the problem that a round through them exceeds twice the L2, as far as memory goes.
BufferSets make_sets(Session& session, const Shape& shape) {
  const size_t l2_bytes = session.device.l2_bytes;
  BufferSets sets;
  const auto add = [&] {
    const uint64_t seed = session.bench_seed() + sets.size();
    sets.push_back(std::make_unique<Buffers>(*session.machine, session.setup, shape));
    sets.back()->fill_operands({Fill::Kind::normal, 0, seed, 0});
  };
  add();
  const size_t bytes = sets[0]->bytes(), wanted = std::min<size_t>(2 * l2_bytes / bytes + 2, 256);
  while (sets.size() < wanted) {
    if (bytes > 2 * l2_bytes && 2 * bytes > session.machine->free_bytes()) break;
    add();
  }
  return sets;
}

// Microseconds the host takes to write the pointer and size arrays that a launch needs, and to send them.
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

// Those who are timed on one problem: whoever has a right output.
class Field {
 public:
  Field(Session& session, const Shape& shape)
      : session_(session),
        shape_(shape),
        sets_(make_sets(session, shape)),
        preparation_us_(preparation_us(*sets_[0], shape)) {}
  Field(const Field&) = delete;  // the launches hold references to the buffers
  Field& operator=(const Field&) = delete;

  void enter_chapter() {
    const auto ours = [this](int set, cudaStream_t stream) {
      session_.launch(sets_[size_t(set)]->problem(), stream);
    };
    for (const auto& [idea, off] : session_.setup.ideas_off) none_off_[idea] = false;
    const auto all_ideas = [this](int set, cudaStream_t stream) {
      session_.launch(sets_[size_t(set)]->problem().with_ideas(none_off_), stream);
    };
    bool right = enter("", ours);
    if (!session_.options.off.empty()) right = enter(kAllIdeas, all_ideas) && right;
    ++session_.tally.checked;
    if (!right) ++session_.tally.failed;
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
      contestants_.push_back({peer.name(), launches.launch, right});
      versions_.push_back(version);
    } catch (const Error& error) {
      cudaGetLastError();  // if there is one, it was the peer's
      std::fprintf(stderr, "--peer %s left out on %s: %s\n", peer.name().c_str(), shape_.describe().c_str(),
                   error.what());
    }
  }

  // Adds a row for each contestant; our median in us, 0 where we were not timed.
  double time(bool warm, const Roof& roof) {
    double ours_us = 0;
    if (contestants_.empty()) return 0;
    const std::vector<Timing> timings =
        time_contestants(contestants_, warm ? 1 : int(sets_.size()),
                         session_.options.sustained ? Rounds::sustained : Rounds::brief);
    for (size_t i = 0; i < timings.size(); ++i) {
      const bool ours = contestants_[i].name.empty();
      Row row = result_row(session_, shape_, contestants_[i].name, versions_[i]);
      if (!timings[i].right) {
        print_wrong_replay(row, shape_);
        row["ok"] = "0";
        rows_.push_back(std::move(row));
        if (ours || contestants_[i].name == kAllIdeas) ++session_.tally.failed;
        continue;
      }
      add_timing(row, shape_, session_.setup, timings[i], warm, roof);
      if (ours && preparation_us_ > 0) row["prep_us"] = number_text(preparation_us_);
      print_times(row, shape_);
      rows_.push_back(std::move(row));
      if (ours) ours_us = timings[i].median;
    }
    return ours_us;
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  // Whether it may be timed.
  bool enter(const char* name, const std::function<void(int, cudaStream_t)>& launch) {
    if (correct(session_, *sets_[0], [&](cudaStream_t stream) { launch(0, stream); })) {
      const auto right = [this](int sets, const std::function<void()>& replay) {
        return right_in_sets(*session_.machine, sets_, sets, replay);
      };
      contestants_.push_back({name, launch, right});
      versions_.push_back("");
      return true;
    }
    print_failed("time", shape_, "timed");
    rows_.push_back(result_row(session_, shape_, name, ""));
    rows_.back()["ok"] = "0";
    return false;
  }

  Session& session_;
  const Shape& shape_;
  const BufferSets sets_;
  const double preparation_us_;
  std::map<std::string, bool> none_off_;
  std::vector<Contestant> contestants_;
  std::vector<std::string> versions_;
  std::vector<Row> rows_;
};

}  // namespace

Times::Times(Session& session) : session_(session), roof_(read_roof(roof_path(), session.device.name)) {
  if (session.options.sustained) setenv("GG_PEER_SUSTAINED", "1", 1);  // they choose as they are timed
  for (const std::string& peer : session.options.peers) {
    try {
      peers_.push_back(load_peer(peer));
    } catch (const Error& error) {
      std::fprintf(stderr, "--peer %s left out: %s\n", peer.c_str(), error.what());
    }
  }
}

double Times::time(const Shape& shape) {
  if (shape.flops() == 0) return 0;
  Field field(session_, shape);
  field.enter_chapter();
  for (const auto& peer : peers_) field.enter_peer(*peer);
  if (!session_.options.tune) field.time(false, roof_);
  const double ours_us = field.time(true, roof_);
  if (!session_.options.csv.empty()) append_csv(session_.options.csv, kResultColumns, field.rows());
  return ours_us;
}

void Times::tune(const Shape& shape) {
  std::vector<std::pair<double, Tile>> table;
  for (const ClusterTile& tile : session_.chapter.tiles) {
    session_.setup.tile = tile;
    if (const double us = time(shape); us > 0) table.push_back({us, tile});
  }
  std::sort(table.begin(), table.end(), [](auto& x, auto& y) { return x.first < y.first; });
  std::printf("tune   %s\n  tile        us   TFLOP/s\n", shape.describe().c_str());
  for (const auto& [us, tile] : table) {
    std::printf("  %-7s %9.1f  %6.1f\n", format("%dx%d", tile.m, tile.n).c_str(), us,
                shape.flops() / us * 1e-6);
  }
}

}  // namespace gg
