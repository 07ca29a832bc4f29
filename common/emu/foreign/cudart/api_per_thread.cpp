// SPDX-License-Identifier: MIT
//
// The functions that nvcc --default-stream per-thread calls instead: the same ones, the null stream
// meaning the thread's own.

#include <cuda_runtime_api.h>

namespace {

cudaStream_t own(cudaStream_t stream) { return stream ? stream : cudaStreamPerThread; }

}  // namespace

extern "C" {

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, own(stream));
}
cudaError_t cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments,
                                  size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(function, grid, block, arguments, shared, own(stream));
}
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function,
                                     void** arguments) {
  if (!config) return cudaLaunchKernelExC(config, function, arguments);
  cudaLaunchConfig_t copy = *config;
  copy.stream = own(copy.stream);
  return cudaLaunchKernelExC(&copy, function, arguments);
}
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments,
                                             size_t shared, cudaStream_t stream) {
  return cudaLaunchCooperativeKernel(function, grid, block, arguments, shared, own(stream));
}
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return cudaLaunchHostFunc(own(stream), function, data);
}

cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                       unsigned flags) {
  return cudaStreamAddCallback(own(stream), callback, data, flags);
}

cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* params) {
  return cudaMemcpy3DAsync(params, cudaStreamPerThread);
}
cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* params, cudaStream_t stream) {
  return cudaMemcpy3DAsync(params, own(stream));
}
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr to, int value, cudaExtent extent) {
  return cudaMemset3DAsync(to, value, extent, cudaStreamPerThread);
}
cudaError_t cudaMemset3DAsync_ptsz(cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream) {
  return cudaMemset3DAsync(to, value, extent, own(stream));
}
cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, cudaStreamPerThread);
}
cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, kind, own(stream));
}
cudaError_t cudaMemcpy2D_ptds(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, cudaStreamPerThread);
}
cudaError_t cudaMemcpy2DAsync_ptsz(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                   size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, own(stream));
}
cudaError_t cudaMemset_ptds(void* to, int value, size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, cudaStreamPerThread);
}
cudaError_t cudaMemsetAsync_ptsz(void* to, int value, size_t bytes, cudaStream_t stream) {
  return cudaMemsetAsync(to, value, bytes, own(stream));
}
cudaError_t cudaMemset2D_ptds(void* to, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(to, pitch, value, width, height, cudaStreamPerThread);
}
cudaError_t cudaMemset2DAsync_ptsz(void* to, size_t pitch, int value, size_t width, size_t height,
                                   cudaStream_t stream) {
  return cudaMemset2DAsync(to, pitch, value, width, height, own(stream));
}
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, cudaStreamPerThread);
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, cudaStreamPerThread);
}
cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* from, size_t bytes, size_t offset,
                                         cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, own(stream));
}
cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* symbol, size_t bytes, size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, own(stream));
}
cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(pointer, bytes, own(stream));
}
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  return cudaFreeAsync(pointer, own(stream));
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, pool, own(stream));
}
cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t bytes, cudaMemLocation location,
                                      unsigned flags, cudaStream_t stream) {
  return cudaMemPrefetchAsync(pointer, bytes, location, flags, own(stream));
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) { return cudaStreamSynchronize(own(stream)); }
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) { return cudaStreamQuery(own(stream)); }
cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* flags) {
  return cudaStreamGetFlags(own(stream), flags);
}
cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
  return cudaStreamGetPriority(own(stream), priority);
}
cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id) {
  return cudaStreamGetId(own(stream), id);
}
cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
  return cudaStreamGetDevice(own(stream), device);
}
cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID attribute,
                                        const cudaStreamAttrValue* value) {
  return cudaStreamSetAttribute(own(stream), attribute, value);
}
cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID attribute,
                                        cudaStreamAttrValue* value) {
  return cudaStreamGetAttribute(own(stream), attribute, value);
}
cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from) {
  return cudaStreamCopyAttributes(own(to), own(from));
}
cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return cudaStreamWaitEvent(own(stream), event, flags);
}
cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return cudaStreamBeginCapture(own(stream), mode);
}
cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return cudaStreamEndCapture(own(stream), graph);
}
cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamIsCapturing(own(stream), status);
}
cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                          unsigned long long* id, cudaGraph_t* graph,
                                          const cudaGraphNode_t** needs, const cudaGraphEdgeData** edges,
                                          size_t* count) {
  return cudaStreamGetCaptureInfo(own(stream), status, id, graph, needs, edges, count);
}
cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecord(event, own(stream));
}
cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return cudaEventRecordWithFlags(event, own(stream), flags);
}
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return cudaGraphLaunch(exec, own(stream));
}
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return cudaGraphUpload(exec, own(stream));
}
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* params) {
  return cudaGraphInstantiateWithParams(exec, graph, params);
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* name, void** function, unsigned version,
                                                  unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(name, function, version, flags, status);
}

}  // extern "C"
