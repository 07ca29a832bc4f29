// SPDX-License-Identifier: MIT
//
// The trials of a launch with an epilogue, in order: whole numbers; whole sums with any alpha, prob and bias,
// where every rounding of the epilogue shows; random data, twice, over two fills; what may change no bit;
// other offsets over the previous output; NaN in the neighbours.

#include "common/verify/epilogue_trials.h"

#include <algorithm>
#include <cstring>

#include "common/verify/epilogue_diagnose.h"
#include "common/verify/operand_files.h"
#include "common/verify/output.h"

namespace gg {
namespace {

constexpr int kUnlikeNan = 0x5A;  // a fill that is an ordinary number in every format

class EpilogueTrials {
 public:
  EpilogueTrials(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                 const CheckOptions& options, const GivenOperands* given = nullptr)
      : machine_(machine),
        setup_(setup),
        given_(given),
        launch_(launch),
        shape_(shape),
        options_(options),
        buffers_(machine, setup, shape) {}
  EpilogueTrials(const EpilogueTrials&) = delete;
  EpilogueTrials& operator=(const EpilogueTrials&) = delete;
  ~EpilogueTrials() { machine_.play_small(false); }

  CheckResult run_given() {
    const auto launch = [this] { launch_once(); };
    given_->fill(machine_, buffers_, 0xFF);
    if (trial("operands from files", launch, 0xFF)) return result_;
    const OutputImages first = after_;
    if (launch_over("operands from files, over another fill", launch, kUnlikeNan)) return result_;
    if (same_bits(first, "two launches on the same data differ")) return result_;
    if (play(small)) trial("operands from files", launch, 0xFF);
    note("operands from files");
    return result_;
  }

  CheckResult run() {
    const int k = shape_.k_of(0);
    const Fill integers{Fill::Kind::integers, integer_range(k), options_.seed * 4 + 1, 0};
    const Fill normal{Fill::Kind::normal, 0, options_.seed * 4 + 2, 0};

    // Where the machine plays devices of two sizes, the trials take turns on them.
    std::function<void()> on_whole = [this] { launch_once(); }, on_small = on_whole;
    fill(integers, integers);
    if (trial("whole numbers", on_whole, 0xFF)) return result_;
    if (not_exact()) return result_;
    if (options_.graph_replay) on_small = on_whole = captured();
    if (play(small) && options_.graph_replay) on_small = captured();

    fill(integers, normal);
    aim();
    if (trial("whole sums", on_small, 0xFF) || not_exact()) return result_;
    play(whole);
    fill(normal, normal);
    if (trial("random data", on_whole, 0xFF)) return result_;
    note("random data");
    const OutputImages first = after_;
    play(small);
    if (launch_over("random data again, over another fill", on_small, kUnlikeNan)) return result_;
    if (same_bits(first, "two launches on the same data differ")) return result_;
    if (options_.neighbours ? false : variants(first, normal)) return result_;

    play(whole);
    Fill others = integers;
    others.seed = options_.seed * 4 + 3;
    Shape replay = setup_.equal_groups ? shape_ : other_offsets(shape_, setup_.m_multiple);
    buffers_.set_shape(replay);
    fill(others, {Fill::Kind::normal, 0, others.seed, 0});
    const std::string name =
        format("%sother %s, over the previous output", options_.graph_replay ? "graph replay with " : "",
               setup_.equal_groups ? "data" : "offsets");
    if (trial(name.c_str(), on_whole, std::nullopt)) return result_;
    if (options_.neighbours && shape_.groups() > 1) neighbours(integers, on_small, on_whole);
    return result_;
  }

 private:
  // Operands of the product, and those of the epilogue.
  void fill(const Fill& product, const Fill& epilogue) {
    again_ = [this, product, epilogue](int unowned) {
      buffers_.fill_operands(product, skipped_, unowned);
      buffers_.fill_epilogue(random_operands(setup_, buffers_.shape(), epilogue, skipped_), unowned);
    };
    again_(0xFF);
  }

  // Moves prob so that scales lie beside the numbers where their codes change.
  void aim() {
    const HostCopy copy = host_copy();
    EpilogueOperands operands = buffers_.epilogue().operands();
    aim_at_boundaries(
        buffers_,
        products_of(copy.matrices(setup_.formats), buffers_.layout(), {buffers_.layout().groups, {}, 0}),
        operands, options_.seed);
    const auto product = again_;
    again_ = [this, product, operands](int unowned) {
      product(unowned);
      buffers_.fill_epilogue(operands, unowned);
    };
    buffers_.fill_epilogue(operands);
  }

