// SPDX-License-Identifier: MIT
//
// Element types that kernels and harness share, and how they turn into float and back.

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "common/kernel/check.h"

using bf16 = __nv_bfloat16;
using f16 = __half;

namespace gg {

// Exact: every bf16 and every f16 is a float.
GG_HD inline float to_float(float x) { return x; }
GG_HD inline float to_float(bf16 x) { return __bfloat162float(x); }
GG_HD inline float to_float(f16 x) { return __half2float(x); }

// To the nearest value of T; halfway goes to the even one.
template <class T>
GG_HD inline T from_float(float x);
template <>
GG_HD inline float from_float<float>(float x) {
  return x;
}
template <>
GG_HD inline bf16 from_float<bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
GG_HD inline f16 from_float<f16>(float x) {
  return __float2half_rn(x);
}

// Codes of block-scaled operands in memory, as common/kernel/formats.h lists them: one element to a
// byte, of E2M1 two, the even one in the low half. Names for kernels and for gg::BlockScaled;
// arithmetic has none.
struct e4m3 {
  uint8_t code;
};
struct e5m2 {
  uint8_t code;
};
struct e2m1 {
  uint8_t two_codes;
};
struct ue8m0 {
  uint8_t code;
};
struct ue4m3 {
  uint8_t code;
};

// Offsets of G groups, [G+1], in a machine's memory: int32_t, or int64_t if wide. Found out when
// run, so that a kernel is compiled once for both. An offset is at most 2^31 - 1.
struct Offsets {
  const void* data;
  bool wide;
  GG_HD int operator[](int group) const {
    return wide ? int(static_cast<const int64_t*>(data)[group]) : static_cast<const int32_t*>(data)[group];
  }
  // For who knows the type: int32_t or int64_t.
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  // Calls f with the offsets as const int32_t* or const int64_t*, whichever they are.
  template <class F>
  void with(F f) const {
    if (wide) {
      f(as<int64_t>());
    } else {
      f(as<int32_t>());
    }
  }
  // Where each group ends, as int32_t: [G]. Group g owns rows ends()[g-1] (0 for the first)
  // up to ends()[g].
  const int32_t* ends() const { return as<int32_t>() + 1; }
};

// Rows and columns of D that one block computes at a time; {0, 0} is the chapter's default.
struct TileShape {
  int m = 0, n = 0;
};
// The same, and the blocks of a cluster. In chapters 07l to 07o each of them computes m x n, in 08d
// to 09c all together do.
struct ClusterTileShape : TileShape {
  int cluster = 1;
};

}  // namespace gg
