// SPDX-License-Identifier: MIT
//
// The table of all forms, and what a build without common/emu/foreign has there.

#include "common/emu/core/isa/forms.h"

#include <algorithm>

#include "common/emu/core/state/left_out.h"

namespace gg::emu {
namespace {

// Opcodes of common/emu/foreign. Some have forms in this folder too: of these the ones with any of
// the modifiers are foreign's, unless they have one of `others`.
struct LeftOut {
  std::vector<const char*> opcodes, modifiers, others;
};
const std::vector<LeftOut>& all_left_out() {
  static const auto& all = *new const std::vector<LeftOut>{
      {{"wmma", "clusterlaunchcontrol"}, {}, {}},
      {{"vadd",      "vadd2", "vadd4", "vsub",  "vsub2", "vsub4", "vabsdiff", "vabsdiff2",
        "vabsdiff4", "vmin",  "vmin2", "vmin4", "vmax",  "vmax2", "vmax4",    "vavrg2",
        "vavrg4",    "vset",  "vset2", "vset4", "vshl",  "vshr"},
       {},
       {}},
      {{"add", "sub", "mul", "fma", "neg", "abs", "tanh", "ex2", "min", "max", "setp", "set"},
       {"f16", "f16x2", "bf16", "bf16x2"},
       {}},
      {{"ldmatrix", "stmatrix"}, {"b8", "b8x16"}, {}},
      {{"cp"}, {"bulk"}, {"tensor", "commit_group", "wait_group"}},
  };
  return all;
}

bool belongs(const LeftOut& group, const Statement& s) {
  const auto has = [&s](const char* modifier) { return s.has(modifier); };
  return std::count(group.opcodes.begin(), group.opcodes.end(), s.opcode) != 0 &&
         (group.modifiers.empty() || std::any_of(group.modifiers.begin(), group.modifiers.end(), has)) &&
         std::none_of(group.others.begin(), group.others.end(), has);
}

void refuse(Decoder& d) {
  const Statement& s = d.statement();
  for (const LeftOut& group : all_left_out()) {
    if (!belongs(group, s)) continue;
    std::string name = s.opcode;
    for (const std::string& modifier : s.modifiers) {
      name += "." + modifier;
      d.take(modifier.c_str());  // no other refusal knows all of them
    }
    throw Unsupported{left_out(name)};
  }
  throw Unsupported{""};
}

}  // namespace

std::vector<Form> left_out_forms() {
  std::vector<Form> forms;
  for (const LeftOut& group : all_left_out()) {
    for (const char* opcode : group.opcodes) forms.push_back({opcode, refuse, Family::control});
  }
  return forms;
}

[[gnu::weak]] std::vector<Form> foreign_forms() { return left_out_forms(); }

std::vector<Form> core_forms() {
  std::vector<Form> all;
  for (const std::vector<Form>& page : {
           integer_forms(),   bits_forms(),       bits_fields_forms(),    compare_forms(),
           mov_forms(),       floating_forms(),   floating_pairs_forms(), cvt_forms(),
           cvta_forms(),      cvt_narrow_forms(), control_forms(),        call_forms(),
           barrier_forms(),   ldst_forms(),       atomic_forms(),         warp_forms(),
           mma_forms(),       ldmatrix_forms(),   stmatrix_forms(),       cp_async_forms(),
           mbarrier_forms(),  cluster_forms(),    tensormap_forms(),      bulk_forms(),
           wgmma_forms(),     tcgen05_forms(),    tcgen05_mma_forms(),    fence_forms(),
           warpgroup_forms(),
       }) {
    all.insert(all.end(), page.begin(), page.end());
  }
  return all;
}

const FormTable& all_forms() {
  static const FormTable& table = *new const FormTable({core_forms(), foreign_forms()});
  return table;
}

}  // namespace gg::emu
