// SPDX-License-Identifier: MIT
//
// wgmma: a warpgroup, four warps of which the first is a multiple of four, multiplies matrices in
// shared memory on the tensor cores while it goes on. PTX ISA, "Asynchronous Warpgroup Level
// Matrix Instructions". A tile's place and layout stand in a descriptor; D has 64 rows, and N
// columns are 2 * the length of `d`. In order: wgmma_fence, some wgmma, wgmma_commit_group,
// wgmma_wait_group. Needs sm_90a.

#pragma once

#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "common/kernel/types.cuh"

namespace gg::ptx {

// The dimension along which neighbours in memory lie: k, or M of A and N of B.
enum class Major { k, mn };

// How 16-byte units are mixed within spans of so many bytes: the same names and patterns as
// of tensor maps.
enum class Swizzle : uint64_t { none = 0, b128 = 1, b64 = 2, b32 = 3 };

// How a tile lies in shared memory. A swizzled tile is made of rows as long as the span, eight of
// them to a pattern, which starts at a multiple of eight spans; without swizzling, eight rows of 16
// bytes are together.
//   Major::k, swizzled: stride_bytes from eight rows to the next; leading_bytes does not count.
//   Major::k, none: stride_bytes likewise; leading_bytes from 16 bytes of k to the next.
//   Major::mn, swizzled: a row is a k; stride_bytes from eight k to the next, leading_bytes from
//     one span of M or N to the next.
//   Major::mn, none: stride_bytes from eight of M or N to the next, leading_bytes from eight k.
struct TileLayout {
  Swizzle swizzle = Swizzle::none;
  int leading_bytes = 0, stride_bytes = 0;
  int base_offset = 0;  // (address >> 7) & 7 of a pattern that starts at no multiple of eight spans
};

struct WgmmaDesc {
  uint64_t bits;
};

// Who: any thread. The descriptor of the tile at this shared address, a multiple of 16.
__device__ inline WgmmaDesc wgmma_desc(uint32_t tile_addr, const TileLayout& layout) {
  return {uint64_t(tile_addr & 0x3FFFF) >> 4 |           // bits 0-13: start address
          uint64_t(layout.leading_bytes) >> 4 << 16 |    // bits 16-29: leading dimension offset
          uint64_t(layout.stride_bytes) >> 4 << 32 |     // bits 32-45: stride dimension byte offset
          uint64_t(layout.base_offset) << 49 |           // bits 49-51
          static_cast<uint64_t>(layout.swizzle) << 62};  // bits 62-63
}

// The same tile, `bytes` further on, a multiple of 16: within a swizzled row of Major::k add the
// bytes of k and nothing else. In 32 bits, for the address has no carry into the other fields.
__device__ inline WgmmaDesc wgmma_advance(WgmmaDesc desc, int bytes) {
  const uint32_t address = uint32_t(desc.bits) + uint32_t(bytes >> 4);
  return {desc.bits >> 32 << 32 | address};
}

struct tf32 {};  // a float whose lower 13 bits don't count
using e4m3 = __nv_fp8_e4m3;
using e5m2 = __nv_fp8_e5m2;

// The parts of the instruction that depend on types, as text for asm ("C" operands).
template <class T>
struct WgmmaType;
template <>
struct WgmmaType<bf16> {
  static constexpr const char name[] = "bf16", k[] = "16";
};
template <>
struct WgmmaType<f16> {
  static constexpr const char name[] = "f16", k[] = "16";
};
template <>
struct WgmmaType<tf32> {
  static constexpr const char name[] = "tf32", k[] = "8";
};
template <>
struct WgmmaType<e4m3> {
  static constexpr const char name[] = "e4m3", k[] = "32";
};
template <>
struct WgmmaType<e5m2> {
  static constexpr const char name[] = "e5m2", k[] = "32";
};

template <class T, Major A_MAJOR, Major B_MAJOR>
struct WgmmaTransposes {  // other than 16-bit types lie along k and say nothing
  static_assert(A_MAJOR == Major::k && B_MAJOR == Major::k, "only 16-bit types lie along M or N");
  static constexpr const char both[] = "", b[] = "";
};
template <class T, Major A_MAJOR, Major B_MAJOR>
requires(std::is_same_v<T, bf16> || std::is_same_v<T, f16>) struct WgmmaTransposes<T, A_MAJOR, B_MAJOR> {
  static constexpr char a_mn = A_MAJOR == Major::mn ? '1' : '0', b_mn = B_MAJOR == Major::mn ? '1' : '0';
  static constexpr const char both[] = {',', ' ', a_mn, ',', ' ', b_mn, '\0'}, b[] = {',', ' ', b_mn, '\0'};
};

// Nothing for the machine: here the compiler has these values in their registers.
template <int REGISTERS>
__device__ inline void wgmma_hold(float (&d)[REGISTERS]) {
#pragma unroll
  for (int i = 0; i < REGISTERS; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
// Who: the whole warpgroup.
// Does: hands accumulators over to wgmma that ordinary instructions have touched: before the first
//   wgmma, and before every one whose registers were touched since. Name them, and the compiler
//   won't move what sets them past the fence.
// Before: ordinary writes of shared memory want fence_proxy_async (tma.cuh) and a barrier.
template <class... Registers>
__device__ inline void wgmma_fence(Registers&... registers) {
  (wgmma_hold(registers), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Who: the whole warpgroup.
// Does: makes one group of all wgmma since its last commit.
__device__ inline void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Who: the whole warpgroup.
// Does: waits until at most N of the groups it committed last are unfinished.
// After: of the older groups, `d` may be read, and what they read, registers and shared
//   memory, may be overwritten. Name the registers, and the compiler won't move what reads
//   them before the wait.
template <int N, class... Registers>
__device__ inline void wgmma_wait_group(Registers&... registers) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
  (wgmma_hold(registers), ...);
}

// All below. Who: the whole warpgroup, with the same operands.
// Does: starts D = A * B, added to D if `accumulate`, for 64 rows, N columns and 32 bytes of k,
//   which are 16 of bf16 and f16, 8 of tf32, 32 of e4m3 and e5m2. Thread t's share of D, with
//   w = t / 32 % 4, g = t % 32 / 4 and q = t % 4: d[i] is row 16w + g + 8 * (i / 2 % 2), column
//   8 * (i / 4) + 2q + i % 2.
// Before: wgmma_fence, but not between wgmma on the same D.
// After: d and both tiles belong to it until wgmma_wait_group covers its group.

// N is 8, 16, 32 and then multiples of 32 up to 256: the widths of the chapters' tiles.
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[4], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k%7.f32.%8.%9 {%0, %1, %2, %3}, %4, %5, p, 1, 1%10;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[8], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k%11.f32.%12.%13 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, "
      "1%14;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[16], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k%19.f32.%20.%21 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
      "%11, %12, %13, %14, %15}, %16, %17, p, 1, 1%22;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[32], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k%35.f32.%36.%37 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
      "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "
      "%31}, %32, %33, p, 1, 1%38;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[48], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %50, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n96k%51.f32.%52.%53 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
      "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "
      "%31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, %48, %49, p, "
      "1, 1%54;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[64], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k%67.f32.%68.%69 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
      "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "
      "%31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "
      "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1%70;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[80], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %82, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n160k%83.f32.%84.%85 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
      "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "
      "%31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "
      "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, "
      "%71, %72, %73, %74, %75, %76, %77, %78, %79}, %80, %81, p, 1, 1%86;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]),
        "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[96], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k%99.f32.%100.%101 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
      "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "
      "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, "
      "%90, %91, %92, %93, %94, %95}, %96, %97, p, 1, 1%102;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]),
        "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]),
        "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]),
        "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]),
        "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[112], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %114, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n224k%115.f32.%116.%117 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
      "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "
      "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, "
      "%90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
      "%108, %109, %110, %111}, %112, %113, p, 1, 1%118;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]),
        "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]),
        "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]),
        "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]),
        "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]),
        "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]),
        "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}
template <class A, class B = A, Major A_MAJOR = Major::k, Major B_MAJOR = Major::k>
__device__ inline void wgmma(float (&d)[128], WgmmaDesc a, WgmmaDesc b, bool accumulate) {
  using Transposes = WgmmaTransposes<A, A_MAJOR, B_MAJOR>;
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k%131.f32.%132.%133 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
      "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "
      "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, "
      "%90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, "
      "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, "
      "%124, %125, %126, %127}, %128, %129, p, 1, 1%134;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]),
        "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]),
        "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]),
        "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]),
        "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]),
        "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]),
        "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]),
        "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]),
        "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a.bits), "l"(b.bits), "r"(int(accumulate)), "C"(WgmmaType<A>::k), "C"(WgmmaType<A>::name),
        "C"(WgmmaType<B>::name), "C"(Transposes::both)
      : "memory");
}

}  // namespace gg::ptx
