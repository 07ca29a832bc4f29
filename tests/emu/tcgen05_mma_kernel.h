// SPDX-License-Identifier: MIT
//
// A PTX kernel around tcgen05.mma, and a plain host model of the instruction that shares nothing
// with the emulator. Every block fills its shared and tensor memory from an image, the first one
// issues the instruction, every block hands its tensor memory back.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "common/emu/core/state/grid.h"

namespace mma_test {

constexpr int kLanes = 128, kColumns = 512, kSharedBytes = 65536, kBase = 0x400;
constexpr int kAt = 0, kBt = 24576;                          // bytes of A and B in shared memory
constexpr int kD = 8, kATmem = 280, kSfa = 292, kSfb = 308;  // columns

struct Case {
  std::string kind = "f16", a = "bf16", b = "bf16";
  int m = 128, n = 64, group = 1;
  int swizzle = 128;  // bytes, of A and B
  bool a_in_tmem = false, a_mn = false, b_mn = false;
  std::string vector;  // "scale_vec::1X"
  int scales = 0;      // of a row, in one instruction
  bool ue4m3 = false;
  int sfa_id = 0, sfb_id = 0;
  bool p = true, half = false, negate_a = false, negate_b = false, masked = false;
  int scale_d = -1;  // -1: not written
  int d_lane = 0;
  std::string collector;
  bool whole = false;  // only whole numbers
};

inline bool scaled(const Case& c) { return c.scales != 0; }
inline bool packed(const Case& c) { return c.kind == "mxf4" || c.kind == "mxf4nvf4"; }
inline int k_of(const Case& c) { return c.kind == "f16" ? 16 : c.kind == "tf32" ? 8 : packed(c) ? 64 : 32; }
inline int memory_bits(const Case& c) {
  return c.kind == "f16" ? 16 : c.kind == "tf32" ? 32 : packed(c) ? 4 : 8;
}

// ---- elements: a code and its value ----

struct Type {
  int bits, exponent, mantissa;
};
inline Type type_of(const std::string& name) {
  if (name == "bf16") return {16, 8, 7};
  if (name == "f16") return {16, 5, 10};
  if (name == "tf32") return {32, 8, 23};
  if (name == "e4m3") return {8, 4, 3};
  if (name == "e5m2") return {8, 5, 2};
  if (name == "e2m3") return {6, 2, 3};
  if (name == "e3m2") return {6, 3, 2};
  return {4, 2, 1};
}
inline double value_of(const std::string& name, uint32_t code) {
  const Type t = type_of(name);
  const int bias = (1 << (t.exponent - 1)) - 1, field = int(code >> t.mantissa & ((1u << t.exponent) - 1));
  const double fraction = std::ldexp(double(code & ((1u << t.mantissa) - 1)), -t.mantissa);
  const double magnitude = field ? std::ldexp(1 + fraction, field - bias) : std::ldexp(fraction, 1 - bias);
  return code >> (t.exponent + t.mantissa) & 1 ? -magnitude : magnitude;
}
// The codes whose values are multiples of 1/8, at most 7.5 in magnitude: sums stay exact.
inline std::vector<uint32_t> exact_codes(const std::string& name, bool whole) {
  std::vector<uint32_t> codes;
  if (name == "tf32") {
    for (int i = -7; i <= 7; ++i) codes.push_back(std::bit_cast<uint32_t>(float(i)));
    return codes;
  }
  for (uint32_t code = 0; code < 1u << type_of(name).bits; ++code) {
    const double value = value_of(name, code), least = whole ? 1 : 0.125;
    if (std::abs(value) <= 7.5 && value / least == std::floor(value / least)) codes.push_back(code);
  }
  return codes;
}

// ---- matrices ----

// Codes of A (m x k) and B (n x k), scales by row and block of k, D before the instruction.
struct Data {
  std::vector<uint32_t> a, b;
  std::vector<uint8_t> sfa, sfb;
  std::vector<float> c;
};

inline double scale_value(const Case& c, uint8_t code) {
  return c.ue4m3 ? value_of("e4m3", code & 0x7F) : std::ldexp(1.0, int(code) - 127);
}

inline Data data_of(const Case& c, std::mt19937& engine) {
  Data d;
  const int k = k_of(c);
  const auto a = exact_codes(c.a, c.whole), b = exact_codes(c.b, c.whole);
  for (int i = 0; i < c.m * k; ++i) d.a.push_back(a[engine() % a.size()]);
  for (int i = 0; i < c.n * k; ++i) d.b.push_back(b[engine() % b.size()]);
  const auto scale = [&] { return uint8_t(c.ue4m3 ? 0x34 + engine() % 8 : 125 + engine() % 5); };
  for (int i = 0; i < c.m * c.scales; ++i) d.sfa.push_back(scale());
  for (int i = 0; i < c.n * c.scales; ++i) d.sfb.push_back(scale());
  for (int i = 0; i < c.m * c.n; ++i) d.c.push_back(float(int(engine() % 201) - 100));
  return d;
}

// Elements times their scales, with the sign that the descriptor gives them.
inline std::vector<double> factors(const Case& c, const std::string& type, const std::vector<uint32_t>& codes,
                                   const std::vector<uint8_t>& scales, bool negate) {
  const size_t k = size_t(k_of(c));
  std::vector<double> values;
  for (size_t i = 0; i < codes.size(); ++i) {
    double value = negate ? -value_of(type, codes[i]) : value_of(type, codes[i]);
    if (scaled(c)) value *= scale_value(c, scales[i * size_t(c.scales) / k]);
    values.push_back(value);
  }
  return values;
}

// D as it must be, row by row: exact, so that no order of summation matters.
inline std::vector<double> product(const Case& c, const Data& d) {
  const size_t k = size_t(k_of(c)), n = size_t(c.n);
  const auto a = factors(c, c.a, d.a, d.sfa, c.negate_a), b = factors(c, c.b, d.b, d.sfb, c.negate_b);
  std::vector<double> sums;
  for (size_t row = 0; row < size_t(c.m); ++row) {
    for (size_t column = 0; column < n; ++column) {
      double sum = c.p ? double(d.c[row * n + column]) * std::ldexp(1.0, -std::max(c.scale_d, 0)) : 0;
      for (size_t i = 0; i < k; ++i) sum += a[row * k + i] * b[column * k + i];
      sums.push_back(sum);
    }
  }
  return sums;
}

// ---- places ----

struct Place {
  int block, lane, column;
};
// The tables "Data path organization" of PTX, one row of the table after the other.
inline Place place_of_d(const Case& c, int row, int column) {
  if (c.group == 1 && c.m == 128) return {0, row, column};
  if (c.group == 2 && c.m == 256) return {row / 128, row % 128, column};
  if (c.group == 1) return {0, c.d_lane + 32 * (row / 16) + row % 16, column};
  const int r = row % 64;
  return column < c.n / 2 ? Place{row / 64, r, column} : Place{row / 64, 64 + r, column - c.n / 2};
}

// The byte offset of element (line, k) of a tile, before the swizzle. Tiles are dense: see
// leading and stride.
inline int offset_of(const Case& c, bool mn, int lines, int line, int k) {
  const int w = c.swizzle, e8 = memory_bits(c);
  if (!mn) {
    const int byte = k * e8 / 8;
    if (w == 0) return line / 8 * 256 + byte / 16 * 128 + line % 8 * 16 + byte % 16;
    return line / 8 * (8 * w) + line % 8 * w + byte;
  }
  const int e = e8 / 8, unit = 16 / e;
  if (e == 4) return line / 32 * 1024 + k / 4 * 512 + k % 4 * 128 + line % 32 * 4;  // 32-byte atoms
  if (w == 0) return k / 8 * (lines / unit * 128) + line / unit * 128 + k % 8 * 16 + line % unit * e;
  const int per_span = w / e;
  return line / per_span * (k_of(c) * w) + k * w + line % per_span * e;
}
struct Strides {
  int leading, stride, code;
};
inline Strides strides_of(const Case& c, bool mn, int lines) {
  const int w = c.swizzle, code = w == 128 ? 2 : w == 64 ? 4 : w == 32 ? 6 : 0;
  if (!mn) return w == 0 ? Strides{128, 256, 0} : Strides{16, 8 * w, code};
  const int e = memory_bits(c) / 8;
  if (e == 4) return {1024, 512, 1};
  if (w == 0) return {lines / (16 / e) * 128, 128, 0};
  return {k_of(c) * w, 8 * w, code};
}
inline int swizzled(const Case& c, bool mn, int address) {
  if (mn && memory_bits(c) == 32) return address ^ (address >> 7 & 3) << 5;
  return c.swizzle ? address ^ (address >> 7 & (c.swizzle / 16 - 1)) << 4 : address;
}

struct Image {  // of one block
  std::vector<uint8_t> shared = std::vector<uint8_t>(kSharedBytes, 0xA5);
  std::vector<uint32_t> tmem;  // [column][lane]
  uint32_t& cell(int column, int lane) { return tmem[size_t(column * kLanes + lane)]; }
};

// 16 elements of 4 or 6 bits take the first 8 or 12 bytes of 16; packed fp4 and others are dense.
inline void put_element(const Case& c, const std::string& type, bool mn, int lines, int at, Image& image,
                        int line, int k, uint32_t code) {
  const int bits = type_of(type).bits;
  // A unit of 16 bytes, not yet swizzled.
  const auto put_bits = [&](int unit, int first, int count) {
    const int address = swizzled(c, mn, unit + kBase) - kBase;
    for (int i = 0; i < count; ++i) {
      uint8_t& byte = image.shared[size_t(address + (first + i) / 8)];
      const int bit = (first + i) % 8;
      byte = uint8_t((byte & ~(1 << bit)) | int(code >> i & 1) << bit);
    }
  };
  const int offset = at + offset_of(c, mn, lines, line, k), in_unit = offset % 16;
  if (packed(c)) return put_bits(offset - in_unit, in_unit * 8 + k % 2 * 4, 4);
  put_bits(offset - in_unit, bits < 8 ? in_unit * bits : in_unit * 8, bits);
}

inline void put_a_in_tmem(const Case& c, const Data& d, std::vector<Image>& images) {
  const int k = k_of(c), each = k / 8, bits = 32 / each;
  for (int row = 0; row < c.m; ++row) {
    for (int i = 0; i < k; ++i) {
      uint32_t code = d.a[size_t(row * k + i)];
      if (c.a == "e2m1" && !packed(c)) code <<= 2;
      const Place place = place_of_d(c, row, 0);
      for (const int lane : {place.lane, c.group == 2 && c.m == 128 ? place.lane + 64 : place.lane}) {
        uint32_t& word = images[size_t(place.block)].cell(kATmem + i / each, lane);
        const uint32_t mask = bits == 32 ? ~0u : ((1u << bits) - 1) << (i % each * bits);
        word = (word & ~mask) | code << (i % each * bits);
      }
    }
  }
}

inline void put_scale(Image& image, int column, int lane, int byte, uint8_t code) {
  uint32_t& word = image.cell(column, lane);
  word = (word & ~(0xFFu << (8 * byte))) | uint32_t(code) << (8 * byte);
}
inline void put_scales(const Case& c, const Data& d, std::vector<Image>& images) {
  const bool two_by_two = c.group == 2 && c.m == 128;
  for (int j = 0; j < c.scales; ++j) {
    for (int row = 0; row < c.m; ++row) {
      const int r = row % (c.m / c.group);
      for (int q = 0; q < 4; ++q)
        put_scale(images[size_t(row / (c.m / c.group))], kSfa + r / 32, r % 32 + 32 * q, c.sfa_id + j,
                  d.sfa[size_t(row * c.scales + j)]);
    }
    for (int n = 0; n < c.n; ++n) {
      const int half = two_by_two ? n / (c.n / 2) : 0, r = two_by_two ? n % (c.n / 2) : n;
      for (Image& image : images) {
        for (int q = two_by_two ? 2 * half : 0; q < (two_by_two ? 2 * half + 2 : 4); ++q)
          put_scale(image, kSfb + r / 32, r % 32 + 32 * q, c.sfb_id + j, d.sfb[size_t(n * c.scales + j)]);
      }
    }
  }
}

// Everything that is not an operand is noise.
inline std::vector<Image> images_of(const Case& c, const Data& d, std::mt19937& engine) {
  std::vector<Image> images(size_t(c.group));
  for (Image& image : images) {
    for (int i = 0; i < kColumns * kLanes; ++i) image.tmem.push_back(engine());
    for (uint8_t& byte : image.shared) byte = uint8_t(engine());
  }
  const int k = k_of(c), rows = c.m / c.group, columns = c.n / c.group;
  for (int i = 0; i < k; ++i) {
    for (int row = 0; row < c.m && !c.a_in_tmem; ++row)
      put_element(c, c.a, c.a_mn, rows, kAt, images[size_t(row / rows)], row % rows, i,
                  d.a[size_t(row * k + i)]);
    for (int n = 0; n < c.n; ++n)
      put_element(c, c.b, c.b_mn, columns, kBt, images[size_t(n / columns)], n % columns, i,
                  d.b[size_t(n * k + i)]);
  }
  if (c.a_in_tmem) put_a_in_tmem(c, d, images);
  if (scaled(c)) put_scales(c, d, images);
  return images;
}

inline uint32_t f16_bits(double value) {  // whole numbers and eighths, not too large: exact
  const auto bits = std::bit_cast<uint64_t>(value);
  if (value == 0) return 0;
  return uint32_t(bits >> 63 << 15) | uint32_t((bits >> 52 & 0x7FF) - 1023 + 15) << 10 |
         uint32_t(bits >> 42 & 0x3FF);
}
inline uint32_t with_value(const Case& c, uint32_t cell, double value) {
  return c.half ? (cell & 0xFFFF0000u) | f16_bits(value) : std::bit_cast<uint32_t>(float(value));
}

// ---- the instruction ----

// PTX ISA, "Instruction descriptor".
inline uint32_t instruction_descriptor(const Case& c) {
  const auto code = [&](const std::string& type) -> uint32_t {
    if (packed(c)) return 1;
    if (type == "f16" || type == "e4m3") return 0;
    if (type == "bf16" || type == "e5m2") return 1;
    if (type == "tf32") return 2;
    return type == "e2m3" ? 3 : type == "e3m2" ? 4 : 5;
  };
  uint32_t bits = code(c.a) << 7 | code(c.b) << 10 | uint32_t(c.negate_a) << 13 | uint32_t(c.negate_b) << 14 |
                  uint32_t(c.a_mn) << 15 | uint32_t(c.b_mn) << 16 | uint32_t(c.n / 8) << 17 |
                  uint32_t(c.m / 16) << 24;
  if (!scaled(c)) return bits | (c.half ? 0u : 1u) << 4;
  return bits | uint32_t(c.sfb_id) << 4 | (c.ue4m3 ? 0u : 1u) << 23 | uint32_t(c.sfa_id) << 29;
}
inline uint64_t matrix_descriptor(const Strides& s, int at) {
  return uint64_t(at + kBase) >> 4 | uint64_t(s.leading >> 4) << 16 | uint64_t(s.stride >> 4) << 32 |
         1ull << 46 | uint64_t(s.code) << 61;
}

inline std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}
inline std::string move(int bits, const std::string& reg, uint64_t value) {
  return "mov.b" + std::to_string(bits) + " " + reg + ", " + hex(value) + ";\n";
}

