// SPDX-License-Identifier: MIT
//
// The kernels that Triton made of triton_kernels.py, run by gg-ptx and compared with plain loops on the host.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "tests/emu/foreign/triton_run.h"
#include "tests/emu/trace_file.h"

namespace {

using namespace testing_gg;

std::vector<float> real_numbers(size_t count, float scale, int seed) {
  std::mt19937 random{uint32_t(seed)};
  std::vector<float> values(count);
  for (float& v : values) v = scale * (float(random()) / 2147483648.0f - 1.0f);
  return values;
}

// ---- matrix products ----

class TritonMatmul : public testing::TestWithParam<Matmul> {};

void in_every_order(PtxRun& run) { run.run_in_every_order(); }

TEST_P(TritonMatmul, EqualsTheExactSums) { expect_exact_sums(GetParam(), 100, in_every_order); }

INSTANTIATE_TEST_SUITE_P(Elements, TritonMatmul,
                         testing::Values(Matmul{"matmul_bf16_80", Element::bf16, 16, 64, 64, 128},
                                         Matmul{"matmul_f16_80", Element::f16, 16, 32, 64, 128},
                                         Matmul{"matmul_tf32_80", Element::f32, 100, 32, 32, 128},
                                         Matmul{"matmul_e5m2_80", Element::e5m2, 8, 32, 32, 128},
                                         Matmul{"matmul_bf16_90a", Element::bf16, 16, 64, 64, 128},
                                         Matmul{"matmul_f16_90a", Element::f16, 16, 128, 64, 256},
                                         Matmul{"matmul_e4m3_90a", Element::e4m3, 5, 64, 32, 128},
                                         Matmul{"matmul_tf32_90a", Element::f32, 100, 64, 32, 128}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Triton, SplitMatmulAddsItsPartsAtomically) {
  constexpr int kM = 64, kN = 96, kK = 256;
  const std::vector<int> a = whole_numbers(kM * kK, 16, 3), b = whole_numbers(kK * kN, 16, 4);
  PtxRun run = start("matmul_split_80", "matmul_split", "2,3,4", 128);
  put_matrix(run, "a", a, Element::bf16);
  put_matrix(run, "b", b, Element::bf16);
  run.out("d", std::vector<float>(kM * kN, 7.0f));
  run.arg("a").arg("b").arg("d").arg(whole(kM)).arg(whole(kN)).arg(whole(kK));
  finish(run);
  run.run_in_every_order();
  std::vector<float> wanted;
  for (const int sum : product(a, b, kM, kN, kK, true)) wanted.push_back(float(sum + 7));
  EXPECT_EQ(run.result<float>("d"), wanted);
}

TEST(Triton, PersistentMatmulWithDeviceMadeTensorMaps) {
  expect_persistent_matmul("matmul_descriptor_90a", "matmul_persistent", "3", 128, in_every_order);
}
TEST(Triton, PersistentMatmulInClusters) {
  expect_persistent_matmul("matmul_cluster_90a", "matmul_persistent", "4", 128, in_every_order);
}

TEST(Triton, MatmulWithTensorMapsOfTheHost) {
  constexpr int kM = 128, kN = 192, kK = 256;
  PtxRun run = start("matmul_maps_90a", "matmul_maps", "2,3", 128);
  const std::vector<int> wanted = put_product(run, {kM, kN, kK}, Element::bf16, 8, 7, Format::f16, true);
  map_argument(run, "a", "bf16", kM, kK);
  map_argument(run, "b", "bf16", kK, kN);
  map_argument(run, "d", "f16", kM, kN);
  run.arg(whole(kK));
  finish(run);
  run.run_in_every_order();
  expect_product(run, wanted, Format::f16);
}

TEST(Triton, MatmulOfSpecialisedWarps) {
  constexpr int kM = 128, kN = 128, kK = 576;
  PtxRun run = start("matmul_specialized_90a", "matmul_specialized", "2,2", 256);
  const std::vector<int> wanted = put_product(run, {kM, kN, kK}, Element::bf16, 4, 9, Format::bf16);
  map_argument(run, "a", "bf16", kM, kK);
  map_argument(run, "b", "bf16", kN, kK);
  map_argument(run, "d", "bf16", kM, kN);
  run.arg(whole(kK));
  finish(run);
  run.run_in_every_order();  // warps 0 to 3 write the same word of shared memory, with the same value
  expect_product(run, wanted, Format::bf16);

  // A trace shows the roles: warps that load by TMA, and warps that wait, multiply and store.
  ASSERT_EQ(run.run({"--trace", run.path("trace.json")}).code, 0);
  std::string roles[2];
  for (const auto& [where, row] : testing_gg::read_trace(run.path("trace.json")).warps) {
    std::string order;
    for (const std::string& kind : testing_gg::kinds_of(row)) order += kind[0];
    const bool loads = order.find('l') != order.npos, multiplies = order.find('m') != order.npos;
    if (loads) roles[0] += multiplies ? "?" : "l";
    const bool in_turns = order.find("mm") == order.npos && order[0] == 'w';
    if (multiplies)
      roles[1] += in_turns && std::count(order.begin(), order.end(), 'm') == kK / 64 ? "m" : "?";
  }
  EXPECT_EQ(roles[0], std::string(4, 'l'));      // one warp of each of four blocks
  EXPECT_EQ(roles[1], std::string(4 * 4, 'm'));  // four
}

void expect_close(const std::vector<float>& got, const std::vector<double>& wanted, double relative,
                  double absolute) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], wanted[i], relative * std::abs(wanted[i]) + absolute) << "element " << i;
  }
}

