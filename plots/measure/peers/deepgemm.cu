// SPDX-License-Identifier: MIT
// The peer "deepgemm": DeepGEMM's bf16 kernel for Hopper, grouped along M, compiled ahead for the
// problems of the sets "peers", "moe" and "ragged" instead of at their first use: N and K constant,
// block sizes, cluster and stages as its heuristic chooses them on 132 multiprocessors, and its
// option of ptxas. gg_peer_prepare times its layouts, with and without its option of programmatic
// dependent launch, and keeps the fastest. Needs headers only; build.py has the command.
#include "common/harness/bench/peer_library.h"
#include "deepgemm_support.h"

namespace {

using peers::align, peers::copy_rows, peers::Element, peers::tensor_map;

// A kernel of DeepGEMM and the problem for which its heuristic chooses that.
struct Kernel {
  int groups, rows, n, k;  // rows: of all groups, without padding
  bool masked;
  int block_m, block_n, swizzle_d_bytes;
  peers::Code code;
};

// cluster_m blocks above each other share a tile of B, cluster_n beside each other one of A.
template <int kGroups, int kRows, int N, int K, bool kMasked, int BM, int BN, int kClusterM = 1,
          int kClusterN = 1>
Kernel compiled() {
  constexpr int kMathThreads = peers::math_threads(BM);
  constexpr peers::Pipeline kPipeline = peers::pipeline(BM, BN, int(sizeof(Element)), 0);
  constexpr int kSwizzleD = BN % 64 == 0 ? 128 : BN % 32 == 0 ? 64 : 32;
  constexpr auto kType =
      kMasked ? deep_gemm::GemmType::MGroupedMasked : deep_gemm::GemmType::MGroupedContiguous;
  constexpr auto kRowMajor = cute::UMMA::Major::K;
  const auto function =
      &deep_gemm::sm90_bf16_gemm_impl<kRowMajor, kRowMajor, 0, N, K, kGroups, BM, BN, peers::kBlockK, 128,
                                      128, kSwizzleD, kPipeline.stages, peers::kTmaThreads, kMathThreads,
                                      kClusterM * kClusterN, (kClusterN > 1), peers::kProcessors, kType,
                                      false, Element>;
  const peers::Code code = {reinterpret_cast<const void*>(function), kClusterM * kClusterN,
                            peers::kTmaThreads + kMathThreads, kPipeline.smem_bytes};
  return {kGroups, kRows, N, K, kMasked, BM, BN, kSwizzleD, code};
}

// The answers of get_best_config<SM90ArchSpec> of DeepGEMM 2.6.1: "contiguous" by all rows with
// their padding, at an alignment of 128 and of 64, and "masked" by the mean rows of a group, which
// its users say they expect.
#ifdef GG_PEER_TEST  // small enough for the emulator; not its heuristic's choice
std::vector<Kernel> made_ahead() {
  return {
      compiled<2, 640, 256, 256, false, 128, 128, 2, 1>(), compiled<2, 640, 256, 256, false, 64, 128, 1, 2>(),
      compiled<2, 512, 256, 256, true, 128, 256>(),        compiled<2, 512, 256, 256, true, 64, 128, 2, 1>(),
      compiled<3, 181, 256, 256, false, 128, 16>(),        compiled<3, 181, 256, 256, false, 64, 32>(),
      compiled<3, 181, 256, 256, false, 128, 208>(),       compiled<3, 181, 256, 256, false, 64, 176, 2, 1>(),
      compiled<3, 181, 256, 256, true, 64, 128, 2, 1>(),   compiled<3, 60, 256, 256, true, 64, 128, 2, 1>(),
  };
}
#else
std::vector<Kernel> made_for_peers_and_moe() {
  return {
      // peers, equal groups
      compiled<8, 8 * 512, 64, 512, false, 128, 16>(),
      compiled<8, 8 * 512, 64, 512, false, 64, 32>(),
      compiled<8, 8 * 512, 64, 512, true, 64, 32>(),
      compiled<8, 8 * 2048, 64, 2048, false, 128, 64>(),
      compiled<8, 8 * 2048, 64, 2048, false, 64, 64, 1, 2>(),
      compiled<8, 8 * 2048, 64, 2048, true, 128, 64>(),
      compiled<4, 4 * 512, 512, 512, false, 128, 64>(),
      compiled<4, 4 * 512, 512, 512, false, 64, 128>(),
      compiled<4, 4 * 512, 512, 512, true, 64, 128>(),
      compiled<4, 4 * 1024, 1024, 1024, false, 128, 256>(),
      compiled<4, 4 * 1024, 1024, 1024, false, 64, 256, 2, 1>(),
      compiled<4, 4 * 1024, 1024, 1024, true, 128, 256>(),
      compiled<8, 8 * 4096, 6144, 7168, false, 128, 256, 2, 1>(),
      compiled<8, 8 * 4096, 6144, 7168, true, 128, 256, 2, 1>(),
      compiled<8, 8 * 4096, 7168, 3072, false, 128, 256, 2, 1>(),
      compiled<8, 8 * 4096, 7168, 3072, true, 128, 256, 2, 1>(),
      compiled<8, 8 * 4096, 4096, 2048, false, 128, 256, 2, 1>(),
      compiled<8, 8 * 4096, 4096, 2048, true, 128, 256, 2, 1>(),
      compiled<32, 32 * 20, 6144, 7168, false, 128, 256, 2, 1>(),
      compiled<32, 32 * 20, 6144, 7168, false, 64, 256, 2, 1>(),
      compiled<32, 32 * 20, 6144, 7168, true, 64, 256, 2, 1>(),
      // peers, ragged groups
      compiled<128, 65536, 1536, 2048, false, 128, 256, 2, 1>(),
      compiled<128, 65536, 1536, 2048, false, 64, 256, 2, 1>(),
      compiled<128, 65536, 1536, 2048, true, 128, 256, 2, 1>(),
      compiled<8, 16384, 14336, 4096, false, 128, 256, 2, 1>(),
      compiled<8, 16384, 14336, 4096, false, 64, 256, 2, 1>(),
      compiled<8, 16384, 14336, 4096, true, 128, 256, 2, 1>(),
      // moe
      compiled<32, 1024, 4096, 7168, false, 128, 256, 2, 1>(),
      compiled<32, 1024, 4096, 7168, false, 64, 240, 2, 1>(),
      compiled<32, 1024, 4096, 7168, true, 64, 256, 2, 1>(),
      compiled<32, 16384, 4096, 7168, false, 128, 256, 2, 1>(),
      compiled<32, 16384, 4096, 7168, false, 64, 256, 2, 1>(),
      compiled<32, 16384, 4096, 7168, true, 128, 256, 2, 1>(),
      compiled<32, 16384, 7168, 2048, false, 128, 256, 2, 1>(),
      compiled<32, 16384, 7168, 2048, false, 64, 256, 2, 1>(),
      compiled<32, 16384, 7168, 2048, true, 128, 256, 2, 1>(),
      compiled<128, 2048, 1536, 2048, false, 128, 256, 2, 1>(),
      compiled<128, 2048, 1536, 2048, false, 64, 256, 2, 1>(),
      compiled<128, 2048, 1536, 2048, true, 64, 256, 2, 1>(),
      compiled<128, 32768, 1536, 2048, false, 128, 256, 2, 1>(),
      compiled<128, 32768, 1536, 2048, false, 64, 256, 2, 1>(),
      compiled<128, 32768, 1536, 2048, true, 128, 256, 2, 1>(),
      compiled<128, 4096, 3072, 4096, false, 128, 256, 2, 1>(),
      compiled<128, 4096, 3072, 4096, false, 64, 256, 2, 1>(),
      compiled<128, 4096, 3072, 4096, true, 64, 256, 2, 1>(),
      compiled<8, 4096, 28672, 4096, false, 128, 256, 2, 1>(),
      compiled<8, 4096, 28672, 4096, false, 64, 256, 2, 1>(),
      compiled<8, 4096, 28672, 4096, true, 128, 256, 2, 1>(),
      compiled<32, 512, 2880, 2880, false, 128, 240, 2, 1>(),
      compiled<32, 512, 2880, 2880, false, 64, 240, 2, 1>(),
      compiled<32, 512, 2880, 2880, true, 64, 240, 2, 1>(),
      compiled<16, 2048, 1024, 1024, false, 128, 208>(),
      compiled<16, 2048, 1024, 1024, false, 64, 176, 2, 1>(),
      compiled<16, 2048, 1024, 1024, true, 128, 128>(),
  };
}
std::vector<Kernel> made_for_ragged() {
  return {
      compiled<7, 251, 2944, 512, false, 128, 80, 1, 2>(),
      compiled<7, 251, 2944, 512, false, 64, 80, 2, 1>(),
      compiled<7, 251, 2944, 512, true, 64, 176>(),
      compiled<17, 8031, 1152, 512, false, 128, 240, 2, 1>(),
      compiled<17, 8031, 1152, 512, false, 64, 192, 2, 1>(),
      compiled<17, 8031, 1152, 512, true, 128, 192, 2, 1>(),
      compiled<7, 248, 768, 1408, false, 128, 48>(),
      compiled<7, 248, 768, 1408, false, 64, 48>(),
      compiled<7, 248, 768, 1408, true, 64, 48>(),
      compiled<17, 1768, 1408, 640, false, 128, 96, 1, 2>(),
      compiled<17, 1768, 1408, 640, false, 64, 208, 2, 1>(),
      compiled<17, 1768, 1408, 640, true, 128, 208>(),
      compiled<11, 2946, 512, 640, false, 128, 128>(),
      compiled<11, 2946, 512, 640, false, 64, 112, 2, 1>(),
      compiled<11, 2946, 512, 640, true, 128, 128>(),
      compiled<7, 380, 640, 1792, false, 128, 48>(),
      compiled<7, 380, 640, 1792, false, 64, 48>(),
      compiled<7, 380, 640, 1792, true, 64, 48>(),
      compiled<8, 1772, 1792, 1152, false, 128, 144, 2, 1>(),
      compiled<8, 1772, 1792, 1152, false, 64, 224, 2, 1>(),
      compiled<8, 1772, 1792, 1152, true, 128, 224>(),
      compiled<6, 522, 640, 512, false, 128, 32>(),
      compiled<6, 522, 640, 512, false, 64, 64>(),
      compiled<6, 522, 640, 512, true, 64, 64>(),
      compiled<13, 6673, 768, 1024, false, 128, 192, 2, 1>(),
      compiled<13, 6673, 768, 1024, false, 64, 256, 2, 1>(),
      compiled<13, 6673, 768, 1024, true, 128, 192, 2, 1>(),
      compiled<5, 189, 1920, 896, false, 128, 80>(),
      compiled<5, 189, 1920, 896, false, 64, 96>(),
      compiled<5, 189, 1920, 896, true, 64, 80>(),
      compiled<16, 992, 896, 640, false, 128, 112>(),
      compiled<16, 992, 896, 640, false, 64, 96, 2, 1>(),
      compiled<16, 992, 896, 640, true, 64, 112>(),
      compiled<29, 11948, 640, 512, false, 128, 224, 2, 1>(),
      compiled<29, 11948, 640, 512, false, 64, 224, 2, 1>(),
      compiled<29, 11948, 640, 512, true, 128, 160, 2, 1>(),
  };
}
std::vector<Kernel> made_ahead() {
  std::vector<Kernel> all = made_for_peers_and_moe();
  const std::vector<Kernel> ragged = made_for_ragged();
  all.insert(all.end(), ragged.begin(), ragged.end());
  return all;
}
#endif

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = made_ahead();
  return all;
}

