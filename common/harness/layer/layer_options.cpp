// SPDX-License-Identifier: MIT
//
// The options of a layer: fewer than those of a product.

#include "common/harness/layer/layer_options.h"

#include "common/harness/base/text.h"

namespace gg {
namespace {

constexpr const char* kHelp =
    "  (no option)          check a small layer; then time the layers, or count on the emulator\n"
    "  --check              only that half\n"
    "  --bench              only that half, after the small layer's gradients and, of each layer that is "
    "timed, what each\n"
    "                       launch made of its operands; on the emulator it counts\n"
    "  --device D           auto (default), gpu or emu\n"
    "  --layer NAME[,NAME]  what --bench times: mixtral, qwen3, deepseek (default all)\n"
    "  --steps N            of the training that --check watches: 3 on the emulator, 50 on a GPU\n"
    "  --differences FILE   finite differences for many steps h, as CSV\n"
    "  --csv FILE           append a row for each time\n"
    "  --counts-csv FILE    accepted and not used: other chapters write counts there\n"
    "  --seed S             the data (default 1)\n"
    "  --order S[:skew]     the emulator's order of warps (default 0)\n"
    "  --describe           JSON: id, title and the layers\n"
    "  --help               this\n";

}  // namespace

std::string text_of(const LayerSizes& s) {
  return format("%d tokens, %d of %d experts each, hidden %d, inner %d", s.tokens, s.top_k, s.experts,
                s.hidden, s.inner);
}

std::string layer_help(const char* id, const char* title) { return format("%s: %s\n\n%s", id, title, kHelp); }

LayerOptions parse_layer_options(int argc, char** argv) {
  LayerOptions options;
  options.take_order_of_emulator();
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&] {
      GG_REQUIRE(i + 1 < argc && *argv[i + 1], "%s: a value must follow it", option.c_str());
      return std::string(argv[++i]);
    };
    if (option == "--check") {
      options.bench = false;
    } else if (option == "--bench") {
      options.check = false;
    } else if (option == "--help") {
      options.help = true;
    } else if (option == "--describe") {
      options.describe = true;
    } else if (option == "--device") {
      options.take_device(value());
    } else if (option == "--layer") {
      for (const std::string& name : split(value(), ',')) {
        const NamedLayer* found = nullptr;
        for (const NamedLayer& each : kLayers)
          if (name == each.name) found = &each;
        GG_REQUIRE(found, "--layer %s: mixtral, qwen3 and deepseek are accepted", name.c_str());
        options.layers.push_back(*found);
      }
    } else if (option == "--steps") {
      options.steps = int(whole_number("steps", value(), 1, 100000));
    } else if (option == "--seed") {
      options.seed = uint64_t(whole_number("seed", value(), 0, INT64_MAX));
    } else if (option == "--order") {
      options.take_order(value());
    } else if (option == "--csv") {
      options.csv = value();
    } else if (option == "--counts-csv") {
      value();
    } else if (option == "--differences") {
      options.differences = value();
    } else {
      fail(Exit::bad_input, "%s: no such option; --help lists them", option.c_str());
    }
  }
  GG_REQUIRE(options.check || options.bench, "--check and --bench: only one of them, or none for both");
  if (options.layers.empty()) options.layers.assign(std::begin(kLayers), std::end(kLayers));
  return options;
}

}  // namespace gg
