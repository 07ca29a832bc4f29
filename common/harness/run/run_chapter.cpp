// SPDX-License-Identifier: MIT
//
// gg::run without its templates: what happens between the command line and the exit code.

#include <cstdio>
#include <utility>

#include "common/harness/base/text.h"
#include "common/harness/harness.cuh"
#include "common/harness/machine/emulator.h"
#include "common/harness/run/checks.h"
#include "common/harness/run/choices.h"
#include "common/harness/run/counted_sets.h"
#include "common/harness/run/estimate.h"
#include "common/harness/run/exit_code.h"
#include "common/harness/run/help.h"
#include "common/harness/run/plan.h"
#include "common/harness/run/report.h"
#include "common/harness/run/times.h"

namespace gg {
namespace {

// Prints on stderr how this run differs from what was asked for.
void print_notes(const Chapter& chapter, const Device& device, const Plan& plan) {
  say_if_emulator_stands_in(chapter, device);
  for (const std::string& sentence : plan.left_out)
    std::fprintf(stderr, "%s: %s\n", chapter.id, sentence.c_str());
}

Exit run_problems(const Options& options, const Chapter& chapter, const std::vector<Formats>& types,
                  const Launch& launch) {
  // The device comes first: where it is the emulator, the program may have to start again. Bad
  // input is refused where there is no device, too.
  Device device = find_device(options.device, chapter, options.arguments);
  const bool usable = device.unusable.empty(), emulated = usable && device.emulated;
  std::unique_ptr<Machine> machine = !usable ? nullptr : emulated ? emulator_machine() : gpu_machine();
  const Plan plan = plan_of(options, chapter, types, emulated, machine && machine->reserves());
  if (!usable) throw Error(Exit::no_device, device.unusable);
  // A run that only checks leaves its core to others while it waits; one that times should not
  // wake up late.
  if (plan.to_time.empty()) GG_CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
  Session session{chapter, options, launch, plan.setup, std::move(device), std::move(machine)};
  print_notes(chapter, session.device, plan);
  print_start(session);
  if (emulated) {
    emulator()->set_order(options.order_seed, options.order_skew);
    say_if_long(session, plan);
  }
  if (!options.out_dir.empty()) {
    const Doing now(*session.machine, "the problem of --out");
    write_problem(*session.machine, session.setup, launch, plan.first()[0], plan.given.get(), options.seed,
                  options.out_dir);
  }
  for (size_t i = 0; i < plan.to_check.size(); ++i) check_shape(session, plan.to_check, i, plan.given.get());
  for (const Form& form : plan.forms) check_form(session, form);
  if (emulated) {
    count_sets(session, plan.to_time);
  } else if (!plan.to_time.empty()) {
    Times times(session, gpu_stopwatch(), read_roof(roof_path(), session.device.name));
    for (const Shape& shape : plan.to_time) options.tune ? times.tune(shape) : times.time(shape);
  }
  print_end(session);
  return session.tally.failed > 0 ? Exit::check_failed : Exit::ok;
}

// The problems of --set or --m, --n and --k; the worked example of chapter 04 if there are neither.
void print_schedule(const Options& options, const Chapter& chapter) {
  std::vector<Shape> shapes = {{{192, 256}, {320, 448}, {128, 192}, "worked"}};
  if (options.one_problem() || !options.sets.empty()) {
    std::vector<std::string> left_out;
    shapes = shapes_for(options, chapter, options.sets, left_out);
  }
  for (const Shape& shape : shapes) {
    if (shapes.size() > 1) std::printf("%s\n", shape.describe().c_str());
    std::vector<int> sizes;
    for (int g = 0; g < shape.groups(); ++g)
      sizes.insert(sizes.end(), {shape.m[size_t(g)], shape.n_of(g), shape.k_of(g)});
    chapter.print_schedule(sizes.data(), shape.groups(),
                           options.request.tile.m ? TileShape(options.request.tile) : TileShape{64, 64},
                           options.request.blocks ? options.request.blocks : 6);
  }
}

// Does what the options ask for, without the handling of errors.
Exit run_options(const Options& options, const Chapter& chapter, const std::vector<Formats>& formats,
                 const Launch& launch) {
  if (options.help) {
    std::fputs(help_text(chapter, formats).c_str(), stdout);
  } else if (options.describe) {
    std::fputs(describe_text(chapter, formats).c_str(), stdout);
  } else if (options.print_schedule) {
    print_schedule(options, chapter);
  } else {
    return run_problems(options, chapter, formats, launch);
  }
  return Exit::ok;
}

}  // namespace

int run_chapter(int argc, char** argv, const Chapter& described, const List<Formats>& inputs,
                void (*launch)(const Problem& problem, cudaStream_t stream)) {
  Chapter chapter = described;
  chapter.sets.push_back("huge_b");  // every chapter takes it
  if (!chapter.equal_groups) chapter.sets.push_back("forms");
  if (has(chapter.options, "shared-b")) chapter.sets.push_back("far");  // B's stride is an argument
  const std::vector<Formats> formats = with_outputs(chapter, {inputs.begin(), inputs.end()});
  return exit_code_of(chapter.id, [&] {
    return run_options(parse_options(argc, argv, chapter, formats), chapter, formats, launch);
  });
}

}  // namespace gg
