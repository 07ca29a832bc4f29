// SPDX-License-Identifier: MIT
//
// The GPU machine against host memory: the same data bit for bit, the same verdicts on them.

#include <gtest/gtest.h>

#include "common/harness/machine/buffers.h"
#include "tests/harness/a_device.h"

namespace gg {
namespace reference_gpu {

constexpr Formats kF32{Format::f32, Format::f32, Format::f32}, kF16{Format::f16, Format::f16, Format::f16},
    kBf16{Format::bf16, Format::bf16, Format::bf16}, kMixed{Format::bf16, Format::f16, Format::f32};

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << why;
    gpu = gpu_machine();
  }

  std::vector<char> bytes_of(Machine& machine, const void* memory, size_t bytes) {
    std::vector<char> copy(bytes);
    if (bytes) machine.download(copy.data(), memory, bytes);
    return copy;
  }

  std::unique_ptr<Machine> host = host_machine(), gpu;
};

// Odd sizes, empty and long groups; packed, or each group with sizes and leading dimensions of its
// own; B as [K,N] and as [N,K].
struct Case {
  Setup setup;
  Shape shape;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Formats& formats : {kF32, kF16, kBf16, kMixed}) {
    for (const BLayout b_layout : {BLayout::kn, BLayout::nk}) {
      Setup setup;
      setup.request.formats = formats;
      setup.request.b_layout = b_layout;
      Shape scattered{{5, 64, 0, 129}, {1, 67, 8, 130}, {40, 1, 8, 77}};
      scattered.own_sizes = true;
      all.push_back({setup, {{1, 70, 0, 33}, {65}, {37}}});
      all.push_back({setup, {{130, 2}, {1}, {513}}});
      all.push_back({setup, scattered});
    }
  }
  for (const BlockFormat scaled : {BlockFormat::mxfp8, BlockFormat::mxfp8_e5m2, BlockFormat::mxfp4,
                                   BlockFormat::nvfp4, BlockFormat::fp4_ue8m0_16}) {
    const Format element = block_scaling(scaled).element;
    Setup setup;
    setup.request.formats = {element, element, Format::bf16, scaled};
    setup.request.b_layout = BLayout::nk;
    all.push_back({setup, {{1, 70, 0, 33}, {65}, {72}}});
    all.push_back({setup, {{130, 2}, {136}, {160}}});
  }
  return all;
}

TEST_F(OnGpu, FillsBuffersWithTheSameBits) {
  for (const Case& each : cases()) {
    for (const Fill& fill : {Fill{Fill::Kind::integers, 16, 3, 0}, Fill{Fill::Kind::normal, 0, 4, 0},
                             Fill{Fill::Kind::nan, 0, 0, 0}}) {
      Buffers here(*host, each.setup, each.shape), there(*gpu, each.setup, each.shape);
      here.fill_operands(fill);
      there.fill_operands(fill);
      EXPECT_EQ(bytes_of(*host, here.a(), here.a_bytes()), bytes_of(*gpu, there.a(), there.a_bytes()));
      EXPECT_EQ(bytes_of(*host, here.b(), here.b_bytes()), bytes_of(*gpu, there.b(), there.b_bytes()));
      EXPECT_EQ(bytes_of(*host, here.sfa(), here.sfa_bytes()),
                bytes_of(*gpu, there.sfa(), there.sfa_bytes()));
      EXPECT_EQ(bytes_of(*host, here.sfb(), here.sfb_bytes()),
                bytes_of(*gpu, there.sfb(), there.sfb_bytes()));
    }
  }
}

// Both machines judge the same matrices.
class Judged {
 public:
  Judged(Machine& host, Machine& gpu, const Case& each, const Fill& fill)
      : host_(host), gpu_(gpu), here_(host, each.setup, each.shape), there_(gpu, each.setup, each.shape) {
    here_.fill_operands(fill);
    there_.fill_operands(fill);
    host.fill_bytes(here_.d(), 0xFF, here_.d_bytes());
    for (const Group& group : groups()) {
      if (group.m == 0) continue;
      std::vector<double> sums(size_t(group.m) * size_t(group.n)), sizes(sums.size());
      reference_rows(here_.matrices(), group, 0, group.m, sums.data(), sizes.data());
      for (size_t i = 0; i < sums.size(); ++i) {
        elements.push_back(group.d.offset + int64_t(i) / group.n * group.d.ld + int64_t(i) % group.n);
        store_code(here_.d(), format(), elements.back(), encode(format(), sums[i]));
      }
    }
  }

