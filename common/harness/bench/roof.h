// SPDX-License-Identifier: MIT
//
// The measured ceilings of a device, which results are held against.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/kernel/formats.h"

namespace gg {

// The rates that gg-roof has measured of one device; zeros and no formats where it has not.
struct Roof {
  std::map<std::string, double> tflops;  // by format name
  double gbytes_per_s = 0;
  // The rate of products of such elements; 0: not measured. E5M2 has the rate of E4M3, which one
  // instruction takes with it (PTX ISA, tcgen05.mma, kind mxf8f6f4).
  double tflops_of(Format format) const;
};
extern const std::vector<std::string> kRoofColumns;
// The rows of this device in a file of gg-roof: columns what and value. Empty if there are none.
Roof read_roof(const std::string& path, const std::string& device);
std::string roof_path();  // build/roof.csv

}  // namespace gg
