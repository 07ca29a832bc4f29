// SPDX-License-Identifier: MIT
//
// How a batch is described to cublasLt, and what becomes of its proposals. The library is
// fake_cublas_lt.cpp: loaded first, it is what dlopen finds by the name of the toolkit's.

#include "common/harness/bench/cublas_lt.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "common/kernel/error.h"
#include "common/kernel/formats.h"

namespace gg {
namespace {

// Two groups of D[5,4] = A[5,3] B, B [4,3] or [3,4], as cublas.cpp has them: its A is our B, its
// m our N.
class FakeCublasLt : public testing::Test {
 protected:
  static constexpr int kGroups = 2, kM = 5, kN = 4, kK = 3;

  StridedBatch batch(bool b_is_nk) {
    return {
        b_.data(),         a_.data(), d_.data(), b_is_nk ? 1 : 0, kN,      kM,      kK,          kGroups,
        b_is_nk ? kK : kN, kK,        kN,        kN * kK,         kM * kK, kM * kN, CUDA_R_16BF, CUDA_R_16BF};
  }

  void SetUp() override {
    const std::string path = std::string(GG_BINARY_DIR) + "/tests/fake_cublas_lt.so";
    so_ = dlopen(path.c_str(), RTLD_NOW);
    ASSERT_TRUE(so_) << dlerror();
    for (size_t i = 0; i < a_.size(); ++i) store(a_, i, int(i) % 7 - 3);
    for (size_t i = 0; i < b_.size(); ++i) store(b_, i, int(i) % 5 - 2);
  }

  template <class Result, class... Of>
  Result call(const char* name, Of... of) {
    return reinterpret_cast<Result (*)(Of...)>(dlsym(so_, name))(of...);
  }
  static void store(std::vector<uint16_t>& to, size_t i, int value) {
    store_code(to.data(), Format::bf16, int64_t(i), encode(Format::bf16, value));
  }
  static double load(const std::vector<uint16_t>& from, int i) {
    return decode(Format::bf16, load_code(from.data(), Format::bf16, i));
  }

  void expect_product(bool b_is_nk) {
    for (int i = 0; i < kGroups * kM * kN; ++i) {
      const int g = i / (kM * kN), row = i / kN % kM, column = i % kN;
      double sum = 0;
      for (int k = 0; k < kK; ++k) {
        const int in_b = b_is_nk ? column * kK + k : k * kN + column;
        sum += load(a_, (g * kM + row) * kK + k) * load(b_, g * kN * kK + in_b);
      }
      EXPECT_EQ(load(d_, i), sum) << "group " << g << ", row " << row << ", column " << column;
    }
  }

  void* so_ = nullptr;
  int handle_ = 0;
  std::vector<uint16_t> a_ = std::vector<uint16_t>(kGroups * kM * kK),
                        b_ = std::vector<uint16_t>(kGroups * kK * kN),
                        d_ = std::vector<uint16_t>(kGroups * kM * kN);
};

TEST_F(FakeCublasLt, MultipliesABatchByAProposal) {
  const CublasLt lt;
  for (const bool b_is_nk : {true, false}) {
    std::fill(d_.begin(), d_.end(), uint16_t(0x7fc0));
    const std::vector<peers::Offer> offers = lt.offers(&handle_, batch(b_is_nk), nullptr, 1 << 20);
    ASSERT_EQ(offers.size(), 2u) << "the third is invalid";
    EXPECT_EQ(offers[1].name, "cublasLt, proposal 2");
    offers[1].make()->launch(nullptr);
    expect_product(b_is_nk);
  }
}

TEST_F(FakeCublasLt, FailsInALaunchThatItCannotMake) {
  const CublasLt lt;
  const std::vector<peers::Offer> offers = lt.offers(&handle_, batch(true), nullptr, 1 << 20);
  ASSERT_FALSE(offers.empty());
  try {
    offers[0].make()->launch(nullptr);
    ADD_FAILURE() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cublasLtMatmul returned cuBLAS status 13");
  }
}

TEST_F(FakeCublasLt, IsAskedForPointersAsTheyAreAligned) {
  const CublasLt lt;
  StridedBatch odd = batch(true);
  odd.a = reinterpret_cast<const void*>(uintptr_t(4096 + 16));
  odd.b = reinterpret_cast<const void*>(uintptr_t(8192 + 1024));
  odd.d = reinterpret_cast<void*>(uintptr_t(4096 + 2));
  lt.offers(&handle_, odd, nullptr, 12345);
  constexpr int kWorkspace = 1, kA = 5, kB = 6, kC = 7, kD = 8;
  const auto preference = [&](int attribute) { return call<int64_t>("fake_preference", attribute); };
  EXPECT_EQ(preference(kWorkspace), 12345);
  EXPECT_EQ(preference(kA), 16);
  EXPECT_EQ(preference(kB), 256);
  EXPECT_EQ(preference(kC), 2);
  EXPECT_EQ(preference(kD), 2);
}

TEST_F(FakeCublasLt, IsToldOfBlockScales) {
  constexpr int kAScales = 17, kBScales = 18, kAScaleMode = 31, kBScaleMode = 32, kVec32Ue8m0 = 2;
  const auto product = [&](int attribute) { return call<int64_t>("fake_product", attribute); };
  const CublasLt lt;
  lt.offers(&handle_, batch(true), nullptr, 0);
  for (int attribute : {kAScales, kBScales, kAScaleMode, kBScaleMode}) EXPECT_EQ(product(attribute), -1);
  StridedBatch scaled = batch(true);
  scaled.scale_mode = kVec32Ue8m0;
  scaled.a_scales = reinterpret_cast<const void*>(uintptr_t(4096));
  scaled.b_scales = reinterpret_cast<const void*>(uintptr_t(8192));
  lt.offers(&handle_, scaled, nullptr, 0);
  EXPECT_EQ(product(kAScaleMode), kVec32Ue8m0);
  EXPECT_EQ(product(kBScaleMode), kVec32Ue8m0);
  EXPECT_EQ(product(kAScales), 4096);
  EXPECT_EQ(product(kBScales), 8192);
}

TEST_F(FakeCublasLt, MayHaveNoProposal) {
  EXPECT_TRUE(CublasLt().offers(nullptr, batch(true), nullptr, 0).empty());
}

TEST_F(FakeCublasLt, KeepsItsDescriptionsAsLongAsAWayAndNoLonger) {
  std::unique_ptr<peers::Way> way;
  {
    const CublasLt lt;
    way = lt.offers(&handle_, batch(true), nullptr, 1 << 20)[1].make();
  }
  EXPECT_EQ(call<int>("fake_described"), 4) << "a product and three matrices";
  way->launch(nullptr);
  expect_product(true);
  way.reset();
  EXPECT_EQ(call<int>("fake_described"), 0);
}

}  // namespace
}  // namespace gg
