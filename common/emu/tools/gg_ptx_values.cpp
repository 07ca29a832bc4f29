// SPDX-License-Identifier: MIT
//
// Reading the values of gg-ptx's options.

#include "common/emu/tools/gg_ptx_values.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "common/kernel/error.h"
#include "common/kernel/formats.h"

namespace gg::emu {

[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  throw Error(Exit::bad_input, what + ": " + why);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] != separator) continue;
    parts.push_back(text.substr(from, at - from));
    from = at + 1;
  }
  return parts;
}

bool starts_with(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }
namespace {

// A whole number, decimal or 0x..; false if the text is none or lies outside [0, most].
bool whole(const std::string& text, uint64_t most, uint64_t* value) {
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  const bool hex = starts_with(text, "0x") || starts_with(text, "0X");
  char* rest = nullptr;
  errno = 0;
  *value = std::strtoull(text.c_str(), &rest, hex ? 16 : 10);
  return !*rest && !errno && *value <= most;
}
}  // namespace

uint64_t count(const std::string& what, const std::string& text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  if (!whole(text, most, &value) || value < least) {
    refuse(what, "\"" + text + "\" is no whole number from " + std::to_string(least) + " to " +
                     std::to_string(most));
  }
  return value;
}
Pointer pointer(const std::string& what, const std::string& text) {
  Pointer p;
  p.text = text;
  const size_t plus = text.find('+');
  p.buffer = text.substr(0, plus);
  if (p.buffer.empty()) refuse(what, "\"" + text + "\" names no buffer");
  if (plus != std::string::npos) p.add = count(what, text.substr(plus + 1), 0, INT64_MAX);
  return p;
}

int choice(const std::string& what, const std::string& value, const std::vector<std::string>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), value);
  if (found != choices.end()) return int(found - choices.begin());
  std::string all;
  for (const std::string& each : choices) all += (all.empty() ? "" : ", ") + each;
  refuse(what, "\"" + value + "\" is none of " + all);
}
namespace {

// In the order of cuda.h's CUtensorMapDataType.
const std::vector<std::string>& map_types() {
  static const std::vector<std::string> names = {
      "u8",  "u16",  "u32",     "s32",  "u64",      "s64",   "f16",       "f32",
      "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz", "b4x16", "b4x16_p64", "b6x16_p32"};
  return names;
}

template <class T>
std::vector<T> extents(const std::string& what, const std::string& value, uint64_t most) {
  std::vector<T> all;
  for (const std::string& part : split(value, 'x')) all.push_back(T(count(what, part, 0, most)));
  return all;
}

void map_field(MapSpec& map, const std::string& what, const std::string& key, const std::string& value) {
  if (key == "type") {
    map.type = choice(what, value, map_types());
  } else if (key == "dims") {
    map.dims = extents<uint64_t>(what, value, UINT64_MAX);
  } else if (key == "strides") {
    map.strides = extents<uint64_t>(what, value, UINT64_MAX);
  } else if (key == "box") {
    map.box = extents<uint32_t>(what, value, UINT32_MAX);
  } else if (key == "estrides") {
    map.element_strides = extents<uint32_t>(what, value, UINT32_MAX);
  } else if (key == "swizzle") {
    map.swizzle = choice(what, value, {"none", "32B", "64B", "128B"});
  } else if (key == "interleave") {
    map.interleave = choice(what, value, {"none", "16B", "32B"});
  } else if (key == "l2") {
    map.promotion = choice(what, value, {"none", "64B", "128B", "256B"});
  } else if (key == "fill") {
    map.nan_fill = choice(what, value, {"zero", "nan"}) == 1;
  } else {
    refuse(what, "\"" + key +
                     "\" is no field of a tensor map; they are type, dims, strides, box, swizzle, fill, "
                     "interleave, estrides and l2");
  }
}
}  // namespace

MapSpec map_spec(const std::string& option, const std::string& text) {
  MapSpec map;
  map.text = text;
  const std::string what = option + " " + text;
  const std::vector<std::string> parts = split(text.substr(std::strlen("tmap:")), ',');
  map.base = pointer(what, parts[0]);
  std::set<std::string> given;
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals == std::string::npos) refuse(what, "\"" + parts[i] + "\" is no KEY=VALUE");
    const std::string key = parts[i].substr(0, equals);
    if (!given.insert(key).second) refuse(what, key + " is given twice");
    map_field(map, what, key, parts[i].substr(equals + 1));
  }
  for (const char* key : {"type", "dims", "box"}) {
    if (!given.count(key)) refuse(what, std::string(key) + " is missing");
  }
  const size_t rank = map.dims.size();
  if (map.element_strides.empty()) map.element_strides.assign(rank, 1);
  const auto same = [&](const char* key, size_t has, size_t wants) {
    if (has == wants) return;
    refuse(what, std::string(key) + " has " + std::to_string(has) + " extents, with " + std::to_string(rank) +
                     " dimensions it needs " + std::to_string(wants));
  };
  if (rank > 5) refuse(what, "has " + std::to_string(rank) + " dimensions, a tensor map has 1 to 5");
  same("strides", map.strides.size(), rank - 1);
  same("box", map.box.size(), rank);
  same("estrides", map.element_strides.size(), rank);
  return map;
}

