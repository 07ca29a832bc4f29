// SPDX-License-Identifier: MIT
//
// The lanes of a warp tell each other values: shuffles within segments, votes, matches and
// reductions among the lanes of a membermask.

#include <algorithm>

#include "probe.cuh"

namespace probe {
namespace warp {

constexpr int kThreads = 64, kResults = 11;

// [probe]
// Lane l shuffles by its own distance, in segments of 8 lanes. The lanes of `members` vote, match
// and add up.
__global__ void tell(const uint32_t* values, const uint32_t* by, uint32_t members, uint32_t* out) {
  const uint32_t x = values[threadIdx.x], n = by[threadIdx.x];
  uint32_t* r = out + kResults * threadIdx.x;
  constexpr uint32_t kAll = 0xFFFFFFFF, kSegment = (32 - 8) << 8;
  asm volatile("shfl.sync.up.b32 %0, %1, %2, %3, %4;"
               : "=r"(r[0])
               : "r"(x), "r"(n), "r"(kSegment), "r"(kAll));
  asm volatile("shfl.sync.down.b32 %0, %1, %2, %3, %4;"
               : "=r"(r[1])
               : "r"(x), "r"(n), "r"(kSegment | 31), "r"(kAll));
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, %3, %4;"
               : "=r"(r[2])
               : "r"(x), "r"(n), "r"(kSegment | 31), "r"(kAll));
  asm volatile("{ .reg .pred p; shfl.sync.idx.b32 %0|p, %2, %3, %4, %5; selp.u32 %1, 1, 0, p; }"
               : "=r"(r[3]), "=r"(r[4])
               : "r"(x), "r"(n), "r"(kSegment | 5), "r"(kAll));
  if (!(members >> threadIdx.x % 32 & 1)) return;
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 99; vote.sync.ballot.b32 %0, p, %2; }"
               : "=r"(r[5])
               : "r"(x), "r"(members));
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 9; vote.sync.all.pred p, p, %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(r[6])
               : "r"(x), "r"(members));
  asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(r[7]) : "r"(x / 64), "r"(members));
  asm volatile("redux.sync.add.u32 %0, %1, %2;" : "=r"(r[8]) : "r"(x), "r"(members));
  asm volatile("redux.sync.max.s32 %0, %1, %2;" : "=r"(r[9]) : "r"(x - 128), "r"(members));
  asm volatile("redux.sync.min.u32 %0, %1, %2;" : "=r"(r[10]) : "r"(x - 128), "r"(members));
}
// [/probe]

class Warp : public Probe {};

TEST_F(Warp, LanesTellEachOther) {
  std::vector<uint32_t> values(kThreads), by(kThreads);
  for (size_t i = 0; i < kThreads; ++i) values[i] = uint32_t(i * 37 + 11) % 251, by[i] = uint32_t(i * 5) % 9;
  for (const uint32_t members : {0xFFFFFFFFu, 0x0F0F00F0u, 0x80000000u}) {
    const Array<uint32_t> values_array(values), by_array(by),
        out(std::vector<uint32_t>(kThreads * kResults, 7777));
    tell<<<1, kThreads>>>(values_array.get(), by_array.get(), members, out.get());
    const std::vector<uint32_t> got = out.read();
    for (int t = 0; t < kThreads; ++t) {
      const uint32_t* warp = &values[size_t(t / 32 * 32)];
      const int lane = t % 32, n = int(by[size_t(t)]), first = lane / 8 * 8, last = first + 7;
      const auto from = [&](int source, bool inside) { return warp[inside ? source : lane]; };
      uint32_t want[kResults] = {from(lane - n, lane - n >= first),
                                 from(lane + n, lane + n <= last),
                                 from(lane ^ n, (lane ^ n) <= last),
                                 from(first + n % 8, n % 8 <= 5),
                                 uint32_t(n % 8 <= 5),
                                 0,
                                 1,
                                 0,
                                 0,
                                 0,
                                 ~0u};
      int most = -1000;
      for (int l = 0; l < 32; ++l) {
        if (!(members >> l & 1)) continue;
        want[5] |= uint32_t(warp[l] > 99) << l;
        want[6] &= warp[l] > 9;
        want[7] |= uint32_t(warp[l] / 64 == warp[lane] / 64) << l;
        want[8] += warp[l];
        most = std::max(most, int(warp[l]) - 128);
        want[10] = std::min(want[10], warp[l] - 128);
      }
      want[9] = uint32_t(most);
      if (!(members >> lane & 1)) std::fill(want + 5, want + kResults, 7777);
      for (int k = 0; k < kResults; ++k) {
        EXPECT_EQ(got[size_t(t * kResults + k)], want[k])
            << "members " << members << " thread " << t << " result " << k;
      }
    }
  }
}

}  // namespace warp
}  // namespace probe
