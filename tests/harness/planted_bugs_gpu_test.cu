// SPDX-License-Identifier: MIT
//
// Every planted bug and clean twin as a kernel.

#include "planted_bugs.cuh"
#include "tests/harness/a_device.h"

namespace planted {
namespace {

class OnGpu : public testing::TestWithParam<Planted> {
 protected:
  void SetUp() override {
    if (const std::string why = gg::no_device(); !why.empty()) GTEST_SKIP() << why;
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
