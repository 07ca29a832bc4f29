// SPDX-License-Identifier: MIT
//
// The references on groups that are longer than what they compute at a time: judged by a product of
// this file, whose every wrong element must be counted, wherever it lies.

#include <gtest/gtest.h>

#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"
#include "common/harness/verify/epilogue_check.h"
#include "common/harness/verify/product.h"

namespace gg {
namespace {

const Shape kShape{{3, 1100, 0, 530}, {24}, {16}};

class LongGroups : public testing::TestWithParam<BlockFormat> {
 protected:
  void SetUp() override {
    const BlockFormat scaled = GetParam();
    const Format element = scaled == BlockFormat::none ? Format::bf16 : block_scaling(scaled).element;
    setup_.request.formats = {element, element, Format::bf16, scaled};
    setup_.request.b_layout = BLayout::nk;
    if (emulator()) machines_.push_back(emulator_machine());
    // Its own reference.
    if (emulator() || why_not_on_gpu({}).empty()) machines_.push_back(gpu_machine());
    machines_.push_back(host_machine());
  }

  // D by three loops over what the buffers hold.
  static std::vector<char> product(Machine& machine, const Buffers& buffers) {
    const std::vector<char> a = downloaded(machine, buffers.a(), buffers.a_bytes()),
                            b = downloaded(machine, buffers.b(), buffers.b_bytes()),
                            sfa = downloaded(machine, buffers.sfa(), buffers.sfa_bytes()),
                            sfb = downloaded(machine, buffers.sfb(), buffers.sfb_bytes());
    std::vector<char> d = downloaded(machine, buffers.d(), buffers.d_bytes());
    const Formats& f = buffers.setup().request.formats;
    const auto factor = [&](const std::vector<char>& scales, const ScaleRegion& region, int row, int64_t at) {
      if (!f.has_scales()) return 1.0;
      const int64_t byte = region.at(row, at / f.scaling().block);
      return double(decode(f.scaling().scale, uint8_t(scales[size_t(byte)])));
    };
    for (const Group& group : buffers.layout().groups) {
      for (int row = 0; row < group.m; ++row) {
        for (int col = 0; col < group.n; ++col) {
          double sum = 0;
          for (int i = 0; i < group.k; ++i) {
            const double x = decode(f.a, load_code(a.data(), f.a, group.a.offset + row * group.a.ld + i));
            const double y = decode(f.b, load_code(b.data(), f.b, group.b.offset + col * group.b.ld + i));
            sum += x * factor(sfa, group.sfa, row, i) * y * factor(sfb, group.sfb, col, i);
          }
          store_code(d.data(), f.d, group.d.offset + row * group.d.ld + col, encode(f.d, sum));
        }
      }
    }
    return d;
  }

