// SPDX-License-Identifier: MIT
//
// Graphs that are made by hand, changed and copied: the same tests run with NVIDIA's runtime on a
// GPU and with the emulator's.

#include "tests/emu/runtime.cuh"

namespace graphs {

using namespace runtime_test;

__global__ void add(int* values, int amount) { values[threadIdx.x] += amount; }
__global__ void twice(int* values) { values[threadIdx.x] *= 2; }

void count_up(void* count) { ++*static_cast<int*>(count); }

class Graphs : public Runtime {
 protected:
  void SetUp() override {
    Runtime::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cudaGraphCreate(&graph_, 0), cudaSuccess);
  }
  void TearDown() override {
    if (exec_) cudaGraphExecDestroy(exec_);
    if (graph_) cudaGraphDestroy(graph_);
    Runtime::TearDown();
  }
  cudaKernelNodeParams add_params(int* amount) {
    arguments_[0] = &values_;
    arguments_[1] = amount;
    return {reinterpret_cast<void*>(&add), 1, 64, 0, arguments_, nullptr};
  }
  cudaKernelNodeParams twice_params() {
    arguments_[0] = &values_;
    return {reinterpret_cast<void*>(&twice), 1, 64, 0, arguments_, nullptr};
  }
  cudaGraphNode_t kernel(const cudaKernelNodeParams& params, std::vector<cudaGraphNode_t> needs = {}) {
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaGraphAddKernelNode(&node, graph_, needs.data(), needs.size(), &params), cudaSuccess);
    return node;
  }
  void run(int times = 1) {
    if (!exec_) {
      ASSERT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
    }
    for (int i = 0; i < times; ++i) ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }

  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  void* arguments_[2] = {};
};

