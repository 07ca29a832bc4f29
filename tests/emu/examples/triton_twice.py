# SPDX-License-Identifier: MIT
"""The PTX of a Triton kernel, on stdout, compiled for sm_80 without a GPU: common/emu/README.md runs it."""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget


@triton.jit
def twice(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, i < n), i < n)


source = triton.compiler.ASTSource(twice, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128})
print(triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"])
