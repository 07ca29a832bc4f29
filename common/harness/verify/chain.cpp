// SPDX-License-Identifier: MIT
//
// The chain of launches, once with waits between them and once without.

#include "common/harness/verify/chain.h"

#include <algorithm>

#include "common/harness/verify/host_copy.h"
#include "common/harness/verify/trials.h"

namespace gg {

bool has_chain(const Shape& shape) { return !shape.own_sizes; }

bool chains_d(const Setup& setup) {
  return setup.product == Product::forward && setup.request.formats.a == setup.request.formats.d &&
         !has_tensor(Tensor::alpha, setup.request.formats, setup.request.epilogue);
}

std::optional<Failure> check_chain(Machine& machine, const Setup& setup, const Launch& launch,
                                   const Shape& shape, uint64_t seed, bool from_graph) {
  Buffers first(machine, setup, shape), second(machine, setup, shape);
  const Buffers stale(machine, setup, setup.equal_groups ? shape : other_offsets(shape, setup.m_multiple));
  const size_t offset_bytes = size_t(shape.groups() + 1) * (setup.request.wide_offsets ? 8 : 4);
  for (Buffers* each : {&first, &second}) each->fill_operands({Fill::Kind::normal, 0, seed, 0});
  const bool of_d = chains_d(setup);
  std::vector<Problem> links = {first.problem()};
  if (of_d) {
    links.push_back(second.reading(first));
    links.push_back(first.reading(second));
  }
  const auto run = [&](const std::function<void()>& launches) {
    for (const Buffers* each : {&first, &second}) each->poison(0xFF);
    machine.copy(first.offsets(), stale.offsets(), offset_bytes);
    launches();
    std::vector<char> outputs = downloaded(machine, first.d(), first.d_bytes());
    const std::vector<char> more = downloaded(machine, second.d(), second.d_bytes());
    outputs.insert(outputs.end(), more.begin(), more.end());
    return outputs;
  };
  const auto route = [&](cudaStream_t stream) {
    machine.copy_late(first.offsets(), second.offsets(), offset_bytes, stream);
  };
  const std::vector<char> expected = run([&] {
    machine.run(route);
    for (const Problem& link : links) machine.run([&](cudaStream_t stream) { launch(link, stream); });
  });
  const auto all = [&](cudaStream_t stream) {
    route(stream);
    for (const Problem& link : links) launch(link, stream);
  };
  std::function<void()> replay = [&] { machine.run(all); };
  if (from_graph) replay = machine.captured(all);
  const std::vector<char> found = run(replay);
  if (found == expected) return std::nullopt;
  constexpr const char* kEarly =
      "looks like a launch that reads or writes before the one before it has ended";
  const char* how = from_graph ? ", replayed from a graph" : "";
  const auto differs = std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin();
  if (!of_d) {
    return Failure{
        Symptom::overlapping,
        format("%s, a launch whose offsets the one before wrote%s: its output differs from what it is "
               "when it waits for that, first in byte %td of D: %s",
               shape.describe().c_str(), how, differs, kEarly)};
  }
  const bool in_first = size_t(differs) < first.d_bytes();
  const int bytes = format_info(setup.request.formats.d).bits / 8;
  const Place place = place_of(
      first.layout(), int64_t(in_first ? size_t(differs) : size_t(differs) - first.d_bytes()) / bytes);
  return Failure{
      Symptom::overlapping,
      format(
          "%s, three launches, each of which reads what the one before wrote, the first the offsets%s: the "
          "%s one's output differs from what it is when each waits for the one before, first at group %d "
          "row %d column %d: %s",
          shape.describe().c_str(), how, in_first ? "last" : "second", place.group, place.row, place.col,
          kEarly)};
}

}  // namespace gg
