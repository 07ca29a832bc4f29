// SPDX-License-Identifier: MIT
//
// tcgen05.mma on the emulator against a plain host model: every kind, shape, source and place
// of the operands, with data of their own in every row, column and lane. Then what is said when
// it is misused.

#include <gtest/gtest.h>

#include "tests/emu/launch_ptx.h"
#include "tests/emu/report_says.h"
#include "tests/emu/tcgen05_mma_kernel.h"

namespace {

using emu_test::Buffer;
using emu_test::Config;
using gg::emu::Fault;
using gg::emu::FaultKind;
using mma_test::Case;
using mma_test::Data;
using mma_test::Image;
using mma_test::Kernel;
using mma_test::Place;
using report::says;

std::vector<Buffer> buffers_of(const std::vector<Image>& images) {
  Buffer in;
  for (const Image& image : images) {
    in.insert(in.end(), image.shared.begin(), image.shared.end());
    const auto* words = reinterpret_cast<const uint8_t*>(image.tmem.data());
    in.insert(in.end(), words, words + image.tmem.size() * 4);
  }
  return {Buffer(images.size() * mma_test::kColumns * mma_test::kLanes * 4), in};
}

Config config_of(int group, uint64_t seed = 0) {
  Config config = emu_test::config_of(group, 128);
  config.cluster[0] = group;
  config.options.order = {seed, false};
  config.options.workers = 1;
  return config;
}

std::string name_of(const Case& c) {
  return mma_test::instruction(c) + "m" + std::to_string(c.m) + " n" + std::to_string(c.n) + " " + c.a + " " +
         c.b + " swizzle " + std::to_string(c.swizzle) + (c.a_mn ? " A MN-major" : "") +
         (c.b_mn ? " B MN-major" : "");
}

// Puts D, row by row, over the image, but in the lanes that a mask leaves out.
void put_d(const Case& c, const std::vector<double>& d, bool masked, std::vector<Image>& images) {
  for (int row = 0; row < c.m; ++row) {
    for (int column = 0; column < c.n; ++column) {
      const Place place = place_of_d(c, row, column);
      if (masked && mma_test::mask_word(place.block * 4 + place.lane / 32) >> (place.lane % 32) & 1) continue;
      uint32_t& cell = images[size_t(place.block)].cell(mma_test::kD + place.column, place.lane);
      const double value = d[size_t(row * c.n + column)];
      ASSERT_EQ(double(float(value)), value) << "the model's data is not exact";
      cell = with_value(c, cell, value);
    }
  }
}

void expect_model(const Case& c, uint64_t seed = 0) {
  SCOPED_TRACE(name_of(c));
  std::mt19937 engine(uint32_t(c.m * 1000 + c.n));
  const Data data = data_of(c, engine);
  std::vector<Image> images = images_of(c, data, engine);
  put_d(c, {data.c.begin(), data.c.end()}, false, images);
  std::vector<Buffer> buffers = buffers_of(images);
  Kernel kernel;
  kernel.group = c.group;
  kernel.issue = set_operands(c) + instruction(c);
  gg::emu::Counts counts;
  try {
    emu_test::Program(mma_test::kernel(kernel)).run(buffers, config_of(c.group, seed), &counts);
  } catch (const Fault& fault) {
    FAIL() << fault.what();
  }
  put_d(c, product(c, data), c.masked, images);
  int wrong = 0;
  for (size_t block = 0; block < images.size(); ++block) {
    for (int column = 0; column < mma_test::kColumns; ++column) {
      for (int lane = 0; lane < mma_test::kLanes; ++lane) {
        uint32_t cell;
        const size_t at = (block * mma_test::kColumns + size_t(column)) * mma_test::kLanes + size_t(lane);
        std::memcpy(&cell, buffers[0].data() + at * 4, 4);
        const uint32_t want = images[block].cell(column, lane);
        if (cell == want) continue;
        if (++wrong < 4)
          ADD_FAILURE() << "block " << block << " lane " << lane << " column " << column << ": "
                        << std::bit_cast<float>(cell) << " for " << std::bit_cast<float>(want);
      }
    }
  }
  EXPECT_EQ(wrong, 0);
  uint64_t multiply_adds = 0;
  for (const auto& each : counts.begin()->second) multiply_adds += each.multiply_adds;
  EXPECT_EQ(multiply_adds, uint64_t(c.m * c.n * k_of(c)));
}

Case f16_case(int m, int n, int group) {
  Case c;
  c.m = m, c.n = n, c.group = group;
  return c;
}
Case case_of(const std::string& kind, const std::string& a, const std::string& b, int m, int n, int group) {
  Case c = f16_case(m, n, group);
  c.kind = kind, c.a = a, c.b = b;
  return c;
}
Case scaled_case(const std::string& kind, const std::string& type, const std::string& vector, int scales,
                 int m, int n, int group) {
  Case c = case_of(kind, type, type, m, n, group);
  c.vector = vector, c.scales = scales;
  return c;
}

struct Shape {
  int m, n, group;
};
constexpr Shape kShapes[] = {{128, 64, 1},  {128, 256, 1}, {128, 8, 1},   {64, 8, 1},   {64, 72, 1},
                             {256, 256, 2}, {256, 48, 2},  {128, 128, 2}, {128, 16, 2}, {256, 16, 2}};

// Every kind with the types it has, as K-major operands in shared memory.
std::vector<Case> plain_kinds() {
  std::vector<Case> all;
  for (const Shape& s : kShapes) {
    all.push_back(case_of("f16", "bf16", "bf16", s.m, s.n, s.group));
    all.push_back(case_of("f16", "f16", "f16", s.m, s.n, s.group));
    all.push_back(case_of("tf32", "tf32", "tf32", s.m, s.n, s.group));
    all.push_back(case_of("f8f6f4", "e4m3", "e5m2", s.m, s.n, s.group));
    all.push_back(case_of("f8f6f4", "e2m1", "e4m3", s.m, s.n, s.group));
    all.push_back(case_of("f8f6f4", "e3m2", "e2m3", s.m, s.n, s.group));
  }
  return all;
}
std::vector<Case> scaled_kinds() {
  std::vector<Case> all;
  for (const Shape& s : kShapes) {
    if (s.m == 64 || (s.m == 128 && s.group == 2 && s.n % 64 != 0)) continue;
    all.push_back(scaled_case("mxf8f6f4", "e4m3", "", 1, s.m, s.n, s.group));
    all.push_back(scaled_case("mxf8f6f4", "e2m1", "block32", 1, s.m, s.n, s.group));
    all.push_back(scaled_case("mxf4", "e2m1", "scale_vec::2X", 2, s.m, s.n, s.group));
    all.push_back(scaled_case("mxf4nvf4", "e2m1", "block32", 2, s.m, s.n, s.group));
    all.push_back(scaled_case("mxf4nvf4", "e2m1", "scale_vec::4X", 4, s.m, s.n, s.group));
    all.push_back(scaled_case("mxf4nvf4", "e2m1", "block16", 4, s.m, s.n, s.group));
    all.back().ue4m3 = true;
  }
  return all;
}
std::vector<Case> every_kind() {
  std::vector<Case> all = plain_kinds(), more = scaled_kinds();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Tcgen05Mma, PlainKindsOfEveryShape) {
  for (const Case& c : plain_kinds()) expect_model(c);
}

TEST(Tcgen05Mma, BlockScaledKindsOfEveryShape) {
  for (const Case& c : scaled_kinds()) expect_model(c);
}

TEST(Tcgen05Mma, EverySwizzle) {
  for (Case c : every_kind()) {
    if (c.n != 64 && c.n != 48) continue;
    for (const int swizzle : {0, 32, 64}) {
      c.swizzle = swizzle;
      expect_model(c);
    }
  }
}

TEST(Tcgen05Mma, AInTensorMemory) {
  for (Case c : every_kind()) {
    c.a_in_tmem = true;
    if (c.a == "e3m2") c.a = "e5m2";
    if (c.n < 256) expect_model(c);
  }
}

TEST(Tcgen05Mma, MnMajorOperands) {
  for (Case c : every_kind()) {
    if (packed(c)) continue;
    const bool bytes = memory_bits(c) == 8;
    for (const int which : {1, 2, 3}) {
      c.a_mn = which & 1;
      c.b_mn = which & 2;
      if (bytes && c.b_mn && c.n % (16 * c.group) != 0) continue;
      for (const int swizzle : {0, 32, 64, 128}) {
        c.swizzle = swizzle;
        // A span must be full, and MN-major tf32 knows one mode only.
        const int columns = c.n / c.group * memory_bits(c) / 8, rows = c.m / c.group * memory_bits(c) / 8;
        if (c.kind == "tf32" && (swizzle != 128 || columns % 128)) continue;
        if ((c.b_mn && swizzle && columns % swizzle) || (c.a_mn && swizzle && rows % swizzle)) continue;
        if (c.n <= 128) expect_model(c);
      }
    }
  }
}

// The scales of one instruction are some bytes of a column, which the descriptor names.
TEST(Tcgen05Mma, ScaleIds) {
  for (Case c : scaled_kinds()) {
    if (c.scales == 4 || c.n > 128) continue;
    for (int id = 0; id < 4; id += c.scales) {
      c.sfa_id = id;
      c.sfb_id = (id + c.scales) % 4;
      expect_model(c);
    }
  }
}

TEST(Tcgen05Mma, F16Sums) {
  for (Case c : plain_kinds()) {
    if (c.a == "bf16" || c.a == "tf32" || c.n > 72) continue;
    c.half = c.whole = true;  // sums of whole numbers below 2048
    expect_model(c);
    c.p = false;
    expect_model(c);
    c.masked = true;
    expect_model(c);
  }
}

TEST(Tcgen05Mma, WhatIsAddedToWhat) {
  for (Case c : every_kind()) {
    if (c.n > 72) continue;
    c.p = false;
    expect_model(c);
    c.p = true;
    c.negate_a = true;
    expect_model(c);
    c.negate_b = true;
    expect_model(c);
    c.negate_a = false;
    c.collector = "fill";
    expect_model(c);
  }
}

TEST(Tcgen05Mma, LanesThatAreMasked) {
  for (Case c : plain_kinds()) {
    if (c.n > 72) continue;
    c.masked = true;
    expect_model(c);
    c.p = false;
    expect_model(c);
  }
}

TEST(Tcgen05Mma, ScaledAccumulators) {
  for (Case c : plain_kinds()) {
    if (c.n > 72 || (c.kind != "f16" && c.kind != "tf32")) continue;
    for (const int scale : {0, 1, 3}) {
      c.scale_d = scale;
      expect_model(c);
    }
    c.masked = true;
    expect_model(c);
  }
}

TEST(Tcgen05Mma, UpperHalvesOfM64) {
  for (Case c : plain_kinds()) {
    if (c.m != 64) continue;
    c.d_lane = 16;
    expect_model(c);
    c.a_in_tmem = c.kind != "f8f6f4";
    expect_model(c);
  }
}

TEST(Tcgen05Mma, InEveryOrder) {
  for (uint64_t seed = 1; seed < 4; ++seed) {
    expect_model(f16_case(128, 64, 1), seed);
    expect_model(scaled_case("mxf4nvf4", "e2m1", "block16", 4, 256, 48, 2), seed);
  }
}

// ---- misuse ----

struct Misuse {
  Case c = f16_case(128, 64, 1);
  Kernel kernel;
  std::string operands;  // set after those of the case
  std::string other;     // in place of the instruction of the case
  std::vector<Image> images;
  Misuse() : Misuse(f16_case(128, 64, 1)) {}
  explicit Misuse(const Case& with) : c(with) {
    std::mt19937 engine(1);
    const Data data = data_of(c, engine);
    images = images_of(c, data, engine);
    put_d(c, {data.c.begin(), data.c.end()}, false, images);
    kernel.group = c.group;
  }
  void run() {
    kernel.issue = set_operands(c) + operands + (other.empty() ? instruction(c) : other);
    std::vector<Buffer> buffers = buffers_of(images);
    emu_test::Program(mma_test::kernel(kernel)).run(buffers, config_of(c.group));
  }
  std::string fault(FaultKind kind) {
    try {
      run();
    } catch (const Fault& fault) {
      EXPECT_EQ(fault_name(fault.kind), std::string(fault_name(kind))) << fault.what();
      return fault.what();
    }
    ADD_FAILURE() << "no fault; expected " << fault_name(kind);
    return "";
  }
};

TEST(Tcgen05MmaFaults, AreNoneInTheKernelItself) { expect_model(f16_case(128, 64, 1)); }

TEST(Tcgen05MmaFaults, WrongDescriptors) {
  Misuse m;
  m.operands = "and.b64 %rd10, %rd10, 0xFFFFBFFFFFFFFFFF;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::descriptor),
                   "the descriptor of A, 0x4000004000010040, has 0 in bits "
                   "46-48, where descriptors of sm_100a have the constant"));
  m.operands = "or.b64 %rd11, %rd11, 0x6000000000000000;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::descriptor), "has swizzle code 3 in bits 61-63, which means nothing"));
  m.operands = "mov.b32 %r22, 0x10100490;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::tcgen05),
                   "the instruction descriptor 0x10100490 has M = 256 in bits 24-28, and kind::f16 with "
                   "cta_group::1 wants 64 or 128"));
  m.operands = "add.u64 %rd10, %rd10, 0x1000;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::bounds), "A, row 0, k 0 is at shared address 0x10400; the block has"));
  m.operands = "or.b32 %r20, %r20, 0x200000;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::tcgen05), "the address of D names lane 32"));
}

