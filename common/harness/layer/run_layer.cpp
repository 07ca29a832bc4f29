// SPDX-License-Identifier: MIT
//
// A run of a chapter that is a layer.

#include <cstdio>

#include "common/harness/base/csv.h"
#include "common/harness/harness.cuh"
#include "common/harness/layer/layer_check.h"
#include "common/harness/layer/layer_times.h"
#include "common/harness/machine/emulator.h"
#include "common/harness/run/exit_code.h"

namespace gg {
namespace {

// Few tokens, so that a reference on the host takes a second. Rows, columns and experts all differ
// in number, and expert 1 has no rows.
constexpr LayerSizes kSmall = {.tokens = 56, .experts = 5, .top_k = 2, .hidden = 72, .inner = 96};
// Trained on a GPU.
constexpr LayerSizes kTrained = {.tokens = 4096, .experts = 8, .top_k = 2, .hidden = 512, .inner = 256};
// Steps down the slope are so long: chosen by trial.
constexpr float kSmallRate = 1, kRate = 24;

// A small layer's gradients, and with `whole` all else that is checked.
bool check(const LayerProgram& program, Layer& small, const LayerOptions& options, bool emulated,
           bool whole) {
  LayerChecks checks(small);
  std::printf("%s\n", text_of(kSmall).c_str());
  checks.gradients();
  if (!whole) return checks.passed();
  checks.replays();
  checks.differences(options.differences);
  checks.training(emulated && options.steps ? options.steps : 3, kSmallRate);
  if (emulated) return checks.passed();
  Layer large(small.machine(), program, kTrained, options.seed, false);
  large.make_target();
  std::printf("%s\n", text_of(kTrained).c_str());
  LayerChecks more(large);
  more.long_training(options.steps ? options.steps : 50, kRate);
  return checks.passed() && more.passed();
}

Exit run(const Chapter& chapter, const LayerProgram& program, const LayerOptions& options, char** argv) {
  if (!options.csv.empty()) require_csv(options.csv, kLayerColumns);
  if (!options.differences.empty()) require_csv(options.differences, kDifferenceColumns);
  const Device device = choose_device(options.device, chapter, argv);
  const auto machine = device.emulated ? emulator_machine() : gpu_machine();
  say_if_emulator_stands_in(chapter, device);
  std::printf("%s on %s, %s\n", chapter.id, device.name.c_str(),
              (device.emulated ? "order " + options.order() : "CUDA " + device.cuda).c_str());
  if (device.emulated) emulator()->set_order(options.order_seed, options.order_skew);
  // On the emulator so few multiprocessors give a block several tiles.
  machine->play_at_most(8);
  Layer small(*machine, program, kSmall, options.seed, true);
  small.make_target();
  bool right = check(program, small, options, device.emulated, options.check);
  if (right && options.bench && device.emulated) count_layer(small);
  if (right && options.bench && !device.emulated) {
    for (const NamedLayer& each : options.layers)
      right &= time_layer(program, each, options, device, *machine);
  }
  if (!right) {
    std::printf("%s: FAILED\n", chapter.id);
    return Exit::check_failed;
  }
  std::printf("%s: ok%s\n", chapter.id, device.emulated ? ", on the emulator" : "");
  return Exit::ok;
}

void describe(const Chapter& chapter) {
  std::printf("{\"id\": \"%s\", \"title\": \"%s\", \"sets\": [], \"layers\": [", chapter.id, chapter.title);
  const char* comma = "";
  for (const auto& [name, s] : kLayers) {
    std::printf(
        "%s{\"name\": \"%s\", \"tokens\": %d, \"experts\": %d, \"top_k\": %d, \"hidden\": %d, \"inner\": %d}",
        comma, name, s.tokens, s.experts, s.top_k, s.hidden, s.inner);
    comma = ", ";
  }
  std::printf("]}\n");
}

}  // namespace

int run_layer_chapter(int argc, char** argv, const Chapter& chapter, const LayerProgram& program) {
  return exit_code_of(chapter.id, [&] {
    const LayerOptions options = parse_layer_options(argc, argv);
    if (options.help) {
      std::fputs(layer_help(chapter.id, chapter.title).c_str(), stdout);
    } else if (options.describe) {
      describe(chapter);
    } else {
      return run(chapter, program, options, argv);
    }
    return Exit::ok;
  });
}

}  // namespace gg
