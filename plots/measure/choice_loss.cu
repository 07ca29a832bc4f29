// SPDX-License-Identifier: MIT
//
// gg-choice: how much longer the configuration that chapter 07l's estimate chooses took than the
// fastest one, on problems that were timed with each; and how much longer the faster one of the two
// or three with the least estimates:
//
//   build/bin/gg-choice plots/measure/data/choice.csv
//
// Runs nothing on a device. A line of the file is a problem: the device, the day, multiprocessors,
// 10^9 bytes a second; the set, or `fitted`: random ones to which constants were fitted, or
// `unseen`: by choice.py since then; rows of the groups, N, K; then microseconds for each line of
// for_each_config, in its order, empty where that was not timed. Exit code 2: the file cannot be
// read as that.

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "choose.cuh"
#include "common/kernel/error.h"

namespace {

using chapter::Device, chapter::Sizes;

constexpr int MOST_TRIED = 3;  // configurations that a search would time

struct Problem {
  std::string set;
  Device device{};
  Sizes sizes{};
  std::vector<double> us;  // of each configuration; NaN: not timed
};

// Losses of the problems of one kind whose chosen configuration was timed.
struct Losses {
  std::vector<double> each;
  int not_timed = 0;

  void print(const std::string& name, int tried) const {
    double sum = 0, worst = 0;
    for (const double loss : each) {
      sum += loss;
      worst = std::max(worst, loss);
    }
    const auto over = std::count_if(each.begin(), each.end(), [](double loss) { return loss > 0.05; });
    std::printf("%-8s %6zu %10d %6d %7.1f %% %6.1f %% %9d\n", name.c_str(), each.size(), not_timed, tried,
                each.empty() ? 0 : 100 * sum / double(each.size()), 100 * worst, int(over));
  }
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// Throws gg::Error for what is no finite number, or has more after it.
double number_of(const std::string& field) {
  char* end = nullptr;
  const double number = std::strtod(field.c_str(), &end);
  if (field.empty() || *end || !std::isfinite(number))
    gg::fail(gg::Exit::bad_input, "'%s' is no number", field.c_str());
  return number;
}

// Throws gg::Error where a line is no problem.
Problem problem_of(const std::string& line, size_t configurations) {
  const std::vector<std::string> fields = split(line, ',');
  if (fields.size() != 8 + configurations)
    gg::fail(gg::Exit::bad_input, "%zu fields, %zu are wanted", fields.size(), 8 + configurations);
  Problem p;
  p.set = fields[4];
  p.device = {int(number_of(fields[2])), number_of(fields[3]) * 1e9};
  p.sizes.n = int(number_of(fields[6]));
  p.sizes.k = int(number_of(fields[7]));
  int least = INT_MAX, most = 0;
  for (const std::string& rows : split(fields[5], ' ')) {
    const int m = int(number_of(rows));
    p.sizes.m_total += m;
    ++p.sizes.groups;
    least = std::min(least, m);
    most = std::max(most, m);
  }
  if (least == most) p.sizes.rows_each = most;
  for (size_t i = 8; i < fields.size(); ++i) p.us.push_back(fields[i].empty() ? NAN : number_of(fields[i]));
  return p;
}

// Indices of the configurations, the least estimate first, the later one of equals: launch.cuh.
std::vector<size_t> by_estimate(const Problem& p) {
  std::vector<std::pair<double, size_t>> all;
  chapter::for_each_config([&]<class C>(C) {
    all.push_back({chapter::estimate<C>(p.sizes, p.device), all.size()});
  });
  std::sort(all.begin(), all.end(), [](const auto& one, const auto& other) {
    return one.first < other.first || (one.first == other.first && one.second > other.second);
  });
  std::vector<size_t> indices;
  for (const auto& [cycles, index] : all) indices.push_back(index);
  return indices;
}

// The fastest of these; the first of them must have been timed.
size_t fastest_of(const Problem& p, const std::vector<size_t>& indices, size_t count) {
  size_t fastest = indices[0];
  for (size_t i = 0; i < count; ++i) {
    if (p.us[indices[i]] < p.us[fastest]) fastest = indices[i];
  }
  return fastest;
}

std::vector<std::string> names_of_configurations() {
  std::vector<std::string> names;
  chapter::for_each_config(
      [&]<class C>(C) { names.push_back(gg::format("%dx%d %dx1", C::BM, C::BN, C::BLOCKS)); });
  return names;
}

void run(const char* path) {
  const std::vector<std::string> names = names_of_configurations();
  std::ifstream file(path);
  if (!file) gg::fail(gg::Exit::bad_input, "%s cannot be read", path);
  std::string line, columns = "device,date,multiprocessors,gbytes_per_s,set,m,n,k";
  for (const std::string& name : names) columns += "," + name;
  if (!std::getline(file, line) || line != columns)
    gg::fail(gg::Exit::bad_input, "%s has other columns than %s", path, columns.c_str());

  const char* const kinds[] = {"fitted", "unseen", "of sets"};
  Losses losses[MOST_TRIED][3];  // of the fastest of so many estimates, one, two ..
  double worst = -1;
  std::string about;  // the worst
  for (int number = 2; std::getline(file, line); ++number) {
    try {
      const Problem p = problem_of(line, names.size());
      const std::vector<size_t> indices = by_estimate(p);
      const size_t kind = p.set == kinds[0] ? 0 : p.set == kinds[1] ? 1 : 2, choice = indices[0];
      if (std::isnan(p.us[choice])) {
        for (auto& of_tried : losses) ++of_tried[kind].not_timed;
        continue;
      }
      const size_t fastest = fastest_of(p, indices, indices.size());
      for (size_t tried = 1; tried <= MOST_TRIED; ++tried)
        losses[tried - 1][kind].each.push_back(p.us[fastest_of(p, indices, tried)] / p.us[fastest] - 1);
      const double loss = p.us[choice] / p.us[fastest] - 1;
      if (loss <= worst) continue;
      worst = loss;
      about = gg::format("G=%d M=%lld N=%d K=%d: %.4g us with %s, %.4g with %s", p.sizes.groups,
                         static_cast<long long>(p.sizes.m_total), p.sizes.n, p.sizes.k, p.us[choice],
                         names[choice].c_str(), p.us[fastest], names[fastest].c_str());
    } catch (const gg::Error& error) {
      gg::fail(gg::Exit::bad_input, "%s, line %d: %s", path, number, error.what());
    }
  }
  std::printf("%-8s %6s %10s %6s %9s %8s %9s\n", "problems", "", "not timed", "tried", "mean", "worst",
              "over 5 %");
  for (int kind = 0; kind < 3; ++kind) {
    for (int tried = 1; tried <= MOST_TRIED; ++tried) losses[tried - 1][kind].print(kinds[kind], tried);
  }
  std::printf("the worst choice: %s\n", about.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) gg::fail(gg::Exit::bad_input, "wants one file, such as plots/measure/data/choice.csv");
    run(argv[1]);
    return 0;
  } catch (const gg::Error& error) {
    std::fprintf(stderr, "gg-choice: %s\n", error.what());
    return int(error.code);
  }
}
