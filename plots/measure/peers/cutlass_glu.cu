// SPDX-License-Identifier: MIT
// The peer "cutlass_glu": CUTLASS's grouped GEMM for Hopper with a gated activation, its example
// 113, for gg-fused. The kernel computes D^T = W A^T, where W is B with 8 ups and their 8 gates in
// turn, and multiplies their sums in registers. W is a permuted copy, made by gg_peer_stage. The
// example's activation has a factor for all rows alone; here each row has its own, prob.
// gg_peer_prepare times all tiles, clusters and schedules, and keeps the fastest.

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
#include <cutlass/gemm/dispatch_policy.hpp>
#include <cutlass/gemm/group_array_problem_shape.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <gated_builder.hpp>         // of the example, as the two below
#include <gated_stride.hpp>          // shapes ((8, up or gate, M / 16), N, K)
#include <tile_scheduler_group.hpp>  // tiles of such shapes
#include <type_traits>

#include "common/harness/bench/peer_library.h"
#include "common/kernel/epilogue_glu.cuh"
#include "support.h"

#if defined(__CUDA_ARCH__) && !defined(CUTLASS_GDC_ENABLED)
#error "this CUTLASS leaves griddepcontrol out here, so dependent launches would overlap"
#endif

namespace glu {

using Element = cutlass::bfloat16_t;
constexpr int kAlignment = 8;  // elements: the 16 bytes of TMA
// D^T has contiguous columns: rows of D. Sums have twice as many rows.
using StrideOfD = cute::remove_pointer_t<cutlass::gemm::TagToStrideC_t<cutlass::layout::ColumnMajor*>>;
using SumsStride = cutlass::detail::GatedStride<0, StrideOfD>;
using OutputStride = cutlass::detail::GatedOutputStride<0, StrideOfD>;

template <class T>
struct Silu;
template <int kCount>
struct Silu<cutlass::Array<float, kCount>> {
  CUTLASS_HOST_DEVICE cutlass::Array<float, kCount> operator()(
      const cutlass::Array<float, kCount>& gates) const {
    cutlass::Array<float, kCount> out;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < kCount; ++i) out[i] = gates[i] * gg::epilogue::sigma(gates[i]);
    return out;
  }
};

// A node of the epilogue: what each sum is multiplied by before the activation, alpha of a gate and
// alpha * prob of an up. A thread of wgmma has two sums of a row and two of the row 8 below, in
// turn: two ups and two gates.
template <class CtaTile>
struct Factors {
  static constexpr int kTokens = decltype(cute::size<1>(CtaTile{}))::value;
  struct SharedStorage {
    cutlass::array_aligned<float, kTokens> of_ups;
  };
  struct Arguments {
    const float* const* alpha = nullptr;  // of each group
    const float* const* prob = nullptr;
  };
  using Params = Arguments;

  template <class ProblemShape>
  static constexpr Params to_underlying_arguments(const ProblemShape&, const Arguments& arguments, void*) {
    return arguments;
  }
  template <class ProblemShape>
  static bool can_implement(const ProblemShape&, const Arguments&) {
    return true;
  }
  template <class ProblemShape>
  static size_t get_workspace_size(const ProblemShape&, const Arguments&) {
    return 0;
  }
  template <class ProblemShape>
  static cutlass::Status initialize_workspace(const ProblemShape&, const Arguments&, void*, cudaStream_t,
                                              cutlass::CudaHostAdapter* = nullptr) {
    return cutlass::Status::kSuccess;
  }

  CUTLASS_HOST_DEVICE Factors() {}
  CUTLASS_HOST_DEVICE Factors(const Params& params, const SharedStorage& shared)
      : params(params), of_ups(const_cast<float*>(shared.of_ups.data())) {}
  CUTLASS_DEVICE bool is_producer_load_needed() const { return false; }
  CUTLASS_DEVICE bool is_C_load_needed() const { return false; }
  template <class... Args>
  CUTLASS_DEVICE auto get_producer_load_callbacks(
      const cutlass::epilogue::fusion::detail::ProducerLoadArgs<Args...>&) {
    return cutlass::epilogue::fusion::detail::EmptyProducerLoadCallbacks{};
  }

