// SPDX-License-Identifier: MIT
//
// Parsing: each option with its help and with what it does to the options, then what they must
// not be together.

#include "common/harness/run/options.h"

#include <algorithm>
#include <cstring>

#include "common/harness/base/text.h"
#include "common/harness/bench/peer_names.h"
#include "common/harness/run/choices.h"

namespace gg {
namespace {

std::vector<int> numbers(const std::string& option, const std::string& text, int least) {
  std::vector<int> values;
  for (const std::string& part : split(text, ','))
    values.push_back(int(whole_number(option, part, least, INT32_MAX)));
  return values;
}

// The index of the chosen one of a chapter's legal values.
size_t choice(const char* option, const std::string& text, const Chapter& chapter,
              const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), text);
  GG_REQUIRE(found != names.end(), "--%s %s: %s has %s", option, text.c_str(), chapter.id,
             join(names, ", ").c_str());
  return size_t(found - names.begin());
}

// Options while they are read; some decide only together what is meant.
struct Draft {
  const Chapter& chapter;
  Options options{};
  std::string in_dtype{}, d_dtype{}, c_dtype{}, bias_dtype{}, norm_const{}, act{}, tile{}, cluster{};
  const char* in_option = "in-dtype";  // the one that said so
  bool only_check = false, only_bench = false;
};
using Take = void(Draft& draft, const std::string& value);

template <auto MEMBER>
void flag(Draft& draft, const std::string&) {
  draft.options.*MEMBER = true;
}
template <auto MEMBER>
void path(Draft& draft, const std::string& value) {
  GG_REQUIRE(!value.empty(),
             "\"\" is no name: --csv, --counts-csv, --in and --out want that of a file or a folder");
  draft.options.*MEMBER = value;
}
template <auto MEMBER>
void list(Draft& draft, const std::string& value) {
  draft.options.*MEMBER = split(value, ',');
}

void device(Draft& draft, const std::string& value) { draft.options.take_device(value); }
void order(Draft& draft, const std::string& value) { draft.options.take_order(value); }

void offsets(Draft& draft, const std::string& value) {
  GG_REQUIRE(value == "i32" || value == "i64", "--offsets %s: i32 or i64 are accepted", value.c_str());
  draft.options.request.wide_offsets = value == "i64";
}

void accumulate(Draft& draft, const std::string&) { draft.options.request.accumulate = true; }

void off(Draft& draft, const std::string& value) {
  const std::vector<std::string> names = idea_names(draft.chapter);
  std::vector<bool> chosen(names.size());
  for (const std::string& name : split(value, ',')) chosen[choice("off", name, draft.chapter, names)] = true;
  draft.options.off.clear();
  for (size_t i = 0; i < names.size(); ++i) {
    draft.options.request.ideas_off.by_name[names[i]] = chosen[i];
    if (chosen[i]) draft.options.off.push_back(names[i]);
  }
}

// The options whose value only one of them has, by their names.
void only_check(Draft& draft, const std::string&) { draft.only_check = true; }
void only_bench(Draft& draft, const std::string&) { draft.only_bench = true; }
void m(Draft& draft, const std::string& value) { draft.options.m = numbers("m", value, 0); }
void n(Draft& draft, const std::string& value) { draft.options.n = numbers("n", value, 1); }
void k(Draft& draft, const std::string& value) { draft.options.k = numbers("k", value, 1); }
void groups(Draft& draft, const std::string& value) {
  draft.options.groups = int(whole_number("groups", value, 1, most_groups(draft.chapter)));
}
void seed(Draft& draft, const std::string& value) {
  draft.options.seed = uint64_t(whole_number("seed", value, 0, INT64_MAX / 8));
}
void in_dtype(Draft& draft, const std::string& value) { draft.in_dtype = value; }
void scaled_format(Draft& draft, const std::string& value) {
  draft.in_dtype = value;
  draft.in_option = "format";
}
void d_dtype(Draft& draft, const std::string& value) { draft.d_dtype = value; }
void blocks(Draft& draft, const std::string& value) {
  draft.options.request.blocks = int(whole_number("blocks", value, 1, 65535));
}
void tile(Draft& draft, const std::string& value) {
  choice("tile", value, draft.chapter, tile_names(draft.chapter));
  draft.tile = value;
}
void cluster(Draft& draft, const std::string& value) {
  choice("cluster", value, draft.chapter, cluster_names(draft.chapter));
  draft.cluster = value;
}
void b_layout(Draft& draft, const std::string& value) {
  draft.options.request.b_layout =
      draft.chapter.b_layouts[choice("b-layout", value, draft.chapter, b_layout_names(draft.chapter))];
}

