// SPDX-License-Identifier: MIT
//
// Reading gg-ptx's options. An option of a launch belongs to the --launch before it; with the short
// form, --entry, there is one launch and all of them are its.

#include "common/emu/tools/gg_ptx_command.h"

#include <climits>
#include <set>
#include <stdexcept>
#include <utility>

#include "common/emu/core/units/tensor_map_format.h"
#include "common/emu/cudart/settings.h"
#include "common/emu/tools/gg_ptx_values.h"
#include "common/kernel/error.h"

namespace gg::emu {
namespace {
Dimensions dimensions(const std::string& option, const std::string& text) {
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() > 3)
    refuse(option + " " + text, "has " + std::to_string(parts.size()) + " extents, X,Y,Z are three");
  Dimensions d;
  for (size_t i = 0; i < parts.size(); ++i) d.x[i] = int(count(option + " " + text, parts[i], 1, INT_MAX));
  return d;
}
constexpr char kArgumentForms[] =
    "i32:5, i64:5, u32:5 (8, 16, 32 or 64 bits), f32:0.5, f64:0.5, f16:0.5, bf16:0.5, null, NAME, "
    "NAME+BYTES, tmap:SPEC, "
    "in:FILE.npy or out:FILE.npy";
class Reader {
 public:
  Reader(int argc, char** argv) : words_(argv + 1, argv + argc) {}

  Command read() {
    while (at_ < words_.size()) {
      const std::string word = words_[at_++];
      if (!starts_with(word, "--")) {
        if (!command_.file.empty())
          refuse(word, "is a second file after " + command_.file + "; one PTX file is run");
        command_.file = word;
      } else if (!global_option(word) && !launch_option(word)) {
        refuse(word, "is no option; --help lists them");
      }
    }
    finish();
    return std::move(command_);
  }

 private:
  std::string value(const std::string& option) {
    if (at_ >= words_.size()) refuse(option, "wants a value");
    if (words_[at_].empty()) refuse(option, "wants a value, and \"\" is none");
    return words_[at_++];
  }

  bool global_option(const std::string& o) {
    if (o == "--help") {
      command_.help = true;
    } else if (o == "--trace") {
      command_.trace = value(o);
    } else if (o == "--line-counts") {
      command_.line_counts = value(o);
    } else if (o == "--report") {
      command_.report = true;
    } else if (o == "--arch") {
      command_.arch = value(o);
      choice("--arch", command_.arch, {"80", "90a", "100a"});
    } else if (o == "--like") {
      command_.like = value(o);
      settings([&] { check_like("--like", command_.like); });
    } else if (o == "--order") {
      const std::string text = value(o);
      settings([&] { command_.run.order = parse_order("--order", text); });
    } else if (o == "--allow") {
      const std::string text = value(o);
      settings([&] { command_.run.allowed |= parse_allowed("--allow", text); });
    } else if (o == "--progress-after") {
      const std::string text = value(o);
      settings([&] { command_.progress_after = parse_seconds(o, text); });
    } else if (o == "--buf") {
      add_buffer(buffer_spec(value(o)));
    } else if (o == "--launch") {
      if (!short_form_.empty() || !command_.launches.empty()) launch_complete();
      if (!short_form_.empty())
        refuse("--launch", short_form_ + " is given too, which is the short form for one launch");
      command_.launches.emplace_back().entry = value(o);
    } else {
      return false;
    }
    return true;
  }

  template <class Read>
  static void settings(Read read) {
    try {
      read();
    } catch (const std::invalid_argument& error) {
      throw Error(Exit::bad_input, error.what());
    }
  }

