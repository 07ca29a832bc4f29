// SPDX-License-Identifier: MIT
//
// How fast the emulator is: warp instructions a second on chapter 02's main loop, with its
// checks and without those that only look for bugs, on one core and spread over several; and
// what one tensor-core instruction takes. Times are CPU time of the quickest of several runs, so
// a busy machine disturbs them little; the spread over cores is wall-clock time. The target
// `emu_speed` runs it.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "common/kernel/error.h"
#include "tests/emu/launch_ptx.h"

namespace {

using emu_test::Buffer;
using emu_test::buffer_of;
using emu_test::Config;
using gg::emu::Counts;

constexpr int kRuns = 5;

struct Cost {
  double cpu_s = 1e9, wall_s = 1e9;
  uint64_t warp_instructions = 0;
};

// The quickest of several runs.
template <class Run>
Cost cost_of(Run run) {
  Cost best;
  for (int i = 0; i < kRuns; ++i) {
    Counts counts;
    const auto wall = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    run(&counts);
    const double cpu_s = double(std::clock() - cpu) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> wall_s = std::chrono::steady_clock::now() - wall;
    best.cpu_s = std::min(best.cpu_s, cpu_s);
    best.wall_s = std::min(best.wall_s, wall_s.count());
    best.warp_instructions = 0;
    for (const auto& each : counts.begin()->second) best.warp_instructions += each.warps;
  }
  return best;
}

// The PTX of a program that has `kernel`; it lies there as plain text.
std::string ptx_of(const std::string& program, const std::string& kernel) {
  std::ifstream file(program, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  const std::string all = bytes.str();
  for (size_t at = all.find("\n.version "); at != std::string::npos; at = all.find("\n.version ", at + 1)) {
    const std::string text = all.substr(at, all.find('\0', at) - at);
    if (text.find(".entry " + kernel) != std::string::npos) return text;
  }
  throw std::runtime_error("no kernel " + kernel + " in " + program);
}

std::vector<uint16_t> random_bf16(size_t count) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> values(count);
  for (uint16_t& each : values) each = uint16_t(std::bit_cast<uint32_t>(normal(engine)) >> 16);
  return values;
}

// Chapter 02's kernel on tiles of 128 x 128 with so many slices of K that 99 of 100 instructions
// are the main loop's.
class MainLoop {
 public:
  explicit MainLoop(const std::string& program) {
    const std::string name = "_ZN7chapter12grouped_gemmI13__nv_bfloat16iEEvPKT_S4_PS2_PKT0_iilbb";
    module_ = gg::emu::parse_ptx(ptx_of(program, name));
    code_ = gg::emu::decode(*module_, *module_->find(name), gg::emu::all_forms());
    const std::vector<uint16_t> values = random_bf16(size_t(kK) * kTile * kMostBlocks);
    const int32_t offsets[2] = {0, kTile * kMostBlocks};
    const uint64_t a = memory_.allocate(values.size() * 2), b = memory_.allocate(size_t(kK) * kTile * 2),
                   d = memory_.allocate(size_t(kTile) * kTile * kMostBlocks * 2),
                   offsets_ptr = memory_.allocate(sizeof offsets);
    std::memcpy(memory_.unchecked(a), values.data(), values.size() * 2);
    std::memcpy(memory_.unchecked(b), values.data(), size_t(kK) * kTile * 2);
    std::memcpy(memory_.unchecked(offsets_ptr), offsets, sizeof offsets);
    const struct {
      uint64_t a, b, d, offsets;
      int32_t n, k;
      int64_t b_group_stride;
      bool wide_a, wide_b;
    } params = {a, b, d, offsets_ptr, kTile, kK, 0, true, true};
    launch_.code = code_.get();
    launch_.block[0] = 256;
    launch_.params.resize(size_t(code_->function->param_bytes));
    std::memcpy(launch_.params.data(), &params, launch_.params.size());
  }

  Cost cost(int blocks, int workers, bool checks) {
    launch_.grid[0] = blocks;
    gg::emu::RunOptions options;
    options.workers = workers;
    options.checks = checks;
    return cost_of([&](Counts* counts) { run_launch(launch_, memory_, options, counts); });
  }

  static constexpr int kMostBlocks = 64;

 private:
  static constexpr int kTile = 128, kK = 2048;

