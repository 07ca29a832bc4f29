// SPDX-License-Identifier: MIT
//
// Instructions and their operands. PTX ISA: "Instruction Statements", "Instruction Operands".

#include <algorithm>

#include "common/emu/core/text/parser.h"

namespace gg::emu {

void Parser::instruction() {
  Statement s;
  s.line = now().line;
  s.loc = int(fn_->locations.size()) - 1;
  const size_t begin = now().begin;
  if (accept("@")) {
    s.guard_negated = accept("!");
    s.guard = register_named(take());
  }
  Token word = take();
  if (word.kind != Token::Kind::word)
    throw SyntaxError{word.line, "an instruction is wanted where '" + word.text + "' stands"};
  while (now().kind == Token::Kind::word && now().text[0] == '.') word.text += take().text;
  size_t from = 0;
  for (bool first = true; from <= word.text.size(); first = false) {
    const size_t dot = std::min(word.text.find('.', from), word.text.size());
    (first ? s.opcode : s.modifiers.emplace_back()) = word.text.substr(from, dot - from);
    from = dot + 1;
  }
  in_call_ = s.opcode == "call";
  while (!is(";")) {
    if (now().kind == Token::Kind::end || is("}")) fail("the instruction does not end in ';'");
    s.operands.push_back(operand());
    if (!accept(",") && !is(";") && s.opcode != "call")
      fail("',' or ';' is wanted where '" + now().text + "' stands");
  }
  for (Operand& o : s.operands) {  // a[1]: where it lies for mov, what lies there for others
    if (o.kind == Operand::Kind::symbol && o.component == kIndexed && s.opcode != "mov")
      o.kind = Operand::Kind::address;
  }
  s.text = text_.substr(begin, now().begin - begin);
  expect(";");
  if (s.opcode == "call" && !s.operands.empty()) {
    const auto prototype = prototypes_.find(s.operands.back().name);
    if (prototype != prototypes_.end()) {
      s.prototype = prototype->second;
      s.operands.pop_back();
    }
  }
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
  if (s.opcode == "call") return call(std::move(s));
  if (s.opcode == "ret") store_results(s);
  fn_->body.push_back(std::move(s));
}

int Parser::register_named(const Token& token) const {
  const int index = find_register(token.text);
  if (index < 0) throw SyntaxError{token.line, "no register " + token.text};
  return index;
}

int Parser::find_register(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->registers.find(name);
    if (found != scope->registers.end()) return found->second;
  }
  return -1;
}

Operand Parser::operand(size_t depth) {
  Operand first = simple_operand(depth);
  if (accept("|")) first.second = std::make_shared<Operand>(simple_operand(depth));
  return first;
}

Operand Parser::simple_operand(size_t depth) {
  if (depth > kDeepest) fail("operands are nested too deep");
  Operand o;
  const auto begins_number = [](const Token& t) { return t.kind == Token::Kind::number || t.text == "("; };
  if (begins_number(now()) && !(in_call_ && is("("))) return immediate();
  if (is("-") || is("+") || is("~") || is("WARP_SZ") || (is("!") && begins_number(ahead(1))))
    return immediate();
  if (accept("!")) {
    o = simple_operand(depth + 1);
    o.negated = !o.negated;
    return o;
  }
  if (accept("[")) return address(depth);
  if (accept("{")) return list("}", depth);
  if (accept("(")) return list(")", depth);  // of a call
  return named(take());
}

Operand Parser::list(const char* end, size_t depth) {
  Operand o;
  o.kind = Operand::Kind::vector;
  while (!accept(end)) {
    o.elements.push_back(operand(depth + 1));
    accept(",");
  }
  return o;
}

Operand Parser::named(const Token& token) {
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
  if (const auto vector = vector_named(token.text)) return *vector;
  const size_t part = token.text.rfind('.');
  if (part != std::string::npos && find_register(token.text.substr(0, part)) >= 0) {
    o.kind = Operand::Kind::reg;
    o.reg = find_register(token.text.substr(0, part));
    o.selector = token.text.substr(part + 1);
    return o;
  }
  if (token.text[0] == '%' && !variable_named(token.text)) {
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
  if (accept("[")) index(o);
  o.offset += offset();
  return o;
}

std::shared_ptr<Operand> Parser::vector_named(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->vectors.find(name);
    if (found == scope->vectors.end()) continue;
    auto vector = std::make_shared<Operand>();
    vector->kind = Operand::Kind::vector;
    for (int i = 0; i < found->second; ++i) {
      Operand& element = vector->elements.emplace_back();
      element.kind = Operand::Kind::reg;
      element.name = name + kLaneNames[0][i];
      element.reg = find_register(element.name);
    }
    return vector;
  }
  return nullptr;
}

const Variable* Parser::variable_named(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return &fn_->locals[found->second];
  }
  for (const Variable& v : module_.variables) {
    if (v.name == name) return &v;
  }
  return nullptr;
}

void Parser::index(Operand& operand) {
  const Variable* variable = variable_named(operand.name);
  if (!variable) fail("no variable " + operand.name);
  if (find_register(now().text) >= 0)
    fail("an index in a register: [address] with the bytes added says the same");
  operand.offset = integer(0, kMostBytes / variable->element) * variable->element;
  operand.component = kIndexed;
  expect("]");
}

Operand Parser::address(size_t depth) {
  Operand o;
  if (now().kind == Token::Kind::number || is("-")) {
    o.offset = integer();
  } else {
    const Operand base = named(take());
    if (base.kind == Operand::Kind::reg) o.reg = base.reg;
    if (base.kind == Operand::Kind::symbol) o.name = base.name;
    if (base.kind == Operand::Kind::special)
      fail("an address may be a register, a variable or a number, and " + base.name +
           " is none of them here");
    if (base.kind == Operand::Kind::vector) fail("an address may not be a vector");
    if (!base.selector.empty()) fail("an address may not be a part of a register");
    o.offset = base.offset + (base.kind == Operand::Kind::reg ? offset() : 0);
  }
  o.kind = Operand::Kind::address;
  while (accept(",")) o.elements.push_back(operand(depth + 1));
  expect("]");
  return o;
}

}  // namespace gg::emu
