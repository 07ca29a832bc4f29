// SPDX-License-Identifier: MIT
//
// Liveness by backward data flow over basic blocks, then a linear scan over the stretches of code
// in which each register is live. A lane keeps its own values, so what other lanes do elsewhere
// does not matter.

#include "common/emu/core/decode/liveness.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "common/emu/core/decode/called.h"

namespace gg::emu {

std::vector<int32_t> next_of(const Code& code, int32_t at) {
  const Instr& in = code.instrs[size_t(at)];
  const std::string& opcode = in.statement->opcode;
  const bool returns = in.statement == &end_of_call();  // somewhere
  const bool ends =
      opcode == "exit" || opcode == "trap" || returns || (opcode == "ret" && in.function->entry);
  const bool branches = opcode == "bra" || (opcode == "ret" && !ends);
  std::vector<int32_t> next;
  if (branches) next.push_back(in.target);
  if (opcode == "brx" && in.list) {
    for (int i = 0; i < in.count; ++i) next.push_back(int32_t(in.list[i]));
  }
  const bool always = in.guard.slot == 0 && (ends || branches || opcode == "brx");
  if (!always && at + 1 < int32_t(code.instrs.size())) next.push_back(at + 1);
  return next;
}

namespace {

using Set = std::vector<uint64_t>;  // of registers, one bit each

bool has(const Set& set, int32_t r) { return set[size_t(r) / 64] >> (r % 64) & 1; }
void add(Set& set, int32_t r) { set[size_t(r) / 64] |= 1ull << (r % 64); }
void remove(Set& set, int32_t r) { set[size_t(r) / 64] &= ~(1ull << (r % 64)); }

struct BasicBlock {
  int32_t begin = 0, end = 0;
  std::vector<int> successors;
  Set in, out;
};

std::vector<BasicBlock> blocks_of(const Code& code) {
  const int32_t size = int32_t(code.instrs.size());
  std::vector<char> starts(size_t(size) + 1, 0);
  starts[0] = 1;
  for (int32_t i = 0; i < size; ++i) {
    const std::vector<int32_t> next = next_of(code, i);
    if (next.size() == 1 && next[0] == i + 1) continue;
    starts[size_t(i) + 1] = 1;
    for (const int32_t n : next) {
      if (n < size) starts[size_t(n)] = 1;
    }
  }
  std::vector<BasicBlock> blocks;
  std::vector<int> block_at(size_t(size) + 1, -1);
  for (int32_t i = 0; i < size; ++i) {
    if (starts[size_t(i)]) blocks.push_back({i, i, {}, {}, {}});
    block_at[size_t(i)] = int(blocks.size()) - 1;
    blocks.back().end = i + 1;
  }
  for (BasicBlock& b : blocks) {
    for (const int32_t n : next_of(code, b.end - 1)) {
      if (n < size) b.successors.push_back(block_at[size_t(n)]);
    }
  }
  return blocks;
}

// From what is live behind an instruction to what is live before it. A guarded write leaves the old
// value in some lanes.
void step_back(const Instr& in, Set& live) {
  if (in.guard.slot == 0) {
    for (const int32_t* r = in.writes; *r >= 0; ++r) remove(live, *r);
  } else {
    for (const int32_t* r = in.writes; *r >= 0; ++r) add(live, *r);
  }
  for (const int32_t* r = in.reads; *r >= 0; ++r) add(live, *r);
}

// Registers times blocks, and words times blocks times passes, that are worth the time: a
// kernel of 50000 registers, 5000 blocks and 15 passes. Larger ones, which nobody has seen,
// go without sharing.
constexpr size_t kMostBits = size_t(1) << 28, kMostSteps = size_t(1) << 26;

// False if it takes too long: passes are as many as blocks in code that jumps back again and again.
bool flow(const Code& code, std::vector<BasicBlock>& blocks, size_t words) {
  for (BasicBlock& b : blocks) b.in.assign(words, 0), b.out.assign(words, 0);
  size_t steps = 0;
  for (bool changed = true; changed;) {
    changed = false;
    steps += blocks.size() * words + code.instrs.size();
    if (steps > kMostSteps) return false;
    for (size_t i = blocks.size(); i-- > 0;) {
      BasicBlock& b = blocks[i];
      for (const int s : b.successors) {
        for (size_t w = 0; w < words; ++w) b.out[w] |= blocks[size_t(s)].in[w];
      }
      Set live = b.out;
      for (int32_t at = b.end; at-- > b.begin;) step_back(code.instrs[size_t(at)], live);
      if (live != b.in) {
        b.in = std::move(live);
        changed = true;
      }
    }
  }
  return true;
}

bool is_entry(const Code& code, int32_t at) {
  const auto begins = [at](const CalledFunction& f) { return f.entry == at; };
  return at == code.entry || std::any_of(code.called.begin(), code.called.end(), begins);
}

struct Stretch {
  int32_t begin = INT32_MAX, end = -1;
  void cover(int32_t at) {
    begin = std::min(begin, at);
    end = std::max(end, at);
  }
};

bool some(const int32_t* list, const Set& set) {
  for (; *list >= 0; ++list) {
    if (has(set, *list)) return true;
  }
  return false;
}

// The memories, one bit each, that an instruction may go to and copies without a value can lie in.
uint8_t memories(const Instr& in) {
  return in.space == Space::shared ? 1 : in.space == Space::local || in.space == Space::param ? 2 : 3;
}

// Registers that get what a doubtful one is copied to are doubtful too, through memory as well: the
// answer is which memories hold such values.
uint8_t hand_on(const Code& code, Set& doubtful) {
  uint8_t memory = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instr& in : code.instrs) {
      if (!in.carry) continue;
      const Carry& c = *in.carry;
      bool hands = c.from.empty() && (memory & memories(in));
      for (const int32_t r : c.from) hands = hands || (r >= 0 && has(doubtful, r));
      if (!hands) continue;
      if (c.to.empty()) {  // a store
        changed = changed || (memory | memories(in)) != memory;
        memory |= memories(in);
      }
      for (const int32_t r : c.to) {
        if (r < 0 || has(doubtful, r)) continue;
        add(doubtful, r);
        changed = true;
      }
    }
  }
  return memory;
}

}  // namespace

