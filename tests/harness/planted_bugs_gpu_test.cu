// SPDX-License-Identifier: MIT
//
// Every planted bug and clean twin as a kernel.

#include "common/run/device.h"
#include "planted_bugs.cuh"

namespace planted {
namespace {

class OnGpu : public testing::TestWithParam<Planted> {
 protected:
  void SetUp() override {
    try {
      gg::choose_device(gg::Options::Device::gpu, {});
    } catch (const gg::Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};
class PlantedBugGpu : public OnGpu {};
class CleanTwinGpu : public OnGpu {};

TEST_P(PlantedBugGpu, IsFailedAndNamed) { must_be_named(*gg::gpu_machine(), GetParam(), GetParam().gpu); }
TEST_P(CleanTwinGpu, Passes) { must_pass(*gg::gpu_machine(), GetParam().gpu); }

INSTANTIATE_TEST_SUITE_P(Gpu, PlantedBugGpu, testing::ValuesIn(bugs()), name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, CleanTwinGpu, testing::ValuesIn(twins()), name_of);

}  // namespace
}  // namespace planted
