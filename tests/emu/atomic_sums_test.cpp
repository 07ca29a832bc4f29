// SPDX-License-Identifier: MIT
//
// Sums and extremes of floating-point numbers by atom and red, in global and shared memory and at
// generic addresses: what becomes of zeros, subnormal numbers, ties, overflow and NaN.
// tests/isa/atomics_test.cu asks a GPU too.

#include <gtest/gtest.h>

#include "tests/emu/launch_ptx.h"

namespace {

using namespace emu_test;
using Longs = std::vector<uint64_t>;

// Where memory is, and the address operand: a word of 8 bytes that begins as `old`.
struct Where {
  const char *space, *address;
  bool shared;
};
constexpr Where kGlobal = {".global", "[%rd2]", false}, kShared = {".shared", "[%r10]", true},
                kGenericGlobal = {"", "[%rd2]", false}, kGenericShared = {"", "[%rd3]", true};

// Memory after an operation on `old`, and the register that atom writes; for red the operand.
struct Outcome {
  uint64_t now = 0, before = 0;
};
Outcome outcome(const std::string& opcode, const Where& where, const std::string& operation, uint64_t old,
                uint64_t with) {
  const bool wide = operation.find("64") != std::string::npos,
             vector = operation.find(".v") != std::string::npos,
             word = operation.find("x2") != std::string::npos || operation.find("32") != std::string::npos;
  const std::string list = vector && word ? "{%r20, %r21}"
                           : vector       ? "{%h0, %h1, %h2, %h3}"
                           : wide         ? "%rd5"
                           : word         ? "%r20"
                                          : "%h0";
  const std::string to = opcode == "atom" ? list + ", " : "";
  Program program(kernel(R"(
    .shared .align 8 .b64 cell;
    mov.u32 %r10, cell;
    mov.u64 %rd2, %rd0;
    cvt.u64.u32 %rd3, %r10;
    cvta.shared.u64 %rd3, %rd3;
    ld.global.u64 %rd4, [%rd0];
    st.shared.u64 [%r10], %rd4;
    ld.global.u64 %rd5, [%rd1];
    mov.b64 {%r20, %r21}, %rd5;
    mov.b64 {%h0, %h1, %h2, %h3}, %rd5;
    )" + opcode + where.space +
                         "." + operation + " " + to + where.address + ", " + list + ";\n" +
                         (wide   ? "mov.b64 %rd6, %rd5;\n"
                          : word ? "mov.b64 %rd6, {%r20, %r21};\n"
                                 : "mov.b64 %rd6, {%h0, %h1, %h2, %h3};\n") +
                         (where.shared ? "ld.shared.u64 %rd4, [%r10];\n" : "ld.global.u64 %rd4, [%rd0];\n") +
                         "st.global.u64 [%rd0], %rd4;\nst.global.u64 [%rd1], %rd6;\n"));
  std::vector<Buffer> buffers = {buffer_of(Longs{old}), buffer_of(Longs{with})};
  program.run(buffers, config_of(1, 1));
  return {values_of<uint64_t>(buffers[0])[0], values_of<uint64_t>(buffers[1])[0]};
}

struct Row {
  uint64_t old, with, now;
};
// `bits`: of what the operation touches; the other bytes stay, and atom returns those it touched.
void expect_rows(const std::string& operation, int bits, const std::vector<Where>& places,
                 const std::vector<Row>& rows) {
  const uint64_t touched = bits == 64 ? ~0ull : (1ull << bits) - 1, others = 0x123456789ABCDEF0u & ~touched;
  for (const Where& where : places) {
    for (const Row& row : rows) {
      for (const char* opcode : {"atom", "red"}) {
        const bool returns = opcode[0] == 'a';
        const Outcome got = outcome(opcode, where, operation, row.old | others, row.with);
        EXPECT_EQ(got.now, row.now | others)
            << std::hex << opcode << where.space << "." << operation << (where.shared ? " shared" : " global")
            << " of 0x" << row.old << " and 0x" << row.with;
        EXPECT_EQ(got.before & touched, (returns ? row.old : row.with) & touched) << operation;
      }
    }
  }
}

const std::vector<Where> kEverywhere = {kGlobal, kShared, kGenericGlobal, kGenericShared};

const std::vector<Row> kSumsOfF16 = {
    {0x8000, 0x8000, 0x8000}, {0x0000, 0x8000, 0x0000}, {0x3C00, 0xBC00, 0x0000}, {0x0001, 0x0001, 0x0002},
    {0x83FF, 0x8001, 0x8400}, {0x0400, 0x8001, 0x03FF}, {0x3C00, 0x1000, 0x3C00}, {0x3C01, 0x1000, 0x3C02},
    {0x3C00, 0x1001, 0x3C01}, {0xBC00, 0x9001, 0xBC01}, {0x7BFF, 0x4C00, 0x7C00}, {0x7BFF, 0x4BFF, 0x7BFF},
    {0x7C00, 0xFBFF, 0x7C00}, {0x7C00, 0xFC00, 0x7FFF}, {0x7C01, 0x3C00, 0x7FFF}, {0x3C00, 0xFE12, 0x7FFF}};
