// SPDX-License-Identifier: MIT
//
// The host side of the peer triton_wgrad. triton_wgrad.py compiles it together with
// triton_kernels.inc, which it generates: Triton's version, the code of each configuration, and the
// array that describes them. gg_peer_prepare_gradient times the configurations on the problem as
// triton_launch.cpp does, and takes the fastest.

#include "common/harness/bench/peer_library.h"
#include "support.h"
#include "triton_support.h"

struct Kernel {
  const char* name;
  const unsigned char* code;
  int threads, shared_bytes, scratch_bytes;  // scratch: of global memory, for each block
  int bm, bn, bk;
  int d_is_f32, add;  // D's type, f32 or bf16; whether the product is added to D
  int flatten;        // whether a block's tiles are one loop
};

#include "triton_kernels.inc"

namespace {

constexpr cuuint32_t kBoxBytes = 128;  // of a row of a box

int tiles_of(int size, int of_tile) { return (size + of_tile - 1) / of_tile; }

// How tiles are ordered and given to blocks.
struct Order {
  int band;               // tile rows that are worked on together
  bool block_for_a_tile;  // so that the device, not a block's loop, gives out tiles
  bool dependent_launch;
};

// One kernel, ready for one problem.
class Gradient final : public peers::Way {
 public:
  Gradient(const GgPeerProblem& p, const Kernel& kernel, const Order& order)
      : kernel_(kernel),
        function_(triton::loaded(kernel.code, "grouped_gradient", kernel.shared_bytes)),
        a_(p.a),
        b_(p.b),
        d_(p.d),
        offsets_(p.offsets),
        rows_(int(p.host_offsets[p.groups])),
        groups_(p.groups),
        n_(p.n),
        k_(p.k),
        band_(order.band) {
    // The host knows how many tiles there are, however rows are shared out.
    const int64_t tiles = int64_t(groups_) * tiles_of(k_, kernel.bm) * tiles_of(n_, kernel.bn);
    const int64_t at_once = triton::blocks_at_once(function_, kernel.threads, kernel.shared_bytes);
    launch_ = {int(order.block_for_a_tile ? tiles : std::min(at_once, tiles)), kernel.threads,
               kernel.shared_bytes, order.dependent_launch};
    if (kernel.scratch_bytes > 0) {
      scratch_memory_ = peers::device_array<char>(size_t(kernel.scratch_bytes) * size_t(launch_.blocks));
      scratch_ = scratch_memory_.get();
    }
    make_maps();
  }

  void launch(cudaStream_t stream) override {
    // Those of the Triton source in their order, each map followed by its shape and strides; then
    // scratch memory, and that of a profiler.
    std::vector<void*> arguments;
    for (CUtensorMap* const map : {&a_map_, &b_map_, &d_map_}) {
      arguments.push_back(map);
      arguments.insert(arguments.end(), 6, &unread_);
    }
    for (void* each : std::initializer_list<void*>{&a_, &b_, &offsets_, &rows_, &groups_, &n_, &k_, &band_,
                                                   &scratch_, &profiler_}) {
      arguments.push_back(each);
    }
    triton::launch(stream, function_, launch_, arguments.data(), name);
  }

 private:
  void make_maps() {
    const cuuint64_t n = cuuint64_t(n_), k = cuuint64_t(k_);
    encode_rows(a_map_, a_, k);
    encode_rows(b_map_, b_, n);
    const triton::ElementType type = kernel_.d_is_f32 ? triton::kF32 : triton::kBf16;
    triton::encode(d_map_, type, d_, {n, k, cuuint64_t(groups_)}, {n * type.bytes, n * k * type.bytes},
                   {kBoxBytes / type.bytes, cuuint32_t(kernel_.bm), 1});
  }

  // A map in which a box may end at any row, as `load_rows` of triton_wgrad.py says. It begins bk
  // rows before the matrix; nothing there is read.
  void encode_rows(CUtensorMap& map, const void* matrix, cuuint64_t columns) const {
    const cuuint32_t bk = cuuint32_t(kernel_.bk);
    const cuuint64_t row_bytes = columns * triton::kBf16.bytes;
    triton::encode(map, triton::kBf16, static_cast<const char*>(matrix) - row_bytes * bk,
                   {columns, bk, cuuint64_t(rows_) + 1}, {row_bytes, row_bytes},
                   {kBoxBytes / triton::kBf16.bytes, bk, 1});
  }

