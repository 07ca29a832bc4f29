// SPDX-License-Identifier: MIT
//
// Tensor copies of compute capability 10.0 on the emulator: whose mbarrier counts the
// bytes with .cta_group::2, four rows at once, and elements of 4 and 6 bits in shared
// memory; in several orders.

#include <gtest/gtest.h>

#include <cstring>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/schedule/launches.h"
#include "common/emu/core/units/tensor_map_format.h"
#include "launch_ptx.h"
#include "tests/emu/report_says.h"

namespace {

using namespace emu_test;
using gg::emu::Fault;
using gg::emu::FaultKind;
using gg::emu::MapType;
using gg::emu::TensorMap;
using report::says;

// %rd0 out, %rd1 in, %rd2 the tensor map; %r0 the thread, %r1 the block's rank, %r2 the block;
// `buffer` of 8 KB, which begins with bytes 0x11, and one mbarrier `bar` for one arrival. Behind
// the body every thread writes a word of the buffer to out, 8 KB for each block.
std::string copy_kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128])
{
  .shared .align 1024 .b8 buffer[8192];
  .shared .align 8 .b64 bar;
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.b64 %rd2, map;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %ctaid.x;
  setp.eq.u32 %p0, %r0, 0;
  mov.u32 %r3, buffer;
  mad.lo.u32 %r3, %r0, 4, %r3;
  mov.u32 %r4, 0;
FILL:
  st.shared.u32 [%r3], 0x11111111;
  add.u32 %r3, %r3, 1024;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 8;
  @%p1 bra FILL;
  fence.proxy.async.shared::cta;
  @%p0 mbarrier.init.shared::cta.b64 [bar], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
)" + body +
         R"(
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %r3, buffer;
  mad.lo.u32 %r3, %r0, 4, %r3;
  mul.wide.u32 %rd10, %r2, 8192;
  add.u64 %rd10, %rd10, %rd0;
  mul.wide.u32 %rd11, %r0, 4;
  add.u64 %rd10, %rd10, %rd11;
  mov.u32 %r4, 0;
DUMP:
  ld.shared.u32 %r5, [%r3];
  st.global.u32 [%rd10], %r5;
  add.u32 %r3, %r3, 1024;
  add.u64 %rd10, %rd10, 1024;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 8;
  @%p1 bra DUMP;
  ret;
}
)";
}
const char* const kWait = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [bar], 0;\n@!%p8 bra WAIT;\n";
std::string expect(int bytes) {
  return "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " + std::to_string(bytes) + ";\n";
}

class Copy : public testing::Test {
 protected:
  static constexpr size_t kIn = 1 << 16, kOut = 8192;

  void SetUp() override {
    in.resize(kIn);
    for (size_t i = 0; i < kIn; ++i) in[i] = uint8_t((i * 2654435761u) >> 13);
    map.type = MapType::u32;
    map.rank = 2;
    map.dims[0] = 60;
    map.dims[1] = 20;
    map.strides[1] = 256;
    map.box[0] = 16;
    map.box[1] = 8;
  }

  // Returns what each block's buffer holds in the end; `in` is written back.
  std::vector<std::vector<uint8_t>> run(const std::string& body, int blocks, const gg::emu::Order& order) {
    gg::emu::GlobalMemory memory;
    const auto module = gg::emu::parse_ptx(copy_kernel(body));
    const auto code = gg::emu::decode(*module, *module->find("k"), gg::emu::all_forms());
    const uint64_t out_address = memory.allocate(kOut * size_t(blocks)), in_address = memory.allocate(kIn);
    std::copy(in.begin(), in.end(), memory.unchecked(in_address));
    gg::emu::Launch launch;
    launch.code = code.get();
    launch.grid[0] = launch.cluster[0] = blocks;
    launch.block[0] = 256;
    launch.params.resize(192);
    std::memcpy(launch.params.data(), &out_address, 8);
    std::memcpy(launch.params.data() + 8, &in_address, 8);
    map.address = in_address;
    gg::emu::encode_tensor_map(map, launch.params.data() + 64);
    gg::emu::RunOptions options;
    options.order = order;
    options.workers = 1;
    gg::emu::run_launch(launch, memory, options, nullptr);
    std::copy_n(memory.unchecked(in_address), kIn, in.begin());
    std::vector<std::vector<uint8_t>> buffers;
    for (int b = 0; b < blocks; ++b) {
      const uint8_t* from = memory.unchecked(out_address) + kOut * size_t(b);
      buffers.push_back({from, from + kOut});
    }
    return buffers;
  }
  std::string fault(FaultKind kind, const std::string& body, int blocks = 1) {
    try {
      run(body, blocks, {0, false});
    } catch (const Fault& fault) {
      EXPECT_EQ(fault_name(fault.kind), std::string(fault_name(kind))) << fault.what();
      return fault.what();
    }
    ADD_FAILURE() << "no fault; expected " << fault_name(kind);
    return "";
  }
  // Byte i of the box of 16 by 8 words at these coordinates; zero outside.
  uint8_t box_byte(int x, int y, int i) const {
    const int column = x + i / 4 % 16, row = y + i / 64;
    if (column < 0 || column >= 60 || row < 0 || row >= 20) return 0;
    return in[size_t(row * 256 + column * 4 + i % 4)];
  }

