// SPDX-License-Identifier: MIT
//
// Bits counted and found, bit fields, and bytes permuted. PTX ISA: "Integer Arithmetic
// Instructions": popc, clz, bfind, fns, brev, bfe, bfi, bmsk, szext; "Data Movement and
// Conversion Instructions": prmt.

#include <algorithm>
#include <cstdlib>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/alu.h"

namespace gg::emu {
namespace {

// ---- counting and finding bits ----

struct Brev {
  template <class T>
  static T of(T a) {
    uint64_t x = uint64_t(a);
    x = (x & 0x5555555555555555) << 1 | (x >> 1 & 0x5555555555555555);
    x = (x & 0x3333333333333333) << 2 | (x >> 2 & 0x3333333333333333);
    x = (x & 0x0F0F0F0F0F0F0F0F) << 4 | (x >> 4 & 0x0F0F0F0F0F0F0F0F);
    return T(__builtin_bswap64(x) >> (64 - 8 * sizeof(T)));
  }
};
template <class T>
Next popc(Warp& w, const Instr& in, Mask m) {
  return map1<uint32_t, T>(w, in, m, [](T a) { return uint32_t(__builtin_popcountll(a)); });
}
template <class T>
Next clz(Warp& w, const Instr& in, Mask m) {
  return map1<uint32_t, T>(w, in, m, [](T a) {
    constexpr int kWidth = 8 * sizeof(T);
    return a == 0 ? uint32_t(kWidth) : uint32_t(__builtin_clzll(a) - (64 - kWidth));
  });
}
// The highest one; of a signed number, the highest bit unlike its sign. .shiftamt: how far it is
// from the top.
template <class T>
Next bfind(Warp& w, const Instr& in, Mask m) {
  const bool shift_amount = in.variant;
  return map1<uint32_t, T>(w, in, m, [=](T a) {
    const uint64_t bits = Unsigned<T>(a < 0 ? ~a : a);
    if (bits == 0) return ~0u;
    const uint32_t at = uint32_t(63 - __builtin_clzll(bits));
    return shift_amount ? uint32_t(8 * sizeof(T) - 1) - at : at;
  });
}
// The n-th one of the mask from `base` upward (offset n > 0) or downward (-n); offset 0: base, if
// its bit is set.
uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset) {
  if (offset == 0) return base < 32 && mask >> base & 1 ? base : ~0u;
  int64_t left = std::abs(int64_t(offset));
  for (int64_t at = base; at >= 0 && at<32; at += offset> 0 ? 1 : -1) {
    if (mask >> at & 1 && --left == 0) return uint32_t(at);
  }
  return ~0u;
}
Next fns(Warp& w, const Instr& in, Mask m) {
  return map3<uint32_t, uint32_t, uint32_t, int32_t>(w, in, m, find_nth_set);
}

void decode_count(Decoder& d, Handler of32, Handler of64) {
  const TypeInfo type = take_type_of(d, {"b32", "b64"});
  d.done();
  want_operands(d, 2);
  d.instr.run = type.bits == 32 ? of32 : of64;
  d.instr.s[0] = d.source(1, type);
  d.instr.d = d.destination(0, type_info("u32"));
}
void decode_popc(Decoder& d) { decode_count(d, popc<uint32_t>, popc<uint64_t>); }
void decode_clz(Decoder& d) { decode_count(d, clz<uint32_t>, clz<uint64_t>); }
void decode_brev(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"b32", "b64"});
  d.done();
  d.instr.run = handler_of<Unary, Brev>(type);
  same_operands(d, 1, type);
}
void decode_bfind(Decoder& d) {
  d.instr.variant = d.take("shiftamt");
  const TypeInfo type = take_type_of(d, {"u32", "u64", "s32", "s64"});
  d.done();
  want_operands(d, 2);
  const bool is_signed = type.kind == 's';
  d.instr.run = type.bits == 32 ? (is_signed ? bfind<int32_t> : bfind<uint32_t>)
                                : (is_signed ? bfind<int64_t> : bfind<uint64_t>);
  d.instr.s[0] = d.source(1, type);
  d.instr.d = d.destination(0, type_info("u32"));
}
void decode_fns(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"b32"});
  d.done();
  d.instr.run = fns;
  same_operands(d, 3, type);
}

