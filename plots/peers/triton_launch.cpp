// SPDX-License-Identifier: MIT
//
// The host side of the peer triton_tma. triton_tma.py compiles it together with triton_kernels.inc, which it
// generates: Triton's version, the machine code of each configuration, and the arrays that describe them.

#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/bench/peer_library.h"

struct Kernel {
  const char* name;
  const unsigned char* cubin;
  int threads, shared_bytes, scratch_bytes;  // scratch: of global memory, for each block
  int bm, bn;
  int a_box_rows, b_box_rows;     // that a copy brings
  int least_groups, most_groups;  // that it is meant for
  int numbering;                  // -1, or which of kNumberings has to run before it
};

struct Numbering {  // numbers tile rows of bm rows
  const unsigned char* cubin;
  int threads, shared_bytes, bm;
};

#include "triton_kernels.inc"

namespace {

constexpr int kBoxCols = 64;  // of a map: 128 bytes, the longest swizzle

// Like GG_CHECK, but a library throws nothing at its caller: each function that can fail returns a sentence.
#define TRY(call)                                             \
  if (const cudaError_t error = (call); error != cudaSuccess) \
  return std::string(#call " failed: ") + cudaGetErrorString(error)

// A kernel of the library, loaded when it is first wanted and kept.
std::string load(const unsigned char* cubin, const char* name, int shared_bytes, cudaKernel_t& kernel) {
  static std::map<const unsigned char*, cudaKernel_t> loaded;
  if (!loaded.count(cubin)) {
    cudaLibrary_t library;
    TRY(cudaLibraryLoadData(&library, cubin, nullptr, nullptr, 0, nullptr, nullptr, 0));
    TRY(cudaLibraryGetKernel(&kernel, library, name));
    TRY(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    loaded[cubin] = kernel;
  }
  kernel = loaded[cubin];
  return "";
}

std::string encode(CUtensorMap& map, const void* data, std::vector<cuuint64_t> dims,
                   std::vector<cuuint64_t> stride_bytes, std::vector<cuuint32_t> box) {
  constexpr unsigned kSince = 12000;  // CUDA 12.0
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince, cudaEnableDefault,
                                       &found));
  if (!function) return "the driver has no cuTensorMapEncodeTiled";
  const std::vector<cuuint32_t> element_strides(dims.size(), 1);
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, cuuint32_t(dims.size()), const_cast<void*>(data), dims.data(),
      stride_bytes.data(), box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? ""
                                : "cuTensorMapEncodeTiled refuses a map, error " + std::to_string(result);
}

struct Free {
  void operator()(void* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<void, Free>;

std::string allocate(DeviceMemory& memory, size_t bytes) {
  void* pointer = nullptr;
  TRY(cudaMalloc(&pointer, bytes));
  memory.reset(pointer);
  return "";
}

// One kernel, ready for one problem.
class Launch {
 public:
  std::string prepare(const Kernel& kernel, const GgPeerProblem& p, int band) {
    kernel_ = &kernel;
    band_ = band;
    rows_ = int(p.host_offsets[p.groups]);
    groups_ = p.groups, n_ = p.n, k_ = p.k;
    d_ = p.d, offsets_ = p.offsets;
    if (std::string why = load(kernel.cubin, "grouped_gemm", kernel.shared_bytes, function_); !why.empty())
      return why;

    // The grid follows from sizes that the host knows however rows are shared out: a group has at most one
    // tile row that is not whole.
    int device = 0, multiprocessors = 0, blocks_of_each = 0;
    TRY(cudaGetDevice(&device));
    TRY(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_of_each,
                                                      reinterpret_cast<const void*>(function_),
                                                      kernel.threads, size_t(kernel.shared_bytes)));
    const int most_tile_rows = rows_ / kernel.bm + groups_;
    const int64_t most_tiles = int64_t(most_tile_rows) * ((n_ + kernel.bn - 1) / kernel.bn);
    blocks_ = int(std::min<int64_t>(int64_t(multiprocessors) * blocks_of_each, most_tiles));
    if (blocks_ == 0) return std::string("an SM has no room for a block of ") + kernel.name;

    if (kernel.scratch_bytes > 0) {
      std::string why = allocate(scratch_memory_, size_t(kernel.scratch_bytes) * size_t(blocks_));
      if (!why.empty()) return why;
      scratch_ = scratch_memory_.get();
    }
    if (kernel.numbering >= 0) {
      const Numbering& numbering = kNumberings[kernel.numbering];
      std::string why = load(numbering.cubin, "number_tile_rows", numbering.shared_bytes, numbering_);
      if (why.empty()) why = allocate(table_memory_, sizeof(int32_t) * size_t(1 + 3 * most_tile_rows));
      if (!why.empty()) return why;
      table_ = table_memory_.get();
    }
    return make_maps(p);
  }

  std::string run(cudaStream_t stream) {
    if (numbering_) {
      const Numbering& numbering = kNumberings[kernel_->numbering];
      void* arguments[] = {&offsets_, &table_, &groups_, &profiler_, &profiler_};
      TRY(cudaLaunchKernel(reinterpret_cast<const void*>(numbering_), dim3(unsigned(groups_)),
                           dim3(unsigned(numbering.threads)), arguments, size_t(numbering.shared_bytes),
                           stream));
    }
    // Those of the Triton source in their order, each map followed by its shape and strides; then scratch
    // memory, and that of a profiler.
    int64_t& x = unread_;
    void* arguments[] = {&a_map_,   &x,      &x,     &x,       &x,  &b_map_, &x,     &x,        &x,
                         &x,        &d_map_, &x,     &x,       &x,  &x,      &x,     &x,        &d_,
                         &offsets_, &table_, &rows_, &groups_, &n_, &k_,     &band_, &scratch_, &profiler_};
    TRY(cudaLaunchKernel(reinterpret_cast<const void*>(function_), dim3(unsigned(blocks_)),
                         dim3(unsigned(kernel_->threads)), arguments, size_t(kernel_->shared_bytes), stream));
    return "";
  }

 private:
  std::string make_maps(const GgPeerProblem& p) {
    const cuuint64_t rows = cuuint64_t(rows_), n = cuuint64_t(n_), k = cuuint64_t(k_),
                     groups = cuuint64_t(groups_);
    const cuuint32_t bm = cuuint32_t(kernel_->bm);
    std::string why = encode(a_map_, p.a, {k, rows}, {2 * k}, {kBoxCols, cuuint32_t(kernel_->a_box_rows)});
    if (why.empty())
      why = encode(b_map_, p.b, {k, groups * n}, {2 * k}, {kBoxCols, cuuint32_t(kernel_->b_box_rows)});
    // D has a dimension more, so that a tile ends where its group does: element [s, r, c] of the map is row
    // s + r - bm of D. A tile whose rows stop before row s is stored at [s, bm - (rows it has)], and
    // what it has too much lies beyond r = bm. The map begins bm rows before D; nothing there is touched.
    const char* begin = static_cast<const char*>(p.d) - 2 * n * bm;
    if (why.empty()) why = encode(d_map_, begin, {n, bm, rows + 1}, {2 * n, 2 * n}, {kBoxCols, bm, 1});
    return why;
  }

  const Kernel* kernel_ = nullptr;
  cudaKernel_t function_ = nullptr, numbering_ = nullptr;
  int blocks_ = 0;
  DeviceMemory scratch_memory_, table_memory_;

  // The kernel's parameters.
  CUtensorMap a_map_{}, b_map_{}, d_map_{};
  int64_t unread_ = 0;
  void *d_ = nullptr, *table_ = nullptr, *scratch_ = nullptr, *profiler_ = nullptr;
  const int32_t* offsets_ = nullptr;
  int rows_ = 0, groups_ = 0, n_ = 0, k_ = 0, band_ = 0;
};

// ---- choosing a configuration ----

struct Choice {
  const Kernel* kernel;
  int band;
};

// Median time of launches that find nothing of theirs in the L2, as the harness's cold rounds do.
class Stopwatch {
 public:
  std::string start() {
    int device = 0, l2_bytes = 0;
    TRY(cudaGetDevice(&device));
    TRY(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device));
    flush_bytes_ = 2 * size_t(l2_bytes);
    TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (cudaEvent_t& event : events_) TRY(cudaEventCreate(&event));
    return allocate(flush_, flush_bytes_);
  }
  ~Stopwatch() {
    for (cudaEvent_t event : events_) {
      if (event) cudaEventDestroy(event);
    }
    if (stream_) cudaStreamDestroy(stream_);
  }
  std::string time(Launch& launch, float& ms) {
    if (std::string why = launch.run(stream_); !why.empty()) return why;  // warm-up
    for (int round = 0; round < kRounds; ++round) {
      TRY(cudaMemsetAsync(flush_.get(), 0, flush_bytes_, stream_));
      TRY(cudaEventRecord(events_[2 * round], stream_));
      if (std::string why = launch.run(stream_); !why.empty()) return why;
      TRY(cudaEventRecord(events_[2 * round + 1], stream_));
    }
    TRY(cudaStreamSynchronize(stream_));
    float times[kRounds];
    for (int round = 0; round < kRounds; ++round)
      TRY(cudaEventElapsedTime(&times[round], events_[2 * round], events_[2 * round + 1]));
    std::nth_element(times, times + kRounds / 2, times + kRounds);
    ms = times[kRounds / 2];
    return "";
  }