  void neighbours(const Fill& integers, const std::function<void()>& on_small,
                  const std::function<void()>& on_whole) {
    buffers_.set_shape(shape_);
    for (int parity = 0; parity < 2; ++parity) {
      skipped_.assign(size_t(shape_.groups()), false);
      for (size_t g = 0; g < skipped_.size(); ++g) skipped_[g] = int(g % 2) == parity;
      fill(integers, integers);
      play(parity == 0 ? small : whole);
      if (trial("NaN in the neighbouring groups' operands", parity == 0 ? on_small : on_whole, 0xFF)) return;
    }
  }

  // The device that launches from now on find; false where the machine has one of one size.
  enum Played { whole, small };
  bool play(Played size) {
    const int few = machine_.play_small(size == small);
    on_few_ = size == small ? few : 0;
    return few > 0;
  }
  std::function<void()> captured() {
    return machine_.captured([this](cudaStream_t stream) { launch_(buffers_.problem(), stream); });
  }
  void launch_once() {
    machine_.run([this](cudaStream_t stream) { launch_(buffers_.problem(), stream); });
  }

  bool fail(Symptom symptom, const std::string& text) {
    const std::string where = on_few_ ? format(" on %d multiprocessors", on_few_) : "";
    result_.failure = Failure{symptom, format("%s, %s%s: %s", shape_.describe().c_str(), name_.c_str(),
                                              where.c_str(), text.c_str())};
    return true;
  }

  // A launch over outputs filled with a byte, or over what they hold; true if it wrote what it must not.
  bool launch_over(const std::string& name, const std::function<void()>& launch, std::optional<int> byte) {
    name_ = name;
    if (byte) {
      buffers_.poison(*byte);
    } else {
      buffers_.epilogue().reset_amax();
    }
    before_ = download_outputs(machine_, buffers_);
    launch();
    after_ = download_outputs(machine_, buffers_);
    for (int i = 0; i < kOutputs; ++i) {
      const std::vector<char>&was = before_[size_t(i)].bytes, &is = after_[size_t(i)].bytes;
      const std::vector<uint8_t> owned = owned_bytes(buffers_, Output(i), is.size());
      for (size_t byte_at = 0; byte_at < is.size(); ++byte_at) {
        if (!owned[byte_at] && was[byte_at] != is[byte_at]) return outside(Output(i), byte_at);
      }
    }
    return false;
  }

  bool outside(Output output, size_t byte) {
    const Layout& layout = buffers_.layout();
    const int64_t inside = int64_t(byte) - int64_t(after_[size_t(output)].start);
    const Format type = format_of_output(setup_.formats, output);
    std::string where = format("byte %lld", static_cast<long long>(inside));
    if (output == Output::d || output == Output::d_col || output == Output::c) {
      const int64_t cols = output == Output::d ? layout.groups[0].d.cols : layout.groups[0].n;
      const int64_t element = inside * 8 / format_info(type).bits;
      const int64_t row = element >= 0 ? element / cols : -((-element + cols - 1) / cols);
      where = format("row %lld, column %lld", static_cast<long long>(row),
                     static_cast<long long>(element - row * cols));
    }
    // A layout may be wrong as a whole.
    compare();
    const Failure known =
        last_.failures() ? explain_epilogue(buffers_, host_copy(), after_, skipped_, last_, options_.seed)
                         : Failure{};
    const bool is_known = known.symptom != Symptom::unknown;
    return fail(is_known ? known.symptom : Symptom::out_of_bounds,
                format("%s: a write outside what the groups own: %s as seen from its start, where the groups "
                       "have %lld of %lld rows; the first such place%s%s",
                       output_name(output), where.c_str(), static_cast<long long>(layout.offsets.back()),
                       static_cast<long long>(layout.rows), is_known ? "; " : "",
                       is_known ? known.sentence.c_str() : ""));
  }

  bool trial(const std::string& name, const std::function<void()>& launch, std::optional<int> byte) {
    return launch_over(name, launch, byte) || compared(launch);
  }

