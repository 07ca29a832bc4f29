// SPDX-License-Identifier: MIT
//
// shfl, vote, match, redux, elect and activemask on the emulator, with full and partial
// membermasks, in two warps whose lanes all have different data.

#include <algorithm>
#include <limits>

#include "alu_cases.h"

namespace {

using namespace emu_test;

constexpr int kWarps = 2, kThreads = 32 * kWarps;

struct Lane {
  uint32_t a, b, c, mask;
};
struct Answer {
  uint32_t d, p;
};

// Each thread: a, b, c and a membermask from its row of `in`; the instruction; %d and %p to its
// row of `out`.
std::vector<Answer> run(const std::string& instruction, const std::vector<Lane>& lanes) {
  const std::string text = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry f(.param .u64 in, .param .u64 out)
{
  .reg .b64 %in, %out, %far, %w;
  .reg .b32 %t, %a, %b, %c, %m, %d, %pv;
  .reg .pred %p, %q;
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %far, %t, 16;
  add.u64 %in, %in, %far;
  mul.wide.u32 %far, %t, 8;
  add.u64 %out, %out, %far;
  ld.global.v4.u32 {%a, %b, %c, %m}, [%in];
  mov.b64 %w, {%a, %b};
  setp.ne.u32 %q, %a, 0;
  mov.u32 %d, 0xDEAD;
  setp.ne.u32 %p, %d, %d;
  {
)" + instruction + R"(
  }
  selp.u32 %pv, 1, 0, %p;
  st.global.v2.u32 [%out], {%d, %pv};
  ret;
}
)";
  std::vector<Buffer> buffers = {buffer_of(lanes), Buffer(lanes.size() * sizeof(Answer))};
  run_ptx(text, buffers, {1, int(lanes.size())});
  return values_of<Answer>(buffers[1]);
}

std::vector<Lane> random_lanes(uint32_t seed, uint32_t a_limit = 0) {
  std::mt19937 random(seed);
  std::vector<Lane> lanes(kThreads);
  for (Lane& l : lanes) {
    l = {uint32_t(random()), uint32_t(random() % 40), 0, 0xFFFFFFFFu};
    if (a_limit) l.a %= a_limit;
  }
  return lanes;
}

// The ISA's own description, one lane at a time.
Answer shuffled(const std::string& mode, const Lane* warp, int lane) {
  const int bval = int(warp[lane].b & 31), cval = int(warp[lane].c & 31),
            segmask = int(warp[lane].c >> 8 & 31);
  const int max_lane = (lane & segmask) | (cval & ~segmask), min_lane = lane & segmask;
  int j = 0;
  bool p = false;
  if (mode == "up") j = lane - bval, p = j >= max_lane;
  if (mode == "down") j = lane + bval, p = j <= max_lane;
  if (mode == "bfly") j = lane ^ bval, p = j <= max_lane;
  if (mode == "idx") j = min_lane | (bval & ~segmask), p = j <= max_lane;
  return {warp[p ? j : lane].a, p};
}

TEST(Warp, Shuffles) {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (const uint32_t width : {32u, 16u, 8u, 4u, 2u, 1u}) {
      for (uint32_t seed = 1; seed < 5; ++seed) {
        std::vector<Lane> lanes = random_lanes(seed);
        for (Lane& l : lanes) l.c = (32 - width) << 8 | (mode == "up" ? 0 : 0x1F);
        if (seed == 4) {
          for (Lane& l : lanes) l.c = l.a & 0x1F1F;  // any segments, different in each lane
        }
        const std::vector<Answer> got = run("shfl.sync." + mode + ".b32 %d|%p, %a, %b, %c, %m;", lanes);
        const std::vector<Answer> plain = run("shfl.sync." + mode + ".b32 %d, %a, %b, %c, -1;", lanes);
        for (int t = 0; t < kThreads; ++t) {
          const Answer want = shuffled(mode, &lanes[size_t(t / 32 * 32)], t % 32);
          EXPECT_EQ(got[size_t(t)].d, want.d) << mode << " width " << width << " thread " << t;
          EXPECT_EQ(got[size_t(t)].p, want.p) << mode << " width " << width << " thread " << t;
          EXPECT_EQ(plain[size_t(t)].d, want.d) << mode << " width " << width << " thread " << t;
        }
      }
    }
  }
}

const std::vector<uint32_t> kMasks = {0xFFFFFFFF, 0x0000FFFF, 0xAAAAAAAA, 0x80000001, 0x00010000, 0x7FFFFFFE};

// Lanes of the mask execute the instruction, the others leave %d and %p as they were.
std::string among_members(const std::string& instruction) {
  return ".reg .pred %in_mask; .reg .b32 %bit; mov.u32 %bit, %laneid; shl.b32 %bit, 1, %bit; and.b32 %bit, "
         "%bit, %m; "
         "setp.ne.u32 %in_mask, %bit, 0; @%in_mask " +
         instruction;
}

