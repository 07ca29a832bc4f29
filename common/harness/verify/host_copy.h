// SPDX-License-Identifier: MIT
//
// A problem's tensors in host memory, where references judge them and mistakes are looked for.

#pragma once

#include <array>
#include <vector>

#include "common/harness/machine/buffers.h"

namespace gg {

struct OutputImage {  // one output's buffer, guards included; empty where there is no such output
  std::vector<char> bytes{};
  size_t start = 0;  // of the tensor, in bytes
  const char* first() const { return bytes.data() + start; }
};
using OutputImages = std::array<OutputImage, kTensors>;

struct HostCopy {
  std::vector<char> a, b, sfa, sfb;  // as near_layout has B; no scales without block scales
  OutputImages outputs;
  OutputImages before{};  // the same before the launch, where somebody kept it
  bool accumulates = false;  // the launch added to D

  const std::vector<char>& d() const { return outputs[size_t(Tensor::d)].bytes; }
  Matrices matrices(const Formats& formats) const {
    return {a.data(), b.data(), d().data(), formats, as_codes(sfa), as_codes(sfb), accumulates};
  }

 private:
  static const uint8_t* as_codes(const std::vector<char>& bytes) {
    return reinterpret_cast<const uint8_t*>(bytes.data());
  }
};
HostCopy host_copy(Machine& machine, const Buffers& buffers);

std::vector<char> downloaded(Machine& machine, const void* memory, size_t bytes);
// B as near_layout has it.
std::vector<char> downloaded_b(Machine& machine, const Buffers& buffers);

}  // namespace gg
