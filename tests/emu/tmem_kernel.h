// SPDX-License-Identifier: MIT
//
// Kernels of sm_100a that use tensor memory, in pieces of PTX, and a launch of them.

#pragma once

#include <string>
#include <vector>

#include "tests/emu/launch_ptx.h"

namespace tmem_test {

using emu_test::Buffer;
using emu_test::Config;
using emu_test::config_of;
using emu_test::name_of;
using emu_test::Program;
using gg::emu::Fault;
using gg::emu::FaultKind;
using gg::emu::Order;
using Words = std::vector<uint32_t>;

inline const std::vector<Order> kOrders = {{0, false}, {1, false}, {2, true}};

// Parameters: out (%rd0), in (%rd1). %r0 is the thread, %r1 the rank in the cluster, %r2 the
// address of `buffer` (64 KB), %r4 the lane, %r5 the warp. %rd2 is this thread's word of out, in
// the grid. %p0 is true in thread 0, %p1 in warp 0, %p2 in thread 32. The slot and %r6 are for the
// address of tensor memory. The rest is free, %r10 and %rd10 onwards.
inline std::string kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .shared .align 1024 .b8 buffer[65536];
  .shared .align 8 .b64 bars[8];
  .shared .align 16 .b32 slot[4];
  .reg .pred %p<16>; .reg .b16 %h<9>; .reg .b32 %r<400>; .reg .b64 %rd<32>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, buffer;
  and.b32 %r4, %r0, 31;
  shr.u32 %r5, %r0, 5;
  mov.u32 %r7, %ctaid.x;
  mov.u32 %r8, %ntid.x;
  mad.lo.u32 %r7, %r7, %r8, %r0;
  mad.wide.u32 %rd2, %r7, 4, %rd0;
  setp.eq.u32 %p0, %r0, 0;
  setp.lt.u32 %p1, %r0, 32;
  setp.eq.u32 %p2, %r0, 32;
)" + body +
         "\n  ret;\n}\n";
}

inline std::string number(int64_t value) { return std::to_string(value); }

// Columns for the block, allocated by warp 0; %r6 is their address.
inline std::string alloc(int columns, int group = 1) {
  const std::string cta_group = ".cta_group::" + number(group) + ".sync.aligned";
  return "@%p1 tcgen05.alloc" + cta_group + ".shared::cta.b32 [slot], " + number(columns) +
         ";\n@%p1 tcgen05.relinquish_alloc_permit" + cta_group +
         ";\nbar.sync 0;\nld.shared.u32 %r6, [slot];\n";
}
inline std::string dealloc(int columns, int group = 1) {
  return "bar.sync 0;\n" + std::string(group == 2 ? "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : "") +
         "@%p1 tcgen05.dealloc.cta_group::" + number(group) + ".sync.aligned.b32 %r6, " + number(columns) +
         ";\n";
}

inline const std::string kBefore = "tcgen05.fence::before_thread_sync;\n",
                         kAfter = "tcgen05.fence::after_thread_sync;\n",
                         kSync = kBefore + "bar.sync 0;\n" + kAfter,
                         kWaitLoad = "tcgen05.wait::ld.sync.aligned;\n",
                         kWaitStore = "tcgen05.wait::st.sync.aligned;\n";

// An mbarrier of bars, ready for everybody.
inline std::string init(int bar, int count) {
  return "@%p0 mbarrier.init.shared::cta.b64 [bars+" + number(8 * bar) + "], " + number(count) +
         ";\n@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
}
inline std::string wait(int bar, int parity = 0) {
  static int label = 0;
  const std::string name = "WAIT" + number(label++);
  return name + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [bars+" + number(8 * bar) + "], " +
         number(parity) + ";\n@!%p8 bra " + name + ";\n";
}

// {%r100, %r101, ...}
inline std::string registers(int count, int first = 100) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", %r" : "%r") + number(first + i);
  return text + "}";
}

// The value of 32 bits that these tests put at a lane and column, or elsewhere for a number.
inline uint32_t value_at(uint32_t place) { return (place + 1) * 2654435761u; }
// register = value_at(place), where `place` is a register's name.
inline std::string value_ptx(const std::string& to, const std::string& place) {
  return "add.u32 " + to + ", " + place + ", 1;\nmul.lo.u32 " + to + ", " + to + ", 2654435761;\n";
}

