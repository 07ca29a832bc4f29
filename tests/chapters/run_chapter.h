// SPDX-License-Identifier: MIT
//
// Helpers that the tests of a chapter on a GPU and on the emulator share: running it on a small
// ragged problem, and the files that it writes.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <map>
#include <set>

#include "common/harness/base/text.h"
#include "common/harness/harness.cuh"
#include "tests/process.h"

namespace testing_gg {

using Words = std::vector<std::string>;

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
inline Outcome run_chapter(const std::string& id, const Words& arguments) {
  return run(with({program(id)}, arguments));
}

// Returns what the chapter says by --describe, as build/chapters.json has it: every test is a
// process of its own, and some list the choices of all chapters before they run. For the same
// reason nothing here looks through it by a regular expression.
inline const std::string& description(const std::string& id) {
  static std::map<std::string, std::string> texts;
  static const std::string all = text_of(GG_BINARY_DIR "/chapters.json");
  const auto [text, is_new] = texts.try_emplace(id);
  if (is_new) {
    const size_t begin = all.find("\"id\": \"" + id + "\"");
    EXPECT_NE(begin, std::string::npos) << "chapters.json has no " << id;
    text->second = all.substr(begin, all.find("\n}", begin) - begin);
  }
  return text->second;
}
inline bool is_described(const std::string& id, const std::string& part) {
  return description(id).find(part) != std::string::npos;
}
// Returns what stands behind a key, each time that it begins and ends with these characters, which
// are left out.
inline Words behind(const std::string& id, const std::string& key, char begin, char end) {
  const std::string &text = description(id), name = "\"" + key + "\": " + begin;
  Words values;
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
    at += name.size();
    values.push_back(text.substr(at, text.find(end, at) - at));
  }
  return values;
}
inline Words texts_of(const std::string& id, const std::string& key) { return behind(id, key, '"', '"'); }
inline Words listed(const std::string& id, const std::string& key) {
  Words names;
  for (const std::string& list : behind(id, key, '[', ']')) {
    std::stringstream words(list);
    for (std::string name; words >> std::quoted(name); words.ignore(2)) names.push_back(name);
  }
  return names;
}
// A number of the chapter's limits, which hold for all its formats.
inline int limit_of(const std::string& id, const std::string& key) {
  const std::string limits = behind(id, "limits", '{', '}').at(0), name = "\"" + key + "\": ";
  const size_t at = limits.find(name);
  EXPECT_NE(at, std::string::npos) << id << " has no limit " << key;
  return at == std::string::npos ? 0 : std::stoi(limits.substr(at + name.size()));
}
// The words that choose each form of a chapter but the one that it has without options.
inline std::vector<Words> forms_of(const std::string& id) {
  std::vector<Words> forms;
  for (const std::string& form : listed(id, "forms")) forms.push_back(gg::split(form, ' '));
  return forms;
}
// Returns the architecture that the chapter's kernels are compiled for.
inline gg::Arch arch_of(const std::string& id) {
  const std::string arch = texts_of(id, "arch").at(0);
  return arch == "80" ? gg::Arch::sm_80 : arch == "90a" ? gg::Arch::sm_90a : gg::Arch::sm_100a;
}
inline bool has_block_scales(const std::string& id) { return is_described(id, "\"sfa\""); }
// Is its sum over a group's rows?
inline bool is_gradient(const std::string& id) {
  return is_described(id, "\"product\": \"weight_gradient\"");
}
// Does it scale by alpha and prob?
inline bool has_epilogue(const std::string& id) { return is_described(id, "\"alpha\""); }
// Is it the gradient of a gated unit, which takes C and has no bias?
inline bool is_glu_gradient(const std::string& id) { return is_described(id, "\"dprob\""); }
inline bool has_tensor(const std::string& id, const std::string& name) {
  return is_described(id, "\"name\": \"" + name + "\"");
}

inline bool has_option(const std::string& id, const char* name) {
  const Words options = listed(id, "options");
  return std::find(options.begin(), options.end(), name) != options.end();
}

// Is it there whatever is chosen?
inline bool always_has_tensor(const std::string& id, const std::string& name) {
  const std::string& text = description(id);
  const size_t at = text.find("\"name\": \"" + name + "\"");
  return at != std::string::npos &&
         text.substr(at, text.find('}', at) - at).find("\"when\": \"always") != std::string::npos;
}

// The least N from this one on that a chapter takes.
inline int n_from(const std::string& id, int least) {
  const int multiple = limit_of(id, "n_multiple");
  return (least + multiple - 1) / multiple * multiple;
}

// Tiles of 256x128 that are stored in halves, and shorter ones before and behind.
inline Words tall_problem(const std::string& id) {
  if (limit_of(id, "m_multiple") > 1)
    return {"--tile", "256x128", "--m", "256,128,384,0,640,256", "--n", "144", "--k", "520"};
  const std::string n = std::to_string(n_from(id, 136));
  return {"--tile", "256x128", "--m", "256,40,193,0,300,256", "--n", n, "--k", "520"};
}

inline bool wants_equal_groups(const std::string& id) { return is_described(id, "\"equal_groups\": true"); }

// A small problem that a chapter takes: ragged, padded, or of equal groups.
struct SmallProblem {
  std::string m;
  int groups, m_total, m_max, n, k;

