// SPDX-License-Identifier: MIT
//
// A width that is known when the kernel runs, for an instruction that has it in its name: wgmma's
// N. From chapter 07d.

#pragma once

#include <type_traits>

namespace gg {

// Calls f(std::integral_constant<int, W>) with the least multiple W of STEP that is at least
// `size`, and with MOST where `size` is more. MOST: a multiple of STEP.
template <int MOST, int STEP, class F>
__device__ __forceinline__ void with_width_for(int size, F& f) {
  if constexpr (MOST > STEP) {
    if (size <= MOST - STEP) return with_width_for<MOST - STEP, STEP>(size, f);
  }
  f(std::integral_constant<int, MOST>());
}

}  // namespace gg
