// SPDX-License-Identifier: MIT
//
// Probes of instructions that compute capability 10.0 alone has.

#pragma once

#include "probe.cuh"

namespace probe {

class BlackwellProbe : public Probe {
 protected:
  BlackwellProbe() : Probe(gg::Arch::sm_100a) {}
};

}  // namespace probe
