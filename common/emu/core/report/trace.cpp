// SPDX-License-Identifier: MIT
//
// An attached kernel's instructions run through `traced`, which notes kind and place before it
// calls the instruction's own handler: a kernel that is not attached pays nothing. A warp's
// instructions of one kind become one event, a few others between them belong to it; a wait is one
// of one instruction. Each cluster counts for itself, so a trace does not depend on how many
// threads emulate. An mbarrier has a row of its own with its phases. Format: "Trace Event Format",
// events X (complete) and M (names).

#include "common/emu/core/report/trace.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "common/emu/core/report/count_report.h"
#include "common/emu/core/units/mbarrier_state.h"

namespace gg::emu {
namespace {

// Limits on what is kept, so that a browser can show it.
constexpr int64_t kBlocks = 16;  // of a launch
constexpr size_t kEventsOfLaunch = 50'000, kEvents = 200'000;
constexpr uint32_t kGap = 32;  // so many other instructions inside a run of one kind belong to it

enum class Kind : uint8_t { other, load, mma, wait, epilogue };
constexpr const char* kKinds[] = {"other", "load", "mma", "wait", "epilogue"};

// Copies name the destination first; between blocks of a cluster they touch no global memory.
Kind kind_of_copy(const Statement& s) {
  if (!s.has("global")) return Kind::other;
  if (s.has("prefetch")) return Kind::load;
  for (const std::string& m : s.modifiers) {
    if (m == "global") return Kind::epilogue;
    if (m.rfind("shared", 0) == 0) break;
  }
  return Kind::load;
}

// load: asks global memory for something; epilogue: gives it something; wait: at a barrier
// or for copies.
Kind kind_of(const Instr& in) {
  const Statement& s = *in.statement;
  const bool global = in.space == Space::global || in.space == Space::generic;
  if (s.opcode == "mma") return Kind::mma;
  if (s.opcode == "wmma") {
    if (s.has("mma")) return Kind::mma;
    return !global ? Kind::other : s.has("load") ? Kind::load : Kind::epilogue;
  }
  if (s.opcode == "wgmma") return s.has("wait_group") ? Kind::wait : Kind::mma;
  if (s.opcode == "tcgen05") {
    if (s.has("wait::ld") || s.has("wait::st")) return Kind::wait;
    return s.has("mma") || s.has("cp") ? Kind::mma : Kind::other;
  }
  if (s.opcode == "mbarrier") return s.has("test_wait") || s.has("try_wait") ? Kind::wait : Kind::other;
  if (s.opcode == "bar" || s.opcode == "barrier")
    return s.has("arrive") || s.has("warp") ? Kind::other : Kind::wait;
  if (s.opcode == "nanosleep") return Kind::wait;
  if (s.opcode == "cp") return s.has("wait_group") || s.has("wait_all") ? Kind::wait : kind_of_copy(s);
  if (s.opcode == "ld" || s.opcode == "ldu") return global ? Kind::load : Kind::other;
  if (s.opcode == "st" || s.opcode == "red") return global ? Kind::epilogue : Kind::other;
  return Kind::other;
}

// An event of one warp lasts from its first instruction to behind its last; a wait lasts to the
// instruction that goes on.
struct Event {
  Kind kind = Kind::other;
  bool ended = true;  // false: a wait that nothing followed
  uint64_t begin = 0, end = 0;
  uint32_t instructions = 0;
  // Times that the warp slept; that it began an instruction anew for that.
  uint32_t waits = 0, again = 0;
  const Instr* first = nullptr;
  std::string asked;  // the mbarrier that a wait is at, and its phase, as fields of JSON
};

struct Track {  // of one warp
  std::vector<Event> events;
  // `run`: what it is doing; `gap`: the others since, of another kind. No instructions: none.
  Event run, gap;

