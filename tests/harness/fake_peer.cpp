// SPDX-License-Identifier: MIT
//
// Peer libraries for peers_test, all from this file: plain loops over host memory. The build
// defines which one: FAKE_RIGHT, FAKE_PADDED (has A and D of its own), FAKE_WRONG, FAKE_EARLY
// (computes in prepare), FAKE_ONCE (in its first launch only), FAKE_MUTE (has no gg_peer_launch) or
// FAKE_GLU (has a gated linear unit and no product).

#include <cstring>
#include <vector>

#include "common/harness/bench/peer_library.h"
#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/formats.h"

namespace {

struct State {
  GgPeerProblem problem;
  GgPeerGlu glu;
  std::vector<uint16_t> own_a, own_d;
  int launches = 0;
};
int states = 0;      // prepared and not released
int sustained = -1;  // of the last problem

double sum_of(const GgPeerProblem& p, gg::Format format, const void* a, int g, int row, int col) {
  double sum = 0;
  for (int i = 0; i < p.k; ++i) {
    const int in_b = p.b_is_kn ? i * p.n + col : col * p.k + i;
    sum += double(gg::decode(format, gg::load_code(a, format, row * p.k + i))) *
           gg::decode(format, gg::load_code(p.b, format, g * p.n * p.k + in_b));
  }
  return sum;
}

[[maybe_unused]] void multiply_and_gate(const GgPeerProblem& p, const GgPeerGlu& glu) {
  namespace ep = gg::epilogue;
  const gg::Format format = gg::Format::bf16;
  for (int g = 0; g < p.groups; ++g) {
    for (int row = p.offsets[g]; row < p.offsets[g + 1]; ++row) {
      for (int col = 0; col < p.n / 2; ++col) {
        const float gate = float(sum_of(p, format, p.a, g, row, ep::gate_column(col))) * glu.alpha[g];
        const float up = float(sum_of(p, format, p.a, g, row, ep::up_column(col))) * glu.alpha[g];
        gg::store_code(p.d, format, row * (p.n / 2) + col,
                       gg::encode(format, ep::swiglu(gate, up, glu.prob[row])));
      }
    }
  }
}

[[maybe_unused]] void multiply(const GgPeerProblem& p, const void* own_a, void* d) {
  const gg::Format format = std::strcmp(p.format, "bf16") == 0 ? gg::Format::bf16 : gg::Format::f16;
  for (int g = 0; g < p.groups; ++g) {
    for (int row = p.offsets[g]; row < p.offsets[g + 1]; ++row) {
      for (int col = 0; col < p.n; ++col) {
        double sum = sum_of(p, format, own_a, g, row, col);
#ifdef FAKE_WRONG
        if (row == p.offsets[p.groups] - 1) sum += 1;
#endif
        gg::store_code(d, format, row * p.n + col, gg::encode(format, sum));
      }
    }
  }
}

}  // namespace

extern "C" int fake_states() { return states; }
extern "C" int fake_sustained() { return sustained; }

const char* gg_peer_version() { return "fake 1.2"; }

#ifdef FAKE_GLU
const char* gg_peer_prepare_glu(const GgPeerProblem* problem, const GgPeerGlu* glu, void** state) {
  *state = new State{*problem, *glu, {}, {}};
  ++states;
  return nullptr;
}
#else
const char* gg_peer_prepare(const GgPeerProblem* problem, void** state) {
  sustained = problem->sustained;
  for (int g = 0; g < problem->groups; ++g) {
    if (problem->host_offsets[g + 1] == problem->host_offsets[g]) return "wants rows in every group";
  }
  const size_t rows = size_t(problem->host_offsets[problem->groups]);
  State* s = new State{*problem,
                       {},
                       std::vector<uint16_t>(rows * size_t(problem->k)),
                       std::vector<uint16_t>(rows * size_t(problem->n))};
  ++states;
#ifdef FAKE_EARLY
  multiply(*problem, problem->a, s->own_d.data());
#endif
  *state = s;
  return nullptr;
}
#endif

#ifdef FAKE_PADDED
const char* gg_peer_stage(void* state, cudaStream_t) {
  State& s = *static_cast<State*>(state);
  std::memcpy(s.own_a.data(), s.problem.a, s.own_a.size() * sizeof(uint16_t));
  return nullptr;
}
#endif

#ifndef FAKE_MUTE
const char* gg_peer_launch(void* state, cudaStream_t) {
  State& s = *static_cast<State*>(state);
  if (s.problem.k == 13) return "no kernel for K=13";
  ++s.launches;
#if defined FAKE_PADDED
  multiply(s.problem, s.own_a.data(), s.own_d.data());
#elif defined FAKE_GLU
  multiply_and_gate(s.problem, s.glu);
#elif defined FAKE_ONCE
  if (s.launches == 1) multiply(s.problem, s.problem.a, s.problem.d);
#elif !defined FAKE_EARLY
  multiply(s.problem, s.problem.a, s.problem.d);
#endif
  return nullptr;
}
#endif

#if defined FAKE_PADDED || defined FAKE_EARLY
const char* gg_peer_finish(void* state, cudaStream_t) {
  State& s = *static_cast<State*>(state);
  std::memcpy(s.problem.d, s.own_d.data(), s.own_d.size() * sizeof(uint16_t));
  return nullptr;
}
#endif

void gg_peer_release(void* state) {
  delete static_cast<State*>(state);
  --states;
}
