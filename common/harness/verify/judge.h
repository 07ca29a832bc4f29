// SPDX-License-Identifier: MIT
//
// A judge knows an operator: the trials in which a mistake shows, the values that are right, and
// what a failure looks like. Each operator has a judge; the trials (trials.h) are the same for all.

#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/verify/failure.h"
#include "common/harness/verify/host_copy.h"

namespace gg {

struct OutputTally {  // of the elements of one output
  int64_t checked = 0, failures = 0;
  int64_t loose = 0;  // right, but not the code of the middle of their range
  // The first that failed: what it is, and its first byte in the output's buffer.
  int group = 0, row = 0, col = 0;
  size_t byte = 0;
  uint32_t got = 0;
  std::string expected{};  // empty: the explanation says it
};

struct Findings {  // of all outputs
  std::array<OutputTally, kTensors> of{};
  int64_t products = 0, exact = 0;            // sums of products, and those that are exact in f32
  float worst_ratio = 0, worst_factor = 0;    // of errors: machine/element_check.h
  int64_t beyond_exact = 0, beyond_2048 = 0;  // sums as large: machine/element_check.h

  int64_t checked() const, failures() const, loose() const;
  // The tally of the first output that has failures, in the order in which a kernel makes them;
  // null: none has.
  const OutputTally* first_failure(Tensor& output) const;
  void merge(const Findings& part);
};

enum class Data {  // what the operands of a trial are
  whole_numbers,
  whole_sums,  // whole numbers in A and B, random ones in the epilogue
  random,
  other_whole_numbers,  // random ones in the epilogue
  from_files,
  as_before,  // those of the trial before
};
enum class Played { whole, small };  // where the machine plays devices of two sizes

// One launch, and what must hold then.
struct Trial {
  const char* name;  // as a failure names it
  Data data = Data::as_before;
  Played on = Played::whole;
  // Outputs are filled with this byte before; none: they hold the last output.
  std::optional<int> over = 0xFF;
  bool exact = false;      // every sum is exact, and so is what is right
  bool telling = false;    // the data must be such that wrong roundings show
  bool reported = false;   // errors are told to the reader
  bool kept = false;       // other trials must give the same bits
  bool same_bits = false;  // as the trial that was kept
  // Launches with what a reader may choose without changing a bit must give these bits too.
  bool variants = false;
  bool other_offsets = false;  // groups have other rows, where the chapter takes any
  // Groups of even (0) or odd (1) index hold NaN, and are not judged; -1: none.
  int nan_groups = -1;
  bool brief = false;     // also of a check that must be quick
  bool if_small = false;  // left out where the machine plays no small device
};

constexpr int kUnlikeNan = 0x5A;  // a fill that is an ordinary number in every float format
constexpr const char* kNeighbours = "NaN in the neighbouring groups' operands";

struct Words {  // how a failure of one element is told, behind what `Judge::where` says
  const char *never_written, *still_holds, *reads_neighbours, *reads_unowned;
};

struct Question {  // to a comparison
  bool exact = false, nan_allowed = false;
  std::vector<bool> skipped{};    // one flag per group: not judged; empty: none
  bool by_machine_alone = false;  // quickly, without the CPU as a second witness
};

class Judge {
 public:
  Judge(Machine& machine, const Buffers& buffers, uint64_t seed)
      : machine_(machine), buffers_(buffers), seed_(seed) {}
  virtual ~Judge() = default;

  virtual const std::vector<Trial>& trials() const = 0;
  virtual const std::vector<Trial>& trials_from_files() const = 0;
  virtual const Words& words() const = 0;

  // The outputs that are there, on the operands that are there.
  virtual Findings compare(const Question& question) const = 0;
  // Operands of an epilogue that lie where roundings change, in place of those that are there.
  virtual std::optional<EpilogueOperands> aimed() const { return std::nullopt; }
  // Why the harness's own data would not show a mistake; empty: they would.
  virtual std::string not_telling(const Findings& findings) const = 0;
  // The words of a passed check on random data; empty: it tells the worst error.
  virtual std::string note(const Findings& findings, const char* data) const = 0;

  // The start of a sentence on the first failing element.
  virtual std::string where(Tensor output, const OutputTally& tally) const = 0;
  // A launch wrote this byte of an output's buffer, which no group owns.
  virtual Failure outside(Tensor output, int64_t byte, const Question& question) const = 0;
  // Launches that must give the same bits differ in this byte; `what` names the launches.
  virtual std::string differing(Tensor output, int64_t byte, const char* what) const = 0;
  // Names the mistake that wrong values look like. `copy` was made before any other launch.
  virtual Failure explain(const HostCopy& copy, const Findings& findings, const Question& question) const = 0;
  // The same after one launch over 0xFF bytes on random data.
  virtual Failure why_wrong() const = 0;

 protected:
  Machine& machine_;
  const Buffers& buffers_;
  uint64_t seed_;
};

uint32_t all_ones(Format format);  // what an element is after a fill of 0xFF bytes

}  // namespace gg
