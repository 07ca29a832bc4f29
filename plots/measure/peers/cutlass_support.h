// SPDX-License-Identifier: MIT
// For the peers of CUTLASS's grouped GEMM for Hopper: its headers, the two schedules, strides, and
// the ways of a tile. Include it before CUTLASS: it says how that is to be compiled.
#pragma once

// CUTLASS's kernels use griddepcontrol: launch_with_pdl is a race without it.
#define CUTLASS_ENABLE_GDC_FOR_SM90
#ifndef NDEBUG
// CUTLASS's assertions are calls, and around calls ptxas serializes wgmma (its note C7510).
#define NDEBUG
#endif
#include <cuda_runtime.h>
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/version.h>

#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/dispatch_policy.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/dispatch_policy.hpp>
#include <cutlass/gemm/group_array_problem_shape.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <type_traits>

#include "support.h"

#if defined(__CUDA_ARCH__) && !defined(CUTLASS_GDC_ENABLED)
#error "this CUTLASS leaves griddepcontrol out here, so dependent launches would overlap"
#endif

namespace peers {

using Element = cutlass::bfloat16_t;
using GroupShape = cute::Shape<int, int, int>;
using GroupShapes = cutlass::gemm::GroupProblemShape<GroupShape>;
constexpr int kAlignment = 8;  // elements: the 16 bytes of TMA

struct Cooperative {
  static constexpr const char* kName = "cooperative";
  using Kernel = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative;
};
struct Pingpong {
  static constexpr const char* kName = "pingpong";
  using Kernel = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::PtrArrayTmaWarpSpecializedPingpong;
};

inline void check(cutlass::Status status, const std::string& what) {
  if (status != cutlass::Status::kSuccess) {
    throw std::runtime_error(what + ": " + cutlass::cutlassGetStatusString(status));
  }
}

// For each group the same distance between rows; the compiler knows the other strides.
template <class Stride>
Device<Stride> strides(size_t groups, int64_t row) {
  Stride stride{};
  if constexpr (std::is_same_v<cute::remove_cvref_t<decltype(cute::get<0>(stride))>, int64_t>) {
    cute::get<0>(stride) = row;
  } else {
    cute::get<1>(stride) = row;
  }
  return on_device(std::vector<Stride>(groups, stride));
}

// All that a way is launched with but its operands.
struct Order {
  bool along_n = false, dependent_launch = false;
  int swizzle = 1;
};

// Fills in what is no operand. `host_shapes` must live as long as the arguments.
template <class Arguments>
void set_order(Arguments& arguments, const Order& order, const GroupShape* shapes,
               const std::vector<GroupShape>& host_shapes) {
  int device = 0, processors = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
  // With sizes on the host CUTLASS launches no more blocks than there are tiles, but counts them
  // without the rounding of its swizzle, and 4.7.0 then leaves the last tiles out.
  arguments.problem_shape = {int(host_shapes.size()), const_cast<GroupShape*>(shapes),
                             order.swizzle == 1 ? host_shapes.data() : nullptr};
  arguments.epilogue.thread.alpha = 1;
  arguments.epilogue.thread.beta = 0;
  arguments.hw_info = {device, processors};
  arguments.scheduler.max_swizzle_size = order.swizzle;
  using RasterOrder = decltype(arguments.scheduler.raster_order);
  arguments.scheduler.raster_order = order.along_n ? RasterOrder::AlongN : RasterOrder::AlongM;
}

// The workspace of a GEMM with these arguments, which then is ready to run.
template <class Gemm>
Device<uint8_t> initialized(Gemm& gemm, const typename Gemm::Arguments& arguments) {
  check(Gemm::can_implement(arguments), "can_implement");
  Device<uint8_t> workspace = device_array<uint8_t>(Gemm::get_workspace_size(arguments));
  check(gemm.initialize(arguments, workspace.get()), "initialize");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return workspace;
}

// Offers one tile and cluster in both raster orders, with each swizzle of the order of tiles, and
// with and without dependent launch. `make` makes a way of an Order.
template <class Make>
void offer(std::vector<Offer>& offers, const std::string& tile, const Make& make) {
  for (int i = 0; i < 16; ++i) {
    const Order order = {bool(i & 1), bool(i & 2), 1 << (i >> 2)};
    const std::string name = tile + " along " + (order.along_n ? "N" : "M") + " swizzle " +
                             std::to_string(order.swizzle) +
                             (order.dependent_launch ? " dependent launch" : "");
    if (wanted(name)) offers.push_back({name, [order, make] { return make(order); }});
  }
}

// A tile and its cluster in the name of a way.
inline std::string tile_text(const char* schedule, int m, int n, int k, int cluster_m, int cluster_n) {
  char text[96];
  std::snprintf(text, sizeof text, "%s %dx%dx%d cluster %dx%d", schedule, m, n, k, cluster_m, cluster_n);
  return text;
}

inline const char* cutlass_version() {
  static const std::string version = "CUTLASS " + std::to_string(CUTLASS_MAJOR) + "." +
                                     std::to_string(CUTLASS_MINOR) + "." + std::to_string(CUTLASS_PATCH);
  return version.c_str();
}

}  // namespace peers
