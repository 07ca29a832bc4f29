// SPDX-License-Identifier: MIT
//
// The gradient of a gated linear unit: its formulas against finite differences, right launches,
// which pass, and planted bugs, which are named.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "common/harness/harness.cuh"
#include "common/harness/verify/trials.h"
#include "common/kernel/epilogue_glu.cuh"

namespace gg {
namespace {

using epilogue::GluGradient;

// ---- formulas ----

double unit(bool geglu, double gate, double up) {
  if (!geglu) return gate / (1 + std::exp(-gate)) * up;
  gate = std::min(gate, 7.0);
  up = std::max(-7.0, std::min(up, 7.0));
  return gate / (1 + std::exp(-1.702 * gate)) * (up + 1);
}

GluGradient gradient(bool geglu, float gate, float up, float y, float prob) {
  return geglu ? epilogue::geglu_gradient(gate, up, y, prob) : epilogue::swiglu_gradient(gate, up, y, prob);
}

// Central differences in double are off by h^2 times a third derivative: half the step, a quarter
// of the error, until the error of f32 is reached.
TEST(GluGradients, AreTheSlopesOfTheUnit) {
  constexpr float kY = 0.75f, kProb = 1.5f;
  for (const bool geglu : {false, true}) {
    for (const auto& [gate, up] : {std::pair{0.5f, -1.25f}, {-1.0f, 2.0f}, {1.5f, 0.5f}, {-1.28f, 3.0f}}) {
      const GluGradient got = gradient(geglu, gate, up, kY, kProb);
      const auto off = [&, gate = double(gate), up = double(up)](double h) {
        const auto slope = [&](double of_gate, double of_up) {
          return double(kY) * double(kProb) *
                 (unit(geglu, gate + of_gate * h, up + of_up * h) -
                  unit(geglu, gate - of_gate * h, up - of_up * h)) /
                 (2 * h);
        };
        EXPECT_NEAR(double(got.up), slope(0, 1), 2e-6 * (1 + std::fabs(double(got.up))));
        return std::fabs(double(got.gate) - slope(1, 0));
      };
      int halvings = 0;
      for (double h = 0x1p-2; off(h / 2) > 2e-5; h /= 2, ++halvings)
        EXPECT_NEAR(off(h) / off(h / 2), 4, 0.3) << gate << " " << h;
      EXPECT_GE(halvings, 2);
      EXPECT_NEAR(double(got.prob), double(kY) * unit(geglu, double(gate), double(up)), 1e-5);
    }
  }
}

TEST(GluGradients, WorkedExamples) {
  // sigma(0) = 1/2: the slope of gate * sigma is 1/2, and the unit is 0.
  GluGradient got = epilogue::swiglu_gradient(0, 4, 3, 2);
  EXPECT_EQ(got.gate, 12);  // 3 * 2 * 4 / 2
  EXPECT_EQ(got.up, 0);
  EXPECT_EQ(got.prob, 0);
  // sigma(32) is 1, to the last bit: the unit is gate * up.
  got = epilogue::swiglu_gradient(32, 4, 3, 2);
  EXPECT_EQ(got.gate, 24);
  EXPECT_EQ(got.up, 192);
  EXPECT_EQ(got.prob, 384);
  // Beyond the clamps of geglu the loss does not depend on what is clamped.
  got = epilogue::geglu_gradient(8, 4, 3, 2);
  EXPECT_EQ(got.gate, 0);
  EXPECT_NE(got.up, 0);
  got = epilogue::geglu_gradient(1, -8, 3, 2);
  EXPECT_NE(got.gate, 0);
  EXPECT_EQ(got.up, 0);
  EXPECT_EQ(epilogue::geglu_gradient(1, 8, NAN, 2).up, 0);
}

TEST(GluGradients, OfSpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float gate : {kInfinity, -kInfinity, float(NAN)})
    EXPECT_TRUE(std::isnan(epilogue::swiglu_gradient(gate, 1, 1, 1).gate)) << gate;
  EXPECT_EQ(epilogue::swiglu_gradient(kInfinity, 1, 1, 1).up, kInfinity);
  EXPECT_EQ(epilogue::geglu_gradient(kInfinity, 1, 1, 1).gate, 0);
  EXPECT_TRUE(std::isnan(epilogue::geglu_gradient(float(NAN), 1, 1, 1).gate));
  EXPECT_TRUE(std::isnan(epilogue::geglu_gradient(1, float(NAN), 1, 1).gate));
  EXPECT_FALSE(std::isnan(epilogue::geglu_gradient(1, float(NAN), 1, 1).up));
}

// ---- launches ----

const CheckOptions kOptions{.seed = 5, .graph_replay = true, .neighbours = true};
Shape shape() {
  Shape shape{{5, 0, 33, 70}, {64}, {24}};
  shape.rows = 244;
  return shape;
}

Setup setup_of(Activation activation) {
  Setup setup;
  setup.request.epilogue = {.op = Operator::glu_gradient, .activation = activation};
  setup.host_offsets = false;
  return setup;
}

// One element of the product on its way, and what a launch makes of it. A bug changes some of it.
struct Step {
  const Problem& p;
  int group, first, last;  // rows of the group
  int64_t row;
  int col;
  // Columns of C that are read, and of D that are written.
  int gate_column, up_column;
  int64_t c_row;
  float alpha, prob;
  bool geglu;
};
struct Bug {
  const char* name = "";
  std::function<void(Step&)> before = [](Step&) {};
  std::function<void(const Step&, float gate, float up, float y, GluGradient&)> after =
      [](const Step&, float, float, float, GluGradient&) {};
  bool rounds_dbias = false;
  int rows_more = 0;  // in dbias
  bool writes_empty_dbias = true;
  int dprob_more = 0;  // rows
};

float at(const void* tensor, Format format, int64_t i) {
  return decode(format, load_code(tensor, format, i));
}

Launch launch_with(const Bug& bug) {
  return [bug](const Problem& p, cudaStream_t) {
    const int32_t* offsets = p.offsets().as<int32_t>();
    const EpilogueTensors& e = p.epilogue();
    const int n = p.n(), columns = 2 * n;
    for (int g = 0; g < p.groups(); ++g) {
      std::vector<float> dbias(static_cast<size_t>(columns));
      const int first = offsets[g], last = offsets[g + 1];
      for (int64_t row = first; row < std::min<int64_t>(last + bug.rows_more, p.m_total()); ++row) {
        float dprob = 0;
        for (int col = 0; col < n; ++col) {
          float sum = 0;
          for (int k = 0; k < p.k(); ++k)
            sum += to_float(p.a<bf16>()[row * p.k() + k]) *
                   to_float(p.b<bf16>()[g * p.b_group_stride() + int64_t(k) * n + col]);
          const int gate_column = epilogue::gate_column(col);
          Step step{p,   g,          first,       last,
                    row, col,        gate_column, gate_column + 32,
                    row, e.alpha[g], e.prob[row], e.activation == Activation::geglu};
          bug.before(step);
          const float gate = at(e.saved_c, Format::bf16, step.c_row * columns + step.gate_column),
                      up = at(e.saved_c, Format::bf16, step.c_row * columns + step.up_column);
          const float y = step.alpha * sum;
          GluGradient all = gradient(step.geglu, gate, up, y, step.prob);
          bug.after(step, gate, up, y, all);
          dprob += all.prob;
          const uint32_t of_gate = encode(Format::bf16, all.gate), of_up = encode(Format::bf16, all.up);
          dbias[size_t(step.gate_column)] += bug.rounds_dbias ? decode(Format::bf16, of_gate) : all.gate;
          dbias[size_t(step.up_column)] += bug.rounds_dbias ? decode(Format::bf16, of_up) : all.up;
          if (row >= last) continue;
          store_code(p.d<void>(), Format::bf16, row * columns + step.gate_column, of_gate);
          store_code(p.d<void>(), Format::bf16, row * columns + step.up_column, of_up);
        }
        if (row < last) e.dprob[row] = dprob;
      }
      if (first < last || bug.writes_empty_dbias)
        std::copy(dbias.begin(), dbias.end(), e.dbias + g * columns);
    }
    for (int64_t row = p.m_total(); row < p.m_total() + bug.dprob_more; ++row) e.dprob[row] = 0;
  };
}

CheckResult checked(const Bug& bug, Activation activation = Activation::swiglu) {
  return check_problem(*host_machine(), setup_of(activation), launch_with(bug), shape(), kOptions);
}

void expect_named(const Bug& bug, Activation activation, const char* words,
                  Symptom symptom = Symptom::wrong_epilogue) {
  const CheckResult result = checked(bug, activation);
  ASSERT_TRUE(result.failure) << words << ": passed";
  EXPECT_STREQ(symptom_name(result.failure->symptom), symptom_name(symptom)) << result.failure->sentence;
  EXPECT_NE(result.failure->sentence.find(words), std::string::npos) << result.failure->sentence;
}

TEST(GluGradientLaunches, RightOnesPass) {
  for (const Activation activation : {Activation::swiglu, Activation::geglu}) {
    const CheckResult result = checked({}, activation);
    EXPECT_FALSE(result.failure) << result.failure->sentence;
  }
}

TEST(GluGradientLaunches, WrongFactorsAreNamed) {
  using enum Activation;
  expect_named({.before = [](Step& s) { s.alpha = 1; }}, swiglu, "alpha left out");
  expect_named({.before = [](Step& s) { s.prob = 1; }}, swiglu, "prob left out");
  expect_named({.before = [](Step& s) { s.prob = s.p.epilogue().prob[s.row - s.first]; }}, swiglu,
               "prob of rows counted from the start of the group");
  expect_named({.before = [](Step& s) { s.geglu = false; }}, geglu, "the other activation");
}

TEST(GluGradientLaunches, WrongPlacesInCAreNamed) {
  using enum Activation;
  expect_named({.before = [](Step& s) { std::swap(s.gate_column, s.up_column); }}, swiglu,
               "gate and up exchanged");
  expect_named({.before =
                    [](Step& s) {
                      s.gate_column = s.col;
                      s.up_column = s.col + s.p.n();
                    }},
               swiglu, "taken from the halves of N");
  expect_named({.before = [](Step& s) { s.c_row -= s.first; }}, swiglu,
               "C of rows counted from the start of the group");
}

TEST(GluGradientLaunches, WrongFormulasAreNamed) {
  using enum Activation;
  expect_named({.after = [](const Step& s, float gate, float up, float y,
                            GluGradient& all) { all.gate = y * s.prob * up * epilogue::sigma(gate); }},
               swiglu, "sigma in place of the derivative");
  expect_named({.after = [](const Step& s, float, float, float, GluGradient& all) { all.prob *= s.prob; }},
               swiglu, "prob in the terms of dprob");
  expect_named({.after =
                    [](const Step& s, float gate, float up, float y, GluGradient& all) {
                      const float a = std::min(gate, 7.0f) * epilogue::sigma(1.702f * std::min(gate, 7.0f));
                      if (std::fabs(up) > 7) all.up = y * s.prob * a;
                      if (gate <= 7) return;
                      const float u = std::max(-7.0f, std::min(up, 7.0f)) + 1,
                                  sigma = epilogue::sigma(11.914f);
                      all.gate = y * s.prob * u * (sigma + 1.702f * a * (1 - sigma));
                    }},
               geglu, "a gradient beyond the clamps");
}

TEST(GluGradientLaunches, WrongSumsAreNamed) {
  using enum Activation;
  expect_named({.rounds_dbias = true}, swiglu, "dbias summed from D");
  expect_named({.rows_more = 7}, swiglu,
               "all else is right: looks like rows past the group's end in the sum");
  expect_named({.writes_empty_dbias = false}, swiglu, "group 1 column 0, expected 0 (0x00000000)",
               Symptom::unwritten);
  expect_named({.dprob_more = 1}, swiglu, "dprob: a write outside what the groups own",
               Symptom::out_of_bounds);
}

}  // namespace
}  // namespace gg
