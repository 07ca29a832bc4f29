// SPDX-License-Identifier: MIT
//
// The guards around tensors: on the emulator a kernel that reads one is stopped, whichever tensor
// it is beside. What is written there the comparison finds, on any machine.

#include <gtest/gtest.h>

#include <functional>

#include "common/harness/machine/buffers.h"
#include "common/harness/machine/emulator.h"
#include "common/harness/run/device.h"

namespace gg {
namespace guards {

__global__ void read_byte(const char* from, char* to) { *to = *from; }
__global__ void write_byte(char* to) { *to = 1; }

class Guards : public testing::Test {
 protected:
  void SetUp() override {
    if (!emulator()) GTEST_SKIP() << "on the emulator alone";
    choose_device(Options::Device::emulator, {.id = "guards_test"});
    machine_ = emulator_machine();
    sink_ = static_cast<char*>(machine_->allocate(1, "a byte"));
  }
  void TearDown() override {
    if (sink_) machine_->release(sink_);
  }

  static gg::Setup setup() {
    gg::Setup setup;
    setup.request.formats = {Format::e4m3, Format::e4m3, Format::bf16, BlockFormat::mxfp8};
    setup.request.b_layout = BLayout::nk;
    setup.request.epilogue.op = Operator::quant;
    setup.request.epilogue.bias = true;
    return setup;
  }
  void read(const void* byte) {
    machine_->run(
        [&](cudaStream_t stream) { read_byte<<<1, 1, 0, stream>>>(static_cast<const char*>(byte), sink_); });
  }
  // The emulator stops a kernel that reads this byte, with this sentence.
  void expect_guard(const char* byte, const std::string& sentence) {
    EXPECT_EXIT(read(byte), testing::ExitedWithCode(int(Exit::device_error)), sentence);
  }
  // The first and the last byte of a tensor are read, their neighbours are not.
  void expect_guards_around(const void* first, size_t bytes, const std::string& name) {
    SCOPED_TRACE(name);
    const char* const begin = static_cast<const char*>(first);
    read(begin);
    read(begin + bytes - 1);
    expect_guard(begin - 1, "1 byte that start 1 byte before " + name + " ");
    expect_guard(begin + bytes, "1 byte that end 1 byte past the end of " + name + " ");
  }

  std::unique_ptr<Machine> machine_;
  char* sink_ = nullptr;
};

const Shape kShape{{5, 0, 33}, {64}, {128}};

TEST_F(Guards, OfOperandsAreReadByNobody) {
  Shape shape = kShape;
  shape.rows = 40;  // two of them are no group's, and no guards either
  Buffers buffers(*machine_, setup(), shape);
  buffers.fill_operands({Fill::Kind::integers, 1, 0, 0});
  const Problem& p = buffers.problem();
  const size_t rows = 40;
  expect_guards_around(p.epilogue().bias, 3 * 64 * 2, "the bias");
  expect_guards_around(p.epilogue().alpha, 3 * 4, "alpha");
  expect_guards_around(p.epilogue().prob, rows * 4, "prob");
  expect_guards_around(p.a<void>(), rows * 128, "A");
  expect_guard(static_cast<const char*>(p.epilogue().bias) - 64,
               "1 byte that start 64 bytes before the bias");
  read(p.b<void>());
  expect_guard(static_cast<const char*>(p.b<void>()) + 3 * 64 * 128,
               "1 byte that end 1 byte past the end of B ");
}

// A tensor of a smaller problem has its guards in the buffer of the larger one.
TEST_F(Guards, MoveWithTheShape) {
  Buffers buffers(*machine_, setup(), kShape);
  buffers.fill_operands({Fill::Kind::integers, 1, 0, 0});
  const char* const behind = static_cast<const char*>(buffers.problem().epilogue().bias) + 64 * 2;
  read(behind);
  buffers.set_shape({{38}, {64}, {128}});
  expect_guard(behind, "1 byte that end 1 byte past the end of the bias");
}

TEST_F(Guards, OfDiscreteWeightsAreBetweenThem) {
  gg::Setup discrete = setup();
  discrete.request.weights = Weights::discrete;
  Buffers buffers(*machine_, discrete, kShape);
  buffers.fill_operands({Fill::Kind::integers, 1, 0, 0});
  void* addresses[3];
  machine_->download(addresses, buffers.problem().discrete().b, sizeof addresses);
  for (void* const b : addresses) expect_guards_around(b, 64 * 128, "discrete weights");
}

TEST_F(Guards, MayBeWrittenWhereTheComparisonLooks) {
  Buffers buffers(*machine_, setup(), kShape);
  char* const before = static_cast<char*>(buffers.problem().d<void>()) - 1;
  machine_->run([&](cudaStream_t stream) { write_byte<<<1, 1, 0, stream>>>(before); });
}

}  // namespace guards
}  // namespace gg
