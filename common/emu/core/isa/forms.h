// SPDX-License-Identifier: MIT
//
// The pages of this folder: what each of them has to decode, and the table made of all. A page
// holds one family of instructions, or a part of one, and begins with its section of the PTX ISA.

#pragma once

#include <vector>

#include "common/emu/core/decode/decode.h"

namespace gg::emu {

// All forms that there are. It is made once and never destroyed: a program may end while a thread
// of it still launches.
const FormTable& all_forms();

// The forms of this folder's pages, and of those in common/emu/foreign, which come after them. A
// build that leaves these out has left_out_forms() instead, which refuse: the definition here is
// weak, and foreign's goes before it.
std::vector<Form> core_forms();
std::vector<Form> foreign_forms();
std::vector<Form> left_out_forms();

// ---- each page's list, in the order in which forms of one opcode are tried ----

// add sub mul mad div rem abs neg min max sad, carries, dp4a dp2a
std::vector<Form> integer_forms();
std::vector<Form> bits_forms();            // and or xor not cnot lop3, shifts
std::vector<Form> bits_fields_forms();     // popc clz bfind fns brev bfe bfi bmsk szext prmt
std::vector<Form> compare_forms();         // setp set selp slct
std::vector<Form> mov_forms();             // mov
std::vector<Form> floating_forms();        // f32 and f64
std::vector<Form> floating_pairs_forms();  // .f32x2, min and max of three, redux of f32
std::vector<Form> cvt_forms();             // cvt, cvt.pack
std::vector<Form> cvta_forms();            // cvta isspacep
std::vector<Form> cvt_narrow_forms();      // cvt to and from fp4, fp6 and ue8m0
std::vector<Form> control_forms();         // bra brx ret exit trap brkpt
std::vector<Form> call_forms();            // call
std::vector<Form> barrier_forms();         // bar barrier, barrier.cluster
std::vector<Form> ldst_forms();            // ld ldu st prefetch
std::vector<Form> atomic_forms();          // atom red
std::vector<Form> warp_forms();            // shfl vote match redux elect activemask
std::vector<Form> mma_forms();             // mma.sync movmatrix
std::vector<Form> ldmatrix_forms();        // ldmatrix of 16-bit elements
std::vector<Form> stmatrix_forms();        // stmatrix of 16-bit elements
std::vector<Form> cp_async_forms();        // cp.async and its groups
std::vector<Form> mbarrier_forms();        // mbarrier, cp.async.mbarrier.arrive
std::vector<Form> cluster_forms();         // mapa getctarank st.async red.async
std::vector<Form> tensormap_forms();       // tensormap, fence.proxy.tensormap, prefetch.tensormap
std::vector<Form> bulk_forms();            // cp.async.bulk, cp.reduce.async.bulk, tensor forms too
std::vector<Form> wgmma_forms();           // wgmma
std::vector<Form> tcgen05_forms();         // tcgen05, all but mma
std::vector<Form> tcgen05_mma_forms();     // tcgen05.mma
std::vector<Form> fence_forms();           // membar fence nanosleep createpolicy, hints
std::vector<Form> warpgroup_forms();       // setmaxnreg griddepcontrol

// ---- what a page hands on to another one, the words that lead there taken ----

// From bulk.cpp to tma.cpp: cp{.reduce}.async.bulk.tensor.
void decode_tensor_copy(Decoder& decoder, bool reduces);

// From control.cpp to call.cpp: the end of a function that was called.
void decode_end_of_call(Decoder& decoder);

// From mbarrier.cpp to mbarrier_wait.cpp: test_wait and try_wait, told apart in instr.variant.
enum : uint8_t { kParity = 1, kTry = 2 };
Next mbarrier_wait(Warp& warp, const Instr& instr, Mask mask);

// From tcgen05.cpp to tcgen05_alloc.cpp, tcgen05_ldst.cpp and tcgen05_cp.cpp.
enum class TmemRights : uint8_t { alloc, dealloc, relinquish };
void decode_tcgen05_rights(Decoder& decoder, TmemRights what);
void decode_tcgen05_load(Decoder& decoder);
void decode_tcgen05_store(Decoder& decoder);
void decode_tcgen05_copy(Decoder& decoder);
void decode_tcgen05_shift(Decoder& decoder);

}  // namespace gg::emu
