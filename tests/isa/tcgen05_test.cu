// SPDX-License-Identifier: MIT
//
// tcgen05: sums in tensor memory. The host lays tiles out by the tables of the PTX ISA, byte by byte, and the
// kernel copies them to shared memory as they are. Whole numbers, whose sums are exact; every row and column
// has its own.

#include "blackwell.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/tcgen05.cuh"
#include "common/ptx/tma.cuh"  // fence_proxy_async
#include "common/ptx/warp.cuh"
#include "matrix_data.h"

namespace probe {
namespace {

using matrix::Format;
using matrix::Matrix;

constexpr int kM = 128, kThreads = 128, kSteps = 4, kK = 16 * kSteps, kRowBytes = 128;

// [probe]
// D [128,N] = A [128,64] * B [N,64]: one slice of a chapter's tile.
template <class T, int N>
__global__ void __launch_bounds__(kThreads) multiply(const uint4* image, float* d) {
  extern __shared__ __align__(1024) uint4 shared[];  // A, then B
  __shared__ gg::ptx::TmemAddr slot;
  __shared__ uint64_t bar;
  const int thread = int(threadIdx.x), warp = thread / 32;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar), a_addr = gg::ptx::shared_addr(shared);
  for (int i = thread; i < (kM + N) * kRowBytes / 16; i += kThreads) shared[i] = image[i];
  gg::ptx::fence_proxy_async();  // the tensor core reads with the asynchronous proxy
  if (warp == 1) {
    gg::ptx::tcgen05_alloc<N>(gg::ptx::shared_addr(&slot));
    gg::ptx::tcgen05_relinquish_alloc_permit();
  }
  if (thread == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::tcgen05_fence_before();
  __syncthreads();  // the tiles, tensor memory and the barrier are there
  gg::ptx::tcgen05_fence_after();
  if (warp == 2 && gg::ptx::elect()) {
    const auto a = gg::ptx::tcgen05_desc_k_major_128b(a_addr);
    const auto b = gg::ptx::tcgen05_desc_k_major_128b(a_addr + kM * kRowBytes);
    for (int step = 0; step < kSteps; ++step) {
      gg::ptx::tcgen05_mma_f16(slot, gg::ptx::tcgen05_advance(a, step * 32),
                               gg::ptx::tcgen05_advance(b, step * 32), gg::ptx::tcgen05_idesc_f16<T, kM, N>(),
                               step > 0);
    }
    gg::ptx::tcgen05_commit(bar_addr);
  }
  __syncwarp();
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // the sums are complete
  gg::ptx::tcgen05_fence_after();
  for (int c0 = 0; c0 < N; c0 += 32) {
    uint32_t part[32];
    gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(slot, warp * 32, c0));
    gg::ptx::tcgen05_wait_ld(part);
    for (int c = 0; c < 32; ++c) d[thread * N + c0 + c] = __uint_as_float(part[c]);
  }
  gg::ptx::tcgen05_fence_before();
  __syncthreads();  // all have read
  gg::ptx::tcgen05_fence_after();
  if (warp == 1) gg::ptx::tcgen05_dealloc<N>(slot);
}
// [/probe]

// [pair]
// D [256,N] = A [256,64] * B [N,64] by each pair of blocks: one has rows 0 to 127 of A and D and the first
// half of B's rows, the other has the rest. `images` has a block's A, then its B, for each block.
template <int N>
__global__ void __cluster_dims__(2) __launch_bounds__(kThreads)
    multiply_in_pairs(const uint4* images, float* d) {
  extern __shared__ __align__(1024) uint4 shared[];  // A, then B
  __shared__ gg::ptx::TmemAddr slot;
  __shared__ uint64_t bar;
  constexpr int kUnits = (kM + N / 2) * kRowBytes / 16;
  const int thread = int(threadIdx.x), warp = thread / 32, block = int(blockIdx.x);
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar), a_addr = gg::ptx::shared_addr(shared);
  for (int i = thread; i < kUnits; i += kThreads) shared[i] = images[block * kUnits + i];
  gg::ptx::fence_proxy_async();
  if (warp == 1) {
    gg::ptx::tcgen05_alloc<N, 2>(gg::ptx::shared_addr(&slot));
    gg::ptx::tcgen05_relinquish_alloc_permit<2>();
  }
  if (thread == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::tcgen05_fence_before();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the tiles, tensor memory and the barriers of both blocks are there
  gg::ptx::tcgen05_fence_after();
  if (gg::ptx::cluster_ctarank() == 0 && warp == 2 && gg::ptx::elect()) {
    const auto a = gg::ptx::tcgen05_desc_k_major_128b(a_addr);
    const auto b = gg::ptx::tcgen05_desc_k_major_128b(a_addr + kM * kRowBytes);
    for (int step = 0; step < kSteps; ++step) {
      gg::ptx::tcgen05_mma_f16<2>(slot, gg::ptx::tcgen05_advance(a, step * 32),
                                  gg::ptx::tcgen05_advance(b, step * 32),
                                  gg::ptx::tcgen05_idesc_f16<bf16, 2 * kM, N>(), step > 0);
    }
    gg::ptx::tcgen05_commit_multicast<2>(bar_addr, 0b11);  // one arrival in each block
  }
  __syncwarp();
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // the sums of both blocks are complete
  gg::ptx::tcgen05_fence_after();
  for (int c0 = 0; c0 < N; c0 += 32) {
    uint32_t part[32];
    gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(slot, warp * 32, c0));
    gg::ptx::tcgen05_wait_ld(part);
    for (int c = 0; c < 32; ++c) d[(block * kM + thread) * N + c0 + c] = __uint_as_float(part[c]);
  }
  gg::ptx::tcgen05_fence_before();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // all threads of both blocks have read
  gg::ptx::tcgen05_fence_after();
  if (warp == 1) gg::ptx::tcgen05_dealloc<N, 2>(slot);
}
// [/pair]

