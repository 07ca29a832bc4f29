// SPDX-License-Identifier: MIT
//
// f32 and f64 on the emulator. Every rounding is judged by exact arithmetic: a result is right if
// it is the neighbour of the exact value that the rounding asks for.

#include <cmath>
#include <limits>

#include "alu_cases.h"
#include "tests/quad.h"

namespace {

using namespace emu_test;

const std::vector<Kind> kF32 = {Kind::f32, Kind::f32, Kind::f32}, kF64 = {Kind::f64, Kind::f64, Kind::f64};

float f32(uint64_t bits) { return std::bit_cast<float>(uint32_t(bits)); }
double f64(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t code(float x) { return x != x ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(x); }
uint64_t code(double x) { return std::bit_cast<uint64_t>(x); }

enum Rounding { rn, rz, rm, rp };
const char* const kRoundings[] = {".rn", ".rz", ".rm", ".rp"};

// An exact value is T-rounded `near` plus a rest that only has to have the right sign.
template <class T>
T directed(T near, int rest, Rounding rounding) {
  if (rounding == rn || std::isnan(near)) return near;
  const T infinity = std::numeric_limits<T>::infinity();
  if (rest == 0) return near;  // exact; an infinite operand, too
  const bool positive = near > 0 || (near == 0 && rest > 0);
  const bool wants_up = rounding == rp || (rounding == rz && !positive);
  if (wants_up) return rest > 0 ? std::nextafter(near, infinity) : near;
  return rest < 0 ? std::nextafter(near, -infinity) : near;
}
template <class X>
int sign_of(X x) {
  return (x > 0) - (x < 0);
}

// f32: what the nearest result lacks is found exactly in double.
struct Exact {
  double high = 0, low = 0;  // their sum
};
Exact sum(double a, double b) {
  const double s = a + b, part = s - a;
  return {s, (a - (s - part)) + (b - part)};
}
float rounded(const Exact& x, Rounding rounding) {
  float near = float(x.high);  // off by one from the nearest at most, when `low` decides a tie
  if (!std::isfinite(x.high)) return near;
  const auto rest = [&](float r) {
    if (std::isinf(r)) return sign_of(x.high - double(r));
    const double difference = x.high - double(r);
    return difference != 0 && std::fabs(difference) > std::fabs(x.low) ? sign_of(difference)
                                                                       : sign_of(difference + x.low);
  };
  if (rounding == rn) {  // the tie that was none
    if (std::isinf(near)) {
      const bool less = std::fabs(x.high) == 0x1.ffffffp127 && sign_of(x.low) == -sign_of(x.high);
      return less ? std::nextafter(near, 0.0f) : near;
    }
    const double below = std::nextafter(near, -INFINITY), above = std::nextafter(near, INFINITY);
    if (x.low > 0 && std::isfinite(above) && x.high - near == (above - near) / 2) near = float(above);
    if (x.low < 0 && std::isfinite(below) && near - x.high == (near - below) / 2) near = float(below);
    return near;
  }
  if (std::isinf(near)) {
    const bool stays = rounding == (near > 0 ? rp : rm);
    return stays ? near : std::copysign(std::numeric_limits<float>::max(), near);
  }
  return directed(near, rest(near), rounding);
}
// The sign of a zero that a sum of opposite numbers gives.
float signed_zero(float r, double a, double b, Rounding rounding) {
  if (r != 0 || a + b != 0) return r;
  if (std::signbit(a) == std::signbit(b)) return float(a);
  return rounding == rm ? -0.0f : 0.0f;
}

float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
float saturated(float x) { return x >= 1 ? 1 : x > 0 ? x : 0; }

using Float3 = std::function<float(float, float, float, Rounding)>;

float exact_add(float a, float b, float, Rounding r) { return signed_zero(rounded(sum(a, b), r), a, b, r); }
float exact_sub(float a, float b, float, Rounding r) { return exact_add(a, -b, 0, r); }
float exact_mul(float a, float b, float, Rounding r) {
  const double product = double(a) * b;
  return product == 0 ? float(product) : rounded({product, 0}, r);
}
float exact_fma(float a, float b, float c, Rounding r) {
  const double product = double(a) * b;
  return signed_zero(rounded(sum(product, c), r), product, c, r);
}
float exact_div(float a, float b, float, Rounding r) {
  const float near = a / b;
  if (std::isnan(near) || b == 0 || a == 0 || std::isinf(a)) return near;
  if (std::isinf(b)) return near;
  if (std::isinf(near)) return rounded({near > 0 ? 1e300 : -1e300, 0}, r);
  // a / b - near has the sign of (a - near * b) / b, which is exact in double.
  return directed(near, sign_of(double(a) - double(near) * b) * sign_of(b), r);
}
float exact_rcp(float a, float, float, Rounding r) { return exact_div(1, a, 0, r); }
float exact_sqrt(float a, float, float, Rounding r) {
  const float near = std::sqrt(a);
  if (!std::isfinite(near) || a == 0) return near;
  return directed(near, sign_of(double(a) - double(near) * near), r);
}

// .ftz: would the result be below 2^-126 if there were smaller numbers with as many bits? Scaled
// up, there are.
bool tiny(const std::string& opcode, const float (&x)[3], Rounding r) {
  const float up = 0x1p64f;
  float y = 1;
  if (opcode == "add") y = exact_add(x[0] * up, x[1] * up, 0, r);
  if (opcode == "sub") y = exact_sub(x[0] * up, x[1] * up, 0, r);
  if (opcode == "mul") y = exact_mul(x[0] * 0x1p32f, x[1] * 0x1p32f, 0, r);
  if (opcode == "fma" || opcode == "mad") y = exact_fma(x[0] * 0x1p32f, x[1] * 0x1p32f, x[2] * up, r);
  if (opcode == "div") y = exact_div(x[0] * 0x1p32f, x[1] * 0x1p-32f, 0, r);
  if (opcode == "rcp") y = exact_div(up, x[0], 0, r);
  return std::fabs(y) < 0x1p-62f;
}

void check_f32(const std::string& opcode, int sources, const Float3& f, bool always_rounded,
               bool may_saturate) {
  const char* const operands[] = {"", " %d, %a;", " %d, %a, %b;", " %d, %a, %b, %c;"};
  const Sizes sizes = {32, 32, sources > 1 ? 32 : 0, sources > 2 ? 32 : 0};
  const std::vector<Operands> values = operands_of({kF32.begin(), kF32.begin() + sources});
  for (int r = always_rounded ? 0 : -1; r < 4; ++r) {
    for (const bool ftz : {false, true}) {
      for (const bool sat : {false, true}) {
        if (sat && !may_saturate) continue;
        const std::string name =
            opcode + (r < 0 ? "" : kRoundings[r]) + (ftz ? ".ftz" : "") + (sat ? ".sat" : "");
        check(name + ".f32" + operands[sources], sizes, values, [=](const Operands& o) {
          float x[3];
          for (size_t i = 0; i < 3; ++i) x[i] = ftz ? flushed(f32(o[i])) : f32(o[i]);
          float y = f(x[0], x[1], x[2], Rounding(std::max(r, 0)));
          if (ftz && std::fabs(y) <= 0x1p-126f && tiny(opcode, x, Rounding(std::max(r, 0))))
            y = std::copysign(0.0f, y);
          return code(sat ? saturated(y) : y);
        });
      }
    }
  }
}

TEST(F32, SumsAndProducts) {
  check_f32("add", 2, exact_add, false, true);
  check_f32("sub", 2, exact_sub, false, true);
  check_f32("mul", 2, exact_mul, false, true);
  check_f32("fma", 3, exact_fma, true, true);
  check_f32("mad", 3, exact_fma, true, true);
}
// Products just below 2^-126: some round to it, and some of these are flushed.
TEST(F32, FlushesAfterRounding) {
  std::vector<Operands> operands;
  for (uint32_t m = 0x800001; m < 0xFFFFFF; m += 0x1357) {
    const uint32_t n = uint32_t((1ull << 47) / m);  // m * n is at most m short of 2^47
    const float a = float(m) * 0x1p-90f, b = float(n) * 0x1p-83f;
    operands.push_back({code(m & 2 ? -a : a), code(b), m & 4 ? 0u : 0x00800000u, 0});
    operands.push_back({code(a), code(std::nextafter(b, 1.0f)), 0x80800000u, 0});
  }
  for (int r = 0; r < 4; ++r) {
    for (const bool fused : {false, true}) {
      const std::string opcode = fused ? "fma" : "mul";
      check(opcode + kRoundings[r] + ".ftz.f32 %d, %a, %b" + (fused ? ", %c;" : ";"),
            {32, 32, 32, fused ? 32 : 0}, operands, [=](const Operands& o) {
              const float x[3] = {f32(o[0]), f32(o[1]), fused ? f32(o[2]) : 0};
              const float y =
                  fused ? exact_fma(x[0], x[1], x[2], Rounding(r)) : exact_mul(x[0], x[1], 0, Rounding(r));
              return code(tiny(opcode, x, Rounding(r)) ? std::copysign(0.0f, y) : y);
            });
    }
  }
}
TEST(F32, QuotientsAndRoots) {
  check_f32("div", 2, exact_div, true, false);
  check_f32("rcp", 1, exact_rcp, true, false);
  check_f32("sqrt", 1, exact_sqrt, true, false);
}

// ---- f64: exact in 113 bits, for operands whose exponents are not too far apart ----

using gg::Quad;

// An H200 hands on an operand that is a NaN, made quiet: b before c before a, of a quotient a
// before b. Its own is 0xFFF8000000000000.
uint64_t nan_of(const std::string& opcode, const Operands& o) {
  const std::array<size_t, 3> order =
      opcode == "div" ? std::array<size_t, 3>{0, 1, 2} : std::array<size_t, 3>{1, 2, 0};
  for (const size_t i : order) {
    if (std::isnan(f64(o[i]))) return o[i] | 1ull << 51;
  }
  return 0xFFF8000000000000;
}

double nearest(Quad x) { return double(x); }
double rounded_quad(Quad x, Rounding r) {
  const double near = nearest(x);
  if (!std::isfinite(near)) {
    if (x != x || !(x < Quad(1e308) * 1e300)) return near;
    const bool stays = r == rn || r == (near > 0 ? rp : rm);
    return stays ? near : std::copysign(std::numeric_limits<double>::max(), near);
  }
  return directed(near, sign_of(x - Quad(near)), r);
}
// Operands with one exponent's neighbourhood, and the special values that double arithmetic
// settles by itself.
std::vector<Operands> f64_operands(size_t count) {
  std::vector<Operands> all;
  for (Operands o : operands_of({kF64.begin(), kF64.begin() + long(count)})) {
    for (size_t i = 0; i < count; ++i) {
      const double x = f64(o[i]);
      if (std::isnan(x) || std::isinf(x) || x == 0) continue;
      const int64_t exponent = int64_t(o[i] >> 52 & 0x7FF) % 24 - 12 + 1023;
      o[i] = (o[i] & ~(0x7FFull << 52)) | uint64_t(exponent) << 52;
    }
    all.push_back(o);
  }
  return all;
}
void check_f64(const std::string& opcode, int sources, bool always_rounded,
               const std::function<double(double, double, double, Rounding)>& f) {
  const char* const operands[] = {"", " %d, %a;", " %d, %a, %b;", " %d, %a, %b, %c;"};
  const Sizes sizes = {64, 64, sources > 1 ? 64 : 0, sources > 2 ? 64 : 0};
  for (int r = always_rounded ? 0 : -1; r < 4; ++r) {
    const std::string name = opcode + (r < 0 ? "" : kRoundings[r]) + ".f64" + operands[sources];
    const auto want = [=](const Operands& o) {
      return f(f64(o[0]), f64(o[1]), f64(o[2]), Rounding(std::max(r, 0)));
    };
    check(name, sizes, f64_operands(size_t(sources)), [=](const Operands& o) {
      const double y = want(o);
      return y != y ? nan_of(opcode, o) : code(y);
    });
  }
}
double zero_sign(double r, double a, double b, Rounding rounding) {
  if (r != 0 || a + b != 0) return r;
  if (std::signbit(a) == std::signbit(b)) return a;
  return rounding == rm ? -0.0 : 0.0;
}
double add64(double a, double b, double, Rounding r) {
  return std::isfinite(a) && std::isfinite(b) ? zero_sign(rounded_quad(Quad(a) + Quad(b), r), a, b, r)
                                              : a + b;
}
double mul64(double a, double b, double, Rounding r) {
  return std::isfinite(a) && std::isfinite(b) && a != 0 && b != 0 ? rounded_quad(Quad(a) * Quad(b), r)
                                                                  : a * b;
}
double fma64(double a, double b, double c, Rounding r) {
  if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c)) return a * b + c;
  if (a == 0 || b == 0) return add64(a * b, c, 0, r);
  // 106 bits of product and 53 of c, at most 40 exponents apart, do not fit: the remainder of the
  // sum is added apart.
  const Quad product = Quad(a) * Quad(b), s = product + Quad(c), part = s - product;
  const Quad rest = (product - (s - part)) + (Quad(c) - part);
  const double near = nearest(s);
  if (s == 0) return r == rm ? -0.0 : 0.0;
  const Quad difference = s - Quad(near);
  if (r == rn) {
    const double above = std::nextafter(near, INFINITY), below = std::nextafter(near, -INFINITY);
    if (rest > 0 && difference == (Quad(above) - Quad(near)) / 2) return above;
    if (rest < 0 && -difference == (Quad(near) - Quad(below)) / 2) return below;
    return near;
  }
  return directed(near, difference != 0 ? sign_of(difference) : sign_of(rest), r);
}
double div64(double a, double b, double, Rounding r) {
  const double near = a / b;
  if (!std::isfinite(near) || a == 0 || std::isinf(b)) return near;
  return directed(near, sign_of(Quad(a) - Quad(near) * Quad(b)) * sign_of(b), r);
}
double sqrt64(double a, double, double, Rounding r) {
  const double near = std::sqrt(a);
  if (!std::isfinite(near) || a == 0) return near;
  return directed(near, sign_of(Quad(a) - Quad(near) * Quad(near)), r);
}

