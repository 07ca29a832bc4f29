// SPDX-License-Identifier: MIT
//
// A kernel with shared memory, mbarriers and a tensor map, run in every order.

#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/report/count_report.h"
#include "common/emu/core/schedule/launches.h"
#include "common/emu/core/state/grid.h"
#include "common/emu/core/units/tensor_map_use.h"

namespace async_test {

using gg::emu::Fault;
using gg::emu::FaultKind;
using gg::emu::MapType;
using gg::emu::TensorMap;

struct Shape {
  int blocks = 1, threads = 32, cluster = 1;
};

// A kernel `k` of two pointers, out (%rd0) and in (%rd1), and a tensor map of two dimensions
// (%rd2). Registers are there to be used; %r0 is the thread, %r1 the block's rank, %r2 the address
// of 8 KB of shared memory `buffer`, %r3 that of 8 mbarriers, %p0 is true in thread 0, %p1 in the
// threads of warp 0.
inline std::string kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128])
{
  .shared .align 1024 .b8 buffer[8192];
  .shared .align 8 .b64 bars[8];
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.b64 %rd2, map;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, buffer;
  mov.u32 %r3, bars;
  setp.eq.u32 %p0, %r0, 0;
  setp.lt.u32 %p1, %r0, 32;
)" + body +
         "\n  ret;\n}\n";
}

// mbarrier `bar` of bars, for `count` arrivals, ready for everybody.
inline std::string init(int bar, int count) {
  return "@%p0 mbarrier.init.shared::cta.b64 [bars+" + std::to_string(8 * bar) + "], " +
         std::to_string(count) + ";\n@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
}
inline std::string wait(int bar, const std::string& parity) {
  static int label = 0;
  const std::string name = "WAIT" + std::to_string(label++);
  return name + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [bars+" + std::to_string(8 * bar) + "], " +
         parity + ";\n@!%p8 bra " + name + ";\n";
}

// Each thread stores its word of the buffer to out.
inline constexpr char kCopyOut[] = R"(
  shl.b32 %r6, %r0, 2;
  cvt.u64.u32 %rd3, %r6;
  add.u64 %rd3, %rd0, %rd3;
  add.u32 %r7, %r2, %r6;
  ld.shared.u32 %r8, [%r7];
  st.global.u32 [%rd3], %r8;
)";
// Makes what threads wrote visible to asynchronous copies.
inline const std::string kFence = "fence.proxy.async.shared::cta;\nbar.sync 0;\n";
// Every block of the cluster has come here.
inline constexpr char kClusterSync[] =
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";

class Async : public testing::Test {
 protected:
  static constexpr size_t kWords = 1 << 14;

  void SetUp() override {
    out = memory.allocate(kWords * 4);
    in = memory.allocate(kWords * 4);
    for (size_t i = 0; i < kWords; ++i) words(out)[i] = 0xEEEEEEEE, words(in)[i] = uint32_t(i * 2654435761u);
    map.type = MapType::u32;
    map.address = in;
    map.rank = 2;
    map.dims[0] = 60;
    map.dims[1] = 20;
    map.strides[1] = 256;
    map.box[0] = 16;
    map.box[1] = 8;
  }
  uint32_t* words(uint64_t address) { return reinterpret_cast<uint32_t*>(memory.unchecked(address)); }

  using Counters = std::map<std::string, uint64_t>;

  // Counts go to `counters`, if that is not null.
  void run_with(const std::string& body, const Shape& shape, const gg::emu::Order& order,
                Counters* counters = nullptr) {
    const auto module = gg::emu::parse_ptx(kernel(body));
    const auto code = gg::emu::decode(*module, *module->find("k"), gg::emu::all_forms());
    gg::emu::Launch launch;
    launch.code = code.get();
    launch.grid[0] = shape.blocks;
    launch.block[0] = shape.threads;
    launch.cluster[0] = shape.cluster;
    launch.params.resize(192);
    std::memcpy(launch.params.data(), &out, 8);
    std::memcpy(launch.params.data() + 8, &in, 8);
    gg::emu::encode_tensor_map(map, launch.params.data() + 64);
    gg::emu::RunOptions options;
    options.order = order;
    options.workers = 1;
    gg::emu::Counts counts;
    gg::emu::run_launch(launch, memory, options, &counts);
    if (!counters) return;
    for (const gg::emu::Counter& each : gg::emu::summarise(counts)) (*counters)[each.name] = each.value;
  }

  // In every order the same; `check` looks at the result.
  template <class Check>
  void run(const std::string& body, const Shape& shape, Check check) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE("order " + std::to_string(seed) + (seed > 1 ? ":skew" : ":fair"));
      SetUp();
      prepare();
      ASSERT_NO_THROW(
          try {
            run_with(body, shape, {seed, seed > 1});
          } catch (const Fault& fault) {
            ADD_FAILURE() << fault.what();
            throw;
          });
      check();
    }
  }
  // The fault of the fair order.
  std::string fault(FaultKind kind, const std::string& body, const Shape& shape = {}) {
    try {
      run_with(body, shape, {0, false});
    } catch (const Fault& fault) {
      EXPECT_EQ(fault_name(fault.kind), std::string(fault_name(kind))) << fault.what();
      return fault.what();
    }
    ADD_FAILURE() << "no fault; expected " << fault_name(kind);
    return "";
  }

  gg::emu::GlobalMemory memory;
  uint64_t out = 0, in = 0;
  TensorMap map;
  std::function<void()> prepare = [] {};
};

}  // namespace async_test
