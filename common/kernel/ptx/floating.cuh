// SPDX-License-Identifier: MIT
//
// Functions of floats that C++ has no name for: approximations by the special function unit, and a
// maximum that keeps NaN. PTX ISA, "Floating Point Instructions: ex2, rcp, max". Needs sm_80.

#pragma once

namespace gg::ptx {

// ex2.approx.ftz.f32. Who: any thread. 2^x with a relative error of at most 2^-22. A subnormal x is
// taken for zero, and a result below 2^-126 becomes +0. 2^128 and more is infinity; NaN stays NaN.
__device__ inline float ex2_approx_ftz(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// rcp.approx.ftz.f32. Who: any thread. 1 / x with a relative error of at most 2^-23. A subnormal x
// is taken for zero, whose result is infinity, and a subnormal result becomes zero; both keep the
// sign. Powers of two from 2^-126 to 2^126 are exact: measured on an H200, not promised by the ISA.
__device__ inline float rcp_approx_ftz(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// max.NaN.f32. Who: any thread. The larger one, +0 being above -0; NaN 0x7FFFFFFF if one of them is
// NaN, which fmaxf would leave out.
__device__ inline float max_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

}  // namespace gg::ptx
