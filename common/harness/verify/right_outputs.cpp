// SPDX-License-Identifier: MIT
//
// The judge of each operator.

#include "common/harness/verify/right_outputs.h"

#include "common/harness/verify/epilogue_judge.h"
#include "common/harness/verify/product.h"

namespace gg {
namespace {

struct Kind {
  std::unique_ptr<Judge> (*judge)(Machine& machine, const Buffers& buffers, uint64_t seed);
  int launches;  // of a check: its trials and, of an epilogue, three variants
  bool whole;    // all outputs of a problem of any size are compared, not a sample
};
// Here alone the operator decides how a launch is checked.
Kind kind_of(Operator op) {
  return op == Operator::gemm ? Kind{product_judge, 4, true} : Kind{epilogue_judge, 8, false};
}

}  // namespace

std::unique_ptr<Judge> judge_of(Machine& machine, const Buffers& buffers, uint64_t seed) {
  return kind_of(buffers.setup().request.epilogue.op).judge(machine, buffers, seed);
}
int launches_of_check(const Setup& setup) { return kind_of(setup.request.epilogue.op).launches; }
bool compares_all(const Setup& setup) { return kind_of(setup.request.epilogue.op).whole; }

bool right_outputs(Machine& machine, const Buffers& buffers, uint64_t seed) {
  return judge_of(machine, buffers, seed)->compare({}).failures() == 0;
}

bool right_on_random_data(Machine& machine, const Buffers& buffers, uint64_t seed,
                          const std::function<void()>& run) {
  buffers.poison(0xFF);
  run();
  return right_outputs(machine, buffers, seed);
}

bool right_in_sets(Machine& machine, const BufferSets& sets, int count, const std::function<void()>& run) {
  for (int i = 0; i < count; ++i) sets[size_t(i)]->poison(0xFF);
  run();
  for (int i = 0; i < count; ++i) {
    const std::unique_ptr<Judge> judge = judge_of(machine, *sets[size_t(i)], uint64_t(i));
    if (judge->compare({.by_machine_alone = true}).failures() > 0) return false;
  }
  return true;
}

Failure why_wrong_on_random_data(Machine& machine, const Buffers& buffers, uint64_t seed) {
  return judge_of(machine, buffers, seed)->why_wrong();
}

}  // namespace gg
