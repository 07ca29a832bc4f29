// SPDX-License-Identifier: MIT
//
// tcgen05 with block scales and B along K or along N. The host lays tiles out by the tables of the
// PTX ISA, byte by byte. Whole numbers and powers of two, whose sums are exact; every row and
// column has its own.

#include "blackwell.cuh"
#include "common/kernel/block_scales.h"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/ptx/tma.cuh"  // fence_proxy_async
#include "common/kernel/ptx/warp.cuh"

namespace probe {
namespace tcgen05_major {

constexpr int kM = 128, kN = 256, kK = 128, kThreads = 128, kRowBytes = 128;
constexpr int kABytes = kM * kRowBytes, kBBytes = kN * kRowBytes, kAtomBytes = 512;
// A, B, scales of A, of B's first and last 128 columns.
constexpr int kBytes = kABytes + kBBytes + 3 * kAtomBytes;

// [probe]
// D [128,256] = A [128,128] * B, of E4M3 with a scale for each 32 k; B is [256,128] or,
// along N, [128,256].
__global__ void __launch_bounds__(kThreads) multiply(const uint4* image, bool along_n, float* d) {
  extern __shared__ __align__(1024) uint4 shared[];
  __shared__ gg::ptx::TmemAddr slot;
  __shared__ uint64_t bar;
  const int thread = int(threadIdx.x), warp = thread / 32;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar), a_addr = gg::ptx::shared_addr(shared);
  const uint32_t b_addr = a_addr + kABytes, scales_addr = b_addr + kBBytes;
  for (int i = thread; i < kBytes / 16; i += kThreads) shared[i] = image[i];
  gg::ptx::fence_proxy_async();
  if (warp == 1) {
    gg::ptx::tcgen05_alloc<512>(gg::ptx::shared_addr(&slot));
    gg::ptx::tcgen05_relinquish_alloc_permit();
  }
  if (thread == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::tcgen05_fence_before();
  __syncthreads();  // tiles, scales, tensor memory and the barrier are there
  gg::ptx::tcgen05_fence_after();
  if (warp == 2 && gg::ptx::elect()) {
    for (int atom = 0; atom < 3; ++atom) {
      gg::ptx::tcgen05_cp_32x128b_warpx4(gg::ptx::tmem_at(slot, 0, kN + 4 * atom),
                                         gg::ptx::tcgen05_desc_scales(scales_addr + atom * kAtomBytes));
    }
    const auto a = gg::ptx::tcgen05_desc_k_major_128b(a_addr);
    const auto b = along_n ? gg::ptx::tcgen05_desc_mn_major_128b(b_addr, 128 * kRowBytes)
                           : gg::ptx::tcgen05_desc_k_major_128b(b_addr);
    const uint32_t idesc =
        gg::ptx::tcgen05_idesc_mxf8f6f4<gg::e4m3, kM, kN>() | (along_n ? gg::ptx::TCGEN05_B_MN_MAJOR : 0);
    for (int step = 0; step < kK / 32; ++step) {  // along N a row of k is 128 bytes
      gg::ptx::tcgen05_mma_mxf8f6f4(slot, gg::ptx::tcgen05_advance(a, step * 32),
                                    gg::ptx::tcgen05_advance(b, step * (along_n ? 32 * kRowBytes : 32)),
                                    idesc | gg::ptx::tcgen05_scale_ids(step, step),
                                    gg::ptx::tmem_at(slot, 0, kN), gg::ptx::tmem_at(slot, 0, kN + 4),
                                    step > 0);
    }
    gg::ptx::tcgen05_commit(bar_addr);
  }
  __syncwarp();
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // the sums are complete
  gg::ptx::tcgen05_fence_after();
  for (int c0 = 0; c0 < kN; c0 += 32) {
    uint32_t part[32];
    gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(slot, warp * 32, c0));
    gg::ptx::tcgen05_wait_ld(part);
    for (int c = 0; c < 32; ++c) d[thread * kN + c0 + c] = __uint_as_float(part[c]);
  }
  gg::ptx::tcgen05_fence_before();
  __syncthreads();  // all have read
  gg::ptx::tcgen05_fence_after();
  if (warp == 1) gg::ptx::tcgen05_dealloc<512>(slot);
}
// [/probe]

// PTX ISA, "Shared Memory Layout": in eight rows of 128 bytes, the 16-byte unit u of row r lies at
// u ^ r % 8.
size_t swizzled(int row, int byte) {
  return size_t(row * kRowBytes + ((byte / 16) ^ row % 8) * 16 + byte % 16);
}

int a_at(int m, int k) { return (m * 5 + k * 3) % 7 - 3; }
int b_at(int n, int k) { return (n * 3 + k * 5 + n / 128) % 9 - 4; }
int exponent_of_a(int m, int block) { return (m + block) % 3; }
int exponent_of_b(int n, int block) { return (n / 2 + block) % 4; }

using Tcgen05Major = BlackwellProbe;
TEST_F(Tcgen05Major, BAlongKAndAlongN) {
  GG_CHECK(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  for (const bool along_n : {false, true}) {
    std::vector<uint4> image(kBytes / 16);
    auto* bytes = reinterpret_cast<uint8_t*>(image.data());
    const auto code = [](int number) { return uint8_t(gg::encode(gg::Format::e4m3, double(number))); };
    const gg::ScaleLayout of_a{kM, kK / 32}, of_b{kN, kK / 32};
    for (int k = 0; k < kK; ++k) {
      for (int m = 0; m < kM; ++m) bytes[swizzled(m, k)] = code(a_at(m, k));
      for (int n = 0; n < kN; ++n) {
        const size_t at = along_n ? size_t(n / 128 * 128 * kRowBytes) + swizzled(k, n % 128) : swizzled(n, k);
        bytes[kABytes + at] = code(b_at(n, k));
      }
    }
    uint8_t* const scales = bytes + kABytes + kBBytes;
    for (int block = 0; block < kK / 32; ++block) {
      for (int m = 0; m < kM; ++m) scales[of_a.offset(m, block)] = uint8_t(127 + exponent_of_a(m, block));
      for (int n = 0; n < kN; ++n)
        scales[kAtomBytes + of_b.offset(n, block)] = uint8_t(127 + exponent_of_b(n, block));
    }
    const Array<uint4> in(image);
    const Array<float> d(std::vector<float>(size_t(kM * kN)));
    multiply<<<1, kThreads, kBytes>>>(in.get(), along_n, d.get());
    const std::vector<float> got = d.read();
    for (int m = 0; m < kM; ++m) {
      for (int n = 0; n < kN; ++n) {
        int sum = 0;
        for (int k = 0; k < kK; ++k)
          sum += a_at(m, k) * b_at(n, k) << (exponent_of_a(m, k / 32) + exponent_of_b(n, k / 32));
        ASSERT_EQ(got[size_t(m * kN + n)], float(sum))
            << "row " << m << ", column " << n << (along_n ? " along N" : "");
      }
    }
  }
}

}  // namespace tcgen05_major
}  // namespace probe