  void note(Kind kind, uint64_t now, const Instr& in) {
    if (run.instructions > 0 && kind == Kind::other && run.kind != Kind::other) {
      extend(gap, Kind::other, now, in);
      if (gap.instructions > kGap) close(now);
    } else {
      const auto goes_on = [&] { return kind == run.kind && (kind != Kind::wait || run.first == &in); };
      while (run.instructions > 0 && !goes_on()) close(now);
      run.instructions += gap.instructions;
      run.waits += gap.waits;
      run.again += gap.again;
      gap = {};
      extend(run, kind, now, in);
    }
  }

  // The instruction that was noted last had this outcome.
  void outcome(Next next) {
    Event& event = gap.instructions > 0 ? gap : run;
    event.waits += next == Next::wait || next == Next::retry;
    event.again += next == Next::retry;
  }

  // The run is over, and the others behind it are a run of their own.
  void close(uint64_t now) {
    if (run.kind == Kind::wait) run.end = gap.instructions > 0 ? gap.begin : now;
    events.push_back(run);
    run = gap;
    gap = {};
  }

  // Nothing follows. `waits`: if the last was a wait, it is not over.
  void end(uint64_t now, bool waits) {
    run.ended = !(waits && run.kind == Kind::wait && gap.instructions == 0);
    while (run.instructions > 0) close(now);
  }

 private:
  static void extend(Event& event, Kind kind, uint64_t now, const Instr& in) {
    if (event.instructions++ == 0) event = {kind, true, now, now, 1, 0, 0, &in, {}};
    event.end = now + 1;
  }
};

struct Phase {
  uint64_t number = 0, begin = 0, end = 0;
};

struct Phases {  // of one mbarrier: those that have ended
  std::string name;
  uint64_t current = 0, begin = 0;
  std::vector<Phase> ended;
};

std::string json_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const bool blank = c == '\n' || c == '\t' || c == ' ';
    if (blank && result.back() == ' ') continue;
    if (c == '"' || c == '\\') result += '\\';
    result += blank ? ' ' : c < 0x20 || c > 0x7E ? '?' : c;
  }
  return result + "\"";
}

}  // namespace

struct TraceStep {
  Handler run;
  Kind kind;
  bool asks;  // at an mbarrier
};

struct ClusterTrace {
  const std::vector<TraceStep>* steps = nullptr;
  std::vector<std::string> blocks;  // their names
  std::vector<Track> tracks;        // by Warp::agent: those of the first block, of the second ...
  // By block and place of the mbarrier in shared memory.
  std::vector<std::map<size_t, Phases>> phases;
  uint64_t issued = 0, changes = 0;  // `changes`: Cluster::changes when phases were last looked at
  size_t room = 0;                   // for so many events; 0: nothing more is recorded
  bool cut = false;

  Next step(Warp& w, const Instr& in, Mask m) {
    const TraceStep& step = (*steps)[size_t(in.index)];
    if (cut) return step.run(w, in, m);
    look_at_phases(*w.block->cluster);
    Track& track = tracks[w.race.agent];
    const size_t before = track.events.size();
    track.note(step.kind, issued++, in);
    take(track.events.size() - before);
    const Next next = step.run(w, in, m);
    track.outcome(next);
    if (step.asks && track.run.first == &in && track.run.asked.empty()) track.run.asked = asked(w, m);
    return next;
  }

  // A phase that has ended since the last instruction was issued ends at the next one.
  void look_at_phases(const Cluster& cluster) {
    if (changes == cluster.changes) return;
    changes = cluster.changes;
    for (const auto& block : cluster.blocks) {
      if (!block->mbarriers) continue;
      for (const auto& [offset, barrier] : block->mbarriers->live)
        look_at(phases[size_t(block->rank)][offset], {block.get(), offset}, barrier.phase);
    }
  }

 private:
  void take(size_t events) {
    room -= std::min(room, events);
    cut = room == 0;
  }

  void look_at(Phases& p, const BarrierAt& at, uint64_t phase) {
    if (p.name.empty()) {
      p.name = mbarrier_name(at);
      p.begin = issued;
    }
    if (phase < p.current) p.current = phase;  // another barrier begins at this place
    for (; p.current < phase; ++p.current) {
      if (p.ended.empty()) p.name = mbarrier_name(at);  // by now all of its array are initialised
      p.ended.push_back({p.current, p.begin, issued});
      p.begin = issued;
      take(1);
    }
  }

