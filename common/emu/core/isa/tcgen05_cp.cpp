// SPDX-License-Identifier: MIT
//
// tcgen05.cp, from shared to tensor memory, and tcgen05.shift, within it. PTX ISA: "TensorCore 5th
// Generation Family Instructions: tcgen05.cp, tcgen05.shift", "Data Movement Shape",
// "Decompression". Both are done by the tensor core, in order with its mma. With cta_group::2 each
// block of the pair copies, or shifts, its own.

#include <algorithm>
#include <cstring>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/tcgen05_descriptor.h"
#include "common/emu/core/units/tensor_core.h"

namespace gg::emu {
namespace {

constexpr int kUnit = kTcgen05UnitBytes, kUnitColumns = kUnit / 4;

// The lanes that row r goes to.
enum class Spread : uint8_t { row, quarters, pairs_02_13, pairs_01_23, all_quarters };

struct CopyShape {
  const char *shape, *multicast;
  int rows, row_bytes;
  Spread spread;
};
constexpr CopyShape kCopyShapes[] = {
    {"128x256b", nullptr, 128, 32, Spread::row},
    {"128x128b", nullptr, 128, 16, Spread::row},
    {"4x256b", nullptr, 4, 32, Spread::quarters},
    {"64x128b", "warpx2::02_13", 64, 16, Spread::pairs_02_13},
    {"64x128b", "warpx2::01_23", 64, 16, Spread::pairs_01_23},
    {"32x128b", "warpx4", 32, 16, Spread::all_quarters},
};

struct Copy {
  CopyShape shape = kCopyShapes[0];
  bool from_4_bits = false;  // .b8x16.b4x16_p64
  AddressOperand to;
  uint32_t descriptor = 0;  // slot
  int cta_group = 1;
};

struct Targets {  // the lanes of one row
  int lanes[kTmemQuarters];
  int count = 0;
};

// 4x256b: one row for each quarter, in the lane that the address names. The others name lane 0.
Targets targets_of(Spread spread, int row, int lane) {
  switch (spread) {
    case Spread::row:
      return {{row}, 1};
    case Spread::quarters:
      return {{lane + kLanes * row}, 1};
    case Spread::pairs_02_13:
      return {{row, row + 64}, 2};
    case Spread::pairs_01_23: {
      const int first = row < kLanes ? row : row + kLanes;
      return {{first, first + kLanes}, 2};
    }
    case Spread::all_quarters:
      return {{row, row + 32, row + 64, row + 96}, 4};
  }
  return {};
}

// 16 elements of 4 bits and 8 bytes of padding become 16 bytes 00xxxx00.
void decompress(const uint8_t* from, uint8_t (&to)[kUnit]) {
  for (int i = 0; i < kUnit; ++i) to[i] = uint8_t((from[i / 2] >> (i % 2 * 4) & 15) << 2);
}

// ---- cp ----

struct Source {
  std::vector<ByteRun> runs;    // of bytes that are read
  std::vector<size_t> offsets;  // of each unit, row by row
};

// All units must lie inside the shared memory of the block, of which all blocks have as much.
Source source_of(const TensorIssue& issue, const Copy& f, uint64_t descriptor) {
  const Tcgen05Layout layout(descriptor, copied_rows(f.shape.rows, f.shape.row_bytes));
  if (!layout.problem().empty()) {
    raise(
        FaultKind::descriptor, *issue.warp, *issue.instr, issue.lane,
        "the descriptor of the source, " + hex(descriptor) + ", " + layout.problem(),
        "start address, byte offsets, base offset and swizzle mode are in units, and at bits, of their own");
  }
  const size_t bytes = issue.warp->block->shared.bytes.size();
  Source source;
  layout.units(0, f.shape.rows, [&](uint32_t address, int row, int) {
    const int64_t at = int64_t(address) - kSharedStart;
    if (at < 0 || size_t(at) + kUnit > bytes) {
      raise_final(FaultKind::bounds, *issue.warp, *issue.instr, issue.lane,
                  "row " + std::to_string(row) + " of the source is at shared address " + hex(address) +
                      "; the block has " + std::to_string(bytes) + " bytes from " +
                      hex(uint64_t(kSharedStart)),
                  "a wrong start address or byte offset in the descriptor " + hex(descriptor));
    }
    source.offsets.push_back(size_t(at));
  });
  std::vector<size_t> sorted = source.offsets;
  std::sort(sorted.begin(), sorted.end());
  const size_t read = f.from_4_bits ? kUnit / 2 : kUnit;  // padding is not read
  for (const size_t at : sorted) {
    if (!source.runs.empty() && source.runs.back().offset + source.runs.back().bytes >= at) {
      source.runs.back().bytes = std::max(source.runs.back().bytes, at + read - source.runs.back().offset);
    } else {
      source.runs.push_back({at, read});
    }
  }
  return source;
}

TmemRegion region_of(const Copy& f, const TmemAddress& to) {
  TmemRegion region = tmem_region(0, 0, to.column, f.shape.row_bytes / 4);
  for (int row = 0; row < f.shape.rows; ++row) {
    const Targets targets = targets_of(f.shape.spread, row, to.lane);
    for (int i = 0; i < targets.count; ++i)
      region.lanes[size_t(targets.lanes[i] / kLanes)] |= Mask(1) << (targets.lanes[i] % kLanes);
  }
  return region;
}

void copy_rows(Block& block, const Copy& f, const TmemAddress& to, const std::vector<size_t>& offsets) {
  Tmem& tmem = tmem_of(block);
  const int units = f.shape.row_bytes / kUnit;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const uint8_t* from = block.shared.bytes.data() + offsets[i];
    uint8_t unit[kUnit];
    if (f.from_4_bits) {
      decompress(from, unit);
    } else {
      std::memcpy(unit, from, kUnit);
    }
    const Targets targets = targets_of(f.shape.spread, int(i) / units, to.lane);
    for (int c = 0; c < kUnitColumns; ++c) {
      uint32_t* column = tmem.at<uint32_t>(to.column + int(i) % units * kUnitColumns + c);
      for (int k = 0; k < targets.count; ++k) std::memcpy(column + targets.lanes[k], unit + 4 * c, 4);
    }
  }
}

[[noreturn]] void refuse_lane(const TensorIssue& issue, const TmemAddress& to, const std::string& wanted) {
  raise_final(FaultKind::bounds, *issue.warp, *issue.instr, issue.lane,
              "the address names lane " + std::to_string(to.lane) +
                  " of tensor memory, and this form wants " + wanted,
              "lanes are in bits 16 and up of the address, columns below");
}

Next copy(Warp& w, const Instr& in, Mask m) {
  const Copy& f = *static_cast<const Copy*>(in.extra);
  const TensorIssue issue = begin_issue(w, in, m, f.cta_group);
  const TmemAddress to(uint32_t(f.to.of(w, issue.lane)));
  const bool any_lane = f.shape.spread == Spread::quarters;
  if (to.lane >= (any_lane ? kLanes : 1)) refuse_lane(issue, to, any_lane ? "one of lanes 0-31" : "lane 0");
  const Source source = source_of(issue, f, w.at<uint64_t>(f.descriptor)[issue.lane]);
  for (Block* block : issue.blocks) {
    reads_shared(issue, *block, source.runs);
    writes_tmem(issue, *block, region_of(f, to));
  }
  counts_of(in).shared_bytes += issue.blocks.size() * source.offsets.size() * kUnit;
  tcgen05_issue(issue, [&f, to, offsets = source.offsets, blocks = issue.blocks] {
    for (Block* block : blocks) copy_rows(*block, f, to, offsets);
  });
  return Next::go_on;
}

// ---- shift ----

struct Shift {
  AddressOperand at;
  int cta_group = 1;
};
constexpr int kShiftColumns = 8;  // rows of 32 bytes

// Within the 32 lanes from the address on, each lane gets the next one's; the last keeps its own.
Next shift(Warp& w, const Instr& in, Mask m) {
  const Shift& f = *static_cast<const Shift*>(in.extra);
  const TensorIssue issue = begin_issue(w, in, m, f.cta_group);
  const TmemAddress at(uint32_t(f.at.of(w, issue.lane)));
  if (at.lane % kLanes != 0) refuse_lane(issue, at, "a multiple of 32");
  const TmemRegion region = tmem_region(at.lane, kLanes, at.column, kShiftColumns);
  for (Block* block : issue.blocks) {
    reads_tmem(issue, *block, region);
    writes_tmem(issue, *block, region);
  }
  tcgen05_issue(issue, [at, blocks = issue.blocks] {
    for (Block* block : blocks) {
      for (int c = 0; c < kShiftColumns; ++c) {
        uint32_t* lanes = tmem_of(*block).at<uint32_t>(at.column + c) + at.lane;
        std::copy(lanes + 1, lanes + kLanes, lanes);
      }
    }
  });
  return Next::go_on;
}

}  // namespace

