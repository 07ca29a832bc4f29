// SPDX-License-Identifier: MIT
//
// PTX text to a Module. PTX ISA 9.0: "Lexical elements", "Statements", "Directives". One pass; labels and
// names of a scope are resolved when the scope ends.
// A kernel's body may be left as text, and parsed when somebody asks for it.

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <set>
#include <stdexcept>

#include "common/emu/text/ptx.h"

namespace gg::emu {

bool Statement::has(const char* modifier) const {
  for (const std::string& each : modifiers) {
    if (each == modifier) return true;
  }
  return false;
}

const Function* Module::find(const std::string& name) const {
  for (const auto& function : functions) {
    if (function->name == name && !function->declared_only) return function.get();
  }
  return nullptr;
}

// Never destroyed: gg-emu --report asks for types while the program ends.
static const std::map<std::string, TypeInfo>& types() {
  static const auto& table = *new const std::map<std::string, TypeInfo>([] {
    std::map<std::string, TypeInfo> t;
    const auto add = [&](const char* name, char kind, int bits) { t[name] = {kind, bits, name}; };
    add("pred", 'p', 0);
    for (int bits : {8, 16, 32, 64}) {
      add(("b" + std::to_string(bits)).c_str(), 'b', bits);
      add(("u" + std::to_string(bits)).c_str(), 'u', bits);
      add(("s" + std::to_string(bits)).c_str(), 's', bits);
    }
    add("b128", 'b', 128);
    add("f16", 'f', 16);
    add("f32", 'f', 32);
    add("f64", 'f', 64);
    add("f16x2", 'x', 32);
    add("bf16", 'x', 16);
    add("bf16x2", 'x', 32);
    add("tf32", 'x', 32);
    add("f32x2", 'x', 64);
    for (const char* name : {"e4m3", "e5m2", "ue8m0"}) add(name, 'x', 8);
    for (const char* name : {"e4m3x2", "e5m2x2", "ue8m0x2"}) add(name, 'x', 16);
    for (const char* name : {"e4m3x4", "e5m2x4"}) add(name, 'x', 32);
    for (const char* name : {"u16x2", "s16x2"}) add(name, 'x', 32);
    add("u8x4", 'x', 32);
    add("s8x4", 'x', 32);
    return t;
  }());
  return table;
}
bool is_type(const std::string& name) { return types().count(name) > 0; }
TypeInfo type_info(const std::string& name) {
  const auto found = types().find(name);
  if (found == types().end()) throw std::invalid_argument(name + " is no PTX type");
  return found->second;
}

namespace {

// What a text may ask for. More is a mistake or an attack, and would be found out only when memory runs out.
constexpr int64_t kMostBytes = int64_t(1) << 40;       // of .global and .const variables, of offsets
constexpr int64_t kMostBlockBytes = int64_t(1) << 24;  // of .shared and .param variables
constexpr int64_t kMostLocalBytes = int64_t(1) << 19;  // what a thread can have
constexpr int64_t kMostAlign = int64_t(1) << 20;
constexpr size_t kMostUnusedRegisters = size_t(1) << 16;  // those that are used stand in the text
constexpr size_t kMostTargets = 65535, kMostTargetsInAll = size_t(1) << 18;  // of brx
constexpr size_t kDeepest = 64;  // scopes in scopes, operands in operands

struct Token {
  enum class Kind : uint8_t { word, number, string, punct, body, end };
  Kind kind = Kind::end;
  std::string text;
  int line = 0;
  size_t begin = 0, end = 0;
};

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
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
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

class Parser {
 public:
  Parser(Module& module, const std::string& text, int line, Bodies bodies)
      : text_(text), tokens_(lex(text, line, bodies)), module_(module) {}

  void module() {
    while (now().kind != Token::Kind::end) top_level();
  }

