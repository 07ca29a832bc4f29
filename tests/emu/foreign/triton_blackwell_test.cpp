// SPDX-License-Identifier: MIT
//
// The kernels that Triton made for sm_100a of triton_kernels.py and triton_blackwell.py, run by gg-ptx and
// compared with plain loops on the host. All sums are exact.
//
// Triton leaves out what hardware does without, so each test names what it allows: the fences of tcgen05 and,
// by kernel, tcgen05.wait::ld before the first use of what was loaded (ptxas itself waits for the registers),
// values of registers in bytes that nobody uses, and 0 as the base offset of descriptors without a swizzle
// mode, where it has no meaning.

#include <gtest/gtest.h>

#include "tests/emu/foreign/triton_run.h"

namespace {

using namespace testing_gg;

std::vector<std::string> allowing(const std::string& kinds) { return {"--allow", kinds}; }

// Exact sums in every order; without what is allowed the emulator stops at the first of these kinds.
void run_allowing(PtxRun& run, const std::string& kinds) {
  run.run_in_every_order(allowing(kinds));
  EXPECT_TRUE(reports(run.run(), {"fault " + kinds.substr(0, kinds.find(',')) + " in "}));
}

// ---- f16, bf16, tf32, e4m3 ----

class TritonTcgen05 : public testing::TestWithParam<Matmul> {};

TEST_P(TritonTcgen05, EqualsTheExactSums) {
  expect_exact_sums(GetParam(), 150, [](PtxRun& run) { run_allowing(run, "tcgen05-fence"); });
}

INSTANTIATE_TEST_SUITE_P(Elements, TritonTcgen05,
                         testing::Values(Matmul{"matmul_bf16_100a", Element::bf16, 16, 128, 64, 128},
                                         Matmul{"matmul_f16_100a", Element::f16, 16, 128, 64, 256},
                                         Matmul{"matmul_e4m3_100a", Element::e4m3, 5, 64, 32, 128},
                                         Matmul{"matmul_tf32_100a", Element::f32, 100, 128, 32, 128}),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- tensor maps made on the device, roles, pairs ----

void persistent_matmul(const char* name, const char* entry, const char* grid, int threads,
                       const char* kinds) {
  expect_persistent_matmul(name, entry, grid, threads, [&](PtxRun& run) { run_allowing(run, kinds); });
}
TEST(TritonBlackwell, PersistentMatmulWithDeviceMadeTensorMaps) {
  persistent_matmul("matmul_descriptor_100a", "matmul_persistent", "3", 128, "tcgen05-fence,async-window");
}
TEST(TritonBlackwell, PersistentMatmulInClusters) {
  persistent_matmul("matmul_cluster_100a", "matmul_persistent", "4", 128, "tcgen05-fence,async-window");
}
TEST(TritonBlackwell, MatmulOfSpecialisedWarps) {
  persistent_matmul("matmul_roles_100a", "matmul_roles", "3", 256, "tcgen05-fence");
}

TEST(TritonBlackwell, MatmulOfPairs) {
  constexpr int kM = 512, kN = 256, kK = 320;
  PtxRun run = start("matmul_pair_100a", "matmul_pair", "4,2", 256);
  const std::vector<int> wanted = put_product(run, {kM, kN, kK}, Element::bf16, 8, 7, Format::bf16);
  map_argument(run, "a", "bf16", kM, kK, "64x128");
  map_argument(run, "b", "bf16", kN, kK, "64x64");
  map_argument(run, "d", "bf16", kM, kN, "64x128");
  run.arg(whole(kK));
  finish(run);
  run_allowing(run, "tcgen05-fence,async-window");
  expect_product(run, wanted, Format::bf16);
}

// ---- block scales ----

struct Scaled {
  const char* name;
  bool fp4;
  int block;  // elements along k that share a scale: E8M0 if 32, E4M3 if 16
  const char* kinds;
};
void PrintTo(const Scaled& s, std::ostream* out) { *out << s.name; }

// A matrix of rows by k in a narrow format, its scales, and what they stand for.
struct ScaledMatrix {
  std::vector<uint8_t> bytes, scales;  // scales[rows][k / block]
  std::vector<double> values;
};

ScaledMatrix scaled_matrix(int rows, int k, const Scaled& format, uint32_t seed) {
  constexpr double kFp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::mt19937 random(seed);
  ScaledMatrix m;
  for (int i = 0; i < rows * (k / format.block); ++i) {
    m.scales.push_back(uint8_t(format.block == 32 ? 125 + random() % 5 : 0x30 + random() % 16));
  }
  for (int i = 0; i < rows * k; ++i) {
    const uint8_t scale = m.scales[size_t(i / format.block)];
    const double factor = format.block == 32 ? std::ldexp(1.0, scale - 127) : narrow_value(scale, true);
    if (format.fp4) {
      const int code = int(random() % 16);
      if (i % 2 == 0) m.bytes.push_back(0);
      m.bytes.back() = uint8_t(m.bytes.back() | code << 4 * (i % 2));
      m.values.push_back((code & 8 ? -1 : 1) * kFp4[code & 7] * factor);
    } else {
      m.bytes.push_back(narrow_code(int(random() % 9) - 4, true));
      m.values.push_back(narrow_value(m.bytes.back(), true) * factor);
    }
  }
  return m;
}

std::vector<double> product(const ScaledMatrix& a, const ScaledMatrix& b, int m, int n, int k) {
  std::vector<double> d;
  for (int row = 0; row < m; ++row) {
    for (int col = 0; col < n; ++col) {
      double sum = 0;
      for (int i = 0; i < k; ++i) sum += a.values[size_t(row * k + i)] * b.values[size_t(col * k + i)];
      d.push_back(sum);
    }
  }
  return d;
}

// Atoms of 128 rows and 4 blocks along k, 512 bytes each, those along k one after the other: row r and block
// j of an atom are at byte 16 (r % 32) + 4 (r / 32) + j. Rows past the last have scale 0.
std::vector<uint8_t> atoms_of(const std::vector<uint8_t>& scales, int rows, int blocks) {
  std::vector<uint8_t> atoms(size_t((rows + 127) / 128 * 128 * blocks));
  for (int row = 0; row < rows; ++row) {
    for (int j = 0; j < blocks; ++j) {
      const int atom = row / 128 * (blocks / 4) + j / 4, r = row % 128;
      atoms[size_t(512 * atom + 16 * (r % 32) + 4 * (r / 32) + j % 4)] = scales[size_t(row * blocks + j)];
    }
  }
  return atoms;
}

class TritonScales : public testing::TestWithParam<Scaled> {};

TEST_P(TritonScales, ThroughRegisters) {
  const Scaled& p = GetParam();
  constexpr int kM = 150, kN = 104, kK = 352;  // no tile is full in any direction
  const ScaledMatrix a = scaled_matrix(kM, kK, p, 31), b = scaled_matrix(kN, kK, p, 32);
  PtxRun run = start(p.name, "matmul_scaled", "2,2", 128);
  run.in("a", a.bytes).in("sa", a.scales).in("b", b.bytes).in("sb", b.scales);
  run.out("d", std::vector<float>(kM * kN, NAN));
  run.arg("a").arg("sa").arg("b").arg("sb").arg("d").arg(whole(kM)).arg(whole(kN)).arg(whole(kK));
  finish(run);
  run_allowing(run, p.kinds);
  const std::vector<double> wanted = product(a, b, kM, kN, kK);
  EXPECT_EQ(run.result<float>("d"), std::vector<float>(wanted.begin(), wanted.end()));
}

INSTANTIATE_TEST_SUITE_P(Formats, TritonScales,
                         testing::Values(Scaled{"scaled_mxfp8_100a", false, 32, "tcgen05-fence"},
                                         Scaled{"scaled_mxfp4_100a", true, 32, "tcgen05-fence"},
                                         Scaled{"scaled_nvfp4_100a", true, 16, "tcgen05-fence"}),
                         [](const auto& info) { return std::string(info.param.name); });

class TritonAtoms : public testing::TestWithParam<Scaled> {};

TEST_P(TritonAtoms, FromSharedToTensorMemory) {
  const Scaled& p = GetParam();
  constexpr int kM = 200, kN = 136, kK = 1024;
  const ScaledMatrix a = scaled_matrix(kM, kK, p, 33), b = scaled_matrix(kN, kK, p, 34);
  PtxRun run = start(p.name, "matmul_atoms", "3", 128, 3);
  run.in("a", a.bytes).in("sa", atoms_of(a.scales, kM, kK / p.block));
  run.in("b", b.bytes).in("sb", atoms_of(b.scales, kN, kK / p.block));
  run.out("d", std::vector<uint16_t>(kM * kN, 0xFFFF));
  run.arg("a").arg("sa").arg("b").arg("sb").arg("d").arg(whole(kM)).arg(whole(kN)).arg(whole(kK));
  finish(run);
  run_allowing(run, p.kinds);
  std::vector<uint16_t> wanted;
  for (const double sum : product(a, b, kM, kN, kK))
    wanted.push_back(uint16_t(gg::encode(Format::bf16, float(sum))));
  EXPECT_EQ(run.result<uint16_t>("d"), wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, TritonAtoms,
    testing::Values(Scaled{"atoms_mxfp8_100a", false, 32, "tcgen05-fence,async-window"},
                    Scaled{"atoms_mxfp4_100a", true, 32, "descriptor,tcgen05-fence,async-window"},
                    Scaled{"atoms_nvfp4_100a", true, 16, "descriptor,tcgen05-fence,async-window"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
