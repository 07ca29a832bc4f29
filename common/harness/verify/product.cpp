// SPDX-License-Identifier: MIT
//
// The reference that judges D, the bound for random data, and what is said where D is wrong.

#include "common/harness/verify/product.h"

#include <algorithm>
#include <set>

#include "common/harness/machine/overflow.h"
#include "common/harness/verify/diagnose.h"

namespace gg {
namespace {

// Problems up to this many are judged on the CPU alone, those of `smoke` and `edges` among them.
constexpr int64_t kCpuProducts = int64_t(1) << 23;
// From a larger group only a failure's rows are explained.
constexpr int64_t kExplainedProducts = int64_t(1) << 28;

int64_t products(const std::vector<Group>& groups) {
  int64_t sum = 0;
  for (const Group& group : groups) sum += int64_t(group.m) * group.n * group.k;
  return sum;
}

const uint8_t* as_codes(const std::vector<char>& bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

// Two rows of a strip of columns of each of three groups of a large problem on the CPU, so that the
// GPU reference is never the only witness.
Comparison sample_on_cpu(Machine& machine, const Buffers& buffers, const std::vector<Group>& groups,
                         const Limit& limit, uint64_t seed) {
  constexpr int kSampledGroups = 3, kRowsEach = 2, kColumns = 512;
  const Formats& formats = buffers.setup().request.formats;
  const std::unique_ptr<Machine> host = host_machine();
  // A region of a tensor, without what lies between its rows.
  const auto fetched = [&](const void* tensor, Format format, const Region& region) {
    const size_t row_bytes = bytes_of(format, region.cols);
    std::vector<char> codes(size_t(region.rows) * row_bytes);
    machine.download_rows(codes.data(), static_cast<const char*>(tensor) + bytes_of(format, region.offset),
                          row_bytes, bytes_of(format, region.ld), region.rows);
    return codes;
  };
  const std::vector<char> all_sfa = downloaded(machine, buffers.sfa(), buffers.sfa_bytes()),
                          sfb = downloaded(machine, buffers.sfb(), buffers.sfb_bytes());
  Comparison all;
  std::set<int64_t> strips_seen;  // by their first element: none counts twice
  for (uint64_t i = 0; i < kSampledGroups; ++i) {
    const Group& group = groups[hash(seed, 5, i) % groups.size()];
    if (group.m == 0 || group.n == 0) continue;
    const int strips = (group.n + kColumns - 1) / kColumns;
    const int col0 = int(hash(seed, 7, i) % uint64_t(strips)) * kColumns;
    const int cols = std::min(kColumns, group.n - col0), row_count = std::min(kRowsEach, group.m);
    if (!strips_seen.insert(group.d.offset + col0).second) continue;
    const bool nk = group.b_layout == BLayout::nk;
    Group sample = group;
    sample.m = 1;
    sample.n = cols;
    sample.a = {0, 1, group.k, group.k};
    sample.a_transposed = false;
    sample.b = nk ? Region{0, cols, group.k, group.k} : Region{0, group.k, cols, cols};
    sample.d = {0, 1, cols, cols};
    sample.sfa = {0, {1, group.sfa.layout.blocks}, 0};
    sample.sfb.first_row += col0;
    const std::vector<char> b =
        fetched(buffers.b(), formats.b,
                {group.b.offset + col0 * group.b_n_step(), sample.b.rows, sample.b.cols, group.b.ld});
    int64_t last = -1;
    for (uint64_t r = 0; r < uint64_t(row_count); ++r) {
      int64_t row = int64_t(hash(seed, 6, i * kRowsEach + r) % uint64_t(group.m));
      if (row == last) row = (last + 1) % group.m;
      last = row;
      const int64_t in_a = group.a.offset + row * group.a_m_step(),
                    in_d = group.d.offset + row * group.d.ld + col0;
      const std::vector<char> a = fetched(
          buffers.a(), formats.a,
          group.a_transposed ? Region{in_a, group.k, 1, group.a.ld} : Region{in_a, 1, group.k, group.k});
      const std::vector<char> d = fetched(buffers.d(), formats.d, {in_d, 1, cols, cols});
      std::vector<char> sfa(size_t(sample.sfa.layout.bytes()));
      for (int64_t block = 0; block < sample.sfa.layout.blocks; ++block)
        sfa[size_t(sample.sfa.at(0, block))] = all_sfa[size_t(group.sfa.at(row, block))];
      Matrices matrices{a.data(), b.data(), d.data(), formats, as_codes(sfa), as_codes(sfb)};
      matrices.accumulates = buffers.setup().request.accumulate;
      matrices.d_first = in_d;
      Comparison part = host->compare(matrices, {sample}, limit);
      if (part.first >= 0) part.first += in_d;
      all.merge(part);
    }
  }
  return all;
}

std::vector<Group> near_groups(std::vector<Group> groups, const Layout& layout) {
  for (Group& group : groups) {
    if (has_far_b(layout))
      group.b.offset = group.b.offset / layout.b_group_stride * (int64_t(group.n) * group.k);
  }
  return groups;
}

// Elements of D that the CPU's reference rejects: up to 64 per group, spread over its rows. Large
// groups show a few rows, from that of element `first` on.
std::vector<int64_t> failing_elements(const Matrices& matrices, const std::vector<Group>& groups,
                                      const Limit& limit, int64_t first) {
  constexpr int kMost = 64;
  std::vector<int64_t> failing;
  for (const Group& group : groups) {
    if (group.m == 0) continue;
    int first_row = 0, rows = group.m;
    if (int64_t(group.m) * group.n * group.k > kExplainedProducts) {
      const int64_t inside = first - group.d.offset;
      first_row = inside >= 0 && inside < group.m * group.d.ld ? int(inside / group.d.ld) : 0;
      rows = std::min(8, group.m - first_row);
    }
    std::vector<double> reference(size_t(rows) * size_t(group.n)), magnitude(reference.size());
    reference_rows(matrices, group, first_row, first_row + rows, reference.data(), magnitude.data());
    std::vector<int64_t> here;
    for (size_t i = 0; i < reference.size(); ++i) {
      const int row = first_row + int(i / size_t(group.n)), col = int(i % size_t(group.n));
      if (!judge_at(matrices, group, row, col, reference[i], magnitude[i], limit).ok)
        here.push_back(group.d.offset + row * group.d.ld + col);
    }
    const size_t stride = here.size() / kMost + 1;
    for (size_t i = 0; i * stride < here.size(); ++i)
      failing.push_back(here[sample_at(i, stride, here.size())]);
  }
  return failing;
}

}  // namespace

Comparison compare_groups(Machine& machine, const Buffers& buffers, const std::vector<Group>& groups,
                          const Limit& limit, uint64_t seed) {
  if (products(groups) <= kCpuProducts) {
    const HostCopy copy = host_copy(machine, buffers);
    return host_machine()->compare(copy.matrices(buffers.setup().request.formats),
                                   near_groups(groups, buffers.layout()), limit);
  }
  Comparison all = machine.compare(buffers.matrices(), groups, limit);
  const Comparison sampled = sample_on_cpu(machine, buffers, groups, limit, seed);
  // The sample is part of what the other judged.
  all.failures = std::max(all.failures, sampled.failures);
  if (sampled.first >= 0 && (all.first < 0 || sampled.first < all.first)) all.first = sampled.first;
  return all;
}

// The error that sum_factor has to cover, measured on an H200 (driver 580, CUDA 13.0, 2026-11-21)
// as worst_factor over all 67 M outputs of a set with K=7168: chains of fp32 FMA 2^-21.0 (01 and
// 02, f32, `skewed`), mma.sync in steps of 16 2^-20.2 (05b, bf16, the worst of `prefill`, `skewed`
// and `huge`; a 16-bit output shows only what turns its rounding), tf32 in steps of 8 2^-19.1 (05b,
// bf16 with f16, f32 output, `prefill`). Each step of a tensor core cuts the running sum toward
// zero, so the error is a drift: half an ulp of the sum times K / step. With sums up to 5.5 sqrt(K)
// and sum |a*b| = 0.64 K that is 0.18 sqrt(K) 2^-23 for steps of 16, which is 2^-19.1 at K=7168,
// and twice that for steps of 8: operands of two types, which go through tf32.
Limit random_limit(const Setup& setup) {
  const double steps_of_8 = setup.request.formats.a == setup.request.formats.b ? 1 : 2;
  return {setup.request.formats.d, false, steps_of_8 * format_info(setup.request.formats.d).sum_factor,
          false};
}

namespace {

const std::vector<Trial> kTrials = {
    {.name = "whole numbers", .data = Data::whole_numbers, .exact = true, .telling = true, .brief = true},
    {.name = "random data",
     .data = Data::random,
     .on = Played::small,
     .reported = true,
     .kept = true,
     .brief = true},
    {.name = "random data again, over another fill",
     .on = Played::small,
     .over = kUnlikeNan,
     .same_bits = true},
    {.name = "over the previous output",
     .data = Data::other_whole_numbers,
     .over = std::nullopt,
     .exact = true,
     .other_offsets = true},
    {.name = kNeighbours,
     .data = Data::other_whole_numbers,
     .on = Played::small,
     .exact = true,
     .nan_groups = 0},
    {.name = kNeighbours, .data = Data::other_whole_numbers, .exact = true, .nan_groups = 1},
};
const std::vector<Trial> kTrialsFromFiles = {
    {.name = "operands from files", .data = Data::from_files, .reported = true, .kept = true},
    {.name = "operands from files", .over = kUnlikeNan, .same_bits = true},
    {.name = "operands from files", .on = Played::small, .reported = true, .if_small = true},
};

long long number(int64_t value) { return static_cast<long long>(value); }

class ProductJudge : public Judge {
 public:
  using Judge::Judge;