void attention(const char* name, int head) {
  constexpr int kN = 192;
  const float scale = 0.25f;
  const size_t count = size_t(kN * head);
  std::vector<double> values[3];
  PtxRun run = start(name, "attention", "3", 128);
  for (int i = 0; i < 3; ++i) {
    std::vector<uint16_t> codes;
    for (const float v : real_numbers(count, 2.0f, 11 + i)) {
      codes.push_back(uint16_t(gg::encode(Format::f16, v)));
      values[i].push_back(gg::decode(Format::f16, codes.back()));
    }
    run.in(std::string(1, "qkv"[i]), codes);
  }
  run.out("o", std::vector<uint16_t>(count, 0xFFFF));
  run.arg("q").arg("k").arg("v").arg("o").arg(whole(kN)).arg("f32:0.25");
  finish(run);
  run.run_in_every_order();
  std::vector<double> wanted;
  std::vector<float> got;
  for (int row = 0; row < kN; ++row) {
    std::vector<double> weights;
    double total = 0;
    for (int col = 0; col <= row; ++col) {
      double score = 0;
      for (int i = 0; i < head; ++i)
        score += values[0][size_t(row * head + i)] * values[1][size_t(col * head + i)];
      weights.push_back(std::exp(score * scale));
      total += weights.back();
    }
    for (int i = 0; i < head; ++i) {
      double sum = 0;
      for (int col = 0; col <= row; ++col) sum += weights[size_t(col)] * values[2][size_t(col * head + i)];
      wanted.push_back(sum / total);
    }
  }
  for (const uint16_t code : run.result<uint16_t>("o")) got.push_back(gg::decode(Format::f16, code));
  expect_close(got, wanted, 2e-3, 2e-3);
}
TEST(Triton, AttentionWithMmaSync) { attention("attention_80", 32); }
TEST(Triton, AttentionWithWgmma) { attention("attention_90a", 64); }

// ---- rows ----

TEST(Triton, Softmax) {
  constexpr int kRows = 5, kN = 1000;
  const std::vector<float> x = real_numbers(kRows * kN, 8.0f, 20);
  PtxRun run = start("softmax_90a", "softmax", "5", 256);
  run.in("x", x).out("y", std::vector<float>(x.size(), NAN)).arg("x").arg("y").arg(whole(kN));
  finish(run);
  run.run_in_every_order();
  std::vector<double> wanted;
  for (int row = 0; row < kRows; ++row) {
    double total = 0;
    for (int i = 0; i < kN; ++i) total += std::exp(double(x[size_t(row * kN + i)]));
    for (int i = 0; i < kN; ++i) wanted.push_back(std::exp(double(x[size_t(row * kN + i)])) / total);
  }
  expect_close(run.result<float>("y"), wanted, 1e-5, 0);
}

// A tile in four blocks: sums go through the shared memory of the neighbours, and all sums are exact.
TEST(Triton, SumsInACluster) {
  constexpr int kM = 64, kN = 128;
  const std::vector<int> x = whole_numbers(kM * kN, 1000, 26);
  std::vector<float> wanted(kN + kM + 1, 0);
  for (int row = 0; row < kM; ++row) {
    const auto begin = x.begin() + row * kN;
    for (int col = 0; col < kN; ++col) wanted[size_t(col)] += float(begin[col]);
    wanted[size_t(kN + row)] = float(*std::max_element(begin, begin + kN));
  }
  wanted.back() = float(std::accumulate(x.begin(), x.end(), 0));
  PtxRun run = start("cluster_sums_90a", "cluster_sums", "4", 128);
  run.in("x", std::vector<float>(x.begin(), x.end())).out("y", std::vector<float>(wanted.size(), NAN));
  run.arg("x").arg("y");
  finish(run);
  run.run_in_every_order();
  EXPECT_EQ(run.result<float>("y"), wanted);
}

