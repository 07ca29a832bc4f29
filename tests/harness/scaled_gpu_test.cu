// SPDX-License-Identifier: MIT
//
// A block-scaled chapter in small on a device: gg::run hands a plain kernel both scale tensors and
// the ends of the groups, checks it, and fails its twin that takes scales from the wrong place.

#include <gtest/gtest.h>

#include "common/harness/base/npy.h"
#include "common/harness/harness.cuh"
#include "tests/harness/a_device.h"
#include "tests/process.h"

namespace gg {
namespace scaled_gpu {

struct Codes {  // what the kernel sees of A or B
  const uint8_t *codes, *scales;
};

// One element of D to a thread; `shift` is added to every block of A's scales, which is the bug.
template <class D>
__global__ void grouped_gemm(Codes a, Codes b, D* d, const int32_t* padded_offsets, int n, int k,
                             BlockFormat format, int shift) {
  const BlockScaling scaling = block_scaling(format);
  const int row = int(blockIdx.x), col = int(threadIdx.x);
  int group = 0;
  while (row >= padded_offsets[group]) ++group;
  const ScaleLayout of_a{row + 1, scale_blocks(k, scaling.block)}, of_b{n, of_a.blocks};
  float sum = 0;
  for (int kk = 0; kk < k; ++kk) {
    const int64_t block = kk / scaling.block, block_a = (block + shift) % of_a.blocks;
    const int64_t in_b = (int64_t(group) * n + col) * k + kk;
    const float x = decode(scaling.element, load_code(a.codes, scaling.element, int64_t(row) * k + kk));
    const float y = decode(scaling.element, load_code(b.codes, scaling.element, in_b));
    const float sx = decode(scaling.scale, a.scales[of_a.offset(row, block_a)]);
    const float sy = decode(scaling.scale, b.scales[group * of_b.bytes() + of_b.offset(col, block)]);
    sum += (x * sx) * (y * sy);
  }
  d[int64_t(row) * n + col] = from_float<D>(sum);
}

// Blocks by which the scales of A are wrong. A chapter's launch captures nothing.
int shift_of_scales = 0;

// Does what a chapter's main.cu does.
int chapter(std::vector<std::string> words, int shift) {
  shift_of_scales = shift;
  words.insert(words.begin(), "x_scaled");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const Chapter info = {.id = "x_scaled",
                        .k_multiple = 32,
                        .m_multiple = 8,
                        .pads_groups = true,
                        .multiple_reason = "groups are padded",
                        .sets = {"smoke"},
                        .options = {"format"},
                        .b_layouts = {BLayout::nk}};
  return run<BlockScaled<e4m3, 32, ue8m0, bf16>, BlockScaled<e5m2, 32, ue8m0, bf16>,
             BlockScaled<e2m1, 32, ue8m0, float>, BlockScaled<e2m1, 16, ue4m3, f16>>(
      int(argv.size()), argv.data(), info,
      []<class Element, int BLOCK, class Scale, class D>(BlockScaled<Element, BLOCK, Scale, D>,
                                                         const Problem& p, cudaStream_t stream) {
        // The grid is that of the rows in memory; those behind the last group have nothing to do.
        int64_t rows = 0;
        for (const Group& group : p.layout().groups) rows += group.m;
        grouped_gemm<<<unsigned(rows), unsigned(p.n()), 0, stream>>>(
            Codes{p.a<uint8_t>(), p.scaled().sfa}, Codes{p.b<uint8_t>(), p.scaled().sfb}, p.d<D>(),
            p.offsets().ends(), p.n(), p.k(), p.formats().scaled, shift_of_scales);
        GG_CHECK(cudaGetLastError());
      });
}

class ScaledOnDevice : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
  }
  std::vector<std::string> words(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--format", GetParam(), "--check", "--m", "40,0,16", "--n", "16", "--k", "96"});
    return more;
  }
};

TEST_P(ScaledOnDevice, TheCleanOnePasses) { EXPECT_EQ(chapter(words(), 0), int(Exit::ok)); }

TEST_P(ScaledOnDevice, TheWrongBlockFails) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(chapter(words(), 1), int(Exit::check_failed));
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("A scaled by the block after along K"), std::string::npos) << said;
}

TEST_P(ScaledOnDevice, WhatIsWrittenIsReadAgain) {
  const testing_gg::Folder first, second;
  EXPECT_EQ(chapter(words({"--out", first.path}), 0), int(Exit::ok));
  EXPECT_EQ(chapter({"--format", GetParam(), "--check", "--in", first.path, "--out", second.path}, 0),
            int(Exit::ok));
  for (const char* name : {"a.npy", "b.npy", "sfa.npy", "sfb.npy", "offsets.npy", "d.npy"}) {
    EXPECT_EQ(testing_gg::text_of(first.at(name)), testing_gg::text_of(second.at(name))) << name;
  }
  EXPECT_EQ(read_npy(first.at("offsets.npy")).shape, std::vector<int64_t>{3});
}

TEST_P(ScaledOnDevice, OtherRowCountsAreRefused) {
  EXPECT_EQ(chapter({"--format", GetParam(), "--m", "40,12", "--n", "24", "--k", "160"}, 0),
            int(Exit::bad_input));
}

INSTANTIATE_TEST_SUITE_P(Format, ScaledOnDevice, testing::Values("mxfp8", "mxfp8_e5m2", "mxfp4", "nvfp4"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace scaled_gpu
}  // namespace gg
