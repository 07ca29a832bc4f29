// SPDX-License-Identifier: MIT
//
// Rows and lines of a run.

#include "common/harness/run/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/harness/base/text.h"
#include "common/harness/run/choices.h"
#include "common/harness/verify/problem_files.h"

namespace gg {

const std::vector<std::string> kResultColumns = {
    "chapter",      "kernel",          "device",    "arch",    "clock_mhz",
    "cuda",         "commit",          "date",      "set",     "groups",
    "m_total",      "m_max",           "n",         "k",       "format",
    "warm",         "us_median",       "us_p10",    "us_p90",  "tflops",
    "gbytes_per_s", "roof_tflops",     "roof_kind", "prep_us", "peer",
    "ok",           "clock_after_mhz", "power_w",   "version"};
const std::vector<std::string> kCountColumns = {"chapter", "set", "order", "counter", "value"};

// Names the reader's choices of the epilogue beyond the defaults.
static std::string epilogue_name(const Chapter& chapter, const Options& options) {
  const EpilogueChoices& choices = chapter.epilogue;
  const Epilogue& e = options.request.epilogue;
  std::string name;
  if (!choices.c_types.empty() && options.request.formats.c != choices.c_types[0])
    name += format(" c=%s", format_info(options.request.formats.c).name);
  if (e.bias) name += format(" bias=%s", format_info(e.bias_format).name);
  if (e.sfd_row) name += e.discrete_col_sfd ? " sfd=discrete" : " sfd";
  if (options.request.weights == Weights::discrete) name += " weights=discrete";
  if (!choices.activations.empty() && e.activation != choices.activations[0])
    name += format(" act=%s", activation_name(e.activation));
  if (e.butterfly) name += " butterfly";
  if (options.request.scheduler == Scheduler::dynamic) name += " dynamic";
  return name;
}

std::string kernel_name(const Chapter& chapter, const Options& options, ClusterTileShape tile,
                        const std::string& peer) {
  std::string name = peer.empty() ? "grouped_gemm" : peer;
  bool other_d = options.other_d;
  // How the chapter solves the problem: a library does not know.
  if (peer.empty() || peer == kAllIdeas) {
    if (tile.m) name += " " + tile_name(tile);
    if (tile.m && !cluster_names(chapter).empty()) name += " " + cluster_name(tile);
    for (const auto& [number, value] : options.request.numbers)
      name += format(" %s=%d", number.c_str(), value);
    if (!options.off.empty()) name += " off=" + join(options.off, "+");
  } else {
    other_d = options.request.formats.d != options.request.formats.a;
  }
  if (other_d) name += format(" d=%s", format_info(options.request.formats.d).name);
  if (!chapter.b_layouts.empty() && options.request.b_layout != chapter.b_layouts[0])
    name += format(" b=%s", layout_name(options.request.b_layout));
  name += epilogue_name(chapter, options);
  if (options.request.accumulate) name += " accumulate";
  if (options.shared_b) name += " shared-b";
  if (options.sustained) name += " sustained";
  return name;
}

// Returns the bytes that an epilogue moves for a group of m rows.
static double bytes_of_epilogue(const Epilogue& e, const Formats& formats, double m, double n) {
  constexpr int kBlock = 32;  // values to a scale
  if (!has_tensor(Tensor::alpha, formats, e) || m == 0) return 0;
  double bits = 32 + 32 * m + (e.amax ? 32 : 0);  // alpha, prob, amax
  if (e.bias) bits += n * format_info(e.bias_format).bits;
  if (e.has_c()) bits += m * n * format_info(formats.c).bits;
  if (e.is_glu_gradient())  // C, dprob, dbias
    bits += m * 2 * n * format_info(formats.c).bits + 32 * m + 2 * n * 32;
  if (e.sfd_row) bits += m * std::ceil(n / kBlock) * 8;
  if (e.sfd_col) bits += m * n * format_info(formats.d).bits + n * std::ceil(m / kBlock) * 8;
  return bits / 8;
}

double unavoidable_bytes(const Shape& shape, const Formats& formats, const Epilogue& epilogue) {
  double bytes = 0;
  for (int g = 0; g < shape.groups(); ++g) {
    const double m = shape.m[size_t(g)], n = shape.n_of(g), k = shape.k_of(g);
    const double d_n = epilogue.columns_of_d(shape.n_of(g));
    // Bits of a row's scales.
    const double scales = formats.has_scales() ? k * 8 / formats.scaling().block : 0;
    if (m > 0)
      bytes += m * (k * format_info(formats.a).bits + scales + d_n * format_info(formats.d).bits) / 8;
    if (m > 0 && (!shape.shared_b || g == 0)) bytes += n * (k * format_info(formats.b).bits + scales) / 8;
    bytes += bytes_of_epilogue(epilogue, formats, m, n);
  }
  return bytes;
}

double bytes_of_launch(const Shape& shape, const Setup& setup) {
  const Formats& formats = setup.request.formats;
  if (setup.product == Product::forward) return unavoidable_bytes(shape, formats, setup.request.epilogue);
  double bits = 0;
  for (int g = 0; g < shape.groups(); ++g) {
    const double m = shape.m[size_t(g)], n = shape.n_of(g), k = shape.k_of(g);
    const bool adds = setup.request.accumulate;  // reads D and writes it, where there are rows
    const int times_d = adds ? (m > 0 ? 2 : 0) : 1;
    bits += m * k * format_info(formats.a).bits + m * n * format_info(formats.b).bits +
            times_d * k * n * format_info(formats.d).bits;
  }
  return bits / 8;
}

Row result_row(const Session& session, const Shape& shape, const ClusterTileShape& tile,
               const std::string& peer, const std::string& version) {
  const Device& device = session.device;
  const auto largest = [](const std::vector<int>& values) {
    return std::to_string(*std::max_element(values.begin(), values.end()));
  };
  return {{"chapter", session.chapter.id},
          {"kernel", kernel_name(session.chapter, session.options, tile, peer)},
          {"device", device.name},
          {"arch", std::to_string(device.capability)},
          {"cuda", device.cuda},
          {"commit", commit()},
          {"date", today()},
          {"set", shape.set},
          {"groups", std::to_string(shape.groups())},
          {"m_total", std::to_string(shape.m_total())},
          {"m_max", std::to_string(shape.m_max())},
          {"n", largest(shape.n)},
          {"k", largest(shape.k)},
          {"format", session.setup.request.formats.name()},
          {"peer", peer},
          {"ok", "1"},
          {"version", version}};
}

void add_timing(Row& row, const Shape& shape, const Setup& setup, const Timing& timing, bool warm,
                const Roof& roof) {
  const Formats& formats = setup.request.formats;
  const double bytes = bytes_of_launch(shape, setup);
  const auto set = [&](const char* column, double value) {
    if (value > 0) row[column] = number_text(value);
  };
  row["warm"] = warm ? "1" : "0";
  set("us_median", timing.median);
  set("us_p10", timing.p10);
  set("us_p90", timing.p90);
  set("tflops", shape.flops() / timing.median * 1e-6);
  set("gbytes_per_s", bytes / timing.median * 1e-3);
  set("clock_mhz", timing.clock_mhz);
  set("clock_after_mhz", timing.clock_after_mhz);
  set("power_w", timing.power_w);
  const double matrix = roof.tflops_of(formats.a);
  const double memory = roof.gbytes_per_s * 1e-3 * shape.flops() / bytes;
  if (matrix > 0 && memory > 0) {
    set("roof_tflops", std::min(matrix, memory));
    row["roof_kind"] = matrix < memory ? "matrix" : "bandwidth";
  }
}

std::vector<Row> count_rows(const Session& session, const std::string& set, const Counters& total) {
  std::vector<Row> rows;
  for (const auto& [counter, value] : total) {
    rows.push_back({{"chapter", session.chapter.id},
                    {"set", set},
                    {"order", session.options.order()},
                    {"counter", counter},
                    {"value", std::to_string(value)}});
  }
  return rows;
}

void print_start(const Session& session) {
  const Device& device = session.device;
  const std::string how = device.emulated ? "order " + session.options.order() : "CUDA " + device.cuda;
  std::string sizes;
  if (device.emulated && session.options.check) {
    const int whole = device.multiprocessors;
    const int few = small_multiprocessors(whole, session.options.request.tile.cluster);
    const std::string some = kSomeMultiprocessors < whole ? format(", %d", kSomeMultiprocessors) : "";
    sizes = few < whole ? format(" with %d%s and %d multiprocessors", whole, some.c_str(), few)
                        : format(" with %d multiprocessor%s", whole, whole == 1 ? "" : "s");
  }
  std::printf("%s on %s (%d.%d)%s, %s: %s -> %s\n", session.chapter.id, device.name.c_str(),
              device.capability / 10, device.capability % 10, sizes.c_str(), how.c_str(),
              session.options.request.formats.name(), format_info(session.options.request.formats.d).name);
  std::fflush(stdout);
}

void print_check(const Shape& shape, const CheckResult& result) {
  if (result.failure) {
    std::printf("check  %-8s FAILED (%s): %s\n", shape.set.c_str(), symptom_name(result.failure->symptom),
                result.failure->sentence.c_str());
  } else if (!result.note.empty()) {
    std::printf("check  %-8s ok  %s; %s\n", shape.set.c_str(), shape.describe().c_str(), result.note.c_str());
  } else {
    const char* const data = shape.set == kFromFiles ? "operands from files" : "random data";
    std::printf("check  %-8s ok  %s; %s: worst error %.0f %% of the limit\n", shape.set.c_str(),
                shape.describe().c_str(), data, result.worst_ratio * 100);
  }
  std::fflush(stdout);
}

void print_form(const std::string& words, const CheckResult& result) {
  if (result.failure) {
    std::printf("check  form     FAILED (%s): %s: %s\n", symptom_name(result.failure->symptom), words.c_str(),
                result.failure->sentence.c_str());
  } else if (!result.note.empty()) {
    std::printf("check  form     ok  %s: %s\n", words.c_str(), result.note.c_str());
  } else {
    std::printf("check  form     ok  %s: worst error %.0f %% of the limit\n", words.c_str(),
                result.worst_ratio * 100);
  }
  std::fflush(stdout);
}

void print_failed(const char* half, const Shape& shape, const char* left_out, const Failure& why) {
  std::printf("%-6s %-8s FAILED its check on random data (%s), so it is not %s: %s: %s\n", half,
              shape.set.c_str(), symptom_name(why.symptom), left_out, shape.describe().c_str(),
              why.sentence.c_str());
}

void print_wrong_replay(const Row& row, const Shape& shape) {
  std::printf(
      "time   %-8s %s FAILED: what was timed gives a wrong output when it runs again, so its times are "
      "not printed: %s\n",
      shape.set.c_str(), row.at("peer").empty() ? row.at("kernel").c_str() : row.at("peer").c_str(),
      shape.describe().c_str());
}

// The counters that are not zero, those of a kind on a line.
void print_counts(const Counters& counters, const Shape& shape) {
  constexpr size_t kColumns = 110, kIndent = 19;
  std::printf("count  %-8s %s", shape.set.c_str(), shape.describe().c_str());
  std::string before;
  size_t column = 0;
  for (const auto& [counter, value] : counters) {
    if (value == 0) continue;
    std::string kind = counter.substr(0, counter.find('_')), rest = counter;
    if (kind == "instructions" || kind == "global" || kind == "shared") {
      rest = counter == kind ? "all" : counter.substr(kind.size() + 1);
    } else {
      kind = "other";
    }
    const std::string text = format("  %s %llu", rest.c_str(), static_cast<unsigned long long>(value));
    if (kind != before || column + text.size() > kColumns) {
      std::printf("\n       %-12s", kind == before ? "" : kind.c_str());
      column = kIndent;
    }
    std::printf("%s", text.c_str());
    column += text.size();
    before = kind;
  }
  std::printf("\n");
  std::fflush(stdout);
}

void print_times(const Row& row, const Shape& shape) {
  const auto value = [&](const char* column) {
    const auto found = row.find(column);
    return found == row.end() || found->second.empty() ? 0.0 : std::stod(found->second);
  };
  std::printf("time   %-8s %s %-14s %9.1f us (%.1f .. %.1f)  %6.1f TFLOP/s  %6.0f GB/s", shape.set.c_str(),
              value("warm") > 0 ? "warm" : "cold",
              row.at("peer").empty() ? row.at("kernel").c_str() : row.at("peer").c_str(), value("us_median"),
              value("us_p10"), value("us_p90"), value("tflops"), value("gbytes_per_s"));
  if (value("roof_tflops") > 0) {
    std::printf("  %3.0f %% of the %s roof", 100 * value("tflops") / value("roof_tflops"),
                row.at("roof_kind").c_str());
  }
  std::printf("  %s\n", shape.describe().c_str());
  std::fflush(stdout);
}

void print_end(const Session& session) {
  const Tally& tally = session.tally;
  const int problems = tally.checked - tally.forms;
  if (tally.failed > 0) {
    const std::string forms =
        tally.forms ? format(" and %d of %d other forms", tally.failed_forms, tally.forms) : "";
    std::printf("%s: FAILED, %d of %d problems%s are wrong\n", session.chapter.id,
                tally.failed - tally.failed_forms, problems, forms.c_str());
    return;
  }
  const std::string where =
      session.device.emulated ? " on the emulator, order " + session.options.order() : "";
  std::printf("%s: ok, %d %s%s checked%s", session.chapter.id, problems,
              problems == 1 ? "problem" : "problems",
              tally.forms ? format(" and %d other forms", tally.forms).c_str() : "", where.c_str());
  if (tally.worst_factor > 0)
    std::printf("; worst %serror %.0f %% of the limit, 2^%.1f of sum |a*b| beyond rounding",
                session.options.in_dir.empty() ? "random " : "", tally.worst_ratio * 100,
                std::log2(tally.worst_factor));
  if (tally.forms)
    std::printf("; left out: forms together, %slarger sets (--help)",
                session.device.emulated ? "other orders, " : "");
  std::printf("\n");
}

}  // namespace gg
