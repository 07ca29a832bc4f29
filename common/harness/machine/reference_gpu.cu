// SPDX-License-Identifier: MIT
//
// A plain kernel: shared-memory tiles, no tricks, the same `judge` as the CPU. Its
// sums are in double precision, or in single where the limit says that they are exact,
// which is quicker. Elements are floats, or doubles where they have block scales, with
// which they may leave the range of a float. It is itself checked against the CPU
// reference by tests/harness/reference_gpu_test.cu.

#include <algorithm>
#include <type_traits>

#include "common/harness/machine/overflow.h"
#include "common/harness/machine/reference_gpu.cuh"

namespace gg {
namespace {

constexpr int kSlice = 16;  // of K
constexpr int kThreads = 256;

// A thread's outputs: kSide rows and as many columns, 16 apart. More of them mean fewer elements to
// fetch for each product. Single precision leaves registers for more.
template <class Sum, class Value>
constexpr int kSide = std::is_same_v<Sum, float>&& std::is_same_v<Value, float> ? 8 : 4;
template <class Sum, class Value>
constexpr int kTile = 16 * kSide<Sum, Value>;  // outputs of a block: kTile x kTile

constexpr int kInfiniteRatio = 0x7F800000;

struct DeviceComparison {  // Comparison, as atomics can update it
  unsigned long long failures, first, beyond_exact, beyond_2048;
  // Bits of non-negative floats, whose order is that of their bits.
  int worst_ratio_bits, worst_factor_bits;
};

// An element of A (row `outer`) or B (column `outer`), with its scale if Value is double.
template <class Value>
__device__ Value value_of(const void* tensor, Format format, int64_t element, const uint8_t* scales,
                          Format scale, const ScaleRegion& region, int outer, int k, int scale_block) {
  const float value = decode(format, load_code(tensor, format, element));
  if constexpr (std::is_same_v<Value, float>) {
    return value;
  } else {
    return double(value) * double(decode(scale, scales[region.at(outer, k / scale_block)]));
  }
}

// Loads a slice of a tile: rows of A and columns of B. Elements beyond the matrices are 0.
template <int AT_ONCE, class Value, int TILE>
__device__ void load_slice(Value (&a_tile)[kSlice][TILE + 1], Value (&b_tile)[kSlice][TILE],
                           const Matrices& matrices, const Formats& formats, const Group& group, int row0,
                           int col0, int k0) {
  const Format scale = formats.scaling().scale;
#pragma unroll AT_ONCE
  for (int each = 0; each < kSlice * TILE / kThreads; ++each) {
    const int i = each * kThreads + int(threadIdx.x);
    const bool mk = !group.a_transposed;
    const int r = mk ? i / kSlice : i % TILE, ka = mk ? i % kSlice : i / TILE;
    const bool a_in = row0 + r < group.m && k0 + ka < group.k;
    // Neighbouring threads read neighbours of either.
    a_tile[ka][r] =
        a_in ? value_of<Value>(matrices.a, formats.a,
                               group.a.offset + (row0 + r) * group.a_m_step() + (k0 + ka) * group.a_k_step(),
                               matrices.sfa, scale, group.sfa, row0 + r, k0 + ka, group.scale_block)
             : Value(0);
    const bool nk = group.b_layout == BLayout::nk;
    const int c = nk ? i / kSlice : i % TILE, kb = nk ? i % kSlice : i / TILE;
    const bool b_in = col0 + c < group.n && k0 + kb < group.k;
    b_tile[kb][c] =
        b_in ? value_of<Value>(matrices.b, formats.b,
                               group.b.offset + (k0 + kb) * group.b_k_step() + (col0 + c) * group.b_n_step(),
                               matrices.sfb, scale, group.sfb, col0 + c, k0 + kb, group.scale_block)
             : Value(0);
  }
}

// Two blocks to a multiprocessor: left to itself ptxas makes room for four, and spills. Sum is
// float where the limit is exact. BF16: A and B are, as in all large sets, and D was not added to.
template <class Sum, class Value, bool BF16 = false>
__global__ __launch_bounds__(kThreads, 2) void reference_kernel(Matrices matrices, const Group* groups,
                                                                Limit limit, DeviceComparison* result) {
  constexpr int SIDE = kSide<Sum, Value>, TILE = kTile<Sum, Value>;
  constexpr int AT_ONCE = BF16 ? 2 : 1;  // loads under way, as registers allow
  __shared__ Value a_tile[kSlice][TILE + 1];
  __shared__ Value b_tile[kSlice][TILE];
  constexpr bool kExact = std::is_same_v<Sum, float>;
  limit.exact = kExact;  // no news, but now the compiler knows it and leaves half of `judge` out
  Formats formats = matrices.formats;
  if (BF16) {  // no news either, but its loads need no branches
    formats.a = formats.b = Format::bf16;
    matrices.accumulates = false;
  }
  const Group group = groups[blockIdx.y];
  const int tiles_n = (group.n + TILE - 1) / TILE;
  const int tiles = (group.m + TILE - 1) / TILE * tiles_n;
  const int tx = int(threadIdx.x) % 16, ty = int(threadIdx.x) / 16;
  unsigned long long failures = 0, first = ~0ull, beyond_exact = 0, beyond_2048 = 0;
  float worst_ratio = 0, worst_factor = 0;

  for (int tile = int(blockIdx.x); tile < tiles; tile += int(gridDim.x)) {
    const int row0 = tile / tiles_n * TILE, col0 = tile % tiles_n * TILE;
    Sum sum[SIDE][SIDE] = {};
    // Sums of |a*b|, for a limit that is not exact: without scales float is enough.
    Value size[SIDE][SIDE] = {};
    for (int k0 = 0; k0 < group.k; k0 += kSlice) {
      load_slice<AT_ONCE>(a_tile, b_tile, matrices, formats, group, row0, col0, k0);
      __syncthreads();
      for (int kk = 0; kk < kSlice; ++kk) {
        Value a[SIDE], b[SIDE];
#pragma unroll
        for (int i = 0; i < SIDE; ++i) a[i] = a_tile[kk][ty + 16 * i];
#pragma unroll
        for (int j = 0; j < SIDE; ++j) b[j] = b_tile[kk][tx + 16 * j];
#pragma unroll
        for (int i = 0; i < SIDE; ++i) {
#pragma unroll
          for (int j = 0; j < SIDE; ++j) {
            sum[i][j] = fma(Sum(a[i]), Sum(b[j]), sum[i][j]);
            if (!kExact) size[i][j] += fabs(a[i] * b[j]);
          }
        }
      }
      __syncthreads();
    }
    // One copy of `judge`, which sees the sums pass by: an index known only when run would put them
    // into local memory.
#pragma unroll 1
    for (int i = 0; i < SIDE * SIDE; ++i) {
      const int row = row0 + ty + i / SIDE * 16, col = col0 + tx + i % SIDE * 16;
      if (row < group.m && col < group.n) {
        const int64_t element = group.d.offset + row * group.d.ld + col;
        const double before = matrices.before(element), reference = sum[0][0] + before;
        const Verdict verdict =
            judge(load_code(matrices.d, limit.format, element), reference, size[0][0] + fabs(before), limit);
        if (!verdict.ok) {
          ++failures;
          first = min(first, static_cast<unsigned long long>(element));
        }
        const bool overflows = !kExact && may_overflow(size[0][0]);
        // One that may overflow is judged anew below.
        worst_ratio = fmaxf(worst_ratio, overflows ? INFINITY : verdict.ratio);
        worst_factor = fmaxf(worst_factor, verdict.factor);
        beyond_exact += fabs(reference) > two_to_the(format_info(limit.format).mantissa_bits + 1);
        beyond_2048 += fabs(reference) > 2048;
      }
#pragma unroll
      for (int next = 1; next < SIDE * SIDE; ++next) {
        sum[(next - 1) / SIDE][(next - 1) % SIDE] = sum[next / SIDE][next % SIDE];
        size[(next - 1) / SIDE][(next - 1) % SIDE] = size[next / SIDE][next % SIDE];
      }
    }
  }
  if (failures) {
    atomicAdd(&result->failures, failures);
    atomicMin(&result->first, first);
  }
  if (beyond_exact) atomicAdd(&result->beyond_exact, beyond_exact);
  if (beyond_2048) atomicAdd(&result->beyond_2048, beyond_2048);
  atomicMax(&result->worst_ratio_bits, __float_as_int(worst_ratio));
  atomicMax(&result->worst_factor_bits, __float_as_int(worst_factor));
}

// Adds what that kernel found of failures up anew, where sums overflow: a thread has an element,
// and the sum of its terms of each sign. There are too few registers for it above, and nobody has
// such operands but in files.
__global__ void overflow_kernel(Matrices matrices, const Group* groups, Limit limit,
                                DeviceComparison* result) {
  const Group group = groups[blockIdx.y];
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < int64_t(group.m) * group.n;
       i += step) {
    const int row = int(i / group.n), col = int(i % group.n);
    const int64_t element = group.d.offset + row * group.d.ld + col;
    const Terms terms = terms_of(matrices, group, row, col);
    const Verdict verdict = judge(load_code(matrices.d, limit.format, element), terms.sum, terms.magnitude(),
                                  limit, terms.overflow());
    atomicMax(&result->worst_ratio_bits, __float_as_int(verdict.ratio));
    atomicMax(&result->worst_factor_bits, __float_as_int(verdict.factor));
    if (verdict.ok) continue;
    atomicAdd(&result->failures, 1ull);
    atomicMin(&result->first, static_cast<unsigned long long>(element));
  }
}

}  // namespace

