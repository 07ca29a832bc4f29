// SPDX-License-Identifier: MIT
//
// An expert's offset into B computed in 32 bits: `smoke` and `edges` pass it, the set `far` does
// not. Its experts lie 2^31 elements apart; on the emulator what lies between them takes no memory.

#include <gtest/gtest.h>

#include "common/harness/machine/emulator.h"
#include "common/harness/problem/shapes.h"
#include "common/harness/run/device.h"
#include "common/harness/verify/trials.h"

namespace gg {
namespace far_b {

template <class Index>
__global__ void multiply(const bf16* a, const bf16* b, bf16* d, const int32_t* offsets, int n, int k,
                         int64_t b_group_stride) {
  const int group = int(blockIdx.y), row = offsets[group] + int(blockIdx.x);
  if (row >= offsets[group + 1]) return;
  // The planted bug, where Index is narrow.
  const bf16* b_first = b + Index(group) * Index(b_group_stride);
  for (int col = int(threadIdx.x); col < n; col += int(blockDim.x)) {
    float sum = 0;
    for (int i = 0; i < k; ++i)
      sum += __bfloat162float(a[int64_t(row) * k + i]) * __bfloat162float(b_first[int64_t(i) * n + col]);
    d[int64_t(row) * n + col] = __float2bfloat16(sum);
  }
}

template <class Index>
void launch(const Problem& p, cudaStream_t stream) {
  const auto rows = unsigned(p.rows());  // enough for each group
  multiply<Index><<<dim3(rows, unsigned(p.groups())), 64, 0, stream>>>(
      p.a<bf16>(), p.b<bf16>(), p.d<bf16>(), p.offsets().as<int32_t>(), p.n(), p.k(), p.b_group_stride());
  GG_CHECK(cudaGetLastError());
}

class FarB : public testing::Test {
 protected:
  void SetUp() override {
    const Chapter any = {.id = "far_b_test"};
    try {
      choose_device(emulator() ? Options::Device::emulator : Options::Device::gpu, any);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    machine_ = emulator() ? emulator_machine() : gpu_machine();
  }

  // The verdict on a launch on all problems of a set; empty: all are right.
  std::string said_on(const char* set, const Launch& launch) {
    gg::Setup setup;
    setup.host_offsets = false;
    for (const Shape& shape : shape_set(set, {})) {
      const CheckResult result = check_problem(*machine_, setup, launch, shape, {0, true, is_edges(set)});
      if (result.failure) return result.failure->sentence;
    }
    return "";
  }

  std::unique_ptr<Machine> machine_;
};

TEST_F(FarB, ShowsAnOffsetOf32BitsThatNoOtherSetShows) {
  EXPECT_EQ(said_on("smoke", launch<uint32_t>), "");
  if (emulator()) {  // it ends in the guard behind B
    EXPECT_EXIT(said_on("far", launch<uint32_t>), testing::ExitedWithCode(int(Exit::device_error)),
                "past the end of B ");
    return;
  }
  const std::string said = said_on("far", launch<uint32_t>);
  EXPECT_NE(said.find(" elements are wrong; the first"), std::string::npos) << "passed: " << said;
}

// A negative offset reads outside of B, which ends a context on a GPU.
TEST_F(FarB, ShowsASignedOffsetOf32Bits) {
  if (!emulator()) GTEST_SKIP() << "on the emulator alone";
  EXPECT_EQ(said_on("smoke", launch<int32_t>), "");
  EXPECT_EXIT(said_on("far", launch<int32_t>), testing::ExitedWithCode(int(Exit::device_error)), "multiply");
}

TEST_F(FarB, PassesAKernelThatIsRight) { EXPECT_EQ(said_on("far", launch<int64_t>), ""); }

// Its memory is reserved and given back: there is as much free as before, and room for more
// than there is.
TEST_F(FarB, TakesNoMemoryOnTheEmulator) {
  if (!emulator()) GTEST_SKIP() << "on the emulator alone";
  const size_t before = machine_->free_bytes(), much = before + (size_t(1) << 33);
  EXPECT_TRUE(machine_->reserves());
  void* const reserved = machine_->reserve(much, "a test");
  EXPECT_EQ(machine_->free_bytes(), before);
  uint32_t value = 7;
  char* const last = static_cast<char*>(reserved) + much - 4;
  machine_->upload(last, &value, 4);
  value = 0;
  machine_->download(&value, last, 4);
  EXPECT_EQ(value, 7u);
  machine_->release(reserved);
  EXPECT_EQ(machine_->free_bytes(), before);
}

}  // namespace far_b
}  // namespace gg
