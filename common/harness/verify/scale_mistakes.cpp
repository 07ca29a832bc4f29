// SPDX-License-Identifier: MIT
//
// Diagnosis of wrong numbers of a block-scaled product: which scale from a wrong place, or which
// exchange inside a byte, predicts nearly all of the failing elements.

#include <algorithm>
#include <functional>
#include <map>

#include "common/harness/verify/evidence.h"

namespace gg {
namespace {

using Sample = Evidence::Sample;
using Sum = Evidence::Sum;

class ScaleMistakes {
 public:
  ScaleMistakes(const Evidence& evidence, bool last)
      : e_(evidence),
        matrices_(evidence.matrices()),
        scaling_(matrices_.formats.scaling()),
        layout_(evidence.layout()),
        last_(last) {}

  Failure explain() const {
    std::vector<Hypothesis> hypotheses;
    for (const Mistake& mistake : mistakes()) {
      hypotheses.push_back({mistake.symptom, "looks like " + mistake.what,
                            [this, mistake](const Sample& s) { return sum_with(mistake, s); }});
    }
    Failure found = first_that_explains(e_, hypotheses);
    for (const bool of_a : {false, true}) {
      if (found.symptom == Symptom::unknown) found = shifted_groups(of_a);
    }
    return found;
  }

 private:
  static constexpr int64_t kNone = -1, kOne = -2;  // no such byte; no scale at all
  static constexpr int64_t kZero = -3;             // what a load beyond them brings: a byte of 0

  // The places of the scales of row `place.row` and column `place.col` for a block, in
  // their buffers, and the elements of a pair of factors: as they should be unless the
  // mistake says otherwise.
  using ScaleAt = std::function<int64_t(const Group&, const Place&, int64_t block)>;
  struct Mistake {
    Symptom symptom;
    std::string what;
    ScaleAt sfa = right_a, sfb = right_b;
    bool sfa_from_b = false, sfb_from_a = false;
    int64_t flip_a = 0, flip_b = 0;  // 1: the other element of the byte
  };
  static int64_t right_a(const Group& g, const Place& place, int64_t block) {
    return g.sfa.at(place.row, block);
  }
  static int64_t right_b(const Group& g, const Place& place, int64_t block) {
    return g.sfb.at(place.col, block);
  }

  double scale(const std::vector<char>& scales, int64_t at) const {
    if (at == kOne) return 1;
    if (at == kZero) return decode(scaling_.scale, 0);
    if (at < 0 || at >= int64_t(scales.size())) return NAN;
    return decode(scaling_.scale, uint8_t(scales[size_t(at)]));
  }

  Sum sum_with(const Mistake& mistake, const Sample& s) const {
    const Place& place = s.place;
    const Group& g = e_.group(s);
    const HostCopy& copy = e_.copy();
    const int64_t a = g.a.offset + place.row * g.a.ld, b = g.b.offset + place.col * g.b_n_step();
    Sum sum;
    for (int kk = 0; kk < g.k; ++kk) {
      const int64_t block = kk / g.scale_block;
      const double factor_a = scale(mistake.sfa_from_b ? copy.sfb : copy.sfa, mistake.sfa(g, place, block));
      const double factor_b = scale(mistake.sfb_from_a ? copy.sfa : copy.sfb, mistake.sfb(g, place, block));
      const uint32_t code_a = load_code(matrices_.a, scaling_.element, (a + kk) ^ mistake.flip_a);
      const uint32_t code_b =
          load_code(matrices_.b, scaling_.element, (b + kk * g.b_k_step()) ^ mistake.flip_b);
      const double product = double(decode(scaling_.element, code_a)) * factor_a *
                             double(decode(scaling_.element, code_b)) * factor_b;
      sum.value += product;
      sum.magnitude += std::fabs(product);
    }
    return sum;
  }

