// SPDX-License-Identifier: MIT
//
// mbarrier: when a phase ends, what a wait for a parity says before and after, and what it orders.

#include "common/kernel/ptx/cp_async.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "hopper.cuh"

namespace probe {
namespace mbarrier {

enum class Op : int { none, arrive, arrive_2, arrive_expect, expect, complete, drop };
struct Step {
  Op op;
  int bytes;
};

// [probe]
// One thread does one thing after the other to a barrier, and asks after each whether the phases of
// parity 0 and of parity 1 have ended: bits 0 and 1.
__global__ void phases(const Step* steps, int count, int arrivals, int* ended) {
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  gg::ptx::mbarrier_init(bar_addr, arrivals);
  gg::ptx::fence_mbarrier_init();
  for (int i = 0; i < count; ++i) {
    const Step step = steps[i];
    switch (step.op) {
      case Op::none:
        break;
      case Op::arrive:
        gg::ptx::mbarrier_arrive(bar_addr);
        break;
      case Op::arrive_2:
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 2;" ::"r"(bar_addr) : "memory");
        break;
      case Op::arrive_expect:
        gg::ptx::mbarrier_arrive_expect_tx(bar_addr, step.bytes);
        break;
      case Op::expect:
        gg::ptx::mbarrier_expect_tx(bar_addr, step.bytes);
        break;
      case Op::complete:  // what the end of a copy does
        asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar_addr),
                     "r"(step.bytes)
                     : "memory");
        break;
      case Op::drop:  // arrives, and is not waited for in later phases
        asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" ::"r"(bar_addr) : "memory");
        break;
    }
    const auto test = [&](int parity) {
      int done;
      asm volatile(
          "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(bar_addr), "r"(parity)
          : "memory");
      return done;
    };
    ended[i] = test(0) | test(1) << 1;
  }
  gg::ptx::mbarrier_inval(bar_addr);
}

// Two warps hand numbers to and fro through a ring of stages. full[stage]: the stage has been
// written; empty[stage]: it has been read. The reader's lane takes what another lane wrote.
constexpr int kStages = 3;
__global__ void ring(int rounds, uint32_t* sums) {
  __shared__ uint64_t full[kStages], empty[kStages];
  __shared__ uint32_t numbers[kStages][32];
  const int lane = int(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      gg::ptx::mbarrier_init(gg::ptx::shared_addr(&full[i]), 32);
      gg::ptx::mbarrier_init(gg::ptx::shared_addr(&empty[i]), 32);
    }
    gg::ptx::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there
  uint32_t sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const int stage = round % kStages, phase = round / kStages % 2;
    const uint32_t full_addr = gg::ptx::shared_addr(&full[stage]);
    const uint32_t empty_addr = gg::ptx::shared_addr(&empty[stage]);
    if (threadIdx.x < 32) {
      // Read by all lanes; at first: never written.
      gg::ptx::mbarrier_wait_parity(empty_addr, phase ^ 1);
      numbers[stage][lane] = uint32_t(round * round + lane * 7919);
      gg::ptx::mbarrier_arrive(full_addr);
    } else {
      gg::ptx::mbarrier_wait_parity(full_addr, phase);  // written by all lanes
      sum = sum * 31 + numbers[stage][(lane + round) % 32];
      gg::ptx::mbarrier_arrive(empty_addr);
    }
  }
  if (threadIdx.x >= 32) sums[lane] = sum;
}
// [/probe]

// The token of an arrival names its phase: out[0] to [3] what test_wait says of it, then the
// arrivals that were pending before each of the arrivals.
__global__ void tokens(uint32_t* out) {
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  gg::ptx::mbarrier_init(bar_addr, 3);
  const auto arrive = [&] {
    uint64_t token;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(bar_addr) : "memory");
    return token;
  };
  const auto test = [&](uint64_t token) {
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(bar_addr), "l"(token)
                 : "memory");
    return done;
  };
  const auto pending = [](uint64_t token) {
    uint32_t count;
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(token));
    return count;
  };
  uint64_t token[5];
  for (int i = 0; i < 2; ++i) token[i] = arrive();
  out[0] = test(token[1]);
  token[2] = arrive();
  out[1] = test(token[0]) & test(token[1]) & test(token[2]);
  asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 2;"
               : "=l"(token[3])
               : "r"(bar_addr)
               : "memory");
  out[2] = test(token[3]) | test(token[2]) << 1;  // the phase now running, and the one before
  token[4] = arrive();
  out[3] = test(token[4]);
  for (int i = 0; i < 5; ++i) out[4 + i] = pending(token[i]);
}