TEST(Triton, Statistics) {
  constexpr int kRows = 4, kN = 500;
  const std::vector<float> x = real_numbers(kRows * kN, 3.0f, 21);
  PtxRun run = start("statistics_90a", "statistics", "4", 128);
  run.in("x", x)
      .out("out", std::vector<float>(kRows * 2, NAN))
      .out("which", std::vector<int32_t>(kRows * 3, -1));
  run.arg("x").arg("out").arg("which").arg(whole(kN));
  finish(run);
  run.run_in_every_order();
  std::vector<double> wanted;
  std::vector<int32_t> places;
  for (int row = 0; row < kRows; ++row) {
    const auto begin = x.begin() + row * kN, end = begin + kN;
    const double mean = std::accumulate(begin, end, 0.0) / kN;
    double squares = 0;
    int32_t bits = 0;
    for (auto v = begin; v != end; ++v) {
      squares += (*v - mean) * (*v - mean);
      int32_t code;
      std::memcpy(&code, &*v, sizeof code);
      bits ^= code;
    }
    wanted.insert(wanted.end(), {mean, std::sqrt(squares / kN)});
    places.insert(places.end(), {int32_t(std::max_element(begin, end) - begin),
                                 int32_t(std::min_element(begin, end) - begin), bits});
  }
  expect_close(run.result<float>("out"), wanted, 1e-5, 1e-5);
  EXPECT_EQ(run.result<int32_t>("which"), places);
}

TEST(Triton, Scans) {
  constexpr size_t kN = 1024;
  const std::vector<int32_t> x = whole_numbers(kN, 1000, 22);
  PtxRun run = start("scan_90a", "scan", "1", 256);
  run.in("x", x)
      .out("y", std::vector<int32_t>(kN, -1))
      .out("z", std::vector<int32_t>(kN, -1))
      .out("w", std::vector<float>(kN, NAN));
  run.arg("x").arg("y").arg("z").arg("w");
  finish(run);
  run.run_in_every_order();
  std::vector<int32_t> from_start(kN), from_end(kN);
  std::vector<double> recurrence;
  std::partial_sum(x.begin(), x.end(), from_start.begin());
  std::partial_sum(x.rbegin(), x.rend(), from_end.rbegin());
  for (size_t i = 0; i < kN; ++i)
    recurrence.push_back((i ? recurrence.back() : 0) * ((x[i] & 3) - 1) * 0.5 + 1);
  EXPECT_EQ(run.result<int32_t>("y"), from_start);
  EXPECT_EQ(run.result<int32_t>("z"), from_end);
  expect_close(run.result<float>("w"), recurrence, 1e-5, 1e-6);
}

void sorts(const char* name) {
  constexpr size_t kN = 256;
  std::vector<float> x = real_numbers(kN, 300.0f, 23);
  PtxRun run = start(name, "sort", "1", 128);
  run.in("x", x).out("y", std::vector<float>(kN, NAN)).out("z", std::vector<int16_t>(kN, -1));
  run.arg("x").arg("y").arg("z");
  finish(run);
  run.run_in_every_order();
  std::sort(x.begin(), x.end(), std::greater<>());
  std::vector<int16_t> whole_part;
  for (const float v : x) whole_part.push_back(int16_t(v * 100));
  EXPECT_EQ(run.result<float>("y"), x);
  EXPECT_EQ(run.result<int16_t>("z"), whole_part);
}
TEST(Triton, SortThroughSharedMemory) { sorts("sort_80"); }
TEST(Triton, SortThroughStmatrix) { sorts("sort_90a"); }

// ---- addresses and atomics ----

