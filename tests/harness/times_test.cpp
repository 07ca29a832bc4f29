// SPDX-License-Identifier: MIT
//
// From launches to a row of results, with a stopwatch that knows what each launch takes:
// how launches rotate and what is counted, percentiles, and every column that follows. No
// GPU is needed.

#include "common/harness/run/times.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "common/harness/run/report.h"
#include "tests/process.h"

namespace gg {
namespace {

using testing_gg::Folder;

// A device of this test's own: a launch adds what it takes to the time that has passed.
class FakeStopwatch : public Stopwatch {
 public:
  // A graph holds its launches with their sets: `frozen` replays what they took. Otherwise they
  // are made again.
  explicit FakeStopwatch(double* now, bool frozen = false) : now_(*now), frozen_(frozen) {}
  cudaStream_t stream() override { return nullptr; }
  double time(const std::function<void()>& work, const std::function<void()>& meanwhile) override {
    const double before = now_;
    work();
    const double took = now_ - before;
    meanwhile();
    return took;
  }
  std::function<void()> record(const std::function<void()>& work) override {
    const double before = now_;
    work();
    const double took = now_ - before;
    now_ = before;  // recorded, not run
    return [this, work, took] {
      if (frozen_) {
        now_ += took;
      } else {
        work();
      }
      ++replays_;
    };
  }
  void wait() override {}
  DeviceState state() override { return {1000 + ++asked_, 300.5 + asked_}; }
  int replays() const { return replays_; }

