// SPDX-License-Identifier: MIT
//
// Planted bugs: small wrong kernels that the harness must fail and name, beside clean twins
// that it must pass. Each is written once, for a host function (planted_bugs_test.cu) and a
// GPU kernel (planted_bugs_gpu_test.cu).

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>

#include "common/harness/problem/shapes.h"
#include "common/harness/verify/trials.h"

namespace planted {

using gg::Symptom;

struct View {  // what a planted kernel sees of a packed problem
  const bf16 *a, *b;
  bf16* d;
  const int32_t* offsets;
  int groups, n, k;
  gg::BLayout b_layout;

  GG_HD int rows(int group) const { return offsets[group + 1] - offsets[group]; }
  GG_HD float a_at(int64_t row, int kk) const { return gg::to_float(a[row * k + kk]); }
  GG_HD float b_at(int group, int kk, int col) const {
    return gg::to_float(
        b[int64_t(group) * k * n + (b_layout == gg::BLayout::nk ? col * k + kk : kk * n + col)]);
  }
  GG_HD float sum(int64_t row, int group, int col, int first, int last) const {
    float acc = 0;
    for (int kk = first; kk < last; ++kk) acc += a_at(row, kk) * b_at(group, kk, col);
    return acc;
  }
  GG_HD void store(int64_t row, int col, float value) const {
    d[row * n + col] = gg::from_float<bf16>(value);
  }
};

// A planted kernel computes one element: row `r` of `group` and column `col`.
struct Clean {
  static GG_HD void element(const View& v, int group, int r, int col) {
    v.store(v.offsets[group] + r, col, v.sum(v.offsets[group] + r, group, col, 0, v.k));
  }
};
struct CleanBackwards {  // another order of the sum is not a bug
  static GG_HD void element(const View& v, int group, int r, int col) {
    float acc = 0;
    for (int kk = v.k - 1; kk >= 0; --kk) acc += v.a_at(v.offsets[group] + r, kk) * v.b_at(group, kk, col);
    v.store(v.offsets[group] + r, col, acc);
  }
};
struct CleanInSlices {  // from two stages, each of which keeps what it had
  static GG_HD void element(const View& v, int group, int r, int col) {
    const int64_t row = v.offsets[group] + r;
    float acc = 0;
    for (int k0 = 0, slice = 64; k0 < v.k; k0 += slice)
      acc += v.sum(row, group, col, k0, k0 + slice < v.k ? k0 + slice : v.k);
    v.store(row, col, acc);
  }
};
struct NanOutput {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const float acc = v.sum(v.offsets[group] + r, group, col, 0, v.k);
    v.store(v.offsets[group] + r, col, r == 3 && col == 5 ? (acc - acc) / (acc - acc) : acc);
  }
};
struct UnwrittenRow {
  static GG_HD void element(const View& v, int group, int r, int col) {
    if (r < 4 || r != v.rows(group) - 1) Clean::element(v, group, r, col);
  }
};
struct OnePastTheEnd {
  static GG_HD void element(const View& v, int group, int r, int col) {
    Clean::element(v, group, r, col);
    if (group == v.groups - 1 && r == v.rows(group) - 1) v.store(v.offsets[group] + r + 1, col, 1.0f);
  }
};
struct OneBeforeTheStart {
  static GG_HD void element(const View& v, int group, int r, int col) {
    Clean::element(v, group, r, col);
    if (v.offsets[group] + r == 0 && col == v.n - 1) v.store(-1, col, 1.0f);
  }
};
struct SwappedExperts {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const int weights = group == 0 ? 2 : group == 2 ? 0 : group;
    v.store(v.offsets[group] + r, col, v.sum(v.offsets[group] + r, weights, col, 0, v.k));
  }
};
struct TransposedTile {
  static GG_HD void element(const View& v, int group, int r, int col) {
    constexpr int kTile = 16;
    const int r0 = r / kTile * kTile, c0 = col / kTile * kTile;
    const bool full = r0 + kTile <= v.rows(group) && c0 + kTile <= v.n;
    const int row = full ? r0 + col - c0 : r, c = full ? c0 + r - r0 : col;
    v.store(v.offsets[group] + row, c, v.sum(v.offsets[group] + r, group, col, 0, v.k));
  }
};
struct MissingLastSlice {
  static GG_HD void element(const View& v, int group, int r, int col) {
    v.store(v.offsets[group] + r, col, v.sum(v.offsets[group] + r, group, col, 0, v.k - 16));
  }
};
// Slices of 64, in a ring whose next stage still has the slice before.
struct LastSliceOfAnotherStage {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const int64_t row = v.offsets[group] + r;
    const int last = v.k - 64;
    v.store(row, col, v.sum(row, group, col, 0, last) + v.sum(row, group, col, last - 64, last));
  }
};
// Tiles of 64x64, whose lower half has the columns of the tile on the right.
struct HalfOfAnotherTile {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const int64_t row = v.offsets[group] + r;
    const bool moved = r % 64 >= 32 && col / 64 * 64 + 128 <= v.n;
    v.store(row, col, v.sum(row, group, moved ? col + 64 : col, 0, v.k));
  }
};
struct SwappedColumns {
  static GG_HD void element(const View& v, int group, int r, int col) {
    v.store(v.offsets[group] + r, col, v.sum(v.offsets[group] + r, group, col ^ 16, 0, v.k));
  }
};
// TMA has put chunk c of row r of B to c xor r % 8, and the product takes it from c.
struct NoSwizzle {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const bool nk = v.b_layout == gg::BLayout::nk;
    float acc = 0;
    for (int kk = 0; kk < v.k; ++kk) {
      const int k = nk ? kk ^ col % 8 * 8 : kk, c = nk ? col : col ^ kk % 8 * 8;
      if (k < v.k && c < v.n) acc += v.a_at(v.offsets[group] + r, kk) * v.b_at(group, k, c);
    }
    v.store(v.offsets[group] + r, col, acc);
  }
};
GG_HD unsigned dice();
// The rows of two groups race for the place of those behind the first one's end.
struct AlwaysBoxesOf32Rows {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const int64_t row = v.offsets[group] + r;
    int weights = group;
    for (int before = 0; before < group; ++before) {
      if (row < v.offsets[before] + (v.rows(before) + 31) / 32 * 32 && (dice() >> 3 & 1)) weights = before;
    }
    v.store(row, col, v.sum(row, weights, col, 0, v.k));
  }
};
struct PreviousOutputLeft {  // writes only where it finds NaN, so the first launch looks right
  static GG_HD void element(const View& v, int group, int r, int col) {
    const float there = gg::to_float(v.d[int64_t(v.offsets[group] + r) * v.n + col]);
    if (there != there) Clean::element(v, group, r, col);
  }
};
struct OffsetsOffByOne {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const int64_t row = v.offsets[group] + r, last = v.offsets[v.groups] - 1;
    v.store(row, col, v.sum(row < last ? row + 1 : row, group, col, 0, v.k));
  }
};
struct GroupEndOffByOne {  // `<=` for `<`: a group's first row still belongs to the group before it
  static GG_HD void element(const View& v, int group, int r, int col) {
    int weights = group;
    if (r == 0) {
      while (weights > 0 && v.offsets[weights] == v.offsets[group]) --weights;
    }
    v.store(v.offsets[group] + r, col, v.sum(v.offsets[group] + r, weights, col, 0, v.k));
  }
};
struct PaddingRead {  // a masked lane multiplies what it should not have loaded by zero
  static GG_HD void element(const View& v, int group, int r, int col) {
    const float acc = v.sum(v.offsets[group] + r, group, col, 0, v.k);
    v.store(v.offsets[group] + r, col, acc + 0.0f * v.a_at(v.offsets[v.groups], 0));
  }
};
struct PaddingOfBRead {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const float acc = v.sum(v.offsets[group] + r, group, col, 0, v.k);
    v.store(v.offsets[group] + r, col, acc + 0.0f * gg::to_float(v.b[int64_t(v.groups) * v.k * v.n]));
  }
};
struct NeighbourRead {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const float acc = v.sum(v.offsets[group] + r, group, col, 0, v.k);
    const int next = group + 1 < v.groups ? group + 1 : group;
    v.store(v.offsets[group] + r, col, acc + 0.0f * v.b_at(next, 0, col));
  }
};
struct Truncation {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const double acc = double(v.sum(v.offsets[group] + r, group, col, 0, v.k));
    const uint32_t code = gg::encode(gg::Format::bf16, acc, gg::Rounding::toward_zero);
    gg::store_code(v.d, gg::Format::bf16, int64_t(v.offsets[group] + r) * v.n + col, code);
  }
};
// A is cut to 3 bits behind the leading one, enough for whole numbers up to 16.
struct NarrowOperand {
  static GG_HD void element(const View& v, int group, int r, int col) {
    float acc = 0;
    for (int kk = 0; kk < v.k; ++kk) {
      const int64_t at = (v.offsets[group] + r) * int64_t(v.k) + kk;
      const uint32_t cut = gg::load_code(v.a, gg::Format::bf16, at) & ~0xFu;
      acc += gg::decode(gg::Format::bf16, cut) * v.b_at(group, kk, col);
    }
    v.store(v.offsets[group] + r, col, acc);
  }
};
struct OutputTimesZero {  // D = A * B + 0 * D
  static GG_HD void element(const View& v, int group, int r, int col) {
    const int64_t row = v.offsets[group] + r;
    v.store(row, col, v.sum(row, group, col, 0, v.k) + 0.0f * gg::to_float(v.d[row * v.n + col]));
  }
};
struct SquareOnly {  // [K,N] taken for [N,K], or the other way round
  static GG_HD void element(const View& v, int group, int r, int col) {
    View other = v;
    other.b_layout = v.b_layout == gg::BLayout::nk ? gg::BLayout::kn : gg::BLayout::nk;
    Clean::element(other, group, r, col);
  }
};
struct FirstGroupOnly {
  static GG_HD void element(const View& v, int group, int r, int col) {
    v.store(v.offsets[group] + r, col, v.sum(v.offsets[group] + r, 0, col, 0, v.k));
  }
};
struct HalfAccumulator {
  static GG_HD void element(const View& v, int group, int r, int col) {
    f16 acc = gg::from_float<f16>(0.0f);
    for (int kk = 0; kk < v.k; ++kk) {
      acc =
          gg::from_float<f16>(gg::to_float(acc) + v.a_at(v.offsets[group] + r, kk) * v.b_at(group, kk, col));
    }
    v.store(v.offsets[group] + r, col, gg::to_float(acc));
  }
};
// A different number at each call: what the order of a race would be.
GG_HD unsigned dice() {
#ifdef __CUDA_ARCH__
  return unsigned(clock64());
#else
  static std::atomic<unsigned> calls{0};
  return unsigned(gg::hash(1, 0, calls++));
#endif
}
struct Nondeterministic {
  static GG_HD void element(const View& v, int group, int r, int col) {
    const float acc = v.sum(v.offsets[group] + r, group, col, 0, v.k);
    v.store(v.offsets[group] + r, col, r == 2 ? acc + float(dice() >> 3 & 1) : acc);
  }
};

