// SPDX-License-Identifier: MIT
//
// nvcuda::wmma, the tensor cores of CUDA C++: every shape and type of elements, both layouts of
// each matrix, with rows that are padded, from global and from shared memory. Whole numbers: every
// sum is exact.

#include <mma.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "tests/isa/probe.cuh"

namespace probe {
namespace wmma_fragments {

using namespace nvcuda;
using f16 = __half;
using bf16 = __nv_bfloat16;

constexpr int kWarps = 2;
constexpr int kPadding = 32;  // elements behind each row or column in memory

// [probe]
template <class T>
__device__ void round_to_format(T&) {}
__device__ void round_to_format(float& x) { x = wmma::__float_to_tf32(x); }

// Each warp: D[M,N] = 2 * (A[M,K] * B[K,N] + C[M,N]) + 1, A through shared memory. `Element` is
// what the fragments say that they hold, T what memory holds.
template <class Element, class T, class AccC, class AccD, int M, int N, int K, class LayoutA, class LayoutB>
__global__ void multiply(const T* a, const T* b, const AccC* c, AccD* d, wmma::layout_t layout_c,
                         wmma::layout_t layout_d) {
  constexpr bool kRowsA = std::is_same_v<LayoutA, wmma::row_major>,
                 kRowsB = std::is_same_v<LayoutB, wmma::row_major>;
  constexpr int kStrideA = (kRowsA ? K : M) + kPadding, kLinesA = kRowsA ? M : K;
  constexpr int kStrideB = (kRowsB ? N : K) + kPadding, kLinesB = kRowsB ? K : N;
  constexpr int kSizeA = kStrideA * kLinesA, kSizeB = kStrideB * kLinesB;
  constexpr int kSizeD = (M + kPadding) * (N + kPadding);
  __shared__ alignas(128) T tile[kWarps][kSizeA];
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  for (int i = lane; i < kSizeA; i += 32) tile[warp][i] = a[warp * kSizeA + i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, M, N, K, Element, LayoutA> a_frag;
  wmma::fragment<wmma::matrix_b, M, N, K, Element, LayoutB> b_frag;
  wmma::fragment<wmma::accumulator, M, N, K, AccC> c_frag;
  wmma::fragment<wmma::accumulator, M, N, K, AccD> d_frag;
  wmma::load_matrix_sync(a_frag, tile[warp], kStrideA);
  wmma::load_matrix_sync(b_frag, b + warp * kSizeB, kStrideB);
  wmma::load_matrix_sync(c_frag, c + warp * kSizeD, (layout_c == wmma::mem_row_major ? N : M) + kPadding,
                         layout_c);
  for (int i = 0; i < a_frag.num_elements; ++i) round_to_format(a_frag.x[i]);
  for (int i = 0; i < b_frag.num_elements; ++i) round_to_format(b_frag.x[i]);
  wmma::mma_sync(d_frag, a_frag, b_frag, c_frag);
  for (int i = 0; i < d_frag.num_elements; ++i) d_frag.x[i] = AccD(2) * d_frag.x[i] + AccD(1);
  wmma::store_matrix_sync(d + warp * kSizeD, d_frag, (layout_d == wmma::mem_row_major ? N : M) + kPadding,
                          layout_d);
}

// Each warp: D[8,8] = C + A[8,32] * B[32,8] of 4-bit numbers, and of bits, A and B 8 words
// of 32 elements.
template <class Element>
__global__ void multiply_small(const uint32_t* a, const uint32_t* b, int* d) {
  const int warp = int(threadIdx.x) / 32;
  wmma::fragment<wmma::matrix_a, 8, 8, 32, Element, wmma::row_major> a_frag;
  wmma::fragment<wmma::matrix_b, 8, 8, 32, Element, wmma::col_major> b_frag;
  wmma::fragment<wmma::accumulator, 8, 8, 32, int> c_frag;
  wmma::load_matrix_sync(a_frag, a + warp * 32, 32);
  wmma::load_matrix_sync(b_frag, b + warp * 32, 32);
  wmma::load_matrix_sync(c_frag, d + warp * 64, 8, wmma::mem_row_major);
  wmma::mma_sync(c_frag, a_frag, b_frag, c_frag);
  wmma::store_matrix_sync(d + warp * 64, c_frag, 8, wmma::mem_row_major);
}
__global__ void multiply_bits(const uint32_t* a, const uint32_t* b, int* d) {
  const int warp = int(threadIdx.x) / 32;
  wmma::fragment<wmma::matrix_a, 8, 8, 128, wmma::experimental::precision::b1, wmma::row_major> a_frag;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, wmma::experimental::precision::b1, wmma::col_major> b_frag;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int> c_frag;
  wmma::load_matrix_sync(a_frag, a + warp * 32, 128);
  wmma::load_matrix_sync(b_frag, b + warp * 32, 128);
  wmma::load_matrix_sync(c_frag, d + warp * 64, 8, wmma::mem_col_major);
  wmma::bmma_sync(c_frag, a_frag, b_frag, c_frag, wmma::experimental::bmmaBitOpAND);
  wmma::store_matrix_sync(d + warp * 64, c_frag, 8, wmma::mem_col_major);
}

// Each warp: C + A * B of bytes with sums that leave the range of 32 bits, or stay at its ends.
__global__ void multiply_far(const int8_t* a, const int8_t* b, int* d, bool saturates) {
  const int warp = int(threadIdx.x) / 32;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a_frag;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b_frag;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> c_frag;
  wmma::load_matrix_sync(a_frag, a + warp * 256, 16);
  wmma::load_matrix_sync(b_frag, b + warp * 256, 16);
  wmma::load_matrix_sync(c_frag, d + warp * 256, 16, wmma::mem_row_major);
  if (saturates)
    wmma::mma_sync(c_frag, a_frag, b_frag, c_frag, true);
  else
    wmma::mma_sync(c_frag, a_frag, b_frag, c_frag, false);
  wmma::store_matrix_sync(d + warp * 256, c_frag, 16, wmma::mem_row_major);
}
// [/probe]

int whole(size_t i, int salt, int least, int most) {
  return least + int((uint32_t(i) * 2654435761u + uint32_t(salt) * 40503u) >> 9) % (most - least + 1);
}
template <class T>
std::vector<T> numbers(size_t count, int salt, int least, int most) {
  std::vector<T> values;
  for (size_t i = 0; i < count; ++i) values.push_back(T(float(whole(i, salt, least, most))));
  return values;
}
template <class T>
double value(T x) {
  return double(float(x));
}

class Wmma : public Probe {};

// One form: numbers are small enough for every sum to be exact in the accumulator's type.
template <class Element, class T, class AccC, class AccD, int M, int N, int K, class LayoutA, class LayoutB>
void expect_product(int least, int most) {
  constexpr bool kRowsA = std::is_same_v<LayoutA, wmma::row_major>,
                 kRowsB = std::is_same_v<LayoutB, wmma::row_major>;
  constexpr size_t kStrideA = (kRowsA ? K : M) + kPadding, kStrideB = (kRowsB ? N : K) + kPadding;
  constexpr size_t kSizeA = kStrideA * (kRowsA ? M : K), kSizeB = kStrideB * (kRowsB ? K : N);
  constexpr size_t kSizeD = (M + kPadding) * (N + kPadding);
  const std::vector<T> a = numbers<T>(kWarps * kSizeA, 1, least, most),
                       b = numbers<T>(kWarps * kSizeB, 2, least, most);
  const std::vector<AccC> c = numbers<AccC>(kWarps * kSizeD, 3, -40, 40);
  for (const int layouts : {0, 1, 2, 3}) {
    const bool c_rows = layouts & 1, d_rows = layouts & 2;
    const Array<T> a_array(a), b_array(b);
    const Array<AccC> c_array(c);
    const Array<AccD> d_array(numbers<AccD>(kWarps * kSizeD, 4, 99, 99));
    multiply<Element, T, AccC, AccD, M, N, K, LayoutA, LayoutB>
        <<<1, kWarps * 32>>>(a_array.get(), b_array.get(), c_array.get(), d_array.get(),
                             c_rows ? wmma::mem_row_major : wmma::mem_col_major,
                             d_rows ? wmma::mem_row_major : wmma::mem_col_major);
    std::vector<AccD> want = numbers<AccD>(kWarps * kSizeD, 4, 99, 99);
    const auto at = [](bool rows, size_t i, size_t j) {
      return rows ? i * (N + kPadding) + j : j * (M + kPadding) + i;
    };
    for (size_t warp = 0; warp < kWarps; ++warp) {
      for (size_t i = 0; i < M; ++i) {
        for (size_t j = 0; j < N; ++j) {
          double sum = value(c[warp * kSizeD + at(c_rows, i, j)]);
          for (size_t k = 0; k < K; ++k) {
            sum += value(a[warp * kSizeA + (kRowsA ? i * kStrideA + k : k * kStrideA + i)]) *
                   value(b[warp * kSizeB + (kRowsB ? k * kStrideB + j : j * kStrideB + k)]);
          }
          want[warp * kSizeD + at(d_rows, i, j)] = AccD(float(2 * sum + 1));
        }
      }
    }
    const std::vector<AccD> got = d_array.read();
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(value(got[i]), value(want[i])) << "word " << i << ", layouts " << layouts;
  }
}

template <class Element, class T, class AccC, class AccD, int M, int N, int K>
void expect_layouts(int least, int most) {
  using Row = wmma::row_major;
  using Column = wmma::col_major;
  expect_product<Element, T, AccC, AccD, M, N, K, Row, Row>(least, most);
  expect_product<Element, T, AccC, AccD, M, N, K, Row, Column>(least, most);
  expect_product<Element, T, AccC, AccD, M, N, K, Column, Row>(least, most);
  expect_product<Element, T, AccC, AccD, M, N, K, Column, Column>(least, most);
}
template <class T, class AccC, class AccD>
void expect_shapes(int least, int most) {
  expect_layouts<T, T, AccC, AccD, 16, 16, 16>(least, most);
  expect_layouts<T, T, AccC, AccD, 32, 8, 16>(least, most);
  expect_layouts<T, T, AccC, AccD, 8, 32, 16>(least, most);
}

TEST_F(Wmma, HalvesIntoFloats) { expect_shapes<f16, float, float>(-32, 31); }
TEST_F(Wmma, HalvesIntoHalves) { expect_shapes<f16, f16, f16>(-6, 6); }
TEST_F(Wmma, HalvesFromOneAccumulatorIntoAnother) {
  expect_layouts<f16, f16, f16, float, 16, 16, 16>(-6, 6);
  expect_layouts<f16, f16, float, f16, 16, 16, 16>(-6, 6);
  expect_layouts<f16, f16, float, f16, 8, 32, 16>(-6, 6);
}
TEST_F(Wmma, Bfloats) { expect_shapes<bf16, float, float>(-32, 31); }
TEST_F(Wmma, SignedBytes) { expect_shapes<signed char, int, int>(-128, 127); }
TEST_F(Wmma, UnsignedBytes) { expect_shapes<unsigned char, int, int>(0, 255); }
TEST_F(Wmma, Tf32) { expect_layouts<wmma::precision::tf32, float, float, float, 16, 16, 8>(-500, 500); }
TEST_F(Wmma, Doubles) { expect_layouts<double, double, double, double, 8, 8, 4>(-5000, 5000); }

std::vector<uint32_t> words(size_t count, uint32_t salt) {
  std::vector<uint32_t> values;
  for (uint32_t i = 0; i < count; ++i) values.push_back((i + salt) * 2654435761u ^ (i * salt) << 13);
  return values;
}

// `bits` bits of each element; k elements of A's row i meet those of B's column j.
template <class Product>
void expect_bits(const std::vector<int>& got, const std::vector<int>& c, const std::vector<uint32_t>& a,
                 const std::vector<uint32_t>& b, int bits, bool columns, Product product) {
  const int each = 32 / bits;
  for (size_t warp = 0; warp < kWarps; ++warp) {
    for (size_t i = 0; i < 8; ++i) {
      for (size_t j = 0; j < 8; ++j) {
        const size_t at = warp * 64 + (columns ? j * 8 + i : i * 8 + j);
        int sum = c[at];
        for (int k = 0; k < 4 * each; ++k) {
          const auto code = [&](const std::vector<uint32_t>& m, size_t line) {
            return m[warp * 32 + line * 4 + size_t(k / each)] >> (k % each * bits) & ((1u << bits) - 1);
          };
          sum += product(code(a, i), code(b, j));
        }
        ASSERT_EQ(got[at], sum) << "warp " << warp << " row " << i << " column " << j;
      }
    }
  }
}

TEST_F(Wmma, FourBits) {
  const std::vector<uint32_t> a = words(kWarps * 32, 1), b = words(kWarps * 32, 2);
  const std::vector<int> c = numbers<int>(kWarps * 64, 5, -900, 900);
  const Array<uint32_t> a_array(a), b_array(b);
  const Array<int> as_signed(c), as_unsigned(c);
  multiply_small<wmma::experimental::precision::s4>
      <<<1, kWarps * 32>>>(a_array.get(), b_array.get(), as_signed.get());
  multiply_small<wmma::experimental::precision::u4>
      <<<1, kWarps * 32>>>(a_array.get(), b_array.get(), as_unsigned.get());
  expect_bits(as_signed.read(), c, a, b, 4, false,
              [](uint32_t x, uint32_t y) { return (int(x ^ 8) - 8) * (int(y ^ 8) - 8); });
  expect_bits(as_unsigned.read(), c, a, b, 4, false, [](uint32_t x, uint32_t y) { return int(x * y); });
}

TEST_F(Wmma, SingleBits) {
  const std::vector<uint32_t> a = words(kWarps * 32, 3), b = words(kWarps * 32, 4);
  const std::vector<int> c = numbers<int>(kWarps * 64, 6, -900, 900);
  const Array<uint32_t> a_array(a), b_array(b);
  const Array<int> both(c);
  multiply_bits<<<1, kWarps * 32>>>(a_array.get(), b_array.get(), both.get());
  expect_bits(both.read(), c, a, b, 1, true, [](uint32_t x, uint32_t y) { return int(x & y); });
}

TEST_F(Wmma, SumsWrapOrSaturate) {
  const std::vector<int8_t> a = numbers<int8_t>(kWarps * 256, 7, -128, 127),
                            b = numbers<int8_t>(kWarps * 256, 8, -128, 127);
  constexpr int kMost = std::numeric_limits<int>::max(), kLeast = std::numeric_limits<int>::min();
  std::vector<int> c;
  for (int i = 0; i < kWarps * 256; ++i) c.push_back(i % 3 == 0 ? kMost - i : i % 3 == 1 ? kLeast + i : i);
  for (const bool saturates : {false, true}) {
    const Array<int8_t> a_array(a), b_array(b);
    const Array<int> d_array(c);
    multiply_far<<<1, kWarps * 32>>>(a_array.get(), b_array.get(), d_array.get(), saturates);
    const std::vector<int> got = d_array.read();
    for (size_t i = 0; i < got.size(); ++i) {
      int64_t sum = c[i];
      for (size_t k = 0; k < 16; ++k) sum += a[i / 16 * 16 + k] * b[i / 256 * 256 + i % 16 * 16 + k];
      const int64_t ends = sum > kMost ? kMost : sum < kLeast ? kLeast : sum;
      ASSERT_EQ(got[i], saturates ? int(ends) : int(uint32_t(sum))) << "sum " << i;
    }
  }
}

}  // namespace wmma_fragments
}  // namespace probe