  // Coordinates are those of the thread's sums, token by token from its first one.
  template <class Coordinates>
  struct Callbacks : cutlass::epilogue::fusion::detail::EmptyConsumerStoreCallbacks {
    CUTLASS_DEVICE Callbacks(Coordinates coordinates, const float* prob, float alpha, int tokens, int thread,
                             int threads, int first, float* of_ups)
        : coordinates(coordinates),
          prob(prob),
          alpha(alpha),
          tokens(tokens),
          thread(thread),
          threads(threads),
          first(first),
          of_ups(of_ups) {}

    CUTLASS_DEVICE void begin() {
      for (int i = thread; i < kTokens; i += threads) of_ups[i] = i < tokens ? alpha * prob[i] : 0;
    }
    CUTLASS_DEVICE bool begin_sync_needed() const { return true; }

    template <class Sum, int kCount>
    CUTLASS_DEVICE cutlass::Array<float, kCount> visit(const cutlass::Array<Sum, kCount>&, int epi_v,
                                                       int epi_m, int epi_n) {
      const auto mine = coordinates(cute::_, cute::_, cute::_, epi_m, epi_n);
      cutlass::Array<float, kCount> factors;
      CUTLASS_PRAGMA_UNROLL
      for (int i = 0; i < kCount; ++i)
        factors[i] = i % 4 < 2 ? of_ups[first + cute::get<1>(mine(epi_v * kCount + i))] : alpha;
      return factors;
    }

    Coordinates coordinates;
    const float* prob;
    const float alpha;
    const int tokens, thread, threads, first;
    float* of_ups;
  };

  template <bool kOfSource, class... Args>
  CUTLASS_DEVICE auto get_consumer_store_callbacks(
      const cutlass::epilogue::fusion::detail::ConsumerStoreArgs<Args...>& args) {
    const int group = cute::get<3>(args.tile_coord_mnkl);
    const int tokens = cute::get<1>(args.residue_cD);
    return Callbacks<decltype(args.tCcD)>(
        args.tCcD, params.prob[group] + cute::get<1>(args.tile_coord_mnkl) * kTokens, *params.alpha[group],
        tokens, args.thread_idx, int(cute::size(args.tiled_copy)),
        tokens - int(cute::get<1>(args.residue_tCcD)), of_ups);
  }

  Params params;
  float* of_ups = nullptr;
};

struct Operation : cutlass::epilogue::fusion::FusionOperation {
  using ElementOutput = Element;
  using ElementCompute = float;
  // D is its "auxiliary" output, as it has half as many rows as the sums.
  using ElementAux = Element;
  using GmemLayoutTagAux = OutputStride*;
  static constexpr int AlignmentAux = kAlignment;
  static constexpr bool IsAuxOutSupported = true;
};

template <int kStages, int kWarpGroups, class CtaTile, class EpilogueTile, class SmemLayoutAtom,
          class CopyOpR2S>
using Nodes = cutlass::epilogue::fusion::Sm90EVT<
    cutlass::epilogue::fusion::Sm90GatedActivation<true, false, Silu, kStages, kWarpGroups, EpilogueTile,
                                                   OutputStride*, SmemLayoutAtom, CopyOpR2S, Element, float>,
    cutlass::epilogue::fusion::Sm90EVT<
        cutlass::epilogue::fusion::Sm90Compute<cutlass::multiplies, float, float,
                                               cutlass::FloatRoundStyle::round_to_nearest>,
        Factors<CtaTile>, cutlass::epilogue::fusion::Sm90AccFetch>>;

}  // namespace glu

