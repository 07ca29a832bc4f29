// SPDX-License-Identifier: MIT
//
// The host side of the peer triton_tma, and with TRITON_GLU of triton_glu. Their Python compiles it
// together with triton_kernels.inc, which it generates: Triton's version, the code of each
// configuration, and the arrays that describe them.
// gg_peer_prepare times the configurations on the problem, in bands of several widths, with and
// without programmatic dependent launch, and keeps the fastest.

#include "common/harness/bench/peer_library.h"
#include "support.h"
#include "triton_support.h"

#ifdef TRITON_GLU
constexpr bool kGlu = true;
#else
constexpr bool kGlu = false;
#endif

struct Kernel {
  const char* name;
  const unsigned char* code;
  int threads, shared_bytes, scratch_bytes;  // scratch: of global memory, for each block
  int bm, bn;
  int a_box_rows, b_box_rows;     // that a copy brings
  int swap, specialize;           // whether it computes D^T; whether its warps are specialised
  int least_groups, most_groups;  // that it is meant for
  int numbering;                  // -1, or which of kNumberings has to run before it
};

struct Numbering {  // numbers tile rows of bm rows
  const unsigned char* code;
  int threads, shared_bytes, bm;
};

#include "triton_kernels.inc"

namespace {

constexpr int kBoxCols = 64;  // of a map, at most: a swizzle's longest row
constexpr int kPair = 64;     // columns of B: 32 gates and their ups

// A problem, and what its gated linear unit takes.
struct Operands {
  GgPeerProblem p;
  GgPeerGlu glu;
  peers::Device<char> dealt_b, halves_of_b;  // copies, as kernels want them

  const void* b_of(const Kernel& kernel) const {
    return !kGlu ? p.b : kernel.specialize ? halves_of_b.get() : kernel.swap ? dealt_b.get() : p.b;
  }
  void stage(cudaStream_t stream) const {
    if (dealt_b) peers::deal_gates(p, dealt_b.get(), false, stream);
    if (halves_of_b) peers::part_gates(p, halves_of_b.get(), stream);
  }
};

// One kernel, ready for one problem.
class Grouped final : public peers::Way {
 public:
  Grouped(const Operands& operands, const Kernel& kernel, int band, bool dependent_launch)
      : kernel_(kernel),
        dependent_launch_(dependent_launch),
        function_(triton::loaded(kernel.code, kProduct, kernel.shared_bytes)),
        d_(operands.p.d),
        alpha_(operands.glu.alpha),
        prob_(operands.glu.prob),
        offsets_(operands.p.offsets),
        rows_(int(operands.p.host_offsets[operands.p.groups])),
        groups_(operands.p.groups),
        n_(operands.p.n),
        k_(operands.p.k),
        band_(band) {
    // The grid follows from sizes that the host knows however rows are shared out: a group has at
    // most one tile row that is not whole.
    const int64_t at_once = triton::blocks_at_once(function_, kernel.threads, kernel.shared_bytes);
    const int most_tile_rows = rows_ / kernel.bm + groups_;
    const int64_t most_tiles = int64_t(most_tile_rows) * ((n_ + kernel.bn - 1) / kernel.bn);
    blocks_ = int(std::min(at_once, most_tiles));

    if (kernel.scratch_bytes > 0) {
      scratch_memory_ = peers::device_array<char>(size_t(kernel.scratch_bytes) * size_t(blocks_));
      scratch_ = scratch_memory_.get();
    }
    if (kernel.numbering >= 0) {
      const Numbering& numbering = kNumberings[kernel.numbering];
      numbering_ = triton::loaded(numbering.code, "number_tile_rows", numbering.shared_bytes);
      table_memory_ = peers::device_array<int32_t>(size_t(1 + 3 * most_tile_rows));
      table_ = table_memory_.get();
    }
    make_maps(operands.p, operands.b_of(kernel));
  }

  // The numbering waits for the launch before, which reads the same table, and the product
  // for the numbering.
  void launch(cudaStream_t stream) override {
    if (numbering_) {
      const Numbering& numbering = kNumberings[kernel_.numbering];
      void* arguments[] = {&offsets_, &table_, &groups_, &profiler_, &profiler_};
      launch(stream, numbering_, groups_, numbering.threads, numbering.shared_bytes, arguments);
    }
    // Those of the Triton source in their order, each map followed by its shape and strides; then
    // scratch memory, and that of a profiler.
    std::vector<void*> arguments;
    const auto add_map = [&](CUtensorMap& map, int dims) {
      arguments.push_back(&map);
      arguments.insert(arguments.end(), size_t(2 * dims), &unread_);
    };
    add_map(a_map_, 2);
    add_map(b_map_, 2);
    add_map(d_map_, 3);
    arguments.push_back(&d_);
    if (kGlu) arguments.insert(arguments.end(), {&alpha_, &prob_});
    for (void* each : std::initializer_list<void*>{&offsets_, &table_, &rows_, &groups_, &n_, &k_, &band_,
                                                   &scratch_, &profiler_}) {
      arguments.push_back(each);
    }
    launch(stream, function_, blocks_, kernel_.threads, kernel_.shared_bytes, arguments.data());
  }

 private:
  void launch(cudaStream_t stream, cudaKernel_t function, int blocks, int threads, int shared_bytes,
              void** arguments) const {
    triton::launch(stream, function, {blocks, threads, shared_bytes, dependent_launch_}, arguments, name);
  }

