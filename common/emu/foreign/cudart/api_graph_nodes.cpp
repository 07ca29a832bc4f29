// SPDX-License-Identifier: MIT
//
// Graphs: made by hand, their nodes and edges read, copied. CUDA Runtime API, "Graph Management".

#include <algorithm>
#include <utility>

#include "common/emu/foreign/cudart/graph_nodes.h"

using gg::emu::api;
using gg::emu::make_node;
using gg::emu::NodeContents;
using gg::emu::Runtime;

namespace {

using Nodes = std::vector<CUgraphNode_st*>;

// Runs the body with the graph of a handle.
template <class Body>
cudaError_t with_graph(cudaGraph_t handle, Body body) {
  return api([&](Runtime& rt) {
    CUgraph_st* const graph = rt.streams.graph(handle);
    return graph ? body(rt, *graph) : cudaErrorInvalidValue;
  });
}
template <class Body>
cudaError_t with_node(cudaGraphNode_t node, Body body) {
  return api([&](Runtime& rt) {
    return node && rt.streams.graph(node->graph) ? body(rt, *node) : cudaErrorInvalidValue;
  });
}

template <class Params>
cudaError_t add_node(cudaGraphNode_t* into, cudaGraph_t handle, const cudaGraphNode_t* needs, size_t count,
                     const Params* params) {
  return with_graph(handle, [&](Runtime& rt, CUgraph_st& graph) {
    NodeContents contents;
    if (!params) return cudaErrorInvalidValue;
    if (const cudaError_t error = make_node(rt, *params, &contents)) return error;
    return gg::emu::add_node(graph, std::move(contents), needs, count, into);
  });
}

// Gives back what the node was made of.
template <class Params>
cudaError_t get_params(cudaGraphNode_t handle, Params* into) {
  return with_node(handle, [into](Runtime&, CUgraphNode_st& node) {
    if (!into) return cudaErrorInvalidValue;
    if (!node.params) return gg::emu::unsupported("the parameters of this node of a graph");
    const auto* const params = std::get_if<Params>(&node.params->of);
    if (!params) return cudaErrorInvalidValue;
    *into = *params;
    return cudaSuccess;
  });
}

template <class Params>
cudaError_t set_params(cudaGraphNode_t handle, const Params* params) {
  return with_node(handle, [params](Runtime& rt, CUgraphNode_st& node) {
    NodeContents contents;
    if (!params) return cudaErrorInvalidValue;
    if (const cudaError_t error = make_node(rt, *params, &contents)) return error;
    if (contents.type != node.type) return cudaErrorInvalidValue;
    node.run = std::move(contents.run);
    node.params = std::move(contents.params);
    return cudaSuccess;
  });
}

// Copies up to *count of the nodes; without `into`, says how many there are.
cudaError_t list_nodes(const Nodes& nodes, cudaGraphNode_t* into, size_t* count) {
  if (!count) return cudaErrorInvalidValue;
  if (into) {
    for (size_t i = 0; i < *count; ++i) into[i] = i < nodes.size() ? nodes[i] : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return cudaSuccess;
}

// Edges that carry no port and no type, which are all that there are here.
void plain_edges(cudaGraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges && i < count; ++i) edges[i] = {};
}

bool is_plain(const cudaGraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges && i < count; ++i) {
    if (edges[i].from_port || edges[i].to_port || edges[i].type) return false;
  }
  return true;
}

