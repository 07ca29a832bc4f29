// SPDX-License-Identifier: MIT
//
// From options to problems.

#include "common/harness/run/plan.h"

#include "common/harness/base/files.h"
#include "common/harness/base/text.h"
#include "common/harness/problem/shapes.h"
#include "common/harness/run/chapter_forms.h"
#include "common/harness/run/report.h"
#include "common/harness/run/session.h"

namespace gg {
namespace {

// Neither a set nor a problem was chosen.
bool takes_defaults(const Options& options) {
  return options.sets.empty() && !options.one_problem() && options.in_dir.empty();
}

// The forms that a check without a set, a problem or a form of its own goes through.
std::vector<Form> forms_to_check(const Options& options, const Chapter& chapter,
                                 const std::vector<Formats>& types) {
  if (!options.check || !takes_defaults(options) || options.chooses_form) return {};
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

// The sets that a check goes through. On the emulator it tries B of far experts too, with memory
// only where it is touched.
std::vector<std::string> sets_to_check(const Options& options, const Chapter& chapter, bool emulated,
                                       bool far_fits, std::vector<std::string>& left_out) {
  if (!options.sets.empty()) return options.sets;
  std::vector<std::string> sets = default_check_sets(chapter);
  if (!emulated || !takes_defaults(options) || options.shared_b) return sets;
  const std::vector<std::string> far = sets_of(chapter, {"far"});
  if (!far.empty() && !far_fits) {
    left_out.push_back(
        "far left out: address space is limited (ulimit -v), and its experts lie 2^31 elements apart");
  } else {
    sets.insert(sets.end(), far.begin(), far.end());
  }
  return sets;
}

std::vector<std::string> sets_to_time(const Options& options, const Chapter& chapter, bool emulated) {
  if (!options.sets.empty()) return options.sets;
  return emulated && takes_defaults(options) ? default_count_sets(chapter) : default_bench_sets(chapter);
}

void choose_problems(Plan& plan, const Options& options, const Chapter& chapter,
                     const std::vector<Formats>& types, bool emulated, bool far_fits) {
  if (options.check) {
    const auto sets = sets_to_check(options, chapter, emulated, far_fits, plan.left_out);
    plan.to_check = shapes_for(options, chapter, sets, plan.left_out);
  }
  plan.forms = forms_to_check(options, chapter, types);
  if (!options.bench) return;
  // The same sets leave out the same problems, which is said once.
  const bool same = options.check && !takes_defaults(options);
  plan.to_time = same ? plan.to_check
                      : shapes_for(options, chapter, sets_to_time(options, chapter, emulated), plan.left_out);
}

void drop_unused_scales(Plan& plan) {
  Epilogue& epilogue = plan.setup.request.epilogue;
  if (!epilogue.discrete_col_sfd || epilogue.sfd_col) return;
  plan.left_out.push_back("--discrete-col-sfd left out: without --norm-const there are no scales");
  epilogue.discrete_col_sfd = false;
}

// Options that mean nothing on this machine.
void leave_out_options(Plan& plan, const Options& options, bool emulated) {
  if (!options.bench) return;
  const auto leave_out = [&](const std::string& option, bool given, const char* why) {
    if (given) plan.left_out.push_back(option + " left out: " + why);
  };
  leave_out("--peer", emulated && !options.peers.empty(), "libraries run on a GPU only");
  leave_out("--sustained", emulated && options.sustained, "the emulator takes no times");
  leave_out("--csv", emulated && !options.csv.empty(),
            "the emulator counts (--counts-csv), it takes no times");
  leave_out("--counts-csv", !emulated && !options.counts_csv.empty(), "counters come from the emulator");
}

void require_files(const Plan& plan, const Options& options) {
  if (!options.out_dir.empty()) {
    GG_REQUIRE(plan.first().size() == 1,
               "--out wants exactly one problem, these are %zu: use --m, --n and --k, or --in",
               plan.first().size());
    require_directory(options.out_dir, "create it first");
  }
  if (!options.csv.empty()) require_csv(options.csv, kResultColumns);
  if (!options.counts_csv.empty()) require_csv(options.counts_csv, kCountColumns);
}

}  // namespace

Plan plan_of(const Options& options, const Chapter& chapter, const std::vector<Formats>& types, bool emulated,
             bool far_fits) {
  Plan plan{.setup = setup_of(chapter, options)};
  if (!options.in_dir.empty()) {
    plan.given = read_operands(options.in_dir, plan.setup, chapter, options.shared_b, types);
    plan.setup.request = plan.given->request;
    plan.to_check = {plan.given->shape};
  } else {
    choose_problems(plan, options, chapter, types, emulated, far_fits);
  }
  drop_unused_scales(plan);
  leave_out_options(plan, options, emulated);
  require_files(plan, options);
  return plan;
}

}  // namespace gg
