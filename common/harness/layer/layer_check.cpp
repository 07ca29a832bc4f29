// SPDX-License-Identifier: MIT
//
// A layer beside the same layer in double.

#include "common/harness/layer/layer_check.h"

#include <cmath>
#include <cstdio>

#include "common/harness/base/csv.h"
#include "common/harness/layer/reference.h"

namespace gg {

const std::vector<std::string> kDifferenceColumns = {"gradient", "h", "off"};

namespace {

constexpr const char* kNames[ALL] = {"dtokens", "dW1", "dW2", "dprob", "dbias"};

// A right number may be off by so many standard deviations. Of 70,000 normal numbers the furthest
// is about 4.5 off; the rest is room for errors that depend on each other, unlike Rounded's.
constexpr double kDeviations = 8;

// The seed of the routes that a recorded step finds when it is replayed.
constexpr uint64_t kOtherRouter = 12345;

template <class Number, class Value>
std::vector<Number> numbers(const std::vector<Value>& values) {
  std::vector<Number> all;
  for (const Value& value : values) all.push_back(Number(double(to_float(value))));
  return all;
}

template <class Number>
Parameters<Number> parameters_of(const Layer& layer) {
  const LayerSizes& s = layer.sizes();
  const LayerTensors& t = layer.tensors();
  return {numbers<Number>(layer.download(t.tokens, int64_t(s.tokens) * s.hidden)),
          numbers<Number>(layer.download(t.w1, s.w1())), numbers<Number>(layer.download(t.w2, s.w2())),
          numbers<Number>(layer.routes().prob), std::vector<Number>(size_t(s.experts) * 2 * size_t(s.inner))};
}

std::vector<double> target_of(const Layer& layer) {
  const LayerSizes& s = layer.sizes();
  return numbers<double>(layer.download(layer.tensors().target, int64_t(s.tokens) * s.hidden));
}

// A layer in double, with the numbers of one on a machine.
class Exact {
 public:
  explicit Exact(const Layer& layer)
      : layer_(layer), target_(target_of(layer)), parameters_(parameters_of<double>(layer)) {}

  Gradients<double> gradients() const { return step_of(parameters_, true); }

  // The loss with `h` times `direction` added to one of the parameters.
  double loss_at(Of of, const std::vector<double>& direction, double h) const {
    Parameters<double> moved = parameters_;
    for (size_t i = 0; i < direction.size(); ++i) moved[of][i] += h * direction[i];
    return step_of(moved, false).loss;
  }

  // A step down the slope. Returns the loss before it.
  double train(double rate) {
    const Gradients<double> found = gradients();
    for (const Of of : {W1, W2}) {
      for (size_t i = 0; i < parameters_[of].size(); ++i) parameters_[of][i] -= rate * found.by[of][i];
    }
    return found.loss;
  }

 private:
  Gradients<double> step_of(const Parameters<double>& parameters, bool with_gradients) const {
    Reference<double> reference(layer_.sizes(), layer_.routes(), parameters);
    const double loss = reference.loss(target_, double(layer_.scale()));
    return {loss, with_gradients ? reference.gradients() : Parameters<double>()};
  }

  const Layer& layer_;
  std::vector<double> target_;
  Parameters<double> parameters_;
};

// How far the central difference with step `h` is off the derivative along a random direction, as a
// part of the gradient's length, which such a derivative has on the average.
double difference(const Exact& exact, const Gradients<double>& gradients, Of of, double h) {
  const Fill fill = {Fill::Kind::normal, 0, 7, 5};
  std::vector<double> direction;
  double along = 0, squares = 0;
  for (const double each : gradients.by[of]) {
    direction.push_back(double(random_value(fill, direction.size(), normal_quantiles())));
    along += each * direction.back();
    squares += each * each;
  }
  const double central = (exact.loss_at(of, direction, h) - exact.loss_at(of, direction, -h)) / (2 * h);
  return std::fabs(central - along) / std::sqrt(squares);
}

}  // namespace

void LayerChecks::expect(bool right, const std::string& what) {
  passed_ &= right;
  std::printf("  %s %s\n", right ? "right" : "WRONG", what.c_str());
}

template <class Value>
void LayerChecks::compare(const char* name, const std::vector<Value>& got, const std::vector<Rounded>& want) {
  double worst = 0, variances = 0, squares = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double off = std::fabs(double(to_float(got[i])) - want[i].value);
    const double deviations = off == 0 ? 0 : off / std::sqrt(want[i].variance);
    if (!(deviations <= worst)) worst = std::isnan(deviations) ? INFINITY : deviations;
    variances += want[i].variance;
    squares += want[i].value * want[i].value;
  }
  expect(worst <= kDeviations,
         format("%-8s %.1f; a deviation is %.4f of a number", name, worst, std::sqrt(variances / squares)));
}

