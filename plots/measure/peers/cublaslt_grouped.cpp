// SPDX-License-Identifier: MIT
//
// The peer "cublaslt_grouped": the grouped layouts of a recent cublasLt, which reads every group's
// sizes and pointers on the device. The library lies where CUBLASLT_FILE says (build.py --cublas),
// beside the cuBLAS that the harness loads by its name, so that one run times both. gg_peer_prepare
// times what its heuristic proposes for the problem's average sizes, and keeps the fastest. cuBLAS
// is column-major, so D^T = B^T * A^T is asked of it. Names, constants and limits: cuBLAS
// documentation, sections "cublasLtGroupedMatrixLayoutCreate" and
// "cublasLtMatmulPreferenceAttributes_t", its release notes, and cublasLt.h. The averages take
// eight bytes, where the header says four.

#include <dlfcn.h>
#include <library_types.h>

#include "common/harness/bench/peer_library.h"
#include "support.h"

namespace {

constexpr int kCompute32F = 68;                 // CUBLAS_COMPUTE_32F
constexpr int kPointerMode = 2, kOnDevice = 1;  // CUBLASLT_MATMUL_DESC_POINTER_MODE, _DEVICE
constexpr int kTransA = 3;                      // CUBLASLT_MATMUL_DESC_TRANSA
constexpr int kMostWorkspace = 1;               // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
constexpr int kLeastAlignment = 5;  // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; B, C and D follow
// CUBLASLT_MATMUL_PREF_GROUPED_AVERAGE_REDUCTION_DIM, ..
constexpr int kAverageK = 13, kAverageRows = 14;
constexpr int kAverageColumns = 15;  // .. _GROUPED_DESC_D_AVERAGE_ROWS and _COLS
constexpr int kMostProposals = 32;
constexpr size_t kWorkspaceBytes = size_t(64) << 20;
// On Hopper, 13.4 to 13.6 may hang where launches share a workspace, as all those of a way do.
constexpr size_t kLeastVersion = 130700;

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

// The largest power of two, up to 256, that divides the addresses of all groups' matrices.
template <class T>
uint32_t alignment(const std::vector<T*>& pointers) {
  uint32_t bytes = 256;
  for (const void* each : pointers) {
    while (reinterpret_cast<uintptr_t>(each) % bytes) bytes /= 2;
  }
  return bytes;
}

std::string version_text(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

struct Library {
  size_t (*version)();
  int (*create)(void** handle);
  int (*product_create)(void** product, int compute, cudaDataType_t scale);
  int (*product_set)(void* product, int attribute, const void* value, size_t bytes);
  int (*product_destroy)(void* product);
  int (*grouped_create)(void** matrix, cudaDataType_t, int groups, const void* rows, const void* columns,
                        const void* ld);
  int (*matrix_destroy)(void* matrix);
  int (*preference_create)(void** preference);
  int (*preference_set)(void* preference, int attribute, const void* value, size_t bytes);
  int (*preference_destroy)(void* preference);
  int (*propose)(void* handle, void* product, void* a, void* b, void* c, void* d, void* preference, int most,
                 Proposal*, int* count);
  int (*multiply)(void* handle, void* product, const void* alpha, const void* a, void* a_matrix,
                  const void* b, void* b_matrix, const void* beta, const void* c, void* c_matrix, void* d,
                  void* d_matrix, const Algorithm*, void* workspace, size_t workspace_bytes, cudaStream_t);
  void* handle = nullptr;

  // Throws std::runtime_error where the file cannot be loaded, is too old or finds no GPU.
  Library() {
    void* const so = dlopen(CUBLASLT_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!so) throw std::runtime_error(std::string("cublasLt cannot be loaded: ") + dlerror());
    find(so, version, "cublasLtGetVersion");
    if (version() < kLeastVersion) {
      throw std::runtime_error("cublasLt " + version_text(version()) + ": grouped layouts are wanted of " +
                               version_text(kLeastVersion) + " or later");
    }
    find(so, create, "cublasLtCreate");
    find(so, product_create, "cublasLtMatmulDescCreate");
    find(so, product_set, "cublasLtMatmulDescSetAttribute");
    find(so, product_destroy, "cublasLtMatmulDescDestroy");
    find(so, grouped_create, "cublasLtGroupedMatrixLayoutCreate");
    find(so, matrix_destroy, "cublasLtMatrixLayoutDestroy");
    find(so, preference_create, "cublasLtMatmulPreferenceCreate");
    find(so, preference_set, "cublasLtMatmulPreferenceSetAttribute");
    find(so, preference_destroy, "cublasLtMatmulPreferenceDestroy");
    find(so, propose, "cublasLtMatmulAlgoGetHeuristic");
    find(so, multiply, "cublasLtMatmul");
    check(create(&handle), "cublasLtCreate");
  }

  static void check(int status, const char* call) {
    if (status != 0) {
      throw std::runtime_error(std::string(call) + " returned cuBLAS status " + std::to_string(status));
    }
  }

 private:
  template <class Function>
  static void find(void* so, Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(so, name));
    if (!function) throw std::runtime_error(std::string("cublasLt lacks ") + name);
  }
};

const Library& library() {
  static const Library the_library;
  return the_library;
}

// The arrays of sizes and pointers that cublasLt reads on the device in each launch, and what
// describes them. cublasLt's A [N,K] is our B, its B [K,M_g] our A, and its D [N,M_g] our D.
class Product {
 public:
  explicit Product(const GgPeerProblem& p) : groups_(p.groups) {
    std::vector<const char*> a, b;
    std::vector<char*> d;
    std::vector<int32_t> rows;
    for (int g = 0; g < p.groups; ++g) {
      const int64_t first = p.host_offsets[g];
      rows.push_back(int32_t(p.host_offsets[g + 1] - first));
      a.push_back(static_cast<const char*>(p.a) + kBytes * first * p.k);
      b.push_back(static_cast<const char*>(p.b) + kBytes * g * p.n * p.k);
      d.push_back(static_cast<char*>(p.d) + kBytes * first * p.n);
    }
    m_ = peers::on_device(rows);
    n_ = peers::on_device(std::vector<int32_t>(rows.size(), p.n));
    k_ = peers::on_device(std::vector<int32_t>(rows.size(), p.k));
    a_ = peers::on_device(a);
    b_ = peers::on_device(b);
    d_ = peers::on_device(d);
    one_and_zero_ = peers::on_device(std::vector<float>{1, 0});
    type_ = std::string(p.format) == "f16" ? CUDA_R_16F : CUDA_R_16BF;
    describe(p.b_is_kn);
    alignments_[0] = alignment(b);
    alignments_[1] = alignment(a);
    alignments_[2] = alignments_[3] = alignment(d);
    averages_[0] = p.k;
    averages_[1] = p.n;
    averages_[2] = p.host_offsets[p.groups] / p.groups;
  }