  std::vector<Mistake> mistakes() const {
    std::vector<Mistake> all;
    const auto of_a = [&](const std::string& what, ScaleAt at) {
      all.push_back({Symptom::wrong_scale, what, std::move(at), right_b});
    };
    const auto of_b = [&](const std::string& what, ScaleAt at) {
      all.push_back({Symptom::wrong_scale, what, right_a, std::move(at)});
    };
    for (const int shift : {-1, 1}) {
      const char* side = shift < 0 ? "before" : "after";
      of_a(format("A scaled by the block %s along K", side),
           [shift](const Group& g, const Place& p, int64_t b) {
             return g.sfa.at(p.row, (b + shift + g.sfa.layout.blocks) % g.sfa.layout.blocks);
           });
      of_b(format("B scaled by the block %s along K", side),
           [shift](const Group& g, const Place& p, int64_t b) {
             return g.sfb.at(p.col, (b + shift + g.sfb.layout.blocks) % g.sfb.layout.blocks);
           });
      of_a(format("A scaled by the row %s", side), [shift](const Group& g, const Place& p, int64_t b) {
        return g.sfa.first_row + p.row + shift < 0 ? kNone : g.sfa.at(p.row + shift, b);
      });
      of_b(format("B scaled by the column %s", side), [shift](const Group& g, const Place& p, int64_t b) {
        return p.col + shift < 0 ? kNone : g.sfb.at(p.col + shift, b);
      });
    }
    of_a("A scaled by the first of each four blocks: the scale of the next block is never taken",
         [](const Group& g, const Place& p, int64_t b) { return g.sfa.at(p.row, b / 4 * 4); });
    of_b("B scaled by the first of each four blocks: the scale of the next block is never taken",
         [](const Group& g, const Place& p, int64_t b) { return g.sfb.at(p.col, b / 4 * 4); });
    add_stuck_ids(all);
    of_a("A not scaled at all", [](const Group&, const Place&, int64_t) { return kOne; });
    of_b("B not scaled at all", [](const Group&, const Place&, int64_t) { return kOne; });
    of_a("A scaled by rows counted from the start of the group instead of from the first row of A",
         [](const Group& g, const Place& p, int64_t b) {
           return g.sfa.offset + g.sfa.layout.offset(p.row, b);
         });
    of_a("scales of A read as [M,K/block] instead of in the 128x4 layout",
         [](const Group& g, const Place& p, int64_t b) {
           return g.sfa.offset + (g.sfa.first_row + p.row) * g.sfa.layout.blocks + b;
         });
    of_b("scales of B read as [N,K/block] instead of in the 128x4 layout",
         [](const Group& g, const Place& p, int64_t b) {
           return g.sfb.offset + p.col * g.sfb.layout.blocks + b;
         });
    add_experts(all);
    add_memory_order(all);
    all.push_back(exchanged());
    if (format_info(scaling_.element).bits < 8) {
      all.push_back({Symptom::swapped_halves, "A with the two elements of each byte exchanged"});
      all.back().flip_a = 1;
      all.push_back({Symptom::swapped_halves, "B with the two elements of each byte exchanged"});
      all.back().flip_b = 1;
    }
    return all;
  }

  // tcgen05.mma takes the scales of one step from one byte of a column or from two, which the scale
  // id names; stuck at 0 it names the first of the column's four blocks, or the first two. Four
  // bytes leave no choice.
  void add_stuck_ids(std::vector<Mistake>& all) const {
    const bool fp4 = scaling_.element == Format::e2m1;
    if (fp4 && scaling_.block != 32) return;
    const int64_t taken = fp4 ? 2 : 1;
    const ScaleAt a = [taken](const Group& g, const Place& p, int64_t b) {
      return g.sfa.at(p.row, b / 4 * 4 + b % taken);
    };
    const ScaleAt b = [taken](const Group& g, const Place& p, int64_t b) {
      return g.sfb.at(p.col, b / 4 * 4 + b % taken);
    };
    const char* blocks = fp4 ? "the first two of each four blocks" : "the first of each four blocks";
    const auto stuck = [&](const char* who, const char* ids, const ScaleAt& of_a, const ScaleAt& of_b) {
      all.push_back(
          {Symptom::wrong_scale, format("%s scaled by %s: %s stuck at 0", who, blocks, ids), of_a, of_b});
    };
    stuck("A and B", "both scale ids are", a, b);
    if (!fp4) return;  // of one operand: above
    stuck("A", "its scale id is", a, right_b);
    stuck("B", "its scale id is", right_a, b);
  }

  // B scaled with the scales of another group.
  void add_experts(std::vector<Mistake>& all) const {
    const auto groups = int64_t(layout_.groups.size());
    const auto scales_of = [this](int64_t group) { return layout_.groups[size_t(group)].sfb; };
    if (groups < 2 || scales_of(0).offset == scales_of(1).offset) return;  // one B for all
    all.push_back({Symptom::wrong_scale, "B scaled by the scales of expert 0 in every group", right_a,
                   [=](const Group&, const Place& p, int64_t b) { return scales_of(0).at(p.col, b); }});
    for (const int64_t shift : {int64_t(1), groups - 1}) {
      all.push_back({Symptom::wrong_scale,
                     format("B scaled by the scales of the expert %s", shift == 1 ? "after" : "before"),
                     right_a, [=](const Group&, const Place& p, int64_t b) {
                       return scales_of((p.group + shift) % groups).at(p.col, b);
                     }});
    }
  }

