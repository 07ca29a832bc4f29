// SPDX-License-Identifier: MIT
//
// Timed launches are checked: the very batches that were timed run again, on every set of buffers.

#include <gtest/gtest.h>

#include "common/harness/bench/timer.h"
#include "common/harness/machine/emulator.h"
#include "common/harness/machine/machine.h"
#include "common/harness/run/device.h"

namespace gg {
namespace timer {

constexpr int kSets = 3;

// Writes its set's number plus one, and something else from launch number `from` on.
__global__ void write(int* out, int* launches, int set, int from) {
  out[set] = atomicAdd(launches, 1) >= from ? -1 : set + 1;
}

class TimedWork : public testing::Test {
 protected:
  void SetUp() override {
    try {
      choose_device(emulator() ? Options::Device::emulator : Options::Device::gpu, {});
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    machine_ = emulator() ? emulator_machine() : gpu_machine();
  }

  // A contestant whose output is wrong from this launch on; `left_out`: a set that it never writes.
  bool right(int from, int left_out = -1) {
    const auto memory = [&](size_t ints) {
      return std::shared_ptr<int>(
          static_cast<int*>(machine_->allocate(ints * sizeof(int), "a test's memory")),
          [this](int* at) { machine_->release(at); });
    };
    const std::shared_ptr<int> out = memory(kSets), launches = memory(1);
    machine_->fill_bytes(launches.get(), 0, sizeof(int));
    Contestant contestant;
    contestant.launch = [&](int set, cudaStream_t stream) {
      if (set == left_out) return;
      write<<<1, 1, 0, stream>>>(out.get(), launches.get(), set, from);
      GG_CHECK(cudaGetLastError());
    };
    contestant.right = [&](int sets, const std::function<void()>& replay) {
      machine_->fill_bytes(out.get(), 0xFF, kSets * sizeof(int));
      replay();
      int found[kSets];
      machine_->download(found, out.get(), sizeof found);
      for (int set = 0; set < sets; ++set) {
        if (found[set] != set + 1) return false;
      }
      return true;
    };
    return time_contestants({contestant}, kSets, Rounds::brief, *gpu_stopwatch())[0].right;
  }

  std::unique_ptr<Machine> machine_;
};

TEST_F(TimedWork, IsRunAgainOnEverySet) {
  EXPECT_TRUE(right(INT32_MAX));
  EXPECT_FALSE(right(INT32_MAX, 1)) << "set 1 is never written";
}

// However slow the machine is, so many launches are timed: two alone, one batch, five rounds.
constexpr int kLeastTimed = 8;

TEST_F(TimedWork, ThatWasRightAtFirstAloneIsFound) { EXPECT_FALSE(right(kLeastTimed)); }

}  // namespace timer
}  // namespace gg
