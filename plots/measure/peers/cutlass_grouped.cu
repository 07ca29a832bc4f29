// SPDX-License-Identifier: MIT
// The peer "cutlass_grouped": CUTLASS's grouped GEMM for Hopper (pointer arrays, one problem shape
// a group), at the tiles, clusters and schedules that fit the problems of the course.
// gg_peer_prepare times them on the problem, in both raster orders, with and without programmatic
// dependent launch, and keeps the fastest. Two of them compute D^T = B A^T: groups of few rows then
// fill the narrow side of the tile. Needs headers only; build.py has the command.

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

#include "common/harness/bench/peer_library.h"
#include "support.h"

#if defined(__CUDA_ARCH__) && !defined(CUTLASS_GDC_ENABLED)
#error "this CUTLASS leaves griddepcontrol out here, so dependent launches would overlap"
#endif

namespace {

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

// The type of CUTLASS's GEMM. Both operands have K contiguous in either order of them.
template <class Schedule, class Tile, class Cluster, bool kSwapped>
struct GemmOf {
  using LayoutD = std::conditional_t<kSwapped, cutlass::layout::ColumnMajor, cutlass::layout::RowMajor>;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, LayoutD*, kAlignment, Element,
      LayoutD*, kAlignment, typename Schedule::Epilogue,
      cutlass::epilogue::fusion::LinearCombination<Element, float, void>>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, cutlass::layout::RowMajor*, kAlignment,
      Element, cutlass::layout::ColumnMajor*, kAlignment, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
      typename Schedule::Kernel>::CollectiveOp;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
      cutlass::gemm::kernel::GemmUniversal<GroupShapes, Mainloop, Epilogue>>;
};

void check(cutlass::Status status, const std::string& what) {
  if (status != cutlass::Status::kSuccess) {
    throw std::runtime_error(what + ": " + cutlass::cutlassGetStatusString(status));
  }
}

template <class Gemm, bool kSwapped>
class Grouped final : public peers::Way {
 public:
  Grouped(const GgPeerProblem& p, bool along_n, int swizzle, bool dependent_launch)
      : dependent_launch_(dependent_launch) {
    std::vector<const Element*> a, b;
    std::vector<Element*> d;
    for (int g = 0; g < p.groups; ++g) {
      const int64_t row = p.host_offsets[g];
      const int rows = int(p.host_offsets[g + 1] - row);
      if (rows == 0) continue;  // no tile, so it is not a group to CUTLASS
      a.push_back(static_cast<const Element*>(p.a) + row * p.k);
      b.push_back(static_cast<const Element*>(p.b) + int64_t(g) * p.n * p.k);
      d.push_back(static_cast<Element*>(p.d) + row * p.n);
      host_shapes_.push_back(kSwapped ? GroupShape(p.n, rows, p.k) : GroupShape(rows, p.n, p.k));
    }
    if constexpr (kSwapped) std::swap(a, b);
    shapes_ = peers::on_device(host_shapes_);
    a_ = peers::on_device(a);
    b_ = peers::on_device(b);
    d_ = peers::on_device(d);
    a_strides_ = strides<StrideA>(p.k);
    b_strides_ = strides<StrideB>(p.k);
    d_strides_ = strides<StrideD>(p.n);

    int device = 0, processors = 0;
    peers::check(cudaGetDevice(&device), "cudaGetDevice");
    peers::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                 "cudaDeviceGetAttribute");
    typename Gemm::Arguments arguments{};
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
    // With sizes on the host CUTLASS launches no more blocks than there are tiles, but counts them
    // without the rounding of its swizzle, and 4.7.0 then leaves the last tiles out.
    const GroupShape* host_shapes = swizzle == 1 ? host_shapes_.data() : nullptr;
    arguments.problem_shape = {int(host_shapes_.size()), shapes_.get(), host_shapes};
    arguments.mainloop = {a_.get(), a_strides_.get(), b_.get(), b_strides_.get()};
    arguments.epilogue.ptr_D = d_.get();
    arguments.epilogue.dD = d_strides_.get();
    arguments.epilogue.thread.alpha = 1;
    arguments.epilogue.thread.beta = 0;
    arguments.hw_info = {device, processors};
    arguments.scheduler.max_swizzle_size = swizzle;
    arguments.scheduler.raster_order = along_n ? RasterOrder::AlongN : RasterOrder::AlongM;
    check(Gemm::can_implement(arguments), "can_implement");
    workspace_ = peers::device_array<uint8_t>(Gemm::get_workspace_size(arguments));
    check(gemm_.initialize(arguments, workspace_.get()), "initialize");
    peers::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  // Launches of one way write the same D, and tensor maps to the same places in the workspace. Each
  // thread of CUTLASS's kernels for groups waits for the end of the launch before, behind its
  // barriers' initialisation and before its first access to global memory, so that is as safe as
  // without dependent launch.
  void launch(cudaStream_t stream) override { check(gemm_.run(stream, nullptr, dependent_launch_), name); }

 private:
  using StrideA = typename Gemm::GemmKernel::InternalStrideA;
  using StrideB = typename Gemm::GemmKernel::InternalStrideB;
  using StrideD = typename Gemm::GemmKernel::InternalStrideD;
  using RasterOrder = decltype(typename Gemm::GemmKernel::TileSchedulerArguments{}.raster_order);