 private:
  double& now_;
  const bool frozen_;
  int asked_ = 0, replays_ = 0;
};

TEST(ColdSets, ExceedTwiceTheL2OrAreNone) {
  for (const size_t l2 : {size_t(40) << 20, size_t(60) << 20}) {
    for (const size_t bytes : {size_t(31000), size_t(400000), size_t(60000000), size_t(1) << 33}) {
      const int sets = cold_sets(bytes, l2);
      EXPECT_GE(sets, 2) << bytes;
      EXPECT_GT(size_t(sets - 1) * bytes, 2 * l2) << "between two uses of a set all others are used";
      EXPECT_LE(size_t(sets - 2) * bytes, 2 * l2) << "and no more than it takes";
    }
    EXPECT_EQ(cold_sets(300, l2), 0);
  }
}

// Launches of 300 us are timed one by one, those of 5 us in graphs. Either way the time of a launch
// comes out, and all sets take turns.
TEST(TimeContestants, GiveTheTimeOfOneLaunch) {
  for (const double us : {300.0, 5.0, 5000.0}) {
    for (const int sets : {1, 3}) {
      double now = 0;
      FakeStopwatch watch(&now);
      std::map<int, int> launches;
      Contestant one{"one", [&](int set, cudaStream_t) {
                       ++launches[set];
                       now += us;
                     }};
      const Timing timing = time_contestants({one}, sets, Rounds::brief, watch)[0];
      EXPECT_DOUBLE_EQ(timing.median, us);
      EXPECT_DOUBLE_EQ(timing.p10, us);
      EXPECT_DOUBLE_EQ(timing.p90, us);
      ASSERT_EQ(launches.size(), size_t(sets));
      EXPECT_LE(launches.begin()->second - launches.rbegin()->second, 1) << "sets take turns";
      EXPECT_GE(launches.begin()->second, launches.rbegin()->second);
      EXPECT_EQ(watch.replays() > 0, us < 200);
      EXPECT_GE(now, 300000) << "clocks and power are those of sustained work";
    }
  }
}

// Where launches add to their output the replay makes one on each set, however short they are.
TEST(TimeContestants, AddOnceInTheReplay) {
  for (const double us : {2000.0, 300.0, 5.0}) {
    for (const int sets : {1, 3}) {
      double now = 0;
      FakeStopwatch watch(&now);
      std::map<int, int> launches;
      Contestant one{.name = "one", .launch = [&](int set, cudaStream_t) {
                       ++launches[set];
                       now += us;
                     }};
      one.adds = true;
      one.right = [&](int, const std::function<void()>& replay) {
        launches.clear();
        replay();
        for (int set = 0; set < sets; ++set) EXPECT_EQ(launches[set], 1) << us;
        return launches.size() == size_t(sets);
      };
      const Timing timing = time_contestants({one}, sets, Rounds::brief, watch)[0];
      EXPECT_TRUE(timing.right);
      EXPECT_DOUBLE_EQ(timing.median, us);
    }
  }
}

// Set 0 takes 4 us, set 1 takes 8, and so on: a graph holds all of them as often.
TEST(TimeContestants, AverageOverAllSets) {
  double now = 0;
  FakeStopwatch watch(&now, true);
  const Contestant one{"one", [&](int set, cudaStream_t) { now += 4 * (set + 1); }};
  for (const int sets : {3, 7, 11})
    EXPECT_DOUBLE_EQ(time_contestants({one}, sets, Rounds::brief, watch)[0].median, 2 * (sets + 1)) << sets;
  EXPECT_DOUBLE_EQ(time_contestants({one}, 1, Rounds::brief, watch)[0].median, 4);
}

// The first second is slow, as on a cold device: nothing of it is in the result.
TEST(TimeContestants, LeaveOutWhatWarmsUp) {
  double now = 0;
  FakeStopwatch watch(&now);
  const Contestant one{"one", [&](int, cudaStream_t) { now += now < 250000 ? 900 : 300; }};
  const Timing timing = time_contestants({one}, 1, Rounds::brief, watch)[0];
  EXPECT_DOUBLE_EQ(timing.p90, 300);
}

// Behind another contestant the first 100 ms are slow: sustained rounds begin with them and do
// not count them.
TEST(TimeContestants, LetASustainedRoundSettle) {
  double now = 0, began = 0;
  int last = -1;
  FakeStopwatch watch(&now);
  const auto contestant = [&](int number, double us) {
    return Contestant{std::to_string(number), [&now, &began, &last, number, us](int, cudaStream_t) {
                        if (last != number) began = now;
                        last = number;
                        now += now - began < 99000 ? 3 * us : us;
                      }};
  };
  const std::vector<Contestant> two = {contestant(0, 300), contestant(1, 500)};
  const std::vector<Timing> sustained = time_contestants(two, 1, Rounds::sustained, watch);
  EXPECT_DOUBLE_EQ(sustained[0].median, 300);
  EXPECT_DOUBLE_EQ(sustained[1].median, 500);
  EXPECT_GT(time_contestants(two, 1, Rounds::brief, watch)[0].median, 300) << "brief rounds do not settle";
}

// Rounds of one contestant take 1001, 1002 .. us for each launch, in turns with another one.
TEST(TimeContestants, TakePercentilesOverRounds) {
  double now = 0;
  FakeStopwatch watch(&now);
  // Microseconds of the launches of a round, each of which is timed alone.
  std::vector<double> samples;
  int round = 0;
  std::vector<std::string> order;
  const Contestant ours{"ours", [&](int, cudaStream_t) {
                          order.push_back("ours");
                          now += 20000 + 100 * (round++ % 11);
                        }};
  const Contestant theirs{"theirs", [&](int, cudaStream_t) {
                            order.push_back("theirs");
                            now += 70000;
                          }};
  const std::vector<Timing> timings = time_contestants({ours, theirs}, 1, Rounds::brief, watch);
  EXPECT_DOUBLE_EQ(timings[1].median, 70000);
  // 1.5 s are 21 rounds of 70 ms; 11 successive launches have each of 11 times, 21 have ten
  // of them twice.
  EXPECT_NEAR(timings[0].median, 20500, 50);
  EXPECT_NEAR(timings[0].p10, 20100, 50);
  EXPECT_NEAR(timings[0].p90, 20900, 50);
  size_t changes = 0;
  for (size_t i = 1; i < order.size(); ++i) changes += order[i] != order[i - 1];
  EXPECT_GT(changes, order.size() / 4) << "contestants take turns";
  EXPECT_LT(changes, order.size() - 5) << "and not always in the same order";
}

// ---- rows ----

// Time of a launch on the buffers that the launch before it used; twice that on others.
constexpr double kUs = 1500;

struct Asked {
  Chapter chapter{.id = "x_chapter", .b_layouts = {BLayout::nk}, .own_sizes = OwnSizes::when_listed};
  Options options;
  Launch launch;
  std::vector<double> us = {kUs};  // of launches in turn
  size_t turn = 0;
  double now = 0;
  std::map<const void*, int> launches;  // by A's address
  const void* last = nullptr;