  const Kernel& kernel_;
  cudaKernel_t function_ = nullptr;
  triton::Launch launch_{};
  peers::Device<char> scratch_memory_;

  // The kernel's parameters.
  CUtensorMap a_map_{}, b_map_{}, d_map_{};
  int64_t unread_ = 0;
  const void *a_ = nullptr, *b_ = nullptr;
  void *d_ = nullptr, *scratch_ = nullptr, *profiler_ = nullptr;
  const int32_t* offsets_ = nullptr;
  int rows_ = 0, groups_ = 0, n_ = 0, k_ = 0, band_ = 0;
};

// ---- choosing a configuration ----

bool computes(const Kernel& kernel, const GgPeerProblem& p, const GgPeerGradient& gradient) {
  if ((std::string(gradient.d_format) == "f32") != bool(kernel.d_is_f32)) return false;
  if (bool(gradient.accumulate) != bool(kernel.add)) return false;
  return !kernel.flatten || p.groups <= kMostFlatGroups;
}

std::vector<peers::Offer> all_offers(const GgPeerProblem& p, const GgPeerGradient& gradient) {
  std::vector<peers::Offer> offers;
  const auto offer = [&](const Kernel& kernel, const Order& order) {
    const std::string name = std::string(kernel.name) + ", bands of " + std::to_string(order.band) +
                             (order.block_for_a_tile ? ", a block for each tile" : "") +
                             (order.dependent_launch ? ", dependent launch" : "");
    if (!peers::wanted(name)) return;
    offers.push_back({name, [&p, &kernel, order] { return std::make_unique<Gradient>(p, kernel, order); }});
  };
  for (const Kernel& kernel : kKernels) {
    if (!computes(kernel, p, gradient)) continue;
    for (const int band : {1, 4, 8, 16, 64}) {
      for (const bool dependent_launch : {false, true}) {
        offer(kernel, {band, false, dependent_launch});
        // With one tile for each block there is nothing to flatten.
        if (!kernel.flatten) offer(kernel, {band, true, dependent_launch});
      }
      if (band >= tiles_of(p.k, kernel.bm)) break;  // a wider one is the same
    }
  }
  return offers;
}

void check_limits(const GgPeerProblem& p, const GgPeerGradient& gradient) {
  const auto require = [](bool holds, const std::string& sentence) {
    if (!holds) throw std::runtime_error(sentence);
  };
  require(std::string(p.format) == "bf16", std::string(p.format) + ": compiled for bf16 only");
  const bool is_f32 = std::string(gradient.d_format) == "f32";
  require(is_f32 || !gradient.accumulate, "D of bf16 is compiled without --accumulate");
  require(p.n % 8 == 0 && p.k % 8 == 0, "N=" + std::to_string(p.n) + " K=" + std::to_string(p.k) +
                                            ": TMA wants rows that are multiples of 16 bytes");
  require(p.host_offsets[p.groups] > 0, "no group has a row: a tensor map wants one");
}

peers::Choices choices;  // of this library

}  // namespace

extern "C" {

const char* gg_peer_version() { return "Triton " TRITON_VERSION; }

const char* gg_peer_prepare_gradient(const GgPeerProblem* problem, const GgPeerGradient* gradient,
                                     void** state) {
  return peers::sentence_of([&] {
    const GgPeerProblem& p = *problem;
    check_limits(p, *gradient);
    std::vector<int64_t> key = {p.n, p.k, gradient->accumulate, gradient->d_format[0]};
    key.insert(key.end(), p.host_offsets, p.host_offsets + p.groups + 1);
    *state = choices.choose(key, all_offers(p, *gradient), p.sustained).release();
  });
}

const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<peers::Way*>(state)->launch(stream); });
}

void gg_peer_release(void* state) { delete static_cast<peers::Way*>(state); }
}
