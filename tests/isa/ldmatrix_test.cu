// SPDX-License-Identifier: MIT
//
// ldmatrix: which element of which row ends in which half of which register of which lane. And
// movmatrix, which transposes in registers.

#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mma.cuh"
#include "probe.cuh"

namespace probe {
namespace ldmatrix {

constexpr int kWarps = 2;

// [probe]
// Each warp has four 8x8 matrices, 32 rows of 16 bytes, in shuffled places: row r of matrix i is
// the row whose address lane 8 * i + r gives.
__global__ void load_matrices(const uint16_t* rows, uint32_t* registers, bool transposed) {
  __shared__ __align__(16) uint16_t shared[kWarps][32][8];
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  uint16_t* place = shared[warp][(lane * 5 + warp * 3) % 32];
  for (int e = 0; e < 8; ++e) place[e] = rows[(warp * 32 + lane) * 8 + e];
  __syncwarp();  // the warp's rows are in shared memory

  uint32_t reg[4];
  if (transposed) {
    gg::ptx::ldmatrix_x4_trans(reg, gg::ptx::shared_addr(place));
  } else {
    gg::ptx::ldmatrix_x4(reg, gg::ptx::shared_addr(place));
  }
  for (int i = 0; i < 4; ++i) registers[(warp * 32 + lane) * 4 + i] = reg[i];
}
// [/probe]

class Ldmatrix : public Probe, public testing::WithParamInterface<bool> {};

TEST_P(Ldmatrix, PutsEachElementWhereMmaWantsIt) {
  const bool transposed = GetParam();
  std::vector<uint16_t> rows(kWarps * 32 * 8);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = uint16_t(i * 127 + 11);  // all different
  const Array<uint16_t> in(rows);
  const Array<uint32_t> out(std::vector<uint32_t>(kWarps * 32 * 4));
  load_matrices<<<1, kWarps * 32>>>(in.get(), out.get(), transposed);
  const std::vector<uint32_t> registers = out.read();

  for (int warp = 0; warp < kWarps; ++warp) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const auto element = [&](int r, int c) {
          return uint32_t(rows[size_t(((warp * 4 + i) * 8 + r) * 8 + c)]);
        };
        const int g = lane / 4, pair = lane % 4 * 2;
        const uint32_t lower = transposed ? element(pair, g) : element(g, pair);
        const uint32_t upper = transposed ? element(pair + 1, g) : element(g, pair + 1);
        EXPECT_EQ(registers[size_t((warp * 32 + lane) * 4 + i)], lower | upper << 16)
            << "warp " << warp << " lane " << lane << " matrix " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Ldmatrix, testing::Bool(),
                         [](const auto& info) { return info.param ? "Transposed" : "Plain"; });

// One and two matrices, their rows given by 8 and 16 lanes, by generic and by shared addresses; the
// other lanes' addresses don't count.
__global__ void load_fewer(const uint16_t* rows, uint32_t* registers) {
  __shared__ __align__(16) uint16_t shared[kWarps][16][8];
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  for (int e = 0; e < 8; ++e) shared[warp][lane % 16][e] = rows[(warp * 16 + lane % 16) * 8 + e];
  __syncwarp();
  // No lane above 15 has an aligned address.
  const uint16_t* row = shared[warp][lane < 16 ? 15 - lane : 0] + (lane < 16 ? 0 : 1);
  uint32_t reg[6];
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(reg[0])
               : "r"(gg::ptx::shared_addr(row))
               : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.b16 {%0}, [%1];" : "=r"(reg[1]) : "l"(row) : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.b16 {%0, %1}, [%2];"
               : "=r"(reg[2]), "=r"(reg[3])
               : "l"(row)
               : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(reg[4]), "=r"(reg[5])
               : "r"(gg::ptx::shared_addr(row))
               : "memory");
  for (int i = 0; i < 6; ++i) registers[(warp * 32 + lane) * 6 + i] = reg[i];
}

// Each warp transposes the matrix whose rows its lanes hold, four lanes a row.
__global__ void transpose(const uint32_t* in, uint32_t* out) {
  out[threadIdx.x] = gg::ptx::movmatrix_trans(in[threadIdx.x]);
}

class Matrices : public Probe {};

TEST_F(Matrices, OneAndTwoAreLoaded) {
  std::vector<uint16_t> rows(kWarps * 16 * 8);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = uint16_t(i * 251 + 7);
  const Array<uint16_t> in(rows);
  const Array<uint32_t> out(std::vector<uint32_t>(kWarps * 32 * 6));
  load_fewer<<<1, kWarps * 32>>>(in.get(), out.get());
  const std::vector<uint32_t> registers = out.read();
  const int matrices[6] = {0, 0, 0, 1, 0, 1};
  const bool transposed[6] = {false, true, false, false, true, true};
  for (int thread = 0; thread < kWarps * 32; ++thread) {
    for (int i = 0; i < 6; ++i) {
      const int g = thread % 32 / 4, pair = thread % 4 * 2;
      const auto element = [&](int r, int c) {
        return uint32_t(rows[size_t((thread / 32 * 16 + 15 - matrices[i] * 8 - r) * 8 + c)]);
      };
      const uint32_t want = transposed[i] ? element(pair, g) | element(pair + 1, g) << 16
                                          : element(g, pair) | element(g, pair + 1) << 16;
      EXPECT_EQ(registers[size_t(thread * 6 + i)], want) << "thread " << thread << " register " << i;
    }
  }
}

TEST_F(Matrices, AreTransposedInRegisters) {
  std::vector<uint32_t> pairs(kWarps * 32);
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = uint32_t(2 * i + 1) << 16 | uint32_t(2 * i);
  const Array<uint32_t> in(pairs), out(std::vector<uint32_t>(pairs.size()));
  transpose<<<1, kWarps * 32>>>(in.get(), out.get());
  const std::vector<uint32_t> moved = out.read();
  for (int thread = 0; thread < kWarps * 32; ++thread) {
    const uint32_t g = uint32_t(thread % 32 / 4), pair = uint32_t(thread % 4 * 2),
                   first = uint32_t(thread / 32 * 64);
    EXPECT_EQ(moved[size_t(thread)], (first + (pair + 1) * 8 + g) << 16 | (first + pair * 8 + g))
        << "thread " << thread;
  }
}

}  // namespace ldmatrix
}  // namespace probe
