// SPDX-License-Identifier: MIT
// The peer "deepgemm_wgrad": DeepGEMM's bf16 kernel for Hopper, grouped along K, as a weight
// gradient D_g = A_g^T B_g. It is compiled ahead as the peer deepgemm is, for the set "wgrad".
// DeepGEMM offers this kernel only as one that adds to D, and refuses groups that are no multiples
// of 128 rows. So without --accumulate each launch clears D first, and ragged groups get padded
// copies of A and B. gg_peer_prepare tries it with and without dependent launch.

#include "common/harness/bench/peer_library.h"
#include "deepgemm_support.h"

namespace {

using peers::Element, peers::tensor_map;

constexpr int kRowsMultiple = 128;  // of a group's rows: DeepGEMM's host code asserts it

// A kernel of DeepGEMM and the problem for which its heuristic chooses that.
struct Kernel {
  int groups, n, k;
  bool d_is_f32;
  int block_m, block_n;
  peers::Code code;
};

// A block's tile is BM rows and BN columns of D. cluster_m blocks above each other share a tile of
// B, cluster_n beside each other one of A.
template <class ElementD, int kGroups, int N, int K, int BM, int BN, int kClusterM = 1, int kClusterN = 1>
Kernel compiled() {
  static_assert(K % BM == 0, "rows of a tile past a group's D would be added to the next group's");
  constexpr bool kIsF32 = sizeof(ElementD) == 4;
  constexpr int kMathThreads = peers::math_threads(BM);
  // DeepGEMM reserves memory for four tensor maps, which only its other kernels keep there.
  constexpr int kMapBytes = 4 * sizeof(CUtensorMap);
  constexpr peers::Pipeline kPipeline = peers::pipeline(BM, BN, int(sizeof(ElementD)), kMapBytes);
  constexpr int kSwizzleD = kIsF32 ? 0 : 128;
  constexpr auto kAlongRows = cute::UMMA::Major::MN;
  constexpr auto kType = deep_gemm::GemmType::KGroupedContiguous;
  const auto function =
      &deep_gemm::sm90_bf16_gemm_impl<kAlongRows, kAlongRows, K, N, 0, kGroups, BM, BN, peers::kBlockK, 128,
                                      128, kSwizzleD, kPipeline.stages, peers::kTmaThreads, kMathThreads,
                                      kClusterM * kClusterN, (kClusterN > 1), peers::kProcessors, kType, true,
                                      ElementD>;
  const peers::Code code = {reinterpret_cast<const void*>(function), kClusterM * kClusterN,
                            peers::kTmaThreads + kMathThreads, kPipeline.smem_bytes};
  return {kGroups, N, K, kIsF32, BM, BN, code};
}

// The answers of get_best_config<SM90ArchSpec> of DeepGEMM 2.6.1, which for these sizes do not
// depend on the rows. Beyond four groups it has no clusters.
template <class ElementD, int BM, int BN>
void add_beyond_four_groups(std::vector<Kernel>& all) {
#ifndef GG_PEER_TEST
  all.push_back(compiled<ElementD, 8, 4096, 7168, BM, BN>());
  all.push_back(compiled<ElementD, 8, 7168, 2048, BM, BN>());
  all.push_back(compiled<ElementD, 16, 4096, 7168, BM, BN>());
  all.push_back(compiled<ElementD, 32, 4096, 7168, BM, BN>());
  all.push_back(compiled<ElementD, 8, 3072, 4096, BM, BN>());
  all.push_back(compiled<ElementD, 128, 1536, 2048, BM, BN>());
#else
  // Small enough for the emulator, which has to allow `exit`: DeepGEMM's blocks end while TMA still
  // reads their last tile.
  all.push_back(compiled<ElementD, 5, 328, 256, BM, BN>());
  all.push_back(compiled<ElementD, 4, 256, 128, BM, BN>());
#endif
}

std::vector<Kernel> made_ahead() {
  std::vector<Kernel> all;
  add_beyond_four_groups<float, 128, 192>(all);
  add_beyond_four_groups<Element, 128, 256>(all);
#ifndef GG_PEER_TEST
  all.push_back(compiled<float, 4, 4096, 7168, 128, 192, 2, 1>());
  all.push_back(compiled<Element, 4, 4096, 7168, 256, 128, 1, 2>());
#else
  // Three blocks in the cluster's direction: the last one has no partner.
  all.push_back(compiled<float, 3, 328, 384, 128, 192, 2, 1>());
  all.push_back(compiled<Element, 3, 328, 512, 256, 128, 1, 2>());
#endif
  return all;
}

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = made_ahead();
  return all;
}

