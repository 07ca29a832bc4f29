// SPDX-License-Identifier: MIT
//
// Running a launch: clusters are handed to threads in order, and one that only spins steps aside
// for the next. PTX ISA, "Parallel Synchronization and Communication Instructions: griddepcontrol".

#include "common/emu/core/schedule/launches.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "common/emu/core/schedule/schedule.h"
#include "common/emu/core/state/names.h"
#include "common/emu/core/state/progress.h"

namespace gg::emu {
namespace {

// Clusters that spin, of one worker. With more, each gets a turn before another is started.
constexpr size_t kWaitingClusters = 160;
// So many clusters of a launch that waits for the one before it begin early: about as many blocks
// as a device holds.
constexpr int64_t kEarlyClusters = 300;

int64_t blocks_of_cluster(const Launch& l) { return int64_t(l.cluster[0]) * l.cluster[1] * l.cluster[2]; }

// "grouped_gemm" of "void chapter::grouped_gemm<float>(int)".
std::string kernel_name(const Launch& launch) {
  std::string name = demangled(launch.code->function->name);
  name.resize(std::min(name.size(), name.find_first_of("<(")));
  return name.substr(name.find_last_of(": ") + 1);
}

}  // namespace

class HeldLaunch::Run {
 public:
  Run(Grid& grid, const RunOptions& options)
      : grid_(grid), options_(options), early_counts_(grid.launch.code->instrs.size()) {
    const Launch& l = grid.launch;
    clusters_ = int64_t(l.grid[0] / l.cluster[0]) * (l.grid[1] / l.cluster[1]) * (l.grid[2] / l.cluster[2]);
    next_rest_ = first_wave_ = first_wave();
    grid_.cancel_next = [this] { return cancel_next(); };
  }

  void run_early() {
    current_counts = early_counts_.data();
    for (int64_t i = 0; i < kEarlyClusters && may_start(); ++i) {
      Waiting now;
      now.index = take_next();
      now.cluster = start_cluster(grid_, now.index);
      if (run_cluster(*now.cluster, *grid_.launch.code) == Progress::done) {
        count_done();
        continue;
      }
      ++alive_;
      early_.push_back(std::move(now));
    }
  }

  void run(Counts* counts) {
    const Shown shown(grid_, clusters_, done_);
    const int cores =
        options_.workers ? options_.workers : int(std::max(1u, std::thread::hardware_concurrency()));
    const int workers = int(std::min<int64_t>(cores, clusters_));
    std::vector<std::vector<InstrCounts>> own(size_t(workers),
                                              std::vector<InstrCounts>(grid_.launch.code->instrs.size()));
    std::vector<std::deque<Waiting>> rows(static_cast<size_t>(workers));
    for (size_t i = 0; i < early_.size(); ++i) rows[i % rows.size()].push_back(std::move(early_[i]));
    own[0] = std::move(early_counts_);
    std::vector<std::thread> threads;
    for (size_t i = 1; i < rows.size(); ++i)
      threads.emplace_back([this, &own, &rows, i] { work(own[i], rows[i]); });
    work(own[0], rows[0]);
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
      sum[i].global_bytes += each[i].global_bytes;
      sum[i].sectors += each[i].sectors;
      sum[i].shared_bytes += each[i].shared_bytes;
      sum[i].wavefronts += each[i].wavefronts;
      sum[i].least_wavefronts += each[i].least_wavefronts;
      sum[i].waits += each[i].waits;
      sum[i].multiply_adds += each[i].multiply_adds;
      sum[i].products += each[i].products;
      sum[i].products_during_loads += each[i].products_during_loads;
      sum[i].products_during_stores += each[i].products_during_stores;
      sum[i].tmem_loads += each[i].tmem_loads;
      sum[i].tmem_loads_during_products += each[i].tmem_loads_during_products;
    }
  }

  // The launch on the line for whoever waits.
  class Shown {
   public:
    Shown(Grid& grid, int64_t clusters, int64_t done) : grid_(grid) {
      const Launch& l = grid.launch;
      const int64_t blocks = blocks_of_cluster(l);
      grid.progress = ProgressLine::get().begin_launch(kernel_name(l), l.code, clusters * blocks);
      if (grid.progress) grid.progress->done = done * blocks;
    }
    ~Shown() {
      grid_.progress = nullptr;
      ProgressLine::get().end_launch();
    }
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

   private:
    Grid& grid_;
  };

  struct Waiting {
    int64_t index = 0;
    std::unique_ptr<Cluster> cluster;
    int quiet_turns = 0;    // in which it spun and changed nothing
    int looks = 0;          // how often it was looked at, as it had spun for long
    int64_t stuck_in = -1;  // the epoch in which it was found to go round for ever
  };