TEST(F64, RoundsInEveryMode) {
  check_f64("add", 2, false, add64);
  check_f64("sub", 2, false, [](double a, double b, double, Rounding r) { return add64(a, -b, 0, r); });
  check_f64("mul", 2, false, mul64);
  check_f64("fma", 3, true, fma64);
  check_f64("mad", 3, true, fma64);
  check_f64("div", 2, true, div64);
  check_f64("rcp", 1, true, [](double a, double, double, Rounding r) { return div64(1, a, 0, r); });
  check_f64("sqrt", 1, true, sqrt64);
}
// Subnormal results and overflow, which the exact judge above leaves out.
TEST(F64, RoundsAtTheEndsOfItsRange) {
  const auto value = [](double x) { return code(x); };
  const std::vector<Operands> products = {{value(0x1p-600), value(0x1.8p-474), 0, 0},
                                          {value(-0x1p-600), value(0x1p-475), 0, 0},
                                          {value(0x1p600), value(0x1p600), 0, 0},
                                          {value(-0x1p600), value(0x1p600), 0, 0},
                                          {value(0x1.8p-537), value(0x1p-537), 0, 0}};
  const double max = std::numeric_limits<double>::max(), inf = INFINITY, tiny = 0x1p-1074;
  const double want[4][5] = {{2 * tiny, -0.0, inf, -inf, 2 * tiny},
                             {tiny, -0.0, max, -max, tiny},
                             {tiny, -tiny, max, -inf, tiny},
                             {2 * tiny, -0.0, inf, -max, 2 * tiny}};
  for (int r = 0; r < 4; ++r) {
    std::vector<Operands> one(1);
    for (size_t i = 0; i < products.size(); ++i) {
      check("mul" + std::string(kRoundings[r]) + ".f64 %d, %a, %b;", {64, 64, 64}, {products[i]},
            [&](const Operands&) { return value(want[r][i]); });
    }
  }
}

