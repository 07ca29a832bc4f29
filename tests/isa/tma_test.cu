// SPDX-License-Identifier: MIT
//
// TMA: which element of the box lands at which byte, what becomes of elements outside the tensor,
// and what stores leave alone. Shared memory is filled before every load and shown whole after it,
// so that a byte too many is seen as well as one too few.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "common/kernel/ptx/mbarrier.cuh"
#include "common/kernel/ptx/shared.cuh"
#include "common/kernel/ptx/tma.cuh"
#include "common/kernel/tensor_map.h"
#include "common/kernel/types.cuh"
#include "hopper.cuh"

namespace probe {
namespace tma {

constexpr int kThreads = 128;
constexpr int kWords = 4096;  // of shared memory, 16 KB at a multiple of 1024
constexpr uint32_t kUntouched = 0xABABABAB;

struct Place {  // of a box: where in shared memory, and the coordinates of its first element
  int offset, c0, c1, c2;
};

// [probe]
// [load]
// Loads a box and shows all of shared memory. Block b takes place b.
__global__ void load(const __grid_constant__ CUtensorMap map, const Place* places, int dims, int box_bytes,
                     uint32_t* out) {
  __shared__ __align__(1024) uint32_t words[kWords];
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  for (int i = int(threadIdx.x); i < kWords; i += kThreads) words[i] = kUntouched;
  if (threadIdx.x == 0) {
    gg::ptx::prefetch_tensormap(&map);
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  gg::ptx::fence_proxy_async();
  __syncthreads();  // the barrier is there, and nobody writes shared memory any more
  if (threadIdx.x == 0) {
    const Place p = places[blockIdx.x];
    const uint32_t dst_addr = gg::ptx::shared_addr(words) + uint32_t(p.offset);
    gg::ptx::mbarrier_arrive_expect_tx(bar_addr, box_bytes);
    if (dims == 1) gg::ptx::tma_load_1d(dst_addr, &map, p.c0, bar_addr);
    if (dims == 2) gg::ptx::tma_load_2d(dst_addr, &map, p.c0, p.c1, bar_addr);
    if (dims == 3) gg::ptx::tma_load_3d(dst_addr, &map, p.c0, p.c1, p.c2, bar_addr);
  }
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // the box has landed
  for (int i = int(threadIdx.x); i < kWords; i += kThreads) out[blockIdx.x * kWords + i] = words[i];
}
// [/load]

// [dealt]
// Loads a box of five dimensions: columns, and rows that lie in the order of the other four. Block
// b takes the first column and the last dimension's coordinate from places[b].
__global__ void load_dealt_rows(const __grid_constant__ CUtensorMap map, const Place* places, uint32_t* out) {
  __shared__ __align__(1024) uint32_t words[kWords];
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  if (threadIdx.x == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
    gg::ptx::mbarrier_arrive_expect_tx(bar_addr, int(sizeof words));
    const Place p = places[blockIdx.x];
    gg::ptx::tma_load_5d(gg::ptx::shared_addr(words), &map, p.c0, 0, 0, 0, p.c1, bar_addr);
  }
  __syncthreads();                             // the barrier is there
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // the box has landed
  for (int i = int(threadIdx.x); i < kWords; i += kThreads) out[blockIdx.x * kWords + i] = words[i];
}
// [/dealt]

// [policy]
// The same box under each policy: block 0 in two dimensions, evicted first, block 1 last, 2 and 3
// in three dimensions. A policy says what the L2 keeps, not what comes.
__global__ void load_with_policy(const __grid_constant__ CUtensorMap map_2d,
                                 const __grid_constant__ CUtensorMap map_3d, uint32_t* out) {
  __shared__ __align__(1024) uint32_t words[256];
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  if (threadIdx.x == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
    const uint64_t policy =
        blockIdx.x % 2 == 0 ? gg::ptx::evict_first_policy() : gg::ptx::evict_last_policy();
    gg::ptx::mbarrier_arrive_expect_tx(bar_addr, int(sizeof words));
    if (blockIdx.x < 2) {
      gg::ptx::tma_load_2d(gg::ptx::shared_addr(words), &map_2d, 16, 4, bar_addr, policy);
    } else {
      gg::ptx::tma_load_3d(gg::ptx::shared_addr(words), &map_3d, 16, 4, 1, bar_addr, policy);
    }
  }
  __syncthreads();                             // the barrier is there
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);  // the box has landed
  for (int i = int(threadIdx.x); i < 256; i += kThreads) out[blockIdx.x * 256 + i] = words[i];
}
// [/policy]

// [store_policy]
// A box of its own for each block: block 0 evicts it first, 1 as usual, 2 last.
__global__ void store_with_policy(const __grid_constant__ CUtensorMap map, const uint32_t* in) {
  __shared__ __align__(1024) uint32_t words[256];
  for (int i = int(threadIdx.x); i < 256; i += kThreads) words[i] = in[blockIdx.x * 256 + i];
  gg::ptx::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    const uint64_t policy = blockIdx.x == 0   ? gg::ptx::evict_first_policy()
                            : blockIdx.x == 1 ? gg::ptx::evict_normal_policy()
                                              : gg::ptx::evict_last_policy();
    gg::ptx::tma_store_2d(&map, 16, 8 * int(blockIdx.x) + 4, gg::ptx::shared_addr(words), policy);
    gg::ptx::bulk_commit_group();
    gg::ptx::bulk_wait_group<0>();
  }
}
// [/store_policy]

// Stores, or adds, a box from shared memory that `in` fills. All blocks take the same place. Boxes
// that are added have two dimensions.
__global__ void store(const __grid_constant__ CUtensorMap map, Place p, int dims, bool adds,
                      const uint32_t* in) {
  __shared__ __align__(1024) uint32_t words[kWords];
  for (int i = int(threadIdx.x); i < kWords; i += kThreads) words[i] = in[i];
  gg::ptx::fence_proxy_async();  // these stores, for the copy
  __syncthreads();
  if (threadIdx.x == 0) {
    const uint32_t src_addr = gg::ptx::shared_addr(words) + uint32_t(p.offset);
    if (adds) {
      gg::ptx::tma_reduce_add_2d(&map, p.c0, p.c1, src_addr);
    } else if (dims == 3) {
      gg::ptx::tma_store_3d(&map, p.c0, p.c1, p.c2, src_addr);
    } else {
      gg::ptx::tma_store_2d(&map, p.c0, p.c1, src_addr);
    }
    gg::ptx::bulk_commit_group();
    // The box is in global memory; and shared memory must last until it was read.
    gg::ptx::bulk_wait_group<0>();
  }
}

// [fenced_by_issuer]
// Each round fills shared memory and stores it, and the thread that stores is the only one to run
// the proxy fence, behind the barrier. A store that came before the other threads' writes would
// show those of the round before.
constexpr int kRoundWords = 8 * kThreads;
__device__ __host__ inline uint32_t round_word(int block, int round, int i) {
  return uint32_t(block) << 24 ^ uint32_t(round) << 16 ^ uint32_t(i) * 40503;
}
__global__ void store_fenced_by_issuer(uint32_t* out, int rounds) {
  __shared__ __align__(128) uint32_t words[kRoundWords];
  const int block = int(blockIdx.x), thread = int(threadIdx.x);
  for (int round = 0; round < rounds; ++round) {
    for (int i = thread; i < kRoundWords; i += kThreads) words[i] = round_word(block, round, i);
    __syncthreads();  // all words of the round are there
    if (thread == 0) {
      gg::ptx::fence_proxy_async();  // for the writes of all threads, of which this one has learnt
      gg::ptx::bulk_store(out + (block * rounds + round) * kRoundWords, gg::ptx::shared_addr(words),
                          int(sizeof words));
      gg::ptx::bulk_commit_group();
      gg::ptx::bulk_wait_group_read<0>();
    }
    __syncthreads();  // they have been read
  }
  if (thread == 0) gg::ptx::bulk_wait_group<0>();
}
// [/fenced_by_issuer]

// Runs of bytes in and out through two buffers: chunk by chunk, each block its own array. A thread
// adds its number to what came.
constexpr int kChunk = kThreads;  // words
__global__ void through(const uint32_t* in, uint32_t* out, int chunks) {
  __shared__ __align__(16) uint32_t arriving[kChunk], leaving[2][kChunk];
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar);
  const int first = int(blockIdx.x) * chunks * kChunk, thread = int(threadIdx.x);
  if (thread == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    uint32_t* buffer = leaving[chunk % 2];
    if (thread == 0) {
      gg::ptx::bulk_wait_group_read<1>();  // the store before the last has read this buffer
      gg::ptx::mbarrier_arrive_expect_tx(bar_addr, int(sizeof arriving));
      gg::ptx::bulk_load(gg::ptx::shared_addr(arriving), in + first + chunk * kChunk, int(sizeof arriving),
                         bar_addr);
    }
    __syncthreads();                                     // the buffer is free, the barrier there
    gg::ptx::mbarrier_wait_parity(bar_addr, chunk % 2);  // the chunk has landed
    buffer[thread] = arriving[thread] + thread;
    gg::ptx::fence_proxy_async();
    __syncthreads();  // the chunk has been read and the buffer is full
    if (thread == 0) {
      gg::ptx::bulk_store(out + first + chunk * kChunk, gg::ptx::shared_addr(buffer), int(sizeof arriving));
      gg::ptx::bulk_commit_group();
    }
  }
  if (thread == 0) gg::ptx::bulk_wait_group<0>();
}
// [/probe]