TEST(Triton, Histogram) {
  constexpr int kN = 1000, kBins = 64;
  std::vector<int32_t> x = whole_numbers(kN, 31, 24);
  for (int32_t& v : x) v += 31;
  PtxRun run = start("histogram_90a", "histogram", "4", 128);
  run.in("x", x).out("counts", std::vector<int32_t>(kBins, 0)).out("sums", std::vector<float>(kBins, 0));
  run.out("most", std::vector<int32_t>(8, -1)).out("halves", std::vector<uint16_t>(kBins, 0));
  for (const char* name : {"x", "counts", "sums", "most", "halves"}) run.arg(name);
  run.arg(whole(kN));
  finish(run);
  run.run_in_every_order();  // all warps clear the bins
  std::vector<int32_t> counts(kBins), most(8, -1);
  for (int i = 0; i < kN; ++i) {
    ++counts[size_t(x[size_t(i)])];
    most[size_t(x[size_t(i)] % 8)] = i;
  }
  std::vector<float> sums;
  for (const int32_t count : counts) sums.push_back(0.5f * float(count));
  EXPECT_EQ(run.result<int32_t>("counts"), counts);
  EXPECT_EQ(run.result<float>("sums"), sums);
  EXPECT_EQ(run.result<int32_t>("most"), most);
  EXPECT_EQ(run.result<uint16_t>("halves"), rounded(counts, Format::f16));
}

TEST(Triton, SpinLock) {
  constexpr int kBlocks = 12, kN = 128;
  PtxRun run = start("spin_lock_80", "spin_lock", std::to_string(kBlocks), 128);
  run.out("lock", std::vector<int32_t>{0})
      .out("total", std::vector<int32_t>(kN, 5))
      .out("turns", std::vector<int32_t>{0});
  run.arg("lock").arg("total").arg("turns");
  finish(run);
  run.run_in_every_order();
  std::vector<int32_t> wanted;
  for (int i = 0; i < kN; ++i) wanted.push_back(5 + kBlocks * i + kBlocks * (kBlocks - 1) / 2);
  EXPECT_EQ(run.result<int32_t>("total"), wanted);
  EXPECT_EQ(run.result<int32_t>("turns"), std::vector<int32_t>{kBlocks});
  EXPECT_EQ(run.result<int32_t>("lock"), std::vector<int32_t>{0});
}

// The lock is held before the launch: nobody ever gets it.
TEST(Triton, SpinLockThatIsNeverFreeIsReported) {
  PtxRun run = start("spin_lock_80", "spin_lock", "3", 128);
  run.out("lock", std::vector<int32_t>{1})
      .out("total", std::vector<int32_t>(128, 0))
      .out("turns", std::vector<int32_t>{0});
  run.arg("lock").arg("total").arg("turns");
  finish(run);
  EXPECT_TRUE(reports(run.run(), {"deadlock in spin_lock"}));
}

TEST(Triton, Gather) {
  constexpr int kM = 16, kN = 64;
  const std::vector<float> x = real_numbers(kM * kN, 1.0f, 25);
  std::vector<int32_t> index = whole_numbers(kM * kN, kM * kN / 2 - 1, 26);
  for (int32_t& i : index) i += kM * kN / 2;
  PtxRun run = start("gather_80", "gather", "1", 128);
  run.in("x", x)
      .in("index", index)
      .out("y", std::vector<float>(kM * kN, NAN))
      .out("z", std::vector<float>(kM * kN, NAN));
  run.arg("x").arg("index").arg("y").arg("z");
  finish(run);
  run.run_in_every_order();
  std::vector<float> y, z;
  for (int i = 0; i < kM * kN; ++i) {
    y.push_back(x[size_t(index[size_t(i)])]);
    z.push_back(x[size_t(index[size_t(i)] % kM * kN + i % kN)]);
  }
  EXPECT_EQ(run.result<float>("y"), y);
  EXPECT_EQ(run.result<float>("z"), z);
}

TEST(Triton, DescriptorsOverTheEdge) {
  constexpr int kM = 40, kN = 44;
  const std::vector<int> whole_x = whole_numbers(kM * kN, 50, 27);
  const std::vector<float> x(whole_x.begin(), whole_x.end());
  PtxRun run = start("descriptors_90a", "descriptors", "3,2", 128, 6);
  run.in("x", x).out("y", std::vector<float>(kM * kN, NAN)).out("z", std::vector<float>(kM * kN, 1.0f));
  run.arg("x").arg("y").arg("z").arg(whole(kM)).arg(whole(kN));
  finish(run);
  run.run_in_every_order();
  std::vector<float> y, z(kM * kN, 1.0f);
  for (const float v : x) y.push_back(2 * v);
  for (int row = 0; row < kM; ++row) {
    for (int col = 0; col < kN; ++col) {
      const float v = x[size_t(row * kN + col)];
      z[size_t(row * kN + col)] += v;
      z[size_t((row / 16 * 8 + row % 16) * kN + col)] += v;
    }
  }
  EXPECT_EQ(run.result<float>("y"), y);
  EXPECT_EQ(run.result<float>("z"), z);
}

