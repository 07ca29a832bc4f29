// SPDX-License-Identifier: MIT
//
// The trials that an operator's judge lists, one after the other. On the emulator some of them run
// on a small device, whose blocks have several tiles.

#include "common/harness/verify/trials.h"

#include <algorithm>
#include <memory>

#include "common/harness/verify/problem_files.h"
#include "common/harness/verify/right_outputs.h"

namespace gg {

int integer_range(int k) {
  int range = 16;
  for (int64_t limit = 8192; k > limit && range > 1; limit *= 4) range /= 2;
  return range;
}

Shape other_offsets(const Shape& shape, int step) {
  Shape other = shape;
  other.unpadded.clear();
  std::rotate(other.m.begin(), other.m.begin() + (other.m.empty() ? 0 : 1), other.m.end());
  if (other.m != shape.m) return other;
  // Equal groups, or one: the first gives up a step of rows, to its neighbour if it has one.
  if (!other.m.empty() && other.m[0] >= step) {
    other.m[0] -= step;
    if (other.m.size() > 1) other.m[1] += step;
  }
  return other;
}

namespace {

// The outputs of a problem once more, on its machine.
class Copies {
 public:
  Copies(Machine& machine, const Buffers& buffers, const char* which) : machine_(machine), buffers_(buffers) {
    for (const Tensor output : buffers.outputs()) {
      const std::string what = format("%s of %s", which, tensor_name(output));
      memory_[size_t(output)] = {machine.allocate(buffers.of(output).bytes, what.c_str()),
                                 [&machine](void* memory) { machine.release(memory); }};
    }
  }

  void* of(Tensor output) const { return memory_[size_t(output)].get(); }
  // Copies what `from` has of an output: these buffers or others of the same problem.
  void take(Tensor output, const void* from) const {
    machine_.copy(of(output), from, buffers_.of(output).bytes);
  }
  void take(const Buffers& from) const {
    for (const Tensor output : buffers_.outputs()) take(output, from.of(output).memory.get());
  }

 private:
  Machine& machine_;
  const Buffers& buffers_;
  std::array<std::shared_ptr<void>, kTensors> memory_;
};

// Choices that must not change a bit: weights by pointers, tiles by a counter, another tile.
std::vector<std::pair<std::string, Setup>> same_bits_with(const Setup& ours) {
  std::vector<std::pair<std::string, Setup>> others;
  const auto add = [&](const std::string& name) -> Setup& { return others.emplace_back(name, ours).second; };
  const Epilogue& e = ours.request.epilogue;
  if (ours.same_bits.weights && !(e.bias && e.bias_format == Format::f32)) {
    const bool dense = ours.request.weights == Weights::dense;
    add(dense ? "discrete weights" : "dense weights").request.weights =
        dense ? Weights::discrete : Weights::dense;
  }
  if (ours.same_bits.schedule) {
    const bool fixed = ours.request.scheduler == Scheduler::fixed;
    add(fixed ? "a dynamic schedule" : "a static schedule").request.scheduler =
        fixed ? Scheduler::dynamic : Scheduler::fixed;
  }
  for (const ClusterTileShape& tile : ours.same_bits.tiles) {
    if (tile.m == ours.request.tile.m && tile.n == ours.request.tile.n &&
        tile.cluster == ours.request.tile.cluster)
      continue;
    add(format("tile %dx%d in a cluster of %d", tile.m, tile.n, tile.cluster)).request.tile = tile;
  }
  return others;
}

class Trials {
 public:
  Trials(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
         const CheckOptions& options, const GivenOperands* given = nullptr)
      : machine_(machine),
        given_(given),
        launch_(launch),
        shape_(shape),
        options_(options),
        replay_(setup.equal_groups ? shape : other_offsets(shape, setup.m_multiple)),
        buffers_(machine, setup, shape, &replay_),
        before_(machine, buffers_, "a copy"),
        kept_(machine, buffers_, "a second copy"),
        scratch_(machine, buffers_, "a third copy"),
        judge_(judge_of(machine, buffers_, options.seed)) {}
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;
  ~Trials() { play(Played::whole); }

  CheckResult run() {
    const std::vector<Trial>& trials = given_ ? judge_->trials_from_files() : judge_->trials();
    for (const Trial& trial : trials) {
      if (is_left_out(trial)) continue;
      if (failed(trial)) break;
      if (&trial == &trials.front() && options_.graph_replay) record();
    }
    return result_;
  }

