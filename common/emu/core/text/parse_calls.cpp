// SPDX-License-Identifier: MIT
//
// Parameters in registers. They become parameters in .param space of the same names and sizes: a
// function loads what it gets, and stores what it gives ahead of each ret; a call stores its
// arguments and loads its results. So all calls are alike behind the parser. PTX ISA: "Function
// Declarations and Definitions", "call".

#include "common/emu/core/text/parser.h"

namespace gg::emu {
namespace {

bool fits_a_register(const Variable& v) {
  return v.bytes == 1 || v.bytes == 2 || v.bytes == 4 || v.bytes == 8;
}
std::string type_of(const Variable& v) {
  return v.type.bits == 8 * v.bytes ? v.type.name : "b" + std::to_string(8 * v.bytes);
}

Operand symbol(const std::string& name, Operand::Kind kind) {
  Operand o;
  o.kind = kind;
  o.name = name;
  return o;
}

}  // namespace

void Parser::in_param_space(std::vector<Variable>& list) {
  for (Variable& v : list) {
    if (v.space == Space::reg && v.type.kind != 'p') v.space = Space::param;
  }
}

void Parser::take_registers(std::vector<Variable>& list, std::vector<Passed>& passed) {
  for (const Variable& v : list) {
    if (v.space != Space::reg || v.type.kind == 'p') continue;
    const int reg = int(fn_->registers.size());
    fn_->registers.push_back({v.name, v.type});
    scopes_.back().registers[v.name] = reg;
    Operand o = symbol(v.name, Operand::Kind::reg);
    o.reg = reg;
    passed.push_back({v, o});
  }
  in_param_space(list);
}

// Under the guard of the statement that it belongs to.
void Parser::move_param(bool load, const Passed& passed, const Statement& of) {
  Statement s;
  s.guard = of.guard;
  s.guard_negated = of.guard_negated;
  s.line = of.line;
  s.loc = of.loc;
  const std::string opcode = load ? "ld" : "st", type = type_of(passed.variable);
  const Operand place = symbol(passed.variable.name, Operand::Kind::address);
  s.opcode = opcode;
  s.modifiers = {"param", type};
  s.operands =
      load ? std::vector<Operand>{passed.operand, place} : std::vector<Operand>{place, passed.operand};
  s.text = opcode + ".param." + type + "  // of: " + of.text;
  fn_->body.push_back(std::move(s));
}

void Parser::load_parameters(const std::vector<Passed>& passed) {
  Statement begin;
  begin.line = now().line;
  begin.text = "the parameters of " + fn_->name;
  for (const Passed& each : passed) move_param(true, each, begin);
}
void Parser::store_results(const Statement& ret) {
  for (const Passed& each : results_) move_param(false, each, ret);
}

Variable Parser::room_for(const std::string& name, Variable like) {
  like.name = name;
  like.space = Space::param;
  const auto [at, is_new] = scopes_.front().variables.insert({name, fn_->locals.size()});
  if (is_new) fn_->locals.push_back(like);
  Variable& room = fn_->locals[at->second];
  room.bytes = std::max(room.bytes, like.bytes);
  return like;
}

// The registers and numbers in a list of a call, each with room of its own, that takes its place.
std::vector<Parser::Passed> Parser::made_room(Operand& list, const std::vector<Variable>* theirs,
                                              const std::string& name) {
  std::vector<Passed> passed;
  for (size_t i = 0; i < list.elements.size(); ++i) {
    Operand& o = list.elements[i];
    Variable like;
    if (theirs && i < theirs->size()) {
      like = (*theirs)[i];
    } else if (o.kind == Operand::Kind::reg) {
      like.type = fn_->registers[size_t(o.reg)].type;
      like.bytes = like.type.bits / 8;
    }
    const bool moves = o.kind == Operand::Kind::reg || o.kind == Operand::Kind::immediate ||
                       (o.kind == Operand::Kind::sink && o.name == "_");
    if (!moves || like.type.kind == 'p' || !fits_a_register(like)) continue;
    const Variable room = room_for(name + std::to_string(i), like);
    passed.push_back({room, o});
    o = symbol(room.name, Operand::Kind::symbol);
  }
  return passed;
}

void Parser::call(Statement s) {
  const bool returns = !s.operands.empty() && s.operands[0].kind == Operand::Kind::vector;
  const size_t callee = returns ? 1 : 0;
  if (callee >= s.operands.size()) return fn_->body.push_back(std::move(s));
  const std::string& name = s.operands[callee].name;
  const Function* const function = name == fn_->name ? fn_ : module_.find(name);
  const bool told = s.prototype && s.prototype->targets.empty();
  const auto* params = told ? &s.prototype->params : function ? &function->params : nullptr;
  const auto* results = told ? &s.prototype->returns : function ? &function->returns : nullptr;
  std::vector<Passed> arguments, back;
  if (returns) back = made_room(s.operands[0], results, "%result");
  if (callee + 1 < s.operands.size()) arguments = made_room(s.operands[callee + 1], params, "%argument");
  const Statement made = s;
  for (const Passed& each : arguments) move_param(false, each, made);
  fn_->body.push_back(std::move(s));
  for (const Passed& each : back) {
    if (each.operand.kind == Operand::Kind::reg) move_param(true, each, made);
  }
}

}  // namespace gg::emu
