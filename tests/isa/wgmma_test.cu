// SPDX-License-Identifier: MIT
//
// wgmma: shapes, types, layouts and descriptors. The host lays the tiles out by the tables of the
// PTX ISA, byte by byte, and the kernel copies them to shared memory as they are, so that no copy
// of ours can be wrong in the same way. Whole numbers, whose sums are exact; and numbers of every
// size against an H200.

#include <algorithm>

#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"  // fence_proxy_async
#include "matrix_data.h"
#include "probe.cuh"
#include "wgmma_registers.cuh"

namespace probe {
namespace wgmma {

using gg::ptx::Major;
using gg::ptx::Swizzle;
using gg::ptx::TileLayout;
using gg::ptx::WgmmaDesc;
using matrix::Format;
using matrix::Matrix;

constexpr int kWarpgroups = 2, kThreads = kWarpgroups * 128, kSteps = 4;
constexpr int kAlignment = 1024;

// A product of kSteps instructions, each 32 bytes of k; two warpgroups, each with tiles and sums
// of its own.
struct Plan {
  TileLayout a, b;
  int a_start[kSteps], b_start[kSteps];  // bytes into the warpgroup's image, of each step
  int image_bytes;                       // of a warpgroup's shared memory, a multiple of kAlignment
  bool accumulate;                       // C counts
};

// The images of all warpgroups, at a multiple of kAlignment; returns the warpgroup's.
__device__ uint32_t copy_images(const uint4* images, int image_bytes) {
  extern __shared__ uint4 shared[];
  const uint32_t base = (gg::ptx::shared_addr(shared) + kAlignment - 1) / kAlignment * kAlignment;
  uint4* to = shared + (base - gg::ptx::shared_addr(shared)) / 16;
  for (int i = int(threadIdx.x); i < kWarpgroups * image_bytes / 16; i += kThreads) to[i] = images[i];
  gg::ptx::fence_proxy_async();  // wgmma reads with the asynchronous proxy
  __syncthreads();               // both images are there
  return base + threadIdx.x / 128 * image_bytes;
}

// Where d[i] of this thread stands in the 64 x columns matrix of its warpgroup.
__device__ int place_of(int i, int columns) {
  const int thread = int(threadIdx.x) % 128, g = thread % 32 / 4, q = thread % 4;
  return (thread / 32 * 16 + g + i / 2 % 2 * 8) * columns + i / 4 * 8 + 2 * q + i % 2;
}

// [probe]
// [multiply]
template <class A, class B, Major A_MAJOR, Major B_MAJOR, int REGISTERS>
__global__ void __launch_bounds__(kThreads) multiply(const uint4* images, float* c, Plan plan) {
  const uint32_t image = copy_images(images, plan.image_bytes);
  c += threadIdx.x / 128 * 64 * 2 * REGISTERS;
  float d[REGISTERS];
  for (int i = 0; i < REGISTERS; ++i) d[i] = c[place_of(i, 2 * REGISTERS)];
  gg::ptx::wgmma_fence(d);
  for (int step = 0; step < kSteps; ++step) {
    gg::ptx::wgmma<A, B, A_MAJOR, B_MAJOR>(d, wgmma_desc(image + plan.a_start[step], plan.a),
                                           wgmma_desc(image + plan.b_start[step], plan.b),
                                           step > 0 || plan.accumulate);
  }
  gg::ptx::wgmma_commit_group();
  gg::ptx::wgmma_wait_group<0>(d);
  for (int i = 0; i < REGISTERS; ++i) c[place_of(i, 2 * REGISTERS)] = d[i];
}
// [/multiply]

// The same with A in registers: a word has 4 bytes of k, row-major, as the host packed them.
template <class A, class B, Major A_MAJOR, Major B_MAJOR, int REGISTERS>
__global__ void __launch_bounds__(kThreads)
    multiply_registers(const uint4* images, const uint32_t* a, float* c, Plan plan) {
  const uint32_t image = copy_images(images, plan.image_bytes);
  const int row = int(threadIdx.x) / 32 * 16 + int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
  c += threadIdx.x / 128 * 64 * 2 * REGISTERS;
  float d[REGISTERS];
  for (int i = 0; i < REGISTERS; ++i) d[i] = c[place_of(i, 2 * REGISTERS)];
  gg::ptx::WgmmaFragmentA<A> fragments[kSteps];
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < 4; ++i) {
      fragments[step].reg[i] = a[(row + i % 2 * 8) * kSteps * 8 + step * 8 + i / 2 * 4 + t];
    }
  }
  gg::ptx::wgmma_fence(d, fragments[0], fragments[1], fragments[2], fragments[3]);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    gg::ptx::wgmma<A, B, B_MAJOR>(d, fragments[step], wgmma_desc(image + plan.b_start[step], plan.b),
                                  step > 0 || plan.accumulate);
  }
  gg::ptx::wgmma_commit_group();
  gg::ptx::wgmma_wait_group<0>(d);
  for (int i = 0; i < REGISTERS; ++i) c[place_of(i, 2 * REGISTERS)] = d[i];
}
// [/probe]

