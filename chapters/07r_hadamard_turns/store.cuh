// SPDX-License-Identifier: MIT
//
// How a consumer's outputs, 64 columns of a tile of D, get to memory. stmatrix transposes them on the way to
// shared memory. TMA stores boxes of 32 rows from there. Rows that fill no box are stored by threads, for a
// box would reach into the next group's rows. Rows and columns here are D's: tokens and output columns.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/stmatrix.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "config.cuh"
#include "glu.cuh"

namespace chapter {

// Who: a whole warpgroup. It makes one box of D after the other and has room for C::BOXES of them:
// TMA reads those before while it makes the next one. The other consumer's products go on
// meanwhile, if it has a tile.
template <class C>
class BoxStore {
 public:
  // `shared`: C::BOXES * C::BOX_BYTES at a multiple of 1024. `thread`: this one's number in the warpgroup.
  // `barrier`: a named barrier of this warpgroup's own. n: columns of D.
  __device__ BoxStore(const CUtensorMap& d_map, bf16* d, int n, unsigned char* shared, int thread,
                      int barrier)
      : d_map_(d_map), d_(d), n_(n), thread_(thread), barrier_(barrier), shared_(shared) {}

  // Takes a box of outputs: rows box * STEP and up of the tile. Only tile.rows rows are stored. Call it for
  // box 0 of a tile, then box 1 and so on.
  // words[0] are the outputs of half 0, the first 8 of this warp's 16 columns, words[1] of half 1.
  // `tile`: its factors, of which only row0, rows and col0 are used, the tile's place in D.
  // [put]
  __device__ void put(int box, const uint32_t (&words)[2][4], const Factors<C::BM, C::BN>& tile) {
    // Waits until what was here has been read. Box 0 waits for all of the tile before, which was
    // read long ago. Box b, from C::BOXES on, goes where box b - C::BOXES was: so all but the last
    // C::BOXES - 1 must have been read.
    if (box == 0) {
      wait_until_read<0>();
    } else if (box >= C::BOXES) {
      wait_until_read<C::BOXES - 1>();
    }
    // `tile` is read before the bar_sync below, on which Factors::read relies: after that of the
    // last box, this consumer's threads write the factors of its next tile there.
    const int row0 = tile.row0 + box * STEP, rows = tile.rows - box * STEP, col0 = tile.col0 / 2;  // of D
    const int at = box % C::BOXES * C::BOX_BYTES;
    write_box(at, words);
    gg::ptx::fence_proxy_async();
    gg::ptx::bar_sync(barrier_, 128);  // all rows are there, for TMA too, and `tile` was read
    if (rows >= STEP) {
      if (thread_ == 0) gg::ptx::tma_store_2d(&d_map_, col0, row0, addr_ + at);
    } else {
      store_rows(at, row0, rows, col0);
    }
    if (thread_ == 0) gg::ptx::bulk_commit_group();  // one for each box: wait_until_read counts them
  }
  // [/put]

  // After the last `put`: waits until TMA has read. When the block ends, its
  // shared memory may be another's.
  __device__ static void finish() {
    if (threadIdx.x % 128 == 0) gg::ptx::bulk_wait_group_read<0>();
  }

 private:
  static constexpr int CHUNKS = C::D_BYTES / 16;  // of a row
  static_assert(CHUNKS == 8);                     // as `swizzled` and D's map count

  // Waits until TMA has read all boxes but the last LEFT, and the threads their rows.
  template <int LEFT>
  __device__ void wait_until_read() {
    if (thread_ == 0) gg::ptx::bulk_wait_group_read<LEFT>();
    gg::ptx::bar_sync(barrier_, 128);
  }

  // [write]
  // Where 16 bytes of a row are, a chunk: TMA's swizzle of 128 bytes moves chunk c of row r to c xor r % 8.
  // D's map (launch.cuh) must have the same swizzle. No assertion compares the two.
  __device__ static int swizzled(int row, int chunk) { return row * C::D_BYTES + (chunk ^ row % 8) * 16; }

  // Writes 32 rows of this warp's 16 columns to shared memory: chunks 2w and 2w + 1 are warp w's, by
  // the order of B's map (launch.cuh). words[h][i] is an 8x8 matrix: half h, rows 8i to 8i + 7 of the
  // box, and its rows are columns of D. A stmatrix transposes four; lane l gives box row l's address.
  __device__ void write_box(int at, const uint32_t (&words)[2][4]) {
    static_assert(STEP == 32 && CHUNKS == 4 * 2);  // for each half one stmatrix, one chunk
    const int lane = thread_ % 32, warp = thread_ / 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      gg::ptx::stmatrix_x4_trans(addr_ + at + swizzled(lane, warp * 2 + half), words[half]);
    }
  }
  // [/write]

  // The rows that fill no box.
  __device__ void store_rows(int at, int row0, int rows, int col0) {
    const int chunk = thread_ % CHUNKS;
    if (col0 + chunk * 8 >= n_) return;
#pragma unroll 1
    for (int row = thread_ / CHUNKS; row < rows; row += 128 / CHUNKS) {
      *reinterpret_cast<uint4*>(d_ + int64_t(row0 + row) * n_ + col0 + chunk * 8) =
          *reinterpret_cast<const uint4*>(shared_ + at + swizzled(row, chunk));
    }
  }

  const CUtensorMap& d_map_;  // no copy: TMA reads the kernel's parameter, at its address
  bf16* d_;
  int n_, thread_, barrier_;
  const unsigned char* shared_;  // as threads read it; addr_: as stmatrix and TMA take it
  const uint32_t addr_ = gg::ptx::keep(gg::ptx::shared_addr(shared_));  // `keep` for speed alone
};

}  // namespace chapter
