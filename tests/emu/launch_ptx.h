// SPDX-License-Identifier: MIT
//
// Launches an entry of a PTX text in full: dimensions, clusters, dynamic shared memory, orders and workers.
// Its parameters are pointers, one buffer each.

#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/emu/run_ptx.h"

namespace emu_test {

struct Config {
  int grid[3] = {1, 1, 1}, block[3] = {32, 1, 1}, cluster[3] = {1, 1, 1};
  int64_t dynamic_shared = 0;
  int registers = 0;  // of a thread
  gg::emu::RunOptions options = {};
  int freed = -1;  // this buffer is freed before the launch
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
      if (function->entry && !code_) code_ = decode(*module_, *function, symbols_);
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

// What most programs here begin with. Parameters: out, in. %r0 thread, %r1 block, %r2 threads of a block, %r3
// lane, %r4 warp, %r5 thread in the grid; %rd0 out, %rd1 in, %rd2 this thread's word of out. The rest is
// free.
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

}  // namespace emu_test
