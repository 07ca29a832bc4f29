// SPDX-License-Identifier: MIT
//
// Streams and events. CUDA Runtime API, "Stream Management", "Event Management".

#include <algorithm>

#include "common/emu/cudart/runtime.h"

using gg::emu::api;
using gg::emu::Runtime;

namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

// Runs the body with the stream of a handle.
template <class Body>
cudaError_t with_stream(cudaStream_t handle, Body body) {
  return api([&](Runtime& rt) {
    CUstream_st* const stream = rt.streams.stream(handle);
    return stream ? body(rt, *stream) : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t create_stream(cudaStream_t* stream, unsigned flags, int priority) {
  return api([&](Runtime& rt) {
    if (!stream || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = rt.streams.create_stream(flags, std::clamp(priority, kGreatestPriority, kLeastPriority));
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return create_stream(stream, cudaStreamDefault, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create_stream(stream, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create_stream(stream, flags, priority);
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return with_stream(handle, [](Runtime& rt, CUstream_st& stream) {
    if (rt.streams.is_default(&stream)) return cudaErrorInvalidResourceHandle;
    rt.streams.destroy(&stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return with_stream(handle, [](Runtime& rt, CUstream_st& stream) { return rt.streams.may_wait(&stream); });
}
cudaError_t cudaStreamQuery(cudaStream_t handle) { return cudaStreamSynchronize(handle); }
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return with_stream(handle, [flags](Runtime&, CUstream_st& stream) {
    if (!flags) return cudaErrorInvalidValue;
    *flags = stream.flags;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return with_stream(handle, [priority](Runtime&, CUstream_st& stream) {
    if (!priority) return cudaErrorInvalidValue;
    *priority = stream.priority;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return with_stream(handle, [id](Runtime&, CUstream_st& stream) {
    if (!id) return cudaErrorInvalidValue;
    *id = stream.id;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return with_stream(handle, [device](Runtime&, CUstream_st&) {
    if (!device) return cudaErrorInvalidValue;
    *device = 0;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api([&](Runtime&) {
    if (least) *least = kLeastPriority;
    if (greatest) *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}
// The callback runs when the stream comes to it: at once. It gets the handle that the program gave.
cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
  return with_stream(handle, [=](Runtime& rt, CUstream_st& stream) {
    if (!callback || flags) return cudaErrorInvalidValue;
    if (stream.capture) {
      stream.capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    return rt.streams.submit(handle, cudaGraphNodeTypeHost, [=] {
      const gg::emu::Unlocked unlocked;
      callback(handle, cudaSuccess, data);
      return cudaSuccess;
    });
  });
}
// Settings about caches and waiting change nothing; they can be asked for again.
cudaError_t cudaStreamSetAttribute(cudaStream_t handle, cudaStreamAttrID attribute,
                                   const cudaStreamAttrValue* value) {
  return with_stream(handle, [=](Runtime&, CUstream_st& stream) {
    if (!value) return cudaErrorInvalidValue;
    switch (attribute) {
      case cudaLaunchAttributePriority:
        stream.priority = std::clamp(value->priority, kGreatestPriority, kLeastPriority);
        return cudaSuccess;
      case cudaLaunchAttributeAccessPolicyWindow:
      case cudaLaunchAttributeSynchronizationPolicy:
      case cudaLaunchAttributeMemSyncDomain:
      case cudaLaunchAttributeMemSyncDomainMap:
        stream.attributes[int(attribute)] = *value;
        return cudaSuccess;
      default:
        return cudaErrorInvalidValue;
    }
  });
}
cudaError_t cudaStreamGetAttribute(cudaStream_t handle, cudaStreamAttrID attribute,
                                   cudaStreamAttrValue* value) {
  return with_stream(handle, [=](Runtime&, CUstream_st& stream) {
    if (!value) return cudaErrorInvalidValue;
    *value = {};
    switch (attribute) {
      case cudaLaunchAttributePriority:
        value->priority = stream.priority;
        return cudaSuccess;
      case cudaLaunchAttributeSynchronizationPolicy:
        value->syncPolicy = cudaSyncPolicyAuto;
        break;
      case cudaLaunchAttributeAccessPolicyWindow:
      case cudaLaunchAttributeMemSyncDomain:
      case cudaLaunchAttributeMemSyncDomainMap:
        break;
      default:
        return cudaErrorInvalidValue;
    }
    const auto set = stream.attributes.find(int(attribute));
    if (set != stream.attributes.end()) *value = set->second;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return with_stream(to, [from](Runtime& rt, CUstream_st& stream) {
    const CUstream_st* const other = rt.streams.stream(from);
    if (!other) return cudaErrorInvalidResourceHandle;
    stream.attributes = other->attributes;
    stream.priority = other->priority;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags) {
  return with_stream(handle, [event, flags](Runtime& rt, CUstream_st& stream) {
    CUevent_st* const known = rt.streams.event(event);
    return known ? rt.streams.wait(&stream, known, flags & cudaEventWaitExternal)
                 : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return with_stream(handle, [mode](Runtime& rt, CUstream_st& stream) {
    if (unsigned(mode) > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
    return rt.streams.begin_capture(&stream, mode);
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return with_stream(handle, [graph](Runtime& rt, CUstream_st& stream) {
    return graph ? rt.streams.end_capture(&stream, graph) : cudaErrorInvalidValue;
  });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** needs, const cudaGraphEdgeData** edges,
                                     size_t* count) {
  return with_stream(handle, [=](Runtime&, CUstream_st& stream) {
    if (!status) return cudaErrorInvalidValue;
    if (graph || needs || edges || count) return gg::emu::unsupported("the graph of a capture under way");
    *status = !stream.capture           ? cudaStreamCaptureStatusNone
              : stream.capture->invalid ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
    if (id) *id = stream.capture ? stream.capture->id : 0;
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return api([&](Runtime&) {
    if (!mode || unsigned(*mode) > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
    std::swap(*mode, gg::emu::Streams::thread_mode());
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return api([&](Runtime& rt) {
    constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming;
    if (flags & cudaEventInterprocess) return gg::emu::unsupported("an event shared between processes");
    if (!event || flags & ~kKnown) return cudaErrorInvalidValue;
    *event = rt.streams.create_event(flags);
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return api([&](Runtime& rt) {
    CUevent_st* const event = rt.streams.event(handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    rt.streams.destroy(event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags) {
  return with_stream(stream_handle, [handle, flags](Runtime& rt, CUstream_st& stream) {
    CUevent_st* const event = rt.streams.event(handle);
    return event ? rt.streams.record(event, &stream, flags & cudaEventRecordExternal)
                 : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return api([&](Runtime& rt) {
    CUevent_st* const event = rt.streams.event(handle);
    return event ? rt.streams.may_wait(event) : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t handle) { return cudaEventSynchronize(handle); }

// Host time: the emulator's, not a device's.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  return api([&](Runtime& rt) {
    if (!milliseconds) return cudaErrorInvalidValue;
    const CUevent_st *begin = rt.streams.event(from), *end = rt.streams.event(to);
    for (const CUevent_st* event : {begin, end}) {
      if (!event || event->flags & cudaEventDisableTiming) return cudaErrorInvalidResourceHandle;
      if (event->capture) return cudaErrorCapturedEvent;
      if (!event->recorded) return cudaErrorInvalidResourceHandle;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
    return cudaSuccess;
  });
}

}  // extern "C"
