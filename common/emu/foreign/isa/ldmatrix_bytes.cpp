// SPDX-License-Identifier: MIT
//
// ldmatrix of compute capability 10.0: elements of 8 bits, and of 4 and 6 bits that become bytes.
// PTX ISA: "Warp-level matrix load instruction: ldmatrix".
//
// The ISA shows the fragments in figures. Its text says that a lane loads four columns which are
// neighbours, of one row (.m8n16) or of two (.m16n16). Which lane and byte hold which element is
// taken from CUTLASS, whose layouts of these instructions and exchange of bytes behind them
// (SM100_U8x8_LDSM_T, SM100_SU4_DU8x16_x1_LDSM_N and their kin) leave one answer. With g = lane / 4
// and t = lane % 4:
//   .m16n16.trans  register r, byte b: memory row 4t + b, byte g + 8r
//   .m8n16         byte b: memory row g, element 4t + b
// Elements of 4 and 6 bits come into the low bits of their bytes, the first from the low bits of
// the row. CUTLASS relies on that where it shifts 0000xxxx to 00xxxx00 for mma.

#include "common/emu/core/state/access.h"
#include "common/emu/core/units/warp_matrix.h"
#include "common/emu/foreign/isa/foreign_forms.h"

namespace gg::emu {
namespace {

constexpr int kRowBytes = 16;

// Rows of bytes, as many as two matrices of 16 or four of 8 have.
using Rows = uint8_t[kLanes][kRowBytes];

// Element i of a row whose elements have `bits` bits, without gaps.
uint8_t element(const uint8_t* row, int bits, int i) {
  const int at = i * bits, byte = at / 8;
  const int next = byte + 1 < kRowBytes ? row[byte + 1] : 0;
  return uint8_t((row[byte] | next << 8) >> (at % 8) & ((1 << bits) - 1));
}

// 16 elements of `bits` bits from each row. What follows them in the row is padding, which nobody
// need have written; the rows count as the 16 bytes that they are.
void load_rows(Warp& w, const Instr& in, int count, int bits, Rows& rows) {
  uint64_t address[kLanes];
  const Mask givers = row_addresses(w, in, count, address);
  if (bits == 8) return read_memory(w, in, givers, address, kRowBytes, &rows[0][0], kRowBytes);
  for (Lanes l(givers); l; ++l) locate(w, in, *l, in.space, address[*l], kRowBytes, kRowBytes);
  InstrCounts& counts = counts_of(in);
  const InstrCounts before = counts;
  Rows packed = {};
  read_memory(w, in, givers, address, 8, &packed[0][0], kRowBytes);
  if (bits == 6) {
    uint64_t behind[kLanes];
    for (int l = 0; l < kLanes; ++l) behind[l] = address[l] + 8;
    read_memory(w, in, givers, behind, 4, &packed[0][8], kRowBytes);
  }
  counts = before;
  count_shared(in, givers, address, kRowBytes);
  for (int r = 0; r < count; ++r) {
    for (int i = 0; i < kRowBytes; ++i) rows[r][i] = element(packed[r], bits, i);
  }
}

Next load_16x16(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  Rows rows;
  load_rows(w, in, 16 * in.count, in.variant, rows);
  for (int i = 0; i < 2 * in.count; ++i) {  // two registers to a matrix
    uint32_t* d = w.at<uint32_t>(in.list[i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4, t = lane % 4;
      d[lane] = 0;
      for (int b = 0; b < 4; ++b)
        d[lane] |= uint32_t(rows[16 * (i / 2) + 4 * t + b][g + 8 * (i % 2)]) << (8 * b);
    }
  }
  return Next::go_on;
}

Next load_8x16(Warp& w, const Instr& in, Mask m) {
  require_warp(w, in, m);
  Rows rows;
  load_rows(w, in, 8 * in.count, in.variant, rows);
  for (int i = 0; i < in.count; ++i) {
    uint32_t* d = w.at<uint32_t>(in.list[i]);
    for (int lane = 0; lane < kLanes; ++lane)
      std::memcpy(&d[lane], &rows[8 * i + lane / 4][4 * (lane % 4)], sizeof d[lane]);
  }
  return Next::go_on;
}

void decode_ldmatrix_bytes(Decoder& d) {
  take_sync_aligned(d);
  const int shape = d.take_one({"m16n16", "m8n16"}), count = d.take_one({"x1", "x2", "x4"});
  if (shape < 0 || count < 0) throw Unsupported{"no shape of bytes"};
  const bool trans = d.take("trans"), square = shape == 0, unpacks = d.take("b8x16");
  d.instr.space = d.take("shared") || d.take("shared::cta") ? Space::shared : Space::generic;
  const int bits = unpacks ? (d.take("b4x16_p64") ? 4 : d.take("b6x16_p32") ? 6 : 0) : d.take("b8") ? 8 : 0;
  d.done();
  const bool known = bits && trans == square && (square ? count < 2 : bits < 8);
  if (!known || d.operands() != 2) throw Unsupported{"this ldmatrix of bytes"};
  d.instr.count = uint16_t(1 << count);
  d.instr.variant = uint8_t(bits);
  std::vector<uint32_t> slots;
  take_registers(d, d.operand(0), (square ? 2 : 1) << count, true, slots);
  d.instr.list = d.list(slots);
  take_address(d, d.operand(1));
  d.instr.run = square ? load_16x16 : load_8x16;
}

}  // namespace

std::vector<Form> ldmatrix_bytes_forms() { return {{"ldmatrix", decode_ldmatrix_bytes, Family::ldmatrix}}; }

}  // namespace gg::emu
