// SPDX-License-Identifier: MIT
//
// PTX text to tokens. PTX ISA: "Lexical elements".

#include "common/emu/core/text/lex.h"

#include <algorithm>
#include <cctype>

namespace gg::emu {
namespace {

bool word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

// Behind the `}` that closes the `{` at i; 0 if none does.
size_t behind_block(const std::string& text, size_t i) {
  const size_t size = text.size();
  for (int depth = 0; i < size; ++i) {
    const char c = text[i];
    if (c == '{') {
      ++depth;
    } else if (c == '}') {
      if (--depth == 0) return i + 1;
    } else if (c == '/' && text[i + 1] == '/') {
      i = std::min(text.find('\n', i), size);
    } else if (c == '/' && text[i + 1] == '*') {
      i = std::min(text.find("*/", i + 2), size) + 1;
    } else if (c == '"') {
      for (++i; i < size && text[i] != '"'; ++i) i += text[i] == '\\';
    }
  }
  return 0;
}
// # 12 "file", #line 12 "file": what a preprocessor leaves behind.
bool is_line_marker(const std::string& text, size_t i) {
  const size_t word = text.find_first_not_of(" \t", i + 1);
  return word != std::string::npos &&
         (std::isdigit(static_cast<unsigned char>(text[word])) || text.compare(word, 4, "line") == 0);
}
}  // namespace

std::vector<Token> lex(const std::string& text, int line, Bodies bodies) {
  std::vector<Token> tokens;
  bool entry = false;  // from .entry to its body
  size_t i = 0;
  const size_t size = text.size();
  while (i < size) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(c)) || c == '\0') {
      ++i;
    } else if (text.compare(i, 2, "//") == 0) {
      while (i < size && text[i] != '\n') ++i;
    } else if (text.compare(i, 2, "/*") == 0) {
      const size_t stop = text.find("*/", i + 2);
      if (stop == std::string::npos) throw SyntaxError{line, "a comment is not closed"};
      for (; i < stop + 2; ++i) line += text[i] == '\n';
    } else if (c == '"') {
      size_t j = i + 1;
      while (j < size && text[j] != '"') {
        if (text[j] == '\\') ++j;
        if (j < size && text[j] == '\n') ++line;
        ++j;
      }
      if (j >= size) throw SyntaxError{line, "a string is not closed"};
      tokens.push_back({Token::Kind::string, text.substr(i + 1, j - i - 1), line, i, j + 1});
      i = j + 1;
    } else if (c == '#' && (i == 0 || text[i - 1] == '\n') && is_line_marker(text, i)) {
      while (i < size && text[i] != '\n') ++i;
    } else if (std::isdigit(static_cast<unsigned char>(c)) ||
               (c == '.' && i + 1 < size && std::isdigit(static_cast<unsigned char>(text[i + 1])))) {
      size_t j = i;
      while (j < size && (std::isalnum(static_cast<unsigned char>(text[j])) || text[j] == '.' ||
                          ((text[j] == '+' || text[j] == '-') && (text[j - 1] == 'e' || text[j - 1] == 'E') &&
                           text.compare(i, 2, "0x") != 0 && text[i + 1] != 'f' && text[i + 1] != 'F' &&
                           text[i + 1] != 'd' && text[i + 1] != 'D'))) {
        ++j;
      }
      tokens.push_back({Token::Kind::number, text.substr(i, j - i), line, i, j});
      i = j;
    } else if (word_char(c)) {
      size_t j = i;
      // "::" belongs to the word: .shared::cluster, mbarrier::complete_tx::bytes
      while (j < size && (word_char(text[j]) ||
                          (text.compare(j, 2, "::") == 0 && j + 2 < size && word_char(text[j + 2])))) {
        j += text[j] == ':' ? 2 : 1;
      }
      tokens.push_back({Token::Kind::word, text.substr(i, j - i), line, i, j});
      entry = entry || tokens.back().text == ".entry";
      i = j;
    } else if (const size_t stop = c == '{' && entry && bodies == Bodies::later ? behind_block(text, i) : 0) {
      tokens.push_back({Token::Kind::body, "{", line, i, stop});
      line += int(std::count(&text[i], &text[stop], '\n'));
      entry = false;
      i = stop;
    } else {
      tokens.push_back({Token::Kind::punct, std::string(1, c), line, i, i + 1});
      entry = entry && c != ';';
      ++i;
    }
  }
  tokens.push_back({Token::Kind::end, "", line, size, size});
  return tokens;
}
}  // namespace gg::emu
