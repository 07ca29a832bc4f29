// SPDX-License-Identifier: MIT
//
// Arithmetic on the bytes and halves of a word. First the intrinsics of CUDA C++, some of which the
// compiler makes video instructions of. Then video instructions as such, one by one.

#include <cstdint>
#include <cstdlib>

#include "tests/isa/probe.cuh"

namespace probe {
namespace video {

constexpr int kThreads = 128;
using Words = std::vector<uint32_t>;

// Signed or unsigned value of part i of a word's `count` parts.
int part(uint32_t word, int count, int i, bool is_signed) {
  const int bits = 32 / count;
  const uint32_t above = word << (32 - bits * (i + 1));
  return is_signed ? int32_t(above) >> (32 - bits) : int32_t(above >> (32 - bits));
}
template <class Op>
uint32_t each_part(uint32_t a, uint32_t b, int count, bool is_signed, Op op) {
  const int bits = 32 / count;
  uint32_t result = 0;
  for (int i = 0; i < count; ++i) {
    const uint32_t value = uint32_t(op(part(a, count, i, is_signed), part(b, count, i, is_signed)));
    result |= (value & ((1u << bits) - 1)) << (bits * i);
  }
  return result;
}
template <class Op>
uint32_t sum_of_parts(uint32_t a, uint32_t b, int count, bool is_signed, Op op) {
  uint32_t sum = 0;
  for (int i = 0; i < count; ++i)
    sum += uint32_t(op(part(a, count, i, is_signed), part(b, count, i, is_signed)));
  return sum;
}

int absolute_difference(int x, int y) { return std::abs(x - y); }
int saturated(int x, int least, int most) { return x < least ? least : x > most ? most : x; }

class Video : public Probe {
 protected:
  void SetUp() override {
    Probe::SetUp();
    const uint32_t ends[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x80808080, 0x7F7F7F7F, ~0u};
    for (uint32_t i = 0; i < kThreads; ++i) {
      a.push_back(i < 11 ? ends[i] : (i + 1) * 2654435761u);
      b.push_back(i < 121 && i % 3 == 0 ? ends[i % 11] : (i + 7) * 40503u * 9973u);
      c.push_back(i * 0x01234567u);
    }
  }
  template <class Launch, class Expected>
  void expect(const char* what, Launch launch, Expected expected) {
    const Array<uint32_t> a_array(a), b_array(b), out(c);
    launch(a_array.get(), b_array.get(), out.get());
    const Words got = out.read();
    for (size_t i = 0; i < kThreads; ++i) {
      ASSERT_EQ(got[i], expected(a[i], b[i], c[i]))
          << what << " of " << std::hex << a[i] << ", " << b[i] << ", " << c[i];
    }
  }
  Words a, b, c;
};

// A kernel of one expression of the words a, b and c, and a check of it.
#define GG_KERNEL(name, expression)                                                       \
  __global__ void name(const uint32_t* a_words, const uint32_t* b_words, uint32_t* out) { \
    const uint32_t a = a_words[threadIdx.x], b = b_words[threadIdx.x];                    \
    out[threadIdx.x] = expression;                                                        \
  }
#define GG_EXPECT(name, expected)                                                                           \
  expect(                                                                                                   \
      #name, [](const uint32_t* a, const uint32_t* b, uint32_t* out) { name<<<1, kThreads>>>(a, b, out); }, \
      [](uint32_t a, uint32_t b, [[maybe_unused]] uint32_t c) { return uint32_t(expected); })

GG_KERNEL(differences_u4, __vabsdiffu4(a, b))
GG_KERNEL(differences_s4, __vabsdiffs4(a, b))
GG_KERNEL(differences_u2, __vabsdiffu2(a, b))
GG_KERNEL(sad_u4, __vsadu4(a, b))
GG_KERNEL(sad_s4, __vsads4(a, b))
GG_KERNEL(sad_u2, __vsadu2(a, b))
GG_KERNEL(sums_4, __vadd4(a, b))
GG_KERNEL(sums_sat_s4, __vaddss4(a, b))
GG_KERNEL(sums_sat_u2, __vaddus2(a, b))
GG_KERNEL(averages_u4, __vavgu4(a, b))
GG_KERNEL(averages_s2, __vavgs2(a, b))
GG_KERNEL(largest_s4, __vmaxs4(a, b))
GG_KERNEL(least_u2, __vminu2(a, b))
GG_KERNEL(equal_4, __vcmpeq4(a, b))
GG_KERNEL(greater_s2, __vsetgts2(a, b))

TEST_F(Video, Intrinsics) {
  GG_EXPECT(differences_u4, each_part(a, b, 4, false, absolute_difference));
  GG_EXPECT(differences_s4, each_part(a, b, 4, true, absolute_difference));
  GG_EXPECT(differences_u2, each_part(a, b, 2, false, absolute_difference));
  GG_EXPECT(sad_u4, sum_of_parts(a, b, 4, false, absolute_difference));
  GG_EXPECT(sad_s4, sum_of_parts(a, b, 4, true, absolute_difference));
  GG_EXPECT(sad_u2, sum_of_parts(a, b, 2, false, absolute_difference));
  GG_EXPECT(sums_4, each_part(a, b, 4, false, [](int x, int y) { return x + y; }));
  GG_EXPECT(sums_sat_s4, each_part(a, b, 4, true, [](int x, int y) { return saturated(x + y, -128, 127); }));
  GG_EXPECT(sums_sat_u2, each_part(a, b, 2, false, [](int x, int y) { return saturated(x + y, 0, 65535); }));
  GG_EXPECT(averages_u4, each_part(a, b, 4, false, [](int x, int y) { return (x + y + 1) / 2; }));
  GG_EXPECT(averages_s2, each_part(a, b, 2, true, [](int x, int y) { return (x + y + (x + y >= 0)) >> 1; }));
  GG_EXPECT(largest_s4, each_part(a, b, 4, true, [](int x, int y) { return x > y ? x : y; }));
  GG_EXPECT(least_u2, each_part(a, b, 2, false, [](int x, int y) { return x < y ? x : y; }));
  GG_EXPECT(equal_4, each_part(a, b, 4, false, [](int x, int y) { return x == y ? -1 : 0; }));
  GG_EXPECT(greater_s2, each_part(a, b, 2, true, [](int x, int y) { return x > y; }));
}

#define GG_VIDEO(name, instruction)                                                       \
  __global__ void name(const uint32_t* a_words, const uint32_t* b_words, uint32_t* out) { \
    const uint32_t a = a_words[threadIdx.x], b = b_words[threadIdx.x];                    \
    uint32_t c = out[threadIdx.x];                                                        \
    asm(instruction ";" : "+r"(c) : "r"(a), "r"(b));                                      \
    out[threadIdx.x] = c;                                                                 \
  }

// [probe]
GG_VIDEO(vadd4_sat, "vadd4.u32.u32.u32.sat %0, %1, %2, %0")
GG_VIDEO(vsub4_signed, "vsub4.s32.s32.s32 %0, %1, %2, %0")
GG_VIDEO(vsub2_sat, "vsub2.s32.s32.s32.sat %0, %1, %2, %0")
GG_VIDEO(vavrg4_signed, "vavrg4.s32.s32.s32 %0, %1, %2, %0")
GG_VIDEO(vmin4_signed, "vmin4.s32.s32.s32 %0, %1, %2, %0")
GG_VIDEO(vmax2_unsigned, "vmax2.u32.u32.u32 %0, %1, %2, %0")
GG_VIDEO(vset4_less, "vset4.u32.u32.lt %0, %1, %2, %0")
GG_VIDEO(vabsdiff4_add, "vabsdiff4.u32.u32.u32.add %0, %1, %2, %0")
GG_VIDEO(vabsdiff4_low, "vabsdiff4.u32.u32.u32 %0.b10, %1, %2, %0")
GG_VIDEO(vadd4_parts, "vadd4.u32.u32.u32 %0, %1.b0123, %2.b7654, %0")
GG_VIDEO(vadd_wide, "vadd.s32.s32.s32.sat %0, %1, %2")
GG_VIDEO(vadd_parts, "vadd.s32.s32.u32.add %0, %1.b2, %2.h1, %0")
GG_VIDEO(vsub_into_part, "vsub.u32.u32.u32.sat %0.b1, %1.b0, %2.b3, %0")
GG_VIDEO(vabsdiff_min, "vabsdiff.u32.s32.s32.min %0, %1, %2, %0")
GG_VIDEO(vset_add, "vset.s32.s32.ge.add %0, %1.h0, %2.h1, %0")
GG_VIDEO(vshl_wrapped, "vshl.u32.u32.u32.wrap %0, %1, %2.b0")
GG_VIDEO(vshl_clamped, "vshl.u32.u32.u32.clamp %0, %1, %2.b0")
GG_VIDEO(vshr_clamped, "vshr.s32.s32.u32.clamp %0, %1, %2.b0")
// [/probe]

int least(int x, int y) { return x < y ? x : y; }

TEST_F(Video, PartsAtOnce) {
  GG_EXPECT(vadd4_sat, each_part(a, b, 4, false, [](int x, int y) { return saturated(x + y, 0, 255); }));
  GG_EXPECT(vsub4_signed, each_part(a, b, 4, true, [](int x, int y) { return x - y; }));
  GG_EXPECT(vsub2_sat,
            each_part(a, b, 2, true, [](int x, int y) { return saturated(x - y, -32768, 32767); }));
  GG_EXPECT(vavrg4_signed,
            each_part(a, b, 4, true, [](int x, int y) { return (x + y + (x + y >= 0)) >> 1; }));
  GG_EXPECT(vmin4_signed, each_part(a, b, 4, true, least));
  GG_EXPECT(vmax2_unsigned, each_part(a, b, 2, false, [](int x, int y) { return x > y ? x : y; }));
  GG_EXPECT(vset4_less, each_part(a, b, 4, false, [](int x, int y) { return x < y; }));
  GG_EXPECT(vabsdiff4_add, c + sum_of_parts(a, b, 4, false, absolute_difference));
  GG_EXPECT(vabsdiff4_low, (c & 0xFFFF0000u) | (each_part(a, b, 4, false, absolute_difference) & 0xFFFFu));
  GG_EXPECT(vadd4_parts, each_part(__builtin_bswap32(a), b, 4, false, [](int x, int y) { return x + y; }));
}

TEST_F(Video, OnePart) {
  GG_EXPECT(vadd_wide, [&] {
    const int64_t sum = int64_t(int32_t(a)) + int32_t(b);
    return int32_t(sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum);
  }());
  GG_EXPECT(vadd_parts, uint32_t(part(a, 4, 2, true)) + (b >> 16) + c);
  GG_EXPECT(vsub_into_part, [&] {  // an H100 takes a difference below 0 for a large one
    const uint32_t difference = (a & 0xFF) - (b >> 24);
    return (c & 0xFFFF00FFu) | (difference < 255 ? difference : 255) << 8;
  }());
  GG_EXPECT(vabsdiff_min, [&] {
    const int64_t difference = int64_t(int32_t(a)) - int32_t(b);
    const uint32_t distance = uint32_t(difference < 0 ? -difference : difference);
    return distance < c ? distance : c;
  }());
  GG_EXPECT(vset_add, uint32_t(part(a, 2, 0, true) >= part(b, 2, 1, true)) + c);
  GG_EXPECT(vshl_wrapped, a << (b & 31));
  GG_EXPECT(vshl_clamped, (b & 0xFF) > 31 ? 0 : a << (b & 0xFF));
  GG_EXPECT(vshr_clamped, (b & 0xFF) > 31 ? (int32_t(a) < 0 ? ~0u : 0u) : uint32_t(int32_t(a) >> (b & 0xFF)));
}

}  // namespace video
}  // namespace probe
