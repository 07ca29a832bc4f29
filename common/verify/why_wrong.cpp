// SPDX-License-Identifier: MIT
//
// Elements that still hold the poison were never written; the others are explained as a check explains them.

#include "common/verify/why_wrong.h"

#include <algorithm>
#include <cstring>

#include "common/verify/epilogue_check.h"
#include "common/verify/epilogue_diagnose.h"
#include "common/verify/output.h"

namespace gg {
namespace {

uint32_t poison_of(Format type) { return uint32_t((uint64_t(1) << format_info(type).bits) - 1); }

// Elements of D that a group owns and that hold the poison; the first of them, -1 if there is none.
struct Unwritten {
  int64_t count = 0, first = -1;
};
Unwritten unwritten_in(const std::vector<char>& d, const Layout& layout, Format type) {
  Unwritten found;
  for (const Region& region : layout.d_regions()) {
    for (int64_t row = 0; row < region.rows; ++row) {
      for (int64_t col = 0; col < region.cols; ++col) {
        const int64_t element = region.offset + row * region.ld + col;
        if (load_code(d.data(), type, element) != poison_of(type)) continue;
        if (found.first < 0) found.first = element;
        ++found.count;
      }
    }
  }
  return found;
}

Failure why_product(Machine& machine, const Buffers& buffers, uint64_t seed) {
  const Setup& setup = buffers.setup();
  const Layout layout = near_layout(setup, buffers.shape());
  const Limit limit = random_limit(setup);
  const Comparison seen = compare_groups(machine, buffers, buffers.layout().groups, limit, seed);
  const std::string count = format("%lld of %lld elements are wrong; ", static_cast<long long>(seen.failures),
                                   static_cast<long long>(seen.checked));
  const std::vector<char> d = downloaded(machine, buffers.d(), buffers.d_bytes());
  if (const Unwritten none = unwritten_in(d, layout, setup.formats.d); none.count > 0) {
    const Place place = place_of(layout, none.first);
    return {Symptom::unwritten,
            count + format("%lld were never written, the first of them in group %d row %d column %d",
                           static_cast<long long>(none.count), place.group, place.row, place.col)};
  }
  const HostCopy copy{downloaded(machine, buffers.a(), buffers.a_bytes()),
                      downloaded_b(machine, buffers),
                      d,
                      downloaded(machine, buffers.sfa(), buffers.sfa_bytes()),
                      downloaded(machine, buffers.sfb(), buffers.sfb_bytes()),
                      std::vector<char>(d.size(), char(0xFF))};
  const std::vector<int64_t> failing =
      failing_elements(copy.matrices(setup.formats), layout.groups, limit, seen.first);
  const Failure values = explain_values(copy, setup, layout, limit, failing);
  return {values.symptom, count + values.sentence};
}

Failure why_epilogue(Machine& machine, const Buffers& buffers, uint64_t seed) {
  const Formats& formats = buffers.setup().formats;
  const HostCopy copy{downloaded(machine, buffers.a(), buffers.a_bytes()),
                      downloaded(machine, buffers.b(), buffers.b_bytes()),
                      {},
                      downloaded(machine, buffers.sfa(), buffers.sfa_bytes()),
                      downloaded(machine, buffers.sfb(), buffers.sfb_bytes()),
                      {}};
  const OutputImages images = download_outputs(machine, buffers);
  const std::vector<Band> bands =
      products_of(copy.matrices(formats), buffers.layout(), {buffers.layout().groups, {}, seed});
  const EpilogueComparison seen = compare_outputs(buffers, bands, {}, images);
  Output output{};
  const OutputTally* tally = seen.first_failure(output);
  if (!tally) return {Symptom::unknown, "but no value fails when it is judged again"};
  const Format type = format_of_output(formats, output);
  uint32_t got = 0;
  std::memcpy(&got, &images[size_t(output)].bytes[tally->byte], bytes_of(type, 1));
  const std::string where =
      format("%s: %lld of %lld values are wrong; the first: group %d row %d column %d", output_name(output),
             static_cast<long long>(tally->failures), static_cast<long long>(tally->checked), tally->group,
             tally->row, tally->col);
  if (output != Output::amax && got == poison_of(type))
    return {Symptom::unwritten, where + ": it was never written"};
  const Failure known = explain_epilogue(buffers, copy, images, {}, seen, seed);
  return {known.symptom, where + "; " + known.sentence};
}

}  // namespace

Failure why_wrong_on_random_data(Machine& machine, const Buffers& buffers, uint64_t seed) {
  return buffers.setup().epilogue.has_operands() ? why_epilogue(machine, buffers, seed)
                                                 : why_product(machine, buffers, seed);
}

}  // namespace gg