// Makes a map of a box of 32 x 8 words from zeros, in shared memory, and loads a box with it.
__global__ void make_map(const uint32_t* tensor, int columns, int rows, CUtensorMap* map, uint32_t* out) {
  __shared__ __align__(1024) uint32_t words[256];
  __shared__ __align__(128) uint32_t made[32];
  __shared__ uint64_t bar;
  const uint32_t bar_addr = gg::ptx::shared_addr(&bar), made_addr = gg::ptx::shared_addr(made);
  made[threadIdx.x] = 0;
  __syncwarp();
  if (threadIdx.x == 0) {
    gg::ptx::mbarrier_init(bar_addr, 1);
    gg::ptx::fence_mbarrier_init();
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(made_addr),
                 "l"(tensor)
                 : "memory");
    asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" ::"r"(made_addr) : "memory");
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, 32;" ::"r"(made_addr)
                 : "memory");
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, 8;" ::"r"(made_addr)
                 : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(made_addr),
                 "r"(columns)
                 : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(made_addr),
                 "r"(rows)
                 : "memory");
    asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(made_addr),
                 "l"(int64_t(columns) * 4)
                 : "memory");
    asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, 1;" ::"r"(made_addr)
                 : "memory");
    asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, 1;" ::"r"(made_addr)
                 : "memory");
    asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 11;" ::"r"(made_addr)
                 : "memory");
    asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"r"(made_addr)
                 : "memory");
    asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"r"(made_addr)
                 : "memory");
    asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 1;" ::"r"(made_addr)
                 : "memory");
  }
  __syncwarp();
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], "
      "128;" ::"l"(map),
      "r"(made_addr)
      : "memory");
  if (threadIdx.x == 0) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
    gg::ptx::mbarrier_arrive_expect_tx(bar_addr, int(sizeof words));
    gg::ptx::tma_load_2d(gg::ptx::shared_addr(words), map, 16, 4, bar_addr);
  }
  __syncwarp();
  gg::ptx::mbarrier_wait_parity(bar_addr, 0);
  for (int i = int(threadIdx.x); i < 256; i += 32) out[i] = words[i];
}

