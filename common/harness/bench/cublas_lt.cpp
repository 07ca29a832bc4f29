// SPDX-License-Identifier: MIT
//
// cublasLt by its C interface, looked up with dlopen as cuBLAS is. Names, constants and the
// layout of a result: cuBLAS documentation, sections "cublasLtMatmul",
// "cublasLtMatmulAlgoGetHeuristic", and cublasLt.h.

#include "common/harness/bench/cublas_lt.h"

#include <dlfcn.h>

#include "common/kernel/error.h"

namespace gg {
namespace {

constexpr int kCompute32F = 68;     // CUBLAS_COMPUTE_32F
constexpr int kTransA = 3;          // CUBLASLT_MATMUL_DESC_TRANSA
constexpr int kTransB = 4;          // CUBLASLT_MATMUL_DESC_TRANSB
constexpr int kAScales = 17;        // CUBLASLT_MATMUL_DESC_A_SCALE_POINTER; B follows
constexpr int kAScaleMode = 31;     // CUBLASLT_MATMUL_DESC_A_SCALE_MODE; B follows
constexpr int kBatchCount = 5;      // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
constexpr int kBatchStride = 6;     // CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
constexpr int kMostWorkspace = 1;   // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
constexpr int kLeastAlignment = 5;  // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; B, C and D follow
constexpr int kMostProposals = 32;
constexpr float kOne = 1;

struct Algorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct Proposal {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;  // 0: the others are valid
  float waves;
  int reserved[4];
};

// The largest power of two, up to 256, that divides an address: proposals hold for such pointers.
uint32_t alignment(const void* pointer) {
  uint32_t bytes = 256;
  while (reinterpret_cast<uintptr_t>(pointer) % bytes) bytes /= 2;
  return bytes;
}

}  // namespace

struct CublasLt::Functions {
  int (*product_create)(void** product, int compute, cudaDataType_t scale);
  int (*product_set)(void* product, int attribute, const void* value, size_t bytes);
  int (*product_destroy)(void* product);
  int (*matrix_create)(void** matrix, cudaDataType_t, uint64_t rows, uint64_t columns, int64_t ld);
  int (*matrix_set)(void* matrix, int attribute, const void* value, size_t bytes);
  int (*matrix_destroy)(void* matrix);
  int (*preference_create)(void** preference);
  int (*preference_set)(void* preference, int attribute, const void* value, size_t bytes);
  int (*preference_destroy)(void* preference);
  int (*propose)(void* handle, void* product, void* a, void* b, void* c, void* d, void* preference, int most,
                 Proposal*, int* count);
  int (*multiply)(void* handle, void* product, const void* alpha, const void* a, void* a_matrix,
                  const void* b, void* b_matrix, const void* beta, const void* c, void* c_matrix, void* d,
                  void* d_matrix, const Algorithm*, void* workspace, size_t workspace_bytes, cudaStream_t);

