// SPDX-License-Identifier: MIT
//
// --help and --describe.

#include "common/harness/run/help.h"

#include <algorithm>
#include <numeric>

#include "common/harness/base/text.h"
#include "common/harness/problem/limits.h"
#include "common/harness/problem/shapes.h"
#include "common/harness/run/chapter_forms.h"
#include "common/harness/run/choices.h"
#include "common/harness/run/options.h"

namespace gg {

static const char* operator_name(Operator op) {
  constexpr const char* kNames[] = {"gemm", "quant", "glu", "glu_hadamard", "glu_gradient"};
  return kNames[size_t(op)];
}

// The layouts of B that a chapter takes in these types: 4-bit elements lie along K.
static std::vector<BLayout> layouts_of(const Chapter& chapter, const Formats& formats) {
  std::vector<BLayout> layouts(chapter.b_layouts.begin(), chapter.b_layouts.end());
  if (layouts.empty()) layouts = {BLayout::kn};
  if (format_info(formats.b).bits < 8) std::erase(layouts, BLayout::kn);
  return layouts;
}

static Multiples multiples_in(const Chapter& chapter, const Formats& formats, BLayout layout) {
  return multiples_of(chapter, steps_of(chapter, {.formats = formats, .b_layout = layout}));
}

// Multiples that suit all types, B in the layout that comes first.
static Multiples common_multiples(const Chapter& chapter, const std::vector<Formats>& formats) {
  Multiples all{chapter.m_multiple, 1, 1};
  for (const Formats& each : formats) {
    const Multiples one = multiples_in(chapter, each, layouts_of(chapter, each)[0]);
    all.n = std::lcm(all.n, one.n);
    all.k = std::lcm(all.k, one.k);
  }
  return all;
}

// Types, and layouts of B, that take more than all of them do.
static std::string wider_limits_help(const Chapter& chapter, const std::vector<Formats>& formats) {
  const Multiples all = common_multiples(chapter, formats);
  std::string text;
  for (const Formats& each : formats) {
    for (const BLayout layout : layouts_of(chapter, each)) {
      const Multiples one = multiples_in(chapter, each, layout);
      if (one.k == all.k && one.n == all.n) continue;
      const std::string of_b = chapter.b_layouts.size() > 1 ? format(", B %s", layout_name(layout)) : "";
      text += format("  %s%s: K a multiple of %d, N of %d.\n", format_names({each})[0].c_str(), of_b.c_str(),
                     one.k, one.n);
    }
  }
  return text.empty() ? "" : "That holds for every type. By type:\n" + text;
}

static std::string limits_help(const Chapter& chapter, const std::vector<Formats>& formats) {
  const Multiples all = common_multiples(chapter, formats);
  std::string text = format("Limits: K a multiple of %d, N a multiple of %d", all.k, all.n);
  if (all.m > 1) text += format(", M a multiple of %d", all.m);
  if (*chapter.multiple_reason) text += format(": %s", chapter.multiple_reason);
  text += format("; %sat most %d groups", chapter.equal_groups ? "equal groups, " : "", most_groups(chapter));
  text += format(" and %d rows in all", kMostRows);
  if (chapter.most_n < INT32_MAX) text += format(", N at most %d", chapter.most_n);
  if (chapter.most_m < INT32_MAX) text += format(", M at most %d", chapter.most_m);
  if (chapter.most_b_rows < INT64_MAX)
    text += format(", groups times K at most %lld", static_cast<long long>(chapter.most_b_rows));
  for (const OwnNumber& own : chapter.numbers) {
    if (own.divides_k) text += format("; with --%s T, K a multiple of T", own.name);
  }
  return text + ".\n" + wider_limits_help(chapter, formats);
}

static std::string epilogue_help(const Chapter& chapter) {
  const EpilogueChoices& e = chapter.epilogue;
  if (e.op == Operator::gemm) return "";
  std::string text = e.op == Operator::quant          ? ""
                     : e.op == Operator::glu_gradient ? "C and D have 2N columns.\n"
                                                      : "D has N/2 columns.\n";
  if (!e.c_types.empty()) text += format("Types of C: %s.\n", join(type_names(e.c_types), ", ").c_str());
  if (!e.bias_types.empty())
    text += format("Types of the bias: %s.\n", join(type_names(e.bias_types), ", ").c_str());
  if (!e.activations.empty())
    text += format("Activations: %s.\n", join(activation_names(chapter), ", ").c_str());
  return text;
}

std::string help_text(const Chapter& chapter, const std::vector<Formats>& formats) {
  std::string text = format(
      "%s: %s\n\nWithout options: check the sets %s, then time %s, or on the emulator count %s.\n\n",
      chapter.id, chapter.title, join(default_check_sets(chapter), ", ").c_str(),
      join(default_bench_sets(chapter), ", ").c_str(), join(default_count_sets(chapter), ", ").c_str());
  if (chapter.product == Product::weight_gradient)
    text +=
        "D [G,K,N]: of each group's rows of A [M,K] and B [M,N] the product A^T B; 0 for a group without "
        "rows.\n\n";
  for (const Option& option : options_of(chapter)) {
    const bool of_gradient = chapter.product == Product::weight_gradient && std::string(option.name) == "k";
    text += format("  %-28s %s\n", format("--%s %s", option.name, option.value.c_str()).c_str(),
                   of_gradient ? "columns of A, rows of each group's D" : option.help);
  }
  text += format("\nElement types: %s.\n", join(format_names(formats), "; ").c_str());
  if (!chapter.tiles.empty()) text += format("Tiles: %s.\n", join(tile_names(chapter), ", ").c_str());
  if (!cluster_names(chapter).empty())
    text += format("Tiles and clusters: %s.\n", join(tile_and_cluster_names(chapter), ", ").c_str());
  if (!chapter.b_layouts.empty())
    text += format("Layouts of B: %s.\n", join(b_layout_names(chapter), ", ").c_str());
  text += limits_help(chapter, formats);
  text += epilogue_help(chapter);
  if (!chapter.ideas.empty()) text += "\nIdeas that --off takes:\n";
  for (const Idea& idea : chapter.ideas) text += format("  %-14s %s\n", idea.name, idea.help);
  text += "\nSets:\n";
  for (const ShapeSet& set : shape_sets()) {
    if (has(chapter.sets, set.name)) text += format("  %-14s %s\n", set.name, set.what);
  }
  text +=
      "\nExit codes: 0 passed, 1 a check failed, 2 bad input, 3 device error, 4 cannot write, 5 no memory, "
      "77 no device.\n";
  return text;
}

static bool four_bits(const std::vector<Formats>& formats) {
  return std::any_of(formats.begin(), formats.end(),
                     [](const Formats& each) { return format_info(each.a).bits == 4; });
}

static std::string tensor_text(const char* name, const std::string& shape, const char* type,
                               const std::string& layout, const std::string& when = "") {
  const std::string also = when.empty() ? "" : format(", \"when\": \"%s\"", when.c_str());
  return format("    {\"name\": \"%s\", \"shape\": \"%s\", \"type\": \"%s\", \"layout\": \"%s\"%s}", name,
                shape.c_str(), type, layout.c_str(), also.c_str());
}

// Operands and results of an epilogue, and when they are there.
static void add_epilogue_tensors(const Chapter& chapter, std::vector<std::string>& tensors) {
  const EpilogueChoices& e = chapter.epilogue;
  if (e.op == Operator::gemm) return;
  const auto add = [&](const char* name, const char* shape, const char* type, const std::string& layout,
                       const std::string& when) {
    tensors.push_back(tensor_text(name, shape, type, layout, when));
  };
  if (chapter.discrete_weights) {
    const bool nk = chapter.b_layouts.empty() || chapter.b_layouts[0] == BLayout::nk;
    add("b_00000 ...", nk ? "[N,K]" : "[K,N]", "in", "one file per group, in place of b",
        "with --weights discrete");
    add("sfb_00000 ...", "[ceil(N/128),ceil(K/block/4),32,4,4]", "u8", "one file per group, in place of sfb",
        "with --weights discrete");
  }
  add("alpha", "[G]", "f32", "a factor of each group's products", "always");
  add("prob", "[M]", "f32", "a factor of each row", "always");
  if (!e.bias_types.empty()) {
    add("bias", "[G,N]", join(type_names(e.bias_types), " or ").c_str(), "row-major",
        "with --bias; with --in, if the file is there");
  }
  if (!e.c_types.empty())
    add("c", "[M,N]", join(type_names(e.c_types), " or ").c_str(), "row-major; 32 columns of gate, 32 of up",
        "always, out");
  if (e.op == Operator::glu_gradient) {
    add("c", "[M,2N]", "bf16", "row-major; 32 columns of gate, 32 of up, as the forward pass made them",
        "always");
    add("dprob", "[M]", "f32", "the gradient of prob", "always, out");
    add("dbias", "[G,2N]", "f32", "the sum of each group's rows of d before it is rounded; 0 for no rows",
        "always, out");
  }
  if (e.op == Operator::glu_hadamard)
    add("hadamard", "[16,16]", "bf16", "row-major; D = X * W^T in each 16 columns",
        "always; with --in the Sylvester matrix if there is no file");
  if (e.amax)
    add("amax", "[G]", "f32", "the largest magnitude of each group; -inf of an empty one", "always, out");
  const std::string scaled =
      e.norm_const > 0 ? "always" : "with --norm-const, or with --in if norm_const is there";
  const std::string atoms = "atoms of 128 rows x 4 blocks of 32 along ";
  if (e.sfd_row) {
    const std::string otherwise =
        format("; %g where neither --norm-const nor --in gives one", double(e.norm_const));
    add("norm_const", "[1]", "f32", "a factor of all scales", e.norm_const > 0 ? scaled + otherwise : scaled);
    add("sfd_row", "[ceil(M/128),ceil(N/32/4),32,4,4]", "u8", atoms + "N: UE8M0 scales of d",
        scaled + ", out");
  }
  if (e.sfd_col) {
    add("d_col", "[M,N]", "d", "row-major, as d", scaled + ", out");
    add("sfd_col", "[ceil(N/128),ceil(M/32/4),32,4,4]", "u8",
        atoms + "M: UE8M0 scales of d_col; with --discrete-col-sfd the atoms of each expert together",
        scaled + ", out");
  }
}

// Names the product of a chapter that computes another one than A B.
static std::string product_text(const Chapter& chapter) {
  return chapter.product == Product::forward ? "" : "  \"product\": \"weight_gradient\",\n";
}

static std::string epilogue_text(const Chapter& chapter) {
  const EpilogueChoices& e = chapter.epilogue;
  if (e.op == Operator::gemm) return "";
  const auto quoted = [](const std::vector<std::string>& names) {
    return names.empty() ? std::string("[]") : "[\"" + join(names, "\", \"") + "\"]";
  };
  List<Format> discrete;
  for (const Format type : e.bias_types) {
    if (chapter.discrete_weights && type != Format::f32) discrete.push_back(type);
  }
  return format(
      "  \"epilogue\": {\"operator\": \"%s\", \"c\": %s, \"bias\": %s, \"bias_with_discrete_weights\": %s, "
      "\"act\": %s},\n",
      operator_name(e.op), quoted(type_names(e.c_types)).c_str(), quoted(type_names(e.bias_types)).c_str(),
      quoted(type_names(discrete)).c_str(), quoted(activation_names(chapter)).c_str());
}

// The limits of a chapter in these types, with the multiples of N by the layout of B.
static std::string format_text(const Chapter& chapter, const Formats& formats) {
  const BlockScaling scaling = formats.scaling();
  std::string text =
      format("    {\"in\": \"%s\", \"d\": \"%s\"", formats.name(), format_info(formats.d).name);
  if (formats.has_scales())
    text += format(", \"element\": \"%s\", \"scale\": \"%s\", \"block\": %d",
                   format_info(scaling.element).name, format_info(scaling.scale).name, scaling.block);
  std::vector<std::string> multiples;
  for (const BLayout layout : layouts_of(chapter, formats)) {
    const Multiples one = multiples_in(chapter, formats, layout);
    if (multiples.empty()) text += format(", \"k_multiple\": %d", one.k);
    multiples.push_back(format("\"%s\": %d", layout_name(layout), one.n));
  }
  text += format(", \"n_multiple\": {%s}", join(multiples, ", ").c_str());
  if (chapter.epilogue.sfd_row)
    text += format(", \"norm_const\": %s", format_info(formats.d).bits == 8 ? "true" : "false");
  return text + "}";
}

// {"name": "tile-k", "values": [16, 64], "divides_k": true}
static std::string numbers_text(const Chapter& chapter) {
  std::vector<std::string> all;
  for (const OwnNumber& own : chapter.numbers)
    all.push_back(format("{\"name\": \"%s\", \"values\": [%s], \"divides_k\": %s}", own.name,
                         join(number_names(own), ", ").c_str(), own.divides_k ? "true" : "false"));
  return join(all, ", ");
}

// K and N by type are in "formats"; here, what all types take.
static std::string limits_text(const Chapter& chapter, const std::vector<Formats>& formats) {
  const Multiples all = common_multiples(chapter, formats);
  constexpr const char* kOwnSizes[] = {"never", "always", "when listed"};
  return format(
      "\"k_multiple\": %d, \"n_multiple\": %d, \"m_multiple\": %d, \"equal_groups\": %s, \"groups\": %d, "
      "\"rows\": %d, \"rows_of_a_group\": %d, \"n\": %d, \"groups_times_k\": %lld, "
      "\"own_sizes\": \"%s\"",
      all.k, all.n, all.m, chapter.equal_groups ? "true" : "false", most_groups(chapter), kMostRows,
      std::min(chapter.most_m, kMostRows), chapter.most_n,
      static_cast<long long>(std::min<int64_t>(chapter.most_b_rows, int64_t(kMostGroups) * INT32_MAX)),
      kOwnSizes[size_t(chapter.own_sizes)]);
}

std::string describe_text(const Chapter& chapter, const std::vector<Formats>& formats) {
  const auto quoted = [](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "\"" : ", \"") + word + "\"";
    return "[" + text + "]";
  };
  const char* arch = chapter.arch == Arch::sm_80 ? "80" : chapter.arch == Arch::sm_90a ? "90a" : "100a";
  std::vector<std::string> types;
  for (const Formats& each : formats) types.push_back(format_text(chapter, each));
  std::vector<std::string> forms;
  for (const std::vector<std::string>& words : forms_of(chapter, formats))
    forms.push_back("\"" + join(words, " ") + "\"");
  const bool nk = !chapter.b_layouts.empty() && chapter.b_layouts[0] == BLayout::nk;
  std::string b_layout = nk ? "K contiguous" : "N contiguous";
  if (chapter.b_layouts.size() > 1) {
    b_layout += nk ? "; with --b-layout kn [K,N], N contiguous" : "; with --b-layout nk [N,K], K contiguous";
  }
  const bool shared = has(chapter.options, "shared-b"), wide = has(chapter.options, "offsets");
  std::vector<std::string> tensors;
  const auto tensor = [&](const char* name, const char* shape, const char* type, const char* layout) {
    tensors.push_back(tensor_text(name, shape, type, layout));
  };
  if (chapter.own_sizes != OwnSizes::never) {
    tensor("a_00000 ...", "[M_g,K_g]", "in", "row-major, one file per group");
    tensor("b_00000 ...", nk ? "[N_g,K_g]" : "[K_g,N_g]", "in", "row-major, one file per group");
    tensor("d_00000 ...", "[M_g,N_g]", "d", "row-major, one file per group");
  }
  if (chapter.own_sizes != OwnSizes::always) {
    const std::string halves = four_bits(formats) ? "; two 4-bit elements to a byte, the even one low" : "";
    tensor("a", "[M,K]", "in", ("row-major, groups packed without gaps" + halves).c_str());
    const std::string shape = nk ? "N,K]" : "K,N]";
    const bool is_gradient = chapter.product == Product::weight_gradient;
    if (is_gradient) tensor("b", "[M,N]", "in", "row-major, rows as those of a: the gradient of A B");
    if (!is_gradient)
      tensor("b", (shared ? "[G," + shape + " or [" + shape : "[G," + shape).c_str(), "in",
             (b_layout + halves).c_str());
    if (formats[0].has_scales()) {
      const char* layout = "atoms of 128 rows x 4 blocks along K: [row atoms,block atoms,32,4,4]";
      tensor("sfa", "[ceil(M/128),ceil(K/block/4),32,4,4]", "u8", layout);
      tensor("sfb", "[G,ceil(N/128),ceil(K/block/4),32,4,4]", "u8", layout);
      tensor("offsets", "[G]", "i32", "group g ends before row offsets[g]; the first begins at row 0");
    } else {
      tensor("offsets", "[G+1]", wide ? "i32 or i64" : "i32",
             "first 0, group g owns rows offsets[g] .. offsets[g+1]-1");
    }
    if (is_gradient) {
      tensor("d", "[G,K,N]", "d", "row-major: of each group the product of a, transposed, and b");
      tensors.push_back(
          tensor_text("d_before", "[G,K,N]", "d", "what d was added to", "with --accumulate, out"));
    } else {
      const Operator op = chapter.epilogue.op;
      const bool is_gated = op == Operator::glu || op == Operator::glu_hadamard;
      tensor("d", op == Operator::glu_gradient ? "[M,2N]" : is_gated ? "[M,N/2]" : "[M,N]", "d", "row-major");
    }
    add_epilogue_tensors(chapter, tensors);
  }
  return format(
      "{\n  \"id\": \"%s\",\n  \"title\": \"%s\",\n  \"part\": \"%s\",\n  \"arch\": \"%s\",\n  \"previous\": "
      "\"%s\",\n"
      "%s  \"formats\": [\n%s\n  ],\n  \"limits\": {%s},\n%s"
      "  \"tensors\": [\n%s\n  ],\n  \"sets\": %s,\n  \"options\": %s,\n  \"tiles\": %s,\n"
      "  \"chooses_tile\": %s,\n  \"one_tile_for_others\": %s,\n"
      "  \"clusters\": %s,\n  \"tile_clusters\": %s,\n  \"numbers\": [%s],\n  \"ideas\": %s,\n  "
      "\"b_layouts\": "
      "%s,\n  \"forms\": [\n    %s\n  ]\n}\n",
      chapter.id, chapter.title, chapter.part, arch, chapter.previous, product_text(chapter).c_str(),
      join(types, ",\n").c_str(), limits_text(chapter, formats).c_str(), epilogue_text(chapter).c_str(),
      join(tensors, ",\n").c_str(), quoted({chapter.sets.begin(), chapter.sets.end()}).c_str(),
      quoted(own_options(chapter)).c_str(), quoted(tile_names(chapter)).c_str(),
      chapter.chooses_tile ? "true" : "false", chapter.one_tile_for_others ? "true" : "false",
      quoted(cluster_names(chapter)).c_str(), quoted(tile_and_cluster_names(chapter)).c_str(),
      numbers_text(chapter).c_str(), quoted(idea_names(chapter)).c_str(),
      quoted(b_layout_names(chapter)).c_str(), join(forms, ",\n    ").c_str());
}

}  // namespace gg
