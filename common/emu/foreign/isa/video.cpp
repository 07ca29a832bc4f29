// SPDX-License-Identifier: MIT
//
// Video instructions: sums, differences, comparisons and shifts of parts of a word, one part
// (vadd), two halves (vadd2) or four bytes at once (vadd4). PTX ISA: "Scalar Video
// Instructions", "SIMD Video Instructions". CUDA C++ gets vabsdiff2 and vabsdiff4 for
// __vabsdiffu4, __vsadu4 and their kin.

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "common/emu/core/units/alu.h"
#include "common/emu/foreign/isa/foreign_forms.h"

namespace gg::emu {
namespace {

struct Part {  // bits of a word, or of the two words b and a side by side, a's first
  uint8_t first = 0, bits = 32;
};
enum class Behind : uint8_t { nothing, merge, add, min, max };  // what is done with c

using VideoOp = int64_t (*)(int64_t a, int64_t b);
struct Video {
  VideoOp op = nullptr;
  int count = 1;  // parts of the result
  Part a[4], b[4], d[4];
  bool two_words = false;  // parts of a and b are numbered through both
  bool a_signed = false, b_signed = false, d_signed = false, saturates = false;
  uint8_t mask = 1;  // parts that are written or added; the others are c's
  Behind behind = Behind::nothing;
  // A value is saturated to one part of a word: machine code of sm_90a takes one below 0 for a
  // large one, where the ISA's formula gives the least.
  bool below_zero_is_large = false;
};

int64_t part_of(uint64_t words, const Part& p, bool is_signed) {
  const uint64_t above = words >> p.first << (64 - p.bits);
  return is_signed ? int64_t(above) >> (64 - p.bits) : int64_t(above >> (64 - p.bits));
}

int64_t saturated(int64_t value, int bits, bool is_signed) {
  const int64_t least = is_signed ? -(int64_t(1) << (bits - 1)) : 0;
  const int64_t most = (int64_t(1) << (bits - is_signed)) - 1;
  return std::clamp(value, least, most);
}

uint32_t with_part(uint32_t word, const Part& p, uint64_t value) {
  const uint64_t ones = ((uint64_t(1) << p.bits) - 1) << p.first;
  return uint32_t((word & ~ones) | (value << p.first & ones));
}

uint32_t video_result(const Video& v, uint32_t a, uint32_t b, uint32_t c) {
  const uint64_t both = uint64_t(b) << 32 | a;
  const bool whole = v.behind == Behind::nothing || v.behind == Behind::merge;
  uint32_t result = v.behind == Behind::nothing ? 0 : c;
  int64_t sum = v.d_signed ? int64_t(int32_t(c)) : int64_t(c);
  for (int i = 0; i < v.count; ++i) {
    if (!(v.mask >> i & 1)) continue;
    int64_t value = v.op(part_of(v.two_words ? both : a, v.a[i], v.a_signed),
                         part_of(v.two_words ? both : b, v.b[i], v.b_signed));
    if (v.below_zero_is_large && value < 0) value = uint32_t(value);
    if (v.saturates) value = saturated(value, v.d[i].bits, v.d_signed);
    if (whole) {
      result = with_part(result, v.d[i], uint64_t(value));
    } else if (v.behind == Behind::add) {
      sum += value;
    } else {
      const int64_t narrow = v.d_signed ? int64_t(int32_t(value)) : int64_t(uint32_t(value));
      sum = v.behind == Behind::min ? std::min(narrow, sum) : std::max(narrow, sum);
    }
  }
  return whole ? result : uint32_t(sum);
}

Next video(Warp& w, const Instr& in, Mask m) {
  const Video& v = *static_cast<const Video*>(in.extra);
  return map3<uint32_t, uint32_t, uint32_t, uint32_t>(
      w, in, m, [&](uint32_t a, uint32_t b, uint32_t c) { return video_result(v, a, b, c); });
}

// ---- operations ----

int64_t v_add(int64_t a, int64_t b) { return a + b; }
int64_t v_sub(int64_t a, int64_t b) { return a - b; }
int64_t v_absdiff(int64_t a, int64_t b) { return std::abs(a - b); }
int64_t v_min(int64_t a, int64_t b) { return std::min(a, b); }
int64_t v_max(int64_t a, int64_t b) { return std::max(a, b); }
// Rounded to the nearest, halves away from zero.
int64_t v_average(int64_t a, int64_t b) { return (a + b + (a + b >= 0)) >> 1; }
int64_t v_shl_clamp(int64_t a, int64_t b) { return int64_t(uint64_t(a) << std::min<int64_t>(b, 32)); }
int64_t v_shl_wrap(int64_t a, int64_t b) { return int64_t(uint64_t(a) << (b & 31)); }
int64_t v_shr_clamp(int64_t a, int64_t b) { return a >> std::min<int64_t>(b, 32); }
int64_t v_shr_wrap(int64_t a, int64_t b) { return a >> (b & 31); }
int64_t v_eq(int64_t a, int64_t b) { return a == b; }
int64_t v_ne(int64_t a, int64_t b) { return a != b; }
int64_t v_lt(int64_t a, int64_t b) { return a < b; }
int64_t v_le(int64_t a, int64_t b) { return a <= b; }
int64_t v_gt(int64_t a, int64_t b) { return a > b; }
int64_t v_ge(int64_t a, int64_t b) { return a >= b; }

// ---- decoding ----

// Takes .b2 or .h1 from an operand: a part of a word. Without one, all of it.
Part take_part(Operand& o) {
  const std::string s = std::exchange(o.selector, "");
  if (s.empty()) return {};
  const int number = s.size() == 2 ? s[1] - '0' : -1;
  if (s[0] == 'b' && number >= 0 && number < 4) return {uint8_t(8 * number), 8};
  if (s[0] == 'h' && number >= 0 && number < 2) return {uint8_t(16 * number), 16};
  throw Unsupported{"a register with ." + s};
}

// Takes .b7210 or .h32 from an operand: for each part of the result, the highest first, the part
// that it is made of. Without one they are the operand's own.
void take_parts(Operand& o, int count, int own, Part (&parts)[4]) {
  const std::string s = std::exchange(o.selector, "");
  const int bits = 32 / count;
  if (!s.empty() && (s[0] != (count == 4 ? 'b' : 'h') || int(s.size()) != count + 1))
    throw Unsupported{"a register with ." + s};
  for (int i = 0; i < count; ++i) {
    const int number = s.empty() ? own * count + i : s[size_t(count - i)] - '0';
    if (number < 0 || number >= 2 * count) throw Unsupported{"a register with ." + s};
    parts[i] = {uint8_t(number * bits), uint8_t(bits)};
  }
}

// Takes .b310 or .h1 from the destination: the parts that are written. Without one, all.
uint8_t take_mask(Operand& o, int count) {
  const std::string s = std::exchange(o.selector, "");
  if (s.empty()) return uint8_t((1 << count) - 1);
  uint8_t mask = 0;
  int before = count;
  for (size_t i = 1; i < s.size(); ++i) {
    const int number = s[i] - '0';
    if (number < 0 || number >= before) throw Unsupported{"a register with ." + s};
    mask |= uint8_t(1 << number);
    before = number;
  }
  if (s[0] != (count == 4 ? 'b' : 'h') || mask == 0) throw Unsupported{"a register with ." + s};
  return mask;
}

void take_video_types(Decoder& d, bool compares, bool shifts, Video& v) {
  const auto is_signed = [&] { return take_type_of(d, {"u32", "s32"}).kind == 's'; };
  if (!compares) v.d_signed = is_signed();
  v.a_signed = is_signed();
  v.b_signed = is_signed();
  if (shifts && v.b_signed) throw Unsupported{"a shift by .s32"};
}

void decode_parts(Decoder& d, Video v, int count) {
  v.count = count;
  v.two_words = true;
  v.saturates = d.take("sat");
  const bool adds = d.take("add");
  if (adds && v.saturates) throw Unsupported{".sat together with .add"};
  v.behind = adds ? Behind::add : Behind::merge;
  d.done();
  want_operands(d, 4);
  Operand to = d.operand(0), a = d.operand(1), b = d.operand(2);
  v.mask = take_mask(to, count);
  take_parts(a, count, 0, v.a);
  take_parts(b, count, 1, v.b);
  for (int i = 0; i < count; ++i) v.d[i] = {uint8_t(32 / count * i), uint8_t(32 / count)};
  d.instr.d = d.destination(to, type_info("b32"));
  d.instr.s[0] = d.source(a, type_info("b32"));
  d.instr.s[1] = d.source(b, type_info("b32"));
  d.instr.s[2] = d.source(3, type_info("b32"));
  d.extra(v);
  d.instr.run = video;
}

void decode_one(Decoder& d, Video v) {
  v.saturates = d.take("sat");
  const int behind = d.take_one({"add", "min", "max"});
  d.done();
  Operand to = d.operand(0), a = d.operand(1), b = d.operand(2);
  const bool merges = !to.selector.empty();
  if (merges && behind >= 0) throw Unsupported{"a part of the destination together with a second operation"};
  want_operands(d, merges || behind >= 0 ? 4 : 3);
  const Behind kinds[] = {Behind::add, Behind::min, Behind::max};
  v.behind = merges ? Behind::merge : behind >= 0 ? kinds[behind] : Behind::nothing;
  v.below_zero_is_large = merges && v.saturates;
  v.d[0] = take_part(to);
  v.a[0] = take_part(a);
  v.b[0] = take_part(b);
  d.instr.d = d.destination(to, type_info("b32"));
  d.instr.s[0] = d.source(a, type_info("b32"));
  d.instr.s[1] = d.source(b, type_info("b32"));
  d.instr.s[2] = d.operands() == 4 ? d.source(3, type_info("b32")) : d.constant(0, 32);
  d.extra(v);
  d.instr.run = video;
}

template <VideoOp kOp, int kCount>
void decode_video(Decoder& d) {
  Video v;
  v.op = kOp;
  take_video_types(d, false, false, v);
  kCount == 1 ? decode_one(d, v) : decode_parts(d, v, kCount);
}
template <int kCount>
void decode_vset(Decoder& d) {
  constexpr VideoOp kComparisons[] = {v_eq, v_ne, v_lt, v_le, v_gt, v_ge};
  const int how = d.take_one({"eq", "ne", "lt", "le", "gt", "ge"});
  if (how < 0) throw Unsupported{"no comparison"};
  Video v;
  v.op = kComparisons[how];
  take_video_types(d, true, false, v);
  kCount == 1 ? decode_one(d, v) : decode_parts(d, v, kCount);
}
template <VideoOp kClamp, VideoOp kWrap>
void decode_vshift(Decoder& d) {
  const int mode = d.take_one({"clamp", "wrap"});
  if (mode < 0) throw Unsupported{"no .clamp or .wrap"};
  Video v;
  v.op = mode == 0 ? kClamp : kWrap;
  take_video_types(d, false, true, v);
  decode_one(d, v);
}

}  // namespace

std::vector<Form> video_forms() {
  return computing(Family::integer, {{"vadd", decode_video<v_add, 1>},
                                     {"vadd2", decode_video<v_add, 2>},
                                     {"vadd4", decode_video<v_add, 4>},
                                     {"vsub", decode_video<v_sub, 1>},
                                     {"vsub2", decode_video<v_sub, 2>},
                                     {"vsub4", decode_video<v_sub, 4>},
                                     {"vabsdiff", decode_video<v_absdiff, 1>},
                                     {"vabsdiff2", decode_video<v_absdiff, 2>},
                                     {"vabsdiff4", decode_video<v_absdiff, 4>},
                                     {"vmin", decode_video<v_min, 1>},
                                     {"vmin2", decode_video<v_min, 2>},
                                     {"vmin4", decode_video<v_min, 4>},
                                     {"vmax", decode_video<v_max, 1>},
                                     {"vmax2", decode_video<v_max, 2>},
                                     {"vmax4", decode_video<v_max, 4>},
                                     {"vavrg2", decode_video<v_average, 2>},
                                     {"vavrg4", decode_video<v_average, 4>},
                                     {"vset", decode_vset<1>},
                                     {"vset2", decode_vset<2>},
                                     {"vset4", decode_vset<4>},
                                     {"vshl", decode_vshift<v_shl_clamp, v_shl_wrap>},
                                     {"vshr", decode_vshift<v_shr_clamp, v_shr_wrap>}});
}

}  // namespace gg::emu