// ---- bit fields: `position` and `length` are the low bytes of their operands ----

uint64_t low_ones(int n) { return n >= 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1; }

// The field at the bottom, its highest bit, or the number's if it reaches beyond, repeated
// above when signed.
template <class T>
Next bfe(Warp& w, const Instr& in, Mask m) {
  return map3<T, T, uint32_t, uint32_t>(w, in, m, [](T a, uint32_t b, uint32_t c) {
    constexpr int kWidth = 8 * sizeof(T);
    const int position = int(b & 0xFF), length = int(c & 0xFF);
    const int inside = std::max(0, std::min(length, kWidth - position));
    const uint64_t field = inside ? uint64_t(Unsigned<T>(a)) >> position & low_ones(inside) : 0;
    const bool sign = std::is_signed_v<T> && length > 0 &&
                      (uint64_t(Unsigned<T>(a)) >> std::min(position + length - 1, kWidth - 1) & 1);
    return T(sign ? field | ~low_ones(inside) : field);
  });
}
// b with its field replaced by the low bits of a.
template <class T>
Next bfi(Warp& w, const Instr& in, Mask m) {
  const T *a = w.at<T>(in.s[0]), *b = w.at<T>(in.s[1]);
  const uint32_t *c = w.at<uint32_t>(in.s[2]), *d = w.at<uint32_t>(in.s[3]);
  T values[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    const int position = int(c[l] & 0xFF), length = int(d[l] & 0xFF);
    const int inside = std::max(0, std::min(length, int(8 * sizeof(T)) - position));
    const uint64_t field = inside ? low_ones(inside) << position : 0;
    values[l] = T((b[l] & ~field) | (inside ? uint64_t(a[l]) << position & field : 0));
  }
  put(w, in.d, m, values);
  return Next::go_on;
}
// Ones from bit a on, b of them. .clamp: positions and lengths beyond 31 reach over the end;
// .wrap: modulo 32.
uint32_t bit_mask(uint32_t a, uint32_t b, bool wrap) {
  if (wrap) a &= 31, b &= 31;
  if (a > 31) return 0;
  return uint32_t(low_ones(int(std::min(b, 32u))) << a);
}
Next bmsk(Warp& w, const Instr& in, Mask m) {
  const bool wrap = in.variant;
  return map2<uint32_t, uint32_t, uint32_t>(w, in, m,
                                            [=](uint32_t a, uint32_t b) { return bit_mask(a, b, wrap); });
}
// The low b bits of a, extended by zeros or sign. .clamp: all of a from 32 on; .wrap: b modulo 32.
template <class T>
Next szext(Warp& w, const Instr& in, Mask m) {
  const bool wrap = in.variant;
  return map2<T, T, uint32_t>(w, in, m, [=](T a, uint32_t b) {
    if (wrap) b &= 31;
    if (b >= 32) return a;
    if (b == 0) return T(0);
    return T(T(uint32_t(a) << (32 - b)) >> (32 - b));
  });
}

void decode_bfe(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"u32", "u64", "s32", "s64"});
  d.done();
  want_operands(d, 4);
  const bool is_signed = type.kind == 's';
  d.instr.run = type.bits == 32 ? (is_signed ? bfe<int32_t> : bfe<uint32_t>)
                                : (is_signed ? bfe<int64_t> : bfe<uint64_t>);
  d.instr.s[0] = d.source(1, type);
  d.instr.s[1] = d.source(2, type_info("u32"));
  d.instr.s[2] = d.source(3, type_info("u32"));
  d.instr.d = d.destination(0, type);
}
void decode_bfi(Decoder& d) {
  const TypeInfo type = take_type_of(d, {"b32", "b64"});
  d.done();
  want_operands(d, 5);
  d.instr.run = type.bits == 32 ? bfi<uint32_t> : bfi<uint64_t>;
  d.instr.s[0] = d.source(1, type);
  d.instr.s[1] = d.source(2, type);
  d.instr.s[2] = d.source(3, type_info("u32"));
  d.instr.s[3] = d.source(4, type_info("u32"));
  d.instr.d = d.destination(0, type);
}
void decode_mode_of_two(Decoder& d) {  // bmsk, szext
  const bool mask = d.statement().opcode == "bmsk";
  const int mode = d.take_one({"clamp", "wrap"});
  const TypeInfo type = mask ? take_type_of(d, {"b32"}) : take_type_of(d, {"u32", "s32"});
  d.done();
  if (mode < 0) throw Unsupported{"no .clamp or .wrap"};
  d.instr.variant = uint8_t(mode);
  d.instr.run = mask ? bmsk : type.kind == 's' ? szext<int32_t> : szext<uint32_t>;
  same_operands(d, 2, type);
}

