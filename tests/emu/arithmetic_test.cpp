// SPDX-License-Identifier: MIT
//
// The emulator's tensor-core sums against what an H200 answered, bit for bit.

#include "common/emu/isa/arithmetic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "common/npy.h"

namespace {

struct Form {
  const char* type;
  int k;
};

class MmaSync : public testing::TestWithParam<Form> {};

uint32_t code_at(const gg::NpyArray& array, size_t index) {
  const size_t bytes = size_t(array.type[2] - '0');
  uint32_t code = 0;
  std::memcpy(&code, array.data.data() + index * bytes, bytes);
  return code;
}

TEST_P(MmaSync, GivesTheBitsOfAnH200) {
  const auto [type, k] = GetParam();
  const std::string stem = gg::format("%s/tests/isa/h200/mma_%s_k%d_", GG_SOURCE_DIR, type, k);
  const gg::NpyArray a = gg::read_npy(stem + "a.npy"), b = gg::read_npy(stem + "b.npy"),
                     c = gg::read_npy(stem + "c.npy"), d = gg::read_npy(stem + "d.npy");
  const gg::emu::Narrow format = gg::emu::narrow(type);
  int compared = 0;
  for (int trial = 0; trial < int(a.shape[0]); ++trial) {
    for (int row = 0; row < 16; ++row) {
      for (int col = 0; col < 8; ++col) {
        gg::emu::Term a_terms[32], b_terms[32];
        for (int kk = 0; kk < k; ++kk) {
          a_terms[kk] = term_of(format, code_at(a, size_t((trial * 16 + row) * k + kk)));
          b_terms[kk] = term_of(format, code_at(b, size_t((trial * k + kk) * 8 + col)));
        }
        const size_t at = size_t((trial * 16 + row) * 8 + col);
        const float accumulator = std::bit_cast<float>(code_at(c, at));
        const float ours = mma_sync_sum(format, a_terms, b_terms, k, accumulator);
        const float silicon = std::bit_cast<float>(code_at(d, at));
        ++compared;
        if (std::isnan(silicon)) {
          EXPECT_TRUE(std::isnan(ours));
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(ours), std::bit_cast<uint32_t>(silicon))
              << "trial " << trial << " row " << row << " column " << col << ": " << ours << " for "
              << silicon;
        }
      }
    }
  }
  EXPECT_GE(compared, 3000);
}

INSTANTIATE_TEST_SUITE_P(H200, MmaSync,
                         testing::Values(Form{"bf16", 16}, Form{"bf16", 8}, Form{"f16", 16}, Form{"f16", 8},
                                         Form{"tf32", 8}, Form{"e4m3", 32}, Form{"e5m2", 32}),
                         [](const auto& info) {
                           return gg::format("%s_k%d", info.param.type, info.param.k);
                         });

}  // namespace