// The pairs of nodes that a call names, all of one graph.
bool are_pairs(const CUgraph_st& graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
               size_t count) {
  if (count && (!from || !to)) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!from[i] || !to[i] || from[i] == to[i] || from[i]->graph != &graph || to[i]->graph != &graph)
      return false;
  }
  return true;
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return api([&](Runtime& rt) {
    if (!graph || flags) return cudaErrorInvalidValue;
    *graph = rt.streams.create_graph();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t handle) {
  return with_graph(handle, [copy](Runtime& rt, CUgraph_st& graph) {
    if (!copy) return cudaErrorInvalidValue;
    *copy = gg::emu::clone(rt, graph);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original, cudaGraph_t handle) {
  return with_graph(handle, [=](Runtime&, CUgraph_st& graph) {
    if (!found || !original) return cudaErrorInvalidValue;
    for (const auto& node : graph.nodes) {
      if (node->cloned_from != original) continue;
      *found = node.get();
      return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                   size_t count, const cudaKernelNodeParams* params) {
  return add_node(node, graph, needs, count, params);
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                   size_t count, const cudaMemcpy3DParms* params) {
  return add_node(node, graph, needs, count, params);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                     size_t count, void* to, const void* from, size_t bytes,
                                     cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = gg::emu::bytes_as_box(to, from, bytes, kind);
  return add_node(node, graph, needs, count, &params);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                   size_t count, const cudaMemsetParams* params) {
  return add_node(node, graph, needs, count, params);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                                 size_t count, const cudaHostNodeParams* params) {
  return add_node(node, graph, needs, count, params);
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs,
                             const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* params) {
  if (!is_plain(edges, count)) {
    return api([](Runtime&) { return gg::emu::unsupported("an edge of a graph with a type"); });
  }
  return add_node(node, graph, needs, count, params);
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params) {
  return set_params(node, params);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t handle, const cudaGraphNode_t* needs,
                                  size_t count) {
  return with_graph(handle, [&](Runtime&, CUgraph_st& graph) {
    return gg::emu::add_node(graph, NodeContents(), needs, count, node);
  });
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t handle,
                                       const cudaGraphNode_t* needs, size_t count, cudaGraph_t child) {
  return with_graph(handle, [&](Runtime& rt, CUgraph_st& graph) {
    const CUgraph_st* const known = rt.streams.graph(child);
    if (!known || known == &graph) return cudaErrorInvalidValue;
    const cudaError_t error =
        gg::emu::add_node(graph, {cudaGraphNodeTypeGraph, nullptr, nullptr}, needs, count, node);
    if (error == cudaSuccess) (*node)->child = gg::emu::clone(rt, *known);
    return error;
  });
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t handle, cudaGraph_t* child) {
  return with_node(handle, [child](Runtime&, CUgraphNode_st& node) {
    if (!child || !node.child) return cudaErrorInvalidValue;
    *child = node.child;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t handle,
                                        const cudaGraphNode_t* needs, size_t count, cudaEvent_t event) {
  return with_graph(handle, [&](Runtime& rt, CUgraph_st& graph) {
    if (!rt.streams.event(event)) return cudaErrorInvalidValue;
    const auto record = [&rt, event] {
      CUevent_st* const known = rt.streams.event(event);
      return known ? rt.streams.record(known, rt.streams.stream(nullptr), false) : cudaErrorInvalidValue;
    };
    return gg::emu::add_node(graph, {cudaGraphNodeTypeEventRecord, record, nullptr}, needs, count, node);
  });
}
// Work runs when it is submitted, so what the event stands for has happened.
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t handle, const cudaGraphNode_t* needs,
                                      size_t count, cudaEvent_t event) {
  return with_graph(handle, [&](Runtime& rt, CUgraph_st& graph) {
    if (!rt.streams.event(event)) return cudaErrorInvalidValue;
    return gg::emu::add_node(graph, {cudaGraphNodeTypeWaitEvent, nullptr, nullptr}, needs, count, node);
  });
}

// The arguments stay where they are until the node is changed or destroyed.
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* into) {
  gg::emu::KernelParams kernel;
  if (const cudaError_t error = get_params(node, into ? &kernel : nullptr)) return error;
  const auto& kept = std::get<gg::emu::KernelParams>(node->params->of);
  *into = {const_cast<void*>(kept.function),
           kept.request.grid,
           kept.request.block,
           unsigned(kept.request.dynamic_shared),
           const_cast<void**>(kept.arguments.data()),
           nullptr};
  return cudaSuccess;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  return set_params(node, params);
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue* value) {
  gg::emu::KernelParams kernel;
  if (const cudaError_t error = get_params(node, value ? &kernel : nullptr)) return error;
  const cudaError_t error = api([&](Runtime& rt) {
    cudaLaunchAttribute launch = {};
    launch.id = attribute;
    launch.val = *value;
    return gg::emu::take_attribute(rt, launch, &kernel.request);
  });
  if (error != cudaSuccess) return error;
  return set_params(node, &kernel);
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* into) {
  return get_params(node, into);
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
  return set_params(node, params);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                           cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = gg::emu::bytes_as_box(to, from, bytes, kind);
  return set_params(node, &params);
}
cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* into) {
  return get_params(node, into);
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
  return set_params(node, params);
}
cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* into) {
  return get_params(node, into);
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* params) {
  return set_params(node, params);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return with_graph(handle, [=](Runtime&, CUgraph_st& graph) {
    Nodes all;
    for (const auto& node : graph.nodes) all.push_back(node.get());
    return list_nodes(all, nodes, count);
  });
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, size_t* count) {
  return with_graph(handle, [=](Runtime&, CUgraph_st& graph) {
    Nodes roots;
    for (const auto& node : graph.nodes) {
      if (node->needs.empty()) roots.push_back(node.get());
    }
    return list_nodes(roots, nodes, count);
  });
}
cudaError_t cudaGraphGetEdges(cudaGraph_t handle, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edges, size_t* count) {
  return with_graph(handle, [=](Runtime&, CUgraph_st& graph) {
    Nodes begins, ends;
    if (!count || !from != !to) return cudaErrorInvalidValue;
    for (const auto& node : graph.nodes) {
      for (CUgraphNode_st* need : node->needs) {
        begins.push_back(need);
        ends.push_back(node.get());
      }
    }
    size_t again = *count;
    plain_edges(edges, from ? std::min(*count, begins.size()) : 0);
    list_nodes(begins, from, count);
    return list_nodes(ends, to, &again);
  });
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t handle, cudaGraphNode_t* needs,
                                         cudaGraphEdgeData* edges, size_t* count) {
  return with_node(handle, [=](Runtime&, CUgraphNode_st& node) {
    const cudaError_t error = list_nodes(node.needs, needs, count);
    if (error == cudaSuccess && needs) plain_edges(edges, *count);
    return error;
  });
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t handle, cudaGraphNode_t* others,
                                           cudaGraphEdgeData* edges, size_t* count) {
  return with_node(handle, [=](Runtime&, CUgraphNode_st& node) {
    Nodes dependent;
    for (const auto& other : node.graph->nodes) {
      const Nodes& needs = other->needs;
      if (std::find(needs.begin(), needs.end(), &node) != needs.end()) dependent.push_back(other.get());
    }
    const cudaError_t error = list_nodes(dependent, others, count);
    if (error == cudaSuccess && others) plain_edges(edges, *count);
    return error;
  });
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType* type) {
  return with_node(handle, [type](Runtime&, CUgraphNode_st& node) {
    if (!type) return cudaErrorInvalidValue;
    *type = node.type;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t handle, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                     size_t count) {
  return with_graph(handle, [=](Runtime&, CUgraph_st& graph) {
    if (!are_pairs(graph, from, to, count)) return cudaErrorInvalidValue;
    if (!is_plain(edges, count)) return gg::emu::unsupported("an edge of a graph with a type");
    for (size_t i = 0; i < count; ++i) {
      const Nodes& needs = to[i]->needs;
      if (std::find(needs.begin(), needs.end(), from[i]) != needs.end()) return cudaErrorInvalidValue;
    }
    for (size_t i = 0; i < count; ++i) to[i]->needs.push_back(from[i]);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t handle, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*, size_t count) {
  return with_graph(handle, [=](Runtime&, CUgraph_st& graph) {
    if (!are_pairs(graph, from, to, count)) return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; ++i) {
      if (std::erase(to[i]->needs, from[i]) == 0) return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t handle) {
  return with_node(handle, [](Runtime& rt, CUgraphNode_st& node) {
    CUgraph_st& graph = *node.graph;
    if (node.child) rt.streams.destroy(node.child);
    for (const auto& other : graph.nodes) std::erase(other->needs, &node);
    std::erase_if(graph.nodes, [&node](const auto& other) { return other.get() == &node; });
    return cudaSuccess;
  });
}

}  // extern "C"
