// SPDX-License-Identifier: MIT
//
// Launches an entry of a PTX text in full: dimensions, clusters, dynamic shared memory, orders and
// workers. Its parameters are pointers, one buffer each.

#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/emu/run_ptx.h"

namespace emu_test {

using gg::emu::Fault;
using gg::emu::FaultKind;
using gg::emu::Order;
using Words = std::vector<uint32_t>;

struct Config {
  int grid[3] = {1, 1, 1}, block[3] = {32, 1, 1}, cluster[3] = {1, 1, 1};
  int64_t dynamic_shared = 0;
  int registers = 0;  // of a thread
  gg::emu::RunOptions options = {};
  int freed = -1;      // this buffer is freed before the launch
  int unwritten = -1;  // this one is as cudaMalloc gives it
};

inline Config config_of(int blocks, int threads, int cluster = 1) {
  Config config;
  config.grid[0] = blocks;
  config.block[0] = threads;
  config.cluster[0] = cluster;
  return config;
}

class Program {
 public:
  explicit Program(const std::string& text) {
    using namespace gg::emu;
    try {
      module_ = parse_ptx(text);
    } catch (const SyntaxError& error) {
      throw std::runtime_error("PTX line " + std::to_string(error.line) + ": " + error.what);
    }
    for (const Variable& v : module_->variables) {
      if (v.space != Space::global && v.space != Space::constant) continue;
      symbols_[v.name] = memory_.allocate(size_t(v.bytes));
      std::copy(v.init.begin(), v.init.end(), memory_.unchecked(symbols_[v.name]));
    }
    for (const auto& function : module_->functions) {
      if (function->entry && !code_) code_ = decode(*module_, *function, gg::emu::all_forms(), symbols_);
    }
    if (!code_) throw std::runtime_error("no entry");
  }

  // Reads and writes the buffers in place. Throws gg::emu::Fault.
  void run(std::vector<Buffer>& buffers, const Config& config, gg::emu::Counts* counts = nullptr) {
    gg::emu::Launch launch;
    launch.code = code_.get();
    std::vector<uint64_t> addresses;
    for (const Buffer& buffer : buffers) {
      addresses.push_back(memory_.allocate(buffer.size()));
      std::copy(buffer.begin(), buffer.end(), memory_.unchecked(addresses.back()));
    }
    if (config.freed >= 0) memory_.release(addresses[size_t(config.freed)]);
    if (config.unwritten >= 0) memory_.forget(addresses[size_t(config.unwritten)]);
    launch.params = buffer_of(addresses);
    for (int i = 0; i < 3; ++i) {
      launch.grid[i] = config.grid[i];
      launch.block[i] = config.block[i];
      launch.cluster[i] = config.cluster[i];
    }
    launch.dynamic_shared = config.dynamic_shared;
    launch.registers = config.registers;
    gg::emu::run_launch(launch, memory_, config.options, counts);
    for (size_t i = 0; i < buffers.size(); ++i) {
      std::copy_n(memory_.unchecked(addresses[i]), buffers[i].size(), buffers[i].begin());
    }
  }

 private:
  gg::emu::GlobalMemory memory_;
  std::unique_ptr<gg::emu::Module> module_;
  std::map<std::string, uint64_t> symbols_;
  std::unique_ptr<gg::emu::Code> code_;
};

// The orders that results must not depend on.
inline std::vector<gg::emu::Order> orders() {
  std::vector<gg::emu::Order> all = {{0, false}, {1, false}};
  for (uint64_t seed = 1; seed <= 8; ++seed) all.push_back({seed, true});
  return all;
}
inline std::string name_of(const gg::emu::Order& order) {
  return std::to_string(order.seed) + (order.skew ? ":skew" : ":fair");
}

// Returns a program that begins as most programs here do. Parameters: out, in. %r0 thread, %r1
// block, %r2 threads of a block, %r3 lane, %r4 warp, %r5 thread in the grid; %rd0 out, %rd1 in,
// %rd2 this thread's word of out. The rest is free.
inline std::string kernel(const std::string& body, const std::string& before = "") {
  return R"(.version 9.0
.target sm_90a
.address_size 64
)" + before +
         R"(
.visible .entry k(.param .u64 out, .param .u64 in)
{
.reg .pred %p<16>;
.reg .b16 %h<8>;
.reg .b32 %r<64>;
.reg .f32 %f<16>;
.reg .b64 %rd<32>;
ld.param.u64 %rd0, [out];
ld.param.u64 %rd1, [in];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
and.b32 %r3, %r0, 31;
shr.u32 %r4, %r0, 5;
mad.lo.s32 %r5, %r1, %r2, %r0;
mad.wide.u32 %rd2, %r5, 4, %rd0;
)" + body +
         "\nret;\n}\n";
}

// A program for Blackwell: %r10 is the first of 32 columns of tensor memory, and every thread has
// stored its number to the first 8. %p0 is for thread 0, %p1 for warp 0, %p2 for the first lane of
// warp 1; `done` is an mbarrier for one arrival.
inline std::string with_tensor_memory(const std::string& body) {
  std::string text = kernel(R"(
    .shared .align 4 .b32 slot;
    .shared .align 8 .b64 done;
    setp.eq.u32 %p0, %r0, 0;
    setp.lt.u32 %p1, %r0, 32;
    setp.eq.u32 %p2, %r0, 32;
    @%p0 mbarrier.init.shared::cta.b64 [done], 1;
    @%p0 fence.mbarrier_init.release.cluster;
    @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    bar.sync 0;
    ld.shared.u32 %r10, [slot];
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r10], {%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0};
    tcgen05.wait::st.sync.aligned;
    )" + body);
  return text.replace(text.find("sm_90a"), 6, "sm_100a");
}

// The first of two blocks sends a word, and the next one as soon as the other block has read it.
// `between`: in there, what comes between the load of %r12 and the arrival, up to a label SKIP.
inline std::string read_and_tell(const std::string& between, const std::string& order = "") {
  return kernel(R"(
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    .shared .align 4 .u32 cell;
    mov.u32 %r10, %cluster_ctarank;
    setp.eq.u32 %p0, %r0, 0;
    setp.eq.and.u32 %p1, %r10, 0, %p0;
    setp.eq.and.u32 %p2, %r10, 1, %p0;
    @%p0 mbarrier.init.shared::cta.b64 [full], 1;
    @%p0 mbarrier.init.shared::cta.b64 [empty], 1;
    @%p0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    @%p2 bra READ;
    @!%p1 bra END;
    mov.u32 %r13, 1;
    mov.u32 %r14, full;
    mapa.shared::cluster.u32 %r14, %r14, %r13;
    mov.u32 %r15, cell;
    mapa.shared::cluster.u32 %r15, %r15, %r13;
    mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r14], 4;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r15], 7, [%r14];
    WAIT_READ:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [empty], 0;
    @!%p3 bra WAIT_READ;
    mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r14], 4;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r15], 8, [%r14];
    bra END;
    READ:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
    @!%p3 bra READ;
    mov.u32 %r14, empty;
    mapa.shared::cluster.u32 %r14, %r14, 0;
    ld.shared.u32 %r12, [cell];
    )" + between +
                "\nmbarrier.arrive" + order + R"(.shared::cluster.b64 _, [%r14];
    SKIP:
    WAIT_NEXT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 1;
    @!%p3 bra WAIT_NEXT;
    st.global.u32 [%rd0], %r12;
    END:
    barrier.cluster.arrive;
    barrier.cluster.wait;)");
}

}  // namespace emu_test