  bool launch_option(const std::string& o) {
    static const std::set<std::string> known = {"--entry", "--grid", "--block", "--cluster",
                                                "--smem",  "--arg",  "--args",  "--patch"};
    if (!known.count(o)) return false;
    if (command_.launches.empty()) {
      command_.launches.emplace_back();
      short_form_ = o;
    }
    LaunchSpec& launch = command_.launches.back();
    const std::string text = value(o);
    if (o == "--entry") {
      if (short_form_.empty())
        refuse("--entry", "--launch is given too, and --entry is the short form for one launch");
      if (!launch.entry.empty())
        refuse("--entry " + text, launch.entry + " is given before it; several launches want --launch");
      launch.entry = text;
    } else if (o == "--grid") {
      once(launch.grid, o, text);
    } else if (o == "--block") {
      once(launch.block, o, text);
    } else if (o == "--cluster") {
      once(launch.cluster, o, text);
    } else if (o == "--smem") {
      launch.shared_bytes = int64_t(count("--smem", text, 0, INT32_MAX));
    } else if (o == "--arg") {
      launch.arguments.push_back(argument(text));
    } else if (o == "--args") {
      if (!launch.argument_file.empty())
        refuse("--args " + text, launch.argument_file + " is given before it");
      launch.argument_file = text;
    } else {
      launch.patches.push_back(patch(text));
    }
    return true;
  }

  static void once(std::optional<Dimensions>& slot, const std::string& option, const std::string& text) {
    if (slot) refuse(option + " " + text, "is given twice for one launch");
    slot = dimensions(option, text);
  }

  Argument argument(const std::string& text) {
    Argument a;
    a.text = "--arg " + text;
    const size_t colon = text.find(':');
    const std::string type = text.substr(0, colon);
    if (text == "null") return a;
    if (starts_with(text, "tmap:")) {
      a.kind = Argument::Kind::map;
      a.map = map_spec("--arg", text);
      return a;
    }
    if (starts_with(text, "in:") || starts_with(text, "out:")) {
      BufferSpec buffer;
      buffer.name = "argument:" + std::to_string(command_.buffers.size());
      buffer.kind = BufferSpec::Kind::in;
      buffer.file = text.substr(3);
      if (type == "out") output_file(buffer, text.substr(4));
      if (buffer.file.empty()) refuse(a.text, "names no file");
      a.kind = Argument::Kind::pointer;
      a.pointer = {text, buffer.name, 0};
      add_buffer(buffer);
      return a;
    }
    if (colon == std::string::npos) {
      a.kind = Argument::Kind::pointer;
      a.pointer = pointer(a.text, text);
      return a;
    }
    a.kind = Argument::Kind::number;
    const std::string number = text.substr(colon + 1);
    if (!integer_argument(a, type, number) && !float_argument(a, type, number)) {
      refuse(a.text, "\"" + type + ":\" is no kind of argument; they are " + kArgumentForms);
    }
    return a;
  }

  static Patch patch(const std::string& text) {
    const std::string what = "--patch " + text;
    const size_t equals = text.find('=');
    if (equals == std::string::npos) refuse(what, "wants OFFSET=NAME[+BYTES] or OFFSET=tmap:SPEC");
    Patch p;
    p.offset = count(what, text.substr(0, equals), 0, INT32_MAX);
    const std::string value = text.substr(equals + 1);
    p.value.text = what;
    if (starts_with(value, "tmap:")) {
      p.value.kind = Argument::Kind::map;
      p.value.map = map_spec("--patch", value);
    } else {
      p.value.kind = Argument::Kind::pointer;
      p.value.pointer = pointer(what, value);
    }
    return p;
  }

  void add_buffer(const BufferSpec& buffer) {
    for (const BufferSpec& other : command_.buffers) {
      if (other.name == buffer.name) refuse("--buf " + buffer.name, "is the name of two buffers");
      if (buffer.kind == BufferSpec::Kind::out && other.kind == BufferSpec::Kind::out &&
          other.file == buffer.file) {
        refuse("out:" + buffer.file, "two buffers would be written to this file");
      }
    }
    command_.buffers.push_back(buffer);
  }

  // The launch that options were added to so far.
  void launch_complete() const {
    const LaunchSpec& l = command_.launches.back();
    if (l.entry.empty())
      refuse(short_form_, "belongs to no launch: --entry NAME or --launch NAME is missing");
    const std::string what = "launch of " + l.entry;
    if (!l.grid) refuse(what, "--grid X,Y,Z is missing");
    if (!l.block) refuse(what, "--block X,Y,Z is missing");
    if (!l.argument_file.empty() && !l.arguments.empty()) refuse(what, "--arg and --args exclude each other");
    if (l.argument_file.empty() && !l.patches.empty())
      refuse(what, "--patch wants --args FILE, whose bytes it changes");
  }

