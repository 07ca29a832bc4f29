// SPDX-License-Identifier: MIT
//
// Measurements as CSV rows, and the measured ceilings they are held against.

#pragma once

#include <map>
#include <string>
#include <vector>

namespace gg {

using Row = std::map<std::string, std::string>;  // column -> value; absent columns are empty

extern const std::vector<std::string> kResultColumns;
extern const std::vector<std::string> kCountColumns;

// Appends rows to a CSV file, made with the header if there is none. The file is replaced as a whole, so a
// full disk leaves what was there. Throws gg::Error: bad input for a file with another header, cannot write.
void append_csv(const std::string& path, const std::vector<std::string>& columns,
                const std::vector<Row>& rows);

// The same refusals before any work is done; writes nothing.
void require_csv(const std::string& path, const std::vector<std::string>& columns);

std::string number_text(
    double value);    // six significant digits, no exponent where a reader would not want one
std::string today();  // 2026-11-21, UTC

// build/roof.csv as gg-roof writes it: what -> value. Empty if it is not there or of another device.
struct Roof {
  std::map<std::string, double> tflops;  // by format name
  double gbytes_per_s = 0;
};
extern const std::vector<std::string> kRoofColumns;
Roof read_roof(const std::string& path, const std::string& device);
std::string roof_path();  // build/roof.csv

// A name in the build tree, which is the folder above that of the running program.
std::string in_build_tree(const std::string& name);

}  // namespace gg
