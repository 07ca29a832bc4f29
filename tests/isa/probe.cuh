// SPDX-License-Identifier: MIT
//
// Base of every probe: a machine that can run it, a GPU or the emulator that the test was started
// on, and arrays that both sides read. A probe is one block; each lane and each warp has data of
// its own, so that results in the wrong place don't look right.

#pragma once

#include <gtest/gtest.h>

#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"
#include "common/kernel/check.h"
#include "tests/device_array.h"

namespace probe {

class Probe : public testing::Test {
 protected:
  explicit Probe(gg::Arch arch = gg::Arch::sm_80) : arch_(arch) {}
  void SetUp() override {
    try {
      gg::choose_device(gg::emulator() ? gg::Options::Device::emulator : gg::Options::Device::gpu,
                        {.id = "probe", .arch = arch_});
    } catch (const gg::Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

 private:
  gg::Arch arch_;
};

using testing_gg::Array;

}  // namespace probe
