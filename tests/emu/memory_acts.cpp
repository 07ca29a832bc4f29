// SPDX-License-Identifier: MIT
//
// The table's instructions of the generic proxy, and the kernel around any one of the table.

#include "tests/emu/memory_acts.h"

#include <algorithm>
#include <cstring>

#include "common/emu/core/isa/forms.h"
#include "common/emu/core/report/count_report.h"
#include "common/emu/core/schedule/launches.h"
#include "common/emu/core/state/grid.h"
#include "common/emu/core/units/tensor_map_format.h"

namespace memory_test {
namespace {

using std::string;
using std::to_string;

// Registers that hold `count` values of this many bits: numbered from 40 on, given by the prologue.
string values(int bits, int count) {
  const string name = bits == 64 ? "%rd" : bits == 16 ? "%h" : "%r";
  const int first = bits == 16 ? 0 : 40;
  if (count == 1) return name + to_string(first);
  string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + name + to_string(first + i);
  return text + "}";
}
string results(int bits, int count) {
  const string name = bits == 64 ? "%rd" : bits == 16 ? "%h" : "%r";
  const int first = bits == 16 ? 8 : 50;
  if (count == 1) return name + to_string(first);
  string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + name + to_string(first + i);
  return text + "}";
}

// Spaces an access of shared memory may name; without one the address is a generic one.
const char* const kSpaces[] = {".shared", ".shared::cta", ".shared::cluster", ""};
string address(const string& space) { return space.empty() ? "[%rd20]" : "[%r20]"; }

Act plain(const string& instruction, int reads, int writes, int alignment) {
  Act act;
  act.name = act.instruction = instruction;
  act.reads = reads;
  act.writes = writes;
  act.alignment = alignment;
  return act;
}

void add_access(std::vector<Act>& all, const string& order, const string& space, int bits, int count) {
  const int width = bits / 8 * count, in_register = bits == 8 ? 32 : bits;
  const string what = order + space + (count > 1 ? ".v" + to_string(count) : "") + ".u" + to_string(bits);
  const bool strong = !order.empty() && order != ".weak";
  if (order.find("release") == string::npos) {
    all.push_back(plain("ld" + what + " " + results(in_register, count) + ", " + address(space) + ";", width,
                        0, width));
    all.back().strong = strong;
  }
  if (order.find("acquire") == string::npos) {
    all.push_back(
        plain("st" + what + " " + address(space) + ", " + values(in_register, count) + ";", 0, width, width));
    all.back().strong = strong;
  }
}

void add_accesses(std::vector<Act>& all) {
  for (const int bits : {8, 16, 32, 64}) {
    for (const int count : {1, 2, 4}) {
      if (bits * count <= 128) add_access(all, "", ".shared", bits, count);
    }
  }
  for (const char* space : kSpaces) {
    if (string(space) == ".shared") continue;
    add_access(all, "", space, 32, 1);
    add_access(all, "", space, 32, 4);
  }
  for (const char* order : {".weak", ".volatile", ".relaxed.cta", ".relaxed.cluster", ".acquire.cta",
                            ".release.cta", ".acquire.gpu", ".release.sys"}) {
    add_access(all, order, ".shared", 32, 1);
    add_access(all, order, "", 32, 1);
  }
}

void add_atomic(std::vector<Act>& all, const string& modifiers, const string& operation, const string& type) {
  const int bits = type.find("64") != string::npos   ? 64
                   : type.find("x2") != string::npos ? 32
                   : type.find("16") != string::npos ? 16
                                                     : 32;
  const string space = modifiers.find(".shared") == string::npos ? "" : ".shared";
  const bool halves = type.find("f16") != string::npos;
  const string what = modifiers + "." + operation + (halves ? ".noftz." : ".") + type + " ";
  const string operands = address(space) + ", " + values(bits == 32 && type == "f32" ? 32 : bits, 1) +
                          (operation == "cas" ? ", " + values(bits, 1) : "") + ";";
  const string f = type == "f32" ? "%f" : type == "f64" ? "%d" : "";
  const string from = f.empty() ? operands : address(space) + ", " + f + "0;";
  const string to = f.empty() ? results(bits, 1) : f + "1";
  all.push_back(plain("atom" + what + to + ", " + from, bits / 8, bits / 8, bits / 8));
  all.back().strong = true;
  if (operation == "cas" || operation == "exch") return;
  all.push_back(plain("red" + what + from, bits / 8, bits / 8, bits / 8));
  all.back().strong = true;
}

void add_atomics(std::vector<Act>& all) {
  const struct {
    const char* operation;
    std::vector<const char*> types;
  } kOperations[] = {{"and", {"b32", "b64"}},
                     {"or", {"b32"}},
                     {"xor", {"b32"}},
                     {"exch", {"b32", "b64"}},
                     {"cas", {"b16", "b32", "b64"}},
                     {"add", {"u32", "s32", "u64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2"}},
                     {"inc", {"u32"}},
                     {"dec", {"u32"}},
                     {"min", {"u32", "s64"}},
                     {"max", {"s32", "u64"}}};
  for (const auto& each : kOperations) {
    for (const char* type : each.types) add_atomic(all, ".shared", each.operation, type);
  }
  for (const char* space : {".shared::cta", ".shared::cluster", ""}) add_atomic(all, space, "add", "u32");
  for (const char* order : {".relaxed", ".acquire", ".release", ".acq_rel"}) {
    for (const char* scope : {".cta", ".cluster", ".gpu", ".sys"})
      add_atomic(all, string(order) + scope + ".shared", "add", "u32");
  }
}

// ldmatrix and stmatrix: lane l gives the row at 16 * l, in %r23 and %rd23.
void add_matrix(std::vector<Act>& all, bool loads, const string& shape, int rows, int registers, bool sm100) {
  for (const char* space : {".shared", ".shared::cta", ""}) {
    string list = "{";
    for (int i = 0; i < registers; ++i) list += (i ? ", %r" : "%r") + to_string((loads ? 50 : 40) + i);
    const string at = string(space).empty() ? "[%rd23]" : "[%r23]";
    const size_t type = shape.rfind(".b");
    const size_t cut = shape.find(".b8x16") != string::npos ? shape.find(".b8x16") : type;
    const string head = (loads ? "ldmatrix" : "stmatrix") + string(".sync.aligned") + shape.substr(0, cut) +
                        space + shape.substr(cut) + " ";
    const string text = head + (loads ? list + "}, " + at : at + ", " + list + "}") + ";";
    all.push_back(plain(text, loads ? 16 * rows : 0, loads ? 0 : 16 * rows, 16));
    all.back().who = Who::warp;
    all.back().sm100 = sm100;
  }
}

void add_matrices(std::vector<Act>& all) {
  for (const int count : {1, 2, 4}) {
    for (const char* trans : {"", ".trans"}) {
      const string shape = ".m8n8.x" + to_string(count) + trans + ".b16";
      add_matrix(all, true, shape, 8 * count, count, false);
      add_matrix(all, false, shape, 8 * count, count, false);
    }
    add_matrix(all, false, ".m16n8.x" + to_string(count) + ".trans.b8", 8 * count, count, true);
    add_matrix(all, true, ".m8n16.x" + to_string(count) + ".b8x16.b4x16_p64", 8 * count, count, true);
  }
  add_matrix(all, true, ".m16n16.x1.trans.b8", 16, 2, true);
  add_matrix(all, true, ".m16n16.x2.trans.b8x16.b6x16_p32", 32, 4, true);
}

// wmma: matrices without padding from the tile's start on, of every width of element and direction.
void add_wmma(std::vector<Act>& all) {
  struct Form {
    const char *load, *shape, *type;
    int registers, bytes;
  };
  const Form loads[] = {
      {"a.sync.aligned.row", "m16n16k16", "f16", 8, 512}, {"b.sync.aligned.row", "m32n8k16", "bf16", 2, 256},
      {"a.sync.aligned.col", "m8n32k16", "s8", 1, 128},   {"b.sync.aligned.col", "m16n16k8", "tf32", 4, 512},
      {"b.sync.aligned.col", "m8n8k32", "s4", 1, 128},    {"a.sync.aligned.row", "m8n8k128", "b1", 1, 128},
      {"c.sync.aligned.row", "m16n16k16", "f16", 4, 512}, {"c.sync.aligned.col", "m8n32k16", "f16", 4, 512}};
  for (const char* space : {".shared", ".shared::cta", ""}) {
    const string at = string(space).empty() ? "[%rd20]" : "[%r20]";
    const auto add = [&](const string& text, int reads, int writes, int alignment) {
      all.push_back(plain(text, reads, writes, alignment));
      all.back().who = Who::warp;
    };
    for (const Form& f : loads) {
      string list = "{%r50";
      for (int i = 1; i < f.registers; ++i) list += ", %r" + to_string(50 + i);
      add("wmma.load." + string(f.load) + "." + f.shape + space + "." + f.type + " " + list + "}, " + at +
              ";",
          f.bytes, 0, std::min(4 * f.registers, 16));
    }
    for (const char* layout : {"row", "col"}) {
      add("wmma.store.d.sync.aligned." + string(layout) + ".m16n16k16" + space + ".f16 " + at +
              ", {%r40, %r41, %r42, %r43};",
          0, 512, 16);
    }
    add("wmma.load.b.sync.aligned.row.m8n8k4" + string(space) + ".f64 {%rd50}, " + at + ";", 256, 0, 8);
  }
}

void add_others(std::vector<Act>& all) {
  all.push_back(plain("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r20], 0, 8;", 128, 128, 64));
  all.push_back(
      plain("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
            "[%rd3], [%r20], 128;",
            128, 0, 16));
  all.back().who = Who::warp;
  all.push_back(plain("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r20], 32;", 0, 4, 4));
  all.back().wait =
      "ld.shared.u32 %r60, [%r20];\n"
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r60, 32;\n";
  all.back().who = Who::warp;
  all.back().sm100 = true;
}

}  // namespace

std::vector<Act> generic_acts() {
  std::vector<Act> all;
  add_accesses(all);
  add_atomics(all);
  add_matrices(all);
  add_wmma(all);
  add_others(all);
  return all;
}
std::vector<Act> all_acts() {
  std::vector<Act> all = generic_acts();
  for (const Act& act : async_acts()) all.push_back(act);
  return all;
}

// ---- kernels ----

static int label = 0;

string wait_at_mbarrier() {
  const string name = "WAIT" + to_string(label++);
  return name + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p8, [%r22], 0;\n@!%p8 bra " + name + ";\n";
}
string only(Who who, const string& body) {
  if (who == Who::warpgroup) return body;
  const string name = "SKIP" + to_string(label++);
  return string(who == Who::lane ? "@!%p0" : "@!%p1") + " bra " + name + ";\n" + body + name + ":\n";
}

// %r0 thread, %r1 group of four warps, %r4 lane; %p0: its first thread, %p1: its first warp, %p2:
// the first group. %r20 and %rd20 the tile, %r21 and %rd21 the other array, %r22 the group's
// mbarrier. Values to store differ from group to group.
constexpr const char* kHead = R"(
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128])
{
  .shared .align 1024 .b8 tile[8192];
  .shared .align 1024 .b8 other[8192];
  .shared .align 1024 .b64 bars[1024];
  .shared .align 16 .b32 slot[4];
  .reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<80>; .reg .b64 %rd<64>; .reg .f32 %f<16>;
  .reg .f64 %d<2>;
  ld.param.u64 %rd0, [out];
  ld.param.u64 %rd1, [in];
  mov.b64 %rd2, map;
  add.u64 %rd3, %rd0, 4096;
  mov.u32 %r0, %tid.x;
  shr.u32 %r1, %r0, 7;
  and.b32 %r4, %r0, 31;
  and.b32 %r5, %r0, 127;
  setp.eq.u32 %p0, %r5, 0;
  setp.lt.u32 %p1, %r5, 32;
  setp.eq.u32 %p2, %r1, 0;
  setp.eq.u32 %p3, %r0, 0;
  setp.ne.u32 %p4, %r0, %r0;
  setp.lt.u32 %p5, %r0, 32;
  mov.u32 %r20, tile;
  mov.u32 %r21, other;
  mad.lo.u32 %r22, %r1, 8, bars;
  mad.lo.u32 %r23, %r4, 16, %r20;
  cvt.u64.u32 %rd20, %r20;
  cvta.shared.u64 %rd20, %rd20;
  cvt.u64.u32 %rd21, %r21;
  cvta.shared.u64 %rd21, %rd21;
  cvt.u64.u32 %rd23, %r23;
  cvta.shared.u64 %rd23, %rd23;
  add.u32 %r40, %r1, 1;
  mul.lo.u32 %r40, %r40, 16843009;
  cvt.u16.u32 %h0, %r40;
  mov.b64 %rd40, {%r40, %r40};
  mov.b64 %rd41, %rd40;
  mov.b32 %f0, %r40;
  mov.b64 %d0, %rd40;
)";

