// SPDX-License-Identifier: MIT
//
// Launches in every order, on one and two workers, and what the words must be then.

#pragma once

#include <gtest/gtest.h>

#include "tests/emu/launch_ptx.h"

namespace emu_test {

inline int threads_of(const Config& s) {
  return s.grid[0] * s.grid[1] * s.grid[2] * s.block[0] * s.block[1] * s.block[2];
}

// Returns the words of `out` after the launch; they are 0xEEEEEEEE before.
inline Words run(Program& program, const Config& config, size_t words, const Words& in = {}) {
  std::vector<Buffer> buffers = {buffer_of(Words(words, 0xEEEEEEEE)), buffer_of(in)};
  program.run(buffers, config);
  return values_of<uint32_t>(buffers[0]);
}

// In every order, on one and two workers, word i of `out` is expected(i).
template <class Expected>
void expect_always(const std::string& text, Config config, size_t words, Expected expected,
                   const Words& in = {}) {
  Program program(text);
  for (const Order& order : orders()) {
    for (int workers = 1; workers <= 2; ++workers) {
      SCOPED_TRACE("order " + name_of(order) + ", workers " + std::to_string(workers));
      config.options.order = order;
      config.options.workers = workers;
      Words out;
      try {
        out = run(program, config, words, in);
      } catch (const Fault& fault) {
        FAIL() << fault.what();
      }
      for (size_t i = 0; i < words; ++i) ASSERT_EQ(out[i], uint32_t(expected(uint32_t(i)))) << "word " << i;
    }
  }
}
// One word for each thread.
template <class Expected>
void expect_always(const std::string& text, const Config& config, Expected expected, const Words& in = {}) {
  expect_always(text, config, size_t(threads_of(config)), expected, in);
}

// All blocks meet at a counter: the first ones started cannot go on until the last one has begun.
// `pause` stands in the loop.
inline std::string grid_barrier(const std::string& pause) {
  return kernel(R"(
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra JOIN;
    mov.u32 %r11, %nctaid.x;
    mov.u32 %r12, 0;
    atom.global.add.u32 %r10, [%rd1], 1;
    SPIN:
    )" + pause + R"(
    ld.acquire.gpu.global.u32 %r10, [%rd1];
    setp.lt.u32 %p1, %r10, %r11;
    @%p1 bra SPIN;
    JOIN:
    bar.sync 0;
    ld.volatile.global.u32 %r10, [%rd1];
    st.global.u32 [%rd2], %r10;)");
}

}  // namespace emu_test
