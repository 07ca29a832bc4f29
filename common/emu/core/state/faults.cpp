// SPDX-License-Identifier: MIT
//
// Reports that a learner understands: what happened, where, who else, and the likely cause.

#include "common/emu/core/state/faults.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "common/emu/core/state/grid.h"
#include "common/emu/core/state/names.h"
#include "common/emu/core/state/progress.h"

namespace gg::emu {
namespace {

struct Kind {
  const char *name, *summary;
};
constexpr Kind kKinds[kFaultKinds] = {
    {"unsupported", "an instruction, modifier or call that the emulator does not know"},
    {"bounds", "an address outside every buffer, or outside the block's shared memory"},
    {"use-after-free",
     "an address in memory that was freed, or in shared memory of another block that has ended"},
    {"alignment", "an access that is not aligned to its size"},
    {"uninit-shared", "a read of shared memory that nobody wrote"},
    {"uninit-global", "a read of global memory that neither the host nor a kernel wrote"},
    {"uninit-register", "a read of a register that nobody wrote"},
    {"async-window", "touching what an asynchronous operation still reads or writes"},
    {"proxy", "ordinary writes read by an asynchronous operation without a proxy fence"},
    {"deadlock", "nobody can go on"},
    {"diverged", "an instruction for all lanes that only some of them reach, or name in its membermask"},
    {"barrier", "misuse of bar or barrier.cluster"},
    {"barrier-count", "a bar with a count or form that hardware refuses, a second barrier.cluster.arrive"},
    {"mbarrier", "misuse of an mbarrier: initialised twice, its bytes used as memory, a foreign token"},
    {"mbarrier-state", "an mbarrier not initialised, or with more arrivals or bytes than it can count"},
    {"descriptor", "a matrix descriptor of wgmma or tcgen05 that does not fit its use"},
    {"tensor-map", "128 bytes that are no tensor map, or one that does not fit its use"},
    {"exit", "a block that ends while a copy still reads or writes its shared memory"},
    {"race", "two warps touch the same shared bytes, one of them writes, and nothing orders them"},
    {"trap", "trap, brkpt, or a failed assertion"},
    {"launch", "a launch that no device accepts"},
    {"uninit-tmem", "a read of tensor memory that nobody wrote"},
    {"tcgen05", "misuse of tcgen05: allocation, several lanes that issue, two cta_groups in a kernel"},
    {"tcgen05-fence", "tensor memory handed from warp to warp without the fences of tcgen05"},
    {"address-space", "a generic address where an instruction wants one of shared memory, or the reverse"},
    {"tmem-lane", "a lane of tensor memory counted through both blocks of a pair: 128 and up in the second"},
};

constexpr size_t kColumns = 100, kIndent = 10;

// ---- names ----

// "void chapter::grouped_gemm<float, (int)128>(float const*, ...)" -> "chapter::grouped_gemm<...>"
std::string short_name(const std::string& name) {
  constexpr size_t kShort = 48;
  const std::string whole = demangled(name);
  std::string plain, full;  // without and with template arguments
  int depth = 0;
  for (const char c : whole) {
    if (c == '(' && depth == 0) break;
    if (c == '<' && depth++ == 0) plain += "<...>";
    if (depth == 0) plain += c;
    full += c;
    if (c == '>') --depth;
    if (c == ' ' && depth == 0) plain.clear(), full.clear();  // a return type
  }
  return full.size() <= kShort ? full : plain;
}

// A block or thread in as many coordinates as the launch has.
std::string coordinates(const int (&at)[3], const int (&extent)[3]) {
  const int dimensions = extent[2] > 1 ? 3 : extent[1] > 1 ? 2 : 1;
  std::string text = std::to_string(at[0]);
  for (int i = 1; i < dimensions; ++i) text += "," + std::to_string(at[i]);
  return dimensions == 1 ? text : "(" + text + ")";
}

std::string block_text(const Block& b) {
  std::string text = "block " + coordinates(b.id, b.grid->launch.grid);
  if (b.cluster->blocks.size() > 1) text += " (rank " + std::to_string(b.rank) + " of its cluster)";
  return text;
}

std::string thread_text(const Warp& w, int lane) {
  const int(&extent)[3] = w.block->grid->launch.block;
  const int t = w.thread_of(lane),
            at[3] = {t % extent[0], t / extent[0] % extent[1], t / extent[0] / extent[1]};
  return "lane " + std::to_string(lane) + " (thread " + coordinates(at, extent) + ")";
}

// "warp 3", "warps 0-2, 5"
std::string warps_text(const Warp& first, const std::vector<const Warp*>& more) {
  std::string text = (more.empty() ? "warp " : "warps ") + std::to_string(first.index);
  int last = first.index, begin = last;
  const auto close = [&] {
    if (last > begin) text += "-" + std::to_string(last);
  };
  for (const Warp* w : more) {
    if (w->index != last + 1) {
      close();
      text += ", " + std::to_string(begin = w->index);
    }
    last = w->index;
  }
  close();
  return text;
}

// ---- places ----

std::string squeezed(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n' || c == '\t' || c == ' ' || c == '\r') {
      if (!result.empty() && result.back() != ' ') result += ' ';
    } else {
      result += c;
    }
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
  constexpr size_t kMost = 80;
  if (result.size() > kMost) result = result.substr(0, kMost - 4) + " ...";
  return result;
}

// From the current folder if the file is in it, else folder and name. CUDA's own headers are always
// named so: packages of the toolkit, nvidia/cu13/include/.., may lie in the build tree.
std::string shown_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path relative =
      std::filesystem::relative(path, std::filesystem::current_path(error), error);
  const bool is_cuda = path.find("/nvidia/cu") != std::string::npos && path.find("/include/") != std::string::npos;
  if (!error && !is_cuda && !relative.empty() && relative.native().rfind("..", 0) != 0) return relative.string();
  const std::filesystem::path whole(path);
  const std::filesystem::path folder = whole.parent_path().filename();
  return folder.empty() ? whole.filename().string() : (folder / whole.filename()).string();
}

