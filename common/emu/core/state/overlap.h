// SPDX-License-Identifier: MIT
//
// The counts of what overlaps: of products that a program issues while loads or bulk stores are
// under way, and of loads of sums from tensor memory beside a later product. All of it follows from
// the program: from the order of a warp's own instructions, and from what it has learnt of others
// at barriers (vector clocks, race.h). So it is the same in every order of warps. COUNTS.md, "What
// overlaps", says what each count means.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace gg::emu {

class Clock;
struct Block;
struct Instr;
struct Warp;

// The products that a warp has issued.
struct WarpProducts {
  struct Since {
    uint32_t ticks = 0;   // of the warp's clock,
    uint64_t before = 0;  // and how many it had issued when the clock came to it
  };
  // Products that it has issued; the newest of them that a load overlaps, as a number from 1 on.
  uint64_t issued = 0, counted = 0;
  std::vector<Since> since;  // where `counted` is less than `issued`: ascending
};

// Loads of sums and products of one block's tensor memory.
struct TmemLoads {
  struct Load {
    size_t agent = 0;
    uint32_t ticks = 0;
    const Instr* instr = nullptr;
    uint64_t count = 0;
  };
  std::vector<Load> alone;  // no product has been found beside them yet
  // By agent of a tensor core: ticks of its clock at its newest product.
  std::map<size_t, uint32_t> product;
};

// A warp issues a product: mma, wgmma.mma_async, tcgen05.mma.
void product_issued(Warp& warp, const Instr& instr);
// The warp has waited for a load, or for several, whose issuer knew `known` when it started them.
void load_awaited(Warp& warp, const Instr& instr, const Clock& known);
// The same for copies that lanes of the warp started when it had issued so many products.
void copies_awaited(Warp& warp, const Instr& instr, uint64_t issued_before);
// A tensor core, as an agent, gets a product for the tensor memory of a block.
void product_into(TmemLoads& loads, const Warp& core);
// A warp executes tcgen05.ld.
void tmem_loaded(TmemLoads& loads, const Warp& warp, const Instr& instr);

}  // namespace gg::emu