TEST(Tcgen05MmaFaults, WrongDescriptorsOfPackedTypes) {
  Misuse m(scaled_case("mxf4", "e2m1", "block32", 2, 128, 64, 1));
  m.operands = "xor.b32 %r22, %r22, 0x200;\n";  // e2m1 as kind::f8f6f4 has it
  EXPECT_TRUE(says(m.fault(FaultKind::tcgen05),
                   "has type code 5 for A, which kind::mxf4 does not know: e2m1 is "
                   "code 1 here, and code 5 in kind::f8f6f4"));
  m.operands = "or.b32 %r22, %r22, 0x20000000;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::tcgen05), "has scale id 1 for A"));
}

TEST(Tcgen05MmaFaults, ReplicasThatDiffer) {
  Misuse m(scaled_case("mxf8f6f4", "e4m3", "", 1, 128, 64, 1));
  m.images[0].cell(mma_test::kSfb + 1, 5 + 64) ^= 4;
  EXPECT_TRUE(says(m.fault(FaultKind::tcgen05), "the scales of B, column 37, are"));
  m.images[0].cell(mma_test::kSfb + 1, 5 + 64) ^= 4;
  m.images[0].cell(mma_test::kSfa + 3, 31) ^= 1;
  const std::string report = m.fault(FaultKind::tcgen05);
  EXPECT_TRUE(says(report, "the scales of A, row 127, are"));
  EXPECT_TRUE(says(report, "in lane 31 and"));
  EXPECT_TRUE(says(report, "in lane 63 of column 295"));
}

