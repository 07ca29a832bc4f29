// SPDX-License-Identifier: MIT
//
// gg::run without its templates: what happens between the command line and the exit code.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <optional>
#include <thread>

#include "common/harness/base/files.h"
#include "common/harness/base/paths.h"
#include "common/harness/base/text.h"
#include "common/harness/harness.cuh"
#include "common/harness/machine/emulator.h"
#include "common/harness/problem/limits.h"
#include "common/harness/problem/shapes.h"
#include "common/harness/run/chapter_forms.h"
#include "common/harness/run/choices.h"
#include "common/harness/run/counted_sets.h"
#include "common/harness/run/help.h"
#include "common/harness/run/report.h"
#include "common/harness/run/times.h"
#include "common/harness/verify/chain.h"
#include "common/harness/verify/problem_files.h"
#include "common/harness/verify/right_outputs.h"
#include "common/harness/verify/trials.h"

namespace gg {
namespace {

struct Form {
  std::string words;  // "--tile 64x64"
  Setup setup;
  std::vector<Shape> shapes;
};

struct Plan {
  Setup setup;  // what was asked, and what the files of --in say
  std::vector<Shape> to_check, to_time;
  std::unique_ptr<GivenOperands> given;  // of --in
  std::vector<std::string> left_out;     // problems of mixed sets that the chapter does not take
  std::vector<Form> forms;               // each checked on one problem, where no form was chosen