  HostCopy host_copy() {
    return {downloaded(machine_, buffers_.a(), buffers_.a_bytes()),
            downloaded(machine_, buffers_.b(), buffers_.b_bytes()),
            {},
            downloaded(machine_, buffers_.sfa(), buffers_.sfa_bytes()),
            downloaded(machine_, buffers_.sfb(), buffers_.sfb_bytes()),
            {}};
  }
  void compare() {
    const HostCopy copy = host_copy();
    const std::vector<Band> bands = products_of(copy.matrices(setup_.formats), buffers_.layout(),
                                                {buffers_.layout().groups, skipped_, options_.seed});
    last_ = compare_outputs(buffers_, bands, skipped_, after_);
  }
  bool compared(const std::function<void()>& launch) {
    compare();
    Output output = Output::d;
    const OutputTally* tally = last_.first_failure(output);
    return tally && explain(launch, output, *tally);
  }

  // The harness's own data must decide every rounding where it says so.
  bool not_exact() {
    if (last_.exact == last_.products) return false;
    return fail(
        Symptom::unknown,
        format("the harness's own data are too large: %lld of %lld sums are not exact",
               static_cast<long long>(last_.products - last_.exact), static_cast<long long>(last_.products)));
  }

  // True, with the failure, where an owned byte differs from another launch's.
  bool same_bits(const OutputImages& other, const std::string& what) {
    for (int i = 0; i < kOutputs; ++i) {
      const std::vector<char>& is = after_[size_t(i)].bytes;
      const std::vector<uint8_t> owned = owned_bytes(buffers_, Output(i), is.size());
      for (size_t byte = 0; byte < is.size(); ++byte) {
        if (!owned[byte] || is[byte] == other[size_t(i)].bytes[byte]) continue;
        const std::string where =
            format("%s, first in %s at byte %lld: looks like a race, or an order that decides", what.c_str(),
                   output_name(Output(i)),
                   static_cast<long long>(byte) - static_cast<long long>(after_[size_t(i)].start));
        return fail(Symptom::nondeterministic, where);
      }
    }
    return false;
  }

  // What a reader may choose without changing a bit: weights by pointers, tiles by a counter, another tile.
  bool variants(const OutputImages& first, const Fill& data) {
    std::vector<std::pair<std::string, Setup>> others;
    const auto add = [&](const std::string& name) -> Setup& {
      return others.emplace_back(name, setup_).second;
    };
    Epilogue e = setup_.epilogue;
    if (setup_.same_bits.weights && !(e.bias && e.bias_format == Format::f32))
      add(e.discrete ? "dense weights" : "discrete weights").epilogue.discrete = !e.discrete;
    if (setup_.same_bits.schedule)
      add(e.dynamic ? "a static schedule" : "a dynamic schedule").epilogue.dynamic = !e.dynamic;
    for (const ClusterTileShape& tile : setup_.same_bits.tiles) {
      const ClusterTileShape& ours = setup_.tile;
      if (tile.m == ours.m && tile.n == ours.n && tile.cluster == ours.cluster) continue;
      add(format("tile %dx%d in a cluster of %d", tile.m, tile.n, tile.cluster)).tile = tile;
    }
    const OutputImages ours = after_;
    for (const auto& [name, setup] : others) {
      Buffers buffers(machine_, setup, shape_);
      buffers.fill_operands(data);
      buffers.poison(0xFF);
      machine_.run([&](cudaStream_t stream) { launch_(buffers.problem(), stream); });
      after_ = download_outputs(machine_, buffers);
      name_ = "random data with " + name;
      if (same_bits(first, "the outputs differ from those without")) return true;
    }
    return false;
  }

  void note(const char* data) {
    const auto number = [](int64_t value) { return static_cast<long long>(value); };
    std::string outputs;
    for (int i = 0; i < kOutputs; ++i) {
      if (!after_[size_t(i)].bytes.empty())
        outputs += (outputs.empty() ? "" : ", ") + std::string(output_name(Output(i)));
    }
    result_.note = format("%s; %s: %lld of %lld values beside the nearest, within their bound",
                          outputs.c_str(), data, number(last_.loose()), number(last_.checked()));
  }