  static void check(int status, const char* call) {
    if (status != 0) throw Error(Exit::device_error, format("%s returned cuBLAS status %d", call, status));
  }
};

CublasLt::CublasLt() {
  void* const so = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!so) throw Error(Exit::no_device, format("cublasLt 13 cannot be loaded (%s)", dlerror()));
  const auto functions = std::make_shared<Functions>();
  const auto find = [so]<class Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(so, name));
    if (!function) throw Error(Exit::no_device, format("cublasLt lacks %s: version 13 is wanted", name));
  };
  find(functions->product_create, "cublasLtMatmulDescCreate");
  find(functions->product_set, "cublasLtMatmulDescSetAttribute");
  find(functions->product_destroy, "cublasLtMatmulDescDestroy");
  find(functions->matrix_create, "cublasLtMatrixLayoutCreate");
  find(functions->matrix_set, "cublasLtMatrixLayoutSetAttribute");
  find(functions->matrix_destroy, "cublasLtMatrixLayoutDestroy");
  find(functions->preference_create, "cublasLtMatmulPreferenceCreate");
  find(functions->preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(functions->preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(functions->propose, "cublasLtMatmulAlgoGetHeuristic");
  find(functions->multiply, "cublasLtMatmul");
  functions_ = functions;
}

// A batch as cublasLt describes it.
class CublasLt::Product {
 public:
  Product(std::shared_ptr<const Functions> functions, void* handle, const StridedBatch& batch,
          void* workspace, size_t workspace_bytes)
      : lt_(std::move(functions)),
        handle_(handle),
        batch_(batch),
        workspace_(workspace),
        workspace_bytes_(workspace_bytes) {
    void* product = nullptr;
    lt_->check(lt_->product_create(&product, kCompute32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    product_ = {product, lt_->product_destroy};
    const auto set = [&](int attribute, const auto& value) {
      lt_->check(lt_->product_set(product, attribute, &value, sizeof value),
                 "cublasLtMatmulDescSetAttribute");
    };
    set(kTransA, batch.op_a);
    set(kTransB, batch.op_b);
    if (batch.scale_mode != 0) {
      const void* const scales[] = {batch.a_scales, batch.b_scales};
      for (int i = 0; i < 2; ++i) {
        set(kAScaleMode + i, batch.scale_mode);
        set(kAScales + i, scales[i]);
      }
    }
    a_ = matrix(batch.type, batch.op_a ? batch.k : batch.m, batch.op_a ? batch.m : batch.k, batch.lda,
                batch.stride_a);
    b_ = matrix(batch.type, batch.op_b ? batch.n : batch.k, batch.op_b ? batch.k : batch.n, batch.ldb,
                batch.stride_b);
    d_ = matrix(batch.d_type, batch.m, batch.n, batch.ldd, batch.stride_d);
  }

  std::vector<Proposal> proposals() const {
    void* created = nullptr;
    lt_->check(lt_->preference_create(&created), "cublasLtMatmulPreferenceCreate");
    const Described preference = {created, lt_->preference_destroy};
    const auto set = [&](int attribute, const auto& value) {
      lt_->check(lt_->preference_set(created, attribute, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
    };
    set(kMostWorkspace, uint64_t(workspace_bytes_));
    const void* const matrices[] = {batch_.a, batch_.b, batch_.d, batch_.d};
    for (int i = 0; i < 4; ++i) set(kLeastAlignment + i, alignment(matrices[i]));
    std::vector<Proposal> proposals(kMostProposals);
    int count = 0;
    const int status = lt_->propose(handle_, product_.get(), a_.get(), b_.get(), d_.get(), d_.get(), created,
                                    kMostProposals, proposals.data(), &count);
    proposals.resize(status == 0 ? size_t(count) : 0);
    std::erase_if(proposals, [](const Proposal& each) { return each.state != 0; });
    return proposals;
  }

  void multiply(const Proposal& by, cudaStream_t stream) const {
    lt_->check(lt_->multiply(handle_, product_.get(), &kOne, batch_.a, a_.get(), batch_.b, b_.get(),
                             &batch_.beta, batch_.d, d_.get(), batch_.d, d_.get(), &by.algorithm, workspace_,
                             workspace_bytes_, stream),
               "cublasLtMatmul");
  }

 private:
  using Described = std::shared_ptr<void>;

  Described matrix(cudaDataType_t type, int rows, int columns, int64_t ld, int64_t stride) const {
    void* created = nullptr;
    lt_->check(lt_->matrix_create(&created, type, uint64_t(rows), uint64_t(columns), ld),
               "cublasLtMatrixLayoutCreate");
    const Described matrix = {created, lt_->matrix_destroy};
    lt_->check(lt_->matrix_set(created, kBatchCount, &batch_.batch, sizeof batch_.batch),
               "cublasLtMatrixLayoutSetAttribute");
    lt_->check(lt_->matrix_set(created, kBatchStride, &stride, sizeof stride),
               "cublasLtMatrixLayoutSetAttribute");
    return matrix;
  }

  const std::shared_ptr<const Functions> lt_;
  void* const handle_;
  const StridedBatch batch_;
  void* const workspace_;
  const size_t workspace_bytes_;
  Described product_, a_, b_, d_;
};

std::vector<peers::Offer> CublasLt::offers(void* handle, const StridedBatch& batch, void* workspace,
                                           size_t workspace_bytes) const {
  struct Proposed final : peers::Way {
    Proposed(std::shared_ptr<const Product> of, const Proposal& by) : product(std::move(of)), proposal(by) {}
    void launch(cudaStream_t stream) override { product->multiply(proposal, stream); }
    const std::shared_ptr<const Product> product;
    const Proposal proposal;
  };
  const auto product = std::make_shared<const Product>(functions_, handle, batch, workspace, workspace_bytes);
  std::vector<peers::Offer> offers;
  for (const Proposal& proposal : product->proposals()) {
    offers.push_back({format("cublasLt, proposal %zu", offers.size() + 1),
                      [product, proposal] { return std::make_unique<Proposed>(product, proposal); }});
  }
  return offers;
}

}  // namespace gg