struct TypeCase {
  const char* name;
  CUtensorMapDataType type;
  int bytes;
};
constexpr TypeCase kU8{"u8", CU_TENSOR_MAP_DATA_TYPE_UINT8, 1},
    kBf16{"bf16", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2}, kF32{"f32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4},
    kU64{"u64", CU_TENSOR_MAP_DATA_TYPE_UINT64, 8};

struct LoadCase {
  TypeCase type;
  int swizzle;  // bytes of its span, 0: none
  gg::PerDimension<int> box;
  gg::PerDimension<int> element_strides;
  bool nan_fill;
};
std::string name_of(const testing::TestParamInfo<LoadCase>& info) {
  std::string text = gg::format("%s_swizzle%d_box", info.param.type.name, info.param.swizzle);
  for (const int side : info.param.box) text += std::to_string(side) + "x";
  text.pop_back();
  for (const int stride : info.param.element_strides) text += gg::format("_stride%d", stride);
  return text + (info.param.nan_fill ? "_nan" : "");
}

CUtensorMapSwizzle swizzle_of(int span) {
  return span == 32   ? CU_TENSOR_MAP_SWIZZLE_32B
         : span == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
         : span       ? CU_TENSOR_MAP_SWIZZLE_128B
                      : CU_TENSOR_MAP_SWIZZLE_NONE;
}
// Where the swizzle puts the byte that stands at `address` without it: of the bits above the span's
// last 16-byte unit (bit 7 and up) as many as number the units are added to them.
int swizzled(int address, int span) {
  const int units = span ? span / 16 : 1;
  return address ^ (address / 128 % units * 16);
}

// A tensor of columns x rows x slices elements, rows padded to a multiple of 16 bytes and 32 more.
struct Tensor {
  int dims[3], element, row_bytes, slice_bytes;
  std::vector<uint8_t> bytes;

  Tensor(int columns, int rows, int slices, int element_bytes)
      : dims{columns, rows, slices}, element(element_bytes) {
    row_bytes = (columns * element + 15) / 16 * 16 + 32;
    slice_bytes = row_bytes * rows + 64;
    for (int i = 0; i < slice_bytes * slices; ++i) bytes.push_back(uint8_t(unsigned(i) * 2654435761u >> 13));
  }
  bool inside(const int (&at)[3]) const {
    bool in = true;
    for (int d = 0; d < 3; ++d) in = in && at[d] >= 0 && at[d] < dims[d];
    return in;
  }
  int offset(const int (&at)[3]) const { return at[0] * element + at[1] * row_bytes + at[2] * slice_bytes; }
};

class TmaLoad : public HopperProbe, public testing::WithParamInterface<LoadCase> {};

TEST_P(TmaLoad, PutsEveryByteInItsPlace) {
  const LoadCase& c = GetParam();
  const int dims = int(c.box.size()), e = c.type.bytes, unit = 16 / e;
  const Tensor tensor(dims == 1 ? 3 * c.box[0] + 5 : 100, dims > 1 ? 21 : 1, dims > 2 ? 5 : 1, e);
  const Array<uint8_t> data(tensor.bytes);
  gg::TensorBox spec{.type = c.type.type,
                     .data = data.get(),
                     .dims = {},
                     .stride_bytes = {},
                     .box = c.box,
                     .swizzle = swizzle_of(c.swizzle),
                     .nan_fill = c.nan_fill,
                     .element_strides = c.element_strides};
  for (int d = 0; d < dims; ++d) spec.dims.push_back(tensor.dims[d]);
  if (dims > 1) spec.stride_bytes.push_back(tensor.row_bytes);
  if (dims > 2) spec.stride_bytes.push_back(tensor.slice_bytes);
  const CUtensorMap map = gg::make_tensor_map(spec);

  // Inside, over each edge, at places in shared memory that begin with each row of the
  // swizzle, and outside.
  const std::vector<Place> places = {{0, 0, 0, 0},
                                     {128, unit, 3, 1},
                                     {384, -unit, 5, 0},
                                     {1024, 2 * unit, -2, -1},
                                     {896, 96 / unit * unit, 17, 3},
                                     {512, 6 * unit, 20, 4},
                                     {256, 200 * unit, 1, 1},
                                     {0, 0, -300, 0}};
  const Array<Place> place_array(places);
  const Array<uint32_t> out(std::vector<uint32_t>(places.size() * kWords));
  int counts[3] = {1, 1, 1}, strides[3] = {1, 1, 1};
  for (int d = 0; d < dims; ++d) {
    if (d > 0 && !c.element_strides.empty()) strides[d] = c.element_strides[d];
    counts[d] = (c.box[d] + strides[d] - 1) / strides[d];
  }
  const int row = c.box[0] * e, pitch = std::max(row, c.swizzle);
  load<<<unsigned(places.size()), kThreads>>>(map, place_array.get(), dims, counts[1] * counts[2] * row,
                                              out.get());
  const std::vector<uint32_t> got = out.read();

  for (size_t p = 0; p < places.size(); ++p) {
    std::vector<uint8_t> expected(kWords * 4, 0xAB);
    for (int i = 0; i < counts[0] * counts[1] * counts[2]; ++i) {
      const int r = i / counts[0], at[3] = {places[p].c0 + i % counts[0],
                                            (dims > 1 ? places[p].c1 : 0) + r % counts[1] * strides[1],
                                            (dims > 2 ? places[p].c2 : 0) + r / counts[1] * strides[2]};
      for (int byte = 0; byte < e; ++byte) {
        const int fill = c.nan_fill ? (byte % 2 ? 0x7F : 0xF7) : 0;
        expected[size_t(swizzled(places[p].offset + r * pitch + i % counts[0] * e + byte, c.swizzle))] =
            tensor.inside(at) ? tensor.bytes[size_t(tensor.offset(at) + byte)] : uint8_t(fill);
      }
    }
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(got.data() + p * kWords);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(int(bytes[i]), int(expected[i])) << "place " << p << " byte " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isa, TmaLoad,
    testing::Values(LoadCase{kU8, 0, {64}, {}, false}, LoadCase{kBf16, 0, {24, 9}, {}, false},
                    LoadCase{kBf16, 32, {16, 20}, {}, false}, LoadCase{kBf16, 64, {32, 20}, {}, false},
                    LoadCase{kBf16, 128, {64, 20}, {}, false}, LoadCase{kBf16, 128, {64, 20}, {}, true},
                    LoadCase{kBf16, 128, {32, 20}, {}, false}, LoadCase{kU8, 64, {16, 20}, {}, false},
                    LoadCase{kF32, 128, {32, 20}, {}, true}, LoadCase{kF32, 32, {4, 33}, {}, false},
                    LoadCase{kU64, 128, {16, 9}, {}, false}, LoadCase{kF32, 0, {100, 7}, {}, true},
                    LoadCase{kBf16, 128, {64, 16}, {1, 2}, false},
                    LoadCase{kBf16, 0, {16, 15}, {1, 4}, false}, LoadCase{kBf16, 128, {64, 6, 3}, {}, false},
                    LoadCase{kU8, 0, {48, 5, 4}, {1, 3, 2}, false}, LoadCase{kF32, 64, {16, 4, 6}, {}, true}),
    name_of);

class Tma : public HopperProbe {};

// 64 rows of a tensor are eight gates, then eight ups that lie 32 rows behind them, and so on: a
// dimension's stride may be less than that of the dimension before.
TEST_F(Tma, LoadsDealRowsByTheStridesOfTheMap) {
  constexpr int kColumns = 100, kPairs = 3, kPair = 64;
  const Tensor tensor(kColumns, kPairs * kPair, 1, 2);
  const Array<uint8_t> data(tensor.bytes);
  const int64_t row = tensor.row_bytes;
  const CUtensorMap map = gg::make_tensor_map({.data = data.get(),
                                               .dims = {kColumns, 8, 2, 4, kPairs},
                                               .stride_bytes = {row, 32 * row, 8 * row, kPair * row},
                                               .box = {64, 8, 2, 4, 2},
                                               .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  const std::vector<Place> places = {{0, 0, 0, 0}, {0, 64, 1, 0}, {0, 16, 2, 0}, {0, 0, 7, 0}};
  const Array<Place> place_array(places);
  const Array<uint32_t> out(std::vector<uint32_t>(places.size() * kWords));
  load_dealt_rows<<<unsigned(places.size()), kThreads>>>(map, place_array.get(), out.get());
  const std::vector<uint32_t> got = out.read();
  for (size_t p = 0; p < places.size(); ++p) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(got.data() + p * kWords);
    for (int i = 0; i < 2 * kPair * 64; ++i) {
      const int r = i / 64, warp = r % kPair / 16, is_up = r / 8 % 2;
      const int at[3] = {places[p].c0 + i % 64,
                         (places[p].c1 + r / kPair) * kPair + is_up * 32 + warp * 8 + r % 8, 0};
      for (int byte = 0; byte < 2; ++byte) {
        const int expected = tensor.inside(at) ? tensor.bytes[size_t(tensor.offset(at) + byte)] : 0;
        ASSERT_EQ(int(bytes[swizzled(r * 128 + i % 64 * 2 + byte, 128)]), expected)
            << "place " << p << " row " << r << " column " << i % 64;
      }
    }
  }
}

TEST_F(Tma, LoadsWithAPolicyBringTheSame) {
  constexpr int kColumns = 40, kRows = 10;
  std::vector<uint32_t> numbers(2 * kRows * kColumns);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = uint32_t(i * 2654435761u);
  const Array<uint32_t> data(numbers), out(std::vector<uint32_t>(4 * 256));
  gg::TensorBox spec{.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                     .data = data.get(),
                     .dims = {kColumns, kRows},
                     .stride_bytes = {kColumns * 4},
                     .box = {32, 8}};
  const CUtensorMap map_2d = gg::make_tensor_map(spec);
  spec.dims.push_back(2), spec.stride_bytes.push_back(kRows * kColumns * 4), spec.box.push_back(1);
  load_with_policy<<<4, kThreads>>>(map_2d, gg::make_tensor_map(spec), out.get());
  const std::vector<uint32_t> got = out.read();
  for (int i = 0; i < 4 * 256; ++i) {
    const int slice = i / 512, row = 4 + i / 32 % 8, col = 16 + i % 32;
    const bool inside = row < kRows && col < kColumns;
    EXPECT_EQ(got[size_t(i)], inside ? numbers[size_t((slice * kRows + row) * kColumns + col)] : 0)
        << "block " << i / 256 << " word " << i % 256;
  }
}

TEST_F(Tma, StoresWithAPolicyLeaveTheSame) {
  constexpr int kColumns = 40, kRows = 27;  // the boxes reach over both ends
  std::vector<uint32_t> boxes(3 * 256), expected(kRows * kColumns);
  for (size_t i = 0; i < boxes.size(); ++i) boxes[i] = uint32_t(i * 2654435761u) | 1;
  const Array<uint32_t> in(boxes), data(expected);
  store_with_policy<<<3, kThreads>>>(gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                                          .data = data.get(),
                                                          .dims = {kColumns, kRows},
                                                          .stride_bytes = {kColumns * 4},
                                                          .box = {32, 8}}),
                                     in.get());
  for (int i = 0; i < 3 * 256; ++i) {
    const int row = 4 + i / 32, col = 16 + i % 32;
    if (row < kRows && col < kColumns) expected[size_t(row * kColumns + col)] = boxes[size_t(i)];
  }
  EXPECT_EQ(data.read(), expected);
}

TEST_F(Tma, LoadsRoundToTf32) {
  const std::vector<uint32_t> numbers = {
      0x3F801000, 0x3F803000, 0x3F801001, 0x3F800FFF, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC12345,
      0x7F7FFFFF, 0x00000FFF, 0x80001001, 0x00001000, 0xBF802FFF, 0xBF803001, 0x00800000, 0x807FFFFF};
  const std::vector<uint32_t> rounded = {
      0x3F800000, 0x3F804000, 0x3F802000, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FFFE000, 0x7FFFE000,
      0x7F800000, 0x00000000, 0x80002000, 0x00000000, 0xBF802000, 0xBF804000, 0x00800000, 0x80800000};
  const Array<uint32_t> data(numbers), out(std::vector<uint32_t>(kWords, 0));
  const Array<Place> place(std::vector<Place>{{0, 0, 0, 0}});
  const CUtensorMap map = gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
                                               .data = data.get(),
                                               .dims = {16},
                                               .stride_bytes = {},
                                               .box = {16}});
  load<<<1, kThreads>>>(map, place.get(), 1, 64, out.get());
  std::vector<uint32_t> got = out.read();
  got.resize(16);
  EXPECT_EQ(got, rounded);
}