// The nodes of the epilogue: sums times their factors, then the example's activation and store.
namespace cutlass::epilogue::fusion {

template <int StagesC, int StagesD, int FragmentSize, bool ReuseSmemC, bool DelayTmaStore, int WarpGroups,
          class CtaTile, class EpilogueTile, class SmemLayoutAtom, class CopyOpR2S>
struct FusionCallbacks<
    Sm90PtrArrayTmaWarpSpecialized<StagesC, StagesD, FragmentSize, ReuseSmemC, DelayTmaStore, WarpGroups>,
    glu::Operation, CtaTile, EpilogueTile, SmemLayoutAtom, CopyOpR2S>
    : glu::Nodes<StagesD, WarpGroups, CtaTile, EpilogueTile, SmemLayoutAtom, CopyOpR2S> {
  using Impl = glu::Nodes<StagesD, WarpGroups, CtaTile, EpilogueTile, SmemLayoutAtom, CopyOpR2S>;
  using Operation = glu::Operation;

  struct Arguments {
    const float* const* alpha = nullptr;  // of each group, as all below
    const float* const* prob = nullptr;
    glu::Element** d = nullptr;
    glu::OutputStride* d_stride = nullptr;
    int multiprocessors = 0;

    operator typename Impl::Arguments() const {
      return {
          {{alpha, prob}, {}, {}},  // a product of factors and sums
          // Silu of a sum, and the store of an input.
          {{{}, {}}, {{}, {d, d_stride, multiprocessors}}},
      };
    }
  };
  using Impl::Impl;
};

}  // namespace cutlass::epilogue::fusion

namespace {

using glu::Element;
using glu::kAlignment;
using Shape = decltype(cutlass::sm90_make_gated_shape<0>(cute::Shape<int, int, int>{}));
using GroupShapes = cutlass::gemm::GroupProblemShape<Shape>;
constexpr int kPair = 2 * gg::epilogue::GLU_COLUMNS;

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

// The type of CUTLASS's GEMM. M of a tile are columns of B, N are tokens.
template <class Schedule, class Tile, class Cluster>
struct GemmOf {
  using EpilogueTile = decltype(cutlass::epilogue::collective::detail::sm90_compute_tile_shape_or_override<
                                Element, cutlass::epilogue::collective::EpilogueTileAuto,
                                typename Schedule::Epilogue, Tile>());
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp,
      decltype(cutlass::sm90_make_gated_shape<0>(Tile{})), Cluster,
      decltype(cutlass::sm90_make_gated_shape<0>(EpilogueTile{})), float, float, void, glu::SumsStride*,
      kAlignment, void, glu::SumsStride*, kAlignment, typename Schedule::Epilogue,
      glu::Operation>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::Sm90CollectiveBuilderGated<
      cutlass::arch::OpClassTensorOp, Element, cutlass::layout::RowMajor*, kAlignment, Element,
      cutlass::layout::ColumnMajor*, kAlignment, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
      typename Schedule::Kernel>::CollectiveOp;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<cutlass::gemm::kernel::GemmUniversal<
      GroupShapes, Mainloop, Epilogue, GroupSchedulerTileShapeDependent>>;
};

void check(cutlass::Status status, const std::string& what) {
  if (status != cutlass::Status::kSuccess) {
    throw std::runtime_error(what + ": " + cutlass::cutlassGetStatusString(status));
  }
}

// A problem's operands, and W.
struct Operands {
  GgPeerProblem p;
  GgPeerGlu factors;
  peers::Device<Element> w;

