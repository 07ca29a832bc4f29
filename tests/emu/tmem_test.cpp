// SPDX-License-Identifier: MIT
//
// Tensor memory in small PTX kernels of sm_100a: where tcgen05.ld, st, cp and shift move what, in
// every order, and who may allocate it. What the checks find is in tmem_checks_test.cpp.

#include <gtest/gtest.h>

#include "tests/emu/report_says.h"
#include "tests/emu/tmem_kernel.h"

namespace {

using namespace tmem_test;
using report::says;

constexpr int kLaneCount = 128;

// ---- ld and st ----

// PTX ISA, "Data Movement Shape", as a table: the cell of register i of thread t.
struct Cell {
  int lane, column;
};
Cell cell_of(const std::string& shape, int t, int i) {
  if (shape == "32x32b") return {t, i};
  if (shape == "16x64b") return {t / 4 + (t % 2) * 8, (t / 2) % 2 + 2 * i};
  if (shape == "16x128b") return {t / 4 + (i % 2) * 8, t % 4 + i / 2 * 4};
  if (shape == "16x256b") return {t / 4 + (i / 2 % 2) * 8, i / 4 * 8 + t % 4 * 2 + i % 2};
  return {t % 16, i};  // 16x32bx2, apart from the second half's offset
}

struct Form {
  const char* shape;
  int registers, columns, most;
};
const Form kForms[] = {{"32x32b", 1, 1, 128},
                       {"16x64b", 1, 2, 128},
                       {"16x128b", 2, 4, 64},
                       {"16x256b", 4, 8, 32},
                       {"16x32bx2", 1, 1, 128}};

struct Variant {
  Form form;
  int count = 1;
  bool packed = false;
  int half = 0;        // the address begins in lane 0 or 16 of the warp's quarter
  bool named = false;  // the address names the warp's own quarter; else lane 0, or 16
  bool split() const { return std::string(form.shape) == "16x32bx2"; }
  int registers() const { return form.registers * count; }
  int span() const { return form.columns * count * (packed ? 2 : 1); }
  int column() const { return std::min(5, 512 - span() * (split() ? 2 : 1)); }
  int second() const { return split() ? span() : 0; }  // the immediate
  int lanes() const { return form.shape == std::string("32x32b") ? 32 : 16; }

  // Lane in the block, column of the first cell of a register of thread t of warp w.
  Cell cell(int w, int t, int i) const {
    const Cell c = cell_of(form.shape, t, i);
    return {32 * (w % 4) + half + c.lane, column() + c.column * (packed ? 2 : 1) + (t >= 16 ? second() : 0)};
  }
  // %r80: the address. Its lanes name the quarter, or not.
  std::string address() const {
    return "add.u32 %r80, %r6, " + number((half << 16) + column()) + ";\n" +
           (named ? "and.b32 %r81, %r5, 3;\nshl.b32 %r81, %r81, 21;\nadd.u32 %r80, %r80, %r81;\n" : "");
  }
  std::string text(bool load) const {
    const std::string offset = split() ? ", " + number(second()) : "";
    const std::string vector = tmem_test::registers(registers());
    const std::string head = std::string("tcgen05.") + (load ? "ld" : "st") + ".sync.aligned." + form.shape +
                             ".x" + number(count) + (packed ? load ? ".pack::16b" : ".unpack::16b" : "") +
                             ".b32 ";
    return load ? head + vector + ", [%r80]" + offset + ";\n"
                : head + "[%r80]" + offset + ", " + vector + ";\n";
  }
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const Form& form : kForms) {
    for (int count = 1; count <= form.most; count *= 2) {
      for (const bool packed : {false, true}) {
        const bool whole = form.shape == std::string("32x32b");
        for (const int half : {0, 16}) {
          if (half && whole) continue;
          Variant v{form, count, packed, half, (count & 0x55) != 0};
          if (v.column() < 0) v.count = count;  // cannot be: 512 columns hold every form
          all.push_back(v);
        }
      }
    }
  }
  return all;
}

