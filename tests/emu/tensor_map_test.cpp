// SPDX-License-Identifier: MIT
//
// Tensor maps: the emulator's cuTensorMapEncodeTiled against what a driver on an H200 answered, and
// reading maps back.

#include <gtest/gtest.h>

#include <cstring>

#include "common/emu/core/units/tensor_map_format.h"
#include "common/emu/cudart/encode_map.h"
#include "common/harness/base/npy.h"
#include "tensor_map_cases.h"

namespace {

using gg::emu::decode_tensor_map;
using gg::emu::encode_tensor_map;
using gg::emu::MapType;
using gg::emu::TensorMap;
using testing_gg::MapCase;

CUresult encode(const MapCase& c, int capability, CUtensorMap* map, std::string* why) {
  TensorMap made;
  const CUresult result =
      gg::emu::encode_tiled({uint32_t(c.type), c.rank, reinterpret_cast<void*>(c.address), c.dims, c.strides,
                             c.box, c.element_strides, uint32_t(c.interleave), uint32_t(c.swizzle),
                             uint32_t(c.promotion), uint32_t(c.fill)},
                            capability, &made, why);
  if (result == CUDA_SUCCESS) encode_tensor_map(made, reinterpret_cast<uint8_t*>(map));
  return result;
}

std::string text(const MapCase& c) {
  std::string t = "type " + std::to_string(c.type) + " rank " + std::to_string(c.rank) + " interleave " +
                  std::to_string(c.interleave) + " swizzle " + std::to_string(c.swizzle) + " fill " +
                  std::to_string(c.fill);
  for (int i = 0; i < 5; ++i) {
    t += "; " + std::to_string(c.dims[i]) + " box " + std::to_string(c.box[i]) + " step " +
         std::to_string(c.element_strides[i]);
    if (i > 0) t += " stride " + std::to_string(c.strides[i - 1]);
  }
  return t;
}

TEST(TensorMap, AnswersAsADriverDoes) {
  const gg::NpyArray answers = gg::read_npy(std::string(GG_SOURCE_DIR) + "/tests/emu/h200/tensor_maps.npy");
  ASSERT_EQ(answers.type, "<u8");
  ASSERT_EQ(answers.elements(), testing_gg::kMapCases);
  testing_gg::MapCases cases;
  int encoded = 0, wrong = 0;
  for (int i = 0; i < testing_gg::kMapCases && wrong < 10; ++i) {
    uint64_t expected;
    std::memcpy(&expected, answers.data.data() + size_t(i) * 8, 8);
    const MapCase c = cases(uint64_t(i));
    CUtensorMap map;
    std::string why;
    const CUresult result = encode(c, 90, &map, &why);
    encoded += result == CUDA_SUCCESS;
    if (testing_gg::answer_of(result, map) == expected) continue;
    ++wrong;
    ADD_FAILURE() << "case " << i << ": " << text(c) << "\n  driver "
                  << (expected < 1000 ? "refuses" : "encodes") << ", we "
                  << (result == CUDA_SUCCESS ? "encode" : "refuse: " + why);
  }
  EXPECT_GT(encoded, 1000);
}

TEST(TensorMap, DecodesWhatItEncoded) {
  testing_gg::MapCases cases;
  for (int i = 0; i < 2000; ++i) {
    const MapCase c = cases(uint64_t(i));
    CUtensorMap map, again;
    std::string why;
    if (encode(c, 90, &map, &why) != CUDA_SUCCESS) continue;
    const TensorMap m = decode_tensor_map(reinterpret_cast<uint8_t*>(&map));
    EXPECT_FALSE(m.unknown);
    EXPECT_EQ(gg::emu::tensor_map_problem(m, 90), "");
    EXPECT_EQ(m.address, c.address);
    EXPECT_EQ(m.rank, int(c.rank));
    for (int k = 0; k < m.rank; ++k) {
      EXPECT_EQ(m.dims[k], c.dims[k]);
      EXPECT_EQ(uint32_t(m.box[k]), c.box[k]);
      if (k > 0) {
        EXPECT_EQ(m.strides[k], c.strides[k - 1]);
      }
    }
    encode_tensor_map(m, reinterpret_cast<uint8_t*>(&again));
    EXPECT_EQ(std::memcmp(&map, &again, sizeof map), 0);
  }
}

TEST(TensorMap, ReadsZerosAsTheLeastMap) {  // what tensormap.replace may start from
  const uint8_t zeros[gg::emu::kTensorMapBytes] = {};
  const TensorMap m = decode_tensor_map(zeros);
  EXPECT_FALSE(m.unknown);
  EXPECT_EQ(m.rank, 1);
  EXPECT_EQ(m.dims[0], 1u);
  EXPECT_EQ(m.box[0], 1);
  EXPECT_EQ(m.type, MapType::u8);
  uint8_t again[gg::emu::kTensorMapBytes];
  encode_tensor_map(m, again);
  EXPECT_EQ(std::memcmp(zeros, again, sizeof zeros), 0);
}

TEST(TensorMap, SeesUnknownBits) {
  uint8_t bytes[gg::emu::kTensorMapBytes] = {};
  bytes[127] = 1;
  EXPECT_TRUE(decode_tensor_map(bytes).unknown);
  bytes[127] = 0;
  bytes[8] = 1;  // bit 0 of word 1
  EXPECT_TRUE(decode_tensor_map(bytes).unknown);
}

MapCase plain() {
  MapCase c;
  c.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  c.address = 0x7F0000000000;
  c.dims[0] = 256, c.dims[1] = 128;
  c.strides[0] = 512;
  c.box[0] = 64, c.box[1] = 32;
  c.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  return c;
}

TEST(TensorMap, CountsABoxWithItsRest) {
  MapCase c = plain();
  c.box[1] = 15;
  c.element_strides[1] = 2;
  CUtensorMap map;
  std::string why;
  ASSERT_EQ(encode(c, 90, &map, &why), CUDA_SUCCESS) << why;
  const TensorMap m = decode_tensor_map(reinterpret_cast<uint8_t*>(&map));
  EXPECT_EQ(m.box_elements(0), 64);
  EXPECT_EQ(m.box_elements(1), 8);
  EXPECT_EQ(m.box_bytes(), 64 * 2 * 8);
  EXPECT_EQ(m.span_bytes(), 128);
  EXPECT_EQ(gg::emu::describe_tensor_map(m),
            "bf16 256 x 128, strides 512 bytes, box 64 x 15, element strides 1 x 2, swizzle 128B");
}

TEST(TensorMap, SaysWhyItRefuses) {
  const auto why_not = [](auto change, int capability = 90) {
    MapCase c = plain();
    change(c);
    CUtensorMap map;
    std::string why;
    return encode(c, capability, &map, &why) == CUDA_SUCCESS ? "accepted" : why;
  };
  EXPECT_EQ(why_not([](MapCase&) {}), "accepted");
  EXPECT_EQ(why_not([](MapCase& c) { c.strides[0] = 520; }),
            "the stride of dimension 1 is 520 bytes, not a multiple of 16 below 2^40");
  EXPECT_EQ(why_not([](MapCase& c) { c.box[0] = 72; }),
            "box 0 is 144 bytes, more than the 128 of its swizzle");
  EXPECT_EQ(why_not([](MapCase& c) { c.box[0] = 60; }), "box 0 is 120 bytes, not a multiple of 16");
  EXPECT_EQ(why_not([](MapCase& c) { c.box[1] = 257; }), "box or element stride 1 is too large");
  EXPECT_EQ(why_not([](MapCase& c) { c.address += 8; }), "its address is not a multiple of 16 bytes");
  EXPECT_EQ(why_not([](MapCase& c) { c.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B; }),
            "elements of type b4x16 want compute capability 10.0");
}

TEST(TensorMap, MarksMapsOfBlackwell) {
  MapCase c = plain();
  CUtensorMap map;
  std::string why;
  ASSERT_EQ(encode(c, 100, &map, &why), CUDA_SUCCESS) << why;
  TensorMap m = decode_tensor_map(reinterpret_cast<uint8_t*>(&map));
  EXPECT_TRUE(m.sm100);
  EXPECT_FALSE(m.sm100_wide);
  c.dims[1] = 1024;
  ASSERT_EQ(encode(c, 100, &map, &why), CUDA_SUCCESS) << why;
  m = decode_tensor_map(reinterpret_cast<uint8_t*>(&map));
  EXPECT_TRUE(m.sm100_wide);
  c = plain();
  c.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
  c.box[0] = 256;
  ASSERT_EQ(encode(c, 100, &map, &why), CUDA_SUCCESS) << why;
  EXPECT_EQ(decode_tensor_map(reinterpret_cast<uint8_t*>(&map)).type, MapType::b4x16);
  for (const auto& [type, expected] :
       {std::pair(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, MapType::b4x16_p64),
        std::pair(CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, MapType::b6x16_p32)}) {
    c = plain();
    c.type = type;
    c.dims[0] = 256;
    c.box[0] = 128;
    ASSERT_EQ(encode(c, 100, &map, &why), CUDA_SUCCESS) << why;
    m = decode_tensor_map(reinterpret_cast<uint8_t*>(&map));
    EXPECT_EQ(m.type, expected);
    EXPECT_FALSE(m.unknown);
    EXPECT_EQ(encode(c, 90, &map, &why), CUDA_ERROR_INVALID_VALUE);
    c.box[0] = 64;
    EXPECT_EQ(encode(c, 100, &map, &why), CUDA_ERROR_INVALID_VALUE);
    EXPECT_NE(why.find("a box 0 of 128"), std::string::npos) << why;
  }
}

TEST(TensorMap, SwizzlesOfWiderUnits) {
  const struct {
    CUtensorMapSwizzle swizzle;
    int atomicity;
    const char* text;
  } cases[] = {{CU_TENSOR_MAP_SWIZZLE_128B, 0, "swizzle 128B"},
               {CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B, 1, "swizzle 128B of 32B"},
               {CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B, 3, "swizzle 128B of 64B"}};
  for (const auto& [swizzle, atomicity, name] : cases) {
    MapCase c = plain();
    c.swizzle = swizzle;
    CUtensorMap map;
    std::string why;
    ASSERT_EQ(encode(c, 100, &map, &why), CUDA_SUCCESS) << why;
    const TensorMap m = decode_tensor_map(reinterpret_cast<uint8_t*>(&map));
    EXPECT_FALSE(m.unknown);
    EXPECT_EQ(m.swizzle, 3);
    EXPECT_EQ(m.atomicity, atomicity);
    EXPECT_EQ(m.span_bytes(), 128);
    EXPECT_EQ(gg::emu::describe_tensor_map(m),
              std::string("bf16 256 x 128, strides 512 bytes, box 64 x 32, ") + name);
    EXPECT_EQ(encode(c, 90, &map, &why), atomicity ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
    c.box[0] = 72;
    EXPECT_EQ(encode(c, 100, &map, &why), CUDA_ERROR_INVALID_VALUE);
  }
  MapCase c = plain();
  c.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B;
  CUtensorMap map;
  std::string why;
  EXPECT_EQ(encode(c, 100, &map, &why), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(why, "the emulator does not know swizzles that flip 8 bytes");
}

}  // namespace