  const std::vector<Trial>& trials() const override { return kTrials; }
  const std::vector<Trial>& trials_from_files() const override { return kTrialsFromFiles; }
  const Words& words() const override {
    static const Words all = {"was never written", "still holds what the buffer held before the launch",
                              "is NaN only while the neighbouring groups hold NaN: their operands are read",
                              "is NaN only while elements that no group owns are NaN: rows of A past the "
                              "last offset, or B past its "
                              "end, are read"};
    static const Words of_gradient = {all.never_written, all.still_holds, all.reads_neighbours,
                                      "is NaN only while elements that no group owns are NaN: rows of A or B "
                                      "past the last offset are read"};
    return buffers_.layout().product == Product::weight_gradient ? of_gradient : all;
  }

  Findings compare(const Question& question) const override {
    const std::vector<Group> groups = judged(buffers_.layout(), question);
    const Limit limit = limit_of(question);
    const Comparison seen = question.by_machine_alone
                                ? machine_.compare(buffers_.matrices(), groups, limit)
                                : compare_groups(machine_, buffers_, groups, limit, seed_);
    Findings findings;
    OutputTally& d = findings.of[size_t(Tensor::d)];
    d.checked = seen.checked;
    d.failures = seen.failures;
    findings.worst_ratio = seen.worst_ratio;
    findings.worst_factor = seen.worst_factor;
    findings.beyond_exact = seen.beyond_exact;
    findings.beyond_2048 = seen.beyond_2048;
    if (seen.failures == 0) return findings;
    const Place place = place_of(buffers_.layout(), seen.first);
    d.group = place.group;
    d.row = place.row;
    d.col = place.col;
    d.byte = bytes_of(format(), seen.first);
    machine_.download(&d.got, static_cast<const char*>(buffers_.d()) + d.byte, bytes_of(format(), 1));
    return findings;
  }

