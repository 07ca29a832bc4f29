// SPDX-License-Identifier: MIT
//
// Kernels and functions: parameters, directives, scopes, labels. PTX ISA: "Specifying Kernel Entry
// Points and Functions".

#include <algorithm>

#include "common/emu/core/text/parser.h"

namespace gg::emu {

void Parser::function(bool entry) {
  auto made = std::make_unique<Function>();
  fn_ = made.get();
  fn_->entry = entry;
  ends_.clear();
  scopes_.clear();
  scopes_.push_back({});
  prototypes_.clear();
  results_.clear();
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
    std::vector<Passed> passed;
    take_registers(fn_->params, passed);
    take_registers(fn_->returns, results_);
    expect("{");
    load_parameters(passed);
    block();
    Statement end;
    end.line = now().line;
    end.text = "the end of " + fn_->name;
    store_results(end);
  }
  in_param_space(fn_->params);
  in_param_space(fn_->returns);
  module_.functions.push_back(std::move(made));
}

void Parser::parameter(std::vector<Variable>& list) {
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

void Parser::block() {
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

void Parser::resolve_labels() {
  const Scope& scope = scopes_.back();
  for (size_t i = scope.first_statement; i < fn_->body.size(); ++i) {
    for (Operand& operand : fn_->body[i].operands) resolve_label(operand, scope);
  }
}

void Parser::resolve_label(Operand& operand, const Scope& scope) {
  for (Operand& element : operand.elements) resolve_label(element, scope);
  const bool named = operand.kind == Operand::Kind::symbol || operand.kind == Operand::Kind::special;
  if (!named && !(operand.kind == Operand::Kind::label && operand.offset < 0)) return;
  const auto found = scope.labels.find(operand.name);
  if (found == scope.labels.end()) return;
  operand.kind = Operand::Kind::label;
  operand.offset = found->second;
}

void Parser::statement() {
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
    if (is(".callprototype") || is(".calltargets")) return prototype(name);
    scopes_.back().labels[name] = int64_t(fn_->body.size());
    return;
  }
  instruction();
}

void Parser::prototype(const std::string& name) {
  auto made = std::make_shared<Prototype>();
  const auto parameters = [&](std::vector<Variable>& list) {
    while (!accept(")")) {
      parameter(list);
      accept(",");
    }
  };
  if (accept(".calltargets")) {
    do made->targets.push_back(take().text);
    while (accept(","));
  } else {
    expect(".callprototype");
    const int64_t own = fn_->param_bytes;  // parameters are counted where they are read
    if (accept("(")) parameters(made->returns);
    take();  // the name, _
    if (accept("(")) parameters(made->params);
    in_param_space(made->params);
    in_param_space(made->returns);
    fn_->param_bytes = own;
  }
  skip_to(";");
  prototypes_[name] = std::move(made);
}

void Parser::registers() {
  take();
  int lanes = 1;
  if (accept(".v2")) lanes = 2;
  if (accept(".v4")) lanes = 4;
  const Token word = take();
  if (word.text.size() < 2 || !is_type(word.text.substr(1))) {
    throw SyntaxError{word.line, "registers of type '" + word.text + "' are not supported"};
  }
  const TypeInfo type = type_info(word.text.substr(1));
  do {
    const std::string name = take().text;
    int64_t count = -1;
    if (accept("<")) {
      // No expression: '>' ends it.
      count = in_range(int64_t(primary(0).bits), 0, INT32_MAX, now().line);
      expect(">");
    }
    if (lanes > 1 && count >= 0) fail("vector registers " + name + "<" + std::to_string(count) + ">");
    if (lanes > 1) scopes_.back().vectors[name] = lanes;
    registers_ += size_t(count < 0 ? lanes : count);
    if (registers_ > kMostUnusedRegisters + text_.size()) {
      fail(std::to_string(registers_) + " registers are more than a text of this length can use");
    }
    for (int64_t i = 0; i < (count < 0 ? lanes : count); ++i) {
      const std::string full = count >= 0  ? name + std::to_string(i)
                               : lanes > 1 ? name + kLaneNames[0][i]
                                           : name;
      if (lanes > 1) scopes_.back().registers[name + kLaneNames[1][i]] = int(fn_->registers.size());
      scopes_.back().registers[full] = int(fn_->registers.size());
      fn_->registers.push_back({full, type});
    }
  } while (accept(","));
  expect(";");
}

void Parser::location() {
  const int line = now().line;
  take();
  Location location;
  location.file = small_integer();
  location.line = small_integer();
  const auto more = [&] { return now().line == line && now().kind != Token::Kind::end; };
  location.column = small_integer();
  while (more() && !is("inlined_at")) ++at_;
  if (more() && accept("inlined_at")) {
    Location call;
    call.file = small_integer();
    call.line = small_integer();
    call.column = small_integer();
    location.caller = call_at(call);
  }
  while (more()) ++at_;
  accept(";");
  fn_->locations.push_back(location);
}

// The newest location with these numbers, whose own caller is known: a compiler names a call before
// what it expands there. If none did, the call stands for itself.
int Parser::call_at(const Location& call) {
  auto& all = fn_->locations;
  for (size_t i = all.size(); i-- > 0;) {
    if (all[i].file == call.file && all[i].line == call.line && all[i].column == call.column) return int(i);
  }
  all.push_back(call);
  return int(all.size()) - 1;
}

}  // namespace gg::emu