// "tcgen05.mma..." for registers that set_operands has filled.
inline std::string instruction(const Case& c) {
  std::string text = "tcgen05.mma.cta_group::" + std::to_string(c.group) + ".kind::" + c.kind;
  if (scaled(c)) text += ".block_scale" + (c.vector.empty() ? "" : "." + c.vector);
  if (!c.collector.empty()) text += ".collector::a::" + c.collector;
  text += std::string(" [%r20], ") + (c.a_in_tmem ? "[%r21]" : "%rd10") + ", %rd11, %r22, ";
  if (scaled(c)) return text + "[%r23], [%r24], %p4;\n";
  if (c.masked)
    text +=
        c.group == 1 ? "{%r30, %r31, %r32, %r33}, " : "{%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}, ";
  return text + "%p4" + (c.scale_d >= 0 ? ", " + std::to_string(c.scale_d) : "") + ";\n";
}

inline uint32_t mask_word(int i) { return 0x11110001u * uint32_t(i + 1); }

inline std::string set_operands(const Case& c) {
  std::string text = move(32, "%r20", uint32_t(kD) | uint32_t(c.d_lane) << 16) +
                     move(32, "%r21", uint32_t(kATmem) | uint32_t(c.d_lane) << 16) +
                     move(32, "%r22", instruction_descriptor(c)) +
                     move(32, "%r23", uint32_t(kSfa) | uint32_t(c.sfa_id) << 30) +
                     move(32, "%r24", uint32_t(kSfb) | uint32_t(c.sfb_id) << 30) +
                     move(64, "%rd10", matrix_descriptor(strides_of(c, c.a_mn, c.m / c.group), kAt)) +
                     move(64, "%rd11", matrix_descriptor(strides_of(c, c.b_mn, c.n / c.group), kBt)) +
                     "setp.eq.u32 %p4, 0, " + (c.p ? "0" : "1") + ";\n";
  for (int i = 0; i < 8; ++i) text += move(32, "%r3" + std::to_string(i), mask_word(i));
  return text;
}