 private:
  bool is_left_out(const Trial& trial) {
    if (options_.brief && !trial.brief) return true;
    if (trial.if_small) return !play(Played::small);
    if (trial.variants) return options_.neighbours;
    return trial.nan_groups >= 0 && (!options_.neighbours || shape_.groups() < 2 || shape_.shared_b);
  }

  // True, with the failure in the result.
  bool failed(const Trial& trial) {
    trial_ = &trial;
    const std::vector<Trial>& trials = given_ ? judge_->trials_from_files() : judge_->trials();
    const Doing now(machine_,
                    format("trial %td of %zu, %s", &trial - trials.data() + 1, trials.size(), trial.name));
    question_.exact = trial.exact;
    question_.nan_allowed = given_ != nullptr;
    if (trial.variants) return variants();
    if (trial.data != Data::as_before) install(trial);
    play(trial.on);
    const bool is_kept =
        trial.same_bits && (on_few_ == 0 || buffers_.setup().same_bits.fewer_multiprocessors);
    const bool wrong = launch_over(trial.over) || (is_kept ? differs_from_kept() : compared());
    if (wrong) return true;
    if (trial.telling) {
      if (const std::string why = judge_->not_telling(last_); !why.empty())
        return fail({Symptom::unknown, why});
    }
    if (trial.kept) kept_.take(buffers_);
    if (trial.reported) report();
    return false;
  }

  // The shape and the operands that a trial wants.
  void install(const Trial& trial) {
    if (trial.other_offsets) buffers_.set_shape(replay_);
    if (trial.nan_groups >= 0) buffers_.set_shape(shape_);
    question_.skipped.clear();
    for (int g = 0; trial.nan_groups >= 0 && g < shape_.groups(); ++g)
      question_.skipped.push_back(g % 2 == trial.nan_groups);
    data_ = trial.data;
    fill(0xFF);
  }

  // The operands of the trial again, with this byte in all that no group owns.
  void fill(int unowned) {
    const Doing now(machine_, "its data");
    const uint64_t seed = options_.seed * 4;
    const int range = integer_range(buffers_.layout().longest_sum());
    const Fill integers{Fill::Kind::integers, range, seed + 1, 0},
        others{Fill::Kind::integers, range, seed + 3, 0}, normal{Fill::Kind::normal, 0, seed + 2, 0},
        other_normal{Fill::Kind::normal, 0, seed + 3, 0};
    const std::vector<bool>& nan_groups = question_.skipped;
    const auto epilogue = [&](const Fill& with) {
      const Setup& setup = buffers_.setup();
      buffers_.fill_epilogue(
          random_operands(setup.request.formats, setup.request.epilogue, buffers_.shape(), with, nan_groups),
          unowned);
    };
    switch (data_) {
      case Data::whole_numbers:
        return buffers_.fill_operands(integers, nan_groups, unowned);
      case Data::whole_sums:
        buffers_.fill_operands(integers, nan_groups, unowned);
        epilogue(normal);
        if (const auto aimed = judge_->aimed()) buffers_.fill_epilogue(*aimed, unowned);
        return;
      case Data::random:
        return buffers_.fill_operands(normal, nan_groups, unowned);
      case Data::other_whole_numbers:
        buffers_.fill_operands(others, nan_groups, unowned);
        return epilogue(other_normal);
      case Data::from_files:
        return given_->fill(buffers_, unowned);
      case Data::as_before:
        return;
    }
  }

  // The device that launches from now on find; false where the machine has one of one size.
  bool play(Played size) {
    const int few = machine_.play_small(size == Played::small, buffers_.setup().request.tile.cluster);
    on_few_ = size == Played::small ? few : 0;
    return few > 0;
  }
  // One graph for each device, recorded once and replayed by all trials behind the first.
  void record() {
    const auto graph = [this] {
      return machine_.captured([this](cudaStream_t stream) { launch_(buffers_.problem(), stream); });
    };
    on_whole_ = on_small_ = graph();
    if (play(Played::small)) on_small_ = graph();
  }
  // The graph that this trial replays; empty: it launches anew.
  const std::function<void()>& recorded() const {
    return trial_->on == Played::small ? on_small_ : on_whole_;
  }
  void launch() {
    if (recorded()) return recorded()();
    machine_.run([this](cudaStream_t stream) { launch_(buffers_.problem(), stream); });
  }
  void launch_over_byte(int byte) {
    buffers_.poison(byte);
    launch();
  }

