// SPDX-License-Identifier: MIT
// The peer "cutlass_grouped": CUTLASS's grouped GEMM for Hopper (pointer arrays, one problem shape
// a group), at the tiles, clusters and schedules that fit the problems of the course.
// gg_peer_prepare times them on the problem, in both raster orders, with and without programmatic
// dependent launch, and keeps the fastest. Two of them compute D^T = B A^T: groups of few rows then
// fill the narrow side of the tile. Needs headers only; build.py has the command.

#include "common/harness/bench/peer_library.h"
#include "cutlass_support.h"

namespace {

using peers::Cooperative, peers::Element, peers::GroupShape, peers::GroupShapes, peers::kAlignment,
    peers::Pingpong;

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

template <class Gemm, bool kSwapped>
class Grouped final : public peers::Way {
 public:
  Grouped(const GgPeerProblem& p, const peers::Order& order) : dependent_launch_(order.dependent_launch) {
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
    a_strides_ = peers::strides<StrideA>(a.size(), p.k);
    b_strides_ = peers::strides<StrideB>(a.size(), p.k);
    d_strides_ = peers::strides<StrideD>(a.size(), p.n);
    typename Gemm::Arguments arguments{};
    peers::set_order(arguments, order, shapes_.get(), host_shapes_);
    arguments.mainloop = {a_.get(), a_strides_.get(), b_.get(), b_strides_.get()};
    arguments.epilogue.ptr_D = d_.get();
    arguments.epilogue.dD = d_strides_.get();
    workspace_ = peers::initialized(gemm_, arguments);
  }

  // Launches of one way write the same D, and tensor maps to the same places in the workspace. Each
  // thread of CUTLASS's kernels for groups waits for the end of the launch before, behind its
  // barriers' initialisation and before its first access to global memory, so that is as safe as
  // without dependent launch.
  void launch(cudaStream_t stream) override {
    peers::check(gemm_.run(stream, nullptr, dependent_launch_), name);
  }

 private:
  using StrideA = typename Gemm::GemmKernel::InternalStrideA;
  using StrideB = typename Gemm::GemmKernel::InternalStrideB;
  using StrideD = typename Gemm::GemmKernel::InternalStrideD;

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

template <class Schedule, int M, int N, int K, int kClusterM, int kClusterN, bool kSwapped = false>
void add(Offers& offers, const GgPeerProblem& p) {
  using Tile = cute::Shape<cute::Int<M>, cute::Int<N>, cute::Int<K>>;
  using Cluster = cute::Shape<cute::Int<kClusterM>, cute::Int<kClusterN>, cute::_1>;
  using Gemm = typename GemmOf<Schedule, Tile, Cluster, kSwapped>::Gemm;
  const std::string schedule = std::string(Schedule::kName) + (kSwapped ? " swapped" : "");
  peers::offer(
      offers, peers::tile_text(schedule.c_str(), M, N, K, kClusterM, kClusterN),
      [&p](const peers::Order& order) { return std::make_unique<Grouped<Gemm, kSwapped>>(p, order); });
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

const char* gg_peer_version() { return peers::cutlass_version(); }

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
