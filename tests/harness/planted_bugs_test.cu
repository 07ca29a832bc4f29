// SPDX-License-Identifier: MIT
//
// Every planted bug and clean twin as a function on host memory.

#include "planted_bugs.cuh"

namespace planted {
namespace {

class PlantedBug : public testing::TestWithParam<Planted> {};
class CleanTwin : public testing::TestWithParam<Planted> {};

TEST_P(PlantedBug, IsFailedAndNamed) { must_be_named(*gg::host_machine(), GetParam(), GetParam().host); }
TEST_P(CleanTwin, Passes) { must_pass(*gg::host_machine(), GetParam().host); }

INSTANTIATE_TEST_SUITE_P(Host, PlantedBug, testing::ValuesIn(bugs()), name_of);
INSTANTIATE_TEST_SUITE_P(Host, CleanTwin, testing::ValuesIn(twins()), name_of);

}  // namespace
}  // namespace planted
