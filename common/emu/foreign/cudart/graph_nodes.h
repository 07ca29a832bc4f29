// SPDX-License-Identifier: MIT
//
// The contents of graphs' nodes, and copies of graphs. CUDA Programming Guide, "CUDA Graphs".

#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "common/emu/cudart/copies.h"
#include "common/emu/cudart/hooks.h"
#include "common/emu/cudart/launch_kernel.h"

namespace gg::emu {

struct KernelParams {
  const void* function = nullptr;
  LaunchRequest request;
  std::vector<uint8_t> bytes;    // the arguments as they lie,
  std::vector<void*> arguments;  // and where each of them is in there
};
struct FreeParams {
  void* memory = nullptr;
};
struct NodeParams {
  std::variant<KernelParams, cudaMemcpy3DParms, cudaMemsetParams, cudaHostNodeParams, cudaMemAllocNodeParams,
               FreeParams>
      of;
};

// A node before it is in a graph.
struct NodeContents {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  Work run;
  std::shared_ptr<const NodeParams> params;
};

// The contents of a node, checked as the call would be that does the same in a stream.
cudaError_t make_node(Runtime& rt, const cudaKernelNodeParams& params, NodeContents* node);
cudaError_t make_node(Runtime& rt, const cudaMemcpy3DParms& params, NodeContents* node);
cudaError_t make_node(Runtime& rt, const cudaMemsetParams& params, NodeContents* node);
cudaError_t make_node(Runtime& rt, const cudaHostNodeParams& params, NodeContents* node);
// By its type: kernel, memcpy, memset, host, empty. cudaErrorNotSupported for others.
cudaError_t make_node(Runtime& rt, const cudaGraphNodeParams& params, NodeContents* node);
// The same kernel node with another request.
cudaError_t make_node(Runtime& rt, const KernelParams& params, NodeContents* node);

// Adds a node that needs others. cudaErrorInvalidValue unless these are of the same graph, none
// of them twice.
cudaError_t add_node(CUgraph_st& graph, NodeContents contents, const cudaGraphNode_t* needs, size_t count,
                     cudaGraphNode_t* into);

// A copy of a box as rows: cudaErrorNotSupported for arrays.
cudaError_t copy_of(const cudaMemcpy3DParms& params, Copy* copy);
// A copy of bytes as the box that it is.
cudaMemcpy3DParms bytes_as_box(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);

// A copy of the graph, known to the runtime; of its child graphs too.
CUgraph_st* clone(Runtime& rt, const CUgraph_st& graph);

}  // namespace gg::emu