template <class Bug>
__global__ void planted_kernel(View view) {
  const int group = int(blockIdx.y), m = view.rows(group);
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < m * view.n; i += int(gridDim.x * blockDim.x)) {
    Bug::element(view, group, i / view.n, i % view.n);
  }
}

template <class Bug>
void on_host(const gg::Problem& p, cudaStream_t) {
  const View view{p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), p.offsets().as<int32_t>(),
                  p.groups(),  p.n(),       p.k(),       p.b_layout()};
  for (int group = 0; group < view.groups; ++group) {
    for (int i = 0; i < view.rows(group) * view.n; ++i) Bug::element(view, group, i / view.n, i % view.n);
  }
}

template <class Bug>
void on_gpu(const gg::Problem& p, cudaStream_t stream) {
  const View view{p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), p.offsets().as<int32_t>(),
                  p.groups(),  p.n(),       p.k(),       p.b_layout()};
  planted_kernel<Bug><<<dim3(32, unsigned(view.groups)), 128, 0, stream>>>(view);
  GG_CHECK(cudaGetLastError());
}

struct Planted {
  const char* name;
  Symptom symptom;  // what the harness must say
  gg::Launch host, gpu;
};

template <class Bug>
Planted plant(const char* name, Symptom symptom) {
  return {name, symptom, on_host<Bug>, on_gpu<Bug>};
}

