// SPDX-License-Identifier: MIT
//
// mma.sync in all types and shapes of Hopper, beyond those that common/kernel/ptx/mma.cuh utters:
// fragments filled by hand from the tables of the PTX ISA; whole numbers, whose sums are exact, and
// numbers of every size against an H200.

#include "matrix_data.h"
#include "probe.cuh"

namespace probe {
namespace mma_forms {

using matrix::Format;
using matrix::Matrix;

constexpr int kWarps = 2;

// The spelling, as text for asm.
template <int FORM>
struct Spelling;

// D = A * B + C with REGISTERS registers of B, twice as many of A, and four accumulators in f32 or
// two in f16 pairs.
template <int FORM, int REGISTERS, int ACCUMULATORS>
__device__ void mma(uint32_t (&d)[ACCUMULATORS], const uint32_t* a, const uint32_t* b, const uint32_t* c) {
  if constexpr (REGISTERS == 2 && ACCUMULATORS == 4) {
    asm volatile("mma.sync.aligned.%14 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]),
                   "r"(c[2]), "r"(c[3]), "C"(Spelling<FORM>::text));
  } else if constexpr (REGISTERS == 2) {
    asm volatile("mma.sync.aligned.%10 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]),
                   "C"(Spelling<FORM>::text));
  } else if constexpr (ACCUMULATORS == 4) {
    asm volatile("mma.sync.aligned.%11 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]),
                   "C"(Spelling<FORM>::text));
  } else {
    asm volatile("mma.sync.aligned.%7 {%0, %1}, {%2, %3}, {%4}, {%5, %6};"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "C"(Spelling<FORM>::text));
  }
}

// [probe]
// Each warp: D[16,8] = C + A[16,k] * B[k,8]; A and B as codes of 32 / `each` bits, row-major, one
// to a word. With g = lane / 4 and t = lane % 4 a register of A holds `each` neighbours of row g,
// then of row g + 8, then further along k; of B, of column g; of C and D, columns 2t and 2t + 1 of
// row g, then of row g + 8.
template <int FORM, int REGISTERS, int ACCUMULATORS>
__global__ void multiply(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d, int each) {
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int k = 4 * each * REGISTERS, bits = 32 / each;
  a += warp * 16 * k, b += warp * k * 8, c += warp * 128, d += warp * 128;
  uint32_t a_reg[2 * REGISTERS] = {}, b_reg[REGISTERS] = {}, c_reg[ACCUMULATORS], d_reg[ACCUMULATORS];
  for (int r = 0; r < REGISTERS; ++r) {
    for (int e = 0; e < each; ++e) {
      const int at_k = r * 4 * each + t * each + e;
      a_reg[2 * r] |= a[g * k + at_k] << (e * bits);
      a_reg[2 * r + 1] |= a[(g + 8) * k + at_k] << (e * bits);
      b_reg[r] |= b[at_k * 8 + g] << (e * bits);
    }
  }
  for (int i = 0; i < 2; ++i) {
    const uint32_t* pair = c + (g + 8 * i) * 8 + 2 * t;
    if constexpr (ACCUMULATORS == 4) {
      c_reg[2 * i] = pair[0], c_reg[2 * i + 1] = pair[1];
    } else {
      c_reg[i] = pair[0] | pair[1] << 16;
    }
  }
  mma<FORM, REGISTERS>(d_reg, a_reg, b_reg, c_reg);
  for (int i = 0; i < 2; ++i) {
    uint32_t* pair = d + (g + 8 * i) * 8 + 2 * t;
    if constexpr (ACCUMULATORS == 4) {
      pair[0] = d_reg[2 * i], pair[1] = d_reg[2 * i + 1];
    } else {
      pair[0] = d_reg[i] & 0xFFFF, pair[1] = d_reg[i] >> 16;
    }
  }
}
// [/probe]

using Kernel = void (*)(const uint32_t*, const uint32_t*, const uint32_t*, uint32_t*, int);
struct Form {
  const char* name;
  Format a, b, d;
  int k;
  Kernel kernel;
};

template <>
struct Spelling<0> {
  static constexpr const char text[] = "m16n8k8.row.col.f32.bf16.bf16.f32";
};
template <>
struct Spelling<1> {
  static constexpr const char text[] = "m16n8k16.row.col.f32.bf16.bf16.f32";
};
template <>
struct Spelling<2> {
  static constexpr const char text[] = "m16n8k8.row.col.f32.f16.f16.f32";
};
template <>
struct Spelling<3> {
  static constexpr const char text[] = "m16n8k16.row.col.f32.f16.f16.f32";
};
template <>
struct Spelling<4> {
  static constexpr const char text[] = "m16n8k8.row.col.f16.f16.f16.f16";
};
template <>
struct Spelling<5> {
  static constexpr const char text[] = "m16n8k16.row.col.f16.f16.f16.f16";
};
template <>
struct Spelling<6> {
  static constexpr const char text[] = "m16n8k4.row.col.f32.tf32.tf32.f32";
};
template <>
struct Spelling<7> {
  static constexpr const char text[] = "m16n8k8.row.col.f32.tf32.tf32.f32";
};
template <>
struct Spelling<8> {
  static constexpr const char text[] = "m16n8k16.row.col.f32.e4m3.e4m3.f32";
};
template <>
struct Spelling<9> {
  static constexpr const char text[] = "m16n8k32.row.col.f32.e4m3.e5m2.f32";
};
template <>
struct Spelling<10> {
  static constexpr const char text[] = "m16n8k32.row.col.f32.e5m2.e4m3.f32";
};
template <>
struct Spelling<11> {
  static constexpr const char text[] = "m16n8k32.row.col.f32.e5m2.e5m2.f32";
};
template <>
struct Spelling<12> {
  static constexpr const char text[] = "m16n8k16.row.col.f16.e5m2.e5m2.f16";
};
template <>
struct Spelling<13> {
  static constexpr const char text[] = "m16n8k32.row.col.f16.e4m3.e4m3.f16";
};
template <>
struct Spelling<14> {
  static constexpr const char text[] = "m16n8k32.row.col.f32.e4m3.e4m3.f32";
};

const Form kForms[] = {
    {"bf16_k8", matrix::kBf16, matrix::kBf16, matrix::kF32, 8, multiply<0, 1, 4>},
    {"bf16_k16", matrix::kBf16, matrix::kBf16, matrix::kF32, 16, multiply<1, 2, 4>},
    {"f16_k8", matrix::kF16, matrix::kF16, matrix::kF32, 8, multiply<2, 1, 4>},
    {"f16_k16", matrix::kF16, matrix::kF16, matrix::kF32, 16, multiply<3, 2, 4>},
    {"f16_f16_k8", matrix::kF16, matrix::kF16, matrix::kF16, 8, multiply<4, 1, 2>},
    {"f16_f16_k16", matrix::kF16, matrix::kF16, matrix::kF16, 16, multiply<5, 2, 2>},
    {"tf32_k4", matrix::kTf32, matrix::kTf32, matrix::kF32, 4, multiply<6, 1, 4>},
    {"tf32_k8", matrix::kTf32, matrix::kTf32, matrix::kF32, 8, multiply<7, 2, 4>},
    {"e4m3_e4m3_k16", matrix::kE4m3, matrix::kE4m3, matrix::kF32, 16, multiply<8, 1, 4>},
    {"e4m3_e5m2_k32", matrix::kE4m3, matrix::kE5m2, matrix::kF32, 32, multiply<9, 2, 4>},
    {"e5m2_e4m3_k32", matrix::kE5m2, matrix::kE4m3, matrix::kF32, 32, multiply<10, 2, 4>},
    {"e5m2_e5m2_k32", matrix::kE5m2, matrix::kE5m2, matrix::kF32, 32, multiply<11, 2, 4>},
    {"f16_e5m2_e5m2_k16", matrix::kE5m2, matrix::kE5m2, matrix::kF16, 16, multiply<12, 1, 2>},
    {"f16_e4m3_e4m3_k32", matrix::kE4m3, matrix::kE4m3, matrix::kF16, 32, multiply<13, 2, 2>},
    {"e4m3_e4m3_k32", matrix::kE4m3, matrix::kE4m3, matrix::kF32, 32, multiply<14, 2, 4>},
};

class MmaForms : public Probe, public testing::WithParamInterface<Form> {
 protected:
  MmaForms() : Probe(gg::Arch::sm_90a) {}

