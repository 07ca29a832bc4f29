// SPDX-License-Identifier: MIT
//
// The pages of this folder, as forms.h lists those of core/isa.

#pragma once

#include <vector>

#include "common/emu/core/isa/forms.h"

namespace gg::emu {

std::vector<Form> half_forms();            // f16, bf16 and their pairs
std::vector<Form> video_forms();           // vadd vadd2 vadd4 and their kin
std::vector<Form> wmma_forms();            // wmma
std::vector<Form> ldmatrix_bytes_forms();  // ldmatrix of 8-, 6- and 4-bit elements
std::vector<Form> stmatrix_bytes_forms();  // stmatrix of 8-bit elements
std::vector<Form> bulk_run_forms();        // cp.async.bulk and cp.reduce.async.bulk of bytes
std::vector<Form> cluster_launch_forms();  // clusterlaunchcontrol

// From wmma.cpp to wmma_mma.cpp, the words that lead there taken.
void decode_wmma_mma(Decoder& decoder);

}  // namespace gg::emu