  gg::Setup setup_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

TEST_P(LongGroups, AreComparedToTheirEnds) {
  for (const std::unique_ptr<Machine>& machine : machines_) {
    Buffers buffers(*machine, setup_, kShape);
    buffers.fill_operands({Fill::Kind::integers, 16, 5, 0});
    std::vector<char> d = product(*machine, buffers);
    const Limit exact{Format::bf16, true, 0, false};
    const auto compared = [&] {
      machine->upload(buffers.d(), d.data(), d.size());
      return machine->compare(buffers.matrices(), buffers.layout().groups, exact);
    };
    const Comparison right = compared();
    EXPECT_EQ(right.checked, (3 + 1100 + 530) * 24);
    EXPECT_EQ(right.failures, 0);
    int wrong = 0;
    for (const auto& [index, row] : {std::pair{1, 511}, {1, 512}, {1, 1024}, {1, 1099}, {3, 513}, {3, 529}}) {
      const Region& region = buffers.layout().groups[size_t(index)].d;
      const int64_t element = region.offset + row * region.ld + 23;
      store_code(d.data(), Format::bf16, element, load_code(d.data(), Format::bf16, element) ^ 1);
      EXPECT_EQ(compared().failures, ++wrong) << "group " << index << " row " << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, LongGroups,
                         testing::Values(BlockFormat::none, BlockFormat::mxfp8, BlockFormat::mxfp4,
                                         BlockFormat::nvfp4));

// Host memory whose own reference finds all right: any failure is the second witness's.
class BlindMachine : public Machine {
 public:
  void* allocate(size_t bytes, const char* what) override { return host_->allocate(bytes, what); }
  void release(void* memory) override { host_->release(memory); }
  size_t free_bytes() override { return host_->free_bytes(); }
  void fill_bytes(void* memory, int byte, size_t bytes) override { host_->fill_bytes(memory, byte, bytes); }
  void upload(void* to, const void* from, size_t bytes) override { host_->upload(to, from, bytes); }
  void download(void* to, const void* from, size_t bytes) override { host_->download(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override { host_->copy(to, from, bytes); }
  void fill(void* tensor, Format format, const std::vector<Region>& regions, const Fill& fill) override {
    host_->fill(tensor, format, regions, fill);
  }
  void copy_regions(void* to, const void* from, Format format, const std::vector<Region>& regions) override {
    host_->copy_regions(to, from, format, regions);
  }
  int64_t first_difference(const void* x, const void* y, size_t bytes) override {
    return host_->first_difference(x, y, bytes);
  }
  Comparison compare(const Matrices&, const std::vector<Group>&, const Limit&) override { return {}; }
  void run(const Work& work) override { host_->run(work); }
  std::function<void()> captured(const Work& work) override { return host_->captured(work); }

 private:
  const std::unique_ptr<Machine> host_ = host_machine();
};

// All but the first 512 rows are wrong: rows of the whole group are drawn, and none counts twice.
TEST(LongGroups, HaveASecondWitnessUpToTheirEnds) {
  BlindMachine machine;
  const gg::Setup setup;
  Buffers buffers(machine, setup, {{1024, 1}, {520}, {24}});
  buffers.fill_operands({Fill::Kind::integers, 16, 5, 0});
  buffers.poison(0xFF);
  const std::unique_ptr<Machine> host = host_machine();
  const std::vector<Group>& groups = buffers.layout().groups;
  for (int row = 0; row < 512; ++row) {
    std::vector<double> sums(520), sizes(520);
    reference_rows(buffers.matrices(), groups[0], row, row + 1, sums.data(), sizes.data());
    for (int64_t col = 0; col < 520; ++col)
      store_code(buffers.d(), Format::bf16, groups[0].d.offset + row * 520 + col,
                 encode(Format::bf16, sums[size_t(col)]));
  }
  int seen_in_first = 0;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    const Comparison found = compare_groups(machine, buffers, groups, {Format::bf16, true, 0, false}, seed);
    EXPECT_LE(found.failures, 2 * 520 + 520);
    if (found.first >= 0 && found.first < groups[1].d.offset) {
      ++seen_in_first;
      EXPECT_GE((found.first - groups[0].d.offset) / 520, 512);
    }
  }
  EXPECT_GT(seen_in_first, 16);
}

// The products that an epilogue is judged by: a few rows at a time, all of them.
TEST(LongGroups, HaveTheProductsOfAllRowsBeforeAnEpilogue) {
  const std::unique_ptr<Machine> host = host_machine();
  gg::Setup setup;
  Buffers buffers(*host, setup, kShape);
  buffers.fill_operands({Fill::Kind::integers, 16, 5, 0});
  const std::vector<char> a = downloaded(*host, buffers.a(), buffers.a_bytes()),
                          b = downloaded(*host, buffers.b(), buffers.b_bytes());
  const Layout& layout = buffers.layout();
  std::vector<int> seen(4);
  for (const Band& band :
       products_of({a.data(), b.data(), nullptr, setup.request.formats}, layout, {layout.groups, {}, 0})) {
    const Group& group = layout.groups[size_t(band.group)];
    for (int row = 0; row < band.rows; ++row) {
      double sum = 0;  // of the last column
      for (int i = 0; i < group.k; ++i) {
        const int64_t at = group.a.offset + (band.first + row) * group.a.ld + i;
        sum += double(decode(Format::bf16, load_code(a.data(), Format::bf16, at))) *
               decode(Format::bf16, load_code(b.data(), Format::bf16, group.b.offset + i * group.b.ld + 23));
      }
      EXPECT_EQ(band.products[size_t(row * 24 + 23)].lo, float(sum)) << band.group << " " << band.first + row;
    }
    seen[size_t(band.group)] += band.rows;
  }
  EXPECT_EQ(seen, kShape.m);
}

}  // namespace
}  // namespace gg
