// SPDX-License-Identifier: MIT
//
// Names of kernels as their source has them.

#pragma once

#include <string>

namespace gg::emu {

// A mangled name as C++ has it: "void scale<float>(float*, int)". Anonymous namespaces are left
// out. Names with arguments that the demangler of the C++ library cannot read, as nvcc makes of
// long templates, come without any: "scale<...>". A name that is not mangled stays as it is.
std::string demangled(const std::string& name);

}  // namespace gg::emu
