// SPDX-License-Identifier: MIT
//
// The table in memory_acts.h is whole: every opcode that the emulator knows, and every modifier
// that it asks for when it decodes one that touches shared memory, stands in the table or in a list
// below that says why not.

#include <gtest/gtest.h>

#include <algorithm>

#include "common/emu/core/decode/decode.h"
#include "common/emu/core/isa/forms.h"
#include "tests/emu/memory_acts.h"

namespace {

using namespace memory_test;
using std::string;
using Words = std::set<string>;

// No access of shared memory by address, or one with a table of its own: mbarrier
// (mbarrier_forms_test.cpp), tensor memory (tmem_pairs_test.cpp), ldu, which is of global memory
// (memory_spaces_test.cpp). Prefetches read nothing.
const Words kElsewhere = {
    "abs",        "activemask", "add",       "addc",         "and",        "applypriority",
    "bar",        "barrier",    "bfe",       "bfi",          "bfind",      "bra",
    "brev",       "brkpt",      "brx",       "bmsk",         "call",       "clz",
    "cnot",       "copysign",   "cos",       "createpolicy", "cvt",        "cvta",
    "discard",    "div",        "dp2a",      "dp4a",         "elect",      "ex2",
    "exit",       "fence",      "fma",       "fns",          "getctarank", "griddepcontrol",
    "isspacep",   "ldu",        "lg2",       "lop3",         "mad",        "mad24",
    "madc",       "mapa",       "match",     "max",          "mbarrier",   "membar",
    "min",        "mma",        "mov",       "movmatrix",    "mul",        "mul24",
    "nanosleep",  "neg",        "not",       "or",           "pmevent",    "popc",
    "pragma",     "prefetch",   "prefetchu", "prmt",         "rcp",        "redux",
    "rem",        "ret",        "rsqrt",     "sad",          "selp",       "set",
    "setmaxnreg", "setp",       "shf",       "shfl",         "shl",        "shr",
    "sin",        "slct",       "sqrt",      "sub",          "subc",       "szext",
    "tanh",       "testp",      "trap",      "vote",         "xor",        "vabsdiff",
    "vabsdiff2",  "vabsdiff4",  "vadd",      "vadd2",        "vadd4",      "vavrg2",
    "vavrg4",     "vmax",       "vmax2",     "vmax4",        "vmin",       "vmin2",
    "vmin4",      "vset",       "vset2",     "vset4",        "vshl",       "vshr",
    "vsub",       "vsub2",      "vsub4"};

// Modifiers that leave the bytes and their order in shared memory as they are; those of other
// memory; waits, which the table has behind its instructions; what no form takes together
// with shared memory.
const Words kAccess = {"L1::evict_first",
                       "L1::evict_last",
                       "L1::evict_normal",
                       "L1::evict_unchanged",
                       "L1::no_allocate",
                       "L2::128B",
                       "L2::256B",
                       "L2::64B",
                       "L2::cache_hint",
                       "L2::evict_first",
                       "L2::evict_last",
                       "L2::evict_normal",
                       "ca",
                       "cg",
                       "cs",
                       "cv",
                       "lu",
                       "wb",
                       "wt",
                       "nc",
                       "mmio",
                       "const",
                       "global",
                       "local",
                       "param",
                       "param::entry",
                       "param::func",
                       "v8"};
Words with(Words words, const Words& more) {
  words.insert(more.begin(), more.end());
  return words;
}
const std::map<string, Words> kNoMatter = {
    {"ld", with(kAccess, {"release", "sys"})},
    {"st", with(kAccess, {"acquire", "gpu"})},
    {"atom", {"L2::cache_hint", "global", "v2", "v4", "v8"}},
    {"red", {"L2::cache_hint", "global", "v2", "v4", "v8", "cas", "exch"}},
    {"clusterlaunchcontrol", {"query_cancel"}},  // reads registers
    // .cta_group::2 wants a pair: blackwell_copy_test.cpp.
    {"cp",
     {"L2::256B", "L2::64B", "L2::cache_hint", "arrive", "b64", "commit_group", "cta_group::2", "mbarrier",
      "noinc", "prefetch", "read", "wait_all", "wait_group"}},
    // Block-scaled kinds announce A and B as the others do; pairs: tcgen05_mma_test.cpp.
    {"tcgen05",
     {"ashift",
      "b64",
      "b6x16_p32",
      "collector::a::discard",
      "collector::a::fill",
      "collector::a::lastuse",
      "collector::a::use",
      "commit",
      "cta_group::2",
      "dealloc",
      "fence::after_thread_sync",
      "fence::before_thread_sync",
      "kind::mxf4",
      "kind::mxf4nvf4",
      "kind::mxf8f6f4",
      "ld",
      "mbarrier::arrive::one",
      "multicast::cluster",
      "relinquish_alloc_permit",
      "shared::cluster",
      "shift",
      "sp",
      "st",
      "wait::ld",
      "wait::st",
      "ws"}},
    // Every field is replaced in the same 128 bytes.
    {"tensormap",
     {"cluster", "cta", "element_stride", "elemtype", "fill_mode", "global_address", "global_dim",
      "global_stride", "interleave_layout", "rank", "swizzle_atomicity", "swizzle_mode", "sys"}},
    {"wgmma", {"commit_group", "fence", "wait_group"}},
    {"wmma", {"global", "mma"}}};

struct Seen {
  std::set<std::pair<string, string>> asked;
  std::map<string, Words> used;  // by opcode
};

Seen look_at_all() {
  Seen seen;
  gg::emu::Decoder::asked = &seen.asked;
  // With a modifier that nobody takes decoders go on to their last question.
  for (const string& opcode : gg::emu::all_forms().opcodes()) {
    const string target = opcode == "wgmma" ? "sm_90a" : "sm_100a";
    const auto module =
        gg::emu::parse_ptx(".version 9.0\n.target " + target +
                           "\n.address_size 64\n.visible .entry k()\n{\n" + opcode + ".nobodys;\nret;\n}\n");
    gg::emu::decode(*module, *module->find("k"), gg::emu::all_forms());
  }
  for (const Act& act : all_acts()) {
    const string ptx = kernel(act, act.before + act.instruction + "  // HERE\n" + act.issued + act.wait);
    const int line = 1 + int(std::count(ptx.begin(), ptx.begin() + long(ptx.find("  // HERE")), '\n'));
    const auto module = gg::emu::parse_ptx(ptx);
    const gg::emu::Function* function = module->find("k");
    for (const gg::emu::Statement& s : function->body) {
      if (s.line == line) seen.used[s.opcode].insert(s.modifiers.begin(), s.modifiers.end());
    }
    gg::emu::decode(*module, *function, gg::emu::all_forms());
  }
  gg::emu::Decoder::asked = nullptr;
  return seen;
}

TEST(MemoryForms, EveryOpcodeIsInTheTableOrTouchesNoSharedMemory) {
  const Seen seen = look_at_all();
  Words known;
  for (const string& opcode : gg::emu::all_forms().opcodes()) {
    known.insert(opcode);
    EXPECT_TRUE(seen.used.count(opcode) || kElsewhere.count(opcode))
        << opcode << ": give it an entry in memory_acts.cpp, or say above that it touches no shared memory";
  }
  for (const string& opcode : kElsewhere) {
    EXPECT_TRUE(known.count(opcode)) << opcode << " is not known any more";
    EXPECT_FALSE(seen.used.count(opcode)) << opcode << " has entries";
  }
}

TEST(MemoryForms, EveryModifierIsInTheTableOrChangesNothing) {
  const Seen seen = look_at_all();
  std::map<string, Words> asked;
  for (const auto& [opcode, word] : seen.asked) asked[opcode].insert(word);
  for (const auto& [opcode, used] : seen.used) {
    const auto listed = kNoMatter.find(opcode);
    const Words none, &no_matter = listed == kNoMatter.end() ? none : listed->second;
    for (const string& word : asked[opcode]) {
      EXPECT_TRUE(used.count(word) || no_matter.count(word))
          << opcode << " ." << word
          << ": give it an entry in memory_acts.cpp, or say above why it needs none";
    }
    for (const string& word : no_matter)
      EXPECT_TRUE(asked[opcode].count(word) && !used.count(word))
          << opcode << " ." << word << " is listed in vain";
  }
}

}  // namespace
