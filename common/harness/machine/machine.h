// SPDX-License-Identifier: MIT
//
// Where a problem lives and a launch runs: the GPU, or host memory. The harness checks both through
// this interface, so the planted bugs of tests/harness run as host functions where there is no GPU,
// judged by the same code.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/base/random.h"
#include "common/harness/machine/element_check.h"
#include "common/harness/problem/layout.h"
#include "common/harness/problem/problem.h"
#include "common/harness/problem/tensors.h"
#include "common/kernel/error.h"

namespace gg {

using Launch = std::function<void(const Problem&, cudaStream_t)>;

struct Matrices {  // the operands of a comparison, in the machine's memory
  const void *a, *b, *d;
  Formats formats;
  const uint8_t *sfa = nullptr, *sfb = nullptr;  // where the formats have scales
  bool accumulates = false;                      // D held start_of_d() before the launch
  int64_t d_first = 0;                           // the element of D's buffer at which `d` begins

  // Returns what an element of D held before a launch that adds to it; 0 where it adds to nothing.
  GG_HD double before(int64_t element) const {
    return accumulates ? double(random_value(start_of_d(), uint64_t(element + d_first), nullptr)) : 0;
  }
};

class Machine {
 public:
  virtual ~Machine() = default;

  // Throws gg::Error (no memory) naming what was wanted, the bytes needed and the bytes free.
  virtual void* allocate(size_t bytes, const char* what) = 0;
  // The same for memory of which little will be touched: where pages come when they are touched, as
  // on the emulator, all of it need not be free.
  virtual void* reserve(size_t bytes, const char* what) { return allocate(bytes, what); }
  virtual bool reserves() const { return false; }
  virtual void release(void* memory) = 0;
  virtual size_t free_bytes() = 0;

  virtual void fill_bytes(void* memory, int byte, size_t bytes) = 0;
  virtual void upload(void* to, const void* from_host, size_t bytes) = 0;
  virtual void download(void* to_host, const void* from, size_t bytes) = 0;
  // Rows that begin `step` bytes apart, to the host without what lies between them.
  virtual void download_rows(void* to_host, const void* from, size_t row_bytes, size_t step, int rows) {
    for (size_t row = 0; row < size_t(rows); ++row) {
      download(static_cast<char*>(to_host) + row * row_bytes, static_cast<const char*>(from) + row * step,
               row_bytes);
    }
  }
  virtual void copy(void* to, const void* from, size_t bytes) = 0;

  // Fills each region of a tensor with random data; element i of the buffer gets value i of the
  // fill. Regions of 4-bit elements start at whole bytes, and their rows are whole bytes long.
  virtual void fill(void* tensor, Format format, const std::vector<Region>& regions, const Fill& fill) = 0;
  virtual void copy_regions(void* to, const void* from, Format format,
                            const std::vector<Region>& regions) = 0;
  // The first byte in which two buffers differ, -1 if they are equal.
  virtual int64_t first_difference(const void* x, const void* y, size_t bytes) = 0;
  // Every output element of the groups against a reference in double precision, or single where
  // sums are exact.
  virtual Comparison compare(const Matrices& matrices, const std::vector<Group>& groups,
                             const Limit& limit) = 0;

  // Launches read these bytes of a buffer and no others, where the machine can see what they read.
  virtual void set_readable(void*, const char*, const std::vector<ByteRange>&) {}

  // A persistent kernel shows its mistakes where a block has several tiles, so on a small
  // device. Work that is run or captured after this finds the small one, or the whole one again.
  // The small one has room for a cluster of so many blocks. Returns its number of multiprocessors;
  // 0, and nothing changes, where the machine has one size only.
  virtual int play_small(bool, int) { return 0; }
  // The whole device has at most so many multiprocessors from now on; 0: all of its own. Nothing
  // changes where the machine has one size only.
  virtual void play_at_most(int) {}

  // As a router writes offsets that the next launch reads: in this stream, and by a kernel that
  // lets the one behind it begin at once, where the machine has programmatic dependent launch.
  virtual void copy_late(void* to, const void* from, size_t bytes, cudaStream_t) { copy(to, from, bytes); }

  // Runs the work and waits for it. `captured` records it once; what comes back replays it, and may
  // be called later.
  using Work = std::function<void(cudaStream_t)>;
  virtual void run(const Work& work) = 0;
  virtual std::function<void()> captured(const Work& work) = 0;

  // For somebody who waits at a terminal, where the machine is slow: `what` begins, as a part of
  // what has begun before and not ended. Empty: what began last has ended.
  virtual void doing(const std::string&) {}

  // defer(true): fills and copies within the machine may return before they are done; defer(false):
  // no more. Later calls of this machine find them done; work in a stream of its own may not.
  virtual void defer(bool) {}
};

// While one lives, nobody waits for fills and copies one by one: each wait costs a turn where
// several processes share a GPU.
class Deferred {
 public:
  explicit Deferred(Machine& machine) : machine_(machine) { machine_.defer(true); }
  ~Deferred() { machine_.defer(false); }
  Deferred(const Deferred&) = delete;
  Deferred& operator=(const Deferred&) = delete;

 private:
  Machine& machine_;
};

// A part of the work of a machine, while this lives.
class Doing {
 public:
  Doing(Machine& machine, const std::string& what) : machine_(machine) { machine_.doing(what); }
  ~Doing() { machine_.doing(""); }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  Machine& machine_;
};

// `memory_limit` is for tests of what happens when memory runs out; 0 asks the operating system.
std::unique_ptr<Machine> host_machine(size_t memory_limit = 0);
std::unique_ptr<Machine> gpu_machine();
std::unique_ptr<Machine> emulator_machine();  // where the emulator is this process's CUDA runtime

// The reference on the CPU (reference_cpu.cpp), matrices in host memory: rows [first, last) of one
// group. `reference` and `magnitude` get (last - first) * n sums of a*b and of |a*b| in double.
void reference_rows(const Matrices& matrices, const Group& group, int first, int last, double* reference,
                    double* magnitude);

}  // namespace gg
