// SPDX-License-Identifier: MIT
//
// Problems in folders: what is written comes back, with B as [K,N] and as [N,K], as packed rows and
// as groups of their own sizes.

#include <gtest/gtest.h>

#include "common/harness/base/npy.h"
#include "common/harness/verify/problem_files.h"
#include "common/harness/verify/trials.h"
#include "tests/process.h"

namespace gg {
namespace {

using testing_gg::Folder;
using Extents = std::vector<int64_t>;

// On the host, by offsets or by pointer arrays, as the problem says.
void product(const Problem& p, cudaStream_t) {
  const bool own = p.own().sizes != nullptr, nk = p.b_layout() == BLayout::nk;
  for (int g = 0; g < p.groups(); ++g) {
    const int32_t row = p.offsets().as<int32_t>()[g];
    const int m = own ? p.own().sizes[3 * g] : p.offsets().as<int32_t>()[g + 1] - row;
    const int n = own ? p.own().sizes[3 * g + 1] : p.n(), k = own ? p.own().sizes[3 * g + 2] : p.k();
    const bf16* a = own ? p.own().a_ptrs<bf16>()[g] : p.a<bf16>() + int64_t(row) * k;
    const bf16* b = own ? p.own().b_ptrs<bf16>()[g] : p.b<bf16>() + g * p.b_group_stride();
    bf16* d = own ? p.own().d_ptrs<bf16>()[g] : p.d<bf16>() + int64_t(row) * n;
    const int lda = own ? p.own().leading_dims[3 * g] : k, ldd = own ? p.own().leading_dims[3 * g + 2] : n;
    const int ldb = own ? p.own().leading_dims[3 * g + 1] : nk ? k : n;
    for (int r = 0; r < m; ++r) {
      for (int col = 0; col < n; ++col) {
        float sum = 0;
        for (int kk = 0; kk < k; ++kk) {
          sum += to_float(a[r * lda + kk]) * to_float(nk ? b[col * ldb + kk] : b[kk * ldb + col]);
        }
        d[r * ldd + col] = from_float<bf16>(sum);
      }
    }
  }
}

struct Case {
  const char* name;
  BLayout b_layout;
  Shape shape;
  std::vector<std::pair<const char*, Extents>> files;
};
std::vector<Case> cases() {
  const Shape packed{{3, 0, 2}, {7}, {5}, "files"};
  Shape shared = packed, own{{3, 2}, {7, 4}, {5, 6}, "files"}, single{{3}, {7}, {5}, "files"};
  shared.shared_b = true;
  own.own_sizes = single.own_sizes = true;
  const BLayout kn = BLayout::kn, nk = BLayout::nk;
  return {
      {"PackedKn", kn, packed, {{"a", {5, 5}}, {"b", {3, 5, 7}}, {"d", {5, 7}}, {"offsets", {4}}}},
      {"PackedNk", nk, packed, {{"a", {5, 5}}, {"b", {3, 7, 5}}, {"d", {5, 7}}, {"offsets", {4}}}},
      {"SharedKn", kn, shared, {{"b", {5, 7}}}},
      {"SharedNk", nk, shared, {{"b", {7, 5}}}},
      {"OwnKn",
       kn,
       own,
       {{"a_00001", {2, 6}}, {"b_00000", {5, 7}}, {"b_00001", {6, 4}}, {"d_00001", {2, 4}}}},
      {"OwnNk",
       nk,
       own,
       {{"a_00001", {2, 6}}, {"b_00000", {7, 5}}, {"b_00001", {4, 6}}, {"d_00001", {2, 4}}}},
      {"SingleOwnNk", nk, single, {{"a_00000", {3, 5}}, {"b_00000", {7, 5}}, {"d_00000", {3, 7}}}},
  };
}
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

class Files : public testing::TestWithParam<Case> {};

TEST_P(Files, HaveTheirShapesAndComeBack) {
  const Case& each = GetParam();
  const Folder first, second;
  gg::Setup setup;
  setup.request.b_layout = each.b_layout;
  const std::unique_ptr<Machine> machine = host_machine();
  write_problem(*machine, setup, product, each.shape, nullptr, 1, first.path);
  for (const auto& [name, extents] : each.files) {
    EXPECT_EQ(read_npy(first.at(name) + ".npy").shape, extents) << name;
  }
  Chapter chapter;
  chapter.own_sizes = OwnSizes::when_listed;
  const auto given = read_operands(first.path, setup, chapter, each.shape.shared_b);
  EXPECT_EQ(given->shape.own_sizes, each.shape.own_sizes);
  EXPECT_EQ(given->shape.describe(), each.shape.describe());
  const CheckResult result = check_given(*machine, setup, product, *given);
  EXPECT_FALSE(result.failure) << result.failure->sentence;
  write_problem(*machine, setup, product, given->shape, given.get(), 2, second.path);
  for (const auto& entry : std::filesystem::directory_iterator(first.path)) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(testing_gg::text_of(first.at(name)), testing_gg::text_of(second.at(name))) << name;
  }
}
INSTANTIATE_TEST_SUITE_P(Case, Files, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Folders, OfBothKindsAreRefusedWhereEitherIsTaken) {
  const Folder folder;
  for (const char* name : {"a.npy", "a_00000.npy"}) testing_gg::write_text(folder.at(name), "");
  Chapter chapter;
  chapter.own_sizes = OwnSizes::when_listed;
  const auto error = testing_gg::error_of([&] { read_operands(folder.path, {}, chapter, false); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Exit::bad_input);
  EXPECT_NE(std::string(error->what()).find("a_00000.npy"), std::string::npos) << error->what();
}

TEST(Folders, OfTheOtherLayoutAreRefused) {
  const Folder folder;
  gg::Setup setup;
  const std::unique_ptr<Machine> machine = host_machine();
  write_problem(*machine, setup, product, {{3, 2}, {7}, {5}}, nullptr, 1, folder.path);
  setup.request.b_layout = BLayout::nk;
  const auto error = testing_gg::error_of([&] { read_operands(folder.path, setup, {}, false); });
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find("give both the same K"), std::string::npos) << error->what();
}

}  // namespace
}  // namespace gg