  bool explain(const std::function<void()>& launch, Output output, const OutputTally& tally);
  // The failing element after one more launch over another fill.
  uint32_t relaunched(const std::function<void()>& launch, int byte, Output output, size_t at) {
    buffers_.poison(byte);
    launch();
    return element_at(download_outputs(machine_, buffers_)[size_t(output)], output, at);
  }
  uint32_t element_at(const OutputImage& image, Output output, size_t at) const {
    uint32_t code = 0;
    std::memcpy(&code, &image.bytes[at], bytes_of(format_of_output(setup_.formats, output), 1));
    return code;
  }

  Machine& machine_;
  const Setup& setup_;
  const GivenOperands* given_;
  const Launch& launch_;
  const Shape& shape_;
  const CheckOptions& options_;
  Buffers buffers_;
  OutputImages before_, after_;
  std::vector<bool> skipped_;
  std::function<void(int)> again_ = [this](int unowned) { given_->fill(machine_, buffers_, unowned); };
  std::string name_;
  int on_few_ = 0;  // multiprocessors of the small device while it is played
  EpilogueComparison last_;
  CheckResult result_;
};

bool EpilogueTrials::explain(const std::function<void()>& launch, Output output, const OutputTally& tally) {
  const Format type = format_of_output(setup_.formats, output);
  const size_t at = tally.byte;
  const EpilogueComparison seen = last_;
  const OutputImages images = after_;
  const uint32_t got = element_at(images[size_t(output)], output, at);
  std::string place = output == Output::amax
                          ? format("group %d", tally.group)
                          : format("group %d row %d column %d", tally.group, tally.row, tally.col);
  const std::string where = format(
      "%s: %lld of %lld values are wrong; the first: %s, expected %s, got %.9g (0x%0*X)", output_name(output),
      static_cast<long long>(tally.failures), static_cast<long long>(tally.checked), place.c_str(),
      tally.expected.c_str(), double(decode(type, got)), format_info(type).bits / 4, got);

  const auto mask = uint32_t((uint64_t(1) << format_info(type).bits) - 1);
  if (got == element_at(before_[size_t(output)], output, at)) {
    const uint32_t start = output == Output::amax ? got : mask;  // amax starts the same each time
    const bool follows =
        relaunched(launch, 0xFF, output, at) == start &&
        (output == Output::amax || relaunched(launch, kUnlikeNan, output, at) == (0x5A5A5A5Au & mask));
    if (follows) return fail(Symptom::unwritten, where + ": it was never written");
    if (got != mask)
      return fail(Symptom::stale, where + ": it still holds what the buffer held before the launch");
  }
  for (OutputImages* each : {&before_, &after_}) {
    buffers_.poison(0xFF);
    launch();
    *each = download_outputs(machine_, buffers_);
  }
  if (same_bits(before_, "two launches on the same data differ")) return true;
  if (is_nan(type, got) && tally.expected.find("nan") == std::string::npos) {
    const auto right_with = [&](int unowned) {
      again_(unowned);
      buffers_.poison(0xFF);
      launch();
      after_ = download_outputs(machine_, buffers_);
      compare();
      return last_.failures() == 0;
    };
    const std::vector<bool> nan_groups = skipped_;
    if (!nan_groups.empty()) {
      skipped_.clear();
      if (right_with(0xFF))
        return fail(Symptom::neighbour_read,
                    where + ": NaN only while the neighbouring groups hold NaN: their operands are read");
      skipped_ = nan_groups;
    }
    if (right_with(0))
      return fail(Symptom::padding_read,
                  where + ": NaN only while elements that no group owns are NaN: they are read");
    again_(0xFF);
  }
  const Failure known = explain_epilogue(buffers_, host_copy(), images, skipped_, seen, options_.seed);
  const bool is_unknown_nan = known.symptom == Symptom::unknown && is_nan(type, got);
  return fail(is_unknown_nan ? Symptom::nan : known.symptom, where + "; " + known.sentence);
}

}  // namespace

CheckResult check_epilogue(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                           const CheckOptions& options) {
  return EpilogueTrials(machine, setup, launch, shape, options).run();
}

CheckResult check_given_epilogue(Machine& machine, const Setup& setup, const Launch& launch,
                                 const GivenOperands& given) {
  const CheckOptions options;
  return EpilogueTrials(machine, setup, launch, given.shape, options, &given).run_given();
}

}  // namespace gg
