// SPDX-License-Identifier: MIT
//
// setmaxnreg, which moves registers between warpgroups, and griddepcontrol, which lets a grid begin
// before the one ahead of it has ended. PTX ISA: "Miscellaneous Instructions: setmaxnreg",
// "Parallel Synchronization and Communication Instructions: griddepcontrol".

#include "common/emu/core/isa/forms.h"

namespace gg::emu {
namespace {

Next nothing(Warp&, const Instr&, Mask) { return Next::go_on; }

// griddepcontrol.wait: until the launch before this one has ended. launch_dependents only allows:
// whether the launch behind begins early is the runtime's affair.
Next wait_for_launch_before(Warp& w, const Instr&, Mask) {
  const Grid& grid = *w.block->grid;
  if (grid.before_ended) return Next::go_on;
  w.flow.running->ready = [&grid] { return grid.before_ended; };
  w.flow.running->waits_for = [] { return std::string("the end of the launch before this one"); };
  return Next::wait;
}
void decode_griddepcontrol(Decoder& d) {
  const int kind = d.take_one({"launch_dependents", "wait"});
  if (kind < 0) throw Unsupported{"this griddepcontrol"};
  d.done();
  d.instr.run = kind == 0 ? nothing : wait_for_launch_before;
}

// setmaxnreg.inc waits until so many registers have been given back: for ever, if the warps of the
// block ask for more than they began with. How many that is machine code tells, or else the size of
// the block (cudart/program.cpp); where neither does, nobody waits.
Next take_registers(Warp& w, const Instr& in, Mask) {
  Block& block = *w.block;
  const int more = int(in.offset) - w.registers.per_thread;
  if (w.registers.per_thread == 0 || more <= 0) return Next::go_on;
  if (block.spare_registers < more) {
    w.flow.running->ready = [&block, more] { return block.spare_registers >= more; };
    w.flow.running->waits_for = [&block, more] {
      return std::to_string(more) + " registers more for each thread, and warps of the block have given " +
             std::to_string(block.spare_registers) + " back that nobody has taken";
    };
    return Next::retry;
  }
  block.spare_registers -= more;
  w.registers.per_thread += more;
  return Next::go_on;
}
Next give_registers(Warp& w, const Instr& in, Mask) {
  const int fewer = w.registers.per_thread - int(in.offset);
  if (fewer <= 0) return Next::go_on;
  w.block->spare_registers += fewer;
  w.registers.per_thread -= fewer;
  ++w.block->cluster->changes;
  return Next::go_on;
}
void decode_setmaxnreg(Decoder& d) {
  const int kind = d.take_one({"inc", "dec"});
  if (kind < 0 || !d.take("sync") || !d.take("aligned") || !d.take("u32"))
    throw Unsupported{"this setmaxnreg"};
  d.done();
  const int64_t count = d.immediate(0);
  if (count < 24 || count > 256 || count % 8 != 0)
    throw Unsupported{"setmaxnreg of " + std::to_string(count) +
                      " registers, which is no multiple of 8 in 24..256"};
  d.instr.converged = true;
  d.instr.offset = count;
  d.instr.run = kind == 0 ? take_registers : give_registers;
}

}  // namespace

std::vector<Form> warpgroup_forms() {
  return {{"griddepcontrol", decode_griddepcontrol, Family::fence},
          {"setmaxnreg", decode_setmaxnreg, Family::fence}};
}

}  // namespace gg::emu