  Format format() const { return here_.setup().request.formats.d; }
  uint32_t code(int64_t element) const { return load_code(here_.d(), format(), element); }
  void set(int64_t element, uint32_t code) { store_code(here_.d(), format(), element, code); }

  // The verdict of both, which must be one; returns it.
  Comparison compare(const Limit& limit) {
    gpu_.upload(there_.d(), here_.d(), here_.d_bytes());
    const Comparison cpu = host_.compare(here_.matrices(), groups(), limit),
                     gpu = gpu_.compare(there_.matrices(), groups(), limit);
    EXPECT_EQ(gpu.checked, cpu.checked);
    EXPECT_EQ(gpu.failures, cpu.failures);
    EXPECT_EQ(gpu.first, cpu.first);
    EXPECT_EQ(gpu.beyond_exact, cpu.beyond_exact);
    EXPECT_EQ(gpu.beyond_2048, cpu.beyond_2048);
    EXPECT_NEAR(gpu.worst_ratio, cpu.worst_ratio, 1e-4f * cpu.worst_ratio);
    EXPECT_NEAR(gpu.worst_factor, cpu.worst_factor, 1e-4f * cpu.worst_factor);
    return cpu;
  }

  // Every element of A by its column, in both machines.
  void fill_a(const std::function<uint32_t(int)>& code_of) {
    for (const Group& group : groups())
      for (int i = 0; i < group.m * group.k; ++i)
        store_code(const_cast<void*>(here_.matrices().a), here_.setup().request.formats.a, group.a.offset + i,
                   code_of(i % group.k));
    gpu_.upload(const_cast<void*>(there_.matrices().a), here_.matrices().a, here_.a_bytes());
  }

  std::vector<int64_t> elements;  // of D that groups own, in order

 private:
  const std::vector<Group>& groups() const { return here_.layout().groups; }

  Machine &host_, &gpu_;
  Buffers here_, there_;
};

TEST_F(OnGpu, FindsASingleWrongElementAnywhere) {
  for (const Case& each : cases()) {
    Judged judged(*host, *gpu, each, {Fill::Kind::integers, 16, 7, 0});
    const Limit exact{judged.format(), true, 0, false};
    ASSERT_EQ(judged.compare(exact).failures, 0) << each.shape.describe();
    const std::vector<int64_t>& elements = judged.elements;
    for (int64_t element : {elements.back(), elements.front(), elements[elements.size() / 2],
                            elements[elements.size() / 3 * 2]}) {
      const uint32_t right = judged.code(element);
      for (uint32_t wrong : {right ^ 1u, 0xFFFFFFFFu}) {  // one ulp; NaN
        judged.set(element, wrong);
        const Comparison found = judged.compare(exact);
        EXPECT_EQ(found.failures, 1) << each.shape.describe();
        EXPECT_EQ(found.first, element) << each.shape.describe();
      }
      judged.set(element, right);
      if (emulator()) break;  // there, one place is enough
    }
  }
}

TEST_F(OnGpu, AgreesOnHowFarOffRandomDataAre) {
  for (const Case& each : cases()) {
    Judged judged(*host, *gpu, each, {Fill::Kind::normal, 0, 8, 0});
    for (size_t i = 0; i < judged.elements.size(); i += 5) {
      judged.set(judged.elements[i], judged.code(judged.elements[i]) + 1);
    }
    const double factor = format_info(judged.format()).sum_factor;
    EXPECT_GT(judged.compare({judged.format(), false, factor, false}).worst_factor, 0);
    // A code up: 0.5 to 1.5 ulps off.
    EXPECT_GT(judged.compare({judged.format(), false, 0, false}).failures, 0);
  }
}

