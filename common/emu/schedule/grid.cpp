// SPDX-License-Identifier: MIT
//
// Running a launch: clusters are handed to threads in order, and one that only spins steps aside for the
// next.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "common/emu/schedule/schedule.h"

namespace gg::emu {
namespace {

constexpr int kSpinTurns = 1000;  // of a cluster without a change, and it counts as going round for ever
// Clusters that spin, of one worker. With more, each gets a turn before another is started.
constexpr size_t kWaitingClusters = 160;

class Run {
 public:
  Run(Grid& grid, const RunOptions& options) : grid_(grid), options_(options) {
    const Launch& l = grid.launch;
    clusters_ = int64_t(l.grid[0] / l.cluster[0]) * (l.grid[1] / l.cluster[1]) * (l.grid[2] / l.cluster[2]);
  }

  void run(Counts* counts) {
    const int cores =
        options_.workers ? options_.workers : int(std::max(1u, std::thread::hardware_concurrency()));
    const int workers = int(std::min<int64_t>(cores, clusters_));
    std::vector<std::vector<InstrCounts>> own(size_t(workers),
                                              std::vector<InstrCounts>(grid_.launch.code->instrs.size()));
    std::vector<std::thread> threads;
    for (int i = 1; i < workers; ++i) threads.emplace_back([this, &own, i] { work(own[size_t(i)]); });
    if (workers > 0) work(own[0]);
    for (std::thread& thread : threads) thread.join();
    if (counts) {
      std::vector<InstrCounts>& sum = (*counts)[grid_.launch.code];
      sum.resize(grid_.launch.code->instrs.size());
      for (const auto& each : own) add(sum, each);
    }
    if (fault_) throw Fault(*fault_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static void add(std::vector<InstrCounts>& sum, const std::vector<InstrCounts>& each) {
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i].warps += each[i].warps;
      sum[i].lanes += each[i].lanes;
      sum[i].bytes += each[i].bytes;
      sum[i].sectors += each[i].sectors;
      sum[i].wavefronts += each[i].wavefronts;
      sum[i].least_wavefronts += each[i].least_wavefronts;
      sum[i].waits += each[i].waits;
      sum[i].multiply_adds += each[i].multiply_adds;
    }
  }

  struct Waiting {
    int64_t index = 0;
    std::unique_ptr<Cluster> cluster;
    int quiet_turns = 0;    // in which it spun and changed nothing
    int64_t stuck_in = -1;  // the epoch in which it was found to go round for ever
  };

  void work(std::vector<InstrCounts>& counts) {
    count_into(counts.data());
    std::deque<Waiting> row;
    size_t since_start = 0;
    Waiting now;
    while (next(row, since_start, now)) {
      try {
        if (!now.cluster) now.cluster = start_cluster(grid_, now.index);
        if (!turn(now)) row.push_back(std::move(now));
      } catch (const Fault& fault) {
        end(now, &fault);
      } catch (...) {
        end(now, nullptr);
        std::lock_guard lock(mutex_);
        error_ = std::current_exception();
        stop_before_ = 0;
      }
    }
  }

  // The cluster that this worker runs next. Clusters are started in order; those that spin wait in a row and
  // get turns between new ones, once something has changed. False: none is left.
  bool next(std::deque<Waiting>& row, size_t& since_start, Waiting& now) {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto waiting = std::find_if(row.begin(), row.end(), [&](const Waiting& w) {
        return w.stuck_in != epoch_ || all_stuck_ || w.index >= stop_before_;
      });
      const bool full = row.size() >= kWaitingClusters && since_start < row.size();
      if (may_start() && (waiting == row.end() || !full)) {
        since_start = 0;
        now = Waiting();
        now.index = next_++;
        ++alive_;
        return true;
      }
      if (waiting != row.end()) {
        ++since_start;
        now = std::move(*waiting);
        row.erase(waiting);
        return true;
      }
      if (row.empty()) return false;
      changed_.wait(lock);
    }
  }
  bool may_start() const { return next_ < std::min(clusters_, stop_before_); }

