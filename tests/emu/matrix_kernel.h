// SPDX-License-Identifier: MIT
//
// A kernel with shared memory and mbarriers for matrix instructions, run in several orders.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/schedule/launches.h"
#include "common/emu/core/state/grid.h"
#include "common/kernel/error.h"

namespace matrix_test {

using gg::format;
using gg::emu::Fault;
using gg::emu::FaultKind;

// "{%r0, %r1}"
inline std::string registers(const std::string& prefix, int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", %" : "%") + prefix + std::to_string(first + i);
  return text + "}";
}

// A kernel `k` of two pointers, out (%rd0) and in (%rd1). %r0 is the thread, %r1 the warp, %r2 the
// address of 64 KB of shared memory `buffer`, %r3 that of 4 mbarriers `bars`; %p1 to %p4 are true
// in warps 0 to 3, %p0 in thread 0.
inline std::string kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .shared .align 1024 .b8 buffer[65536];
  .shared .align 8 .b64 bars[4];
  .reg .pred %p<20>; .reg .b32 %r<300>; .reg .f32 %f<300>; .reg .b64 %rd<40>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.u32 %r0, %tid.x;
  shr.u32 %r1, %r0, 5;
  mov.u32 %r2, buffer;
  mov.u32 %r3, bars;
  setp.eq.u32 %p0, %r0, 0;
  setp.eq.u32 %p1, %r1, 0;
  setp.eq.u32 %p2, %r1, 1;
  setp.eq.u32 %p3, %r1, 2;
  setp.eq.u32 %p4, %r1, 3;
)" + body +
         "\n  ret;\n}\n";
}

class Machine : public testing::Test {
 protected:
  static constexpr size_t kWords = 1 << 15;

  void SetUp() override {
    out = memory.allocate(kWords * 4);
    in = memory.allocate(kWords * 4);
    for (size_t i = 0; i < kWords; ++i) words(out)[i] = 0xEEEEEEEE, words(in)[i] = uint32_t(i * 2654435761u);
  }
  uint32_t* words(uint64_t address) { return reinterpret_cast<uint32_t*>(memory.unchecked(address)); }

  gg::emu::Counts run_with(const std::string& body, int threads, const gg::emu::Order& order,
                           uint32_t allowed = 0) {
    const auto module = gg::emu::parse_ptx(kernel(body));
    const auto code = gg::emu::decode(*module, *module->find("k"), gg::emu::all_forms());
    gg::emu::Launch launch;
    launch.code = code.get();
    launch.block[0] = threads;
    launch.params.resize(16);
    std::memcpy(launch.params.data(), &out, 8);
    std::memcpy(launch.params.data() + 8, &in, 8);
    gg::emu::RunOptions options;
    options.order = order;
    options.workers = 1;
    options.allowed = allowed;
    gg::emu::Counts counts;
    gg::emu::run_launch(launch, memory, options, &counts);
    gg::emu::Counts sums;  // the code is gone: a null key
    sums[nullptr] = counts[code.get()];
    return sums;
  }

  // Runs in both policies of effects and in skewed orders; the output must be the same each time.
  std::vector<uint32_t> run(const std::string& body, int threads, size_t count) {
    std::vector<uint32_t> first;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      std::fill_n(words(out), kWords, 0xEEEEEEEE);
      try {
        run_with(body, threads, {seed, seed > 1});
      } catch (const Fault& fault) {
        ADD_FAILURE() << fault.what();
        return std::vector<uint32_t>(count);
      }
      const std::vector<uint32_t> now(words(out), words(out) + count);
      if (first.empty()) first = now;
      EXPECT_EQ(now, first) << "order " << seed;
    }
    return first;
  }

  // The report of the fault that both policies must raise.
  std::string fault(FaultKind kind, const std::string& body, int threads = 128) {
    std::string report;
    for (uint64_t seed = 0; seed < 2; ++seed) {
      try {
        run_with(body, threads, {seed, false});
        ADD_FAILURE() << "no fault in order " << seed << ", expected " << fault_name(kind);
      } catch (const Fault& fault) {
        EXPECT_EQ(fault_name(fault.kind), std::string(fault_name(kind))) << fault.what();
        report = fault.what();
      }
    }
    return report;
  }

  gg::emu::GlobalMemory memory;
  uint64_t out = 0, in = 0;
};

// Copies `bytes` of in to the buffer, 16 by each thread in turn.
inline std::string copy_in(int bytes, int threads) {
  std::string text;
  for (int at = 0; at < bytes; at += 16 * threads) {
    text += format(R"(
  shl.b32 %%r290, %%r0, 4;
  add.u32 %%r290, %%r290, %d;
  setp.lt.u32 %%p10, %%r290, %d;
  cvt.u64.u32 %%rd30, %%r290;
  add.u64 %%rd30, %%rd30, %%rd1;
  @%%p10 ld.global.v4.u32 {%%r291, %%r292, %%r293, %%r294}, [%%rd30];
  add.u32 %%r290, %%r290, %%r2;
  @%%p10 st.shared.v4.u32 [%%r290], {%%r291, %%r292, %%r293, %%r294};
)",
                   at, bytes);
  }
  return text;
}
// Register `name` of each thread to out[row * threads + thread].
inline std::string store(const std::string& name, int row, int threads) {
  return format(R"(
  mad.lo.u32 %%r295, %%r0, 4, %d;
  cvt.u64.u32 %%rd31, %%r295;
  add.u64 %%rd31, %%rd31, %%rd0;
  st.global.b32 [%%rd31], %s;
)",
                4 * row * threads, name.c_str());
}

}  // namespace matrix_test
