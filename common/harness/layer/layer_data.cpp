// SPDX-License-Identifier: MIT
//
// The memory and the data of a layer.

#include "common/harness/layer/layer_data.h"

#include <cmath>
#include <numeric>

namespace gg {
namespace {

// Streams of random numbers (Fill); the router has 1 and 2.
enum Stream : uint64_t { kTokens = 3, kTarget, kWeights, kOtherWeights = 7 };

std::vector<LayerLaunch> joined(std::vector<LayerLaunch> first, const std::vector<LayerLaunch>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

template <class T>
T* Layer::allocate(int64_t count, const char* what) {
  void* const memory = machine_.allocate(size_t(count) * sizeof(T), what);
  memory_.emplace_back(memory, [&machine = machine_](void* memory) { machine.release(memory); });
  return static_cast<T*>(memory);
}

Layer::Layer(Machine& machine, const LayerProgram& program, const LayerSizes& sizes, uint64_t seed, bool idle)
    : machine_(machine), program_(program), sizes_(sizes), seed_(seed) {
  GG_REQUIRE(
      sizes.hidden % 8 == 0 && sizes.inner % 32 == 0,
      "hidden %d, inner %d: multiples of 8 and of 32 are accepted, for rows of whole 16 bytes and 32 gates "
      "beside 32 ups",
      sizes.hidden, sizes.inner);
  const int64_t rows = sizes.rows(), x = rows * sizes.hidden, unit = rows * sizes.inner;
  workspace_bytes_ = program.workspace_bytes(sizes);
  offsets_ = allocate<int32_t>(sizes.experts + 1, "the offsets");
  token_of_ = allocate<int32_t>(rows, "the rows' tokens");
  row_of_ = allocate<int32_t>(rows, "the tokens' rows");
  prob_ = allocate<float>(rows, "prob");
  ones_ = allocate<float>(sizes.experts, "alpha");
  tokens_ = allocate<bf16>(count_of_tokens(), "the tokens");
  target_ = allocate<bf16>(count_of_tokens(), "the target");
  t_ = {.offsets = offsets_,
        .token_of = token_of_,
        .row_of = row_of_,
        .prob = prob_,
        .ones = ones_,
        .tokens = tokens_,
        .target = target_,
        .w1 = allocate<bf16>(sizes.w1(), "W1"),
        .w2 = allocate<bf16>(sizes.w2(), "W2"),
        .f32_w1 = allocate<float>(sizes.w1(), "W1 in f32"),
        .f32_w2 = allocate<float>(sizes.w2(), "W2 in f32"),
        .x = allocate<bf16>(x, "x"),
        .c = allocate<bf16>(2 * unit, "c"),
        .unit = allocate<bf16>(unit, "the unit's output"),
        .y = allocate<bf16>(x, "y"),
        .dy = allocate<bf16>(x, "dy"),
        .loss = allocate<float>(sizes.tokens, "the loss"),
        .dc = allocate<bf16>(2 * unit, "dc"),
        .dx = allocate<bf16>(x, "dx"),
        .dtokens = allocate<bf16>(count_of_tokens(), "dtokens"),
        .dw1 = allocate<float>(sizes.w1(), "dW1"),
        .dw2 = allocate<float>(sizes.w2(), "dW2"),
        .dprob = allocate<float>(rows, "dprob"),
        .dbias = allocate<float>(int64_t(sizes.experts) * 2 * sizes.inner, "dbias"),
        .workspace = allocate<char>(int64_t(workspace_bytes_), "the workspace")};
  const std::vector<float> ones(size_t(sizes.experts), 1);
  put(ones_, ones);
  set_routes(routes_of(sizes, seed, idle));
  fill(tokens_, Format::bf16, count_of_tokens(), kTokens);
}

void Layer::set_routes(const Routes& routes) {
  routes_ = routes;
  put(offsets_, routes.offsets);
  put(token_of_, routes.token_of);
  put(row_of_, routes.row_of);
  put(prob_, routes.prob);
}

void Layer::fill(void* tensor, Format format, int64_t count, uint64_t stream) {
  constexpr int kColumns = 1 << 16;  // a region's extents are int
  const int rows = int(count / kColumns), rest = int(count % kColumns);
  std::vector<Region> regions;
  if (rows > 0) regions.push_back({0, rows, kColumns, kColumns});
  if (rest > 0) regions.push_back({int64_t(rows) * kColumns, 1, rest, rest});
  machine_.fill(tensor, format, regions, {Fill::Kind::normal, 0, seed_, stream});
}

void Layer::draw_weights(uint64_t stream) {
  fill(t_.dw1, Format::f32, sizes_.w1(), stream);
  fill(t_.dw2, Format::f32, sizes_.w2(), stream + 1);
  machine_.fill_bytes(t_.f32_w1, 0, size_t(sizes_.w1()) * sizeof(float));
  machine_.fill_bytes(t_.f32_w2, 0, size_t(sizes_.w2()) * sizeof(float));
  // 0 - rate * what was drawn
  run(program_.update(sizes_, t_, -1 / std::sqrt(float(sizes_.hidden)), -1 / std::sqrt(float(sizes_.inner))));
}

void Layer::make_target() {
  draw_weights(kOtherWeights);
  // With a target of zeros and a scale of 1, dy is the layer's output, in all rows of a token.
  machine_.fill_bytes(target_, 0, size_t(count_of_tokens()) * sizeof(bf16));
  run(program_.forward(sizes_, t_, 1));
  const std::vector<bf16> dy = download(t_.dy, int64_t(sizes_.rows()) * sizes_.hidden);
  std::vector<bf16> target;
  for (int token = 0; token < sizes_.tokens; ++token) {
    const auto row = dy.begin() + int64_t(routes_.row_of[size_t(token * sizes_.top_k)]) * sizes_.hidden;
    target.insert(target.end(), row, row + sizes_.hidden);
  }
  put(target_, target);
  double squares = 0;
  for (const bf16 each : target) squares += double(to_float(each)) * double(to_float(each));
  scale_ = float(2 / squares);
  draw_weights(kWeights);
}

void Layer::draw_target() {
  draw_weights(kWeights);
  fill(target_, Format::bf16, count_of_tokens(), kTarget);
  scale_ = 2 / float(count_of_tokens());
}

std::vector<LayerLaunch> Layer::forward_and_backward() const {
  return joined(forward(), program_.backward(sizes_, t_));
}
std::vector<LayerLaunch> Layer::step(float rate) const {
  return joined(forward_and_backward(), program_.update(sizes_, t_, rate, rate));
}

void Layer::run(const std::vector<LayerLaunch>& launches) const {
  machine_.run([&](cudaStream_t stream) {
    for (const LayerLaunch& each : launches) each.run(stream);
  });
}
std::function<void()> Layer::captured(const std::vector<LayerLaunch>& launches) const {
  return machine_.captured([launches](cudaStream_t stream) {
    for (const LayerLaunch& each : launches) each.run(stream);
  });
}

double Layer::loss() const {
  const std::vector<float> parts = download(t_.loss, sizes_.tokens);
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

// The loss and all gradients.
std::vector<std::pair<void*, size_t>> Layer::results() const {
  return {{t_.loss, size_t(sizes_.tokens) * sizeof(float)},
          {t_.dtokens, size_t(count_of_tokens()) * sizeof(bf16)},
          {t_.dw1, size_t(sizes_.w1()) * sizeof(float)},
          {t_.dw2, size_t(sizes_.w2()) * sizeof(float)},
          {t_.dprob, size_t(sizes_.rows()) * sizeof(float)},
          {t_.dbias, size_t(sizes_.experts) * 2 * size_t(sizes_.inner) * sizeof(float)}};
}

Layer::Outputs Layer::outputs() const {
  Outputs all;
  for (const auto& [memory, bytes] : results())
    all.push_back(download(static_cast<const char*>(memory), int64_t(bytes)));
  return all;
}

void Layer::poison() const {
  for (const auto& [memory, bytes] : results()) machine_.fill_bytes(memory, 0xFF, bytes);
  const size_t of_x = size_t(sizes_.rows()) * size_t(sizes_.hidden) * sizeof(bf16),
               of_unit = size_t(sizes_.rows()) * size_t(sizes_.inner) * sizeof(bf16);
  for (void* const memory : {t_.x, t_.y, t_.dy, t_.dx}) machine_.fill_bytes(memory, 0xFF, of_x);
  for (void* const memory : {t_.c, t_.dc}) machine_.fill_bytes(memory, 0xFF, 2 * of_unit);
  machine_.fill_bytes(t_.unit, 0xFF, of_unit);
  machine_.fill_bytes(t_.workspace, 0xFF, workspace_bytes_);
}

}  // namespace gg