TEST(Tcgen05MmaFaults, IssuedByAWholeWarp) {
  Misuse m;
  m.kernel.by = "@!%p1 bra";
  EXPECT_TRUE(says(m.fault(FaultKind::tcgen05), "issued by 32 lanes"));
}

// Nobody may write an operand before the commit's mbarrier says that it has been read.
TEST(Tcgen05MmaFaults, OperandsOverwrittenTooEarly) {
  for (const int at : {mma_test::kAt, mma_test::kBt}) {
    Misuse m;
    m.kernel.after = "st.shared.b32 [buffer+" + std::to_string(at + 128) + "], %r0;\n";
    const std::string report = m.fault(FaultKind::async_window);
    EXPECT_TRUE(says(report, "while the tensor core may still read it"));
    EXPECT_TRUE(says(report, "driven by warp 0: read it for the product of columns 8-71"));
  }
}

TEST(Tcgen05MmaFaults, MemoryThatNobodyWrote) {
  Misuse m;
  m.kernel.fill_tmem = false;
  EXPECT_TRUE(says(m.fault(FaultKind::uninit_tmem), "an accumulator that is added to before it is set"));
  Misuse scales(scaled_case("mxf8f6f4", "e4m3", "", 1, 128, 64, 1));
  scales.c.p = false;
  scales.kernel.fill_tmem = false;
  EXPECT_TRUE(says(scales.fault(FaultKind::uninit_tmem), "columns 292-295) is read"));
}