// Beyond the last row, and in units of 16 bytes beyond the last column: if rows of the tensor end
// inside a unit, all of it is written. (A box of a store may not begin at negative coordinates:
// that is an illegal instruction.)
TEST_F(Tma, StoresLeaveOutWhatIsOutside) {
  std::vector<uint32_t> shared(kWords);
  for (size_t i = 0; i < shared.size(); ++i) shared[i] = uint32_t(i * 2654435761u);
  const Array<uint32_t> source(shared);
  const uint8_t* from = reinterpret_cast<const uint8_t*>(shared.data());
  // Swizzle, columns; 20 rows.
  const int boxes[][2] = {{0, 24}, {32, 16}, {64, 32}, {128, 64}, {128, 32}};
  const Place places[] = {{0, 0, 0, 0},      {128, 8, 3, 0},   {384, 80, 5, 0},
                          {1024, 16, 20, 0}, {896, 88, 17, 0}, {256, 104, 0, 0}};
  for (const int columns : {96, 100}) {
    for (const auto& box : boxes) {
      for (const Place& p : places) {
        Tensor tensor(columns, 21, 1, 2);
        const Array<uint8_t> data(tensor.bytes);
        const CUtensorMap map = gg::make_tensor_map({.data = data.get(),
                                                     .dims = {columns, 21},
                                                     .stride_bytes = {tensor.row_bytes},
                                                     .box = {box[1], 20},
                                                     .swizzle = swizzle_of(box[0])});
        store<<<1, kThreads>>>(map, p, 2, false, source.get());
        const int pitch = std::max(box[1] * 2, box[0]);
        for (int i = 0; i < box[1] * 20; ++i) {
          const int r = i / box[1], at[3] = {p.c0 + i % box[1], p.c1 + r, 0},
                    unit[3] = {at[0] / 8 * 8, at[1], 0};
          if (tensor.inside(unit))
            std::memcpy(&tensor.bytes[size_t(tensor.offset(at))],
                        from + swizzled(p.offset + r * pitch + i % box[1] * 2, box[0]), 2);
        }
        EXPECT_EQ(data.read(), tensor.bytes) << columns << " columns, swizzle " << box[0] << " box " << box[1]
                                             << " at " << p.c0 << "," << p.c1;
      }
    }
  }
}