std::string name_of_variant(const Variant& v) {
  return std::string("s") + v.form.shape + "_x" + number(v.count) + (v.packed ? "_packed" : "") +
         (v.half ? "_16" : "");
}

class Moves : public testing::TestWithParam<Variant> {};

// value_at(1024 * thread + register): another in every lane, warp and register.
TEST_P(Moves, LoadTakesTheCellsOfTheTable) {
  const Variant& v = GetParam();
  std::string body = alloc(512) + fill(512, true) + kSync + v.address() + v.text(true) + kWaitLoad;
  body += "mad.lo.u32 %r82, %r0, " + number(4 * v.registers()) +
          ", 0;\ncvt.u64.u32 %rd9, %r82;\n"
          "add.u64 %rd9, %rd9, %rd0;\n";
  for (int i = 0; i < v.registers(); ++i)
    body += "st.global.u32 [%rd9+" + number(4 * i) + "], %r" + number(100 + i) + ";\n";
  for (const Order& order : kOrders) {
    const Words out = run(kernel(body + dealloc(512)), config_of(1, 256), order, size_t(256 * v.registers()));
    for (int thread = 0; thread < 256; ++thread) {
      for (int i = 0; i < v.registers(); ++i) {
        const Cell c = v.cell(thread / 32, thread % 32, i);
        const auto at = [&](int column) { return value_at(uint32_t(512 * c.lane + column)); };
        const uint32_t want = v.packed ? (at(c.column) & 0xFFFF) | at(c.column + 1) << 16 : at(c.column);
        ASSERT_EQ(out[size_t(thread * v.registers() + i)], want)
            << name_of(order) << ", thread " << thread << ", register " << i;
      }
    }
  }
}

TEST_P(Moves, StoreFillsTheCellsOfTheTable) {
  const Variant& v = GetParam();
  std::string body = alloc(512) + fill(512, false) + v.address() + "shl.b32 %r82, %r0, 10;\n";
  for (int i = 0; i < v.registers(); ++i)
    body += "add.u32 %r83, %r82, " + number(i) + ";\n" + value_ptx("%r" + number(100 + i), "%r83");
  body += v.text(false) + kWaitStore + dump(512) + dealloc(512);
  for (const Order& order : kOrders) {
    const Words out = run(kernel(body), config_of(1, 128), order, kLaneCount * 512);
    Words want(kLaneCount * 512, 7);
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < v.registers(); ++i) {
        const Cell c = v.cell(thread / 32, thread % 32, i);
        const uint32_t value = value_at(uint32_t(1024 * thread + i));
        const size_t at = size_t(512 * c.lane + c.column);
        want[at] = v.packed ? value & 0xFFFF : value;
        if (v.packed) want[at + 1] = value >> 16;
      }
    }
    ASSERT_TRUE(out == want) << name_of(order);
  }
}

