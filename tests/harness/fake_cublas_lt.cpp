// SPDX-License-Identifier: MIT
//
// The functions of cublasLt that common/harness/bench/cublas_lt.cpp calls, over host memory, for
// bf16. This cublasLt proposes three kernels: one that it marks as invalid, one that fails when it
// is launched, and one that multiplies.

#include <library_types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

#include "common/kernel/formats.h"

namespace {

using gg::Format;

struct Described {  // a product, a matrix or a preference: what was set, by attribute
  std::map<int, int64_t> set;
  int64_t rows = 0, columns = 0, ld = 0;
};
int described = 0;  // created and not destroyed
std::map<int, int64_t> last_preference, last_product;

struct Proposal {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

int create(void** made, Described value) {
  *made = new Described(value);
  ++described;
  return 0;
}
int set(void* of, int attribute, const void* value, size_t bytes) {
  int64_t number = 0;
  std::memcpy(&number, value, bytes);  // little endian, and none is negative
  static_cast<Described*>(of)->set[attribute] = number;
  return 0;
}
int destroy(void* of) {
  delete static_cast<Described*>(of);
  --described;
  return 0;
}
Described& at(void* of) { return *static_cast<Described*>(of); }

double load(const void* data, int64_t i) {
  return gg::decode(Format::bf16, gg::load_code(data, Format::bf16, i));
}

}  // namespace

extern "C" {

int fake_described() { return described; }
int64_t fake_preference(int attribute) { return last_preference.at(attribute); }
int64_t fake_product(int attribute) {  // -1: not set
  return last_product.count(attribute) ? last_product.at(attribute) : -1;
}

int cublasLtMatmulDescCreate(void** made, int, cudaDataType_t) { return create(made, {}); }
int cublasLtMatmulDescSetAttribute(void* of, int a, const void* v, size_t bytes) {
  return set(of, a, v, bytes);
}
int cublasLtMatmulDescDestroy(void* of) { return destroy(of); }
int cublasLtMatrixLayoutCreate(void** made, cudaDataType_t, uint64_t rows, uint64_t columns, int64_t ld) {
  return create(made, {{}, int64_t(rows), int64_t(columns), ld});
}
int cublasLtMatrixLayoutSetAttribute(void* of, int a, const void* v, size_t bytes) {
  return set(of, a, v, bytes);
}
int cublasLtMatrixLayoutDestroy(void* of) { return destroy(of); }
int cublasLtMatmulPreferenceCreate(void** made) { return create(made, {}); }
int cublasLtMatmulPreferenceSetAttribute(void* of, int a, const void* v, size_t bytes) {
  return set(of, a, v, bytes);
}
int cublasLtMatmulPreferenceDestroy(void* of) { return destroy(of); }

int cublasLtMatmulAlgoGetHeuristic(void* handle, void* product, void*, void*, void*, void*, void* preference,
                                   int most, Proposal* proposals, int* count) {
  if (!handle || most < 3) return 15;
  last_preference = at(preference).set;
  last_product = at(product).set;
  for (int i = 0; i < 3; ++i) {
    proposals[i] = {};
    proposals[i].algorithm[7] = uint64_t(i);
    proposals[i].state = i == 0 ? 15 : 0;
  }
  *count = 3;
  return 0;
}

int cublasLtMatmul(void*, void* product, const void* alpha, const void* a, void* a_of, const void* b,
                   void* b_of, const void* beta, const void*, void*, void* d, void* d_of,
                   const uint64_t* algorithm, void*, size_t, void*) {
  if (algorithm[7] != 2) return 13;
  constexpr int kTransposeA = 3, kBatchCount = 5, kBatchStride = 6;
  const bool transposed = at(product).set.at(kTransposeA) == 1;
  const Described &A = at(a_of), &B = at(b_of), &D = at(d_of);
  for (int64_t g = 0; g < D.set.at(kBatchCount); ++g) {
    for (int64_t row = 0; row < D.rows; ++row) {
      for (int64_t column = 0; column < D.columns; ++column) {
        double sum = 0;
        for (int64_t i = 0; i < B.rows; ++i) {
          const int64_t in_a = transposed ? i + row * A.ld : row + i * A.ld;
          sum += load(a, g * A.set.at(kBatchStride) + in_a) *
                 load(b, g * B.set.at(kBatchStride) + i + column * B.ld);
        }
        sum *= *static_cast<const float*>(alpha);
        if (*static_cast<const float*>(beta) != 0) return 7;
        gg::store_code(d, Format::bf16, g * D.set.at(kBatchStride) + row + column * D.ld,
                       gg::encode(Format::bf16, sum));
      }
    }
  }
  return 0;
}
}
