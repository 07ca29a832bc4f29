// SPDX-License-Identifier: MIT
//
// Chapter 07o's quantised outputs beside chapter 07l's product, and a kernel that reads it and
// quantises it by rows and by columns.

#include <cmath>

#include "common/kernel/launch.h"
#include "common/kernel/ptx/warpgroup.cuh"
#include "rows.cuh"
#include "ways.h"

namespace {

using gg::Format, gg::ScaleLayout, gg::Tensor;
namespace ep = gg::epilogue;
using rows::kAtOnce, rows::unpack;

constexpr int kBlock = 32;  // values that share a scale
// Rows, and columns, of a block of threads: an atom of scales of either kind.
constexpr int kTile = 128;
// A warp has 32 rows, and blocks of half of the columns.
constexpr int kThreads = 256, kUnits = kTile / kBlock / 2;
constexpr int kAtom = int(ScaleLayout::kAtomBytes);

// The least of a trade: of 8 columns' maxima each lane keeps one, over the 8 lanes of the same
// lane % 4. Lane l gets column l / 4.
__device__ uint32_t of_own_column(uint32_t (&most)[kAtOnce]) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll
  for (int half = kAtOnce / 2; half > 0; half /= 2) {
    const bool upper = lane / 4 & half;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const uint32_t sent = upper ? most[i] : most[i + half], kept = upper ? most[i + half] : most[i];
      most[i] = ep::larger(kept, __shfl_xor_sync(~0u, sent, half * 4));
    }
  }
  return most[0];
}

__device__ uint2 codes_of(const float (&v)[kAtOnce]) {
  return {ep::word_of<Format::e4m3>(v), ep::word_of<Format::e4m3>(v + 4)};
}

// D and D_col, their scales and amax of C [rows,N], whose groups have multiples of 128 rows. A lane
// has 8 columns of rows lane / 4, 8 rows below, and so on: 4 of the 32.
__global__ void __launch_bounds__(kThreads)
    quantise(const uint4* c, const float* alpha, const float* prob, const float* norm_const,
             gg::Offsets offsets, int groups, int n, uint2* d, uint2* d_col, uint8_t* sfd_row,
             uint8_t* sfd_col, int64_t row_atoms, int* amax) {
  __shared__ alignas(16) uint8_t of_rows[kAtom], of_columns[kAtom];
  gg::ptx::griddepcontrol_launch_dependents();
  gg::ptx::griddepcontrol_wait();  // C is there
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int64_t tile_row = blockIdx.y, row0 = tile_row * kTile + warp % 4 * kBlock;
  const int tile_col = int(blockIdx.x), col0 = tile_col * kTile + warp / 4 * kUnits * kBlock;
  if (tile_row * kTile >= offsets[groups]) return;  // all threads do
  uint4 words[kUnits][4] = {};
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const int col = col0 + i * kBlock + lane % 4 * kAtOnce;
#pragma unroll
    for (int r = 0; r < 4; ++r)
      if (col < n) words[i][r] = c[((row0 + r * 8 + lane / 4) * n + col) / kAtOnce];
  }
  if (thread < kAtom / 4) {  // what lies beyond N is 0
    reinterpret_cast<uint32_t*>(of_rows)[thread] = 0;
    reinterpret_cast<uint32_t*>(of_columns)[thread] = 0;
  }
  const int group = rows::group_of(row0, offsets, groups);
  const float factor = alpha[group], norm = *norm_const, reciprocal = ep::reciprocal_for(Format::e4m3);
  float probs[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) probs[r] = prob[row0 + r * 8 + lane / 4];
  __syncthreads();  // scales may be written over the zeros
  uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const int block = warp / 4 * kUnits + i, col = col0 + i * kBlock + lane % 4 * kAtOnce;
    if (col0 + i * kBlock >= n) break;  // the whole warp does
    float v[4][kAtOnce];
    uint32_t of_column[kAtOnce] = {};
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      unpack(words[i][r], v[r]);
#pragma unroll
      for (int e = 0; e < kAtOnce; ++e) {
        v[r][e] = ep::value_of(v[r][e], factor, probs[r]);
        of_column[e] = ep::larger(of_column[e], ep::magnitude(v[r][e]));
      }
      uint32_t of_row = ep::largest_magnitude(v[r]);
      for (int step = 1; step < 4; step *= 2) of_row = ep::larger(of_row, __shfl_xor_sync(~0u, of_row, step));
      largest = ep::amax_with(largest, of_row);
      const uint32_t code = ep::scale_code(of_row, reciprocal, norm);
      const float scale = ep::factor_of_code(code, norm);
      float scaled[kAtOnce];
      for (int e = 0; e < kAtOnce; ++e) scaled[e] = v[r][e] * scale;
      if (col < n) d[((row0 + r * 8 + lane / 4) * n + col) / kAtOnce] = codes_of(scaled);
      if (lane % 4 == 0)
        of_rows[ScaleLayout{kTile, 4}.offset(warp % 4 * kBlock + r * 8 + lane / 4, block)] = uint8_t(code);
    }
    const uint32_t code = ep::scale_code(of_own_column(of_column), reciprocal, norm);
    const float own = ep::factor_of_code(code, norm);
    if (col < n)
      of_columns[ScaleLayout{kTile, 4}.offset(block * kBlock + lane % 4 * kAtOnce + lane / 4, warp % 4)] =
          uint8_t(code);
    float scales[kAtOnce];
