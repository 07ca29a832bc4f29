// SPDX-License-Identifier: MIT
//
// The choice of the fastest way: what fails is left out, a problem's choice stays.

#include <gtest/gtest.h>

#include "common/harness/bench/contest.h"
#include "common/kernel/check.h"
#include "tests/harness/a_device.h"

namespace gg {
namespace contest {

__global__ void count(int* launches, int turns) {
  for (int i = 0; i < turns; ++i) __threadfence();
  atomicAdd(launches, 1);
}

enum class Does { its_work, nothing_but_throw, allocate_in_a_capture };

class Counting final : public peers::Way {
 public:
  Counting(int* launches, int turns, Does does) : launches_(launches), turns_(turns), does_(does) {}
  void launch(cudaStream_t stream) override {
    if (does_ == Does::nothing_but_throw) throw std::runtime_error("no such kernel");
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    GG_CHECK(cudaStreamIsCapturing(stream, &status));
    if (does_ == Does::allocate_in_a_capture && status != cudaStreamCaptureStatusNone) {
      void* memory = nullptr;
      GG_CHECK(cudaMalloc(&memory, 1024));
      GG_CHECK(cudaFree(memory));
    }
    count<<<1, 1, 0, stream>>>(launches_, turns_);
    GG_CHECK(cudaGetLastError());
  }

 private:
  int* const launches_;
  const int turns_;
  const Does does_;
};

class Contest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
    GG_CHECK(cudaMallocManaged(&launches_, sizeof *launches_));
    *launches_ = 0;
  }
  void TearDown() override { cudaFree(launches_); }

  peers::Offer offer(const std::string& name, Does does = Does::its_work, int turns = 0) {
    return {name, [this, name, does, turns] {
              ++made_[name];
              return std::make_unique<Counting>(launches_, turns, does);
            }};
  }
  peers::Offer impossible(const std::string& name) {
    return {name, []() -> std::unique_ptr<peers::Way> { throw std::runtime_error("no memory"); }};
  }

  int* launches_ = nullptr;
  peers::Choices choices_;
  std::map<std::string, int> made_;
};

TEST_F(Contest, LeavesOutWhatFails) {
  const std::vector<peers::Offer> offers = {impossible("large"), offer("missing", Does::nothing_but_throw),
                                            offer("allocating", Does::allocate_in_a_capture), offer("right")};
  EXPECT_EQ(choices_.choose({1}, offers, false)->name, "right");
}

TEST_F(Contest, SaysWhyWhereAllFail) {
  try {
    choices_.choose({2}, {impossible("large"), offer("missing", Does::nothing_but_throw)}, false);
    ADD_FAILURE() << "nothing thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "none of its ways runs here, the last: no such kernel");
  }
  try {
    choices_.choose({3}, {}, false);
    ADD_FAILURE() << "nothing thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "no way to run this problem");
  }
}

TEST_F(Contest, TimesAProblemOnceAndThenMakesTheChosenWayAlone) {
  const std::vector<peers::Offer> offers = {offer("one"), offer("two")};
  const std::string chosen = choices_.choose({4}, offers, false)->name;
  const int launched = *launches_;
  EXPECT_GT(launched, 0);
  EXPECT_EQ(made_["one"] + made_["two"], 3) << "both, and the chosen one again";
  EXPECT_EQ(choices_.choose({4}, offers, false)->name, chosen);
  EXPECT_EQ(made_["one"] + made_["two"], 4);
  EXPECT_EQ(*launches_, launched);
  choices_.choose({5}, offers, false);
  EXPECT_GT(*launches_, launched) << "another problem";
}

TEST_F(Contest, ChoosesForEachKindOfRoundsByItself) {
  EXPECT_EQ(choices_.choose({8}, {offer("one")}, false)->name, "one");
  EXPECT_EQ(choices_.choose({8}, {offer("two")}, true)->name, "two");
  EXPECT_THROW(choices_.choose({8}, {offer("two")}, false), std::runtime_error) << "it was \"one\"";
  EXPECT_EQ(peers::Choices().choose({8}, {offer("two")}, false)->name, "two") << "another peer's";
}

TEST_F(Contest, DoesNotTimeTheOnlyWay) {
  EXPECT_EQ(choices_.choose({6}, {offer("only")}, false)->name, "only");
  EXPECT_EQ(made_["only"], 1);
  EXPECT_EQ(*launches_, 0);
}

TEST_F(Contest, ChoosesTheFastest) {
  if (emulator()) GTEST_SKIP() << "the emulator has no time";
  EXPECT_EQ(choices_
                .choose({7},
                        {offer("slow", Does::its_work, 3000), offer("fast", Does::its_work, 10),
                         offer("slower", Does::its_work, 6000)},
                        false)
                ->name,
            "fast");
}

}  // namespace contest
}  // namespace gg