  // Returns kWarps products, one below the other.
  static std::vector<uint32_t> run(const Matrix& a, const Matrix& b, const Matrix& c) {
    const Form& form = GetParam();
    const Array<uint32_t> a_array(a.data), b_array(b.data), c_array(c.data),
        d_array(std::vector<uint32_t>(c.data.size()));
    form.kernel<<<1, kWarps * 32>>>(a_array.get(), b_array.get(), c_array.get(), d_array.get(),
                                    32 / form.a.bits);
    return d_array.read();
  }
};

TEST_P(MmaForms, MultiplyWholeNumbers) {
  const Form& form = GetParam();
  const Matrix a = matrix::whole_numbers(kWarps * 16, form.k, 7, 1),
               b = matrix::whole_numbers(kWarps * form.k, 8, 6, 2),
               c = matrix::whole_numbers(kWarps * 16, 8, 300, 3);
  const std::vector<uint32_t> d = run(codes_of(form.a, a), codes_of(form.b, b), codes_of(form.d, c));
  for (int row = 0; row < kWarps * 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      int sum = c.number(row, column);
      for (int k = 0; k < form.k; ++k) sum += a.number(row, k) * b.number(row / 16 * form.k + k, column);
      EXPECT_EQ(d[size_t(row * 8 + column)], matrix::whole(form.d, sum))
          << "row " << row << " column " << column << ", " << sum;
    }
  }
}

TEST_P(MmaForms, GiveTheBitsOfAnH200) {
  const Form& form = GetParam();
  std::vector<uint32_t> answers;
  matrix::Bits bits(
      uint32_t(form.k * 1000 + form.a.mantissa_bits * 100 + form.b.mantissa_bits * 10 + form.d.bits / 16));
  for (int trial = 0; trial < matrix::trials(2); ++trial) {
    const auto sizes = matrix::Sizes(trial % matrix::kSizes);
    const Matrix a = bits.matrix(kWarps * 16, form.k, form.a, sizes),
                 b = bits.matrix(kWarps * form.k, 8, form.b, sizes),
                 c = bits.accumulators(kWarps * 16, 8, form.d, sizes);
    const std::vector<uint32_t> d = run(a, b, c);
    answers.insert(answers.end(), d.begin(), d.end());
  }
  matrix::expect_h200(std::string("bits_mma_") + form.name, answers);
}

INSTANTIATE_TEST_SUITE_P(Isa, MmaForms, testing::ValuesIn(kForms),
                         [](const auto& info) { return info.param.name; });

}  // namespace mma_forms
}  // namespace probe
