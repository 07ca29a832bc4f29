// SPDX-License-Identifier: MIT
//
// The checks that look at many bytes at once, or are decided when a kernel is decoded, find what
// looking at each byte and each read would: races of accesses of every width and place, and
// registers unwritten on some path.

#include <gtest/gtest.h>

#include "common/kernel/error.h"
#include "tests/emu/launch_ptx.h"

namespace {

using namespace emu_test;

// The kind of the fault of a module's kernel, or "" if there is none.
std::string fault_in(const std::string& ptx, const Config& config) {
  Program program(ptx);
  std::vector<Buffer> buffers = {Buffer(4096), Buffer(4096)};
  try {
    program.run(buffers, config);
  } catch (const Fault& fault) {
    return fault_name(fault.kind);
  }
  return "";
}
std::string fault_of(const std::string& body, const Config& config) {
  return fault_in(kernel(body, ".shared .align 16 .b8 tile[1024];\n"), config);
}
std::string fault_of(const std::string& body, bool checks = true, int threads = 64) {
  Config config = config_of(1, threads);
  config.options.workers = 1;
  config.options.checks = checks;
  return fault_of(body, config);
}

// All of the tile written, and everybody knows.
constexpr const char* kFill = R"(
  mov.u32 %r10, tile;
  mad.lo.u32 %r11, %r0, 16, %r10;
  mov.u64 %rd10, 0; mov.u32 %r12, 0; mov.u16 %h0, 0;
  st.shared.v4.u32 [%r11], {%r12, %r12, %r12, %r12};
  bar.sync 0;
  add.u32 %r12, %r4, 1;  // every byte another one than the other warp's: equal stores do not race
  mul.lo.u32 %r12, %r12, 16843009;
  cvt.u16.u32 %h0, %r12;
  mov.b64 %rd10, {%r12, %r12};
  setp.eq.u32 %p1, %r4, 0;
  setp.eq.u32 %p2, %r4, 1;
  setp.eq.u32 %p3, %r0, 0;
  setp.eq.u32 %p4, %r0, 32;
)";

// An access of `width` bytes at the address in %r13.
std::string access(bool store, int width) {
  const char* types[] = {"u8", "u16", "u32", "u64", "v4.u32"};
  const char* registers[] = {"%h0", "%h0", "%r12", "%rd10", "{%r12, %r15, %r16, %r17}"};
  const char* stored[] = {"%h0", "%h0", "%r12", "%rd10", "{%r12, %r12, %r12, %r12}"};
  const int i = __builtin_ctz(unsigned(width));
  return store ? gg::format("st.shared.%s [%%r13], %s;\n", types[i], stored[i])
               : gg::format("ld.shared.%s %s, [%%r13];\n", types[i], registers[i]);
}

// One warp's access, then the other's, with no barrier between: a race if they share a byte and one
// of them writes. Either with one lane, or with all, `stride` bytes apart.
struct Side {
  bool store;
  int width, offset, stride;
  bool touches(int byte) const {
    for (int lane = 0; lane < (stride ? 32 : 1); ++lane) {
      const int begin = offset + lane * stride;
      if (begin <= byte && byte < begin + width) return true;
    }
    return false;
  }
  std::string text(const char* all_lanes, const char* one_lane) const {
    return gg::format("mad.lo.u32 %%r13, %%r3, %d, %%r10;\nadd.u32 %%r13, %%r13, %d;\n@%s ", stride, offset,
                      stride ? all_lanes : one_lane) +
           access(store, width);
  }
};

TEST(Races, AreThoseOfTheBytes) {
  std::vector<Side> sides;
  for (const int width : {1, 2, 4, 8, 16}) {
    for (const int offset : {0, 16, 256 - width, 256, 384 + 3 * width}) {
      sides.push_back({true, width, offset / width * width, 0});
      sides.push_back({false, width, offset / width * width, 0});
    }
    sides.push_back({true, width, 128, width});
    sides.push_back({false, width, 128, width});
    sides.push_back({true, width, 4 * width, 16});
    sides.push_back({false, width, 0, 16});
  }
  int races = 0, clean = 0;
  for (size_t i = 0; i < sides.size(); ++i) {
    for (size_t j = i % 5; j < sides.size(); j += 5) {  // a fifth of the pairs
      const Side &first = sides[i], &second = sides[j];
      if (first.offset + 31 * first.stride + first.width > 1024) continue;
      if (second.offset + 31 * second.stride + second.width > 1024) continue;
      bool shared = false;
      for (int byte = 0; byte < 1024; ++byte) shared |= first.touches(byte) && second.touches(byte);
      const bool race = shared && (first.store || second.store);
      ++(race ? races : clean);
      const std::string body = kFill + first.text("%p1", "%p3") + second.text("%p2", "%p4");
      ASSERT_EQ(fault_of(body), race ? "race" : "") << body;
      ASSERT_EQ(fault_of(body, false), "");
    }
  }
  EXPECT_GT(races, 100);
  EXPECT_GT(clean, 100);
}