std::string line_of_file(const std::string& path, int number) {
  std::ifstream file(path);
  std::string line;
  for (int i = 0; i < number; ++i) {
    if (!std::getline(file, line)) return "";
  }
  return squeezed(line);
}

// "kernel.cuh:57"; nothing if no such file is named.
std::string place_text(const Module& module, const Location& at) {
  const auto found = module.files.find(at.file);
  return found == module.files.end() ? "" : shown_path(found->second) + ":" + std::to_string(at.line);
}
bool is_newer(const std::string& file, const std::string& than) {
  std::error_code error, other;
  const auto changed = std::filesystem::last_write_time(file, error);
  const auto made = std::filesystem::last_write_time(than, other);
  return !error && !other && changed > made;
}
// The line of the source; what stood there when the code was made nobody knows if the file
// was changed since.
std::string text_at(const Module& module, const Location& at) {
  const auto found = module.files.find(at.file);
  if (found == module.files.end()) return "";
  if (is_newer(found->second, module.origin))
    return "(the file is newer than this code: build again to see the line)";
  return line_of_file(found->second, at.line);
}

// Where an instruction comes from: the innermost function that was expanded, its caller, and so on
// up to the kernel.
std::vector<Location> frames_of(const Instr& in) {
  std::vector<Location> frames;
  if (!in.function) return frames;
  for (int at = in.statement->loc; at >= 0; at = frames.back().caller)
    frames.push_back(in.function->locations[size_t(at)]);
  return frames;
}

// A file of functions that each stand for one instruction: ours, or CUDA's own headers. The line
// that calls one says more than its own.
bool holds_wrappers(const Module& module, const Location& at) {
  const auto found = module.files.find(at.file);
  if (found == module.files.end()) return true;
  const std::string& path = found->second;
  return path.find("/common/kernel/ptx/") != std::string::npos || path.find("/include/") != std::string::npos;
}

// The innermost frame that is no wrapper's, or the innermost one where all are.
size_t telling_frame(const Module& module, const std::vector<Location>& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (!holds_wrappers(module, frames[i])) return i;
  }
  return 0;
}

// ---- layout ----

