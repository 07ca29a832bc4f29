// SPDX-License-Identifier: MIT
//
// Tokens become rows, and rows become tokens: the kernels around a layer's products.

#pragma once

#include "common/kernel/epilogue.cuh"
#include "common/kernel/epilogue_glu.cuh"
#include "common/kernel/ptx/warpgroup.cuh"
#include "common/kernel/types.cuh"

namespace chapter {

constexpr int THREADS = 256;
constexpr int CHUNK = 8;    // numbers of bf16, 16 bytes: what a thread reads or writes at once
constexpr int UPDATED = 4;  // weights of a thread of `descend`, 16 bytes of f32

static_assert(CHUNK * sizeof(bf16) == sizeof(uint4) && UPDATED * sizeof(float) == sizeof(float4));
static_assert((THREADS & (THREADS - 1)) == 0, "`compare` adds its squares by halves");
static_assert(gg::epilogue::GLU_COLUMNS % CHUNK == 0, "in `glu` the ups of a chunk of gates are a chunk");
static_assert(CHUNK % UPDATED == 0, "a row of weights is whole chunks, so `descend` leaves none out");

// Eight bf16 as floats. The harness refuses a `hidden` that is no multiple of 8 and an `inner` that
// is none of 32. So rows are whole chunks, and each 32 gates of c have their 32 ups.
struct Chunk {
  float of[CHUNK];
  __device__ static Chunk unpack(const uint4& words) {
    const uint32_t all[] = {words.x, words.y, words.z, words.w};
    Chunk chunk;
#pragma unroll
    for (int i = 0; i < CHUNK; ++i)
      chunk.of[i] = gg::epilogue::float_of(i % 2 ? all[i / 2] & 0xFFFF0000 : all[i / 2] << 16);
    return chunk;
  }
  __device__ uint4 packed() const {
    uint32_t all[CHUNK / 2];
#pragma unroll
    for (int i = 0; i < CHUNK / 2; ++i) all[i] = gg::epilogue::word_of<gg::Format::bf16>(of + 2 * i);
    return {all[0], all[1], all[2], all[3]};
  }
};

// Every kernel of this file begins with it, before it touches global memory. The next kernel may
// begin, up to its own wait. What all kernels before wrote is there: the one before has ended, and it
// could not end before its own wait, for the one before that, had returned.
// [wait]
__device__ inline void overlap_with_neighbours() {
  gg::ptx::griddepcontrol_launch_dependents();
  gg::ptx::griddepcontrol_wait();
}
// [/wait]

// x: a block copies the token of its row.
__global__ void __launch_bounds__(THREADS)
    gather(const uint4* tokens, const int32_t* token_of, uint4* x, int chunks) {
  overlap_with_neighbours();
  const int64_t row = blockIdx.x, token = token_of[row];
  for (int i = int(threadIdx.x); i < chunks; i += THREADS) x[row * chunks + i] = tokens[token * chunks + i];
}

// unit: a thread makes one chunk of it, of eight gates and their ups. A row has `chunks` of them.
// Another GLU is changed in three places: here, in glu_gradient.cu, which chooses its derivative
// (`geglu` is false), and in the harness's Reference, which has the GLU and the derivative.
__global__ void __launch_bounds__(THREADS)
    glu(const uint4* c, const float* prob, uint4* unit, int64_t threads, int chunks) {
  overlap_with_neighbours();
  const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x, row = i / chunks;
  if (i >= threads) return;
  const int col = int(i % chunks) * CHUNK;
  const uint4* const from = c + row * 2 * chunks;
  const Chunk gates = Chunk::unpack(from[gg::epilogue::gate_column(col) / CHUNK]),
              ups = Chunk::unpack(from[gg::epilogue::up_column(col) / CHUNK]);
  Chunk out;
#pragma unroll
  for (int j = 0; j < CHUNK; ++j) out.of[j] = gg::epilogue::swiglu(gates.of[j], ups.of[j], prob[row]);
  unit[i] = out.packed();
}

// The sum of a token's rows, in the order of the router's choices.
__device__ inline Chunk sum_of_rows(const uint4* rows, const int32_t* row_of, int top_k, int chunks, int i) {
  Chunk sum = {};
  for (int choice = 0; choice < top_k; ++choice) {
    const Chunk row = Chunk::unpack(rows[int64_t(row_of[choice]) * chunks + i]);
#pragma unroll
    for (int j = 0; j < CHUNK; ++j) sum.of[j] += row.of[j];
  }
  return sum;
}

// The loss is scale / 2 times the sum of all squares of errors. A block adds up its token's rows of
// y, and stores its token's part of the loss and the token's rows of dy, which are all the same.
// [compare]
__global__ void __launch_bounds__(THREADS)
    compare(const uint4* y, const uint4* target, const int32_t* row_of, int top_k, float scale, uint4* dy,
            float* loss, int chunks) {
  __shared__ float squares[THREADS];
  overlap_with_neighbours();
  const int token = int(blockIdx.x), thread = int(threadIdx.x);
  row_of += int64_t(token) * top_k;
  float mine = 0;
  for (int i = thread; i < chunks; i += THREADS) {
    Chunk sum = sum_of_rows(y, row_of, top_k, chunks, i);
    const Chunk wanted = Chunk::unpack(target[int64_t(token) * chunks + i]);
#pragma unroll
    for (int j = 0; j < CHUNK; ++j) {
      const float error = sum.of[j] - wanted.of[j];
      mine += error * error;
      sum.of[j] = scale * error;  // from here on the gradient of that sum
    }
    const uint4 gradient = sum.packed();  // and of each row in the sum: a summand has the same one
    for (int choice = 0; choice < top_k; ++choice) dy[int64_t(row_of[choice]) * chunks + i] = gradient;
  }
  squares[thread] = mine;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();  // the sums that this round adds are there
    if (thread < half) squares[thread] += squares[thread + half];
  }
  if (thread == 0) loss[token] = scale / 2 * squares[0];  // which thread 0 itself wrote
}
// [/compare]

// dtokens: each of a token's rows of x is that token, so its gradient is the sum of theirs.
__global__ void __launch_bounds__(THREADS)
    combine(const uint4* dx, const int32_t* row_of, int top_k, uint4* dtokens, int chunks) {
  overlap_with_neighbours();
  const int64_t token = blockIdx.x;
  for (int i = int(threadIdx.x); i < chunks; i += THREADS)
    dtokens[token * chunks + i] = sum_of_rows(dx, row_of + token * top_k, top_k, chunks, i).packed();
}

// A step down the slope: the weights in f32, and in bf16 as the next products take them.
__global__ void __launch_bounds__(THREADS)
    descend(const float4* gradient, float rate, float4* weights, uint2* rounded, int64_t threads) {
  overlap_with_neighbours();
  const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
  if (i >= threads) return;
  const float4 w = weights[i], g = gradient[i];
  const float next[UPDATED] = {w.x - rate * g.x, w.y - rate * g.y, w.z - rate * g.z, w.w - rate * g.w};
  weights[i] = {next[0], next[1], next[2], next[3]};
  rounded[i] = {gg::epilogue::word_of<gg::Format::bf16>(next),
                gg::epilogue::word_of<gg::Format::bf16>(next + 2)};
}

}  // namespace chapter