// By warps 0 to 3: their quarters of columns [0, columns): value_at(512 * lane + column),
// or 7 everywhere.
inline std::string fill(int columns, bool values) {
  std::string text =
      "shl.b32 %r90, %r5, 5;\nand.b32 %r90, %r90, 96;\nadd.u32 %r90, %r90, %r4;\n"
      "shl.b32 %r90, %r90, 9;\nsetp.lt.u32 %p9, %r5, 4;\n";
  for (int begin = 0; begin < columns; begin += 32) {
    for (int i = 0; i < 32; ++i) {
      const std::string reg = "%r" + number(100 + i);
      if (values)
        text += "add.u32 %r91, %r90, " + number(begin + i) + ";\n" + value_ptx(reg, "%r91");
      else
        text += "mov.u32 " + reg + ", 7;\n";
    }
    text += "add.u32 %r92, %r6, " + number(begin) +
            ";\n@%p9 tcgen05.st.sync.aligned.32x32b.x32.b32 [%r92], " + registers(32) + ";\n";
  }
  return text + kWaitStore;
}

// Every warp's quarter of columns [0, columns), in a block of 128 threads, goes to out by lanes.
inline std::string dump(int columns, int out_word = 0) {
  std::string text = "mad.lo.u32 %r93, %r0, " + number(columns * 4) + ", " + number(out_word * 4) +
                     ";\ncvt.u64.u32 %rd9, %r93;\nadd.u64 %rd9, %rd9, %rd0;\n";
  for (int begin = 0; begin < columns; begin += 8) {
    text += "add.u32 %r92, %r6, " + number(begin) + ";\ntcgen05.ld.sync.aligned.32x32b.x8.b32 " +
            registers(8) + ", [%r92];\n" + kWaitLoad;
    for (int i = 0; i < 8; ++i)
      text += "st.global.u32 [%rd9+" + number(4 * (begin + i)) + "], %r" + number(100 + i) + ";\n";
  }
  return text;
}

// Bytes 0 to 4 * 128 * words of `buffer`: word number i is value_at(i). By 128 threads.
inline std::string fill_shared(int words) {
  std::string text = "mad.lo.u32 %r94, %r0, 4, %r2;\nmov.u32 %r95, %r0;\n";
  for (int i = 0; i < words; ++i)
    text += value_ptx("%r96", "%r95") + "st.shared.u32 [%r94+" + number(512 * i) +
            "], %r96;\nadd.u32 %r95, %r95, 128;\n";
  return text + "fence.proxy.async.shared::cta;\n";
}

// Descriptor bits of a source of tcgen05.cp without its address: byte offsets, swizzle code.
inline uint64_t descriptor(int leading, int stride, uint64_t swizzle = 0) {
  return uint64_t(leading / 16) << 16 | uint64_t(stride / 16) << 32 | 1ull << 46 | swizzle << 61;
}
// %rd8 = the descriptor of buffer + offset.
inline std::string make_descriptor(uint64_t bits, int offset = 0) {
  return "add.u32 %r97, %r2, " + number(offset) +
         ";\nand.b32 %r97, %r97, 0xFFFFFF;\nshr.u32 %r97, %r97, 4;\ncvt.u64.u32 %rd8, %r97;\nor.b64 %rd8, "
         "%rd8, " +
         number(int64_t(bits)) + ";\n";
}
inline std::string commit(int bar = 0, const std::string& guard = "@%p0") {
  return "mov.u32 %r98, bars;\nadd.u32 %r98, %r98, " + number(8 * bar) + ";\n" + guard +
         " tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r98];\n";
}

// Runs the kernel; out has `out_words` words of 0xEEEEEEEE before.
inline Words run(const std::string& text, Config config, const Order& order, size_t out_words,
                 const Words& in = Words(16)) {
  config.options.order = order;
  config.options.workers = 1;
  std::vector<Buffer> buffers = {emu_test::buffer_of(Words(out_words, 0xEEEEEEEE)), emu_test::buffer_of(in)};
  Program program(text);
  program.run(buffers, config);
  return emu_test::values_of<uint32_t>(buffers[0]);
}

}  // namespace tmem_test
