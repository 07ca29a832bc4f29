// SPDX-License-Identifier: MIT
//
// The checks of a layer find mistakes. A layer on the host stands in for a chapter's launches: it
// rounds what kernels round, and makes one mistake at a time.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/harness/layer/layer_check.h"
#include "common/harness/layer/layer_options.h"
#include "common/kernel/epilogue_glu.cuh"

namespace {

using gg::LayerLaunch, gg::LayerSizes, gg::LayerTensors, gg::to_float;
namespace ep = gg::epilogue;

enum Mistake {
  none,
  other_expert,       // y of the next expert's W2
  no_prob,            // dc without prob
  slope_of_one,       // as if a gate's slope were sigma alone
  first_row_alone,    // dtokens without a token's other rows
  wrong_rows,         // dW1 of y in place of x
  last_row_missing,   // of each expert, in dW2
  empty_expert_left,  // its gradients are not written
  dprob_of_gate,      // dprob without the up
  bias_of_other,      // dbias with gates and ups swapped
  loss_unscaled,
  dy_of_one_row,       // the other rows of a token get none
  step_up,             // weights plus the gradient
  stale_weights,       // bf16 weights stay
  sums_into_gradient,  // dW2 is added to what is there
  offsets_kept,        // those of when the launch was listed, as if it had read them on the host
};
Mistake mistake = none;

bf16 rounded(double x) { return __float2bfloat16_rn(float(x)); }

struct View {
  LayerSizes s;
  LayerTensors t;
  float scale = 0;

  int expert_of(int row) const {
    int g = 0;
    while (t.offsets[g + 1] <= row) ++g;
    return g;
  }
  bf16* of(bf16* tensor, int64_t row, int columns) const { return tensor + row * columns; }

  void forward() const {
    for (int row = 0; row < s.rows(); ++row) {
      const int g = expert_of(row), g2 = mistake == other_expert ? (g + 1) % s.experts : g;
      bf16 *const x = of(t.x, row, s.hidden), *const c = of(t.c, row, 2 * s.inner),
                  *const unit = of(t.unit, row, s.inner);
      for (int h = 0; h < s.hidden; ++h) x[h] = t.tokens[int64_t(t.token_of[row]) * s.hidden + h];
      for (int j = 0; j < 2 * s.inner; ++j) {
        float sum = 0;
        for (int h = 0; h < s.hidden; ++h)
          sum += to_float(x[h]) * to_float(t.w1[(int64_t(g) * 2 * s.inner + j) * s.hidden + h]);
        c[j] = rounded(double(sum));
      }
      for (int i = 0; i < s.inner; ++i)
        unit[i] = rounded(
            double(ep::swiglu(to_float(c[ep::gate_column(i)]), to_float(c[ep::up_column(i)]), t.prob[row])));
      for (int h = 0; h < s.hidden; ++h) {
        float sum = 0;
        for (int i = 0; i < s.inner; ++i)
          sum += to_float(unit[i]) * to_float(t.w2[(int64_t(g2) * s.hidden + h) * s.inner + i]);
        of(t.y, row, s.hidden)[h] = rounded(double(sum));
      }
    }
    for (int token = 0; token < s.tokens; ++token) {
      float squares = 0;
      for (int h = 0; h < s.hidden; ++h) {
        float error = -to_float(t.target[int64_t(token) * s.hidden + h]);
        for (int i = 0; i < s.top_k; ++i)
          error += to_float(of(t.y, t.row_of[token * s.top_k + i], s.hidden)[h]);
        squares += error * error;
        for (int i = 0; i < s.top_k; ++i)
          of(t.dy, t.row_of[token * s.top_k + i], s.hidden)[h] =
              rounded(mistake == dy_of_one_row && i > 0 ? 0 : double(scale * error));
      }
      t.loss[token] = (mistake == loss_unscaled ? 1 : scale / 2) * squares;
    }
  }

  void backward() const {
    zero();
    std::vector<float> dtokens(size_t(s.tokens) * size_t(s.hidden));
    for (int row = 0; row < s.rows(); ++row) add_row(row, dtokens);
    for (size_t i = 0; i < dtokens.size(); ++i) t.dtokens[i] = rounded(double(dtokens[i]));
  }

