// SPDX-License-Identifier: MIT
//
// Reading the ceilings that gg-roof has measured.

#include "common/harness/bench/roof.h"

#include <cstdlib>
#include <sstream>

#include "common/harness/base/csv.h"
#include "common/harness/base/files.h"
#include "common/harness/base/paths.h"

namespace gg {

const std::vector<std::string> kRoofColumns = {"device",    "what", "value",  "unit",
                                               "clock_mhz", "cuda", "commit", "date"};

double Roof::tflops_of(Format format) const {
  const auto found = tflops.find(format_info(format == Format::e5m2 ? Format::e4m3 : format).name);
  return found == tflops.end() ? 0 : found->second;
}

Roof read_roof(const std::string& path, const std::string& device) {
  Roof roof;
  std::string content;
  if (!read_file(path, content)) return roof;
  std::istringstream lines(content);
  std::string line;
  std::getline(lines, line);
  if (line + "\n" != csv_line(kRoofColumns)) return roof;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string name, what, value;
    std::getline(fields, name, ',');
    std::getline(fields, what, ',');
    std::getline(fields, value, ',');
    if (name != device) continue;
    (what == "copy" ? roof.gbytes_per_s : roof.tflops[what]) = std::strtod(value.c_str(), nullptr);
  }
  return roof;
}

std::string roof_path() { return in_build_tree("roof.csv"); }

}  // namespace gg
