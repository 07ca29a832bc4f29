// SPDX-License-Identifier: MIT
//
// setmaxnreg: two warpgroups have most of the block's registers in turn. griddepcontrol: a kernel
// that begins while the one before it still runs, and waits for it.

#include <numeric>

#include "common/kernel/ptx/warpgroup.cuh"
#include "hopper.cuh"

namespace probe {
namespace warpgroup {

// kMany: more than a thread begins with.
constexpr int kThreads = 256, kFew = 16, kMany = 160, kRounds = 5;

// NUMBERS registers that are all needed until the end.
template <int NUMBERS>
__device__ uint32_t stir(uint32_t seed) {
  uint32_t x[NUMBERS], all = 0;
#pragma unroll
  for (int i = 0; i < NUMBERS; ++i) x[i] = seed * uint32_t(2 * i + 1) + uint32_t(i);
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int i = 0; i < NUMBERS; ++i) x[i] = x[i] * 5 + x[(i + NUMBERS / 2) % NUMBERS];
  }
#pragma unroll
  for (int i = 0; i < NUMBERS; ++i) all = all * 31 + x[i];
  return all;
}
uint32_t stirred(int numbers, uint32_t seed) {  // the same on the host
  std::vector<uint32_t> x;
  for (uint32_t i = 0; i < uint32_t(numbers); ++i) x.push_back(seed * (2 * i + 1) + i);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * 5 + x[(i + x.size() / 2) % x.size()];
  }
  return std::accumulate(x.begin(), x.end(), 0u, [](uint32_t all, uint32_t each) { return all * 31 + each; });
}

// [registers]
// Two blocks to a multiprocessor leave 128 registers to each of 256 threads: 40 + 216 = 128 + 128.
__global__ void __launch_bounds__(kThreads, 2) trade(const uint32_t* seeds, uint32_t* few, uint32_t* many) {
  const uint32_t seed = seeds[threadIdx.x];
  if (threadIdx.x < 128) {
    gg::ptx::setmaxnreg_dec<40>();
    few[threadIdx.x] = stir<kFew>(seed);
    gg::ptx::setmaxnreg_inc<216>();  // when the other warpgroup has given them back
    many[threadIdx.x] = stir<kMany>(seed);
  } else {
    gg::ptx::setmaxnreg_inc<216>();
    many[threadIdx.x] = stir<kMany>(seed);
    gg::ptx::setmaxnreg_dec<40>();
    few[threadIdx.x] = stir<kFew>(seed);
  }
}
// [/registers]

class Warpgroups : public HopperProbe {};

TEST_F(Warpgroups, TradeRegistersAndKeepTheirNumbers) {
  std::vector<uint32_t> seeds(kThreads);
  for (size_t i = 0; i < seeds.size(); ++i) seeds[i] = uint32_t(i * 2654435761u);
  const Array<uint32_t> in(seeds), few(std::vector<uint32_t>(kThreads, 0)),
      many(std::vector<uint32_t>(kThreads, 0));
  trade<<<1, kThreads>>>(in.get(), few.get(), many.get());
  const std::vector<uint32_t> got_few = few.read(), got_many = many.read();
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(got_few[i], stirred(kFew, seeds[i])) << "thread " << i;
    EXPECT_EQ(got_many[i], stirred(kMany, seeds[i])) << "thread " << i;
  }
}

// [overlap]
// Lets the kernel behind begin at once, then takes its time, and writes last of all.
__global__ void follow(const uint32_t* in, uint32_t* out, int rounds) {
  gg::ptx::griddepcontrol_launch_dependents();
  const uint32_t own = blockIdx.x * 1000 + threadIdx.x;  // what needs nothing of the kernel before
  gg::ptx::griddepcontrol_wait();                        // it has ended, its writes are visible
  const uint32_t blocks = gridDim.x, from = (blockIdx.x + 1) % blocks * blockDim.x + threadIdx.x;
  uint32_t number = in[from] + own;
  for (int round = 0; round < rounds; ++round) number = number * 1664525 + 1013904223;
  out[blockIdx.x * blockDim.x + threadIdx.x] = number;
}
// [/overlap]

constexpr int kBlocks = 12, kBlockThreads = 64, kKernels = 6, kAll = kBlocks * kBlockThreads;

// Six kernels, each of which reads what the one before wrote, all allowed to begin early.
std::vector<uint32_t> run_kernels(decltype(&follow) kernel, const std::vector<uint32_t>& numbers,
                                  int rounds) {
  const Array<uint32_t> even(numbers), odd(std::vector<uint32_t>(kAll, 0));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = kBlocks;
  config.blockDim = kBlockThreads;
  config.attrs = &attribute;
  config.numAttrs = 1;
  for (int i = 0; i < kKernels; ++i) {
    const Array<uint32_t>&from = i % 2 ? odd : even, &to = i % 2 ? even : odd;
    GG_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<const uint32_t*>(from.get()), to.get(), rounds));
  }
  return (kKernels % 2 ? odd : even).read();
}
std::vector<uint32_t> expected(std::vector<uint32_t> numbers, int rounds) {
  for (int kernel = 0; kernel < kKernels; ++kernel) {
    std::vector<uint32_t> next(kAll);
    for (uint32_t i = 0; i < kAll; ++i) {
      const uint32_t block = i / kBlockThreads, thread = i % kBlockThreads;
      uint32_t number = numbers[(block + 1) % kBlocks * kBlockThreads + thread] + block * 1000 + thread;
      for (int round = 0; round < rounds; ++round) number = number * 1664525 + 1013904223;
      next[i] = number;
    }
    numbers = next;
  }
  return numbers;
}
std::vector<uint32_t> first_numbers() {
  std::vector<uint32_t> numbers(kAll);
  for (size_t i = 0; i < kAll; ++i) numbers[i] = uint32_t(i * 2654435761u);
  return numbers;
}

class Kernels : public HopperProbe {};

TEST_F(Kernels, OverlapAndWaitForTheOneBefore) {
  const int rounds = gg::emulator() ? 20 : 20000;
  EXPECT_EQ(run_kernels(follow, first_numbers(), rounds), expected(first_numbers(), rounds));
}

// The same without the wait. A GPU may be lucky; the emulator is not, in orders of an even seed.
__global__ void do_not_wait(const uint32_t* in, uint32_t* out, int rounds) {
  gg::ptx::griddepcontrol_launch_dependents();
  const uint32_t blocks = gridDim.x, from = (blockIdx.x + 1) % blocks * blockDim.x + threadIdx.x;
  uint32_t number = in[from] + blockIdx.x * 1000 + threadIdx.x;
  for (int round = 0; round < rounds; ++round) number = number * 1664525 + 1013904223;
  out[blockIdx.x * blockDim.x + threadIdx.x] = number;
}
TEST_F(Kernels, AreWrongOnTheEmulatorWithoutTheWait) {
  if (!gg::emulator()) GTEST_SKIP() << "only the emulator makes the next kernel begin early";
  EXPECT_NE(run_kernels(do_not_wait, first_numbers(), 3), expected(first_numbers(), 3));
  gg::emulator()->set_order(1, 0);
  EXPECT_EQ(run_kernels(do_not_wait, first_numbers(), 3), expected(first_numbers(), 3))
      << "one after the other";
  gg::emulator()->set_order(0, 0);
}

}  // namespace warpgroup
}  // namespace probe
