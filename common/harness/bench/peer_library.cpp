// SPDX-License-Identifier: MIT
//
// Peers from shared libraries (peer_library.h). A library stays loaded until the program ends: what
// it started, threads and caches, would not survive its code.

#include "common/harness/bench/peer_library.h"

#include <dlfcn.h>

#include <memory>

#include "common/harness/bench/peer_names.h"
#include "common/harness/bench/peers.h"

namespace gg {
namespace {

class LibraryPeer : public Peer {
 public:
  LibraryPeer(const std::string& path, bool sustained)
      : name_(library_peer_name(path)), sustained_(sustained) {
    // Without a slash dlopen would look in the system's folders.
    const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
    void* const so = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!so) throw Error(Exit::no_device, format("cannot be loaded: %s", dlerror()));
    find(so, version_, "gg_peer_version", true);
    find(so, prepare_, "gg_peer_prepare", false);
    find(so, prepare_glu_, "gg_peer_prepare_glu", false);
    find(so, prepare_gradient_, "gg_peer_prepare_gradient", false);
    if (!prepare_ && !prepare_glu_ && !prepare_gradient_) find(so, prepare_, "gg_peer_prepare", true);
    find(so, stage_, "gg_peer_stage", false);
    find(so, launch_, "gg_peer_launch", true);
    find(so, finish_, "gg_peer_finish", false);
    find(so, release_, "gg_peer_release", true);
  }

  std::string name() const override { return name_; }
  std::string version() const override { return version_(); }

  PeerWork prepare(const Buffers& buffers, Machine&) override {
    const Problem& p = buffers.problem();
    const Formats& formats = p.formats();
    const Epilogue& epilogue = buffers.setup().request.epilogue;
    const bool glu = epilogue.op == Operator::glu;
    require(glu || epilogue.op == Operator::gemm, "takes a product or a gated linear unit");
    require(!glu || prepare_glu_, "has no gated linear unit (gg_peer_prepare_glu)");
    const bool gradient = buffers.setup().product == Product::weight_gradient;
    require(glu || gradient || prepare_, "has no product (gg_peer_prepare)");
    require(!gradient || prepare_gradient_, "has no weight gradient (gg_peer_prepare_gradient)");
    require(!glu || (epilogue.activation == Activation::swiglu && !epilogue.has_c() && !epilogue.bias &&
                     !epilogue.amax),
            "takes swiglu without C, bias and amax");
    const bool one_type = formats.a == formats.b && formats.a != Format::f32 &&
                          (formats.d == formats.a || (gradient && formats.d == Format::f32));
    require(one_type, format("takes bf16 or f16, one type for A, B and D, not %s -> %s", formats.name(),
                             format_info(formats.d).name));
    require(!p.own().sizes, "takes packed groups of one N and one K");
    require(p.b_group_stride() != 0 || p.groups() == 1 || gradient, "takes one B for each group");
    require(!buffers.setup().request.wide_offsets, "takes offsets of type i32, not i64");
    const GgPeerProblem problem = {
        p.a<void>(), p.b<void>(), p.d<void>(), p.offsets().as<int32_t>(),   buffers.layout().offsets.data(),
        p.groups(),  p.n(),       p.k(),       p.b_layout() == BLayout::kn, format_info(formats.a).name,
        sustained_};
    void* prepared = nullptr;
    const GgPeerGlu factors = {p.epilogue().alpha, p.epilogue().prob};
    const GgPeerGradient of_gradient = {format_info(formats.d).name, buffers.setup().request.accumulate};
    const char* const why = gradient ? prepare_gradient_(&problem, &of_gradient, &prepared)
                            : glu    ? prepare_glu_(&problem, &factors, &prepared)
                                     : prepare_(&problem, &prepared);
    cudaGetLastError();  // what autotuning tried in vain is no error of ours
    if (why) throw Error(Exit::bad_input, why);
    const std::shared_ptr<void> state(prepared, release_);
    const auto work = [state](Call* call) -> std::function<void(cudaStream_t)> {
      if (!call) return nullptr;
      return [state, call](cudaStream_t stream) {
        if (const char* what = call(state.get(), stream)) throw Error(Exit::device_error, what);
      };
    };
    return {work(stage_), work(launch_), work(finish_)};
  }

 private:
  using Call = const char*(void* state, cudaStream_t stream);

  template <class Function>
  static void find(void* so, Function*& function, const char* name, bool wanted) {
    function = reinterpret_cast<Function*>(dlsym(so, name));
    if (!function && wanted) {
      throw Error(Exit::no_device,
                  format("the library lacks %s (common/harness/bench/peer_library.h)", name));
    }
  }
  static void require(bool holds, const std::string& sentence) {
    if (!holds) throw Error(Exit::bad_input, sentence);
  }

  const std::string name_;
  const bool sustained_;
  decltype(gg_peer_version)* version_ = nullptr;
  decltype(gg_peer_prepare)* prepare_ = nullptr;
  decltype(gg_peer_prepare_glu)* prepare_glu_ = nullptr;
  decltype(gg_peer_prepare_gradient)* prepare_gradient_ = nullptr;
  Call *stage_ = nullptr, *launch_ = nullptr, *finish_ = nullptr;
  decltype(gg_peer_release)* release_ = nullptr;
};

}  // namespace

std::unique_ptr<Peer> load_library_peer(const std::string& path, bool sustained) {
  return std::make_unique<LibraryPeer>(path, sustained);
}

}  // namespace gg
