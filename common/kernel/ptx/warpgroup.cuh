// SPDX-License-Identifier: MIT
//
// Registers move between warpgroups, and kernels overlap: PTX ISA, "Miscellaneous
// instructions: setmaxnreg", "Parallel synchronization and communication instructions:
// griddepcontrol". Needs sm_90a.

#pragma once

namespace gg::ptx {

// Who: all warps of a warpgroup. REGISTERS: a multiple of 8, 24 to 256; the kernel was compiled
//   with a maximum (__launch_bounds__) and starts with it.
// Does: gives registers back, or waits until as many are free and takes them. What lies in
//   registers above the new number is lost, what comes is undefined.
template <int REGISTERS>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS>
__device__ inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// Who: any thread, of a kernel launched with cudaLaunchAttributeProgrammaticStreamSerialization.
// Does: stops this thread, no other, until the kernel before it in the stream has ended. Its writes
//   are then visible to the whole grid. Elsewhere: nothing.
// Before: nothing is read that the kernel before may write, nothing written that it may read.
__device__ inline void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Who: any thread. Does: as soon as every block has done so or ended, the next kernel may begin,
//   up to its own griddepcontrol_wait.
__device__ inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace gg::ptx