// ---- approximations: at least as near as the ISA promises, and right on special values ----

void check_near(const std::string& instruction, const std::function<double(double)>& f, double relative,
                double absolute, bool ftz) {
  SCOPED_TRACE(instruction);
  const std::vector<Operands> operands = operands_of({Kind::f32});
  const std::vector<Result> got = results_of(instruction, {32, 32}, operands);
  int wrong = 0;
  for (size_t i = 0; i < operands.size() && wrong < 4; ++i) {
    const float x = ftz ? flushed(f32(operands[i][0])) : f32(operands[i][0]), y = f32(got[i].d);
    const double exact = f(x);
    float want = float(exact);
    if (ftz) want = flushed(want);
    const bool special = want != want || std::isinf(want) || want == 0;
    const bool right =
        special ? code(want) == got[i].d
                : std::fabs(y - exact) <= std::max(absolute, std::max(relative * std::fabs(exact), 0x1p-149));
    if (right) continue;
    ++wrong;
    ADD_FAILURE() << x << ": got " << y << ", expected " << exact;
  }
}
TEST(F32, Approximations) {
  const auto of = [](double (*f)(double)) { return std::function<double(double)>(f); };
  for (const bool ftz : {false, true}) {
    const std::string tail = std::string(ftz ? ".approx.ftz" : ".approx") + ".f32 %d, %a;";
    check_near(
        "rcp" + tail, [](double x) { return 1 / x; }, 0x1p-23, 0, ftz);
    check_near("sqrt" + tail, of(std::sqrt), 0x1p-23, 0, ftz);
    check_near(
        "rsqrt" + tail, [](double x) { return 1 / std::sqrt(x); }, 0x1.1p-23, 0, ftz);
    check_near("ex2" + tail, of(std::exp2), 0x1p-22, 0, ftz);
    check_near("lg2" + tail, of(std::log2), 0x1p-22, 0x1p-22, ftz);
  }
  check_near("tanh.approx.f32 %d, %a;", of(std::tanh), 0x1p-11, 0, false);
  // Good to about 2^-20.5 within a turn.
  std::vector<Operands> angles;
  for (int i = -5000; i <= 5000; ++i)
    angles.push_back({std::bit_cast<uint32_t>(float(i) * 0x1.4p-10f), 0, 0, 0});
  for (const bool cosine : {false, true}) {
    const std::string name = cosine ? "cos.approx.f32 %d, %a;" : "sin.approx.f32 %d, %a;";
    const std::vector<Result> got = results_of(name, {32, 32}, angles);
    for (size_t i = 0; i < angles.size(); ++i) {
      const double x = f32(angles[i][0]), want = cosine ? std::cos(x) : std::sin(x);
      ASSERT_LE(std::fabs(f32(got[i].d) - want), 0x1.8p-21) << name << " of " << x;
    }
  }
}

