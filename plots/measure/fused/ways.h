// SPDX-License-Identifier: MIT
//
// The launches that turns.cu times.

#pragma once

#include "common/problem/problem.h"

// Chapter 07l: the problem's product as bf16 to C [rows,N] of its epilogue.
void launch_product(const gg::Problem& problem, cudaStream_t stream);
// Chapter 07m: D [rows,N/2].
void launch_fused(const gg::Problem& problem, cudaStream_t stream);