// Some of these instructions make a load come before an arrival in another block.
// tests/chapters/chapters_gpu_test.cpp has the kernel that hung on an H200. Its shuffle of the
// loaded value was not there any more in its machine code.
TEST(Races, AreThoseOfLoadsThatAnArrivalOvertakes) {
  struct {
    const char *between, *order, *fault;
  } const cases[] = {
      {"", "", "race"},
      {"add.u32 %r12, %r12, 1;\nshfl.sync.idx.b32 %r12, %r12, 0, 31, 1;", "", "race"},
      {"bar.warp.sync 1;", "", "race"},
      {"fence.mbarrier_init.release.cluster;", "", "race"},
      {"setp.eq.u32 %p4, %r12, 99;\n@%p4 mov.u32 %r12, 5;", "", "race"},
      {"setp.eq.u32 %p4, %r0, 99;\n@%p4 bra SKIP;", "", "race"},  // of something else
      {"", ".release.cta", "race"},
      {"", ".relaxed.cluster", "race"},
      {"", ".release.cluster", ""},
      {"fence.acq_rel.cluster;", "", ""},
      {"setp.eq.u32 %p4, %r12, 99;\n@%p4 bra SKIP;", "", ""},
      {"add.u32 %r13, %r12, 1;\nsetp.eq.u32 %p4, %r13, 99;\n@%p4 bra SKIP;", "", ""},
      {"setp.ne.u32 %p4, %r12, 99;\n@%p4", "", ""},  // guards the arrival
      {"st.global.u32 [%rd0], %r12;", "", ""},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(fault_in(read_and_tell(c.between, c.order), config_of(2, 32, 2)), c.fault) << c.between << "\n"
                                                                                         << c.order;
  }
}

// A barrier that has come between is one, though there is a way around it that nobody takes.
TEST(Races, AreNotThoseOfLoadsBeforeABarrierOnTheWay) {
  for (const bool meets : {false, true}) {
    const std::string way =
        std::string("setp.eq.u32 %p4, %r0, 99;\n@%p4 bra AROUND;\n") + (meets ? "bar.sync 0;\n" : "");
    std::string code = read_and_tell(way + "AROUND:\n@%p0");
    const std::string one_lane = "setp.eq.and.u32 %p2, %r10, 1, %p0;";
    // All lanes load.
    code.replace(code.find(one_lane), one_lane.size(), "setp.eq.u32 %p2, %r10, 1;");
    EXPECT_EQ(fault_in(code, config_of(2, 32, 2)), meets ? "" : "race");
  }
}

// Ranges of every place and length around the words that the bits are kept in.
TEST(GlobalMemory, RemembersTheBytesOfEveryRange) {
  constexpr uint64_t kBytes = 400;
  gg::emu::GlobalMemory memory;
  const uint64_t begin = memory.allocate(kBytes), other = memory.allocate(kBytes);
  for (uint64_t first = 0; first < 70; first += 3) {
    for (uint64_t count = 1; count < 200; count += 11) {
      memory.forget(begin);
      memory.forget(other);
      memory.mark_written(begin + first, count);
      memory.was_copied(other + 5, begin + first - first / 2, kBytes - first - 5, nullptr, 0);
      for (uint64_t at = 0; at < kBytes; ++at) {
        ASSERT_EQ(memory.is_written(begin + at, 1), first <= at && at < first + count)
            << first << " " << count;
        const uint64_t source = at - 5 + first - first / 2;
        const bool copied = at >= 5 && at < kBytes - first && first <= source && source < first + count;
        ASSERT_EQ(memory.is_written(other + at, 1), copied) << first << " " << count << " " << at;
      }
      ASSERT_TRUE(memory.is_written(begin + first, count));
      ASSERT_FALSE(memory.is_written(begin + first, count + 1));
    }
  }
}

TEST(GlobalMemory, ForgetsAnAllocationAndNoOther) {
  constexpr uint64_t kBytes = 200000;
  gg::emu::GlobalMemory memory;
  uint64_t all[3];
  for (uint64_t& each : all) {
    each = memory.allocate(kBytes);
    memory.forget(each);
    memory.mark_written(each, kBytes - 1);
  }
  for (const bool again : {false, true}) {
    again ? memory.forget(all[1]) : memory.settle(all[1], kBytes, 0);
    for (uint64_t at = 0; at < kBytes - 1; at += 7) {
      ASSERT_TRUE(memory.is_written(all[0] + at, 1) && memory.is_written(all[2] + at, 1)) << at;
      ASSERT_EQ(memory.is_written(all[1] + at, 1), !again) << at;
    }
    EXPECT_EQ(memory.is_written(all[1] + kBytes - 1, 1), !again);
  }
}