  // Lanes that wait together mostly ask for one phase: that of the first is told.
  static std::string asked(const Warp& w, Mask m) {
    const Mbarriers::Wait& wait = w.block->mbarriers->waits[size_t(w.thread_of(__builtin_ctz(m)))];
    const std::string name = mbarrier_name({w.block, wait.offset});
    // Whoever asks for the phase before the first goes on.
    const bool before_first = wait.phase == UINT64_MAX;
    return ",\"mbarrier\":" + json_string(name) +
           (before_first ? "" : ",\"phase\":" + std::to_string(wait.phase));
  }
};

struct Trace::State {
  std::map<const Code*, std::vector<TraceStep>> steps;
  std::mutex mutex;                                           // of what follows
  std::map<int64_t, std::shared_ptr<ClusterTrace>> clusters;  // of the launch that runs
  std::string body;                                           // events of those that have ended
  size_t events = 0;
  int64_t launches = 0, blocks = 0, blocks_left_out = 0, blocks_cut = 0;

  std::shared_ptr<ClusterTrace> begin(const Cluster& cluster);
  void end(const Launch& launch);
  std::string summary() const;

 private:
  void add(const Event& event, size_t warp, std::map<const Instr*, std::string>& places);
  void add(const char* name, size_t row, uint64_t begin, uint64_t end, const std::string& args);
};

namespace {

Trace::State* recording = nullptr;  // launches run one after the other

Next traced(Warp& w, const Instr& in, Mask m) {
  Cluster& cluster = *w.block->cluster;
  if (!cluster.trace) cluster.trace = recording->begin(cluster);
  return cluster.trace->step(w, in, m);
}

int64_t product(const int (&x)[3]) { return int64_t(x[0]) * x[1] * x[2]; }

std::string block_name(const Block& b) {
  const int(&grid)[3] = b.grid->launch.grid;
  std::string name = "block " + std::to_string(b.id[0]);
  if (grid[1] > 1 || grid[2] > 1) name += "," + std::to_string(b.id[1]);
  if (grid[2] > 1) name += "," + std::to_string(b.id[2]);
  return name;
}

}  // namespace

std::shared_ptr<ClusterTrace> Trace::State::begin(const Cluster& cluster) {
  const Launch& launch = cluster.grid->launch;
  int64_t index = 0;
  for (int i = 2; i >= 0; --i) index = index * (launch.grid[i] / launch.cluster[i]) + cluster.id[i];
  const int64_t size = product(launch.cluster), all = product(launch.grid) / size;
  const int64_t kept = std::min(all, (kBlocks + size - 1) / size);
  auto trace = std::make_shared<ClusterTrace>();
  trace->steps = &steps.at(launch.code);
  trace->cut = index >= kept;
  if (trace->cut) return trace;
  std::lock_guard lock(mutex);
  trace->room = std::min(kEventsOfLaunch, kEvents - std::min(kEvents, events)) / size_t(kept);
  trace->cut = trace->room == 0;
  if (trace->cut) return trace;
  for (const auto& block : cluster.blocks) {
    trace->blocks.push_back(block_name(*block));
    trace->phases.emplace_back();
    trace->tracks.resize(trace->tracks.size() + block->warps.size());
  }
  clusters[index] = trace;
  return trace;
}

void Trace::State::add(const char* name, size_t row, uint64_t begin, uint64_t end, const std::string& args) {
  body += std::string(",\n{\"ph\":\"X\",\"name\":\"") + name + "\",\"pid\":" + std::to_string(blocks) +
          ",\"tid\":" + std::to_string(row) + ",\"ts\":" + std::to_string(begin) +
          ",\"dur\":" + std::to_string(end - begin) + ",\"args\":{" + args + "}}";
  ++events;
}

