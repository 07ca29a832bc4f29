// SPDX-License-Identifier: MIT
//
// Parsing, --help and --describe.

#include "common/run/options.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "common/bench/peers.h"
#include "common/problem/shapes.h"

namespace gg {
namespace {

struct Option {
  const char* name;
  const char* value;  // empty: a flag
  const char* help;
  bool of_chapter;  // only where the chapter lists it
};

const Option kOptions[] = {
    {"device", "auto|gpu|emu", "auto (default): the GPU if it can run this chapter, else the emulator",
     false},
    {"check", "", "only check", false},
    {"bench", "", "only time, on the emulator count; a failed check prints neither", false},
    {"set", "NAME[,NAME]", "shape sets, listed below", false},
    {"m", "LIST", "rows of each group, e.g. 64,0,200; with --groups one number", false},
    {"n", "N", "columns of B and D; a list where groups have sizes of their own", false},
    {"k", "K", "columns of A, rows of B; likewise", false},
    {"groups", "G", "G equal groups of --m rows", false},
    {"seed", "S", "of the data (default 0)", false},
    {"order", "S[:fair|skew]",
     "the emulator's order (default 0:fair): outputs are the same for each; on a GPU it changes nothing",
     false},
    {"peer", "NAME[,NAME]",
     "also time cublas_loop, cublas_grouped, cublas_strided, cublas_plain, or another library by its path "
     "(libgg_peer_NAME.so, plots/peers), on the same data; needs a GPU",
     false},
    {"sustained", "",
     "time rounds of 30 ms, each behind 100 ms of the same: at the clock that a kernel's own power allows",
     false},
    {"csv", "FILE", "append one row per measurement; the emulator makes none", false},
    {"counts-csv", "FILE", "append one row per set and counter of the emulator; a GPU makes none", false},
    {"in", "DIR", "read a.npy, b.npy, offsets.npy; --describe lists their shapes", false},
    {"out", "DIR", "write operands and output of the first launch on random data; wants exactly one problem",
     false},
    {"describe", "", "what this chapter supports, as JSON", false},
    {"help", "", "this text", false},
    {"in-dtype", "TYPE", "element type of A and B (or A,B where a mix is supported)", false},
    {"d-dtype", "TYPE", "element type of D", false},
    {"offsets", "i32|i64", "type of the offsets (default i32)", true},
    {"shared-b", "", "one B [K,N] for all groups", true},
    {"blocks", "B", "resident blocks", true},
    {"tile", "MxN", "tile of D that a block computes", true},
    {"tile-k", "T", "columns of A, rows of B that a tile holds at a time; K must be a multiple", true},
    {"off", "NAME[,NAME]", "switch ideas off, listed below; timed beside the chapter with all of them", true},
    {"b-layout", "nk|kn", "B as [G,N,K], K contiguous, or as [G,K,N], N contiguous", true},
    {"tune", "", "time every legal tile on each problem and print the table; needs a GPU", true},
    {"print-schedule", "", "print which block computes which tile; needs no GPU", true},
};

bool has(const std::vector<const char*>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(), [&](const char* each) { return name == each; });
}

// The names of the chapter's own options: those it lists and those that it gives values for.
std::vector<std::string> own_options(const Chapter& chapter) {
  std::vector<std::string> names(chapter.options.begin(), chapter.options.end());
  if (!chapter.tile_ks.empty()) names.push_back("tile-k");
  if (!chapter.ideas.empty()) names.push_back("off");
  if (chapter.b_layouts.size() > 1) names.push_back("b-layout");
  return names;
}

bool takes(const Chapter& chapter, const Option& option) {
  const std::vector<std::string> own = own_options(chapter);
  return !option.of_chapter || std::find(own.begin(), own.end(), option.name) != own.end();
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (text.empty() || text.back() == separator) parts.push_back("");
  return parts;
}

int64_t number(const std::string& option, const std::string& text, int64_t least, int64_t most) {
  char* rest = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &rest, 10);
  GG_REQUIRE(!text.empty() && !*rest && !errno, "--%s %s: not a whole number", option.c_str(), text.c_str());
  GG_REQUIRE(value >= least && value <= most, "--%s %s: must lie between %lld and %lld", option.c_str(),
             text.c_str(), static_cast<long long>(least), static_cast<long long>(most));
  return value;
}

