// SPDX-License-Identifier: MIT
//
// Reads a trace file: all of its JSON, then what tests ask of every trace.

#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/process.h"

namespace testing_gg {

// A JSON value: text of a string or of anything plain, elements of an array, fields of an object.
struct Json {
  char kind = ' ';  // " [ { or ' '
  std::string text;
  std::vector<Json> elements;
  std::map<std::string, Json> fields;

  const Json& operator[](const std::string& name) const { return fields.at(name); }
  bool has(const std::string& name) const { return fields.count(name) != 0; }
  int64_t number() const { return std::strtoll(text.c_str(), nullptr, 10); }
};

// Only what a trace holds: strings, whole numbers, true and false. Throws at anything else.
class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Json whole() {
    Json all = value();
    if (next() != '\0') fail();
    return all;
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error("no JSON at byte " + std::to_string(at_) + ": " + text_.substr(at_, 40));
  }
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char c) {
    if (next() != c) fail();
    ++at_;
  }
  std::string string() {
    std::string result;
    for (expect('"'); at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && text_[++at_] != '"' && text_[at_] != '\\') fail();
      if (text_[at_] < 0x20 || text_[at_] > 0x7E) fail();
      result += text_[at_];
    }
    expect('"');
    return result;
  }
  Json value() {
    Json v;
    v.kind = next();
    if (v.kind == '"') {
      v.text = string();
    } else if (v.kind == '{' || v.kind == '[') {
      const char end = v.kind == '{' ? '}' : ']';
      for (++at_; next() != end;) {
        if (!v.fields.empty() || !v.elements.empty()) expect(',');
        if (v.kind == '[') {
          v.elements.push_back(value());
          continue;
        }
        const std::string name = string();
        expect(':');
        if (!v.fields.emplace(name, value()).second) fail();
      }
      ++at_;
    } else {
      v.kind = ' ';
      const size_t end = text_.find_first_not_of("0123456789truefalse", at_);
      v.text = text_.substr(at_, end - at_);
      at_ += v.text.size();
      if (v.text != "true" && v.text != "false" && std::to_string(v.number()) != v.text) fail();
    }
    return v;
  }

  const std::string& text_;
  size_t at_ = 0;
};

struct TraceEvent {
  std::string kind;
  int64_t begin = 0, end = 0, instructions = 0;
  std::string first, mbarrier;
  bool ended = true;
};

struct TracePhase {
  int64_t number = 0, begin = 0, end = 0;
};

struct TraceFile {
  std::map<int64_t, std::string> blocks;                                 // names, by process
  std::map<std::pair<int64_t, int64_t>, std::vector<TraceEvent>> warps;  // by block and warp
  // By block and mbarrier.
  std::map<std::pair<int64_t, std::string>, std::vector<TracePhase>> phases;
  int64_t instructions = 0, waits = 0, again = 0;
};

// The phases of an mbarrier follow one another, and the next begins where one ends.
inline void read_phase(TraceFile& trace, const std::pair<int64_t, std::string>& mbarrier, const Json& e) {
  const int64_t begin = e["ts"].number();
  std::vector<TracePhase>& row = trace.phases[mbarrier];
  if (!row.empty()) {
    EXPECT_EQ(row.back().end, begin) << mbarrier.second;
    EXPECT_EQ(row.back().number + 1, e["args"]["phase"].number()) << mbarrier.second;
  }
  row.push_back({e["args"]["phase"].number(), begin, begin + e["dur"].number()});
}

// Says what its axis is; the events of a warp follow one another without overlapping.
inline TraceFile read_trace(const std::string& path) {
  TraceFile trace;
  const std::string text = text_of(path);
  const Json all = JsonReader(text).whole();
  EXPECT_NE(all["otherData"]["axis"].text.find("issue order, not time"), std::string::npos);
  std::map<std::pair<int64_t, int64_t>, std::string> rows;  // names, by block and warp
  for (const Json& e : all["traceEvents"].elements) {
    const int64_t block = e["pid"].number(), warp = e["tid"].number();
    if (e["ph"].text == "M") {
      if (e["name"].text == "process_name") trace.blocks[block] = e["args"]["name"].text;
      if (e["name"].text == "thread_name") rows[{block, warp}] = e["args"]["name"].text;
      continue;
    }
    EXPECT_EQ(e["ph"].text, "X");
    if (e["name"].text == "phase") {
      read_phase(trace, {block, rows.at({block, warp})}, e);
      continue;
    }
    TraceEvent event;
    event.kind = e["name"].text;
    event.begin = e["ts"].number();
    event.end = event.begin + e["dur"].number();
    event.instructions = e["args"]["instructions"].number();
    event.first = e["args"]["first"].text;
    event.ended = !e["args"].has("ended");
    if (e["args"].has("mbarrier")) event.mbarrier = e["args"]["mbarrier"].text;
    if (e["args"].has("waits")) trace.waits += e["args"]["waits"].number();
    if (e["args"].has("again")) trace.again += e["args"]["again"].number();
    EXPECT_TRUE(trace.blocks.count(block)) << "a block without a name";
    EXPECT_LT(event.begin, event.end);
    std::vector<TraceEvent>& row = trace.warps[{block, warp}];
    if (!row.empty()) {
      EXPECT_LE(row.back().end, event.begin) << path << ": block " << block << ", warp " << warp;
    }
    row.push_back(event);
    trace.instructions += event.instructions;
  }
  return trace;
}

inline std::vector<std::string> kinds_of(const std::vector<TraceEvent>& row, bool others = false) {
  std::vector<std::string> kinds;
  for (const TraceEvent& event : row) {
    if (others || event.kind != "other") kinds.push_back(event.kind);
  }
  return kinds;
}

}  // namespace testing_gg