  explicit Asked(const std::string& csv) {
    options.csv = csv;
    options.request.b_layout = BLayout::nk;
    launch = [this](const Problem& p, cudaStream_t) {
      const void* const a = p.own().sizes != nullptr ? p.own().a_ptrs<bf16>()[0] : p.a<bf16>();
      const double each = us[turn++ % us.size()];
      now += a == last ? each : 2 * each;
      last = a;
      ++launches[a];
      for (int g = 0; g < p.groups(); ++g) multiply(p, g);
    };
  }

  Session session() {
    return {chapter,       options, launch, setup_of(chapter, options), {"Test GPU", 90, 4, 60000, "13.0"},
            host_machine()};
  }

  // Group g's product on the host.
  static void multiply(const Problem& p, int g) {
    const bool own = p.own().sizes != nullptr;
    const int row = own ? 0 : p.offsets().as<int32_t>()[g];
    const int m = own ? p.own().sizes[3 * g] : p.offsets().as<int32_t>()[g + 1] - row;
    const int n = own ? p.own().sizes[3 * g + 1] : p.n(), k = own ? p.own().sizes[3 * g + 2] : p.k();
    const int lda = own ? p.own().leading_dims[3 * g] : k, ldb = own ? p.own().leading_dims[3 * g + 1] : k;
    const int ldd = own ? p.own().leading_dims[3 * g + 2] : n;
    const bf16* const a = own ? p.own().a_ptrs<bf16>()[g] : p.a<bf16>() + int64_t(row) * k;
    const bf16* const b = own ? p.own().b_ptrs<bf16>()[g] : p.b<bf16>() + g * p.b_group_stride();
    bf16* const d = own ? p.own().d_ptrs<bf16>()[g] : p.d<bf16>() + int64_t(row) * n;
    for (int r = 0; r < m; ++r) {
      for (int col = 0; col < n; ++col) {
        float sum = 0;
        for (int kk = 0; kk < k; ++kk) sum += to_float(a[r * lda + kk]) * to_float(b[col * ldb + kk]);
        d[r * ldd + col] = from_float<bf16>(sum);
      }
    }
  }
};

std::vector<std::map<std::string, std::string>> rows_of(const std::string& path) {
  std::istringstream text(testing_gg::text_of(path));
  std::string line;
  std::getline(text, line);
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(text, line)) {
    std::istringstream fields(line + ",");
    std::string field;
    rows.emplace_back();
    for (const std::string& column : kResultColumns) {
      std::getline(fields, field, ',');
      rows.back()[column] = field;
    }
  }
  return rows;
}

// Every column of both rows, computed by hand: G=3, rows 5, 0 and 3, N=24, K=40, in bf16.
TEST(Times, WriteEveryColumn) {
  const Folder folder;
  Asked asked(folder.at("x.csv"));
  Session session = asked.session();
  Roof roof;
  roof.tflops["bf16"] = 0.5;
  roof.gbytes_per_s = 2;
  Times times(session, std::make_unique<FakeStopwatch>(&asked.now), roof);
  const Shape shape = {{5, 0, 3}, {24}, {40}, "a_set"};
  times.time(shape);
  const auto rows = rows_of(asked.options.csv);
  ASSERT_EQ(rows.size(), 2u);
  const double flops = 2.0 * 8 * 24 * 40;
  // A, B of the two groups that have rows, D.
  const double bytes = 2.0 * (8 * 40 + 2 * 24 * 40 + 8 * 24);
  for (const bool warm : {false, true}) {
    const double us = warm ? kUs : 2 * kUs;
    const auto& row = rows[warm];
    const std::map<std::string, std::string> wanted = {
        {"chapter", "x_chapter"},
        {"kernel", "grouped_gemm"},
        {"device", "Test GPU"},
        {"arch", "90"},
        {"cuda", "13.0"},
        {"commit", commit()},
        {"date", today()},
        {"set", "a_set"},
        {"groups", "3"},
        {"m_total", "8"},
        {"m_max", "5"},
        {"n", "24"},
        {"k", "40"},
        {"format", "bf16"},
        {"warm", warm ? "1" : "0"},
        {"us_median", number_text(us)},
        {"us_p10", number_text(us)},
        {"us_p90", number_text(us)},
        {"tflops", number_text(flops / us * 1e-6)},
        {"gbytes_per_s", number_text(bytes / us * 1e-3)},
        {"roof_tflops", number_text(2e9 / bytes * flops * 1e-12)},
        {"roof_kind", "bandwidth"},
        {"prep_us", ""},
        {"peer", ""},
        {"ok", "1"},
        {"version", ""}};
    for (const auto& [column, value] : wanted) EXPECT_EQ(row.at(column), value) << column;
    // The stopwatch counts how often it is asked: in the first round, then in the last one.
    EXPECT_EQ(std::stoi(row.at("clock_after_mhz")), std::stoi(row.at("clock_mhz")) + 1);
    EXPECT_EQ(std::stod(row.at("power_w")), std::stod(row.at("clock_after_mhz")) - 1000 + 300.5);
  }
  const size_t bytes_of_set = Buffers(*session.machine, session.setup, shape).bytes();
  EXPECT_EQ(asked.launches.size(), size_t(cold_sets(bytes_of_set, 60000)))
      << "cold launches rotate through all sets";
  EXPECT_GT(asked.launches.size(), 2u);
}

// Launches of 4, 5 and 9 ms in turn: the shortest of them is the 10th percentile, the middle one
// the median, the longest the 90th. Rates are those of the median: 15,360 operations and 4,864
// bytes in it.
TEST(Times, WriteThreeDifferentTimesIntoTheirColumns) {
  const Folder folder;
  Asked asked(folder.at("x.csv"));
  asked.us = {5000, 9000, 4000};
  Session session = asked.session();
  Times times(session, std::make_unique<FakeStopwatch>(&asked.now), Roof{});
  testing::internal::CaptureStdout();
  times.time({{5, 0, 3}, {24}, {40}, "a_set"});
  const std::string said = testing::internal::GetCapturedStdout();
  const auto rows = rows_of(asked.options.csv);
  ASSERT_EQ(rows.size(), 2u);
  const std::map<std::string, std::string> cold = {{"us_median", "10000"},
                                                   {"us_p10", "8000"},
                                                   {"us_p90", "18000"},
                                                   {"tflops", "1.536e-06"},
                                                   {"gbytes_per_s", "0.0004864"}};
  const std::map<std::string, std::string> warm = {{"us_median", "5000"},
                                                   {"us_p10", "4000"},
                                                   {"us_p90", "9000"},
                                                   {"tflops", "3.072e-06"},
                                                   {"gbytes_per_s", "0.0009728"}};
  for (const auto& [column, value] : cold) EXPECT_EQ(rows[0].at(column), value) << column;
  for (const auto& [column, value] : warm) EXPECT_EQ(rows[1].at(column), value) << column;
  for (const char* line : {"10000.0 us (8000.0 .. 18000.0)", "5000.0 us (4000.0 .. 9000.0)"})
    EXPECT_NE(said.find(line), std::string::npos) << said;
}

// Preparation on the host has a column of its own, and is in no other.
TEST(Times, KeepPreparationApart) {
  const Folder folder;
  Asked asked(folder.at("x.csv"));
  Session session = asked.session();
  Times times(session, std::make_unique<FakeStopwatch>(&asked.now), Roof{});
  Shape shape = {{5, 3}, {24, 16}, {40, 8}, "a_set"};
  shape.own_sizes = true;
  times.time(shape);
  const auto rows = rows_of(asked.options.csv);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].at("us_median"), number_text(2 * kUs));
  EXPECT_EQ(rows[1].at("us_median"), number_text(kUs));
  for (const auto& row : rows) {
    EXPECT_GT(std::stod(row.at("prep_us")), 0);
    EXPECT_EQ(row.at("n"), "24");
    EXPECT_EQ(row.at("k"), "40");
    EXPECT_EQ(row.at("roof_kind"), "");
  }
}

