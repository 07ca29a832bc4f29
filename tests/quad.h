// SPDX-License-Identifier: MIT
//
// Quad: a number of 113 bits, whose C++ type is another one on x86-64 than on arm64.

#pragma once

namespace gg {

#if __LDBL_MANT_DIG__ == 113
using Quad = long double;
#else
using Quad = __float128;
#endif

}  // namespace gg
