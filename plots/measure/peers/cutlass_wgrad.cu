// SPDX-License-Identifier: MIT
// The peer "cutlass_wgrad": CUTLASS's grouped GEMM for Hopper as a weight gradient D_g = A_g^T B_g,
// whose sum runs over the rows of a group. To CUTLASS a group is a problem of K x N x rows; both
// operands lie along the rows in memory, which are columns of A^T. A group without rows is none to
// it: its D is cleared. gg_peer_prepare times the ways as cutlass_grouped does.

#include "common/harness/bench/peer_library.h"
#include "cutlass_support.h"

namespace {

using peers::Cooperative, peers::Element, peers::GroupShape, peers::GroupShapes, peers::Pingpong;

// The type of CUTLASS's GEMM, whose D of `ElementD` may be added to what is there.
template <class Schedule, class Tile, class Cluster, class ElementD, bool kAccumulate>
struct GemmOf {
  using RowMajor = cutlass::layout::RowMajor;
  using ElementC = std::conditional_t<kAccumulate, ElementD, void>;
  static constexpr int kAlignmentD = 16 / sizeof(ElementD);
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, ElementC, RowMajor*, kAlignmentD,
      ElementD, RowMajor*, kAlignmentD, typename Schedule::Epilogue,
      cutlass::epilogue::fusion::LinearCombination<ElementD, float, ElementC>>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, cutlass::layout::ColumnMajor*,
      peers::kAlignment, Element, RowMajor*, peers::kAlignment, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
      typename Schedule::Kernel>::CollectiveOp;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
      cutlass::gemm::kernel::GemmUniversal<GroupShapes, Mainloop, Epilogue>>;
};

template <class Gemm, class ElementD, bool kAccumulate>
class Gradient final : public peers::Way {
 public:
  Gradient(const GgPeerProblem& p, const peers::Order& order) : dependent_launch_(order.dependent_launch) {
    const int64_t d_size = int64_t(p.k) * p.n;
    std::vector<const Element*> a, b;
    std::vector<ElementD*> d;
    for (int g = 0; g < p.groups; ++g) {
      const int64_t row = p.host_offsets[g];
      const int rows = int(p.host_offsets[g + 1] - row);
      ElementD* const of_group = static_cast<ElementD*>(p.d) + g * d_size;
      if (rows == 0) {
        if (!kAccumulate) to_clear_.push_back(of_group);
        continue;
      }
      a.push_back(static_cast<const Element*>(p.a) + row * p.k);
      b.push_back(static_cast<const Element*>(p.b) + row * p.n);
      d.push_back(of_group);
      host_shapes_.push_back(GroupShape(p.k, p.n, rows));
    }
    d_bytes_ = size_t(d_size) * sizeof(ElementD);
    shapes_ = peers::on_device(host_shapes_);
    a_ = peers::on_device(a);
    b_ = peers::on_device(b);
    d_ = peers::on_device(d);
    a_strides_ = peers::strides<StrideA>(a.size(), p.k);
    b_strides_ = peers::strides<StrideB>(a.size(), p.n);
    d_strides_ = peers::strides<StrideD>(a.size(), p.n);
    typename Gemm::Arguments arguments{};
    peers::set_order(arguments, order, shapes_.get(), host_shapes_);
    arguments.mainloop = {a_.get(), a_strides_.get(), b_.get(), b_strides_.get()};
    if constexpr (kAccumulate) {
      arguments.epilogue.thread.beta = 1;
      arguments.epilogue.ptr_C = const_cast<const ElementD**>(d_.get());
      arguments.epilogue.dC = d_strides_.get();
    }
    arguments.epilogue.ptr_D = d_.get();
    arguments.epilogue.dD = d_strides_.get();
    workspace_ = peers::initialized(gemm_, arguments);
  }

  void launch(cudaStream_t stream) override {
    for (ElementD* const of_group : to_clear_)
      peers::check(cudaMemsetAsync(of_group, 0, d_bytes_, stream), "cudaMemsetAsync");
    peers::check(gemm_.run(stream, nullptr, dependent_launch_), name);
  }

