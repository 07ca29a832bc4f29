// SPDX-License-Identifier: MIT
//
// mma.sync: fragments filled by hand from the tables of the PTX ISA, so that a wrong layout cannot
// hide behind a load that is wrong in the same way. Whole numbers: every sum is exact.

#include "common/kernel/ptx/mma.cuh"
#include "probe.cuh"

namespace probe {
namespace mma {

constexpr int kWarps = 2;

// [probe]
// Each warp: D[16,16] = C + A[16,16] * B[16,16] in two halves of 8 columns, all row-major; D
// starts as C.
template <class A, class B>
__global__ void multiply(const A* a, const B* b, float* d) {
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  a += warp * 256, b += warp * 256, d += warp * 256;
  gg::ptx::FragmentA<A> a_frag;
  gg::ptx::FragmentB<B> b_frag;
  for (int i = 0; i < 4; ++i) {
    const A* row = a + (g + i % 2 * 8) * 16 + i / 2 * 8 + 2 * t;
    const B* column = b + (2 * t + i % 2 * 8) * 16 + i / 2 * 8 + g;
    const A a_pair[2] = {row[0], row[1]};
    const B b_pair[2] = {column[0], column[16]};
    memcpy(&a_frag.reg[i], a_pair, 4);
    memcpy(&b_frag.reg[i], b_pair, 4);
  }
  for (int half = 0; half < 2; ++half) {
    float* corner = d + g * 16 + half * 8 + 2 * t;
    float acc[4] = {corner[0], corner[1], corner[128], corner[129]};
    gg::ptx::mma_m16n8k16(acc, a_frag, b_frag, half);
    for (int i = 0; i < 4; ++i) corner[i / 2 * 128 + i % 2] = acc[i];
  }
}

// Each warp: D[16,8] = C + A[16,8] * B[8,8] in tf32.
__global__ void multiply_tf32(const uint32_t* a, const uint32_t* b, float* d) {
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  a += warp * 128, b += warp * 64, d += warp * 128;
  float acc[4];
  for (int i = 0; i < 4; ++i) acc[i] = d[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  gg::ptx::mma_m16n8k8_tf32(acc, {a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4]},
                            {b[t * 8 + g], b[(t + 4) * 8 + g]});
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = acc[i];
}
// [/probe]

float whole(size_t i, int salt) {
  return float(int((i * 2654435761u + unsigned(salt) * 40503u) >> 7 & 63) - 32);
}

template <class T>
std::vector<T> numbers(int count, int salt) {
  std::vector<T> values(size_t(count), T{});
  for (size_t i = 0; i < values.size(); ++i) values[i] = gg::from_float<T>(whole(i, salt));
  return values;
}

// Expects the 16 x columns outputs of each warp to be C plus the product of A and B, K deep.
template <class A, class B>
void expect_product(const std::vector<float>& got, const std::vector<float>& c, const std::vector<A>& a,
                    const std::vector<B>& b, int columns, int k) {
  for (int warp = 0; warp < kWarps; ++warp) {
    for (int r = 0; r < 16; ++r) {
      for (int col = 0; col < columns; ++col) {
        float sum = c[size_t((warp * 16 + r) * columns + col)];
        for (int kk = 0; kk < k; ++kk) {
          sum += gg::to_float(a[size_t((warp * 16 + r) * k + kk)]) *
                 gg::to_float(b[size_t((warp * k + kk) * columns + col)]);
        }
        EXPECT_EQ(got[size_t((warp * 16 + r) * columns + col)], sum)
            << "warp " << warp << " row " << r << " col " << col;
      }
    }
  }
}

template <class Types>
class Mma : public Probe {};
template <class A, class B>
struct Pair {
  using First = A;
  using Second = B;
};
using Types = testing::Types<Pair<bf16, bf16>, Pair<f16, f16>, Pair<bf16, f16>, Pair<f16, bf16>>;
TYPED_TEST_SUITE(Mma, Types);

TYPED_TEST(Mma, MultipliesAndAdds) {
  using A = typename TypeParam::First;
  using B = typename TypeParam::Second;
  const std::vector<A> a = numbers<A>(kWarps * 256, 1);
  const std::vector<B> b = numbers<B>(kWarps * 256, 2);
  const std::vector<float> c = numbers<float>(kWarps * 256, 3);
  const Array<A> a_array(a);
  const Array<B> b_array(b);
  const Array<float> d_array(c);
  multiply<<<1, kWarps * 32>>>(a_array.get(), b_array.get(), d_array.get());
  expect_product(d_array.read(), c, a, b, 16, 16);
}

class MmaTf32 : public Probe {};

TEST_F(MmaTf32, MultipliesAndAdds) {
  std::vector<float> a = numbers<float>(kWarps * 128, 4), b = numbers<float>(kWarps * 64, 5);
  // Ten bits after the leading one, as many as tf32 holds.
  for (float& x : a) x += x < 0 ? -1.0f / 16 : 1.0f / 16;
  const std::vector<float> c = numbers<float>(kWarps * 128, 6);
  const Array<float> a_array(a), b_array(b), d_array(c);
  multiply_tf32<<<1, kWarps * 32>>>(reinterpret_cast<const uint32_t*>(a_array.get()),
                                    reinterpret_cast<const uint32_t*>(b_array.get()), d_array.get());
  expect_product(d_array.read(), c, a, b, 8, 8);
}

}  // namespace mma
}  // namespace probe