  void zero() const {
    for (int g = 0; g < s.experts; ++g) {
      if (mistake == empty_expert_left && t.offsets[g] == t.offsets[g + 1]) continue;
      const int64_t w1 = s.w1() / s.experts, w2 = s.w2() / s.experts;
      std::fill_n(t.dw1 + g * w1, w1, 0.0f);
      if (mistake != sums_into_gradient) std::fill_n(t.dw2 + g * w2, w2, 0.0f);
      std::fill_n(t.dbias + g * 2 * s.inner, 2 * s.inner, 0.0f);
    }
  }

  void add_row(int row, std::vector<float>& dtokens) const {
    const int g = expert_of(row), token = t.token_of[row];
    const bf16 *const dy = of(t.dy, row, s.hidden), *const c = of(t.c, row, 2 * s.inner);
    bf16* const dc = of(t.dc, row, 2 * s.inner);
    float dprob = 0;
    for (int i = 0; i < s.inner; ++i) {
      float by_unit = 0;
      for (int h = 0; h < s.hidden; ++h) {
        const int64_t w = (int64_t(g) * s.hidden + h) * s.inner + i;
        by_unit += to_float(dy[h]) * to_float(t.w2[w]);
        if (mistake == last_row_missing && row + 1 == t.offsets[g + 1]) continue;
        t.dw2[w] += to_float(dy[h]) * to_float(of(t.unit, row, s.inner)[i]);
      }
      const float gate = to_float(c[ep::gate_column(i)]), up = to_float(c[ep::up_column(i)]);
      ep::GluGradient d = ep::swiglu_gradient(gate, up, by_unit, mistake == no_prob ? 1 : t.prob[row]);
      if (mistake == slope_of_one) d.gate = by_unit * t.prob[row] * up * ep::sigma(gate);
      dprob += mistake == dprob_of_gate ? by_unit * gate * ep::sigma(gate) : d.prob;
      float* const dbias = t.dbias + int64_t(g) * 2 * s.inner;
      const bool swapped = mistake == bias_of_other;
      dbias[swapped ? ep::up_column(i) : ep::gate_column(i)] += d.gate;
      dbias[swapped ? ep::gate_column(i) : ep::up_column(i)] += d.up;
      dc[ep::gate_column(i)] = rounded(double(d.gate));
      dc[ep::up_column(i)] = rounded(double(d.up));
    }
    t.dprob[row] = dprob;
    const bool is_first = t.row_of[token * s.top_k] == row;
    for (int h = 0; h < s.hidden; ++h) {
      float dx = 0;
      for (int j = 0; j < 2 * s.inner; ++j) {
        const int64_t w = (int64_t(g) * 2 * s.inner + j) * s.hidden + h;
        dx += to_float(dc[j]) * to_float(t.w1[w]);
        t.dw1[w] += to_float(dc[j]) * to_float(of(mistake == wrong_rows ? t.y : t.x, row, s.hidden)[h]);
      }
      of(t.dx, row, s.hidden)[h] = rounded(double(dx));
      if (mistake != first_row_alone || is_first)
        dtokens[size_t(token) * size_t(s.hidden) + size_t(h)] += to_float(rounded(double(dx)));
    }
  }

  void update(float rate1, float rate2) const {
    const auto of_one = [](const float* gradient, float rate, float* f32, bf16* weights, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        // Weights are drawn with a negative rate.
        f32[i] -= (mistake == step_up && rate > 0 ? -rate : rate) * gradient[i];
        if (mistake != stale_weights || rate < 0) weights[i] = rounded(double(f32[i]));
      }
    };
    of_one(t.dw1, rate1, t.f32_w1, t.w1, s.w1());
    of_one(t.dw2, rate2, t.f32_w2, t.w2, s.w2());
  }
};

const gg::LayerProgram kProgram = {
    .forward =
        [](const LayerSizes& s, const LayerTensors& t, float scale) {
          const std::vector<int32_t> kept(t.offsets, t.offsets + s.experts + 1);
          return std::vector<LayerLaunch>{{"forward", 0, 0, [=](cudaStream_t) {
                                             LayerTensors found = t;
                                             if (mistake == offsets_kept) found.offsets = kept.data();
                                             View{s, found, scale}.forward();
                                           }}};
        },
    .backward =
        [](const LayerSizes& s, const LayerTensors& t) {
          return std::vector<LayerLaunch>{{"backward", 0, 0, [=](cudaStream_t) { View{s, t}.backward(); }}};
        },
    .update =
        [](const LayerSizes& s, const LayerTensors& t, float rate1, float rate2) {
          return std::vector<LayerLaunch>{{"update", 0, 0, [=](cudaStream_t) {
                                             View{s, t}.update(rate1, rate2);
                                           }}};
        },
    .workspace_bytes = [](const LayerSizes&) { return size_t(1); }};

