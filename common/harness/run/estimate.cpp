// SPDX-License-Identifier: MIT
//
// The rate of a corner, and the multiply-adds of a plan.

#include "common/harness/run/estimate.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <thread>

#include "common/harness/machine/emulator.h"
#include "common/harness/problem/limits.h"
#include "common/harness/run/report.h"
#include "common/harness/verify/right_outputs.h"

namespace gg {
namespace {

// A corner of the largest group of a problem, as a problem of its own: `size` times 256 rows, 256
// columns and a depth of 512 at most.
Shape corner_of(const Shape& shape, const Multiples& multiples, int size) {
  const auto products = [&](int g) { return double(shape.m[size_t(g)]) * shape.n_of(g) * shape.k_of(g); };
  const auto cut = [](int extent, int most, int step) {
    return extent <= most ? extent : std::max(step, most / step * step);
  };
  int largest = 0;
  for (int g = 1; g < shape.groups(); ++g) largest = products(g) > products(largest) ? g : largest;
  Shape corner;
  corner.m = {cut(shape.m[size_t(largest)], 256 * size, multiples.m)};
  corner.n = {cut(shape.n_of(largest), 256 * size, multiples.n)};
  corner.k = {cut(shape.k_of(largest), 512 * size, multiples.k)};
  corner.shared_b = shape.shared_b;
  corner.own_sizes = shape.own_sizes;
  return corner;
}

// Seconds of all cores together for one launch on random data, and for comparing its outputs where
// that takes longer the larger a problem is. Nothing of the launch is left in the counts.
double emulated_seconds(Session& session, const Shape& shape) {
  Buffers buffers(*session.machine, session.setup, shape);
  buffers.fill_operands({Fill::Kind::normal, 0, session.bench_seed(), 0});
  buffers.poison(0xFF);
  const auto launch = [&](cudaStream_t stream) { session.launch(buffers.problem(), stream); };
  const std::clock_t start = std::clock();  // of all threads
  if (compares_all(session.setup)) correct(session, buffers, launch);
  else session.machine->run(launch);
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  emulator()->reset_counts();
  return seconds;
}

// Useful multiply-adds of this chapter in a second of one core; 0 where it takes no corner of the
// largest problem. Corners get larger until one takes long enough that what a launch costs by
// itself no longer counts: this takes some seconds at most.
double measured_rate(Session& session, const Plan& plan) {
  constexpr int kLargest = 8;
  constexpr double kEnough = 0.5;  // seconds; a corner of twice the size takes eight times as long
  const Setup& setup = session.setup;
  const Steps steps = steps_of(session.chapter, setup.request);
  const Multiples multiples = multiples_of(session.chapter, steps);
  const auto less = [](const Shape& x, const Shape& y) { return x.flops() < y.flops(); };
  const Shape& largest = *std::max_element(plan.first().begin(), plan.first().end(), less);
  double rate = 0;
  try {
    for (int size = 1; size <= kLargest; size *= 2) {
      const Shape corner = corner_of(largest, multiples, size);
      refuse_unsupported(corner, session.chapter, steps);
      const double seconds = emulated_seconds(session, corner);
      if (seconds > 0) rate = corner.flops() / 2 / seconds;
      if (seconds > kEnough) break;
    }
  } catch (const Error&) {
    return 0;
  }
  return rate;
}

}  // namespace

void say_if_long(Session& session, const Plan& plan) {
  double multiply_adds = 0;
  const auto add = [&](const std::vector<Shape>& shapes, int launches) {
    for (const Shape& shape : shapes) {
      if (bytes_of_launch(shape, session.setup) <
          double(session.machine->free_bytes()))
        multiply_adds += launches * shape.flops() / 2;
    }
  };
  add(plan.to_check, launches_of_check(session.setup));
  add(plan.to_time, 1);
  const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  if (!may_take_long(multiply_adds, cores)) return;
  const double rate = launches_are_listed() ? 0 : measured_rate(session, plan);
  const std::vector<std::string> short_sets = default_count_sets(session.chapter);
  const std::string sentence =
      long_emulation(multiply_adds, cores, rate, short_sets.empty() ? "smoke" : short_sets[0]);
  if (!sentence.empty()) std::fprintf(stderr, "%s: %s\n", session.chapter.id, sentence.c_str());
}

}  // namespace gg
