// SPDX-License-Identifier: MIT
__device__ uint32_t load_shared(const uint32_t* p) {
  return *p;
}
