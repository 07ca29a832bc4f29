// SPDX-License-Identifier: MIT
//
// Checks of whole problems and of forms, with their lines.

#include "common/harness/run/checks.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "common/harness/machine/emulator.h"
#include "common/harness/problem/shapes.h"
#include "common/harness/run/report.h"
#include "common/harness/verify/chain.h"
#include "common/harness/verify/trials.h"

namespace gg {
namespace {

// The problem that launches behind each other make. Where their outputs can be the next one's A it
// has as many rows in each group, and a K that N may have.
std::optional<Shape> chained(const Session& session, const Shape& shape) {
  constexpr int kMostK = 256;
  const Chapter& chapter = session.chapter;
  if (!is_small(shape.set) || !has_chain(shape) || shape.m_total() > kMostK * kMostK) return std::nullopt;
  if (!chains_d(session.setup)) return shape;
  const Multiples multiples = multiples_of(chapter, steps_of(chapter, session.setup.request));
  const int step = std::lcm(multiples.n, multiples.k);
  const int k = (std::min(shape.k_of(0), kMostK) + step - 1) / step * step;
  Shape square = shape;
  square.n = square.k = {k};
  return square;
}

// "prefill, problem 1 of 3": as somebody who waits sees it.
std::string place_of(const std::vector<Shape>& shapes, size_t i) {
  return shapes[i].set +
         format("%sproblem %zu of %zu", shapes[i].set.empty() ? "" : ", ", i + 1, shapes.size());
}

CheckResult result_of_check(Session& session, const Shape& shape, const GivenOperands* given) {
  const CheckOptions options{.seed = session.options.seed,
                             .graph_replay = !session.chapter.reads_offsets_on_host,
                             .neighbours = is_edges(shape.set)};
  Machine& machine = *session.machine;
  CheckResult result = given ? check_given(machine, session.setup, session.launch, *given)
                             : check_problem(machine, session.setup, session.launch, shape, options);
  if (const auto links = chained(session, shape); links && !given && !result.failure) {
    result.failure =
        check_chain(machine, session.setup, session.launch, *links, options.seed, options.graph_replay);
  }
  return result;
}

void add(const CheckResult& result, Tally& tally) {
  ++tally.checked;
  tally.failed += result.failure.has_value();
  tally.worst_ratio = std::max(tally.worst_ratio, result.worst_ratio);
  tally.worst_factor = std::max(tally.worst_factor, result.worst_factor);
}

}  // namespace

void check_shape(Session& session, const std::vector<Shape>& shapes, size_t i, const GivenOperands* given) {
  CheckResult result;
  {
    const Doing now(*session.machine, place_of(shapes, i));
    session.machine->play_at_most(is_small(shapes[i].set) || given ? 0 : kSomeMultiprocessors);
    result = result_of_check(session, shapes[i], given);
    session.machine->play_at_most(0);
  }
  add(result, session.tally);
  print_check(shapes[i], result);
}

void check_form(Session& session, const Form& form) {
  CheckResult all;
  session.machine->play_at_most(kSomeMultiprocessors);
  for (const Shape& shape : form.shapes) {
    const Doing now(*session.machine, form.words);
    const CheckResult result = check_problem(*session.machine, form.setup, session.launch, shape,
                                             {.seed = session.options.seed, .brief = true});
    all.worst_ratio = std::max(all.worst_ratio, result.worst_ratio);
    all.worst_factor = std::max(all.worst_factor, result.worst_factor);
    all.note = result.note;
    all.failure = result.failure;
    if (all.failure) break;
  }
  session.machine->play_at_most(0);
  add(all, session.tally);
  ++session.tally.forms;
  session.tally.failed_forms += all.failure.has_value();
  print_form(form.words, all);
}

}  // namespace gg
