// SPDX-License-Identifier: MIT
//
// Numbers of a PTX text. PTX ISA: "Constants".

#include <cctype>
#include <cstdlib>
#include <cstring>

#include "common/emu/text/parser.h"

namespace gg::emu {

int64_t Parser::integer() {
  bool negative = false;
  while (is("-") || is("+")) negative ^= take().text == "-";
  const Token token = take();
  if (token.kind != Token::Kind::number)
    throw SyntaxError{token.line, "a number is wanted where '" + token.text + "' stands"};
  const uint64_t value = std::strtoull(token.text.c_str(), nullptr, 0);
  return int64_t(negative ? 0 - value : value);
}

int64_t Parser::integer(int64_t least, int64_t most) {
  const int line = now().line;
  const int64_t value = integer();
  if (value < least || value > most) {
    throw SyntaxError{line, "a number from " + std::to_string(least) + " to " + std::to_string(most) +
                                " is wanted where " + std::to_string(value) + " stands"};
  }
  return value;
}

int64_t Parser::alignment() {
  const int64_t bytes = integer(1, kMostAlign);
  if (bytes & (bytes - 1)) fail("an alignment of " + std::to_string(bytes) + " bytes is no power of two");
  return bytes;
}

int64_t Parser::offset() {
  int64_t sum = 0;
  while (is("+") || is("-")) {
    sum += integer(-kMostBytes, kMostBytes);
    if (std::abs(sum) > kMostBytes) fail("an address with an offset of " + std::to_string(sum) + " bytes");
  }
  return sum;
}

Operand Parser::immediate() {
  Operand operand;
  operand.kind = Operand::Kind::immediate;
  bool negative = false;
  while (is("-") || is("+")) negative ^= take().text == "-";
  const Token token = take();
  if (token.kind != Token::Kind::number)
    throw SyntaxError{token.line, "a number is wanted where '" + token.text + "' stands"};
  const std::string& t = token.text;
  const char second = t.size() > 1 ? char(std::tolower(t[1])) : ' ';
  double value = 0;
  if (t[0] == '0' && second == 'f') {
    const uint32_t bits = uint32_t(std::strtoul(t.c_str() + 2, nullptr, 16));
    float narrow;
    std::memcpy(&narrow, &bits, 4);
    value = narrow;
    operand.is_float = true;
    operand.offset =
        int64_t(bits) | int64_t(1) << 32;  // the very bits: a NaN's payload does not survive float to double
  } else if (t[0] == '0' && second == 'd') {
    const uint64_t bits = std::strtoull(t.c_str() + 2, nullptr, 16);
    std::memcpy(&value, &bits, 8);
    operand.is_float = true;
  } else if (second != 'x' && t.find_first_of(".eE") != std::string::npos) {
    value = std::strtod(t.c_str(), nullptr);
    operand.is_float = true;
  } else {
    const uint64_t bits = second == 'b' && t[0] == '0' ? std::strtoull(t.c_str() + 2, nullptr, 2)
                                                       : std::strtoull(t.c_str(), nullptr, 0);
    operand.bits = negative ? 0 - bits : bits;
    return operand;
  }
  if (negative) {
    value = -value;
    if (operand.offset) operand.offset ^= int64_t(1) << 31;
  }
  std::memcpy(&operand.bits, &value, 8);
  return operand;
}

}  // namespace gg::emu
