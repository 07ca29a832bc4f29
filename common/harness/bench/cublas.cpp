// SPDX-License-Identifier: MIT
//
// cuBLAS by its C interface, looked up with dlopen. cuBLAS is column-major, so D^T = B^T * A^T is
// asked of it: B comes first, N is its m, and every leading dimension is the row pitch; a B [N,K]
// has to be transposed. Names and constants: cuBLAS documentation, sections "cublasGemmEx",
// "cublasGemmStridedBatchedEx", "cublasGemmGroupedBatchedEx", and cublas_api.h.

#include "common/harness/bench/cublas.h"

#include <dlfcn.h>
#include <library_types.h>

#include <cstdio>

#include "common/harness/bench/cublas_lt.h"

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
  CublasPeer(const std::string& name, bool sustained) : name_(name), sustained_(sustained) {}
  std::string name() const override { return name_; }
  std::string version() const override {
    const bool tuned = name_ == "cublas_strided" && cublas_.has_proposals();
    return "cuBLAS " + cublas_.version() + (tuned ? " tuned" : "");
  }
  PeerWork prepare(const Buffers& buffers, Machine& machine) override {
    const std::string why =
        unfit(name_, buffers.setup().request.formats, buffers.shape(), buffers.setup().product);
    if (!why.empty()) throw Error(Exit::bad_input, why);
    return {nullptr, cublas_.launch(name_, buffers, machine, sustained_), nullptr};
  }

 private:
  const std::string name_;
  const bool sustained_;
  Cublas cublas_;
};

}  // namespace

std::unique_ptr<Peer> cublas_peer(const std::string& name, bool sustained) {
  return std::make_unique<CublasPeer>(name, sustained);
}