std::vector<int> numbers(const std::string& option, const std::string& text, int least) {
  std::vector<int> values;
  for (const std::string& part : split(text, ','))
    values.push_back(int(number(option, part, least, INT32_MAX)));
  return values;
}

std::string join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

std::vector<std::string> tile_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (const Tile& tile : chapter.tiles) names.push_back(format("%dx%d", tile.m, tile.n));
  return names;
}

std::vector<std::string> tile_k_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (int tile_k : chapter.tile_ks) names.push_back(std::to_string(tile_k));
  return names;
}

std::vector<std::string> idea_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (const Idea& idea : chapter.ideas) names.push_back(idea.name);
  return names;
}

std::vector<std::string> b_layout_names(const Chapter& chapter) {
  std::vector<std::string> names;
  for (BLayout layout : chapter.b_layouts) names.push_back(layout_name(layout));
  return names;
}

std::vector<std::string> format_names(const std::vector<Formats>& formats) {
  std::vector<std::string> names;
  for (const Formats& each : formats) names.push_back(each.name() + " -> " + format_info(each.d).name);
  return names;
}

// The index of the chosen one of a chapter's legal values.
size_t choice(const char* option, const std::string& text, const Chapter& chapter,
              const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), text);
  GG_REQUIRE(found != names.end(), "--%s %s: %s has %s", option, text.c_str(), chapter.id,
             join(names, ", ").c_str());
  return size_t(found - names.begin());
}

std::vector<std::string> parse_off(const std::string& text, const Chapter& chapter) {
  const std::vector<std::string> names = idea_names(chapter);
  std::vector<bool> chosen(names.size());
  for (const std::string& name : split(text, ',')) chosen[choice("off", name, chapter, names)] = true;
  std::vector<std::string> off;
  for (size_t i = 0; i < names.size(); ++i) {
    if (chosen[i]) off.push_back(names[i]);
  }
  return off;
}

void parse_order(const std::string& text, Options& options) {
  const std::vector<std::string> parts = split(text, ':');
  options.order_seed = uint64_t(number("order", parts[0], 0, INT64_MAX));
  GG_REQUIRE(parts.size() == 1 || (parts.size() == 2 && (parts[1] == "fair" || parts[1] == "skew")),
             "--order %s: S, S:fair or S:skew are accepted", text.c_str());
  options.order_skew = parts.size() == 2 && parts[1] == "skew";
}

Formats choose_formats(const std::string& in, const std::string& out, const std::vector<Formats>& formats,
                       const Chapter& chapter) {
  for (const Formats& each : formats) {
    if ((in.empty() || each.name() == in) && (out.empty() || out == format_info(each.d).name)) return each;
  }
  throw Error(Exit::bad_input, format("--in-dtype %s%s%s: %s has %s", in.empty() ? "any" : in.c_str(),
                                      out.empty() ? "" : " --d-dtype ", out.c_str(), chapter.id,
                                      join(format_names(formats), ", ").c_str()));
}

const Option* find_option(const std::string& argument, const Chapter& chapter) {
  if (argument.rfind("--", 0) == 0) {
    for (const Option& option : kOptions) {
      if (argument.substr(2) != option.name) continue;
      GG_REQUIRE(takes(chapter, option), "%s: %s has no such option; --help lists them", argument.c_str(),
                 chapter.id);
      return &option;
    }
  }
  throw Error(Exit::bad_input, format("%s: no such option; --help lists them", argument.c_str()));
}

}  // namespace

std::string Options::order() const {
  return format("%llu:%s", static_cast<unsigned long long>(order_seed), order_skew ? "skew" : "fair");
}