TEST(Warp, Votes) {
  for (const uint32_t mask : kMasks) {
    for (const uint32_t kind : {0u, 1u, 2u, 3u}) {  // none, some, all but one, all are true
      std::vector<Lane> lanes = random_lanes(kind + 7);
      for (size_t t = 0; t < lanes.size(); ++t) {
        lanes[t].mask = mask;
        lanes[t].a = kind == 0 ? 0 : kind == 1 ? lanes[t].a % 2 : kind == 2 ? t % 32 != 16 : 1;
      }
      const auto all = run(among_members("vote.sync.all.pred %p, %q, %m;"), lanes);
      const auto any = run(among_members("vote.sync.any.pred %p, !%q, %m;"), lanes);
      const auto uniform = run(among_members("vote.sync.uni.pred %p, %q, %m;"), lanes);
      const auto ballot = run(among_members("vote.sync.ballot.b32 %d, %q, %m;"), lanes);
      for (size_t t = 0; t < lanes.size(); ++t) {
        uint32_t yes = 0;
        for (size_t l = 0; l < 32; ++l) yes |= lanes[t / 32 * 32 + l].a << l;
        yes &= mask;
        const bool member = mask >> (t % 32) & 1;
        EXPECT_EQ(all[t].p, member && yes == mask) << t;
        EXPECT_EQ(any[t].p, member && yes != mask) << t;
        EXPECT_EQ(uniform[t].p, member && (yes == mask || yes == 0)) << t;
        EXPECT_EQ(ballot[t].d, member ? yes : 0xDEAD) << t;
      }
    }
  }
}

TEST(Warp, Matches) {
  for (const uint32_t mask : kMasks) {
    for (const bool equal : {false, true}) {
      std::vector<Lane> lanes = random_lanes(mask % 97, 3);
      for (Lane& l : lanes) l.mask = mask, l.b %= 2;
      if (equal) {
        for (Lane& l : lanes) l.a = 5, l.b = 1;
      }
      const auto any32 = run(among_members("match.any.sync.b32 %d, %a, %m;"), lanes);
      const auto any64 = run(among_members("match.any.sync.b64 %d, %w, %m;"), lanes);
      const auto all32 = run(among_members("match.all.sync.b32 %d|%p, %a, %m;"), lanes);
      const auto all64 = run(among_members("match.all.sync.b64 _|%p, %w, %m;"), lanes);
      for (size_t t = 0; t < lanes.size(); ++t) {
        if (!(mask >> (t % 32) & 1)) continue;
        uint32_t same32 = 0, same64 = 0;
        for (size_t l = 0; l < 32; ++l) {
          const Lane& other = lanes[t / 32 * 32 + l];
          same32 |= uint32_t(other.a == lanes[t].a) << l;
          same64 |= uint32_t(other.a == lanes[t].a && other.b == lanes[t].b) << l;
        }
        same32 &= mask, same64 &= mask;
        EXPECT_EQ(any32[t].d, same32) << t;
        EXPECT_EQ(any64[t].d, same64) << t;
        EXPECT_EQ(all32[t].d, same32 == mask ? mask : 0) << t;
        EXPECT_EQ(all32[t].p, same32 == mask) << t;
        EXPECT_EQ(all64[t].p, same64 == mask) << t;
      }
    }
  }
}

TEST(Warp, Reductions) {
  for (const uint32_t mask : kMasks) {
    std::vector<Lane> lanes = random_lanes(mask % 89);
    for (Lane& l : lanes) l.mask = mask;
    const auto check_op = [&](const std::string& op, auto start, auto f) {
      const auto got = run(among_members("redux.sync." + op + " %d, %a, %m;"), lanes);
      for (size_t t = 0; t < lanes.size(); ++t) {
        if (!(mask >> (t % 32) & 1)) continue;
        auto want = start;
        for (size_t l = 0; l < 32; ++l) {
          if (mask >> l & 1) want = f(want, decltype(start)(lanes[t / 32 * 32 + l].a));
        }
        EXPECT_EQ(got[t].d, uint32_t(want)) << op << " thread " << t;
      }
    };
    const auto least = [](auto x, auto y) { return std::min(x, y); };
    const auto most = [](auto x, auto y) { return std::max(x, y); };
    const auto sum = [](uint32_t x, uint32_t y) { return x + y; };
    check_op("add.u32", 0u, sum);
    check_op("add.s32", 0u, sum);
    check_op("min.u32", ~0u, least);
    check_op("max.u32", 0u, most);
    check_op("min.s32", std::numeric_limits<int32_t>::max(), least);
    check_op("max.s32", std::numeric_limits<int32_t>::min(), most);
    check_op("and.b32", ~0u, [](uint32_t x, uint32_t y) { return x & y; });
    check_op("or.b32", 0u, [](uint32_t x, uint32_t y) { return x | y; });
    check_op("xor.b32", 0u, [](uint32_t x, uint32_t y) { return x ^ y; });
  }
}

