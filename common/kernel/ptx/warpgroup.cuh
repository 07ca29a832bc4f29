// SPDX-License-Identifier: MIT
//
// Registers move between warpgroups, and kernels overlap: PTX ISA, "Miscellaneous
// instructions: setmaxnreg", "Parallel synchronization and communication instructions:
// griddepcontrol". Needs sm_90a.

#pragma once

namespace gg::ptx {

// Who: all warps of a warpgroup. REGISTERS: a multiple of 8, 24 to 256; the kernel was compiled for
//   a fixed number (__launch_bounds__).
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
// Does: waits until the kernel before it in the stream has ended and its writes are
//   visible. Elsewhere: nothing.
// Before: nothing is read that the kernel before may write, nothing written that it may read.
__device__ inline void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Who: any thread. Does: as soon as every block has said so or ended, the kernel behind may begin,
//   up to its own griddepcontrol_wait.
__device__ inline void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace gg::ptx
