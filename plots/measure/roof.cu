// SPDX-License-Identifier: MIT
//
// gg-roof: what this card can do at most, measured on it. Copy bandwidth of a large buffer, bytes
// read and written added, and one 8192^3 product per element type on random data by cuBLAS, on a
// Blackwell with block scales too, each the 10th percentile of launches after a pause: a ceiling is
// what the card does before heat and the power limit lower its clock. Writes build/roof.csv.

#include <cstdio>
#include <memory>

#include "common/harness/base/csv.h"
#include "common/harness/bench/cublas.h"
#include "common/harness/bench/roof.h"
#include "common/harness/bench/timer.h"
#include "common/harness/run/device.h"

namespace {

constexpr int kSize = 8192;
constexpr size_t kCopyBytes = size_t(4) << 30;

struct Measured {
  std::string what, unit;
  double value;
  int clock_mhz;
};

void measure(std::vector<Measured>& measured, int capability) {
  const std::unique_ptr<gg::Machine> machine = gg::gpu_machine();
  const auto allocate = [&](size_t bytes) {
    return std::shared_ptr<void>(machine->allocate(bytes, "gg-roof"),
                                 [&](void* memory) { machine->release(memory); });
  };
  const auto report = [&](const std::string& what, const std::string& unit, double value,
                          const gg::Timing& timing) {
    measured.push_back({what, unit, value, timing.clock_mhz});
    std::printf("gg-roof  %-5s %8.1f %s (%d MHz)\n", what.c_str(), value, unit.c_str(), timing.clock_mhz);
  };

  const std::shared_ptr<void> from = allocate(kCopyBytes), to = allocate(kCopyBytes);
  const gg::Region all{0, 1 << 15, int(kCopyBytes / 4 >> 15), int64_t(kCopyBytes / 4 >> 15)};
  machine->fill(from.get(), gg::Format::f32, {all}, {gg::Fill::Kind::normal, 0, 1, 0});
  const auto copy = [&](int, cudaStream_t stream) {
    GG_CHECK(cudaMemcpyAsync(to.get(), from.get(), kCopyBytes, cudaMemcpyDeviceToDevice, stream));
  };
  const gg::Timing copied = gg::time_rested({"copy", copy});
  report("copy", "GB/s", 2.0 * double(kCopyBytes) / copied.p10 * 1e-3, copied);

  gg::Cublas cublas;
  const gg::Region square{0, kSize, kSize, kSize};
  const auto operand = [&](gg::Format format, uint64_t stream) {
    const std::shared_ptr<void> made = allocate(gg::bytes_of(format, int64_t(kSize) * kSize));
    machine->fill(made.get(), format, {square}, {gg::Fill::Kind::normal, 0, 2, stream});
    return made;
  };
  const auto report_product = [&](gg::Format format, const std::function<void(cudaStream_t)>& product) {
    const char* const name = gg::format_info(format).name;
    const gg::Timing timing = gg::time_rested({name, [&](int, cudaStream_t stream) { product(stream); }});
    report(name, "TFLOP/s", 2.0 * kSize * kSize * kSize / timing.p10 * 1e-6, timing);
  };
  for (gg::Format format : {gg::Format::bf16, gg::Format::f16, gg::Format::f32}) {
    const std::shared_ptr<void> a = operand(format, 1), b = operand(format, 2);
    const std::shared_ptr<void> d = allocate(gg::bytes_of(format, int64_t(kSize) * kSize));
    report_product(format, [&](cudaStream_t stream) {
      cublas.square_product(format, a.get(), b.get(), d.get(), kSize, stream);
    });
  }

  if (capability < 100) return;
  struct Scaled {
    gg::Format format;
    int block, one;  // elements to a scale; the code of a scale of 1
  };
  for (const Scaled& scaled : {Scaled{gg::Format::e4m3, 32, 0x7F}, {gg::Format::e2m1, 16, 0x38}}) {
    const std::shared_ptr<void> a = operand(scaled.format, 1), b = operand(scaled.format, 2);
    const std::shared_ptr<void> d = allocate(gg::bytes_of(gg::Format::bf16, int64_t(kSize) * kSize));
    const size_t scales = size_t(kSize) * kSize / size_t(scaled.block);
    const std::shared_ptr<void> ones = allocate(scales);
    machine->fill_bytes(ones.get(), scaled.one, scales);
    report_product(scaled.format, cublas.scaled_square_product(scaled.format, a.get(), ones.get(), b.get(),
                                                               ones.get(), d.get(), kSize));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    const bool help = std::string(argv[1]) == "--help";
    std::fprintf(help ? stdout : stderr,
                 "%sgg-roof takes no options: it measures this card's ceilings into build/roof.csv\n",
                 help ? "" : (std::string(argv[1]) + ": ").c_str());
    return int(help ? gg::Exit::ok : gg::Exit::bad_input);
  }
  try {
    const gg::Chapter any = {.id = "gg-roof"};
    const gg::Device device = gg::choose_device(gg::Options::Device::gpu, any);
    std::vector<Measured> measured;
    try {
      measure(measured, device.capability);
    } catch (const gg::Error& error) {
      if (error.code != gg::Exit::no_device) throw;
      std::fprintf(stderr, "gg-roof: some matrix rates are missing: %s\n", error.what());
    }
    std::vector<gg::Row> rows;
    for (const Measured& each : measured) {
      rows.push_back({{"device", device.name},
                      {"what", each.what},
                      {"value", gg::number_text(each.value)},
                      {"unit", each.unit},
                      {"clock_mhz", std::to_string(each.clock_mhz)},
                      {"cuda", device.cuda},
                      {"commit", gg::commit()},
                      {"date", gg::today()}});
    }
    std::remove(gg::roof_path().c_str());
    gg::append_csv(gg::roof_path(), gg::kRoofColumns, rows);
    return int(gg::Exit::ok);
  } catch (const gg::Error& error) {
    std::fprintf(stderr, "gg-roof: %s\n", error.what());
    return int(error.code);
  }
}