  void stage(cudaStream_t stream) const { peers::deal_gates(p, w.get(), true, stream); }
};

template <class Gemm>
class Grouped final : public peers::Way {
 public:
  Grouped(const Operands& operands, bool along_n, int swizzle, bool dependent_launch)
      : dependent_launch_(dependent_launch) {
    const GgPeerProblem& p = operands.p;
    std::vector<const Element*> a, w;
    std::vector<Element*> d;
    std::vector<const float*> alpha, prob;
    for (int g = 0; g < p.groups; ++g) {
      const int64_t row = p.host_offsets[g];
      const int rows = int(p.host_offsets[g + 1] - row);
      if (rows == 0) continue;  // no tile, so it is not a group to CUTLASS
      a.push_back(static_cast<const Element*>(p.a) + row * p.k);
      w.push_back(operands.w.get() + int64_t(g) * p.n * p.k);
      d.push_back(static_cast<Element*>(p.d) + row * (p.n / 2));
      alpha.push_back(operands.factors.alpha + g);
      prob.push_back(operands.factors.prob + row);
      host_shapes_.push_back(cutlass::sm90_make_gated_shape<0>(cute::make_shape(p.n, rows, p.k)));
    }
    const size_t groups = host_shapes_.size();
    const int64_t k = p.k;
    StrideW w_stride{};
    // Row of 8, up or gate, eight rows.
    cute::get<0>(w_stride) = cute::make_stride(k, 8 * k, 16 * k);
    StrideA a_stride{};
    cute::get<0>(a_stride) = k;
    glu::OutputStride d_stride{};
    cute::get<1>(d_stride) = p.n / 2;
    shapes_ = peers::on_device(host_shapes_);
    w_ = peers::on_device(w);
    a_ = peers::on_device(a);
    d_ = peers::on_device(d);
    alpha_ = peers::on_device(alpha);
    prob_ = peers::on_device(prob);
    w_strides_ = peers::on_device(std::vector<StrideW>(groups, w_stride));
    a_strides_ = peers::on_device(std::vector<StrideA>(groups, a_stride));
    d_strides_ = peers::on_device(std::vector<glu::OutputStride>(groups, d_stride));

    int device = 0, processors = 0;
    peers::check(cudaGetDevice(&device), "cudaGetDevice");
    peers::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                 "cudaDeviceGetAttribute");
    typename Gemm::Arguments arguments{};
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
    // With sizes on the host CUTLASS launches no more blocks than there are tiles, but counts them
    // without the rounding of its swizzle, and 4.7.0 then leaves the last tiles out.
    const Shape* host_shapes = swizzle == 1 ? host_shapes_.data() : nullptr;
    arguments.problem_shape = {int(groups), shapes_.get(), host_shapes};
    arguments.mainloop = {w_.get(), w_strides_.get(), a_.get(), a_strides_.get()};
    arguments.epilogue.thread = {alpha_.get(), prob_.get(), d_.get(), d_strides_.get(), processors};
    arguments.hw_info = {device, processors};
    arguments.scheduler.max_swizzle_size = swizzle;
    arguments.scheduler.raster_order = along_n ? RasterOrder::AlongN : RasterOrder::AlongM;
    check(Gemm::can_implement(arguments), "can_implement");
    workspace_ = peers::device_array<uint8_t>(Gemm::get_workspace_size(arguments));
    check(gemm_.initialize(arguments, workspace_.get()), "initialize");
    peers::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  // Safe with dependent launch for the reason that cutlass_grouped.cu gives.
  void launch(cudaStream_t stream) override { check(gemm_.run(stream, nullptr, dependent_launch_), name); }

 private:
  using StrideW = typename Gemm::GemmKernel::InternalStrideA;
  using StrideA = typename Gemm::GemmKernel::InternalStrideB;
  using RasterOrder = decltype(typename Gemm::GemmKernel::TileSchedulerArguments{}.raster_order);

