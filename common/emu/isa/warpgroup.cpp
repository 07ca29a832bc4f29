// SPDX-License-Identifier: MIT
//
// setmaxnreg, which moves registers between warpgroups, and griddepcontrol, which lets a grid begin before
// the one ahead of it has ended. PTX ISA: "Miscellaneous Instructions: setmaxnreg", "Parallel Synchronization
// and Communication Instructions: griddepcontrol".

#include "common/emu/decode/decode.h"

namespace gg::emu {
namespace {

Next nothing(Warp&, const Instr&, Mask) { return Next::go_on; }

// griddepcontrol.wait: until the launch before this one has ended. launch_dependents only allows: whether the
// launch behind begins early is the runtime's affair.
Next wait_for_launch_before(Warp& w, const Instr&, Mask) {
  const Grid& grid = *w.block->grid;
  if (grid.before_ended) return Next::go_on;
  w.running->ready = [&grid] { return grid.before_ended; };
  w.running->waits_for = [] { return std::string("the end of the launch before this one"); };
  return Next::wait;
}
void decode_griddepcontrol(Decoder& d) {
  const int kind = d.take_one({"launch_dependents", "wait"});
  if (kind < 0) throw Unsupported{"this griddepcontrol"};
  d.done();
  d.instr.run = kind == 0 ? nothing : wait_for_launch_before;
}

// setmaxnreg.{inc,dec}: how many registers a thread has is not modelled; that the number is legal is checked.
void decode_setmaxnreg(Decoder& d) {
  if (d.take_one({"inc", "dec"}) < 0 || !d.take("sync") || !d.take("aligned") || !d.take("u32"))
    throw Unsupported{"this setmaxnreg"};
  d.done();
  const int64_t count = d.immediate(0);
  if (count < 24 || count > 256 || count % 8 != 0)
    throw Unsupported{"setmaxnreg of " + std::to_string(count) +
                      " registers, which is no multiple of 8 in 24..256"};
  d.instr.converged = true;
  d.instr.run = nothing;
}

}  // namespace

std::vector<Form> warpgroup_forms() {
  return {{"griddepcontrol", decode_griddepcontrol}, {"setmaxnreg", decode_setmaxnreg}};
}

}  // namespace gg::emu