// Each lane copies 16 bytes; the other warp takes them when the barrier says that all have landed.
__global__ void copies_arrive(const uint4* in, uint4* out, bool noinc) {
  __shared__ uint64_t bar;
  __shared__ uint4 tile[32];
  const int lane = int(threadIdx.x) % 32;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  if (threadIdx.x == 0) gg::ptx::mbarrier_init(bar_addr, 32);
  __syncthreads();
  if (threadIdx.x < 32) {
    gg::ptx::cp_async_cg_16(gg::ptx::shared_addr(&tile[lane]), in + lane, 16);
    if (noinc) {  // this arrival is one of the 32
      asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar_addr) : "memory");
    } else {  // this one comes on top of them
      asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(bar_addr) : "memory");
      gg::ptx::mbarrier_arrive(bar_addr);
    }
  } else {
    gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // all copies have landed
    out[lane] = tile[(lane * 5 + 3) % 32];
  }
}

class Mbarrier : public HopperProbe {
 protected:
  static std::vector<int> run(const std::vector<Step>& steps, int arrivals) {
    const Array<Step> array(steps);
    const Array<int> ended(std::vector<int>(steps.size(), -1));
    phases<<<1, 1>>>(array.get(), int(steps.size()), arrivals, ended.get());
    return ended.read();
  }
};
// In an even phase that of parity 1 is the last to have ended, in an odd one 0.
constexpr int kFirst = 2, kSecond = 1;

TEST_F(Mbarrier, CountsArrivals) {
  EXPECT_EQ(run({{Op::none, 0}, {Op::arrive, 0}, {Op::arrive, 0}, {Op::arrive_2, 0}, {Op::arrive, 0}}, 2),
            (std::vector<int>{kFirst, kFirst, kSecond, kFirst, kFirst}));
}

TEST_F(Mbarrier, CountsBytes) {
  EXPECT_EQ(run({{Op::arrive_expect, 96}, {Op::complete, 64}, {Op::complete, 32}, {Op::arrive, 0}}, 1),
            (std::vector<int>{kFirst, kFirst, kSecond, kFirst}));
}

TEST_F(Mbarrier, BytesMayComeFirst) {
  EXPECT_EQ(run({{Op::complete, 64},
                 {Op::arrive_expect, 64},
                 {Op::complete, 16},
                 {Op::expect, 32},
                 {Op::arrive, 0},
                 {Op::complete, 16}},
                1),
            (std::vector<int>{kFirst, kSecond, kSecond, kSecond, kSecond, kFirst}));
}

// The last arrival is there, and more bytes than were expected.
TEST_F(Mbarrier, ExpectingMayEndAPhase) {
  EXPECT_EQ(run({{Op::complete, 48}, {Op::arrive_expect, 16}, {Op::expect, 16}, {Op::expect, 16}}, 1),
            (std::vector<int>{kFirst, kFirst, kFirst, kSecond}));
}

TEST_F(Mbarrier, DroppedArrivalsAreNotWaitedFor) {
  EXPECT_EQ(run({{Op::drop, 0}, {Op::arrive, 0}, {Op::arrive, 0}, {Op::arrive, 0}}, 2),
            (std::vector<int>{kFirst, kSecond, kFirst, kSecond}));
}

TEST_F(Mbarrier, OrdersAProducerAndAConsumer) {
  constexpr int kRounds = 200;
  const Array<uint32_t> sums(std::vector<uint32_t>(32));
  ring<<<1, 64>>>(kRounds, sums.get());
  const std::vector<uint32_t> got = sums.read();
  for (int lane = 0; lane < 32; ++lane) {
    uint32_t sum = 0;
    for (int round = 0; round < kRounds; ++round)
      sum = sum * 31 + uint32_t(round * round + (lane + round) % 32 * 7919);
    EXPECT_EQ(got[size_t(lane)], sum) << "lane " << lane;
  }
}

TEST_F(Mbarrier, TokensNameTheirPhase) {
  const Array<uint32_t> out(std::vector<uint32_t>(9, 99));
  tokens<<<1, 1>>>(out.get());
  EXPECT_EQ(out.read(), (std::vector<uint32_t>{0, 1, 2, 1, 3, 2, 1, 3, 1}));
}

TEST_F(Mbarrier, CopiesOfThreadsArrive) {
  std::vector<uint32_t> in(128);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i * 2654435761u);
  const Array<uint32_t> in_array(in);
  for (const bool noinc : {true, false}) {
    const Array<uint32_t> out(std::vector<uint32_t>(128));
    copies_arrive<<<1, 64>>>(reinterpret_cast<const uint4*>(in_array.get()),
                             reinterpret_cast<uint4*>(out.get()), noinc);
    const std::vector<uint32_t> got = out.read();
    for (size_t lane = 0; lane < 32; ++lane) {
      for (size_t i = 0; i < 4; ++i)
        EXPECT_EQ(got[lane * 4 + i], in[(lane * 5 + 3) % 32 * 4 + i]) << "lane " << lane;
    }
  }
}

}  // namespace mbarrier
}  // namespace probe
