// SPDX-License-Identifier: MIT
//
// Numbers of a PTX text, and what is computed of them when it is read. PTX ISA:
// "Constants", "Constant Expressions".

#include <cctype>
#include <cstdlib>
#include <cstring>

#include "common/emu/core/text/parser.h"

namespace gg::emu {
namespace {

// A binary operator and how tightly it binds. Longer ones come before those that they begin with.
struct Operator {
  const char* text;
  int binds;
};
constexpr Operator kOperators[] = {{"||", 1}, {"&&", 2}, {"<<", 8}, {">>", 8}, {"==", 6}, {"!=", 6},
                                   {"<=", 7}, {">=", 7}, {"<", 7},  {">", 7},  {"|", 3},  {"^", 4},
                                   {"&", 5},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}};

Constant number_of(const Token& token) {
  const std::string& t = token.text;
  const char second = t.size() > 1 ? char(std::tolower(t[1])) : ' ';
  Constant c;
  if (t[0] == '0' && second == 'f') {
    const uint32_t bits = uint32_t(std::strtoul(t.c_str() + 2, nullptr, 16));
    float narrow;
    std::memcpy(&narrow, &bits, 4);
    c.real = narrow;
    c.is_real = c.is_float = true;
    c.bits = bits;  // the very bits: a NaN's payload does not survive float to double
  } else if (t[0] == '0' && second == 'd') {
    const uint64_t bits = std::strtoull(t.c_str() + 2, nullptr, 16);
    std::memcpy(&c.real, &bits, 8);
    c.is_real = true;
  } else if (second != 'x' && t.find_first_of(".eE") != std::string::npos) {
    c.real = std::strtod(t.c_str(), nullptr);
    c.is_real = true;
  } else {
    c.bits = second == 'b' && t[0] == '0' ? std::strtoull(t.c_str() + 2, nullptr, 2)
                                          : std::strtoull(t.c_str(), nullptr, 0);
    c.is_unsigned = std::toupper(t.back()) == 'U' || int64_t(c.bits) < 0;
  }
  return c;
}

Constant whole(uint64_t bits, bool is_unsigned = false) {
  Constant c;
  c.bits = bits;
  c.is_unsigned = is_unsigned;
  return c;
}
Constant real(double value) {
  Constant c;
  c.real = value;
  c.is_real = true;
  return c;
}

Constant of_reals(const std::string& op, double a, double b, int line) {
  if (op == "+") return real(a + b);
  if (op == "-") return real(a - b);
  if (op == "*") return real(a * b);
  if (op == "/") return real(a / b);
  if (op == "==") return whole(a == b);
  if (op == "!=") return whole(a != b);
  if (op == "<") return whole(a < b);
  if (op == "<=") return whole(a <= b);
  if (op == ">") return whole(a > b);
  if (op == ">=") return whole(a >= b);
  throw SyntaxError{line, "'" + op + "' between numbers with a fraction"};
}

// As in C, between two numbers of 64 bits: unsigned if one of them is.
Constant of_whole(const std::string& op, const Constant& a, const Constant& b, int line) {
  const bool u = a.is_unsigned || b.is_unsigned;
  const uint64_t x = a.bits, y = b.bits;
  const int64_t sx = int64_t(x), sy = int64_t(y);
  const auto less = [u](uint64_t l, uint64_t r) { return u ? l < r : int64_t(l) < int64_t(r); };
  if (op == "+") return whole(x + y, u);
  if (op == "-") return whole(x - y, u);
  if (op == "*") return whole(x * y, u);
  if (op == "/") {
    if (y == 0 || (!u && sx == INT64_MIN && sy == -1))
      throw SyntaxError{line, "a division by " + std::to_string(sy)};
    return whole(u ? x / y : uint64_t(sx / sy), u);
  }
  if (op == "<<") return whole(y < 64 ? x << y : 0, a.is_unsigned);
  if (op == ">>")
    return whole(a.is_unsigned ? (y < 64 ? x >> y : 0) : uint64_t(sx >> (y < 64 ? y : 63)), a.is_unsigned);
  if (op == "<") return whole(less(x, y));
  if (op == ">") return whole(less(y, x));
  if (op == "<=") return whole(!less(y, x));
  if (op == ">=") return whole(!less(x, y));
  if (op == "==") return whole(x == y);
  if (op == "!=") return whole(x != y);
  if (op == "&") return whole(x & y, u);
  if (op == "^") return whole(x ^ y, u);
  if (op == "|") return whole(x | y, u);
  if (op == "&&") return whole(x && y);
  return whole(x || y);
}

}  // namespace