Options parse_options(int argc, char** argv, const Chapter& chapter, const std::vector<Formats>& formats) {
  Options options;
  options.arguments = argv;
  if (!chapter.b_layouts.empty()) options.b_layout = chapter.b_layouts[0];
  if (const char* order = std::getenv("GG_EMU_ORDER")) parse_order(order, options);  // gg-emu --order
  std::string in_dtype, d_dtype;
  bool only_check = false, only_bench = false;
  for (int i = 1; i < argc; ++i) {
    const Option& option = *find_option(argv[i], chapter);
    const std::string name = option.name;
    std::string value;
    if (*option.value) {
      GG_REQUIRE(i + 1 < argc, "--%s wants a value: %s", option.name, option.value);
      value = argv[++i];
    }
    if (name == "device") {
      GG_REQUIRE(value == "auto" || value == "gpu" || value == "emu",
                 "--device %s: auto, gpu or emu are accepted", value.c_str());
      options.device = value == "gpu"   ? Options::Device::gpu
                       : value == "emu" ? Options::Device::emulator
                                        : Options::Device::automatic;
    } else if (name == "check") {
      only_check = true;
    } else if (name == "bench") {
      only_bench = true;
    } else if (name == "set") {
      options.sets = split(value, ',');
    } else if (name == "m") {
      options.m = numbers(name, value, 0);
    } else if (name == "n") {
      options.n = numbers(name, value, 1);
    } else if (name == "k") {
      options.k = numbers(name, value, 1);
    } else if (name == "groups") {
      options.groups = int(number(name, value, 1, kMostGroups));
    } else if (name == "seed") {
      options.seed = uint64_t(number(name, value, 0, INT64_MAX / 8));
    } else if (name == "order") {
      parse_order(value, options);
    } else if (name == "peer") {
      options.peers = split(value, ',');
    } else if (name == "sustained") {
      options.sustained = true;
    } else if (name == "csv") {
      options.csv = value;
    } else if (name == "counts-csv") {
      options.counts_csv = value;
    } else if (name == "in") {
      options.in_dir = value;
    } else if (name == "out") {
      options.out_dir = value;
    } else if (name == "describe") {
      options.describe = true;
    } else if (name == "help") {
      options.help = true;
    } else if (name == "in-dtype") {
      in_dtype = value;
    } else if (name == "d-dtype") {
      d_dtype = value;
    } else if (name == "offsets") {
      GG_REQUIRE(value == "i32" || value == "i64", "--offsets %s: i32 or i64 are accepted", value.c_str());
      options.wide_offsets = value == "i64";
    } else if (name == "shared-b") {
      options.shared_b = true;
    } else if (name == "blocks") {
      options.blocks = int(number(name, value, 1, 65535));
    } else if (name == "tile") {
      options.tile = chapter.tiles[choice("tile", value, chapter, tile_names(chapter))];
    } else if (name == "tile-k") {
      options.tile_k = chapter.tile_ks[choice("tile-k", value, chapter, tile_k_names(chapter))];
    } else if (name == "off") {
      options.off = parse_off(value, chapter);
    } else if (name == "b-layout") {
      options.b_layout = chapter.b_layouts[choice("b-layout", value, chapter, b_layout_names(chapter))];
    } else if (name == "tune") {
      options.tune = true;
    } else if (name == "print-schedule") {
      options.print_schedule = true;
    }
  }
  if (only_check != only_bench) {
    options.check = only_check;
    options.bench = only_bench;
  }
  if (options.tune) {
    GG_REQUIRE(options.device != Options::Device::emulator,
               "--tune: the emulator takes no times, leave out --device emu");
    options.check = false;
    options.device = Options::Device::gpu;  // or none
  }
  GG_REQUIRE(options.in_dir.empty() || options.check,
             "--in is checked, not timed: leave out --bench and --tune");
  options.formats = choose_formats(in_dtype, d_dtype, formats, chapter);
  options.other_d = !(options.formats == choose_formats(options.formats.name(), "", formats, chapter));
  for (const std::string& peer : options.peers) {
    GG_REQUIRE(
        has(cublas_names(), peer) || !library_peer_name(peer).empty(),
        "--peer %s: cublas_loop, cublas_grouped, cublas_strided and cublas_plain are known, and paths of "
        "libraries called libgg_peer_NAME.so",
        peer.c_str());
  }
  const bool sizes = !options.m.empty() || !options.n.empty() || !options.k.empty() || options.groups;
  GG_REQUIRE(!sizes || options.sets.empty(),
             "--set and --m/--n/--k/--groups exclude each other: give one or the other");
  GG_REQUIRE(!sizes || options.in_dir.empty(),
             "--in brings its own sizes: leave out --m, --n, --k and --groups");
  GG_REQUIRE(options.in_dir.empty() || options.sets.empty(),
             "--in is one problem of its own: leave out --set");
  if (sizes) {
    GG_REQUIRE(!options.m.empty() && !options.n.empty() && !options.k.empty(),
               "one problem wants all of --m, --n and --k");
    if (options.groups) {
      GG_REQUIRE(options.m.size() == 1, "--groups %d wants one number for --m, not %zu", options.groups,
                 options.m.size());
      options.m.assign(size_t(options.groups), options.m[0]);
    }
    for (const auto* list : {&options.n, &options.k}) {
      GG_REQUIRE(list->size() == 1 || chapter.own_sizes != OwnSizes::never,
                 "%s takes one N and one K for all groups", chapter.id);
      GG_REQUIRE(list->size() == 1 || list->size() == options.m.size(),
                 "--m lists %zu groups but --n or --k lists %zu: give one number, or one for each group",
                 options.m.size(), list->size());
    }
  }
  return options;
}

