// SPDX-License-Identifier: MIT
//
// The drivers and GPUs that are good enough, and what is said of those that are not.

#include "common/harness/run/device.h"

#include <gtest/gtest.h>

#include "common/harness/machine/emulator.h"

namespace gg {
namespace {

TEST(Device, ADriverOfAnOlderMajorVersionIsNamedWithBothVersions) {
  const std::string sentence = version_mismatch(12080, 13000);
  EXPECT_NE(sentence.find("12.8"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("13.0"), std::string::npos) << sentence;
  EXPECT_EQ(version_mismatch(0, 13000), "no NVIDIA driver is installed");
}

TEST(Device, MinorVersionsAndNewerDriversFit) {
  EXPECT_EQ(version_mismatch(13000, 13000), "");
  EXPECT_EQ(version_mismatch(13000, 13020), "");
  EXPECT_EQ(version_mismatch(13020, 13000), "");
  EXPECT_EQ(version_mismatch(14000, 13000), "");
}

TEST(Device, EachArchitectureRunsOnItsGpusAndNamesTheOthers) {
  struct Case {
    int capability;
    bool sm_80, sm_90a, sm_100a;
    const char* text;
  };
  for (const Case& each : {Case{75, false, false, false, "7.5"}, Case{80, true, false, false, "8.0"},
                           Case{89, true, false, false, "8.9"}, Case{90, true, true, false, "9.0"},
                           Case{100, true, false, true, "10.0"}, Case{103, true, false, false, "10.3"},
                           Case{120, true, false, false, "12.0"}}) {
    const std::pair<Arch, bool> wanted[] = {
        {Arch::sm_80, each.sm_80}, {Arch::sm_90a, each.sm_90a}, {Arch::sm_100a, each.sm_100a}};
    for (const auto& [arch, runs] : wanted) {
      const std::string why = arch_mismatch("GPU X", each.capability, arch);
      EXPECT_EQ(why.empty(), runs) << each.text << ": " << why;
      const std::string start = std::string("GPU X has compute capability ") + each.text + ",";
      EXPECT_TRUE(runs || why.rfind(start, 0) == 0) << why;
    }
  }
}

TEST(LongEmulation, IsSaidWithItsSizeItsTimeAndAWayOut) {
  EXPECT_EQ(
      long_emulation(481036337152.0, 2, 30e6, "smoke"),
      "emulating 481.0 billion useful multiply-adds takes about 2.2 hours, at the 30 million just measured "
      "a second on each of 2 cores; --set smoke takes seconds");
  EXPECT_NE(long_emulation(481036337152.0, 2, 300e6, "smoke").find(" about 13 minutes, at the 300 million "),
            std::string::npos);
}

TEST(LongEmulation, IsARangeWhereNothingWasMeasured) {
  EXPECT_EQ(long_emulation(481036337152.0, 2, 0, "smoke"),
            "emulating 481.0 billion useful multiply-adds takes 5 minutes to 2.2 hours, at 30 to 800 million "
            "a second on each of 2 cores; --set smoke takes seconds");
  EXPECT_EQ(
      long_emulation(4 * 481036337152.0, 64, 0, "smoke_uniform"),
      "emulating 1924.1 billion useful multiply-adds takes 38 seconds to 17 minutes, at 30 to 800 million "
      "a second on each of 64 cores; --set smoke_uniform takes seconds");
  EXPECT_NE(long_emulation(4 * 481036337152.0, 2, 0, "smoke").find(" 20 minutes to 8.9 hours, "),
            std::string::npos);
}

TEST(LongEmulation, IsNotWorthALineBelowAMinute) {
  EXPECT_EQ(long_emulation(0, 1, 0, "smoke"), "");
  for (const double rate : {0.0, 30e6}) {
    EXPECT_EQ(long_emulation(60 * 30e6, 1, rate, "smoke"), "");
    EXPECT_NE(long_emulation(61 * 30e6, 1, rate, "smoke"), "");
    EXPECT_EQ(long_emulation(61 * 30e6, 2, rate, "smoke"), "");
  }
  EXPECT_EQ(long_emulation(61 * 30e6, 1, 40e6, "smoke"), "");
  EXPECT_FALSE(may_take_long(60 * 30e6, 1));
  EXPECT_TRUE(may_take_long(61 * 30e6, 1));
  EXPECT_FALSE(may_take_long(61 * 30e6, 2));
}

TEST(Device, AProgramThatWasStartedNormallyIsNotOnTheEmulator) { EXPECT_EQ(emulator(), nullptr); }

}  // namespace
}  // namespace gg