// ---- elements ----

TEST(Triton, Transpose) {
  constexpr int kN = 64;
  std::vector<int16_t> x(kN * kN), y(kN * kN);
  std::iota(x.begin(), x.end(), int16_t(-1000));
  for (int i = 0; i < kN * kN; ++i) y[size_t(i)] = x[size_t(i % kN * kN + i / kN)];
  PtxRun run = start("transpose_90a", "transpose", "1", 128);
  run.in("x", x).out("y", std::vector<int16_t>(x.size(), -1)).arg("x").arg("y");
  finish(run);
  run.run_in_every_order();
  EXPECT_EQ(run.result<int16_t>("y"), y);
}

TEST(Triton, Functions) {
  constexpr int kN = 300;
  std::vector<float> x = real_numbers(kN, 4.0f, 28);
  x[7] = 100000.0f;  // a large angle is reduced with a table in constant memory
  PtxRun run = start("functions_80", "functions", "3", 128);
  run.in("x", x).out("y", std::vector<float>(12 * kN, NAN)).arg("x").arg("y").arg(whole(kN));
  finish(run);
  run.run_in_every_order();
  const std::vector<float> y = run.result<float>("y");
  using Real = double (*)(double);
  const Real functions[] = {
      [](double v) { return std::exp(v); },
      [](double v) { return std::log(std::abs(v) + 1); },
      [](double v) { return std::sin(v); },
      [](double v) { return std::cos(v); },
      [](double v) { return std::erf(v); },
      [](double v) { return 1 / std::sqrt(std::abs(v) + 1); },
      [](double v) { return double(std::sqrt(float(std::abs(v)))); },
      [](double v) { return double(float(v) / 3.0f); },
      [](double v) { return std::floor(v); },
      [](double v) { return std::ceil(v); },
      [](double v) { return std::exp2(v); },
      [](double v) { return double(std::fma(float(v), float(v), 1.0f)); },
  };
  for (int f = 0; f < 12; ++f) {
    const bool exact = f >= 6 && f != 10;
    for (int i = 0; i < kN; ++i) {
      if (i == 7 && (f == 0 || f == 10)) continue;  // infinite
      const double wanted = functions[f](double(x[size_t(i)]));
      ASSERT_NEAR(y[size_t(f * kN + i)], wanted, exact ? 0 : 4e-6 * std::abs(wanted) + 1e-6)
          << "function " << f << " of " << x[size_t(i)];
    }
  }
}

void formats(const char* name, bool e4m3) {
  constexpr int kN = 400;
  std::vector<float> x = real_numbers(kN, 100.0f, 29);
  for (size_t i = 0; i < 100; ++i) x[i] /= 1024;
  PtxRun run = start(name, "formats", "4", 128);
  run.in("x", x)
      .out("half", std::vector<uint16_t>(kN, 0xFFFF))
      .out("brain", std::vector<uint16_t>(kN, 0xFFFF));
  run.out("narrow", std::vector<uint8_t>(kN, 0xFF)).out("wide", std::vector<double>(kN, NAN));
  run.out("back", std::vector<float>(kN, NAN)).out("byte", std::vector<int8_t>(kN, -1));
  for (const char* each : {"x", "half", "brain", "narrow", "wide", "back", "byte"}) run.arg(each);
  run.arg(whole(kN));
  finish(run);
  run.run_in_every_order(
      {"--allow", "uninit-register"});  // it computes with pairs of which half has no value
  std::vector<uint16_t> half, brain;
  std::vector<uint8_t> narrow;
  std::vector<double> wide;
  std::vector<float> back;
  std::vector<int8_t> byte;
  for (const float v : x) {
    half.push_back(uint16_t(gg::encode(Format::f16, v)));
    brain.push_back(uint16_t(gg::encode(Format::bf16, v)));
    narrow.push_back(narrow_code(v, e4m3));
    wide.push_back(double(v) / 3);
    back.push_back(float(narrow_value(narrow.back(), e4m3)));
    byte.push_back(int8_t(v));
  }
  EXPECT_EQ(run.result<uint16_t>("half"), half);
  EXPECT_EQ(run.result<uint16_t>("brain"), brain);
  EXPECT_EQ(run.result<uint8_t>("narrow"), narrow);
  EXPECT_EQ(run.result<double>("wide"), wide);
  EXPECT_EQ(run.result<float>("back"), back);
  EXPECT_EQ(run.result<int8_t>("byte"), byte);
}
TEST(Triton, FormatsInSoftware) { formats("formats_80", false); }
TEST(Triton, FormatsByInstructions) { formats("formats_90a", true); }

// Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3": Philox with four words and ten rounds.
uint32_t philox(uint32_t seed, uint32_t counter) {
  uint32_t c[4] = {counter, 0, 0, 0}, key[2] = {seed, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xD2511F53u) * c[0], b = uint64_t(0xCD9E8D57u) * c[2];
    const uint32_t next[4] = {uint32_t(b >> 32) ^ c[1] ^ key[0], uint32_t(b),
                              uint32_t(a >> 32) ^ c[3] ^ key[1], uint32_t(a)};
    std::copy(next, next + 4, c);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c[0];
}

TEST(Triton, Integers) {
  constexpr int kN = 300;
  constexpr int64_t kDivisor = -12345;
  std::vector<int64_t> x;
  std::mt19937_64 random(30);
  for (int i = 0; i < kN; ++i) x.push_back(int64_t(random()) >> (i % 60));
  PtxRun run = start("integers_80", "integers", "3", 128);
  run.in("x", x).out("y", std::vector<int64_t>(3 * kN, -1)).out("z", std::vector<uint32_t>(2 * kN, 0));
  run.arg("x").arg("y").arg("z").arg(whole(kN)).arg("i64:" + std::to_string(kDivisor));
  finish(run);
  run.run_in_every_order();
  std::vector<int64_t> y(3 * kN);
  std::vector<uint32_t> z(2 * kN);
  for (size_t i = 0; i < kN; ++i) {
    y[i] = x[i] / kDivisor;
    y[kN + i] = x[i] % kDivisor;
    y[2 * kN + i] = int64_t(uint64_t(x[i]) * 31) ^ (x[i] >> 7);
    z[i] = uint32_t(uint64_t(uint32_t(x[i])) * uint32_t(x[i]) >> 32);
    z[kN + i] = philox(1234, uint32_t(i));
  }
  EXPECT_EQ(run.result<int64_t>("y"), y);
  EXPECT_EQ(run.result<uint32_t>("z"), z);
}

int32_t collatz(int32_t start) {
  int32_t steps = 0;
  for (; start != 1; ++steps) start = start % 2 == 0 ? start / 2 : start * 3 + 1;
  return steps;
}

TEST(Triton, CallsOfAFunction) {
  std::vector<int32_t> x = {27, 1, 97, 2, 6}, y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(collatz(x[i]) + 1000 * collatz(int32_t(i) + 1));
  PtxRun run = start("calls_80", "calls", "5", 128);
  run.in("x", x).out("y", std::vector<int32_t>(x.size(), -1)).arg("x").arg("y");
  finish(run);
  run.run_in_every_order();
  EXPECT_EQ(run.result<int32_t>("y"), y);
}

PtxRun prints(const std::vector<int32_t>& x) {
  PtxRun run = start("prints_80", "prints", "1", 128);
  run.in("x", x).arg("x").arg(whole(int(x.size())));
  finish(run);
  return run;
}
TEST(Triton, Prints) {
  const Outcome outcome = prints({5, -7, 11}).run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line : {"pid (0, 0, 0) idx ( 0) value: 5\n", "idx ( 1) value: -7\n",
                           "idx ( 2) value: 11\n", "idx (31) value: 0\n"}) {
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
  }
}
TEST(Triton, AssertionsStopTheRun) {
  EXPECT_TRUE(reports(prints({5, 100, 11}).run(),
                      {"trap in prints", "a value is too large", "triton_kernels.py:", "lane 1"}));
}

TEST(Triton, InlineAssembly) {
  std::vector<int32_t> x(64), y;
  for (size_t i = 0; i < x.size(); ++i) x[i] = int32_t(i * 0x01234567u + 89);
  for (const int32_t v : x) y.push_back(int32_t(__builtin_bswap32(uint32_t(v)) ^ uint32_t(v) ^ 0x55u));
  PtxRun run = start("inline_90a", "inline", "1", 32);
  run.in("x", x).out("y", std::vector<int32_t>(x.size(), -1)).arg("x").arg("y");
  finish(run);
  run.run_in_every_order();
  EXPECT_EQ(run.result<int32_t>("y"), y);
}

}  // namespace
