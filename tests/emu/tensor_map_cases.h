// SPDX-License-Identifier: MIT
//
// Arguments of cuTensorMapEncodeTiled by number: mostly legal ones with up to three fields moved to
// values at or near their limits. A driver on an H200 was asked all of them; h200/tensor_maps.npy
// holds what it answered.

#pragma once

#include <cuda.h>

#include <cstdint>

namespace testing_gg {

struct MapCase {
  int type = 0, interleave = 0, swizzle = 0, promotion = 0, fill = 0;
  uint32_t rank = 2;
  uint64_t address = 0;
  uint64_t dims[5] = {64, 64, 4, 3, 2}, strides[4] = {0};
  uint32_t box[5] = {8, 8, 2, 1, 1}, element_strides[5] = {1, 1, 1, 1, 1};
};

class MapCases {
 public:
  MapCase operator()(uint64_t index) {
    state_ = index * 0x9E3779B97F4A7C15ull + 1;
    MapCase c = legal();
    const uint64_t moves = next() % 4;
    for (uint64_t i = 0; i < moves; ++i) move(c);
    return c;
  }

 private:
  uint64_t next() {  // splitmix64
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  template <class T, size_t N>
  T pick(const T (&values)[N]) {
    return values[next() % N];
  }

  MapCase legal() {
    constexpr int kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    MapCase c;
    c.type = int(next() % 13);
    const uint64_t bytes = uint64_t(kBytes[c.type]);
    c.rank = 1 + uint32_t(next() % 5);
    c.address = 0x7F0000000000ull + next() % 4096 * 64;
    c.swizzle = int(next() % 4);
    c.promotion = int(next() % 4);
    const uint64_t inner = 16 * (1 + next() % (c.swizzle == 0   ? 8
                                               : c.swizzle == 1 ? 2
                                               : c.swizzle == 2 ? 4
                                                                : 8));
    c.box[0] = uint32_t(inner / bytes);
    uint64_t pitch = 1;
    for (uint32_t i = 0; i < 5; ++i) {
      c.dims[i] = 1 + next() % 300;
      if (i > 0) c.box[i] = 1 + uint32_t(next() % 16);
      if (i > 0 && next() % 4 == 0) c.element_strides[i] = 1 + uint32_t(next() % 8);
    }
    pitch = (c.dims[0] * bytes + 15) / 16 * 16;
    for (int i = 0; i < 4; ++i) {
      c.strides[i] = pitch + next() % 3 * 16;
      pitch = c.strides[i] * c.dims[i + 1];
    }
    return c;
  }

  void move(MapCase& c) {
    const uint64_t i = next() % 5;
    switch (next() % 12) {
      case 0:
        c.type = int(next() % 17);
        break;
      case 1:
        c.interleave = int(next() % 4);
        break;
      case 2:
        c.swizzle = int(next() % 8);
        break;
      case 3:
        c.promotion = int(next() % 5);
        break;
      case 4:
        c.fill = int(next() % 3);
        break;
      case 5:
        c.rank = uint32_t(next() % 7);
        break;
      case 6:
        c.address = pick({0ull, 16ull, 8ull, 0x7F0000000010ull, 0x7F0000000020ull, 0x7F0000000008ull,
                          0x7FFFFFFFFFF0ull, 0x800000000000ull, 0x1000000000000ull, 0x1FFFFFFFFFFFFF0ull,
                          0xFFFFFFFFFFFFFFF0ull});
        break;
      case 7:
        c.dims[i] = pick({0ull, 1ull, 2ull, 0xFFFFFFFFull, 0x100000000ull, 0x100000001ull, 1ull << 33});
        break;
      case 8:
        c.strides[i % 4] =
            pick({0ull, 8ull, 16ull, 32ull, 48ull, 0xFFFFFFFFF0ull, 0x10000000000ull, 0x10000000010ull,
                  0x1000000000ull, 0x123456789A0ull & ~15ull, 1ull << 36, (1ull << 36) - 32});
        break;
      case 9:
        c.box[i] = pick({0u, 1u, 2u, 3u, 4u, 12u, 16u, 17u, 32u, 33u, 64u, 128u, 129u, 255u, 256u, 257u});
        break;
      case 10:
        c.element_strides[i] = pick({0u, 1u, 2u, 3u, 7u, 8u, 9u, 16u});
        break;
      default:
        c.box[0] = pick({8u, 16u, 32u, 64u, 128u, 256u});
        break;
    }
  }

  uint64_t state_ = 0;
};

constexpr int kMapCases = 8000;

template <class Encode>
CUresult encode_case(const MapCase& c, CUtensorMap* map, Encode encode) {
  return encode(map, CUtensorMapDataType(c.type), c.rank, reinterpret_cast<void*>(c.address), c.dims,
                c.strides, c.box, c.element_strides, CUtensorMapInterleave(c.interleave),
                CUtensorMapSwizzle(c.swizzle), CUtensorMapL2promotion(c.promotion),
                CUtensorMapFloatOOBfill(c.fill));
}

// This is kept of an answer: the error, or a hash (FNV-1a) of the 128 bytes, never that small.
inline uint64_t answer_of(CUresult result, const CUtensorMap& map) {
  if (result != CUDA_SUCCESS) return uint64_t(result);
  uint64_t hash = 0xCBF29CE484222325ull;
  for (size_t i = 0; i < sizeof map; ++i)
    hash = (hash ^ reinterpret_cast<const uint8_t*>(&map)[i]) * 0x100000001B3ull;
  return hash;
}

}  // namespace testing_gg
