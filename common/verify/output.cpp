// SPDX-License-Identifier: MIT
//
// Which reference judges an output, and the bound for random data.

#include "common/verify/output.h"

#include <algorithm>
#include <memory>
#include <set>

#include "common/verify/diagnose.h"
#include "common/verify/epilogue_check.h"

namespace gg {
namespace {

// Problems up to this many are judged on the CPU alone, those of `smoke` and `edges` among them.
constexpr int64_t kCpuProducts = int64_t(1) << 23;
constexpr int64_t kExplainedProducts = int64_t(1) << 28;  // of a larger group a failure's rows alone

int64_t products(const std::vector<Group>& groups) {
  int64_t sum = 0;
  for (const Group& group : groups) sum += int64_t(group.m) * group.n * group.k;
  return sum;
}

const uint8_t* as_bytes(const std::vector<char>& codes) {
  return reinterpret_cast<const uint8_t*>(codes.data());
}

// Two rows of a strip of columns of each of three groups of a large problem on the CPU, so that the GPU
// reference is never the only witness.
Comparison sample_on_cpu(Machine& machine, const Buffers& buffers, const std::vector<Group>& groups,
                         const Limit& limit, uint64_t seed) {
  constexpr int kSampledGroups = 3, kRowsEach = 2, kColumns = 512;
  const Formats& formats = buffers.setup().formats;
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
    sample.m = row_count;
    sample.n = cols;
    sample.a = {0, row_count, group.k, group.k};
    sample.b = nk ? Region{0, cols, group.k, group.k} : Region{0, group.k, cols, cols};
    sample.d = {0, row_count, cols, cols};
    sample.sfa = {0, {kRowsEach, group.sfa.layout.blocks}, 0};
    sample.sfb.first_row += col0;
    std::vector<char> a, d, sfa(size_t(sample.sfa.layout.bytes()));
    const std::vector<char> b =
        fetched(buffers.b(), formats.b,
                {group.b.offset + col0 * group.b_n_step(), sample.b.rows, sample.b.cols, group.b.ld});
    int64_t rows[kRowsEach];
    for (uint64_t r = 0; r < uint64_t(row_count); ++r) {
      rows[r] = int64_t(hash(seed, 6, i * kRowsEach + r) % uint64_t(group.m));
      if (r > 0 && rows[r] == rows[0]) rows[r] = (rows[0] + 1) % group.m;
      const auto append_row = [&](std::vector<char>& to, const void* tensor, Format format, const Region& of,
                                  int first, int count) {
        const std::vector<char> row =
            fetched(tensor, format, {of.offset + rows[r] * of.ld + first, 1, count, count});
        to.insert(to.end(), row.begin(), row.end());
      };
      append_row(a, buffers.a(), formats.a, group.a, 0, group.k);
      append_row(d, buffers.d(), formats.d, group.d, col0, cols);
      for (int64_t block = 0; block < sample.sfa.layout.blocks; ++block) {
        sfa[size_t(sample.sfa.at(int64_t(r), block))] = all_sfa[size_t(group.sfa.at(rows[r], block))];
      }
    }
    Comparison part =
        host->compare({a.data(), b.data(), d.data(), formats, as_bytes(sfa), as_bytes(sfb)}, {sample}, limit);
    if (part.first >= 0) {
      part.first = group.d.offset + rows[part.first / cols] * group.d.ld + col0 + part.first % cols;
    }
    all.merge(part);
  }
  return all;
}

}  // namespace

std::vector<char> downloaded(Machine& machine, const void* memory, size_t bytes) {
  std::vector<char> copy(bytes);
  if (bytes) machine.download(copy.data(), memory, bytes);
  return copy;
}

std::vector<char> downloaded_b(Machine& machine, const Buffers& buffers) {
  if (!has_far_b(buffers.layout())) return downloaded(machine, buffers.b(), buffers.b_bytes());
  const Layout near = near_layout(buffers.setup(), buffers.shape());
  const Format type = buffers.setup().formats.b;
  std::vector<char> b(bytes_of(type, near.b_elems), char(0xFF));
  for (size_t g = 0; g < near.groups.size(); ++g) {
    const Region &to = near.groups[g].b, &from = buffers.layout().groups[g].b;
    machine.download(b.data() + bytes_of(type, to.offset),
                     static_cast<const char*>(buffers.b()) + bytes_of(type, from.offset),
                     bytes_of(type, to.rows * to.ld));
  }
  return b;
}

