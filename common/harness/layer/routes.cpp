// SPDX-License-Identifier: MIT
//
// Tokens are dealt out to experts.

#include "common/harness/layer/routes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/harness/base/random.h"

namespace gg {

Routes routes_of(const LayerSizes& s, uint64_t seed, bool idle) {
  const int32_t* const quantiles = normal_quantiles();
  const Fill of_tokens = {Fill::Kind::normal, 0, seed, 1}, of_experts = {Fill::Kind::normal, 0, seed, 2};
  struct Choice {
    int token, choice;
    float prob;
  };
  std::vector<std::vector<Choice>> rows(size_t(s.experts));
  std::vector<int> order(size_t(s.experts));
  std::vector<double> logit(size_t(s.experts));
  for (int token = 0; token < s.tokens; ++token) {
    for (int g = 0; g < s.experts; ++g) {
      logit[size_t(g)] = double(random_value(of_tokens, uint64_t(token) * s.experts + g, quantiles)) +
                         double(random_value(of_experts, g, quantiles)) / 2;
      if (idle && g == 1) logit[size_t(g)] = -100;
    }
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + s.top_k, order.end(),
                      [&](int a, int b) { return logit[size_t(a)] > logit[size_t(b)]; });
    double sum = 0;
    for (int i = 0; i < s.top_k; ++i) sum += std::exp(logit[size_t(order[size_t(i)])]);
    for (int i = 0; i < s.top_k; ++i) {
      const size_t g = size_t(order[size_t(i)]);
      rows[g].push_back({token, i, float(std::exp(logit[g]) / sum)});
    }
  }
  Routes routes;
  routes.row_of.resize(size_t(s.rows()));
  routes.offsets.push_back(0);
  for (const auto& of_expert : rows) {
    for (const Choice& each : of_expert) {
      routes.row_of[size_t(each.token * s.top_k + each.choice)] = int32_t(routes.token_of.size());
      routes.token_of.push_back(each.token);
      routes.prob.push_back(each.prob);
    }
    routes.offsets.push_back(int32_t(routes.token_of.size()));
  }
  return routes;
}

}  // namespace gg