  bool fail(const Failure& failure) {
    std::string name = trial_->name + variant_;
    if (trial_->other_offsets) {
      name = format("%sother %s, %s", recorded() ? "graph replay with " : "",
                    buffers_.setup().equal_groups ? "data" : "offsets", trial_->name);
    }
    const std::string where = on_few_ ? format(" on %d multiprocessors", on_few_) : "";
    result_.failure = Failure{failure.symptom, format("%s, %s%s: %s", shape_.describe().c_str(), name.c_str(),
                                                      where.c_str(), failure.sentence.c_str())};
    return true;
  }

  // A launch over outputs filled with a byte, or over what they hold; true if it wrote what
  // no group owns.
  bool launch_over(std::optional<int> byte) {
    if (byte) {
      buffers_.poison(*byte);
    } else {
      buffers_.set_start_values();
    }
    before_.take(buffers_);
    launch();
    for (const Tensor output : buffers_.outputs()) {
      // Owned elements are put into the copy made before; then all must be the same.
      scratch_.take(output, before_.of(output));
      const int64_t differing = difference(output, buffers_.of(output).memory.get(), buffers_);
      if (differing >= 0) return fail(judge_->outside(output, differing, question_));
    }
    return false;
  }
  // Puts the owned elements of `from` into the scratch copy; the first byte in which that differs
  // from these buffers, -1 if none does.
  int64_t difference(Tensor output, const void* from, const Buffers& buffers) const {
    const TensorMemory& tensor = buffers.of(output);
    machine_.copy_regions(scratch_.of(output), from, tensor.spec.format, tensor.spec.owned);
    return machine_.first_difference(scratch_.of(output), tensor.memory.get(), tensor.bytes);
  }

  bool compared() {
    const Doing now(machine_, "the reference");
    last_ = judge_->compare(question_);
    Tensor output = Tensor::d;
    const OutputTally* tally = last_.first_failure(output);
    return tally && explain(output, *tally);
  }

  // True, with the failure, where owned elements of these buffers differ from those of the trial
  // that was kept.
  bool other_bits(const Buffers& buffers, const char* what) {
    for (const Tensor output : buffers.outputs()) {
      scratch_.take(output, buffers.of(output).memory.get());
      const int64_t byte = difference(output, kept_.of(output), buffers);
      if (byte >= 0) return fail({Symptom::nondeterministic, judge_->differing(output, byte, what)});
    }
    return false;
  }
  // The same bits are right again, without a reference; others may be wrong, which says more.
  bool differs_from_kept() {
    const bool differs = other_bits(buffers_, kTwoLaunches);
    if (!differs) return false;
    const Failure nondeterministic = *result_.failure;
    result_.failure.reset();
    if (compared()) return true;
    result_.failure = nondeterministic;
    return true;
  }

  // True, with the failure, where a launch with other choices of the reader gives other bits.
  bool variants() {
    for (const auto& [name, setup] : same_bits_with(buffers_.setup())) {
      variant_ = name;
      Buffers buffers(machine_, setup, shape_, &replay_);
      buffers.fill_operands({Fill::Kind::normal, 0, options_.seed * 4 + 2, 0});
      buffers.poison(0xFF);
      machine_.run([&](cudaStream_t stream) { launch_(buffers.problem(), stream); });
      if (other_bits(buffers, "the outputs differ from those without")) return true;
    }
    variant_.clear();
    return false;
  }

  void report() {
    result_.worst_ratio = std::max(result_.worst_ratio, last_.worst_ratio);
    result_.worst_factor = std::max(result_.worst_factor, last_.worst_factor);
    result_.note = judge_->note(last_, trial_->name);
  }

  uint32_t code_at(const void* memory, Tensor output, size_t byte) const {
    uint32_t code = 0;
    machine_.download(&code, static_cast<const char*>(memory) + byte,
                      bytes_of(buffers_.of(output).spec.format, 1));
    return code;
  }
  // The failing element after one more launch over another fill.
  uint32_t relaunched(int byte, Tensor output, size_t at) {
    launch_over_byte(byte);
    return code_at(buffers_.of(output).memory.get(), output, at);
  }
  bool right_with(int unowned) {
    fill(unowned);
    launch_over_byte(0xFF);
    return judge_->compare(question_).failures() == 0;
  }

