// SPDX-License-Identifier: MIT
//
// Boxes of C on their way to a consumer, and boxes of D on their way from it. Both have the
// same place in shared memory: a thread reads gates and ups of C, and writes their gradients
// where they were.

#pragma once

#include "common/kernel/ptx/barrier.cuh"
#include "common/kernel/ptx/ldmatrix.cuh"
#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/stmatrix.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/ptx/warp.cuh"
#include "config.cuh"

namespace chapter {

// Who: a whole consumer. For each tile it calls begin; then for each of its boxes, in their order:
// wait, read and write of all four chunks, put. Box i is in slot i % SLOTS, one of SLOTS slots. A
// tile without a lower half has boxes of even numbers only.
template <class C>
class Boxes {
 public:
  // `addr`: of SLOTS boxes, a multiple of 1024. `landed_addr`: of SLOTS barriers. `thread`: this
  // one's number in the consumer. `barrier`: a named barrier of this consumer's own.
  __device__ Boxes(const Maps& maps, uint32_t addr, uint32_t landed_addr, int thread, int barrier)
      : maps_(maps), addr_(addr), landed_addr_(landed_addr), thread_(thread), barrier_(barrier) {}

  // Starts the loads of a tile's first boxes. `col0`: of C and D.
  // [begin]
  __device__ void begin(const Tile& tile, int col0) {
    row0_ = tile.row0;
    rows_ = tile.rows;
    col0_ = col0;
    // No thread has used a slot since the last put of the tile before. The fence and the bar_sync
    // there order what all threads read and wrote before these loads.
    if (thread_ == 0) {
      gg::ptx::bulk_wait_group_read<0>();  // TMA has read what it stored
      for (int box = 0; box < C::SLOTS; box += stride()) load(box);
    }
  }
  // [/begin]

  // Waits until the box of C has landed. The parity follows from the box's number (config.cuh). The
  // slot is loaded again after a put, whose bar_sync all threads reach after their waits: so no
  // thread can miss a phase.
  __device__ void wait(int box) const {
    gg::ptx::mbarrier_wait_parity(landed_addr_ + box % C::SLOTS * 8, box / C::SLOTS & 1);
  }
  // The gates and ups of 8 columns of the product, from column chunk * 8 of the box's pair on. As
  // wgmma leaves sums, lane l has columns l % 4 * 2 and the next one, of its warp's rows l / 4 and
  // l / 4 + 8: words 0 and 1 are the gates of the two rows, words 2 and 3 the ups.
  __device__ void read(int box, int chunk, uint32_t (&words)[4]) const {
    gg::ptx::ldmatrix_x4(words, chunk_addr(box, chunk));
  }
  // The same words, of D.
  __device__ void write(int box, int chunk, const uint32_t (&words)[4]) const {
    gg::ptx::stmatrix_x4(chunk_addr(box, chunk), words);
  }

  // Stores the box of D, and loads a box of C into the slot of the tile's box before this one.
  // Guarantees, as sync does: what any thread wrote to shared memory before its put, all may read
  // after theirs; what any has read, all may overwrite. make_gradients relies on both for warp_sums.
  // [put]
  __device__ void put(int box) {
    gg::ptx::fence_proxy_async();      // what this thread read and wrote is before TMA's copies
    gg::ptx::bar_sync(barrier_, 128);  // all threads have executed the fence: TMA may start
    const int before = box - stride(), next = before + C::SLOTS;  // these two share a slot
    if (thread_ == 0) {
      const auto place = place_of(box);
      gg::ptx::tma_store_3d(&maps_.d, place.col, place.missing, place.stop, addr_ + offset(box));
      gg::ptx::bulk_commit_group();
      if (before >= 0 && next < TILE_BOXES) {
        gg::ptx::bulk_wait_group_read<1>();  // TMA has read the box before this one
        load(next);
      }
    }
  }
  // [/put]
  // All threads of the consumer come here before one goes on.
  __device__ void sync() const { gg::ptx::bar_sync(barrier_, 128); }
  // Call it after the last tile.
  __device__ void finish() const {
    if (thread_ == 0) gg::ptx::bulk_wait_group_read<0>();  // shared memory must be there until then
  }

 private:
  // From one box of the tile to the next. Boxes of odd numbers are of the lower half (config.cuh).
  __device__ int stride() const { return rows_ > HALF ? 1 : 2; }
  __device__ static int offset(int box) { return box % C::SLOTS * BOX_BYTES; }
  // Where 16 bytes of a row are, a chunk: TMA's swizzle of 128 bytes moves chunk c of row r to c
  // xor r % 8.
  __device__ static int swizzled(int row, int chunk) { return row * ROW_BYTES + (chunk ^ row % 8) * 16; }

  // For ldmatrix and stmatrix: lane l has row l % 8 of matrix l / 8. Matrices 0 and 1 are
  // rows 0 to 7 and 8 to 15 of the warp's gates, matrices 2 and 3 those of the ups, which are
  // four chunks further.
  __device__ uint32_t chunk_addr(int box, int chunk) const {
    static_assert(UNITS * sizeof(bf16) == 4 * 16);
    const int lane = thread_ % 32, row = thread_ / 32 * 16 + lane % 16;
    return addr_ + offset(box) + swizzled(row, chunk + lane / 16 * 4);
  }

  // Coordinates of a box of C or D (token_map): so many of its 64 rows are missing, as the tile has no
  // more, and it ends before row `stop`.
  // [place]
  struct Place {
    int col, missing, stop;
  };
  __device__ Place place_of(int box) const {
    const int first = box % 2 * HALF, kept = min(rows_ - first, HALF);
    return {col0_ + box / 2 * BOX, HALF - kept, row0_ + first + kept};
  }
  // [/place]

  // Who: one thread. In missing rows and past C's last column TMA writes zeros.
  __device__ void load(int box) const {
    const uint32_t landed = landed_addr_ + box % C::SLOTS * 8;
    const auto place = place_of(box);
    gg::ptx::mbarrier_arrive_expect_tx(landed, BOX_BYTES);
    gg::ptx::tma_load_3d(addr_ + offset(box), &maps_.c, place.col, place.missing, place.stop, landed);
  }

  const Maps& maps_;
  uint32_t addr_, landed_addr_;
  int thread_, barrier_;
  int row0_ = 0, rows_ = 0, col0_ = 0;  // of the tile
};

}  // namespace chapter