  // One turn of a cluster. True if it is over.
  bool turn(Waiting& now) {
    std::unique_lock lock(mutex_);
    // All that are left go round for ever. If one failed, the others may have waited for it.
    const bool failed = all_stuck_ && fault_ && !fault_is_deadlock_;
    if (failed || now.index >= stop_before_) return end_locked(nullptr, now), true;
    const int64_t epoch = epoch_;
    lock.unlock();
    if (all_stuck_)
      deadlock(*now.cluster, *grid_.launch.code,
               clusters_ > 1 ? "nobody can go on, in this block and in the others" : "nobody can go on");
    const uint64_t changes = now.cluster->changes;
    const Progress progress = run_cluster(*now.cluster, *grid_.launch.code);
    if (progress == Progress::done) return end(now, nullptr), true;
    lock.lock();
    if (now.cluster->changes != changes) begin_epoch();
    now.quiet_turns = epoch == epoch_ ? now.quiet_turns + 1 : 0;
    if (epoch == epoch_ && (progress == Progress::stuck || now.quiet_turns > kSpinTurns)) {
      now.stuck_in = epoch;
      ++stuck_;
    }
    if (stuck_ == alive_ && !may_start()) {
      all_stuck_ = true;
      changed_.notify_all();
    }
    return false;
  }
  void begin_epoch() {
    ++epoch_;
    stuck_ = 0;
    changed_.notify_all();
  }

  void end(Waiting& now, const Fault* fault) {
    std::lock_guard lock(mutex_);
    end_locked(fault, now);
  }
  void end_locked(const Fault* fault, Waiting& now) {
    --alive_;
    begin_epoch();
    now.cluster.reset();
    if (!fault || now.index >= stop_before_) return;
    stop_before_ = now.index;
    fault_ = *fault;
    fault_is_deadlock_ = all_stuck_;
  }

  Grid& grid_;
  const RunOptions& options_;
  int64_t clusters_ = 0;
  std::mutex mutex_;                 // of all below
  int64_t next_ = 0, alive_ = 0;     // clusters: the next to start; those started and not over
  int64_t stop_before_ = INT64_MAX;  // the first cluster that failed
  int64_t epoch_ = 0;                // counts turns in which something changed
  int64_t stuck_ = 0;                // clusters that can do nothing in this epoch
  std::condition_variable changed_;  // the epoch, or all are stuck
  std::atomic<bool> all_stuck_{false};
  std::optional<Fault> fault_;
  bool fault_is_deadlock_ = false;  // of clusters that go round for ever
  std::exception_ptr error_;
};

// What no device takes. Limits of one device are the runtime's affair.
void check_launch(const Launch& l) {
  constexpr int64_t kMostThreads = 1024;
  const Function& f = *l.code->function;
  const auto text = [](const int(&d)[3]) {
    return std::to_string(d[0]) + " x " + std::to_string(d[1]) + " x " + std::to_string(d[2]);
  };
  int64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (l.grid[i] < 1 || l.block[i] < 1 || l.cluster[i] < 1) {
      raise_launch(l,
                   "a grid of " + text(l.grid) + " blocks of " + text(l.block) + " threads in clusters of " +
                       text(l.cluster),
                   "a size that is zero or negative: an empty group, or a division that rounds down");
    }
    threads *= l.block[i];
    if (l.grid[i] % l.cluster[i] != 0) {
      raise_launch(l, "a grid of " + text(l.grid) + " blocks in clusters of " + text(l.cluster),
                   "the grid must be a multiple of the cluster in each direction");
    }
    if (f.required_threads[0] && l.block[i] != f.required_threads[i]) {
      raise_launch(l,
                   "blocks of " + text(l.block) + " threads, and the kernel wants " +
                       text(f.required_threads) + " (.reqntid)",
                   "launch with the block size that the kernel was compiled for");
    }
  }
  const int64_t most =
      f.max_threads[0] ? int64_t(f.max_threads[0]) * f.max_threads[1] * f.max_threads[2] : kMostThreads;
  if (threads > most)
    raise_launch(l,
                 "blocks of " + std::to_string(threads) + " threads, and at most " + std::to_string(most) +
                     " are allowed",
                 "__launch_bounds__ of the kernel, or the device's limit of 1024 threads");
  if (int64_t(l.params.size()) < f.param_bytes) {
    raise_launch(l,
                 std::to_string(l.params.size()) + " bytes of parameters, and the kernel has " +
                     std::to_string(f.param_bytes),
                 "an argument is missing");
  }
}

}  // namespace

void run_launch(const Launch& launch, GlobalMemory& memory, const RunOptions& options, Counts* counts) {
  check_launch(launch);
  Grid grid;
  grid.launch = launch;
  grid.memory = &memory;
  grid.order = options.order;
  grid.multiprocessors = options.multiprocessors;
  grid.checks = options.checks;
  grid.races = options.races && options.checks;
  grid.allowed = options.allowed;
  if (!launch.params.empty()) {
    grid.params_address = memory.allocate(launch.params.size());
    std::memcpy(memory.unchecked(grid.params_address), launch.params.data(), launch.params.size());
  }
  const auto release_params = [&] {
    if (grid.params_address) memory.release(grid.params_address);
  };
  try {
    Run(grid, options).run(counts);
  } catch (...) {
    release_params();
    throw;
  }
  release_params();
}

}  // namespace gg::emu
