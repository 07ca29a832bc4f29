// SPDX-License-Identifier: MIT
//
// Chapter 07n's gated linear unit and transform, by tensor cores or by sums, beside chapter
// 07l's product, a kernel for the unit, and a kernel that transforms D where it lies and finds
// the largest magnitudes.

#include <algorithm>
#include <atomic>
#include <cmath>

#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/launch.h"
#include "common/kernel/ptx/mma.cuh"
#include "common/kernel/ptx/warpgroup.cuh"
#include "rows.cuh"
#include "ways.h"

namespace {

using gg::Format;
namespace ep = gg::epilogue;
using rows::kAtOnce, rows::value;

constexpr int kThreads = 256, kUnits = 4;          // a warp has kColumns so many times
constexpr int kRows = 16, kColumns = 4 * kAtOnce;  // of a warp at a time
constexpr int kSize = ep::HADAMARD_SIZE;

// Y[row][16b + j] = sum over i of w[j][i] X[row][16b + i], in place. With g = lane / 4 and
// t = lane % 4, a lane reads and writes 8 columns of rows g and g + 8, beginning at 8t of 32.
// Columns of a product, and its k, are in an order that lets them be those of mma: tile j of 8
// columns has 8t + 2j and the next one, and step m of 16 k has 8t + 4m to 8t + 4m + 3. Half of each
// fragment of w is zero, as 32 columns are two transforms.
__global__ void __launch_bounds__(kThreads)
    hadamard(uint4* d, const bf16* w, gg::Offsets offsets, int groups, int columns, int* amax) {
  gg::ptx::griddepcontrol_launch_dependents();
  gg::ptx::griddepcontrol_wait();  // X is there
  const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int chunks = (columns + kColumns * kUnits - 1) / (kColumns * kUnits);
  const int warp = int(blockIdx.x) * (kThreads / 32) + int(threadIdx.x) / 32;
  const int64_t row0 = int64_t(warp / chunks) * kRows, end = offsets[groups];
  const int first = warp % chunks * kColumns * kUnits + t * kAtOnce;
  if (row0 >= end) return;
  uint4 x[kUnits][2] = {};
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (row0 + g + 8 * h < end && first + i * kColumns < columns)
        x[i][h] = d[((row0 + g + 8 * h) * columns + first + i * kColumns) / kAtOnce];
    }
  }
  gg::ptx::FragmentB<bf16> of_w[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int out = g / 2 * kAtOnce + 2 * j + g % 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int in = t * kAtOnce + 2 * i;
      const uint32_t* const words = reinterpret_cast<const uint32_t*>(w);
      of_w[j].reg[i] = in / kSize == out / kSize ? words[(out % kSize * kSize + in % kSize) / 2] : 0;
    }
  }
  uint32_t most[2] = {};
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const uint32_t low[] = {x[i][0].x, x[i][0].y, x[i][0].z, x[i][0].w},
                   high[] = {x[i][1].x, x[i][1].y, x[i][1].z, x[i][1].w};
    float y[2][kAtOnce];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float acc[4] = {};
#pragma unroll
      for (int m = 0; m < 2; ++m)
        gg::ptx::mma_m16n8k16(acc, {{low[2 * m], high[2 * m], low[2 * m + 1], high[2 * m + 1]}}, of_w[j], m);
#pragma unroll
      for (int e = 0; e < 4; ++e) y[e / 2][2 * j + e % 2] = acc[e];
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      uint32_t part = ep::largest_magnitude(y[h]), words[4];
      for (int step = 1; step < 4; step *= 2) part = ep::larger(part, __shfl_xor_sync(~0u, part, step));
      most[h] = ep::amax_with(most[h], part);
      for (int j = 0; j < 4; ++j) words[j] = ep::word_of<Format::bf16>(y[h] + 2 * j);
      if (row0 + g + 8 * h < end && first + i * kColumns < columns)
        d[((row0 + g + 8 * h) * columns + first + i * kColumns) / kAtOnce] = {words[0], words[1], words[2],
                                                                              words[3]};
    }
  }
  const int64_t last = min(row0 + kRows, end) - 1;
  int group = rows::group_of(row0, offsets, groups);
  if (offsets[group + 1] > last) {
    const uint32_t largest = __reduce_max_sync(~0u, ep::larger(most[0], most[1]));
    if (lane == 0) atomicMax(amax + group, int(largest));
  } else if (t == 0) {
    for (int h = 0; h < 2; ++h) {
      if (row0 + g + 8 * h >= end) continue;
      while (offsets[group + 1] <= row0 + g + 8 * h) ++group;
      atomicMax(amax + group, int(most[h]));
    }
  }
}