// Two quotients that are a product with an approximate reciprocal. Beyond 2^126 div.approx gives 0.
TEST(F32, ApproximateQuotients) {
  const std::vector<Operands> operands = operands_of({Kind::f32, Kind::f32});
  for (const std::string how : {"approx", "full"}) {
    for (const bool ftz : {false, true}) {
      const std::string instruction = "div." + how + (ftz ? ".ftz" : "") + ".f32 %d, %a, %b;";
      SCOPED_TRACE(instruction);
      const std::vector<Result> got = results_of(instruction, {32, 32, 32}, operands);
      int wrong = 0;
      for (size_t i = 0; i < operands.size() && wrong < 4; ++i) {
        float a = f32(operands[i][0]), b = f32(operands[i][1]);
        if (ftz) a = flushed(a), b = flushed(b);
        if (how == "approx" && std::fabs(b) > 0x1p126f && !std::isinf(b) && !std::isnan(b))
          b = std::copysign(INFINITY, b);
        // Below 2^-126 the ISA promises nothing of div.approx.
        if (how == "approx" && std::fabs(b) < 0x1p-126f && b != 0) continue;
        float want = a / b;
        if (ftz && double(std::fabs(a)) < std::fabs(b) * 0x1p-126) want = std::copysign(0.0f, want);
        const float y = f32(got[i].d);
        const bool special = want != want || std::isinf(want) || std::fabs(want) < 0x1p-125f;
        const bool right = special ? code(want) == got[i].d || std::fabs(y - want) <= 0x1p-147f
                                   : std::fabs(double(y) / want - 1) <= 0x1p-22;
        if (right) continue;
        ++wrong;
        ADD_FAILURE() << gg::format("%a / %a: got %a, expected %a", double(a), double(b), double(y),
                                    double(want));
      }
    }
  }
}

