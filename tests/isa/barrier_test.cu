// SPDX-License-Identifier: MIT
//
// bar.sync with a name: two teams of two warps meet as often as each likes, without the other. With
// bar.arrive one team tells the other and goes on.

#include "common/kernel/ptx/barrier.cuh"
#include "probe.cuh"

namespace probe {
namespace barrier {

constexpr int kTeams = 2, kTeamThreads = 64;

// [probe]
// In each round every thread hands its number on to the thread across its team, in the other warp,
// and adds one.
__global__ void hand_on(int* numbers, int rounds_of_team_0, int rounds_of_team_1) {
  __shared__ int shared[kTeams][kTeamThreads];
  const int team = int(threadIdx.x) / kTeamThreads, thread = int(threadIdx.x) % kTeamThreads;
  int number = numbers[threadIdx.x];
  for (int round = 0; round < (team == 0 ? rounds_of_team_0 : rounds_of_team_1); ++round) {
    shared[team][thread] = number;
    gg::ptx::bar_sync(1 + team, kTeamThreads);  // the team's numbers are in shared memory
    number = shared[team][(thread + kTeamThreads / 2 + 1) % kTeamThreads] + 1;
    gg::ptx::bar_sync(1 + team, kTeamThreads);  // the team has read them: they may be overwritten
  }
  numbers[threadIdx.x] = number;
}

// Team 0 puts a number into each slot, team 1 takes them out. Each waits for the other's word, not
// for its way.
__global__ void pass_on(const int* in, int* out, int rounds) {
  __shared__ int slots[kTeamThreads];
  constexpr int FULL = 1, EMPTY = 2, ALL = kTeams * kTeamThreads;
  const int team = int(threadIdx.x) / kTeamThreads, thread = int(threadIdx.x) % kTeamThreads;
  for (int round = 0; round < rounds; ++round) {
    const int i = round * kTeamThreads + thread;
    if (team == 0) {
      if (round > 0) gg::ptx::bar_sync(EMPTY, ALL);  // team 1 has taken the numbers before
      slots[(thread * 3 + 1) % kTeamThreads] = in[i];
      gg::ptx::bar_arrive(FULL, ALL);
    } else {
      gg::ptx::bar_sync(FULL, ALL);  // team 0's numbers are there
      out[i] = slots[thread];
      if (round + 1 < rounds) gg::ptx::bar_arrive(EMPTY, ALL);
    }
  }
}
// [/probe]

class NamedBarrier : public Probe {};

TEST_F(NamedBarrier, HoldsOneTeamAndNotTheOther) {
  const int rounds[kTeams] = {3, 100};
  std::vector<int> numbers(kTeams * kTeamThreads);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = int(i) * 1000;
  const Array<int> array(numbers);
  hand_on<<<1, kTeams * kTeamThreads>>>(array.get(), rounds[0], rounds[1]);
  const std::vector<int> got = array.read();
  for (int team = 0; team < kTeams; ++team) {
    for (int thread = 0; thread < kTeamThreads; ++thread) {
      const int from = (thread + rounds[team] * (kTeamThreads / 2 + 1)) % kTeamThreads;
      EXPECT_EQ(got[size_t(team * kTeamThreads + thread)],
                numbers[size_t(team * kTeamThreads + from)] + rounds[team])
          << "team " << team << " thread " << thread;
    }
  }
}

TEST_F(NamedBarrier, TellsTheOtherTeamAndGoesOn) {
  constexpr int kRounds = 9;
  std::vector<int> numbers(kRounds * kTeamThreads);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = int(i) * 1000 + 7;
  const Array<int> in(numbers), out(std::vector<int>(numbers.size(), -1));
  pass_on<<<1, kTeams * kTeamThreads>>>(in.get(), out.get(), kRounds);
  const std::vector<int> got = out.read();
  for (int i = 0; i < kRounds * kTeamThreads; ++i) {
    const size_t first = size_t(i / kTeamThreads * kTeamThreads), thread = size_t(i % kTeamThreads);
    EXPECT_EQ(got[first + (thread * 3 + 1) % kTeamThreads], numbers[size_t(i)]) << "number " << i;
  }
}

}  // namespace barrier
}  // namespace probe