inline std::string column_list(int first) {
  std::string text = "{";
  for (int i = 0; i < 16; ++i) text += (i ? ", %r" : "%r") + std::to_string(first + i);
  return text + "}";
}

// Moves columns of the warp's 32 lanes, 16 at a time. %rd3: global memory of this lane's cell of
// the first one; columns lie 512 bytes apart.
inline std::string columns_of(bool in, int first, int count) {
  std::string text = "add.u32 %r11, %r10, " + std::to_string(first) +
                     ";\nmov.u64 %rd4, %rd3;\nmov.u32 %r12, 0;\nL" + std::string(in ? "IN" : "OUT") + ":\n";
  if (!in)
    text += "tcgen05.ld.sync.aligned.32x32b.x16.b32 " + column_list(40) +
            ", [%r11];\ntcgen05.wait::ld.sync.aligned;\n";
  for (int i = 0; i < 16; ++i) {
    const std::string cell = "[%rd4+" + std::to_string(512 * i) + "]", reg = "%r" + std::to_string(40 + i);
    text += in ? "ld.global.b32 " + reg + ", " + cell + ";\n" : "st.global.b32 " + cell + ", " + reg + ";\n";
  }
  if (in) text += "tcgen05.st.sync.aligned.32x32b.x16.b32 [%r11], " + column_list(40) + ";\n";
  return text +
         "add.u32 %r11, %r11, 16;\nadd.u64 %rd4, %rd4, 8192;\nadd.u32 %r12, %r12, 16;\n"
         "setp.lt.u32 %p6, %r12, " +
         std::to_string(count) + ";\n@%p6 bra L" + (in ? "IN" : "OUT") + ";\n";
}
inline std::string all_columns(bool in) { return columns_of(in, 0, kColumns); }