TEST(F64, ApproximationsFromTheUpperWord) {
  std::vector<Operands> operands;
  for (int i = 1; i < 2000; ++i)
    operands.push_back({code((i % 2 ? 1.0 : -1.0) * std::ldexp(1.0 + i * 0x1p-11, i - 1000)), 0, 0, 0});
  const std::vector<Result> rcp = results_of("rcp.approx.ftz.f64 %d, %a;", {64, 64}, operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    const double x = f64(operands[i][0]), y = f64(rcp[i].d), want = 1 / x;
    EXPECT_EQ(uint32_t(rcp[i].d), 0u);
    if (std::fabs(want) > 0x1p-1022) {
      EXPECT_LE(std::fabs(y / want - 1), 0x1p-19) << x;
    }
  }
  const std::vector<Result> rsqrt =
      results_of("abs.f64 %a, %a; rsqrt.approx.ftz.f64 %d, %a;", {64, 64}, operands);
  for (size_t i = 0; i < operands.size(); ++i) {
    const double x = std::fabs(f64(operands[i][0]));
    EXPECT_EQ(uint32_t(rsqrt[i].d), 0u);
    EXPECT_LE(std::fabs(f64(rsqrt[i].d) * std::sqrt(x) - 1), 0x1p-19) << x;
  }
}

