// SPDX-License-Identifier: MIT
//
// Frames in local memory, and registers that a function has once however often it is under way.

#include "common/emu/core/units/call_stack.h"

#include <algorithm>
#include <cstring>

#include "common/emu/core/state/undefined.h"

namespace gg::emu {
namespace {

const Code& code_of(const Warp& w) { return *w.block->grid->launch.code; }

size_t bytes_of(const Register& r) { return r.type.kind == 'p' ? 1 : size_t(r.type.bits / 8); }

uint8_t* local_at(Warp& w, int lane, int64_t address) {
  return w.local.data() + size_t(lane) * (w.local.size() / kLanes) + address;
}

// Each thread gets room for that many bytes.
void grow_local(Warp& w, int64_t wanted) {
  const size_t before = w.local.size() / kLanes;
  if (size_t(wanted) <= before) return;
  const size_t bytes = std::max(2 * before, (size_t(wanted) + 15) / 16 * 16);
  std::vector<uint8_t> grown(bytes * kLanes);
  for (size_t lane = 0; lane < kLanes && before; ++lane)
    std::memcpy(grown.data() + lane * bytes, w.local.data() + lane * before, before);
  w.local = std::move(grown);
  local_grown(w, before, bytes);
}

// A value and whether it was written, of each register of the function.
std::vector<uint8_t> save(Warp& w, const CalledFunction& f, int lane) {
  std::vector<uint8_t> saved;
  const Code& code = code_of(w);
  for (int32_t r = f.first_register; r < f.end_register; ++r) {
    const size_t bytes = bytes_of(code.registers[size_t(r)]);
    const uint8_t* from = w.at<uint8_t>(code.register_slots[size_t(r)]) + size_t(lane) * bytes;
    saved.insert(saved.end(), from, from + bytes);
    saved.push_back(w.registers.written[size_t(r)] >> lane & 1);
  }
  return saved;
}
void restore(Warp& w, const CalledFunction& f, int lane, const std::vector<uint8_t>& saved) {
  const Code& code = code_of(w);
  const uint8_t* from = saved.data();
  for (int32_t r = f.first_register; r < f.end_register; ++r) {
    const size_t bytes = bytes_of(code.registers[size_t(r)]);
    std::memcpy(w.at<uint8_t>(code.register_slots[size_t(r)]) + size_t(lane) * bytes, from, bytes);
    Mask& written = w.registers.written[size_t(r)];
    written = (written & ~(Mask(1) << lane)) | Mask(from[bytes]) << lane;
    from += bytes + 1;
  }
}

void point_at(Warp& w, const CalledFunction& f, int lane, int64_t frame) {
  for (const CalledFunction::Address& a : f.addresses) {
    const uint64_t address = uint64_t(frame + a.offset);
    const size_t bytes = size_t(a.bits / 8);
    std::memcpy(w.at<uint8_t>(a.slot) + size_t(lane) * bytes, &address, bytes);
  }
}

void copy(Warp& w, int lane, int64_t from, int64_t to, int64_t bytes) {
  std::memmove(local_at(w, lane, to), local_at(w, lane, from), size_t(bytes));
  copy_undefined(w, lane, uint64_t(from), uint64_t(to), uint64_t(bytes));
}

// Where the next frame of a lane begins.
int64_t free_from(const Code& code, const std::vector<CallStacks::Call>& calls) {
  const int64_t end = calls.empty()
                          ? code.local_bytes
                          : calls.back().frame + code.called[size_t(calls.back().function)].frame_bytes;
  return (end + 15) / 16 * 16;
}

}  // namespace

int32_t enter_call(Warp& w, const Instr& in, int lane, int function, const std::vector<int64_t>& arguments,
                   const std::vector<int64_t>& results) {
  const Code& code = code_of(w);
  const CalledFunction& f = code.called[size_t(function)];
  if (!w.calls) w.calls = std::make_shared<CallStacks>();
  std::vector<CallStacks::Call>& calls = w.calls->lanes[lane];
  std::vector<int64_t>& frames = w.calls->frames[lane];
  frames.resize(code.called.size(), -1);
  CallStacks::Call call;
  call.function = function;
  call.back = in.index + 1;
  call.frame = free_from(code, calls);
  call.before = frames[size_t(function)];
  call.results = results;
  if (call.frame + f.frame_bytes - code.local_bytes > kMostFrames) {
    raise_final(FaultKind::bounds, w, in, lane,
                std::to_string(calls.size() + 1) + " calls under way take more than " +
                    std::to_string(kMostFrames) + " bytes of local memory",
                "a function that calls itself without an end, or too often for a device: "
                "cudaDeviceSetLimit(cudaLimitStackSize, bytes) says what a thread has there");
  }
  grow_local(w, call.frame + f.frame_bytes);
  if (call.before >= 0) call.saved = save(w, f, lane);
  for (int32_t r = f.first_register; r < f.end_register; ++r)
    w.registers.written[size_t(r)] &= ~(Mask(1) << lane);
  for (size_t i = 0; i < arguments.size(); ++i)
    copy(w, lane, arguments[i], call.frame + f.params[i], f.function->params[i].bytes);
  point_at(w, f, lane, call.frame);
  frames[size_t(function)] = call.frame;
  calls.push_back(std::move(call));
  return f.entry;
}

int32_t leave_call(Warp& w, int lane) {
  std::vector<CallStacks::Call>& calls = w.calls->lanes[lane];
  const CallStacks::Call call = std::move(calls.back());
  calls.pop_back();
  const CalledFunction& f = code_of(w).called[size_t(call.function)];
  if (call.before >= 0) {
    restore(w, f, lane, call.saved);
    point_at(w, f, lane, call.before);
  }
  w.calls->frames[lane][size_t(call.function)] = call.before;
  for (size_t i = 0; i < call.results.size(); ++i)
    copy(w, lane, call.frame + f.returns[i], call.results[i], f.function->returns[i].bytes);
  return call.back;
}

}  // namespace gg::emu
