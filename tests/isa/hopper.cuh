// SPDX-License-Identifier: MIT
//
// Probes of instructions that compute capability 9.0 alone has.

#pragma once

#include "probe.cuh"

namespace probe {

class HopperProbe : public Probe {
 protected:
  HopperProbe() : Probe(gg::Arch::sm_90a) {}
};

}  // namespace probe
