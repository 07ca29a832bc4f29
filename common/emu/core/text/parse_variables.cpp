// SPDX-License-Identifier: MIT
//
// Declarations of variables. PTX ISA: "State Spaces", "Variables".

#include <algorithm>
#include <cstring>

#include "common/emu/core/text/parser.h"

namespace gg::emu {

int64_t Parser::most_bytes(Space space) {
  return space == Space::global || space == Space::constant ? kMostBytes
         : space == Space::local                            ? kMostLocalBytes
                                                            : kMostBlockBytes;
}

void Parser::require_bytes(int64_t bytes, Space space) const {
  if (bytes > most_bytes(space)) {
    fail("variables of " + std::to_string(bytes) + " bytes, at most " + std::to_string(most_bytes(space)) +
         " fit in their space");
  }
}

int64_t Parser::array_bytes(int64_t element, Space space, bool* open) {
  int64_t bytes = element;
  while (accept("[")) {
    if (accept("]")) {
      *open = true;
      continue;
    }
    const int64_t extent = integer(0, kMostBytes);
    expect("]");
    if (__builtin_mul_overflow(bytes, extent, &bytes)) bytes = INT64_MAX;
    require_bytes(bytes, space);
  }
  return bytes;
}

void Parser::place(Variable& variable, std::map<Space, int64_t>& ends) const {
  int64_t& end = ends[variable.space];
  variable.offset = (end + variable.align - 1) / variable.align * variable.align;
  require_bytes(variable.offset + variable.bytes, variable.space);
  if (!variable.external) end = variable.offset + variable.bytes;
}

Space Parser::space_of(const std::string& word) {
  if (word == ".global") return Space::global;
  if (word == ".shared") return Space::shared;
  if (word == ".const") return Space::constant;
  if (word == ".local") return Space::local;
  if (word == ".param") return Space::param;
  if (word == ".reg") return Space::reg;
  return Space::none;
}

std::vector<Variable> Parser::variables(bool external) {
  std::vector<Variable> all;
  const Space space = space_of(take().text);
  int64_t align = 0;
  int lanes = 1;
  TypeInfo type;
  for (;;) {
    if (accept(".align")) {
      align = alignment();
    } else if (accept(".v2")) {
      lanes = 2;
    } else if (accept(".v4")) {
      lanes = 4;
    } else if (accept(".managed") || accept(".attribute")) {
      if (accept("(")) skip_to(")");
    } else if (now().kind == Token::Kind::word && now().text[0] == '.' && is_type(now().text.substr(1))) {
      type = type_info(take().text.substr(1));
    } else {
      break;
    }
  }
  do {
    Variable variable;
    variable.name = take().text;
    variable.space = space;
    variable.type = type;
    const int64_t element = std::max(1, type.bits / 8) * lanes;
    variable.align = align ? align : element;
    variable.element = element;
    bool open = false;
    variable.bytes = array_bytes(element, space, &open);
    if (accept("=")) initialise(variable, element / lanes);
    if (open) variable.bytes = int64_t(variable.init.size());
    variable.external = external || (open && variable.init.empty());
    if (int64_t(variable.init.size()) > variable.bytes)
      fail("more initial values than " + variable.name + " has room for");
    all.push_back(std::move(variable));
  } while (accept(","));
  expect(";");
  return all;
}

int Parser::mask_of_byte() {
  if (now().kind != Token::Kind::number || ahead(1).text != "(") return -1;
  const uint64_t mask = uint64_t(integer());
  for (int byte = 0; byte < 8; ++byte) {
    if (mask != uint64_t(0xFF) << (8 * byte)) continue;
    expect("(");
    return byte;
  }
  fail("a mask before '(' picks one byte: 0xFF, 0xFF00 and so on");
}

void Parser::initialise(Variable& variable, int64_t element) {
  const auto put = [&](uint64_t bits) {
    for (int64_t i = 0; i < element; ++i) variable.init.push_back(uint8_t(i < 8 ? bits >> (8 * i) : 0));
  };
  const auto value = [&] {
    const int byte = mask_of_byte();
    // An address: name, name+4, generic(name)+4.
    if (now().kind == Token::Kind::word && !is("WARP_SZ")) {
      Variable::Address address;
      address.byte = byte;
      address.at = int64_t(variable.init.size());
      const bool wrapped = is("generic") && ahead(1).text == "(";
      if (wrapped) at_ += 2;
      address.symbol = take().text;
      if (wrapped) expect(")");
      address.add = offset();
      if (byte >= 0) expect(")");
      variable.addresses.push_back(address);
      put(0);
    } else {
      const Operand number = immediate();
      if (number.is_float && element == 4) {
        double wide;
        std::memcpy(&wide, &number.bits, 8);
        const float narrow = float(wide);
        uint32_t bits;
        std::memcpy(&bits, &narrow, 4);
        put(bits);
      } else {
        put(number.bits);
      }
    }
  };
  if (!accept("{")) {
    value();
    return;
  }
  int depth = 1;
  while (depth > 0) {
    if (accept("{")) {
      ++depth;
    } else if (accept("}")) {
      --depth;
    } else if (!accept(",")) {
      value();
    }
  }
}

}  // namespace gg::emu