void c_dtype(Draft& draft, const std::string& value) { draft.c_dtype = value; }
void bias(Draft& draft, const std::string&) { draft.options.request.epilogue.bias = true; }
void bias_dtype(Draft& draft, const std::string& value) { draft.bias_dtype = value; }
void norm_const(Draft& draft, const std::string& value) { draft.norm_const = value; }
void act(Draft& draft, const std::string& value) { draft.act = value; }
void discrete_col_sfd(Draft& draft, const std::string&) {
  draft.options.request.epilogue.discrete_col_sfd = true;
}
bool second_of(const char* option, const std::string& value, const char* first, const char* second) {
  GG_REQUIRE(value == first || value == second, "--%s %s: %s or %s are accepted", option, value.c_str(),
             first, second);
  return value == second;
}
void weights(Draft& draft, const std::string& value) {
  draft.options.request.weights =
      second_of("weights", value, "dense", "discrete") ? Weights::discrete : Weights::dense;
}
void schedule(Draft& draft, const std::string& value) {
  draft.options.request.scheduler =
      second_of("schedule", value, "static", "dynamic") ? Scheduler::dynamic : Scheduler::fixed;
}
void transform(Draft& draft, const std::string& value) {
  draft.options.request.epilogue.butterfly = second_of("transform", value, "tensor", "butterfly");
}

struct Rule {
  Option option;
  bool of_chapter;  // only where the chapter lists it
  Take* take;
};

const Rule kRules[] = {
    {{"device", "auto|gpu|emu", "auto (default): the GPU if it can run this chapter, else the emulator"},
     false,
     device},
    {{"check", "", "only check"}, false, only_check},
    {{"bench", "", "only time, on the emulator count; a failed check prints neither"}, false, only_bench},
    {{"set", "NAME[,NAME]", "shape sets, listed below"}, false, list<&Options::sets>},
    {{"m", "LIST", "rows of each group, e.g. 64,0,200; with --groups one number"}, false, m},
    {{"n", "N", "columns of B and D; a list where groups have sizes of their own"}, false, n},
    {{"k", "K", "columns of A, rows of B; likewise"}, false, k},
    {{"groups", "G", "G equal groups of --m rows"}, false, groups},
    {{"seed", "S", "of the data (default 0)"}, false, seed},
    {{"order", "S[:fair|skew]",
      "the emulator's order (default 0:fair): outputs are the same for each; on a GPU it changes nothing"},
     false,
     order},
    {{"peer", "NAME[,NAME]",
      "also time cublas_loop, cublas_grouped, cublas_strided (the fastest of what cublasLt proposes), "
      "cublas_plain, or another library by its path (libgg_peer_NAME.so, plots/measure/peers), on the same "
      "data; "
      "needs a GPU"},
     false,
     list<&Options::peers>},
    {{"sustained", "",
      "time rounds of 30 ms, each behind 100 ms of the same: at the clock that a kernel's own power allows"},
     false,
     flag<&Options::sustained>},
    {{"csv", "FILE", "append one row per measurement; the emulator makes none"}, false, path<&Options::csv>},
    {{"counts-csv", "FILE", "append one row per set and counter of the emulator; a GPU makes none"},
     false,
     path<&Options::counts_csv>},
    {{"in", "DIR", "read a.npy, b.npy, offsets.npy; --describe lists their shapes"},
     false,
     path<&Options::in_dir>},
    {{"out", "DIR",
      "write operands and output of the first launch on random data; wants exactly one problem"},
     false,
     path<&Options::out_dir>},
    {{"describe", "", "what this chapter supports, as JSON"}, false, flag<&Options::describe>},
    {{"help", "", "this text"}, false, flag<&Options::help>},
    {{"in-dtype", "TYPE", "element type of A and B (or A,B where a mix is supported)"}, false, in_dtype},
    {{"d-dtype", "TYPE", "element type of D"}, false, d_dtype},
    {{"format", "NAME", "block-scaled format of A and B"}, true, scaled_format},
    {{"offsets", "i32|i64", "type of the offsets (default i32)"}, true, offsets},
    {{"accumulate", "", "add to what D holds: whole numbers from -16 to 16; --out has them as d_before.npy"},
     true,
     accumulate},
    {{"shared-b", "", "one B [K,N] for all groups"}, true, flag<&Options::shared_b>},
    {{"blocks", "B", "blocks of the persistent kernel"}, true, blocks},
    {{"tile", "MxN", "tile of D that a block computes, or a cluster"}, true, tile},
    {{"cluster", "MxN", "blocks of the cluster that computes a tile; each tile has its own"}, true, cluster},
    {{"off", "NAME[,NAME]", "switch ideas off, listed below; timed beside the chapter with all of them"},
     true,
     off},
    {{"b-layout", "nk|kn", "B as [G,N,K], K contiguous, or as [G,K,N], N contiguous"}, true, b_layout},
    {{"c-dtype", "TYPE", "element type of C"}, true, c_dtype},
    {{"bias", "", "add a random bias [G,N]; with --in, bias.npy says whether there is one"}, true, bias},
    {{"bias-dtype", "TYPE", "element type of the bias; with --in, that of bias.npy"}, true, bias_dtype},
    {{"norm-const", "X", "quantise D in blocks of 32 with UE8M0 scales, X a factor of all of them"},
     true,
     norm_const},
    {{"discrete-col-sfd", "", "the scales of D_col expert by expert"}, true, discrete_col_sfd},
    {{"weights", "dense|discrete", "B and its scales as one tensor each, or by an address per expert"},
     true,
     weights},
    {{"act", "swiglu|geglu", "the activation (default: the chapter's first)"}, true, act},
    {{"transform", "tensor|butterfly",
      "the Hadamard transform on tensor cores (default), or in registers, where sums of 2, 4 or 8 X overflow "
      "too"},
     true,
     transform},
    {{"schedule", "static|dynamic", "tiles by block index (default), or by a counter in global memory"},
     true,
     schedule},
    {{"tune", "", "time every legal tile on each problem, in the same rounds; needs a GPU"},
     true,
     flag<&Options::tune>},
    {{"print-schedule", "", "print which block computes which tile; needs no GPU"},
     true,
     flag<&Options::print_schedule>},
};

