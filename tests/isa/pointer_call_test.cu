// SPDX-License-Identifier: MIT
//
// Calls through pointers in CUDA C++: tables of functions in global and constant memory, pointers
// that the host hands over, virtual functions, results of many words, and functions that call
// themselves. Lanes of a warp call different functions, and to different depths.

#include <cstdint>

#include "probe.cuh"

namespace probe {
namespace pointer_call {

constexpr int kThreads = 64;

using Binary = int (*)(int, int);

// [probe]
__device__ int add(int a, int b) { return a + b; }
__device__ int subtract(int a, int b) { return a - b; }
__device__ int multiply(int a, int b) { return a * b; }
__device__ Binary global_table[3] = {add, subtract, multiply};
__constant__ Binary constant_table[3] = {multiply, add, subtract};

__global__ void through_tables(int* out, int n) {
  const int i = int(threadIdx.x);
  out[i] = global_table[i % 3](i, n) * 1000 + constant_table[(i + n) % 3](n, i);
}

__global__ void through_argument(int* out, Binary function) {
  const int i = int(threadIdx.x);
  if (i % 4 != 1) out[i] = function(i, 7);
}

class Shape {
 public:
  __device__ explicit Shape(int size) : size_(size) {}
  __device__ virtual int area() const = 0;
  __device__ virtual int corners() const { return 0; }

 protected:
  int size_;
};
class Square : public Shape {
 public:
  __device__ explicit Square(int size) : Shape(size) {}
  __device__ int area() const override { return size_ * size_; }
  __device__ int corners() const override { return 4; }
};
class Disc : public Shape {
 public:
  __device__ explicit Disc(int size) : Shape(size) {}
  __device__ int area() const override { return 3 * size_ * size_; }
};

__global__ void through_objects(int* out) {
  const int i = int(threadIdx.x);
  Square square(i);
  Disc disc(i + 1);
  const Shape* shape = i % 3 == 0 ? static_cast<const Shape*>(&disc) : &square;
  out[i] = shape->area() * 10 + shape->corners();
}

struct Many {
  int values[9];
};
__device__ Many rising(int first, Many before) {
  for (int i = 0; i < 9; ++i) before.values[i] += first + i;
  return before;
}
__device__ Many falling(int first, Many before) {
  for (int i = 0; i < 9; ++i) before.values[i] -= first * i;
  return before;
}
__global__ void many_words(int* out, int which) {
  const int i = int(threadIdx.x);
  Many (*const function)(int, Many) = (which + i) % 2 ? rising : falling;
  Many many = {};
  for (int k = 0; k < 9; ++k) many.values[k] = i * k;
  many = function(i, function(2, many));
  int sum = 0;
  for (int k = 0; k < 9; ++k) sum = sum * 3 + many.values[k];
  out[i] = sum;
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

// Each call hands on an address in its own frame. Volatile: else the compiler hands on the value.
__device__ int odd(int n, volatile int* steps);
__device__ __noinline__ int even(int n, volatile int* steps) {
  volatile int mine = *steps + 1;
  if (n == 0) return mine;
  const int result = odd(n - 1, &mine);
  return result * 2 + mine - *steps;
}
__device__ __noinline__ int odd(int n, volatile int* steps) {
  volatile int mine = *steps + 1;
  return n == 0 ? -mine : even(n - 1, &mine) - mine;
}
__global__ void by_themselves(int* out) {
  const int i = int(threadIdx.x);
  volatile int steps = i;
  out[i] = fibonacci(i % 11) * 1000 + even(i % 7, &steps);
}

// A function that calls others, and itself, through a pointer.
__device__ int halve(int n, int depth);
__device__ int grow(int n, int depth);
__device__ int (*const kNext[2])(int, int) = {halve, grow};
__device__ int halve(int n, int depth) { return depth == 0 ? n : kNext[n / 2 % 2](n / 2, depth - 1) + depth; }
__device__ int grow(int n, int depth) { return depth == 0 ? n : kNext[n % 2](3 * n + 1, depth - 1) - depth; }
__global__ void by_turns(int* out, int depth) {
  const int i = int(threadIdx.x);
  out[i] = kNext[i % 2](i, depth + i % 3);
}

__device__ Binary chosen;
__global__ void choose(int which) { chosen = global_table[which]; }
// [/probe]

class PointerCall : public Probe {
 protected:
  template <class Launch, class Expected>
  void expect(Launch launch, Expected expected) {
    const Array<int> out(std::vector<int>(kThreads, -1));
    launch(out.get());
    const std::vector<int> got = out.read();
    for (int i = 0; i < kThreads; ++i) EXPECT_EQ(got[size_t(i)], expected(i)) << "thread " << i;
  }
};

TEST_F(PointerCall, TablesOfFunctions) {
  const auto of = [](int which, int a, int b) { return which == 0 ? a + b : which == 1 ? a - b : a * b; };
  for (const int n : {3, 10}) {
    expect([&](int* out) { through_tables<<<1, kThreads>>>(out, n); },
           [&](int i) { return of(i % 3, i, n) * 1000 + of(((i + n) % 3 + 2) % 3, n, i); });
  }
}

TEST_F(PointerCall, PointersThatTheHostHandsOver) {
  for (const int which : {0, 1, 2}) {
    choose<<<1, 1>>>(which);
    Binary function = nullptr;
    GG_CHECK(cudaMemcpyFromSymbol(&function, chosen, sizeof function));
    expect([&](int* out) { through_argument<<<1, kThreads>>>(out, function); },
           [&](int i) {
             return i % 4 == 1 ? -1 : which == 0 ? i + 7 : which == 1 ? i - 7 : i * 7;
           });
  }
}

TEST_F(PointerCall, VirtualFunctions) {
  expect([](int* out) { through_objects<<<1, kThreads>>>(out); },
         [](int i) { return i % 3 == 0 ? 30 * (i + 1) * (i + 1) : 10 * i * i + 4; });
}

TEST_F(PointerCall, ArgumentsAndResultsOfManyWords) {
  expect([](int* out) { many_words<<<1, kThreads>>>(out, 5); },
         [](int i) {
           int sum = 0;
           for (int k = 0; k < 9; ++k) {
             const int value = (5 + i) % 2 ? i * k + 2 + k + i + k : i * k - 2 * k - i * k;
             sum = sum * 3 + value;
           }
           return sum;
         });
}

int host_fibonacci(int n) { return n < 2 ? n : host_fibonacci(n - 1) + host_fibonacci(n - 2); }
int host_odd(int n, int steps);
int host_even(int n, int steps) { return n == 0 ? steps + 1 : host_odd(n - 1, steps + 1) * 2 + 1; }
int host_odd(int n, int steps) { return n == 0 ? -(steps + 1) : host_even(n - 1, steps + 1) - (steps + 1); }

TEST_F(PointerCall, FunctionsThatCallThemselves) {
  expect([](int* out) { by_themselves<<<1, kThreads>>>(out); },
         [](int i) { return host_fibonacci(i % 11) * 1000 + host_even(i % 7, i); });
}

int host_next(int which, int n, int depth) {
  if (depth == 0) return n;
  return which == 0 ? host_next(n / 2 % 2, n / 2, depth - 1) + depth
                    : host_next(n % 2, 3 * n + 1, depth - 1) - depth;
}

TEST_F(PointerCall, FunctionsThatCallEachOtherThroughPointers) {
  expect([](int* out) { by_turns<<<1, kThreads>>>(out, 6); },
         [](int i) { return host_next(i % 2, i, 6 + i % 3); });
}

}  // namespace pointer_call
}  // namespace probe
