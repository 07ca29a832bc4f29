// SPDX-License-Identifier: MIT
//
// Peers from shared libraries: which paths are taken, what a library must export, and that one
// whose D is wrong is not timed. The libraries are made from fake_peer.cpp and work in host memory.

#include "common/harness/bench/peers.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "common/harness/bench/peer_names.h"

namespace gg {
namespace {

std::string path_of(const std::string& fake) {
  return std::string(GG_BINARY_DIR) + "/tests/libgg_peer_" + fake + ".so";
}

template <class Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

int number_of(const std::string& fake, const char* function) {
  return reinterpret_cast<int (*)()>(dlsym(dlopen(path_of(fake).c_str(), RTLD_NOW), function))();
}
int states_of(const std::string& fake) { return number_of(fake, "fake_states"); }

const Formats kBf16 = {Format::bf16, Format::bf16, Format::bf16};

class FakePeer : public testing::Test {
 protected:
  // Prepares, checks and launches the peer once more; its refusal, or nothing if D is right.
  std::string outcome(const std::string& fake, const Shape& shape = {{5, 17, 64}, {24}, {16}},
                      const Formats& formats = kBf16, BLayout b_layout = BLayout::nk,
                      bool wide_offsets = false, const Epilogue& epilogue = {}) {
    const std::unique_ptr<Peer> peer = load_peer(path_of(fake), false);
    gg::Setup setup;  // gtest has a Setup too
    setup.request.formats = formats;
    setup.request.b_layout = b_layout;
    setup.request.wide_offsets = wide_offsets;
    setup.request.epilogue = epilogue;
    BufferSets sets;
    for (uint64_t seed : {7, 8, 9}) {
      sets.push_back(std::make_unique<Buffers>(*machine_, setup, shape));
      sets.back()->fill_operands({Fill::Kind::normal, 0, seed, 0});
    }
    std::string why;
    {
      PeerLaunches peers;
      why = refusal([&] { peers = prepare_and_check(*peer, sets, *machine_, 7); });
      EXPECT_EQ(states_of(fake), why.empty() ? 3 : 0) << why;
      for (int set = 0; set < 3 && peers.launch; ++set) peers.launch(set, nullptr);
    }
    EXPECT_EQ(states_of(fake), 0) << "each state is released";
    for (uint64_t set = 0; set < 3 && why.empty(); ++set) {
      Buffers fresh(*machine_, setup, shape);
      fresh.fill_operands({Fill::Kind::normal, 0, 7 + set, 0});
      EXPECT_EQ(machine_->first_difference(fresh.a(), sets[set]->a(), fresh.a_bytes()), -1)
          << "ours are timed on it";
    }
    return why;
  }