template void LayerChecks::compare(const char*, const std::vector<float>&, const std::vector<Rounded>&);
template void LayerChecks::compare(const char*, const std::vector<bf16>&, const std::vector<Rounded>&);

void LayerChecks::gradients() {
  std::printf("gradients beside double precision: the number furthest off, in standard deviations\n");
  layer_.poison();
  layer_.run(layer_.forward_and_backward());
  compare_gradients();
}

void LayerChecks::compare_gradients() {
  const Parameters<Rounded> parameters = parameters_of<Rounded>(layer_);
  Reference<Rounded> reference(s_, layer_.routes(), parameters);
  compare("loss", std::vector<float>{float(layer_.loss())},
          {reference.loss(target_of(layer_), double(layer_.scale()))});
  const Parameters<Rounded> want = reference.gradients();
  compare(kNames[TOKENS], layer_.download(t_.dtokens, int64_t(s_.tokens) * s_.hidden), want[TOKENS]);
  compare(kNames[W1], layer_.download(t_.dw1, s_.w1()), want[W1]);
  compare(kNames[W2], layer_.download(t_.dw2, s_.w2()), want[W2]);
  compare(kNames[PROB], layer_.download(t_.dprob, s_.rows()), want[PROB]);
  compare(kNames[BIAS], layer_.download(t_.dbias, int64_t(s_.experts) * 2 * s_.inner), want[BIAS]);
}

void LayerChecks::replays() {
  const Layer::Outputs before = layer_.outputs();
  const auto replay = layer_.captured(layer_.forward_and_backward());
  bool same = true;
  for (int i = 0; i < 2; ++i) {
    layer_.poison();
    replay();
    same &= layer_.outputs() == before;
  }
  expect(same, "replayed as a graph, twice: the same bits");
  std::printf("the same graph, after the router has sent tokens to other experts\n");
  const Routes first = layer_.routes();
  layer_.set_routes(routes_of(s_, kOtherRouter, false));
  layer_.poison();
  replay();
  compare_gradients();
  layer_.set_routes(first);
}

void LayerChecks::differences(const std::string& file) {
  std::printf("derivatives in double beside finite differences, which are off by\n");
  const Exact exact(layer_);
  const Gradients<double> gradients = exact.gradients();
  std::vector<Row> rows;
  for (const Of of : {TOKENS, W1, W2, PROB, BIAS}) {
    const double coarse = difference(exact, gradients, of, 0x1p-8),
                 fine = difference(exact, gradients, of, 0x1p-10);
    // In h^2 for a function that is no polynomial of degree 2, and else by rounding alone.
    const bool right = fine < 1e-2 && (fine < 1e-9 || std::fabs(coarse / fine / 16 - 1) < 0.25);
    expect(right, format("%-8s h = 2^-8: %.1e, h = 2^-10: %.1e", kNames[of], coarse, fine));
    for (int power = -2; !file.empty() && power >= -30; --power) {
      const double h = std::ldexp(1, power);
      rows.push_back({{"gradient", kNames[of]},
                      {"h", number_text(h)},
                      {"off", number_text(difference(exact, gradients, of, h))}});
    }
  }
  if (!file.empty()) append_csv(file, kDifferenceColumns, rows);
}

void LayerChecks::training(int steps, float rate) {
  std::printf("training: the loss before each step, and in double\n");
  Exact exact(layer_);
  double first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    layer_.run(layer_.step(rate));
    last = layer_.loss();  // before the update
    if (i == 0) first = last;
    const double wanted = exact.train(double(rate));
    expect(std::fabs(last / wanted - 1) < 0.01, format("step %d: %.4f, %.4f", i + 1, last, wanted));
  }
  if (steps > 1) expect(last < first, "it falls");
}

void LayerChecks::long_training(int steps, float rate) {
  std::printf("training, a graph a step: the loss\n ");
  const auto step = layer_.captured(layer_.step(rate));
  double first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    step();
    last = layer_.loss();  // before the update
    if (i == 0) first = last;
    if (i == 0 || (i + 1) % 10 == 0 || i + 1 == steps) std::printf(" step %d: %.4f", i + 1, last);
  }
  std::printf("\n");
  expect(last < first / 2, "it falls to less than a half");
}

}  // namespace gg
