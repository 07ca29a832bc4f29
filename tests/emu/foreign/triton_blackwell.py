# SPDX-License-Identifier: MIT
"""Small kernels in Triton and Gluon that only sm_100a has: block-scaled products, warps of several roles, pairs of
blocks. triton_ptx.py compiles them, triton_blackwell_test.cpp runs them. Scales are bytes: E8M0 for 32 elements along
k, or E4M3 for 16."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)

from triton_ptx import build

SIZES = "m:i32 n:i32 k:i32"
BYTES = "a:*u8 sa:*u8 b:*u8 sb:*u8 "
MXFP8 = {"FORMAT": "e4m3", "PACKED": 1, "BLOCK": 32}
MXFP4 = {"FORMAT": "e2m1", "PACKED": 2, "BLOCK": 32}
NVFP4 = {"FORMAT": "e2m1", "PACKED": 2, "BLOCK": 16}


@build("scaled_mxfp8_100a", 100, BYTES + "d:*fp32 " + SIZES + "%16", BM=128, BN=64, BK=128, **MXFP8)
@build("scaled_mxfp4_100a", 100, BYTES + "d:*fp32 " + SIZES + "%16", BM=128, BN=64, BK=128, **MXFP4)
@build("scaled_nvfp4_100a", 100, BYTES + "d:*fp32 " + SIZES + "%16", BM=128, BN=64, BK=128, **NVFP4)
@triton.jit
def matmul_scaled(a, sa, b, sb, d, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FORMAT: tl.constexpr,
                  PACKED: tl.constexpr, BLOCK: tl.constexpr):
    """d = (a sa) (b sb)^T with scales in rows, sa[m, k / BLOCK]: registers bring them to tensor memory."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    row_bytes = k // PACKED
    blocks = k // BLOCK
    sums = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, k, BK):
        ks = k0 // PACKED + tl.arange(0, BK // PACKED)
        ss = k0 // BLOCK + tl.arange(0, BK // BLOCK)
        x = tl.load(a + rows[:, None] * row_bytes + ks[None, :], (rows[:, None] < m) & (ks[None, :] < row_bytes), 0)
        y = tl.load(b + cols[None, :] * row_bytes + ks[:, None], (cols[None, :] < n) & (ks[:, None] < row_bytes), 0)
        sx = tl.load(sa + rows[:, None] * blocks + ss[None, :], (rows[:, None] < m) & (ss[None, :] < blocks), 0)
        sy = tl.load(sb + cols[:, None] * blocks + ss[None, :], (cols[:, None] < n) & (ss[None, :] < blocks), 0)
        if BLOCK == 16:
            sx = sx.to(tl.float8e4nv, bitcast=True)
            sy = sy.to(tl.float8e4nv, bitcast=True)
        sums = tl.dot_scaled(x, sx, FORMAT, y, sy, FORMAT, sums)
    tl.store(d + rows[:, None] * n + cols[None, :], sums, (rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def rows_of_atoms(atoms, ROWS: tl.constexpr, BLOCKS: tl.constexpr):
    """[ROWS / 128, BLOCKS / 4, 2, 256], atoms of 512 bytes, as the scales of rows."""
    return atoms.reshape(ROWS // 128, BLOCKS // 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(ROWS, BLOCKS)


SCALES = "a:*u8 sa:*fp8e4nv b:*u8 sb:*fp8e4nv "


@build("atoms_mxfp8_100a", 100, BYTES + "d:*bf16 " + SIZES, {"num_stages": 2}, BM=128, BN=128, BK=128, **MXFP8)
@build("atoms_mxfp4_100a", 100, BYTES + "d:*bf16 " + SIZES, {"num_stages": 2}, BM=128, BN=128, BK=256, **MXFP4)
@build("atoms_nvfp4_100a", 100, SCALES + "d:*bf16 " + SIZES, {"num_stages": 2}, BM=128, BN=128, BK=256, **NVFP4)
@triton.jit
def matmul_atoms(a, sa, b, sb, d, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FORMAT: tl.constexpr,
                 PACKED: tl.constexpr, BLOCK: tl.constexpr):
    """d = (a sa) (b sb)^T with scales in atoms of 128 rows and 4 blocks, which go from shared to tensor memory, tile
    after tile in each block of the grid; all by tensor maps that the kernel makes."""
    a_map = tl.make_tensor_descriptor(a, [m, k // PACKED], [k // PACKED, 1], [BM, BK // PACKED])
    b_map = tl.make_tensor_descriptor(b, [n, k // PACKED], [k // PACKED, 1], [BN, BK // PACKED])
    atoms = k // BLOCK // 4
    sa_map = tl.make_tensor_descriptor(sa, [tl.cdiv(m, 128), atoms, 2, 256], [atoms * 512, 512, 256, 1],
                                       [BM // 128, BK // BLOCK // 4, 2, 256])
    sb_map = tl.make_tensor_descriptor(sb, [tl.cdiv(n, 128), atoms, 2, 256], [atoms * 512, 512, 256, 1],
                                       [BN // 128, BK // BLOCK // 4, 2, 256])
    d_map = tl.make_tensor_descriptor(d, [m, n], [n, 1], [BM, BN])
    tiles_n = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * tiles_n, tl.num_programs(0)):
        row = tile // tiles_n
        col = tile % tiles_n
        sums = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, k, BK):
            x = a_map.load([row * BM, k0 // PACKED])
            y = b_map.load([col * BN, k0 // PACKED])
            if FORMAT == "e4m3":
                x = x.to(tl.float8e4nv, bitcast=True)
                y = y.to(tl.float8e4nv, bitcast=True)
            sx = rows_of_atoms(sa_map.load([row * (BM // 128), k0 // BLOCK // 4, 0, 0]), BM, BK // BLOCK)
            sy = rows_of_atoms(sb_map.load([col * (BN // 128), k0 // BLOCK // 4, 0, 0]), BN, BK // BLOCK)
            sums = tl.dot_scaled(x, sx, FORMAT, y.T, sy, FORMAT, sums)
        d_map.store([row * BM, col * BN], sums.to(tl.bfloat16))


@build("matmul_roles_100a", 100, "a:*bf16 b:*bf16 d:*bf16 " + SIZES, {"num_stages": 3}, BM=128, BN=64, BK=64)
@triton.jit
def matmul_roles(a, b, d, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """d = a b^T: the compiler gives copies, products and epilogue to warps of their own."""
    a_map = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    b_map = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    d_map = tl.make_tensor_descriptor(d, [m, n], [n, 1], [BM, BN])
    tiles_n = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * tiles_n, tl.num_programs(0), warp_specialize=True):
        row = tile // tiles_n * BM
        col = tile % tiles_n * BN
        sums = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, k, BK):
            sums = tl.dot(a_map.load([row, k0]), b_map.load([col, k0]).T, sums)
        d_map.store([row, col], sums.to(tl.bfloat16))


# ---- a pair of blocks ----


@gluon.jit
def copy_tiles(a, b, d, a_tiles, b_tiles, full, empty, done, sums, row, col, k, STAGES: gl.constexpr):
    for i in range(k // 64):
        stage = i % STAGES
        mbarrier.wait(empty.index(stage), (i // STAGES + 1) & 1)
        mbarrier.expect(full.index(stage), a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [row, i * 64], full.index(stage), a_tiles.index(stage))
        tma.async_load(b, [col, i * 64], full.index(stage), b_tiles.index(stage))


@gluon.jit
def multiply_tiles(a, b, d, a_tiles, b_tiles, full, empty, done, sums, row, col, k, STAGES: gl.constexpr):
    for i in range(k // 64):
        stage = i % STAGES
        mbarrier.wait(full.index(stage), i // STAGES & 1)
        tcgen05_mma(a_tiles.index(stage), b_tiles.index(stage).permute((1, 0)), sums, use_acc=i > 0,
                    mbarriers=[empty.index(stage)])
    tcgen05_commit(done)


@gluon.jit
def store_tile(a, b, d, a_tiles, b_tiles, full, empty, done, sums, row, col, k, STAGES: gl.constexpr):
    mbarrier.wait(done, 0)
    out = gl.allocate_shared_memory(d.dtype, d.block_type.shape, d.layout)
    out.store(sums.load().to(d.dtype))
    fence_async_shared()
    tma.async_store(d, [row, col], out)
    tma.store_wait(0)


HALF = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2, cga_layout=[[1, 0]])
MAPS = {name: f"tensordesc<bf16[{rows},{cols}],{HALF}>" for name, rows, cols in [("a", 256, 64), ("b", 128, 64),
                                                                              ("d", 256, 128)]}


@build("matmul_pair_100a", 100, MAPS | {"k": "i32"}, {"num_ctas": 2}, STAGES=3)
@gluon.jit
def matmul_pair(a, b, d, k, STAGES: gl.constexpr):
    """d = a b^T of whole tiles of 256x128: each block of a pair has half of a, of b and of d; one warp of the first
    multiplies for both."""
    a_tiles = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_type.shape, a.layout)
    b_tiles = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_type.shape, b.layout)
    full = mbarrier.allocate_mbarrier(batch=STAGES, two_ctas=True)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    done = mbarrier.allocate_mbarrier()
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    mbarrier.init(done, count=1)
    layout: gl.constexpr = TensorMemoryLayout((128, 128), 1, cga_layout=[[1, 0]], two_ctas=True)
    sums = allocate_tensor_memory(gl.float32, [256, 128], layout)
    row = gl.program_id(0) * 256
    col = gl.program_id(1) * 128
    arguments = (a, b, d, a_tiles, b_tiles, full, empty, done, sums, row, col, k, STAGES)
    gl.warp_specialize([(store_tile, arguments), (copy_tiles, arguments), (multiply_tiles, arguments)], [1, 1], [24, 24])