Comparison compare_on_gpu(const Matrices& matrices, const std::vector<Group>& groups, const Limit& limit,
                          cudaStream_t stream) {
  Comparison comparison;
  const bool scaled = matrices.formats.has_scales();
  const int tile = limit.exact && !scaled ? kTile<float, float> : kTile<double, double>;
  int64_t most_tiles = 0;
  for (const Group& group : groups) {
    comparison.checked += int64_t(group.m) * group.n;
    most_tiles = std::max(most_tiles, int64_t((group.m + tile - 1) / tile) * ((group.n + tile - 1) / tile));
  }
  if (comparison.checked == 0) return comparison;
  Group* device_groups = nullptr;
  DeviceComparison* device_result = nullptr;
  DeviceComparison result = {0, ~0ull, 0, 0, 0, 0};
  GG_CHECK(cudaMallocAsync(&device_groups, groups.size() * sizeof(Group), stream));
  GG_CHECK(cudaMallocAsync(&device_result, sizeof result, stream));
  GG_CHECK(cudaMemcpyAsync(device_groups, groups.data(), groups.size() * sizeof(Group), cudaMemcpyDefault,
                           stream));
  GG_CHECK(cudaMemcpyAsync(device_result, &result, sizeof result, cudaMemcpyDefault, stream));
  const dim3 grid(unsigned(std::min<int64_t>(most_tiles, 1 << 20)), unsigned(groups.size()));
  const bool bf16 =
      matrices.formats.a == Format::bf16 && matrices.formats.b == Format::bf16 && !matrices.accumulates;
  const auto kernel =
      scaled        ? (limit.exact ? reference_kernel<float, double> : reference_kernel<double, double>)
      : limit.exact ? (bf16 ? reference_kernel<float, float, true> : reference_kernel<float, float>)
                    : (bf16 ? reference_kernel<double, float, true> : reference_kernel<double, float>);
  kernel<<<grid, kThreads, 0, stream>>>(matrices, device_groups, limit, device_result);
  GG_CHECK(cudaGetLastError());
  const auto fetch = [&] {
    GG_CHECK(cudaMemcpyAsync(&result, device_result, sizeof result, cudaMemcpyDefault, stream));
    GG_CHECK(cudaStreamSynchronize(stream));
  };
  fetch();
  if (result.worst_ratio_bits == kInfiniteRatio) {
    result = {0, ~0ull, result.beyond_exact, result.beyond_2048, 0, 0};
    GG_CHECK(cudaMemcpyAsync(device_result, &result, sizeof result, cudaMemcpyDefault, stream));
    overflow_kernel<<<dim3(1024, grid.y), kThreads, 0, stream>>>(matrices, device_groups, limit,
                                                                 device_result);
    GG_CHECK(cudaGetLastError());
    fetch();
  }
  GG_CHECK(cudaFreeAsync(device_groups, stream));
  GG_CHECK(cudaFreeAsync(device_result, stream));
  GG_CHECK(cudaStreamSynchronize(stream));
  comparison.failures = int64_t(result.failures);
  comparison.first = result.failures ? int64_t(result.first) : -1;
  comparison.beyond_exact = int64_t(result.beyond_exact);
  comparison.beyond_2048 = int64_t(result.beyond_2048);
  memcpy(&comparison.worst_ratio, &result.worst_ratio_bits, sizeof(float));
  memcpy(&comparison.worst_factor, &result.worst_factor_bits, sizeof(float));
  return comparison;
}

}  // namespace gg
