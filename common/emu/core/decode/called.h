// SPDX-License-Identifier: MIT
//
// Some of the functions that a kernel calls cannot be expanded where they are called;
// this finds them. PTX ISA: "Control Flow Instructions: call", "Control Flow
// Directives: .callprototype, .calltargets".

#pragma once

#include <vector>

#include "common/emu/core/text/ptx.h"

namespace gg::emu {

// The functions that get code of their own, in the module's order: those that a call through a
// pointer may reach, and those that may call themselves, by way of others too.
std::vector<const Function*> functions_to_call(const Module& module, const Function& kernel);

// Returns the operand that a call names, a symbol or the register that holds an address; null where
// the statement is no call.
const Operand* callee_of(const Statement& call);

// Whether a call of this prototype may reach the function.
bool may_reach(const Prototype& prototype, const Function& function);

// The statement behind the last one of a called function: it returns to whoever called.
const Statement& end_of_call();

}  // namespace gg::emu
