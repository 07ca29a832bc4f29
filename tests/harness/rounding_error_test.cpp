// SPDX-License-Identifier: MIT
//
// The table of errors in chapter 08c's README is what its numbers give today.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "common/harness/base/random.h"
#include "common/kernel/block_scales.h"
#include "tests/process.h"

namespace gg {
namespace {

constexpr int kCount = 640000;

// The harness's normal numbers; with `outliers`, one in 256 is 16 times larger.
std::vector<float> numbers_of(bool outliers) {
  std::vector<float> numbers(kCount);
  for (uint64_t i = 0; i < kCount; ++i) {
    numbers[i] = random_value({}, i, normal_quantiles());
    if (outliers && hash(1, 0, i) % 256 == 0) numbers[i] *= 16;
  }
  return numbers;
}

double rounding_error(BlockFormat format, const std::vector<float>& numbers) {
  const BlockScaling scaling = block_scaling(format);
  std::vector<uint8_t> elements(numbers.size());
  double errors = 0, squares = 0;
  for (size_t first = 0; first < numbers.size(); first += size_t(scaling.block)) {
    const uint32_t scale =
        quantise_block(scaling, &numbers[first], scaling.block, elements.data(), int64_t(first));
    for (size_t i = first; i < first + size_t(scaling.block); ++i) {
      const double error =
          dequantised(scaling, load_code(elements.data(), scaling.element, int64_t(i)), scale) -
          double(numbers[i]);
      errors += error * error;
      squares += double(numbers[i]) * double(numbers[i]);
    }
  }
  return std::sqrt(errors / squares);
}

TEST(RoundingError, IsWhatTheReadmeSays) {
  const std::string readme = testing_gg::text_of(std::string(GG_SOURCE_DIR) + "/chapters/08c_fp4/README.md");
  const std::vector<float> plain = numbers_of(false), outliers = numbers_of(true);
  for (const BlockFormat format :
       {BlockFormat::mxfp4, BlockFormat::fp4_ue8m0_16, BlockFormat::nvfp4, BlockFormat::mxfp8}) {
    char cells[64];
    std::snprintf(cells, sizeof cells, "| %.1f %% | %.1f %% |", 100 * rounding_error(format, plain),
                  100 * rounding_error(format, outliers));
    const size_t row = readme.find(std::string("| `") + block_scaling(format).name + "`");
    ASSERT_NE(row, std::string::npos);
    const std::string text = readme.substr(row, readme.find('\n', row) - row);
    EXPECT_NE(text.find(cells), std::string::npos) << text << "\nshould end in " << cells;
  }
}

}  // namespace
}  // namespace gg