// PTX ISA, "Shared Memory Layout": eight rows of 128 bytes make a pattern, in which the 16-byte unit u of row
// r lies at place u ^ r % 8.
int byte_of(int line, int k) { return line * kRowBytes + ((k * 2 / 16) ^ line % 8) * 16 + k * 2 % 16; }

std::vector<uint4> image_of(const Format& f, const Matrix& a, const Matrix& b) {
  std::vector<uint4> image(size_t(a.rows + b.rows) * kRowBytes / 16);
  char* bytes = reinterpret_cast<char*>(image.data());
  const auto put = [&](const Matrix& m, int line0) {
    for (int line = 0; line < m.rows; ++line) {
      for (int k = 0; k < kK; ++k) {
        const auto code = uint16_t(matrix::whole(f, m.number(line, k)));
        std::memcpy(bytes + byte_of(line0 + line, k), &code, sizeof code);
      }
    }
  };
  put(a, 0);
  put(b, a.rows);
  return image;
}

template <class T, int N>
void expect_product(const Format& f) {
  const Matrix a = matrix::whole_numbers(kM, kK, 31, 1), b = matrix::whole_numbers(N, kK, 31, 2);
  const Array<uint4> image(image_of(f, a, b));
  const Array<float> d(std::vector<float>(size_t(kM * N)));
  const int bytes = (kM + N) * kRowBytes;
  GG_CHECK(cudaFuncSetAttribute(multiply<T, N>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  multiply<T, N><<<1, kThreads, size_t(bytes)>>>(image.get(), d.get());
  const std::vector<float> got = d.read();
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < N; ++column) {
      int sum = 0;
      for (int k = 0; k < kK; ++k) sum += a.number(row, k) * b.number(column, k);
      ASSERT_EQ(got[size_t(row * N + column)], float(sum)) << "row " << row << ", column " << column;
    }
  }
}

Matrix rows_of(const Matrix& m, int first, int rows) {
  Matrix part(rows, m.columns);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < m.columns; ++column) part.at(row, column) = m.at(first + row, column);
  }
  return part;
}

// Two pairs, each with operands of its own.
template <int N>
void expect_product_of_pairs() {
  constexpr int kPairs = 2, kRows = 2 * kM;
  const Matrix a = matrix::whole_numbers(kPairs * kRows, kK, 31, 3);
  const Matrix b = matrix::whole_numbers(kPairs * N, kK, 31, 4);
  std::vector<uint4> images;
  for (int block = 0; block < 2 * kPairs; ++block) {
    const auto image = image_of(matrix::kBf16, rows_of(a, block * kM, kM), rows_of(b, block * N / 2, N / 2));
    images.insert(images.end(), image.begin(), image.end());
  }
  const Array<uint4> image(images);
  const Array<float> d(std::vector<float>(size_t(kPairs * kRows * N)));
  const int bytes = (kM + N / 2) * kRowBytes;
  GG_CHECK(cudaFuncSetAttribute(multiply_in_pairs<N>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  multiply_in_pairs<N><<<2 * kPairs, kThreads, size_t(bytes)>>>(image.get(), d.get());
  const std::vector<float> got = d.read();
  for (int row = 0; row < kPairs * kRows; ++row) {
    for (int column = 0; column < N; ++column) {
      int sum = 0;
      for (int k = 0; k < kK; ++k) sum += a.number(row, k) * b.number(row / kRows * N + column, k);
      ASSERT_EQ(got[size_t(row * N + column)], float(sum)) << "row " << row << ", column " << column;
    }
  }
}

using Tcgen05 = BlackwellProbe;
TEST_F(Tcgen05, MultipliesBf16) {
  expect_product<bf16, 32>(matrix::kBf16);
  expect_product<bf16, 64>(matrix::kBf16);
  expect_product<bf16, 128>(matrix::kBf16);
  expect_product<bf16, 256>(matrix::kBf16);
}
TEST_F(Tcgen05, MultipliesInPairs) {
  expect_product_of_pairs<64>();
  expect_product_of_pairs<256>();
}
TEST_F(Tcgen05, MultipliesF16) { expect_product<f16, 128>(matrix::kF16); }

}  // namespace
}  // namespace probe
