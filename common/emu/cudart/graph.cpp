// SPDX-License-Identifier: MIT
//
// The order in which nodes run.

#include "common/emu/cudart/graph.h"

#include <algorithm>
#include <map>
#include <set>

namespace gg::emu {
namespace {

// Nodes so that none comes before those it needs, else as they were made. Fewer than all if
// edges go round.
std::vector<const CUgraphNode_st*> ordered(const CUgraph_st& graph) {
  std::map<const CUgraphNode_st*, size_t> index;
  for (const auto& node : graph.nodes) index[node.get()] = index.size();
  std::vector<size_t> missing;
  std::vector<std::vector<size_t>> wanted_by(graph.nodes.size());
  std::set<size_t> ready;
  for (const auto& node : graph.nodes) {
    const size_t own = index.at(node.get());
    for (const CUgraphNode_st* need : node->needs) wanted_by[index.at(need)].push_back(own);
    missing.push_back(node->needs.size());
    if (node->needs.empty()) ready.insert(own);
  }
  std::vector<const CUgraphNode_st*> order;
  while (!ready.empty()) {
    const size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(graph.nodes[next].get());
    for (const size_t other : wanted_by[next]) {
      if (--missing[other] == 0) ready.insert(other);
    }
  }
  return order;
}

// Types of nodes in the order they were made, and the edges between them.
void add_shape(const CUgraph_st& graph, std::vector<size_t>* shape) {
  std::map<const CUgraphNode_st*, size_t> index;
  for (const auto& node : graph.nodes) index[node.get()] = index.size();
  shape->push_back(graph.nodes.size());
  for (const auto& node : graph.nodes) {
    std::vector<size_t> needs;
    for (const CUgraphNode_st* need : node->needs) needs.push_back(index.at(need));
    std::sort(needs.begin(), needs.end());
    shape->push_back(size_t(node->type));
    shape->push_back(needs.size());
    shape->insert(shape->end(), needs.begin(), needs.end());
    if (node->child) add_shape(*node->child, shape);
  }
}

bool add_steps(const CUgraph_st& graph, std::vector<CUgraphExec_st::Step>* steps) {
  const std::vector<const CUgraphNode_st*> order = ordered(graph);
  if (order.size() != graph.nodes.size()) return false;
  for (const CUgraphNode_st* node : order) {
    if (node->child) {
      if (!add_steps(*node->child, steps)) return false;
      continue;
    }
    steps->push_back({node, node->type, node->run, true});
  }
  return true;
}

}  // namespace

cudaError_t instantiate(const CUgraph_st& graph, CUgraphExec_st* exec) {
  exec->steps.clear();
  exec->shape.clear();
  if (!add_steps(graph, &exec->steps)) return cudaErrorInvalidValue;
  add_shape(graph, &exec->shape);
  return cudaSuccess;
}

cudaError_t run(Runtime& rt, const std::vector<CUgraphExec_st::Step>& steps) {
  for (const CUgraphExec_st::Step& step : steps) {
    if (!step.enabled || !step.run) continue;
    // Any other step sees what the kernels before it did.
    if (step.type != cudaGraphNodeTypeKernel) rt.finish_held();
    if (const cudaError_t error = step.run()) return error;
  }
  return cudaSuccess;
}

}  // namespace gg::emu