// A problem of which 4096 copies fit into the L2 has no cold row.
TEST(Times, CallNothingColdThatIsInTheL2) {
  const Folder folder;
  Asked asked(folder.at("x.csv"));
  Session session = asked.session();
  session.device.l2_bytes = size_t(1) << 40;
  Times times(session, std::make_unique<FakeStopwatch>(&asked.now), Roof{});
  times.time({{5, 3}, {24}, {40}, "a_set"});
  const auto rows = rows_of(asked.options.csv);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("warm"), "1");
}

TEST(Times, TakeTheSmallerRoof) {
  Row row;
  Roof roof;
  roof.tflops["bf16"] = 100;
  roof.gbytes_per_s = 1000;
  const Shape wide{{4096}, {4096}, {4096}, "x"}, narrow{{1}, {4096}, {4096}, "x"};
  add_timing(row, wide, {}, {10, 9, 11}, false, roof);
  EXPECT_EQ(row["roof_kind"], "matrix");
  EXPECT_EQ(row["roof_tflops"], "100");
  EXPECT_EQ(row["us_p10"], "9");
  EXPECT_EQ(row["us_p90"], "11");
  add_timing(row, narrow, {}, {10, 9, 11}, true, roof);
  EXPECT_EQ(row["roof_kind"], "bandwidth");
  const double bytes = 2.0 * (4096 + 4096.0 * 4096 + 4096), flops = 2.0 * 4096 * 4096;
  EXPECT_EQ(row["roof_tflops"], number_text(1000e9 * flops / bytes * 1e-12));
  EXPECT_EQ(row["warm"], "1");
}