void find_straight(Code& code) {
  if (code.instrs.empty()) return;
  const size_t count = code.registers.size(), words = (count + 63) / 64;
  std::vector<BasicBlock> blocks = blocks_of(code);
  if (blocks.size() * count > kMostBits || !flow(code, blocks, words)) return;
  // A register that is live at the start, of the kernel or of a called function, may be read before
  // it is written.
  Set doubtful(words);
  for (const BasicBlock& b : blocks) {
    if (!is_entry(code, b.begin)) continue;
    for (size_t w = 0; w < words; ++w) doubtful[w] |= b.in[w];
  }
  const uint8_t memory = hand_on(code, doubtful);
  Set asked = doubtful;
  for (Instr& in : code.instrs) {
    const bool loads = in.carry && in.carry->from.empty() && (memory & memories(in));
    in.checks.asks = in.checks.own || loads || some(in.reads, doubtful);
    for (const int32_t* r = in.reads; in.checks.asks && *r >= 0; ++r) add(asked, *r);
    for (const int32_t* r = in.writes; in.checks.own && *r >= 0; ++r) add(asked, *r);
    in.checks.straight = in.guard.slot == 0 && !in.converged && !in.checks.asks;
  }
  for (Instr& in : code.instrs) in.checks.records = some(in.writes, asked);
}

std::vector<int> share_registers(const Code& code) {
  const size_t count = code.registers.size(), words = (count + 63) / 64;
  std::vector<int> place(count);
  if (code.instrs.empty()) return place;
  std::vector<BasicBlock> blocks = blocks_of(code);
  if (blocks.size() * count > kMostBits || !flow(code, blocks, words)) {
    std::iota(place.begin(), place.end(), 0);
    return place;
  }
  std::vector<Stretch> stretches(count);
  for (const BasicBlock& b : blocks) {
    for (size_t r = 0; r < count; ++r) {
      if (has(b.in, int32_t(r))) stretches[r].cover(b.begin);
      if (has(b.out, int32_t(r))) stretches[r].cover(b.end - 1);
    }
    for (int32_t at = b.begin; at < b.end; ++at) {
      const Instr& in = code.instrs[size_t(at)];
      for (const int32_t* list : {in.reads, in.writes}) {
        for (const int32_t* r = list; *r >= 0; ++r) {
          stretches[size_t(*r)].cover(at);
          // An asynchronous operation writes its registers later than the instruction stands: they
          // share with nobody.
          if (in.statement->opcode == "wgmma") stretches[size_t(*r)] = {0, INT32_MAX};
        }
      }
    }
  }
  std::vector<size_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return stretches[a].begin < stretches[b].begin; });
  std::map<int, std::multimap<int32_t, int>> in_use, unused;  // by size: end of stretch -> place
  int next = 0, function = -1;
  std::vector<int> functions(count, -1);
  for (size_t f = 0; f < code.called.size(); ++f) {
    for (int32_t r = code.called[f].first_register; r < code.called[f].end_register; ++r)
      functions[size_t(r)] = int(f);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return functions[a] < functions[b]; });
  for (const size_t r : order) {
    const int bits = code.registers[r].type.bits;
    if (functions[r] != function) {  // whose registers keep their values while others are called
      function = functions[r];
      in_use.clear();
      unused.clear();
    }
    auto& used = in_use[bits];
    auto& spare = unused[bits];
    while (!used.empty() && used.begin()->first < stretches[r].begin) {
      spare.insert({0, used.begin()->second});
      used.erase(used.begin());
    }
    if (spare.empty()) {
      place[r] = next++;
    } else {
      place[r] = spare.begin()->second;
      spare.erase(spare.begin());
    }
    used.insert({stretches[r].end, place[r]});
  }
  return place;
}

}  // namespace gg::emu