// ---- prmt: each nibble of a selector picks one of the eight bytes of {b, a} ----

uint32_t permute(uint32_t a, uint32_t b, uint32_t nibbles) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t r = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t nibble = nibbles >> (4 * i) & 0xF;
    const uint32_t byte = uint32_t(bytes >> (8 * (nibble & 7))) & 0xFF;
    const uint32_t sign = byte & 0x80 ? 0xFF : 0;  // eight times
    r |= (nibble & 8 ? sign : byte) << (8 * i);
  }
  return r;
}
Next prmt(Warp& w, const Instr& in, Mask m) {
  return map3<uint32_t, uint32_t, uint32_t, uint32_t>(w, in, m, permute);
}

enum PermuteMode { kForward4, kBackward4, kReplicate8, kEdgeLeft, kEdgeRight, kReplicate16 };

// The same selection from the lowest two bits of c.
uint32_t selector(int mode, uint32_t c) {
  uint32_t nibbles = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t byte = mode == kForward4     ? i + c
                          : mode == kBackward4  ? (c - i) & 7
                          : mode == kReplicate8 ? c
                          : mode == kEdgeLeft   ? std::max(i, c)
                          : mode == kEdgeRight  ? std::min(i, c)
                                                : 2 * (c & 1) + (i & 1);
    nibbles |= byte << (4 * i);
  }
  return nibbles;
}
Next prmt_mode(Warp& w, const Instr& in, Mask m) {
  uint32_t nibbles[4];
  for (uint32_t c = 0; c < 4; ++c) nibbles[c] = selector(in.variant, c);
  return map3<uint32_t, uint32_t, uint32_t, uint32_t>(
      w, in, m, [&](uint32_t a, uint32_t b, uint32_t c) { return permute(a, b, nibbles[c & 3]); });
}
// No byte that is picked has a value: as of a word that mov puts together, one that has is enough.
Mask prmt_without(Warp& w, const Instr& in, Mask m, const Mask* without) {
  const uint32_t* selectors = w.at<uint32_t>(in.s[2]);
  for (Lanes l(m); l; ++l) {
    const uint32_t c = selectors[*l], nibbles = in.run == prmt ? c : selector(in.variant, c & 3);
    bool none = true;
    for (int i = 0; i < 4; ++i) none = none && without[nibbles >> (4 * i + 2) & 1] >> *l & 1;
    if (!none && !(without[2] >> *l & 1)) m &= ~(Mask(1) << *l);
  }
  return m;
}
void decode_prmt(Decoder& d) {
  const int mode = d.take_one({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  const TypeInfo type = take_type_of(d, {"b32"});
  d.done();
  d.instr.variant = uint8_t(std::max(mode, 0));
  d.instr.run = mode < 0 ? prmt : prmt_mode;
  want_operands(d, 4);
  d.instr.s[0] = d.carried(d.operand(1), type);
  d.instr.s[1] = d.carried(d.operand(2), type);
  d.instr.s[2] = d.carried(d.operand(3), type);
  d.instr.d = d.destination(0, type);
  d.carries({&d.operand(0)}, prmt_without);
}

}  // namespace

std::vector<Form> bits_fields_forms() {
  std::vector<Form> forms = computing(Family::integer, {{"popc", decode_popc},
                                                        {"clz", decode_clz},
                                                        {"brev", decode_brev},
                                                        {"bfind", decode_bfind},
                                                        {"fns", decode_fns},
                                                        {"bfe", decode_bfe},
                                                        {"bfi", decode_bfi},
                                                        {"bmsk", decode_mode_of_two},
                                                        {"szext", decode_mode_of_two}});
  forms.push_back({"prmt", decode_prmt, Family::move, true});
  return forms;
}

}  // namespace gg::emu