std::string kernel_name(const Chapter& chapter, const Options& options, Tile tile, const std::string& peer) {
  std::string name = peer.empty() ? "grouped_gemm" : peer;
  bool other_d = options.other_d;
  if (peer.empty() || peer == kAllIdeas) {  // how the chapter solves the problem: a library does not know
    if (tile.m) name += format(" %dx%d", tile.m, tile.n);
    if (options.tile_k) name += format(" tile-k=%d", options.tile_k);
    if (!options.off.empty()) name += " off=" + join(options.off, "+");
  } else {
    other_d = options.formats.d != options.formats.a;
  }
  if (other_d) name += format(" d=%s", format_info(options.formats.d).name);
  if (!chapter.b_layouts.empty() && options.b_layout != chapter.b_layouts[0])
    name += format(" b=%s", layout_name(options.b_layout));
  if (options.shared_b) name += " shared-b";
  if (options.sustained) name += " sustained";
  return name;
}

void refuse_unsupported(const Shape& shape, const Chapter& chapter, int tile_k) {
  GG_REQUIRE(shape.groups() >= 1, "no groups: at least one is wanted");
  GG_REQUIRE(shape.groups() <= kMostGroups, "%d groups: at most %d are accepted", shape.groups(),
             kMostGroups);
  GG_REQUIRE(shape.m_total() <= INT32_MAX - 2 * kGuardRows,
             "%lld rows in all: at most %d are accepted (rows are counted in int32)",
             static_cast<long long>(shape.m_total()), INT32_MAX - 2 * kGuardRows);
  for (int g = 0; g < shape.groups(); ++g) {
    const int m = shape.m[size_t(g)], n = shape.n_of(g), k = shape.k_of(g);
    GG_REQUIRE(n >= 1, "N=%d: at least 1 is wanted", n);
    GG_REQUIRE(k >= 1, "K=%d: at least 1 is wanted", k);
    GG_REQUIRE(k % chapter.k_multiple == 0, "K=%d: %s wants multiples of %d (%s)", k, chapter.id,
               chapter.k_multiple, chapter.multiple_reason);
    GG_REQUIRE(n % chapter.n_multiple == 0, "N=%d: %s wants multiples of %d (%s)", n, chapter.id,
               chapter.n_multiple, chapter.multiple_reason);
    GG_REQUIRE(m % chapter.m_multiple == 0, "M=%d of group %d: %s wants multiples of %d (%s)", m, g,
               chapter.id, chapter.m_multiple, chapter.multiple_reason);
    GG_REQUIRE(!chapter.equal_groups || m == shape.m[0],
               "group %d has %d rows, group 0 has %d: %s wants equal groups", g, m, shape.m[0], chapter.id);
    GG_REQUIRE(!tile_k || k % tile_k == 0, "K=%d: --tile-k %d wants multiples of %d", k, tile_k, tile_k);
  }
}