std::string unfit(const std::string& peer, const Formats& formats, const Shape& shape, Product product) {
  if (formats.has_scales()) return "is called without block scales here";
  if (formats.a != formats.b || (formats.d != formats.a && formats.d != Format::f32)) {
    return "takes one element type for A and B, and that type or f32 for D";
  }
  const bool shared = shape.shared_b || shape.groups() == 1;
  if (peer == "cublas_plain" && (!shared || shape.own_sizes || product == Product::weight_gradient))
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
  std::unique_ptr<CublasLt> lt;  // null where it cannot be loaded
  peers::Choices choices;        // of cublas_strided

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
  // Makes the calls that follow run on this stream, in our own workspace.
  void bind(cudaStream_t stream) const {
    check(set_stream(handle, stream), "cublasSetStream");
    check(set_workspace(handle, workspace, kWorkspaceBytes), "cublasSetWorkspace");
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
  // A workspace of our own, so that calls can be captured in a graph.
  GG_CHECK(cudaMalloc(&lib.workspace, kWorkspaceBytes));
  try {
    lib.lt = std::make_unique<CublasLt>();
  } catch (const Error&) {  // then cublas_strided is cuBLAS's own call alone
  }
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

bool Cublas::has_proposals() const { return library_->lt != nullptr; }

namespace {

constexpr float kOne = 1, kZero = 0;

// The operands of one problem as cuBLAS takes them: its A is our B.
struct CublasOperands {
  Matrices matrices;
  cudaDataType_t type, d_type;
  int op_b, op_a;
  const float* beta;

  explicit CublasOperands(const Buffers& buffers)
      : matrices(buffers.matrices()),
        type(type_of(matrices.formats.a)),
        d_type(type_of(matrices.formats.d)),
        op_b(buffers.setup().request.b_layout == BLayout::nk ? kOpT : kOpN),
        op_a(buffers.setup().product == Product::weight_gradient ? kOpT : kOpN),
        beta(matrices.accumulates ? &kOne : &kZero) {}

  char* a(const Group& g) const { return at(matrices.a, matrices.formats.a, g.a.offset); }
  char* b(const Group& g) const { return at(matrices.b, matrices.formats.b, g.b.offset); }
  char* d(const Group& g) const { return at(matrices.d, matrices.formats.d, g.d.offset); }

 private:
  static char* at(const void* base, Format format, int64_t offset) {
    return const_cast<char*>(static_cast<const char*>(base)) + bytes_of(format, offset);
  }
};

// The arguments that cublasGemmGroupedBatchedEx reads in each launch: host arrays of sizes, and
// pointers on the device.
struct GroupedArrays {
  std::vector<int> op_b, op_a, m, n, k, lda, ldb, ldc, size;
  std::vector<float> alpha, beta;
  std::shared_ptr<void> pointers;

  GroupedArrays(const std::vector<Group>& groups, const CublasOperands& operands, Machine& machine) {
    const size_t count = groups.size();
    std::vector<char*> host(3 * count);
    for (size_t i = 0; i < count; ++i) {
      const Group& g = groups[i];
      op_b.push_back(operands.op_b);
      op_a.push_back(operands.op_a);
      m.push_back(g.n);
      n.push_back(g.m);
      k.push_back(g.k);
      lda.push_back(int(g.b.ld));
      ldb.push_back(int(g.a.ld));
      ldc.push_back(int(g.d.ld));
      size.push_back(1);
      alpha.push_back(1);
      beta.push_back(*operands.beta);
      host[i] = operands.b(g);
      host[count + i] = operands.a(g);
      host[2 * count + i] = operands.d(g);
    }
    pointers = {machine.allocate(host.size() * sizeof(char*), "cuBLAS's pointer arrays"),
                [&machine](void* memory) { machine.release(memory); }};
    machine.upload(pointers.get(), host.data(), host.size() * sizeof(char*));
  }
};

}  // namespace

struct Cublas::Calls {  // one function for each name; each binds the stream and multiplies
  Library* lib;
  CublasOperands x;

  void gemm(const Group& g, int rows) const {
    lib->check(
        lib->gemm(lib->handle, x.op_b, x.op_a, g.n, rows, g.k, &kOne, x.b(g), x.type, int(g.b.ld), x.a(g),
                  x.type, int(g.a.ld), x.beta, x.d(g), x.d_type, int(g.d.ld), kCompute32F, kDefaultAlgo),
        "cublasGemmEx");
  }

  // All groups, which are equal: the distance of the first two, the same one where there is one,
  // is the stride.
  StridedBatch batch(const std::vector<Group>& groups) const {
    const Group &f = groups.front(), &next = groups[groups.size() > 1 ? 1 : 0];
    return {x.b(f),
            x.a(f),
            x.d(f),
            x.op_b,
            f.n,
            f.m,
            f.k,
            int(groups.size()),
            f.b.ld,
            f.a.ld,
            f.d.ld,
            next.b.offset - f.b.offset,
            next.a.offset - f.a.offset,
            next.d.offset - f.d.offset,
            x.type,
            x.d_type,
            x.op_a,
            *x.beta};
  }

  void strided(const StridedBatch& s) const {
    lib->check(lib->gemm_strided(lib->handle, s.op_a, s.op_b, s.m, s.n, s.k, &kOne, s.a, s.type, int(s.lda),
                                 s.stride_a, s.b, s.type, int(s.ldb), s.stride_b, &s.beta, s.d, s.d_type,
                                 int(s.ldd), s.stride_d, s.batch, kCompute32F, kDefaultAlgo),
               "cublasGemmStridedBatchedEx");
  }

  void grouped(const GroupedArrays& arrays) const {
    const size_t count = arrays.m.size();
    if (count == 0) return;
    void** p = static_cast<void**>(arrays.pointers.get());
    lib->check(
        lib->gemm_grouped(lib->handle, arrays.op_b.data(), arrays.op_a.data(), arrays.m.data(),
                          arrays.n.data(), arrays.k.data(), arrays.alpha.data(), p, x.type, arrays.lda.data(),
                          p + count, x.type, arrays.ldb.data(), arrays.beta.data(), p + 2 * count, x.d_type,
                          arrays.ldc.data(), int(count), arrays.size.data(), kCompute32F),
        "cublasGemmGroupedBatchedEx");
  }
};

namespace {

struct Called final : peers::Way {
  explicit Called(std::function<void(cudaStream_t)> call_) : call(std::move(call_)) {}
  void launch(cudaStream_t stream) override { call(stream); }
  const std::function<void(cudaStream_t)> call;
};

// The fastest of cuBLAS's own call and of what cublasLt proposes.
std::function<void(cudaStream_t)> fastest(const StridedBatch& b, std::function<void(cudaStream_t)> own_call,
                                          std::vector<peers::Offer> offers, peers::Choices& choices,
                                          bool sustained) {
  offers.push_back({"cublasGemmStridedBatchedEx", [own_call] { return std::make_unique<Called>(own_call); }});
  const std::vector<int64_t> key = {b.op_a,     b.m,    b.n,      b.k,        b.batch,
                                    b.lda,      b.ldb,  b.ldd,    b.stride_a, b.stride_b,
                                    b.stride_d, b.type, b.d_type, b.op_b,     int64_t(b.beta)};
  try {
    const std::shared_ptr<peers::Way> way = choices.choose(key, offers, sustained);
    return [way](cudaStream_t stream) { way->launch(stream); };
  } catch (const std::runtime_error& error) {
    throw Error(Exit::device_error, error.what());
  }
}

}  // namespace

std::function<void(cudaStream_t)> Cublas::launch(const std::string& peer, const Buffers& buffers,
                                                 Machine& machine, bool sustained) {
  const Calls calls{library_.get(), CublasOperands(buffers)};
  const auto bound = [calls](auto multiply) -> std::function<void(cudaStream_t)> {
    return [calls, multiply](cudaStream_t stream) {
      calls.lib->bind(stream);
      multiply(calls);
    };
  };
  const std::vector<Group> all = buffers.layout().groups;
  std::vector<Group> groups;
  for (const Group& group : all) {
    if (group.m > 0) groups.push_back(group);
  }
  if (peer == "cublas_loop") {
    return bound([groups](const Calls& c) {
      for (const Group& g : groups) c.gemm(g, g.m);
    });
  }
  if (peer == "cublas_plain") {
    const int rows = int(buffers.layout().offsets.back());
    return bound([first = all[0], rows](const Calls& c) { c.gemm(first, rows); });
  }
  if (peer == "cublas_strided") {
    const StridedBatch batch = calls.batch(all);
    std::vector<peers::Offer> offers;
    try {
      const auto& lt = library_->lt;
      if (lt) offers = lt->offers(library_->handle, batch, library_->workspace, kWorkspaceBytes);
    } catch (const Error& error) {
      std::fprintf(stderr, "cublas_strided without proposals of cublasLt: %s\n", error.what());
    }
    return fastest(batch, bound([batch](const Calls& c) { c.strided(batch); }), std::move(offers),
                   library_->choices, sustained);
  }
  GG_REQUIRE(peer == "cublas_grouped", "%s: no such peer", peer.c_str());
  const auto arrays = std::make_shared<const GroupedArrays>(groups, calls.x, machine);
  return bound([arrays](const Calls& c) { c.grouped(*arrays); });
}

void Cublas::square_product(Format format, const void* a, const void* b, void* d, int n,
                            cudaStream_t stream) {
  Library& lib = *library_;
  const cudaDataType_t type = type_of(format);
  lib.bind(stream);
  lib.check(lib.gemm(lib.handle, kOpN, kOpN, n, n, n, &kOne, a, type, n, b, type, n, &kZero, d, type, n,
                     kCompute32F, kDefaultAlgo),
            "cublasGemmEx");
}

std::function<void(cudaStream_t)> Cublas::scaled_square_product(Format format, const void* a, const void* sfa,
                                                                const void* b, const void* sfb, void* d,
                                                                int n) const {
  constexpr int kVec16Ue4m3 = 1, kVec32Ue8m0 = 2;  // CUBLASLT_MATMUL_MATRIX_SCALE_...
  const bool four_bits = format == Format::e2m1;
  const StridedBatch one = {.a = b,
                            .b = a,
                            .d = d,
                            .op_a = kOpT,
                            .m = n,
                            .n = n,
                            .k = n,
                            .batch = 1,
                            .lda = n,
                            .ldb = n,
                            .ldd = n,
                            .stride_a = 0,
                            .stride_b = 0,
                            .stride_d = 0,
                            .type = four_bits ? CUDA_R_4F_E2M1 : CUDA_R_8F_E4M3,
                            .d_type = CUDA_R_16BF,
                            .scale_mode = four_bits ? kVec16Ue4m3 : kVec32Ue8m0,
                            .a_scales = sfb,
                            .b_scales = sfa};
  std::vector<peers::Offer> offers;
  if (library_->lt)
    offers = library_->lt->offers(library_->handle, one, library_->workspace, kWorkspaceBytes);
  if (offers.empty()) {
    throw Error(Exit::no_device,
                gg::format("cublasLt multiplies no %s with block scales here", format_info(format).name));
  }
  const std::shared_ptr<peers::Way> way = offers.front().make();
  return [way](cudaStream_t stream) { way->launch(stream); };
}

}  // namespace gg