bool takes(const Chapter& chapter, const Rule& rule) {
  const std::vector<std::string> own = own_options(chapter);
  return !rule.of_chapter || std::find(own.begin(), own.end(), rule.option.name) != own.end();
}

// Does it choose among launches? --tune and --print-schedule do not.
bool chooses_form(const Rule& rule) {
  const std::string name = rule.option.name;
  return name == "in-dtype" || name == "d-dtype" ||
         (rule.of_chapter && name != "tune" && name != "print-schedule");
}

const Rule& find_rule(const char* argument, const Chapter& chapter) {
  if (std::strncmp(argument, "--", 2) == 0) {
    for (const Rule& rule : kRules) {
      if (std::strcmp(argument + 2, rule.option.name) != 0) continue;
      GG_REQUIRE(takes(chapter, rule), "%s: %s has no such option; --help lists them", argument, chapter.id);
      return rule;
    }
  }
  throw Error(Exit::bad_input, format("%s: %s has no such option; --help lists them", argument, chapter.id));
}

Option option_of(const OwnNumber& own) { return {own.name, join(number_names(own), "|"), own.help}; }

// Returns one of the chapter's own numbers; null: the argument is none.
const OwnNumber* find_number(const std::string& argument, const Chapter& chapter) {
  for (const OwnNumber& own : chapter.numbers) {
    if (argument == std::string("--") + own.name) return &own;
  }
  return nullptr;
}

Formats choose_formats(const std::string& in, const std::string& out, const std::vector<Formats>& formats,
                       const Chapter& chapter, const char* in_option = "in-dtype") {
  for (const Formats& each : formats) {
    if ((in.empty() || each.name() == in) && (out.empty() || out == format_info(each.d).name)) return each;
  }
  std::vector<std::string> asked;
  if (!in.empty()) asked.push_back(format("--%s %s", in_option, in.c_str()));
  if (!out.empty()) asked.push_back("--d-dtype " + out);
  throw Error(Exit::bad_input, format("%s: %s has %s", join(asked, " ").c_str(), chapter.id,
                                      join(format_names(formats), ", ").c_str()));
}

// Settles whether the run checks, times or does both, and on which machine.
void settle_halves(Draft& draft) {
  Options& options = draft.options;
  if (draft.only_check != draft.only_bench) {
    options.check = draft.only_check;
    options.bench = draft.only_bench;
  }
  if (options.tune) {
    GG_REQUIRE(options.device != Options::Device::emulator,
               "--tune: the emulator takes no times, leave out --device emu");
    options.check = false;
    options.device = Options::Device::gpu;  // or none
  }
  GG_REQUIRE(options.in_dir.empty() || options.check,
             "--in is checked, not timed: leave out --bench and --tune");
}