// tcgen05.cp.cta_group.shape{.multicast}{.dst_fmt.src_fmt} [taddr], s-desc;
void decode_tcgen05_copy(Decoder& d) {
  Copy f;
  f.cta_group = take_cta_group(d);
  bool found = false;
  for (const CopyShape& shape : kCopyShapes) {
    const Statement& s = d.statement();
    if (found || !s.has(shape.shape) || (shape.multicast && !s.has(shape.multicast))) continue;
    d.take(shape.shape);
    if (shape.multicast) d.take(shape.multicast);
    f.shape = shape;
    found = true;
  }
  if (!found) throw Unsupported{"this shape of tcgen05.cp"};
  if (d.take("b8x16")) {
    if (d.take("b6x16_p32"))
      throw Unsupported{
          "6-bit elements in tensor memory: sources disagree on which bits of the byte they take"};
    if (!d.take("b4x16_p64")) throw Unsupported{"this decompression"};
    f.from_4_bits = true;
  }
  d.done();
  if (d.operands() != 2) throw Unsupported{"this number of operands"};
  f.to = take_tmem_operand(d, d.operand(0));
  f.descriptor = d.source(1, type_info("b64"));
  d.extra(f);
  d.instr.run = copy;
}

// tcgen05.shift.cta_group.down [taddr];
void decode_tcgen05_shift(Decoder& d) {
  Shift f;
  f.cta_group = take_cta_group(d);
  if (!d.take("down")) throw Unsupported{"a direction other than .down"};
  d.done();
  if (d.operands() != 1) throw Unsupported{"this number of operands"};
  f.at = take_tmem_operand(d, d.operand(0));
  d.extra(f);
  d.instr.run = shift;
}

}  // namespace gg::emu
