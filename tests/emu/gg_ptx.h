// SPDX-License-Identifier: MIT
//
// Runs gg-ptx over files in a folder of its own, and the kernel that most of its tests take.

#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "tests/emu/foreign/ptx_run.h"

namespace testing_gg {

inline constexpr char kProgram[] = GG_BINARY_DIR "/bin/gg-ptx";

inline std::string header(const std::string& target = "sm_80") {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n";
}

// y[i] = x[i] * factor + add for 64 floats.
inline const std::string kScale = header() + R"(
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 factor, .param .f32 add)
{
  .reg .b32 %r<5>; .reg .f32 %f<5>; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.f32 %f1, [factor]; ld.param.f32 %f2, [add];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mul.wide.s32 %rd3, %r4, 4;
  add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
  ld.global.f32 %f3, [%rd1];
  fma.rn.f32 %f4, %f3, %f1, %f2;
  st.global.f32 [%rd2], %f4;
  ret;
}
.visible .entry nothing() { ret; }
)";

class Files {
 public:
  std::string ptx(const std::string& text, const std::string& name = "kernel.ptx") const {
    write_text(folder_.at(name), text);
    return folder_.at(name);
  }
  template <class T>
  std::string npy(const std::string& name, const std::vector<T>& values,
                  const std::string& type = npy_type<T>()) const {
    write_vector(folder_.at(name), type, values.size() * sizeof(T) / size_t(type.back() - '0'), values.data(),
                 values.size() * sizeof(T));
    return folder_.at(name);
  }
  std::string at(const std::string& name) const { return folder_.at(name); }

 private:
  Folder folder_;
};

inline Outcome gg_ptx(std::vector<std::string> words) {
  words.insert(words.begin(), kProgram);
  return run(words);
}

inline std::vector<float> counting(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

}  // namespace testing_gg
