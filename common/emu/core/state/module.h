// SPDX-License-Identifier: MIT
//
// A module owns its .global and .const variables before any kernel of it runs. PTX ISA 9.0, "State
// Spaces", "Variables: Initializers".

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/emu/core/state/memory.h"
#include "common/emu/core/text/ptx.h"

namespace gg::emu {

// Where one variable goes: its device address, 0 if there is no memory for it.
using AllocateVariable = std::function<uint64_t(const Variable& variable, size_t bytes)>;

// Allocates the module's .global and .const variables, in device memory if `allocate` is empty, and
// writes their initial values, addresses of other variables and of functions among them. The result
// goes to decode(). Throws std::bad_alloc if memory is short, std::invalid_argument with a sentence
// for an initial value that it cannot write.
std::map<std::string, uint64_t> place_variables(const Module& module, GlobalMemory& memory,
                                                const AllocateVariable& allocate = {});

// The address that stands for a function in tables of functions, which every class with virtual
// functions has. Nothing can be read there. 0: the module has no such function.
uint64_t address_of(const Module& module, const std::string& function);
// The function that an address stands for, or its declaration; null if it stands for none.
const Function* function_at(const Module& module, uint64_t address);

}  // namespace gg::emu