inline const std::vector<Planted>& bugs() {
  static const std::vector<Planted> all = {
      plant<NanOutput>("NanOutput", Symptom::nan),
      plant<UnwrittenRow>("UnwrittenRow", Symptom::unwritten),
      plant<OnePastTheEnd>("OnePastTheEnd", Symptom::out_of_bounds),
      plant<OneBeforeTheStart>("OneBeforeTheStart", Symptom::out_of_bounds),
      plant<SwappedExperts>("SwappedExperts", Symptom::swapped_expert),
      plant<TransposedTile>("TransposedTile", Symptom::transposed_tile),
      plant<MissingLastSlice>("MissingLastSlice", Symptom::missing_k_slice),
      plant<LastSliceOfAnotherStage>("LastSliceOfAnotherStage", Symptom::other_stage),
      plant<HalfOfAnotherTile>("HalfOfAnotherTile", Symptom::other_place),
      plant<SwappedColumns>("SwappedColumns", Symptom::other_place),
      plant<NoSwizzle>("NoSwizzle", Symptom::missing_swizzle),
      plant<AlwaysBoxesOf32Rows>("AlwaysBoxesOf32Rows", Symptom::overrun),
      plant<PreviousOutputLeft>("PreviousOutputLeft", Symptom::stale),
      plant<OffsetsOffByOne>("OffsetsOffByOne", Symptom::offset_by_one),
      plant<GroupEndOffByOne>("GroupEndOffByOne", Symptom::offset_by_one),
      plant<PaddingRead>("PaddingRead", Symptom::padding_read),
      plant<PaddingOfBRead>("PaddingOfBRead", Symptom::padding_read),
      plant<NeighbourRead>("NeighbourRead", Symptom::neighbour_read),
      plant<Truncation>("Truncation", Symptom::truncated),
      plant<NarrowOperand>("NarrowOperand", Symptom::unknown),
      plant<OutputTimesZero>("OutputTimesZero", Symptom::nan),
      plant<SquareOnly>("SquareOnly", Symptom::square_only),
      plant<FirstGroupOnly>("FirstGroupOnly", Symptom::first_group_only),
      plant<HalfAccumulator>("HalfAccumulator", Symptom::half_accumulator),
      plant<Nondeterministic>("Nondeterministic", Symptom::nondeterministic),
  };
  return all;
}

