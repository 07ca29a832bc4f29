// SPDX-License-Identifier: MIT
//
// The output of a run: its lines on stdout, and its rows in CSV files.

#pragma once

#include <string>
#include <vector>

#include "common/harness/base/csv.h"
#include "common/harness/bench/roof.h"
#include "common/harness/bench/timer.h"
#include "common/harness/machine/emulator.h"
#include "common/harness/run/session.h"
#include "common/harness/verify/trials.h"

namespace gg {

extern const std::vector<std::string> kResultColumns;
extern const std::vector<std::string> kCountColumns;

// The name in place of a peer's where --off has the chapter with all ideas timed beside the
// one without some.
constexpr const char* kAllIdeas = "all_ideas";

// The kernel column of results: a chapter's grouped_gemm with its tile, and its cluster where there
// is a choice, or a library's call, and what the reader asked for beyond the defaults, by which
// figures and tables tell rows apart.
std::string kernel_name(const Chapter& chapter, const Options& options, ClusterTileShape tile,
                        const std::string& peer);

// Bytes that no launch can avoid moving: A, B and D once, and what an epilogue reads and writes.
double unavoidable_bytes(const Shape& shape, const Formats& formats, const Epilogue& epilogue = {});
double bytes_of_launch(const Shape& shape, const Setup& setup);  // the same, of either product

// A row of kResultColumns without times. Columns n and k say what every group has, or where they
// differ the largest.
Row result_row(const Session& session, const Shape& shape, const ClusterTileShape& tile,
               const std::string& peer, const std::string& version);
void add_timing(Row& row, const Shape& shape, const Setup& setup, const Timing& timing, bool warm,
                const Roof& roof);
// One row of kCountColumns for each counter.
std::vector<Row> count_rows(const Session& session, const std::string& set, const Counters& total);

// Each prints one line, or several with one start.
void print_start(const Session& session);
void print_check(const Shape& shape, const CheckResult& result);
void print_form(const std::string& words, const CheckResult& result);
// Says that outputs which `correct` refused are neither timed nor counted, and why, where its
// outputs are still there.
void print_failed(const char* half, const Shape& shape, const char* left_out, const Failure& why);
void print_wrong_replay(const Row& row, const Shape& shape);
void print_counts(const Counters& counters, const Shape& shape);
void print_times(const Row& row, const Shape& shape);
void print_end(const Session& session);

}  // namespace gg
