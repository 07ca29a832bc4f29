// SPDX-License-Identifier: MIT
//
// Reading and writing .npy.

#include "common/harness/base/npy.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "common/harness/base/files.h"

namespace gg {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kPreamble = 10;  // magic, version, length of the header

[[noreturn]] void reject(const std::string& path, const std::string& why) {
  throw Error(Exit::bad_input, path + ": " + why);
}

// The text after `'key':` in the header's dictionary.
std::string value_of(const std::string& header, const std::string& key, const std::string& path) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == std::string::npos ? at : header.find(':', at);
  if (colon == std::string::npos) reject(path, "its header has no '" + key + "': write it with numpy.save");
  const size_t start = header.find_first_not_of(' ', colon + 1);
  if (start == std::string::npos)
    reject(path, "its header ends after '" + key + "': write it with numpy.save");
  return header.substr(start);
}

bool is_one_of(const char* list, char c) { return c && std::strchr(list, c); }

size_t bytes_of_type(const std::string& type) {  // "<f4" -> 4; 0 for types no chapter uses
  if (type.size() != 3 || !is_one_of("<|", type[0]) || !is_one_of("fiu", type[1])) return 0;
  return is_one_of("1248", type[2]) ? size_t(type[2] - '0') : 0;
}

// "<f4" -> 4, "|V2" -> 2, "<U3" -> 12 (characters of 4 bytes), "<M8[ns]" -> 8; 0: it has no size.
size_t bytes_of_any_type(const std::string& type) {
  if (type.size() < 3 || !is_one_of("<|=", type[0]) || !is_one_of("biufcmMSUV", type[1])) return 0;
  char* rest = nullptr;
  const unsigned long long count = std::strtoull(type.c_str() + 2, &rest, 10);
  if (rest == type.c_str() + 2 || count > INT32_MAX || (*rest && !is_one_of("mM", type[1]))) return 0;
  return size_t(count) * (type[1] == 'U' ? 4 : 1);
}

std::vector<int64_t> parse_shape(const std::string& text, const std::string& path) {
  const size_t end = text.find(')');
  if (text[0] != '(' || end == std::string::npos)
    reject(path, "its shape is not a tuple: write it with numpy.save");
  std::vector<int64_t> shape;
  std::stringstream parts(text.substr(1, end - 1));
  for (std::string part; std::getline(parts, part, ',');) {
    if (part.find_first_not_of(' ') == std::string::npos) continue;
    char* rest = nullptr;
    errno = 0;
    const long long extent = std::strtoll(part.c_str(), &rest, 10);
    if (errno || *rest || extent < 0)
      reject(path, "its shape holds '" + part + "', which is no extent: write it with numpy.save");
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

int64_t NpyArray::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

namespace {

NpyArray read_with(const std::string& path, size_t (*size_of)(const std::string& type)) {
  std::string bytes;
  if (!read_file(path, bytes))
    reject(path,
           "cannot be read (" + std::string(std::strerror(errno ? errno : EIO)) + "): name a file that can");
  if (bytes.size() < kPreamble || bytes.compare(0, 6, kMagic, 6) != 0)
    reject(path, "is not a .npy file: write it with numpy.save");
  if (bytes[6] != 1) {
    reject(path, format("has .npy format version %d.%d; only 1.0 is read: write it with numpy.save",
                        int(bytes[6]), int(bytes[7])));
  }
  const size_t header_bytes = size_t(uint8_t(bytes[8])) | size_t(uint8_t(bytes[9])) << 8;
  if (bytes.size() < kPreamble + header_bytes) {
    reject(path, format("is truncated: its header says %zu bytes and %zu are there: write it again",
                        header_bytes, bytes.size() - kPreamble));
  }
  const std::string header = bytes.substr(kPreamble, header_bytes);
  NpyArray array;
  const std::string descr = value_of(header, "descr", path);
  const size_t quote = descr.find('\'', 1);
  if (descr[0] != '\'' || quote == std::string::npos)
    reject(path, "its type is not a plain string: give it one type");
  array.type = descr.substr(1, quote - 1);
  if (value_of(header, "fortran_order", path).compare(0, 5, "False") != 0) {
    reject(path, "is in Fortran order, C order is wanted: save numpy.ascontiguousarray of it");
  }
  array.shape = parse_shape(value_of(header, "shape", path), path);
  if (array.type[0] == '>') {
    reject(path, "has type '" + array.type + "', which is big-endian; only little-endian is read: save " +
                     "x.astype(x.dtype.newbyteorder('<')) of it");
  }
  const size_t item = size_of(array.type);
  if (item == 0) reject(path, "has type '" + array.type + "', which no tensor here has: convert it");
  int64_t wanted = int64_t(item);
  for (int64_t extent : array.shape) {
    if (__builtin_mul_overflow(wanted, extent, &wanted))
      reject(path, "its shape " + shape_text(array.shape) + " overflows: give a smaller one");
  }
  const size_t found = bytes.size() - kPreamble - header_bytes;
  if (found != size_t(wanted)) {
    reject(path, format("holds %zu bytes of data, its shape %s of '%s' needs %lld: write it again", found,
                        shape_text(array.shape).c_str(), array.type.c_str(), static_cast<long long>(wanted)));
  }
  array.data.assign(bytes.begin() + ptrdiff_t(kPreamble + header_bytes), bytes.end());
  return array;
}

}  // namespace

NpyArray read_npy(const std::string& path) { return read_with(path, bytes_of_type); }
NpyArray read_npy_of_any_type(const std::string& path) { return read_with(path, bytes_of_any_type); }

NpyArray read_npy(const std::string& path, Format wanted, size_t rank, const TypeHint& or_else) {
  NpyArray array = read_npy(path);
  const FormatInfo info = format_info(wanted);
  if (array.type != info.npy) {
    const std::string option = or_else ? or_else(array.type) : "";
    reject(path, format("has type '%s', %s travels as '%s': convert it%s", array.type.c_str(), info.name,
                        info.npy, option.empty() ? "" : (", or give " + option).c_str()));
  }
  if (array.shape.size() != rank) {
    reject(path, format("has shape %s, %zu dimensions are wanted: reshape it",
                        shape_text(array.shape).c_str(), rank));
  }
  return array;
}

std::string npy_content(const std::string& type, const std::vector<int64_t>& shape, const void* data,
                        size_t bytes) {
  std::string extents;
  for (int64_t extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  if (shape.size() == 1) extents += ',';  // a tuple of one keeps its comma
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + extents + "), }";
  // The data start at a multiple of 64.
  header.resize((kPreamble + header.size() + 1 + 63) / 64 * 64 - kPreamble - 1, ' ');
  header += '\n';
  std::string content(kMagic, 6);
  content += {'\x01', '\x00', char(header.size() & 0xFF), char(header.size() >> 8)};
  content += header;
  return content.append(static_cast<const char*>(data), bytes);
}

void write_npy(const std::string& path, const std::string& type, const std::vector<int64_t>& shape,
               const void* data, size_t bytes) {
  write_file(path, npy_content(type, shape, data, bytes));
}

}  // namespace gg