  // Sums that stay small would not tell rounding from truncation, nor fp32 from half.
  std::string not_telling(const Findings& findings) const override {
    constexpr int kEnoughOutputs = 4096;
    const int64_t checked = findings.of[size_t(Tensor::d)].checked;
    if (buffers_.layout().longest_sum() < 128 || checked < kEnoughOutputs) return "";
    const bool narrow = format_info(format()).bits == 16;
    if (findings.beyond_2048 > 0 && (findings.beyond_exact > 0 || !narrow)) return "";
    return gg::format(
        "the harness's own data are too tame: of %lld sums %lld exceed 2048 and %lld exceed what %s counts "
        "exactly",
        number(checked), number(findings.beyond_2048), number(findings.beyond_exact),
        format_info(format()).name);
  }
  std::string note(const Findings&, const char*) const override { return ""; }

  std::string where(Tensor, const OutputTally& tally) const override {
    return count(tally) +
           gg::format("the first: group %d row %d column %d, ", tally.group, tally.row, tally.col);
  }

  // Names the place by the nearest group that owns something before it.
  Failure outside(Tensor, int64_t byte, const Question&) const override {
    const int64_t element = byte * 8 / format_info(format()).bits;
    const Group* nearest = nullptr;
    int index = 0;
    const std::vector<Group>& groups = buffers_.layout().groups;
    for (size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].m > 0 && (!nearest || groups[g].d.offset <= element)) {
        nearest = &groups[g];
        index = int(g);
      }
    }
    if (!nearest) return {Symptom::out_of_bounds, "an element of D was written though every group is empty"};
    const int64_t distance = element - nearest->d.offset;
    const int64_t row =
        distance >= 0 ? distance / nearest->d.ld : -((-distance + nearest->d.ld - 1) / nearest->d.ld);
    return {Symptom::out_of_bounds,
            gg::format("a write outside every group's output: row %lld, column %lld as seen from group %d, "
                       "which has %d rows and %d columns; the first such element",
                       number(row), number(distance - row * nearest->d.ld), index, nearest->m, nearest->n)};
  }