// Words in lines of kColumns, all after the first indented; line breaks in the text stay.
std::string wrapped(const std::string& text) {
  std::string result;
  size_t column = kIndent;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\n') {
      result += "\n" + std::string(kIndent, ' ');
      column = kIndent;
      ++at;
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const size_t length = end - at;
    if (column > kIndent && column + 1 + length > kColumns) {
      result += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    } else if (column > kIndent) {
      result += ' ';
      ++column;
    }
    result += text.substr(at, length);
    column += length;
    at = end < text.size() && text[end] == ' ' ? end + 1 : end;
  }
  return result;
}

std::string field(const char* name, const std::string& text) {
  std::string head = "  " + std::string(name);
  head.resize(kIndent, ' ');
  return head + text + "\n";
}

std::string other_party(const Warp& from, int lane, const Party& party) {
  std::string who;
  if (party.warp == &from && party.lane >= 0 && party.lane == lane) {
    who = "the same thread ";
  } else if (party.warp) {
    if (party.warp->block != from.block) who = block_text(*party.warp->block) + ", ";
    if (party.warp->driver) who += "the tensor core, driven by ";
    who += warps_text(*party.warp, party.likewise);
    if (party.lanes) who += ", " + lanes_text(party.lanes);
    if (party.lane >= 0) who += ", " + thread_text(*party.warp, party.lane);
    who += ": ";
    if (!party.likewise.empty() || __builtin_popcount(party.lanes) > 1) who += "each ";
  }
  return field("other", wrapped(who + party.did) +
                            (party.instr ? "\n" + std::string(kIndent, ' ') + place_of(*party.instr) : ""));
}

std::string report(const char* title, FaultKind kind, const Warp& w, const Instr& in, int lane,
                   const std::string& what, const std::string& cause, const std::vector<Party>& others) {
  constexpr size_t kMostOthers = 8;
  const Grid& grid = *w.block->grid;
  std::string text = std::string(title) + " " + fault_name(kind) + " in " +
                     short_name(grid.launch.code->function->name) + "\n";
  text += field("what", wrapped(what));
  text += field("where", place_of(in));
  text += field("who", block_text(*w.block) + ", warp " + std::to_string(w.index) +
                           (lane < 0 ? "" : ", " + thread_text(w, lane)));
  for (size_t i = 0; i < std::min(others.size(), kMostOthers); ++i) text += other_party(w, lane, others[i]);
  if (others.size() > kMostOthers)
    text += field("other", "and " + std::to_string(others.size() - kMostOthers) + " more");
  text += field("likely", wrapped(cause));
  text += field("order", std::to_string(grid.order.seed) + (grid.order.skew ? ":skew" : ":fair"));
  text += field("read", std::string("common/emu/FAULTS.md#") + fault_name(kind));
  return text;
}

[[noreturn]] void stop(FaultKind kind, const Warp& warp, const Instr& instr, int lane,
                       const std::string& what, const std::string& cause, const std::vector<Party>& others) {
  throw Fault(kind, report("fault", kind, warp, instr, lane, what, cause, others));
}

}  // namespace

const char* fault_name(FaultKind kind) { return kKinds[int(kind)].name; }
bool fault_kind(const std::string& name, FaultKind* kind) {
  for (int i = 0; i < kFaultKinds; ++i) {
    if (name == kKinds[i].name) {
      *kind = FaultKind(i);
      return true;
    }
  }
  return false;
}

std::string allowable_kinds() {
  std::string names;
  for (int i = 0; i < kFaultKinds; ++i) {
    if (can_be_allowed(FaultKind(i))) names += (names.empty() ? "" : ", ") + std::string(kKinds[i].name);
  }
  return names;
}

std::string fault_kinds_help() {
  std::string text;
  for (int i = 0; i < kFaultKinds; ++i) {
    std::string name = kKinds[i].name;
    name.resize(16, ' ');
    text +=
        std::string(can_be_allowed(FaultKind(i)) ? "  * " : "    ") + name + " " + kKinds[i].summary + "\n";
  }
  return text;
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string lanes_text(uint32_t lanes) {
  constexpr int kMostRanges = 3;
  std::string text;
  int ranges = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    int last = l;
    while (last + 1 < kLanes && lanes >> (last + 1) & 1) ++last;
    text += (ranges++ ? ", " : "") + std::to_string(l) + (last > l ? "-" + std::to_string(last) : "");
    l = last;
  }
  if (ranges > kMostRanges) text = hex(lanes);
  return (__builtin_popcount(lanes) == 1 ? "lane " : "lanes ") + text;
}