struct Kernel {
  int group = 1;
  std::string issue;             // in thread 0 of the first block
  std::string after;             // in the same thread, behind the commit
  std::string by = "@!%p3 bra";  // who skips it
  bool fill_tmem = true, proxy_fence = true;
  int d_columns = 0;  // that are read where tensor memory is not filled
  std::string columns = "512";
};

// Parameters: out, in. `in`, for each block: the image of shared memory, then that of tensor
// memory; `out` gets tensor memory.
inline std::string kernel(const Kernel& k) {
  const std::string group = ".cta_group::" + std::to_string(k.group);
  const std::string sync =
      k.group == 1 ? "bar.sync 0;\n" : "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  const std::string multicast = k.group == 1 ? ".shared::cluster.b64 [%r9];\n"
                                             : ".shared::cluster.multicast::cluster.b64 [%r9], %h0;\n";
  return R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{
.shared .align 1024 .b8 buffer[65536];
.shared .align 8 .b64 bar;
.shared .align 4 .b32 slot;
.reg .pred %p<9>; .reg .b16 %h<4>; .reg .b32 %r<60>; .reg .b64 %rd<20>;
ld.param.u64 %rd0, [out];
ld.param.u64 %rd1, [in];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, buffer;
mov.u32 %r9, bar;
mov.u16 %h0, 3;
setp.eq.u32 %p0, %r0, 0;
setp.lt.u32 %p1, %r0, 32;
add.u32 %r3, %r0, %r1;
setp.eq.u32 %p3, %r3, 0;
mul.wide.u32 %rd2, %r1, 327680;
add.u64 %rd2, %rd1, %rd2;
shl.b32 %r4, %r0, 4;
FILL:
cvt.u64.u32 %rd5, %r4;
add.u64 %rd5, %rd5, %rd2;
ld.global.v4.b32 {%r40, %r41, %r42, %r43}, [%rd5];
add.u32 %r5, %r2, %r4;
st.shared.v4.b32 [%r5], {%r40, %r41, %r42, %r43};
add.u32 %r4, %r4, 2048;
setp.lt.u32 %p5, %r4, 65536;
@%p5 bra FILL;
)" + std::string(k.proxy_fence ? "fence.proxy.async.shared::cta;\n" : "") +
         R"(@%p0 mbarrier.init.shared::cta.b64 [bar], 1;
@%p0 fence.mbarrier_init.release.cluster;
mov.u32 %r6, slot;
@!%p1 bra ALLOCATED;
tcgen05.alloc)" +
         group + ".sync.aligned.shared::cta.b32 [%r6], " + k.columns + R"(;