void launch_unfused(const gg::Problem& p, bf16* product, cudaStream_t stream) {
  launch_glu(p, product, stream);
  const int columns = p.n() / 2, chunks = (columns + kColumns * kUnits - 1) / (kColumns * kUnits);
  const int64_t warps = (p.m_total() + kRows - 1) / kRows * chunks, each = kThreads / 32;
  if (warps == 0) return;
  gg::launch_kernel({.grid = dim3(unsigned((warps + each - 1) / each)),
                     .threads = kThreads,
                     .shared_bytes = 0,
                     .stream = stream,
                     .dependent = true},
                    hadamard, p.d<uint4>(), p.epilogue().hadamard, p.offsets(), p.groups(), columns,
                    reinterpret_cast<int*>(p.epilogue().amax));
}

// An X of the unfused way moves by what glu.cu says, a Y by the sum of that of 16 X times w, and
// both ways round it. The largest of a group moves no more than any Y of it.
void require_equal(gg::Machine& machine, const gg::Buffers& buffers, const bf16* product,
                   const Outputs& unfused, const Outputs& fused) {
  const gg::Problem& p = buffers.problem();
  const int n = p.n(), columns = n / 2;
  std::vector<char> c(size_t(p.m_total() * n) * sizeof(bf16));
  machine.download(c.data(), product, c.size());
  const gg::EpilogueOperands& operands = buffers.epilogue_operands();
  float w[kSize][kSize];
  for (int i = 0; i < kSize * kSize; ++i)
    w[i / kSize][i % kSize] = ep::float_of(uint32_t(operands.hadamard[size_t(i)]) << 16);
  std::vector<std::atomic<float>> most_bound(size_t(p.groups()));
  for_each_row(p, [&](size_t group, int64_t row) {
    float most = 0;
    for (int col0 = 0; col0 < columns; col0 += kSize) {
      float moves[kSize];  // of X
      for (int i = 0; i < kSize; ++i) {
        const size_t at = size_t(row * n);
        const float alpha = operands.alpha[group],
                    gate = alpha * value(c, at + size_t(ep::gate_column(col0 + i))),
                    up = alpha * value(c, at + size_t(ep::up_column(col0 + i))),
                    x = ep::swiglu(gate, up, operands.prob[size_t(row)]);
        moves[i] = (std::fabs(x) * (5 + std::fabs(gate)) + 0x1p-100f) * 0x1p-8f;
      }
      for (int j = 0; j < kSize; ++j) {
        const size_t at = size_t(row * columns + col0 + j);
        const float want = value(unfused.at(gg::Tensor::d), at), is = value(fused.at(gg::Tensor::d), at);
        float bound = (std::fabs(want) + std::fabs(is)) * 0x1p-8f;
        for (int i = 0; i < kSize; ++i) bound += std::fabs(w[j][i]) * moves[i];
        most = std::max(most, bound);
        if (!(std::fabs(is - want) <= bound)) differ(buffers, place(row, col0 + j), is, want);
      }
    }
    for (float seen = most_bound[group];
         seen < most && !most_bound[group].compare_exchange_weak(seen, most);) {
    }
  });
  for (int group = 0; group < p.groups(); ++group) {
    float want, is;
    std::memcpy(&want, unfused.at(gg::Tensor::amax).data() + size_t(group) * sizeof want, sizeof want);
    std::memcpy(&is, fused.at(gg::Tensor::amax).data() + size_t(group) * sizeof is, sizeof is);
    if (!(is == want || std::fabs(is - want) <= most_bound[size_t(group)]))
      differ(buffers, gg::format("amax of group %d", group), is, want);
  }
}

gg::Setup setup() {
  gg::Setup setup;
  setup.request.b_layout = gg::BLayout::nk;
  setup.host_offsets = false;
  setup.request.epilogue = {
      .op = gg::Operator::glu_hadamard, .amax = true, .stores_c = false, .butterfly = true};
  return setup;
}

Comparison comparison() {
  Comparison all = hadamard_comparison("07n", "07n_glu_hadamard", launch_07n);
  all.others = {{"butterfly", launch_07n_butterfly}};
  return all;
}

const bool known = add(comparison());

}  // namespace

Comparison hadamard_comparison(const char* option, const char* chapter, Launch fused) {
  return {.option = option,
          .chapter = chapter,
          .setup = setup(),
          .sets = "prefill,skewed,decode,moe",
          .fused = fused,
          .unfused = launch_unfused,
          .require_equal = require_equal};
}
