// SPDX-License-Identifier: MIT
//
// Contents of nodes, copies of graphs, and the order in which nodes run.

#include "common/emu/foreign/cudart/graph_nodes.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace gg::emu {

std::shared_ptr<const NodeParams> params_of(const void* function, const LaunchRequest& request,
                                            const Launch& launch) {
  KernelParams kernel{function, request, launch.params, {}};
  for (const Variable& param : launch.code->function->params) {
    kernel.arguments.push_back(kernel.bytes.data() + param.offset);  // stays where it is when moved
  }
  auto params = std::make_shared<NodeParams>();
  params->of = std::move(kernel);
  return params;
}

cudaError_t make_node(Runtime& rt, const KernelParams& params, NodeContents* node) {
  Launch launch;
  std::vector<void*> arguments = params.arguments;
  const cudaError_t error = prepare(rt, params.function, params.request, arguments.data(), &launch);
  if (error != cudaSuccess) return error;
  *node = {cudaGraphNodeTypeKernel, work_of(rt, launch, params.request),
           params_of(params.function, params.request, launch)};
  return cudaSuccess;
}

cudaError_t make_node(Runtime& rt, const cudaKernelNodeParams& params, NodeContents* node) {
  Launch launch;
  if (params.extra) return unsupported("arguments of a kernel node in one buffer (extra)");
  const LaunchRequest request = {
      .grid = params.gridDim, .block = params.blockDim, .dynamic_shared = params.sharedMemBytes};
  const cudaError_t error = prepare(rt, params.func, request, params.kernelParams, &launch);
  if (error != cudaSuccess) return error;
  *node = {cudaGraphNodeTypeKernel, work_of(rt, launch, request), params_of(params.func, request, launch)};
  return cudaSuccess;
}

cudaMemcpy3DParms bytes_as_box(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms params = {};
  params.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  params.dstPtr = {to, bytes, bytes, 1};
  params.extent = {bytes, 1, 1};
  params.kind = kind;
  return params;
}

cudaError_t copy_of(const cudaMemcpy3DParms& p, Copy* copy) {
  if (p.srcArray || p.dstArray) return unsupported("a copy from or to an array");
  if (!p.srcPtr.ptr || !p.dstPtr.ptr) return cudaErrorInvalidValue;
  const auto first = [](const cudaPitchedPtr& at, const cudaPos& pos) {
    return static_cast<char*>(at.ptr) + (pos.z * at.ysize + pos.y) * at.pitch + pos.x;
  };
  *copy = {first(p.dstPtr, p.dstPos),
           p.dstPtr.pitch,
           first(p.srcPtr, p.srcPos),
           p.srcPtr.pitch,
           p.extent.width,
           p.extent.height,
           p.kind,
           p.extent.depth,
           p.dstPtr.pitch * p.dstPtr.ysize,
           p.srcPtr.pitch * p.srcPtr.ysize};
  return cudaSuccess;
}

cudaError_t make_node(Runtime& rt, const cudaMemcpy3DParms& params, NodeContents* node) {
  Copy copy;
  if (const cudaError_t error = copy_of(params, &copy)) return error;
  if (const cudaError_t error = check(rt, copy)) return error;
  *node = {cudaGraphNodeTypeMemcpy, [&rt, copy] { return run(rt, copy); },
           std::make_shared<NodeParams>(NodeParams{params})};
  return cudaSuccess;
}

cudaError_t make_node(Runtime& rt, const cudaMemsetParams& p, NodeContents* node) {
  const size_t pitch = p.height > 1 ? p.pitch : p.width * p.elementSize;
  const Fill fill{p.dst, pitch, p.value, p.width, p.height, p.elementSize};
  if (p.width == 0 || p.height == 0) return cudaErrorInvalidValue;
  if (const cudaError_t error = check(rt, fill)) return error;
  *node = {cudaGraphNodeTypeMemset, [&rt, fill] { return run(rt, fill); },
           std::make_shared<NodeParams>(NodeParams{p})};
  return cudaSuccess;
}

cudaError_t make_node(Runtime&, const cudaHostNodeParams& params, NodeContents* node) {
  if (!params.fn) return cudaErrorInvalidValue;
  const auto call = [params] {
    const Unlocked unlocked;
    params.fn(params.userData);
    return cudaSuccess;
  };
  *node = {cudaGraphNodeTypeHost, call, std::make_shared<NodeParams>(NodeParams{params})};
  return cudaSuccess;
}

cudaError_t make_node(Runtime& rt, const cudaGraphNodeParams& any, NodeContents* node) {
  switch (any.type) {
    case cudaGraphNodeTypeKernel: {
      const cudaKernelNodeParamsV2& p = any.kernel;
      const cudaKernelNodeParams params{p.func,           p.gridDim,      p.blockDim,
                                        p.sharedMemBytes, p.kernelParams, p.extra};
      return make_node(rt, params, node);
    }
    case cudaGraphNodeTypeMemcpy:
      return make_node(rt, any.memcpy.copyParams, node);
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParamsV2& p = any.memset;
      const cudaMemsetParams params{p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
      return make_node(rt, params, node);
    }
    case cudaGraphNodeTypeHost: {
      const cudaHostNodeParams params{any.host.fn, any.host.userData};
      return make_node(rt, params, node);
    }
    case cudaGraphNodeTypeEmpty:
      *node = NodeContents();
      return cudaSuccess;
    default:
      return unsupported("a node of type " + std::to_string(int(any.type)) + " by cudaGraphNodeParams");
  }
}

cudaError_t add_node(CUgraph_st& graph, NodeContents contents, const cudaGraphNode_t* needs, size_t count,
                     cudaGraphNode_t* into) {
  if (!into || (count && !needs)) return cudaErrorInvalidValue;
  auto node = std::make_unique<CUgraphNode_st>();
  for (size_t i = 0; i < count; ++i) {
    if (!needs[i] || needs[i]->graph != &graph) return cudaErrorInvalidValue;
    if (std::find(node->needs.begin(), node->needs.end(), needs[i]) != node->needs.end())
      return cudaErrorInvalidValue;
    node->needs.push_back(needs[i]);
  }
  node->type = contents.type;
  node->run = std::move(contents.run);
  node->params = std::move(contents.params);
  node->graph = &graph;
  *into = node.get();
  graph.nodes.push_back(std::move(node));
  return cudaSuccess;
}

CUgraph_st* clone(Runtime& rt, const CUgraph_st& graph) {
  CUgraph_st* const copy = rt.streams.create_graph();
  std::map<const CUgraphNode_st*, CUgraphNode_st*> copies;
  for (const auto& node : graph.nodes) {
    auto made = std::make_unique<CUgraphNode_st>(*node);
    made->graph = copy;
    made->cloned_from = node.get();
    if (node->child) made->child = clone(rt, *node->child);
    copies[node.get()] = made.get();
    copy->nodes.push_back(std::move(made));
  }
  for (const auto& node : copy->nodes) {
    for (CUgraphNode_st*& need : node->needs) need = copies.at(need);
  }
  return copy;
}

}  // namespace gg::emu