std::vector<std::string> sets_of(const Chapter& chapter, const std::vector<const char*>& sets) {
  std::vector<std::string> taken;
  for (const char* set : sets) {
    if (has(chapter.sets, set)) taken.push_back(set);
  }
  return taken;
}
std::vector<std::string> default_check_sets(const Chapter& chapter) {
  return sets_of(chapter, {"smoke", "edges", "smoke_uniform", "edges_uniform"});
}
std::vector<std::string> default_bench_sets(const Chapter& chapter) {
  const std::vector<std::string> sets = sets_of(chapter, {"prefill", "decode"});
  return sets.empty() ? sets_of(chapter, {"peers"}) : sets;
}
std::vector<std::string> default_count_sets(const Chapter& chapter) {
  const std::vector<std::string> sets = sets_of(chapter, {"smoke"});
  return sets.empty() ? sets_of(chapter, {"smoke_uniform"}) : sets;
}

std::vector<Shape> shapes_for(const Options& options, const Chapter& chapter,
                              const std::vector<std::string>& sets, std::vector<std::string>& left_out) {
  std::vector<Shape> shapes;
  if (options.one_problem()) {
    shapes.push_back({options.m, options.n, options.k, "own"});
  } else {
    const int k_multiple = std::lcm(chapter.k_multiple, std::max(options.tile_k, 1));
    ShapeLimits limits{
        chapter.n_multiple, k_multiple, {64, 64}, chapter.own_sizes != OwnSizes::never, options.seed};
    if (!chapter.tiles.empty()) limits.tile = options.tile.m ? options.tile : chapter.tiles[0];
    for (const std::string& set : sets) {
      std::vector<Shape> of_set = shape_set(set, limits);
      GG_REQUIRE(has(chapter.sets, set), "--set %s: %s cannot take this set; --help lists its sets",
                 set.c_str(), chapter.id);
      shapes.insert(shapes.end(), of_set.begin(), of_set.end());
    }
  }
  std::vector<Shape> supported;
  for (Shape& shape : shapes) {
    shape.shared_b = shape.shared_b || options.shared_b;
    const bool listed = shape.n.size() > 1 || shape.k.size() > 1;
    shape.own_sizes =
        chapter.own_sizes == OwnSizes::always || (chapter.own_sizes == OwnSizes::when_listed && listed);
    try {
      refuse_unsupported(shape, chapter, options.tile_k);
      supported.push_back(shape);
    } catch (const Error& error) {
      if (!is_mixed(shape.set)) throw;
      left_out.push_back(
          format("%s of set %s left out: %s", shape.describe().c_str(), shape.set.c_str(), error.what()));
    }
  }
  return supported;
}

std::string help_text(const Chapter& chapter, const std::vector<Formats>& formats) {
  std::string text = format(
      "%s: %s\n\nWithout options: check the sets %s, then time %s, or on the emulator count %s.\n\n",
      chapter.id, chapter.title, join(default_check_sets(chapter), ", ").c_str(),
      join(default_bench_sets(chapter), ", ").c_str(), join(default_count_sets(chapter), ", ").c_str());
  for (const Option& option : kOptions) {
    if (!takes(chapter, option)) continue;
    text += format("  %-28s %s\n", format("--%s %s", option.name, option.value).c_str(), option.help);
  }
  text += format("\nElement types: %s.\n", join(format_names(formats), "; ").c_str());
  if (!chapter.tiles.empty()) text += format("Tiles: %s.\n", join(tile_names(chapter), ", ").c_str());
  if (!chapter.tile_ks.empty())
    text += format("Tiles of K: %s.\n", join(tile_k_names(chapter), ", ").c_str());
  if (!chapter.b_layouts.empty())
    text += format("Layouts of B: %s.\n", join(b_layout_names(chapter), ", ").c_str());
  const std::string rows = chapter.m_multiple > 1 ? format(", M a multiple of %d", chapter.m_multiple) : "";
  text += format("Limits: K a multiple of %d, N a multiple of %d%s%s%s; %sat most %d groups.\n",
                 chapter.k_multiple, chapter.n_multiple, rows.c_str(), *chapter.multiple_reason ? ": " : "",
                 chapter.multiple_reason, chapter.equal_groups ? "equal groups, " : "", kMostGroups);
  if (!chapter.ideas.empty()) text += "\nIdeas that --off takes:\n";
  for (const Idea& idea : chapter.ideas) text += format("  %-14s %s\n", idea.name, idea.help);
  text += "\nSets:\n";
  for (const ShapeSetInfo& set : shape_sets()) {
    if (has(chapter.sets, set.name)) text += format("  %-14s %s\n", set.name, set.what);
  }
  text +=
      "\nExit codes: 0 passed, 1 a check failed, 2 bad input, 3 device error, 4 cannot write, 5 no memory, "
      "77 no device.\n";
  return text;
}