// Zeros fill both arrays, or the other one alone.
string kernel(const Act& like, const string& body, bool fill) {
  string text = string(".version 9.0\n.target ") + (like.sm100 ? "sm_100a" : "sm_90a") + kHead;
  for (int i = 1; i < 4; ++i) {
    text += "mov.u16 %h" + to_string(i) + ", %h0;\nmov.u32 %r" + to_string(40 + i) + ", %r40;\n";
  }
  for (int i = 0; i < 4; ++i) text += "mov.f32 %f" + to_string(8 + i) + ", 0f00000000;\n";
  text += "mov.u32 %r10, 0;\nmad.lo.u32 %r11, %r0, 16, %r21;\nmad.lo.u32 %r12, %r0, 16, %r20;\n";
  for (const char* at : {"%r11", "%r11+4096", "%r12", "%r12+4096"}) {
    if (fill || string(at).rfind("%r11", 0) == 0)
      text += string("st.shared.v4.u32 [") + at + "], {%r10, %r10, %r10, %r10};\n";
  }
  for (int i = 0; i < 4; ++i)
    text += "@%p3 mbarrier.init.shared::cta.b64 [bars+" + to_string(8 * i) + "], 1;\n";
  if (like.tensor) {
    text += "@%p5 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;\n";
  }
  text += "fence.proxy.async;\nfence.mbarrier_init.release.cluster;\nbar.sync 0;\n";
  if (like.tensor) text += "ld.shared.u32 %r6, [slot];\n";
  text += body + "\nbar.sync 0;\n";
  if (like.tensor) text += "@%p5 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64;\n";
  return text + "ret;\n}\n";
}

