// SPDX-License-Identifier: MIT
//
// Appending rows to CSV files.

#include "common/harness/base/csv.h"

#include <unistd.h>

#include <ctime>

#include "common/harness/base/files.h"
#include "common/kernel/check.h"

namespace gg {

static std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted(1, '"');
  for (char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted.append(1, '"');
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& each : fields) line.append(field(each)).push_back(',');
  line.back() = '\n';
  return line;
}

// The content of the file, or the header it will begin with. It is a plain file, or there is none.
static std::string content_of(const std::string& path, const std::vector<std::string>& columns) {
  const std::string header = csv_line(columns);
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
  require_writable(path);
  content_of(path, columns);
}

void append_csv(const std::string& path, const std::vector<std::string>& columns,
                const std::vector<Row>& rows) {
  const FileLock lock(path);  // other programs append too
  std::string content = content_of(path, columns);
  if (content.back() != '\n') content += '\n';
  for (const Row& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& column : columns) {
      const auto value = row.find(column);
      fields.push_back(value == row.end() ? "" : value->second);
    }
    content += csv_line(fields);
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

}  // namespace gg
