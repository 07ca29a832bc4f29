// SPDX-License-Identifier: MIT
//
// ldmatrix and stmatrix of elements of 8, 6 and 4 bits on the emulator. Rows lie at shuffled
// addresses, so that a row in the wrong place does not look right. Expected values are those of the
// matrices, not of the instructions: the fragments of mma's operands.

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "launch_ptx.h"

namespace {

using namespace emu_test;

constexpr int kRows = 32, kBytes = 16;

// Row r of all matrices begins at 16 * order[r].
std::vector<uint32_t> shuffled() {
  std::vector<uint32_t> order(64);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(7);
  std::shuffle(order.begin(), order.end(), random);
  order.resize(kRows);
  return order;
}

// `in` holds 1 KB for shared memory and then 32 row addresses; `out` takes four registers
// of each lane.
std::string load_kernel(const std::string& instruction, int registers) {
  std::string list;
  for (int i = 0; i < registers; ++i) list += (i ? ", %r" : "%r") + std::to_string(30 + i);
  return kernel(
      "mov.u32 %r10, s;\nshl.b32 %r11, %r0, 2;\nmov.u32 %r12, 0;\n"
      "FILL:\nadd.u32 %r13, %r10, %r11;\ncvt.u64.u32 %rd3, %r11;\nadd.u64 %rd3, %rd3, %rd1;\n"
      "ld.global.u32 %r14, [%rd3];\nst.shared.u32 [%r13], %r14;\nadd.u32 %r11, %r11, 128;\n"
      "setp.lt.u32 %p0, %r11, 1024;\n@%p0 bra FILL;\nbar.sync 0;\n"
      "mul.wide.u32 %rd3, %r0, 4;\nadd.u64 %rd3, %rd3, %rd1;\nld.global.u32 %r15, [%rd3+1024];\n"
      "mad.lo.u32 %r15, %r15, 16, %r10;\nmov.u32 %r30, 0;\nmov.u32 %r31, 0;\nmov.u32 %r32, 0;\n"
      "mov.u32 %r33, 0;\nldmatrix.sync.aligned." +
          instruction + " {" + list +
          "}, [%r15];\nmad.wide.u32 %rd4, %r0, 16, %rd0;\n"
          "st.global.v4.u32 [%rd4], {%r30, %r31, %r32, %r33};\n",
      ".shared .align 128 .b8 s[1024];");
}

struct Loaded {
  std::vector<uint8_t> memory;
  std::vector<uint32_t> order, registers;  // four of each lane
  // Byte or packed element i of row r.
  uint32_t element(int r, int i, int bits) const {
    uint32_t value = 0;
    for (int bit = 0; bit < bits; ++bit) {
      const int at = i * bits + bit;
      value |= uint32_t(memory[16 * order[size_t(r)] + size_t(at / 8)] >> (at % 8) & 1) << bit;
    }
    return value;
  }
  uint32_t byte(int lane, int reg, int b) const { return registers[size_t(4 * lane + reg)] >> (8 * b) & 255; }
};
Loaded load(const std::string& instruction, int registers) {
  Loaded l;
  std::mt19937 random(11);
  for (int i = 0; i < 1024; ++i) l.memory.push_back(uint8_t(random()));
  l.order = shuffled();
  std::vector<Buffer> buffers = {Buffer(32 * 16), l.memory};
  const Buffer order = buffer_of(l.order);
  buffers[1].insert(buffers[1].end(), order.begin(), order.end());
  Program program(load_kernel(instruction, registers));
  program.run(buffers, config_of(1, 32));
  l.registers = values_of<uint32_t>(buffers[0]);
  return l;
}

struct Source {
  const char* type;
  int bits;
};
const Source kSources[] = {{"b8", 8}, {"b8x16.b4x16_p64", 4}, {"b8x16.b6x16_p32", 6}};

// The transposed matrix is half an operand A of mma.m16n8k32: a lane holds columns 4t .. 4t + 3 of
// its rows g and g + 8.
TEST(BlackwellMatrix, Loads16x16) {
  for (const Source& source : kSources) {
    for (const int count : {1, 2}) {
      const std::string text =
          "m16n16.x" + std::to_string(count) + ".trans.shared." + std::string(source.type);
      SCOPED_TRACE(text);
      const Loaded l = load(text, 2 * count);
      for (int lane = 0; lane < 32; ++lane) {
        for (int matrix = 0; matrix < count; ++matrix) {
          for (int half = 0; half < 2; ++half) {
            const int row = lane / 4 + 8 * half;
            for (int b = 0; b < 4; ++b) {
              const int column = 4 * (lane % 4) + b;
              ASSERT_EQ(l.byte(lane, 2 * matrix + half, b), l.element(16 * matrix + column, row, source.bits))
                  << "lane " << lane << " matrix " << matrix << " element " << row << ", " << column;
            }
          }
        }
      }
    }
  }
}

// Not transposed: a row of 16 bytes is in four lanes, as one of 8 elements of 16 bits is.
TEST(BlackwellMatrix, Loads8x16) {
  for (const Source& source : kSources) {
    if (source.bits == 8) continue;
    for (const int count : {1, 2, 4}) {
      const std::string text = "m8n16.x" + std::to_string(count) + ".shared." + std::string(source.type);
      SCOPED_TRACE(text);
      const Loaded l = load(text, count);
      for (int lane = 0; lane < 32; ++lane) {
        for (int matrix = 0; matrix < count; ++matrix) {
          for (int b = 0; b < 4; ++b) {
            ASSERT_EQ(l.byte(lane, matrix, b),
                      l.element(8 * matrix + lane / 4, 4 * (lane % 4) + b, source.bits))
                << "lane " << lane << " matrix " << matrix;
          }
        }
      }
    }
  }
}

// A lane's four bytes are elements of an accumulator of mma: columns 2t and 2t + 1 of row g, then
// of row g + 8.
TEST(BlackwellMatrix, Stores16x8) {
  const std::vector<uint32_t> order = shuffled();
  for (const int count : {1, 2, 4}) {
    for (const char* space : {".shared", ""}) {
      std::string list;
      for (int i = 0; i < count; ++i) list += (i ? ", %r" : "%r") + std::to_string(30 + i);
      const bool generic = *space == 0;
      Program program(kernel(
          "mov.u32 %r10, s;\nshl.b32 %r11, %r0, 2;\nadd.u32 %r13, %r10, %r11;\nmov.u32 %r12, 0;\n"
          "FILL:\nst.shared.u32 [%r13], 0x5A5A5A5A;\nadd.u32 %r13, %r13, 128;\nadd.u32 %r12, %r12, 1;\n"
          "setp.lt.u32 %p0, %r12, 8;\n@%p0 bra FILL;\nbar.sync 0;\n"
          "mul.wide.u32 %rd3, %r0, 4;\nadd.u64 %rd3, %rd3, %rd1;\nld.global.u32 %r15, [%rd3+512];\n"
          "mad.lo.u32 %r15, %r15, 16, %r10;\nmad.wide.u32 %rd4, %r0, 16, %rd1;\n"
          "ld.global.v4.u32 {%r30, %r31, %r32, %r33}, [%rd4];\n"
          "cvt.u64.u32 %rd6, %r15;\ncvta.shared.u64 %rd6, %rd6;\n"
          "stmatrix.sync.aligned.m16n8.x" +
              std::to_string(count) + ".trans" + space + ".b8 [" + (generic ? "%rd6" : "%r15") + "], {" +
              list +
              "};\nbar.sync 0;\nadd.u32 %r13, %r10, %r11;\nmov.u32 %r12, 0;\ncvt.u64.u32 %rd5, %r11;\n"
              "add.u64 %rd5, %rd5, %rd0;\nDUMP:\nld.shared.u32 %r14, [%r13];\nst.global.u32 [%rd5], %r14;\n"
              "add.u64 %rd5, %rd5, 128;\nadd.u32 %r13, %r13, 128;\nadd.u32 %r12, %r12, 1;\n"
              "setp.lt.u32 %p0, %r12, 8;\n@%p0 bra DUMP;\n",
          ".shared .align 128 .b8 s[1024];"));
      std::mt19937 random(13);
      std::vector<uint32_t> in;
      for (int i = 0; i < 128; ++i) in.push_back(uint32_t(random()));
      std::vector<uint8_t> expected(1024, 0x5A);
      for (int lane = 0; lane < 32; ++lane) {
        for (int matrix = 0; matrix < count; ++matrix) {
          for (int b = 0; b < 4; ++b) {
            const int row = lane / 4 + 8 * (b / 2), column = 2 * (lane % 4) + b % 2;
            // Transposed: a column of the matrix is a row in memory.
            expected[16 * order[size_t(8 * matrix + column)] + size_t(row)] =
                uint8_t(in[size_t(4 * lane + matrix)] >> (8 * b));
          }
        }
      }
      in.insert(in.end(), order.begin(), order.end());
      std::vector<Buffer> buffers = {Buffer(1024), buffer_of(in)};
      program.run(buffers, config_of(1, 32));
      EXPECT_EQ(buffers[0], expected) << "x" << count << space;
    }
  }
}

TEST(BlackwellMatrix, PaddingNeedNotBeWritten) {
  const std::string before =
      "mov.u32 %r10, s;\nmad.lo.u32 %r15, %r0, 16, %r10;\nst.shared.u32 [%r15], %r0;\n"
      "st.shared.u32 [%r15+4], %r0;\n";
  for (const bool nibbles : {true, false}) {
    const std::string type = nibbles ? "b4x16_p64" : "b6x16_p32";
    Program program(kernel(before + (nibbles ? "" : "st.shared.u32 [%r15+8], %r0;\n") +
                               "bar.sync 0;\nldmatrix.sync.aligned.m8n16.x4.shared.b8x16." + type +
                               " {%r30, %r31, %r32, %r33}, [%r15];\nst.global.u32 [%rd2], %r33;\n",
                           ".shared .align 128 .b8 s[512];"));
    std::vector<Buffer> buffers = {Buffer(128), Buffer(4)};
    EXPECT_NO_THROW(program.run(buffers, config_of(1, 32))) << type;
  }
}

TEST(BlackwellMatrix, Refuses) {
  for (const char* text : {"m16n16.x1.shared.b8", "m16n16.x4.trans.shared.b8", "m8n16.x1.shared.b8",
                           "m8n16.x1.trans.shared.b8x16.b4x16_p64"}) {
    try {
      load(text, 1);
      ADD_FAILURE() << text;
    } catch (const gg::emu::Fault& fault) {
      EXPECT_EQ(fault.kind, gg::emu::FaultKind::unsupported) << text;
    }
  }
}

}  // namespace