const char* family_name(gg::emu::Family family) {
  static constexpr const char* kNames[] = {"integer",  "floating", "convert", "move",     "control",  "ldst",
                                           "atomic",   "warp",     "barrier", "mbarrier", "cp_async", "bulk",
                                           "ldmatrix", "mma",      "wgmma",   "tcgen05",  "fence"};
  return kNames[int(family)];
}

// The instruction of the marked line alone.
static Counted counted_at(const gg::emu::Code& code, gg::emu::Counts counts, int line) {
  using namespace gg::emu;
  Counted result;
  for (size_t i = 0; i < code.instrs.size(); ++i) {
    const Instr& in = code.instrs[i];
    if (in.statement->line != line) {
      counts[&code][i] = {};
    } else {
      result.opcode = in.statement->opcode;
      result.family = family_name(in.family);
    }
  }
  for (const Counter& counter : summarise(counts)) {
    if (counter.value) result.moved[counter.name] = counter.value;
  }
  return result;
}

// A launch of the text; with `counts` it is counted.
static void launch_text(const string& ptx, const Conditions& conditions, Counted* result) {
  using namespace gg::emu;
  constexpr size_t kBytes = 16384;
  const std::unique_ptr<Module> module = parse_ptx(ptx);
  GlobalMemory memory;
  const uint64_t out = memory.allocate(kBytes), in = memory.allocate(kBytes);
  for (size_t i = 0; i < kBytes; ++i) memory.unchecked(in)[i] = uint8_t(i * 7 + 3);
  TensorMap map;
  map.type = MapType::u32;
  map.address = in;
  map.rank = conditions.rank;
  map.dims[0] = 16;
  map.box[0] = 16;
  for (int d = 1; d < conditions.rank; ++d) {
    map.dims[d] = d < 3 ? 8 : 1;
    map.strides[d] = d == 1 ? 64 : 64 * 8;
    map.box[d] = 1;
  }
  const std::unique_ptr<Code> code = decode(*module, *module->find("k"), gg::emu::all_forms());
  Launch launch;
  launch.code = code.get();
  launch.block[0] = 256;
  launch.grid[0] = launch.cluster[0] = conditions.blocks;
  launch.params.resize(192);
  std::memcpy(launch.params.data(), &out, 8);
  std::memcpy(launch.params.data() + 8, &in, 8);
  encode_tensor_map(map, launch.params.data() + 64);
  if (conditions.freed) memory.release(in);
  for (const uint64_t each : {in, out}) {
    if (conditions.unwritten) memory.forget(each);
  }
  RunOptions options;
  options.order = {conditions.seed, conditions.skew};
  options.workers = 1;
  Counts counts;
  run_launch(launch, memory, options, result ? &counts : nullptr);
  if (result) *result = counted_at(*code, counts, line_of(ptx, kHere));
}

