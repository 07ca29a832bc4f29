// SPDX-License-Identifier: MIT
//
// Runs a kernel of a PTX file through gg-ptx, with buffers in a folder of its own.

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "common/harness/base/npy.h"
#include "tests/process.h"

namespace testing_gg {

template <class T>
std::string npy_type() {
  const std::string kind = std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "i" : "u";
  return (sizeof(T) == 1 ? "|" : "<") + kind + std::to_string(sizeof(T));
}

// Reports are wrapped: one space for any blanks.
inline std::string squeezed(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || result.empty() || result.back() != ' ') result += blank ? ' ' : c;
  }
  return result;
}
inline testing::AssertionResult reports(const Outcome& outcome, const std::vector<std::string>& parts) {
  if (outcome.code != 3) return testing::AssertionFailure() << "code " << outcome.code << "\n" << outcome.err;
  for (const std::string& part : parts) {
    if (squeezed(outcome.err).find(part) == std::string::npos)
      return testing::AssertionFailure() << "without '" << part << "':\n" << outcome.err;
  }
  return testing::AssertionSuccess();
}

// A .npy file of one dimension, without waiting for the disk as gg::write_npy does.
inline void write_vector(const std::string& path, const std::string& type, size_t count, const void* data,
                         size_t bytes) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  header.resize(128 - 10 - 1, ' ');
  header += '\n';
  std::string content = std::string("\x93NUMPY\x01\x00", 8) + char(header.size()) + '\0' + header;
  write_text(path, content.append(static_cast<const char*>(data), bytes));
}

class PtxRun {
 public:
  explicit PtxRun(const std::string& file) : words_{GG_BINARY_DIR "/bin/gg-ptx", file} {}

  template <class T>
  PtxRun& in(const std::string& name, const std::vector<T>& values) {
    return buffer(name, values, "in:");
  }
  template <class T>
  PtxRun& out(const std::string& name, const std::vector<T>& values) {
    return buffer(name, values, "out:");
  }
  PtxRun& add(const std::vector<std::string>& words) {
    words_.insert(words_.end(), words.begin(), words.end());
    return *this;
  }
  PtxRun& arg(const std::string& value) { return add({"--arg", value}); }

  // Once, with more options behind all others.
  Outcome run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = words_;
    words.insert(words.end(), more.begin(), more.end());
    return testing_gg::run(words);
  }

  // With several orders, which must all end well and leave the same bits in the buffers that are written
  // back.
  void run_in_every_order(const std::vector<std::string>& more = {}) {
    const std::map<std::string, std::string> before = outputs();
    std::map<std::string, std::string> first;
    for (const char* order : {"0:fair", "1:fair", "2:skew"}) {
      for (const auto& [name, bytes] : before) write_text(folder_->at(name + ".npy"), bytes);
      std::vector<std::string> words = {"--order", order};
      words.insert(words.end(), more.begin(), more.end());
      const Outcome outcome = run(words);
      ASSERT_EQ(outcome.code, 0) << order << "\n" << outcome.err;
      if (first.empty()) first = outputs();
      EXPECT_EQ(outputs(), first) << order;
    }
  }

  template <class T>
  std::vector<T> result(const std::string& name) const {
    const gg::NpyArray array = gg::read_npy(folder_->at(name + ".npy"));
    EXPECT_EQ(array.type, npy_type<T>());
    std::vector<T> values(array.data.size() / sizeof(T));
    std::memcpy(values.data(), array.data.data(), array.data.size());
    return values;
  }
  std::string path(const std::string& name) const { return folder_->at(name); }

 private:
  template <class T>
  PtxRun& buffer(const std::string& name, const std::vector<T>& values, const std::string& kind) {
    const std::string file = folder_->at(name + ".npy");
    write_vector(file, npy_type<T>(), values.size(), values.data(), values.size() * sizeof(T));
    if (kind == "out:") written_.push_back(name);
    return add({"--buf", name + "=" + kind + file});
  }
  std::map<std::string, std::string> outputs() const {
    std::map<std::string, std::string> all;
    for (const std::string& name : written_) all[name] = text_of(folder_->at(name + ".npy"));
    return all;
  }

  std::unique_ptr<Folder> folder_ = std::make_unique<Folder>();
  std::vector<std::string> words_, written_;
};

}  // namespace testing_gg
