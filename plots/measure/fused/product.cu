// SPDX-License-Identifier: MIT
//
// Chapter 07l's launch, from the folder that CMake names.

#include "common/types.cuh"
#include "ways.h"
#define chapter product  // both chapters have a namespace of this name
#include "launch.cuh"

void launch_product(const gg::Problem& p, cudaStream_t stream) {
  product::launch(p.a<bf16>(), p.b<bf16>(), static_cast<bf16*>(p.epilogue().c), p.offsets(), p.rows(),
                  {p.layout().offsets.back(), p.groups(), p.n(), p.k(), p.rows_each()}, true, {}, true,
                  stream);
}
