// SPDX-License-Identifier: MIT
//
// tcgen05: the tensor core of Blackwell. One thread starts products of matrices in shared memory;
// their sums stay in tensor memory (TMEM), 128 lanes by 512 columns of 32 bits, which belongs to
// the block. PTX ISA, "TensorCore 5th Generation Family Instructions". In order: tcgen05_alloc by a
// warp, tcgen05_mma and tcgen05_commit by one thread, a wait for the commit's mbarrier, tcgen05_ld
// by warps, tcgen05_dealloc. Needs sm_100a.
//
// CTA_GROUP is 1 in all instructions of a kernel, or 2 in all of them. With 2, blocks of ranks 2i
// and 2i + 1 of a cluster are a pair. One thread of the even block starts copies and products for
// both. Each block has its half of the rows of A, of B's (columns of D), and of D, all at the same
// addresses in both blocks. PTX ISA, "CTA Pair".

#pragma once

#include <cstdint>
#include <type_traits>

#include "common/kernel/types.cuh"

namespace gg::ptx {

// ---- tensor memory ----

constexpr int TMEM_LANES = 128, TMEM_COLUMNS = 512;

// PTX ISA, "Tensor Memory Addressing": bits 31-16 are the lane, bits 15-0 the column.
struct TmemAddr {
  uint32_t value;
};
__device__ inline TmemAddr tmem_at(TmemAddr base, int lane, int column) {
  return {base.value + (uint32_t(lane) << 16) + uint32_t(column)};
}

// Who: one whole warp of the block. COLUMNS: 32, 64, 128, 256 or 512.
// Does: waits until so many columns are free, takes them and writes the address of the first to
//   shared memory at slot_addr, a multiple of 4.
//   CTA_GROUP 2: one warp of each block of the pair executes it; each block gets so many columns
//   of its own.
// After: __syncthreads, then others may read the slot. CTA_GROUP 2: a cluster barrier, since
//   products write into both blocks.
template <int COLUMNS, int CTA_GROUP = 1>
__device__ inline void tcgen05_alloc(uint32_t slot_addr) {
  static_assert(COLUMNS == 32 || COLUMNS == 64 || COLUMNS == 128 || COLUMNS == 256 || COLUMNS == 512);
  asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(slot_addr),
               "n"(COLUMNS), "n"(CTA_GROUP)
               : "memory");
}

// Who: one whole warp, after the block's last tcgen05_alloc. Does: lets other blocks of the
//   multiprocessor allocate; this block must not any more. CTA_GROUP 2: one warp of each block
//   of the pair.
template <int CTA_GROUP = 1>
__device__ inline void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(CTA_GROUP) : "memory");
}

// Who: one whole warp, before the block ends, with what tcgen05_alloc gave.
// Before: nobody reads or writes these columns any more. CTA_GROUP 2: one warp of each block of the
//   pair, after a cluster barrier, since both blocks' columns are free only when both are done.
template <int COLUMNS, int CTA_GROUP = 1>
__device__ inline void tcgen05_dealloc(TmemAddr first) {
  asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(first.value), "n"(COLUMNS),
               "n"(CTA_GROUP)
               : "memory");
}

// ---- order between threads ----

// Who: threads that hand tensor memory to others. The first goes before the barrier at which they
//   meet, after this thread's own tcgen05 instructions; the second goes after that barrier, before
//   the other thread's. tcgen05_commit is such a first one by itself.
__device__ inline void tcgen05_fence_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ inline void tcgen05_fence_after() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// Who: the thread that started products and copies (tcgen05_cp_..). Does: when all that it has
//   started so far are done, one arrival at the mbarrier.
// After: those who see the phase end, and then call tcgen05_fence_after, may read the sums, and may
//   overwrite the shared memory that was read.
template <int CTA_GROUP = 1>
__device__ inline void tcgen05_commit(uint32_t bar_addr) {
  asm volatile("tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(bar_addr),
               "n"(CTA_GROUP)
               : "memory");
}
// The same at the mbarrier with this address in every block of the cluster whose bit is
// set in `blocks`.
// Before: those blocks' mbarriers are initialised, and the blocks have not ended.
template <int CTA_GROUP = 1>
__device__ inline void tcgen05_commit_multicast(uint32_t bar_addr, uint16_t blocks) {
  asm volatile(
      "tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::
          "r"(bar_addr),
      "h"(blocks), "n"(CTA_GROUP)
      : "memory");
}