// ---- tiles, laid out by the host ----

// How rows of A, or columns of B, lie in shared memory: what the plan says of it, and what else an
// image needs to know.
struct Tile {
  Major major = Major::k;
  TileLayout layout;
  int start = 0;        // bytes into the image
  int chunk_bytes = 0;  // Major::k, swizzled: from one span of k to the next
};

int span_of(Swizzle swizzle) {
  return swizzle == Swizzle::none ? 0 : swizzle == Swizzle::b128 ? 128 : swizzle == Swizzle::b64 ? 64 : 32;
}

// The byte of element (line, k): PTX ISA, "Strides", "Shared Memory Layout".
int byte_of(const Tile& tile, const Format& f, int line, int k) {
  const int span = span_of(tile.layout.swizzle), bytes = f.bits / 8, unit = 16 / bytes;
  const int leading = tile.layout.leading_bytes, stride = tile.layout.stride_bytes, k_byte = k * bytes;
  int at = tile.start;
  if (tile.major == Major::k && span == 0) {
    at += line / 8 * stride + k_byte / 16 * leading + line % 8 * 16 + k_byte % 16;
  } else if (tile.major == Major::k) {
    at += k_byte / span * tile.chunk_bytes + line / 8 * stride + line % 8 * span + k_byte % span;
  } else if (span == 0) {
    at += line / unit * stride + k / 8 * leading + k % 8 * 16 + line % unit * bytes;
  } else {
    const int lines = span / bytes;
    at += line / lines * leading + k / 8 * stride + k % 8 * span + line % lines * bytes;
  }
  if (span == 128) at ^= ((at >> 7) - tile.layout.base_offset & 7) << 4;
  if (span == 64) at ^= ((at >> 7) - tile.layout.base_offset & 3) << 4;
  if (span == 32) at ^= ((at >> 7) - tile.layout.base_offset & 1) << 4;
  return at;
}

// Where a step's 32 bytes of k start: the address of its first element before units trade places.
int start_of(Tile tile, const Format& f, int step) {
  const int bytes = f.bits / 8, span = span_of(tile.layout.swizzle), k = step * 32 / bytes;
  if (tile.major == Major::mn)
    return tile.start + k / 8 * (span ? tile.layout.stride_bytes : tile.layout.leading_bytes);
  if (span == 0) return tile.start + k * bytes / 16 * tile.layout.leading_bytes;
  return tile.start + k * bytes / span * tile.chunk_bytes + k * bytes % span;
}

// Lines of codes, [lines][k], into the image.
void lay_out(std::vector<uint8_t>& image, const Tile& tile, const Format& f, const Matrix& codes) {
  for (int line = 0; line < codes.rows; ++line) {
    for (int k = 0; k < codes.columns; ++k) {
      const uint32_t code = codes.at(line, k);
      const size_t at = size_t(byte_of(tile, f, line, k)), bytes = size_t(f.bits / 8);
      if (image.size() < at + bytes)
        image.resize((at + bytes + kAlignment - 1) / kAlignment * kAlignment, 0xFF);
      std::memcpy(image.data() + at, &code, bytes);
    }
  }
}