ALLOCATED:
tcgen05.fence::before_thread_sync;
)" + sync +
         R"(tcgen05.fence::after_thread_sync;
ld.shared.b32 %r7, [slot];
shl.b32 %r10, %r0, 16;
and.b32 %r10, %r10, 0x600000;
add.u32 %r10, %r10, %r7;
add.u64 %rd3, %rd2, 65536;
mad.wide.u32 %rd3, %r0, 4, %rd3;
)" + (k.fill_tmem ? all_columns(true) : "") +
         R"(tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync;
)" + sync +
         R"(tcgen05.fence::after_thread_sync;
)" + k.by +
         " ISSUED;\n" + k.issue + "tcgen05.commit" + group + ".mbarrier::arrive::one" + multicast + k.after +
         R"(ISSUED:
mbarrier.try_wait.parity.shared::cta.b64 %p7, [bar], 0;
@!%p7 bra ISSUED;
tcgen05.fence::after_thread_sync;
mul.wide.u32 %rd3, %r1, 262144;
add.u64 %rd3, %rd3, %rd0;
mad.wide.u32 %rd3, %r0, 4, %rd3;
)" +
         (k.fill_tmem   ? all_columns(false)
          : k.d_columns ? columns_of(false, kD, k.d_columns)
                        : "") +
         "tcgen05.fence::before_thread_sync;\n" + sync + "@!%p1 bra END;\ntcgen05.dealloc" + group +
         ".sync.aligned.b32 %r7, " + k.columns + ";\nEND:\nret;\n}\n";
}

}  // namespace mma_test