  std::string differing(Tensor, int64_t byte, const char* what) const override {
    const Place place = place_of(buffers_.layout(), byte * 8 / format_info(format()).bits);
    return gg::format(
        "%s, first at group %d row %d column %d: looks like a race or a sum whose order changes", what,
        place.group, place.row, place.col);
  }

  Failure explain(const HostCopy& copy, const Findings& findings, const Question& question) const override {
    const OutputTally& tally = findings.of[size_t(Tensor::d)];
    const bool gradient = buffers_.layout().product == Product::weight_gradient;
    const Failure nan = {Symptom::nan, where(Tensor::d, tally) + "is NaN"};
    if (is_nan(format(), tally.got) && !gradient) return nan;
    Failure values = explained(copy, tally, question);
    // A sum that runs past its group may end among numbers, or in rows that nobody owns.
    if (is_nan(format(), tally.got) && values.symptom == Symptom::unknown) return nan;
    return {values.symptom, count(tally) + values.sentence};
  }

  // Elements that still hold the poison were never written.
  Failure why_wrong() const override {
    HostCopy copy = host_copy(machine_, buffers_);
    copy.before[size_t(Tensor::d)].bytes.assign(copy.d().size(), char(0xFF));
    const Findings findings = compare({});
    const OutputTally& tally = findings.of[size_t(Tensor::d)];
    int64_t unwritten = 0, first = -1;
    for (const Region& region : buffers_.of(Tensor::d).spec.owned) {
      for (int64_t i = 0; i < int64_t(region.rows) * region.cols; ++i) {
        const int64_t element = region.offset + i / region.cols * region.ld + i % region.cols;
        if (load_code(copy.d().data(), format(), element) != all_ones(format())) continue;
        if (first < 0) first = element;
        ++unwritten;
      }
    }
    if (unwritten > 0) {
      const Place place = place_of(buffers_.layout(), first);
      return {
          Symptom::unwritten,
          count(tally) + gg::format("%lld were never written, the first of them in group %d row %d column %d",
                                    number(unwritten), place.group, place.row, place.col)};
    }
    Failure values = explained(copy, tally, {});
    return {values.symptom, count(tally) + values.sentence};
  }

 private:
  Format format() const { return buffers_.setup().request.formats.d; }
  Limit limit_of(const Question& question) const {
    Limit limit = random_limit(buffers_.setup());
    if (question.exact) limit = {format(), true, 0, false};
    limit.nan_allowed = question.nan_allowed;
    return limit;
  }
  static std::vector<Group> judged(const Layout& layout, const Question& question) {
    std::vector<Group> groups;
    for (size_t g = 0; g < layout.groups.size(); ++g) {
      if (question.skipped.empty() || !question.skipped[g]) groups.push_back(layout.groups[g]);
    }
    return groups;
  }
  static std::string count(const OutputTally& tally) {
    return gg::format("%lld of %lld elements are wrong; ", number(tally.failures), number(tally.checked));
  }
  Failure explained(const HostCopy& copy, const OutputTally& tally, const Question& question) const {
    const Setup& setup = buffers_.setup();
    const Layout near = near_layout(setup, buffers_.shape());
    const Limit limit = limit_of(question);
    const int64_t first = int64_t(tally.byte) * 8 / format_info(format()).bits;
    return explain_values(
        copy, setup, near, limit,
        failing_elements(copy.matrices(setup.request.formats), judged(near, question), limit, first));
  }
};

}  // namespace

std::unique_ptr<Judge> product_judge(Machine& machine, const Buffers& buffers, uint64_t seed) {
  return std::make_unique<ProductJudge>(machine, buffers, seed);
}

}  // namespace gg
