// SPDX-License-Identifier: MIT
//
// The counters of what overlaps: kernels of a few loads, stores and products, each with the numbers
// that follow from its text, which are the same in every order.

#include <gtest/gtest.h>

#include "tests/emu/async_kernel.h"

namespace {

using namespace async_test;

// A product by each warp, or by those of a predicate.
std::string product(const std::string& guard = "") {
  return guard +
         "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r20, %r21}, {%r22, %r23}, {%r24}, {%r25, "
         "%r26};\n";
}
const std::string kZeros = [] {
  std::string text;
  for (int r = 22; r <= 26; ++r) text += "mov.b32 %r" + std::to_string(r) + ", 0;\n";
  return text;
}();
// A copy of 16 bytes by each thread, and groups of copies.
const std::string kCopy =
    "shl.b32 %r6, %r0, 4;\nadd.u32 %r7, %r2, %r6;\n"
    "cp.async.cg.shared.global [%r7], [%rd1], 16;\ncp.async.commit_group;\n";
std::string wait_copies(int groups) { return "cp.async.wait_group " + std::to_string(groups) + ";\n"; }
// By thread 0, to the mbarrier of this number.
std::string bulk_load(int bar) {
  const std::string at = "[bars+" + std::to_string(8 * bar) + "]";
  return "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, " + at +
         ", 128;\n@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buffer+" +
         std::to_string(1024 * bar) + "], [%rd1], 128, " + at + ";\n";
}
const std::string kBulkStore = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [buffer], 128;\n",
                  kCommit = "@%p0 cp.async.bulk.commit_group;\n";
std::string wait_stores(const std::string& groups) {
  return "@%p0 cp.async.bulk.wait_group" + groups + ";\n";
}
const std::string kSync = "bar.sync 0;\n";

class Overlap : public Async {
 protected:
  void expect(const std::string& body, uint64_t products, uint64_t during_loads, uint64_t during_stores) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE("order " + std::to_string(seed) + (seed > 1 ? ":skew" : ":fair"));
      SetUp();
      Counters counters;
      ASSERT_NO_THROW(
          try {
            run_with(kZeros + body, {1, 64, 1}, {seed, seed > 1}, &counters);
          } catch (const Fault& fault) {
            ADD_FAILURE() << fault.what();
            throw;
          });
      EXPECT_EQ(counters["products"], products);
      EXPECT_EQ(counters["products_during_loads"], during_loads);
      EXPECT_EQ(counters["products_during_stores"], during_stores);
    }
  }
};

// Two warps: each product counts twice.
TEST_F(Overlap, ProductsBetweenACopyAndItsWait) {
  expect(kCopy + product() + wait_copies(0) + product(), 4, 2, 0);
  expect(kCopy + wait_copies(0) + product() + product(), 4, 0, 0);
  expect(product() + kCopy + wait_copies(0), 2, 0, 0);
  // The first wait keeps the group; and once is enough, whichever of two groups overlaps.
  expect(kCopy + product() + wait_copies(1) + product() + wait_copies(0), 4, 4, 0);
  expect(kCopy + kCopy.substr(kCopy.find("cp.async.commit")) + product() + wait_copies(1) + wait_copies(0), 2,
         2, 0);
}

TEST_F(Overlap, ProductsBetweenABulkLoadAndTheWaitAtItsBarrier) {
  const std::string ready = init(0, 1);
  expect(ready + bulk_load(0) + product() + wait(0, "0") + product(), 4, 2, 0);
  expect(ready + bulk_load(0) + wait(0, "0") + product() + wait(0, "0"), 2, 0, 0);
  // The thread that starts the load has learnt of the products at a barrier, or it has not.
  expect(ready + product() + kSync + bulk_load(0) + wait(0, "0"), 2, 0, 0);
  expect(ready + product("@!%p1 ") + bulk_load(0) + wait(0, "0"), 1, 1, 0);
  // Two stages: the second load overlaps with what is made of the first.
  expect(
      init(1, 1) + ready + bulk_load(0) + bulk_load(1) + wait(0, "0") + product() + wait(1, "0") + product(),
      4, 2, 0);
  // A phase without bytes is no load.
  expect(ready + product() + "@%p0 mbarrier.arrive.shared::cta.b64 _, [bars];\n" + wait(0, "0"), 2, 0, 0);
}

TEST_F(Overlap, ProductsBetweenACommitAndTheWaitForItsGroup) {
  const std::string filled =
      "shl.b32 %r6, %r0, 2;\nadd.u32 %r7, %r2, %r6;\nst.shared.u32 [%r7], %r0;\n" + kFence;
  // The other warp's products are not those of the warp that stores.
  expect(filled + kBulkStore + kCommit + product() + wait_stores(" 0"), 2, 0, 1);
  expect(filled + kBulkStore + kCommit + product() + wait_stores(".read 0") + product() + wait_stores(" 0"),
         4, 0, 1);
  expect(filled + kBulkStore + kCommit + wait_stores(" 0") + product(), 2, 0, 0);
  expect(filled + kBulkStore + product() + kCommit + wait_stores(" 0"), 2, 0, 0);
  // The first wait is for the older group alone.
  expect(filled + kBulkStore + kCommit + kBulkStore + kCommit + wait_stores(" 1") + product() +
             wait_stores(" 0"),
         2, 0, 1);
}

}  // namespace