  const bool dependent_launch_;
  std::vector<Shape> host_shapes_;  // run() reads them again
  peers::Device<Shape> shapes_;
  peers::Device<const Element*> w_, a_;
  peers::Device<Element*> d_;
  peers::Device<const float*> alpha_, prob_;
  peers::Device<StrideW> w_strides_;
  peers::Device<StrideA> a_strides_;
  peers::Device<glu::OutputStride> d_strides_;
  peers::Device<uint8_t> workspace_;
  Gemm gemm_;
};

using Offers = std::vector<peers::Offer>;

// Adds one tile and cluster, in both raster orders, with each swizzle of the order of tiles, and
// with and without dependent launch.
template <class Schedule, int M, int N, int K, int kClusterM, int kClusterN>
void add(Offers& offers, const Operands& operands) {
  using Tile = cute::Shape<cute::Int<M>, cute::Int<N>, cute::Int<K>>;
  using Cluster = cute::Shape<cute::Int<kClusterM>, cute::Int<kClusterN>, cute::_1>;
  using Gemm = typename GemmOf<Schedule, Tile, Cluster>::Gemm;
  for (int i = 0; i < 16; ++i) {
    const bool along_n = i & 1, dependent_launch = i & 2;
    const int swizzle = 1 << (i >> 2);
    char name[128];
    std::snprintf(name, sizeof name, "%s %dx%dx%d cluster %dx%d along %s swizzle %d%s", Schedule::kName, M, N,
                  K, kClusterM, kClusterN, along_n ? "N" : "M", swizzle,
                  dependent_launch ? " dependent launch" : "");
    if (!peers::wanted(name)) continue;
    offers.push_back({name, [&operands, along_n, swizzle, dependent_launch] {
                        return std::make_unique<Grouped<Gemm>>(operands, along_n, swizzle, dependent_launch);
                      }});
  }
}

Offers all_offers(const Operands& operands) {
  Offers offers;
  add<Cooperative, 128, 256, 64, 2, 1>(offers, operands);
  add<Cooperative, 128, 256, 64, 1, 2>(offers, operands);
  add<Cooperative, 256, 128, 64, 2, 1>(offers, operands);
  add<Cooperative, 256, 128, 64, 1, 2>(offers, operands);
  add<Pingpong, 128, 128, 64, 1, 1>(offers, operands);
  add<Pingpong, 128, 128, 64, 2, 1>(offers, operands);
  add<Pingpong, 128, 64, 64, 1, 1>(offers, operands);
  add<Pingpong, 128, 32, 64, 1, 1>(offers, operands);
  add<Pingpong, 64, 32, 64, 1, 1>(offers, operands);
  return offers;
}

void check_limits(const GgPeerProblem& p) {
  if (std::string(p.format) != "bf16")
    throw std::runtime_error(std::string(p.format) + ": compiled for bf16 only");
  if (p.b_is_kn) throw std::runtime_error("B [K,N]: compiled for B [N,K] only");
  if (p.n % kPair || p.k % kAlignment) {
    throw std::runtime_error("N=" + std::to_string(p.n) + " K=" + std::to_string(p.k) +
                             ": wants pairs of 32 gates and 32 ups, and rows of whole 16 bytes");
  }
  if (p.k == 0 || p.n == 0 || p.host_offsets[p.groups] == 0) throw std::runtime_error("nothing to compute");
}

peers::Choices choices;  // of this library

struct State {
  Operands operands;
  std::unique_ptr<peers::Way> way;
};

}  // namespace

extern "C" {

const char* gg_peer_version() {
  static const std::string version = "CUTLASS " + std::to_string(CUTLASS_MAJOR) + "." +
                                     std::to_string(CUTLASS_MINOR) + "." + std::to_string(CUTLASS_PATCH);
  return version.c_str();
}

const char* gg_peer_prepare_glu(const GgPeerProblem* problem, const GgPeerGlu* factors, void** state) {
  return peers::sentence_of([&] {
    const GgPeerProblem& p = *problem;
    check_limits(p);
    auto made = std::make_unique<State>();
    made->operands = {p, *factors, peers::device_array<Element>(size_t(p.groups) * p.n * p.k)};
    made->operands.stage(nullptr);  // ways are timed on the numbers that they will have
    peers::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<int64_t> key = {p.n, p.k};
    key.insert(key.end(), p.host_offsets, p.host_offsets + p.groups + 1);
    made->way = choices.choose(key, all_offers(made->operands), p.sustained);
    made->operands.p.host_offsets = nullptr;  // they end with this call
    *state = made.release();
  });
}

const char* gg_peer_stage(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<State*>(state)->operands.stage(stream); });
}

const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<State*>(state)->way->launch(stream); });
}

void gg_peer_release(void* state) { delete static_cast<State*>(state); }
}