const std::vector<Row> kSumsOfBf16 = {
    {0x8000, 0x8000, 0x8000}, {0x0000, 0x8000, 0x0000}, {0x3F80, 0xBF80, 0x0000}, {0x0001, 0x0001, 0x0002},
    {0x807F, 0x8001, 0x8080}, {0x0080, 0x8001, 0x007F}, {0x3F80, 0x3B80, 0x3F80}, {0x3F81, 0x3B80, 0x3F82},
    {0x3F80, 0x3B81, 0x3F81}, {0xBF80, 0xBB81, 0xBF81}, {0x7F7F, 0x7B00, 0x7F80}, {0x7F7F, 0x7AFF, 0x7F7F},
    {0x7F80, 0xFF7F, 0x7F80}, {0x7F80, 0xFF80, 0x7FFF}, {0x7F81, 0x3F80, 0x7FFF}, {0x3F80, 0xFFC1, 0x7FFF}};

// Two rows side by side, of which the higher one comes `shift` bits higher.
std::vector<Row> pairs_of(const std::vector<Row>& rows, int shift = 16) {
  std::vector<Row> all;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row &low = rows[i], &high = rows[(i + 3) % rows.size()];
    all.push_back({low.old | high.old << shift, low.with | high.with << shift, low.now | high.now << shift});
  }
  return all;
}

TEST(AtomicSums, OfHalves) {
  expect_rows("add.noftz.f16", 16, kEverywhere, kSumsOfF16);
  expect_rows("add.noftz.bf16", 16, kEverywhere, kSumsOfBf16);
  expect_rows("add.noftz.f16x2", 32, kEverywhere, pairs_of(kSumsOfF16));
  expect_rows("add.noftz.bf16x2", 32, kEverywhere, pairs_of(kSumsOfBf16));
}

TEST(AtomicSums, OfVectors) {
  const std::vector<Where> global = {kGlobal, kGenericGlobal};
  expect_rows("add.noftz.v4.f16", 64, global, pairs_of(pairs_of(kSumsOfF16), 32));
  expect_rows("add.noftz.v4.bf16", 64, global, pairs_of(pairs_of(kSumsOfBf16), 32));
  expect_rows("add.noftz.v2.bf16x2", 64, global, pairs_of(pairs_of(kSumsOfBf16), 32));
  const std::vector<Row> least = {{0x0000, 0x8000, 0x8000}, {0x8000, 0x0000, 0x8000},
                                  {0x8001, 0x0001, 0x8001}, {0xFE00, 0x3C00, 0x3C00},
                                  {0xBC00, 0x7FC1, 0xBC00}, {0x7FC1, 0xFFC2, 0x7FFF}};
  const std::vector<Row> most = {{0x0000, 0x8000, 0x0000}, {0x8000, 0x0000, 0x0000},
                                 {0x8001, 0x0001, 0x0001}, {0xFE00, 0x3C00, 0x3C00},
                                 {0xBC00, 0x7FC1, 0xBC00}, {0x7FC1, 0xFFC2, 0x7FFF}};
  expect_rows("min.noftz.v4.f16", 64, global, pairs_of(pairs_of(least), 32));
  expect_rows("max.noftz.v2.f16x2", 64, global, pairs_of(pairs_of(most), 32));
}

TEST(AtomicSums, OfF32FlushInGlobalMemoryAlone) {
  const std::vector<Row> both = {{0x3F800000, 0x33800000, 0x3F800000}, {0x3F800001, 0x33800000, 0x3F800002},
                                 {0x7F7FFFFF, 0x73000000, 0x7F800000}, {0x80000000, 0x80000000, 0x80000000},
                                 {0x7F800000, 0xFF800000, 0x7FFFFFFF}, {0x7F800001, 0x3F800000, 0x7FFFFFFF}};
  expect_rows("add.f32", 32, kEverywhere, both);
  expect_rows("add.f32", 32, {kGlobal, kGenericGlobal},
              {{0x00000001, 0x00000001, 0x00000000},
               {0x80000001, 0x80000000, 0x80000000},
               {0x007FFFFF, 0x00800000, 0x00800000},
               {0x00800001, 0x80800000, 0x00000000}});
  expect_rows("add.f32", 32, {kShared, kGenericShared},
              {{0x00000001, 0x00000001, 0x00000002},
               {0x80000001, 0x80000000, 0x80000001},
               {0x007FFFFF, 0x00800000, 0x00FFFFFF},
               {0x00800001, 0x80800000, 0x00000001}});
  expect_rows("add.v2.f32", 64, {kGlobal}, {{0x0000000100000001u, 0x3F80000000000001u, 0x3F80000000000000u}});
  expect_rows("add.f64", 64, kEverywhere,
              {{1, 1, 2}, {0x3FF0000000000000u, 0x3CA0000000000001u, 0x3FF0000000000001u}});
}

// ptxas takes none of these.
TEST(AtomicSums, FormsThatDoNotExistAreNotThere) {
  for (const char* form :
       {"red.global.min.noftz.f16 [%rd0], %h0", "atom.shared.max.noftz.bf16x2 %r10, [%r11], %r12",
        "red.global.add.f16 [%rd0], %h0", "red.global.add.noftz.f32 [%rd0], %f0",
        "red.global.min.f32 [%rd0], %f0",
        "red.global.add.v8.f32 [%rd0], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}",
        "red.shared.add.v2.f32 [%r11], {%f0, %f1}", "red.global.add.v2.u32 [%rd0], {%r10, %r11}"}) {
    Program program(kernel(std::string("mov.b16 %h0, 0;\nmov.u32 %r11, 0;\n") + form + ";\n"));
    std::vector<Buffer> buffers = {Buffer(64), Buffer(64)};
    try {
      program.run(buffers, config_of(1, 1));
      ADD_FAILURE() << form << " was executed";
    } catch (const Fault& fault) {
      EXPECT_EQ(fault.kind, FaultKind::unsupported) << form << ": " << fault.what();
    }
  }
}

}  // namespace
