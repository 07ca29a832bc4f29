// SPDX-License-Identifier: MIT
//
// Bringing a problem's tensors to the host.

#include "common/harness/verify/host_copy.h"

namespace gg {

std::vector<char> downloaded(Machine& machine, const void* memory, size_t bytes) {
  std::vector<char> copy(bytes);
  if (bytes) machine.download(copy.data(), memory, bytes);
  return copy;
}

std::vector<char> downloaded_b(Machine& machine, const Buffers& buffers) {
  if (!has_far_b(buffers.layout())) return downloaded(machine, buffers.b(), buffers.b_bytes());
  const Layout near = near_layout(buffers.setup(), buffers.shape());
  const Format type = buffers.setup().request.formats.b;
  std::vector<char> b(bytes_of(type, near.b_elems), char(0xFF));
  for (size_t g = 0; g < near.groups.size(); ++g) {
    const Region &to = near.groups[g].b, &from = buffers.layout().groups[g].b;
    machine.download(b.data() + bytes_of(type, to.offset),
                     static_cast<const char*>(buffers.b()) + bytes_of(type, from.offset),
                     bytes_of(type, to.rows * to.ld));
  }
  return b;
}

HostCopy host_copy(Machine& machine, const Buffers& buffers) {
  HostCopy copy{downloaded(machine, buffers.a(), buffers.a_bytes()),
                downloaded_b(machine, buffers),
                downloaded(machine, buffers.sfa(), buffers.sfa_bytes()),
                downloaded(machine, buffers.sfb(), buffers.sfb_bytes()),
                {}};
  copy.accumulates = buffers.setup().request.accumulate;
  for (const Tensor output : buffers.outputs()) {
    const TensorMemory& tensor = buffers.of(output);
    copy.outputs[size_t(output)] = {downloaded(machine, tensor.memory.get(), tensor.bytes),
                                    tensor.spec.start_byte()};
  }
  return copy;
}

}  // namespace gg
