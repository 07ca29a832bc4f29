// SPDX-License-Identifier: MIT
//
// The warp roles of a kernel for tensor memory, with tcgen05.cp in the place of the product. Warp 4
// loads tiles into two stages of shared memory. Warp 5 has the tensor core move them to two stages
// of tensor memory. Warps 0 to 3 store them. Every order gives the same values, and each wait or
// fence that is left out is a fault in every order.

#include <gtest/gtest.h>

#include <set>

#include "tests/emu/tmem_kernel.h"

namespace {

using namespace tmem_test;

constexpr int kTiles = 8, kStages = 2;
constexpr int kTileBytes = 4096, kTileWords = kTileBytes / 4;  // 128 rows of 32 bytes
constexpr int kFull = 0, kEmpty = 2, kDone = 4, kTaken = 6;    // mbarriers, one of each for a stage

enum class Left { nothing, empty, taken, done, load, before, after_taken, after_done };

// The waits for what a stage was used for before: the first round passes at once.
std::string wait_free(int bar, int round) { return wait(bar, (round & 1) ^ 1); }

std::string producer(Left left) {
  std::string text;
  for (int t = 0; t < kTiles; ++t) {
    const int s = t % kStages, round = t / kStages;
    const std::string full = "[bars+" + number(8 * (kFull + s)) + "]";
    if (left != Left::empty) {
      text += wait_free(kEmpty + s, round);
    } else if (round > 0) {  // that the load before has come is not that it was used
      text += wait(kFull + s, (round & 1) ^ 1);
    }
    text += "mbarrier.arrive.expect_tx.shared::cta.b64 _, " + full + ", " + number(kTileBytes) +
            ";\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer+" +
            number(s * kTileBytes) + "], [%rd1+" + number(t * kTileBytes) + "], " + number(kTileBytes) +
            ", " + full + ";\n";
  }
  return text;
}

std::string issuer(Left left) {
  std::string text;
  for (int t = 0; t < kTiles; ++t) {
    const int s = t % kStages, round = t / kStages;
    text += wait(kFull + s, round & 1);
    if (left != Left::taken) text += wait_free(kTaken + s, round);
    if (left != Left::after_taken) text += kAfter;
    text += make_descriptor(descriptor(kTileBytes / 2, 128), s * kTileBytes) + "add.u32 %r80, %r6, " +
            number(8 * s) + ";\ntcgen05.cp.cta_group::1.128x256b [%r80], %rd8;\n" + commit(kEmpty + s, "") +
            commit(kDone + s, "");
  }
  return text;
}

std::string epilogue(Left left) {
  std::string text = "mad.wide.u32 %rd7, %r0, 32, %rd0;\n";
  for (int t = 0; t < kTiles; ++t) {
    const int s = t % kStages, round = t / kStages;
    const std::string arrive =
        "mbarrier.arrive.shared::cta.b64 _, [bars+" + number(8 * (kTaken + s)) + "];\n";
    if (left != Left::done) text += wait(kDone + s, round & 1);
    if (left != Left::after_done) text += kAfter;
    text += "add.u32 %r80, %r6, " + number(8 * s) + ";\ntcgen05.ld.sync.aligned.32x32b.x8.b32 " +
            registers(8) + ", [%r80];\n";
    if (left != Left::load) text += kWaitLoad;
    if (left != Left::before) text += kBefore;
    text += arrive;
    if (left == Left::load) text += kWaitLoad;
    for (int i = 0; i < 8; ++i)
      text += "st.global.u32 [%rd7+" + number(t * kTileBytes + 4 * i) + "], %r" + number(100 + i) + ";\n";
  }
  return text;
}

std::string pipeline(Left left) {
  std::string text = alloc(32);
  for (int s = 0; s < kStages; ++s) {
    for (const int bar : {kFull, kEmpty, kDone}) text += init(bar + s, 1);
    text += init(kTaken + s, 128);
  }
  text +=
      "setp.eq.u32 %p10, %r0, 128;\nsetp.eq.u32 %p11, %r0, 160;\nsetp.lt.u32 %p12, %r0, 128;\n"
      "@%p10 bra PRODUCER;\n@%p11 bra ISSUER;\n@%p12 bra EPILOGUE;\nbra END;\n";
  text += "PRODUCER:\n" + producer(left) + "bra END;\nISSUER:\n" + issuer(left) + "bra END;\nEPILOGUE:\n" +
          epilogue(left) + "END:\n";
  return kernel(text + dealloc(32));
}

Words tiles() {
  Words words(kTiles * kTileWords);
  for (size_t i = 0; i < words.size(); ++i) words[i] = value_at(uint32_t(i));
  return words;
}

TEST(TmemPipeline, EveryOrderGivesTheSame) {
  for (const Order& order : emu_test::orders()) {
    SCOPED_TRACE(name_of(order));
    Words out;
    try {
      out = run(pipeline(Left::nothing), config_of(1, 192), order, kTiles * kTileWords, tiles());
    } catch (const Fault& fault) {
      FAIL() << fault.what();
    }
    for (int t = 0; t < kTiles; ++t) {
      for (int row = 0; row < 128; ++row) {
        for (int word = 0; word < 8; ++word) {
          const int from = t * kTileWords + word / 4 * 512 + row / 8 * 32 + row % 8 * 4 + word % 4;
          ASSERT_EQ(out[size_t(t * kTileWords + row * 8 + word)], value_at(uint32_t(from)))
              << "tile " << t << ", row " << row << ", word " << word;
        }
      }
    }
  }
}

// A step that is left out, and what it may be found as: that depends on which side comes first.
void check_left_out(Left left, const std::set<FaultKind>& kinds) {
  for (const Order& order : emu_test::orders()) {
    SCOPED_TRACE(name_of(order));
    try {
      run(pipeline(left), config_of(1, 192), order, kTiles * kTileWords, tiles());
      ADD_FAILURE() << "no fault";
    } catch (const Fault& fault) {
      EXPECT_TRUE(kinds.count(fault.kind)) << fault.what();
    }
  }
}

TEST(TmemPipeline, AStageIsNotLoadedBeforeItIsFree) {
  // Warp 5 may also find that warp 4 is phases ahead, and wait for one that never ends.
  check_left_out(Left::empty, {FaultKind::race, FaultKind::async_window, FaultKind::deadlock});
}
TEST(TmemPipeline, AnAccumulatorIsNotOverwrittenBeforeItIsTaken) {
  check_left_out(Left::taken, {FaultKind::race, FaultKind::async_window});
}
TEST(TmemPipeline, AnAccumulatorIsNotLoadedBeforeItIsDone) {
  check_left_out(Left::done, {FaultKind::race, FaultKind::async_window, FaultKind::uninit_tmem});
}
TEST(TmemPipeline, LoadsAreWaitedForBeforeTheArrival) {
  check_left_out(Left::load, {FaultKind::race, FaultKind::async_window});
}
TEST(TmemPipeline, TheFencesStandAtEveryHandOver) {
  for (const Left left : {Left::before, Left::after_taken, Left::after_done})
    check_left_out(left, {FaultKind::tcgen05_fence});
}

}  // namespace