void Trace::State::add(const Event& e, size_t warp, std::map<const Instr*, std::string>& places) {
  std::string& place = places[e.first];
  if (place.empty()) place = json_string(place_of(*e.first));
  std::string args = "\"instructions\":" + std::to_string(e.instructions) + ",\"first\":" + place;
  if (e.waits > 0) args += ",\"waits\":" + std::to_string(e.waits);
  if (e.again > 0) args += ",\"again\":" + std::to_string(e.again);
  args += e.asked;
  if (!e.ended) args += ",\"ended\":false";
  add(kKinds[int(e.kind)], warp, e.begin, e.end, args);
}

// Every block is a process of the file; every warp a thread, as every mbarrier with ended phases.
void Trace::State::end(const Launch& launch) {
  std::lock_guard lock(mutex);
  const auto describe = [&](const char* what, size_t warp, const char* key, const std::string& text) {
    body += std::string(",\n{\"ph\":\"M\",\"name\":\"") + what + "\",\"pid\":" + std::to_string(blocks) +
            ",\"tid\":" + std::to_string(warp) + ",\"args\":{\"" + key + "\":" + json_string(text) + "}}";
  };
  const std::string title =
      "launch " + std::to_string(launches++) + ": " + kernel_title(launch.code->function->name) + ", ";
  std::map<const Instr*, std::string> places;
  blocks_left_out += product(launch.grid);
  for (const auto& [index, cluster] : clusters) {
    const size_t warps = cluster->tracks.size() / cluster->blocks.size();
    for (size_t b = 0; b < cluster->blocks.size(); ++b) {
      ++blocks;
      --blocks_left_out;
      blocks_cut += cluster->cut;
      describe("process_name", 0, "name", title + cluster->blocks[b]);
      describe("process_labels", 0, "labels", "issue order, not time");
      for (size_t warp = 0; warp < warps; ++warp) {
        Track& track = cluster->tracks[b * warps + warp];
        track.end(cluster->issued, !cluster->cut);
        describe("thread_name", warp, "name", "warp " + std::to_string(warp));
        for (const Event& event : track.events) add(event, warp, places);
      }
      size_t row = warps;
      for (const auto& [offset, barrier] : cluster->phases[b]) {
        if (barrier.ended.empty()) continue;
        describe("thread_name", row, "name", barrier.name);
        for (const Phase& p : barrier.ended)
          add("phase", row, p.begin, p.end, "\"phase\":" + std::to_string(p.number));
        ++row;
      }
    }
  }
  clusters.clear();
}

Trace::Trace() : state_(std::make_unique<State>()) {}
Trace::~Trace() = default;

void Trace::attach(Code& code) {
  std::vector<TraceStep>& steps = state_->steps[&code];
  for (Instr& in : code.instrs) {
    steps.push_back({in.run, kind_of(in), in.statement->opcode == "mbarrier" && kind_of(in) == Kind::wait});
    in.run = traced;
  }
}

Trace::Recording::Recording(Trace* trace, const Launch& launch) : trace_(trace), launch_(launch) {
  if (trace) recording = trace->state_.get();
}
Trace::Recording::~Recording() {
  if (trace_) trace_->state_->end(launch_);
}

std::string Trace::State::summary() const {
  std::string text = "events: " + std::to_string(events) + ", launches: " + std::to_string(launches) +
                     ", blocks: " + std::to_string(blocks);
  if (blocks_left_out > 0) {
    text += "; left out, as " + std::to_string(kBlocks) + " blocks of a launch are kept and " +
            std::to_string(kEvents) + " events in all: blocks: " + std::to_string(blocks_left_out);
  }
  if (blocks_cut > 0) text += "; cut short, for their many events: blocks: " + std::to_string(blocks_cut);
  return text;
}

std::string Trace::json() const {
  std::lock_guard lock(state_->mutex);
  return "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"axis\":\"issue order, not time: 1 us stands for one "
         "instruction of a warp, counted within the block's cluster\",\"kept\":" +
         json_string(state_->summary()) + "},\n\"traceEvents\":[" +
         state_->body.substr(std::min<size_t>(1, state_->body.size())) + "\n]}\n";
}

std::string Trace::summary() const {
  std::lock_guard lock(state_->mutex);
  return state_->summary();
}

}  // namespace gg::emu