// A pair's M and N are those of both blocks. One block's are legal too, of a smaller tile: what is
// left of D has nobody's sums.
TEST(Tcgen05MmaFaults, SizesOfOneBlockInAPair) {
  const auto pair = [](int m, int n) {
    Misuse misuse(f16_case(256, 128, 2));
    misuse.c.p = false;
    misuse.kernel.fill_tmem = false;
    misuse.kernel.d_columns = 128;
    misuse.operands = mma_test::move(32, "%r22", mma_test::instruction_descriptor(f16_case(m, n, 2)));
    return misuse;
  };
  EXPECT_NO_THROW(pair(256, 128).run());
  for (const auto& [m, n] : {std::pair{128, 128}, {256, 64}, {128, 64}}) {
    EXPECT_TRUE(says(pair(m, n).fault(FaultKind::uninit_tmem), "nobody has written")) << m << "x" << n;
  }
}

TEST(Tcgen05MmaFaults, ColumnsThatAreNotAllocated) {
  Misuse m;
  m.c.p = false;
  m.kernel.fill_tmem = false;
  m.kernel.columns = "64";
  EXPECT_TRUE(says(m.fault(FaultKind::bounds), "columns 0-63 are allocated"));
}

TEST(Tcgen05MmaFaults, StoresWithoutAProxyFence) {
  Misuse m;
  m.kernel.proxy_fence = false;
  EXPECT_TRUE(says(m.fault(FaultKind::proxy), "fence.proxy.async"));
}