// ---- tensor memory to registers ----

// Who: a whole warp. The lane of `from` is 32 * (warp % 4): a warp reaches no other lanes.
// Does: starts to load 32 columns; lane t of the warp gets those of lane t of these 32.
// After: the registers may be read after tcgen05_wait_ld.
__device__ inline void tcgen05_ld_32x32b_x32(uint32_t (&d)[32], TmemAddr from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
      "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]), "=r"(d[6]), "=r"(d[7]),
        "=r"(d[8]), "=r"(d[9]), "=r"(d[10]), "=r"(d[11]), "=r"(d[12]), "=r"(d[13]), "=r"(d[14]), "=r"(d[15]),
        "=r"(d[16]), "=r"(d[17]), "=r"(d[18]), "=r"(d[19]), "=r"(d[20]), "=r"(d[21]), "=r"(d[22]),
        "=r"(d[23]), "=r"(d[24]), "=r"(d[25]), "=r"(d[26]), "=r"(d[27]), "=r"(d[28]), "=r"(d[29]),
        "=r"(d[30]), "=r"(d[31])
      : "r"(from.value)
      : "memory");
}

// Who: the warp that loaded. Does: waits until its loads from tensor memory are done. The registers
//   are operands so that the compiler reads none of them earlier.
__device__ inline void tcgen05_wait_ld(uint32_t (&d)[32]) {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
  for (int i = 0; i < 32; ++i) asm volatile("" : "+r"(d[i]));
}

// The same after two loads: one wait is for all loads of the warp.
__device__ inline void tcgen05_wait_ld(uint32_t (&d)[32], uint32_t (&e)[32]) {
  tcgen05_wait_ld(d);
#pragma unroll
  for (int i = 0; i < 32; ++i) asm volatile("" : "+r"(e[i]));
}

// ---- registers to tensor memory ----

// Who: a whole warp; lanes as for tcgen05_ld_32x32b_x32.
// Does: starts to store 16 columns; lane t of the warp fills those of lane t of its 32.
// Before: nobody reads or writes these columns any more.
// After: tcgen05_wait_st; then tcgen05_fence_before and a barrier, and others may read them.
__device__ inline void tcgen05_st_32x32b_x16(TmemAddr to, const uint32_t (&d)[16]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x16.b32 [%16], {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
      "%13, %14, %15};" ::"r"(d[0]),
      "r"(d[1]), "r"(d[2]), "r"(d[3]), "r"(d[4]), "r"(d[5]), "r"(d[6]), "r"(d[7]), "r"(d[8]), "r"(d[9]),
      "r"(d[10]), "r"(d[11]), "r"(d[12]), "r"(d[13]), "r"(d[14]), "r"(d[15]), "r"(to.value)
      : "memory");
}

// Who: the warp that stored. Does: waits until its stores to tensor memory are done.
__device__ inline void tcgen05_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

// ---- shared memory to tensor memory ----

// PTX ISA, "Tensor memory layout for scale factors". An atom of 512 bytes in shared memory has the
// scales of 128 rows for four scale blocks of K: row r's four bytes at 16 * (r % 32)
// + 4 * (r / 32), without a swizzle.
struct Tcgen05Desc {
  uint64_t bits;
};
__device__ inline Tcgen05Desc tcgen05_desc_scales(uint32_t atom_addr) {
  constexpr uint64_t EIGHT_ROWS_BYTES = 8 * 16;
  return {uint64_t(atom_addr & 0x3FFFF) >> 4 |  // bits 0-13: start address
          EIGHT_ROWS_BYTES >> 4 << 32 |         // bits 32-45: stride dimension byte offset
          uint64_t(1) << 46};                   // bits 46-48: constant 1
}