TEST_P(Moves, WhatIsStoredIsLoaded) {
  const Variant& v = GetParam();
  std::string body = alloc(512) + v.address() + "shl.b32 %r82, %r0, 10;\n";
  for (int i = 0; i < v.registers(); ++i)
    body += "add.u32 %r83, %r82, " + number(i) + ";\n" + value_ptx("%r" + number(100 + i), "%r83");
  body += v.text(false) + kWaitStore;
  for (int i = 0; i < v.registers(); ++i) body += "mov.u32 %r" + number(100 + i) + ", 0;\n";
  body += v.text(true) + kWaitLoad + "mad.lo.u32 %r82, %r0, " + number(4 * v.registers()) +
          ", 0;\ncvt.u64.u32 %rd9, %r82;\nadd.u64 %rd9, %rd9, %rd0;\n";
  for (int i = 0; i < v.registers(); ++i)
    body += "st.global.u32 [%rd9+" + number(4 * i) + "], %r" + number(100 + i) + ";\n";
  for (const Order& order : kOrders) {
    const Words out = run(kernel(body + dealloc(512)), config_of(1, 128), order, size_t(128 * v.registers()));
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < v.registers(); ++i)
        ASSERT_EQ(out[size_t(thread * v.registers() + i)], value_at(uint32_t(1024 * thread + i)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Moves, testing::ValuesIn(variants()),
                         [](const auto& info) { return name_of_variant(info.param); });

// The immediate of 16x32bx2 is added to the whole address: it may name other lanes, or go back.
TEST(Tmem, TheSecondHalfMayBeInOtherLanes) {
  const auto read = [](int first, int64_t offset) {
    return alloc(512) + fill(512, true) + kSync + "add.u32 %r80, %r6, " + number(first) +
           ";\ntcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r100}, [%r80], " + number(offset) + ";\n" +
           kWaitLoad + "st.global.u32 [%rd2], %r100;\n" + dealloc(512);
  };
  const auto check = [](const std::string& body, int first_lane, int first, int second_lane, int second) {
    const Words out = run(kernel(body), config_of(1, 128), {0, false}, 128);
    for (int thread = 0; thread < 128; ++thread) {
      const int t = thread % 32, lane = thread / 32 * 32 + t % 16 + (t < 16 ? first_lane : second_lane);
      ASSERT_EQ(out[size_t(thread)], value_at(uint32_t(512 * lane + (t < 16 ? first : second)))) << thread;
    }
  };
  check(read(3, (16 << 16) + 7), 0, 3, 16, 10);
  check(read(9, -4), 0, 9, 0, 5);
}

// Kernels of NVIDIA's compilers add the lane's number to the field of lanes: the lowest
// lane's address counts.
TEST(Tmem, LanesMayAddTheirOwnNumber) {
  const std::string body = alloc(32) + fill(32, true) +
                           "shl.b32 %r80, %r4, 16;\nadd.u32 %r80, %r80, %r6;\n"
                           "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r100}, [%r80+2];\n" +
                           kWaitLoad + "st.global.u32 [%rd2], %r100;\n" + dealloc(32);
  const Words out = run(kernel(body), config_of(1, 128), {0, false}, 128);
  for (uint32_t thread = 0; thread < 128; ++thread) EXPECT_EQ(out[thread], value_at(512 * thread + 2));
}

// ---- cp and shift ----

struct CopyForm {
  const char* text;
  int rows, row_bytes;
};
const CopyForm kCopies[] = {{"128x256b", 128, 32},
                            {"4x256b", 4, 32},
                            {"128x128b", 128, 16},
                            {"64x128b.warpx2::02_13", 64, 16},
                            {"64x128b.warpx2::01_23", 64, 16},
                            {"32x128b.warpx4", 32, 16}};

// PTX ISA, "tcgen05.cp": lanes that get a row.
std::vector<int> lanes_of(const std::string& form, int row, int lane) {
  if (form == "128x256b" || form == "128x128b") return {row};
  if (form == "4x256b") return {lane + 32 * row};
  if (form == "32x128b.warpx4") return {row, row + 32, row + 64, row + 96};
  if (form == "64x128b.warpx2::02_13") return {row, row + 64};
  return row < 32 ? std::vector<int>{row, row + 32} : std::vector<int>{row + 32, row + 64};
}

// fill_shared()'s bytes.
uint8_t shared_byte(int at) { return uint8_t(value_at(uint32_t(at / 4)) >> at % 4 * 8); }

struct Layout {
  uint64_t bits;
  int leading, stride, span;  // span 0: no swizzle
  int unit(int row, int unit) const {
    if (span == 0) return row / 8 * stride + row % 8 * 16 + unit * leading;
    const int at = row / 8 * stride + row % 8 * span + unit * 16;
    return at ^ ((at >> 7 & (span / 16 - 1)) << 4);
  }
};
const Layout kPlain = {descriptor(1024 * 8, 160), 1024 * 8, 160, 0};
const Layout kSwizzled = {descriptor(16, 1024, 2), 16, 1024, 128};

// The column that a copy into columns [8, 16) leaves in each lane.
Words copied(const CopyForm& form, const Layout& layout, int lane, bool from_4_bits, Words want,
             int offset = 0) {
  for (int row = 0; row < form.rows; ++row) {
    for (int b = 0; b < form.row_bytes; ++b) {
      const int unit = layout.unit(row, b / 16), i = b % 16;
      const uint32_t packed = shared_byte(offset + unit + i / 2);
      const uint32_t byte = from_4_bits ? (packed >> i % 2 * 4 & 15) << 2 : shared_byte(offset + unit + i);
      for (const int to : lanes_of(form.text, row, lane)) {
        uint32_t& word = want[size_t(to * 16 + 8 + b / 4)];
        word = (word & ~(0xFFu << b % 4 * 8)) | byte << b % 4 * 8;
      }
    }
  }
  return want;
}

std::string copy_text(const std::string& form, const std::string& to, int group = 1,
                      const std::string& guard = "@%p0 ") {
  return guard + "tcgen05.cp.cta_group::" + number(group) + "." + form + " [" + to + "], %rd8;\n";
}

void check_copy(const CopyForm& form, const Layout& layout, bool from_4_bits, int lane) {
  SCOPED_TRACE(form.text);
  const std::string text = std::string(form.text) + (from_4_bits ? ".b8x16.b4x16_p64" : "");
  const std::string body = alloc(32) + init(0, 1) + fill(16, false) + fill_shared(64) + kSync +
                           make_descriptor(layout.bits) + "add.u32 %r80, %r6, " + number((lane << 16) + 8) +
                           ";\n" + copy_text(text, "%r80") + commit() + wait(0) + kAfter + dump(16) +
                           dealloc(32);
  for (const Order& order : kOrders) {
    const Words out = run(kernel(body), config_of(1, 128), order, kLaneCount * 16);
    const Words want = copied(form, layout, lane, from_4_bits, Words(kLaneCount * 16, 7));
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(out[i], want[i]) << name_of(order) << ", lane " << i / 16 << ", column " << i % 16;
  }
}

TEST(Tmem, CopiesGoToTheLanesOfTheTable) {
  for (const CopyForm& form : kCopies) {
    for (const Layout& layout : {kPlain, kSwizzled}) {
      for (const bool from_4_bits : {false, true}) check_copy(form, layout, from_4_bits, 0);
    }
  }
  check_copy(kCopies[1], kPlain, false, 19);
}

// Copies and shifts of a thread are done in the order of their issue, whatever is drawn for each.
TEST(Tmem, OperationsOfAThreadAreDoneInOrder) {
  std::string body =
      alloc(32) + init(0, 1) + fill(16, false) + fill_shared(64) + kSync + "add.u32 %r80, %r6, 8;\n";
  for (int i = 0; i < 5; ++i) body += make_descriptor(kPlain.bits, 256 * i) + copy_text("128x256b", "%r80");
  body += "@%p0 tcgen05.shift.cta_group::1.down [%r80];\n";
  body += "add.u32 %r80, %r80, " + number(64 << 16) + ";\n@%p0 tcgen05.shift.cta_group::1.down [%r80];\n";
  body += commit() + wait(0) + kAfter + dump(16) + dealloc(32);
  Words want = copied(kCopies[0], kPlain, 0, false, Words(kLaneCount * 16, 7), 1024);
  for (const int first : {0, 64}) {
    for (int lane = first; lane < first + 31; ++lane)
      std::copy_n(&want[size_t((lane + 1) * 16 + 8)], 8, &want[size_t(lane * 16 + 8)]);
  }
  for (const Order& order : emu_test::orders())
    ASSERT_TRUE(run(kernel(body), config_of(1, 128), order, kLaneCount * 16) == want) << name_of(order);
}

// Until the commit's mbarrier says so, nothing need have happened: in order 0:fair it has not.
TEST(Tmem, OperationsAreDoneLate) {
  const auto body = [](const std::string& waits) {
    return alloc(32) + init(0, 1) + fill(16, false) + fill_shared(64) + kSync + make_descriptor(kPlain.bits) +
           copy_text("128x256b", "%r6") + commit() + waits + dump(8) + wait(0) + kAfter + dump(8, 128 * 8) +
           dealloc(32);
  };
  Config config = config_of(1, 128);
  config.options.races = false;  // they find it in every order; this is about the values
  const Words early = run(kernel(body("")), config, {0, false}, 2 * 128 * 8);
  const Words late = run(kernel(body(wait(0) + kAfter)), config, {0, false}, 2 * 128 * 8);
  for (size_t i = 0; i < 128 * 8; ++i) {
    ASSERT_EQ(early[i], 7u) << i;
    ASSERT_EQ(early[128 * 8 + i], late[i]) << i;
    ASSERT_NE(late[i], 7u) << i;
  }
}

// cta_group::2: the even block's thread copies in both blocks, each from its own shared memory, and
// a commit tells both.
void check_copy_of_a_pair(const CopyForm& form) {
  std::string body = alloc(64, 2) + init(0, 1) + fill(16, false) + fill_shared(64);
  // Rank 1 has other bytes: those of rank 0, inverted.
  body +=
      "setp.eq.u32 %p3, %r1, 0;\nmad.lo.u32 %r94, %r0, 4, %r2;\nmov.u32 %r95, 0;\n@%p3 bra SAME;\nINVERT:\n"
      "ld.shared.u32 %r96, [%r94];\nnot.b32 %r96, %r96;\nst.shared.u32 [%r94], %r96;\n"
      "add.u32 %r94, %r94, 512;\nadd.u32 %r95, %r95, 1;\nsetp.lt.u32 %p4, %r95, 64;\n@%p4 bra INVERT;\n"
      "fence.proxy.async.shared::cta;\nSAME:\n";
  body += kBefore + "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" + kAfter;
  body += make_descriptor(kPlain.bits) +
          "add.u32 %r80, %r6, 8;\nand.pred %p3, %p3, %p0;\nmov.u16 %h0, 3;\n"
          "mov.u32 %r98, bars;\n" +
          copy_text(form.text, "%r80", 2, "@%p3 ") +
          "@%p3 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
          "[%r98], %h0;\n" +
          wait(0) + kAfter;
  body += "mad.lo.u32 %r70, %r1, 8192, 0;\ncvt.u64.u32 %rd7, %r70;\nadd.u64 %rd0, %rd0, %rd7;\n" + dump(16) +
          dealloc(64, 2);
  for (const Order& order : kOrders) {
    const Words out = run(kernel(body), config_of(2, 128, 2), order, 2 * 128 * 16);
    const Words want = copied(form, kPlain, 0, false, Words(kLaneCount * 16, 7));
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(out[i], want[i]) << form.text << " " << name_of(order) << " " << i;
      ASSERT_EQ(out[2048 + i], want[i] == 7 ? 7 : ~want[i]) << form.text << " " << name_of(order) << " " << i;
    }
  }
}
TEST(Tmem, APairCopiesInBothBlocks) {
  for (const CopyForm& form : kCopies) check_copy_of_a_pair(form);
}

TEST(Tmem, APairShiftsInBothBlocks) {
  const std::string body =
      alloc(64, 2) + init(0, 1) + fill(16, true) + kBefore +
      "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" + kAfter +
      "setp.eq.u32 %p3, %r1, 0;\nand.pred %p3, %p3, %p0;\nmov.u16 %h0, 3;\nmov.u32 %r98, bars;\n"
      "add.u32 %r80, %r6, " +
      number((32 << 16) + 4) +
      ";\n@%p3 tcgen05.shift.cta_group::2.down [%r80];\n"
      "@%p3 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%r98], %h0;\n" +
      wait(0) + kAfter +
      "mad.lo.u32 %r70, %r1, 8192, 0;\ncvt.u64.u32 %rd7, %r70;\nadd.u64 %rd0, %rd0, %rd7;\n" + dump(16) +
      dealloc(64, 2);
  for (const Order& order : kOrders) {
    const Words out = run(kernel(body), config_of(2, 128, 2), order, 2 * 128 * 16);
    for (uint32_t i = 0; i < out.size(); ++i) {
      const uint32_t lane = i % 2048 / 16, column = i % 16;
      const bool moved = lane >= 32 && lane < 63 && column >= 4 && column < 12;
      ASSERT_EQ(out[i], value_at(512 * (lane + moved) + column)) << name_of(order) << " " << i;
    }
  }
}

// ---- allocation ----

std::string alloc_text(int slot, int columns) {
  return "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd5+" + number(4 * slot) + "], " + number(columns) +
         ";\n";
}
const std::string kSlots = "mov.u32 %r20, slot;\ncvt.u64.u32 %rd5, %r20;\ncvta.shared.u64 %rd5, %rd5;\n";

TEST(Tmem, TheFirstColumnsThatFitAreGiven) {
  std::string body =
      kSlots + alloc_text(0, 64) + alloc_text(1, 32) + alloc_text(2, 128) +
      "ld.shared.u32 %r21, [slot];\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 64;\n" +
      "mov.u32 %r29, 32;\ntcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd5+12], %r29;\n";
  for (int i = 0; i < 4; ++i) {
    body += "ld.shared.u32 %r" + number(22 + i) + ", [slot+" + number(4 * i) + "];\n";
    if (i)
      body += "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r" + number(22 + i) + ", " +
              number(i == 2 ? 128 : 32) + ";\n";
  }
  body += "@%p0 st.global.v4.u32 [%rd0], {%r22, %r23, %r24, %r25};\n";
  for (const Order& order : kOrders)
    EXPECT_EQ(run(kernel(body), config_of(1, 32), order, 4), (Words{0, 64, 128, 0}));
}

// The second warp waits until the first has given its columns back.
TEST(Tmem, AllocationWaitsForColumns) {
  const std::string body =
      kSlots +
      "mov.u32 %r11, slot;\nmad.lo.u32 %r10, %r5, 4, %r11;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r10], 512;\n"
      "ld.shared.u32 %r6, [%r10];\n@%p1 nanosleep.u32 100;\n@%p1 nanosleep.u32 100;\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 512;\nst.global.u32 [%rd2], %r6;\n";
  for (const Order& order : kOrders)
    EXPECT_EQ(run(kernel(body), config_of(1, 128), order, 128), Words(128, 0));
}

TEST(Tmem, AllocationThatNobodyEndsIsADeadlock) {
  const std::string body = kSlots + alloc_text(0, 512) + alloc_text(1, 32);
  try {
    run(kernel(body), config_of(1, 32), {0, false}, 4);
    FAIL();
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.kind, FaultKind::deadlock);
    EXPECT_TRUE(says(fault.what(), "waits in tcgen05.alloc of 32 columns; columns 0-511 are allocated"));
  }
}

// Nobody of a pair goes on alone: rank 0's warp comes at once, rank 1's after it has seen that
// rank 0 waits.
TEST(Tmem, APairAllocatesTogether) {
  const std::string body = R"(
    setp.eq.u32 %p3, %r1, 1;
    @!%p3 bra ALLOC;
    mov.u32 %r10, 0;
    LOOP:
    nanosleep.u32 20;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p4, %r10, 50;
    @%p4 bra LOOP;
    mov.u32 %r11, 1;
    st.global.u32 [%rd0], %r11;
    ALLOC:
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 256;
    ld.global.u32 %r12, [%rd0];
    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
    ld.shared.u32 %r6, [slot];
    add.u32 %r6, %r6, %r12;
    mad.wide.u32 %rd4, %r1, 4, %rd0;
    @%p0 st.global.u32 [%rd4+4], %r6;
    sub.u32 %r6, %r6, %r12;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r6, 256;
  )";
  for (const Order& order : kOrders)
    EXPECT_EQ(run(kernel(body), config_of(2, 32, 2), order, 3), (Words{1, 1, 1}));
}

}  // namespace