// The tile for a major and a swizzle mode, `lines` long, with strides that differ from the dense
// ones if `wide`.
Tile tile_of(Major major, Swizzle swizzle, const Format& f, int lines, int start, bool wide) {
  Tile tile{major, {swizzle, 0, 0, 0}, start, 0};
  const int span = span_of(swizzle), k = kSteps * 32 / (f.bits / 8), more = wide ? 8 * std::max(span, 16) : 0;
  if (major == Major::k && span) {
    tile.layout.stride_bytes = 8 * span + more;
    tile.layout.leading_bytes = wide ? 0x1230 : 0;  // does not count
    tile.chunk_bytes = (lines / 8 * tile.layout.stride_bytes + kAlignment - 1) / kAlignment * kAlignment;
  } else if (major == Major::k) {
    tile.layout.stride_bytes = 128 + more;
    tile.layout.leading_bytes = lines / 8 * tile.layout.stride_bytes;
  } else if (span) {
    tile.layout.stride_bytes = 8 * span + more;
    tile.layout.leading_bytes = k / 8 * tile.layout.stride_bytes;
  } else {
    tile.layout.leading_bytes = 128 + more;
    tile.layout.stride_bytes = k / 8 * tile.layout.leading_bytes;
  }
  return tile;
}

// ---- running ----

using Kernel = void (*)(const uint4*, float*, Plan);
using RegisterKernel = void (*)(const uint4*, const uint32_t*, float*, Plan);

class WgmmaProbe : public Probe {
 protected:
  WgmmaProbe() : Probe(gg::Arch::sm_90a) {}
};

struct Operands {  // of all warpgroups, one below the other: A [64][k], B [n][k], C [64][n] of each
  Format a_format, b_format;
  Matrix a, b, c;
  int n() const { return c.columns; }
  int k() const { return a.columns; }
};

template <class... Arguments>
void launch(void (*kernel)(Arguments...), int image_bytes, Arguments... arguments) {
  const int bytes = kWarpgroups * image_bytes + kAlignment;
  GG_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  kernel<<<1, kThreads, size_t(bytes)>>>(arguments...);
}

Matrix lines_of(const Matrix& all, int warpgroup) {
  Matrix part(all.rows / kWarpgroups, all.columns);
  std::copy_n(all.data.begin() + warpgroup * int(part.data.size()), part.data.size(), part.data.begin());
  return part;
}

// D, as bits of floats. With a null `kernel` A goes to registers.
std::vector<uint32_t> run(const Operands& o, const Tile& a, const Tile& b, bool accumulate, Kernel kernel,
                          RegisterKernel register_kernel = nullptr) {
  Plan plan{a.layout, b.layout, {}, {}, 0, accumulate};
  for (int step = 0; step < kSteps; ++step) {
    plan.a_start[step] = start_of(a, o.a_format, step);
    plan.b_start[step] = start_of(b, o.b_format, step);
  }
  std::vector<uint8_t> images[kWarpgroups];
  for (int i = 0; i < kWarpgroups; ++i) {
    if (kernel) lay_out(images[i], a, o.a_format, lines_of(o.a, i));
    lay_out(images[i], b, o.b_format, lines_of(o.b, i));
    plan.image_bytes = std::max(plan.image_bytes, int(images[i].size()));
  }
  std::vector<uint8_t> all;
  for (auto& image : images) {
    image.resize(size_t(plan.image_bytes), 0xFF);
    all.insert(all.end(), image.begin(), image.end());
  }
  const Array<uint8_t> image_array(all);
  const Array<uint32_t> c_array(o.c.data);
  const auto* from = reinterpret_cast<const uint4*>(image_array.get());
  auto* c = reinterpret_cast<float*>(c_array.get());
  if (kernel) {
    launch(kernel, plan.image_bytes, from, c, plan);
    return c_array.read();
  }
  const int each = 32 / o.a_format.bits;
  std::vector<uint32_t> packed(o.a.data.size() / size_t(each));
  for (size_t i = 0; i < o.a.data.size(); ++i)
    packed[i / size_t(each)] |= o.a.data[i] << (int(i) % each * o.a_format.bits);
  const Array<uint32_t> a_array(packed);
  launch(register_kernel, plan.image_bytes, from, static_cast<const uint32_t*>(a_array.get()), c, plan);
  return c_array.read();
}