std::string describe_text(const Chapter& chapter, const std::vector<Formats>& formats) {
  const auto quoted = [](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "\"" : ", \"") + word + "\"";
    return "[" + text + "]";
  };
  const char* arch = chapter.arch == Arch::sm_80 ? "80" : chapter.arch == Arch::sm_90a ? "90a" : "100a";
  std::vector<std::string> types;
  for (const Formats& each : formats) {
    types.push_back(
        format("    {\"in\": \"%s\", \"d\": \"%s\"}", each.name().c_str(), format_info(each.d).name));
  }
  const bool nk = !chapter.b_layouts.empty() && chapter.b_layouts[0] == BLayout::nk;
  std::string b_layout = nk ? "K contiguous" : "N contiguous";
  if (chapter.b_layouts.size() > 1) {
    b_layout += nk ? "; with --b-layout kn [K,N], N contiguous" : "; with --b-layout nk [N,K], K contiguous";
  }
  const bool shared = has(chapter.options, "shared-b"), wide = has(chapter.options, "offsets");
  std::vector<std::string> tensors;
  const auto tensor = [&](const char* name, const char* shape, const char* type, const char* layout) {
    tensors.push_back(
        format("    {\"name\": \"%s\", \"shape\": \"%s\", \"type\": \"%s\", \"layout\": \"%s\"}", name, shape,
               type, layout));
  };
  if (chapter.own_sizes != OwnSizes::never) {
    tensor("a_00000 ...", "[M_g,K_g]", "in", "row-major, one file per group");
    tensor("b_00000 ...", nk ? "[N_g,K_g]" : "[K_g,N_g]", "in", "row-major, one file per group");
    tensor("d_00000 ...", "[M_g,N_g]", "d", "row-major, one file per group");
  }
  if (chapter.own_sizes != OwnSizes::always) {
    tensor("a", "[M,K]", "in", "row-major, groups packed without gaps");
    const std::string shape = nk ? "N,K]" : "K,N]";
    tensor("b", (shared ? "[G," + shape + " or [" + shape : "[G," + shape).c_str(), "in", b_layout.c_str());
    tensor("offsets", "[G+1]", wide ? "i32 or i64" : "i32",
           "first 0, group g owns rows offsets[g] .. offsets[g+1]-1");
    tensor("d", "[M,N]", "d", "row-major");
  }
  return format(
      "{\n  \"id\": \"%s\",\n  \"title\": \"%s\",\n  \"arch\": \"%s\",\n  \"previous\": \"%s\",\n"
      "  \"formats\": [\n%s\n  ],\n  \"limits\": {\"k_multiple\": %d, \"n_multiple\": %d, \"m_multiple\": "
      "%d, "
      "\"equal_groups\": %s, \"groups\": %d},\n"
      "  \"tensors\": [\n%s\n  ],\n  \"sets\": %s,\n  \"options\": %s,\n  \"tiles\": %s,\n"
      "  \"tile_ks\": %s,\n  \"ideas\": %s,\n  \"b_layouts\": %s\n}\n",
      chapter.id, chapter.title, arch, chapter.previous, join(types, ",\n").c_str(), chapter.k_multiple,
      chapter.n_multiple, chapter.m_multiple, chapter.equal_groups ? "true" : "false", kMostGroups,
      join(tensors, ",\n").c_str(), quoted({chapter.sets.begin(), chapter.sets.end()}).c_str(),
      quoted(own_options(chapter)).c_str(), quoted(tile_names(chapter)).c_str(),
      quoted(tile_k_names(chapter)).c_str(), quoted(idea_names(chapter)).c_str(),
      quoted(b_layout_names(chapter)).c_str());
}

}  // namespace gg
