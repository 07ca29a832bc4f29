// SPDX-License-Identifier: MIT
//
// The trials of a launch with an epilogue: beside those of a product, whole sums with any alpha,
// prob and bias, where every rounding of the epilogue shows, and what may change no bit.

#include "common/harness/verify/epilogue_judge.h"

#include <cstring>

#include "common/harness/verify/epilogue_check.h"
#include "common/harness/verify/epilogue_diagnose.h"

namespace gg {
namespace {

const std::vector<Trial> kTrials = {
    {.name = "whole numbers", .data = Data::whole_numbers, .exact = true, .telling = true},
    {.name = "whole sums",
     .data = Data::whole_sums,
     .on = Played::small,
     .exact = true,
     .telling = true,
     .brief = true},
    {.name = "random data", .data = Data::random, .reported = true, .kept = true, .brief = true},
    {.name = "random data again, over another fill",
     .on = Played::small,
     .over = kUnlikeNan,
     .same_bits = true},
    {.name = "random data with ", .on = Played::small, .variants = true},
    {.name = "over the previous output",
     .data = Data::other_whole_numbers,
     .over = std::nullopt,
     .exact = true,
     .other_offsets = true},
    {.name = kNeighbours, .data = Data::whole_numbers, .on = Played::small, .exact = true, .nan_groups = 0},
    {.name = kNeighbours, .data = Data::whole_numbers, .exact = true, .nan_groups = 1},
};
const std::vector<Trial> kTrialsFromFiles = {
    {.name = "operands from files", .data = Data::from_files, .reported = true, .kept = true},
    {.name = "operands from files, over another fill", .over = kUnlikeNan, .same_bits = true},
    {.name = "operands from files", .on = Played::small, .reported = true, .if_small = true},
};

long long number(int64_t value) { return static_cast<long long>(value); }

class EpilogueJudge : public Judge {
 public:
  using Judge::Judge;

  const std::vector<Trial>& trials() const override { return kTrials; }
  const std::vector<Trial>& trials_from_files() const override { return kTrialsFromFiles; }
  const Words& words() const override {
    static const Words all = {": it was never written",
                              ": it still holds what the buffer held before the launch",
                              ": NaN only while the neighbouring groups hold NaN: their operands are read",
                              ": NaN only while elements that no group owns are NaN: they are read"};
    return all;
  }

  Findings compare(const Question& question) const override {
    return compared(host_copy(machine_, buffers_), question);
  }

  // Moves prob so that scales lie beside the numbers where their codes change.
  std::optional<EpilogueOperands> aimed() const override {
    const HostCopy copy = host_copy(machine_, buffers_);
    EpilogueOperands operands = buffers_.epilogue_operands();
    const Layout& layout = buffers_.layout();
    aim_at_boundaries(buffers_, products_of(copy.matrices(formats()), layout, {layout.groups, {}, 0}),
                      operands, seed_);
    return operands;
  }

  // The harness's own data must decide every rounding where it says so.
  std::string not_telling(const Findings& findings) const override {
    if (findings.exact == findings.products) return "";
    return format("the harness's own data are too large: %lld of %lld sums are not exact",
                  number(findings.products - findings.exact), number(findings.products));
  }
  std::string note(const Findings& findings, const char* data) const override {
    std::string outputs;
    for (const Tensor output : buffers_.outputs())
      outputs += (outputs.empty() ? "" : ", ") + std::string(tensor_name(output));
    return format("%s; %s: %lld of %lld values beside the nearest, within their bound", outputs.c_str(), data,
                  number(findings.loose()), number(findings.checked()));
  }

  std::string where(Tensor output, const OutputTally& tally) const override {
    const Format type = buffers_.of(output).spec.format;
    std::string place = format("group %d row %d column %d", tally.group, tally.row, tally.col);
    if (output == Tensor::amax) place = format("group %d", tally.group);
    if (output == Tensor::dprob) place = format("group %d row %d", tally.group, tally.row);
    if (output == Tensor::dbias) place = format("group %d column %d", tally.group, tally.col);
    return format("%s: %lld of %lld values are wrong; the first: %s, expected %s, got %.9g (0x%0*X)",
                  tensor_name(output), number(tally.failures), number(tally.checked), place.c_str(),
                  tally.expected.c_str(), double(decode(type, tally.got)), format_info(type).bits / 4,
                  tally.got);
  }