// DeepGEMM's layouts want the rows of each group padded to whole blocks. "contiguous" names each
// row's group and takes the alignment that its user sets, 128 or 64 here; "masked" has the number
// of rows of groups that lie at equal distances, here those of the largest. Where that is how they
// lie, A and D stay. Otherwise A is copied by gg_peer_stage, for the harness to call, untimed,
// whenever A has changed, and D by gg_peer_finish: models that use DeepGEMM write their rows padded
// in the first place.
class Grouped final : public peers::Way {
 public:
  Grouped(const GgPeerProblem& p, const Kernel& kernel, bool dependent_launch)
      : kernel_(kernel),
        dependent_launch_(dependent_launch),
        a_(static_cast<const Element*>(p.a)),
        d_(static_cast<Element*>(p.d)),
        rows_(p.host_offsets, p.host_offsets + p.groups + 1),
        padded_rows_{0} {
    int most_rows = 0;
    for (int g = 0; g < p.groups; ++g) most_rows = std::max(most_rows, int(rows_[g + 1] - rows_[g]));
    std::vector<int> layout;
    for (int g = 0; g < p.groups; ++g) {
      const int rows = int(rows_[g + 1] - rows_[g]);
      padded_rows_.push_back(padded_rows_.back() + align(kernel.masked ? most_rows : rows, kernel.block_m));
      if (kernel.masked) {
        layout.push_back(rows);
      } else {
        layout.resize(padded_rows_[g] + rows, g);
        layout.resize(padded_rows_[g + 1], -1);  // padding
      }
    }
    layout_ = peers::on_device(layout);
    const int64_t all_rows = padded_rows_.back();
    shape_m_ = uint32_t(kernel.masked ? padded_rows_[1] : all_rows);
    if (padded_rows_ != rows_) {
      padded_a_ = peers::zeroed_rows(all_rows, p.k);
      padded_d_ = peers::device_array<Element>(all_rows * p.n);
      stage(nullptr);
      peers::check(cudaDeviceSynchronize(), "the copy of A");
    }
    map_a_ = tensor_map(padded_a_ ? padded_a_.get() : a_, all_rows, p.k, kernel.block_m, 128);
    map_b_ = tensor_map(p.b, int64_t(p.groups) * p.n, p.k, kernel.block_n, 128);
    map_d_ =
        tensor_map(padded_d_ ? padded_d_.get() : d_, all_rows, p.n, kernel.block_m, kernel.swizzle_d_bytes);
    peers::allow_smem(kernel.code);
  }