// Who: one thread, the one that starts the products which use these scales.
// Does: starts to copy an atom to four columns from `to` on, lane 0: into each quarter of the
//   lanes the same, row r in lane r % 32 of column r / 32. Done before products that this
//   thread starts later.
//   CTA_GROUP 2: each block of the pair copies its own atom at this address to its
//   own tensor memory.
// Before: the atom has landed, of a pair in both blocks.
template <int CTA_GROUP = 1>
__device__ inline void tcgen05_cp_32x128b_warpx4(TmemAddr to, Tcgen05Desc atom) {
  asm volatile("tcgen05.cp.cta_group::%2.32x128b.warpx4 [%0], %1;" ::"r"(to.value), "l"(atom.bits),
               "n"(CTA_GROUP)
               : "memory");
}

// ---- products ----

// PTX ISA, "Matrix Descriptor", "Strides". A tile of rows along K in shared memory, whose 16-byte
// units TMA has mixed within 128 bytes (CU_TENSOR_MAP_SWIZZLE_128B): rows of 128 bytes, side by
// side in memory, from a multiple of 1024 bytes on.
__device__ inline Tcgen05Desc tcgen05_desc_k_major_128b(uint32_t tile_addr) {
  constexpr uint64_t EIGHT_ROWS_BYTES = 8 * 128;
  return {uint64_t(tile_addr & 0x3FFFF) >> 4 |  // bits 0-13: start address
          EIGHT_ROWS_BYTES >> 4 << 32 |         // bits 32-45: stride dimension byte offset
          uint64_t(1) << 46 |                   // bits 46-48: constant 1, which Hopper's lacks
          uint64_t(2) << 61};                   // bits 61-63: 128-byte swizzle, 1 in Hopper's
}
// The same for tiles of 8-bit elements whose lines of 128 bytes lie along M or N: line k has that k
// of 128 rows of A, or of 128 columns of B. Where the tile has more of these, the next 128 begin
// leading_bytes further on. A step of 32 along K is 32 lines further.
__device__ inline Tcgen05Desc tcgen05_desc_mn_major_128b(uint32_t tile_addr, uint32_t leading_bytes) {
  // Bits 16-29: leading_bytes.
  return {tcgen05_desc_k_major_128b(tile_addr).bits | uint64_t(leading_bytes >> 4) << 16};
}
// The same tile with its first byte so many bytes further on. Along K that is within rows
// of 128 bytes.
__device__ inline Tcgen05Desc tcgen05_advance(Tcgen05Desc desc, int bytes) {
  const uint32_t address = uint32_t(desc.bits) + uint32_t(bytes >> 4);
  return {desc.bits >> 32 << 32 | address};
}

// A small tile along K that is not swizzled: units of 16 bytes, those of eight rows side by side
// in 128 bytes, which make a core matrix. `k_bytes` further are the same rows' next 16 bytes
// of K, `rows_bytes` further the next eight rows. All multiples of 16.
__device__ inline Tcgen05Desc tcgen05_desc_k_major(uint32_t tile_addr, int k_bytes, int rows_bytes) {
  return {uint64_t(tile_addr & 0x3FFFF) >> 4 |  // bits 0-13: start address
          uint64_t(k_bytes >> 4) << 16 |        // bits 16-29: leading dimension byte offset
          uint64_t(rows_bytes >> 4) << 32 |     // bits 32-45: stride dimension byte offset
          uint64_t(1) << 46};                   // bits 46-48: constant 1; bits 61-63: 0, no swizzle
}

// PTX ISA, "Instruction descriptor": f32 sums of M rows and N columns of T, both operands along K.
// M: 64 or 128, of a pair 256, which is both blocks' rows; N: a multiple of 16 from 16 to 256, of a
// pair both blocks' rows of B.
template <class T, int M, int N>
constexpr uint32_t tcgen05_idesc_f16() {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  static_assert((M == 64 || M == 128 || M == 256) && N % 16 == 0 && 16 <= N && N <= 256);
  constexpr uint32_t TYPE = std::is_same_v<T, bf16> ? 1 : 0;
  return 1u << 4 |                  // bits 4-5: D is f32
         TYPE << 7 |                // bits 7-9: type of A
         TYPE << 10 |               // bits 10-12: type of B
         uint32_t(N >> 3) << 17     // bits 17-22
         | uint32_t(M >> 4) << 24;  // bits 24-28
}