TEST(Times, CountWhatCannotBeAvoidedOfEachFormat) {
  const Shape shape{{2, 0, 3}, {64}, {32}, "x"};
  Formats formats;
  EXPECT_EQ(unavoidable_bytes(shape, formats), 2.0 * (5 * 32 + 2 * 64 * 32 + 5 * 64));
  formats.d = Format::f32;
  EXPECT_EQ(unavoidable_bytes(shape, formats), 2.0 * (5 * 32 + 2 * 64 * 32) + 4.0 * 5 * 64);
  Shape shared = shape;
  shared.shared_b = true;
  EXPECT_EQ(unavoidable_bytes(shared, {}), 2.0 * (5 * 32 + 64 * 32 + 5 * 64));
  const Shape own{{2, 3}, {64, 16}, {32, 8}, "x"};
  EXPECT_EQ(unavoidable_bytes(own, {}), 2.0 * (2 * 32 + 64 * 32 + 2 * 64 + 3 * 8 + 16 * 8 + 3 * 16));
  // A weight gradient writes D of every group, and adding to it reads that of groups with rows.
  gg::Setup gradient;
  gradient.product = Product::weight_gradient;
  gradient.request.formats.d = Format::f32;
  EXPECT_EQ(bytes_of_launch(Shape{{5, 0}, {64}, {32}}, gradient), 2.0 * 5 * (32 + 64) + 4.0 * 2 * 32 * 64);
  gradient.request.accumulate = true;
  EXPECT_EQ(bytes_of_launch(Shape{{5, 0}, {64}, {32}}, gradient), 2.0 * 5 * (32 + 64) + 4.0 * 2 * 32 * 64);
}

// A chapter whose output is wrong has a row that says so, without a time.
TEST(Times, TakeNoneOfWhatIsWrong) {
  const Folder folder;
  Asked asked(folder.at("x.csv"));
  asked.launch = [](const Problem&, cudaStream_t) {};  // writes nothing
  Session session = asked.session();
  Times times(session, std::make_unique<FakeStopwatch>(&asked.now), Roof{});
  times.time({{5, 3}, {24}, {40}, "a_set"});
  const auto rows = rows_of(asked.options.csv);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("ok"), "0");
  for (const char* column : {"us_median", "us_p10", "us_p90", "tflops", "gbytes_per_s", "roof_tflops"})
    EXPECT_EQ(rows[0].at(column), "") << column;
  EXPECT_EQ(session.tally.failed, 1);
}

}  // namespace
}  // namespace gg
