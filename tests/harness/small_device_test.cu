// SPDX-License-Identifier: MIT
//
// A persistent kernel that is right for the first tile of each block only. A device with a
// block for each tile does not show the mistake. The check on the emulator plays a small device
// too, which does.

#include <gtest/gtest.h>

#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"
#include "common/harness/verify/trials.h"

namespace gg {
namespace small_device {

// A tile is a row of D. B is [G,K,N].
__device__ void multiply_rows(const bf16* a, const bf16* b, bf16* d, const int32_t* offsets, int groups,
                              int n, int k, bool first_only) {
  const int col = int(threadIdx.x), rows = offsets[groups];
  for (int row = int(blockIdx.x); row < rows; row += int(gridDim.x)) {
    int g = 0;
    while (row >= offsets[g + 1]) ++g;
    float sum = 0;
    for (int i = 0; i < k; ++i) {
      sum += __bfloat162float(a[int64_t(row) * k + i]) * __bfloat162float(b[(int64_t(g) * k + i) * n + col]);
    }
    d[int64_t(row) * n + col] = __float2bfloat16(sum);
    if (first_only) break;
  }
}

__global__ void multiply(const bf16* a, const bf16* b, bf16* d, const int32_t* offsets, int groups, int n,
                         int k, bool first_only) {
  multiply_rows(a, b, d, offsets, groups, n, k, first_only);
}

struct Offsets {  // as the host knew them when the launch was made
  int32_t of[5];
};
__global__ void multiply_baked(const bf16* a, const bf16* b, bf16* d, const Offsets offsets, int n, int k) {
  multiply_rows(a, b, d, offsets.of, 4, n, k, false);
}

class SmallDevice : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const Chapter any = {.id = "small_device_test"};
    try {
      choose_device(emulator() ? Options::Device::emulator : Options::Device::gpu, any);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    machine_ = emulator() ? emulator_machine() : gpu_machine();
  }

  CheckResult check(bool first_only, bool replay) {
    gg::Setup setup;
    setup.host_offsets = false;
    const Launch launch = [&](const Problem& p, cudaStream_t stream) {
      const int blocks = multiprocessors();
      multiply<<<unsigned(blocks), unsigned(p.n()), 0, stream>>>(p.a<bf16>(), p.b<bf16>(), p.d<bf16>(),
                                                                 p.offsets().as<int32_t>(), p.groups(), p.n(),
                                                                 p.k(), first_only);
      GG_CHECK(cudaGetLastError());
    };
    return check_problem(*machine_, setup, launch, {{5, 0, 17, 42}, {64}, {128}}, {0, replay, true});
  }

  // Its offsets are in the kernel's parameters.
  CheckResult check_baked(bool replay) {
    gg::Setup setup;
    setup.host_offsets = false;
    const Launch launch = [&](const Problem& p, cudaStream_t stream) {
      Offsets offsets{};
      for (int g = 0; g <= p.groups(); ++g) offsets.of[g] = int32_t(p.layout().offsets[size_t(g)]);
      multiply_baked<<<unsigned(multiprocessors()), unsigned(p.n()), 0, stream>>>(
          p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), offsets, p.n(), p.k());
      GG_CHECK(cudaGetLastError());
    };
    return check_problem(*machine_, setup, launch, {{5, 0, 17, 42}, {64}, {128}}, {0, replay, true});
  }

  static int multiprocessors() {
    int count = 0;
    GG_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    return count;
  }

  std::unique_ptr<Machine> machine_;
};

TEST_P(SmallDevice, IsRightForAKernelThatTakesItsNextTile) {
  const int before = multiprocessors();
  const CheckResult result = check(false, GetParam());
  EXPECT_FALSE(result.failure) << result.failure->sentence;
  EXPECT_EQ(multiprocessors(), before) << "the whole device is there again";
}

TEST_P(SmallDevice, ShowsAKernelThatForgetsItsNextTile) {
  const int before = multiprocessors();
  if (before < 64) GTEST_SKIP() << "the 64 rows want a multiprocessor each";
  const CheckResult result = check(true, GetParam());
  EXPECT_EQ(multiprocessors(), before);
  ASSERT_EQ(result.failure.has_value(), emulator() != nullptr);
  if (!result.failure) return;
  EXPECT_EQ(result.failure->symptom, Symptom::unwritten) << result.failure->sentence;
  EXPECT_NE(result.failure->sentence.find("random data on 2 multiprocessors: "), std::string::npos)
      << result.failure->sentence;
}

// Each launch finds its own offsets on the host. A graph has those of the launch that was recorded.
TEST_P(SmallDevice, ShowsOffsetsThatTheHostPutIntoALaunchWhereItIsReplayed) {
  const bool replay = GetParam();
  const CheckResult result = check_baked(replay);
  ASSERT_EQ(result.failure.has_value(), replay) << (replay ? "passed" : result.failure->sentence);
  if (!replay) return;
  EXPECT_NE(result.failure->sentence.find("graph replay with other offsets, over the previous output"),
            std::string::npos)
      << result.failure->sentence;
}

INSTANTIATE_TEST_SUITE_P(LaunchedAndReplayed, SmallDevice, testing::Bool());

}  // namespace small_device
}  // namespace gg
