// SPDX-License-Identifier: MIT
//
// Atomic sums and extremes of f16, bf16 and f32 in global and in shared memory, by atom, red and
// bulk reductions: zeros of both signs, subnormal numbers, ties, overflow, infinities, NaN.
// PTX ISA: sums round to nearest even; those of halves keep subnormal numbers (.noftz), as those of
// f32 in shared memory do, while those of f32 in global memory flush operands and results. A NaN
// that is made is 0x7FFF, 0x7FFFFFFF of f32: the ISA leaves it open.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <random>

#include "hopper.cuh"

namespace probe {
namespace atomics {

constexpr int kThreads = 256, kHalves = 8;  // of 16 bytes, which are a thread's

// ---- a kernel for each form: a thread takes 16 bytes, by as many instructions as that needs ----

// %0 to %3 are the operands and what was in memory, %4 is the address.
#define GG_WORDS(CODE) asm volatile(CODE : "+r"(w.x), "+r"(w.y), "+r"(w.z), "+r"(w.w) : "l"(at) : "memory")
#define GG_HALVES(CODE)                                                                      \
  GG_WORDS(                                                                                  \
      "{ .reg .b16 h<8>; mov.b32 {h0, h1}, %0; mov.b32 {h2, h3}, %1; mov.b32 {h4, h5}, %2; " \
      "mov.b32 {h6, h7}, %3;\n" CODE                                                         \
      "mov.b32 %0, {h0, h1}; mov.b32 %1, {h2, h3}; mov.b32 %2, {h4, h5}; mov.b32 %3, {h6, h7}; }")
#define GG_ATOM(OP, AT, REGISTERS) "atom" OP " " REGISTERS ", [%4+" #AT "], " REGISTERS ";\n"
#define GG_RED(OP, AT, REGISTERS) "red" OP " [%4+" #AT "], " REGISTERS ";\n"
#define GG_8(DO, OP)                                                                                         \
  GG_HALVES(DO(OP, 0, "h0") DO(OP, 2, "h1") DO(OP, 4, "h2") DO(OP, 6, "h3") DO(OP, 8, "h4") DO(OP, 10, "h5") \
                DO(OP, 12, "h6") DO(OP, 14, "h7"))
#define GG_8_V2(DO, OP) \
  GG_HALVES(DO(OP, 0, "{h0, h1}") DO(OP, 4, "{h2, h3}") DO(OP, 8, "{h4, h5}") DO(OP, 12, "{h6, h7}"))
#define GG_8_V4(DO, OP) GG_HALVES(DO(OP, 0, "{h0, h1, h2, h3}") DO(OP, 8, "{h4, h5, h6, h7}"))
#define GG_8_V8(DO, OP) GG_HALVES(DO(OP, 0, "{h0, h1, h2, h3, h4, h5, h6, h7}"))
#define GG_4(DO, OP) GG_WORDS(DO(OP, 0, "%0") DO(OP, 4, "%1") DO(OP, 8, "%2") DO(OP, 12, "%3"))
#define GG_4_V2(DO, OP) GG_WORDS(DO(OP, 0, "{%0, %1}") DO(OP, 8, "{%2, %3}"))
#define GG_4_V4(DO, OP) GG_WORDS(DO(OP, 0, "{%0, %1, %2, %3}"))

// The operands of a thread are words[i], and what was in memory comes back there where the
// form tells it.
#define GG_GLOBAL(CODE)                                               \
  const int i = int(blockIdx.x) * kThreads + int(threadIdx.x);        \
  uint4 w = words[i];                                                 \
  const uint64_t at = uint64_t(__cvta_generic_to_global(&memory[i])); \
  CODE;                                                               \
  words[i] = w;
#define GG_SHARED(CODE)                                                       \
  __shared__ uint4 tile[kThreads];                                            \
  const int i = int(blockIdx.x) * kThreads + int(threadIdx.x);                \
  uint4 w = words[i];                                                         \
  tile[threadIdx.x] = memory[i];                                              \
  const uint64_t at = uint64_t(__cvta_generic_to_shared(&tile[threadIdx.x])); \
  CODE;                                                                       \
  memory[i] = tile[threadIdx.x];                                              \
  words[i] = w;

// X takes a name, where memory is, how 16 bytes are cut, atom or red, the rest of the instruction.
#define GG_FORMS_OF(X, T)                                           \
  X(T##_atom, GLOBAL, 8, ATOM, ".global.add.noftz." #T)             \
  X(T##_red, GLOBAL, 8, RED, ".global.add.noftz." #T)               \
  X(T##_atom_shared, SHARED, 8, ATOM, ".shared.add.noftz." #T)      \
  X(T##_red_shared, SHARED, 8, RED, ".shared.add.noftz." #T)        \
  X(T##x2_atom, GLOBAL, 4, ATOM, ".global.add.noftz." #T "x2")      \
  X(T##x2_red, GLOBAL, 4, RED, ".global.add.noftz." #T "x2")        \
  X(T##x2_shared, SHARED, 4, ATOM, ".shared.add.noftz." #T "x2")    \
  X(T##x2_red_shared, SHARED, 4, RED, ".shared.add.noftz." #T "x2") \
  X(T##_v2, GLOBAL, 8_V2, ATOM, ".global.add.noftz.v2." #T)         \
  X(T##_v4, GLOBAL, 8_V4, RED, ".global.min.noftz.v4." #T)          \
  X(T##_v8, GLOBAL, 8_V8, ATOM, ".global.max.noftz.v8." #T)         \
  X(T##_red_v8, GLOBAL, 8_V8, RED, ".global.add.noftz.v8." #T)      \
  X(T##x2_v2, GLOBAL, 4_V2, RED, ".global.max.noftz.v2." #T "x2")   \
  X(T##x2_v4, GLOBAL, 4_V4, ATOM, ".global.min.noftz.v4." #T "x2")
#define GG_FORMS(X)                                   \
  GG_FORMS_OF(X, f16)                                 \
  GG_FORMS_OF(X, bf16)                                \
  X(f32_atom, GLOBAL, 4, ATOM, ".global.add.f32")     \
  X(f32_red, GLOBAL, 4, RED, ".global.add.f32")       \
  X(f32_v2, GLOBAL, 4_V2, ATOM, ".global.add.v2.f32") \
  X(f32_v4, GLOBAL, 4_V4, RED, ".global.add.v4.f32")  \
  X(f32_shared, SHARED, 4, ATOM, ".shared.add.f32")   \
  X(f32_red_shared, SHARED, 4, RED, ".shared.add.f32")

// [probe]
#define GG_KERNEL(NAME, WHERE, HOW, DO, OP) \
  __global__ void NAME(uint4* memory, uint4* words) { GG_##WHERE(GG_##HOW(GG_##DO, OP)) }
GG_FORMS(GG_KERNEL)

// The same by a bulk reduction for each warp.
#define GG_BULK_KERNEL(NAME, OP)                                                                    \
  __global__ void NAME(uint4* memory, uint4* words) {                                               \
    __shared__ __align__(128) uint4 tile[kThreads];                                                 \
    tile[threadIdx.x] = words[blockIdx.x * kThreads + threadIdx.x];                                 \
    asm volatile("fence.proxy.async;" ::: "memory");                                                \
    __syncwarp();                                                                                   \
    if (threadIdx.x % 32 != 0) return;                                                              \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group" OP " [%0], [%1], 512;" ::"l"( \
                     __cvta_generic_to_global(&memory[blockIdx.x * kThreads + threadIdx.x])),       \
                 "r"(uint32_t(__cvta_generic_to_shared(&tile[threadIdx.x])))                        \
                 : "memory");                                                                       \
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");           \
  }
#define GG_BULK(X)                    \
  X(bulk_f16_add, ".add.noftz.f16")   \
  X(bulk_f16_min, ".min.f16")         \
  X(bulk_f16_max, ".max.f16")         \
  X(bulk_bf16_add, ".add.noftz.bf16") \
  X(bulk_bf16_min, ".min.bf16")       \
  X(bulk_bf16_max, ".max.bf16")
GG_BULK(GG_BULK_KERNEL)
// [/probe]

struct Form {
  std::string name, how, operation;
  void (*kernel)(uint4*, uint4*);
  bool has(const char* word) const { return operation.find(word) != std::string::npos; }
  bool returns() const { return how == "ATOM"; }
  bool flushes() const { return has(".global") && has("f32"); }
};
#define GG_ROW(NAME, WHERE, HOW, DO, OP) {#NAME, #DO, OP, NAME},
#define GG_BULK_ROW(NAME, OP) {#NAME, "bulk", OP, NAME},
void PrintTo(const Form& form, std::ostream* out) { *out << form.how << form.operation; }
std::vector<Form> forms() { return {GG_FORMS(GG_ROW) GG_BULK(GG_BULK_ROW)}; }

// ---- the host's model ----

// Numbers by their fields, in double, where the sum of two of them is exact or far from a tie.
struct Kind {
  const char* name;
  int mantissa_bits, exponent_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t sign() const { return 1u << (mantissa_bits + exponent_bits); }
  uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  bool is_nan(uint32_t code) const { return (code & (sign() - 1)) > infinity(); }
  bool is_subnormal(uint32_t code) const { return (code & (sign() - 1)) >> mantissa_bits == 0; }
  // The absolute value of a code; infinity counts as what would come behind the largest number.
  double magnitude(uint32_t code) const {
    const int field = int((code & (sign() - 1)) >> mantissa_bits);
    const double fraction = double(code & ((1u << mantissa_bits) - 1));
    return std::ldexp(fraction + (field ? std::ldexp(1.0, mantissa_bits) : 0),
                      std::max(field, 1) - bias() - mantissa_bits);
  }
  double value(uint32_t code) const { return code & sign() ? -magnitude(code) : magnitude(code); }
};
constexpr Kind kF16 = {"f16", 10, 5}, kBf16 = {"bf16", 7, 8}, kF32 = {"f32", 23, 8};

// The code of the nearest value, of two the even one: infinity from half a step above the largest.
uint32_t nearest(const Kind& kind, double x) {
  uint32_t low = 0, high = kind.infinity();  // the last code that is not above |x|
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    if (kind.magnitude(middle) <= std::fabs(x)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (low < kind.infinity()) {
    const double below = std::fabs(x) - kind.magnitude(low), above = kind.magnitude(low + 1) - std::fabs(x);
    low += above < below || (above == below && low % 2 == 1);
  }
  return low | (std::signbit(x) ? kind.sign() : 0);
}

uint32_t sum_of(const Kind& kind, uint32_t a, uint32_t b, bool flushes) {
  const auto flushed = [&](uint32_t code) {
    return flushes && kind.is_subnormal(code) ? code & kind.sign() : code;
  };
  const uint32_t nan = kind.sign() - 1;
  if (kind.is_nan(a) || kind.is_nan(b)) return nan;
  const bool endless_a = (a & nan) == kind.infinity(), endless_b = (b & nan) == kind.infinity();
  if (endless_a || endless_b) return endless_a && endless_b && a != b ? nan : endless_a ? a : b;
  return flushed(nearest(kind, kind.value(flushed(a)) + kind.value(flushed(b))));
}

// A NaN gives way to a number, and -0 is less than +0.
uint32_t extreme_of(const Kind& kind, uint32_t a, uint32_t b, bool least) {
  if (kind.is_nan(a) && kind.is_nan(b)) return kind.sign() - 1;
  if (kind.is_nan(a)) return b;
  if (kind.is_nan(b)) return a;
  const auto place = [&](uint32_t code) { return code & kind.sign() ? -int64_t(code) : int64_t(code) + 1; };
  return (place(a) < place(b)) == least ? a : b;
}

// ---- operands: every pair of these codes, with both signs, and others ----

std::vector<uint32_t> edges(const Kind& kind) {
  const int m = kind.mantissa_bits, bias = kind.bias();
  const uint32_t least = 1u << m, one = uint32_t(bias) << m, infinity = kind.infinity();
  const uint32_t half_step = uint32_t(bias - m - 1) << m;           // of one
  const uint32_t last_half_step = uint32_t(2 * bias - m - 1) << m;  // of the largest number
  std::vector<uint32_t> all = {0, 1, 2, least - 1, least, least + 1, one, one + 1, one - 1};
  for (const uint32_t tie : {half_step, last_half_step}) all.insert(all.end(), {tie - 1, tie, tie + 1});
  all.insert(all.end(), {half_step + least / 2, infinity - 1, infinity - 2, infinity, infinity + 1,
                         infinity + (1u << (m - 1)), kind.sign() - 1});
  for (size_t i = 0, count = all.size(); i < count; ++i) all.push_back(all[i] | kind.sign());
  return all;
}

struct Operands {
  std::vector<uint32_t> memory, with;
};
Operands operands_of(const Kind& kind) {
  constexpr size_t kPairs = 2 * kThreads * kHalves;
  Operands all;
  const std::vector<uint32_t> some = edges(kind);
  for (const uint32_t a : some) {
    for (const uint32_t b : some) all.memory.push_back(a), all.with.push_back(b);
  }
  std::mt19937 random(1);
  while (all.memory.size() < kPairs) {  // numbers that lie within a few powers of two
    const uint32_t all_bits = 2 * kind.sign() - 1, a = uint32_t(random()) & all_bits;
    const uint32_t near = a + (uint32_t(random() % 8) << kind.mantissa_bits);
    all.memory.push_back(a);
    all.with.push_back((near ^ (uint32_t(random()) & (kind.sign() | 0x7F))) & all_bits);
  }
  return all;
}

std::vector<uint4> packed(const std::vector<uint32_t>& codes, size_t bytes) {
  std::vector<uint4> words(codes.size() * bytes / sizeof(uint4));
  for (size_t i = 0; i < codes.size(); ++i)
    std::memcpy(reinterpret_cast<char*>(words.data()) + i * bytes, &codes[i], bytes);
  return words;
}
uint32_t code_at(const std::vector<uint4>& words, size_t i, size_t bytes) {
  uint32_t code = 0;
  std::memcpy(&code, reinterpret_cast<const char*>(words.data()) + i * bytes, bytes);
  return code;
}

class Atomics : public HopperProbe, public testing::WithParamInterface<Form> {};

TEST_P(Atomics, AreThoseOfTheHost) {
  const Form& form = GetParam();
  const Kind& kind = form.has("bf16") ? kBf16 : form.has("f16") ? kF16 : kF32;
  const size_t bytes = form.has("f32") ? 4 : 2;
  const Operands operands = operands_of(kind);
  const size_t count = operands.memory.size();
  const Array<uint4> memory(packed(operands.memory, bytes)), words(packed(operands.with, bytes));
  form.kernel<<<unsigned(count * bytes / sizeof(uint4) / kThreads), kThreads>>>(memory.get(), words.get());
  const std::vector<uint4> got = memory.read(), before = words.read();
  int wrong = 0, subnormal = 0, flushed = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t a = operands.memory[i], b = operands.with[i];
    const uint32_t want =
        form.has(".add") ? sum_of(kind, a, b, form.flushes()) : extreme_of(kind, a, b, form.has(".min"));
    subnormal += kind.is_subnormal(want) && kind.value(want) != 0;
    flushed += form.has(".add") && want != sum_of(kind, a, b, !form.flushes());
    const uint32_t is = code_at(got, i, bytes), was = form.returns() ? code_at(before, i, bytes) : a;
    if ((is == want && was == a) || ++wrong > 8) continue;
    ADD_FAILURE() << std::hex << kind.name << " 0x" << a << " and 0x" << b << " give 0x" << is
                  << ", wanted 0x" << want << "; before 0x" << was;
  }
  EXPECT_EQ(wrong, 0) << "of " << count;
  if (form.has(".add")) {
    EXPECT_GT(flushed, 100) << "flushing cannot be told from keeping";
    EXPECT_EQ(subnormal > 0, !form.flushes());
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Atomics, testing::ValuesIn(forms()),
                         [](const auto& info) { return info.param.name; });

}  // namespace atomics
}  // namespace probe
