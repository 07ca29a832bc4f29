// SPDX-License-Identifier: MIT
//
// The trials, in order: whole numbers (exact), random data (bounded), the same again over another fill (same
// bits), other offsets over the previous output (no stale state, replayed from a graph), and NaN in the
// neighbours. On the emulator the second, the third and the first with NaN run on a small device, whose
// blocks have several tiles.

#include "common/verify/trials.h"

#include <algorithm>
#include <memory>

#include "common/verify/epilogue_trials.h"
#include "common/verify/operand_files.h"
#include "common/verify/output.h"

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

constexpr int kUnlikeNan = 0x5A;  // a fill that is an ordinary number in every float format

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
        before_(allocate("a copy of D")),
        after_(allocate("a second copy of D")),
        scratch_(allocate("a third copy of D")) {}
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;
  ~Trials() { machine_.play_small(false); }

  CheckResult run_given() {
    Limit limit = random_limit(buffers_.setup());
    limit.nan_allowed = true;
    const auto launch = [this] { launch_once(); };
    CheckResult result;
    fill({}, 0xFF);
    for (int pattern : {0xFF, kUnlikeNan}) {
      if (result.failure) break;
      result.failure = trial("operands from files", launch, limit, pattern, {});
      if (pattern == 0xFF) machine_.copy(after_.get(), buffers_.d(), buffers_.d_bytes());
      result.worst_ratio = last_.worst_ratio;
      result.worst_factor = last_.worst_factor;
    }
    if (!result.failure) result.failure = same_bits_as_after();
    if (!result.failure && play(small)) {
      result.failure = trial("operands from files", launch, limit, 0xFF, {});
      result.worst_ratio = std::max(result.worst_ratio, last_.worst_ratio);
      result.worst_factor = std::max(result.worst_factor, last_.worst_factor);
    }
    return result;
  }

  CheckResult run() {
    const int k = *std::max_element(shape_.k.begin(), shape_.k.end());
    Fill integers{Fill::Kind::integers, integer_range(k), options_.seed * 4 + 1, 0};
    const Fill normal{Fill::Kind::normal, 0, options_.seed * 4 + 2, 0};
    const Limit exact{buffers_.setup().formats.d, true, 0, false};
    CheckResult result;
    const auto failed = [&](std::optional<Failure> failure) {
      result.failure = std::move(failure);
      return result.failure.has_value();
    };

    // Where the machine plays devices of two sizes, the trials take turns on them.
    std::function<void()> on_whole = [this] { launch_once(); }, on_small = on_whole;
    buffers_.fill_operands(integers);
    if (failed(trial("whole numbers", on_whole, exact, 0xFF, integers))) return result;
    if (failed(numbers_were_large_enough(k))) return result;
    if (options_.graph_replay) on_small = on_whole = captured();
    if (play(small) && options_.graph_replay) on_small = captured();

    buffers_.fill_operands(normal);
    const Limit bounded = random_limit(buffers_.setup());
    if (failed(trial("random data", on_small, bounded, 0xFF, normal))) return result;
    result.worst_ratio = last_.worst_ratio;
    result.worst_factor = last_.worst_factor;
    machine_.copy(after_.get(), buffers_.d(), buffers_.d_bytes());
    if (failed(launch_over("random data again, over another fill", on_small, kUnlikeNan))) return result;
    if (differing_byte(after_.get()) >= 0) {  // the same bits would be right again, without a reference
      if (failed(compared(on_small, bounded, normal))) return result;
      if (failed(same_bits_as_after())) return result;
    }

    play(whole);
    integers.seed = options_.seed * 4 + 3;
    buffers_.set_shape(replay_);
    buffers_.fill_operands(integers);
    const std::string name =
        format("%sother %s, over the previous output", options_.graph_replay ? "graph replay with " : "",
               buffers_.setup().equal_groups ? "data" : "offsets");
    if (failed(trial(name.c_str(), on_whole, exact, std::nullopt, integers))) return result;

    if (options_.neighbours && shape_.groups() > 1 && !shape_.shared_b) {
      buffers_.set_shape(shape_);
      for (int parity = 0; parity < 2; ++parity) {
        nan_groups_.assign(size_t(shape_.groups()), false);
        for (size_t g = 0; g < nan_groups_.size(); ++g) nan_groups_[g] = int(g % 2) == parity;
        buffers_.fill_operands(integers, nan_groups_);
        play(parity == 0 ? small : whole);
        if (failed(trial("NaN in the neighbouring groups' operands", parity == 0 ? on_small : on_whole, exact,
                         0xFF, integers)))
          return result;
      }
    }
    return result;
  }

 private:
  std::shared_ptr<void> allocate(const char* what) {
    return {machine_.allocate(buffers_.d_bytes(), what), [this](void* memory) { machine_.release(memory); }};
  }

  void fill(const Fill& data, int unowned) {
    if (given_) {
      given_->fill(machine_, buffers_, unowned);
    } else {
      buffers_.fill_operands(data, nan_groups_, unowned);
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

  // The groups this trial compares: those whose own operands are numbers.
  std::vector<Group> compared_groups() const { return compared_of(buffers_.layout()); }
  std::vector<Group> compared_of(const Layout& layout) const {
    std::vector<Group> groups;
    for (size_t g = 0; g < layout.groups.size(); ++g) {
      if (nan_groups_.empty() || !nan_groups_[g]) groups.push_back(layout.groups[g]);
    }
    return groups;
  }

  // A launch over D filled with a byte, or as it is; fails if it wrote what no group owns.
  std::optional<Failure> launch_over(const char* name, const std::function<void()>& launch,
                                     std::optional<int> fill) {
    name_ = name;
    if (fill) machine_.fill_bytes(buffers_.d(), *fill, buffers_.d_bytes());
    machine_.copy(before_.get(), buffers_.d(), buffers_.d_bytes());
    launch();
    return written_outside();
  }

  std::optional<Failure> trial(const char* name, const std::function<void()>& launch, const Limit& limit,
                               std::optional<int> fill, const Fill& data) {
    if (const std::optional<Failure> outside = launch_over(name, launch, fill)) return outside;
    return compared(launch, limit, data);
  }
  std::optional<Failure> compared(const std::function<void()>& launch, const Limit& limit, const Fill& data) {
    last_ = compare_groups(machine_, buffers_, compared_groups(), limit, options_.seed);
    if (last_.failures == 0) return std::nullopt;
    return explain(launch, limit, data);
  }

  Failure failure(Symptom symptom, const std::string& text) const {
    const std::string where = on_few_ ? format(" on %d multiprocessors", on_few_) : "";
    return {symptom, format("%s, %s%s: %s", shape_.describe().c_str(), name_, where.c_str(), text.c_str())};
  }

  // What no group owns must be what it was: put the owned elements of D into the copy made before, then
  // compare.
  std::optional<Failure> written_outside() {
    const Format out = buffers_.setup().formats.d;
    machine_.copy(scratch_.get(), before_.get(), buffers_.d_bytes());
    machine_.copy_regions(scratch_.get(), buffers_.d(), out, buffers_.layout().d_regions());
    const int64_t byte = machine_.first_difference(scratch_.get(), buffers_.d(), buffers_.d_bytes());
    if (byte < 0) return std::nullopt;
    const int64_t element = byte * 8 / format_info(out).bits;
    // Name the place by the nearest group that owns something before it.
    const Group* nearest = nullptr;
    int index = 0;
    for (size_t g = 0; g < buffers_.layout().groups.size(); ++g) {
      const Group& group = buffers_.layout().groups[g];
      if (group.m > 0 && (!nearest || group.d.offset <= element)) {
        nearest = &group;
        index = int(g);
      }
    }
    if (!nearest)
      return failure(Symptom::out_of_bounds, "an element of D was written though every group is empty");
    const int64_t distance = element - nearest->d.offset;
    const int64_t row =
        distance >= 0 ? distance / nearest->d.ld : -((-distance + nearest->d.ld - 1) / nearest->d.ld);
    return failure(
        Symptom::out_of_bounds,
        format("a write outside every group's output: row %lld, column %lld as seen from group %d, which has "
               "%d rows and %d columns; the first such element",
               static_cast<long long>(row), static_cast<long long>(distance - row * nearest->d.ld), index,
               nearest->m, nearest->n));
  }

  // Sums that stay small would not tell rounding from truncation, nor fp32 from half.
  std::optional<Failure> numbers_were_large_enough(int k) {
    constexpr int kEnoughOutputs = 4096;
    const Format out = buffers_.setup().formats.d;
    if (k < 128 || last_.checked < kEnoughOutputs) return std::nullopt;
    const bool narrow = format_info(out).bits == 16;
    if (last_.beyond_2048 > 0 && (last_.beyond_exact > 0 || !narrow)) return std::nullopt;
    return failure(Symptom::unknown,
                   format("the harness's own data are too tame: of %lld sums %lld exceed 2048 and %lld "
                          "exceed what %s counts exactly",
                          static_cast<long long>(last_.checked), static_cast<long long>(last_.beyond_2048),
                          static_cast<long long>(last_.beyond_exact), format_info(out).name));
  }

  std::optional<Failure> same_bits_as_after() {
    const int64_t byte = differing_byte(after_.get());
    if (byte < 0) return std::nullopt;
    return nondeterministic(byte);
  }
  // Where the owned elements of D differ from those of another launch's D.
  int64_t differing_byte(const void* other) {
    machine_.copy(scratch_.get(), buffers_.d(), buffers_.d_bytes());
    machine_.copy_regions(scratch_.get(), other, buffers_.setup().formats.d, buffers_.layout().d_regions());
    return machine_.first_difference(scratch_.get(), buffers_.d(), buffers_.d_bytes());
  }
  Failure nondeterministic(int64_t byte) const {
    const Place place = place_of(buffers_.layout(), byte * 8 / format_info(buffers_.setup().formats.d).bits);
    return failure(
        Symptom::nondeterministic,
        format(
            "two launches on the same data differ, first at group %d row %d column %d: looks like a race or "
            "a sum whose order changes",
            place.group, place.row, place.col));
  }

  Failure explain(const std::function<void()>& launch, const Limit& limit, const Fill& data);

  uint32_t element_of(const void* tensor, int64_t element) {
    const Format out = buffers_.setup().formats.d;
    uint32_t code = 0;
    machine_.download(&code, static_cast<const char*>(tensor) + bytes_of(out, element), bytes_of(out, 1));
    return code;
  }

  Machine& machine_;
  Deferred deferred_{machine_};
  const GivenOperands* given_;
  const Launch& launch_;
  const Shape& shape_;
  const CheckOptions& options_;
  Shape replay_;
  Buffers buffers_;
  std::shared_ptr<void> before_, after_,
      scratch_;  // D before the launch, of another launch, and working space
  std::vector<bool> nan_groups_;
  const char* name_ = "";
  int on_few_ = 0;  // multiprocessors of the small device while it is played
  Comparison last_;
};

Failure Trials::explain(const std::function<void()>& launch, const Limit& limit, const Fill& data) {
  const Comparison seen = last_;
  const std::string count = format("%lld of %lld elements are wrong; ", static_cast<long long>(seen.failures),
                                   static_cast<long long>(seen.checked));
  const Place place = place_of(buffers_.layout(), seen.first);
  const std::string where =
      count + format("the first: group %d row %d column %d, ", place.group, place.row, place.col);
  const Format out = limit.format;
  const uint32_t got = element_of(buffers_.d(), seen.first), before = element_of(before_.get(), seen.first);

  const HostCopy copy{downloaded(machine_, buffers_.a(), buffers_.a_bytes()),
                      downloaded_b(machine_, buffers_),
                      downloaded(machine_, buffers_.d(), buffers_.d_bytes()),
                      downloaded(machine_, buffers_.sfa(), buffers_.sfa_bytes()),
                      downloaded(machine_, buffers_.sfb(), buffers_.sfb_bytes()),
                      downloaded(machine_, before_.get(), buffers_.d_bytes())};

  // The same launch once more over another fill: does the element follow the fill, or the dice?
  const auto relaunch = [&](int fill) {
    machine_.fill_bytes(buffers_.d(), fill, buffers_.d_bytes());
    launch();
    return element_of(buffers_.d(), seen.first);
  };
  if (got == before) {
    const uint32_t mask = uint32_t((uint64_t(1) << format_info(out).bits) - 1);
    const bool follows = relaunch(0xFF) == mask && relaunch(kUnlikeNan) == (0x5A5A5A5Au & mask);
    if (follows) return failure(Symptom::unwritten, where + "was never written");
    if (before != mask)
      return failure(Symptom::stale, where + "still holds what the buffer held before the launch");
  }
  relaunch(0xFF);
  machine_.copy(after_.get(), buffers_.d(), buffers_.d_bytes());
  relaunch(0xFF);
  if (const int64_t byte = differing_byte(after_.get()); byte >= 0) return nondeterministic(byte);

  if (is_nan(out, got)) {
    if (!nan_groups_.empty()) {
      buffers_.fill_operands(data);
      relaunch(0xFF);
      if (compare_groups(machine_, buffers_, compared_groups(), limit, options_.seed).failures == 0) {
        return failure(Symptom::neighbour_read,
                       where + "is NaN only while the neighbouring groups hold NaN: their operands are read");
      }
    }
    fill(data, 0);  // zeros in place of NaN where no group owns anything
    relaunch(0xFF);
    if (compare_groups(machine_, buffers_, compared_groups(), limit, options_.seed).failures == 0) {
      return failure(Symptom::padding_read,
                     where +
                         "is NaN only while elements that no group owns are NaN: rows of A "
                         "past the last offset, or B past its end, are read");
    }
    return failure(Symptom::nan, where + "is NaN");
  }
  const Layout near = near_layout(buffers_.setup(), buffers_.shape());
  Failure values = explain_values(
      copy, buffers_.setup(), near, limit,
      failing_elements(copy.matrices(buffers_.setup().formats), compared_of(near), limit, seen.first));
  return failure(values.symptom, count + values.sentence);
}

}  // namespace

CheckResult check_given(Machine& machine, const Setup& setup, const Launch& launch,
                        const GivenOperands& given) {
  if (setup.epilogue.has_operands()) return check_given_epilogue(machine, setup, launch, given);
  return Trials(machine, setup, launch, given.shape, {}, &given).run_given();
}

CheckResult check_problem(Machine& machine, const Setup& setup, const Launch& launch, const Shape& shape,
                          const CheckOptions& options) {
  if (setup.epilogue.has_operands()) return check_epilogue(machine, setup, launch, shape, options);
  return Trials(machine, setup, launch, shape, options).run();
}

}  // namespace gg