bool Parser::accept_operator(const char* text) {
  const size_t size = std::strlen(text);
  for (size_t i = 0; i < size; ++i) {
    if (ahead(i).kind != Token::Kind::punct || ahead(i).text[0] != text[i]) return false;
    if (i > 0 && ahead(i).begin != ahead(i - 1).end) return false;
  }
  at_ += size;
  return true;
}

Constant Parser::primary(size_t depth) {
  if (depth > kDeepest) fail("a constant expression is nested too deep");
  if (accept("-")) {
    Constant c = primary(depth + 1);
    if (c.is_float) c.bits ^= uint64_t(1) << 31;
    if (!c.is_float) c.bits = 0 - c.bits;
    c.real = -c.real;
    return c;
  }
  if (accept("+")) return primary(depth + 1);
  if (accept("!")) {
    const Constant c = primary(depth + 1);
    return whole(c.is_real ? c.real == 0 : c.bits == 0);
  }
  if (accept("~")) {
    const Constant c = primary(depth + 1);
    if (c.is_real) fail("'~' of a number with a fraction");
    return whole(~c.bits, c.is_unsigned);
  }
  if (is("(") && (ahead(1).text == ".s64" || ahead(1).text == ".u64") && ahead(2).text == ")") {
    const bool to_unsigned = ahead(1).text == ".u64";
    at_ += 3;
    const Constant c = primary(depth + 1);
    return whole(c.is_real ? uint64_t(int64_t(c.real)) : c.bits, to_unsigned);
  }
  if (accept("(")) {
    const Constant c = constant(depth + 1);
    expect(")");
    return c;
  }
  if (accept("WARP_SZ")) return whole(32);
  const Token token = take();
  if (token.kind != Token::Kind::number)
    throw SyntaxError{token.line, "a number is wanted where '" + token.text + "' stands"};
  return number_of(token);
}

Constant Parser::binary(int least, size_t depth) {
  Constant left = primary(depth);
  for (;;) {
    const Operator* found = nullptr;
    const size_t before = at_;
    for (const Operator& op : kOperators) {
      if (accept_operator(op.text)) {
        found = &op;
        break;
      }
    }
    if (!found || found->binds < least) {
      at_ = before;
      return left;
    }
    const int line = now().line;
    const Constant right = binary(found->binds + 1, depth + 1);
    const auto real_of = [](const Constant& c) {
      return c.is_real ? c.real : c.is_unsigned ? double(c.bits) : double(int64_t(c.bits));
    };
    left = left.is_real || right.is_real ? of_reals(found->text, real_of(left), real_of(right), line)
                                         : of_whole(found->text, left, right, line);
  }
}

Constant Parser::constant(size_t depth) {
  if (depth > kDeepest) fail("a constant expression is nested too deep");
  const Constant condition = binary(1, depth);
  if (!accept("?")) return condition;
  const Constant yes = constant(depth + 1);
  expect(":");
  const Constant no = constant(depth + 1);
  return (condition.is_real ? condition.real != 0 : condition.bits != 0) ? yes : no;
}

int64_t Parser::integer() {
  const Token token = now();
  const Constant c = constant();
  if (c.is_real) throw SyntaxError{token.line, "a whole number is wanted where '" + token.text + "' stands"};
  return int64_t(c.bits);
}

int64_t Parser::integer(int64_t least, int64_t most) {
  const int line = now().line;
  return in_range(integer(), least, most, line);
}

int64_t Parser::in_range(int64_t value, int64_t least, int64_t most, int line) {
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
  const Constant c = constant();
  Operand operand;
  operand.kind = Operand::Kind::immediate;
  operand.is_float = c.is_real;
  operand.bits = c.bits;
  if (c.is_real) std::memcpy(&operand.bits, &c.real, 8);
  if (c.is_float) operand.offset = int64_t(c.bits & 0xFFFFFFFF) | int64_t(1) << 32;
  return operand;
}

}  // namespace gg::emu
