// SPDX-License-Identifier: MIT
//
// CSV files: fields with commas or quotes are quoted as RFC 4180 says.

#include "common/run/results.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <sstream>

#include "common/base/npy.h"
#include "common/check.h"

namespace gg {

const std::vector<std::string> kResultColumns = {
    "chapter",      "kernel",          "device",    "arch",    "clock_mhz",
    "cuda",         "commit",          "date",      "set",     "groups",
    "m_total",      "m_max",           "n",         "k",       "format",
    "warm",         "us_median",       "us_p10",    "us_p90",  "tflops",
    "gbytes_per_s", "roof_tflops",     "roof_kind", "prep_us", "peer",
    "ok",           "clock_after_mhz", "power_w",   "version"};
const std::vector<std::string> kCountColumns = {"chapter", "set", "order", "counter", "value"};
const std::vector<std::string> kRoofColumns = {"device",    "what", "value",  "unit",
                                               "clock_mhz", "cuda", "commit", "date"};

static std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted(1, '"');
  for (char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted.append(1, '"');
}

static std::string line_of(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& each : fields) line.append(field(each)).push_back(',');
  line.back() = '\n';
  return line;
}

// What the file holds, or the header it will begin with.
static std::string content_of(const std::string& path, const std::vector<std::string>& columns) {
  const std::string header = line_of(columns);
  std::string content;
  if (!read_file(path, content) && access(path.c_str(), F_OK) == 0) {
    throw Error(Exit::cannot_write, path + ": is there but cannot be read; it is left as it is");
  }
  if (content.empty()) return header;
  if (content.compare(0, header.size(), header) != 0) {
    throw Error(
        Exit::bad_input,
        format("%s: has another header than this program writes (it begins with '%s'); name a new file",
               path.c_str(), content.substr(0, content.find('\n')).substr(0, 60).c_str()));
  }
  return content;
}

void require_csv(const std::string& path, const std::vector<std::string>& columns) {
  content_of(path, columns);
  require_writable(path);
}

void append_csv(const std::string& path, const std::vector<std::string>& columns,
                const std::vector<Row>& rows) {
  std::string content = content_of(path, columns);
  if (content.back() != '\n') content += '\n';
  for (const Row& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& column : columns) {
      const auto value = row.find(column);
      fields.push_back(value == row.end() ? "" : value->second);
    }
    content += line_of(fields);
  }
  write_file(path, content);
}

std::string number_text(double value) { return format("%.6g", value); }

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return format("%04d-%02d-%02d", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

Roof read_roof(const std::string& path, const std::string& device) {
  Roof roof;
  std::string content;
  if (!read_file(path, content)) return roof;
  std::istringstream lines(content);
  std::string line;
  std::getline(lines, line);
  if (line + "\n" != line_of(kRoofColumns)) return roof;
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

std::string in_build_tree(const std::string& name) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::string program(path, length > 0 ? size_t(length) : 0);
  for (int level = 0; level < 2; ++level) program.resize(std::min(program.size(), program.find_last_of('/')));
  return program + "/" + name;
}

}  // namespace gg
