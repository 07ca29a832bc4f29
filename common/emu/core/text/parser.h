// SPDX-License-Identifier: MIT
//
// The parser of PTX. One pass; labels and names of a scope are resolved when the scope ends.
// PTX ISA: "Statements", "Directives".

#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/emu/core/text/lex.h"

namespace gg::emu {

// Limits on what a text may ask for. More is a mistake or an attack, and would be found out only
// when memory runs out.
constexpr int64_t kMostBytes = int64_t(1) << 40;       // of .global and .const variables, offsets
constexpr int64_t kMostBlockBytes = int64_t(1) << 24;  // of .shared and .param variables
constexpr int64_t kMostLocalBytes = int64_t(1) << 19;  // what a thread can have
constexpr int64_t kMostAlign = int64_t(1) << 20;
constexpr size_t kMostUnusedRegisters = size_t(1) << 16;  // those that are used stand in the text
constexpr size_t kMostTargets = 65535, kMostTargetsInAll = size_t(1) << 18;  // of brx
constexpr size_t kDeepest = 64;  // scopes in scopes, operands in operands

constexpr const char* kLaneNames[2][4] = {{".x", ".y", ".z", ".w"}, {".r", ".g", ".b", ".a"}};

// The value of a constant expression: a whole number of 64 bits, or a real one.
struct Constant {
  uint64_t bits = 0;
  double real = 0;
  bool is_unsigned = false, is_real = false;
  bool is_float = false;  // written as 0f..: `bits` has its 32 bits
};

class Parser {
 public:
  Parser(Module& module, const std::string& text, int line, Bodies bodies)
      : text_(text), tokens_(lex(text, line, bodies)), module_(module) {}

  // All of a text.
  void module();
  // The body of a kernel whose text is the whole text here.
  void unread_body(Function& function);

 private:
  struct Scope {
    std::map<std::string, int> registers;  // name -> index
    // The name of a .v2 or .v4 -> lanes; they are registers name.x, ..
    std::map<std::string, int> vectors;
    std::map<std::string, size_t> variables;  // name -> index in locals
    std::map<std::string, int64_t> labels;
    size_t first_statement = 0;
  };

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
  int small_integer() { return int(integer(0, INT32_MAX)); }
  void skip_to(const char* text) {
    while (!is(text) && now().kind != Token::Kind::end) ++at_;
    expect(text);
  }
  void skip_line() {
    const int line = now().line;
    while (now().line == line && now().kind != Token::Kind::end) ++at_;
  }
  void triple(int (&out)[3]) {
    for (int i = 0; i < 3; ++i) out[i] = i == 0 || accept(",") ? small_integer() : 1;
  }

  // parse.cpp: what stands outside functions.
  void top_level();
  void file_directive();
  // [.visible|.extern|.weak|.common] .entry|.func|variable
  void declaration();

  // parse_numbers.cpp. Each throws SyntaxError where no number stands, or one that is too large. A
  // number may be an expression: (1 << 4) | 3, a < b ? 1 : 2, WARP_SZ * 2, (.u64) -1.
  Constant constant(size_t depth = 0);
  // Operators that bind as tightly as `least` at the loosest.
  Constant binary(int least, size_t depth);
  Constant primary(size_t depth);
  bool accept_operator(const char* text);  // whose signs stand together
  int64_t integer();
  int64_t integer(int64_t least, int64_t most);
  static int64_t in_range(int64_t value, int64_t least, int64_t most, int line);
  // After `.align`.
  int64_t alignment();
  // +8-4.. behind the register or name of an address.
  int64_t offset();
  // A number: 12, -3, 0x1F, 0f3F800000, 0d3FF0000000000000, 1.5
  Operand immediate();

  // parse_variables.cpp
  // The bytes that all variables of a space may take together.
  static int64_t most_bytes(Space space);
  void require_bytes(int64_t bytes, Space space) const;
  // [n][m].. behind the name of a variable: bytes of all its elements. `open`: one is [].
  int64_t array_bytes(int64_t element, Space space, bool* open);
  // Behind the variables of its space. `ends`: where those of the function or module end.
  void place(Variable& variable, std::map<Space, int64_t>& ends) const;
  static Space space_of(const std::string& word);
  // .space [.align n] [.v2|.v4] .type name[n][..] [= init] {, name...} ;
  std::vector<Variable> variables(bool external);
  void initialise(Variable& variable, int64_t element);
  // 0xFF00( of an address: which byte of it is meant; -1 where no mask stands.
  int mask_of_byte();

  // parse_function.cpp: from .entry or .func to the end of the body.
  void function(bool entry);
  void parameter(std::vector<Variable>& list);
  // After `{`, to its `}`.
  void block();
  void resolve_labels();
  static void resolve_label(Operand& operand, const Scope& scope);
  void statement();
  // Behind `name:`, a .callprototype or .calltargets.
  void prototype(const std::string& name);
  void registers();
  // .loc file line column [, function_name symbol, inlined_at file line column]
  void location();
  int call_at(const Location& call);

  // parse_calls.cpp. A parameter, or a place for one of a call, and what is moved there or back.
  struct Passed {
    Variable variable;
    Operand operand;
  };
  static void in_param_space(std::vector<Variable>& list);
  // The parameters in registers get these, and are in .param space from then on.
  void take_registers(std::vector<Variable>& list, std::vector<Passed>& passed);
  void move_param(bool load, const Passed& passed, const Statement& of);
  void load_parameters(const std::vector<Passed>& passed);
  void store_results(const Statement& ret);
  Variable room_for(const std::string& name, Variable like);
  std::vector<Passed> made_room(Operand& list, const std::vector<Variable>* theirs, const std::string& name);
  void call(Statement s);

  // parse_instruction.cpp. find_register: -1 if there is none of the name.
  void instruction();
  int register_named(const Token& token) const;
  int find_register(const std::string& name) const;
  Operand operand(size_t depth = 0);
  Operand simple_operand(size_t depth);
  Operand list(const char* end, size_t depth);
  Operand named(const Token& token);
  // The elements of a vector register; null if there is none of the name.
  std::shared_ptr<Operand> vector_named(const std::string& name) const;
  // A variable of the function or the module; null if there is none of the name.
  const Variable* variable_named(const std::string& name) const;
  // After `[`: behind the name of an array, in elements.
  void index(Operand& operand);
  // After `[`: reg, reg+imm, symbol, symbol+imm, imm; or a tensor map with coordinates:
  // [map, {c0, c1}].
  Operand address(size_t depth);

  const std::string& text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  Module& module_;
  Function* fn_ = nullptr;
  std::vector<Scope> scopes_;
  std::map<std::string, std::vector<std::string>> targets_;
  std::map<std::string, std::shared_ptr<const Prototype>> prototypes_;
  std::map<Space, int64_t> module_ends_, ends_;
  std::vector<Passed> results_;  // of the function, in registers
  bool pointer_ = false, in_call_ = false;
  size_t registers_ = 0, targets_used_ = 0;
};

}  // namespace gg::emu