  Words words() const { return {"--m", m, "--n", std::to_string(n), "--k", std::to_string(k)}; }
};
inline SmallProblem small_problem(const std::string& id) {
  if (wants_equal_groups(id)) return {"64,64,64", 3, 192, 64, 72, 48};
  if (limit_of(id, "m_multiple") > 1) return {"256,0,512", 3, 768, 512, n_from(id, 72), 96};
  return {"5,0,33", 3, 38, 33, n_from(id, 72), 40};
}
inline Words problem_of(const std::string& id) { return small_problem(id).words(); }

inline Words files_in(const Folder& folder) {
  Words names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Checks a problem and writes its tensors; what the program says must be that all is right.
inline void write_tensors(const std::string& id, const Folder& folder, const Words& arguments) {
  const Outcome outcome = run_chapter(id, with(arguments, {"--check", "--out", folder.path}));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}
// Writes the tensors of one launch on the emulator, which it counts and does not check: a
// check launches four times, one of an epilogue eight times. Bits that are those of a checked
// problem are right.
inline void write_counted_tensors(const std::string& id, const Folder& folder, const Words& arguments) {
  const Outcome outcome =
      run_chapter(id, with(arguments, {"--device", "emu", "--bench", "--out", folder.path}));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}
inline void expect_same_files(const Folder& one, const Folder& other) {
  ASSERT_EQ(files_in(one), files_in(other));
  for (const std::string& name : files_in(one)) {
    EXPECT_EQ(text_of(one.at(name)), text_of(other.at(name))) << name;
  }
}

// The numbers of a .npy file of f32.
inline std::vector<float> floats_of(const std::string& path) {
  const std::string text = text_of(path);
  const size_t start = 10 + (uint8_t(text.at(8)) | size_t(uint8_t(text.at(9))) << 8);
  std::vector<float> values((text.size() - start) / sizeof(float));
  std::memcpy(values.data(), text.data() + start, values.size() * sizeof(float));
  return values;
}
// As expect_same_files, but for sums in f32 of what approximate instructions make: a GPU and the
// emulator round exponentials and reciprocals differently in the last bits. They differ by 2^-18 of
// the largest at most.
inline void expect_same_files_but_sums(const Folder& one, const Folder& other) {
  ASSERT_EQ(files_in(one), files_in(other));
  for (const std::string& name : files_in(one)) {
    if (name != "dbias.npy" && name != "dprob.npy") {
      EXPECT_EQ(text_of(one.at(name)), text_of(other.at(name))) << name;
      continue;
    }
    const std::vector<float> x = floats_of(one.at(name)), y = floats_of(other.at(name));
    ASSERT_EQ(x.size(), y.size());
    float largest = 0;
    for (const float value : x) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], largest * 0x1p-18f) << name << " " << i;
  }
}

// The tensors of the small problem are whole, come back through --in and depend on --seed.
inline void expect_whole_files(const std::string& id, const std::string& device) {
  const Folder first, again, other;
  const Words problem = problem_of(id);
  write_tensors(id, first, with(problem, {"--device", device}));
  write_tensors(id, again, {"--device", device, "--in", first.path});
  write_tensors(id, other, with(problem, {"--device", device, "--seed", "1"}));
  const Words packed = {"a.npy", "b.npy", "d.npy", "offsets.npy"},
              scattered = {"a_00000.npy", "a_00001.npy", "a_00002.npy", "b_00000.npy", "b_00001.npy",
                           "b_00002.npy", "d_00000.npy", "d_00001.npy", "d_00002.npy"};
  const Words scaled = {"a.npy", "b.npy", "d.npy", "offsets.npy", "sfa.npy", "sfb.npy"};
  Words epilogue = {"a.npy", "alpha.npy", "b.npy", "d.npy", "offsets.npy", "prob.npy"};
  for (const std::string name : {"amax", "c", "dbias", "dprob", "hadamard", "sfa", "sfb"}) {
    if (has_tensor(id, name)) epilogue.push_back(name + ".npy");
  }
  for (const std::string name : {"d_col", "norm_const", "sfd_col", "sfd_row"}) {
    if (always_has_tensor(id, name)) epilogue.push_back(name + ".npy");
  }
  std::sort(epilogue.begin(), epilogue.end());
  const Words& names = id == "04_persistent"  ? scattered
                       : has_epilogue(id)     ? epilogue
                       : has_block_scales(id) ? scaled
                                              : packed;
  for (const Folder* folder : {&first, &other}) ASSERT_EQ(files_in(*folder), names);
  expect_same_files(first, again);
  const std::string d = names == scattered ? "d_00002.npy" : "d.npy";
  EXPECT_NE(text_of(first.at(d)), text_of(other.at(d)));
  EXPECT_EQ(text_of(first.at(d)).find("\xFF\xFF\xFF\xFF"), std::string::npos) << "an unwritten element";
}

// The first chapter of each architecture without an epilogue, and the first with one: they are
// asked what the harness says.
inline std::vector<std::string> one_of_each_kind() {
  std::vector<std::string> all;
  std::set<std::pair<gg::Arch, bool>> kinds;
  for (const std::string& id : built_chapters()) {
    if (kinds.emplace(arch_of(id), has_epilogue(id)).second) all.push_back(id);
  }
  return all;
}

}  // namespace testing_gg
