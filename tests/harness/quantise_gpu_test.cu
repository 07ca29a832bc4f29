// SPDX-License-Identifier: MIT
//
// The helpers of block scaling on a device give the host's bits: every code and the boundaries
// beside it, the places of scales both ways, and blocks of all kinds quantised.

#include <cmath>
#include <limits>

#include "common/harness/base/random.h"
#include "common/kernel/block_scales.h"
#include "tests/isa/probe.cuh"

namespace gg {
namespace quantise_gpu {

constexpr Format kTiny[] = {Format::e4m3, Format::e5m2, Format::e2m1, Format::ue8m0, Format::ue4m3};
constexpr int kWords = 7;  // that `describe` writes

GG_HD uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return value == value ? bits : 0x7FFFFFFF;  // one NaN is as good as another
}

// Stores what a code means, what comes back, where rounding up to the next code begins, and the
// factor that the code gives a block as its scale.
GG_HD void describe(Format format, uint32_t code, uint32_t* out) {
  const uint32_t mask = (1u << format_info(format).bits) - 1;
  const float value = decode(format, code);
  const double middle = (double(value) + double(decode(format, (code + 1) & mask))) / 2;
  out[0] = bits_of(value);
  out[1] = encode(format, double(value));
  out[2] = encode(format, middle);
  out[3] = encode(format, middle * (1 + 0x1p-40));
  out[4] = encode(format, middle * (1 - 0x1p-40));
  out[5] = bits_of(reciprocal_ftz(value));
  const BlockScaling scaling = {"", Format::e2m1, format, 16, E2M1_RECIPROCAL};
  out[6] = bits_of(factor_of_block(scaling, code, 0.75f));
}

__global__ void describe_all(Format format, uint32_t* out) {
  describe(format, threadIdx.x, out + threadIdx.x * kWords);
}

// A thread for each block of K; thread 0 packs and unpacks a copy of the scales.
__global__ void quantise(BlockScaling scaling, const float* values, ScaleLayout layout, int k, float norm,
                         uint8_t* elements, uint8_t* scales) {
  const int64_t row = blockIdx.x, block = threadIdx.x, first = row * k + block * scaling.block;
  const int count = min(scaling.block, int(k - block * scaling.block));
  scales[layout.offset(row, block)] =
      uint8_t(quantise_block(scaling, values + first, count, elements, first, norm));
}
__global__ void there_and_back(ScaleLayout layout, const uint8_t* scales, uint8_t* in_rows, uint8_t* packed) {
  unpack_scales(layout, scales, in_rows);
  pack_scales(layout, in_rows, packed);
}

class QuantiseOnDevice : public probe::Probe {};

TEST_F(QuantiseOnDevice, EveryCodeAndItsBoundaries) {
  for (const Format format : kTiny) {
    const int codes = 1 << format_info(format).bits;
    std::vector<uint32_t> here(size_t(codes * kWords));
    for (int code = 0; code < codes; ++code) describe(format, uint32_t(code), &here[size_t(code * kWords)]);
    const probe::Array<uint32_t> there(std::vector<uint32_t>(here.size()));
    describe_all<<<1, unsigned(codes)>>>(format, there.get());
    EXPECT_EQ(there.read(), here) << format_info(format).name;
  }
}

// Normal numbers of very different sizes, and blocks with what a rule of its own is for.
std::vector<float> values_of(int64_t rows, int k) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Fill normal{Fill::Kind::normal, 0, 5, 0};
  std::vector<float> values(size_t(rows * k));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t row = int64_t(i) / k;
    values[i] = std::ldexp(random_value(normal, i, normal_quantiles()), int(row * 7 % 240) - 120);
  }
  const float special[] = {0.0f, -0.0f, NAN, kInfinity, -kInfinity, 1e-45f, 448.0f, 6.0f, 0x1.fffffep127f};
  for (size_t i = 0; i < std::size(special); ++i) values[i * 3 * size_t(k)] = special[i];
  for (int i = 0; i < k; ++i) values[size_t(k + i)] = 0;  // whole blocks of zeros
  return values;
}

TEST_F(QuantiseOnDevice, RowsOfAllKindsWithTheirScales) {
  constexpr int64_t kRows = 133;  // two atoms, the second one nearly empty
  constexpr int kK = 168;         // the last block is short
  const std::vector<float> values = values_of(kRows, kK);
  const probe::Array<float> values_there(values);
  for (const BlockFormat format : kBlockFormats) {
    for (const float norm : {1.0f, 0.3f}) {
      const BlockScaling scaling = block_scaling(format);
      const ScaleLayout layout{kRows, scale_blocks(kK, scaling.block)};
      std::vector<uint8_t> elements(bytes_of(scaling.element, kRows * kK)), scales(size_t(layout.bytes())),
          in_rows(size_t(kRows * layout.blocks));
      const probe::Array<uint8_t> elements_there(elements), scales_there(scales), in_rows_there(in_rows),
          packed_there(scales);
      quantise<<<unsigned(kRows), unsigned(layout.blocks)>>>(scaling, values_there.get(), layout, kK, norm,
                                                             elements_there.get(), scales_there.get());
      there_and_back<<<1, 1>>>(layout, scales_there.get(), in_rows_there.get(), packed_there.get());
      quantise_rows(scaling, values.data(), kRows, kK, elements.data(), scales.data(), norm);
      unpack_scales(layout, scales.data(), in_rows.data());
      EXPECT_EQ(elements_there.read(), elements) << scaling.name << " " << norm;
      EXPECT_EQ(scales_there.read(), scales) << scaling.name << " " << norm;
      EXPECT_EQ(in_rows_there.read(), in_rows) << scaling.name << " " << norm;
      EXPECT_EQ(packed_there.read(), scales) << scaling.name << " " << norm;
    }
  }
}

}  // namespace quantise_gpu
}  // namespace gg
