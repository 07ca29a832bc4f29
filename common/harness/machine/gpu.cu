// SPDX-License-Identifier: MIT
//
// The machine that is a GPU: data made and compared where they are used.

#include <algorithm>

#include "common/harness/machine/cuda.h"
#include "common/harness/machine/reference_gpu.cuh"

namespace gg {
namespace {

constexpr int kThreads = 256;

// Elements that one thread stores: those that share a byte.
__device__ int elements_at_once(Format format) { return format_info(format).bits < 8 ? 2 : 1; }

// Two blocks to a multiprocessor: left to itself ptxas makes room for more, and spills.
__global__ __launch_bounds__(kThreads, 2) void fill_kernel(void* tensor, Format format, const Region* regions,
                                                           Fill fill, const int32_t* quantiles) {
  const Region region = regions[blockIdx.y];
  const int at_once = elements_at_once(format);
  const int64_t count = int64_t(region.rows) * region.cols;
  for (int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * at_once; i < count;
       i += int64_t(gridDim.x) * kThreads * at_once) {
    const int64_t element = region.offset + i / region.cols * region.ld + i % region.cols;
    for (int64_t each = element; each < element + at_once; ++each) {
      store_code(tensor, format, each, random_code(fill, format, uint64_t(each), quantiles));
    }
  }
}

__global__ __launch_bounds__(kThreads) void copy_regions_kernel(void* to, const void* from, Format format,
                                                                const Region* regions) {
  const Region region = regions[blockIdx.y];
  const int at_once = elements_at_once(format);
  const int64_t count = int64_t(region.rows) * region.cols;
  for (int64_t i = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * at_once; i < count;
       i += int64_t(gridDim.x) * kThreads * at_once) {
    const int64_t element = region.offset + i / region.cols * region.ld + i % region.cols;
    for (int64_t each = element; each < element + at_once; ++each) {
      store_code(to, format, each, load_code(from, format, each));
    }
  }
}

// The first of the whole words in which two buffers differ; bytes are told apart after.
__global__ __launch_bounds__(kThreads) void difference_kernel(const uint64_t* x, const uint64_t* y,
                                                              int64_t words, unsigned long long* first) {
  unsigned long long mine = ~0ull;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < words;
       i += int64_t(gridDim.x) * kThreads) {
    if (x[i] != y[i]) mine = min(mine, static_cast<unsigned long long>(i));
  }
  if (mine != ~0ull) atomicMin(first, mine);
}

class GpuMachine : public CudaMachine {
 public:
  GpuMachine() {
    quantiles_ =
        static_cast<int32_t*>(allocate((kQuantileBins + 1) * sizeof(int32_t), "the table of quantiles"));
    upload(quantiles_, normal_quantiles(), (kQuantileBins + 1) * sizeof(int32_t));
  }
  ~GpuMachine() override { cudaFree(quantiles_); }

  void fill(void* tensor, Format format, const std::vector<Region>& regions, const Fill& fill) override {
    for_regions(regions, [&](dim3 grid, const Region* device_regions) {
      fill_kernel<<<grid, kThreads, 0, stream_>>>(tensor, format, device_regions, fill, quantiles_);
    });
  }
  void copy_regions(void* to, const void* from, Format format, const std::vector<Region>& regions) override {
    for_regions(regions, [&](dim3 grid, const Region* device_regions) {
      copy_regions_kernel<<<grid, kThreads, 0, stream_>>>(to, from, format, device_regions);
    });
  }

  int64_t first_difference(const void* x, const void* y, size_t bytes) override {
    unsigned long long first = ~0ull, *device_first = nullptr;
    GG_CHECK(cudaMallocAsync(&device_first, sizeof first, stream_));
    GG_CHECK(cudaMemcpyAsync(device_first, &first, sizeof first, cudaMemcpyDefault, stream_));
    const int64_t words = int64_t(bytes) / 8;
    if (words) {
      difference_kernel<<<1024, kThreads, 0, stream_>>>(static_cast<const uint64_t*>(x),
                                                        static_cast<const uint64_t*>(y), words, device_first);
      GG_CHECK(cudaGetLastError());
    }
    GG_CHECK(cudaMemcpyAsync(&first, device_first, sizeof first, cudaMemcpyDefault, stream_));
    GG_CHECK(cudaFreeAsync(device_first, stream_));
    wait();
    // The last bytes, or the word that differs, byte by byte on the host.
    const int64_t begin = first == ~0ull ? words * 8 : int64_t(first) * 8;
    if (size_t(begin) == bytes) return -1;
    unsigned char p[8] = {}, q[8] = {};
    const size_t count = std::min<size_t>(8, bytes - size_t(begin));
    download(p, static_cast<const char*>(x) + begin, count);
    download(q, static_cast<const char*>(y) + begin, count);
    for (size_t i = 0; i < count; ++i) {
      if (p[i] != q[i]) return begin + int64_t(i);
    }
    return -1;
  }

  Comparison compare(const Matrices& matrices, const std::vector<Group>& groups,
                     const Limit& limit) override {
    return compare_on_gpu(matrices, groups, limit, stream_);
  }

  void defer(bool yes) override {
    deferred_ = yes;
    if (yes) return;
    cudaStreamSynchronize(stream_);  // an error stays, for the next call that is checked
    uploaded_.clear();
  }

 private:
  template <class Body>
  void for_regions(const std::vector<Region>& regions, Body body) {
    if (regions.empty()) return;
    int64_t largest = 1;
    for (const Region& region : regions) largest = std::max(largest, int64_t(region.rows) * region.cols);
    uploaded_.push_back(regions);
    Region* device_regions = nullptr;
    GG_CHECK(cudaMallocAsync(&device_regions, regions.size() * sizeof(Region), stream_));
    GG_CHECK(cudaMemcpyAsync(device_regions, uploaded_.back().data(), regions.size() * sizeof(Region),
                             cudaMemcpyDefault, stream_));
    body(dim3(unsigned(std::min<int64_t>((largest + kThreads - 1) / kThreads, 8192)),
              unsigned(regions.size())),
         device_regions);
    GG_CHECK(cudaGetLastError());
    GG_CHECK(cudaFreeAsync(device_regions, stream_));
    wait_unless_deferred();
    if (!deferred_) uploaded_.clear();
  }

  int32_t* quantiles_ = nullptr;
  std::vector<std::vector<Region>> uploaded_;  // regions that a copy not waited for may yet read
};

}  // namespace

std::unique_ptr<Machine> gpu_machine() { return std::make_unique<GpuMachine>(); }

}  // namespace gg
