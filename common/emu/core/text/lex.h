// SPDX-License-Identifier: MIT
//
// The words of a PTX text. PTX ISA: "Lexical elements".

#pragma once

#include <string>
#include <vector>

#include "common/emu/core/text/ptx.h"

namespace gg::emu {

struct Token {
  enum class Kind : uint8_t { word, number, string, punct, body, end };
  Kind kind = Kind::end;
  std::string text;
  int line = 0;
  size_t begin = 0, end = 0;  // in the text
};

// The tokens of a text whose first line has number `line`; the last one is of kind `end`. With
// Bodies::later the body of a kernel is one token. Throws SyntaxError where a comment or a string
// is not closed.
std::vector<Token> lex(const std::string& text, int line, Bodies bodies);

}  // namespace gg::emu