// The first of the chapter's tiles that is as asked for: --tile and --cluster decide together.
void settle_tile(Draft& draft) {
  if (draft.tile.empty() && draft.cluster.empty()) return;
  for (const ClusterTileShape& tile : draft.chapter.tiles) {
    const bool as_asked = (draft.tile.empty() || draft.tile == tile_name(tile)) &&
                          (draft.cluster.empty() || draft.cluster == cluster_name(tile));
    if (!as_asked) continue;
    draft.options.request.tile = tile;
    return;
  }
  throw Error(Exit::bad_input,
              format("--tile %s --cluster %s: %s has %s", draft.tile.c_str(), draft.cluster.c_str(),
                     draft.chapter.id, join(tile_and_cluster_names(draft.chapter), ", ").c_str()));
}

// Where other types, offsets and layouts of B have the first tile alone.
void require_tile_of_form(const Draft& draft, const Formats& first) {
  const Options& options = draft.options;
  const Chapter& chapter = draft.chapter;
  const bool is_other_tile =
      !draft.cluster.empty() ||
      (options.request.tile.m && tile_name(options.request.tile) != tile_name(chapter.tiles[0]));
  if (!chapter.one_tile_for_others || !(is_other_tile || options.tune)) return;
  const bool is_first = options.request.formats == first && !options.request.wide_offsets &&
                        (chapter.b_layouts.empty() || options.request.b_layout == chapter.b_layouts[0]);
  const std::string option = options.tune             ? "--tune"
                             : !draft.cluster.empty() ? "--cluster " + draft.cluster
                                                      : "--tile " + tile_name(options.request.tile);
  GG_REQUIRE(is_first,
             "%s: with other types, offsets or layouts of B than its first, %s has tiles of %s alone",
             option.c_str(), chapter.id, tile_name(chapter.tiles[0]).c_str());
}

void require_known_peers(const Options& options) {
  for (const std::string& peer : options.peers) {
    GG_REQUIRE(
        has(cublas_names(), peer) || !library_peer_name(peer).empty(),
        "--peer %s: cublas_loop, cublas_grouped, cublas_strided and cublas_plain are known, and paths of "
        "libraries called libgg_peer_NAME.so",
        peer.c_str());
  }
}

// The number of --norm-const. What the operators compute from others has no meaning.
float norm_const_of(const std::string& text) {
  char* rest = nullptr;
  const float value = std::strtof(text.c_str(), &rest);
  GG_REQUIRE(!text.empty() && !*rest, "--norm-const %s: not a number", text.c_str());
  require_norm_const("--norm-const", value);
  return value;
}

void settle_bias(Draft& draft) {
  const List<Format>& types = draft.chapter.epilogue.bias_types;
  Epilogue& epilogue = draft.options.request.epilogue;
  if (types.empty()) return;
  epilogue.bias_format = types[0];
  if (draft.bias_dtype.empty()) return;
  const char* const name = draft.bias_dtype.c_str();
  GG_REQUIRE(draft.options.in_dir.empty(), "--bias-dtype %s: with --in, bias.npy says its type: leave it out",
             name);
  GG_REQUIRE(epilogue.bias, "--bias-dtype %s: there is no bias: add --bias", name);
  epilogue.bias_format = types[choice("bias-dtype", draft.bias_dtype, draft.chapter, type_names(types))];
}

// Settles what the epilogue is, once the types are known.
void settle_epilogue(Draft& draft) {
  const Chapter& chapter = draft.chapter;
  const EpilogueChoices& choices = chapter.epilogue;
  Options& options = draft.options;
  Epilogue& epilogue = options.request.epilogue;
  if (choices.op == Operator::gemm) return;
  epilogue.op = choices.op;
  epilogue.amax = choices.amax;
  epilogue.stores_c = !choices.c_types.empty();
  if (!choices.c_types.empty()) options.request.formats.c = choices.c_types[0];
  if (!draft.c_dtype.empty())
    options.request.formats.c =
        choices.c_types[choice("c-dtype", draft.c_dtype, chapter, type_names(choices.c_types))];
  settle_bias(draft);
  if (!choices.activations.empty()) epilogue.activation = choices.activations[0];
  if (!draft.act.empty())
    epilogue.activation = choices.activations[choice("act", draft.act, chapter, activation_names(chapter))];
  if (!draft.norm_const.empty()) {
    scale_outputs(choices, norm_const_of(draft.norm_const), epilogue);
  } else if (choices.norm_const > 0 && options.in_dir.empty()) {  // a folder may have its own
    scale_outputs(choices, choices.norm_const, epilogue);
  }
  require_consistent(options.request);
  GG_REQUIRE(options.request.b_layout == BLayout::nk || format_info(options.request.formats.b).bits >= 8,
             "--b-layout kn: %s packs two elements along K into a byte: nk is accepted",
             options.request.formats.name());
  GG_REQUIRE(options.peers.empty(), "--peer %s: %s computes more than a product, and libraries do not",
             options.peers[0].c_str(), chapter.id);
}

