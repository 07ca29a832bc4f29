// SPDX-License-Identifier: MIT
//
// Checks what must be true of registers and of shared memory when a wgmma.mma_async is issued.
// PTX ISA: "Asynchronous Warpgroup Level Matrix Instructions", "wgmma.fence".

#include "common/emu/core/units/wgmma_operation.h"

namespace gg::emu {
namespace {

std::string register_name(const Warp& w, int32_t index) {
  return w.block->grid->launch.code->registers[size_t(index)].name;
}

bool share(const std::vector<int32_t>& x, const std::vector<int32_t>& y) {  // both ascending
  for (auto i = x.begin(), j = y.begin(); i != x.end() && j != y.end();) {
    if (*i == *j) return true;
    ++(*i < *j ? i : j);
  }
  return false;
}

// Registers under way may only be the accumulator of the same shape, or A again.
void check_in_flight(Warp& w, WgmmaState& state, const Instr& in) {
  const WgmmaForm& form = form_of(in);
  const WgmmaState::Of& own = state.of[part_of(w)];
  for (uint64_t number = own.released; number <= own.commits; ++number) {
    for (const WgmmaOperation& earlier : state.group(number).operations[part_of(w)]) {
      const WgmmaForm& other = form_of(*earlier.instr);
      const bool chained = other.n == form.n && other.k == form.k && other.d_slots == form.d_slots;
      if ((!chained && share(other.d_registers, form.d_registers)) ||
          share(other.d_registers, form.a_registers) || share(other.a_registers, form.d_registers)) {
        raise(FaultKind::async_window, w, in, -1,
              "its registers are those of another wgmma that is under way, and not as the accumulator of the "
              "same shape",
              "wait for that one's group first (wgmma.wait_group)", {{&w, earlier.instr, -1, "issued it"}});
        return;
      }
    }
  }
}

}  // namespace

void require_written(Warp& w, const Instr& in, int32_t index, const char* cause) {
  Mask& written = w.registers.written[size_t(index)];
  if (written == kAllLanes) return;
  raise(FaultKind::uninit_register, w, in, __builtin_ctz(~written),
        "register " + register_name(w, index) + " is read and was never written", cause);
  written = kAllLanes;  // allowed: say it once
}

void check_registers(Warp& w, WgmmaState& state, const Instr& in, bool accumulates) {
  const WgmmaForm& form = form_of(in);
  constexpr const char* kCause =
      "an accumulator must be set before it is added to, or scale-d be false for the first product";
  bool in_flight = false, unfenced = false;
  int32_t example = -1;
  const auto look = [&](const std::vector<int32_t>& registers, bool read) {
    for (const int32_t r : registers) {
      const size_t index = size_t(r);
      if (read) require_written(w, in, r, kCause);
      if (!w.registers.in_flight.empty() && w.registers.in_flight[index]) {
        in_flight = true;
      } else if (!state.of[part_of(w)].fenced &&
                 (w.registers.touched.empty() || w.registers.touched[index])) {
        unfenced = true;
        example = r;
      }
    }
  };
  look(form.d_registers, accumulates);
  look(form.a_registers, true);
  if (in_flight) check_in_flight(w, state, in);
  if (unfenced && !was_told(FaultKind::proxy, w, in)) {
    raise(FaultKind::proxy, w, in, -1,
          "register " + register_name(w, example) +
              " was touched by ordinary instructions and no wgmma.fence has followed",
          "wgmma.fence comes before the first wgmma, and again whenever accumulators or fragments of A were "
          "touched since");
  }
}

void check_operands(Warp& w, WgmmaState& state, WgmmaGroup& group, const WgmmaOperation& operation) {
  const Instr& in = *operation.instr;
  const WgmmaForm& form = form_of(in);
  const int part = part_of(w);
  const Footprint& b = state.footprints.of(w, in, "B", operation.b, form.b_shape, 0, form.n);
  const auto a_of = [&](int first, int count) -> const Footprint& {
    return state.footprints.of(w, in, "A", operation.a, form.a_shape, first, count);
  };
  const bool a_in_memory = !form.a_in_registers;
  std::vector<uint64_t> own = b.units;
  if (a_in_memory) unite(own, a_of(part * kWarpRows, kWarpRows).units);
  if (!all_async_readable(w, in, *w.block, b.runs) ||
      (a_in_memory && !all_async_readable(w, in, *w.block, a_of(part * kWarpRows, kWarpRows).runs)))
    for_runs(own, [&](size_t offset, size_t bytes) { check_async_read(w, in, 0, *w.block, offset, bytes); });
  const size_t number = group.operations[part].size();
  const bool first = std::none_of(state.of, state.of + kWarpgroupWarps, [&](const WgmmaState::Of& each) {
    return each.warp != &w && group.operations[part_of(*each.warp)].size() > number;
  });
  if (!first) return;
  if (a_in_memory) unite(own, a_of(0, kWarpgroupWarps * kWarpRows).units);
  group.reader = &in;
  unite(group.units, own);
}

}  // namespace gg::emu
