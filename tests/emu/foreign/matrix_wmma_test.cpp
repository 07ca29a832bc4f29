// SPDX-License-Identifier: MIT
//
// wmma in small PTX kernels: which element a lane holds, the bits of its sums, what memory it
// touches, and what the emulator says when it is misused.

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "common/emu/core/units/fused_sum.h"
#include "tests/emu/matrix_kernel.h"
#include "tests/emu/report_says.h"

namespace {

using namespace matrix_test;
using report::says;

using Wmma = Machine;

// Stores `count` registers from %r20 on, each of a row of out.
std::string store_all(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += store("%r" + std::to_string(20 + i), i, 32);
  return text;
}

// A load from `in`, of matrices whose element (line, at) is the 16-bit or the 8-bit number at
// line * stride + at.
struct Held {
  const char* load;
  int registers, stride, bits, run;
  std::vector<std::pair<int, int>> places;  // line and index within it, of lane 0
};

// The layouts that ptxas gives them, read in machine code.
TEST_F(Wmma, LanesHoldWhatHardwareGivesThem) {
  const std::vector<std::pair<int, int>> tall = {{0, 0}, {8, 0}, {0, 8}, {8, 8}};
  std::vector<std::pair<int, int>> twice = tall, tallest = tall;
  twice.insert(twice.end(), tall.begin(), tall.end());
  for (const auto& [line, at] : tall) tallest.push_back({line + 16, at});
  const Held forms[] = {
      {"a.sync.aligned.row.m16n16k16.global.f16", 8, 24, 16, 2, twice},
      {"b.sync.aligned.col.m16n16k16.global.bf16", 4, 24, 16, 2, {{0, 0}, {0, 8}, {8, 0}, {8, 8}}},
      {"a.sync.aligned.row.m32n8k16.f16", 8, 16, 16, 2, tallest},
      {"b.sync.aligned.col.m8n32k16.global.bf16", 8, 16, 16, 2, tallest},
      {"a.sync.aligned.row.m8n32k16.global.bf16", 2, 16, 16, 2, {{0, 0}, {0, 8}}},
      {"b.sync.aligned.col.m8n32k16.global.s8", 4, 16, 8, 4, {{0, 0}, {8, 0}, {16, 0}, {24, 0}}},
      {"c.sync.aligned.row.m16n16k16.global.f16", 4, 24, 16, 2, {{0, 0}, {8, 0}, {0, 8}, {8, 8}}},
      {"c.sync.aligned.col.m8n32k16.global.f16", 4, 8, 16, 2, {{0, 0}, {8, 0}, {16, 0}, {24, 0}}}};
  for (const Held& form : forms) {
    SCOPED_TRACE(form.load);
    const auto d = run(std::string("wmma.load.") + form.load + " " + registers("r", 20, form.registers) +
                           ", [%rd1], " + std::to_string(form.stride) + ";\n" + store_all(form.registers),
                       32, size_t(32 * form.registers));
    const auto* bytes = reinterpret_cast<const uint8_t*>(words(in));
    for (int i = 0; i < form.registers; ++i) {
      for (int lane = 0; lane < 32; ++lane) {
        const auto [line, at] = form.places[size_t(i)];
        const int element = (line + lane / 4) * form.stride + at + lane % 4 * form.run;
        uint32_t want;
        std::memcpy(&want, bytes + element * form.bits / 8, 4);
        ASSERT_EQ(d[size_t(i * 32 + lane)], want) << "register " << i << " lane " << lane;
      }
    }
  }
}

// Both layouts of one matrix, given as it is and transposed, are the same fragment, and
// stores undo loads.
TEST_F(Wmma, StoresUndoLoads) {
  for (const char* type : {"f16", "s32"}) {
    for (const char* shape : {"m16n16k16", "m32n8k16", "m8n32k16"}) {
      for (const char* layout : {"row", "col"}) {
        SCOPED_TRACE(std::string(type) + shape + layout);
        const std::string form =
            std::string(".sync.aligned.") + layout + "." + shape + ".shared." + type + " ";
        const int count = std::string(type) == "f16" ? 4 : 8, bytes = count * 128;
        const std::string list = registers("r", 20, count);
        const auto d =
            run(copy_in(2048, 32) + "bar.sync 0;\nadd.u32 %r10, %r2, 4096;\nwmma.load.c" + form + list +
                    ", [%r2];\nwmma.store.d" + form + "[%r10], " + list +
                    ";\nbar.sync 0;\nmad.lo.u32 %r11, %r0, 4, %r10;\nld.shared.u32 %r12, [%r11];\n" +
                    format("ld.shared.u32 %%r13, [%%r11+%d];\n", bytes - 128) + store("%r12", 0, 32) +
                    store("%r13", 1, 32),
                32, 64);
        for (int lane = 0; lane < 32; ++lane) {
          EXPECT_EQ(d[size_t(lane)], words(in)[lane]);
          EXPECT_EQ(d[size_t(32 + lane)], words(in)[bytes / 4 - 32 + lane]);
        }
      }
    }
  }
}

// Sums are one fused sum of 16 products, of tf32 two of 4, whatever the numbers are.
TEST_F(Wmma, SumsAreThoseOfTheTensorCore) {
  std::mt19937 random(5);
  for (const bool tf32 : {false, true}) {
    const int k = tf32 ? 8 : 16, bits = tf32 ? 32 : 16;
    const gg::emu::Narrow narrow = gg::emu::narrow(tf32 ? "tf32" : "bf16");
    for (size_t i = 0; i < 2048; ++i) {
      const uint32_t near = 0x3C003C00u + (random() & 0x07FF07FFu);
      words(in)[i] = near ^ (random() & 0x80008000u);
    }
    const std::string shape = tf32 ? "m16n16k8" : "m16n16k16", type = tf32 ? "tf32" : "bf16";
    std::string text = "add.u64 %rd2, %rd1, 2048;\nadd.u64 %rd3, %rd1, 4096;\n";
    text += "wmma.load.a.sync.aligned.row." + shape + ".global." + type + " " + registers("r", 20, 4) +
            ", [%rd1];\n";
    text += "wmma.load.b.sync.aligned.col." + shape + ".global." + type + " " + registers("r", 30, 4) +
            ", [%rd2];\n";
    text += "wmma.load.c.sync.aligned.row." + shape + ".global.f32 " + registers("f", 0, 8) + ", [%rd3];\n";
    text += "wmma.mma.sync.aligned.row.col." + shape + ".f32." + type + "." + type + ".f32 " +
            registers("f", 0, 8) + ", " + registers("r", 20, 4) + ", " + registers("r", 30, 4) + ", " +
            registers("f", 0, 8) + ";\n";
    text += "wmma.store.d.sync.aligned.row." + shape + ".global.f32 [%rd0], " + registers("f", 0, 8) + ";\n";
    const auto d = run(text, 32, 256);
    const auto code = [&](int base, int line, int at) {
      const int element = line * k + at;
      if (tf32) return words(in)[base + element];
      return words(in)[base + element / 2] >> (element % 2 * 16) & ((1u << bits) - 1);
    };
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) {
        gg::emu::Term a[16], b[16];
        for (int at = 0; at < k; ++at) {
          a[at] = gg::emu::term_of(narrow, code(0, i, at));
          b[at] = gg::emu::term_of(narrow, code(512, j, at));
        }
        float sum = std::bit_cast<float>(words(in)[1024 + i * 16 + j]);
        const int step = tf32 ? 4 : 16;
        for (int at = 0; at < k; at += step) sum = gg::emu::mma_sync_sum(narrow, a + at, b + at, step, sum);
        ASSERT_EQ(d[size_t(i * 16 + j)], std::bit_cast<uint32_t>(sum))
            << type << " row " << i << " column " << j;
      }
    }
  }
}