// ---- signs, extremes, comparisons ----

template <class T>
T extreme(T a, T b, bool max, bool nan, bool xorsign) {
  const bool negative = std::signbit(a) != std::signbit(b);
  if (xorsign) a = std::fabs(a), b = std::fabs(b);
  T r;
  if (std::isnan(a) || std::isnan(b)) {
    r = nan || (std::isnan(a) && std::isnan(b)) ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? b : a;
  } else if (a == b) {
    r = std::signbit(a) == max ? b : a;
  } else {
    r = (a > b) == max ? a : b;
  }
  return xorsign && !std::isnan(r) ? std::copysign(r, negative ? T(-1) : T(1)) : r;
}

TEST(F32, Extremes) {
  const std::vector<Operands> operands = operands_of({Kind::f32, Kind::f32});
  for (const bool max : {false, true}) {
    for (int flags = 0; flags < 8; ++flags) {
      const bool ftz = flags & 1, nan = flags & 2, xorsign = flags & 4;
      check(std::string(max ? "max" : "min") + (ftz ? ".ftz" : "") + (nan ? ".NaN" : "") +
                (xorsign ? ".xorsign.abs" : "") + ".f32 %d, %a, %b;",
            {32, 32, 32}, operands, [=](const Operands& o) {
              const float a = f32(o[0]), b = f32(o[1]);
              return code(extreme(ftz ? flushed(a) : a, ftz ? flushed(b) : b, max, nan, xorsign));
            });
    }
    check(std::string(max ? "max" : "min") + ".f64 %d, %a, %b;", {64, 64, 64},
          operands_of({Kind::f64, Kind::f64}), [=](const Operands& o) {
            const double r = extreme(f64(o[0]), f64(o[1]), max, false, false);
            return std::isnan(r) ? o[1] | 1ull << 51 : code(r);
          });
  }
}