// Who: one thread of the block, always the same one for the same sums.
// Does: starts D = A * B, or D += A * B if `accumulate`, over 16 elements of K: row m of D in lane
//   m of tensor memory (M = 128), column n in column n from `d` on. CTA_GROUP 2, M = 256: row m in
//   lane m % 128 of block m / 128 of the pair; rows 128b and up of A and N/2 * b and up of B are
//   in block b.
// Before: A and B have landed; if others wrote or read D, a barrier and tcgen05_fence_after.
// After: tcgen05_commit tells when it is done. Products that one thread starts are done one
//   after the other.
template <int CTA_GROUP = 1>
__device__ inline void tcgen05_mma_f16(TmemAddr d, Tcgen05Desc a, Tcgen05Desc b, uint32_t idesc,
                                       bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.u32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p;\n"
      "}" ::"r"(d.value),
      "l"(a.bits), "l"(b.bits), "r"(idesc), "r"(uint32_t(accumulate)), "n"(CTA_GROUP)
      : "memory");
}

// The same with A in tensor memory: row m in the lane where row m of D is, in block m / 128 of
// a pair; 16 elements of K in eight columns from `a` on, two to a column, the even one in bits
// 0 to 15.
// Before: who stored A has run tcgen05_wait_st and tcgen05_fence_before, then
// a barrier, tcgen05_fence_after.
template <int CTA_GROUP = 1>
__device__ inline void tcgen05_mma_f16(TmemAddr d, TmemAddr a, Tcgen05Desc b, uint32_t idesc,
                                       bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.u32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::%5.kind::f16 [%0], [%1], %2, %3, p;\n"
      "}" ::"r"(d.value),
      "r"(a.value), "l"(b.bits), "r"(idesc), "r"(uint32_t(accumulate)), "n"(CTA_GROUP)
      : "memory");
}

// PTX ISA, "Instruction descriptor", of the kinds with block scales: f32 sums of M rows
// and N columns of T, both operands along K, scales of UE8M0. M: 128, of a pair 256; N:
// as for tcgen05_idesc_f16.
template <class T, int M, int N>
constexpr uint32_t tcgen05_idesc_mxf8f6f4() {
  static_assert(std::is_same_v<T, gg::e4m3> || std::is_same_v<T, gg::e5m2>);
  static_assert((M == 128 || M == 256) && N % 16 == 0 && 16 <= N && N <= 256);
  constexpr uint32_t TYPE = std::is_same_v<T, gg::e5m2> ? 1 : 0;
  return TYPE << 7 |               // bits 7-9: type of A
         TYPE << 10 |              // bits 10-12: type of B
         uint32_t(N >> 3) << 17 |  // bits 17-22
         1u << 23 |                // bit 23: scales are UE8M0
         uint32_t(M >> 7) << 27;   // bits 27-28
}
// Added to that: B's lines lie along N (PTX ISA, "Instruction descriptor", "Transpose B
// Matrix"). 8-bit elements; N a multiple of 16, of a pair 32.
constexpr uint32_t TCGEN05_B_MN_MAJOR = 1u << 16;
// The byte of four in a column that a product takes its scales from: one for A, one for B.
__device__ inline uint32_t tcgen05_scale_ids(int a, int b) {
  return uint32_t(a) << 29 |  // bits 29-30
         uint32_t(b) << 4;    // bits 4-5
}

