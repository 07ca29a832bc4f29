// SPDX-License-Identifier: MIT
//
// How a handler works on the lanes of a warp: one by one, or on registers as vectors.

#pragma once

#include <cstring>
#include <type_traits>

#include "common/emu/core/state/grid.h"

namespace gg::emu {

// Lane by lane: for (Lanes lanes(mask); lanes; ++lanes) use(*lanes);
class Lanes {
 public:
  explicit Lanes(Mask mask) : mask_(mask) {}
  explicit operator bool() const { return mask_ != 0; }
  int operator*() const { return __builtin_ctz(mask_); }
  Lanes& operator++() {
    mask_ &= mask_ - 1;
    return *this;
  }

 private:
  Mask mask_;
};

// use(width), as a constant where it is one of the usual: then a copy is an instruction or two.
template <class Use>
inline void with_width(int width, Use use) {
  if (width == 2) return use(std::integral_constant<size_t, 2>());
  if (width == 4) return use(std::integral_constant<size_t, 4>());
  if (width == 8) return use(std::integral_constant<size_t, 8>());
  if (width == 16) return use(std::integral_constant<size_t, 16>());
  use(size_t(width));
}

// d[lane] = op(a[lane], ...) for the lanes of the mask. `op` must be harmless for any operands: all
// lanes are computed, on the side, so that the compiler makes vector code of it whatever the
// destination overlaps. Registers of one size have the same place or places apart, and then the
// side is not needed.
template <class D>
inline void put(Warp& warp, uint32_t slot, Mask mask, const D (&values)[kLanes]) {
  D* d = warp.at<D>(slot);
  if (mask == kAllLanes) {
    std::memcpy(d, values, sizeof values);
  } else {
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = mask >> lane & 1 ? values[lane] : d[lane];
  }
}
// Into a register that is a source's place too, or apart from it.
template <class D, class Value>
inline Next to_place(D* d, Value value) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (int lane = 0; lane < kLanes; ++lane) d[lane] = value(lane);
  return Next::go_on;
}

template <class D, class A, class Op>
Next map1(Warp& warp, const Instr& in, Mask mask, Op op) {
  const A* a = warp.at<A>(in.s[0]);
  if (sizeof(A) == sizeof(D) && mask == kAllLanes) {
    return to_place(warp.at<D>(in.d), [&](int lane) { return op(a[lane]); });
  }
  D values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = op(a[lane]);
  put(warp, in.d, mask, values);
  return Next::go_on;
}
template <class D, class A, class B, class Op>
Next map2(Warp& warp, const Instr& in, Mask mask, Op op) {
  const A* a = warp.at<A>(in.s[0]);
  const B* b = warp.at<B>(in.s[1]);
  if (sizeof(A) == sizeof(D) && sizeof(B) == sizeof(D) && mask == kAllLanes) {
    return to_place(warp.at<D>(in.d), [&](int lane) { return op(a[lane], b[lane]); });
  }
  D values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = op(a[lane], b[lane]);
  put(warp, in.d, mask, values);
  return Next::go_on;
}
template <class D, class A, class B, class C, class Op>
Next map3(Warp& warp, const Instr& in, Mask mask, Op op) {
  const A* a = warp.at<A>(in.s[0]);
  const B* b = warp.at<B>(in.s[1]);
  const C* c = warp.at<C>(in.s[2]);
  if (sizeof(A) == sizeof(D) && sizeof(B) == sizeof(D) && sizeof(C) == sizeof(D) && mask == kAllLanes) {
    return to_place(warp.at<D>(in.d), [&](int lane) { return op(a[lane], b[lane], c[lane]); });
  }
  D values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = op(a[lane], b[lane], c[lane]);
  put(warp, in.d, mask, values);
  return Next::go_on;
}

}  // namespace gg::emu