// A NaN gives what an H200 gives: 0x7FFFFFFF, and for f64 the NaN itself, made quiet.
TEST(F32, Signs) {
  const std::vector<Operands> one = operands_of({Kind::f32}), one64 = operands_of({Kind::f64});
  check("neg.f32 %d, %a;", {32, 32}, one, [](const Operands& o) { return code(-f32(o[0])); });
  check("abs.f32 %d, %a;", {32, 32}, one, [](const Operands& o) { return code(std::fabs(f32(o[0]))); });
  check("neg.ftz.f32 %d, %a;", {32, 32}, one, [](const Operands& o) { return code(-flushed(f32(o[0]))); });
  check("abs.ftz.f32 %d, %a;", {32, 32}, one,
        [](const Operands& o) { return code(std::fabs(flushed(f32(o[0])))); });
  check("neg.f64 %d, %a;", {64, 64}, one64,
        [](const Operands& o) { return std::isnan(f64(o[0])) ? o[0] | 1ull << 51 : o[0] ^ 1ull << 63; });
  check("abs.f64 %d, %a;", {64, 64}, one64,
        [](const Operands& o) { return std::isnan(f64(o[0])) ? o[0] | 1ull << 51 : o[0] & ~(1ull << 63); });
  check("copysign.f32 %d, %a, %b;", {32, 32, 32}, operands_of({Kind::f32, Kind::f32}),
        [](const Operands& o) { return (o[0] & 0x80000000) | (o[1] & 0x7FFFFFFF); });
  check("copysign.f64 %d, %a, %b;", {64, 64, 64}, operands_of({Kind::f64, Kind::f64}),
        [](const Operands& o) { return (o[0] & 1ull << 63) | (o[1] & ~(1ull << 63)); });
}

TEST(F32, Classes) {
  const auto check_class = [](const std::string& what, auto is) {
    check("testp." + what + ".f32 %d, %a;", {1, 32}, operands_of({Kind::f32}),
          [=](const Operands& o) { return is(f32(o[0])); });
    check("testp." + what + ".f64 %d, %a;", {1, 64}, operands_of({Kind::f64}),
          [=](const Operands& o) { return is(f64(o[0])); });
  };
  check_class("finite", [](auto x) { return std::isfinite(x); });
  check_class("infinite", [](auto x) { return std::isinf(x); });
  check_class("number", [](auto x) { return !std::isnan(x); });
  check_class("notanumber", [](auto x) { return std::isnan(x); });
  check_class("normal", [](auto x) { return std::isnormal(x) || x == 0; });
  check_class("subnormal", [](auto x) { return std::fpclassify(x) == FP_SUBNORMAL; });
}

TEST(F32, Comparisons) {
  const std::vector<Operands> singles = operands_of({Kind::f32, Kind::f32, Kind::predicate}, 1000);
  const std::vector<Operands> doubles = operands_of({Kind::f64, Kind::f64, Kind::predicate}, 1000);
  for (const std::string how : kComparisons) {
    for (const bool ftz : {false, true}) {
      const auto yes = [=](const Operands& o) {
        return compares(how, ftz ? flushed(f32(o[0])) : f32(o[0]), ftz ? flushed(f32(o[1])) : f32(o[1]));
      };
      const std::string tail = std::string(ftz ? ".ftz" : "") + ".f32 %d|%q, %a, %b";
      check("setp." + how + tail + ";", {1, 32, 32, 1, 0, true}, singles, yes,
            [=](const Operands& o) { return !yes(o); });
      check(
          "setp." + how + ".and" + tail + ", !%c;", {1, 32, 32, 1, 0, true}, singles,
          [=](const Operands& o) { return yes(o) && !o[2]; },
          [=](const Operands& o) { return !yes(o) && !o[2]; });
      const std::string types = std::string(ftz ? ".ftz" : "") + ".u32.f32 %d, %a, %b;";
      check("set." + how + types, {32, 32, 32}, singles,
            [=](const Operands& o) { return yes(o) ? 0xFFFFFFFF : 0; });
      check("set." + how + ".or" + (ftz ? ".ftz" : "") + ".f32.f32 %d, %a, %b, %c;", {32, 32, 32, 1}, singles,
            [=](const Operands& o) { return yes(o) || o[2] ? 0x3F800000 : 0; });
    }
    const auto yes = [=](const Operands& o) { return compares(how, f64(o[0]), f64(o[1])); };
    check("setp." + how + ".f64 %d, %a, %b;", {1, 64, 64}, doubles, yes);
    check("setp." + how + ".xor.f64 %d, %a, %b, %c;", {1, 64, 64, 1}, doubles,
          [=](const Operands& o) { return yes(o) != bool(o[2]); });
    check("set." + how + ".s32.f64 %d, %a, %b;", {32, 64, 64}, doubles,
          [=](const Operands& o) { return yes(o) ? -1 : 0; });
  }
}

}  // namespace