// Runs the checks of a whole step, or of its launches; returns what they print.
enum Checks { step, launches };
std::string checked(Checks which, Mistake made, uint64_t seed = 1) {
  mistake = made;
  const auto machine = gg::host_machine();
  gg::Layer layer(*machine, kProgram, {.tokens = 32, .experts = 5, .top_k = 2, .hidden = 40, .inner = 64},
                  seed, true);
  layer.make_target();
  gg::LayerChecks checks(layer);
  testing::internal::CaptureStdout();
  if (which == step) {
    checks.gradients();
    checks.replays();
    checks.differences("");
    checks.training(3, 1);
  } else {
    checks.launches();
  }
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_EQ(checks.passed(), said.find("WRONG") == std::string::npos) << said;
  mistake = none;
  return said;
}

TEST(Layer, PassesWhereItIsRight) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    for (const Checks which : {step, launches}) {
      const std::string said = checked(which, none, seed);
      EXPECT_EQ(said.find("WRONG"), std::string::npos) << said;
    }
  }
}

// Each mistake, and the lines that must name what is wrong: of a whole step, and of the launches.
TEST(Layer, FindsEachMistake) {
  const struct {
    Mistake made;
    const char *of_step, *of_launches;
  } cases[] = {
      {other_expert, "WRONG loss", "WRONG y "},         {no_prob, "WRONG dW1", "WRONG dc "},
      {slope_of_one, "WRONG dW1", "WRONG dc "},         {first_row_alone, "WRONG dtokens", "WRONG dtokens"},
      {wrong_rows, "WRONG dW1", "WRONG dW1"},           {last_row_missing, "WRONG dW2", "WRONG dW2"},
      {empty_expert_left, "WRONG dW2", "WRONG dW2"},    {dprob_of_gate, "WRONG dprob", "WRONG dprob"},
      {bias_of_other, "WRONG dbias", "WRONG dbias"},    {loss_unscaled, "WRONG loss", "WRONG loss"},
      {dy_of_one_row, "WRONG dtokens", "WRONG dy"},     {step_up, "WRONG step 2", "WRONG W1"},
      {stale_weights, "WRONG step 2", "WRONG in bf16"}, {sums_into_gradient, "WRONG dW2", "WRONG dW2"},
      {offsets_kept, "other experts\n  WRONG loss", nullptr},  // right in launches that run once
  };
  for (const auto& [made, of_step, of_launches] : cases) {
    for (const auto& [which, line] : {std::pair(step, of_step), {launches, of_launches}}) {
      if (!line) continue;
      const std::string said = checked(which, made);
      EXPECT_NE(said.find(line), std::string::npos) << "mistake " << made << ":\n" << said;
    }
  }
}

TEST(LayerOptions, RefusesWithTheNumber) {
  const auto refused = [](std::vector<std::string> words) {
    std::vector<char*> argv = {const_cast<char*>("10c")};
    for (std::string& word : words) argv.push_back(word.data());
    try {
      gg::parse_layer_options(int(argv.size()), argv.data());
    } catch (const gg::Error& error) {
      EXPECT_EQ(error.code, gg::Exit::bad_input);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused({"--steps", "0"}), "--steps 0: must lie between 1 and 100000: give one of these");
  EXPECT_EQ(refused({"--steps", "3x"}), "--steps 3x: not a whole number: give one");
  EXPECT_EQ(refused({"--seed"}), "--seed: a value must follow it");
  EXPECT_EQ(refused({"--csv", ""}), "--csv: a value must follow it");
  EXPECT_EQ(refused({"--layer", "gpt"}), "--layer gpt: mixtral, qwen3 and deepseek are accepted");
  EXPECT_EQ(refused({"--device", "cpu"}), "--device cpu: auto, gpu or emu are accepted");
  EXPECT_EQ(refused({"--order", "1:odd"}), "--order 1:odd: S, S:fair or S:skew are accepted");
  EXPECT_EQ(refused({"--check", "--bench"}), "--check and --bench: only one of them, or none for both");
  EXPECT_EQ(refused({"--sets", "smoke"}), "--sets: no such option; --help lists them");
  EXPECT_EQ(refused({"--steps", "7", "--order", "2:skew", "--layer", "qwen3"}), "");
}

}  // namespace