  std::vector<uint8_t> in;
  TensorMap map;
};

// ---- pairs of blocks ----

// The address of `bar` in the even block of the pair, as its rank is in bits 24 and up.
const char* const kEvenBarrier = "mov.u32 %r10, bar;\nand.b32 %r10, %r10, 0xFEFFFFFF;\n";
// A cluster address for what is at [buffer] in the block itself.
const std::string kPairHead = std::string(kEvenBarrier) +
                              "mov.u32 %r11, buffer;\nshl.b32 %r12, %r1, 3;\n"
                              "and.b32 %r13, %r1, 1;\nsetp.eq.u32 %p2, %r13, 0;\nand.pred %p3, %p0, %p2;\n";
std::string pair_load(const std::string& before, const std::string& after,
                      const std::string& barrier = "%r10") {
  return "@%p0 cp.async.bulk.tensor.2d" + before +
         ".shared::cluster.global.tile.mbarrier::complete_tx::bytes" + after +
         " [%r11], [%rd2, {4, %r12}], [" + barrier + "];\n";
}

TEST_F(Copy, EvenBlockCountsForThePair) {
  // Only the even block expects bytes, 512 for each of the two, and waits; the other learns of it
  // by the cluster barrier behind.
  const std::string waits = "@!%p2 bra BEHIND;\n" + std::string(kWait) + "BEHIND:\n";
  for (const bool early : {true, false}) {
    const std::string load = early ? pair_load(".cta_group::2", "") : pair_load("", ".cta_group::2");
    for (const gg::emu::Order& order : orders()) {
      SCOPED_TRACE(name_of(order));
      const std::string expects = "@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n";
      const auto buffers = run(kPairHead + expects + load + waits, 2, order);
      for (int rank = 0; rank < 2; ++rank) {
        for (int i = 0; i < 512; ++i)
          ASSERT_EQ(buffers[size_t(rank)][size_t(i)], box_byte(4, 8 * rank, i)) << rank << " byte " << i;
        EXPECT_EQ(buffers[size_t(rank)][512], 0x11);
      }
    }
  }
}

TEST_F(Copy, OwnBarrierCountsForThePairToo) {
  const std::string body =
      kPairHead + expect(512) + "mov.u32 %r14, bar;\n" + pair_load("", ".cta_group::2", "%r14") + kWait;
  for (const gg::emu::Order& order : orders()) {
    const auto buffers = run(body, 2, order);
    for (int i = 0; i < 512; ++i) ASSERT_EQ(buffers[1][size_t(i)], box_byte(4, 8, i));
  }
}

TEST_F(Copy, BarrierOfAnotherPair) {
  const std::string report =
      fault(FaultKind::bounds,
            kPairHead + "mov.u32 %r14, bar;\nmapa.shared::cluster.u32 %r14, %r14, 3;\n" +
                pair_load("", ".cta_group::2", "%r14") + kWait,
            4);
  EXPECT_TRUE(says(report, "both must be of one pair")) << report;
}

TEST_F(Copy, WithoutCtaGroupThePeersBarrierIsRefused) {
  fault(FaultKind::mbarrier,
        kPairHead + "mapa.shared::cluster.u32 %r14, %r10, 1;\n@%p3 " + pair_load("", "", "%r14").substr(5) +
            kWait,
        2);
}

TEST_F(Copy, ClusterWithoutPairs) {
  const std::string report =
      fault(FaultKind::bounds,
            "mov.u32 %r11, buffer;\nmov.u32 %r12, 0;\nsetp.eq.and.u32 %p2, %r1, 0, %p0;\n"
            "mov.u32 %r10, bar;\nmapa.shared::cluster.u32 %r10, %r10, 1;\n"
            "mapa.shared::cluster.u32 %r11, %r11, 2;\n@%p2 " +
                pair_load("", ".cta_group::2").substr(5) + kWait,
            3);
  EXPECT_TRUE(says(report, "even number of blocks")) << report;
}

