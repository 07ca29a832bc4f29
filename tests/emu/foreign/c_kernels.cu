// SPDX-License-Identifier: MIT
//
// Kernels in plain CUDA C++ for nvcc and clang, with and without optimisation: what compilers make of local
// arrays, calls, switches, structures by value, tables and generic pointers. c_test.cpp runs the PTX.

#ifdef __clang__  // compiled without CUDA's headers
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(most) __attribute__((launch_bounds(most)))
using size_t = decltype(sizeof 0);
struct float4 {
  float x, y, z, w;
} __attribute__((aligned(16)));
extern "C" __device__ int printf(const char*, ...);
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);
__device__ inline int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
__device__ inline int block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
__device__ inline int block_size() { return __nvvm_read_ptx_sreg_ntid_x(); }
__device__ inline void barrier() { __syncthreads(); }
__device__ inline float from_lane_xor(float v, int mask) {
  return __nvvm_shfl_sync_bfly_f32(0xFFFFFFFFu, v, mask, 31);
}
__device__ inline unsigned voters(bool p) { return __nvvm_vote_ballot_sync(0xFFFFFFFFu, p); }
__device__ inline int add_to(int* p, int v) { return __nvvm_atom_add_gen_i(p, v); }
__device__ inline float add_to(float* p, float v) { return __nvvm_atom_add_gen_f(p, v); }
__device__ inline int swap_if(int* p, int old, int v) { return __nvvm_atom_cas_gen_i(p, old, v); }
__device__ inline int greatest(int* p, int v) { return __nvvm_atom_max_gen_i(p, v); }
__device__ inline int leading_zeros(unsigned v) { return v ? __builtin_clz(v) : 32; }
__device__ inline int ones(unsigned long long v) { return __builtin_popcountll(v); }
#else
#include <cstdio>
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);
__device__ inline int thread() { return threadIdx.x; }
__device__ inline int block() { return blockIdx.x; }
__device__ inline int block_size() { return blockDim.x; }
__device__ inline void barrier() { __syncthreads(); }
__device__ inline float from_lane_xor(float v, int mask) { return __shfl_xor_sync(0xFFFFFFFFu, v, mask); }
__device__ inline unsigned voters(bool p) { return __ballot_sync(0xFFFFFFFFu, p); }
__device__ inline int add_to(int* p, int v) { return atomicAdd(p, v); }
__device__ inline float add_to(float* p, float v) { return atomicAdd(p, v); }
__device__ inline int swap_if(int* p, int old, int v) { return atomicCAS(p, old, v); }
__device__ inline int greatest(int* p, int v) { return atomicMax(p, v); }
__device__ inline int leading_zeros(unsigned v) { return __clz(int(v)); }
__device__ inline int ones(unsigned long long v) { return __popcll(v); }
#endif

__device__ inline int index_of_thread() { return block() * block_size() + thread(); }

// Sums of rows, through shuffles, a static array and dynamic shared memory.
extern __shared__ float row_of_block[];
extern "C" __global__ void sum_rows(const float* x, float* y, int n) {
  __shared__ float of_warp[32];
  for (int i = thread(); i < n; i += block_size()) row_of_block[i] = x[block() * n + i];
  barrier();
  float sum = 0;
  for (int i = thread(); i < n; i += block_size()) sum += row_of_block[n - 1 - i];
  for (int mask = 16; mask > 0; mask /= 2) sum += from_lane_xor(sum, mask);
  if (thread() % 32 == 0) of_warp[thread() / 32] = sum;
  barrier();
  if (thread() == 0) {
    float all = 0;
    for (int w = 0; w < block_size() / 32; ++w) all += of_warp[w];
    y[block()] = all;
  }
}

// Every thread interprets a program for a stack machine: a switch, a local array, loops that end at different
// times.
extern "C" __global__ void machine(const int* program, const int* inputs, int* outputs, int steps) {
  int stack[16];
  int top = 0, at = 0;
  stack[0] = inputs[index_of_thread()];
  for (int step = 0; step < steps; ++step) {
    const int operand = program[at + 1];
    switch (program[at]) {
      case 0:
        outputs[index_of_thread()] = stack[top];
        return;
      case 1:
        stack[++top] = operand;
        break;
      case 2:
        stack[top - 1] += stack[top];
        --top;
        break;
      case 3:
        stack[top - 1] *= stack[top];
        --top;
        break;
      case 4:
        stack[top + 1] = stack[top];
        ++top;
        break;
      case 5:
        stack[top] -= operand;
        break;
      case 6:
        if (stack[top] > operand) at = -2;
        break;
      case 7: {
        const int swapped = stack[top];
        stack[top] = stack[top - 1];
        stack[top - 1] = swapped;
        break;
      }
      case 8:
        stack[top] %= operand;
        break;
      case 9:
        stack[top] ^= operand;
        break;
      case 10:
        stack[top] <<= operand;
        break;
      case 11:
        stack[top] >>= operand;
        break;
      case 12:
        stack[top] = -stack[top];
        break;
      case 13:
        stack[top] = stack[top] < operand ? stack[top] : operand;
        break;
      case 14:
        --top;
        break;
      case 15:
        at = 2 * operand - 2;
        break;
      default:
        outputs[index_of_thread()] = -1;
        return;
    }
    at += 2;
  }
  outputs[index_of_thread()] = -2;
}