  static std::string name_of(const Kernel& kernel, bool dependent_launch) {
    char name[128];
    std::snprintf(name, sizeof name, "%s %dx%d cluster of %d%s", kernel.masked ? "masked" : "contiguous",
                  kernel.block_m, kernel.block_n, kernel.code.cluster,
                  dependent_launch ? " dependent launch" : "");
    return name;
  }

  void launch(cudaStream_t stream) override {
    int* layout = layout_.get();
    uint32_t n = uint32_t(kernel_.n), k = uint32_t(kernel_.k);
    void* arguments[] = {&layout, &shape_m_, &n, &k, &map_a_, &map_b_, &map_d_};
    peers::launch(kernel_.code, arguments, dependent_launch_, stream, name);
  }

  void stage(cudaStream_t stream) {
    if (padded_a_) copy_rows(padded_a_.get(), padded_rows_, a_, rows_, kernel_.k, stream);
  }
  void finish(cudaStream_t stream) {
    if (padded_d_) copy_rows(d_, rows_, padded_d_.get(), padded_rows_, kernel_.n, stream);
  }

 private:
  const Kernel kernel_;
  const bool dependent_launch_;
  const Element* const a_;
  Element* const d_;
  const std::vector<int64_t> rows_;   // first row of each group
  std::vector<int64_t> padded_rows_;  // the same where groups are whole blocks
  uint32_t shape_m_;                  // rows of all groups; masked: from one group to the next
  peers::Device<int> layout_;         // the group of each row; masked: the rows of each group
  peers::Device<Element> padded_a_, padded_d_;
  CUtensorMap map_a_, map_b_, map_d_;
};

