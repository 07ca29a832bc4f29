// SPDX-License-Identifier: MIT
//
// Stores of tensor boxes that hang over the tensor's edge: shared memory behind elements that are
// left out is not read, and all that is written out must be there.

#include <gtest/gtest.h>

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/schedule/launches.h"
#include "common/emu/core/state/grid.h"
#include "common/emu/core/units/tensor_map_use.h"

namespace {

using gg::emu::Fault;
using gg::emu::TensorMap;

constexpr size_t kWords = 32 * 64;

struct Case {
  int swizzle = 0, x = 48, y = 15;
  const char* operation = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group";
  bool four_rows = false;  // .tile::scatter4
  int lanes = 1;           // of warp 0 that store the box, all with the same operands
};

// Thread 32 * r + u of 256 has unit u % 4 of row r of a box of 16 x 8 words. Lane 0 stores the box
// once those that `fills` names have written theirs; after that, %p3 names those that write again
// while the copy is under way.
std::string kernel(const Case& c, const std::string& fills, const std::string& writes_again) {
  return R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128])
{
  .shared .align 1024 .b8 box[1024];
  .reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %rd<4>;
  mov.b64 %rd0, map;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, box;
  shr.u32 %r2, %r0, 5;
  and.b32 %r3, %r0, 3;
  and.b32 %r4, %r0, 31;
  setp.lt.u32 %p0, %r0, )" +
         std::to_string(c.lanes) + R"(;
  mov.u32 %r8, )" +
         std::to_string(c.x) + ";\n  mov.u32 %r9, " + std::to_string(c.y) + R"(;
  add.u32 %r10, %r9, %r2;
  shl.b32 %r5, %r2, 6;
  shl.b32 %r6, %r3, 4;
  add.u32 %r5, %r5, %r6;
  shr.u32 %r6, %r5, 3;
  and.b32 %r6, %r6, )" +
         std::to_string(16 * ((1 << c.swizzle) - 1)) + R"(;
  xor.b32 %r5, %r5, %r6;
  add.u32 %r5, %r5, %r1;
  mad.lo.u32 %r7, %r3, 4, %r8;
  setp.lt.u32 %p1, %r4, 4;
  )" + fills +
         R"(
  mad.lo.u32 %r12, %r10, 64, %r7;
  add.u32 %r13, %r12, 1;
  add.u32 %r14, %r12, 2;
  add.u32 %r15, %r12, 3;
  @%p2 st.shared.v4.u32 [%r5], {%r12, %r13, %r14, %r15};
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p0 )" +
         std::string(c.operation) + " [%rd0, " + (c.four_rows ? "{%r8, 18, 19, 20, 21}" : "{%r8, %r9}") +
         R"(], [box];
  @%p0 cp.async.bulk.commit_group;
  bar.sync 0;
  )" + writes_again +
         R"(
  @%p0 cp.async.bulk.wait_group 0;
  ret;
}
)";
}

// Rows and columns inside a tensor of 58 x 20; its rows end inside a unit, and all of that
// unit is written.
const char kInside[] = "setp.lt.and.u32 %p2, %r10, 20, %p1;\n  setp.lt.and.u32 %p2, %r7, 58, %p2;\n";
const char kFirstRowsOnly[] = "setp.lt.and.u32 %p2, %r10, 19, %p1;\n  setp.lt.and.u32 %p2, %r7, 58, %p2;\n";
const char kFirstUnitsOnly[] = "setp.lt.and.u32 %p2, %r10, 20, %p1;\n  setp.lt.and.u32 %p2, %r7, 56, %p2;\n";
// Words beside those that are copied, and the last ones that are.
const char kOutsideAgain[] =
    "xor.b32 %r16, %r0, %r0;\n  not.pred %p3, %p2;\n  and.pred %p3, %p3, %p1;\n"
    "  @%p3 st.shared.u32 [%r5], %r16;\n";
const char kInsideAgain[] = "xor.b32 %r16, %r0, %r0;\n  @%p2 st.shared.u32 [%r5], %r16;\n";