  Failure outside(Tensor output, int64_t byte, const Question& question) const override {
    const Layout& layout = buffers_.layout();
    const TensorSpec& spec = buffers_.of(output).spec;
    const int64_t inside = byte - int64_t(spec.start_byte());
    std::string where = format("byte %lld", number(inside));
    if (spec.extents.size() == 2) {
      const int64_t cols = spec.extents[1], element = inside * 8 / format_info(spec.format).bits;
      const int64_t row = element >= 0 ? element / cols : -((-element + cols - 1) / cols);
      where = format("row %lld, column %lld", number(row), number(element - row * cols));
    }
    // A layout may be wrong as a whole.
    const HostCopy copy = host_copy(machine_, buffers_);
    const Findings findings = compared(copy, question);
    const Failure known =
        findings.failures() ? explain_epilogue(buffers_, copy, question.skipped, findings, seed_) : Failure{};
    const bool is_known = known.symptom != Symptom::unknown;
    return {
        is_known ? known.symptom : Symptom::out_of_bounds,
        format("%s: a write outside what the groups own: %s as seen from its start, where the groups have "
               "%lld of %lld rows; the first such place%s%s",
               tensor_name(output), where.c_str(), number(layout.offsets.back()), number(layout.rows),
               is_known ? "; " : "", is_known ? known.sentence.c_str() : "")};
  }

  std::string differing(Tensor output, int64_t byte, const char* what) const override {
    return format("%s, first in %s at byte %lld: looks like a race, or an order that decides", what,
                  tensor_name(output), number(byte - int64_t(buffers_.of(output).spec.start_byte())));
  }

  Failure explain(const HostCopy& copy, const Findings& findings, const Question& question) const override {
    Tensor output{};
    const OutputTally* tally = findings.first_failure(output);
    const Failure known = explain_epilogue(buffers_, copy, question.skipped, findings, seed_);
    const bool is_unknown_nan =
        known.symptom == Symptom::unknown && is_nan(buffers_.of(output).spec.format, tally->got);
    return {is_unknown_nan ? Symptom::nan : known.symptom, where(output, *tally) + "; " + known.sentence};
  }

  Failure why_wrong() const override {
    const HostCopy copy = host_copy(machine_, buffers_);
    const Findings findings = compared(copy, {});
    Tensor output{};
    const OutputTally* tally = findings.first_failure(output);
    if (!tally) return {Symptom::unknown, "but no value fails when it is judged again"};
    const TensorSpec& spec = buffers_.of(output).spec;
    const std::string where =
        format("%s: %lld of %lld values are wrong; the first: group %d row %d column %d", tensor_name(output),
               number(tally->failures), number(tally->checked), tally->group, tally->row, tally->col);
    if (!spec.start_value && tally->got == all_ones(spec.format))
      return {Symptom::unwritten, where + ": it was never written"};
    const Failure known = explain_epilogue(buffers_, copy, {}, findings, seed_);
    return {known.symptom, where + "; " + known.sentence};
  }

 private:
  const Formats& formats() const { return buffers_.setup().request.formats; }
  Findings compared(const HostCopy& copy, const Question& question) const {
    const Layout& layout = buffers_.layout();
    const std::vector<Band> bands =
        products_of(copy.matrices(formats()), layout, {layout.groups, question.skipped, seed_});
    return compare_outputs(buffers_, bands, question.skipped, copy.outputs);
  }
};

}  // namespace

std::unique_ptr<Judge> epilogue_judge(Machine& machine, const Buffers& buffers, uint64_t seed) {
  return std::make_unique<EpilogueJudge>(machine, buffers, seed);
}

}  // namespace gg