// Rank 0 sends to ranks 1 and 3; the bytes are told to the even or the odd blocks of their pairs.
TEST_F(Copy, MulticastToThePairs) {
  for (const int parity : {0, 1}) {
    const std::string who = std::to_string(parity);
    const std::string body =
        "and.b32 %r13, %r1, 1;\nsetp.eq.u32 %p2, %r13, " + who +
        ";\nand.pred %p3, %p0, %p2;\n@%p3 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n"
        "mov.u32 %r11, buffer;\nmov.u32 %r10, bar;\nmapa.shared::cluster.u32 %r10, %r10, " +
        who +
        ";\nmov.u16 %h0, 10;\nsetp.eq.and.u32 %p4, %r1, 0, %p0;\n"
        "@%p4 cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%r11], [%rd2, {48, 16}], [%r10], %h0;\n@!%p2 bra BEHIND;\n" +
        kWait + "BEHIND:\n";
    for (const gg::emu::Order& order : orders()) {
      SCOPED_TRACE(name_of(order));
      const auto buffers = run(body, 4, order);
      for (size_t rank = 0; rank < 4; ++rank) {
        for (int i = 0; i < 512; ++i)
          ASSERT_EQ(buffers[rank][size_t(i)], rank % 2 ? box_byte(48, 16, i) : 0x11) << rank << " byte " << i;
      }
    }
  }
}

// ---- bytes of each sixteen ----

TEST_F(Copy, StoresTheBytesOfItsMask) {
  for (const bool hint : {false, true}) {
    const std::string body =
        "mov.u16 %h0, 0xA5C3;\nmov.u64 %rd5, 0;\n@%p0 cp.async.bulk.global.shared::cta.bulk_group" +
        std::string(hint ? ".L2::cache_hint" : "") + ".cp_mask [%rd1], [buffer], 64" +
        (hint ? ", %rd5" : "") +
        ", %h0;\n@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;\n";
    for (const gg::emu::Order& order : orders()) {
      SetUp();
      const std::vector<uint8_t> before = in;
      run(body, 1, order);
      for (size_t i = 0; i < 80; ++i)
        ASSERT_EQ(in[i], i < 64 && 0xA5C3 >> (i % 16) & 1 ? 0x11 : before[i]) << "byte " << i;
    }
  }
}

// ---- four rows ----

TEST_F(Copy, GathersFourRows) {
  map.box[1] = 1;
  for (const char* space : {"shared::cta", "shared::cluster"}) {
    const std::string body =
        expect(256) + "@%p0 cp.async.bulk.tensor.2d." + space +
        ".global.tile::gather4.mbarrier::complete_tx::bytes [buffer], [%rd2, {8, 17, 3, 25, -1}], [bar];\n" +
        kWait;
    for (const gg::emu::Order& order : orders()) {
      const auto buffers = run(body, 1, order);
      const int rows[] = {17, 3, 25, -1};  // of 20: the last two are outside
      for (int i = 0; i < 256; ++i)
        ASSERT_EQ(buffers[0][size_t(i)], box_byte(8, rows[i / 64], i % 64)) << "byte " << i;
      EXPECT_EQ(buffers[0][256], 0x11);
    }
  }
}

TEST_F(Copy, ScattersFourRows) {
  map.box[1] = 1;
  const std::string body =
      "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%rd2, {0, 1, 2, 3, 4}];\n"
      "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd2, {12, 9, 30, 2, 19}], "
      "[buffer];\n@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;\n";
  for (const gg::emu::Order& order : orders()) {
    SetUp();
    map.box[1] = 1;
    const std::vector<uint8_t> before = in;
    run(body, 1, order);
    for (int row = 0; row < 20; ++row) {
      for (int i = 0; i < 256; ++i) {
        const bool hit = (row == 9 || row == 2 || row == 19) && i >= 48 && i < 112;
        ASSERT_EQ(in[size_t(row * 256 + i)], hit ? 0x11 : before[size_t(row * 256 + i)]) << row << " " << i;
      }
    }
  }
}

TEST_F(Copy, FourRowsWantABoxOfOne) {
  const std::string report =
      fault(FaultKind::unsupported,
            "@%p0 cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%rd2, {0, 1, 2, "
            "3, 4}];\n");
  EXPECT_TRUE(says(report, "8 rows high")) << report;
}

