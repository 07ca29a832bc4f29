// SPDX-License-Identifier: MIT
//
// Arithmetic of compute capability 10.0 on more than two numbers: add, sub, mul and fma of
// .f32x2, two f32 in a register of 64 bits; min and max of three f32; and redux.sync of f32.
// PTX ISA: "Floating Point
// Instructions: add, sub, mul, fma, min, max", "Parallel Synchronization and Communication
// Instructions: redux.sync". Pairs are made of the f32 handlers of units/float_arithmetic.h.

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/alu.h"

namespace gg::emu {
namespace {

// ---- .f32x2 ----

// The f32 instruction that is executed twice, on registers of its own.
struct Twice {
  Instr half;
};

Next both_halves(Warp& w, const Instr& in, Mask m) {
  const Twice& f = *static_cast<const Twice*>(in.extra);
  float results[2][kLanes];
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < in.count; ++i) {
      const float* pairs = w.at<float>(in.s[i]);
      float* const source = w.at<float>(f.half.s[i]);
      for (int lane = 0; lane < kLanes; ++lane) source[lane] = pairs[2 * lane + half];
    }
    f.half.run(w, f.half, kAllLanes);
    std::memcpy(results[half], w.at<float>(f.half.d), sizeof results[half]);
  }
  float* const pairs = w.at<float>(in.d);
  for (Lanes l(m); l; ++l) {
    pairs[2 * *l] = results[0][*l];
    pairs[2 * *l + 1] = results[1][*l];
  }
  return Next::go_on;
}

void decode_pairs(Decoder& d) {
  const int rounding = d.take_one({"rn", "rz", "rm", "rp"});
  const bool ftz = d.take("ftz");
  const TypeInfo type = take_type_of(d, {"f32x2"});
  d.done();
  const std::string& opcode = d.statement().opcode;
  const size_t sources = opcode == "fma" ? 3 : 2;
  if (rounding < 0 && sources == 3) throw Unsupported{"no rounding"};
  Twice f;
  f.half.run = f32_arithmetic(opcode, std::max(rounding, 0), ftz);
  f.half.variant2 = uint8_t(std::max(rounding, 0));
  for (size_t i = 0; i < sources; ++i) f.half.s[i] = d.scratch(32);
  f.half.d = d.scratch(32);
  d.extra(f);
  d.instr.count = uint16_t(sources);
  d.instr.run = both_halves;
  same_operands(d, sources, type);
}

// ---- extremes of f32 ----

enum : uint8_t { kMax = 1, kNaN = 2, kAbs = 4, kFtz = 8 };

// A NaN loses against a number, unless .NaN: then it wins. -0 is less than +0.
float extreme(float a, float b, uint8_t flags) {
  if (a != a || b != b) {
    const bool nan = (flags & kNaN) || (a != a && b != b);
    return nan ? std::bit_cast<float>(0x7FFFFFFFu) : a != a ? b : a;
  }
  const bool a_is_less = a < b || (a == b && std::signbit(a));
  return a_is_less == bool(flags & kMax) ? b : a;
}
float operand(float x, uint8_t flags) {
  if (flags & kAbs) x = std::fabs(x);
  return flags & kFtz && std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

Next extreme_of_three(Warp& w, const Instr& in, Mask m) {
  const uint8_t flags = in.variant;
  return map3<float, float, float, float>(w, in, m, [=](float a, float b, float c) {
    return extreme(extreme(operand(a, flags), operand(b, flags), flags), operand(c, flags), flags);
  });
}
template <uint8_t kWhich>
void decode_extreme(Decoder& d) {  // min, max
  const bool ftz = d.take("ftz"), nan = d.take("NaN"), abs = d.take("abs");
  const TypeInfo type = take_type_of(d, {"f32"});
  d.done();
  if (d.operands() != 4) throw Unsupported{"no third source"};
  d.instr.variant = uint8_t(kWhich | (nan ? kNaN : 0) | (abs ? kAbs : 0) | (ftz ? kFtz : 0));
  d.instr.run = extreme_of_three;
  same_operands(d, 3, type);
}

// The lanes that take part are those that warp.cpp describes.
Next redux(Warp& w, const Instr& in, Mask m) {
  const float* a = w.at<float>(in.s[0]);
  float result = std::bit_cast<float>(0x7FFFFFFFu);
  bool first = true;
  for (Lanes l(m); l; ++l) {
    const float x = operand(a[*l], in.variant);
    result = extreme(first ? x : result, x, in.variant);
    first = false;
  }
  float values[kLanes];
  std::fill(std::begin(values), std::end(values), result);
  put(w, in.d, m, values);
  return Next::go_on;
}
void decode_redux(Decoder& d) {
  if (!d.take("sync")) throw Unsupported{"no .sync"};
  const int op = d.take_one({"min", "max"});
  const bool abs = d.take("abs"), nan = d.take("NaN");
  const TypeInfo type = take_type_of(d, {"f32"});
  d.done();
  if (op < 0) throw Unsupported{"this operation"};
  want_operands(d, 3);
  d.instr.variant = uint8_t((op ? kMax : 0) | (nan ? kNaN : 0) | (abs ? kAbs : 0));
  d.instr.s[0] = d.source(1, type);
  d.instr.converged = true;
  d.instr.members = d.source(2, type_info("b32"));
  d.instr.d = d.destination(0, type);
  d.instr.run = redux;
}

}  // namespace

std::vector<Form> floating_pairs_forms() {
  std::vector<Form> forms = computing(Family::floating, {{"add", decode_pairs},
                                                         {"sub", decode_pairs},
                                                         {"mul", decode_pairs},
                                                         {"fma", decode_pairs},
                                                         {"min", decode_extreme<0>},
                                                         {"max", decode_extreme<kMax>}});
  forms.push_back({"redux", decode_redux, Family::warp});  // what it makes goes to all lanes
  return forms;
}

}  // namespace gg::emu