  // A tile of 256 columns holds two atoms of rows one behind the other, each with its atoms along
  // K. Taken in the other order, the atoms along K of both take turns. `depth` of them make a
  // slice; which is the wrong order decides whether a place is taken for another, or holds another.
  static int64_t other_order(const ScaleRegion& of, int64_t col, int64_t b, int64_t depth, bool taken,
                             int64_t end) {
    constexpr int64_t kTurns = 2, kRows = ScaleLayout::kAtomRows, kBlocks = ScaleLayout::kAtomBlocks;
    const int64_t tile = col / (kTurns * kRows) * (kTurns * kRows), slice = b / (depth * kBlocks) * depth;
    const int64_t i = (col - tile) / kRows, atom = b / kBlocks - slice;
    const int64_t place = taken ? atom * kTurns + i : i * depth + atom;
    const int64_t row = tile + (taken ? place / depth : place % kTurns) * kRows + col % kRows;
    const int64_t block = (slice + (taken ? place % depth : place / kTurns)) * kBlocks + b % kBlocks;
    // Behind an expert's scales lie the next one's, behind the last one's a load brings zeros.
    const bool is_there = block < of.layout.block_atoms() * kBlocks && of.at(row, block) < end;
    return is_there ? of.at(row, block) : kZero;
  }
  void add_memory_order(std::vector<Mistake>& all) const {
    // In the first atom of rows alone it may look like a missing slice of K.
    const auto in_second = std::count_if(e_.samples().begin(), e_.samples().end(), [](const Sample& s) {
      return s.place.col / ScaleLayout::kAtomRows % 2 == 1;
    });
    if (in_second < 8 && !last_) return;
    const ScaleRegion& last = layout_.groups.back().sfb;
    const int64_t end = last.offset + last.layout.bytes();
    for (const int64_t depth : {2, 4}) {
      for (const bool taken : {true, false}) {
        all.push_back({Symptom::wrong_scale,
                       format("atoms of SFB in the order of memory: the %lld atoms along K of a tile's two "
                              "atoms of columns take turns",
                              static_cast<long long>(depth)),
                       right_a, [=](const Group& g, const Place& p, int64_t b) {
                         return other_order(g.sfb, p.col, b, depth, taken, end);
                       }});
      }
    }
  }

  // Each failing group has scales of A or of B that lie some whole atoms before or behind its own.
  Failure shifted_groups(bool of_a) const {
    constexpr int64_t kMostAtoms = 4096;  // that are tried for a group
    constexpr size_t kTelling = 3;        // elements; fewer fit by chance
    std::map<int, std::vector<Sample>> by_group;
    for (const Sample& s : e_.samples()) by_group[s.place.group].push_back(s);
    std::map<int, int64_t> atoms;
    for (const auto& [index, samples] : by_group) {
      if (samples.size() < kTelling) continue;
      const Group& g = layout_.groups[size_t(index)];
      const int64_t bytes = int64_t((of_a ? e_.copy().sfa : e_.copy().sfb).size());
      const int64_t own = of_a ? g.sfa.offset : g.sfb.offset;
      const int64_t first = std::max(-kMostAtoms, -own / ScaleLayout::kAtomBytes),
                    last = std::min(kMostAtoms, (bytes - own) / ScaleLayout::kAtomBytes);
      for (int64_t shift = first; shift < last && !atoms.count(index); ++shift) {
        if (shift != 0 && explains_all(shifted(of_a, shift), samples)) atoms[index] = shift;
      }
      if (!atoms.count(index)) return {};
    }
    if (atoms.empty()) return {};
    return {Symptom::wrong_scale, "looks like " + shift_text(of_a, atoms)};
  }
  static Mistake shifted(bool of_a, int64_t atoms) {
    Mistake mistake{Symptom::wrong_scale, ""};
    if (of_a) {
      mistake.sfa = [=](const Group& g, const Place& p, int64_t b) {
        return right_a(g, p, b) + atoms * ScaleLayout::kAtomBytes;
      };
    } else {
      mistake.sfb = [=](const Group& g, const Place& p, int64_t b) {
        return right_b(g, p, b) + atoms * ScaleLayout::kAtomBytes;
      };
    }
    return mistake;
  }
  bool explains_all(const Mistake& mistake, const std::vector<Sample>& samples) const {
    return std::all_of(samples.begin(), samples.end(),
                       [&](const Sample& s) { return e_.matches(s, sum_with(mistake, s)); });
  }
  static std::string shift_text(bool of_a, const std::map<int, int64_t>& atoms) {
    const auto [group, shift] = *atoms.begin();
    const std::string side = shift < 0 ? "before" : "behind";
    return format("%s scaled from a wrong offset: group %d has what lies %lld bytes %s its own scales%s",
                  of_a ? "A" : "B", group, static_cast<long long>(std::abs(shift) * ScaleLayout::kAtomBytes),
                  side.c_str(), atoms.size() > 1 ? ", and other groups are off too" : "");
  }

  // SFA and SFB exchanged: the place is right, counted from the start of the other's scales.
  static Mistake exchanged() {
    Mistake mistake{Symptom::wrong_scale, "the scales of A and B exchanged",
                    [](const Group& g, const Place& p, int64_t b) {
                      return g.sfb.layout.offset((g.sfa.first_row + p.row) % g.n, b);
                    },
                    [](const Group& g, const Place& p, int64_t b) {
                      return g.sfa.offset +
                             g.sfa.layout.offset(std::min<int64_t>(p.col, g.sfa.layout.rows - 1), b);
                    }};
    mistake.sfa_from_b = mistake.sfb_from_a = true;
    return mistake;
  }

  const Evidence& e_;
  const Matrices& matrices_;
  BlockScaling scaling_;
  const Layout& layout_;
  bool last_;
};

}  // namespace

Failure explain_scales(const Evidence& evidence, bool last) {
  if (!evidence.matrices().formats.has_scales()) return {};
  return ScaleMistakes(evidence, last).explain();
}

}  // namespace gg
