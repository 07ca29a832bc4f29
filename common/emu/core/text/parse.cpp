// SPDX-License-Identifier: MIT
//
// PTX text to a Module: what stands outside functions. PTX ISA 9.0: "Directives". A kernel's body
// may be left as text, and parsed when somebody asks for it.

#include "common/emu/core/text/parser.h"

namespace gg::emu {

void Parser::module() {
  while (now().kind != Token::Kind::end) top_level();
}

void Parser::unread_body(Function& function) {
  Function whole = function;  // what an error leaves half done is forgotten
  fn_ = &whole;
  scopes_.push_back({});
  expect("{");
  block();
  if (now().kind != Token::Kind::end) fail("'" + now().text + "' stands behind the function's '}'");
  whole.unread.clear();
  function = std::move(whole);
}

void Parser::top_level() {
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
      const Token token = take();
      depth += int(token.text == "{") - int(token.text == "}");
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

void Parser::file_directive() {
  take();
  const int index = small_integer();
  const Token name = take();
  module_.files[index] = name.text;
  while (accept(",")) take();
}

void Parser::declaration() {
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
