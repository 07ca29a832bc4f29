// SPDX-License-Identifier: MIT
//
// A running cluster takes the work of one that has not started. PTX ISA: "Parallel Synchronization
// and Communication Instructions: clusterlaunchcontrol.try_cancel,
// clusterlaunchcontrol.query_cancel". A request is asynchronous: some time later 16 bytes of answer
// are in shared memory, and 16 bytes count at an mbarrier. The answer is opaque; here its words are
// the first block of the cancelled cluster, x, y and z, and a mark.

#include <algorithm>
#include <optional>

#include "common/emu/core/units/alu.h"
#include "common/emu/core/units/bulk_copy.h"
#include "common/emu/foreign/isa/foreign_forms.h"

namespace gg::emu {
namespace {

constexpr int kAnswerBytes = 16;
constexpr uint32_t kCancelled = 0xC1C0FFE1, kNotCancelled = 0xC1C0FFE0;  // the mark
constexpr uint32_t kUndefined = 0xEEEEEEEE;  // what a query has of a request that was refused

struct Answer {
  uint32_t first[3] = {kUndefined, kUndefined, kUndefined};
  uint32_t mark = kNotCancelled;
};

struct Request {
  AddressOperand to, barrier;
  bool all = false;  // .multicast::cluster::all
};

Answer cancel(const Grid& grid) {
  const int64_t index = grid.cancel_next ? grid.cancel_next() : -1;
  Answer answer;
  if (index < 0) return answer;
  int64_t rest = index;
  for (int i = 0; i < 3; ++i) {
    const int64_t count = grid.launch.grid[i] / grid.launch.cluster[i];
    answer.first[i] = uint32_t(rest % count * grid.launch.cluster[i]);
    rest /= count;
  }
  answer.mark = kCancelled;
  return answer;
}

// One, or with .multicast::cluster::all one in each block of the cluster, at the same offsets.
std::vector<Landing> places_of(Warp& w, const Instr& in, int lane, const Request& f) {
  std::vector<Landing> all = landings(w, in, lane, f.to, f.barrier, 0, kAnswerBytes, kAnswerBytes);
  if (!f.all) return all;
  const Landing own = all[0];
  all.clear();
  for (const auto& block : w.block->cluster->blocks) {
    all.push_back({block.get(), own.offset, {block.get(), own.barrier.offset}});
    use_mbarrier(w, in, lane, all.back().barrier);
  }
  return all;
}

Next try_cancel(Warp& w, const Instr& in, Mask m) {
  const Request& f = *static_cast<const Request*>(in.extra);
  const Grid& grid = *w.block->grid;
  for (Lanes l(m); l; ++l) {
    if (w.block->cluster->no_more_cancels) {
      raise_final(FaultKind::launch, w, in, *l,
                  "a request to cancel a cluster, and this cluster has seen the answer that none was left",
                  "after is_canceled was false, no thread of the cluster may ask again");
    }
    const std::vector<Landing> all = places_of(w, in, *l, f);
    for (const Landing& to : all) check_async_write(w, in, *l, *to.block, to.offset, kAnswerBytes);
    const Issuer who = issue(w, in, *l);
    // The first to be delivered asks; all blocks get the same answer.
    const auto answer = std::make_shared<std::optional<Answer>>();
    for (const Landing& to : all) {
      later(w, [who, to, answer, &grid,
                windows = Windows(*to.block, who, {{to.offset, to.offset + kAnswerBytes}}, true)]() mutable {
        windows.close();
        if (!*answer) *answer = cancel(grid);
        std::memcpy(to.block->shared.bytes.data() + to.offset, &**answer, kAnswerBytes);
        mbarrier_complete(who, to.barrier, kAnswerBytes);
      });
    }
  }
  return Next::go_on;
}

Answer answer_of(Warp& w, const Instr& in, int lane) {
  Answer answer;
  std::memcpy(&answer, w.at<uint8_t>(in.s[0]) + size_t(lane) * kAnswerBytes, kAnswerBytes);
  if (answer.mark != kCancelled && answer.mark != kNotCancelled) {
    raise_final(FaultKind::launch, w, in, lane,
                "the 128 bits are no answer to clusterlaunchcontrol.try_cancel: " + hex(answer.first[0]) +
                    ", " + hex(answer.first[1]) + ", " + hex(answer.first[2]) + ", " + hex(answer.mark),
                "wait at the request's mbarrier, then load all 16 bytes with ld.shared.b128");
  }
  return answer;
}

Next is_cancelled(Warp& w, const Instr& in, Mask m) {
  Outcomes yes = {};
  for (Lanes l(m); l; ++l) {
    yes[*l] = answer_of(w, in, *l).mark == kCancelled;
    if (!yes[*l]) w.block->cluster->no_more_cancels = true;
  }
  put(w, in.d, m, yes);
  return Next::go_on;
}

// Components variant .. variant + count - 1 of the first block's index. Of a refused request they
// are undefined, and compilers may ask for them before they look at is_canceled.
Next first_block(Warp& w, const Instr& in, Mask m) {
  for (Lanes l(m); l; ++l) {
    const Answer answer = answer_of(w, in, *l);
    for (int i = 0; i < in.count; ++i) {
      const int component = in.variant + i;
      if (in.list[i]) w.at<uint32_t>(in.list[i])[*l] = component < 3 ? answer.first[component] : kUndefined;
    }
  }
  return Next::go_on;
}

void decode_try_cancel(Decoder& d) {
  Request f;
  const bool own = d.take("shared::cta");
  const bool known = d.take("async") && d.take("mbarrier::complete_tx::bytes");
  f.all = d.take("multicast::cluster::all");
  const bool type = d.take("b128");
  d.done();
  if (!known || !type) throw Unsupported{"this form of clusterlaunchcontrol.try_cancel"};
  want_operands(d, 2);
  const Space space = own ? Space::shared : Space::generic;
  f.to = take_address_operand(d, d.operand(0), space);
  f.barrier = take_address_operand(d, d.operand(1), space);
  d.extra(f);
  d.instr.run = try_cancel;
}

void decode_query_cancel(Decoder& d) {
  const bool asks = d.take("is_canceled"), vector = d.take("get_first_ctaid");
  const int component = d.take_one({"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"});
  if (int(asks) + int(vector) + int(component >= 0) != 1) throw Unsupported{"this query of an answer"};
  const bool types = d.take(asks ? "pred" : "b32") && (!vector || d.take("v4")) && d.take("b128");
  d.done();
  if (!types) throw Unsupported{"these types of a query"};
  want_operands(d, 2);
  d.instr.s[0] = d.source(1, type_info("b128"));
  if (asks) {
    d.instr.d = d.predicate_destination(d.operand(0));
    d.instr.run = is_cancelled;
    return;
  }
  const std::vector<const Operand*> all = Decoder::elements(d.operand(0));
  if (all.size() != (vector ? 4 : 1)) throw Unsupported{"a vector of another length"};
  std::vector<uint32_t> slots;
  for (const Operand* each : all) slots.push_back(d.destination(*each, type_info("b32")));
  d.instr.list = d.list(slots);
  d.instr.count = uint16_t(all.size());
  d.instr.variant = uint8_t(std::max(component, 0));
  d.instr.run = first_block;
}

void decode_control(Decoder& d) {
  if (d.take("try_cancel")) return decode_try_cancel(d);
  if (d.take("query_cancel")) return decode_query_cancel(d);
  throw Unsupported{"this clusterlaunchcontrol"};
}

}  // namespace

std::vector<Form> cluster_launch_forms() {
  return {{"clusterlaunchcontrol", decode_control, Family::control}};
}

}  // namespace gg::emu