TEST_F(OnGpu, AgreesOnNanFromOperands) {
  Judged judged(*host, *gpu, cases()[0], {Fill::Kind::nan, 0, 0, 0});
  EXPECT_EQ(judged.compare({judged.format(), false, 0, true}).failures, 0);
  EXPECT_EQ(judged.compare({judged.format(), false, 0, false}).failures, int64_t(judged.elements.size()));
  judged.set(judged.elements[5], 0);
  EXPECT_EQ(judged.compare({judged.format(), false, 0, true}).first, judged.elements[5]);
}

// Sums of magnitudes that no float holds: what each order may make of them.
TEST_F(OnGpu, AgreesOnSumsThatOverflow) {
  gg::Setup setup;
  setup.request.formats = kBf16;
  Judged judged(*host, *gpu, {setup, {{1, 2}, {16}, {24}}}, {Fill::Kind::integers, 16, 7, 0});
  judged.fill_a([](int k) { return k < 8 ? 0x7F40u : k < 16 ? 0xFF40u : 0u; });  // +-2^127 * 1.5
  int64_t failures = 0;
  for (const uint32_t code : {0x7F80u, 0xFF80u, 0x7FC0u, 0x0000u, 0x7F00u}) {
    for (const int64_t element : judged.elements) judged.set(element, code);
    failures += judged.compare({Format::bf16, false, 0x1p-19, true}).failures;
  }
  EXPECT_GT(failures, 0);
}

TEST_F(OnGpu, FindsTheFirstDifferentByte) {
  constexpr size_t kBytes = 1000003;
  const auto allocate = [&] {
    return std::shared_ptr<void>(gpu->allocate(kBytes, "a test"),
                                 [&](void* memory) { gpu->release(memory); });
  };
  const std::shared_ptr<void> x = allocate(), y = allocate();
  gpu->fill_bytes(x.get(), 0x11, kBytes);
  gpu->fill_bytes(y.get(), 0x11, kBytes);
  const auto differ_at = [&](size_t byte, int value) {
    gpu->fill_bytes(static_cast<char*>(y.get()) + byte, value, 1);
  };
  EXPECT_EQ(gpu->first_difference(x.get(), y.get(), kBytes), -1);
  EXPECT_EQ(gpu->first_difference(x.get(), y.get(), 0), -1);
  for (size_t byte : {size_t(0), size_t(1), size_t(7), size_t(8), size_t(123457), kBytes - 4, kBytes - 1}) {
    differ_at(byte, 0x12);
    EXPECT_EQ(gpu->first_difference(x.get(), y.get(), kBytes), int64_t(byte));
    // Bytes beyond are not looked at.
    EXPECT_EQ(gpu->first_difference(x.get(), y.get(), byte), -1);
    differ_at(byte, 0x11);
  }
  differ_at(999, 0x12);
  differ_at(777, 0x12);
  EXPECT_EQ(gpu->first_difference(x.get(), y.get(), kBytes), 777);
}

TEST_F(OnGpu, CopiesRegionsAndNothingElse) {
  const std::vector<Region> regions = {{3, 5, 7, 11}, {100, 0, 4, 4}, {200, 300, 1, 2}, {900, 1, 13, 13}};
  constexpr size_t kElements = 1000;
  for (Format format : {Format::e4m3, Format::bf16, Format::f32}) {
    std::vector<char> from(gg::bytes_of(format, kElements)), expected(from.size(), 0x22);
    for (size_t i = 0; i < from.size(); ++i) from[i] = char(hash(1, 1, i));
    host->copy_regions(expected.data(), from.data(), format, regions);
    void* const x = gpu->allocate(from.size(), "a test");
    void* const y = gpu->allocate(from.size(), "a test");
    gpu->upload(x, from.data(), from.size());
    gpu->fill_bytes(y, 0x22, from.size());
    gpu->copy_regions(y, x, format, regions);
    EXPECT_EQ(bytes_of(*gpu, y, from.size()), expected);
    gpu->release(x);
    gpu->release(y);
  }
}

TEST_F(OnGpu, NamesTheBytesThatAreNotThere) {
  try {
    gpu->allocate(size_t(1) << 50, "a test");
    FAIL() << "a petabyte was there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::no_memory);
    EXPECT_NE(std::string(error.what()).find("a test needs 1125899906842624 bytes"), std::string::npos)
        << error.what();
  }
}

}  // namespace reference_gpu
}  // namespace gg
