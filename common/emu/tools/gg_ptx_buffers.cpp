// SPDX-License-Identifier: MIT
//
// gg-ptx's buffers: from .npy files to device memory and back.

#include "common/emu/tools/gg_ptx_buffers.h"

#include <unistd.h>

#include <cstring>

#include "common/emu/core/state/host_memory.h"
#include "common/emu/tools/gg_ptx_values.h"
#include "common/harness/base/files.h"
#include "common/kernel/error.h"

namespace gg::emu {

void Buffers::make(const std::vector<BufferSpec>& specs) {
  uint64_t needed = 0;
  for (const BufferSpec& spec : specs) {
    Buffer& buffer = buffers_[spec.name];
    buffer.spec = &spec;
    read(buffer);
    if (__builtin_add_overflow(needed, buffer.bytes, &needed)) needed = UINT64_MAX;
  }
  const uint64_t free = free_host_bytes();
  for (const BufferSpec& spec : specs) {
    Buffer& buffer = buffers_[spec.name];
    buffer.address = needed <= free ? memory_.allocate(buffer.bytes) : 0;
    if (!buffer.address) {
      throw Error(Exit::no_memory,
                  gg::format("the buffers need %llu bytes of memory, %llu are free",
                             static_cast<unsigned long long>(needed), static_cast<unsigned long long>(free)));
    }
    fill(buffer);
  }
  for (const BufferSpec& spec : specs) point(spec);
}

uint64_t Buffers::address_of(const std::string& what, const Pointer& pointer) const {
  const auto found = buffers_.find(pointer.buffer);
  if (found == buffers_.end()) refuse(what, "there is no buffer " + pointer.buffer + "; --buf makes one");
  const Buffer& buffer = found->second;
  if (pointer.add > buffer.bytes) {
    refuse(what, gg::format("%s has %llu bytes, %llu is outside", pointer.buffer.c_str(),
                            static_cast<unsigned long long>(buffer.bytes),
                            static_cast<unsigned long long>(pointer.add)));
  }
  return buffer.address + pointer.add;
}

void Buffers::write_outputs() const {
  NewFiles files;
  for (const auto& [name, buffer] : buffers_) {
    if (buffer.spec->kind != BufferSpec::Kind::out) continue;
    files.add(buffer.spec->file, npy_content(buffer.array.type, buffer.array.shape,
                                             memory_.unchecked(buffer.address), size_t(buffer.bytes)));
  }
  files.commit();
}

void Buffers::read(Buffer& buffer) {
  const BufferSpec& spec = *buffer.spec;
  if (spec.kind == BufferSpec::Kind::zero) {
    buffer.bytes = spec.bytes;
  } else if (spec.kind == BufferSpec::Kind::pointers) {
    buffer.bytes = 8 * spec.pointers.size();
  } else if (spec.kind == BufferSpec::Kind::in || access(spec.file.c_str(), F_OK) == 0) {
    buffer.array = read_npy_of_any_type(spec.file);
    buffer.bytes = buffer.array.data.size();
    if (!spec.type.empty() && (buffer.array.type != spec.type || buffer.array.shape != spec.shape)) {
      refuse(spec.file, "holds " + shape_text(buffer.array.shape) + " of '" + buffer.array.type + "', not " +
                            shape_text(spec.shape) + " of '" + spec.type + "' as the option says");
    }
  } else {
    make_output(buffer);
  }
  if (spec.kind == BufferSpec::Kind::out) require_writable(spec.file);
}

void Buffers::make_output(Buffer& buffer) {
  const BufferSpec& spec = *buffer.spec;
  if (spec.type.empty()) {
    refuse("out:" + spec.file,
           "there is no such file to take the size from; make one, or say type and shape, as in out:" +
               spec.file + ",f4,64x32");
  }
  buffer.array = {spec.type, spec.shape, {}};
  buffer.bytes = uint64_t(spec.type[2] - '0');
  for (const int64_t extent : spec.shape) {
    if (__builtin_mul_overflow(buffer.bytes, uint64_t(extent), &buffer.bytes)) {
      refuse("out:" + spec.file, "its shape " + shape_text(spec.shape) + " overflows");
    }
  }
}

void Buffers::fill(Buffer& buffer) {
  uint8_t* bytes = memory_.unchecked(buffer.address);  // zero so far
  if (!buffer.array.data.empty()) {
    std::memcpy(bytes, buffer.array.data.data(), size_t(buffer.bytes));
  } else if (buffer.spec->kind == BufferSpec::Kind::out) {
    std::memset(bytes, 0xFF, size_t(buffer.bytes));
  }
  buffer.array.data = {};
}

void Buffers::point(const BufferSpec& spec) {
  for (size_t i = 0; i < spec.pointers.size(); ++i) {
    const uint64_t address = address_of("--buf " + spec.name, spec.pointers[i]);
    std::memcpy(memory_.unchecked(buffers_[spec.name].address) + 8 * i, &address, sizeof address);
  }
}

}  // namespace gg::emu
