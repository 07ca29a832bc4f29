// SPDX-License-Identifier: MIT
//
// From counts per instruction to counters by family and by space.

#include "common/emu/core/report/count_report.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <map>

#include "common/emu/core/state/names.h"

namespace gg::emu {
namespace {

// The counters, in the order in which they are given.
enum Id : int {
  kInstructions,
  kInteger,  // from here to kFence in the order of Family
  kFloating,
  kConvert,
  kMove,
  kControl,
  kLdst,
  kAtomic,
  kWarp,
  kBarrier,
  kMbarrier,
  kCpAsync,
  kBulk,
  kLdmatrix,
  kMma,
  kWgmma,
  kTcgen05,
  kFence,
  kGlobalLoadBytes,
  kGlobalStoreBytes,
  kGlobalAtomicBytes,
  kGlobalLoadSectors,
  kGlobalStoreSectors,
  kGlobalAtomicSectors,
  kSharedLoadBytes,
  kSharedStoreBytes,
  kSharedAtomicBytes,
  kSharedWavefronts,
  kSharedBankConflicts,
  kBarrierWaits,
  kProducts,
  kProductsDuringLoads,
  kProductsDuringStores,
  kTmemLoads,
  kTmemLoadsDuringProducts,
  kMultiplyAdds,
  kCounters,
};
constexpr const char* kNames[kCounters] = {
    "instructions",
    "instructions_integer",
    "instructions_floating",
    "instructions_convert",
    "instructions_move",
    "instructions_control",
    "instructions_ldst",
    "instructions_atomic",
    "instructions_warp",
    "instructions_barrier",
    "instructions_mbarrier",
    "instructions_cp_async",
    "instructions_bulk",
    "instructions_ldmatrix",
    "instructions_mma",
    "instructions_wgmma",
    "instructions_tcgen05",
    "instructions_fence",
    "global_load_bytes",
    "global_store_bytes",
    "global_atomic_bytes",
    "global_load_sectors",
    "global_store_sectors",
    "global_atomic_sectors",
    "shared_load_bytes",
    "shared_store_bytes",
    "shared_atomic_bytes",
    "shared_wavefronts",
    "shared_bank_conflicts",
    "barrier_waits",
    "products",
    "products_during_loads",
    "products_during_stores",
    "tmem_loads",
    "tmem_loads_during_products",
    "multiply_adds",
};
using Values = uint64_t[kCounters];

Id id_of(Family family) { return Id(kInteger + int(family)); }
static_assert(kInteger + int(Family::fence) == kFence);

// Bytes go to a row of three: load, store, atomic. Copies count where global memory is: reading it
// is a load.
constexpr int kLoad = 0, kStore = 1, kAtom = 2;
int way_of(const Statement& s) {
  if (s.opcode == "atom" || s.opcode == "red" || s.has("reduce")) return kAtom;
  if (s.opcode == "st" || s.opcode == "stmatrix") return kStore;
  if (s.opcode == "wmma" && s.has("store")) return kStore;
  if (s.opcode == "cp") {
    for (const std::string& m : s.modifiers) {  // the destination comes first
      if (m == "global") return kStore;
      if (m.rfind("shared", 0) == 0) return kLoad;
    }
  }
  return kLoad;
}

void add_bytes(const Instr& in, const InstrCounts& c, Values& v) {
  const int way = way_of(*in.statement);
  v[kGlobalLoadBytes + way] += c.global_bytes;
  v[kGlobalLoadSectors + way] += c.sectors;
  v[kSharedLoadBytes + way] += c.shared_bytes;
  v[kSharedWavefronts] += c.wavefronts;
  v[kSharedBankConflicts] += c.wavefronts - c.least_wavefronts;
}

uint64_t multiply_adds(const Instr& in, const InstrCounts& c) {
  const Statement& s = *in.statement;
  if ((s.opcode != "fma" && s.opcode != "mad") || in.family != Family::floating) return c.multiply_adds;
  for (const std::string& m : s.modifiers) {
    if (m == "f16x2" || m == "bf16x2" || m == "f32x2") return c.lanes * 2;
  }
  return c.lanes;
}

void add(const Code& code, const std::vector<InstrCounts>& counts, Values& v) {
  for (size_t i = 0; i < counts.size(); ++i) {
    const Instr& in = code.instrs[i];
    const InstrCounts& c = counts[i];
    v[kInstructions] += c.warps;
    v[id_of(in.family)] += c.warps;
    add_bytes(in, c, v);
    v[kBarrierWaits] += c.waits;
    v[kProducts] += c.products;
    v[kProductsDuringLoads] += c.products_during_loads;
    v[kProductsDuringStores] += c.products_during_stores;
    v[kTmemLoads] += c.tmem_loads;
    v[kTmemLoadsDuringProducts] += c.tmem_loads_during_products;
    v[kMultiplyAdds] += multiply_adds(in, c);
  }
}

void print(std::FILE* file, const std::string& title, const Values& v) {
  std::fprintf(file, "%s\n", title.c_str());
  for (int i = 0; i < kCounters; ++i) {
    if (v[i]) std::fprintf(file, "  %-24s %16" PRIu64 "\n", kNames[i], v[i]);
  }
}

}  // namespace

std::string kernel_title(const std::string& mangled) {
  std::string name = demangled(mangled);
  name.resize(std::min(name.size(), name.find('(')));
  return name.rfind("void ", 0) == 0 ? name.substr(5) : name;
}

std::vector<Counter> summarise(const Counts& counts) {
  Values values = {};
  for (const auto& [code, each] : counts) add(*code, each, values);
  std::vector<Counter> result;
  for (int i = 0; i < kCounters; ++i) result.push_back({kNames[i], values[i]});
  return result;
}

void print_report(std::FILE* file, const Counts& counts) {
  // By name: an order of its own.
  std::map<std::string, std::pair<const Code*, const std::vector<InstrCounts>*>> by_name;
  for (const auto& [code, each] : counts)
    by_name[kernel_title(code->function->name) + "\n" + code->function->name] = {code, &each};
  Values all = {};
  for (const auto& [key, kernel] : by_name) {
    Values values = {};
    add(*kernel.first, *kernel.second, values);
    add(*kernel.first, *kernel.second, all);
    print(file, "counts of " + key.substr(0, key.find('\n')), values);
  }
  if (by_name.size() != 1) print(file, by_name.empty() ? "no kernel ran" : "counts of all kernels", all);
}

std::string line_counts_csv(const Counts& counts) {
  struct Line {
    uint64_t warps = 0, sectors = 0;
  };
  std::map<std::pair<std::string, int>, Line> lines;
  for (const auto& [code, each] : counts) {
    for (size_t i = 0; i < each.size(); ++i) {
      if (each[i].warps == 0) continue;
      Line& line = lines[{code->function->name, code->instrs[i].statement->line}];
      line.warps += each[i].warps;
      line.sectors += each[i].sectors;
    }
  }
  std::string text = "kernel,ptx_line,warps,sectors\n";
  for (const auto& [where, line] : lines) {
    text += where.first + "," + std::to_string(where.second) + "," + std::to_string(line.warps) + "," +
            std::to_string(line.sectors) + "\n";
  }
  return text;
}

}  // namespace gg::emu
