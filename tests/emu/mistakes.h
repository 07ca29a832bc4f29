// SPDX-License-Identifier: MIT
//
// Planted mistakes, each with the program as it should be: a list for each of the rules that they
// break. faults_test.cpp runs them all.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/emu/launch_ptx.h"

namespace emu_test {

struct Mistake {
  std::string name;
  FaultKind kind = FaultKind::bounds;
  std::string bug, right;  // PTX
  Config config = {};
  Words in = {};
  std::optional<Config> right_config = {};  // where it is the launch that is wrong
  std::optional<Words> right_in = {};
  bool every_order = true;  // it shows in
};

std::vector<Mistake> memory_mistakes();
std::vector<Mistake> uninit_mistakes();
std::vector<Mistake> race_mistakes();
std::vector<Mistake> one_word_mistakes();
std::vector<Mistake> copy_mistakes();
std::vector<Mistake> barrier_mistakes();
std::vector<Mistake> lock_mistakes();
std::vector<Mistake> mbarrier_mistakes();
std::vector<Mistake> relaxed_mistakes();
std::vector<Mistake> bulk_mistakes();
std::vector<Mistake> neighbour_mistakes();
std::vector<Mistake> other_mistakes();
std::vector<Mistake> tensor_memory_mistakes();
std::vector<Mistake> source_mistakes();

}  // namespace emu_test