std::string lanes_do(uint32_t lanes, const std::string& verb) {
  const bool one = __builtin_popcount(lanes) == 1;
  return lanes_text(lanes) + " " + verb + (!one ? "" : verb == "pass" ? "es" : "s");
}

std::string plain_name(const std::string& name) {
  const std::string whole = demangled(name);
  const size_t at = whole.rfind("::");
  return at == std::string::npos ? whole : whole.substr(at + 2);
}

// "a.cuh:1, b.cuh:2 (3 times)": of a recursion each place once.
static std::string list_text(const std::vector<std::string>& places) {
  std::string text;
  for (size_t i = 0, next = 0; i < places.size(); i = next) {
    while (next < places.size() && places[next] == places[i]) ++next;
    text += (text.empty() ? "" : ", ") + places[i] +
            (next - i > 1 ? " (" + std::to_string(next - i) + " times)" : "");
  }
  return text;
}

SourceLine source_of(const Instr& in) {
  const std::vector<Location> frames = frames_of(in);
  if (frames.empty()) return {};
  const Location& at = frames[telling_frame(*in.module, frames)];
  return {place_text(*in.module, at), text_at(*in.module, at)};
}

std::string warp_text(const Warp& warp, const Block& from) {
  return (warp.block == &from ? "" : block_text(*warp.block) + ", ") + "warp " + std::to_string(warp.index);
}

std::string place_of(const Instr& in) {
  const std::string next = "\n" + std::string(kIndent, ' ');
  const std::vector<Location> frames = frames_of(in);
  const SourceLine line = source_of(in);
  std::string text;
  if (!line.place.empty()) {
    const size_t telling = telling_frame(*in.module, frames);
    text = line.place + (line.text.empty() ? "" : "   " + line.text) + next;
    std::vector<std::string> inner, outer;
    for (size_t i = telling; i-- > 0;) inner.push_back(place_text(*in.module, frames[i]));
    for (size_t i = telling + 1; i < frames.size(); ++i) outer.push_back(place_text(*in.module, frames[i]));
    const std::string through = list_text(inner), called = list_text(outer);
    if (!through.empty()) text += "through " + through + next;
    const std::string call = outer.size() == 1 ? text_at(*in.module, frames.back()) : "";
    if (!called.empty()) text += "called at " + called + (call.empty() ? "" : "   " + call) + next;
  }
  return text + "PTX line " + std::to_string(in.statement->line) + ": " + squeezed(in.statement->text);
}

void raise(AllowableKind allowable, const Warp& warp, const Instr& instr, int lane, const std::string& what,
           const std::string& cause, const std::vector<Party>& others) {
  const FaultKind kind = allowable.kind;
  if (!(warp.block->grid->allowed >> int(kind) & 1)) stop(kind, warp, instr, lane, what, cause, others);
  const uint32_t bit = 1u << int(kind);
  if (__atomic_fetch_or(&instr.told, bit, __ATOMIC_RELAXED) & bit) return;
  const ProgressLine::Aside aside(ProgressLine::get());
  std::fputs(report("allowed:", kind, warp, instr, lane, what, cause, others).c_str(), stderr);
}

bool was_told(AllowableKind allowable, const Warp& warp, const Instr& instr) {
  const int kind = int(allowable.kind);
  return warp.block->grid->allowed >> kind & 1 && __atomic_load_n(&instr.told, __ATOMIC_RELAXED) >> kind & 1;
}

void raise_final(FinalKind kind, const Warp& warp, const Instr& instr, int lane, const std::string& what,
                 const std::string& cause, const std::vector<Party>& others) {
  stop(kind.kind, warp, instr, lane, what, cause, others);
}

void raise_launch(const Launch& launch, const std::string& what, const std::string& cause) {
  throw Fault(FaultKind::launch, std::string("fault launch in ") + short_name(launch.code->function->name) +
                                     "\n" + field("what", wrapped(what)) + field("likely", wrapped(cause)) +
                                     field("read", "common/emu/FAULTS.md#launch"));
}

}  // namespace gg::emu