// ---- swizzles in wider units ----

// cuda.h, CUtensorMapSwizzle: units of 32 or of 64 bytes change places within 128 bytes. Of row r,
// unit u goes to place u ^ (r % 4) or u ^ (r % 2).
TEST_F(Copy, SwizzlesWiderUnits) {
  const std::string load =
      expect(8 * 128) +
      "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd2, {16, "
      "3}], [bar];\n" +
      kWait;
  const std::string store =
      "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {0, 11}], [buffer];\n"
      "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;\n";
  for (const int unit : {32, 64}) {
    for (const gg::emu::Order& order : orders()) {
      SetUp();
      map.swizzle = 3;
      map.atomicity = unit == 32 ? 1 : 3;
      map.box[0] = 32;
      const std::vector<uint8_t> before = in;
      const auto buffer = run(load + store, 1, order)[0];
      for (int row = 0; row < 8; ++row) {
        for (int i = 0; i < 128; ++i) {
          const int place = (i / unit ^ row % (128 / unit)) * unit + i % unit;
          const uint8_t loaded = before[size_t((3 + row) * 256 + 64 + i)];
          ASSERT_EQ(buffer[size_t(row * 128 + place)], loaded) << unit << " row " << row << " byte " << i;
          ASSERT_EQ(in[size_t((11 + row) * 256 + i)], loaded) << unit << " row " << row << " byte " << i;
        }
      }
    }
  }
}

TEST_F(Copy, WiderUnitsAreOf128Bytes) {
  const std::string load = "@%p0 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd2, {0, 0}];\n";
  map.box[0] = 16;
  map.swizzle = 3, map.atomicity = 1;
  EXPECT_NO_THROW(run(load, 1, {0, false}));
  map.atomicity = 2;
  EXPECT_TRUE(says(fault(FaultKind::tensor_map, load), "flips 8 bytes"));
  map.swizzle = 2, map.atomicity = 1;
  EXPECT_TRUE(says(fault(FaultKind::tensor_map, load), "its swizzle of 64 bytes wants units of 16"));
}

TEST_F(Copy, ReplacesTheUnitsOfASwizzle) {
  const auto replace = [](int value) {
    return "@%p0 tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%rd1], " + std::to_string(value) +
           ";\n";
  };
  for (const int value : {0, 1, 3}) {
    map.swizzle = 3, map.atomicity = value ? 0 : 1;
    gg::emu::encode_tensor_map(map, in.data());
    run(replace(value), 1, {0, false});
    const TensorMap changed = gg::emu::decode_tensor_map(in.data());
    EXPECT_EQ(changed.atomicity, value);
    EXPECT_EQ(changed.swizzle, 3);
    EXPECT_FALSE(changed.unknown);
  }
  EXPECT_TRUE(says(fault(FaultKind::unsupported, replace(2)), "value 2 of this field"));
}

// ---- elements of 4 and 6 bits ----

struct Packed {
  MapType type;
  // Elements of a box's row, bytes of it in global memory, bytes in a unit of 16.
  int box0, row_bytes, data;
};
const Packed kPacked[] = {{MapType::b4x16, 256, 128, 16},
                          {MapType::b4x16, 64, 32, 16},
                          {MapType::b4x16_p64, 128, 64, 8},
                          {MapType::b6x16_p32, 128, 96, 12}};

void set_packed(TensorMap* map, const Packed& p, int swizzle) {
  map->type = p.type;
  map->dims[0] = 512;
  map->dims[1] = 10;
  map->strides[1] = 512;
  map->box[0] = p.box0;
  map->box[1] = 8;
  map->swizzle = swizzle;
}
// Where byte i of a row that has `pitch` bytes in shared memory lies, by the formula
// of "Swizzling Modes".
size_t place(int row, int i, int pitch, int swizzle) {
  const size_t offset = size_t(row * pitch + i);
  return swizzle ? offset ^ ((offset >> 7 & 7) << 4) : offset;
}

