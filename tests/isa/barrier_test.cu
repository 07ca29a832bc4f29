// SPDX-License-Identifier: MIT
//
// bar.sync with a name: two teams of two warps meet as often as each likes, without the other.

#include "common/ptx/barrier.cuh"
#include "probe.cuh"

namespace probe {
namespace {

constexpr int kTeams = 2, kTeamThreads = 64;

// [probe]
// In each round every thread hands its number on to the thread across its team, in the other warp, and adds
// one.
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

}  // namespace
}  // namespace probe