// Sizes come from one place: the sets, a folder, or all of --m, --n and --k.
void settle_sizes(Options& options, const Chapter& chapter) {
  const bool sizes = !options.m.empty() || !options.n.empty() || !options.k.empty() || options.groups;
  GG_REQUIRE(!sizes || options.sets.empty(),
             "--set and --m/--n/--k/--groups exclude each other: give one or the other");
  GG_REQUIRE(!sizes || options.in_dir.empty(),
             "--in brings its own sizes: leave out --m, --n, --k and --groups");
  GG_REQUIRE(options.in_dir.empty() || options.sets.empty(),
             "--in is one problem of its own: leave out --set");
  GG_REQUIRE(!options.request.accumulate || options.in_dir.empty(),
             "--accumulate: a folder of --in holds no D to add to: leave one of the two out");
  if (!sizes) return;
  GG_REQUIRE(!options.m.empty() && !options.n.empty() && !options.k.empty(),
             "one problem wants all of --m, --n and --k: give all three");
  if (options.groups) {
    GG_REQUIRE(options.m.size() == 1, "--groups %d wants one number for --m, not %zu: give one",
               options.groups, options.m.size());
    options.m.assign(size_t(options.groups), options.m[0]);
  }
  for (const auto* sizes_of : {&options.n, &options.k}) {
    GG_REQUIRE(sizes_of->size() == 1 || chapter.own_sizes != OwnSizes::never,
               "%s takes one N and one K for all groups: give one number for each", chapter.id);
    GG_REQUIRE(sizes_of->size() == 1 || sizes_of->size() == options.m.size(),
               "--m lists %zu groups but --n or --k lists %zu: give one number, or one for each group",
               options.m.size(), sizes_of->size());
  }
}

}  // namespace

std::vector<Option> options_of(const Chapter& chapter) {
  std::vector<Option> options;
  for (const Rule& rule : kRules) {
    if (takes(chapter, rule)) options.push_back(rule.option);
  }
  for (const OwnNumber& own : chapter.numbers) options.push_back(option_of(own));
  return options;
}

Options parse_options(int argc, char** argv, const Chapter& chapter, const std::vector<Formats>& formats) {
  Draft draft{chapter};
  Options& options = draft.options;
  options.arguments = argv;
  if (!chapter.b_layouts.empty()) options.request.b_layout = chapter.b_layouts[0];
  for (const Idea& idea : chapter.ideas) options.request.ideas_off.by_name[idea.name] = false;
  options.take_order_of_emulator();
  for (int i = 1; i < argc; ++i) {
    const OwnNumber* const own = find_number(argv[i], chapter);
    const Rule* const rule = own ? nullptr : &find_rule(argv[i], chapter);
    const Option option = own ? option_of(*own) : rule->option;
    std::string value;
    if (!option.value.empty()) {
      GG_REQUIRE(i + 1 < argc, "--%s wants a value: %s", option.name, option.value.c_str());
      value = argv[++i];
    }
    if (own) {
      options.request.numbers[own->name] =
          own->values[int(choice(own->name, value, chapter, number_names(*own)))];
    } else {
      rule->take(draft, value);
    }
    options.chooses_form |= own || chooses_form(*rule);
  }
  settle_halves(draft);
  settle_tile(draft);
  options.request.formats = choose_formats(draft.in_dtype, draft.d_dtype, formats, chapter, draft.in_option);
  options.other_d =
      !(options.request.formats == choose_formats(options.request.formats.name(), "", formats, chapter));
  require_tile_of_form(draft, formats[0]);
  settle_epilogue(draft);
  require_known_peers(options);
  settle_sizes(options, chapter);
  return options;
}

}  // namespace gg
