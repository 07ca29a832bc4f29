// SPDX-License-Identifier: MIT
//
// Branches and ends; call.cpp has calls. PTX ISA: "Control Flow Instructions", "Miscellaneous
// Instructions: trap, brkpt".

#include "common/emu/core/decode/called.h"
#include "common/emu/core/isa/forms.h"
#include "common/emu/core/state/access.h"

namespace gg::emu {
namespace {

Next branch(Warp&, const Instr&, Mask) { return Next::branch; }
void decode_bra(Decoder& d) {
  d.take("uni");
  d.done();
  d.instr.target = d.label(d.operand(0));
  d.instr.run = branch;
}

// brx.idx index, list: each lane goes to the label its index names.
Next branch_by_index(Warp& w, const Instr& in, Mask m) {
  const uint32_t* index = w.at<uint32_t>(in.s[0]);
  for (Lanes l(m); l; ++l) {
    if (index[*l] >= in.count) {
      raise_final(FaultKind::bounds, w, in, *l,
                  "index " + std::to_string(index[*l]) + " of a list of " + std::to_string(in.count) +
                      " branch targets",
                  "a switch without a default met a value it does not know");
    }
    w.flow.jump_to[*l] = int32_t(in.list[index[*l]]);
  }
  return Next::jump;
}
void decode_brx(Decoder& d) {
  if (!d.take("idx")) throw Unsupported{"this branch"};
  d.take("uni");
  d.done();
  d.instr.s[0] = d.source(0, type_info("u32"));
  if (d.operand(1).kind != Operand::Kind::vector) throw Unsupported{"a branch without .branchtargets"};
  std::vector<uint32_t> targets;
  for (const Operand& target : d.operand(1).elements) targets.push_back(uint32_t(d.label(target)));
  d.instr.count = uint16_t(targets.size());
  d.instr.list = d.list(targets);
  d.instr.run = branch_by_index;
}

Next leave(Warp&, const Instr&, Mask) { return Next::exit; }
void decode_exit(Decoder& d) {
  d.done();
  d.instr.run = leave;
}
void decode_ret(Decoder& d) {
  if (&d.statement() == &end_of_call()) return decode_end_of_call(d);
  d.take("uni");
  d.done();
  // The target is known once the function is expanded.
  d.instr.run = d.frame().function->entry ? leave : branch;
}

Next trap(Warp& w, const Instr& in, Mask m) {
  raise_final(FaultKind::trap, w, in, __builtin_ctz(m), "the kernel stopped itself",
              "an assertion of the kernel, or a path it declares impossible");
}
void decode_trap(Decoder& d) {
  d.done();
  d.instr.run = trap;
}

Next nothing(Warp&, const Instr&, Mask) { return Next::go_on; }
void decode_nothing(Decoder& d) { d.instr.run = nothing; }

}  // namespace

std::vector<Form> control_forms() {
  return {{"bra", decode_bra, Family::control},       {"brx", decode_brx, Family::control},
          {"exit", decode_exit, Family::control},     {"ret", decode_ret, Family::control},
          {"trap", decode_trap, Family::control},     {"brkpt", decode_trap, Family::control},
          {"pragma", decode_nothing, Family::control}};
}

}  // namespace gg::emu