  const std::unique_ptr<Machine> machine_ = host_machine();
};

TEST(PeerLibrary, IsNamedByItsFile) {
  EXPECT_EQ(library_peer_name("libgg_peer_deepgemm.so"), "deepgemm");
  EXPECT_EQ(library_peer_name("../a.so/libgg_peer_triton_tma.so"), "triton_tma");
  for (const char* other : {"", "cublas_loop", "libgg_peer_.so", "libgg_peer_x", "libgg_peer_x.so.1",
                            "libother.so", "libgg_peer_x.so/libother.so"}) {
    EXPECT_EQ(library_peer_name(other), "") << other;
  }
}

TEST(PeerLibrary, ThatCannotBeLoadedSaysWhy) {
  const auto loading = [](const std::string& path) { return refusal([&] { load_peer(path, false); }); };
  EXPECT_EQ(loading("/none/libgg_peer_x.so").rfind("cannot be loaded: /none/libgg_peer_x.so: ", 0), 0u);
  EXPECT_EQ(loading("libgg_peer_none.so").rfind("cannot be loaded: ./libgg_peer_none.so: ", 0), 0u);
  EXPECT_EQ(loading(path_of("mute")),
            "the library lacks gg_peer_launch (common/harness/bench/peer_library.h)");
}

TEST_F(FakePeer, HasNameAndVersion) {
  const std::unique_ptr<Peer> peer = load_peer(path_of("right"), false);
  EXPECT_EQ(peer->name(), "right");
  EXPECT_EQ(peer->version(), "fake 1.2");
}

TEST_F(FakePeer, IsToldHowItWillBeTimed) {
  Buffers buffers(*machine_, gg::Setup(), {{5, 17}, {24}, {16}});
  buffers.fill_operands({Fill::Kind::normal, 0, 7, 0});
  for (const bool sustained : {true, false}) {
    load_peer(path_of("right"), sustained)->prepare(buffers, *machine_);
    EXPECT_EQ(number_of("right", "fake_sustained"), sustained);
  }
}

TEST_F(FakePeer, ThatIsRightIsTimed) {
  for (const char* fake : {"right", "padded"}) {
    EXPECT_EQ(outcome(fake), "") << fake;
    EXPECT_EQ(outcome(fake, {{3, 40}, {8}, {32}}, kBf16, BLayout::kn), "") << fake;
    EXPECT_EQ(outcome(fake, {{3, 40}, {8}, {32}}, {Format::f16, Format::f16, Format::f16}), "") << fake;
  }
}

TEST_F(FakePeer, WhoseDIsWrongIsNotTimed) {
  EXPECT_EQ(outcome("wrong"), "its result fails our check, so it is not timed");
  EXPECT_EQ(outcome("early"), "its result fails our check, so it is not timed");
  EXPECT_EQ(outcome("once"), "its result in a replayed graph fails our check, so it is not timed");
}

TEST_F(FakePeer, RefusesOrFailsInItsOwnWords) {
  EXPECT_EQ(outcome("right", {{5, 0, 64}, {24}, {16}}), "wants rows in every group");
  EXPECT_EQ(outcome("right", {{5, 64}, {24}, {13}}), "no kernel for K=13");
}

TEST_F(FakePeer, IsNotAskedForWhatItsInterfaceLacks) {
  const Shape shape = {{5, 64}, {24}, {16}};
  Shape shared = shape, single = {{5}, {24}, {16}}, own = shape;
  shared.shared_b = single.shared_b = own.own_sizes = true;
  const std::string one_type = "takes bf16 or f16, one type for A, B and D, not ";
  EXPECT_EQ(outcome("right", shape, {Format::bf16, Format::bf16, Format::f32}), one_type + "bf16 -> f32");
  EXPECT_EQ(outcome("right", shape, {Format::f32, Format::f32, Format::f32}), one_type + "f32 -> f32");
  EXPECT_EQ(outcome("right", own), "takes packed groups of one N and one K");
  EXPECT_EQ(outcome("right", shared), "takes one B for each group");
  EXPECT_EQ(outcome("right", single), "");
  EXPECT_EQ(outcome("right", shape, kBf16, BLayout::nk, true), "takes offsets of type i32, not i64");
}

TEST_F(FakePeer, IsAskedForTheGatedLinearUnitIfItHasOne) {
  const Shape shape = {{5, 17, 0}, {64}, {16}};
  const auto outcome_of = [&](const std::string& fake, const Epilogue& epilogue) {
    return outcome(fake, shape, kBf16, BLayout::nk, false, epilogue);
  };
  Epilogue glu = {.op = Operator::glu, .stores_c = false};
  EXPECT_EQ(outcome_of("glu", glu), "");
  EXPECT_EQ(outcome_of("glu", {}), "has no product (gg_peer_prepare)");
  EXPECT_EQ(outcome_of("right", glu), "has no gated linear unit (gg_peer_prepare_glu)");
  EXPECT_EQ(outcome_of("glu", {.op = Operator::quant}), "takes a product or a gated linear unit");
  const std::string plain = "takes swiglu without C, bias and amax";
  glu.activation = Activation::geglu;
  EXPECT_EQ(outcome_of("glu", glu), plain);
  EXPECT_EQ(outcome_of("glu", {.op = Operator::glu}), plain);
  EXPECT_EQ(outcome_of("glu", {.op = Operator::glu, .amax = true, .stores_c = false}), plain);
  EXPECT_EQ(outcome_of("glu", {.op = Operator::glu, .bias = true, .stores_c = false}), plain);
}

}  // namespace
}  // namespace gg