// Structures go in and out of functions that are really called.
struct Fraction {
  long long over, under;
  double value;
  signed char sign;
};
__device__ __noinline__ long long divisor(long long a, long long b) {
  while (b != 0) {
    const long long rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
__device__ __noinline__ Fraction reduced(Fraction f) {
  const long long common = divisor(f.over, f.under);
  f.over /= common;
  f.under /= common;
  f.value = double(f.over) / double(f.under) * f.sign;
  return f;
}
__device__ __noinline__ Fraction plus(Fraction a, const Fraction& b) {
  a.over = a.over * b.under + b.over * a.under;
  a.under *= b.under;
  return reduced(a);
}
extern "C" __global__ void harmonic(long long* over, long long* under, double* value, int terms) {
  Fraction sum = {0, 1, 0, 1};
  for (int i = 1; i <= terms + thread() % 4; ++i) sum = plus(sum, Fraction{1, i, 0, 1});
  sum.sign = thread() % 2 ? -1 : 1;
  sum = reduced(sum);
  over[index_of_thread()] = sum.over;
  under[index_of_thread()] = sum.under;
  value[index_of_thread()] = sum.value;
}

// A structure among the parameters, indexed at run time.
struct Recipe {
  int weights[8];
  float scale;
  const int* more[2];
  unsigned char mask[3];
};
extern "C" __global__ void cook(Recipe recipe, int* y, short bias, signed char shift) {
  const int i = index_of_thread();
  y[i] =
      recipe.weights[i % 8] * int(recipe.scale) + recipe.more[i % 2][i] + recipe.mask[i % 3] + bias + shift;
}

// Tables, variables that point at others, text.
__constant__ float powers[5] = {1.0f, 0.5f, 0.25f, 0.125f, 0.0625f};
__constant__ const short odd[2][3] = {{1, 3, 5}, {-7, -9, -11}};
__device__ int counts[4] = {10, 20, 30};
__device__ int* at_counts[2] = {&counts[1], counts};
__device__ unsigned char word[] = "emulator";
extern "C" __global__ void tables(float* y, int* z) {
  const int i = index_of_thread();
  y[i] = powers[i % 5] * odd[i % 2][i % 3];
  add_to(&at_counts[i % 2][i % 3], 1);
  barrier();
  z[i] = counts[i % 4] * 256 + word[i % sizeof word];
}

// Pointers whose space is known only when run.
__device__ __noinline__ int sum_of(const int* values, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}
extern "C" __global__ void pointers(const int* x, int* y) {
  __shared__ int together[64];
  int own[8];
  for (int i = 0; i < 8; ++i) own[i] = x[(thread() + i) % 64] * i;
  together[thread()] = x[thread()];
  barrier();
  const int* from = thread() % 3 == 0 ? own : thread() % 3 == 1 ? together + thread() / 8 : x + thread() / 4;
  y[thread()] = sum_of(from, 8);
}

// Atomic operations on shared and global memory, and a lock made of one.
extern "C" __global__ void atomics(int* total, float* sum, int* most, int* lock, int* guarded) {
  __shared__ int of_block;
  if (thread() == 0) of_block = 0;
  barrier();
  add_to(&of_block, thread());
  add_to(sum, 0.25f);
  greatest(most, (index_of_thread() * 37) % 101);
  barrier();
  if (thread() == 0) {
    add_to(total, of_block);
    while (swap_if(lock, 0, 1) != 0) {
    }
    *const_cast<volatile int*>(guarded) = *const_cast<volatile int*>(guarded) * 2 % 1000003 + 1;
#ifdef __clang__
    __nvvm_membar_gl();
#else
    __threadfence();
#endif
    swap_if(lock, 1, 0);
  }
}

// Whole numbers of all widths.
extern "C" __global__ void integers(const unsigned long long* x, unsigned long long* y, int n) {
  const int i = index_of_thread();
  if (i >= n) return;
  const unsigned long long v = x[i];
  const unsigned __int128 square = static_cast<unsigned __int128>(v) * v;
  y[i] = static_cast<unsigned long long>(square >> 64);
  y[n + i] = v / 1000007 + v % 97;
  y[2 * n + i] = static_cast<unsigned long long>(static_cast<long long>(v) / -13) ^
                 static_cast<unsigned long long>(static_cast<int>(v) >> 3);
  y[3 * n + i] =
      static_cast<unsigned>(leading_zeros(static_cast<unsigned>(v))) * 256 + static_cast<unsigned>(ones(v));
  y[4 * n + i] = static_cast<unsigned long long>(static_cast<short>(v)) +
                 static_cast<unsigned char>(v >> 8) * static_cast<signed char>(v >> 16);
  y[5 * n + i] = static_cast<unsigned long long>(float(v)) ^
                 static_cast<unsigned long long>(double(static_cast<long long>(v)) < 0.5);
}

// Wide loads and stores, arithmetic of both precisions, branches within a warp.
extern "C" __global__ void __launch_bounds__(128)
    floats(const float4* x, float4* y, double* z, unsigned* votes, int n) {
  const int i = index_of_thread();
  const bool inside = i < n;
  const unsigned vote = voters(inside && x[inside ? i : 0].x > 0);
  if (thread() % 32 == 0) votes[i / 32] = vote;
  if (!inside) return;
  float4 v = x[i];
  if (v.x > 0) {
    v.y = v.y * v.x + 0.5f;
  } else if (v.y > 0) {
    v.z = v.z / v.y;
  } else {
    v.w = __builtin_sqrtf(v.w * v.w + 1.0f);
  }
  double sum = 0;
  for (int k = 0; k < (i % 7) * 3; ++k) {
    if (k % 4 == 1) continue;
    if (sum > 2.5) break;
    sum += double(v.x) * k / 3;
  }
  y[i] = v;
  z[i] = sum;
}

extern "C" __global__ void prints(int most) {
  const int i = thread();
  if (i < 3)
    printf("thread %d of %s: %5.2f %lld %c 100%% %x\n", i, "three", i * 0.5, 1234567890123ll * i, 'a' + i,
           255u + unsigned(i));
  if (i > most) __assertfail("i <= most", "c_kernels.cu", 123, "prints", 1);
}
