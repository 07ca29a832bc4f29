// SPDX-License-Identifier: MIT
//
// st.release.gpu and ld.acquire.gpu: a block writes numbers, all its warps meet, and one thread raises a flag. The
// other block, of lower number, waits for it with one thread, meets, and reads them.

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/global.cuh"
#include "probe.cuh"

namespace probe {
namespace global {

constexpr int kThreads = 96;

// [probe]
__global__ void hand_over(const int* in, int* numbers, int* flag, int* out) {
  const int thread = int(threadIdx.x);
  if (blockIdx.x == 1) {
    numbers[thread] = in[thread] * 3 + 1;
    gg::ptx::bar_sync(1, kThreads);  // all have written
    if (thread == kThreads - 1) gg::ptx::st_release_gpu(flag, 7);
  } else {
    if (thread == 0) {
      while (gg::ptx::ld_acquire_gpu(flag) != 7) {
      }
      *flag = 0;
    }
    gg::ptx::bar_sync(1, kThreads);  // all have learnt of it
    out[thread] = numbers[(thread + 33) % kThreads];
  }
}
// [/probe]

class GlobalFlag : public Probe {};

TEST_F(GlobalFlag, ShowsWhatABlockWroteBefore) {
  std::vector<int> in(kThreads);
  for (int i = 0; i < kThreads; ++i) in[size_t(i)] = i * 1000 + 5;
  const std::vector<int> none(kThreads, -1);
  const Array<int> operands(in), numbers(none), flag(std::vector<int>(1, 0)), out(none);
  hand_over<<<2, kThreads>>>(operands.get(), numbers.get(), flag.get(), out.get());
  const std::vector<int> got = out.read();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(got[size_t(i)], in[size_t((i + 33) % kThreads)] * 3 + 1) << i;
  EXPECT_EQ(flag.read()[0], 0);
}

}  // namespace global
}  // namespace probe
