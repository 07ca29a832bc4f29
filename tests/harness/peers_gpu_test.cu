// SPDX-License-Identifier: MIT
//
// The checks that come before a peer is timed on a device: of a launch, and of a graph's replay.

#include <gtest/gtest.h>

#include <fstream>

#include "common/harness/bench/cublas.h"
#include "common/harness/bench/peer_names.h"
#include "tests/harness/a_device.h"

namespace gg {
namespace peers_gpu {

__global__ void multiply(const bf16* a, const bf16* b, bf16* d, const int32_t* offsets, int n, int k) {
  const int row = int(blockIdx.x), col = int(threadIdx.x);
  int g = 0;
  while (row >= offsets[g + 1]) ++g;
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    const bf16 b_element = b[int64_t(g) * n * k + int64_t(col) * k + i];
    sum += __bfloat162float(a[int64_t(row) * k + i]) * __bfloat162float(b_element);
  }
  d[int64_t(row) * n + col] = __float2bfloat16(sum);
}

enum class Does { its_work, its_work_elsewhere, other_stream, allocate };

// Computes from a copy of A into memory of its own, which finish copies to D, or straight into D.
class DevicePeer : public Peer {
 public:
  explicit DevicePeer(Does does) : does_(does) {}
  std::string name() const override { return "device"; }
  std::string version() const override { return "1"; }

  PeerWork prepare(const Buffers& buffers, Machine& machine) override {
    const Problem p = buffers.problem();
    const unsigned rows = unsigned(buffers.shape().m_total());
    const size_t a_bytes = rows * size_t(p.k()) * sizeof(bf16), d_bytes = rows * size_t(p.n()) * sizeof(bf16);
    const bool elsewhere = does_ == Does::its_work_elsewhere;
    const auto own = [&](size_t bytes) {
      return std::shared_ptr<void>(machine.allocate(bytes, "a peer's copy"),
                                   [&machine](void* memory) { machine.release(memory); });
    };
    const std::shared_ptr<void> own_a = own(a_bytes), own_d = own(d_bytes);
    PeerWork work;
    work.launch = [=, does = does_](cudaStream_t stream) {
      if (does == Does::allocate) {
        void* scratch = nullptr;
        GG_CHECK(cudaMalloc(&scratch, 1024));
        GG_CHECK(cudaFree(scratch));
      }
      const bf16* a = elsewhere ? static_cast<bf16*>(own_a.get()) : p.a<bf16>();
      bf16* d = elsewhere ? static_cast<bf16*>(own_d.get()) : p.d<bf16>();
      multiply<<<rows, unsigned(p.n()), 0, does == Does::other_stream ? cudaStreamLegacy : stream>>>(
          a, p.b<bf16>(), d, p.offsets().as<int32_t>(), p.n(), p.k());
      GG_CHECK(cudaGetLastError());
    };
    if (elsewhere) {
      work.stage = [=](cudaStream_t stream) {
        GG_CHECK(cudaMemcpyAsync(own_a.get(), p.a<bf16>(), a_bytes, cudaMemcpyDefault, stream));
      };
      work.finish = [=](cudaStream_t stream) {
        GG_CHECK(cudaMemcpyAsync(p.d<bf16>(), own_d.get(), d_bytes, cudaMemcpyDefault, stream));
      };
    }
    return work;
  }

 private:
  const Does does_;
};

class PeerOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
    machine_ = emulator() ? emulator_machine() : gpu_machine();
  }

  // Returns what keeps the peer from being timed, or nothing.
  std::string refusal(Does does) {
    DevicePeer peer(does);
    return refusal(peer, BLayout::nk, {{5, 0, 33}, {16}, {24}});
  }
  std::string refusal(Peer& peer, BLayout b_layout, const Shape& shape) {
    gg::Setup setup;
    setup.request.b_layout = b_layout;
    BufferSets sets;
    for (uint64_t seed : {7, 8}) {
      sets.push_back(std::make_unique<Buffers>(*machine_, setup, shape));
      sets.back()->fill_operands({Fill::Kind::normal, 0, seed, 0});
    }
    try {
      const PeerLaunches launches = prepare_and_check(peer, sets, *machine_, 7);
      for (int set : {0, 1}) machine_->run([&](cudaStream_t stream) { launches.launch(set, stream); });
    } catch (const Error& error) {
      cudaGetLastError();
      return error.what();
    }
    return "";
  }

  std::unique_ptr<Machine> machine_;
};

TEST_F(PeerOnDevice, ThatIsRightIsTimed) {
  EXPECT_EQ(refusal(Does::its_work), "");
  EXPECT_EQ(refusal(Does::its_work_elsewhere), "");
}

TEST_F(PeerOnDevice, WhoseGraphDoesNothingIsNotTimed) { EXPECT_NE(refusal(Does::other_stream), ""); }

TEST_F(PeerOnDevice, ThatBreaksOffACaptureLeavesTheStreamToOthers) {
  EXPECT_NE(refusal(Does::allocate), "");
  EXPECT_EQ(refusal(Does::its_work), "");
}

// A chapter is a library too, which keeps to its own limits. Two at once launch each its own.
TEST_F(PeerOnDevice, MayBeAChapter) {
  if (!emulator() && choose_device(Options::Device::gpu, {}).capability != 90) GTEST_SKIP() << "no Hopper";
  const auto path_of = [](const std::string& id) {
    return std::string(GG_BINARY_DIR) + "/lib/peers/libgg_peer_" + id + ".so";
  };
  if (!std::ifstream(path_of("07a_warp_specialized"))) GTEST_SKIP() << "GG_CHAPTERS leaves it out";
  const auto chapter = [&](const std::string& id) { return load_peer(path_of(id), false); };
  const auto naive = chapter("01_naive"), specialized = chapter("07a_warp_specialized");
  const Shape shape{{5, 0, 33}, {16}, {24}};
  EXPECT_EQ(specialized->name(), "07a_warp_specialized");
  EXPECT_EQ(refusal(*specialized, BLayout::nk, shape), "");
  EXPECT_EQ(refusal(*naive, BLayout::kn, shape), "");
  EXPECT_EQ(refusal(*naive, BLayout::nk, shape), "01_naive takes no B of layout nk");
  EXPECT_EQ(refusal(*naive, BLayout::kn, {{5}, {16}, {20}}), "");
  EXPECT_NE(refusal(*specialized, BLayout::nk, {{5}, {16}, {20}}).find("wants multiples of 8"),
            std::string::npos);
}

}  // namespace peers_gpu
}  // namespace gg