#pragma unroll
    for (int e = 0; e < kAtOnce; ++e) scales[e] = __shfl_sync(~0u, own, e * 4 + lane % 4);
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int e = 0; e < kAtOnce; ++e) v[r][e] *= scales[e];
      if (col < n) d_col[((row0 + r * 8 + lane / 4) * n + col) / kAtOnce] = codes_of(v[r]);
    }
  }
  largest = __reduce_max_sync(~0u, largest);
  if (lane == 0) atomicMax(amax + group, int(largest));
  __syncthreads();                                     // all scales are there
  const int64_t row_blocks = (n + kTile - 1) / kTile;  // atoms of SFD_row's that are neighbours
  if (thread < kAtom / 16) {
    reinterpret_cast<uint4*>(sfd_row + (tile_row * row_blocks + tile_col) * kAtom)[thread] =
        reinterpret_cast<const uint4*>(of_rows)[thread];
    reinterpret_cast<uint4*>(sfd_col + (tile_col * row_atoms + tile_row) * kAtom)[thread] =
        reinterpret_cast<const uint4*>(of_columns)[thread];
  }
}

void launch_unfused(const gg::Problem& p, bf16* product, cudaStream_t stream) {
  launch_07l(p, product, stream);
  const int64_t tiles = p.m_total() / kTile;
  if (tiles == 0) return;
  const gg::EpilogueTensors& e = p.epilogue();
  gg::launch_kernel({.grid = dim3(unsigned((p.n() + kTile - 1) / kTile), unsigned(tiles)),
                     .threads = kThreads,
                     .shared_bytes = 0,
                     .stream = stream,
                     .dependent = true},
                    quantise, reinterpret_cast<const uint4*>(product), e.alpha, e.prob, e.norm_const,
                    p.offsets(), p.groups(), p.n(), p.d<uint2>(), static_cast<uint2*>(e.d_col), e.sfd_row,
                    e.sfd_col, ScaleLayout{p.n(), (p.rows() + kBlock - 1) / kBlock}.block_atoms(),
                    reinterpret_cast<int*>(e.amax));
}

// Rounding the product moves a value by up to 2^-8 of itself. So a scale is that of the other way,
// or its neighbour where the largest of the block crosses a power of two. An element is then off by
// half a step of E4M3 in each way: 2^-4 of itself, or 2^-10 scales where it is small.
void require_equal(gg::Machine&, const gg::Buffers& buffers, const bf16*, const Outputs& unfused,
                   const Outputs& fused) {
  const gg::Problem& p = buffers.problem();
  const int n = p.n();
  const float norm = buffers.setup().request.epilogue.norm_const;
  const ScaleLayout of_rows{p.rows(), (n + kBlock - 1) / kBlock},
      of_columns{n, (p.rows() + kBlock - 1) / kBlock};
  const auto compare = [&](Tensor tensor, Tensor scales, int64_t row) {
    for (int col = 0; col < n; ++col) {
      const size_t at = size_t(row * n + col),
                   scale_at = size_t(scales == Tensor::sfd_row ? of_rows.offset(row, col / kBlock)
                                                               : of_columns.offset(col, row / kBlock));
      double value[2], scale[2];
      const Outputs* const ways[] = {&unfused, &fused};
      for (int i = 0; i < 2; ++i) {
        const int code = uint8_t(ways[i]->at(scales)[scale_at]);
        scale[i] = std::exp2(code - 127) / double(norm);
        value[i] = double(gg::decode(Format::e4m3, uint8_t(ways[i]->at(tensor)[at]))) * scale[i];
      }
      const std::string name = tensor == Tensor::d ? "D, " : "D_col, ";
      if (!(scale[0] == scale[1] || scale[0] == 2 * scale[1] || scale[1] == 2 * scale[0]))
        differ(buffers, name + "the scale of " + place(row, col), scale[1], scale[0]);
      const double bound =
          (std::fabs(value[0]) + std::fabs(value[1])) * (0x1p-4 + 0x1p-8) + (scale[0] + scale[1]) * 0x1p-10;
      if (!(std::fabs(value[0] - value[1]) <= bound))
        differ(buffers, name + place(row, col), value[1], value[0]);
    }
  };
  for_each_row(p, [&](size_t, int64_t row) {
    compare(Tensor::d, Tensor::sfd_row, row);
    compare(Tensor::d_col, Tensor::sfd_col, row);
  });
  for (int group = 0; group < p.groups(); ++group) {
    float want, is;
    std::memcpy(&want, unfused.at(Tensor::amax).data() + size_t(group) * sizeof want, sizeof want);
    std::memcpy(&is, fused.at(Tensor::amax).data() + size_t(group) * sizeof is, sizeof is);
    if (!(is == want || std::fabs(is - want) <= 0x1p-7f * std::fabs(want)))
      differ(buffers, gg::format("amax of group %d", group), is, want);
  }
}

gg::Setup setup() {
  gg::Setup setup;
  setup.request.formats.d = Format::e4m3;
  setup.request.b_layout = gg::BLayout::nk;
  setup.host_offsets = false;
  setup.m_multiple = kTile;
  setup.request.epilogue = {
      .op = gg::Operator::quant, .amax = true, .sfd_row = true, .sfd_col = true, .norm_const = 1};
  return setup;
}

const bool known = add(quant_comparison("07o", "07o_quantized", launch_07o));

}  // namespace

Comparison quant_comparison(const char* option, const char* chapter, Launch fused) {
  return {.option = option,
          .chapter = chapter,
          .setup = setup(),
          .sets = "prefill,skewed,decode,moe",
          .fused = fused,
          .unfused = launch_unfused,
          .require_equal = require_equal};
}
