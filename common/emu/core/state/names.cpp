// SPDX-License-Identifier: MIT

#include "common/emu/core/state/names.h"

#include <cxxabi.h>

#include <cctype>
#include <cstdlib>

namespace gg::emu {
namespace {

// The names that a mangled name begins with: "_ZN1a1bIfEEvT_" -> "a::b<...>". Itanium C++ ABI,
// section 5.1: each is its length and its text; N begins names within names, I the template
// arguments. "" if it begins with none.
std::string first_names(const std::string& mangled) {
  size_t at = 2;  // behind _Z
  const auto next = [&](char c) { return at < mangled.size() && mangled[at] == c && ++at; };
  const bool nested = next('N');
  std::string names;
  while (at < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[at]))) {
    size_t digits = 0;
    const size_t length = std::stoul(mangled.substr(at, 9), &digits);
    at += digits;
    if (length > mangled.size() - at) return "";
    const std::string name = mangled.substr(at, length);
    at += length;
    if (name.rfind("_GLOBAL__N_", 0) != 0) names += (names.empty() ? "" : "::") + name;
    if (!nested) break;
  }
  if (!names.empty() && next('I')) names += "<...>";
  return names;
}

}  // namespace

std::string demangled(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string whole = status == 0 && text ? text : first_names(name);
  std::free(text);
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = whole.find(anonymous)) != std::string::npos;) whole.erase(at, anonymous.size());
  return whole.empty() ? name : whole;
}

}  // namespace gg::emu