  // The matrices of all groups have the same distance between rows; the compiler knows
  // the other strides.
  template <class Stride>
  peers::Device<Stride> strides(int64_t row) const {
    Stride stride{};
    if constexpr (std::is_same_v<cute::remove_cvref_t<decltype(cute::get<0>(stride))>, int64_t>) {
      cute::get<0>(stride) = row;
    } else {
      cute::get<1>(stride) = row;
    }
    return peers::on_device(std::vector<Stride>(host_shapes_.size(), stride));
  }

  const bool dependent_launch_;
  std::vector<GroupShape> host_shapes_;  // run() reads them again
  peers::Device<GroupShape> shapes_;
  peers::Device<const Element*> a_, b_;
  peers::Device<Element*> d_;
  peers::Device<StrideA> a_strides_;
  peers::Device<StrideB> b_strides_;
  peers::Device<StrideD> d_strides_;
  peers::Device<uint8_t> workspace_;
  Gemm gemm_;
};

using Offers = std::vector<peers::Offer>;

// Adds one tile and cluster, in both raster orders, with each swizzle of the order of tiles, and
// with and without dependent launch.
template <class Schedule, int M, int N, int K, int kClusterM, int kClusterN, bool kSwapped = false>
void add(Offers& offers, const GgPeerProblem& p) {
  using Tile = cute::Shape<cute::Int<M>, cute::Int<N>, cute::Int<K>>;
  using Cluster = cute::Shape<cute::Int<kClusterM>, cute::Int<kClusterN>, cute::_1>;
  using Gemm = typename GemmOf<Schedule, Tile, Cluster, kSwapped>::Gemm;
  for (int i = 0; i < 16; ++i) {
    const bool along_n = i & 1, dependent_launch = i & 2;
    const int swizzle = 1 << (i >> 2);
    char name[128];
    std::snprintf(name, sizeof name, "%s%s %dx%dx%d cluster %dx%d along %s swizzle %d%s", Schedule::kName,
                  kSwapped ? " swapped" : "", M, N, K, kClusterM, kClusterN, along_n ? "N" : "M", swizzle,
                  dependent_launch ? " dependent launch" : "");
    if (!peers::wanted(name)) continue;
    offers.push_back({name, [&p, along_n, swizzle, dependent_launch] {
                        return std::make_unique<Grouped<Gemm, kSwapped>>(p, along_n, swizzle,
                                                                         dependent_launch);
                      }});
  }
}

Offers all_offers(const GgPeerProblem& p) {
  Offers offers;
  add<Cooperative, 128, 256, 64, 2, 1>(offers, p);
  add<Cooperative, 128, 256, 64, 1, 2>(offers, p);
  add<Cooperative, 256, 128, 64, 2, 1>(offers, p);
  add<Cooperative, 256, 128, 64, 1, 2>(offers, p);
  add<Pingpong, 128, 128, 64, 1, 1>(offers, p);
  add<Pingpong, 128, 128, 64, 2, 1>(offers, p);
  add<Pingpong, 64, 256, 64, 2, 1>(offers, p);
  add<Pingpong, 64, 128, 64, 1, 1>(offers, p);
  add<Pingpong, 64, 128, 64, 2, 1>(offers, p);
  add<Pingpong, 128, 64, 64, 1, 1>(offers, p);
  add<Pingpong, 64, 64, 64, 1, 1>(offers, p);
  add<Pingpong, 64, 64, 128, 1, 1>(offers, p);
  add<Pingpong, 64, 32, 64, 1, 1, true>(offers, p);
  add<Pingpong, 128, 32, 64, 1, 1, true>(offers, p);
  return offers;
}

void check_limits(const GgPeerProblem& p) {
  if (std::string(p.format) != "bf16")
    throw std::runtime_error(std::string(p.format) + ": compiled for bf16 only");
  if (p.b_is_kn) throw std::runtime_error("B [K,N]: compiled for B [N,K] only");
  if (p.n % kAlignment || p.k % kAlignment) {
    throw std::runtime_error("N=" + std::to_string(p.n) + " K=" + std::to_string(p.k) +
                             ": TMA wants rows that are multiples of 16 bytes");
  }
  if (p.k == 0 || p.n == 0 || p.host_offsets[p.groups] == 0) throw std::runtime_error("nothing to compute");
}

peers::Choices choices;  // of this library

}  // namespace

extern "C" {

const char* gg_peer_version() {
  static const std::string version = "CUTLASS " + std::to_string(CUTLASS_MAJOR) + "." +
                                     std::to_string(CUTLASS_MINOR) + "." + std::to_string(CUTLASS_PATCH);
  return version.c_str();
}

const char* gg_peer_prepare(const GgPeerProblem* problem, void** state) {
  return peers::sentence_of([&] {
    const GgPeerProblem& p = *problem;
    check_limits(p);
    std::vector<int64_t> key = {p.n, p.k};
    key.insert(key.end(), p.host_offsets, p.host_offsets + p.groups + 1);
    *state = choices.choose(key, all_offers(p), p.sustained).release();
  });
}

const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<peers::Way*>(state)->launch(stream); });
}

void gg_peer_release(void* state) { delete static_cast<peers::Way*>(state); }
}