TEST(Warp, ElectsTheLowestLane) {
  for (const uint32_t mask : kMasks) {
    std::vector<Lane> lanes = random_lanes(1);
    for (Lane& l : lanes) l.mask = mask;
    const auto got = run(among_members("elect.sync %d|%p, %m;"), lanes);
    const auto without = run(among_members("elect.sync _|%p, %m;"), lanes);
    const uint32_t leader = uint32_t(__builtin_ctz(mask));
    for (size_t t = 0; t < lanes.size(); ++t) {
      if (!(mask >> (t % 32) & 1)) continue;
      EXPECT_EQ(got[t].d, leader);
      EXPECT_EQ(got[t].p, t % 32 == leader);
      EXPECT_EQ(without[t].p, t % 32 == leader);
    }
  }
}

// Both sides of a branch, each with a membermask of its own; the halves meet only afterwards.
TEST(Warp, MembersOfTwoBranches) {
  std::vector<Lane> lanes = random_lanes(3, 1000);
  const auto got = run(R"(
    .reg .pred %odd; .reg .b32 %l;
    and.b32 %l, %t, 1;
    setp.eq.u32 %odd, %l, 1;
    @%odd bra ODD;
    redux.sync.add.u32 %d, %a, 0x55555555;
    shfl.sync.bfly.b32 %d, %d, 2, 0x1F, 0x55555555;
    bra END;
    ODD: redux.sync.max.u32 %d, %a, 0xAAAAAAAA;
    add.u32 %d, %d, 100000;
    END:
  )",
                       lanes);
  for (size_t t = 0; t < lanes.size(); ++t) {
    uint32_t sum = 0, most = 0;
    for (size_t l = 0; l < 32; l += 2)
      sum += lanes[t / 32 * 32 + l].a, most = std::max(most, lanes[t / 32 * 32 + l + 1].a);
    EXPECT_EQ(got[t].d, t % 2 ? most + 100000 : sum) << t;
  }
}

TEST(Warp, ActiveLanes) {
  const std::vector<Lane> lanes = random_lanes(5);
  const auto got = run(".reg .pred %low; setp.lt.u32 %low, %t, 40; @%low activemask.b32 %d;", lanes);
  for (size_t t = 0; t < lanes.size(); ++t)
    EXPECT_EQ(got[t].d, t < 32 ? 0xFFFFFFFF : t < 40 ? 0xFF : 0xDEAD) << t;
}

// Lanes that have ended are wanted no more.
TEST(Warp, WorksWithoutLanesThatHaveEnded) {
  const std::vector<Lane> lanes = random_lanes(6, 1000);
  const auto got =
      run(".reg .pred %high; setp.ge.u32 %high, %t, 48; @%high exit; redux.sync.add.u32 %d, %a, -1;", lanes);
  for (size_t t = 32; t < 48; ++t) {
    uint32_t sum = 0;
    for (size_t l = 32; l < 48; ++l) sum += lanes[l].a;
    EXPECT_EQ(got[t].d, sum) << t;
  }
}

TEST(Warp, RefusesAMaskWithoutTheLane) {
  std::vector<Lane> lanes = random_lanes(6);
  for (Lane& l : lanes) l.mask = 0xFFFF;
  try {
    run("redux.sync.add.u32 %d, %a, %m;", lanes);
    ADD_FAILURE() << "lanes 16 to 31 are not in the mask";
  } catch (const gg::emu::Fault& fault) {
    EXPECT_EQ(fault.kind, gg::emu::FaultKind::diverged) << fault.what();
  }
}

TEST(Alu, RefusesWhatItDoesNotKnow) {
  for (const std::string instruction : {"add.sat.u32 %d, %a, %b;",
                                        "add.s32 %d, %a, %w;",
                                        "add.s32 %d, %a;",
                                        "add.rn.s32 %d, %a, %b;",
                                        "and.s32 %d, %a, %b;",
                                        "setp.lt.b32 %p, %a, %b;",
                                        "setp.lo.s32 %p, %a, %b;",
                                        "fma.f32 %d, %a, %b, %c;",
                                        "add.rx.f32 %d, %a, %b;",
                                        "cvt.f32.s32 %d, %a;",
                                        "cvt.rn.s32.f32 %d, %a;",
                                        "cvt.sat.s32.s16 %d, %a;",
                                        "cvt.rn.e4m3x2.f32 %d, %a, %b;",
                                        "shfl.up.b32 %d, %a, 1, 0;",
                                        "vote.all.pred %p, %q;",
                                        "redux.sync.add.b32 %d, %a, %m;",
                                        "mul.s32 %d, %a, %b;",
                                        "add.s32 %d, !%a, %b;",
                                        "add.s32 %d|%p, %a, %b;",
                                        "lop3.b32 %d, %a, %b, %c, 256;",
                                        "sin.f32 %d, %a;",
                                        "min.relu.u32 %d, %a, %b;",
                                        "prmt.b32.xyz %d, %a, %b, %c;",
                                        "mov.u32 %d, {%a, %b};",
                                        "cvta.shared.u32 %d, %a;"}) {
    SCOPED_TRACE(instruction);
    try {
      run(instruction, random_lanes(1));
      ADD_FAILURE() << "it ran";
    } catch (const gg::emu::Fault& fault) {
      EXPECT_EQ(fault.kind, gg::emu::FaultKind::unsupported) << fault.what();
    }
  }
}

}  // namespace