TEST_F(Graphs, RunNodesOfEveryKind) {
  int amount = 3, calls = 0;
  int from[64], to[64] = {};
  for (int i = 0; i < 64; ++i) from[i] = i;
  cudaGraphNode_t copied, zeroed, added, back, called, joined;
  cudaMemsetParams zeros = {};
  zeros.dst = values_ + 32;
  zeros.elementSize = 4;
  zeros.value = 7;
  zeros.width = 32;
  zeros.height = 1;
  ASSERT_EQ(cudaGraphAddMemcpyNode1D(&copied, graph_, nullptr, 0, values_, from, 128, cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaGraphAddMemsetNode(&zeroed, graph_, nullptr, 0, &zeros), cudaSuccess);
  const cudaGraphNode_t both[] = {copied, zeroed};
  ASSERT_EQ(cudaGraphAddEmptyNode(&joined, graph_, both, 2), cudaSuccess);
  added = kernel(add_params(&amount), {joined});
  amount = 1000;  // the node has the value of then
  cudaMemcpy3DParms box = {};
  box.srcPtr = make_cudaPitchedPtr(values_, 256, 64, 1);
  box.dstPtr = make_cudaPitchedPtr(to, 256, 64, 1);
  box.extent = make_cudaExtent(256, 1, 1);
  box.kind = cudaMemcpyDeviceToHost;
  ASSERT_EQ(cudaGraphAddMemcpyNode(&back, graph_, &added, 1, &box), cudaSuccess);
  const cudaHostNodeParams host = {count_up, &calls};
  ASSERT_EQ(cudaGraphAddHostNode(&called, graph_, &back, 1, &host), cudaSuccess);
  run(2);
  EXPECT_EQ(to[5], 8);
  EXPECT_EQ(to[40], 10);
  EXPECT_EQ(calls, 2);
  size_t nodes = 0, roots = 0, edges = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph_, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(cudaGraphGetRootNodes(graph_, nullptr, &roots), cudaSuccess);
  EXPECT_EQ(cudaGraphGetEdges(graph_, nullptr, nullptr, nullptr, &edges), cudaSuccess);
  EXPECT_EQ(nodes, 6u);
  EXPECT_EQ(roots, 2u);
  EXPECT_EQ(edges, 5u);
  cudaGraphNodeType type;
  EXPECT_EQ(cudaGraphNodeGetType(called, &type), cudaSuccess);
  EXPECT_EQ(type, cudaGraphNodeTypeHost);
}

TEST_F(Graphs, RunInTheOrderOfTheirEdges) {
  int amount = 5;
  cudaGraphNode_t doubled = kernel(twice_params());  // made first, and it comes last
  cudaGraphNode_t added = kernel(add_params(&amount));
  ASSERT_EQ(cudaGraphAddDependencies(graph_, &added, &doubled, nullptr, 1), cudaSuccess);
  run();
  EXPECT_EQ(read(1)[0], 10);
  cudaGraphNode_t found = nullptr;
  size_t count = 1;
  EXPECT_EQ(cudaGraphNodeGetDependencies(doubled, &found, nullptr, &count), cudaSuccess);
  EXPECT_EQ(found, added);
  EXPECT_EQ(cudaGraphNodeGetDependentNodes(added, &found, nullptr, &count), cudaSuccess);
  EXPECT_EQ(found, doubled);
  ASSERT_EQ(cudaGraphRemoveDependencies(graph_, &added, &doubled, nullptr, 1), cudaSuccess);
  ASSERT_EQ(cudaGraphAddDependencies(graph_, &doubled, &added, nullptr, 1), cudaSuccess);
  ASSERT_EQ(cudaGraphExecDestroy(exec_), cudaSuccess);
  exec_ = nullptr;
  run();
  EXPECT_EQ(read(1)[0], 25);
  EXPECT_EQ(cudaGraphDestroyNode(doubled), cudaSuccess);
  EXPECT_EQ(cudaGraphNodeGetDependencies(added, nullptr, nullptr, &count), cudaSuccess);
  EXPECT_EQ(count, 0u);
}

TEST_F(Graphs, TakeNewParameters) {
  int amount = 1;
  cudaGraphNode_t added = kernel(add_params(&amount));
  run();
  amount = 20;
  cudaKernelNodeParams params = add_params(&amount);
  ASSERT_EQ(cudaGraphExecKernelNodeSetParams(exec_, added, &params), cudaSuccess);
  run();
  EXPECT_EQ(read(1)[0], 21);
  cudaKernelNodeParams found = {};
  ASSERT_EQ(cudaGraphKernelNodeGetParams(added, &found), cudaSuccess);
  EXPECT_EQ(found.blockDim.x, 64u);
  EXPECT_EQ(*static_cast<int*>(found.kernelParams[1]), 1);  // the graph has its own
  amount = 300;
  ASSERT_EQ(cudaGraphKernelNodeSetParams(added, &params), cudaSuccess);
  cudaGraphExecUpdateResultInfo result;
  ASSERT_EQ(cudaGraphExecUpdate(exec_, graph_, &result), cudaSuccess);
  EXPECT_EQ(result.result, cudaGraphExecUpdateSuccess);
  run();
  EXPECT_EQ(read(1)[0], 321);
  ASSERT_EQ(cudaGraphNodeSetEnabled(exec_, added, 0), cudaSuccess);
  run();
  EXPECT_EQ(read(1)[0], 321);
  kernel(twice_params(), {added});
  EXPECT_EQ(cudaGraphExecUpdate(exec_, graph_, &result), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(result.result, cudaGraphExecUpdateErrorTopologyChanged);
}

TEST_F(Graphs, TakeParametersByTheirType) {
  int amount = 5;
  cudaGraphNode_t first = nullptr, second = nullptr;
  cudaGraphNodeParams fill = {};
  fill.type = cudaGraphNodeTypeMemset;
  fill.memset.dst = values_;
  fill.memset.elementSize = 4;
  fill.memset.value = 10;
  fill.memset.width = 64;
  fill.memset.height = 1;
  ASSERT_EQ(cudaGraphAddNode(&first, graph_, nullptr, nullptr, 0, &fill), cudaSuccess);
  const cudaKernelNodeParams wanted = add_params(&amount);
  cudaGraphNodeParams kernel = {};
  kernel.type = cudaGraphNodeTypeKernel;
  kernel.kernel.func = wanted.func;
  kernel.kernel.gridDim = wanted.gridDim;
  kernel.kernel.blockDim = wanted.blockDim;
  kernel.kernel.kernelParams = wanted.kernelParams;
  ASSERT_EQ(cudaGraphAddNode(&second, graph_, &first, nullptr, 1, &kernel), cudaSuccess);
  run();
  EXPECT_EQ(read(1)[0], 15);
  fill.memset.value = 20;
  ASSERT_EQ(cudaGraphExecNodeSetParams(exec_, first, &fill), cudaSuccess);
  run();
  EXPECT_EQ(read(1)[0], 25);
}

TEST_F(Graphs, HoldCopiesOfOthers) {
  int amount = 4;
  cudaGraph_t copy = nullptr, outer = nullptr, inside = nullptr;
  cudaGraphNode_t added = kernel(add_params(&amount)), child = nullptr, found = nullptr, doubled = nullptr;
  ASSERT_EQ(cudaGraphClone(&copy, graph_), cudaSuccess);
  ASSERT_EQ(cudaGraphNodeFindInClone(&found, added, copy), cudaSuccess);
  EXPECT_NE(found, added);
  ASSERT_EQ(cudaGraphCreate(&outer, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, copy), cudaSuccess);
  ASSERT_EQ(cudaGraphChildGraphNodeGetGraph(child, &inside), cudaSuccess);
  EXPECT_NE(inside, copy);
  const cudaKernelNodeParams params = twice_params();
  ASSERT_EQ(cudaGraphAddKernelNode(&doubled, outer, &child, 1, &params), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(copy), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
  graph_ = outer;
  run(2);
  EXPECT_EQ(read(1)[0], ((0 + 4) * 2 + 4) * 2);
}

TEST_F(Graphs, AllocateMemoryOfTheirOwn) {
  int amount = 6;
  cudaGraphNode_t allocated = nullptr, zeroed = nullptr, copied = nullptr, freed = nullptr;
  cudaMemAllocNodeParams memory = {};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.bytesize = 256;
  ASSERT_EQ(cudaGraphAddMemAllocNode(&allocated, graph_, nullptr, 0, &memory), cudaSuccess);
  ASSERT_NE(memory.dptr, nullptr);
  cudaMemsetParams zeros = {};
  zeros.dst = memory.dptr;
  zeros.elementSize = 4;
  zeros.value = 1;
  zeros.width = 64;
  zeros.height = 1;
  ASSERT_EQ(cudaGraphAddMemsetNode(&zeroed, graph_, &allocated, 1, &zeros), cudaSuccess);
  cudaKernelNodeParams params = add_params(&amount);
  arguments_[0] = &memory.dptr;
  cudaGraphNode_t added = kernel(params, {zeroed});
  ASSERT_EQ(cudaGraphAddMemcpyNode1D(&copied, graph_, &added, 1, values_, memory.dptr, 256,
                                     cudaMemcpyDeviceToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaGraphAddMemFreeNode(&freed, graph_, &copied, 1, memory.dptr), cudaSuccess);
  run(2);
  EXPECT_EQ(read(1)[0], 7);
}

TEST_F(Graphs, TellOfKernelsThatWereCaptured) {
  cudaGraph_t captured = nullptr;
  cudaGraphNode_t node = nullptr;
  size_t count = 1;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  add<<<1, 64, 0, stream_>>>(values_, 9);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &captured), cudaSuccess);
  cudaGraphDestroy(graph_);
  graph_ = captured;
  ASSERT_EQ(cudaGraphGetNodes(graph_, &node, &count), cudaSuccess);
  cudaKernelNodeParams params = {};
  ASSERT_EQ(cudaGraphKernelNodeGetParams(node, &params), cudaSuccess);
  EXPECT_EQ(*static_cast<int*>(params.kernelParams[1]), 9);
  run();
  int amount = 2;
  void* arguments[] = {params.kernelParams[0], &amount};
  params.kernelParams = arguments;
  ASSERT_EQ(cudaGraphExecKernelNodeSetParams(exec_, node, &params), cudaSuccess);
  run();
  EXPECT_EQ(read(1)[0], 11);
}

TEST_F(Graphs, RefuseMisuse) {
  int amount = 4;
  cudaGraphNode_t node = nullptr, first = kernel(add_params(&amount)),
                  second = kernel(twice_params(), {first});
  cudaKernelNodeParams params = add_params(&amount);
  EXPECT_EQ(cudaGraphCreate(nullptr, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphAddKernelNode(&node, nullptr, nullptr, 0, &params), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphAddKernelNode(&node, graph_, nullptr, 1, &params), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, nullptr), cudaErrorInvalidValue);
  params.blockDim = 2000;
  EXPECT_NE(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &params), cudaSuccess);
  EXPECT_EQ(cudaGraphAddDependencies(graph_, &first, &second, nullptr, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGraphAddDependencies(graph_, &second, &first, nullptr, 1), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaErrorInvalidValue);  // it goes round
  exec_ = nullptr;
  EXPECT_EQ(cudaGraphRemoveDependencies(graph_, &second, &first, nullptr, 1), cudaSuccess);
  run();
  EXPECT_EQ(read(1)[0], 8);
}

}  // namespace graphs
