// SPDX-License-Identifier: MIT
//
// cuBLAS by its C interface, looked up with dlopen. cuBLAS is column-major, so D^T = B^T * A^T is asked of
// it: B comes first, N is its m, and every leading dimension is the row pitch; a B [N,K] has to be
// transposed. Names and constants: cuBLAS documentation, sections "cublasGemmEx",
// "cublasGemmStridedBatchedEx", "cublasGemmGroupedBatchedEx", and cublas_api.h.

#include "common/bench/peers.h"

#include <dlfcn.h>
#include <library_types.h>

#include <algorithm>

#include "common/verify/verify.h"

namespace gg {
namespace {

constexpr int kOpN = 0;            // CUBLAS_OP_N
constexpr int kOpT = 1;            // CUBLAS_OP_T
constexpr int kCompute32F = 68;    // CUBLAS_COMPUTE_32F
constexpr int kNotSupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED
constexpr int kDefaultAlgo = -1;   // CUBLAS_GEMM_DEFAULT
constexpr size_t kWorkspaceBytes = size_t(64) << 20;

cudaDataType_t type_of(Format format) {
  return format == Format::f32 ? CUDA_R_32F : format == Format::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

class CublasPeer : public Peer {
 public:
  explicit CublasPeer(const std::string& name) : name_(name) {}
  std::string name() const override { return name_; }
  std::string version() const override { return "cuBLAS " + cublas_.version(); }
  PeerWork prepare(const Buffers& buffers, Machine& machine) override {
    const std::string why = unfit(name_, buffers.setup().formats, buffers.shape());
    if (!why.empty()) throw Error(Exit::bad_input, why);
    return {nullptr, cublas_.launch(name_, buffers, machine), nullptr};
  }

 private:
  const std::string name_;
  Cublas cublas_;
};

}  // namespace

std::unique_ptr<Peer> load_peer(const std::string& peer) {
  if (!library_peer_name(peer).empty()) return load_library_peer(peer);
  return std::make_unique<CublasPeer>(peer);
}

std::function<void(int, cudaStream_t)> prepare_and_check(Peer& peer, const BufferSets& sets, Machine& machine,
                                                         uint64_t seed) {
  const auto step = [&](const PeerWork::Step& work) {
    if (work) machine.run(work);
  };
  std::vector<PeerWork> works;
  for (const auto& set : sets) {
    works.push_back(peer.prepare(*set, machine));
    step(works.back().stage);
  }
  const auto fill = [&](size_t set, uint64_t add) {
    sets[set]->fill_operands({Fill::Kind::normal, 0, seed + set + add, 0});
    step(works[set].stage);
  };
  const auto check = [&](size_t set, const std::function<void()>& launch, const char* otherwise) {
    fill(set, 1000);  // not what preparation saw: what was computed there must not pass for a launch's work
    const bool right = right_on_random_data(machine, *sets[set], seed, [&] {
      launch();
      step(works[set].finish);
    });
    fill(set, 0);
    if (!right) throw Error(Exit::check_failed, otherwise);
  };
  const auto launched = [&] { machine.run(works[0].launch); };
  check(0, launched, "its result fails our check, so it is not timed");
  const size_t last = sets.size() - 1;
  machine.run(works[last].launch);  // modules are loaded before a capture
  check(last, machine.captured(works[last].launch),
        "its result in a replayed graph fails our check, so it is not timed");
  return [works](int set, cudaStream_t stream) { works[size_t(set)].launch(stream); };
}

const std::vector<const char*>& cublas_names() {
  static const std::vector<const char*> names = {"cublas_loop", "cublas_grouped", "cublas_strided",
                                                 "cublas_plain"};
  return names;
}

std::string unfit(const std::string& peer, const Formats& formats, const Shape& shape) {
  if (formats.a != formats.b || (formats.d != formats.a && formats.d != Format::f32)) {
    return "takes one element type for A and B, and that type or f32 for D";
  }
  const bool shared = shape.shared_b || shape.groups() == 1;
  if (peer == "cublas_plain" && (!shared || shape.own_sizes))
    return "wants one B for all groups (--shared-b)";
  if (peer != "cublas_strided") return "";
  for (int g = 0; g < shape.groups(); ++g) {
    const int m = shape.m[size_t(g)];
    if (m == 0 || m != shape.m[0] || shape.n_of(g) != shape.n_of(0) || shape.k_of(g) != shape.k_of(0))
      return "wants equal groups";
  }
  return "";
}

struct Cublas::Library {
  using Handle = void*;
  int (*create)(Handle*);
  int (*destroy)(Handle);
  int (*get_version)(Handle, int*);
  int (*set_stream)(Handle, cudaStream_t);
  int (*set_workspace)(Handle, void*, size_t);
  int (*gemm)(Handle, int, int, int, int, int, const void* alpha, const void* a, cudaDataType_t, int lda,
              const void* b, cudaDataType_t, int ldb, const void* beta, void* c, cudaDataType_t, int ldc,
              int compute, int algo);
  int (*gemm_strided)(Handle, int, int, int, int, int, const void* alpha, const void* a, cudaDataType_t,
                      int lda, long long stride_a, const void* b, cudaDataType_t, int ldb, long long stride_b,
                      const void* beta, void* c, cudaDataType_t, int ldc, long long stride_c, int batch,
                      int compute, int algo);
  int (*gemm_grouped)(Handle, const int* op_a, const int* op_b, const int* m, const int* n, const int* k,
                      const void* alpha, const void* const* a, cudaDataType_t, const int* lda,
                      const void* const* b, cudaDataType_t, const int* ldb, const void* beta, void* const* c,
                      cudaDataType_t, const int* ldc, int group_count, const int* group_size, int compute);
  void* so = nullptr;
  Handle handle = nullptr;
  void* workspace = nullptr;

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(so, name));
    if (!function) throw Error(Exit::no_device, format("cuBLAS lacks %s: version 13 is wanted", name));
  }
  void check(int status, const char* call) const {
    if (status == kNotSupported) {
      throw Error(Exit::device_error,
                  format("%s has no such product: cuBLAS says it is not supported", call));
    }
    if (status != 0) throw Error(Exit::device_error, format("%s returned cuBLAS status %d", call, status));
  }
};

