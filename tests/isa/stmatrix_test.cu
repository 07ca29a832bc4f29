// SPDX-License-Identifier: MIT
//
// stmatrix: which half of which register of which lane ends in which element of which row.

#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/stmatrix.cuh"
#include "probe.cuh"

namespace probe {
namespace stmatrix {

constexpr int kWarps = 2;

// [probe]
// Each warp stores `matrices` 8x8 matrices from its lanes' registers; row r of matrix i goes to the
// place whose address lane 8 * i + r gives, places being shuffled. Every place is written before,
// so that what is left alone shows.
__global__ void store_matrices(const uint32_t* registers, uint16_t* rows, int matrices, bool transposed) {
  __shared__ __align__(16) uint16_t shared[kWarps][32][8];
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  for (int e = 0; e < 8; ++e) shared[warp][lane][e] = 0xFFFF;
  __syncwarp();
  const uint32_t row_addr = gg::ptx::shared_addr(shared[warp][(lane * 5 + warp * 3) % 32]);
  const uint32_t* own = registers + (warp * 32 + lane) * 4;
  const uint32_t four[4] = {own[0], own[1], own[2], own[3]}, two[2] = {own[0], own[1]};
  if (matrices == 4) {
    transposed ? gg::ptx::stmatrix_x4_trans(row_addr, four) : gg::ptx::stmatrix_x4(row_addr, four);
  } else if (matrices == 2) {
    transposed ? gg::ptx::stmatrix_x2_trans(row_addr, two) : gg::ptx::stmatrix_x2(row_addr, two);
  } else {
    transposed ? gg::ptx::stmatrix_x1_trans(row_addr, own[0]) : gg::ptx::stmatrix_x1(row_addr, own[0]);
  }
  __syncwarp();  // the warp's rows are in shared memory
  for (int e = 0; e < 8; ++e) rows[(warp * 32 + lane) * 8 + e] = shared[warp][lane][e];
}
// [/probe]

struct Form {
  int matrices;
  bool transposed;
};
class Stmatrix : public Probe, public testing::WithParamInterface<Form> {
 protected:
  Stmatrix() : Probe(gg::Arch::sm_90a) {}
};

TEST_P(Stmatrix, PutsEachHalfWhereItBelongs) {
  const auto [matrices, transposed] = GetParam();
  std::vector<uint32_t> registers(kWarps * 32 * 4);
  // All halves different.
  for (size_t i = 0; i < registers.size(); ++i) registers[i] = uint32_t(2 * i + 1) << 16 | uint32_t(2 * i);
  const Array<uint32_t> in(registers);
  const Array<uint16_t> out(std::vector<uint16_t>(kWarps * 32 * 8));
  store_matrices<<<1, kWarps * 32>>>(in.get(), out.get(), matrices, transposed);
  const std::vector<uint16_t> rows = out.read();
  for (int warp = 0; warp < kWarps; ++warp) {
    std::vector<uint16_t> want(32 * 8, 0xFFFF);
    for (int i = 0; i < matrices; ++i) {
      for (int r = 0; r < 8; ++r) {
        for (int c = 0; c < 8; ++c) {
          const int major = transposed ? c : r, minor = transposed ? r : c, lane = major * 4 + minor / 2;
          const uint32_t pair = registers[size_t((warp * 32 + lane) * 4 + i)];
          want[size_t(((8 * i + r) * 5 + warp * 3) % 32 * 8 + c)] = uint16_t(minor % 2 ? pair >> 16 : pair);
        }
      }
    }
    for (int e = 0; e < 32 * 8; ++e)
      EXPECT_EQ(rows[size_t(warp * 256 + e)], want[size_t(e)])
          << "warp " << warp << " place " << e / 8 << " element " << e % 8;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Stmatrix,
                         testing::Values(Form{1, false}, Form{1, true}, Form{2, false}, Form{2, true},
                                         Form{4, false}, Form{4, true}),
                         [](const auto& info) {
                           return "x" + std::to_string(info.param.matrices) +
                                  (info.param.transposed ? "Transposed" : "");
                         });

}  // namespace stmatrix
}  // namespace probe