  void finish() {
    if (command_.help) return;
    if (command_.file.empty()) refuse("no PTX file", "gg-ptx FILE.ptx [options]; --help lists them");
    if (command_.launches.empty())
      refuse(command_.file, "nothing to launch: --entry NAME or --launch NAME is missing");
    launch_complete();
  }

  std::vector<std::string> words_;
  size_t at_ = 0;
  Command command_;
  std::string short_form_;  // the option that began a launch without --launch
};

}  // namespace

Command parse_command(int argc, char** argv) { return Reader(argc, argv).read(); }

// The types that a map may have, as --help lists them.
static std::string map_types() {
  std::string text, line = "  type is one of";
  for (int i = 0; i <= int(MapType::b6x16_p32); ++i) {
    const std::string name = std::string(" ") + map_type_name(MapType(i));
    if (line.size() + name.size() > 110) text += std::exchange(line, "                ") + "\n";
    line += name;
  }
  return text + line + "\n";
}

std::string gg_ptx_help() {
  const std::string text =
      R"(gg-ptx FILE.ptx [options] runs kernels of a PTX file on the emulator, whatever compiler made it.

memory
  --buf NAME=in:FILE.npy        the bytes of a .npy file of any little-endian type
  --buf NAME=out:FILE.npy       the same, written back at the end; as out:FILE.npy,TYPE,SHAPE (f4,64x32) the
                                file may be missing, and the buffer starts as 0xFF bytes
  --buf NAME=zero:BYTES         zeros
  --buf NAME=ptrs:NAME[+BYTES],...
                                the addresses of places in buffers
launches, one after the other over the same memory
  --launch ENTRY                begins one; if there is only one, --entry ENTRY does
  --grid X,Y,Z --block X,Y,Z    blocks, threads of a block
  --cluster X,Y,Z               blocks of a cluster (default: what the kernel requires, else 1,1,1)
  --smem BYTES                  dynamic shared memory
  --arg VALUE                   each parameter in turn: i32:5 i64:5 u32:5 (8, 16, 32 or 64 bits), f32:0.5
                                f64:0.5 f16:0.5 bf16:0.5, null, NAME, NAME+BYTES, tmap:SPEC, in:FILE.npy,
                                out:FILE.npy
  --args FILE                   or all parameters as raw bytes, with
  --patch OFFSET=NAME[+BYTES]   an address put in them,
  --patch OFFSET=tmap:SPEC      or a tensor map
tensor maps
  tmap:NAME[+BYTES],type=bf16,dims=256x128,strides=512,box=64x32
                                dimension 0 first; strides in bytes, of dimensions 1 and up
  ...,swizzle=none|32B|64B|128B,fill=zero|nan,interleave=none|16B|32B,estrides=1x1,l2=none|64B|128B|256B
                                a parameter of 8 bytes gets the address of a copy of the map
)" + map_types() +
      R"(the machine
  --arch 80|90a|100a            default: by the file's .target
  --like a100|h100|h200|b200    the device it plays (default: h200, b200 for 100a)
  --order S[:fair|skew]         order of warps and of asynchronous effects (default 0:fair)
  --allow KIND[,KIND]           warn about these faults and go on, as hardware does: kinds with a * below
  --report                      counts of each kernel, on stderr
  --trace FILE                  what each warp did, for chrome://tracing and Perfetto: load, mma, wait, epilogue,
                                other. The axis is issue order, 1 us for each warp instruction, not time
  --line-counts FILE            how often warps executed each line of PTX, as CSV
  --progress-after SECONDS      work of more than so many seconds shows on a terminal how far it is, default 5;
                                0: all work
  --help                        this text

exit codes: 0 done, 2 bad usage or input, 3 a fault (its report is on stderr), 4 a result could not be
written, 5 not enough memory

kinds of faults, with a * those that can be allowed
)";
  return text + fault_kinds_help();
}

}  // namespace gg::emu
