// SPDX-License-Identifier: MIT
//
// Counting, problem by problem, and the sums of each set.

#include "common/harness/run/counted_sets.h"

#include "common/harness/run/report.h"

namespace gg {

// One launch on random data, which alone is counted; returns false if the output is wrong.
static bool right_when_counted(Session& session, Buffers& buffers) {
  const Doing now(*session.machine, "counting " + buffers.shape().set);
  buffers.fill_operands({Fill::Kind::normal, 0, session.bench_seed(), 0});
  emulator()->reset_counts();
  return correct(session, buffers, [&](cudaStream_t stream) { session.launch(buffers.problem(), stream); });
}

// Adds the emulator's counts of a launch on random data to `total`; false if the output is wrong.
static bool count(Session& session, const Shape& shape, Counters& total) {
  Buffers buffers(*session.machine, session.setup, shape);
  ++session.tally.checked;
  if (!right_when_counted(session, buffers)) {
    ++session.tally.failed;
    print_failed("count", shape, "counted", why_wrong(session, buffers));
    return false;
  }
  Counters counters = emulator_counters();
  counters.emplace_back("useful_multiply_adds", uint64_t(shape.flops() / 2));
  if (total.empty()) total.resize(counters.size());
  for (size_t i = 0; i < counters.size(); ++i) {
    total[i] = {counters[i].first, total[i].second + counters[i].second};
  }
  print_counts(counters, shape);
  return true;
}

void count_sets(Session& session, const std::vector<Shape>& shapes) {
  for (size_t i = 0; i < shapes.size();) {
    const std::string& set = shapes[i].set;
    Counters total;
    bool ok = true;
    for (; i < shapes.size() && shapes[i].set == set; ++i) ok = count(session, shapes[i], total) && ok;
    if (ok && !session.options.counts_csv.empty())
      append_csv(session.options.counts_csv, kCountColumns, count_rows(session, set, total));
  }
}

}  // namespace gg