// Rows may be counted twice: (c, r, s) is row s + r - kWindow. Then a store of a whole box ends
// before any row `stop`. The map may begin where there is no memory, if no box reads or writes it.
TEST_F(Tma, StoresEndBeforeAnyRow) {
  constexpr int kColumns = 72, kRows = 40, kWindow = 16;
  std::vector<uint32_t> shared(kWords);
  for (size_t i = 0; i < shared.size(); ++i) shared[i] = uint32_t(i * 2654435761u);
  const Array<uint32_t> source(shared);
  const uint8_t* from = reinterpret_cast<const uint8_t*>(shared.data());
  for (const int stop : {1, 16, 21, kRows}) {
    for (const int kept : {0, 1, 7, kWindow}) {
      if (kept > stop) continue;
      Tensor tensor(kColumns, kRows, 1, 2);
      const Array<uint8_t> data(tensor.bytes);
      const int64_t row_bytes = tensor.row_bytes;
      const auto begin = reinterpret_cast<uintptr_t>(data.get()) - uintptr_t(kWindow * row_bytes);
      const CUtensorMap map = gg::make_tensor_map({.data = reinterpret_cast<const void*>(begin),
                                                   .dims = {kColumns, kWindow, kRows + 1},
                                                   .stride_bytes = {row_bytes, row_bytes},
                                                   .box = {64, kWindow, 1},
                                                   .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
      store<<<1, kThreads>>>(map, Place{0, 16, kWindow - kept, stop}, 3, false, source.get());
      for (int i = 0; i < kept * 64; ++i) {
        const int r = i / 64, at[3] = {16 + i % 64, stop - kept + r, 0};
        if (tensor.inside(at))
          std::memcpy(&tensor.bytes[size_t(tensor.offset(at))], from + swizzled(r * 128 + i % 64 * 2, 128),
                      2);
      }
      EXPECT_EQ(data.read(), tensor.bytes) << kept << " rows before row " << stop;
    }
  }
}

// Several blocks add the same box: whole numbers, so that the order of the additions cannot matter.
template <class T>
class TmaReduce : public HopperProbe {};
using Summands = testing::Types<float, bf16, uint32_t>;
TYPED_TEST_SUITE(TmaReduce, Summands);

TYPED_TEST(TmaReduce, AddsFromManyBlocks) {
  using T = TypeParam;
  constexpr int kBlocks = 6, kColumns = 96, kRows = 20, kBox = 32, kBoxRows = 16;
  const auto number = [](int i) {
    if constexpr (std::is_same_v<T, uint32_t>) {
      return uint32_t(i);
    } else {
      return gg::from_float<T>(float(i));
    }
  };
  const auto value = [](T x) { return double(std::is_same_v<T, uint32_t> ? double(x) : double(float(x))); };
  std::vector<T> tensor(kColumns * kRows), box(kWords * 4 / sizeof(T));
  for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = number(int(i * 37 % 100));
  for (size_t i = 0; i < box.size(); ++i) box[i] = number(int(i * 11 % 23));
  const Array<T> data(tensor), source(box);
  const CUtensorMapDataType type = std::is_same_v<T, float>  ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                   : std::is_same_v<T, bf16> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                             : CU_TENSOR_MAP_DATA_TYPE_UINT32;
  const CUtensorMap map = gg::make_tensor_map({.type = type,
                                               .data = data.get(),
                                               .dims = {kColumns, kRows},
                                               .stride_bytes = {kColumns * int(sizeof(T))},
                                               .box = {kBox, kBoxRows}});
  const Place p{256, 80, 9, 0};
  store<<<kBlocks, kThreads>>>(map, p, 2, true, reinterpret_cast<const uint32_t*>(source.get()));
  const std::vector<T> got = data.read();
  for (int y = 0; y < kRows; ++y) {
    for (int x = 0; x < kColumns; ++x) {
      const int at = y * kColumns + x;
      double expected = value(tensor[size_t(at)]);
      if (x >= p.c0 && y >= p.c1)
        expected += kBlocks * value(box[size_t(p.offset) / sizeof(T) + size_t((y - p.c1) * kBox + x - p.c0)]);
      EXPECT_EQ(value(got[size_t(at)]), expected) << x << "," << y;
    }
  }
}

TEST_F(Tma, BulkCopiesThroughTwoBuffers) {
  constexpr int kBlocks = 3, kChunks = 9;
  std::vector<uint32_t> in(kBlocks * kChunks * kChunk);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i * 2654435761u);
  const Array<uint32_t> in_array(in), out(std::vector<uint32_t>(in.size()));
  through<<<kBlocks, kThreads>>>(in_array.get(), out.get(), kChunks);
  const std::vector<uint32_t> got = out.read();
  for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(got[i], in[i] + i % kChunk) << i;
}

TEST_F(Tma, FencedByTheIssuerAlone) {
  const int blocks = gg::emulator() ? 2 : 264, rounds = gg::emulator() ? 3 : 60;
  const Array<uint32_t> out(std::vector<uint32_t>(size_t(blocks) * size_t(rounds) * kRoundWords));
  store_fenced_by_issuer<<<unsigned(blocks), kThreads>>>(out.get(), rounds);
  const std::vector<uint32_t> got = out.read();
  for (size_t at = 0; at < got.size(); ++at) {
    const int store = int(at / kRoundWords), i = int(at % kRoundWords);
    ASSERT_EQ(got[at], round_word(store / rounds, store % rounds, i))
        << "block " << store / rounds << ", round " << store % rounds << ", word " << i;
  }
}

TEST_F(Tma, KernelsMakeTensorMaps) {
  constexpr int kColumns = 40, kRows = 10;
  std::vector<float> numbers(kColumns * kRows);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i);
  const Array<float> tensor(numbers);
  const Array<CUtensorMap> map(std::vector<CUtensorMap>(1));
  const Array<uint32_t> out(std::vector<uint32_t>(256));
  make_map<<<1, 32>>>(reinterpret_cast<const uint32_t*>(tensor.get()), kColumns, kRows, map.get(), out.get());
  const std::vector<uint32_t> got = out.read();
  for (int row = 0; row < 8; ++row) {
    for (int col = 0; col < 32; ++col) {
      const bool inside = 16 + col < kColumns && 4 + row < kRows;
      uint32_t expected = 0x7FF77FF7;
      if (inside) std::memcpy(&expected, &numbers[size_t((4 + row) * kColumns + 16 + col)], 4);
      EXPECT_EQ(got[size_t(swizzled(row * 128 + col * 4, 128) / 4)], expected) << row << "," << col;
    }
  }
  // The same fields as the driver's own map, but for the promotion in L2, which a kernel cannot
  // name, and for the driver's notes behind the first 64 bytes.
  const CUtensorMap theirs = gg::make_tensor_map({.type = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
                                                  .data = tensor.get(),
                                                  .dims = {kColumns, kRows},
                                                  .stride_bytes = {kColumns * 4},
                                                  .box = {32, 8},
                                                  .swizzle = CU_TENSOR_MAP_SWIZZLE_128B,
                                                  .nan_fill = true});
  const CUtensorMap ours = map.read()[0];
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(ours.opaque[i], theirs.opaque[i] & (i == 1 ? ~uint64_t(3 << 17) : ~uint64_t(0)))
        << "word " << i;
}

}  // namespace tma
}  // namespace probe