// A and B stay where all groups are multiples of 128 rows. Otherwise gg_peer_stage copies both,
// untimed, whenever they have changed, to where rows of zeros follow each group's: models that use
// DeepGEMM write their rows padded in the first place. Clearing D is timed: a user who does not
// accumulate does that before each product. A group without rows has no tiles, and its D is not
// touched after that.
class Gradient final : public peers::Way {
 public:
  Gradient(const GgPeerProblem& p, const GgPeerGradient& gradient, const Kernel& kernel,
           bool dependent_launch)
      : kernel_(kernel),
        dependent_launch_(dependent_launch),
        accumulates_(gradient.accumulate),
        a_(static_cast<const Element*>(p.a)),
        b_(static_cast<const Element*>(p.b)),
        d_(p.d),
        rows_(p.host_offsets, p.host_offsets + p.groups + 1),
        padded_rows_{0} {
    std::vector<int> rows_of_groups;
    for (int g = 0; g < p.groups; ++g) {
      rows_of_groups.push_back(peers::align(int(rows_[g + 1] - rows_[g]), kRowsMultiple));
      padded_rows_.push_back(padded_rows_.back() + rows_of_groups.back());
    }
    rows_of_groups_ = peers::on_device(rows_of_groups);
    const int64_t all_rows = padded_rows_.back();
    all_rows_ = uint32_t(all_rows);
    if (padded_rows_ != rows_) {
      padded_a_ = peers::zeroed_rows(all_rows, p.k);
      padded_b_ = peers::zeroed_rows(all_rows, p.n);
      stage(nullptr);
      peers::check(cudaDeviceSynchronize(), "the copies of A and B");
    }
    map_a_ = tensor_map(padded_a_ ? padded_a_.get() : a_, all_rows, p.k, peers::kBlockK, 128);
    map_b_ = tensor_map(padded_b_ ? padded_b_.get() : b_, all_rows, p.n, peers::kBlockK, 128);
    const int64_t d_rows = int64_t(p.groups) * p.k;
    d_bytes_ = size_t(d_rows) * size_t(p.n) * (kernel.d_is_f32 ? sizeof(float) : sizeof(Element));
    map_d_ = kernel.d_is_f32 ? tensor_map({CU_TENSOR_MAP_DATA_TYPE_FLOAT32, sizeof(float), d_, d_rows, p.n},
                                          kernel.block_m, kernel.block_n, 0)
                             : tensor_map(d_, d_rows, p.n, kernel.block_m, 128);
    peers::allow_smem(kernel.code);
  }

  static std::string name_of(const Kernel& kernel, bool dependent_launch) {
    char name[128];
    std::snprintf(name, sizeof name, "%dx%d cluster of %d%s", kernel.block_m, kernel.block_n,
                  kernel.code.cluster, dependent_launch ? " dependent launch" : "");
    return name;
  }

  void launch(cudaStream_t stream) override {
    if (!accumulates_) peers::check(cudaMemsetAsync(d_, 0, d_bytes_, stream), "cudaMemsetAsync");
    int* layout = rows_of_groups_.get();
    uint32_t m = uint32_t(kernel_.k), n = uint32_t(kernel_.n);  // of D: DeepGEMM's K are the rows
    void* arguments[] = {&layout, &m, &n, &all_rows_, &map_a_, &map_b_, &map_d_};
    peers::launch(kernel_.code, arguments, dependent_launch_, stream, name);
  }

  void stage(cudaStream_t stream) {
    if (!padded_a_) return;
    peers::copy_rows(padded_a_.get(), padded_rows_, a_, rows_, kernel_.k, stream);
    peers::copy_rows(padded_b_.get(), padded_rows_, b_, rows_, kernel_.n, stream);
  }

 private:
  const Kernel kernel_;
  const bool dependent_launch_, accumulates_;
  const Element *const a_, *const b_;
  void* const d_;
  size_t d_bytes_ = 0;
  const std::vector<int64_t> rows_;    // first row of each group
  std::vector<int64_t> padded_rows_;   // the same where groups are multiples of 128
  uint32_t all_rows_ = 0;              // with padding
  peers::Device<int> rows_of_groups_;  // with padding
  peers::Device<Element> padded_a_, padded_b_;
  CUtensorMap map_a_, map_b_, map_d_;
};

std::vector<peers::Offer> all_offers(const GgPeerProblem& p, const GgPeerGradient& gradient) {
  std::vector<peers::Offer> offers;
  for (const Kernel& kernel : kernels()) {
    const bool fits = kernel.groups == p.groups && kernel.n == p.n && kernel.k == p.k &&
                      kernel.d_is_f32 == (std::string(gradient.d_format) == "f32");
    for (const bool dependent_launch : {false, true}) {
      const std::string name = Gradient::name_of(kernel, dependent_launch);
      if (!fits || !peers::wanted(name)) continue;
      offers.push_back({name, [&p, &gradient, &kernel, dependent_launch] {
                          return std::make_unique<Gradient>(p, gradient, kernel, dependent_launch);
                        }});
    }
  }
  return offers;
}

peers::Choices choices;  // of this library

}  // namespace

extern "C" {

const char* gg_peer_version() { return "DeepGEMM " DEEPGEMM_VERSION; }

const char* gg_peer_prepare_gradient(const GgPeerProblem* problem, const GgPeerGradient* gradient,
                                     void** state) {
  return peers::sentence_of([&] {
    const GgPeerProblem& p = *problem;
    peers::check_device_and_format(p);
    if (gradient->accumulate && std::string(gradient->d_format) != "f32") {
      throw std::runtime_error("D of bf16 with --accumulate: it adds sums that are rounded to bf16 before");
    }
    if (p.host_offsets[p.groups] == 0) throw std::runtime_error("nothing to compute");
    const std::vector<peers::Offer> offers = all_offers(p, *gradient);
    if (offers.empty()) {
      throw std::runtime_error("G=" + std::to_string(p.groups) + ", N=" + std::to_string(p.n) +
                               ", K=" + std::to_string(p.k) + ": compiled for the set 'wgrad' only");
    }
    std::vector<int64_t> key = {p.n, p.k, gradient->accumulate, gradient->d_format[0]};
    key.insert(key.end(), p.host_offsets, p.host_offsets + p.groups + 1);
    *state = static_cast<Gradient*>(choices.choose(key, offers, p.sustained).release());
  });
}

const char* gg_peer_stage(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<Gradient*>(state)->stage(stream); });
}

const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<Gradient*>(state)->launch(stream); });
}

void gg_peer_release(void* state) { delete static_cast<Gradient*>(state); }
}