TEST_F(Wmma, FaultsAreSeen) {
  const std::string load = "wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%r20, %r21, %r22, %r23}, ";
  EXPECT_TRUE(says(fault(FaultKind::uninit_shared, load + "[%r2];\n", 32), "nobody has written"));
  EXPECT_TRUE(
      says(fault(FaultKind::alignment, copy_in(2048, 32) + load + "[%r2+8];\n", 32), "no multiple of 16"));
  EXPECT_TRUE(says(fault(FaultKind::alignment, copy_in(2048, 32) + load + "[%r2], 20;\n", 32),
                   "a stride of 20 elements"));
  EXPECT_TRUE(says(
      fault(FaultKind::diverged,
            copy_in(2048, 32) + "shl.b32 %r10, %r0, 4;\nadd.u32 %r10, %r10, %r2;\n" + load + "[%r10];\n", 32),
      "the matrix's address"));
  EXPECT_TRUE(says(
      fault(FaultKind::diverged, copy_in(2048, 32) + "shl.b32 %r10, %r0, 3;\n" + load + "[%r2], %r10;\n", 32),
      "the stride"));
  fault(FaultKind::diverged, copy_in(2048, 24) + load + "[%r2];\n", 24);
  fault(FaultKind::bounds, copy_in(2048, 32) + load + "[%r2+65568];\n", 32);
  EXPECT_TRUE(
      says(fault(FaultKind::race, copy_in(2048, 64) + "@%p1 bra END;\n" + load + "[%r2];\nEND:\n", 64),
           "no barrier"));
  EXPECT_TRUE(
      says(fault(FaultKind::uninit_register,
                 "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r20, %r21}, {%r22}, {%r23}, {%r24, "
                 "%r25};\n",
                 32),
           "no lane of the warp has written"));
}