// Reads of bytes of which some were never written, in rows and alone.
TEST(SharedMemory, EveryByteMustBeWritten) {
  for (const int missing : {0, 5, 16, 31}) {
    const std::string fill = gg::format(R"(
      mov.u32 %%r10, tile;
      mad.lo.u32 %%r11, %%r3, 4, %%r10;
      setp.ne.u32 %%p1, %%r3, %d;
      @%%p1 st.shared.u32 [%%r11], %%r3;
      bar.sync 0;
    )",
                                        missing);
    const auto after_fill = [&](const std::string& read, bool checks = true) {
      return fault_of(fill + read, checks, 32);
    };
    EXPECT_EQ(after_fill("ld.shared.u32 %r12, [%r11];\n"), "uninit-shared");
    EXPECT_EQ(after_fill("ld.shared.u32 %r12, [%r11];\n", false), "");
    EXPECT_EQ(after_fill("@%p1 ld.shared.u32 %r12, [%r11];\n"), "");
    EXPECT_EQ(after_fill("ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%r10 + 16];\n"),
              missing / 4 == 1 ? "uninit-shared" : "");
  }
}

TEST(Addresses, AreCheckedWithoutTheOtherChecksToo) {
  for (const bool checks : {true, false}) {
    EXPECT_EQ(fault_of("mov.u32 %r10, tile; ld.shared.u32 %r11, [%r10 + 1024];\n", checks), "bounds");
    EXPECT_EQ(fault_of("mov.u32 %r10, tile; st.shared.u32 [%r10 + 2], %r0;\n", checks), "alignment");
    EXPECT_EQ(fault_of("ld.global.u32 %r10, [%rd1 + 4096];\n", checks), "bounds");
    EXPECT_EQ(fault_of("mov.u64 %rd5, 0; st.global.u32 [%rd5], %r0;\n", checks), "bounds");
  }
}

TEST(Registers, MustBeWrittenOnTheWayThatALaneTook) {
  const char* const unwritten[] = {
      // never written
      "st.global.u32 [%rd2], %r21;\n",
      // written under a guard
      "setp.lt.u32 %p1, %r3, 16;\n@%p1 mov.u32 %r20, 1;\nst.global.u32 [%rd2], %r20;\n",
      // written in a branch
      "setp.lt.u32 %p1, %r3, 16;\n@%p1 bra L;\nmov.u32 %r20, 1;\nL:\nst.global.u32 [%rd2], "
      "%r20;\n",
      "setp.lt.u32 %p1, %r3, 16;\n@!%p1 bra L;\nmov.u32 %r20, 1;\nL:\nst.global.u32 [%rd2], "
      "%r20;\n",
      // in a loop that some lanes do not enter
      "mov.u32 %r22, 0;\nT:\nsetp.ge.u32 %p1, %r22, %r3;\n@%p1 bra L;\nmov.u32 %r20, 1;\nadd.u32 "
      "%r22, %r22, "
      "1;\nbra T;\nL:\nst.global.u32 [%rd2], %r20;\n",
      // used before it is written, in the first round of a loop
      "mov.u32 %r22, 0;\nT:\nsetp.eq.u32 %p1, %r22, 0;\nst.global.u32 [%rd2], %r20;\nmov.u32 "
      "%r20, 1;\nadd.u32 "
      "%r22, %r22, 1;\n@%p1 bra T;\n",
      "@%p7 mov.u32 %r20, 1;\n",  // the guard itself
      "setp.lt.u32 %p1, %r3, 16;\n@%p1 setp.eq.u32 %p7, %r3, 0;\n@%p7 mov.u32 %r20, 1;\n",
      // a word of parts of which none has a value
      "mov.b64 %rd5, {%r20, %r21};\nst.global.u64 [%rd2], %rd5;\n",
      "setp.lt.u32 %p1, %r3, 16;\n@%p1 mov.b64 %rd5, {%r20, %r21};\n@%p1 st.global.u64 [%rd2], "
      "%rd5;\n",
      "mov.b64 %rd5, {%r3, %r20};\nst.global.u32 [%rd2], %r20;\n",  // the part itself is read
  };
  for (const char* body : unwritten) {
    EXPECT_EQ(fault_of(body), "uninit-register") << body;
    EXPECT_EQ(fault_of(body, false), "uninit-register") << body;
  }
  const char* const written[] = {
      "setp.lt.u32 %p1, %r3, 16;\n@%p1 mov.u32 %r20, 1;\n@!%p1 mov.u32 %r20, 2;\nadd.u32 %r21, %r20, 1;\n",
      "setp.lt.u32 %p1, %r3, 16;\n@%p1 bra L;\nmov.u32 %r20, 1;\nbra E;\nL:\nmov.u32 %r20, 2;\nE:\nadd.u32 "
      "%r21, "
      "%r20, 1;\n",
      "setp.lt.u32 %p1, %r3, 16;\n@%p1 mov.u32 %r20, 1;\n@%p1 add.u32 %r21, %r20, 1;\n",
      "setp.lt.u32 %p1, %r3, 16;\n@!%p1 bra L;\nmov.u32 %r20, 1;\nL:\n@%p1 st.global.u32 [%rd2], %r20;\n",
      // As nvcc 13.2 writes it.
      "mov.b64 %rd5, {%r3, %r20};\nmov.b64 {%r21, _}, %rd5;\nst.global.u32 [%rd2], %r21;\n",
  };
  for (const char* body : written) EXPECT_EQ(fault_of(body), "") << body;
}

}  // namespace
