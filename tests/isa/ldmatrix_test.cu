// SPDX-License-Identifier: MIT
//
// ldmatrix: which element of which row ends in which half of which register of which lane.

#include "common/ptx/ldmatrix.cuh"
#include "probe.cuh"

namespace probe {
namespace {

constexpr int kWarps = 2;

// [probe]
// Each warp has four 8x8 matrices, 32 rows of 16 bytes, in shuffled places: row r of matrix i is the row
// whose address lane 8 * i + r gives.
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

}  // namespace
}  // namespace probe
