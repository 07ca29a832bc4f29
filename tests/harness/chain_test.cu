// SPDX-License-Identifier: MIT
//
// Launches that follow each other: one that begins before the one before it has ended must wait
// before it reads or writes. The emulator makes it begin early; a GPU may be lucky.

#include <gtest/gtest.h>

#include "common/harness/harness.cuh"
#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"
#include "common/harness/verify/chain.h"
#include "common/kernel/ptx/warpgroup.cuh"

namespace gg {
namespace {

enum class Waits { first_of_all, after_the_offsets, before_it_writes, never };

// One element of D to a thread, one row to a block.
template <Waits WAITS, class D = bf16>
__global__ void multiply(const bf16* a, const bf16* b, D* d, const int32_t* offsets, int n, int k) {
  ptx::griddepcontrol_launch_dependents();
  if (WAITS == Waits::first_of_all) ptx::griddepcontrol_wait();
  const int row = int(blockIdx.x), col = int(threadIdx.x);
  int g = 0;
  while (row >= offsets[g + 1]) ++g;
  if (WAITS == Waits::after_the_offsets) ptx::griddepcontrol_wait();
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += __bfloat162float(a[int64_t(row) * k + i]) *
           __bfloat162float(b[int64_t(g) * n * k + int64_t(i) * n + col]);
  }
  if (WAITS == Waits::before_it_writes) ptx::griddepcontrol_wait();
  d[int64_t(row) * n + col] = D(sum);
}

class Chain : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    try {
      choose_device(emulator() ? Options::Device::emulator : Options::Device::gpu,
                    {.id = "chain", .arch = Arch::sm_90a});
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  template <class D>
  static std::optional<Failure> check(void (*kernel)(const bf16*, const bf16*, D*, const int32_t*, int,
                                                     int)) {
    gg::Setup setup;
    setup.request.formats.d = format_of<D>();
    const auto machine = emulator() ? emulator_machine() : gpu_machine();
    const Launch launch = [kernel](const Problem& p, cudaStream_t stream) {
      cudaLaunchAttribute attribute = {};
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config = {};
      config.gridDim = unsigned(p.m_total());
      config.blockDim = unsigned(p.n());
      config.stream = stream;
      config.attrs = &attribute;
      config.numAttrs = 1;
      GG_CHECK(cudaLaunchKernelEx(&config, kernel, p.a<bf16>(), p.b<bf16>(), p.d<D>(),
                                  p.offsets().as<int32_t>(), p.n(), p.k()));
    };
    return check_chain(*machine, setup, launch, {{5, 0, 33}, {32}, {32}}, 1, GetParam());
  }
};

TEST_P(Chain, ThatWaitsIsRight) { EXPECT_FALSE(check(multiply<Waits::first_of_all>)); }

TEST_P(Chain, ThatReadsTooEarlyIsFound) {
  if (!emulator()) GTEST_SKIP() << "only the emulator makes the next launch begin early";
  for (const auto kernel :
       {multiply<Waits::never>, multiply<Waits::before_it_writes>, multiply<Waits::after_the_offsets>}) {
    const std::optional<Failure> failure = check(kernel);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->symptom, Symptom::overlapping) << failure->sentence;
  }
}

// D of another type cannot be the next launch's A: the offsets are left.
TEST_P(Chain, OfTheOffsetsAloneIsRight) { EXPECT_FALSE((check(multiply<Waits::first_of_all, float>))); }

TEST_P(Chain, OfTheOffsetsAloneFindsWhoReadsThemTooEarly) {
  if (!emulator()) GTEST_SKIP() << "only the emulator makes the next launch begin early";
  for (const auto kernel : {multiply<Waits::never, float>, multiply<Waits::before_it_writes, float>}) {
    const std::optional<Failure> failure = check(kernel);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->symptom, Symptom::overlapping) << failure->sentence;
    EXPECT_NE(failure->sentence.find("a launch whose offsets the one before wrote"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Launches, Chain, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "FromAGraph" : "OneByOne");
});

}  // namespace
}  // namespace gg