Cublas::Cublas() : library_(std::make_unique<Library>()) {
  Library& lib = *library_;
  lib.so = dlopen("libcublas.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!lib.so) {
    throw Error(Exit::no_device,
                format("cuBLAS 13 cannot be loaded (%s): install the CUDA Toolkit 13, or `pip install "
                       "nvidia-cublas` and put its lib folder on LD_LIBRARY_PATH",
                       dlerror()));
  }
  lib.find(lib.create, "cublasCreate_v2");
  lib.find(lib.destroy, "cublasDestroy_v2");
  lib.find(lib.get_version, "cublasGetVersion_v2");
  lib.find(lib.set_stream, "cublasSetStream_v2");
  lib.find(lib.set_workspace, "cublasSetWorkspace_v2");
  lib.find(lib.gemm, "cublasGemmEx");
  lib.find(lib.gemm_strided, "cublasGemmStridedBatchedEx");
  lib.find(lib.gemm_grouped, "cublasGemmGroupedBatchedEx");
  lib.check(lib.create(&lib.handle), "cublasCreate");
  GG_CHECK(
      cudaMalloc(&lib.workspace, kWorkspaceBytes));  // of our own, so that calls can be captured in a graph
}

Cublas::~Cublas() {
  if (library_->handle) library_->destroy(library_->handle);
  cudaFree(library_->workspace);
}