TEST_F(Copy, LoadsPackedElements) {
  for (const Packed& p : kPacked) {
    for (const int swizzle : {0, 3}) {
      const int spread = p.row_bytes / p.data * 16, pitch = swizzle ? 128 : spread;
      // The third box from the left and rows 6 to 13, of 10.
      const std::string body =
          expect(8 * p.row_bytes) +
          "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%rd2, {" +
          std::to_string(p.box0) + ", 6}], [bar];\n" + kWait;
      for (const gg::emu::Order& order : orders()) {
        set_packed(&map, p, swizzle);
        const auto buffers = run(body, 1, order);
        for (int row = 0; row < 8; ++row) {
          for (int i = 0; i < spread; ++i) {
            if (i % 16 >= p.data) continue;  // padding: anything
            const size_t from = size_t((6 + row) * 512 + p.row_bytes + i / 16 * p.data + i % 16);
            ASSERT_EQ(buffers[0][place(row, i, pitch, swizzle)], 6 + row < 10 ? in[from] : 0)
                << map_type_name(p.type) << " swizzle " << swizzle << " row " << row << " byte " << i;
          }
        }
        EXPECT_EQ(buffers[0][size_t(8 * pitch)], 0x11);
      }
    }
  }
}

TEST_F(Copy, StoresWhatItLoaded) {
  for (const Packed& p : kPacked) {
    const std::string store =
        "@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {0, 8}], [buffer];\n"
        "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;\n";
    const std::string load = expect(8 * p.row_bytes) +
                             "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes "
                             "[buffer], [%rd2, {" +
                             std::to_string(p.box0) + ", 0}], [bar];\n" + kWait;
    set_packed(&map, p, 3);
    if (p.type == MapType::b4x16_p64) {
      EXPECT_TRUE(says(fault(FaultKind::tensor_map, store), "can be loaded only"));
      continue;
    }
    for (const gg::emu::Order& order : orders()) {
      SetUp();
      set_packed(&map, p, 3);
      const std::vector<uint8_t> before = in;
      run(load + store, 1, order);
      for (int row = 0; row < 20; ++row) {
        for (int i = 0; i < 512; ++i) {
          const bool hit = (row == 8 || row == 9) && i < p.row_bytes;  // the tensor has ten rows
          const size_t at = size_t(row * 512 + i), from = size_t((row - 8) * 512 + p.row_bytes + i);
          ASSERT_EQ(in[at], hit ? before[from] : before[at]) << map_type_name(p.type) << row << " " << i;
        }
      }
    }
  }
}

TEST_F(Copy, PackedElementsWantAlignedBoxes) {
  const auto prefetch = [](int x) {
    return "@%p0 cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd2, {" + std::to_string(x) + ", 0}];\n";
  };
  set_packed(&map, kPacked[0], 3);
  fault(FaultKind::alignment, prefetch(16));
  EXPECT_NO_THROW(run(prefetch(32), 1, {0, false}));
  set_packed(&map, kPacked[2], 3);
  EXPECT_TRUE(says(fault(FaultKind::alignment, prefetch(64)), "no multiple of 128"));
  EXPECT_NO_THROW(run(prefetch(128), 1, {0, false}));
  map.box[0] = 64;
  EXPECT_TRUE(says(fault(FaultKind::tensor_map, prefetch(0)), "box 0 of 128"));
}

TEST_F(Copy, LimitsOfPackedMaps) {
  const auto problem = [&](const Packed& p, auto change) {
    map = TensorMap();
    map.rank = 2;
    set_packed(&map, p, 3);
    map.address = 4096;
    change(map);
    return tensor_map_problem(map, 100);
  };
  const auto nothing = [](TensorMap&) {};
  for (const Packed& p : kPacked) {
    EXPECT_EQ(problem(p, nothing), "");
    EXPECT_TRUE(says(tensor_map_problem(map, 90), "compute capability 10.0"));
    EXPECT_TRUE(says(problem(p, [](TensorMap& m) { m.nan_fill = true; }), "NaN fill"));
    EXPECT_TRUE(says(problem(p, [](TensorMap& m) { m.address = 4096 + 8; }), "its address"));
    EXPECT_TRUE(says(problem(p, [](TensorMap& m) { m.strides[1] = 520; }), "the stride"));
    EXPECT_TRUE(says(problem(p, [](TensorMap& m) { m.box[0] = 8; }), "box 0"));
    const bool spread = p.data < 16;
    EXPECT_EQ(problem(p, [](TensorMap& m) { m.address = 4096 + 16; }) == "", !spread);
    EXPECT_EQ(problem(p, [](TensorMap& m) { m.strides[1] = 528; }) == "", !spread);
    EXPECT_EQ(problem(p, [](TensorMap& m) { m.dims[0] = 500; }) == "", !spread);
    EXPECT_NE(problem(p, [](TensorMap& m) { m.dims[0] = 511; }), "");
    EXPECT_EQ(problem(p, [](TensorMap& m) { m.swizzle = 2, m.box[0] = 128; }) == "", !spread);
  }
}

}  // namespace