std::vector<peers::Offer> all_offers(const GgPeerProblem& p) {
  std::vector<peers::Offer> offers;
  for (const Kernel& kernel : kernels()) {
    const bool fits = kernel.groups == p.groups && kernel.rows == p.host_offsets[p.groups] &&
                      kernel.n == p.n && kernel.k == p.k;
    for (const bool dependent_launch : {false, true}) {
      const std::string name = Grouped::name_of(kernel, dependent_launch);
      if (!fits || !peers::wanted(name)) continue;
      offers.push_back({name, [&p, &kernel, dependent_launch] {
                          return std::make_unique<Grouped>(p, kernel, dependent_launch);
                        }});
    }
  }
  return offers;
}

void check_limits(const GgPeerProblem& p) {
  peers::check_device_and_format(p);
  if (p.b_is_kn) throw std::runtime_error("B [K,N]: compiled for B [N,K] only");
}

peers::Choices choices;  // of this library

}  // namespace

extern "C" {

const char* gg_peer_version() { return "DeepGEMM " DEEPGEMM_VERSION; }

const char* gg_peer_prepare(const GgPeerProblem* problem, void** state) {
  return peers::sentence_of([&] {
    const GgPeerProblem& p = *problem;
    check_limits(p);
    const std::vector<peers::Offer> offers = all_offers(p);
    if (offers.empty()) {
      throw std::runtime_error("G=" + std::to_string(p.groups) + " of " +
                               std::to_string(p.host_offsets[p.groups]) + " rows, N=" + std::to_string(p.n) +
                               ", K=" + std::to_string(p.k) +
                               ": compiled for the sets 'peers', 'moe' and 'ragged' only");
    }
    std::vector<int64_t> key = {p.n, p.k};
    key.insert(key.end(), p.host_offsets, p.host_offsets + p.groups + 1);
    *state = static_cast<Grouped*>(choices.choose(key, offers, p.sustained).release());
  });
}

const char* gg_peer_stage(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<Grouped*>(state)->stage(stream); });
}

const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<Grouped*>(state)->launch(stream); });
}

const char* gg_peer_finish(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<Grouped*>(state)->finish(stream); });
}

void gg_peer_release(void* state) { delete static_cast<Grouped*>(state); }
}