TEST(Tcgen05MmaFaults, WhatIsNotThere) {
  Misuse m;
  m.c.kind = "i8";
  EXPECT_TRUE(says(m.fault(FaultKind::unsupported), "kind::i8"));
  m.other = "tcgen05.mma.sp.cta_group::1.kind::f16 [%r20], %rd10, %rd11, [%r21], %r22, %p4;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::unsupported), "tcgen05.mma with .sp"));
  m.other = "tcgen05.mma.ws.cta_group::1.kind::f16 [%r20], %rd10, %rd11, %r22, %p4;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::unsupported), "tcgen05.mma with .ws"));
  m.other = "tcgen05.mma.cta_group::1.kind::f16.ashift [%r20], [%r21], %rd11, %r22, %p4;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::unsupported), "tcgen05.mma with .ashift"));
  m.other =
      "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r20], %rd10, %rd11, %r22, [%r23], [%r24], "
      "%p4;\n";
  EXPECT_TRUE(says(m.fault(FaultKind::unsupported), "this scale vector size for this kind"));
  Misuse narrow(case_of("f8f6f4", "e2m3", "e2m3", 128, 64, 1));
  narrow.c.a_in_tmem = true;
  EXPECT_TRUE(says(narrow.fault(FaultKind::unsupported), "6-bit elements of A in tensor memory"));
  Misuse pair(scaled_case("mxf4", "e2m1", "block32", 2, 128, 96, 2));
  EXPECT_TRUE(says(pair.fault(FaultKind::unsupported), "N = 96"));
}

}  // namespace