static std::vector<Group> near_groups(std::vector<Group> groups, const Layout& layout) {
  for (Group& group : groups) {
    if (has_far_b(layout))
      group.b.offset = group.b.offset / layout.b_group_stride * (int64_t(group.n) * group.k);
  }
  return groups;
}

Comparison compare_groups(Machine& machine, const Buffers& buffers, const std::vector<Group>& groups,
                          const Limit& limit, uint64_t seed) {
  if (products(groups) <= kCpuProducts) {
    const std::vector<char> a = downloaded(machine, buffers.a(), buffers.a_bytes()),
                            b = downloaded_b(machine, buffers),
                            d = downloaded(machine, buffers.d(), buffers.d_bytes()),
                            sfa = downloaded(machine, buffers.sfa(), buffers.sfa_bytes()),
                            sfb = downloaded(machine, buffers.sfb(), buffers.sfb_bytes());
    const Matrices matrices{a.data(),      b.data(),     d.data(), buffers.setup().formats,
                            as_bytes(sfa), as_bytes(sfb)};
    return host_machine()->compare(matrices, near_groups(groups, buffers.layout()), limit);
  }
  Comparison all = machine.compare(buffers.matrices(), groups, limit);
  const Comparison sampled = sample_on_cpu(machine, buffers, groups, limit, seed);
  all.failures = std::max(all.failures, sampled.failures);  // the sample is part of what the other judged
  if (sampled.first >= 0 && (all.first < 0 || sampled.first < all.first)) all.first = sampled.first;
  return all;
}

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
      const int64_t element =
          group.d.offset + (first_row + int64_t(i) / group.n) * group.d.ld + int64_t(i) % group.n;
      const uint32_t code = load_code(matrices.d, limit.format, element);
      if (!judge(code, reference[i], magnitude[i], limit).ok) here.push_back(element);
    }
    const size_t stride = here.size() / kMost + 1;
    for (size_t i = 0; i * stride < here.size(); ++i)
      failing.push_back(here[sample_at(i, stride, here.size())]);
  }
  return failing;
}

// What sum_factor has to cover, measured on an H200 (driver 580, CUDA 13.0, 2026-11-21) as worst_factor over
// all 67 M outputs of a set with K=7168: chains of fp32 FMA 2^-21.0 (01 and 02, f32, `skewed`), mma.sync in
// steps of 16 2^-20.2 (05b, bf16, the worst of `prefill`, `skewed` and `huge`; a 16-bit output shows only
// what turns its rounding), tf32 in steps of 8 2^-19.1 (05b, bf16 with f16, f32 output, `prefill`). Each step
// of a tensor core cuts the running sum toward zero, so the error is a drift: half an ulp of the sum times K
// / step. With sums up to 5.5 sqrt(K) and sum |a*b| = 0.64 K that is 0.18 sqrt(K) 2^-23 for steps of 16,
// which is 2^-19.1 at K=7168, and twice that for steps of 8: operands of two types, which go through tf32.
Limit random_limit(const Setup& setup) {
  const double steps_of_8 = setup.formats.a == setup.formats.b ? 1 : 2;
  return {setup.formats.d, false, steps_of_8 * format_info(setup.formats.d).sum_factor, false};
}

bool right_on_random_data(Machine& machine, const Buffers& buffers, uint64_t seed,
                          const std::function<void()>& run) {
  buffers.poison(0xFF);
  run();
  if (buffers.setup().epilogue.has_operands()) return right_outputs(machine, buffers, seed);
  return compare_groups(machine, buffers, buffers.layout().groups, random_limit(buffers.setup()), seed)
             .failures == 0;
}

bool right_in_sets(Machine& machine, const BufferSets& sets, int count, const std::function<void()>& run) {
  for (int i = 0; i < count; ++i) sets[size_t(i)]->poison(0xFF);
  run();
  for (int i = 0; i < count; ++i) {
    const Buffers& set = *sets[size_t(i)];
    if (set.setup().epilogue.has_operands()) {
      if (!right_outputs(machine, set, uint64_t(i))) return false;
      continue;
    }
    if (machine.compare(set.matrices(), set.layout().groups, random_limit(set.setup())).failures)
      return false;
  }
  return true;
}

}  // namespace gg