  std::vector<Proposal> proposals() const {
    const Library& lt = library();
    void* created = nullptr;
    lt.check(lt.preference_create(&created), "cublasLtMatmulPreferenceCreate");
    const Described preference = {created, lt.preference_destroy};
    const auto set = [&](int attribute, auto value) {
      lt.check(lt.preference_set(created, attribute, &value, sizeof value),
               "cublasLtMatmulPreferenceSetAttribute");
    };
    set(kMostWorkspace, kWorkspaceBytes);
    set(kAverageK, averages_[0]);
    set(kAverageRows, averages_[1]);
    set(kAverageColumns, averages_[2]);
    for (int i = 0; i < 4; ++i) set(kLeastAlignment + i, alignments_[i]);
    std::vector<Proposal> proposals(kMostProposals);
    int count = 0;
    lt.check(lt.propose(lt.handle, product_.get(), b_matrix_.get(), a_matrix_.get(), d_matrix_.get(),
                        d_matrix_.get(), created, kMostProposals, proposals.data(), &count),
             "cublasLtMatmulAlgoGetHeuristic");
    proposals.resize(size_t(count));
    std::erase_if(proposals, [](const Proposal& each) { return each.state != 0; });
    return proposals;
  }

  void multiply(const Algorithm& by, void* workspace, cudaStream_t stream) const {
    const Library& lt = library();
    const float* const numbers = one_and_zero_.get();
    lt.check(lt.multiply(lt.handle, product_.get(), numbers, b_.get(), b_matrix_.get(), a_.get(),
                         a_matrix_.get(), numbers + 1, d_.get(), d_matrix_.get(), d_.get(), d_matrix_.get(),
                         &by, workspace, kWorkspaceBytes, stream),
             "cublasLtMatmul");
  }

