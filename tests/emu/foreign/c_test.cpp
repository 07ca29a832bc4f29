// SPDX-License-Identifier: MIT
//
// c_kernels.cu as several compilers see it, run by gg-ptx: nvcc of this build, with and without optimisation,
// and clang's committed output. Wanted values are computed here with the same expressions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/emu/foreign/ptx_run.h"

namespace {

using testing_gg::Outcome;
using testing_gg::PtxRun;

class Compiled : public testing::TestWithParam<std::string> {
 protected:
  static std::string file() {
    const std::string name = GetParam();
    return (name.rfind("nvcc", 0) == 0 ? GG_PTX_DIR "/" : GG_SOURCE_DIR "/tests/emu/foreign/clang/") + name +
           ".ptx";
  }
  PtxRun start(const std::string& entry, int blocks, int threads) {
    PtxRun run(file());
    run.add({"--entry", entry, "--grid", std::to_string(blocks), "--block", std::to_string(threads)});
    return run;
  }
};

std::string whole(int64_t number) { return "i32:" + std::to_string(number); }

template <class T>
std::vector<T> random_numbers(size_t count, int64_t least, int64_t most, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(T(least + int64_t(random() % uint64_t(most - least + 1))));
  return values;
}

TEST_P(Compiled, SumsRows) {
  constexpr int kRows = 3, kN = 200;
  const std::vector<float> x = random_numbers<float>(kRows * kN, -1000, 1000, 1);
  PtxRun run = start("sum_rows", kRows, 96);
  run.in("x", x)
      .out("y", std::vector<float>(kRows, NAN))
      .arg("x")
      .arg("y")
      .arg(whole(kN))
      .add({"--smem", std::to_string(kN * 4)});
  run.run_in_every_order();
  std::vector<float> wanted;
  for (int row = 0; row < kRows; ++row)
    wanted.push_back(std::accumulate(x.begin() + row * kN, x.begin() + (row + 1) * kN, 0.0f));
  EXPECT_EQ(run.result<float>("y"), wanted);
}

// Returns on the host what the machine of c_kernels.cu gives for one input.
int machine(const std::vector<int>& program, int input, int steps) {
  std::vector<int> stack = {input};
  size_t at = 0;
  for (int step = 0; step < steps; ++step, at += 2) {
    const int operand = program[at + 1];
    int& top = stack.back();
    const auto below = [&] {
      const int value = stack.back();
      stack.pop_back();
      return value;
    };
    switch (program[at]) {
      case 0:
        return top;
      case 1:
        stack.push_back(operand);
        break;
      case 2: {
        const int b = below();
        stack.back() += b;
        break;
      }
      case 3: {
        const int b = below();
        stack.back() *= b;
        break;
      }
      case 4:
        stack.push_back(int(top));
        break;
      case 5:
        top -= operand;
        break;
      case 6:
        if (top > operand) at = size_t(-2);
        break;
      case 7:
        std::swap(top, stack[stack.size() - 2]);
        break;
      case 8:
        top %= operand;
        break;
      case 9:
        top ^= operand;
        break;
      case 10:
        top = int(unsigned(top) << operand);
        break;
      case 11:
        top >>= operand;
        break;
      case 12:
        top = -top;
        break;
      case 13:
        top = std::min(top, operand);
        break;
      case 14:
        stack.pop_back();
        break;
      case 15:
        at = size_t(2 * operand - 2);
        break;
      default:
        return -1;
    }
  }
  return -2;
}

TEST_P(Compiled, Switches) {
  const std::vector<std::vector<int>> programs = {
      {4, 0, 3, 0, 8, 1009, 5, 7, 9, 85, 6, 50, 0, 0},  // until a square is small enough
      {1, 3, 7, 0, 10, 2, 2, 0, 4, 0, 11, 1, 12, 0, 2, 0, 13, 40, 0, 0},
      {15, 3, 12, 0, 0, 0, 1, 5, 14, 0, 15, 1},
      {4, 0, 2, 0, 99, 0},  // an operation that is none
  };
  const std::vector<int> inputs = random_numbers<int>(80, 0, 500, 2);
  for (const std::vector<int>& program : programs) {
    PtxRun run = start("machine", 2, 40);
    run.in("program", program).in("inputs", inputs).out("outputs", std::vector<int>(80, -9));
    run.arg("program").arg("inputs").arg("outputs").arg(whole(300));
    run.run_in_every_order();
    std::vector<int> wanted;
    for (const int input : inputs) wanted.push_back(machine(program, input, 300));
    EXPECT_EQ(run.result<int>("outputs"), wanted);
  }
}

TEST_P(Compiled, CallsWithStructures) {
  constexpr int kThreads = 48, kTerms = 15;
  PtxRun run = start("harmonic", 1, kThreads);
  run.out("over", std::vector<int64_t>(kThreads, -1))
      .out("under", std::vector<int64_t>(kThreads, -1))
      .out("value", std::vector<double>(kThreads, NAN));
  run.arg("over").arg("under").arg("value").arg(whole(kTerms));
  run.run_in_every_order();
  std::vector<int64_t> over, under;
  std::vector<double> value;
  for (int thread = 0; thread < kThreads; ++thread) {
    int64_t a = 0, b = 1;
    for (int i = 1; i <= kTerms + thread % 4; ++i) {
      a = a * i + b;
      b *= i;
      const int64_t common = std::gcd(a, b);
      a /= common;
      b /= common;
    }
    over.push_back(a);
    under.push_back(b);
    value.push_back(double(a) / double(b) * (thread % 2 ? -1 : 1));
  }
  EXPECT_EQ(run.result<int64_t>("over"), over);
  EXPECT_EQ(run.result<int64_t>("under"), under);
  EXPECT_EQ(run.result<double>("value"), value);
}

TEST_P(Compiled, ParametersAsRawBytes) {
  struct Parameters {  // of cook()
    int weights[8] = {3, -1, 4, 1, -5, 9, 2, 6};
    float scale = 10.5f;
    uint64_t more[2] = {0, 0};
    uint8_t mask[3] = {1, 20, 255};
    alignas(8) uint64_t y = 0;
    int16_t bias = -300;
    int8_t shift = -7;
  } parameters;
  constexpr int kN = 60;
  const std::vector<int> more = random_numbers<int>(2 * kN, -100000, 100000, 3);
  PtxRun run = start("cook", 2, kN / 2);
  testing_gg::write_text(run.path("parameters"), std::string(reinterpret_cast<const char*>(&parameters),
                                                             offsetof(Parameters, shift) + 1));
  run.in("more", more).out("y", std::vector<int>(kN, -1)).add({"--args", run.path("parameters")});
  run.add({"--patch", "40=more", "--patch", "0x30=more+240", "--patch", "64=y"});
  run.run_in_every_order();
  std::vector<int> wanted;
  for (int i = 0; i < kN; ++i) {
    wanted.push_back(parameters.weights[i % 8] * 10 + more[size_t(i % 2 * kN + i)] + parameters.mask[i % 3] -
                     300 - 7);
  }
  EXPECT_EQ(run.result<int>("y"), wanted);
}

TEST_P(Compiled, TablesKeepTheirValuesBetweenLaunches) {
  constexpr int kThreads = 30;
  PtxRun run(file());
  for (const char* name : {"y", "y2"}) run.out(name, std::vector<float>(kThreads, NAN));
  for (const char* name : {"z", "z2"}) run.out(name, std::vector<int>(kThreads, -1));
  for (const char* suffix : {"", "2"}) {
    run.add({"--launch", "tables", "--grid", "1", "--block", "30"})
        .arg(std::string("y") + suffix)
        .arg(std::string("z") + suffix);
  }
  run.run_in_every_order();
  const float powers[5] = {1.0f, 0.5f, 0.25f, 0.125f, 0.0625f};
  const short odd[2][3] = {{1, 3, 5}, {-7, -9, -11}};
  int counts[4] = {10, 20, 30, 0};
  int* at_counts[2] = {&counts[1], counts};
  for (const std::string suffix : {"", "2"}) {
    std::vector<float> y;
    std::vector<int> z;
    for (int i = 0; i < kThreads; ++i) {
      y.push_back(powers[i % 5] * odd[i % 2][i % 3]);
      ++at_counts[i % 2][i % 3];
    }
    for (int i = 0; i < kThreads; ++i) z.push_back(counts[i % 4] * 256 + "emulator"[i % 9]);
    EXPECT_EQ(run.result<float>("y" + suffix), y);
    EXPECT_EQ(run.result<int>("z" + suffix), z);
  }
}

TEST_P(Compiled, GenericPointers) {
  const std::vector<int> x = random_numbers<int>(64, -1000, 1000, 4);
  PtxRun run = start("pointers", 1, 64);
  run.in("x", x).out("y", std::vector<int>(64, -1)).arg("x").arg("y");
  run.run_in_every_order();
  std::vector<int> wanted;
  for (int t = 0; t < 64; ++t) {
    int sum = 0;
    for (int i = 0; i < 8; ++i)
      sum += t % 3 == 0 ? x[size_t((t + i) % 64)] * i : x[size_t((t % 3 == 1 ? t / 8 : t / 4) + i)];
    wanted.push_back(sum);
  }
  EXPECT_EQ(run.result<int>("y"), wanted);
}

TEST_P(Compiled, AtomicsAndALock) {
  constexpr int kBlocks = 6, kThreads = 64;
  PtxRun run = start("atomics", kBlocks, kThreads);
  run.out("total", std::vector<int>{5}).out("sum", std::vector<float>{1}).out("most", std::vector<int>{-1});
  run.out("lock", std::vector<int>{0}).out("guarded", std::vector<int>{3});
  for (const char* name : {"total", "sum", "most", "lock", "guarded"}) run.arg(name);
  run.run_in_every_order();
  int guarded = 3;
  for (int i = 0; i < kBlocks; ++i) guarded = guarded * 2 % 1000003 + 1;
  EXPECT_EQ(run.result<int>("total"), std::vector<int>{5 + kBlocks * kThreads * (kThreads - 1) / 2});
  EXPECT_EQ(run.result<float>("sum"), std::vector<float>{1 + 0.25f * kBlocks * kThreads});
  EXPECT_EQ(run.result<int>("most"), std::vector<int>{100});
  EXPECT_EQ(run.result<int>("lock"), std::vector<int>{0});
  EXPECT_EQ(run.result<int>("guarded"), std::vector<int>{guarded});
}

TEST_P(Compiled, Integers) {
  constexpr size_t kN = 100;
  std::vector<uint64_t> x;
  std::mt19937_64 random(5);
  for (size_t i = 0; i < kN; ++i) x.push_back(random() >> (1 + i % 63));
  PtxRun run = start("integers", 4, 32);
  run.in("x", x).out("y", std::vector<uint64_t>(6 * kN, 0)).arg("x").arg("y").arg(whole(kN));
  run.run_in_every_order();
  std::vector<uint64_t> wanted(6 * kN);
  for (size_t i = 0; i < kN; ++i) {
    const uint64_t v = x[i];
    __extension__ using Wide = unsigned __int128;
    wanted[i] = uint64_t(Wide(v) * v >> 64);
    wanted[kN + i] = v / 1000007 + v % 97;
    wanted[2 * kN + i] = uint64_t(int64_t(v) / -13) ^ uint64_t(int32_t(v) >> 3);
    wanted[3 * kN + i] =
        uint64_t(uint32_t(v) ? __builtin_clz(uint32_t(v)) : 32) * 256 + uint64_t(__builtin_popcountll(v));
    wanted[4 * kN + i] = uint64_t(int16_t(v)) + uint64_t(uint8_t(v >> 8) * int8_t(v >> 16));
    wanted[5 * kN + i] = uint64_t(float(v)) ^ uint64_t(double(int64_t(v)) < 0.5);
  }
  EXPECT_EQ(run.result<uint64_t>("y"), wanted);
}

TEST_P(Compiled, FloatsAndBranches) {
  constexpr int kN = 200, kThreads = 256;
  std::vector<float> x = random_numbers<float>(4 * kN, -64, 64, 6);
  for (float& v : x) v /= 16;  // products and sums of these are exact, contracted or not
  PtxRun run = start("floats", 2, kThreads / 2);
  run.in("x", x)
      .out("y", std::vector<float>(4 * kN, NAN))
      .out("z", std::vector<double>(kN, NAN))
      .out("votes", std::vector<uint32_t>(kThreads / 32, 99));
  run.arg("x").arg("y").arg("z").arg("votes").arg(whole(kN));
  run.run_in_every_order();
  std::vector<float> y = x;
  std::vector<double> z;
  std::vector<uint32_t> votes(kThreads / 32, 0);
  for (int i = 0; i < kN; ++i) {
    float* v = &y[size_t(4 * i)];
    votes[size_t(i / 32)] |= uint32_t(v[0] > 0) << (i % 32);
    if (v[0] > 0) {
      v[1] = v[1] * v[0] + 0.5f;
    } else if (v[1] > 0) {
      v[2] = v[2] / v[1];
    } else {
      v[3] = std::sqrt(v[3] * v[3] + 1.0f);
    }
    double sum = 0;
    for (int k = 0; k < i % 7 * 3; ++k) {
      if (k % 4 == 1) continue;
      if (sum > 2.5) break;
      sum += double(v[0]) * k / 3;
    }
    z.push_back(sum);
  }
  EXPECT_EQ(run.result<float>("y"), y);
  EXPECT_EQ(run.result<double>("z"), z);
  EXPECT_EQ(run.result<uint32_t>("votes"), votes);
}

TEST_P(Compiled, Prints) {
  const Outcome outcome = start("prints", 1, 8).arg(whole(7)).run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "thread 0 of three:  0.00 0 a 100% ff\n"
            "thread 1 of three:  0.50 1234567890123 b 100% 100\n"
            "thread 2 of three:  1.00 2469135780246 c 100% 101\n");
}

TEST_P(Compiled, Asserts) {
  EXPECT_TRUE(reports(start("prints", 1, 8).arg(whole(5)).run(),
                      {"trap in prints", "assertion i <= most failed at c_kernels.cu:123", "lane 6"}));
}

INSTANTIATE_TEST_SUITE_P(By, Compiled,
                         testing::Values("nvcc_optimised", "nvcc_debug", "nvcc_plain", "clang_O0", "clang_O2",
                                         "llvm_O2"),
                         [](const auto& info) { return info.param; });

}  // namespace