// The tensor afterwards, or the fault. `bytes`: of global memory written by the store, as counted.
std::string store(const Case& c, const std::string& fills, const std::string& again,
                  std::vector<uint32_t>* result, uint64_t* bytes = nullptr) {
  gg::emu::GlobalMemory memory;
  const uint64_t out = memory.allocate(kWords * 4);
  uint32_t* words = reinterpret_cast<uint32_t*>(memory.unchecked(out));
  std::fill_n(words, kWords, 0xEEEEEEEE);
  TensorMap map;
  map.type = gg::emu::MapType::u32;
  map.address = out;
  map.rank = 2;
  map.dims[0] = 58, map.dims[1] = 20;
  map.strides[1] = 256;
  map.box[0] = 16, map.box[1] = c.four_rows ? 1 : 8;
  map.swizzle = c.swizzle;
  const auto module = gg::emu::parse_ptx(kernel(c, fills, again));
  const auto code = gg::emu::decode(*module, *module->find("k"), gg::emu::all_forms());
  gg::emu::Launch launch;
  launch.code = code.get();
  launch.block[0] = 256;
  launch.params.resize(128);
  gg::emu::encode_tensor_map(map, launch.params.data());
  gg::emu::RunOptions options;
  options.workers = 1;
  try {
    gg::emu::Counts counts;
    gg::emu::run_launch(launch, memory, options, &counts);
    for (size_t i = 0; bytes && i < code->instrs.size(); ++i) {
      if (code->instrs[i].statement->opcode == "cp") *bytes += counts[code.get()][i].global_bytes;
    }
  } catch (const Fault& fault) {
    return fault_name(fault.kind);
  }
  result->assign(words, words + kWords);
  return "";
}

const Case kCases[] = {{},
                       {.swizzle = 2},
                       {.swizzle = 2, .x = 0, .y = 16},
                       {.x = 48, .y = 4},
                       {.operation = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group"},
                       {.x = 48,
                        .y = 18,
                        .operation = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group",
                        .four_rows = true}};

TEST(TensorStore, ReadsNothingBehindTheEdge) {
  for (const Case& c : kCases) {
    for (const char* again : {"", kOutsideAgain}) {
      SCOPED_TRACE(std::string(c.operation) + " swizzle " + std::to_string(c.swizzle) + again);
      std::vector<uint32_t> words;
      ASSERT_EQ(store(c, kInside, again, &words), "");
      const int height = c.four_rows ? 4 : 8;
      for (int y = 0; y < 32; ++y) {
        for (int x = 0; x < 64; ++x) {
          const bool inside = x >= c.x && x < c.x + 16 && x < 60 && y >= c.y && y < c.y + height && y < 20;
          ASSERT_EQ(words[size_t(y * 64 + x)], inside ? uint32_t(y * 64 + x) : 0xEEEEEEEE) << x << "," << y;
        }
      }
    }
  }
}

TEST(TensorStore, ReadsAllThatIsInside) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.operation) + " swizzle " + std::to_string(c.swizzle));
    std::vector<uint32_t> words;
    if (c.y + 8 > 20) {
      EXPECT_EQ(store(c, kFirstRowsOnly, "", &words), "uninit-shared");
    }
    if (c.x + 16 > 56) {
      EXPECT_EQ(store(c, kFirstUnitsOnly, "", &words), "uninit-shared");
    }
    EXPECT_EQ(store(c, kInside, kInsideAgain, &words), "async-window");
  }
}

// ptxas makes one instruction of a store by all lanes of a warp, of a reduction a loop over them.
TEST(TensorStore, ByAllLanesIsOneStore) {
  for (Case c : kCases) {
    const bool reduces = std::string(c.operation).find("reduce") != std::string::npos;
    std::vector<uint32_t> by_one, by_all;
    uint64_t bytes_of_one = 0, bytes_of_all = 0;
    ASSERT_EQ(store(c, kInside, kOutsideAgain, &by_one, &bytes_of_one), "");
    c.lanes = 32;
    ASSERT_EQ(store(c, kInside, kOutsideAgain, &by_all, &bytes_of_all), "");
    EXPECT_EQ(by_all, by_one) << c.operation;
    EXPECT_GT(bytes_of_one, 0u);
    EXPECT_EQ(bytes_of_all, (reduces ? 32 : 1) * bytes_of_one) << c.operation;
    EXPECT_EQ(store(c, kInside, kInsideAgain, &by_all), "async-window") << c.operation;
  }
}

}  // namespace