Outcome run(const string& ptx, const Conditions& conditions) {
  using namespace gg::emu;
  try {
    launch_text(ptx, conditions, nullptr);
  } catch (const SyntaxError& error) {
    return {"syntax", "line " + to_string(error.line) + ": " + error.what};
  } catch (const Fault& fault) {
    return {fault_name(fault.kind), fault.what()};
  }
  return {};
}

Counted counted(const string& ptx, const Conditions& conditions) {
  Counted result;
  launch_text(ptx, conditions, &result);
  return result;
}

int line_of(const string& ptx, const string& mark) {
  const size_t at = ptx.find(mark);
  return at == string::npos ? 0 : 1 + int(std::count(ptx.begin(), ptx.begin() + long(at), '\n'));
}
std::vector<int> lines_in(const string& report) {
  std::vector<int> lines;
  const string word = "PTX line ";
  for (size_t at = report.find(word); at != string::npos; at = report.find(word, at + 1))
    lines.push_back(std::stoi(report.substr(at + word.size())));
  return lines;
}
string differs(const string& ptx, const Conditions& conditions, const string& kind, bool other) {
  const Outcome outcome = run(ptx, conditions);
  const std::vector<int> lines = lines_in(outcome.report);
  const bool here = kind.empty() || (!lines.empty() && lines[0] == line_of(ptx, kHere));
  const bool names = !other || std::count(lines.begin(), lines.end(), line_of(ptx, kOther)) > 0;
  if (outcome.kind == kind && here && names) return "";
  return "expected '" + kind + "', found '" + outcome.kind + (here ? "'" : "' at another line") +
         (names ? "" : ", without the other's line") + "\n" + outcome.report;
}

string marked(const Act& act, const char* mark) { return act.before + act.instruction + mark + "\n"; }
string begun(const Act& act, const char* mark) { return marked(act, mark) + act.issued; }
string done(const Act& act, const char* mark) { return begun(act, mark) + act.wait; }

}  // namespace memory_test