  bool explain(Tensor output, const OutputTally& tally);
  bool keeps_what_was_there(Tensor output, const OutputTally& tally, const std::string& where);
  bool reads_what_it_must_not(const std::string& where);

  static constexpr const char* kTwoLaunches = "two launches on the same data differ";
  Machine& machine_;
  Deferred deferred_{machine_};
  const GivenOperands* given_;
  const Launch& launch_;
  const Shape& shape_;
  const CheckOptions options_;
  Shape replay_;
  Buffers buffers_;
  // Outputs before the launch, of another launch, and working space.
  Copies before_, kept_, scratch_;
  std::unique_ptr<Judge> judge_;
  // Recorded launches; none: launched once more each time.
  std::function<void()> on_whole_, on_small_;
  const Trial* trial_ = nullptr;
  Data data_ = Data::as_before;  // what is in the operands
  Question question_;
  std::string variant_;  // of the launch, behind the trial's name
  int on_few_ = 0;       // multiprocessors of the small device while it is played
  Findings last_;
  CheckResult result_;
};

bool Trials::explain(Tensor output, const OutputTally& tally) {
  const Findings seen = last_;
  const OutputTally first = tally;
  const std::string where = judge_->where(output, first);
  HostCopy copy = host_copy(machine_, buffers_);
  for (const Tensor each : buffers_.outputs()) {
    const TensorMemory& tensor = buffers_.of(each);
    copy.before[size_t(each)] = {downloaded(machine_, before_.of(each), tensor.bytes),
                                 tensor.spec.start_byte()};
  }
  if (keeps_what_was_there(output, first, where)) return true;
  // Does the element follow the dice?
  launch_over_byte(0xFF);
  kept_.take(buffers_);
  launch_over_byte(0xFF);
  if (other_bits(buffers_, kTwoLaunches)) {
    // The order of two stores to an element may change, and what the wrong one stores may not.
    const Failure wrong = judge_->explain(copy, seen, question_);
    if (wrong.symptom != Symptom::overrun) return true;
    return fail({wrong.symptom, wrong.sentence + "; launches differ in which group's rows stay"});
  }
  const Format type = buffers_.of(output).spec.format;
  const bool may_be_nan = first.expected.find("nan") != std::string::npos;
  if (is_nan(type, first.got) && !may_be_nan && reads_what_it_must_not(where)) return true;
  return fail(judge_->explain(copy, seen, question_));
}

// The same launch once more over another fill: does the element follow the fill?
bool Trials::keeps_what_was_there(Tensor output, const OutputTally& tally, const std::string& where) {
  const TensorSpec& spec = buffers_.of(output).spec;
  const uint32_t ones = all_ones(spec.format);
  if (tally.got != code_at(before_.of(output), output, tally.byte)) return false;
  // The same each time, whatever the fill.
  const bool starts_anew = spec.start_value || spec.start_fill;
  const bool follows = relaunched(0xFF, output, tally.byte) == (starts_anew ? tally.got : ones) &&
                       (starts_anew || relaunched(kUnlikeNan, output, tally.byte) == (0x5A5A5A5Au & ones));
  if (follows) return fail({Symptom::unwritten, where + judge_->words().never_written});
  return tally.got != ones && fail({Symptom::stale, where + judge_->words().still_holds});
}

// A NaN is gone where there are numbers in the neighbouring groups, or zeros where no
// group owns anything.
bool Trials::reads_what_it_must_not(const std::string& where) {
  const std::vector<bool> nan_groups = question_.skipped;
  if (!nan_groups.empty()) {
    question_.skipped.clear();
    if (right_with(0xFF)) return fail({Symptom::neighbour_read, where + judge_->words().reads_neighbours});
    question_.skipped = nan_groups;
  }
  if (right_with(0)) return fail({Symptom::padding_read, where + judge_->words().reads_unowned});
  fill(0xFF);
  return false;
}

}  // namespace

CheckResult check_given(Machine& machine, const Setup& setup, const Launch& launch,
                        const GivenOperands& given) {
  return Trials(machine, setup, launch, given.shape, {}, &given).run();
}

CheckResult check_problem(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                          const CheckOptions& options) {
  return Trials(machine, setup, launch, shape, options).run();
}

}  // namespace gg
