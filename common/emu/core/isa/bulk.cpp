// SPDX-License-Identifier: MIT
//
// The groups that bulk stores are waited for by, and the way to tma.cpp, whose copies are of
// tensors. foreign/isa/bulk_run.cpp has those of a run of bytes. PTX ISA: "Data Movement and
// Conversion Instructions: cp.async.bulk.commit_group, cp.async.bulk.wait_group".

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/bulk_copy.h"

namespace gg::emu {
namespace {

Next commit_group(Warp& w, const Instr&, Mask m) {
  for (Lanes l(m); l; ++l) {
    BulkGroups::Lane& lane = bulk_groups_of(w).lanes[*l];
    lane.committed.push_back(lane.open ? lane.open : std::make_shared<BulkGroup>());
    lane.committed.back()->number = ++lane.commits;
    lane.open = nullptr;
    while (!lane.committed.empty() && lane.committed.front()->unfinished == 0) lane.committed.pop_front();
  }
  return Next::go_on;
}

// Remembers the wait, for counts and reports.
void note_wait(BulkGroups::Lane& lane, int64_t left) {
  lane.wait = {left, lane.commits, lane.pending()};
  lane.waited = std::max(lane.waited, lane.commits - std::min(lane.commits, uint64_t(left)));
}

// Waits until all but the newest N groups of each lane are done; .read (variant 1): have
// read their sources.
Next wait_group(Warp& w, const Instr& in, Mask m) {
  std::vector<std::shared_ptr<BulkGroup>> awaited;
  for (Lanes l(m); l; ++l) {
    note_wait(bulk_groups_of(w).lanes[*l], in.offset);
    const auto& committed = bulk_groups_of(w).lanes[*l].committed;
    for (size_t i = 0; int64_t(i) < int64_t(committed.size()) - in.offset; ++i)
      awaited.push_back(committed[i]);
  }
  const bool read = in.variant;
  const auto left = [awaited, read] {
    return std::count_if(awaited.begin(), awaited.end(),
                         [&](const auto& g) { return (read ? g->unread : g->unfinished) > 0; });
  };
  if (left() == 0) return Next::go_on;
  w.flow.running->ready = [left] { return left() == 0; };
  w.flow.running->waits_for = [left, read] {
    return "waits for " + std::to_string(left()) + " bulk groups to " +
           (read ? "have read their sources" : "be done");
  };
  return Next::wait;
}

void decode_groups(Decoder& d) {
  if (d.take("commit_group")) {
    d.instr.run = commit_group;
  } else {
    d.take("wait_group");
    d.instr.variant = d.take("read");
    d.instr.offset = d.immediate(0);
    if (d.instr.offset < 0) throw Unsupported{"a negative number of groups"};
    d.instr.run = wait_group;
  }
  d.done();
}

void decode_cp(Decoder& d) {
  const bool reduces = d.take("reduce");
  if (!d.take("async") || !d.take("bulk")) throw Unsupported{"this form of cp.async"};
  const Statement& s = d.statement();
  if (s.has("tensor")) return decode_tensor_copy(d, reduces);
  if (reduces || !(s.has("commit_group") || s.has("wait_group"))) throw Unsupported{"no copy of a tensor"};
  decode_groups(d);
}

}  // namespace

std::vector<Form> bulk_forms() { return {{"cp", decode_cp, Family::bulk}}; }

}  // namespace gg::emu