// Whole numbers small enough for every format, all different sums.
Operands whole_operands(const Format& a_format, const Format& b_format, int n, bool accumulate) {
  const int k = kSteps * 32 / (a_format.bits / 8);
  const Matrix a = matrix::whole_numbers(kWarpgroups * 64, k, 7, 11),
               b = matrix::whole_numbers(kWarpgroups * n, k, 6, 12);
  Operands o{a_format, b_format, codes_of(a_format, a), codes_of(b_format, b), Matrix(kWarpgroups * 64, n)};
  const Matrix c = matrix::whole_numbers(kWarpgroups * 64, n, 500, 13);
  for (size_t i = 0; i < c.data.size(); ++i)
    o.c.data[i] = accumulate ? whole(matrix::kF32, int(c.data[i])) : 0x7FFFFFFF;
  return o;
}
void expect_whole(const Operands& o, const std::vector<uint32_t>& d, bool accumulate) {
  const Matrix a = matrix::whole_numbers(o.a.rows, o.k(), 7, 11),
               b = matrix::whole_numbers(o.b.rows, o.k(), 6, 12),
               c = matrix::whole_numbers(o.c.rows, o.n(), 500, 13);
  int wrong = 0;
  for (int row = 0; row < o.c.rows; ++row) {
    for (int column = 0; column < o.n(); ++column) {
      int sum = accumulate ? c.number(row, column) : 0;
      for (int k = 0; k < o.k(); ++k) sum += a.number(row, k) * b.number(row / 64 * o.n() + column, k);
      const uint32_t got = d[size_t(row * o.n() + column)];
      if (got != whole(matrix::kF32, sum) && ++wrong <= 5) {
        float value;
        std::memcpy(&value, &got, 4);
        ADD_FAILURE() << "row " << row << " column " << column << ": " << value << " for " << sum;
      }
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << d.size();
}

// ---- cases ----

struct Shape {
  int n;
  Kernel kernel;
};
class WgmmaShapes : public WgmmaProbe, public testing::WithParamInterface<Shape> {};

TEST_P(WgmmaShapes, Multiply) {
  const auto [n, kernel] = GetParam();
  for (const bool accumulate : {true, false}) {
    const Operands o = whole_operands(matrix::kBf16, matrix::kBf16, n, accumulate);
    const Tile a = tile_of(Major::k, Swizzle::b128, o.a_format, 64, 0, false),
               b = tile_of(Major::k, Swizzle::b128, o.b_format, n, 64 * 128, false);
    expect_whole(o, run(o, a, b, accumulate, kernel), accumulate);
  }
}
INSTANTIATE_TEST_SUITE_P(Isa, WgmmaShapes,
                         testing::Values(Shape{8, multiply<bf16, bf16, Major::k, Major::k, 4>},
                                         Shape{16, multiply<bf16, bf16, Major::k, Major::k, 8>},
                                         Shape{32, multiply<bf16, bf16, Major::k, Major::k, 16>},
                                         Shape{64, multiply<bf16, bf16, Major::k, Major::k, 32>},
                                         Shape{96, multiply<bf16, bf16, Major::k, Major::k, 48>},
                                         Shape{128, multiply<bf16, bf16, Major::k, Major::k, 64>},
                                         Shape{160, multiply<bf16, bf16, Major::k, Major::k, 80>},
                                         Shape{192, multiply<bf16, bf16, Major::k, Major::k, 96>},
                                         Shape{224, multiply<bf16, bf16, Major::k, Major::k, 112>},
                                         Shape{256, multiply<bf16, bf16, Major::k, Major::k, 128>}),
                         [](const auto& info) { return "N" + std::to_string(info.param.n); });

const char* const kSwizzleNames[] = {"none", "128B", "64B", "32B"};

// Every pair of majors with every swizzle mode of A and another of B, strides dense and not.
struct Layouts {
  Major a, b;
  Kernel kernel;
};
class WgmmaLayouts : public WgmmaProbe, public testing::WithParamInterface<Layouts> {};

TEST_P(WgmmaLayouts, AreThoseOfTheTables) {
  const auto [a_major, b_major, kernel] = GetParam();
  constexpr int kColumns = 96;  // MN-major, 128B: one span of 64 columns and half of another
  for (int mode = 0; mode < 8; ++mode) {
    const bool wide = mode >= 4;
    const Swizzle a_swizzle = static_cast<Swizzle>(mode % 4),
                  b_swizzle = static_cast<Swizzle>((mode + (wide ? 1 : 0)) % 4);
    SCOPED_TRACE(std::string("A ") + kSwizzleNames[int(a_swizzle)] + ", B " + kSwizzleNames[int(b_swizzle)] +
                 (wide ? ", wide" : ""));
    const Operands o = whole_operands(matrix::kF16, matrix::kF16, kColumns, true);
    const Tile a = tile_of(a_major, a_swizzle, o.a_format, 64, 0, wide);
    const Tile b = tile_of(b_major, b_swizzle, o.b_format, kColumns, 32 * kAlignment, wide);
    expect_whole(o, run(o, a, b, true, kernel), true);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Isa, WgmmaLayouts,
    testing::Values(Layouts{Major::k, Major::k, multiply<f16, f16, Major::k, Major::k, 48>},
                    Layouts{Major::k, Major::mn, multiply<f16, f16, Major::k, Major::mn, 48>},
                    Layouts{Major::mn, Major::k, multiply<f16, f16, Major::mn, Major::k, 48>},
                    Layouts{Major::mn, Major::mn, multiply<f16, f16, Major::mn, Major::mn, 48>}),
    [](const auto& info) {
      return std::string(info.param.a == Major::k ? "AK" : "AM") + (info.param.b == Major::k ? "BK" : "BN");
    });

// A pattern that starts at no multiple of its length, and says so in the base offset.
using WgmmaBaseOffset = WgmmaProbe;
TEST_F(WgmmaBaseOffset, ShiftsThePattern) {
  for (const Swizzle swizzle : {Swizzle::b128, Swizzle::b64}) {
    const int lines = swizzle == Swizzle::b128 ? 8 : 4;
    for (int offset = 1; offset < lines; offset += 2) {
      SCOPED_TRACE(std::string(kSwizzleNames[int(swizzle)]) + ", base offset " + std::to_string(offset));
      const Operands o = whole_operands(matrix::kBf16, matrix::kBf16, 64, true);
      Tile a = tile_of(Major::k, swizzle, o.a_format, 64, offset * 128, false);
      Tile b = tile_of(Major::k, swizzle, o.b_format, 64, 16 * kAlignment + (lines - offset) * 128, false);
      a.layout.base_offset = offset;
      b.layout.base_offset = lines - offset;
      expect_whole(o, run(o, a, b, true, multiply<bf16, bf16, Major::k, Major::k, 32>), true);
    }
  }
}
TEST_F(WgmmaBaseOffset, ShiftsThePatternAlongN) {
  const Operands o = whole_operands(matrix::kBf16, matrix::kBf16, 64, true);
  const Tile a = tile_of(Major::k, Swizzle::b128, o.a_format, 64, 0, false);
  Tile b = tile_of(Major::mn, Swizzle::b128, o.b_format, 64, 16 * kAlignment + 3 * 128, false);
  b.layout.base_offset = 3;
  expect_whole(o, run(o, a, b, true, multiply<bf16, bf16, Major::k, Major::mn, 32>), true);
}

// All types, A in shared memory and in registers.
struct Types {
  const char* name;
  Format a, b;
  Kernel kernel;
  RegisterKernel register_kernel, narrow_kernel;  // of 64 and 8 columns
};
template <class A, class B>
Types types(const char* name, const Format& a, const Format& b) {
  return {name,
          a,
          b,
          multiply<A, B, Major::k, Major::k, 32>,
          multiply_registers<A, B, Major::k, Major::k, 32>,
          multiply_registers<A, B, Major::k, Major::k, 4>};
}
using gg::ptx::e4m3, gg::ptx::e5m2, gg::ptx::tf32;
const Types kTypes[] = {types<bf16, bf16>("bf16", matrix::kBf16, matrix::kBf16),
                        types<f16, f16>("f16", matrix::kF16, matrix::kF16),
                        types<tf32, tf32>("tf32", matrix::kTf32, matrix::kTf32),
                        types<e4m3, e4m3>("e4m3", matrix::kE4m3, matrix::kE4m3),
                        types<e4m3, e5m2>("e4m3_e5m2", matrix::kE4m3, matrix::kE5m2),
                        types<e5m2, e4m3>("e5m2_e4m3", matrix::kE5m2, matrix::kE4m3),
                        types<e5m2, e5m2>("e5m2", matrix::kE5m2, matrix::kE5m2)};
class WgmmaTypes : public WgmmaProbe, public testing::WithParamInterface<Types> {};

TEST_P(WgmmaTypes, MultiplyFromSharedMemory) {
  const Types& t = GetParam();
  for (int mode = 0; mode < 4; ++mode) {
    SCOPED_TRACE(kSwizzleNames[mode]);
    const Operands o = whole_operands(t.a, t.b, 64, true);
    const Tile a = tile_of(Major::k, static_cast<Swizzle>(mode), t.a, 64, 0, true),
               b = tile_of(Major::k, static_cast<Swizzle>(mode), t.b, 64, 32 * kAlignment, true);
    expect_whole(o, run(o, a, b, true, t.kernel), true);
  }
}
TEST_P(WgmmaTypes, MultiplyFromRegisters) {
  const Types& t = GetParam();
  for (const bool accumulate : {true, false}) {
    const Operands o = whole_operands(t.a, t.b, 64, accumulate);
    const Tile b = tile_of(Major::k, Swizzle::b128, t.b, 64, 0, false);
    expect_whole(o, run(o, {}, b, accumulate, nullptr, t.register_kernel), accumulate);
  }
}

// Every step's sum is cut, so four steps show more than one.
TEST_P(WgmmaTypes, GiveTheBitsOfAnH200) {
  const Types& t = GetParam();
  std::vector<uint32_t> answers;
  matrix::Bits bits(uint32_t(1000 + t.a.mantissa_bits * 100 + t.b.mantissa_bits * 10 + t.a.exponent_bits));
  const int k = kSteps * 32 / (t.a.bits / 8);
  const Tile b = tile_of(Major::k, Swizzle::b128, t.b, 8, 0, false);
  for (int trial = 0; trial < matrix::trials(1); ++trial) {
    const auto sizes = static_cast<matrix::Sizes>(trial % matrix::kSizes);
    const Operands o{t.a, t.b, bits.matrix(kWarpgroups * 64, k, t.a, sizes),
                     bits.matrix(kWarpgroups * 8, k, t.b, sizes),
                     bits.accumulators(kWarpgroups * 64, 8, matrix::kF32, sizes)};
    const std::vector<uint32_t> d = run(o, {}, b, true, nullptr, t.narrow_kernel);
    answers.insert(answers.end(), d.begin(), d.end());
  }
  matrix::expect_h200(std::string("bits_wgmma_") + t.name, answers);
}
INSTANTIATE_TEST_SUITE_P(Isa, WgmmaTypes, testing::ValuesIn(kTypes),
                         [](const auto& info) { return info.param.name; });

TEST_F(WgmmaProbe, MultipliesRegistersWithColumnsSideBySide) {
  for (int mode = 0; mode < 4; ++mode) {
    SCOPED_TRACE(kSwizzleNames[mode]);
    const Operands o = whole_operands(matrix::kBf16, matrix::kBf16, 128, true);
    const Tile b = tile_of(Major::mn, static_cast<Swizzle>(mode), o.b_format, 128, 0, true);
    expect_whole(o, run(o, {}, b, true, nullptr, multiply_registers<bf16, bf16, Major::k, Major::mn, 64>),
                 true);
  }
}

// ---- f16 accumulators, signs, and groups ----

// D[64,8] in f16, a pair of columns to a register; A and B may be negated.
template <class T, int A_SIGN, int B_SIGN>
__device__ void wgmma_half(uint32_t (&d)[2], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = gg::ptx::WgmmaTransposes<T, Major::k, Major::k>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k%5.f16.%6.%6 {%0, %1}, %2, %3, p, %7, %8%9;\n}"
      : "+r"(d[0]), "+r"(d[1])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(gg::ptx::WgmmaType<T>::k),
        "C"(gg::ptx::WgmmaType<T>::name), "n"(A_SIGN), "n"(B_SIGN), "C"(Transposes::both)
      : "memory");
}

// A word of C has columns 2i and 2i + 1 of a row. Thread t has, with g and q as ever, rows g and
// g + 8, word q.
template <class T, int A_SIGN, int B_SIGN>
__global__ void __launch_bounds__(kThreads) multiply_half(const uint4* images, uint32_t* c, Plan plan) {
  const uint32_t image = copy_images(images, plan.image_bytes);
  c += int(threadIdx.x) / 32 * 64 + int(threadIdx.x) % 32;
  uint32_t d[2] = {c[0], c[32]};
  asm volatile("" : "+r"(d[0]), "+r"(d[1])::"memory");
  gg::ptx::wgmma_fence();
  for (int step = 0; step < kSteps; ++step) {
    wgmma_half<T, A_SIGN, B_SIGN>(d, wgmma_desc(image + plan.a_start[step], plan.a),
                                  wgmma_desc(image + plan.b_start[step], plan.b),
                                  step > 0 || plan.accumulate);
  }
  gg::ptx::wgmma_commit_group();
  gg::ptx::wgmma_wait_group<0>();
  asm volatile("" : "+r"(d[0]), "+r"(d[1])::"memory");
  c[0] = d[0], c[32] = d[1];
}

using HalfKernel = void (*)(const uint4*, uint32_t*, Plan);
struct HalfForm {
  const char* name;
  Format format;
  int sign;  // of A times B
  HalfKernel kernel;
};
class WgmmaHalf : public WgmmaProbe, public testing::WithParamInterface<HalfForm> {
 protected:
  // C and D are f16 codes, 8 columns.
  static std::vector<uint32_t> run(const Matrix& a, const Matrix& b, const Matrix& c) {
    const HalfForm& form = GetParam();
    const Tile a_tile = tile_of(Major::k, Swizzle::b64, form.format, 64, 0, false),
               b_tile = tile_of(Major::k, Swizzle::b32, form.format, 8, 16 * kAlignment, false);
    Plan plan{a_tile.layout, b_tile.layout, {}, {}, 32 * kAlignment, true};
    std::vector<uint8_t> all;
    for (int i = 0; i < kWarpgroups; ++i) {
      std::vector<uint8_t> image;
      lay_out(image, a_tile, form.format, lines_of(a, i));
      lay_out(image, b_tile, form.format, lines_of(b, i));
      image.resize(size_t(plan.image_bytes), 0xFF);
      all.insert(all.end(), image.begin(), image.end());
    }
    for (int step = 0; step < kSteps; ++step) {
      plan.a_start[step] = start_of(a_tile, form.format, step);
      plan.b_start[step] = start_of(b_tile, form.format, step);
    }
    std::vector<uint32_t> pairs(c.data.size() / 2);
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = c.data[2 * i] | c.data[2 * i + 1] << 16;
    const Array<uint8_t> images(all);
    const Array<uint32_t> c_array(pairs);
    launch(form.kernel, plan.image_bytes, reinterpret_cast<const uint4*>(images.get()), c_array.get(), plan);
    return c_array.read();
  }
};

TEST_P(WgmmaHalf, MultipliesWholeNumbers) {
  const HalfForm& form = GetParam();
  const int k_in_all = kSteps * 32 / (form.format.bits / 8);
  const Matrix a = matrix::whole_numbers(kWarpgroups * 64, k_in_all, 3, 21),
               b = matrix::whole_numbers(kWarpgroups * 8, k_in_all, 3, 22),
               c = matrix::whole_numbers(kWarpgroups * 64, 8, 400, 23);
  const std::vector<uint32_t> d =
      run(codes_of(form.format, a), codes_of(form.format, b), codes_of(matrix::kF16, c));
  for (int row = 0; row < c.rows; ++row) {
    for (int column = 0; column < 8; ++column) {
      int sum = c.number(row, column);
      for (int k = 0; k < k_in_all; ++k)
        sum += form.sign * a.number(row, k) * b.number(row / 64 * 8 + column, k);
      const uint32_t got = d[size_t(row * 4 + column / 2)] >> (column % 2 * 16) & 0xFFFF;
      ASSERT_EQ(got, matrix::whole(matrix::kF16, sum))
          << "row " << row << " column " << column << ", " << sum;
    }
  }
}
TEST_P(WgmmaHalf, GivesTheBitsOfAnH200) {
  const HalfForm& form = GetParam();
  const int k = kSteps * 32 / (form.format.bits / 8);
  std::vector<uint32_t> answers;
  matrix::Bits bits(uint32_t(5000 + form.format.mantissa_bits * 10 + form.sign));
  for (int trial = 0; trial < matrix::trials(1); ++trial) {
    const auto sizes = static_cast<matrix::Sizes>(trial % matrix::kSizes);
    const Matrix a = bits.matrix(kWarpgroups * 64, k, form.format, sizes),
                 b = bits.matrix(kWarpgroups * 8, k, form.format, sizes),
                 c = bits.accumulators(kWarpgroups * 64, 8, matrix::kF16, sizes);
    const std::vector<uint32_t> d = run(a, b, c);
    answers.insert(answers.end(), d.begin(), d.end());
  }
  matrix::expect_h200(std::string("bits_wgmma_half_") + form.name, answers);
}
INSTANTIATE_TEST_SUITE_P(Isa, WgmmaHalf,
                         testing::Values(HalfForm{"f16", matrix::kF16, 1, multiply_half<f16, 1, 1>},
                                         HalfForm{"f16_minus_a", matrix::kF16, -1, multiply_half<f16, -1, 1>},
                                         HalfForm{"f16_minus_b", matrix::kF16, -1, multiply_half<f16, 1, -1>},
                                         HalfForm{"e4m3", matrix::kE4m3, 1, multiply_half<e4m3, 1, 1>},
                                         HalfForm{"e5m2_minus_both", matrix::kE5m2, 1,
                                                  multiply_half<e5m2, -1, -1>}),
                         [](const auto& info) { return info.param.name; });

// Two groups under way: the older one's sums may be read while the younger one goes on, on
// the same tiles.
__global__ void __launch_bounds__(kThreads) multiply_in_groups(const uint4* images, float* c, Plan plan) {
  const uint32_t image = copy_images(images, plan.image_bytes);
  c += threadIdx.x / 128 * 64 * 32;
  float first[16], second[16];
  for (int i = 0; i < 16; ++i) first[i] = second[i] = c[place_of(i, 32)];
  gg::ptx::wgmma_fence(first, second);
  for (int step = 0; step < kSteps; ++step) {
    gg::ptx::wgmma<bf16>(first, wgmma_desc(image + plan.a_start[step], plan.a),
                         wgmma_desc(image + plan.b_start[step], plan.b), true);
  }
  gg::ptx::wgmma_commit_group();
  for (int step = 0; step < kSteps; ++step) {
    gg::ptx::wgmma<bf16>(second, wgmma_desc(image + plan.a_start[step], plan.a),
                         wgmma_desc(image + plan.b_start[step], plan.b), step > 0);
  }
  gg::ptx::wgmma_commit_group();
  gg::ptx::wgmma_wait_group<1>(first);
  for (int i = 0; i < 16; ++i) c[place_of(i, 32)] = first[i];
  gg::ptx::wgmma_wait_group<0>(second);
  for (int i = 0; i < 16; ++i) c[place_of(i, 32)] -= second[i];  // leaves what was there before
}
TEST_F(WgmmaProbe, KeepsGroupsApart) {
  const Operands o = whole_operands(matrix::kBf16, matrix::kBf16, 32, true);
  const Tile tile = tile_of(Major::k, Swizzle::b128, o.a_format, 64, 0, false);
  Tile b = tile_of(Major::k, Swizzle::b128, o.b_format, 32, 16 * kAlignment, false);
  EXPECT_EQ(run(o, tile, b, true, multiply_in_groups), o.c.data);
}

}  // namespace wgmma
}  // namespace probe