std::string Cublas::version() const {
  int version = 0;
  library_->check(library_->get_version(library_->handle, &version), "cublasGetVersion");
  return format("%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

std::function<void(cudaStream_t)> Cublas::launch(const std::string& peer, const Buffers& buffers,
                                                 Machine& machine) {
  Library* lib = library_.get();
  const Formats formats = buffers.setup().formats;
  const cudaDataType_t type = type_of(formats.a), d_type = type_of(formats.d);
  const Matrices m = buffers.matrices();
  const auto at = [](const void* base, Format format, int64_t offset) {
    return const_cast<char*>(static_cast<const char*>(base)) + offset * format_info(format).bytes;
  };
  const auto a_of = [=](const Group& g) { return at(m.a, formats.a, g.a.offset); };
  const auto b_of = [=](const Group& g) { return at(m.b, formats.b, g.b.offset); };
  const auto d_of = [=](const Group& g) { return at(m.d, formats.d, g.d.offset); };
  std::vector<Group> groups;
  for (const Group& group : buffers.layout().groups) {
    if (group.m > 0) groups.push_back(group);
  }
  const auto bind = [lib](cudaStream_t stream) {
    lib->check(lib->set_stream(lib->handle, stream), "cublasSetStream");
    lib->check(lib->set_workspace(lib->handle, lib->workspace, kWorkspaceBytes), "cublasSetWorkspace");
  };
  static const float one = 1, zero = 0;
  const int op_b = buffers.setup().b_layout == BLayout::nk ? kOpT : kOpN;
  const auto gemm = [=](const Group& g, int rows) {
    lib->check(lib->gemm(lib->handle, op_b, kOpN, g.n, rows, g.k, &one, b_of(g), type, int(g.b.ld), a_of(g),
                         type, int(g.a.ld), &zero, d_of(g), d_type, int(g.d.ld), kCompute32F, kDefaultAlgo),
               "cublasGemmEx");
  };

  if (peer == "cublas_loop") {
    return [=](cudaStream_t stream) {
      bind(stream);
      for (const Group& g : groups) gemm(g, g.m);
    };
  }
  if (peer == "cublas_plain") {
    const int rows = int(buffers.layout().offsets.back());
    const Group first = buffers.layout().groups[0];
    return [=](cudaStream_t stream) {
      bind(stream);
      gemm(first, rows);
    };
  }
  if (peer == "cublas_strided") {
    const std::vector<Group> all = buffers.layout().groups;
    const int64_t next = all.size() > 1 ? 1 : 0;
    const Group f = all[0], s = all[size_t(next)];
    return [=](cudaStream_t stream) {
      bind(stream);
      lib->check(lib->gemm_strided(lib->handle, op_b, kOpN, f.n, f.m, f.k, &one, b_of(f), type, int(f.b.ld),
                                   s.b.offset - f.b.offset, a_of(f), type, int(f.a.ld),
                                   s.a.offset - f.a.offset, &zero, d_of(f), d_type, int(f.d.ld),
                                   s.d.offset - f.d.offset, int(all.size()), kCompute32F, kDefaultAlgo),
                 "cublasGemmStridedBatchedEx");
    };
  }
  GG_REQUIRE(peer == "cublas_grouped", "%s: no such peer", peer.c_str());
  struct Arrays {  // host arrays of sizes; pointers on the device
    std::vector<int> op_b, op_a, m, n, k, lda, ldb, ldc, size;
    std::vector<float> alpha, beta;
    std::shared_ptr<void> pointers;
  };
  const auto arrays = std::make_shared<Arrays>();
  const size_t count = groups.size();
  std::vector<char*> pointers(3 * count);
  for (size_t i = 0; i < count; ++i) {
    const Group& g = groups[i];
    arrays->op_b.push_back(op_b);
    arrays->op_a.push_back(kOpN);
    arrays->m.push_back(g.n);
    arrays->n.push_back(g.m);
    arrays->k.push_back(g.k);
    arrays->lda.push_back(int(g.b.ld));
    arrays->ldb.push_back(int(g.a.ld));
    arrays->ldc.push_back(int(g.d.ld));
    arrays->size.push_back(1);
    arrays->alpha.push_back(1);
    arrays->beta.push_back(0);
    pointers[i] = b_of(g);
    pointers[count + i] = a_of(g);
    pointers[2 * count + i] = d_of(g);
  }
  arrays->pointers = {machine.allocate(pointers.size() * sizeof(char*), "cuBLAS's pointer arrays"),
                      [&machine](void* memory) { machine.release(memory); }};
  machine.upload(arrays->pointers.get(), pointers.data(), pointers.size() * sizeof(char*));
  return [=](cudaStream_t stream) {
    if (count == 0) return;
    bind(stream);
    void** p = static_cast<void**>(arrays->pointers.get());
    lib->check(lib->gemm_grouped(lib->handle, arrays->op_b.data(), arrays->op_a.data(), arrays->m.data(),
                                 arrays->n.data(), arrays->k.data(), arrays->alpha.data(), p, type,
                                 arrays->lda.data(), p + count, type, arrays->ldb.data(), arrays->beta.data(),
                                 p + 2 * count, d_type, arrays->ldc.data(), int(count), arrays->size.data(),
                                 kCompute32F),
               "cublasGemmGroupedBatchedEx");
  };
}

void Cublas::square_product(Format format, const void* a, const void* b, void* d, int n,
                            cudaStream_t stream) {
  Library& lib = *library_;
  static const float one = 1, zero = 0;
  const cudaDataType_t type = type_of(format);
  lib.check(lib.set_stream(lib.handle, stream), "cublasSetStream");
  lib.check(lib.set_workspace(lib.handle, lib.workspace, kWorkspaceBytes), "cublasSetWorkspace");
  lib.check(lib.gemm(lib.handle, kOpN, kOpN, n, n, n, &one, a, type, n, b, type, n, &zero, d, type, n,
                     kCompute32F, kDefaultAlgo),
            "cublasGemmEx");
}

}  // namespace gg
