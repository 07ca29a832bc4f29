// SPDX-License-Identifier: MIT
//
// CSV files: fields with commas or quotes are quoted as RFC 4180 says.

#pragma once

#include <map>
#include <string>
#include <vector>

namespace gg {

using Row = std::map<std::string, std::string>;  // column -> value; absent columns are empty

// One line of a file, line end included.
std::string csv_line(const std::vector<std::string>& fields);

// Appends rows to a CSV file, made with the header if there is none. The file is replaced as a
// whole, so a full disk leaves what was there; of several programs that append, each waits for the
// others. Throws gg::Error: bad input for a file with another header, cannot write.
void append_csv(const std::string& path, const std::vector<std::string>& columns,
                const std::vector<Row>& rows);

// The same refusals before any work is done; writes nothing.
void require_csv(const std::string& path, const std::vector<std::string>& columns);

// Six significant digits, no exponent where a reader would not want one.
std::string number_text(double value);
std::string today();  // 2026-11-21, UTC
// The commit built from: 0123456789ab, then -dirty if files were changed; unknown outside a clone.
const char* commit();

}  // namespace gg
