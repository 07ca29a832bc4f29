// SPDX-License-Identifier: MIT
//
// wgmma: four warps multiply matrices in shared memory (A also from registers) while they go on.
// PTX ISA: "Asynchronous Warpgroup Level Matrix Instructions". Each warp has 16 of the 64 rows. The
// sums are there when the first of the four waits for their group (an even seed of the order) or at
// once (an odd one); until a warp's own wait its registers are in flight, and nobody may write the
// shared memory that is read.

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/units/tensor_map_use.h"
#include "common/emu/core/units/wgmma_operation.h"

namespace gg::emu {
namespace {

bool late(const Warp& w) { return w.block->grid->order.late; }

WgmmaState& state_of(Warp& w, const Instr& in, Mask m) {
  if (m != kAllLanes) {
    raise_final(
        FaultKind::diverged, w, in, __builtin_ctz(~m),
        "lanes " + hex(m) + " execute an instruction of a whole warpgroup",
        "the number of threads in a block must be a multiple of 128 here, and none of them may have ended");
  }
  if (w.async.wgmma) return *w.async.wgmma;
  const size_t first = size_t(w.index - part_of(w));
  if (first + kWarpgroupWarps > w.block->warps.size()) {
    raise_final(FaultKind::diverged, w, in, -1,
                "warps " + std::to_string(first) + " to " + std::to_string(first + kWarpgroupWarps - 1) +
                    " make a warpgroup, the block has " + std::to_string(w.block->warps.size()) + " warps",
                "wgmma wants four warps, the first a multiple of four");
  }
  auto state = std::make_shared<WgmmaState>();
  for (size_t i = 0; i < kWarpgroupWarps; ++i) {
    state->of[i].warp = w.block->warps[first + i].get();
    state->of[i].warp->async.wgmma = state;
  }
  return *state;
}

// ---- instructions ----

// The value that all lanes must have.
template <class T>
T uniform(Warp& w, const Instr& in, uint32_t slot, const char* name) {
  const T* values = w.at<T>(slot);
  for (int lane = 1; lane < kLanes; ++lane) {
    if (values[lane] == values[0]) continue;
    raise_final(FaultKind::diverged, w, in, lane,
                std::string(name) + " is " + hex(values[lane]) + " here and " + hex(values[0]) + " in lane 0",
                "descriptors and scale-d must be the same in all threads");
  }
  return values[0];
}

void mark_in_flight(Warp& w, const Instr& in) {
  const WgmmaForm& form = form_of(in);
  if (w.registers.in_flight.empty()) w.registers.in_flight.assign(w.registers.written.size(), 0);
  for (const int32_t r : form.d_registers)
    w.registers.in_flight[size_t(r)] = w.registers.written[size_t(r)] = kAllLanes;
  for (const int32_t r : form.a_registers) w.registers.in_flight[size_t(r)] = kAllLanes;
  w.registers.in_flight_by = &in;
}

Next mma_async(Warp& w, const Instr& in, Mask m) {
  WgmmaState& state = state_of(w, in, m);
  WgmmaState::Of& own = state.of[part_of(w)];
  const WgmmaForm& form = form_of(in);
  for (const int32_t r : form.others)
    require_written(w, in, r, "a variable is used before it has a value on this path");
  WgmmaOperation operation{&in, 0, uniform<uint64_t>(w, in, in.s[1], "the descriptor of B"), false};
  if (!form.a_in_registers) operation.a = uniform<uint64_t>(w, in, in.s[0], "the descriptor of A");
  operation.accumulates = uniform<uint8_t>(w, in, in.s[2], "scale-d") != in.variant;
  WgmmaGroup& group = state.group(own.commits);
  check_registers(w, state, in, operation.accumulates);
  check_operands(w, state, group, operation);
  group.operations[part_of(w)].push_back(operation);
  if (!late(w)) multiply(state, operation, part_of(w), 1);
  mark_in_flight(w, in);
  product_issued(w, in);
  InstrCounts& counts = counts_of(in);
  counts.multiply_adds += uint64_t(kWarpRows * form.n * form.k);
  // B is read once for all four warps.
  counts.shared_bytes += uint64_t((form.a_in_registers ? 0 : kWarpRows * 32) + form.n * 32 / kWarpgroupWarps);
  return Next::go_on;
}

Next fence(Warp& w, const Instr& in, Mask m) {
  WgmmaState& state = state_of(w, in, m);
  state.of[part_of(w)].fenced = true;
  w.registers.touched.assign(w.registers.written.size(), 0);
  return Next::go_on;
}

Next commit_group(Warp& w, const Instr& in, Mask m) {
  WgmmaState& state = state_of(w, in, m);
  WgmmaState::Of& own = state.of[part_of(w)];
  WgmmaGroup& group = state.group(own.commits);
  if (group.windows.empty()) {
    for_runs(group.units, [&](size_t offset, size_t bytes) {
      group.windows.push_back(
          w.block->shared.open({offset, offset + bytes, false, false, &w, group.reader, 0}));
    });
  }
  release(w, group.clock);
  ++own.commits;
  own.fenced = false;
  return Next::go_on;
}

void require_same(const WgmmaState& state, const WgmmaGroup& group, Warp& w, const Instr& in) {
  const auto& mine = group.operations[part_of(w)];
  for (const WgmmaState::Of& each : state.of) {
    const auto& theirs = group.operations[part_of(*each.warp)];
    if (mine == theirs) continue;
    const bool count = mine.size() != theirs.size();
    const size_t at = size_t(
        std::mismatch(mine.begin(), mine.begin() + long(std::min(mine.size(), theirs.size())), theirs.begin())
            .first -
        mine.begin());
    std::vector<Party> others;
    if (at < theirs.size()) others.push_back({each.warp, theirs[at].instr, -1, "issued this one"});
    raise_final(
        FaultKind::diverged, w, in, -1,
        count ? "this warp committed a group of " + std::to_string(mine.size()) + " wgmma, warp " +
                    std::to_string(each.warp->index) + " one of " + std::to_string(theirs.size())
              : "wgmma number " + std::to_string(at) +
                    " of the group is not the same, with the same descriptors and scale-d, as that of warp " +
                    std::to_string(each.warp->index),
        "all four warps of a warpgroup must execute the same wgmma instructions", others);
  }
}

// The groups below `target` are complete: all four warps have committed them.
void complete(WgmmaState& state, uint64_t target, Warp& w, const Instr& in) {
  for (; state.done < target; ++state.done) {
    WgmmaGroup& group = state.group(state.done);
    require_same(state, group, w, in);
    if (late(w)) {
      for (const WgmmaOperation& operation : group.operations[part_of(w)])
        multiply(state, operation, 0, kWarpgroupWarps);
    }
    for (const SharedMemory::Handle window : group.windows) w.block->shared.close(window);
    group.windows.clear();
  }
}

// The warp has its registers back, but for those of groups at `target` or later. Hardware reads
// an operand for the four warps together: whoever has waited knows that the others were past
// their commits too.
void hand_back(WgmmaState& state, uint64_t target, Warp& w) {
  WgmmaState::Of& own = state.of[part_of(w)];
  for (; own.released < target; ++own.released) acquire(w, state.group(own.released).clock);
  w.registers.in_flight.clear();
  w.registers.in_flight_by = nullptr;
  for (uint64_t number = own.released; number - state.first < state.groups.size(); ++number) {
    for (const WgmmaOperation& operation : state.group(number).operations[part_of(w)])
      mark_in_flight(w, *operation.instr);
  }
  uint64_t least = own.released;
  for (const WgmmaState::Of& each : state.of) least = std::min(least, each.released);
  for (; state.first < least; ++state.first) state.groups.pop_front();
}

// Each warp's waits must find the same number of groups committed.
void require_same_wait(WgmmaState& state, Warp& w, const Instr& in) {
  WgmmaState::Of& own = state.of[part_of(w)];
  if (own.waiting) return;  // it is back after waiting
  own.waiting = true;
  const size_t number = own.waits++;
  if (number == state.commits_at_wait.size()) {
    state.commits_at_wait.push_back(own.commits);
  } else if (state.commits_at_wait[number] != own.commits) {
    raise_final(FaultKind::diverged, w, in, -1,
                "this warp has committed " + std::to_string(own.commits) +
                    " groups of wgmma at its wait number " + std::to_string(number + 1) +
                    ", another of the warpgroup had committed " +
                    std::to_string(state.commits_at_wait[number]),
                "all four warps of a warpgroup must execute the same wgmma instructions");
  }
}

Next wait_group(Warp& w, const Instr& in, Mask m) {
  WgmmaState& state = state_of(w, in, m);
  WgmmaState::Of& own = state.of[part_of(w)];
  require_same_wait(state, w, in);
  const uint64_t pending = uint64_t(in.offset),
                 target = std::max(own.released, own.commits - std::min(own.commits, pending));
  if (state.committed_by_all() < target) {
    w.flow.running->ready = [&state, target] { return state.committed_by_all() >= target; };
    w.flow.running->waits_for = [&state, target] {
      std::string text = "waits for the wgmma of its warpgroup;";
      for (const WgmmaState::Of& each : state.of) {
        if (each.commits < target)
          text += " warp " + std::to_string(each.warp->index) + " has committed " +
                  std::to_string(each.commits) + " of " + std::to_string(target) + " groups";
      }
      return text;
    };
    return Next::retry;
  }
  own.waiting = false;
  complete(state, target, w, in);
  hand_back(state, target, w);
  return Next::go_on;
}

// ---- decoding ----

// check_registers asks what may touch registers of A and D, and when (units/wgmma_checks.cpp).
void take_registers(Decoder& d, const Operand& operand, size_t count, bool written,
                    std::vector<uint32_t>& slots, std::vector<int32_t>& registers) {
  if (operand.kind != Operand::Kind::vector || operand.elements.size() != count) {
    throw Unsupported{"a vector other than of " + std::to_string(count) + " registers"};
  }
  for (const Operand& each : operand.elements) {
    if (each.kind != Operand::Kind::reg) throw Unsupported{"an element that is no register"};
    slots.push_back(d.source(each, type_info("b32")));
    if (written) d.destination(each, type_info("b32"));
    registers.push_back(d.frame().first_register + each.reg);
  }
  std::sort(registers.begin(), registers.end());
  if (written && std::adjacent_find(registers.begin(), registers.end()) != registers.end()) {
    throw Unsupported{"an accumulator named twice"};
  }
}

int take_n(Decoder& d, int k) {
  for (int n = 8; n <= 256; n += 8) {
    if (d.take(("m64n" + std::to_string(n) + "k" + std::to_string(k)).c_str())) return n;
  }
  throw Unsupported{"this shape of wgmma for these types"};
}

// +1 or -1: whether the operand is negated.
bool take_scale(Decoder& d, size_t index) {
  const int64_t scale = d.immediate(index);
  if (scale != 1 && scale != -1) throw Unsupported{"a scale other than 1 and -1"};
  return scale == -1;
}
bool take_transpose(Decoder& d, size_t index) {
  const int64_t transpose = d.immediate(index);
  if (transpose != 0 && transpose != 1) throw Unsupported{"a transpose other than 0 and 1"};
  return transpose == 1;
}

void require_types(const std::string& to, const std::string& a, const std::string& b) {
  const bool narrow_type = a == "e4m3" || a == "e5m2";
  const bool inputs =
      narrow_type ? b == "e4m3" || b == "e5m2" : a == b && (a == "bf16" || a == "f16" || a == "tf32");
  const bool output = to == "f32" || (to == "f16" && (narrow_type || a == "f16"));
  if (!inputs || !output) throw Unsupported{"these types of wgmma"};
}

// wgmma.mma_async.sync.aligned.shape.dtype.atype.btype d, a, b-desc, scale-d, scale-a, scale-b
// {, {trans-a,} trans-b};
void decode_mma_async(Decoder& d) {
  const TypeInfo to = d.take_type(), a = d.take_type(), b = d.take_type();
  require_types(to.name, a.name, b.name);
  WgmmaForm form;
  form.a = narrow(a.name);
  form.b = narrow(b.name);
  form.k = 256 / form.a.bits;
  form.n = take_n(d, form.k);
  d.done();
  const bool eight_bits = form.a.bits == 8, sixteen_bits = form.a.bits == 16;
  form.cut = {form.a.mantissa_bits + form.b.mantissa_bits, eight_bits ? 13 : 25, eight_bits ? 14 : 24,
              to.name == "f16"};
  form.a_in_registers = d.operand(1).kind == Operand::Kind::vector;
  const size_t transposes = sixteen_bits ? (form.a_in_registers ? 1 : 2) : 0;
  if (d.operands() != 6 + transposes) {
    throw Unsupported{std::to_string(d.operands()) + " operands where " + std::to_string(6 + transposes) +
                      " belong"};
  }
  take_registers(d, d.operand(0), size_t(form.cut.to_half ? form.n / 4 : form.n / 2), true, form.d_slots,
                 form.d_registers);
  if (form.a_in_registers) {
    take_registers(d, d.operand(1), 4, false, form.a_slots, form.a_registers);
  } else {
    d.instr.s[0] = d.source(1, type_info("b64"));
  }
  d.instr.s[1] = d.source(2, type_info("b64"));
  bool negated = false;
  d.instr.s[2] = d.predicate(d.operand(3), &negated);
  d.instr.variant = negated;
  for (size_t i = 1; i < 4; ++i) {
    if (d.operand(i).kind != Operand::Kind::reg) continue;
    form.others.push_back(d.frame().first_register + d.operand(i).reg);
  }
  form.negate_a = take_scale(d, 4);
  form.negate_b = take_scale(d, 5);
  form.a_shape = {kWarpgroupWarps * kWarpRows, form.k, form.a.bits / 8,
                  transposes == 2 && take_transpose(d, 6)};
  form.b_shape = {form.n, form.k, form.b.bits / 8, transposes > 0 && take_transpose(d, 5 + transposes)};
  d.extra(form);
  d.instr.checks.own = true;
  d.instr.run = mma_async;
}

void decode_wgmma(Decoder& d) {
  if (targets_sm100(*d.code().module)) throw Unsupported{"wgmma for sm_100 and later, which has tcgen05"};
  const int kind = d.take_one({"mma_async", "fence", "commit_group", "wait_group"});
  if (kind < 0 || !d.take("sync") || !d.take("aligned")) throw Unsupported{"this form of wgmma"};
  d.instr.converged = true;
  if (kind == 0) return decode_mma_async(d);
  d.done();
  if (d.operands() != (kind == 3 ? 1u : 0u)) throw Unsupported{"operands of " + d.statement().text};
  if (kind == 3) d.instr.offset = d.immediate(0);
  if (d.instr.offset < 0) throw Unsupported{"a negative number of groups"};
  constexpr Handler kRun[] = {nullptr, fence, commit_group, wait_group};
  d.instr.run = kRun[kind];
}

}  // namespace

std::vector<Form> wgmma_forms() { return {{"wgmma", decode_wgmma, Family::wgmma}}; }

}  // namespace gg::emu
