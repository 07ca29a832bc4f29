// SPDX-License-Identifier: MIT
//
// The two descriptors of tcgen05 on sm_100a. The matrix descriptor says where an operand of
// tcgen05.mma, or the source of tcgen05.cp, lies in shared memory. The instruction descriptor says
// shapes and types of tcgen05.mma. PTX ISA: "Tensorcore 5th Generation Family Instructions",
// sections "Shared Memory Descriptor", "Canonical Layouts" and "Instruction descriptor".

#pragma once

#include <cstdint>
#include <string>

namespace gg::emu {

// ---- the matrix descriptor ----

constexpr int kTcgen05UnitBytes = 16;  // shared memory is read in units that no swizzle splits

// The elements that a descriptor addresses. Lines: rows of A, columns of B, rows of tcgen05.cp.
struct Tcgen05Operand {
  int lines = 0, k = 0;  // k: elements of one line
  // Bits of one element in memory: 4, 8, 16 or 32; padded fp4 and fp6 count as 8.
  int bits = 16;
  bool line_major = false;  // neighbours in memory are lines (MN-major), not k
  int per_unit() const { return 8 * kTcgen05UnitBytes / bits; }
  int line_bytes() const { return k * bits / 8; }  // of a K-major line
};

// The source of tcgen05.cp: `rows` rows of 16 or 32 bytes, K-major. One element is one byte.
constexpr Tcgen05Operand copied_rows(int rows, int row_bytes) { return {rows, row_bytes, 8, false}; }

class Tcgen05Layout {
 public:
  Tcgen05Layout(uint64_t descriptor, const Tcgen05Operand& operand);

  // Tells what is wrong with the descriptor for this operand, as the end of a sentence whose
  // subject is the descriptor: "has 0 in bits 46-48 ...". Empty: nothing is wrong.
  const std::string& problem() const { return problem_; }

  // The shared address of the 16-byte unit that starts at an element. K-major: k is a multiple of
  // per_unit(). MN-major: line is a multiple of per_unit().
  uint32_t unit(int line, int k) const {
    const uint32_t at = start_ + (operand_.line_major ? line_major_offset(uint32_t(line), uint32_t(k))
                                                      : k_major_offset(uint32_t(line), uint32_t(k)));
    // The place of a unit (of an atom of 32 bytes, for swizzle code 1) inside its 128 bytes is
    // mixed with the number of the 128-byte row of the absolute address.
    return at ^ ((((at >> 7) - base_offset_) & mixed_rows_) << atom_shift_);
  }

  // use(address, line, k of the first element) for all units of the lines [first, first + count).
  // MN-major: `first` and `count` are multiples of per_unit().
  template <class Use>
  void units(int first, int count, Use use) const {
    const int line_step = operand_.line_major ? operand_.per_unit() : 1,
              k_step = operand_.line_major ? 1 : operand_.per_unit();
    for (int line = first; line < first + count; line += line_step) {
      for (int k = 0; k < operand_.k; k += k_step) use(unit(line, k), line, k);
    }
  }

 private:
  uint32_t k_major_offset(uint32_t line, uint32_t k) const {
    const uint32_t byte = k * uint32_t(operand_.bits) / 8;
    if (span_) return line / 8 * stride_ + line % 8 * span_ + byte;
    return line / 8 * stride_ + line % 8 * kTcgen05UnitBytes + byte / kTcgen05UnitBytes * leading_;
  }
  uint32_t line_major_offset(uint32_t line, uint32_t k) const {
    const uint32_t byte = line * uint32_t(operand_.bits) / 8;
    if (!span_) return byte / kTcgen05UnitBytes * stride_ + k / 8 * leading_ + k % 8 * kTcgen05UnitBytes;
    return byte / span_ * leading_ + k / group_ * stride_ + k % group_ * span_ + byte % span_;
  }
  void take_swizzle(uint32_t code);
  void check(uint64_t descriptor);
  std::string swizzle_problem(uint32_t code) const;
  std::string offsets_problem() const;

  Tcgen05Operand operand_;
  uint32_t start_ = 0;
  // Bytes: "leading dimension" and "stride dimension byte offset".
  uint32_t leading_ = 0, stride_ = 0;
  uint32_t base_offset_ = 0;
  // Bytes within which units trade places: 32, 64 or 128; 0 without swizzling.
  uint32_t span_ = 0;
  uint32_t mixed_rows_ = 0;  // mask of the row number that is mixed in
  uint32_t atom_shift_ = 4;  // log2 of the bytes that stay together
  uint32_t group_ = 8;       // k of one group of an MN-major operand
  std::string problem_;
};

// ---- the instruction descriptor ----

enum class MmaKind : uint8_t { f16, tf32, f8f6f4, mxf8f6f4, mxf4, mxf4nvf4 };
constexpr bool is_block_scaled(MmaKind kind) { return kind >= MmaKind::mxf8f6f4; }
constexpr bool is_packed_fp4(MmaKind kind) { return kind == MmaKind::mxf4 || kind == MmaKind::mxf4nvf4; }
const char* kind_name(MmaKind kind);  // "mxf4nvf4"

// The values that the instruction's own modifiers give.
struct MmaModifiers {
  MmaKind kind = MmaKind::f16;
  int cta_group = 1;
  int scale_vector = 0;  // scales of one row in one instruction: 1, 2 or 4; 0 without block scaling
};

// The 32 bits, decoded for an instruction with these modifiers.
class InstructionDescriptor {
 public:
  InstructionDescriptor(uint32_t bits, const MmaModifiers& modifiers);

  // As Tcgen05Layout::problem. While it is not empty the other members mean nothing.
  const std::string& problem() const { return problem_; }

  int m = 0, n = 0, k = 0;                // cta_group::2: of the pair
  const char *a = nullptr, *b = nullptr;  // types as PTX names them: "bf16", "e2m1"
  bool half_sums = false;                 // D is f16, else f32
  bool negate_a = false, negate_b = false;
  bool a_line_major = false, b_line_major = false;
  int a_scale_id = 0, b_scale_id = 0;  // first byte of the scales in their TMEM column
  bool ue4m3_scales = false;           // else ue8m0

 private:
  void take_types(uint32_t bits);
  std::string bits_problem(uint32_t bits) const;
  std::string types_problem(uint32_t bits) const;
  std::string shape_problem() const;
  std::string major_problem() const;
  std::string scales_problem() const;

  MmaModifiers modifiers_;
  std::string problem_;
};

}  // namespace gg::emu
