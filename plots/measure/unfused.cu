// SPDX-License-Identifier: MIT
//
// gg-unfused: what chapters 08e to 09c do in their epilogue, as a kernel for each step that reads D
// from memory and writes it back, in bf16 between steps. It is there to be counted beside them:
//
//   build/bin/gg-emu --report build/bin/gg-unfused [--groups G] [--m M] [--n N]
//
// Groups have M rows each, a multiple of 32; N is a multiple of 256. Every thread has 16 bytes at a
// time, and each kernel reads and writes every byte once. Steps check themselves: the scales of all
// blocks, and the outputs of gates and ups before and behind their transform, on the host.

#include <cstdio>
#include <cstring>
#include <vector>

#include "common/kernel/check.h"
#include "common/kernel/epilogue.cuh"
#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/error.h"

namespace {

using gg::Format;
namespace ep = gg::epilogue;

// Threads of a block; bf16 of a thread; values that share a scale.
constexpr int kThreads = 256, kAtOnce = 8, kBlock = 32;
constexpr float kNorm = 0.01f;

struct Sizes {
  int groups = 3, m = 256, n = 256;
  int64_t elements() const { return int64_t(groups) * m * n; }
};

__device__ void unpack(const uint4& words, float (&v)[kAtOnce]) {
  const uint32_t all[] = {words.x, words.y, words.z, words.w};
  for (int i = 0; i < kAtOnce; ++i) v[i] = ep::float_of(i % 2 ? all[i / 2] & 0xFFFF0000 : all[i / 2] << 16);
}

// v = alpha * D * prob, D [rows,N].
__global__ void __launch_bounds__(kThreads)
    scale(uint4* d, const float* alpha, const float* prob, int64_t units, int m, int n) {
  const int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (unit >= units) return;
  const int row = int(unit * kAtOnce / n);
  float v[kAtOnce];
  unpack(d[unit], v);
  for (float& each : v) each = ep::value_of(each, alpha[row / m], prob[row]);
  uint32_t words[4];
  for (int i = 0; i < 4; ++i) words[i] = ep::word_of<Format::bf16>(v + 2 * i);
  d[unit] = {words[0], words[1], words[2], words[3]};
}

// amax[g] = the largest magnitude.
__global__ void __launch_bounds__(kThreads)
    largest(const uint4* d, float* amax, int64_t units, int m, int n) {
  // N % 256 == 0: a warp has one row.
  const int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  float v[kAtOnce];
  unpack(unit < units ? d[unit] : uint4{}, v);
  uint32_t most = 0;
  for (const float each : v) most = ep::larger(most, ep::magnitude(each));
  most = __reduce_max_sync(~0u, ep::amax_with(0, most));
  const int group = int(unit * kAtOnce / n) / m;
  if (threadIdx.x % 32 == 0 && unit < units) atomicMax(reinterpret_cast<int*>(amax) + group, int(most));
}

// Rows in blocks of 32: four threads have one.
__global__ void __launch_bounds__(kThreads)
    quantise_rows(const uint4* d, uint2* codes, uint8_t* scales, int64_t units, int n) {
  const int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  float v[kAtOnce];
  unpack(unit < units ? d[unit] : uint4{}, v);
  uint32_t most = 0;
  for (const float each : v) most = ep::larger(most, ep::magnitude(each));
  for (int step = 1; step < 4; step *= 2) most = ep::larger(most, __shfl_xor_sync(~0u, most, step));
  const uint32_t code = ep::scale_code(most, ep::reciprocal_for(Format::e4m3), kNorm);
  for (float& each : v) each *= ep::factor_of_code(code, kNorm);
  if (unit >= units) return;
  codes[unit] = {ep::word_of<Format::e4m3>(v), ep::word_of<Format::e4m3>(v + 4)};
  const int row = int(unit * kAtOnce / n), block = int(unit * kAtOnce % n) / kBlock;
  if (unit % 4 == 0) scales[gg::ScaleLayout{0, n / kBlock}.offset(row, block)] = uint8_t(code);
}

// Columns in blocks of 32: a thread has four columns of 32 rows.
__global__ void __launch_bounds__(kThreads)
    quantise_columns(const uint2* d, uint32_t* codes, uint8_t* scales, int rows, int n) {
  const int thread = int(blockIdx.x) * kThreads + int(threadIdx.x), fours = n / 4;
  const int block = thread / fours, four = thread % fours;
  if (block >= rows / kBlock) return;
  uint2 words[kBlock];
  uint32_t most[4] = {};
#pragma unroll
  for (int r = 0; r < kBlock; ++r) {
    words[r] = d[int64_t(block * kBlock + r) * fours + four];
    const uint32_t bits[] = {words[r].x << 16, words[r].x, words[r].y << 16, words[r].y};
    for (int c = 0; c < 4; ++c) most[c] = ep::larger(most[c], bits[c] & 0x7FFF0000);
  }
  float factors[4];
  for (int c = 0; c < 4; ++c) {
    const uint32_t code = ep::scale_code(most[c], ep::reciprocal_for(Format::e4m3), kNorm);
    factors[c] = ep::factor_of_code(code, kNorm);
    scales[gg::ScaleLayout{n, rows / kBlock}.offset(4 * four + c, block)] = uint8_t(code);
  }
#pragma unroll
  for (int r = 0; r < kBlock; ++r) {
    const uint32_t bits[] = {words[r].x << 16, words[r].x & 0xFFFF0000, words[r].y << 16,
                             words[r].y & 0xFFFF0000};
    float v[4];
    for (int c = 0; c < 4; ++c) v[c] = ep::float_of(bits[c]) * factors[c];
    codes[int64_t(block * kBlock + r) * fours + four] = ep::word_of<Format::e4m3>(v);
  }
}

__device__ uint4 packed(const float* v) {
  uint32_t words[4];
  for (int i = 0; i < 4; ++i) words[i] = ep::word_of<Format::bf16>(v + 2 * i);
  return {words[0], words[1], words[2], words[3]};
}

// C = alpha * C, [rows,N].
__global__ void __launch_bounds__(kThreads)
    scale_sums(uint4* c, const float* alpha, int64_t units, int m, int n) {
  const int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (unit >= units) return;
  float v[kAtOnce];
  unpack(c[unit], v);
  for (float& each : v) each = ep::scaled(each, alpha[int(unit * kAtOnce / n) / m]);
  c[unit] = packed(v);
}

// x [rows,N/2] of C's gates and ups. `units`: of x.
__global__ void __launch_bounds__(kThreads)
    glu(const uint4* c, const float* prob, uint4* x, int64_t units, int n) {
  const int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (unit >= units) return;
  const int row = int(unit * kAtOnce / (n / 2)), column = int(unit * kAtOnce % (n / 2));
  const int64_t first = int64_t(row) * n;
  float gate[kAtOnce], up[kAtOnce];
  unpack(c[(first + ep::gate_column(column)) / kAtOnce], gate);
  unpack(c[(first + ep::up_column(column)) / kAtOnce], up);
  for (int i = 0; i < kAtOnce; ++i) gate[i] = ep::swiglu(gate[i], up[i], prob[row]);
  x[unit] = packed(gate);
}

// Y of each 16 x, where x was. `blocks`: of 16.
__global__ void __launch_bounds__(kThreads) hadamard(uint4* x, int64_t blocks) {
  const int64_t block = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (block >= blocks) return;
  const uint4 low = x[2 * block], high = x[2 * block + 1];
  const uint32_t words[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  float y[ep::HADAMARD_SIZE];
  ep::hadamard_butterfly(words, y);
  x[2 * block] = packed(y);
  x[2 * block + 1] = packed(y + kAtOnce);
}

// `largest` of [rows,N/2], as a kernel that is counted by itself.
__global__ void __launch_bounds__(kThreads)
    largest_output(const uint4* d, float* amax, int64_t units, int m, int n) {
  const int64_t unit = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  float v[kAtOnce];
  unpack(unit < units ? d[unit] : uint4{}, v);
  uint32_t most = 0;
  for (const float each : v) most = ep::larger(most, ep::magnitude(each));
  const int group = int(unit * kAtOnce / (n / 2)) / m;
  most = __reduce_max_sync(~0u, ep::amax_with(0, most));  // rows of a group: N / 2 % 128 == 0
  if (threadIdx.x % 32 == 0 && unit < units) atomicMax(reinterpret_cast<int*>(amax) + group, int(most));
}

template <class T>
struct Buffer {
  explicit Buffer(const std::vector<T>& host) : count(host.size()) {
    GG_CHECK(cudaMalloc(&data, count * sizeof(T)));
    GG_CHECK(cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data); }
  std::vector<T> read() const {
    std::vector<T> host(count);
    GG_CHECK(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  T* data = nullptr;
  size_t count;
};

// Whole numbers: v has no rounding, so every scale is what the host works out.
float sum_at(int64_t element) { return float(int(element * 37 % 253) - 126); }
float alpha_of(int g) { return g % 2 ? 2.0f : 1.0f; }
float prob_of(int row) { return row % 3 ? 1.0f : 0.5f; }

void require_scales(const Sizes& s, const std::vector<uint8_t>& rows, const std::vector<uint8_t>& columns) {
  const gg::ScaleLayout by_row{s.groups * s.m, s.n / kBlock}, by_column{s.n, s.groups * s.m / kBlock};
  std::vector<float> of_rows(rows.size()), of_columns(columns.size());
  for (int64_t i = 0; i < s.elements(); ++i) {
    const int row = int(i / s.n), column = int(i % s.n);
    const float v = std::fabs(ep::value_of(sum_at(i), alpha_of(row / s.m), prob_of(row)));
    float& in_row = of_rows[size_t(by_row.offset(row, column / kBlock))];
    float& in_column = of_columns[size_t(by_column.offset(column, row / kBlock))];
    in_row = std::fmax(in_row, v), in_column = std::fmax(in_column, v);
  }
  const auto wrong = [](const std::vector<float>& most, const std::vector<uint8_t>& codes) {
    size_t count = 0;
    for (size_t i = 0; i < codes.size(); ++i)
      count += codes[i] != ep::scale_code(ep::bits_of(most[i]), ep::reciprocal_for(Format::e4m3), kNorm);
    return count;
  };
  const size_t bad = wrong(of_rows, rows) + wrong(of_columns, columns);
  if (bad) throw gg::Error(gg::Exit::check_failed, gg::format("%zu scales are wrong", bad));
}

float decoded(uint16_t code) { return float(gg::decode(Format::bf16, code)); }
float rounded(float v) { return decoded(uint16_t(gg::encode(Format::bf16, double(v)))); }

// Whole numbers again: C has no rounding. An output may be the neighbour of the host's, whose
// sigma is exact.
void require_outputs(const Sizes& s, const std::vector<uint16_t>& x, const std::vector<uint16_t>& y) {
  size_t bad = 0;
  const int half = s.n / 2;
  for (size_t i = 0; i < x.size(); ++i) {
    const int row = int(i) / half, column = int(i) % half;
    const auto c = [&](int at) { return alpha_of(row / s.m) * sum_at(int64_t(row) * s.n + at); };
    const float want = ep::swiglu(c(ep::gate_column(column)), c(ep::up_column(column)), prob_of(row));
    bad += !(std::fabs(decoded(x[i]) - want) <= std::fabs(want) * 0x1p-8f);
  }
  for (size_t first = 0; first < x.size(); first += ep::HADAMARD_SIZE) {
    float v[ep::HADAMARD_SIZE];
    for (int i = 0; i < ep::HADAMARD_SIZE; ++i) v[i] = decoded(x[first + size_t(i)]);
    ep::hadamard_butterfly(v);
    for (int i = 0; i < ep::HADAMARD_SIZE; ++i) bad += decoded(y[first + size_t(i)]) != rounded(v[i]);
  }
  if (bad) throw gg::Error(gg::Exit::check_failed, gg::format("%zu outputs are wrong", bad));
}

void run_gated(const Sizes& s, const std::vector<uint16_t>& sums, const Buffer<float>& alphas,
               const Buffer<float>& probs) {
  const Buffer<uint16_t> c(sums), d(std::vector<uint16_t>(sums.size() / 2));
  const Buffer<float> amax(std::vector<float>(size_t(s.groups), -HUGE_VALF));
  const int64_t units = s.elements() / kAtOnce, outputs = units / 2;
  const auto blocks = [](int64_t threads) { return unsigned((threads + kThreads - 1) / kThreads); };
  auto *const in = reinterpret_cast<uint4*>(c.data), *const out = reinterpret_cast<uint4*>(d.data);
  scale_sums<<<blocks(units), kThreads>>>(in, alphas.data, units, s.m, s.n);
  glu<<<blocks(outputs), kThreads>>>(in, probs.data, out, outputs, s.n);
  GG_CHECK(cudaGetLastError());
  const std::vector<uint16_t> x = d.read();
  hadamard<<<blocks(outputs / 2), kThreads>>>(out, outputs / 2);
  largest_output<<<blocks(outputs), kThreads>>>(out, amax.data, outputs, s.m, s.n);
  GG_CHECK(cudaGetLastError());
  require_outputs(s, x, d.read());
}

void run(const Sizes& s) {
  std::vector<uint16_t> sums(size_t(s.elements()));
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] = uint16_t(gg::encode(Format::bf16, double(sum_at(int64_t(i)))));
  std::vector<float> alpha, prob;
  for (int g = 0; g < s.groups; ++g) alpha.push_back(alpha_of(g));
  for (int row = 0; row < s.groups * s.m; ++row) prob.push_back(prob_of(row));
  const size_t row_bytes = size_t(gg::ScaleLayout{s.groups * s.m, s.n / kBlock}.bytes());
  const size_t column_bytes = size_t(gg::ScaleLayout{s.n, s.groups * s.m / kBlock}.bytes());
  const Buffer<uint16_t> d(sums);
  const Buffer<float> alphas(alpha), probs(prob), amax(std::vector<float>(alpha.size(), -HUGE_VALF));
  const Buffer<uint8_t> by_row(std::vector<uint8_t>(sums.size())),
      by_column(std::vector<uint8_t>(sums.size()));
  const Buffer<uint8_t> sfd_row(std::vector<uint8_t>(row_bytes, 0)),
      sfd_col(std::vector<uint8_t>(column_bytes, 0));
  const int64_t units = s.elements() / kAtOnce;
  const auto blocks = [](int64_t threads) { return unsigned((threads + kThreads - 1) / kThreads); };
  auto* const whole = reinterpret_cast<uint4*>(d.data);
  scale<<<blocks(units), kThreads>>>(whole, alphas.data, probs.data, units, s.m, s.n);
  largest<<<blocks(units), kThreads>>>(whole, amax.data, units, s.m, s.n);
  quantise_rows<<<blocks(units), kThreads>>>(whole, reinterpret_cast<uint2*>(by_row.data), sfd_row.data,
                                             units, s.n);
  quantise_columns<<<blocks(s.elements() / (4 * kBlock)), kThreads>>>(
      reinterpret_cast<uint2*>(d.data), reinterpret_cast<uint32_t*>(by_column.data), sfd_col.data,
      s.groups * s.m, s.n);
  GG_CHECK(cudaGetLastError());
  require_scales(s, sfd_row.read(), sfd_col.read());
  run_gated(s, sums, alphas, probs);
  std::printf("gg-unfused: G=%d M=%d N=%d: eight launches\n", s.groups, s.m, s.n);
}

Sizes sizes_of(int argc, char** argv) {
  Sizes s;
  for (int i = 1; i < argc; i += 2) {
    int* const value = !std::strcmp(argv[i], "--groups") ? &s.groups
                       : !std::strcmp(argv[i], "--m")    ? &s.m
                       : !std::strcmp(argv[i], "--n")    ? &s.n
                                                         : nullptr;
    GG_REQUIRE(value && i + 1 < argc, "%s: --groups G, --m M and --n N are accepted", argv[i]);
    *value = std::atoi(argv[i + 1]);
  }
  GG_REQUIRE(s.groups > 0 && s.m > 0 && s.m % kBlock == 0 && s.n > 0 && s.n % 256 == 0,
             "G=%d M=%d N=%d: M is a multiple of 32, N of 256", s.groups, s.m, s.n);
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(sizes_of(argc, argv));
    return 0;
  } catch (const gg::Error& error) {
    std::fprintf(stderr, "gg-unfused: %s\n", error.what());
    return int(error.code);
  }
}