  const std::vector<Shape>& first() const { return to_check.empty() ? to_time : to_check; }
};

// The forms that a check without a set, a problem or a form of its own goes through.
std::vector<Form> forms_to_check(const Options& options, const Chapter& chapter,
                                 const std::vector<Formats>& types) {
  if (!options.check || !options.sets.empty() || options.one_problem() || !options.in_dir.empty() ||
      options.chooses_form)
    return {};
  std::vector<Form> forms;
  std::vector<std::string> left_out;
  const std::string set = chapter.equal_groups ? "smoke_uniform" : "forms";
  for (const std::vector<std::string>& words : forms_of(chapter, types)) {
    const Options of_form = options_of_form(words, chapter, types);
    Form form{join(words, " "), setup_of(chapter, of_form), shapes_for(of_form, chapter, {set}, left_out)};
    if (words[0] != "--tile") form.shapes.resize(1);
    forms.push_back(form);
  }
  return forms;
}

// Whatever can be refused is refused here, before a device is touched.
Plan plan_of(const Options& options, const Chapter& chapter, const std::vector<Formats>& types) {
  const bool chosen = !options.sets.empty();
  const std::vector<std::string> check_sets = chosen ? options.sets : default_check_sets(chapter),
                                 bench_sets = chosen ? options.sets : default_bench_sets(chapter);
  Plan plan;
  plan.setup = setup_of(chapter, options);
  if (!options.in_dir.empty()) {
    plan.given = read_operands(options.in_dir, plan.setup, chapter, options.shared_b, types);
    static_cast<Request&>(plan.setup) = plan.given->request;
    plan.to_check = {plan.given->shape};
  } else {
    if (options.check) plan.to_check = shapes_for(options, chapter, check_sets, plan.left_out);
    plan.forms = forms_to_check(options, chapter, types);
    if (options.bench) {  // what the same sets leave out is said once
      plan.to_time = options.check && check_sets == bench_sets
                         ? plan.to_check
                         : shapes_for(options, chapter, bench_sets, plan.left_out);
    }
  }
  Epilogue& epilogue = plan.setup.epilogue;
  if (epilogue.discrete_col_sfd && !epilogue.sfd_col) {
    plan.left_out.push_back("--discrete-col-sfd left out: without --norm-const there are no scales");
    epilogue.discrete_col_sfd = false;
  }
  if (!options.out_dir.empty()) {
    GG_REQUIRE(plan.first().size() == 1,
               "--out wants exactly one problem, these are %zu: use --m, --n and --k, or --in",
               plan.first().size());
    require_directory(options.out_dir, "create it first");
  }
  if (!options.csv.empty()) require_csv(options.csv, kResultColumns);
  if (!options.counts_csv.empty()) require_csv(options.counts_csv, kCountColumns);
  return plan;
}

// A line on stderr for each problem of a set that is left out, and each option that means nothing
// on this machine.
void say_left_out(const Session& session, const std::vector<std::string>& left_out) {
  const Options& options = session.options;
  const char* id = session.chapter.id;
  for (const std::string& sentence : left_out) std::fprintf(stderr, "%s: %s\n", id, sentence.c_str());
  if (!options.bench) return;
  const auto say = [&](const std::string& option, bool given, const char* why) {
    if (given) std::fprintf(stderr, "%s: %s left out: %s\n", id, option.c_str(), why);
  };
  const bool emulated = session.device.emulated;
  say("--peer", emulated && !options.peers.empty(), "libraries run on a GPU only");
  say("--sustained", emulated && options.sustained, "the emulator takes no times");
  say("--csv", emulated && !options.csv.empty(), "the emulator counts (--counts-csv), it takes no times");
  say("--counts-csv", !emulated && !options.counts_csv.empty(), "counters come from the emulator");
}

// A corner of the largest group of a problem, as a problem of its own: `size` times 256 rows, 256
// columns and a depth of 512 at most.
Shape corner_of(const Shape& shape, const Multiples& multiples, int size) {
  const auto products = [&](int g) { return double(shape.m[size_t(g)]) * shape.n_of(g) * shape.k_of(g); };
  const auto cut = [](int extent, int most, int step) {
    return extent <= most ? extent : std::max(step, most / step * step);
  };
  int largest = 0;
  for (int g = 1; g < shape.groups(); ++g) largest = products(g) > products(largest) ? g : largest;
  Shape corner;
  corner.m = {cut(shape.m[size_t(largest)], 256 * size, multiples.m)};
  corner.n = {cut(shape.n_of(largest), 256 * size, multiples.n)};
  corner.k = {cut(shape.k_of(largest), 512 * size, multiples.k)};
  corner.shared_b = shape.shared_b;
  corner.own_sizes = shape.own_sizes;
  return corner;
}

// Seconds of all cores together for one launch on random data, with the data and the comparison.
// Nothing of the launch is left in the counts.
double emulated_seconds(Session& session, const Shape& shape) {
  const std::clock_t start = std::clock();  // of all threads
  Buffers buffers(*session.machine, session.setup, shape);
  buffers.fill_operands({Fill::Kind::normal, 0, session.bench_seed(), 0});
  correct(session, buffers, [&](cudaStream_t stream) { session.launch(buffers.problem(), stream); });
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  emulator()->reset_counts();
  return seconds;
}

// Useful multiply-adds of this chapter in a second of one core; 0 where it takes no corner of the
// largest problem. Corners get larger until one takes long enough that what a launch costs by
// itself no longer counts: this takes some seconds at most.
double measured_rate(Session& session, const Plan& plan) {
  constexpr int kLargest = 8;
  constexpr double kEnough = 0.5;  // seconds; a corner of twice the size takes eight times as long
  const Setup& setup = session.setup;
  const Steps steps = steps_of(session.chapter, setup.formats, setup.b_layout);
  const Multiples multiples = multiples_of(session.chapter, steps, setup.tile_k);
  const auto less = [](const Shape& x, const Shape& y) { return x.flops() < y.flops(); };
  const Shape& largest = *std::max_element(plan.first().begin(), plan.first().end(), less);
  double rate = 0;
  try {
    for (int size = 1; size <= kLargest; size *= 2) {
      const Shape corner = corner_of(largest, multiples, size);
      refuse_unsupported(corner, session.chapter, setup.tile_k, steps);
      const double seconds = emulated_seconds(session, corner);
      if (seconds > 0) rate = corner.flops() / 2 / seconds;
      if (seconds > kEnough) break;
    }
  } catch (const Error&) {
    return 0;
  }
  return rate;
}

// Before the emulator begins. Problems that do not fit into memory are refused later and
// not counted here.
void say_if_long(Session& session, const Plan& plan) {
  double multiply_adds = 0;
  const auto add = [&](const std::vector<Shape>& shapes, int launches) {
    for (const Shape& shape : shapes) {
      if (unavoidable_bytes(shape, session.setup.formats, session.setup.epilogue) <
          double(session.machine->free_bytes()))
        multiply_adds += launches * shape.flops() / 2;
    }
  };
  add(plan.to_check, launches_of_check(session.setup));
  add(plan.to_time, 1);
  const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  if (!may_take_long(multiply_adds, cores)) return;
  const double rate = launches_are_listed() ? 0 : measured_rate(session, plan);
  const std::vector<std::string> short_sets = default_count_sets(session.chapter);
  const std::string sentence =
      long_emulation(multiply_adds, cores, rate, short_sets.empty() ? "smoke" : short_sets[0]);
  if (!sentence.empty()) std::fprintf(stderr, "%s: %s\n", session.chapter.id, sentence.c_str());
}

// The problem that launches behind each other make. Where their outputs can be the next one's A it
// has as many rows in each group, and a K that N may have.
std::optional<Shape> chained(const Session& session, const Shape& shape) {
  constexpr int kMostK = 256;
  const Chapter& chapter = session.chapter;
  if (!is_small(shape.set) || !has_chain(shape) || shape.m_total() > kMostK * kMostK) return std::nullopt;
  if (!chains_d(session.setup)) return shape;
  const int step =
      std::lcm(std::lcm(chapter.n_multiple, chapter.k_multiple), std::max(1, session.setup.tile_k));
  const int k = (std::min(shape.k_of(0), kMostK) + step - 1) / step * step;
  Shape square = shape;
  square.n = square.k = {k};
  return square;
}

// "prefill, problem 1 of 3": as somebody who waits sees it.
std::string place_of(const std::vector<Shape>& shapes, size_t i) {
  return shapes[i].set +
         format("%sproblem %zu of %zu", shapes[i].set.empty() ? "" : ", ", i + 1, shapes.size());
}

CheckResult result_of_check(Session& session, const Shape& shape, const GivenOperands* given) {
  const CheckOptions options{.seed = session.options.seed,
                             .graph_replay = !session.chapter.reads_offsets_on_host,
                             .neighbours = is_edges(shape.set)};
  Machine& machine = *session.machine;
  CheckResult result = given ? check_given(machine, session.setup, session.launch, *given)
                             : check_problem(machine, session.setup, session.launch, shape, options);
  if (const auto links = chained(session, shape); links && !given && !result.failure) {
    result.failure =
        check_chain(machine, session.setup, session.launch, *links, options.seed, options.graph_replay);
  }
  return result;
}

void add(const CheckResult& result, Tally& tally) {
  ++tally.checked;
  tally.failed += result.failure.has_value();
  tally.worst_ratio = std::max(tally.worst_ratio, result.worst_ratio);
  tally.worst_factor = std::max(tally.worst_factor, result.worst_factor);
}

// The emulator plays all of its device's multiprocessors for the small sets alone: a block without
// a tile takes time too.
void check(Session& session, const std::vector<Shape>& shapes, size_t i, const GivenOperands* given) {
  CheckResult result;
  {
    const Doing now(*session.machine, place_of(shapes, i));
    session.machine->play_at_most(is_small(shapes[i].set) || given ? 0 : kSomeMultiprocessors);
    result = result_of_check(session, shapes[i], given);
    session.machine->play_at_most(0);
  }
  add(result, session.tally);
  print_check(shapes[i], result);
}

void check_form(Session& session, const Form& form) {
  CheckResult all;
  session.machine->play_at_most(kSomeMultiprocessors);
  for (const Shape& shape : form.shapes) {
    const Doing now(*session.machine, form.words);
    const CheckResult result = check_problem(*session.machine, form.setup, session.launch, shape,
                                             {.seed = session.options.seed, .brief = true});
    all.worst_ratio = std::max(all.worst_ratio, result.worst_ratio);
    all.worst_factor = std::max(all.worst_factor, result.worst_factor);
    all.note = result.note;
    all.failure = result.failure;
    if (all.failure) break;
  }
  session.machine->play_at_most(0);
  add(all, session.tally);
  ++session.tally.forms;
  session.tally.failed_forms += all.failure.has_value();
  print_form(form.words, all);
}

// On the emulator a check tries B of far experts too, with memory only where it is touched.
void add_far_b(const Session& session, Plan& plan) {
  const Options& options = session.options;
  const bool defaults = options.sets.empty() && !options.one_problem() && !plan.given && !options.shared_b;
  if (plan.to_check.empty() || !defaults) return;
  const std::vector<std::string> sets = sets_of(session.chapter, {"far"});
  if (!sets.empty() && !session.machine->reserves()) {
    plan.left_out.push_back(
        "far left out: address space is limited (ulimit -v), and its experts lie 2^31 elements apart");
    return;
  }
  for (const Shape& shape : shapes_for(options, session.chapter, sets, plan.left_out))
    plan.to_check.push_back(shape);
}

Exit run_problems(const Options& options, const Chapter& chapter, const std::vector<Formats>& types,
                  const Launch& launch) {
  Plan plan = plan_of(options, chapter, types);
  Session session{chapter, options, launch, plan.setup};
  session.device = choose_device(options.device, chapter, options.arguments);
  // A run that only checks leaves its core to others while it waits; one that times should not
  // wake up late.
  if (plan.to_time.empty()) GG_CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
  print_start(session);
  const bool emulated = session.device.emulated;
  session.machine = emulated ? emulator_machine() : gpu_machine();
  if (emulated) add_far_b(session, plan);
  say_left_out(session, plan.left_out);
  if (emulated) {
    emulator()->set_order(options.order_seed, options.order_skew);
    const bool defaults = options.sets.empty() && !options.one_problem();
    if (!plan.to_time.empty() && defaults)
      plan.to_time = shapes_for(options, chapter, default_count_sets(chapter), plan.left_out);
    say_if_long(session, plan);
  }
  if (!options.out_dir.empty()) {
    const Doing now(*session.machine, "the problem of --out");
    write_problem(*session.machine, session.setup, launch, plan.first()[0], plan.given.get(), options.seed,
                  options.out_dir);
  }
  for (size_t i = 0; i < plan.to_check.size(); ++i) check(session, plan.to_check, i, plan.given.get());
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
                           options.tile.m ? TileShape(options.tile) : TileShape{64, 64},
                           options.blocks ? options.blocks : 6);
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
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes makes writing fail, as a full disk does
  const std::vector<Formats> formats = with_outputs(chapter, {inputs.begin(), inputs.end()});
  try {
    const std::string copied = copied_tree_problem(configured_tree());
    GG_REQUIRE(copied.empty(), "%s", copied.c_str());
    const Exit code = run_options(parse_options(argc, argv, chapter, formats), chapter, formats, launch);
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
      throw Error(Exit::cannot_write, "the results could not be written to stdout");
    }
    return int(code);
  } catch (const Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", chapter.id, error.what());
    return int(error.code);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: this problem needs more host memory than the %zu bytes that are free\n",
                 chapter.id, host_machine()->free_bytes());
    return int(Exit::no_memory);
  }
}

}  // namespace gg
