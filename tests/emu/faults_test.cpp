// SPDX-License-Identifier: MIT
//
// Planted mistakes, each with the program as it should be. The reports are kept word by word in
// golden/, and are to be read: GG_UPDATE_GOLDEN=1 in the environment writes them anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "common/emu/core/state/names.h"
#include "tests/emu/mistakes.h"

namespace {

using namespace emu_test;

constexpr const char* kLicence = "SPDX-License-Identifier: MIT";

// The report of a launch; empty if all went well.
std::string report_of(const std::string& text, Config config, const Words& in, const Order& order,
                      int workers, FaultKind* kind = nullptr) {
  config.options.order = order;
  config.options.workers = workers;
  std::vector<Buffer> buffers = {Buffer(4096), buffer_of(in)};
  try {
    Program program(text);
    program.run(buffers, config);
  } catch (const Fault& fault) {
    if (kind) *kind = fault.kind;
    return fault.what();
  }
  return "";
}

// Addresses of global memory differ from run to run.
std::string without_addresses(const std::string& report) {
  return std::regex_replace(report, std::regex("0x[0-9a-f]{9,16}"), "0x...");
}

std::string golden_of(const std::string& name, const std::string& report) {
  const std::filesystem::path path =
      std::filesystem::path(GG_SOURCE_DIR) / "tests/emu/golden" / (name + ".txt");
  const char* const update = std::getenv("GG_UPDATE_GOLDEN");
  if (update && *update) std::ofstream(path) << kLicence << "\n" << report;
  std::ifstream file(path);
  std::string licence;
  std::getline(file, licence);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  for (const auto& some :
       {memory_mistakes(), uninit_mistakes(), race_mistakes(), one_word_mistakes(), copy_mistakes(),
        barrier_mistakes(), lock_mistakes(), mbarrier_mistakes(), relaxed_mistakes(), bulk_mistakes(),
        neighbour_mistakes(), other_mistakes(), tensor_memory_mistakes(), source_mistakes()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

class Mistakes : public testing::TestWithParam<Mistake> {
 protected:
  // Source lines are shown from there.
  void SetUp() override { std::filesystem::current_path(GG_SOURCE_DIR); }
};

TEST_P(Mistakes, IsReported) {
  const Mistake& m = GetParam();
  FaultKind kind = FaultKind::unsupported;
  const std::string report = report_of(m.bug, m.config, m.in, {}, 1, &kind);
  ASSERT_NE(report, "") << "no fault";
  EXPECT_STREQ(fault_name(kind), fault_name(m.kind));
  const std::string shown = without_addresses(report), golden = golden_of(m.name, shown);
  EXPECT_EQ(shown, golden) << "GG_UPDATE_GOLDEN=1 writes golden/" << m.name << ".txt anew";
  EXPECT_EQ(without_addresses(report_of(m.bug, m.config, m.in, {}, 2)), shown) << "with two workers";
}

TEST_P(Mistakes, IsReportedInEveryOrder) {
  const Mistake& m = GetParam();
  for (const Order& order : orders()) {
    if (!m.every_order && order.skew) continue;
    const std::string report = report_of(m.bug, m.config, m.in, order, 1);
    ASSERT_NE(report, "") << "no fault in order " << name_of(order);
    EXPECT_EQ(without_addresses(report_of(m.bug, m.config, m.in, order, 2)), without_addresses(report))
        << "with two workers";
  }
}

TEST_P(Mistakes, ItsCorrectionIsNot) {
  const Mistake& m = GetParam();
  for (const Order& order : orders()) {
    for (int workers = 1; workers <= 2; ++workers)
      EXPECT_EQ(
          report_of(m.right, m.right_config.value_or(m.config), m.right_in.value_or(m.in), order, workers),
          "");
  }
}

// With everything allowed, a mistake gives a warning where hardware goes on, and the
// fault everywhere else.
TEST_P(Mistakes, IsAWarningWhereItCanBeAllowed) {
  const Mistake& m = GetParam();
  Config config = m.config;
  config.options.allowed = ~0u;
  FaultKind kind = m.kind;
  testing::internal::CaptureStderr();
  const std::string report = report_of(m.bug, config, m.in, {}, 1, &kind);
  const std::string warnings = testing::internal::GetCapturedStderr();
  if (can_be_allowed(m.kind)) {
    EXPECT_EQ(report, "");
    EXPECT_NE(warnings.find("allowed: " + std::string(fault_name(m.kind)) + " in "), std::string::npos)
        << warnings;
  } else {
    EXPECT_NE(report, "") << "no fault";
    EXPECT_STREQ(fault_name(kind), fault_name(m.kind)) << report;
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, Mistakes, testing::ValuesIn(mistakes()),
                         [](const auto& info) { return info.param.name; });

// Most opcodes have several forms, for integers, floats, copies: the report is of the one meant.
TEST(Faults, AnUnsupportedFormIsNamedByTheClosest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"add.rn.u32 %r10, %r0, %r0;", "modifier .rn"},
      {"add.cold.f32 %f0, %f0, %f0;", "modifier .cold"},
      {"fma.rn.relu.f32 %f0, %f0, %f0, %f0;", "modifier .relu"},
      {"mul.lo.u32 %rd3, %r0, %r0;", "register %rd3 has another size than .u32"},
      {"cvt.rn.satfinite.e2m1x2.f32 %h0, %f0, %f0;", "register %h0 has another size than .e2m1x2"},
      {"cvt.rn.satfinite.e2m2x2.f32 %h0, %f0, %f0;", "modifier .e2m2x2"},
      {"cp.async.cg.cold.shared.global [%r0], [%rd0], 16;", "modifier .cold"},
      {"cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r0, "
       "%r0, %r0}], [%r0];",
       "modifier .im2col"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.cold.f32 [%rd0], [%r0], %r0;",
       "modifier .cold"},
  };
  for (const auto& [statement, reason] : cases) {
    const std::string report = report_of(kernel(statement), config_of(1, 32), {}, {}, 1);
    EXPECT_NE(report.find("not supported: " + reason + "\n"), std::string::npos) << report;
  }
}

// nvcc's names of kernels with long template arguments are beyond the library's demangler; here a
// question mark is.
TEST(Faults, KernelsAreNamedAsInTheirSource) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"_Z5scalePfi", "scale(float*, int)"},
      {"_ZN7chapter5scaleIfEEvPT_i", "void chapter::scale<float>(float*, int)"},
      {"_ZN7chapter12_GLOBAL__N_15scaleEPfi", "chapter::scale(float*, int)"},
      {"_Z5scaleI?EvPT_", "scale<...>"},
      {"_Z5scale?", "scale"},
      {"_ZN7chapter5scaleI?EEvPT_", "chapter::scale<...>"},
      {"_ZN7chapter12_GLOBAL__N_15scaleI?EEvPT_", "chapter::scale<...>"},
      {"_Z9scale", "_Z9scale"},
      {"_Z?", "_Z?"},
      {"scale", "scale"},
  };
  for (const auto& [mangled, name] : cases) EXPECT_EQ(gg::emu::demangled(mangled), name);
}

