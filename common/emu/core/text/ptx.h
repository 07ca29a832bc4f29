// SPDX-License-Identifier: MIT
//
// A PTX module as the parser understands it: what stands in the text, with names resolved and
// nothing yet decided about what an instruction does. PTX ISA 9.0, "Syntax", "State Spaces, Types,
// and Variables", "Directives".

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gg::emu {

struct TypeInfo {
  // 'b' bits, 'u', 's', 'f', 'p' predicate; 'x' a packed or narrow float named in `name`.
  char kind = 0;
  int bits = 0;      // of one element; 0 for a predicate
  std::string name;  // "u32", "bf16x2", "e4m3x2"
};
// Throws std::invalid_argument for a word that is no fundamental type.
TypeInfo type_info(const std::string& name);
bool is_type(const std::string& name);

enum class Space : uint8_t { none, reg, global, shared, local, param, constant, generic };

struct Variable {
  std::string name;
  Space space = Space::none;
  TypeInfo type;
  int64_t align = 1, bytes = 0, offset = 0;  // offset in its space's block of function or module
  bool external = false;                     // .extern .shared: as long as the launch says
  int64_t element = 1;                       // bytes of an element of an array
  std::vector<uint8_t> init;                 // of .global and .const
  struct Address {
    int64_t at = 0;  // the address of `symbol` plus `add` stands here
    std::string symbol;
    int64_t add = 0;
    int byte = -1;  // only this byte of it, of 8: 0xFF00(symbol) is byte 1; -1: all
  };
  std::vector<Address> addresses;
};

struct Register {
  std::string name;
  TypeInfo type;
};

constexpr int kIndexed = 1;  // the symbol was written a[1]
struct Operand {
  enum class Kind : uint8_t { reg, immediate, address, vector, symbol, label, special, sink };
  Kind kind = Kind::sink;
  int reg = -1;                     // register index, or base register of an address (-1: none)
  bool negated = false;             // !%p
  int component = 0;                // of a special register: 0 x, 1 y, 2 z; of a symbol: kIndexed
  bool is_float = false;            // an immediate written as 0f.., 0d.. or with a point
  uint64_t bits = 0;                // immediate: the integer, or the bits of the double
  int64_t offset = 0;               // address: bytes added; label: index of the statement
  std::string name;                 // symbol, label, special register
  std::string selector;             // of a register: the part of it, as in %r1.b0
  std::vector<Operand> elements;    // vector
  std::shared_ptr<Operand> second;  // d|p
};

// A call through a pointer says by .callprototype or .calltargets which functions it may reach.
struct Prototype {
  std::vector<Variable> params, returns;
  std::vector<std::string> targets;  // of .calltargets, which leaves the others empty
};

struct Statement {
  int guard = -1;  // predicate register
  bool guard_negated = false;
  std::string opcode;                  // "ld"
  std::vector<std::string> modifiers;  // "global", "v4", "f32"
  std::vector<Operand> operands;
  int line = 0;  // of the PTX text
  int loc = -1;  // index into Function::locations
  std::string text;
  std::shared_ptr<const Prototype> prototype;  // of a call through a pointer

  bool has(const char* modifier) const;
};

struct Location {
  int file = 0, line = 0, column = 0;
  int caller = -1;  // of a function expanded where it is called: the location of the call; else -1
};

struct Function {
  std::string name;
  bool entry = false, declared_only = false;
  std::vector<Variable> params;   // in the parameter block, `offset` each
  std::vector<Variable> returns;  // of a .func
  int64_t param_bytes = 0;
  std::vector<Register> registers;
  std::vector<Variable> locals;  // .local, and .shared inside the function
  int64_t local_bytes = 0;
  std::vector<Statement> body;
  std::vector<Location> locations;
  int max_threads[3] = {0, 0, 0}, required_threads[3] = {0, 0, 0}, required_cluster[3] = {0, 0, 0};
  bool explicit_cluster = false, blocks_are_clusters = false;
  int max_cluster = 0;  // .maxclusterrank
  std::string unread;   // the body's text, until parse_body() makes the above of it
  int unread_line = 0;  // where it begins
};

struct Module {
  std::string version, target;
  std::map<int, std::string> files;  // .file index -> path
  // The file that the text was read from; empty: none that is known.
  std::string origin;
  std::vector<Variable> variables;  // .global, .const, .shared of the module
  std::vector<std::unique_ptr<Function>> functions;

  const Function* find(const std::string& name) const;
};

// Throws SyntaxError. An instruction the emulator does not know parses all the same: it
// fails when executed.
struct SyntaxError {
  int line;
  std::string what;
};
// Bodies of kernels may be left to parse_body(), errors in them too: a program holds many
// and launches few.
enum class Bodies : uint8_t { now, later };
std::unique_ptr<Module> parse_ptx(const std::string& text, Bodies bodies = Bodies::now);
// Reads the body of this kernel, if it is still unread.
void parse_body(Module& module, const std::string& kernel);

}  // namespace gg::emu