 private:
  static constexpr int kRounds = 7;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t events_[2 * kRounds] = {};
  DeviceMemory flush_;
  size_t flush_bytes_ = 0;
};

// Every configuration in bands of one width, then the best three in bands of other widths.
std::string tune(const GgPeerProblem& p, Choice& best) {
  constexpr int kBand = 8, kOtherBands[] = {1, 4, 16, 64};
  constexpr size_t kFinalists = 3;
  Stopwatch stopwatch;
  if (std::string why = stopwatch.start(); !why.empty()) return why;
  std::vector<std::pair<float, Choice>> timed;
  const auto time = [&](const Choice& choice) -> std::string {
    Launch launch;
    float ms = 0;
    std::string why = launch.prepare(*choice.kernel, p, choice.band);
    if (why.empty()) why = stopwatch.time(launch, ms);
    if (!why.empty()) return std::string(choice.kernel->name) + ": " + why;
    timed.emplace_back(ms, choice);
    return "";
  };
  const auto by_time = [](const auto& left, const auto& right) { return left.first < right.first; };
  for (const Kernel& kernel : kKernels) {
    if (p.groups < kernel.least_groups || p.groups > kernel.most_groups) continue;
    if (std::string why = time({&kernel, kBand}); !why.empty()) return why;
  }
  std::sort(timed.begin(), timed.end(), by_time);
  timed.resize(std::min(timed.size(), kFinalists));
  for (const auto& [ms, choice] : std::vector(timed)) {
    for (const int band : kOtherBands) {
      if (std::string why = time({choice.kernel, band}); !why.empty()) return why;
    }
  }
  const auto& [ms, choice] = *std::min_element(timed.begin(), timed.end(), by_time);
  best = choice;
  std::fprintf(stderr, "triton_tma: G%d, %lld rows, N%d, K%d: %s in bands of %d, %.1f us\n", p.groups,
               static_cast<long long>(p.host_offsets[p.groups]), p.n, p.k, choice.kernel->name, choice.band,
               double(1000 * ms));
  return "";
}

std::string prepare(const GgPeerProblem& p, void** state) {
  if (std::string(p.format) != "bf16") return std::string(p.format) + ": compiled for bf16 only";
  if (p.b_is_kn) return "B is [groups, k, n]: compiled for [groups, n, k] only";
  if (p.n % 16 != 0) return "N=" + std::to_string(p.n) + ": wants multiples of 16";
  if (p.k % 8 != 0) return "K=" + std::to_string(p.k) + ": rows want multiples of 16 bytes";
  if (p.host_offsets[p.groups] == 0) return "no group has a row: a tensor map wants one";
  if (p.groups > kMostGroups) {
    return "G=" + std::to_string(p.groups) + ": compiled for at most " + std::to_string(kMostGroups) +
           " groups";
  }
  static std::map<std::vector<int64_t>, Choice>
      known;  // a problem's other buffers get what its first ones got
  std::vector<int64_t> problem(p.host_offsets, p.host_offsets + p.groups + 1);
  problem.insert(problem.end(), {p.n, p.k});
  if (!known.count(problem)) {
    Choice best{};
    if (std::string why = tune(p, best); !why.empty()) return why;
    known[problem] = best;
  }
  auto launch = std::make_unique<Launch>();
  std::string why = launch->prepare(*known[problem].kernel, p, known[problem].band);
  if (why.empty()) *state = launch.release();
  return why;
}

const char* sentence(std::string why) {
  static std::string kept;
  kept = std::move(why);
  return kept.empty() ? nullptr : kept.c_str();
}

}  // namespace

const char* gg_peer_version() { return "Triton " TRITON_VERSION; }
const char* gg_peer_prepare(const GgPeerProblem* problem, void** state) {
  return sentence(prepare(*problem, state));
}
const char* gg_peer_launch(void* state, cudaStream_t stream) {
  return sentence(static_cast<Launch*>(state)->run(stream));
}
void gg_peer_release(void* state) { delete static_cast<Launch*>(state); }
