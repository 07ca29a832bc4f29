// SPDX-License-Identifier: MIT
//
// PyTorch as a peer: the kernel behind torch.nn.functional.grouped_mm on bf16, called without
// Python. We call what the operator calls (at::cuda::detail::bf16bf16_grouped_mm), because it
// writes D where it is told; the operator itself only returns a new tensor. PyTorch chooses its
// tile by the mean rows of a group: there is nothing to tune. Scratch memory comes from PyTorch's
// allocator, which after a launch outside of captures has it for every launch on that stream; a
// graph's launches follow each other, so they may share it.

#include <ATen/Context.h>
#include <ATen/native/cuda/GroupMM.h>
#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "common/harness/bench/peer_library.h"

namespace {

struct State {
  c10::DeviceIndex device;
  at::Tensor a, b, ends, d;
};

// Runs `work`; what it threw as one line, or null.
template <class Work>
const char* sentence_of(const Work& work) {
  static std::string sentence;
  try {
    work();
    return nullptr;
  } catch (const c10::Error& error) {
    sentence = error.what_without_backtrace();
  } catch (const std::exception& error) {
    sentence = error.what();
  }
  sentence.resize(std::min(sentence.find('\n'), sentence.size()));
  return sentence.c_str();
}

}  // namespace

const char* gg_peer_version() { return "PyTorch " TORCH_VERSION; }

namespace {

// Returns why PyTorch takes the problem in neither product; null: it does.
const char* unfit(const GgPeerProblem& p) {
  if (std::strcmp(p.format, "bf16") != 0) return "PyTorch has a grouped kernel for bf16 alone";
  if (p.k % 8 != 0 || p.n % 8 != 0) return "K and N must be multiples of 8: rows of 16 bytes";
  if (p.groups >= 1024) return "takes fewer than 1024 groups";
  return nullptr;
}

// Makes the state of a problem: A and the offsets as they are, B and D as `add` makes them.
template <class Add>
const char* prepared(const GgPeerProblem& p, void** state, const Add& add) {
  if (const char* why = unfit(p)) return why;
  return sentence_of([&] {
    at::globalContext().lazyInitDevice(c10::kCUDA);
    const c10::DeviceIndex device = c10::cuda::current_device();
    const auto tensor = [&](const void* data, at::IntArrayRef sizes, at::ScalarType type) {
      const auto options = at::TensorOptions().dtype(type).device(c10::kCUDA, device);
      return at::from_blob(const_cast<void*>(data), sizes, options);
    };
    const int64_t rows = p.host_offsets[p.groups];
    auto made = std::make_unique<State>(State{device, tensor(p.a, {rows, p.k}, at::kBFloat16), {},
                                              tensor(p.offsets + 1, {p.groups}, at::kInt), {}});
    add(*made, rows, tensor);
    *state = made.release();
  });
}

}  // namespace

const char* gg_peer_prepare(const GgPeerProblem* problem, void** state) {
  const GgPeerProblem& p = *problem;
  return prepared(p, state, [&](State& s, int64_t rows, const auto& tensor) {
    s.b = p.b_is_kn ? tensor(p.b, {p.groups, p.k, p.n}, at::kBFloat16)
                    : tensor(p.b, {p.groups, p.n, p.k}, at::kBFloat16).transpose(1, 2);
    s.d = tensor(p.d, {rows, p.n}, at::kBFloat16);
  });
}

const char* gg_peer_prepare_gradient(const GgPeerProblem* problem, const GgPeerGradient* gradient,
                                     void** state) {
  const GgPeerProblem& p = *problem;
  if (std::strcmp(gradient->d_format, "bf16") != 0) return "PyTorch's grouped kernel has D of bf16 alone";
  if (gradient->accumulate) return "PyTorch's grouped kernel adds to nothing";
  return prepared(p, state, [&](State& s, int64_t rows, const auto& tensor) {
    s.a = s.a.t();
    s.b = tensor(p.b, {rows, p.n}, at::kBFloat16);
    s.d = tensor(p.d, {p.groups, p.k, p.n}, at::kBFloat16);
  });
}

const char* gg_peer_launch(void* state, cudaStream_t stream) {
  State& s = *static_cast<State*>(state);
  return sentence_of([&] {
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream, s.device));
    at::cuda::detail::bf16bf16_grouped_mm(s.a, s.b, s.ends, std::nullopt, s.d);
  });
}

void gg_peer_release(void* state) { delete static_cast<State*>(state); }