 private:
  using Described = std::shared_ptr<void>;
  static constexpr int64_t kBytes = 2;  // of an element: bf16 or f16

  void describe(bool b_is_kn) {
    const Library& lt = library();
    void* product = nullptr;
    lt.check(lt.product_create(&product, kCompute32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    product_ = {product, lt.product_destroy};
    const auto set = [&](int attribute, int32_t value) {
      lt.check(lt.product_set(product, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
    };
    set(kTransA, b_is_kn ? 0 : 1);
    set(kPointerMode, kOnDevice);  // with numbers of the host, 13.4 to 13.7 may be wrong on Hopper
    b_matrix_ = b_is_kn ? matrix(n_, k_, n_) : matrix(k_, n_, k_);
    a_matrix_ = matrix(k_, m_, k_);
    d_matrix_ = matrix(n_, m_, n_);
  }

  using Sizes = peers::Device<int32_t>;
  Described matrix(const Sizes& rows, const Sizes& columns, const Sizes& ld) const {
    void* created = nullptr;
    library().check(library().grouped_create(&created, type_, groups_, rows.get(), columns.get(), ld.get()),
                    "cublasLtGroupedMatrixLayoutCreate");
    return {created, library().matrix_destroy};
  }

  const int groups_;
  cudaDataType_t type_;
  int64_t averages_[3];     // of K, N and M
  uint32_t alignments_[4];  // of cublasLt's A, B, C and D
  Sizes m_, n_, k_;
  peers::Device<const char*> a_, b_;
  peers::Device<char*> d_;
  peers::Device<float> one_and_zero_;
  Described product_, a_matrix_, b_matrix_, d_matrix_;
};

class Grouped final : public peers::Way {
 public:
  Grouped(std::shared_ptr<const Product> product, const Proposal& by)
      : product_(std::move(product)),
        algorithm_(by.algorithm),
        workspace_(peers::device_array<char>(kWorkspaceBytes)) {}
  void launch(cudaStream_t stream) override { product_->multiply(algorithm_, workspace_.get(), stream); }

 private:
  const std::shared_ptr<const Product> product_;
  const Algorithm algorithm_;
  const peers::Device<char> workspace_;
};

std::vector<peers::Offer> all_offers(const GgPeerProblem& p) {
  const auto product = std::make_shared<const Product>(p);
  std::vector<peers::Offer> offers;
  int count = 0;
  for (const Proposal& proposal : product->proposals()) {
    const std::string name = "proposal " + std::to_string(++count);
    if (!peers::wanted(name)) continue;
    offers.push_back({name, [product, proposal] { return std::make_unique<Grouped>(product, proposal); }});
  }
  return offers;
}

void check_limits(const GgPeerProblem& p) {
  if (p.n % 8 != 0 || p.k % 8 != 0) {
    throw std::runtime_error("N=" + std::to_string(p.n) + " K=" + std::to_string(p.k) +
                             ": grouped layouts want rows that are multiples of 16 bytes");
  }
  if (p.k == 0 || p.n == 0 || p.host_offsets[p.groups] == 0) throw std::runtime_error("nothing to compute");
}

peers::Choices choices;  // of this library

}  // namespace

const char* gg_peer_version() {
  static std::string version;
  const char* const why =
      peers::sentence_of([] { version = "cublasLt " + version_text(library().version()); });
  return why ? "cublasLt" : version.c_str();
}

const char* gg_peer_prepare(const GgPeerProblem* problem, void** state) {
  return peers::sentence_of([&] {
    const GgPeerProblem& p = *problem;
    check_limits(p);
    library();  // what is wrong with it is said before anything is allocated
    std::vector<int64_t> key = {p.n, p.k, p.b_is_kn};
    key.insert(key.end(), p.host_offsets, p.host_offsets + p.groups + 1);
    *state = choices.choose(key, all_offers(p), p.sustained).release();
  });
}

const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return peers::sentence_of([&] { static_cast<peers::Way*>(state)->launch(stream); });
}

void gg_peer_release(void* state) { delete static_cast<peers::Way*>(state); }