 private:
  using StrideA = typename Gemm::GemmKernel::InternalStrideA;
  using StrideB = typename Gemm::GemmKernel::InternalStrideB;
  using StrideD = typename Gemm::GemmKernel::InternalStrideD;

  const bool dependent_launch_;
  std::vector<ElementD*> to_clear_;      // D of the groups without rows
  size_t d_bytes_ = 0;                   // of a group
  std::vector<GroupShape> host_shapes_;  // run() reads them again
  peers::Device<GroupShape> shapes_;
  peers::Device<const Element*> a_, b_;
  peers::Device<ElementD*> d_;
  peers::Device<StrideA> a_strides_;
  peers::Device<StrideB> b_strides_;
  peers::Device<StrideD> d_strides_;
  peers::Device<uint8_t> workspace_;
  Gemm gemm_;
};

using Offers = std::vector<peers::Offer>;

template <class ElementD, bool kAccumulate, class Schedule, int M, int N, int kClusterM, int kClusterN>
void add(Offers& offers, const GgPeerProblem& p) {
  using Tile = cute::Shape<cute::Int<M>, cute::Int<N>, cute::Int<64>>;
  using Cluster = cute::Shape<cute::Int<kClusterM>, cute::Int<kClusterN>, cute::_1>;
  using Gemm = typename GemmOf<Schedule, Tile, Cluster, ElementD, kAccumulate>::Gemm;
  peers::offer(offers, peers::tile_text(Schedule::kName, M, N, 64, kClusterM, kClusterN),
               [&p](const peers::Order& order) {
                 return std::make_unique<Gradient<Gemm, ElementD, kAccumulate>>(p, order);
               });
}

template <class ElementD, bool kAccumulate>
Offers all_offers(const GgPeerProblem& p) {
  Offers offers;
  add<ElementD, kAccumulate, Cooperative, 128, 256, 2, 1>(offers, p);
  add<ElementD, kAccumulate, Cooperative, 256, 128, 1, 2>(offers, p);
  add<ElementD, kAccumulate, Pingpong, 128, 128, 1, 1>(offers, p);
  add<ElementD, kAccumulate, Pingpong, 128, 128, 2, 1>(offers, p);
  add<ElementD, kAccumulate, Pingpong, 64, 256, 2, 1>(offers, p);
  return offers;
}

Offers offers_of(const GgPeerProblem& p, const GgPeerGradient& gradient) {
  if (std::string(gradient.d_format) == "f32")
    return gradient.accumulate ? all_offers<float, true>(p) : all_offers<float, false>(p);
  if (gradient.accumulate) throw std::runtime_error("D of bf16 is compiled without --accumulate");
  return all_offers<Element, false>(p);
}

peers::Choices choices;  // of this library

}  // namespace

extern "C" {

const char* gg_peer_version() { return peers::cutlass_version(); }

const char* gg_peer_prepare_gradient(const GgPeerProblem* problem, const GgPeerGradient* gradient,
                                     void** state) {
  return peers::sentence_of([&] {
    const GgPeerProblem& p = *problem;
    if (std::string(p.format) != "bf16")
      throw std::runtime_error(std::string(p.format) + ": compiled for bf16 only");
    if (p.n % peers::kAlignment || p.k % peers::kAlignment) {
      throw std::runtime_error("N=" + std::to_string(p.n) + " K=" + std::to_string(p.k) +
                               ": TMA wants rows that are multiples of 16 bytes");
    }
    if (p.host_offsets[p.groups] == 0) throw std::runtime_error("nothing to compute");
    std::vector<int64_t> key = {p.n, p.k, gradient->accumulate, gradient->d_format[0]};
    key.insert(key.end(), p.host_offsets, p.host_offsets + p.groups + 1);
    *state = choices.choose(key, offers_of(p, *gradient), p.sustained).release();
  });
}

const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<peers::Way*>(state)->launch(stream); });
}

void gg_peer_release(void* state) { delete static_cast<peers::Way*>(state); }
}