TEST_F(Wmma, WhatIsNotThereIsNamed) {
  const std::pair<const char*, const char*> unknown[] = {
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.tf32 {%r20, %r21, %r22, %r23}, [%rd1];", ".tf32"},
      {"wmma.load.a.sync.aligned.row.m16n8k16.global.f16 {%r20, %r21, %r22, %r23}, [%rd1];", "shape"},
      {"wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r20}, [%rd1];", "layout of .s4"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r20, %r21, %r22, %r23}, [%rd1];",
       "4 registers where 8"},
      {"wmma.load.a.aligned.row.m16n16k16.global.f16 {%r20}, [%rd1];", ".sync.aligned"},
      {"wmma.store.c.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%r20};", "of no matrix"},
      {"wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64.rz {%rd4, %rd5}, {%rd6}, {%rd7}, {%rd4, %rd5};",
       ".rz"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16.satfinite {%r20}, {%r20}, {%r20}, {%r20};",
       ".satfinite"},
      {"wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r20, %r21}, {%r22}, {%r23}, {%r20, %r21};",
       "types"}};
  for (const auto& [instruction, word] : unknown) {
    const std::string report =
        fault(FaultKind::unsupported, "mov.u32 %r20, 0;\n" + std::string(instruction) + "\n", 32);
    EXPECT_TRUE(says(report, word)) << report;
  }
}

TEST_F(Wmma, BytesAreCounted) {
  // 16 rows of 32 bytes: a word of each lane four times. Columns of f32 are read by element.
  const auto counts = [&](const std::string& load) {
    const auto all = run_with(load, 32, {});
    const auto& last = all.at(nullptr)[all.at(nullptr).size() - 3];
    return std::pair{last.global_bytes, last.sectors};
  };
  EXPECT_EQ(
      counts("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " + registers("r", 20, 8) + ", [%rd1];\n"),
      std::pair(uint64_t(512), uint64_t(32)));
  EXPECT_EQ(
      counts("wmma.load.c.sync.aligned.col.m16n16k16.global.f32 " + registers("f", 0, 8) + ", [%rd1], 64;\n"),
      std::pair(uint64_t(1024), uint64_t(32)));
}

}  // namespace