inline const std::vector<Planted>& twins() {
  static const std::vector<Planted> all = {
      plant<Clean>("Clean", Symptom::unknown),
      plant<CleanBackwards>("CleanBackwards", Symptom::unknown),
  };
  return all;
}

// The set that every machine can run, and one problem with no empty group and a wider matrix.
inline std::vector<gg::Shape> shapes() {
  std::vector<gg::Shape> all = gg::shape_set("smoke", {});
  all.push_back({{40, 33, 64}, {192}, {256}});
  return all;
}

inline const gg::CheckOptions kOptions{.seed = 3, .graph_replay = true, .neighbours = true};

// Each problem with B as [G,K,N] and as [G,N,K].
template <class Body>
void for_layouts(const std::vector<gg::Shape>& shapes, Body body) {
  for (const gg::BLayout b_layout : {gg::BLayout::kn, gg::BLayout::nk}) {
    gg::Setup setup;
    setup.request.b_layout = b_layout;
    for (const gg::Shape& shape : shapes) body(setup, shape);
  }
}

inline void must_be_named(gg::Machine& machine, const Planted& bug, const gg::Launch& launch) {
  for_layouts(shapes(), [&](const gg::Setup& setup, const gg::Shape& shape) {
    const std::string layout = gg::layout_name(setup.request.b_layout);
    const gg::CheckResult result = gg::check_problem(machine, setup, launch, shape, kOptions);
    ASSERT_TRUE(result.failure) << bug.name << " passed on " << shape.describe() << ", B " << layout;
    EXPECT_STREQ(gg::symptom_name(result.failure->symptom), gg::symptom_name(bug.symptom))
        << result.failure->sentence << ", B " << layout;
    std::printf("%-20s %s: B %s, %s\n", bug.name, gg::symptom_name(result.failure->symptom), layout.c_str(),
                result.failure->sentence.c_str());
  });
}

inline void must_pass(gg::Machine& machine, const gg::Launch& launch) {
  std::vector<gg::Shape> all = shapes();
  for (const gg::Shape& shape : gg::shape_set("edges", {})) all.push_back(shape);
  for_layouts(all, [&](const gg::Setup& setup, const gg::Shape& shape) {
    const gg::CheckResult result = gg::check_problem(machine, setup, launch, shape, kOptions);
    EXPECT_FALSE(result.failure) << result.failure->sentence;
    EXPECT_LT(result.worst_ratio, 1);
  });
}

inline std::string name_of(const testing::TestParamInfo<Planted>& info) { return info.param.name; }

}  // namespace planted