  void unread_body(Function& function) {
    Function whole = function;  // what an error leaves half done is forgotten
    fn_ = &whole;
    scopes_.push_back({});
    expect("{");
    block();
    if (now().kind != Token::Kind::end) fail("'" + now().text + "' stands behind the function's '}'");
    whole.unread.clear();
    function = std::move(whole);
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead(size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  Token take() {
    const Token token = now();
    if (token.kind != Token::Kind::end) ++at_;
    return token;
  }
  bool is(const char* text) const {
    return now().text == text && now().kind != Token::Kind::string && now().kind != Token::Kind::end;
  }
  bool accept(const char* text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  void expect(const char* text) {
    if (!accept(text)) fail(std::string("'") + text + "' is wanted where '" + now().text + "' stands");
  }
  [[noreturn]] void fail(const std::string& what) const { throw SyntaxError{now().line, what}; }

  int64_t integer() {
    bool negative = false;
    while (is("-") || is("+")) negative ^= take().text == "-";
    const Token token = take();
    if (token.kind != Token::Kind::number)
      throw SyntaxError{token.line, "a number is wanted where '" + token.text + "' stands"};
    const uint64_t value = std::strtoull(token.text.c_str(), nullptr, 0);
    return int64_t(negative ? 0 - value : value);
  }
  int64_t integer(int64_t least, int64_t most) {
    const int line = now().line;
    const int64_t value = integer();
    if (value < least || value > most) {
      throw SyntaxError{line, "a number from " + std::to_string(least) + " to " + std::to_string(most) +
                                  " is wanted where " + std::to_string(value) + " stands"};
    }
    return value;
  }
  int small_integer() { return int(integer(0, INT32_MAX)); }
  // After `.align`.
  int64_t alignment() {
    const int64_t bytes = integer(1, kMostAlign);
    if (bytes & (bytes - 1)) fail("an alignment of " + std::to_string(bytes) + " bytes is no power of two");
    return bytes;
  }
  // +8-4.. behind the register or name of an address.
  int64_t offset() {
    int64_t sum = 0;
    while (is("+") || is("-")) {
      sum += integer(-kMostBytes, kMostBytes);
      if (std::abs(sum) > kMostBytes) fail("an address with an offset of " + std::to_string(sum) + " bytes");
    }
    return sum;
  }

  void skip_to(const char* text) {
    while (!is(text) && now().kind != Token::Kind::end) ++at_;
    expect(text);
  }
  void skip_line() {
    const int line = now().line;
    while (now().line == line && now().kind != Token::Kind::end) ++at_;
  }

  void top_level() {
    if (accept(".version")) {
      module_.version = take().text;
    } else if (accept(".target")) {
      module_.target = take().text;
      while (accept(",")) take();
    } else if (accept(".address_size")) {
      if (integer() != 64) fail("only .address_size 64 is supported");
    } else if (is(".file")) {
      file_directive();
    } else if (is(".section")) {
      take();
      skip_to("{");
      int depth = 1;  // debug sections: braces do not nest, but be safe
      while (depth > 0 && now().kind != Token::Kind::end) {
        const std::string text = take().text;
        depth += text == "{" ? 1 : text == "}" ? -1 : 0;
      }
    } else if (is(".pragma") || is(".alias")) {
      skip_to(";");
    } else if (accept(";")) {
    } else if (is("@@DWARF") || is("@")) {
      skip_line();
    } else {
      declaration();
    }
  }

  void file_directive() {
    take();
    const int index = small_integer();
    const Token name = take();
    module_.files[index] = name.text;
    while (accept(",")) take();
  }

  // [.visible|.extern|.weak|.common] .entry|.func|variable
  void declaration() {
    bool external = false;
    for (;;) {
      if (accept(".visible") || accept(".weak") || accept(".common")) continue;
      if (accept(".extern")) {
        external = true;
        continue;
      }
      break;
    }
    if (is(".entry") || is(".func")) {
      function(take().text == ".entry");
    } else if (is(".global") || is(".shared") || is(".const") || is(".tex")) {
      for (Variable& variable : variables(external)) {
        place(variable, module_ends_);
        module_.variables.push_back(std::move(variable));
      }
    } else {
      fail("'" + now().text + "' is no declaration");
    }
  }

  static int64_t most_bytes(Space space) {
    return space == Space::global || space == Space::constant ? kMostBytes
           : space == Space::local                            ? kMostLocalBytes
                                                              : kMostBlockBytes;
  }
  void require_bytes(int64_t bytes, Space space) const {
    if (bytes > most_bytes(space)) {
      fail("variables of " + std::to_string(bytes) + " bytes, at most " + std::to_string(most_bytes(space)) +
           " fit in their space");
    }
  }
  // [n][m].. behind the name of a variable: bytes of all its elements. `open`: one is [].
  int64_t array_bytes(int64_t element, Space space, bool* open) {
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

  // Behind the variables of its space. `ends`: where those of the function or module end.
  void place(Variable& variable, std::map<Space, int64_t>& ends) const {
    int64_t& end = ends[variable.space];
    variable.offset = (end + variable.align - 1) / variable.align * variable.align;
    require_bytes(variable.offset + variable.bytes, variable.space);
    if (!variable.external) end = variable.offset + variable.bytes;
  }

  static Space space_of(const std::string& word) {
    if (word == ".global") return Space::global;
    if (word == ".shared") return Space::shared;
    if (word == ".const") return Space::constant;
    if (word == ".local") return Space::local;
    if (word == ".param") return Space::param;
    if (word == ".reg") return Space::reg;
    return Space::none;
  }

  // .space [.align n] [.v2|.v4] .type name[n][..] [= init] {, name...} ;
  std::vector<Variable> variables(bool external) {
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

  void initialise(Variable& variable, int64_t element) {
    const auto put = [&](uint64_t bits) {
      for (int64_t i = 0; i < element; ++i) variable.init.push_back(uint8_t(i < 8 ? bits >> (8 * i) : 0));
    };
    const auto value = [&] {
      if (now().kind == Token::Kind::word) {  // an address: name, name+4, generic(name)+4
        Variable::Address address;
        address.at = int64_t(variable.init.size());
        const bool wrapped = is("generic") && ahead(1).text == "(";
        if (wrapped) at_ += 2;
        address.symbol = take().text;
        if (wrapped) expect(")");
        address.add = offset();
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

  // A number: 12, -3, 0x1F, 0f3F800000, 0d3FF0000000000000, 1.5
  Operand immediate() {
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
      operand.offset = int64_t(bits) |
                       int64_t(1) << 32;  // the very bits: a NaN's payload does not survive float to double
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

  // ---- functions ----

  struct Scope {
    std::map<std::string, int> registers;     // name -> index
    std::map<std::string, size_t> variables;  // name -> index in locals
    std::map<std::string, int64_t> labels;
    size_t first_statement = 0;
  };

  void function(bool entry) {
    auto made = std::make_unique<Function>();
    fn_ = made.get();
    fn_->entry = entry;
    ends_.clear();
    scopes_.clear();
    scopes_.push_back({});
    if (accept("(")) {  // of a .func
      while (!accept(")")) {
        parameter(fn_->returns);
        accept(",");
      }
      fn_->param_bytes = 0;
    }
    fn_->name = take().text;
    if (accept("(")) {
      while (!accept(")")) {
        parameter(fn_->params);
        accept(",");
      }
    }
    for (;;) {
      if (accept(".maxntid")) {
        triple(fn_->max_threads);
      } else if (accept(".reqntid")) {
        triple(fn_->required_threads);
      } else if (accept(".reqnctapercluster")) {
        triple(fn_->required_cluster);
      } else if (accept(".explicitcluster")) {
        fn_->explicit_cluster = true;
      } else if (accept(".maxclusterrank")) {
        fn_->max_cluster = small_integer();
      } else if (accept(".blocksareclusters")) {
        fn_->blocks_are_clusters = true;
      } else if (accept(".minnctapersm") || accept(".maxnreg") || accept(".maxnctapersm")) {
        integer();
      } else if (accept(".noreturn")) {
      } else if (is(".pragma") || is(".abi_preserve") || is(".abi_preserve_control")) {
        skip_to(";");
      } else {
        break;
      }
    }
    if (accept(";")) {
      fn_->declared_only = true;
    } else if (now().kind == Token::Kind::body) {
      const Token body = take();
      fn_->unread = text_.substr(body.begin, body.end - body.begin);
      fn_->unread_line = body.line;
    } else {
      expect("{");
      block();
    }
    module_.functions.push_back(std::move(made));
  }

  void triple(int (&out)[3]) {
    for (int i = 0; i < 3; ++i) out[i] = i == 0 || accept(",") ? small_integer() : 1;
  }

  void parameter(std::vector<Variable>& list) {
    Variable variable;
    variable.space = accept(".reg") ? Space::reg : Space::param;
    if (variable.space == Space::param) expect(".param");
    int64_t align = 0;
    for (;;) {
      if (accept(".align")) {
        const int64_t value = alignment();
        if (!pointer_) align = value;
        pointer_ = false;
      } else if (accept(".ptr")) {
        pointer_ = true;  // the .align that follows is the pointee's
      } else if (is(".global") || is(".shared") || is(".local") || is(".const")) {
        take();
      } else if (now().kind == Token::Kind::word && now().text[0] == '.' && is_type(now().text.substr(1))) {
        variable.type = type_info(take().text.substr(1));
      } else {
        break;
      }
    }
    pointer_ = false;
    variable.name = take().text;
    const int64_t element = std::max(1, variable.type.bits / 8);
    bool open = false;
    variable.bytes = array_bytes(element, variable.space, &open);
    variable.align = align ? align : element;
    variable.offset = (fn_->param_bytes + variable.align - 1) / variable.align * variable.align;
    fn_->param_bytes = variable.offset + variable.bytes;
    require_bytes(fn_->param_bytes, variable.space);
    list.push_back(variable);
  }

  // After `{`, to its `}`.
  void block() {
    scopes_.back().first_statement = fn_->body.size();
    while (!accept("}")) {
      if (now().kind == Token::Kind::end) fail("the function ends before its '}'");
      if (accept("{")) {
        if (scopes_.size() == kDeepest) fail("scopes are nested too deep");
        scopes_.push_back({});
        block();
      } else {
        statement();
      }
    }
    resolve_labels();
    scopes_.pop_back();
    if (scopes_.empty()) {
      for (const Statement& s : fn_->body) {
        for (const Operand& o : s.operands) {
          if (o.kind == Operand::Kind::label && o.offset < 0) throw SyntaxError{s.line, "no label " + o.name};
        }
      }
    }
  }

  void resolve_labels() {
    const Scope& scope = scopes_.back();
    for (size_t i = scope.first_statement; i < fn_->body.size(); ++i) {
      for (Operand& operand : fn_->body[i].operands) resolve_label(operand, scope);
    }
  }
  static void resolve_label(Operand& operand, const Scope& scope) {
    for (Operand& element : operand.elements) resolve_label(element, scope);
    if (operand.kind != Operand::Kind::symbol &&
        !(operand.kind == Operand::Kind::label && operand.offset < 0))
      return;
    const auto found = scope.labels.find(operand.name);
    if (found == scope.labels.end()) return;
    operand.kind = Operand::Kind::label;
    operand.offset = found->second;
  }

  void statement() {
    if (accept(";")) return;
    if (is(".reg")) return registers();
    if (is(".local") || is(".shared") || is(".param")) {
      for (Variable& variable : variables(false)) {
        place(variable, ends_);
        if (variable.space == Space::local)
          fn_->local_bytes = std::max(fn_->local_bytes, variable.offset + variable.bytes);
        scopes_.back().variables[variable.name] = fn_->locals.size();
        fn_->locals.push_back(std::move(variable));
      }
      return;
    }
    if (is(".loc")) return location();
    if (is(".pragma") || is(".callprototype")) return skip_to(";");
    if (is(".file")) return file_directive();
    if (now().kind == Token::Kind::word && ahead(1).text == ":" && ahead(1).kind == Token::Kind::punct) {
      const std::string name = take().text;
      expect(":");
      if (is(".branchtargets")) {
        take();
        targets_[name].clear();
        do targets_[name].push_back(take().text);
        while (accept(","));
        if (targets_[name].size() > kMostTargets) fail("too many branch targets");
        expect(";");
        return;
      }
      if (is(".callprototype") || is(".calltargets")) return skip_to(";");
      scopes_.back().labels[name] = int64_t(fn_->body.size());
      return;
    }
    instruction();
  }

  void registers() {
    take();
    int lanes = 1;
    if (accept(".v2")) lanes = 2;
    if (accept(".v4")) lanes = 4;
    const Token word = take();
    if (word.text.size() < 2 || !is_type(word.text.substr(1)) || lanes != 1) {
      throw SyntaxError{word.line, "registers of type '" + word.text + "' are not supported"};
    }
    const TypeInfo type = type_info(word.text.substr(1));
    do {
      const std::string name = take().text;
      int64_t count = -1;
      if (accept("<")) {
        count = integer(0, INT32_MAX);
        expect(">");
      }
      registers_ += size_t(count < 0 ? 1 : count);
      if (registers_ > kMostUnusedRegisters + text_.size()) {
        fail(std::to_string(registers_) + " registers are more than a text of this length can use");
      }
      for (int64_t i = 0; i < (count < 0 ? 1 : count); ++i) {
        const std::string full = count < 0 ? name : name + std::to_string(i);
        scopes_.back().registers[full] = int(fn_->registers.size());
        fn_->registers.push_back({full, type});
      }
    } while (accept(","));
    expect(";");
  }

  // .loc file line column [, function_name symbol, inlined_at file line column]
  void location() {
    const int line = now().line;
    take();
    Location location;
    location.file = small_integer();
    location.line = small_integer();
    const auto more = [&] { return now().line == line && now().kind != Token::Kind::end; };
    while (more() && !is("inlined_at")) ++at_;
    if (more() && accept("inlined_at")) {
      location.caller_file = small_integer();
      location.caller_line = small_integer();
    }
    while (more()) ++at_;
    accept(";");
    fn_->locations.push_back(location);
  }

  void instruction() {
    Statement s;
    s.line = now().line;
    s.loc = int(fn_->locations.size()) - 1;
    const size_t begin = now().begin;
    if (accept("@")) {
      s.guard_negated = accept("!");
      s.guard = register_named(take());
    }
    const Token word = take();
    if (word.kind != Token::Kind::word)
      throw SyntaxError{word.line, "an instruction is wanted where '" + word.text + "' stands"};
    size_t from = 0;
    for (bool first = true; from <= word.text.size(); first = false) {
      const size_t dot = std::min(word.text.find('.', from), word.text.size());
      (first ? s.opcode : s.modifiers.emplace_back()) = word.text.substr(from, dot - from);
      from = dot + 1;
    }
    while (!is(";")) {
      if (now().kind == Token::Kind::end || is("}")) fail("the instruction does not end in ';'");
      s.operands.push_back(operand());
      if (!accept(",") && !is(";") && s.opcode != "call")
        fail("',' or ';' is wanted where '" + now().text + "' stands");
    }
    s.text = text_.substr(begin, now().begin - begin);
    expect(";");
    if (s.opcode == "brx") {
      for (Operand& o : s.operands) {
        const auto list = targets_.find(o.name);
        if (o.kind != Operand::Kind::symbol || list == targets_.end()) continue;
        o.kind = Operand::Kind::vector;
        targets_used_ += list->second.size();
        if (targets_used_ > kMostTargetsInAll) fail("too many branch targets");
        for (const std::string& target : list->second) {
          Operand label;
          label.kind = Operand::Kind::symbol;
          label.name = target;
          o.elements.push_back(label);
        }
      }
    }
    fn_->body.push_back(std::move(s));
  }

  int register_named(const Token& token) const {
    const int index = find_register(token.text);
    if (index < 0) throw SyntaxError{token.line, "no register " + token.text};
    return index;
  }
  int find_register(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->registers.find(name);
      if (found != scope->registers.end()) return found->second;
    }
    return -1;
  }

  Operand operand(size_t depth = 0) {
    Operand first = simple_operand(depth);
    if (accept("|")) first.second = std::make_shared<Operand>(simple_operand(depth));
    return first;
  }

  Operand simple_operand(size_t depth) {
    if (depth > kDeepest) fail("operands are nested too deep");
    Operand o;
    if (accept("!")) {
      o = simple_operand(depth + 1);
      o.negated = !o.negated;
      return o;
    }
    if (accept("[")) return address(depth);
    if (accept("{")) return list("}", depth);
    if (accept("(")) return list(")", depth);  // of a call
    if (now().kind == Token::Kind::number || is("-") || is("+")) return immediate();
    return named(take());
  }

  Operand list(const char* end, size_t depth) {
    Operand o;
    o.kind = Operand::Kind::vector;
    while (!accept(end)) {
      o.elements.push_back(operand(depth + 1));
      accept(",");
    }
    return o;
  }

  Operand named(const Token& token) {
    Operand o;
    o.name = token.text;
    if (token.kind != Token::Kind::word)
      throw SyntaxError{token.line, "an operand is wanted where '" + token.text + "' stands"};
    if (token.text == "_") return o;
    o.reg = find_register(token.text);
    if (o.reg >= 0) {
      o.kind = Operand::Kind::reg;
      return o;
    }
    if (token.text[0] == '%') {
      o.kind = Operand::Kind::special;
      const size_t dot = token.text.find('.');
      if (dot != std::string::npos) {
        o.name = token.text.substr(0, dot);
        const std::string component = token.text.substr(dot + 1);
        o.component = component == "x" ? 0 : component == "y" ? 1 : component == "z" ? 2 : -1;
        if (o.component < 0) throw SyntaxError{token.line, token.text + ": the components are x, y and z"};
      }
      return o;
    }
    o.kind = Operand::Kind::symbol;
    o.offset = offset();
    return o;
  }

  // After `[`: reg, reg+imm, symbol, symbol+imm, imm; or a tensor map with coordinates: [map, {c0, c1}].
  Operand address(size_t depth) {
    Operand o;
    if (now().kind == Token::Kind::number || is("-")) {
      o.offset = integer();
    } else {
      const Operand base = named(take());
      if (base.kind == Operand::Kind::reg) o.reg = base.reg;
      if (base.kind == Operand::Kind::symbol) o.name = base.name;
      if (base.kind == Operand::Kind::special) fail("an address may not be a special register");
      o.offset = base.offset + (base.kind == Operand::Kind::reg ? offset() : 0);
    }
    o.kind = Operand::Kind::address;
    while (accept(",")) o.elements.push_back(operand(depth + 1));
    expect("]");
    return o;
  }

  const std::string& text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  Module& module_;
  Function* fn_ = nullptr;
  std::vector<Scope> scopes_;
  std::map<std::string, std::vector<std::string>> targets_;
  std::map<Space, int64_t> module_ends_, ends_;
  bool pointer_ = false;
  size_t registers_ = 0, targets_used_ = 0;
};

}  // namespace

std::unique_ptr<Module> parse_ptx(const std::string& text, Bodies bodies) {
  auto module = std::make_unique<Module>();
  Parser(*module, text, 1, bodies).module();
  return module;
}

void parse_body(Module& module, const std::string& kernel) {
  for (const auto& function : module.functions) {
    if (function->name != kernel || function->unread.empty()) continue;
    Parser(module, function->unread, function->unread_line, Bodies::now).unread_body(*function);
  }
}

}  // namespace gg::emu
