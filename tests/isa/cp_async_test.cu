// SPDX-License-Identifier: MIT
//
// cp.async: how much is copied, what becomes zero, and which wait covers which copy.

#include "common/kernel/ptx/cp_async.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "probe.cuh"

namespace probe {
namespace cp_async {

constexpr int kThreads = 64;

// [probe]
// Three copies per thread, of `bytes`, of 16 - `bytes` and of 16 bytes: two groups, and one that is
// in none. Each thread then takes what the last thread but itself has copied.
__global__ void copy_in_groups(const uint4* in, const int* bytes, uint4* out) {
  __shared__ uint4 tile[3][kThreads];
  const int thread = int(threadIdx.x), other = kThreads - 1 - thread;
  for (auto& row : tile) row[thread] = make_uint4(~0u, ~0u, ~0u, ~0u);
  __syncthreads();  // no byte is zero yet
  gg::ptx::cp_async_cg_16(gg::ptx::shared_addr(&tile[0][thread]), in + thread, bytes[thread]);
  gg::ptx::cp_async_commit_group();
  gg::ptx::cp_async_cg_16(gg::ptx::shared_addr(&tile[1][thread]), in + kThreads + thread, 16 - bytes[thread]);
  gg::ptx::cp_async_commit_group();
  gg::ptx::cp_async_cg_16(gg::ptx::shared_addr(&tile[2][thread]), in + 2 * kThreads + thread, 16);

  gg::ptx::cp_async_wait_group<1>();  // this thread's first group has landed
  __syncthreads();                    // so have everyone's
  out[thread] = tile[0][other];
  gg::ptx::cp_async_wait_group<0>();  // the second too
  __syncthreads();
  out[kThreads + thread] = tile[1][other];
  gg::ptx::cp_async_wait_all();  // and the copy that was not committed
  __syncthreads();
  out[2 * kThreads + thread] = tile[2][other];
}
// [/probe]

class CpAsync : public Probe {};

TEST_F(CpAsync, CopiesAndFillsWithZeros) {
  std::vector<uint8_t> in(3 * kThreads * 16);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint8_t(1 + (i * 37 + i / 251) % 255);  // not 0
  std::vector<int> bytes(kThreads);
  // 0 to 16, different beside each other.
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = int(i * 7 % 17);
  const Array<uint8_t> in_array(in), out_array(std::vector<uint8_t>(in.size(), 0xEE));
  const Array<int> bytes_array(bytes);
  copy_in_groups<<<1, kThreads>>>(reinterpret_cast<const uint4*>(in_array.get()), bytes_array.get(),
                                  reinterpret_cast<uint4*>(out_array.get()));
  const std::vector<uint8_t> out = out_array.read();
  for (int copy = 0; copy < 3; ++copy) {
    for (int thread = 0; thread < kThreads; ++thread) {
      const int other = kThreads - 1 - thread, some = bytes[size_t(other)];
      const int copied = copy == 0 ? some : copy == 1 ? 16 - some : 16;
      for (int byte = 0; byte < 16; ++byte) {
        const int want = byte < copied ? in[size_t((copy * kThreads + other) * 16 + byte)] : 0;
        EXPECT_EQ(out[size_t((copy * kThreads + thread) * 16 + byte)], want)
            << "copy " << copy << " of thread " << other << ", byte " << byte << " of " << copied;
      }
    }
  }
}

}  // namespace cp_async
}  // namespace probe