bool integer_argument(Argument& a, const std::string& type, const std::string& value) {
  if (type.size() < 2 || !std::strchr("iu", type[0])) return false;
  const std::string width = type.substr(1);
  if (width != "8" && width != "16" && width != "32" && width != "64") return false;
  const int bits = std::atoi(width.c_str());
  const bool is_signed = type[0] == 'i', negative = starts_with(value, "-");
  const uint64_t top = uint64_t(1) << (bits - 1);
  const uint64_t most = negative ? top : is_signed ? top - 1 : top - 1 + top;
  uint64_t magnitude = 0;
  if ((negative && !is_signed) || !whole(value.substr(negative), most, &magnitude)) {
    refuse(a.text, "\"" + value + "\" is no whole number of " + width + " bits" +
                       (is_signed ? "" : " without a sign"));
  }
  a.bits = negative ? 0 - magnitude : magnitude;
  a.bytes = bits / 8;
  return true;
}

bool float_argument(Argument& a, const std::string& type, const std::string& value) {
  if (type != "f16" && type != "bf16" && type != "f32" && type != "f64") return false;
  char* rest = nullptr;
  errno = 0;
  const double wide = std::strtod(value.c_str(), &rest);
  const bool too_large = errno == ERANGE && std::abs(wide) > 1;
  const bool is_number = !value.empty() && !*rest && !std::isspace(static_cast<unsigned char>(value[0]));
  const float narrow = std::strtof(value.c_str(), nullptr);
  double kept = wide;
  if (type == "f64") {
    std::memcpy(&a.bits, &wide, sizeof wide);
    a.bytes = 8;
  } else if (type == "f32") {
    std::memcpy(&a.bits, &narrow, sizeof narrow);
    a.bytes = 4;
    kept = narrow;
  } else {
    const Format format = type == "f16" ? Format::f16 : Format::bf16;
    a.bits = gg::encode(format, wide);
    a.bytes = 2;
    kept = gg::decode(format, uint32_t(a.bits));
  }
  if (!is_number || too_large || (std::isinf(kept) && !std::isinf(wide))) {
    refuse(a.text, "\"" + value + "\" is no number that fits");
  }
  return true;
}
void output_file(BufferSpec& buffer, const std::string& text) {
  buffer.kind = BufferSpec::Kind::out;
  buffer.file = text;
  const size_t last = text.rfind(','),
               before = last == std::string::npos || last == 0 ? last : text.rfind(',', last - 1);
  if (last == std::string::npos || before == std::string::npos) return;
  const std::string type = text.substr(before + 1, last - before - 1);
  if (type.size() != 2 || !std::strchr("fiu", type[0]) || !std::strchr("1248", type[1]) || type == "f1")
    return;
  std::vector<int64_t> shape;
  for (const std::string& part : split(text.substr(last + 1), 'x')) {
    uint64_t extent = 0;
    if (!whole(part, INT64_MAX, &extent)) return;
    shape.push_back(int64_t(extent));
  }
  buffer.file = text.substr(0, before);
  buffer.type = (type[1] == '1' ? "|" : "<") + type;
  buffer.shape = shape;
}

BufferSpec buffer_spec(const std::string& text) {
  BufferSpec buffer;
  const std::string what = "--buf " + text;
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    refuse(what, "wants NAME=in:FILE.npy, NAME=out:FILE.npy, NAME=zero:BYTES or NAME=ptrs:NAME[+BYTES],...");
  }
  buffer.name = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  const bool plain =
      !buffer.name.empty() && std::all_of(buffer.name.begin(), buffer.name.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '_' || c == '.' || c == '-';
      });
  if (!plain || buffer.name == "null")
    refuse(what, "a buffer's name is made of letters, digits, _, . and -, and is not null");
  if (starts_with(value, "in:")) {
    buffer.kind = BufferSpec::Kind::in;
    buffer.file = value.substr(3);
  } else if (starts_with(value, "out:")) {
    output_file(buffer, value.substr(4));
  } else if (starts_with(value, "zero:")) {
    buffer.kind = BufferSpec::Kind::zero;
    buffer.bytes = count(what, value.substr(5), 0, INT64_MAX);
  } else if (starts_with(value, "ptrs:")) {
    buffer.kind = BufferSpec::Kind::pointers;
    for (const std::string& part : split(value.substr(5), ','))
      buffer.pointers.push_back(pointer(what, part));
  } else {
    refuse(what, "\"" + value + "\" is none of in:FILE.npy, out:FILE.npy, zero:BYTES, ptrs:NAME[+BYTES],...");
  }
  if (buffer.file.empty() && (buffer.kind == BufferSpec::Kind::in || buffer.kind == BufferSpec::Kind::out)) {
    refuse(what, "names no file");
  }
  return buffer;
}
}  // namespace gg::emu
