// SPDX-License-Identifier: MIT
//
// The list of a problem's tensors: which operator has which, what of them groups own, and the
// memory that the list is mapped to.

#include "common/harness/problem/tensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "common/harness/machine/buffers.h"

namespace gg {
namespace {

const Formats kQuantised{Format::e4m3, Format::e4m3, Format::e4m3, BlockFormat::mxfp8};
const Formats kPlain{};

Epilogue quant(bool scaled) {
  Epilogue e{.op = Operator::quant, .amax = true, .bias = true, .sfd_row = scaled, .sfd_col = scaled};
  e.norm_const = 1;
  return e;
}
// Groups of 256, 0 and 128 rows, and 200 rows that no group owns.
Shape spare_rows() {
  Shape shape{{256, 0, 128}, {160}, {64}};
  shape.rows = 584;
  return shape;
}
Layout layout_of(const Formats& formats, const Epilogue& epilogue) {
  return packed_layout(spare_rows(), BLayout::nk, formats.scaled, epilogue.columns_of_d(160));
}

std::string names(const Formats& formats, const Epilogue& epilogue) {
  std::string all;
  for (const TensorSpec& spec : tensors_of(formats, epilogue, layout_of(formats, epilogue)))
    all += std::string(all.empty() ? "" : " ") + tensor_file(spec.name);
  return all;
}

TEST(Tensors, AreThoseOfTheOperator) {
  EXPECT_EQ(names(kPlain, {}), "a b d");
  EXPECT_EQ(names(kQuantised, {}), "a b sfa sfb d");
  EXPECT_EQ(names(kQuantised, quant(false)), "a b sfa sfb alpha prob bias d amax");
  EXPECT_EQ(names(kQuantised, quant(true)),
            "a b sfa sfb alpha prob bias norm_const d d_col sfd_row sfd_col amax");
  EXPECT_EQ(names(kPlain, {.op = Operator::glu, .amax = false}), "a b alpha prob d c");
  EXPECT_EQ(names(kPlain, {.op = Operator::glu, .stores_c = false}), "a b alpha prob d");
  EXPECT_EQ(names(kPlain, {.op = Operator::glu_gradient}), "a b alpha prob c d dprob dbias");
  EXPECT_EQ(names(kPlain, {.op = Operator::glu_hadamard, .amax = true}), "a b alpha prob hadamard d c amax");
}

// The bytes that groups own, each once, all of them inside the tensor and away from its guards.
std::set<int64_t> owned_bytes(const TensorSpec& spec) {
  std::set<int64_t> bytes;
  const int64_t end = int64_t(spec.start_byte() + bytes_of(spec.format, spec.size()));
  for (const Region& region : spec.owned) {
    for (int64_t row = 0; row < region.rows; ++row) {
      const auto first = int64_t(bytes_of(spec.format, region.offset + row * region.ld)),
                 count = int64_t(bytes_of(spec.format, region.cols));
      for (int64_t byte = first; byte < first + count; ++byte) {
        EXPECT_GE(byte, int64_t(spec.start_byte())) << tensor_name(spec.name);
        EXPECT_LT(byte, end) << tensor_name(spec.name);
        EXPECT_TRUE(bytes.insert(byte - int64_t(spec.start_byte())).second) << tensor_name(spec.name);
      }
    }
  }
  EXPECT_LT(end, int64_t(spec.bytes())) << tensor_name(spec.name) << " has no guard behind it";
  return bytes;
}
TensorSpec spec_of(Tensor name, const Formats& formats, const Epilogue& epilogue) {
  for (const TensorSpec& spec : tensors_of(formats, epilogue, layout_of(formats, epilogue))) {
    if (spec.name == name) return spec;
  }
  ADD_FAILURE() << "no " << tensor_name(name);
  return {};
}

TEST(Tensors, BelongToGroupsUpToTheLastOffset) {
  const Epilogue e = quant(true);
  const auto owned = [&](Tensor name) { return int64_t(owned_bytes(spec_of(name, kQuantised, e)).size()); };
  EXPECT_EQ(owned(Tensor::a), 384 * 64);
  EXPECT_EQ(owned(Tensor::b), 3 * 160 * 64);
  EXPECT_EQ(owned(Tensor::d), 384 * 160);
  EXPECT_EQ(owned(Tensor::d_col), 384 * 160);
  EXPECT_EQ(owned(Tensor::prob), 384 * 4);
  EXPECT_EQ(owned(Tensor::bias), 3 * 160 * 2);
  EXPECT_EQ(owned(Tensor::amax), 3 * 4);
  EXPECT_EQ(owned(Tensor::sfa), (ScaleLayout{384, 2}).bytes());
  EXPECT_EQ(owned(Tensor::sfd_row), (ScaleLayout{384, 5}).bytes());
  EXPECT_EQ(spec_of(Tensor::d, kQuantised, e).extents, (std::vector<int64_t>{584, 160}));
  EXPECT_EQ(spec_of(Tensor::sfd_col, kQuantised, e).extents, (std::vector<int64_t>{2, 5, 32, 4, 4}));
}

// Over all rows, the atoms of spare rows lie between those of owned ones.
TEST(Tensors, HaveColumnScalesInTheAtomsOfOwnedRows) {
  Epilogue e = quant(true);
  const ScaleLayout all{160, scale_blocks(584, 32)};
  std::set<int64_t> atoms;
  for (int64_t col = 0; col < 160; ++col) {
    for (int64_t row = 0; row < 384; row += 32)
      atoms.insert(all.offset(col, row / 32) / ScaleLayout::kAtomBytes);
  }
  std::set<int64_t> found;
  for (const int64_t byte : owned_bytes(spec_of(Tensor::sfd_col, kQuantised, e)))
    found.insert(byte / ScaleLayout::kAtomBytes);
  EXPECT_EQ(found, atoms);
  e.discrete_col_sfd = true;
  const std::set<int64_t> dense = owned_bytes(spec_of(Tensor::sfd_col, kQuantised, e));
  EXPECT_EQ(int64_t(dense.size()), (ScaleLayout{160, 12}).bytes());
  EXPECT_EQ(*dense.rbegin(), int64_t(dense.size()) - 1);
}

TEST(Tensors, OfEachGroupsOwnAreMatricesApart) {
  Shape shape{{3, 5}, {8, 16}, {24, 8}};
  shape.own_sizes = true;
  const std::vector<TensorSpec> specs = tensors_of(kPlain, {}, scattered_layout(shape));
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_TRUE(specs[0].extents.empty());
  EXPECT_EQ(specs[0].owned.size(), 2u);
  EXPECT_EQ(specs[2].owned[1].cols, 16);
}

TEST(Tensors, HaveOneMemoryEach) {
  const std::unique_ptr<Machine> machine = host_machine();
  gg::Setup setup;
  setup.request.formats = kQuantised;
  setup.request.b_layout = BLayout::nk;
  setup.request.epilogue = quant(true);
  Buffers buffers(*machine, setup, spare_rows());
  size_t sum = 0;
  for (int i = 0; i < kTensors; ++i) {
    const TensorMemory& tensor = buffers.of(Tensor(i));
    EXPECT_EQ(tensor.memory != nullptr, has_tensor(Tensor(i), setup.request.formats, setup.request.epilogue))
        << i;
    sum += tensor.bytes;
  }
  EXPECT_EQ(buffers.bytes(), sum);
  EXPECT_EQ(buffers.outputs(),
            (std::vector<Tensor>{Tensor::d, Tensor::d_col, Tensor::sfd_row, Tensor::sfd_col, Tensor::amax}));
  buffers.poison(0x77);
  EXPECT_EQ(buffers.d_bytes(), size_t(buffers.of(Tensor::d).spec.elems));
  EXPECT_EQ(static_cast<const char*>(buffers.d())[0], 0x77);
  for (int g = 0; g < 3; ++g) EXPECT_EQ(buffers.problem().epilogue().amax[g], -INFINITY);
  EXPECT_EQ(static_cast<const char*>(buffers.of(Tensor::amax).memory.get())[0], 0x77) << "a guard";

  std::vector<float> prob(384);
  for (size_t i = 0; i < prob.size(); ++i) prob[i] = float(i);
  buffers.put(Tensor::prob, prob.data(), 0xFF);
  EXPECT_EQ(buffers.problem().epilogue().prob[0], 0);
  EXPECT_EQ(buffers.problem().epilogue().prob[383], 383);
  EXPECT_TRUE(std::isnan(buffers.problem().epilogue().prob[384])) << "a row that no group owns";
  EXPECT_TRUE(std::isnan(buffers.problem().epilogue().prob[-1])) << "a guard";
}

TEST(Problems, ShowOffsetsOfTheTypeThatWasAskedFor) {
  const std::unique_ptr<Machine> machine = host_machine();
  for (const bool wide : {false, true}) {
    gg::Setup setup;
    setup.request.wide_offsets = wide;
    Buffers buffers(*machine, setup, {{3, 0, 5}, {8}, {8}});
    const Offsets offsets = buffers.problem().offsets();
    EXPECT_EQ(offsets[3], 8);
    size_t bytes = 0;
    int64_t last = 0;
    offsets.with([&](const auto* typed) {
      bytes = sizeof *typed;
      last = typed[3];
    });
    EXPECT_EQ(bytes, wide ? 8u : 4u);
    EXPECT_EQ(last, 8);
    if (wide) continue;
    EXPECT_EQ(offsets.ends()[2], offsets.as<int32_t>()[3]);
  }
}

// A view shows what the problem has, and null for the rest.
TEST(Problems, HaveViewsOfWhatIsThere) {
  const std::unique_ptr<Machine> machine = host_machine();
  gg::Setup setup;
  Buffers plain(*machine, setup, {{3, 5}, {8}, {8}});
  EXPECT_EQ(plain.problem().own().sizes, nullptr);
  EXPECT_EQ(plain.problem().scaled().sfa, nullptr);
  EXPECT_EQ(plain.problem().epilogue().alpha, nullptr);
  EXPECT_EQ(plain.problem().discrete().b, nullptr);
  EXPECT_EQ(plain.problem().b<bf16>(), plain.b());

  Shape apart{{3, 5}, {8, 16}, {24, 8}};
  apart.own_sizes = true;
  Buffers own(*machine, setup, apart);
  EXPECT_EQ(own.problem().own().sizes[4], 16);
  EXPECT_EQ(own.problem().own().a_ptrs<bf16>()[0], own.a());

  setup.request.formats = kQuantised;
  setup.request.b_layout = BLayout::nk;
  setup.request.epilogue = quant(true);
  setup.request.weights = Weights::discrete;
  setup.request.scheduler = Scheduler::dynamic;
  Buffers fused(*machine, setup, spare_rows());
  fused.fill_operands({Fill::Kind::integers, 16, 1, 0});
  const Problem& p = fused.problem();
  EXPECT_EQ(p.b<void>(), nullptr);
  EXPECT_EQ(p.scaled().sfb, nullptr);
  EXPECT_TRUE(p.dynamic_schedule());
  const size_t each = 160 * 64;
  for (size_t g = 0; g < 3; ++g) {
    const auto* const b = p.discrete().b_ptrs<char>()[g];
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 32, 16u);
    EXPECT_EQ(std::memcmp(b, static_cast<const char*>(fused.b()) + g * each, each), 0) << g;
  }
  EXPECT_EQ(p.epilogue().bias, fused.of(Tensor::bias).first());
  EXPECT_EQ(p.epilogue().sfd_col, fused.of(Tensor::sfd_col).first());
}

}  // namespace
}  // namespace gg
