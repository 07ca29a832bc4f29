// SPDX-License-Identifier: MIT
//
// cvta and isspacep, which know the windows of generic addresses: global memory has its own
// addresses, shared and local memory a window each, see memory.h. PTX ISA: "Data Movement and
// Conversion Instructions": cvta, isspacep.

#include <algorithm>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/conversion.h"

namespace gg::emu {
namespace {

template <bool kToSpace>
Next cvta(Warp& w, const Instr& in, Mask m) {
  const uint64_t window = uint64_t(in.offset);
  return map1<uint64_t, uint64_t>(w, in, m, [=](uint64_t a) { return kToSpace ? a - window : a + window; });
}
// Addresses of parameters are generic ones here; 32 bits of one hold its place in the block
// of parameters instead.
Next cvta_param(Warp& w, const Instr& in, Mask m) {
  const uint64_t block = w.block->grid->params_address;
  return map1<uint64_t, uint64_t>(w, in, m, [=](uint64_t a) { return a >> 32 ? a : a + block; });
}
enum SpaceName { kGlobal, kShared, kSharedCta, kSharedCluster, kLocal, kConst, kParam, kParamEntry };
int take_space(Decoder& d) {
  const int space = d.take_one(
      {"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry"});
  if (space < 0) throw Unsupported{"this space"};
  return space;
}
// A variable whose address is converted must lie in the space that is named.
void check_symbol(Decoder& d, const Operand& o, Space space) {
  if (o.kind != Operand::Kind::symbol) return;
  const Function& f = *d.frame().function;
  for (const auto* variables : {&d.code().module->variables, &f.locals, &f.params}) {
    for (const Variable& v : *variables) {
      if (v.name == o.name && v.space == space) return;
    }
  }
  throw Unsupported{o.name + " is in another space"};
}
void decode_cvta(Decoder& d) {
  const bool to = d.take("to");
  const int space = take_space(d);
  const TypeInfo type = take_type_of(d, {"u64"});
  d.done();
  const bool shared = space == kShared || space == kSharedCta || space == kSharedCluster;
  d.instr.offset = int64_t(shared ? kSharedWindow : space == kLocal ? kLocalWindow : 0);
  const bool param = space == kParam || space == kParamEntry;
  d.instr.run = to ? cvta<true> : param ? cvta_param : cvta<false>;
  check_symbol(d, d.operand(1),
               shared             ? Space::shared
               : space == kLocal  ? Space::local
               : space == kConst  ? Space::constant
               : space == kGlobal ? Space::global
                                  : Space::param);
  same_operands(d, 1, type);
}

// The parameters of a kernel lie inside the global window; .const variables do not.
struct Ranges {
  std::vector<std::pair<uint64_t, uint64_t>> constants;  // begin, end
};
Next isspacep(Warp& w, const Instr& in, Mask m) {
  const Ranges& ranges = *static_cast<const Ranges*>(in.extra);
  const uint64_t* address = w.at<uint64_t>(in.s[0]);
  const Grid& grid = *w.block->grid;
  Outcomes yes;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t a = address[l];
    const auto in_window = [a](uint64_t begin, uint64_t bytes) { return a - begin < bytes; };
    const bool shared = in_window(kSharedWindow, kSharedWindowBytes),
               local = in_window(kLocalWindow, kLocalWindowBytes);
    const bool own = shared && (a - kSharedWindow) >> 24 == uint64_t(w.block->rank);
    const bool constant = std::any_of(ranges.constants.begin(), ranges.constants.end(),
                                      [&](const auto& r) { return a >= r.first && a < r.second; });
    switch (in.variant) {
      case kGlobal:
        yes[l] = !shared && !local && !constant;
        break;
      case kShared:
      case kSharedCta:
        yes[l] = own;
        break;
      case kSharedCluster:
        yes[l] = shared;
        break;
      case kLocal:
        yes[l] = local;
        break;
      case kConst:
        yes[l] = constant;
        break;
      default:
        yes[l] = grid.params_address && in_window(grid.params_address, grid.launch.params.size());
    }
  }
  put(w, in.d, m, yes);
  return Next::go_on;
}
void decode_isspacep(Decoder& d) {
  d.instr.variant = uint8_t(take_space(d));
  d.done();
  want_operands(d, 2);
  Ranges ranges;
  for (const Variable& v : d.code().module->variables) {
    const auto at = d.code().global_symbols.find(v.name);
    if (v.space != Space::constant || at == d.code().global_symbols.end()) continue;
    ranges.constants.push_back({at->second, at->second + uint64_t(v.bytes)});
  }
  d.extra(ranges);
  d.instr.s[0] = d.source(1, type_info("u64"));
  d.instr.d = d.predicate_destination(d.operand(0));
  d.instr.run = isspacep;
}

}  // namespace

std::vector<Form> cvta_forms() {
  return computing(Family::convert, {{"cvta", decode_cvta}, {"isspacep", decode_isspacep}});
}

}  // namespace gg::emu
