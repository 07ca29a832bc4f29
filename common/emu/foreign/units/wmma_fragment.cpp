// SPDX-License-Identifier: MIT
//
// Layouts of wmma's fragments, one rule for all types.

#include "common/emu/foreign/units/wmma_fragment.h"

#include <algorithm>
#include <iterator>

namespace gg::emu {
namespace {

constexpr const char* kShapeNames[] = {"m16n16k16", "m32n8k16", "m8n32k16", "m16n16k8",
                                       "m8n8k4",    "m8n8k32",  "m8n8k128"};
constexpr WmmaShape kShapes[] = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}, {16, 16, 8},
                                 {8, 8, 4},    {8, 8, 32},  {8, 8, 128}};

struct Element {
  const char* name;
  int bits;
  int k;  // of the shapes that have it as A and B; 0: it is an accumulator's only
};
constexpr Element kElements[] = {{"f16", 16, 16}, {"bf16", 16, 16}, {"u8", 8, 16}, {"s8", 8, 16},
                                 {"tf32", 32, 8}, {"f64", 64, 4},   {"u4", 4, 32}, {"s4", 4, 32},
                                 {"b1", 1, 128},  {"f32", 32, 0},   {"s32", 32, 0}};

bool accumulates(const std::string& type, int k) {
  if (type == "f16") return k == 16;
  if (type == "f32") return k == 16 || k == 8;
  if (type == "s32") return k == 16 || k == 32 || k == 128;
  return type == "f64" && k == 4;
}

// Hardware multiplies 16 lines at a time by 8. The registers of the first factor go through both
// halves of 16 lines before they go on along k; those of the second factor go along k first.
void place_factor(WmmaFragment& f, bool first) {
  const int step = 4 * f.run, block = first ? 16 : 8;
  for (int line = 0; line < f.lines; line += block) {
    for (int along = 0; along < f.length; along += step) {
      for (int across = line; across < std::min(line + block, f.lines); across += 8)
        f.places.push_back({across, along});
    }
  }
}

}  // namespace

WmmaFragment wmma_fragment(const WmmaShape& shape, char matrix, const std::string& type) {
  const auto element = std::find_if(std::begin(kElements), std::end(kElements),
                                    [&](const Element& e) { return type == e.name; });
  const bool known =
      element != std::end(kElements) && (matrix == 'c' ? accumulates(type, shape.k) : element->k == shape.k);
  if (!known) throw Unsupported{"elements of ." + type + " in this shape"};
  WmmaFragment f;
  f.bits = element->bits;
  if (f.bits == 64) f.register_type = "f64";
  if (matrix == 'c') {
    f.by_row = !shape.transposed();
    f.lines = std::max(shape.m, shape.n);
    f.length = std::min(shape.m, shape.n);
    f.run = 2;
    f.registers = f.bits == 16 ? 1 : 2;
    if (type == "f32") f.register_type = "f32";
    for (int along = 0; along < f.length; along += 8) {
      for (int across = 0; across < f.lines; across += 8) f.places.push_back({across, along});
    }
    return f;
  }
  f.by_row = matrix == 'a';
  f.lines = matrix == 'a' ? shape.m : shape.n;
  f.length = shape.k;
  f.run = std::max(1, 32 / f.bits);
  place_factor(f, (matrix == 'a') != shape.transposed());
  constexpr int kHalfRegisters = 8;  // of f16 in every shape
  if (type == "f16") f.repeats = kHalfRegisters / f.distinct();
  return f;
}

WmmaShape take_wmma_shape(Decoder& d) {
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    if (d.take(kShapeNames[i])) return kShapes[i];
  }
  throw Unsupported{"this shape of wmma"};
}

std::vector<std::string> take_wmma_types(Decoder& d) {
  std::vector<std::string> types;
  for (const std::string& word : d.statement().modifiers) {
    const bool narrow = word == "s4" || word == "u4" || word == "b1";
    if ((narrow || is_type(word)) && d.take(word.c_str())) types.push_back(word);
  }
  return types;
}

}  // namespace gg::emu
