// SPDX-License-Identifier: MIT
//
// Chapter 07m's gated linear unit beside chapter 07l's product and then a kernel that reads it.

#include <cmath>

#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/launch.h"
#include "common/kernel/ptx/warpgroup.cuh"
#include "rows.cuh"
#include "ways.h"

namespace {

using gg::Format;
namespace ep = gg::epilogue;

using rows::kAtOnce, rows::unpack, rows::value;

constexpr int kThreads = 256, kUnits = 4;            // a lane has 16 bytes of outputs so many times
constexpr int kWarpOutputs = 32 * kAtOnce * kUnits;  // of a row

// D [rows,N/2] of C [rows,N]. A warp has up to kWarpOutputs outputs of a row: all its loads are
// under way at once, each byte is read once, and 32 lanes read 512 bytes that follow each other, or
// 64 that do.
__global__ void __launch_bounds__(kThreads) glu(const uint4* c, const float* alpha, const float* prob,
                                                gg::Offsets offsets, int groups, int n, uint4* d) {
  gg::ptx::griddepcontrol_launch_dependents();
  gg::ptx::griddepcontrol_wait();  // C is there
  const int lane = int(threadIdx.x) % 32, outputs = n / 2,
            chunks = (outputs + kWarpOutputs - 1) / kWarpOutputs;
  const int64_t warp = int64_t(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  const int row = int(warp / chunks), first = int(warp % chunks) * kWarpOutputs;
  if (row >= offsets[groups]) return;
  const int group = rows::group_of(row, offsets, groups);
  uint4 gates[kUnits], ups[kUnits];
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const int column = first + (i * 32 + lane) * kAtOnce;
    if (column >= outputs) continue;
    gates[i] = c[(int64_t(row) * n + ep::gate_column(column)) / kAtOnce];
    ups[i] = c[(int64_t(row) * n + ep::up_column(column)) / kAtOnce];
  }
  const float factor = alpha[group], of_row = prob[row];
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const int column = first + (i * 32 + lane) * kAtOnce;
    if (column >= outputs) continue;
    float gate[kAtOnce], up[kAtOnce];
    unpack(gates[i], gate);
    unpack(ups[i], up);
    uint32_t words[kAtOnce / 2];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      gate[j] = ep::swiglu(ep::scaled(gate[j], factor), ep::scaled(up[j], factor), of_row);
#pragma unroll
    for (int j = 0; j < kAtOnce / 2; ++j) words[j] = ep::word_of<Format::bf16>(gate + 2 * j);
    d[(int64_t(row) * outputs + column) / kAtOnce] = {words[0], words[1], words[2], words[3]};
  }
}

}  // namespace

void launch_glu(const gg::Problem& p, bf16* product, cudaStream_t stream) {
  launch_07l(p, product, stream);
  const int chunks = (p.n() / 2 + kWarpOutputs - 1) / kWarpOutputs;
  const int64_t warps = p.m_total() * chunks, each = kThreads / 32;
  if (warps == 0) return;
  gg::launch_kernel({.grid = dim3(unsigned((warps + each - 1) / each)),
                     .threads = kThreads,
                     .shared_bytes = 0,
                     .stream = stream,
                     .dependent = true},
                    glu, reinterpret_cast<const uint4*>(product), p.epilogue().alpha, p.epilogue().prob,
                    p.offsets(), p.groups(), p.n(), p.d<uint4>());
}

namespace {

// Rounding the product moves a gate and an up by up to 2^-8 of themselves, the output by that times
// 1 + |gate| and once more, and both outputs are rounded.
void require_equal(gg::Machine& machine, const gg::Buffers& buffers, const bf16* product,
                   const Outputs& unfused, const Outputs& fused) {
  const gg::Problem& p = buffers.problem();
  const int64_t columns = p.n() / 2;
  std::vector<char> c(size_t(p.m_total() * p.n()) * sizeof(bf16));
  machine.download(c.data(), product, c.size());
  const std::vector<char>&expected = unfused.at(gg::Tensor::d), &got = fused.at(gg::Tensor::d);
  const std::vector<float>& alpha = buffers.epilogue_operands().alpha;
  for_each_row(p, [&](size_t group, int64_t row) {
    for (int col = 0; col < int(columns); ++col) {
      const size_t at = size_t(row * columns + col);
      const float gate = alpha[group] * value(c, size_t(row * p.n() + ep::gate_column(col)));
      const float want = value(expected, at), is = value(got, at);
      const float bound = (std::fabs(want) * (5 + std::fabs(gate)) + 0x1p-100f) * 0x1p-8f;
      if (!(std::fabs(is - want) <= bound)) differ(buffers, place(row, col), is, want);
    }
  });
}

gg::Setup setup() {
  gg::Setup setup;
  setup.request.b_layout = gg::BLayout::nk;
  setup.host_offsets = false;
  setup.request.epilogue = {.op = gg::Operator::glu, .stores_c = false};
  return setup;
}

const bool known = add(glu_comparison("07m", "07m_fused_glu", launch_07m));

}  // namespace

Comparison glu_comparison(const char* option, const char* chapter, Launch fused) {
  return {.option = option,
          .chapter = chapter,
          .setup = setup(),
          .sets = "prefill,skewed,decode,moe",
          .fused = fused,
          .unfused = launch_glu,
          .require_equal = require_equal};
}
