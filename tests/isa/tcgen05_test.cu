// SPDX-License-Identifier: MIT
//
// tcgen05: sums in tensor memory, and scales of blocks along K. The host lays tiles out by the
// tables of the PTX ISA, byte by byte, and the kernel copies them to shared memory as they are.
// Whole numbers and powers of two, whose sums are exact; every row and column has its own.

#include <numeric>

#include "blackwell.cuh"
#include "common/kernel/formats.h"
#include "common/kernel/ptx/cluster.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tcgen05.cuh"
#include "common/kernel/ptx/tma.cuh"  // fence_proxy_async
#include "common/kernel/ptx/warp.cuh"
#include "matrix_data.h"

namespace probe {
namespace tcgen05 {

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
// D [256,N] = A [256,64] * B [N,64] by each pair of blocks: one has rows 0 to 127 of A and D
// and the first half of B's rows, the other has the rest. `images` has a block's A, then its B,
// for each block.
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

// [transform]
// Y [128,32] = X W^T for each half of X's 32 columns, W [16,16]: X goes from registers to tensor
// memory. With BLOCKS = 2, a pair has 256 rows of X and Y, and each block half of W's rows.
template <int BLOCKS>
__global__ void __cluster_dims__(BLOCKS) __launch_bounds__(kThreads)
    transform(const uint4* x, const uint4* w, float* y) {
  constexpr int kColumns = 64, kX = 0, kY = 32;  // of tensor memory
  constexpr int kRows = 16 / BLOCKS, kUnitRows = 8 * 16;
  __shared__ __align__(16) uint4 w_units[2 * kRows];
  __shared__ gg::ptx::TmemAddr slot;
  __shared__ uint64_t bar;
  const int thread = int(threadIdx.x), warp = thread / 32, block = int(blockIdx.x);
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar), w_addr = gg::ptx::shared_addr(w_units);
  if (thread < 2 * kRows) {  // 16 bytes of a row each: units of eight rows follow each other
    const int row = thread / 2, unit = thread % 2;
    w_units[row / 8 * 16 + unit * 8 + row % 8] = w[block * 2 * kRows + thread];
    gg::ptx::fence_proxy_async();
  }
  if (warp == 1) gg::ptx::tcgen05_alloc<kColumns, BLOCKS>(gg::ptx::shared_addr(&slot));
  if (thread == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::tcgen05_fence_before();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // W, the barrier and tensor memory are there
  gg::ptx::tcgen05_fence_after();
  uint32_t row[16];
  for (int i = 0; i < 4; ++i) *reinterpret_cast<uint4*>(row + 4 * i) = x[(block * kThreads + thread) * 4 + i];
  gg::ptx::tcgen05_st_32x32b_x16(gg::ptx::tmem_at(slot, warp * 32, kX), row);
  gg::ptx::tcgen05_wait_st();
  gg::ptx::tcgen05_fence_before();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // X is there
  gg::ptx::tcgen05_fence_after();
  if (block == 0 && warp == 2 && gg::ptx::elect()) {
    const auto desc = gg::ptx::tcgen05_desc_k_major(w_addr, kUnitRows, 2 * kUnitRows);
    constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_f16<bf16, BLOCKS * kM, 16>();
    for (int half = 0; half < 2; ++half) {
      gg::ptx::tcgen05_mma_f16<BLOCKS>(gg::ptx::tmem_at(slot, 0, kY + 16 * half),
                                       gg::ptx::tmem_at(slot, 0, kX + 8 * half), desc, IDESC, false);
    }
    gg::ptx::tcgen05_commit_multicast<BLOCKS>(bar_addr, (1 << BLOCKS) - 1);
  }
  __syncwarp();
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // Y is complete
  gg::ptx::tcgen05_fence_after();
  uint32_t part[32];
  gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(slot, warp * 32, kY));
  gg::ptx::tcgen05_wait_ld(part);
  for (int c = 0; c < 32; ++c) y[(block * kThreads + thread) * 32 + c] = __uint_as_float(part[c]);
  gg::ptx::tcgen05_fence_before();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // all have read
  gg::ptx::tcgen05_fence_after();
  if (warp == 1) gg::ptx::tcgen05_dealloc<kColumns, BLOCKS>(slot);
}
// [/transform]

// [copy]
// tcgen05.cp: kAtoms atoms of 512 bytes, each into four columns of tensor memory, and what all
// lanes find there: words[block][thread][column]. CTA_GROUP 2: one thread of the pair copies
// in both blocks.
constexpr int kAtomBytes = 512, kAtoms = 8, kAtomColumns = 4 * kAtoms;
template <int CTA_GROUP>
__global__ void __cluster_dims__(CTA_GROUP) __launch_bounds__(kThreads)
    copy_scales(const uint4* images, uint32_t* words) {
  __shared__ __align__(128) uint4 atoms[kAtoms * kAtomBytes / 16];
  __shared__ gg::ptx::TmemAddr slot;
  __shared__ uint64_t bar;
  const int thread = int(threadIdx.x), warp = thread / 32, block = int(blockIdx.x);
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  for (int i = thread; i < kAtoms * kAtomBytes / 16; i += kThreads)
    atoms[i] = images[block * kAtoms * kAtomBytes / 16 + i];
  gg::ptx::fence_proxy_async();
  if (warp == 1) {
    gg::ptx::tcgen05_alloc<kAtomColumns, CTA_GROUP>(gg::ptx::shared_addr(&slot));
    gg::ptx::tcgen05_relinquish_alloc_permit<CTA_GROUP>();
  }
  if (thread == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::tcgen05_fence_before();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the atoms, tensor memory and the barriers of all blocks are there
  gg::ptx::tcgen05_fence_after();
  if (gg::ptx::cluster_ctarank() == 0 && warp == 3 && gg::ptx::elect()) {
    const auto desc = gg::ptx::tcgen05_desc_scales(gg::ptx::shared_addr(atoms));
    for (int atom = 0; atom < kAtoms; ++atom) {
      gg::ptx::tcgen05_cp_32x128b_warpx4<CTA_GROUP>(gg::ptx::tmem_at(slot, 0, 4 * atom),
                                                    gg::ptx::tcgen05_advance(desc, atom * kAtomBytes));
    }
    gg::ptx::tcgen05_commit_multicast<CTA_GROUP>(bar_addr, (1 << CTA_GROUP) - 1);
  }
  __syncwarp();
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // all columns are written
  gg::ptx::tcgen05_fence_after();
  uint32_t part[kAtomColumns];
  gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(slot, warp * 32, 0));
  gg::ptx::tcgen05_wait_ld(part);
  for (int c = 0; c < kAtomColumns; ++c) words[(block * kThreads + thread) * kAtomColumns + c] = part[c];
  gg::ptx::tcgen05_fence_before();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // all have read
  gg::ptx::tcgen05_fence_after();
  if (warp == 1) gg::ptx::tcgen05_dealloc<kAtomColumns, CTA_GROUP>(slot);
}
// [/copy]

// [block_scale]
// A slice of elements of T, each V of a row with a Scale: 128 bytes of each row, and the atoms
// of its scales.
template <class T, int V>
struct Slice {
  static constexpr int IN_BYTE = std::is_same_v<T, gg::e2m1> ? 2 : 1, K = kRowBytes * IN_BYTE;
  static constexpr int ATOMS = K / V / 4;  // of 128 rows, along K
};
// D [128 * BLOCKS,N] = A * B, with their scales; BLOCKS = 2: by a pair of blocks, as
// multiply_in_pairs. `images` has a block's A, its part of B, its rows' scales [ATOMS], and all
// columns' scales [N / 128][ATOMS].
template <class T, class Scale, int V, int N, int BLOCKS>
__global__ void __cluster_dims__(BLOCKS) __launch_bounds__(kThreads)
    multiply_scaled(const uint4* images, float* d) {
  extern __shared__ __align__(1024) uint4 shared[];
  __shared__ gg::ptx::TmemAddr slot;
  __shared__ uint64_t bar;
  constexpr int ATOMS = Slice<T, V>::ATOMS, K = Slice<T, V>::K, COLUMNS = 2 * N;  // allocated
  constexpr int kTiles = (kM + N / BLOCKS) * kRowBytes, kBytes = kTiles + (1 + N / 128) * ATOMS * kAtomBytes;
  const int thread = int(threadIdx.x), warp = thread / 32, block = int(blockIdx.x);
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar), a_addr = gg::ptx::shared_addr(shared);
  for (int i = thread; i < kBytes / 16; i += kThreads) shared[i] = images[block * kBytes / 16 + i];
  gg::ptx::fence_proxy_async();
  if (warp == 1) {
    gg::ptx::tcgen05_alloc<COLUMNS, BLOCKS>(gg::ptx::shared_addr(&slot));
    gg::ptx::tcgen05_relinquish_alloc_permit<BLOCKS>();
  }
  if (thread == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::tcgen05_fence_before();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // the tiles, tensor memory and the barriers of all blocks are there
  gg::ptx::tcgen05_fence_after();
  if (gg::ptx::cluster_ctarank() == 0 && warp == 2 && gg::ptx::elect()) {
    const auto a = gg::ptx::tcgen05_desc_k_major_128b(a_addr);
    const auto b = gg::ptx::tcgen05_desc_k_major_128b(a_addr + kM * kRowBytes);
    const auto scales = gg::ptx::tcgen05_desc_scales(a_addr + kTiles);
    const auto sfa = gg::ptx::tmem_at(slot, 0, N), sfb = gg::ptx::tmem_at(sfa, 0, 4 * ATOMS);
    for (int atom = 0; atom < ATOMS; ++atom) {
      for (int i = 0; i <= N / 128; ++i) {  // of A's rows, then of 128 columns of B each
        const auto to =
            i ? gg::ptx::tmem_at(sfb, 0, atom * N / 32 + 4 * (i - 1)) : gg::ptx::tmem_at(sfa, 0, 4 * atom);
        gg::ptx::tcgen05_cp_32x128b_warpx4<BLOCKS>(
            to, gg::ptx::tcgen05_advance(scales, (i * ATOMS + atom) * kAtomBytes));
      }
    }
    constexpr uint32_t IDESC = gg::ptx::tcgen05_idesc_block_scale<T, Scale, BLOCKS * kM, N>();
    // Steps of 32 bytes, with one, two or four scales of a row.
    for (int step = 0; step < kSteps; ++step) {
      const int scale = step * K / kSteps / V, atom = scale / 4, id = scale % 4;
      gg::ptx::tcgen05_mma_block_scale<T, V, BLOCKS>(
          slot, gg::ptx::tcgen05_advance(a, step * 32), gg::ptx::tcgen05_advance(b, step * 32),
          IDESC | gg::ptx::tcgen05_scale_ids(id, id), gg::ptx::tmem_at(sfa, 0, 4 * atom),
          gg::ptx::tmem_at(sfb, 0, atom * N / 32), step > 0);
    }
    gg::ptx::tcgen05_commit_multicast<BLOCKS>(bar_addr, (1 << BLOCKS) - 1);
  }
  __syncwarp();
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // the sums of all blocks are complete
  gg::ptx::tcgen05_fence_after();
  for (int c0 = 0; c0 < N; c0 += 32) {
    uint32_t part[32];
    gg::ptx::tcgen05_ld_32x32b_x32(part, gg::ptx::tmem_at(slot, warp * 32, c0));
    gg::ptx::tcgen05_wait_ld(part);
    for (int c = 0; c < 32; ++c) d[(block * kM + thread) * N + c0 + c] = __uint_as_float(part[c]);
  }
  gg::ptx::tcgen05_fence_before();
  gg::ptx::cluster_arrive();
  gg::ptx::cluster_wait();  // all threads of all blocks have read
  gg::ptx::tcgen05_fence_after();
  if (warp == 1) gg::ptx::tcgen05_dealloc<COLUMNS, BLOCKS>(slot);
}
// [/block_scale]

// PTX ISA, "Shared Memory Layout": eight rows of 128 bytes make a pattern, in which the 16-byte
// unit u of row r lies at place u ^ r % 8.
int place_of(int line, int byte) { return line * kRowBytes + ((byte / 16) ^ line % 8) * 16 + byte % 16; }
int byte_of(int line, int k) { return place_of(line, 2 * k); }

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

// Two clusters; every 16 bytes of every atom are others.
template <int CTA_GROUP>
void expect_copied() {
  constexpr int kBlocks = 2 * CTA_GROUP, kWords = kAtoms * kAtomBytes / 4;
  std::vector<uint4> image(size_t(kBlocks * kWords / 4));
  std::vector<uint32_t> numbers(size_t(kBlocks * kWords));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = uint32_t(i) * 2654435761u;
  std::memcpy(image.data(), numbers.data(), numbers.size() * 4);
  const Array<uint4> images(image);
  const Array<uint32_t> words(std::vector<uint32_t>(size_t(kBlocks * kThreads * kAtomColumns)));
  copy_scales<CTA_GROUP><<<kBlocks, kThreads>>>(images.get(), words.get());
  const std::vector<uint32_t> got = words.read();
  for (int block = 0; block < kBlocks; ++block) {
    for (int lane = 0; lane < kThreads; ++lane) {
      for (int column = 0; column < kAtomColumns; ++column) {
        // PTX ISA, "tcgen05.cp", .32x128b.warpx4: row r of 16 bytes to lane r of each quarter
        // of the lanes.
        const int at = block * kWords + (column / 4 * kAtomBytes + lane % 32 * 16) / 4 + column % 4;
        ASSERT_EQ(got[size_t((block * kThreads + lane) * kAtomColumns + column)], numbers[size_t(at)])
            << "block " << block << ", lane " << lane << ", column " << column;
      }
    }
  }
}

// Codes of elements and of scales, rows by blocks along K, all over the place. Sums of the products
// are exact: elements are small multiples of 1/2, scales powers of two near 1 or, of UE4M3, up to
// 1.875 times these.
struct ScaledRows {
  int rows, k, block;
  gg::Format element, scale;
  std::vector<uint32_t> codes, scales;
  ScaledRows(int rows, int k, int block, gg::Format element, gg::Format scale, uint32_t salt)
      : rows(rows), k(k), block(block), element(element), scale(scale) {
    std::mt19937 random(salt);
    for (int i = 0; i < rows * k; ++i) {
      const bool narrow = element == gg::Format::e2m1;
      codes.push_back(narrow ? random() % 16 : gg::encode(element, int(random() % 9) - 4));
    }
    for (int i = 0; i < rows * k / block; ++i)
      scales.push_back(scale == gg::Format::ue8m0 ? 125 + random() % 5 : 0x30 + random() % 16);
  }
  std::vector<float> values() const {
    std::vector<float> all;
    for (size_t i = 0; i < codes.size(); ++i)
      all.push_back(gg::decode(element, codes[i]) * gg::decode(scale, scales[i / size_t(block)]));
    return all;
  }
  // [first, first + count) as rows of 128 bytes, mixed within eight of them, from `bytes` on.
  void put(char* bytes, int first, int count) const {
    const int in_byte = k / kRowBytes;
    for (int line = 0; line < count; ++line) {
      for (int i = 0; i < k; ++i) {
        char& byte = bytes[place_of(line, i / in_byte)];
        byte = char(uint32_t(byte) | codes[size_t((first + line) * k + i)] << (8 / in_byte * (i % in_byte)));
      }
    }
  }
  // Atoms of 128 rows and four blocks: row r's bytes at 16 * (r % 32) + 4 * (r / 32).
  void put_atoms(char* bytes, int first, int count) const {
    const int blocks = k / block;
    for (int line = 0; line < count; ++line) {
      for (int j = 0; j < blocks; ++j) {
        const int atom = line / 128 * (blocks / 4) + j / 4, r = line % 128;
        bytes[atom * kAtomBytes + 16 * (r % 32) + 4 * (r / 32) + j % 4] =
            char(scales[size_t((first + line) * blocks + j)]);
      }
    }
  }
};

// Two clusters, each with operands and scales of its own.
template <class T, class Scale, int V, int N, int BLOCKS>
void expect_scaled_product(gg::Format element, gg::Format scale) {
  constexpr int kClusters = 2, kK = Slice<T, V>::K, kAtomsOfRows = Slice<T, V>::ATOMS * kAtomBytes;
  constexpr int kTiles = (kM + N / BLOCKS) * kRowBytes, kBytes = kTiles + (1 + N / 128) * kAtomsOfRows;
  const ScaledRows a(kClusters * BLOCKS * kM, kK, V, element, scale, 5);
  const ScaledRows b(kClusters * N, kK, V, element, scale, 6);
  std::vector<uint4> image(size_t(kClusters * BLOCKS * kBytes / 16));
  for (int block = 0; block < kClusters * BLOCKS; ++block) {
    char* bytes = reinterpret_cast<char*>(image.data()) + block * kBytes;
    const int columns = block / BLOCKS * N;
    a.put(bytes, block * kM, kM);
    b.put(bytes + kM * kRowBytes, columns + block % BLOCKS * N / BLOCKS, N / BLOCKS);
    a.put_atoms(bytes + kTiles, block * kM, kM);
    b.put_atoms(bytes + kTiles + kAtomsOfRows, columns, N);
  }
  const Array<uint4> images(image);
  const Array<float> d(std::vector<float>(size_t(kClusters * BLOCKS * kM * N)));
  auto* kernel = multiply_scaled<T, Scale, V, N, BLOCKS>;
  GG_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  kernel<<<kClusters * BLOCKS, kThreads, size_t(kBytes)>>>(images.get(), d.get());
  const std::vector<float> got = d.read(), a_values = a.values(), b_values = b.values();
  for (int row = 0; row < kClusters * BLOCKS * kM; ++row) {
    for (int column = 0; column < N; ++column) {
      const float* of_a = a_values.data() + row * kK;
      const float* of_b = b_values.data() + (row / (BLOCKS * kM) * N + column) * kK;
      const double sum = std::inner_product(of_a, of_a + kK, of_b, 0.0);
      ASSERT_EQ(got[size_t(row * N + column)], float(sum)) << "row " << row << ", column " << column;
    }
  }
}
template <class T, class Scale, int V>
void expect_scaled_products(gg::Format element, gg::Format scale) {
  expect_scaled_product<T, Scale, V, 128, 1>(element, scale);
  expect_scaled_product<T, Scale, V, 256, 2>(element, scale);
}

std::vector<uint4> codes_of(const Matrix& m) {
  std::vector<uint4> units(m.data.size() * sizeof(uint16_t) / sizeof(uint4));
  auto* bytes = reinterpret_cast<char*>(units.data());
  for (size_t i = 0; i < m.data.size(); ++i) {
    const auto code = uint16_t(matrix::whole(matrix::kBf16, int(m.data[i])));
    std::memcpy(bytes + i * sizeof code, &code, sizeof code);
  }
  return units;
}

template <int BLOCKS>
void expect_transform() {
  constexpr int kRows = BLOCKS * kM, kColumns = 32, kSize = 16;
  const Matrix x = matrix::whole_numbers(kRows, kColumns, 31, 5),
               w = matrix::whole_numbers(kSize, kSize, 31, 6);
  const Array<uint4> x_codes(codes_of(x)), w_codes(codes_of(w));
  const Array<float> y(std::vector<float>(size_t(kRows * kColumns)));
  transform<BLOCKS><<<BLOCKS, kThreads>>>(x_codes.get(), w_codes.get(), y.get());
  const std::vector<float> got = y.read();
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      const int first = column / kSize * kSize;
      int sum = 0;
      for (int i = 0; i < kSize; ++i) sum += x.number(row, first + i) * w.number(column - first, i);
      ASSERT_EQ(got[size_t(row * kColumns + column)], float(sum)) << "row " << row << ", column " << column;
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
TEST_F(Tcgen05, TakesAFromTensorMemory) {
  expect_transform<1>();
  expect_transform<2>();
}
TEST_F(Tcgen05, CopiesScalesToEachQuarterOfTheLanes) { expect_copied<1>(); }
TEST_F(Tcgen05, CopiesScalesInPairs) { expect_copied<2>(); }
TEST_F(Tcgen05, ScalesMxfp8) {
  expect_scaled_products<gg::e4m3, gg::ue8m0, 32>(gg::Format::e4m3, gg::Format::ue8m0);
  expect_scaled_products<gg::e5m2, gg::ue8m0, 32>(gg::Format::e5m2, gg::Format::ue8m0);
}
TEST_F(Tcgen05, ScalesMxfp4) {
  expect_scaled_products<gg::e2m1, gg::ue8m0, 32>(gg::Format::e2m1, gg::Format::ue8m0);
}
TEST_F(Tcgen05, ScalesNvfp4) {
  expect_scaled_products<gg::e2m1, gg::ue4m3, 16>(gg::Format::e2m1, gg::Format::ue4m3);
}
TEST_F(Tcgen05, ScalesFp4By16PowersOfTwo) {
  expect_scaled_products<gg::e2m1, gg::ue8m0, 16>(gg::Format::e2m1, gg::Format::ue8m0);
}
TEST_F(Tcgen05, MultipliesF16) { expect_product<f16, 128>(matrix::kF16); }

}  // namespace tcgen05
}  // namespace probe