// Who, when: as tcgen05_mma_f16. Does: D = A * B or D += A * B over 32 elements of K, each product
//   times the scale of its row of A and of its column of B. CTA_GROUP 2: each block has the scales
//   of its rows of A, and those of all N columns.
template <int CTA_GROUP = 1>
__device__ inline void tcgen05_mma_mxf8f6f4(TmemAddr d, Tcgen05Desc a, Tcgen05Desc b, uint32_t idesc,
                                            TmemAddr sfa, TmemAddr sfb, bool accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.u32 p, %6, 0;\n"
      "tcgen05.mma.cta_group::%7.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%4], [%5], p;\n"
      "}" ::"r"(d.value),
      "l"(a.bits), "l"(b.bits), "r"(idesc), "r"(sfa.value), "r"(sfb.value), "r"(uint32_t(accumulate)),
      "n"(CTA_GROUP)
      : "memory");
}

// The same for E2M1, two elements to a byte.
template <class Scale, int M, int N>
constexpr uint32_t tcgen05_idesc_mxf4nvf4() {
  static_assert(std::is_same_v<Scale, gg::ue8m0> || std::is_same_v<Scale, gg::ue4m3>);
  static_assert((M == 128 || M == 256) && N % 16 == 0 && 16 <= N && N <= 256);
  return 1u << 7 |                                           // bits 7-9: A is E2M1
         1u << 10 |                                          // bits 10-11: B is E2M1
         uint32_t(N >> 3) << 17 |                            // bits 17-22
         uint32_t(std::is_same_v<Scale, gg::ue8m0>) << 23 |  // bit 23: scales are UE8M0
         uint32_t(M >> 7) << 27;                             // bits 27-28
}

// Who, when: as tcgen05_mma_mxf8f6f4.
// Does: D = A * B or D += A * B over 64 elements of K; each scale block of V = 32 or 16 elements
//   times the scales of its row of A and of its column of B: bytes id and id + 1, or all four.
template <int V, int CTA_GROUP = 1>
__device__ inline void tcgen05_mma_mxf4nvf4(TmemAddr d, Tcgen05Desc a, Tcgen05Desc b, uint32_t idesc,
                                            TmemAddr sfa, TmemAddr sfb, bool accumulate) {
  static_assert(V == 32 || V == 16);
  if constexpr (V == 32) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.u32 p, %6, 0;\n"
        "tcgen05.mma.cta_group::%7.kind::mxf4nvf4.block_scale.scale_vec::2X [%0], %1, %2, %3, [%4], [%5], "
        "p;\n"
        "}" ::"r"(d.value),
        "l"(a.bits), "l"(b.bits), "r"(idesc), "r"(sfa.value), "r"(sfb.value), "r"(uint32_t(accumulate)),
        "n"(CTA_GROUP)
        : "memory");
  } else {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.u32 p, %6, 0;\n"
        "tcgen05.mma.cta_group::%7.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], [%5], "
        "p;\n"
        "}" ::"r"(d.value),
        "l"(a.bits), "l"(b.bits), "r"(idesc), "r"(sfa.value), "r"(sfb.value), "r"(uint32_t(accumulate)),
        "n"(CTA_GROUP)
        : "memory");
  }
}

// The kind with block scales for elements of T, each V of them with a Scale: the functions above.
template <class T, class Scale, int M, int N>
constexpr uint32_t tcgen05_idesc_block_scale() {
  if constexpr (std::is_same_v<T, gg::e2m1>) {
    return tcgen05_idesc_mxf4nvf4<Scale, M, N>();
  } else {
    static_assert(std::is_same_v<Scale, gg::ue8m0>);
    return tcgen05_idesc_mxf8f6f4<T, M, N>();
  }
}
template <class T, int V, int CTA_GROUP = 1>
__device__ inline void tcgen05_mma_block_scale(TmemAddr d, Tcgen05Desc a, Tcgen05Desc b, uint32_t idesc,
                                               TmemAddr sfa, TmemAddr sfb, bool accumulate) {
  if constexpr (std::is_same_v<T, gg::e2m1>) {
    tcgen05_mma_mxf4nvf4<V, CTA_GROUP>(d, a, b, idesc, sfa, sfb, accumulate);
  } else {
    static_assert(V == 32);
    tcgen05_mma_mxf8f6f4<CTA_GROUP>(d, a, b, idesc, sfa, sfb, accumulate);
  }
}

}  // namespace gg::ptx