  gg::emu::GlobalMemory memory_;
  std::unique_ptr<gg::emu::Module> module_;
  std::unique_ptr<gg::emu::Code> code_;
  gg::emu::Launch launch_;
};

void main_loop(const std::string& program) {
  MainLoop loop(program);
  std::printf("02_tiled, main loop\n");
  for (const bool checks : {true, false}) {
    const Cost one = loop.cost(1, 1, checks);
    std::printf("  checks %-4s %6.1f million warp instructions a second and core\n", checks ? "on" : "off",
                double(one.warp_instructions) / one.cpu_s / 1e6);
  }
  const int cores = int(std::max(1u, std::thread::hardware_concurrency()));
  for (int workers = 1; workers <= cores; workers *= 2) {
    const int blocks = std::min(4 * workers, MainLoop::kMostBlocks);
    const Cost all = loop.cost(blocks, workers, true);
    std::printf("  %3d %-7s %6.1f million a second, wall clock, checks on\n", workers,
                workers == 1 ? "core" : "cores", double(all.warp_instructions) / all.wall_s / 1e6);
  }
}

// "{%f0, %f1}"
std::string registers(const std::string& prefix, int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", %" : "%") + prefix + std::to_string(first + i);
  return text + "}";
}

// A kernel whose loop does `rounds` times `body`. Its shared memory is filled from `in`.
std::string looped(int rounds, const std::string& setup, const std::string& body, int tile_bytes = 24576,
                   const std::string& after = "") {
  return gg::format(R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in)
{
  .shared .align 1024 .b8 tiles[%d]; .shared .b64 bar; .shared .b32 slot;
  .reg .pred %%p<8>; .reg .b32 %%r<40>; .reg .f32 %%f<64>; .reg .b64 %%rd<8>;
  ld.param.u64 %%rd0, [in];
  mov.u32 %%r0, %%tid.x;
  mov.u32 %%r1, tiles;
  shl.b32 %%r2, %%r0, 4;
fill:
  cvt.u64.u32 %%rd1, %%r2;
  add.u64 %%rd1, %%rd0, %%rd1;
  ld.global.v4.b32 {%%r10, %%r11, %%r12, %%r13}, [%%rd1];
  add.u32 %%r3, %%r1, %%r2;
  st.shared.v4.b32 [%%r3], {%%r10, %%r11, %%r12, %%r13};
  mov.u32 %%r4, %%ntid.x;
  mad.lo.u32 %%r2, %%r4, 16, %%r2;
  setp.lt.u32 %%p0, %%r2, %d;
  @%%p0 bra fill;
  fence.proxy.async.shared::cta;
  bar.sync 0;
)",
                    tile_bytes, tile_bytes) +
         setup + "  mov.u32 %r5, " + std::to_string(rounds) + ";\nloop:\n" + body +
         "  sub.u32 %r5, %r5, 1;\n  setp.ne.u32 %p1, %r5, 0;\n  @%p1 bra loop;\n" + after + "  ret;\n}\n";
}

std::string zeros(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "  mov.f32 %f" + std::to_string(i) + ", 0f00000000;\n";
  return text;
}

void instruction(const char* name, const std::string& text, int threads, int executed) {
  emu_test::Program program(text);
  std::vector<Buffer> buffers = {buffer_of(random_bf16(1 << 15))};
  Config config = emu_test::config_of(1, threads);
  config.options.workers = 1;
  const Cost cost = cost_of([&](Counts* counts) { program.run(buffers, config, counts); });
  std::printf("%-32s %6.2f us\n", name, cost.cpu_s * 1e6 / executed);
}

void tensor_cores() {
  constexpr int kMmas = 8, kRounds = 2000;
  std::string body;
  for (int i = 0; i < kMmas; ++i) {
    const std::string sums = registers("f", 4 * i, 4);
    body += "  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 " + sums +
            ", {%r10, %r11, %r12, %r13}, {%r20, %r21}, " + sums + ";\n";
  }
  const std::string load =
      "  mad.lo.u32 %r3, %r0, 8, %r1;\n  ld.shared.v2.b32 {%r20, %r21}, [%r3];\n" + zeros(4 * kMmas);
  instruction("mma m16n8k16 bf16, a warp", looped(kRounds, load, body), 32, kMmas * kRounds);

  // 64 x 64 of A, then 128 x 64 of B, both in rows of 128 bytes with the 128-byte swizzle.
  constexpr int kSteps = 4, kWgmmaRounds = 40;
  body = "  wgmma.fence.sync.aligned;\n";
  for (int step = 0; step < kSteps; ++step) {
    body += gg::format("  add.u64 %%rd4, %%rd2, %d;\n  add.u64 %%rd5, %%rd3, %d;\n", 2 * step, 2 * step) +
            "  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " + registers("f", 0, 64) +
            ", %rd4, %rd5, %p2, 1, 1, 0, 0;\n";
  }
  body += "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n";
  const std::string descriptors =
      "  shr.u32 %r6, %r1, 4;\n  cvt.u64.u32 %rd2, %r6;\n"
      "  or.b64 %rd2, %rd2, 0x4000004000000000;\n"  // 128-byte swizzle, eight rows are 1024 bytes
      "  add.u64 %rd3, %rd2, 512;\n  setp.eq.u32 %p2, %r1, %r1;\n";
  instruction("wgmma m64n128k16 bf16, 4 warps", looped(kWgmmaRounds, descriptors + zeros(64), body), 128,
              kSteps * kWgmmaRounds);
}

