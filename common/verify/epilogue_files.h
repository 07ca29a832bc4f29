// SPDX-License-Identifier: MIT
//
// An epilogue's operands and results as files: see common/verify/operand_files.h.

#pragma once

#include <string>

#include "common/base/files.h"
#include "common/base/npy.h"
#include "common/machine/buffers.h"
#include "common/problem/chapter.h"

namespace gg {

std::string numbered_file(const char* name, int group);  // "b_00003.npy"

// Throws gg::Error (bad input) if the folder holds B or its scales in the files of the other choice: dense
// ones with --weights discrete, numbered ones without.
void require_one_kind_of_weights(const std::string& dir, bool discrete);

// The weights of all groups as one tensor [G,..], from b.npy or, where they are discrete, b_00000.npy and so
// on. `format` gives the type, `rank` the dimensions of one group's.
NpyArray read_weights(const std::string& dir, const char* name, Format format, size_t rank, bool discrete,
                      bool shared, int groups, const TypeHint& or_else = {});

// alpha, prob, bias, norm_const, hadamard. What the folder says of the bias and of block-scaled outputs goes
// to `epilogue`; with what the options say it must agree.
EpilogueOperands read_epilogue(const std::string& dir, const Chapter& chapter, const Formats& formats,
                               const Shape& shape, Epilogue& epilogue);

// Operands and results of the launch that is done.
void write_epilogue(Machine& machine, const Buffers& buffers, const std::string& dir, NewFiles& files);

}  // namespace gg