  void work(std::vector<InstrCounts>& counts, std::deque<Waiting>& row) {
    current_counts = counts.data();
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

  // The cluster that this worker runs next. Clusters are started in order; those that spin wait in
  // a row and get turns between new ones, once something has changed. False: none is left.
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
        now.index = take_next();
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
  bool may_start() const {
    return (next_ < first_wave_ ? next_ : next_rest_) < std::min(clusters_, stop_before_);
  }
  int64_t take_next() { return next_ < first_wave_ ? next_++ : next_rest_++; }

  // Clusters that count as started from the beginning, so that nobody can cancel them. On a device
  // they are those that its multiprocessors hold at once. Here they are never more than half of the
  // grid, so that small grids see both answers to a request; in the skewed order their number
  // depends on the seed.
  int64_t first_wave() const {
    const Launch& l = grid_.launch;
    const int64_t fit = std::max<int64_t>(1, grid_.multiprocessors / blocks_of_cluster(l));
    const int64_t most = std::min(fit, (clusters_ + 1) / 2);
    return grid_.order.skew ? 1 + int64_t(grid_.order.seed % uint64_t(most)) : most;
  }
  int64_t cancel_next() {
    std::lock_guard lock(mutex_);
    if (next_rest_ >= std::min(clusters_, stop_before_)) return -1;
    count_done();
    return next_rest_++;
  }
  void count_done() {  // a cluster
    ++done_;
    if (grid_.progress) grid_.progress->done = done_ * blocks_of_cluster(grid_.launch);
  }

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
    Progress progress = run_cluster(*now.cluster, *grid_.launch.code);
    if (progress == Progress::done) return end(now, nullptr), true;
    if (progress == Progress::spinning && now.quiet_turns > options_.patience) progress = look_at(now);
    lock.lock();
    if (now.cluster->changes != changes) begin_epoch();
    now.quiet_turns = epoch == epoch_ ? now.quiet_turns + 1 : 0;
    if (epoch == epoch_ && progress == Progress::stuck) {
      now.stuck_in = epoch;
      ++stuck_;
    }
    if (stuck_ == alive_ && !may_start()) {
      all_stuck_ = true;
      changed_.notify_all();
    }
    return false;
  }
  // Nothing has changed for long: the cluster polls for ever, or computes and gets more time.
  Progress look_at(Waiting& now) {
    ++now.looks;
    if (polls_in_vain(*now.cluster, *grid_.launch.code, now.looks)) return Progress::stuck;
    now.quiet_turns = 0;
    if ((now.looks & (now.looks - 1)) == 0) {  // ever more seldom
      const double steps = double(now.cluster->round) * kTurn;
      const ProgressLine::Aside aside(ProgressLine::get());
      std::fprintf(stderr, "kernel %s: block %lld computes, %.0f million steps so far\n",
                   grid_.launch.code->function->name.c_str(),
                   static_cast<long long>(now.cluster->blocks[0]->linear), steps / 1e6);
    }
    return Progress::spinning;
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
    count_done();
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
  std::vector<Waiting> early_;  // begun before the launch before this one has ended
  std::vector<InstrCounts> early_counts_;
  std::mutex mutex_;  // of all below
  // Clusters to start next: of the first wave, which ends before first_wave_, and of the others.
  int64_t next_ = 0, next_rest_ = 0, first_wave_ = 0;
  int64_t alive_ = 0;                // clusters started and not over
  int64_t done_ = 0;                 // clusters that are over, or cancelled
  int64_t stop_before_ = INT64_MAX;  // the first cluster that failed
  int64_t epoch_ = 0;                // counts turns in which something changed
  int64_t stuck_ = 0;                // clusters that can do nothing in this epoch
  std::condition_variable changed_;  // the epoch, or all are stuck
  std::atomic<bool> all_stuck_{false};
  std::optional<Fault> fault_;
  bool fault_is_deadlock_ = false;  // of clusters that go round for ever
  std::exception_ptr error_;
};

namespace {

// Refuses launches that no device takes. Limits of one device are the runtime's affair.
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

HeldLaunch::HeldLaunch(const Launch& launch, GlobalMemory& memory, const RunOptions& options)
    : grid_(std::make_unique<Grid>()) {
  check_launch(launch);
  grid_->launch = launch;
  grid_->memory = &memory;
  grid_->order = options.order;
  grid_->multiprocessors = options.multiprocessors;
  grid_->checks = options.checks;
  grid_->races = options.races && options.checks;
  grid_->allowed = options.allowed;
  grid_->tensor_cores = std::any_of(launch.code->instrs.begin(), launch.code->instrs.end(),
                                    [](const Instr& in) { return in.statement->opcode == "tcgen05"; });
  if (launch.code->uses_heap) memory.open_heap();
  if (!launch.params.empty()) {
    grid_->params_address = memory.allocate(launch.params.size());
    std::memcpy(memory.unchecked(grid_->params_address), launch.params.data(), launch.params.size());
  }
  if (launch.cooperative) {
    const uint32_t workspace[2] = {sizeof workspace, 0};  // its bytes, and the barrier of the grid
    grid_->workspace = memory.allocate(sizeof workspace);
    std::memcpy(memory.unchecked(grid_->workspace), workspace, sizeof workspace);
  }
  run_ = std::make_unique<Run>(*grid_, options);
}

HeldLaunch::~HeldLaunch() {
  if (grid_->workspace) grid_->memory->release(grid_->workspace);
  if (grid_->params_address) grid_->memory->release(grid_->params_address);
}

void HeldLaunch::run_to_wait() {
  grid_->before_ended = false;
  run_->run_early();
}

void HeldLaunch::finish(Counts* counts) {
  grid_->before_ended = true;
  run_->run(counts);
}

bool launches_dependents(const Code& code) {
  return std::any_of(code.instrs.begin(), code.instrs.end(), [](const Instr& instr) {
    return instr.statement && instr.statement->opcode == "griddepcontrol" &&
           instr.statement->has("launch_dependents");
  });
}

void run_launch(const Launch& launch, GlobalMemory& memory, const RunOptions& options, Counts* counts) {
  HeldLaunch(launch, memory, options).finish(counts);
}

}  // namespace gg::emu