// A report has room for eight others: who has ended comes last.
TEST(Faults, ADeadlockTellsFirstOfThoseWhoWait) {
  constexpr int kBlocks = 16;  // of a cluster: blocks 0 and 15 wait, those between end
  const std::string text = kernel(R"(
    mov.u32 %r10, %cluster_ctarank;
    setp.eq.u32 %p0, %r10, 0;
    setp.eq.u32 %p1, %r10, 15;
    or.pred %p0, %p0, %p1;
    @%p0 bar.sync 1, 64;
  )");
  FaultKind kind = {};
  const std::string report = report_of(text, config_of(kBlocks, 32, kBlocks), {}, {}, 1, &kind);
  EXPECT_EQ(kind, FaultKind::deadlock) << report;
  const size_t waits = report.find("other   block 15 "), ended = report.find("has ended");
  EXPECT_NE(waits, std::string::npos) << report;
  EXPECT_LT(waits, ended) << report;
}

TEST(Faults, EveryKindIsPlanted) {
  std::vector<Mistake> all = mistakes();
  for (int kind = 0; kind < gg::emu::kFaultKinds; ++kind) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Mistake& m) {
      return m.kind == FaultKind(kind);
    })) << gg::emu::fault_name(FaultKind(kind));
  }
}

TEST(Faults, APageExplainsEveryKind) {
  std::ifstream file(std::filesystem::path(GG_SOURCE_DIR) / "common/emu/FAULTS.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (int kind = 0; kind < gg::emu::kFaultKinds; ++kind) {
    EXPECT_NE(text.str().find("\n## " + std::string(gg::emu::fault_name(FaultKind(kind))) + "\n"),
              std::string::npos)
        << gg::emu::fault_name(FaultKind(kind));
  }
}

}  // namespace