// tcgen05.mma: A and B of 128 and `n` rows of 128 bytes with the 128-byte swizzle, four steps along
// K, then a commit that all wait for. Scales are 1.
void fifth_generation(const char* name, const std::string& kind, uint32_t shape, int n) {
  constexpr int kSteps = 4, kRounds = 40, kTileA = 128 * 128;
  const bool scaled = kind.find("mxf") == 0;
  const uint32_t ones = shape >> 23 & 1 ? 0x7F7F7F7F : 0x38383838;  // scales: UE8M0, or UE4M3
  const auto steps = [&] {
    std::string text;
    for (int step = 0; step < kSteps; ++step) {
      text += gg::format("  add.u64 %%rd4, %%rd2, %d;\n  add.u64 %%rd5, %%rd3, %d;\n", 2 * step, 2 * step) +
              "  @%p3 tcgen05.mma.cta_group::1.kind::" + kind + " [%r7], %rd4, %rd5, %r8, " +
              (scaled ? "[%r9], [%r9], " : "") + "%p2;\n";
    }
    return text + R"(  @%p3 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r14];
again:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [bar], %r16;
  @!%p4 bra again;
  xor.b32 %r16, %r16, 1;
)";
  };
  const std::string setup =
      gg::format(R"(  shr.u32 %%r6, %%r1, 4;
  cvt.u64.u32 %%rd2, %%r6;
  or.b64 %%rd2, %%rd2, 0x4000404000000000;
  add.u64 %%rd3, %%rd2, %d;
  mov.b32 %%r8, 0x%x;
  mov.u32 %%r14, bar;
  mov.u32 %%r15, slot;
  mov.u32 %%r16, 0;
  setp.eq.u32 %%p2, %%r1, %%r1;
  setp.eq.u32 %%p3, %%r0, 0;
  setp.lt.u32 %%p5, %%r0, 32;
  setp.ne.u32 %%p6, %%r1, %%r1;
  @%%p3 mbarrier.init.shared::cta.b64 [bar], 1;
  @!%%p5 bra allocated;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%%r15], 512;
allocated:
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  ld.shared.b32 %%r7, [slot];
  shl.b32 %%r17, %%r0, 16;
  and.b32 %%r17, %%r17, 0x600000;
  add.u32 %%r17, %%r17, 256;
  mov.b32 %%r9, 256;
  mov.b32 %%r20, 0x%x;
  tcgen05.st.sync.aligned.32x32b.x4.b32 [%%r17], {%%r20, %%r20, %%r20, %%r20};
  tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  @%%p3 tcgen05.mma.cta_group::1.kind::%s [%%r7], %%rd2, %%rd3, %%r8, %s%%p6;
)",
                 kTileA / 16, shape, ones, kind.c_str(), scaled ? "[%r9], [%r9], " : "");
  const std::string free =
      "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  @!%p5 bra end;\n"
      "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 512;\nend:\n";
  instruction(name, looped(kRounds, setup, steps(), kTileA + n * 128, free), 128, kSteps * kRounds + 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: emu_speed build/bin/02_tiled\n");
    return 2;
  }
  main_loop(argv[1]);
  tensor_cores();
  fifth_generation("tcgen05.mma bf16 128 x 256 x 16", "f16", 0x08400490, 256);
  fifth_generation("tcgen05.mma mxf8 128 x 128 x 32", "mxf8f6f4.block_scale", 0x08A00000, 128);
  fifth_generation("tcgen05.mma nvf4 128 x 128 x 64", "mxf4nvf4.block_scale.block16", 0x08200480, 128);
  return 0;
}