  void make_maps(const GgPeerProblem& p, const void* b) {
    const cuuint64_t rows = cuuint64_t(rows_), n = cuuint64_t(n_), k = cuuint64_t(k_),
                     groups = cuuint64_t(groups_);
    const cuuint32_t bm = cuuint32_t(kernel_.bm);
    triton::encode(a_map_, triton::kBf16, p.a, {k, rows}, {2 * k},
                   {kBoxCols, cuuint32_t(kernel_.a_box_rows)});
    triton::encode(b_map_, triton::kBf16, b, {k, groups * n}, {2 * k},
                   {kBoxCols, cuuint32_t(kernel_.b_box_rows)});
    // D has a dimension more, so that a tile ends where its group does: element [s, r, c] of the
    // map is row s + r - bm of D. A tile whose rows stop before row s is stored at [s, bm - (rows
    // it has)], and what it has too much lies beyond r = bm. The map begins bm rows before D;
    // nothing there is touched.
    const cuuint64_t d_cols = kGlu ? n / 2 : n;
    const cuuint32_t box_cols =
        std::min<cuuint32_t>(kBoxCols, cuuint32_t(kGlu ? kernel_.bn / 2 : kernel_.bn));
    const char* begin = static_cast<const char*>(p.d) - 2 * d_cols * bm;
    triton::encode(d_map_, triton::kBf16, begin, {d_cols, bm, rows + 1}, {2 * d_cols, 2 * d_cols},
                   {box_cols, bm, 1});
  }

  const Kernel& kernel_;
  const bool dependent_launch_;
  cudaKernel_t function_ = nullptr, numbering_ = nullptr;
  int blocks_ = 0;
  peers::Device<char> scratch_memory_;
  peers::Device<int32_t> table_memory_;

  // The kernel's parameters.
  CUtensorMap a_map_{}, b_map_{}, d_map_{};
  int64_t unread_ = 0;
  void *d_ = nullptr, *table_ = nullptr, *scratch_ = nullptr, *profiler_ = nullptr;
  const float *alpha_ = nullptr, *prob_ = nullptr;
  const int32_t* offsets_ = nullptr;
  int rows_ = 0, groups_ = 0, n_ = 0, k_ = 0, band_ = 0;
};

// ---- choosing a configuration ----

std::vector<peers::Offer> all_offers(const Operands& operands) {
  const GgPeerProblem& p = operands.p;
  std::vector<peers::Offer> offers;
  for (const Kernel& kernel : kKernels) {
    if (p.groups < kernel.least_groups || p.groups > kernel.most_groups) continue;
    int64_t tile_rows = 0;
    for (int g = 0; g < p.groups; ++g) {
      tile_rows += (p.host_offsets[g + 1] - p.host_offsets[g] + kernel.bm - 1) / kernel.bm;
    }
    for (const int band : {1, 4, 8, 16, 64}) {
      for (const bool dependent_launch : {false, true}) {
        const std::string name = std::string(kernel.name) + ", bands of " + std::to_string(band) +
                                 (dependent_launch ? ", dependent launch" : "");
        if (!peers::wanted(name)) continue;
        offers.push_back({name, [&operands, &kernel, band, dependent_launch] {
                            return std::make_unique<Grouped>(operands, kernel, band, dependent_launch);
                          }});
      }
      if (band >= tile_rows) break;  // a wider one is the same
    }
  }
  return offers;
}

void check_limits(const GgPeerProblem& p) {
  const auto require = [](bool holds, const std::string& sentence) {
    if (!holds) throw std::runtime_error(sentence);
  };
  require(std::string(p.format) == "bf16", std::string(p.format) + ": compiled for bf16 only");
  require(!p.b_is_kn, "B is [groups, k, n]: compiled for [groups, n, k] only");
  const int n_multiple = kGlu ? kPair : 16;
  require(p.n % n_multiple == 0,
          "N=" + std::to_string(p.n) + ": wants multiples of " + std::to_string(n_multiple));
  require(p.k % 8 == 0, "K=" + std::to_string(p.k) + ": rows want multiples of 16 bytes");
  require(p.host_offsets[p.groups] > 0, "no group has a row: a tensor map wants one");
  require(p.groups <= kMostGroups, "G=" + std::to_string(p.groups) + ": compiled for at most " +
                                       std::to_string(kMostGroups) + " groups");
}

peers::Choices choices;  // of this library

struct State {
  Operands operands;
  std::unique_ptr<peers::Way> way;
};

const char* prepare(const GgPeerProblem& p, const GgPeerGlu& glu, void** state) {
  return peers::sentence_of([&] {
    check_limits(p);
    auto made = std::make_unique<State>();
    made->operands.p = p;
    made->operands.glu = glu;
    if (kGlu) {
      const size_t bytes = size_t(p.groups) * size_t(p.n) * size_t(p.k) * 2;
      made->operands.dealt_b = peers::device_array<char>(bytes);
      made->operands.halves_of_b = peers::device_array<char>(bytes);
    }
    made->operands.stage(nullptr);  // ways are timed on the numbers that they will have
    peers::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<int64_t> key(p.host_offsets, p.host_offsets + p.groups + 1);
    key.insert(key.end(), {p.n, p.k});
    made->way = choices.choose(key, all_offers(made->operands), p.sustained);
    made->operands.p.host_offsets = nullptr;  // they end with this call
    *state = made.release();
  });
}

}  // namespace

const char* gg_peer_version() { return "Triton " TRITON_VERSION; }
#ifdef TRITON_GLU
const char* gg_peer_prepare_glu(const GgPeerProblem* problem, const GgPeerGlu* glu, void** state) {
  return prepare(*problem, *glu, state);
}
#else
const char* gg_peer_prepare(const GgPeerProblem* problem, void** state) {
  return prepare(*problem, {}, state);
}
#endif
const char* gg_peer_stage(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<State*>(state)->operands.stage(stream); });
}
const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<State*>(state)->way->launch(stream); });
}
void gg_peer_release(void* state) { delete static_cast<State*>(state); }
