// SPDX-License-Identifier: MIT
//
// Nodes that allocate and free memory. It is there from the time that the node is made until
// the last graph that knows it is gone, so freeing it in a graph changes nothing. CUDA Runtime
// API, "Graph Management".

#include "common/emu/foreign/cudart/graph_nodes.h"

using gg::emu::address_of;
using gg::emu::api;
using gg::emu::NodeParams;
using gg::emu::Runtime;

namespace {

template <class Params>
cudaError_t give(cudaGraphNode_t node, Params* into) {
  return api([&](Runtime& rt) {
    if (!node || !into || !rt.streams.graph(node->graph) || !node->params) return cudaErrorInvalidValue;
    const auto* const params = std::get_if<Params>(&node->params->of);
    if (!params) return cudaErrorInvalidValue;
    *into = *params;
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t handle, const cudaGraphNode_t* needs,
                                     size_t count, cudaMemAllocNodeParams* params) {
  return api([&](Runtime& rt) {
    CUgraph_st* const graph = rt.streams.graph(handle);
    if (!graph || !params || !params->bytesize) return cudaErrorInvalidValue;
    const std::shared_ptr<void> owner = rt.allocate_for_graph(params->bytesize);
    if (!owner) return cudaErrorMemoryAllocation;
    params->dptr = owner.get();
    return gg::emu::add_node(*graph,
                             {cudaGraphNodeTypeMemAlloc,
                              [&rt, owner] {
                                rt.memory.forget(address_of(owner.get()));
                                return cudaSuccess;
                              },
                              std::make_shared<NodeParams>(NodeParams{*params})},
                             needs, count, node);
  });
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t handle, const cudaGraphNode_t* needs,
                                    size_t count, void* memory) {
  return api([&](Runtime& rt) {
    CUgraph_st* const graph = rt.streams.graph(handle);
    if (!graph || !memory || !rt.memory.host(address_of(memory), 1)) return cudaErrorInvalidValue;
    return gg::emu::add_node(*graph,
                             {cudaGraphNodeTypeMemFree, nullptr,
                              std::make_shared<NodeParams>(NodeParams{gg::emu::FreeParams{memory}})},
                             needs, count, node);
  });
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* into) {
  return give(node, into);
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* into) {
  gg::emu::FreeParams params;
  const cudaError_t error = give(node, into ? &params : nullptr);
  if (error == cudaSuccess) *static_cast<void**>(into) = params.memory;
  return error;
}
cudaError_t cudaDeviceGraphMemTrim(int device) {
  return api([device](Runtime&) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

}  // extern "C"
